"""State of one compiled function beyond its specializations, and guard misses.

`compile` returns a C object that tries its specializations in turn and calls `Job.miss` if no guard set matches. A
failure of the compiler never reaches the caller: the original function runs instead.

Threads that make the same first call compile once (`Turn`).
"""

from __future__ import annotations

import functools
import sys
import weakref
from _thread import _local  # threading itself takes a millisecond to import
from typing import Any

import numpy as np

from .. import _core
from .._core import Error, kind_of
from ..arrays import packages
from ..base import deferred_warnings, lazy
from ..base.class_lookup import is_a
from ..base.signature import signature_of
from ..base.user_frame import call_in_place, hide_our_frames
from ..config import OWN, RACED, config, resolve, user_backend
from ..diagnosis import events, stats_types
from . import saved, watching
from .dynamic import Profile, any_unbacked, kind_text, profile_path
from .economy import CAPTURE, LOOK_UP, NUMPY, Economy, waits
from .turn import Turn

ABOUT_BUILT = (*RACED, "graphs")  # options that NumPy cannot do anything about


class Capturing(_local):
    """For each thread: the captures in progress, nested, and what captures have taken since the outermost one of each job began."""

    def __init__(self) -> None:
        self.count = 0
        self.used: dict[int, float] = {}  # seconds by id of the job


capturing = Capturing()


def is_compiling() -> bool:
    """Tell whether this thread captures a function.

    Returns
    -------
    bool
        True during a capture, also for the captured function itself.
    """
    return capturing.count > 0


class JobState:
    """The attributes that calls set. `compile` makes none of them: each is the class's until it is assigned or, for those of `MADE`, read."""

    captures = misses = 0
    saved_under: str | None = None  # the key of the latest capture
    is_at_limit = False  # compiled a last time, for any sizes
    leaves_open = True  # the program evaluates conditions on sizes
    decided: frozenset[tuple[str, int]] = frozenset()  # conditions that Python decides
    breaks_by_itself = False  # a call needs Python even with constant sizes
    has_given_inexact = False  # results that may differ from NumPy's in the last bits
    was_plain = False  # NumPy has run calls that may be compiled later, with the same bits
    known_kinds: frozenset[str] | None = None  # of the calls that the disk cache had; None: it was not asked
    is_for_show = False  # its only call is made by `explain`
    on_run: Any = None  # `Tracer.on_run` of its captures
    why: str | None = None  # why NumPy ran the latest call that was tried, or None
    unraced: str | None = None  # why its latest program has no race, where one was asked for
    flags = flags_changes = 0  # float flags for which NumPy has run a call, while filters had changed so many times
    nodes = 0  # of the largest segment compiled
    plan: Any = None  # how calls are split at breaks: capture/pieces/driver.py
    owner: Any = None  # the plan of which it is a piece
    last: Any = None  # the Outcome of the latest capture
    profile: Profile
    economy: Economy  # decides when calls are captured and built
    turn: Turn  # which thread captures it
    recalled: set[str]  # saved calls that have become specialisations
    reasons: list[str]  # why calls were captured again, the latest last
    made: dict[int, str]  # id of a specialisation -> why it was made
    unused: dict[str, None]  # lines about options that it was given for nothing
    warned: set[str]
    segments: set[Any]  # programs of its pieces, kept alive

    def __getattr__(self, name: str) -> Any:
        """One of `MADE`: they are made when one is read first. Threads that do this at once get the same."""
        if name not in MADE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return {other: vars(self).setdefault(other, make()) for other, make in MADE.items()}[name]

    def forget(self) -> None:
        """Return to the state before the first call."""
        for name in (*vars(JobState), *MADE):
            vars(self).pop(name, None)


MADE = {"profile": Profile, "economy": Economy, "turn": Turn, "reasons": list, "made": dict, "unused": dict}
MADE |= dict.fromkeys(("recalled", "warned", "segments"), set)


