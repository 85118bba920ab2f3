"""When a function is captured and built: the law of paying, for the options economy="auto" and "lazy".

Calls of one kind (`_core.Account`) run in the original function, and C times them. It asks about a kind when its calls have taken as long as
loading a program takes, and about a call that may be long. When calls have taken as long as the next step costs, the step is made: a capture, then a build, in a thread (`background.py`). The next call after a build is captured again, finds
the program, and gets a specialization. So a function costs at most a small multiple of the best choice: Karlin, Manasse, Rudolph &
Sleator, "Competitive snoopy caching" (1988).

    new -> captured (whole, not built) -> awaited -> compiled
        a call that is long enough by itself is captured and built at once
        where kernels of stencils can be made, they run this call and those until the build has ended, for which they pay

"auto" makes the capture of a function's first kinds in the first call and queues its build, because `compile` is a wish. The modules
that capture are imported in the background (`Opening`): kinds that a process calls before that are captured in their next call after it.
Only programs with NumPy's very bits follow calls that the original function has run.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import sys
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

from .. import _core
from ..arrays.packages import BACK
from ..base import lazy, processors
from ..base.signals import Deferred, pass_on
from ..builds.background import beside
from ..config import settings
from . import budget, overtaking
from .bound import CLASSES
from .notes import LEAST, EconomyNotes
from .saved_text import NotSaved

LONG = 5e-3  # seconds that a call may take, by its bytecode and sizes, from which its kind is captured at once
BACKOFF = 4  # the price of captures is multiplied by it after each that was not whole
RENT = 0.5  # of a build's price, that NumPy has taken before the build is queued
COPIED = 0.5  # of the graph's estimate: what a call on kernels of stencils is expected to lose. Reversed transposes lose more, sums of long rows too
BIAS = 1.36  # estimates of NumPy's time err high: too low ones cost a long call, too high ones one build
CAP, SHORT = 2, 20e-6  # NumPy takes at most so many times what the bytecode says, and seconds more: those of functions in C
WISHES = 4  # kinds of a function that "auto" captures at once
PURSE, SHARE = 0.05, 0.1  # seconds, and part of the process's time, that "auto" takes for captures at once
IMPORT = 40e-3  # seconds that the first capture of a process takes more
TURN, MAX_IMPORT = 5e-3, 2.0  # seconds that a call, and a fork, wait for an import beside calls at most
WISHED_BUILDS = 2  # that it queues at once, of one kind
SESSION = "cinductor.capture.session"  # the module that captures import
# It and modules that it imports, in an order in which each takes a part of the time: between them an import can end with the process.
IMPORTED = ("cinductor.capture.syntax.rewrite", "cinductor.capture.call_state", "cinductor.capture.calls.calls", "cinductor.capture.calls.builtins", SESSION)
IMPORTING = "NumPy runs the calls while cinductor's modules for capture are imported"
# Answers to C about a call: the original function runs it, it is captured, or a saved call runs it if there is one.
NUMPY, CAPTURE, LOOK_UP = "in NumPy", "captured", "looked up"
SAVED = "the next call of this kind looks for a program that an earlier process has saved"
PACKAGES = ("cinductor.arrays.array", *BACK)  # their arrays may be on devices
INEXACT = "the original function has run such calls, and a program of it would give other bits; mode='now' compiles it"


class Purse:
    """The time that captures for which no call has paid may take in this process: of hundreds of functions that are called once,
    the first few are captured at once. What it gets and what it pays are seconds of one clock: on a busy machine both pass sooner.
    """

    def __init__(self) -> None:
        self.used, self.began = 0.0, Economy.clock()

    @property
    def is_empty(self) -> bool:
        """True if captures wait until calls have paid for them."""
        return self.used >= PURSE + SHARE * (Economy.clock() - self.began)


class Economy:
    """The costs of one function, and the decisions that follow from them."""

    clock = staticmethod(time.perf_counter)
    processor_clock = staticmethod(time.thread_time)

    failures = 0  # captures that were not whole, less those that were
    wishes = 0  # kinds captured at once
    broken: Exception | None = None  # of a build beside calls: NumPy runs them from then on
    captured = built = 0.0  # seconds of captures, and of builds in the background
    bound: _core.Bound | None = None  # of the function's calls; None until it is needed
    left: tuple[object, float] | None = None  # the options, and the bound of a long call, with which C runs first calls of kinds
    notes: EconomyNotes | None = None  # between processes; None until the first call
    unpaid_since: float | None = None  # when the capture in progress began, if nothing has paid for it

    @property
    def price(self) -> float:
        """Seconds in NumPy that the next capture of a kind costs."""
        return budget.CAPTURE * float(BACKOFF**self.failures) + self.opening

    @property
    def opening(self) -> float:
        """Seconds that the modules of captures take, if none was made in this process."""
        return 0.0 if SESSION in sys.modules else IMPORT

    def note_unpaid(self) -> None:
        """A capture has ended. If nothing had paid for it, the purse has."""
        if self.unpaid_since is not None:
            purse.used += self.clock() - self.unpaid_since
            self.unpaid_since = None

    def note_capture(self, account: Any, is_whole: bool, unbuilt: float = 0.0, seconds: float | None = None) -> None:
        """A capture has ended. unbuilt: seconds that builds of its pieces take. seconds: that its call has taken besides."""
        self.note_unpaid()
        if seconds is not None and self.bound is not None:
            self.bound.note(seconds)
        self.failures = max(self.failures + (-1 if is_whole else 1), 0)
        if account is not None:
            account.spent, account.program = 0.0, None
            account.due = RENT * account.price if is_whole else max(self.price, RENT * unbuilt)
            account.why = None if is_whole else waits(account.due, "another capture")

    def next_step(self, job: Any, account: Any, bound: tuple[Any, ...]) -> str:
        """Return NUMPY, CAPTURE or LOOK_UP for a call. C asks when a kind has taken some time or may take long, when a capture has been paid
        for, and for sizes that are larger than before or among the first that differ.
        """
        if account.is_unasked:
            self.meet(job, account, bound)
        if self.broken is not None:
            account.due, account.why = math.inf, job.warn_of_build(self.broken)
            return NUMPY
        job.profile.learn(job.names, bound)
        if account.why == IMPORTING and opening.is_needed:
            opening.give_turn()
            captures = self.is_long(job, account, bound)
        elif account.is_awaited:
            captures = job.option("economy") == "auto" and account.changes == 1 and withdraw(account)
        elif account.program is not None and not account.program.is_built:
            if account.spent >= account.due:
                self.queue(job, account)
            captures = account.program is not None and account.program.is_built
        else:
            return self.step_of_unbuilt(job, account, bound)
        return CAPTURE if captures else NUMPY

    def step_of_unbuilt(self, job: Any, account: Any, bound: tuple[Any, ...]) -> str:
        """As `next_step`, for a kind that has no program, or one that only lacks a specialization."""
        is_first = account.calls == 0 and account.due == 0
        is_new = is_first or (account.due == 0 and account.why in (IMPORTING, SAVED))
        looks = is_first or account.why == SAVED
        self.unpaid_since = None
        if is_first:
            self.notes_of(job).open(account, bound)
        if is_new and self.is_captured_at_once(job) and not purse.is_empty:
            self.wishes += 1
            self.unpaid_since = self.clock()
            return CAPTURE
        if account.program is not None:
            return CAPTURE
        due = max(account.due, self.price) if is_new or account.due else 0.0  # other kinds' captures may have failed since
        if account.spent >= due or self.is_long(job, account, bound):
            return CAPTURE
        if account.due != due:
            account.due = due
            account.why = waits(due, "a capture" if is_new else "another capture")
        return LOOK_UP if looks and job.may_be_saved(bound) else NUMPY

    def is_captured_at_once(self, job: Any) -> bool:
        """True if a new kind of calls is captured before it has paid."""
        return bool(job.option("economy") == "auto" and self.wishes < WISHES and not self.failures)

    def pays_for_pieces(self, plan: Any, account: Any) -> bool:
        """True if captures of a split function's pieces have cost less than its calls have paid. Otherwise the original function runs
        calls until they have paid the price of another capture: pieces of which some are not captured are slower than it.
        """
        plan.credit += account.spent
        account.spent = account.due = 0.0
        if plan.credit <= 0:
            account.due = max(self.price, -plan.credit)
            account.why = waits(account.due, "another capture of pieces")
        return bool(plan.credit > 0)

    def leave_first_calls(self, job: Any, compiled: Any) -> bool:
        """Let C run the first calls of kinds, until a kind has taken as long as loading a program takes. Returns True if it then runs this
        call, too.
        """
        if self.is_captured_at_once(job) or job.plan is not None:
            return False
        if not job.was_plain:
            job.was_plain = any(account.calls for account in compiled.accounts())
        before, self.left = self.left, (settings[0], self.long)
        if self.left != before:
            meet = functools.partial(self.meet, job)
            compiled.run_first_calls(self.bound_for(job), meet, settings, PACKAGES, self.long, LEAST)
        return before is None and not compiled.accounts()

    def meet(self, job: Any, account: Any, bound: tuple[Any, ...]) -> None:
        """Take note of a kind of calls that C has begun."""
        account.is_unasked = False
        job.profile.learn(job.names, bound)
        self.notes_of(job).open(account, bound)
        is_saved = job.may_be_saved(bound)
        account.due = 0.0 if is_saved else self.price
        account.why = SAVED if is_saved else waits(account.due, "a capture")

    def ask_about_first_calls(self, job: Any, compiled: Any) -> None:
        """After a capture: NumPy may run no first calls beside a program with other bits, or beside pieces."""
        if job.plan is not None or not job.pays:
            self.left = None
            compiled.run_first_calls()

    def opens(self, job: Any, account: Any, bound: tuple[Any, ...]) -> bool:
        """True if NumPy runs a call that wants a capture, because the modules that capture are imported in the background."""
        if not opening.is_needed or not has_another_processor() or self.is_long(job, account, bound):
            return False
        if self.unpaid_since is not None:
            self.wishes -= 1
            self.unpaid_since = None
        account.due, account.why = 0.0, IMPORTING
        opening.give_turn()
        return True

    def wants_another(self, job: Any, account: Any, bound: tuple[Any, ...]) -> bool:
        """True if this call is captured in the mode "now". An account has a price there only after a capture that compiled nothing."""
        return account.spent >= account.due or account.is_changed or self.is_long(job, account, bound)

    @property
    def long(self) -> float:
        """Seconds that a call may take, from which nothing has to be paid before its capture."""
        return LONG * float(BACKOFF**self.failures) + self.opening

    def is_long(self, job: Any, account: Any, bound: tuple[Any, ...]) -> bool:
        """True if the call may take so long."""
        return self.bound_of(job, account, bound) >= self.long

    def bound_for(self, job: Any) -> _core.Bound:
        """The bound of the function's calls."""
        if self.bound is None:
            self.bound = _core.Bound(job.fn, CLASSES)
        return self.bound

    def bound_of(self, job: Any, account: Any, bound: tuple[Any, ...]) -> float:
        """Seconds that the call may take: what calls of the same sizes took, otherwise by its bytecode and sizes, and by what others took."""
        is_known = account is not None and account.calls > 0 and not account.changes
        return BIAS * account.best if is_known else self.bound_for(job).seconds(bound)

    def note_call(self, seconds: float) -> None:
        """The call whose bound was asked for last has ended: it has taken at most so long."""
        if self.bound is not None:
            self.bound.note(seconds)

    def notes_of(self, job: Any) -> EconomyNotes:
        """The notes of earlier processes."""
        if self.notes is None:
            self.notes = EconomyNotes(job)
            self.failures = max(self.failures, self.notes.failures)
        return self.notes

    # --- builds ---

    def before_build(
        self,
        job: Any,
        account: Any,
        bound: Callable[[], float],
        changes: Callable[[], overtaking.Changes | None],
        program: Any,
        plain: float,
        least: float,
        price: float,
        is_exact: bool,
    ) -> None:
        """A whole graph is about to be built, which NumPy may run in `plain` seconds: raises Deferred where that has to wait.
        least: seconds in NumPy, if loops of unknown length run once. changes: what the call changes, if that can be restored.
        """
        account.price = price
        is_known = account.calls > 0 and not account.changes
        expected = estimate(plain, bound())
        seconds = account.best if is_known else expected
        if not is_exact:
            if not job.was_plain and (seconds >= price or job.option("economy") == "auto"):
                return
            raise Deferred(None, seconds)
        if COPIED * plain < min(expected, price) and self.copies(job, program, account, RENT * price - account.spent):
            return
        changed = changes() if (least < plain or bound() >= price) and overtaking.may_leave(job.fn) and has_another_processor() else None
        if changed is not None and not is_known and estimate(least, bound()) < price / 4:
            seconds = estimate(least, bound())  # the call shows what it takes
        if seconds >= price or (account.spent + seconds >= price and seconds >= price / 4):
            return
        if account.why == IMPORTING and opening.was_awaited:
            return
        raise Deferred(program, seconds, changed)

    def before_piece(self, job: Any, program: Any, plain: float, least: float, price: float, is_exact: bool) -> None:
        """The graph of a piece of a split function is about to be built."""
        if is_exact and COPIED * plain < price:
            self.copies(job, program, None, RENT * price)

    def copies(self, job: Any, program: Any, account: Any, rent: float) -> bool:
        """True if kernels of stencils run the calls until the C compiler has built others. It builds them in the background: at once if
        that is a wish, otherwise when calls on stencils have taken the rest of the rent.
        """
        if not has_another_processor():
            return False
        is_wish = account is not None and account.builds < WISHED_BUILDS and job.option("economy") == "auto"
        made = Replacement(job, program)
        rent = 0.0 if is_wish else max(rent, 0.0)
        if not program.copy_stencils(rent, functools.partial(beside.add, made)):
            return False
        if is_wish:
            account.builds += 1
        if not rent:
            beside.add(made)
        return True

    def before_recall(self, job: Any, owed: float, program: Any, *estimates: Any) -> None:
        """The program of a saved call is about to be built, for which an earlier process has paid all but `owed`."""
        if not self.copies(job, program, None, owed):
            raise NotSaved("its kernels are not built")

    def defer(self, job: Any, account: Any, program: Any, seconds: float, changes: Any = None) -> overtaking.Overtaking | None:
        """A capture has been whole, and its program is not built. seconds: what a call takes in NumPy. Returns what leaves the
        call when the program is there, if it may be left.
        """
        self.note_unpaid()
        self.failures = max(self.failures - 1, 0)
        account.program = program
        if program is None:
            account.due, account.why = math.inf, INEXACT
            return None
        rent = RENT * account.price
        is_wish = job.option("economy") == "auto" and account.builds < WISHED_BUILDS
        left = 0.0 if is_wish else rent - account.spent - seconds
        if left <= 0:
            self.queue(job, account)
        else:
            account.due = rent
            account.why = waits(account.due, "a build")
        if changes is None:
            return None
        call = overtaking.Overtaking(job.fn, changes)
        beside.add(Paying(job, account, call, max(rent - account.spent, 0.0) if left > 0 else 0.0), nice=0)
        return call

    def queue(self, job: Any, account: Any) -> None:
        """Has the program of an account built in the background; with one processor in this one, when calls have paid for all of it."""
        if not has_another_processor():
            account.due = account.price
            account.why = waits(account.due, "a build")
            if account.spent >= account.due:
                Build(job, account)()
            return
        account.builds += 1
        account.due, account.is_awaited, account.why = math.inf, True, "it is being built"
        awaited[id(account)] = build = Build(job, account)
        beside.add(build)

    # --- what is told ---

    def summary(self, accounts: list[Any]) -> dict[str, float]:
        """Seconds of calls that NumPy has run while they paid, of captures, and of builds in the background, for `stats`."""
        return {"plain": sum(a.total for a in accounts), "captured": self.captured, "built": self.built}

    def why(self, account: Any) -> str | None:
        """Why NumPy runs calls of an account's kind, or None."""
        why: str | None = account.why
        return waits(self.price, "a capture") if account.is_unasked else why

    def line(self, mode: str, accounts: list[Any], is_compiled: bool) -> str | None:
        """A line for `explain`: what was paid, and why NumPy or a program runs the calls. None before the first call."""
        if not accounts:
            return None
        spent = self.summary(accounts)
        calls = sum(a.calls for a in accounts)
        cost = f"{calls} {'call' if calls == 1 else 'calls'} in NumPy took {1e3 * spent['plain']:.3g} ms, captures {1e3 * spent['captured']:.3g} ms, builds in the background {1e3 * spent['built']:.3g} ms"
        state = next(filter(None, map(self.why, accounts)), None) or ("compiled" if is_compiled else "the program is built")
        return f"{mode}: {state} ({cost})"


