"""Small functions at the edges of what torch promises, compared with eager: values, strides, shared memory, effects,
gradients and exceptions.
"""

import collections
import dataclasses

import pytest
from agreement import agree, same_values  # noqa: F401  (skips without torch)

# isort: split
import small
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

NAN, INF = float("nan"), float("inf")
CASES = {}


def case(*makes, **more):
    """Adds a function, with makers of its arguments, to CASES."""

    def add(fn):
        CASES[fn.__name__] = (fn, makes, more)
        return fn

    return add


def floats(*sizes, grad=False, dtype=torch.float32):
    """A maker of tensors of these sizes."""
    return lambda: tuple(torch.randn(s, dtype=dtype).requires_grad_(grad) for s in sizes)


def ints(*sizes, low=-9, high=10, dtype=torch.int64):
    return lambda: tuple(torch.randint(low, high, s, dtype=dtype) for s in sizes)


def both(*makers):
    """A maker of the arguments of several makers, one after the other."""
    return lambda: tuple(a for make in makers for a in make())


# ---- views, aliases and writes ----


@case(floats((4, 6)))
def views_of_an_input_and_of_a_result(x):
    y = x * 2
    return x[1:3], x.t(), y, y[:, ::2], y.view(2, 12), x.view(-1)[3]


@case(floats((4, 6)))
def a_written_input_is_returned(x):
    x.add_(1)
    return x, x.mul_(3), x.t(), x + 1


@case(floats((4, 6)))
def a_result_is_written_through_its_view(x):
    y = x.clone()
    y[1].fill_(7)
    y.t()[2].mul_(-1)
    y.view(-1)[::5] = 0.5
    return y, y[1]


@case(floats((4, 6)))
def two_views_see_each_other(x):
    a, b = x[:3], x[1:]
    a.mul_(2)
    c = b + 1
    b.copy_(c)
    return a.sum(), c, x[2]


@case(floats((1, 6), (4, 6)))
def an_expanded_result_is_written_as_a_clone(x, y):
    z = x.expand(4, 6).clone()
    z[2] += y[2]
    return z, x.expand(4, 6)


@case(floats((4, 6)))
def strides_of_a_result(x):
    y = (x + 1).t()
    z = torch.as_strided(y, (3, 2), (2, 5), 1)
    return z, z * 2, torch.as_strided(x * 1, (2, 2), (0, 1))


@case(floats((4, 6)))
def strides_of_an_input_are_written(x):
    torch.as_strided(x, (3, 2), (7, 2), 1).fill_(9)
    return x * 2


@case(floats((3, 4, 5)))
def movements_of_axes(x):
    return x.movedim(0, -1), x.swapaxes(0, 2), x.unflatten(1, (2, 2)), x.flatten(1), x.mT, x.permute(2, 0, 1).contiguous(), x.squeeze(), x.unsqueeze(-2)


@case(floats((5, 6)))
def chunks_and_splits(x):
    return *x.chunk(3), *x.split([1, 0, 4]), *torch.tensor_split(x, (2, 9), 1), *x.hsplit(2), *torch.unbind(x + 1, 1)[:2]


@case(floats((4, 6)))
def slices_out_of_bounds(x):
    return x[-100:2], x[3:100], x[5:2], x[-2:], x[:, 10:], x[:, -3:-1], x[::3, ::7], x[..., None, 1], x[None, :, 2:2], x.narrow(1, 2, 3), x[-1, -1]


@case(floats((5, 6)))
def writes_to_slices_out_of_bounds(x):
    y = x.clone()
    y[-100:2] = 1
    y[4:100, -2:] = 2
    y[3:1] = 3
    y[..., 2:2] = 4
    y[:, -1] += y[:, 0]
    return y


@case(floats((4, 6)))
def a_write_to_a_view_by_strides_is_eager_s(x):
    """AOTAutograd refuses a write to a view of a view by strides."""
    y = x * 1
    y[1:].as_strided((2,), (2,)).fill_(5)
    return y, y * 2


class Overlapping(torch.nn.Module):
    """A buffer is a part of another one: AOTAutograd refuses writes to both."""

    def __init__(self):
        super().__init__()
        self.register_buffer("whole", torch.arange(5.0))
        self.register_buffer("part", self.whole[1:3])

    def forward(self, x):
        self.whole.add_(x.sum())
        self.part.mul_(2)
        return x + self.whole, self.part + 1


@case(floats((9, 16, 20), (9, 16, 5)))
def writes_to_parts_of_short_rows(x, y):
    """A narrow float, and the result of a comparison, have more bytes in lanes than in memory."""
    parts = []
    for cast in (torch.Tensor.half, torch.Tensor.bfloat16, lambda t: t > 0, lambda t: t.double() > 0, torch.Tensor.short):
        parts.append(torch.slice_scatter(cast(x), cast(y), 2, 10, 20, 2))
    return parts


@case(floats((3, 4)))
def the_same_result_twice_and_an_input(x):
    y = x + 1
    return y, x, y, (y, [x]), {"a": y}


@case(floats((3, 4), (3, 4)))
def results_go_to_given_memory(x, out):
    r = torch.add(x, 1, out=out)
    torch.sin(r, out=out)
    return r, out * 2


@case(floats((4,)))
def a_tensor_is_resized_by_a_view_of_another_dtype(x):
    y = (x * 3).view(torch.int32)
    return y & 0xFF, y.view(torch.uint8).reshape(4, 4), y.view(torch.float32)


