"""Compares library calls that the GPU backend executes itself with NumPy; prints one line for each.

The argument "few" selects fewer dtypes, for a machine that emulates the GPU.
"""

import sys
from fractions import Fraction

import numpy as np

import cinductor

DTYPES = ("?", "i1", "u2", "i4", "u8", "i8", "f2", "f4", "f8")
SHAPES = ((1,), (7,), (257,), (600,), (4096,), (5, 33), (3, 1, 4), (2, 4097), (9000,), (0,), (3, 0))


def array(shape, dtype, seed=0):
    """Many equal elements, zeros of both signs, infinities and NaN."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind in "?b":
        return random.random(shape) > 0.5
    if kind in "iu":
        top = np.iinfo(dtype).max
        return np.where(
            random.random(shape) < 0.5,
            random.integers(0, 9, shape),
            random.integers(0, top, shape, dtype),
        ).astype(dtype)
    x = random.standard_normal(shape).round(1).astype(dtype)
    flat = x.reshape(-1)
    if flat.size > 20:
        flat[::7], flat[3], flat[5], flat[11], flat[12] = 0, -0.0, np.inf, -np.inf, np.nan
    return x


def size_of(values):
    """The scale for the error of a sum: its largest magnitude, at least 1."""
    finite = np.abs(values[np.isfinite(values)])
    return max(1.0, float(finite.max(initial=0)))


def check(name, fn, *arrays, near=0.0):
    with np.errstate(all="ignore"):
        want = fn(*arrays)
    compiled = cinductor.compile(fn, fullgraph=True)
    got = compiled(*[cinductor.to_device(a) for a in arrays]).numpy()
    here = [f"{a.dtype}{list(a.shape)}" for a in arrays]
    ok = got.shape == want.shape and got.dtype == want.dtype
    ok = ok and (
        np.allclose(got, want, near, near * size_of(want), equal_nan=True)
        if near
        else np.array_equal(got, want, equal_nan=want.dtype.kind == "f")
    )
    print(
        "ok" if ok else "fail",
        name,
        *here,
        "" if ok else f"{got.ravel()[:8]} instead of {want.ravel()[:8]}",
        flush=True,
    )


def of_one(dtype, shapes):
    for shape in shapes:
        x = array(shape, dtype)
        for axis in range(x.ndim):
            check("sort", lambda x, axis=axis: np.sort(x, axis=axis), x)
            check("argsort", lambda x, axis=axis: np.argsort(x, axis=axis, kind="stable"), x)
        if x.size:
            check("sort between kernels", lambda x: np.sort(x + x, axis=0)[::-1] * x, x)
        if x.size and dtype not in "?f2":
            check("median", lambda x: np.median(x, axis=-1), x, near=1e-6)
            check("percentile", lambda x: np.percentile(x, 30.0, axis=0), x, near=1e-4)


def of_searches(dtype):
    a = np.sort(array((300,), dtype))
    for side in ("left", "right"):
        check(
            "searchsorted",
            lambda a, v, side=side: np.searchsorted(a, v, side),
            a,
            array((11, 7), dtype, 1),
        )


def of_two(dtype):
    x, y = array((40,), dtype), array((7,), dtype, 1)
    x = np.where(np.isfinite(x), x, 1).astype(dtype)
    for mode in ("full", "same", "valid"):
        for a, b in ((x, y), (y, x), (x, x[:6])):
            check(
                f"convolve {mode}", lambda a, b, mode=mode: np.convolve(a, b, mode), a, b, near=1e-5
            )
            check(
                f"correlate {mode}",
                lambda a, b, mode=mode: np.correlate(a, b, mode),
                a,
                b,
                near=1e-5,
            )


def stored(x, i, v):
    y = x * 2
    y[i] = v
    return y


def stored_in_rows(x, i, v):
    y = x.copy()
    y[1:, i % 5] = v[: i.size]
    return y


def stored_in_places(x, i, v):
    y = x + 0
    y[i % 7, i[::-1] % 5] = v[: i.size]
    return y


def counted(x, i, v):
    return np.bincount(i, weights=v, minlength=20)


def at(ufunc):
    def fn(x, i, v):
        y = x.copy()
        ufunc.at(y, i, v)
        return y

    return fn


def of_stores(dtype, sizes):
    """Several values for most elements, one for some, none for others; more values than elements, too."""
    random = np.random.default_rng(3)
    for size, n in sizes:
        x, i, v = array((size,), dtype), random.integers(0, size // 2, n), array((n,), dtype, 1)
        v = np.where(np.isfinite(v), v, 1).astype(dtype)
        check("y[i] = v", stored, x, i, v)
        if dtype[0] in "iu":  # operations for which the GPU backend has its own kernel
            bits = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
            for ufunc in (np.add, np.subtract, np.multiply, np.maximum, np.minimum, *bits):
                check(f"{ufunc.__name__}.at", at(ufunc), x, i, v)
        if dtype in ("f4", "f8"):
            for ufunc in (np.add, np.subtract, np.multiply, np.maximum, np.minimum):
                w = (1 + v / 1024).astype(dtype) if ufunc is np.multiply else v
                check(
                    f"{ufunc.__name__}.at",
                    at(ufunc),
                    np.where(np.isfinite(x), x, 0).astype(dtype),
                    i,
                    w,
                    near=1e-4,
                )
            check("bincount", counted, x, i, v, near=1e-4)
    x, v = array((7, 5), dtype), array((300,), dtype, 1)
    for fn in (stored_in_rows, stored_in_places):
        check(fn.__name__, fn, x, random.integers(0, 500, 300), v)


def of_exact_sums(few):
    """Floats added at indices by accumulators: the nearest float of the exact sum, whatever the magnitudes are."""
    random = np.random.default_rng(6)
    for dtype, size, n in (("f4", 300, 1500), *(() if few else (("f4", 9000, 60000), ("f8", 6200, 101700)))):
        low = np.finfo(dtype).minexp
        values = {
            "near": random.standard_normal(n),
            "far": np.ldexp(random.standard_normal(n), random.integers(low + 10, -low - 3, n)),
            "subnormal": np.ldexp(random.standard_normal(n), low - 10),
            "cancelling": np.repeat(random.standard_normal(n // 2), 2) * np.tile([1, -1], n // 2),
        }
        i = np.repeat(random.integers(0, size, n // 2), 2)
        for name, v in values.items():
            v, x = v.astype(dtype), (random.random(size) * (name != "subnormal")).astype(dtype)
            parts = [[float(one)] for one in x]
            for k, one in zip(i, v, strict=True):
                parts[k].append(float(one))
            want = np.array([nearest(np.dtype(dtype), part) for part in parts])
            got = cinductor.compile(at(np.add), fullgraph=True)(*map(cinductor.to_device, (x, i, v))).numpy()
            print("ok" if np.array_equal(got, want) else "fail", "exact sums", dtype, size, n, name, int((got != want).sum()), flush=True)
        x = np.resize(np.array([1, -0.0, np.inf, -np.inf, np.nan], dtype), size)
        v = np.resize(np.array([np.inf, 1, 2, np.inf, 0, -np.inf, np.nan], dtype), n)
        check("sums with limits", at(np.add), x, i, v)
        check("sums without points", at(np.add), x, i * 0 + 1, np.zeros_like(v))


def of_launches_of_sums():
    """Operands in memory are not copied, one kernel checks and numbers, and the host waits for the check after all launches."""
    given = [cinductor.to_device(a) for a in (np.zeros(300, "f4"), np.arange(1500) % 300, np.ones(1500, "f4"))]
    wrapper = cinductor.explain(cinductor.compile(at(np.add), fullgraph=True), *given).wrapper
    ok = "k0(" in wrapper and "k1(" not in wrapper and wrapper.index("mark(") < wrapper.index("scatter_points") < wrapper.index("wait(")
    print("ok" if ok else "fail", "launches of sums", "" if ok else wrapper, flush=True)


def nearest(dtype, values):
    """The nearest float of an exact sum, of two equally near ones the even one."""
    exact = sum(map(Fraction, values))
    try:
        double = float(exact)
    except OverflowError:
        return dtype.type(np.inf if exact > 0 else -np.inf)
    with np.errstate(over="ignore"):
        near = dtype.type(double)
    if not np.isfinite(near):
        return near
    others = [x for x in (np.nextafter(near, dtype.type(-np.inf)), near, np.nextafter(near, dtype.type(np.inf))) if np.isfinite(x)]
    return min(others, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(f"u{dtype.itemsize}")) % 2))


EINSUMS = (
    ("ij,jk->ik", (5, 7), (7, 3)),
    ("ij,kj->ki", (5, 7), (3, 7)),
    ("ijk,kl->ijl", (4, 5, 6), (6, 3)),
    ("bij,bjk->bik", (3, 4, 5), (3, 5, 2)),
    ("abij,abjk->abik", (2, 3, 4, 5), (2, 3, 5, 2)),
    ("iaj,jb->bai", (4, 3, 5), (5, 2)),
    ("i,j->ij", (4,), (5,)),
    ("ij,j->i", (4, 5), (5,)),
    ("bi,bi->b", (4, 5), (4, 5)),
    ("ikj,ljk->il", (4, 3, 5), (2, 5, 3)),  # two letters are summed: NumPy computes it on the host
    ("ij,jk->ik", (0, 7), (7, 3)),
    ("ij,jk->ik", (4, 0), (0, 3)),
)


def of_sums():
    for text, a, b in EINSUMS:
        x, y = (np.random.default_rng(k).random(s) for k, s in enumerate((a, b)))
        check(f"einsum {text}", lambda x, y, text=text: np.einsum(text, x, y), x, y, near=1e-12)


def of_transforms(dtype, shapes):
    for shape in shapes:
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        z = (x + 1j * x[..., ::-1]).astype(np.result_type(dtype, np.complex64))
        for axis in range(x.ndim):
            for norm in ("backward", "ortho", "forward"):
                near = 1e-4 if dtype == "f4" else 1e-10
                for name, a in (("fft", x), ("fft", z), ("ifft", z), ("rfft", x), ("irfft", z)):
                    f = getattr(np.fft, name)
                    check(f"{name} {norm}", lambda a, f=f, axis=axis, norm=norm: f(a, axis=axis, norm=norm), a, near=near)
        for norm in ("backward", "ortho") if x.ndim > 1 else ():
            for name, a in (("fft2", x), ("fftn", z), ("ifft2", z), ("rfft2", x), ("rfftn", x[::-1]), ("irfft2", z), ("irfftn", z)):
                f = getattr(np.fft, name)
                check(f"{name} {norm}", lambda a, f=f, norm=norm: f(a, norm=norm), a, near=near)
            check(f"fftn of two axes {norm}", lambda a, norm=norm: np.fft.fftn(a, axes=(-1, 0), norm=norm), z, near=near)


def of_transforms_on_the_device():
    """Transforms along several axes are calls of the device, so nothing is copied to the host."""
    z = (np.random.default_rng(0).random((3, 4, 6)) + 0j).astype("c8")
    for name in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn"):
        wrapper = cinductor.explain(cinductor.compile(getattr(np.fft, name), fullgraph=True), cinductor.to_device(z)).wrapper
        print("fail" if "copy" in wrapper or "host" in wrapper else "ok", "on the device", name, flush=True)


def of_powers():
    """Exponents that are halves of whole numbers, and hypot: the nearest float of all operands, or infinity or NaN."""
    bits = np.random.default_rng(0).integers(0, 1 << 32, 3000, dtype=np.uint32).view(np.float32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 3.4e38, -3.4e38, 1, -1, 2], np.float32)
    x = np.concatenate([bits, special, np.random.default_rng(1).random(1000, dtype=np.float32) * 4])
    functions = {f"power {b}": lambda x, b=b: np.power(x, b) for b in (-8.0, -7.5, -3.0, -2.0, -1.5, -0.5, 1.5, 3.0, 7.5, 8.0, 8.5)}
    functions["hypot"] = lambda x: np.hypot(x, x[::-1])
    for name, fn in functions.items():
        with np.errstate(all="ignore"):
            want = fn(x.astype(np.longdouble)).astype(np.float32)
        got = cinductor.compile(fn, fullgraph=True)(cinductor.to_device(x)).numpy()
        same = np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))
        print("ok" if same else "fail", name, flush=True)


def of_half_quotients(few):
    """Quotients of halves, which are exact: of all kinds of bits, and of numbers whose quotient is near the middle of two."""
    bits = np.random.default_rng(2).integers(0, 1 << 16, 300 if few else 20000, dtype=np.uint16)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 6.1e-5, 65504, -65504, 1, -1, 3], np.float16)
    x = np.concatenate([bits.view(np.float16), special, np.arange(1024, 1124).astype(np.float16)])
    y = x[:: 1 if few else 20]
    with np.errstate(all="ignore"):
        want = x[:, None] / y
    got = cinductor.compile(lambda x, y: x[:, None] / y, fullgraph=True)(*map(cinductor.to_device, (x, y))).numpy()
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want))
    print("ok" if same.all() else "fail", "quotients of halves", int((~same).sum()), flush=True)


def of_early_checks():
    """Indices that are checked by a launch before all others: the right result, or NumPy's exception and nothing else."""

    def fn(x, i, j):
        y = np.exp(x - x.max(axis=1, keepdims=True))
        return y[i, j] + x.sum()

    compiled = cinductor.compile(fn, fullgraph=True, options={"choices": "check_bytes=100"})
    x, i, j = array((40, 30), "f4"), np.array([3, -1, 39, 0]), np.array([29, 0, -30, 7])
    x[~np.isfinite(x)] = 1
    given = [cinductor.to_device(a) for a in (x, i, j)]
    lines = cinductor.explain(compiled, *given).wrapper.splitlines()
    first = next(k for k, line in enumerate(lines) if "mark(" in line)
    early = first < next(k for k, line in enumerate(lines) if "wait(" in line) - 2
    right = np.allclose(compiled(*given).numpy(), fn(x, i, j), 1e-5)
    try:
        said = str(compiled(given[0], cinductor.to_device(i + 1), given[2]))
    except IndexError as error:
        said = str(error)
    print("ok" if early and right and "index 40 is out of bounds" in said else "fail", "early checks", early, right, said, flush=True)


