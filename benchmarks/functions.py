"""Elementary functions: NumPy's loops, the default's way to their bits, and libmvec (numerics="close").

    python benchmarks/functions.py [--arch x86-64-v3] [--size 20000]
    python benchmarks/functions.py --errors [--device cuda] [--size 1000000]

Runs on one thread; prints the minimum of alternating runs in nanoseconds per element. To see NumPy without its
vector library, set NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" and pass --arch x86-64-v3. With
--errors, prints the largest error of cinductor's functions in ULP, compared with long doubles. Half of the
operands are random numbers of moderate size, half are random bits.
"""

import argparse
import time

import numpy as np

import cinductor
from cinductor import _core

NAMES = """exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt
power arctan2 hypot logaddexp logaddexp2 absolute""".split()
RUNS, SECONDS = 9, 0.003


def once(fn, args):
    """Seconds per call, averaged over a few milliseconds."""
    start, calls = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < SECONDS:
        fn(*args)
        calls += 1
    return passed / calls


def operands(ufunc, dtype, size):
    rng = np.random.default_rng(0)
    x = (rng.random(size) * 0.9 + (1.05 if ufunc is np.arccosh else 0.05)).astype(dtype)
    if dtype in "FD":
        x = (x + 1j * rng.random(size)).astype(dtype)
    return (x, x[::-1].copy())[: ufunc.nin]


def error(ours, ufunc, dtype, size):
    """The largest error in ULP, over finite and normal values."""
    rng = np.random.default_rng(1)
    bits = f"u{np.dtype(dtype).itemsize}"
    args = []
    for _ in range(ufunc.nin):
        x = rng.integers(0, np.iinfo(bits).max, size, bits, endpoint=True).view(dtype)
        x[::2] = rng.standard_normal(len(x[::2])) * rng.choice([0.1, 1, 10], len(x[::2]))
        args.append(x)
    with np.errstate(all="ignore"):
        got = np.asarray(ours(*args), np.longdouble)
        want = ufunc(*(x.astype(np.longdouble) for x in args))
        near = want.astype(dtype)
        is_normal = np.isfinite(near) & (np.abs(near) >= np.finfo(dtype).tiny)
        off = np.abs(got - want) / np.spacing(np.abs(near)).astype(np.longdouble)
    return float(np.max(off[is_normal], initial=0))


def errors(device, size):
    options = {"numerics": "close"}
    print(f"{'':12}{'float32':>8}{'float64':>8}")
    for name in NAMES:
        ufunc = getattr(np, name)
        ours = cinductor.compile(lambda *args, ufunc=ufunc: ufunc(*args), options=options, device=device)
        print(f"{name:12}" + "".join(f"{error(ours, ufunc, dtype, size):8.2f}" for dtype in "fd"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="")
    parser.add_argument("--size", type=int, default=20000)
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    if given.errors:
        return errors(given.device, given.size)
    ways = {(name, char): way for name, char, way, _ in _core.functions()}
    print(f"{'':22}   NumPy default   close  NumPy/default  default/close")
    for name in NAMES:
        ufunc = getattr(np, name)
        for dtype in "efdFD":
            args = operands(ufunc, dtype, given.size)
            try:
                out = ufunc(*args)
            except TypeError:
                continue
            made = [
                cinductor.compile(
                    lambda *args, ufunc=ufunc: ufunc(*args),
                    options={"numerics": numerics, "threads": 1, "arch": given.arch},
                )
                for numerics in ("numpy", "close")
            ]
            calls = [lambda *a, u=ufunc, o=out: u(*a, out=o), *made]
            for _ in range(2 + (1 << 18) // given.size):  # the first elements precede the test of vectors
                [call(*args) for call in calls]
            rows = [[once(call, args) for call in calls] for _ in range(RUNS)]
            theirs, default, close = (min(times) / given.size * 1e9 for times in zip(*rows, strict=True))
            print(
                f"{name:12}{np.dtype(dtype)!s:10} {theirs:7.2f} {default:7.2f} {close:7.2f} {theirs / default:14.1f}"
                f" {default / close:14.1f}  {ways.get((name, dtype), '')}{', slow' if theirs > 2 * close else ''}"
            )


if __name__ == "__main__":
    main()
