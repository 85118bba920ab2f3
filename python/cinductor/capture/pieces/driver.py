"""Dispatchers: functions that run the calls of a function that breaks.

The first call is captured piece by piece, and its breaks are recorded. The function is then split at those lines
(`split`), and each piece is compiled like a function of its own. The dispatcher is the user's code with calls of
the pieces in it; it runs later calls, at the cost of one dispatch between two breaks. If a piece breaks itself, or
NumPy is faster, the function is split again.

The code comes from the user's own syntax, and a piece is a compiled function. So in every case, also after failed
guards or checks, a piece does what its statements do.
"""

from __future__ import annotations

import ast
import os
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import _core
from ...base import lazy
from ...base.class_lookup import is_a
from ...base.signals import READS_BASE
from ...base.signature import method_of, signature_of
from ...base.user_frame import call_in_place
from ...calls.budget import needs_no_break
from ...calls.job import Job
from ..call_state import REST
from ..calls.functions import why_not_inlined
from ..kinds import NO_VALUE
from ..syntax.imported import modules_in
from ..syntax.jumps import exits_of, with_exits_after
from ..syntax.names import walk
from ..syntax.rewrite import (
    FACTORY,
    FUNCTION,
    GIVEN,
    NotRewritable,
    compile_function,
    factory,
    find_function,
    renamed,
    rewrite,
)
from .hoist import FOLLOW
from .lifetimes import are_unseen, left
from .split import CELL, HANDLED, LEFT_NAMES, UNBOUND, UNSEEN, Marks, Piece, Split

MAX_SPLITS = 24  # of one function
TRIED = 64  # calls after which the choice of pieces for NumPy is final
MANY = 1000  # calls of a piece that NumPy has run: more are too many to wait for the other pieces
FEW = 3  # first calls of a piece, before anything is known about it
MAX_INLINED = 64  # called functions that have broken inside
REVIEWS = frozenset({256, 1024})  # calls after which the choice is reviewed


# Types that a program can return, not inspected further.
DATA = (np.ndarray, np.generic, int, float, complex, str, type(None), tuple, list, dict)


class PieceJob(Job):
    """The job of one piece of a function that breaks."""

    def __init__(self, fn: Any, settings: dict[str, Any], owner: Any, piece: Any) -> None:
        super().__init__(fn, settings)
        self.owner, self.lines = owner, piece.lines
        self.binders = piece.binders()
        self.is_stale = False  # the function has been split again at its breaks
        self.is_left = False  # NumPy runs it, because its calls differ too much
        self.warned, self.was_recorded = owner.warned, owner.was_recorded

    def answer(self, compiled: Any, bound: Any, args: Any, kwargs: Any) -> Any:
        """In the call that has shown a new break, or that a piece is left to NumPy, the piece may be called again: the next call uses
        another piece. A piece is captured while the time that calls have taken in NumPy, and pieces in Python, pays for it.
        """
        if self.is_stale or self.is_left:
            return self.run_eager(args, kwargs)
        if not self.pays or self.owner.credit > 0:
            return super().answer(compiled, bound, args, kwargs)
        began = self.economy.clock()
        result = self.run_eager(args, kwargs)
        self.owner.credit += self.economy.clock() - began
        return result

    def note_own_work(self, seconds: float) -> None:
        super().note_own_work(seconds)
        self.owner.credit -= seconds

    def binders_of(self, result: Any) -> list[int]:
        """The lines that bind a value that no program can return: a function, an iterator, a file."""
        values = result if len(self.binders) != 1 else (result,)
        pairs = zip(values, self.binders, strict=True) if self.binders else ()
        return [n for value, lines in pairs if not is_a(value, DATA) for n in lines]

    @property
    def title(self) -> str:
        """The function, and the lines of the piece."""
        first, last = self.lines
        ends = "" if first == last else f"-{last}"
        path = os.path.basename(self.fn.__code__.co_filename)
        return f"{self.name} ({path}:{first}{ends}, between two breaks)"

    def at_limit(self, count: int, is_accumulated: bool) -> str | None:
        """As for a function; a piece that NumPy runs becomes part of the dispatcher."""
        why = super().at_limit(count, is_accumulated)
        self.is_left = why is not None
        return why

    def alike(self, known: tuple[Any, ...], bound: tuple[Any, ...]) -> list[Any]:
        """All specialisations: arguments of a piece are values of the function, and a text that differs in each
        iteration of a loop is not a mode.
        """
        return list(known)

    def keep(self, compiled: Any, specialization: Any, bound: tuple[Any, ...]) -> None:
        specialization.try_numpy()
        super().keep(compiled, specialization, bound)


