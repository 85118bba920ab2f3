"""Runs every function of some modules of the standard library rewritten, and compares it with the original.

Each module is loaded without its C accelerator. With the plain scope, constructs do what Python does; the
forgetful scope also drops every name that a construct does not declare live.
"""

import functools
import importlib.util
import sys
import types

import pytest
from rewriting import ForgetfulScope, plain

import cinductor.capture.calls.numbers  # noqa: F401  # needs an accelerator, and is imported late otherwise
from cinductor.capture.hooks.scope import PlainScope
from cinductor.capture.syntax.rewrite import NotRewritable

ACCELERATORS = ("_heapq", "_bisect", "_json", "_decimal", "_datetime", "_statistics", "_operator")


def fresh(name, monkeypatch):
    """A second copy of a module, without its C accelerator."""
    for accelerator in ACCELERATORS:
        monkeypatch.setitem(sys.modules, accelerator, None)
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # dataclasses and others look there
    spec.loader.exec_module(module)
    return module


def rewrite_all(module, scope):
    """Replace every function of the module that can be rewritten; return their number."""
    counts = [0]

    @functools.cache
    def new(fn):
        if fn.__code__.co_filename != module.__file__:
            return fn
        try:
            found = plain(fn, scope)
        except NotRewritable:
            return fn
        found.__dict__.update(fn.__dict__)
        counts[0] += 1
        return found

    def replaced(value):
        if type(value) is types.FunctionType:
            return new(value)
        if type(value) in (staticmethod, classmethod):
            return type(value)(replaced(value.__func__))
        if type(value) is property:
            parts = (value.fget, value.fset, value.fdel)
            return property(*(p and replaced(p) for p in parts), value.__doc__)
        return value

    owners = [v for v in vars(module).values() if isinstance(v, type)]
    for owner in (module, *(c for c in owners if c.__module__ == module.__name__)):
        for name, value in list(vars(owner).items()):
            other = replaced(value)
            if other is not value and name != "__new__":
                setattr(owner, name, other)
    return counts[0]


TEXT = (
    "The swift brown fox, a-jumping over   the lazy dog's\tback; again and again.\n\nNever  more."
)


def use_textwrap(m):
    return (
        m.wrap(TEXT, 17),
        m.fill(TEXT, 30, initial_indent="* "),
        m.shorten(TEXT, 25),
        m.dedent("   a\n     b\n\n   c"),
        m.indent("a\n\nb", "> "),
    )


def use_heapq(m):
    items = [(i * 37) % 23 for i in range(30)]
    heap = list(items)
    m.heapify(heap)
    popped = [m.heappop(heap) for _ in range(9)]
    m.heappush(heap, 4)
    return (
        popped,
        heap,
        m.nlargest(4, items),
        m.nsmallest(5, items, key=lambda v: -v),
        list(m.merge([1, 4, 9], [2, 3, 11], reverse=False)),
        m.heapreplace(heap, 100),
        m.heappushpop(heap, -1),
    )


def use_bisect(m):
    row = [1, 3, 3, 5, 8]
    m.insort(row, 4)
    return row, [m.bisect_left(row, v) for v in range(10)], m.bisect(row, 3, 1, 4)


def use_statistics(m):
    data = [1, 2.5, 4, 4, 7, 9.25]
    dist = m.NormalDist(3, 2)
    return (
        m.mean(data),
        m.fmean(data),
        m.median_grouped(data),
        m.mode(data),
        m.pvariance(data),
        m.quantiles(data, n=5, method="inclusive"),
        m.linear_regression([1, 2, 3], [2, 4, 7]),
        dist.inv_cdf(0.3),
        dist.quantiles(3),
        m.harmonic_mean([2, 3]),
        m.multimode("aabbc"),
    )


def use_difflib(m):
    a, b = TEXT.split(), TEXT.replace("fox", "cat").replace("again", "twice").split()
    return (
        list(m.unified_diff(a, b)),
        list(m.ndiff(["one\n", "two\n"], ["ore\n", "tree\n"])),
        m.SequenceMatcher(None, a, b).get_opcodes(),
        m.get_close_matches("appel", ["ape", "apple", "peach"]),
    )


def use_decoder(m):
    text = '{"a": [1, 2.5, -3e2, null, true], "b\\u00e9\\n": {"c": "d"}, "e": []}'
    found = [m.JSONDecoder().decode(text), m.py_scanstring('a\\"b\\ud834\\udd1e" rest', 0)]
    for bad in ("{", "[1,]", '{"a" 1}', '"\\q"'):
        try:
            m.JSONDecoder().decode(bad)
        except m.JSONDecodeError as error:
            found.append(str(error))
    return found


