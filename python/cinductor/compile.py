"""`compile`: what is called when no specialisation of a function fits, and everything that can go
wrong then.

The function returned is a C object that tries its specialisations by their guards. Capture
(`Job.miss`) runs when none fits. A failure of the compiler never reaches the caller: the function
itself runs instead.
"""

from __future__ import annotations

import copyreg
import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from . import _core
from .config import OPTIONS, config, nearest, refusal, resolve
from .dynamic import Profile, any_unbacked, profile_path
from .race import Race, likeness
from .user import PACKAGE, warn

F = TypeVar("F", bound=Callable[..., Any])
POSITIONAL_ONLY, POSITIONAL_OR_KEYWORD, VAR_POSITIONAL, KEYWORD_ONLY, VAR_KEYWORD = range(5)
STANCES = {"default": 0, "force_eager": 1, "eager_on_recompile": 2, "fail_on_recompile": 3}
COUNTERS = ("calls", "captures", "recompiles", "specializations", "pieces", "eager")
_functions: weakref.WeakSet[Any] = weakref.WeakSet()
_state = threading.local()


@overload
def compile(fn: F, **settings: Any) -> F: ...
@overload
def compile(fn: None = None, **settings: Any) -> Callable[[F], F]: ...


def compile(
    fn: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    backend: str | None = None,
    device: str | None = None,
    disable: bool = False,
    **unknown: Any,
) -> Any:
    """A function that does what fn does, compiled when it is first called.

    fn: any callable written with NumPy: a function, method, lambda, partial or callable object;
    without it a decorator is returned. Arrays of any shape and of the dtypes bool, (u)int8 to 64,
    float16 to 64, complex64 and 128 are compiled, alone or nested in tuples, lists, dicts, named
    tuples and dataclasses; calls with anything else run in NumPy.

    fullgraph: raise Unsupported, with line and reason, where Python would have to run
    between kernels.
    dynamic: whether one compile serves any size. None: the first call is compiled for its own sizes,
    and a size or int that another call shows to differ becomes a symbol; True: symbols from the
    first call on; False: never. See mark_dynamic, mark_static and mark_unbacked.
    mode: "default", "reduce-overhead", "max-autotune-no-cudagraphs" or "max-autotune"; the last three
    set options that have no effect yet.
    options: a dict of the options that `list_options()` describes.
    backend: one of `list_backends()`; None is the device's own. device: "cpu" or "cuda".
    disable: return a function that runs fn as it is.

    Raises TypeError for what is not callable and for settings of another type, ValueError for names
    and values that do not exist. The compiled function raises what fn raises.
    """
    check_settings(unknown, fullgraph=fullgraph, dynamic=dynamic, disable=disable)
    resolve(mode, options)
    check_backend(backend, device)
    settings: dict[str, Any] = {
        "fullgraph": bool(fullgraph),
        "dynamic": dynamic if dynamic is None else bool(dynamic),
        "mode": mode,
        "options": dict(options or {}),
        "backend": backend,
        "device": device,
    }
    if device not in (None, "cpu"):
        from .device import prepare

        prepare()
    if fn is None:
        return functools.partial(compile, **settings, disable=disable)
    if isinstance(fn, staticmethod | classmethod):
        return type(fn)(compile(fn.__func__, **settings, disable=disable))
    if isinstance(fn, property):
        accessors = (fn.fget, fn.fset, fn.fdel)
        own = (f if f is None else compile(f, **settings, disable=disable) for f in accessors)
        return type(fn)(*own, fn.__doc__)
    if isinstance(fn, _core.CompiledFunction):
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    if not callable(fn):
        raise TypeError(f"fn is {fn!r}; wanted: a function or another callable")
    if disable:
        return globals()["disable"](fn)
    return make(fn, settings)


SETTINGS = ("fullgraph", "dynamic", "mode", "options", "backend", "device", "disable")


def check_settings(unknown: dict[str, Any], **flags: Any) -> None:
    """Raises TypeError for a keyword that compile has not, and for a flag that is none."""
    for name, value in unknown.items():
        if name in OPTIONS:
            close = f"; it is an option: options={{{name!r}: {value!r}}}"
        else:
            close = nearest(name, (*SETTINGS, *OPTIONS))
        raise TypeError(f"compile() has no keyword argument {name!r}{close}")
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_) and (name != "dynamic" or value is not None):
            or_none = ", None" if name == "dynamic" else ""
            raise TypeError(f"{name} is {value!r}; allowed: True, False{or_none}")


