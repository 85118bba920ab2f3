"""CINDUCTOR_TRACE=folder: writes all artefacts of each capture to files, with an index page."""

from __future__ import annotations

import itertools
import json
import os
import re
from html import escape
from typing import Any

from .. import _core
from ..base.deferred_warnings import warn
from ..base.signals import pass_on
from ..calls.saved_text import calls_as_text
from ..report.explanation import Explanation
from ..report.html import document, fragment
from ..report.page import LEVELS
from ..report.programs import ProgramTexts
from ..report.style import SHEET
from . import events, rerun

FILES = {"wrapper": "wrapper.py", "source": "source.c"}
DEFAULTS = {row[0]: row[2] for row in _core.options()}
LEFT_OUT = ("dump", "wrapper", "interpreted_kernels", "verify")  # options that only affect how a run is inspected

# How each artefact is run alone. If a capture has several programs, the names of their files begin with a., b., …
HOW = {
    "graph.txt": "python run.py [--backend interp]: compiles and runs the graph",
    "loops.txt": "python run.py --given loops.txt [--backend interp]: reads the loops from this file, verifies them, and runs what they are compiled to",
    "kernels.txt": "python run.py --given kernels.txt: reads the kernels; the interpreter runs them and checks every access (--backend c compiles them)",
    "procs.txt": "python run.py --given procs.txt: reads the statements of the kernels",
    "lines.txt": "python run.py --given lines.txt: reads the program's lines; the kernels are made from the graph",
    "source.c": "python run.py --given source.c: builds this source, and calls its kernels as the program does",
    "wrapper.py": "python wrapper.py: runs the program's lines in Python; the kernels are made from the graph",
    "calls.txt": "the names of the library functions that the program calls (if there are any); run.py and wrapper.py read it",
    "main.c": "the first line is the command that compiles it, with program.c, to ./main, a program without Python",
}

SCRIPT = """\
\"\"\"Runs the program of this folder on generated inputs: python {name} [--given FILE] [--backend interp]\"\"\"

import os
import sys

from cinductor.__main__ import main

folder = os.path.dirname(os.path.abspath(__file__))
graph, calls = os.path.join(folder, "{graph}"), os.path.join(folder, "{calls}")
known = ["--calls", calls] if os.path.isfile(calls) else []
sys.exit(main(["run", graph, "--options", {options!r}, *known, *sys.argv[1:]]))
"""

WRAPPER = """\
import os

from cinductor.diagnosis import rerun

folder = os.path.dirname(os.path.abspath(__file__))
graph, calls = os.path.join(folder, "{graph}"), os.path.join(folder, "{calls}")
names, inputs = rerun.wrapper_names(graph, {options!r}, calls if os.path.isfile(calls) else "")
globals().update(names)

{text}
if __name__ == "__main__":
    print("\\n".join(rerun.lines_for(call(*inputs))))
"""


class Trace(events.Listener):
    """Writes a folder for each capture. If writing fails, there is one warning, and the trace ends."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def end(self, event: events.CaptureEvent) -> None:
        try:
            report = Explanation(event.job, None)
            self.write(report, event)
            self.write_index()
        except OSError as error:
            pass_on(error)
            if self in events.listeners:
                events.listeners.remove(self)
            warn(f"CINDUCTOR_TRACE has no effect from here on: {error}")

    def write(self, report: Explanation, event: events.CaptureEvent) -> None:
        """Write one capture: a text for each level, guards, the report as a page and as JSON."""
        folder = self.new_folder(report.name)
        texts: dict[str, str] = {}
        for part in report.parts:
            texts |= artefacts(part, event.job)
        texts["guards.txt"] = "\n".join(report.guards)
        texts["breaks.txt"] = "\n".join(map(repr, report.breaks))
        texts["report.txt"], texts["report.json"] = report.full(), report.json()
        for name, text in texts.items():
            if text:
                write_text(os.path.join(folder, name), text + "\n")
        to_index = '<p style="margin: 8px 24px"><a href="../index.html">all captures</a></p>'
        write_text(os.path.join(folder, "report.html"), document(report.name, to_index + fragment(report)))

    def new_folder(self, name: str) -> str:
        """The folders are numbered in the order of captures; other processes may write to the same one."""
        os.makedirs(self.folder, exist_ok=True)
        words = re.sub(r"[^\w.-]+", "-", name.rpartition("<locals>.")[2]).strip("-") or "function"
        known = [entry for entry in os.listdir(self.folder) if entry[:4].isdigit()]
        for number in itertools.count(len(known)):
            path = os.path.join(self.folder, f"{number:04}-{words}")
            try:
                os.mkdir(path)
            except FileExistsError:
                continue
            return path
        raise AssertionError

    def write_index(self) -> None:
        """Write a page with a row for each capture in the folder."""
        rows = []
        for name in sorted(os.listdir(self.folder)):
            if os.path.isfile(os.path.join(self.folder, name, "report.html")):
                files = sorted(os.listdir(os.path.join(self.folder, name)))
                files.remove("report.html")
                links = " ".join(f'<a href="{escape(name)}/{escape(f)}">{escape(f)}</a>' for f in files)
                report = f'<a href="{escape(name)}/report.html">{escape(name)}</a>'
                rows.append(f"<tr><td>{report}</td><td>{escape(outcome_in(os.path.join(self.folder, name)))}</td><td>{links}</td></tr>")
        how = "".join(f"<tr><td>{escape(name)}</td><td>{escape(words)}</td></tr>" for name, words in HOW.items())
        body = (
            f'<div class="cinductor"><style>{SHEET} .cinductor td {{ white-space: normal; text-align: left; }}</style><h1>Captures</h1>'
            f"<table><tr><th>report</th><th>outcome</th><th>files</th></tr>{''.join(rows)}</table>\n"
            f"<h2>How to run a file</h2><p>Each command runs in the folder of the capture, on generated inputs. If a capture has several "
            f"programs, the names of their files begin with a., b., and so on.</p><table>{how}</table></div>"
        )
        write_text(os.path.join(self.folder, "index.html"), document("captures", body))


def outcome_in(folder: str) -> str:
    """The outcome of a capture: the second line of its report."""
    with open(os.path.join(folder, "report.txt"), encoding="utf-8") as file:
        return next(itertools.islice(file, 1, None), "").strip()


def artefacts(part: ProgramTexts, job: Any) -> dict[str, str]:
    """The texts of a program by file name, each in a form that runs alone."""
    first = f"{part.letter}." if part.letter else ""
    options = {
        name: value for name, value in job.options().items() if value != DEFAULTS[name] and name not in LEFT_OUT
    }
    texts = {FILES.get(level, f"{level}.txt"): part.text(level) for level in (*LEVELS, "lines")}
    files = {"graph": f"{first}graph.txt", "calls": f"{first}calls.txt"}
    texts["calls.txt"] = calls_as_text(calls) if (calls := part.program.library_calls()) else ""
    texts["wrapper.py"] = WRAPPER.format(**files, options=options, text=texts["wrapper.py"])
    texts["run.py"] = SCRIPT.format(**files, name=f"{first}run.py", options=json.dumps(options))
    texts |= of_c(part.program, texts["graph.txt"], first)
    return {first + name: text for name, text in texts.items()}


def of_c(program: Any, graph: str, first: str) -> dict[str, str]:
    """The program as C without Python, and a main function for it, if it can be exported."""
    text = program.text("c") if program.backend == "cpu:c" else "#error "
    if text.startswith("#error "):
        return {}
    results = len(json.loads(program.text("json"))["results"])
    return {"program.c": text, "main.c": rerun.main_of(graph, text, results, first)}


def write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
