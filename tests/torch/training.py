"""Modules as users write them, compared with eager: results, gradients, and five steps of training:

    python training.py [NAME ...]

test_training.py runs a few of them.
"""

import copy
import math
import sys
import time
import warnings

import agreement

# isort: split
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

CASES = {}
R = torch.randn
LAST = torch.channels_last


def case(*makes, **options):
    """Adds a module class to CASES: makers of arguments, and options of `agreement.compiled`; tolerance: of all comparisons."""

    def add(cls):
        CASES[cls.__name__] = (cls, makes, options)
        return cls

    return add


def given(*operands):
    """A maker of arguments: of sizes, or of functions that make a value."""
    return lambda: tuple(x() if callable(x) else R(*x) for x in operands)


def images(*sizes):
    return lambda: R(*sizes).to(memory_format=LAST)


def tokens(n, *sizes):
    return lambda: torch.randint(0, n, sizes)


def trained(model, step, make):
    """Losses of five steps, and the parameters and buffers at the end."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        results = [t for t in torch.utils._pytree.tree_leaves(step(*make())) if isinstance(t, torch.Tensor) and t.requires_grad]
        loss = sum(t.abs().square().mean() for t in results)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return {f"loss {k}": loss for k, loss in enumerate(losses)} | model.state_dict()


def agrees(name):
    cls, makes, options = CASES[name]
    settings, tolerance = {key: value for key, value in options.items() if key != "tolerance"}, options.get("tolerance", 1e-4)
    torch.manual_seed(3)
    model = cls()
    pairs = [(copy.deepcopy(model), copy.deepcopy(model)) for _ in range(2)]
    called, fast = pairs[0][0], agreement.compiled(pairs[0][1], **settings)
    for make in makes:
        agreement.check(called, fast, make, backward=True, tolerance=tolerance)
    wanted, got = trained(pairs[1][0], pairs[1][0], makes[0]), trained(pairs[1][1], agreement.compiled(pairs[1][1], **settings), makes[0])
    assert list(wanted) == list(got)
    for key in wanted:
        torch.testing.assert_close(got[key], wanted[key], rtol=5 * tolerance, atol=tolerance, msg=lambda text, key=key: f"{key}: {text}")


# ---- images ----


@case(given((2, 8, 8, 8)), tolerance=1e-4)
class Bottleneck(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, width, 1, bias=False), nn.Conv2d(width, width, 3, padding=1, groups=2, bias=False), nn.Conv2d(width, 8, 1, bias=False)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(8)])
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = x
        for k, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(y))
            if k < 2:
                y = self.relu(y)
        y += x
        return self.relu(y)


@case(given(images(2, 8, 8, 8)), tolerance=1e-4)
class InvertedResidual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(8, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6(inplace=True), nn.Conv2d(24, 24, 3, 1, 1, groups=24, bias=False), nn.BatchNorm2d(24), nn.ReLU6(inplace=True))
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(24, 4, 1), nn.SiLU(inplace=True), nn.Conv2d(4, 24, 1), nn.Sigmoid())
        self.project = nn.Sequential(nn.Conv2d(24, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.to(memory_format=LAST)

    def forward(self, x):
        y = self.body(x)
        y = self.project(y * self.squeeze(y))
        if self.training:  # stochastic depth
            keep = torch.empty(x.shape[0], 1, 1, 1).bernoulli_(0.8)
            y = y * keep.div_(0.8)
        return x + y


@case(given((2, 6, 8, 8)), tolerance=1e-4)
class DenseBlock(nn.Module):
    """Layers that are recomputed. They have no running statistics, which eager's recomputation updates once more."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.GroupNorm(2, 6 + 4 * k), nn.ReLU(), nn.Conv2d(6 + 4 * k, 4, 3, 1, 1)) for k in range(3)])

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(checkpoint(lambda *xs, layer=layer: layer(torch.cat(xs, 1)), *features, use_reentrant=False))
        return F.avg_pool2d(torch.cat(features, 1), 2)


