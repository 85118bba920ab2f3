"""Tests lists whose length depends on data. In the call they are a buffer and a count; other code sees a Python list."""

import copy

import numpy as np
import pytest
from test_regions import check, nodes, outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
WHOLE, ANY = [], []
X = np.arange(12.0) * 7 % 11 - 3


def whole(fn):
    WHOLE.append(fn)
    return fn


def anyhow(fn):
    ANY.append(fn)
    return fn


@whole
def of_numpys_numbers(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out


@whole
def of_pythons_numbers(x):
    out, at, is_odd = [], [], []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(float(x[i]))
            at.append(i)
            is_odd.append(i % 2 == 1)
    return out, at, is_odd


@whole
def an_array_of_it(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[i] * 2)
    return np.array(out), len(out), np.asarray(out).sum()


@whole
def an_array_of_ints(x):
    at = []
    for i in range(len(x)):
        if x[i] > 0:
            at.append(i)
    return np.array(at)


@whole
def of_pairs(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append((i, x[i]))
    return out


@whole
def until_a_break(x):
    out = []
    for i in range(len(x)):
        if x[i] > 6:
            break
        out.append(x[i])
    return out


@whole
def its_last_item(x):
    out = [x[0]]
    for i in range(len(x)):
        if x[i] > out[-1]:
            out.append(out[-1] + x[i])
    return out[-1], out


@whole
def its_length(x):
    out = []
    for v in x:
        if v > len(out):
            out.append(v + len(out))
    return out


@whole
def an_item_is_changed(x):
    values, lengths = [], []
    for v in x:
        if values and values[-1] == v:
            lengths[-1] += 1
        else:
            values.append(v)
            lengths.append(1)
    return values, lengths


@whole
def a_loop_over_it(x):
    out, s = [], 0.0
    for v in x:
        if v > 0:
            out.append(v)
    for v in out:
        s = s * 0.5 + v
    for i, v in enumerate(out):
        s += i * v
    return s


@whole
def a_stack(x):
    stack, n = [], 0
    for v in x:
        while stack and stack[-1] > v:
            stack.pop()
            n += 1
        stack.append(v)
    return n, stack


@whole
def of_two_loops(x):
    out = []
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 5:
                out.append(i * j)
    return out


@whole
def made_in_each_iteration(x):
    best = 0
    for i in range(len(x)):
        seen = []
        for j in range(len(x)):
            if x[j] > x[i]:
                seen.append(j)
        best = max(best, len(seen))
    return best


@whole
def both_arms(x):
    low, high = [], []
    for v in x:
        if v > 2:
            high.append(v)
        elif v > -1:
            low.append(-v)
        else:
            high.append(v * 0.5)
            low.append(v)
    return low, high


@whole
def by_a_helper(x):
    out = []

    def note(v):
        if v > 0:
            out.append(v)

    for v in x:
        note(v)
    return out


class Log:
    def __init__(self):
        self.seen = []


@whole
def of_an_object(x):
    log = Log()
    for v in x:
        if v > 0:
            log.seen.append(v)
    return log.seen


@whole
def appended_after(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    out.append(x[0])
    out.append(x[1])
    return out


@whole
def in_a_while(x):
    path, v = [], x[3]
    while v > 0.01:
        path.append(v)
        v = v * 0.7
    return path, len(path)


@whole
def by_the_iteration_in_a_while(x):
    seen, k = [], 0
    while k < 40:
        x[k % 10] += k
        if k % 3 == 0:
            seen.append(x[k % 10])
        k += 1
    return seen, x


@anyhow
def more_than_there_is_capacity_for(x):
    found, v = [], x[3] + 100
    while v > 0.01:
        found.append(v)
        v = v * 0.999
    return found


@anyhow
def two_loops(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    for v in x:
        if v < 0:
            out.append(v)
    return out


@anyhow
def an_alias(x):
    out = []
    other = out
    for v in x:
        if v > 0:
            out.append(v)
        if len(other) > 3:
            x = x + 1
    return other, out is other, x


@anyhow
def returned_twice(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out, [out]


@anyhow
def of_two_types(x):
    out = [0]
    for v in x:
        if v > 0:
            out.append(v)
        else:
            out.append(1)
    return out


@anyhow
def of_arrays(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[:2] * i)
    return out


@anyhow
def of_lists(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append([i])
    return out


@anyhow
def in_an_arm(x):
    out = []
    if x[0] > 0:
        for v in x:
            if v > 0:
                out.append(v)
    return out, len(out)


@anyhow
def while_it_is_short(x):
    out, i = [], 0
    while len(out) < 3 and i < len(x):
        if x[i] > 0:
            out.append(x[i])
        i += 1
    return out


@anyhow
def a_pop_of_nothing(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
        else:
            out.pop()
    return out


@anyhow
def an_index_out_of_range(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out[3], out[-3]


@anyhow
def an_exception_after_appends(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[i])
            x[i] = 0
        if x[i] < -2:
            raise ValueError(len(out))
    return out


def seen_as_a_whole(how):
    def program(x):
        out = []
        for v in x:
            if v > 0:
                out.append(v)
        return how(out, x)

    program.__name__ = "seen_as_a_whole"
    return program


HOWS = [
    lambda out, x: sum(out),
    lambda out, x: max(out, default=0.0),
    lambda out, x: sorted(out),
    lambda out, x: out == [1.0],
    lambda out, x: 4.0 in out,
    lambda out, x: out + [1.0],
    lambda out, x: out[1:3],
    lambda out, x: [v * 2 for v in out],
    lambda out, x: list(enumerate(out)),
    lambda out, x: list(zip(out, x)),
    lambda out, x: list(reversed(out)),
    lambda out, x: np.mean(out) if out else 0.0,
    lambda out, x: list(out),
    lambda out, x: tuple(out),
    lambda out, x: out.copy(),
    lambda out, x: str(len(out)),
    lambda out, x: f"{len(out)}",
    lambda out, x: (out.extend([1.0]), out),
    lambda out, x: (out.clear(), out),
    lambda out, x: (out.sort(), out),
    lambda out, x: (out.insert(0, 1.0), out),
    lambda out, x: {"out": out, "n": len(out)},
    lambda out, x: (out, out),
    lambda out, x: [out],
    lambda out, x: out or None,
    lambda out, x: 1.0 if out else 2.0,
    lambda out, x: not out,
    lambda out, x: bool(out),
    lambda out, x: x[: len(out)],
    lambda out, x: np.zeros(len(out)),
    lambda out, x: np.stack(out) if len(out) > 1 else None,
    lambda out, x: np.concatenate([x, out]),
    lambda out, x: x.sum() + np.sum(out),
    lambda out, x: isinstance(out, list),
    lambda out, x: np.array([out, out]),
    lambda out, x: np.array(out, dtype=np.float32),
    lambda out, x: [*out, 5.0],
    lambda out, x: print(end="") or out,
]
DATA = [X, -np.abs(X) - 1, np.abs(X) + 1, X[:10], np.full(15, 2.0)]


def test_a_list_of_an_iteration_is_not_carried():
    """A list that each iteration makes has a count, which the loop around does not carry."""
    compiled = cinductor.compile(made_in_each_iteration, backend="interp")
    compiled(X)
    assert "one iteration at a time" not in cinductor.explain(compiled, X).full()


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", WHOLE, ids=lambda fn: fn.__name__)
def test_whole(fn, backend):
    for data in DATA[: 3 if backend == "c" else None]:
        check(fn, data, backend=backend)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", [*WHOLE, *ANY], ids=lambda fn: fn.__name__)
def test_right_however_it_is_run(fn, dynamic, pieces_are_compiled):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for data in (*DATA, *DATA):
        ours, theirs = data.copy(), data.copy()
        same(outcome(compiled, (ours,)), outcome(fn, (theirs,)))
        same(ours, theirs)


@pytest.mark.parametrize("number", range(len(HOWS)))
def test_calls_that_see_the_list_see_a_list(number, pieces_are_compiled):
    fn = seen_as_a_whole(HOWS[number])
    compiled = cinductor.compile(fn, backend="interp")
    for data in (*DATA, X):
        got, want = outcome(compiled, (data.copy(),)), outcome(fn, (data.copy(),))
        if isinstance(want, dict):
            assert list(got) == list(want)
            got, want = tuple(got.values()), tuple(want.values())
        same(got, want)


def test_a_list_returned_is_new_in_each_call():
    compiled = cinductor.compile(of_numpys_numbers, fullgraph=True)
    first, second = compiled(X), compiled(X)
    assert first == second and first is not second and type(first) is list
    first.append(None)
    assert compiled(X) == second


@pytest.mark.parametrize("fn", [of_numpys_numbers, of_pairs, an_item_is_changed, a_stack])
def test_as_large_for_many_items(fn):
    assert nodes(fn, np.arange(20.0)) == nodes(fn, np.arange(900.0) % 7)


def test_what_stays_unrolled_says_why():
    report = cinductor.explain(of_arrays, X.copy())
    assert any("data decide how a list grows" in line for line in report.regions)


def test_arguments_are_untouched():
    given = X.copy()
    expected = copy.deepcopy(given)
    cinductor.compile(of_pairs)(given)
    same(given, expected)


# --- operations that a buffer does not support: the list gets its items once, after a break -----------


def positive(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(i)
    return out


def reversed_by_slice(x):
    return positive(x)[::-1]


def rest_by_slice(x):
    return positive(x)[2:]


def reversed_list(x):
    return list(reversed(positive(x)))


def sorted_by_key(x):
    return sorted(positive(x), key=lambda i: -i)


def after_a_break(x):
    g = positive(x)
    print(end="")
    return g


def reversed_in_place(x):
    g = positive(x)
    g.reverse()
    return g


def joined(x):
    return ",".join(str(i) for i in positive(x))


def in_a_dict(x):
    return {"a": positive(x), "n": len(positive(x))}


def as_a_set(x):
    return set(positive(x))


def added_to(x):
    return positive(x) + [1]


def searched(x):
    return 3 in positive(x)


def index_of(x):
    return positive(x).index(4)


def as_text(x):
    return f"{positive(x)}"


def as_a_tuple(x):
    return tuple(positive(x))


def folded(x):
    return max(positive(x)), sum(positive(x)), min(positive(x))


def unpacked(x):
    a, b = positive(x)[:2]
    return a + b


def sorted_pairs(x):
    out = []

    for i in range(len(x)):
        if x[i] > 0:
            out.append((i, x[i]))
    out.sort()
    return out[0], out[-1]


def extended(x):
    out = positive(x)
    other = out
    out.extend([7, 8])
    return other


def as_indices(x):
    out = positive(x)
    print(len(out), end="")
    return x[out]


def comprehended(x):
    return [v * 2 for v in positive(x)], [i for i, v in enumerate(positive(x)) if v % 2]


LOOKS = [
    reversed_by_slice,
    rest_by_slice,
    reversed_list,
    sorted_by_key,
    after_a_break,
    reversed_in_place,
    joined,
    in_a_dict,
    as_a_set,
    added_to,
    searched,
    index_of,
    as_text,
    as_a_tuple,
    folded,
    unpacked,
    sorted_pairs,
    extended,
    as_indices,
    comprehended,
]


@pytest.mark.parametrize("look", LOOKS, ids=lambda f: f.__name__)
def test_a_list_is_looked_at(look):
    fn = cinductor.compile(look, backend="interp")
    x = np.random.default_rng(0).normal(size=20)
    x[[4, 9]] = 1, 2
    for shift in (0, -0.3, 0):
        assert repr(fn(x + shift)) == repr(look(x + shift))
    assert all("for captured" in how for how in map(str, fn._cinductor_job.last.regions) if ": for" in how)


def test_buffers_that_cannot_be_made(monkeypatch):
    """A loop is not captured if a run of its body cannot be rolled back."""

    def fails(*wanted):
        raise MemoryError

    def picked(x, s):
        out = [s]
        for v in x:
            if v > 0:
                out.append(v)
        return out, len(out)

    monkeypatch.setattr("cinductor.capture.control.list_buffer.make", fails)
    compiled = cinductor.compile(picked, backend="interp")
    for n in (12, 9, 12):
        x = X[:n].copy()
        same(compiled(x, x[0]), picked(x, x[0]))
    text = str(cinductor.explain(compiled, X, X[0]))
    assert "MemoryError" in text and "AttributeError" not in text


def looked_at_in_a_loop(x):
    out, total = of_numpys_numbers(x), 0.0
    for _ in range(20):
        out.reverse()
        total += 1
    out.append(x[0])
    return out, total


def looked_at_in_a_while(x):
    out, total = of_numpys_numbers(x), 0.0
    while total < 5:
        out.reverse()
        total += 1
    return out, len(out), out[0]


@pytest.mark.parametrize("f", [looked_at_in_a_loop, looked_at_in_a_while])
def test_a_list_that_was_looked_at_is_a_list(f):
    compiled = cinductor.compile(f, backend="interp")
    for n in (4, 5, 3, 5):
        x = X[:n].copy()
        same(outcome(compiled, (x,)), outcome(f, (x,)))


def of_two_types_after_a_break(x, log):
    out = []
    if x[0] > 0:
        out.append(x[0] > 1)
    log.append(1)
    out.append(x[1])
    return out


def of_two_types_at_a_place(x, log):
    out = of_numpys_numbers(x)
    log.append(1)
    if out:
        out[0] = "first"
    return out


@pytest.mark.parametrize("f", [of_two_types_after_a_break, of_two_types_at_a_place])
def test_a_list_that_gets_another_type_after_an_effect_is_a_list(f):
    compiled = cinductor.compile(f, backend="interp")
    for n in (4, 5, 3, 5):
        x, ours, theirs = X[-n:].copy(), [], []
        same(outcome(compiled, (x, ours)), outcome(f, (x, theirs)))
        assert ours == theirs
