"""Tests kernel variants for classes of sizes with backend "cuda": variants.py [emulated]. Prints one line for each
check.

Checks that count calls of the driver run only with the fake driver.
"""

import ctypes
import sys
import threading
import warnings

import numpy as np

import cinductor

EMULATED = len(sys.argv) > 1
driver = ctypes.CDLL("libcuda.so.1")


def count(name):
    return driver.fake_count(name.encode()) if EMULATED else 0


def last():
    return [count(f"last_{what}") for what in ("blocks", "threads", "shared")]


def say(name, is_right, *why):
    print("ok" if is_right else "fail", name, *("" if is_right else why), flush=True)


def compiled(fn, choices="variant_work=1", **options):
    options = {"offload": "always", "verify": True, "choices": choices, **options}
    return cinductor.compile(fn, device="cuda", backend="cuda", dynamic=True, options=options)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def product(a, b, c):
    return np.maximum(a @ b + c, 0)


def square(n):
    a = np.random.default_rng(n).standard_normal((n, n)).astype("f4")
    return a, a.T.copy(), a[0].copy()


FUNCTIONS = {
    "points": (lambda x: x * 2 + 1, [np.linspace(0, 1, n) for n in (3, 1000, 1001, 4096)]),
    "sum": (lambda x: x.sum(), [np.linspace(0, 1, n) for n in (7, 70_000)]),
    "softmax": (softmax, [np.sin(np.arange(n * m)).reshape(n, m) for n, m in ((5, 40), (9, 41))]),
    "gather": (lambda x: x[np.arange(len(x))[::-1]], [np.linspace(0, 1, n) for n in (9, 64)]),
    "compress": (lambda x: x[x > 0.5] * 2, [np.linspace(0, 1, n) for n in (1, 9, 5000)]),
    "counts": (lambda x: np.bincount(x, minlength=7), [np.arange(n) % 7 for n in (30, 400)]),
    "a view": (lambda x: x[1:] - x[:-1].mean(), [np.linspace(0, 1, n) for n in (9, 1024)]),
}


def results():
    for name, (fn, arguments) in FUNCTIONS.items():
        f = compiled(fn)
        for x in arguments:
            got, want = f(x), fn(x)
            say(f"{name} of {x.shape}", np.shape(got) == want.shape and np.allclose(got, want, rtol=1e-9), got)


def grids():
    """A variant of a split kernel, and of a template, launches the same grid as the kernel for all sizes."""
    x, seen = np.arange(600_000.0), []
    for work in (1, 1 << 40):
        f = compiled(lambda x: np.cumsum(x), f"variant_work={work}")
        say("cumsum", np.allclose(f(x), np.cumsum(x)))
        seen.append(last())
    say("blocks of a cumsum", seen[0] == seen[1] and (not EMULATED or seen[0][0] > 1), seen)
    arguments, seen = square(100), []
    for work in (1, 1 << 40):
        f = compiled(product, f"variant_work={work}", numerics="close", templates="always")
        say("product", np.allclose(f(*arguments), product(*arguments), rtol=1e-3, atol=1e-3))
        say("template", "template product" in cinductor.explain(f, *arguments).kernels)
        f(*arguments)
        seen.append(last())
    say("blocks of a product", seen[0] == seen[1] and (not EMULATED or seen[0][2] > 0), seen)


def bounds():
    """If a third class comes, the variant that was used least recently is evicted, and rebuilt when its class comes
    again.
    """
    f = compiled(lambda x: x * 3 + 1, "variant_work=1, most_variants=2")
    f(np.ones(30))
    first = count("modules")
    made = []
    for n in (60, 30, 120, 30, 60):  # the third evicts the one for 60
        before = count("cuModuleLoadData")
        say(f"{n} elements", np.array_equal(f(np.ones(n)), np.full(n, 4.0)))
        made.append(count("cuModuleLoadData") - before)
    say("what is kept", count("modules") - first == EMULATED, count("modules") - first)
    say("what is made", not EMULATED or made == [1, 0, 1, 0, 1], made)


def recordings():
    """Variants used by recordings are not evicted. If no variant can be evicted, the next launch is not recorded."""

    def fn(x):
        return np.sqrt(x * 2) + 1

    f = compiled(fn, "variant_work=1, most_variants=1, recorded_launches=1", graphs=True)
    xs = [cinductor.to_device(np.arange(float(n))) for n in (30, 60, 120, 30)]
    for x in xs * 2:
        for _ in range(4):
            got = f(x).numpy()
        say(f"recorded of {x.shape}", np.array_equal(got, fn(x.numpy())), got)
    replayed = [part["replayed"] for twin in f._cinductor_job.twins.values() for part in twin.specializations[0].program.recordings]
    say("replayed", not EMULATED or sum(replayed) > 0, replayed)


def threads():
    """If eight threads need one variant at the same time, it is built once."""
    f = compiled(lambda x: np.sqrt(x * 5) + 2)
    f(np.ones(9))
    before, wrong, gate = count("cuModuleLoadData"), [], threading.Barrier(8)

    def run(k):
        x = np.linspace(0, 1, 500 + 4 * (k % 2))
        gate.wait()
        for _ in range(5):
            wrong.extend([k] * (not np.allclose(f(x), np.sqrt(x * 5) + 2)))

    workers = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    made = count("cuModuleLoadData") - before
    say("threads", not wrong and made == 2 * EMULATED, wrong, made)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    results()
    grids()
    bounds()
    recordings()
    threads()
