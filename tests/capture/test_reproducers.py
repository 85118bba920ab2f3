"""Regression tests: minimal programs that once gave a wrong result."""

import functools
import itertools
import re
import time
import weakref

import numpy as np
import pytest

import cinductor
from cinductor.calls.job import Job
from cinductor.capture.pieces import driver
from cinductor.testing import check

HAND_OVER = Job.hand_over  # before fixtures replace it

ROWS = np.arange(12.0).reshape(3, 4) % 5


pytestmark = pytest.mark.usefixtures("pieces_are_compiled")


def same(fn, *arguments, **settings):
    """The function gives NumPy's results, compiled."""
    return check(fn, *arguments, backend="interp", **settings)


def test_augmented_mask():
    """The copy made by x[mask] was changed, but never stored."""

    def program(x):
        x[x > 2] -= 2
        x[[0, 2], 1] += 10
        return x

    same(program, ROWS)


def test_augmented_view():
    def program(x):
        x[1:] *= 2
        x.T[1] += 1

    same(program, ROWS)


def test_roll_by_an_element():
    """np.broadcast, which np.roll uses, was given a 1 for every traced scalar."""

    def program(x, shifts):
        constants = np.array([0, -1])
        return (
            np.roll(x, constants[1], axis=0),
            np.roll(x, shifts[0]),
            np.roll(x, shifts, axis=(0, 1)),
        )

    same(program, ROWS, np.array([2, -1]))


def test_items_of_broadcast():
    def program(x, y):
        pairs = np.broadcast(x, y)
        return pairs.shape, next(pairs), [a * b for a, b in pairs]

    same(program, ROWS, np.arange(4.0))


def test_broadcast_of_shapes_is_whole():
    def program(x, y):
        return np.cross(x, y), np.broadcast(x, y).shape

    same(program, ROWS[:, :3], ROWS[:, 1:], fullgraph=True)


def test_ufunc_at_with_two_indices():
    """The tuple of indices was turned into one array."""

    def program(x, i):
        np.add.at(x, (i, i), 1.5)

    same(program, ROWS, np.array([0, 1, 1, 2]))


def test_default_backend_too():
    def program(x):
        x[x > 2] -= 2
        return np.roll(x, x.astype(int)[1, 0])

    assert isinstance(check(program, ROWS), type(cinductor.compile(program)))


def test_where_of_scalars_is_an_array():
    """The result was a NumPy scalar, as the operands are."""

    def program(x):
        total = x.sum()
        return np.where(total > 0, total, total + 1), total

    same(program, ROWS)


# --- loops and branches ---------------------------------------------------------------------------


def test_effects_before_an_exception():
    """Capture raised without them, or with the message of another operation."""

    def writes(x):
        for i in range(len(x)):
            x[i + 1] *= 0

    def names(x, k):
        return x[k]

    def swaps(x):
        while x.any():
            x[[0, 2]] = x[[2, 0]]
            unbound += 1  # noqa: F821, F841

    same(writes, np.arange(9.0))
    same(names, np.zeros(0), np.int64(5))
    same(swaps, ROWS)


def test_an_argument_keeps_its_kind():
    """round() changed the kind of the graph's input to Python's, and the program then had no value of the kind."""

    def program(t, k):
        return round(t), int(k), t, k

    same(program, np.float64(2.7), np.int64(4))


def test_an_exception_for_its_own_sake():
    """The results were unused, so the checks in the loop were removed with them."""

    def divides(x, t):
        for _ in range(12):
            if x[1]:
                t / 0.0

    def asserts(x):
        for i in range(12):
            assert x[i] > 0

    def takes_a_rest(x):
        c = int(np.argmax(x))
        c %= 0

    same(divides, ROWS[0], 2.5)
    same(asserts, ROWS[0])
    same(takes_a_rest, ROWS[0])


def test_a_number_that_python_made_in_a_branch():
    """The number became an input of the graph before the branch was abandoned, and the call had one value less."""

    def program(A, t):
        s = 0.0
        for _ in range(A.shape[0]):
            if np.sqrt(s) > t:
                pass
        return s

    check = same(program, np.zeros((0, 0)), np.float64(-1.0))
    same(program, np.ones((6, 5)), np.float64(1.0), compiled=check)


