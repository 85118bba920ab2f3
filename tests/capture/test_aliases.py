"""Tests names that may refer to one of several arrays in loops and branches.

If a loop or branch passes such an array on by value, the result must be right; otherwise it must not become a
region. Each function runs on data that takes either path. Results, arguments and shared memory must be NumPy's.
"""

import copy

import numpy as np
import pytest
from test_growth import flat
from test_regions import outcome, same

import cinductor
from cinductor.testing import assert_same

pytestmark = pytest.mark.filterwarnings("error:cinductor")
CASES = []


def case(fn):
    CASES.append(fn)
    return fn


# --- an existing array under a condition, in a loop ----------------------------------------------------------


@case
def the_view_of_some_iteration(x, y, A, t):
    last = A[0]
    for i in range(len(A)):
        A[:, 0] += 1
        if x[i] > t:
            continue
        last = A[i]
    return last.sum(), last


@case
def read_alongside_its_writes(x, y, A, t):
    last, s = A[0], 0.0
    for i in range(len(A)):
        s += last.sum()
        A[:, 0] += 1
        s += last.sum()
        if x[i] > t:
            continue
        last = A[i]
    return s


@case
def written_to_after_the_loop(x, y, A, t):
    z = x
    for i in range(len(x)):
        if y[i] > t:
            z = x + 1
    x[0] = 77
    return z.sum()


@case
def made_in_some_iteration(x, y, A, t):
    z = x * 1
    w = z
    for i in range(len(x)):
        if y[i] > t:
            z = x + i
    z[0] = 5
    return z, w


@case
def one_of_two_arguments(x, y, A, t):
    z = x
    for i in range(len(x)):
        z[0] += 1
        if y[i] > t:
            z = y
        elif y[i] < 0:
            z = x
    return z


@case
def best_so_far(x, y, A, t):
    best, least = x, x.sum()
    for i in range(len(A)):
        row = A[i] * 2.0
        if row.sum() < least + t:
            best, least = row, row.sum()
    return best, least


@case
def stops_before_it_changes(x, y, A, t):
    for i in range(len(x)):
        if x[i] > t:
            break
        for _ in range(len(x)):
            x = x + 1
    return x


@case
def no_iteration_of_the_inner_loop(x, y, A, t):
    z = x
    for i in range(len(A)):
        k = y[i]
        while k > t:
            z = z + 1
            k = k - 2
        y[i] = k
    return z


@case
def written_after_a_choice(x, y, A, t):
    z = x + 0
    for i in range(len(x)):
        if y[i] > t:
            z = z + 1
        z[i] = -1
    return z, x


@case
def written_after_a_choice_of_the_argument(x, y, A, t):
    z = x
    for i in range(len(x)):
        if y[i] > t:
            z = z + 1
        z[i] = -1
    return z, x


# --- the entry's memory ---------------------------------------------------------------------------------------


@case
def the_entry_is_written_to(x, y, A, t):
    z, s = x, 0.0
    for i in range(len(x)):
        x[i] += 1
        s += z.sum()
        z = z * 1
    return s, z


@case
def a_row_of_what_is_written(x, y, A, t):
    row = A[0]
    for i in range(1, len(A)):
        A[i] += row
        A[0] += 1
        row = row + 1
    return row


# --- two names of one array -----------------------------------------------------------------------------------


@case
def two_names_after_an_iteration(x, y, A, t):
    a, b = x + 0, x + 1
    for i in range(len(x)):
        a = x * i
        b = a
    b[0] = 99
    return a, b


@case
def two_names_in_some_iterations(x, y, A, t):
    a, b = x + 0, x + 1
    for i in range(len(x)):
        if y[i] > t:
            a = x * i
            b = a
    b[0] = 99
    return a, b


@case
def one_behind_the_other(x, y, A, t):
    old, new = x + 0, x + 1
    for _ in range(len(x)):
        old, new = new, new + old
    old[0] = 5
    new[1] = 6
    return old, new


@case
def changed_under_the_other_name(x, y, A, t):
    a, b = x + 0, x + 1
    for i in range(len(x)):
        if y[i] > t:
            b = a
        a[i] += 1
    return a, b


