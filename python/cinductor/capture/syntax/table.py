"""What capture makes of every class of Python's syntax: one row each.

captured: becomes a call of the stage, which sees the value or the effect.
kept: stays as written; its parts are captured where they are.
break: a function that contains it runs in NumPy whole, for the reason given.
"""

from __future__ import annotations

import ast
from typing import NamedTuple


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


def verdict(node: ast.AST) -> SyntaxRow | None:
    """The row of a statement or expression; None for other syntax (operators, contexts, ...)."""
    return SYNTAX.get(type(node).__name__)
