"""Functions, registered by a user or a vendor for one kind of device, that choose thresholds of the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..arrays.machine import Device
from ..base.records import NamedTuple
from ..config import LARGEST, list_choices
from . import HEURISTICS


class Facts(NamedTuple):
    """The program that is being compiled, for a heuristic.

    Attributes
    ----------
    device : Device
        The device it is for.
    backend : str
        "" for the device's first one.
    function : str
        The name of the function.
    arrays : tuple
        (shape, dtype) of the arrays among the arguments of the captured call, in order.
    """

    device: Device
    backend: str
    function: str
    arrays: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]


Heuristic = Callable[[str, Facts], "int | None"]


def register_heuristics(device: str, function: Heuristic | None) -> None:
    """Let a function decide the thresholds of `list_choices()` for programs of one kind of device.

    The option `choices` has precedence. The values are part of a program's key; existing programs stay. They change how fast kernels are,
    never a bit of a result.

    Parameters
    ----------
    device : str
        The kind: "cuda".
    function : callable, optional
        Takes a threshold's name and the `Facts` while a program is captured. Returns its value, an int of at least 1, or
        None for the default. It replaces an earlier one; None removes it.

    Raises
    ------
    ValueError, TypeError
        If the device does not exist; if the function is not callable. The captured call raises the function's exceptions, and
        ValueError for a value that is not allowed.
    """
    names = dict.fromkeys(row[0] for row in _core.backend_names())
    if device not in names:
        raise ValueError(f"there is no device {device!r}; there are: {', '.join(names)}")
    if function is None:
        HEURISTICS.pop(device, None)
    elif callable(function):
        HEURISTICS[device] = function
    else:
        raise TypeError(f"heuristics are a function of a name and facts, not {function!r}")


def decided(job: Any, backend: str, bound: Any, chosen: str) -> str:
    """The option `choices` of a program: values of heuristics, then those `chosen` by the user, which have
    precedence.
    """
    name = job.settings["device"] or "cpu"
    function: Heuristic | None = HEURISTICS.get(name)
    if function is None:
        return chosen
    device = Device(name, max(0, job.options()["device_index"]))
    arrays = tuple((x.shape, x.dtype) for x in bound if type(x) is np.ndarray)
    facts = Facts(device, backend or "", job.name, arrays)
    parts = []
    for row in list_choices():
        answer = function(row.name, facts)
        if answer is None:
            continue
        if type(answer) not in (int, np.int64) or not 0 < answer < LARGEST:
            raise ValueError(
                f"the heuristics of device {name!r} give {answer!r} for {row.name!r}; allowed: None, or an int of at least 1"
            )
        parts.append(f"{row.name}={answer}")
    return ", ".join([*parts, chosen] if chosen else parts)
