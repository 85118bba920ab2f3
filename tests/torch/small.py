"""Small functions of the kinds that compilers of PyTorch are tested with, in several dtypes and with gradients, compared with eager:

    python small.py [--names a,b] [--dtypes float32,int64] [--shard 0/4]

test_functions.py runs a few of them.
"""

import argparse
import warnings

import agreement

# isort: split
import torch
import torch.nn.functional as F

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
SINGLE = (torch.float32,)
ALL = (*FLOATS, torch.int64, torch.bool)
# Sums of several gradients are rounded in each dtype, in any order.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}
CASES = {}


def case(*operands, dtypes=ALL, grad=True):
    """Adds a function to CASES: the sizes of its operands, or functions that make them; its dtypes; whether it has gradients."""

    def add(fn):
        CASES[fn.__name__] = (fn, operands, dtypes if operands else SINGLE, grad)
        return fn

    return add


def ints(sizes, low=0, high=4):
    return lambda dtype: torch.randint(low, high, sizes)


def bools(sizes):
    return lambda dtype: torch.rand(sizes) > 0.5


def operand(given, dtype, grad):
    if callable(given):
        return given(dtype)
    if dtype == torch.bool:
        return torch.rand(given) > 0.5
    if not dtype.is_floating_point:
        return torch.randint(-9, 10, given).to(dtype)
    return torch.randn(given).to(dtype).requires_grad_(grad)


def agrees(name, dtype):
    """Compare a case with eager in one dtype."""
    fn, operands, _, grad = CASES[name]
    grad = grad and dtype.is_floating_point
    tolerance = TOLERANCES.get(dtype)
    agreement.agree(fn, lambda: tuple(operand(x, dtype, grad) for x in operands), backward=grad, strict=False, tolerance=tolerance)


@case((4, 5), (5,))
def add_const(a, b):
    return a + 1, a * 2 + b, 3 - a.float(), b.float() / 2


@case((8, 9))
def sum_kinds(a):
    return a.sum(), a.sum(0), a.sum((0, 1), keepdim=True), a.sum(-1, dtype=torch.float64), a.sum(1, keepdim=True) + a.float()


@case((3, 5, 7, 9))
def sum_many_axes(a):
    return a.sum((1, 3)), a.sum((0, 2)), (a + 1).sum(-1) + 2, a.sum((0, 1, 2, 3))


@case((8, 9))
def prod_any_all(a):
    return a.float().prod(1), a.any(), a.any(1), a.all(0), (a > 0).all(1, keepdim=True)


@case((8, 9), dtypes=FLOATS)
def max_min(a):
    return torch.max(a, 1), torch.min(a, 0), a.max(), a.amin(1), torch.maximum(a, a.t().reshape(8, 9)), torch.fmax(a, a * 2)


@case((8, 9), grad=False)
def argmaxes(a):
    return a.float().argmax(), a.float().argmin(1), a.float().argmax(-1, keepdim=True).float()


@case((8, 9), grad=False)
def argmax_flat(a):
    b = a.to(torch.int64) if a.dtype == torch.bool else a
    return b.argmax(0), b.argmin(), b.argmax(-1)


@case((16, 16), dtypes=FLOATS)
def softmaxes(a):
    return F.softmax(a, -1), F.softmax(a, 0), F.log_softmax(a, 1), F.softmin(a, 1), F.softmax(a.float(), -1).to(a.dtype)


@case((16, 16), dtypes=FLOATS)
def to_dtype_softmax(a):
    return F.softmax(a, -1, dtype=torch.float32), F.log_softmax(a, 0, dtype=torch.float64)


@case((4, 6), (6, 4))
def transposes(a, b):
    return a.t() + b, a.t().contiguous(), b.transpose(0, 1) * 2 if b.dtype != torch.bool else b.t(), (a.t() + 1).t()


@case((3, 4, 5))
def permutes(a):
    return a.permute(2, 0, 1) + 1, a.permute(1, 2, 0).reshape(4, 15), a.permute(0, 2, 1).flatten(1).sum(0)


@case((1, 5, 1))
def squeezes(a):
    return a.squeeze() + 1, a.squeeze(0), a.squeeze((0, 2)), a.unsqueeze(-1).unsqueeze(1), a.expand(3, 5, 4) + a


@case((2, 1, 4))
def expands(a):
    return (a + 1).expand(3, 2, 5, 4), a.expand(-1, 3, -1).clone(), a.expand(2, 3, 4).sum(1)


@case((4, 8))
def views(a):
    return a.view(-1, 2, 2, 4) + 1, (a + 1).view(32), a.reshape(8, 4).t(), a.view(4, 2, 4).transpose(0, 1).reshape(2, 16), a.view(2, 16)[1]


@case((8, 8))
def slices(a):
    return a[::2], a[:, 1:-1], a[3], a[-1:, ::3] + 1, a[2:7:2, None], a[..., 0], a[5:5], a[:, -3:].sum(1)


