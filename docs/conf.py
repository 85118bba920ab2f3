"""The site: Sphinx with furo, from the pages of this folder and tables of the package.

`make docs` builds it into docs/_build/html. Pages of docs/generated are written here, at build time, from
the tables that the package itself uses; they are not kept.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import cinductor
from cinductor.errors import ERRORS

HERE = Path(__file__).parent
project = "cinductor"
author = "The cinductor developers"
release = version = cinductor.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"cinductor {release}"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository, which are no pages


def options_page() -> str:
    """Modes and options."""
    rows = ["# Modes and options", "", "`compile(fn, mode=..., options={...})`; `cinductor.config.name = value` for a process; the environment for all of them.", "", "## Modes", "", "| mode | sets |", "|---|---|"]
    for mode, values in cinductor.list_mode_options().items():
        sets = ", ".join(f"`{name}={value!r}`" for name, value in values.items()) or "nothing"
        rows.append(f"| `{mode}` | {sets} |")
    rows += ["", "## Options", ""]
    for option in cinductor.list_options():
        allowed = option.allowed.replace("|", ", ")
        more = f"; allowed: {allowed}" if allowed.strip(", ") else ""
        rows += [f"### `{option.name}`", "", f"{option.type}, default `{option.default!r}`{more}; `{option.environment}`", "", option.doc, ""]
    rows += ["## Choices", "", "Thresholds, which the option `choices` sets: they change how fast kernels are, never a bit of a result that has NumPy's order.", ""]
    rows += ["| name | cpu | gpu | |", "|---|---|---|---|"]
    rows += [f"| `{c.name}` | {c.cpu} | {c.gpu} | {c.doc} |" for c in cinductor.list_choices()]
    return "\n".join([*rows, ""])


def errors_page() -> str:
    """The exceptions and warnings."""
    rows = [
        "# Errors",
        "",
        "A mistake of the compiler never reaches a caller: NumPy answers, with one `cinductor.CinductorWarning`. What is raised says what"
        " happened, shows your line, which arguments the call had and what can be done; frames of the package are left out of its traceback.",
        "",
    ]
    for name, row in ERRORS.items():
        bases = ", ".join(f"`{base.__name__}`" for base in getattr(cinductor, name).__bases__)
        rows += [f"## `{name}`", "", f"Derived from {bases}. {row.when}", ""]
        rows += [f"What to do: {row.advice}.", ""] if row.advice else []
    rows += ["## Warnings", ""]
    for cls in (cinductor.CinductorWarning, cinductor.CacheWarning):
        rows += [f"### `{cls.__name__}`", "", inspect.getdoc(cls) or "", ""]
    return "\n".join(rows)


def coverage_page() -> str:
    """NumPy's surface."""
    found = cinductor.coverage()
    return (
        "# What of NumPy is captured\n\n"
        "`print(cinductor.coverage())` has this table for the NumPy that is installed. It is made from the tables that capture uses.\n\n"
        + found.markdown()
    )


def public_functions() -> list[str]:
    """Names of the package that are no exceptions, in their order."""
    values = {name: getattr(cinductor, name) for name in cinductor.__all__}
    return [n for n, v in values.items() if not (isinstance(v, type) and issubclass(v, BaseException))]


def reference_page() -> str:
    """Every public name, by its docstring."""
    rows = ["# Reference", ""]
    for name in public_functions():
        value: Any = getattr(cinductor, name)
        rows += [f"## `{name}`", ""]
        if inspect.ismodule(value):
            rows += [text_of(value), ""]
            for inner, one in vars(value).items():
                if inspect.isfunction(one) and one.__module__ == value.__name__ and inner[0] != "_":
                    rows += ["```python", f"{name}.{inner}{signature_of(one)}", "```", "", text_of(one), ""]
            continue
        if callable(value):
            rows += ["```python", f"{name}{signature_of(value)}", "```", ""]
        rows += [text_of(value), ""]
    return "\n".join(rows)


def signature_of(value: Any) -> str:
    """As it is written."""
    try:
        return str(inspect.signature(value)).replace("'", "")
    except (TypeError, ValueError):
        return "(...)"


def text_of(value: Any) -> str:
    """A docstring as a literal block: its lines mean what they look like."""
    text = inspect.getdoc(value) or ""
    return "\n".join(["```text", text, "```"]) if text else ""


PAGES = {
    "options": options_page,
    "errors": errors_page,
    "coverage": coverage_page,
    "reference": reference_page,
}


def write_pages(*_: Any) -> None:
    """All pages that come from tables."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / f"{name}.md").write_text(page(), encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_pages)


if __name__ == "__main__":
    write_pages()
    sys.exit(0)
