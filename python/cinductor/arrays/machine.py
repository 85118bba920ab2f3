"""The machine's devices, and devices from outside the package."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
from typing import Any

from .. import _core
from ..base.class_lookup import is_a
from ..base.user_frame import said, wrong


class Device:
    """One device of the machine. str() is the form that `device=` takes: "cuda:1".

    Parameters
    ----------
    name : str
        The kind, or the kind and the number: "cuda", "cuda:1".
    index : int
        The number, if the name has none.

    Attributes
    ----------
    name, index : str, int
        The kind and the number.
    description : str
        The manufacturer's name.
    memory : int
        Bytes; 0 if unknown.
    units : int
        Multiprocessors or cores.
    capability : int
        Of CUDA: 90 for 9.0; otherwise 0.

    Raises
    ------
    ValueError
        If the index is not a number of 0 or more; by attributes that query the device, if it does not exist.
    DeviceError
        By these attributes, if the device cannot be used.

    Examples
    --------
    >>> f = cinductor.compile(fn, device=cinductor.Device("cuda", 1))
    """

    __slots__ = ("index", "name")

    def __init__(self, name: str, index: int = 0) -> None:
        if not is_a(name, str):
            raise TypeError(f"name is {said(name)}; wanted: a text like 'cuda'; cinductor.devices() lists the devices")
        self.name, self.index = split(name) if ":" in name else (name, index)
        if type(self.index) is not int or self.index < 0:
            raise ValueError(f"index is {index!r}; wanted: the number of a device, 0 or more")

    @property
    def description(self) -> str:
        """The manufacturer's name."""
        return _core.device_properties(str(self))[0]

    @property
    def memory(self) -> int:
        """Bytes; 0 if unknown."""
        return _core.device_properties(str(self))[1]

    @property
    def capability(self) -> int:
        """Of CUDA: 90 for 9.0; otherwise 0."""
        return _core.device_properties(str(self))[2]

    @property
    def units(self) -> int:
        """Multiprocessors or cores."""
        return _core.device_properties(str(self))[3]

    @property
    def backends(self) -> dict[str, str | None]:
        """The compilers for this device; each with the reason why it cannot be used, or None."""
        return {name: why for _, name, _, why in _core.backends(self.name)}

    def __eq__(self, other: object) -> bool:
        if not is_a(other, Device):
            return NotImplemented
        return (self.name, self.index) == (other.name, other.index)

    def __hash__(self) -> int:
        return hash((self.name, self.index))

    def __str__(self) -> str:
        return text(self.name, self.index)

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"


IN_FORCE: contextvars.ContextVar[Device | None] = contextvars.ContextVar("cinductor.device", default=None)


class device:
    """Select the device for code that names none, in this thread, while a with statement runs.

    This holds for `to_device`, `Stream`, `Event`, `memory_stats` and similar functions. A compiled function runs according to its
    own `device=` and to where its arguments are. `with device(...) as d` gives the Device.

    Parameters
    ----------
    device : str or Device
        "cuda", "cuda:1" or one of `devices()`.

    Raises
    ------
    ValueError
        For texts of another form. A device that does not exist is found when it is used.
    """

    __slots__ = ("_device", "_tokens")

    def __init__(self, device: str | Device) -> None:
        self._device = Device(*split(device))
        self._tokens: list[contextvars.Token[Device | None]] = []

    def __enter__(self) -> Device:
        self._tokens.append(IN_FORCE.set(self._device))
        return self._device

    def __exit__(self, *error: Any) -> None:
        IN_FORCE.reset(self._tokens.pop())


def split(device: Any) -> tuple[str, int]:
    """Name and index in "cuda", "cuda:1" or a Device; for None, the current device. Raises ValueError for other
    texts, TypeError for other objects.
    """
    if device is not None and not is_a(device, Device | str):
        raise TypeError(f"device is {said(device)}; wanted: a text like 'cuda:1', or a Device; cinductor.devices() lists them")
    name, index = split_requested(IN_FORCE.get() or "cuda" if device is None else device)
    return name, index or 0


def split_requested(device: Any) -> tuple[str, int | None]:
    """Like `split`; the index is None if the text has none."""
    if is_a(device, Device):
        return device.name, device.index
    if not is_a(device, str):
        return device, None  # refused where the name is looked up
    name, colon, index = device.partition(":")
    if colon and not index.isdecimal():
        raise ValueError(f"device is {device!r}; wanted: a name, or a name and a number, 'cuda:1'")
    return name, int(index) if colon else None


