"""The object `__ci__`, whose methods rewritten code calls. There is one for each function that is inlined in a call.

On plain values a method does what Python does, and also informs the stage. `PlainScope` only does what Python
does: functions made in a captured call that outlive it run with it.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a, module_of
from ...base.signals import Raised, Signal, comes_from_within, names_traced, reword
from ...base.user_frame import hide_our_frames
from ...numpy import list_sources
from .. import identity, operands, special_methods
from ..call_state import Stage, check_budget, fall_back, lifted_once, with_bailout
from ..calls import consumers, numbers
from ..calls.builtins import PATTERNS, contains
from ..calls.calls import dispatch
from ..calls.functions import DEBUGGERS
from ..container_rows import MAPPINGS, ROWS
from ..control import given_mappings, list_buffer
from ..control.mappings import is_open_key
from ..iterators import SIZED
from ..kinds import is_bool
from ..objects import (
    CONTAINER_TYPES,
    FREE_TYPES,
    HOLDERS,
    MISSING,
    VIEWS_OF_DICTS,
    Traced,
    is_native,
    is_numpys,
)
from ..records import at_once, formatted, late_text, record_print
from ..syntax.stage_calls import Site
from .attributes import Attributes, Managed, Slot, TracedErrstate
from .constructs import PlainControl, PlainOperand, TracedControl, generated
from .iteration import Iteration
from .subscripts import Subscripts

OWN_ERRORS = (Signal, _core.RegionBreak, _core.CheckFailed, _core.CinductorError)


class Scope(Attributes, Subscripts, Iteration, TracedControl):
    """The interface between the rewritten code of one function and the stage."""

    __slots__ = (
        "stage",
        "fn_globals",
        "builtins",
        "fn",
        "cells",
        "cache",
        "sites",
        "file",
        "is_library",
        "__weakref__",
    )

    def __init__(self, stage: Stage, fn: types.FunctionType, sites: tuple[Site, ...] = ()) -> None:
        self.stage = stage
        self.sites = sites
        self.file = fn.__code__.co_filename
        self.fn = fn
        self.fn_globals = fn.__globals__
        self.is_library = is_numpys(self.fn_globals.get("__name__"))
        builtins = fn.__globals__.get("__builtins__", __builtins__)
        self.builtins = builtins if is_a(builtins, dict) else vars(builtins)
        self.cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        stage.sources.guard_empty_cells(fn)
        cache = stage.globals.get(id(self.fn_globals))
        if cache is None:
            cache = stage.globals[id(self.fn_globals)] = (self.fn_globals, {})
        self.cache = cache[1]
        stage.scopes.append(self)

    def check_budget(self) -> None:
        """Check the limits before an iteration that Python runs."""
        check_budget(self.stage)

    def fall_back(self, why: str) -> None:
        """Let Python and NumPy run the rest of the call."""
        fall_back(self.stage, why)

    def leave_to_numpy(self, f: Any, args: Any, kwargs: Any, reason: str) -> Any:
        """Make a call that only NumPy supports; NumPy runs the rest of the call."""
        stage = self.stage
        stage.effects.abandon(reason)
        fall_back(stage, reason)
        return f(
            *(stage.materialise(a) for a in args),
            **{name: stage.materialise(value) for name, value in kwargs.items()},
        )

    # --- names ---

    def name(self, name: str) -> Any:
        """A global or builtin name."""
        found = self.cache.get(name)
        value = self.fn_globals.get(name, MISSING)
        if value is MISSING:
            if found is not None:
                return found[1]
            return self._builtin(name)
        if found is not None and found[0] is value:
            return found[1]
        return self._global(self.fn_globals, self.cache, name, value)

    def is_builtin(self, name: str) -> bool:
        """True if the name has Python's own meaning."""
        return self.name(name) is getattr(builtins, name)

    def sum_and_carry(self, total: Any, carry: Any, item: Any) -> tuple[Any, Any]:
        """Add one item to a compensated sum."""
        return numbers.sum_and_carry(self, total, carry, item)

    def sum_of(self, total: Any, carry: Any) -> Any:
        """The value of a compensated sum."""
        return numbers.sum_of(self, total, carry)

    def _global(self, where: dict[str, Any], cache: dict[str, Any], name: str, value: Any) -> Any:
        stage = self.stage
        if self.is_library:
            new = value  # NumPy tests the identity of its functions
        else:
            new = stage.lift_guarded(value, stage.sources.source("global", where, name))
        cache[name] = (value, new)
        return new

    def _builtin(self, name: str) -> Any:
        value = self.builtins.get(name, MISSING)
        if not self.is_library:
            self.stage.sources.note_name(self.fn_globals, name, _core.MISSING)
            self.stage.sources.note_name(self.builtins, name, _core.MISSING if value is MISSING else value)
        if value is MISSING:
            raise NameError(f"name '{name}' is not defined", name=name)
        self.cache[name] = (value, value)
        return value

    def free(self, name: str, value: Any) -> Any:
        """A name of a function around the captured one."""
        return self.stage.lift_guarded(value, self.stage.sources.source_of_free(self.fn, name))

    def own_super(self, made: Any, cls: type) -> Any:
        """The object that `super()` returned for the class in the function's `__class__` cell."""
        self.name("super")
        return made

    def local(self, value: Any) -> Any:
        """A local name that inner functions share: its value may have become concrete."""
        return self.stage.lift_array(value) if type(value) is np.ndarray else value

    def global_slot(self, name: str) -> Slot:
        """The slot of a global name."""
        return Slot(self._get_global, self._set_global, self._del_global, name)

    def _get_global(self, name: str) -> Any:
        return self.name(name)

    def _set_global(self, name: str, value: Any) -> None:
        self.stage.effects.note(f"sets the global {name}")
        self.fn_globals[name] = self.stage.materialise(value)

    def _del_global(self, name: str) -> None:
        self.stage.effects.note(f"deletes the global {name}")
        if name not in self.fn_globals:
            raise NameError(f"name '{name}' is not defined", name=name)
        del self.fn_globals[name]

    def free_slot(self, name: str) -> Slot:
        """The slot of a name of an enclosing function."""
        return Slot(self._get_free, self._set_free, self._del_free, name)

    def _get_free(self, name: str) -> Any:
        return self.free(name, self.cells[name].cell_contents)

    def _set_free(self, name: str, value: Any) -> None:
        self.stage.effects.note(f"sets {name} of an enclosing function")
        self.cells[name].cell_contents = self.stage.materialise(value)

    def _del_free(self, name: str) -> None:
        self.stage.effects.note(f"deletes {name} of an enclosing function")
        del self.cells[name].cell_contents

    # --- operands and tests ---

    def born(self, value: Any) -> Any:
        """A generator expression, made by Python itself."""
        return self.stage.state.note_definition(value)

    generated = staticmethod(generated)

    def made(self, value: Any) -> Any:
        """The value, which Python itself has made of others that waited on its stack; real if Python runs the rest of the call by now."""
        return value

    def key(self, value: Any) -> Any:
        """The key of a dict display, or the element of a set display, which Python hashes."""
        return value if type(value) in FREE_TYPES or type(value) in VIEWS_OF_DICTS else self.use(value)

    def lifted_once(self, value: Any) -> Any:
        """The result of a call that must not be repeated."""
        return lifted_once(self.stage, value)

    def use(self, value: Any) -> Any:
        """A value that Python reads: compared, formatted."""
        return operands.use(self.stage, value)

    def as_text(self, value: Any) -> Any:
        """A value that Python formats."""
        stage, found = self.stage, identity.has_address(value)
        if found is not None:
            stage.effects.stop(f"the text of a {found.__name__} has its address")
            return stage.materialise(value)
        identity.note_order(stage.sources, (value,))
        return self.use(value)

    def inverted(self, value: Any) -> Any:
        """The operand of `~`; Python warns of a bool."""
        if is_bool(value) and sys.version_info >= (3, 12):
            self.stage.effects.stop("~ of a bool, of which Python warns")
            return self.stage.materialise(value)
        return self.operand(value)

    def operand(self, value: Any) -> Any:
        """An operand of an arithmetic operator: sequences are joined, not read."""
        if type(value) in CONTAINER_TYPES:
            if id(value) in self.stage.state.lists:
                return operands.StoredList(self, value, list)
            return self.stage.lifting.operand(value)
        return operands.operand(self, value)

    def read_operand(self, value: Any) -> Any:
        """An operand that Python reads: of a comparison, or the right one of an in-place operator."""
        return operands.operand(self, value)

    def modulo(self, a: Any, b: Any) -> Any:
        """a % b, which is formatting if a is a text."""
        if is_a(a, str | bytes | bytearray):
            b = self.operand(b)
            return a % self.as_text(operands.real(b))
        return self.operand(a) % self.operand(b)

    def repeat(self, a: Any, b: Any) -> Any:
        """a * b, where one operand is a list display."""
        items, count = (a, b) if type(a) is list else (b, a)
        is_plain = type(items) is list and id(items) not in self.stage.state.lists
        if is_plain and type(count) is Traced and self.may_leave_open():
            made = list_buffer.repeated(self, items, count)
            if made is not None:
                self.leave_open()
                return made
        return self.operand(a) * self.operand(b)

    def members(self, value: Any) -> Any:
        """The right operand of `in`."""
        if id(value) in self.stage.state.lists:
            return value
        source = self.stage.sources.source_of(value)
        if type(value) in MAPPINGS and source is not None and source >= 0:
            self.stage.sources.guard_length(value, source)
            return value
        return self.use(value)

    def contains(self, value: Any, members: Any) -> Any:
        """value in members"""
        grown = self.stage.state.lists.get(id(members))
        if grown is not None and (found := grown.contains(self, value)) is not MISSING:
            return found
        if is_open_key(self, members, value):
            given_mappings.want_mapping(self, members, value)
            if not members:
                return False
        return contains(self, value, members)

    def test(self, value: Any) -> Any:
        """A value whose truth is tested next."""
        cls = type(value)
        if cls in FREE_TYPES:
            return value
        stage = self.stage
        if cls is np.ndarray:
            return stage.lift_array(value)
        if cls is PlainOperand or cls in SIZED:
            return value.truth if cls is PlainOperand else value.length
        if stage.state.lists and (grown := stage.state.grown(value)) is not None:
            return grown.truth
        if is_a(value, HOLDERS) and is_native(cls, "__bool__", "__len__"):
            source = stage.sources.source_of(value)
            if source is not None and source >= 0:
                stage.sources.guard_length(value, source)
            return value
        for name in ("__bool__", "__len__"):
            method = stage.sources.class_attr(cls, name)
            if type(method) is types.FunctionType:
                made = self.call_method(method, value)
                return special_methods.truth(made) if name == "__bool__" else special_methods.length(self, made)
            if method is not MISSING and stage.sources.source_of(value) is not None:
                stage.effects.stop(f"the truth of a {cls.__name__}")
                return value
        return value

    def augment(self, name: str, value: Any, other: Any) -> Any:
        """value op= other, for the in-place operator of that name."""
        stage, cls = self.stage, type(value)
        op: Callable[[Any, Any], Any] = getattr(operator, name)
        if type(other) is operands.Hooked:
            return operands.in_place(self, name, other.cls, value, other.value)
        if cls is np.ndarray:
            value = stage.lift_array(value)
            cls = type(value)
        if cls is Traced:
            if type(other) not in FREE_TYPES:
                other = self.array_of(other)
            if value.kind == "array" and stage.effects.before_write(value):
                op(stage.materialise(value), stage.materialise(other))
                return value
            return op(value, other)
        if cls in FREE_TYPES:
            return op(value, other)
        if cls is list and name == "iadd":
            other = stage.lift_array(other)
            if type(other) is Traced or is_a(other, np.generic):  # Python tries its operator first
                return op(self.operand(value), other)
            other = list(self.star(other))
        method = stage.sources.class_attr(cls, f"__{name}__")
        if stage.sources.source_of(value) is not None and method is not MISSING and type(method) is not types.FunctionType:
            stage.change(value, f"changes a {cls.__name__} in place")
            return op(value, stage.materialise(other))
        if cls in ROWS:
            stage.state.before_change(value)
        hooked = None if cls is list else operands.hook_of(stage, value)
        return op(value, other) if hooked is None else operands.in_place(self, name, hooked, value, other)

    def waits(self, value: Any) -> Any:
        """The value, an operand that waits while a later one runs code. Python may run the rest since this method was
        looked up: then only the evaluation stack refers to the operand, so that it dies when Python's would."""
        if not self.stage.tracer.has_fallen_back:
            self.stage.state.waiting.append(value.waiting if type(value) is Slot else value)
        return value

    def done(self, count: int, value: Any) -> Any:
        """The value, the operand for which `count` others have waited."""
        del self.stage.state.waiting[-count:]
        return value

    # --- statements ---

    def context(self, value: Any) -> Any:
        """The manager of a with statement."""
        cls = type(value)
        if cls is Traced:
            self.stage.effects.stop("enters an array")
            return self.stage.materialise(value)  # raises when it is entered
        if cls is np.errstate and self.stage.sources.source_of(value) is None:
            # Made by the table of calls, which has inspected its arguments.
            return TracedErrstate(self.stage.tracer, *self.stage.errstates[id(value)])
        is_null = module_of(cls) == "contextlib" and cls.__name__ == "nullcontext"
        if is_null or not all(self.stage.sources.defines(cls, name) for name in ("__enter__", "__exit__")):
            return value  # Python raises for a class without both
        self.stage.effects.stop(f"enters a {cls.__name__}")
        return Managed(self.stage.lifting, value)

    def shares(self, names: types.FunctionType) -> None:
        """First in a function that sets names of one around it: they are in the cells of `names`."""
        self.stage.state.share(names)

    def caught(self) -> None:
        """First in every except clause: what is the library's own is none of the user's business, nor
        is a mistake, and a message that names a traced value is not the one that NumPy gives. Sizes that a
        message names are guarded.
        """
        error = sys.exc_info()[1]
        if is_a(error, OWN_ERRORS):
            raise  # noqa: PLE0704  (this is called by the handler)
        if error is None or not names_traced(error) and not comes_from_within(error):
            self.stage.tracer.concretize_shown()
        elif self.stage.effects.undo_call():
            raise Raised(error) from None
        if error is not None:
            self.stage.sources.guard_bases(type(error))
            reword(error)
            hide_our_frames(error)

    def parts(self, kind: str, value: Any, *asked: Any) -> tuple[Any, ...] | None:
        """The parts of a value that a pattern of a match statement tests; None if the value does
        not match its kind."""
        return PATTERNS[kind](self, value, *asked)

    def leaves(self) -> None:
        """Called first in every `finally`: a call that one of the library's own exceptions leaves is not over yet."""
        error = sys.exc_info()[1]
        if error is None or not is_a(error, OWN_ERRORS) or error.__traceback__ is None:
            return
        if error.__traceback__.tb_frame is sys._getframe(1):  # not one that a caller has caught
            raise  # noqa: PLE0704

    def import_module(self, name: str, is_last: bool) -> Any:
        """import name; the last module of a dotted name when it is bound by `as`."""
        if name in DEBUGGERS:
            self.stage.effects.abandon(f"imports {name}")
        if name not in sys.modules:
            self.stage.effects.stop(f"imports {name}")
        top = __import__(name, self.fn_globals, None, None, 0)
        return self.imported(sys.modules[name], name) if is_last else self.imported(top, name.partition(".")[0])

    def imported(self, module: Any, name: Any) -> Any:
        """A module that an import statement has found; guarded, because `sys.modules` may change."""
        if sys.modules.get(name) is not module:
            self.stage.effects.stop("imports what has another name in sys.modules")
            return module
        sources = self.stage.sources
        modules = sources.source("global", sys.__dict__, "modules")
        return self.stage.lift_guarded(module, sources.source("item", modules, name))

    def import_name(self, module: str, name: str, level: int) -> Any:
        """from module import name"""
        before = len(sys.modules)
        found = __import__(module, self.fn_globals, None, (name,), level)
        if len(sys.modules) != before:
            self.stage.effects.stop(f"imports {found.__name__}")
        if not hasattr(found, name):
            where = getattr(found, "__file__", None) or "unknown location"
            raise ImportError(
                f"cannot import name '{name}' from '{found.__name__}' ({where})",
                name=found.__name__,
                path=getattr(found, "__file__", None),
            )
        return self.attr(self.imported(found, found.__name__), name)

    def decorator(self, value: Any) -> Callable[[Any], Any]:
        """A decorator of an inner function."""
        return lambda fn: self.call(value, fn)

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """args[0](*args[1:], **kwargs)"""
        if self.stage.tracer.has_fallen_back:
            return args[0](*self.stage.materialise(args[1:]), **self.stage.materialise(kwargs))
        lists = self.stage.state.lists
        if lists and len(args) == 2 and not kwargs and (grown := lists.get(id(args[1]))):
            if not grown.is_sized:
                source = SOURCES.get(id(args[0]))
                if source is not None and grown.has_sources:
                    return dispatch(self, source, args[1:], kwargs)
            elif not grown.may_look:
                found = consumers.of_numbers(self, args[0], grown)
                return grown.call(args[0]) if found is None else found
            else:
                grown.materialise()
        return dispatch(self, args[0], args[1:], kwargs)

    def late_text(self, template: tuple[Any, ...], *values: Any) -> Any:
        """An f-string that is an argument of print."""
        return late_text(self, template, values)

    def printed(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs) where f is named print, with texts that may be formatted later."""
        if f is print and not self.stage.tracer.has_fallen_back and record_print(self, args, kwargs):
            return None
        return self.call(f, *map(at_once, args), **kwargs)

    def call_method(self, /, *args: Any, **kwargs: Any) -> Any:
        """Like `call`, where the user's code writes no call: operands around may wait unseen."""
        state = self.stage.state
        before, state.unseen = state.unseen, state.tracer.last_storage
        try:
            return self.call(*args, **kwargs)
        finally:
            state.unseen = before


