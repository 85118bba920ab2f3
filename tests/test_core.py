"""Each TEST of tests/core/*.c as one pytest item."""

import functools
import os
import re
import subprocess

import pytest
from conftest import BASE_FLAGS, ROOT

SOURCES = sorted((ROOT / "tests" / "core").glob("test_*.c"))
# Leaks are looked for too: a test program frees what it takes.
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


# Each of their tests takes its time, and shows it.
LONG = ("device", "region_random", "api", "ir")


def start(program, *arguments):
    # A preloaded sanitizer runtime of another build would meet the one that is linked in.
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
    """Runs a test program; what it printed is the failure."""
    done = start(program, *arguments)
    if done.returncode:
        pytest.fail(done.stdout[-8000:] or f"exit status {done.returncode}", pytrace=False)


@pytest.fixture(scope="module")
def pass_together(request):
    """True if all tests of a program pass in one process: asked once, and of none that few are
    wanted of."""
    wanted = [item.callspec.params["source"] for item in request.session.items if item.name.startswith("test_core[")]

    @functools.cache
    def ask(program, source):
        return source.stem[5:] not in LONG and wanted.count(source) > 2 and start(program).returncode == 0

    return ask


@pytest.mark.parametrize("source, name", ITEMS)
def test_core(request, pass_together, source, name):
    """Under sanitizers, but for files named *_plain.c, which say why not."""
    build = request.getfixturevalue("plain_core" if source.stem.endswith("_plain") else "core")
    program = build.link(source)
    if not pass_together(program, source):
        run(program, name)


def test_a_compiler_behind_a_script(core, tmp_path, monkeypatch):
    """What it answers is kept as long as the runtime, and freed with it."""
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
    """The header stays under 100 lines, and an unknown name is no success."""
    assert len((ROOT / "tests" / "core" / "ci_test.h").read_text().splitlines()) <= 100


def test_unknown_name_fails(core):
    done = subprocess.run([core.link(SOURCES[0]), "no_such_test"], stdout=subprocess.PIPE)
    assert done.returncode == 1