@case(floats((3, 3)))
def a_diagonal_is_written(x):
    y = x + 0
    y.diagonal().add_(5)
    y.fill_diagonal_(2, wrap=False)
    torch.diagonal(y, 1).zero_()
    return y, torch.diag(y), torch.diag_embed(y)


@case(floats((4, 4)))
def triangles(x):
    y = x.clone()
    y.tril_(-1)
    return y, x.triu(1), torch.tril_indices(3, 4), x.rot90(), x.roll((1, -1), (0, 1)), x.roll(2), x.flip(0)


@case(floats((2, 3)))
def a_swap_of_parts(x):
    a, b = x[0].clone(), x[1].clone()
    x[0], x[1] = b, a
    return x.sum(0)


@case(floats((4, 5)))
def a_view_is_written_after_its_base_was_read(x):
    y = x.exp()
    z = y[1:3]
    before = y.sum()
    z -= before
    return y, before, z


@case(lambda: (torch.randn(6, 6)[::2, 1::2], torch.randn(3, 3).t()))
def inputs_with_gaps_are_written(x, y):
    x.add_(y)
    y.mul_(x)
    return x - y


@case(lambda: (torch.randn(4, 1).expand(4, 3),))
def an_expanded_input(x):
    return x + 1, x.contiguous(), x.t(), x.clone(), torch.empty_like(x).fill_(2)


@case(lambda: (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),))
def strides_follow_the_input(x):
    return x + 1, x.exp(), x * torch.arange(5.0), x.mean(1, keepdim=True), torch.zeros_like(x), x.clone(), x.contiguous(), x.to(torch.float64), x > 0, x.permute(0, 2, 3, 1) + 1, x.sum(-1), torch.where(x > 0, x, 0)


@case(lambda: (torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last), torch.randn(2, 4, 6, 6)))
def strides_of_two_inputs(x, y):
    return x + y, y + x, torch.cat([x, y], 1), torch.stack([x, x]), F.interpolate(x, scale_factor=2), F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.pad(x, (1, 1, 2, 0)), F.group_norm(x, 2), F.softmax(x, 1), torch.cumsum(x, 1)


@case(lambda: (torch.randn(5, 3).t(), torch.randn(3, 5)))
def strides_of_transposed_inputs(x, y):
    return x + 1, x + y, y * x, torch.where(x > y, x, y), x.clamp(0, 1), x.sort(0)[0], x @ y.t(), x.argmax(0), x.cumsum(0), x.to(torch.int32), torch.full_like(x, 3), torch.ones_like(x), x.new_zeros(2, 2)


# ---- dtypes and numbers ----


@case(both(floats((3, 4)), ints((3, 4)), ints((3, 4), low=0, high=2, dtype=torch.uint8), floats((3, 4), dtype=torch.float64), floats((3, 4), dtype=torch.bfloat16)))
def mixed_dtypes(f, i, u, d, b):
    return f + i, i + u, i / u.add(1), f * d, b + f, b * i, b + 1.5, i + 1.5, u * 300, u - 1, i // 2, i * True, (f > 0) + i, (f > 0) + (i > 0), d + b, i**2, u**2, 2**i.abs(), i.float() @ f.t()


@case(lambda: (torch.randn(3), torch.tensor(2), torch.tensor(2.5, dtype=torch.float64), torch.tensor(True), torch.tensor(3, dtype=torch.int8)))
def tensors_without_axes(x, i, d, b, s):
    return x * i, x * d, x + b, i + d, i * s, d + b, i / s, x[i - 1], x.to(torch.float16) * d, torch.arange(4) * d, torch.arange(4, dtype=torch.int8) * i, torch.arange(4, dtype=torch.int8) + 200 * s, i.view(1) + x, torch.stack([i, i])


@case(ints((40,), low=-128, high=128, dtype=torch.int8), ints((40,), low=0, high=256, dtype=torch.uint8))
def narrow_integers(x):
    y = x.roll(1)
    return x + y, x * y, x - y, -x, x << 1, x >> 1, x & y, ~x, x.sum(), x.prod(), x.cumsum(0), x.abs(), x.float().mean(), x == y, x < 5, x.clamp(1, 7), x.max(), x.sort()[0], x.to(torch.int16) * 300, x.bool(), x + 1, x * 2, x // 3, x % 5, x.square(), x.min(), x.argmin()


@case(lambda: (torch.tensor([True, False, True]), torch.tensor([True, True, False])))
def booleans(a, b):
    return a & b, a | b, a ^ b, ~a, a + b, a * b, a.sum(), a.prod(), a.cumsum(0), a.any(), a.all(), a.float(), a == b, a < b, a.max(), a.min(), torch.where(a, 1, 0), a.int() - b.int(), a.logical_not(), a.sort()[0], a.to(torch.uint8) + 255, a / b.logical_or(a)


@case(lambda: (torch.tensor([-7, -7, 7, 7, -6, 0, 5]), torch.tensor([3, -3, 3, -3, 2, 5, -5])))
def integer_divisions(a, b):
    return a // b, a % b, torch.remainder(a, b), torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="floor"), a / b, a // 2, -7 // b, a % -4, torch.div(a, 2, rounding_mode="trunc"), torch.floor_divide(a, b), torch.fmod(a, -4), torch.remainder(5, b), divmod(7, 2)[0] + a


@case(lambda: (torch.tensor([-7.5, 7.5, -0.0, 0.0, INF, NAN, 6.0]), torch.tensor([2.0, -2.0, 3.0, -3.0, 2.0, 2.0, INF])))
def float_divisions(a, b):
    return a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="floor"), a % 0, a / 0, a // 0, torch.fmod(a, 0), a.frac(), a.trunc(), torch.remainder(-3, b), torch.copysign(a, b), torch.nextafter(a, b), torch.hypot(a, b), torch.fmax(a, b), torch.maximum(a, b)


