"""Element-wise ops on NaN, infinities, zeros of both signs, denormals and extremes, in each dtype, as eager has them."""

import math
import operator

import pytest
from agreement import compiled

# isort: split
import torch
import torch.nn.functional as F
from functorch.compile import aot_function
from torch.fx.traceback import preserve_node_meta

import cinductor
from cinductor.torch import entry, rows
from cinductor.torch.emit import Emitter

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]

# Units in the last place. Both round a function to within 2 of float32 and 4 of float64 (powers: 16); narrow floats are
# computed in float32, so that they differ where the two fall on different sides of a tie.
ULPS = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 4, torch.float64: 8}


def edges(dtype):
    if dtype == torch.bool:
        return torch.tensor([True, False])
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        return torch.tensor(sorted({0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min // 2 - 1 if info.min else 5}), dtype=dtype)
    info = torch.finfo(dtype)
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, info.tiny, info.tiny / 4, info.eps, info.max, math.inf, 20.0]
    return torch.tensor([s * v for v in values for s in (1, -1)] + [math.nan], dtype=dtype)


def bits(t):
    """Comparable values: the sign of zero counts, that of NaN does not."""
    return torch.where(t.isnan(), torch.nan, t), torch.where(t.isnan(), False, t.signbit())


def compare(name, got, wanted, ulps, near=0.0):
    assert got.dtype == wanted.dtype, f"{name}: {got.dtype}, eager {wanted.dtype}"
    if not wanted.dtype.is_floating_point:
        bad = got != wanted
    else:
        (a, s), (b, r) = bits(got.double()), bits(wanted.double())
        info = torch.finfo(wanted.dtype)
        denormal = ulps * info.eps * info.smallest_normal
        is_near = torch.isclose(a, b, rtol=ulps * info.eps, atol=max(denormal, near), equal_nan=True)
        bad = ~is_near | ((s != r) & (b == 0) & (a == 0) & (near == 0))
    return [] if not bad.any() else [(name, int(bad.sum()), bad.nonzero()[0].tolist(), got[bad][0].item(), wanted[bad][0].item())]


EXACT = {
    name: getattr(torch, name)
    for name in "neg abs sign sgn floor ceil trunc round frac square relu isnan isinf isfinite isposinf isneginf signbit logical_not positive sqrt reciprocal nan_to_num".split()
} | {
    "bool": lambda x: x.bool(),
    "mantissa": lambda x: x.frexp()[0],
    "exponent": lambda x: x.frexp()[1],
    "clamp": lambda x: x.clamp(0, 1),
    "clamp_min": lambda x: x.clamp_min(0),
    "clamp_max": lambda x: x.clamp_max(0),
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "leaky_relu": F.leaky_relu,
    "threshold": lambda x: F.threshold(x, 0.5, 3.0),
    "hardshrink": F.hardshrink,
    "plus 1": lambda x: x + 1,
    "1 minus": lambda x: 1 - x,
    "times -0.5": lambda x: x * -0.5,
    "over 3": lambda x: x / 3,
    "squared": lambda x: x**2,
    "cubed": lambda x: x**3,
    "float": lambda x: x.float(),
    "double": lambda x: x.double(),
    "half": lambda x: x.half(),
    "bfloat16": lambda x: x.bfloat16(),
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5, dtype=x.dtype)),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(),
    "any": lambda x: x.any(),
    "all": lambda x: x.all(),
}
CLOSE = {
    name: getattr(torch, name)
    for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid rsqrt lgamma digamma erfinv logit sinc deg2rad".split()
} | {
    "silu": F.silu,
    "softshrink": F.softshrink,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": F.softplus,
    "elu": F.elu,
    "selu": F.selu,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "logsigmoid": F.logsigmoid,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "power 0.5": lambda x: x**0.5,
    "power -0.5": lambda x: x**-0.5,
    "power -1": lambda x: x**-1,
    "power -2": lambda x: x**-2,
    "power 4": lambda x: x**4,
    "power 2.5": lambda x: x**2.5,
    "2 to": lambda x: 2.0**x,
}
PAIRS = {
    name: getattr(torch, name)
    for name in "add sub mul div maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or logical_xor copysign nextafter".split()
} | {
    "true_divide": torch.true_divide,
    "where": lambda a, b: torch.where(a > b, a, b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.25) if a.dtype.is_floating_point else a + b,
    "clamp by tensors": lambda a, b: torch.clamp(a, min=b),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=2),
}
DIVISIONS = {
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
}
CLOSE_PAIRS = {"atan2": torch.atan2, "hypot": torch.hypot, "pow": torch.pow, "logaddexp": torch.logaddexp, "xlogy": torch.xlogy}
OF_INTS = {
    name: getattr(torch, name) for name in "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd".split()
} | {"<<": operator.lshift, ">>": operator.rshift}


