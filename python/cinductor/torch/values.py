"""Values of the core's graph that rows and library calls make, and the exceptions raised if there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


class Unmapped(Exception):
    """A row does not cover this node; it becomes a library call."""


class Refused(Exception):
    """The graph contains something that no program supports; eager runs it."""


@dataclass(frozen=True)
class GraphValue:
    """A value of the core's graph.

    number : the builder's name of it.
    is_weak : a Python number: an int or float input, or a size.
    """

    number: int
    dtype: torch.dtype
    sizes: tuple[Any, ...]
    is_weak: bool = False
