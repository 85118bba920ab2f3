"""Compares functions in the default mode with NumPy after the economy has settled, and lists those that are slower.

    python benchmarks/sweep.py [--names sum,argmax] [--programs] [--only N/M] [--least 0.95]

One-line functions run on nine kinds of arrays; with --programs, all programs of tests/programs run on their three sizes. A function is
called until its program is built and compared with NumPy, then both are called in turns. Prints NumPy's lower quartile divided by
cinductor's, less 0.1 us of dispatch, where it is less than --least, with the way that runs the calls, and counts. --only takes one part
of several.
"""

import argparse
import inspect
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from small_types import turns

import cinductor
from cinductor.calls import economy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import programs

RNG = np.random.default_rng(0)
KINDS = {
    "f8 10": RNG.random(10),
    "f8 1000": RNG.random(1000),
    "f8 300x300": RNG.random((300, 300)),
    "f8 1000000": RNG.random(1_000_000),
    "f4 1000": RNG.random(1000).astype("f4"),
    "f4 columns": RNG.random((300, 300)).astype("f4").T,
    "i8 1000": RNG.integers(1, 100, 1000),
    "u1 100x100": RNG.integers(1, 100, (100, 100)).astype("u1"),
    "b1 10000": RNG.random(10_000) > 0.9,
}
UNARY = """negative absolute sqrt square exp log sin cos tanh floor rint sign isnan isfinite reciprocal log1p expm1 arctan cbrt
    sum prod mean std var min max argmin argmax any all count_nonzero cumsum cumprod ptp median sort argsort unique nonzero
    flip ravel copy diff trace diagonal nan_to_num nansum nanmax flatnonzero average atleast_2d isposinf fix transpose zeros_like
    ones_like triu tril argwhere round logical_not signbit gradient""".split()
LINES = (
    lambda x: x + 1,
    lambda x: x * 2,
    lambda x: x - x.mean(),
    lambda x: x / 3,
    lambda x: x // 3,
    lambda x: x % 3,
    lambda x: x**2,
    lambda x: x**3,
    lambda x: x * x + x,
    lambda x: 1 / (1 + x),
    lambda x: x > 0.5,
    lambda x: x == x,
    lambda x: x & x,
    lambda x: x[::2],
    lambda x: x[::-1],
    lambda x: x[1:] - x[:-1],
    lambda x: x[x > 0.5],
    lambda x: x.astype("f4"),
    lambda x: x.astype("i8"),
    lambda x: np.where(x > 0.5, x, -x),
    lambda x: np.clip(x, 0.2, 0.8),
    lambda x: np.maximum(x, 0.5),
    lambda x: np.minimum(x, x[::-1]),
    lambda x: np.roll(x, 3),
    lambda x: np.tile(x, 2),
    lambda x: np.repeat(x, 2),
    lambda x: np.concatenate((x, x)),
    lambda x: np.stack((x, x)),
    lambda x: np.pad(x, 2),
    lambda x: np.dot(x, x.T),
    lambda x: x.reshape(-1),
    lambda x: x.sum(axis=0),
    lambda x: x.mean(axis=0),
    lambda x: x.max(axis=-1),
    lambda x: x.argmax(axis=0),
    lambda x: np.cumsum(x, axis=0),
    lambda x: np.sort(x, axis=0),
    lambda x: np.full(x.shape, 7),
    lambda x: np.zeros(x.shape),
    lambda x: np.arange(len(x)),
    lambda x: np.linspace(0, 1, len(x)),
    lambda x: np.outer(x[:10], x[:10]),
    lambda x: np.histogram(x, 10)[0],
    lambda x: np.searchsorted(x.ravel(), 0.5),
    lambda x: np.take(x, [0, 2, 1]),
    lambda x: np.percentile(x, 30),
    lambda x: np.exp(-x * x / 2) / 2.5,
    lambda x: (x - x.min()) / (x.max() - x.min() + 1),
    lambda x: np.sqrt((x * x).sum()),
    lambda x: np.abs(x - x.mean()).max(),
    lambda x: np.logical_and(x > 0.2, x < 0.8).sum(),
    lambda x: (x > 0.5).any(),
    lambda x: x.T.copy(),
    lambda x: np.array_equal(x, x),
    lambda x: np.allclose(x, x),
    lambda x: np.hypot(x, x),
    lambda x: np.arctan2(x, x),
    lambda x: np.power(x, 0.5),
    lambda x: np.bincount(x.ravel().astype("i8")),
    lambda x: np.add.reduce(x),
    lambda x: np.subtract.outer(x[:9], x[:9]),
    lambda x: np.einsum("...i->...", x),
)
DISPATCH = 0.1e-6  # seconds
SETTLING, MAX_SETTLING = 200, 0.5  # calls until a function is timed, and seconds


