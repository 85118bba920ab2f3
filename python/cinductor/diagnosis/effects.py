"""Options that a function was given and that have no effect where it runs, each with the reason.

Only settings of the function itself are looked at: those of the process (`config`, the environment) hold for functions of
every kind. The reasons are one warning per function and a section of `explain`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from ..base.records import NamedTuple
from ..config import OPTIONS, RACED


class Place(NamedTuple):
    """Where a program runs: device and compiler ("cpu", "c"), its options, whether it is recorded, and why NumPy runs no calls
    before it.
    """

    device: str
    compiler: str
    options: dict[str, Any]
    records: bool
    why_now: str | None


def of_program(program: Any, why_now: str | None) -> Place:
    """Where a program runs."""
    device, _, compiler = program.backend.partition(":")
    parts = program.recordings or ()
    records = not all("does not record" in (p["why_not"] or "") for p in parts)
    return Place(device, compiler, program.option_values, records, why_now)


def needs_host_memory(place: Place) -> str | None:
    return None if place.device == "cpu" else f"it reads memory of the host, and results are in that of device {place.device!r}"


def needs_device(place: Place) -> str | None:
    return "the function runs on the CPU" if place.device == "cpu" else None


def needs_host_code(place: Place) -> str | None:
    if place.compiler in ("c", "interp"):
        return None
    return f"products of device {place.device!r} take no threads of the host"


def needs_c(place: Place) -> str | None:
    return None if place.compiler == "c" else f"it concerns kernels in C, and backend {place.compiler!r} makes these"


def needs_level(place: Place) -> str | None:
    own = [name for name, runs in _core.arch_levels() if runs][-1]
    return None if dict(_core.arch_levels()).get(place.options["arch"], True) else f"this CPU has {own!r}, which is used instead"


def needs_trial(place: Place) -> str | None:
    if (place.device, place.compiler) != ("cpu", "c"):
        return f"plans are tried for backend 'c' of the CPU, not for {place.compiler!r} of device {place.device!r}"
    return None if place.options["wrapper"] == "c" else "the option wrapper is 'python'"


def needs_recording(place: Place) -> str | None:
    return None if place.records else f"device {place.device!r} does not record"


def needs_free_order(place: Place) -> str | None:
    if place.options["numerics"] in ("close", "fast"):
        return None
    return f"it needs numerics 'close' or 'fast', not {place.options['numerics']!r}"


def needs_host_arrays(place: Place) -> str | None:
    return "arguments are arrays of the device" if place.options.get("device_arrays") else None


def needs_calls_in_numpy(place: Place) -> str | None:
    return place.why_now


def needs_numpy(place: Place) -> str | None:
    if place.options.get("on_limit") != "eager" or not place.options.get("device_arrays"):
        return None
    return "NumPy cannot take arrays of a device, so programs used longest ago are dropped instead"


# Options that need something to have an effect, with the functions that give the reason why there is none.
NEEDS: dict[str, tuple[Callable[[Place], str | None], ...]] = {
    "arch": (needs_c, needs_level),
    "compile_timeout": (needs_c,),
    "isolate": (needs_host_memory,),
    "symbols": (needs_c,),
    "interpreted_kernels": (needs_c,),
    "library_threads": (needs_host_code,),
    "nan_asserts": (needs_host_memory,),
    "device_index": (needs_device,),
    "offload": (needs_device,),
    "on_limit": (needs_numpy,),
    "economy": (needs_calls_in_numpy,),
    "stencils": (needs_calls_in_numpy, needs_c),
    "wrapper": (needs_host_arrays,),
    "templates": (needs_free_order,),
    "graphs": (needs_recording,),
    **dict.fromkeys(RACED, (needs_trial,)),
}


def why_none(name: str, place: Place) -> str | None:
    """Why an option has no effect in a place, or None."""
    return next(filter(None, (need(place) for need in NEEDS.get(name, ()))), None)


def without_effect(asked: dict[str, Any], mode: str | None, place: Place) -> list[str]:
    """A line for each option that a function was given, by itself or by its mode, and that does nothing for a program."""
    lines = []
    for name, value in asked.items():
        if value == OPTIONS[name].default or (why := why_none(name, place)) is None:
            continue
        by = f" (set by mode {mode!r})" if mode not in (None, "default") and name in (*RACED, "graphs", "economy") else ""
        lines.append(f"option {name}{by} has no effect here: {why}")
    return lines
