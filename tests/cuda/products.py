"""Compares matrix products of backend "cuda" with NumPy; prints one line for each, and how many cuBLAS computed."""

import ctypes
import sys

import numpy as np

import cinductor

SHAPES = [
    ((5, 7), (7, 3)),
    ((64, 64), (64, 64)),
    ((65, 130), (130, 67)),
    ((1, 9), (9, 1)),
    ((9,), (9, 4)),
    ((4, 9), (9,)),
    ((9,), (9,)),
    ((3, 5, 7), (7, 2)),
    ((3, 5, 7), (3, 7, 2)),
    ((2, 3, 5, 7), (3, 7, 4)),
    ((2, 1, 5, 7), (1, 3, 7, 4)),
    ((0, 3), (3, 4)),
    ((3, 0), (0, 4)),
    ((3, 0, 4), (4, 2)),
]
FORMS = {
    "as they are": lambda a, b: a @ b,
    "in an expression": lambda a, b: np.maximum((a * 2) @ (b + 1) - 3, 0) + 1,
    "a column-major operand": lambda a, b: np.ascontiguousarray(a.T).T @ b,
    "a view with steps": lambda a, b: (
        a[..., ::2] @ b[::2] if b.ndim == 1 else a[..., ::2] @ b[..., ::2, :]
    ),
    "reversed": lambda a, b: a[..., ::-1] @ b,
    "a transposed result": lambda a, b: (a @ b).T + 1,
}


def arrays(shapes, dtype):
    random = np.random.default_rng(1)
    for shape in shapes:
        x = random.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * random.standard_normal(shape)
        yield (x * 9 if np.dtype(dtype).kind in "iu" else x).astype(dtype)


def is_near(got, want, dtype):
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if np.dtype(dtype).kind in "iu":
        return np.array_equal(got, want)
    eps = np.finfo(dtype).eps
    return np.allclose(got, want, rtol=200 * eps, atol=200 * eps, equal_nan=True)


def run(name, function, dtype, shapes, **settings):
    fn = cinductor.compile(function, **settings)
    for pair in shapes:
        a, b = arrays(pair, dtype)
        with np.errstate(all="ignore"):
            want = function(a, b)
        got = fn(cinductor.to_device(a), cinductor.to_device(b))
        got = got.numpy() if hasattr(got, "numpy") else got
        if not is_near(got, want, dtype):
            return f"fail {name} {np.dtype(dtype)} {pair}: {str(got)[:100]} instead of {str(want)[:100]}"
    return f"ok {name} {np.dtype(dtype)}"


def main():
    for dtype in ("f4", "f8", "c8", "c16", "f2", "i8", "u1", "i2"):
        print(run("as they are", FORMS["as they are"], dtype, SHAPES), flush=True)
    for name, function in FORMS.items():
        print(run(name, function, "f8", SHAPES[:7]), flush=True)
    print(run("of any size", FORMS["in an expression"], "f4", SHAPES[:3], dynamic=True), flush=True)
    if len(sys.argv) > 1:  # the emulated library counts
        print("products", ctypes.CDLL(sys.argv[1]).fake_products())


if __name__ == "__main__":
    main()