def calling(f):
    """A function of one parameter that calls f."""
    return lambda x: f(x)


def functions():
    """The functions by their texts."""
    made = {f"np.{name}(x)": getattr(np, name) for name in UNARY}
    lines = {inspect.getsource(fn).strip().removeprefix("lambda x: ").rstrip(","): fn for fn in LINES}
    return {text: calling(f) for text, f in made.items()} | lines


def cases(asked, with_programs):
    """Name, function and a maker of arguments."""
    for text, fn in functions().items():
        for kind, x in KINDS.items():
            if not asked or any(word in f"{text} {kind}" for word in asked):
                yield f"{text} of {kind}", fn, lambda x=x: (x,)
    for name, program in programs.load().items() if with_programs else ():
        for size in program.sizes:
            if not name.startswith("failures.") and (not asked or any(word in name for word in asked)):
                yield f"{name} of {size}", program.function, lambda p=program, n=size: p.make(n, np.random.default_rng(0))


def settled(fn, make):
    """The compiled function after its builds and comparisons; None if it raises. The first calls have new arguments, the others
    those of the call before, as in the measurement: a function may change them.
    """
    compiled, until, arguments = cinductor.compile(fn), time.perf_counter() + MAX_SETTLING, make()
    try:
        for _ in range(3):
            compiled(*make())
            cinductor.wait()
    except Exception:
        return None
    for _ in range(SETTLING):
        compiled(*arguments)
        if time.perf_counter() > until:
            break
    return compiled


def way_of(compiled):
    """The way that runs the calls, in words."""
    if not compiled.specializations:
        return f"NumPy: {compiled._cinductor_job.why or 'it pays'}"
    why = compiled.specializations[0].why_numpy
    return f"NumPy: {why}" if why else "compiled"


def ratio_of(compiled, fn, make, seconds):
    """NumPy's time divided by cinductor's, and NumPy's. Short calls are timed several at a time."""
    arguments = make(), make()
    began = time.perf_counter()
    fn(*arguments[1])
    many = range(min(max(int(100e-6 / (time.perf_counter() - began + 1e-9)), 1), 100))

    def repeated(call, values):
        return lambda: [call(*values) for _ in many]

    ours, numpys = turns([repeated(compiled, arguments[0]), repeated(fn, arguments[1])], seconds)
    return numpys / max(ours - DISPATCH * len(many), DISPATCH), numpys / len(many)


def measured(compiled, fn, make):
    """Several attempts, because other load affects single ones: the best ratio."""
    best = ratio_of(compiled, fn, make, 0.01)
    for seconds in (0.05, 0.2):
        if best[0] < 1:
            best = max(best, ratio_of(compiled, fn, make, seconds))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--names", default="")
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--only", default="0/1", help="the part, and the number of parts")
    parser.add_argument("--least", type=float, default=0.95)
    given = parser.parse_args()
    part, parts = map(int, given.only.split("/"))
    ratios, slow = [], 0
    for number, (name, fn, make) in enumerate(cases([n for n in given.names.split(",") if n], given.programs)):
        compiled = settled(fn, make) if number % parts == part else None
        if compiled is None:
            continue
        ratio, numpys = measured(compiled, fn, make)
        ratios.append(ratio)
        if ratio < given.least:
            slow += 1
            print(f"{name:44} {ratio:6.2f} NumPy {1e6 * numpys:9.2f} us, {way_of(compiled)[:100]}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    print(f"{len(ratios)} cases, {slow} below {given.least}; geometric mean {mean:.2f}, least {min(ratios, default=1):.2f}")


if __name__ == "__main__":
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        economy.PURSE = float("inf")  # each function as if it were the first of its process
        main()
