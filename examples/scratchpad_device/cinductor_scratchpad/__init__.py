"""A simulated accelerator for cinductor, with a compiler of its own: `register()`, then device="scratchpad"."""

import functools

import cinductor

from ._scratchpad import connect, limit, most_used

__all__ = ["limit", "most_used", "register"]


@functools.cache
def register():
    """Adds the device and its compiler to this process, once. Returns a `cinductor.Device`."""
    device, compiler = connect(cinductor.toolkit())
    return cinductor.register_device(device, compilers=[compiler])
