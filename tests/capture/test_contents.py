"""Tests lists, dicts and attributes that loops and branches change. They are carried like names if their structure
stays the same.
"""

import collections
import ctypes

import cases
import numpy as np
import pytest
from test_regions import check, nodes

import cinductor
from cinductor import _core
from cinductor.capture.control import state

pytestmark = pytest.mark.filterwarnings("error:cinductor")
CASES = []
X = np.arange(20.0) - 4
case = cases.entering(CASES)


@case(X, 30)
def state_in_a_dict(x, n):
    state = {"x": x * 1.0, "v": np.zeros_like(x)}
    for _ in range(n):
        state["v"] = state["v"] - 0.1 * state["x"]
        state["x"] = state["x"] + 0.1 * state["v"]
    return state["x"], state["v"]


@case(X, 30)
def arrays_in_a_dict_change_in_place(x, n):
    state = {"x": x * 1.0, "v": np.zeros_like(x)}
    for _ in range(n):
        state["v"] -= 0.1 * state["x"]
        state["x"] += 0.1 * state["v"]
    return state["x"], state["v"]


@case(X, 30)
def items_of_a_list(x, n):
    layers = [x * k for k in range(3)]
    for i in range(n):
        for k in range(3):
            layers[k] = layers[k] * 0.5 + i
    return layers


@case(X, 30)
def numbers_in_a_list(x, n):
    best = [0.0, 0]
    for i in range(n):
        if x[i % 20] > best[0]:
            best[0] = x[i % 20]
            best[1] = i
    return best


@case(X)
def counters_in_a_dict(x):
    counts = {"up": 0, "down": 0}
    for i in range(1, len(x)):
        if x[i] > x[i - 1]:
            counts["up"] += 1
        else:
            counts["down"] += 1
    return counts


@case(X, 25)
def a_list_in_a_dict(x, n):
    state = {"pair": [x, x + 1], "k": 0}
    for _ in range(n):
        state["pair"][1] = state["pair"][1] * 0.5 + state["pair"][0]
        state["k"] += 1
    return state["pair"][1], state["k"]


class Particle:
    def __init__(self, x):
        self.x = x * 1.0
        self.v = np.zeros_like(x)
        self.steps = 0

    def move(self, dt):
        self.v = self.v - dt * self.x
        self.x = self.x + dt * self.v
        self.steps += 1


@case(X, 30)
def attributes_of_an_object(x, n):
    particle = Particle(x)
    for _ in range(n):
        particle.move(0.1)
    return particle.x, particle.v, particle.steps


@case(X, 1e-3)
def a_while_on_an_item(x, tolerance):
    state = {"x": x * 1.0, "error": 1.0, "trips": 0}
    while state["error"] > tolerance:
        new = state["x"] * 0.5
        state["error"] = np.abs(new - state["x"]).max()
        state["x"] = new
        state["trips"] += 1
    return state["x"], state["trips"]


@case(X, 30)
@case(X - 10, 30)
def a_branch_changes_an_item(x, n):
    state = {"x": x * 1.0, "flips": 0}
    if x.sum() > 0:
        state["x"] = -state["x"]
        state["flips"] = 1
    return state["x"], state["flips"]


@case(X, 30)
@case(X - 10, 30)
def branches_change_different_items(x, n):
    pair = [x * 1.0, x * 2.0]
    other = {"k": 0.5}
    if x.sum() > 0:
        pair[0] = -pair[0]
    elif x.sum() < -100:
        pair[1] += 1
        other["k"] = x[0]
    else:
        other["k"] = x[1]
    return pair, other["k"] + 0.0


@case(X, 30)
def a_name_and_an_item_are_one_array(x, n):
    y = x * 2
    state = {"y": y}
    for _ in range(n):
        state["y"] += 1
        state["y"] = state["y"] * 0.5
    return y, state["y"]


@case(X, 12)
def items_swap(x, n):
    pair = [x + 1, x + 2]
    for _ in range(n):
        pair[0], pair[1] = pair[1] * 0.5, pair[0] + pair[1]
    return pair


@case(X, 12)
def alias_of_the_container(x, n):
    state = {"x": x + 0.0}
    same = state
    for _ in range(n):
        state["x"] = same["x"] + 1
    return same["x"], state is same


