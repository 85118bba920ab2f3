"""The Python blocks of README and of the pages for users run as they stand, and print what their comments say;
the site has every page, and what its tables have."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "docs/user-guide.md", "docs/tour.md", "docs/trouble.md"]


def blocks_of(document):
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL
    )


def expected_of(source):
    """What comments behind print say; one that leaves something out has an ellipsis, or tells of two ways."""
    comments = re.findall(r"^ *print\(.*\) +# (.*)$", source, re.MULTILINE)
    return [
        c.removeprefix("…/") for c in comments if re.match(r"[-\d\[(…]|True|called", c) and ", or " not in c
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


@pytest.fixture(scope="module")
def site():
    """The site's own module, which makes pages of tables."""
    spec = importlib.util.spec_from_file_location("site_of_docs", ROOT / "docs/conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_have_what_the_tables_have(site):
    import cinductor
    from cinductor.errors import ERRORS

    options, errors, reference = site.options_page(), site.errors_page(), site.reference_page()
    for option in cinductor.list_options():
        assert f"### `{option.name}`" in options and option.doc in options and option.environment in options
    for mode in cinductor.list_mode_options():
        assert f"| `{mode}` |" in options
    for name, row in ERRORS.items():
        assert f"## `{name}`" in errors and row.when in errors
    for name in cinductor.__all__:
        value = getattr(cinductor, name)
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        assert f"## `{name}`" in (errors if is_error else reference), name
    for name in ("info", "clear", "set_directory"):
        assert f"cache.{name}(" in reference


def test_every_page_is_in_the_contents(site):
    index = (ROOT / "docs/index.md").read_text()
    listed = set(re.findall(r"^[\w/-]+$", index, re.MULTILINE))
    pages = {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages | {f"generated/{name}" for name in site.PAGES} == listed


def test_links_between_pages_lead_somewhere(site):
    made = {f"generated/{name}.md" for name in site.PAGES}
    for path in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in target:
                assert target in made or (path.parent / target).exists(), (path.name, target)