SPECIAL = {
    name: getattr(torch.special, name)
    for name in (
        "i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1"
        " scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai digamma gammaln erfinv erfcx log_ndtr ndtri"
    ).split()
} | {"trigamma": lambda x: torch.polygamma(1, x), "polygamma": lambda x: torch.polygamma(3, x)}
POLYNOMIALS = {
    name: getattr(torch.special, name)
    for name in (
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w shifted_chebyshev_polynomial_w"
        " hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p"
    ).split()
}
COMPLEX = {
    name: getattr(torch, name)
    for name in (
        "exp log sin cos tan tanh sinh cosh sqrt rsqrt asin acos atan asinh acosh atanh log1p log2 log10 expm1 exp2 sigmoid reciprocal nan_to_num"
    ).split()
}


def table(functions, operands, ulps=0, near=0.0):
    """All functions in one graph, as many as eager takes in this dtype; what differs."""
    kept = {}
    for name, fn in functions.items():
        try:
            kept[name] = fn(*operands), fn
        except (RuntimeError, TypeError, IndexError, AttributeError):
            continue
    got = compiled(lambda *xs: [fn(*xs) for _, fn in kept.values()])(*operands)
    wrong = []
    for (name, (wanted, _)), value in zip(kept.items(), got, strict=True):
        wrong += compare(name, value, wanted, ulps, near)
    return wrong


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.bool], ids=str)
def test_functions_of_one(dtype):
    ulps = 0 if dtype.is_floating_point else 1  # eager's root of an int in float32 is not always the nearest number
    assert table(EXACT, [edges(dtype)], ulps) == []


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_close_functions_of_one(dtype):
    """Near zero eager's are of another library: neither its sign nor its last bits are promised."""
    assert table(CLOSE, [edges(dtype)], ULPS[dtype], 4 * torch.finfo(dtype).eps) == []


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.bool], ids=str)
def test_functions_of_two(dtype):
    """Eager's maximum of two zeros is, of narrow floats, the first one: there signs of zeros are not promised."""
    x = edges(dtype)
    near = torch.finfo(dtype).tiny if dtype in (torch.float16, torch.bfloat16) else 0.0
    assert table(PAIRS, [x[:, None], x[None, :]], 0, near) == []


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_close_functions_of_two(dtype):
    x = edges(dtype)
    assert table(CLOSE_PAIRS, [x[:, None], x[None, :]], ULPS[dtype]) == []


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=str)
def test_divisions(dtype):
    """Of quotients below 1e6: beyond eager's vector code gives NaN where its scalar code is exact. By one element and by many, for
    which eager's kernels round narrow floats differently.
    """
    x = edges(dtype)
    if dtype.is_floating_point:
        x = x[((x.abs() < 1000) & (x.abs() > 1e-3)) | (x == 0) | ~x.isfinite()]
        some = torch.randn(400, generator=torch.Generator().manual_seed(1)).mul(5).to(dtype)
        assert table(DIVISIONS, [some[:200], some[200:]]) == []
        assert table(DIVISIONS, [some[:200], some[200]]) == []
    divisors = x if dtype.is_floating_point else x[x != 0]
    if not dtype.is_floating_point:
        divisors = divisors[divisors != -1]  # the least int by -1 is the hardware's fault in eager
    assert table(DIVISIONS, [x[:, None], divisors[None, :]]) == []


@pytest.mark.parametrize("dtype", [*INTS, torch.bool], ids=str)
def test_functions_of_ints(dtype):
    x = edges(dtype)
    y = x if dtype == torch.bool else torch.tensor([0, 1, 2, 5], dtype=dtype)
    assert table(OF_INTS, [x[:, None], y[None, :]]) == []


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", [*INTS, torch.bool], ids=str)
def test_casts(source, target):
    """Of values in the range of the target: what lies outside is the hardware's choice."""
    x = edges(source)
    if target != torch.bool:
        info = torch.iinfo(target)
        x = x[(x.double() >= float(info.min)) & (x.double() < float(info.max)) & x.isfinite()]
    assert table({"cast": lambda x: x.to(target)}, [x]) == []


