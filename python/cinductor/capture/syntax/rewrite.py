"""Rewriting: a function's source becomes a function that asks the stage about every step.

Reads of globals, builtins and free names, attribute and item loads, calls, stores and deletes
become calls of `__ci__`, a closure cell that holds the stage, and so does what decides: conditions
(`expressions`), loops and branches (`control`). Jumps become flags first (`jumps`), and `cfg`
tells which names a loop carries. Everything else stays as written, in the user's own frame, with
the user's line numbers and file. It is done once per code object. Source is trusted only if
compiling it as it is gives the function's own bytecode. What cannot be rewritten has a reason
(`NotRewritable`).
"""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import sys
import types
from typing import Any

from ...user import wrong
from .asking import OURS, STAGE
from .comprehensions import COMPREHENSION, with_loops
from .control import Control
from .exits import with_exits_behind
from .matches import without_matches
from .nodes import walk
from .sites import Site
from .source import (
    FACTORY,
    FUNCTION,
    FunctionNode,
    compile_function,
    factory,
    find_function,
    named,
    renamed,
)
from .table import BREAK, FRAME_READERS, SYNTAX, verdict

ANNOTATIONS_ARE_TEXT = __future__.annotations.compiler_flag
SUSPENDS = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


class NotRewritable(Exception):
    """Why a function runs as it is."""


class Rewritten:
    """A code object's rewriting: `code` takes the original's place, with one more cell for the
    stage; `sites` are its constructs and those of functions inside, by number.
    """

    __slots__ = ("code", "original", "tree", "sites")

    def __init__(
        self,
        code: types.CodeType,
        original: types.CodeType,
        tree: ast.Module,
        sites: tuple[Site, ...],
    ) -> None:
        self.code = code
        self.original = original
        self.tree = tree
        self.sites = sites

    def bind(self, fn: types.FunctionType, cell: types.CellType) -> types.FunctionType:
        """The rewritten function over fn's own globals, defaults and cells; `cell` holds the
        stage.
        """
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        cells[STAGE] = cell
        closure = tuple(cells[name] for name in self.code.co_freevars)
        new = types.FunctionType(self.code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        new.__kwdefaults__ = fn.__kwdefaults__
        new.__qualname__ = fn.__qualname__
        new.__module__ = fn.__module__
        return new


_memo: dict[tuple[types.CodeType, str], Rewritten | str] = {}
GIVEN = "__cinductor_source__"  # the node of a function that stands in no file
NOT_FOUND = "its source is not found"


def rewrite(fn: types.FunctionType) -> Rewritten:
    """The rewriting of fn's code, made once. Raises NotRewritable with the reason."""
    code = fn.__code__
    key = (code, code.co_filename)  # equal codes may come from several files
    found = _memo.get(key)
    if found is None:
        if len(_memo) > 4096:
            _memo.clear()
        linecache.getlines(
            code.co_filename, fn.__globals__
        )  # whose loader may have it, as of a zip
        try:
            found = _rewrite(code, fn.__qualname__, fn.__dict__.get(GIVEN))
        except NotRewritable as reason:
            found = str(reason)
        _memo[key] = found
    if isinstance(found, str):
        raise NotRewritable(found)
    return found


def print_rewritten(fn: Any) -> str:
    """The text of fn as capture runs it; raises NotRewritable when capture leaves it as it is."""
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    fn = getattr(fn, "__func__", fn)
    if not isinstance(fn, types.FunctionType):
        raise TypeError(wrong("print_rewritten", "fn", fn, "a function written in Python"))
    return ast.unparse(rewrite(fn).tree)


def _rewrite(code: types.CodeType, qualname: str, given: FunctionNode | None) -> Rewritten:
    if code.co_flags & SUSPENDS:
        kind = "a generator" if code.co_flags & 0x20 else "a coroutine"
        raise NotRewritable(f"{code.co_name} is {kind}")
    if code.co_name == "__annotate__":
        raise NotRewritable("it evaluates annotations, and the compiler made it")
    names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    if any(name.startswith(OURS) for name in names):
        raise NotRewritable("it is rewritten already, or uses names that begin with __ci_")
    try:
        return _rewrite_source(code, qualname, given, True) or _rewrite_source(
            code, qualname, given, False
        )
    except RecursionError:
        raise NotRewritable("its source is nested too deeply") from None


def _rewrite_source(
    code: types.CodeType, qualname: str, given: FunctionNode | None, with_regions: bool
) -> Rewritten | None:
    """The rewriting, with constructs or with Python's own control flow; None when the one with
    constructs does not compile, for CPython limits nested blocks.
    """
    node = find_function(code, qualname) if given is None else copy.deepcopy(given)
    if node is None:
        found = bool(linecache.getlines(code.co_filename))
        raise NotRewritable("its source in the file is not what runs" if found else NOT_FOUND)
    node = with_exits_behind(without_matches(node))
    _check(node, code)
    annotations_run = sys.version_info < (3, 14) and not code.co_flags & ANNOTATIONS_ARE_TEXT
    if with_regions:
        node = with_loops(node)
    rewriter = Control(node, code.co_freevars, with_regions, annotations_run)
    tree = factory(rewriter.run(), (STAGE, *code.co_freevars))
    new = compile_function(tree, code)
    if new is None and with_regions:
        return None
    if new is None:
        raise NotRewritable("its rewriting does not compile")
    inner = code.co_name if code.co_name == "<lambda>" else FUNCTION
    new = named(new, f"{FACTORY}.<locals>.{inner}", qualname).replace(co_name=code.co_name)
    new = renamed(new, COMPREHENSION)
    return Rewritten(new, code, tree, tuple(rewriter.sites))


# --- what cannot be rewritten ------------------------------------------------------------------

DOUBTFUL = {name for name, row in SYNTAX.items() if row.verdict == BREAK} | {
    "Call", "Global", "Nonlocal", "TypeAlias", "comprehension",
}  # fmt: skip


def is_resized(func: ast.expr, code: types.CodeType) -> bool:
    """Whether a call may be of ndarray.resize: `a.resize(...)`, but for a module's function."""
    if not isinstance(func, ast.Attribute) or func.attr != "resize":
        return False
    own = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    return not isinstance(func.value, ast.Name) or func.value.id in own


def _check(root: FunctionNode, code: types.CodeType) -> None:
    """Raises NotRewritable for syntax whose row says break, with its line."""
    declared: set[str] = set()
    doubtful = [node for node in walk(root) if type(node).__name__ in DOUBTFUL]
    for node in doubtful:
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
    for node in doubtful:
        row = verdict(node)
        reason = row.reason if row and row.verdict == BREAK else None
        if isinstance(node, ast.Call):
            if is_resized(node.func, code):
                reason = "may resize an array in place, which depends on who refers to it"
            if isinstance(node.func, ast.Name) and node.func.id in FRAME_READERS:
                if node.func.id not in ("vars", "dir") or not node.args:
                    reason = f"calls {node.func.id}()"
        elif isinstance(node, ast.comprehension) and node.is_async:
            reason = "is part of a coroutine"
        elif type(node).__name__ == "TypeAlias" and node.name.id in declared:  # type: ignore[attr-defined]
            reason = "defines a type for other functions"
        if reason:
            raise NotRewritable(f"line {getattr(node, 'lineno', '?')} {reason}")
