"""Tests properties that values alone do not show: the identity of arrays, their layout, and the order of NumPy's
exceptions.
"""

import numpy as np
import pytest
import test_memory

import cinductor
from cinductor import testing

pytestmark = pytest.mark.usefixtures("pieces_are_compiled")
WAYS = [{}, {"dynamic": True}]


def numbers(n):
    return np.arange(n) * 1.0


def alike(program, *calls):
    """Compiled and plain functions do the same in all these calls: values, exceptions, identity of objects, shared
    memory, layout. Each call is a function that makes the arguments.
    """
    for way in WAYS:
        compiled = cinductor.compile(program, backend="interp", **way)
        for make in calls:
            ours, theirs = make(), make()
            with np.errstate(all="ignore"):
                want, expected = testing.outcome(program, theirs)
                got, raised = testing.outcome(compiled, ours)
            assert (type(raised), str(raised)) == (type(expected), str(expected))
            testing.assert_same(ours, theirs, where="arguments")
            testing.assert_same(got, want)
            assert test_memory.memory_of(got, ours) == test_memory.memory_of(want, theirs)
    return compiled


# --- another view of the same memory is another object --------------------------------------------


def rebound(a, b):
    for i in range(len(b)):
        b[i] += 1
        a = a[...]
    return a


def rebound_alongside(a, b):
    h = a
    for i in range(len(b)):
        b[i] += 1
        h = np.ravel(h)
    return h, a


def one_trip_behind(a, b):
    k = h = a
    for i in range(len(b)):
        b[i] += 1
        k = h
        h = h[...]
    return h, a, k


def both_at_once(a, b):
    k = h = a
    for i in range(len(b)):
        b[i] += 1
        h = h[...]
        k = h
    return h, a, k


def in_a_dict(a, b):
    held = {"x": a}
    for i in range(len(b)):
        b[i] += 1
        held["x"] = held["x"][...]
    return held, a


def of_a_new_array(a, b):
    h = a.copy()
    held = [h]
    for i in range(len(b)):
        b[i] += 1
        h = h[...]
    return h, held


def views_that_change_places(a, b):
    h, k = a, a[...]
    for i in range(len(b)):
        b[i] += 1
        h, k = k, h
    return h, a, k


def a_view_becomes_the_array(a, b):
    h, k = a[...], a
    for i in range(len(b)):
        b[i] += 1
        h = k
    return h, a


def while_data_say(a, b):
    h, n = a, 0
    while n < len(b) and b[n] < 4:
        b[n] += 1
        n += 1
        h = h[...]
    return h, a


def asked_inside(a, b):
    h, n = a, 0
    for i in range(len(b)):
        b[i] += 1
        if h is a:
            n += 1
        h = h.reshape(-1)
    return h, a, n


def in_an_arm_inside(a, b):
    h = a
    for i in range(len(b)):
        b[i] += 1
        if b[i] > 2:
            h = h[...]
    return h, a


def two_names_of_one(a, b):
    for i in range(len(b)):
        b[i] += 1
        p = q = a[...]
    return (p, q, a) if len(b) else a


def a_diagonal_in_each_iteration(a, b):
    for i in range(len(b)):
        b[i] += 1
        d = a.reshape(1, -1).diagonal()
    return (d, a) if len(b) else a


def in_a_tuple(a, b):
    p = (a, b)
    for i in range(len(b)):
        b[i] += 1
        p = (p[0][:], p[1])
    return p, a


def by_a_function_inside(a, b):
    c = a

    def look():
        nonlocal c
        c = c[...]

    for i in range(len(b)):
        b[i] += 1
        look()
    return c, a


def in_one_arm(a, b):
    h = a
    if b.sum() > 3:
        h = a[...]
        b += 1
    return h, a


def in_the_other_arm(a, b):
    h = a[...]
    if b.sum() > 3:
        h = a
        b += 1
    return h, a


def known_by_another_name(a, b):
    h = a[...]
    k = h
    if b.sum() > 3:
        h = a[...]
        b += 1
    return h, a, k


def a_dict_in_an_arm(a, b):
    held = {"x": a}
    if b.sum() > 3:
        held["x"] = a[...]
        b += 1
    return held, a


