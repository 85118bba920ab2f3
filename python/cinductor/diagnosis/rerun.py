"""Runs one artefact of a trace on generated inputs: a graph with any backend, a text of a later level, or the printed
wrapper. Also writes a main function for the program's C.
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from .. import _core
from ..calls.saved_text import make_known

MAX_SHOWN = 6  # elements of a result
ALL_KERNELS = 1_000_000_000


def graphs_of(text: str) -> list[str]:
    """The graphs in a text, each with the symbols declared before it."""
    found: list[str] = []
    symbols = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("symbols "):
            symbols = line
        elif line.startswith("graph "):
            found.append(symbols + line)
            symbols = ""
        elif found:
            found[-1] += line
    return found


def inputs_of(graph: str, seed: int) -> list[Any]:
    """Generated arrays and numbers for the graph: floats from 0.5 to 1.5, ints and bools of 0 and 1."""
    rng = np.random.default_rng(seed)
    made = []
    for kind, dtype, shape, strides in _core.graph_inputs(graph):
        reach = [(n - 1) * step if n else 0 for n, step in zip(shape, strides, strict=True)]
        room = 1 + sum(map(abs, reach))
        values = rng.random(room) + 0.5 if dtype.kind in "fc" else rng.integers(0, 2, room)
        memory = np.asarray(values).astype(dtype)
        first = -sum(step for step in reach if step < 0)
        steps = [step * dtype.itemsize for step in strides]
        array = np.lib.stride_tricks.as_strided(memory[first:], shape, steps)
        made.append(array.item() if kind == "python" else array)
    return made


def level_of(path: str) -> str:
    """The level of a trace's file. Raises ValueError for other names."""
    found = re.search(r"(?:^|[.])(loops|kernels|procs|lines)\.txt$|(?:^|[.])(source)\.c$", os.path.basename(path))
    if found is None:
        raise ValueError("a file's name says its level: loops.txt, kernels.txt, procs.txt, lines.txt or source.c")
    return found[1] or found[2]


def run(
    text: str,
    backend: str = "",
    runs: int = 5,
    seed: int = 0,
    level: str = "",
    given: str = "",
    options: dict[str, Any] | None = None,
    calls: str = "",
) -> list[str]:
    r"""Run each graph in a text on generated inputs, and describe its results, a line for each.

    backend: of the CPU, as in `compile`. level, given: a text that replaces that level of the single graph; kernels
    and procs are run by the checking interpreter, except with backend="c". calls: the callees of library calls, as in
    a trace. Raises ValueError if there is no graph, and exceptions of the graph.
    """
    if calls:
        make_known(calls)
    graphs = graphs_of(text)
    if not graphs:
        raise ValueError("this is no text of a graph, such as graph.txt of CINDUCTOR_TRACE: no line begins with 'graph '")
    if given and len(graphs) > 1:
        raise ValueError(f"{len(graphs)} graphs are there, and the {level} of one")
    how = {**(options or {}), "verify": bool(given)}
    if level in ("kernels", "procs") and backend != "c":
        how["interpreted_kernels"] = ALL_KERNELS
        backend = ""
    lines = []
    for graph in graphs:
        inputs = inputs_of(graph, seed)
        results, program, seconds = _core.compile_text(
            graph, inputs, options=how, backend=backend, runs=max(runs, 1), level=level, given=given
        )
        where = f"{program.backend}, interpreted" if "interpreted_kernels" in how else program.backend
        name = graph[graph.index("graph ") :].split("(")[0]
        lines.append(f"{name}: {len(inputs)} inputs, {where}, {1e6 * seconds:.1f} µs")
        lines += lines_for(results)
    return lines


def lines_for(results: Any) -> list[str]:
    """A line for each result."""
    return [f"  result {k}: {described(result)}" for k, result in enumerate(results)]


def read(path: str) -> str:
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def wrapper_names(path: str, options: dict[str, Any], calls: str = "") -> tuple[dict[str, Any], list[Any]]:
    """The names that a printed wrapper uses, for the graph in a file, and generated inputs; calls: the file with the
    callees of library calls, if there is one.
    """
    graph = read(path)
    if calls:
        make_known(read(calls))
    inputs = inputs_of(graph, 0)
    return _core.compile_text(graph, inputs, options=options)[1].wrapper_names(), inputs


def described(value: Any) -> str:
    """The description of a result: dtype, shape, and its first elements."""
    array = np.asarray(value)
    shown = ", ".join(map(repr, array.ravel()[:MAX_SHOWN].tolist()))
    more = ", ..." if array.size > MAX_SHOWN else ""
    return f"{array.dtype} {array.shape}: {shown}{more}"


C_TYPES = {"f": "float", "d": "double"}


def main_of(graph: str, program: str, results: int, first: str = "") -> str:
    r"""A C file with a main function that calls the program of program.c on generated inputs and prints the first
    bytes of each result.

    program: its text, whose first line is the compile command; first: the prefix of the file names.
    """
    command = program.partition("\n")[0].replace(" -shared -nostdlib", "")
    lines = [
        command.replace("FILE.c", f"{first}main.c").replace("FILE.so", f"{first}main"),
        f'#include "{first}program.c"',
        "int printf(const char *format, ...);",
        "void *calloc(__SIZE_TYPE__ count, __SIZE_TYPE__ size);",
        "int main(void)",
        "{",
    ]
    inputs = _core.graph_inputs(graph)
    lines.append(f"    ci_array in[{len(inputs) + 1}] = {{{{0}}}}, out[{results + 1}] = {{{{0}}}};")
    for k, (_, dtype, shape, strides) in enumerate(inputs):
        reach = [(n - 1) * step if n else 0 for n, step in zip(shape, strides, strict=True)]
        room = 1 + sum(map(abs, reach))
        lines.append(f"    in[{k}].data = calloc({room}, {max(dtype.itemsize, 8)});")
        lines.append(f"    in[{k}].offset = {-sum(step for step in reach if step < 0)};")
        if dtype.char in C_TYPES:
            lines.append(f"    for (int k = 0; k < {room}; k++)")
            lines.append(f"        (({C_TYPES[dtype.char]} *)in[{k}].data)[k] = 0.5 + k % 7 / 8.0;")
        for name, values in (("sizes", shape), ("strides", strides)):
            lines += [f"    in[{k}].{name}[{axis}] = {value};" for axis, value in enumerate(values)]
    lines += [
        '    const char *reason = "";',
        "    int32_t status = call(in, out, &reason);",
        '    printf("status %d %s\\n", (int)status, reason);',
        f"    for (int k = 0; k < {results} && status == 0; k++)",
        '        printf("result %d: size %lld, first eight bytes %016llx\\n", k, (long long)out[k].sizes[0],',
        "               out[k].data ? *(unsigned long long *)out[k].data : 0);",
        "    return status;",
        "}",
    ]
    return "\n".join(lines) + "\n"
