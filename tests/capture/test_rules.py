"""Tests the rules of capture, with one or more short tests per rule. docs/capture.md maps rules to tests."""

import ast
import copy
import functools
import inspect
import re
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from test_regions import check, nodes, outcome, same

import cinductor
from cinductor.capture.syntax.cfg import Cfg
from cinductor.capture.syntax.rewrite import print_rewritten, rewrite

pytestmark = pytest.mark.filterwarnings("error:cinductor")
ROOT = Path(__file__).resolve().parents[2]
X = np.arange(12.0) * 7 % 11 - 3


def graph(fn, *args, **options):
    """The text of the graph."""
    return cinductor.explain(fn, *copy.deepcopy(args), **options).graph


def alike(fn, *args, calls=2, **options):
    """The function does what NumPy does on every backend; returns the compiled function."""
    compiled = cinductor.compile(fn, backend="interp", **options)
    for _ in range(calls):
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        same(outcome(compiled, ours), outcome(fn, theirs))
        same(ours, theirs)
    return compiled


# --- the rewritten source -----------------------------------------------------------------------------


def test_bodies_stay_in_the_users_frame():
    def f(x):
        for i in range(len(x)):
            if x[i] > 0:
                x[i] = 0
        return x

    text = print_rewritten(f)
    assert text.count("def ") == 2  # the function, and the outer function that makes it
    assert "for __ci_t" in text and "with __ci_" in text


def test_an_unbound_name_is_pythons_error():
    def f(x):
        for i in range(len(x)):
            if x[i] > 100:
                k = i
        return k

    alike(f, X)


def test_an_elif_chain_is_one_construct():
    def f(x):
        if x[0] > 3:
            x[0] = 1
        elif x[0] > 2:
            x[0] = 2
        elif x[0] > 1:
            x[0] = 3
        else:
            x[0] = 4
        return x

    assert [site.arms for site in rewrite(f).sites] == [3]
    check(f, X)


def test_flags_are_cleared_in_each_iteration():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            if x[i] > 4:
                continue
            s += x[i]
        return s

    (loop, _) = rewrite(f).sites
    assert not any(name.startswith("__ci_") for name in loop.carried)
    check(f, X)


def test_a_return_with_statements_after_it_needs_no_loop():
    def f(x):
        if x[0] > 0:
            return x + 1
        x[1] = 5
        return x * 2

    check(f, X)
    check(f, -X)


def test_jumps_in_try_with_and_match():
    def f(x, k):
        s = 0.0
        for i in range(len(x)):
            with np.errstate(all="ignore"):
                if x[i] > 6:
                    break
            try:
                if x[i] < 0:
                    continue
            finally:
                s += 1
            match k:
                case 1:
                    s += x[i]
                case _:
                    s -= x[i]
        return s

    alike(f, X, 1)
    alike(f, X, 2)


def test_handlers_of_exceptions_see_no_internal_ones():
    def f(x):
        caught = 0
        for i in range(len(x)):
            try:
                if x[i] > 2:
                    x[i] = -x[i]
                str(i)
                x[i] += 1
            except Exception:
                caught += 1
        return x, caught

    alike(f, X)


def contexts(error):
    """The classes of an exception and of those that were handled when it was raised."""
    found = []
    while error is not None:
        found.append(type(error).__name__)
        error = error.__context__
    return found


def without_source():
    """A function that capture cannot follow."""

    class Inner:
        pass

    raise ValueError(Inner.__name__)


INSIDE = [
    without_source,
    lambda: np.append([1.0], [2.0], axis=3),
    lambda: np.datetime64(X[0], "never"),
    lambda: X.searchsorted(1.0, "nowhere"),
    lambda: np.add.at(X, "q", 1),
    lambda: np.lib.stride_tricks.as_strided(X, (3,), "q"),
    lambda: np.apply_along_axis(without_source, 0, X),
]


@pytest.mark.parametrize("inside", INSIDE, ids=range(len(INSIDE)))
def test_exceptions_have_no_internal_context(inside):
    """Code that is not captured sees none either."""

    def handles(x):
        try:
            inside()
        except Exception as error:
            return contexts(error), x * 2

    def not_followed(x):
        class Inner:  # Python runs a function with a class
            pass

        try:
            raise ValueError(Inner)
        except ValueError as error:
            return contexts(error), x * 2

    for f in (handles, lambda x: inside(), lambda x: not_followed(x)):
        results = []
        for call in (f, cinductor.compile(f, backend="interp")):
            try:
                results.append(call(X.copy())[0])
            except Exception as error:
                results.append(contexts(error))
        assert results[0] == results[1]


