"""Functions and modules that write to views, share memory, draw numbers or have sizes that data decide, compared with eager:

    python programs.py [NAME ...]

test_programs.py runs a few of them. small.py has functions that only compute.
"""

import sys
import time
import warnings

import agreement

# isort: split
import torch
import torch._dynamo.config
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch.utils.checkpoint import checkpoint

CASES = {}
R = torch.randn


def case(*makes, **options):
    """Adds a function or module class to CASES: makers of arguments, and options of `agreement.agree`."""

    def add(fn):
        CASES[fn.__name__] = (fn, makes, options)
        return fn

    return add


def given(*operands, grad=False):
    """A maker of arguments: of sizes, of functions that make a value, or of the values themselves."""

    def make():
        values = [x() if callable(x) else R(*x) if isinstance(x, tuple) else x for x in operands]
        is_real = [isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex()) for v in values]
        return tuple(v.detach().requires_grad_() if grad and real else v for v, real in zip(values, is_real))

    return make


def learned(*operands):
    return given(*operands, grad=True)


def longs(*values):
    return lambda: torch.tensor(values)


def ones_of(n):
    return lambda: torch.randint(0, n, (5,))


def agrees(name):
    fn, makes, options = CASES[name]
    options = dict(options)
    data = options.pop("data", False)
    torch.manual_seed(3)
    settings = torch._dynamo.config.patch(capture_scalar_outputs=data, capture_dynamic_output_shape_ops=data, specialize_int=False)
    with settings:
        agreement.agree(fn() if isinstance(fn, type) else fn, *makes, **options)


# ---- writes ----


@case(given((4, 6)))
def a_view_of_an_argument_is_written(x):
    y = x.view(24)
    y[3:9].add_(1)
    y[::2].mul_(2)
    return y.sum(), x.t()


@case(given((4, 6)))
def slices_are_written(x):
    x[1:3, ::2] = 5
    x[:, -1].zero_()
    x[-1] += x[0]
    return x[2]


@case(given((4, 6)), given(lambda: R(6, 4).t()), given(lambda: R(8, 12)[::2, ::2]))
def arguments_with_strides_are_written(x):
    x.mul_(2)
    x.t()[2].add_(1.5)
    return x + 1, x[1:], x.t()


@case(given(lambda: torch.zeros(10), longs(1, 2, 2, 9, -1), (5,)))
def index_put_adds(x, i, v):
    x.index_put_((i,), v, accumulate=True)
    x.index_add_(0, i.clamp(min=0), v, alpha=2)
    return x * 1


@case(given(lambda: torch.zeros(4, 5), lambda: torch.tensor([[0, 1, 2], [3, 3, 0]]), (2, 3)))
def scatters(x, i, v):
    results = x.scatter_reduce(0, i, v, "amax"), x.scatter_reduce(0, i, v, "mean", include_self=False), (x + 1).scatter_reduce(0, i, v, "prod")
    x.scatter_(0, i, v.abs(), reduce="add")
    return results, x.scatter_reduce(0, i, v, "amin", include_self=False)


@case(learned((4, 5), lambda: torch.tensor([[0, 1, 2], [3, 3, 0]]), (2, 3)), backward=True)
def gradients_of_scatters(x, i, v):
    return x.scatter_add(0, i, v), x.scatter_reduce(0, i, v, "mean"), x.scatter_reduce(0, i, v, "sum", include_self=False), x.gather(0, i)


@case(given(lambda: torch.zeros(2, 8, 4), (2, 1, 4), longs(3)))
def a_cache_of_keys(c, k, p):
    c.index_copy_(1, p, k)
    c[:, p] = k * 2
    return (c @ k.transpose(1, 2)).softmax(1)


# ---- shared memory ----


@case(given((4, 6)))
def results_share_memory(x):
    a = x + 1
    return a, a.view(24), a[1], a.t(), x, x[1:, 2:], a.expand(2, 4, 6), x.expand(3, 4, 6)


@case(given((4, 6)))
def parts_of_a_result(x):
    return (*(x * 2).chunk(3, 1), *x.unbind(0)[:2], *torch.split(x, [1, 3]))


@case(given((3, 4)))
def an_argument_is_returned_often(a):
    return a, a, a.detach(), a.view(12), a.view(3, 4)


