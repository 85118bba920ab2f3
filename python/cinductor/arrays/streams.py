"""Streams and events of devices, the current device and stream, and memory statistics."""

from __future__ import annotations

import contextvars
from typing import Any

from .. import _core
from .libraries import prepare
from .machine import Device, split, text

UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class Event:
    """A point in the work of a stream.

    Parameters
    ----------
    device : str or Device, optional
        The device.

    Raises
    ------
    ValueError, DeviceError
        If the device has no streams; if it cannot be used.
    """

    __slots__ = ("_event",)

    def __init__(self, device: Any = None) -> None:
        prepare()
        self._event = _core.event_open(text(*split(device)))

    def synchronize(self) -> None:
        """Wait for all work that the stream had when the event was recorded."""
        self._event.synchronize()

    def elapsed(self, later: Event) -> float:
        """Return the time to a later event; both must have completed.

        Parameters
        ----------
        later : Event
            An event of the same device, recorded after this one.

        Returns
        -------
        float
            Milliseconds.

        Raises
        ------
        ValueError
            If the device cannot time events.
        """
        return self._event.elapsed(later._event)


class Stream:
    """Work of a device that is executed in order, concurrently with other streams.

    `with stream:` sends the calls of this thread there. The device waits automatically for arrays that another stream used last.

    Parameters
    ----------
    device : str or Device, optional
        The device.
    handle : int, optional
        A stream that another package opened (CuPy's `stream.ptr`, torch's `stream.cuda_stream`). It must live as long as this
        object and the arrays that it made.

    Raises
    ------
    ValueError, DeviceError
        If the device has no streams; if it cannot be used.
    """

    __slots__ = ("_stream", "_tokens")

    def __init__(self, device: Any = None, handle: int | None = None) -> None:
        prepare()
        self._stream = _core.stream_open(text(*split(device)), handle)
        self._tokens: list[contextvars.Token[Any]] = []

    @property
    def device(self) -> Device:
        """The device of the stream."""
        return Device(self._stream.device)

    @property
    def handle(self) -> int:
        """The device's handle: a CUstream."""
        return self._stream.handle

    def record(self, event: Event | None = None) -> Event:
        """Record an event after the work that the stream has now.

        Parameters
        ----------
        event : Event, optional
            The event to record; by default, a new one is made.

        Returns
        -------
        Event
            The event.
        """
        event = Event(self.device) if event is None else event
        self._stream.record(event._event)
        return event

    def wait(self, other: Event | Stream) -> None:
        """Let later work of the stream wait for other work.

        Parameters
        ----------
        other : Event or Stream
            An event, or a stream whose current work has to be done.
        """
        event = other.record() if isinstance(other, Stream) else other
        self._stream.wait(event._event)

    def synchronize(self) -> None:
        """Wait for all work of the stream. Raises DeviceError if some of it failed."""
        self._stream.synchronize()

    def __enter__(self) -> Stream:
        self._tokens.append(_core.stream_in_force.set(self._stream))
        return self

    def __exit__(self, *error: Any) -> None:
        _core.stream_in_force.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"Stream({str(self.device)!r}, handle={self.handle:#x})"


# --- memory ---


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the memory that this process uses on one device through cinductor.

    Parameters
    ----------
    device : str or Device, optional
        "cuda:1"; None: the selected device, "cuda" if none is.

    Returns
    -------
    dict
        In bytes: `allocated` now and at its maximum (`peak`), `reserved` (allocated or cached), `left` and `total` of the device
        (0 if unknown), `limit` (0: none). Numbers: `blocks` now, `allocations` so far, `retries` (times that the cache was
        released first).

    Raises
    ------
    ValueError
        If the device has no memory of its own.
    """
    prepare()
    return _core.memory_use(text(*split(device)))


def reset_peak(device: Any = None) -> None:
    """Restart `peak` of `memory_stats` from the memory that is allocated now.

    Parameters
    ----------
    device : str or Device, optional
        "cuda:1"; None: the selected device, "cuda" if none is.

    Raises
    ------
    ValueError
        If the device does not exist or has no memory of its own.
    """
    _core.memory_forget_peak(text(*split(device)))


def empty_cache(device: Any = None) -> None:
    """Release the blocks that are cached for later allocations.

    Parameters
    ----------
    device : str or Device, optional
        "cuda:1"; None: the selected device, "cuda" if none is.

    Raises
    ------
    ValueError
        If the device does not exist or has no memory of its own.
    DeviceError
        If the device reports an error.
    """
    _core.memory_give_back(text(*split(device)))


def size_of(value: str) -> int:
    """The bytes in "8GB", "512MiB" or "1000". Raises ValueError for other texts."""
    number = value.strip().upper()
    unit = number.lstrip("0123456789. ")
    try:
        return int(float(number[: len(number) - len(unit)]) * UNITS[unit.strip()])
    except (KeyError, ValueError):
        raise ValueError(f"{value!r} is no size; wanted: '8GB', '512MiB', '1000'") from None


def configure_memory(settings: str, device: Any = None) -> None:
    """Set limits of one device's memory: "limit:8GB,keep:1GiB".

    Parameters
    ----------
    settings : str
        `limit`: the most bytes that may be allocated (0: no limit); more is a MemoryError. `keep`: the most freed bytes that are
        cached. A setting that is not named stays.
    device : str or Device, optional
        The device.

    Raises
    ------
    ValueError
        For other settings, and for values that are not sizes.
    TypeError
        For settings that are no text.
    """
    prepare()
    if not isinstance(settings, str):
        raise TypeError(f"settings is a {type(settings).__name__}; wanted a text such as 'limit:8GB,keep:1GiB'")
    name = text(*split(device))
    found = {"limit": memory_stats(name)["limit"], "keep": -1}
    for part in filter(None, settings.split(",")):
        key, colon, value = part.partition(":")
        if key.strip() not in found or not colon:
            raise ValueError(f"{part!r} of {settings!r}: wanted 'limit:SIZE' or 'keep:SIZE'")
        found[key.strip()] = size_of(value)
    _core.memory_bound(name, found["limit"], found["keep"])


def synchronize(device: Any = None) -> None:
    """Wait for all work on the device.

    Parameters
    ----------
    device : str or Device, optional
        "cuda:1"; None: the selected device, "cuda" if none is.

    Raises
    ------
    ValueError
        If the device does not exist.
    DeviceError
        If some of the work failed.
    """
    _core.device_synchronize(text(*split(device)))
