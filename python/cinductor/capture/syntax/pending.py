"""Makes visible which operands wait while a later operand of the same expression runs code.

    o[0] + f(o)    becomes    waits(item(o, 0)) + done(1, call(f, o))        each a method of `__ci__`

CPython keeps `o[0]` on the frame's evaluation stack, where nothing can find it: if f removes the array from
o, the stack has the only other reference. `waits` adds the value to `State.waiting` and `done` removes it as
soon as the last operand that calls something has been evaluated. Then the operator itself runs. Methods that an
operator calls (a property, `__getitem__`) are in no expression: see `Scope.call_method`.

Invariant: an operand is left out only if it is a constant, a global, or a local name that no inner function
sets and that the later operands do not bind. These are found without `State.waiting`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from ... import _core
from ...base.user_frame import OURS, STAGE
from .names import FunctionNode, place_of, walk

SLOTS = frozenset({"attr_slot", "item_slot", "global_slot", "free_slot"})
SAME = frozenset({"inverted", "operand", "read_operand", "as_text", "use"})  # give the value that they are given
CALLS = frozenset({"call", "generated", None})  # methods of `__ci__` that call what the user's code calls
CHOICES = ("choose", "choose_result")  # in a conditional expression no operand waits
READS = frozenset({"name", "bound", *SLOTS})  # give what is found by a name, or a place in it

Part = tuple[Any, Any]  # an owner and a field, or a list and a position


def mark_operands(root: FunctionNode) -> None:
    """Adds `waits` and `done` to a rewritten function and to those inside it. In a comprehension that Python runs, calls do not mark
    operands (`call_method`), because its container waits.
    """
    nodes, calling = _core.calling_nodes(root, KINDS)
    for node in nodes:
        order = ORDER.get(type(node))
        if order is not None and method_of(node) not in CHOICES:
            parts = order(node)
            last = max((i for i, part in enumerate(parts) if id(at(part)) in calling), default=0)
            if last:
                mark(parts[:last], parts[last])


def mark(parts: list[Part], then: Part) -> None:
    """Mark the parts whose values no name refers to until `then` has been evaluated."""
    waiting = [part for i, part in enumerate(parts) if waits_unseen(at(part), [*parts[i + 1 :], then])]
    for part in waiting:
        put(part, ask(at(part), "waits", at(part)))
    if waiting:
        node = at(then)
        put(then, ask(node, "done", ast.Constant(len(waiting), **place_of(node)), node))


def ask(node: ast.expr, method: str, *args: ast.expr) -> ast.Call:
    """`__ci__.method(args)` at the position of `node`."""
    place = place_of(node)
    return ast.Call(ast.Attribute(ast.Name(STAGE, ast.Load(), **place), method, ast.Load(), **place), list(args), [], **place)


# --- the parts of a node, in the order of their evaluation ----------------------------------------


def at(part: Part) -> Any:
    """The node of a part."""
    return part[0][part[1]] if type(part[0]) is list else getattr(*part)


def put(part: Part, node: ast.expr) -> None:
    """Replaces the node of a part."""
    if type(part[0]) is list:
        part[0][part[1]] = node
    else:
        setattr(*part, node)


def of_list(nodes: list[Any]) -> list[Part]:
    """The parts of a node in a list; the operand of a star is the part."""
    return [(node, "value") if type(node) is ast.Starred else (nodes, i) for i, node in enumerate(nodes)]


def of_call(node: ast.Call) -> list[Part]:
    """The callee (of a method its object), unless it is a method of `__ci__`, and the arguments."""
    callee: list[Part] = []
    if method_of(node) is None:
        callee.append((node.func, "value") if type(node.func) is ast.Attribute else (node, "func"))
    return [*callee, *of_list(node.args), *((word, "value") for word in node.keywords)]


def of_display(node: ast.Tuple | ast.List) -> list[Part]:
    return of_list(node.elts) if type(node.ctx) is ast.Load else []  # a target has slots


def of_dict(node: ast.Dict) -> list[Part]:
    pairs = zip(of_list(node.keys), of_list(node.values), strict=True)
    return [part for pair in pairs for part in pair if at(part) is not None]


def of_assignment(node: ast.Assign) -> list[Part]:
    """The value, which waits for the slots of its targets."""
    return [(node, "value"), *(slot for target in node.targets for slot in slots_of(target))]


def slots_of(target: ast.expr) -> Iterable[Part]:
    """The slots in a target: `__ci__.item_slot(...)` of `__ci__.item_slot(...).value`."""
    if isinstance(target, ast.Tuple | ast.List):
        return [slot for one in target.elts for slot in slots_of(one)]
    if isinstance(target, ast.Starred):
        return slots_of(target.value)
    return [(target, "value")] if isinstance(target, ast.Attribute) else []


def of_arguments(node: ast.arguments) -> list[Part]:
    """The default values of parameters."""
    return [part for part in [*of_list(node.defaults), *of_list(node.kw_defaults)] if at(part) is not None]


COMPREHENSION = "__ci_"  # prefix of cinductor's function names, followed by the name in tracebacks and a number
COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
# Classes and names of syntax, for `_core.calling_nodes`.
KINDS = (ast.Call, ast.Attribute, ast.Name, ast.FunctionDef, ast.Lambda, COMPREHENSIONS, STAGE, CALLS, "call", "call_method")
ORDER: dict[type, Callable[[Any], list[Part]]] = {
    ast.Call: of_call,
    ast.BinOp: lambda node: [(node, "left"), (node, "right")],
    ast.Compare: lambda node: [(node, "left"), *of_list(node.comparators)],
    ast.Tuple: of_display,
    ast.List: of_display,
    ast.Set: lambda node: of_list(node.elts),
    ast.Dict: of_dict,
    ast.Subscript: lambda node: [(node, "value"), (node, "slice")],
    ast.FormattedValue: lambda node: [(node, "value"), *([(node, "format_spec")] if node.format_spec else [])],
    ast.Raise: lambda node: [(node, name) for name in ("exc", "cause") if getattr(node, name) is not None],
    ast.Assign: of_assignment,
    ast.arguments: of_arguments,
    ast.FunctionDef: lambda node: [*of_list(node.decorator_list), *of_arguments(node.args)],
}


# --- what waits -----------------------------------------------------------------------------------


def method_of(node: Any) -> str | None:
    """The method of `__ci__` that is called."""
    func = getattr(node, "func", None)
    is_ours = type(func) is ast.Attribute and type(func.value) is ast.Name and func.value.id == STAGE
    return func.attr if is_ours else None  # type: ignore[union-attr]


def waits_unseen(node: Any, later: list[Part]) -> bool:
    """True if a value that waits may have no other name."""
    if (method := method_of(node)) in SAME:
        return waits_unseen(node.args[0], later)
    if type(node) is ast.Name:
        return not node.id.startswith(OURS) and any(binds(at(part), node.id) for part in later)
    return not (type(node) is ast.Constant or method in READS)


def binds(node: ast.expr, name: str) -> bool:
    """True if an expression has `name := value`."""
    return any(type(n) is ast.NamedExpr and n.target.id == name for n in walk(node))
