"""Runs user kernels on GPU arrays, directly and in functions compiled for the GPU; prints one line for each."""

import numpy as np

import cinductor

rows = cinductor.kernel(
    "double s = 0; for (int64_t j = 0; j < m; j++) s += x[i * m + j] * w[j]; out[i] = s;",
    reads="x: f64[n, m], w: f64[m]",
    writes="out: f64[n]",
    grid="i: n",
)
turned = cinductor.kernel(
    "out[j * n + i] = twice(x[i * m + j]); count[j * n + i] += i;",
    reads="x: f32[n, m]",
    writes="out: f32[m, n], count: i32[m, n]",
    grid="i: n, j: m",
    preamble="#ifdef __CUDACC__\n__device__\n#endif\nstatic float twice(float x) { return 2 * x; }",
)


def say(name, got, want):
    got = [a.numpy() if isinstance(a, cinductor.Array) else a for a in got]
    same = all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    print("ok" if same else "bad", name)


x, w = np.arange(1200.0).reshape(300, 4), np.array([1.0, -2.0, 0.5, 3.0])
on_gpu = cinductor.to_device(x), cinductor.to_device(w)
say("new", [rows(*on_gpu)], [rows(x, w)])
out = cinductor.to_device(np.zeros(300))
assert rows(*on_gpu, out=out) is out
say("written", [out], [rows(x, w)])
y = np.arange(12, dtype="f4").reshape(3, 4)
say("two indices", turned(cinductor.to_device(y)), turned(y))
say("empty", [rows(cinductor.to_device(x[:0]), on_gpu[1])], [rows(x[:0], w)])


def mixed(x, w):
    return rows(x * 2, w) + 1


compiled = cinductor.compile(mixed, device="cuda", options={"offload": "always"})
say("compiled", [compiled(*on_gpu)], [mixed(x, w)])
say("compiled, of the host", [compiled(x, w)], [mixed(x, w)])


def through_views(x, w):
    return rows(x[3:, ::-1] * 1.0, w[::-1]), rows(x.T[:4, :4].T, w)


def two_dtypes(y, count):
    a, b = turned(y, count=count)
    return a + 1, b, count


def repeated(x, w):
    for _ in range(3):
        x = rows(x * 2, w)[:, None] + x
    return x


count = np.arange(12, dtype="i4").reshape(4, 3)
for fn, args in ((through_views, (x, w)), (two_dtypes, (y, count)), (repeated, (x, w))):
    compiled = cinductor.compile(fn, device="cuda", options={"offload": "always"})
    want = fn(*(a.copy() for a in args))
    got = compiled(*(cinductor.to_device(a) for a in args))
    say(fn.__name__, got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want])
    program = cinductor.explain(compiled, *(cinductor.to_device(a) for a in args))
    stays = "kernel_" in program.wrapper and "to_host" not in program.wrapper
    print("ok" if stays else f"bad {program.wrapper}", "without a copy to the host")
for name, call, why in (
    ("both kinds", lambda: rows(on_gpu[0], w), "arrays of the host together with"),
    ("overlapping", lambda: rows(on_gpu[0], on_gpu[0][0], on_gpu[0].ravel()[:300]), "a written array may share memory with no other"),
    ("steps", lambda: rows(on_gpu[0].T, out), "arrays must be contiguous"),
    ("sizes", lambda: rows(on_gpu[0], out), "m of w is 300"),
    ("no kernel", lambda: cinductor.kernel("out[i] = ;", reads="", writes="out: f64[n]", grid="i: n")(out), "kernel"),
):
    try:
        call()
    except (TypeError, ValueError, cinductor.CompileError) as error:
        print("ok" if why in str(error) else f"bad {error}", name)
    else:
        print("bad: nothing raised", name)
