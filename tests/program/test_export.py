"""Tests exported programs: one C file that is built and called without Python, and JSON that an interpreter runs."""

import ctypes
import importlib.util
import json
import os
import platform
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT

import cinductor
from cinductor import _core

OPTIONS = {"numerics": "close"}
RANK = 32


class Array(ctypes.Structure):
    """The struct ci_array of the exported C."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("owner", ctypes.c_int),
        ("sizes", ctypes.c_int64 * RANK),
        ("strides", ctypes.c_int64 * RANK),
    ]


def rows(x, k):
    y = x * k + 1
    return y.sum(axis=1), float(k) + 1, (y > 3).sum(), np.exp(x)


def columns(x, y):
    s = x.mean(axis=0)
    return (x - s) / np.sqrt(x.var(axis=0) + 1), y[::-1].cumsum(), np.abs(x * 2j - 1)


def chosen(x, limit):
    kept = x[x > limit]
    return kept * 2, kept.size, np.flatnonzero(x[0] < limit)


def halved(x):
    y, k = x.copy(), 0
    while y.max() > 1e-3:
        y = y * 0.5 - y / 8
        k += 1
    return y, k


def relaxed(u):
    for k in range(u.shape[0]):
        if u[k, 0] > 0:
            u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1]) * 0.5
        u = np.roll(u, k, axis=1)
    return u


def written(x, y):
    x += y
    y[0] = x.max()
    return x * y


def narrow(x):
    return x.astype(np.float32) * np.float32(3), (x * 7).astype(np.int8), (x * 2).astype(np.float16).sum(axis=0)


def numbers(*shape):
    return np.random.default_rng(1).standard_normal(shape)


PROGRAMS = {
    "rows": (rows, (numbers(300, 700), 3.0)),
    "columns": (columns, (numbers(60, 45), np.arange(1000))),
    "chosen": (chosen, (numbers(40, 50), 0.25)),
    "halved": (halved, (np.abs(numbers(100)),)),
    "relaxed": (relaxed, (numbers(9, 12),)),
    "written": (written, (numbers(64), numbers(64))),
    "narrow": (narrow, (numbers(33, 17),)),
}


@pytest.fixture(scope="module")
def run_json():
    spec = importlib.util.spec_from_file_location("run_json", ROOT / "examples" / "run_json.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(text, folder):
    """Build the library with the command in the first line of the file."""
    source, library = folder / "FILE.c", folder / "FILE.so"
    source.write_text(text)
    words = text.split("\n", 1)[0].removeprefix("/* ").removesuffix(" */").split()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def as_array(value):
    """An argument; the second item of the pair owns the memory it points to."""
    kept = value if isinstance(value, np.ndarray) else np.array(value)
    made = Array(kept.ctypes.data)
    for axis in range(kept.ndim):
        made.sizes[axis], made.strides[axis] = kept.shape[axis], kept.strides[axis] // kept.itemsize
    return made, kept


def call_c(library, arguments, wanted):
    """Call `call`; return results in arrays like those expected."""
    pairs = [as_array(a) for a in arguments]
    given, out, reason = (Array * 8)(*(a for a, _ in pairs)), (Array * 8)(), ctypes.c_char_p()
    status = library.call(given, out, ctypes.byref(reason))
    if status:
        return status, reason.value
    free, found = ctypes.CDLL(None).free, []
    free.argtypes = [ctypes.c_void_p]
    for r, like in zip(out, wanted):
        a = np.empty(np.shape(like), np.asarray(like).dtype)
        steps = [r.strides[k] for k in range(a.ndim)]
        for place in np.ndindex(a.shape):
            at = r.offset + sum(i * s for i, s in zip(place, steps))
            a[place] = np.frombuffer(ctypes.string_at(r.data + at * a.itemsize, a.itemsize), a.dtype)[0]
        assert [r.sizes[k] for k in range(a.ndim)] == list(a.shape)
        found.append(a)
    for r in out[: len(wanted)]:
        if r.owner == -1:
            free(r.data)
    return found


def copies(arguments):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def answer(fn, arguments, dynamic):
    compiled = cinductor.compile(fn, backend="c", options=OPTIONS, dynamic=dynamic, fullgraph=True)
    found = compiled(*arguments)
    return found if isinstance(found, tuple) else (found,)


def same(got, want):
    assert len(got) >= len(want)
    for g, w in zip(got, want):
        assert np.asarray(g).dtype == np.asarray(w).dtype or np.isscalar(w)
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_c_and_json(name, dynamic, tmp_path, run_json):
    """Both give the same bits as the compiled function, in results and written arguments."""
    fn, arguments = PROGRAMS[name]
    ours, first, second = (copies(arguments) for _ in range(3))
    want = answer(fn, ours, dynamic)
    asked = cinductor.compile(fn, options=OPTIONS, dynamic=dynamic)
    library = build(cinductor.export(asked, *copies(arguments)), tmp_path)
    same(call_c(library, first, want), want)
    same(first, ours)
    program = run_json.Program(cinductor.export(asked, *copies(arguments), form="json"))
    same(program(*second), want)
    same(second, ours)


OTHERS = ("clang", "aarch64-linux-gnu-gcc")
OF_A_PROCESSOR = ("ia32", "mvec", "-march", "elementwise", "_ZGV", "immintrin")


@pytest.mark.parametrize("name", ["rows", "columns", "chosen", "narrow"])
def test_generic_c_is_for_every_processor(name, tmp_path):
    """The text has nothing of a processor or of one version of a compiler."""
    fn, arguments = PROGRAMS[name]
    text = cinductor.export(fn, *copies(arguments), options={**OPTIONS, "arch": "generic"})
    assert not [word for word in OF_A_PROCESSOR if word in text]
    want = answer(fn, copies(arguments), False)
    for got, wanted in zip(call_c(build(text, tmp_path), copies(arguments), want), want, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    for compiler in filter(shutil.which, OTHERS):
        command = [compiler, "-std=gnu11", "-O1", "-w", "-c", "FILE.c", "-o", "other.o"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
def test_levels_are_lists_of_features():
    """A level is spelled as features, which older compilers have too. They are those that gcc means by its name."""

    def macros(*flags):
        done = subprocess.run(["gcc", *flags, "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True, check=True)
        return sorted(done.stdout.splitlines())

    for level, runs in _core.arch_levels():
        if not runs or level == "generic":
            continue
        made = json.loads(cinductor.export(lambda x: x * 2, np.ones(9), form="json", options={"arch": level}))
        flags = [flag for flag in made["flags"].split() if flag.startswith("-m")]
        assert made["arch"] == level and level not in made["flags"]
        assert macros(*flags) == macros(f"-march={level}", *(f for f in flags if "vector-width" in f))


def test_another_layout_is_told(tmp_path):
    library = build(cinductor.export(rows, numbers(30, 70), 3.0, options=OPTIONS), tmp_path)
    assert call_c(library, (numbers(30, 71), 3.0), ()) == (3, b"size 1 of in0")
    assert call_c(library, (numbers(70, 30).T, 3.0), ()) == (3, b"stride 0 of in0")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_an_empty_array_has_any_strides(shape, tmp_path):
    def program(x):
        return x * 2 + 1, x.sum(axis=1)

    library = build(cinductor.export(cinductor.compile(program, dynamic=True), numbers(5, 7), options=OPTIONS), tmp_path)
    for x in (np.empty(shape), np.lib.stride_tricks.as_strided(np.empty(shape), shape, (8, 800))):
        same(call_c(library, (x,), program(x)), program(x))


def test_a_failed_check_is_told(tmp_path):
    def picked(x, i):
        return x[i] * 2

    x, i = numbers(30), np.array([1, 2, 29])
    library = build(cinductor.export(picked, x, i, options=OPTIONS), tmp_path)
    same(call_c(library, (x, i), (x[i] * 2,)), (x[i] * 2,))
    status, reason = call_c(library, (x, np.array([1, 30, 2])), ())
    assert status == 2 and reason == b"an index is out of bounds"


def test_c_has_a_generator_of_its_own(tmp_path):
    """NumPy's PCG64, from the words of its state. test_package.py compares the draws."""
    def walked(x, rng):
        return x + rng.normal(size=len(x)), rng.integers(0, 6, 5)

    x, rng = numbers(100), np.random.default_rng(7)
    rng.integers(0, 6)  # leaves half a word
    library = build(cinductor.export(walked, x, rng), tmp_path)
    state, inner = rng.bit_generator.state, rng.bit_generator.state["state"]
    halves = [half for key in ("state", "inc") for half in (inner[key] >> 64, inner[key] & (2**64 - 1))]
    words, bits = (ctypes.c_uint64 * 6)(*halves, state["has_uint32"], state["uinteger"]), (ctypes.c_void_p * 5)()
    library.ci_pcg64(bits, words)
    address = np.uint64(ctypes.addressof(bits))
    wanted = walked(x, rng)
    same(call_c(library, (address, x, address), wanted), wanted)
    state = rng.bit_generator.state
    assert words[0] << 64 | words[1] == state["state"]["state"] and words[5] == state["uinteger"]


