"""Calls of what has no row: made on real values, at a break, or as a library call of the graph.

The latter are of library functions that only compute. Nobody knows beforehand what such a function returns. The first call of its kind is a break, and what
it gave is remembered: dtypes, shapes and the order in memory, by the function and what it was given.
Later captures make a library call of it, which checks that it gives the like; where it does not, the
captured function itself answers the call.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a
from ...interrupt import is_interrupt
from ...numpy.surface import DTYPES
from ..value.objects import MISSING, Method, Traced, find_in_class

if TYPE_CHECKING:
    from ..value.hooks import Hooks


DEBUGGERS = frozenset({"pdb", "ipdb", "pudb"})
LIFETIMES = frozenset({"weakref", "_weakref", "_weakrefset", "gc"})  # who see objects die
BOUND_KINDS = frozenset({types.MethodWrapperType, Method})


def name_of(f: Any) -> str:
    """How a report calls what is called."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__
    module = getattr(f, "__module__", None)
    owner = getattr(f, "__self__", None)
    if owner is not None and not is_a(owner, types.ModuleType | type):
        module = None if "." in name else type(owner).__name__
    return f"{module}.{name}" if module and module != "builtins" else name


def call_unknown(
    scope: Hooks,
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reason: str = "",
    is_pure: bool = False,
) -> Any:
    """A break: pending work is run, the call gets real values, its result is of unknown origin.
    is_pure: it does nothing but compute it.
    """
    stage = scope.stage
    opaque = call_of(f, args, kwargs)
    if opaque is not None and (made := make(scope, opaque)) is not None:
        return made
    module = getattr(f, "__module__", None)
    if is_a(module, str) and module.partition(".")[0] in DEBUGGERS:
        stage.abandon(f"calls {name_of(f)}")  # which is to stop in the user's own frame
    if sees_deaths(f, module):
        why = f"calls {name_of(f)}, which sees objects die"
        stage.abandon(why)
        scope.fall_back(why)
        return scope.call(f, *stage.materialise(args), **stage.materialise(kwargs))
    if is_pure:
        stage.tracer.note_break(reason)
    else:
        stage.stop(reason or f"calls {name_of(f)}", *args, *kwargs.values())
    args = tuple(stage.materialise(a) for a in args)
    kwargs = {k: stage.materialise(v) for k, v in kwargs.items()}
    owner = getattr(f, "__self__", None)
    if type(f) is types.MethodType or type(f) in BOUND_KINDS or type(f) is types.FunctionType:
        f = stage.materialise(f)
    elif owner is not None and stage.source_of(owner) is None:
        stage.materialise(owner)
    result = stage.outside(f, args, kwargs)
    if opaque is not None:
        learn(scope, opaque, (*args, *kwargs.values()), result)
    return scope.lifted_once(result)


def sees_deaths(f: Any, module: Any) -> bool:
    """Whether it matters when an object dies: what is captured may hold it for longer."""
    if is_a(f, type) and find_in_class(f, "__del__") is not MISSING:
        return True
    return f is sys.getrefcount or (is_a(module, str) and module in LIFETIMES)


def call_with_foreign(
    scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], foreign: str
) -> Any:
    """A call of NumPy's that is given an object which only it knows how to read."""
    return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)} with {foreign}")