def is_split_at(b: Any) -> bool:
    """True if the function is split where a call broke."""
    return not (needs_no_break(b) or b.reason.endswith(REST))


def make_piece(fn: Any, settings: dict[str, Any], owner: Any, piece: Any) -> Any:
    """Compile a piece of a function; the function's plan owns it."""
    job = PieceJob(fn, settings, owner, piece)
    compiled = _core.CompiledFunction(fn, *signature_of(fn), job.miss)
    compiled._cinductor_job = job  # type: ignore[attr-defined]
    return compiled


def attributes_of(node: ast.AST) -> set[str]:
    """The names of attributes in a function's text. `.base` of a piece's result is not NumPy's, because a piece does not
    return a view of a temporary.
    """
    return {n.attr for n in walk(node) if type(n) is ast.Attribute}


class SplitPlan:
    """How one function is split. `driver` is None until it was split, and if splitting was not useful."""

    def __init__(self, job: Job, fn: types.FunctionType, compiled: Any = None) -> None:
        self.fn = fn
        self.credit = 0.0  # seconds that captures of pieces may take
        self.asked = None if compiled is None else weakref.ref(compiled)
        self.first = given_first(job.fn)
        self.settings = {**job.settings, "fullgraph": False}
        self.marks = Marks()
        self.driver: Callable[..., Any] | None = None
        self.pieces: list[Any] = []  # compiled functions
        self.made: dict[types.CodeType, Any] = {}
        self.codes: dict[types.CodeType, bool] = {}  # code of dispatchers (True) and pieces
        self.inlined: dict[int, tuple[Any, Any]] = {}
        self.splits = self.calls = 0
        self.awaits_split = False  # breaks were noted, and calls pay for the split at them
        self.is_over = False
        self.is_tried = False  # the pieces that NumPy runs have been chosen
        self.warned, self.was_recorded = job.warned, job.was_recorded

    def captures(self) -> int:
        """The number of captures of pieces, and of functions that they call."""
        jobs = [p._cinductor_job for p in (*self.made.values(), *self.callees())]
        plans = [plan for j in jobs if (plan := j.plan) is not None]
        return sum(j.captures for j in jobs) + sum(plan.captures() for plan in plans)

    def callees(self) -> list[Any]:
        """Called functions that have broken inside and are compiled separately."""
        return [made for f, made in list(self.inlined.values()) if made is not f]

    @property
    def is_inexact(self) -> bool:
        """True if a piece, or a function it calls, may differ from NumPy in the last bits."""
        return any(p._cinductor_job.is_inexact for p in (*self.made.values(), *self.callees()))

    def lines(self) -> list[str]:
        """The lines of the pieces, and which of them NumPy runs."""
        texts = []
        for piece in self.pieces if self.driver is not None else ():
            first, last = piece._cinductor_job.lines
            ends = "" if first == last else f"-{last}"
            why = next(
                (f": NumPy, {s.why_numpy}" for s in piece.specializations if s.why_numpy), ""
            )
            texts.append(f"{self.fn.__code__.co_filename}:{first}{ends}{why}")
        return texts

    def note(self, breaks: list[Any], others: Iterable[int] = (), waits: bool = False) -> bool:
        """Record a break and split the function there, too. False if it was known. others: lines that are left to
        Python if a break has no line. waits: the split is made by `is_ready`.
        """
        if any(b.reason == READS_BASE for b in breaks):
            self.driver, self.is_over = None, True
            return False
        breaks = [*filter(is_split_at, breaks)] or breaks
        places = {(getattr(b, "own_line", 0), getattr(b, "is_inner", False)) for b in breaks}
        news = [self.marks.add(line, is_inner) for line, is_inner in sorted(places) if line]
        if any(line == 0 for line, _ in places):
            news += [self.marks.leave(line) for line in others]
        self.awaits_split = waits and any(news)
        if not any(news):
            self.driver, self.is_over = None, True
        elif not waits:
            self.split()
        return any(news) and not self.is_over

    def is_ready(self, job: Job) -> bool:
        """True if there is a dispatcher. A split that has waited is made now, at the cost of the job's function."""
        if self.awaits_split:
            self.awaits_split, began = False, job.economy.processor_clock()
            self.split()
            seconds = job.economy.processor_clock() - began
            job.note_own_work(seconds)
            self.credit -= seconds
        return self.driver is not None

    def split(self) -> None:
        """Make the dispatcher again."""
        self.splits += 1
        self.driver, self.is_tried = None, False
        if (compiled := self.asked and self.asked()) is not None:
            compiled.note_split_calls(None, None, None, False)  # type: ignore[union-attr]
        if self.splits > MAX_SPLITS:
            self.is_over = True
            return
        code = self.fn.__code__
        node: Any = find_function(code, self.fn.__qualname__)
        names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
        is_own = any(n.startswith("_ci_") for n in names)
        if not is_a(node, ast.FunctionDef) or is_own or "base" in attributes_of(node):
            self.is_over = True
            return
        node = with_exits_after(node)
        known = {*code.co_varnames, *code.co_cellvars, *exits_of(node)}
        split = Split(node, frozenset(known), self.marks)
        self.is_over = not split.pieces and not split.follows
        if self.is_over:
            return
        cells = {UNBOUND: NO_VALUE, FOLLOW: self.follow, UNSEEN: are_unseen, HANDLED: self.fix_handled}
        pieces = []
        for piece in split.pieces:
            compiled = self.compiled(piece, split.declared)
            if compiled is None:
                self.is_over = True
                return
            pieces.append(compiled)
            cells[f"{CELL}{piece.number}"] = compiled
        made = self.function(split.node, cells)
        self.is_over = made is None
        self.pieces, self.driver = pieces, made
        if made is not None:
            self.codes[made.__code__] = True

    def function(self, node: Any, cells: dict[str, Any]) -> types.FunctionType | None:
        """A function of the node, over the user's cells and these."""
        fn, code = self.fn, self.fn.__code__
        tree = factory(node, (*cells, *code.co_freevars), modules_in(code))
        new = compile_function(tree, code)
        if new is None:
            return None
        made_as = f"{FACTORY}.<locals>.{FUNCTION}"
        new = renamed(new, made_as, fn.__qualname__).replace(co_name=code.co_name)
        own = dict(zip(code.co_freevars, fn.__closure__ or (), strict=True))
        closure = tuple(own.get(n) or types.CellType(cells[n]) for n in new.co_freevars)
        made = types.FunctionType(new, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        made.__kwdefaults__ = fn.__kwdefaults__
        made.__qualname__, made.__module__ = fn.__qualname__, fn.__module__
        return made

    def compiled(self, piece: Piece, declared: Any) -> Any:
        """The compiled function of a piece, reused from an earlier split if possible."""
        node = piece.function(self.fn.__name__, declared)
        plain = self.function(node, {UNBOUND: NO_VALUE, LEFT_NAMES: left})
        if plain is None:
            return None
        plain.__defaults__ = plain.__kwdefaults__ = None
        found = self.made.get(plain.__code__)
        if found is None:
            plain.__dict__[GIVEN] = node
            found = self.made[plain.__code__] = make_piece(plain, self.settings, self, piece)
            self.codes[plain.__code__] = False
            try:
                self.codes[rewrite(plain).code] = False
            except NotRewritable:
                pass
        return found

    def follow(self, f: Any) -> Any:
        """The replacement of a called function that has broken inside: it is compiled separately."""
        found = self.inlined.get(id(f))
        if found is not None:
            return found[1]
        if type(f) is types.MethodType:
            made = self.follow(f.__func__)
            return f if made is f.__func__ else types.MethodType(made, f.__self__)
        if type(f) is not types.FunctionType or "<" in f.__qualname__:
            return f
        like = types.SimpleNamespace(fn_globals=self.fn.__globals__)
        made = f if why_not_inlined(f, like) else lazy.load("compile").make(f, self.settings, False)  # type: ignore[arg-type]
        if len(self.inlined) < MAX_INLINED:
            self.inlined[id(f)] = (f, made)
        return made

    def run(self, args: Any, kwargs: Any) -> Any:
        """One call."""
        driver = self.driver or self.fn
        self.calls += 1
        if not self.is_tried or self.calls in REVIEWS:
            self.review()
            driver = self.driver or self.fn
        try:
            return call_in_place(driver, (*self.first, *args), kwargs)
        except BaseException as error:
            self.fix_traceback(error)
            raise

    def bound_driver(self) -> Any:
        """The dispatcher as a function of the arguments alone."""
        driver = self.driver
        return types.MethodType(driver, self.first[0]) if driver and self.first else driver

    def fix_traceback(self, error: BaseException) -> None:
        """Correct the traceback of an exception that leaves the dispatcher."""
        error.__traceback__ = self.in_one(error.__traceback__)

    def fix_handled(self) -> None:
        """Correct the traceback of an exception before the dispatcher's handler sees it."""
        error = sys.exc_info()[1]
        if error is not None:
            self.fix_traceback(error)

    def review(self) -> None:
        """Make pieces that NumPy runs part of the dispatcher: those that it mostly runs, and others once all have been timed."""
        all_of_it = (*self.pieces, *self.callees())
        self.is_tried = self.calls > TRIED or not any(map(is_trying, all_of_it))
        is_over = self.is_tried and self.calls > 1
        lost = [p for p in self.pieces if is_mostly_numpys(p) or (is_over and is_numpys(p))]
        for piece in lost:
            first, last = piece._cinductor_job.lines
            for line in range(first, last + 1):
                self.marks.leave(line)
        if lost:
            self.split()
            self.is_tried = self.is_over

    def in_one(self, tb: types.TracebackType | None) -> types.TracebackType | None:
        """A traceback in which the dispatcher and its piece are one frame."""
        kept: list[types.TracebackType] = []
        while tb is not None:
            code = tb.tb_frame.f_code
            is_piece = self.codes.get(code) is False
            if is_piece and kept and self.codes.get(kept[-1].tb_frame.f_code):
                kept.pop()
            kept.append(tb)
            tb = tb.tb_next
        for entry, after in zip(kept, [*kept[1:], None], strict=True):
            entry.tb_next = after
        return kept[0] if kept else None


def is_trying(piece: Any) -> bool:
    """True while a piece, or a function it calls, is being timed against NumPy."""
    job = piece._cinductor_job
    plan = job.plan
    if piece.calls < FEW:
        return True
    if plan is not None and plan.driver is not None:
        return not plan.is_tried or piece.is_driver_timed
    return any(s.is_trying for s in piece.specializations)


def is_mostly_numpys(piece: Any) -> bool:
    """True if many calls of a piece, and most, differ from those that are compiled."""
    job = piece._cinductor_job
    return bool(job.is_left and job.counts["eager"] > max(MANY, piece.calls // 2))


def is_numpys(piece: Any) -> bool:
    """True if NumPy runs the calls of a piece."""
    job, found = piece._cinductor_job, piece.specializations
    if job.is_left or not found:
        return bool(job.is_left or any(account.why for account in piece.accounts()))
    return all(s.why_numpy for s in found)


def plan_of(job: Job, compiled: Any) -> SplitPlan | None:
    """The plan of a job whose calls break, made now; None if it cannot be split."""
    plan = job.plan
    if plan is None:
        found = method_of(job.fn) if type(job.fn) is not types.FunctionType else job.fn
        if found is None or job.settings["device"] not in (None, "cpu"):
            return None
        plan = job.plan = SplitPlan(job, found, compiled)
    return None if plan.is_over else plan


def given_first(fn: Any) -> tuple[Any, ...]:
    """The object that a bound method or a callable object is called with before the rest."""
    if type(fn) is types.FunctionType:
        return ()
    return (fn.__self__ if type(fn) is types.MethodType else fn,)