@case((6, 8), (2, 8))
def slice_scatters(a, b):
    return torch.slice_scatter(a, b, 0, 1, 5, 2), torch.slice_scatter(a, b.new_zeros(6, 3), 1, 5, 8), torch.select_scatter(a, b[0], 0, -2), torch.slice_scatter(a, a, 0, 0, 100)


@case((4, 9))
def splits(a):
    return *torch.split(a, 4, 1), *torch.split(a + 1, [2, 7], 1), *a.chunk(2, 0), *torch.tensor_split(a, [2, 5], 1), *torch.unbind(a, 0)


@case((3, 4), (3, 4), (3, 2))
def cats(a, b, c):
    return torch.cat([a, b]), torch.cat([a + 1, b.float(), c], 1), torch.cat([a, b, a], -1)[:, 3:], torch.stack([a, b], 1), torch.cat([a[:0], b]), torch.hstack([a, c]), torch.vstack([a, b]), torch.dstack([a, b]), torch.cat([a.new_zeros(0), a[0]])


@case((4, 8, 8))
def pads(a):
    return F.pad(a, (1, 2)), F.pad(a, (0, 1, 2, 0), value=1), F.pad(a, (-1, 3)), F.pad(a, (0, 0, 1, 1, 2, 0))


@case((2, 3, 8, 8), dtypes=FLOATS)
def pads_by_mode(a):
    return F.pad(a, (1, 2, 3, 1), "reflect"), F.pad(a, (1, 2, 3, 1), "replicate"), F.pad(a, (1, 2, 3, 1), "circular"), F.pad(a[0, 0][None], (2, 2), "reflect")


@case((5, 6))
def wheres(a):
    return torch.where(a > 0, a, 0), torch.where(a > 0, 1.0, a.float()), torch.where(a.bool(), a, a.flip(0)), torch.where(a > 0, a.new_tensor(3), a)


@case((5, 6), bools((5, 6)), bools((5, 1)))
def masked_fills(a, m, n):
    return a.masked_fill(m, 1), a.masked_fill(n, 0), a.float().masked_fill(m, float("-inf")), a.masked_fill(m, torch.tensor(2).to(a.dtype)), torch.masked.sum(a.float(), mask=m), a.float().masked_fill(~n, -1000000000.0).softmax(-1)


@case((5, 6))
def clamps(a):
    a = a.to(torch.int64) if a.dtype == torch.bool else a
    return a.clamp(-1, 1), a.clamp(min=0), a.clamp_max(2), torch.clamp(a, torch.tensor(-1), torch.tensor(2)), a.clip(max=1.5), F.hardtanh(a.float()), F.relu6(a.float())


@case((5, 6), dtypes=FLOATS)
def rounding_fns(a):
    a = a * 3
    return a.floor(), a.ceil(), a.round(), a.trunc(), a.frac(), a.round(decimals=1), a.sign(), a.sgn(), a.abs(), a.neg()


@case((5, 6), dtypes=FLOATS)
def math_fns(a):
    b = a.abs() + 0.1
    return a.exp(), a.exp2(), a.expm1(), b.log(), b.log2(), b.log10(), b.log1p(), b.sqrt(), b.rsqrt(), a.sin(), a.cos(), a.tan(), a.sinh(), a.cosh(), a.tanh(), a.sigmoid(), a.erf(), a.erfc(), b.reciprocal(), a.square()


@case((5, 6), dtypes=FLOATS)
def math_fns2(a):
    b = a.tanh() * 0.9
    return b.asin(), b.acos(), b.atan(), b.atanh(), a.asinh(), (a.abs() + 1.1).acosh(), b.erfinv(), torch.logit(b.abs(), 0.01), torch.xlogy(a, a.abs() + 0.1), torch.special.entr(a.abs() + 0.1), torch.sinc(a), torch.special.ndtr(a), F.logsigmoid(a), torch.deg2rad(a), torch.rad2deg(a)


@case((5, 6))
def math_on_ints(a):
    return a.exp() if a.dtype != torch.bool else a.float().exp(), torch.sqrt(a.abs()) if a.dtype != torch.bool else a, torch.sigmoid(a), torch.sin(a), torch.atan(a), torch.log1p(a.abs() if a.dtype != torch.bool else a), torch.erf(a), torch.rsqrt(a.abs() + 1 if a.dtype != torch.bool else a.int() + 1)


@case((6, 5), (6, 5))
def pows(a, b):
    a = a.abs() + 1 if a.dtype != torch.bool else a.long() + 1
    b = (b.abs() if b.dtype != torch.bool else b.long()).clamp(max=3)
    return a ** 2, a ** b, 2 ** b, a ** 0, a.float() ** (-1), a.float() ** 0.5, a.float() ** (-0.5), torch.float_power(a, b), a.pow(3)