@pytest.mark.parametrize("a", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex64], ids=str)
def test_promotion(a):
    """Arrays, 0-d tensors and numbers of different kinds together."""
    others = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64]
    x = torch.tensor([1, 0, 1], dtype=a)
    if a == torch.float16:
        others.remove(torch.complex64)  # with a number of it complex32, which the core lacks
    operands = [torch.ones(3, dtype=b) for b in others] + [torch.tensor(2).to(b) for b in others] + [True, 2, 2.5]

    def fn(x):
        return [f(x, y) for y in operands for f in (torch.add, torch.mul, torch.true_divide, torch.eq)]

    for got, wanted in zip(compiled(fn)(x), fn(x), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3)


WITH_NUMBERS = {name: PAIRS[name] for name in "add sub mul div maximum minimum fmax fmin eq ne lt le gt ge copysign nextafter".split()} | DIVISIONS | {
    "rsub": lambda a, b: torch.rsub(a, b),
    "add times": lambda a, b: torch.add(a, b, alpha=0.3),
    "sub times": lambda a, b: torch.sub(a, b, alpha=3),
    "threshold": lambda a, b: F.threshold(a, b, b),
    "leaky_relu": F.leaky_relu,
    "clamp": lambda a, b: torch.clamp(a, -b, b),
    "clamp_min": lambda a, b: torch.clamp_min(a, b),
    "masked_fill": lambda a, b: a.masked_fill(a > b, b),
    "addcmul": lambda a, b: torch.addcmul(a, a, a, value=b),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_numbers_alongside_narrow_floats(dtype):
    """Eager's kernels round most numbers, and tensors without axes, to the narrow dtype: so 0.1 equals the nearest float16."""
    some = torch.randn(40, generator=torch.Generator().manual_seed(1))
    x = torch.cat([torch.tensor([0.1, -0.1, 0.3, 0.7, 1.0, 257.0]), some]).to(dtype)
    numbers = [0.1, 257, torch.tensor(0.1), torch.tensor(0.1, dtype=torch.float64), torch.tensor(257), torch.tensor(0.1, dtype=dtype), torch.tensor([0.1], dtype=dtype)]
    functions = {f"{name} {k}": lambda x, fn=fn, y=y: fn(x, y) for name, fn in WITH_NUMBERS.items() for k, y in enumerate(numbers)}
    functions |= {f"{name} of {k}": lambda x, fn=fn, y=y: fn(y, x) for name, fn in WITH_NUMBERS.items() for k, y in enumerate(numbers)}
    assert table(functions, [x]) == []
    close = {f"{name} {k} {way}": lambda x, fn=fn, y=y, way=way: fn(*(x, y)[::way]) for name, fn in CLOSE_PAIRS.items() for k, y in enumerate(numbers) for way in (1, -1)}
    assert table({k: v for k, v in close.items() if "xlogy" not in k}, [x], ULPS[dtype]) == []


def wholly_compiled(fn, *operands):
    """The results of a graph that has no library call."""
    report = cinductor.explain(compiled(fn), *operands)
    assert [n for g in report.graphs for n in g.nodes if n[1] != "core"] == []
    return report.result


def agree(functions, *operands):
    """All functions in one graph, wholly in the core, within torch's own tolerances."""
    got = wholly_compiled(lambda *xs: [fn(*xs) for fn in functions.values()], *operands)
    for (name, fn), value in zip(functions.items(), got, strict=True):
        torch.testing.assert_close(value, fn(*operands), equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
def test_special_functions(dtype):
    x = torch.tensor([0.0, -0.0, 0.25, 0.5, 0.999, 1.0, -1.0, 2.0, -2.5, 3.5, 5.0, 6.5, 8.0, 9.75, -12.25, 20.5, 26.0, 100.0, -1e10, math.inf, -math.inf, math.nan])
    agree(SPECIAL, x.to(dtype) if dtype.is_floating_point else torch.arange(-4, 9))


def test_the_zeta_function():
    x = torch.tensor([math.nan, math.inf, 0.5, 1.0, 1.5, 2.0, 3.0, 20.0])[:, None]
    agree({"zeta": torch.special.zeta}, x, torch.tensor([math.nan, math.inf, 0.0, -1.0, -1.5, -20.25, -1e10, 0.25, 1.0, 9.0, 1e10]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_orthogonal_polynomials(dtype):
    """Of no NaN: there eager's Chebyshev polynomials are undefined memory."""
    x = torch.tensor([0.0, 0.3, -0.7, 1.0, -1.0, 1.5, -2.25, math.inf], dtype=dtype)[:, None]
    agree(POLYNOMIALS, x, torch.tensor([-1.0, 0.0, 1.0, 2.0, 3.0, 6.0, 7.5, 11.0], dtype=dtype))


def test_functions_of_complex_numbers():
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, -1e10, math.inf, -math.inf, math.nan])
    z = torch.complex(x[:, None].expand(9, 9).contiguous(), x.expand(9, 9).contiguous())
    agree(COMPLEX, z)
    agree({"pow": torch.pow, "logaddexp": torch.logaddexp}, z[2:5, 2:5], z[2:5, 2:5].T)
    finite = torch.tensor([0.5 - 1j, -2.5 + 3j, 40 + 0j, -math.inf + 0j])
    agree({"logaddexp": torch.logaddexp}, finite[:, None], finite)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8], ids=str)
