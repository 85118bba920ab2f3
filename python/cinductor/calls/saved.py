"""Saved captures in the disk cache: a later process that calls the same function with the same kind of arguments
neither imports capture nor runs it.

A saved call has the parts of a specialisation: sources, checks, inputs, pieces of the result, the graph as text,
and the callees of its library calls. Objects are written by name (`saved_text.py`). A number is written by its value, a
module by its name, and a function of NumPy or Python by its module and name. A user's function is written by the
source that reaches it and a digest of its code. The later process looks each of them up and compares. Then C checks every
guard, as in every call, and compiles the graph, whose kernels are in the cache. A call with an object that has no
such name (one of a user's class, an array that never changes) is not saved. Only lines of text are read: none is
evaluated or unpickled.

A file of the cache has the latest calls of one function under the same settings, each after the kind of call that it was captured
for. Its name is a digest of everything that a capture depends on besides the arguments (`key_of`), and begins with one of the function's
name. An empty file for each of those names tells which functions have any, without a look at the folder, which may have many thousands.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base.user_frame import PACKAGE
from ..diagnosis import events
from ..extensions import HEURISTICS
from . import dynamic
from .dynamic import kind_text
from .saved_text import UNREADABLE, CallReader, CallWriter, NotSaved, digest_of

Traced = _core.Traced

MAX_CALLS = 8  # calls per function
MAX_TEXT = 1 << 22  # characters per call
NAME = 8  # characters of a key that are of the function's name
MARK = "0" * 56  # follows them in the key of an empty file, which a function has that has calls
BETWEEN = "\n\n"  # separates two calls of a file; no line of a call is empty

# --- the key: function and settings ---------------------------------------------------------------

_stamp: list[str] = []


def stamp() -> str:
    """Everything besides the function that a capture depends on: this package, NumPy, Python, the
    CPU."""
    if not _stamp:
        numpys: Any = importlib.import_module("numpy._core._multiarray_umath")

        found = [sys.version, np.__version__, repr(numpys.__cpu_features__)]
        found += files_in(os.path.dirname(PACKAGE))
        found.append(f"{numpys.__file__} {os.stat(numpys.__file__).st_mtime_ns}")
        _stamp.append(_core.sha256("\n".join(found).encode("utf-8", "surrogateescape")))
    return _stamp[0]


def files_in(folder: str) -> list[str]:
    """The package's files, with size and time of change."""
    found, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".so")):
                status = entry.stat()
                found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)
    return sorted(found) + [file for inner in sorted(folders) for file in files_in(inner)]


def key_of(job: Any, bound: tuple[Any, ...] = ()) -> str | None:
    """The key under which calls of a function are stored; None if they, or a call with these arguments, are not
    saved.
    """
    fn, settings = job.fn, job.settings
    is_plain = type(fn) is types.FunctionType and job.owner is None and not job.is_for_show
    is_wanted = job.option("saved_calls") and job.option("cache")
    if not is_plain or not is_wanted or events.is_awaited():
        return None
    if job.profile.marks or dynamic.may_be_marked(bound) or is_customised():
        return None
    backend = backend_of(job)
    if backend not in [f"{device}:{name}" for device, name, is_internal in _core.backend_names() if is_internal]:
        return None  # a device from outside may change under its name
    how = (backend, job.devices, settings["dynamic"], settings["fullgraph"])
    text = f"{stamp()} {fn.__module__}:{fn.__qualname__} {digest_of(fn.__code__)} {how!r} {text_of(tuple(job.options().items()))}"
    return name_of(fn) + str(_core.sha256(text.encode("utf-8", "surrogatepass")))[NAME:]


@functools.lru_cache(64)
def text_of(options: tuple[tuple[str, Any], ...]) -> str:
    """The text of options in the order of their names."""
    return repr(sorted(options))


def backend_of(job: Any) -> str:
    """Device and backend of the function's programs, in the spelling of programs."""
    device = job.settings["device"] or "cpu"
    own = [backend for name, backend, _ in _core.backend_names() if name == device]
    return f"{device}:{job.settings['backend'] or ''.join(own[:1])}"


def is_customised() -> bool:
    """True if the user has set thresholds, passes or templates, which are not part of the key."""
    passes = sys.modules.get("cinductor.extensions.registering")
    return bool(HEURISTICS or getattr(passes, "TABLE", None))


# --- the disk -------------------------------------------------------------------------------------


def name_of(fn: Any) -> str:
    """A digest of a function's name, with which the keys of its calls begin."""
    return str(_core.sha256(f"{fn.__module__}:{fn.__qualname__}".encode("utf-8", "surrogatepass")))[:NAME]


def has_calls(job: Any) -> bool:
    """True if the disk cache may have calls or notes of a function: otherwise no key is needed to look for them."""
    return type(job.fn) is types.FunctionType and bool(_core.has_call(name_of(job.fn) + MARK))


