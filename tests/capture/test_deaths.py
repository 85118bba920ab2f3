"""Tests that objects die when Python's would: arrays of buffers, and objects with weak references, `__del__` or callbacks.

Generators are closed then.
"""

import ctypes
import functools
import types
import weakref

import numpy as np
import pytest

import cinductor
from cinductor.capture import deaths

LOG = []


class Dying:
    def __init__(self, *held):
        self.held = held

    def __del__(self):
        LOG.append("del")


class Watched:
    pass


def watched():
    made = Watched()
    weakref.finalize(made, LOG.append, "gone")
    return made


def proxied(callback=None):
    made = Watched()
    made.proxies = (weakref.proxy(made, callback), weakref.ref(made))  # seen as long as they live
    return made


def closing():
    try:
        yield 1.0
        yield 2.0
    finally:
        LOG.append("closed")


def a_weak_reference(x):
    y = np.frombuffer(b"abcdabcd", "u1").astype(float)
    z = y * x.sum()
    r = weakref.ref(y)
    y = 0
    return z, r() is None


def a_buffer(x, b):
    v = np.frombuffer(b, "u1")
    s = v.sum() * x[0]
    del v
    b.extend(b"1234")
    return s, len(b)


def a_buffer_in_a_loop(x, b):
    s = 0.0
    for _ in range(3):
        v = np.frombuffer(b, "u1")
        v[0] = 7
        s += v.sum() * x[0]
        del v
        b.append(3)
    return s, bytes(b)


def a_buffer_without_a_name(x, b):
    s = np.frombuffer(b, "u1").sum() + x.sum()
    b.append(1)
    return s, len(b)


def a_memoryview(x, b):
    m = memoryview(b)
    s = x * m[1]
    del m
    b.clear()
    return s


def a_buffer_of_a_function(x, b):
    def inner():
        v = np.frombuffer(b, "u1")
        return v.sum() * x

    r = inner()
    b.append(2)
    return r


def operands(x):
    s = 0.0
    if x[0] > 0.3:
        s += len([Dying(), Dying()])
    return s, len(LOG)


def an_attribute(x):
    d = Dying(x + 1)
    s = d.held[0].sum()
    d = None
    return s, len(LOG)


def a_result(x):
    w = watched()
    s = x.sum()
    w = None  # noqa: F841
    return s, len(LOG)


def an_item(x, held):
    o = held.pop()
    s = x.sum()
    del o
    LOG.append("then")
    return s


def all_items(x, held):
    for o in held:  # noqa: B007
        x = x + 1
    held.clear()
    LOG.append("between")
    del o
    LOG.append("then")
    return x


def a_generator(x):
    g = closing()
    s = next(g) * x
    del g
    LOG.append("then")
    return s


def a_generator_that_is_left(x):
    for v in closing():
        x = x * v
        break
    LOG.append("then")
    return x


def a_generator_without_a_name(x):
    a = next(closing())
    LOG.append("then")
    return a * x


def a_zipped_generator(x):
    a = [v for v, _ in zip(closing(), [1])]  # noqa: B905
    LOG.append("then")
    return a[0] * x


def iterations_of_python(x):
    s, k = 0.0, 0
    while s < x.sum() and k < 9:
        s, k = s + 1, k + 1
        w = watched()
        s += x.sum()
        w = 0  # noqa: F841
        LOG.append("then")
    return s


def bound_again_in_a_piece(x):
    s = 0.0
    for v in x:
        if v > 1:
            w = watched()
            s += x.sum()
            w = 0  # noqa: F841
            LOG.append(len(x))
        else:
            s += 0.5
    return s, len(LOG)


def lives_on_after_a_piece(x):
    s = 0.0
    if x[-1] > 9:
        s += 1
    elif x[-1] > 4:
        w = watched()  # noqa: F841
        LOG.append(3)
    else:
        s += 2
    return s, len(LOG)


def popped_in_a_piece(x, held):
    s, o = 0.0, None
    for k in range(3):
        if x.sum() + k > 9:
            o = held[-1] if k else held.pop()  # noqa: F841
            s += x.sum()
            held.append(k)
    LOG.append(len(held))
    return s, len(LOG)


def bound_in_one_arm(x, held):
    o, s = held.pop(), 0.0
    for v in x:
        if v > 1:
            print(end="")
            s += v
            if v > 2:
                o = s  # noqa: F841
        LOG.append("then")
    return s, len(LOG)


