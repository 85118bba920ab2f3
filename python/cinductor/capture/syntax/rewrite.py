"""Finds a function's source and rewrites it so that every step calls the stage.

Source is trusted only if compiling it gives the function's own bytecode: an edited file, the other of two lambdas
on a line, or a decorator that replaced the code all fail this test.

Reads of globals, builtins and free names, attribute and item loads, calls, stores and deletes become calls of
`__ci__`, a closure cell that holds the stage's scope. So do conditions (`asking`), loops and branches (`control`).
Jumps become flags first (`jumps`), and `cfg` computes which names a loop carries. Everything else stays as
written, in the user's own frame, with the user's line numbers and file. The rewriting is done once per code
object. Code that cannot be rewritten has a reason (`NotRewritable`). Every class of Python's syntax has a row with
its treatment (`rows`).
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import gc
import linecache
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _core
from ...base.deferred_warnings import ignoring
from ...base.user_frame import wrong
from . import bytecode, desugar
from .control import Control
from .imported import modules_in
from .jumps import with_exits_after
from .names import FunctionNode, Transformer, duplicate, place_of, walk
from .rows import BREAK, ROWS, SYNTAX
from .stage_calls import OWN_PREFIX, STAGE, Site

FACTORY = "__ci_factory__"
FUNCTION = "__ci_function__"
FUTURE_FLAGS = 0
for _feature in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _feature).compiler_flag
FUTURE_FLAGS &= ~0x10  # CO_NESTED, with which the oldest feature shares its bit


def class_name(qualname: str) -> str:
    """The class in whose body the function is defined, for names with two leading underscores."""
    parts = qualname.split(".")
    for i in range(len(parts) - 2, -1, -1):
        if parts[i] != "<locals>" and parts[i + 1] != "<locals>":
            return parts[i]
    return ""


def find_function(code: types.CodeType, qualname: str) -> FunctionNode | None:
    """The node in the source that compiles to `code`; its private names are already mangled. First only the
    function's own lines are parsed, then the whole file. If there is no source, the bytecode is decompiled.
    """
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno
    owner = class_name(qualname)
    if not lines:  # made at a prompt or by `exec`
        read = bytecode.function_of(code)
        known = read is not None and is_source_of(read, code, "")
        return read if known else None
    if not 0 < first <= len(lines):
        return None
    block = None if _whole[0] is lines else _parse_block(lines, first, _last_line(code))
    if block is not None:
        for node in _functions(block, code):
            if is_source_of(node, code, owner):
                return node
    whole = _parse_whole(lines)
    if whole is None:
        return None
    return next((n for n in map(duplicate, _functions(whole, code)) if is_source_of(n, code, owner)), None)


_whole: tuple[list[str] | None, ast.Module | None] = None, None  # the lines of a file, and its tree


def _parse_whole(lines: list[str]) -> ast.Module | None:
    """The tree of a whole file. That of the latest file is kept: it may have a table of lambdas."""
    global _whole
    known = _whole
    if known[0] is not lines:
        known = _whole = lines, silently(ast.parse, "".join(lines))
    return known[1]


# Calls ast.parse or compile; None if it fails. Warnings about the source are suppressed, because Python issued them when it
# compiled the file.
silently: Callable[..., Any] = functools.partial(ignoring, Warning, (SyntaxError, ValueError, RecursionError))


def is_source_of(node: FunctionNode, code: types.CodeType, owner: str) -> bool:
    """True if the node compiles to `code`; mangles the node's private names."""
    if owner:
        Mangler(owner).visit(node)
    plain = compile_function(factory(node, code.co_freevars, modules_in(code)), code)
    return plain is not None and is_same(plain, code)


