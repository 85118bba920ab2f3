"""How a call enters capture: its arguments become traced, its function the rewritten one."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..instance import is_a
from ..job import Job
from ..signature import KEYWORD_ONLY, VAR_KEYWORD, VAR_POSITIONAL, method_of
from .calls.calls import dispatch
from .calls.follow import bind
from .failure import Abandon
from .stage import Stage
from .syntax.names import MEASURES, Names
from .syntax.rewrite import NOT_FOUND, NotRewritable, rewrite
from .syntax.source import find_function
from .value.items import Octets, octets_in
from .value.objects import OPAQUE


def arguments_of(job: Job, bound: tuple[Any, ...]) -> list[Any]:
    """The values given, those of *args and **kwargs one by one."""
    values: list[Any] = []
    for kind, value in zip(job.kinds, bound, strict=True):
        if kind == VAR_POSITIONAL:
            values.extend(value)
        elif kind == VAR_KEYWORD:
            values.extend(value.values())
        else:
            values.append(value)
    return values


def call(job: Job, stage: Stage, bound: tuple[Any, ...]) -> Any:
    """Runs the function on traced arguments."""
    fn = job.fn
    if type(fn) is not types.FunctionType:
        target: Callable[..., Any] = functools_enter(stage, fn)
        stage.tracer.code = code_of_method(fn)
        scope = stage.hooks(stage, anchor)
        stage.depth = -1  # and the user's function 0
        positional, named = enter_arguments(job, stage, bound)
        stage.runs = True
        return dispatch(scope, target, tuple(positional), named)
    try:
        new = bind(stage, fn)
        stage.tracer.code = new.__code__
    except NotRewritable as reason:
        return refuse(job, str(reason))
    stage.known.setdefault(id(fn), (fn, OPAQUE))
    stage.functions[id(fn)] = (fn, new)
    positional, named = enter_arguments(job, stage, bound)
    stage.runs = True
    return new(*positional, **named)


def code_of_method(fn: Any) -> types.CodeType | None:
    """The code that capture runs for a method or a callable object."""
    method = method_of(fn)
    try:
        return None if method is None else rewrite(method).code
    except NotRewritable:
        return None


def refuse(job: Job, reason: str) -> Any:
    """A function that is not rewritten is Python's; where nobody could have known, a warning says so."""
    if reason == NOT_FOUND:
        reason += (
            " (a file or a notebook's cell has one; what is typed at >>> or made by exec has none),"
            " and its bytecode has what is not read back"
        )
        job.warn_once("source", f"{job.title} runs in NumPy: {reason}")
    raise Abandon(reason) from None


def anchor() -> None:
    """A function whose globals stand for none: callables that are not functions are called
    from it.
    """


def functools_enter(stage: Stage, fn: Any) -> Any:
    """A callable object, reached as a constant."""
    source = stage.source("const", fn)
    if is_a(fn, types.MethodType):
        stage.lift_guarded(fn.__func__, stage.source("attr", source, "__func__"))
        stage.lift_guarded(fn.__self__, stage.source("attr", source, "__self__"))
        return fn
    return stage.lift_guarded(fn, source)


def enter_arguments(
    job: Job, stage: Stage, bound: tuple[Any, ...]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as the function's frame gets them."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for i, value in enumerate(bound):  # sizes before ints, which may be equal to one
        if type(value) is np.ndarray:
            stage.lift_guarded(value, stage.source("arg", i))
    for i, (name, kind, value) in enumerate(zip(job.names, job.kinds, bound, strict=True)):
        source = stage.source("arg", i)
        if kind == VAR_POSITIONAL:
            positional += stage.items_of(value, source)
        elif kind == VAR_KEYWORD:
            named.update(zip(value, stage.items_of(value, source), strict=True))
        elif kind == KEYWORD_ONLY:
            named[name] = enter_argument(job.fn, stage, name, value, source)
        else:
            positional.append(enter_argument(job.fn, stage, name, value, source))
    return positional, named


def enter_argument(fn: Any, stage: Stage, name: str, value: Any, source: int) -> Any:
    """One argument; a bytes object that varies, and is only taken items of, is an array of them."""
    if type(value) is not bytes or type(fn) is not types.FunctionType or stage.symbols is None:
        return stage.lift_guarded(value, source)
    has_builtins = MEASURES.isdisjoint(fn.__globals__)
    is_taken_apart = has_builtins and name in octets_of(fn.__code__, fn.__qualname__)
    if not is_taken_apart or not stage.symbols.are_data(value, stage.place(source)):
        return stage.lift_guarded(value, source)
    stage.check(source, "type", bytes)
    array = stage.make(octets_in, source, value)
    return Octets(value, stage.lift_guarded(array, stage.source_of(array)))


@functools.lru_cache(maxsize=256)
def octets_of(code: types.CodeType, qualname: str) -> frozenset[str]:
    """The parameters of a function that it only takes items of."""
    node = find_function(code, qualname)
    is_free = MEASURES.isdisjoint((*code.co_cellvars, *code.co_freevars))
    return Names(node).octets() if node is not None and is_free else frozenset()
