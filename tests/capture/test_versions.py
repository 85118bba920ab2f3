"""Tests capture of syntax that only some supported versions of Python have."""

import importlib
import inspect
import itertools
import math
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from rewriting import ForgetfulScope, plain

import cinductor
from cinductor.capture.hooks.scope import PlainScope
from cinductor.capture.syntax.rewrite import NotRewritable, rewrite

# (oldest version, name, module); f(x) of each gives a value of arrays, numbers, texts and containers.
CASES = [
    (
        (3, 10),
        "match",
        """
        def f(x):
            match len(x), x.ndim:
                case n, 1 if n > 2:
                    return x[:2] * n
                case _:
                    return x
        """,
    ),
    (
        (3, 10),
        "annotations",
        """
        def f(x: np.ndarray) -> np.ndarray:
            scale: float = 2.0
            later: "Missing"
            def g(y: np.ndarray, *, z: scale = 1.0) -> scale:
                return y * scale + z
            return g(x)
        """,
    ),
    (
        (3, 10),
        "a_function_in_an_annotation",
        """
        def f(x: (lambda: 0) = None) -> (lambda: 1):
            return x * 2
        """,
    ),
    (
        (3, 10),
        "annotations_that_stay_text",
        """
        from __future__ import annotations
        def f(x):
            def g(y: Missing[int], *z: len) -> list["text"]:
                return y + 1
            return g(x), dict(g.__annotations__)
        """,
    ),
    (
        (3, 10),
        "escapes_that_python_warns_of",
        """
        def f(x):
            return x + len("\\d"), "\\d"
        """,
    ),
    (
        (3, 11),
        "except_star",
        """
        def f(x):
            y = x + 1
            try:
                if len(x) > 2:
                    raise ExceptionGroup("both", [ValueError(1), KeyError(2)])
            except* ValueError as group:
                y = y * len(group.exceptions)
            except* KeyError:
                y = y - 3
            else:
                y = -y
            finally:
                y = y / 2
            return y
        """,
    ),
    (
        (3, 11),
        "starred_index",
        """
        def f(x):
            where = (slice(1), 0)
            return np.outer(x, x)[*where] + 1
        """,
    ),
    (
        (3, 11),
        "starred_annotation",
        """
        def f(x):
            def g(*rest: *tuple[int, ...]):
                return rest[0] + rest[1]
            return g(x, 2 * x)
        """,
    ),
    (
        (3, 12),
        "generic_function",
        """
        def f[T](x: T, n: int = 2) -> T:
            return x * n + 1
        """,
    ),
    (
        (3, 12),
        "generic_function_that_names_its_parameter",
        """
        def f[T: (int, float), *Ts, **P](x):
            return x * 2, T.__name__, Ts.__name__, P.__name__
        """,
    ),
    (
        (3, 12),
        "generic_functions_inside",
        """
        def f(x):
            k = 3
            def g[T: (int, float)](y: T, *rest: T) -> list[T]:
                return y * k
            def h[S](y: S):
                return y - k, S.__name__
            for i in range(3):
                def last[R](y: R) -> R:
                    return y + i
            return g(x), h(x), last(x), g.__type_params__[0].__name__
        """,
    ),
    (
        (3, 12),
        "method_of_a_generic_class",
        """
        class Scaler[T]:
            __by = 3
            def scale(self, x: T, by: T | None = None) -> "Scaler[T]":
                return x * self.__by
            def named[S](self, x: S) -> S:
                return x + self.__by, S.__name__
        def f(x):
            return Scaler().scale(x), Scaler().named(x)
        """,
    ),
    (
        (3, 12),
        "type_statement",
        """
        Outside = int | float
        def f(x):
            scale = 1
            if scale == 1:
                type Number = Outside
            type Pair[T] = tuple[T, Number]
            n: Number = 2
            return x * n, Number.__name__, str(Number.__value__), str(Pair[int].__args__)
        """,
    ),
    (
        (3, 12),
        "type_statement_in_a_loop",
        """
        def f(x):
            y = x
            for i in range(3):
                type T = tuple[i, "text"]
                if y[0] < 5:
                    y = y * 2
            return y, str(T.__value__), i
        """,
    ),
    (
        (3, 12),
        "type_statement_for_another_function",
        """
        def f(x):
            T = None
            def g(y):
                nonlocal T
                type T = int
                return y + 1
            return g(x), str(T.__value__)
        """,
    ),
    (
        (3, 12),
        "quotes_in_formatted_strings",
        """
        def f(x):
            d = {"a": x * 2}
            return d["a"], f"{len(d["a"])} {'\\n'.join(["p", f"{x.ndim!r:>{2 + 1}}"])}"
        """,
    ),
    (
        (3, 12),
        "comprehensions_share_the_frame",
        """
        def f(x):
            k = 2
            rows = [x * i + k for i in range(3) if i != 1]
            i = 7
            return rows, {i: [j * i for j in range(i)] for i in range(3)}, i
        """,
    ),
    (
        (3, 13),
        "defaults_of_type_parameters",
        """
        def f[T = int, *Ts = *tuple[int, str], **P = [int]](x: T) -> T:
            def g[S: int = bool](y: S) -> S:
                return y * 2
            return g(x), str(T.__default__), str(g.__type_params__[0].__default__)
        """,
    ),
    (
        (3, 13),
        "names_of_the_frame",
        """
        def f(x):
            total = x.sum()
            while total > 1:
                total = total / 2
                x = x + 1
            return total, x
        """,
    ),
    (
        (3, 14),
        "template_strings",
        """
        def f(x):
            n = len(x)
            t = t"{n} of {x.shape[0] + 1!r:>{n}} and {n = }"
            return x * 2, t.strings, t.values, [
                (i.expression, i.conversion, i.format_spec) for i in t.interpolations]
        """,
    ),
    (
        (3, 14),
        "lazy_annotations",
        """
        def f(x):
            y = x * 2
            for i in range(2):
                y = y + i
            def g(z: Later, *rest: i) -> Missing:
                return z + y
            Later = np.float64
            names = g.__annotate__.__code__.co_name
            return g(x), names
        """,
    ),
    (
        (3, 14),
        "annotations_asked_for",
        """
        Outside = 5
        def f(x):
            def g(z: Later, w: Outside = 1) -> np.ndarray:
                return z + w
            Later = np.float64
            return g(x), str(g.__annotations__)
        """,
    ),
    (
        (3, 14),
        "except_without_brackets",
        """
        def f(x):
            y = x
            try:
                y = y * 2
                {}["missing"]
            except ValueError, KeyError:
                y = y + 1
            return y
        """,
    ),
    (
        (3, 14),
        "keywords_of_builtins",
        """
        import functools
        def f(x):
            rows = list(map(lambda a, b: a + b, [x, x], [1, 2], strict=True))
            return rows, functools.reduce(lambda a, b: a * b, [x, x], initial=x + 1)
        """,
    ),
    (
        (3, 14),
        "placeholders",
        """
        import functools
        def g(a, b, c=1.0):
            return a - b * c
        h = functools.partial(g, functools.Placeholder, 2.0)
        def f(x):
            inside = functools.partial(g, functools.Placeholder, x, c=3.0)
            return h(x, 3.0), inside(x * 2)
        """,
    ),
    (
        (3, 14),
        "jumps_from_finally",
        """
        def f(x):
            for i in range(5):
                try:
                    x = x * 2
                    if i == 3:
                        return x
                finally:
                    if i == 2:
                        break
            return x, i
        """,
    ),
]
HERE = [c for c in CASES if sys.version_info >= c[0]]
NAMES = [c[1] for c in HERE]
# Cases that are not captured whole, with the reason if it is the rewriter's.
BREAKS = {
    "except_star": r"line 4 has except\*",
    "type_statement": None,
    "type_statement_in_a_loop": None,
    "type_statement_for_another_function": "line 6 defines a type for other functions",
    "template_strings": None,
}


