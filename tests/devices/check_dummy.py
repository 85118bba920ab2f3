"""A device from outside the tree: run by test_devices.py in a process of its own, for nothing takes a device out again."""

import ctypes
import gc
import warnings

import cinductor_dummy as dummy
import numpy as np
import programs
import pytest
import test_op_matrix
import test_programs

import cinductor

DEVICE = dummy.register()
PROGRAMS = programs.load()
ALWAYS = {"offload": "always"}


@pytest.fixture(autouse=True)
def as_it_was():
    """No block is left behind, no delay and no failure."""
    yield
    dummy.set_delay(0)
    dummy.set_failing(None)
    gc.collect()
    for device in cinductor.devices("dummy"):
        cinductor.synchronize(device)
    assert dummy.counts()["live"] == 0


@pytest.mark.parametrize("delay", [0, 20])
def test_programs_on_the_device(delay):
    """All of tests/programs, captured whole, with copies to the device and back."""
    dummy.set_delay(delay)
    before = dummy.counts()["launch"]
    for name, program in PROGRAMS.items():
        compiled = cinductor.compile(
            program.function, device=DEVICE, backend="interp", fullgraph=True, options=ALWAYS
        )
        try:
            test_programs.check(program, compiled, program.sizes[:1] if delay else program.sizes[:2])
        except AssertionError as error:
            raise AssertionError(name) from error
    assert dummy.counts()["launch"] > before + 1000


@pytest.mark.parametrize("ufunc", test_op_matrix.ELEMENTWISE, ids=lambda f: f.__name__)
def test_ufuncs_on_the_device(ufunc):
    groups = [
        (chars, group)
        for chars, group in test_op_matrix.operands_of(ufunc)
        if test_op_matrix.legal(ufunc, group)
    ]

    def apply(groups):
        return [ufunc(*group) for group in groups]

    size = 100 // max(1, ufunc.nin)
    for start in range(0, len(groups), size):
        part = groups[start : start + size]
        operands = [group for _, group in part]
        want = test_op_matrix.quiet(apply, operands)
        compiled = cinductor.compile(apply, device="dummy:1", backend="interp", options=ALWAYS)
        got = test_op_matrix.quiet(compiled, operands)
        for (chars, group), g, w in zip(part, got, want, strict=True):
            is_exact = not test_op_matrix.has_own_bits(ufunc)
            test_op_matrix.compare(ufunc, chars, group, g, w, is_exact)


def test_compiled_kernels_run_there():
    x = np.linspace(0.0, 1.0, 1000)
    compiled = cinductor.compile(lambda x: (np.exp(x) * 2 + x.sum(), x[::-1].cumsum()), device=DEVICE, options=ALWAYS)
    for _ in range(2):
        for got, want in zip(compiled(x), (np.exp(x) * 2 + x.sum(), x[::-1].cumsum()), strict=True):
            assert np.array_equal(got, want)


def test_arrays_live_on_their_card():
    x = np.arange(12.0).reshape(3, 4)
    f = cinductor.compile(lambda a, b: (a @ b.T, a + b, a.sum()))
    dummy.set_delay(1000)
    for name in ("dummy", "dummy:1"):
        a, b = cinductor.to_device(x, name), cinductor.to_device(x * 2, cinductor.Device(name))
        results = f(a, b)
        assert [r.device for r in results] == [name] * 3
        for got, want in zip(results, (x @ (2 * x).T, 3 * x, x.sum()), strict=True):
            assert np.array_equal(got.numpy(), want)
        assert cinductor.to_device(a, name) is a
    there = cinductor.to_device(a, "dummy")
    assert there.device == "dummy" and np.array_equal(there.numpy(), x)
    with pytest.raises(TypeError, match=r"arrays of dummy:1 and dummy:0 together; use to_device"):
        f(a, there)
    with pytest.raises(TypeError, match="arrays of host and device together"):
        f(a, x)


def test_an_index_out_of_range_is_raised_there():
    compiled = cinductor.compile(lambda x, k: x[k] * 2)
    x = cinductor.to_device(np.arange(5.0), "dummy")
    k = cinductor.to_device(np.array([1, 9]), "dummy")
    dummy.set_delay(500)
    with pytest.raises(IndexError, match="an index is out of bounds"):
        compiled(x, k)


@pytest.mark.parametrize("name", ["copy_in", "copy_out", "launch", "allocate"])
def test_what_fails_there_is_one_clear_error(name):
    x = np.arange(100.0)
    compiled = cinductor.compile(lambda x: np.cos(x) * 2 + x.mean(), device="dummy", options=ALWAYS)
    want = compiled(x)
    dummy.set_failing(name)
    if name == "allocate":  # memory that is not there is the host's to have
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(compiled(x), want)
    else:
        with pytest.raises(cinductor.DeviceError, match=f"told to fail in {name}"):
            compiled(x)
    dummy.set_failing(None)
    assert np.array_equal(compiled(x), want)