def renamed(code: types.CodeType, old: str, new: str, loops: str | None = None) -> types.CodeType:
    """The code with another prefix of its qualified names, and with the names that tracebacks give to the functions
    of comprehensions: <listcomp> for `loops` with listcomp and a number.
    """
    consts: list[Any] = []
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            value = renamed(value, old, new, loops)
        elif isinstance(value, str) and value.startswith(old):
            value = new + value[len(old) :]
        consts.append(value)
    changes: dict[str, Any] = {"co_consts": tuple(consts)}
    if loops and code.co_name.startswith(loops):
        changes["co_name"] = f"<{code.co_name.removeprefix(loops).rstrip('0123456789')}>"
    qualname = getattr(code, "co_qualname", "")
    if qualname.startswith(old):
        changes["co_qualname"] = new + qualname[len(old) :]
    return code.replace(**changes)


def _last_line(code: types.CodeType) -> int:
    last = code.co_firstlineno
    for _, _, line in code.co_lines():
        last = max(last, line or 0)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            last = max(last, _last_line(const))
    return last


def _parse_block(lines: list[str], first: int, last: int) -> ast.Module | None:
    """The lines from `first` to `last`, and as many more as needed to parse them. An indented block is put under `if
    1:`, because dedenting would change multi-line strings.
    """
    indented = lines[first - 1][:1] in " \t"
    for end in range(last, min(last + 12, len(lines)) + 1):
        above = "\n" * (first - 2) + "if 1:\n" if indented else "\n" * (first - 1)
        tree = silently(ast.parse, above + "".join(lines[first - 1 : end]))
        if tree is not None:
            return tree
    return None


def _functions(tree: ast.AST, code: types.CodeType) -> Iterable[FunctionNode]:
    name, first, is_lambda = code.co_name, code.co_firstlineno, code.co_name == "<lambda>"
    for node in walk(tree):
        if is_lambda:
            if isinstance(node, ast.Lambda) and node.lineno == first:
                yield node
        elif isinstance(node, ast.FunctionDef) and _first_line(node) == first:
            if node.name == name or name.endswith(node.name):
                yield node


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def factory(node: FunctionNode, cells: Iterable[str], imports: Iterable[str] = ()) -> ast.Module:
    """A module whose only function takes the cells and makes the function. It is only compiled, never run, so
    decorators and default values are left out. Type parameters are cells of the body. `imports`: names that the
    module imports.
    """
    here = place_of(node)
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(n, **here) for n in cells],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    node.args.defaults = [ast.Constant(None, **here) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None, **here) for d in node.args.kw_defaults]
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(value=node, **here)]
    else:
        inner = copy.copy(node)
        inner.name, inner.decorator_list, inner.returns = FUNCTION, [], None
        if "type_params" in ast.FunctionDef._fields:
            inner.type_params = []  # type: ignore[attr-defined]
        body = [inner]
    maker = ast.FunctionDef(
        name=FACTORY, args=arguments, body=body, decorator_list=[], returns=None, **here
    )
    if "type_params" in ast.FunctionDef._fields:
        maker.type_params = []  # type: ignore[attr-defined]
    top: list[ast.stmt] = [ast.Import(names=[ast.alias(n, **here)], **here) for n in imports]
    return ast.Module(body=[*top, maker], type_ignores=[])


def compile_function(tree: ast.Module, like: types.CodeType) -> types.CodeType | None:
    """Compile the factory under the original's file and future flags; returns the code of the function that it makes.
    """
    flags = like.co_flags & FUTURE_FLAGS
    is_lambda = not isinstance(tree.body[-1].body[0], ast.FunctionDef)  # type: ignore[attr-defined]
    try:
        module = silently(compile, tree, like.co_filename, "exec", flags, dont_inherit=True)
    except TypeError:  # a node without a position: rare, and searching for it takes as long as compiling
        tree = ast.fix_missing_locations(tree)
        module = silently(compile, tree, like.co_filename, "exec", flags, dont_inherit=True)
    if module is None:
        return None
    maker = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    for const in maker.co_consts:
        if isinstance(const, types.CodeType):
            if const.co_name == ("<lambda>" if is_lambda else FUNCTION):
                return const
    return None


