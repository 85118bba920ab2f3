"""Effects of captured loops that are recorded and happen later: `print`, and appending to a list of the caller's.

In a loop or branch that is captured, such an effect is an entry in hidden lists. `order` gets the number of its
`Kind`. Each value that is known only when the program runs goes to a list of its own. These lists grow like lists of
the user's (`control/list_buffer.py`). The effects happen in Python's order when the call returns, or before
the next effect that is not recorded. If the program stops at a check, none of them has happened yet, and the original
function runs from the beginning. What is appended is not in the list until then, so such a list may not be read.
"""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.class_lookup import is_a
from ..base.records import NamedTuple
from .control.list_columns import Assumed
from .kinds import is_number
from .objects import Traced, is_record, is_standard, remade

if TYPE_CHECKING:
    from .control.region import Region
    from .control.state import State
    from .kinds import Hooks

MAX_KINDS = 64
KEYWORDS = {"sep": (str, type(None)), "end": (str, type(None))}  # what is flushed is to be seen at once
LAYERS = (io.BufferedWriter, io.BufferedRandom, io.BytesIO, io.FileIO)
CONSTANTS = (str, int, float, complex, bytes, type(None))


class Hole:
    """Stands in the arguments of a recorded effect for a value that is known only when the program runs."""


class Text:
    """Marks an f-string in the arguments of a recorded effect: (Text, the arguments of `formatted`)."""


class LateText:
    """An f-string that is formatted when it is printed: the arguments of `formatted`."""

    __slots__ = ("given",)

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.given = given


class Kind(NamedTuple):
    """A recorded effect: a function, its arguments with holes, and the number of the first hole's list."""

    function: Any  # or the number of a list that it appends to
    given: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    first: int
    holes: int


