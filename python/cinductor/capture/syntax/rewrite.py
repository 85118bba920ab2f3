"""Rewriting: a function's source becomes a function that asks the stage about every step.

Reads of globals, builtins and free names, attribute and item loads, calls, stores and deletes
become calls of `__ci__`, a closure cell that holds the stage, and so does what decides: conditions
(`expressions`), loops and branches (`control`). Jumps become flags first (`jumps`), and `cfg`
tells which names a loop carries. Everything else stays as written, in the user's own frame, with
the user's line numbers and file. It is done once per code object. Source is trusted only if
compiling it as it is gives the function's own bytecode. What cannot be rewritten has a reason
(`NotRewritable`).

Every class of Python's syntax has a row that says what becomes of it.

captured: becomes a call of the stage, which sees the value or the effect.
kept: stays as written; its parts are captured where they are.
break: a function that contains it runs in NumPy whole, for the reason given.
"""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import sys
import types
from typing import Any, NamedTuple

from ...user import wrong
from .asking import OURS, STAGE, Site
from .comprehensions import COMPREHENSION, with_loops
from .control import Control
from .exits import with_exits_behind
from .matches import without_matches
from .nodes import walk
from .source import (
    FACTORY,
    FUNCTION,
    FunctionNode,
    compile_function,
    factory,
    find_function,
    renamed,
)


class SyntaxRow(NamedTuple):
    """The verdict on a class of syntax and why."""

    verdict: str
    reason: str


KEPT, CAPTURED, BREAK = "kept", "captured", "break"

SYNTAX: dict[str, SyntaxRow] = {
    # statements
    "FunctionDef": SyntaxRow(KEPT, "rewritten in place; decorators are called by the stage"),
    "AsyncFunctionDef": SyntaxRow(BREAK, "defines a coroutine"),
    "ClassDef": SyntaxRow(BREAK, "defines a class"),
    "Return": SyntaxRow(CAPTURED, "inside a construct it sets flags"),
    "Delete": SyntaxRow(CAPTURED, "deleting an attribute, an item or a global is an effect"),
    "Assign": SyntaxRow(CAPTURED, "stores to attributes, items and globals; unpacking"),
    "TypeAlias": SyntaxRow(KEPT, "its value is not evaluated"),
    "AugAssign": SyntaxRow(CAPTURED, "may change an object in place"),
    "AnnAssign": SyntaxRow(CAPTURED, "an assignment"),
    "For": SyntaxRow(CAPTURED, "a construct: the stage decides how it runs"),
    "AsyncFor": SyntaxRow(BREAK, "is part of a coroutine"),
    "While": SyntaxRow(CAPTURED, "a construct: the stage decides how it runs"),
    "If": SyntaxRow(CAPTURED, "a construct, with its elif, unless its test is never traced"),
    "With": SyntaxRow(CAPTURED, "entering and leaving a context is an effect, but for numpy.errstate"),
    "AsyncWith": SyntaxRow(BREAK, "is part of a coroutine"),
    "Match": SyntaxRow(CAPTURED, "the `if` that asks the same questions"),
    "Raise": SyntaxRow(KEPT, "its parts are captured"),
    "Try": SyntaxRow(KEPT, "its parts are captured"),
    "TryStar": SyntaxRow(KEPT, "its parts are captured"),
    "Assert": SyntaxRow(CAPTURED, "its test is read by the stage, or checked when the program runs"),
    "Import": SyntaxRow(CAPTURED, "importing a module that is not there yet is an effect"),
    "ImportFrom": SyntaxRow(CAPTURED, "the names it binds are guarded reads"),
    "Global": SyntaxRow(KEPT, "stores to the name are captured"),
    "Nonlocal": SyntaxRow(KEPT, "stores to a name outside the function are captured"),
    "Expr": SyntaxRow(KEPT, "its value is captured"),
    "Pass": SyntaxRow(KEPT, "does nothing"),
    "Break": SyntaxRow(CAPTURED, "sets a flag"),
    "Continue": SyntaxRow(CAPTURED, "sets a flag"),
    # expressions
    "BoolOp": SyntaxRow(CAPTURED, "its operands are evaluated lazily, by the stage where one is traced"),
    "NamedExpr": SyntaxRow(KEPT, "binds a local name"),
    "BinOp": SyntaxRow(CAPTURED, "operands that are not traced are read whole"),
    "UnaryOp": SyntaxRow(CAPTURED, "operands that are not traced are read whole; `not` by the stage"),
    "Lambda": SyntaxRow(KEPT, "rewritten in place"),
    "IfExp": SyntaxRow(CAPTURED, "its operands are evaluated lazily, both where its test is traced"),
    "Dict": SyntaxRow(CAPTURED, "mappings unpacked into it are read by the stage, keys are seen"),
    "Set": SyntaxRow(CAPTURED, "what is hashed is seen"),
    "ListComp": SyntaxRow(CAPTURED, "the loop that it is short for, unless its parts forbid it"),
    "SetComp": SyntaxRow(CAPTURED, "what is iterated is read by the stage"),
    "DictComp": SyntaxRow(CAPTURED, "what is iterated is read by the stage"),
    "GeneratorExp": SyntaxRow(
        CAPTURED, "a loop where a builtin takes it whole; else it may not outlive the call"
    ),
    "Await": SyntaxRow(BREAK, "is part of a coroutine"),
    "Yield": SyntaxRow(BREAK, "is part of a generator"),
    "YieldFrom": SyntaxRow(BREAK, "is part of a generator"),
    "Compare": SyntaxRow(
        CAPTURED, "operands that are not traced are read whole; chains are joined by `and`"
    ),
    "Call": SyntaxRow(CAPTURED, "the stage decides by the identity of what is called"),
    "FormattedValue": SyntaxRow(CAPTURED, "the value is read whole"),
    "JoinedStr": SyntaxRow(KEPT, "its parts are captured"),
    "Interpolation": SyntaxRow(CAPTURED, "the value is read whole"),
    "TemplateStr": SyntaxRow(KEPT, "its parts are captured"),
    "Constant": SyntaxRow(KEPT, "a constant"),
    "Attribute": SyntaxRow(CAPTURED, "a guarded read, or an effect when stored to"),
    "Subscript": SyntaxRow(CAPTURED, "a guarded read, or an effect when stored to"),
    "Starred": SyntaxRow(CAPTURED, "what is unpacked is read by the stage"),
    "Name": SyntaxRow(CAPTURED, "globals, builtins and names of enclosing functions are guarded reads"),
    "List": SyntaxRow(KEPT, "its parts are captured"),
    "Tuple": SyntaxRow(KEPT, "its parts are captured"),
    "Slice": SyntaxRow(CAPTURED, "becomes a slice object"),
}

# Names whose calls look at the caller's own frame: a function that calls one runs in NumPy.
FRAME_READERS = frozenset(
    {"locals", "vars", "dir", "eval", "exec", "globals", "__import__", "breakpoint"}
)

def verdict(node: ast.AST) -> SyntaxRow | None:
    """The row of a statement or expression; None for other syntax (operators, contexts, ...)."""
    return SYNTAX.get(type(node).__name__)


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
        closure = tuple(map(cells.__getitem__, self.code.co_freevars))
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
    if " " + OURS in " " + " ".join(names):
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
    new = renamed(new, f"{FACTORY}.<locals>.{inner}", qualname, COMPREHENSION)
    new = new.replace(co_name=code.co_name)
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
