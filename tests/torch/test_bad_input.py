"""Tests inputs, hooks and installations that a graph does not expect: right through eager, or one clear refusal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from agreement import agree, compiled, same_values

# isort: split
import torch

PYTHON = Path(__file__).parents[2] / "python"


class Override(torch.Tensor):
    """A subclass that sees each function."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapper(torch.Tensor):
    """A subclass around a plain tensor, which torch does not take apart."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = torch.utils._pytree.tree_map_only(Wrapper, lambda x: x.inner, (args, kwargs or {}))
        made = func(*plain[0], **plain[1])
        return Wrapper(made) if isinstance(made, torch.Tensor) else made


def scaled(x, factor):
    return (x * factor).sin()


INPUTS = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "compressed sparse": lambda: torch.eye(3).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "a subclass that overrides functions": lambda: torch.ones(3).as_subclass(Override),
    "a subclass around a tensor": lambda: Wrapper(torch.ones(3)),
    "a conjugate": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "a negative": lambda: torch._neg_view(torch.ones(3)),
    "a view of a conjugate": lambda: torch.view_as_real(torch.ones(3, dtype=torch.complex64).conj().resolve_conj())[1:],
    "a tensor of no elements": lambda: torch.ones(0, 3),
    "an expanded tensor": lambda: torch.ones(1).expand(4),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_inputs_are_right_or_eagers(kind):
    x = INPUTS[kind]()
    got, wanted = compiled(scaled, strict=False)(x, 2.0), scaled(x, 2.0)
    assert type(got) is type(wanted)
    if isinstance(x, Wrapper):
        got, wanted = got.inner, wanted.inner
    same_values(got, wanted)


def test_a_quantised_tensor_is_eagers():
    x = torch.quantize_per_tensor(torch.linspace(-1, 1, 5), 0.1, 0, torch.quint8)
    agree(lambda x: x.dequantize() * 2, lambda: (x,), strict=False)


def test_a_meta_tensor_gives_one():
    got = compiled(scaled, strict=False)(torch.ones(3, device="meta"), 2.0)
    assert got.is_meta and got.shape == (3,)


def test_a_gradient_hook_frees_an_argument():
    """A hook on the result empties an argument that the backward graph reads: an error that says so."""
    weight, x = torch.randn(300, 300, requires_grad=True), torch.randn(300, 300)
    y = compiled(lambda x, w: (x * w).sin())(x, weight)

    def free(gradient):
        x.untyped_storage().resize_(0)

    y.register_hook(free)
    with pytest.raises(RuntimeError, match="storage"):
        y.sum().backward()


def test_a_pre_hook_replaces_an_argument():
    model = torch.nn.Linear(3, 2)
    model.register_forward_pre_hook(lambda module, arguments: (arguments[0].repeat(2, 1),))
    agree(model, lambda: (torch.ones(2, 3),), backward=True)


def test_a_gradient_of_a_gradient_is_refused():
    x = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad(compiled(lambda x: x.sin() * x)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        g.sum().backward()


def python(*lines, **variables):
    """Runs lines in a process of its own and returns its output."""
    environment = {**os.environ, "PYTHONPATH": str(PYTHON), **variables}
    run = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, env=environment, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_torch_without_the_functions_that_a_call_needs():
    """As an older torch: eager runs the graph, and a strict one names the version."""
    lines = [
        "import torch, cinductor.torch",
        "torch.__version__ = torch.torch_version.TorchVersion('2.9.1')",
        "del torch.Tensor.__dlpack_c_exchange_api__",
        "fn = lambda x: x * 2 + 1",
        "make = lambda strict: torch.compile(fn, backend=cinductor.torch.backend, options={'strict': strict})",
        "assert torch.equal(make(False)(torch.ones(3)), torch.full((3,), 3.0))",
        "torch._dynamo.reset()",
        "try:",
        "    make(True)(torch.ones(3))",
        "except Exception as error:",
        "    print(str(error).splitlines()[1])",
    ]
    assert "torch 2.9.1 lacks functions that C calls" in python(*lines)


def test_no_torch_at_all():
    """cinductor imports without torch, and the backend names the module that is missing."""
    lines = [
        "import sys",
        "sys.modules['torch'] = None",
        "import cinductor, cinductor.torch, numpy",
        "print(cinductor.compile(lambda x: x + 1)(numpy.ones(2)))",
        "try:",
        "    cinductor.torch.backend(None, ())",
        "except ImportError as error:",
        "    print(error)",
    ]
    assert "[2. 2.]" in (out := python(*lines)) and "torch" in out
