"""Compares products of halves and of bfloat16, as tiles, with sums in float32; prints one line for each."""

import sys

import numpy as np

import cinductor

SETTINGS = {"numerics": "close", "templates": "always"}
SHAPES = [  # rows, steps, columns
    (64, 64, 64),
    (72, 200, 136),
    (65, 130, 67),
    (3, 9, 5),
    (130, 16, 8),
    (0, 8, 8),
    (8, 0, 8),
]
FORMS = {
    "plain": lambda a, b, r: a @ b,
    "a transposed left factor": lambda a, b, r: a.T @ b,
    "a transposed right factor": lambda a, b, r: a @ b.T,
    "both transposed": lambda a, b, r: a.T @ b.T,
    "steps": lambda a, b, r: a[:, ::2] @ b[::2],
    "a prologue": lambda a, b, r: (a * 2) @ (b + 1),
    "an epilogue": lambda a, b, r: np.maximum(a @ b + r[:1], 0) * 2 + r,
    "a batch": lambda a, b, r: np.stack([a, a + 1]) @ b,
    "of widened factors": lambda a, b, r: a.astype("f4") @ b.astype("f4") + r,
}


def sides(name, shape):
    m, k, n = shape
    left = (k, m) if name in ("a transposed left factor", "both transposed") else (m, k)
    right = (n, k) if name in ("a transposed right factor", "both transposed") else (k, n)
    return left, right, (m, n)


def reference(function, arrays):
    """The result for factors of float32."""
    return function(*(x.astype(np.float32) for x in arrays))


def run(name, function, dtype, shapes, choices="", **settings):
    fn = cinductor.compile(function, device="cuda", options=SETTINGS | {"choices": choices}, **settings)
    random = np.random.default_rng(1)
    for shape in shapes:
        arrays = [(random.random(s) - 0.5).astype(dtype) for s in sides(name, shape)]
        if name == "steps" and shape[1] % 2:
            continue
        want, kind = reference(function, arrays), function(*arrays).dtype
        got = fn(*(cinductor.to_device(x) for x in arrays))
        got = got.numpy() if hasattr(got, "numpy") else got
        distance = np.linalg.norm(got.astype(np.float32) - want) / max(1e-30, np.linalg.norm(want))
        if got.shape != want.shape or not distance < 0.02 or got.dtype != kind:
            return f"fail {name} {np.dtype(dtype)} {shape}: {got.dtype}{got.shape} {distance}"
    return f"ok {name} {np.dtype(dtype)}"


def main():
    narrow = ["f2"]
    try:
        import ml_dtypes

        narrow.append(ml_dtypes.bfloat16)
    except ImportError:
        pass
    few = len(sys.argv) > 1  # kernels that together have both layouts of both factors, all tails and both types
    cases = [(dtype, name) for dtype in narrow for name in FORMS]
    if few:
        cases = [("f2", "both transposed"), ("f2", "a prologue"), (narrow[-1], "plain")]
    for dtype, name in cases:
        print(run(name, FORMS[name], dtype, SHAPES[1:2] if few else SHAPES), flush=True)
    print(run("of any size", FORMS["an epilogue"], "f2", SHAPES[1:4:2] if few else SHAPES, dynamic=True), flush=True)
    print(run("an epilogue", FORMS["an epilogue"], "f2", SHAPES[1:2], choices="multiprocessors=1"), flush=True)  # the largest tiles
    explained = cinductor.explain(
        cinductor.compile(FORMS["both transposed"], device="cuda", options=SETTINGS),
        *(np.ones(s, "f2") for s in sides("both transposed", SHAPES[1])),
    )
    print("ok" if "ci_multiply_f16" in str(explained.source) else "fail", "the product is one of tiles", flush=True)
    for steps, is_kernel in ((2048, True), (2049, False)):  # the library shares long sums among blocks
        explained = cinductor.explain(cinductor.compile(lambda a, b: a @ b, device="cuda"), np.ones((64, steps), "f2"), np.ones((steps, 64), "f2"))
        print("ok" if ("ci_multiply_f16" in str(explained.source)) == is_kernel else "fail", f"{steps} steps", flush=True)


if __name__ == "__main__":
    main()
