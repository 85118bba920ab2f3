"""Notebooks: `%load_ext cinductor` adds the magics `%%cinductor` and `%cinductor`."""

from __future__ import annotations

import ast
from typing import Any

from .. import _core
from ..compile import compile
from ..config import MODES
from ..report.explanation import Explanation, explain, of_latest
from .profiling import KernelProfile

USAGE = """%%cinductor [MODE] before a cell: its functions are compiled, and their reports shown
%cinductor explain f(x): what the call becomes
%cinductor profile f(x): what its kernels take"""
NAME = "__cinductor_of_the_cell__"


class CompileFunctions(ast.NodeTransformer):
    """Decorates the functions of a cell, those of other functions left alone."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                mark = ast.copy_location(ast.Name(NAME, ast.Load()), statement)
                statement.decorator_list.insert(0, mark)
        return node


def run_cell(shell: Any, line: str, cell: str) -> None:
    """`%%cinductor`: run the cell with its functions compiled. Shows the report of each function that was called in
    it, and a card for each that was not. Exceptions of the cell are shown as usual.
    """
    mode: Any = line.strip() or None
    if mode is not None and mode not in MODES:
        raise usage(f"there is no mode {mode!r}: {', '.join(MODES)}")
    made: list[Any] = []

    def mark(fn: Any) -> Any:
        compiled = compile(fn, mode=mode)
        made.append(compiled)
        return compiled

    transformer = CompileFunctions()
    shell.ast_transformers.append(transformer)
    shell.user_ns[NAME] = mark
    try:
        # The line of the magic is kept as a comment, so that line numbers are those of the cell.
        done = shell.run_cell("# %%cinductor\n" + cell, store_history=False)
    finally:
        shell.ast_transformers.remove(transformer)
        shell.user_ns.pop(NAME, None)
    if done.success and not made:
        print("cinductor: the cell defines no function")
    for compiled in made if done.success else ():
        put_out(compiled if compiled._cinductor_job.last is None else of_latest(compiled))


def run_line(shell: Any, line: str) -> Explanation | KernelProfile:
    """`%cinductor explain f(x)`, `%cinductor profile f(x)`."""
    command, _, text = line.strip().partition(" ")
    if command == "explain":
        found: Explanation = evaluate(shell, call_of(text, command))
        return found
    if command == "profile":
        if not isinstance(evaluate(shell, call_of(text, command).args[0]), _core.CompiledFunction):
            raise usage(f"{text} calls no compiled function")
        with KernelProfile() as profile:
            shell.ev(text)
        return profile
    raise usage(f"there is no command {command!r}" if command else "a command is missing")


def call_of(text: str, command: str) -> ast.Call:
    """explain(f, x) for f(x)."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise usage(f"{text!r} is no call: {error.msg}") from None
    if not isinstance(tree, ast.Call):
        raise usage(f"{text!r} is no call; {command} wants one, as f(x)")
    return ast.Call(ast.Name(NAME, ast.Load()), [tree.func, *tree.args], tree.keywords)


def evaluate(shell: Any, expression: ast.expr) -> Any:
    """The value of the expression that the user typed, in the user's namespace."""
    shell.user_ns[NAME] = explain
    try:
        return shell.ev(ast.unparse(expression))
    except Exception as error:  # raised while evaluating an argument; exceptions of the function are in its report
        raise usage(f"{type(error).__name__}: {error}") from None
    finally:
        shell.user_ns.pop(NAME, None)


def usage(text: str) -> Exception:
    from IPython.core.error import UsageError

    made: Exception = UsageError(f"{text}\n{USAGE}")
    return made


def put_out(shown: Any) -> None:
    from IPython import display

    show: Any = display.display
    show(shown)


def load(shell: Any) -> None:
    """Register the magics with an IPython shell."""

    def cinductor(line: str, cell: str | None = None) -> Any:
        if cell is not None:
            return run_cell(shell, line, cell)
        return run_line(shell, line)

    cinductor.__doc__ = USAGE
    shell.register_magic_function(cinductor, "line_cell", "cinductor")


def unload(shell: Any) -> None:
    """Remove the magics."""
    for magics in shell.magics_manager.magics.values():
        magics.pop("cinductor", None)
