"""Tests lists to which loops append: the loop is one region, and the appended items are in a buffer."""

import copy
import functools
import importlib.util
import random
import textwrap

import cases
import numpy as np
import pytest
from test_regions import check, nodes, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
CASES = []
X = np.arange(20.0) - 4
case = cases.entering(CASES)


@case(X)
def numbers_of_numpys(x):
    losses = []
    for _ in range(30):
        x = x * 0.9
        losses.append(np.abs(x).max())
    return x, np.array(losses)


@case(X)
def a_list_is_returned(x):
    losses = []
    for _ in range(30):
        x = x * 0.9
        losses.append(np.abs(x).max())
    return losses


@case(X)
def numbers_of_pythons(x):
    losses = []
    for i in range(30):
        x = x * 0.9
        losses.append(float(x[3]))
        losses.append(i * 2)
    return losses


@case(X)
def every_tenth(x):
    losses = []
    for i in range(100):
        x = x * 0.9
        if i % 10 == 0:
            losses.append(np.abs(x).max())
    return x, losses


@case(X)
def every_tenth_and_the_last(x):
    losses, at = [], []
    for i in range(37):
        x = x * 0.9
        if i % 10 == 0 or i == 36:
            losses.append(float(np.abs(x).max()))
            at.append(i)
    return losses, at


@case(X)
def both_arms(x):
    small = []
    large = ["start"]
    for i in range(21):
        x = x * 0.9
        if i < 5:
            small.append(x[0])
        elif i % 2:
            large.append(x[1])
        else:
            small.append(x[2])
    return small, large


@case(X)
def copies_of_an_array(x):
    path = [x.copy()]
    for _ in range(20):
        x = x * 0.9 + 1
        path.append(x.copy())
    return np.array(path)


@case(X)
def arrays_that_are_carried(x):
    path = []
    for _ in range(20):
        x = x * 0.9 + 1
        path.append(x)
    return path


@case(X)
def the_last_is_the_name(x):
    path = []
    for _ in range(20):
        x = x * 0.9 + 1
        path.append(x)
    return path, x


@case(X)
def the_last_is_written_to(x):
    path = []
    for _ in range(20):
        x = x * 0.9 + 1
        path.append(x)
    x[0] = 100
    return path[-1], path[-2]


@case(X)
def appended_before_it_changes(x):
    path = []
    for _ in range(20):
        path.append(x)
        x = x * 0.9 + 1
    return np.stack(path), x


@case(X)
def snapshots(x):
    path = []
    for i in range(40):
        x = x * 0.9 + 1
        if i % 8 == 7:
            path.append(x)
    return path, x


@case(X)
def snapshots_of_one_array(x):
    path = []
    x = x * 1.0
    for i in range(40):
        x += 1
        if i % 8 == 7:
            path.append(x)
    return path, x


@case(X)
def pairs(x):
    seen = []
    for i in range(20):
        x = x * 0.9
        seen.append((i, x.max()))
    return seen


@case(X)
def two_lists(x):
    a, b = [], []
    for i in range(20):
        x = x * 0.9
        a.append(x.max())
        b.append(x[i])
    return np.array(a) + np.array(b), len(a)


@case(X)
def loops_in_loops(x):
    every = []
    for _ in range(12):
        for _ in range(10):
            x = x * 0.9
        every.append(x.max())
    return every, x


class Log:
    def __init__(self):
        self.seen = []


@case(X)
def of_an_object(x):
    log = Log()
    for i in range(20):
        x = x * 0.9
        if i > 10:
            log.seen.append(x.max())
    return log.seen


