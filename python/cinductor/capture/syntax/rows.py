"""The table of Python's syntax: a row for each class of statements and expressions.

A row says what capture and a split function do with the class. It has the parts in their order of evaluation, the jump, and the blocks. `rewrite`, `jumps`, `cfg`, `names` and `pyext/state/syntax_flow.c` read it.

verdict: captured: becomes a call of the stage, which sees the value or the effect. kept: stays as written; its parts are captured
where they are. break: a function that contains it runs in NumPy as a whole, for the given reason.

parts: fields in the order of evaluation, each after a sign for how it is evaluated; None: all fields, in their order.

    x       evaluated here               ?x    on some paths only               1x    a list: only its first item on every path
    @x      by code that runs later      ~x    here or later (types)            =x    a target that is read first
    !x      a name that is bound         -x    a name that is unbound after it  +x    a target, stored to if there is a value
    ^x      declares names               [x    generators of a comprehension    (x    the same, which run later

flow: the effect on control flow: a jump (return, break, continue, raise), or the method of `Cfg` that knows it.
blocks: fields that are lists of statements, and after a * lists of parts that have a `body`.
piece: what a function that is split at its breaks does with it: opened: array work is moved out of it; stays: it is itself in no piece;
pythons: nor is a statement around it; works: an expression that computes something; opaque: nothing is moved out of it.
"""

from __future__ import annotations

import ast

from ...base.records import NamedTuple


class SyntaxRow(NamedTuple):
    """The treatment of a class of syntax, and the reason."""

    verdict: str
    reason: str
    parts: str | None = None
    flow: str = ""
    blocks: str = ""
    piece: str = ""


KEPT, CAPTURED, BREAK, PART = "kept", "captured", "break", "part"
OPENED, STAYS, PYTHONS, WORKS, OPAQUE = "opened", "stays", "pythons", "works", "opaque"
FUNCTION = "decorator_list args ~returns ~type_params @body !name"

SYNTAX: dict[str, SyntaxRow] = {
    # statements
    "FunctionDef": SyntaxRow(KEPT, "rewritten in place; decorators are called by the stage", FUNCTION),
    "AsyncFunctionDef": SyntaxRow(BREAK, "defines a coroutine", FUNCTION),
    "ClassDef": SyntaxRow(BREAK, "defines a class", "decorator_list bases keywords ~type_params @body !name", piece=PYTHONS),
    "Return": SyntaxRow(CAPTURED, "inside a construct it sets flags", flow="return", piece=OPENED),
    "Delete": SyntaxRow(CAPTURED, "deleting an attribute, an item or a global is an effect", piece=PYTHONS),
    "Assign": SyntaxRow(CAPTURED, "stores to attributes, items and globals; unpacking", "value targets", piece=OPENED),
    "TypeAlias": SyntaxRow(KEPT, "its value is not evaluated", "~value ~type_params name"),
    "AugAssign": SyntaxRow(CAPTURED, "may change an object in place", "=target value target", piece=OPENED),
    "AnnAssign": SyntaxRow(CAPTURED, "an assignment", "value +target", piece=OPENED),
    "For": SyntaxRow(CAPTURED, "a construct: the stage decides how it runs", "iter target", "loop", "body orelse"),
    "AsyncFor": SyntaxRow(BREAK, "is part of a coroutine", "iter target", "loop", "body orelse"),
    "While": SyntaxRow(CAPTURED, "a construct: the stage decides how it runs", "test", "loop", "body orelse"),
    "If": SyntaxRow(CAPTURED, "a construct, with its elif, unless its test is never traced", "test", "branch", "body orelse"),
    "With": SyntaxRow(CAPTURED, "entering and leaving a context is an effect, but for numpy.errstate", "items", "with", "body"),
    "AsyncWith": SyntaxRow(BREAK, "is part of a coroutine", "items", "with", "body"),
    "Match": SyntaxRow(CAPTURED, "the `if` that asks the same questions", "subject ?cases", "match", "*cases"),
    "Raise": SyntaxRow(KEPT, "its parts are captured", flow="raise"),
    "Try": SyntaxRow(KEPT, "its parts are captured", "?handlers", "try", "body orelse finalbody *handlers"),
    "TryStar": SyntaxRow(
        BREAK, "has except*, where Python puts what a handler raises into a group", "?handlers", "try", "body orelse finalbody *handlers"
    ),
    "Assert": SyntaxRow(CAPTURED, "its test is read by the stage, or checked when the program runs", "test ?msg", piece=OPENED),
    "Import": SyntaxRow(CAPTURED, "importing a module that is not there yet is an effect", "!names", piece=STAYS),
    "ImportFrom": SyntaxRow(CAPTURED, "the names it binds are guarded reads", "!names", piece=STAYS),
    "Global": SyntaxRow(KEPT, "stores to the name are captured", "^names", piece=PYTHONS),
    "Nonlocal": SyntaxRow(KEPT, "stores to a name outside the function are captured", "^names", piece=PYTHONS),
    "Expr": SyntaxRow(KEPT, "its value is captured", piece=OPENED),
    "Pass": SyntaxRow(KEPT, "does nothing", piece=OPENED),
    "Break": SyntaxRow(CAPTURED, "sets a flag", flow="break"),
    "Continue": SyntaxRow(CAPTURED, "sets a flag", flow="continue"),
    # expressions
    "BoolOp": SyntaxRow(CAPTURED, "its operands are evaluated lazily, by the stage where one is traced", "1values", piece=WORKS),
    "NamedExpr": SyntaxRow(KEPT, "binds a local name", "value target", piece=OPAQUE),
    "BinOp": SyntaxRow(CAPTURED, "operands that are not traced are read whole", piece=WORKS),
    "UnaryOp": SyntaxRow(CAPTURED, "operands that are not traced are read whole; `not` by the stage", piece=WORKS),
    "Lambda": SyntaxRow(KEPT, "rewritten in place", "args @body", piece=OPAQUE),
    "IfExp": SyntaxRow(CAPTURED, "its operands are evaluated lazily, both where its test is traced", "test ?body ?orelse", piece=WORKS),
    "Dict": SyntaxRow(CAPTURED, "mappings unpacked into it are read by the stage, keys are seen"),
    "Set": SyntaxRow(CAPTURED, "what is hashed is seen"),
    "ListComp": SyntaxRow(CAPTURED, "the loop that it is short for, unless its parts forbid it", "[generators"),
    "SetComp": SyntaxRow(CAPTURED, "what is iterated is read by the stage", "[generators"),
    "DictComp": SyntaxRow(CAPTURED, "what is iterated is read by the stage", "[generators"),
    "GeneratorExp": SyntaxRow(
        CAPTURED, "a loop where a builtin takes it whole; else it may not outlive the call", "(generators", piece=OPAQUE
    ),
    "Await": SyntaxRow(BREAK, "is part of a coroutine", piece=PYTHONS),
    "Yield": SyntaxRow(BREAK, "is part of a generator", piece=PYTHONS),
    "YieldFrom": SyntaxRow(BREAK, "is part of a generator", piece=PYTHONS),
    "Compare": SyntaxRow(CAPTURED, "operands that are not traced are read whole; chains are joined by `and`", "left 1comparators", piece=WORKS),
    "Call": SyntaxRow(CAPTURED, "the stage decides by the identity of what is called", piece=WORKS),
    "FormattedValue": SyntaxRow(CAPTURED, "the value is read whole"),
    "JoinedStr": SyntaxRow(KEPT, "its parts are captured"),
    "Interpolation": SyntaxRow(CAPTURED, "the value is read whole"),
    "TemplateStr": SyntaxRow(KEPT, "its parts are captured"),
    "Constant": SyntaxRow(KEPT, "a constant"),
    "Attribute": SyntaxRow(CAPTURED, "a guarded read, or an effect when stored to"),
    "Subscript": SyntaxRow(CAPTURED, "a guarded read, or an effect when stored to", piece=WORKS),
    "Starred": SyntaxRow(CAPTURED, "what is unpacked is read by the stage"),
    "Name": SyntaxRow(CAPTURED, "globals, builtins and names of enclosing functions are guarded reads"),
    "List": SyntaxRow(KEPT, "its parts are captured"),
    "Tuple": SyntaxRow(KEPT, "its parts are captured"),
    "Slice": SyntaxRow(CAPTURED, "becomes a slice object"),
}