def is_same(a: types.CodeType, b: types.CodeType) -> bool:
    """True if two code objects do the same; lines and qualified names are ignored."""
    return (
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and a.co_freevars == b.co_freevars
        and a.co_cellvars == b.co_cellvars
        and a.co_argcount == b.co_argcount
        and a.co_kwonlyargcount == b.co_kwonlyargcount
        and a.co_posonlyargcount == b.co_posonlyargcount
        and len(a.co_consts) == len(b.co_consts)
        and all(map(_is_same_const, a.co_consts, b.co_consts))
    )


def _is_same_const(a: Any, b: Any) -> bool:
    if isinstance(a, types.CodeType):
        return isinstance(b, types.CodeType) and a.co_name == b.co_name and is_same(a, b)
    if type(a) is str and type(b) is str and "<locals>" in b:
        return a.rpartition(".")[2] == b.rpartition(".")[2]  # a qualified name (3.10)
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        return all(map(_is_same_const, a, b))
    if type(a) is frozenset and type(b) is frozenset:
        return sorted(map(repr, a)) == sorted(map(repr, b))  # in any order, because it depends on hashes
    if type(a) is str and type(b) is str and (a == FUNCTION or a.startswith(FACTORY)):
        return True  # the name of the function, which 3.10 loads to make it
    return type(a) is type(b) and (a == b and repr(a) == repr(b))


class Mangler(Transformer):
    """Mangles names that begin with two underscores, as in the body of a class."""

    def __init__(self, class_name: str) -> None:
        self.prefix = "_" + class_name.lstrip("_") if class_name.strip("_") else ""

    def mangle(self, name: str | None) -> str | None:
        if not name or not self.prefix or not name.startswith("__"):
            return name
        return name if name.endswith("__") or "." in name else self.prefix + name

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "attr", "arg", "name", "rest", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                setattr(node, field, self.mangle(value))
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self.mangle(n) or n for n in node.names]
        if isinstance(node, ast.MatchClass):
            node.kwd_attrs = [self.mangle(n) or n for n in node.kwd_attrs]
        return super().generic_visit(node)


# --- rewriting ---


# Functions that inspect the caller's frame: a function that calls one runs in NumPy.
FRAME_READERS = frozenset({"locals", "vars", "dir", "eval", "exec", "globals", "__import__", "breakpoint"})


ANNOTATIONS_ARE_TEXT = __future__.annotations.compiler_flag
SUSPENDS = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


class NotRewritable(Exception):
    """The reason why a function runs unchanged."""