def check_backend(backend: str | None, device: str | None) -> None:
    """Raises ValueError for names that no backend has."""
    if backend is None and device is None:
        return
    names: dict[str, list[str]] = {}
    for row in _core.backends():
        names.setdefault(row[0], []).append(row[1])
    if device is not None and device not in names:
        raise ValueError(refusal("device", device, names))
    own = names[device or "cpu"]
    if backend is not None and backend not in own:
        others = [d for d in names if backend in names[d]]
        hint = f" (device={others[0]!r} has it)" if others else ""
        of = f"backend of device {device or 'cpu'!r}"
        raise ValueError(refusal(of, backend, own) + hint)


def make(fn: Any, settings: dict[str, Any], is_users: bool = True) -> Any:
    """The compiled function of a callable; is_users: somebody has asked for it, and counts its
    calls.
    """
    from .capture import session as session  # now, so that the first call does not wait for it

    job = Job(fn, settings)
    names, kinds, defaults = signature_of(fn)
    compiled = _core.CompiledFunction(fn, names, kinds, defaults, job.miss)
    functools.update_wrapper(compiled, fn)
    compiled._cinductor_job = job  # type: ignore[attr-defined]
    if is_users:
        _functions.add(compiled)
    return compiled


def method_of(fn: Any) -> types.FunctionType | None:
    """The function that a bound method or a callable object calls with the object before the rest."""
    bound = type(fn) is types.MethodType
    method = fn.__func__ if bound else getattr(type(fn), "__call__", None)  # noqa: B004
    return method if type(method) is types.FunctionType else None


def signature_of(fn: Any) -> tuple[tuple[str, ...], tuple[int, ...], tuple[Any, ...]]:
    """Names, kinds and defaults of a function's parameters, but that of the object whose method it
    is; callables that Python does not write take anything.
    """
    if type(fn) is not types.FunctionType:
        method = method_of(fn)
        if method is not None and method.__code__.co_argcount > 0:
            with_self = signature_of(method)
            return with_self[0][1:], with_self[1][1:], with_self[2][1:]
        return ("args", "kwargs"), (VAR_POSITIONAL, VAR_KEYWORD), (_core.MISSING,) * 2
    code = fn.__code__
    n, m, k = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    names = list(code.co_varnames[: n + k])
    kinds = [POSITIONAL_ONLY] * m + [POSITIONAL_OR_KEYWORD] * (n - m) + [KEYWORD_ONLY] * k
    given = fn.__defaults__ or ()
    defaults: list[Any] = [_core.MISSING] * (n - len(given)) + list(given)
    defaults += [(fn.__kwdefaults__ or {}).get(name, _core.MISSING) for name in names[n:]]
    extra = n + k
    if code.co_flags & 4:
        names.insert(n, code.co_varnames[extra])
        kinds.insert(n, VAR_POSITIONAL)
        defaults.insert(n, _core.MISSING)
        extra += 1
    if code.co_flags & 8:
        names.append(code.co_varnames[extra])
        kinds.append(VAR_KEYWORD)
        defaults.append(_core.MISSING)
    return tuple(names), tuple(kinds), tuple(defaults)


