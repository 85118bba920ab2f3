"""Which parameters a function only takes bytes out of, one by one.

Nothing else is asked of such an object, so it may be an array of its bytes, whatever they are in the
next call. A name counts that is never set, and stands only where a loop runs over it, in len() or
enumerate(), and in front of an index.
"""

from __future__ import annotations

import ast
import functools
import types

from .source import find_function

LOOKED_AT = frozenset({"len", "enumerate"})


@functools.lru_cache(maxsize=256)
def names_of_octets(code: types.CodeType, qualname: str) -> frozenset[str]:
    """Those of the function's parameters that it uses so."""
    node = find_function(code, qualname)
    names = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    if not isinstance(node, ast.FunctionDef):
        return frozenset()
    used = [n for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.Name)]
    builtins = LOOKED_AT.difference(code.co_varnames, code.co_cellvars, code.co_freevars)
    fine = {id(n) for statement in node.body for n in _plain_uses(statement, builtins)}
    return names - {n.id for n in used if id(n) not in fine} - frozenset(code.co_cellvars)


def _plain_uses(statement: ast.stmt, builtins: frozenset[str]) -> list[ast.expr]:
    """The expressions in it that may be such a name."""
    found: list[ast.expr] = []
    for node in ast.walk(statement):
        if isinstance(node, ast.For):
            found.append(node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in builtins and not node.keywords:
                found += node.args[:1]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if not isinstance(node.slice, ast.Slice | ast.Tuple):
                found.append(node.value)
    return found
