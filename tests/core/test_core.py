"""Runs each TEST of tests/core/*.c as one pytest item."""

import functools
import os
import re
import subprocess

import pytest
from conftest import BASE_FLAGS, ROOT

SOURCES = sorted((ROOT / "tests" / "core").glob("test_*.c"))
# Leaks are detected too: a test program must free what it allocates.
ENVIRONMENT = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "allocator_may_return_null=1",
}


def names(source):
    """The tests that a file registers, by its preprocessed text: macros may make some of them."""
    command = [os.environ.get("CC", "cc"), *BASE_FLAGS, "-E", "-P", source]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace").stdout
    return re.findall(r"\bvoid ci_register_(\w+)\(void\)", text)


ITEMS = [
    pytest.param(source, name, id=f"{source.stem[5:]}-{name}")
    for source in SOURCES
    for name in names(source)
]


# Files whose tests take long; each test is one item.
LONG = ("device", "region_random", "api", "ir")


def start(program, *arguments):
    # A preloaded sanitizer runtime of another build would conflict with the one that is linked in.
    clean = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    return subprocess.run(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=300,
        env={**clean, **ENVIRONMENT},
    )


def run(program, *arguments):
    """Run a test program. A failure shows its output."""
    done = start(program, *arguments)
    if done.returncode:
        pytest.fail(done.stdout[-8000:] or f"exit status {done.returncode}", pytrace=False)


@pytest.fixture(scope="module")
def pass_together(request):
    """True if all tests of a program pass in one process. Computed once, and only if many of its tests are selected.
    """
    wanted = [item.callspec.params["source"] for item in request.session.items if item.name.startswith("test_core[")]

    @functools.cache
    def ask(program, source):
        return source.stem[5:] not in LONG and wanted.count(source) > 2 and start(program).returncode == 0

    return ask


@pytest.mark.parametrize("source, name", ITEMS)
def test_core(request, pass_together, source, name):
    """Under sanitizers, except for files named *_plain.c, whose heads give the reason."""
    build = request.getfixturevalue("plain_core" if source.stem.endswith("_plain") else "core")
    program = build.link(source)
    if not pass_together(program, source):
        run(program, name)


def test_a_compiler_behind_a_script(core, tmp_path, monkeypatch):
    """The runtime keeps the output of the compiler script, and frees it at the end."""
    program, script = core.link(ROOT / "tests" / "core" / "test_api.c"), tmp_path / "compiler"
    script.write_text('#!/bin/sh\nexec cc "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    run(program, "pointwise_and_reduction")


@pytest.mark.parametrize("name", ["pool", "alloc"])
def test_no_data_races(threads_core, name):
    run(threads_core.link(ROOT / "tests" / "core" / f"test_{name}.c"))


def test_every_registered_test_is_an_item(core):
    assert ITEMS
    for source in SOURCES:
        listed = subprocess.run([core.link(source), "--list"], stdout=subprocess.PIPE, text=True)
        assert listed.stdout.split() == [p.values[1] for p in ITEMS if p.values[0] == source]


def test_harness_is_small_and_fails():
    """The header is shorter than 100 lines, and an unknown test name is a failure."""
    assert len((ROOT / "tests" / "core" / "ci_test.h").read_text().splitlines()) <= 100


def test_unknown_name_fails(core):
    done = subprocess.run([core.link(SOURCES[0]), "no_such_test"], stdout=subprocess.PIPE)
    assert done.returncode == 1
