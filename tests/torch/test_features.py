"""Tests aliases, writes, AOTAutograd's cache, random numbers and errors."""

import functools
import sys

import pytest
from agreement import agree, compiled
from features import cinductor_backend, rand, twice

# isort: split
import torch
import torch.nn.functional as F

import cinductor.torch

# ---- memory ----


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (y := x * 2, y.t(), y[1:]),
        lambda x: ((x * 2)[1:], (x + 1)[:, ::2]),
        lambda x: (x, x.t(), x[1:]),
        lambda x: (y := x + 1, y),
        lambda x: ((y := x + 1).view(-1), y.reshape(4, 3)),
        lambda x: x.exp().unbind(1),
        lambda x: torch.split(x * 2, 2),
        lambda x: (x * 2).expand(2, 3, 4),
        lambda x: (x[1] * 2).unsqueeze(0).expand(5, 4),
        lambda x: (x * 2).t().contiguous().t(),
        lambda x: x.detach(),
        lambda x: (x * 2).diagonal(),
        lambda x: torch.fft.fft(x).real,
        lambda x: (y := torch.fft.fft(x), y.imag, torch.view_as_real(y)),
        lambda x: (y := x * 2, y.view(torch.int32)[1:], y.view(torch.float64)),
        lambda x: (x.double() * 2).view(torch.int16)[:, 3],
    ],
)
def test_outputs_share_memory_as_eager_s_do(fn):
    agree(fn, rand((3, 4)))


def test_channels_last_strides_stay():
    def fn(x, w):
        y = F.conv2d(x, w, padding=1).relu()
        return y, y + 1, y.mean(1), F.max_pool2d(y, 2)

    agree(fn, lambda: (torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last), torch.randn(4, 3, 3, 3)))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.add_(1),
        lambda x: (x[1:].mul_(2), x.sum())[1],
        lambda x: (x.t().add_(torch.arange(4.0)), x + 1),
        lambda x: (x[:2].add_(x[2:]), x * 1),
        lambda x: (x.copy_(x * 2 + 1), x.zero_(), None)[2],
        lambda x: (x.view(-1)[::2].fill_(3), x.clone()),
        lambda x: (x[:, 1].index_add_(0, torch.tensor([0, 0, 2]), torch.ones(3)), x.neg()),
        lambda x: x.relu_().add_(x),
    ],
)
def test_writes_arrive(fn):
    agree(fn, rand((4, 3)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_vector_product_is_rounded_as_eager_rounds_it(dtype):
    agree(lambda a, b: torch.linalg.cross(a, b), rand((200, 3), (200, 3), dtype=dtype), tolerance=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_running_sums_of_many_elements_are_as_exact_as_eager_s(dtype):
    agree(lambda x: ((x + 100).cumsum(0), (x * 1e-4 + 1).cumprod(0)), rand((100_000,), dtype=dtype))


def test_undefined_elements_are_filled_if_eager_is_deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        agree(lambda x: (torch.empty(3), torch.empty_like(x), x.new_empty(2, dtype=torch.int32)), rand((3,)))
    finally:
        torch.use_deterministic_algorithms(False)


def test_overlapping_inputs():
    def fn(a, b):
        a.add_(1)
        return b * 2

    def make():
        x = torch.randn(10)
        return x[:6], x[3:]

    agree(fn, make)


def test_an_input_twice():
    def fn(a, b):
        a.mul_(2)
        return a + b

    def make():
        x = torch.randn(5)
        return x, x

    agree(fn, make)


def test_inputs_with_strides_of_any_kind():
    agree(
        lambda a, b, c: a + b * c,
        lambda: (torch.randn(6, 8)[::2, ::2], torch.randn(4, 3).t(), torch.randn(1, 4).expand(3, 4)),
    )


def test_empty_and_numbers():
    agree(lambda x, y: (x.sum(), x * 2, y + 1, y.expand(0), torch.cat([x, x])), lambda: (torch.randn(0, 3), torch.tensor(2.5)))


# ---- the cache of AOTAutograd ----


@pytest.fixture(name="counts")
def _counts(tmp_path, monkeypatch):
    """Hits and misses of an empty cache, and how many graphs were emitted from real tracing."""
    from torch._dynamo.utils import counters

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    counters.clear()
    with torch._functorch.config.patch(enable_autograd_cache=True):
        yield lambda: tuple(counters["aot_autograd"][f"autograd_cache_{what}"] for what in ("hit", "miss", "saved"))
    counters.clear()


def test_a_kept_graph_is_used_again(counts, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch._inductor.codegen.wrapper", None)  # Inductor's code generators are not imported

    def net(x, w):
        y = x @ w
        return torch.tanh(y).relu(), F.dropout(x, 0.5, True), F.avg_pool2d(y[None], 2)

    make = lambda: (torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True))  # noqa: E731
    agree(net, make, backward=True)
    assert counts() == (0, 1, 1)
    agree(net, make, backward=True)
    assert counts() == (1, 1, 1)
    agree(net, make, backward=True, strict=False)  # other options: another entry
    assert counts() == (1, 2, 2)
    of_a_class = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 3))  # torch makes the class
    agree(of_a_class, rand((2, 4)))
    agree(of_a_class, rand((2, 4)))
    assert counts() == (2, 3, 3)


def test_a_kept_graph_has_its_sizes_and_guards(counts):
    def fn(x, y):
        return x[y.shape[0] :] * x.shape[0] + 1

    for _ in range(2):
        agree(fn, rand((10,), (3,)), rand((12,), (4,)), rand((5,), (9,)), dynamic=True)
    hits, misses, saved = counts()
    assert hits == misses == saved > 0


@pytest.mark.parametrize("fn", [lambda x: twice(x) + 1, lambda x: x.add_(torch.tensor([1.0, 2.0])), lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))])
def test_what_may_not_be_kept_is_compiled_again(counts, fn):
    for _ in range(2):
        agree(fn, rand((2,)), strict=False)


