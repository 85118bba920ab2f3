"""Options: process-wide defaults from the environment and `config`, modes, and what one function
asks for.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import _core

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"graphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True},
    "max-autotune": {"max_autotune": True, "graphs": True},
}
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class Option(NamedTuple):
    """One option: `type` is bool, int or text; `environment` the variable that sets its default."""

    name: str
    type: str
    default: Any
    environment: str
    doc: str


OPTIONS: dict[str, Option] = {row[0]: Option(*row) for row in _core.options()}


def nearest(name: str, names: Any) -> str:
    """The end of a message about an unknown name: the name that may have been meant."""
    import difflib

    found = difflib.get_close_matches(name, list(names), 1, 0.4)
    return f"; did you mean {found[0]!r}?" if found else ""


def checked(name: str, value: Any) -> Any:
    """A value for an option. Raises KeyError for an unknown name, TypeError for another type."""
    option = OPTIONS.get(name)
    if option is None:
        raise KeyError(f"unknown option {name!r}{nearest(name, OPTIONS)}")
    if option.type == "bool" and (isinstance(value, bool) or value in (0, 1)):
        return bool(value)
    if option.type == "int" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if option.type == "text" and isinstance(value, str):
        return value
    raise TypeError(f"option {name!r} takes a {option.type}, not {value!r}")


def from_environment(option: Option) -> Any:
    """The default of an option: the environment's, else its own."""
    text = os.environ.get(option.environment)
    if text is None:
        return option.default
    try:
        if option.type == "bool":
            if text.lower() not in TRUE + FALSE:
                raise ValueError(text)
            return text.lower() in TRUE
        return int(text) if option.type == "int" else text
    except ValueError:
        warnings.warn(
            f"{option.environment}={text!r} is no {option.type}; it is left at {option.default!r}",
            RuntimeWarning,
            stacklevel=2,
        )
        return option.default


class Config:
    """Process-wide options as attributes: `cinductor.config.threads = 2`.

    They hold for functions captured from then on. Reading or setting an unknown one is an
    AttributeError; a value of another type is a TypeError.
    """

    def __init__(self) -> None:
        values = {name: from_environment(option) for name, option in OPTIONS.items()}
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"no option {name!r}{nearest(name, OPTIONS)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in OPTIONS:
            raise AttributeError(f"no option {name!r}{nearest(name, OPTIONS)}")
        self._values[name] = checked(name, value)

    def __dir__(self) -> list[str]:
        return [*OPTIONS, "patch", "reload", "as_dict"]

    def as_dict(self) -> dict[str, Any]:
        """A copy of all values."""
        return dict(self._values)

    def reload(self) -> None:
        """Back to what the environment says now."""
        self._values.update({n: from_environment(o) for n, o in OPTIONS.items()})

    @contextlib.contextmanager
    def patch(self, **values: Any) -> Iterator[None]:
        """Sets options inside a with statement."""
        before = self.as_dict()
        for name, value in values.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            self._values.update(before)


config = Config()


def resolve(mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """What a mode and a function's own options ask for, checked. KeyError, TypeError,
    ValueError.
    """
    if mode is not None and mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}{nearest(str(mode), MODES)}")
    asked = dict(MODES[mode or "default"])
    for name, value in (options or {}).items():
        asked[name] = checked(name, value)
    return asked


def list_mode_options(mode: str | None = None) -> dict[str, Any]:
    """The options that each mode sets, or those of one mode."""
    if mode is None:
        return {name: dict(values) for name, values in MODES.items()}
    return resolve(mode, None)


def list_options() -> list[Option]:
    """Every option with its type, default, environment variable and documentation."""
    return list(OPTIONS.values())


def list_backends() -> list[str]:
    """The names of the backends, available or not: `cinductor.explain` says which one ran."""
    names: list[str] = []
    for _, name, _, _ in _core.backends():
        if name not in names:
            names.append(name)
    return names