@case((6, 5), (6, 5))
def divs(a, b):
    b = b.long() if b.dtype == torch.bool else b
    b = torch.where(b == 0, 1, b)
    a = a.long() if a.dtype == torch.bool else a
    return a / b, torch.div(a, b, rounding_mode="floor"), torch.div(a, b, rounding_mode="trunc"), a % b, torch.fmod(a, b), torch.remainder(a, 3), a / 3, a.detach() // b.detach(), a.detach() // -2, torch.true_divide(a, 2), 5 / b, 7 // b.detach()


@case((6, 5), (6, 5), grad=False)
def comparisons(a, b):
    return a == b, a != b, a < b, a <= 0, a >= b, a > 1, torch.eq(a, 1), torch.isclose(a.float(), b.float()), torch.equal(a, a), a.logical_and(b), a.logical_or(b), a.logical_xor(b), a.logical_not()


@case((6, 5), (6, 5), dtypes=(torch.int64, torch.bool))
def bitwise(a, b):
    return a & b, a | b, a ^ b, ~a, (a & b).sum(), a.long() << 2, a.long() >> 1, torch.bitwise_left_shift(a.long().abs() % 5, 1)


@case((5, 5), dtypes=FLOATS)
def activations(a):
    return F.relu(a), F.elu(a), F.selu(a), F.celu(a), F.gelu(a), F.gelu(a, approximate="tanh"), F.silu(a), F.mish(a), F.softplus(a), F.softsign(a), F.hardswish(a), F.hardsigmoid(a), F.leaky_relu(a), F.tanhshrink(a), F.softshrink(a), F.hardshrink(a), F.threshold(a, 0.1, 2.0), F.glu(a[:, :4], -1), F.prelu(a, torch.tensor([0.2], dtype=a.dtype)), F.rrelu(a, training=False), F.logsigmoid(a)


@case((4, 16), dtypes=FLOATS)
def layer_norms(a):
    w = torch.linspace(0.5, 1.5, 16, dtype=a.dtype)
    return F.layer_norm(a, (16,)), F.layer_norm(a, (16,), w, w), F.layer_norm(a.view(4, 2, 8), (2, 8)), F.rms_norm(a, (16,), w), F.normalize(a, dim=-1)


@case((4, 6, 5, 5), dtypes=FLOATS)
def group_batch_norms(a):
    return F.group_norm(a, 3), F.batch_norm(a, None, None, training=True), F.instance_norm(a), F.batch_norm(a, torch.zeros(6, dtype=a.dtype), torch.ones(6, dtype=a.dtype)), F.local_response_norm(a, 3) if a.dtype == torch.float32 else a


@case((8, 9), dtypes=FLOATS)
def vars_means(a):
    return a.mean(), a.mean(1, keepdim=True), a.var(), a.var(1), a.var(0, unbiased=False), a.std(1), torch.var_mean(a, 1), torch.std_mean(a, 0), torch.var(a, 1, correction=2), a.norm(), a.norm(1, dim=1), a.logsumexp(1), a.median(1)[0], a.nanmean(), a.mean((0, 1)), torch.linalg.vector_norm(a, float("inf"), 1)


@case((4, 9))
def cums(a):
    return a.cumsum(1), a.cumsum(0), a.float().cumprod(1), a.float().logcumsumexp(0), *torch.cummax(a.float(), 1), *torch.cummin(a.float(), 0), a.cumsum(-1, dtype=torch.float32)


@case((4, 2000), dtypes=(torch.float32, torch.bfloat16, torch.int64))
def long_cums(a):
    return a.cumsum(1), a.view(-1).cumsum(0), (a.float() * 0.01 + 1).cumprod(1)


@case((200, 300), dtypes=FLOATS)
def long_reductions(a):
    return a.sum(), a.mean(0), a.max(), a.var(), a.view(-1).norm(), a.float().sum(1).prod() * 0


@case((6, 7), ints((3,), 0, 6), ints((3,), 0, 7))
def indices(a, i, j):
    return a[i], a[:, j], a[i, j], a[i[:, None], j], a[i, None], a[i][:, j], a[-1, j], a[i.flip(0)].sum(0), torch.index_select(a, 1, j), a.take(i), a[[0, -1]]


@case((6, 7), ints((3,), 0, 6), (3, 7))
def index_writes(a, i, v):
    b = a.clone()
    b[i] = v
    c = a.clone()
    c[:, 2] = 1
    d = a.index_copy(0, torch.tensor([0, 2, 4]), v)
    e = a.index_fill(0, i, 1)
    return b * 1 if i.unique().numel() == 3 else b.sum() * 0, c, d, e, a.index_put((torch.tensor([1, 2]),), v[:2]), torch.index_put(a.long(), (i,), v.long(), accumulate=True)


