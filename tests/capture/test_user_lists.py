"""Tests collections.UserList, which is captured from its source, and other classes with a metaclass."""

import abc
from collections import UserList

import cases
import numpy as np
import pytest
from test_regions import check, outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
X = np.arange(1.0, 8.0)
CASES = []
case = cases.entering(CASES)


class Shape(abc.ABC):
    def __init__(self, scale):
        self.scale = scale

    @abc.abstractmethod
    def area(self, x): ...


class Square(Shape):
    def area(self, x):
        return x * x * self.scale


class Counted(type):
    pass


class Plain(metaclass=Counted):
    def __init__(self, scale):
        self.scale = scale


@case(X)
@case(-X)
def data_decide_the_length(x):
    made = UserList()
    for i in range(len(x)):
        if x[i] > 3:
            made.append(x[i] * 2)
    return made.data, len(made)


@case(X)
def items_are_carried(x):
    made = UserList([0.0] * 3)
    for i in range(len(x)):
        made[i % 3] += x[i]
    made.extend([x[0], 2.0])
    made.insert(0, x.sum())
    return made.data, made.pop(), made[1:3].data, (made + [1.0]).data, (made * 2).data


@case(X)
@case(-X)
def a_branch_sets_items(x):
    made = UserList([1.0, 2.0])
    if x.sum() > 3:
        made[0] = x[1]
    else:
        made[1] = x[2]
    return x + made[0] * made[1], made.data


@case(X)
def abstract_classes(x):
    shape = Square(2.0)
    return shape.area(x), shape.scale, Plain(3.0).scale


@pytest.mark.parametrize("fn, args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_whole(fn, args):
    check(fn, *args)


def test_results_are_made_in_each_call():
    def made(x):
        rows = UserList([x])
        rows.name = x * 2
        return rows, Square(x)

    compiled = cinductor.compile(made, backend="interp", fullgraph=True)
    for x in (X, -X):
        rows, shape = compiled(x)
        assert type(rows) is UserList
        assert type(shape) is Square
        same((rows.data, rows.name, shape.scale), ([x], x * 2, x))


def test_those_of_the_caller():
    def used(x, given):
        y = x * given[0] + len(given)
        given[1] = y
        given.append(x)
        return y

    compiled = cinductor.compile(used, backend="interp")
    for x in (X, -X):
        a, b = UserList([2.0, 3.0]), UserList([2.0, 3.0])
        same(compiled(x, a), used(x, b))
        same(a.data, b.data)


def abstract(x):
    return Shape(1.0).area(x)


def asked(x):
    return isinstance(Square(1.0), Shape), isinstance(x, Shape), x * 2


def mixed(x):
    rows = UserList([x, 1.0])
    texts = []
    for f in (lambda: rows[7], lambda: rows.remove(5.0), lambda: UserList(3)):
        try:
            f()
        except (IndexError, ValueError, TypeError) as error:
            texts.append((type(error), str(error)))
    for v in rows:
        x = x + v
    return texts, x, [*reversed(rows)], rows.copy().data, UserList(rows).data, list(rows)


@pytest.mark.parametrize("fn", [abstract, asked, mixed])
def test_as_in_python(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(2):
        same(outcome(compiled, (X.copy(),)), outcome(fn, (X.copy(),)))


def test_a_class_that_becomes_abstract():
    class Later(metaclass=Counted):
        def area(self):
            return 2.0

    def used(x):
        return x * Later().area()

    compiled = cinductor.compile(used, backend="interp")
    same(compiled(X), X * 2)
    Later.__abstractmethods__ = frozenset({"area"})
    with pytest.raises(TypeError, match="abstract"):
        compiled(X)


def test_a_metaclass_that_is_called_later(monkeypatch):
    def used(x):
        return x * Plain(2.0).scale

    compiled = cinductor.compile(used, backend="interp")
    same(compiled(X), X * 2)
    monkeypatch.setattr(Counted, "__call__", lambda cls, scale: type.__call__(cls, scale + 1), raising=False)
    same(compiled(X), X * 3)
    same(used(X), X * 3)
