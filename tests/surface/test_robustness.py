"""Tests that failures around a compiled function cost at most one warning, and never change the result.

Each case runs in its own process with its own cache directory.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

PROGRAM = """
import sys, warnings
import numpy as np
import cinductor

def f(a, b):
    return np.exp(a * b + 1).sum(axis=1)

a = np.linspace(-1, 1, 600).reshape(20, 30)
b = np.linspace(0, 1, 30)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    g = cinductor.compile(f)
    for _ in range(3):
        np.testing.assert_array_equal(g(a, b), f(a, b))
print("warnings", len(caught))
for w in caught:
    print("text", str(w.message).replace(chr(10), " "))
print("info", cinductor.cache.info())
"""


def run(cache, *, program=PROGRAM, **env):
    """Run the program in a new process; return the lines of its output."""
    full = {**os.environ, "CINDUCTOR_CACHE_DIR": str(cache), **env}
    full = {k: v for k, v in full.items() if v is not None}
    with tempfile.TemporaryDirectory() as folder:  # functions are captured from their source
        file = Path(folder) / "program.py"
        file.write_text(program)
        command = [sys.executable, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, env=full, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def warnings_in(lines):
    return [line[5:] for line in lines if line.startswith("text ")]


def entries(cache):
    return sorted(p for p in Path(cache).rglob("*") if p.is_file())


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def logging(path, log, compiler="gcc"):
    """A compiler wrapper that logs the files it compiles; queries of its version are not logged."""
    return script(path, f'case "$*" in *-shared*) echo called >> "{log}";; esac\nexec {compiler} "$@"\n')


def test_a_second_process_compiles_nothing(tmp_path):
    log = tmp_path / "log"
    compiler = logging(tmp_path / "cc", log)
    for _ in range(2):
        assert warnings_in(run(tmp_path / "cache", CC=compiler)) == []
        assert log.read_text().splitlines() == ["called"]
    assert entries(tmp_path / "cache")


def test_without_a_compiler_the_interpreter_answers_with_one_warning(tmp_path):
    texts = warnings_in(run(tmp_path, PATH="/nonexistent", CC=None))
    assert len(texts) == 1
    assert "compiler" in texts[0] and "gcc" in texts[0]


def test_a_failing_compiler_costs_one_warning(tmp_path):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'internal compiler error: boom' >&2\nexit 1\n")
    broken.chmod(0o755)
    texts = warnings_in(run(tmp_path / "cache", CC=str(broken)))
    assert len(texts) == 1
    assert "boom" in texts[0]


@pytest.mark.parametrize("harm", ["truncate", "flip", "empty"])
def test_a_damaged_entry_is_built_again(tmp_path, harm):
    run(tmp_path)
    for path in entries(tmp_path):
        data = bytearray(path.read_bytes())
        if harm == "truncate":
            data = data[: len(data) // 2]
        elif harm == "flip":
            data[len(data) // 2] ^= 0x10
        else:
            data = b""
        path.write_bytes(bytes(data))
    assert len(warnings_in(run(tmp_path))) <= 1


def test_an_unwritable_cache_is_no_error(tmp_path):
    file = tmp_path / "a file, not a folder"
    file.write_text("")
    assert len(warnings_in(run(file / "cache"))) <= 1


def test_a_cache_that_others_can_write_is_not_used(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    texts = warnings_in(run(shared))
    assert len(texts) <= 1
    assert not [p for p in entries(shared) if p.suffix == ".so"]


def test_no_home_directory(tmp_path):
    run(tmp_path, CINDUCTOR_CACHE_DIR=None, HOME=None, XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert entries(tmp_path / "xdg")


FORK = """
import os, sys
import numpy as np
import cinductor