@case((6, 7), ints((6, 7), 0, 6), (6, 7))
def scatters(a, i, v):
    return a.gather(0, i), a.gather(1, i), a.scatter(0, torch.arange(7).expand(1, 7) % 6, v[:1]), a.long().scatter_add(0, i, v.long()), a.float().scatter_add(1, i, v.float()), a.float().scatter_reduce(0, i, v.float(), "amax"), a.float().scatter_reduce(0, i, v.float(), "mean"), a.long().scatter_reduce(0, i, v.long(), "sum", include_self=False), a.scatter(1, i[:, :1], 1)


@case((10, 4), ints((3, 5), 0, 10), dtypes=FLOATS)
def embeddings(w, i):
    return F.embedding(i, w), F.embedding(i, w, padding_idx=2), F.embedding(i, w).sum(1)


@case((10, 4), ints((3, 5), 0, 10), dtypes=FLOATS)
def embedding_bags(w, i):
    return F.embedding_bag(i, w, mode="sum"), F.embedding_bag(i, w, mode="mean")


@case((10, 4), ints((3, 5), 0, 10), dtypes=SINGLE)
def embedding_bags_max(w, i):
    return F.embedding_bag(i, w, mode="max"), F.embedding_bag(i.view(-1), w, torch.tensor([0, 4, 4, 9]), mode="mean"), F.embedding_bag(i, w, mode="sum", per_sample_weights=torch.linspace(0, 1, 15).view(3, 5)), F.embedding_bag(i.view(-1), w, torch.tensor([0, 4, 15]), mode="sum", include_last_offset=True), F.embedding_bag(i, w, padding_idx=3)


@case((5,), grad=False)
def one_hots(a):
    b = a.long().abs() % 4
    return F.one_hot(b, 4), F.one_hot(b, 4).float().sum(0)


@case((4, 5), (5, 3), (3,), dtypes=FLOATS)
def mms(a, b, c):
    return a @ b, torch.addmm(c, a, b), torch.addmm(c, a, b, beta=0.5, alpha=2), F.linear(a, b.t(), c), a @ b[:, 0], torch.mv(a, b[:, 1]), torch.outer(a[0], c), torch.dot(a[0], b[:, 0]), torch.einsum("ij,jk->ki", a, b)


@case((2, 4, 5), (2, 5, 3), dtypes=FLOATS)
def bmms(a, b):
    return torch.bmm(a, b), a @ b[0], torch.baddbmm(a.new_ones(2, 4, 3), a, b), torch.einsum("bij,bjk->bik", a, b), torch.matmul(a[:, None], b), a.transpose(1, 2) @ a


@case((4, 5), (5, 3), dtypes=(torch.int64,))
def int_mms(a, b):
    return a @ b, torch.mm(a, b) + 1


@case((2, 3, 8, 8), (4, 3, 3, 3), (4,), dtypes=(torch.float32, torch.bfloat16))
def convs(x, w, b):
    return F.conv2d(x, w, b), F.conv2d(x, w, b, stride=2, padding=1), F.relu(F.conv2d(x, w, padding="same")), F.conv_transpose2d(x, w.transpose(0, 1).contiguous()[:3], None, 2, 1, 1), F.conv2d(x, w[:3, :1], None, groups=3, padding=1), F.conv1d(x[:, :, 0], w[:, :, 0], b), F.conv2d(x, w, dilation=2)


@case((1, 2, 5, 6, 6), (4, 2, 3, 3, 3), dtypes=SINGLE)
def conv3ds(x, w):
    return F.conv3d(x, w, padding=1), F.conv_transpose3d(x, w.transpose(0, 1).contiguous())


@case((2, 3, 9, 8), dtypes=(torch.float32, torch.bfloat16))
def pools(x):
    return F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), *F.max_pool2d(x, 2, return_indices=True), F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (4, 3)), F.adaptive_max_pool2d(x, 2), F.max_pool1d(x[0], 2), F.avg_pool1d(x[0], 2), F.lp_pool2d(x.abs() + 0.1, 2, 2)


@case((1, 2, 6, 6, 6), dtypes=SINGLE)
def pools3d(x):
    return F.max_pool3d(x, 2), F.avg_pool3d(x, 2), F.adaptive_avg_pool3d(x, 2)


@case((2, 3, 6, 5), dtypes=FLOATS)
def upsamples(x):
    return F.interpolate(x, scale_factor=2), F.interpolate(x, size=(9, 7), mode="bilinear"), F.interpolate(x, size=(9, 7), mode="bilinear", align_corners=True), F.interpolate(x, scale_factor=2, mode="bicubic"), F.interpolate(x[:, :, 0], scale_factor=2, mode="linear"), F.interpolate(x, size=(3, 3), mode="area"), F.interpolate(x, size=3, mode="nearest-exact")


@case((1, 2, 4, 4, 4), dtypes=SINGLE)
def upsamples3d(x):
    return F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 6, 7), mode="trilinear"), F.interpolate(x, scale_factor=2, mode="nearest-exact")