def of_vectors():
    """Products with a vector, from either side, of stacks, of strided matrices and without elements."""
    random = np.random.default_rng(0)
    for dtype in ("f4", "f8", "i4", "f2"):
        near = 1e-2 if dtype == "f2" else 1e-5
        a, v, w = ((random.random(shape) * 9).astype(dtype) for shape in ((70, 90), (90,), (70,)))
        for name, fn, arrays in (
            ("a @ v", lambda a, v: a @ v, (a, v)),
            ("w @ a", lambda a, w: w @ a, (a, w)),
            ("a.T @ w", lambda a, w: a.T @ w, (a, w)),
            ("v @ v", lambda v: v @ v, (v,)),
            ("a[:, ::3] @ v[:30]", lambda a, v: a[:, ::3] @ v[:30], (a, v)),
            ("stack @ v", lambda a, v: a.reshape(7, 10, 90) @ v, (a, v)),
            ("v @ stack", lambda a, v: v[:10] @ a.reshape(7, 10, 90), (a, v)),
            ("nothing @ v", lambda a, v: a[:, :0] @ v[:0], (a, v)),
        ):
            check(name, fn, *arrays, near=near)


def reconstructed(name):
    """Return a function of a matrix whose results do not depend on the signs of vectors, which may differ from NumPy's."""
    t = lambda x: np.swapaxes(x, -1, -2)  # noqa: E731
    if name == "svd":
        return lambda a: (lambda u, s, v: (s, (u[..., : s.shape[-1]] * s[..., None, :]) @ v[..., : s.shape[-1], :], t(u).conj() @ u, v @ t(v).conj()))(
            *np.linalg.svd(a)
        )
    if name == "svd reduced":
        return lambda a: (lambda u, s, v: (s, (u * s[..., None, :]) @ v))(*np.linalg.svd(a, full_matrices=False))
    if name == "svdvals":
        return lambda a: np.linalg.svd(a, compute_uv=False)
    if name == "qr":
        return lambda a: (lambda q, r: (q @ r, r, t(q).conj() @ q))(*np.linalg.qr(a))
    if name == "qr complete":
        return lambda a: (lambda q, r: (q @ r, t(q).conj() @ q))(*np.linalg.qr(a, mode="complete"))
    return lambda a: np.linalg.qr(a, mode="r")


