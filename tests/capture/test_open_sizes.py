"""Tests conditions on sizes: the program evaluates them, so one compile serves both outcomes, each equal to NumPy.

If the two branches cannot become one region (different rank, an exception), the condition is guarded instead.
"""

import warnings

import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same

SIZES = (7, 0, 1, 2, 3, 4, 5, 64, 100)


def captures(compiled):
    return compiled._cinductor_job.captures


def outcome(fn, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn(*args), None
        except Exception as error:
            return None, (type(error), str(error))


def agree(compiled, *args):
    """One call and NumPy's give the same results, writes and exceptions."""
    theirs = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    got, raised = outcome(compiled, args)
    want, error = outcome(compiled.__wrapped__, theirs)
    assert raised == error
    assert_same(got, want)
    assert_same(list(args), theirs)


def if_else(x):
    if len(x) > 3:
        y = x * 2
    else:
        y = x + 1
    return y


def elif_chain(x):
    n = x.shape[0]
    if n == 0:
        return np.zeros_like(x)
    elif n < 4:
        return -x
    elif n % 2 == 0:
        x = x * 3
    return x + 1


def returns_early(x):
    if x.size < 2:
        return x.sum()
    return (x * x).sum()


def of_different_types(x):
    if x.size < 2:
        return 0.0
    return (x * x).mean()


def writes(x):
    if len(x) >= 4:
        x[1:3] = -1
    elif len(x):
        x[0] += 5
    return x


def longer_in_one_arm(x):
    if len(x) > 4:
        y = x[:4] * 2
    else:
        y = x * 3
    return y.sum(), y


def needs_its_size(x):
    if len(x) >= 5:
        return x[4] + x[:5].sum()
    return x.sum() * 1


def a_number_of_arms(x):
    k = 3 if len(x) > 10 else 2
    return x * k


def and_or(x, n):
    if x.size > 2 and n > 3 or n == 1:
        return x * n
    return x - n


def guarded_division(n, x):
    if n != 0 and 12 % n == 0:
        return x * (12 // n)
    return x


def not_empty(x):
    if not len(x):
        return x.copy()
    return x / x.max()


def a_flag(x):
    is_even = len(x) % 2 == 0
    y = x + 1
    if is_even:
        y *= 2
    return y


def a_flag_returned(x):
    return x + 1, len(x) > 3, 2 < x.size <= 7


def clamped(x, n):
    k = min(n, 5)
    m = max(x.shape[0], 3)
    return x * k + m, k, m


def halves(x):
    n = len(x)
    while n > 1:
        x[: n // 2] += x[n - n // 2 : n]
        n -= n // 2
    return x


def counts_bits(x, n):
    bits = 0
    while n:
        if n & 1:
            x += 1
            bits += 1
        n >>= 1
    return x, bits


def powers(x):
    step = 1
    while step < len(x):
        x[step:] += x[: len(x) - step] * 0.5
        step *= 2
    return x


def strided(x, k):
    y = np.zeros_like(x)
    for i in range(1, k):
        y[i::i] += x[i::i]
    return y


def in_steps(x, k):
    total = 0.0
    for i in range(0, len(x), k):
        total += x[i]
    return total, np.arange(0, len(x), k)


def in_a_loop(x):
    for i in range(len(x)):
        if i < len(x) - 2:
            x[i] += x[i + 1]
        elif len(x) > 3:
            x[i] = 0
    return x


def last_is_numpys(x):
    total = 0.0
    for i in range(len(x)):
        if i % 2:
            total = x[i]
    return total


def complex_product(x):
    product = 1.0 + 0j
    for i in range(len(x)):
        if i != 3:
            product *= x[i] + 1j
    return x / product


def whole_roots(n, x):
    import math

    return x * math.isqrt(n), math.gcd(n, 12), n.bit_length()


OF_ONE_ARRAY = [
    if_else,
    elif_chain,
    returns_early,
    of_different_types,
    writes,
    longer_in_one_arm,
    needs_its_size,
    a_number_of_arms,
    not_empty,
    a_flag,
    a_flag_returned,
    halves,
    powers,
    in_a_loop,
    last_is_numpys,
    complex_product,
]
WITH_A_NUMBER = [and_or, clamped, counts_bits, strided, in_steps]


@pytest.mark.parametrize("first", [7, 2])
@pytest.mark.parametrize("fn", OF_ONE_ARRAY)
def test_one_program_for_both_sides(fn, first):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in (first, *SIZES):
        agree(compiled, np.arange(n) * 0.25 + 1)
    assert captures(compiled) == 1, compiled._cinductor_job.reasons


@pytest.mark.parametrize("fn", WITH_A_NUMBER)
def test_sizes_and_numbers(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in SIZES:
        for k in (6, 4, 2, 3, 9, 1):
            agree(compiled, np.arange(n) * 0.25, k)
    assert captures(compiled) == 1, compiled._cinductor_job.reasons


@pytest.mark.parametrize("fn", [guarded_division, whole_roots])
def test_numbers(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in (6, 5, 0, 1, 12, 100, 99):
        agree(compiled, n, np.arange(9.0))
    assert captures(compiled) == 1, compiled._cinductor_job.reasons


def of_another_rank(x):
    if len(x) > 3:
        return x[:, None] * 2
    return x * 2


def raises_when_short(x):
    if x.shape[0] < 3:
        raise ValueError("too short")
    return x[2:] * 2


def of_a_range(x):
    if not 2 < x.shape[0] < 50:
        raise ValueError("no such size")
    return x[:3] + x.sum()


def raises_in_an_arm(x):
    if x.shape[0] < 3:
        y = x.reshape(2, -1)
    else:
        y = x[None]
    return y


def a_broadcast_in_one_arm(x, y):
    if len(x) == len(y):
        return x + y
    return x * 2


@pytest.mark.parametrize("fn", [of_another_rank, raises_when_short, of_a_range, raises_in_an_arm])
def test_what_is_decided_with_a_guard(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in SIZES * 2:
        agree(compiled, np.arange(n) * 0.25)
    assert len(compiled.specializations) <= 4, compiled._cinductor_job.reasons


def test_sizes_that_are_equal_or_not():
    compiled = cinductor.compile(a_broadcast_in_one_arm, dynamic=True, backend="interp")
    for n, m in ((7, 5), (7, 7), (5, 5), (3, 2), (0, 0), (1, 1), (0, 4), (6, 6), (6, 1)):
        agree(compiled, np.arange(n) * 0.25, np.arange(m) * 1.5)
    assert captures(compiled) <= 4, compiled._cinductor_job.reasons


def gives_up_after(x, log):
    if len(x) > 3:
        y = x * 2
    else:
        y = x + 1
    log.append(str(y.shape))
    return y + 1


def test_a_break_after_an_open_condition():
    compiled = cinductor.compile(gives_up_after, dynamic=True, backend="interp")
    for n in (7, 2, 64, 2, 7, 64, 0):
        mine, theirs = [], []
        got = compiled(np.arange(float(n)), mine)
        np.testing.assert_array_equal(got, gives_up_after(np.arange(float(n)), theirs))
        assert mine == theirs


def test_a_check_that_fails_at_first_serves_later_calls():
    def f(x):
        if x[0] <= 0:
            raise ValueError("not positive")
        return x * 2

    compiled = cinductor.compile(f, dynamic=True, backend="interp")
    for n in (7, 5, 9):
        agree(compiled, np.arange(n) - 1.0)
    for n in (4, 5, 6, 64):
        agree(compiled, np.arange(n) + 1.0)
    assert captures(compiled) == 1 and compiled.failed_checks == 2


def test_checks_that_always_fail_are_not_run_for_ever():
    def f(x):
        if x[0] <= 0:
            raise ValueError("not positive")
        return x * 2

    compiled = cinductor.compile(f, dynamic=True, backend="interp")
    x = -np.ones(5)
    for _ in range(30):
        agree(compiled, x)
    agree(compiled, np.ones(6))
    assert captures(compiled) == 1


def test_two_sides_by_the_default_backend():
    for fn in (if_else, writes, longer_in_one_arm, halves):
        compiled = cinductor.compile(fn, dynamic=True)
        for n in (7, 0, 1, 2, 64):
            agree(compiled, np.arange(n) * 0.25 + 1)
        assert captures(compiled) == 1


def test_statically_known_sizes_choose_while_it_is_captured():
    compiled = cinductor.compile(if_else, backend="interp")
    for n in (7, 2):
        agree(compiled, np.arange(float(n)))
    assert "if (" not in cinductor.explain(cinductor.compile(if_else), np.ones(7)).graph


def broken(x):
    y = x * 2 + 1
    total = y.sum()
    said.append(float(total))
    if len(x) > 5:
        y = y - total
    return y / (y.max() + 1)


said = []


@pytest.mark.parametrize("dynamic", [None, True])
def test_pieces_between_breaks_are_compiled_for_all_sizes(dynamic, monkeypatch):
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    compiled = cinductor.compile(broken, dynamic=dynamic, backend="interp")
    compiles = 0
    for n in (1000, 900, 901, 500, 64, 12, 7, 800, 333, 100):
        before = captures(compiled)
        agree(compiled, np.arange(n) * 0.5)
        last = compiled._cinductor_job.last
        compiles += captures(compiled) > before and "reused" not in last.info
    assert compiles <= 2 and captures(compiled) <= 10
