"""Models of tests/torch/models.py: inference, gradients and 20 training steps, all graphs compiled.

A run in float64 says how wrong eager's float32 is. Sums in another order may be as wrong, and no more.
"""

import copy
import runpy
from pathlib import Path

import pytest
from agreement import compiled

# isort: split
import torch
import torch.nn.functional as F
from models import MODELS, Decoder
from torch._dynamo.backends.registry import list_backends, register_backend
from torch.overrides import TorchFunctionMode

import cinductor.torch

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch has no CUDA device here")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_gpu)])
def device(request):
    with torch.backends.cudnn.flags(allow_tf32=False):
        yield request.param


@pytest.fixture(params=MODELS, name="made")
def _made(request, device):
    torch.manual_seed(0)
    cls, make = MODELS[request.param]
    return cls().to(device), lambda: tuple(t.to(device) for t in make())


class DrawnInFloat(TorchFunctionMode):
    """Random numbers of a run in float64 are those of a run in float32."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.randn_like:
            return torch.randn_like(args[0].float()).double()
        if function is F.dropout:
            return args[0] * F.dropout(torch.ones_like(args[0].float()), *args[1:]).double()
        return function(*args, **(kwargs or {}))


def in_double(call, model, *more):
    with DrawnInFloat():
        return call(copy.deepcopy(model).double(), *more)


def rms(t):
    return t.double().square().mean().sqrt().item()


def no_more_wrong(got, wanted, exact, name=""):
    """The error is at most 4 times eager's own, or 16 units in the last place."""
    assert got.shape == wanted.shape == exact.shape and got.dtype == wanted.dtype, name
    if not wanted.dtype.is_floating_point:
        assert torch.equal(got, wanted), name
        return
    allowed = 4 * rms(wanted - exact) + 16 * torch.finfo(got.dtype).eps * rms(exact)
    assert rms(got - exact) <= allowed, f"{name}: error {rms(got - exact):.2e}, eager's {rms(wanted - exact):.2e}"


def inferred(model, step, make):
    torch.manual_seed(1)
    arguments = [a.to(next(model.parameters()).dtype) if a.is_floating_point() else a for a in make()]
    with torch.no_grad():
        return step(*arguments)


def test_inference(made):
    model, make = made
    model.eval()
    fast = compiled(model, fullgraph=True)
    wanted, exact = inferred(model, model, make), in_double(lambda m: inferred(m, m, make), model)
    for _ in range(2):
        got = inferred(model, fast, make)
        no_more_wrong(got, wanted, exact)
        assert got.stride() == wanted.stride()


def test_twenty_steps(made):
    """Gradients of the first step, losses of each, and all parameters and buffers at the end."""
    model, make = made
    other = copy.deepcopy(model)
    exact = in_double(lambda m: train(m, m, make), model)
    wanted, got = train(model, model, make), train(other, compiled(other, fullgraph=True), make)
    assert list(got) == list(wanted) == list(exact)
    for name in wanted:
        no_more_wrong(got[name], wanted[name], exact[name], name)


def train(model, step, make):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    arguments, found = [a.to(next(model.parameters()).dtype) if a.is_floating_point() else a for a in make()], {}
    for k in range(20):
        optimizer.zero_grad()
        loss = step(*arguments).square().mean()
        loss.backward()
        if k == 0:
            found |= {f"gradient of {name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
        found[f"loss {k}"] = loss.detach()
    return found | model.state_dict()


def test_a_decoder_writes_its_cache():
    torch.manual_seed(0)
    model = Decoder()
    fast = compiled(model.step, fullgraph=True)
    caches = [[torch.zeros(1, 2, 5, 8, dtype=d) for _ in range(2)] for d in (torch.float32, torch.float32, torch.float64)]
    with torch.no_grad():
        for at in range(4):
            token, place = torch.tensor([[at * 3]]), torch.tensor([at])
            wanted, got = model.step(token, place, *caches[0]), fast(token, place, *caches[1])
            exact = in_double(lambda m: m.step(token, place, *caches[2]), model)  # noqa: B023
            no_more_wrong(got, wanted, exact)
    for a, b, c in zip(*caches):
        no_more_wrong(b, a, c)


def test_the_losses_of_the_example(capsys):
    """examples/digits_torch.py, shorter: eager and cinductor train alike."""
    pytest.importorskip("sklearn")
    if "cinductor" not in list_backends():  # the package is not installed
        register_backend(cinductor.torch.backend, name="cinductor")
    example = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples/digits_torch.py"))
    threads = torch.get_num_threads()
    try:
        assert example["main"]("cpu", 2) < 1e-6
    finally:
        torch.set_num_threads(threads)
    assert "the losses differ by at most" in capsys.readouterr().out