@case
def change_places(x, y, A, t):
    for i in range(len(x)):
        for _ in range(len(A)):
            x, y = y, x
        x[i] += 1
    return x, y


# --- branches -------------------------------------------------------------------------------------------------


@case
def a_branch_in_a_branch(x, y, A, t):
    if x[0] > t:
        z = x if y[0] > t else x + 1
    else:
        z = x + 2
    x[0] = 77
    return z.sum()


@case
def arms_in_arms(x, y, A, t):
    if x[0] > t:
        if y[0] > t:
            z = x
        else:
            z = x + 1
    else:
        z = x + 2
    x[0] = 77
    return z.sum()


@case
def two_names_in_an_arm(x, y, A, t):
    if y[0] > t:
        a = x + 1
        b = a
    else:
        a, b = x + 1, x + 2
    a[0] = 50
    return a, b


@case
def two_names_of_an_arm_are_returned(x, y, A, t):
    if y[0] > t:
        a = x + 1
        b = a
    else:
        a, b = x + 1, x + 2
    return a, b


@case
def either_name_of_an_array(x, y, A, t):
    z = x * 2
    if y[0] > t:
        a, b = z, x + 1
    else:
        a, b = x + 2, z
    a[0] = 50
    return a, b


@case
def a_view_of_either(x, y, A, t):
    z = x
    if y[0] > t:
        z = y
    w = z[1:]
    y[2] = 50
    return w.sum()


@case
def an_array_or_its_copy(x, y, A, t):
    z = x
    if y[0] > t:
        z = x.copy()
    z += 1
    return z


@case
def a_name_gets_an_array_of_another_name(x, y, A, t):
    a, z = x + y, y * 2
    for _ in range(len(A)):
        if z.sum() > t:
            t += 1
        z = a
    z += 1
    return a, t


@case
def the_array_of_another_name_is_written_to(x, y, A, t):
    a, z = x + y, y * 2
    for _ in range(len(A)):
        if z.sum() > t:
            t += 1
        z = a
    a += 1
    return z, t


@case
def stays_itself_where_it_is_read(x, y, A, t):
    x = x.copy()
    while True:
        most = x.max()
        if most < t + 1:
            return x, most
        x -= 1


# --- read-only arrays


def the_same_elements(x, y, A, t):
    v = A[0]
    for i in range(4):
        if y[i] > t:
            v = np.broadcast_to(A[0], A.shape[:1])
    return v


def the_same_elements_of_a_choice(x, y, A, t):
    v = A[0]
    if y[0] > t:
        v = np.broadcast_to(A[0], A.shape[:1])
    return v


def new_elements_of_a_choice(x, y, A, t):
    v = A[0] * 2
    if y[0] > t:
        v = np.broadcast_to(v * 2, v.shape)
    return v


def the_last_of_a_loop(x, y, A, t):
    for i in range(4):
        v = np.broadcast_to(A[0] * i, A.shape[:1])
    return v


# --- Python's number or NumPy's, made by the last iteration
# --------------------------------------------------------


@case
def a_number_of_either_class(x, y, A, t):
    s, w = 0.0, 0
    while True:
        s = -0.75
        if x[w] > t:
            s = x[w]
        if w >= 7 or y[w] > s:
            break
        w += 1
        s -= y[0]
    return s


@case
def a_view_of_the_inner_loop(x, y, A, t):
    for _ in range(2):
        k = 0
        while k < len(A):
            k += 1
            for _ in range(k, 0, -1):
                v = x[::-1]
    return v


@case
def a_view_after_exchanges(x, y, A, t):
    k = 0
    if t < 9:
        while k < len(A) - 1:
            k += 1
            if t > x[k]:
                x, y = y, x
        v = x[1:]
    return v


@case
def reversed_until_it_is_returned(x, y, A, t):
    r = x * 0.5
    for _ in range(len(A)):
        while True:
            r = r[::-1]
            break
    for i in range(len(A)):
        if x.max() > t:
            return r, i
        r = r[::-1]


