"""Tests CPU tensors in compiled functions of NumPy: their conversions are inputs of the program, and share the tensors' memory."""

import agreement  # noqa: F401  (skips without torch)
import numpy as np
import pytest
import torch

import cinductor

CONVERSIONS = (np.asarray, np.from_dlpack, lambda t: t.numpy(), lambda t: np.array(t, copy=None)[...])


def tensor(n=6):
    return torch.arange(n, dtype=torch.float64) + 0.5


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_a_conversion_is_an_input(convert):
    def f(x, out):
        convert(out)[:] = convert(x) * 2 + 1
        return convert(x).sum()

    g = cinductor.compile(f)
    for n in (6, 9, 6):
        wanted, got = tensor(n), tensor(n)
        assert f(tensor(n), wanted) == g(tensor(n), got) and torch.equal(wanted, got)
    assert cinductor.explain(g, tensor(), tensor()).breaks == []


def test_tensors_of_one_memory():
    def f(x, out):
        a, b = x.numpy(), out.numpy()
        b[:] = a * 2
        return a + b

    g = cinductor.compile(f)
    for first, second in ((slice(0, 6), slice(6, 12)), (slice(0, 6), slice(3, 9)), (slice(0, 6), slice(0, 6))):
        both = [tensor(12), tensor(12)]
        wanted, got = (h(t[first], t[second]) for h, t in zip((f, g), both, strict=True))
        assert np.array_equal(wanted, got) and torch.equal(*both)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tensor().requires_grad_(),
        lambda: torch.nn.Parameter(tensor()),
        lambda: tensor().to(torch.bfloat16),
        lambda: tensor().to(torch.complex64).conj(),
        lambda: torch.zeros((), dtype=torch.int32),
        lambda: tensor(12).reshape(3, 4).t()[::2],
    ],
)
def test_what_torch_refuses_raises_at_its_place(make):
    def f(x):
        return np.asarray(x).sum()

    g = cinductor.compile(f)
    for given in (tensor(), make(), make(), tensor()):
        outcomes = []
        for h in (f, g):
            try:
                outcomes.append(h(given))
            except (RuntimeError, TypeError) as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_operators_of_tensors_say_what_compiles_them():
    found = cinductor.explain(lambda t: t * 2, tensor()).breaks
    assert len(found) == 1 and 'torch.compile(fn, backend="cinductor")' in found[0].row.hint
