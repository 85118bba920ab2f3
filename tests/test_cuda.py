"""The CUDA backend. Everything here compiles to a cubin through NVRTC, which needs no GPU; with
CINDUCTOR_TEST_CUDA=1 and a GPU it also runs, beside backend `interp`.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT, CoreBuild

sys.path.insert(0, str(Path(__file__).resolve().parent / "cuda"))
import graphs

RUNS = os.environ.get("CINDUCTOR_TEST_CUDA") == "1"
GROUPS = graphs.groups(everything=RUNS)
# Programs of folder ir are texts that need not compile; those named error_ fail on purpose.
GOLDEN = sorted(
    path for path in (ROOT / "tests" / "golden").rglob("*.ci")
    if path.parent.name != "ir" and not path.name.startswith("error_")
)  # fmt: skip


def nvrtc_folder():
    """Where the nvidia-cuda-nvrtc wheel keeps its library, or None."""
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations if spec else ():
        for library in sorted(Path(root).glob("*/lib/libnvrtc.so.*")):
            return str(library.parent)
    return None


@pytest.fixture(scope="session")
def check():
    """Runs tests/cuda/check on files; returns its verdicts. Not sanitized: the driver is no guest of theirs."""
    build = CoreBuild(["-g", "-O1"])
    build.compile_core()
    program = build.link(ROOT / "tests" / "cuda" / "check.c")
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    if folder := nvrtc_folder():
        env.setdefault("CINDUCTOR_NVRTC", folder)

    def run(mode, files):
        command = [program, mode, *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env, timeout=900)
        lines = done.stdout.splitlines()
        if any("NO_COMPILER" in line for line in lines):
            pytest.skip(next(line.split("NO_COMPILER: ")[1] for line in lines if "NO_COMPILER" in line))
        verdicts = [line for line in lines if line.split(" ")[0] in ("ok", "skip", "fail")]
        assert len(verdicts) == len(files), f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert not any(line.startswith("fail") for line in verdicts), done.stdout[-4000:]
        return verdicts

    return run


def write(folder, texts):
    paths = []
    for name, text in texts:
        paths.append(folder / f"{name}.ci")
        paths[-1].write_text(text)
    return paths


@pytest.mark.parametrize("group", GROUPS)
def test_graphs(check, group, tmp_path):
    verdicts = check("run" if RUNS else "build", write(tmp_path, GROUPS[group]))
    assert all(line.startswith("ok") for line in verdicts), verdicts


def test_golden_programs(check):
    """Every golden program but those with library calls and regions, which say why they are left out."""
    verdicts = check("run" if RUNS else "build", GOLDEN)
    assert sum(line.startswith("ok") for line in verdicts) > len(GOLDEN) // 2


def test_sizes_beyond_32_bits(check, tmp_path):
    verdicts = check("build", write(tmp_path, graphs.compile_only()))
    assert all(line.startswith("ok") for line in verdicts), verdicts
