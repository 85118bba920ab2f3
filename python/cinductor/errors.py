"""The exceptions of the package, all derived from `Error`.

The compiler's own (`CinductorError`: those of csrc/base/errors.def) are made with the C module. The others also
derive from the matching class of Python, so that handlers for that class catch them. The message of an exception
that leaves a call says what happened, shows the user's line, the arguments of the call and what can be done.
Frames and exceptions of the package are removed from the traceback.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ._core import CinductorError, Error, RecompileError
from .base.class_lookup import Record, is_a, module_of


class RecompileLimitExceeded(RecompileError):
    """Raised if no program matches a call, `recompile_limit` is reached and `on_limit` is "error".

    `mark_dynamic` or `dynamic=True` makes one program accept many sizes; a larger `recompile_limit` keeps more programs.
    """

    __module__ = "cinductor"


class ConstraintViolation(Error, ValueError):
    """Raised if a size is outside of its declared range, or if the function works for one value of it only.

    Leave the mark out, or use `mark_static`.
    """

    __module__ = "cinductor"


class BackendCompilerFailed(CinductorError):
    """Raised if a function of `register_backend` or `register_wrapper_backend` raises, or returns wrong results.

    Parameters
    ----------
    backend : str
        The name of the backend, also an attribute.
    inner : BaseException
        Its exception, which says what to correct; also an attribute.
    """

    __module__ = "cinductor"

    def __init__(self, backend: str, inner: BaseException) -> None:
        super().__init__(f"the backend {backend!r} failed: {type(inner).__name__}: {inner}")
        self.backend, self.inner = backend, inner

    def __reduce__(self) -> Any:
        return type(self), (self.backend, self.inner)


class AccuracyError(Error, AssertionError):
    """Raised if `cinductor.testing` finds results that differ; the message has the operation and the largest difference."""

    __module__ = "cinductor"


class ErrorRow(Record):
    """When a class is raised, and what can be done about it."""

    __slots__ = ("when", "advice")
    when: str
    advice: str


# Every class, in the order of the documentation.
ERRORS: dict[str, ErrorRow] = {
    "Error": ErrorRow("The base of all of them; never raised itself.", ""),
    "CinductorError": ErrorRow("The base of what the compiler itself has to say; never raised itself.", ""),
    "Unsupported": ErrorRow(
        "`fullgraph=True`, `export` or arrays of a device need what cannot be compiled.",
        "fullgraph=False runs in Python what cannot be compiled; cinductor.explain shows all of it",
    ),
    "LoweringError": ErrorRow(
        "The graph has an operation that no backend can compute (`_core.compile_text`; a call runs in NumPy then, with a warning, unless `fullgraph=True`).",
        "",
    ),
    "CompilerNotFound": ErrorRow(
        "There is no C compiler, and none is found in the disk cache (`_core.compile_text`; a call runs on stencils, in the interpreter or in NumPy, with a warning).",
        "install gcc or clang, or set CC to a C compiler",
    ),
    "CompileError": ErrorRow(
        "A C or CUDA compiler refuses generated source, or what it made cannot be loaded: `cmd`, `stderr` and `source`, the path of the source, or None (`_core.compile_text`; in a call the interpreter or NumPy runs it, with a warning, unless `fullgraph=True`).",
        "CC chooses another C compiler, CINDUCTOR_DUMP=source shows what it was given",
    ),
    "PromiseBroken": ErrorRow(
        "An option that checks programs while they run (`track_memory`, `nan_asserts`, `size_asserts`, `alignment_asserts`, `index_asserts`) has found what does not hold: the buffer, the step of the program and the user's line.",
        "cinductor.explain shows the program's steps and its memory",
    ),
    "PassFailed": ErrorRow(
        "A pass of `register_pass`, `register_pattern` or `register_template` raises or breaks the graph, or `check_passes` finds one that changes a bit (a call runs in NumPy then, with a warning, unless `fullgraph=True`).",
        "options={'skip_passes': its name} leaves it out",
    ),
    "NoFolder": ErrorRow(
        "No folder can be written to and loaded from (`_core.compile_text`; in a call the interpreter or NumPy runs it, with a warning, unless `fullgraph=True`).",
        "free some space, or set CINDUCTOR_CACHE_DIR to a folder of your own",
    ),
    "DeviceError": ErrorRow(
        "The requested device cannot be used, or it reports an error.", "device='cpu' needs none"
    ),
    "InternalError": ErrorRow(
        "An internal error of cinductor. In a call NumPy runs instead, with a warning, unless `fullgraph=True`.",
        "please report it; cinductor.disable leaves the function out",
    ),
    "RecompileError": ErrorRow(
        'A call fits no program under `set_stance("fail_on_recompile")`; a RuntimeError, too.',
        "cinductor.set_stance('default') compiles it",
    ),
    "RecompileLimitExceeded": ErrorRow(
        'A call fits no program, `recompile_limit` is reached and `on_limit` is "error"; a RecompileError.',
        "cinductor.mark_dynamic or dynamic=True compiles one program for many sizes, and a larger "
        "recompile_limit keeps more",
    ),
    "ConstraintViolation": ErrorRow(
        "A size is outside of what `mark_dynamic` declared, or a function works only for one value of a marked "
        "one; a ValueError, too.",
        "leave the mark out, or mark_static",
    ),
    "BackendCompilerFailed": ErrorRow(
        "A function of `register_backend` or `register_wrapper_backend` raises: `backend`, `inner`.", ""
    ),
    "AccuracyError": ErrorRow("`cinductor.testing` finds results that differ; an AssertionError, too.", ""),
}


# Reasons other than fullgraph=True why Python may not run uncompiled code, with advice.
WHOLE = {
    "(an argument is an array of a device)": "Python runs such a line for arrays of the host: give .numpy(), or take the line out of the function",
    "(cinductor.warm)": "call the function itself, or take the line out of it",
    "(cinductor.lower)": "such a line has no text: take it out of the function",
    "(cinductor.graph)": "a graph has no Python: take the line out of the function",
    "(cinductor.package)": "a package has programs without Python: take the line out of the function",
    "(export)": "take the line out of the function; cinductor.explain shows all such lines",
}


def advice_of(error: Error, text: str) -> str:
    """Advice for an exception of the package."""
    row = ERRORS.get(type(error).__name__)
    return next((advice for why, advice in WHOLE.items() if why in text), row.advice if row else "")


def complete(error: Error, names: tuple[str, ...], bound: tuple[Any, ...], file: str) -> None:
    """Add to the message of an exception that leaves a call: the user's line, the arguments, and advice. Done once,
    by the innermost call.
    """
    if getattr(error, "is_complete", False) or len(error.args) != 1:
        return
    error.is_complete = True  # type: ignore[attr-defined]
    text = str(error.args[0])
    called = ", ".join(f"{n}: {words_of(v)}" for n, v in zip(names, bound))
    parts = [text, line_of(text, file), f"called with {called}" if called else "", advice_of(error, text)]
    error.args = ("\n".join(part for part in parts if part and (part is text or part not in text)),)


def words_of(value: Any) -> str:
    """The description of an argument in a message: its class, and dtype and shape of an array."""
    is_internal = module_of(type(value)).startswith("cinductor.") and hasattr(value, "shape")
    if is_a(value, np.ndarray) or is_internal:
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if type(value) in (int, float, complex, bool, str, type(None)):
        text = repr(value)
        return text if len(text) <= 40 else text[:37] + "..."
    return type(value).__name__


def line_of(text: str, file: str) -> str:
    """The source of the first "file.py:12" in a text; files may be named without folders."""
    found = re.search(r"([^\s:]+|<[^>]+>):(\d+)\b", text)
    if found is None:
        return ""
    import linecache
    import os

    path = file if os.path.basename(file) == found[1] else found[1]
    source = linecache.getline(path, int(found[2])).strip()
    return f"    {source}" if source else ""


def fold(error: BaseException) -> None:
    """Remove the frames and internal exceptions of the package from the traceback of one of its own exceptions."""
    if is_a(error, Error):
        error.__suppress_context__ = error.__cause__ is None or is_internal(error.__cause__)
        if error.__suppress_context__:
            error.__cause__ = error.__context__ = None
    elif error.__context__ is not None and is_internal(error.__context__):
        error.__context__ = None


def is_internal(error: BaseException) -> bool:
    """True for exceptions that the package uses internally."""
    module = module_of(type(error))
    return module.startswith("cinductor.") and not is_a(error, Error)

