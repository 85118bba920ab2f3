"""`compile` and its settings, and functions about all compiled functions: counters, `reset`."""

from __future__ import annotations

import atexit
import copyreg
import functools
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from . import _core
from .base import lazy
from .base.class_lookup import is_a
from .base.user_frame import wrong
from .builds.background import beside
from .calls import economy
from .calls.job import Job
from .config import OPTIONS, Mode, config, nearest, refusal, resolve, user_backend
from .diagnosis import stats_types

if TYPE_CHECKING:
    from .arrays.machine import Device
    from .base.option_types import Options

F = TypeVar("F", bound=Callable[..., Any])
BOOLS = (bool, np.bool_)
DESCRIPTORS = (staticmethod, classmethod, property)
COPIED = tuple(name for name in functools.WRAPPER_ASSIGNMENTS if name != "__annotations__")  # reading those makes a dict, and C reads the original's


@overload
def compile(
    fn: F,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    mode: Mode | None = ...,
    options: Options | None = ...,
    backend: str | None = ...,
    device: str | Device | None = ...,
    disable: bool = ...,
) -> F: ...
@overload
def compile(
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    mode: Mode | None = ...,
    options: Options | None = ...,
    backend: str | None = ...,
    device: str | Device | None = ...,
    disable: bool = ...,
) -> Callable[[F], F]: ...


def compile(
    fn: Any = ...,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Options | dict[str, Any] | None = None,
    backend: str | None = None,
    device: str | Device | None = None,
    disable: bool = False,
    **unknown: Any,
) -> Any:
    """Return a function that does what fn does, and is compiled when it is called.

    Arrays of any shape with dtypes bool, (u)int8 to 64, float16 to 64, complex64 and 128 are compiled, alone or nested in tuples, lists,
    dicts, named tuples and dataclasses. Calls with other arguments run in NumPy. The compiled function raises what fn raises.

    Parameters
    ----------
    fn : callable, optional
        A function, method, lambda, partial or callable object. Without it a decorator is returned.
    fullgraph : bool
        Raise `Unsupported`, with line and reason, if Python would have to run between kernels, and the compiler's own error
        (CompileError, LoweringError, PassFailed, ...) if it fails.
    dynamic : bool, optional
        None: the first call is compiled for its own sizes, and a size or int that differs later becomes a symbol. True: symbols
        from the first call on. False: never. See `mark_dynamic`, `mark_static` and `mark_unbacked`.
    mode : str, optional
        "auto" (NumPy runs calls while a program is built), "lazy" (builds what calls have paid for), "now" (builds first),
        "reduce-overhead" (sets the option `graphs`), "max-autotune-no-cudagraphs" (`max_autotune`), "max-autotune" (both).
    options : dict, optional
        Options of `list_options()`.
    backend : str, optional
        One of `list_backends()`; None: the best of the device.
    device : str or Device, optional
        "cpu", "cuda", "cuda:1", the name of a registered device, or one of `devices()`.
    disable : bool
        Return a function that runs fn unchanged.

    Returns
    -------
    CompiledFunction
        The compiled function; without fn a decorator. A staticmethod, classmethod or property gets another of its kind.

    Raises
    ------
    TypeError, ValueError
        If fn is not callable or a setting has another type; for names and values that do not exist.
    """
    check_settings(unknown, fullgraph=fullgraph, dynamic=dynamic, disable=disable)
    if device is not None:
        from .arrays.machine import Device, check_place, split_requested

        device, index = split_requested(device)
        options = options if index is None else {**(options or {}), "device_index": index}
    check_backend(backend, device)
    resolved = resolve(mode, options)  # type: ignore[arg-type]
    if device is not None:
        check_place(Device(device), resolved.get("numerics", config.numerics))
    settings: dict[str, Any] = {
        "fullgraph": bool(fullgraph),
        "dynamic": dynamic if dynamic is None else bool(dynamic),
        "mode": mode,
        "options": dict(options or {}),
        "backend": backend,
        "device": device,
    }
    if device not in (None, "cpu"):
        from .arrays.libraries import prepare

        prepare()
    if fn is ... or is_a(fn, DESCRIPTORS):
        return with_functions(fn, functools.partial(compile, **settings, disable=disable))
    if is_a(fn, _core.CompiledFunction):
        fn = fn.fn
    if not callable(fn) or is_a(fn, type):
        raise TypeError(f"compile() expects a function or another callable that is not a class, got {words_of(fn)}")
    if disable:
        return globals()["disable"](fn)
    return make(fn, settings)


def with_functions(fn: Any, compiled: Callable[[Any], Any]) -> Any:
    """A staticmethod, classmethod or property whose functions are compiled; without fn the decorator."""
    if fn is ...:
        return compiled
    if not is_a(fn, property):
        return type(fn)(compiled(fn.__func__))
    own = (f if f is None else compiled(f) for f in (fn.fget, fn.fset, fn.fdel))
    return type(fn)(*own, fn.__doc__)  # type: ignore[call-arg]