@case((2, 4, 6, 6), dtypes=FLOATS)
def shuffles(x):
    return F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2), F.unfold(x, 3), F.fold(F.unfold(x, 2, stride=2), (6, 6), 2, stride=2)


@case((2, 3, 6, 6), dtypes=SINGLE)
def grids(x):
    g = torch.linspace(-1.2, 1.2, 50).view(1, 5, 5, 2).expand(2, 5, 5, 2)
    return F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, "nearest", "border", True), F.affine_grid(torch.eye(2, 3).expand(2, 2, 3), (2, 3, 4, 4), align_corners=False)


@case((4, 6), (4, 6), dtypes=FLOATS)
def losses(a, b):
    y = torch.tensor([0, 5, 2, 2])
    return F.mse_loss(a, b), F.l1_loss(a, b, reduction="sum"), F.smooth_l1_loss(a, b), F.huber_loss(a, b), F.cross_entropy(a, y), F.cross_entropy(a, y, label_smoothing=0.1), F.nll_loss(a.log_softmax(1), y), F.binary_cross_entropy_with_logits(a, b.sigmoid()), F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean"), F.soft_margin_loss(a, b.sign().detach()), F.cosine_similarity(a, b)


@case((4, 6), (4, 6), dtypes=FLOATS)
def losses2(a, b):
    return F.binary_cross_entropy(a.sigmoid(), b.sigmoid().detach()), F.hinge_embedding_loss(a, b.sign().detach()), F.margin_ranking_loss(a, b, torch.ones_like(a)), F.gaussian_nll_loss(a, b.detach(), a.square() + 1), F.poisson_nll_loss(a, b.abs().detach()), F.multilabel_soft_margin_loss(a, (b > 0).to(a.dtype)), F.triplet_margin_loss(a, b, a.flip(0))


@case((2, 2, 6, 4), (2, 2, 6, 4), (2, 2, 6, 4), dtypes=FLOATS)
def sdpa(q, k, v):
    m = torch.ones(6, 6).tril().bool()
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, attn_mask=m)


@case((2, 2, 6, 4), (2, 2, 6, 4), (2, 2, 6, 4), dtypes=FLOATS)
def own_attention(q, k, v):
    s = q @ k.transpose(-1, -2) * 0.5
    s = s.masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf"))
    return s.softmax(-1) @ v


@case((5, 6))
def sorts(a):
    return a.sort(dim=1, stable=True), a.sort(dim=0, descending=True, stable=True), a.argsort(dim=1, stable=True), torch.sort(a)[0], torch.msort(a)


@case((5, 6), dtypes=FLOATS)
def topks(a):
    return a.topk(3), a.topk(2, 0, largest=False), a.kthvalue(2, 1), a.mode(1)[0], a.median(), a.quantile(0.3) if a.dtype == torch.float32 else a


@case((5, 6))
def uniques(a):
    return a.detach().unique(), torch.unique(a.detach(), return_counts=True), a.nonzero(), a[a > 0], torch.count_nonzero(a, 1)


@case(dtypes=SINGLE, grad=False)
def creations():
    return torch.arange(5), torch.arange(1, 9, 2, dtype=torch.float32), torch.linspace(0, 1, 7), torch.zeros(3), torch.ones(2, 3, dtype=torch.int64), torch.full((2,), 3.5), torch.eye(3, 4), torch.tril_indices(3, 3), torch.logspace(0, 1, 4), torch.tensor([1, 2.0]), torch.empty(0), torch.arange(5, 0, -1), torch.arange(0, 1, 0.3), torch.full((2,), True), torch.zeros(()), torch.hann_window(5)


@case((3, 4))
def likes(a):
    return torch.zeros_like(a), torch.ones_like(a, dtype=torch.float64), torch.full_like(a, 1), a.new_zeros(2, 2), a.new_full((2,), 1), a.new_ones(3), torch.empty_like(a).fill_(1), a.new_tensor([1, 2]), torch.zeros_like(a.t()), a.new_empty_strided((2, 3), (1, 2)).zero_()


@case((4, 4))
def triangles(a):
    return a.tril(), a.triu(1), torch.diag(a), a.diagonal(1), torch.diag_embed(a), a.flip(0), a.flip(0, 1), a.roll(1, 0), a.rot90(), a.roll((1, 2), (0, 1)), torch.block_diag(a, a[:2]), torch.trace(a) if a.dtype in (torch.float32, torch.int64) else a


@case((3, 4))
def repeats(a):
    return a.repeat(2, 3), a.repeat_interleave(2, 0), a.repeat_interleave(torch.tensor([1, 0, 2]), 0), a.tile(2), a.expand(2, 3, 4), torch.broadcast_to(a, (2, 3, 4)), torch.meshgrid(a[0], a[1], indexing="ij"), torch.cartesian_prod(a[0], a[1]), torch.combinations(a[0])


