"""A pytest plugin that compiles the functions of packages before tests are collected, and records the result of each
test.

A function is replaced where it is defined and wherever another module has imported it. Settings come from the
environment:

CINDUCTOR_PACKAGES_COMPILE: packages, separated by commas; if unset, nothing is compiled.
CINDUCTOR_PACKAGES_METHODS: "1" also compiles the methods of their classes.
CINDUCTOR_PACKAGES_CALLS: "1" compiles functions that call the packages' functions, instead of these.
CINDUCTOR_PACKAGES_LOG: a file that gets a line of JSON when a test begins, and when it ends.
CINDUCTOR_PACKAGES_DONE: a file with the name of a test in each line; these are not run.
CINDUCTOR_PACKAGES_ONLY: a file of the same format; only these are run.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import pkgutil
import sys
import time
import types
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import cinductor
from cinductor.diagnosis import events

DISPATCHER = "_ArrayFunctionDispatcher"  # NumPy's wrapper around a function
LEFT = frozenset({"__new__", "__init_subclass__", "__class_getitem__", "__getattribute__"})
MAX_DEPTH = 4  # nesting of tables in a module that is searched
LEFT_MODULES = ("tests", "testing", "conftest", "setup", "__main__")


def modules_of(package: str) -> list[types.ModuleType]:
    """A package with its modules, without its tests."""
    found = [importlib.import_module(package)]
    for info in pkgutil.walk_packages(getattr(found[0], "__path__", ()), package + "."):
        if any(part in LEFT_MODULES for part in info.name.split(".")):
            continue
        try:
            found.append(importlib.import_module(info.name))
        except Exception:  # a script, or one that needs another package
            continue
    return found


def function_in(value: Any) -> Any:
    """The Python function that a name of a module stands for, or None."""
    if type(value).__name__ == DISPATCHER:
        value = value._implementation
    return value if type(value) is types.FunctionType else None


def calling(value: Any) -> Any:
    """A function that only calls the value."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return value(*args, **kwargs)

    return functools.update_wrapper(call, value)


def compile_functions(packages: list[str], methods: bool = False, calls: bool = False) -> list[Any]:
    """Compile the functions of the packages; return the compiled ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [m for p in packages for m in modules_of(p)]
    names = {m.__name__ for m in modules}
    made: dict[int, tuple[Any, Any]] = {}
    classes: dict[int, type] = {}
    for module in modules:
        for value in list(vars(module).values()):
            fn = function_in(value)
            if fn is not None and fn.__module__ in names and id(value) not in made:
                made[id(value)] = (value, cinductor.compile(calling(value) if calls else fn))
            elif isinstance(value, type) and value.__module__ in names:
                classes[id(value)] = value
    put_everywhere(made, {p.partition(".")[0] for p in packages})
    found = [new for _, new in made.values()]
    for cls in classes.values() if methods else ():
        found += compile_methods(cls)
    return found


def put_everywhere(made: dict[int, tuple[Any, Any]], roots: set[str]) -> None:
    """Replace each function by its compiled version under all its names in modules."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in roots or module is None:
            continue
        where = getattr(module, "__dict__", {})
        for key, value in list(where.items()):
            if key != "__builtins__" and (new := replaced(made, value)) is not value:
                where[key] = new


def replaced(made: dict[int, tuple[Any, Any]], value: Any, depth: int = 0) -> Any:
    """A value in which functions are replaced by compiled ones, also in tables of a module, because packages compare
    what they find there. A function used as a key is present as both.
    """
    if id(value) in made and made[id(value)][0] is value:
        return made[id(value)][1]
    if depth > MAX_DEPTH:
        return value
    if type(value) is dict:
        for key, item in list(value.items()):
            if (new := replaced(made, item, depth + 1)) is not item:
                value[key] = new
        for key in [key for key in value if id(key) in made]:
            value[made[id(key)][1]] = value[key]
    elif type(value) is list:
        value[:] = [replaced(made, item, depth + 1) for item in value]
    elif type(value) is tuple:
        items = [replaced(made, item, depth + 1) for item in value]
        return value if all(a is b for a, b in zip(items, value)) else tuple(items)
    return value


def compile_methods(cls: type) -> list[Any]:
    """Compile the methods of a class; return the compiled ones."""
    found = {n: f for n, f in vars(cls).items() if type(f) is types.FunctionType and n not in LEFT}
    made = []
    for name, fn in found.items():
        compiled = cinductor.compile(fn)
        try:
            setattr(cls, name, compiled)
        except (AttributeError, TypeError):  # a class that cannot be changed
            continue
        made.append(compiled)
    return made


def name_of(fn: Any) -> str:
    """A function's module and name."""
    return f"{fn.__module__}.{fn.__qualname__}"


class Breaks(events.Listener):
    """Collects where captures break, and why calls run in NumPy, by the name of the function."""

    def __init__(self) -> None:
        self.reasons: dict[str, list[str]] = {}

    def end(self, event: events.CaptureEvent) -> None:
        job = event.job
        found = self.reasons.setdefault(name_of(job.fn), [])
        found += [job.why] if job.why is not None else [b.reason for b in job.last.breaks] if job.last is not None else []


class Log:
    """Writes a line when a test begins and when it ends."""

    def __init__(self, path: str, compiled: list[Any]) -> None:
        self.compiled, self.breaks = compiled, Breaks()
        if compiled:
            events.listeners.append(self.breaks)
        self.file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115

    def write(self, **row: Any) -> None:
        self.file.write(json.dumps(row) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(test=nodeid, outcome="began")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        began, used = time.perf_counter(), time.process_time()
        yield
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        self.write(test=item.nodeid, outcome="took", seconds=seconds, processor=processor)

    def pytest_sessionfinish(self) -> None:
        self.write(test="", outcome="captured", captures=cinductor.stats()["captures"])
        for fn in self.compiled:
            if (stats := fn.stats())["calls"]:
                stats["breaks"] = self.breaks.reasons.get(name_of(fn), [])
                self.write(test=name_of(fn), outcome="called", stats=stats)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.write(test=report.nodeid, outcome=report.outcome, why=why_of(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.write(test=nodeid, outcome="ended")

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self.write(test=report.nodeid, outcome="failed", why=why_of(report))


def why_of(report: Any) -> str:
    """The first line of a failure."""
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    return " ".join(lines[:4])[:300]


def lines_of(variable: str) -> set[str] | None:
    """The lines of the file named by an environment variable."""
    path = os.environ.get(variable)
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return set(file.read().splitlines())


def pytest_configure(config: Any) -> None:
    packages = os.environ.get("CINDUCTOR_PACKAGES_COMPILE", "")
    compiled = []
    if packages:
        asked = [os.environ.get(f"CINDUCTOR_PACKAGES_{n}") == "1" for n in ("METHODS", "CALLS")]
        compiled = compile_functions(packages.split(","), *asked)
    if path := os.environ.get("CINDUCTOR_PACKAGES_LOG"):
        config.pluginmanager.register(Log(path, compiled))


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    done, only = lines_of("CINDUCTOR_PACKAGES_DONE"), lines_of("CINDUCTOR_PACKAGES_ONLY")
    kept = [i for i in items if i.nodeid not in (done or ()) and (only is None or i.nodeid in only)]
    items[:] = kept
