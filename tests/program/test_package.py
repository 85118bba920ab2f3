"""Packages: functions in one file, run without a capture, with every wrong argument and damaged file refused."""

import ctypes
import gc
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import cinductor
from cinductor import ShapeDtype, load, package
from cinductor.builds import bundling

W = np.linspace(0.5, 2, 4)
X = np.random.default_rng(3).normal(size=(10, 4))
RNG = np.random.default_rng(4)


def score(x, k=2.5, *, name="a"):
    y = np.maximum(x * W, 0) + k
    return {"y": y, "parts": [y.sum(axis=1), 3, name], "t": (y * 2).T}, y.max(), k


def written(x, y):
    x += y
    y[0] = x.max()
    return x, x * y


def pairs(both, n):
    return both[0][:n] + both["w"] if isinstance(both, dict) else both[0] * both[1] * n


class Scaled:
    def __init__(self):
        self.w = np.arange(4.0)

    def call(self, x):
        return x * self.w


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    name = tmp_path_factory.mktemp("package") / "model.cpk"
    rows = {
        "score": (score, ShapeDtype((10, 4)), 2.5),
        "written": (written, ShapeDtype((8,)), ShapeDtype((8,))),
        "pairs": (pairs, [X, X.copy()], 3),
    }
    assert package(name, rows) == list(rows)
    return name


@pytest.fixture(scope="module")
def entries(path):
    return load(path)


def assert_same(got, want):
    assert type(got) is type(want)
    if isinstance(want, tuple | list):
        [assert_same(g, w) for g, w in zip(got, want, strict=True)]
    elif isinstance(want, dict):
        assert_same([*got.items()], [*want.items()])
    else:
        np.testing.assert_array_equal(got, want)
        assert getattr(got, "dtype", None) == getattr(want, "dtype", None)
        assert getattr(got, "strides", None) == getattr(want, "strides", None)


def test_entries_return_what_the_functions_do(entries):
    for k in 2.5, -1.0:
        got = entries["score"](X, k)
        gc.collect()
        assert_same(got, score(X, k))
    assert_same(entries["score"](x=X), score(X))
    assert_same(entries["pairs"]([X, X + 1], 3), pairs([X, X + 1], 3))
    a, b = np.arange(8.0), np.ones(8)
    c, d = a.copy(), b.copy()
    assert_same(entries["written"](a, b), written(c, d))
    assert_same((a, b), (c, d))


def test_any_sizes(tmp_path):
    def program(x, y):
        return x[1:-1] * W + y, x.sum(axis=1), x.max()

    package(tmp_path / "f", program, ShapeDtype((10, 4)), ShapeDtype((8, 4)), dynamic=True)
    f = load(tmp_path / "f")["program"]
    for rows in 2, 3, 33:
        x, y = np.random.default_rng(rows).normal(size=(rows, 4)), np.ones((rows - 2, 4))
        assert_same(f(x, y), program(x, y))
    with pytest.raises(ValueError, match=r"the program is for max\(s0 - 2, 0\) == s2 \(its arrays have x \(10, 4\), y \(9, 4\)\)"):
        f(np.ones((10, 4)), np.ones((9, 4)))
    with pytest.raises(ValueError, match="the program is for 1 <= s0"):
        f(np.ones((0, 4)), np.ones((0, 4)))
    with pytest.raises(ValueError, match="another layout"):
        f(np.ones((10, 5)), np.ones((8, 5)))


def ordered(x, v):
    by_axis = np.sort(x, axis=0), np.sort(x[0, ::-1]), np.argsort(x, axis=1, kind="stable"), np.argsort(x, axis=None, kind="stable")
    searches = np.searchsorted(v, x), np.searchsorted(v, x.T, side="right"), np.searchsorted(v, v[3])
    medians = np.median(x), np.median(x, axis=0), np.median(x, axis=-1, keepdims=True) + 1
    return by_axis, searches, medians, np.partition(x, 5, axis=1)[:, 5] + 1, np.lexsort((x[:, 1], x[:, 9], x[::-1, 3]))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1", "u2", "?"])
def test_sorts_and_searches(tmp_path, dtype):
    """Rows that are not contiguous, runs that end inside of a merge, equal elements, NaN, infinities and -0.0; then other sizes."""
    package(tmp_path / "f", ordered, ShapeDtype((35, 70), dtype), ShapeDtype((9,), dtype), dynamic=True)
    f = load(tmp_path / "f")["ordered"]
    for rows, columns in (35, 70), (40, 129):
        x = np.random.default_rng(rows).integers(0, 90, (rows, columns)).astype(dtype)
        if dtype[0] == "f":
            x[3, 4] = x[3, 5] = np.nan
            x[5, 60:], x[8, 3] = np.inf, -np.inf
            x[:, 7] = -0.0
        v = np.sort(x[0])[:9]
        with np.errstate(invalid="ignore"):
            got, want = f(x, v), ordered(x, v)
        assert_same(got, want)
        assert_same(np.signbit(got[2][1]), np.signbit(want[2][1]))  # of medians: a mean is no -0.0