# ---- random numbers ----


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: F.dropout(x, 0.5, True),
        lambda x: F.dropout(F.dropout(x, 0.5, True), 0.2, True),
        lambda x: x + torch.rand(8) + torch.rand(8),
        lambda x: (torch.rand(4), torch.rand(4)),
        lambda x: torch.randn(3) * torch.randn_like(x)[:3],
        lambda x: (torch.randperm(8), torch.randint(0, 9, (4,)), torch.bernoulli(torch.sigmoid(x))),
        lambda x: torch.multinomial(x.exp(), 3),
        lambda x: x.clone().uniform_(0, 1) + x.clone().normal_(),
        lambda x: F.rrelu(x, training=True),
        lambda x: torch.rand_like((x[:, None] * x).t()[::2].t()),  # drawn in the order of memory
    ],
)
def test_random_numbers_are_eager_s(fn):
    agree(fn, rand((8,)))


def philox(key, at):
    """Four words of Philox4x32-10, by Python's ints; philox(0, 0) is the first known answer of Random123."""
    a, b, c, d, k, m = at, 0, 0, 0, key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ k, second & 0xFFFFFFFF, (first >> 32) ^ d ^ m, first & 0xFFFFFFFF
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def test_random_numbers_of_the_program():
    """With fused_random they follow from torch's seed alone, and have the moments of their distributions."""
    assert philox(0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)

    def fn(x):
        y = x[0]
        return (
            torch.rand(9), F.dropout(x, 0.25, True), torch.rand_like(x.t().bfloat16()), torch.randn_like(x), torch.randn(40, dtype=torch.float64),
            torch.randint(-3, 5, (4000,)), torch.bernoulli(torch.sigmoid(x)), torch.randn(4000).half(), y.clone().bernoulli_(0.3),
        )  # fmt: skip

    fast = torch.compile(fn, backend=cinductor.torch.backend, options={"strict": True, "fused_random": True})
    x = torch.ones(4, 1000, requires_grad=True)
    drawn = []
    for seed in (5, 6, 5):
        torch.manual_seed(seed)
        drawn.append(fast(x))
    assert all(torch.equal(a, b) and not torch.equal(a, c) for a, c, b in zip(*drawn))
    torch.manual_seed(5)
    key = torch.randint(-(2**63), 2**63 - 1, (1,)).item() % 2**64
    first, dropped, fractions, normal, doubles, ints, coins, narrow, some = drawn[0]
    assert first.tolist() == [(philox(key, n)[0] >> 8) / 2**24 for n in range(9)]
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()} and abs(dropped.mean() - 1) < 0.05
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())
    assert fractions.stride() == (1, 1000) and fractions.min() >= 0 and fractions.max() < 1 and abs(fractions.float().mean() - 0.5) < 0.02
    assert all(abs(t.float().mean()) < 0.05 and abs(t.float().std() - 1) < 0.05 for t in (normal, narrow)) and doubles.std() < 1.5
    assert ints.unique().tolist() == list(range(-3, 5)) and (ints + 3).bincount().min() > 400
    assert abs(coins.mean() - torch.sigmoid(torch.tensor(1.0))) < 0.03 and abs(some.mean() - 0.3) < 0.06


