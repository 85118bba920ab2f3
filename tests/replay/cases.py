"""The corpus of replay: programs, operations, graphs and generated programs, each with its calls.

A case is a name and a function that returns a list of (description of a call, callable that makes the call). Cases
must not depend on the process or the build.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from folders import TESTS

Calls = list[tuple[str, Callable[[], Any]]]
WAYS: dict[str, dict[str, Any]] = {
    "c": {"backend": "c"},
    "c, dynamic": {"backend": "c", "dynamic": True},
    "interp": {"backend": "interp"},
}
CAPTURED: dict[str, dict[str, Any]] = {
    "captured": {"backend": "interp"},
    "captured, dynamic": {"backend": "interp", "dynamic": True},
}
FUZZED = {"program_generator": 60, "loop_generator": 60, "memory_generator": 40, "operand_generator": 30}
GENERATORS = {**FUZZED, "number_generator": 30, "int_generator": 20, "state_generator": 100}
SYMBOLS = (7, 5, 8, 6, 9)  # sizes of the symbols of graphs that have no hints


def cases(folder: Path) -> Iterator[tuple[str, str, Callable[[dict[str, Any]], Calls]]]:
    """Every case: its group, its name and the function that makes its calls, given the options of compile."""
    yield from programs()
    yield from operations()
    yield from generated(folder)
    yield from graphs()
    yield from captures(folder)


# --- tests/programs ---


def programs() -> Iterator[Any]:
    import programs as table

    for name, row in table.load().items():
        yield "programs", name, functools.partial(calls_of_program, row)


def calls_of_program(row: Any, way: dict[str, Any]) -> Calls:
    """Three sizes, then the first again, which needs no compile."""
    import cinductor

    compiled = cinductor.compile(row.function, **way)

    def call(n: int) -> Any:
        arguments = row.make(n, np.random.default_rng(n))
        return compiled(*arguments), arguments

    return [(f"n={n}", functools.partial(call, n)) for n in (*row.sizes, row.sizes[0])]


# --- the op matrix ---


def operations() -> Iterator[Any]:
    import test_op_matrix as matrix

    for ufunc in matrix.ELEMENTWISE:
        yield "operations", ufunc.__name__, functools.partial(calls_of_ufunc, ufunc)
    for name in ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "var", "cumsum", "cumprod"):
        yield "operations", f"reduce {name}", functools.partial(calls_of_reduction, name)


def calls_of_ufunc(ufunc: Any, way: dict[str, Any]) -> Calls:
    import test_op_matrix as matrix

    import cinductor

    groups = [group for _, group in matrix.operands_of(ufunc) if matrix.legal(ufunc, group)]
    compiled = cinductor.compile(lambda groups: [ufunc(*group) for group in groups], **way)
    return [("all", lambda: matrix.quiet(compiled, groups))] if groups else []


def calls_of_reduction(name: str, way: dict[str, Any]) -> Calls:
    """Over all axes and over each axis, with shapes that make different code: rows, columns, few, many."""
    import cinductor

    def reduce(x: Any) -> Any:
        whole = getattr(x, name)()
        return [whole, *(getattr(x, name)(axis=axis) for axis in range(x.ndim))]

    compiled = cinductor.compile(reduce, **way)
    calls: Calls = []
    for dtype in ("f8", "f4", "i8", "i2", "?"):
        for shape in ((5,), (1000,), (40, 7), (7, 300), (3, 4, 65), (0, 3) if name in ("sum", "any") else (1, 1)):
            x = (np.random.default_rng(1).random(shape) * 5).astype(dtype)
            calls.append((f"{dtype}{shape}", functools.partial(compiled, x)))
    return calls


# --- generated programs ---


def generated(folder: Path) -> Iterator[Any]:
    for module, count in FUZZED.items():
        for seed in range(count):
            yield "generated", f"{module} {seed}", functools.partial(calls_of_seed, module, seed, folder)


def captures(folder: Path) -> Iterator[Any]:
    """Cases for which only capture is compared: programs, and the seeds of every generator."""
    for _, name, make in programs():
        yield "captures", name, make
    for module, count in GENERATORS.items():
        for seed in range(count):
            yield "captures", f"{module} {seed}", functools.partial(calls_of_seed, module, seed, folder)


def calls_of_seed(module: str, seed: int, folder: Path, way: dict[str, Any]) -> Calls:
    import cinductor

    generator = importlib.import_module(module)
    made = generator.Generator(seed)
    path = folder / f"{module}_{seed}.py"
    path.write_text(made.generate() if module == "int_generator" else made.source())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    compiled = cinductor.compile(loaded.program, **way)

    def call(number: int) -> Any:
        if module == "program_generator":
            arguments = generator.make_arguments(made.arguments, seed, np)
        elif module == "state_generator":
            arguments = (np.random.default_rng(number).random(5 + number), *getattr(loaded, "more", tuple)())
        elif module == "int_generator":
            arguments = made.arguments(number)
        elif hasattr(made, "sizes"):
            arguments = made.arguments(made.sizes[number % len(made.sizes)], seed, np)
        else:
            arguments = made.arguments(number, np)
        return compiled(*arguments), arguments

    return [(f"call {number}", functools.partial(call, number)) for number in (0, 1, 2, 0)]


# --- golden graphs ---

NOT_RUN = ("kernels ", "device: cuda", "= empty(")  # results of graphs with an empty array are undefined
GRAPH = re.compile(r"^graph (\S+)\((.*)\) \{$", re.M)
INPUT = re.compile(r"in\d+: (python )?(\w+)\[([^\]]*)\]")
SYMBOL = re.compile(r"(\w+) in \[([^,]*), [^)\]]*[)\]](?: from (\S+) (\d+))?(?: hint (\d+))?")
NAMES = {"bool": "?", **{f"{k}{b}": f"{k}{b // 8}" for k in "iuf" for b in (8, 16, 32, 64)}, "c64": "c8", "c128": "c16"}


def graphs() -> Iterator[Any]:
    for path in sorted((TESTS / "golden").rglob("*.ci")):
        text = path.read_text()
        head = text[: text.find("\n---") + 1] or text
        if GRAPH.search(head) and not any(word in head for word in NOT_RUN):
            yield "graphs", str(path.relative_to(TESTS / "golden")), functools.partial(calls_of_graph, head)


def calls_of_graph(head: str, way: dict[str, Any]) -> Calls:
    """The graph on arrays of its inputs' dtypes and sizes. Symbols have the values of their hints."""
    from cinductor import _core

    if way.get("dynamic"):
        return []
    text = re.sub(r"^#.*\n", "", head, flags=re.M)
    found = GRAPH.search(text)
    assert found is not None
    values = {}
    for k, (name, low, _, _, hint) in enumerate(SYMBOL.findall(text[: found.start()])):
        values[name] = int(hint) if hint else max(SYMBOLS[k % len(SYMBOLS)], int(low or 0))
    rng, inputs = np.random.default_rng(3), []
    for python, dtype, sizes in INPUT.findall(found[2]):
        extents = [s.strip() for s in sizes.split(",") if s.strip()]
        if not all(s in values or s.isdigit() for s in extents):
            return []  # a size that is computed from symbols
        shape = tuple(values[s] if s in values else int(s) for s in extents)
        array = np.asarray(rng.random(shape) * 4).astype(NAMES[dtype])
        inputs.append(array.item() if python else array)

    def call() -> Any:
        arguments = copy.deepcopy(inputs)
        made, _ = _core.compile_text(text, arguments, options={}, backend=way["backend"])
        return made, arguments

    return [("once", call)]