f = cinductor.compile(lambda x: np.exp(x).sum())
x = np.linspace(0, 1, 2_000_000)
want = f(x)
child = os.fork()
if child == 0:
    os._exit(0 if f(x) == want and cinductor.compile(lambda x: x * 2)(x[:5])[4] == 2 * x[4] else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert f(x) == want
"""

THREADS = """
import threading
import numpy as np
import cinductor

f = cinductor.compile(lambda x, y: np.sqrt(x * x + y).sum(axis=0))
failures = []

def work(k):
    x = np.full((50, 40 + k % 3), 1.0 + k)
    for _ in range(50):
        if not np.array_equal(f(x, 3.0), np.sqrt(x * x + 3.0).sum(axis=0)):
            failures.append(k)

threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failures, failures
"""

HAMMER = """
import contextlib, gc, sys, threading
import numpy as np
import cinductor

def whole(x, k):
    return np.sqrt(x * x + k).sum(axis=0)

def broken(x, k):
    y = x * 2
    print(end="")
    return y + k

def warned(x, k):
    return (x - 1) / (x - 1 - k * 0) + k

FNS = whole, broken, warned
shared = [cinductor.compile(fn, backend="interp") for fn in FNS]
wrong = []

def work(number):
    rng = np.random.default_rng(number)
    with np.errstate(all="ignore"):
        for _ in range(40):
            which, step = rng.integers(len(FNS)), rng.integers(12)
            x, k = np.arange(2.0, 2 + rng.integers(1, 6)) + np.zeros((3, 1)), int(rng.integers(3))
            if step == 0:
                cinductor.reset()
            elif step == 1:
                cinductor.stats()
            elif step == 2:
                shared[which] = cinductor.compile(FNS[which], backend="interp", dynamic=bool(k) or None)
            elif step == 3:
                cinductor.cache.clear()
            elif step == 4:
                gc.collect()
            elif step == 5:
                cinductor.set_stance(("default", "eager_on_recompile")[k % 2])
            elif step == 6 and number == 0:
                FNS[0].__defaults__ = (k,)
            stance = cinductor.set_stance("force_eager") if step == 7 else contextlib.nullcontext()
            with stance, cinductor.config.patch(threads=1) if step == 8 and number == 0 else contextlib.nullcontext():
                try:
                    got = shared[which](x, k)
                except Exception as error:
                    got = error
            if type(got) is not np.ndarray or not np.array_equal(got, FNS[which](x, k), equal_nan=True):
                wrong.append((FNS[which].__name__, x.shape, k, step, repr(got)))

threading.excepthook = lambda args: wrong.append(repr(args.exc_value))
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=work, args=(k,)) for k in range(12)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong[:3]
counted = cinductor.stats()
assert min(counted[name] for name in ("calls", "captures", "eager")) >= 0
cinductor.set_stance("default")
cinductor.reset()
for f, fn in zip(shared, FNS):
    before = cinductor.stats()["calls"]
    assert np.array_equal(f(np.ones((2, 2)) * 3, 1), fn(np.ones((2, 2)) * 3, 1)) and cinductor.stats()["calls"] == before + 1
"""

SUBNORMALS = """
import numpy as np
import cinductor

for k in range(5):
    cinductor.compile(lambda x: np.exp(x) * k)(np.arange(1000.0))
assert np.float64(5e-324) * 1.0 != 0.0
"""

BITS = """
import sys
import numpy as np
import cinductor

rng = np.random.default_rng(0)
x = rng.normal(size=(7, 100_003)).astype(np.float32)
f = cinductor.compile(lambda x: (x.sum(), x.sum(axis=0), x.sum(axis=1), np.exp(x).mean()))
print([v.tobytes().hex()[:4000] if v.ndim else v.tobytes().hex() for v in f(x)])
"""


@pytest.mark.parametrize("program", [FORK, THREADS, HAMMER, SUBNORMALS], ids=["fork", "threads", "hammer", "subnormals"])
def test_process(program, tmp_path):
    run(tmp_path, program=program)


def test_the_same_bits_for_any_number_of_threads(tmp_path):
    outputs = {tuple(run(tmp_path, program=BITS, CINDUCTOR_THREADS=str(n))) for n in (1, 2, 3, 7)}
    assert len(outputs) == 1


def test_sources_are_the_same_in_every_process(tmp_path):
    program = """
