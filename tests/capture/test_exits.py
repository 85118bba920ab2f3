"""Tests loops that print just before they are left: the print moves after the loop, and the loop is captured."""

import ast

import numpy as np
import pytest

import cinductor
from cinductor.capture.syntax.rewrite import print_rewritten


def power(A, tol, limit=100):
    v = np.ones(len(A))
    for it in range(limit):
        w = A @ v
        w /= np.linalg.norm(w)
        delta = np.abs(w - v).sum()
        v = w
        if delta < tol:
            print("converged after", it + 1)
            break
    else:
        print("did not converge")
    return v, it


def newton(x, tol):
    k = 0
    while True:
        f = x * x - 2
        if abs(f) < tol:
            print(f"root {x:.6f} in {k}")
            return x
        x = x - f / (2 * x)
        k += 1


def two_exits(x, tol):
    k = 0
    while True:
        x = x * 0.9
        k += 1
        if abs(x) < tol:
            print("small", k)
            return x, "small"
        elif x > 50:
            if k > 3:
                print("late")
                break
            print("big")
            return x, "big"
    return x, "late"


def nested(a, t):
    hits = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > t:
                print("found", i, j)
                break
            hits += 1
        if hits > 20:
            print("enough", i)
            return hits
    return -hits


def raising(x):
    for i in range(len(x)):
        if x[i] < 0:
            print("negative at", i)
            break
        x[i] = np.sqrt(x[i])
    return x


def numbers(log):
    try:
        yield from range(9)
    finally:
        log.append("closed")


def with_a_generator(log, x):
    for k in numbers(log):
        if x[k] > 2:
            log.write("left")
            break
    return log


def protected(x):
    k = 0
    try:
        for k in range(len(x)):
            if x[k] > 2:
                print(1 // int(x[k] - 3))
                break
    except ZeroDivisionError:
        return -k
    return k


def returned_through_finally(x, log):
    try:
        for k in range(len(x)):
            if x[k] > 2:
                return k, x[k]
    finally:
        for j in range(len(x)):
            log.append(j)
        while len(log) > 4:
            log.pop()
    return -1.0, 2, log


A = np.random.default_rng(0).random((20, 20))
CALLS = {
    power: [(A, 1e-6), (A, 1e-30, 5), (A, 1e-6, 3), (A, 10.0)],
    newton: [(1.0, 1e-9), (np.float64(3.0), 1e-3)],
    two_exits: [(10.0, 1.0), (100.0, 1.0), (-5.0, 1e-3)],
    nested: [(A[:6, :8], 0.95), (A[:6, :8], 0.5)],
    raising: [(np.array([1.0, 4, -1, 9]),), (np.arange(20.0),)],
    protected: [(np.arange(3.0),), (np.arange(9.0),), (np.arange(9.0) * 1.5,)],
    returned_through_finally: [(np.arange(3.0), []), (np.arange(9.0), [1]), (-np.arange(9.0), [])],
}


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", CALLS, ids=lambda f: f.__name__)
def test_what_is_printed(fn, backend, capsys):
    compiled = cinductor.compile(fn, backend=backend)
    for args in CALLS[fn]:
        for _ in range(4):
            outcomes = []
            for f in (fn, compiled):
                given = [v.copy() if isinstance(v, np.ndarray) else type(v)(v) for v in args]
                outcomes.append(repr((f(*given), given, capsys.readouterr().out)))
            assert outcomes[1] == outcomes[0]


@pytest.mark.parametrize("fn", [power, newton, raising])
def test_the_loop_is_captured(fn, capsys):
    report = cinductor.explain(fn, *CALLS[fn][0])
    assert len(report.breaks) <= 2
    assert any(region.endswith(("for captured", "while captured")) for region in report.regions)


def test_which_loops_are_left_alone():
    for fn, moves in ((power, True), (nested, True), (with_a_generator, False)):
        text = print_rewritten(fn)
        assert ("_exit_0" in text) == moves, ast.dump(ast.parse(text))