def of_square(a, b, v):
    """Functions of square matrices a, and what each is given."""
    h = a + np.swapaxes(a.conj(), -1, -2)
    positive = h + np.eye(a.shape[-1]).astype(a.dtype) * 4 * a.shape[-1]
    for upper in "LU":
        yield f"eigvalsh {upper}", lambda a, upper=upper: np.linalg.eigvalsh(a, upper), (h,)
        yield f"eigh {upper}", lambda a, upper=upper: (lambda w, v: (w, (v * w[..., None, :]) @ np.swapaxes(v, -1, -2).conj()))(
            *np.linalg.eigh(a, upper)
        ), (h,)
    yield "cholesky", np.linalg.cholesky, (positive,)
    yield "inv", np.linalg.inv, (a,)
    yield "inv of a view", lambda a: np.linalg.inv(a[..., ::-1, :]) * 2, (a,)
    yield "det", np.linalg.det, (a,)
    yield "slogdet", lambda a: tuple(np.linalg.slogdet(a)), (a,)
    yield "solve", np.linalg.solve, (a, b)
    yield "solve a vector", lambda a, v: np.linalg.solve(a, v) + 1, (a, v)
    yield "solve, repeated", lambda a, b: np.linalg.solve(a[..., None, :, :], b[..., None, :, :][..., :1, :, :] * np.arange(1, 3)[:, None, None].astype(b.dtype)), (a, b)