import numpy as np
import cinductor
x = np.ones((30, 40), np.float32)
print(cinductor.explain(lambda x: (x - x.max(axis=1, keepdims=True)).sum(axis=0), x).source)
"""
    outputs = {"\n".join(run(tmp_path, program=program, PYTHONHASHSEED=str(n))) for n in (1, 2)}
    assert len({re.sub(r"/\S*/program.py", "program.py", text) for text in outputs}) == 1


def test_a_function_that_moves_in_its_file_is_not_compiled_again(tmp_path):
    log = tmp_path / "log"
    compiler = logging(tmp_path / "cc", log)
    for moved in ("", "\n\n# a comment\n"):
        run(tmp_path / "cache", program=moved + PROGRAM, CC=compiler)
    assert log.read_text().splitlines() == ["called"]


# --- resources that a machine may lack --------------------------------------------------------------

PIECES = """
import warnings
import numpy as np
import cinductor

def f(a, b):
    print(end="")
    c = np.sqrt(a * b + 1).sum(axis=1)
    print(end="")
    return c * 2 + 1

a, b = np.ones((200, 3000)), np.ones(3000)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    g = cinductor.compile(f)
    for _ in range(3):
        np.testing.assert_array_equal(g(a, b), f(a, b))
for w in caught:
    print("text", str(w.message).replace(chr(10), " "))
"""


@pytest.mark.parametrize("compiler", ["exit 1", "kill -9 $$", "exit 0"], ids=["fails", "dies", "makes nothing"])
def test_a_compiler_that_fails_after_steps_of_python_costs_one_warning(tmp_path, compiler):
    broken = script(tmp_path / "cc", f"echo boom >&2\n{compiler}\n")
    texts = warnings_in(run(tmp_path / "cache", program=PIECES, CC=broken))
    assert len(texts) == 1 and "CC" in texts[0]


@pytest.mark.parametrize("program", [PROGRAM, PIECES], ids=["whole", "in pieces"])
def test_a_compiler_that_hangs_is_ended(tmp_path, program):
    hangs = script(tmp_path / "cc", "sleep 1000\n")
    lines = run(tmp_path / "cache", program=program, CC=hangs, CINDUCTOR_COMPILE_TIMEOUT="1")
    (text,) = warnings_in(lines)
    assert "compile_timeout" in text and "CC" in text


@pytest.mark.parametrize("program", [PROGRAM, PIECES], ids=["whole", "in pieces"])
def test_a_full_disk_costs_one_warning(tmp_path, program):
    full = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""
    (text,) = warnings_in(run(tmp_path, program=full + program))
    assert "interpreter" in text


def test_a_folder_that_cannot_be_made_costs_one_warning():
    (text,) = warnings_in(run("/proc/cinductor"))
    assert "CINDUCTOR_CACHE_DIR" in text


def test_a_path_with_nothing_in_it(tmp_path):
    (text,) = warnings_in(run(tmp_path, PATH="", CC=None))
    assert "install gcc or clang" in text


def test_what_was_learned_of_sizes_may_be_damaged(tmp_path):
    program = """
import numpy as np, cinductor
f = cinductor.compile(lambda x: x * 2 + 1, backend="interp")
for n in (3, 4, 5):
    assert (f(np.ones(n)) == 3).all()
"""
    run(tmp_path, program=program)
    profiles = [p for p in entries(tmp_path) if p.suffix == ".shapes"]
    assert profiles
    for text in ("", "{", "[]", '{"version": 1, "dynamic": 3}', '{"version": 1, "dynamic": [["x"]]}'):
        for path in profiles:
            path.write_text(text)
        run(tmp_path, program=program)


def test_an_interrupt_ends_a_compiler_that_hangs(tmp_path):
    hangs = script(tmp_path / "cc", "sleep 1000\n")
    program = """
import os, signal, threading, time
import numpy as np, cinductor
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job ignores it
f = cinductor.compile(lambda x: np.exp(x) + 1)
threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    f(np.ones(3))
except KeyboardInterrupt:
    print("interrupted")
"""
    began = time.monotonic()
    assert run(tmp_path / "cache", program=program, CC=hangs) == ["interrupted"]
    assert time.monotonic() - began < 60


def test_without_a_cache_of_kernels(tmp_path):
    """Nothing is stored on disk, and nothing stored is used."""
    assert run(tmp_path)[-1] != ""
    kept = sorted(tmp_path.rglob("*.so"))
    assert kept
    run(tmp_path, CINDUCTOR_CACHE="0", program=PROGRAM.replace("a * b + 1", "a * b + 2"))
    assert sorted(tmp_path.rglob("*.so")) == kept
    for path in kept:
        path.write_bytes(b"no object")
    run(tmp_path, CINDUCTOR_CACHE="0")


# --- another thread writes to the arguments --------------------------------------------------------

WRITTEN = """
import sys, threading
import numpy as np
import cinductor

