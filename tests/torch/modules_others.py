"""Modules with losses, own gradients, hooks, normalisation, several precisions, and writes to parts."""

import math

from modules import R, case, given

# isort: split
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

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