# Keywords of Numba's and JAX's decorators, with what to write here.
KEYWORDS_OF_OTHERS = {
    "nopython": "fullgraph=True raises where Python would have to run",
    "forceobj": "code that cannot be compiled runs in Python by itself",
    "parallel": "loops run on several threads by themselves; options={'threads': 1} has one",
    "boundscheck": "indices are checked, as in NumPy",
    "looplift": "loops are compiled where the code around them is not, without a setting",
    "target": "device='cuda' runs on a GPU",
    "abstracted_axes": "sizes that vary become symbols; cinductor.mark_dynamic(x, axis) declares one",
    "nogil": "the interpreter's lock is released while kernels run, without a setting",
    "fastmath": "options={'numerics': 'fast'} allows other bits",
    "error_model": "float warnings follow numpy.errstate, as in NumPy",
    "locals": "types follow from the arguments of each call",
    "inline": "functions that are called are captured with their caller",
    "static_argnums": "texts, bools and objects are part of a program by themselves; ints are until they differ",
    "static_argnames": "texts, bools and objects are part of a program by themselves; ints are until they differ",
    "donate_argnums": "arguments that the function writes to are written in place",
    "signature": "cinductor.warm(f, ...) compiles before the first call",
}
SETTINGS = ("fullgraph", "dynamic", "mode", "options", "backend", "device", "disable")


def words_of(value: Any) -> str:
    """The text about a value that is no function, with a hint."""
    if is_a(value, type):
        return f"the class {value.__qualname__}; compile its methods, or an object with __call__"
    text = repr(value)
    if value is None:
        text += ". A decorator with settings is compile(mode=..., options=...), without a function"
    if is_a(value, np.ndarray | np.generic | int | float | complex):
        text = f"{type(value).__name__}. To compile f and call it, write compile(f)(x), not compile(f(x))"
    return text if len(text) < 200 else f"a {type(value).__name__}"


def check_settings(unknown: dict[str, Any], **flags: Any) -> None:
    """Raise TypeError for an unknown keyword of compile, and for a flag that is not a bool."""
    for name, value in unknown.items():
        if name in OPTIONS and value == OPTIONS[name].default:
            close = f"; it is an option, and {value!r} is its default"
        elif name in OPTIONS:
            close = f"; it is an option: options={{{name!r}: {value!r}}}"
        elif name in KEYWORDS_OF_OTHERS:
            close = f"; {KEYWORDS_OF_OTHERS[name]}"
        else:
            close = nearest(name, (*SETTINGS, *OPTIONS))
        raise TypeError(f"compile() has no keyword argument {name!r}{close}")
    for name, value in flags.items():
        if not is_a(value, BOOLS) and (name != "dynamic" or value is not None):
            or_none = ", None" if name == "dynamic" else ""
            raise TypeError(f"{name} is {value!r}; allowed: True, False{or_none}")


def check_backend(backend: str | None, device: str | None) -> None:
    """Raise ValueError for unknown backends and devices."""
    if (backend is None and device is None) or (device in (None, "cpu") and user_backend(backend)):
        return
    names: dict[str, list[str]] = {}
    for row in _core.backend_names():
        names.setdefault(row[0], []).append(row[1])
    if device is not None and device not in names:
        raise ValueError(refusal("device", device, names) if device != "gpu" else "there is no device 'gpu'; did you mean 'cuda'?")
    own = names[device or "cpu"]
    if backend is not None and backend not in own:
        others = [d for d in names if backend in names[d]]
        hint = f" (device={others[0]!r} has it)" if others else ""
        of = f"backend of device {device or 'cpu'!r}"
        raise ValueError(refusal(of, backend, own) + hint)


def make(fn: Any, settings: dict[str, Any], is_users: bool = True) -> Any:
    """The compiled function of a callable. is_users: it was requested by the user, so its calls are counted."""
    job = Job(fn, settings)
    if economy.SESSION not in sys.modules and job.device == "cpu" and job.option("economy") == "now" and not job.has_saved:
        # the first call is captured: it does not wait; with a device it overlaps with opening that
        lazy.load("capture.session")
    compiled = _core.CompiledFunction(fn, job.names, job.kinds, job.defaults, job.miss, job.renew)
    functools.update_wrapper(compiled, fn, COPIED)
    if is_a(fn, functools.partial):  # inspect looks through it
        inner: Any = fn
        while is_a(inner, functools.partial):
            inner = inner.func
        functools.update_wrapper(compiled, inner, ("__name__", "__code__", "__defaults__", "__kwdefaults__"), ())
        compiled.__wrapped__ = fn  # type: ignore[attr-defined]
    compiled._cinductor_job = job  # type: ignore[attr-defined]
    if is_users:
        compiled.is_counted = True
        stats_types.alive[id(compiled)] = weakref.ref(compiled)
    return compiled


def for_show(compiled: Any) -> Any:
    """A job for `explain`, which is compiled in every stance."""
    compiled.stance = -1
    job = compiled._cinductor_job
    job.is_for_show = True
    return job


# --- compiled functions, all of them --------------------------------------------------------------