def use_fractions(m):
    one, two = m.Fraction("3.25"), m.Fraction(-7, 12)
    return [
        *(one + two, one * two, one // two, one % two, one**3, two**-2, divmod(one, two)),
        *(one.limit_denominator(3), round(two, 1), one > two, hash(two), str(two)),
        m.Fraction.from_float(0.375),
    ]


def use_csv(m):
    import io

    text = "a;b;c\n1;'x y';3\n4;;6\n"
    dialect = m.Sniffer().sniff(text)
    rows = list(m.DictReader(io.StringIO(text), dialect=dialect, restkey="more"))
    out = io.StringIO()
    writer = m.DictWriter(out, ["a", "b", "c"], extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return dialect.delimiter, rows, out.getvalue(), m.Sniffer().has_header(text)


def use_calendar(m):
    return (
        m.TextCalendar(6).formatmonth(2024, 2),
        m.monthrange(2023, 2),
        m.HTMLCalendar().formatyear(2025),
    )


def use_shlex(m):
    return m.split('a \'b c\' "d\\"e" f\\ g # no', comments=True), m.join(["x y", "z"])


def use_configparser(m):
    parser = m.ConfigParser()
    parser.read_string("[a]\nx = 1\ny: %(x)s2\n# no\n[b]\nlong = one\n  two\n")
    found = [parser.getint("a", "y"), parser["b"]["long"], parser.sections()]
    try:
        parser.read_string("[a]\nbroken\n")
    except m.Error as error:
        found.append(str(error))
    return found


def use_argparse(m):
    parser = m.ArgumentParser("prog", exit_on_error=False)
    parser.add_argument("first", type=int)
    parser.add_argument("--flag", "-f", action="store_true")
    parser.add_argument("--many", nargs="*", default=[3])
    sub = parser.add_mutually_exclusive_group()
    sub.add_argument("--x")
    sub.add_argument("--y")
    return (
        parser.format_help(),
        vars(parser.parse_args(["4", "-f", "--many", "a", "b", "--x=2"])),
        parser.parse_known_args(["4", "--nope"])[1],
    )


def use_pydecimal(m):
    m.getcontext().prec = 30
    one, two = m.Decimal("3.14159"), m.Decimal("-2.5E+3")
    return [
        *(str(v) for v in (one + two, one * two, two / one, one.sqrt(), one.ln(), one.exp())),
        *(str(v) for v in (one**3, two // one, two % one, one.quantize(m.Decimal(".01")))),
        *(one.compare(two) < 0, f"{two:,.2f}", two.to_eng_string(), one.as_integer_ratio()),
    ]


def use_datetime(m):
    then = m.datetime(2024, 2, 29, 23, 59, 59, 999)
    later = then + m.timedelta(days=366, microseconds=12)
    return [
        *(str(later), (later - then).total_seconds(), then.isocalendar()[:], then.strftime("%j")),
        *(m.date.fromisoformat("2021-03-04").toordinal(), str(m.timedelta(hours=-5) / 7)),
        repr(m.datetime.fromisoformat("2011-11-04T00:05:23+04:00")),
    ]


def use_ast(m):
    import inspect

    source = inspect.getsource(sys.modules[__name__])
    tree = m.parse(source)
    return m.unparse(tree), m.dump(m.parse("x = [1, (2, 3)]")), m.literal_eval("{'a': (1, -2j)}")


USES = {
    "textwrap": use_textwrap,
    "heapq": use_heapq,
    "bisect": use_bisect,
    "statistics": use_statistics,
    "difflib": use_difflib,
    "json.decoder": use_decoder,
    "fractions": use_fractions,
    "csv": use_csv,
    "calendar": use_calendar,
    "shlex": use_shlex,
    "configparser": use_configparser,
    "argparse": use_argparse,
    "_pydecimal": use_pydecimal,
    "_pydatetime" if sys.version_info >= (3, 12) else "datetime": use_datetime,
    "ast": use_ast,
}


@pytest.mark.parametrize("scope", [PlainScope, ForgetfulScope])
@pytest.mark.parametrize("name", USES)
def test_a_rewritten_module_behaves_the_same(name, scope, monkeypatch):
    module = fresh(name, monkeypatch)
    expected = repr(USES[name](module))
    assert rewrite_all(module, scope) >= 3
    assert repr(USES[name](module)) == expected
