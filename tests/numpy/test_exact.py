"""Tests numerics="exact": results have NumPy's bits, also those of elementary functions."""

import ast
import copy
import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import programs
import pytest
from stencils import with_stencils
from test_orders import assert_same_bits

import cinductor
from cinductor import _core

PROGRAMS = programs.load()
UFUNCS = sorted(
    {u.__name__: u for u in vars(np).values() if type(u) is np.ufunc and not u.signature}.items()
)
SPECIAL = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, 2, 1e-30, 1e30, 3.7, -2.5, 8, -7, 4.5]
pytestmark = pytest.mark.filterwarnings("ignore")


def arrays_of(value):
    """The arrays of floats in results and arguments."""
    if isinstance(value, tuple | list):
        return [a for v in value for a in arrays_of(v)]
    if isinstance(value, dict):
        return arrays_of(list(value.values()))
    is_number = isinstance(value, np.ndarray | np.generic | float | complex)
    return [value] if is_number and np.asarray(value).dtype.kind in "fc" else []


def compiled(function):
    return cinductor.compile(function, backend="interp", options={"numerics": "exact"})


def some(rng, dtype, n=37):
    if dtype in "bhilBHIL":
        return rng.integers(0 if dtype.isupper() else -9, 12, n).astype(dtype)
    x = rng.standard_normal(n) * 3
    x[: len(SPECIAL)] = rng.permutation(SPECIAL)
    return (x + 1j * rng.permutation(x)).astype(dtype) if dtype in "FD" else x.astype(dtype)


@pytest.mark.parametrize("ufunc", [u for _, u in UFUNCS], ids=[name for name, _ in UFUNCS])
def test_ufuncs(ufunc):
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        for dtype in "bilLefdFD":
            args = [some(rng, dtype) for _ in range(ufunc.nin)]
            for step in (1, 2, -1):
                given = [a[::step] for a in args]
                try:
                    want = ufunc(*given)
                except (TypeError, ValueError):
                    break
                got = compiled(lambda *args: ufunc(*args))(*given)
                for a, b in zip(np.atleast_2d(got), np.atleast_2d(want), strict=True):
                    assert_same_bits(a, b)


OF_A_HALF = [
    getattr(np, name)
    for name in """exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh
    arcsinh arccosh arctanh cbrt""".split()
]


def of_a_half(x):
    return [f(x) for f in OF_A_HALF]


WAYS = """
import sys
import numpy as np
import cinductor
from cinductor import _core
for name, char, *proof in map(str.split, sys.argv[1:]):
    _core.note_proof(name, char, int(proof[0]), proof[1] == "equal")
x = np.linspace(-3, 3, 1000, dtype="f4")
assert np.array_equal(cinductor.compile(np.exp)(x), np.exp(x))
print({name + char: (way, source) for name, char, way, source in _core.functions()})
"""


def test_verdicts_are_kept_for_later_processes(tmp_path):
    """A proof replaces a test: a function of which an operand differs is NumPy's loop from the next process on."""

    def ways(*proofs):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", WAYS, *proofs], capture_output=True, text=True, check=True,
            env={**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path)},
        )  # fmt: skip
        return ast.literal_eval(done.stdout)

    first = ways()
    on_vectors = [name for name, (way, _) in first.items() if way == "vectors"]
    if not {"expf", "logf"} <= set(on_vectors):
        pytest.skip("no functions on vectors on this machine")
    assert ways() == first
    assert ways("exp f 4294967296 equal", "log f 4294967296 other")["expf"] == ("vectors", first["expf"][1] + "; 2^32 operands compared")
    later = ways("exp f 4096 equal")
    assert later["expf"][1].endswith("2^32 operands compared") and later["logf"][0] in ("own", "NumPy's loop")
    assert {name: later[name] for name in on_vectors if name not in ("expf", "logf")} == {
        name: first[name] for name in on_vectors if name not in ("expf", "logf")
    }