def test_a_scalar_that_outlives_a_break():
    """Replay passes it as a 0-d array, and a branch made an array of it for good."""

    def keeps(x):
        t = x[0]
        print(end="")
        best = t * 2
        if x[1] < 3.0:
            best = t
        return best

    def searches(x):
        best = x[0]
        for t in x:
            print(end="")
            if t < 3.0:
                best = (t, 1)
        return best

    x = np.array([4.0, 1.0, 7.0, 2.0, 9.0])
    for program in keeps, searches:
        same(program, x)
        same(program, x[::-1].copy())


def test_an_int_that_might_be_a_numpy_float():
    """After a break it was a float."""

    def branch(x):
        best = 0
        if x[0] > 5.0:
            best = x[0]
        print(end="")
        return best, best * 2 + 1, best - x[1], best / 2

    def loop(x):
        best = 0
        for i in range(x.shape[0]):
            if x[i] > 5.0:
                best = x[i]
        print(end="")
        return best, -best

    def both(x):
        best = 0
        if x[0] > 5.0:
            best = x[0]
        if x[1] > 5.0:
            best = 0.5
        print(end="")
        return best

    for x in np.zeros(12), np.full(12, 6.0), np.arange(12.0):
        for program in branch, loop, both:
            same(program, x)


def test_a_field_that_is_not_aligned():
    """The exception of the tracer reached the user."""

    def program(records):
        return records["p"] * 2, records["n"][records["n"] > 1]

    def whole(x):
        return x + 1

    records = np.zeros(5, [("c", "i1"), ("p", "f8", 3), ("n", "i4")])
    records["n"] = np.arange(5)
    same(program, records)
    same(whole, records["p"])
    same(whole, np.zeros(5, [("a", "f8"), ("b", "i4")])["a"])


def test_einsum_gives_a_view():
    """einsum of one operand without a sum; a write into the result was lost."""

    def turned(x):
        y = np.einsum("ij->ji", x)
        y[0, 1] = 7.0
        return y

    def diagonal(x):
        np.einsum("ii->i", x[:, :3])[:] = -1.0
        return np.einsum("ij", x)

    same(turned, ROWS)
    same(diagonal, ROWS)


def test_kernels_that_differ_in_names_only():
    """Equal kernels of an unrolled loop are compiled once; each call gets its own arrays."""

    def program(x, y):
        parts = []
        for i in range(6):
            x = x * 0.5 + y
            parts.append(np.sort(x))
            if i % 2 == 0:
                y = np.sort(y - x)
        return parts, x, y, np.cumsum(x), np.cumsum(y)

    rng = np.random.default_rng(0)
    check(program, rng.random(300), rng.random(300), backend="c")


@pytest.mark.parametrize("is_split", [True, False])
@pytest.mark.parametrize("is_slower", [True, False])
def test_pieces_that_are_slower_than_numpy(monkeypatch, is_slower, is_split, calls_take_a_microsecond):
    """A call that needed Python cost a tracing each time, ten times what NumPy takes, for ever."""

    class Filter:
        def __init__(self):
            self.state, self.steps = np.zeros(3), 0

    running = []  # a number while the dispatcher runs

    def program(f, x, log):
        time.sleep(4e-3 * (bool(running) == is_slower))
        for row in x:
            f.state = f.state * 0.5 + row
            f.steps += 1
        log.append(f.steps)
        return f.state * 2

    def slow_driver(plan, bound_driver=driver.SplitPlan.bound_driver):
        made = bound_driver(plan)

        def run(*args):
            running.append(0)
            try:
                return made(*args)
            finally:
                running.pop()

        return run

    monkeypatch.setattr(driver.SplitPlan, "bound_driver", functools.lru_cache(slow_driver))
    monkeypatch.setattr(Job, "hand_over", HAND_OVER)
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    if not is_split:
        monkeypatch.setattr("cinductor.capture.pieces.driver.plan_of", lambda job, compiled: None)
    x = np.random.default_rng(0).random((40, 3))
    compiled = cinductor.compile(program, backend="interp")
    job = compiled._cinductor_job
    for _ in range(100):  # pieces are timed by themselves first
        f, g, log, other = Filter(), Filter(), [], []
        assert np.array_equal(program(f, x, log), compiled(g, x, other))
        assert np.array_equal(f.state, g.state) and f.steps == g.steps == 40 and log == other
    captures, plain, misses = job.captures, compiled.plain_calls, job.misses
    compiled(Filter(), x, [])
    if is_split and not is_slower:
        assert compiled.plain_calls == plain and job.misses == misses and compiled.why_not_split_calls is None
    else:
        assert compiled.plain_calls == plain + 1 and job.captures == captures
        (why,) = job.reasons_for_numpy(compiled)
        assert ("NumPy was faster" if is_split else "another capture pays") in why
        report = cinductor.explain(compiled, Filter(), x, [])
        assert report.plain is None and report.later.partition(";")[0] == why.partition(";")[0]


