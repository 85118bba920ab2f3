"""Reports of `cinductor.explain` for PyTorch functions and modules: how each graph was compiled."""

from __future__ import annotations

import collections
import os
from dataclasses import dataclass, field
from html import escape
from typing import Any

import torch
from torch._dynamo.utils import counters

from ..base import lazy
from ..report import html
from . import entry
from .output import Artifact


@dataclass
class GraphReport:
    """One compiled graph.

    Attributes
    ----------
    name : str
        "forward", "backward" or "inference"; "graph" for one of Dynamo's that eager runs as it is.
    nodes : list of (str, str, str, str)
        Each op: its name, "core" or "library", why it is a library call, and the line of the model.
    why : str
        Why eager runs the graph; "" for a program.
    program : cinductor._core.Program or None
        Its `text(level)` has each level: graph, loops, kernels, procs, wrapper, source.
    """

    name: str
    nodes: list[tuple[str, str, str, str]]
    why: str
    program: Any

    def __str__(self) -> str:
        if self.why:
            return f"{self.name}: run by eager: {self.why}"
        inside = sum(kind == "core" for _, kind, _, _ in self.nodes)
        lines = [f"{self.name}: {len(self.nodes)} ops, {inside} compiled, {len(self.nodes) - inside} library calls"]
        calls = collections.Counter((op, why, where) for op, kind, why, where in self.nodes if kind != "core")
        lines += [f"  {n} x {op} ({why}), {where}" for (op, why, where), n in calls.most_common()]
        return "\n".join(lines)


@dataclass
class TorchExplanation:
    """The report of one call.

    Attributes
    ----------
    graphs : list of GraphReport
    breaks : dict
        Where Dynamo has cut the graph: its reason, and how often.
    result : object
        What the call returned.
    """

    graphs: list[GraphReport] = field(default_factory=list)
    breaks: dict[str, int] = field(default_factory=dict)
    result: Any = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file: a web page, or the text with every level of each program.

        Parameters
        ----------
        path : str or os.PathLike
            The file; with the extension .txt it gets the text.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        of_program = lazy.load("report.explanation").of_program
        reports = [of_program(graph.name, graph.program) for graph in self.graphs if graph.program is not None]
        for report in reports:
            report.approximate = []  # functions whose bits are not NumPy's; torch's are other ones anyway
        if os.path.splitext(os.fspath(path))[1] == ".txt":
            text = "\n\n".join([str(self), *(report.full() for report in reports)]) + "\n"
        else:
            summary = f'<div class="cinductor"><pre>{escape(str(self))}</pre></div>'
            text = html.document("torch.compile", summary + "".join(map(html.fragment, reports)))
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)

    def __str__(self) -> str:
        cuts = [f"cut by Dynamo {n} x: {reason.splitlines()[0]}" for reason, n in self.breaks.items()]
        return "\n".join([*(str(g) for g in self.graphs), *cuts]) or "no graph was compiled"


def explain(fn: Any, args: Any, kwargs: Any) -> TorchExplanation:
    """Compile a module or function anew, call it once and report its graphs; see `cinductor.explain`."""
    inner = getattr(fn, "_orig_mod", None) or getattr(fn, "_torchdynamo_orig_callable", fn)
    made: list[Artifact | entry.EagerGraph] = []

    def backend(gm: Any, inputs: Any) -> Any:
        return entry.compile_graph_module(gm, inputs, None, {}, made)

    before = collections.Counter(counters["graph_break"])
    with torch._functorch.config.patch(enable_autograd_cache=False):
        result = torch.compile(inner, backend=backend)(*args, **kwargs)
    graphs = [GraphReport(a.name, list(a.nodes), a.why, getattr(a.run, "program", None)) for a in made]
    return TorchExplanation(graphs, dict(collections.Counter(counters["graph_break"]) - before), result)
