"""Finds the CUDA libraries that wheels install."""

from __future__ import annotations

import functools
import os
import re
from importlib.util import find_spec
from pathlib import Path


def library_folder(name: str) -> str | None:
    """The folder of the newest version of the library that a wheel installed. Nothing is imported."""
    spec = find_spec("nvidia")
    found = []
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for library in Path(root).glob(f"*/lib/{name}.so.*"):
            version = re.fullmatch(rf"{name}\.so\.(\d+)", library.name)
            if version:
                found.append((int(version[1]), str(library.parent)))
    return max(found)[1] if found else None


@functools.cache
def prepare() -> None:
    """Tell the core the folders of NVRTC, cuBLAS and NCCL, unless the environment does."""
    for variable, name in (("CINDUCTOR_NVRTC", "libnvrtc"), ("CINDUCTOR_CUBLAS", "libcublas"), ("CINDUCTOR_NCCL", "libnccl")):
        if variable not in os.environ and (folder := library_folder(name)):
            os.environ[variable] = folder
