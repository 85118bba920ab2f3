"""Models of tests/torch/models.py: inference, gradients and 20 training steps as eager has them, all graphs compiled."""

import copy

import pytest
from agreement import agree, compiled

# isort: split
import torch
from models import MODELS, Decoder


@pytest.fixture(params=MODELS, name="made")
def _made(request):
    torch.manual_seed(0)
    cls, make = MODELS[request.param]
    return cls(), make


def test_inference(made):
    model, make = made
    with torch.no_grad():
        agree(model.eval(), make, make, tolerance=1e-4)


def test_twenty_steps(made):
    """Losses of each step, gradients of the first one, and all parameters and buffers at the end."""
    model, make = made
    other = copy.deepcopy(model)
    runs = [train(m, step, make) for m, step in ((model, model), (other, compiled(other, fullgraph=True)))]
    for (a, b) in zip(*runs):
        torch.testing.assert_close(b, a, rtol=2e-3, atol=2e-4)
    for (name, a), (_, b) in zip(model.state_dict().items(), other.state_dict().items()):
        torch.testing.assert_close(b, a, rtol=2e-3, atol=2e-3, msg=lambda text, name=name: f"{name}: {text}")


def train(model, step, make):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    arguments, found = make(), []
    for k in range(20):
        optimizer.zero_grad()
        loss = step(*arguments).square().mean()
        loss.backward()
        if k == 0:
            found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        optimizer.step()
        found.append(loss.detach())
    return found


def test_a_decoder_writes_its_cache():
    torch.manual_seed(0)
    model = Decoder()
    fast = compiled(model.step, fullgraph=True)
    caches = [[torch.zeros(1, 2, 5, 8) for _ in range(2)] for _ in range(2)]
    with torch.no_grad():
        for at in range(4):
            token, place = torch.tensor([[at * 3]]), torch.tensor([at])
            wanted, got = model.step(token, place, *caches[0]), fast(token, place, *caches[1])
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    for a, b in zip(*caches):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
