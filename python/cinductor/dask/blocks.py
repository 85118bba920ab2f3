"""Programs of blocks, which a worker compiles from the text of a graph and runs, and the combination of partial results."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graphs import Graph, GraphProgram

MAX_PROGRAMS = 512
_programs: dict[tuple[str, tuple[tuple[str, Any], ...], str], GraphProgram] = {}  # by content, of this process
_lock = threading.Lock()


class BlockProgram:
    """A graph as text, compiled in the process that first runs it. It is pickled as text and options."""

    def __init__(self, text: str, options: dict[str, Any], backend: str = "") -> None:
        self.text, self.options, self.backend = text, options, backend

    def program(self) -> GraphProgram:
        """The compiled graph: one for each content in a process."""
        key = self.text, tuple(sorted(self.options.items())), self.backend
        with _lock:
            found = _programs.get(key)
            if found is None:
                if len(_programs) == MAX_PROGRAMS:  # all at once: blocks that still run have theirs
                    _programs.clear()
                found = _programs[key] = Graph(self.text).compile(self.options, self.backend)
        return found

    def __call__(self, *blocks: Any) -> tuple[Any, ...]:
        """The results for blocks, which are copied if they are not contiguous, or not aligned as after a transfer."""
        inputs = [np.require(block, requirements=["C", "A"]) if isinstance(block, np.ndarray) else block for block in blocks]
        return tuple(self.program()(*inputs))


def combine(ufunc: np.ufunc, parts: Sequence[Any]) -> Any:
    """Partial results of neighbours, combined in their order."""
    return functools.reduce(ufunc, parts)