def test_what_c_cannot_do_is_named():
    x = numbers(4, 4)
    with pytest.raises(cinductor.Unsupported, match="C cannot call fft_fft, a function of NumPy's"):
        cinductor.export(lambda x: np.fft.fft(x) + 1, x)
    with pytest.raises(cinductor.Unsupported, match="C has no sort of c128"):
        cinductor.export(lambda x: np.sort(x) + 1, x + 1j)
    with pytest.raises(cinductor.Unsupported, match="loop of NumPy's: numerics='close'"):
        cinductor.export(lambda x: np.exp(x), x, options={"numerics": "exact"})
    with pytest.raises(cinductor.Unsupported):
        cinductor.export(lambda x: print(x.sum()), x)
    for f in (lambda x: x.T, lambda x: x[1:], lambda x: 3, lambda x: (x, [x[0], None])):
        for form in ("c", "json"):
            with pytest.raises(cinductor.Unsupported, match="nothing is computed"):
                cinductor.export(f, x, form=form)
    with pytest.raises(ValueError, match="no form 'rust'"):
        cinductor.export(rows, x, 1.0, form="rust")
    with pytest.raises(TypeError, match="fn"):
        cinductor.export(3, x)


@pytest.mark.parametrize("options", [None, {"threads": 1}])
def test_functions_and_products_of_numpy_are_cinductors_in_c(options, tmp_path):
    """They are within the ULP of numerics "close"; programs without them keep NumPy's bits."""

    def column_means(x):
        return x.sum(axis=0) / len(x)

    def attention(x, y):
        scores = np.exp(x - x.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True) @ y, np.abs(np.sin(x)) ** 2.5

    x, y = numbers(20, 30), numbers(30, 5)
    library = build(cinductor.export(attention, x, y, options=options), tmp_path)
    made = call_c(library, (x, y), attention(x, y))
    for a, b in zip(made, attention(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    texts = [cinductor.export(column_means, x, options=more) for more in (options, {**(options or {}), "numerics": "exact"})]
    assert texts[0] == texts[1]


def test_kernels_that_ask_numpy_are_refused(run_json):
    with pytest.raises(NotImplementedError, match="numerics='close'"):
        run_json.Program(cinductor.export(lambda x: np.exp(x), numbers(5), form="json"))


def test_a_backend_of_ones_own(monkeypatch):
    """A wrapper backend gets connected objects. An unsupported line is named in the error."""
    monkeypatch.setattr("cinductor.builds.exporting.BACKENDS", {})
    seen = []

    def listing(program):
        seen.append(program)
        program.lines = [line for line in program.lines if line.kind != "comment"]
        return [line.kind for line in program.lines]

    cinductor.register_wrapper_backend("listing", listing)
    kinds = cinductor.export(rows, numbers(30, 70), 3.0, form="listing", options=OPTIONS)
    assert kinds[0] == "assert_size" and kinds[-1] == "return" and "launch" in kinds
    program = seen[0]
    first = next(b for b in program.buffers if b.kind == "input")
    launches = [line for line in first.users if line.kind == "launch"]
    assert launches and "test_export.py" in launches[0].place and "k0" in program.source
    assert [r.sizes for r in program.results] == [[30], [], [], [30, 70]]

    cinductor.register_wrapper_backend("little", listing, lines={*kinds, "comment", "alloc", "free", "reuse"})
    assert cinductor.export(rows, numbers(30, 70), 3.0, form="little", options=OPTIONS) == kinds
    with pytest.raises(cinductor.Unsupported, match=r"little does not support a line of extern \(sort, at .*test_export"):
        cinductor.export(lambda x: np.sort(x) + 1, numbers(9), form="little")
    with pytest.raises(ValueError, match="already"):
        cinductor.register_wrapper_backend("little", listing)
    with pytest.raises(ValueError, match="cannot be called 'json'"):
        cinductor.register_wrapper_backend("json", listing)
    with pytest.raises(TypeError, match="fn"):
        cinductor.register_wrapper_backend("other", 3)
