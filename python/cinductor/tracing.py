"""CINDUCTOR_TRACE=folder: all that each capture makes, as files, with an index page."""

from __future__ import annotations

import itertools
import json
import os
import re
from html import escape
from typing import Any

from . import events, rerun
from .notices import warn
from .report.explanation import Explanation
from .report.page import LEVELS
from .report.style import SHEET

FILES = {"wrapper": "wrapper.py", "source": "source.c"}


SCRIPT = """\
\"\"\"Runs the graph of this folder on inputs that are made up: python run.py [--backend interp]\"\"\"

import os
import sys

from cinductor.__main__ import main

graph = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graph.txt")
sys.exit(main(["run", graph, *sys.argv[1:]]))
"""


class Trace(events.Listener):
    """Writes a folder for each capture. What cannot be written costs one warning, and ends it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def end(self, event: events.CaptureEvent) -> None:
        try:
            report = Explanation(event.job, None)
            self.write(report, event)
            self.write_index()
        except OSError as error:
            if self in events.listeners:
                events.listeners.remove(self)
            warn(f"CINDUCTOR_TRACE has no effect from here on: {error}")

    def write(self, report: Explanation, event: events.CaptureEvent) -> None:
        """One capture: a text for each level, guards, the report as a page and as JSON."""
        folder = self.new_folder(report.name)
        texts = {FILES.get(level, f"{level}.txt"): report.every_text(level) for level in LEVELS}
        texts["guards.txt"] = "\n".join(report.guards)
        texts["breaks.txt"] = "\n".join(map(repr, report.breaks))
        texts["report.txt"], texts["report.json"] = report.full(), report.json()
        texts["run.py"] = SCRIPT if texts["graph.txt"] else ""
        texts |= of_c(event.job.last, texts["graph.txt"])
        for name, text in texts.items():
            if text:
                write_text(os.path.join(folder, name), text + "\n")
        report.save(os.path.join(folder, "report.html"))

    def new_folder(self, name: str) -> str:
        """Numbered, in the order of captures; other processes may write beside."""
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
        """A page with a row for each capture that the folder has."""
        rows = []
        for name in sorted(os.listdir(self.folder)):
            if os.path.isfile(os.path.join(self.folder, name, "report.html")):
                files = sorted(os.listdir(os.path.join(self.folder, name)))
                links = " ".join(f'<a href="{escape(name)}/{escape(f)}">{escape(f)}</a>' for f in files)
                rows.append(f"<tr><td>{escape(name)}</td><td>{links}</td></tr>")
        page = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>cinductor trace</title></head>\n'
            f'<body><div class="cinductor"><style>{SHEET}</style><h1>Captures</h1>'
            f"<table><tr><th>capture</th><th>files</th></tr>{''.join(rows)}</table></div></body></html>\n"
        )
        write_text(os.path.join(self.folder, "index.html"), page)


def of_c(outcome: Any, graph: str) -> dict[str, str]:
    """The program as C that needs no Python, and a main for it, where there is such a form."""
    specialization = None if outcome is None else outcome.specialization
    program = None if specialization is None else specialization.program
    if program is None or program.backend != "cpu:c":
        return {}
    text = program.text("c")
    if text.startswith("#error "):
        return {}
    results = len(json.loads(program.text("json"))["results"])
    return {"program.c": text, "main.c": rerun.main_of(graph, text, results)}


def write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