@case((3, 4), grad=False)
def input_mutations(a):
    a.add_(1) if a.dtype != torch.bool else a.logical_not_()
    b = a * 2 if a.dtype != torch.bool else a ^ True
    a[0] = b[1]
    return b


@case((4, 4), grad=False)
def slice_mutations(a):
    a[1:3, ::2].fill_(1)
    b = a.t()
    b[0].zero_()
    return a.sum(), b


@case((4, 4), (4, 4), grad=False)
def copy_mutations(a, b):
    a.copy_(b.t())
    b[0].copy_(a[1])
    return (a + 1).sum()


@case((3, 4))
def aliased_outputs(a):
    b = a + 1 if a.dtype != torch.bool else ~a
    return b, b.t(), b[0], b.view(-1), a.view(4, 3)


@case((3, 4))
def dtype_views(a):
    return a.to(torch.float64), a.to(torch.int32), a.half(), a.to(torch.int8), a.bool(), a.to(torch.bfloat16), a.double().long(), a.to(torch.uint8) if a.dtype in (torch.int64, torch.bool) else a


@case((4,), (), dtypes=(torch.float32, torch.int64))
def scalars(a, s):
    return a + s, a * s, torch.where(s > 0, a, -a), a + 2.5, a * True, s + 1, s * s, s.expand(3), torch.stack([s, s])


@case((4, 4), dtypes=SINGLE)
def nans(a):
    b = torch.where(a > 0, float("nan"), a)
    return b.isnan(), b.nan_to_num(), b.nansum(), b.max(), b.argmax(), b.nanmean(), torch.isfinite(b), torch.isinf(a / 0), b.sort()[0], b.amax(1), (a / 0).nan_to_num(1, 2, 3)


@case((4, 4), dtypes=FLOATS)
def randoms(a):
    torch.manual_seed(3)
    return F.dropout(a, 0.5), torch.rand_like(a), torch.randn_like(a), torch.bernoulli(a.sigmoid()), torch.randint(0, 5, (3,)), F.dropout(a, 0.0), F.dropout(a, 1.0), F.dropout(a, 0.3, training=False), F.dropout1d(a[None], 0.5)


@case((3, 4), dtypes=SINGLE)
def complexes(a):
    z = torch.complex(a, a.flip(0))
    return z.abs(), z.angle(), z.conj().real, z * z, (z @ z.t()).imag, torch.view_as_real(z), z.sum(), z.exp(), torch.polar(a.abs(), a), z / 2, z.reciprocal(), z + a


@case((3, 8), dtypes=SINGLE)
def ffts(a):
    return torch.fft.fft(a).abs(), torch.fft.rfft(a), torch.fft.irfft(torch.fft.rfft(a)), torch.fft.fft2(a).real, torch.fft.fftshift(a)


@case((4, 4), dtypes=SINGLE)
def linalgs(a):
    s = a @ a.t() + 4 * torch.eye(4)
    return torch.linalg.inv(s), torch.linalg.det(s), torch.linalg.cholesky(s), torch.linalg.solve(s, a), torch.linalg.norm(a), torch.linalg.matrix_power(a, 3), torch.linalg.slogdet(s), torch.cross(a[:, :3], a[:, 1:], dim=1), torch.kron(a, a[:2, :2]), torch.linalg.multi_dot([a, a, a])


@case((6, 8), dtypes=(torch.float32, torch.int64))
def unfolds(a):
    return a.unfold(0, 3, 2), a.unfold(1, 4, 4).sum(-1), torch.as_strided(a, (3, 2), (8, 2), 1), a.movedim(0, 1), a.swapaxes(0, 1) + 1, a.narrow(1, 2, 3), a.unflatten(1, (2, 4)), torch.atleast_3d(a)


@case((5, 4), (5, 4))
def lerps(a, b):
    a, b = (a.float(), b.float())
    return torch.lerp(a, b, 0.3), torch.lerp(a, b, b.abs()), torch.addcmul(a, a, b, value=0.5), torch.addcdiv(a, a, b.abs() + 1, value=2), torch.hypot(a, b), torch.atan2(a, b), torch.logaddexp(a, b), torch.logaddexp2(a, b), torch.copysign(a, b), torch.nextafter(a.detach(), b.detach()), torch.ldexp(a, torch.tensor([1, 2, 3, 4])), torch.heaviside(a.detach(), b.detach()), torch.dist(a, b), torch.cdist(a, b)


@case((4, 4), (3,))
def buckets(a, b):
    e = torch.tensor([-1.0, 0, 1])
    return torch.bucketize(a.float(), e), torch.bucketize(a.float(), e, right=True, out_int32=True), torch.searchsorted(e, a.float()), torch.histc(a.float(), 4, -2, 2), torch.bincount(a.long().abs().view(-1)), torch.isin(a.long(), torch.tensor([1, 2]))


@case((4, 6, 5), dtypes=FLOATS)
def rnn_like(x):
    h = x.new_zeros(4, 5)
    for k in range(6):
        h = torch.tanh(x[:, k] + h * 0.5)
    return h