class Job(JobState):
    """The state of one function besides its specialisations.

    Another thread may call `forget` or capture at any time: a method reads an attribute once if its value may
    be None or empty afterwards, and iterates over a copy of a dict.
    """

    devices: tuple[Any, ...] = ()  # of arrays that it takes: kind and index, or that of each
    is_dry = False  # programs are compiled and not run: warming.py
    past_limit = "Calls that fit none run in NumPy now"  # what becomes of calls at a limit
    why_whole = "fullgraph=True"  # why Python may run nothing between kernels, if it may not; see errors.WHOLE
    compiled: weakref.ref[Any] | None = None  # the compiled function, from its first miss on

    def __init__(self, fn: Any, settings: dict[str, Any]) -> None:
        self.fn = fn
        self.settings = settings
        self.asked = resolve(settings["mode"], settings["options"])  # options of the mode and of this function
        self.counts = {"captures": 0, "recompiles": 0, "eager": 0}  # for `stats`; never reset
        self.was_recorded = deferred_warnings.is_recorded()  # warnings were being recorded when it was compiled
        self.names, self.kinds, self.defaults = signature_of(fn)

    def is_watched(self) -> bool:
        """True if a tool of sys.monitoring takes line events of the function."""
        return watching.are_lines_watched(getattr(self.fn, "__code__", None))

    def note_watched(self) -> bool:
        """Record that NumPy runs calls because a tool records their lines."""
        self.why = watching.WHY
        watching.log(self.title)
        return True

    def note_sources(self, rows: Any, checks: Any) -> None:
        """Of a capture that ran nothing: where its values come from, and their guards."""

    def retire(self, compiled: Any) -> None:
        """Called when the compiled function is deleted."""
        stats_types.retire(compiled)

    def renew(self, compiled: Any) -> tuple[Any, ...]:
        """The parameters after code or defaults of the function were assigned; everything compiled before is invalid.
        """
        compiled.clear()
        self.forget()
        self.names, self.kinds, self.defaults = signature_of(self.fn)
        return self.names, self.kinds, self.defaults

    @property
    def is_inexact(self) -> bool:
        """True if compiled results were returned that may differ from NumPy's in the last bits; then NumPy may not
        run calls for being faster.
        """
        plan = self.plan
        return self.has_given_inexact or (plan is not None and plan.is_inexact)

    @property
    def has_saved(self) -> bool:
        """True if the disk cache had calls of it when it was asked first."""
        return bool(self.saved_kinds)

    @property
    def saved_kinds(self) -> frozenset[str]:
        """The kinds of calls of it that the disk cache had when it was asked first."""
        if self.known_kinds is None:
            key = self.first_key if saved.has_calls(self) else None
            self.known_kinds = frozenset([kind for kind, _ in saved.calls_under(key)] if saved.is_there(key) else ())
        return self.known_kinds

    def may_be_saved(self, bound: tuple[Any, ...]) -> bool:
        """True if the disk cache had a call of this kind."""
        return bool(self.saved_kinds) and kind_text(bound, False) in self.saved_kinds

    @functools.cached_property
    def first_key(self) -> str | None:
        """The key of its saved calls when it was needed first."""
        return saved.key_of(self)

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return getattr(self.fn, "__qualname__", None) or type(self.fn).__qualname__

    @property
    def title(self) -> str:
        """The description of the function in a warning."""
        return self.name

    @property
    def key(self) -> str:
        """Distinguishes functions of the same name."""
        code = getattr(self.fn, "__code__", None)
        where = "" if code is None else f" {code.co_filename}:{code.co_firstlineno}"
        return self.name + where

    def option(self, name: str) -> Any:
        """One option in force."""
        return self.asked[name] if name in self.asked else getattr(config, name)

    @property
    def dynamic(self) -> bool | None:
        """True if sizes are symbols, False if they are constants, None if those that differed between calls are symbols.
        """
        asked = self.settings["dynamic"]
        return True if asked is None and self.is_at_limit else asked

    @property
    def device(self) -> str:
        """The device that was requested, for example "cuda:1"."""
        name, index = self.settings["device"] or "cpu", self.option("device_index")
        return f"{name}:{index}" if index > 0 and name != "cpu" else name

    def options(self) -> dict[str, Any]:
        """The options in force: the process's, overridden by the mode's, then by the function's. Programs that follow calls in
        NumPy have its bits.
        """
        asked = {**vars(config), **self.asked}
        if self.follows_numpy:
            asked["numerics"] = "exact"
        for option in OWN:
            del asked[option.name]
        return asked

    @property
    def follows_numpy(self) -> bool:
        """True if NumPy may run calls before a program does. Results then have the same bits."""
        return self.asked.get("economy", config.economy) != "now" and self.why_now is None

    @property
    def why_now(self) -> str | None:
        """Why programs are built before a call returns whatever the option economy is: NumPy cannot run the calls of what
        was requested. None if it can.
        """
        settings = self.settings
        numerics = self.asked.get("numerics", "exact" if config.numerics == "numpy" else config.numerics)
        if settings["device"] not in (None, "cpu"):
            return f"device {settings['device']!r} was requested, which NumPy does not have"
        if numerics != "exact":
            return f"NumPy has other bits than numerics {numerics!r}"
        if user_backend(settings["backend"]):
            return f"backend {settings['backend']!r} was requested"
        if settings["fullgraph"] or settings["backend"] == "interp":
            return "fullgraph=True was requested" if settings["fullgraph"] else "backend 'interp' builds nothing"
        for name in ABOUT_BUILT:
            if self.option(name):
                return f"option {name} is about programs that are built"
        return None

    @property
    def pays(self) -> bool:
        """True if captures and builds wait until calls in NumPy have paid for them."""
        return self.follows_numpy and not (self.is_for_show or self.is_dry or self.is_inexact)

    def economy_of(self, compiled: Any) -> str | None:
        """A line about the time paid for captures and builds, and the condition of the next step."""
        if not self.follows_numpy:
            return None
        return self.economy.line(self.option("economy"), compiled.accounts(), bool(compiled.specializations))

    def reasons_for_numpy(self, compiled: Any) -> list[str]:
        """Why the original function runs calls, each reason once."""
        whys = [*map(self.economy.why, compiled.accounts()), compiled.why_not_split_calls, *(s.why_numpy for s in compiled.specializations)]
        return [*dict.fromkeys(why for why in whys if why)]

    def note_own_work(self, seconds: float) -> None:
        """A capture has ended, which has taken so long without the user's code."""
        self.economy.captured += seconds
        if id(self) in capturing.used:
            capturing.used[id(self)] += seconds

    def warn_of_build(self, error: Exception) -> str:
        """Warn once that a build has failed; the text."""
        why: str = lazy.load("capture.session").describe(error, is_internal=True)
        self.warn_once("numpy", f"{self.name} runs in NumPy: {why}")
        return why

    def warn_once(self, key: str, message: str) -> None:
        """Issue a warning once for this function."""
        if key not in self.warned:
            self.warned.add(key)
            deferred_warnings.warn(message, self.was_recorded)

    def miss(
        self, compiled: Any, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Handle a call that no specialisation matches."""
        if self.compiled is None:
            self.compiled = weakref.ref(compiled)
        try:
            if self.settings["device"] not in (None, "cpu"):
                from ..arrays.machine import Device, check_place, open_alongside

                check_place(Device(self.device), self.option("numerics"))
                open_alongside(self.device)
            deferred_warnings.begin()
            try:
                return self.answer(compiled, bound, args, kwargs)
            finally:
                deferred_warnings.end()
        except BaseException:  # without a name, whose deletion would undo the change (3.10)
            self.leave(sys.exc_info()[1], bound)
            raise

    def leave(self, error: Any, bound: tuple[Any, ...]) -> None:
        """Complete the message of an exception of the package that goes to the caller."""
        from ..errors import complete, fold

        hide_our_frames(error, leaves=True)
        fold(error)
        if is_a(error, Error):
            complete(error, self.names, bound, getattr(getattr(self.fn, "__code__", None), "co_filename", ""))

    def answer(
        self, compiled: Any, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Handle a miss; the traceback may have internal frames. MISSING: another thread has compiled meanwhile, and
        the caller tries again.
        """
        calls = device_calls()
        if calls is not None and any(map(calls.contains_device_array, bound)):
            return calls.call(self, compiled, args, kwargs or {})
        self.misses += 1
        if capturing.count:  # perhaps called by a function that is called during a capture
            from ..capture.objects import contains_traced

            if contains_traced(bound):
                return self.run_eager(args, kwargs)
        pays = self.pays and self.owner is None
        if pays and self.economy.leave_first_calls(self, compiled):
            return _core.MISSING
        account = compiled.account(bound) if pays else None
        step = CAPTURE if account is None else self.economy.next_step(self, account, bound)
        if step is NUMPY:
            return self.run_noted(account, args, kwargs)
        refused = compiled.account(bound) if account is None and compiled.accounts() and not self.is_inexact else None
        if refused is not None and not self.economy.wants_another(self, refused, bound):
            return self.run_noted(refused, args, kwargs)
        plan = self.plan
        if plan is not None and not any_unbacked(bound) and plan.is_ready(self):
            if account is not None and not self.economy.pays_for_pieces(plan, account):
                return self.run_noted(account, args, kwargs)
            return self.run_driver(plan, compiled, bound, args, kwargs or {})
        turn = self.turn
        is_own = turn.take()
        if not is_own and not is_compiling():
            if account is not None:
                return self.run_noted(account, args, kwargs)
            if turn.wait():
                return _core.MISSING
            if not (self.settings["fullgraph"] or self.is_inexact):  # NumPy could give other bits
                return self.run_eager(args, kwargs)
        try:
            self.why = why = self.why_plain() or self.why_no_more(compiled, bound)
            if why is None and not self.is_dry and saved.recall(self, compiled, bound):
                return _core.MISSING  # the caller tries again
            if why is None and account is not None and (step is LOOK_UP or self.economy.opens(self, account, bound)):
                return self.run_noted(account, args, kwargs)
            if why is None:
                return self.capture(compiled, bound, args, kwargs)
        finally:
            if is_own:
                turn.give()
        return self.run_eager(args, kwargs)

    def capture(self, compiled: Any, bound: Any, args: Any, kwargs: Any) -> Any:
        """Capture the call in this thread."""
        capturing.count += 1
        self.captures += 1
        self.counts["captures"] += 1
        self.counts["recompiles"] += self.captures > 1
        begun, is_outermost = events.begin(self), id(self) not in capturing.used
        if is_outermost:
            capturing.used[id(self)] = 0.0
        try:
            return lazy.load("capture.session").run(self, compiled, bound, args, kwargs or {})
        finally:
            capturing.count -= 1
            if is_outermost:
                del capturing.used[id(self)]
            if self.economy.left is not None:
                self.economy.ask_about_first_calls(self, compiled)
            if self.profile.is_changed:
                self.profile.save(self.profile_path())
            if _core.cache_stores():
                self.trim_cache()
            events.end(self, begun)

    def trim_cache(self) -> None:
        """Enforces the option cache_limit after kernels were stored."""
        from ..builds.trimming import keep_within

        keep_within(self.option("cache_limit"))

    def run_noted(self, account: Any, args: Any, kwargs: Any) -> Any:
        """The function itself, whose time its account notes."""
        self.was_plain = True
        self.counts["eager"] += 1
        before = account.total
        try:
            return call_in_place(account.call, (self.fn, args, kwargs or {}), {})
        finally:
            self.economy.note_call(account.total - before)

    def run_overtakable(self, call: Any, account: Any, bound: Any, args: Any, kwargs: Any) -> Any:
        """As `run_noted`, until the program is there."""
        self.was_plain = True
        self.counts["eager"] += 1
        is_left, result = call.run(account, self.fn, args, kwargs or {})
        return self.capture(self.compiled and self.compiled(), bound, args, kwargs) if is_left else result

    def run_driver(self, plan: Any, compiled: Any, bound: Any, args: Any, kwargs: Any) -> Any:
        """Run the function in pieces with Python between. Once they are chosen, C calls the dispatcher, and compares it with NumPy."""
        like, captures = kind_of(bound), plan.captures()  # the call may change its arguments
        result = plan.run(args, kwargs)
        if plan.driver is None and plan.is_tried:
            self.leave_to_numpy(bound, "NumPy is faster for all the work between the lines that need Python")
        elif plan.is_tried and plan.captures() == captures and not (self.pays and plan.credit <= 0):
            self.hand_over(plan, compiled, like)
        return result

    def hand_over(self, plan: Any, compiled: Any, like: bytes) -> None:
        """Let C call the dispatcher for calls of this kind."""
        compiled.note_split_calls(plan.bound_driver(), plan.fix_traceback, like, not self.is_inexact)

    def run_eager(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Run the original function."""
        self.counts["eager"] += 1
        return call_in_place(self.fn, args, kwargs or {})

    def repeat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the original function for NumPy's warnings, after a captured call: its result is used if that was undone."""
        return call_in_place(self.fn, args, kwargs)

    def why_no_more(self, compiled: Any, bound: tuple[Any, ...]) -> str | None:
        """The reason why a call that no specialisation matches is not compiled, or None. Records which guard of the
        latest specialisation failed.
        """
        if not self.profile.is_loaded:
            self.profile.load(self.profile_path())
        known = compiled.specializations
        if not known:
            return None
        count = len(self.alike(known, bound))
        self.reasons = [*self.reasons[-7:], known[0].why_not(bound) or "a guard"]
        limit, most = self.option("recompile_limit"), self.option("accumulated_recompile_limit")
        if count < limit and self.captures < most:
            if self.option("log_recompiles"):
                print(f"cinductor: {self.name} recompiles: {self.reasons[-1]}", file=sys.stderr)
            return None
        return self.at_limit(count, self.captures >= most)

    def alike(self, known: tuple[Any, ...], bound: tuple[Any, ...]) -> list[Any]:
        """The specialisations for calls of this kind (same dtypes and texts, other sizes), most recently used first.
        """
        return [s for s in known if not s.is_other_kind(bound)]

    def at_limit(self, count: int, is_accumulated: bool) -> str | None:
        """Handle a limit: the reason why NumPy runs the call, or None for one more compile."""
        on_limit = self.option("on_limit")
        many = (
            f"{self.captures} compiles, accumulated_recompile_limit"
            if is_accumulated
            else f"{count} specialisations, recompile_limit"
        )
        last = "; ".join(dict.fromkeys(reversed(self.reasons[-3:])))
        text = f"{self.title} has {many}. The latest calls did not fit, for {last}"
        advice = (
            "; cinductor.mark_dynamic or dynamic=True compiles one program for many sizes, and a larger "
            "recompile_limit keeps more"
        )
        if on_limit == "error":
            from ..errors import RecompileLimitExceeded

            raise RecompileLimitExceeded(text)
        again = on_limit == "dynamic" and self.settings["dynamic"] is None and not is_accumulated
        if again and not self.is_at_limit:
            self.is_at_limit = True
            more = "It is compiled once more, for any sizes; calls that still fit none run in NumPy"
            self.warn_once("limit", f"{text}. {more}{advice}")
            return None
        self.warn_once("limit", f"{text}. {self.past_limit}{advice}")
        return "the limit of recompiles is reached"

    def keep(self, compiled: Any, specialization: Any, bound: tuple[Any, ...]) -> None:
        """Add a specialisation made for a call, with the reason."""
        first = not compiled.specializations
        why = "any sizes, at the limit" if self.is_at_limit else self.reasons[-1:]
        self.has_given_inexact |= specialization.is_inexact
        if self.is_made_without_compiler(specialization):
            specialization.doubt()
        else:
            self.report_unused(specialization.program)
        if any([self.asked.get(name, getattr(config, name)) for name in RACED]):
            from ..builds import racing

            racing.enter(self, specialization)
        self.made[id(specialization)] = "the first call" if first else "".join(why)
        compiled.add(specialization)
        if not first:
            self.trim(compiled, bound)

    def report_unused(self, program: Any) -> None:
        """One warning for each option that the function was given for nothing."""
        if self.asked and self.owner is None and program is not None:
            from ..diagnosis.effects import of_program, without_effect

            why_now = None if self.option("economy") == "now" else self.why_now
            for line in without_effect(self.asked, self.settings["mode"], of_program(program, why_now)):
                self.unused[line] = None
                self.warn_once(line, f"{self.title}: {line}")

    def is_made_without_compiler(self, specialization: Any) -> bool:
        """True if the interpreter or kernels of stencils run it although they were not requested, and no build replaces them."""
        program = specialization.program
        is_other = program is not None and program.owed is None and program.backend in ("cpu:interp", "cpu:stencil")
        return is_other and program.backend != f"cpu:{self.settings['backend']}"

    def trim(self, compiled: Any, bound: tuple[Any, ...]) -> None:
        """Drop the least recently used specialisations for calls of this kind beyond the limit."""
        for specialization in self.alike(compiled.specializations, bound)[max(self.option("recompile_limit"), 1) :]:
            compiled.drop(specialization)
        kept = {id(s) for s in compiled.specializations}
        self.made = {k: text for k, text in self.made.items() if k in kept}

    def profile_path(self) -> str | None:
        """The file of recorded sizes, shared between processes."""
        if not self.option("cache"):
            return None
        return profile_path(self.fn, _core.cache_directory())

    def why_plain(self) -> str | None:
        """The reason why nothing is captured at the moment, or None."""
        for kind, what in np.geterr().items():
            if what in ("raise", "call", "print", "log"):
                return f"numpy.errstate({kind}={what!r}) is in force"
        return None

    def run_plain(self, bound: Any, args: Any, kwargs: Any, why: str) -> Any:
        """Run the original function, also for later calls of this kind."""
        self.why = why
        if self.settings["fullgraph"]:
            raise _core.Unsupported(f"{self.name}: {why} ({self.why_whole})")
        self.leave_to_numpy(bound, why)
        return self.run_eager(args, kwargs)

    def leave_to_numpy(self, bound: Any, why: str, account: Any = None) -> None:
        """Nothing was compiled for a call: NumPy runs those of its kind until another capture pays. account: of the kind."""
        compiled = None if self.compiled is None else self.compiled()
        if compiled is not None and not self.settings["fullgraph"]:
            account = account or compiled.account(bound)
            account.spent, account.due = 0.0, max(account.due, self.economy.price)
            account.why = f"{why}; {waits(account.due, 'another capture')}"

    def note_flags(self, flags: int) -> None:
        """NumPy has run a call for the warnings of these float flags."""
        _, _, changes = _core.flag_settings()
        self.flags = flags | (self.flags if changes == self.flags_changes else 0)
        self.flags_changes = changes

    def known_flags(self) -> int:
        """The float flags for which NumPy does not run another call: the default is one warning per line, until filters change."""
        is_strict, _, changes = _core.flag_settings()
        return 0 if is_strict or changes != self.flags_changes else self.flags

    def warn_of_flags(self, specialization: Any, flags: int) -> None:
        """Warn about float flags that a program which writes to its arguments has raised."""
        from ..base import float_warnings

        if float_warnings.reported(flags):
            float_warnings.give({specialization.program: flags}, flags)

    def run_once(self, bound: Any, args: Any, kwargs: Any, why: str) -> Any:
        """Let the original function run one call."""
        return self.run_eager(args, kwargs)


def device_calls() -> Any:
    """The module that handles calls with device arrays; None if it is not imported, so that there are no such arrays.
    """
    if "cinductor.arrays.array" not in sys.modules and packages.BACK.keys().isdisjoint(sys.modules.keys()):
        return None
    return lazy.load("arrays.calls")
