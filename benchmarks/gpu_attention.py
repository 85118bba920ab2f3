"""Times attention of float16 on a GPU: cinductor's kernel, and torch's scaled_dot_product_attention by its kernels.

    python benchmarks/gpu_attention.py

One line for each: milliseconds of a call, the best of five batches of 20, and operations in a second. Causal attention
counts half of the products.
"""

import time
from functools import partial

import numpy as np

import cinductor

SHAPES = [(16, 4096, 64), (64, 4096, 64), (16, 4096, 128)]  # heads, rows and keys, elements of a head


def attention(s, v):
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return (e / np.sum(e, axis=-1, keepdims=True)) @ v


def dense(q, k, v):
    return attention(np.matmul(q, np.swapaxes(k, -1, -2)) * np.float16(0.125), v)


def causal(q, k, v):
    s, n = np.matmul(q, np.swapaxes(k, -1, -2)) * np.float16(0.125), q.shape[-2]
    return attention(np.where(np.arange(n)[:, None] >= np.arange(n)[None, :], s, -np.inf), v)


def report(name, call, wait, operations):
    for _ in range(5):
        call()
    wait()
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(20):
            call()
        wait()
        best = min(best, (time.perf_counter() - start) / 20)
    print(f"{name:50} {1e3 * best:.4f} ms  {operations / best * 1e-12:.0f} TFLOP/s", flush=True)


def report_torch(shape, operations):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    heads, rows, size = shape
    q, k, v = (torch.rand(1, heads, rows, size, device="cuda", dtype=torch.float16) - 0.5 for _ in range(3))
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        for is_causal in (True, False):
            with sdpa_kernel(backend):
                call = partial(torch.nn.functional.scaled_dot_product_attention, q, k, v, is_causal=is_causal)
                name = f"torch {backend.name} {shape} {'causal' if is_causal else 'dense'}"
                report(name, call, torch.cuda.synchronize, operations / (1 + is_causal))


def main():
    random = np.random.default_rng(0)
    for shape in SHAPES:
        heads, rows, size = shape
        given = [cinductor.to_device((random.random(shape) - 0.5).astype("f2"), "cuda") for _ in range(3)]
        operations = 4 * heads * rows * rows * size
        for function in (causal, dense):
            call = partial(cinductor.compile(function, mode="now"), *given)
            report(f"cinductor {shape} {function.__name__}", call, cinductor.synchronize, operations / (1 + (function is causal)))
        try:
            report_torch(shape, operations)
        except ImportError:
            print("torch is not installed")


if __name__ == "__main__":
    main()
