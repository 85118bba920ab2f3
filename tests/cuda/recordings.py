"""Checks the option `graphs` (CUDA graphs) on a GPU or the emulated one: recordings.py [emulated].

Prints one line for each check: `ok` or `fail`, and its name. Replayed results must equal those of launches bit by
bit, results of earlier calls must not change, and the counters of the fake driver must have the expected values.
"""

import ctypes
import gc
import os
import sys
import threading

import numpy as np

import cinductor

EMULATED = len(sys.argv) > 1 and sys.argv[1] == "emulated"
GRAPHS = {"graphs": True, "verify": True}
driver = ctypes.CDLL("libcuda.so.1")


def count(name):
    return driver.fake_count(name.encode()) if EMULATED else 0


def say(name, is_right):
    print("ok" if is_right else "fail", name, flush=True)


def same(got, want):
    return all(np.array_equal(a.numpy(), b) for a, b in zip(got, want, strict=True))


def layers(x, w, s):
    h = np.sqrt(np.abs(x @ w)) + s
    return np.sort(h, axis=1) - h.mean(axis=1, keepdims=True), (h @ w.T).sum()


def sums(x):
    return (x * 2).sum(), x - x.max()


def answers(x, y):
    return (x > 3).any(axis=1), y * 2


def product(a, b):
    return np.abs(a @ b) + 1


def iterate(a, v):
    for _ in range(20):
        v = a @ v
        v = v / np.sqrt((v * v).sum())
    return (v,)


def shift(x):
    """A loop that exchanges two buffers."""
    for _ in range(17):
        x = np.concatenate([x[:1], 0.5 * (x[2:] + x[:-2]), x[-1:]])
    return (x,)


def check_unasked(fn, *arguments):
    """Loops of short kernels are recorded without the option."""
    launched, recorded = cinductor.compile(fn, options={"choices": "recorded_iterations=100"}), cinductor.compile(fn)
    want, before = [r.numpy() for r in launched(*arguments)], count("cuGraphLaunch")
    kept = [recorded(*arguments) for _ in range(3)]
    say(f"{fn.__name__}: unasked", all(same(got, want) for got in kept))
    if EMULATED:
        say(f"{fn.__name__}: replays", count("cuGraphLaunch") - before == 2)


def iterate_long(a, v):
    """A loop whose turns are polled where it is launched."""
    for _ in range(300):
        v = (a @ v) / 32
    return (v,)


def check_interrupted(fn, *arguments):
    """A Ctrl-C during a replay is Python's as soon as the call is over."""
    recorded = cinductor.compile(fn)
    for _ in range(3):  # with results in the same memory, so the next call is a replay
        want = [r.numpy() for r in recorded(*arguments)]
    driver.fake_interrupt()
    try:
        recorded(*arguments)
        found = None
    except BaseException as error:  # noqa: BLE001
        found = type(error)
    say(f"{fn.__name__}: interrupted", found is KeyboardInterrupt and same(recorded(*arguments), want))


def rows_of(x, w):
    h = np.sort(x * w, axis=1)
    return h - h.mean(axis=1, keepdims=True), (h * w).sum()


def check_moving(w):
    """A new array in each call is copied to the recording's memory, and the calls are replays."""
    recorded = cinductor.compile(rows_of, options=GRAPHS)
    given = [cinductor.to_device(np.full((6, 4), k + 1, "f4")) for k in range(9)]
    before = count("cuGraphLaunch")
    kept = [recorded(x, w) for x in given]
    replays, plain = count("cuGraphLaunch") - before, cinductor.compile(rows_of)
    say("arguments that move", all(same(got, [r.numpy() for r in plain(x, w)]) for x, got in zip(given, kept, strict=True)))
    if EMULATED:
        say("arguments that move: replays", replays == 6)


def check_settled(x, w):
    """Results that get the same memory again are stored there by the recording; other ones are copied as before."""
    recorded, want = cinductor.compile(rows_of, options=GRAPHS), [r.numpy() for r in cinductor.compile(rows_of)(x, w)]

    def copies(call):
        before = count("cuMemcpyDtoDAsync_v2"), count("cuGraphLaunch")
        result = call(x, w)
        made = count("cuMemcpyDtoDAsync_v2") - before[0], count("cuGraphLaunch") - before[1]
        return result, made

    for _ in range(4):
        first = copies(recorded)[1]
    for _ in range(10):
        copies(recorded)
    got, settled = copies(recorded)
    say("results in the same place", same(got, want))
    kept = [got] + [recorded(x, w) for _ in range(3)]
    last, moved = copies(recorded)
    say("results in other places", all(same(got, want) for got in [*kept, last]))
    alternate = None
    for _ in range(16):  # an old result lives while the next one is computed
        alternate, both = copies(recorded)
    say("results in two places", same(alternate, want))
    random, held, replays = np.random.default_rng(4), [None, None], []
    for _ in range(150):
        got, made = copies(recorded)
        held = [new if random.integers(2) else old for new, old in zip(got, held, strict=True)]
        replays.append(made[1])
    say("results in any place", all(old is None or np.array_equal(old.numpy(), b) for old, b in zip(held, want, strict=True)))
    if EMULATED:
        say("results in any place: replays", all(replays[100:]))
        say("results in the same place: copies", (first, settled, moved, both) == ((2, 1), (0, 1), (2, 1), (0, 1)))


