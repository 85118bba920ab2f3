"""Compares attention in halves and bfloat16 as one kernel with NumPy in float64; prints one line for each."""

import sys

import numpy as np

import cinductor

FULL, TALL, ODD = (2, 3, 192, 192, 64, 64), (1, 1, 300, 130, 32, 32), (1, 2, 133, 70, 40, 24)
WIDE, NONE = (1, 1, 130, 200, 128, 128), (0, 2, 64, 64, 64, 64)


def softmax(s):
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def causal(n, m):
    return np.arange(n)[:, None] >= np.arange(m)[None, :]


def product(a, b):
    return (a @ b).astype(a.dtype)


def scores(q, k):
    return product(q, np.swapaxes(k, -1, -2))


def least(x):
    return x.dtype.type(-np.inf)


def plain(q, k, v, m):
    return product(softmax(scores(q, k) * q.dtype.type(0.125)), v)


def of_rows_and_keys(q, k, v, m):
    s = scores(q, k) * q.dtype.type(0.125)
    return product(softmax(np.where(causal(*s.shape[-2:]), s, least(s))), v)


def shifted(q, k, v, m):
    s = scores(q, k)
    n, keys = s.shape[-2:]
    return product(softmax(np.where(np.arange(keys)[None, :] < np.arange(n)[:, None] - 20, s, least(s))), v)


def masked(q, k, v, m):
    return product(softmax(np.where(m > 0, scores(q, k), least(q))), v)


def added(q, k, v, m):
    return product(softmax(scores(q, k) * q.dtype.type(0.25) + m), v)


def after(q, k, v, m):
    return np.maximum(product(softmax(np.tanh(scores(q, k)) + m), v + v), 0) * 2


def grouped(q, k, v, m):
    return product(softmax(scores(q, k[:, :1])), v[:, :1])


FORMS = {f.__name__: f for f in (plain, of_rows_and_keys, shifted, masked, added, after, grouped)}


def arrays(sizes, dtype, kind):
    batch, heads, rows, keys, size, values = sizes
    random = np.random.default_rng(1)
    shapes = (batch, heads, rows, size), (batch, heads, keys, size), (batch, heads, keys, values), (rows, keys)
    q, k, v, m = (random.standard_normal(s) * scale for s, scale in zip(shapes, (0.3, 0.3, 1, 1), strict=True))
    if kind == "hard":  # a row of -inf, one with a NaN, one with an infinity
        m[3 : m.shape[0] : 40] = -np.inf
        m[5, 7], m[6, 8] = np.nan, np.inf
    return [x.astype(dtype) for x in (q, k, v, m)]


def run(name, sizes, dtype, kind="", expected="ci_multiply_own", **settings):
    function = FORMS[name]
    given = arrays(sizes, dtype, kind)
    with np.errstate(all="ignore"):
        want, like = function(*(x.astype("f8") for x in given)), function(*given)
    fn = cinductor.compile(function, device="cuda", **settings)
    got = fn(*(cinductor.to_device(x) for x in given)).numpy()
    finite = np.isfinite(want)
    error = float(np.abs(got.astype("f8") - want)[finite].max(initial=0))
    is_right = got.dtype == like.dtype and got.shape == want.shape and np.array_equal(np.isnan(got), np.isnan(want))
    scale = np.finfo("f2").eps if dtype == "f2" else 2.0**-7
    text = str(cinductor.explain(fn, *given).source)
    if not is_right or not error < 16 * scale or (want.size and expected not in text):
        return f"fail {name} {np.dtype(dtype)} {sizes} {kind}: {got.dtype}{got.shape} {error} {np.isnan(got).sum()} {np.isnan(want).sum()}"
    return f"ok {name} {np.dtype(dtype)} {sizes} {kind} {error:.2g}"


def main():
    narrow = ["f2"]
    try:
        import ml_dtypes

        narrow.append(ml_dtypes.bfloat16)
    except ImportError:
        pass
    cases = [(name, sizes, dtype, "") for dtype in narrow for name in FORMS for sizes in (FULL, TALL, ODD, WIDE, NONE)]
    cases += [(name, ODD, "f2", "hard") for name in ("masked", "added")]
    if len(sys.argv) > 1:
        cases = [("of_rows_and_keys", (1, 1, 192, 192, 64, 64), "f2", ""), ("shifted", ODD, "f2", ""), ("added", ODD, "f2", "hard"), ("after", (1, 1, 70, 130, 64, 128), narrow[-1], "")]
    for case in cases:
        print(run(*case), flush=True)
    print(run("of_rows_and_keys", TALL, "f2", expected="", dynamic=True), flush=True)
    for bad in ((2, 2, 70, 70, 64, 64), (1, 1, 70, 69, 64, 64)):
        q, k, v, m = arrays(bad, "f2", "")
        fn = cinductor.compile(masked, device="cuda")
        try:
            fn(*(cinductor.to_device(x) for x in (q, k, v, m[:, :-3])))
            print("fail a mask of another shape")
        except (ValueError, cinductor.Unsupported) as error:
            print("ok" if "broadcast" in str(error) else "fail", "a mask of another shape")


if __name__ == "__main__":
    main()
