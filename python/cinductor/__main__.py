"""The command line: python -m cinductor doctor | explain | bench | run | reasons | aten | cache."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import os
import runpy
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from . import __version__, cache, compile, config, explain
from ._core import CheckFailed, Error
from .base.user_frame import NO_LOCATION
from .builds import trimming
from .config import nearest
from .diagnosis import benching, rerun
from .diagnosis.doctor import prove, report
from .report import pages
from .report.page import LEVELS, size_text

KEPT = ("info", "clear", "trim", "save", "load")
EPILOG = """FILE:FUNC is a function of a file, which is run as `python FILE` runs it, but not as __main__; MODULE:FUNC of
a module that can be imported; FILE:CLASS.METHOD a method. The function NAME of the same file returns its arguments: a
tuple, or one argument. Without --make, FUNC is called without arguments."""


class Wrong(Exception):
    """A request that cannot be fulfilled, with the reason."""


def load(place: str, make: str) -> tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]:
    """The function, and a function that makes its arguments."""
    path, _, name = place.rpartition(":")
    if not path or not all(part.isidentifier() for part in name.split(".")):
        raise Wrong(f"{place}: FILE:FUNC is expected, as model.py:loss, or MODULE:FUNC")
    if make and not all(part.isidentifier() for part in make.split(".")):
        raise Wrong(f"--make {make}: the name of a function of {path} is expected, which returns the arguments")
    found = space_of(path)
    for asked in filter(None, (name, make)):
        if not callable(attribute(found, asked)):
            raise Wrong(f"{path} has no function {asked}{nearest(asked, names_in(found))}")
    fn = attribute(found, name)
    if not make and (wanted := missing(fn)):
        raise Wrong(f"{name} needs arguments ({wanted}): --make NAME names a function of {path} that returns them")

    def arguments() -> tuple[Any, ...]:
        made = attribute(found, make)() if make else ()
        return made if isinstance(made, tuple) else (made,)

    return fn, arguments


def space_of(path: str) -> dict[str, Any]:
    """The names of a file, or of a module that can be imported from here."""
    if not path.endswith(".py") and not os.path.exists(path) and all(p.isidentifier() for p in path.split(".")):
        sys.path.insert(0, os.getcwd())
        try:
            return vars(importlib.import_module(path))
        except ModuleNotFoundError as error:
            raise Wrong(f"{path}: {error}; a file is named with its ending, as {path}.py:FUNC") from None
        except Exception as error:
            raise Wrong(f"{path} raised {type(error).__name__}: {error}") from None
        finally:
            sys.path.remove(os.getcwd())
    if os.path.isdir(path):
        raise Wrong(f"{path} is a folder; FILE:FUNC names a file in it, as {os.path.join(path, 'model.py')}:loss")
    if not os.path.exists(path):
        raise Wrong(f"{path}: No such file or directory")
    try:
        return runpy.run_path(path, run_name="cinductor.file")
    except Exception as error:
        raise Wrong(in_file(path, error)) from None


def in_file(path: str, error: Exception) -> str:
    """The line of a file that raised, and what it raised."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == path:
            line = number
    text = error.msg if isinstance(error, SyntaxError) else error
    return f"{path}{f':{line}' if line else ''} raised {type(error).__name__}: {text}"


def attribute(found: dict[str, Any], name: str) -> Any:
    """A function of a file, or a method of its class: "Model.loss"."""
    first, *rest = name.split(".")
    value = found.get(first)
    for part in rest:
        value = getattr(value, part, None)
    return value


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
    report = explain(compiled(fn, given), *made_by(arguments, given))
    if given.level and not hasattr(report, given.level):
        raise Wrong(f"a report has no {given.level}{nearest(given.level, LEVELS)}")
    if given.save:
        try:
            report.save(given.save)
        except OSError as error:
            raise Wrong(f"{given.save}: {error.strerror}") from None
        print(f"{given.save} is written")
    else:
        print(getattr(report, given.level) if given.level else report)
    if report.error is not None:
        raise Wrong(f"{given.function} raised {report.error}")


def never_compiled(fn: Callable[..., Any]) -> str:
    """The kind of a function that does not run when it is called; "" for others."""
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        return "generator"
    return "coroutine" if inspect.iscoroutinefunction(fn) else ""