def estimate(plain: float, bound: float) -> float:
    """Seconds that a call takes in NumPy, from the estimate of its graph and the bound of its bytecode."""
    return BIAS * min(plain, CAP * bound + SHORT)


def waits(due: float, step: str) -> str:
    """The text that says which step calls pay for, and the seconds in NumPy after which it is taken."""
    text = f"{1e3 * due:.3g} ms" if due < 1 else f"{due:.3g} s"
    return f"calls run in NumPy until they have taken the {text} from which {step} pays"


def has_another_processor() -> bool:
    """True if a build in the background does not take the calls' own processor."""
    return processors.count() > 1


class Build:
    """The build of an account's program."""

    __slots__ = ("job", "account", "program", "has_begun")

    def __init__(self, job: Any, account: Any) -> None:
        self.job, self.account, self.program = job, account, account.program
        self.has_begun = False

    def __call__(self) -> None:
        if self.account.program is not self.program:  # withdrawn
            return
        self.has_begun, began = True, Economy.clock()
        economy, account = self.job.economy, self.account
        try:
            self.program.build()
        except Exception as error:
            pass_on(error)
            economy.broken = error
        economy.built += Economy.clock() - began
        awaited.pop(id(account), None)
        account.spent, account.due, account.is_awaited, account.why = 0.0, 0.0, False, None