@case(given((2, 8, 6, 6)), tolerance=1e-4)
class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(8, 8, 5, padding=2, groups=8), nn.LayerNorm(8, eps=1e-6)
        self.up, self.down, self.gamma = nn.Linear(8, 32), nn.Linear(32, 8), nn.Parameter(torch.full((8,), 0.1))
        self.scale, self.shift = nn.Parameter(torch.zeros(1, 1, 1, 32)), nn.Parameter(torch.zeros(1, 1, 1, 32))

    def forward(self, x):
        y = F.gelu(self.up(self.norm(self.depthwise(x).permute(0, 2, 3, 1))))
        energy = torch.norm(y, p=2, dim=(1, 2), keepdim=True)  # global response normalisation
        y = self.scale * (y * (energy / (energy.mean(-1, keepdim=True) + 1e-6))) + self.shift + y
        return x + (self.gamma * self.down(y)).permute(0, 3, 1, 2)


@case(given((2, 3, 16, 16)), given((1, 3, 16, 24)), tolerance=1e-4)
class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 6, 3, 2, 1), nn.Conv2d(6, 8, 3, 2, 1)])
        self.lateral = nn.ModuleList([nn.Conv2d(c, 4, 1) for c in (4, 6, 8)])

    def forward(self, x):
        found = []
        for stage in self.stages:
            x = F.leaky_relu(stage(x), 0.1)
            found.append(x)
        top, made = None, {}
        for k in reversed(range(3)):
            y = self.lateral[k](found[k])
            top = y if top is None else y + F.interpolate(top, size=y.shape[-2:], mode="nearest")
            made[f"p{k}"] = top
        return made


@case(given((2, 4, 7, 9)), tolerance=1e-4)
class Upsampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.transposed, self.mix = nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1, bias=False), nn.Conv2d(4, 16, 3, padding="same", padding_mode="reflect")
        self.norm = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)

    def forward(self, x):
        a = self.norm(self.transposed(x))
        b = F.pixel_shuffle(self.mix(x), 2)
        return torch.tanh(a + F.interpolate(b, size=a.shape[2:], mode="bicubic", align_corners=True))


@case(given((2, 3, 8, 8)), tolerance=1e-4)
class Patches(nn.Module):
    """A vision transformer with a class token and masked patches."""

    def __init__(self):
        super().__init__()
        self.embed, self.token, self.place = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.zeros(1, 1, 16)), nn.Parameter(R(1, 5, 16) * 0.02)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, 0.1, activation="gelu", batch_first=True, norm_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        y = self.embed(x).flatten(2).transpose(1, 2)
        order = torch.argsort(torch.rand(y.shape[:2]), dim=1)[:, :3]
        y = torch.cat([self.token.expand(y.shape[0], -1, -1), y], 1) + self.place
        y = torch.cat([y[:, :1], torch.gather(y[:, 1:], 1, order[..., None].expand(-1, -1, 16))], 1)
        return self.head(self.layer(y)[:, 0])


