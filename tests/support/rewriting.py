"""Helpers that run rewritten functions without a tracer, and a scope that finds mistakes of the liveness analysis."""

import dis
import sys
import types

from cinductor.capture.hooks.scope import PlainScope
from cinductor.capture.objects import UNBOUND
from cinductor.capture.syntax.rewrite import codes_in, rewrite


def plain(fn, cls=PlainScope):
    """The rewritten function in a scope whose constructs only do what Python does."""
    scope = object.__new__(cls)
    scope.stage = None
    scope.fn_globals = fn.__globals__
    builtins = fn.__globals__["__builtins__"]
    scope.builtins = builtins if isinstance(builtins, dict) else vars(builtins)
    scope.cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    rewritten = rewrite(fn)
    scope.sites = rewritten.sites
    if sys.version_info < (3, 12):  # later versions count the names of comprehensions
        assert locals_of(fn.__code__) <= locals_of(rewritten.code), "a local name has become a global one"
    codes = [*codes_in(fn.__code__)]  # without names of code that cannot be reached
    comprehensions = () if sys.version_info < (3, 12) else fn.__code__.co_names  # are parts of it in later versions
    wrong = globals_asked(rewritten.code).difference(comprehensions, *(code.co_names for code in codes))
    assert not wrong.intersection(name for code in codes for name in locals_of(code))
    return rewritten.bind(fn, types.CellType(scope))


def globals_asked(code):
    """The names that rewritten code asks for as global ones."""
    found = set()
    for inner in codes_in(code):
        steps = [*dis.get_instructions(inner)]
        for step, after in zip(steps, steps[1:], strict=False):
            if step.opname in ("LOAD_METHOD", "LOAD_ATTR") and step.argval == "name" and type(after.argval) is str:
                found.add(after.argval)
    return found


def locals_of(code):
    return {*code.co_varnames, *code.co_cellvars}


class Forgetful:
    """A construct that does what Python does, but only keeps the names that its site declares live."""

    restores = True

    def __init__(self, construct, site):
        self.construct, self.site, self.goes_on = construct, site, True

    def begin(self, names):
        self.names = {n: names.get(n, UNBOUND) for n in self.site.state}
        self.forget(self.site.carried)

    def forget(self, live):
        for name in self.names:
            if name not in live:
                self.names[name] = UNBOUND

    def __iter__(self):
        for step in self.construct:
            self.item = getattr(self.construct, "item", None)
            yield step
            if not self.goes_on:
                break

    def __enter__(self):
        self.construct.__enter__()

    def __exit__(self, *error):
        return self.construct.__exit__(*error)

    def test(self, value):
        return self.construct.test(value)

    def enter(self):
        return tuple(self.names.values())

    def leave(self, names):
        self.names = {n: names.get(n, UNBOUND) for n in self.site.state}
        if self.site.flag is not None and self.names[self.site.flag] is True:
            self.goes_on = False
        elif self.site.kind != "if":
            self.forget(self.site.carried)

    def exit(self, names):
        self.names = {n: names.get(n, UNBOUND) for n in self.site.state}
        self.forget(self.site.live_out)
        return tuple(self.names.values())


class ForgetfulScope(PlainScope):
    """A scope whose constructs drop all names that are not live."""

    __slots__ = ()

    def for_(self, value, number):
        return Forgetful(super().for_(value, number), self.sites[number])

    def while_(self, number):
        return Forgetful(super().while_(number), self.sites[number])

    def if_(self, value, number):
        return Forgetful(super().if_(value, number), self.sites[number])