def arguments(seed, n=9):
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-4, 5, n) * 1.0 for _ in range(2))
    if seed == 0:
        y -= 10  # none is above any limit
    return x, y, rng.integers(-4, 5, (n, n)) * 1.0, np.float64(seed % 3)


def shared(results, given):
    """Which arrays are the same object, and which share memory."""
    arrays = [*flat(results), *(a for a in given if isinstance(a, np.ndarray))]
    return [(a is b, np.shares_memory(a, b)) for a in arrays for b in arrays]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_one_of_several(fn, dynamic, pieces_are_compiled):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for seed in (1, 1, 0, 2, 3, 4, 5):
        ours, theirs = (copy.deepcopy(arguments(seed)) for _ in range(2))
        got, want = compiled(*ours), fn(*theirs)
        same(got, want)
        same(ours, theirs)
        assert shared(got if isinstance(got, tuple) else (got,), ours) == shared(
            want if isinstance(want, tuple) else (want,), theirs
        )


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [the_same_elements, the_same_elements_of_a_choice, new_elements_of_a_choice, the_last_of_a_loop])
def test_one_of_several_that_is_read_only(fn, backend):
    """A write raises, and the result has NumPy's flags."""

    def written(x, y, A, t):
        v = fn(x, y, A, t)
        v += 1

    for f in (fn, written):
        compiled = cinductor.compile(f, backend=backend)
        for seed in (1, 0, 2, 3, 5):
            ours, theirs = (copy.deepcopy(arguments(seed)) for _ in range(2))
            got, want = outcome(compiled, ours), outcome(f, theirs)
            same(got, want)
            same(ours, theirs)
            if f is fn:
                assert compiled(*ours).flags.writeable == fn(*theirs).flags.writeable


@pytest.mark.parametrize(
    "fn",
    [best_so_far, stops_before_it_changes, written_after_a_choice, one_behind_the_other],
)
def test_whole_where_the_difference_is_invisible(fn):
    compiled = cinductor.compile(fn, backend="interp", fullgraph=True)
    for seed in range(6):
        ours, theirs = (copy.deepcopy(arguments(seed)) for _ in range(2))
        same(compiled(*ours), fn(*theirs))


def test_the_argument_itself_is_returned_where_no_iteration_made_another():
    compiled = cinductor.compile(best_so_far, backend="interp")
    x, y, A, _ = arguments(1)
    assert compiled(x, y, A, 1e6)[0] is not x
    assert compiled(x, y, A, -1e6)[0] is x


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_arrays_of_any_size_that_only_change_places(backend):
    def swapped(a, b, n):
        for _ in range(n):
            a, b = b, a
        return a + 1

    compiled = cinductor.compile(swapped, backend=backend, dynamic=True, fullgraph=True)
    for n in (9, 10, 0, 1, 2):
        a, b = np.arange(4.0), np.arange(4.0) * 3
        same(compiled(a, b, n), swapped(a, b, n))


