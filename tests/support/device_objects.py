"""Functions of an array of a device whose results, and what they store to, are objects that hold arrays."""

import collections
import dataclasses

import numpy as np

import cinductor

X = np.random.default_rng(0).standard_normal((4, 6))


class Holder:
    def __init__(self, x):
        self.x = x


@dataclasses.dataclass
class Pair:
    x: object
    n: object


KEPT = Holder(None)


def keep(a):
    KEPT.x = a * 3
    return KEPT.x, a


CASES = {
    "an attribute": lambda a: Holder(a * 2),
    "a dataclass": lambda a: Pair(a * 2, a.sum()),
    "an argument in a list": lambda a: [Holder(a)],
    "a deque": lambda a: collections.deque([a + 1, a]),
    "an ordered dict": lambda a: collections.OrderedDict(x=a + 1),
    "a stored attribute": keep,
    "rows of a size that data decide": lambda a: np.nonzero(a > 0.5),
    "a slice": lambda a: slice(a[0, 0], a[0, 1]),
}


def arrays_in(value):
    """The arrays that a value has, in order."""
    if type(value) is slice:
        return [*arrays_in(value.start), *arrays_in(value.stop)]
    if isinstance(value, Holder | Pair):
        return arrays_in(list(vars(value).values()))
    if isinstance(value, dict):
        return arrays_in(list(value.values()))
    if isinstance(value, tuple | list | collections.deque):
        return [found for item in value for found in arrays_in(item)]
    return [] if value is None else [value]


def reached(function, a):
    """The arrays of a result, and those that the call has stored."""
    KEPT.x = None
    return arrays_in([function(a), KEPT])


def check(name, device):
    """Each is an `Array` with the right values, and an argument stays the same object: when captured, and again."""
    function, a = CASES[name], cinductor.to_device(X, device)
    compiled, want = cinductor.compile(function), reached(function, X)
    assert want, name
    for _ in range(3):
        got = reached(compiled, a)
        assert [type(x) for x in got] == [cinductor.Array] * len(want), (name, got)
        assert [x is a for x in got] == [x is X for x in want], name
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-12, err_msg=name)
    KEPT.x = None
