"""Tests the demanded-bits pass, which removes masks of bits that no later operation reads. Programs are random
operations on integers of every type, with a mask after most steps.
"""

import random

import numpy as np
import pytest

import cinductor

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def random_program(seed, dtype):
    """Source of f(a, b), whose final results are masked and shifted."""
    rng, bits = random.Random(seed), np.iinfo(dtype).bits
    most = (1 << (bits - 1)) - 1
    lines, names = ["def f(a, b):"], ["a", "b"]
    for k in range(rng.randint(4, 14)):
        x, y, by = rng.choice(names[-4:]), rng.choice(names), rng.randrange(bits)
        mask = rng.choice([0xFF, 0x0F, 0x7F, 0x55, 1 << (bits - 2), most]) & most
        step = rng.choice(["{x} & {m}"] * 4 + [
            "{x} << {by}", "{x} >> {by}", "{x} ^ {y}", "{x} | {m}", "{x} + {y}", "{x} - {y}", "{x} * {y}", "~{x}", "-{x}",
            "np.where({y} > 3, {x}, {y})", "{x}.astype(np.{other}).astype(np.{dtype})",
        ])  # fmt: skip
        lines.append(
            f"    v{k} = "
            + step.format(x=x, y=y, m=mask, by=by, other=rng.choice(TYPES), dtype=dtype)
        )
        names.append(f"v{k}")
    return "\n".join(
        [
            *lines,
            f"    return {names[-1]} & {rng.choice([0x0F, 0x7F, 1])}, {names[-2]} >> 2, {names[-3]} & {most}",
        ]
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_every_bit_that_is_asked_for_is_there(dtype):
    info = np.iinfo(dtype)
    for seed in range(120):
        names, rng = {"np": np}, np.random.default_rng(seed)
        source = random_program(seed, dtype)
        exec(source, names)
        a, b = (rng.integers(info.min, info.max, 17, dtype=dtype, endpoint=True) for _ in range(2))
        with np.errstate(all="ignore"):
            want = names["f"](a, b)
        got = cinductor.compile(names["f"], backend="interp")(a, b)
        for expected, found in zip(want, got):
            assert found.dtype == expected.dtype and np.array_equal(found, expected), source
