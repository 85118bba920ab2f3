"""Tests that users only see NumPy's and Python's classes, objects and messages."""

import collections
import functools
import json
import types

import numpy as np
import pytest

import cinductor
from cinductor.capture import effects, entry

SHAPES = (np.arange(6.0).reshape(2, 3), np.arange(6, dtype=np.int32).reshape(2, 3))
KEPT = []


def foreign(value, seen=None):
    """The class of an internal object of cinductor that is reachable from a value, or None."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return None
    seen.add(id(value))
    if type(value).__module__.startswith("cinductor._core"):
        return type(value)
    inside = []
    if isinstance(value, list | tuple | set | frozenset):
        inside = list(value)
    elif isinstance(value, dict):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, BaseException):
        inside = list(value.args)
    elif hasattr(value, "__self__"):
        inside = [value.__self__]
    return next((found for v in inside if (found := foreign(v, seen))), None)


def kinds(value):
    """A value with the class of everything in it."""
    if isinstance(value, np.ndarray):
        return (type(value), value.dtype, value.tolist())
    if isinstance(value, tuple | list):
        return (type(value), [kinds(v) for v in value])
    if isinstance(value, set | frozenset):
        return (type(value), sorted(map(repr, map(kinds, value))))
    if isinstance(value, dict):
        return (type(value), [(kinds(k), kinds(v)) for k, v in value.items()])
    if hasattr(value, "__self__"):
        return (type(value), value.__name__, kinds(value.__self__))
    return (type(value), value)


def outcome(f, x):
    try:
        result = f(x)
    except Exception as error:
        return (type(error), str(error))
    assert foreign(result) is None
    return kinds(result)


def methods(m):
    return m.reshape, [m.T.mean], {"copy": m.copy}, m.__iter__


def keys(m):
    return {m.sum(): 1}, {m.shape[0]: 2}, {(m.shape[0], 1): {int(m[0, 1]): 3}}


def sets(m):
    return {int(v) for v in m[0]}, frozenset(int(v) for v in m[0]), {m[0, 0], m[0, 1]}


def counted(m):
    seen, counts = set(), {}
    for v in m.ravel():
        if v not in seen:
            seen.add(v)
        counts[int(v) % 2] = counts.get(int(v) % 2, 0) + 1
    return seen, counts


def complex_first(m):
    x = m[0, 1]
    return (
        1j == x,
        1j != x,
        x == 1j,
        1j == np.float64(1),
        1 == x,
        1.5 == x,
        2j == m.sum(),
    )


def attributes(m):
    names = ("kind", "tracer", "storage", "version", "whole", "is_fresh", "strong", "concrete")
    return [getattr(m, name, None) for name in names], [hasattr(m, name) for name in names]


def own_name(m):
    return m.kind


def texts(m):
    return repr(m), f"{m.sum()!r} {m[0, 1]:.2f} {m.shape[0]}", json.dumps([m.tolist(), m.shape])


def vectorized(m):
    return np.vectorize(lambda v: v * 2)(m), np.vectorize(lambda v: v / 2)(m)


def arguments_of_exceptions(m):
    try:
        raise KeyError(m + 1, m.shape[0])
    except KeyError as error:
        return error.args


CASES = (
    methods, keys, sets, counted, complex_first, attributes, own_name, texts, vectorized,
    arguments_of_exceptions,
)  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("case", CASES)
def test_what_reaches_the_user_is_numpys(case, dynamic):
    f = cinductor.compile(case, backend="interp", dynamic=dynamic)
    for x in (*SHAPES, *SHAPES):
        assert outcome(f, x.copy()) == outcome(case, x.copy())


def test_what_is_kept_is_numpys():
    def keep(m):
        KEPT.append({int(m[0, 1]): m * 2})
        KEPT.append((m.sum, {m[0, 1]}))
        return m + 1

    KEPT.clear()
    f = cinductor.compile(keep, backend="interp")
    f(SHAPES[0])
    f(SHAPES[0])
    assert len(KEPT) == 4 and all(foreign(value) is None for value in KEPT)


FLAGS: list = []
flags_log: list = []


def flags(f):
    FLAGS.append(f)
    return f


@flags
def flags_1(x):
    r = x + 1
    flags_log.append(1)
    r.flags.writeable = False
    try:
        r[0] = 5
    except ValueError as e:
        return r, str(e), r.flags.writeable
    return r


@flags
def flags_2(x):
    r = x + 1
    fl = r.flags
    flags_log.append(1)
    fl["WRITEABLE"] = False
    return r, fl.writeable, r.flags.writeable


@flags
def flags_3(x):
    r = x + 1
    flags_log.append(1)
    r.setflags(write=False)
    return r, r.flags.writeable


@flags
def flags_4(x):
    flags_log.append(1)
    x.flags.writeable = False
    try:
        x[0] = 5
    except ValueError as e:
        return str(e)
    return x


@flags
def flags_5(x):
    r = x + 1
    r.flags.writeable = False
    return r


@flags
def flags_6(x):
    r = x + 1
    fl = r.flags
    r.flags.writeable = False
    return fl.writeable, r.flags.writeable, r


@flags
def flags_7(x):
    flags_log.append(1)
    fl = x.flags
    v = x[1:]
    fl.writeable = False
    w = x[1:]
    return v.flags.writeable, w.flags.writeable, w


@flags
def flags_8(x):
    flags_log.append(1)
    r = x * 2
    r.flags.writeable = False
    return r, r.flags.writeable


@flags
def flags_9(x):
    for k in range(3):
        x.flags.writeable = k % 2 == 0
    return x


def flags_outcome(f):
    """The result, the argument after the call, and whether each can be written."""
    flags_log.clear()
    x = np.arange(4.0)
    try:
        result = f(x)
    except ValueError as error:
        result = str(error)

    def shown(v):
        if isinstance(v, tuple):
            return [shown(item) for item in v]
        return (v.tolist(), v.flags.writeable) if isinstance(v, np.ndarray) else v

    return shown(result), shown(x), list(flags_log)


@pytest.mark.parametrize("f", FLAGS, ids=lambda f: f.__name__)
def test_flags_that_are_set(f):
    compiled = cinductor.compile(f, backend="interp")
    for _ in range(4):
        assert flags_outcome(compiled) == flags_outcome(f)


# --- objects that other code has before the call ends ---


class Box:
    pass


def a_list(x, out):
    made = []
    out.append((made, 1))
    made.append(x.sum())
    made += [x.max()]
    made[0] = made[0] + 1
    return made


def a_dict_of_lists(x, out):
    made = {"l": [x.min()]}
    out.append(made)
    made["l"].append(x.sum())
    made.update(k=x.max())
    return 1


def a_set_and_a_deque(x, out):
    made, last = set(), collections.deque([1.0], maxlen=3)
    out += [made, last]
    made.add(float(x.sum()))
    last.append(x.max())
    return 1


def dicts_of_defaults(x, out):
    s = x.sum()
    made = collections.defaultdict(lambda: s)
    out.append(made)
    made[1] += x.max()
    return collections.defaultdict(functools.partial(max, s, 1.0)), collections.defaultdict(lambda: s)


def methods_of_values(x, out):
    s = x.sum()
    out.append(types.MethodType(lambda self: (self, s), x.max()))
    return types.MethodType(lambda self: self * s, 3)


def a_dict_of_defaults(x, out):
    s = x.sum()
    made = collections.defaultdict(lambda: s)
    made[0] += 1
    return made


def an_object(x, out):
    made = Box()
    made.l = []
    out.append(made)
    made.l.append(x.sum())
    made.v = x.max()
    made.__dict__["w"] = x.min()
    return made.v


def a_function(x, out):
    s = 0.0

    def get(least=x.min()):  # noqa: B008
        return s, least

    out += [get, get]
    get.v = x.max()
    for v in x:
        s += v
    return out[-1] is get, out[-1] is out[-2]


def a_partial_and_a_zip(x, out):
    made = [x]
    out += [functools.partial(max, made), zip(made, made, strict=True)]
    made.append(x * 2)
    return 1


def in_a_loop_and_a_branch(x, out):
    made = [x.sum()]
    out.append(made)
    for v in x:
        made.append(v)
    if x[0] > 0.5:
        made[0] = x[1]
    return made[0]


def a_function_and_an_exception(x, out):
    s, made = x.sum(), []
    out += [lambda: s, made]
    s = x.max()
    made.append(s)
    assert x[0] < 0, s
    return s


def an_array_twice(x, out):
    y = x * 2
    made = [y]
    out.append(made)
    made.append(y)
    y[0] = 9
    return made[0] is made[1]


HANDED_OUT = [
    a_list, a_dict_of_lists, a_set_and_a_deque, an_object, a_function, a_partial_and_a_zip, in_a_loop_and_a_branch,
    a_function_and_an_exception, an_array_twice, dicts_of_defaults, methods_of_values, a_dict_of_defaults,
]  # fmt: skip


def inside(value):
    """A value with the class of everything in it, also of what is called, iterated over or an attribute."""
    if isinstance(value, set | collections.deque | zip):
        value = list(value)
    if isinstance(value, types.FunctionType | types.MethodType):
        return inside(value()), inside(value.__dict__)
    if isinstance(value, functools.partial):
        return inside(value.args)
    if isinstance(value, Box):
        return inside(value.__dict__)
    if isinstance(value, tuple | list):
        return type(value), [inside(v) for v in value]
    if isinstance(value, collections.defaultdict):
        return inside(dict(value)), inside(value.default_factory)
    if isinstance(value, dict):
        return type(value), [(k, inside(v)) for k, v in value.items()]
    return kinds(value)


@pytest.mark.filterwarnings("error::cinductor.CinductorWarning")
@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", HANDED_OUT, ids=lambda fn: fn.__name__)
def test_what_other_code_has_is_real(fn, backend):
    compiled, found = cinductor.compile(fn, backend=backend), []
    for f in (fn, compiled, compiled):
        out = []
        try:
            result = inside(f(np.array([0.6, 2.0, 3.0]), out))
        except AssertionError as error:
            result = inside(error.args)
        found.append((result, inside(out)))
    assert found[1:] == found[:1] * 2


def a_slice(x):
    return slice([x.sum()], 1)


def kept_and_returned(x):
    made = (x * 2, (x[0], 1))
    KEPT.append(made)
    return made, made[1]


def kept_before_a_break(x):
    made = (x * 2, 1)
    KEPT.append(made)
    print(end="")
    return {"of": made}["of"], made


def kept_twice(x):
    made = (x * 2, "text")
    KEPT.append([made])
    print(end="")
    KEPT.append(made)
    return x, made


@pytest.mark.parametrize("fn", [kept_and_returned, kept_before_a_break, kept_twice])
def test_a_tuple_that_is_kept_stays_one_object(fn):
    compiled = cinductor.compile(fn, backend="interp")
    KEPT.clear()
    for _ in range(3):
        results = [f(np.arange(3.0)) for f in (compiled, fn)]
        kept = KEPT[:]
        KEPT.clear()
        found = [[a is b for b in result for a in kept[k * len(kept) // 2 :][: len(kept) // 2]] for k, result in enumerate(results)]
        assert found[0] == found[1]


def test_nothing_of_cinductors_leaves_a_call(monkeypatch):
    """With a bug in the code that makes results real, the original function answers, or the call raises after an effect."""
    monkeypatch.setattr(entry, "is_constant", lambda value: True)
    with pytest.warns(cinductor.CinductorWarning, match="a Traced of cinductor would leave the call"):
        assert kinds(cinductor.compile(a_slice, backend="interp")(np.ones(3)).start) == kinds([np.float64(3.0)])
    monkeypatch.setattr(effects.Materialiser, "partial", lambda self, value: value)
    with pytest.raises(cinductor.InternalError, match="a Traced of cinductor would leave the call"):
        cinductor.compile(lambda x: functools.partial(max, x.sum()), backend="interp")(np.ones(3))
