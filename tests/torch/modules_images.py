"""Modules on images."""

from modules import LAST, R, case, given, images

# isort: split
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint


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
