"""Loops and branches on traced values: each becomes one node of the graph, or gives the reason why not."""

from ...base.lazy import late_modules

__getattr__ = late_modules(__name__, "branch", "lattice", "loop", "tuples")