WRITES = {
    "shuffle": lambda a, b, rng: rng.shuffle(a),
    "shuffle by name": lambda a, b, rng: rng.shuffle(x=a),
    "permuted": lambda a, b, rng: rng.permuted(b, out=a),
    "add.at": lambda a, b, rng: np.add.at(a, [0, 1, 1], 2.0),
    "subtract.at": lambda a, b, rng: np.subtract.at(a, np.array([0, 1, 1]), b[:3]),
    "sort": lambda a, b, rng: a.sort(),
    "partition": lambda a, b, rng: a.partition(3),
    "fill": lambda a, b, rng: a.fill(3),
    "put": lambda a, b, rng: a.put([0, 2], [5, 6]),
    "copyto": lambda a, b, rng: np.copyto(a, b),
    "copyto where": lambda a, b, rng: np.copyto(a, 7, where=a > 3),
    "place": lambda a, b, rng: np.place(a, a > 3, [1, 2]),
    "putmask": lambda a, b, rng: np.putmask(a, a > 3, b),
    "fill_diagonal": lambda a, b, rng: np.fill_diagonal(a.reshape(3, 3), 5),
    "put_along_axis": lambda a, b, rng: np.put_along_axis(a, np.array([0, 3]), 9.0, 0),
    "flat": lambda a, b, rng: a.flat.__setitem__(slice(0, 3), 9),
    "item": lambda a, b, rng: a.__setitem__([0, 1], a[[1, 0]]),
    "iadd": lambda a, b, rng: a.__iadd__(b),
    "imul": lambda a, b, rng: a.__imul__(b),
    "clip by method": lambda a, b, rng: b.clip(1, 4, a),
    "round by method": lambda a, b, rng: b.round(0, a),
    "cumsum": lambda a, b, rng: np.cumsum(a, out=a),
    "sum": lambda a, b, rng: np.sum(b[None], axis=0, out=a),
    "clip": lambda a, b, rng: np.clip(b, 1, 4, a),
    "round": lambda a, b, rng: a.round(out=a),
    "take": lambda a, b, rng: np.take(b, [0] * 9, out=a),
    "dot": lambda a, b, rng: np.dot(np.eye(9), b, out=a),
    "modf": lambda a, b, rng: np.modf(b, a, np.empty(9)),
    "accumulate": lambda a, b, rng: np.add.accumulate(b, out=a),
    "concatenate": lambda a, b, rng: np.concatenate([b[:4], b[:5]], out=a),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("ways", ["over", "same", "apart", ("apart", "over", "same")], ids=str)
@pytest.mark.parametrize("is_all", [True, False])
def test_whatever_writes_may_write_into_what_overlaps(name, ways, is_all):
    """is_all: no other statement of the program writes."""
    write = WRITES[name]

    def program(a, b, rng):
        before = b.sum()
        write(a, b, rng)
        after = (b * 2).sum()
        if not is_all:
            b[...] = b + 1
        return before, after, a.copy(), b.sum()

    def arguments(way):
        memory = np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3])
        a = memory[:-1]
        return a, {"over": memory[1:], "same": a, "apart": memory[1:].copy()}[way]

    compiled = cinductor.compile(program, backend="interp")
    for way in (ways, ways, ways) if isinstance(ways, str) else ways:
        ours, theirs = arguments(way), arguments(way)
        got, want = (
            compiled(*ours, np.random.default_rng(1)),
            program(*theirs, np.random.default_rng(1)),
        )
        assert_same(got, want)
        assert_same(ours, theirs)


# --- operands that wait ---------------------------------------------------------------------------


def after_branch(o, x):
    v = o.pop()
    if x[0] > 5.0:
        v = v * 2
    v += 1
    return v[0]


def in_loop(o, x):
    v = o.pop()
    for i in range(3):
        if x[i] > 5.0:
            v = v * 2
        v += 1
    return v[0]


class Taking:
    """Takes the array wherever a method of its class is called."""

    def __init__(self, o, x, h):
        self.o, self.x, self.h = o, x, h

    @property
    def value(self):
        return self.h(self.o, self.x)

    def __getitem__(self, k):
        return self.h(self.o, self.x)

    def __call__(self, *args):
        return self.h(self.o, self.x)

    def __len__(self):
        return 1 + int(self.h(self.o, self.x) * 0)

    def __bool__(self):
        return bool(self.h(self.o, self.x) > 0)

    def __iter__(self):
        return iter([self.h(self.o, self.x)])


def augmented(o, x, h):
    o.append([o[0]])
    o[0] += h(o[1], x)
    return o


def augmented_cell(o, x, h):
    a = o[0]

    def k():
        nonlocal a
        a = None
        return h(o, x)

    a += k()
    return a


def in_a_default(o, x, h):
    def k(a=o[0], b=h(o, x)):  # noqa: B008
        return a + b

    return k()


def decorated(o, x, h):
    def keep(v):
        return lambda f: lambda: v + f()

    @keep(o[0])
    def k(a=h(o, x)):  # noqa: B008
        return a

    return k()


def stored(o, x, h):
    q = [0.0, 1.0]
    q[int(h(o, x) * 0)] = x
    o.append(x * 2)
    q[0], q[1 + int(h(o, x) * 0)] = o[0], 1.0
    return q


def iterated(o, x, h):
    total = 0.0
    for v in [x * 0, o[0]]:
        if o:
            total = total + h(o, x)
        total = total + v
    return total


