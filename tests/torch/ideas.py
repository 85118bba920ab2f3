"""A table of small programs after the ideas of test suites of PyTorch's compilers, compared with eager: values, strides, shared
memory, written arguments and gradients, with fixed sizes and with `dynamic=True`:

    python ideas.py [--list] [NAME ...]

test_ideas.py runs a few of them, several in one graph. This program runs all, each in a graph of its own.
"""

import math
import sys
import time
import warnings

import agreement

# isort: split
import torch
import torch.nn.functional as F

ROWS = {}
N = -1  # A size that is another one in the second call.
SIZES = (6, 11)
NAN, INF = math.nan, math.inf
half, brain, double = torch.float16, torch.bfloat16, torch.float64
i8, u8, i16, i32, i64 = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64


def row(name, fn, *operands, grad=True, tolerance=None, alone=False):
    """Adds a program: operands are sizes of float32 numbers, functions of N, or values. alone: Dynamo may cut its graph, and it may raise."""
    assert name not in ROWS
    ROWS[name] = fn, operands, grad, tolerance, alone


def floats(*sizes, dtype=torch.float32):
    return lambda n: torch.randn([n if s == N else s for s in sizes]).to(dtype)


def ints(*sizes, low=-9, high=10, dtype=i64):
    return lambda n: torch.randint(low, n if high == N else high, [n if s == N else s for s in sizes]).to(dtype)


def bools(*sizes):
    return lambda n: torch.rand([n if s == N else s for s in sizes]) > 0.5


def just(*values, dtype=None):
    return lambda n: torch.tensor(values, dtype=dtype)


def scalar(value, dtype=None):
    return lambda n: torch.tensor(value, dtype=dtype)


def last(*sizes):
    """Images with channels last."""
    return lambda n: torch.randn([n if s == N else s for s in sizes]).to(memory_format=torch.channels_last)


def operand(spec, n, grad):
    x = spec(n) if callable(spec) else floats(*spec)(n) if isinstance(spec, tuple) else spec
    is_real = isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())
    return x.requires_grad_() if grad and is_real else x


def maker(names, n):
    return lambda: tuple(tuple(operand(x, n, ROWS[name][2]) for x in ROWS[name][1]) for name in names)


def agrees(names, dynamic):
    """Compare the programs, in one graph, with eager."""
    torch.manual_seed(5)
    functions = [ROWS[name][0] for name in names]
    tolerance = max((ROWS[name][3] for name in names if ROWS[name][3]), default=None)

    def graph(*parts):
        return [fn(*part) for fn, part in zip(functions, parts)]

    makes = [maker(names, n) for n in (SIZES if dynamic else SIZES[:1])]
    captured = not any(ROWS[name][4] for name in names)  # sizes that data decide; otherwise Dynamo cuts the graph there
    backward = any(isinstance(x, torch.Tensor) and x.requires_grad for part in makes[0]() for x in part)
    if captured:
        graph(*makes[-1]())  # Only a row of its own may raise.
    with torch._dynamo.config.patch(capture_scalar_outputs=captured, capture_dynamic_output_shape_ops=captured):
        agreement.agree(graph, *makes, backward=backward, tolerance=tolerance, dynamic=dynamic)


# ---- folds ----

