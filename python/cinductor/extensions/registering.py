"""Passes, patterns, lowerings, templates and backends registered by the user. A registration holds for this process and for
later compiles. Its name and version are part of the key by which programs are found.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.graph_text import Node
from ..base.user_frame import wrong
from ..capture.calls import functions
from ..compile import reset
from ..config import list_backends, nearest, registered
from ..errors import BackendCompilerFailed
from ..graphs import Graph, on_text
from .kernels import UserKernel

NAME = re.compile(r"[A-Za-z_][\w.-]*")
NUMBERS = itertools.count()  # versions of backends
TABLE: dict[str, Registration] = {}  # in the order of registration


class Registration:
    """A registered name. `remove()` undoes the registration; a with statement does so at its end.
    """

    def __init__(self, kind: str, name: str, version: str, after: str, parts: tuple[Any, ...]) -> None:
        self.kind, self.name, self.version = kind, name, version
        self.after, self.parts = after, parts
        self.is_on = True  # off while `bisect` tests whether it is the cause

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r}, version {self.version}>"

    @property
    def is_pass(self) -> bool:
        """True if it runs among the passes over graphs."""
        return self.kind in ("pass", "pattern", "template")

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove it and the programs compiled with it. Raises ValueError while another pass runs after it."""
        if TABLE.get(self.name) is not self:
            return
        behind = [other.name for other in TABLE.values() if other.after == self.name]
        if behind:
            raise ValueError(f"{behind[0]!r} runs after {self.name!r}")
        del TABLE[self.name]
        if self.kind == "lowering":
            del functions.ROWS[id(self.parts[0])]
        put_in_force()


def put_in_force() -> None:
    """Pass the registrations to the compiler, and drop programs compiled with others."""
    rows = [row for row in TABLE.values() if row.is_pass]
    key = ";".join(f"{row.name}@{row.version}" for row in TABLE.values())
    _core.set_passes(tuple((row.name, row.after, *row.parts) for row in rows), key)
    reset()


def enter(row: Registration) -> Registration:
    """Puts a registration into the table."""
    if not isinstance(row.name, str) or not NAME.fullmatch(row.name):
        raise ValueError(f"{row.name!r} is no name: letters, digits, '_', '.' and '-'")
    own = [name for name, _, _, level in _core.passes() if level == "graph"]
    if row.name in TABLE or any(row.name == name for name, *_ in _core.passes()):
        raise ValueError(f"there is something called {row.name!r} already")
    if row.is_pass:
        late = [*own[own.index("wrap") :], *registered()]  # earlier passes could see Python ints before their overflow is handled
        if row.after not in late:
            raise ValueError(f"after is {row.after!r}; allowed: {', '.join(map(repr, late))}")
    TABLE[row.name] = row
    put_in_force()
    return row


def version_of(fn: Any, version: str | None) -> str:
    """A text that distinguishes functions of the same name: the given version, or the hash of the
    code."""
    if version is not None:
        if not isinstance(version, str):
            raise TypeError(f"version is {version!r}; wanted: a text")
        return version
    code = getattr(fn, "__code__", None)
    if code is None:
        raise ValueError(f"{fn!r} has no code to tell it by: give version=, a text")
    digest = hashlib.sha256()
    add_code(digest, code)
    digest.update(repr((fn.__defaults__, fn.__kwdefaults__)).encode())
    for cell in fn.__closure__ or ():
        digest.update(repr(cell.cell_contents).encode())
    return digest.hexdigest()[:16]


def add_code(digest: Any, code: types.CodeType) -> None:
    """Hash the code of a function and of its inner functions."""
    digest.update(code.co_code + repr((code.co_names, code.co_varnames)).encode())
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            add_code(digest, value)
        else:
            digest.update(repr(value).encode())


