"""Tests every element-wise ufunc and every reduction: loop dtypes × layouts × special values × ways to run, against
NumPy.

The interpreter runs each dtype in each layout. Other ways run each dtype contiguous and in one of three of the
other layouts, a different one for each ufunc, because addressing and computing are independent; CINDUCTOR_FUZZ
runs all. There is one compile per operation and way: a function over a list of operands returns a list of results.
Operations that IEEE 754 rounds exactly must have NumPy's bits (a NaN equals any NaN). Transcendental functions
must be within 4 ULP of a long-double reference.
"""

import os
import warnings

import numpy as np
import pytest

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 100.25, np.nan, np.inf, -np.inf, 7.0, -0.75]
INTS = [0, 1, -1, 2, 3, -7, 100, 127, -128, 5, 8, 64]
TRANSCENDENTAL = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "cbrt", "power", "float_power", "arctan2", "hypot", "logaddexp", "logaddexp2",
}
# Results whose sign of zero is not compared (except for halves): NumPy's vector and scalar loops differ within one
# array, and its nextafter of halves differs between versions.
ZEROS_MAY_DIFFER = {"maximum", "minimum", "fmax", "fmin", "nextafter"}
ELEMENTWISE = sorted(
    {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None}.values(), key=lambda f: f.__name__
)
REAL = "?bhilBHILefd"
COMPLEX = "FD"


def special_values(char, count=77):
    """Values of a dtype with its corner cases, in a fixed order: more than one vector of 64 bytes."""
    dtype = np.dtype(char)
    if dtype.kind == "b":
        values = np.array([True, False, True])
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = np.array([v for v in [*INTS, info.min, info.max] if info.min <= v <= info.max], dtype)
    elif dtype.kind == "c":
        parts = np.array([0.0, 1.0, -1.5, 0.25, 3.0], np.float64)
        values = (parts[:, None] + 1j * parts[None, :]).ravel().astype(dtype)
    else:
        info = np.finfo(dtype)
        values = np.array([*FLOATS, info.max, info.tiny, info.smallest_subnormal, -info.max], np.float64).astype(dtype)
    return np.resize(values, count)


def pairs(chars):
    """Operands of one loop, in each layout that could be handled wrongly on its own."""
    columns = [special_values(c) for c in chars]
    shifted = [np.roll(v, 5 * k) for k, v in enumerate(columns)]
    grid = [np.resize(np.roll(v, 3 * k), (5, 7)) for k, v in enumerate(columns)]
    yield shifted
    yield [v[:1] for v in shifted]
    yield [v[:0] for v in shifted]
    yield [v[::2] for v in shifted]
    yield [v[::-1] for v in shifted]
    yield [g.T for g in grid]
    yield [g[:, 1:6:2] for g in grid]
    yield [grid[0], *(g[0] for g in grid[1:])]
    yield [grid[0][:, :1], *(g[:1] for g in grid[1:])]
    yield [shifted[0], *(np.array(v[3]) for v in shifted[1:])]
    yield [np.array(v[2]) for v in shifted]


def loops(ufunc):
    """The input characters of the loops whose dtypes cinductor supports, each once."""
    seen = []
    for types in ufunc.types:
        chars = types.split("->")[0]
        if all(c in REAL + COMPLEX for c in chars) and chars not in seen:
            seen.append(chars)
    return seen


