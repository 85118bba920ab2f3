"""Every option on one device: what it changes, or the words that refuse it.

A row has a value that is not the default, and the program and settings that show it. `changes` compares all that a user
can see of a call by the default and by that value; an option without a change and without a word is a fault.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import time
import warnings
from typing import NamedTuple

import numpy as np

import cinductor
from cinductor.config import RACED

N = int(os.environ.get("CINDUCTOR_TEST_SIZE", 4000))  # fewer where a GPU is emulated
V = np.arange(1.0, N + 1.0)
M = np.arange(1.0, 4001.0).reshape(40, 100)
LEVELS = ("graph", "optimized", "loops", "kernels", "joins", "procs", "wrapper", "partitions", "json", "source", "fold")


def elementwise(x):
    return np.sqrt(x) * 2 + 1


def many(x):
    return (x * 2, x.sum(), (x - x.mean()) / x.std(), np.exp(x / x.max()).sum())


def product(x, w):
    return np.maximum(x @ w + 1.0, 0.0)


def recurrence(x):
    y = np.zeros(len(x))
    s = 0.0
    for i in range(len(x)):
        s = s * 0.5 + x[i]
        y[i] = s
    return y


def chained(x):
    y = np.sort(x * 2)
    z = np.sort(y + 1)
    return np.sort(z * 3 - y).sum()


def scanned(x):
    a = x.cumsum(axis=0)
    b = (a * 2).astype(np.float32).cumsum(axis=1)
    c = b.cumsum(axis=0)[::2].cumsum(axis=1)
    return c.astype(np.float64).cumsum(axis=0).sum(axis=1), b[0, 0]


def scans(x):
    return stacked(x), x.ravel().cumsum(), columns(x), x / x.sum(axis=1, keepdims=True)


def columns(x):
    return (x - x.mean(axis=0)) / x.std(axis=0), x.sum(axis=1)


def stacked(x):
    y = x.reshape(4, 10, 100)
    return np.exp((y @ y.swapaxes(1, 2)) / 1e6).sum(axis=-1)


def with_nan(x):
    return np.log(x - 2.0)


def taken(x, i):
    return x[i] * 2


class Row(NamedTuple):
    value: object
    program: object = many
    settings: dict = {}  # other options, also of the default
    sizes: tuple = (V,)
    calls: int = 1
    error: str = "-"  # part of the exception that is the option's effect


MANY_SIZES = tuple(np.arange(1.0, n) for n in (5, 7, 9, 11))
ROWS = {
    "wrapper": Row("python"),
    "numerics": Row("fast"),
    "templates": Row("always", product, {"numerics": "close", "templates": "never"}, ((M, M[:30].T.copy()),)),
    "library_threads": Row(1, stacked, {"choices": "stack_bytes=1, launch_bytes=1"}, (M,)),
    "fusion": Row(False),
    "reuse": Row(False, chained),
    "pools": Row(False, scanned, {"fusion": False, "numerics": "close"}, (M[:34, :20],)),
    "inline_limit": Row(1),
    "node_limit": Row(2, elementwise),  # no reduction: NumPy leaks the operand of one that raises
    "recompile_limit": Row(1, elementwise, {"on_limit": "eager"}, MANY_SIZES),
    "accumulated_recompile_limit": Row(1, elementwise, {"on_limit": "eager"}, MANY_SIZES),
    "on_limit": Row("eager", elementwise, {"recompile_limit": 1}, MANY_SIZES),
    "log_recompiles": Row(True, elementwise, {}, MANY_SIZES),
    "cache": Row(False),
    "arch": Row("x86-64-v2"),
    "track_memory": Row("log"),
    "symbols": Row(True),
    "nan_asserts": Row(True, with_nan, error="has a NaN in it"),
    "index_asserts": Row(True, taken, sizes=((V, np.arange(3)),)),
    "dump": Row("graph"),
    "skip_passes": Row("cse"),
    "fusion_limit": Row(0),
    "choices": Row("stack_bytes=1, launch_bytes=1, separate_bytes=1, online_bytes=1", scans, {"library_threads": 1}, (M,)),
    "device_index": Row(1, error="device is|on device 'cuda'"),
    "offload": Row("always", recurrence, sizes=(np.arange(1.0, 4001.0),)),
    "max_autotune": Row(True, columns, {}, (M,), 30),
    "benchmark_fusion": Row(True, columns, {}, (M,), 30),
    "multi_kernel": Row(True, columns, {}, (M,), 30),
    "apart": Row("1"),
    "graphs": Row(True, calls=6),
    "economy": Row("lazy", elementwise),
    "capture_limit": Row(0.0),
    "saved_calls": Row(not cinductor.config.saved_calls),
}
# Of these nothing is to be seen unless something is wrong, or a terminal is there: the tests that show them.
ELSEWHERE = {
    "threads": "test_options.test_threads",
    "stencils": "tests/program/test_economy.py",
    "compile_timeout": "test_options.test_a_slow_compiler",
    "isolate": "test_options.test_a_compile_that_dies_is_an_error",
    "verify": "tests/core/test_ir.c",
    "size_asserts": "tests/core/test_memory_plan.c",
    "alignment_asserts": "tests/core/test_memory_plan.c",
    "check_passes": "test_options.test_check_passes",
    "interpreted_kernels": "test_extending.test_kernels_run_by_the_interpreter_and_fusions_are_counted",
    "progress": "test_logs.test_progress",
    "cache_limit": "test_options.test_the_cache_has_a_limit",
}
# Values that turn off what these do not do anyway, or on what they always do.
NOTHING_TO_TURN_OFF = {("dummy", "saved_calls"), ("dummy", "pools"), ("cuda", "pools"), ("dummy", "offload")}  # pools: with the option graphs
_defaults = {}
ADDRESS = re.compile(r"0x[0-9a-f]+|[0-9.]+ m?s\b|/[\w/.-]+")


@contextlib.contextmanager
def heard(found):
    """Everything that is written to the process's stderr, below Python also."""
    sys.stderr.flush()
    before, words = os.dup(2), io.StringIO()
    with tempfile.TemporaryFile() as file, contextlib.redirect_stderr(words):
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            found.append(ADDRESS.sub("", words.getvalue() + file.read().decode(errors="replace")))