@pytest.mark.parametrize("count", [3, 8, 17, 1 << 20])
def test_rounding_to_float16(count):
    """Halves, numbers halfway between two of them, and the floats next to these, in whole vectors and in parts."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        middle = every[:-1] / 2 + every[1:] / 2
        x = np.concatenate([every, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf)), np.array([65520, -65519.996, 1e38], "f")])
        rounded = cinductor.compile(lambda x: (x.astype(np.float16), x.astype(np.float16) * 3))
        for start in range(0, min(len(x), 40 * count), count):
            part = x[start : start + count]
            got, want = rounded(part), (part.astype(np.float16), part.astype(np.float16) * 3)
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g.view(np.uint16)[w == w], w.view(np.uint16)[w == w])
                assert np.isnan(g[w != w]).all()


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("numerics", ["numpy", "exact"])
def test_functions_of_float16(backend, numerics):
    """All operands, first by NumPy's loops and then by tables. Tables are also read with strides, positive and
    negative.
    """
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    compiled = cinductor.compile(of_a_half, backend=backend, options={"numerics": numerics})
    for x in (every, np.tile(every, 2), every, every[::3], every[::-1]):
        for got, want in zip(compiled(x), of_a_half(x), strict=True):
            assert_same_bits(got, want)
    assert not cinductor.explain(compiled, every).approximate


def squares(x):
    out = np.empty((2, len(x)))
    v = 0.3
    for k in range(len(x)):
        v = v * 0.5 + float(x[k])
        out[0, k] = v**2
        out[1, k] = x[k] ** 2
    return out


def products_of_numbers(z):
    """The ufunc itself runs NumPy's loop; operators do not."""
    out = np.empty((4, len(z)), z.dtype)
    for k in range(len(z)):
        out[0, k] = np.multiply(z[k], z[len(z) - 1 - k])
        out[1, k] = z[k] * z[len(z) - 1 - k]
        v = z[k]
        v *= z[len(z) - 1 - k]
        out[2, k] = v
        out[3, k] = np.square(z[k])
    return out


def test_squares_of_numbers_in_loops_are_the_librarys():
    """The C library's pow differs from a product once in a thousand squares."""
    x = np.random.default_rng(5).standard_normal(20000)
    assert_same_bits(cinductor.compile(squares, options={"numerics": "exact"})(x), squares(x))


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_products_of_complex_numbers(dtype):
    rng = np.random.default_rng(6)
    z = (rng.standard_normal(3000) + 1j * rng.standard_normal(3000)).astype(dtype)
    assert_same_bits(cinductor.compile(products_of_numbers)(z), products_of_numbers(z))


VECTORS = [(name, char) for name, char, way, _ in _core.functions() if way == "vectors"]


@pytest.mark.parametrize(("name", "char"), VECTORS)
def test_vectors_have_numpys_bits(name, char):
    """A sample of what `python -m cinductor doctor --prove-bits` compares, and float flags."""
    assert _core.check_function(name, char, 5, 0, 64)[0] == 0
    if char != "e":
        assert _core.check_function(name, char, 77, {"f": 131101, "d": 0x2000700D0011}[char.lower()], 64)[0] == 0
    with pytest.raises(ValueError, match="no vectors"):
        _core.check_function(name, "?", 0, 1, 1)


def test_this_machine_has_vectors():
    """Without NumPy's vector library, whose loops are as fast, they are for most functions of float32 and float64."""
    features = np._core._multiarray_umath.__cpu_features__
    if features.get("AVX2") and features.get("FMA3") and not features.get("AVX512_SKX"):
        assert len(VECTORS) > 40


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize(("name", "char"), VECTORS)
def test_layouts_of_operands_of_vectors(backend, name, char):
    """Lengths around those of vectors and blocks, gaps, one operand for all, and in place."""
    ufunc = getattr(np, name)
    x = some(np.random.default_rng(3), char, 1301)
    y = x[::-1].copy()
    f = cinductor.compile(lambda *args: ufunc(*args), backend=backend)
    into = cinductor.compile(lambda out, *args: ufunc(out, *args, out=out), backend=backend)
    for n in (3, 4, 5, 8, 31, 512, 513, 1027):
        for args in ((x[:n], y[:n]), (x[1 : n + 1][::2], y[:n][::2]), (x[:n], y[3]), (x[3], y[:n])):
            args = args[: ufunc.nin]
            assert_same_bits(f(*args), ufunc(*args))
        got, want = x[:n].copy(), x[:n].copy()
        into(got, *(y[:n],) * (ufunc.nin - 1))
        assert_same_bits(got, ufunc(want, *(y[:n],) * (ufunc.nin - 1)))