def register_pass(
    name: str, fn: Callable[[Graph], Graph | None], *, after: str = "simplify", version: str | None = None
) -> Registration:
    """Add a graph pass to those of `list_passes()`.

    The result is verified, and must take and return what the graph did before. If fn raises or breaks the graph, NumPy runs the
    call and a warning gives the reason (`PassFailed`).

    Parameters
    ----------
    name : str
        The name of the pass.
    fn : callable
        Takes a `cinductor.graphs.Graph` (nodes with operands, users, sizes, dtypes, the user's line), which it may change by
        add, replace, set_args and erase. Returns None, or another Graph.
    after : str
        The pass after which it runs: "wrap" or a later one, or a registered one.
    version : str, optional
        Distinguishes passes of one name; None: the hash of the code, defaults and closure of fn.

    Returns
    -------
    Registration
        Its `remove()`, or the end of a with statement, removes the pass. Both discard compiled programs.

    Raises
    ------
    ValueError, TypeError
        If the name is taken or `after` does not exist; if fn is not callable.
    """
    if not callable(fn):
        raise TypeError(wrong("register_pass", "fn", fn, "a function of a graph"))
    return enter(Registration("pass", name, version_of(fn, version), after, (on_text(fn),)))


def register_pattern(
    name: str, pattern: str, replacement: str, *, after: str = "simplify"
) -> Registration:
    """Add a graph pass that rewrites a pattern.

    Shapes and dtypes must stay the same. Whether bits do is the caller's responsibility.

    Parameters
    ----------
    name : str
        The name of the pass.
    pattern, replacement : str
        Texts of operations (`docs/ir.md`): names match any node, `x:f64`, `x:int` one of a type, numbers match constants.
        Operands of commutative operations match in both orders. `(let d A B)` names A in B.
    after : str
        As in `register_pass`.

    Returns
    -------
    Registration
        As in `register_pass`.

    Raises
    ------
    ValueError, TypeError
        If a pattern cannot be read, the name is taken or `after` does not exist; if an argument is not a text.

    Examples
    --------
    >>> cinductor.register_pattern("twice", "(add x x)", "(multiply x 2)")
    """
    for what, text in (("pattern", pattern), ("replacement", replacement)):
        if not isinstance(text, str):
            raise TypeError(wrong("register_pattern", what, text, "a text like '(add x 0)'"))
    try:
        _core.check_pattern(pattern, replacement)
    except SyntaxError as error:
        raise ValueError(f"the pattern {name!r} cannot be read: {error}") from None
    version = hashlib.sha256(f"{pattern}\n{replacement}".encode()).hexdigest()[:16]
    return enter(Registration("pattern", name, version, after, (pattern, replacement)))


def register_template(
    name: str,
    op: str,
    fn: Callable[[Node], UserKernel | None],
    *,
    after: str = "simplify",
    version: str | None = None,
) -> Registration:
    """Compute an operation of the graph by a kernel of your own, if fn returns one for it.

    Parameters
    ----------
    name : str
        The name of the template.
    op : str
        An operation (`docs/ir.md`): "matmul", "sum", "exp".
    fn : callable
        Takes each `cinductor.graphs.Node` of that operation, with dtypes, sizes and attributes. Returns a `cinductor.kernel`
        that reads the node's operands in their order and writes one array of its dtype and sizes, or None to leave it.
    after, version : str
        As in `register_pass`.

    Returns
    -------
    Registration
        As in `register_pass`.

    Raises
    ------
    ValueError, TypeError
        If there is no such operation, none of it reaches a template, or the name is taken; if fn is not callable.
    """
    reasons = {row[0]: row[4] for row in _core.ops()}
    if not is_a(op, str):
        raise TypeError(wrong("register_template", "op", op, "the name of an operation"))
    if op not in reasons:
        public = [name for name, why in reasons.items() if why is None]
        raise ValueError(f"there is no operation {op!r}{nearest(op, public)}")
    if reasons[op] is not None:
        raise ValueError(f"no template is ever asked for {op}: {reasons[op]}")
    if not callable(fn):
        raise TypeError(wrong("register_template", "fn", fn, "a function of a node"))

    def run(graph: Graph) -> None:
        for node in graph.nodes:
            kernel = fn(node) if node.op == op else None
            if kernel is not None and not isinstance(kernel, UserKernel):
                raise TypeError(f"a template gives a kernel or None, not {type(kernel).__name__}")
            if kernel is not None:
                graph.replace(node, graph.call(kernel, *node.args, before=node))

    return enter(Registration("template", name, f"{op} {version_of(fn, version)}", after, (on_text(run),)))


