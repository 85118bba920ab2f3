#!/usr/bin/env python3
"""Runs the example notebooks and stores their outputs, which the site and code hosts show.

    python tools/run_notebooks.py [NOTEBOOK...]

Needs the packages of the extra `test`. Execution counts, time stamps, process ids and empty outputs are left
out, because they would differ in each run. The cache is a fresh folder, so the pages show first calls.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent


def is_empty(output: nbformat.NotebookNode) -> bool:
    """True for the cleared progress line, which leaves an empty text."""
    return output.output_type == "display_data" and not "".join(map(str, output.data.values())).strip()


def store_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(path.parent))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [output for output in cell.outputs if not is_empty(output)]
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = None
    notebook.metadata.language_info = {"name": "python"}
    text = nbformat.writes(notebook) + "\n"
    path.write_text(re.sub(r"/tmp/ipykernel_\d+/", "notebook/", text), encoding="utf-8")


def main() -> None:
    chosen = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CINDUCTOR_CACHE_DIR"] = folder
        for path in chosen:
            store_outputs(path)
            print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
