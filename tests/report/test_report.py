"""Tests reports: counts against counts made by hand, their contents, and that they are self-contained and can be
pickled.
"""

import ast
import html.parser as html_parser
import json
import pickle
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import programs
import pytest

import cinductor
from cinductor.report import costs, html, kernels, measure, pages, reasons, sizes, svg
from cinductor.report.page import refusals

ROOT = Path(__file__).resolve().parents[2]
X = np.linspace(-1, 1, 120).reshape(12, 10)
V = np.linspace(0, 1, 100)
F = V.astype(np.float32)
N, M = X.shape


def explained(fn, *args, **settings):
    return cinductor.explain(cinductor.compile(fn, backend="interp", **settings), *args)


# --- counts ---------------------------------------------------------------------------------------


def three_points(x):
    return x[:-2] + x[1:-1] + x[2:]


def every_second(x):
    return x[::2] * 2.0


def rows(x):
    return x - x.mean(axis=1, keepdims=True)


def outer(x, y):
    return x[:, None] * y


def picked(x, at):
    return x[at] + 1.0


def triangle(x):
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(i):
            s += x[k]
    return s


# Bytes read and written in memory, and operations, counted by hand.
COUNTED = [
    (lambda x: x * 2 + 1, (V,), 800, 800, 200),
    (lambda x: x * np.float32(2), (F,), 400, 400, 100),
    (lambda x, y: np.where(x > y, x, y), (V, V[::-1].copy()), 1600, 800, 200),  # compare, choose
    (lambda x: x.sum(), (V,), 800, 8, 100),
    (three_points, (V,), 800, 784, 196),
    (every_second, (V,), 400, 400, 50),
    # 12 rows of 10: a sum and a division for each row, a subtraction for each element.
    (rows, (X,), 960, 960, 120 + 12 + 120),
    (outer, (V[:7].copy(), V[:5].copy()), 96, 280, 35),
    (lambda x: x.T.copy(), (X,), 960, 960, 0),
    # The first iteration is a separate kernel, which reads an element and passes a number on.
    (triangle, (V[:20].copy(),), 8 + 8 + 19 * 8, 8 + 8, 1 + 189),
]


@pytest.mark.parametrize("fn, args, read, written, operations", COUNTED)
def test_bytes_and_operations_are_those_counted_by_hand(fn, args, read, written, operations):
    report = explained(fn, *args)
    made = [cost for cost in report.costs if not cost.call]
    assert sum(cost.operations for cost in made) == operations
    assert sum(cost.written for cost in made) == written
    assert sum(cost.read for cost in made) == read
    assert report.stats["bytes"] == read + written and report.stats["operations"] == operations


def test_the_same_with_symbols_for_sizes():
    for fn, args, read, written, operations in (COUNTED[0], COUNTED[4], COUNTED[6]):
        (cost,) = explained(fn, *args, dynamic=True).costs
        assert (cost.read, cost.written, cost.operations) == (read, written, operations)


def test_products_are_counted_and_data_decide_at_most():
    report = explained(lambda a, b: a @ b, X, X.T.copy())
    (cost,) = report.costs
    assert (cost.call, cost.read, cost.written, cost.operations) == ("matmul", 1920, 1152, 2 * 12 * 10 * 12)
    own = {"numerics": "close", "templates": "always"}
    report = cinductor.explain(cinductor.compile(lambda a, b: np.maximum(a @ b, 0), backend="c", options=own), X, X.T.copy())
    (cost,) = report.costs
    assert "template product" in report.kernels and report.kernels_count == 1 and cost.places
    assert (cost.call, cost.read, cost.written, cost.operations) == ("", 1920, 1152, 2 * 12 * 10 * 12 + 12 * 12)
    report = explained(lambda x: x[x > 0.5] * 2, V)
    assert any(cost.is_most for cost in report.costs)
    assert "<=" in str(report)


def test_an_element_that_is_gathered_is_read_once():
    (cost,) = [c for c in explained(picked, V, np.array([3, 3, 99])).costs if "in0" in c.buffers]
    # For each index: a comparison with 0, its sum with the length, and a selection; then the sum.
    assert (cost.operations, cost.read, cost.written) == (3 * 4, 24 + 24, 24)


def test_a_while_is_counted_by_the_iteration():
    def halved(x):
        while x.sum() > 1:
            x = x / 2
        return x

    report = explained(halved, np.ones(40_000) * 9)
    assert any(cost.is_per_iteration for cost in report.costs) and "an iteration" in str(report)


