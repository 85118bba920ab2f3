"""Options: process-wide defaults from the environment and `config`, modes, and the options of one function."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from . import _core
from .base.class_lookup import Record
from .base.deferred_warnings import warn

Mode = Literal["default", "auto", "lazy", "now", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune"]
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "auto": {"economy": "auto"},
    "lazy": {"economy": "lazy"},
    "now": {"economy": "now"},
    "reduce-overhead": {"graphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True},
    "max-autotune": {"max_autotune": True, "graphs": True},
}
RACED = ("max_autotune", "benchmark_fusion", "multi_kernel")  # options that cause alternative plans to be timed: racing.py
LARGEST = 2**63 - 1
FLOAT = r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf"
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class Option(Record):
    """One option.

    `type` is bool, int, float, text, levels, passes, choices or joins. The last four are lists with commas between: of names, of
    `name=number` (choices) and of numbers (joins). `allowed` has the values of a text ("a|b") or the range of a number ("1..").
    `environment` is the variable that sets the default.
    """

    __slots__ = ("name", "type", "default", "allowed", "environment", "doc")
    name: str
    type: str
    default: Any
    allowed: str
    environment: str
    doc: str


class Threshold(Record):
    """One threshold of the compiler, with its values for CPU and GPU. Thresholds never change the bits of a result.
    """

    __slots__ = ("name", "cpu", "gpu", "doc")
    name: str
    cpu: int
    gpu: int
    doc: str


# Options of capture only, which the compiler does not have.
OWN = (
    Option(
        "economy",
        "text",
        "auto",
        "auto|lazy|now",
        "CINDUCTOR_MODE",
        "When a function is captured and built: in the first call, and in the background (auto); when calls in NumPy have taken as long (lazy); before the first call returns (now).",
    ),
    Option(
        "capture_limit",
        "float",
        0.5,
        "0..",
        "CINDUCTOR_CAPTURE_LIMIT",
        "Seconds of its own work that a capture may take, in addition to what the traced work itself takes, before NumPy goes on with the call.",
    ),
    Option(
        "saved_calls",
        "bool",
        True,
        "",
        "CINDUCTOR_SAVED_CALLS",
        "Keep what captures give in the disk cache, so that a later process need not capture the same calls.",
    ),
    Option(
        "cache_limit",
        "int",
        5000,
        "0..",
        "CINDUCTOR_CACHE_LIMIT",
        "Megabytes of the disk cache, from which on the entries used longest ago are removed; 0: no limit.",
    ),
    Option(
        "progress",
        "bool",
        True,
        "",
        "CINDUCTOR_PROGRESS",
        "A line on stderr of a terminal or notebook while compiling takes longer than half a second.",
    ),
)
OPTIONS: dict[str, Option] = {
    option.name: option for option in (*(Option(*row) for row in _core.options()), *OWN) if option.environment
}


def nearest(name: Any, names: Any) -> str:
    """The end of a message about an unknown name: a similar known name."""
    import difflib

    found = difflib.get_close_matches(name, list(names), 1) if isinstance(name, str) else []
    return f"; did you mean {found[0]!r}?" if found else ""


def refusal(what: str, value: Any, names: Any) -> str:
    """The message for a value that is not one of these names."""
    allowed = ", ".join(map(repr, names))
    return f"{what} is {value!r}; allowed: {allowed}{nearest(value, names)}"


def checked(name: Any, value: Any) -> Any:
    """Check a value for an option. Raises ValueError for an unknown name or value and TypeError for another type; the
    message names the option, the value and what is allowed.
    """
    option = OPTIONS.get(name) if isinstance(name, str) else None
    if option is None:
        close = nearest(name, OPTIONS) or "; cinductor.list_options() has them all"
        raise ValueError(f"there is no option {name!r}{close}")
    what, is_bool = f"option {name!r}", isinstance(value, bool | np.bool_)
    if option.type == "bool":
        if is_bool or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        raise TypeError(f"{what} is {value!r}; allowed: True, False")
    if option.type == "float":
        if is_bool or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{what} is {value!r}; allowed: a number of at least 0")
        if not value >= 0:
            raise ValueError(f"{what} is {value!r}; allowed: a number of at least 0")
        return float(value)
    if option.type == "int":
        low, _, high = option.allowed.partition("..")
        words = f"an int from {low} to {high}" if high else f"an int of at least {low}"
        if is_bool or not isinstance(value, int | np.integer):
            raise TypeError(f"{what} is {value!r}; allowed: {words}")
        if not int(low) <= value <= int(high or LARGEST):
            raise ValueError(f"{what} is {value!r}; allowed: {words}")
        return int(value)
    if option.type == "choices":
        return checked_choices(what, value)
    if option.type == "joins":
        return checked_joins(what, value)
    names = names_of(option)
    if not isinstance(value, str):
        raise TypeError(refusal(what, value, names))
    for part in value.replace(",", " ").split() if option.type in ("levels", "passes") else [value]:
        if part not in names:
            raise ValueError(refusal(what, part, names))
    return value


def names_of(option: Option) -> list[str]:
    """The allowed values of a text option, or the allowed words of a list; for levels and passes including registered
    ones.
    """
    added = registered()
    if option.type == "passes":
        return [*(name for name, is_needed, *_ in _core.passes() if not is_needed), *added]
    names = option.allowed.split("|")
    if option.name == "arch":  # C for another family would not run in this process
        return ["", *(name for name, _ in _core.arch_levels())]
    if option.type == "levels":
        names += [*added, *(f"before_{name}" for name in added)]
    return names


def registered() -> list[str]:
    """The names of registered passes."""
    return [row.name for row in registrations() if row.is_pass]


def registrations() -> list[Any]:
    """The rows of `extensions.registering`, in order; none while that module is not imported."""
    module = sys.modules.get("cinductor.extensions.registering")
    return [] if module is None else [*module.TABLE.values()]


def user_backend(name: str | None) -> tuple[str, Any] | None:
    """The name of a backend of `register_backend` and its function of a graph's text; None for another backend."""
    return next(((row.name, row.parts[0]) for row in registrations() if row.kind == "backend" and row.name == name), None)