@case((2, 3, 4, 4), dtypes=FLOATS)
def channels_last(x):
    x = x.to(memory_format=torch.channels_last)
    return x + 1, F.relu(x), x.mean((2, 3)), x.contiguous(), F.conv2d(x.float(), torch.ones(4, 3, 1, 1)), x * x.sum(1, keepdim=True), F.max_pool2d(x, 2), x.flatten(1)


@case((3, 4), (4,))
def broadcasting(a, b):
    a, b = (a.long(), b.long()) if a.dtype == torch.bool else (a, b)
    return a + b[None], a[:, :, None] * b if a.dtype != torch.bool else a[:, :, None] & b, torch.maximum(a, b), a - b.float(), a[:1] + a, torch.add(a, b.float(), alpha=2)


@case((8,), dtypes=(torch.float32, torch.float16, torch.bfloat16))
def type_promotions(a):
    return a + torch.tensor(2.0, dtype=torch.float64), a * torch.arange(8), a + torch.arange(8, dtype=torch.uint8), a / torch.tensor(3), torch.where(a > 0, a, torch.zeros(8, dtype=torch.float64)), a + 1j if a.dtype == torch.float32 else a, torch.cat([a, torch.arange(3)]), a.mul(True), torch.pow(a.abs(), torch.tensor(2)), a.clamp(torch.tensor(-1.0, dtype=torch.float64))


@case((8,), dtypes=(torch.int64, torch.bool))
def int_promotions(a):
    return a + 1.5, a / 2, a * 2, a.sum(), a.float().mean(), a.cumsum(0), a + torch.tensor(1.5), a * torch.tensor(2, dtype=torch.int8), a + torch.ones(8, dtype=torch.int32), a.prod(), a.to(torch.int8).sum(), torch.true_divide(a, 3), a.abs() if a.dtype != torch.bool else a, -a.int(), a.amax(), a.max(0)


@case((100,), dtypes=SINGLE)
def uint8s(a):
    u = (a * 50 + 100).to(torch.uint8)
    return u + u, u * 2, 255 - u, u.float() / 255, u // 3, u.sum(), u.max(), u ^ 7, u << 1, u.to(torch.int8), (u > 100).sum(), u - 200, -u, u.roll(1) - u, u.to(torch.float16)


@case((4, 4), dtypes=FLOATS)
def inplace_chains(a):
    b = a.clone()
    b.mul_(2).add_(1)
    b = b.relu()
    b = b.clone()
    b[1:].sub_(b[:-1].clone())
    b.clamp_(-1, 3)
    b.t()[0] = 5
    return b, b + 0


@case((6, 4), dtypes=FLOATS)
def gathers_of_logits(a):
    y = torch.tensor([0, 1, 2, 3, 0, 1])
    p = a.log_softmax(-1)
    return -p.gather(1, y[:, None]).squeeze(1).mean(), p[torch.arange(6), y], F.one_hot(y, 4).to(a.dtype) * p


@case((2, 5, 8), dtypes=FLOATS)
def rotaries(x):
    h = x.shape[-1] // 2
    a, b = (x[..., :h], x[..., h:])
    f = torch.outer(torch.arange(5.0), 1 / 100 ** (torch.arange(4) / 4))
    c, s = (f.cos().to(x.dtype), f.sin().to(x.dtype))
    return torch.cat([a * c - b * s, a * s + b * c], -1), torch.view_as_complex(x.float().view(2, 5, 4, 2)).abs()


@case((4, 8), dtypes=FLOATS)
def moes(x):
    w = torch.linspace(-1, 1, 24).view(8, 3).to(x.dtype)
    p = (x @ w).softmax(-1)
    v, i = p.topk(2, -1)
    return v / v.sum(-1, keepdim=True) @ torch.ones(2, 1, dtype=x.dtype), F.one_hot(i, 3).sum((0, 1))


@case((4, 4))
def containers(a):
    return [a + 1 if a.dtype != torch.bool else ~a, {"x": a.sum(), "y": (a.any(), None, 3)}]


@case((16,), dtypes=SINGLE)
def specials(a):
    b = a.abs() + 0.1
    return torch.lgamma(b), torch.digamma(b), torch.polygamma(1, b), torch.special.i0e(a), torch.special.i1(a), torch.special.bessel_j0(a), torch.special.log_ndtr(a), torch.special.zeta(b + 1, b), torch.igamma(b.detach(), b.detach() + 1), torch.igammac(b.detach(), b.detach() + 1), torch.special.erfcx(a), torch.mvlgamma(b + 3, 2), torch.special.multigammaln(b + 3, 2), torch.special.xlog1py(a, b), torch.i0(a)


@case((4, 6), dtypes=FLOATS)
def foreachs(a):
    each = [a, a * 2, a.t().reshape(4, 6)]
    return *torch._foreach_add(each, 1), *torch._foreach_mul(each, each), *torch._foreach_sqrt([x.abs() + 0.1 for x in each]), *torch._foreach_norm(each)