@case(lambda: (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 2.675, 1e10, NAN]),))
def roundings(x):
    return x.round(), x.round(decimals=2), x.round(decimals=-1), x.floor(), x.ceil(), x.trunc(), x.nan_to_num(0.0), torch.round(x.half()), x.bfloat16(), x.half()


@case(lambda: (torch.tensor([[1.0, NAN, 3.0, -INF], [NAN, NAN, NAN, NAN], [2.0, 2.0, 1.0, INF]]),))
def order_of_nan(x):
    return x.max(), x.min(), x.max(1), x.min(0), x.amax(1), x.amin(0), x.argmax(1), x.argmin(0), x.sort(1), x.topk(2, 1), x.sort(0, descending=True), x.cummax(1), x.cummin(0), x.median(1)[0], x.nanmedian(), x.nansum(1), x.nanmean(0), x.kthvalue(2, 1)[0], torch.fmax(x, x.flip(1)), torch.aminmax(x), x.isnan().any(1), x.mode(1)[0], x.logsumexp(1), x.softmax(1), x.std(1), x == x, x.clamp(0, 2), torch.clamp(x, min=torch.tensor(NAN)), x.sign(), x.relu(), torch.where(x > 1, x, -x), x.argsort(1, stable=True)


@case(lambda: (torch.tensor([2, 1, 2, 0, 1, 2]),))
def ties(x):
    return x.max(0), x.min(0), x.argmax(), x.argmin(), x.sort(stable=True), x.sort(stable=True, descending=True), x.bincount(), x.flip(0).argmax(), torch.isin(x, torch.tensor([1, 2])), torch.searchsorted(torch.arange(3), x), torch.bucketize(x, torch.tensor([0, 1])), torch.histc(x.float(), 3)


@case(floats((3, 4), (4,), dtype=torch.complex64))
def complex_numbers(z, w):
    return z + w, z * w, z / w, z.conj() * 2, z.real + w.imag, z.abs(), z.angle(), z.exp(), z.sqrt(), z.log(), z.pow(2), z.sum(0), z.mean(), z.prod(1), (z * 2).conj().t(), torch.view_as_real(z * 2), z == w, torch.polar(z.abs(), z.angle()), z @ w, z.var(), z.sgn(), z.cumsum(0), z + 1j, z * 2.5, z.reciprocal(), -z, z.tanh(), torch.complex(z.real, z.imag), z.resolve_conj(), z.mH, z.isnan(), z.square(), torch.where(z.real > 0, z, w), torch.stack([z, z]), z.to(torch.complex128), z.conj().imag, z.sin(), z.cos()


@case(floats((3, 2), grad=True), backward=True)
def a_number_in_the_place_of_a_tensor(x):
    return torch.view_as_real(torch.view_as_complex(x) * 2j)


@case(floats((3, 4), dtype=torch.float64), floats((3, 4), dtype=torch.float16))
def functions_of_other_floats(x):
    return x.exp(), x.sum(), x.softmax(1), x.std(0), x.cumsum(1), x.abs().sqrt(), x.mean(), F.gelu(x), F.layer_norm(x, (4,)), x.norm(), F.silu(x), x @ x.t(), x.logsumexp(0), x.prod(0), x.pow(3), F.softplus(x), x.erf(), x.sigmoid(), x.var(1)


@case(floats((3, 4)))
def numbers_as_results(x):
    return x.shape, x.size(0), x.dim(), 3, None, "a", x.dtype, x.stride(), x.sum() * 1, float("inf"), True


@case(lambda: (torch.tensor([-3, 5, 2**40, -(2**40)]), torch.tensor([2.7, -2.7, 300.0, -300.0])))
def conversions(i, f):
    return i.to(torch.int32), i.to(torch.int8), i.to(torch.uint8), i.to(torch.float16), i.float(), i.bool(), f.to(torch.int64), f.to(torch.int32), f.bool(), f.to(torch.bfloat16), i.double(), f.to(torch.complex64), f.type_as(i), i.to(f), f.to(torch.int16)


@case(lambda: (torch.tensor([3, 5, 7]), torch.tensor([1, 0, 2])))
def integer_functions(a, b):
    return torch.gcd(a, b), torch.lcm(a, b), a << b, a >> b, torch.bitwise_left_shift(a, 1), a**b, torch.pow(2, a), a.float() ** b, torch.pow(a, 3), torch.bitwise_not(a), a.sgn(), -a, abs(-a), a ^ b, a.logical_xor(b), torch.dot(a, b), torch.outer(a, b), a.cumprod(0), a.diff(), a.prod(), a.float().std(), torch.square(a), a.sqrt(), a.exp(), torch.sigmoid(a), a.mean(dtype=torch.float32), a.neg().clamp_min(-4), a.trunc(), a.round(), a.floor()


@case(floats((0, 3), (2, 0)))
def empty_tensors(x, y):
    return x + 1, x.sum(), x.sum(0), y.sum(1), x.prod(), x.mean(), x.mean(0), torch.cat([x, x]), y @ x, x.t(), x.view(3, 0), x.any(), x.all(), y.softmax(1), x.cumsum(0), x.sort(0)[0], x[:0], torch.stack([x, x]), x.expand(4, 0, 3), x.reshape(-1, 3).exp(), F.linear(x, torch.ones(2, 3)), x.var(0), x.norm(), y.logsumexp(1), F.pad(x, (1, 1)), torch.where(x > 0, x, 1), x.index_select(1, torch.tensor([0, 2])), y.argmax(0), torch.zeros(0), torch.empty(2, 0).sum(1)


