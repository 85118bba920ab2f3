"""Cross-compiles the core for aarch64 and runs it, and the kernels that its backends build, under qemu: `make
test-arm`.

Checks that the core's unit tests pass, that levels above the C backend have the same text as on this
machine, and that golden programs give the same bits. Graphs that call functions of the C library are left out,
because C libraries differ in the last bits.
"""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT, CoreBuild
from test_core import ITEMS
from test_golden import FILES, GOLDEN, name_of

import cinductor

GCC, QEMU, SYSTEM = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
MISSING = [tool for tool in (GCC, QEMU) if not shutil.which(tool)]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)} (gcc-aarch64-linux-gnu, qemu-user)")

FLAGS = ["-g", "-O1", "-fwrapv", "-ffp-contract=off"]  # as setup.py builds it
# Unit tests that cannot pass in an emulated process, with the reason.
THREADS = "qemu has no fork of a process with threads"
NOT_HERE = {
    "programs_that_cannot_start": "qemu does not tell a parent that its child could not become the program",
    "a_forked_child_has_workers_of_its_own": THREADS,
    "a_fork_in_the_middle_of_a_job": THREADS,
}
MATH = re.findall(r"^MATH\((\w+)", (ROOT / "csrc" / "ir" / "ops.def").read_text(), re.M)
LIBRARY = re.compile(r"\b(" + "|".join([*MATH, r"logaddexp2?", r"complex_\w+", r"erfc?", r"scalar_\w+"]) + r")\(")
OWN_LEVELS = ("procs", "source")  # their text contains the width of vector registers

RNG = np.random.default_rng(0)


@pytest.fixture(scope="session")
def arm():
    build = CoreBuild(FLAGS, GCC)
    build.compile_core()
    return build


@pytest.fixture(scope="session")
def here():
    build = CoreBuild(FLAGS)
    build.compile_core()
    return build


def run(command, emulated, timeout=300):
    """The output of a program, under qemu with kernels compiled for it."""
    env = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "CC")}
    if emulated:
        command, env["CC"] = [QEMU, "-L", SYSTEM, *command], GCC
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, env=env)


@pytest.mark.parametrize("source, name", ITEMS)
def test_core(arm, source, name):
    if name in NOT_HERE:
        pytest.skip(NOT_HERE[name])
    done = run([arm.link(source), name], True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_levels_have_the_same_text(arm, here):
    programs = [build.link(GOLDEN / "golden.c") for build in (arm, here)]
    for path in FILES:
        texts = []
        for program, emulated in zip(programs, (True, False), strict=True):
            parts = re.split(r"^--- expected (\w+)\n", run([program, path], emulated).stdout, flags=re.M)
            texts.append([part for level, part in zip(parts[1::2], parts[2::2], strict=True) if level not in OWN_LEVELS])
        assert texts[0] == texts[1], name_of(path)


def test_golden_programs_have_the_same_bits(arm, here):
    """Both backends give this machine's bits, unless the program calls a function of the C library."""
    files = [
        p
        for p in FILES
        if p.parent.name != "ir" and not p.name.startswith(("error_", "pass_")) and not LIBRARY.search(p.read_text())
    ]
    lines = []
    for build, emulated in ((arm, True), (here, False)):
        done = run([build.link(ROOT / "tests" / "cuda" / "check.c"), "bits", *map(str, files)], emulated, 3600)
        lines.append([line for line in done.stdout.splitlines() if line.startswith(("ok ", "skip "))])
        assert len(lines[-1]) == len(files), done.stdout[-2000:] + done.stderr[-2000:]
    assert sum("c: OK" in line for line in lines[0]) > len(files) // 2, lines[0][:3]
    assert lines[0] == lines[1]


MAIN = """
#include <stdio.h>
int main(void)
{
    static char in[1 << 16] __attribute__((aligned(64)));
    ci_array given = {in, 0, 0, {%s}, {%s}}, made = {0};
    const char *reason = 0;
    fread(in, 1, sizeof in, stdin);
    if (call(&given, &made, &reason))
        return 1;
    fwrite((char *)made.data + made.offset * %d, %d, 1, stdout);
    return 0;
}
"""
EXPORTED = {
    "stencil": (lambda x: np.sqrt(x) * 2 + x.sum(), RNG.random(1000)),
    "columns": (lambda x: np.floor(x * 7) + np.maximum(x, 0.5) - x.sum(axis=0), RNG.random((40, 30)).astype("f4")),
    "ints": (lambda x: (x * 3 // 7 % 5).cumsum() + (x > 50), RNG.integers(0, 99, 333)),
    "conversions": (lambda x: x.astype("f4").astype("i4") + x.astype("f2").astype("i8"), RNG.random(77) * 1000),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_generic_c_has_numpys_bits(name, tmp_path):
    """A program that was exported here."""
    fn, x = EXPORTED[name]
    text, want = cinductor.export(fn, x, options={"arch": "generic", "numerics": "exact"}), fn(x)
    sizes = [", ".join(map(str, row)) for row in (x.shape, [s // x.itemsize for s in x.strides])]
    (tmp_path / "main.c").write_text(text + MAIN % (*sizes, want.itemsize, want.nbytes))
    command = [GCC, "-std=gnu11", "-O1", "-w", *FLAGS, "-fno-strict-aliasing", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([QEMU, "-L", SYSTEM, tmp_path / "main"], input=x.tobytes(), capture_output=True, check=True)
    assert done.stdout == want.tobytes()