@pytest.mark.parametrize(
    "text, names, value",
    [
        ("3*s0 + 1", {"s0": 4}, 13),
        ("(s0 + 3)//4", {"s0": 6}, 2),
        ("-i0 + 7", {"i0": 2}, 5),
        ("min(s0, 4)*2", {"s0": 9}, 8),
        ("max(u0, u1) % 5", {"u0": 3, "u1": 7}, 2),
        ("u0", {}, None),
    ],
)
def test_sizes(text, names, value):
    assert sizes.value_of(text, names) == value


@pytest.mark.parametrize("text", ["", "3 +", "(s0", "s0 s1", "min(s0", "s0; import os", "*2"])
def test_no_size(text):
    with pytest.raises(ValueError):
        sizes.parse(text)


def test_memory_has_its_peak():
    def two_steps(x):
        y = np.sort(x * 2)
        return np.sort(y + 1)

    memory = explained(two_steps, V).memory
    # The sorted arrays and their inputs; one is freed before the next is allocated.
    assert memory.arguments == 800 and memory.peak == 1600 and not memory.unknown
    assert memory.steps[memory.peak_at].live == memory.peak
    assert memory.steps[-1].live == 800 == sum(step.change for step in memory.steps)
    assert "<- peak" in str(memory)


# --- programs -------------------------------------------------------------------------------------


