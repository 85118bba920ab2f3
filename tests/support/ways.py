"""The ways in which a compiled function can run: backends, vector levels of the CPU, kernels of a GPU, a break in the
function.

A test that takes `way` runs once per way (conftest.py), and each result is compared with NumPy's. Some ways run a
fixed sample of the tests. With CINDUCTOR_FUZZ every way runs every test, and a function runs with a break after
each of its statements in turn.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import breaks

import cinductor
from cinductor import _core, testing

EVERYTHING = "CINDUCTOR_FUZZ" in os.environ


class Way(NamedTuple):
    """Settings of `compile`, and its share of the tests: 1 of `every`."""

    name: str
    settings: dict[str, Any]
    every: int = 1
    has_break: bool = False
    falls: bool = False  # instead of a break: Python begins to run the rest of the call in the middle of an expression

    @property
    def is_device(self) -> bool:
        """True on a GPU, which has its own order of sums and its own functions."""
        return "device" in self.settings

    def is_chosen(self, test: str, every: int = 1) -> bool:
        """True for one in `every` tests, or more; always for the same ones."""
        return zlib.crc32(f"{self.name} {test}".encode()) % max(self.every, every) == 0

    def takes(self, test: str) -> bool:
        return EVERYTHING or self.is_chosen(test)

    def options(self, **more: Any) -> dict[str, Any]:
        """The settings, with more options."""
        return {**self.settings, "options": {**self.settings.get("options", {}), **more}}

    def compile(self, fn: Callable[..., Any], fullgraph: bool = False, **options: Any) -> Any:
        return cinductor.compile(fn, fullgraph=fullgraph, **self.options(**options))

    def version(self, fn: Callable[..., Any], seed: Any = 0) -> Any:
        """A function that does what fn does: fn itself, or fn with a break at a random place that the seed
        determines.
        """
        if self.falls:
            return breaks.falling(fn, folder(), seed)
        return random.Random(seed).choice(breaks.broken(fn, folder()))() if self.has_break else fn

    def versions(self, fn: Callable[..., Any]) -> list[Any]:
        """One version, or all with CINDUCTOR_FUZZ."""
        if self.has_break and EVERYTHING and not self.falls:
            return [make() for make in breaks.broken(fn, folder())]
        return [self.version(fn, fn.__name__)]

    def check(self, fn: Callable[..., Any], *calls: tuple[Any, ...], **options: Any) -> Any:
        """Compare each call, made twice, with NumPy. Return the function compiled last."""
        for version in self.versions(fn):
            compiled = self.compile(version, **options)
            for arguments in calls:
                testing.check(fn, *arguments, compiled=compiled, ulp=4 * self.is_device)
        return compiled

    def run(self, text: str, inputs: list[Any]) -> Any:
        """The results of a graph as text."""
        return _core.compile_text(text, inputs, **self.options())[0]


@functools.cache
def root() -> str:
    """A folder that is removed at the end of the session."""
    made = tempfile.mkdtemp(prefix="cinductor-ways-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def folder() -> Path:
    """A new folder for the files of functions. File names are unique, because Python caches lines by name."""
    return Path(tempfile.mkdtemp(dir=root()))


def levels() -> list[str]:
    """The vector levels of this CPU, except the highest, for which kernels can be compiled."""
    x86 = {"x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512f"}
    flags = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    return [level for level, flag in x86.items() if flag in flags][:-1]


UNFUSED = {"options": {"fusion": False}}
GPU = {"device": "cuda", "options": {"offload": "always"}}
WAYS = [
    Way("c", {"backend": "c"}),
    Way("interp", {"backend": "interp", "options": {"verify": True}}),
    Way("dynamic", {"backend": "interp", "dynamic": True}, 4),
    Way("c, dynamic", {"backend": "c", "dynamic": True}, 16),
    Way("stencil", {"backend": "stencil"}, 2),
    Way("stencil, dynamic", {"backend": "stencil", "dynamic": True}, 8),
    Way("unfused", {"backend": "interp", **UNFUSED}, 16),
    Way("c, unfused", {"backend": "c", **UNFUSED}, 16),
    Way("broken", {"backend": "interp"}, 2, has_break=True),
    Way("broken, dynamic", {"backend": "interp", "dynamic": True}, 16, has_break=True),
    Way("falling", {"backend": "interp"}, 16, has_break=True, falls=True),
    # Pieces run on the default backend, where those with little work start in the interpreter.
    Way("broken, default", {}, 16, has_break=True),
    *(Way(level, {"backend": "c", "options": {"arch": level}}, 16) for level in levels()),
    # GPU kernels, interpreted block by block and thread by thread, with checks for races and accesses out of bounds.
    Way("gpu", {**GPU, "backend": "interp", "options": {"offload": "always", "verify": True}}, 16),
]
# In a process of its own: a real or an emulated GPU (test_cuda.py), or a device from outside of the tree (test_devices.py).
OTHER = os.environ.get("CINDUCTOR_TEST_WAYS")
if OTHER == "card":
    WAYS = [Way("card", {**GPU, "backend": "cuda"}, 16)]
elif OTHER:
    importlib.import_module(f"cinductor_{OTHER}").register()
    WAYS = [Way(OTHER, {**GPU, "device": OTHER}, 64)]
# Files whose tests take a way, for such a process.
IN_OTHER_WAYS = ["test_ways", "test_indexing", "test_indirect", "test_op_matrix"]
BY_NAME = {way.name: way for way in WAYS}
# Ways without a break and without symbolic sizes: for tests of graphs as text, and for tests that count
# specializations.
BACKENDS = [way.name for way in WAYS if not way.has_break and "dynamic" not in way.settings]

CPU = [name for name in BACKENDS if not BY_NAME[name].is_device]


def of_program(seed: int, *always: str) -> list[Way]:
    """The ways for a generated program: those that are named, a break in one of four programs, each other way in one
    of 16. GPU sums are excluded because their order differs from NumPy's.
    """
    chosen = [way for way in WAYS if way.is_chosen(f"program {seed}", 4 if way.has_break else 16)]
    return [way for way in WAYS if not way.is_device and (way.name in always or way in chosen)]
