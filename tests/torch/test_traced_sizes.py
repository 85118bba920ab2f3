"""Tests sizes that torch traces as symbols, also those that data decide."""

import math

import pytest
from agreement import agree, check, compiled
from features import rand

# isort: split
import torch
import torch.nn.functional as F


def test_one_graph_for_five_sizes():
    def fn(x, w):
        return F.softmax(x @ w, -1).sum(0), x.shape[0] * 2

    agree(fn, *(rand((n, 4), (4, 5)) for n in (2, 3, 7, 1, 16)), dynamic=True)


def test_one_graph_for_all_sizes_of_images():
    """Sizes with any remainder: how many elements a window lacks at the edge differs."""

    def fn(x):
        pooled = F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1, 1, True, True), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, ceil_mode=True)
        image = F.interpolate(F.avg_pool2d(x, 2), size=x.shape[-2:], mode="bilinear")
        return *pooled, F.adaptive_avg_pool2d(x, (4, 3)), image, (image.contiguous(memory_format=torch.channels_last) * 2).mean((2, 3))

    def make(*sizes):
        def made():
            x = torch.rand(2, 3, *sizes)
            for axis in (2, 3):
                torch._dynamo.mark_dynamic(x, axis)
            return [x]

        return made

    has_guards = torch.__version__ < (2, 12)  # of its own, on what a size leaves over
    with torch._dynamo.config.patch(error_on_recompile=not has_guards):
        agree(fn, make(16, 16), make(21, 24), make(18, 31), make(17, 19))


def test_sizes_that_break_a_guard():
    """Sizes that are equal in the first call, but not in later ones."""

    def fn(a, b):
        return a + b if a.shape[0] == b.shape[0] else a.sum() + b

    agree(fn, rand((4,), (4,)), rand((6,), (6,)), rand((4,), (3,)), rand((3,), (1,)), rand((1,), (5,)), dynamic=True)


def test_sizes_that_do_not_fit_raise_eager_s_error():
    agree(lambda a, b: a * b + 1, rand((4,), (4,)), rand((5,), (5,)), dynamic=True, fullgraph=True)
    fast = compiled(lambda a, b: a * b + 1, dynamic=True)
    fast(torch.randn(4), torch.randn(4))
    with pytest.raises(Exception, match="must match the size|not broadcastable|size"):
        fast(torch.randn(4), torch.randn(3))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.reshape(-1, 2).sum(1),
        lambda x: x[1:-1] + x[2:],
        lambda x: x[: x.shape[0] // 2],
        lambda x: torch.arange(x.shape[0]) + x.shape[0] * 3,
        lambda x: x.unfold(0, 3, 2).mean(1),
        lambda x: F.pad(x, (1, x.shape[0] % 5)),
        lambda x: x.new_zeros(x.shape[0] + 1),
        lambda x: (x.view(2, -1).t().contiguous(), x.flip(0)),
        lambda x: torch.cat([x, x[:3]]).cumsum(0),
        lambda x: x.mean() / x.numel(),
        lambda x: x * max(x.shape[0], 10),
        lambda x: (x * (x.shape[0] / 3) + x.shape[0] ** 0.5 - x.shape[0] // 3 / 7, x.shape[0] / 4),
        lambda x: (x.quantile(0.3), x.std(0)),
        lambda x: (x[: int(x.shape[0] * 0.7)] * 2, x.new_ones(round(x.shape[0] / 3), math.ceil(x.shape[0] * 0.3)), torch.arange(int(x.shape[0] ** 0.5)), int(x.shape[0] / 1.7)),
        lambda x: x[math.floor(math.floor(x.shape[0] * 0.9) * 0.4) :].exp() + math.ceil(x.shape[0] / 3),
        lambda x: F.interpolate(F.interpolate(x.view(1, 2, -1), scale_factor=1.5, mode="linear"), scale_factor=0.4),
        lambda x: x.add_(x.shape[0]).mul_(2),
    ],
)
def test_arithmetic_of_sizes(fn):
    agree(fn, *(rand((n,)) for n in (8, 12, 26)), dynamic=True)


def test_dynamic_training():
    agree(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)), *(rand((n, 4)) for n in (3, 5, 9)), backward=True, dynamic=True)
    agree(lambda x: (x.var(), x.std(0)), *(rand((n, 4), requires_grad=True) for n in (3, 5)), backward=True, dynamic=True)
    agree(lambda x: (x[: int(x.shape[0] * 0.7)].exp(), F.interpolate(x[None, None], scale_factor=1.3)), *(rand((n, 4), requires_grad=True) for n in (5, 9)), backward=True, dynamic=True)


def test_float_arguments():
    def fn(x, s):
        return x * s + s / 2, x - s

    fast = compiled(fn, dynamic=True)
    for s in (1.5, 2.25, -0.5):
        check(fn, fast, lambda s=s: (torch.ones(4), s))


@pytest.fixture(name="captures_data")
def _captures_data():
    """Dynamo captures sizes and numbers that data decide, where it would cut the graph."""
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def sizes_of_data(x):
    y = x[x > 0]
    i = x.nonzero()[:, 0]
    return y * 2, torch.cat([y, y]), y.sum(), y.softmax(0), y.view(-1, 1) @ y.view(1, -1), x[i] + 1, i.shape, x.masked_select(x > 0.5).exp(), y.numel() * 2


def distinct_values(x):
    return torch.unique((x * 2).long(), return_inverse=True, return_counts=True), torch.zeros(4).repeat_interleave((x.abs() * 2).long()[:4])


def numbers_of_data(x):
    n = x.argmax().item()
    return torch.zeros(9)[:n] + n, x * x.max().item(), n - 7, (x > 0).sum().item(), torch.full((n,), 1.0)


@pytest.mark.parametrize("fn", [sizes_of_data, distinct_values, numbers_of_data])
def test_sizes_that_data_decide(fn, captures_data):
    agree(fn, rand((6,)), lambda: (torch.randn(6).abs(),), lambda: (-torch.ones(6),), fullgraph=True)


@pytest.mark.parametrize("fn", [lambda x: x.new_ones(int(x.abs().sum().item()) + 1).cumsum(0), lambda x: x[: x.argmax().item()]])
def test_sizes_that_data_decide_by_eager(fn, captures_data):
    agree(fn, rand((6,)), strict=False, fullgraph=True)


def test_gradients_of_sizes_that_data_decide(captures_data):
    agree(lambda x: (x[x > 0] * x.sum()).exp(), *[lambda: (torch.randn(6, requires_grad=True),)] * 2, backward=True, fullgraph=True)