@case(floats((0, 3)))
def an_extreme_of_nothing_raises(x):
    return (x + 1).max()


@case(lambda: (torch.tensor(2.5), torch.tensor([3.0])))
def reductions_of_one_element(x, y):
    return x.sum(), x.max(), x.argmax(), x.sum(0), x.mean(-1), x.sort()[0], x.cumsum(0), x.softmax(0), y.var(), y.std(0), x.prod(), x.any(), x.view(1, 1), x.expand(2, 3), x.unsqueeze(0), x.flatten(), x.amax(), y.squeeze(), x.norm(), x.log_softmax(0), x.max(0), x.logsumexp(0), x.topk(1), x.all(0), x.index_select(0, torch.tensor([0])), x.gather(0, torch.tensor(0))


# ---- indices ----


@case(both(floats((5, 6)), ints((4,), low=-5, high=5), ints((3, 1), low=-6, high=6)))
def reads_at_indices(x, i, j):
    return x[i], x[:, j], x[i[:3], j], x[i[0]], x[i, 2], x[i, None], x[[0, -1]], x[..., i], x[:, i][i], x.take(i.abs()), x.take_along_dim(i.abs()[:, None], 0), x[1:, i], x[i[:1], :, None], x[None, i], x.unsqueeze(1)[i, :, j[0]]


@case(both(floats((5, 6), (4, 6), (4,)), ints((4,), low=-5, high=5)))
def writes_at_indices(x, v, w, i):
    y = x.clone()
    y[i[:1]] = v[0]
    y.index_put_((i, torch.tensor([0, 1, 2, 3])), w)
    z = x.index_put((i,), v, accumulate=True)
    y[:, torch.tensor([1, 3])] = 0.25
    y[torch.tensor([0, 2]), 1:3] += 1
    return y, z, x.index_put((torch.tensor([1, 1]), torch.tensor([2, 2])), w[:2], accumulate=True)


@case(both(floats((4, 6), (4, 6)), ints((4, 6), low=0, high=4)))
def scatters_with_duplicates(x, v, i):
    return (
        x.scatter_add(0, i, v), x.scatter_reduce(0, i, v, "amax"), x.scatter_reduce(0, i, v, "amin", include_self=False),
        x.scatter_reduce(0, i, v, "mean"), x.scatter_reduce(0, i, v, "sum", include_self=False), x.scatter_reduce(0, i, v, "prod"),
        x.scatter(0, i[:1], 3.0), x.scatter(1, i[:, :2], v[:, 2:4]), x.gather(0, i), x.gather(1, i[:2]), x.index_add(0, i[0, :4], v, alpha=2),
        x.index_copy(0, torch.tensor([3, 1]), v[:2]), x.index_fill(1, torch.tensor([0, 5]), -1), x.index_reduce(0, i[0, :4], v, "amax"),
        (y := x.view(2, 2, 2, 3), j := i[0] % 2)[0][j, j, j, j], y.index_put((j, j, j, j), v[1], accumulate=True), y.index_put((j[:2, None], j, j, j[:1]), v[2]),
        x.scatter(0, i[:1], 2.0, reduce="multiply"), x.put(torch.tensor([0, 7]), torch.tensor([1.0, 2.0])), torch.zeros(4).scatter_add(0, i[0], v[0]),
        x.index_reduce(0, i[0, :4], v, "mean", include_self=False), x.sum().index_add(0, i[0, 0] * 0, v[0, 0], alpha=3), x.put(i[:2] - 4, v[:2], accumulate=True),
        x[None, None].gather(2, i[None, None]), x[None, None].scatter_add(2, i[None, None], v[None, None]), x.cummax(0), x.cummin(1), torch.nonzero_static(x > 0, size=30),
        torch.nonzero_static(i, size=3, fill_value=7), x.sum().unfold(0, 1, 1), x.sum().max(0), torch.arange(0.5, 3, 0.25), torch.std_mean(torch.complex(x, v), 0),
    )  # fmt: skip


@case(both(floats((3, 4)), lambda: (torch.tensor([[True, False, True, False]] * 3), torch.tensor([True, False, True]))))
def masks(x, m, r):
    y = x.clone()
    y[m] = 0
    y[r] = 1
    y[m & (x > 0)] += 2
    return y, x.masked_fill(m, -1), torch.where(m, x, x.t()[:3, :3].sum()), x.masked_scatter(m, torch.arange(12.0)), x * m, m.sum(1), x.masked_fill(r[:, None], INF).softmax(0)


@case(both(floats((7, 3)), ints((2, 4), low=0, high=7)))
def embeddings(w, i):
    return F.embedding(i, w), F.embedding(i, w, padding_idx=2), F.one_hot(i, 7), F.embedding_bag(i, w), F.embedding_bag(i, w, mode="sum"), F.embedding_bag(i, w, mode="max"), F.embedding_bag(i.view(-1), w, torch.tensor([0, 3, 3])), F.embedding_bag(i, w, mode="sum", per_sample_weights=torch.ones(2, 4)), F.embedding_bag(i.view(-1), w, torch.tensor([0, 3, 8]), include_last_offset=True)


@case(both(floats((7, 3), grad=True), ints((2, 4), low=0, high=7)), backward=True)
def gradients_of_embeddings(w, i):
    return F.embedding(i, w, padding_idx=2), F.embedding_bag(i, w), F.embedding_bag(i, w, mode="max"), F.embedding_bag(i, w, mode="sum"), w[i[0]], w.index_select(0, i[1]), F.embedding(i, w, scale_grad_by_freq=True)


