"""Compares torch.compile(backend=cinductor) with eager: values, strides, shared memory, effects, gradients.

Test modules import this module before torch: if torch is not installed, they are skipped. It imports `torch._C`,
because this folder is itself importable as `torch` if torch is not installed.
"""

import copy
import os
import warnings

# The graphs are small, so one thread: spinning thread teams would only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest

pytest.importorskip("torch._C", reason="torch is not installed: make test-torch")

import torch  # noqa: E402
import torch._functorch.config  # noqa: E402
from torch._dynamo.exc import TorchRuntimeError  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import cinductor.torch  # noqa: E402

# Each test compiles, whatever an earlier run has left on the disk.
torch._functorch.config.enable_autograd_cache = False

TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-9, torch.complex64: 2e-5}
NARROW = {torch.bfloat16: 2e-2, torch.float16: 4e-3}


def compiled(fn, strict=True, **more):
    """The function or module compiled by cinductor. With strict, a refused or failed graph raises."""
    torch._dynamo.reset()
    return torch.compile(fn, backend=cinductor.torch.backend, options={"strict": strict}, **more)


def same_values(got, wanted, tolerance=None):
    assert type(got) is type(wanted), f"{type(got)} for {type(wanted)}"
    if not isinstance(wanted, torch.Tensor):
        assert got == wanted
        return
    assert got.requires_grad == wanted.requires_grad
    if wanted.is_nested:
        for a, b in zip(got.unbind(), wanted.unbind()):
            same_values(a, b, tolerance)
        return
    if wanted.layout != torch.strided:
        got, wanted = got.to_dense(), wanted.to_dense()
    if tolerance is None:
        tolerance = (TOLERANCES | NARROW).get(wanted.dtype, 0)
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert got.stride() == wanted.stride(), f"strides {got.stride()}, eager's are {wanted.stride()}"


def memory(tensors):
    """For each tensor: the number of the first tensor that shares its storage, and its offset from that one."""
    tensors = [t for t in tensors if t.numel()]
    keys = [t.untyped_storage().data_ptr() for t in tensors]
    first = [keys.index(k) for k in keys]
    return [(n, t.storage_offset() - tensors[n].storage_offset()) for n, t in zip(first, tensors)]


def strided(values):
    return [v for v in values if isinstance(v, torch.Tensor) and v.layout == torch.strided and not v.is_nested]


def outcome(fn, make, backward):
    """Results, arguments after the call, and the generator's state; or the exception."""
    torch.manual_seed(7)
    arguments = make()
    try:
        result = fn(*arguments)
    except Exception as error:
        return type(error), str(error), [tree_leaves(arguments)]
    if backward:
        total = sum(t.abs().sum() for t in strided(tree_leaves(result)) if t.requires_grad)
        total.backward()
    states = [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]
    return tree_leaves(result), tree_leaves(arguments), torch.cat([s.view(torch.uint8) for s in states])


def check(fn, fast, make, backward=False, tolerance=None):
    """Call both once and compare."""
    wanted, got = outcome(fn, make, backward), outcome(fast, make, backward)
    if isinstance(wanted[0], type):
        is_of_dynamo = got[0] is TorchRuntimeError and issubclass(got[0], wanted[0])  # while it traced
        assert got[:2] == wanted[:2] or is_of_dynamo
        return
    assert not isinstance(got[0], type), f"raises {got[:2]}"
    for ours, theirs in zip(got[:2], wanted[:2]):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same_values(a, b, tolerance)
            if isinstance(b, torch.Tensor) and b.is_leaf and b.grad is not None:
                same_values(a.grad, b.grad, tolerance)
    assert memory(strided(got[0] + got[1])) == memory(strided(wanted[0] + wanted[1]))
    assert torch.equal(got[2], wanted[2]), "the generator's state differs from eager's"


def agree(fn, *makes, backward=False, strict=True, tolerance=None, **more):
    """Call the compiled function with the arguments of each maker, and compare with eager. A module is copied, so
    that both start with the same parameters and buffers, which are compared, too.
    """
    if isinstance(fn, torch.nn.Module):
        other = copy.deepcopy(fn)
        fast = compiled(other, strict, **more)
    else:
        fast = compiled(fn, strict, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cinductor.CinductorWarning)
        for make in makes:
            check(fn, fast, make, backward, tolerance)
    if isinstance(fn, torch.nn.Module):
        for (name, a), (_, b) in zip(other.state_dict().items(), fn.state_dict().items()):
            torch.testing.assert_close(a, b, msg=lambda text, name=name: f"{name}: {text}")
        for (name, a), (_, b) in zip(other.named_parameters(), fn.named_parameters()):
            if b.grad is not None:
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