OWN = {"NotCaptured", "NotRewritable", "Otherwise"}
NOTED = {"str", "name_of", "refuse"}


def test_internal_handlers_run_no_code_of_the_users():
    """An exception of the user's would get the handled one as its context."""
    package = Path(cinductor.__file__).parent / "capture"
    for path in [*package.glob("calls/*.py"), *package.glob("hooks/*.py"), *package.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and node.type and OWN & set(re.findall(r"\w+", ast.unparse(node.type))):
                called = {ast.unparse(n.func) for part in node.body for n in ast.walk(part) if isinstance(n, ast.Call)}
                assert called <= NOTED, f"{path}:{node.lineno}: {called}"


def test_a_warning_in_a_handler():
    def f(x):
        caught = 0
        for i in range(len(x)):
            if x[i] > 2:
                try:
                    warnings.warn("large", stacklevel=1)
                except Exception:
                    caught += 1
        return caught

    compiled = cinductor.compile(f, backend="interp")
    for _ in range(2):
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            got = compiled(X)
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            want = f(X)
        assert got == want
        assert [str(w.message) for w in ours if "cinductor" not in str(w.message)] == [
            str(w.message) for w in theirs
        ]


# --- carried state --------------------------------------------------------------------------------


def test_what_is_dead_at_a_loops_head_is_not_carried():
    def f(x):
        t = 0.5
        for i in range(len(x)):
            t = x[i] * 2
            x[i] = t + 1
        return x

    (loop,) = rewrite(f).sites
    assert "t" in loop.state and "t" not in loop.carried
    check(f, X)


def test_what_functions_inside_read_is_live():
    def f(x):
        t = 0.0

        def read():
            return t

        for i in range(len(x)):
            t = x[i]
            x[i] = read() + 1
        return x

    assert "t" in rewrite(f).sites[0].carried
    alike(f, X)


def test_ints_that_grow_by_a_constant_are_expressions():
    def f(x):
        k = 3
        for i in range(10):
            x[k] += i
            k += 2
        return x, k

    x = np.arange(40.0)
    check(f, x)
    text = graph(f, x)
    assert "check(" not in text and "define(" not in text and "add(%" in text
    assert text.count("python i64[]") == 2  # the loop's own counter, and i


def test_a_join_of_types_is_exact():
    def f(x):
        s = 1
        for i in range(len(x)):
            s = s / 2 + x[i]
        return s

    def wide(x):
        s = 2**53 + 1
        for i in range(len(x)):
            s = x[i] + s
        return s

    for fn in (f, wide):
        alike(fn, X)
        alike(fn, X[:0])


def test_a_number_of_either_class():
    def f(x, c):
        y = x[0] if x[1] > c else 0.0
        z = y + np.float32(1)
        return y, z

    def whole(x, c):
        y = x[0] if x[1] > c else 0.0
        return y

    x = X.astype(np.float32)
    for fn in (f, whole):
        alike(fn, X, -99.0)
        alike(fn, X, 99.0)
        alike(fn, x, -99.0)
        alike(fn, x, 99.0)


def test_a_name_that_one_path_binds():
    def f(x):
        if x[0] > 0:
            y = x * 2
        if x[1] > 0:
            return y
        return x

    for signs in ((1, 1), (1, -1), (-1, -1), (-1, 1)):
        alike(f, np.array(signs) * 1.0)


def test_no_iterations():
    def f(x, n):
        y = 5
        for i in range(n):
            y = x[i]
        return y

    def unbound(x, n):
        for i in range(n):
            y = x[i]
        return y

    for n in (0, 12):
        alike(f, X, n)
        alike(unbound, X, n)
        alike(f, X, n, dynamic=True)
    both = cinductor.compile(f, backend="interp", dynamic=True)
    assert [type(both(X, n)) for n in (12, 0, 9, 0)] == [np.float64, int, np.float64, int]


def test_a_body_without_array_work_is_pythons():
    def f(x):
        n = 0
        for k in range(20):
            n += k % 3
        return np.zeros(n) + x[0]

    def counts(x):
        n = 0
        for _ in range(20):
            n += 2
        return np.zeros(n) + x[0]

    check(f, X)
    check(counts, X)
    assert " = for" not in graph(counts, X)


def test_a_while_is_watched_and_undone():
    def f(x):
        log, k = [], 0
        while k < 40:
            x[k % 12] += k
            log.append(k)
            k += 1
        return x, len(log)

    alike(f, X)


def test_what_an_attempt_changed_is_put_back():
    class Box:
        def __init__(self):
            self.count = 0
            self.seen = {}

    def f(x):
        box, items = Box(), [0.0, 0.0]
        for i in range(len(x)):
            box.count += 1
            box.seen["last"] = x[i]
            items[0] += x[i]
            if x[i] > 3:
                items[1] = x[i]
        return box.count, box.seen["last"], items

    check(f, X)


# --- arrays, aliasing, effects --------------------------------------------------------------------


def test_views_are_read_again():
    def f(A, v):
        row, rest = A[1], v[1:]
        A[1] += 5
        s = row.sum()
        for i in range(len(v)):
            v[i] += 1
            A[i], A[0] = A[0], A[i]
        return s, rest.sum(), row

    check(f, np.arange(144.0).reshape(12, 12), X)


def test_a_view_stored_back_is_no_store():
    def f(A):
        for i in range(len(A)):
            A[i] += 1
        return A

    assert graph(f, np.ones((12, 3))).count("assign") == 1
    check(f, np.ones((12, 3)))


def test_elements_are_values():
    def f(x):
        first = x[0]
        x[0] += 1
        for i in range(1, len(x)):
            old = x[i]
            x[i] = x[i - 1]
            first += old
        return first

    check(f, X)


def test_a_view_that_is_referenced_and_shifted():
    def f(A):
        before, s = A[0], 0.0
        for i in range(1, len(A)):
            before += 1
            s += before.sum()
            before = A[i]
        return s

    alike(f, np.arange(60.0).reshape(12, 5))


@pytest.mark.parametrize("n", [12, 7, 20])
def test_effects_before_an_exception(n):
    def f(x, n):
        for i in range(n):
            x[i] = i
            if i > 2:
                x[i] /= 2
        return x

    alike(f, X, n)
    alike(f, X, n, dynamic=True)


def test_arguments_that_overlap():
    def f(a, b):
        for i in range(len(a)):
            a[i] = b[i] + 1
        return b

    compiled = cinductor.compile(f, backend="interp")
    for shift in (5, 1, 0, 1):
        ours, theirs = np.arange(20.0), np.arange(20.0)
        same(
            compiled(ours[shift : shift + 10], ours[:10]), f(theirs[shift : shift + 10], theirs[:10])
        )
        same(ours, theirs)


@pytest.mark.parametrize("order", ["C", "F"])
def test_view_or_copy_depends_on_the_layout(order):
    def f(A):
        for i in range(len(A)):
            A[i] += i
        flat = A.ravel()
        flat[0] = 99
        return A, flat, A * 2, np.zeros_like(A)

    given = np.asarray(np.arange(60.0).reshape(12, 5), order=order)
    compiled = cinductor.compile(f, backend="interp")
    for _ in range(2):
        ours, theirs = given.copy("K"), given.copy("K")
        got, want = compiled(ours), f(theirs)
        same(got, want)
        assert np.shares_memory(got[0], got[1]) == np.shares_memory(want[0], want[1])


# A view that is a loop's last value is returned as a view.


def last_row(A, n):
    for i in range(n):
        row = A[i]
        row += 1
    return row


def last_row_of_a_name(A, n):
    row = A[0]
    for i in range(n):
        row = A[i]
        row += 1
    return row


def last_slice(A, n):
    for i in range(1, n):
        part = A[i, :i:2]
        A[0] += 1
    part[:] = -5
    return part


def last_of_two(A, n):
    for i in range(n):
        for j in range(3):
            part = A[i, j:]
            part *= 2
    return part, i, j


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("n", [12, 0, 1, 5])
@pytest.mark.parametrize("fn", [last_row, last_row_of_a_name, last_slice, last_of_two])
def test_a_loops_last_view_stays_a_view(fn, n, dynamic):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for _ in range(2):
        ours, theirs = (np.arange(60.0).reshape(12, 5) for _ in range(2))
        got, want = outcome(compiled, (ours, n)), outcome(fn, (theirs, n))
        same(got, want)
        same(ours, theirs)
        if not isinstance(want, tuple):
            assert np.shares_memory(got, ours) == np.shares_memory(want, theirs)
            got[...], want[...] = 77, 77  # written through
            same(ours, theirs)


@pytest.mark.parametrize("fn", [last_row, last_row_of_a_name, last_slice])
def test_a_loop_with_a_last_view_is_captured(fn):
    assert "for" in graph(fn, np.arange(60.0).reshape(12, 5), 12)
    assert nodes(fn, np.ones((40, 5)), 20) == nodes(fn, np.ones((40, 5)), 39)


# --- values ---------------------------------------------------------------------------------------


def test_what_loops_prove_is_not_checked():
    def f(A):
        n = len(A)
        for k in range(n):
            for i in range(k + 1, n):
                A[i, k] /= A[k, k]
                for j in range(k + 1, n):
                    A[i, j] -= A[i, k] * A[k, j]
            if k > 0:
                A[k - 1, 0] += A[k // 2, min(k, n - 1)]
        return A

    A = np.random.default_rng(0).random((12, 12)) + np.eye(12)
    text = graph(f, A)
    assert "check(" not in text and "define(" not in text
    check(f, A)


def test_indices_of_unknown_sign_and_slices_of_unknown_bounds():
    def f(x, q):
        s = 0.0
        for i in range(len(q)):
            s += x[q[i]]
            s += x[q[i] : q[i] + 3].sum() + x[: q[i]].sum()
        return s

    for q in (np.arange(12) - 6, np.arange(12), np.array([0, -12, 11] * 4), np.array([12] * 12)):
        alike(f, X, q)


def test_slices_that_are_written_alike_are_as_long():
    def f(x, k):
        for _ in range(10):
            x[k : k + 5] = x[k : k + 5] * 0.5 + x[k - 1 : k + 4]
        return x

    for k in (1, 4, 9, 11):
        alike(f, X, k)
        alike(f, X, k, dynamic=True)


MEETING = {
    "where": lambda a, b: np.where(a > b, a, b),
    "where of one": lambda a, b: np.where(a > 2, 0, b),
    "clip": lambda a, b: np.clip(a, b, b + 2),
    "isclose": lambda a, b: np.isclose(a, b) * 1,
    "copysign": lambda a, b: np.copysign(a, b).astype(int),
    "select": lambda a, b: np.select([a > b, b > 3], [a, b], 7),
    "hypot": lambda a, b: np.hypot(a, b).astype(int),
}


@pytest.mark.parametrize("name", MEETING)
def test_slices_with_bounds_of_data_meet(name):
    """If data make them equally long they are combined; otherwise NumPy's exception is raised."""

    def f(w, v):
        best = np.zeros(21, v.dtype)
        for i in range(len(w)):
            other = best[: 21 - w[i]] + v[i]
            best[w[i] :] = MEETING[name](other, best[w[i] :])
        return best

    def differs(w, v):
        s = 0
        for i in range(len(w)):
            s += MEETING[name](v[: w[i]], v[w[i] - 1 :]).sum()
        return s

    rng = np.random.default_rng(0)
    w, v = rng.integers(1, 9, 12), rng.integers(-9, 9, 12)
    cinductor.compile(f, backend="interp", fullgraph=True)(w, v)
    for last in (3, 0, 21, 20, 22, -1):
        w[-1] = last
        alike(f, w, v)
    for w in (np.full(10, 6), np.full(10, 7), np.full(10, 1)):
        alike(differs, w, np.arange(11))


def test_a_mask_and_the_same_mask_again_are_as_long():
    def f(x, y):
        a = x[x > 1]
        b = y[x > 1]
        return a + b, (x > 1).sum()

    def shrinks(x, y):
        for _ in range(9):
            stay = x < x.max()
            x, y = x[stay], y[x < x.max()]
            x = x + y
        return x

    check(f, X, X + 2)
    alike(shrinks, np.arange(30.0), np.arange(30.0) % 7)


def test_pythons_floats_and_numpys():
    def f(a, b):
        return a / b

    def root(a, b):
        return a**b

    for fn in (f, root):
        compiled = cinductor.compile(fn, backend="interp")
        for args in ((-8.0, 0.5), (np.float64(-8.0), 0.5), (1.0, 0.0), (np.float64(1.0), 0.0), (2, -1)):
            with np.errstate(all="ignore"):
                same(outcome(compiled, args), outcome(fn, args))

    def in_a_loop(x, d):
        s = 1.0
        for _i in range(len(x)):
            s = s / d
            d = d - 0.25
        return s

    alike(in_a_loop, X, 2.0)
    alike(in_a_loop, X, 99.0)


def test_int_to_a_traced_int():
    def f(x, q):
        s = 0
        for i in range(len(q)):
            s = s + 2 ** int(q[i])
        return s

    alike(f, X, np.arange(12))
    alike(f, X, np.arange(12) - 3)


def test_what_is_called_is_known_by_identity():
    zeros, longest, rng, most = np.zeros, len, range, max

    def f(x):
        out = zeros(longest(x))
        for i in rng(longest(x)):
            out[i] = most(x[i], 2.0)
        return out

    def shadowed(x):
        def max(a, b):
            return a - b

        s = 0.0
        for i in range(len(x)):
            s += max(x[i], 1.0)
        return s

    check(f, X)
    check(shadowed, X)


def test_callables_of_many_kinds():
    def scaled(a, b, by=1.0):
        return (a + b) * by

    half = functools.partial(scaled, by=0.5)

    def f(x):
        s = functools.reduce(scaled, [x[0], x[1], x[2]])
        for i in range(len(x)):
            s = half(s, x[i])
        kind = isinstance(x, np.ndarray)
        with np.errstate(divide="ignore"):
            y = 1 / (x - x[0])
        return np.add.outer(x, x).sum() + s, kind, y[1:]

    check(f, X)


W = np.arange(12.0)


def test_arrays_that_are_globals_are_read_in_each_call():
    def f(x):
        s = W[0] * 2
        for i in range(len(x)):
            s += x[i] * W[i]
        return s

    compiled = cinductor.compile(f, backend="interp", fullgraph=True)
    for _ in range(3):
        W[...] += 1
        assert compiled(X) == f(X)


def test_operands_are_evaluated_lazily():
    def sort(x):
        for i in range(1, len(x)):
            key, j = x[i], i - 1
            while j >= 0 and x[j] > key:
                x[j + 1] = x[j]
                j -= 1
            x[j + 1] = key
        return x

    def chosen(x):
        n = len(x)
        s = 0.0
        for i in range(n):
            s += x[i + 1] if i + 1 < n else -x[0]
            s += 1.0 if i == n - 1 or x[i + 1] > 0 else 2.0
        return s

    check(sort, X)
    check(chosen, X)


def test_pythons_max_is_not_numpys():
    def f(x):
        most, least = x[0], x[0]
        for i in range(1, len(x)):
            most, least = max(most, x[i]), min(x[i], least)
        return most, least

    for x in (np.array([1, np.nan, 2, 0.0] * 3), np.array([np.nan] + [1.0] * 11), np.array([0.0, -0.0] * 6), np.array([-0.0, 0.0] * 6)):
        got, want = cinductor.compile(f, backend="interp", fullgraph=True)(x), f(x)
        assert repr(got) == repr(want)


def test_arms_of_numbers_are_selected():
    def f(x):
        s = x[0]
        for v in x:
            if v > s:
                s = s + v
            elif v < 0:
                s = s - v
        return s

    assert " = if " not in graph(f, X) and "where(" in graph(f, X)
    check(f, X)


def test_a_raise_under_a_condition():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            if x[i] > 50:
                raise ValueError(f"{x[i]} is too large at {i}")
            s += x[i]
            x[i] = s
        return s

    check(f, X)
    check(f, X * 8)
    assert "check" in graph(f, X)


def test_what_runs_alongside_an_arm_that_raises_happens_once():
    """That branch runs without a region, where nothing is rolled back after an effect."""

    def reshaped(x, seen):
        y = x * 2
        if x[0] > 5:
            raise ValueError("big")
        else:
            seen.append(len(seen))
            y.shape = (2, -1)
        return y

    def gathered(x, seen):
        z = [0.5]
        if x[0] > 5:
            raise ValueError("big")
        else:
            seen.append(len(seen))
            for i in range(len(x)):
                if x[i] > 1:
                    z.append(x[i])
        return np.array(z)

    def another_test(x, seen):
        y = x + 1
        if x[0] > 5:
            raise ValueError("big")
        elif seen.append(len(seen)) or x[1] > 0.5:
            y = y * 2
        elif x[2] > 100:
            raise KeyError("odd")
        else:
            seen.append(-1)
            y.shape = (-1, 2)
        return y

    def in_a_loop(x, seen):
        for k in range(4):
            if x[k] > 5:
                raise ValueError("big")
            else:
                seen.append(k)
                y = x * 2
                y.shape = (2, -1)
        return y

    def outcome(fn, x):
        seen = []
        try:
            result = fn(x, seen)
        except (ValueError, KeyError) as error:
            result = error
        return repr(result), seen

    for f in (reshaped, gathered, another_test, in_a_loop):
        compiled = cinductor.compile(f, backend="interp")
        for x in (X[:4], X[:4] * 0.1, np.array([9.0, 1, 2, 3]), np.array([0.0, 0, 200, 1]), X[:4]):
            assert outcome(compiled, x.copy()) == outcome(f, x.copy())


@pytest.mark.parametrize("first", [9, 14])
def test_ints_and_extents_that_are_one(first):
    def f(A, x, n):
        out = np.zeros(n)
        for i in range(n):
            for j in range(n - 1):
                out[i] += A[i, j] * x[j]
        return out + x

    compiled = cinductor.compile(f, backend="interp", fullgraph=True, dynamic=True)
    for n in (first, 12, 20, 11):
        A, x = np.arange(n * n * 1.0).reshape(n, n), np.arange(n * 1.0)
        same(compiled(A, x, n), f(A, x, n))
    assert compiled._cinductor_job.last is not None


# --- the table of docs/capture.md -----------------------------------------------------------------------


def test_the_table_names_what_there_is():
    """Each rule of docs/capture.md names files and tests that exist."""
    text = (ROOT / "docs/capture.md").read_text()
    rows = re.findall(r"^(\d+)\. (.+?)\n    Where: (.+?)\n    Tests: (.+?)(?=\n\d+\. |\n\n)", text, re.M | re.S)
    assert len(rows) == len(re.findall(r"^\d+\. ", text, re.M))
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    for number, _, files, tests in rows:
        for name in re.findall(r"`([\w./]+)`", files):
            folders = ("python/cinductor/capture", "python/cinductor", "pyext", "csrc", ".")
            assert any((ROOT / folder / name).exists() for folder in folders), (number, name)
        names = re.findall(r"`(\w+)`", tests)
        assert names, number
        for name in names:
            places = (ROOT / "tests").glob("*/test_*.py")
            assert any(re.search(rf"^def {name}\(", p.read_text(), re.M) for p in places), (number, name)


def test_the_graph_of_a_function_knows_what_is_bound_and_live():
    """A `finally` is in the graph twice. A manager may swallow an exception of its body, or of a later manager."""

    def f(x, a, b):
        for v in (y := [x, x + 1]):
            x = x + v
        with a as p, b as q:
            z = x, p, q
        try:
            w = z
        finally:
            b(x)
        return w, y

    (loop, inner, tried, last) = (tree := ast.parse(textwrap.dedent(inspect.getsource(f))).body[0]).body
    cfg = Cfg(tree.body, "xab")
    assert cfg.sure(inner) == {"x", "a", "b", "y"}  # but not v
    assert cfg.sure(tried) == {"x", "a", "b", "y", "p"}
    assert cfg.sure(last) == {"x", "a", "b", "y", "p", "w"}
    assert cfg.errors(tried.body[0]) == {"b", "x"} and cfg.after(tried.body[0]) == {"b", "x", "w", "y"}
    assert cfg.flow(loop).binds == {"v", "x"} and "y" not in cfg.before(loop)


def test_what_an_inner_loop_binds_in_its_head_is_bound_by_the_outer():
    def f(x):
        s = y = 0.0
        for i in range(len(x)):
            for v in (y := x[i : i + 2]):
                s += v
        return s, y

    compiled = cinductor.compile(f, backend="interp", fullgraph=True)
    for n in (20, 25):
        got, want = compiled(np.arange(float(n))), f(np.arange(float(n)))
        assert got[0] == want[0] and np.array_equal(got[1], want[1])
    (site, _) = rewrite(f).sites
    assert "y" in site.state