def test_loops_that_unroll_into_thousands_of_operations():
    """The C compiler had minutes of work for what takes NumPy milliseconds."""

    def product(a, b):  # a list of lists of one length: an array
        n = a.shape[0]
        c = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                c[i][j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j]
        return np.array(c)

    def named(a, b):  # texts are keys: the loops are unrolled
        n, c = a.shape[0], {}
        for i in range(n):
            for j in range(n):
                c[f"{i},{j}"] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j]
        return np.array(list(c.values()))

    def nest(a):  # eight loops of two iterations, which were unrolled one after the other
        out = np.zeros(2)
        for i in range(2):
            for j in range(2):
                for k in range(2):
                    for m in range(2):
                        for n in range(2):
                            for p in range(2):
                                out[i] += a[j, k] * a[m, n] * a[p, i]
        return out

    def pairs(a):  # items by index: a loop
        least = np.inf
        for i, j in itertools.combinations(range(len(a)), 2):
            distance = np.sqrt(((a[i] - a[j]) ** 2).sum())
            if distance < least:
                least = distance
        return least

    a = np.random.default_rng(0).random((40, 40))
    check(pairs, a, backend="interp")
    compiled = cinductor.compile(pairs, backend="interp", fullgraph=True)
    assert compiled(a) == pairs(a) and not compiled._cinductor_job.reasons_for_numpy(compiled)
    check(product, a, a.T.copy(), backend="interp")
    compiled = cinductor.compile(product, backend="interp", fullgraph=True)
    assert np.array_equal(compiled(a, a), product(a, a))
    check(named, a, a.T.copy(), backend="interp")
    compiled = cinductor.compile(named, backend="interp")
    compiled(a, a)
    assert "has been unrolled into" in compiled._cinductor_job.reasons_for_numpy(compiled)[0]
    assert np.array_equal(cinductor.compile(nest, fullgraph=True, backend="interp")(a), nest(a))
    report = cinductor.explain(cinductor.compile(nest, backend="interp"), a)
    assert report.graph.count("\n") < 200


def test_calls_that_are_numpys_ask_python_no_more():
    """A call that NumPy runs costs as much overhead as ten operations on small arrays."""

    def program(x, n, name, many, table, *rest):
        print(end="")
        return x + n, name, len(many), list(table), rest

    x, y = np.ones(3), np.arange(4)
    compiled = cinductor.compile(program, backend="interp")
    job = compiled._cinductor_job

    def answered(*args):  # run by NumPy without inspecting the arguments
        before, misses = compiled.plain_calls, job.misses
        result, expected = compiled(*args), program(*args)
        assert str(result) == str(expected)
        assert (compiled.plain_calls > before) == (job.misses == misses)
        return compiled.plain_calls > before

    plain = x, 2, "a", [1, (x, None)], {"k": x, "j": 1.5}
    for _ in range(2):
        job.compiled = weakref.ref(compiled)
        job.leave_to_numpy((*plain, ()), "a test")
        assert answered(*plain) and answered(*plain)
        assert answered(x + 1, 2, "a", [1, (x * 2, None)], {"k": x, "j": 2.5})
        for others in (
            (y, 2, *plain[2:]),
            (np.ones((3, 1)), 2, *plain[2:]),
            (np.ones(3, np.float32), 2, *plain[2:]),
            (x, 3, *plain[2:]),
            (x, True, *plain[2:]),
            (x, 2, "b", *plain[3:]),
            (*plain[:3], [1, (x, None), 2], plain[4]),
            (*plain[:3], [1, (y, None)], plain[4]),
            (*plain[:3], (1, (x, None)), plain[4]),
            (*plain[:4], {"k": x, "i": 1.5}),
            (*plain[:4], {"k": x}),
            (*plain[:4], {"k": x, 3: 1.5}),
            (*plain, 5),
        ):
            assert not answered(*others), others
        row = cinductor.stats()["functions"][job.name]
        assert row["eager"] >= 3 and row["numpy"] == job.reasons_for_numpy(compiled) != []
        with cinductor.set_stance("fail_on_recompile"), pytest.raises(RuntimeError):
            compiled(*plain)
        compiled.clear()
        job.forget()
        assert not answered(*plain)


