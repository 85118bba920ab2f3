"""Tests functions without source: their bytecode is decompiled, and the result compiles to the same bytecode."""

import ast
import sys
import types

import numpy as np
import pytest
from conftest import ROOT
from test_regions import outcome, same

import cinductor
from cinductor.capture.syntax import bytecode
from cinductor.capture.syntax.rewrite import is_source_of

pytestmark = pytest.mark.filterwarnings("error:cinductor")
PROGRAMS = sorted((ROOT / "tests" / "programs").glob("*.py"))


def functions_in(code):
    """The functions of a module, and the functions inside them."""
    for const in code.co_consts:
        if isinstance(const, types.CodeType) and not const.co_name.startswith("<"):
            yield const
            yield from functions_in(const)


def is_read(code):
    node = bytecode.function_of(code)
    return node is not None and is_source_of(node, code, "")


def test_most_functions_are_read_back():
    """All except those with handlers, managers or starred expressions."""
    codes = [c for path in PROGRAMS for c in functions_in(compile(path.read_text(), str(path), "exec"))]
    codes = [c for c in codes if not c.co_flags & 0x2A0 and not getattr(c, "co_exceptiontable", b"")]
    read = [c.co_name for c in codes if is_read(c)]
    assert len(codes) > 200 and len(read) > 0.9 * len(codes)


SOURCES = {
    "operators": "x[1:] += 2; y = x[0] if n > 2 else -x[1]; z = x @ x; return y, z, not n, x[..., None], n is None, n not in (1, 2)",
    "operands": "y = n and n + 1 or 3; z = (n or 2) and 4; w = 0 < n and (n < 9 or n > 20); return y, z, w",
    "stores": "a, b = x[0], n; b, a = a, b; c = d = a; (e, f), g = (1, 2), 3; x[0], x[1] = x[1], x[0]; return a, b, c, d, e, f, g",
    "calls": "return np.sum(x, axis=0), max(n, 2), x.sum(), {'a': n, 'b': 2}, [n, 1, 2], {n}, f'{n}: {n:3d} {n!r:>{n}}', (lambda v: v + 1)(n)",
    "a_loop": "s = 0.0\nfor i in range(len(x)):\n    if x[i] > 0.5 and i % 2:\n        s += x[i] * n\n    elif x[i] < 0.1:\n        continue\n    s = s * 0.5\nreturn s",
    "a_while": "s, k = x.sum(), 0\nwhile s > 1 and k < 50:\n    k += 1\n    if k == 3:\n        continue\n    s = s / 2\nreturn s, k",
    "a_break": "for k in range(len(x)):\n    if x[k] > 0.7:\n        break\nelse:\n    k = -1\nreturn k",
    "a_nest": "a = np.zeros((len(x), 4))\nfor i in range(len(x)):\n    for j in range(4):\n        if (i + j) % n:\n            a[i, j] = x[i] - j\nreturn a",
    "for_ever": "k = 0\nwhile True:\n    k += 1\n    if x[k % len(x)] > 0.6 or k > 40:\n        return k",
    "comprehensions": "return [v * 2 for v in x if v > 0.5], sum(v * n for v in x)",
    "imports": "import math, os.path\nimport os.path as place, json as j\nfrom math import pi as p, e\nfrom math import tau\nreturn x * math.pi, p, e, tau, place.sep, os.path.sep, j.dumps(n)",
    "names_of_others": "global ELSEWHERE\nELSEWHERE = n\nk = 0\ndef f(v):\n    nonlocal k\n    k += v\nf(n)\nreturn x * ELSEWHERE, k",
    "stars": "t, d = (x, 0), {'keepdims': True}\nreturn np.sum(*t), np.sum(*t, **d)",
    "comprehensions_of_calls": "return {k: x[k] for k in range(n)}, {k + n for k in range(n)}, [v for v in range(n)]",
    "branches": "if x[0] > 0.5:\n    y = x + 1\nelif x[1] > 0.5:\n    return x * 2, n\nelse:\n    y = x - 1\nreturn y, n",
}
if sys.version_info >= (3, 12):  # their handlers make them unreadable
    del SOURCES["comprehensions"], SOURCES["comprehensions_of_calls"]


def made(body):
    """The function with this body, which is in no file."""
    space = {"np": np}
    text = body.replace("; ", "\n").replace("\n", "\n    ")
    exec(f"def f(x, n=3):\n    {text}\n", space)
    return space["f"]


@pytest.mark.parametrize("name", SOURCES)
def test_is_captured_as_if_it_had_source(name):
    f = made(SOURCES[name])
    assert is_read(f.__code__)
    compiled = cinductor.compile(f, backend="interp")
    for seed in range(4):
        ours, theirs = (np.random.default_rng(seed).random(20) for _ in range(2))
        same(outcome(compiled, (ours,)), outcome(f, (theirs,)))
        same(ours, theirs)


@pytest.mark.parametrize("name", ["a_loop", "a_while", "a_nest"])
def test_loops_are_loops(name):
    compiled = cinductor.compile(made(SOURCES[name]), backend="interp", fullgraph=True)
    compiled(np.random.default_rng(0).random(20))
    assert any("captured" in text for text in map(str, compiled._cinductor_job.last.regions))


def test_every_line_is_its_own():
    f = made(SOURCES["a_loop"])
    lines = {n.lineno for n in ast.walk(bytecode.function_of(f.__code__)) if isinstance(n, ast.stmt)}
    assert {2, 3, 4, 5, 7, 8, 9} <= lines


def test_ways_through_many_tests_have_an_end():
    body = "\n".join(f"if x[{k}] > 0.5 or n == {k}:\n    n += {k}" for k in range(18)) + "\nreturn n"
    is_read(made(body).__code__)


def test_what_is_not_read_back_is_nothing():
    for body in ("try:\n    return x\nfinally:\n    n = 1", "return max(1, *x)", "with np.errstate():\n    return x"):
        assert not is_read(made(body).__code__)
