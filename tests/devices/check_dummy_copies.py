"""What is copied between the dummy's cards and to the host, inside of programs: run by test_devices.py beside check_dummy.py."""

import json

import cinductor_dummy as dummy
import numpy as np
import pytest
from check_dummy import as_it_was  # noqa: F401

import cinductor


def on_card(x, card):
    return cinductor.to_device(x, f"dummy:{card}")


# Card of a and of b, the part of each -> where kernels ran, and what was copied: packed where it lies.
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
    """The matrix of test_kernels_run_where_the_data_are for views: what another card reads is packed first."""
    first, second, part, other, where, copied = case
    x, y = np.arange(48.0).reshape(6, 8), np.arange(48.0).reshape(6, 8) + 100
    if part is WHOLE:
        x = x[: y[other].shape[0], :4].copy()
    a, b = on_card(x, first)[part], on_card(y, second)[other]
    dummy.set_delay(300)
    report = cinductor.explain(cinductor.compile(lambda a, b: a * 2 - b, dynamic=dynamic), a, b)
    assert np.array_equal(report.result.numpy(), x[part] * 2 - y[other])
    lines = json.loads(report.text("json"))["lines"]
    launches = [line.get("device", 0) for line in lines if line["line"] == "launch"]
    assert set(launches) == where and len(launches) == len(where)  # nobody packs what is read where it lies
    assert dynamic or report.copies == copied


def test_parts_that_are_written_stay_where_they_are():
    """What touches them runs there; one that is returned is the caller's own."""

    def f(a, b):
        a += b
        return a * 2, b.sum()

    for first, second in ((0, 1), (1, 0)):
        x, y = np.arange(64.0).reshape(8, 8), np.arange(96.0).reshape(8, 12)
        whole = on_card(x, first)
        a, b = whole[::2, 1:7:3], on_card(y, second)[4:, ::6]
        compiled = cinductor.compile(f)
        dummy.set_delay(300)
        got, total = compiled(a, b)
        want = f(x[::2, 1:7:3], y[4:, ::6])
        assert np.array_equal(got.numpy(), want[0]) and total.numpy() == want[1]
        assert np.array_equal(whole.numpy(), x)  # and what lies between is as it was
        view, _ = cinductor.compile(lambda a, b: (a[1:], a[0] - b[0]))(a, b)
        whole[:] = 7
        assert (view.numpy() == 7).all()
    with pytest.raises(cinductor.Unsupported, match=r"is not contiguous and is written or returned"):
        cinductor.compile(both)(on_card(np.ones((4, 4)), 0)[:, ::2], on_card(np.ones((4, 4)), 1)[:, ::2])


def both(a, b):
    for k in range(3):
        a[k] += b[k]
        b[k] -= a[k]