def reduce_compiled(compiled: Any) -> Any:
    """Pickle by qualified name if that names the compiled function, else as (function, settings)."""
    module = sys.modules.get(getattr(compiled, "__module__", None) or "")
    found: Any = module
    name = getattr(compiled, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is compiled and found is not None:
        return name
    return make, (compiled.__wrapped__, compiled._cinductor_job.settings)


copyreg.pickle(_core.CompiledFunction, reduce_compiled)


def functions() -> list[Any]:
    """All compiled functions that are alive."""
    found = [function() for function in list(stats_types.alive.values())]
    return [function for function in found if function is not None]


@atexit.register
def write_notes() -> None:
    """Tell later processes what pays."""
    for compiled in functions():
        job = compiled._cinductor_job
        if job.economy.notes is not None:
            job.economy.notes.write(job)


def reset() -> None:
    """Discard the programs of every compiled function, and the counters of `stats`.

    The next call of each function is captured again. The disk cache stays, so that known kernels are loaded from it.
    """
    stats_types.forget(functions())
    for compiled in functions():
        compiled.clear()
        compiled._cinductor_job.forget()


def stats() -> stats_types.Stats:
    """Return the counters of compiled functions, since the process began or `reset` was called.

    Returns
    -------
    dict
        calls. captures: calls that were traced. recompiles: captures after a function's first. specializations: programs that are
        kept. pieces: parts of functions that were split at breaks. eager: calls that ran in NumPy: because of a stance, no
        program was right, the function could not be compiled, NumPy was faster, or a check failed. replayed: parts of calls
        that a device replayed (option `graphs`). The totals include functions that no longer exist. economy: seconds that calls
        took in NumPy while they paid (`plain`), of captures (`captured`) and of builds beside calls (`built`), of the functions
        alive. functions: those alive by name, with `reasons` (of the latest captures), `numpy` (why NumPy runs calls) and `races` (plans timed under
        max_autotune, with times and winners).
    """
    total, spent = dict(stats_types.gone), dict.fromkeys(stats_types.SPENT, 0.0)
    by_name: dict[str, dict[str, Any]] = {}
    for compiled in functions():
        job, found = compiled._cinductor_job, stats_of(compiled)
        empty: dict[str, Any] = {name: [] if type(value) is list else 0 for name, value in found.items()}
        known = by_name.setdefault(job.name, {**empty, "economy": dict.fromkeys(spent, 0.0)})
        for name, seconds in found.pop("economy").items():
            spent[name] += seconds
            known["economy"][name] += seconds
        for name, value in found.items():
            known[name] += value
            if type(value) is int:
                total[name] += value
    return {**total, "economy": spent, "functions": by_name}  # type: ignore[typeddict-item]


def stats_of(compiled: Any) -> dict[str, Any]:
    """The counters of one compiled function, the seconds of its economy, and its reasons and races."""
    job = compiled._cinductor_job
    races: list[Any] = []
    if any(s.autotune_rows for s in compiled.specializations) or job.unraced:
        from .builds.racing import lines_of

        races = lines_of(job, compiled.specializations)
    economy = {name: float(seconds) for name, seconds in job.economy.summary(compiled.accounts()).items()}
    reasons = {"reasons": list(job.reasons), "races": races, "numpy": job.reasons_for_numpy(compiled)}
    return {**stats_types.row_of(compiled), "economy": economy, **reasons}


def names_of(compiled: Any) -> list[str]:
    """The names that dir() lists for a compiled function: Python's names, the methods for users, and attributes of the original."""
    own = [name for name in vars(compiled) if not name.startswith("_cinductor")]
    return sorted({*dir(compiled.__wrapped__), *own, "explain", "lower", "stats", "warm", "__wrapped__"})


def disable(fn: Any = ..., *, reason: str | None = None) -> Any:
    """Mark a function that capture must not trace into: it is called with real values, between kernels. Also a decorator.

    Parameters
    ----------
    fn : callable
        The function.
    reason : str, optional
        Reported by `explain`.

    Returns
    -------
    callable
        A function that does what fn does; without fn a decorator.

    Raises
    ------
    TypeError
        If fn is not callable.
    """
    if fn is ...:
        return functools.partial(disable, reason=reason)
    if is_a(fn, _core.CompiledFunction):
        fn = fn.fn
    if not callable(fn):
        raise TypeError(wrong("disable", "fn", fn, "a function or another callable"))

    @functools.wraps(fn)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    disabled.__cinductor_disabled__ = reason or "no reason given"  # type: ignore[attr-defined]
    return disabled


def wait() -> None:
    """Wait until no build is queued: then the next call of each function that has paid runs its program. It builds that
    itself if the modules that capture were imported beside the function's calls until now.

    Examples
    --------
    >>> f = cinductor.compile(lambda x: x * 2 + 1)
    >>> f(np.arange(3.0))
    array([1., 3., 5.])
    >>> cinductor.wait()
    """
    beside.wait()
    economy.opening.was_awaited |= economy.opening.is_done
