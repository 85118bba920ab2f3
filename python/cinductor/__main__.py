"""The command line: python -m cinductor doctor | explain | bench | run | aten | cache."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import runpy
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import cache, compile, explain, rerun
from ._core import CheckFailed, Error
from .config import nearest
from .doctor import prove, report
from .report.page import LEVELS

EPILOG = """FILE:FUNC is a function of a file, which is run as `python FILE` runs it, but not as __main__.
Its arguments are what the file's function that --make names returns: a tuple, or one argument.
Without --make FUNC takes none."""


class Wrong(Exception):
    """A request that cannot be fulfilled, with the reason."""


def load(place: str, make: str) -> tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]:
    """The function, and a function that makes its arguments."""
    path, _, name = place.rpartition(":")
    if not path or not name.isidentifier():
        raise Wrong(f"{place}: FILE:FUNC is expected, as model.py:loss")
    try:
        found = runpy.run_path(path, run_name="cinductor.file")
    except OSError as error:
        raise Wrong(f"{path}: {error.strerror}") from None
    for asked in filter(None, (name, make)):
        if not callable(found.get(asked)):
            raise Wrong(f"{path} has no function {asked}{nearest(asked, names_in(found))}")
    if not make and (wanted := missing(found[name])):
        raise Wrong(f"{name} takes {wanted}: --make NAME names the function of {path} that makes them")

    def arguments() -> tuple[Any, ...]:
        made = found[make]() if make else ()
        return made if isinstance(made, tuple) else (made,)

    return found[name], arguments


def names_in(found: dict[str, Any]) -> list[str]:
    """The names of the functions in a file."""
    return [name for name, value in found.items() if callable(value) and not name.startswith("_")]


def missing(fn: Callable[..., Any]) -> str:
    """The required arguments that are not given, as text."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return ""
    return ", ".join(p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))


def doctor(given: argparse.Namespace) -> None:
    if given.prove_bits is not None:
        for name, points, found in prove(given.prove_bits):
            print(f"{name:24} {points} operands, {found or 'no'} blocks differ from NumPy", flush=True)
        return
    text, works = report()
    print(text)
    if not works:
        raise Wrong("the C backend does not run here: see `compiler` and `a kernel` above")


def show(given: argparse.Namespace) -> None:
    fn, arguments = load(given.function, given.make)
    report = explain(compile(fn, mode=given.mode), *arguments())
    if given.save:
        report.save(given.save)
        print(f"{given.save} is written")
        return
    if given.level and not hasattr(report, given.level):
        raise Wrong(f"a report has no {given.level}{nearest(given.level, LEVELS)}")
    print(getattr(report, given.level) if given.level else report)


def seconds(call: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], budget: float) -> float:
    """The median of one call; arguments are made again for each call."""
    times: list[float] = []
    until = time.perf_counter() + budget
    while len(times) < 5 or (time.perf_counter() < until and len(times) < 1000):
        made = arguments()
        start = time.perf_counter()
        call(*made)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def is_same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b, strict=True))
    try:
        np.testing.assert_array_equal(a, b)
    except AssertionError:
        return False
    return True


def bench(given: argparse.Namespace) -> None:
    fn, arguments = load(given.function, given.make)
    fast = compile(fn, mode=given.mode)
    start = time.perf_counter()
    got = fast(*arguments())
    first = time.perf_counter() - start
    same = is_same(got, fn(*arguments()))
    ours, theirs = (seconds(call, arguments, given.seconds) for call in (fast, fn))
    print(f"first call  {first * 1e3:10.3f} ms")
    print(f"compiled    {ours * 1e3:10.3f} ms")
    print(f"NumPy       {theirs * 1e3:10.3f} ms")
    print(f"{theirs / ours:.2f} times as fast; results are {'the same bits' if same else 'NOT the same bits'}")


def run_graph(given: argparse.Namespace) -> None:
    try:
        text, calls = rerun.read(given.file), rerun.read(given.calls) if given.calls else ""
        level = rerun.level_of(given.given) if given.given else ""
        instead = rerun.read(given.given) if given.given else ""
        options = json.loads(given.options)
        lines = rerun.run(text, given.backend, given.runs, given.seed, level, instead, options, calls)
    except OSError as error:
        raise Wrong(f"{error.filename}: {error.strerror}") from None
    except CheckFailed as error:
        raise Wrong(f"{given.file}: on these inputs, which are made up, a check of the graph fails: {error}") from None
    except (Error, SyntaxError, ValueError, IndexError, TypeError) as error:
        raise Wrong(f"{given.given or given.file}: {error}") from None
    print("\n".join(lines))