def check_parts(name, fn, near, *arrays):
    """Like check, for several results."""
    want = fn(*arrays)
    want = want if isinstance(want, tuple) else (want,)
    got = cinductor.compile(fn, fullgraph=True)(*[cinductor.to_device(x) for x in arrays])
    got = [x.numpy() if hasattr(x, "numpy") else np.asarray(x) for x in (got if isinstance(got, tuple) else (got,))]
    ok = len(got) == len(want) and all(
        g.shape == w.shape and g.dtype == w.dtype and np.allclose(g, w, near, near * size_of(np.abs(w))) for g, w in zip(got, want, strict=True)
    )
    print("ok" if ok else "fail", name, *[f"{x.dtype}{list(x.shape)}" for x in arrays], "" if ok else f"{got} instead of {want}", flush=True)


def of_matrices(dtype, few):
    """numpy.linalg, of one matrix and of stacks; small ones and others go different ways."""
    random = np.random.default_rng(5)

    def make(*shape):
        x = random.standard_normal(shape)
        return (x + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)

    near = 2e-3 if dtype in ("f4", "c8") else 1e-9
    for shape in ((1, 1), (3, 3), (2, 3, 5, 5), *(() if few else ((70, 70),)), *(((2, 70, 70), (300, 300)) if not few else ())):
        n = shape[-1]
        a = make(*shape) + np.eye(n).astype(dtype) * n
        for name, fn, arrays in of_square(a, make(*shape[:-1], 3), make(n)):
            check_parts(name, fn, near, *arrays)
    for shape in ((4, 4), (7, 3), (3, 7), (2, 5, 4), (2, 4, 5), *(() if few else ((90, 40), (40, 90)))):
        for name in ("svd", "svd reduced", "svdvals", "qr", "qr complete", "qr r"):
            check_parts(name, reconstructed(name), near, make(*shape))


