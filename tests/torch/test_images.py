"""Tests how images are stored around convolutions, and gradients of pooling."""

import agreement
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cinductor

LARGE = 24  # pixels along an axis, for which a convolution of 32 channels is a library call


class Residual(nn.Module):
    """Convolutions, a normalisation, a sum and pooling, all of images."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.norm, self.up = nn.BatchNorm2d(32), nn.ConvTranspose2d(32, 32, 2, 2)

    def forward(self, x):
        a = F.max_pool2d(F.relu(self.first(x)), 2)
        b = F.relu(self.norm(self.second(a)) + a)
        return b, self.up(b) * 0.1


def images(n=2, size=LARGE):
    return torch.randn(n, 3, size, size)


def test_convolutions_of_inference_have_channels_last():
    model = Residual().eval()
    with torch.no_grad():
        (graph,) = cinductor.explain(model, images()).graphs
    lines = graph.program.text("graph").splitlines()
    calls = [line for line in lines if f"[2,32,{LARGE // 2},{LARGE // 2}]" in line and "extern" in line]
    assert calls and all(" order [0,2,3,1] = " in line for line in calls)
    made = [line for line in lines if f"[2,32,{LARGE // 2},{LARGE // 2}]" in line and " = add(" in line]
    assert made and all(" order [0,2,3,1] = " in line for line in made)  # what is computed between them, too


@pytest.mark.parametrize("dynamic", [False, True])
def test_results_and_gradients_have_eager_s_strides(dynamic):
    torch.manual_seed(0)
    model = Residual()
    fast = agreement.compiled(model, dynamic=dynamic)
    for n in (2, 3):
        x = images(n)
        made, wanted = [], []
        for found, call in (made, fast), (wanted, model):
            model.zero_grad()
            model.norm.reset_running_stats()
            a, b = call(x)
            (a.square().mean() + b.mean()).backward()
            found += [a.detach(), b.detach(), *(p.grad.clone() for p in model.parameters())]
        for a, b in zip(made, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
            assert a.stride() == b.stride()


@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (3, 2, 1), (2, 3, 0), (3, 1, 1), (5, 1, 2)])
def test_gradients_of_maxima(kernel, stride, padding, size):
    """Of windows with gaps, windows that share places, and more windows of a place than are read one by one; with equal elements."""
    x = torch.randint(0, 4, (2, 3, size, size)).float().requires_grad_()

    def fn(x):
        return F.max_pool2d(x, kernel, stride, padding, ceil_mode=size == 9).square()

    fast = agreement.compiled(fn)
    grads = [torch.autograd.grad(f(x).sum(), x)[0] for f in (fast, fn)]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("fn", [lambda x: x.repeat(2, 1, 2), lambda x: (x.tile(2, 1, 2), x + 1)])
def test_results_have_the_strides_of_ops_that_are_decomposed(fn, grad):
    """torch's decomposition of repeat has another order of axes than the op."""
    agreement.agree(fn, lambda: (torch.randn(6, 1, requires_grad=grad),), backward=grad)