@case(given((3, 4), (3, 4)))
def results_in_containers(a, b):
    return {"a": a + b, "l": [a, b.t(), (a - b, None, 3, "s", 2.5)]}


@case(given((3, 4), 2, 1.5, True, None, "x"))
def arguments_that_are_no_tensors(a, i, f, b, n, s):
    return a * i + f, i + 1, f * 2, b, n, s, a if b else -a


# ---- sizes, dtypes, strides ----


@case(given((4,)), given((1,)), given((0,)))
def few_elements(x):
    return x.sum(), x.prod(), x.cumsum(0), torch.cat([x, x[:0]]), x.mean(), x.view(-1, 1).expand(-1, 3), x.any(), x.sort()[0]


@case(given(lambda: torch.tensor(2.5), lambda: torch.tensor(3), lambda: torch.tensor(True)))
def no_axes(x, i, b):
    made = x + i, x * b, i // 2, x.expand(3), x.view(1, 1), x.unsqueeze(-1), torch.stack([x, x]), x.reshape(()), i.float().softmax(0)
    return made, x.cumsum(0), x.max(0), x.sort()[1], x.norm(), x.var(correction=0), b & True, ~b, i << 1


@case(given((3,), lambda: torch.arange(3), lambda: torch.tensor([True, False, True]), lambda: R(3).bfloat16(), lambda: R(3).half(), lambda: torch.tensor(2.0).double()))
def promotion(f, i, b, h, p, d):
    mixed = f + i, i + b, h + p, h + f, h + i, h * d, f * d, i * d, torch.where(b, f, d), torch.cat([f, i]), torch.stack([h, p]), torch.maximum(i, b)
    numbers = i / 2, i / i, b + b, i * 1.5, b * 2, b * 2.5, i**2, i**2.0, 2**i, 2.0**i, torch.where(b, i, 1.0), torch.clamp(i, 0.5), torch.pow(h, 2)
    return mixed, numbers, b.sum(), i.mean(dtype=torch.float), torch.add(i, i, alpha=2), h @ h, torch.lerp(f, f, 0.5)


@case(given((2, 3, 4, 5)))
def axes_from_the_end(x):
    folds = x.sum(-1), x.mean((-2, -3)), x.softmax(-2), x.cumsum(-4), x.argmax(-3), x.std(-1), x.topk(2, -2)[0], x.logsumexp(-1)
    views = x.transpose(-1, -3), x.unsqueeze(-5), x.select(-1, -2), x.narrow(-1, -3, 2), x.movedim(-1, 0), x.unflatten(-1, (-1, 1)), x.flatten(-3, -2), x.unfold(-1, 2, 2)
    return folds, views, x.flip(-1), x.roll(-2, -3), torch.cat([x, x], -2), torch.stack([x, x], -1), x.repeat_interleave(2, -1), x.diff(dim=-1), x.tril(-1)


@case(given(lambda: R(5).expand(4, 5), lambda: R(1, 5).expand(4, 5)), given(lambda: R(30).as_strided((4, 5), (3, 1)), lambda: R(30).as_strided((4, 5), (1, 4))))
def overlapping_arguments(x, y):
    return x + y, x.sum(0), x.contiguous(), x @ y.t(), x.reshape(-1), y.view_as(y) * 2, torch.where(x > 0, x, y)


@case(learned(lambda: R(2, 3, 8, 8).to(memory_format=torch.channels_last)), backward=True)
def channels_last(x):
    pools = F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.interpolate(x, scale_factor=2), F.adaptive_avg_pool2d(x, 2)
    norms = F.batch_norm(x, None, None, training=True), F.layer_norm(x, (8, 8)), F.group_norm(x, 3)
    return pools, norms, x * 2, x.sum(1), F.pad(x, (1, 1)), torch.cat([x, x], 1), x.clone(), torch.zeros_like(x), x.double(), x.permute(0, 2, 3, 1)


