"""Times the overhead of a call on a GPU, beyond the kernel itself.

    python benchmarks/gpu_dispatch.py [--calls N] [--processes N] [--sizes]

One run measures a one-kernel program of cinductor, of CuPy and torch where they are installed, iterations of loops
around kernels, and the driver's calls made from C. Figures are microseconds per call, without waiting for the device
between calls, medians of batches. Then fresh processes measure import and first result, in seconds of wall time from
the start of the process, minimum and median, with an empty and with a filled disk cache. With --sizes: kernels of
constant and of symbolic sizes, milliseconds.
"""

import argparse
import ctypes
import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpu
import numpy as np

PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
"""

C = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>
typedef unsigned long long Address;
static void *library;
static void *find(const char *name) { return dlsym(library, name); }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e6 + t.tv_nsec * 1e-3; }
int open_gpu(const char *ptx, void **function, void **context)
{
    void *module;
    int device, result;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return -1;
    result = ((int (*)(unsigned))find("cuInit"))(0);
    if (!result) result = ((int (*)(int *, int))find("cuDeviceGet"))(&device, 0);
    if (!result) result = ((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(context, device);
    if (!result) result = ((int (*)(void *))find("cuCtxSetCurrent"))(*context);
    if (!result) result = ((int (*)(void **, const void *))find("cuModuleLoadData"))(&module, ptx);
    if (!result) result = ((int (*)(void **, void *, const char *))find("cuModuleGetFunction"))(function, module, "nothing");
    return result;
}
static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
double time_launches(void *function, int count)
{
    Address a = 0, b = 0, c = 0;
    void *parameters[] = {&a, &b, &c};
    int (*wait)(void) = (int (*)(void))find("cuCtxSynchronize");
    launch = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))find("cuLaunchKernel");
    wait();
    double start = now();
    for (int k = 0; k < count; k++) launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
    wait();
    return (now() - start) / count;
}
double time_context(void *context, int count)
{
    void *ignored;
    int (*push)(void *) = (int (*)(void *))find("cuCtxPushCurrent_v2"), (*pop)(void **) = (int (*)(void **))find("cuCtxPopCurrent_v2");
    double start = now();
    for (int k = 0; k < count; k++) { push(context); pop(&ignored); }
    return (now() - start) / count;
}
double time_current(int count)
{
    void *ignored;
    int (*get)(void **) = (int (*)(void **))find("cuCtxGetCurrent");
    double start = now();
    for (int k = 0; k < count; k++) get(&ignored);
    return (now() - start) / count;
}
double time_memory(int count)
{
    Address block;
    int (*take)(Address *, size_t, void *) = (int (*)(Address *, size_t, void *))find("cuMemAllocAsync"), (*give)(Address, void *) = (int (*)(Address, void *))find("cuMemFreeAsync");
    double start = now();
    for (int k = 0; k < count; k++) { take(&block, 256, NULL); give(block, NULL); }
    return (now() - start) / count;
}
"""

FIRST = """
import time
began = time.perf_counter()
import numpy as np
numpy = time.perf_counter()
import cinductor
f = cinductor.compile(lambda a, b: np.sqrt(a * 2 + b).sum(axis=0), device="cuda")
x = np.ones((64, 64), np.float32)
f(x, x)
done = time.perf_counter()
print(numpy - began, done - began)
"""


def measure(call, wait, calls, batches=9):
    """Median microseconds of a call."""
    found = []
    for _ in range(100):
        call()
    for _ in range(batches):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - start) / calls * 1e6)
    wait()
    return statistics.median(found)