@pytest.mark.parametrize("backend", ["interp", "c", pytest.param("stencil", marks=with_stencils)])
@pytest.mark.parametrize("char", "efd")
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero", "ignore:overflow")
def test_one_exponent_for_all_elements(char, backend):
    """NumPy's loop computes some of these powers otherwise: as roots, squares and reciprocals."""
    numbers = some(np.random.default_rng(5), char, 1301)
    power = cinductor.compile(lambda x, y: np.power(x, y), backend=backend)
    for x in (numbers, np.abs(numbers)):
        for exponent in (-1, 0, 0.5, 1, 2, 2.5, 3, np.inf, np.nan):
            for y in (np.array([exponent], char), np.dtype(char).type(exponent), np.broadcast_to(np.array(exponent, char), 1301)):
                for n in (1, 5, 1301):
                    args = x[:n], y[:n] if y.ndim and len(y) > 1 else y
                    assert_same_bits(power(*args), np.power(*args))


EXPONENTS_OF_SEVERAL = {
    "an array of equal ones": lambda x, e: x ** np.full(x.shape, e),
    "computed": lambda x, e: x ** (np.zeros_like(x) + e),
    "one of another dtype": lambda x, e: np.power(x, np.array(e, "f4")),
    "repeated": lambda x, e: x ** np.broadcast_to(np.array(e, x.dtype), x.shape),
    "repeated, of another dtype": lambda x, e: x ** np.broadcast_to(np.array(e, "f2"), x.shape),
    "a column": lambda x, e: x.reshape(3, -1) ** np.full((3, 1), e, x.dtype),
    "a short column": lambda x, e: x[:30].reshape(3, -1) ** np.full((3, 1), e, x.dtype),
    "a row": lambda x, e: x.reshape(-1, 3) ** np.full((1, 3), e, x.dtype),
    "a row, in Fortran order": lambda x, e: x.reshape(3, -1).T ** np.full(3, e, x.dtype),
    "powers in rows": lambda x, e: x ** np.arange(-1, 4)[:, None],
    "powers in columns": lambda x, e: x[:, None] ** np.arange(-1.0, 4),
    "of chosen elements": lambda x, e: x ** np.where(x > 1e9, 3.0, e).astype(x.dtype),
    "into a row": lambda x, e: np.power(x[:1], np.full(9, e, x.dtype)),
    "outer": lambda x, e: np.power.outer(x, np.full(3, e, x.dtype)),
}


@pytest.mark.parametrize("backend", ["interp", "c", pytest.param("stencil", marks=with_stencils)])
@pytest.mark.parametrize("form", EXPONENTS_OF_SEVERAL)
def test_equal_exponents(form, backend):
    """NumPy's iterator decides if its loop sees one exponent for all elements."""
    f = EXPONENTS_OF_SEVERAL[form]
    power = cinductor.compile(lambda x, e: f(x, e), backend=backend)
    numbers = np.abs(np.random.default_rng(5).standard_normal(9000)) * 100
    for x in (numbers, numbers.astype("f4")):
        for exponent in (-1.0, 0.5, 2.0):
            assert_same_bits(power(x, exponent), f(x, exponent))


OF_ONE = [("e", f.__name__) for f in OF_A_HALF] + [(c, n) for n, c in VECTORS if getattr(np, n).nin == 1]


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("char", "name"), OF_ONE)
def test_float_flags_of_functions(char, name):
    """Tables and vectors set NumPy's float flags, for each operand separately."""
    function = getattr(np, name)
    compiled = cinductor.compile(lambda x: function(x), backend="interp")
    large = [6e4, -6e4, 9, -9, 12, -12, -17, 20, 90, -90, -104, 128, -150, 720, -750, 1e300, 1e-300]
    with np.errstate(all="ignore"):
        points = np.array([*SPECIAL, 1e-7, *large], char)
        compiled(np.tile(points, (1 << 17) // len(points) + 1))
    for point, n in itertools.product(points, (1, 3, 9)):
        said = []
        for call in (function, compiled):
            with np.errstate(all="warn"), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call(np.full(n, point))
            said.append({str(w.message) for w in caught})
        assert said[0] == said[1], (point, n)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if not n.startswith("failures.")])
