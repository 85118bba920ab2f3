"""Modules on sequences."""

import math

from modules import R, case, given, tokens

# isort: split
import torch
import torch.nn.functional as F
from torch import nn


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
