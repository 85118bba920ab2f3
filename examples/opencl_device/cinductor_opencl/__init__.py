"""Devices of OpenCL for cinductor: `register()`, then device="opencl"."""

import functools
from pathlib import Path

import cinductor

__all__ = ["register"]
LIBRARY = str(next(Path(__file__).parent.glob("_opencl*.so")))


@functools.cache
def register():
    """Adds OpenCL's devices to this process, once. Returns a `cinductor.Device`; OSError if there is none."""
    return cinductor.register_device(LIBRARY)
