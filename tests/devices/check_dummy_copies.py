"""Tests which data a program copies between the dummy's devices and to the host. Run by test_devices.py like
check_dummy.py.
"""

import json

import cinductor_dummy as dummy
import numpy as np
import pytest
from check_dummy import as_it_was  # noqa: F401

import cinductor


def on_gpu(x, card):
    return cinductor.to_device(x, f"dummy:{card}")


# Device of a and of b, the part of each -> where kernels ran, and what was copied. Arrays are packed on their own
# device.
WHOLE = np.s_[:]
PARTS = [
    (0, 0, WHOLE, np.s_[:, ::2], {0}, []),
    (0, 1, WHOLE, np.s_[:3, ::2], {0, 1}, ["buf0 from device 1 to device 0, 96 bytes"]),
    (1, 0, WHOLE, np.s_[:3, ::-2], {0, 1}, ["buf0 from device 0 to device 1, 96 bytes"]),
    (0, 1, np.s_[::2, 1:5], np.s_[:3, ::2], {0, 1}, ["buf1 from device 1 to device 0, 96 bytes"]),
    (1, 0, np.s_[4, 1::2], np.s_[:, ::2], {0, 1}, ["buf0 from device 1 to device 0, 32 bytes"]),
    (0, 1, np.s_[:, 1:5], np.s_[1, 1:5], {0}, ["in1 from device 1 to device 0, 32 bytes"]),
]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("case", PARTS, ids=str)
def test_parts_that_are_not_contiguous(case, dynamic):
    """The matrix of test_kernels_run_where_the_data_are for views: a view is packed before it is copied to another
    device.
    """
    first, second, part, other, where, copied = case
    x, y = np.arange(48.0).reshape(6, 8), np.arange(48.0).reshape(6, 8) + 100
    if part is WHOLE:
        x = x[: y[other].shape[0], :4].copy()
    a, b = on_gpu(x, first)[part], on_gpu(y, second)[other]
    dummy.set_delay(300)
    report = cinductor.explain(cinductor.compile(lambda a, b: a * 2 - b, dynamic=dynamic), a, b)
    assert np.array_equal(report.result.numpy(), x[part] * 2 - y[other])
    lines = json.loads(report.text("json"))["lines"]
    launches = [line.get("device", 0) for line in lines if line["line"] == "launch"]
    assert set(launches) == where and len(launches) == len(where)  # a device reads its own views without packing them
    assert dynamic or report.copies == copied


def test_parts_that_are_written_stay_where_they_are():
    """Code that uses a written array runs on its device. A result that is an argument is the caller's own array."""

    def f(a, b):
        a += b
        return a * 2, b.sum()

    for first, second in ((0, 1), (1, 0)):
        x, y = np.arange(64.0).reshape(8, 8), np.arange(96.0).reshape(8, 12)
        whole = on_gpu(x, first)
        a, b = whole[::2, 1:7:3], on_gpu(y, second)[4:, ::6]
        compiled = cinductor.compile(f)
        dummy.set_delay(300)
        got, total = compiled(a, b)
        want = f(x[::2, 1:7:3], y[4:, ::6])
        assert np.array_equal(got.numpy(), want[0]) and total.numpy() == want[1]
        assert np.array_equal(whole.numpy(), x)  # the elements between are unchanged
        view, _ = cinductor.compile(lambda a, b: (a[1:], a[0] - b[0]))(a, b)
        whole[:] = 7
        assert (view.numpy() == 7).all()
    with pytest.raises(cinductor.Unsupported, match=r"is not contiguous and is written or returned"):
        cinductor.compile(both)(on_gpu(np.ones((4, 4)), 0)[:, ::2], on_gpu(np.ones((4, 4)), 1)[:, ::2])


def both(a, b):
    for k in range(3):
        a[k] += b[k]
        b[k] -= a[k]


# --- copies to the host that begin early ----------------------------------------------------------


def with_calls(a, b):
    """Library calls run on the host. Their arguments are copied while the devices run other kernels."""
    t = a * 2
    s = np.exp(b).sum(axis=0) @ b.T
    return np.linalg.inv(t), np.tanh(b) * s


def with_one_call(a, b):
    """Only the wait keeps the host from reading too early."""
    return np.tanh(b) * 2, np.linalg.inv(a)


def given():
    rng = np.random.default_rng(3)
    return rng.random((12, 12)), rng.random((8, 8))


@pytest.mark.parametrize("program", [with_calls, with_one_call])
@pytest.mark.parametrize("cards", [(0, 1), (1, 0), (1, 1)], ids=str)
def test_copies_to_the_host_begin_early(cards, program):
    """These copies are lines of the program and have their own buffers; each is waited for before it is read."""
    x, y = given()
    a, b = on_gpu(x, cards[0]), on_gpu(y, cards[1])
    options = {"track_memory": "assert", "verify": True}
    report = cinductor.explain(cinductor.compile(program, options=options), a, b)
    lines = [(line["line"], line.get("buffer")) for line in json.loads(report.text("json"))["lines"]]
    started = [buffer for line, buffer in lines if line == "copy_out_start"]
    assert started and all(lines.index(("copy_out_start", b)) < lines.index(("wait", b)) for b in started)
    assert "empty_pinned(" in report.wrapper and "start_to_host(" in report.wrapper
    for delay in (0, 3000):
        compiled = cinductor.compile(program)
        dummy.set_delay(delay)
        for _ in range(3):
            before = dummy.counts()
            for got, want in zip(compiled(a, b), program(x, y), strict=True):
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)
            assert dummy.counts()["copy_out_start"] - before["copy_out_start"] == len(started)


@pytest.mark.parametrize("name", ["copy_out_start", "event_open", "event_record", "event_synchronize", "copy_out"])
def test_copies_that_fail(name):
    """One error is raised, and no copy or buffer is left."""
    x, y = given()
    a, b = on_gpu(x, 0), on_gpu(y, 1)
    compiled = cinductor.compile(with_calls)
    compiled(a, b)
    dummy.set_delay(1000)
    dummy.set_failing(name)
    with pytest.raises(cinductor.DeviceError, match=f"told to fail in {name}"):
        compiled(a, b)
    dummy.set_failing(None)
    assert np.allclose(compiled(a, b)[0].numpy(), with_calls(x, y)[0])
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):  # while other copies are in flight
        compiled(on_gpu(np.zeros((12, 12)), 0), b)


def test_large_copies_are_waited_for_where_they_begin():
    a, b = on_gpu(given()[0], 0), on_gpu(given()[1], 1)
    compiled = cinductor.compile(with_calls, options={"choices": "pinned_bytes=100"})
    assert "start_to_host(in1" not in cinductor.explain(compiled, a, b).wrapper