class Slotted:
    __slots__ = ("total", "__count", "unset")

    def __init__(self, x):
        self.total = x
        self.__count = 0

    def add(self, value):
        self.total = self.total + value
        self.__count += 1

    def count(self):
        return self.__count


@case(X)
def attributes_in_slots(x):
    o = Slotted(0.0)
    for i in range(len(x)):
        o.add(x[i])
        o.unset = i
        del o.unset
    if x[0] > 0:
        o.total = o.total * 2
    return o.total, o.count(), hasattr(o, "unset")


@case(X)
def a_window_that_moves(x):
    window, total, out = collections.deque(maxlen=5), 0.0, np.zeros(len(x))
    for i in range(len(x)):
        if len(window) == 5:
            total -= window[0]
        window.append(x[i])
        total += x[i]
        out[i] = total / len(window)
    return out, list(window)


@case(X)
@case(-X)
def a_deque_that_turns(x):
    d = collections.deque([1.0, 2.0, 3.0])
    total = 0.0
    for i in range(len(x)):
        total += d[0] * x[i]
        d.rotate(1)
        d[1] = total * 0.5
    if x[0] > 0:
        d.appendleft(d.pop())
    return total, *d


@case(X)
def a_name_that_a_function_inside_sets(x):
    total, last = 0.0, 1.0

    def add(value):
        nonlocal total, last
        total, last = total + value * last, value
        return total

    for i in range(len(x)):
        if x[i] > -2:
            add(x[i])
        total = total * 0.5
    return total, last


@case(X)
@case(-X)
def a_dict_is_set_while_it_is_iterated(x):
    """A key was deleted before, so the others are not where they are in a new dict."""
    d, seen = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, []
    del d["a"]
    for k, v in d.items():
        seen.append((k, v))
        if x[0] > 0:
            d[k] = x[1]
    return seen, d