def test_array_of_two_sizes_that_is_written():
    """The write went to a copy with the branch's size, not to the argument."""

    def written(a, b, x):
        if (x > 7).all():
            b = a[::2]
        b[0] = 7.0

    def returned(a, b, x):
        part = a[:-1]
        if (x > 3).all():
            part = a * 2
        return part, b

    def shares(x):
        a = np.arange(9.0)
        part, _ = cinductor.compile(returned, backend="interp")(a, a + 1, x)
        return np.shares_memory(part, a)

    for x in (np.arange(9), np.arange(9) + 9):
        same(written, np.arange(9.0), np.arange(9.0) + 20, x)
        same(returned, np.arange(9.0), np.arange(9.0) + 20, x)
        assert shares(x) == bool(x[0] <= 3)


def test_ravel_of_strides():
    """Only a contiguous array is its own ravel; a reversed matrix was returned as a view."""

    def program(a):
        flat = a.ravel()
        a *= 2
        return flat, a

    matrix = np.arange(12.0).reshape(3, 4)
    for given in (matrix, matrix[::-1, ::-1], matrix.T, np.arange(6.0)[::2], np.arange(6.0)[::-1]):
        same(program, given)
        ours = cinductor.compile(lambda a: np.ravel(a), backend="interp")(given)
        assert np.shares_memory(ours, given) == np.shares_memory(np.ravel(given), given)


def counter(count):
    def more(x):
        nonlocal count
        count = count + x
        return count

    return more


def count_columns(a, k):
    more = counter(k)
    for _ in range(a.shape[1]):
        more(7)
    return more(0)


def count_positive(a, k):
    more = counter(k)
    for i in range(a.shape[0]):
        if a[i, 0] > 1:
            more(5)
    return more(0)


def count_in_condition(a, k):
    more, i = counter(0.0), 0
    while i < a.shape[0] and more(a[i, 0]) < 4:
        i += 1
    return i, more(0)


def list_in_condition(a, k):
    held, i = [0.0], 0

    def more(x):
        held[0] += x
        return held[0]

    while i < a.shape[0] and more(a[i, 0]) < 4:
        i += 1
    return i, held


def own_name(a, k):
    def step():
        nonlocal k
        k += 7

    for _ in range(a.shape[1]):
        step()
    return k


def loop_in_function(a, k):
    """Sums."""

    def total():
        """Of a column."""
        nonlocal k
        for i in range(a.shape[0]):
            k = k + a[i, 0]

    total()
    return k, total.__doc__


def best_of(a, k):
    best = None

    def see(x):
        nonlocal best
        if best is None or x > best:
            best = x

    for i in range(a.shape[0]):
        see(a[i, 1])
    return best


