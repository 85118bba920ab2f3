"""Golden files: each `.ci` holds a graph (or loops) and what the levels below make of it.

`pytest --accept`, `CINDUCTOR_ACCEPT=1` or `python tests/test_golden.py --accept` rewrites what is
expected; the diff is what one reviews. The form of a file stands in golden/golden.c.
"""

import os
import re
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "tests" / "golden").rglob("*.ci"))
LEVELS = ["LOWER", "SCHEDULE", "WRAPPER", "DEVICE"]


def build(folder):
    """The golden runner, linked with the whole core; its path."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    command = [*compiler, "-std=gnu11", "-O1", f"-I{ROOT / 'csrc'}"]
    command += [f"-DGOLDEN_{level}" for level in LEVELS]
    sources = [*sorted((ROOT / "csrc").rglob("*.c")), ROOT / "tests" / "golden" / "golden.c"]

    def compile_one(source):
        target = folder / (str(source.relative_to(ROOT)).replace("/", "_") + ".o")
        done = subprocess.run(
            [*command, "-c", source, "-o", target], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    program = folder / "golden"
    link = [*compiler, *objects, "-o", program, "-ldl", "-lm", "-lpthread"]
    done = subprocess.run(link, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return program


def run(program, path):
    done = subprocess.run([program, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{path}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def split(text):
    """A file's program and its expected sections."""
    start = 0 if text.startswith("---") else text.find("\n---") + 1
    return (text[:start], text[start:]) if start or text.startswith("---") else (text, "")


def accept(program, path):
    head, _ = split(path.read_text())
    path.write_text(head.rstrip("\n") + "\n" + run(program, path))


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    return build(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT / "tests" / "golden")))
def test_golden(golden, path, request):
    asked = request.config.getoption("--accept", default=False)
    if asked or os.environ.get("CINDUCTOR_ACCEPT") == "1":
        accept(golden, path)
    assert run(golden, path) == split(path.read_text())[1]


def test_same_text_in_every_process(golden):
    """Addresses differ from run to run; no text may depend on them."""
    path = ROOT / "tests" / "golden" / "passes" / "all.ci"
    assert len({run(golden, path) for _ in range(3)}) == 1


@pytest.mark.parametrize("table", ["simplify", "decompose"])
def test_every_rule_has_a_golden_file(table):
    rows = (ROOT / "csrc" / "passes" / f"{table}.def").read_text()
    names = re.findall(r"^(?:RULE|FUNCTION)\((\w+),", rows, re.M)
    files = {path.stem for path in FILES}
    assert names and not [name for name in names if f"{table}_{name}" not in files]


def test_every_pass_has_a_golden_file():
    rows = (ROOT / "csrc" / "passes" / "passes.def").read_text()
    for name in re.findall(r"^PASS\((\w+),", rows, re.M):
        assert any(path.stem.startswith(name) for path in FILES), name


if __name__ == "__main__" and sys.argv[1:] == ["--accept"]:
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        runner = build(Path(made))
        for file in FILES:
            accept(runner, file)