@case(*[given((n, m)) for n, m in ((4, 6), (7, 3), (2, 9), (1, 5))], dynamic=True)
def any_sizes(x):
    n, m = x.shape
    made = x.new_zeros(n + m), torch.arange(n * m).view(n, m) + x, torch.full((n,), m), torch.linspace(0, 1, n), torch.eye(n, m)
    parts = x[: n // 2], x.repeat(2, 1), F.pad(x, (1, n)), x.unfold(1, 2, 1), x.flatten().view(n, -1), x.tril(), x[:, -1:], x.roll(1, 0)
    return made, parts, x.sum() / n, x @ x.t()


@case(*[learned((n, 8), (8, n)) for n in (3, 5, 9)], dynamic=True, backward=True)
def gradients_of_any_sizes(x, w):
    h = F.layer_norm(x, (8,))
    return (h @ w).softmax(-1), torch.cat([x, w.t()], 0), h.std(0), F.gelu(x) * x.size(0)


@case(*[given((n,), n) for n in (3, 5, 9)], dynamic=True)
def a_size_is_an_argument(x, n):
    return x * n, torch.zeros(n + 1), x.view(1, n), torch.arange(n)


# ---- sizes that data decide ----


@case(given((6,)), given((9,)), data=True)
def masks(x):
    y = x[x > 0]
    return (x > 0).nonzero()[:, 0], y * 2, y.sum(), torch.cat([y, x])


@case(given((4, 6)), given((5, 3)), data=True)
def positions_of_nonzero_elements(x):
    i = (x > 0).nonzero()
    return i, i + 1, x[i[:, 0], i[:, 1]], torch.argwhere(x < 0)


@case(given(longs(3, 1, 3, 2, 1)), data=True)
def unique_elements(x):
    u, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    return u, inverse, counts, u + 1, torch.bincount(x, minlength=6)


@case(given(lambda: torch.tensor(3), (8,)), given(lambda: torch.tensor(5), (8,)), data=True)
def an_element_is_a_size(n, x):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= 8)
    return x[:k] * 2, torch.zeros(k), x.narrow(0, 0, k).sum(), torch.arange(k) * k, x + k


@case(given(longs(1, 3, 2), (3, 4)), data=True)
def repeats(c, x):
    y = torch.repeat_interleave(x, c, dim=0)
    return y, y.sum(0)


@case(learned((6, 4)), backward=True, data=True)
def gradients_of_masks(x):
    return x[x.sum(1) > 0].exp(), x.masked_select(x > 0)


# ---- random numbers, autograd ----


@case(learned((3, 8)), given((3, 8)), backward=True, tolerance=1e-4)
class Draws(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        y = F.dropout(self.linear(x), 0.4)
        noise = torch.rand_like(x) + torch.randn(8), torch.randint(0, 9, (4,)), torch.randperm(6), torch.bernoulli(torch.full((5,), 0.3)), torch.multinomial(torch.ones(6), 3)
        more = torch.normal(x.detach(), 1.0), torch.zeros(4).uniform_(1, 2), torch.zeros(5).exponential_()
        return y, noise, more, F.feature_alpha_dropout(y.unsqueeze(0), 0.2, training=True), F.rrelu(x, training=True), F.gumbel_softmax(x, hard=True)


@case(learned((3, 8)), backward=True)
class Checkpoints(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)

    def part(self, x):
        return F.dropout(self.b(F.gelu(self.a(x))), 0.3)

    def forward(self, x):
        return checkpoint(self.part, checkpoint(self.part, x, use_reentrant=False) + x, use_reentrant=False)


@case(learned((3, 4)), backward=True)
class Hooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.linear.register_forward_hook(lambda module, arguments, result: result * 2)
        self.linear.register_forward_pre_hook(lambda module, arguments: (arguments[0] + 1,))

    def forward(self, x):
        y = self.linear(x)
        y.register_hook(lambda gradient: gradient * 3)
        return y.tanh()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k, x.sum()

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return first * 2 * x * ctx.k + second + 1, None


@case(learned((4, 4)), backward=True)
def a_function_with_its_own_gradient(x):
    a, b = Square.apply(x.sin(), 3.0)
    return a.cos(), b


@case(given((4, 4)))
def without_gradients(x):
    with torch.no_grad():
        a = x * 2
    with torch.inference_mode():
        b = x * 3
        b.add_(1)
    return a, b.clone(), a.detach(), x


@case(learned((4, 6)), backward=True)
def a_value_is_used_twice(x):
    y = x * 2
    z, part = y.detach(), y.view(24).clone()
    part[::3] = 0
    return y, z, part, y + z


@case(given((4, 4), (4, 4)))
def conditions_and_loops(a, b):
    r = torch.cond(a.sum() > 0, lambda x, y: x.sin() @ y, lambda x, y: (x - y).cos(), (a, b))
    n, v = torch.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.1 + b), (torch.tensor(0), a))
    return r, n, v, scan(lambda c, x: (c + x, (c * x).sin()), a[0], b), associative_scan(torch.mul, a, 0, combine_mode="generic")