def a_buffer_after_a_piece(x, b):
    v = np.frombuffer(b, "u1")
    print(v.sum(), end="")
    s = x.sum() + v[0]
    v = s * 2
    b.append(1)
    return s, v, len(b)


def after_a_loop(x, held):
    o, s = held[0], 0.0
    for v in x:
        s += v
    held.clear()
    o = None  # noqa: F841
    LOG.append("then")
    return s


def after_a_while(x, held):
    o, s = held[0], 0.0
    while s < x.sum():
        s += 1.5
    held.clear()
    o = None  # noqa: F841
    LOG.append("then")
    return s


def after_a_branch(x, held):
    o, s = held[0], 0.0
    if x.sum() > 1:
        s += x[0]
    held.clear()
    o = None  # noqa: F841
    LOG.append("then")
    return s


def after_an_operand(x, held):
    o = held[0]
    s = x[0] if x.sum() > 1 and x[1] > 2 else x[1]
    held.clear()
    o = None  # noqa: F841
    LOG.append("then")
    return s


def in_a_loop_around_a_loop(x, held):
    o, s = held[0], 0.0
    for _ in range(12):
        for v in x:
            s += v if v > 1 else 1
        held.clear()
        o = None  # noqa: F841
        LOG.append("then")
    return s


def read_twice(x, held):
    s = float(len([*held]))
    if x[0] > 7:
        s += 1
    else:
        t = held[-1]
        held.clear()
        t = 0
        LOG.append(t)
    return s


def in_a_while_after_an_effect(x, held):
    LOG.append(len(held))
    s, k = 0.0, 0
    while k < len(x):
        s += x[k]
        k += 1
        o = watched()
    return s, len(LOG), o.__class__


def after_a_while_in_a_branch(x, held):
    s = 0.0
    LOG.append(lambda: s)
    if x.sum() > 1.2:
        s += len(held)
    if x.sum() > 1.2:
        t = held[-1] if held else 0
        k = 0
        while k < len(x):
            s += x[k]
            k += 1
        held.clear()
        t = 0
        LOG.append(t)
    return s, len(LOG), LOG.pop(0) is None


def after_a_while_in_a_loop(x, held):
    LOG.append(len(held))
    s = 0.0
    for i in range(len(x)):
        if x[i] > 2:
            t = held[-1] if held else 0
            k = 0
            while k < len(x):
                s += x[k]
                k += 1
            held.clear()
            t = 0
            LOG.append(t)
        else:
            s += 0.5
    return s, len(LOG)


FUNCTIONS = [
    a_weak_reference, a_buffer, a_buffer_in_a_loop, a_buffer_without_a_name, a_memoryview, a_buffer_of_a_function, operands, an_attribute,
    a_result, an_item, all_items, a_generator, a_generator_that_is_left, a_generator_without_a_name, a_zipped_generator,
    iterations_of_python, bound_again_in_a_piece, lives_on_after_a_piece, popped_in_a_piece, bound_in_one_arm, a_buffer_after_a_piece,
    after_a_loop, after_a_while, after_a_branch, after_an_operand, in_a_loop_around_a_loop,
    read_twice, in_a_while_after_an_effect, after_a_while_in_a_branch, after_a_while_in_a_loop,
]  # fmt: skip


def outcome(fn, names, start):
    LOG.clear()
    more = {"b": lambda: [bytearray(b"abcd")], "held": lambda: [[watched()]]}
    result = repr(fn(np.arange(4.0) + start, *(v for name in names for v in more[name]())))
    return result, LOG[:]


@pytest.mark.usefixtures("pieces_are_compiled")
@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_as_in_python(fn, backend):
    compiled = cinductor.compile(fn, backend=backend)
    names = fn.__code__.co_varnames[1 : fn.__code__.co_argcount]
    for start in (0.5, 0.5, -2.0, 2.5, 7.5):
        assert outcome(compiled, names, start) == outcome(fn, names, start), start


def with_default(x, held=None):
    return x + 1


def has_default(x):
    return with_default(x)


def closed_over(held):
    return lambda x: x + len(held)


