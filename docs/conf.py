"""The site: Sphinx with furo, from the pages of this folder, docstrings, notebooks and tables of the package.

`make docs` builds it into docs/_build/html. Pages of docs/generated are written here at build time and not kept:
the reference (autodoc entries of every public name), the tables, and the notebooks of examples/notebooks.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import cinductor
from cinductor.errors import ERRORS

HERE = Path(__file__).parent
NOTEBOOKS = HERE.parent / "examples" / "notebooks"
project = "cinductor"
author = "The cinductor developers"
release = version = cinductor.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
default_role = "code"  # single backticks of docstrings
html_theme = "furo"
html_title = f"cinductor {release}"
html_show_copyright = False
html_theme_options = {"sidebar_hide_name": False}
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
autodoc_typehints = "none"  # signatures have them
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes that are also members have one entry
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository, which are no pages


def options_page() -> str:
    """Modes and options."""
    rows = ["# Modes and options", "", "`compile(fn, mode=..., options={...})` sets options for one function, `cinductor.config.name = value` for a process, and an environment variable for all functions of it. [Options](../guide/options.md) groups them by use.", "", "## Modes", "", "| mode | sets |", "|---|---|"]
    for mode, values in cinductor.list_mode_options().items():
        sets = ", ".join(f"`{name}={value!r}`" for name, value in values.items()) or "nothing"
        rows.append(f"| `{mode}` | {sets} |")
    rows += ["", "## Options", ""]
    for option in cinductor.list_options():
        allowed = option.allowed.replace("|", ", ")
        more = f"; allowed: {allowed}" if allowed.strip(", ") else ""
        rows += [f"### `{option.name}`", "", f"{option.type}, default `{option.default!r}`{more}; `{option.environment}`", "", option.doc, ""]
    rows += ["## Choices", "", "Thresholds, set by the option `choices`. They change how fast kernels are, never a bit of a result that has NumPy's order.", ""]
    rows += ["| name | cpu | gpu | |", "|---|---|---|---|"]
    rows += [f"| `{c.name}` | {c.cpu} | {c.gpu} | {c.doc} |" for c in cinductor.list_choices()]
    return "\n".join([*rows, ""])


def errors_page() -> str:
    """The exceptions and warnings."""
    rows = [
        "# Errors",
        "",
        "An error inside the compiler never reaches a caller: NumPy runs the call, with one `cinductor.CinductorWarning`. An exception of cinductor says"
        " what happened, shows your line and the arguments of the call, and says what can be done. Frames of the package are left out of its traceback.",
        "",
    ]
    for name, row in ERRORS.items():
        bases = ", ".join(f"`{base.__name__}`" for base in getattr(cinductor, name).__bases__)
        rows += [f"## `{name}`", "", *directive("exception", name), f"Derived from {bases}. {row.when}", ""]
        rows += [f"What to do: {row.advice}.", ""] if row.advice else []
    rows += ["## Warnings", ""]
    for cls in (cinductor.CinductorWarning, cinductor.CacheWarning):
        rows += [f"### `{cls.__name__}`", "", *directive("exception", cls.__name__), inspect.getdoc(cls) or "", ""]
    return "\n".join(rows)


def coverage_page() -> str:
    """NumPy's functions."""
    found = cinductor.coverage()
    return (
        "# Captured NumPy functions\n\n"
        "`print(cinductor.coverage())` prints this table for the installed NumPy. It is made from the tables that capture uses.\n\n"
        + found.markdown()
    )


# Headings of the reference, and the names below each.
GROUPS = {
    "Compile": "compile warm lower package load ShapeDtype CompiledFunction disable reset set_stance is_compiling stats wait",
    "Inspect": "explain profile set_logs print_rewritten bisect coverage list_backends",
    "Settings": "Options config list_options list_mode_options list_choices",
    "Sizes": "mark_dynamic mark_static mark_unbacked",
    "Loops as functions": "fori_loop while_loop cond scan",
    "The disk cache": "cache",
    "Graphs": "graph Graph",
    "Export": "export register_wrapper_backend",
    "Extend": "kernel custom_op list_passes observe_passes register_pass register_pattern register_lowering register_template register_backend",
    "Devices and arrays": "Device device devices Array to_device from_dlpack from_ipc_handle ops Stream Event synchronize"
    " memory_stats reset_peak empty_cache configure_memory register_device register_heuristics Facts get_include",
}


def public_functions() -> list[str]:
    """Names of the package that are no exceptions, in their order."""
    values = {name: getattr(cinductor, name) for name in cinductor.__all__}
    return [n for n, v in values.items() if not (isinstance(v, type) and issubclass(v, BaseException))]