def register_backend(name: str, fn: Callable[[Graph], Callable[..., Any]]) -> Registration:
    """Let a function of yours run captured graphs: `cinductor.compile(f, backend=name)`.

    Capture, guards, recompiles for other arguments and breaks are as for the backends of `list_backends()`. A graph with
    checks of data (indices that data decide) is not passed to fn; NumPy runs the call.

    Parameters
    ----------
    name : str
        The name of the backend.
    fn : callable
        Takes a `cinductor.graphs.Graph` and returns a function of its inputs (arrays and numbers, in the order of
        `graph.inputs`), which returns a list of the values of `graph.body.results` and writes the inputs of `graph.writes`
        in place. `graph.compile()` is such a function.

    Returns
    -------
    Registration
        As in `register_pass`.

    Raises
    ------
    ValueError, TypeError
        If the name is taken; if fn is not callable. If fn or its function raises, or the results are not those of the graph,
        a first call warns (BackendCompilerFailed) and NumPy runs it; a later call, and one with fullgraph=True, raises it.

    Examples
    --------
    >>> cinductor.register_backend("printing", lambda graph: print(graph) or graph.compile())
    """
    if not callable(fn):
        raise TypeError(wrong("register_backend", "fn", fn, "a function of a graph"))
    if name in list_backends():
        raise ValueError(f"there is a backend {name!r} already")
    return enter(Registration("backend", name, str(next(NUMBERS)), "", (functools.partial(function_of, name, fn),)))


def function_of(name: str, fn: Callable[[Graph], Callable[..., Any]], text: str) -> Callable[..., Any]:
    """The function that runs a graph with this text, by a registered backend."""
    try:
        run = fn(Graph(text))
        if not callable(run):
            raise TypeError(f"it returned {run!r}; a function of the graph's inputs is expected")
    except Exception as error:
        raise BackendCompilerFailed(name, error) from error
    return functools.partial(results_by, name, run)


def results_by(name: str, run: Callable[..., Any], *inputs: Any) -> tuple[Any, ...]:
    """The results of a call, as arrays that share no memory with each other or the inputs."""
    others = [x for x in inputs if isinstance(x, np.ndarray)]
    made: list[np.ndarray] = []
    try:
        for result in map(np.asarray, run(*inputs)):
            is_shared = any(np.may_share_memory(result, x) for x in [*others, *made])
            made.append(result.copy(order="K") if is_shared else result)
    except Exception as error:
        raise BackendCompilerFailed(name, error) from error
    return tuple(made)


def register_lowering(
    function: Any, fn: Callable[..., Any], *, name: str | None = None, version: str | None = None
) -> Registration:
    """Make compiled functions call fn where they call function.

    Parameters
    ----------
    function : callable
        A function or ufunc of NumPy, of another package or your own, recognized by identity where code calls it by a name
        (`np.add(x, y)`, not `x + y`). If NumPy runs a call, it calls this one.
    fn : callable
        A function in Python, which is captured like any other. Inside of it, function is the original.
    name : str, optional
        None: "lowering." and the function's name.
    version : str, optional
        As in `register_pass`.

    Returns
    -------
    Registration
        As in `register_pass`.

    Raises
    ------
    ValueError, TypeError
        If function has a lowering already; if function is not callable or fn is not written in Python.
    """
    if not callable(function) or not callable(fn):
        raise TypeError("register_lowering() takes two functions: what is called, and what is compiled instead")
    if not isinstance(fn, types.FunctionType):
        raise TypeError(wrong("register_lowering", "fn", fn, "a function written in Python"))
    if id(function) in functions.ROWS:
        raise ValueError(f"{function!r} has a lowering already: {functions.ROWS[id(function)][2].name!r}")
    called = name or f"lowering.{getattr(function, '__name__', type(function).__name__)}"
    row = Registration("lowering", called, version_of(fn, version), "", (function, fn))
    enter(row)
    functions.ROWS[id(function)] = (function, fn, row)
    return row
