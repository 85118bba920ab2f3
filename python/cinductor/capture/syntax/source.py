"""Where a function's source is, and whether it is what runs.

Source is trusted only if compiling it as it is gives the function's own bytecode: an edited file,
the other of two lambdas on a line, or a decorator that replaced the code all fail this test.
"""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .bytecode import function_of, modules_in
from .nodes import Transformer, children, place_of, walk

FACTORY = "__ci_factory__"
FUNCTION = "__ci_function__"
FUTURE_FLAGS = 0
for _feature in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _feature).compiler_flag
FUTURE_FLAGS &= ~0x10  # CO_NESTED, which the oldest feature shares

FunctionNode = ast.FunctionDef | ast.Lambda


def class_name(qualname: str) -> str:
    """The class whose body the function stands in, for names that begin with two underscores."""
    parts = qualname.split(".")
    for i in range(len(parts) - 2, -1, -1):
        if parts[i] != "<locals>" and parts[i + 1] != "<locals>":
            return parts[i]
    return ""


def find_function(code: types.CodeType, qualname: str) -> FunctionNode | None:
    """The node of the source that compiles to `code`; private names are mangled in it already.

    The function's own lines are parsed first, the whole file only if that does not do. Where there are
    no lines at all, the bytecode says what they were.
    """
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno
    owner = class_name(qualname)
    if not lines:  # what a prompt or `exec` has made
        read = function_of(code)
        known = read is not None and is_source_of(read, code, "", modules_in(code))
        return read if known else None
    if not 0 < first <= len(lines):
        return None
    block = _parse_block(lines, first, _last_line(code))
    if block is not None:
        imports = _imports_of_lines(lines)
        for node in _functions(block, code):
            if is_source_of(node, code, owner, imports):
                return node
    whole = silently(ast.parse, "".join(lines))
    if whole is None:
        return None
    imports = _imports(whole)
    return next((n for n in _functions(whole, code) if is_source_of(n, code, owner, imports)), None)


def silently(make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What ast.parse or compile makes, None when they cannot; without the warnings about source,
    which Python gave when it compiled the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(*args, **options)
    except (SyntaxError, ValueError, RecursionError):
        return None


def is_source_of(
    node: FunctionNode, code: types.CodeType, owner: str, imports: Iterable[str]
) -> bool:
    """Whether the node compiles to `code`; mangles the node's private names. A notebook compiles the
    statements of a cell one by one, so that its imports change nothing.
    """
    if owner:
        Mangler(owner).visit(node)
    for names in (imports, ()) if imports else ((),):
        plain = compile_function(factory(node, code.co_freevars, names), code)
        if plain is not None and is_same(plain, code):
            return True
    return False


def imports_of(code: types.CodeType) -> list[str]:
    """The names that the file of some code imports at the top."""
    return _imports_of_lines(linecache.getlines(code.co_filename))


def renamed(
    code: types.CodeType, old: str, new: str, loops: str | None = None
) -> types.CodeType:
    """The code with another beginning of the qualified names in it, and with the names that tracebacks
    give to the functions of comprehensions: <listcomp> for `loops` with listcomp and a number.
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


_imports_known: dict[int, tuple[list[str], list[str]]] = {}  # by the list of a file's lines


def _imports_of_lines(lines: list[str]) -> list[str]:
    """The names that import statements in the first column bind: they change how calls compile. Looked
    for once in the lines of a file, which linecache keeps until it has changed.
    """
    known = _imports_known.get(id(lines))
    if known is None or known[0] is not lines:
        if len(_imports_known) > 256:
            _imports_known.clear()
        known = _imports_known[id(lines)] = lines, _look_for_imports(lines)
    return known[1]


def _look_for_imports(lines: list[str]) -> list[str]:
    found: list[str] = []
    for i, line in enumerate(lines):
        if not line.startswith(("import ", "from ")):
            continue
        end = i + 1
        while "(" in line and ")" not in lines[end - 1] and end < min(i + 100, len(lines)):
            end += 1
        tree = silently(ast.parse, "".join(lines[i:end]))
        found += _imports(tree) if tree is not None else []
    return found


def _imports(tree: ast.AST) -> list[str]:
    """The names that imports outside functions and classes bind."""
    found: list[str] = []
    for node in children(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [(a.asname or a.name).split(".")[0] for a in node.names]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            found += _imports(node)
    return [name for name in found if name != "*"]


def _last_line(code: types.CodeType) -> int:
    last = code.co_firstlineno
    for _, _, line in code.co_lines():
        last = max(last, line or 0)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            last = max(last, _last_line(const))
    return last


def _parse_block(lines: list[str], first: int, last: int) -> ast.Module | None:
    """The lines from `first` to `last`, and as many more as it takes to make them parse.

    An indented block stands under `if 1:`; dedenting would change strings of several lines.
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
    """A module whose one function takes the cells and makes the function.

    It is only compiled, never run: decorators and the values of defaults are left out, and type
    parameters, which are cells to the body. `imports`: names that the module imports.
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
            inner.type_params = []
        body = [inner]
    maker = ast.FunctionDef(
        name=FACTORY, args=arguments, body=body, decorator_list=[], returns=None, **here
    )
    if "type_params" in ast.FunctionDef._fields:
        maker.type_params = []
    top: list[ast.stmt] = [ast.Import(names=[ast.alias(n, **here)], **here) for n in imports]
    return ast.Module(body=[*top, maker], type_ignores=[])


def compile_function(tree: ast.Module, like: types.CodeType) -> types.CodeType | None:
    """The code of the function that the factory makes, under the original's file and future
    flags.
    """
    flags = like.co_flags & FUTURE_FLAGS
    is_lambda = not isinstance(tree.body[-1].body[0], ast.FunctionDef)  # type: ignore[attr-defined]
    try:
        module = silently(compile, tree, like.co_filename, "exec", flags, dont_inherit=True)
    except TypeError:  # a node has no place: rare, and looking for it takes as long as compiling
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
    """Whether two code objects do the same; lines and qualified names are not looked at."""
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
        return sorted(map(repr, a)) == sorted(map(repr, b))  # in any order, as hashes have it
    if type(a) is str and type(b) is str and (a == FUNCTION or a.startswith(FACTORY)):
        return True  # the name of the function (3.10 loads it to make it)
    return type(a) is type(b) and (a == b and repr(a) == repr(b))


class Mangler(Transformer):
    """Names that begin with two underscores, as the body of a class spells them."""

    def __init__(self, class_name: str) -> None:
        self.prefix = "_" + class_name.lstrip("_") if class_name.strip("_") else ""

    def mangle(self, name: str | None) -> str | None:
        if not name or not self.prefix or not name.startswith("__"):
            return name
        return name if name.endswith("__") or "." in name else self.prefix + name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.generic_visit(node)

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
