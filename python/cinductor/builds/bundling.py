"""`package`: writes functions as one file of C sources, built libraries and a manifest, which `load` runs without a capture.

    manifest.json   versions of schema and ABI, entries (inputs, checks, results), SHA-256 of the other members.
    NAME.c          The kernels and `call`, as `export` writes them.
    NAME.so         That file, built. A processor that cannot run it builds its own.
    NAME.K.npy      The arrays that are part of the function.
    package.h       The declarations for C.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.signature import VAR_KEYWORD, VAR_POSITIONAL, signature_of
from ..base.user_frame import wrong
from ..calls.saved_text import UNKNOWN
from ..compile import compile
from .archive import replacing
from .exporting import in_c
from .results import ARGUMENT, CONSTANT, ResultPiece, structure
from .warming import captured

SCHEMA = 3  # of the manifest. 2 has results of the structure "either", 3 generators of random numbers; each has all of those before
GENERATOR = "Generator"  # the type of an input whose value is the address of its bitgen_t
ABI = 1  # of `call` and `ci_array`
PLAIN = (bool, int, float, complex, str, type(None))  # constants that a manifest can have, besides complex ones
# Guards on the function's own surroundings, which the package has as they were, and those that the C or the loader checks.
CHECKED = frozenset(
    "is type equals function body array float complex int len keys other apart disjoint names absent lacks".split()
)
RELATIONS = ("==", "!=", "<=", "<")  # of sizes, as the binding numbers them
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
ABI_TEXT = f"\n/* The version of `call` and `ci_array`. */\nint32_t\nabi_version(void)\n{{\n    return {ABI};\n}}\n"


def package(
    path: str | os.PathLike[str],
    fn: Callable[..., Any] | Mapping[str, tuple[Any, ...]],
    *specs: Any,
    options: dict[str, Any] | None = None,
    dynamic: bool | None = None,
    **named: Any,
) -> list[str]:
    """Write functions to one file, which `cinductor.load` runs without capturing or compiling them.

    Parameters
    ----------
    path : str or path
        The file.
    fn : callable or dict
        A function, or a compiled one, whose options apply; its entry has its name. For several entries: a dict of name ->
        (function, spec, spec, ...).
    *specs, **named
        The arguments of fn, as in `warm`: `ShapeDtype` or arrays for arrays, everything else as in a call.
    options : dict, optional
        As in `export`, for all entries.
    dynamic : bool, optional
        True: entries take arrays of any sizes.

    Returns
    -------
    list of str
        The names of the entries.

    Raises
    ------
    Unsupported
        With the reason, if a function is not one program of C: `export` and `warm` describe what they refuse. Also for guards that
        the file could not check.
    CompileError
        If the C compiler fails.

    Examples
    --------
    >>> cinductor.package("model.cpk", score, cinductor.ShapeDtype((100, 8)), dynamic=True)
    ['score']
    >>> cinductor.load("model.cpk")["score"](x)
    """
    if not is_a(path, str | bytes | os.PathLike):
        raise TypeError(wrong("package", "path", path, "the path of a file; then the function: package('model.cpk', fn, x)"))
    rows = rows_of(fn, specs, named)

    def entries(members: dict[str, bytes]) -> list[dict[str, Any]]:
        return [
            PackagedEntry(name, function, given, keywords, options, dynamic).write(members)
            for name, (function, given, keywords) in rows.items()
        ]

    write_package(os.fsdecode(path), list(rows), entries)
    return list(rows)


def write_package(path: str, names: list[str], entries: Callable[[dict[str, bytes]], list[dict[str, Any]]]) -> None:
    """Write the file of entries with these names; `entries` describes them and adds their members."""
    if wrong_names := [name for name in names if not isinstance(name, str) or not NAME.fullmatch(name)]:
        raise ValueError(f"package: an entry cannot be called {wrong_names[0]!r}")
    members: dict[str, bytes] = {"package.h": header(names).encode()}
    manifest = {
        "schema": SCHEMA,
        "abi": ABI,
        "cinductor": _core.VERSION,
        "entries": entries(members),
        "members": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    write(path, {"manifest.json": json.dumps(manifest, indent=1).encode(), **members})


def rows_of(fn: Any, specs: tuple[Any, ...], named: dict[str, Any]) -> dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The entries: name -> function, specs and keywords. Raises TypeError and ValueError."""
    if isinstance(fn, Mapping):
        if specs or named:
            raise TypeError("package: the specs of several functions are in the dict")
        for name, row in fn.items():
            if not isinstance(row, tuple) or not row or not callable(row[0]):
                raise TypeError(wrong("package", repr(name), row, "a tuple (function, spec, spec, ...)"))
        rows: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {name: (row[0], row[1:], {}) for name, row in fn.items()}
    elif callable(fn):
        rows = {getattr(fn, "__name__", "call").replace("<lambda>", "call"): (fn, specs, named)}
    else:
        raise TypeError(wrong("package", "fn", fn, "a function, or a dict of name -> (function, specs)"))
    return rows


