"""Tests the rewriter: every class of syntax has a row, and rewritten code behaves like the original."""

import ast
import functools
import importlib
import inspect
import linecache
import math
import sys
import textwrap
import traceback
import types

import numpy as np
import pytest
from control_generator import Generator
from rewriting import ForgetfulScope, plain

import cinductor
from cinductor import _core
from cinductor.capture.hooks.scope import PlainScope
from cinductor.capture.pieces import split
from cinductor.capture.syntax import cfg, jumps, rows
from cinductor.capture.syntax.names import Names, duplicate
from cinductor.capture.syntax.rewrite import NotRewritable, find_function, print_rewritten, rewrite
from cinductor.capture.syntax.rows import BREAK, CAPTURED, KEPT, SYNTAX
from cinductor.testing import check

GLOBAL = 3


def classes_of(base):
    found = set()
    for cls in base.__subclasses__():
        deprecated = cls.__module__ != "ast" and cls.__module__ != "_ast"
        if not deprecated and cls.__name__ not in (
            "Num",
            "Str",
            "Bytes",
            "NameConstant",
            "Ellipsis",
        ):
            found.add(cls.__name__)
    return found


def test_every_class_of_syntax_has_a_row():
    missing = (classes_of(ast.stmt) | classes_of(ast.expr)) - set(SYNTAX)
    assert not missing
    for name, row in SYNTAX.items():
        assert row.verdict in (KEPT, CAPTURED, BREAK) and row.reason, name


def test_a_class_of_syntax_is_one_row():
    """Scopes, flow and pieces of a statement come from its row."""

    class Give(ast.stmt):
        """give value as name, while block"""

        _fields = ("value", "name", "block")

    tree = ast.parse("def f(x):\n    a = x\n    pass\n    return a, k").body[0]
    (give, inner) = (Give(ast.Name("a", ast.Load()), "k", []), ast.parse("b = k\ncontinue").body)
    give.block, tree.body[1] = inner, give
    rows.add_row(Give, rows.SyntaxRow(KEPT, "a name", "value !name", blocks="block"))
    try:
        assert Names(tree).bound == {"x", "a", "k", "b"} and Names(tree).loads == set()
        assert split.binds(give) == {"k", "b"} and split.own_binds(give) == ["k"]
        assert jumps.blocks_of(give) == [inner] and jumps.jumps_of([give]) == [inner[1]]
        flow = cfg.Cfg(tree.body, "x")
        assert flow.before(give) == {"a"} and flow.sure(tree.body[2]) == {"x", "a", "k"}
    finally:
        del rows.ROWS[Give], rows.FLOW[Give]
    assert "k" not in Names(tree).bound


def test_syntax_that_breaks_says_so():
    def generator(x):
        yield x

    async def coroutine(x):
        await x

    def defines(x):
        class Inner:
            pass

        return Inner

    def frames(x):
        return locals()

    for fn, word in (
        (generator, "generator"),
        (coroutine, "coroutine"),
        (defines, "class"),
        (frames, r"locals\(\)"),
    ):
        with pytest.raises(NotRewritable, match=word):
            rewrite(fn)


# --- behaviour ----------------------------------------------------------------------------------


def everything(a, b=2, *rest, c=4, **named):
    """Docstring."""
    out = [a, b, *rest]
    d = {"c": c, **named}
    for i, (k, v) in enumerate(sorted(d.items())):
        out.append((i, k, v))
    while len(out) < 12:
        out += [len(out)]
        if out[-1] > 100:
            break
    else:
        out.append("else")
    (x, *ys), z = (out[:3], out[3])
    first = second = x
    m, n = p = (1, 2)
    out[0], out[1] = out[1], out[0]
    out[2:4] = []
    del out[-1]
    text = f"{x!r:>5} {len(ys)} {z}"
    squares = {q: q * q for q in range(4) if q % 2}
    nested = [i * j for i in range(3) for j in range(i)]
    total = sum(q for q in nested) if nested else None
    both = (a and b) or (not c)
    chain = 0 < b <= 2 < 5
    try:
        d["missing"]
    except KeyError as error:
        caught = error.args
    finally:
        done = True
    with open(__file__) as file:
        length = len(file.readline())
    if (walrus := len(out)) > 5:
        text += str(walrus)
    match d:
        case {"c": value, **others}:
            matched = (value, others)
        case _:
            matched = None
    if not done:
        raise AssertionError("never")
    return out, first is second, m, n, p, text, squares, total, both, chain, caught, length, matched


