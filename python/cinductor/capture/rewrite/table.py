"""What capture makes of every class of Python's syntax: one row each.

captured: becomes a call of the stage, which sees the value or the effect.
kept: stays as written; its parts are captured where they are.
break: a function that contains it runs in NumPy whole, for the reason given.
"""

from __future__ import annotations

import ast
from typing import NamedTuple


class Row(NamedTuple):
    """The verdict on a class of syntax and why."""

    verdict: str
    reason: str


KEPT, CAPTURED, BREAK = "kept", "captured", "break"

SYNTAX: dict[str, Row] = {
    # statements
    "FunctionDef": Row(KEPT, "rewritten in place; decorators are called by the stage"),
    "AsyncFunctionDef": Row(BREAK, "defines a coroutine"),
    "ClassDef": Row(BREAK, "defines a class"),
    "Return": Row(CAPTURED, "inside a construct it sets flags"),
    "Delete": Row(CAPTURED, "deleting an attribute, an item or a global is an effect"),
    "Assign": Row(CAPTURED, "stores to attributes, items and globals; unpacking"),
    "TypeAlias": Row(KEPT, "its value is not evaluated"),
    "AugAssign": Row(CAPTURED, "may change an object in place"),
    "AnnAssign": Row(CAPTURED, "an assignment"),
    "For": Row(CAPTURED, "a construct: the stage decides how it runs"),
    "AsyncFor": Row(BREAK, "is part of a coroutine"),
    "While": Row(CAPTURED, "a construct: the stage decides how it runs"),
    "If": Row(CAPTURED, "a construct, with its elif, unless its test is never traced"),
    "With": Row(CAPTURED, "entering and leaving a context is an effect, but for numpy.errstate"),
    "AsyncWith": Row(BREAK, "is part of a coroutine"),
    "Match": Row(CAPTURED, "the `if` that asks the same questions"),
    "Raise": Row(KEPT, "its parts are captured"),
    "Try": Row(KEPT, "its parts are captured"),
    "TryStar": Row(KEPT, "its parts are captured"),
    "Assert": Row(CAPTURED, "its test is read by the stage, or checked when the program runs"),
    "Import": Row(CAPTURED, "importing a module that is not there yet is an effect"),
    "ImportFrom": Row(CAPTURED, "the names it binds are guarded reads"),
    "Global": Row(KEPT, "stores to the name are captured"),
    "Nonlocal": Row(KEPT, "stores to a name outside the function are captured"),
    "Expr": Row(KEPT, "its value is captured"),
    "Pass": Row(KEPT, "does nothing"),
    "Break": Row(CAPTURED, "sets a flag"),
    "Continue": Row(CAPTURED, "sets a flag"),
    # expressions
    "BoolOp": Row(CAPTURED, "its operands are evaluated lazily, by the stage where one is traced"),
    "NamedExpr": Row(KEPT, "binds a local name"),
    "BinOp": Row(CAPTURED, "operands that are not traced are read whole"),
    "UnaryOp": Row(CAPTURED, "operands that are not traced are read whole; `not` by the stage"),
    "Lambda": Row(KEPT, "rewritten in place"),
    "IfExp": Row(CAPTURED, "its operands are evaluated lazily, both where its test is traced"),
    "Dict": Row(CAPTURED, "mappings unpacked into it are read by the stage, keys are seen"),
    "Set": Row(CAPTURED, "what is hashed is seen"),
    "ListComp": Row(CAPTURED, "the loop that it is short for, unless its parts forbid it"),
    "SetComp": Row(CAPTURED, "what is iterated is read by the stage"),
    "DictComp": Row(CAPTURED, "what is iterated is read by the stage"),
    "GeneratorExp": Row(
        CAPTURED, "a loop where a builtin takes it whole; else it may not outlive the call"
    ),
    "Await": Row(BREAK, "is part of a coroutine"),
    "Yield": Row(BREAK, "is part of a generator"),
    "YieldFrom": Row(BREAK, "is part of a generator"),
    "Compare": Row(
        CAPTURED, "operands that are not traced are read whole; chains are joined by `and`"
    ),
    "Call": Row(CAPTURED, "the stage decides by the identity of what is called"),
    "FormattedValue": Row(CAPTURED, "the value is read whole"),
    "JoinedStr": Row(KEPT, "its parts are captured"),
    "Interpolation": Row(CAPTURED, "the value is read whole"),
    "TemplateStr": Row(KEPT, "its parts are captured"),
    "Constant": Row(KEPT, "a constant"),
    "Attribute": Row(CAPTURED, "a guarded read, or an effect when stored to"),
    "Subscript": Row(CAPTURED, "a guarded read, or an effect when stored to"),
    "Starred": Row(CAPTURED, "what is unpacked is read by the stage"),
    "Name": Row(CAPTURED, "globals, builtins and names of enclosing functions are guarded reads"),
    "List": Row(KEPT, "its parts are captured"),
    "Tuple": Row(KEPT, "its parts are captured"),
    "Slice": Row(CAPTURED, "becomes a slice object"),
}

# Names whose calls look at the caller's own frame: a function that calls one runs in NumPy.
FRAME_READERS = frozenset(
    {"locals", "vars", "dir", "eval", "exec", "globals", "__import__", "breakpoint"}
)

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.MatMult: "imatmul",
    ast.Div: "itruediv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
    ast.BitAnd: "iand",
    ast.FloorDiv: "ifloordiv",
}


def verdict(node: ast.AST) -> Row | None:
    """The row of a statement or expression; None for other syntax (operators, contexts, ...)."""
    return SYNTAX.get(type(node).__name__)