def frames_of(compiled, given):
    """The names of functions of Python that a call runs, and the class of the exception that ends it."""
    names = []
    sys.setprofile(lambda frame, event, argument: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        compiled(*given)
    except Exception as error:
        names.append(type(error).__name__)
    finally:
        sys.setprofile(None)
    return sorted(set(names))


def arguments(row, x, device, on_device):
    given = x if isinstance(x, tuple) else (x,)
    return tuple(cinductor.to_device(a, device) for a in given) if on_device else given


def seen(row, options, device, on_device):
    """All that a user sees: results, what is said, the texts of the programs, counters and files."""
    found, said = {}, []
    devices = {d: cinductor.memory_stats(d)["allocations"] for d in cinductor.devices(device) if d.name != "cpu"}
    is_raced = any(options.get(name) for name in RACED) and device == "cpu"
    folder = tempfile.mkdtemp()
    before = cinductor.cache.info()["directory"]
    cinductor.cache.set_directory(folder)
    name = {} if device == "cpu" or on_device else {"device": device}
    try:
        with heard(said), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                compiled = cinductor.compile(row.program, options=options, **name)
                for x in row.sizes:
                    for _ in range(row.calls if is_raced or "graphs" in options else 1):
                        result = compiled(*arguments(row, x, device, on_device))
                if is_raced:
                    time.sleep(1)  # plans are built in a thread
                    result = compiled(*arguments(row, x, device, on_device))
                found["result"] = repr(result)
            except Exception as error:
                found["error"] = f"{type(error).__name__}: {error}"
                compiled = None
        found["memory"] = [cinductor.memory_stats(d)["allocations"] > n for d, n in devices.items()]
        found["frames"] = compiled is not None and frames_of(compiled, arguments(row, x, device, on_device))
        found["warnings"] = [str(w.message) for w in caught]
        found["said"] = said
        if compiled is not None:
            programs = programs_of(compiled)
            found["texts"] = [{level: text_of(p, level) for level in LEVELS} for p in programs]
            found["counts"] = cinductor.stats()["functions"].get(row.program.__name__, {})
            found["recordings"] = [bool(p.recordings) for p in programs]
            found["races"] = [p.backend for p in programs]
        found["files"] = sorted(f for f in os.listdir(folder) if not f.endswith((".call", ".units", ".note", ".sizes", ".profile", ".look")))
        found["kept"] = any(f.endswith(".call") for f in os.listdir(folder))
    finally:
        cinductor.cache.set_directory(before or None)
        cinductor.reset()
    return found


def programs_of(compiled):
    from cinductor.diagnosis import stats_types

    return list(stats_types.programs_of(compiled))


def text_of(program, level):
    try:
        return program.text(level)
    except ValueError:
        return ""


def default_of(row, device, on_device):
    """The findings without the option, computed once for all rows of one program. A first run is not used: it shows more than others."""
    key = (row.program, tuple(row.settings.items()), tuple(map(id, row.sizes)), device, on_device)
    if key not in _defaults:
        if not _defaults:
            seen(row, dict(row.settings), device, on_device)
        _defaults[key] = seen(row, dict(row.settings), device, on_device)
    return dict(_defaults[key])


def changes(name, device="cpu", on_device=False):
    """The differences by name; words that refuse the option are among them."""
    row = ROWS[name]
    default = default_of(row, device, on_device)
    asked = seen(row, {**row.settings, name: row.value}, device, on_device)
    return {key: (default.get(key), asked.get(key)) for key in {*default, *asked} if default.get(key) != asked.get(key)}


def check(name, device="cpu", on_device=False):
    """Fails unless the option changes something, or a warning or an error refuses it."""
    found = changes(name, device, on_device)
    found.pop("counts", None) if device != "cpu" else None
    assert found or (device, name) in NOTHING_TO_TURN_OFF, f"{name} changes nothing on {device}, without a warning or an error"
    if set(found) == {"warnings"} or "error" in found:
        words = {key: found.get(key) for key in ("warnings", "error")}
        assert is_said(found, name), words


def is_said(found, name):
    """True if words refuse the option, by its name."""
    words = [*(found.get("warnings") or ((), ()))[1], (found.get("error") or ("", ""))[1] or ""]
    return any(re.search(rf"\b{name}\b|{ROWS[name].error}", text) for text in words)
