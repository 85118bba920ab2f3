"""Exports programs: as one C file without Python, as JSON, or as plain objects for a compiler of the user."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from .._core import Error
from ..base.user_frame import wrong
from ..compile import compile, for_show
from ..config import OPTIONS, config
from ..errors import BackendCompilerFailed

FORMS = ("c", "json")
REFUSED = "#error "  # begins the text of a program that C cannot have; the reason follows
BACKENDS: dict[str, tuple[Callable[[Program], Any], frozenset[str] | None]] = {}


@dataclass
class Buffer:
    """Memory, or a number that the call gets. Sizes and strides (in elements) are ints, or expressions as text."""

    name: str
    kind: str  # input, scalar, temp
    dtype: str  # f64, i32, bool, c128
    sizes: list[int | str]
    strides: list[int | str]
    is_written: bool = False  # an input
    is_result: bool = False
    users: list[Line] = field(default_factory=list, repr=False)  # lines that use it, in order


@dataclass
class Line:
    """One line of the program. kind: a row of lines.def; fields: its other fields, by their names in the JSON."""

    kind: str
    buffers: list[Buffer]  # the buffers in it; all operands of a launch or library call
    fields: dict[str, Any]

    @property
    def place(self) -> str:
        """The user's line, or ""."""
        found = [f"{file}:{line}" for file, line in self.fields.get("source", []) if file]
        return found[0] if found else ""


@dataclass
class Output:
    """A result of the program: an array over a buffer."""

    buffer: Buffer
    kind: str  # array, scalar, python
    offset: int | str
    sizes: list[int | str]
    strides: list[int | str]


@dataclass
class Program:
    """A program, to be inspected or changed. source, flags: its kernels as C, "" if there are none."""

    name: str
    buffers: list[Buffer]
    lines: list[Line]
    results: list[Output]
    source: str
    flags: str


def program_of(text: str) -> Program:
    """Plain objects from the JSON."""
    made = json.loads(text)
    buffers = {
        b["name"]: Buffer(
            b["name"], b["kind"], b["dtype"], b["sizes"], b["strides"], "written" in b, "result" in b
        )
        for b in made["buffers"]
    }
    lines = []
    for fields in made["lines"]:
        names = [fields[key] for key in ("buffer", "from", "result") if key in fields]
        named = dict.fromkeys([*fields.get("buffers", []), *names, *fields.get("frees", [])])
        line = Line(fields["line"], [buffers[n] for n in named], {k: v for k, v in fields.items() if k != "line"})
        for buffer in line.buffers:
            buffer.users.append(line)
        lines.append(line)
    results = [
        Output(buffers[r["buffer"]], r["kind"], r.get("offset", 0), r["sizes"], r["strides"])
        for r in made["results"]
    ]
    return Program(
        made["name"], [*buffers.values()], lines, results, made.get("source", ""), made.get("flags", "")
    )


def register_wrapper_backend(
    name: str, fn: Callable[[Program], Any], lines: Iterable[str] | None = None
) -> None:
    """Make `export(..., form=name)` pass programs to a function.

    Parameters
    ----------
    name : str
        The name of the form.
    fn : callable
        Takes a `cinductor.builds.exporting.Program` (buffers with their users, lines, results, the kernels' C), which it may change.
        `export` returns its result.
    lines : iterable of str, optional
        The kinds of lines that it supports; None: all. A program with another line raises `Unsupported`.

    Raises
    ------
    ValueError, TypeError
        If the name is taken or not a text; if fn is not callable.
    """
    if not isinstance(name, str) or not name or name in FORMS:
        raise ValueError(f"a backend for wrappers cannot be called {name!r}")
    if name in BACKENDS:
        raise ValueError(f"there is a backend {name!r} for wrappers already")
    if not callable(fn):
        raise TypeError(wrong("register_wrapper_backend", "fn", fn, "a function of a program"))
    BACKENDS[name] = fn, None if lines is None else frozenset(lines)


def given_to(name: str, text: str) -> Any:
    """The backend's result for the program."""
    fn, kinds = BACKENDS[name]
    program = program_of(text)
    for line in program.lines:
        if kinds is not None and line.kind not in kinds:
            what = line.fields.get("name", line.kind)
            place = f", at {line.place}" if line.place else ""
            raise _core.Unsupported(f"{name} does not support a line of {line.kind} ({what}{place})")
    try:
        return fn(program)
    except Error:
        raise
    except Exception as error:
        raise BackendCompilerFailed(name, error) from error


def in_c(fn: Any, options: dict[str, Any] | None, text_of: Callable[[Any, dict[str, Any]], str]) -> str:
    """The text of a function in C, by `text_of`, which gets the plain function and its settings, with backend C and more
    options. Functions and products of NumPy, which C does not have, are cinductor's own unless numerics were requested.
    Raises Unsupported.
    """
    settings: dict[str, Any] = {}
    if isinstance(fn, _core.CompiledFunction):
        settings = {**fn._cinductor_job.settings}  # type: ignore[attr-defined]
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    asked = {**settings.get("options", {}), **(options or {})}
    ways = [asked]
    if "numerics" not in asked and config.numerics == OPTIONS["numerics"].default:
        ways.append({"templates": "always", **asked, "numerics": "close"})
    for way in ways:
        text = text_of(fn, settings | {"backend": "c", "options": way})
        if not text.startswith(REFUSED):
            return text
    raise _core.Unsupported(text.removeprefix(REFUSED).strip())


def export(
    fn: Any, *args: Any, form: str = "c", options: dict[str, Any] | None = None, **kwargs: Any
) -> Any:
    """Return the program of fn for arguments like these, for use without Python.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one, whose options apply.
    *args, **kwargs
        The arguments of a call. fn is called on copies of them, twice if functions of NumPy have to become cinductor's.
    form : str
        "c": one C file, whose first line says how to compile it, and whose `call` takes and returns arrays (`ci_array`) on
        one thread. "json": buffers, lines and results, with the kernels' C; `examples/run_json.py` runs it. Otherwise a name of
        `register_wrapper_backend`.
    options : dict, optional
        As in `compile`. Without numerics, functions and products that NumPy computes elsewhere are those of "close" in a C file.

    Returns
    -------
    str or object
        The file, or the result of the wrapper backend. Results of the program are its arrays and numbers, in their order;
        views that the function returns (`y.T`, a part of an argument) are left to the caller.

    Raises
    ------
    Unsupported
        If the program needs Python: breaks, library calls other than sorts, searches, medians and draws (`np.fft.fft`), and with
        `numerics="exact"` functions of NumPy.
    """
    if form not in FORMS and form not in BACKENDS:
        known = [*FORMS, *BACKENDS]
        raise ValueError(f"export() has no form {form!r}: it has {', '.join(known)}")
    if not callable(fn):
        raise TypeError(wrong("export", "fn", fn, "a function or another callable"))

    def text_of(plain: Any, settings: dict[str, Any]) -> str:
        compiled = compile(plain, **{**settings, "fullgraph": True})
        for_show(compiled).why_whole = "export"
        compiled(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        made = compiled.specializations
        if not made:
            raise _core.Unsupported("nothing of the function was compiled for these arguments")
        if made[-1].program is None:
            raise _core.Unsupported("nothing is computed: the results are constants, arguments and views of arguments")
        text: str = made[-1].program.text("c" if form == "c" else "json")
        return text

    text = in_c(fn, options, text_of)
    return text if form in FORMS else given_to(form, text)