@case(given((1, 8, 8, 8)), tolerance=1e-4)
class Windows(nn.Module):
    """Shifted windows with a relative bias."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.bias = nn.Linear(8, 24), nn.Linear(8, 8), nn.Parameter(R(49, 2) * 0.1)
        at = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        apart = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + 3
        self.register_buffer("index", apart[..., 0] * 7 + apart[..., 1])
        mask = torch.zeros(8, 8)
        mask[-4:, :] += 1
        mask[:, -2:] += 2
        parts = mask.view(2, 4, 2, 4).transpose(1, 2).reshape(4, 16)
        self.register_buffer("mask", torch.where(parts[:, None] == parts[:, :, None], 0.0, -100.0))

    def forward(self, x):
        shifted = torch.roll(x, (-2, -2), (1, 2))
        parts = shifted.view(1, 2, 4, 2, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(4, 16, 8)
        q, k, v = self.qkv(parts).view(4, 16, 3, 2, 4).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-2, -1) * 0.5 + self.bias[self.index].permute(2, 0, 1) + self.mask[:, None]
        y = (score.softmax(-1) @ v).transpose(1, 2).reshape(4, 16, 8)
        y = self.out(y).view(1, 2, 2, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(1, 8, 8, 8)
        return x + torch.roll(y, (2, 2), (1, 2))


@case(given((2, 4, 16)), tolerance=1e-4)
class CausalConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([parametrizations.weight_norm(nn.Conv1d(4, 8, 3, dilation=2**k)) for k in range(3)])

    def forward(self, x):
        skips = 0
        for k, layer in enumerate(self.layers):
            a, b = layer(F.pad(x, (2 * 2**k, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            x, skips = x + y, skips + y
        return skips


@case(given((2, 2, 5, 6, 6)), tolerance=1e-4)
class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.Conv3d(4, 2, (1, 3, 3), padding=(0, 1, 1), stride=(1, 2, 2))

    def forward(self, x):
        y = F.max_pool3d(F.elu(self.norm(self.a(x)), inplace=True), (1, 2, 2))
        return self.b(y), y.amax((3, 4)), F.adaptive_max_pool3d(x, 2)


# ---- sequences ----


@case(given((2, 5, 6)), tolerance=1e-4)
class CellsInALoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(6, 8), nn.LSTMCell(8, 8), nn.RNNCell(8, 4)])

    def forward(self, x):
        h, c, g, r, made = x.new_zeros(2, 8), x.new_zeros(2, 8), x.new_zeros(2, 8), x.new_zeros(2, 4), []
        for t in range(x.size(1)):
            g = self.cells[0](x[:, t], g)
            h, c = self.cells[1](g, (h, c))
            r = self.cells[2](h, r)
            made.append(r)
        return torch.stack(made, 1), (h, c)


@case(given((2, 5, 6)), tolerance=1e-4, strict=False)
class LibraryRecurrence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True), nn.GRU(16, 4, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.gru(y)[0], h, c


@case(given(tokens(30, 2, 6)), tolerance=1e-4)
class Llama(nn.Module):
    """Grouped queries, rotary positions as complex numbers, gated linear units, tied embeddings."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 16)
        self.q, self.kv, self.out = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.w1, self.w2, self.w3 = nn.Linear(16, 24, bias=False), nn.Linear(24, 16, bias=False), nn.Linear(16, 24, bias=False)
        self.norms = nn.ModuleList([nn.RMSNorm(16) for _ in range(3)])
        freqs = 1.0 / (100.0 ** (torch.arange(0, 4, 2).float() / 4))
        self.register_buffer("cis", torch.polar(torch.ones(16, 2), torch.outer(torch.arange(16.0), freqs)), persistent=False)

    def rotate(self, x):
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], 2, 2))
        return torch.view_as_real(z * self.cis[: x.shape[1], None]).flatten(3).type_as(x)

    def forward(self, ids):
        x = self.table(ids)
        y = self.norms[0](x)
        q = self.q(y).view(*ids.shape, 4, 4)
        k, v = self.kv(y).view(*ids.shape, 2, 2, 4).unbind(2)
        q, k = self.rotate(q), self.rotate(k)
        k, v = (t[:, :, :, None].expand(-1, -1, -1, 2, -1).reshape(*ids.shape, 4, 4) for t in (k, v))
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        x = x + self.w2(F.silu(self.w1(y)) * self.w3(y))
        return F.linear(self.norms[2](x), self.table.weight)


