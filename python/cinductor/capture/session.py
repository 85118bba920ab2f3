"""Runs one captured call from its arguments to its result, and handles failures."""

from __future__ import annotations

import functools
import os
import time
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base import interrupt, signals, user_frame
from ..base.class_lookup import is_a
from ..base.region_outcome import IN_PYTHON, RegionOutcome
from ..base.signals import Abandon, OverBudget, Raised, Replan, Signal, Suspect
from ..calls import economy, saved, watching
from ..calls.budget import Allowance, is_little, is_worth_pieces, needs_no_break
from ..calls.dynamic import Symbols, UnbackedForced, any_unbacked
from ..calls.job import Job, capturing
from ..config import user_backend
from ..errors import ERRORS, ConstraintViolation
from ..extensions import HEURISTICS, heuristics
from .assumptions import REPLANS, Assumptions, text_of, why_failed
from .backend import choose_backend, warn_of_no_compiler, without_compiler
from .call_state import Stage, is_internal_error, limit
from .calls import builtins as builtins  # registers the table of calls
from .entry import arguments_of, call, finish, place_of_function
from .hooks.scope import PlainScope, Scope
from .objects import why_not_argument
from .pieces import driver

MAX_WORDS = 600  # characters of a compiler message
MAX_LEARNING = 8  # captures of one function that may record something for the next one
# Code whose lines are not the user's. NumPy's own functions are traced into.
LIBRARIES = (os.path.dirname(np.__file__) + os.sep, user_frame.PACKAGE)


class Outcome:
    """The outcome of a capture, for `explain`."""

    def __init__(self, job: Job, stage: Stage) -> None:
        tracer = stage.tracer
        self.regions = [*stage.regions.outcomes.values()]
        self.breaks = list(tracer.breaks)
        self.replans: list[str] = []  # assumptions that earlier captures gave up, in order
        if stage.why_again is not None:
            file, line = place_of_function(job.fn)
            self.breaks.append(types.SimpleNamespace(reason=stage.why_again, file=file, line=line))  # type: ignore[arg-type]
        self.flushes = tracer.flushes
        self.learned = stage.learned
        self.program = tracer.last_program
        # Of the latest compile; a graph that this process has compiled before is not compiled again.
        self.info = dict(tracer.info) or {"reused": True}
        self.specialization: Any = None
        self.failed_check = False  # the program ran and a check failed
        self.seconds = 0.0  # of the call
        self.work = 0  # element-operations on the call's arrays, approximately
        self.is_little = False  # little array work compared with the cost of Python in each call
        is_early = stage.tracer.has_fallen_back and not tracer.is_inexact
        self.break_budget = tracer.useful if is_early else None
        self.why_over = stage.why_over  # capture took too long
        self.plain, self.unbuilt = tracer.plain, tracer.unbuilt  # estimated seconds
        self.info.update(plain_ms=1e3 * tracer.plain, build_ms=1e3 * tracer.price)


