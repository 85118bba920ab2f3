"""The estimates of a call's time in NumPy by which programs are built or not, and recorded times to compare them with."""

from pathlib import Path

import numpy as np

import cinductor
from cinductor.base.signals import Deferred
from cinductor.calls import budget, economy

TIMES = Path(__file__).parent / "numpy_times.txt"  # a program's name, and microseconds of its middle size on an idle machine


def recorded():
    """Seconds by program."""
    rows = (line.split() for line in TIMES.read_text().splitlines())
    return {name: 1e-6 * float(microseconds) for name, microseconds in rows}


def estimates_of(program, size):
    """Estimated seconds in NumPy, by the graph and by the rule that decides, of the build, and the program; None if the call is
    not captured whole.
    """
    found = []

    def before_build(self, job, account, bound, changes, made, plain, least, own, called, price, is_exact):
        found[:] = plain, economy.estimate(plain, bound()), price, made
        raise Deferred(None, 0.0)

    before = economy.Economy.before_build, economy.PURSE, budget.CAPTURE
    economy.Economy.before_build, economy.PURSE, budget.CAPTURE = before_build, float("inf"), 1.0
    try:
        cinductor.compile(program.function, mode="auto")(*program.make(size, np.random.default_rng(0)))
    except Exception:
        return None
    finally:
        economy.Economy.before_build, economy.PURSE, budget.CAPTURE = before
    return found or None
