"""Each TEST of tests/core/*.c as one pytest item."""

import os
import re
import subprocess

import pytest
from conftest import ROOT

SOURCES = sorted((ROOT / "tests" / "core").glob("test_*.c"))
# Leaks are looked for too: a test program frees what it takes.
ENVIRONMENT = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def items():
    """(file, test), read from the sources: nothing is built to collect."""
    for source in SOURCES:
        for name in re.findall(r"^TEST\((\w+)\)", source.read_text(), re.MULTILINE):
            yield pytest.param(source, name, id=f"{source.stem[5:]}-{name}")


@pytest.mark.parametrize("source, name", list(items()))
def test_core(core, source, name):
    program = core.link(source)
    # A preloaded sanitizer runtime of another build would meet the one that is linked in.
    clean = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    done = subprocess.run(
        [program, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=300,
        env={**clean, **ENVIRONMENT},
    )
    if done.returncode:
        pytest.fail(done.stdout[-8000:] or f"exit status {done.returncode}", pytrace=False)


def test_lists_are_what_is_registered(core):
    """The names read from the sources are the names the programs know."""
    for source in SOURCES:
        listed = subprocess.run([core.link(source), "--list"], stdout=subprocess.PIPE, text=True)
        assert listed.stdout.split() == [p.values[1] for p in items() if p.values[0] == source]


def test_harness_is_small_and_fails():
    """The header stays under 100 lines, and an unknown name is no success."""
    assert len((ROOT / "tests" / "core" / "ci_test.h").read_text().splitlines()) <= 100


def test_unknown_name_fails(core):
    done = subprocess.run([core.link(SOURCES[0]), "no_such_test"], stdout=subprocess.PIPE)
    assert done.returncode == 1