# ---- complex numbers, sorting, linear algebra ----


@case(given(lambda: R(4, 4, dtype=torch.complex64), (4, 4)))
def complex_numbers(z, x):
    w = torch.complex(x, x.t())
    parts = z.real, z.imag + 1, z.abs(), z.angle(), torch.view_as_real(z), torch.polar(x.abs(), x), z.sgn(), (z * 2).real.add_(1)
    return parts, z * w, z.conj() @ w, torch.fft.fft(z), torch.fft.irfft(torch.fft.rfft(x)), z.exp(), z.mH, z.sum(0), torch.linalg.norm(z), z / x, z**2, z + 1j


@case(learned(lambda: R(4, 4, dtype=torch.complex64), (4, 4)), backward=True)
def gradients_of_complex_numbers(z, x):
    return (torch.view_as_complex(torch.stack([x, x * 2], -1)) * z).abs(), torch.fft.rfft(x).abs(), torch.fft.ifft2(torch.fft.fft2(x)).real


@case(given((5, 6)), given(lambda: R(6, 5).t()))
def sorting(x):
    ordered = x.sort(0, descending=True), x.topk(3, 1), x.argsort(1, stable=True), x.kthvalue(2, 0), x.median(), x.mode(1), x.msort(), x.nanmedian()
    return ordered, torch.searchsorted(x.sort(1)[0].contiguous(), x.contiguous()), torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), torch.histc(x, 5), x.quantile(0.3, 1)


@case(learned((5, 6)), backward=True)
def gradients_of_sorting(x):
    return x.sort(0)[0] * torch.arange(6), x.topk(2)[0], x.quantile(0.5, 0), x.median(), torch.cdist(x, x.detach() + 1), x.renorm(2, 0, 1.0)


@case(learned((4, 4)), backward=True, tolerance=1e-3)
def linear_algebra(x):
    s = x @ x.t() + 4 * torch.eye(4)
    solved = torch.linalg.cholesky(s), torch.linalg.inv(s), torch.linalg.det(s), torch.linalg.solve(s, x), torch.linalg.eigvalsh(s), torch.linalg.svdvals(s)
    norms = torch.linalg.matrix_norm(x), torch.linalg.qr(s)[1].abs(), torch.logdet(s), torch.matrix_exp(x * 0.1), torch.trace(s)
    return solved, norms, torch.kron(x, x), torch.tensordot(x, x, 1), torch.einsum("ij,kj->ik", x, x), torch.linalg.multi_dot([x, x, x]), torch.outer(x[0], x[1])


# ---- layers ----


@case(learned((5, 7), ones_of(7), (5, 7)), backward=True, tolerance=1e-4)
def losses(x, t, y):
    p, is_above, ones = x.sigmoid(), (y > 0).float(), torch.ones(5)
    of_classes = F.cross_entropy(x, t, label_smoothing=0.1), F.cross_entropy(x, t, weight=torch.arange(7.0) + 1, ignore_index=2), F.multi_margin_loss(x, t)
    of_values = F.mse_loss(x, y), F.l1_loss(x, y, reduction="none"), F.smooth_l1_loss(x, y), F.huber_loss(x, y, delta=0.5), F.gaussian_nll_loss(x, y, y.abs() + 1)
    of_logits = F.binary_cross_entropy(p, y.sigmoid().detach()), F.binary_cross_entropy_with_logits(x, is_above, pos_weight=torch.tensor(2.0))
    of_pairs = F.cosine_embedding_loss(x, y, ones), F.triplet_margin_loss(x, y, x.flip(0)), F.margin_ranking_loss(x[:, 0], y[:, 0], ones)
    return of_classes, of_values, of_logits, of_pairs, F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), F.multilabel_soft_margin_loss(x, is_above)


@case(learned((2, 6, 9)), backward=True, tolerance=1e-4)
def a_loss_of_sequences(x):
    return F.ctc_loss(x.permute(2, 0, 1).log_softmax(2), torch.tensor([[1, 2, 3], [2, 4, 1]]), torch.tensor([9, 9]), torch.tensor([3, 2]))