class Checker(html_parser.HTMLParser):
    """Checks that tags are closed, ids are unique, and links have targets inside the page."""

    VOID = {"input", "meta", "br", "polyline", "rect"}

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        assert tag not in ("script", "link", "img", "iframe", "object") and "src" not in found
        assert not any(name.startswith("on") for name in found)
        if "id" in found:
            self.ids.append(found["id"])
        if "href" in found:
            self.links.append(found["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in self.VOID

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_page(text):
    checker = Checker()
    checker.feed(text)
    assert not checker.open
    assert len(checker.ids) == len(set(checker.ids))
    assert all(link.startswith("#") and link[1:] in checker.ids for link in checker.links)
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import", text.partition("</style>")[0])
    assert "http" not in re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", text, flags=re.S)


def test_every_kernel_of_every_program_has_a_line(monkeypatch):
    """At the smallest sizes, with the interpreter; reports are self-contained pages."""
    monkeypatch.setattr(html.measure, "LONG", 0.0)  # nothing is timed
    for number, (name, row) in enumerate(programs.load().items()):
        report = explained(row.function, *row.make(row.sizes[0], np.random.default_rng(0)))
        for cost in report.costs:
            assert cost.places and all(file and line > 0 for file, line in cost.places), name
        assert len([c for c in report.costs if not c.call]) == report.kernels_count, name
        assert len(str(report).splitlines()) < 110, name
        if number % 10 == 0:
            report.ceilings = html.measure.Ceilings(1e10, 1e10)
            check_page(report._repr_html_())


# --- what is shown --------------------------------------------------------------------------------


def broken(a):
    b = a * 2
    print(end="")
    return b + 1


def test_a_page_first_and_all_on_demand():
    report = explained(lambda x: np.exp(x) / np.exp(x).sum(), V)
    page, full = str(report), report.full()
    assert len(page.splitlines()) < 40 and "graph f(" not in page and "kernels:" in page
    for level in ("graph:", "loops:", "kernels:", "guards: ", "memory:", "wrapper:"):
        assert f"\n{level}" in full
    assert ".full()" in page


def test_completion_shows_the_parts():
    report = explained(broken, V)
    names = "graph loops kernels procs source wrapper guards breaks memory stats costs full json save".split()
    assert set(names) <= set(dir(report))
    assert isinstance(report.graph, str) and isinstance(report.stats, dict)


def counted(x):
    counts = {}
    for v in x:
        counts[int(v)] = counts.get(int(v), 0) + 1
    return counts


def test_a_report_has_the_users_lines():
    """Time by line, and lines after the names of loops and buffers; no source of the library."""
    x = np.arange(90) % 7
    report = cinductor.explain(cinductor.compile(counted, mode="now"), x).measure(x)
    page = report._repr_html_()
    assert "list_sources" not in page.partition("<h2>Kernels")[0] and len(report.regions) == 1
    assert page.count('<span class="bar"') >= 2 and "width:100%" in page
    (why,) = [why for why in report.apart if "run sequentially" in why]
    assert re.match(r"the iterations of t\d+ \(lines? [\d, -]+\) run sequentially", why)


def test_a_break_has_its_hint_and_page():
    report = explained(broken, V)
    (found,) = report.breaks
    assert found.hint == "return the value and print it outside"
    assert found.row.page == "python -m cinductor reasons printing"
    assert found.hint in str(report) and found.hint in report._repr_html_()


def test_each_piece_of_a_function_that_breaks_has_its_kernels():
    report = explained(broken, V)
    first = broken.__code__.co_firstlineno
    assert [cost.name for cost in report.costs] == ["a.k0", "b.k0"]
    assert [cost.places[0][1] for cost in report.costs] == [first + 1, first + 3]
    again = pickle.loads(pickle.dumps(report))
    assert str(again) == str(report) and again.graph == report.graph == report.text("graph")
    assert report.every_text("graph").count("graph broken(") == 2 and "  # b\n" in report.full()
    check_page(again._repr_html_())


def test_a_recompile_has_its_hint():
    fast = cinductor.compile(lambda x: x * 2, backend="interp", dynamic=False)
    fast(V)
    fast(V[:7])
    report = cinductor.explain(fast, V[:7])
    assert "x.shape[0] was 100" in report.recompiles[0]
    for text in (str(report), report._repr_html_()):
        assert "cinductor.mark_dynamic(x, axis) or dynamic=True" in text and "cinductor reasons sizes-that-differ" in text


def test_json_has_all_of_it():
    found = json.loads(explained(broken, V).json())
    assert found["breaks"][0]["hint"] and found["breaks"][0]["line"] == broken.__code__.co_firstlineno + 2
    assert found["kernels"][0]["bytes"] == 1600 and found["memory"]["peak"] >= 800
    assert set(found["levels"]) == {"graph", "optimized", "loops", "kernels", "procs", "wrapper", "source"}


def test_reports_are_pickled():
    report = explained(lambda x: x * 3, V)
    again = pickle.loads(pickle.dumps(report))
    assert str(again) == str(report) and again.full() == report.full() and again.json() == report.json()
    np.testing.assert_array_equal(again.result, V * 3)
    check_page(again._repr_html_())
    with pytest.raises(RuntimeError, match="cannot be measured"):
        again.measure(V)
    odd = explained(lambda x: (x, [lambda: 1]), V)
    assert pickle.loads(pickle.dumps(odd)).result is None
    odd.result = [1]
    odd.result.append(odd.result)
    assert pickle.loads(pickle.dumps(odd)).result is None


def test_files_by_their_ending(tmp_path):
    report = explained(broken, V)
    for name, begins in (("a.html", "<!doctype html>"), ("a.json", "{"), ("a.txt", "broken, ")):
        report.save(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(begins)
    with pytest.raises(OSError):
        report.save(tmp_path / "none" / "a.html")


def test_text_of_the_users_stays_text():
    def odd(x):
        script = len("<script>alert(1)</script>")
        return x + (x.size <script) + 1

    check_page(explained(odd, V)._repr_html_())


def test_many_kernels_of_a_line_stand_below_it():
    def many(x):
        for k in range(6):
            x = np.sort(x[1:]) * (k + 2)
        return x

    page = explained(many, V)._repr_html_()
    below = re.search(r'<p class="note chips">(.*?)</p>', page)[1]
    assert below.count('class="chip ') == 12
    check_page(page)


def test_equal_kernels_have_one_chip():
    def repeated(x):
        for _ in range(4):
            x = np.sort(x * 2 + 1)
        return x

    report = explained(repeated, V)
    page = report._repr_html_()
    assert len(report.costs) == 8 and page.count("×4</a>") >= 2 and page.count('class="kernel"') == 2
    check_page(page)


def test_refusals_are_named_by_lines_and_counted():
    why = " are not fused: a reason"
    apart = [f"buf1 (lines 4-5) and buf2 (line 6){why}", f"buf8 (lines 4-5) and buf9 (line 6){why}", f"buf6 (line 8) and buf6 (line 8){why}"]
    apart += ["the iterations of t2 (lines 3-4) run sequentially: iterations conflict on buf0 (line 2)", f"k0 and buf3{why}"]
    wanted = [f"lines 4-5 and line 6{why} (×2)", f"two loop nests of line 8{why}"]
    wanted += ["the iterations of the loop at lines 3-4 run sequentially: iterations conflict on line 2", f"k0 and buf3{why}"]
    assert refusals(types.SimpleNamespace(apart=apart)) == wanted
    stored = ["buf3 is stored where buf0 (line 7) was", "buf5 is stored where buf1 (line 7) was", "buf6 (line 9) is stored where buf2 was"]
    wanted = ["a later result is stored where that of line 7 was (×2)", "the result of line 9 is stored where an earlier one was"]
    assert refusals(types.SimpleNamespace(apart=stored)) == wanted


def test_calls_of_other_packages_are_library_calls():
    """Their names have dots, so the text quotes them."""
    text = 'k0: extern "aten.addmm.default"(in1, in2, in0[+0; 128,256; 1,128]) key "0:0" -> buf0  @/tmp/model.py:8\n'
    (call,), _ = kernels.read(text)
    assert call.call == "aten.addmm.default" and call.result == "buf0" and len(call.operands) == 3


def test_the_memory_chart_has_the_names_of_the_table():
    def repeated(x):
        for _ in range(4):
            x = np.sort(np.sqrt(x + 1))
        return x

    report = explained(repeated, V)
    (chart,) = re.findall(r"<h2>Memory</h2>(.*?)</svg>", report._repr_html_(), re.S)
    assert set(re.findall(r">(k\d+|sort)<", chart)) == {"k0", "sort"}


def test_times_say_what_they_include():
    def counted(n):
        k = 0
        while n != 1:
            n, k = n // 2 if n % 2 == 0 else 3 * n + 1, k + 1
        return k

    def broken(x):
        print(end="", flush=True)
        return x + 1

    assert "the result was computed while the function was traced" in str(explained(counted, 27))
    assert "the call: tracing, its compiled pieces, and Python between" in str(explained(broken, V))


def test_a_kernel_above_the_measured_arithmetic_raises_it():
    fast = types.SimpleNamespace(operations=100, seconds=1e-6, is_per_iteration=False)
    unknown = types.SimpleNamespace(operations=None, seconds=1.0, is_per_iteration=False)
    assert measure.reached(measure.Ceilings(1e9, 1e7), [fast, unknown]) == pytest.approx((1e9, 1e8))
    assert measure.reached(measure.Ceilings(1e9, 1e9), [fast]).operations == 1e9


def test_what_fails_is_explained():
    def fails(x):
        return x[3] + x[500]

    report = explained(fails, V)
    assert report.error.startswith("IndexError: index 500 is out of bounds")
    assert f"{__file__}:{fails.__code__.co_firstlineno + 1}" in report.error
    assert report.error in str(report) and report.result is None


# --- times ----------------------------------------------------------------------------------------


def test_kernels_are_timed():
    report = explained(lambda x: np.sort(x * 2) + 1, V)
    assert report.why_not_measured is None
    assert [cost.call for cost in report.costs] == ["", "sort", ""]
    assert all(cost.seconds > 0 for cost in report.costs) and report.stats["seconds"] > 0


def test_a_number_of_two_classes_is_timed_and_has_its_line():
    """A sum that begins as Python's number: the returned class is chosen, which changes nothing of the caller's. The last
    kernel is made after the function has returned, and has a line of it."""

    def total(a):
        s = 0.0
        for v in a:
            if v > 0.5:
                s += v
        return s

    report = explained(total, V)
    assert report.why_not_measured is None and all(cost.seconds > 0 for cost in report.costs)
    first = total.__code__.co_firstlineno
    lines = {int(line) for line in re.findall(rf"@{re.escape(__file__)}:(\d+)", report.graph)}
    assert lines and lines <= set(range(first, first + 6))


def test_pieces_between_breaks_are_timed():
    """Each program runs once more, which changes nothing; one that writes, or that draws, is not repeated."""

    def pieces(x, log, target, generator):
        y = np.sin(x) * 2
        log.append(str(y.sum()))
        target += y
        log.append(str(target[0]))
        z = generator.random(3) + y[:3]
        log.append(str(z[0]))
        return (np.cos(y) + 1).sum()

    log, target, generator, other = [], V.copy(), np.random.default_rng(1), np.random.default_rng(1)
    report = explained(pieces, V, log, target, generator)
    y = np.sin(V) * 2
    assert len(log) == 3 and np.array_equal(target, V + y) and report.error is None
    other.random(3)
    assert generator.random() == other.random()
    first = pieces.__code__.co_firstlineno
    timed = {line - first for cost in report.costs if cost.seconds for _, line in cost.places}
    assert {1, 7} <= timed and 3 not in timed and not any(cost.seconds for cost in report.costs if "draw" in cost.call)
    assert "is not repeated" in report.why_not_measured and report.why_not_measured in str(report)

    def breaks(x, log):
        y = np.sin(x) * 2
        log.append(str(y.sum()))
        return (np.cos(y) + 1).sum()

    report = explained(breaks, V, [])
    assert report.why_not_measured is None and report.stats["seconds"] > 0 and "not timed" not in str(report)


def test_calls_are_not_timed_for_ever():
    report, seen = explained(lambda x: x * 31 + 7, V), []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_filename))
    try:
        report._compiled(V)
    finally:
        sys.setprofile(None)
    assert report.costs[0].seconds > 0 and "<cinductor wrapper>" not in seen


def test_what_has_effects_is_called_once():
    def writes(x):
        x += 1
        return x * 2

    x = V.copy()
    report = explained(writes, x)
    np.testing.assert_array_equal(x, V + 1)
    assert "writes to what it is given" in report.why_not_measured and report.why_not_measured in str(report)
    assert report.costs[0].seconds is None
    report.measure(x)
    assert report.costs[0].seconds > 0 and x[0] > 1

    class Counter:
        count = 0

        def step(self, x):
            self.count += 1
            return x + self.count

    counter = Counter()
    assert "changes objects" in explained(counter.step, V).why_not_measured and counter.count == 1

    def prints(x):
        for k in range(len(x)):
            if x[k] > 0.9:
                print(k)
        return x * 2

    assert "changes objects" in explained(prints, V).why_not_measured
    generator, other = np.random.default_rng(1), np.random.default_rng(1)
    report = explained(lambda g: g.random(4) + 1, generator)
    assert report.why_not_measured is not None
    other.random(4)
    assert generator.random() == other.random()


@pytest.mark.parametrize("wrapper", ["c", "python"])
def test_observing_ends(wrapper):
    compiled = cinductor.compile(lambda x: x * 5 + 2, backend="interp", options={"wrapper": wrapper})
    compiled(V)
    program, seen = compiled.specializations[0].program, []
    assert program.observe(lambda *row: seen.append(row))
    np.testing.assert_array_equal(compiled(V), V * 5 + 2)
    (row,) = seen
    assert row[:2] == ("k", 0) and row[2] <= row[3]
    program.observe(None)
    compiled(V)
    assert len(seen) == 1

    def fails(*row):
        raise KeyError("x")

    program.observe(fails)
    with pytest.raises(KeyError):
        compiled(V)
    program.observe(None)
    np.testing.assert_array_equal(compiled(V), V * 5 + 2)


def test_drawings():
    dots = [svg.Dot("k0", 0, 0.1, 1e9), svg.Dot("k1 matmul", 1, 12.0, 3e10)]
    for ceilings in (None, html.measure.Ceilings(2e10, 1e11)):
        drawn = svg.roofline(dots, ceilings)
        assert drawn.count("<circle") == 2 and ('"roof"' in drawn) == (ceilings is not None)
    near = [svg.Dot(f"k{k}", 0, 1.0 + 0.01 * k, 1e9 * (1 + 0.02 * k)) for k in range(6)]
    drawn = svg.roofline([*near, svg.Dot("k9", 0, 50.0, 1e10)], html.measure.Ceilings(2e10, 1e11))
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)" class="strong">(k\d)</text>', drawn)
    assert len(labels) == 7  # each dot has its name, also where dots cover each other
    for k, (x, y, anchor, _) in enumerate(labels):
        assert not any(abs(float(y) - float(b)) < 11 and abs(float(x) - float(a)) < 15 for a, b, side, _ in labels[:k] if side == anchor)
    assert "peak 2 KB: k1" in svg.memory([("allocate a", 1000), ("k1", 2000), ("free a", 0)], 1)