@case(both(floats((4, 6), (4, 6), grad=True), ints((4, 6), low=0, high=4)), backward=True)
def gradients_of_scatters(x, v, i):
    return x.scatter_add(0, i, v), x.gather(0, i), x.scatter_reduce(0, i, v, "amax"), x.scatter_reduce(0, i, v, "mean"), x.index_add(0, i[0, :4], v), x.index_put((i[0, :4],), v, accumulate=True), x.masked_fill(i > 2, 0), x.cummax(0)[0], x.sort(1)[0], x.topk(2)[0], x.max(1)[0], x.amax(0), x.kthvalue(2)[0], x.median(), torch.maximum(x, v), x.prod(1), x.cumprod(0), x.std(1), x.norm(dim=1), torch.where(x > 0, x, v), x.roll(1), x.logcumsumexp(1), x.take(i[:, 0]), x.masked_scatter(i > 1, v)


@case(both(floats((5,)), lambda: (torch.tensor([0, 9]),)))
def an_index_out_of_range_raises(x, i):
    return (x * 2)[i]


@case(both(floats((5, 3)), lambda: (torch.tensor([[0, 1, 7]]),)))
def a_gather_out_of_range_raises(x, i):
    return (x * 2).gather(0, i)


# ---- layers ----


@case(floats((2, 3, 9, 8)))
def poolings(x):
    return (
        F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, ceil_mode=True), F.max_pool2d(x, 2, dilation=2), *F.max_pool2d(x, (3, 2), return_indices=True),
        F.avg_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), F.avg_pool2d(x, 2, divisor_override=3),
        F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, (2, 3)), F.lp_pool2d(x, 2, 2), F.max_pool1d(x[0], 2), F.avg_pool1d(x[0], 3, 2),
    )  # fmt: skip


@case(floats((2, 4, 9, 8), (6, 2, 3, 2), (6,), (4, 1, 3, 3), grad=True), backward=True)
def gradients_of_small_convolutions(x, w, b, by_channel):
    y = F.conv2d(x, w, b, (2, 1), (1, 0), (1, 2), 2)
    return y, F.conv2d(x, by_channel, None, 2, 1, 1, 4), F.max_pool2d(y.sin(), 3, 1, 1)


@case(floats((2, 3, 9, 8), grad=True), backward=True)
def gradients_of_poolings(x):
    return (
        F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), F.adaptive_avg_pool2d(x, (3, 5)),
        F.adaptive_max_pool2d(x, (2, 3)), F.interpolate(x, scale_factor=2, mode="bilinear"), F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), F.unfold(x, 3, padding=1),
        F.avg_pool2d(x, 4, 2, 2, divisor_override=3), F.avg_pool2d(x, (2, 3), 3), F.adaptive_avg_pool2d(x, (9, 2)), F.max_pool3d(x, 2, padding=1), F.avg_pool3d(x, 3, 2, 1, True), F.adaptive_avg_pool3d(x, (1, 4, 3)),
    )  # fmt: skip


@case(floats((2, 3, 5, 6)))
def paddings(x):
    return (
        F.pad(x, (1, 2)), F.pad(x, (1, 2, 0, 3), value=NAN), F.pad(x, (-1, 2, 1, -2)), F.pad(x, (1, 2, 2, 1), "reflect"), F.pad(x, (3, 1, 0, 2), "replicate"),
        F.pad(x, (2, 1, 1, 1), "circular"), F.pad(x, (1, 1, 1, 1, 1, 1), "replicate"), F.pad(x > 0, (1, 0), value=True), F.pad(x, (-2, -2)), F.pad(x.int(), (1, 1), value=7),
    )  # fmt: skip


@case(floats((2, 3, 5, 6)))
def interpolations(x):
    return (
        F.interpolate(x, scale_factor=2), F.interpolate(x, size=(3, 7)), F.interpolate(x, scale_factor=1.7, mode="bilinear"), F.interpolate(x, size=(8, 4), mode="bilinear", align_corners=True),
        F.interpolate(x, scale_factor=2, mode="bicubic"), F.interpolate(x, size=(3, 3), mode="area"), F.interpolate(x[0], scale_factor=2, mode="linear"),
        F.interpolate(x, size=(4, 3), mode="nearest-exact"), F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True), F.grid_sample(x, torch.zeros(2, 2, 2, 2)),
        F.grid_sample(x, x[:, :2, :, :2].transpose(1, 2), "bicubic", "reflection", True), F.affine_grid(torch.eye(2, 3).expand(2, 2, 3), (2, 3, 4, 4)),
    )  # fmt: skip


@case(floats((2, 4, 7, 7), (6, 4, 3, 3), (4, 3, 3, 3), (8, 2, 3, 3)))
def convolutions(x, w, t, g):
    return F.conv2d(x, w), F.conv2d(x, w, torch.arange(6.0), 2, 1), F.conv2d(x, w, dilation=2), F.conv_transpose2d(x, t, stride=2, padding=1, output_padding=1), F.conv2d(x, g, groups=2), F.conv1d(x[0].transpose(0, 1), w[:, :, 0].repeat(1, 2, 1)[:, :7]), F.conv2d(x, w, padding="same"), F.conv2d(x[0], w), F.conv2d(x.to(memory_format=torch.channels_last), w), F.conv2d(x[:, :0], w[:, :0])


