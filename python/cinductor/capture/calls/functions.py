"""Calls of functions without a row: inlined from rewritten code, run on real values at a break, or made library calls
of the graph.

Library calls are the user's kernels, custom operations, and library functions that only compute. Their result
types are not known in advance. The first call of a kind is a break, and its result's dtypes, shapes and memory
order are recorded by function and arguments. Later captures make it a library call that checks its result against
this record. If the result differs, the original function runs the call.
"""

from __future__ import annotations

import inspect
import math
import os
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...base.interrupt import is_interrupt
from ...base.user_frame import PACKAGE
from ...extensions import custom_ops, kernels
from ...numpy.random import global_states
from ...numpy.surface import NotCaptured, array, careful, has_dtype, refuse
from ..call_state import Stage
from ..deaths import handles, sees_deaths
from ..objects import (
    BOUND,
    FREE_TYPES,
    MISSING,
    Traced,
    attribute,
    contains_traced,
    is_numpys,
    leaves_in,
)
from ..syntax.rewrite import NotRewritable, rewrite
from ..syntax.stage_calls import OWN_PREFIX, STAGE
from . import exporters

if TYPE_CHECKING:
    from ..kinds import Hooks


DEBUGGERS = frozenset({"pdb", "ipdb", "pudb"})


def name_of(f: Any) -> str:
    """The name of a callee in reports."""
    name = attribute(f, "__qualname__") or attribute(f, "__name__") or type(f).__name__
    module = attribute(f, "__module__")
    owner = attribute(f, "__self__")
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
    """A break: runs the pending graph, calls with real values, and gets a result of unknown origin. is_pure: the
    callee only computes.
    """
    stage = scope.stage
    opaque = call_of(f, args, kwargs)
    if opaque is not None and (made := make(scope, opaque)) is not None:
        return made
    if (array := exporters.converted(scope, f, args, kwargs)) is not MISSING:
        return array
    module = attribute(f, "__module__")
    if is_a(module, str) and module.partition(".")[0] in DEBUGGERS:
        stage.effects.abandon(f"calls {name_of(f)}")  # it must stop in the user's own frame
    if sees_deaths(f, module):
        why = f"calls {name_of(f)}, which sees objects die"
        stage.effects.abandon(why)
        scope.fall_back(why)
        return scope.call(f, *stage.materialise(args), **stage.materialise(kwargs))
    if is_pure:
        stage.tracer.note_break(reason)
    else:
        stage.effects.stop(reason or f"calls {name_of(f)}", *args, *kwargs.values())
    args = tuple(map(stage.materialise, args))
    kwargs = {k: stage.materialise(v) for k, v in kwargs.items()}
    owner = attribute(f, "__self__")
    if type(f) is types.MethodType or type(f) in BOUND or type(f) is types.FunctionType:
        f = stage.materialise(f)
    elif owner is not None and stage.sources.source_of(owner) is None:
        stage.materialise(owner)
    given = [] if opaque is None else [a for a in leaves_in((*args, *kwargs.values())) if type(a) is np.ndarray]
    before = None if opaque is None else state_around(given)
    result = stage.outside(f, args, kwargs)
    if opaque is not None and before is not None and state_around(given) == before:
        learn(scope, opaque, given, result)
    return scope.lifted_once(result)


def call_with_foreign(
    scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], foreign: str
) -> Any:
    """A call of NumPy with an object whose contents only NumPy can read."""
    return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)} with {foreign}")