@pytest.mark.parametrize("fn, args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_whole(fn, args):
    check(fn, *args)


def test_as_large_for_many_iterations():
    def short(x):
        seen = []
        for i in range(50):
            x = x * 0.9
            if i % 10 == 0:
                seen.append(x.max())
        return np.array(seen)

    def long(x):
        seen = []
        for i in range(2000):
            x = x * 0.9
            if i % 10 == 0:
                seen.append(x.max())
        return np.array(seen)

    assert nodes(short, X) == nodes(long, X)


@pytest.mark.parametrize("kind", ["data", "reads", "length", "pops", "iterates", "adds"])
def test_what_is_run_by_python(kind):
    """If other code reads the growing list, or data decide what is appended, Python runs the loop iteration by
    iteration.
    """

    def program(x):
        seen = [0.5]
        total = 0.0
        for i in range(12):
            x = x * 0.9
            if kind == "data" and x[3] > -0.5:
                seen.append(x[0])
            elif kind == "reads":
                seen.append(x[0] + seen[-1])
            elif kind == "length":
                seen.append(x[0] + len(seen))
            elif kind == "pops":
                seen.append(x[0])
                if i % 2:
                    seen.pop()
            elif kind == "iterates":
                seen.append(x[0])
                total = total + sum(seen)
            elif kind == "adds":
                seen = [*seen, x[0]]
        return seen, total

    compiled = cinductor.compile(program, backend="interp")
    for _ in range(2):
        got, want = compiled(X), program(X)
        assert got == want and list(map(type, got[0])) == list(map(type, want[0]))


def by_an_alias(x):
    seen = []
    other = seen
    for _ in range(12):
        x = x * 0.9
        seen.append(x[0])
        x = x + len(other)
    return other, x


def by_a_function(x):
    seen = []

    def note(value):
        seen.append(value)
        return len(seen)

    n = 0
    for _ in range(12):
        x = x * 0.9
        n = n + note(x[0])
    return seen, n


def by_an_addition(x):
    seen = [x[1]]
    for _ in range(12):
        x = x * 0.9
        both = seen + [x[0]]
        seen.append(both[-1])
    return seen, len(both)


def by_a_truth(x):
    seen = []
    for _ in range(12):
        x = x * 0.9
        if not seen:
            x = x + 1
        seen.append(x[0])
    return seen


def by_the_array_of_it(x):
    seen = []
    for _ in range(12):
        x = x * 0.9
        seen.append(x[0])
        x = x + np.array(seen).max()
    return x, seen


def by_a_text(x):
    seen, text = [], ""
    for _ in range(12):
        x = x * 0.9
        seen.append(1.5)
        text = f"{seen}"
    return x, text


def views(x):
    seen = []
    for i in range(12):
        x = x * 0.9
        seen.append(x[i:])
    return seen


def rows_of_an_argument(x):
    seen = []
    for i in range(12):
        seen.append(x[i : i + 2])
        x[i] = -1
    return seen


def written_to_after(x):
    seen, y = [], x * 2
    for _ in range(12):
        seen.append(y)
        y += 1
    return seen


def the_argument_itself(x):
    seen = []
    y = x
    for _ in range(12):
        seen.append(y)
        y = y + 1
    return seen[0] is x, seen[1], y


def of_other_sizes(x):
    seen = []
    for i in range(12):
        seen.append(x[: i + 1] * 2)
    return seen


def ints_and_floats(x):
    seen = []
    y = 1
    for _ in range(12):
        seen.append(y)
        y = y * 1.5
    return seen, x


def twice(x):
    seen = []
    for _ in range(12):
        x = x + 1
        seen.append(x)
        seen.append(x)
    seen[0][0] = 50
    return seen[1]


def with_a_break(x):
    seen = []
    for _ in range(30):
        x = x * 0.9
        seen.append(x[0])
        if x[0] > -1:
            break
    return seen, x


def list_of_lists(x):
    seen = []
    for i in range(12):
        x = x * 0.9
        seen.append([i, x[0]])
    return seen


def changed_after(x):
    seen = []
    for _ in range(12):
        x = x + 1
        seen.append(x[0])
    seen[3] = -1.0
    seen.append(5.0)
    return np.array(seen), np.stack(seen), seen


def the_array_of_it_is_written_to(x):
    seen = []
    for _ in range(12):
        x = x + 1
        seen.append(x.copy())
    all_of_it = np.array(seen)
    all_of_it[2] = 0
    return all_of_it, seen[2]


def iterations_of_an_argument(x, n=12):
    seen = []
    for _ in range(n):
        x = x * 0.9
        seen.append(x.max())
    return seen


def fortran(x):
    seen = []
    y = np.asfortranarray(x.reshape(4, 5))
    for _ in range(12):
        y = y + 1
        seen.append(y.copy("K"))
    return seen


def rotates(x):
    a, b, seen = x + 0.0, x + 1.0, []
    for _ in range(13):
        b[1:-1] = a[:-2] + a[2:]
        a, b = b, a
        seen.append(a.max())
    return seen, a


def of_some_iterations(x):
    seen = []
    for i in range(3, 40, 3):
        x = x + 1
        if i > 10 and i % 2 == 1:
            seen.append((i, x.copy()))
    return seen


def inside_a_loop(x):
    total = 0.0
    for k in range(12):
        seen = []
        for i in range(10):
            seen.append(x[i] * k)
        total = total + np.array(seen).max()
    return total


ALL = [
    *(by_an_alias, by_a_function, by_an_addition, by_a_truth, by_the_array_of_it, by_a_text, views),
    *(rows_of_an_argument, written_to_after, the_argument_itself, of_other_sizes, ints_and_floats),
    *(twice, with_a_break, list_of_lists, changed_after, the_array_of_it_is_written_to),
    *(iterations_of_an_argument, fortran, rotates, of_some_iterations, inside_a_loop),
    *(fn for fn, _ in CASES),
]


@pytest.mark.parametrize("fn", ALL)
def test_right_however_it_is_run(fn):
    check_anyhow = cinductor.compile(fn, backend="interp")
    for _ in range(2):
        ours, theirs = X.copy(), X.copy()
        got, want = check_anyhow(ours), fn(theirs)
        same(got, want)
        np.testing.assert_array_equal(ours, theirs)
        assert shared(got) == shared(want)


def shared(values):
    """Which arrays are the same object, and which share memory."""
    arrays = flat(values)
    return [(a is b, np.shares_memory(a, b)) for a in arrays for b in arrays]


def flat(value):
    if isinstance(value, list | tuple):
        return [array for item in value for array in flat(item)]
    return [value] if isinstance(value, np.ndarray) else []


NOTED = []


def ints_then_floats(end, x):
    NOTED.append(len(x))
    found, t, s = [1000, 1001], 1001, 1.2
    while (t := t * s) < end:
        found.append(t)
        s = s * 0.99 + 0.01
    return np.concatenate([found, [end]])


def an_item_and_an_int(end, x):
    NOTED.append(len(x))
    found, t = [x[0], 3], x[0]
    while t < end:
        t = t * 2
        found.append(t)
    return np.array(found)


def those_that_are_positive(end, x):
    NOTED.append(len(x))
    found = [1, 2.5]
    for v in x:
        if v > 3:
            found.append(v * 2)
    return found


@pytest.mark.parametrize("f", [ints_then_floats, an_item_and_an_int, those_that_are_positive])
def test_items_of_several_types_after_an_effect(f):
    compiled = cinductor.compile(f, backend="interp")
    for _ in range(3):
        NOTED.clear()
        got, want = compiled(40000.0, np.arange(1.0, 9)), f(40000.0, np.arange(1.0, 9))
        np.testing.assert_array_equal(got, want)
        assert type(got) is type(want) and NOTED == [8, 8]


def alongside_an_array(x, n):
    z, y = [], np.zeros(0)
    for i in range(n):
        y = np.append(y, x[i])
        if x[i] > 0:
            z.append(i)
    return y.tolist(), z


def alongside_lists_and_strings(x, n):
    z, y, s, t = [], [], "", ()
    for i in range(n):
        y = y + [x[i]]
        s = s + "a"
        t = (*t, i)
        if x[i] > 0:
            z.append(i)
        else:
            z.append(-1.5)
    return y, z, s, t


@pytest.mark.parametrize("fn", [alongside_an_array, alongside_lists_and_strings])
def test_a_list_that_grows_by_condition_alongside_what_grows(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for n in (3, 5, 4, 0, 6):
        x = np.random.default_rng(n).normal(size=n)
        assert compiled(x, n) == fn(x, n)


def appended(x):
    s, z = 0.0, []
    for i in range(len(x)):
        z.append(s)
        s += x[i]
    return z


def appended_after_a_decision(x):
    s, z = 0.0, [3.0]
    for i in range(len(x)):
        s += 1 if x[i] > 0.5 else 2
    for i in range(len(x)):
        s += z.append((s, i)) or x[i]
    return z


def classes_asked_for(x):
    s, k = 0.0, 0
    for i in range(len(x)):
        k += type(s) is float
        s += x[i]
    return k, s


def appended_in_nests(x):
    s, z = 0.0, []
    for i in range(len(x)):
        for _ in range(len(x)):
            z.append(s)
            s += x[i]
    return z


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", [appended, appended_after_a_decision, classes_asked_for, appended_in_nests])
def test_the_first_item_is_pythons_number_and_the_others_are_numpys(fn, dynamic):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for n in (4, 7, 3, 1, 7):
        x = np.random.default_rng(n).random(n)
        assert repr(compiled(x)) == repr(fn(x))


def some(x):
    z = [3.0, 1.0, 2.0]
    for v in x:
        if v > 0.5:
            z.append(v)
    return z


def reversed_often(x):
    z = some(x)
    for _ in range(len(x)):
        z.reverse()
    return z


def taken_from(x):
    z = some(x)
    for v in x:
        if v > 0.9:
            continue
        z.remove(z[0])
    return z


def copied(x):
    z, s = some(x), 0.0
    for _ in range(4):
        s += len(copy.copy(z)) * x[0]
    return s, z


def chained(x):
    z, s = [some(x), [2.0]], 0.0
    for _ in range(len(x)):
        s += len(sum(z, [])) + max(z)[0]
    return s, z


def added_to_itself(x):
    z = some(x)
    z.extend(z)
    z += z
    return z


def below(x):
    small = []
    for v in x:
        if v < 0.6:
            small.append(v)
    return small


def changed_in_another(x):
    held = [below(x)]
    held[0].reverse()
    return list(held[0])


def returned_twice(x):
    small = below(x)
    held = {"a": [small], "b": small.reverse}
    held["a"][0].append(1.0)
    return small is held["a"][0], held["b"].__self__, small, held["a"]


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [changed_in_another, returned_twice])
def test_a_list_whose_length_data_decide_is_one_object(fn, backend, pieces_are_compiled):
    made, compiled = cinductor.compile(lambda x: (below(x),) * 2, backend=backend), cinductor.compile(fn, backend=backend)
    for n in (4, 7, 3, 5, 7):
        x = np.random.default_rng(n).random(n)
        first, second = made(x)
        assert first is second
        assert repr(compiled(x)) == repr(fn(x))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", [reversed_often, taken_from, copied, chained, added_to_itself])
def test_a_list_whose_length_data_decide_is_used_as_a_list(fn, dynamic):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for n in (4, 7, 3, 5, 7):
        x = np.random.default_rng(n).random(n)
        assert repr(compiled(x)) == repr(fn(x))


def test_many_items_are_returned_in_time_that_grows_as_they_do():
    """Time is linear in the number of items. It took a minute when each item was compared with all others."""
    z = [1.0] * 20_000

    def f(x):
        return list(z), x + 1

    got = cinductor.compile(f, backend="interp")(np.arange(3.0))
    assert got[0] == z


def extends_itself(x):
    held, s = [v for v in x], 0.0
    print(end="")
    for k in range(13):
        if x[0] > k % 2:
            held.extend(held)
    return s + len(held), held[:7]


def test_a_list_of_thousands_is_pythons_where_it_grows():
    """Each item would be a node in every iteration. An effect comes first, so the call cannot be restarted."""
    x = np.array([1.5, 2.5, 0.5, 4.0, 3.0])
    compiled = cinductor.compile(extends_itself, backend="interp", options={"node_limit": 40000, "capture_limit": 1000})
    for _ in range(2):
        assert compiled(x) == extends_itself(x)


@pytest.mark.parametrize("take", [lambda o: o[0], lambda o: o[-2], lambda o: o.pop(), lambda o: o.__setitem__(1, 2.0)])
@pytest.mark.parametrize("backend", ["interp", "c"])
def test_a_position_after_an_effect_is_pythons(take, backend):
    """No check may fail there, so Python raises its own exception."""

    def f(x):
        NOTED.append(len(x))
        o = []
        for v in x:
            if v > 0.3:
                o.append(v)
        return take(o), o

    compiled = cinductor.compile(f, backend=backend)
    for x in ([0.4, 0.5], [0.1, 0.2], [0.9, 0.1], [0.4, 0.5, 0.6]):
        outcomes = []
        for fn in (f, compiled):
            try:
                outcomes.append(repr(fn(np.array(x))))
            except IndexError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


# --- numbers of two classes in one list ---


NUMBERS = ["v", "x[0]", "t", "t * 0.1", "0.1", "2.5", "k", "k + 2**60", "2**60 + 1", "np.float32(0.1)", "np.float64(0.1)", "True", "i"]


def lists_of_numbers(seed):
    """A function that appends numbers of a few classes to a list, in loops and branches, and its arguments."""
    draw = random.Random(seed)
    some = draw.sample(NUMBERS, draw.choice([2, 3]))
    one = functools.partial(draw.choice, some)
    begin = ", ".join(n for n in draw.choices(some, k=draw.randrange(3)) if n not in ("v", "i"))
    lines = ["i, v = 0, x[1]", f"found = [{begin}]"]
    parts = [
        f"for i, v in enumerate(x):\n    if v > 3:\n        found.append({one()})",
        f"if x[2] > t:\n    found.append({one()})",
        f"for i, v in enumerate(x):\n    found.append({one()} if v > 5 else {one()})",
        f"found.append({one()})",
        "print(end='', flush=True)",
    ]
    lines += draw.sample(parts, 4)
    text = "\n".join(lines) + "\nreturn found"
    dtype = draw.choice([np.float32, np.float64, np.int32])
    return "import numpy as np\ndef program(x, t, k):\n" + textwrap.indent(text, "    "), (np.arange(1, 8).astype(dtype), 1.3, 5)


@pytest.mark.parametrize("first", [*range(0, 240, 20), 1020, 1220])
def test_numbers_of_two_classes_stay_exact(first, tmp_path):
    for seed in range(first, first + 20):
        source, arguments = lists_of_numbers(seed)
        path = tmp_path / f"numbers_{seed}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        compiled = cinductor.compile(module.program, backend="interp", dynamic=None if seed % 2 else True)
        want = module.program(*arguments)
        for _ in range(2):
            got = compiled(*arguments)
            assert [(type(v), v) for v in got] == [(type(v), v) for v in want], source
