"""Makes variants of a function that have a break after one of their statements, so that each part is compiled as a piece.
Other variants have a call in the middle of an expression, after which Python runs the rest of the captured call.
"""

from __future__ import annotations

import ast
import functools
import inspect
import random
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BREAK = 'print(end="", flush=True)'
LEAVES = ast.Return | ast.Raise | ast.Break | ast.Continue
INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def function_in(tree: ast.Module, name: str) -> ast.FunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def statements(node: ast.AST) -> list[ast.stmt]:
    """The statements of a function after which it continues, without those of inner functions."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not isinstance(child, LEAVES):
            found.append(child)
        if not isinstance(child, INNER):
            found += statements(child)
    return found


def lines_of_breaks(source: str, name: str) -> list[tuple[int, int]]:
    """Each line after which a break can stand, and how far it is indented."""
    lines = source.splitlines()
    return sorted(
        {
            (node.end_lineno, node.col_offset)
            for node in statements(function_in(ast.parse(source), name))
            if node.end_lineno and not lines[node.lineno - 1][: node.col_offset].strip()
        }
    )


def broken_sources(source: str, name: str) -> list[str]:
    """The text with a break after each statement of the function in turn."""
    lines = source.splitlines()
    return [
        "\n".join([*lines[:line], " " * column + BREAK, *lines[line:], ""])
        for line, column in lines_of_breaks(source, name)
    ]


def bound(source: str, fn: types.FunctionType, path: Path) -> types.FunctionType:
    """The text as a function with the globals, defaults and closure of fn."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    path.write_text(f"def outer({', '.join(cells)}):\n{textwrap.indent(source, '    ')}")
    code = compile(path.read_text(), str(path), "exec", dont_inherit=True)
    for name in ("outer", fn.__name__):
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    closure = tuple(cells.get(name) or types.CellType(fn) for name in code.co_freevars)  # or its own name
    made = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def after_the_call(fn: Any) -> Any:
    """A function that breaks when fn has returned."""

    def call(*args: Any) -> Any:
        result = fn(*args)
        print(end="", flush=True)
        return result

    return call


def after_an_effect(fn: Any) -> Any:
    """A function that has an effect before it calls fn, so that the call cannot restart."""

    def call(*args: Any) -> Any:
        print(end="", flush=True)
        return fn(*args)

    return call


def source_of(fn: types.FunctionType) -> str:
    """The function's own lines, without decorators."""
    text = textwrap.dedent(inspect.getsource(fn))
    node = ast.parse(text).body[0]
    return "\n".join(text.splitlines()[node.lineno - 1 :])


def broken(fn: Any, folder: Path) -> list[Callable[[], Any]]:
    """Makers of fn with a break after each of its statements in turn, and after its call."""
    sources = [] if fn.__name__ == "<lambda>" else broken_sources(source_of(fn), fn.__name__)
    paths = [folder / f"{fn.__name__}_{number}.py" for number in range(len(sources))]
    return [
        *(functools.partial(bound, source, fn, path) for source, path in zip(sources, paths, strict=True)),
        functools.partial(after_the_call, fn),
    ]


# --- falls in the middle of expressions -----------------------------------------------------------


class Ends:
    """An object whose death runs code: Python runs the rest of a captured call that meets one."""

    def __del__(self):
        pass


def ending() -> Ends:
    return Ends()


ending.__cinductor_disabled__ = "an effect"  # type: ignore[attr-defined]


def falls_by_death(value: Any) -> Any:
    """The value, after which Python runs the rest of the call."""
    ending()
    return value


def falls_by_flags(value: Any) -> Any:
    """The value, after which Python runs the rest of the call because an array's flags are set."""
    print(end="", flush=True)
    np.ones(2).setflags(write=False)
    return value


FALLS = (falls_by_death, falls_by_flags)
WHOLE = ast.JoinedStr | ast.pattern | ast.Slice | ast.arguments  # nodes in which no expression is exchanged


def expressions(node: ast.AST) -> list[ast.expr]:
    """The expressions in a function that a call can stand around, those of inner functions included."""
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        is_value = isinstance(child, ast.expr) and isinstance(getattr(child, "ctx", None), ast.Load | None)
        is_text = isinstance(node, ast.Expr) and isinstance(child, ast.Constant)
        has_slices = any(isinstance(n, ast.Slice) for n in getattr(child, "elts", ()))
        is_super = isinstance(child, ast.Name) and child.id == "super"
        if is_value and not (is_text or has_slices or is_super or isinstance(child, ast.Starred | ast.GeneratorExp | WHOLE)):
            found.append(child)  # type: ignore[arg-type]
        if not isinstance(child, WHOLE):
            found += expressions(child)
    return found


def falling_source(source: str, name: str, seed: Any) -> str:
    """The text with calls of `FALLS` around one to three expressions of the function."""
    choice = random.Random(f"falls {seed}")
    every = expressions(function_in(ast.parse(source), name))
    lines = [line.encode() for line in source.splitlines()]
    inserted: list[tuple[int, int, int, bytes]] = []
    for node in choice.sample(every, min(len(every), choice.choice([1, 1, 2, 3]))):
        inserted.append((node.lineno, node.col_offset, 1, f"{choice.choice(FALLS).__name__}((".encode()))
        inserted.append((node.end_lineno, node.end_col_offset, 0, b"))"))  # type: ignore[arg-type]
    for line, column, _, text in sorted(inserted, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + text + lines[line - 1][column:]
    return b"\n".join([*lines, b""]).decode()


def falling(fn: Any, folder: Path, seed: Any) -> Any:
    """The function with such calls around expressions that the seed determines."""
    if fn.__name__ == "<lambda>":
        return fn
    fn.__globals__.update((fall.__name__, fall) for fall in FALLS)
    return bound(falling_source(source_of(fn), fn.__name__, seed), fn, folder / f"{fn.__name__}_falls.py")