def quiet(call, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call(*args)


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def assert_exact(got, want, what, zeros_may_differ=False):
    assert type(got) is type(want), f"{what}: {type(got)} for {type(want)}"
    assert got.dtype == want.dtype, f"{what}: {got.dtype} for {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {got.shape} for {want.shape}"
    if isinstance(want, np.ndarray) and want.size:
        assert got.strides == want.strides, f"{what}: strides {got.strides} for {want.strides}"
    if got.dtype.kind in "fc":
        same = (got == want) | ((got != got) & (want != want))
        if got.dtype.kind == "f":
            same &= (np.signbit(got) == np.signbit(want)) | (want != want) | (zeros_may_differ & (want == 0))
        assert np.all(same), f"{what}: {np.asarray(got)[~np.asarray(same)][:4]} for {np.asarray(want)[~np.asarray(same)][:4]}"
    else:
        assert np.array_equal(got, want), f"{what}: {got} for {want}"


def assert_within_ulp(got, want, reference, limit, what):
    """got is within limit ULP of the long-double reference, and special values are NumPy's."""
    assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape, what
    got, want, reference = (np.atleast_1d(np.asarray(v)) for v in (got, want, reference))
    special = ~np.isfinite(want)
    assert np.array_equal(got[special], want[special], equal_nan=True), f"{what}: {got[special][:4]} for {want[special][:4]}"
    rest = ~special & np.isfinite(got)
    assert np.all(np.isfinite(got[~special]) | (np.abs(reference[~special]) > 0.9 * float(np.finfo(want.dtype).max))), what
    spacing = quiet(np.spacing, np.abs(want[rest])).astype(np.longdouble)
    error = np.abs(got[rest].astype(np.longdouble) - reference[rest]) / spacing
    assert error.size == 0 or error.max() <= limit, f"{what}: {float(error.max())} ULP"


def operands_of(ufunc, every=1):
    """Operands for each loop: always the contiguous ones, and every `every`-th of the other layouts. The choice
    depends on the loop and on the ufunc's position among those of its loops, so each dtype occurs in each layout for some ufunc.
    """
    of_these = [f for f in ELEMENTWISE if loops(f)[:1] == loops(ufunc)[:1]]
    return [
        (chars, group)
        for k, chars in enumerate(loops(ufunc))
        for layout, group in enumerate(pairs(chars))
        if layout == 0 or (layout + k + of_these.index(ufunc)) % every == 0
    ]


def legal(ufunc, group):
    """True if NumPy returns values (not, for example, an exception for integers to negative powers)."""
    if ufunc is np.reciprocal and group[0].dtype.kind in "iu" and not np.all(group[0]):
        return False  # 1/0 as an integer is a cast out of range
    try:
        quiet(ufunc, *group)
    except (ValueError, TypeError):
        return False
    return True


def test_every_dtype_meets_every_layout():
    """As the only operand and as one of two."""
    for nin, dtypes in ((1, REAL + COMPLEX), (2, REAL + COMPLEX)):
        met = set()
        for ufunc in (f for f in ELEMENTWISE if f.nin == nin):
            for chars, group in operands_of(ufunc, 3):
                met.add((chars[-1], str([(a.shape, [s // a.itemsize for s in a.strides]) for a in group])))
        layouts = {layout for _, layout in met}
        assert len(layouts) >= 10 and all((c, layout) in met for c in dtypes for layout in layouts)


@pytest.mark.parametrize("ufunc", ELEMENTWISE, ids=lambda f: f.__name__)
def test_ufunc(ufunc, way):
    every = 3 if way.name != "interp" and "CINDUCTOR_FUZZ" not in os.environ else 1
    groups = [(chars, group) for chars, group in operands_of(ufunc, every) if legal(ufunc, group)]

    def apply(groups):
        return [ufunc(*group) for group in groups]

    # Containers of more than 256 leaves run in NumPy, so the groups are passed in several calls.
    size = 100 // max(1, ufunc.nin)
    for start in range(0, len(groups), size):
        part = groups[start : start + size]
        operands = [group for _, group in part]
        want = quiet(apply, operands)
        # Only cinductor's own functions, and compositions of them, may differ in bits.
        for numerics in ("close",) if way.is_device else ("exact", "close") if has_own_bits(ufunc) else ("exact",):
            for version in way.versions(apply):
                got = quiet(way.compile(version, numerics=numerics), operands)
                for (chars, group), g, w in zip(part, got, want, strict=True):
                    compare(ufunc, chars, group, g, w, numerics == "exact")


def has_own_bits(ufunc):
    return ufunc.__name__ in TRANSCENDENTAL or any(c in t for t in ufunc.types for c in COMPLEX)


def compare(ufunc, chars, group, got, want, is_exact):
    what = f"{ufunc.__name__} {chars} {[np.shape(a) for a in group]}"
    for g, w in zip(as_tuple(got), as_tuple(want), strict=True):
        if is_exact:
            assert_exact(g, w, what, ufunc is np.nextafter)
        elif ufunc.__name__.startswith("logaddexp") or (ufunc is np.absolute and chars in COMPLEX):
            # Compositions: the ULPs of their parts, which cancel near a result of 0.
            parts = max(float(np.max(np.abs(np.where(np.isfinite(a), a, 0)), initial=0)) for a in group)
            tolerance = 8 * float(np.finfo(w.dtype).eps)
            assert type(g) is type(w) and g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance * min(parts, 128), err_msg=what)
        elif ufunc.__name__ in TRANSCENDENTAL and w.dtype.kind == "f":
            reference = quiet(ufunc, *(np.asarray(a, np.longdouble) for a in group))
            assert_within_ulp(g, w, reference, 1.001 if w.dtype == np.float16 else 4, what)
        elif w.dtype.kind == "c":
            np.testing.assert_allclose(g, w, rtol=1e-5 if w.dtype == np.complex64 else 1e-13, err_msg=what)
        else:
            assert_exact(g, w, what, ufunc.__name__ in ZEROS_MAY_DIFFER and (g.dtype != np.float16 or ufunc is np.nextafter))


REDUCTIONS = ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "std", "var", "cumsum", "cumprod"]


def reduction_inputs(char):
    values = special_values(char, 60)
    if np.dtype(char).kind == "f":
        yield np.nan_to_num(np.clip(values.astype(np.float64), -50, 50)).astype(char).reshape(5, 12)
        yield np.linspace(-1, 2, 7 * 300).astype(char).reshape(7, 300)
    yield values.reshape(3, 4, 5)
    yield values.reshape(12, 5).T
    yield values[::-2]
    yield values[:1]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name, way):
    function = getattr(np, name)
    cases = []
    for char in REAL + (COMPLEX if name in ("sum", "prod", "any", "all", "cumsum", "mean") else ""):
        for array in reduction_inputs(char):
            for axis in (None, *range(-1, array.ndim)):
                cases.append((array, {"axis": axis}))
                if not name.startswith("cum"):
                    cases.append((array, {"axis": axis, "keepdims": True}))

    for start in range(0, len(cases), 120):
        part = cases[start : start + 120]
        keywords = [k for _, k in part]

        def apply(arrays, keywords=keywords):
            return [function(a, **k) for a, k in zip(arrays, keywords, strict=True)]

        arrays = [a for a, _ in part]
        want = quiet(apply, arrays)
        for version in way.versions(apply):
            got = quiet(way.compile(version, numerics="close" if way.is_device else "exact"), arrays)
            for a, k, g, w in zip(arrays, keywords, got, want, strict=True):
                compare_reduction(name, a, k, g, w, way.is_device)


def compare_reduction(name, array, keywords, got, want, is_device):
    """A device adds and multiplies in its own order, so its error grows with the number of elements."""
    what = f"{name} {array.dtype} {array.shape} {keywords}"
    assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape, what
    if is_device and got.dtype.kind in "fc":
        error = 4 * max(array.size, 16) * float(np.finfo(got.dtype).eps)
        largest = float(np.max(np.abs(array), where=np.isfinite(array), initial=0))
        np.testing.assert_allclose(got, want, error, error * min(largest, 1e30), err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)
