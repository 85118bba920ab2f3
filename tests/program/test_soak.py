"""Tests that repeated compiling, calling and dropping of functions does not leak memory. `make soak` runs longer."""

import gc
import os
import sys
import time
import weakref

import numpy as np
import pytest

import cinductor

SECONDS = float(os.environ.get("CINDUCTOR_SOAK", "3"))


def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def mapped_objects():
    with open("/proc/self/maps") as file:
        return sum(".so" in line for line in file)


pytestmark = [
    pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads Linux's /proc"),
    pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="ASan keeps what is freed"),
]


def repeat(call, seconds):
    """Call until the time is over; return the number of calls."""
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        call()
        count += 1
    return count


def test_compile_call_drop_does_not_grow():
    x = np.arange(100.0)

    def once():
        f = cinductor.compile(lambda x: np.exp(x - 1) * 3)
        f(x)
        f(x)

    for _ in range(20):
        once()
    gc.collect()
    before, objects = resident_kib(), mapped_objects()
    repeat(once, SECONDS)
    gc.collect()
    assert resident_kib() - before < 2048
    assert mapped_objects() <= objects + 5


def test_calls_do_not_grow():
    f = cinductor.compile(lambda x, s: (x * s + 1, x.sum(axis=0), x[1:]))
    x = np.ones((40, 30))
    for k in range(100):
        f(x, 0.5 + k)
    counts = sys.getrefcount(x), sys.getrefcount(f)
    before = resident_kib()
    repeat(lambda: f(x, 2.5), SECONDS)
    assert resident_kib() - before < 1024
    assert (sys.getrefcount(x), sys.getrefcount(f)) == counts


def test_a_cycle_through_a_compiled_function_is_collected():
    class Model:
        pass

    def make():
        model = Model()
        model.w = np.ones(3)
        model.f = cinductor.compile(lambda x: x * model.w)
        model.f(np.ones(3))
        return weakref.ref(model)

    for _ in range(20):
        dead = make()
        gc.collect()
        assert dead() is None