@pytest.mark.parametrize("fn, args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_whole(fn, args):
    check(fn, *args)


@pytest.mark.parametrize(
    "fn",
    [state_in_a_dict, arrays_in_a_dict_change_in_place, attributes_of_an_object, numbers_in_a_list],
)
def test_as_large_for_many_iterations(fn):
    assert nodes(fn, X, 20) == nodes(fn, X, 500)


def helper_in_place(x):
    for _ in range(20):
        x += 1
        x = x * 0.5
    return x


def test_a_caller_sees_what_is_written():
    """The first iteration writes to the caller's array; it once wrote to a copy."""

    def caller(a):
        x = a * 2
        y = helper_in_place(x)
        return x, y

    def in_a_tuple(a):
        x = a * 2
        pair = (x, 1)
        for _ in range(20):
            x += 1
            x = x * 0.5
        return x, pair[0]

    check(caller, X)
    check(in_a_tuple, X)


def made_of_slots(x):
    made = Slotted(x * 2)
    made.add(1)
    return made


def made_of_a_deque(x):
    return collections.deque([x * 2, x], maxlen=3)


@pytest.mark.parametrize("fn", [made_of_slots, made_of_a_deque])
def test_what_is_returned_is_made_again_by_every_call(fn):
    compiled = cinductor.compile(fn, backend="interp", fullgraph=True)
    first, second = compiled(X), compiled(X + 1)
    assert type(first) is type(second) is type(fn(X)) and first is not second
    for made, x in ((first, X), (second, X + 1)):
        if type(made) is Slotted:
            np.testing.assert_array_equal(made.total, x * 2 + 1)
            assert made.count() == 1 and not hasattr(made, "unset")
        else:
            np.testing.assert_array_equal(made, [x * 2, x])
            assert made.maxlen == 3


def test_calls_that_get_a_deque_or_slots_see_real_values():
    seen = []

    def look(*values):
        seen.append(values)

    def f(x):
        d, o = collections.deque([x[0], x + 1]), Slotted(x[1])
        d.append(x[2])
        o.add(x[3])
        look(d, o)
        d.append(1.0)
        return d[2] + o.total

    for x in (X, X + 1):
        assert cinductor.compile(f, backend="interp")(x) == f(x)
        (d, o), (e, p) = seen[-2:]
        assert type(d[0]) is np.float64 and d[0] == e[0] and np.array_equal(d[1], e[1])
        assert type(o.total) is np.float64 and o.total == p.total and list(d)[2:] == list(e)[2:]


def test_what_changes_its_structure_is_run_by_python():
    def adds(x):
        seen = {}
        for i in range(12):
            seen[i] = x * i
        return seen[11]

    def takes_an_equal_key(x):
        d = {1: x[0]}
        for _ in range(8):
            if x[2] < 0:
                del d[1]
                d[1.0] = x[3]
        return repr([*d])

    def left_while_it_is_iterated(x):
        """The keys that the branch would add are removed again, also those that the loop has not reached yet."""
        d, t = {"a": 1.0, "b": 2.0, "c": 3.0}, 0.0
        del d["a"]
        others = d.keys(), collections.deque(d), {1.0, 2.0}, collections.OrderedDict(d)
        for iterable in (d, *others):
            for v in iterable:
                t += 1
                if x[3] > 5 + t:
                    d["new"] = t
                    others[1].append(v)
                    others[2].add(t)
                    others[3].move_to_end("b")
                    break
        return t, repr([d, others])

    for fn in adds, takes_an_equal_key, left_while_it_is_iterated:
        got = cinductor.compile(fn, backend="interp")(X)
        np.testing.assert_array_equal(got, fn(X))


class Heavy:
    """A user's object that refers to many others."""

    def __init__(self):
        self.rows = [[k, {"k": [k]}] for k in range(50000)]
        self.factor = 2.0


def arm_with_containers(heavy, x):
    info, parts = {"low": 0.0, "high": 0.0}, [0.0, 0.0]
    for k in range(6):
        if x[k] > 0:
            info["high"], parts[0] = x[k], x[k] * heavy.factor
        else:
            info["low"], parts[1] = x[k], -x[k]
    return info, parts


def called_inside(heavy, x):
    return arm_with_containers(heavy, x + 1)


def test_what_outlives_the_call_is_not_looked_through(monkeypatch):
    """Nor are the library's own objects: a branch only searches for containers made in the call."""
    answers, core_reached = [], state._core.reached

    def noted(roots, wanted, *rest):
        answers.append(core_reached(roots, [[]], *rest))  # all objects if there are too many
        return core_reached(roots, wanted, *rest)

    monkeypatch.setattr(state._core, "reached", noted)
    heavy, x = Heavy(), np.random.default_rng(0).normal(size=8)
    compiled = cinductor.compile(lambda x: called_inside(heavy, x))
    for _ in range(2):
        assert compiled(x) == called_inside(heavy, x)
    assert answers and not any(answers)


def in_two_arms(x):
    parts = [0.0]
    if x[0] > 0:
        if x[1] > 0:
            parts[0] = x[2]
    return parts[0]


def in_four_arms(x):
    parts = [0.0]
    if x[0] > 0:
        if x[1] > 0:
            if x[2] > 0:
                if x[3] > 0:
                    parts[0] = x[4]
    return parts[0]


def test_contents_are_saved_once_for_all_arms_around(monkeypatch):
    """The innermost snapshot saves them: an arm around adds one copy, which is that of the merge after it."""
    copies, note = [], state.Snapshot.note

    def noted(self, value):
        copies.append(id(value) not in self.before)
        note(self, value)

    monkeypatch.setattr(state.Snapshot, "note", noted)
    counts = []
    for fn in (in_two_arms, in_four_arms):
        check(fn, np.arange(1.0, 6.0))
        counts.append(sum(copies))
        copies.clear()
    assert 0 < counts[0] and counts[1] <= counts[0] + 2


# --- what objects hold, and do not show -----------------------------------------------------------


class Part(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("what", ctypes.c_void_p)]


class Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("size", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint), ("parts", ctypes.c_void_p)]