@pytest.fixture
def module(request, tmp_path, monkeypatch):
    """The module of a case, imported from a file."""
    _, name, text = request.param
    lines = textwrap.dedent(text).strip().splitlines(keepends=True)
    lines.insert(lines[0].startswith("from __future__"), "import numpy as np\n")
    (tmp_path / f"case_{name}.py").write_text("".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python gives syntax warnings only once
        yield importlib.import_module(f"case_{name}")
    del sys.modules[f"case_{name}"]


def assert_same(actual, expected):
    assert type(actual) is type(expected)
    if isinstance(expected, tuple | list):
        for a, b in zip(actual, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, dict):
        assert_same(list(actual.items()), list(expected.items()))
    else:
        np.testing.assert_array_equal(actual, expected)


X = np.arange(1.0, 5.0)


@pytest.mark.parametrize("module", HERE, indirect=True, ids=NAMES)
@pytest.mark.parametrize("scope", [PlainScope, ForgetfulScope])
def test_rewritten_it_does_the_same(module, scope, request):
    name = module.__name__.removeprefix("case_")
    if BREAKS.get(name) is not None:
        with pytest.raises(NotRewritable, match=BREAKS[name]):
            rewrite(module.f)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rewritten = plain(module.f, scope)
    assert_same(rewritten(X.copy()), module.f(X.copy()))


@pytest.mark.parametrize("module", HERE, indirect=True, ids=NAMES)
def test_compiled_it_does_the_same(module):
    name = module.__name__.removeprefix("case_")
    compiled = cinductor.compile(module.f, backend="interp", fullgraph=name not in BREAKS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("error", cinductor.CinductorWarning)
        for _ in range(3):
            assert_same(compiled(X.copy()), module.f(X.copy()))


def test_annotations_are_the_functions(tmp_path, monkeypatch):
    (tmp_path / "annotated_module.py").write_text(
        "import cinductor\nlate = 3\n"
        "def f(x: late, y: 'text' = 2) -> float:\n    return x + y\ng = cinductor.compile(f)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("annotated_module")
    assert module.g.__annotations__ == {"x": 3, "y": "text", "return": float}
    assert inspect.signature(module.g) == inspect.signature(module.f)
    module.g.__annotations__ = {"x": 4}
    assert module.g.__annotations__ == {"x": 4} and module.f.__annotations__["x"] == 3
    del module.g.__annotations__
    if sys.version_info >= (3, 14):
        assert module.g.__annotations__ == module.f.__annotations__


@pytest.mark.skipif(sys.version_info < (3, 14), reason="before Python 3.14 annotations are evaluated with the def")
def test_annotations_may_name_what_comes_later(tmp_path, monkeypatch):
    (tmp_path / "later_module.py").write_text(
        "import cinductor\n@cinductor.compile\ndef f(x: Later) -> Later:\n    return x + 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("later_module")
    np.testing.assert_array_equal(module.f(X), X + 1)
    with pytest.raises(NameError, match="Later"):
        _ = module.f.__annotations__
    module.Later = int
    assert module.f.__annotations__ == {"x": int, "return": int}


def test_functions_that_are_returned_keep_their_annotations():
    """Also functions of the captured call, with real arrays as annotations."""

    def program(x):
        y = x + 1

        def inner(a: int, b: "text" = 2, *, c: y = 1) -> float:  # noqa: F821
            return a * b + y

        return y, inner

    compiled = cinductor.compile(program, backend="interp")
    for _ in range(3):
        y, inner = compiled(X)
        np.testing.assert_array_equal(inner(X), X * 2 + y)
        assert inner.__annotations__ == {"a": int, "b": "text", "c": y, "return": float}
        assert inner.__annotations__["c"] is y


@pytest.mark.skipif(sys.version_info < (3, 14), reason="before Python 3.14 annotations are evaluated with the def")
def test_functions_that_are_returned_may_name_what_comes_later(monkeypatch):
    from annotationlib import Format, get_annotations

    def program(x):
        def inner(a: Later) -> float:  # noqa: F821
            return a + x

        return x + 1, inner

    compiled = cinductor.compile(program, backend="interp")
    for _ in range(2):
        _, inner = compiled(X)
        assert get_annotations(inner, format=Format.STRING) == {"a": "Later", "return": "float"}
        with pytest.raises(NameError, match="Later"):
            _ = inner.__annotations__
    monkeypatch.setitem(globals(), "Later", int)
    assert inner.__annotations__ == {"a": int, "return": float}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of Python 3.12")
def test_functions_that_are_returned_keep_their_type_parameters(tmp_path, monkeypatch):
    (tmp_path / "generic_module.py").write_text(
        "def f(x):\n    def inner[T](a: T) -> T:\n        return a + x\n    return x + 1, inner\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    compiled = cinductor.compile(importlib.import_module("generic_module").f, backend="interp")
    for _ in range(2):
        _, inner = compiled(X)
        (parameter,) = inner.__type_params__
        assert parameter.__name__ == "T"
        assert inner.__annotations__ == {"a": parameter, "return": parameter}


inf, nan = math.inf, math.nan
COMPLEX = [1 + 2j, complex(0.0, -0.0), complex(inf, 1.0), complex(-0.0, nan), complex(1e16, -0.0)]
REAL = [0.5, -0.0, inf, 3, True]
OPERATIONS = {
    "sums": lambda x, a, b, c: (a + b, b + a, a + 1, 1j + b, a + c),
    "differences": lambda x, a, b, c: (a - b, b - a, 1 - a, b - 1j, a - c),
    "products": lambda x, a, b, c: (a * b, b * a, 2 * a, b * 1j, a * c),
    "quotients": lambda x, a, b, c: (a / 2, a / 0.5, -a),
    "with an np.float64": lambda x, a, b, c: (a + x[1], x[1] * a, 1j * x[1], a - x[1], a * x[2]),
    "sum": lambda x, a, b, c: (sum([a, b, c, -a]), sum([b, c, 3, a]), sum([c] * 9, a)),
    "sum of kinds": lambda x, a, b, c: (
        sum([a, 1, True, x[1], b]),
        sum([0.1] * 3 + [a] + [0.1] * 3),
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_complex_numbers_of_python(name):
    """Equal to the sign of zeros, as in this version of Python."""
    function = OPERATIONS[name]
    compiled = cinductor.compile(lambda x, a, b, c: (x + 1, function(x, a, b, c)), backend="interp")
    for a, b, c in itertools.product(COMPLEX, REAL, [0.1 - 0.3j, complex(-0.0, 0.0)]):
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                actual, expected = compiled(X, a, b, c)[1], function(X, a, b, c)
            assert repr(actual) == repr(expected), (a, b, c)


def test_functions_of_modules_are_those_with_public_names():
    """Modules that are part of the interpreter share one `__loader__`, a class."""
    script = """
import cmath, itertools, math
for module in (cmath, itertools, math):
    module.__loader__ = type(None)
import numpy as np, cinductor
assert cinductor.compile(lambda x: x + math.sqrt(4))(np.ones(2)).tolist() == [3, 3]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