def list_choices() -> list[Threshold]:
    """List every threshold of the compiler; `options={"choices": "name=number, ..."}` sets them.

    Returns
    -------
    list of Threshold
        With `name`, `cpu`, `gpu` and `doc`.
    """
    return [Threshold(*row[:4]) for row in _core.choices()]


def checked_choices(what: str, value: Any) -> str:
    """Check the text of an option of type choices."""
    if not isinstance(value, str):
        raise TypeError(
            f"{what} is {value!r}; allowed: a string like 'few_points=8, l1_lines=1024'"
        )
    limits = {row[0]: row[4:] for row in _core.choices()}
    names = list(limits)
    for part in value.replace(",", " ").split():
        name, _, number = part.partition("=")
        if name not in names:
            raise ValueError(refusal(what, name, names))
        if not (number.isascii() and number.isdecimal() and 0 < int(number) < 10**15):
            raise ValueError(f"{what} has {part!r}; allowed: {name}= and an int of at least 1")
        most, is_power = limits[name]
        if int(number) > most or (is_power and int(number).bit_count() != 1):
            kind = "a power of two" if is_power else "a number"
            raise ValueError(f"{what} has {part!r}; allowed: {kind} up to {most}")
    return value


def checked_joins(what: str, value: Any) -> str:
    """Check the text of an option of type joins."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}; allowed: a string like '1, 3'")
    for part in value.replace(",", " ").split():
        if not (part.isascii() and part.isdecimal() and 0 < int(part) < 10**9):
            raise ValueError(f"{what} has {part!r}; allowed: ints of at least 1")
    return value


def from_environment(option: Option) -> Any:
    """The default of an option: from the environment, else the built-in one."""
    text = os.environ.get(option.environment)
    if text is None:
        return option.default
    value: Any = text
    if option.type == "bool" and text.lower() in TRUE + FALSE:
        value = text.lower() in TRUE
    elif option.type == "int" and text.strip().lstrip("+-").isdecimal():
        value = int(text)
    elif option.type == "float" and is_float(text.strip()):
        value = float(text)
    try:
        return checked(option.name, value)
    except (TypeError, ValueError) as error:
        longer = [name for name in VARIABLES if name.startswith(f"{option.environment}_")]
        other = f"; {longer[0]} is another variable" if longer else ""
        warn(f"the environment variable {option.environment} has no effect: {error}{other}")
        return option.default


# Variables that are no options, and those that the project's own tests and builds read.
VARIABLES = tuple(
    f"CINDUCTOR_{name}" for name in "CACHE_DIR CUBLAS CUFFT CUSOLVER DEVICE_FALLBACK LOGS NCCL NVRTC PROVENANCE TRACE".split()
)
OF_TESTS = tuple(f"CINDUCTOR_{name}" for name in "ACCEPT BUILD_ COVERAGE FUZZ PACKAGES_ PROJECT_URL SOAK TEST_".split())


def warn_of_variables() -> None:
    """Warn of each variable of the environment that has a name like cinductor's and that nothing reads."""
    known = {*VARIABLES, *(option.environment for option in OPTIONS.values())}
    for name in sorted(os.environ):
        if name.startswith("CINDUCTOR_") and name not in known and not name.startswith(OF_TESTS):
            warn(f"the environment variable {name} has no effect: there is none of this name{nearest(name, known)}")