def test_failures_of_arrays():
    x = cinductor.to_device(np.arange(100.0), "dummy")
    compiled = cinductor.compile(lambda x: x * 2 + x.sum())
    compiled(x)
    for name, error in (("launch", cinductor.DeviceError), ("allocate", MemoryError)):
        dummy.set_failing(name)
        with pytest.raises(error):
            compiled(x)
    dummy.set_failing("copy_out")
    with pytest.raises(cinductor.DeviceError, match="told to fail in copy_out"):
        x.numpy()
    dummy.set_failing(None)
    with pytest.raises(cinductor.DeviceError, match="there are 2 dummy cards"):
        cinductor.to_device(np.arange(3.0), "dummy:5")


def test_names():
    assert [str(d) for d in cinductor.devices("dummy")] == ["dummy", "dummy:1"]
    assert cinductor.devices()[0] == cinductor.Device("cpu")
    assert repr(cinductor.Device("dummy:1")) == "Device('dummy:1')"
    assert cinductor.Device("dummy", 1).description == "Dummy card 1"
    assert cinductor.Device("dummy").memory == 1 << 30
    assert cinductor.Device("dummy").backends == {"c": None, "interp": None}
    assert cinductor.Device("cpu").units >= 1
    for wrong, text in (("gpu", "did you mean"), ("dummy:x", "'cuda:1'")):
        with pytest.raises(ValueError, match=text):
            cinductor.compile(np.sin, device=wrong)
    with pytest.raises(ValueError, match="there is no device 'gpu'; there are: cpu, cuda, dummy"):
        cinductor.devices("gpu")


# --- registering ----------------------------------------------------------------------------------


class Card:
    """A device of Python: memory is what ctypes gives."""

    name, doc = "card", "memory of ctypes"

    def __init__(self):
        self.blocks, self.log = {}, []

    def allocate(self, index, size, stream):
        self.log.append("allocate")
        block = ctypes.create_string_buffer(size + 64)
        address = (ctypes.addressof(block) + 63) // 64 * 64
        self.blocks[address] = block
        return address

    def release(self, index, address, size, stream):
        del self.blocks[address]

    def copy_in(self, index, address, host, stream):
        ctypes.memmove(address, bytes(host), len(host))

    def copy_out(self, index, address, host, stream):
        host[:] = ctypes.string_at(address, len(host))

    def synchronize(self, index, stream):
        self.log.append("synchronize")

    def properties(self, index):
        return "A card of Python", 1 << 20, 3

    def launch(self, index, kernel, stream):
        self.log.append(("launch", kernel))


def test_a_device_of_python():
    card = Card()
    assert str(cinductor.register_device(card)) == "card"
    x = np.arange(20.0)
    compiled = cinductor.compile(lambda x: np.sqrt(x) + x.sum(), device="card", options=ALWAYS)
    assert np.array_equal(compiled(x), np.sqrt(x) + x.sum())
    assert card.log.count("allocate") >= 2 and ("launch", 0) in card.log
    assert cinductor.Device("card").units == 3 and not card.blocks
    array = cinductor.to_device(x, "card")
    assert np.array_equal(cinductor.compile(lambda x: x * x)(array).numpy(), x * x)
    with pytest.raises(ValueError, match="backend 'c' of device 'card': there is one of that name"):
        cinductor.register_device(Card())

    def fails(index, size, stream):
        raise RuntimeError("the card is gone")

    card.allocate = fails
    with pytest.raises(cinductor.DeviceError, match="the card is gone"):
        compiled(x)
    del array, card.allocate
    gc.collect()
    assert not card.blocks


def test_what_is_no_device_is_refused():
    class Half:
        name, doc = "half", ""

        def allocate(self, index, size, stream):
            return 0

    with pytest.raises(TypeError, match="a device has a method release"):
        cinductor.register_device(Half())
    with pytest.raises(ValueError, match="a compiler is one of the processor's by name"):
        cinductor.register_device(Card(), compilers=["none"])
    card = Card()
    card.name = "another"
    with pytest.raises(ValueError, match="device 'another': it has no compiler"):
        cinductor.register_device(card, compilers=[])
    with pytest.raises(ValueError, match="it is named twice"):
        cinductor.register_device(card, compilers=["c", "c"])
    card.name = 3
    with pytest.raises(TypeError, match="a device's name is a str"):
        cinductor.register_device(card)
    struct = (ctypes.c_int * 64)(99)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    with pytest.raises(ValueError, match="it was made for another version of cinductor"):
        cinductor.register_device(make(ctypes.addressof(struct), b"cinductor.CiDevice", None))
    with pytest.raises(ValueError, match="incorrect name"):
        cinductor.register_device(make(ctypes.addressof(struct), b"something", None))
    assert [d.name for d in cinductor.devices()].count("another") == 0