@case(given((2, 5, 16)), tolerance=1e-4)
class CachedKeys(nn.Module):
    """Buffers hold keys and values of earlier calls."""

    def __init__(self):
        super().__init__()
        self.qkv, self.at = nn.Linear(16, 48), 0
        self.register_buffer("keys", torch.zeros(2, 30, 16))
        self.register_buffer("values", torch.zeros(2, 30, 16))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        with torch.no_grad():
            self.keys[:, :5] = k
            self.values[:, :5].copy_(v)
            self.filled += x.shape[1]
        keys, values = torch.cat([self.keys[:, 5:8], k], 1), torch.cat([self.values[:, 5:8], v], 1)
        return torch.softmax(torch.einsum("bqd,bkd->bqk", q, keys) / 4, -1) @ values


@case(given((2, 5, 8), lambda: torch.tensor([5, 3])), tolerance=1e-4)
class MaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)

    def forward(self, x, lengths):
        padding = torch.arange(x.shape[1])[None] >= lengths[:, None]
        causal = torch.triu(torch.full((5, 5), -math.inf), 1)
        y, weights = self.attention(x, x, x, key_padding_mask=torch.zeros_like(padding, dtype=x.dtype).masked_fill(padding, -math.inf), attn_mask=causal)
        pooled = (self.norm(x + y) * ~padding[..., None]).sum(1) / lengths[:, None]
        return pooled, weights


@case(given((2, 5, 8), (2, 3, 8)), tolerance=1e-4)
class EncoderDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Transformer(8, 2, 1, 1, 16, 0.1, batch_first=True)

    def forward(self, x, y):
        return self.model(x, y, tgt_mask=nn.Transformer.generate_square_subsequent_mask(3))


@case(given((2, 6, 8)), tolerance=1e-4)
class StateSpace(nn.Module):
    """A diagonal recurrence with complex states, and one by a cumulative product."""

    def __init__(self):
        super().__init__()
        self.log, self.freq, self.b = nn.Parameter(-torch.rand(8)), nn.Parameter(R(8)), nn.Parameter(R(8, dtype=torch.complex64))
        self.gate = nn.Linear(8, 8)

    def forward(self, x):
        a = torch.exp(torch.complex(-self.log.exp(), self.freq))
        state, made = torch.zeros(2, 8, dtype=torch.complex64), []
        for t in range(6):
            state = a * state + self.b * x[:, t]
            made.append(state.real)
        decay = torch.sigmoid(self.gate(x))
        total = decay.cumprod(1)
        return torch.stack(made, 1), torch.cumsum(x / total, 1) * total, state


@case(given((6, 8)), tolerance=1e-4)
class Experts(nn.Module):
    """The best two of four experts for each token."""

    def __init__(self):
        super().__init__()
        self.router, self.w1, self.w2 = nn.Linear(8, 4), nn.Parameter(R(4, 8, 16) * 0.3), nn.Parameter(R(4, 16, 8) * 0.3)

    def forward(self, x):
        weights, chosen = torch.topk(self.router(x).softmax(-1), 2)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = F.one_hot(chosen, 4).to(x.dtype)
        y = torch.einsum("td,edh->teh", x, self.w1).relu()
        y = torch.einsum("teh,ehd->ted", y, self.w2)
        balance = mask.sum(1).mean(0) * self.router(x).softmax(-1).mean(0)
        return torch.einsum("tk,tke,ted->td", weights, mask, y), balance.sum() * 4


# ---- losses ----


@case(given((4, 6), lambda: torch.tensor([1, 5, -100, 0]), (4, 6)), tolerance=1e-4)
class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.register_buffer("weight", torch.rand(6))

    def forward(self, x, target, y):
        z = self.linear(x)
        valid = target != -100
        p = F.log_softmax(z, -1)
        focal = -((1 - p.exp()) ** 2 * p).gather(1, target.clamp(min=0)[:, None])[:, 0]
        one = F.cross_entropy(z, target, self.weight, label_smoothing=0.1), torch.where(valid, focal, 0.0).sum() / valid.sum()
        two = F.kl_div(p, y.softmax(-1), reduction="batchmean"), F.smooth_l1_loss(z, y, beta=0.3), F.huber_loss(z, y, delta=0.4)
        three = F.binary_cross_entropy_with_logits(z, y.sigmoid(), pos_weight=self.weight), F.triplet_margin_loss(z, y, x), F.cosine_embedding_loss(z, y, torch.tensor([1, -1, 1, -1]))
        return one, two, three