N = 50_000
sys.setswitchinterval(1e-5)
rng = np.random.default_rng(0)
x, y, m, i = rng.random(N), rng.random(N), np.zeros(N, bool), np.zeros(N, np.int64)

def flip():
    m[:], x[:] = True, 1.0
    m[:], x[:] = False, 0.0

def stray():
    i[:] = N - 1
    i[::3], i[::7] = 10**13, -10**12
    i[:] = 5

def grow():
    i[:] = N - 1
    i[:] = 5

def element_by_element(x, i):
    total = 0.0
    for k in range(i.size):
        total += x[i[k]]
    return total

FAMILIES = [
    (flip, lambda: (x, m), [
        lambda x, m: x[np.flatnonzero(m)],
        lambda x, m: x[(x > 0.5).nonzero()],
        lambda x, m: np.argwhere(x > 0.5),
        lambda x, m: np.compress(m, x),
        lambda x, m: np.bincount((x * 10).astype(int)),
        lambda x, m: x[np.cumsum(m) - 1],
        lambda x, m: x[np.searchsorted(x, x[:500]) % x.size],
        lambda x, m: x[np.argmax(x.reshape(-1, 100), axis=1)],
    ]),
    (stray, lambda: (x, i), [
        lambda x, i: x[i],
        lambda x, i: np.take(x, i),
        lambda x, i: x.reshape(-1, 1)[i],
        element_by_element,
    ]),
    (grow, lambda: (x, i), [lambda x, i: np.bincount(i), lambda x, i: np.unique(i)]),
]

def rounds(change, args, functions):
    stop = threading.Event()
    def write():
        while not stop.is_set():
            change()
    for f in functions:
        call = cinductor.compile(f, backend=BACKEND)
        call(*args)
        stop.clear()
        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(ROUNDS):
            try:
                call(*args)
            except (IndexError, RuntimeError):
                pass
        stop.set()
        writer.join()

for change, args, functions in FAMILIES:
    rounds(change, args(), functions)
print("alive")
"""


@pytest.mark.parametrize(("backend", "rounds"), [("c", 150), ("interp", 12)])
def test_arguments_that_another_thread_writes_to(tmp_path, backend, rounds):
    """Values that were counted or checked are read a second time. The program must survive changes between the reads
    where NumPy does.
    """
    program = f"BACKEND, ROUNDS = {backend!r}, {rounds}\n" + WRITTEN
    assert run(tmp_path, program=program) == ["alive"]


def test_bytes_that_are_no_bools(tmp_path):
    """A mask whose bytes are 254 and 1 is counted as more elements than the buffer holds, and must not write beyond
    it.
    """
    program = """
import numpy as np, cinductor
raw = np.zeros(255, np.uint8)
raw[:2] = 254, 1
f = cinductor.compile(lambda x, m: x[m])
for _ in range(2000):
    f(np.ones(255), raw.view(bool))
print("alive")
"""
    assert run(tmp_path, program=program) == ["alive"]


DROPPED = """
import gc, os, threading
import numpy as np
import cinductor

def loaded():
    return {line.split("/", 1)[1] for line in open("/proc/self/maps") if os.environ["CINDUCTOR_CACHE_DIR"] in line}

def make(k, kind):
    def whole(x):
        return np.exp(x * k + 1).sum()
    def pieces(x):
        print(end="")
        y = np.exp(x * k - 1).sum()
        print(end="")
        return y * k
    def raises(x):
        y = x * k
        if y.sum() > 1:
            raise ValueError
        return y
    def library(x):
        return np.sort(x * k) + 1
    def loop(x):
        total = 0.0
        for i in range(x.size):
            total += x[i] * k
        return total
    return {f.__name__: f for f in (whole, pieces, raises, library, loop)}[kind]

def call(f):
    for n in (1000, 500, 700, 1000):
        try:
            f(np.linspace(0, 1, n))
        except ValueError:
            pass

