"""Random numbers by the option fused_random: a counter-based generator, whose numbers are computed where they are used.

Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011, Parallel random numbers: as easy as 1, 2, 3). The counter is the number of the element
in C order, and the key is a seed that each op draws from torch's generator. So the numbers follow from `torch.manual_seed`, and do not
depend on the device, on memory layouts or on the number of threads. They are not those of eager.
"""

from __future__ import annotations

import math

import torch

from .. import library
from ..emit import Emitter
from ..promote import computation_dtype
from ..values import GraphValue, Unmapped
from . import argument, meta, sizes
from .numbers import GraphNumber

ROUNDS = 10
FACTORS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)  # of the key between rounds
LOW = 0xFFFFFFFF
# Bits of a number in [0, 1): as many as its dtype represents.
DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}


def seed(emitter: Emitter, like: torch.Tensor) -> GraphNumber:
    """64 bits from torch's generator of the graph's device."""
    draw = torch.ops.aten.randint.low
    node = torch.fx.Graph().call_function(draw, (-(2**63), 2**63 - 1, [1]), {"dtype": torch.int64, "device": emitter.device})
    node.meta["val"] = like.new_empty((1,), dtype=torch.int64)
    drawn = library.call(emitter, node, node.meta["val"])
    emitter.note(draw, "the seed of random numbers")
    return GraphNumber(emitter, emitter.cast(emitter.reshape(drawn, ()), torch.uint64))


def words(emitter: Emitter, out: torch.Tensor) -> list[GraphNumber]:
    """Four words of 32 bits for each element of a tensor, each in the low half of 64 bits."""
    key = seed(emitter, out)
    keys = [key.apply("bitwise_and", LOW), key.apply("right_shift", 32)]
    count = out.numel()
    at = GraphNumber(emitter, emitter.reshape(emitter.cast(emitter.iota(count), torch.uint64), tuple(out.size())))
    zero = at.apply("bitwise_and", 0)
    a, b, c, d = at.apply("bitwise_and", LOW), at.apply("right_shift", 32), zero, zero
    for _ in range(ROUNDS):
        first, second = a * FACTORS[0], c * FACTORS[1]
        a = second.apply("right_shift", 32).apply("bitwise_xor", b).apply("bitwise_xor", keys[0])
        c = first.apply("right_shift", 32).apply("bitwise_xor", d).apply("bitwise_xor", keys[1])
        b, d = second.apply("bitwise_and", LOW), first.apply("bitwise_and", LOW)
        keys = [(k + step).apply("bitwise_and", LOW) for k, step in zip(keys, STEPS, strict=True)]
    return [a, b, c, d]


def fraction(high: GraphNumber, low: GraphNumber, dtype: torch.dtype, more: int = 0) -> GraphNumber:
    """A number in [0, 1) with as many digits as the dtype represents, computed in the dtype for narrow ones; with more = 1, in (0, 1]."""
    digits = DIGITS[dtype]
    if digits > 32:
        bits = high.apply("left_shift", 32).apply("bitwise_or", low).apply("right_shift", 64 - digits)
    else:
        bits = high.apply("right_shift", 32 - digits)
    bits = bits.to(torch.int64 if digits > 31 else torch.int32)
    return (bits + more if more else bits).to(computation_dtype(dtype)) * 2.0**-digits


def uniform(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """rand, rand_like."""
    out = meta(node)
    return emitter.cast(_uniform(emitter, out, _real(out.dtype)).value, out.dtype)


def normal(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """randn, randn_like."""
    out = meta(node)
    return emitter.cast(_normal(emitter, out).value, out.dtype)


def normal_functional(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out = meta(node)
    return emitter.cast((_normal(emitter, out) * argument(node, "std") + argument(node, "mean")).value, out.dtype)


def integers(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """randint, randint_like: 64 bits modulo the number of ints, which favours none by more than a part in 2**64 / (high - low)."""
    out = meta(node)
    names = [a.name for a in node.target._schema.arguments]  # type: ignore[union-attr]
    low, high = argument(node, "low") if "low" in names else 0, argument(node, "high")
    if not isinstance(low, int) or not isinstance(high, int):
        raise Unmapped("random ints within bounds of any size")
    a, b, _, _ = words(emitter, out)
    drawn = a.apply("left_shift", 32).apply("bitwise_or", b).apply("remainder", high - low).to(torch.int64) + low
    return emitter.cast(drawn.value, out.dtype)


def bernoulli(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """1 with the probability p, or with that in each element of the operand."""
    out = meta(node)
    given = argument(node, "p") if len(node.args) > 1 or "p" in node.kwargs else emitter.env[node.args[0]]
    real = given.dtype if isinstance(given, GraphValue) else torch.float32
    if argument(node, "generator") is not None:
        raise Unmapped("a generator of the user's")
    drawn = _uniform(emitter, out, _real(real))
    limit = emitter.value(given, drawn.value.dtype)
    return emitter.cast(emitter.apply("less", [drawn.value, limit]), out.dtype)


def dropout(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    """native_dropout: the operand, where it is not dropped, divided by the probability that it is not; and the mask."""
    x, p = emitter.env[node.args[0]], argument(node, "p")
    out = meta(node)[0]
    if argument(node, "train") is False or p == 0:
        return [x, emitter.expand(emitter.constant(True, torch.bool), sizes(out))]
    if p == 1:
        return [emitter.apply("multiply", [x, emitter.constant(0, x.dtype)]), emitter.expand(emitter.constant(False, torch.bool), sizes(out))]
    kept = emitter.apply("less", [_uniform(emitter, out, torch.float32).value, emitter.constant(1 - p, torch.float32)])
    scaled = emitter.apply("multiply", [x, emitter.constant(1 / (1 - p), x.dtype)])
    return [emitter.apply("multiply", [scaled, emitter.cast(kept, x.dtype)]), kept]


def _real(dtype: torch.dtype) -> torch.dtype:
    if dtype not in DIGITS:
        raise Unmapped(f"random numbers of {dtype}")
    return dtype


def _uniform(emitter: Emitter, out: torch.Tensor, dtype: torch.dtype) -> GraphNumber:
    a, b, _, _ = words(emitter, out)
    return fraction(a, b, dtype)


def _normal(emitter: Emitter, out: torch.Tensor) -> GraphNumber:
    """The transformation of Box and Muller (1958)."""
    dtype = computation_dtype(_real(out.dtype))
    a, b, c, d = words(emitter, out)
    radius = (fraction(a, c, dtype, 1).apply("log") * -2.0).apply("sqrt")
    return radius * (fraction(b, d, dtype) * (2 * math.pi)).apply("cos")