class Member(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def class_of_c(is_collected):
    """A class made in C whose objects have an attribute `held`. Its tp_traverse, if any, does not visit the
    attribute.
    """
    size, object_member, members_slot, traverse_slot = object.__basicsize__, 16, 72, 71
    members = (Member * 2)(Member(b"held", object_member, size))
    visits_nothing = ctypes.cast(ctypes.pythonapi.PyObject_GC_IsFinalized, ctypes.c_void_p).value  # returns 0
    parts = (Part * 3)(Part(members_slot, ctypes.addressof(members)), Part(traverse_slot * is_collected, visits_nothing))
    flags = 1 << 10 | is_collected << 14  # may be a base; has tp_traverse
    spec = Spec(b"elsewhere.Hiding", size + ctypes.sizeof(ctypes.c_void_p), 0, flags, ctypes.addressof(parts))
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    return make(ctypes.addressof(spec)), (members, parts, spec)  # kept alive, because the class refers to them


@pytest.mark.parametrize("is_collected", [False, True])
@pytest.mark.parametrize("is_derived", [False, True])
def test_what_a_class_does_not_show_is_carried(is_collected, is_derived):
    hiding, kept = class_of_c(is_collected)
    cls = type("Derived", (hiding,), {}) if is_derived else hiding

    def f(x):
        def get(h=cls()):  # noqa: B008
            return h

        get().held = [0.0]
        if x.sum() > 3:
            get().held[0] = x.sum()
        return get().held[0]

    compiled = cinductor.compile(f)
    for x in (X, X / 100, X + 1):
        y = x.copy()
        assert compiled(x) == f(y) and np.array_equal(x, y)
    assert kept


class Asked(BaseException):
    pass


def asking(meta=type):
    """A class whose objects fail the test if any method is called; so does the class itself if its metaclass says so.
    """

    def ask(*_):
        raise Asked

    if meta is not type:
        meta = type("Meta", (type,), dict.fromkeys(("__getattribute__", "__eq__", "__instancecheck__", "__subclasscheck__"), ask))
        meta.__hash__ = type.__hash__
    return meta("Asking", (), dict.fromkeys(("__getattribute__", "__eq__", "__len__", "__iter__", "__hash__"), ask))


class Changing:
    """Changes at each access."""

    def __init__(self):
        object.__setattr__(self, "looks", [])

    def __getattribute__(self, name):
        looks = object.__getattribute__(self, "looks")
        looks.append(name)
        return looks

    def __len__(self):
        return len(self.looks)


MILLION = [[]] * 1_000_000


OTHERS = {
    "a class": lambda: asking(None),
    "an object": lambda: object.__new__(asking()),
    "one that changes": Changing,
    "a million": lambda: MILLION,
    "an iterator": lambda: iter(MILLION),
    "a generator": lambda: (k for k in MILLION),
}


@pytest.mark.parametrize("name", OTHERS)
def test_objects_that_are_not_to_be_looked_at(name):
    """Other objects in a default are neither called nor searched for long, whatever they are."""
    make = OTHERS[name]

    def f(x, other):
        def get(o=([0.0], other)):
            return o

        for v in x:
            get()[0][0] += v
        return get()[0][0]

    compiled = cinductor.compile(f, backend="interp")
    for x in (X, X * 2):
        other, y = make(), x.copy()
        assert compiled(x, other) == f(y, other) and np.array_equal(x, y)
        assert type(other) is not Changing or not object.__getattribute__(other, "looks")


def test_a_million_objects_made_in_the_call():
    def f(x):
        many = [[]] * 1_000_000

        def get(o=([0.0], many)):
            return o

        for v in x:
            get()[0][0] += v
        return get()[0][0], len(many)

    assert cinductor.compile(f, backend="interp")(X) == f(X)


def test_classes_of_keys_are_read_without_the_dicts_methods():
    class Mine(dict):
        def __iter__(self):
            raise Asked

        keys = __len__ = __iter__

    assert _core.classes_of(Mine({1: 2, 2: 3, "a": 3, 2.5: 1})) == {int, str, float}
    assert _core.classes_of(iter([1, "a", 2])) == {int, str} and _core.classes_of({}) == set()
    with pytest.raises(TypeError):
        _core.classes_of(3)


def test_contents_are_restored_without_hashing_traced_keys():
    def f(x, q, o):
        table = {}
        for k in q:
            o.append(1)  # an effect: a later refusal cannot start again
            if x[k] > 0:
                table[k, 1] = 2
        return table

    compiled = cinductor.compile(f)
    for n in (4, 5, 3):
        x, q = np.arange(n) + 0.5, np.arange(n)[::-1]
        assert compiled(x, q, []) == f(x, q, [])