kinds = "whole", "pieces", "raises", "library", "loop"
for kind in kinds:  # libraries that mathematics and breaks bring along stay
    cinductor.compile(make(0.5, kind), backend="interp")(np.ones(9) / 9)
before = loaded()
kept = [cinductor.compile(make(1.0, kind)) for kind in kinds]
for f in kept:
    call(f)
assert len(loaded() - before) >= len(kinds), "nothing was compiled"
own = loaded()
for kind in kinds:
    for k in range(4):
        call(cinductor.compile(make(k + 2.0, kind)))
gc.collect()
assert not loaded() - own, loaded() - own
results, x = [], np.ones(300_000)
threads = [threading.Thread(target=lambda f=f: results.append(f(x))) for f in (kept[4], kept[4])]
for thread in threads:
    thread.start()
kept = f = None
gc.collect()
for thread in threads:
    thread.join()
threads = thread = None
gc.collect()
assert len(set(results)) == 1 and not loaded() - before, loaded() - before
print("unmapped")
"""


def test_code_of_dropped_functions_is_unmapped(tmp_path):
    assert run(tmp_path, program=DROPPED) == ["unmapped"]


# --- paths are bytes ------------------------------------------------------------------------------

PATHS = """
import os, sys, warnings
warnings.simplefilter("error")
import numpy as np, cinductor
from cinductor import _core

def program(x, name="a"):
    y = np.sqrt(x) * 2 + x.sum()
    print(end="")
    return np.random.default_rng(0).normal(size=3), y[1:] + len(name)

def whole(x, name):
    if x.shape[0] > 3:
        x = x + 1
    return np.sqrt(x) + len(name)

def refused(x):
    return x.tobytes()

here = os.path.dirname(os.path.abspath(__file__))
x, f = np.arange(9.0), cinductor.compile(program)
for _ in range(2):
    np.testing.assert_array_equal(f(x)[1], program(x)[1])
g = cinductor.compile(whole, dynamic=True)
for n, name in ((9, "a"), (7, "a"), (2, "a"), (9, "bb")):
    np.testing.assert_array_equal(g(x[:n], name), whole(x[:n], name))
assert [b.file for b in cinductor.explain(program, x).breaks] == [__file__]
try:
    cinductor.compile(refused, fullgraph=True)(x)
except cinductor.Unsupported as error:
    assert __file__ in str(error) and "return x.tobytes()" in str(error)
info = cinductor.cache.info()
assert info["directory"] == os.environ["CINDUCTOR_CACHE_DIR"], info
cinductor.cache.save(here + "/bundle")
for other in (here + "/other", os.fsencode(here + "/bytes")):
    cinductor.cache.set_directory(other)
    assert cinductor.cache.info()["directory"] == os.fsdecode(other) == _core.cache_directory()
    cinductor.cache.load(here + "/bundle")
    assert cinductor.cache.info()["entries"] > 0
print("captures", cinductor.stats()["captures"])
"""


def test_folders_and_files_whose_names_are_no_text(tmp_path):
    """In every position: the program, the cache, dumps of a compile, temporary files, compilers."""
    base = os.path.join(os.fsencode(tmp_path), b"f\xff\xfe")
    os.mkdir(base)
    file = os.path.join(base, b"p\xff.py")
    Path(os.fsdecode(file)).write_text(PATHS)
    compiler = os.path.join(base, b"cc")
    script(Path(os.fsdecode(compiler)), 'exec gcc "$@"\n')
    own = {b"CINDUCTOR_CACHE_DIR": base + b"/cache", b"CC": compiler, b"TMPDIR": base, b"CINDUCTOR_SAVED_CALLS": b"1"}
    found = []
    for more in ({}, {}, {b"CINDUCTOR_TRACE": base + b"/trace"}, {b"CINDUCTOR_PROVENANCE": base + b"/lines"}):
        done = subprocess.run([sys.executable, file], env={**os.environb, **own, **more}, capture_output=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode(errors="backslashreplace")
        found.append(int(done.stdout.split()[-1]))
        assert all(os.path.exists(folder) for folder in more.values())
    assert found[1] < found[0]  # calls are saved and used