# --- reasons --------------------------------------------------------------------------------------


def words_of(node):
    """A text with each filled-in part replaced by a fixed word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "x" for v in node.values)
    return None


def reasons_in_sources():
    """The reasons in the sources for breaks, loops that Python runs, and calls that NumPy runs."""
    names = set("note_break note_effect RegionBreak Abandon abandon fail stop effect PeelFirstIteration call_unknown Unknown".split())
    names |= set("NotRewritable Replan give_up report run_plain leave_to_numpy".split())
    for path in (ROOT / "python/cinductor/capture").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args:
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                for text in filter(None, map(words_of, node.args)):
                    if called in names and re.search("[a-z]{3}", text.removeprefix("line")) and " " in text.strip():
                        yield text
    for path in (ROOT / "pyext").rglob("*.c"):
        for text in re.findall(r'cx_(?:tracer|region)_break\([^";]*"([a-z][^"]+)"', path.read_text()):
            if not text.startswith("%"):
                yield re.sub(r"%\w|'%\w'", "x", text)


def test_every_reason_has_a_row():
    found = sorted(set(reasons_in_sources()))
    assert len(found) > 60
    assert not [text for text in found if reasons.reason_of(text) is reasons.UNKNOWN]


def test_rows_of_reasons_and_pages_are_the_same():
    page = (ROOT / pages.PAGE).read_text()
    assert re.findall(r"^## (\S+)$", page, re.M) == [*dict.fromkeys(row.name for row in reasons.REASONS)]
    for row in reasons.REASONS:
        assert row.hint and row.hint[0].islower() and not row.hint.endswith(".")


@pytest.mark.parametrize(
    "text, name",
    [
        ("x.shape[0] was 100 when compiled at model.py:31, is 120 now", "sizes-that-differ"),
        ("an argument is an array of dtype datetime64[D]", "arguments"),
        ("an argument is a container of more than 256 leaves", "arguments"),
        ("f is a generator", "source"),
        ("cur is another object at the end of an iteration (a list)", "loops"),
        ("how was 'double' when compiled at model.py:3, is 'one more' now", "values-that-differ"),
        ("calls print", "printing"),
        ("calls time.perf_counter", "timing"),
        ("a concrete value is needed by a condition", "conditions"),
        ("a concrete value is needed by format", "texts"),
        ("a concrete value is needed by item", "values"),
        ("changes a list that outlives the call (append)", "containers"),
        ("sets the global total", "globals"),
        ("calls numpy.trim_zeros: it is not captured", "library-calls"),
        ("calls pandas.DataFrame, which is not captured", "unknown-calls"),
        ("an argument is an array of dtype object", "arguments"),
        ("runs in Python, one iteration at a time: calls print", "loops"),
        ("NumPy is faster for all the work between the lines that need Python", "budget"),
        ("it raised ValueError", "errors"),
        ("its source is not found", "source"),
    ],
)
def test_families(text, name):
    assert reasons.reason_of(text).name == name


def test_a_refused_loop_has_advice():
    """Once, although two loops have the reason."""

    def exchanged(x):
        now, before, kept = [0.0] * 4, [1.0] * 4, []
        for k in range(len(x)):
            now[1] = before[0] + x[k]
            kept.append(now)  # another name of the list, so its items cannot move
            now, before = before, now
        for _ in range(len(x)):
            kept.append(now)
            now, before = before, now
        return now[1] + before[1]

    report = explained(exchanged, V)
    assert str(report).count("-> copy the items (before[:] = now)") == 1, report
    assert "is unrolled" in str(report) and "runs in Python" not in str(report)
    assert "copy the items (before[:] = now)" in report._repr_html_()


# --- no cost when switched off ----------------------------------------------------------------------


def test_nothing_of_reports_is_loaded_before_it_is_asked_for():
    program = """