def an_expression(a, b):
    h = a if b.sum() > 3 else a[:]
    b += 1
    return h, a


def returned_in_an_arm(a, b):
    if b.sum() > 3:
        b += 1
        return a[...]
    return a


OBJECTS = [
    *(rebound, rebound_alongside, one_trip_behind, both_at_once, in_a_dict, of_a_new_array),
    *(views_that_change_places, a_view_becomes_the_array, while_data_say, asked_inside),
    *(
        in_an_arm_inside,
        two_names_of_one,
        a_diagonal_in_each_iteration,
        in_a_tuple,
        by_a_function_inside,
        in_one_arm,
    ),
    *(in_the_other_arm, known_by_another_name, a_dict_in_an_arm, an_expression, returned_in_an_arm),
]


@pytest.mark.parametrize("program", OBJECTS, ids=lambda f: f.__name__)
def test_another_view_is_another_object(program):
    alike(program, *(lambda n=n: (numbers(5), numbers(n)) for n in (5, 5, 1, 0, 2, 12)))


@pytest.mark.parametrize("program", [rebound, of_a_new_array, in_a_dict], ids=lambda f: f.__name__)
def test_a_loop_that_takes_views_is_captured(program):
    """After the peeled first iteration, views of different iterations cannot be distinguished."""
    told = cinductor.explain(cinductor.compile(program, backend="interp"), numbers(5), numbers(12))
    assert any("captured" in line for line in told.regions), told.regions


def test_what_numpy_returns_as_it_is():
    def program(a, c, s):
        numbers = (np.squeeze(s[0]), np.transpose(s.sum()), s[0].reshape(()), s[0].squeeze())
        itself = (np.squeeze(a), a.squeeze(), a.conj(), np.asarray(a))
        views = (np.transpose(a), a.T, a.view(), a[...], np.ravel(a), a.reshape(-1), c.conj())
        return itself, views, numbers, [v is a for v in (*itself, *views)]

    alike(program, lambda: (numbers(5), numbers(3) * 1j, numbers(4)))


def test_a_new_axis_of_a_number():
    """The result was once a view of memory that a number does not have."""

    def program(a):
        return a[0][None], (a[0] + 1)[None], a.sum()[..., None], a[0][...]

    alike(program, lambda: (numbers(5) + 1,), lambda: (numbers(3) + 1,))


def test_a_view_from_where_data_say():
    """A length from data was once taken for negative in the first call."""

    def program(b, u):
        v = b[int(u[0]) % 3 :]
        return b, v, v.flags.writeable

    for row in ROWS.values():
        alike(program, *(lambda n=n, row=row: (row(n), np.array([6 + n, 2])) for n in (2, 1, 0, 7)))


def test_which_object_an_argument_is_may_be_asked():
    """Two arguments that are different objects in one call may be the same in the next."""

    def program(a, b):
        held = [a, b]
        if held[0] is held[1]:
            return a.ravel(), b
        return (a, b) if a is not b else (b, a)

    one = numbers(3)
    alike(program, lambda: (numbers(3), numbers(3)), lambda: (one, one), lambda: (numbers(3), one))
    alike(program, lambda: (one, one), lambda: (numbers(3), numbers(3)))


# --- a name that is the argument itself in one iteration, and another array in the next -----------------


def itself_at_first(a, b):
    h, n = a, 0
    for _ in range(12):
        if h is a:
            n += 1
        h = h + b
    return h, n


def longer_in_each_iteration(a, b):
    h = a
    for _ in range(10):
        n = 0
        while n < len(a) and h is a:
            a += b
            n += 1
        h = np.concatenate([h, b])
    return h


def itself_again(a, b):
    h, n = b + 1, 0
    for i in range(20):
        n += h is not a
        h = a if i % 3 else b
    return n


def itself_in_a_loop_inside(a, b):
    h, n = a, 0
    for _ in range(12):
        for j in range(10):
            g = h if j else b
            n += g is not a
        h = h + b
    return n, h