@case(given((6, 8), (6, 8)), tolerance=1e-4)
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(8, 8), nn.Linear(8, 8), nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self, x, y):
        logits = self.scale.exp().clamp(max=100) * F.normalize(self.a(x), dim=-1) @ F.normalize(self.b(y), dim=-1).t()
        labels = torch.arange(len(x))
        apart = torch.cdist(x, self.b(y))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2, (apart * (1 - torch.eye(len(x)))).sum()


@case(given((5, 4), lambda: torch.rand(5, 4)), tolerance=1e-4)
class Boxes(nn.Module):
    """The generalised intersection over union of boxes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        a, b = self.linear(x).sigmoid(), y
        a = torch.cat([a[:, :2], a[:, :2] + a[:, 2:]], 1)
        b = torch.cat([b[:, :2], b[:, :2] + b[:, 2:]], 1)
        inner = (torch.minimum(a[:, None, 2:], b[:, 2:]) - torch.maximum(a[:, None, :2], b[:, :2])).clamp_(min=0).prod(2)
        areas = [(t[:, 2:] - t[:, :2]).prod(1) for t in (a, b)]
        union = areas[0][:, None] + areas[1] - inner
        outer = (torch.max(a[:, None, 2:], b[:, 2:]) - torch.min(a[:, None, :2], b[:, :2])).prod(2)
        return inner / union - (outer - union) / outer


# ---- autograd ----


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        ctx.levels = levels
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() <= 1, grad, torch.zeros_like(grad)), None


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.scale, None


@case(given((4, 8)), tolerance=1e-4)
class OwnGradients(nn.Module):
    """Quantised weights (a straight-through estimator) and a reversed gradient."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        h = F.linear(x, Rounded.apply(self.a.weight, 7.0), self.a.bias)
        soft = h.softmax(-1)
        hard = F.one_hot(soft.argmax(-1), 8).float() - soft.detach() + soft
        return self.b(h), self.b(Reversed.apply(h, 0.5)), hard


@case(given((4, 8)), tolerance=1e-4, strict=False)
class Hooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.a.register_forward_hook(lambda module, args, out: out * 2)
        self.b.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        self.seen = []

    def forward(self, x):
        y = self.b(torch.relu(self.a(x)))
        if y.requires_grad:
            y.register_hook(lambda g: g * 0.5)
        return y.sin()


@case(given((4, 8)), tolerance=1e-4)
class Checkpoints(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.2)) for _ in range(4)])

    def forward(self, x):
        x = checkpoint(self.layers[:2], x, use_reentrant=False)
        return checkpoint_sequential(self.layers[2:], 2, x, use_reentrant=False)