@case(floats((3, 4, 6), grad=True), backward=True)
def normalisations(x):
    w = torch.linspace(0.5, 1.5, 6)
    return F.layer_norm(x, (6,), w, w), F.layer_norm(x, (4, 6)), F.batch_norm(x, None, None, training=True), F.instance_norm(x), F.group_norm(x, 2), F.rms_norm(x, (6,), w), F.normalize(x, dim=1), F.local_response_norm(x, 3), torch.linalg.vector_norm(x, 3, dim=1), x.renorm(2, 0, 1.0), F.normalize(x, p=1, dim=2)


@case(floats((4, 6), (4, 6), grad=True), backward=True)
def losses(x, y):
    t = torch.tensor([0, 5, 2, 2])
    return (
        F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y, beta=0.5), F.huber_loss(x, y), F.cross_entropy(x, t), F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=5),
        F.cross_entropy(x, y.softmax(1)), F.nll_loss(x.log_softmax(1), t, weight=torch.arange(6.0)), F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=torch.arange(6.0)), F.binary_cross_entropy(x.sigmoid(), y.sigmoid().detach()),
        F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1, 1])), F.hinge_embedding_loss(x, y.sign().detach()), F.margin_ranking_loss(x[:, 0], y[:, 0], torch.ones(4)),
        F.triplet_margin_loss(x, y, x.flip(0)), F.poisson_nll_loss(x, y.abs()), F.soft_margin_loss(x, y.sign().detach()), F.multi_margin_loss(x, t), F.gaussian_nll_loss(x, y, y.square() + 1), F.cosine_similarity(x, y), F.pairwise_distance(x, y), torch.cdist(x, y),
        F.cross_entropy(x.view(1, 4, 6), torch.tensor([[0, 1, 2, 3, 0, 1]]), reduction="none"),
        F.cross_entropy(x.view(2, 3, 2, 2), torch.tensor([[[0, 1], [2, -100]], [[1, 1], [2, 0]]]), weight=y[0, :3].detach().abs()), F.nll_loss(x[0], t[1]),
    )  # fmt: skip


@case(floats((3, 8), grad=True), backward=True)
def activations(x):
    return F.relu(x), F.relu6(x), F.elu(x), F.selu(x), F.celu(x, 0.5), F.leaky_relu(x, 0.1), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.softplus(x, 2, 1), F.softsign(x), F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x), F.tanhshrink(x), F.softshrink(x), F.hardshrink(x), F.glu(x), F.logsigmoid(x), F.prelu(x, torch.tensor(0.2)), F.threshold(x, 0.1, 2.0), F.softmin(x, 1), F.rrelu(x, training=False), F.gumbel_softmax(x, 1)


@case(floats((2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4), grad=True), backward=True)
def attention(q, k, v):
    mask = torch.ones(5, 5).tril().bool()
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, attn_mask=mask), F.scaled_dot_product_attention(q, k, v, attn_mask=mask.float(), scale=0.3)


@case(floats((4, 5), (5, 3), (2, 4, 5), (2, 5, 3)))
def products(a, b, c, d):
    return a @ b, c @ d, c @ b, a @ d, torch.einsum("ij,jk->ki", a, b), torch.einsum("bij,bjk->bi", c, d), torch.addmm(torch.ones(3), a, b, beta=0.5, alpha=2), torch.baddbmm(torch.zeros(2, 4, 3), c, d), a[0] @ b, a @ b[:, 0], torch.dot(a[0], a[1]), torch.outer(a[0], b[0]), torch.tensordot(c, d, ([2], [1])), torch.kron(a, b), F.linear(a, b.t(), torch.ones(3)), torch.addmv(torch.ones(4), a, b[:, 0]), F.bilinear(a, a, torch.ones(2, 5, 5)), torch.addbmm(torch.ones(4, 3), c, d), torch.matrix_power(a[:, :4], 3), torch.addr(torch.zeros(4, 5), a[:, 0], a[0]), a.t() @ a, torch.chain_matmul(a, b, b.t()), torch.addmm(torch.full((3,), NAN), a, b, beta=0)


@case(lambda: (torch.randn(4, 4) + 4 * torch.eye(4), torch.randn(4, 2)))
def linear_algebra(a, b):
    s = a @ a.t()
    return torch.linalg.inv(a), torch.linalg.solve(a, b), torch.linalg.cholesky(s), torch.linalg.det(a), torch.linalg.qr(a)[1].abs(), torch.linalg.svdvals(a), torch.linalg.eigvalsh(s), torch.linalg.norm(a), torch.linalg.matrix_norm(a, 1), torch.trace(a), torch.linalg.slogdet(a), torch.linalg.lstsq(a, b)[0], torch.linalg.pinv(a), torch.linalg.solve_triangular(a, b, upper=True), torch.logdet(s), torch.linalg.matrix_rank(a), torch.cross(b[:3].t(), b[1:].t(), dim=1), torch.linalg.matrix_exp(a / 8)


@case(floats((3, 8)))
def fourier_transforms(x):
    return torch.fft.fft(x), torch.fft.rfft(x), torch.fft.irfft(torch.fft.rfft(x)), torch.fft.fft2(x).abs(), torch.fft.fftshift(x), torch.fft.fftfreq(8), torch.fft.ifft(x).real, torch.stft(x, 4, return_complex=True, window=torch.ones(4)).abs(), torch.fft.hfft(x[:, :5])


# ---- sizes ----