# Functions of Python, by id, that are captured from source for a list that is stored as columns.
SOURCES = {id(f): source for f, source in list_sources.FUNCTIONS.items()}
# Operations of rewritten code, except those that inspect the calling frame or have no result, by kind (`with_bailout`).
BAILING = {
    "quiet": "name free local bound as_text inverted made key is_bool is_one attr_slot item_slot",
    "operand": "use operand read_operand",
    "lazy": "iter star iter_unpacked unpack for_",
    "": """
        repeat modulo members contains test augment context mapping each attr item call call_method late_text printed slice import_module
        import_name lt le gt ge eq ne while_ if_ bool_begin then not_ truth assertion parts
        _get_global _set_global _del_global _get_free _set_free _del_free _get_attr _set_attr _del_attr _get_item _set_item _del_item
    """,
}
KINDS = {name: kind for kind, names in BAILING.items() for name in names.split()}
METHODS = {name: getattr(Scope, name) for name in KINDS}
for name, kind in KINDS.items():
    setattr(Scope, name, with_bailout(METHODS[name], kind))


# --- functions made in a captured call that outlive it ---


class PlainScope(Scope):
    """Does what Python does: nothing is traced any more."""

    __slots__ = ()

    @classmethod
    def like(cls, scope: Scope) -> PlainScope:
        """The plain scope of the same function."""
        new = object.__new__(cls)
        for name in ("stage", "fn", "fn_globals", "builtins", "cells", "cache", "sites", "file"):
            setattr(new, name, getattr(scope, name, None))
        new.stage = None  # type: ignore[assignment]
        return new

    def name(self, name: str) -> Any:
        value = self.fn_globals.get(name, MISSING)
        value = self.builtins.get(name, MISSING) if value is MISSING else value
        if value is MISSING:
            raise NameError(f"name '{name}' is not defined", name=name)
        return value

    def free(self, name: str, value: Any) -> Any:
        return value

    truth = local = use = as_text = operand = read_operand = members = test = assertion = mapping = iter = star = context = staticmethod(
        lambda value: value
    )
    key = born = made = inverted = waits = truth
    each = staticmethod(lambda value, shape=None: value)
    done = staticmethod(lambda count, value: value)
    own_super = staticmethod(lambda made, cls: made)
    attr: Any = staticmethod(getattr)
    item: Any = staticmethod(operator.getitem)
    contains = staticmethod(lambda value, members: value in members)
    call = call_method = staticmethod(operands.call)
    late_text = staticmethod(formatted)
    printed = staticmethod(lambda f, /, *args, **kwargs: f(*map(at_once, args), **kwargs))
    iter_unpacked = unpack = staticmethod(lambda value, shape: value)
    augment = staticmethod(lambda name, value, other: getattr(operator, name)(value, operands.real(other)))
    decorator = staticmethod(lambda value: value)
    for_, while_, if_ = PlainControl.for_, PlainControl.while_, PlainControl.if_
    bool_begin, bool_end = PlainControl.bool_begin, PlainControl.bool_end
    not_: Any = staticmethod(operator.not_)
    repeat: Any = staticmethod(operator.mul)
    modulo: Any = staticmethod(operator.mod)
    bound = staticmethod(PlainControl.bound)
    lt, le, gt, ge, eq, ne = (staticmethod(getattr(operator, name)) for name in ("lt", "le", "gt", "ge", "eq", "ne"))
    then, choose, choose_result = PlainControl.then, PlainControl.choose, PlainControl.choose_result

    def caught(self) -> None:
        hide_our_frames(sys.exc_info()[1])

    leaves: Any = staticmethod(lambda: None)
    shares: Any = staticmethod(lambda names: None)

    def _set_global(self, name: str, value: Any) -> None:
        self.fn_globals[name] = value

    def _del_global(self, name: str) -> None:
        if name not in self.fn_globals:
            raise NameError(f"name '{name}' is not defined", name=name)
        del self.fn_globals[name]

    def _set_free(self, name: str, value: Any) -> None:
        self.cells[name].cell_contents = value

    def _del_free(self, name: str) -> None:
        del self.cells[name].cell_contents

    _set_attr: Any = staticmethod(lambda name, item, value: setattr(value, name, item))
    _del_attr: Any = staticmethod(lambda name, value: delattr(value, name))

    def _get_item(self, key: Any, value: Any) -> Any:
        return value[key]

    def _set_item(self, key: Any, item: Any, value: Any) -> None:
        value[key] = item

    def _del_item(self, key: Any, value: Any) -> None:
        del value[key]

    def import_module(self, name: str, is_last: bool) -> Any:
        top = __import__(name, self.fn_globals, None, None, 0)
        return sys.modules[name] if is_last else top

    def import_name(self, module: str, name: str, level: int) -> Any:
        found = __import__(module, self.fn_globals, None, (name,), level)
        try:
            return getattr(found, name)
        except AttributeError:
            raise ImportError(f"cannot import name '{name}' from '{found.__name__}'") from None


for name in METHODS.keys() - vars(PlainScope).keys():
    setattr(PlainScope, name, METHODS[name])