row("sum of a sum of axes", lambda a: (a.sum((0, 2)).sum(), a.sum([]), a.sum(dim=(-1, -3))), (N, 3, 4))
row("sum of an expanded product", lambda a, b: (a * b).sum((0, 1)), (2, N, 16), (2, 1, 16))
row("sums of narrow ints are wide", lambda a, b: (a.sum(), a.sum(1), a.prod(0), b.sum(-1), b.cumsum(0)), ints(N, 4, dtype=i8), bools(N, 3))
row("sum as another dtype", lambda a: a * a.sum(-1, True, dtype=double) + a.sum(dtype=double), (N, 8))
row("folds of small axes", lambda a: (a.sum(-1), a.prod(-1), (a > 1).any(-1), (a > -2).all(-1), a.argmin(-1), a.amax(-1), a.aminmax()), (N, 3))
row("largest and smallest with NaN", lambda a: (a.max(), a.min(), a.amax(0), a.argmax(), a.argmin(), a.max(0), torch.aminmax(a)), just(1.0, NAN, 3.0, NAN), grad=False)
row("fmax and fmin", lambda a, b: (torch.fmax(a, b), torch.fmin(a, b), a.maximum(b), a.minimum(b)), just(-1.0, NAN, 3.0, NAN), just(NAN, -2.0, 4.0, NAN), grad=False)
row("argmax of equal elements", lambda a: (a.argmax(), a.argmin(1), a.argmax(0, keepdim=True), a.max(1), a.min(0)), ints(N, 9, low=0, high=2), grad=False)
row("argmax of bytes and bools", lambda a, b: (a.argmax(1), a.argmin(), b.int().argmax(0), b.float().argmin()), ints(N, 7, low=0, high=256, dtype=u8), bools(N, 3))
row("variance by its correction", lambda a: (a.var(), a.var(0, correction=0), a.std(1, correction=2), torch.var_mean(a, 1), torch.std_mean(a, (0, 1), keepdim=True)), (N, 8))
row("variance of one element is NaN", lambda a: (a.var(1), a.std(1, correction=0), a.var(0)), (N, 1), grad=False)
row("variance of a large mean", lambda a: ((a + 1e4).var(1), (a * 1e-3 + 100).std(0)), (N, 64), grad=False, tolerance=1e-2)
row("mean in narrow floats", lambda a, b: (a.mean(), a.mean(0), b.mean((0, 1)), b.mean(1, dtype=torch.float32)), floats(N, 40, dtype=half), floats(N, 8, dtype=brain), tolerance=2e-2)
row("norms", lambda a: (a.norm(), a.norm(1, 0), a.norm(INF), a.norm(3, 1), torch.linalg.vector_norm(a, 0), torch.linalg.vector_norm(a, -INF, 1)), (N, 8))
row("folds of an axis of one", lambda a: (a.sum(1), a.softmax(1), a.argmax(1), a.cumsum(1), a.logsumexp(1), a.max(1)), (N, 1, 3))
row("folds of a number", lambda a: (a.sum(), a.sum(0), a.max(0), a.mean(-1), a.softmax(0), a.cumsum(0), a.cumprod(-1), a.logcumsumexp(0), a.argmax(), a.any()), scalar(2.5))
row("folds of nothing", lambda a: (a.sum(), a.sum(1), a.prod(0), a.mean(), (a > 0).any(), (a > 0).all(1), a.cumsum(1), a.logsumexp(1), a.norm()), lambda n: torch.zeros(3, 0), grad=False)
row("largest of nothing", lambda a: a.max(), lambda n: torch.zeros(0), grad=False, alone=True)
row("count and nan folds", lambda a, b: (b.count_nonzero(), b.count_nonzero(1), a.nansum(0), a.nanmean(1)), (N, 4), ints(N, 4, low=0, high=2))
row("sums of long axes", lambda a: (a.sum(), a.sum(0), a.mean(1), a.amax(0)), floats(1030, 70), tolerance=1e-3)
row("largest of a long int axis", lambda a: (a.max(), a.sum(), a.argmax()), lambda n: torch.zeros(99991, dtype=i64).index_fill(0, torch.tensor([99990]), 1))
row("softmax over two axes", lambda a: (a.flatten(1).softmax(1).view_as(a), a.exp() / a.exp().sum((1, 2), keepdim=True)), (N, 3, 5))
row("softmax of masked rows", lambda a, m: a.masked_fill(m, -INF).softmax(-1), (N, 6), lambda n: torch.arange(6).expand(n, 6) > torch.arange(n)[:, None] % 5)
row("softmax as another dtype", lambda a: (a.softmax(-1, dtype=torch.float32), a.log_softmax(0, dtype=double), a.softmax(0)), floats(N, 9, dtype=brain), tolerance=2e-2)
row("logsumexp at infinity", lambda a: (a.logsumexp(0), a.logcumsumexp(0), torch.logaddexp(a, a.flip(0)), torch.logaddexp2(a, a)), just(-INF, -INF, 2.0, -1.0, -INF), grad=False)
row("scans along each axis", lambda a: (a.cumsum(0), a.cumsum(1), a.cumprod(2), a.cummax(1), a.cummin(-1), a.logcumsumexp(0)), (N, 3, 4))
row("scans of ints and bools", lambda a, b: (a.cumsum(0), a.cumprod(0), b.cumsum(0), a.cumsum(1, dtype=torch.float32), a.cummax(1)), ints(N, 5, dtype=i32), bools(N), grad=False)
row("scan at infinity", lambda a: a.cumsum(-1), lambda n: torch.full((2, n), INF, dtype=double), grad=False)
row("sum of scans", lambda a, b: torch.cumsum(a.view(-1), 0) + torch.cumsum(b.view(-1), 0), floats(40, 100), floats(40, 100, dtype=double), tolerance=1e-4)
row("weighted histogram", lambda a, w: (torch.bincount(a, minlength=12), torch.bincount(a, w, 10), torch.histc(w, 4, 0, 1)), ints(N, low=0, high=8), floats(N), grad=False)

# ---- pointwise ----