class Rewritten:
    r"""The rewriting of a code object.

    `code` replaces the original and has one more cell, for the stage. `sites` are its constructs and those of inner
    functions, by number. `inside` has the codes of the inner functions, by id, because codes of different functions
    may be equal.
    """

    __slots__ = ("code", "original", "sites", "inside")

    def __init__(
        self,
        code: types.CodeType,
        original: types.CodeType,
        sites: tuple[Site, ...],
    ) -> None:
        self.code = code
        self.original = original
        self.sites = sites
        self.inside = {id(nested): nested for nested in codes_in(code)}

    def bind(self, fn: types.FunctionType, cell: types.CellType) -> types.FunctionType:
        """The rewritten function with fn's own globals, defaults and cells; `cell` contains the scope."""
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        cells[STAGE] = cell
        closure = tuple(map(cells.__getitem__, self.code.co_freevars))
        new = types.FunctionType(self.code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        new.__kwdefaults__ = fn.__kwdefaults__
        new.__qualname__ = fn.__qualname__
        new.__module__ = fn.__module__
        return new


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The codes of inner functions, recursively."""
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            yield constant
            yield from codes_in(constant)


_memo: dict[tuple[types.CodeType, str], Rewritten | str] = {}
GIVEN = "__cinductor_source__"  # the node of a function that is in no file
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
        )  # its loader may have the source, for example in a zip file
        try:
            found = _rewrite(fn)[0]
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
    rewrite(fn)
    return ast.unparse(_rewrite(fn)[1])


def _rewrite(fn: types.FunctionType) -> tuple[Rewritten, ast.Module]:
    """The rewriting, and its tree, which is not kept: it would cost each collection of garbage."""
    code = fn.__code__
    if code.co_flags & SUSPENDS:
        kind = "a generator" if code.co_flags & 0x20 else "a coroutine"
        raise NotRewritable(f"{code.co_name} is {kind}")
    if code.co_name == "__annotate__":
        raise NotRewritable("it evaluates annotations, and the compiler made it")
    names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    if " " + OWN_PREFIX in " " + " ".join(names):
        raise NotRewritable("it is rewritten already, or uses names that begin with __ci_")
    collects = gc.isenabled()
    gc.disable()  # trees have no cycles, and each look at all of them takes as long as making a third of them
    try:
        given = fn.__code__, fn.__qualname__, fn.__dict__.get(GIVEN)
        return _rewrite_source(*given, True) or _rewrite_source(*given, False)  # type: ignore[return-value]
    except RecursionError:
        raise NotRewritable("its source is nested too deeply") from None
    finally:
        if collects:
            gc.enable()


def _rewrite_source(
    code: types.CodeType, qualname: str, given: FunctionNode | None, with_regions: bool
) -> tuple[Rewritten, ast.Module] | None:
    """The rewriting, with constructs or with Python's own control flow; None if the version with constructs does not
    compile, because CPython limits nested blocks.
    """
    node = find_function(code, qualname) if given is None else duplicate(given)
    if node is None:
        found = bool(linecache.getlines(code.co_filename))
        raise NotRewritable("its source in the file is not what runs" if found else NOT_FOUND)
    classes = set(map(type, walk(node)))  # passes for syntax that the function does not contain are skipped
    if ast.Match in classes:
        node = desugar.without_matches(node)
        classes = set(map(type, walk(node)))
    if ast.Expr in classes and not classes.isdisjoint((ast.For, ast.While)):
        node = with_exits_after(node)
    _check(node, code)
    annotations_run = sys.version_info < (3, 14) and not code.co_flags & ANNOTATIONS_ARE_TEXT
    if with_regions and isinstance(node, ast.FunctionDef) and not classes.isdisjoint(desugar.COMPREHENSIONS):
        desugar.with_loops(node)
    rewriter = Control(node, code.co_freevars, with_regions, annotations_run)
    rewritten = rewriter.run()
    _core.mark_operands(rewritten)
    tree = factory(rewritten, (STAGE, *code.co_freevars))
    new = compile_function(tree, code)
    if new is None and with_regions:
        return None
    if new is None:
        raise NotRewritable("its rewriting does not compile")
    inner = code.co_name if code.co_name == "<lambda>" else FUNCTION
    new = renamed(new, f"{FACTORY}.<locals>.{inner}", qualname, OWN_PREFIX)
    new = new.replace(co_name=code.co_name)
    return Rewritten(new, code, tuple(rewriter.sites)), tree


# --- what cannot be rewritten ------------------------------------------------------------------

DOUBTFUL = {name for name, row in SYNTAX.items() if row.verdict == BREAK} | {
    "Call", "Global", "Nonlocal", "TypeAlias", "comprehension",
}  # fmt: skip


def is_resized(func: ast.expr, code: types.CodeType) -> bool:
    """True if a call may be ndarray.resize: `a.resize(...)`, unless it is a module's function."""
    if not isinstance(func, ast.Attribute) or func.attr != "resize":
        return False
    own = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    return not isinstance(func.value, ast.Name) or func.value.id in own


def _check(root: FunctionNode, code: types.CodeType) -> None:
    """Raise NotRewritable for syntax whose row says break, with its line."""
    declared: set[str] = set()
    doubtful = [node for node in walk(root) if type(node).__name__ in DOUBTFUL]
    for node in doubtful:
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
    for node in doubtful:
        row = ROWS.get(type(node))
        reason = row.reason if row is not None and row.verdict == BREAK else None
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