def check_place(where: Device, numerics: str, asked: str | None = None, index: int | None = None) -> None:
    """Raise ValueError unless a call may compute on a device.

    Every way to a device goes through this function: `compile`, captures, and calls with arrays of a device.

    Parameters
    ----------
    where : Device
        The device that would compute.
    numerics : str
        The option in force.
    asked : str, optional
        The name that `compile` was given as `device=`.
    index : int, optional
        The number that it was given with it.
    """
    if where.name != "cpu" and numerics == "exact":
        raise ValueError(
            f"numerics is 'exact', but functions and sums of device {str(where)!r} have bits of their own; "
            "allowed there: 'numpy', 'close', 'fast'"
        )
    if asked not in (None, where.name) or index not in (None, where.index):
        wanted = asked if index is None else f"{asked or where.name}:{index}"
        raise ValueError(
            f"device is {wanted!r}, but an argument is an array of {str(where)!r}; leave device= out, or copy the "
            "array with to_device() or .numpy()"
        )


def text(name: str, index: int) -> str:
    """The form that `split` parses."""
    return f"{name}:{index}" if index else name


def get_include() -> str:
    """Return the folder of the C headers, for devices and compilers in other packages.

    Returns
    -------
    str
        A path for `-I`; the headers there are `device/device.h`, `device/toolkit.h` and what they include.
    """
    from pathlib import Path  # imported here because it takes longer than the rest of this module

    here = Path(__file__).parents[1]
    installed = here / "include"
    return str(installed if installed.is_dir() else here.parents[1] / "csrc")


def devices(name: str | None = None) -> list[Device]:
    """List the usable devices of the machine, all or of one kind.

    Parameters
    ----------
    name : str, optional
        The kind: "cpu", "cuda" or a registered one; None: all kinds.

    Returns
    -------
    list of Device
        The CPU comes first. Empty if no device of this kind can be used.

    Raises
    ------
    ValueError
        If no device has this name.
    """
    names = dict.fromkeys(row[0] for row in _core.backend_names())
    if name is not None and (not is_a(name, str) or name not in names):
        raise ValueError(f"there is no device {name!r}; there are: {', '.join(names)}")
    return [Device(n, k) for n in names if name in (None, n) for k in range(count(n))]


@functools.cache
def open_alongside(device: str) -> None:
    """Start the initialisation of a device (a context) in a thread, once."""
    import threading

    thread = threading.Thread(target=_core.device_open, args=(device,), name=f"cinductor opens {device}")
    with contextlib.suppress(RuntimeError):  # if no thread can be started the first use opens it
        thread.start()


def count(name: str) -> int:
    """The number of usable devices of that kind."""
    reasons = [why for *_, why in _core.backends(name)]
    return _core.device_count(name) if any(why is None for why in reasons) else 0


def register_device(device: Any, compilers: tuple[Any, ...] | list[Any] = ("c", "interp")) -> Device:
    """Add a kind of device to this process, for `device=` and `to_device`.

    Exceptions of a method are raised as DeviceError, or as MemoryError, by the call that needs it. Those of the four
    methods that record are warnings, and kernels are launched one by one from then on.

    Parameters
    ----------
    device : str, path, capsule or object
        The path of a shared library with a device and a compiler of its own: its function `cinductor_connect` is a
        `CiConnect` of `device/toolkit.h` (`get_include()` has the headers). Or a capsule "cinductor.CiDevice" that an
        extension made of its struct. Or an object with `name`, `doc` and methods, whose `index` is the number of a device, and whose `stream` is a result of
        `stream_open` or None::

            allocate(index, size, stream) -> address
            release(index, address, size, stream)
            copy_in(index, address, host, stream)         # host: a memoryview of bytes to be read
            copy_out(index, address, host, stream)        # host: a memoryview of bytes to be written
            synchronize(index, stream)

        All others are optional, those of streams and events together, and so the four that record::

            copy_across(index, address, from_index, from_address, size, stream)
            count() -> int
            properties(index) -> (name, bytes, units)
            launch(index, kernel, stream)
            stream_open(index), stream_close, event_open, event_close, event_record, event_wait
            event_synchronize(index, what, stream)
            record_begin(index, stream) -> stream         # an int; later launches on it are recorded, and do not run
            record_end(index, stream) -> recording        # an int; also called after a failed launch
            replay(index, recording, stream)              # runs the recorded kernels: the option `graphs`
            record_close(index, recording)
    compilers : tuple or list
        Names of compilers for CPUs ("c", "interp"), whose kernels then run on the addresses of `allocate`; a library has
        its own compiler instead.

    Returns
    -------
    Device
        The first device of the kind.

    Raises
    ------
    ValueError, TypeError
        If the name is taken, the struct is of another version, or a function is missing; for objects of other types.
    OSError
        If a library cannot be opened, or says that it has no device.
    """
    if not is_a(compilers, tuple | list):
        raise TypeError(wrong("register_device", "compilers", compilers, "a tuple or list of names"))
    if is_a(device, os.PathLike):
        device = os.fspath(device)
    return Device(_core.register_device(device, tuple(compilers)))
