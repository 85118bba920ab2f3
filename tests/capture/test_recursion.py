"""Tests recursive functions: captured if the depth is known, run by Python if data decide the depth."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same


def adaptive(a, b, tolerance):
    """Both branches of each level call the next level twice, so captured branches double with each level."""

    def rec(a, b, fa, fb, depth):
        m = (a + b) / 2
        fm = np.exp(-m * m)
        whole, halves = (b - a) * (fa + fb) / 2, (b - a) * (fa + 2 * fm + fb) / 4
        if abs(whole - halves) < tolerance or depth > 10:
            return halves
        return rec(a, m, fa, fm, depth + 1) + rec(m, b, fm, fb, depth + 1)

    return rec(a, b, np.exp(-a * a), np.exp(-b * b), 0)


def halved(x):
    return x if x < 1 else halved(x / 2) + 1


def either(x):
    return x > 1 and (x < 2 or either(x / 2))


def largest(x, low, high):
    """Divide and conquer; sizes end the recursion."""
    if high - low == 1:
        return x[low]
    middle = (low + high) // 2
    a, b = largest(x, low, middle), largest(x, middle, high)
    return a if a > b else b


def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    if half > 1e6:
        half = half / 1e6
    return half * half if n % 2 == 0 else half * half * x


@pytest.mark.parametrize("backend", ("c", "interp"))
@pytest.mark.parametrize(
    "fn, calls",
    [
        (adaptive, [(0.0, 2.0, 1e-6), (0.0, 1.0, 1e-4)]),
        (halved, [(300.5,), (0.5,), (1e9,)]),
        (either, [(300.5,), (0.5,)]),
    ],
    ids=("adaptive", "halved", "either"),
)
def test_data_end_it(fn, calls, backend):
    compiled = cinductor.compile(fn, backend=backend)
    for args in (*calls, *calls):
        assert_same(compiled(*args), fn(*args))
    job = compiled._cinductor_job
    assert job.last is None or len(job.last.breaks) < 40


@pytest.mark.parametrize("fn, args", [(largest, (np.arange(12.0) * 7 % 11, 0, 12)), (power, (3.5, 37))], ids=("largest", "power"))
def test_its_depth_is_known(fn, args):
    assert_same(cinductor.compile(fn, fullgraph=True)(*args), fn(*args))


def test_inside_of_a_loop():
    def every(x):
        total = 0.0
        for i in range(len(x)):
            total += halved(x[i])
        return total

    compiled, x = cinductor.compile(every), np.arange(30.0) * 11
    for k in (1, 3):
        assert_same(compiled(x * k), every(x * k))
    said = str(cinductor.explain(every, x))
    assert "data decide when a recursion ends" in said and "decided by Python: decided by Python" not in said


EQUAL_KERNELS = """
import numpy as np, cinductor

def fft(x):
    n = len(x)
    if n == 1:
        return x
    even, odd = fft(x[::2]), fft(x[1::2])
    odd = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + odd, even - odd])

x = np.random.default_rng(1).random(32) + 0j
assert np.allclose(cinductor.compile(fft, fullgraph=True)(x), np.fft.fft(x))
"""


def test_equal_calls_are_compiled_once(tmp_path):
    """Kernels that only differ in the names of buffers have one text, including buffers that stay in registers: 5 for
    31 calls.
    """
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path)}
    program = tmp_path / "program.py"
    program.write_text(EQUAL_KERNELS)
    subprocess.run([sys.executable, str(program)], check=True, env=env, timeout=300)
    libraries = b"".join(path.read_bytes() for path in tmp_path.rglob("*.so"))
    assert 0 < len(set(re.findall(rb"(?<=\0)k\d+(?=\0)", libraries))) <= 8


def fibonacci(k):
    return k if k < 2 else fibonacci(k - 1) + fibonacci(k - 2)


def catalan(k):
    return 1 if k <= 1 else sum(catalan(i) * catalan(k - 1 - i) for i in range(k))


def binomial(a, b):
    return 1 if b == 0 or b == a else (0 if b > a else binomial(a - 1, b - 1) + binomial(a - 1, b))


def ackermann(m, n):
    return n + 1 if m == 0 else (ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1)))


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def halves(v):
    if v.size < 3:
        return v.sum()
    return halves(v[: v.size // 2]) * halves(v[v.size // 2 :]) - halves(v[1:-1])


def chosen_halves(v):
    return v.sum() if v.size < 3 else chosen_halves(v[: v.size // 2]) * chosen_halves(v[v.size // 2 :]) - chosen_halves(v[1:-1])


RECURSIONS = [
    (lambda n: fibonacci(n), [(6,), (1,), (9,), (7,)]),
    (lambda n: catalan(n), [(4,), (5,), (6,)]),
    (lambda a, b: binomial(a, b), [(6, 2), (0, 1), (6, 2), (5, 3)]),
    (lambda m, n: ackermann(m, n), [(1, 1), (2, 2), (1, 3), (2, 3)]),
    (lambda n: (is_even(n), is_odd(n)), [(4,), (5,), (0,), (7,), (12,)]),
    (lambda x: halves(x), [(np.arange(n),) for n in (4.0, 7.0, 3.0, 10.0)]),
    (lambda x: chosen_halves(x), [(np.arange(n),) for n in (4.0, 7.0, 3.0, 10.0)]),
]


@pytest.mark.parametrize("fn, calls", RECURSIONS, ids="fibonacci catalan binomial ackermann parity halves chosen".split())
def test_trees_under_sizes_that_vary(fn, calls):
    compiled = cinductor.compile(fn, backend="interp")
    for arguments in calls:
        assert compiled(*arguments) == fn(*arguments)