def is_float(text: str) -> bool:
    return re.fullmatch(FLOAT, text, re.IGNORECASE) is not None


settings = [object()]  # another object after each change of an option


class Config:
    """Process-wide options as attributes: `cinductor.config.threads = 2`.

    They hold for functions captured from then on. Reading or setting an unknown one is an
    AttributeError; a value that is not allowed is a ValueError or, of another type, a TypeError.
    """

    def __init__(self) -> None:
        self.reload()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no option {name!r}{nearest(name, OPTIONS)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in OPTIONS:
            raise AttributeError(f"there is no option {name!r}{nearest(name, OPTIONS)}")
        self._set({name: checked(name, value)})

    def _set(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        settings[0] = object()
        _core.set_exact(self.__dict__["numerics"] == "exact")

    def __dir__(self) -> list[str]:
        return [*OPTIONS, "patch", "reload", "as_dict"]

    def as_dict(self) -> dict[str, Any]:
        """A copy of all values."""
        return dict(self.__dict__)

    def reload(self) -> None:
        """Restore the values of the environment."""
        self._set({n: from_environment(o) for n, o in OPTIONS.items()})

    def patch(self, **values: Any) -> contextlib.AbstractContextManager[None]:
        """Set options inside a with statement: all of them, or none if one is not allowed."""
        return self._patched({name: checked(name, value) for name, value in values.items()})

    @contextlib.contextmanager
    def _patched(self, new: dict[str, Any]) -> Iterator[None]:
        before = self.as_dict()
        try:
            self._set(new)
            yield
        finally:
            self._set(before)


config = Config()
warn_of_variables()


def resolve(mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """The options of a mode and of one function, checked. Raises TypeError and ValueError."""
    if mode is not None and (not isinstance(mode, str) or mode not in MODES):
        raise ValueError(refusal("mode", mode, MODES))
    if not isinstance(options, dict | None):
        raise TypeError(f"options is {options!r}; allowed: a dict of options")
    asked = dict(MODES[mode or "default"])
    for name, value in (options or {}).items():
        asked[name] = checked(name, value)
    return asked


def list_mode_options(mode: Mode | None = None) -> dict[str, Any]:
    """Return the options that each mode sets, or those of one mode.

    Parameters
    ----------
    mode : str, optional
        One of the modes of `compile`; None: all.

    Returns
    -------
    dict
        Option -> value for one mode; mode -> such a dict for all.

    Raises
    ------
    ValueError
        If there is no mode of that name.
    """
    if mode is None:
        return {name: dict(values) for name, values in MODES.items()}
    return resolve(mode, None)


def list_options() -> list[Option]:
    """List every option with its type, default, environment variable and documentation.

    Returns
    -------
    list of Option
    """
    return list(OPTIONS.values())


def list_backends() -> dict[str, str | None]:
    """List the backends, which make kernels from the compiler's output.

    `explain` names the backend that ran.

    Returns
    -------
    dict
        Name, for `backend=` -> the reason why it cannot be used here, or None if it can.
    """
    found: dict[str, str | None] = {}
    for _, name, _, why in _core.backends():
        if found.get(name, "") is not None:
            found[name] = why
    return found | {row.name: None for row in registrations() if row.kind == "backend"}