def test_one_function_of_everything():
    expected = everything(1, 2, 3, c=5, e=6)
    assert plain(everything)(1, 2, 3, c=5, e=6) == expected
    assert cinductor.compile(everything)(1, 2, 3, c=5, e=6) == expected


def make_counter():
    count = 0

    def add(n):
        nonlocal count
        count += n
        return count

    return add, lambda: count


def test_cells_are_shared():
    add, count = make_counter()
    assert plain(add)(5) == 5
    assert count() == 5 and add(1) == 6
    traced = cinductor.compile(add)
    assert traced(4) == 10 and traced(4) == 14 and count() == 14


class Base:
    __hidden = 7

    def __init__(self, n):
        self.n = n
        self.__n = n + 1

    def method(self, x):
        return x + self.__n + self.__hidden + GLOBAL

    @classmethod
    def create(cls, n):
        return cls(n)

    @property
    def twice(self):
        return self.n * 2


class Derived(Base):
    def method(self, x):
        return super().method(x) * 2 + self.twice

    def who(self):
        return __class__.__name__


def test_classes():
    d = Derived(3)
    assert plain(Derived.method)(d, 1) == d.method(1)
    assert plain(Derived.who)(d) == "Derived"
    check(lambda x: Derived(2).method(x) + Derived.create(4).n, np.arange(4.0))
    assert cinductor.compile(d.method)(np.ones(2)).tolist() == d.method(np.ones(2)).tolist()


def test_private_names_are_mangled():
    assert plain(Base.method)(Base(1), 1) == Base(1).method(1)
    assert "_Base__n" in print_rewritten(Base.method)


def test_recursion_and_globals():
    def factorial(n):
        return 1 if n <= 1 else n * factorial(n - 1)

    assert plain(factorial)(6) == 720
    assert cinductor.compile(factorial)(6) == 720


def test_defaults_and_signature():
    def f(a, /, b=[1, 2], *args, c=3, **kwargs):  # noqa: B006
        return a, b, args, c, kwargs

    new = plain(f)
    assert new(1) == f(1) and new(1)[1] is f.__defaults__[0]
    assert inspect.signature(cinductor.compile(f)) == inspect.signature(f)


def test_two_lambdas_on_a_line():
    f, g = (lambda x: x + 1), (lambda x: x * 10)
    assert plain(f)(5) == 6 and plain(g)(5) == 50
    several = [lambda x, k=k: x + k for k in range(3)]
    assert [plain(h)(1) for h in several] == [1, 2, 3]
    spread = functools.reduce(
        lambda a, b: a + b,
        [1, 2, 3],
    )
    assert spread == 6


def test_shared_nodes_may_have_attributes(monkeypatch):
    """IPython's packages give each node a parent, and all trees share `Load()`."""
    name = ast.parse("x").body[0].value
    monkeypatch.setattr(name.ctx, "parent", name, raising=False)
    assert ast.dump(duplicate(name), include_attributes=True) == ast.dump(name, include_attributes=True)


def test_decorated_and_nested():
    def twice(fn):
        @functools.wraps(fn)
        def inner(*args):
            return fn(*args) * 2

        return inner

    @twice
    def f(x):
        @twice
        def g(y):
            return y + x

        return g(1)

    assert plain(f)(3) == f(3) == 16
    assert plain(f.__wrapped__)(3) == f.__wrapped__(3)


def test_strings_of_several_lines_keep_their_text():
    def f():
        return """one
    two
  three"""

    assert plain(f)() == f()


def users(error):
    """The frames of a traceback."""
    entries = traceback.extract_tb(error.__traceback__)
    return [(t.name, t.filename, t.lineno) for t in entries]


def test_line_numbers_and_files_survive():
    def f(x):
        y = x + 1

        return y["a"]

    def lines_of(fn):
        try:
            fn(np.ones(2))
        except IndexError as error:
            return users(error)[1:]

    assert lines_of(plain(f)) == lines_of(f)
    assert lines_of(cinductor.compile(f)) == lines_of(f)


def test_tracebacks_show_only_the_users_frames():
    def helper(x):
        raise ValueError("mine")

    def f(x):
        return helper(x + 1)

    with pytest.raises(ValueError, match="mine") as caught:
        cinductor.compile(f)(np.ones(2))
    names = [name for name, _, _ in users(caught.value)]
    assert names[1:] == ["f", "helper"]
    assert caught.value.__context__ is None