def handed_on_by_a_loop_inside(a, b):
    h, n = a, 0
    for _ in range(12):
        g = h
        for _ in range(10):
            n += g is a
            g = g * 2
        h = h + b
    return n, h


def one_of_the_call(a, b):
    h = kept = a + 0
    n = 0
    for i in range(12):
        n += h is kept
        h = kept if i == 5 else h + b
    return n, h


def in_turns(a, b):
    h, g, n = a, b, 0
    for _ in range(13):
        n += (h is a) + 100 * (g is h)
        h, g = g, h
    return n, h


def item_by_item(a, b):
    held, n = [a], 0
    for _ in range(12):
        n += held[0] is a
        held[0] = held[0] + b
    return n, held


ITSELF = [
    *(itself_at_first, longer_in_each_iteration, itself_again, itself_in_a_loop_inside),
    *(handed_on_by_a_loop_inside, one_of_the_call, in_turns, item_by_item),
]


@pytest.mark.parametrize("program", ITSELF, ids=lambda f: f.__name__)
def test_is_asked_of_what_a_loop_hands_on(program):
    """The identity was once computed a single time for all iterations."""
    alike(program, *(lambda n=n: (numbers(n), numbers(n) + 1) for n in (5, 5, 7, 3)))


def test_is_asked_of_one_of_two():
    def program(a, b):
        h = a
        for v in b:
            if v > 2:
                h = b
        return 1 if h is a else 2

    alike(program, *(lambda n=n: (numbers(n), numbers(n)) for n in (5, 2, 12)))


def test_a_loop_whose_first_array_is_told_apart_is_captured():
    told = cinductor.explain(
        cinductor.compile(itself_at_first, backend="interp"), *[numbers(5)] * 2
    )
    assert any("captured" in line for line in told.regions) and not told.breaks


# --- what a library call raises is raised in the user's line --------------------------------------


def caught(M, v):
    v += 1
    try:
        x = np.linalg.solve(M, v)
    except np.linalg.LinAlgError as error:
        return str(error), v
    v *= 2
    return x


def caught_in_a_loop(M, v):
    for _ in range(12):
        v += 1
        try:
            M = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            v -= 1
    return M


def leaves(M, v):
    v += 1
    np.linalg.cholesky(M)
    v += 1


def behind_an_effect(M, v):
    SEEN.append(1)
    try:
        return np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return v


def negative_powers(M, v):
    """NumPy has written the elements before the exponent that it refuses."""
    i = M[0].astype(int) - 1
    try:
        i **= i
    except ValueError as error:
        return str(error), i
    return i


SEEN = []
RAISE = [caught, caught_in_a_loop, leaves, behind_an_effect, negative_powers]