def call_pure(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of the values it is given, which Python itself reads."""
    args = tuple(scope.use(a) for a in args)
    kwargs = {k: scope.use(v) for k, v in kwargs.items()}
    if any(type(a) is np.ndarray for a in args):  # ours are traced
        return call_unknown(scope, f, args, kwargs)
    return scope.stage.lift_array(f(*args, **kwargs))


# --- library calls ---


PURE = (
    *("scipy.special", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.fft"),
    *("scipy.spatial.distance", "numpy.polynomial"),
)
WRITING = frozenset({"out", "output"})
CONSTANTS = (bool, int, float, complex, str, type(None))
MOST = 1024  # calls that are remembered

Kind = tuple[type, np.dtype, tuple[int, ...], tuple[int, ...]]  # class, dtype, shape, memory order
_results: dict[Any, tuple[type | None, list[Kind]] | None] = {}


class OpaqueCall:
    """One call: its operands, and what else there is to know of it."""

    def __init__(self, f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
        self.f = f
        self.operands: list[Traced] = []
        self.plan = tuple(self.part(a) for a in args)
        self.named = {k: self.part(v) for k, v in kwargs.items()}
        self.kinds = [x.kind for x in self.operands]
        like = [(x.kind, x.dtype, x.shape, x.strides) for x in self.operands]
        self.key = (f, self.plan, tuple(sorted(self.named.items())), tuple(like))
        hash(self.key)

    def part(self, value: Any) -> Any:
        """A constant in a tuple of its own, or the number of an operand; TypeError for others."""
        if type(value) is Traced:
            if value.dtype not in DTYPES or any(type(n) is Traced for n in value.shape):
                raise TypeError
            self.operands.append(value)
            return len(self.operands) - 1
        if type(value) is tuple:
            return tuple, tuple(self.part(v) for v in value)
        if not is_a(value, CONSTANTS):
            raise TypeError
        return type(value), value, str(value)

    def run(self, arrays: Any) -> Any:
        """The call with these operands."""
        return self.f(
            *(self.real(p, arrays) for p in self.plan),
            **{k: self.real(p, arrays) for k, p in self.named.items()},
        )

    def real(self, part: Any, arrays: Any) -> Any:
        if type(part) is int:
            kind, array = self.kinds[part], arrays[part]
            return array if kind == "array" else array.item() if kind == "python" else array[()]
        if part[0] is tuple:
            return tuple(self.real(p, arrays) for p in part[1])
        return part[1]

    def freeze(self) -> list[Traced]:
        """The operands, which are forgotten: what is left may outlive the capture."""
        operands, self.operands = self.operands, []
        return operands


def call_of(f: Any, args: Any, kwargs: dict[str, Any]) -> OpaqueCall | None:
    """The call, if it is of a function that only computes, of arrays, numbers and constants."""
    module = getattr(f, "__module__", None)
    if not is_a(module, str) or not module.startswith(PURE) or WRITING & kwargs.keys():
        return None
    if type(f).__name__ not in (
        "function",
        "builtin_function_or_method",
        "_ArrayFunctionDispatcher",
    ):
        return None
    try:
        return OpaqueCall(f, args, kwargs)
    except TypeError:
        return None


def kind_of(value: Any) -> Kind | None:
    """What is remembered of a result; None for one that cannot be made in the graph."""
    cls = type(value)
    if cls is np.ndarray and value.dtype in DTYPES and value.size:
        order = sorted(range(value.ndim), key=lambda k: -value.strides[k])
        if value.transpose(order).flags.c_contiguous:
            return cls, value.dtype, value.shape, tuple(order)
    elif is_a(value, np.generic) and value.dtype in DTYPES:
        return cls, value.dtype, (), ()
    elif cls is float:
        return cls, np.dtype(float), (), ()
    return None


def kinds_of(result: Any) -> tuple[type | None, list[Kind]] | None:
    """The same of all results of a call, and the tuple that holds them."""
    is_tuple = type(result) is tuple
    kinds = [kind_of(r) for r in (result if is_tuple else (result,))]
    if not kinds or None in kinds or len({kind[1] for kind in kinds if kind}) != 1:
        return None  # they come in one array, of their dtype
    return (tuple if is_tuple else None), kinds  # type: ignore[return-value]


def learn(scope: Hooks, call: OpaqueCall, given: tuple[Any, ...], result: Any) -> None:
    """Remembers what a call has returned: the next capture is another one."""
    kinds = kinds_of(result)
    arrays = [a for a in given if type(a) is np.ndarray]
    results = result if type(result) is tuple else (result,)
    if any(np.may_share_memory(a, r) for a in arrays for r in results if type(r) is np.ndarray):
        kinds = None
    if len(_results) >= MOST:
        _results.clear()
    scope.stage.learned |= kinds is not None and call.key not in _results
    _results[call.key] = kinds


def make(scope: Hooks, call: OpaqueCall) -> Any:
    """The call as a node; None where it is not known what it returns, or nobody may check that."""
    known, t = _results.get(call.key), scope.stage.tracer
    if known is None or not scope.stage.may_check():
        return None
    container, kinds = known
    dtype = kinds[0][1]
    counts = [int(np.prod(kind[2])) for kind in kinds]
    operands = call.freeze()

    def fill(*arrays: Any) -> None:
        *given, out = arrays
        try:
            result = call.run(given)
        except Exception as error:  # the function itself is to raise it
            if is_interrupt(error):
                raise
            out[0] = 0
            return
        out[0] = kinds_of(result) == known
        at = 1
        if out[0]:
            for r, count, kind in zip(
                result if container else (result,), counts, kinds, strict=True
            ):
                out[at : at + count] = np.asarray(r).transpose(kind[3]).reshape(-1)
                at += count

    name = f"{call.f.__module__}.{call.f.__name__}"
    key = f"{call.plan} {call.named} {call.kinds} {known}"
    whole = t.extern(name, key, fill, operands, (1 + sum(counts),), dtype)
    t.check(whole[0] != 0, f"{name} returns arrays as it did")
    results, at = [], 1
    for (cls, _, shape, order), count in zip(kinds, counts, strict=True):
        part = t.reshape(whole[at : at + count], tuple(shape[k] for k in order))
        made = t.copy(part, "C")
        if cls is np.ndarray:
            made = t.permute(made, np.argsort(order).tolist()) if shape else made
        else:
            made = t.as_python(t.as_scalar(made)) if cls is float else t.as_scalar(made)
        results.append(made)
        at += count
    return tuple(results) if container else results[0]