def test_another_process_needs_neither_capture_nor_compiler(path):
    code = f"""if True:
        import sys, numpy as np, cinductor
        f = cinductor.load({str(path)!r})["pairs"]
        assert (f([np.ones((10, 4))] * 2, 3) == 3).all()
        assert "cinductor.capture" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, env={"CC": "/nonexistent"}, timeout=120)


def test_c_builds_with_its_own_command(path, tmp_path):
    """Without Python: the header is in the file, and the library tells its ABI."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    assert "int32_t call(const ci_array *in" in (tmp_path / "package.h").read_text()
    subprocess.run(["cc", "-std=c11", "-fsyntax-only", "-Wall", "-Werror", "package.h"], cwd=tmp_path, check=True)
    (tmp_path / "FILE.so").write_bytes(bundling.build((tmp_path / "pairs.c").read_text(), "cc"))
    assert ctypes.CDLL(str(tmp_path / "FILE.so")).abi_version() == bundling.ABI


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        ((X.astype("f4"),), TypeError, "x is float32, 2 axes; the program takes float64"),
        ((X[0],), TypeError, "1 axes"),
        ((X.tolist(),), TypeError, "x is list"),
        ((X[:9],), ValueError, r"x has shape \(9, 4\); axis 0 of the program is 10"),
        ((np.asfortranarray(X),), ValueError, "another layout"),
        ((np.ndarray((10, 4), "f8", bytearray(330), 3),), ValueError, "not aligned"),
        ((X, 2), TypeError, "k is a int; the program takes a float"),
        ((), TypeError, "missing"),
        ((X, 1.0, 2), TypeError, "too many"),
    ],
)
def test_a_wrong_argument_is_told(entries, arguments, error, why):
    with pytest.raises(error, match=why):
        entries["score"](*arguments)


def test_values_that_the_program_depends_on(entries):
    with pytest.raises(ValueError, match="name is 'b'; the program was made for 'a'"):
        entries["score"](X, name="b")
    with pytest.raises(ValueError, match="n is 4; the program was made for 3"):
        entries["pairs"]([X, X], 4)
    for both in (X, X), [X, X, X], X, {0: X, 1: X}:
        with pytest.raises(ValueError, match="both is no list with the program's items"):
            entries["pairs"](both, 3)
    a = np.ones(9)
    with pytest.raises(ValueError, match="shares memory"):
        entries["written"](a[1:], a[:-1])
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        entries["written"](a[1:], np.ones(8))


