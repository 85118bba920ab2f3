"""Golden files: each `.ci` file holds a graph (or loops) and the expected texts of the levels below.

`pytest --accept` or `CINDUCTOR_ACCEPT=1` rewrites the expected texts; review the diff. golden/golden.c describes
the format of a file, docs/ir.md the texts.
"""

import os
import re
import subprocess

import pytest
from conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"
FILES = sorted(GOLDEN.rglob("*.ci"))


@pytest.fixture(scope="session")
def golden(core):
    return core.link(GOLDEN / "golden.c")


def start(program, *paths):
    clean = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    clean["ASAN_OPTIONS"] = "allocator_may_return_null=1"
    return subprocess.run(
        [program, *paths], capture_output=True, text=True, errors="replace", timeout=300, env=clean
    )


def run(program, path):
    """The texts of all levels for the program in the file."""
    done = start(program, path)
    if done.returncode:
        pytest.fail(f"{path}: {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="session")
def texts(golden, request):
    """The output of run() for all selected files, made by one process; {} if it fails, because the single runs then
    give the reasons.
    """
    wanted = [item.callspec.params["path"] for item in request.session.items if item.name.startswith("test_golden[")]
    done = start(golden, *wanted)
    parts = re.split(r"^=== (.+)\n", done.stdout, flags=re.MULTILINE)[1:]
    return {} if done.returncode else dict(zip(parts[::2], parts[1::2]))


def split(text):
    """The program of a file, and its expected sections."""
    start = text.find("\n---") + 1
    return (text[:start], text[start:]) if start else (text, "")


def name_of(path):
    return str(path.relative_to(GOLDEN))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_golden(golden, texts, path, request):
    got = texts.get(str(path)) or run(golden, path)
    head, expected = split(path.read_text())
    if request.config.getoption("--accept") or os.environ.get("CINDUCTOR_ACCEPT") == "1":
        if got != expected:
            path.write_text(head.rstrip("\n") + "\n" + got)
    else:
        assert got == expected


def test_variants_forget_nothing(golden):
    """GPU kernels: the text of a kernel with symbolic sizes is lowered to procs, and its variant for a size class is
    verified.
    """
    paths = [path for path in FILES if path.parent.name != "ir" and not path.stem.startswith("error_")]
    done = start(golden, "variants", *paths)
    assert done.returncode == 0 and "--- expected error" not in done.stdout, done.stdout + done.stderr
    assert sum(map(int, re.findall(r"^variants: (\d+)$", done.stdout, re.MULTILINE))) > 60


@pytest.mark.parametrize(
    "name", ["layernorm_is_one_kernel", "log_sum_exp_is_one_kernel", "long_sum_is_split", "softmax_is_one_kernel"]
)
def test_kernels_do_not_say_how_a_machine_runs_them(golden, name, tmp_path):
    """A GPU has the kernels of a CPU, although it splits and labels their loops in other ways."""
    head, _ = split((GOLDEN / "schedule" / f"{name}.ci").read_text())
    program, texts = re.sub(r"^# .*\n", "", head, flags=re.MULTILINE), []
    for device, backend in (("cpu", "c"), ("cuda", "cuda")):
        path = tmp_path / f"{device}.ci"
        path.write_text(f"# dump: kernels procs\n# device: {device}\n# backend: {backend}\n{program}")
        texts.append(re.sub(" device=.*{", " {", run(golden, path)).split("--- expected procs\n"))
    assert texts[0][0] == texts[1][0] and texts[0][1] != texts[1][1]


def test_costs_of_gpu_kernels(golden, request):
    """The accesses, operations and barriers in the statements of each GPU kernel of some 65 programs: a regression of
    the generated code shows here without a GPU. A lower number is an improvement; --accept writes the table."""
    table = GOLDEN / "gpu_costs.txt"
    paths = [path for path in FILES if path.parent.name in ("codegen", "schedule") and is_graph(path)]
    assert len(paths) >= 60
    done = start(golden, "costs", *paths)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.replace(f"{GOLDEN}/", "")
    if request.config.getoption("--accept") or os.environ.get("CINDUCTOR_ACCEPT") == "1":
        table.write_text(rows)
    assert rows == table.read_text()


@pytest.mark.parametrize("level", ["graph", "loops", "kernels", "procs", "lines"])
def test_parsers_and_texts_with_errors(core, level):
    """Mutated golden texts are refused with line and column, or print as a text that reads back. A sanitizer finds
    what a parser does not check. CINDUCTOR_FUZZ is the number of texts.
    """
    program = core.link(ROOT / "tests" / "core" / "fuzz_parsers.c")
    done = start(program, level, os.environ.get("CINDUCTOR_FUZZ", "1000"), "1", *FILES)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]


def is_graph(path):
    """True if a file starts from a graph and its program does not fail."""
    return bool(re.search(r"^graph ", split(path.read_text())[0], re.MULTILINE)) and not path.stem.startswith("error_")


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "schedule"][:4], ids=name_of)
def test_same_text_in_every_process(golden, path):
    """Addresses differ from run to run; texts must not depend on them."""
    assert len({run(golden, path) for _ in range(3)}) == 1


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_errors_are_meant(path):
    """A file whose program fails has a name that begins with error_."""
    failed = "--- expected error" in path.read_text()
    assert failed == path.stem.startswith("error_")


@pytest.mark.parametrize("table", ["simplify", "decompose"])
def test_every_rule_has_a_golden_file(table):
    rows = (ROOT / "csrc" / "passes" / f"{table}.def").read_text()
    names = re.findall(r"^(?:RULE|FUNCTION)\((\w+),", rows, re.MULTILINE)
    files = {path.stem for path in FILES}
    assert names and not [name for name in names if f"{table}_{name}" not in files]


@pytest.mark.parametrize("level", ["passes", "loops"])
def test_every_pass_has_a_golden_file(level):
    rows = (ROOT / "csrc" / level / f"{level}.def").read_text()
    for name in re.findall(r"^PASS\((\w+),", rows, re.MULTILINE):
        assert any(path.stem.startswith(name) and path.parent.name == level for path in FILES), name


def test_every_pass_over_procs_has_a_golden_file():
    """The file has the text of procs. This pass alone runs and changes them."""
    rows = (ROOT / "csrc" / "codegen" / "procs.def").read_text()
    for name in re.findall(r"^PASS\(\w+, (\w+),", rows, re.MULTILINE):
        head, expected = split((GOLDEN / "codegen" / f"pass_{name}.ci").read_text())
        program = head[re.search(r"^(symbols|procs) ", head, re.MULTILINE).start() :]
        assert f"# proc_passes: {name}\n" in head and program not in expected, name