def test_programs(name):
    program = PROGRAMS[name]
    with np.errstate(all="ignore"):
        theirs = program.make(program.sizes[0], np.random.default_rng(1))
        ours = copy.deepcopy(theirs)
        state = np.random.get_state()
        want = program.function(*theirs)
        np.random.set_state(state)
        got = compiled(program.function)(*ours)
    for a, b in zip(arrays_of([got, ours]), arrays_of([want, theirs]), strict=True):
        assert_same_bits(a, b)


def test_extremes_of_zeros():
    x = np.array([0.0, -0.0] * 20)
    for f in (lambda x: x.max(), lambda x: x[::-1].min(), lambda x: np.maximum.accumulate(x)):
        assert_same_bits(compiled(f)(x), f(x))


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_medians_of_zeros(backend):
    """A mean is no -0.0; few elements are sorted by a network, more by NumPy."""
    median = cinductor.compile(lambda x: (np.median(x), np.median(x, 0)), backend=backend)
    for n, dtype in itertools.product((1, 2, 3, 40, 41), ("f2", "f4", "f8")):
        x = np.full((n, 1), -0.0, dtype)
        for got, want in zip(median(x), (np.median(x), np.median(x, 0)), strict=True):
            assert_same_bits(got, want)


def test_a_gpu_promises_less():
    with pytest.raises(ValueError, match="numerics is 'exact'"):
        cinductor.compile(np.exp, device="cuda", options={"numerics": "exact"})


@pytest.mark.parametrize(
    "function",
    [
        lambda z: np.dot(z.real[0], z.imag[1]),
        lambda z: z.real @ z.imag.T,
        lambda z: np.linalg.norm(z),
        lambda z: np.vdot(z.real, z.imag),
        lambda z: np.einsum("ij,kj->ik", z.real, z.imag),
        lambda z: np.add.reduceat(z.real, [0, 2], axis=1),
        lambda z: z.T.imag.sum(axis=(1, 0)),
        lambda z: np.inner(z.real, z.imag),
        lambda z: z.real[:, ::2] @ z.imag[:, ::2].T,
    ],
)
def test_parts_of_complex_numbers_lie_where_those_do_in_library_calls(function):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((5, 300)) + 1j * rng.standard_normal((5, 300))
    for dynamic in (None, True):
        fast = cinductor.compile(function, dynamic=dynamic)
        for _ in range(2):
            assert_same_bits(fast(z), function(z))


def test_functions_of_backward_and_gapped_arrays_are_numpys():
    x = np.random.default_rng(0).standard_normal(400)
    for dtype in (np.float16, np.float64, np.complex64):
        for of in (lambda x: np.exp(x[::-1]), lambda x: np.exp(x[::2]), lambda x: x * x[::-1], lambda x: np.square(x[::-1])):
            y = x.astype(dtype)
            assert_same_bits(compiled(of)(y), of(y))
            assert_same_bits(compiled(lambda x, of=of: of(x + 1) * 2)(y), of(y + 1) * 2)


@pytest.mark.parametrize("backend", ["interp", "c", pytest.param("stencil", marks=with_stencils)])
def test_sums_of_rows_and_of_columns(backend):
    """Partial sums of many points at once are vectors in an array, at an index that varies."""
    both = cinductor.compile(lambda x: (x.sum(axis=0), x.sum(axis=1)), backend=backend)
    for shape in ((1000, 1024), (1024, 700)):
        x = np.random.default_rng(7).random(shape)
        for given in (x, x.T):
            for got, want in zip(both(given), (given.sum(axis=0), given.sum(axis=1))):
                assert_same_bits(got, want)
