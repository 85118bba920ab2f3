"""Runs the Python blocks of the README and of the user pages and compares the output with their comments. Checks that
the site has every page and every row of the tables.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDE = sorted(path.relative_to(ROOT).as_posix() for path in (DOCS / "guide").glob("*.md"))
DOCUMENTS = ["README.md", "docs/index.md", "docs/trouble.md", *GUIDE]
PAGES = [path for path in DOCS.rglob("*.md") if not {"_build", "generated"} & set(path.relative_to(DOCS).parts)]


def blocks_of(document):
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL
    )


def expected_of(source):
    """Comments after print, except those that name two results. "…" stands for omitted text at the end."""
    comments = re.findall(r"^ *print\(.*\) +# (.*)$", source, re.MULTILINE)
    return [
        c.removeprefix("…/").removesuffix(" …")
        for c in comments
        if re.match(r"[-\d\[(…]|True|called|index \d|[xy]\.shape", c) and ", or " not in c
    ]


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks_of(d)])
def test_documents_run(document, tmp_path):
    for page, package in ("torch", "torch._dynamo"), ("digits", "torch._dynamo"), ("dask", "dask.array"):
        if document == f"docs/guide/{page}.md":
            pytest.importorskip(package, reason=f"the page needs {page}")
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
    """The number of programs that README says are captured whole."""
    import programs
    import test_programs

    readme = " ".join((ROOT / "README.md").read_text().split())
    assert not test_programs.BROKEN
    assert f"All {len(programs.load())} programs in [tests/programs](tests/programs) are captured whole" in readme


def test_readme_is_short():
    """At most 120 lines, with links that a code host follows."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert (ROOT / target).exists(), target


def test_options_of_the_guide():
    """Its tables have every option."""
    import cinductor

    table = (DOCS / "guide/options.md").read_text()
    for option in cinductor.list_options():
        assert f"`{option.name}`" in table, option.name


@pytest.fixture(scope="module")
def site():
    """The site's configuration, which generates pages from tables."""
    spec = importlib.util.spec_from_file_location("site_of_docs", DOCS / "conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_have_what_the_tables_have(site):
    import cinductor
    from cinductor.errors import ERRORS

    options, errors, reference = site.options_page(), site.errors_page(), site.reference_page()
    for option in cinductor.list_options():
        assert f"### `{option.name}`" in options and option.doc in options and option.environment in options
    for choice in cinductor.list_choices():
        assert f"| `{choice.name}` |" in options
    for mode in cinductor.list_mode_options():
        assert f"| `{mode}` |" in options
    for name, row in ERRORS.items():
        assert f"## `{name}`" in errors and row.when in errors
    entries = re.findall(r"^\.\. (?:auto|py:)\w+:: cinductor\.([\w.]+)$", errors + reference, re.MULTILINE)
    assert sorted(name for name in entries if "." not in name) == sorted(cinductor.__all__)
    for name in ("info", "clear", "set_directory"):
        assert f"cache.{name}" in entries


def test_notebooks_are_pages_with_their_outputs(site):
    for path in site.NOTEBOOKS.glob("*.ipynb"):
        page = site.notebook_page(path)
        assert f"notebook-{path.stem}" in site.notebooks_page()
        assert page.startswith("# ") and ("````text" in page or "````{raw} html" in page), path.name


def test_every_page_is_in_the_contents(site):
    listed = set(re.findall(r"^[\w/-]+$", (DOCS / "index.md").read_text(), re.MULTILINE))
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES} - {"index"}
    assert pages | {f"generated/{name}" for name in (*site.PAGES, *site.COPIED)} == listed


def slugs_of(path):
    """The anchors of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_somewhere(site):
    made = {(DOCS / f"generated/{name}.md") for name in site.PAGES}
    for path in [ROOT / "README.md", *PAGES]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", path.read_text()):
            if "://" in target:
                continue
            page = Path(os.path.normpath(path.parent / target)) if target else path
            assert page in made or page.exists(), (path.name, target)
            assert not anchor or page in made or anchor in slugs_of(page), (path.name, target, anchor)