def run(job: Job, compiled: Any, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Capture a call and run it; add a specialisation if Python need not run again."""
    if (why := why_not_captured(job, bound)) is not None:
        return job.run_plain(bound, args, kwargs, why)
    backend = choose_backend(job)
    try:
        return guarded(job, compiled, bound, args, kwargs, backend)
    except Retry as failure:
        error = failure.error
    if is_a(error, _core.Unsupported):
        return job.run_plain(bound, args, kwargs, str(error))
    device = job.settings["device"] or "cpu"
    if device != "cpu" and any(map(_core.is_device_array, arguments_of(job, bound))):
        raise error
    if device != "cpu" and is_a(error, _core.DeviceError | _core.CompilerNotFound):
        error = _core.DeviceError(why_not_usable(job, error))
        if os.environ.get("CINDUCTOR_DEVICE_FALLBACK") != "cpu":
            raise not_usable(job, error) from None
    if job.settings["fullgraph"]:
        raise error if is_a(error, _core.CinductorError) else _core.InternalError(describe(error))
    if device == "cpu" and backend != "interp" and not is_a(error, _core.PassFailed):
        has_none = is_a(error, _core.CompilerNotFound)
        try:
            result = guarded(job, compiled, bound, args, kwargs, without_compiler(job) if has_none else "interp")
        except Retry as failure:
            error = failure.error
        else:
            if has_none:
                warn_of_no_compiler(job, str(error))
            elif job.owner is None or not _core.has_warned_of_compiler():
                job.warn_once("compiler", f"{job.name} is run by the interpreter backend, without a speed-up: {describe(error)}")
            return result
    tell(job, bound, error)
    return job.run_eager(args, kwargs)


def why_not_captured(job: Job, bound: Any, has_columns: bool = True) -> str | None:
    """The reason why a call with these arguments runs in NumPy, or None."""
    whys = (why_not_argument(value, has_columns) for value in arguments_of(job, bound))
    return next((f"an argument is {why}" for why in whys if why), None)


def why_not_usable(job: Job, error: Exception) -> str:
    """The backend's reason why it cannot be used (it checks the device before its compiler); else the error."""
    asked = (job.settings["device"], job.settings["backend"])
    rows = [(name, why) for _, name, _, why in _core.backends(asked[0])]
    return next((why for name, why in rows if why and name == (asked[1] or rows[0][0])), str(error))


def not_usable(job: Job, error: Exception) -> Exception:
    """The message that the requested device cannot be used: what was tried, and advice."""
    device = job.settings["device"]
    tried = ""
    if device == "cuda":
        folder = os.environ.get("CINDUCTOR_NVRTC") or "the loader's folders"
        tried = (
            f". Tried: the driver as libcuda.so.1 in the loader's folders, NVRTC in {folder}. An NVIDIA "
            "driver and `pip install cinductor[cuda]` have both"
        )
    advice = "device='cpu' needs none, and with CINDUCTOR_DEVICE_FALLBACK=cpu NumPy runs the call"
    return _core.DeviceError(f"{job.name} cannot run on device {device!r}: {error}{tried}; {advice}")


def guarded(job: Job, compiled: Any, bound: Any, args: Any, kwargs: Any, backend: str) -> Any:
    """Run the call with one backend; raise Retry if it failed before anything happened."""
    allowance = allowance_of(job, compiled, bound)
    account = allowance.account
    if allowance.used and allowance.left(False) <= 0 and not job.settings["fullgraph"]:
        return job.run_eager(args, kwargs) if account is None else job.run_noted(account, args, kwargs)
    instead: Any
    try:
        return attempt(job, compiled, bound, args, kwargs, backend, allowance)
    except signals.Deferred as asked:
        instead, why = functools.partial(wait_for_build, account, asked.of), str(asked)
    except Suspect as reason:
        job.note_flags(reason.args[0])
        instead, why = Job.run_once, "floating-point flags"
    except signals.NotPaid as reason:
        instead, why = functools.partial(postpone, account), str(reason)
    except OverBudget as reason:
        instead, why = give_up, str(reason)
    except Abandon as reason:
        instead, why = Job.run_plain, str(reason)
    except _core.CheckFailed as reason:
        instead, why = answer, str(reason)
    except Raised as failure:
        if signals.is_mistake(failure.error):
            raise Retry(failure.error) from None  # type: ignore[arg-type]
        instead, why = raise_again, f"it raised {describe(failure.error)}"
    was_kept = instead is answer and job.last.specialization is not None
    if instead is not Job.run_once and not was_kept and type(instead) is not functools.partial:
        job.economy.note_capture(account, False)
    # Not inside of the handlers, so that the function's exceptions get no internal context.
    return instead(job, bound, args, kwargs, why)


def allowance_of(job: Job, compiled: Any, bound: Any) -> Allowance:
    """The time that captures of a call may take."""
    pays = job.pays
    account = compiled.account(bound) if pays and job.owner is None else None
    return Allowance(job.option("capture_limit"), pays, account, functools.partial(job.economy.bound_of, job, account, bound), capturing.used.get(id(job), 0.0))


def postpone(account: Any, job: Job, bound: Any, args: Any, kwargs: Any, why: str) -> Any:
    """Capture takes more than has been paid for it: until then NumPy runs the calls."""
    job.why = why
    job.economy.note_capture(account, False)
    return job.run_eager(args, kwargs) if account is None else job.run_noted(account, args, kwargs)


def wait_for_build(account: Any, asked: Any, job: Job, bound: Any, args: Any, kwargs: Any, why: str) -> Any:
    """The program of a whole capture is built when that pays: until then NumPy runs the calls."""
    job.why = why
    call = job.economy.defer(job, account, *asked)
    return job.run_noted(account, args, kwargs) if call is None else job.run_overtakable(call, account, bound, args, kwargs)


def give_up(job: Job, bound: Any, args: Any, kwargs: Any, why: str) -> Any:
    """Handle a capture that exceeds its limits."""
    job.why = why
    if "capture_limit" in why:
        say_limit(job, why)
    job.leave_to_numpy(bound, why)
    return job.run_eager(args, kwargs)


def say_limit(job: Job, why: str) -> None:
    """Warn once that capture has stopped."""
    job.warn_once("capture_limit", f"{job.title} runs on in NumPy: {why}")


def answer(job: Job, bound: Any, args: Any, kwargs: Any, why: str) -> Any:
    """A check failed before anything happened: NumPy runs the call, and those of its kind, unless a program was made for them."""
    job.why = why_failed(why)
    if job.last.specialization is None:
        job.leave_to_numpy(bound, job.why)
    return job.run_eager(args, kwargs)


def raise_again(job: Job, bound: Any, args: Any, kwargs: Any, why: str) -> Any:
    """Let the original function raise: with its effects, its message and its traceback. If values that a check was to
    guard have misled capture, the function does not raise.
    """
    job.why = why
    job.leave_to_numpy(bound, why)
    return job.run_eager(args, kwargs)


class Retry(Signal):
    """The compiler failed before anything happened."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def describe(error: BaseException, is_internal: bool = False) -> str:
    """A compiler error in one line, with advice. is_internal: regardless of its class."""
    text = " ".join(str(error).split())
    if len(text) > MAX_WORDS:  # the command is at the beginning, its output at the end
        text = f"{text[: MAX_WORDS // 2]} ... {text[-MAX_WORDS // 2 :]}"
    is_other = is_internal and not is_a(error, _core.CinductorError)
    known = _core.InternalError if is_other else type(error)
    advice = next((ERRORS[c.__name__].advice for c in known.__mro__ if c.__name__ in ERRORS), "")
    return f"{type(error).__name__}: {text}" + (f" ({advice})" if advice else "")


def tell(job: Job, bound: Any, error: Exception) -> None:
    """Warn about an internal error; calls like this one run in NumPy from now on."""
    job.why = describe(error, is_internal=True)
    job.warn_once("numpy", f"{job.name} runs in NumPy: {job.why}")
    job.leave_to_numpy(bound, job.why)


def attempt(job: Job, compiled: Any, bound: Any, args: Any, kwargs: Any, backend: str, allowance: Allowance) -> Any:
    """Run the call with one backend. When an assumption fails, it is captured again without it."""
    replans: list[str] = []
    account, began, work, used = compiled.account(bound), time.perf_counter(), job.economy.processor_clock(), allowance.used  # before its effects
    way = Assumptions(backend, job.dynamic, True, account.break_budget)
    way = way._replace(leaves_open=job.leaves_open, decided=job.decided)
    while True:
        try:
            made, outcome = capture(job, compiled, bound, args, kwargs, way, allowance)
            break
        except REPLANS as failure:
            less = way.without(failure)
            replans.append(text_of(failure))
            if less is not None and way.regions and not less.regions:
                without_regions = RegionOutcome(*place_of_function(job.fn), "", failure.args[0])
        if less is None:
            raise Retry(_core.InternalError("an assumption that was given up did not hold"))
        way, job.leaves_open, job.decided = less, less.leaves_open, less.decided
    outcome.seconds, outcome.replans = time.perf_counter() - began, replans
    if not way.regions:
        outcome.regions.insert(0, without_regions)
    afterwards(job, bound, learn_from, job, compiled, bound, account, outcome, made, job.economy.processor_clock() - work - allowance.used + used)
    return made


def afterwards(job: Job, bound: Any, step: Callable[..., None], *args: Any) -> None:
    """Work for later calls only: an internal error in it does not affect the result."""
    try:
        step(*args)
    except Exception as error:
        if not is_internal_error(error):
            raise
        tell(job, bound, error)


def learn_from(
    job: Job, compiled: Any, bound: Any, account: Any, outcome: Outcome, made: Any, seconds: float
) -> None:
    """Record what a capture shows about later calls. Those that need Python each time pay for the next one, and for pieces. seconds: that the
    call has taken without the capture's own work.
    """
    learned = outcome.learned and job.captures <= MAX_LEARNING
    pays = job.pays and job.owner is None
    if pays and outcome.specialization is not None:
        outcome.specialization.compare(account.best, 0 if account.changes else account.calls)
    if not learned:
        job.economy.note_capture(account if pays else None, outcome.specialization is not None, outcome.unbuilt, seconds)
    if outcome.specialization is not None or job.settings["fullgraph"] or learned:
        return
    if outcome.why_over and not any(map(needs_no_break, outcome.breaks)):
        job.leave_to_numpy(bound, outcome.why_over, account)
        return
    account.break_budget = outcome.break_budget
    if job.owner is not None:
        job.is_stale = job.owner.note(outcome.breaks, job.binders_of(made))  # type: ignore[attr-defined]
    elif (job.is_inexact or is_worth_pieces(outcome.work, outcome.breaks)) and not any_unbacked(bound):
        plan = driver.plan_of(job, compiled)
        if plan is not None and plan.note(outcome.breaks, waits=pays):
            return
    if outcome.is_little or (job.is_inexact and is_little(outcome.work)):
        job.leave_to_numpy(bound, "little array work between steps that need Python", account)
    elif not (job.is_inexact or pays):
        job.leave_to_numpy(bound, "Python is needed in each call", account)


def begin(job: Job, bound: Any, way: Assumptions, allowance: Allowance) -> Stage:
    """The stage of a call."""
    options = job.options()
    own = user_backend(job.settings["backend"])
    if way.backend not in ("", job.settings["backend"]) and own is None:  # so that NumPy may run it if it is faster
        options["numerics"] = "exact"
    if HEURISTICS:
        options["choices"] = heuristics.decided(job, way.backend, bound, options["choices"])
    tracer = _core.Tracer(
        job.name,
        options=options,
        device=job.settings["device"] or "cpu",
        backend=way.backend,
        fullgraph=job.why_whole if job.settings["fullgraph"] else "",
        key=job.key,
        keep=job.segments,
    )
    # Lines of these files are not reported, except of a compiled function of NumPy.
    is_numpys = is_a(job.fn, types.FunctionType) and job.fn.__code__.co_filename.startswith(LIBRARIES[0])
    tracer.user_frames_skip, tracer.user_backend = LIBRARIES[is_numpys:], own
    job.turn.tracer = tracer
    tracer.rent = -1 if job.is_for_show else 0 if not allowance.pays or allowance.is_paid else economy.RENT
    tracer.is_dry = job.is_dry
    tracer.on_run = job.on_run
    symbols = Symbols(tracer, job.profile, way.dynamic, job.breaks_by_itself)
    stage = Stage(tracer, symbols, job.names, Scope, PlainScope, way)
    stage.runs_on = job.device
    stage.device = stage.runs_on if options.get("device_arrays") else None
    stage.regions.leaves_loops = allowance.account is not None
    stage.allowance, stage.limit, stage.why_whole = allowance, allowance.left(way.regions), job.why_whole
    stage.effects.why_whole = job.why_whole
    stage.most_nodes = job.option("node_limit")
    stage.effects.flags = job.flags and job.known_flags()
    return stage


def capture(job: Job, compiled: Any, bound: Any, args: Any, kwargs: Any, way: Assumptions, allowance: Allowance) -> tuple[Any, Outcome]:
    """One capture: the call's result, and its outcome. Nothing of its stage remains."""
    stage = begin(job, bound, way, allowance)
    try:
        with watching.unseen():
            return on_stage(stage, job, compiled, bound, args, kwargs, way)
    finally:
        allowance.used += stage.own_work
        job.note_own_work(stage.own_work)
        stage.close()


def on_stage(stage: Stage, job: Job, compiled: Any, bound: Any, args: Any, kwargs: Any, way: Assumptions) -> tuple[Any, Outcome]:
    """Capture the call on a new stage."""
    stage.tell = functools.partial(tell, job, bound)
    tracer, instead, began = stage.tracer, None, time.perf_counter()
    try:
        tracer.constant, tracer.on_step = stage.constant, functools.partial(limit, stage)
        result = call(job, stage, bound)
        captured = time.perf_counter()
        if stage.allowance is not None and stage.allowance.account is not None:
            known = stage.allowance.account, stage.allowance.bound, stage.effects.changes
            tracer.on_build = functools.partial(job.economy.before_build, job, *known)
        elif job.owner is not None and job.pays:
            tracer.on_build = functools.partial(job.economy.before_piece, job)
        made, specialization = finished(job, stage, result)
    except BaseException as error:
        instead = failure_of(job, compiled, stage, bound, way, error)
        if instead is error:
            raise
        raise instead from None
    finally:
        instead = None  # its traceback contains this frame
        close(stage)
    if stage.why_over:
        say_limit(job, stage.why_over)
    outcome = job.last = Outcome(job, stage)
    outcome.info["capture_ms"] = 1e3 * (captured - began)
    afterwards(job, bound, keep, job, compiled, bound, stage, outcome, specialization)
    if job.is_dry:
        job.note_sources(stage.sources.rows, stage.sources.checks)
        return made, outcome
    is_undone = made is _core.MISSING  # NumPy has warnings to give
    if is_undone or (specialization is not None and stage.effects.can_run_again() and stage.effects.take_flags()):
        answer = job.repeat(args, kwargs)
        return answer if is_undone else made, outcome
    stage.effects.look_at_flags()
    return made, outcome


def close(stage: Stage) -> None:
    """End the capture of the call, successful or not."""
    stage.tracer.constant = stage.tracer.on_flags = stage.tracer.on_build = None
    for scope in stage.scopes:
        scope.__class__ = PlainScope


def finished(job: Job, stage: Stage, result: Any) -> tuple[Any, Any]:
    """The call's result materialised, and its specialisation. An error here after an effect only affects later calls.
    """
    waiting, stage.effects.has_ended = stage.stores.objects, True
    stage.tracer.on_step = None  # what the call has stored is not undone
    if job.is_dry and waiting:
        names = ", ".join(f".{name}" for _, attributes in waiting.values() for name in attributes)
        raise _core.Unsupported(f"only a call can do this: it sets {names} of an object ({job.why_whole})")
    try:
        stage.escapes.end()
        return finish(job, stage, result)
    except (Exception, _core.RegionBreak) as error:
        if not stage.tracer.effects or not (is_a(error, _core.RegionBreak) or is_internal_error(error)):
            raise
        reason = error
    stage.stores.objects = waiting
    try:
        stage.effects.flush()
        stage.effects.check_handed_out(made := stage.materialise(result))
    except Exception as error:
        signals.pass_on(error)
        raise reason from None  # from a library call in the remaining graph
    if is_a(reason, Exception):  # no refusal
        stage.tell(reason)
    return made, None


def keep(job: Job, compiled: Any, bound: Any, stage: Stage, outcome: Outcome, specialization: Any) -> None:
    """Keep the results of a capture."""
    outcome.specialization = specialization
    if specialization is not None:
        job.keep(compiled, specialization, bound)
        saved.save(job, bound, specialization, stage)
    else:
        job.has_given_inexact |= stage.tracer.is_inexact
        job.breaks_by_itself |= not (stage.symbols.made or stage.learned)  # type: ignore[union-attr]
        outcome.work = worth(job, stage)
        outcome.is_little = not stage.tracer.useful and is_little(outcome.work)


CARRIED_ON = (Abandon, Raised, Retry)  # handled by the caller


def failure_of(
    job: Job, compiled: Any, stage: Stage, bound: Any, way: Assumptions, error: BaseException
) -> BaseException:
    """The exception for a failed capture: the error itself, or one that says how the call continues."""
    if is_a(error, ConstraintViolation):
        stage.effects.undo_call()
        return error
    if interrupt.is_interrupt(error) or is_a(error, _core.PromiseBroken):  # the user has asked to see it
        return ended(job, stage, error)
    if is_a(error, CARRIED_ON):
        job.last = Outcome(job, stage)
        if is_a(error, signals.NotPaid):
            stage.effects.undo_call()
        return error
    if is_a(error, signals.Deferred):
        job.last = Outcome(job, stage)
        return error if stage.effects.undo_call() else leave(job, stage, bound, _core.InternalError("a build was left late"))
    if is_a(error, UnbackedForced):
        job.last = Outcome(job, stage)
        return stage.symbols.denied(error)  # type: ignore[union-attr]
    if is_a(error, _core.CheckFailed):
        return check_failed(job, compiled, stage, bound, error)
    if is_a(error, REPLANS):
        return half_captured(job, stage, bound, way, error)
    if is_a(error, _core.CinductorError):
        return compiler_failed(job, stage, bound, error)
    if stage.tracer.in_region and way.regions and not stage.tracer.effects:
        return _core.RegionBreak("an exception leaves an expression")
    if is_a(error, Exception) and stage.effects.undo_call():
        is_users = stage.runs or stage.effects.has_ended or is_a(error, MemoryError)
        job.last = Outcome(job, stage)
        return Raised(error) if is_users else Retry(error)
    return leave(job, stage, bound, error)


def check_failed(
    job: Job, compiled: Any, stage: Stage, bound: Any, error: BaseException
) -> BaseException:
    """A check of the program failed."""
    job.last = Outcome(job, stage)
    job.last.failed_check = True
    if not stage.effects.undo_call():
        late = RuntimeError("a check failed after effects that cannot be undone")
        return leave(job, stage, bound, late)
    others = getattr(error, "specialization", None)
    if others is not None:  # this call fails a check that others may pass
        job.last.specialization = others
        job.keep(compiled, others, bound)
    return error


def half_captured(job: Job, stage: Stage, bound: Any, way: Assumptions, error: BaseException) -> BaseException:
    """The call can only be captured in another way."""
    if not stage.effects.undo_call():
        late = RuntimeError(f"a loop or branch was left half captured: {error.args[0]}")
        return leave(job, stage, bound, late)
    if not is_a(error, _core.RegionBreak):
        why = why_not_captured(job, bound, False) if error.assumption == "list_columns" else None  # type: ignore[attr-defined]
        return error if why is None else Abandon(f"an argument is no array: {why}, and {error.args[0]}")
    if stage.has_left_open:
        return Replan("leaves_open", error.args[0])
    return error if way.regions else Abandon(error.args[0])


def compiler_failed(job: Job, stage: Stage, bound: Any, error: Exception) -> BaseException:
    """A graph is too large, or compiling failed. After an effect the user gets the error, and NumPy runs later calls."""
    if stage.tracer.is_full:
        why = too_large(stage)
        if stage.effects.undo_call():
            return Abandon(why)
        return leave(job, stage, bound, _core.Unsupported(why))
    if job.settings["fullgraph"] and is_a(error, _core.Unsupported):
        return error
    return Retry(error) if stage.effects.undo_call() else leave(job, stage, bound, error)


def too_large(stage: Stage) -> str:
    """The loop that made a graph too large, and advice."""
    places = Counter(stage.tracer.places).most_common(1)
    if not places:  # made by a loop whose capture was abandoned
        return "its graph is too large. Raise the option node_limit"
    (file, line), count = places[0]
    loops = [
        (site.line, scope.file, site.kind)
        for scope in stage.scopes
        for site in scope.sites
        if scope.file == file and site.kind != "if" and site.line <= line
    ]
    text = f"its graph is too large: {file}:{line} alone made {count} nodes"
    if loops:
        at, _, kind = max(loops)
        outcome = stage.regions.outcomes.get((file, at, kind))
        text += f", in the loop at {file}:{at}, which {outcome.words if outcome else IN_PYTHON}"
    return text + ". Give that loop a body that can be captured, or raise the option node_limit"


def ended(job: Job, stage: Stage, error: BaseException) -> BaseException:
    """An exception from outside ends the call: everything is restored, or the effects up to the last Python step
    remain. Nothing is waited for, because the compiler may be what is waited for.
    """
    stage.tracer.needs_python = True
    stage.effects.undo_call()
    job.last = Outcome(job, stage)
    return error


def leave(job: Job, stage: Stage, bound: Any, error: BaseException) -> BaseException:
    """The exception that leaves the function; pending effects happen first."""
    stage.tracer.needs_python = True
    try:
        stage.state.unwind()
        stage.tracer.flush()
        stage.effects.flush()
        stage.materialise(error)
    except (_core.CinductorError, _core.RegionBreak):
        pass
    job.last = Outcome(job, stage)
    signals.reword(error)
    if is_a(error, Exception):
        job.leave_to_numpy(bound, f"it raised {type(error).__name__}")
    return error


def worth(job: Job, stage: Stage) -> int:
    """The number of elements of the call's arrays, to which the savings of compiled segments are proportional."""
    if stage.tracer.flushes == 0:
        return 0
    job.nodes = max(job.nodes, stage.tracer.info.get("nodes", 0))  # none for segments that were compiled before
    return max(job.nodes, 2) * sum(array.size for array, _, _ in stage.arrays.known.values())