class Replacement:
    """The build of what takes the place of kernels of stencils. The program refers to it until it is queued."""

    __slots__ = ("job", "program")

    def __init__(self, job: Any, program: Any) -> None:
        self.job, self.program = job, program

    def __call__(self) -> None:
        economy, began = self.job.economy, Economy.clock()
        try:
            self.program.build()
        except Exception as error:
            pass_on(error)
            why = lazy.load("capture.session").describe(error, is_internal=True)
            self.job.warn_once("numpy", f"{self.job.name} runs on kernels of stencils, which are slower: {why}")
        economy.built += Economy.clock() - began


class Paying:
    """A call that may be left when its program is there: until the call has paid for the build, or while that is queued."""

    __slots__ = ("job", "account", "call", "ends")

    def __init__(self, job: Any, account: Any, call: overtaking.Overtaking, seconds: float) -> None:
        self.job, self.account, self.call = job, account, call
        self.ends = time.monotonic() + seconds  # until then the call has not paid

    def __call__(self) -> None:
        account, left = self.account, self.ends - time.monotonic()
        if account.program is not None and account.program.is_built:
            self.call()
            return
        if left <= 0 and account.program is not None and not (account.is_awaited or self.call.has_ended):
            self.job.economy.queue(self.job, account)
        if account.program is not None and self.job.economy.broken is None:
            self.call.again(self, min(max(left, 0.0), TURN) or overtaking.PAUSE)


