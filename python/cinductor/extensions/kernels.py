"""Kernels written by the user in C: their declarations, the source around them, and calls on arrays.

A kernel is a body that runs for each point of its grid. It reads some arrays and writes others, which never share
memory with those it reads: if the caller's do, the read ones are copied first. So a body means the same outside of
a compiled function and inside, where it is a library call.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..base.records import NamedTuple
from ..base.user_frame import wrong
from ..config import config
from . import UserOperation

NAME = r"[A-Za-z_]\w*"
OPERAND = r"\s*([A-Za-z_]\w*)\s*:\s*(\w+)\s*\[([^\]]*)\]\s*"
C_TYPES = {
    **{"bool": "bool", "f32": "float", "f64": "double", "c64": "float _Complex", "c128": "double _Complex"},
    **{f"{s}{n}": f"{'u' * (s == 'u')}int{n}_t" for s in "iu" for n in (8, 16, 32, 64)},
}
KINDS = {"f": np.floating, "c": np.complexfloating, "i": np.signedinteger, "u": np.unsignedinteger}
DTYPES = {
    name: np.dtype(bool if name == "bool" else f"{name[0]}{int(name[1:]) // 8}") for name in C_TYPES
}
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
WORDS = """#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#undef I
"""
RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool
    true false buffers sizes begin end unit left""".split()
)


class Declared(NamedTuple):
    """An array of a kernel: each size is a name, or an int that it must have."""

    name: str
    dtype: str
    sizes: tuple[int | str, ...]


def operands_of(what: str, text: Any) -> tuple[Declared, ...]:
    """Parse declarations like "x: f64[n, m], w: f64[m]". Raises TypeError and ValueError."""
    if not isinstance(text, str):
        raise TypeError(wrong("kernel", what, text, "a text like 'x: f64[n, m], w: f64[m]'"))
    found, at = [], 0
    while text[at:].strip():
        match = re.compile(OPERAND).match(text, at)
        if match is None or match[2] not in C_TYPES:
            raise ValueError(
                f"kernel: {what} has {text[at:].strip()!r}; wanted: a name, a dtype of {', '.join(C_TYPES)} "
                "and sizes, as in 'x: f64[n, m]'"
            )
        sizes = [part.strip() for part in match[3].split(",") if part.strip()]
        if bad := [s for s in sizes if not re.fullmatch(NAME, s) and not (s.isascii() and s.isdecimal())]:
            raise ValueError(f"kernel: {what} has the size {bad[0]!r}; wanted: a name or a number")
        found.append(Declared(match[1], match[2], tuple(int(s) if s.isdecimal() else s for s in sizes)))
        at = match.end()
        at += text[at : at + 1] == ","
    return tuple(found)