def test_powers_of_ints(dtype):
    x = torch.tensor([0, 1, 2, 3, 200, -1, -2, -3]).to(dtype)
    agree({"pow": torch.pow}, x[:, None], torch.tensor([0, 1, 2, 5, 8, 63]).to(dtype))
    if dtype.is_signed:
        agree({"pow": torch.pow}, x[:, None], torch.tensor([-1, -2, -3]))


REFUSED = {
    "mm": (torch.mm, (3, 4), (4, 2)),
    "bmm": (lambda a, b: torch.bmm(a[None], b[None]), (3, 4), (4, 2)),
    "addmm": (lambda a, b: torch.addmm(b[0], a, b), (3, 4), (4, 2)),
    "mv": (torch.mv, (3, 4), (4,)),
    "addmv": (lambda a, b: torch.addmv(b[:1], a, b), (3, 4), (4,)),
    "dot": (torch.dot, (4,), (4,)),
    "convolution": (torch.conv1d, (1, 2, 5), (3, 2, 2)),
}


@pytest.mark.parametrize("other", [torch.bool, torch.float64], ids=str)
@pytest.mark.parametrize("name", REFUSED)
def test_products_that_eager_refuses(name, other):
    """Eager has no products of bools, nor of operands with several dtypes."""
    product, *sizes = REFUSED[name]
    first = torch.bool if other is torch.bool else torch.float32
    given = [torch.ones(size, dtype=dtype) for size, dtype in zip(sizes, (first, other), strict=True)]
    for fn in (product, compiled(product)):
        with pytest.raises(RuntimeError, match="Bool|dtype|scalar type"):
            fn(*given)


def calls(fn, operands):
    """Of each call of the function's graph its op and whether the core computes it; none if torch refuses to trace it."""
    made = []

    def emit(gm, inputs):
        made.extend(Emitter(gm, "graph", rows.row_of).run().nodes)
        return gm

    try:
        with preserve_node_meta():
            aot_function(fn, **entry.compilers({}, True) | {"fw_compiler": emit, "inference_compiler": emit})(*operands)
    except (RuntimeError, TypeError, ValueError):
        pass
    return [(op, where) for op, where, *_ in made]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint16, torch.complex64], ids=str)
def test_functions_that_eager_refuses(dtype):
    """ATen has no kernels of these dtypes. A function that torch takes apart is not asked for, because its parts may have some."""
    x, wrong, asked = torch.ones(3, dtype=dtype), [], 0
    for functions, operands in ((EXACT, [x]), (PAIRS | DIVISIONS, [x, x])):
        for name, fn in functions.items():
            try:
                fn(*operands)
            except (RuntimeError, TypeError):
                made = calls(fn, operands)
                asked += len(made) == 1
                wrong += [name] if len(made) == 1 and made[0][1] == "core" else []
    assert wrong == [] and asked > 3
    with pytest.raises(RuntimeError, match="not implemented|not support"):
        compiled(torch.floor if dtype.is_complex else torch.argmax)(x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_functions_of_more_than_one_element_are_kernels(dtype, capfd):
    """ATen, which is asked for a kernel, raises for a cross product of other vectors, and warns of the variance of one number."""
    x = torch.ones(4, 3, dtype=dtype)
    made = calls(lambda x: (torch.linalg.cross(x, x), x.var(0)), [x])
    assert [where for _, where in made] == ["core"] * len(made) and len(made) >= 2
    assert "degrees of freedom" not in capfd.readouterr().err