def is_there(key: str | None) -> bool:
    """True if calls have been saved under a key."""
    return key is not None and bool(_core.has_call(key))


def write(key: str, text: str) -> None:
    """Store a text under a key."""
    _core.write_call(key, text)
    if not _core.has_call(mark := key[:NAME] + MARK):
        _core.write_call(mark, "")


def save(job: Any, bound: tuple[Any, ...], specialization: Any, stage: Any) -> None:
    """Save the specialisation that a stage has made, if another process can rebuild it."""
    key = None if job.profile.marks else job.saved_under
    parts = None if key is None else specialization.saved
    if key is None or parts is None or specialization.program is None or stage.sources.sees_process:
        return
    is_replaced = specialization.program.owed is not None  # kernels of stencils are to be
    if specialization.program.backend != backend_of(job) and not is_replaced:
        return
    symbols, checks = stage.symbols, stage.sources.checks
    sizes = () if symbols is None else tuple([(*p, size) for p, size in symbols.record.items()])
    if symbols is not None and symbols.made:
        checks = [with_sizes(check, stage.tracer.size_text, Traced) for check in checks]
    try:
        text = "\n".join(CallWriter(job.fn, bound, (stage.sources.rows, checks, *parts, sizes)).lines)
        text.encode("utf-8", "surrogateescape")
    except (NotSaved, UnicodeEncodeError):
        return
    if len(text) > MAX_TEXT:
        return
    notes = job.economy.notes
    if notes is not None:
        notes.note(specialization, text)
        if is_replaced:  # a process that reads the call does not wait for a compiler, however this one ends
            notes.write(job)
    job.recalled.add(text)
    calls = [(kind_text(bound, False), text), *((kind, one) for kind, one in calls_under(key) if one != text)]
    write(key, BETWEEN.join(f"{kind}\n{one}" for kind, one in calls[:MAX_CALLS]))


def calls_under(key: str | None) -> list[tuple[str, str]]:
    """The saved calls, the latest first: the kind of call, and the text."""
    parts = [one.partition("\n") for one in ((key and _core.read_call(key)) or "").split(BETWEEN)]
    return [(kind, text) for kind, _, text in parts if text]


def recall(job: Any, compiled: Any, bound: tuple[Any, ...]) -> bool:
    """True if a saved call matches this one; the function then has its specialisation."""
    key = job.saved_under = key_of(job, bound)
    notes, calls = job.economy.notes, calls_under(key)
    kind = kind_text(bound, False) if calls else ""
    for saved_kind, text in calls:
        if saved_kind != kind or text in job.recalled:  # of this process, or its guards held once and then failed
            continue
        try:
            found = CallReader(job.fn, bound, text)
            owed = None if notes is None else notes.owed_by(text)
            specialization = made_again(job, found, bound, owed)
        except (NotSaved, *UNREADABLE, _core.Error):
            continue  # capture reports the problem
        if specialization is None or (job.was_plain and specialization.is_inexact):
            continue
        job.profile.add({(name, axis): size for name, axis, size in found.sizes})
        job.recalled.add(text)
        job.keep(compiled, specialization, bound)
        if job.pays:
            job.economy.notes_of(job).judge(specialization, text)
        return True
    return False


def made_again(job: Any, found: CallReader, bound: tuple[Any, ...], owed: float | None = None) -> Any:
    """Rebuild the specialisation of a saved call; None if its guards fail for these arguments. owed: seconds of runs on stencils before its
    kernels are built; None: they are in the cache.
    """
    tracer = _core.Tracer(
        job.name,
        options=job.options(),
        device=job.settings["device"] or "cpu",
        backend=job.settings["backend"] or "",
        fullgraph=job.why_whole if job.settings["fullgraph"] else "",
        key=job.key,
        keep=job.segments,
    )
    if owed is not None:
        tracer.on_build = functools.partial(job.economy.before_recall, job, owed)
    for symbol in found.symbols:
        tracer.symbol(*symbol)
    for call in found.calls:
        _core.add_extern(*call)
    sources, checks, inputs, pieces, graph, relations = found.parts
    checks = [with_sizes(check, tracer.size, str) for check in checks]
    return tracer.recall(sources, checks, inputs, pieces, graph, relations, bound)


def with_sizes(check: tuple[Any, ...], of: Callable[[Any], Any], kind: type) -> tuple[Any, ...]:
    """A check in which sizes of the one kind, traced or texts, are replaced by the other."""
    word = check[1] if type(check[0]) is int else None  # after the source
    if word == "size":
        return (*check[:2], of(check[2]))
    if word != "array":
        return check
    shape, strides = (tuple(of(e) if type(e) is kind else e for e in one) for one in check[3:5])
    return (*check[:3], shape, strides, *check[5:])