@pytest.mark.parametrize(
    "fn",
    [
        count_columns,
        count_positive,
        count_in_condition,
        list_in_condition,
        own_name,
        loop_in_function,
        best_of,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("dynamic", [None, True])
def test_names_of_functions_around(fn, dynamic):
    """A loop did not see names set by functions called in it, and left them changed when its capture was abandoned.
    """
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for n, m, k in ((4, 3, 0), (12, 3, 1), (9, 2, 2), (1, 2, 3), (12, 11, 4)):
        check(fn, np.random.default_rng(k).integers(-2, 4, (n, m)) * 1.0, k, compiled=compiled)


def test_imaginary_part_that_is_discarded():
    """NumPy's warning was not given."""

    def cast(z):
        return z.astype(np.float32)

    def made(z):
        return np.array(z, dtype=float), np.asarray(z, dtype=int)

    for fn in (cast, made):
        compiled = cinductor.compile(fn, backend="interp")
        for _ in range(3):
            with pytest.warns(np.exceptions.ComplexWarning):
                compiled(np.ones(3) * 1j)


def test_putmask_of_another_shape():
    def program(a, mask):
        np.putmask(a, mask, a * 2)

    same(program, np.ones(5), True)
    same(program, np.ones(5), np.ones((5, 1), bool))
    same(program, np.ones(5), np.arange(5) > 2)


def test_range_of_an_int_after_an_effect():
    """The check came after a write that could not be undone."""

    def program(a, b, u, k):
        np.square(b, out=b)
        if (u > k).all():
            u = u @ u + u
        return u

    fn = cinductor.compile(program, backend="interp", dynamic=True)
    for k in (2, -1, 300):
        for u in (np.arange(7, dtype=np.uint16), np.arange(7, dtype=np.int8)):
            whole, other = np.arange(9.0), np.arange(9.0)
            ours, theirs = fn(whole[:-2], whole[2:], u, k), program(other[:-2], other[2:], u, k)
            np.testing.assert_array_equal(whole, other)
            np.testing.assert_array_equal(ours, theirs)


def store(u, k):
    u[0] = k


def fill(u, k):
    u.fill(k)


def store_masked(u, k):
    u[u > 2] = k


def store_in_loop(u, k):
    for i in range(u.shape[0]):
        u[i] = k
        k = k * 7


def store_of_data(u, k):
    u[1] = int(u.sum()) * 40 + k


def like(u, k):
    return np.full_like(u, k), np.full(3, k, u.dtype), np.full_like(u, 300 if k > 9 else 3)


def listed(u, k):
    return np.array([k, k + 1], dtype=u.dtype)


def inserted(u, k):
    return np.insert(u, 0, k)


def class_of_numbers(u, k):
    return np.uint8(k)


def compared_after_an_effect(u, k):
    u[0] = u[0]
    return u > k, u <= k, u == k


@pytest.mark.parametrize(
    "fn",
    [store, fill, store_masked, store_in_loop, store_of_data, like, listed, inserted, class_of_numbers, compared_after_an_effect],
    ids=lambda f: f.__name__,
)
def test_python_ints_in_narrow_dtypes(fn):
    """An int out of range was truncated to the width of the dtype."""
    for dynamic in (True, None, False):
        compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic, options={"recompile_limit": 99})
        for k in (2, 3, -1, 300, 2**40, 2**63):
            for dtype in (np.uint8, np.int8, np.uint64, np.int32):
                check(fn, np.arange(7).astype(dtype), k, compiled=compiled, calls=1)


def test_searchsorted_of_a_number():
    """A Python number was compared in the array's dtype."""

    def program(x, v):
        return np.searchsorted(x, v, side="right")

    same(program, np.array([0.1], np.float32), 0.1)
    same(program, np.arange(7, dtype=np.uint8), -1)
    same(program, np.arange(7, dtype=np.uint8), 2**40)


def test_choose_among_numbers():
    def program(u, k):
        return np.choose(u % 2, [u, k])

    same(program, np.arange(7, dtype=np.uint8), 3)


def test_value_of_one_element_by_chance():
    """A symbolic size that was 1 in a call was not broadcast."""

    def program(a, b, m):
        m[0, 1:] = b[:-1]
        a[1] = a[0]

    for dynamic in (None, True):
        compiled = cinductor.compile(program, backend="interp", dynamic=dynamic)
        for n, m in ((5, 5), (2, 1), (7, 7), (2, 9), (3, 2)):
            check(program, np.arange(n) + 1.0, np.arange(n) + 5.0, np.ones((n, m)), compiled=compiled)


LAYOUTS = [
    lambda m: m.T.reshape(-1),
    lambda m: m.T.ravel(),
    lambda m: m[:, :2].reshape(-1),
    lambda m: m[:, :1].ravel(),
    lambda m: np.ravel(m.T, order="K"),
    lambda m: np.ascontiguousarray(m.T),
    lambda m: np.asfortranarray(m),
    lambda m: m[::2].reshape(-1),
    lambda m: m[:, ::-1].reshape(-1),
    lambda m: m.T.copy(order="K"),
    lambda m: np.zeros_like(m.T),
    lambda m: m.T.reshape(-1, 1),
    lambda m: m.ravel("F"),
]


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
@pytest.mark.parametrize("dynamic", [None, True])
def test_views_of_few_elements(number, dynamic):
    """For axes of one element NumPy returns views where a program for other sizes copies."""
    fn = LAYOUTS[number]
    shapes = [(5, 8), (6, 8), (5, 3), (1, 3), (3, 1), (1, 1), (2, 1), (1, 2), (0, 3), (3, 0), (7, 3)]
    for order in (shapes, shapes[::-1]):
        compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic, options={"recompile_limit": 99})
        for shape in order:
            if 0 in shape and number == 11:
                continue  # NumPy raises
            for kind in "CF":
                given = np.ones(shape, order=kind)
                ours, theirs = compiled(given), fn(given)
                assert np.shares_memory(ours, given) == np.shares_memory(theirs, given), (shape, kind)
                steps = [[s for s, n in zip(x.strides, x.shape) if n > 1 and x.size] for x in (ours, theirs)]
                assert steps[0] == steps[1], (shape, kind)