def iterated_unpacked(o, x, h):
    total = 0.0
    for v, w in zip([x * 0, o[0]], [0.0, 1.0], strict=True):
        if o:
            total = total + h(o, x)
        total = total + v * w
    return total


WAITING = [
    lambda o, x, h: o[0] + h(o, x),
    lambda o, x, h: o[0] + (h(o, x) if x[1] > 0 else 0.0),
    lambda o, x, h: (o[0], h(o, x)),
    lambda o, x, h: [o[0], *[h(o, x)]],
    lambda o, x, h: {1: o[0], 2: h(o, x)},
    lambda o, x, h: np.hypot(o[0], h(o, x)),
    lambda o, x, h: np.add(o[0], x2=h(o, x)) if x is None else np.stack([o[0], np.full(8, h(o, x))]),
    lambda o, x, h: o[0].__add__(h(o, x)),
    lambda o, x, h: o[0][int(h(o, x) * 0)],
    lambda o, x, h: o[0] < h(o, x),
    lambda o, x, h: (lambda a=o[0], b=h(o, x): a + b)(),  # noqa: B008
    lambda o, x, h: (lambda a, b: a + b)(o[0], b=h(o, x)),
    lambda o, x, h: o[0] + [h(o, x) for i in range(1)][0],
    lambda o, x, h: o[0] + max(h(o, x) for i in range(1)),
    lambda o, x, h: {i: (h(o, x) if i else o[0]) for i in (0, 1)},
    lambda o, x, h: list(map(lambda i: h(o, x) if i else o[0], [0, 1])),
    lambda o, x, h: o[0] + Taking(o, x, h).value,
    lambda o, x, h: o[0] + Taking(o, x, h)[0],
    lambda o, x, h: o[0] + Taking(o, x, h)(),
    lambda o, x, h: o[0] + len(Taking(o, x, h)),
    lambda o, x, h: o[0] + (1.0 if Taking(o, x, h) else 2.0),
    lambda o, x, h: (o[0], next(iter(Taking(o, x, h)))),
    augmented, augmented_cell, in_a_default, decorated, stored, iterated, iterated_unpacked,
]  # fmt: skip


@pytest.mark.parametrize("take", [after_branch, in_loop])
@pytest.mark.parametrize("fn", WAITING)
def test_an_operand_waits_while_a_later_one_writes_to_its_array(fn, take):
    def program(x):
        return fn([x * 2], x, take)

    compiled = cinductor.compile(program, backend="interp")
    for x in (np.arange(1.0, 9.0), np.arange(6.0, 14.0)):
        for _ in range(2):
            assert repr(compiled(x)) == repr(program(x))


def copied_and_read(x):
    y = x + 1
    return y.copy(), y.sum()


def copied_twice(x):
    y = np.sin(x)
    return y.copy(), y.copy(), y


def copied_and_written(x):
    y = x * 2
    z = y.copy()
    z[0] = 7.0
    return z, y.sum(), y[1:] + 1


def copied_and_written_through_a_view(x):
    y = x * 2
    z = y.copy()
    z[1:][0] = 7.0
    return z, y.max()


def copied_in_another_order(x):
    y = x.reshape(2, 3) + 1
    return y.copy("F"), y.sum(0), y @ y.T


def written_after_a_copy(x):
    y = x * 2
    z = y.copy()
    y += 1
    return z, y.sum()


@pytest.mark.parametrize("fn", [copied_and_read, copied_twice, copied_and_written, copied_and_written_through_a_view, copied_in_another_order, written_after_a_copy])
def test_a_copy_of_what_others_read_is_memory_of_its_own(fn):
    x = np.arange(6.0)
    compiled = cinductor.compile(fn)
    for _ in range(2):
        got, wanted = compiled(x.copy()), fn(x.copy())
        for a, b in zip(got, wanted):
            assert_same(a, b)
            assert np.asarray(a).strides == np.asarray(b).strides
        arrays = [a for a in got if isinstance(a, np.ndarray)]
        assert not any(np.shares_memory(a, b) for k, a in enumerate(arrays) for b in arrays[:k])
