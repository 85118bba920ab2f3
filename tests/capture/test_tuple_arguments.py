"""Tests functions that take tuples: loops, branches and results read those of each call, and `is` tells them apart."""

import numpy as np
import pytest

import cinductor
from cinductor import testing

# --- tuples that loops and branches take for their parts ---------------------------------------------------------


def in_an_arm(x, t, out):
    made = (0, 0)
    if x[0] > 0:
        made = t
    return made


def in_both_arms(x, t, out):
    made = t if x[0] > 0 else (t, 1)[0]
    return made, made is t


def as_an_operand(x, t, out):
    return (x[0] > 0 and t) or (0, 0)


def beside_a_number(x, t, out):
    made = [t, 0]
    for i in range(len(x)):
        if x[i] > 0:
            made[1] = i
    return made


def after_a_loop(x, t, out):
    made = (0, 0)
    for i in range(len(x)):
        x[i] += 1
        made = t
    return made, x.sum()


def appended(x, t, out):
    made = []
    for i in range(len(x)):
        if x[i] > 0:
            made.append(t)
    return made


def appended_in_each_iteration(x, t, out):
    made = []
    for i in range(len(x)):
        x[i] *= 2
        made.append(t)
    return made, x.sum()


def appended_to_an_argument(x, t, out):
    for i in range(len(x)):
        if x[i] > 0:
            out.append(t)
    return x.sum()


def printed(x, t, out):
    for i in range(len(x)):
        if x[i] > 0:
            print(t, i)
    return x.sum()


def at_a_place_that_data_decide(x, t, out):
    return [t, (7, 8), t][int(x.argmax())], x + 1


def as_a_key(x, t, out):
    made = {}
    for i in range(len(x)):
        if x[i] > 0:
            made[t] = i
    return made


@pytest.mark.parametrize("dynamic", [True, None, False])
@pytest.mark.parametrize(
    "fn",
    [in_an_arm, in_both_arms, as_an_operand, beside_a_number, after_a_loop, appended, appended_in_each_iteration,
     appended_to_an_argument, printed, at_a_place_that_data_decide, as_a_key],
)  # fmt: skip
def test_the_parts_of_a_tuple_are_read_in_each_call(fn, dynamic, capsys):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for t in [(9, 5), (2, 5), (2, 6), (1.5, 5), (9, 5), (4, 4)]:
        for first in (1.0, -1.0):
            seen = []
            for run in (fn, compiled):
                out = []
                result = run(np.array([first, -2.0, 3.0]), t, out)
                seen.append((result, out, capsys.readouterr().out))
            testing.assert_same(*seen)


def kept_in_a_list(x, s, t):
    made = [s, 0]
    if x[0] > 0:
        made[0] = t
    return made


def kept_in_a_dict(x, s, t):
    made = {"a": s}
    for i in range(len(x)):
        if x[i] > 0:
            made["a"] = t
    return made


def kept_before_what_is_appended(x, s, t):
    made = [s]
    if x[0] > 0:
        made[0] = t
        made.append(1)
    return made


def kept_under_a_name(x, s, t):
    made = (s, 1)
    for i in range(len(x)):
        if x[i] > 0:
            made = (t, 1)
    return made


@pytest.mark.parametrize("dynamic", [True, None, False])
@pytest.mark.parametrize("fn", [kept_in_a_list, kept_in_a_dict, kept_before_what_is_appended, kept_under_a_name])
def test_equal_tuples_of_two_arguments_are_two(fn, dynamic):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for s, t in [((9, 5), tuple([9, 5])), ((9, 5), (2, 5)), ((1, 5), (9, 5)), ((9, 5), (9, 6)), ((0.5, 1), (9, 5))]:
        for first in (1.0, -1.0):
            testing.assert_same(compiled(np.full(3, first), s, t), fn(np.full(3, first), s, t))


# --- which of several tuples a place has -------------------------------------------------------------------------


def of_a_choice(x, s, t):
    made = s if x[0] > 0 else t
    return made is s, made is t, made


def of_a_branch_in_a_loop(x, s, t):
    made = (0, 0)
    for i in range(len(x)):
        if x[i] > 0:
            made = s
    return made is s, made is not t


def of_exchanged_items(x, s, t):
    made = [s, t]
    for i in range(len(x)):
        if x[i] > 0:
            made[0], made[1] = made[1], made[0]
    return made[0] is s, made[1] is s


def of_appended_items(x, s, t):
    made = []
    for i in range(len(x)):
        if x[i] > 0:
            made.append(s)
        else:
            made.append(t)
    return made[0] is s, [item is t for item in made]