def changed(path, target, member, change):
    """A copy of the package in which a member has other bytes."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for row in old.infolist():
            data = old.read(row)
            new.writestr(row.filename, change(data) if row.filename == member else data)
    return target


def manifest(**values):
    return lambda data: json.dumps({**json.loads(data), **values}).encode()


def last_entry(**fields):
    """Changes the last entry, so that a check of all entries before any is used shows."""

    def change(data):
        made = json.loads(data)
        made["entries"][-1] |= fields
        return json.dumps(made).encode()

    return change


@pytest.mark.parametrize(
    ("member", "change", "why"),
    [
        ("manifest.json", manifest(schema=99), "schema 99 and ABI 1 .* reads schemas 1 to 3 and ABI 1: package it again"),
        ("manifest.json", manifest(schema="1"), "schema 1 and ABI 1"),
        ("manifest.json", manifest(abi=7), "schema 3 and ABI 7"),
        ("manifest.json", manifest(entries=[{}]), "no manifest"),
        ("manifest.json", manifest(entries=[{"name": "f"}]), "manifest that is not complete"),
        ("manifest.json", last_entry(name="../evil"), "entries with names that"),
        ("manifest.json", last_entry(parameters=[{"name": "x", "kind": 77}]), "manifest that is not complete"),
        ("manifest.json", manifest(members={}), "members are not those"),
        ("manifest.json", lambda data: data[:40], "no manifest"),
        ("manifest.json", last_entry(arch="armv8-a"), "is for armv8-a; this processor is"),
        ("score.so", lambda data: data[:-1], "is damaged"),
        ("score.c", lambda data: data + b" ", "is damaged"),
    ],
)
def test_a_wrong_file_is_told(path, tmp_path, member, change, why, monkeypatch):
    """Before any library is loaded, whichever entry is wrong."""
    monkeypatch.setattr("cinductor.builds.bundled.library_of", lambda *_: pytest.fail("a library is loaded"))
    with pytest.raises(ValueError, match=why):
        load(changed(path, tmp_path / "bad", member, change))


def test_a_package_of_an_older_schema_is_loaded(path, tmp_path):
    f = load(changed(path, tmp_path / "old", "manifest.json", manifest(schema=1)))["score"]
    assert_same(f(X, 2.5), score(X, 2.5))


def test_one_of_two_results(tmp_path):
    """Data decide the class of a number, and which array is returned."""

    def total(x):
        s = 0.0
        for v in x:
            if v > 1:
                s += v
        return s, [s, x + 1 if s > 5 else x * 2]

    package(tmp_path / "f", total, np.ones(3))
    f = load(tmp_path / "f")["total"]
    for last in 0.0, 3.0, 9.0:
        x = np.array([0.5, 1.0, last])
        assert_same(f(x), total(x))


def test_more_results_than_axes(tmp_path):
    def powers(x):
        return tuple([x * k for k in range(1, 60)])

    cinductor.package(tmp_path / "many", powers, np.ones(3))
    made = load(tmp_path / "many")["powers"](np.arange(3.0))
    assert all(map(np.array_equal, made, powers(np.arange(3.0))))


def test_a_damaged_file_is_told(path, tmp_path):
    whole, bad = path.read_bytes(), tmp_path / "bad"
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 1
    for data in (b"", whole[: len(whole) // 2], bytes(flipped), b"text"):
        bad.write_bytes(data)
        with pytest.raises(ValueError, match="is no package, or is damaged|no manifest|is damaged"):
            load(bad)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def drawn(rng, n, mean):
    wide = rng.integers(-3, 2**62, n), rng.integers(0, 2**40, n), rng.integers(5, 2**32 + 5), rng.integers(0, 3 << 30, n), rng.integers(7, 8, n)
    floats = rng.random(), rng.random(n, np.float32), rng.uniform(-1, 4, n), rng.normal(mean, 2, n), rng.standard_normal((n, 2))
    return wide, floats, rng.exponential(mean, n), rng.standard_exponential(), sum(rng.integers(0, k + 3) for k in range(n))


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_draws_are_numpys(kind, tmp_path):
    """A generator among the arguments draws, and its state afterwards is NumPy's."""
    rng, own = (np.random.Generator(getattr(np.random, kind)(3)) for _ in range(2))
    package(tmp_path / "f", drawn, rng, 3000, 1.5)
    f = load(tmp_path / "f")["drawn"]
    for _ in range(2):
        assert_same(f(rng, 3000, 1.5), drawn(own, 3000, 1.5))
        np.testing.assert_equal(rng.bit_generator.state, own.bit_generator.state)
    with pytest.raises(ValueError, match="draw_exponential refuses its parameters"):
        f(rng, 3000, -1.0)
    for wrong in np.random.RandomState(1), 3:
        with pytest.raises(TypeError, match=f"rng is a {type(wrong).__name__}; the program takes a Generator"):
            f(wrong, 3000, 1.5)


@pytest.mark.parametrize(
    ("fn", "specs", "why"),
    [
        (lambda x: np.percentile(x, 30), (X,), r"C cannot call percentile, a function of NumPy's \(line"),
        (lambda x: np.sort(x.astype("f2")), (X,), "C has no sort of f16"),
        (lambda rng, x: x + rng.gamma(2.0, size=4), (np.random.default_rng(0), X), r"C has no random draw gamma with .* give the numbers as an argument \(line"),
        (lambda x: x + RNG.random(4), (X,), "it draws from RNG, which is no argument; take a Generator as one"),
        (lambda x: print(x.sum()), (X,), r"it calls print \(cinductor.package\)(.|\n)*a package has programs without Python"),
        (Scaled().call, (X,), r"it reads self\.w, an attribute of an object; take it as an argument"),
        (lambda x: (np.sort(x)[:, 1], np.sort(x)), (X,), "a part of an array that the call makes"),
        (lambda x: (x + 1, x[0]), (X,), "a part of an argument"),
        (lambda x: x[1:], (X,), "nothing is computed"),
        (lambda x: x[x > 0], (X,), r"data decide a size of the result \(cinductor.package\)"),
        (lambda *x: x[0] + 1, (X,), r"\*args"),
        (lambda x: {(1, 2): x + 1}, (X,), "keys are neither"),
        (lambda x, y: x + y, (X, X), "are one object"),
    ],
)
def test_what_cannot_be_packaged_is_refused(fn, specs, why, tmp_path):
    target = tmp_path / "f"
    target.write_bytes(b"old")
    with pytest.raises(cinductor.Unsupported, match=why):
        package(target, fn, *specs)
    assert target.read_bytes() == b"old" and [*tmp_path.iterdir()] == [target]
    for row in fn, (), (3, X):
        with pytest.raises(TypeError, match=r"package: 'f' is .*; wanted: a tuple \(function, spec"):
            package(target, {"f": row})
    with pytest.raises(ValueError, match="cannot be called 'a b'"):
        package(target, {"a b": (fn, *specs)})