def keep(given: argparse.Namespace) -> None:
    if given.what in ("save", "load"):
        keep_file(given)
        return
    if given.file:
        raise Wrong(f"cache {given.what} takes no file")
    if given.what == "clear":
        print(f"{cache.clear()} kernels removed")
        return
    for name, value in cache.info().items():
        print(f"{name:10} {value}")


def keep_file(given: argparse.Namespace) -> None:
    """Save the cache to a file, or load one."""
    if not given.file:
        raise Wrong(f"cache {given.what} FILE: the file is missing")
    try:
        if given.what == "save":
            print(f"{cache.save(given.file)} entries written to {given.file}")
        else:
            print(f"{cache.load(given.file)} entries are new")
    except OSError as error:
        raise Wrong(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None
    except ValueError as error:
        raise Wrong(str(error)) from None


def show_aten(given: argparse.Namespace) -> None:
    """Print each ATen op with its status, and the number of ops per status."""
    if importlib.util.find_spec("torch") is None:
        raise Wrong("aten: torch is not installed: pip install 'cinductor[torch]'")
    from .torch import rows

    found = rows.statuses()
    for name, status, tags in found:
        print(f"{name:60} {status:10} {tags}".rstrip())
    counts = rows.counts(found)
    print(f"{len(found)} ops: " + ", ".join(f"{n} {status}" for status, n in sorted(counts.items())))


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="python -m cinductor", description="A compiler for NumPy code.")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], None], doc: str) -> argparse.ArgumentParser:
        raw = argparse.RawDescriptionHelpFormatter
        made = commands.add_parser(name, help=doc, description=doc, formatter_class=raw)
        made.set_defaults(run=run)
        return made

    made = command("doctor", doctor, "what a report of a bug needs: versions, compiler, cache, devices, a kernel")
    about = "compare functions on vectors with NumPy's: 2^N operands of each, by default all of float32 (minutes each)"
    made.add_argument("--prove-bits", type=int, nargs="?", const=32, metavar="N", help=about)
    for name, run, doc in (
        ("explain", show, "what a function becomes: a report"),
        ("bench", bench, "a function's time compiled, and in NumPy"),
    ):
        made = command(name, run, doc)
        made.epilog = EPILOG
        made.add_argument("function", metavar="FILE:FUNC")
        made.add_argument("--make", default="", metavar="NAME", help="the function that makes arguments")
        made.add_argument("--mode", default="now", help="of cinductor.compile")
        if run is show:
            made.add_argument("--level", default="", help="one part: graph, loops, kernels, procs, source, …")
            made.add_argument("--save", default="", metavar="PATH", help="a web page, or .json, or .txt with all of it")
        else:
            made.add_argument("--seconds", type=float, default=1.0, help="for each of the two")
    made = command("run", run_graph, "runs a graph's text, as a trace has it, on inputs that are made up")
    made.add_argument("file", metavar="FILE")
    made.add_argument("--backend", default="", help="c or interp; by itself the best that is there")
    made.add_argument("--runs", type=int, default=5, help="of which the quickest is told")
    made.add_argument("--seed", type=int, default=0, help="of the inputs")
    instead = "loops.txt, kernels.txt, procs.txt or source.c of the same trace, in place of what the graph becomes"
    made.add_argument("--given", default="", metavar="FILE", help=instead)
    made.add_argument("--calls", default="", metavar="FILE", help="calls.txt of the same trace: what library calls call")
    made.add_argument("--options", default="{}", metavar="JSON", help="of cinductor.compile")
    command("aten", show_aten, "ATen ops of PyTorch, and whether cinductor compiles, decomposes or calls each")
    made = command("cache", keep, "the disk cache of kernels")
    made.add_argument("what", choices=("info", "clear", "save", "load"))
    made.add_argument("file", nargs="?", default="", metavar="FILE", help="of save and load: the cache as one file")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0, or 1 if the request cannot be fulfilled, with the reason on stderr."""
    words = sys.argv[1:] if arguments is None else arguments
    given = parser().parse_args(words or ["--help"])
    try:
        given.run(given)
    except Wrong as error:
        print(f"cinductor: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