def compiled(fn: Callable[..., Any], given: argparse.Namespace) -> Any:
    """The function, compiled as the command says."""
    try:
        return compile(fn, mode=given.mode, options=options_of(given))
    except (TypeError, ValueError) as error:
        raise Wrong(str(error)) from None


def options_of(given: argparse.Namespace) -> Any:
    """The value of --options."""
    try:
        return json.loads(given.options)
    except json.JSONDecodeError:
        raise Wrong(f"--options {given.options}: JSON is expected, as '{{\"threads\": 1}}'") from None


def made_by(arguments: Callable[[], tuple[Any, ...]], given: argparse.Namespace) -> tuple[Any, ...]:
    """The arguments of one call."""
    try:
        return arguments()
    except Exception as error:
        raise Wrong(f"{given.make}() raised {type(error).__name__}: {error}") from None


def bench(given: argparse.Namespace) -> None:
    fn, arguments = load(given.function, given.make)
    if why := never_compiled(fn):
        raise Wrong(f"{given.function} is a {why}, which runs uncompiled: time the functions that it calls")
    names = given.compare.replace(",", " ").split()
    for name in names:
        if name not in benching.OTHERS:
            raise Wrong(f"--compare {name}: allowed: {', '.join(benching.OTHERS)}")
    fast = compiled(fn, given)
    try:
        made = made_by(arguments, given)
        ours = benching.timed(fast, arguments, given.seconds)
        theirs = benching.timed(fn, arguments, given.seconds)
        found = benching.difference(fast(*made), fn(*made_by(arguments, given)))
    except Wrong:
        raise
    except Exception as error:
        raise Wrong(f"{given.function} raised {type(error).__name__}: {error}") from None
    print(ours.line("compiled"))
    print(theirs.line("NumPy"))
    for line in benching.compared(names, fn, arguments, given.seconds):
        print(line)
    ratio = statistics.median(theirs.calls) / statistics.median(ours.calls)
    print(f"{ratio:.2f} times as fast; results {'have the same bits' if not found else f'differ: {found}'}")
    if found:
        print('numerics="exact" has NumPy\'s own bits (--options \'{"numerics": "exact"}\')')


def print_reason_texts(given: argparse.Namespace) -> None:
    """Prints the page about a reason, or their names."""
    sections = pages.sections()
    if not given.name:
        print("\n".join(sections))
    elif given.name in sections:
        print(sections[given.name])
    else:
        raise Wrong(f"there is no reason {given.name}{nearest(given.name, sections)}; `python -m cinductor reasons` lists all")


def run_graph(given: argparse.Namespace) -> None:
    try:
        text, calls = rerun.read(given.file), rerun.read(given.calls) if given.calls else ""
        level = rerun.level_of(given.given) if given.given else ""
        instead = rerun.read(given.given) if given.given else ""
        lines = rerun.run(text, given.backend, given.runs, given.seed, level, instead, options_of(given), calls)
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
        print(f"{cache.clear(given.older)} entries removed")
    elif given.what == "trim":
        print(f"{cache.trim(config.cache_limit if given.megabytes is None else given.megabytes)} entries removed")
    else:
        print("\n".join(about_cache()))


def about_cache() -> Iterator[str]:
    """The rows of `cache info`."""
    found = cache.info()
    every = trimming.entries(found["directory"])
    yield f"folder     {found['directory'] or 'none can be used; CINDUCTOR_CACHE_DIR names one'}"
    limit = f"at most {size_text(1e6 * config.cache_limit)} (option cache_limit)" if config.cache_limit else "no limit"
    yield f"size       {size_text(sum(entry.size for entry in every))} in {len(every)} files, {limit}"
    yield f"kernels    {found['entries']}"
    if every:
        ages = [age(time.time() - entry.last_use) for entry in (every[-1], every[0])]
        yield f"last use   {' to '.join(dict.fromkeys(ages))} ago"
    if found["entries"]:
        yield f"compiler   {'not needed for these kernels' if found['serves_alone'] else 'needed'}"