@case(floats((4, 6)), floats((5, 7)), floats((9, 3)), dynamic=True)
def sizes_in_arithmetic(x):
    n, m = x.shape
    y = x.view(-1)[: n * m // 2] * n + m / n
    return y, x.new_ones(n + 1, m * 2), torch.arange(n), x[: n // 2], x[:, m - 2 :], x.repeat(2, 1), x.unsqueeze(0).expand(n, n, m), F.pad(x, (n, 0)), x.reshape(m, n), x.sum() / x.numel(), torch.cat([x, x], 1), torch.full((n,), n), x.mean(0), x.std(1), (n, m, n * m + 1), x.flip(0), x.roll(n - 1, 0), x.split(2), x.t()[1:]


@case(floats((4, 6), grad=True), floats((8, 6), grad=True), floats((3, 6), grad=True), dynamic=True, backward=True)
def sizes_in_training(x):
    y = F.layer_norm(x, (6,)) @ torch.ones(6, 3)
    return F.cross_entropy(y, torch.arange(x.shape[0]) % 3), x[1:] * x[:-1], x.cumsum(0), F.softmax(x, 0), x.view(-1, 3, 2).amax(1), torch.stack([x, x + 1]).sum(0), x.index_select(0, torch.tensor([0, 2])), x.unfold(0, 2, 1)


@case(floats((2, 3, 8, 8)), floats((4, 3, 10, 12)), dynamic=True)
def sizes_of_images(x):
    return F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 5), mode="bilinear"), F.adaptive_avg_pool2d(x, 2), F.conv2d(x, torch.ones(4, 3, 3, 3)), F.unfold(x, 3), F.group_norm(x, 3), F.pad(x, (1, 1, 1, 1), "reflect"), x.flatten(2).transpose(1, 2)


@case(lambda: (torch.randn(4, 6), 3), lambda: (torch.randn(4, 6), 5), lambda: (torch.randn(4, 6), 2), dynamic=True)
def integers_as_arguments(x, n):
    return x[:n], x * n, x.roll(n, 1), torch.arange(n), x[:, : n - 1], torch.full((n, 2), n / 2), x[n % 4], n + 1, x.topk(n % 4 + 1, 0)[0], torch.zeros(n).scatter(0, torch.tensor([n - 1]), 1.0)


@case(lambda: (torch.randn(4), 0.5), lambda: (torch.randn(4), -2.0), lambda: (torch.randn(4), 7.25), dynamic=True)
def floats_as_arguments(x, a):
    return x * a, x + a * 2, x.clamp(max=a), torch.full((2,), a), x.lerp(x * 2, a), F.leaky_relu(x, a), torch.where(x > a, x, a), a + 1


@case(floats((1, 5)), floats((4, 5)), floats((0, 5)), floats((2, 5)))
def sizes_of_zero_and_one(x):
    return x + 1, x.sum(0), x.squeeze(0), x.mean(1), x.expand(-1, 5), x.softmax(1), x.cumsum(0), x @ torch.ones(5, 2), torch.cat([x, x])


# ---- data decide sizes ----


@case(floats((4, 5)))
def places_of_values(x):
    i = (x > 0).nonzero()
    return i, x[x > 0], x[x > 100], torch.masked_select(x, x < 0), torch.nonzero(x > 0, as_tuple=True), torch.argwhere(x > 1) * 2, x[x[:, 0] > 0] * 2


@case(lambda: (torch.tensor([3, 1, 3, 2, 1]), torch.randn(6)))
def distinct_values(i, x):
    return torch.unique(i), torch.unique(i, return_inverse=True, return_counts=True), torch.unique_consecutive(i), torch.repeat_interleave(x[:5], i), torch.bincount(i)


@case(lambda: (torch.tensor(3), torch.randn(6)))
def numbers_of_data(n, x):
    k = n.item()
    return x * k, x.sum().item() * 2 + x, torch.full((2,), k), x.tolist()[0]


# ---- modules, effects and autograd ----


@case(floats((3, 4), grad=True), backward=True)
def a_function_with_its_own_gradient(x):
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, low):
            ctx.save_for_backward(x)
            ctx.low = low
            return x.clamp_min(low)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x > ctx.low) * 3, None

    return Clip.apply(x, 0.1), Clip.apply(x * 2, -0.5).exp()


@case(floats((3, 4), grad=True), backward=True)
def hooks_on_a_result(x):
    y = x * 2
    y.register_hook(lambda g: g * 3 + 1)
    return (y * y).sum()


@case(floats((3, 4), grad=True), backward=True)
def parts_without_gradients(x):
    with torch.no_grad():
        a = x * 2
    b = x.detach() + 1
    with torch.enable_grad():
        c = x * 3
    return a, b, c, x * a, (x > 0), x.detach()


@case(floats((3, 4)))
def inference_mode(x):
    with torch.inference_mode():
        y = x * 2
        return y + 1, y.t()


@case(floats((3, 4), (4, 4), grad=True), backward=True)
def checkpoints(x, w):
    def block(x, w):
        return F.dropout(F.gelu(x @ w), 0.5).sin()

    return checkpoint(block, x, w, use_reentrant=False), checkpoint(lambda x: x.exp() * x, x, use_reentrant=False)


@case(floats((3, 4), grad=True), backward=True)
def random_numbers(x):
    a = F.dropout(x, 0.4)
    return a, torch.rand_like(x) + x, torch.randn(3, 4) * x, torch.bernoulli(x.sigmoid()), torch.randint(0, 9, (3,)), torch.randperm(5), F.dropout2d(x[None, :, :, None], 0.3), F.alpha_dropout(x, 0.2), torch.multinomial(x.softmax(1), 2), torch.normal(x.detach(), 1.0), x.clone().uniform_(), torch.empty(3).exponential_(), torch.normal(0.0, 1.0, (2,)), F.feature_alpha_dropout(x, 0.1), torch.rand(2) + F.dropout(x, 0.0)[0, :2], x.detach().clone().log_normal_(), torch.poisson(x.detach().abs())