@case((4, 6), dtypes=FLOATS)
def autograd_inside(a):
    with torch.no_grad():
        m = a.max(1, keepdim=True)[0]
    return (a - m).exp().sum(1).log() + m.squeeze(1), a.detach() * a


@case((3, 4), dtypes=SINGLE)
def vmaps(a):
    return torch.vmap(lambda r: r.softmax(0) * r.sum())(a), torch.func.grad(lambda x: (x ** 2).sum())(a.detach()), torch.vmap(torch.dot)(a, a)


@case((4, 5), dtypes=(torch.float32, torch.bfloat16))
def autocasts(a):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return a @ torch.ones(5, 3, dtype=a.dtype), F.layer_norm(a, (5,)), (a @ a.t()).softmax(-1)


@case((2, 9), dtypes=FLOATS)
def windows(a):
    return a.view(2, 3, 3).amax(-1), a.unfold(1, 3, 1).mean(-1), F.max_pool1d(a[:, None], 3, 1, 1)[:, 0], torch.diff(a), torch.diff(a, n=2), torch.cumulative_trapezoid(a.float()), torch.trapezoid(a.float()), a


@case((5,), dtypes=(torch.float32, torch.int64))
def items(a):
    n = (a > 0).sum().item()
    return a * n, torch.full((2,), n)


@case((3, 4), (3, 4))
def nested_wheres(a, b):
    return torch.where(a > b, torch.where(a > 0, a, b), torch.where(b > 1, b, 0)), torch.where(a.isnan() if a.is_floating_point() else a == 0, b, a)


@case((4, 3, 2))
def any_axes(a):
    return a.sum(-1).sum(-1), a.any(-1).any(0), a.float().mean((0, 2)), (a != 0).sum((0, 1)), a.float().amax((0, 1)), a.float().std((1, 2))


@case((33, 17))
def odd_sizes(a):
    return a.t().contiguous(), a.sum(0), a.t().float().softmax(0), a[1:, 1:].float() - a[:-1, :-1].float(), a.reshape(17, 33).t().sum(1)


@case((2, 3), dtypes=FLOATS)
def zero_dims(a):
    return a.sum() + 1, a.mean() * a, a.max() - a.min(), a.flatten()[0], a[0, 0].exp(), a.norm().sqrt()


@case((0, 4))
def empties(a):
    return a + 1 if a.dtype != torch.bool else ~a, a.sum(), a.sum(0), a.t(), torch.cat([a, a]), a.any(), a.float().mean(0), a.view(4, 0), a.expand(3, 0, 4), a.float().softmax(1)


@case((4, 8), dtypes=(torch.float32, torch.bfloat16))
def fused_optim(p):
    g = p * 0.1
    m = g * 0.1
    v = g * g * 0.001
    return p - 0.01 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-08) - p * 0.0001


@case((3, 5), dtypes=FLOATS)
def log_domain(a):
    return a.logsumexp(1), a.logcumsumexp(1), torch.logaddexp(a[0], a[1]), F.log_softmax(a, 1).exp().sum(1), a.logsumexp((0, 1)), torch.special.logsumexp(a, 0, True)


@case((6,), dtypes=(torch.int64,))
def int_math(a):
    b = a.abs() + 1
    return torch.gcd(a, b), torch.lcm(a, b), a.sign(), a.abs(), a.remainder(3), b.bitwise_count() if hasattr(b, "bitwise_count") else b, a.clamp(-2, 2), (a * a).float().sqrt().long(), a.float().round().int(), b.prod(), a.bitwise_not(), torch.bitwise_and(a, 6), a.max(0), a.argsort(stable=True)


@case((3, 4), dtypes=FLOATS)
def stack_of_reductions(a):
    return torch.stack([a.sum(), a.mean(), a.max(), a.min(), a.var()]), torch.cat([a.sum(0, keepdim=True), a])


@case((3, 4, 4), dtypes=FLOATS)
def batched_triangles(a):
    return a.tril(), a.triu(-1), torch.tril(a, 1) + torch.triu(a), a.diagonal(0, 1, 2), a.mT @ a, torch.linalg.vector_norm(a, dim=(1, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default=",".join(CASES))
    parser.add_argument("--dtypes", default=",".join(str(d).removeprefix("torch.") for d in ALL))
    parser.add_argument("--shard", default="0/1")
    given = parser.parse_args()
    number, count = map(int, given.shard.split("/"))
    warnings.simplefilter("ignore")
    for name in given.names.split(",")[number::count]:
        for dtype in CASES[name][2]:
            if str(dtype).removeprefix("torch.") in given.dtypes.split(","):
                try:
                    agrees(name, dtype)
                except Exception as error:
                    print(f"{name} {dtype}: {type(error).__name__}: {str(error)[:600]}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
