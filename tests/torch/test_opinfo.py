"""Runs a sample of torch's op database compiled and compares it with eager; see opinfo.py."""

import random
import re

import pytest
from agreement import same_values  # noqa: F401  (skips without torch)

pytest.importorskip("expecttest")  # required by torch.testing._internal

import torch  # noqa: E402
from opinfo import OPEN, check, op_db  # noqa: E402

DTYPES = [torch.float32, torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64]


def sample(seed, n):
    """Pairs of an op and a dtype that eager supports."""
    draw, pairs = random.Random(seed), []
    ops = [op for op in op_db if not re.search(OPEN, op.name)]
    while len(pairs) < n:
        op, dtype = draw.choice(ops), draw.choice(DTYPES)
        if dtype in op.dtypes:
            pairs.append((op, dtype))
    return pairs


@pytest.mark.parametrize(("op", "dtype"), [pytest.param(*p, id=f"{p[0].formatted_name}-{p[1]}") for p in sample(36, 60)])
def test_op(op, dtype):
    torch.manual_seed(0)
    check(op, dtype, 2)