def test_dtypes_are_no_symbols():
    """Two pieces that differ in uint16 and int16 had the same key, so the first program ran for both."""

    def fn(x, y):
        return x + y, -x

    for name in ("u1", "i2", "u2", "u4", "i4", "u8"):
        x, y = np.arange(6, dtype=name), np.arange(6, 12, dtype=name)
        got = cinductor.compile(fn, backend="interp")(x, y)
        for a, b in zip(got, fn(x, y)):
            assert a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("sign", [1, -1])
def test_result_of_a_function_inside(sign):
    """Two results of different type were returned as an internal recipe."""

    def program(x, y):
        def one(v):
            if v.any():
                return v
            return None

        def other(v, w):
            return w if (v > 0).any() else w[1:]

        return len(one(x)), len(other(x, y)), [len(v) for v in map(one, [x, y])]

    same(program, sign * np.ones(3), np.arange(5.0))
    same(program, np.zeros(3), np.arange(5.0))


def test_returns_from_finally():
    """When the capture restarted, it ran a `finally` that returns, with its effects."""

    def moved(n):
        if n > 3:
            pass

    def program(x):
        moved(len(x))
        try:
            x[True] -= 1
        finally:
            return len(x)  # noqa: B012

    def program_of_iterations(x):
        for i in range(len(x)):
            try:
                x[i] += 1
                str(x[i])
            finally:
                x[0] += 1
                if i < 9:
                    continue  # noqa: B012
        return x

    for fn in (program, program_of_iterations):
        same(fn, np.arange(5.0), dynamic=True)
        same(fn, np.arange(12.0))


def test_name_that_pieces_alone_bind():
    """The name was not a local of the code between the pieces."""

    def program(x):
        if (x > 0).any():
            found = x[1]
            total = max(x, default=1)
        else:
            total, *_ = found
        return total

    compiled = cinductor.compile(program, backend="interp")
    for _ in range(3):
        compiled(np.array([1, 2]))
        with pytest.raises(UnboundLocalError):
            compiled(np.array([-1, -2]))


@pytest.mark.parametrize("start", [0, 1, 2, 5, -1, -7])
def test_view_from_a_place_of_data(start):
    """A size that is a difference was taken to be negative because only its sample was used."""

    def program(x, i):
        return x[i:], x.reshape(-1)[i:]

    for n in (0, 1, 2, 4, 6):
        same(program, np.arange(float(n)), np.int64(start), dynamic=True)
        same(program, np.arange(float(n)), np.int64(start))


