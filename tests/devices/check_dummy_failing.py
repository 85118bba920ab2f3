"""Lets each call of the dummy device fail in turn, and checks that long use does not leak. Run by test_devices.py
like check_dummy.py.
"""

import gc
import os
import threading

import cinductor_dummy as dummy
import numpy as np
import pytest
from check_dummy import DEVICE, Card, as_it_was  # noqa: F401
from check_dummy_copies import given, with_calls

import cinductor

CALLS = int(os.environ.get("CINDUCTOR_SOAK_CALLS", "1500"))
ERRORS = (cinductor.DeviceError, MemoryError)
compiled = cinductor.compile(with_calls)
on_host = cinductor.compile(lambda x: np.sqrt(x * x) * 2 + x.mean(), device=DEVICE, options={"offload": "always"})
added = cinductor.compile(lambda a, b: a + b)
checked = cinductor.compile(lambda x, k: x[k] * 2)


def everything(x, y):
    """Call every function of a device, and check the results. At the end no object is left."""
    a, b = cinductor.to_device(x, DEVICE), cinductor.to_device(y, "dummy:1")
    found = [r.numpy() for r in compiled(a, b)]
    with cinductor.Stream(DEVICE) as stream:
        made = a * 2
        event = stream.record()
    event.synchronize()
    stream.wait(cinductor.Stream(DEVICE))
    copy = made.start_copy()
    a[0] = a[1]
    shared = cinductor.to_device(a, DEVICE, shared=True)
    assert len(shared.ipc_handle()) > 64
    moved = cinductor.to_device(b[1:, ::2], DEVICE)
    cinductor.empty_cache(DEVICE)
    k = cinductor.to_device(np.array([1, 3]), DEVICE)
    return [*found, copy.numpy().copy(), shared.numpy(), moved.numpy(), checked(a, k).numpy(), added(a[:8, :8], b).numpy(), on_host(x)]


def test_each_call_of_a_device_fails_in_turn():
    """Each failure raises one clear error, or none if the call returns nothing; then everything works as before."""
    x, y = given()
    want = everything(x, y)
    everything(x, y)
    gc.collect()
    began = sum(dummy.counts().values())
    everything(x, y)
    gc.collect()
    count = sum(dummy.counts().values()) - began  # number of calls; live objects are as before
    failed = {}
    for number in range(count):
        dummy.set_failing_after(number)
        try:
            everything(x, y)
        except ERRORS as error:
            said = str(error)
            assert "told to fail in" in said or "has no" in said or "out of memory" in said, said
            name = said.partition("told to fail in ")[2].split("\n")[0].split(" ")[0].rstrip(")")
            failed[name] = failed.get(name, 0) + 1
            del error
        dummy.set_failing_after(-1)
        gc.collect()
        for device in cinductor.devices("dummy"):
            cinductor.synchronize(device)
        assert dummy.counts()["live"] == dummy.counts()["handles"] == 0, (number, failed)
    assert {"", "copy_in", "copy_out", "copy_across", "launch", "event_open", "event_record", "share_name"} <= failed.keys(), failed
    for got, expected in zip(everything(x, y), want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_each_method_of_a_device_of_python_raises_in_turn():
    class Raising(Card):
        name = "raising"
        countdown = -1

        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            if name not in METHODS:
                return found

            def call(*args):
                self.countdown -= 1
                if self.countdown == -1:
                    raise RuntimeError(f"{name} raised")
                return found(*args)

            return call

    METHODS = ("allocate", "release", "copy_in", "copy_out", "synchronize", "launch", "properties")
    card = Raising()
    cinductor.register_device(card)
    f = cinductor.compile(lambda a: np.sin(a) + a.sum())
    x = np.arange(6.0)

    def run():
        a = cinductor.to_device(x, "raising")
        return cinductor.Device("raising").units, f(a).numpy(), (a + 1).numpy(), cinductor.synchronize("raising")

    units, want, _, _ = run()
    assert units == 3
    seen = set()
    for number in range(40):
        card.countdown = number
        try:
            run()
        except (*ERRORS, RuntimeError) as error:
            seen |= {name for name in METHODS if f"{name} raised" in str(error)}
            del error
        card.countdown = -1
        gc.collect()
    assert seen == {*METHODS} - {"release"}, seen
    assert np.array_equal(run()[1], want)


def test_threads_that_fail_together():
    """Several threads call while the device fails at random: each gets its result or an error."""
    x, y = given()
    want = everything(x, y)
    wrong = []

    def work():
        for _ in range(3):
            try:
                got = everything(x, y)
                if not all(np.array_equal(g, w) for g, w in zip(got, want, strict=True)):
                    wrong.append(got)
            except ERRORS:
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20):
        dummy.set_failing_after(number)
        threads[0].join(0.005)
    dummy.set_failing_after(-1)
    for thread in threads:
        thread.join()
    assert not wrong


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def test_calls_for_long_do_not_grow():
    """Device and host memory, files and threads do not grow; `make soak` makes 100,000 calls."""
    x, y = given()
    a, b = cinductor.to_device(x, DEVICE), cinductor.to_device(y, "dummy:1")
    f = cinductor.compile(lambda a, s: (a * s, a.sum(axis=0), a[1:]))
    shared = cinductor.to_device(x, DEVICE, shared=True)

    def once(number):
        results = f(a, float(number))
        if number % 10 == 0:
            compiled(a, b)
            (a + 1).start_copy()
        if number % 50 == 0:
            with cinductor.Stream(DEVICE) as stream:
                f(shared, 2.0)
                stream.record().synchronize()
            cinductor.to_device(x, DEVICE, shared=True).ipc_handle()
        return results

    def settle():
        gc.collect()
        for device in cinductor.devices("dummy"):
            cinductor.synchronize(device)
        stats = [cinductor.memory_stats(device) for device in cinductor.devices("dummy")]
        return dummy.counts()["live"], dummy.counts()["handles"], [(s["allocated"], s["blocks"]) for s in stats], open_files()

    for number in range(300):
        once(number)
    before, began = settle(), resident_bytes()
    for number in range(CALLS):
        once(number)
        if number % 200 == 0:
            cinductor.synchronize(DEVICE)  # buffers freed by the host must not pile up
    assert settle() == before
    assert resident_bytes() - began < 4 << 20


def test_what_is_no_device_here():
    """Names, indices and streams that do not exist."""
    x = np.ones(3)
    with pytest.raises(ValueError, match="there is no device 'gpu'|did you mean"):
        cinductor.to_device(x, "gpu")
    for wrong in (-1, 1.5, "1"):
        with pytest.raises(ValueError, match=f"index is {wrong!r}; wanted"):
            cinductor.Device("dummy", wrong)
    for wrong in ("dummy:-1", "dummy:x", "dummy:"):
        with pytest.raises(ValueError, match="wanted: a name, or a name and a number"):
            cinductor.to_device(x, wrong)
    for wrong in ("dummy:7", cinductor.Device("dummy", 7)):
        with pytest.raises(cinductor.DeviceError, match="there are 2 dummy devices"):
            cinductor.to_device(x, wrong)
    for call in (cinductor.Stream, cinductor.Event, cinductor.synchronize, cinductor.empty_cache):
        with pytest.raises(cinductor.DeviceError, match="there are 2 dummy devices"):
            call("dummy:7")
    stream = cinductor.Stream("dummy:1")
    a = cinductor.to_device(x, DEVICE)
    with stream:  # a stream of another device is ignored here
        assert np.array_equal((a + 1).numpy(), x + 1)
