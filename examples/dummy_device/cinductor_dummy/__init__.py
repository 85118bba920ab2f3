"""A device for cinductor that needs no hardware: `register()`, then device="dummy" or "dummy:1"."""

import functools

import cinductor

from ._dummy import DEVICE, counts, set_delay, set_failing, set_failing_after

__all__ = ["counts", "register", "set_delay", "set_failing", "set_failing_after"]


@functools.cache
def register():
    """Adds the device to this process, once. Returns a `cinductor.Device`."""
    return cinductor.register_device(DEVICE, compilers=["c", "interp"])
