"""Tests arrays of the dummy device that are shared between processes. Run by test_devices.py like check_dummy.py."""

import contextlib
import gc
import json
import subprocess
import sys

import cinductor_dummy as dummy
import numpy as np
import pytest
from check_dummy import DEVICE, as_it_was  # noqa: F401

import cinductor
from cinductor.arrays import sharing

OTHER = """
import sys
import cinductor_dummy as dummy
import numpy as np
import cinductor

dummy.register()
for line in sys.stdin:
    word, _, data = line.strip().partition(" ")
    try:
        if word == "open":
            array = cinductor.from_ipc_handle(bytes.fromhex(data))
            print(array.device, array.shape, array.strides, array.dtype, array.numpy().ravel().tolist(), flush=True)
        elif word == "write":
            array += float(data)
            cinductor.synchronize(array.device)
            print("written", flush=True)
        else:
            del array
            print(dummy.counts()["live"], flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""


@pytest.fixture(scope="module")
def other():
    """Another process that has the device: sends it one line, returns its answer."""
    child = subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(word, data=""):
        child.stdin.write(f"{word} {data}\n")
        child.stdin.flush()
        return child.stdout.readline().strip()

    yield ask
    child.stdin.close()
    assert child.wait(20) == 0


@pytest.mark.parametrize("device", ["dummy", "dummy:1"])
def test_two_processes_have_one_array(other, device):
    x = np.arange(24.0).reshape(4, 6)
    shared = cinductor.to_device(x, device, shared=True)
    made = shared * 2  # an array like any other here
    dummy.set_delay(2000)
    shared += 1
    for part in (np.s_[:], np.s_[1:, ::-2], np.s_[2], np.s_[3, 5], np.s_[:0]):
        view = shared[part]
        said = other("open", view.ipc_handle().hex())
        want = (x + 1)[part]
        assert said == f"{device} {want.shape} {view.strides} float64 {want.ravel().tolist()}"
    assert other("open", shared.T.ipc_handle().hex()).startswith(f"{device} (6, 4) (8, 48)")
    assert other("write", "100") == "written"
    assert np.array_equal(shared.numpy(), x + 101) and np.array_equal(made.numpy(), x * 2)
    assert other("drop") == "0"  # closed there
    assert cinductor.memory_stats(device)["allocated"] == 2 * x.nbytes
    again = cinductor.to_device(shared, device, shared=True)  # a copy on the device
    assert again.ipc_handle() != shared.ipc_handle() and np.array_equal(again.numpy(), x + 101)


def test_what_a_handle_refuses(other):
    shared = cinductor.to_device(np.arange(6.0), DEVICE, shared=True)
    handle = shared.ipc_handle()
    with pytest.raises(ValueError, match="the handle is of this process, which has the array itself"):
        cinductor.from_ipc_handle(handle)
    with pytest.raises(ValueError, match=r"to_device\(array, shared=True\)"):
        cinductor.to_device(np.ones(3), DEVICE).ipc_handle()
    with pytest.raises(ValueError, match="device 'card2' has no memory that other processes can open"):
        cinductor.to_device(np.ones(3), plain_device(), shared=True)
    with pytest.raises(TypeError, match="takes the bytes of a handle, not str"):
        cinductor.from_ipc_handle("text")
    fields = json.loads(handle.removeprefix(sharing.MARK))
    cinductor.synchronize(DEVICE)  # memory is freed in stream order
    for change, said in (
        ({"version": 2}, "a handle of version 2; 1 is understood"),
        ({"device": "gpu"}, "there is no device 'gpu'"),
        ({"identity": "00" * 16}, "a device that this process does not have .dummy in the process that shared it"),
        ({"identity": "zz"}, "no handle"),
        ({"name": "abc"}, "no handle"),
        ({"name": "00"}, "a name of 1 bytes, not 64"),
        ({"shape": [7]}, "the handle says bytes 0 to 56 of memory that has 48"),
        ({"shape": [-1]}, "no handle"),
        ({"shape": [2.5]}, "no handle"),
        ({"shape": [1] * 40, "strides": [8] * 40}, "no handle"),
        ({"strides": [8, 8]}, "no handle"),
        ({"strides": [-8]}, "the handle says bytes -40 to 8"),
        ({"offset": -8}, "the handle says bytes -8 to 40"),
        ({"offset": True}, "no handle"),
        ({"dtype": "nothing"}, "no handle"),
        ({"dtype": "O"}, "dtype"),
        ({"more": 1}, "no handle"),
        ({"name": (b"/proc/1/fd/x 0" + bytes(50)).hex()}, "cannot be opened on dummy; was its array freed"),
    ):
        data = sharing.MARK + json.dumps({**fields, "process": "another", **change}).encode()
        with pytest.raises((ValueError, TypeError, cinductor.DeviceError), match=said):
            cinductor.from_ipc_handle(data)
        assert dummy.counts()["live"] == 1, change
    for data in (b"", b"\x80\x04", handle[1:], handle[:-3], sharing.MARK + b"[1]", sharing.MARK + b"\xff"):
        with pytest.raises(ValueError, match="no handle"):
            cinductor.from_ipc_handle(data)
    del shared
    assert "DeviceError the memory of the handle cannot be opened on dummy; was its array freed?" in other("open", handle.hex())


def plain_device():
    """A device in Python with memory that cannot be shared."""
    from check_dummy import Card

    card = Card()
    card.name = "card2"
    with contextlib.suppress(ValueError):
        cinductor.register_device(card)
    return "card2"


@pytest.mark.parametrize("name, error", [("share_allocate", MemoryError), ("share_name", cinductor.DeviceError), ("synchronize", cinductor.DeviceError)])
def test_sharing_that_fails(name, error):
    x = np.arange(4.0)
    shared = cinductor.to_device(x, DEVICE, shared=True)
    dummy.set_failing(name)
    with pytest.raises(error):
        cinductor.to_device(x, DEVICE, shared=True).ipc_handle()
    dummy.set_failing(None)
    assert np.array_equal(shared.numpy(), x)
    cinductor.configure_memory("limit:64", DEVICE)
    with pytest.raises(MemoryError, match="the limit is 64"):
        cinductor.to_device(np.ones(8), DEVICE, shared=True)
    cinductor.configure_memory("limit:0", DEVICE)


def test_memory_that_cannot_be_waited_for_stays():
    """If waiting fails, memory is not freed until the device works again, because a stream may still write to it."""
    for answers in (cinductor.synchronize, lambda device: cinductor.to_device(np.arange(3.0), device, shared=True)):
        late = cinductor.to_device(np.arange(1e5), DEVICE, shared=True)
        cinductor.synchronize(DEVICE)
        dummy.set_failing("synchronize")
        del late
        gc.collect()
        assert dummy.counts()["live"] == 1
        dummy.set_failing(None)
        answers(DEVICE)
        gc.collect()
        cinductor.synchronize(DEVICE)
        assert dummy.counts()["live"] == 0