@case(floats((3, 4), grad=True), backward=True)
def writes_in_training(x):
    y = x * 2
    y[1] = 0
    y += 1
    y.mul_(x.detach())
    z = torch.zeros(3, 4)
    z[0] = x[1]
    z.index_add_(0, torch.tensor([1, 1]), x[:2])
    return y.relu_(), z


@case(floats((3, 4), (3, 4), grad=True), backward=True)
def gradients_through_views(x, y):
    return x.t() @ y, x[::2].expand(2, 2, 4), x.reshape(-1)[2:9], torch.as_strided(x, (2, 3), (1, 4)), x.unfold(1, 2, 1), torch.diagonal(x), x.repeat(2, 2), x.repeat_interleave(2, 0), torch.stack([x, y]).mean(0), x.flip(1), x.movedim(0, 1) * y.t(), torch.cat([x, y], 1)[:, 3:5], x.tril(), x.view(3, 2, 2).sum((0, 2)), torch.broadcast_to(x[0], (3, 4)) * y, F.pad(x, (1, -1)), torch.atleast_3d(x), x.mT, x.chunk(2, 1)[0], x.unsqueeze(0).squeeze()


@case(floats((3, 4), grad=True), backward=True)
def gradients_at_edges(x):
    z = x * 0
    return z.relu(), z.abs(), z.clamp(0, 1), z.sign(), z.max(1)[0], z.amax(1), (z + 4).sqrt(), torch.maximum(z, -z), F.hardtanh(z), torch.where(z > 0, x.log(), x), z.norm(dim=1), z.prod(1), z.pow(2), (z + 1).pow(x), z.round() + x, x.frac(), torch.atan2(z, x), torch.remainder(x, 0.7), torch.fmod(x, 0.7), x.median(1)[0], F.hardswish(z + 3), z.sinc(), torch.xlogy(z, x.abs()), torch.logaddexp(z, x), x.cummin(1)[0]


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Record:
    value: torch.Tensor
    name: str


@case(floats((3, 4)))
def containers(x):
    d = collections.OrderedDict(b=x + 1, a=[x * 2, (x, None)])
    return d, Pair(x.sum(), d["b"]), {"k": {"n": x.exp()}}, [], torch.Size((2, 3))


@case(floats((3, 4)))
def a_dataclass(x):
    r = Record(x + 1, "r")
    r.value = r.value * 2
    return r.value, r.name, Record(x, "s").value


@case(lambda: (Pair(torch.ones(2), [torch.zeros(2), {"a": torch.arange(2.0)}]),))
def containers_as_arguments(p):
    p.second[0].add_(p.first)
    return p.first + p.second[1]["a"], p.second[0]


@case(floats((3, 4)))
def a_graph_cut_by_printing(x):
    y = x + 1
    torch._dynamo.graph_break()
    y.mul_(2)
    return y, x - y


@case(floats((3, 4)))
def an_exception_of_python(x):
    y = x * 2
    if y.shape[0] == 3:
        raise ValueError("three rows")
    return y


@case(floats((3, 4)))
def mismatched_sizes_raise(x):
    return (x + 1) @ x


@case(floats((3, 4)))
def loops_and_conditions_of_python(x):
    for k in range(3):
        x = x * k if k % 2 else x + k
    while x.dim() < 3:
        x = x.unsqueeze(0)
    return x, [x[0, k] for k in range(3)], sum(x.unbind(1))


@case(floats((3, 4), grad=True), backward=True)
def mapped_and_differentiated(x):
    f = lambda v: (v.sin() * v).sum()  # noqa: E731
    return torch.vmap(lambda r: r.softmax(0) * r.sum())(x), torch.func.grad(f)(x.detach()), torch.func.vjp(f, x.detach())[0], torch.vmap(torch.dot)(x, x), torch.func.jacrev(lambda v: v**2)(x[0].detach())


@case(both(floats((3, 4)), lambda: (torch.tensor(True),)), both(floats((3, 4)), lambda: (torch.tensor(False),)))
def conditions_on_data(x, p):
    return torch.cond(p, lambda x: x.sin(), lambda x: x.cos() + 1, (x,))


@case(floats((3, 4)))
def loops_on_data(x):
    return torch._higher_order_ops.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 1.5), (torch.tensor(0), x))


@case(floats((3, 4), grad=True), floats((3, 4), grad=True), backward=True)
def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ torch.ones(4, 4)
        return y, F.softmax(y, 1), F.layer_norm(y, (4,)), y.float() + x, F.linear(x, torch.ones(2, 4)), (y * x).sum()


AUTOCAST = 3e-2


class Stateful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))
        self.steps, self.last = 0, None

    def forward(self, x):
        self.seen += 1
        self.mean.lerp_(x.mean(0).detach(), 0.1)
        self.steps += 1
        self.last = x.detach() * 2
        return x * self.weight - self.mean + self.steps


@pytest.mark.parametrize("name", CASES)
def test_a_function(name):
    fn, makes, more = CASES[name]
    agree(fn, *makes, strict=False, tolerance=AUTOCAST if name == "autocast" else None, **more)


@pytest.mark.parametrize("name", sorted(small.CASES)[::16])
def test_a_small_function(name):
    small.agrees(name, torch.float32)


def test_state_of_a_module():
    agree(Stateful(), *[floats((3, 4))] * 3, backward=True)
    agree(Overlapping(), *[floats((3, 5))] * 2, strict=False)
