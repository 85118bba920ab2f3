"""`load`: runs the entries of a file that `package` has written. Everything is checked before anything is used."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import inspect
import io
import json
import operator
import os
import tempfile
import weakref
import zipfile
from typing import Any

import numpy as np

from .. import _core
from ..extensions.kernels import DTYPES, formula_of, value_of
from .archive import DAMAGED
from .bundling import ABI, GENERATOR, NAME, SCHEMA, build

RANK = 32
MAX_BYTES = 1 << 32  # of all members together
COMPARE = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt}
NO_MEMORY, OTHER_LAYOUT = 1, 3  # statuses of `call`
KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]


class CArray(ctypes.Structure):
    """The struct ci_array of the C."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("owner", ctypes.c_int),
        ("sizes", ctypes.c_int64 * RANK),
        ("strides", ctypes.c_int64 * RANK),
    ]


def load(path: str | os.PathLike[str]) -> dict[str, PackagedFunction]:
    """Load the functions of a file that `cinductor.package` has written.

    Nothing is captured. The libraries in the file are used if this processor can run them; others are built from the C in it.
    The file is code: load it only if you would run its author's programs.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        Name -> function. It takes the arguments of the packaged function. TypeError or ValueError if one has another dtype, size,
        stride or alignment, or another value where the program depends on it.

    Raises
    ------
    ValueError
        If the file is damaged or truncated, of another version, or for another processor. Nothing of it is used then.
    OSError
        If it cannot be read.
    CompileError
        If a source must be built and the C compiler fails.
    """
    name = os.fsdecode(path)
    members = read(name)
    manifest = checked_manifest(name, members)
    try:
        made = [PackagedFunction(entry, members) for entry in manifest["entries"]]
        for entry in manifest["entries"]:
            check_processor(entry)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"load: {name} has a manifest that is not complete ({error!r})") from None
    for function, entry in zip(made, manifest["entries"], strict=True):
        function.library = library_of(entry, members)
    return {function.__name__: function for function in made}


def read(name: str) -> dict[str, bytes]:
    """The members of the file, with their check sums compared."""
    try:
        with zipfile.ZipFile(name) as archive:
            rows = archive.infolist()
            if sum(row.file_size for row in rows) > MAX_BYTES or len({row.filename for row in rows}) < len(rows):
                raise ValueError(f"load: {name} is no package")
            return {row.filename: archive.read(row) for row in rows}
    except DAMAGED as error:
        raise ValueError(f"load: {name} is no package, or is damaged: {error}") from None


def checked_manifest(name: str, members: dict[str, bytes]) -> dict[str, Any]:
    """The manifest, if the members are those that it lists."""
    try:
        manifest = json.loads(members["manifest.json"])
        schema, abi, listed = manifest["schema"], manifest["abi"], manifest["members"]
        names = [entry["name"] for entry in manifest["entries"]]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"load: {name} has no manifest of a package") from None
    if schema not in range(1, SCHEMA + 1) or abi != ABI:
        made_by = manifest.get("cinductor", "unknown")
        raise ValueError(
            f"load: {name} has schema {schema} and ABI {abi} (cinductor {made_by}); "
            f"this cinductor reads schemas 1 to {SCHEMA} and ABI {ABI}: package it again"
        )
    own = {key: hashlib.sha256(data).hexdigest() for key, data in members.items() if key != "manifest.json"}
    if own != listed:
        raise ValueError(f"load: {name} is damaged: its members are not those of its manifest")
    if not all(isinstance(one, str) and NAME.fullmatch(one) for one in names) or len({*names}) < len(names):
        raise ValueError(f"load: {name} has entries with names that `package` does not give")
    return manifest  # type: ignore[no-any-return]


def check_processor(entry: dict[str, Any]) -> None:
    """Raise ValueError if the entry is for another processor."""
    levels = dict(_core.arch_levels())
    if entry["arch"] and not levels.get(entry["arch"], False):
        own = next((level for level, is_here in reversed(_core.arch_levels()) if is_here), "another family")
        raise ValueError(f"load: entry {entry['name']!r} is for {entry['arch']}; this processor is {own}")


def library_of(entry: dict[str, Any], members: dict[str, bytes]) -> ctypes.CDLL:
    """The loaded library of an entry, built from its source where the packaged one does not load."""
    try:
        return opened(members[f"{entry['name']}.so"], entry["name"])
    except OSError:  # another C library
        return opened(build(members[f"{entry['name']}.c"].decode(), os.environ.get("CC", "cc")), entry["name"])


