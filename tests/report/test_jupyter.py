"""Tests notebooks: the examples run, compiled functions and reports are displayed, and magics work as documented."""

import re
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jupyter_client import KernelManager
from nbclient import NotebookClient

import cinductor
from cinductor.diagnosis.jupyter import CompileFunctions

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"


@pytest.fixture(scope="module")
def kernel():
    """One process for all notebooks; its names are deleted between them."""
    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


def kinds_of(cell):
    """The formats of a cell's outputs, except for the cleared progress line."""
    outputs = [out for out in cell.get("outputs", []) if out.output_type != "display_data" or any(out.data.values())]
    return {kind for out in outputs for kind in out.get("data", {out.get("name"): ""})}


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(path, kernel):
    notebook = nbformat.read(path, as_version=4)
    stored = [kinds_of(cell) for cell in notebook.cells]  # as written by tools/run_notebooks.py
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f\nimport cinductor; cinductor.reset()"))
    NotebookClient(notebook, km=kernel, timeout=60).execute()
    assert [kinds_of(cell) for cell in notebook.cells[1:]] == stored
    shown = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert not [out for out in shown if out.output_type == "error"]
    pages = [out.data["text/html"] for out in shown if "text/html" in out.get("data", {})]
    for page in pages:
        assert 'class="cinductor"' in page and "its source" not in page and "http" not in re.sub(r"<(pre|code)>.*?</\1>", "", page, flags=re.S)
    assert len(pages) >= (0 if "gpu" in path.stem or "simulation" in path.stem else 1)


def test_there_are_five():
    assert len(list(NOTEBOOKS.glob("*.ipynb"))) == 5


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "cinductor")
    shell.user_ns.update(np=np, cinductor=cinductor, x=np.linspace(0, 1, 50))
    yield shell
    shell.run_line_magic("unload_ext", "cinductor")
    assert "cinductor" not in shell.magics_manager.magics["cell"]
    InteractiveShell.clear_instance()


def run(shell, cell):
    with capture_output() as shown:
        done = shell.run_cell(cell)
    return done, shown


CELL = """%%cinductor
import functools

def doubled(x):
    return x * 2 + 1

def never(x):
    return x

y = doubled(x)
"""


def test_a_cell_is_compiled_and_its_report_shown(shell):
    done, shown = run(shell, CELL)
    assert done.success
    fast = shell.user_ns["doubled"]
    assert isinstance(fast, cinductor.CompiledFunction) and len(fast.specializations) == 1
    np.testing.assert_array_equal(shell.user_ns["y"], np.linspace(0, 1, 50) * 2 + 1)
    report, card = (out.data["text/html"] for out in shown.outputs)
    assert 'class="listing"' in report and "not called yet" in card
    # Lines are counted as the user sees them, including the line of the magic.
    assert re.search(r'<span class="number">5</span><code><span class="key">    return</span> x', report)
    assert "__cinductor_of_the_cell__" not in shell.user_ns


def test_a_function_of_a_cell_with_imports_is_captured(shell):
    """Python compiles the statements of such a cell one by one, without the future imports."""
    run(shell, "import numpy as np\nimport cinductor\n\ndef f(x):\n    return np.exp(x) * np.sqrt(x)\n\nz = 1")
    assert cinductor.explain(shell.user_ns["f"], np.ones(5)).plain is None


def test_a_function_may_be_defined_again(shell):
    run(shell, CELL)
    _, shown = run(shell, CELL.replace("x * 2 + 1", "x * 3"))
    np.testing.assert_array_equal(shell.user_ns["y"], np.linspace(0, 1, 50) * 3)
    assert len(shown.outputs) == 2


def test_cells_that_fail_say_so_and_nothing_stays(shell):
    for body, words in (("def f(x):\n    return x +", "SyntaxError"), ("def f(x): return x\n1 / 0", "ZeroDivisionError")):
        _, shown = run(shell, "%%cinductor\n" + body)
        assert words in shown.stdout + shown.stderr and not shown.outputs
        assert not [t for t in shell.ast_transformers if isinstance(t, CompileFunctions)]
    _, shown = run(shell, "%%cinductor\nz = 3")
    assert "defines no function" in shown.stdout


def test_an_interrupted_cell_ends(shell):
    body = "def f(x):\n    raise KeyboardInterrupt\nf(x)"
    _, shown = run(shell, "%%cinductor\n" + body)
    assert "KeyboardInterrupt" in shown.stdout + shown.stderr
    done, _ = run(shell, CELL)
    assert done.success


def test_explain_of_one_call(shell):
    run(shell, CELL)
    done, shown = run(shell, "%cinductor explain doubled(x)")
    assert done.result.stats["kernels"] == 1 and done.result.recompiles == []
    assert "text/html" in shell.display_formatter.format(done.result)[0]
    done, _ = run(shell, "%cinductor explain np.exp(x)")
    assert done.result.result.shape == (50,)
    done, _ = run(shell, "%cinductor profile doubled(x)")
    assert [row.name for row in done.result.rows] == ["k0"]


@pytest.mark.parametrize(
    "line, words",
    [
        ("", "a command is missing"),
        ("show f(x)", "no command 'show'"),
        ("explain x", "no call"),
        ("explain nowhere(1)", "NameError: name 'nowhere' is not defined"),
        ("explain f(", "no call"),
        ("profile np.exp(x)", "calls no compiled function"),
    ],
)
def test_wrong_lines(shell, line, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        shell.run_line_magic("cinductor", line)


def test_a_wrong_mode(shell):
    with pytest.raises(UsageError, match="no mode 'fast'"):
        shell.run_cell_magic("cinductor", "fast", "def f(x): return x")


def test_cards():
    def broken(x):
        print(end="")
        return x + 1

    fast = cinductor.compile(broken, backend="interp")
    assert "not called yet" in fast._repr_html_()
    fast(np.ones(3))
    card = fast._repr_html_()
    assert "calls print. return the value and print it outside" in card and "test_jupyter.py" in card
    odd = cinductor.compile(lambda x: x, backend="interp")
    odd.__wrapped__.__qualname__ = "<b>"
    assert "<b>&lt;b&gt;</b>" in odd._repr_html_()
