"""Runs an exported program of cinductor from its JSON: an interpreter of the program's lines.

    python examples/run_json.py PROGRAM.json A.npy B.npy ...

`cinductor.export(fn, *args, form="json")` writes such a file. It contains buffers, lines (csrc/wrapper/lines.def
says what each does), and the kernels as C with their compiler flags. Needs NumPy and a C compiler ($CC, or cc),
but not cinductor.
"""

import ast
import ctypes
import json
import operator
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
OPERATORS |= {ast.FloorDiv: lambda a, b: a // b if b else 0, ast.Mod: lambda a, b: a % b if b else 0}
SLOTS = {"f": "f8", "c": "c16"}  # a number takes a slot of 16 bytes


class Run(ctypes.Structure):
    """The arguments of a kernel in addition to its operands."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("scratch", "partials", "fault", "poll", "poll_arg", "apply", "ufuncs", "turn", "wait", "wait_arg", "is_again")]


def value(expr, symbols):
    """The value of a size expression. Names are symbols, calls are min and max."""

    def of(node):
        match node:
            case ast.Constant(int(number)):
                return number
            case ast.Name(name):
                return symbols[name]
            case ast.UnaryOp(ast.USub(), operand):
                return -of(operand)
            case ast.BinOp(left, op, right):
                return OPERATORS[type(op)](of(left), of(right))
            case ast.Call(ast.Name("min" | "max" as name), items):
                return (min if name == "min" else max)(map(of, items))
        raise ValueError(f"no expression of sizes: {expr}")

    return expr if isinstance(expr, int) else of(ast.parse(expr, mode="eval").body)


def aligned(size, dtype="u1"):
    """A number of bytes, rounded up to a multiple of 64, the alignment that kernels expect."""
    block = np.empty(size + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + size].view(dtype)


class View:
    """A result: an array over the memory of its buffer, which it keeps alive."""

    def __init__(self, memory, result, symbols):
        sizes, strides = (tuple(value(e, symbols) for e in result[key]) for key in ("sizes", "strides"))
        first = memory.ctypes.data + value(result.get("offset", 0), symbols) * memory.itemsize
        self.memory, layout = memory, {"shape": sizes, "strides": tuple(s * memory.itemsize for s in strides)}
        self.__array_interface__ = {**layout, "data": (first, False), "typestr": memory.dtype.str, "version": 3}


class Program:
    """A program read from JSON; calls take its arrays and numbers, and return a list of results."""

    def __init__(self, text):
        self.made = json.loads(text)
        if "asks_numpy" in self.made:
            raise NotImplementedError("its kernels call loops of NumPy's functions: numerics='close' has functions of its own")
        self.lines, self.around, blocks = self.made["lines"], [], []  # around: for each line, the line that opened its block
        for at, line in enumerate(self.lines):
            self.around.append(blocks[-1] if blocks else -1)
            if line["line"] in ("else", "end"):
                blocks.pop()
            if "match" in line:
                blocks.append(at)
        names = {b["name"]: b["dtype"] for b in self.made["buffers"]}
        self.dtypes = {n: np.dtype("?" if d == "bool" else f"{d[0]}{int(d[1:]) // 8}") for n, d in names.items()}
        if "source" in self.made:
            self.folder = tempfile.TemporaryDirectory()
            source, library = (Path(self.folder.name, f"kernels.{end}") for end in ("c", "so"))
            source.write_text(self.made["source"])
            words = [os.environ.get("CC", "cc"), *self.made["flags"].split(), source, "-o", library, "-lmvec", "-lm"]
            subprocess.run(words, check=True)
            self.library = ctypes.CDLL(str(library))

    def launch(self, line, memory, symbols, scalars):
        """Run all work units of a kernel in order, and the finishing function of a split kernel. Units of a chained
        scan need not wait.
        """
        name, sizes = f"k{line['kernel']}", [value(e, symbols) for e in line["sizes"]]
        keys = ("units", "finish_units", "scratch_bytes", "partial_bytes")
        units, finish, scratch, partial = (value(line.get(key, 0), symbols) for key in keys)
        kept, turn = (aligned(scratch), aligned(partial), np.zeros(16, "i4")), np.zeros(1, "i8")
        kept[1].fill(0)
        pointers = np.array([memory[b].ctypes.data for b in line["buffers"]] + [0], np.uintp)
        run, counts = Run(*(array.ctypes.data for array in kept), turn=turn.ctypes.data), np.array([*sizes, 0], np.int64)
        for function, times in ((name, units), (f"{name}_finish", finish)):
            given = (pointers.ctypes.data, counts.ctypes.data, scalars.ctypes.data, 0, times, ctypes.addressof(run))
            if times > 0 and getattr(self.library, function)(*map(ctypes.c_int64, given)):
                raise ValueError(line.get("reasons", ["a kernel has failed"])[int(kept[2][1])])

    def __call__(self, *inputs):
        """inputs: an array or a number for each input, with the dtypes and layouts of the file."""
        memory, symbols, scalars, turns, at = {}, {}, np.zeros((len(inputs) + 1, 2)), {}, 0
        slots = iter(scalars)
        for given, buffer in zip(inputs, self.made["buffers"]):
            memory[buffer["name"]] = given
            if buffer["kind"] == "scalar":
                memory[buffer["name"]] = next(slots).view(SLOTS.get(buffer["dtype"][0], "i8"))
                memory[buffer["name"]][0] = given
        while self.lines[at]["line"] != "return":
            at = 1 + self.step(at, memory, symbols, scalars, turns)
        return [np.asarray(View(memory[r["buffer"]], r, symbols)) for r in self.made["results"]]

    def step(self, at, memory, symbols, scalars, turns):
        """Run one line. Return the index of the line after which the program continues."""
        line, around = self.lines[at], self.around[at]
        kind, name, of = line["line"], line.get("buffer"), line.get("from")
        if kind == "symbol":
            symbols[line["symbol"]] = memory[name].shape[line["axis"]] if line["axis"] >= 0 else int(memory[name][0])
        elif kind in ("alloc", "alloc_result"):
            memory[name] = aligned(value(line["bytes"], symbols), self.dtypes[name])
        elif kind == "reuse":
            memory[name] = memory.pop(of)
        elif kind == "part":
            start, size = value(line["offset"], symbols), value(line["bytes"], symbols)
            memory[name] = memory[of][start : start + size].view(self.dtypes[name])
        elif kind in ("free", "leave"):
            del memory[name]
        elif kind == "swap":
            memory[name], memory[of] = memory[of], memory[name]
        elif kind == "launch":
            self.launch(line, memory, symbols, scalars)
        elif kind == "define":
            found = symbols[line["symbol"]] = int(memory[name].flat[0])
            if found < line.get("low", found) or ("limit" in line and found >= value(line["limit"], symbols)):
                raise ValueError(f"{line['symbol']} is out of range")
        elif kind == "check" and not memory[name].flat[0]:
            raise ValueError(line["text"])
        elif kind == "extern":
            raise NotImplementedError(f"a library call of {line['name']}")
        elif kind == "for":
            symbols[line["symbol"]] = turns.setdefault(at, 0)
            if turns[at] >= value(line["extent"], symbols):
                del turns[at]
                return line["match"]
        elif kind == "else" or (kind == "if" and not memory[name].flat[0]):
            return line["match"]
        elif kind == "test" and not memory[name].flat[0]:
            for freed in line.get("frees", []):
                del memory[freed]
            return self.lines[around]["match"]
        elif kind == "end" and self.lines[around]["line"] in ("for", "while"):
            turns[around] = turns.get(around, 0) + 1
            return around - 1
        return at


if __name__ == "__main__":
    for result in Program(Path(sys.argv[1]).read_text())(*map(np.load, sys.argv[2:])):
        print(result)
