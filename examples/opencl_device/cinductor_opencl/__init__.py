"""Devices of OpenCL for cinductor: `register()`, then device="opencl"."""

import functools

import cinductor

from ._opencl import connect, limit

__all__ = ["limit", "register"]


@functools.cache
def register():
    """Adds OpenCL's devices to this process, once. Returns a `cinductor.Device`; OSError if there is none."""
    device, compiler = connect(cinductor.toolkit())
    return cinductor.register_device(device, compilers=[compiler])
