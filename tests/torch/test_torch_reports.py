"""Tests reports and logs."""

import os
import subprocess
import sys

from agreement import compiled, same_values
from features import cinductor_backend

# isort: split
import torch

import cinductor.torch


class Reported(torch.nn.Module):
    def forward(self, x):
        y = torch.linalg.inv(x)  # a library call
        return y * 2 + 1


def cut_in_two(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def test_a_report_names_a_graph_that_autograd_refuses():
    def fn(x):
        y = x * 1
        y[1:].as_strided((2,), (2,)).fill_(5)
        return y

    (graph,) = cinductor.explain(compiled(fn, strict=False), torch.randn(4, 6)).graphs
    assert graph.why.startswith("AOTAutograd refuses it")


LOGGED = """
import torch, cinductor.torch
fast = torch.compile(lambda x: torch.linalg.inv(x).sin(), backend=cinductor.torch.backend)
fast(torch.eye(3))
"""


def test_torch_s_names_of_logs():
    """TORCH_LOGS is read when torch is imported, before the backend is."""
    env = {**os.environ, "TORCH_LOGS": "output_code,post_grad_graphs,ir_pre_fusion,ir_post_fusion,perf_hints"}
    text = subprocess.run([sys.executable, "-c", LOGGED], env=env, capture_output=True, text=True, check=True).stderr
    for name, words in [("post_grad_graphs", "torch.ops.aten.sin.default"), ("ir_pre_fusion", "loops:"), ("ir_post_fusion", "kernels:")]:
        assert any(f"[__{name}]" in line and words in line for line in text.splitlines()), name
    assert "[__output_code]" in text and "int32_t" in text and "ATen runs aten.linalg_inv_ex.default" in text
    env["TORCH_LOGS"] = "graph_breaks"
    assert not subprocess.run([sys.executable, "-c", LOGGED], env=env, capture_output=True, text=True, check=True).stderr


def test_reports(caplog, tmp_path):
    import inspect

    import cinductor

    with caplog.at_level("DEBUG", "cinductor.torch"):
        report = cinductor.explain(torch.compile(Reported(), backend=cinductor_backend()), torch.eye(3))
    assert "library calls: " in caplog.text and "= multiply(" in caplog.text
    same_values(report.result, Reported()(torch.eye(3)))
    (graph,) = report.graphs
    line = inspect.getsourcelines(Reported)[1] + 2
    assert any(op.startswith("aten.linalg_inv") and kind == "library" and where == f"{__file__}:{line}" for op, kind, _, where in graph.nodes)
    assert graph.name == "inference" and "multiply" in graph.program.text("graph") and "library call" in str(report)

    report = cinductor.explain(torch.compile(cut_in_two, backend=cinductor_backend()), torch.ones(2))
    assert len(report.graphs) == 2 and sum(report.breaks.values()) == 1 and "cut by Dynamo" in str(report)
    refused = cinductor.explain(torch.nn.Identity(), torch.ones(2))
    assert refused.graphs == [] and str(refused) == "no graph was compiled"

    for made, shown in ((report, 2), (refused, 0)):
        made.save(tmp_path / "page.html")
        made.save(tmp_path / "page.txt")
        page, text = ((tmp_path / f"page.{ending}").read_text() for ending in ("html", "txt"))
        assert page.count("<h1>") == text.count("\ngraph:\n") == shown and str(made).splitlines()[0] in page
