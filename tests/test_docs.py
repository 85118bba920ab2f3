"""The Python blocks of README and of the user guide run as they stand, and print what their comments say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "docs/user-guide.md"]


def blocks_of(document):
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL
    )


def expected_of(source):
    """What comments behind print say; one that leaves something out has an ellipsis, or tells of two ways."""
    comments = re.findall(r"^ *print\(.*\) +# (.*)$", source, re.MULTILINE)
    return [
        c.removeprefix("…/") for c in comments if re.match(r"[-\d\[(…]", c) and ", or " not in c
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_run(document, tmp_path):
    source = "".join(blocks_of(document))
    path = tmp_path / "guide.py"
    path.write_text(source)
    environment = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    for text in expected_of(source):
        assert text in run.stdout, f"{document} promises: {text}"


def test_counts_of_programs():
    """README says how many programs are whole."""
    import programs
    import test_programs

    names = programs.load()
    whole = [n for n in names if n not in test_programs.BROKEN]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert (
        f"Of the {len(names)} programs in `tests/programs`, {len(whole)} are captured whole"
        in readme
    )


def test_options_of_the_guide():
    """Its table has every option."""
    import cinductor

    table = (ROOT / "docs/user-guide.md").read_text().split("## Options")[1]
    for option in cinductor.list_options():
        assert f"`{option.name}`" in table, option.name