KEPT = {
    "a default": lambda: has_default,
    "an item of a default": lambda: has_default,
    "a closure": lambda: closed_over([Dying()]),
    "a partial": lambda: functools.partial(with_default, held=[Dying()]),
}


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("what", KEPT)
def test_no_guard_keeps_what_a_function_drops(what, backend):
    with_default.__defaults__ = (Dying() if what == "a default" else [Dying()] if what == "an item of a default" else None,)
    called = KEPT[what]()
    compiled = cinductor.compile(lambda x: called(x) * 2, backend=backend)
    for _ in range(3):
        compiled(np.ones(3))
    LOG.clear()
    with_default.__defaults__, called = (None,), None
    assert LOG == ["del"]


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_values_that_a_call_has_replaced_die(backend):
    """The result of each step that Python runs is dropped before the next."""
    alive = []

    def made(n):
        a = np.full(3, float(n))
        alive.append(weakref.ref(a))
        return a

    made = cinductor.disable(made)

    def f(x):
        for k in range(5):
            y = made(k)
            x = x + y
        return x

    compiled = cinductor.compile(f, backend=backend)
    for _ in range(2):
        alive.clear()
        np.testing.assert_array_equal(compiled(np.ones(3)), np.full(3, 11.0))
        assert sum(ref() is not None for ref in alive[:-2]) == 0


def delegating():
    yield from closing()


def started(made):
    next(made)
    return made


class Holder:
    def __init__(self, value):
        self.value = value

    def __call__(self, value):
        return value


def watched_view():
    owner = np.ones(3)
    weakref.finalize(owner, LOG.append, "gone")
    return owner[1:]


class Classed(np.ndarray):
    pass


Number = type("Number", (ctypes.c_int,), {})
OfOthers = type("OfOthers", (), {"__module__": "cinductors"})  # a module whose name begins like that of the package

HOLDING = {
    "a view": watched_view,
    "a list": lambda: [Dying()],
    "a dict": lambda: {"k": (Dying(),)},
    "an instance": lambda: Holder([Dying()]),
    "a function": lambda: (lambda held: lambda: held)(Dying()),
    "a function with names of its own": lambda: types.FunctionType(closing.__code__, {"held": Dying()}),
    "a module": lambda: vars(made := types.ModuleType("made")).update(held=Dying()) or made,
    "a dict named like a module": lambda: {"__name__": "weakref", "held": Dying()},
    "a slice": lambda: slice(Dying()),
    "an array of objects": lambda: np.array([[Dying()]], object),
    "records with objects": lambda: np.array([(Dying(),)], [("held", object)]),
    "a record": lambda: np.array([(Dying(),)], [("held", object)])[0],
    "an array whose dtype has metadata": lambda: np.ones(2, np.dtype("f8", metadata={"held": Dying()})),
    "an array's iterator": lambda: np.array([Dying()], dtype=object).flat,
    "an array of a class": lambda: vars(made := np.ones(2).view(Classed)).update(held=Dying()) or made,
    "array.flat": lambda: watched_view().flat,
    "a broadcast": lambda: np.broadcast(watched_view(), 1.0),
    "an nditer": lambda: np.nditer(watched_view()),
    "a pointer of ctypes": lambda: vars(made := Number()).update(held=Dying()) or ctypes.byref(made),
    "an object of another package": lambda: vars(made := OfOthers()).update(held=Dying()) or made,
    "a ufunc": lambda: np.frompyfunc(Holder(Dying()), 1, 1),
    "a generator": lambda: started(delegating()),
    "an iterator": lambda: map(abs, started(closing())),
    "a weak reference's object": lambda: [watched()],
    "an object of a proxy": lambda: [proxied(LOG.append)],
}


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("what", HOLDING)
def test_what_dies_with_an_object_runs_code(what, backend):
    """The number of entries in LOG is read after the death; only the maker's result is known to capture."""
    made = cinductor.disable(HOLDING[what])

    def f(x):
        o = made()
        y = x + len(LOG)
        o = None  # noqa: F841
        return y * 10 + len(LOG)

    compiled = cinductor.compile(f, backend=backend)
    for _ in range(3):
        LOG.clear()
        wanted = f(np.ones(2))
        LOG.clear()
        np.testing.assert_array_equal(compiled(np.ones(2)), wanted)


def replaced_item(x, owner):
    owner.value[-1] = x.sum()
    return x.sum() + len(LOG)


def replaced_attribute(x, owner):
    owner.value = x.sum()
    return x.sum() + len(LOG)


def replaced_value(x, owner):
    vars(owner)["value"] = x.sum()
    return x.sum() + len(LOG)


def replaced_in_a_loop(x, owner):
    for v in x:
        if v > 1:
            owner.value = v
    return x.sum() + len(LOG)


def replaced_after_an_effect(x, owner):
    LOG.append("effect")
    o = owner.value
    owner.value = None
    n = len(LOG)
    o = None  # noqa: F841
    return x.sum() + len(LOG) * 10 + n