class Job:
    """What is known of one function beside its specialisations."""

    def __init__(self, fn: Any, settings: dict[str, Any]) -> None:
        self.fn = fn
        self.settings = settings
        self.names, self.kinds, _ = signature_of(fn)
        self.profile = Profile()
        self.captures = self.misses = self.eager = 0
        self.is_at_limit = False  # compiled once more for any sizes
        self.leaves_open = True  # conditions on sizes are the program's
        self.breaks_by_itself = False  # Python is needed in a call, symbols or not
        self.reasons: list[str] = []  # why calls were captured again, the latest last
        self.plain: dict[Any, str] = {}  # calls that run in NumPy -> why
        self.races: dict[Any, Race] = {}  # by kinds of calls that need Python each time
        self.is_for_show = False  # its only call is to be explained
        self.why: str | None = None  # NumPy answered the latest call that was tried, or None
        self.made: dict[int, str] = {}  # id of a specialisation -> why it was made
        self.warned: set[str] = set()
        self.failed_checks = 0
        self.nodes = 0  # of the largest segment compiled
        self.plan: Any = None  # how its calls run between breaks: capture/driver.py
        self.owner: Any = None  # the plan whose piece it is
        self.last: Any = None  # the Outcome of the latest capture

    def forget(self) -> None:
        """As it was before the first call."""
        self.__init__(self.fn, self.settings)  # type: ignore[misc]

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return getattr(self.fn, "__qualname__", None) or type(self.fn).__qualname__

    @property
    def key(self) -> str:
        """Tells functions of one name apart."""
        code = getattr(self.fn, "__code__", None)
        where = "" if code is None else f" {code.co_filename}:{code.co_firstlineno}"
        return self.name + where

    def option(self, name: str) -> Any:
        """One option in force."""
        return self.settings["options"].get(name, getattr(config, name))

    @property
    def dynamic(self) -> bool | None:
        """Whether sizes are symbols: True, False or None, as calls have shown."""
        asked = self.settings["dynamic"]
        return True if asked is None and self.is_at_limit else asked

    def options(self) -> dict[str, Any]:
        """Options in force: the process's, then the mode's, then the function's."""
        return {**config.as_dict(), **resolve(self.settings["mode"], self.settings["options"])}

    def warn_once(self, key: str, message: str) -> None:
        """A warning that this function gives once."""
        if key not in self.warned:
            self.warned.add(key)
            warn(message)

    def miss(
        self, compiled: Any, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call that no specialisation fits."""
        try:
            return self.answer(compiled, bound, args, kwargs)
        except BaseException:  # without a name, whose deletion would undo the change (3.10)
            hide_our_frames(sys.exc_info()[1])
            raise

    def answer(
        self, compiled: Any, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The same, its traceback with frames of ours."""
        device = sys.modules.get("cinductor.device")
        if device is not None and any(map(device.holds, bound)):
            return device.call(self, args, kwargs or {})
        self.misses += 1
        if self.plain and not self.settings["fullgraph"] and (key := key_of(bound)) in self.plain:
            compiled.note_plain(key)
            return self.run_eager(args, kwargs)
        race = self.races.get(likeness(bound)) if self.races else None
        if race is not None and race.is_numpys_turn:
            return self.run_timed(race, bound, args, kwargs)
        if self.plan is not None and self.plan.driver is not None and not any_unbacked(bound):
            return self.run_driver(compiled, bound, args, kwargs or {})
        self.why = why = self.why_plain() or self.why_no_more(compiled, bound)
        if why is not None:
            return self.run_eager(args, kwargs)
        from .capture.session import run

        _state.captures = getattr(_state, "captures", 0) + 1
        self.captures += 1
        try:
            return run(self, compiled, bound, args, kwargs or {})
        finally:
            _state.captures -= 1
            self.keep_profile()

    def run_timed(self, race: Race, bound: Any, args: Any, kwargs: Any) -> Any:
        """The function itself, in its race with the compiled pieces."""
        key, began = key_of(bound), Race.clock()  # the call may change its arguments
        result = self.run_eager(args, kwargs)
        race.note_numpy(Race.clock() - began)
        if race.why is not None:
            self.remember(bound, race.why, key)
        return result

    def run_driver(self, compiled: Any, bound: Any, args: Any, kwargs: Any) -> Any:
        """The function in pieces, with Python between. When it has won the race, it is called
        without asking here.
        """
        plan, key = self.plan, key_of(bound)
        kind, began, captures = likeness(bound), Race.clock(), plan.captures()
        result = plan.run(args, kwargs)
        seconds = Race.clock() - began
        if plan.driver is None and plan.is_tried:
            self.give_up(bound, kind, "NumPy is quicker for all between steps that need Python")
        elif plan.is_tried:
            race = self.race(kind)
            race.note_pieces(seconds, plan.captures() != captures)
            if race.is_over and plan.driver is not None:
                compiled.note_driven(plan.bound_driver(), plan.mend, key)
        return result

    def run_eager(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """The function itself."""
        self.eager += 1
        return self.fn(*args, **(kwargs or {}))

    def why_no_more(self, compiled: Any, bound: tuple[Any, ...]) -> str | None:
        """Why a call that fits no specialisation is not compiled, or None. Notes which guard the
        latest specialisation failed by.
        """
        if not self.profile.is_loaded:
            self.profile.load(self.profile_path())
        count = len(compiled.specializations)
        if count == 0:
            return None
        self.reasons = [*self.reasons[-7:], compiled.specializations[0].why_not(bound) or "a guard"]
        limit, most = self.option("recompile_limit"), self.option("accumulated_recompile_limit")
        if count < limit and self.captures < most:
            if self.option("log_recompiles"):
                print(f"cinductor: {self.name} recompiles: {self.reasons[-1]}", file=sys.stderr)
            return None
        return self.at_limit(count, self.captures >= most)

    def at_limit(self, count: int, is_accumulated: bool) -> str | None:
        """What happens at a limit: why a call runs in NumPy, or None for one more compile."""
        on_limit = self.option("on_limit")
        many = (
            f"{self.captures} compiles, accumulated_recompile_limit"
            if is_accumulated
            else f"{count} specialisations, recompile_limit"
        )
        last = "; ".join(dict.fromkeys(reversed(self.reasons[-3:])))
        text = f"{self.name} has {many}. The latest calls did not fit, for {last}"
        advice = (
            "; cinductor.mark_dynamic or dynamic=True has one compile serve many sizes, and a larger "
            "recompile_limit keeps more"
        )
        if on_limit == "error":
            raise RuntimeError(text)
        again = on_limit == "dynamic" and self.settings["dynamic"] is None and not is_accumulated
        if again and not self.is_at_limit:
            self.is_at_limit = True
            self.warn_once("limit", f"{text}. It is compiled once more, for any sizes{advice}")
            return None
        self.warn_once("limit", f"{text}. Calls that fit none run in NumPy now{advice}")
        return "the limit of recompiles is reached"

    def keep(self, compiled: Any, specialization: Any) -> None:
        """Adds a specialisation, with the reason why it was made."""
        first = not compiled.specializations
        why = "any sizes, at the limit" if self.is_at_limit else self.reasons[-1:]
        self.made[id(specialization)] = "the first call" if first else "".join(why)
        compiled.add(specialization)
        self.trim(compiled)
        kept = {id(s) for s in compiled.specializations}
        self.made = {k: text for k, text in self.made.items() if k in kept}

    def trim(self, compiled: Any) -> None:
        """Drops the specialisations used longest ago that are over the limit."""
        for specialization in compiled.specializations[max(self.option("recompile_limit"), 1) :]:
            compiled.drop(specialization)

    def profile_path(self) -> str | None:
        """Where what is known of sizes is kept between processes."""
        if not self.option("cache"):
            return None
        return profile_path(self.fn, _core.cache_directory())

    def keep_profile(self) -> None:
        """Writes down what has been learnt of sizes."""
        if self.profile.is_changed:
            self.profile.save(self.profile_path())

    def why_plain(self) -> str | None:
        """Why nothing is captured just now, or None."""
        for kind, what in np.geterr().items():
            if what in ("raise", "call", "print", "log"):
                return f"numpy.errstate({kind}={what!r}) is in force"
        if (tracer := sys.gettrace()) is not None and is_debugger(tracer):
            return "a debugger looks at what runs"
        return None

    def run_plain(self, bound: Any, args: Any, kwargs: Any, why: str, remember: bool = True) -> Any:
        """Runs the function itself; such calls do so from now on."""
        self.why = why
        if self.settings["fullgraph"]:
            raise _core.Unsupported(f"{self.name}: {why} (fullgraph=True)")
        if remember:
            self.remember(bound, why)
        return self.fn(*args, **kwargs)

    def remember(self, bound: Any, why: str, key: Any = None) -> None:
        """Calls like this one run in NumPy. key: what it was before it changed its arguments."""
        if len(self.plain) > 256:
            self.plain.clear()
        self.plain[key or key_of(bound)] = why

    def race(self, kind: Any) -> Race:
        """What is known of a kind of calls that need Python each time."""
        if len(self.races) > 256:
            self.races.clear()
        return self.races.setdefault(kind, Race())

    def give_up(self, bound: Any, kind: Any, why: str) -> None:
        """Calls of this kind run in NumPy: their compiled pieces are not worth a race."""
        self.remember(bound, why)
        self.race(kind).why = why


def is_debugger(tracer: Any) -> bool:
    """Whether what traces this thread stops at lines, and shows values there."""
    debugger = sys.modules.get("bdb")
    owner = getattr(tracer, "__self__", None)
    if debugger is not None and isinstance(owner, debugger.Bdb):
        return True
    module = getattr(tracer, "__module__", None) or type(tracer).__module__
    return module.startswith(("pydevd", "_pydevd", "debugpy"))


def hide_our_frames(error: Any) -> None:
    """Takes the frames of this package out of an exception's traceback."""
    kept: list[Any] = []
    tb = error.__traceback__
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(PACKAGE):
            kept.append(tb)
        tb = tb.tb_next
    for i, entry in enumerate(kept):
        entry.tb_next = kept[i + 1] if i + 1 < len(kept) else None
    error.__traceback__ = kept[0] if kept else None


def key_of(bound: tuple[Any, ...]) -> Any:
    """What makes two calls alike, so that they run in NumPy for the same reason. pyext/replay/plain.c
    reads it.
    """

    def key(value: Any, depth: int) -> Any:
        cls = type(value)
        if cls is np.ndarray:
            return (cls, value.dtype, value.shape)
        if cls in (int, bool, str, type(None)):
            return (cls, value)
        if cls in (tuple, list) and depth < 4 and len(value) <= 256:
            return (cls, *(key(v, depth + 1) for v in value))
        if cls is dict and depth < 4 and len(value) <= 256:
            return (cls, *((type(k), str(k), key(v, depth + 1)) for k, v in value.items()))
        return cls

    return tuple(key(v, 0) for v in bound)


# --- the rest of the API --------------------------------------------------------------------------


def reduce_compiled(compiled: Any) -> Any:
    """Pickles by qualified name where that names the compiled function, else as (function,
    settings).
    """
    module = sys.modules.get(getattr(compiled, "__module__", None) or "")
    found: Any = module
    name = getattr(compiled, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is compiled and found is not None:
        return name
    return make, (compiled.__wrapped__, compiled._cinductor_job.settings)


copyreg.pickle(_core.CompiledFunction, reduce_compiled)  # type: ignore[arg-type]


def reset() -> None:
    """Forgets every specialisation of every compiled function; the disk cache stays."""
    for compiled in list(_functions):
        compiled.clear()
        compiled._cinductor_job.forget()


def stats() -> dict[str, Any]:
    """Counters of all compiled functions that are alive.

    calls; captures: calls that were traced; recompiles: captures after a function's first;
    specializations: those kept; pieces: into which a function was split where it breaks; eager: calls that ran in NumPy because nothing fitted, nothing could
    be compiled, or a check in the program failed. functions: the same by name, with `reasons`, why the latest captures were needed.
    """
    total = dict.fromkeys(COUNTERS, 0)
    functions: dict[str, dict[str, Any]] = {}
    for compiled in list(_functions):
        job = compiled._cinductor_job
        row = {
            "calls": compiled.calls,
            "captures": job.captures,
            "recompiles": max(job.captures - 1, 0),
            "specializations": len(compiled.specializations),
            "pieces": 0 if job.plan is None else len(job.plan.pieces),
            "eager": job.eager + compiled.failed_checks + compiled.plain_calls,
        }
        for name, count in row.items():
            total[name] += count
        known = functions.setdefault(job.name, {**dict.fromkeys(row, 0), "reasons": []})
        for name, count in row.items():
            known[name] += count
        known["reasons"] += job.reasons
    return {**total, "functions": functions}


def disable(fn: Any = None, *, reason: str | None = None) -> Any:
    """A function that capture never looks into: it is called with real values, between kernels.

    Also a decorator. reason is what `explain` reports.
    """
    if fn is None:
        return functools.partial(disable, reason=reason)
    if isinstance(fn, _core.CompiledFunction):
        fn = fn.__wrapped__  # type: ignore[attr-defined]

    @functools.wraps(fn)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    disabled.__cinductor_disabled__ = reason or "no reason given"  # type: ignore[attr-defined]
    return disabled


def is_compiling() -> bool:
    """Whether a function is being captured by this thread; True in the function itself then."""
    return getattr(_state, "captures", 0) > 0


class set_stance:  # noqa: N801  (used like a function)
    """What compiled functions do in this process, from now on or inside a with statement or a
    function.

    "default": compile. "force_eager": run in NumPy. "eager_on_recompile": use what is compiled,
    run anything else in NumPy. "fail_on_recompile": raise RuntimeError instead.
    Raises ValueError for another name.
    """

    def __init__(self, stance: str) -> None:
        if not isinstance(stance, str) or stance not in STANCES:
            raise ValueError(refusal("stance", stance, STANCES))
        self.stance = stance
        self.before = _core.set_stance(STANCES[stance])

    def __enter__(self) -> None:
        _core.set_stance(STANCES[self.stance])

    def __exit__(self, *error: Any) -> None:
        _core.set_stance(self.before)

    def __call__(self, fn: F) -> F:
        _core.set_stance(self.before)  # a decorator only sets it for the function's calls

        @functools.wraps(fn)
        def staged(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return staged  # type: ignore[return-value]