def test_an_edited_file_is_not_trusted(tmp_path, monkeypatch):
    path = tmp_path / "edited_module.py"
    path.write_text("def f(x):\n    return x + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("edited_module")
    path.write_text("def f(x):\n    return x + 200\n")
    import linecache

    linecache.checkcache()
    with pytest.raises(NotRewritable, match="not what runs"):
        rewrite(module.f)
    assert cinductor.compile(module.f)(np.ones(2)).tolist() == [2.0, 2.0]


def test_no_source():
    scope = {"np": np, "helper": lambda x: x}
    exec("def f(x):\n    y, *z = [x]\n    return np.sin(y) + 1\ndef g(x):\n    return helper(x)", scope)
    with pytest.raises(NotRewritable, match="not found"):
        rewrite(scope["f"])
    check(scope["f"], np.ones(3), backend="interp")
    check(scope["g"], np.ones(3), backend="interp")


def test_future_flags(tmp_path, monkeypatch):
    (tmp_path / "future_module.py").write_text(
        "from __future__ import annotations\n"
        "def f(x):\n"
        "    def g(y: Undefined) -> Missing:\n"
        "        return y + 1\n"
        "    return g(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("future_module")
    assert plain(module.f)(1) == 2


def test_sets_of_constants_have_no_order():
    def f(x):
        return x in {0, 8}

    for order in ((0, 8), (8, 0)):  # two ints that collide
        consts = [frozenset(order) if type(c) is frozenset else c for c in f.__code__.co_consts]
        code = f.__code__.replace(co_consts=tuple(consts))
        assert find_function(code, f.__qualname__) is not None, order


def test_code_is_rewritten_once():
    def f(x):
        return x

    assert rewrite(f) is rewrite(f)


MODULES = (
    "textwrap string fractions statistics heapq bisect colorsys difflib shlex html ast "
    "posixpath fnmatch calendar datetime copy keyword json.decoder json.encoder decimal numbers "
    "random reprlib base64 quopri urllib.parse email.utils configparser argparse dataclasses"
).split()


def functions_of(module):
    found = [f for f in vars(module).values() if isinstance(f, types.FunctionType)]
    for cls in vars(module).values():
        if isinstance(cls, type) and cls.__module__ == module.__name__:
            found += [f for f in vars(cls).values() if isinstance(f, types.FunctionType)]
    return [f for f in found if f.__module__ == module.__name__]


@pytest.mark.parametrize("name", MODULES)
def test_the_standard_library_survives(name):
    """Every function is rewritten, or refused for a reason other than doubt about its source."""
    for fn in functions_of(importlib.import_module(name)):
        try:
            rewrite(fn)
        except NotRewritable as reason:
            assert "not what runs" not in str(reason), fn
            assert "does not compile" not in str(reason), fn


CALLS = [
    (textwrap.dedent, ("  a\n   b\n",)),
    (textwrap.fill, ("many words " * 9, 20)),
    (textwrap.shorten, ("many words " * 9, 20)),
    (importlib.import_module("calendar").monthrange, (2024, 2)),
    (importlib.import_module("colorsys").rgb_to_hls, (0.1, 0.5, 0.9)),
    (importlib.import_module("colorsys").hsv_to_rgb, (0.3, 0.5, 0.9)),
    (importlib.import_module("difflib").get_close_matches, ("appel", ["ape", "apple", "peach"])),
    (importlib.import_module("fnmatch").translate, ("*.py[co]",)),
    (importlib.import_module("html").escape, ("<a href='x'>",)),
    (importlib.import_module("html").unescape, ("&lt;p&gt; &amp;",)),
    (importlib.import_module("shlex").split, ("a 'b c' d",)),
    (importlib.import_module("shlex").quote, ("it's",)),
    (importlib.import_module("statistics").mean, ([1, 2, 4],)),
    (importlib.import_module("statistics").median, ([1, 5, 2],)),
    (importlib.import_module("statistics").pstdev, ([1.5, 2.5, 4.0],)),
    (importlib.import_module("statistics").quantiles, ([1, 2, 3, 4, 5],)),
    (importlib.import_module("urllib.parse").quote, ("a b/ü",)),
    (importlib.import_module("urllib.parse").parse_qs, ("a=1&b=2&a=3",)),
    (importlib.import_module("heapq").nsmallest, (2, [5, 1, 4])),
    (importlib.import_module("copy").deepcopy, ({"a": [1, (2, 3)]},)),
    (importlib.import_module("fractions").Fraction.limit_denominator, None),
    (importlib.import_module("ast").literal_eval, ("{'a': [1, 2.5, None]}",)),
    (importlib.import_module("base64").b64encode, (b"hello",)),
    (importlib.import_module("email.utils").parseaddr, ("A B <a@b.c>",)),
    (importlib.import_module("string").capwords, ("ab cd",)),
]


@pytest.mark.parametrize("fn, args", CALLS, ids=[f.__qualname__ for f, _ in CALLS])
def test_rewritten_library_functions_behave_the_same(fn, args):
    """In the plain scope, and captured with the real tracer, effects included."""
    import copy
    import fractions

    if args is None:
        args = (fractions.Fraction(math.pi), 100)
    expected = fn(*copy.deepcopy(args))
    assert plain(fn)(*copy.deepcopy(args)) == expected
    assert cinductor.compile(fn, backend="interp")(*copy.deepcopy(args)) == expected


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects have positions from Python 3.11 on")
def test_positions_point_at_the_users_columns():
    def f(x):
        return x.real + x.nothing

    try:
        plain(f)(1)
    except AttributeError as error:
        frame = error.__traceback__.tb_next
        positions = list(frame.tb_frame.f_code.co_positions())[frame.tb_lasti // 2]
    source = inspect.getsource(f).splitlines()[1]
    assert source[positions[2] : positions[3]] == "x.nothing"


# --- control flow -------------------------------------------------------------------------------


class Quiet:
    """A context manager that swallows ValueError."""

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log("enter")

    def __exit__(self, kind, error, tb):
        self.log(("exit", kind))
        return kind is ValueError


def load(source, name):
    """The function f of a source text that has its own file name."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {"Quiet": Quiet}
    exec(compile(source, name, "exec"), scope)
    return scope["f"]


def behaviour(fn, name, *args):
    """The output, result and exceptions of a call, with line numbers."""
    said = []

    def log(value=None):
        said.append(value)
        if len(said) > 500:
            raise KeyboardInterrupt("too long")
        return value if type(value) is int else 0

    try:
        result = fn(*args, log)
    except BaseException as error:
        entries = traceback.extract_tb(error.__traceback__)
        # Comprehensions have frames of their own only before Python 3.12. A comprehension that became a loop has one.
        lines = [(t.name, t.lineno) for t in entries if t.filename == name and t.name not in ("<listcomp>", "<genexpr>")]
        return said, type(error), str(error), lines, repr(error.__context__)
    return said, result


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("scope", [PlainScope, ForgetfulScope])
def test_random_control_flow(part, scope):
    for seed in range(part * 30, part * 30 + 30):
        name = f"<random {seed}>"
        source = Generator(seed).source()
        fn = load(source, name)
        try:
            new = plain(fn, scope)
        finally:
            linecache.cache.pop(name)
        for args in ((1, 2), (0, -1), (None, 3)):
            assert behaviour(new, name, *args) == behaviour(fn, name, *args), source


def test_sites_say_what_is_carried():
    def f(a, n):
        total = 0
        for i in range(n):
            step = a[i]
            if step < 0:
                break
            total = total + step
        else:
            i = -1
        while total > n:
            total -= 1
        return total, i

    loop, branch, orelse, rest = rewrite(f).sites
    first = f.__code__.co_firstlineno
    assert (loop.kind, loop.line, loop.flag) == ("for", first + 2, "__ci_break1")
    assert loop.state == ("__ci_break1", "i", "step", "total")
    assert loop.carried == ("i", "total")  # i keeps its value if no iteration runs
    assert loop.live_out == ("__ci_break1", "i", "total")
    assert (branch.kind, branch.arms) == ("if", 1)
    assert branch.state == branch.live_out == ("__ci_break1", "total")
    assert (orelse.state, orelse.line) == (("i",), first + 8)
    assert (rest.kind, rest.state, rest.carried, rest.flag) == (
        *("while", ("total",)),
        *(("total",), None),
    )


def test_returns_in_loops_are_flags():
    def f(a):
        for row in a:
            for x in row:
                if x > 3:
                    return x
        return None

    outer, inner, _, rest = rewrite(f).sites
    assert outer.flag == inner.flag == "__ci_return"
    assert outer.carried == inner.carried == ()
    assert rest.kind == "if" and "__ci_value" in rest.state


def test_what_functions_inside_load_is_live():
    def f(n):
        k = 0
        get = lambda: k  # noqa: E731
        for i in range(n):
            k = i
        return get()

    (loop,) = rewrite(f).sites
    assert "k" in loop.live_out and "i" not in loop.live_out


def test_jumps_out_of_finally_stay():
    def f(n):
        for i in range(n):  # noqa: B007
            try:
                raise ValueError
            finally:
                break  # noqa: B012
        return i

    assert not rewrite(f).sites and plain(f)(3) == f(3) == 0


def test_deep_nesting_stays_pythons():
    lines = ["def f(x, log):"]
    for depth in range(1, 20):
        lines.append("    " * depth + ("if x > 0:" if depth % 2 else f"for i{depth} in (1, 2):"))
    lines += ["    " * 20 + "if x == 3: return log(x)", "    " * 20 + "x += 1"]
    fn = load("\n".join(lines) + "\n", "<deep>")
    new = plain(fn)
    assert 4 < len(rewrite(fn).sites) < 20
    for x in (-1, 1, 3):
        assert behaviour(new, "<deep>", x) == behaviour(fn, "<deep>", x)


def test_many_branches():
    lines = ["def f(x, log):", "    if x == -1: return 0"]
    lines += [f"    elif x == {k}: y = log({k})" for k in range(120)]
    lines += [f"    if x == {k}: return {k}\n    log({k})" for k in range(0, 120, 7)]
    fn = load("\n".join(lines) + "\n", "<many>")
    new = plain(fn)
    for x in (-1, 0, 35, 119, 200):
        assert behaviour(new, "<many>", x) == behaviour(fn, "<many>", x)


def test_names_of_unreachable_code_stay_local():
    def f(a):
        for _ in range(a):
            return GLOBAL  # noqa: F823
            GLOBAL = 5  # noqa: F841
        return 1

    assert plain(f)(0) == 1
    with pytest.raises(UnboundLocalError, match="'GLOBAL'"):
        plain(f)(1)


def test_operands_keep_their_own_values():
    class Sized:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

    def f(a, b):
        return (a or b, a and b, not a, b if a else a, [x or b for x in (a, b)], a or None or b)

    for a, b in ((Sized(0), Sized(2)), (Sized(3), Sized(0)), (0, []), ("x", None)):
        found = cinductor.compile(f, backend="interp")(a, b)
        assert repr(found) == repr(f(a, b))


def test_no_warnings_of_the_compilers(recwarn):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fn = load("def f(x, log):\n    return x is 5\n", "<literal>")
    rewrite(fn)
    assert not recwarn.list


# --- the syntax tree, built and positioned in C -------------------------------------------------------


def parts_of(node):
    """The child nodes; operators and contexts have neither children nor positions."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list):
            yield from (part for part in value if isinstance(part, ast.AST))
        elif isinstance(value, ast.AST) and value._fields:
            yield value


def test_walks_find_what_ast_finds():
    tree = ast.parse(inspect.getsource(functools))
    found = [tree]
    for node in found:
        assert _core.children(node) == list(parts_of(node))
        found += parts_of(node)
    assert _core.walk(tree) == found


def test_nodes_are_placed():
    old = ast.parse("a +\\\n  b").body[0].value
    new = _core.placed(ast.Name("c", ast.Load()), old.right)
    assert (new.lineno, new.col_offset, new.end_lineno, new.end_col_offset) == (2, 2, 2, 3)
    assert _core.place_of(old) == dict(lineno=1, col_offset=0, end_lineno=2, end_col_offset=3)
    assert _core.place_of(ast.Load()) == {} and _core.placed(new, ast.Load()).lineno == 2
    for misuse in (lambda: _core.walk(1), lambda: _core.children("a"), lambda: _core.placed(1, old)):
        with pytest.raises((TypeError, AttributeError)):
            misuse()


def test_a_method_is_another_after_an_effect():
    class Asked:
        stage = None
        ask = _core.Hook(lambda self, *a, **k: ("early", a, k), lambda self, *a, **k: ("late", a, k))

    asked = Asked()
    assert asked.ask(1, b=2) == ("early", (1,), {"b": 2})
    for has_fallen_back, effects, when in ((False, 0, "early"), (False, 1, "late"), (True, 0, "late")):
        asked.stage = types.SimpleNamespace(tracer=_core.Tracer("f", options={}))
        asked.stage.tracer.has_fallen_back, asked.stage.tracer.effects = has_fallen_back, effects
        held = asked.ask
        assert held() == Asked.ask(asked) == (when, (), {})
    asked.stage = object()
    with pytest.raises(AttributeError):
        asked.ask()
    with pytest.raises(TypeError):
        Asked.ask()