@case(learned((2, 4, 8, 8)), backward=True, tolerance=1e-4)
def activations(x):
    plain = F.relu6, F.elu, F.selu, F.celu, F.leaky_relu, F.hardtanh, F.hardswish, F.hardsigmoid, F.mish, F.softplus, F.softsign, F.softshrink, F.logsigmoid
    return [f(x) for f in plain], F.glu(x, 1), F.prelu(x, torch.rand(4)), F.gelu(x, approximate="tanh"), F.normalize(x, dim=1), F.local_response_norm(x, 2), F.rms_norm(x, (8,))


@case(learned((2, 4, 8, 8)), backward=True, tolerance=1e-4)
def sampling_and_padding(x):
    modes = ("bilinear", True), ("bilinear", False), ("bicubic", False), ("nearest", None), ("area", None), ("nearest-exact", None)
    sampled = [F.interpolate(x, size=(5, 11), mode=mode, align_corners=corners) for mode, corners in modes]
    padded = [F.pad(x, (2, 1, 1, 2), mode=mode) for mode in ("reflect", "replicate", "circular")]
    pools = F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.lp_pool2d(x.abs(), 2, 2), F.adaptive_max_pool2d(x, (3, 5)), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
    return sampled, padded, pools, F.interpolate(x, size=(5, 6), mode="bilinear", antialias=True), F.pad(x, (-1, 1, 0, -2)), F.unfold(x, 3, padding=1, stride=2), F.pixel_unshuffle(x, 2)


@case(learned((2, 3, 6, 7), lambda: torch.rand(2, 4, 5, 2) * 2.4 - 1.2), backward=True, tolerance=1e-4)
def grids(x, grid):
    kinds = [(m, p, a) for m in ("bilinear", "nearest", "bicubic") for p in ("zeros", "border", "reflection") for a in (False, True)]
    return [F.grid_sample(x, grid, mode=m, padding_mode=p, align_corners=a) for m, p, a in kinds]


@case(learned((2, 3, 4, 5, 6), lambda: torch.rand(2, 2, 3, 4, 3) * 2.4 - 1.2), backward=True, tolerance=1e-4)
def grids_of_volumes(x, grid):
    kinds = [(m, p, a) for m in ("bilinear", "nearest") for p in ("zeros", "border", "reflection") for a in (False, True)]
    return [F.grid_sample(x, grid, mode=m, padding_mode=p, align_corners=a) for m, p, a in kinds]


@case(learned((2, 2, 3)), backward=True)
def affine_grids(t):
    return [F.affine_grid(t, (2, 3, 4, 5), align_corners=corners) for corners in (False, True)]


@case(given(longs(1, 3, 3, 9, 0, 2, 2, 1), longs(0, 2, 2, 6)), backward=True, tolerance=1e-4)
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.p = nn.Parameter(R(10, 4)), nn.Parameter(torch.rand(8) + 0.1)

    def forward(self, i, o):
        modes = ("sum", "mean", "max")
        plain = [F.embedding_bag(i, self.w, o, mode=m, padding_idx=p) for m in modes for p in (None, 3)]
        weighted = F.embedding_bag(i, self.w, o, mode="sum", per_sample_weights=self.p), F.embedding_bag(i.view(2, 4), self.w, mode="sum", per_sample_weights=self.p.view(2, 4))
        last = F.embedding_bag(i, self.w, torch.cat([o, torch.tensor([8])]), mode="mean", include_last_offset=True)
        return plain, weighted, last, F.embedding_bag(i, self.w, o, mode="sum", scale_grad_by_freq=True), F.embedding(i, self.w, padding_idx=2, scale_grad_by_freq=True)


@case(learned(lambda: torch.rand(4, 4) + 0.1), backward=True, tolerance=1e-4)
def incomplete_gamma_functions(x):
    a = torch.tensor([0.01, 0.5, 3.0, 40.0])
    return torch.special.gammainc(a, x * 20), torch.special.gammaincc(a, x * 20), torch.lgamma(x), torch.digamma(x), torch.special.i0(x), torch.erfinv(x - 0.5)