class Opening:
    """The import, in the background, of the modules that capture, which kinds that want a capture wait for."""

    def __init__(self) -> None:
        self.importing = allocate_lock()
        self.has_begun = self.is_done = False
        self.was_awaited = False  # by `cinductor.wait`: the next calls of kinds that waited for it are built at once
        self.began = self.given = 0.0  # when; seconds that calls have waited for it

    @property
    def is_needed(self) -> bool:
        """True if a capture would have to wait for the import."""
        return not self.is_done and (self.has_begun or SESSION not in sys.modules)

    def __call__(self) -> None:
        began = Economy.clock()
        try:
            with self.importing:
                for name in IMPORTED:
                    if not beside.is_ending:
                        importlib.import_module(name)
        finally:
            self.is_done = True
            purse.used += Economy.clock() - began

    def give_turn(self) -> None:
        """Begin, or let the import have Python's lock, up to half of the time since it began: otherwise it gets the lock for a
        moment in each switch interval. Where it fails, captures import in their calls.
        """
        now = Economy.clock()
        if not self.has_begun:
            self.has_begun, self.began, self.given = True, now, 0.0
            self.is_done = not beside.add(self, nice=0)
        elif (most := now - self.began - 2 * self.given) > 0:
            if self.importing.acquire(timeout=min(most, TURN)):
                self.importing.release()
            self.given += Economy.clock() - now

    def before_fork(self) -> None:
        """The child has no such thread, and could never import a module whose import that has begun."""
        if self.importing.acquire(timeout=MAX_IMPORT):
            self.importing.release()

    def forget(self) -> None:
        """In the child of a fork, where nothing imports in the background."""
        self.importing, self.has_begun = allocate_lock(), False


purse = Purse()
opening = Opening()
awaited: dict[int, Build] = {}  # by id of the account


def withdraw(account: Any) -> bool:
    """True if a queued build had not begun; nothing builds it any more."""
    build = awaited.get(id(account))
    if build is None or build.has_begun:
        return False
    del awaited[id(account)]
    account.program, account.is_awaited, account.due = None, False, 0.0
    account.builds -= 1
    return True


def forget_builds() -> None:
    """In the child of a fork, where nothing builds them."""
    for build in awaited.values():
        account = build.account
        account.program, account.is_awaited, account.due, account.why = None, False, 0.0, None
    awaited.clear()
    opening.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=opening.before_fork, after_in_child=forget_builds)
