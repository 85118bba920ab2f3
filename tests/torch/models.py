"""Small models of the kinds that are trained and served, each with a function that makes its inputs. A model with a scale n has n times as
many features in its layers.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Sequential):
    def __init__(self, n=1):
        super().__init__(nn.Linear(12 * n, 24 * n), nn.GELU(), nn.LayerNorm(24 * n), nn.Dropout(0.1), nn.Linear(24 * n, 4))


class Block(nn.Module):
    def __init__(self, a, b, stride=1):
        super().__init__()
        self.first, self.second = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(b), nn.BatchNorm2d(b)])
        self.short = nn.Identity() if a == b and stride == 1 else nn.Conv2d(a, b, 1, stride)

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8 * n, 3, 1, 1), nn.BatchNorm2d(8 * n), nn.ReLU(), nn.MaxPool2d(2))
        self.blocks = nn.Sequential(Block(8 * n, 8 * n), Block(8 * n, 16 * n, 2))
        self.head = nn.Linear(16 * n, 5)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class UNet(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 8 * n, 3, 1, 1), nn.Conv2d(8 * n, 16 * n, 3, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(16 * n, 8 * n, 2, 2), nn.Conv2d(16 * n, 2, 3, 1, 1)
        self.norm = nn.GroupNorm(4, 16 * n)

    def forward(self, x):
        a = F.silu(self.down(x))
        b = F.silu(self.norm(self.middle(F.avg_pool2d(a, 2))))
        c = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)[:, : a.shape[1]]
        return self.out(torch.cat([a, self.up(b) + c], 1))


class MobileNet(nn.Module):
    """Depthwise and pointwise convolutions in channels_last."""

    def __init__(self, n=1):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8 * n, 3, 2, 1, bias=False), nn.BatchNorm2d(8 * n), nn.Hardswish(),
            nn.Conv2d(8 * n, 8 * n, 3, 1, 1, groups=8 * n, bias=False), nn.BatchNorm2d(8 * n), nn.ReLU6(),
            nn.Conv2d(8 * n, 12 * n, 1), nn.BatchNorm2d(12 * n), nn.Hardsigmoid(),
        )  # fmt: skip
        self.head = nn.Linear(12 * n, 5)
        self.to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.table = nn.Embedding(20, 16 * n)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(16 * n, 2, 32 * n, 0.0, batch_first=True, norm_first=k == 0) for k in range(2)])

    def forward(self, tokens):
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x)
        return x.mean(1)


class Decoder(nn.Module):
    """One block of a GPT with rotary positions and a causal mask."""

    def __init__(self, n=1):
        super().__init__()
        self.n = n
        self.table, self.qkv, self.out = nn.Embedding(20, 16 * n), nn.Linear(16 * n, 48 * n), nn.Linear(16 * n, 16 * n)
        self.gate, self.mix, self.head = nn.Linear(16 * n, 64 * n), nn.Linear(32 * n, 16 * n), nn.Linear(16 * n, 20)
        self.scale = nn.Parameter(torch.ones(16 * n))

    def norm(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale

    def rotate(self, x, at):
        angle = at[:, None] * torch.pow(100.0, -torch.arange(0, 4 * self.n, device=x.device) / (4 * self.n))
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def heads(self, x, at):
        q, k, v = (t.view(*x.shape[:2], 2, 8 * self.n).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        return self.rotate(q, at), self.rotate(k, at), v

    def finish(self, x, y):
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        a, b = self.gate(self.norm(x)).chunk(2, -1)
        return self.head(x + self.mix(F.silu(a) * b))

    def forward(self, tokens):
        x = self.table(tokens)
        q, k, v = self.heads(x, torch.arange(tokens.shape[1], device=x.device))
        return self.finish(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def step(self, tokens, at, keys, values):
        """Process one token, given the cached keys and values of those before; the caches are written."""
        x = self.table(tokens)
        q, k, v = self.heads(x, at)
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        score = (q @ keys.transpose(-1, -2)) / math.sqrt(8 * self.n)
        score = score.masked_fill(torch.arange(keys.shape[2], device=x.device) > at, -math.inf)
        return self.finish(x, score.softmax(-1) @ values)


class Recurrent(nn.Module):
    """An LSTM, written out by its equations."""

    def __init__(self, n=1):
        super().__init__()
        self.size = 8 * n
        self.x, self.h, self.head = nn.Linear(6, 32 * n), nn.Linear(8 * n, 32 * n), nn.Linear(8 * n, 3)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], self.size)
        for t in range(x.shape[1]):
            i, f, g, o = (self.x(x[:, t]) + self.h(h)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(h)


class Graph(nn.Module):
    """Sends messages along edges and sums them at the target nodes."""

    def __init__(self, n=1):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8 * n), nn.Linear(8 * n, 3)

    def forward(self, x, edges):
        source, target = edges
        degree = x.new_zeros(x.shape[0]).scatter_add(0, target, x.new_ones(target.shape[0])).clamp(min=1)
        for layer in self.a, self.b:
            x = F.elu(layer(x))
            x = torch.zeros_like(x).index_add(0, target, x[source]) / degree[:, None]
        return x


class VAE(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.enc, self.dec = nn.Linear(12 * n, 8 * n), nn.Sequential(nn.Linear(4 * n, 12 * n), nn.Sigmoid())

    def forward(self, x):
        mean, spread = self.enc(x).chunk(2, -1)
        y = self.dec(mean + torch.randn_like(mean) * torch.exp(0.5 * spread))
        return F.binary_cross_entropy(y, x.sigmoid()) - 0.5 * (1 + spread - mean**2 - spread.exp()).mean()


class Diffusion(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4 * n + 8, 24 * n), nn.SiLU(), nn.Linear(24 * n, 4 * n))
        self.register_buffer("alphas", torch.linspace(0.99, 0.1, 10).cumprod(0))

    def forward(self, x, t):
        noise = torch.randn_like(x)
        a = self.alphas[t][:, None]
        angle = t[:, None] * torch.exp(-torch.arange(4.0, device=x.device))
        known = torch.cat([a.sqrt() * x + (1 - a).sqrt() * noise, angle.sin(), angle.cos()], -1)
        return F.mse_loss(self.net(known), noise)


class Recommender(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(30 * n, 8 * n, mode=mode) for mode in ("sum", "mean")])
        self.dense, self.head = nn.Linear(4, 8 * n), nn.Linear(3 + 8 * n, 1)

    def forward(self, dense, ids):
        parts = torch.stack([F.relu(self.dense(dense)), *(bag(i) for bag, i in zip(self.bags, ids))], 1)
        pairs = torch.bmm(parts, parts.transpose(1, 2))
        a, b = torch.triu_indices(3, 3, 1, device=dense.device)
        return torch.sigmoid(self.head(torch.cat([pairs[:, a, b], parts[:, 0]], 1)))[:, 0]


def images():
    return (torch.randn(2, 3, 16, 16),)


def last_images():
    return (torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last),)


def tokens():
    return (torch.randint(0, 20, (2, 6)),)


MODELS = {
    "mlp": (MLP, lambda: (torch.randn(5, 12),)),
    "resnet": (ResNet, images),
    "unet": (UNet, images),
    "mobilenet": (MobileNet, last_images),
    "encoder": (Encoder, tokens),
    "decoder": (Decoder, tokens),
    "lstm": (Recurrent, lambda: (torch.randn(3, 4, 6),)),
    "gnn": (Graph, lambda: (torch.randn(7, 6), torch.randint(0, 7, (2, 15)))),
    "vae": (VAE, lambda: (torch.randn(5, 12),)),
    "diffusion": (Diffusion, lambda: (torch.randn(5, 4), torch.randint(0, 10, (5,)))),
    "recommender": (Recommender, lambda: (torch.randn(4, 4), torch.randint(0, 30, (2, 4, 3)))),
}