def deleted_attribute(x, owner):
    o = owner.value
    del owner.value
    n = len(LOG)
    o = None  # noqa: F841
    return x.sum() + len(LOG) * 10 + n


def cleared(x, owner):
    o = owner.value[-1]
    owner.value.clear()
    n = len(LOG)
    o = None  # noqa: F841
    return x.sum() + len(LOG) * 10 + n


def cleared_after_an_effect(x, owner):
    LOG.append("effect")
    return cleared(x, owner)


def name_bound_in_a_loop(x, owner):
    o, s = owner.value.pop(), 0.0
    for v in x:
        s += v
        o = s  # noqa: F841
    return s + len(LOG)


LOSING = [
    replaced_item, replaced_attribute, replaced_value, replaced_in_a_loop, replaced_after_an_effect, deleted_attribute, cleared,
    cleared_after_an_effect, name_bound_in_a_loop,
]  # fmt: skip
LOST = [lambda: 1.5, Dying, watched, lambda: np.zeros(2), lambda: Holder(Dying()), lambda: [2], watched_view]
LOST += [HOLDING[what] for what in ("a function", "a module", "a slice", "an array of objects", "an array whose dtype has metadata")]


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", LOSING, ids=lambda fn: fn.__name__)
def test_what_an_argument_loses_dies_at_once(fn, backend):
    """Also if calls before lost nothing whose death runs code."""
    is_item = fn not in (replaced_attribute, replaced_value, replaced_in_a_loop, replaced_after_an_effect, deleted_attribute)
    for order in ((1, 1), (0, 0, 1, 3, 2, 0), (3, 4, 5, 6, 4), (6,), (7,), (8, 8), (9,), (10, 0), (11,)):
        compiled = cinductor.compile(fn, backend=backend)
        for k in order:
            answers = []
            for f in (fn, compiled):
                LOG.clear()
                answers.append((repr(f(np.arange(4.0), Holder([LOST[k]()] if is_item else LOST[k]()))), LOG[:]))
            assert answers[1] == answers[0], k


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_an_interrupt_in_a_guard_is_the_callers(backend, monkeypatch):
    """Any other exception there means that the guard does not hold."""
    LOG.clear()
    compiled = cinductor.compile(replaced_attribute, backend=backend)
    compiled(np.arange(4.0), Holder(1.5))

    def stop(value):
        monkeypatch.undo()
        raise error

    for error in (KeyboardInterrupt(), ValueError()):
        monkeypatch.setattr(deaths, "runs_code", stop)
        owner = Holder(Holder(2.5))
        if isinstance(error, KeyboardInterrupt):
            with pytest.raises(KeyboardInterrupt):
                compiled(np.arange(4.0), owner)
            assert owner.value.value == 2.5
        else:
            assert compiled(np.arange(4.0), owner) == owner.value == 6.0


@pytest.mark.parametrize("what", HOLDING)
def test_deaths_that_are_seen(what):
    """Also those of objects that the garbage collector does not track, or that are named like ones that live on."""
    assert not deaths.dies_unseen(HOLDING[what]())


@pytest.mark.parametrize("value", [np.ones(3)[1:], weakref, repr, watched, np.add, slice(1, 2), [1, "a", (2.0,)], Dying], ids=lambda value: type(value).__name__)
def test_deaths_that_are_not_seen(value):
    assert deaths.dies_unseen(value)


def test_weak_references_without_a_callback_run_no_code():
    assert not deaths.ends_with_code(proxied())
    assert deaths.ends_with_code(proxied(LOG.append))


def replaced_in_an_if():
    o = watched()

    def f(x):
        nonlocal o
        for i in range(len(x)):
            if x[i] > 0.5:
                o = watched()
                LOG.append(i)

    return f


def replaced_in_a_while():
    o = watched()

    def f(x):
        nonlocal o
        s, k = 0.0, 0
        while s < x.sum() and k < 9:
            s, k = s + 1, k + 1
            o = watched() if k < 2 else None
            LOG.append(k)

    return f


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("maker", [replaced_in_an_if, replaced_in_a_while])
def test_a_name_of_an_enclosing_function_gets_another_object(maker, backend):
    """The former object dies at the assignment."""
    seen = []
    for wrap in (lambda f: f, lambda f: cinductor.compile(f, backend=backend)):
        f = wrap(maker())
        LOG.clear()
        f(np.array([0.9, 0.1, 0.8]))
        f(np.array([0.9, 0.1, 0.8]))
        seen.append(LOG[:])
        del f
    assert seen[0] == seen[1]