def test_method_that_is_misused():
    def index(x):
        return x.reshape[0]

    def length(x):
        return len(x.sum)

    for fn in (index, length):
        with pytest.raises(TypeError) as wanted:
            fn(ROWS)
        with pytest.raises(TypeError) as got:
            cinductor.compile(fn, backend="interp")(ROWS)
        assert str(got.value) == str(wanted.value)


def test_arrays_that_change_places_in_many_branches():
    """The possible arrays of a name must not double with each of the thirty branches."""

    def program(x, y, c):
        u, v = x, y
        for k in range(30):
            u, v = (u, v) if c[k] > 0 else (v, u)
        return u + 1, v * 2

    def program_of_views(x, y, c):
        u = x
        for k in range(8):
            u = u[::-1] if c[k] > 0 else y if c[k + 8] > 0 else u
        return u + 1

    rng = np.random.default_rng(0)
    for _ in range(3):
        c = rng.integers(-2, 3, 30)
        same(program, np.arange(4.0), -np.arange(4.0), c)
        same(program_of_views, np.arange(4.0), -np.arange(4.0), c)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (0, 3, 2)])
@pytest.mark.parametrize("dynamic", [None, True])
def test_order_of_an_empty_array(shape, dynamic):
    """Positions in it were computed with a remainder by zero."""

    def program(x, y):
        if y.max(initial=0) > 1:
            x = x + 1
        inner = x.T.ravel()
        return (inner > 0).any(), inner + 1, x.T.reshape(-1)[1:] * 2

    same(program, np.ones(shape), np.ones(2), dynamic=dynamic)


@pytest.mark.parametrize("length", [1, 3, 20])
@pytest.mark.parametrize("dynamic", [None, False, True])
def test_an_array_of_a_tuple_is_first_looked_at_by_an_iteration(length, dynamic):
    """The array was lifted after the loop's snapshot, and was returned as if an iteration had made it."""

    def last(rows, pair):
        for row in rows:
            row = pair[1]  # noqa: PLW2901
        return row

    def listed(rows, pair):
        kept = []
        for _ in rows:
            kept.append(pair[1])
        return kept

    def written(rows, pair):
        kept = pair[0]
        for row in rows:
            if row[0] > 0:
                kept = pair[1]
        kept[1:] += 1
        return kept

    rows, pair = np.ones((length, 3)), (np.zeros(3), np.ones(3))
    fast = [cinductor.compile(f, backend="interp", dynamic=dynamic) for f in (last, listed)]
    for _ in range(2):
        assert fast[0](rows, pair) is pair[1]
        made = fast[1](rows, pair)
        assert len(made) == length and all(item is pair[1] for item in made)
    fast = cinductor.compile(written, backend="interp", dynamic=dynamic)
    for _ in range(2):
        ours, theirs = ((np.zeros(3), np.ones(3)) for _ in range(2))
        assert fast(rows, ours) is ours[1] and written(rows, theirs) is theirs[1]
        np.testing.assert_equal(ours, theirs)


@pytest.mark.parametrize("length", [0, 1, 3])
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_truth_of_an_int_that_a_break_has_made_known(length, dynamic):
    """The int was taken for one only known at run time, and its comparand for a traced value."""

    def tests(x, q, t):
        j = int(q.sum())
        print(end="")
        if j:
            x = x + 1
        return x, j and t, t if j else 3, not j, [k for k in range(3) if t and j]

    def trips(x, q, t):
        j = int(q.sum())
        s = x[j:].max(initial=t)
        while t and j:
            j -= 1
        return s, j

    for fn in (tests, trips):
        for value in (0, 1):
            arguments = np.ones(length), np.full(length, value), np.float64(2)
            same(fn, *arguments, dynamic=dynamic)


def test_an_internal_name_has_what_only_a_closed_iteration_knows():
    """After many breaks the rest of the call ran in NumPy, and an internal name with a value of a finished iteration
    was materialised.
    """

    def program(x, q):
        s = 0.0
        for i in range(20):
            if q[0] < x[:i].shape[0] <= q[1]:
                s = s + x[i]
        for _ in range(20):
            with np.errstate(all="warn"):
                x = x + s
        return x, s

    same(program, np.arange(20.0), np.array([3, 8]))


