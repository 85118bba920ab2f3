"""Tests attributes of objects that outlive the call. They are set at the end of the call to what Python would have
set.
"""

import copy

import numpy as np
import pytest
from test_regions import nodes

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")


class Simulation:
    def __init__(self, n=5):
        self.x, self.v = np.arange(float(n)), np.ones(n)
        self.t, self.n, self.last = 0.0, 0, None
        self.options = {"k": 2.0}

    @property
    def energy(self):
        return self._energy

    @energy.setter
    def energy(self, value):
        self._energy = value * 2

    def move(self, k):
        self.x = self.x + k


WHOLE, BROKEN = [], []


def whole(fn):
    WHOLE.append(fn)
    return fn


def broken(fn):
    BROKEN.append(fn)
    return fn


@whole
def step(self):
    self.v = self.v - 0.1 * self.x
    self.x = self.x + 0.1 * self.v
    self.t += 0.1
    self.n += 1
    return self.x.sum()


@whole
def step_in_place(self):
    self.v -= 0.1 * self.x
    self.x += 0.1 * self.v
    self.t += 0.1


@whole
def swap(self):
    self.x, self.v = self.v, self.x


@whole
def one_array_twice(self):
    y = self.x * 2
    self.x = y
    y[0] = 5
    self.kept = y
    return y


@whole
def through_a_property(self):
    self.energy = (self.x**2).sum()
    return self.energy


@whole
def a_new_attribute(self):
    self.fresh = self.x + 1
    return self.fresh * 2, hasattr(self, "fresh")


@whole
def a_message_with_values(self):
    self.x = self.x + 1
    if self.x[0] > 3:
        raise ValueError(f"{self.x[0]}")
    return self.n


@whole
def an_object(self):
    self.last = Simulation(3)
    return self.last.x.sum()


@whole
def returned(self):
    self.x = self.x * 2
    return self


@whole
def in_a_loop(self):
    for _ in range(30):
        self.v = self.v - 0.01 * self.x
        self.x = self.x + 0.01 * self.v
        self.t += 0.01
        self.n += 1
    return self.t


@whole
def in_nested_loops(self):
    for _ in range(20):
        for j in range(15):
            self.t += j * 0.1
        self.x = self.x + self.t


@whole
def in_a_branch_of_a_loop(self):
    for _ in range(20):
        if self.x[0] > 3:
            self.x = self.x * 0.5
        else:
            self.x = self.x + 1
        self.last = self.x * 2
    return 1


@whole
def by_a_method(self):
    for k in range(20):
        self.move(k)


@whole
def made_by_a_loop(self):
    for k in range(20):
        self.fresh = self.x * k


@whole
def also_known_by_a_name(self):
    y = self.x
    for k in range(20):
        self.x = self.x + 1
        y[0] += k
    return y


@whole
def before_a_loop_that_writes(self):
    self.x = self.x * 2
    x = self.x
    for k in range(20):
        x[k % 5] += k
    return x.sum()


@whole
def in_a_branch(self):
    if self.x.sum() > 12:
        self.x = self.x - 1
    else:
        self.x = self.x + 1
    return self.n


@broken
def looked_at_by_vars(self):
    self.x = self.x + 1
    return sorted(vars(self)), self.__dict__["x"].sum()


@broken
def looked_at_by_a_copy(self):
    self.x = self.x * 2
    return copy.copy(self).x


@broken
def around_a_print(self):
    self.x = self.x + 1
    print(end="", flush=True)
    self.v = self.v + 1
    return self.x


@broken
def deleted(self):
    self.fresh = self.x
    del self.fresh
    return 1


@broken
def maybe_what_it_was(self):
    if self.x.sum() > 12:
        self.x = self.x - 1
    self.n += 1


def shown(value):
    if isinstance(value, Simulation):
        return {k: shown(v) for k, v in vars(value).items()}
    return repr(value)


def outcome(fn, simulation):
    """The result, the exception and the attributes."""
    try:
        result = fn(simulation)
    except ValueError as error:
        result = str(error)
    return "itself" if result is simulation else shown(result), shown(simulation)


@pytest.mark.parametrize("fn", WHOLE + BROKEN, ids=lambda fn: fn.__name__)
def test_attributes_are_set(fn):
    compiled = cinductor.compile(fn, backend="interp")
    plain, captured = Simulation(), Simulation()
    for _ in range(7):
        assert outcome(compiled, captured) == outcome(fn, plain)
    assert bool(compiled.specializations) == (fn in WHOLE)
    if fn is also_known_by_a_name:
        assert captured.x is not plain.x


def test_identities_are_pythons():
    compiled, simulation = cinductor.compile(one_array_twice, backend="interp"), Simulation()
    for _ in range(3):
        y = compiled(simulation)
        assert simulation.x is y is simulation.kept
    compiled, simulation = cinductor.compile(swap, backend="interp"), Simulation()
    for _ in range(3):
        x, v = simulation.x, simulation.v
        compiled(simulation)
        assert simulation.x is v and simulation.v is x


def test_a_loop_is_one_node():
    def fn(self):
        for k in range(200):
            self.x = self.x * 0.75 + k
            self.t += 0.25

    assert nodes(fn, Simulation()) < 20


def test_one_object_given_twice():
    def fn(a, b):
        a.x = a.x + 1
        b.x = b.x * 2
        return a.x.sum()

    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(3):
        one, other = [Simulation(), Simulation()], [Simulation(), Simulation()]
        assert compiled(*one) == fn(*other)
        assert shown(one[0]) == shown(other[0]) and shown(one[1]) == shown(other[1])
        one, other = Simulation(), Simulation()
        assert compiled(one, one) == fn(other, other)
        assert shown(one) == shown(other)


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


def test_an_object_is_returned():
    def fn(x):
        made = Pair(x * 2, 3)
        made.inner = [Pair(x, None)]
        return made

    compiled, x = cinductor.compile(fn, backend="interp"), np.arange(4.0)
    for _ in range(3):
        made = compiled(x)
        assert type(made) is Pair and list(vars(made)) == ["a", "b", "inner"]
        assert np.array_equal(made.a, x * 2) and made.b == 3 and made.inner[0].a is x
    assert compiled.specializations


def test_a_failed_check_leaves_attributes():
    def fn(self, k):
        self.x = self.x * 2
        self.n += 1
        return self.v[k]

    compiled, simulation = cinductor.compile(fn, backend="interp"), Simulation()
    for k in (0, 1, 2, 9):
        try:
            compiled(simulation, np.array(k))
        except IndexError:
            assert k == 9
    assert simulation.n == 4 and simulation.x[1] == 16
