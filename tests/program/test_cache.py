"""Tests the disk cache between processes: which process compiles, stale entries, leftover files, and full disks.

Each case runs in its own processes with its own cache directory.
"""

import os
import subprocess
import sys
import time

import pytest
from test_robustness import PIECES, PROGRAM, entries, logging, run, script, warnings_in

import cinductor

CHILDREN = """
import resource
print("children", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_a_second_process_starts_no_child(tmp_path):
    """The real compiler, unlike a wrapper script, is identified by its file alone."""
    assert run(tmp_path, program=PROGRAM + CHILDREN, CC="gcc")[-1] != "children 0"
    assert run(tmp_path, program=PROGRAM + CHILDREN, CC="gcc")[-1] == "children 0"


@pytest.mark.parametrize("how", ["another compiler", "another version", "another script"])
def test_a_compiler_behind_a_wrapper_is_not_stale(tmp_path, how):
    log, folder = tmp_path / "log", tmp_path / "bin"
    folder.mkdir()
    real = {
        "another compiler": ["exec gcc", "exec gcc -fno-ipa-icf"],
        "another version": [f'[ "$1" = --version ] && exec echo {k}; exec gcc' for k in (1, 2)],
        "another script": ["exec gcc", "exec  gcc"],
    }[how]
    wrapper = logging(tmp_path / "wrap", log, "real-cc")
    env = {"CC": wrapper, "PATH": f"{folder}:{os.environ['PATH']}"}
    for text, compiles in [(real[0], 1), (real[0], 1), (real[1], 2), (real[1], 2)]:
        script(folder / "real-cc", f'{text} "$@"\n')
        os.utime(folder / "real-cc", (1, 1))  # its time must not matter
        run(tmp_path / "cache", **env)
        assert log.read_text().splitlines() == ["called"] * compiles


def test_a_compiler_that_does_not_say_what_it_is(tmp_path):
    """Its output is not kept, because a change of the compiler could not be detected."""
    compiler = script(tmp_path / "cc", 'case "$*" in *-shared*) exec gcc "$@";; esac\nexit 1\n')
    assert warnings_in(run(tmp_path / "cache", CC=compiler)) == []
    assert not list((tmp_path / "cache").glob("*.so"))


def start(cache, program=PROGRAM, **env):
    """Like run(), but does not wait."""
    full = {**os.environ, "CINDUCTOR_CACHE_DIR": str(cache), **env}
    return subprocess.Popen([sys.executable, "-c", program], env=full, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


WORDS = 'import linecache\nTEXT = {!r}\nlinecache.cache["p.py"] = (len(TEXT), None, TEXT.splitlines(True), "p.py")\nexec(compile(TEXT, "p.py", "exec"))\n'


def test_many_processes_one_cold_cache(tmp_path):
    """One of them compiles, the others wait for it."""
    log = tmp_path / "log"
    compiler = logging(tmp_path / "cc", log)
    children = [start(tmp_path / "cache", WORDS.format(PROGRAM), CC=compiler) for _ in range(8)]
    for child in children:
        _, err = child.communicate(timeout=120)
        assert child.returncode == 0, err.decode()
    assert log.read_text().splitlines() == ["called"]
    assert {p.suffix for p in entries(tmp_path / "cache")} <= {".so", ".shapes", ".note", ".units", ".look"}


def test_what_a_killed_process_leaves(tmp_path):
    """A killed process's folder and lock: no process waits for it, and the next build removes them.
    """
    cache, started = tmp_path / "cache", tmp_path / "started"
    wait = f'mkdir "{started}" && while [ -e "{started}" ]; do sleep 0.1; done; exit 1'
    slow = f'case "$*" in *-shared*) [ -e "{started}" ] || {{ {wait}; }};; esac\nexec gcc "$@"\n'
    compiler = script(tmp_path / "cc", slow)
    child = start(cache, WORDS.format(PROGRAM), CC=compiler)
    while not started.exists() and child.poll() is None:
        time.sleep(0.01)
    left = [p.name for p in cache.iterdir()]
    child.kill()
    child.wait()
    for stream in (child.stdout, child.stderr):
        stream.close()
    assert any("build" in name for name in left) and any(name.endswith(".lock") for name in left)
    assert warnings_in(run(cache, CC=compiler)) == []
    assert {p.suffix for p in cache.iterdir()} <= {".so", ".shapes", ".note", ".units", ".look"}
    started.rmdir()


BACKEND = """
print("loaded", any("kernel.so" in line or len(line.split("/")[-1]) > 64 for line in open("/proc/self/maps")))
"""

MOUNT = 'mkdir -p "$1" && mount -t tmpfs -o mode=700,size=$2 tmpfs "$1" && shift 2 && exec "$@"'


def run_mounted(folder, size, command, **env):
    """Run a command that sees a file system of `size` in the folder. Skip if this process may not mount one."""
    full = {**os.environ, "CINDUCTOR_CACHE_DIR": str(folder), **env}
    inside = ["unshare", "-m", "sh", "-c", MOUNT, "sh", str(folder), size]
    try:
        if subprocess.run([*inside, "true"], capture_output=True).returncode:
            pytest.skip("no file system can be mounted here")
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    done = subprocess.run([*inside, *command], capture_output=True, text=True, env=full, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("size", "program"),
    [("4k", PROGRAM), ("4k", PIECES), ("32k", PROGRAM), ("64k,nr_inodes=2", PROGRAM), ("64k,ro", PROGRAM)],
    ids=["nothing", "nothing, in pieces", "a source", "no file", "read only"],
)
def test_a_full_cache_folder_does_not_take_the_compiler_away(tmp_path, size, program):
    """Kernels are built elsewhere. The one warning names the folder and its problem."""
    lines = run_mounted(tmp_path / "full", size, [sys.executable, "-c", WORDS.format(program + BACKEND)])
    (text,) = warnings_in(lines)
    assert str(tmp_path / "full") in text and "interpreter" not in text and "CC" not in text
    assert ("Read-only" if "ro" in size else "No space left") in text and "CINDUCTOR_CACHE_DIR" in text
    assert "loaded True" in lines


def test_the_folder_for_what_is_temporary(tmp_path):
    """If other users could rename files in the folder, it is not used; nothing is left elsewhere either."""
    for mode in (0o777, 0o1777):
        place = tmp_path / oct(mode)
        place.mkdir()
        place.chmod(mode)
        lines = run("/proc/cinductor", program=PROGRAM + BACKEND, TMPDIR=str(place))
        assert "loaded True" in lines
        assert [p.name for p in place.iterdir()] == ([f"cinductor-{os.getuid()}"] if mode & 0o1000 else [])


@pytest.mark.parametrize("amount, error", [("x", TypeError), (-1, ValueError), (float("nan"), ValueError)])
def test_amounts_that_are_none(amount, error):
    for function, name in ((cinductor.cache.trim, "megabytes"), (cinductor.cache.clear, "older")):
        with pytest.raises(error, match=f"{name} is .*wanted: a number of at least 0"):
            function(amount)