def counting(start):
    count = start

    def more(x):
        nonlocal count
        count = count + x
        return count

    return more


def test_a_function_that_an_earlier_call_has_made_keeps_its_count():
    made = cinductor.compile(counting, backend="interp")
    used = cinductor.compile(lambda b, more: b + more(1), backend="interp")
    for start in (0, 5, 2**60):
        ours, theirs = made(start), counting(start)
        for _ in range(4):
            np.testing.assert_array_equal(used(np.zeros(3), ours), np.zeros(3) + theirs(1))
        assert ours(0) == theirs(0)


def test_an_element_that_is_added_to_in_a_view_of_one():
    def program(m):
        row = m[1]
        np.add.at(row, 0, 1)

    for shape in ((2, 1), (4, 1), (2, 3)):
        ours, theirs = np.full(shape, 2.5), np.full(shape, 2.5)
        cinductor.compile(program, backend="interp")(ours)
        program(theirs)
        np.testing.assert_array_equal(ours, theirs)


def test_attributes_in_slots_that_a_watched_loop_sets():
    """The loop read the `__dict__`, which an object with slots does not have."""

    class Particle:
        __slots__ = ("position", "velocity")

        def __init__(self, position, velocity):
            self.position, self.velocity = np.array(position), np.array(velocity)

    def program(x, v, steps):
        particles = [Particle(*pair) for pair in zip(x, v, strict=True)]
        for _ in range(steps):
            for p in particles:
                force = np.zeros_like(p.position)
                for q in particles:
                    if q is not p:
                        force += q.position - p.position
                p.velocity += 0.01 * force
            for p in particles:
                p.position += 0.1 * p.velocity
        return np.array([p.position for p in particles])

    same(program, ROWS, ROWS[::-1], 5)


@pytest.mark.parametrize("dynamic", [None, True])
def test_einsum_takes_a_diagonal_of_a_clamped_slice(dynamic):
    """An array that may not be contiguous was copied, so the diagonal was not a view."""

    def program(a):
        d = np.einsum("ii->i", a[:2, :2])
        d += 1
        return d

    for size in (2, 3, 2):
        same(program, np.arange(float(size * size)).reshape(size, size), dynamic=dynamic)


def test_what_a_call_builds_is_not_its_time(monkeypatch):
    """The time in which compiled functions that a call calls are captured decides nothing about the call."""
    monkeypatch.setattr(Job, "hand_over", HAND_OVER)
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    calls = []

    @cinductor.disable
    def between(x):
        calls.append(0)
        return cinductor.compile(lambda x: x * 2, backend="interp")(x) if len(calls) <= 6 else x * 2

    def outer(x):
        y = between(x * 3)
        return np.cumsum(y) + 1

    compiled = cinductor.compile(outer, backend="interp")
    with cinductor.register_pass("sleeps", lambda graph: time.sleep(0.1)):
        for _ in range(80):
            compiled(np.ones(5))
        reasons = compiled._cinductor_job.reasons_for_numpy(compiled)
    times = [float(t) for why in reasons for t in re.findall(r"([\d.]+) us compiled", why)]
    assert all(t < 5e4 for t in times), reasons


def test_a_check_that_fails_as_a_loop_begins():
    """Work before a loop ran when a list became columns, which overlapping arguments make a break. Its failed check
    counted as an exception of the body, and the call went on without the values.
    """

    def program(a, whole, u, rng):
        k = int(rng.integers(100))
        if a[0] <= u[0]:
            raise ValueError("no")
        found = np.array([x * 2 for x in a if x > 0] or [u[0]])
        return k, found

    compiled = cinductor.compile(program, backend="interp")
    for _ in range(2):
        states = []
        for fn in (program, compiled):
            whole, rng = np.full((16, 3), -0.5), np.random.default_rng(3)
            with pytest.raises(ValueError, match="no"):
                fn(whole[:, 0], whole, np.array([2, 2]), rng)
            states.append(rng.bit_generator.state)
        assert states[0] == states[1]
