"""Tests inputs that are no plain tensors: right by eager, or a refusal that names them."""

import pytest
from agreement import agree, compiled, same_values

# isort: split
import torch

import cinductor.torch


@pytest.mark.parametrize(
    "make",
    [
        lambda: (torch.randn(4, dtype=torch.complex64).conj(),),
        lambda: (torch.randn(4, dtype=torch.complex64).conj().imag,),
        lambda: (torch._neg_view(torch.randn(4)),),
    ],
)
def test_lazy_bits(make):
    agree(lambda x: (x * 2, x + x), make)


def test_lazy_bits_of_results():
    """Such a result has memory of its own, as its values are not those in the memory it is a view of."""
    fast = compiled(lambda x: (y := x * 2, y.conj(), y.conj().imag))
    x = torch.randn(3, dtype=torch.complex64)
    for got, wanted in zip(fast(x), (x * 2, (x * 2).conj(), -2 * x.imag)):
        torch.testing.assert_close(got, wanted)
    agree(lambda x: torch.linalg.eig(x), lambda: (torch.randn(4, 4, requires_grad=True),), backward=True, tolerance=1e-4)


class Named(torch.Tensor):
    """A subclass that keeps its class in the results of functions."""


REFUSED = {
    "Named of layout torch.strided": lambda: torch.ones(3).as_subclass(Named),
    "Tensor of layout torch.strided on meta": lambda: torch.ones(3, device="meta"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_inputs_that_are_refused(kind):
    """Eager runs the graph, and a strict one names the argument."""

    def fn(factor, given):
        return given.cos().shape if given.is_meta else given * factor, factor + 1

    make = lambda: (torch.tensor(2.0), REFUSED[kind]())  # noqa: E731
    for a, b in zip(compiled(fn, strict=False, fullgraph=True)(*make()), fn(*make()), strict=True):
        same_values(a, b)
    with pytest.raises(Exception, match=rf"L\['given'\] is a {kind}"):
        compiled(fn, fullgraph=True)(*make())
    report = cinductor.explain(compiled(fn), *make())
    assert [g.name for g in report.graphs] == ["graph"] and "run by eager: L['given'] is a" in str(report)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.eye(3).to_sparse_csc(),
        lambda: torch.eye(4).to_sparse_bsr((2, 2)),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.quantize_per_tensor(torch.linspace(-1, 1, 5), 0.1, 0, torch.quint8),
    ],
)
def test_inputs_that_dynamo_captures_no_graph_of(make):
    agree(lambda x, y: (x.dequantize() if x.is_quantized else x.to_dense() if x.is_sparse else x * 2, y + 1), lambda: (make(), torch.ones(3)), strict=False, fullgraph=False)


def test_nested_tensors_whose_parts_are_in_one_memory():
    def fn(x):
        return (x * 2).sin(), x.values() + x.shape[0], x.sum(1)

    makes = [lambda sizes=sizes: (torch.nested.nested_tensor([torch.randn(n, 3) for n in sizes], layout=torch.jagged),) for sizes in ((2, 4), (3, 1, 5))]
    agree(fn, *makes)


def test_what_torch_says_wrongly_of_a_result_is_eager_s():
    """The meta function calls it a tensor of bytes."""

    def fn(x):
        return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)

    x = torch.linspace(-1, 1, 5)
    assert torch.equal(compiled(fn, strict=False)(x), fn(x))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.ones(3, device="meta") + 1,
        lambda x: torch.zeros(3, device="meta").to(torch.int32),
    ],
)
def test_tensors_that_a_graph_makes_are_refused_by_name(fn):
    x = torch.ones(3)
    got, wanted = compiled(fn, strict=False)(x), fn(x)
    assert (got.device, got.dtype, got.shape) == (wanted.device, wanted.dtype, wanted.shape)
    with pytest.raises(Exception, match="gives a FakeTensor of layout"):
        compiled(fn, fullgraph=True)(x)