@pytest.mark.parametrize("program", RAISE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", [(0, 1, 0, 0), (1, 0, 1)], ids=str)
def test_exceptions_of_library_calls(program, order):
    alike(program, *(lambda k=k: (np.eye(3) * k, numbers(3)) for k in order))


# --- arrays carried by loops have NumPy's layout -----------------------------------------------------


def backwards(a, b):
    r = a * 2
    for i in range(len(b)):
        r = (r + b[i])[::-1]
    return r


def backwards_in_an_arm(a, b):
    r = a * 2
    if b.sum() > 3:
        r = (a + 1)[::-1]
    return r


def with_gaps(a, b):
    if b.sum() > 3:
        return (a + 1)[::2]
    return a[::2] + 1


def by_an_expression(a, b):
    return (a + 1)[::-1] if b.sum() > 3 else (a + 2)[::-1]


def of_many_elements(a, b):
    v = b
    for i in range(len(b)):
        v = a[a > b[i]][::-1]
    return v


def raveled(a, b):
    r = a * 2
    for i in range(len(b)):
        r = (r + b[i])[::2]
        r.ravel()[:1] = 7
    return r


LAYOUTS = [backwards, backwards_in_an_arm, with_gaps, by_an_expression, of_many_elements, raveled]


@pytest.mark.parametrize("program", LAYOUTS, ids=lambda f: f.__name__)
def test_strides_of_what_is_handed_on(program):
    alike(program, *(lambda n=n: (numbers(6), numbers(n)) for n in (5, 5, 1, 2, 12)))


# --- an array of one element is contiguous, whatever its strides ----------------------------------------


def change(v):
    v += 1
    return v


IN_ORDER = {
    "ravel": lambda a: change(a.ravel()),
    "ravel of a slice": lambda a: change(a[::2].ravel()),
    "ravel backwards": lambda a: change(a[::-1].ravel()),
    "ravel K": lambda a: change(np.ravel(a[::-2], "K")),
    "reshape": lambda a: change(a.reshape(-1)),
    "a new axis": lambda a: change(a[:, None].ravel()),
    "ascontiguousarray": lambda a: change(np.ascontiguousarray(a)),
    "flags": lambda a: (a.flags.c_contiguous, a.flags.f_contiguous, a[::2].flags.contiguous),
}
ROWS = {
    "step": lambda n: numbers(2 * n)[::2],
    "back": lambda n: numbers(2 * n)[::-2],
    "dense": numbers,
    "column": lambda n: numbers(2 * n).reshape(n, 2)[:, 0],
}


@pytest.mark.parametrize("name", IN_ORDER)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("sizes", [(7, 2, 1, 0, 1, 7), (1, 7, 1), (5, 6, 1, 1)], ids=str)
def test_one_element_is_in_order(name, row, sizes):
    """NumPy makes a view of a strided row of one element, and copies a longer one."""
    alike(IN_ORDER[name], *(lambda n=n: (ROWS[row](n),) for n in sizes))


# --- the order of exceptions ---------------------------------------------------------------------------

READ_ONLY = (
    """
d[:] = v|d[5] = 1|d[1, 1] = 2|d[[0, 9]] = 1|d['a'] = 1|d.flat[0] = 1|d += v|d <<= 1|d @= v
np.add(v, v, out=d)|np.add(d, v, out=d)|np.matmul(M, v, out=d)|np.add(v, 1j, out=d)
np.add(v, 1, out=d, dtype='i4')|np.maximum.accumulate(v, out=d)|np.divmod(v, 2, out=(d, d))
np.outer(v, v, out=d)|np.modf(v, d, d)|np.add.at(d, [9], 1)|np.put(d, [9], 1)|np.copyto(d, v)
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


@pytest.mark.parametrize("line", READ_ONLY)
@pytest.mark.parametrize("view", ["M.diagonal()", "np.broadcast_to(v, (2, 5))"])
def test_nothing_is_asked_of_what_is_read_only(line, view, tmp_path):
    """NumPy checks whether an array is writable before indices, shapes and casts; the exception shows which check
    failed.
    """
    source = f"""import numpy as np

def program(M, v):
    d = {view}
    try:
        {line}
    except Exception as error:
        return type(error), str(error), v.sum()
    return d
"""
    program = test_memory.test_fuzz.load(source, tmp_path / "program.py")
    alike(program, lambda: (numbers(12).reshape(3, 4) - 1, numbers(5) - 2))


# --- casts ----------------------------------------------------------------------------------------

OUTS = (
    """
np.take(a, u, out=h)|np.take(a, u, out=h, mode='clip')|a.take(u, out=h, mode='wrap')
np.dot(a[:3, None], a[:1], out=h)|np.einsum('i->i', a[:3], out=h)|np.ptp(a.reshape(4, 1) + a[:3], axis=0, out=h)
np.choose(u, [a[:3], a[:3], a[1:]], out=h)|np.clip(a[:3], 0, 2, out=h)|np.cumsum(a[:3], out=h)
np.concatenate([a[:2], a[:1]], out=h)|np.round(a[:3], 1, out=h)|np.compress([True] * 3, a, out=h)
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


@pytest.mark.parametrize("line", OUTS)
def test_casts_into_out(line, tmp_path):
    """Which casts out= accepts depends on the function."""
    source = f"import numpy as np\n\ndef program(a, u, h):\n    r = {line}\n    return r, r is h\n"
    program = test_memory.test_fuzz.load(source, tmp_path / "program.py")
    for dtype in "fdiL":
        for out in "efl?F":
            alike(
                program,
                lambda d=dtype, o=out: (
                    np.arange(4).astype(d),
                    np.array([1, 0, 2]),
                    np.zeros(3, o),
                ),
            )


def test_a_take_in_a_loop_meets_another_dtype():
    """In the second iteration, the array cannot be cast to the dtype of out=."""

    def program(a, b, u):
        h = b
        for _ in range(3):
            np.take(a, u, out=h)
            h = h.astype(np.float32)
        return h

    half = np.array([1, 2], np.float16)
    alike(program, lambda: (half.copy(), half + 1, np.array([0, 1])))


@pytest.mark.parametrize("ufunc", ["add", "multiply", "maximum"])
@pytest.mark.parametrize("dtype", "BQqfd")
def test_numbers_of_at_are_arrays(ufunc, dtype, tmp_path):
    """`at` converts a Python number to an array, whose dtype decides the loop: float64 for uint64 with int64."""
    for value in ("3", "200", "k", "2**53 + 1", "int(u[0])", "16777217", "0.1"):
        source = f"""import numpy as np

def program(x, u, k):
    np.{ufunc}.at(x, [0, 1, 1], {value})
    return x
"""
        program = test_memory.test_fuzz.load(
            source, tmp_path / f"program_{len(value)}_{ord(value[0])}.py"
        )
        high = {"Q": 2**60 + 1, "q": 2**60 + 1}.get(dtype, 1)
        alike(program, lambda h=high: (np.full(3, h, dtype), np.array([5, 2]), 7))


def test_a_bool_to_the_second_power():
    """Arrays use np.square, whose loop for bools is that of int8; scalars do not."""

    def program(o):
        return o**2, o[0] ** 2, o**3, np.power(o, 2), o**1

    alike(program, lambda: (np.array([True, False]),))


def refused(o):
    o **= 2


def test_a_bool_to_the_second_power_in_place():
    alike(refused, lambda: (np.array([True, False]),))


@pytest.mark.parametrize(
    "line", ["M @= M", "M @= v", "M @= M[:, :1]", "v @= v", "i @= M", "v @= M"]
)
def test_products_in_place(line, tmp_path):
    """Such a product is neither cast nor broadcast, and its second operand is a matrix."""
    source = f"def program(M, v, i):\n    {line}\n    return M, v, i\n"
    program = test_memory.test_fuzz.load(source, tmp_path / "program.py")
    alike(program, lambda: (numbers(9).reshape(3, 3), numbers(3), np.ones((3, 3), int)))


def copies_of_one(a, s):
    """Some copies are written, some returned, some only read. Copies that are only read may share one buffer, because
    this cannot be observed.
    """
    u, v = a.copy(), a.copy()
    w = u + v
    u[:] = s
    r = u * a.copy()
    q, p = a.copy(), a.copy()
    for i in range(20):
        q[i % 4] += p[(i + 1) % 4]
        p[0] = i
    a[1:] = s
    return w, r, v, q, p, a.copy(), a.copy()


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("n", [4, 5, 100])
def test_copies_of_one_array(n, backend):
    compiled = cinductor.compile(copies_of_one, backend=backend, fullgraph=True)
    for _ in range(2):
        x, y = np.arange(1.0, n + 1), np.arange(1.0, n + 1)
        want, got = copies_of_one(x, 3.0), compiled(y, 3.0)
        np.testing.assert_equal([*got, y], [*want, x])
        assert not any(np.may_share_memory(p, q) for k, p in enumerate(got) for q in [y, *got[:k]])


@pytest.mark.parametrize("whole", [True, False])
def test_a_part_of_what_a_loop_may_have_left_alone(whole):
    """The result was once separate memory, because it is shorter than the argument."""

    def halved(a, b):
        h = a
        for _ in range(len(a)):
            if b[0]:
                h = h[: len(h) // 2]
        return h if whole else h[:1]

    makes = [lambda v=v: (numbers(12), numbers(3) + v) for v in (0, 1, 0)]
    alike(halved, *makes)


def test_the_base_of_what_a_loop_hands_on():
    """An array that NumPy copies was once a view of a buffer of the program."""

    def program(a, b):
        h, n = a[: len(a) // 2], 0
        for _ in range(10):
            a += 1
            n += h.base is None
            h = b.ravel("K")
        return n

    alike(program, *(lambda s=s: (numbers(12), numbers(24)[::s]) for s in (1, 2, 1, 2)))


def test_the_flags_of_what_a_loop_hands_on():
    def program(a, b):
        h, n = a + 1, 0
        for i in range(10):
            n += h.flags.owndata + 2 * h.flags.c_contiguous
            h = h[::2] if i % 2 else h + b[: len(h)]
        return n

    alike(program, *(lambda n=n: (numbers(n), numbers(n)) for n in (12, 12, 40)))


def test_two_names_of_a_loop_that_may_be_one_are_asked_of_a_tuple():
    """The identity test of each name once referred to the other's, without end."""

    def program(a, b, k):
        kept = (a, b)
        h = b.reshape(2, -1)[0]
        for _ in range(10):
            for _ in range(1, len(a)):
                a = h[1:]
                v = (h, a)[k % 2 == 0]
            if kept[0] is a:
                h = b[::-1].copy()
        return h, a, v

    alike(program, *(lambda k=k: (numbers(12), numbers(12), k) for k in (1, 2, 1)))


class Keeper:
    """Operators that return the other operand."""

    __array_ufunc__ = None

    def __add__(self, other):
        return other

    __radd__ = __rsub__ = __add__


def test_an_operator_of_the_users_gets_the_callers_own_containers():
    def f(x, items, table):
        k = Keeper()
        return k + items, items - k, k + table, sum([items], k), x - k, x * 2

    compiled = cinductor.compile(f, backend="interp")
    for _ in range(3):
        x, items, table = np.arange(3.0), [1.0, np.ones(2)], {"a": 2.0}
        *kept, made = compiled(x, items, table)
        assert all(a is b for a, b in zip(kept, (items, items, table, items, x), strict=True))
        np.testing.assert_array_equal(made, x * 2)


def kept(x, d):
    d["o"] = o = [x * 2]
    return o, (o, {"k": o})


def kept_before_a_break(x, d):
    o = [x * 2]
    print(end="")
    d["o"] = o
    return o, {"k": o}


def kept_by_an_attribute(x, d):
    def h():
        return 0

    h.o = [x * 2]
    print(end="")
    d["o"] = h.o
    return h, h.o


def kept_by_a_default(x, d):
    o = [x * 2]

    def h(v=o):
        return 0

    d["o"] = o
    return o, h


@pytest.mark.parametrize("f", [kept, kept_before_a_break, kept_by_an_attribute, kept_by_a_default])
def test_a_list_that_is_kept_and_returned_is_one(f):
    def lists(value):
        if callable(value):
            return lists((*(value.__defaults__ or ()), *vars(value).values()))
        if isinstance(value, dict | tuple):
            return [found for v in (value.values() if isinstance(value, dict) else value) for found in lists(v)]
        return [value]

    compiled = cinductor.compile(f, backend="interp")
    for n in (3, 4, 5, 5):
        d = {}
        found = lists((compiled(np.ones(n), d), d))
        assert len(found) == 3 + (f is kept) and all(o is d["o"] for o in found)
        assert type(d["o"][0]) is np.ndarray and d["o"][0].tolist() == [2.0] * n


def test_whether_arguments_own_their_memory():
    def f(x):
        flags = x.flags
        return flags.owndata, flags["OWNDATA"], flags.c_contiguous, x.T.flags.owndata, flags.num, x + 1

    compiled = cinductor.compile(f, backend="interp")
    for x in (np.arange(6.0), np.arange(6.0)[1:], np.arange(6.0), np.arange(6.0).reshape(2, 3), np.ones((2, 3))):
        assert repr(compiled(x)) == repr(f(x))


def test_the_base_of_a_copy_after_an_effect():
    def f(x):
        print(end="")
        return np.repeat(x, 2).base is None, x.flatten().base is None, np.repeat(x, 2)[1:].base is None

    compiled = cinductor.compile(f, backend="interp")
    for _ in range(3):
        assert compiled(np.arange(4.0)) == f(np.arange(4.0))