def age(seconds: float) -> str:
    """A time in its largest whole unit, as "3 days"."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if (count := int(seconds / length)) > 0:
            return f"{count} {unit}{'s' * (count > 1)}"
    return "less than a minute"


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


def number(text: str) -> float:
    """A number that is not negative, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number that is 0 or more")
    return value


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"cinductor: {message}; `{self.prog} --help` shows what is allowed\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of a command; unknown ones are an error of that command."""
        given, unknown = self.parse_known_args(args, namespace)
        if unknown:
            Parser(prog=given.prog).error(f"unrecognized arguments: {' '.join(unknown)}")
        return given


def parser() -> argparse.ArgumentParser:
    whole = Parser(prog="python -m cinductor", description="A compiler for NumPy code.")
    whole.add_argument("--version", action="version", version=f"cinductor {__version__}")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], None], doc: str) -> argparse.ArgumentParser:
        raw = argparse.RawDescriptionHelpFormatter
        made = commands.add_parser(name, help=doc, description=doc, formatter_class=raw)
        made.set_defaults(run=run, prog=made.prog)
        return made

    made = command("doctor", doctor, "show what works here: versions, compiler, cache, devices, functions, one kernel")
    about = "compare functions on vectors with NumPy's: 2^N operands of each, by default all of float32 (minutes each)"
    made.add_argument("--prove-bits", type=int, nargs="?", const=32, metavar="N", help=about)
    for name, run, doc in (
        ("explain", show, "show what a function is compiled to, as a report"),
        ("bench", bench, "time a function compiled and in NumPy"),
    ):
        made = command(name, run, doc)
        made.epilog = EPILOG
        made.add_argument("function", metavar="FILE:FUNC")
        made.add_argument("--make", default="", metavar="NAME", help="a function that returns the arguments, as a tuple")
        made.add_argument("--mode", default="now", help="mode of cinductor.compile: auto, lazy, now, ...")
        made.add_argument("--options", default="{}", metavar="JSON", help="options of cinductor.compile, as a dict")
        if run is show:
            made.add_argument("--level", default="", help="one part: graph, loops, kernels, procs, source, …")
            made.add_argument("--save", default="", metavar="PATH", help="write the report as a web page (.html), as .json, or as .txt with all levels")
        else:
            made.add_argument("--seconds", type=number, default=1.0, help="time for each way to run it")
            made.add_argument("--compare", default="", metavar="NAMES", help="other compilers: numba,jax,torch")
    made = command("run", run_graph, "run the text of a graph, as written by a trace, on generated inputs")
    made.add_argument("file", metavar="FILE")
    made.add_argument("--backend", default="", help="c or interp; default: the best available")
    made.add_argument("--runs", type=int, default=5, help="number of runs, of which the fastest is printed")
    made.add_argument("--seed", type=int, default=0, help="seed of the generated inputs")
    instead = "loops.txt, kernels.txt, procs.txt, lines.txt or source.c of the same trace, used instead of the lowered graph"
    made.add_argument("--given", default="", metavar="FILE", help=instead)
    made.add_argument("--calls", default="", metavar="FILE", help="calls.txt of the same trace: the functions of library calls")
    made.add_argument("--options", default="{}", metavar="JSON", help="options of cinductor.compile, as a dict")
    made = command("reasons", print_reason_texts, "explain why something runs in Python or NumPy, and what helps")
    made.add_argument("name", nargs="?", default="", metavar="NAME", help="the name that a report has after a hint")
    command("aten", show_aten, "list the ATen ops of PyTorch: compiled, decomposed or called")
    made = command("cache", keep, "show, trim, save or load the disk cache of kernels")
    made.add_argument("what", choices=KEPT, metavar="WHAT", help=", ".join(KEPT))
    made.add_argument("--older", type=number, metavar="DAYS", help="clear: only entries that were not used for this many days")
    made.add_argument("--megabytes", type=number, metavar="N", help="trim: megabytes that may remain, instead of the option cache_limit")
    made.add_argument("file", nargs="?", default="", metavar="FILE", help="save, load: the file with the whole cache")
    return whole


def without_place(message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """The text of a warning. A warning of a call that a command makes has no line of the user's."""
    if filename == NO_LOCATION:
        return f"{message}\n"
    return format_warning(message, category, filename, lineno, line)


format_warning = warnings.formatwarning


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
    warnings.formatwarning = without_place
    sys.exit(main())