def opened(code: bytes, name: str) -> ctypes.CDLL:
    """Load a library from its bytes. Its file is in a private folder, and removed at once."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "entry.so")
        with open(path, "wb") as file:
            file.write(code)
        library = ctypes.CDLL(path)
    if library.abi_version() != ABI:
        raise ValueError(f"load: the library of {name!r} has ABI {library.abi_version()}; this is {ABI}")
    return library


class PackagedFunction:
    """A function from a package. Its library is loaded once all entries have been checked."""

    library: ctypes.CDLL

    def __init__(self, entry: dict[str, Any], members: dict[str, bytes]) -> None:
        self.__name__: str = entry["name"]
        self.signature = inspect.Signature(
            [inspect.Parameter(row["name"], KINDS[row["kind"]], default=row.get("default", inspect.Parameter.empty)) for row in entry["parameters"]]
        )
        self.inputs, self.fixed = entry["inputs"], entry["values"]
        self.kinds = [(DTYPES[row["dtype"]], int(row["rank"])) for row in entry["results"]]
        self.structure = entry["structure"]
        self.symbols = entry["symbols"]
        known = frozenset(self.symbols)
        self.relations = [(word, a, b, formula_of(a, known), formula_of(b, known)) for word, a, b in entry["relations"]]
        self.constants = {
            row["member"]: np.load(io.BytesIO(members[row["member"]]), allow_pickle=False)
            for row in self.inputs
            if "member" in row
        }

    def __repr__(self) -> str:
        return f"<packaged function {self.__name__}{self.signature}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        given_args = self.signature.bind(*args, **kwargs)
        given_args.apply_defaults()
        bound = list(given_args.arguments.values())
        for row in self.fixed:
            value = found_at(bound, row["path"], row["name"])
            self.check_fixed(row, value)
        arrays = [self.input(row, bound) for row in self.inputs]
        self.check_overlap(arrays)
        self.check_sizes(arrays)
        given, out, reason = (CArray * max(1, len(arrays)))(*map(as_c, arrays)), (CArray * max(1, len(self.kinds)))(), ctypes.c_char_p()
        with contextlib.ExitStack() as locks:
            for row in self.inputs:
                if row["type"] == GENERATOR:
                    locks.enter_context(found_at(bound, row["path"], row["name"]).bit_generator.lock)
            status = self.library.call(given, out, ctypes.byref(reason))
        if status:
            self.fail(status, (reason.value or b"").decode(), arrays)
        return built(self.structure, self.results(out, arrays), bound)

    def check_fixed(self, row: dict[str, Any], value: Any) -> None:
        """Raise ValueError for a value or container that is not the one in the program."""
        is_kind = type(value).__name__ == row["type"]
        if "contents" in row:
            contents = (list(value) if isinstance(value, dict) else len(value)) if is_kind else None
            if contents != row["contents"]:
                raise ValueError(f"{self.__name__}: {row['name']} is no {row['type']} with the program's items ({row['contents']})")
        elif not is_kind or value != row["value"]:
            raise ValueError(f"{self.__name__}: {row['name']} is {value!r}; the program was made for {row['value']!r}")

    def input(self, row: dict[str, Any], bound: list[Any]) -> np.ndarray:
        """One input, checked."""
        if "member" in row:
            return self.constants[row["member"]]  # type: ignore[no-any-return]
        value, name = found_at(bound, row["path"], row["name"]), row["name"]
        if not row["is_array"]:
            if type(value).__name__ != row["type"]:
                raise TypeError(f"{self.__name__}: {name} is a {type(value).__name__}; the program takes a {row['type']}")
            if row["type"] == GENERATOR:
                value = _pointer(value.bit_generator.capsule, b"BitGenerator")
            return np.array(value, row["dtype"])
        if type(value) is not np.ndarray or value.dtype.str != row["dtype"] or value.ndim != row["rank"]:
            kind = f"{value.dtype}, {value.ndim} axes" if isinstance(value, np.ndarray) else type(value).__name__
            raise TypeError(f"{self.__name__}: {name} is {kind}; the program takes {np.dtype(row['dtype'])}, {row['rank']} axes")
        for axis, size in enumerate(row["sizes"]):
            if isinstance(size, int) and value.shape[axis] != size:
                raise ValueError(f"{self.__name__}: {name} has shape {value.shape}; axis {axis} of the program is {size}")
        if not value.flags.aligned or (row["is_written"] and not value.flags.writeable):
            what = "is not aligned" if not value.flags.aligned else "is read-only, and the program writes to it"
            raise ValueError(f"{self.__name__}: {name} {what}")
        if any(stride % value.itemsize for stride in value.strides):
            raise ValueError(f"{self.__name__}: {name} has strides {value.strides} that are no multiples of its elements")
        return value

    def fail(self, status: int, reason: str, arrays: list[np.ndarray]) -> None:
        """Raise for a status of `call`."""
        if status == NO_MEMORY:
            raise MemoryError(f"{self.__name__}: no memory for its buffers")
        shapes = ", ".join(f"{row.get('name', 'a constant')} {a.shape} {a.strides}" for row, a in zip(self.inputs, arrays, strict=True))
        if status == OTHER_LAYOUT:
            raise ValueError(f"{self.__name__}: an array has another layout than the program's ({reason}; got {shapes})")
        raise ValueError(f"{self.__name__}: {reason or 'a check of the program failed'}")

    def check_sizes(self, arrays: list[np.ndarray]) -> None:
        """Raise ValueError if sizes are not related as the program's."""
        sizes = {
            name: int(arrays[number]) if axis < 0 else arrays[number].shape[axis]
            for name, (number, axis) in self.symbols.items()
        }
        for word, a, b, left, right in self.relations:
            if not COMPARE[word](value_of(left, sizes), value_of(right, sizes)):
                known = ", ".join(f"{row['name']} {x.shape}" for row, x in zip(self.inputs, arrays, strict=True) if "name" in row)
                raise ValueError(f"{self.__name__}: the program is for {a} {word} {b} (its arrays have {known})")

    def check_overlap(self, arrays: list[np.ndarray]) -> None:
        """Raise ValueError if an array that the program writes to shares memory with another one."""
        for number, row in enumerate(self.inputs):
            others = (a for k, a in enumerate(arrays) if k != number)
            if row["is_written"] and any(np.may_share_memory(arrays[number], other) for other in others):
                raise ValueError(f"{self.__name__}: {row['name']} is written to, and shares memory with another array")

    def results(self, out: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results as arrays, which own their memory or keep its owner."""
        made: list[np.ndarray] = []
        blocks: dict[int, Any] = {}
        for number, (dtype, rank) in enumerate(self.kinds):
            row = out[number]
            sizes, strides = tuple(row.sizes[:rank]), tuple(s * dtype.itemsize for s in row.strides[:rank])
            owner = -2 - row.owner if row.owner < -1 else number
            last = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True) if n)
            block = (ctypes.c_char * max(1, (row.offset + 1) * dtype.itemsize + last)).from_address(row.data)
            if row.owner == -1:
                weakref.finalize(block, _free, row.data)
            else:
                weakref.finalize(block, id, arrays[row.owner] if row.owner >= 0 else blocks[owner])  # which lives as long
            blocks[number] = block
            is_empty = 0 in sizes  # with NumPy's own strides
            made.append(np.empty(sizes, dtype) if is_empty else np.ndarray(sizes, dtype, block, row.offset * dtype.itemsize, strides))
        return made


def as_c(array: np.ndarray) -> CArray:
    """An array as the C takes it."""
    made = CArray(array.ctypes.data)
    for axis in range(array.ndim):
        made.sizes[axis], made.strides[axis] = array.shape[axis], array.strides[axis] // array.itemsize
    return made


def found_at(bound: list[Any], path: list[Any], name: str) -> Any:
    """A value in the arguments. Raises TypeError if it is not there."""
    value = bound[path[0]]
    for key in path[1:]:
        try:
            value = value[key]
        except (TypeError, LookupError):
            raise TypeError(f"an argument has no {name}") from None
    return value


def built(tree: Any, results: list[np.ndarray], bound: list[Any]) -> Any:
    """The result of a call, in the function's structure."""
    (kind, inside), *rest = tree.items()
    if kind == "tuple":
        return tuple(built(one, results, bound) for one in inside)
    if kind == "list":
        return [built(one, results, bound) for one in inside]
    if kind == "dict":
        return {key: built(one, results, bound) for key, one in inside}
    if kind == "either":
        is_first, first, second = inside
        return built(first if built(is_first, results, bound) else second, results, bound)
    if kind == "value":
        return inside
    if kind == "argument":
        return found_at(bound, inside, "such a value")
    array, (value_kind, layout) = results[inside], (value for _, value in rest)
    if layout:
        rank = len(layout) // 2
        array = np.ndarray(layout[:rank], array.dtype, array, layout[-1], layout[rank : 2 * rank])
    return array if value_kind == 0 else array[()] if value_kind == 1 else array.item()