@case(given((4, 8)), tolerance=1e-4)
class StoppedGradients(nn.Module):
    """A teacher updated by a moving average, and parts without gradients."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False)
        self.register_buffer("center", torch.zeros(8))

    def forward(self, x):
        with torch.no_grad():
            for p, q in zip(self.student.parameters(), self.teacher.parameters()):
                q.mul_(0.9).add_(p, alpha=0.1)
            target = ((self.teacher(x) - self.center) / 0.04).softmax(-1)
            self.center.mul_(0.9).add_(target.mean(0) * 0.1)
        return -(target * F.log_softmax(self.student(x) / 0.1, -1)).sum(-1).mean()


@case(given((3, 4)), tolerance=1e-4, strict=False)
class Jacobians(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x):
        params = dict(self.net.named_parameters())
        one = lambda v: torch.func.functional_call(self.net, params, (v,))  # noqa: E731
        out, tangent = torch.func.jvp(one, (x,), (torch.ones_like(x),))
        trace = torch.vmap(lambda v: torch.func.jacrev(one)(v).diagonal().sum())(x)
        return out, tangent, trace


@case(given((4, 8)), tolerance=1e-4)
class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(R(3, 8, 8) * 0.3), nn.Parameter(torch.zeros(3, 8))

    def forward(self, x):
        y = torch.vmap(lambda w, b, x: torch.tanh(x @ w + b), in_dims=(0, 0, None))(self.w, self.b, x)
        return y.mean(0), y.var(0, unbiased=False)


# ---- normalisation, parametrisations, precision ----


@case(given((4, 6)), given((7, 6)), dynamic=True, tolerance=1e-4)
class AnyBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)

    def forward(self, x):
        h = F.mish(self.norm(self.a(x)))
        pairs = h[:, None] - h[None]
        return self.b(h), pairs.square().sum(-1).mean() / x.shape[0]


@case(given((4, 8)), tolerance=1e-4)
class SpectralNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = parametrizations.spectral_norm(nn.Linear(8, 8))

    def forward(self, x):
        return F.prelu(self.a(x), torch.tensor(0.2))


@case(given((4, 8)), tolerance=2e-2)
class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.b(F.gelu(self.norm(self.a(x))))
        return y.float().log_softmax(-1)


@case(given(lambda: R(4, 8, dtype=torch.bfloat16)), tolerance=3e-2)
class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)
        self.to(torch.bfloat16)

    def forward(self, x):
        return self.norm(x + F.silu(self.a(x)))


@case(given(lambda: R(4, 8, dtype=torch.float64)), tolerance=1e-9)
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8).double()

    def forward(self, x):
        y = self.a(x)
        return torch.linalg.solve(y.t() @ y + torch.eye(8, dtype=x.dtype), x.t()), torch.logdet(y.t() @ y + torch.eye(8, dtype=x.dtype))


@case(given((4, 8, 8)), tolerance=1e-4)
class Fourier(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(R(8, 5, 2) * 0.3)

    def forward(self, x):
        spectrum = torch.fft.rfft2(x, norm="ortho")
        kept = spectrum * torch.view_as_complex(self.w)
        return torch.fft.irfft2(kept, s=(8, 8), norm="ortho"), spectrum.abs(), kept.angle().cos()


# ---- writes, views, indices ----


@case(given((4, 6)), tolerance=1e-4)
class WritesToParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(R(6))
        self.register_buffer("count", torch.zeros(4, dtype=torch.int64))
        self.register_buffer("history", torch.zeros(5, 6))

    def forward(self, x):
        y = x * self.w
        y[:, ::2] *= 2
        y[1].add_(1)
        y[y < 0] = 0
        y.t()[3].zero_()
        self.count[1:3] += 1
        self.history = torch.roll(self.history, 1, 0)
        self.history[0] = x.mean(0).detach()
        return y, self.history.clone(), y.view(2, 12)[0], y[..., None, 2:]


@case(given((5, 6), lambda: torch.tensor([[0, 2], [4, 1]]), lambda: torch.tensor([True, False, True, True, False])), tolerance=1e-4)
class Indices(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(R(5, 6))

    def forward(self, x, i, m):
        z = x * self.w
        made = z.index_put((i,), torch.ones(6), accumulate=True), z.scatter_reduce(0, i, z[:2, :2], "amax"), z.index_select(1, i[0])
        taken = z[i], z[i, 3], z[:, i], z[i[0], :, None], z[..., i, None], z[:, [0, -1]], torch.take_along_dim(z, z.argsort(1), 1)
        return made, taken, torch.where(m[:, None], z, -z), z.masked_fill(~m[:, None], 0.0), z * m[:, None]


@case(given((7, 6), lambda: torch.randint(0, 7, (2, 12)), lambda: torch.tensor([0, 0, 0, 1, 1, 2, 2])), tolerance=1e-4)
class GraphAttention(nn.Module):
    """Softmax over the edges at a node, and a pooled graph."""

    def __init__(self):
        super().__init__()
        self.w, self.a = nn.Linear(6, 8), nn.Parameter(R(16) * 0.3)

    def forward(self, x, edges, graph):
        h, (s, t) = self.w(x), edges
        e = F.leaky_relu(torch.cat([h[s], h[t]], -1) @ self.a, 0.2)
        top = torch.full((7,), -math.inf).scatter_reduce(0, t, e.detach(), "amax")
        e = torch.exp(e - top[t])
        e = e / (torch.zeros(7).index_add(0, t, e)[t] + 1e-9)
        h = torch.zeros_like(h).index_add_(0, t, h[s] * e[:, None])
        return h, torch.zeros(3, 8).scatter_reduce(0, graph[:, None].expand(-1, 8), h, "mean", include_self=False)


@case(given((3, 10), lambda: torch.randint(0, 50, (3, 2)), lambda: torch.randint(0, 20, (7,)), lambda: torch.tensor([0, 3, 5])), tolerance=1e-4)
class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.bag = nn.Embedding(50, 8, padding_idx=0, max_norm=None), nn.EmbeddingBag(20, 8, mode="sum")
        self.cross, self.deep = nn.Parameter(R(2, 34) * 0.1), nn.Sequential(nn.Linear(34, 8), nn.PReLU(), nn.Linear(8, 1))

    def forward(self, dense, ids, words, offsets):
        x = torch.cat([dense, self.table(ids).flatten(1), self.bag(words, offsets)], 1)
        y = x
        for w in self.cross:
            y = x * (y * w).sum(1, keepdim=True) + y
        return self.deep(x) + y.sum(1, keepdim=True)


@case(given((4, 6)), tolerance=1e-4)
class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.rho = nn.Parameter(R(6, 6) * 0.1), nn.Parameter(torch.full((6, 6), -3.0))

    def forward(self, x):
        w = self.mean + F.softplus(self.rho) * torch.randn_like(self.mean)
        y = F.dropout(F.linear(x, w), 0.3, self.training)
        return y, F.gumbel_softmax(y, tau=0.7, hard=True), torch.bernoulli(y.sigmoid().detach()), F.rrelu(y, training=self.training)


@case(given((3, 8)), tolerance=1e-4)
class Flow(nn.Module):
    """A coupling layer with its inverse, and a density."""

    def __init__(self):
        super().__init__()
        self.net, self.base = nn.Linear(4, 8), torch.distributions.Normal(0.0, 1.0)

    def forward(self, x):
        a, b = x.chunk(2, -1)
        s, t = self.net(a).chunk(2, -1)
        z = torch.cat([a, b * s.exp() + t], -1)
        back = torch.cat([a, (z[:, 4:] - t) * torch.exp(-s)], -1)
        return self.base.log_prob(z).sum(-1) + s.sum(-1), back


@case(given((3, 8)), tolerance=1e-4, strict=False)
class Distributions(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        h = self.net(x)
        q = torch.distributions.Normal(h[:, :4], F.softplus(h[:, 4:]) + 1e-3, validate_args=False)
        z = q.rsample()
        c = torch.distributions.Categorical(logits=h, validate_args=False)
        action = c.sample()
        kl = torch.distributions.kl_divergence(q, torch.distributions.Normal(torch.zeros(4), torch.ones(4)))
        return z, c.log_prob(action), c.entropy(), kl, q.entropy()


def main(names):
    failed = 0
    warnings.simplefilter("ignore")
    for name in names or CASES:
        start, problem = time.time(), ""
        try:
            agrees(name)
        except Exception as error:
            problem, failed = f": {type(error).__name__}: {str(error)[:700]}", failed + 1
        print(f"{name} {time.time() - start:.1f} s{problem}", flush=True)
    print(f"{failed} of {len(names or CASES)} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