def products_of_cublas():
    """The number of products that the fake cuBLAS made."""
    library = ctypes.CDLL(os.path.join(os.environ["CINDUCTOR_CUBLAS"], "libcublas.so.13"))
    return library.fake_products()


def check(name, fn, arguments, calls=5, replays=4, options=None, dynamic=None):
    """Compare with a function that launches every time; all results are compared at the end."""
    options = options or {}
    launched = cinductor.compile(fn, options=options, dynamic=dynamic)
    recorded = cinductor.compile(fn, options=GRAPHS | options, dynamic=dynamic)
    want = [r.numpy() for r in launched(*arguments)]
    before, captures = count("cuGraphLaunch"), count("cuStreamBeginCapture_v2")
    kept = [recorded(*arguments) for _ in range(calls)]
    say(f"{name}: bits", all(same(got, want) for got in kept))
    if EMULATED:
        say(f"{name}: replays", count("cuGraphLaunch") - before == replays)
        say(f"{name}: recorded once", count("cuStreamBeginCapture_v2") - captures == 1)
    part = cinductor.explain(recorded, *arguments).recordings
    say(f"{name}: told", "replayed in" in part[0] and "not recorded" not in part[0])
    return recorded, want


def main():
    random = np.random.default_rng(5)
    x, w = (cinductor.to_device(random.random(shape).astype("f4")) for shape in ((6, 8), (8, 4)))
    f, want = check("layers", layers, (x, w, 0.5))
    long = cinductor.to_device(random.random(3000).astype("f4"))
    say("a short sort needs no memory", not EMULATED or count("nodes") == 0)
    check("long sort", lambda x: (np.sort(x)[::-1] * 2,), (cinductor.to_device(random.random(4100).astype("f4")),))
    say("what a long sort needs is a node", not EMULATED or count("nodes") == 1)
    check("sums", sums, (long,), options={"choices": "separate_bytes=1"})  # two launches
    rows = np.zeros((1, 132_000), "f4")  # with a symbolic length, each row is split
    rows[0, 8_300] = 4
    want = check("any", answers, (cinductor.to_device(rows), long), calls=3, replays=2, dynamic=True)[1]
    say("any: the answer", want[0].tolist() == [True])
    n = 64 if EMULATED else 512
    square = cinductor.to_device(random.random((n, n)).astype("f4"))
    check("a product of cuBLAS's", product, (square, square), options={"numerics": "fast"})
    if EMULATED:
        say("cuBLAS made it", products_of_cublas() > 0)

    vector, rows = (cinductor.to_device(random.random(shape).astype("f4")) for shape in (n, (60, 500)))
    check("a whole loop", iterate, (square, vector))
    check_unasked(iterate, square, vector)
    check_unasked(shift, rows)
    if EMULATED:
        check_interrupted(iterate_long, square, vector)

    other = cinductor.to_device(random.random((6, 8)).astype("f4"))
    plain = cinductor.compile(layers)
    check_moving(w[0])
    check_settled(cinductor.to_device(np.full((6, 4), 3, "f4")), w[0])
    calls = [(x, w, 0.5), (other, w, 0.5), (x, w, 1.5), (other, w, 0.5), (x, w, 1.5), (x, w, 0.5)]
    say("other arguments", all(same(f(*c), [r.numpy() for r in plain(*c)]) for c in calls))
    x[0] = 0
    say("other contents", same(f(x, w, 0.5), [r.numpy() for r in plain(x, w, 0.5)]))
    want = [r.numpy() for r in plain(x, w, 0.5)]

    with cinductor.Stream("cuda"):
        say("another stream", all(same(f(x, w, 0.5), want) for _ in range(3)))
    wrong = []

    def work(s):
        expected = [r.numpy() for r in plain(x, w, s)]
        for _ in range(4):
            if not same(f(x, w, s), expected):
                wrong.append(s)

    threads = [threading.Thread(target=work, args=(s,)) for s in (0.25, 0.75)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("two threads", not wrong)
    if EMULATED:
        del f
        gc.collect()
        say("nothing is left", count("graphs") == 0)


if __name__ == "__main__":
    main()
