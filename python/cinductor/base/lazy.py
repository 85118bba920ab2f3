"""Loads modules of the package at their first use, by name. Their modules may use the caller's; all other imports go
one way.
"""

import importlib
from typing import Any


def load(name: str) -> Any:
    """The module `cinductor.<name>`."""
    return importlib.import_module(f"cinductor.{name}")