row("clamp by kinds of bounds", lambda a, b: (a.clamp(-0.1, 0.1), a.clamp(min=0), a.clamp(max=b), b.clamp(a - 1, a), a.clip(0.5, -0.5)), (N, 4), (N, 4))
row("clamp promotes", lambda a, b: (a.clamp(0.5, 3), a.clamp(b), a.clamp(min=-2), a.clamp_min(1), b.clamp(1, 2)), ints(N, 4), floats(N, 4, dtype=double), grad=False)
row("clamp of NaN", lambda a: (a.clamp(0, 1), a.clamp(min=NAN), F.relu(a), F.relu6(a), F.hardtanh(a), F.hardswish(a), F.leaky_relu(a)), just(NAN, -INF, INF, -0.0, 0.5), grad=False)
row("division kinds of ints", lambda a, b: [torch.div(a, b, rounding_mode=m) for m in (None, "floor", "trunc")] + [a // b, a % b, a.fmod(b), -a // b], ints(N, 8), ints(N, 8, low=1), grad=False)
row("division kinds of floats", lambda a, b: [torch.div(a, b, rounding_mode=m) for m in (None, "floor", "trunc")] + [a // 0.7, a % b, a.fmod(b), a.remainder(-0.3)], (N, 8), (N, 8), grad=False)
row("division of edges", lambda a, b: (a / b, a // b, a % b, a.fmod(b), torch.div(a, b, rounding_mode="trunc")), just(0.0, -0.0, 1.0, INF, -INF, NAN, 5.0), just(0.0, 1.0, INF, 2.0, -3.0, 1.0, -0.0), grad=False)
row("integer division by zero", lambda a: a // 0, ints(N), alone=True)
row("bytes wrap", lambda a, b: (a + b, a * b, a - b, -a, ~a, a // (b | 1), a << 1, a >> 2, a.bitwise_xor(b), abs(a)), ints(N, 9, low=0, high=256, dtype=u8), ints(N, 9, low=0, high=256, dtype=u8))
row("signed bytes wrap", lambda a, b: (a + b, a * b, -a, abs(a), a // (b | 1), a % (b | 1), a.sign(), a.sum(), a << 1, a >> 1), ints(N, 9, low=-128, high=128, dtype=i8), ints(N, 9, low=-128, high=128, dtype=i8))
row("long ints wrap", lambda a: (a * 6364136223846793005 + 1442695040888963407, a.abs(), (a * a) >> 33, a & -a, a ^ 0x55), ints(N, low=-(2**62), high=2**62))
row("promotion of dtypes", lambda a, b, c, d: (a + b, b * c, c - d, a / d, d**2, a == c, torch.where(a > 0, b, c), torch.maximum(d, a)), ints(N, dtype=i8), floats(N, dtype=half), floats(N, dtype=brain), ints(N, dtype=i64), grad=False)
row("promotion of numbers", lambda a, b, c: (a + 1.5, a * 2, b + 1, b * 2.5, c * 2, c + 1.5, c & True, 2**a, a**2.0, 1 / (a.abs() + 1), True + a), ints(N, dtype=i16), floats(N, dtype=half), bools(N), grad=False)
row("promotion of tensors without axes", lambda a, s, t, u: (a + s, a * t, a / u, s + t, u * a.int(), torch.where(a > 0, s, a), a.clamp(s, t)), (N,), scalar(0.25, double), scalar(3, i64), scalar(2, u8), grad=False)
row("comparisons", lambda a, b: (a == b, a != 1, a < b, a >= 0.5, torch.eq(a, a), ~(a > b), (a > 0) ^ (b > 0), torch.isclose(a, b), torch.logical_xor(a, b)), ints(N, 4), floats(N, 4), grad=False)
row("tests of kinds of floats", lambda a: (a.isnan(), a.isinf(), a.isfinite(), a.isposinf(), a.isneginf(), a.signbit(), a.sgn(), a.sign(), a.nan_to_num(), a.nan_to_num(2.0, 3.0, -4.0)), just(NAN, INF, -INF, -0.0, 0.0, -2.5), grad=False)
row("nan_to_num by dtype", lambda a, b, c: (a.nan_to_num(), b.nan_to_num(nan=3.0), c.nan_to_num()), floats(N, dtype=half), floats(N, dtype=brain), ints(N), grad=False)
row("rounding", lambda a: (a.round(), a.round(decimals=2), a.round(decimals=-1), a.floor(), a.ceil(), a.trunc(), a.frac(), (a * 0 + 2.5).round(), (a * 0 - 0.5).round()), (N, 8), grad=False)
row("rounding of ints", lambda a: (a.round(), a.floor(), a.ceil(), a.trunc(), a.abs(), a.square(), a.sqrt(), a.exp()), ints(N, low=0), grad=False)
row("casts", lambda a: [(a * 50).to(t) for t in (half, brain, double, i8, i16, i32, i64, torch.bool)] + [a.to(i32).to(torch.float32), a.half().float()], (N, 9), grad=False)
row("casts between ints", lambda a, b: [x.to(t) for x in (a, b) for t in (i8, u8, i16, i32, torch.float32, half, torch.bool)], ints(N, low=-70000, high=70000), ints(N, low=0, high=256, dtype=u8))
row("powers", lambda a: (a**2, a**3, a**0.5, a**-1, a**0, a**-2.5, 2**a, 0.0**a, a.pow(a), (-a) ** 3, a.square(), a.rsqrt(), a.reciprocal()), lambda n: torch.rand(n, 5) + 0.5, tolerance=1e-4)
row("powers of ints", lambda a, b: (a**2, a**3, a**b, 2**b, a.pow(0), a.float() ** b, b**2.5, (-1) ** b), ints(N), ints(N, low=0, high=5), grad=False)
row("powers of edges", lambda a, b: (a**b, a**2, a**0.5, 1**a, 0**b.abs()), just(-0.0, 0.0, -2.0, INF, -INF, NAN, 1.0), just(-1.0, 0.0, 0.5, -2.0, 3.0, 0.0, NAN), grad=False)
row("functions of small and large numbers", lambda a: (a.expm1(), a.log1p(), a.exp2(), a.log2(), a.log10(), a.tanh(), a.sinh(), a.asinh(), a.erf(), a.erfc(), a.sigmoid(), F.softplus(a)), just(1e-7, 1e-3, 0.5, 5.0, 30.0, 88.0), tolerance=1e-4)
row("trigonometry", lambda a: (a.sin(), a.cos(), a.tan(), a.asin(), a.acos(), a.atan(), a.atan2(a.flip(0)), a.sinc(), a.deg2rad(), a.hypot(a + 1), torch.atanh(a)), lambda n: torch.rand(n, 4) * 1.8 - 0.9, tolerance=1e-4)
row("functions of ints are floats", lambda a: (a.sin(), a.exp(), a.sqrt(), a.log(), a.sigmoid(), a.tanh(), a.rsqrt(), a.reciprocal(), a.erf(), a.deg2rad(), a.log1p()), ints(N, low=1, dtype=i32))
row("copysign and nextafter", lambda a, b: (a.copysign(b), a.copysign(-1.0), torch.nextafter(a, b), torch.ldexp(a, b.int()), torch.frexp(a), torch.heaviside(a, b), a.float_power(2)), (N, 4), (N, 4), grad=False)
row("where broadcasts", lambda m, a, b: (torch.where(m, a, b), torch.where(m, a, 2.0), torch.where(m, 1, b), torch.where(m & (a > 0), a, -b), torch.where(m, a.half(), b)), bools(N, 1), (1, 5), (N, 5))
row("masked fill", lambda a, m: (a.masked_fill(m, 7), a.masked_fill(m, torch.tensor(2.5)), a.int().masked_fill(m, 3), a.where(m, 0), a.masked_fill(~m, -INF).exp()), (N, 5), bools(N, 5))
row("activations in half", lambda a: (F.gelu(a), F.silu(a), F.elu(a), F.hardswish(a), F.hardsigmoid(a), F.leaky_relu(a, 0.2), F.mish(a), F.softplus(a), F.logsigmoid(a), F.tanhshrink(a), F.relu6(a)), floats(N, 9, dtype=half), tolerance=1e-2)
row("activations at their corners", lambda a: (F.relu(a), F.hardtanh(a), F.hardshrink(a), F.softshrink(a), F.threshold(a, 0.5, 9.0), F.hardsigmoid(a), F.hardswish(a), F.relu6(a), F.elu(a), F.celu(a)), just(-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0))
row("lerp and addcmul", lambda a, b, c: (a.lerp(b, 0.3), a.lerp(b, c), a.addcmul(b, c, value=2), a.addcdiv(b, c.abs() + 1), torch.add(a, b, alpha=-0.5), torch.rsub(a, b, alpha=2)), (N, 4), (N, 1), (4,))
row("polynomials and rare functions", lambda a: (torch.special.i0(a), torch.special.i1e(a), torch.lgamma(a), torch.digamma(a), torch.special.ndtri(a), torch.special.entr(a), torch.logit(a), torch.erfinv(a), torch.special.log_ndtr(a), torch.special.xlogy(a, a)), lambda n: torch.rand(n, 3) * 0.8 + 0.1, tolerance=1e-4)
row("bits of ints", lambda a, b: (a & b, a | 8, a ^ b, ~a, a << 2, a >> 1, a.bitwise_left_shift(b), torch.bitwise_right_shift(a, b), torch.gcd(a, b), torch.lcm(a, b)), ints(N, dtype=i32), ints(N, low=0, high=5, dtype=i32))
row("numbers only", lambda a: (torch.add(torch.tensor(2), 3), a + (4 + 5), a * math.pi, a + a.shape[0], a / a.numel()), (N, 3))
row("many uses of one value", lambda a: sum([(a.sin() + k) * (a.sin() - k) for k in range(12)]) + a.sin().mean(), (N, 4))
row("long chain", lambda a: [a := (a * 1.01 + 0.1).tanh() for _ in range(24)][-1], (N, 3))

# ---- complex numbers ----

row("complex arithmetic", lambda a, b: (a + b, a * b, a / b, a - 2j, a.conj() * b, a.abs(), a.angle(), a.real, a.imag, a == b, -a, a.sum(), a.mean(0)), floats(N, 3, dtype=torch.complex64), floats(N, 3, dtype=torch.complex64), tolerance=1e-4)
row("complex from reals", lambda a, b: (torch.complex(a, b), torch.polar(a.abs(), b), torch.view_as_complex(torch.stack([a, b], -1)), a * 1j, a + (b * 1j).exp()), (N, 3), (N, 3), tolerance=1e-4)
row("transforms", lambda a: (torch.fft.fft(a), torch.fft.rfft(a, dim=0).abs(), torch.fft.irfft(torch.fft.rfft(a), n=a.shape[1]), torch.fft.fftshift(a), torch.fft.fftfreq(8)), (N, 8), tolerance=1e-4)

# ---- views, layout ----

row("views of views", lambda a: ((a + 1).view(-1).view(2, -1), a.view(N, 2, 4).transpose(1, 2), a.unflatten(1, (2, -1))[:, 1], a.t()[1:5].t(), a.reshape(8, -1)), (N, 8))
row("views as another dtype", lambda a, b, c: ((a + 1).view(i32), (a * 2).view(i16), (b ^ 1).view(torch.float32), (a + 1).view(u8), (c + 1).view(half), (c + 1).view(torch.bfloat16)), (N, 4), ints(N, 4, dtype=i32), ints(N, 4, dtype=i16), grad=False)
row("squeezes", lambda a: (a.squeeze(), a.squeeze(0), a.squeeze(1), a.squeeze(-1), a.squeeze((0, 2)), a.unsqueeze(2), a[None, ..., None], a.squeeze().unsqueeze(-1)), (1, N, 1, 3))
row("permutations", lambda a: (a.permute(2, 0, 1), a.permute(2, 0, 1).contiguous(), a.transpose(0, 2) + 1, a.movedim(0, -1), a.swapaxes(1, 2).reshape(-1), a.mT @ a), (N, 3, 4))
row("expansions", lambda a: (a.expand(3, -1, 4), a.expand(3, -1, 4) * 2, a.expand(-1, 4).contiguous(), a.expand_as(a), a.broadcast_to(2, a.shape[0], 1), a.repeat(2, 3), a.tile(2, 1, 2)), (N, 1))
row("slices", lambda a: (a[1:], a[:, ::2], a[-3:, :-1], a[2], a[..., 1], a[:, 1:100], a[3:3], a[:0] + 1, a.narrow(1, 2, 3), a[::3, 1::2] * 2), (N, 7))
row("select and slice scatter", lambda a, b, c: (a.slice_scatter(b, 1, 1, 4), a.select_scatter(c, 1, 2), torch.diagonal_scatter(a[:5], c[:5]), a.t().slice_scatter(c[None], 0, 2, 3)), (N, 6), (N, 3), (N,))
row("splits", lambda a: (a.split(2, 1), a.split([1, 4, 2], 1), a.chunk(3, 1), a.unbind(1), torch.tensor_split(a, 3, 1), a.tensor_split((2, 5), dim=1), torch.hsplit(a[:, :6], 3)), (N, 7))
row("splits that are used", lambda a: [x * (k + 1) for k, x in enumerate(a.split(3, 1))] + [torch.cat(a.chunk(2, 1)[::-1], 1)], (N, 8))
row("concatenations", lambda a, b: (torch.cat([a, b]), torch.cat([a, a * 2, b], -2), torch.stack([a, a + 1], 1), torch.cat([a[:, :0], a], 1), torch.vstack([a, b]), torch.cat([a])), (N, 4), (3, 4))
row("concatenations of dtypes", lambda a, b, c: (torch.cat([a, b], 1), torch.cat([b, c], 1), torch.stack([a[:, 0], c[:, 0]]), torch.cat([torch.zeros(0), a.flatten()])), (N, 3), floats(N, 2, dtype=half), ints(N, 4))
row("concatenation of products and loops", lambda a, w: torch.cat([a @ w, a.relu(), F.max_pool1d(a, 3, 1, 1)], 1), (N, 24), (24, 40), tolerance=1e-4)
row("results in the strides of operands", lambda a, b: (a + 1, a + b, a * b.t().contiguous().t(), a.relu(), torch.zeros_like(a), torch.empty_like(a).fill_(3), a.clone(), a.exp().t()), lambda n: torch.randn(5, n).t(), lambda n: torch.randn(n, 5))
row("results of strides with gaps", lambda a: (a + 1, a.clone(), a.contiguous(), a.t() * 2, torch.ones_like(a), a.sum(0), a.to(double)), lambda n: torch.randn(2 * n, 8)[::2, 1::2])
row("channels last", lambda a: (a + 1, a.relu(), a.clone(), a.contiguous(), a.to(memory_format=torch.contiguous_format), torch.empty_like(a).zero_(), a.mean((2, 3)), a[:, 1], a.flatten(1)), last(2, 3, 4, 5))
row("channels last and not", lambda a, b: (a + b, b * a, torch.where(a > 0, b, a), torch.cat([a, b], 1), torch.cat([b, a]), (a - b).contiguous(memory_format=torch.channels_last)), last(2, 3, 4, 5), (2, 3, 4, 5))
row("contiguous of a view", lambda a: (a.t().contiguous(), a.t().contiguous().view(-1), a[:, ::2].contiguous(), a.expand(2, *a.shape).contiguous(), a.contiguous()), (N, 6))
row("strides by as_strided", lambda a: (a.as_strided((2, 3), (3, 1)), a.as_strided((2, 2), (1, 2), 1) + 1, torch.as_strided(a, (3,), (2,))), lambda n: torch.randn(24), grad=False)
row("windows", lambda a: (a.unfold(1, 3, 2), a.unfold(0, 2, 1).sum(-1), a.unfold(1, 1, 1), F.unfold(a[None, None, :4], 2)), (N, 9))
row("flips and rolls", lambda a: (a.flip(0), a.flip((0, 1)), a.roll(1), a.roll((2, -1), (0, 1)), a.rot90(), a.fliplr(), a.roll(-3, 1) + a), (N, 5))
row("triangles and diagonals", lambda a: (a.tril(), a.triu(1), a.tril(-2), a.diagonal(1), a.diag(), a.diagonal().diag_embed(), a.triu().t(), torch.diagflat(a[0]), a[:4, :4].trace()), (N, 6))
row("triangles of bools and ints", lambda a, b: (a.tril(), b.triu(1), torch.tril(torch.ones(4, 4, dtype=torch.bool)), torch.tril_indices(4, 3, -1), torch.triu_indices(3, 4, 1)), ints(N, 5), bools(N, 5))
row("pads", lambda a: (F.pad(a, (1, 2)), F.pad(a, (0, 1, 2, 0), value=3.5), F.pad(a, (-1, 1)), F.pad(a, (-1, -1, -2, 0)), F.pad(a.int(), (1, 1), value=7), F.pad(a > 0, (1, 0), value=True)), (N, 6))
row("pads that repeat", lambda a: [F.pad(a, (2, 1), mode=m) for m in ("reflect", "replicate", "circular")] + [F.pad(a[None], (1, 1, 2, 0), mode="reflect")], (2, N, 6))
row("repeats of elements", lambda a: (a.repeat_interleave(2, 1), a.repeat_interleave(3), torch.repeat_interleave(a, torch.tensor([1, 0, 2]), dim=1), torch.kron(a[:2], a[:3])), (N, 3))
row("grids of coordinates", lambda a, b: (torch.meshgrid(a, b, indexing="ij"), torch.meshgrid(a, b, indexing="xy"), torch.cartesian_prod(a, b), torch.outer(a, b), torch.block_diag(a[None], b[:, None])), (N,), (3,))

# ---- creation ----

row("ranges", lambda a: (torch.arange(5), torch.arange(1, 9, 3), torch.arange(0.0, 1.0, 0.3), torch.arange(8, 2, -2), torch.arange(a.shape[0]) + a, torch.arange(4, dtype=half), torch.arange(0)), (N,))
row("linspaces", lambda a: (torch.linspace(0, 1, 7), torch.linspace(3, -2, 5), torch.linspace(0, 9, 4, dtype=i32), torch.linspace(2, 8, 1), torch.logspace(0, 2, 4), a + torch.linspace(0, 1, a.shape[0])), (N,))
row("full tensors", lambda a: (torch.full((2, 3), 1.5), torch.full((2,), True), torch.full((3,), 2.7, dtype=i64), torch.full_like(a, 3), torch.zeros_like(a, dtype=torch.bool), a.new_full((2,), INF), a.new_zeros(a.shape[0], 2), torch.full((), 4)), (N, 2), grad=False)
row("tensors of Python's numbers", lambda a: (torch.tensor([1, 2.5]), torch.tensor(3), torch.tensor([[True], [False]]), a + torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor(2.5) * a, torch.scalar_tensor(3)), (N, 3))
row("eyes and one hot", lambda a: (torch.eye(3), torch.eye(2, 4), torch.eye(3, dtype=i64), F.one_hot(a, 9), F.one_hot(a % 3, 3).float().sum(0), torch.vander(a.float(), 3)), ints(N, low=0, high=9))
row("windows of signals", lambda: (torch.hann_window(8), torch.hamming_window(7), torch.blackman_window(9, periodic=False), torch.bartlett_window(6)), grad=False)
row("uninitialized, then written", lambda a: (torch.empty(4).fill_(2), torch.empty_strided((2, 3), (1, 2)).zero_(), a.new_empty(3).copy_(a[:3, 0]), torch.empty(0)), (N, 2), grad=False)

# ---- indices ----

row("gathers", lambda a, i: (a.gather(1, i), a.gather(1, i[:2]), torch.take_along_dim(a, i, 1), a.gather(1, a.argsort(1)), a.gather(0, i % 2)), (N, 5), ints(N, 3, low=0, high=5))
row("indices by lists and ints", lambda a, i: (a[i], a[:, i], a[i, i], a[i[:, None], i], a[[0, -1]], a[-1], a[i, 1:3], a[None, i], a[i, ..., None], a.take(i), a[torch.tensor(1)]), (N, 6), ints(4, low=-6, high=6))
row("indices of several kinds", lambda a, i, u: (a[:, i, :, i], a[i, :, i], a[..., i], a[u.long()], a[1, i], a[i.int()], a[i, i, i]), (4, 5, 6, 4), ints(3, low=0, high=4), ints(3, low=0, high=4, dtype=u8))
row("index out of range", lambda a, i: a[i] + 1, (N, 3), just(0, 77), grad=False, alone=True)
row("masks as indices", lambda a, m: (a[m], a[m.any(1)], a.masked_select(m), m.nonzero(), a[a > 0].sum(), torch.where(m)[0].numel()), (N, 4), bools(N, 4))
row("index writes", lambda a, i, v: (a.index_put((i,), v), a.index_put((i,), v, accumulate=True), a.index_copy(0, i[:2], v[:2]), a.index_fill(0, i, 3.0), a.index_add(0, i, v, alpha=-2)), (N, 3), just(0, 4, 2, 5), (4, 3))
row("index writes of numbers", lambda a, i, m: (a.index_put((i, i), torch.tensor(5.0)), torch.index_put(a, (m,), torch.tensor(0.5)), a.masked_scatter(m, a.flip(0))), (N, 6), just(0, 4, 2), bools(N, 6))
row("index put into ints and bools", lambda a, b, i: (a.index_put((i,), torch.tensor(7), accumulate=True), b.index_put((i,), torch.tensor(True)), a.index_add(0, i, a[:3])), ints(N, 3), bools(N, 3), just(1, 1, 0))
row("scatters", lambda a, i, v: (a.scatter(0, i, v), a.scatter(1, i, 2.5), a.scatter_add(0, i, v), a.scatter(0, i, v, reduce="add"), a.scatter_add(1, i, v)), (N, 4), lambda n: torch.tensor([[0, 1, 2], [3, 2, 0]]), (2, 3), grad=False)
row("scatter folds", lambda a, i, v: [a.scatter_reduce(0, i, v, r, include_self=s) for r in ("sum", "mean", "amax", "amin", "prod") for s in (True, False)], (N, 4), lambda n: torch.tensor([[0, 1, 2], [3, 1, 0]]), (2, 3), grad=False)
row("gradients of scatters", lambda a, i, v: (a.scatter(0, i, v), a.scatter_add(0, i, v), a.scatter_reduce(0, i, v, "mean"), a.scatter_reduce(0, i, v, "amax", include_self=False), a.index_reduce(0, i[:, 0], v[:, :1].expand(-1, 4), "amin")), (N, 4), lambda n: torch.tensor([[0, 1, 2], [3, 2, 0]]), (2, 3))
row("scatter of narrow floats", lambda a, i, v: (a.scatter_add(0, i, v), a.index_add(0, i[:, 0], v), a.index_put((i[:, 0],), v, accumulate=True)), floats(N, 3, dtype=brain), lambda n: torch.tensor([[0, 1, 2], [0, 2, 1], [0, 2, 1]]), floats(3, 3, dtype=brain), tolerance=4e-2)
row("embeddings", lambda w, i: (F.embedding(i, w), F.embedding(i, w, padding_idx=1), F.embedding(i, w).sum(1), w[i].mean(0), F.embedding(i.int(), w, scale_grad_by_freq=True)), (9, 4), ints(N, 3, low=0, high=9))
row("bags of embeddings", lambda w, i, o: [F.embedding_bag(i, w, o, mode=m) for m in ("sum", "mean", "max")] + [F.embedding_bag(i.view(2, -1), w)], (9, 4), ints(8, low=0, high=9), just(0, 3, 3, 6), tolerance=1e-4)
row("sorting", lambda a: (a.sort(), a.sort(0, descending=True), a.argsort(-1), a.topk(2), a.topk(3, 0, largest=False), a.kthvalue(2), a.median(0), a.msort(), a.quantile(0.25, 0)), (N, 5))
row("sorting of equal elements is stable", lambda a, b: (a.sort(stable=True), a.argsort(dim=0, stable=True), b.sort(stable=True), a.sort(stable=True, descending=True)), ints(N, 30, low=0, high=3), bools(N, 9))
row("searches", lambda a, b: (torch.searchsorted(b.sort()[0], a), torch.searchsorted(b.sort()[0], a, right=True), torch.bucketize(a, torch.tensor([-1.0, 0.0, 1.0]), right=True), torch.isin(a.int(), torch.tensor([0, 1]))), (N, 3), (7,), grad=False)
row("unique elements", lambda a: (a.unique(), torch.unique(a, return_counts=True), torch.unique_consecutive(a), a.unique(return_inverse=True)[1]), ints(N, low=0, high=4))

# ---- products and layers ----

row("products of shapes", lambda a, b, v: (a @ b, a @ v, v @ b, v @ v, torch.mm(a, b), torch.addmm(v[:1], a, b), torch.addmv(v, b, v), b.t() @ a.t(), a.mm(b.t())), (N, 5), (5, 5), (5,), tolerance=1e-4)
row("products of batches", lambda a, b, c: (a @ b, torch.bmm(a, b), torch.baddbmm(c, a, b, beta=0.5, alpha=2), a @ b[0], a[0] @ b, torch.einsum("bij,bjk->ik", a, b)), (N, 3, 4), (N, 4, 2), (N, 3, 2), tolerance=1e-4)
row("products with empty axes", lambda a, b: (a @ b, b @ a, torch.zeros(0, 3) @ torch.zeros(3, 2), a.t() @ b.t()), lambda n: torch.randn(n, 0), lambda n: torch.randn(0, n), grad=False)
row("products of ints", lambda a, b: (a @ b, torch.mm(a.int(), b.int()), a[0] @ b, (a.bool() & True).int() @ b.int(), torch.einsum("ij,jk->k", a, b)), ints(N, 5), ints(5, 3))
row("products in half", lambda a, b, c: (a @ b, F.linear(a, b.t(), c), torch.addmm(c, a, b, beta=0.5)), floats(N, 16, dtype=brain), floats(16, 8, dtype=brain), floats(8, dtype=brain), tolerance=6e-2)
row("products of views", lambda a, b: (a.t() @ b, a.t()[1:] @ b[:, ::2], a[:, :3] @ a[:, 3:6].t(), a.expand(2, *a.shape) @ b.t()), (N, 8), (N, 8), tolerance=1e-4)
row("contractions", lambda a, b: (torch.einsum("ij,kj->ik", a, b), torch.einsum("ij,ij->", a, b), torch.einsum("ij->ji", a), torch.tensordot(a, b, ([1], [1])), torch.inner(a, b), torch.cdist(a, b)), (N, 4), (N, 4), tolerance=1e-3)
row("convolutions", lambda x, w, b: [F.conv2d(x, w, b, s, p, d) for s, p, d in ((1, 0, 1), (2, 1, 1), (1, 2, 2), ((2, 1), (0, 1), 1), (1, "same", 1))], (2, 3, 9, 8), (4, 3, 3, 3), (4,), tolerance=1e-3)
row("convolutions of groups", lambda x, w, d: (F.conv2d(x, w, groups=2), F.conv2d(x, d, groups=4, padding=1), F.conv1d(x[:, :, 0], d[:, :, 0], groups=4)), (2, 4, 7, 6), (6, 2, 3, 3), (4, 1, 3, 3), tolerance=1e-3)
row("transposed convolutions", lambda x, w, v: (F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), F.conv_transpose1d(x[:, :, 0], v)), (2, 3, 5, 4), (3, 4, 3, 3), (3, 2, 4), tolerance=1e-3)
row("convolution of a volume and without a batch", lambda x, w, y, v: (F.conv3d(x, w, padding=1), F.conv2d(y, v)), (1, 2, 4, 5, 3), (3, 2, 3, 2, 1), (2, 6, 5), (3, 2, 2, 2), tolerance=1e-3)
row("convolution with channels last", lambda x, w: (F.conv2d(x, w), F.conv2d(x, w).relu() + 1, F.conv2d(x, w, padding=1).mean((2, 3))), last(2, 3, 6, 5), (4, 3, 3, 3), tolerance=1e-3)
row("pooling", lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.max_pool2d(x, 2, 1), F.max_pool2d(x, 3, 1, 1, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, True, False), F.avg_pool2d(x, 2, divisor_override=3)), (2, 3, 9, 7))
row("pooling with indices", lambda x: (F.max_pool2d(x, 2, return_indices=True), F.max_pool1d(x[:, 0], 3, 2, 1, return_indices=True), F.adaptive_max_pool2d(x, 3, return_indices=True)), (2, 3, 8, 8))
row("pooling to sizes", lambda x: (F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (None, 5)), F.adaptive_avg_pool1d(x[:, 0], 4), F.adaptive_max_pool2d(x, (4, 7))), (2, 3, 9, 7))
row("pooling of infinities", lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 1, 1, return_indices=True), F.avg_pool2d(x, 2)), lambda n: torch.full((1, 2, 4, 4), -INF), grad=False)
row("pooling of norms and volumes", lambda x: (F.lp_pool1d(x[:, 0, 0].abs() + 0.1, 2, 3), F.max_pool3d(x, 2), F.avg_pool3d(x, 2, 1), F.adaptive_avg_pool3d(x, 2)), (2, 3, 4, 5, 6))
row("upsampling", lambda x: [F.interpolate(x, size=(10, 8), mode=m) for m in ("nearest", "bilinear", "bicubic", "nearest-exact")] + [F.interpolate(x, size=(7, 3), mode="bilinear", align_corners=True), F.interpolate(x, size=(3, 9), mode="area")], (2, 3, 5, 4), tolerance=1e-4)
row("upsampling of bytes", lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(3, 7), mode="nearest")), ints(1, 3, 5, 4, low=0, high=256, dtype=u8))
row("upsampling of lines and volumes", lambda x, y: (F.interpolate(x, size=9, mode="linear"), F.interpolate(x, scale_factor=1.5), F.interpolate(y, size=(4, 3, 5), mode="trilinear"), F.interpolate(y, scale_factor=2)), (2, 3, 5), (1, 2, 3, 4, 2), tolerance=1e-4)
row("shuffles of pixels and channels", lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 4), F.fold(F.unfold(x, 2, stride=2), (4, 6), 2, stride=2)), (2, 8, 4, 6))
row("normalisations", lambda x, w, b: (F.layer_norm(x, (6,), w, b), F.rms_norm(x, (6,), w), F.layer_norm(x, x.shape[1:]), F.group_norm(x.mT, 3, w, b), F.instance_norm(x), F.normalize(x, dim=-1), F.batch_norm(x.mT.contiguous(), None, None, w, b, True)), (N, 5, 6), (6,), (6,), tolerance=1e-3)
row("running statistics are written", lambda x, m, v: (F.batch_norm(x, m, v, training=True, momentum=0.3), F.batch_norm(x, m, v)), (N, 4, 3), lambda n: torch.zeros(4), lambda n: torch.ones(4), grad=False)
row("attention of kinds", lambda q, k, v: (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(6, 7).tril().bool()), (q @ k.mT / 2).softmax(-1) @ v), (2, 2, 6, 4), (2, 2, 7, 4), (2, 2, 7, 4), tolerance=1e-3)
row("losses", lambda x, y, t: (F.mse_loss(x, y), F.smooth_l1_loss(x, y, beta=0.5), F.cross_entropy(x, t), F.nll_loss(x.log_softmax(1), t, reduction="none"), F.cross_entropy(x, y.softmax(1)), F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.kl_div(x.log_softmax(1), y.softmax(1), reduction="sum"), F.poisson_nll_loss(x, y.abs())), (N, 5), (N, 5), ints(N, low=0, high=5), tolerance=1e-4)
row("losses that ignore a class", lambda x, t: (F.cross_entropy(x, t, ignore_index=2), F.nll_loss(x.log_softmax(1), t, torch.arange(1.0, 6.0), ignore_index=0), F.cross_entropy(x[:, :, None].expand(-1, -1, 3), t[:, None].expand(-1, 3), reduction="none")), (N, 5), ints(N, low=0, high=5), tolerance=1e-4)
row("samples of images", lambda x, g: (F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, "nearest", "border", True), F.grid_sample(x, g, "bicubic", "reflection", False)), (1, 2, 5, 6), lambda n: torch.rand(1, 3, 4, 2) * 2.4 - 1.2, tolerance=1e-3)
row("linear algebra", lambda a: (torch.linalg.inv(a @ a.mT + 5 * torch.eye(4)), torch.linalg.det(a), torch.linalg.solve(a @ a.mT + 5 * torch.eye(4), a), torch.linalg.cholesky(a @ a.mT + 5 * torch.eye(4))), (3, 4, 4), tolerance=1e-2)

