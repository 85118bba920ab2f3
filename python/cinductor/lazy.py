"""Modules that are loaded when they are first needed, and whose modules use the caller's.

A first call loads capture, an environment variable loads a listener, a method of an array loads what it returns. The
imports of every other module go one way.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .arrays import packages


def session() -> Any:
    """The module that captures a call."""
    from .capture import session

    return session


def device_calls() -> Any:
    """The module that handles calls with device arrays; None if it is not imported, so that there are no such arrays.
    """
    if "cinductor.arrays.array" not in sys.modules and packages.BACK.keys().isdisjoint(sys.modules):
        return None
    from .arrays import calls

    return calls


def compile_now(fn: Any) -> Any:
    """A function of the package, compiled before its first call returns."""
    from .compile import compile

    return compile(fn, mode="now")


def make(fn: Any, settings: dict[str, Any]) -> Any:
    """The compiled function of one that a compiled function calls."""
    from .compile import make

    return make(fn, settings, False)


def sharing() -> Any:
    """The module for memory that processes share."""
    from .arrays import sharing

    return sharing


def namespace(device: str) -> Any:
    """NumPy's functions on a device."""
    from .arrays.namespace import Namespace

    return Namespace(device)


def card_of_array(array: Any) -> str:
    """The HTML that a notebook shows of an array."""
    from .report.card import card_of_array

    return card_of_array(array)


def logs() -> Any:
    """The module of the logs."""
    from .diagnosis import logs

    return logs


def listeners_for(variable: str) -> list[Any]:
    """The listeners that an environment variable asks for."""
    value = os.environ[variable]
    if variable == "CINDUCTOR_TRACE":
        from .diagnosis.tracing import Trace

        return [Trace(value)]
    if variable == "CINDUCTOR_PROVENANCE":
        from .report.explanation import Explanation
        from .report.provenance import Provenance

        return [Provenance(value, Explanation)] if value != "0" else []
    logs().from_environment(value)  # adds its own
    return []