# Parts of statements and expressions that bind names, or that have a block or an order of their own.
PARTS: dict[str, SyntaxRow] = {
    "ExceptHandler": SyntaxRow(PART, "of try", "type !name -name", blocks="body"),
    "match_case": SyntaxRow(PART, "of match", "pattern ?guard", blocks="body"),
    "MatchAs": SyntaxRow(PART, "of a pattern", "pattern !name"),
    "MatchStar": SyntaxRow(PART, "of a pattern", "!name"),
    "MatchMapping": SyntaxRow(PART, "of a pattern", "keys patterns !rest"),
    "arguments": SyntaxRow(PART, "of a function", "defaults kw_defaults posonlyargs args vararg kwonlyargs kwarg"),
    "arg": SyntaxRow(PART, "of a function", "~annotation"),
}

SIGNS = "?1@~=!-+^[("
ROWS: dict[type[ast.AST], SyntaxRow] = {}
# The columns that C reads: signs and fields of the parts in turns, the blocks, the flow.
FLOW: dict[type[ast.AST], tuple[tuple[str, ...] | None, tuple[str, ...], str]] = {}


def add_row(cls: type[ast.AST], row: SyntaxRow) -> None:
    """Add the row of a class."""
    ROWS[cls] = row
    parts = None
    if row.parts is not None:
        parts = tuple(text for part in row.parts.split() for text in ((part[0], part[1:]) if part[0] in SIGNS else ("", part)))
    FLOW[cls] = parts, tuple(row.blocks.split()), row.flow


for _name, _row in (*SYNTAX.items(), *PARTS.items()):
    if hasattr(ast, _name):  # some are newer than others
        add_row(getattr(ast, _name), _row)


def classes_with(*pieces: str) -> tuple[type[ast.AST], ...]:
    """The classes whose column `piece` says one of these."""
    return tuple(cls for cls, row in ROWS.items() if row.piece in pieces)


LOOPS = tuple(cls for cls, row in ROWS.items() if row.flow == "loop")
LEAVES = frozenset({"return", "break", "continue"})  # what becomes a flag
JUMPS = tuple(cls for cls, row in ROWS.items() if row.flow in LEAVES | {"raise"})