def call_pure(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of its arguments only, which Python itself reads."""
    args = tuple(map(scope.use, args))
    kwargs = {k: scope.use(v) for k, v in kwargs.items()}
    if np.ndarray in map(type, args):  # cinductor's own are traced
        return call_unknown(scope, f, args, kwargs)
    return scope.stage.lift_array(f(*args, **kwargs))


# --- library calls ---


PURE = (
    *("scipy.special", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.fft"),
    *("scipy.spatial.distance", "numpy.polynomial"),
)
WRITING = frozenset({"out", "output"})
CONSTANTS = (bool, int, float, complex, str, type(None))
MOST = 1024  # calls whose results are recorded
MAX_COMPARED = 1 << 26  # bytes of arguments of a call, to see whether it writes to them

Kind = tuple[type, np.dtype, tuple[int, ...], tuple[int, ...]]  # class, dtype, shape, stride order
_results: dict[Any, tuple[type | None, list[Kind]] | None] = {}


class Operands:
    """The arguments of a library call: operands of the graph by number, and constants."""

    takes_tuples = False  # as operands

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.operands: list[Traced] = []
        self.plan = tuple(map(self.part, args))
        self.named = {k: self.part(v) for k, v in kwargs.items()}
        self.kinds = [x.kind for x in self.operands]

    def part(self, value: Any) -> Any:
        """The number of an operand; for a constant a tuple of its class and value."""
        if type(value) is Traced:
            refuse(not has_dtype(value.dtype), f"dtype {value.dtype}")
            self.operands.append(value)
            return len(self.operands) - 1
        if type(value) is tuple and self.takes_tuples:
            return tuple, tuple(map(self.part, value))
        refuse(contains_traced((value,)), "arrays inside of other objects")
        refuse(not is_a(value, CONSTANTS), f"an argument of {type(value).__name__}")
        return type(value), value, str(value)

    def real(self, part: Any, arrays: Sequence[Any]) -> Any:
        """The real argument for these operands."""
        if type(part) is int:
            kind, array = self.kinds[part], arrays[part]
            return array if kind == "array" else array.item() if kind == "python" else array[()]
        return tuple(self.real(p, arrays) for p in part[1]) if part[0] is tuple else part[1]

    def given(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All real arguments of the call."""
        named = {k: self.real(p, arrays) for k, p in self.named.items()}
        return tuple(self.real(p, arrays) for p in self.plan), named

    def freeze(self) -> list[Traced]:
        """Drop the operands: the remaining description may outlive the capture."""
        operands, self.operands = self.operands, []
        return operands


class OpaqueCall(Operands):
    """A call whose result type is unknown; TypeError if it cannot be a key."""

    takes_tuples = True

    def __init__(self, f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
        super().__init__(args, kwargs)
        self.f = f
        refuse(any(type(n) is Traced for x in self.operands for n in x.shape), "sizes that differ")  # type: ignore[comparison-overlap]
        like = [(x.kind, x.dtype, x.shape, x.strides) for x in self.operands]
        self.key = (f, self.plan, tuple(sorted(self.named.items())), tuple(like))
        hash(self.key)

    def run(self, arrays: Any) -> Any:
        """Make the call with these operands."""
        args, kwargs = self.given(arrays)
        return self.f(*args, **kwargs)


def call_of(f: Any, args: Any, kwargs: dict[str, Any]) -> OpaqueCall | None:
    """The call, if the function only computes and its arguments are arrays, numbers and constants."""
    module = attribute(f, "__module__")
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
    except (NotCaptured, TypeError):
        return None


def kind_of(value: Any) -> Kind | None:
    """The recorded type of a result; None if the graph cannot have such a result."""
    cls = type(value)
    if cls is np.ndarray and has_dtype(value.dtype) and value.size:
        order = sorted(range(value.ndim), key=lambda k: -value.strides[k])
        if value.transpose(order).flags.c_contiguous:
            return cls, value.dtype, value.shape, tuple(order)
    elif is_a(value, np.generic) and has_dtype(value.dtype):
        return cls, value.dtype, (), ()
    elif cls is float:
        return cls, np.dtype(float), (), ()
    return None


def kinds_of(result: Any) -> tuple[type | None, list[Kind]] | None:
    """The recorded types of all results of a call, and the class of the tuple that holds them."""
    is_tuple = type(result) is tuple
    kinds = [kind_of(r) for r in (result if is_tuple else (result,))]
    if not kinds or None in kinds or len({kind[1] for kind in kinds if kind}) != 1:
        return None  # they are returned in one array, with this dtype
    return (tuple if is_tuple else None), kinds  # type: ignore[return-value]


def parts_of(whole: Any, counts: Iterable[Any], at: int = 0) -> Iterator[Any]:
    """For an array that contains several results in sequence: each of them."""
    for count in counts:
        yield whole[at : at + count]
        at = at + count


def state_around(arrays: list[np.ndarray]) -> Any:
    """The contents of a call's arrays, and of the global generators, which a call that only computes leaves as they are. None
    if the arrays are too large to be compared.
    """
    if sum(a.nbytes for a in arrays) > MAX_COMPARED:
        return None
    return global_states(), [a.tobytes() for a in arrays]


def learn(scope: Hooks, call: OpaqueCall, arrays: list[np.ndarray], result: Any) -> None:
    """Record the types of a call's results, for the next capture."""
    kinds = kinds_of(result)
    results = result if type(result) is tuple else (result,)
    if any(np.may_share_memory(a, r) for a in arrays for r in results if type(r) is np.ndarray):
        kinds = None
    if len(_results) >= MOST:
        _results.clear()
    scope.stage.learned |= kinds is not None and call.key not in _results
    _results[call.key] = kinds


def make(scope: Hooks, call: OpaqueCall) -> Any:
    """The call as a node; None if its result type is unknown, or if no check is allowed."""
    known, t = _results.get(call.key), scope.stage.tracer
    if known is None or not scope.stage.tracer.may_check():
        return None
    container, kinds = known
    dtype = kinds[0][1]
    counts = [int(np.prod(kind[2])) for kind in kinds]
    operands = call.freeze()

    def fill(*arrays: Any) -> None:
        *given, out = arrays
        try:
            result = call.run(given)
        except Exception as error:  # the original function raises it
            if is_interrupt(error):
                raise
            out[0] = 0
            return
        out[0] = kinds_of(result) == known
        if out[0]:
            results = result if container else (result,)
            for r, part, kind in zip(results, parts_of(out[1:], counts), kinds, strict=True):
                part[:] = np.asarray(r).transpose(kind[3]).reshape(-1)

    name = f"{call.f.__module__}.{call.f.__name__}"
    key = f"{call.plan} {call.named} {call.kinds} {known}"
    whole = t.extern(name, key, fill, operands, (1 + sum(counts),), dtype)
    t.check(whole[0] != 0, f"{name} returns arrays as it did")
    results = []
    for (cls, _, shape, order), part in zip(kinds, parts_of(whole, counts, 1), strict=True):
        made = t.copy(t.reshape(part, tuple(shape[k] for k in order)), "C")
        if cls is np.ndarray:
            made = t.permute(made, np.argsort(order).tolist()) if shape else made
        else:
            made = t.as_python(t.as_scalar(made)) if cls is float else t.as_scalar(made)
        results.append(made)
    return tuple(results) if container else results[0]


# --- Python functions that are inlined ---


# Functions of Python's library that are captured from their source, and classes whose methods are.
INLINED_STANDARD = frozenset(
    {*(("dataclasses", name) for name in ("replace", "_replace", "fields", "_is_dataclass_instance")), ("collections", "UserList")}
)
# Modules of cinductor with functions that are captured like user code.
CAPTURED = (
    *("cinductor.distributed.collectives", "cinductor.extensions.control"),
    *(f"cinductor.numpy.{name}" for name in ("composites", "list_sources", "pcg", "philox", "twister")),
)
INLINED: set[Any] = set()  # functions of NumPy that are captured from their source
MAX_DEPTH = 60
STDLIB = os.path.dirname(os.__file__) + os.sep


def call_function(
    scope: Hooks, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Inline a function from its rewritten code."""
    stage = scope.stage
    bound = stage.functions.get(id(f))
    if (own := scope_in(f)) is not None:
        if own.stage is not stage:  # code of another stage, in which the variables that it reads and sets would not be recorded
            return call_unknown(
                scope, f, args, kwargs, f"calls {name_of(f)}, which an earlier call has made"
            )
        bound = (f, f)
    elif id(f.__code__) in stage.codes and stage.sources.source_of(f) is None:
        bound = (f, f)  # made in this call; its scope makes no calls of the stage
    elif bound is None:
        why = why_not_inlined(f, scope)
        if why is None and stage.depth >= MAX_DEPTH:
            why = "is nested too deeply"
        if why is not None:
            return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)}, which {why}")
        try:
            bound = (f, bind(stage, f))
        except NotRewritable as reason:
            why = f"is not followed: {reason}"
        if bound is None:
            return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)}, which {why}")
        stage.functions[id(f)] = bound
    stage.depth += 1
    stage.inlined += not scope.is_library
    waiting = len(stage.state.waiting)
    try:
        return bound[1](*args, **kwargs)
    finally:
        stage.depth -= 1
        del stage.state.waiting[waiting:]  # after an exception


def scope_in(f: types.FunctionType) -> Any:
    """The scope of a function of rewritten code, which may only be stored in a comprehension's function; or None."""
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    if STAGE in cells:
        return cells[STAGE].cell_contents
    for name, cell in cells.items():
        if name.startswith(OWN_PREFIX):
            return scope_in(cell.cell_contents)
    return None


def why_not_inlined(f: types.FunctionType, scope: Hooks) -> str | None:
    """The reason why a Python function is not inlined, or None."""
    module, file = f.__module__ or "", f.__code__.co_filename
    if getattr(f, "__cinductor_disabled__", False):
        return "is disabled: " + f.__cinductor_disabled__  # type: ignore[attr-defined]
    if is_numpys(module):
        if f in INLINED or is_numpys(scope.fn_globals.get("__name__")):
            return None
        return "is not captured"
    if f.__code__.co_flags & inspect.CO_GENERATOR and handles(f.__code__):
        return "runs code when its generator dies"
    if module in ("__main__", *CAPTURED):
        return None
    if file.startswith(PACKAGE):
        return "is cinductor's own"
    if (module, f.__qualname__.partition(".")[0]) in INLINED_STANDARD or f.__name__ in ("_replace", "_asdict", "_make"):
        return None
    if module.partition(".")[0] in exporters.CALLED_WHOLE:
        return "is called as it is"
    if file.startswith("<frozen") or (file.startswith(STDLIB) and "site-packages" not in file):
        return "is in the standard library"
    return None


def bind(stage: Stage, f: types.FunctionType) -> types.FunctionType:
    """The rewritten function for this call; NotRewritable with a reason."""
    rewritten = rewrite(f)
    stage.codes.update(rewritten.inside)
    new = rewritten.bind(f, types.CellType(stage.hooks(stage, f, rewritten.sites)))
    for field, values in guard_body(stage, f).items():
        setattr(new, field, values)
    return new


def guard_body(stage: Stage, f: types.FunctionType) -> dict[str, Any]:
    """Guard code and defaults of a function. Returns the defaults as the call gets them, if they differ from the
    function's.
    """
    sources = stage.sources
    source, entered = sources.source_of(f), {}
    if source not in sources.renewed and not is_numpys(f.__module__):
        sources.check_once(sources.source("const", f), "body", (f.__code__, f.__defaults__, f.__kwdefaults__))
    for field in ("__defaults__", "__kwdefaults__"):
        values = getattr(f, field)
        is_fixed = is_a(values, tuple) and source not in sources.renewed
        if not values or (is_fixed and all(type(v) in FREE_TYPES and type(v) is not types.FunctionType for v in values)):
            continue
        where = sources.source("const", f) if source is None or source < 0 else source
        entered[field] = enter_items(stage, values, sources.source("attr", where, field))
    return entered


def enter_items(stage: Stage, values: Any, source: int) -> Any:
    """Lift defaults: numbers among them are constants of the function, unless the next call may have other ones."""
    is_refreshed = stage.sources.rows[source][1] in stage.sources.renewed
    is_fixed = is_a(values, tuple) and not is_refreshed
    if is_fixed:
        stage.sources.check_once(source, "is", values)
    else:
        stage.sources.guard_length(values, source)

    def enter(key: Any, value: Any) -> Any:
        if type(value) in FREE_TYPES and not is_refreshed:
            if not is_fixed:
                stage.sources.check_once(stage.sources.source("item", source, key), "is", value)
            return stage.lifting.fix(value)
        return stage.lift_guarded(value, stage.sources.source("item", source, key))

    if is_a(values, dict):
        return {k: enter(k, v) for k, v in values.items()}
    return tuple(enter(i, v) for i, v in enumerate(values))


# --- functions that are replaced by others ---


ROWS: dict[int, tuple[Any, Callable[..., Any], Any]] = {}  # id of a function -> the function, its replacement, its registration


def instead_of(scope: Hooks, f: Any) -> Callable[..., Any] | None:
    """The replacement that is called in place of f, or None. Inside of the replacement f is the original."""
    row = ROWS.get(id(f))
    if row is None or not row[2].is_on or id(f) in scope.stage.lowering:
        return None
    return row[1]


def call_lowered(scope: Hooks, f: Any, other: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the replacement."""
    inside = scope.stage.lowering
    inside.add(id(f))
    try:
        return call_function(scope, other, args, kwargs)
    finally:
        inside.discard(id(f))


# --- the user's kernels and custom operations ---


def call_owned(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call as a node. If that is impossible the call is made directly, so that it raises its own exception."""
    stage = scope.stage
    lifted = tuple(stage.lift_nested(a) for a in args)
    named = {k: stage.lift_nested(v) for k, v in kwargs.items()}
    if not contains_traced(lifted) and not contains_traced(named.values()):
        return call_unknown(scope, f, args, kwargs)
    source = stage.sources.source_of(f)
    if source is not None and source >= 0:
        stage.sources.check_once(source, "is", f)
    make = make_kernel if type(f) is kernels.UserKernel else make_operation
    try:
        return make(scope, f, lifted, named)
    except NotCaptured as error:
        reason = f"calls {f.__name__}: {error}"
    except (TypeError, ValueError, _core.Error):
        reason = ""
    return call_unknown(scope, f, args, kwargs, reason)  # with the caller's own lists


# --- kernels --------------------------------------------------------------------------------------


def make_kernel(scope: Hooks, f: kernels.UserKernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a user kernel. Written arrays get new values, and missing ones are created. One library
    call per dtype."""
    stage, t = scope.stage, scope.stage.tracer
    given = f.arranged(args, kwargs)
    reads = [array(t, value) for value in given[: len(f.reads)]]
    writes = given[len(f.reads) :]
    for k, value in enumerate(writes):
        refuse(value is not None and type(value) is not Traced, "what it writes is no array of this call")
        refuse(value is not None and stage.effects.before_write(value), "arrays overlap, and one is written to")
        others = [w for w in writes[:k] if w is not None]
        refuse(value is not None and any(value.shares_storage(w) for w in others), "it writes twice to one array")
    sizes = f.sizes_of([*reads, *writes])
    is_on_device = runs_on_device(stage, f)
    made: list[Any] = [None] * len(writes)
    shapes = [f.shape_of(operand, sizes) for operand in f.writes]
    before = [
        t.full(shape, 0, kernels.DTYPES[o.dtype]) if w is None and is_on_device else w
        for w, shape, o in zip(writes, shapes, f.writes, strict=True)
    ]
    xs = [*reads, *(w for w in before if w is not None)]
    if is_on_device:
        xs = [x if x.flags_now.c_contiguous else t.copy(x, "C") for x in xs]
    for dtype in dict.fromkeys(operand.dtype for operand in f.writes):
        wanted = [k for k, operand in enumerate(f.writes) if operand.dtype == dtype]
        is_flat = len(wanted) > 1
        call: kernels.KernelCall = kernels.KernelCall(f, [w is not None for w in writes], wanted, is_flat)
        if is_on_device:
            call = kernels.DeviceKernelCall(f, wanted, is_flat, stage.runs_on)
        shape = (sum(math.prod(shapes[k]) for k in wanted),) if is_flat else shapes[wanted[0]]
        whole = t.extern(call.name, call.key, call, xs, shape, kernels.DTYPES[dtype])
        if is_flat:
            for k, part in zip(wanted, parts_of(whole, [math.prod(shapes[k]) for k in wanted]), strict=True):
                made[k] = t.reshape(part, shapes[k])
        else:
            made[wanted[0]] = whole
    for k, value in enumerate(writes):
        if value is not None:
            t.assign(value, made[k])
            made[k] = value
        elif len(made) > 1:
            made[k] = t.copy(made[k], "C")
    return made[0] if len(made) == 1 else tuple(made)


def runs_on_device(stage: Any, f: kernels.UserKernel) -> bool:
    """True if the function's device runs the kernel on device memory, which requires CUDA C++ and
    no complex arrays. The kernel is built for its device, so that errors are reported now."""
    is_gpu = stage.runs_on.partition(":")[0] == "cuda"
    is_on_device = is_gpu and not any(o.dtype[0] == "c" for o in (*f.reads, *f.writes))
    f.build(stage.runs_on if is_on_device else "cpu")
    return is_on_device


# --- custom operations ----------------------------------------------------------------------------


class OperationCall(Operands):
    """The library call of an operation, which returns its results in order."""

    def __init__(self, op: custom_ops.CustomOp, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        super().__init__(args, kwargs)
        self.op = op

    def __call__(self, *arrays: Any) -> None:
        """Returns the last result."""
        *operands, out = arrays
        args, kwargs = self.given(operands)
        shapes, dtypes = self.op.results_of(args, kwargs)
        results = self.op.run(args, kwargs, shapes, dtypes)
        if len(results) == 1:
            out[...] = results[0]
            return
        for result, part in zip(results, parts_of(out, [r.size for r in results]), strict=True):
            part[:] = result.reshape(-1)


def make_operation(scope: Hooks, f: custom_ops.CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One library call. If it raises, the original function runs the call."""
    t = scope.stage.tracer
    shapes, dtypes = f.results_of(args, kwargs)
    refuse(len(set(dtypes)) > 1, "results of several dtypes")
    refuse(not has_dtype(dtypes[0]), f"dtype {dtypes[0]}")
    call = OperationCall(f, args, kwargs)
    operands = call.freeze()
    key = f"{f.key} {call.plan} {call.named} {call.kinds}"
    if len(shapes) == 1:
        return careful(t, f"op_{f.__name__}", key, call, operands, shapes[0], dtypes[0])
    counts = [math.prod(shape) for shape in shapes]
    whole = careful(t, f"op_{f.__name__}", key, call, operands, (sum(counts),), dtypes[0])
    pairs = zip(parts_of(whole, counts), shapes, strict=True)
    return tuple(t.copy(t.reshape(part, shape), "C") for part, shape in pairs)