@case(given(lambda: torch.arange(24).view(4, 6), lambda: torch.tensor([[True] * 3 + [False] * 3] * 4), longs(0, 2)))
def indices(x, m, i):
    y, z, w = x.clone(), x.clone(), x.clone()
    y[m] = -1
    z[i, :] = 7
    w[i[:, None], i] = i
    read = x[i], x[:, i], x[i, i], x[None, ..., 0], x[..., 1:5:3], x[i[:, None], i], x.take(i)
    return read, y, z, w, x.index_fill(0, i, 9), x.masked_fill(m, 0), x.put_(i, i), torch.where(m, x, 0)


@case(learned((6, 5)), backward=True)
def gradients_of_indices(x):
    i = torch.tensor([0, 2, 2, 5])
    return x[i], x[i, torch.tensor([1, 1, 1, 0])], x[:, [0, -1]], x.index_select(0, i), x.take_along_dim(i[:, None], 0), x[1:5:2, ::3], x.diag(), x.trace(), x[None, :, None]


@case(learned((3, 4)), backward=True)
def gradients_of_views(x):
    views = x.t().unflatten(0, (2, 2)), x.as_strided((2, 2), (1, 2)), torch.movedim(x, 0, 1) + 1, x.expand(2, 3, 4).sum(0), x.swapaxes(0, 1), torch.atleast_3d(x)
    return views, (x @ x.t()).tril(), x.tile(2, 2), x.flip(0, 1), x.rot90(), torch.block_diag(x, x), torch.meshgrid(x[0], x[:, 0], indexing="ij"), torch.combinations(x[0])


@case(learned((2, 3, 8)), backward=True, tolerance=1e-4)
def attention(q):
    mask, q = torch.ones(3, 3).tril().bool(), q.unsqueeze(1)
    attend = F.scaled_dot_product_attention
    return attend(q, q, q), attend(q, q, q, is_causal=True), attend(q, q, q, attn_mask=mask), attend(q, q * 2, q, attn_mask=mask.float(), scale=0.3)


@case(given((4, 6)))
def statistics(x):
    moments = x.std(), x.var(0, correction=0), torch.std_mean(x, 1), torch.cov(x), torch.corrcoef(x), x.nanmean(0), torch.dist(x, x * 2, 3)
    norms = x.norm(1), x.norm(p=float("inf")), x.norm(0), x.count_nonzero(1), x.nansum(), x.logsumexp((0, 1)), x.aminmax(), x.argmin(0)
    return moments, norms, x.cumsum(0).cummax(0), torch.trapezoid(x), torch.cumulative_trapezoid(x), x.diff(2), torch.gradient(x), torch.logcumsumexp(x, 0)


@case(given((4, 4)))
def ints_and_bits(x):
    i = (x * 100).int()
    bits = i & 7, i | 8, i ^ 3, ~i, i << 2, i >> 1, x.view(torch.int32), x.signbit(), i.bitwise_left_shift(1)
    quotients = i // 3, i % 3, -i // 3, torch.fmod(i, 3), torch.remainder(i, -3), x // 0.3, x % 0.3, torch.gcd(i, i + 6)
    return bits, quotients, x.floor(), x.round(decimals=1), x.trunc(), x.frac(), x.sign(), x.to(torch.int8), torch.frexp(x), torch.ldexp(x, i % 4), torch.nextafter(x, x + 1)


@case(given((4, 6)))
def tensors_that_a_program_makes(x):
    ranges = torch.arange(5), torch.arange(0, 1, 0.25), torch.linspace(0, 3, 7), torch.logspace(0, 2, 3), torch.eye(3), torch.tril_indices(3, 4), torch.hann_window(6)
    filled = torch.full((2,), 3), torch.full((2,), True), torch.zeros_like(x, dtype=torch.int), torch.tensor([1, 2.5]), x.new_full((2,), 7), x.new_ones(()), torch.randn(0, 3)
    return ranges, filled, F.one_hot(torch.tensor([0, 2]), 3), torch.complex(x, x)


def main(names):
    failed = 0
    warnings.simplefilter("ignore")
    for name in names or CASES:
        start, problem = time.time(), ""
        try:
            agrees(name)
        except Exception as error:
            problem, failed = f": {type(error).__name__}: {str(error)[:500]}", failed + 1
        print(f"{name} {time.time() - start:.1f} s{problem}", flush=True)
    print(f"{failed} of {len(names or CASES)} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
