"""A simulated accelerator for cinductor, with a compiler of its own: `register()`, then device="scratchpad"."""

import ctypes
import functools
from pathlib import Path

import cinductor

__all__ = ["limit", "most_used", "register"]
LIBRARY = str(next(Path(__file__).parent.glob("_scratchpad*.so")))


@functools.cache
def register():
    """Adds the device and its compiler to this process, once. Returns a `cinductor.Device`."""
    return cinductor.register_device(LIBRARY)


def most_used():
    """The most bytes that a launch used in the scratchpad."""
    return ctypes.CDLL(LIBRARY).scratchpad_most_used()


def limit(name="", value=0):
    """Sets a field of the machine, or takes a C type from it. Without arguments restores all."""
    ctypes.CDLL(LIBRARY).scratchpad_limit(name.encode(), ctypes.c_int64(value))
