"""Prints what becomes of a graph under torch's own names of logs: TORCH_LOGS="output_code", or torch._logging.set_logs(output_code=True)."""

from __future__ import annotations

import logging
from typing import Any

import torch

# Names that Inductor also has -> the levels of a program that correspond.
LEVELS = {
    "ir_pre_fusion": ["loops"],
    "ir_post_fusion": ["kernels"],
    "output_code": ["wrapper", "source"],
    "kernel_code": ["source"],
}

# Below torch's logger, because its handlers print the logs of these names.
LOGS = {name: torch._logging.getArtifactLogger("torch.cinductor", name) for name in (*LEVELS, "post_grad_graphs", "perf_hints")}


def log_graph(name: str, gm: torch.fx.GraphModule) -> None:
    """The graph of ATen ops that is emitted."""
    if (log := LOGS["post_grad_graphs"]).isEnabledFor(logging.DEBUG):
        log.debug("%s graph:\n%s", name, gm.print_readable(print_output=False))


def log_program(name: str, program: Any, calls: list[str]) -> None:
    """The levels of a program, and the ops that ATen runs in it."""
    for word, levels in LEVELS.items():
        if LOGS[word].isEnabledFor(logging.DEBUG):
            for level in levels:
                LOGS[word].debug("%s graph, %s:\n%s", name, level, program.text(level))
    for call in calls:
        LOGS["perf_hints"].debug("%s graph: ATen runs %s", name, call)