def formula_of(text: str, names: frozenset[str]) -> ast.expr:
    """Parse an expression of sizes: only names, ints, + - * // %, min and max."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"kernel: grid has {text!r}, which cannot be read: {error}") from None
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and not node.keywords and isinstance(node.func, ast.Name)
        fine = (
            (isinstance(node, ast.Constant) and type(node.value) is int)
            or (isinstance(node, ast.Name) and (node.id in names or node.id in ("min", "max")))
            or (isinstance(node, ast.BinOp) and type(node.op) in OPERATORS)
            or (is_call and node.func.id in ("min", "max"))  # type: ignore[attr-defined]
            or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub))
            or isinstance(node, ast.Load | ast.operator | ast.USub)
        )
        if not fine:
            raise ValueError(f"kernel: grid has {text!r}; wanted: sizes, ints, + - * // %, min and max")
    return tree


def value_of(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    """The value of such an expression."""
    if isinstance(tree, ast.Constant):
        return tree.value  # type: ignore[return-value]
    if isinstance(tree, ast.Name):
        return sizes[tree.id]
    if isinstance(tree, ast.Call):
        args = [value_of(arg, sizes) for arg in tree.args]
        return min(args) if tree.func.id == "min" else max(args)  # type: ignore[attr-defined]
    if isinstance(tree, ast.UnaryOp):
        return -value_of(tree.operand, sizes)
    assert isinstance(tree, ast.BinOp)
    return OPERATORS[type(tree.op)](value_of(tree.left, sizes), value_of(tree.right, sizes))  # type: ignore[no-any-return]


# NVRTC has no headers.
CUDA_WORDS = """typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
"""


class KernelCall:
    """The library call of a kernel, which returns some of the arrays that it writes, in order."""

    def __init__(self, kernel: UserKernel, given: list[bool], wanted: list[int], is_flat: bool) -> None:
        self.kernel, self.given, self.wanted, self.is_flat = kernel, given, wanted, is_flat
        self.name, self.key = f"kernel_{kernel.__name__}", f"{kernel.key} {given} {wanted}"

    def __call__(self, *arrays: Any) -> None:
        """Operands: the arrays read, then the former contents of those written; the last one is the result."""
        kernel = self.kernel
        count = len(kernel.reads)
        reads, before, out = arrays[:count], list(arrays[count:-1]), arrays[-1]
        sizes = kernel.sizes_of([*reads, *self.placed(before)])
        writes = []
        for operand, old in zip(kernel.writes, self.placed(before), strict=True):
            shape = kernel.shape_of(operand, sizes)
            is_result = not self.is_flat and kernel.writes[self.wanted[0]] is operand
            made = out if is_result else np.empty(shape, DTYPES[operand.dtype])
            made[...] = 0 if old is None else old
            writes.append(made)
        kernel.run([*(copied(r, [out]) for r in reads), *writes])
        at = 0
        for number in self.wanted if self.is_flat else ():
            size = writes[number].size
            out[at : at + size] = writes[number].reshape(-1)
            at += size

    def placed(self, before: list[Any]) -> list[Any]:
        """For each written array its former contents, or None."""
        rest = iter(before)
        return [next(rest) if is_given else None for is_given in self.given]


class DeviceKernelCall(KernelCall):
    """A KernelCall with device memory. All written arrays are given, and everything is in C order. Written arrays
    that are not in the result are stored to memory that is not read.
    """

    def __init__(self, kernel: UserKernel, wanted: list[int], is_flat: bool, device: str) -> None:
        super().__init__(kernel, [True] * len(kernel.writes), wanted, is_flat)
        self.device = device.partition(":")[0]
        self.key += f" {self.device}"

    def launch_on(self, index: int, shapes: tuple[tuple[int, ...], ...]) -> tuple[Any, ...]:
        """For a device index and operands of these shapes: the code, its sizes and units; the number of operands
        read; and whether each written operand is in the result.
        """
        kernel = self.kernel
        operands = zip((*kernel.reads, *kernel.writes), shapes, strict=True)
        sizes = {name: n for o, shape in operands for name, n in zip(o.sizes, shape, strict=True) if type(name) is str}
        values, units = kernel.grid_values(sizes)
        wanted = tuple(k in self.wanted for k in range(len(kernel.writes)))
        return kernel.build(f"{self.device}:{index}"), values, units, len(kernel.reads), wanted


class UserKernel(UserOperation):
    """See `cinductor.kernel`."""

    def __init__(self, source: str, reads: str, writes: str, grid: str, preamble: str, name: str) -> None:
        for what, text in (("source", source), ("preamble", preamble), ("grid", grid), ("name", name)):
            if not isinstance(text, str):
                raise TypeError(wrong("kernel", what, text, "a text"))
            if "\0" in text:
                raise ValueError(f"kernel: {what} has a NUL character")
        self.reads, self.writes = operands_of("reads", reads), operands_of("writes", writes)
        if not re.fullmatch(NAME, name):
            raise ValueError(f"kernel: the name {name!r} is no word of letters, digits and _")
        if not self.writes:
            raise ValueError("kernel: writes is empty, so it does nothing")
        self.body, self.preamble, self.__name__ = source, preamble, name
        operands = (*self.reads, *self.writes)
        self.size_names = tuple(dict.fromkeys(s for o in operands for s in o.sizes if isinstance(s, str)))
        self.grid = self.grid_of(grid)
        self.check_names([o.name for o in operands])
        self.source = self.text()
        self.key = _core.sha256(f"{grid}\n{self.source}".encode())
        self.codes: dict[str, _core.UserCode] = {}  # by device

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    def grid_of(self, text: str) -> list[tuple[str, ast.expr]]:
        """The indices with their extents; the last one varies fastest."""
        found: list[tuple[str, ast.expr]] = []
        for part in re.split(r",\s*(?=[A-Za-z_]\w*\s*:)", text):
            name, colon, extent = part.partition(":")
            if not colon or not re.fullmatch(NAME, name.strip()):
                raise ValueError(f"kernel: grid has {part!r}; wanted: indices and extents, as in 'i: n, j: m // 2'")
            found.append((name.strip(), formula_of(extent, frozenset(self.size_names))))
        return found

    def check_names(self, arrays: list[str]) -> None:
        """Check that each name has one meaning."""
        names = [*arrays, *self.size_names, *(name for name, _ in self.grid)]
        for name in names:
            if names.count(name) > 1 or name in RESERVED:
                raise ValueError(f"kernel: {name!r} is the name of another thing, too")

    def text(self) -> str:
        """The C source: the body in a loop over the grid, with arrays and sizes under their names."""
        lines = [WORDS, self.preamble, "int32_t cinductor_kernel(void *const *buffers, const int64_t *sizes, "]
        lines[-1] += "int64_t begin, int64_t end)\n{"
        for number, (operand, is_read) in enumerate(
            [*((o, True) for o in self.reads), *((o, False) for o in self.writes)]
        ):
            const = "const " if is_read else ""
            kind = C_TYPES[operand.dtype]
            lines.append(f"    {const}{kind} *restrict {operand.name} = buffers[{number}];")
        for number, name in enumerate((*self.size_names, *(f"extent of {n}" for n, _ in self.grid))):
            if " " not in name:
                lines.append(f"    const int64_t {name} = sizes[{number}];")
        lines += ["    for (int64_t unit = begin; unit < end; unit++) {", "        int64_t left = unit;"]
        first = len(self.size_names)
        for number, (name, _) in reversed(list(enumerate(self.grid))):
            extent = f"sizes[{first + number}]"
            lines.append(f"        const int64_t {name} = left % {extent}; left /= {extent};")
        lines += ["        {", '#line 1 "kernel"', self.body, "", "        }", "    }", "    return 0;", "}", ""]
        return "\n".join(lines)

    def cuda_text(self) -> str:
        """The CUDA source, with one thread per unit. Raises TypeError for unsupported constructs.
        """
        operands = [(o, "const ") for o in self.reads] + [(o, "") for o in self.writes]
        for operand, _ in operands:
            if operand.dtype[0] == "c":
                raise TypeError(f"{self.__name__}: {operand.name} is complex, which GPU kernels do not support")
        given = [f"{const}{C_TYPES[o.dtype]} *__restrict__ {o.name}" for o, const in operands]
        given += [f"const int64_t {name}" for name in self.size_names]
        given += [f"const int64_t extent_{number}" for number in range(len(self.grid))]
        lines = [CUDA_WORDS, self.preamble, 'extern "C" __global__ void __launch_bounds__(256)']
        lines += [f"cinductor_kernel({', '.join([*given, 'const int64_t end'])})", "{"]
        lines += ["    int64_t left = (int64_t)blockIdx.x * 256 + threadIdx.x;", "    if (left >= end) return;"]
        for number, (name, _) in reversed(list(enumerate(self.grid))):
            lines.append(f"    const int64_t {name} = left % extent_{number}; left /= extent_{number};")
        lines += ["    {", '#line 1 "kernel"', self.body, "", "    }", "}", ""]
        return "\n".join(lines)

    def sizes_of(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The sizes of these arrays; None for a size that no array has. Raises TypeError and ValueError."""
        sizes: dict[str, Any] = {}
        for operand, array in zip((*self.reads, *self.writes), arrays):
            if array is None:
                continue
            if array.dtype != DTYPES[operand.dtype] or array.ndim != len(operand.sizes):
                given = f"{array.dtype} with {array.ndim} axes"
                raise TypeError(f"{self.__name__}: {operand.name} is {given}; wanted: {declared(operand)}")
            for size, extent in zip(operand.sizes, array.shape, strict=True):
                known = sizes.setdefault(size, extent) if isinstance(size, str) else size
                self.check_size(operand, size, known, extent)
        return sizes

    def check_size(self, operand: Declared, size: int | str, known: Any, extent: Any) -> None:
        """Check that an axis has the same length as others with its name."""
        if known != extent:
            raise ValueError(f"{self.__name__}: {size} of {operand.name} is {extent}, and {known} elsewhere")

    def arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Arguments by position and name in the order of reads and writes; None for a missing written array."""
        operands = (*self.reads, *self.writes)
        names = [o.name for o in operands]
        given = dict(zip(names, args))
        if len(args) > len(names) or kwargs.keys() & given.keys() or kwargs.keys() - set(names):
            raise TypeError(f"{self.__name__}({', '.join(names)}) is called with other arguments")
        given.update(kwargs)
        if missing := [o.name for o in self.reads if given.get(o.name) is None]:
            raise TypeError(f"{self.__name__}: {missing[0]} is missing")
        return [given.get(name) for name in names]

    def build(self, device: str = "cpu") -> _core.UserCode:
        """Compile it for a device, once. Raises CompileError."""
        if device not in self.codes:
            source = self.source if device == "cpu" else self.cuda_text()
            self.codes[device] = _core.user_code(source, core_options(), device)
        return self.codes[device]

    def run(self, arrays: Sequence[np.ndarray], device: str = "cpu") -> None:
        """Run it on contiguous device arrays, the written ones last; these share no memory with others."""
        values, units = self.grid_values(self.sizes_of(arrays))
        self.build(device).run(tuple(arrays), values, units, config.threads)

    def grid_values(self, sizes: Mapping[str, Any]) -> tuple[tuple[int, ...], int]:
        """The sizes and index limits that the source receives, and the number of points."""
        extents = [max(value_of(tree, sizes), 0) for _, tree in self.grid]
        return (*(int(sizes[name]) for name in self.size_names), *map(int, extents)), math.prod(extents)

    def run_on_device(self, given: list[Any], arrays: Any) -> Any:
        """Make a call with device arrays; arrays: their module."""
        reads, writes = given[: len(self.reads)], given[len(self.reads) :]
        known = [a for a in given if a is not None]
        if not all(isinstance(a, arrays.Array) for a in known):
            raise TypeError(f"{self.__name__}: arrays of the host together with those of a device")
        device = known[0].device
        sizes = self.sizes_of(given)
        shapes = [self.shape_of(operand, sizes) for operand in self.writes]
        writes = [
            arrays.to_device(np.zeros(shape, DTYPES[operand.dtype]), device) if value is None else value
            for operand, value, shape in zip(self.writes, writes, shapes, strict=True)
        ]
        handles = [a._handle for a in (*reads, *writes)]
        for k, handle in enumerate(handles):
            if not handle.flags.c_contiguous or any(
                np.may_share_memory(handle, other) for other in handles[max(k + 1, len(reads)) :]
            ):
                raise ValueError(f"{self.__name__}: on a device, arrays must be contiguous, and a written array may share memory with no other")
        self.run(handles, device)
        return writes[0] if len(writes) == 1 else tuple(writes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel. Written arrays may be omitted if their sizes are those of others; they are then new and
        initialised to zero. Returns the written array, or a tuple of them.
        """
        given = self.arranged(args, kwargs)
        arrays = sys.modules.get("cinductor.arrays.array")  # imported if an Array exists
        if arrays is not None and any(isinstance(value, arrays.Array) for value in given):
            return self.run_on_device(given, arrays)
        count = len(self.reads)
        reads = [np.asarray(value) for value in given[:count]]
        for operand, value in zip(self.writes, given[count:], strict=True):
            if value is not None and (type(value) is not np.ndarray or not value.flags.writeable):
                raise TypeError(f"{self.__name__}: {operand.name} is written, so it is a writeable ndarray")
        sizes = self.sizes_of([*reads, *given[count:]])
        writes = [
            np.zeros(self.shape_of(operand, sizes), DTYPES[operand.dtype]) if value is None else value
            for operand, value in zip(self.writes, given[count:], strict=True)
        ]
        for k, value in enumerate(writes):
            if any(np.may_share_memory(value, other) for other in writes[:k]):
                raise ValueError(f"{self.__name__}: {self.writes[k].name} shares memory with another array it writes")
        own = [w if is_plain(w) else np.array(w, order="C") for w in writes]
        dense = [copied(r, writes) for r in reads]
        self.run([*dense, *own])
        for made, value in zip(own, writes, strict=True):
            if made is not value:
                value[...] = made
        return writes[0] if len(writes) == 1 else tuple(writes)

    def shape_of(self, operand: Declared, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
        """The shape of an array that is made for the caller."""
        if unknown := [s for s in operand.sizes if isinstance(s, str) and s not in sizes]:
            raise TypeError(f"{self.__name__}: {operand.name} is missing, and no argument gives the size {unknown[0]}")
        return tuple(sizes[s] if isinstance(s, str) else s for s in operand.sizes)


def declared(operand: Declared) -> str:
    """The declaration as it was written."""
    return f"{operand.dtype}[{', '.join(map(str, operand.sizes))}]"


def is_plain(array: np.ndarray) -> bool:
    """True if the kernel can use its memory directly."""
    return bool(array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative)


def copied(array: np.ndarray, writes: Sequence[np.ndarray]) -> np.ndarray:
    """A copy of an array to be read, if its layout differs or it may overlap a written array;
    otherwise the array itself."""
    if is_plain(array) and not any(np.may_share_memory(array, written) for written in writes):
        return array
    return np.array(array, order="C")


def core_options() -> dict[str, Any]:
    """The options that a compiler of sources needs."""
    return {name: getattr(config, name) for name in ("cache", "arch", "compile_timeout")}


def kernel(
    source: str, *, reads: str, writes: str, grid: str, preamble: str = "", name: str = "kernel"
) -> UserKernel:
    """Make a kernel from a body in C or CUDA C++, for compiled functions and for calls outside of them.

    The call takes arrays in the order of reads and writes, or by name. Those of writes may be omitted if their sizes are those of
    others; they are new then, and zero before. It returns the written array, or a tuple. Memory that is read is never shared with
    memory that is written: it is copied if it would be. Inside a compiled function the kernel is a library call. With arrays of a
    GPU (`Array`) it is compiled as CUDA C++ by NVRTC and runs there: these must be contiguous, not complex, and written arrays
    separate. Accesses of the body are not checked.

    Parameters
    ----------
    source : str
        Statements of C for one point of the grid. Arrays are pointers in C order; sizes and indices are int64_t.
    reads, writes : str
        Arrays with dtype (bool, i8 to u64, f32, f64, c64, c128) and sizes, which are names or numbers.
    grid : str
        Indices with their ends: sizes, or + - * // %, min and max of them. Points run in any order and on several threads.
    preamble : str
        Declarations and functions before the kernel.
    name : str
        The name in reports.

    Returns
    -------
    UserKernel
        The kernel, to be called.

    Raises
    ------
    TypeError, ValueError
        For declarations that cannot be parsed, and for arrays that differ from them.
    CompileError
        With the compiler's message, at the first call.

    Examples
    --------
    >>> rows = cinductor.kernel(
    ...     "out[i] = 0; for (int64_t j = 0; j < m; j++) out[i] += x[i * m + j] * w[j];",
    ...     reads="x: f64[n, m], w: f64[m]", writes="out: f64[n]", grid="i: n")
    >>> y = rows(x, w)               # or rows(x, w, out)
    """
    return UserKernel(source, reads, writes, grid, preamble, name)
