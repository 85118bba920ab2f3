"""Maps kernels to the nodes of the graph and the user's lines that they come from; also CINDUCTOR_PROVENANCE.

Kernels and nodes have their lines. If several kernels share a line, a node of this line belongs to those that have
its operation. All data come from one compile.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import os
import re
from collections import Counter
from typing import Any

from .. import _core
from ..base.deferred_warnings import warn
from ..base.graph_text import Node
from ..base.signals import pass_on
from ..diagnosis import events
from ..graphs import Graph
from .kernels import Kernel, read

# After the last pass, the nodes are those from which kernels were made.
LAST = ("dce", "demand", "cse", "send_early", "simplify", "decide", "fold", "wrap", "graph")


def text_of(part: Any) -> str:
    """The graph after all passes, or as captured if only that is known."""
    for level in LAST:
        try:
            return part.text(level)  # type: ignore[no-any-return]
        except (ValueError, AttributeError):  # the text was skipped, or the program itself is gone
            continue
    return ""


def is_in(kernel: Kernel, node: Node, is_alone: bool) -> bool:
    """True if a node of one of its lines belongs to the kernel. is_alone: no other kernel has that line."""
    if kernel.call:
        return node.op == kernel.call or node.name == kernel.call
    if node.op == "extern":
        return False
    return is_alone or re.search(rf"\b{node.op}\b", kernel.text) is not None


def kernels_of(part: Any) -> list[dict[str, Any]]:
    """The kernels and library calls of a program: name, lines, nodes."""
    kernels, _ = read(part.text("kernels"))
    nodes = [node for node in Graph(text_of(part)).nodes if node.place and node.dtype]
    shared = Counter(f"{file}:{line}" for kernel in kernels for file, line in dict.fromkeys(kernel.places))
    found = []
    for kernel in kernels:
        places = [f"{file}:{line}" for file, line in dict.fromkeys(kernel.places)]
        mine = [n for n in nodes if n.place.replace('"', "") in places]
        mine = [n for n in mine if is_in(kernel, n, shared[n.place.replace('"', "")] == 1)]
        found.append(
            {
                "name": part.named(kernel.name),
                "call": kernel.call,
                "nodes": [{"id": n.reference, "op": n.op, "type": n.type, "line": n.place} for n in mine],
                "lines": [
                    {"file": file, "line": line, "source": linecache.getline(file, line).strip()}
                    for file, line in dict.fromkeys(kernel.places)
                ],
            }
        )
    return found


def of_report(report: Any) -> dict[str, Any]:
    """The provenance of all programs of a call."""
    kernels = [kernel for part in report.parts for kernel in kernels_of(part)]
    return {"function": report.name, "place": report.place, "kernels": kernels}


class Provenance(events.Listener):
    """Writes a JSON file for each capture. If writing fails, there is one warning, and it ends."""

    def __init__(self, folder: str, report_of: Any) -> None:
        self.folder = os.path.join(_core.cache_directory(), "provenance") if folder == "1" else folder
        self.report_of = report_of

    def end(self, event: events.CaptureEvent) -> None:
        try:
            made = of_report(self.report_of(event.job, None))
            text = json.dumps(made, indent=1)
            words = re.sub(r"[^\w.-]+", "-", made["function"].rpartition("<locals>.")[2]).strip("-") or "function"
            digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
            os.makedirs(self.folder, exist_ok=True)
            path = os.path.join(self.folder, f"{words}-{digest}.json")
            with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text + "\n")
        except OSError as error:
            pass_on(error)
            if self in events.listeners:
                events.listeners.remove(self)
            warn(f"CINDUCTOR_PROVENANCE has no effect from here on: {error}")