def write(path: str, members: dict[str, bytes]) -> None:
    """Write the file; a failure leaves the old one."""
    with replacing(os.path.abspath(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


class PackagedEntry:
    """One function: its program, and where a call finds the inputs."""

    def __init__(
        self,
        name: str,
        fn: Any,
        specs: tuple[Any, ...],
        named: dict[str, Any],
        options: dict[str, Any] | None,
        dynamic: bool | None,
    ) -> None:
        self.name = name
        self.given, self.named, self.dynamic = specs, named, dynamic
        try:
            self.text = in_c(fn, options, self.capture)
        except _core.Unsupported as refusal:
            raise _core.Unsupported(f"{name}: {refusal}") from None

    def capture(self, fn: Any, settings: dict[str, Any]) -> str:
        """Capture the function; the text in C, or why there is none."""
        more = {} if self.dynamic is None else {"dynamic": self.dynamic}
        target, self.job = captured(compile(fn, **settings | more), self.given, self.named, "package")
        specialization = target.specializations[0]
        if specialization.program is None:
            raise _core.Unsupported("nothing is computed: the results are constants, arguments and views of arguments")
        if specialization.saved is None:
            raise _core.Unsupported("the program refers to objects of this process")
        self.program = specialization.program
        self.inputs, self.pieces, _, self.symbols, self.relations, _ = specialization.saved
        self.values = self.job.values()
        text: str = self.program.text("c")
        return text

    def write(self, members: dict[str, bytes]) -> dict[str, Any]:
        """Add the members of the entry; returns its part of the manifest."""
        self.check_guards()
        made = json.loads(self.program.text("json"))
        buffers = {buffer["name"]: buffer for buffer in made["buffers"]}
        return {
            **add_library(self.name, self.text, made, members),
            "parameters": self.parameters(),
            "inputs": [self.input(number, buffers.get(f"in{number}"), members) for number in range(len(self.inputs))],
            "values": self.fixed_values(),
            "symbols": self.places(),
            "relations": [[RELATIONS[row[0]], row[1], row[2]] for row in self.relations],
            "structure": tagged(structure(self.pieces, self.leaf, either)),
        }

    def check_guards(self) -> None:
        """Raise Unsupported for guards that neither the C nor the loader checks."""
        given = {row[0] for row in self.inputs}
        for check in self.job.checks:
            kind = check[1] if isinstance(check[0], int) else check[0]
            is_fixed = kind == "differs" and check[0] not in given
            if kind not in CHECKED and not is_fixed:
                raise _core.Unsupported(f"{self.name}: {self.why(kind, check)}, which a package cannot check")

    def places(self) -> dict[str, list[int]]:
        """Symbol -> the input and the axis that have it; axis -1: the input is an int."""
        numbers = {row[0]: number for number, row in enumerate(self.inputs)}
        made = {name: [numbers[source], axis] for name, source, axis, *_ in self.symbols if source in numbers}
        text = self.program.text("graph") + " ".join(f"{a} {b}" for _, a, b, *_ in self.relations)
        for name, source, *_ in self.symbols:
            if name not in made and re.search(rf"\b{name}\b", text):
                what = self.job.name_of(source)
                raise _core.Unsupported(f"{self.name}: {what} decides a size and is no input of the program; package it with dynamic=False")
        return made

    def why(self, kind: str, check: tuple[Any, ...]) -> str:
        """A guard in words."""
        if kind == "same":
            return f"{self.job.name_of(check[0])} and {self.job.name_of(check[2])} are one object"
        return f"the program has a guard {kind!r}"

    def parameters(self) -> list[dict[str, Any]]:
        """The parameters, with the defaults that a manifest can have."""
        made = []
        for name, kind, default in zip(*signature_of(self.job.fn), strict=True):
            if kind in (VAR_POSITIONAL, VAR_KEYWORD):
                raise _core.Unsupported(f"{self.name}: it takes *args or **kwargs, whose number a package cannot check")
            row: dict[str, Any] = {"name": name, "kind": kind}
            if type(default) in PLAIN and type(default) is not complex:
                row["default"] = default
            made.append(row)
        return made

    def path(self, source: int) -> list[Any] | None:
        """How a call finds a value: the number of the parameter, then keys; None if it is not part of an argument."""
        kind, *parts = self.job.rows[source]
        if kind == "arg":
            return [parts[0]]
        if kind == "address":
            return self.path(parts[0])
        inner = self.path(parts[0]) if kind == "item" else None
        return None if inner is None else [*inner, parts[1]]

    def input(self, number: int, buffer: dict[str, Any] | None, members: dict[str, bytes]) -> dict[str, Any]:
        """The description of one input; an array from outside of the arguments becomes a member."""
        source = self.inputs[number][0]
        value, path = self.values[source], self.path(source)
        if self.job.rows[source][0] == "address":
            return self.generator(source, path)
        if value is UNKNOWN:
            what = self.job.name_of(source)
            raise _core.Unsupported(f"{self.name}: it reads {what}, an attribute of an object; take it as an argument instead")
        made = describe_input(value, buffer)
        if path is None:
            if made["is_written"]:
                raise _core.Unsupported(f"{self.name}: the function writes to {self.job.name_of(source)}, which is no argument")
            return {**made, "member": add_array(self.name, number, np.asarray(value), members)}
        return {**made, "path": path, "name": self.job.name_of(source)}

    def generator(self, source: int, path: list[Any] | None) -> dict[str, Any]:
        """The description of a generator of random numbers."""
        name = self.job.name_of(self.job.rows[source][1])
        if path is None:
            raise _core.Unsupported(f"{self.name}: it draws from {name}, which is no argument; take a Generator as one")
        return {**describe_input(np.uint64(0), None), "type": GENERATOR, "path": path, "name": name}

    def fixed_values(self) -> list[dict[str, Any]]:
        """The values and containers in arguments that are part of the program: a call must have the same ones."""
        free = {row[0] for row in self.inputs} | {symbol[1] for symbol in self.symbols if symbol[2] < 0}
        free |= {row[1] for row in self.job.rows if row[0] == "address"}
        found = []
        for source, value in enumerate(self.values):
            path = self.path(source)
            if path is None or source in free or isinstance(value, np.ndarray):
                continue
            name = self.job.name_of(source)
            if type(value) in (list, tuple, dict):
                shape: Any = list(value) if type(value) is dict else len(value)
                found.append({"path": path, "contents": shape, "type": type(value).__name__, "name": name})
                continue
            if type(value) not in PLAIN or type(value) is complex:
                raise _core.Unsupported(f"{self.name}: {name} is a {type(value).__name__}")
            found.append({"path": path, "value": value, "type": type(value).__name__, "name": name})
        return found

    def leaf(self, piece: ResultPiece) -> PackagedLeaf:
        """One value of the result, for the manifest."""
        if piece.kind == CONSTANT:
            if type(piece.object) not in PLAIN or type(piece.object) is complex:
                raise _core.Unsupported(f"{self.name}: it returns a constant {type(piece.object).__name__}")
            return PackagedLeaf(value=piece.object)
        if piece.kind == ARGUMENT:
            path = self.path(piece.number)
            if path is None:
                raise _core.Unsupported(f"{self.name}: it returns an object that is no argument")
            return PackagedLeaf(argument=path)
        if not all(isinstance(part, int) for part in piece.layout):
            raise _core.Unsupported(f"{self.name}: it returns a view whose sizes vary; return a copy of it")
        return PackagedLeaf(result=piece.number, kind=piece.value_kind, layout=list(piece.layout))


def add_library(name: str, text: str, made: dict[str, Any], members: dict[str, bytes]) -> dict[str, Any]:
    """Add the members of an entry with this C, built; returns their part of the manifest. made: the program's JSON."""
    text += ABI_TEXT
    members[f"{name}.c"] = text.encode()
    members[f"{name}.so"] = build(text, os.environ.get("CC", "cc"))
    dtypes = {buffer["name"]: buffer["dtype"] for buffer in made["buffers"]}
    results = [{"dtype": dtypes[r["buffer"]], "rank": len(r["sizes"])} for r in made["results"]]
    return {"name": name, "arch": made["arch"], "results": results}


def describe_input(value: Any, buffer: dict[str, Any] | None) -> dict[str, Any]:
    """The description of an input with a value like this. buffer: its part of the program's JSON."""
    array = np.asarray(value)
    return {
        "dtype": array.dtype.str,
        "rank": array.ndim,
        "is_array": isinstance(value, np.ndarray),
        "type": type(value).__name__,
        "sizes": buffer["sizes"] if buffer else list(array.shape),
        "is_written": buffer is not None and "written" in buffer,
    }


def add_array(name: str, number: int, array: np.ndarray, members: dict[str, bytes]) -> str:
    """Add an array that is part of an entry; returns the name of its member."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    members[f"{name}.{number}.npy"] = stream.getvalue()
    return f"{name}.{number}.npy"


class PackagedLeaf(dict[str, Any]):
    """A value of the result in the manifest."""


def either(is_first: Any, first: Any, second: Any) -> PackagedLeaf:
    """One of two values of the result, for the manifest. The first says which."""
    return PackagedLeaf(either=[tagged(is_first), tagged(first), tagged(second)])


def tagged(tree: Any) -> dict[str, Any]:
    """The structure of the result, in which JSON keeps tuples and the keys of dicts."""
    if isinstance(tree, PackagedLeaf):
        return tree
    if isinstance(tree, dict):
        if not all(type(key) in (str, int) for key in tree):
            raise _core.Unsupported("the function returns a dict whose keys are neither texts nor ints")
        return {"dict": [[key, tagged(value)] for key, value in tree.items()]}
    return {type(tree).__name__: [tagged(value) for value in tree]}


def build(text: str, compiler: str) -> bytes:
    """Build a source with the command in its first line. Raises CompileError."""
    words = text.split("\n", 1)[0].removeprefix("/* cc ").removesuffix(" */").split()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "FILE.c"), "w") as file:
            file.write(text)
        command = [*compiler.split(), *words]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _core.CompileError(f"the C compiler did not run: {error}") from None
        if done.returncode:
            raise _core.CompileError(f"the C compiler failed: {done.stderr.strip()[:2000]}")
        with open(os.path.join(folder, "FILE.so"), "rb") as built:
            return built.read()


def header(names: list[str]) -> str:
    """The declarations for C. Each entry is a library of its own, with the same two functions."""
    return f"""/* Entries: {", ".join(names)}. Each NAME.c is a library of its own; its first line has the command that builds it. */
#ifndef CINDUCTOR_PACKAGE_H
#define CINDUCTOR_PACKAGE_H

#include <stdint.h>

#define CI_PACKAGE_ABI {ABI}

typedef struct ci_array {{
    void *data;     /* its memory; of a number the int64_t, the double or the two doubles */
    int64_t offset; /* elements from there to its first */
    int owner;      /* of a result: -1 memory of its own, for free(); k that of in[k]; -2 - j that of out[j] */
    int64_t sizes[32], strides[32]; /* strides in elements */
}} ci_array;

enum {{ CI_NO_MEMORY = 1, CI_FAILED = 2, CI_OTHER_LAYOUT = 3 }};

/* 0, or why not; *reason says more. */
int32_t call(const ci_array *in, ci_array *out, const char **reason);
/* CI_PACKAGE_ABI of the library. */
int32_t abi_version(void);

#endif
"""
