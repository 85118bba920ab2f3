"""Special functions as formulas: rational approximations, Chebyshev series and recurrences.

A row's expression calls them like ops of the core. Where torch computes float32 by float64, so do they.
References: S. L. Moshier, Cephes Mathematical Library; NIST Digital Library of Mathematical Functions, dlmf.nist.gov.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..emit import Emitter
from ..layout import HOST
from ..promote import computation_dtype
from ..values import GraphValue, Unmapped
from . import meta
from . import special_tables as tables
from .numbers import (
    GraphNumber,
    arccos,
    copysign,
    cos,
    erf,
    erfc,
    exp,
    floor,
    fma,
    isnan,
    join,
    log,
    log1p,
    power,
    repeat,
    sin,
    sqrt,
    tan,
    trunc,
    where,
)

INF, NAN, PI = math.inf, math.nan, math.pi
EPSILON = 2.0**-53


def polynomial(x: GraphNumber, coefficients: Sequence[float]) -> Any:
    """Horner's scheme, from the highest power on."""
    made: Any = coefficients[0]
    for c in coefficients[1:]:
        made = made * x + c
    return made


def series(x: GraphNumber, coefficients: Sequence[float]) -> Any:
    """A Chebyshev series by Clenshaw's recurrence, in x / 2; its constant term counts half."""
    before: Any = 0.0
    last: Any = 0.0
    made: Any = coefficients[0]
    for c in coefficients[1:]:
        before, last = last, made
        made = x * last - before + c
    return (made - before) * 0.5


def in_double(formula: Callable[..., GraphNumber]) -> Callable[..., GraphNumber]:
    """The formula computed in float64."""

    @functools.wraps(formula)
    def computed(*operands: GraphNumber) -> GraphNumber:
        return formula(*(x.to(torch.float64) for x in operands)).to(operands[-1].value.dtype)

    return computed


def root(x: GraphNumber) -> GraphNumber:
    """The square root, of a complex number with the cases of C99's csqrt. complex64 computes in double, so nothing overflows."""
    dtype = x.value.dtype
    if not dtype.is_complex:
        return sqrt(x)
    if dtype != torch.complex64:
        raise Unmapped(f"a root of {dtype}")
    real, imag = (x.part(name).to(torch.float64) for name in ("real", "imag"))
    size = sqrt((real.apply("hypot", imag) + abs(real)) / 2)
    is_infinite = abs(imag).equals(INF)
    size = where(is_infinite, INF, size)
    other = where(is_infinite, INF, where(size.equals(0), 0.0, abs(imag) / (2 * size)))
    is_left = real < 0
    return join(where(is_left, other, size), copysign(where(is_left, size, other), imag), dtype)


def error_function(x: GraphNumber) -> GraphNumber:
    """erf. In float32 on the host by two polynomials (N. Juffa), of which a vector of elements is computed at once: at most 1.2 ULP."""
    if x.value.dtype != torch.float32 or x.emitter.device != HOST:
        return erf(x)
    t, square = abs(x), x * x
    far = fma(fma(t, -1.72853470e-5, 3.83197126e-4), square, fma(t, -3.88396438e-3, 2.42546219e-2))
    for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        far = fma(far, t, c)
    far = copysign(1 - exp(fma(far, t, -t)), x)
    near = fma(square, -5.96761703e-4, 4.99119423e-3)
    for c in (-2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1):
        near = fma(near, square, c)
    return where(t > 0.927734375, far, fma(near, x, x))


def log_of_sum(x: GraphNumber, y: GraphNumber) -> GraphNumber:
    """log(exp(x) + exp(y)). Of complex numbers the one with the larger real part is taken out, as in ATen."""
    if not x.value.dtype.is_complex:
        return x.apply("logaddexp", y)
    is_less = x.part("real") < y.part("real")
    least, most = where(is_less, x, y), where(is_less, y, x)
    real = least.part("real")
    is_infinite = real.equals(most.part("real")) & abs(real).equals(INF)
    of_infinities = where(real < 0, least, log(exp(least) + exp(most)))
    return where(is_infinite, of_infinities, most + log1p(exp(least - most)))


