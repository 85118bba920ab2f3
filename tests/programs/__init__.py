"""Programs in the manner of scientific Python, written with plain NumPy and run unmodified.

A module is a theme. Its functions know nothing of a compiler; its table PROGRAMS has a row for each: the function,
a maker of its arguments at size n from a Generator, three sizes, and how far float results may be apart. 0 means
every bit: such a program has nothing in it but what IEEE rounds exactly, in program order. Otherwise it is relative to
the largest value, and covers reductions, library calls and transcendental functions, multiplied by the steps that follow.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

THEMES = (
    "automata clustering dynamic_programming failures fractals graphs hashing linear_algebra "
    "monte_carlo nets particles roots signals sorting stencils"
).split()


class Program(NamedTuple):
    """One row: make(n, rng) gives the arguments at each n of sizes. tolerance: how far a device's own order of
    sums may bring results, and on the CPU functions of our own.
    """

    function: Callable[..., Any]
    make: Callable[..., tuple[Any, ...]]
    sizes: tuple[int, int, int]
    tolerance: float


def load() -> dict[str, Program]:
    """Every program by "theme.function"."""
    found = {}
    for theme in THEMES:
        module = importlib.import_module(f"{__name__}.{theme}")
        for row in module.PROGRAMS:
            found[f"{theme}.{row[0].__name__}"] = Program(*row)
    return found