import sys, numpy as np, cinductor
f = cinductor.compile(lambda x: x + 1)
f(np.ones(3)); f(np.ones(4)); f(np.ma.ones(3))
print([m for m in sys.modules if m.startswith("cinductor.") and m.split(".")[1] in
       ("report", "jupyter", "logs", "tracing", "profiling", "progress")], "logging" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.startswith("[]"), done.stdout + done.stderr


def test_kernels_are_read_from_their_text():
    text = """kernels f(in0: f64[8]) device=cpu backend=c {
  buf0: f64[8]
  k0: for i0<8 {  @a.py:3 @"b c.py":4
    takes in0, out buf0
    stage {
      buf0[i0] = {
        %0: f64 = load in0[i0]
        %1: f64 = exp %0
        yield %1
      }  @a.py:3
    }
  }
  # k0 and k1 are not fused: a reason
}
"""
    (kernel,), apart = kernels.read(text)
    assert kernel.places == [("a.py", 3), ("b c.py", 4)] and apart == ["k0 and k1 are not fused: a reason"]
    assert [a.buffer for a in kernel.nests[0].accesses] == ["buf0", "in0"]
    assert kernel.text.startswith("k0: for") and kernel.text.endswith("\n}")
    assert costs.itemsize("c128") == 16 and costs.itemsize("bool") == 1 and costs.itemsize("i32") == 4