# ---- Bessel functions ----


def _far(x: GraphNumber, order: int, wave: Callable[[GraphNumber], GraphNumber], other: Callable[[GraphNumber], GraphNumber]) -> GraphNumber:
    """Hankel's expansion for x > 5: of J with cos and -sin, of Y with sin and cos."""
    pp, pq, qp, qq = (tables.J0_PP, tables.J0_PQ, tables.J0_QP, tables.J0_QQ) if order == 0 else (tables.J1_PP, tables.J1_PQ, tables.J1_QP, tables.J1_QQ)
    z, phase = 25 / (x * x), x - (2 * order + 1) * PI / 4
    made = polynomial(z, pp) / polynomial(z, pq) * wave(phase) + 5 / x * (polynomial(z, qp) / polynomial(z, qq)) * other(phase)
    return made * math.sqrt(2 / PI) / sqrt(x)


def _minus_sin(x: GraphNumber) -> GraphNumber:
    return -sin(x)


def bessel_j0(x: GraphNumber) -> GraphNumber:
    x = abs(x)
    z = x * x
    near = (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * polynomial(z, tables.J0_RP) / polynomial(z, tables.J0_RQ)
    return where(x <= 5, where(x < 0.00001, 1 - z / 4, near), _far(x, 0, cos, _minus_sin))


def bessel_j1(x: GraphNumber) -> GraphNumber:
    size = abs(x)
    z = size * size
    near = polynomial(z, tables.J1_RP) / polynomial(z, tables.J1_RQ) * size * (z - 14.6819706421238932572) * (z - 49.2184563216946036703)
    made = where(size <= 5, near, _far(size, 1, cos, _minus_sin))
    return where(x < 0, -made, made)


def bessel_y0(x: GraphNumber) -> GraphNumber:
    z = x * x
    near = polynomial(z, tables.Y0_YP) / polynomial(z, tables.Y0_YQ) + 2 / PI * log(x) * bessel_j0(x)
    return _from_zero(x, -INF, where(x <= 5, near, _far(x, 0, sin, cos)))


def bessel_y1(x: GraphNumber) -> GraphNumber:
    z = x * x
    near = x * (polynomial(z, tables.Y1_YP) / polynomial(z, tables.Y1_YQ)) + 2 / PI * (bessel_j1(x) * log(x) - 1 / x)
    return _from_zero(x, -INF, where(x <= 5, near, _far(x, 1, sin, cos)))


def _from_zero(x: GraphNumber, pole: float, made: GraphNumber) -> GraphNumber:
    """A function with a pole at 0, which is not defined below."""
    return where(x.equals(0), pole, where(x < 0, NAN, made))


def _scaled_i(size: GraphNumber, near: Sequence[float], far: Sequence[float], order: int) -> GraphNumber:
    """exp(-x) I(x) for x >= 0."""
    low = series(size / 2 - 2, near)
    return where(size <= 8, low * size if order else low, series(32 / size - 2, far) / sqrt(size))


def bessel_i0e(x: GraphNumber) -> GraphNumber:
    return _scaled_i(abs(x), tables.I0_A, tables.I0_B, 0)


def bessel_i0(x: GraphNumber) -> GraphNumber:
    return exp(abs(x)) * bessel_i0e(x)


def bessel_i1e(x: GraphNumber) -> GraphNumber:
    made = _scaled_i(abs(x), tables.I1_A, tables.I1_B, 1)
    return where(x < 0, -made, made)


def bessel_i1(x: GraphNumber) -> GraphNumber:
    return exp(abs(x)) * bessel_i1e(x)


def _near_k0(x: GraphNumber) -> GraphNumber:
    return series(x * x - 2, tables.K0_A) - log(x * 0.5) * bessel_i0(x)


def _near_k1(x: GraphNumber) -> GraphNumber:
    return log(x * 0.5) * bessel_i1(x) + series(x * x - 2, tables.K1_A) / x


def bessel_k0(x: GraphNumber) -> GraphNumber:
    return _from_zero(x, INF, where(x <= 2, _near_k0(x), exp(-x) * series(8 / x - 2, tables.K0_B) / sqrt(x)))


def bessel_k1(x: GraphNumber) -> GraphNumber:
    return _from_zero(x, INF, where(x <= 2, _near_k1(x), exp(-x) * series(8 / x - 2, tables.K1_B) / sqrt(x)))


def scaled_k0(x: GraphNumber) -> GraphNumber:
    return _from_zero(x, INF, where(x <= 2, _near_k0(x) * exp(x), series(8 / x - 2, tables.K0_B) / sqrt(x)))


def scaled_k1(x: GraphNumber) -> GraphNumber:
    return _from_zero(x, INF, where(x <= 2, _near_k1(x) * exp(x), series(8 / x - 2, tables.K1_B) / sqrt(x)))


def spherical_j0(x: GraphNumber) -> GraphNumber:
    z = x * x
    near = polynomial(z, [(-1) ** k / math.factorial(2 * k + 1) for k in reversed(range(7))])
    return where(abs(x).equals(INF), 0.0, where(abs(x) < 0.5, near, sin(x) / x))


def airy_ai(x: GraphNumber) -> GraphNumber:
    """Maclaurin's series around 0, asymptotic expansions on both sides."""
    root = sqrt(abs(x))
    zeta = 2 * abs(x) * root / 3
    scale, z = 5.64189583547756286948e-01 / sqrt(root), 1 / zeta
    right = scale * (polynomial(z, tables.AIRY_AN) / polynomial(z, tables.AIRY_AD)) / (2 * exp(zeta))
    squared, angle = z * z, zeta + PI / 4
    even = 1 + squared * polynomial(squared, tables.AIRY_AFN) / polynomial(squared, tables.AIRY_AFD)
    odd = z * polynomial(squared, tables.AIRY_AGN) / polynomial(squared, tables.AIRY_AGD)
    left = scale * (sin(angle) * even - cos(angle) * odd)
    made = where(x < -2.09, left, where(x < 2.09, _airy_series(x), where(x > 103.892, 0.0, right)))
    return where(abs(x).equals(INF) | isnan(x), NAN, made)


def _airy_series(x: GraphNumber) -> GraphNumber:
    f, g = [1.0], [1.0]
    for k in range(1, 13):
        f.append(f[-1] / ((3 * k - 1) * 3 * k))
        g.append(g[-1] / (3 * k * (3 * k + 1)))
    z = x * x * x
    return 0.355028053887817239260 * polynomial(z, f[::-1]) - 0.258819403792806798405 * x * polynomial(z, g[::-1])


# ---- orthogonal polynomials ----


def _recurrence(n: GraphNumber, second: GraphNumber, step: Callable[[GraphNumber, GraphNumber, GraphNumber], GraphNumber]) -> GraphNumber:
    """p(n) for p(0) = 1, p(1) = second and p(k + 1) = step(k, p(k), p(k - 1)); 0 for n < 0.

    Steps round a product and a sum once, as torch's do.
    """

    def goes(k: GraphNumber, _before: GraphNumber, last: GraphNumber) -> GraphNumber:
        return (k < n) & ~isnan(last)

    def following(k: GraphNumber, before: GraphNumber, last: GraphNumber) -> list[GraphNumber]:
        more = goes(k, before, last)
        return [k + 1, where(more, last, before), where(more, step(k.to(last.value.dtype), last, before), last)]

    one = n.to(second.value.dtype) * 0 + 1
    _, _, last = repeat(goes, following, n * 0 + 1, one, second)
    return where(n < 0, 0.0, where(n < 1, 1.0, last))


def _degree(n: GraphNumber) -> GraphNumber:
    return n.to(torch.int64)


def _sign(n: GraphNumber, dtype: torch.dtype) -> GraphNumber:
    """1 for even n, -1 for odd n."""
    return 1 - 2 * n.apply("bitwise_and", 1).to(dtype)


def _chebyshev(
    x: GraphNumber,
    n: GraphNumber,
    second: GraphNumber,
    closed: Callable[[GraphNumber, GraphNumber], GraphNumber],
    ends: Callable[[GraphNumber, GraphNumber], tuple[Any, Any]],
) -> GraphNumber:
    """A Chebyshev polynomial.

    closed : its trigonometric form, of the angle and n, for |x| < 1.
    ends : its values at 1 and at -1, of n and (-1)^n.
    """
    degree, dtype = _degree(n), x.value.dtype
    size, real = abs(x), degree.to(x.value.dtype)
    is_closed = (degree > 6) & (size < 1) | size.equals(1)
    open_degree = where(is_closed, 0, degree)
    made = _recurrence(open_degree, second, lambda _k, last, before: fma(x + x, last, -before))
    at_one, at_minus_one = ends(real, _sign(degree, dtype))
    inside = where(size < 1, closed(arccos(x), real), where(x > 0, at_one, at_minus_one))
    return where(degree < 0, 0.0, where(is_closed, inside, made))


def chebyshev_t(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    return _chebyshev(x, n, x, lambda a, n: cos(n * a), lambda n, sign: (n * 0 + 1, sign))


def chebyshev_u(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    return _chebyshev(x, n, x + x, lambda a, n: sin((n + 1) * a) / sin(a), lambda n, sign: (n + 1, sign * (n + 1)))


def chebyshev_v(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    def closed(a: GraphNumber, n: GraphNumber) -> GraphNumber:
        return cos((n + 0.5) * a) / cos(a / 2)

    return _chebyshev(x, n, x + x - 1, closed, lambda n, sign: (n * 0 + 1, sign * (n + n + 1)))


def chebyshev_w(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    def closed(a: GraphNumber, n: GraphNumber) -> GraphNumber:
        return sin((n + 0.5) * a) / sin(a / 2)

    return _chebyshev(x, n, x + x + 1, closed, lambda n, sign: (n + n + 1, sign))


def shifted(x: GraphNumber) -> GraphNumber:
    """[0, 1] -> [-1, 1]."""
    return x + x - 1


def _hermite(n: GraphNumber, second: GraphNumber, step: Callable[[GraphNumber, GraphNumber, GraphNumber], GraphNumber]) -> GraphNumber:
    """torch gives NaN above a degree."""
    most = 128 if second.value.dtype == torch.float32 else 512
    degree = where(abs(n) < INF, n, -1).to(torch.int64)
    return where(degree > most, NAN, _recurrence(where(degree > most, 0, degree), second, step))


def hermite_h(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    return _hermite(n, x + x, lambda k, last, before: fma(x + x, last, -2 * k * before))


def hermite_he(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    return _hermite(n, x, lambda k, last, before: fma(x, last, -k * before))


def laguerre_l(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    degree = where(x.equals(0) & (_degree(n) > 0), 0, _degree(n))
    return _recurrence(degree, 1 - x, lambda k, last, before: fma(k + k + (1 - x), last, -k * before) / (k + 1))


def legendre_p(x: GraphNumber, n: GraphNumber) -> GraphNumber:
    degree, is_end = _degree(n), abs(x).equals(1)
    made = _recurrence(where(is_end, 0, degree), x, lambda k, last, before: fma((k + k + 1) * x, last, -k * before) / (k + 1))
    end = where(x > 0, 1.0, _sign(degree, x.value.dtype))
    return where(degree < 0, 0.0, where(is_end, end, made))


# ---- the gamma function ----


@in_double
def lgamma(x: GraphNumber) -> GraphNumber:
    """Lanczos' approximation from 1/2 on, and Euler's reflection below."""
    is_left = x < 0.5
    right = where(is_left, 1 - x, x)
    total: Any = tables.LANCZOS[0]
    for k, c in enumerate(tables.LANCZOS[1:]):
        total = total + c / (right + k)
    scale = right + (tables.LANCZOS_G - 0.5)
    made = (right - 0.5) * log(scale) - scale + log(total * math.sqrt(2 * PI))
    wave = abs(sin(PI * (x - floor(x + 0.5))))  # from the nearest integer: exact near 0
    made = where(is_left, math.log(PI) - log(wave) - made, made)
    is_pole = where(x <= 0, x.equals(floor(x)), abs(x).equals(INF))
    return where(is_pole, INF, made)


@in_double
def digamma(x: GraphNumber) -> GraphNumber:
    right = _digamma_right(where(x < 0, 1 - x, x))
    fraction = (x - trunc(x)).to(torch.float64)
    left = right - (PI / tan(PI * fraction)).to(x.value.dtype)
    made = where(x < 0, where(x.equals(trunc(x)), NAN, left), right)
    return where(x.equals(0), copysign(x * 0 + INF, -x), made)


def _digamma_right(x: GraphNumber) -> GraphNumber:
    """For x > 0: the recurrence up to 10, then the asymptotic series."""
    made: Any = 0.0
    for _ in range(10):
        is_low = x < 10
        made, x = where(is_low, made - 1 / x, made), where(is_low, x + 1, x)
    z = 1 / (x * x)
    tail = where(x < 1e17, z * polynomial(z, tables.DIGAMMA_A), 0.0)
    return where(x.equals(10), made + 2.25175258906672110764, made + log(x) - 0.5 / x - tail)


def trigamma(x: GraphNumber) -> GraphNumber:
    is_left = x < 0.5
    wave = sin(PI * x)
    made: Any = where(is_left, -(PI * PI) / (wave * wave), 0.0)
    x = where(is_left, 1 - x, x)
    for _ in range(6):
        made, x = made + 1 / (x * x), x + 1
    z = 1 / (x * x)
    made = made + (1 + 1 / (2 * x) + z * (1 / 6 - z * (1 / 30 - z * (1 / 42)))) / x
    return where(is_left, -made, made)


@in_double
def zeta(x: GraphNumber, q: GraphNumber) -> GraphNumber:
    """Hurwitz's zeta function by the Euler-Maclaurin formula, with torch's condition to stop."""
    is_pole = (q <= 0) & q.equals(floor(q))
    is_nothing = (q <= 0) & ~x.equals(floor(x))
    a, b, total, is_done = _zeta_sum(x, where(is_pole | is_nothing, 1.0, q))
    total = where(is_done, total, total + b * a / (x - 1) - 0.5 * b)
    factor: Any = 1.0
    for i, c in enumerate(tables.ZETA_A):
        factor, b = (x + 2 * i) * factor, b / a
        term = factor * b / c
        total = where(is_done, total, total + term)
        is_done = is_done | (abs(term / total) < EPSILON)
        factor, b = factor * (x + (2 * i + 1)), b / a
    made = where(is_pole, INF, where(is_nothing, NAN, total))
    return where(x.equals(1), INF, where(x < 1, NAN, made))


def _zeta_sum(x: GraphNumber, q: GraphNumber) -> list[GraphNumber]:
    """The terms from q to above 9, ten or more: the last one's base, the term, the sum, and if all others are too small."""

    def following(a: GraphNumber, _b: GraphNumber, total: GraphNumber, is_done: GraphNumber) -> list[GraphNumber]:
        a = a + 1
        b = power(a, -x)
        total = where(is_done, total, total + b)
        return [a, b, total, is_done | (b > -EPSILON * total) & (b < EPSILON * total)]

    def goes(a: GraphNumber, _b: GraphNumber, _total: GraphNumber, is_done: GraphNumber) -> GraphNumber:
        return (a <= 9) & (x > 1) & (q > -INF) & ~is_done

    def guarded(*values: GraphNumber) -> list[GraphNumber]:
        more = goes(*values)
        return [where(more, new, old) for new, old in zip(following(*values), values, strict=True)]

    first = power(q, -x)
    values = [q, first, first, isnan(first) & (first < 0)]
    for _ in range(9):
        values = following(*values)
    return repeat(goes, guarded, *values)


def polygamma(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The row of a function whose order is an argument of the call."""
    n, out = node.args[0], meta(node).dtype
    x = GraphNumber(emitter, emitter.value(node.args[1], computation_dtype(out)))
    if n == 0:
        made = digamma(x)
    elif n == 1:
        made = trigamma(x)
    else:
        factorial = math.exp(math.lgamma(n + 1)) if n < 170 else INF
        made = (1 if n % 2 else -1) * factorial * zeta(GraphNumber(emitter, x.like(n + 1)), x)
    return emitter.cast(made.value, out)


# ---- the error function and the normal distribution ----


def erfinv(y: GraphNumber) -> GraphNumber:
    """A rational approximation and two steps of Newton's method."""
    size = abs(y)
    z = y * y
    inner = y * polynomial(z, (-0.140543331, 0.914624893, -1.645349621, 0.886226899)) / polynomial(z, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0))
    t = sqrt(-log((1 - size) / 2))
    outer = copysign(polynomial(t, (1.641345311, 3.429567803, -1.624906493, -1.970840454)), y) / polynomial(t, (1.637067800, 3.543889200, 1.0))
    x = where(size <= 0.7, inner, outer)
    for _ in range(2):
        x = x - (erf(x) - y) / (2 / math.sqrt(PI) * exp(-x * x))
    return where(size > 1, NAN, where(size.equals(1), copysign(y * 0 + INF, y), x))


def erfcx(x: GraphNumber) -> GraphNumber:
    """exp(x^2) erfc(x)."""
    right = _erfcx_right(abs(x))
    return where(x < 0, where(x < -26.7, INF, 2 * exp(x * x) - right), right)


@in_double
def _erfcx_right(x: GraphNumber) -> GraphNumber:
    """For x >= 0; above 25 the asymptotic series."""
    z = 1 / (x * x)
    far = polynomial(z, (105 / 16, -15 / 8, 3 / 4, -1 / 2, 1.0)) / x / math.sqrt(PI)
    return where(x < 25, exp(x * x) * erfc(x), far)


def log_ndtr(x: GraphNumber) -> GraphNumber:
    t = x * math.sqrt(0.5)
    return where(x < -1, log(erfcx(-t) / 2) - t * t, log1p(-erfc(t) / 2))


def ndtri(p: GraphNumber) -> GraphNumber:
    edge = 0.13533528323661269189  # exp(-2)
    is_right = p > 1 - edge
    y = where(is_right, 1 - p, p)
    middle = y - 0.5
    z = middle * middle
    inner = (middle + middle * (z * polynomial(z, tables.NDTRI_P0) / polynomial(z, tables.NDTRI_Q0))) * math.sqrt(2 * PI)
    t = sqrt(-2 * log(y))
    near = polynomial(1 / t, tables.NDTRI_P1) / polynomial(1 / t, tables.NDTRI_Q1)
    far = polynomial(1 / t, tables.NDTRI_P2) / polynomial(1 / t, tables.NDTRI_Q2)
    outer = t - log(t) / t - where(t < 8, near, far) / t
    made = where(y > edge, inner, where(is_right, outer, -outer))
    made = where(p.equals(0), -INF, where(p.equals(1), INF, made))
    return where((p < 0) | (p > 1), NAN, made)
