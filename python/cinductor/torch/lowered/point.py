"""Element-wise ops that cannot be written as an expression of a row: casts, powers, rounding divisions, clamps."""

from __future__ import annotations

import math

import torch

from ..emit import Emitter
from ..layout import HOST
from ..promote import common_dtype, computation_dtype, promoted
from ..sizes import is_known
from ..values import GraphValue, Unmapped
from . import argument, meta, sizes
from .numbers import GraphNumber
from .special import error_function


def cast(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out = meta(node)
    v = emitter.env[node.args[0]]
    if v.dtype.is_complex and not out.dtype.is_complex and out.dtype != torch.bool:
        v = emitter.put("real", [v], v.dtype.to_real(), v.sizes)
    if v.dtype.is_floating_point and out.dtype in (torch.uint8, torch.int8, torch.int16):
        v = emitter.cast(v, torch.int64)  # so torch converts values out of range
    return emitter.cast(v, out.dtype)


def absolute(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, out = emitter.env[node.args[0]], meta(node).dtype
    return emitter.put("complex_absolute" if x.dtype.is_complex else "absolute", [x], out, x.sizes)


def sign(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """0 of NaN; of a complex number the one of length 1 with its angle."""
    x: GraphValue = emitter.env[node.args[0]]
    if x.dtype == torch.bool:
        return x
    if not x.dtype.is_complex:
        wide = emitter.cast(x, torch.float32) if x.dtype == torch.bfloat16 else x  # the core's sign of bfloat16 keeps -0.0
        zero = emitter.constant(0, wide.dtype)
        return emitter.cast(emitter.apply("where", [emitter.apply("isnan", [wide]), zero, emitter.apply("sign", [wide])]), x.dtype)
    zero = emitter.constant(0, x.dtype)
    length = emitter.put("complex_absolute", [x], x.dtype.to_real(), x.sizes)
    is_zero = emitter.apply("equal", [x, zero])
    return emitter.apply("where", [is_zero, zero, emitter.apply("divide", [x, emitter.cast(length, x.dtype)])])


def signbit(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    if x.dtype == torch.bool:
        return emitter.expand(emitter.constant(False, torch.bool), x.sizes)
    return emitter.apply("signbit", [x]) if x.dtype.is_floating_point else emitter.apply("less", [x, emitter.constant(0, x.dtype)])


def shift_left(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _shifted(emitter, node, "left_shift")


def shift_right(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _shifted(emitter, node, "right_shift")


def _shifted(emitter: Emitter, node: torch.fx.Node, op: str) -> GraphValue:
    """A shift by a negative number of bits, or by all of them, leaves no bit but the sign."""
    out = meta(node).dtype
    a, b = (emitter.value(x, out) for x in node.args[:2])
    most = emitter.constant(torch.iinfo(out).bits - 1, out)
    outside = emitter.apply("logical_or", [emitter.apply("less", [b, emitter.constant(0, out)]), emitter.apply("greater", [b, most])])
    inside = emitter.apply(op, [a, emitter.apply("where", [outside, emitter.constant(0, out), b])])
    is_signed = op == "right_shift" and torch.iinfo(out).min < 0
    left = emitter.apply("right_shift", [a, most]) if is_signed else emitter.constant(0, out)
    return emitter.expand(emitter.apply("where", [outside, left, inside]), sizes(node))


def nan_to_num(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Of a complex number, each part."""
    x, out = emitter.env[node.args[0]], meta(node)
    if not out.dtype.is_complex:
        return _finite(emitter, node, x)
    parts = [_finite(emitter, node, emitter.put(name, [x], x.dtype.to_real(), x.sizes)) for name in ("real", "imag")]
    return emitter.apply("join_parts", [emitter.cast(p, x.dtype) for p in parts])


def _finite(emitter: Emitter, node: torch.fx.Node, x: GraphValue) -> GraphValue:
    """A real number in which NaN and infinities are replaced."""
    if not x.dtype.is_floating_point:
        return x
    limits = torch.finfo(x.dtype)
    given = [argument(node, name) for name in ("nan", "posinf", "neginf")]
    values = [emitter.value(d if g is None else g, x.dtype) for g, d in zip(given, (0.0, limits.max, limits.min), strict=True)]
    infinities = [emitter.apply("equal", [x, emitter.constant(v, x.dtype)]) for v in (math.inf, -math.inf)]
    for condition, value in zip((emitter.apply("isnan", [x]), *infinities), values, strict=True):
        x = emitter.apply("where", [condition, value, x])
    return x


def rounded(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    return emitter.apply("rint", [x]) if x.dtype.is_floating_point else x


def integer_or(op: str) -> object:
    """floor, ceil and trunc do nothing to ints."""

    def lowering(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
        x: GraphValue = emitter.env[node.args[0]]
        return emitter.apply(op, [x]) if x.dtype.is_floating_point else x

    return lowering


floor, ceil, trunc = integer_or("floor"), integer_or("ceil"), integer_or("trunc")


def _check_divisor(emitter: Emitter, b: GraphValue) -> None:
    """Eager raises for a divisor 0 on the host; on a CUDA device the quotient is undefined."""
    if emitter.device == HOST:
        emitter.check(emitter.apply("not_equal", [b, emitter.constant(0, b.dtype)]), "division by zero")


def _operands(emitter: Emitter, node: torch.fx.Node, kind: str = "default") -> list[GraphValue]:
    """The first two operands in the dtype in which the op computes."""
    metas = [meta(x) for x in node.args[:2]]
    compute, _ = promoted(kind, metas)
    return [emitter.operand(x, common_dtype(metas), compute) for x in node.args[:2]]


def divide(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """div with a rounding mode, and floor_divide."""
    name = str(node.target)
    mode = argument(node, "rounding_mode") if "_mode" in name else "floor"
    kind = "float" if mode is None else "default"
    compute, _ = promoted(kind, [meta(x) for x in node.args[:2]])
    a, b = (emitter.value(x, compute) for x in node.args[:2])
    if mode is not None and not compute.is_floating_point:
        _check_divisor(emitter, b)
        made = emitter.apply("floor_divide", [a, b])
        made = made if mode == "floor" else towards_zero(emitter, a, b, made)
        return emitter.expand(emitter.cast(made, meta(node).dtype), sizes(node))
    if mode is not None and compute != meta(node).dtype and not _is_single(node.args[1]):
        return _divide_narrow(emitter, node, mode)
    made = emitter.apply("floor_divide" if mode == "floor" else "divide", [a, b])
    if mode == "trunc":
        made = emitter.apply("trunc", [made])
    return emitter.expand(emitter.cast(made, meta(node).dtype), sizes(node))


def _is_single(x: object) -> bool:
    """True for a number, and for a tensor of one element, which eager's kernels take as one."""
    return not isinstance(x, torch.fx.Node) or is_known(meta(x).numel() == 1)


def _divide_narrow(emitter: Emitter, node: torch.fx.Node, mode: str) -> GraphValue:
    """A quotient of narrow floats with a rounding mode. Eager rounds each step of it to the narrow dtype."""
    dtype = meta(node).dtype
    a, b = (emitter.value(x, dtype) for x in node.args[:2])
    zero, half, one = (emitter.constant(c, dtype) for c in (0.0, 0.5, 1.0))
    apply = emitter.apply
    quotient = apply("divide", [a, b])
    if mode == "trunc":
        return emitter.expand(apply("trunc", [quotient]), sizes(node))
    left = apply("fmod", [a, b])
    made = apply("divide", [apply("subtract", [a, left]), b])
    differs = apply("not_equal", [apply("less", [b, zero]), apply("less", [left, zero])], torch.bool)
    below = apply("logical_and", [apply("not_equal", [left, zero]), differs])
    made = apply("where", [below, apply("subtract", [made, one]), made])
    floored = apply("floor", [made])
    floored = apply("where", [apply("greater", [apply("subtract", [made, floored]), half]), apply("add", [floored, one]), floored])
    floored = apply("where", [apply("equal", [made, zero]), apply("copysign", [zero, quotient]), floored])
    return emitter.expand(apply("where", [apply("equal", [b, zero]), quotient, floored]), sizes(node))


def towards_zero(emitter: Emitter, a: GraphValue, b: GraphValue, floored: GraphValue) -> GraphValue:
    """The quotient of ints without its fraction: one more than the floor if it is negative and not exact."""
    zero = emitter.constant(0, a.dtype)
    differs = emitter.apply("not_equal", [emitter.apply("less", [a, zero]), emitter.apply("less", [b, zero])], torch.bool)
    is_exact = emitter.apply("equal", [emitter.apply("multiply", [floored, b]), a])
    moves = emitter.apply("logical_and", [differs, emitter.apply("logical_not", [is_exact])])
    return emitter.apply("add", [floored, emitter.cast(moves, a.dtype)])


def remainder(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The result has the sign of the divisor; a zero is positive unless torch takes the dividend's sign."""
    return _modulo(emitter, node, "remainder")


def fmod(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _modulo(emitter, node, "fmod")


def _modulo(emitter: Emitter, node: torch.fx.Node, op: str) -> GraphValue:
    a, b = _operands(emitter, node)
    compute = a.dtype
    zero = emitter.constant(0, compute)
    if not compute.is_floating_point:
        _check_divisor(emitter, b)
        return emitter.expand(emitter.cast(emitter.apply(op, [a, b]), meta(node).dtype), sizes(node))
    if op == "fmod":
        made = emitter.apply("fmod", [a, b])
    else:  # torch's rule: fmod, shifted by the divisor if the signs differ
        left = emitter.apply("fmod", [a, b])
        differs = emitter.apply("not_equal", [emitter.apply("less", [b, zero]), emitter.apply("less", [left, zero])], torch.bool)
        moves = emitter.apply("logical_and", [emitter.apply("not_equal", [left, zero]), differs])
        made = emitter.apply("where", [moves, emitter.apply("add", [left, b]), left])
    return emitter.expand(emitter.cast(made, meta(node).dtype), sizes(node))


def power(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    a, b = node.args[:2]
    compute, result = promoted("bool_to_long", [meta(a), meta(b)])
    if result == torch.float16 and b in (0.5, -0.5):
        raise Unmapped("a root of float16")  # eager's pow(-inf, 0.5) is inf
    if not isinstance(b, torch.fx.Node) and isinstance(a, torch.fx.Node) and (made := _constant_power(emitter, emitter.value(a, result), b)):
        return made
    base, exponent = _operands(emitter, node, "bool_to_long")
    is_int = not compute.is_floating_point and not compute.is_complex
    made = _int_power(emitter, base, exponent) if is_int else emitter.apply("power", [base, exponent])
    return emitter.expand(emitter.cast(made, result), sizes(node))


def _int_power(emitter: Emitter, a: GraphValue, b: GraphValue) -> GraphValue:
    """A negative power of an int is 0, unless the int is 1 or -1: that one's power by the positive exponent."""
    zero, one = emitter.constant(0, a.dtype), emitter.constant(1, a.dtype)
    is_negative = emitter.apply("less", [b, zero])
    odd = emitter.apply("bitwise_and", [b, one])
    made = emitter.apply("int_power", [a, emitter.apply("where", [is_negative, odd, b])])
    is_unit = emitter.apply("equal", [emitter.apply("multiply", [a, a]), one])
    return emitter.apply("where", [emitter.apply("logical_and", [is_negative, emitter.apply("logical_not", [is_unit])]), zero, made])


def _constant_power(emitter: Emitter, x: GraphValue, b: float) -> GraphValue | None:
    """Powers that torch computes by products and roots, which it rounds each."""
    if b == 1:
        return x
    if b == 2:
        return emitter.apply("multiply", [x, x])
    if b == 3:
        return emitter.apply("multiply", [emitter.apply("multiply", [x, x]), x])
    if not x.dtype.is_floating_point:
        return None
    one = emitter.constant(1, x.dtype)
    if b == 0.5:
        return emitter.apply("sqrt", [x])
    if b == -0.5:
        return emitter.apply("divide", [one, emitter.apply("sqrt", [x])])
    if b == -1:
        return emitter.apply("divide", [one, x])
    if b == -2:
        return emitter.apply("divide", [one, emitter.apply("multiply", [x, x])])
    return None


def clamp(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Bounds. NaN stays; a zero equal to a bound keeps its sign if the bound is a number, and gets the bound's sign
    if it is a tensor. The result of a bound that is NaN is NaN.
    """
    out, name = meta(node).dtype, str(node.target)
    low = argument(node, "min") if "clamp_max" not in name else None
    high = argument(node, "max") if "clamp_min" not in name else None
    return _bounded(emitter, node, emitter.value(node.args[0], out), low, high)


def hardtanh(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.value(node.args[0], meta(node).dtype)
    return _bounded(emitter, node, x, argument(node, "min_val"), argument(node, "max_val"))


def _bounded(emitter: Emitter, node: torch.fx.Node, x: GraphValue, low: object, high: object) -> GraphValue:
    for bound, test in ((low, "less"), (high, "greater")):
        if bound is None:
            continue
        b = emitter.value(bound, x.dtype)
        is_tensor = isinstance(bound, torch.fx.Node)
        over = emitter.apply(test + "_equal" if is_tensor else test, [x, b])
        if x.dtype.is_floating_point and not (isinstance(bound, (int, float)) and bound == bound):
            over = emitter.apply("logical_or", [over, emitter.apply("isnan", [b])])
        x = emitter.apply("where", [over, b, x])
    return emitter.expand(x, sizes(node))


def gelu(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out = meta(node).dtype
    x = emitter.value(node.args[0], computation_dtype(out))

    def c(value: float) -> GraphValue:
        return emitter.constant(value, x.dtype)

    def times(a: GraphValue, b: GraphValue) -> GraphValue:
        return emitter.apply("multiply", [a, b])

    if argument(node, "approximate") == "none":
        t = error_function(GraphNumber(emitter, times(x, c(math.sqrt(0.5))))).value
    else:
        inner = emitter.apply("add", [x, times(c(0.044715), times(times(x, x), x))])
        t = emitter.apply("tanh", [times(c(math.sqrt(2 / math.pi)), inner)])
    return emitter.cast(times(times(c(0.5), x), emitter.apply("add", [c(1), t])), out)


def cross(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The vector product along an axis of 3. Narrow floats are rounded after each step, as eager rounds them."""
    out = meta(node)
    axis = argument(node, "dim") % out.dim()
    a, b = (emitter.expand(emitter.value(x, out.dtype), tuple(out.size())) for x in node.args[:2])

    def product(j: int, k: int) -> GraphValue:
        parts = [emitter.along(a, axis, j, 1, 1), emitter.along(b, axis, k, 1, 1)]
        return emitter.apply("multiply", parts)

    made = [emitter.apply("subtract", [product((k + 1) % 3, (k + 2) % 3), product((k + 2) % 3, (k + 1) % 3)]) for k in range(3)]
    return emitter.put("concat", made, out.dtype, tuple(out.size()), axes=[axis])


def where(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    condition, a, b = node.args
    compute = meta(node).dtype
    made = emitter.apply("where", [emitter.value(condition, torch.bool), emitter.value(a, compute), emitter.value(b, compute)])
    return emitter.expand(made, sizes(node))


def frexp(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    x = emitter.env[node.args[0]]
    return [emitter.apply("frexp_mantissa", [x]), emitter.cast(emitter.apply("frexp_exponent", [x]), torch.int32)]