# ---- writes, shared memory, dtypes of results ----


def written(a):
    a.add_(1)
    b = a.view(-1)
    b[::2] *= 2
    a.t()[0] = 5
    return a.sum(), b, a + 1


def written_and_read(a, b):
    c = a.clone()
    a.copy_(b)
    b.mul_(2)
    return c, a + b, a.detach()


def written_slices(a):
    b = a * 2
    b[1:3] = a[0]
    b[:, 2].fill_(9)
    b[..., -1:] += b[..., :1]
    b[b > 8] = -1
    b[[0, 2]] = b[[2, 0]]
    return b, b[1]


def written_dtypes(a, b):
    a.add_(b.long())
    b.copy_(a)
    c = torch.zeros(a.shape, dtype=half).copy_(b)
    return c, a.bool().logical_not_(), b.to(i8).fill_(300 % 128)


def swapped(a, b):
    t = a.clone()
    a.copy_(b)
    b.copy_(t)
    return a - b


def loop(a):
    for k in range(a.shape[1]):
        a = a + a[:, k : k + 1].sin() * k
    return a


def resized(a):
    b = torch.empty(0)
    b.resize_(3, 2).fill_(4)
    return b, a.clone().resize_(2, 3), a.clone().squeeze_(), a.clone().t_(), a.clone().unsqueeze_(0)