def directive(kind: str, name: str, *options: str) -> list[str]:
    """A Sphinx directive inside MyST."""
    return ["```{eval-rst}", f".. {'py:' if kind == 'exception' else 'auto'}{kind}:: cinductor.{name}", *(f"   {o}" for o in options), "```", ""]


def entry(name: str) -> list[str]:
    """The entry of one public name."""
    value: Any = getattr(cinductor, name)
    if inspect.ismodule(value):
        inner = [n for n, v in vars(value).items() if inspect.isfunction(v) and v.__module__ == value.__name__ and n[0] != "_"]
        lines = ["```{eval-rst}", f".. automodule:: cinductor.{name}", "```", ""]
        return lines + [line for n in inner for line in directive("function", f"{name}.{n}")]
    if value is cinductor.CompiledFunction:  # members of the C type are internal
        return directive("class", name)
    if value is cinductor.Array:  # these are an ndarray's, and types in docstrings (`dtype`) would link to them
        return directive("class", name, ":members:", ":exclude-members: shape, strides, dtype, ndim, size, itemsize, nbytes, T")
    if inspect.isclass(value):
        return directive("class", name, ":members:")
    return directive("function" if callable(value) else "data", name)


def reference_page() -> str:
    """Every public name, by its docstring."""
    rows = ["# Reference", "", "Exceptions and warnings have [a page of their own](errors.md).", ""]
    for title, names in GROUPS.items():
        rows += [f"## {title}", ""]
        for name in names.split():
            rows += [f"### `{name}`", "", *entry(name)]
    return "\n".join(rows)


def notebook_page(path: Path) -> str:
    """A notebook with its stored outputs. (nbsphinx needs pandoc, and myst-nb a database: a notebook is JSON.)"""
    lines = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```ipython3" if source.startswith("%") else "```python", source, "```", ""]
        lines += [line for output in cell["outputs"] for line in output_of(output)]
    return "\n".join(lines)


def output_of(output: dict[str, Any]) -> list[str]:
    """The richest form of one output of a cell."""
    data = output.get("data", {})
    if "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        return ["````{raw} html", f'<div class="output">{html}</div>', "````", ""]
    if "image/png" in data:
        return [f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})", ""]
    text = "".join(output.get("text", data.get("text/plain", "")))
    return ["````text", text.rstrip("\n"), "````", ""] if text.strip() else []


def notebooks_page() -> str:
    """The list of notebooks."""
    names = [f"notebook-{path.stem}" for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    rows = ["# Notebooks", "", "With the outputs of one run. The files are in `examples/notebooks`.", "", "```{toctree}", ":maxdepth: 1", ""]
    return "\n".join([*rows, *names, "```", ""])


PAGES = {
    "options": options_page,
    "errors": errors_page,
    "coverage": coverage_page,
    "reference": reference_page,
    "notebooks": notebooks_page,
}


def close_code_spans(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """`Array`s is one word in Markdown; reStructuredText needs a mark between the two parts."""
    lines[:] = [re.sub(r"(`[^`]+`)(?=\w)", r"\1\\ ", line) for line in lines]


# Documents outside this folder that are pages of the site, by the name of the page.
COPIED = {
    "changes": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "measured": "benchmarks/measured.md",
    "measured-gpu": "benchmarks/gpu.md",
    "dummy-device": "examples/dummy_device/README.md",
    "scratchpad-device": "examples/scratchpad_device/README.md",
    "opencl-device": "examples/opencl_device/README.md",
}


def relinked(text: str, origin: Path, page: Path) -> str:
    """A document with links that work where its page is: other documents are pages, too."""
    names = {HERE.parent / path: HERE / "generated" / f"{name}.md" for name, path in COPIED.items()}

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(origin.parent / match[1]))
        if "://" in match[1] or not (target in names or target.is_relative_to(HERE)):
            return match[0]
        return f"]({os.path.relpath(names.get(target, target), page.parent)}"

    return re.sub(r"\]\(([^)#\s]+)", link, text)


def relink(app: Any, name: str, source: list[str]) -> None:
    path = HERE / f"{name}.md"
    source[0] = relinked(source[0], path, path)


def write_pages(*_: Any) -> None:
    """All pages that come from tables, docstrings, notebooks and other folders."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / f"{name}.md").write_text(page(), encoding="utf-8")
    for path in NOTEBOOKS.glob("*.ipynb"):
        (folder / f"notebook-{path.stem}.md").write_text(notebook_page(path), encoding="utf-8")
    for name, file in COPIED.items():
        origin, page = HERE.parent / file, folder / f"{name}.md"
        page.write_text(relinked(origin.read_text(encoding="utf-8"), origin, page), encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", relink)
    app.connect("autodoc-process-docstring", close_code_spans)


if __name__ == "__main__":
    write_pages()
    sys.exit(0)