def of_items_appended_while(x, s, t):
    made, i = [t], 0
    while i < len(x) and x[i] > 0:
        made.append(s)
        i += 1
    return [item is s for item in made]


def of_a_place_that_data_decide(x, s, t):
    made = [s, t][int(x.argmax()) % 2]
    return made is s, made is t


def of_an_inner_function(x, s, t):
    def inner():
        if x[0] > 0:
            return s
        return t

    return 1 if inner() is s else 2


def of_a_test_in_a_loop(x, s, t):
    made, count = s, 0
    for i in range(len(x)):
        if made is t:
            count += 1
        made = t if x[i] > 0 else s
    return count


def of_another_after_the_first_iteration(x, s, t):
    made, held, count = s, [s], 0
    for _ in range(len(x)):
        count += (made is t) + (held[0] is t)
        made = held[0] = t
    return count, made is t, made, held


def of_names_that_iterations_exchange(x, s, t):
    a, b, count = s, t, 0
    for _ in range(len(x) + 2):
        count += a is t
        a, b = b, a
    return count, a is s


CHOSEN = [of_a_choice, of_another_after_the_first_iteration, of_names_that_iterations_exchange, of_a_branch_in_a_loop, of_exchanged_items, of_appended_items, of_items_appended_while,
          of_a_place_that_data_decide, of_an_inner_function, of_a_test_in_a_loop]  # fmt: skip


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("fn", CHOSEN, ids=lambda fn: fn.__name__)
def test_is_tells_tuples_apart_that_data_choose(fn, dynamic):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    one = (9, 5)
    for s, t in [((9, 5), (2, 5)), ((9, 5), tuple([9, 5])), (one, one), ((1.5, 5), (9, 5)), ((9, 5), (2, 5))]:
        for first in (1.0, -1.0):
            x = np.array([first, -2.0, 3.0])
            testing.assert_same(compiled(x.copy(), s, t), fn(x, s, t))


# --- tuples that the call makes of the caller's objects ----------------------------------------------------------


def returned_from_a_loop(x, t, held):
    for i in range(len(x)):
        if x[i] > 0:
            return t, held
    raise ValueError(len(x))


def returned_from_an_arm(x, t, held):
    if x[0] > 0:
        return (t, 1), held
    raise ValueError(len(x))


def made_in_a_loop(x, t, held):
    made = (0, 0)
    for i in range(len(x)):
        x[i] += 1
        made = (t, held)
    return made, x.sum()


def made_before_and_in_an_arm(x, t, held):
    made = (t, (t, held))
    if x[0] > 0:
        made = (t, (t, held))
    return made, {"a": made}


def appended_with_it(x, t, held):
    made = []
    for i in range(len(x)):
        x[i] += 1
        made.append(((t, held), held))
    return made


def parts_of_one_argument(x, t, held):
    t = (t, held)
    for i in range(len(x)):
        if x[i] > 0:
            return t[0], t, t[1]
    raise ValueError(len(x))


OF_BOTH = [returned_from_a_loop, returned_from_an_arm, made_in_a_loop, made_before_and_in_an_arm, appended_with_it, parts_of_one_argument]


def identities(value, held):
    """Where a result has the caller's object."""
    return [identities(item, held) for item in value] if type(value) in (tuple, list) and value is not held else value is held


@pytest.mark.parametrize("make", [lambda k: {"a": k}, lambda k: [k], lambda k: np.full(2, k), lambda k: ([k], 1)])
@pytest.mark.parametrize("fn", OF_BOTH, ids=lambda fn: fn.__name__)
def test_what_is_beside_a_tuple_is_that_of_the_call(fn, make):
    """In each call, also if the tuple beside it is equal."""
    compiled = cinductor.compile(fn, backend="interp")
    for number, first in enumerate((1.0, -1.0, 1.0, 1.0)):
        seen = []
        held, t = make(number), tuple([3, 4])
        for run in (compiled, fn):
            result, error = testing.outcome(run, (np.array([first, -3.0]), t, held))
            seen.append((result, repr(error), identities(result, held)))
        testing.assert_same(*seen)


def test_a_tuple_is_looked_for_in_a_list_and_stored_in_it():
    """The items that `in` has read die with the places that the list had."""
    def fn(x, s, t, rows):
        made = []
        for _ in range(len(x)):
            made.append(1 if s in rows else -1)
            rows[0] = s if x[0] > 0 else t
        return made, rows

    compiled = cinductor.compile(fn, backend="interp")
    for first in (1.0, -1.0, 1.0):
        for second in (0, 2):
            seen = [run(np.full(3, first), (1, 2), (0, second), [(1, 0.5), (0, 0)]) for run in (compiled, fn)]
            testing.assert_same(*seen)