def test_dropout_in_training():
    agree(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)), rand((3, 4)), backward=True)


def test_checkpoint_draws_the_same_again():
    from torch.utils.checkpoint import checkpoint

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)

        def forward(self, x):
            y = checkpoint(lambda v: F.dropout(torch.tanh(self.a(v)), 0.5, True), x, use_reentrant=False)
            return self.b(y)

    agree(Net(), rand((3, 4)), backward=True, strict=False)


# ---- errors ----


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: F.embedding(i, x),
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: x.index_put((i,), torch.zeros(())),
        lambda x, i: x.scatter(0, i[:, None], 1.0),
        lambda x, i: x.index_add(0, i, torch.ones(3, 2)),
        lambda x, i: x.scatter_add(0, i[:, None], torch.ones(3, 2)),
        lambda x, i: F.cross_entropy(x.t().repeat(2, 1)[:3], i),
    ],
)
@pytest.mark.parametrize("indices", [[0, 2, 4], [0, 7, 1], [0, -1, 1], [-6, 0, 0]])
def test_indices(fn, indices):
    agree(fn, lambda: (torch.arange(10.0).reshape(5, 2), torch.tensor(indices)))


def test_several_indices_of_a_number():
    agree(lambda x, i: x.index_select(0, i), lambda: (torch.tensor(2.5), torch.tensor([0, 0])), lambda: (torch.tensor(2.5), torch.tensor([0])))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.as_strided(x * 2, (2, 3), (1, 2), 1),
        lambda x: torch.as_strided((x * 2).t(), (3, 2), (2, 2)),
        lambda x: torch.as_strided((x * 2)[1:], (2, 2), (2, 1)),
        lambda x: torch.as_strided(x * 2, (12,), (1,)) + 1,
        lambda x: torch.as_strided(x.exp(), (4, 3), (3, 1)).t(),
        lambda x: torch.as_strided_scatter(x, torch.ones(2, 2), (2, 2), (4, 1), 1),
        lambda x: torch.as_strided_scatter(x.t() * 1, torch.ones(2, 2), (2, 2), (3, 1), 1),
    ],
)
def test_strides_over_memory(fn):
    agree(fn, rand((4, 3)))


def test_strides_over_memory_of_any_size():
    """Bounds hold for the sizes of each call, not for those of the first one."""

    def fn(x, y):
        return torch.as_strided(x * 2, (y.shape[0], 2), (2, 1), 1)

    agree(fn, rand((10,), (3,)), rand((20,), (4,)), rand((12,), (5,)), dynamic=True)
    fast = compiled(fn, strict=False, dynamic=True)
    fast(torch.randn(10), torch.randn(3))
    with pytest.raises(RuntimeError, match="setStorage: sizes"):
        fast(torch.randn(10), torch.randn(6))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: x[y.shape[0] :] + 1,
        lambda x, y: (x * 2)[-y.shape[0] :],
        lambda x, y: F.pad(x, (1, x.shape[0] - y.shape[0])),
        lambda x, y: x[: y.shape[0] // 4].sum(0),
        lambda x, y: torch.empty_strided((y.shape[0], 3), (3, 1)).fill_(1) + y[:, None],
    ],
)
def test_decisions_about_sizes_hold_in_each_call(fn):
    agree(fn, rand((10,), (3,)), rand((12,), (4,)), rand((5,), (9,)), rand((4,), (4,)), dynamic=True)


@pytest.mark.parametrize("divide", [torch.floor_divide, torch.remainder, torch.fmod, functools.partial(torch.div, rounding_mode="trunc")])
@pytest.mark.parametrize("divisor", [[1, -3, 2], [1, 0, 2]])
def test_integer_division(divide, divisor):
    agree(lambda a, b: divide(a, b), lambda: (torch.tensor([7, -7, 9]), torch.tensor(divisor)))


def test_an_error_leaves_arguments_alone():
    def fn(x, i, y):
        x.add_(1)
        return y[i] + x

    fast = compiled(fn)
    x, y = torch.zeros(3), torch.arange(3.0)
    torch.testing.assert_close(fast(x, torch.tensor([0, 1, 2]), y), torch.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(IndexError):
        fast(torch.zeros(3), torch.tensor([0, 1, 9]), y)


def test_a_wrong_option_is_named():
    with pytest.raises(Exception, match="unknown option 'fastest'"):
        torch.compile(lambda x: x + 1, backend=cinductor_backend(), options={"fastest": 1})(torch.ones(2))
    with pytest.raises(Exception, match="mode is 'best'"):
        cinductor_backend()(None, [], mode="best")
