"""The eleven anchor programs: plain NumPy functions and makers of their inputs.

Every framework runs the same source; only the module behind the name `np` changes.
"""

import types

import numpy as np


def black_scholes(s, k, t, r, v):
    d1 = (np.log(s / k) + (r + 0.5 * v * v) * t) / (v * np.sqrt(t))
    d2 = d1 - v * np.sqrt(t)
    n1 = 0.5 * (1.0 + np.tanh(0.7978845608 * (d1 + 0.044715 * d1 * d1 * d1)))
    n2 = 0.5 * (1.0 + np.tanh(0.7978845608 * (d2 + 0.044715 * d2 * d2 * d2)))
    return s * n1 - k * np.exp(-r * t) * n2


def fma_chain(a, b, c):
    return np.maximum(a * b + c, 0.0) * 0.5 + a


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layernorm_gelu(x, g, b):
    m = np.mean(x, axis=-1, keepdims=True)
    v = np.mean((x - m) * (x - m), axis=-1, keepdims=True)
    y = (x - m) / np.sqrt(v + 1e-5) * g + b
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def sum_sq(x):
    return np.sum(x * x)


def col_norm(x):
    m = np.mean(x, axis=0)
    return (x - m) / (np.sqrt(np.mean((x - m) * (x - m), axis=0)) + 1e-6)


def rbf(x, y):
    d = x[:, None, :] - y[None, :, :]
    return np.exp(-0.5 * np.sum(d * d, axis=-1))


def jacobi(a):
    for _ in range(20):
        a = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
    return a


def mlp(x, w1, b1, w2, b2):
    h = np.maximum(np.matmul(x, w1) + b1, 0.0)
    return np.matmul(h, w2) + b2


def attention(q, k, v):
    s = np.matmul(q, np.swapaxes(k, -1, -2)) * 0.125
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return np.matmul(e / np.sum(e, axis=-1, keepdims=True), v)


def tiny(a, b):
    return a * b + 1.0


# Shapes of the inputs, at full size. `tiny` is float64, the rest float32.
SHAPES = {
    "black_scholes": [(1 << 24,)] * 5,
    "fma_chain": [(1 << 24,)] * 3,
    "softmax": [(4096, 4096)],
    "layernorm_gelu": [(4096, 4096), (4096,), (4096,)],
    "sum_sq": [(1 << 24,)],
    "col_norm": [(4096, 4096)],
    "rbf": [(2048, 64), (2048, 64)],
    "jacobi": [(4096, 4096)],
    "mlp": [(1024, 1024), (1024, 4096), (4096,), (4096, 1024), (1024,)],
    "attention": [(16, 512, 64)] * 3,
    "tiny": [(8,), (8,)],
}


def function(name, module=np):
    """The program `name` with `np` bound to another array module; the very same code object."""
    original = globals()[name]
    if module is np:
        return original
    return types.FunctionType(original.__code__, {**globals(), "np": module}, name)


def inputs(name, scale=1.0):
    """Arrays for a program, values in [0.1, 1.1); scale < 1 shortens the first axis."""
    rng = np.random.default_rng(0)
    dtype = np.float64 if name == "tiny" else np.float32
    shrink = scale if name in ("black_scholes", "fma_chain", "softmax", "layernorm_gelu", "sum_sq", "col_norm", "jacobi") else 1.0
    arrays = []
    for shape in SHAPES[name]:
        if shrink < 1 and (len(shape) > 1 or len(SHAPES[name]) > 1 or name == "sum_sq") and not (name == "layernorm_gelu" and len(shape) == 1):
            shape = (max(64, int(shape[0] * shrink)), *shape[1:])
        arrays.append(rng.random(shape).astype(dtype) + np.asarray(0.1, dtype))
    return arrays