def from_c(calls):
    """The driver's calls made in a C loop, built by the machine's compiler."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "raw.c", Path(folder) / "raw.so"
        source.write_text(C)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-w", source, "-o", library, "-ldl"], check=True)
        raw = ctypes.CDLL(str(library))
    for name in ("time_launches", "time_context", "time_current", "time_memory"):
        getattr(raw, name).restype = ctypes.c_double
    function, context = ctypes.c_void_p(), ctypes.c_void_p()
    result = raw.open_gpu(PTX, ctypes.byref(function), ctypes.byref(context))
    if result:
        print(f"driver from C: it answered {result}")
        return
    rows = {
        "cuLaunchKernel": lambda: raw.time_launches(function, calls),
        "cuMemAllocAsync and cuMemFreeAsync": lambda: raw.time_memory(calls),
        "cuCtxPushCurrent and cuCtxPopCurrent": lambda: raw.time_context(context, calls),
        "cuCtxGetCurrent": lambda: raw.time_current(calls),
    }
    for name, call in rows.items():
        print(f"from C, {name}: {statistics.median(call() for _ in range(9)):.3f} µs")


def chain(x, w):
    """Kernels that cannot be fused: each needs all elements that the previous one computes."""
    for _ in range(8):
        x = np.tanh(x @ w)
    return x


def recordings(calls):
    """A program of many small launches with and without the option `graphs`: host time alone, and time until the
    device is done.
    """
    import cinductor

    x, w = (cinductor.to_device(np.full((32, 32), 1 / 32, np.float32)) for _ in range(2))

    def wait_for(f):
        f(x, w)
        cinductor.synchronize()

    for graphs in (False, True):
        f = functools.partial(cinductor.compile(chain, options={"graphs": graphs}), x, w)
        print(f"cinductor, 16 launches, graphs={graphs}: {measure(f, cinductor.synchronize, calls):.3f} µs")
        waited = measure(functools.partial(wait_for, f.func), cinductor.synchronize, calls)
        print(f"cinductor, 16 launches, graphs={graphs}, waited for: {waited:.3f} µs")
        print(f"  {cinductor.explain(f.func, x, w).recordings}")


def relax(x, iterations):
    """A loop of the wrapper around kernels."""
    for _ in range(iterations):
        x[1:-1] = (x[:-2] + x[2:]) / 2
    return x


def until(x, iterations):
    """A condition that the GPU computes and the host reads."""
    k = 0
    while x.max() > 0 and k < iterations:
        x = x * 0.999
        k += 1
    return x


def loops():
    """Microseconds of one iteration, from two numbers of iterations, so that the rest of the call does not count."""
    import cinductor

    for name, function, size in (
        ("launch in a for loop", relax, 100_000),
        ("iteration of a while loop, 16 elements", until, 16),
        ("iteration of a while loop, 1e6 elements", until, 1_000_000),
    ):
        fn, times = cinductor.compile(function), {}
        for iterations in (100, 1100):
            x = cinductor.to_device(np.linspace(1, 2, size))
            times[iterations] = gpu.measure(functools.partial(fn, x, iterations), lambda _: cinductor.synchronize(), batches=3)
        print(f"cinductor, {name}: {1e6 * (times[1100] - times[100]) / 1000:.3f} µs")


def softmax(x, v):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


SIZED = {
    "pointwise": lambda x, v: x * 2 + 1,
    "broadcast": lambda x, v: x * v + 1,
    "rows": lambda x, v: x.sum(axis=1),
    "columns": lambda x, v: x.sum(axis=0),
    "all": lambda x, v: x.sum(),
    "softmax": softmax,
    "transposed": lambda x, v: x.T + 1,
}


def sizes():
    """Milliseconds of kernels with constant and with symbolic sizes."""
    import cinductor

    for shape in ((1000, 1000), (16384, 4096), (50_000_000, 1)):
        x, v = (cinductor.to_device(np.ones(n, np.float32)) for n in (shape, shape[1]))
        for name, function in SIZED.items():
            calls = [functools.partial(cinductor.compile(function, dynamic=d), x, v) for d in (False, True)]
            constant, symbolic = (1e3 * gpu.measure(call, lambda _: cinductor.synchronize(), batches=3) for call in calls)
            print(f"cinductor, {name} {shape[0]}x{shape[1]}: {constant:.4g} ms, symbolic sizes {symbolic:.4g} ms")


def from_python(calls):
    import cinductor

    x, y = (cinductor.to_device(np.ones(8, np.float32)) for _ in range(2))
    f = cinductor.compile(lambda a, b: a * 2 + b)
    g = cinductor.compile(lambda a, b: (a * 2 + b, a - b))
    print(f"cinductor, one kernel: {measure(lambda: f(x, y), cinductor.synchronize, calls):.3f} µs")
    print(f"cinductor, two results: {measure(lambda: g(x, y), cinductor.synchronize, calls):.3f} µs")
    print(f"cinductor, operator +: {measure(lambda: x + y, cinductor.synchronize, calls):.3f} µs")
    recordings(calls)
    cinductor.configure_memory("keep:0")
    print(f"cinductor, one kernel, blocks not kept: {measure(lambda: f(x, y), cinductor.synchronize, calls):.3f} µs")
    try:
        import cupy

        a, b = cupy.ones(8, "f4"), cupy.ones(8, "f4")

        @cupy.fuse()  # the kernel gets the function's name
        def fused(a, b):
            return a * 2 + b

        print(f"CuPy, fused: {measure(lambda: fused(a, b), cupy.cuda.Device().synchronize, calls):.3f} µs")
        print(f"CuPy, operator +: {measure(lambda: a + b, cupy.cuda.Device().synchronize, calls):.3f} µs")
    except ImportError:
        print("CuPy: not installed")
    try:
        import torch

        a, b = torch.ones(8, device="cuda"), torch.ones(8, device="cuda")
        print(f"torch, operator +: {measure(lambda: a + b, torch.cuda.synchronize, calls):.3f} µs")
    except ImportError:
        print("torch: not installed")


def first_results(processes):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("empty", "filled"):
            found = []
            for number in range(processes):
                where = str(Path(folder) / (f"{name}{number}" if name == "empty" else "empty0"))
                # As Python is usually installed: compiled bytecode is cached.
                env = {**os.environ, "CINDUCTOR_CACHE_DIR": where, "PYTHONDONTWRITEBYTECODE": ""}
                done = subprocess.run([sys.executable, "-c", FIRST], env=env, capture_output=True, text=True, check=True)
                found.append([float(word) for word in done.stdout.split()])
            whole = [pair[1] for pair in found]
            print(
                f"import and first result, {name} cache: {min(whole):.3f} s least, {statistics.median(whole):.3f} s median,"
                f" of which NumPy's import {statistics.median(pair[0] for pair in found):.3f} s"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--sizes", action="store_true")
    arguments = parser.parse_args()
    if arguments.sizes:
        sizes()
        return
    from_python(arguments.calls)
    loops()
    from_c(arguments.calls)
    first_results(arguments.processes)


if __name__ == "__main__":
    main()