def of_items(a, i):
    n = i.item()
    return a * n, a + a.sum().item(), torch.full((2,), n), i.float().item() + 1


row("an argument is written by views", written, lambda n: torch.ones(n, 4), grad=False)
row("an argument is written and read", written_and_read, (N, 4), (N, 4), grad=False)
row("slices are written", written_slices, (N, 5))
row("writes cast", written_dtypes, ints(N, 3), floats(N, 3), grad=False)
row("arguments are swapped", swapped, (N, 3), (N, 3), grad=False)
row("a loop over an axis", loop, (N, 5))
row("shapes are changed in place", resized, lambda n: torch.randn(n, 1), grad=False)
row("elements are numbers", of_items, (N, 3), scalar(3), grad=False)
row("results are arguments", lambda a, b: (a, b.t(), a.detach(), [b, {"x": a[1:]}, None, 3]), (N, 3), (N, 4), grad=False)
row("results share memory", lambda a: (b := a + 1, b.t(), b[1:], b.view(-1), b.unbind(1)[0], b.detach()), (N, 3), grad=False)
row("a number and a string are arguments", lambda a, k, s, f: (a * k, a + f, a.sum() if s == "sum" else a), (N, 3), 3, "sum", 0.5)
row("tensors without axes are arguments", lambda a, s, t, b: (a * s, s + t, s.expand(3), b & (a[0, 0] > 0), t // 2, s.exp()), (N, 3), scalar(2.5), scalar(1), scalar(True))
row("a tensor without axes is an index", lambda a, t: (a[t], a[:, t] + 1, torch.bucketize(0.5, a.flatten().sort()[0])), (N, 3), scalar(1), alone=True)
row("positions of nonzero elements", lambda m: (torch.where(m), m.nonzero(as_tuple=True)), bools(N, 4), alone=True)
row("detached parts", lambda a: (a.detach() * a, (a - a.detach().amax(1, keepdim=True)).exp().sum(1).log(), a.sin().detach()), (N, 4))
row("gradients of equal elements", lambda a: (a.max(), a.amax(1), a.max(1)[0], a.min(0)[0], a.median(), a.sort(1)[0], a.abs(), F.relu(a), a.clamp(0, 1), a.norm()), lambda n: torch.tensor([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]))
row("gradients of expanded operands", lambda a, b, c: (a + b * c, (a * b).sum(0), a @ c.expand(3, 2), torch.maximum(a, b), b.expand(4, -1, 3).prod(0)), (N, 3), (N, 1), (1,))
row("random numbers", lambda a: (torch.rand_like(a), torch.randn(3), torch.randint(0, 9, (4,)), F.dropout(a, 0.5), torch.bernoulli(a.sigmoid()), torch.randperm(5), a.clone().uniform_(), torch.normal(a, 1.0)), (N, 4), grad=False)
row("several tensors at once", lambda a, b: (torch._foreach_add([a, b], 1), torch._foreach_mul([a, b], [b, a]), torch._foreach_sqrt([a.abs(), b.abs()]), torch._foreach_lerp([a], [b], 0.3)), (N, 3), (N, 3), grad=False)
row("batched by vmap", lambda a, b: (torch.vmap(torch.dot)(a, b), torch.vmap(lambda r: r.softmax(0).cumsum(0))(a), torch.func.grad(lambda x: (x**3).sum())(a)), (N, 4), (N, 4), grad=False)
row("mixed precision", lambda a, w: ((a.to(brain) @ w.to(brain)).float().relu(), F.layer_norm(a.to(brain), (8,)).float()), (N, 8), (8, 5), tolerance=6e-2)


def main(names):
    warnings.simplefilter("ignore")
    if names[:1] == ['--from']:
        names = list(ROWS)[list(ROWS).index(names[1]):]
    if names == ["--list"]:
        print(len(ROWS), *ROWS, sep="\n")
        return False
    failed = []
    for name in names or ROWS:
        for dynamic in (False, True):
            start, problem = time.time(), ""
            try:
                agrees([name], dynamic)
            except Exception as error:
                problem = f": WRONG {type(error).__name__}: {str(error)[:900]}"
                failed.append(name)
            print(f"{name}{' (dynamic)' if dynamic else ''} {time.time() - start:.1f} s{problem}", flush=True)
    print(f"{len(failed)} of {2 * len(names or ROWS)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