class Records:
    """The recorded effects of one call."""

    def __init__(self, tracer: Any, state: State) -> None:
        self.tracer, self.state = tracer, state
        self.clear()

    def clear(self) -> None:
        self.kinds: list[Kind] = []
        self.order: list[Any] = []
        self.values: list[list[Any]] = []  # of each hole
        self.targets: list[list[Any]] = []  # that are appended to

    @property
    def lists(self) -> list[list[Any]]:
        """The hidden lists."""
        return [self.order, *self.values] if self.kinds else []

    def has(self, value: Any) -> bool:
        """True for a hidden list."""
        return any(value is known for known in self.lists)

    @property
    def may_add(self) -> bool:
        """True in a loop or branch that is captured or may be, if the call can still restart."""
        tracer, is_inside = self.tracer, self.state.snapshots
        return bool(is_inside and tracer.may_check() and not tracer.is_dry and len(self.kinds) < MAX_KINDS)

    def add(self, scope: Hooks, function: Any, given: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        """Record a call; False if a value is neither a number nor a constant."""
        values: list[Any] = []
        if (parts := with_holes(scope, given, values)) is None:
            return False
        form = (function, parts, tuple(keywords.items()), len(values))
        number = next((k for k, kind in enumerate(self.kinds) if alike(kind, form)), len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(Kind(*form[:3], len(self.values), len(values)))
            self.values += [[] for _ in values]
        first = self.kinds[number].first
        for k, value in enumerate(values):
            scope.call(self.values[first + k].append, value)
        scope.call(self.order.append, self.tracer.lift(number))
        return True

    def take(self) -> tuple[Any, ...] | None:
        """Remove and return the recorded effects, for `emit`; None if there are none."""
        lists, taken = self.state.lists, None
        if self.order or id(self.order) in lists:
            taken = (tuple(map(tuple, self.kinds)), tuple(self.targets), self.order, *self.values)
        for target in self.targets:
            if id(target) in lists:
                lists[id(target)].drop()
        self.clear()
        return taken

    def flush(self, materialise: Callable[[Any], Any]) -> None:
        """Let the effects happen, because another one follows."""
        if (taken := self.take()) is not None:
            kinds, targets, *lists = taken
            real = [materialise(part) for part in lists]
            emit(kinds, targets, *real)


def alike(kind: Kind, form: tuple[Any, ...]) -> bool:
    """True if a kind has the same function and constants."""
    return described((*kind[:3], kind.holes)) == described(form)


def described(part: Any) -> tuple[Any, ...]:
    """The classes and texts of a part of a kind. Texts alone are not enough: NumPy can print its numbers like Python's."""
    return type(part), tuple(map(described, part)) if is_a(part, tuple) else repr(part)


def with_holes(scope: Hooks, given: tuple[Any, ...], values: list[Any]) -> tuple[Any, ...] | None:
    """The arguments with holes for traced numbers, which are added to values; None if there is anything else."""
    made: list[Any] = []
    for value in scope.stage.lifting.lift_tuple(given):
        if type(value) is Traced:
            if value.kind == "array" or value.strong is not None:
                return None
            values.append(value)
            made.append(Hole)
        elif is_record(type(value)) and is_standard(type(value)):
            if (inner := with_holes(scope, value, values)) is None:
                return None
            made.append(remade(value, [*inner]))
        elif type(value) is LateText:
            if not fits(*value.given) or (inner := with_holes(scope, value.given, values)) is None:
                return None
            made.append((Text, inner))
        elif type(value) in CONSTANTS or type(value) is bool or is_number(value):
            made.append(value)
        else:
            return None
    return tuple(made)


def filled(part: Any, columns: Iterator[list[Any]]) -> Iterator[Any]:
    """A part of the arguments in one effect after another: the next columns have the values of its holes."""
    if part is Hole:
        return iter(next(columns))
    if not has_hole(part):
        return itertools.repeat(part)
    if part[0] is Text:
        return itertools.starmap(formatted, filled(part[1], columns))
    return zip(*[filled(v, columns) for v in part])  # noqa: B905


def has_hole(part: Any) -> bool:
    """True if a part of the arguments is known only when the program runs."""
    return part is Hole or (type(part) is tuple and any(map(has_hole, part)))


def emit(kinds: tuple[Any, ...], targets: tuple[list[Any], ...], order: list[int], *values: list[Any]) -> None:
    """Let recorded effects happen, in their order."""
    calls = []
    for function, given, keywords, first, holes in kinds:
        known = filled(given, iter(values[first : first + holes]))
        calls.append((targets[function].append if type(function) is int else function, known, dict(keywords)))
    used = {*order}
    if len(used) == 1 and type(kinds[order[0]][0]) is int:
        target, known = targets[kinds[order[0]][0]], calls[order[0]][1]
        target.extend([item for item, in itertools.islice(known, len(order))])
        return
    for number in order:
        call, known, keywords = calls[number]
        call(*next(known), **keywords)


def emitted(result: Any, *taken: Any) -> Any:
    """Let recorded effects happen; return the result."""
    emit(*taken)
    return result


# --- texts ---

CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}


def formatted(template: tuple[Any, ...], *values: Any) -> str:
    """An f-string: texts, and (conversion, format) for each value."""
    left = iter(values)
    return "".join(
        part if type(part) is str else format(CONVERSIONS[part[0]](next(left)), part[1]) for part in template
    )


def fits(template: tuple[Any, ...], *values: Any) -> bool:
    """True if no number of the same dtypes raises in this f-string: the error would be as late as the text."""
    try:
        formatted(template, *[least_of(v) if type(v) is Traced else v for v in values])
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def least_of(value: Traced) -> Any:
    """A number of the dtype that has a format if every number has: a character's code may be neither negative nor large."""
    dtype, kind = value.dtype, value.dtype.kind
    number = dtype.type(np.iinfo(dtype).min if kind == "i" else np.iinfo(dtype).max if kind == "u" else 0)
    return number.item() if value.kind == "python" else number


def late_text(scope: Hooks, template: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """An f-string that is an argument of print: a `LateText` if it has numbers that only the program knows."""
    holes: list[Any] = []
    if scope.stage.records.may_add and with_holes(scope, values, holes) is not None and holes:
        return LateText((template, *values))
    return formatted(template, *values)


def at_once(value: Any) -> Any:
    """An argument of a print that is not recorded."""
    return formatted(*value.given) if type(value) is LateText else value


# --- which effects are recorded ---


def record_print(scope: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Record a call of print to a stream of Python's, if that is possible."""
    stage = scope.stage
    records, sources = stage.records, stage.sources
    if not records.may_add or not all(name in KEYWORDS and type(v) in KEYWORDS[name] for name, v in kwargs.items()):
        return False
    stream, given = sys.stdout, (*args, *kwargs.values())
    if not (is_plain(stream) and can_encode(stream, given)) or not records.add(scope, print, args, kwargs):
        return False
    source = sources.source("attr", sources.source("const", sys), "stdout")
    sources.check_once(source, "type", type(stream))
    for name in ("encoding", "errors", "closed"):
        sources.check_once(sources.source("attr", source, name), "equals", getattr(stream, name))
    for name, layer in layers_of(stream):
        source = sources.source("attr", source, name)
        sources.check_once(source, "type", type(layer))
    return True


def layers_of(stream: Any) -> Iterator[tuple[str, Any]]:
    """The streams through which one of Python's writes, with the attributes that have them."""
    for name in ("buffer", "raw"):
        if is_a(stream, io.StringIO | io.BytesIO | io.FileIO):
            return
        stream = getattr(stream, name, None)
        yield name, stream


def is_plain(stream: Any) -> bool:
    """True if no code of the user's runs when text is written to the stream, and it is open: an error would be late."""
    cls = type(stream)
    if not (issubclass(cls, io.TextIOWrapper | io.StringIO) and cls.write in (io.TextIOWrapper.write, io.StringIO.write)):
        return False
    return not stream.closed and all(type(layer) in LAYERS for _, layer in layers_of(stream))


def can_encode(stream: Any, given: Any) -> bool:
    """True if the texts among the arguments can be written to the stream. If they cannot, the error would be late."""
    if type(given) is LateText:
        return can_encode(stream, given.given)
    if is_a(given, tuple):
        return all(can_encode(stream, part) for part in given)
    if type(given) is str and not given.isascii() and stream.encoding is not None:  # a StringIO has none
        try:
            given.encode(stream.encoding, stream.errors)
        except UnicodeError:
            return False
    return True


class Log(Assumed):
    """A list of the caller's to which the call only appends; item: one of those."""

    def __init__(self, scope: Any, value: list[Any], source: int) -> None:
        super().__init__(scope, value, None, [], len(value))
        self.source = source

    @property
    def length(self) -> Any:
        return self.fail("a list is read to which a loop appends")

    def append(self, item: Any) -> None:
        records = self.scope.stage.records
        targets = records.targets
        number = next((k for k, target in enumerate(targets) if target is self.container), len(targets))
        if number == len(targets):
            targets.append(self.container)
        if not records.may_add or not records.add(self.scope, number, (item,), {}):
            self.fail("an argument that is a list grows")


def record_append(scope: Hooks, value: list[Any], item: Any) -> bool:
    """Record an append to a list of the caller's that the call has not read."""
    stage = scope.stage
    source = stage.sources.source_of(value)
    if not stage.records.may_add or not stage.may_assume_columns or source is None or source < 0:
        return False
    if with_holes(scope, (item,), []) is None or stage.sources.is_read(source) or stage.stores.of(value):
        return False
    if not stage.state.active:  # the loop may still be run by Python
        Log(scope, value, source).append(item)
        return True
    region: Region = stage.state.active[-1]
    region.want(value, make_log, source)


def make_log(value: list[Any], source: int, region: Region) -> None:
    """Record what is appended to a list from before the loop or branch on."""
    Log(region.scope, value, source)