def of_singular_matrices():
    """NumPy's own exceptions, with its words; and a singular matrix has a determinant."""
    for n in (3, 70):
        ones = cinductor.to_device(np.ones((n, n)))
        for name, fn in (
            ("inv", np.linalg.inv),
            ("solve", lambda a: np.linalg.solve(a, a[0])),
            ("cholesky", lambda a: np.linalg.cholesky(-a)),
        ):
            said = []
            for x in (np.ones((n, n)), ones):
                try:
                    said.append(repr(cinductor.compile(lambda a, fn=fn: fn(a) + 1)(x)))
                except np.linalg.LinAlgError as error:
                    said.append(str(error))
            print("ok" if said[0] == said[1] and "matrix" in said[0].lower() else "fail", "singular", name, n, *said, flush=True)
        check_parts("singular det", lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)), 0, np.ones((n, n)) * 0)
    check("no matrix", lambda a: np.linalg.inv(a), np.ones((0, 3, 3)))


def of_constants():
    """Arrays that a function makes from constants are copied to the GPU once."""
    x, i = array((40,), "f8"), np.arange(40) % 3
    check(
        "polyval", lambda x: np.polyval([1.0, 2.0, 3.0, 4.0, 5.0], x), np.nan_to_num(x), near=1e-12
    )
    check("table", lambda i: np.array([[1.0, 5.0, 2.0], [4.0, 0.0, 9.0]])[1][i] + 1, i)


def main():
    few = sys.argv[1:] == ["few"]
    for dtype in ("f4",) if few else DTYPES:
        of_one(dtype, ((5, 33), (2, 600), (4100,)) if few else SHAPES)
    if few:
        of_one("f8", ((2, 600),))
    for dtype in ("f4", "i8") if few else DTYPES:
        of_searches(dtype)
    for dtype in () if few else ("f4", "f8", "i4"):
        of_two(dtype)
    for dtype in ("f4", "i2") if few else ("f4", "f8", "f2", "i1", "u2", "i4", "u8", "?"):
        of_stores(dtype, ((40, 300), (40, 700)) if few else ((40, 300), (40, 5000), (9000, 400)))
    of_exact_sums(few)
    of_launches_of_sums()
    of_sums()
    of_powers()
    of_half_quotients(few)
    of_early_checks()
    of_vectors()
    of_constants()
    for dtype in ("f8", "c8") if few else ("f4", "f8", "c8", "c16"):
        of_matrices(dtype, few)
    of_singular_matrices()
    for dtype in ("f8",) if few else ("f4", "f8"):
        of_transforms(dtype, ((6, 5), (3, 4, 2)) if few else ((9,), (6, 5), (3, 1024, 2), (70000, 4)))
    of_transforms_on_the_device()


if __name__ == "__main__":
    main()
