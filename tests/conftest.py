"""Shared fixtures: a separate disk cache, and the C core built for tests.

The core is compiled once per session, with AddressSanitizer and UBSan if the compiler has them. Objects are kept
in a private temporary directory under names derived from their inputs, so a second run compiles only the files
that changed.
"""

import atexit
import compileall
import contextlib
import functools
import gc
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
from folders import ROOT

LIBRARIES = ["-ldl", "-lm", "-lpthread"]
OLD = 6 * 3600  # seconds since the last use
BASE_FLAGS = ["-std=gnu11", "-I" + str(ROOT / "csrc"), "-I" + str(ROOT / "tests" / "core")]
VMATH = ROOT / "csrc" / "vmath"  # whose integers wrap on purpose
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g1", "-Og"]

# Captures must not depend on how busy the machine is. Tests of the limit set it themselves.
os.environ.setdefault("CINDUCTOR_CAPTURE_LIMIT", "inf")
# Captures and builds must not depend on what calls took before. Tests of that set the mode themselves.
os.environ.setdefault("CINDUCTOR_MODE", "now")
# Tests must not reuse captures of other tests. Tests of saved calls switch saving on.
os.environ.setdefault("CINDUCTOR_SAVED_CALLS", "0")
if "CINDUCTOR_CACHE_DIR" not in os.environ:
    # Set before cinductor is imported: tests neither use nor fill the user's cache.
    os.environ["CINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="cinductor-tests-")
    atexit.register(
        lambda path, owner: os.getpid() == owner and shutil.rmtree(path, ignore_errors=True),
        os.environ["CINDUCTOR_CACHE_DIR"],
        os.getpid(),
    )


def private_folder(name):
    """A folder of this user that stays for later runs."""
    folder = Path(tempfile.gettempdir()) / f"cinductor-{name}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        pytest.fail(f"{folder} belongs to another user")
    return folder


def forget_old(files, keep):
    """Remove all but the most recently used files. Other runs may use or remove files at the same time."""
    ages = []
    for path in files:
        with contextlib.suppress(FileNotFoundError):
            ages.append((time.time() - path.stat().st_mtime, path))
    for age, path in sorted(ages)[keep:]:
        if age > OLD:
            path.unlink(missing_ok=True)


def run(command, **options):
    """The command's output; a failing command fails the test with what it printed."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, errors="replace", **options
    )
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


def keep_objects(*names):
    """Puts compilers before those of PATH that compile equal kernels once (kept_objects.c). Each has the name of its
    real compiler's file, by which the package knows it.
    """
    sources = [ROOT / "tests" / "support" / "kept_objects.c", *(ROOT / "csrc" / "base" / f"{name}.c" for name in ("hash", "os"))]
    text, kept, own = b"".join(map(Path.read_bytes, sources)), private_folder("objects"), shutil.which("cc")
    for name in names:
        real = shutil.which(name)
        if not (own and real) or kept in Path(real).parents:
            continue
        file = Path(real).resolve()
        stamp = file.stat()
        folder = kept / hashlib.sha256(f"{real} {file} {stamp.st_size} {stamp.st_mtime_ns}".encode() + text).hexdigest()[:24]
        program = folder / name / file.name
        if not program.with_name(name).exists():
            program.parent.mkdir(parents=True, exist_ok=True)
            temporary = program.with_name(f"{os.getpid()}.tmp")
            places = [f'-DREAL="{real}"', f'-DKEPT="{folder}"']
            run([own, "-std=gnu11", "-O1", "-I", ROOT / "csrc", *places, *sources, "-ldl", "-o", temporary])
            with contextlib.suppress(FileExistsError):  # made by another run, which uses it
                program.hardlink_to(temporary)
            with contextlib.suppress(FileExistsError):
                program.with_name(name).symlink_to(file.name)
            temporary.unlink()
        os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"


keep_objects("cc", "gcc", "clang", "g++")


def pytest_configure(config):
    """Write the bytecode of the package even if Python is told not to, so that test processes need not compile it
    again.
    """
    config.addinivalue_line("markers", "ways(*names): the ways of ways.py in which the test runs, instead of all")
    compileall.compile_dir(ROOT / "python", quiet=1)


def pytest_addoption(parser):
    parser.addoption("--accept", action="store_true", help="rewrite what golden files expect")


def pytest_generate_tests(metafunc):
    """A test that takes `way` runs in every way, or in those that its mark `ways` names."""
    if "way" in metafunc.fixturenames:
        import ways

        mark = metafunc.definition.get_closest_marker("ways")
        wanted = [way for way in ways.WAYS if mark is None or way.name in mark.args]
        metafunc.parametrize("way", wanted, indirect=True, ids=[way.name for way in wanted])


def pytest_collection_modifyitems(config, items):
    """Deselect tests that are not in the sample of their way. A process that runs other ways deselects all tests
    without a way.
    """
    if any("::" in argument for argument in config.args):  # tests selected by name always run
        return
    given = [item.callspec.params.get("way") if hasattr(item, "callspec") else None for item in items]
    ways = [way if hasattr(way, "takes") else None for way in given]  # empty if this machine supports none of a test's ways
    is_other = "CINDUCTOR_TEST_WAYS" in os.environ
    kept = [way.takes(item.name) if way else not is_other for item, way in zip(items, ways, strict=True)]
    config.hook.pytest_deselected(items=[item for item, keep in zip(items, kept, strict=True) if not keep])
    items[:] = [item for item, keep in zip(items, kept, strict=True) if keep]


@pytest.fixture
def way(request):
    """One way of ways.py; the test runs once for each."""
    if request.param.has_break:
        request.getfixturevalue("pieces_are_compiled")
    return request.param


@pytest.fixture(autouse=True)
def no_kernel_is_refused():
    """A kernel that the C compiler refuses is a failure, also where warnings are ignored."""
    import refused

    with refused.none():
        yield


@pytest.fixture
def pieces_are_compiled(monkeypatch):
    """Compile pieces however little they compute, without timing them against NumPy."""
    from cinductor.capture.pieces import driver

    monkeypatch.delattr(driver.PieceJob, "keep")  # times pieces against NumPy
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    monkeypatch.setattr("cinductor.calls.job.Job.hand_over", lambda *_: None)


@pytest.fixture
def calls_take_a_microsecond():
    """The time that calls in NumPy take, and so what they pay, does not depend on the machine."""
    from cinductor import _core

    _core.step_clock(0)
    yield
    _core.step_clock(None)


@pytest.fixture
def calls_are_captured(monkeypatch):
    """Capture each call that needs Python, whatever that costs."""
    monkeypatch.setattr("cinductor.calls.job.Job.leave_to_numpy", lambda *_: None)


@pytest.fixture(scope="module", autouse=True)
def only_new_objects_are_collected():
    """Tables of test cases are a million objects, which are frozen so that gc.collect() in a test does not traverse
    them. Full collections happen between modules only; young generations are collected as usual.
    """
    gc.set_threshold(*gc.get_threshold()[:2], 1 << 20)
    gc.collect()
    gc.freeze()


@functools.cache
def included_by(path):
    """The files of the project that a C file includes directly."""
    names = re.findall(rb'^\s*#\s*include\s*"([^"]+)"', path.read_bytes(), re.MULTILINE)
    places = [folder / os.fsdecode(name) for name in names for folder in (path.parent, ROOT / "csrc", ROOT / "tests" / "core")]
    return [place for place in places if place.is_file()]


def reached_from(source):
    """A C file and all files that it includes, directly or not."""
    found, todo = set(), [source]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += included_by(path)
    return found


def generated_sources():
    """The C files that tools write, written anew if what they are made of has changed."""
    folder = ROOT / "build" / "generated"
    made = {"embed_kernels": folder / "cuda_kernels.c", "make_stencils": folder / "stencils.c"}
    for tool, output in made.items():
        run([sys.executable, ROOT / "tools" / f"{tool}.py", output])
    return [*made.values()]


class CoreBuild:
    """The core's objects under one set of flags."""

    def __init__(self, flags, compiler=None):
        self.compiler = compiler or os.environ.get("CC", "cc")
        self.flags = [*BASE_FLAGS, *flags]
        self.directory = private_folder("core")
        self.common = hashlib.sha256(" ".join([self.compiler, *self.flags]).encode())

    def compile(self, source, *defines):
        """The object of one source."""
        if source.is_relative_to(VMATH):
            defines = (*defines, "-fwrapv")
        key = self.common.copy()
        key.update(str(source).encode() + " ".join(defines).encode())
        for path in sorted(reached_from(source)):
            key.update(str(path).encode() + path.read_bytes())
        out = self.directory / f"{source.stem}-{key.hexdigest()[:24]}.o"
        if not out.exists():
            temporary = out.with_suffix(f".{os.getpid()}.tmp")
            run([self.compiler, *self.flags, *defines, "-c", source, "-o", temporary])
            temporary.replace(out)
        os.utime(out)
        return out

    def compile_core(self, *layers):
        """Every object of the core, or of some of its folders, and an archive of them."""
        folders = [ROOT / "csrc" / layer for layer in layers or [""]]
        sources = sorted(source for folder in folders for source in folder.rglob("*.c"))
        sources += [] if layers else generated_sources()
        with ThreadPoolExecutor(os.cpu_count() or 1) as workers:
            self.objects = list(workers.map(self.compile, sources))
        key = hashlib.sha256("\n".join(map(str, self.objects)).encode()).hexdigest()[:24]
        self.archive = self.directory / f"core-{key}.a"
        temporary = self.archive.with_suffix(f".{os.getpid()}.tmp")
        temporary.unlink(missing_ok=True)
        run(["ar", "rcs", temporary, *self.objects])
        temporary.replace(self.archive)

    def take_core(self, archive, objects):
        """A core that was compiled already."""
        self.objects, self.archive = objects, archive
        self.common.update(str(archive.stat().st_mtime_ns).encode())

    def link(self, source, *defines):
        """A program of one source and the core."""
        objects = [self.compile(source, *defines), self.archive]
        key = hashlib.sha256("\n".join(map(str, objects)).encode()).hexdigest()[:24]
        out = self.directory / f"{source.stem}-{key}"
        if not out.exists():
            temporary = out.with_suffix(f".{os.getpid()}.tmp")
            run([self.compiler, *self.flags, *objects, *LIBRARIES, "-o", temporary])
            temporary.replace(out)
        os.utime(out)
        return out


def can_build(flags):
    """True if the compiler accepts the flags and the compiled program runs."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "probe.c"
        source.write_text("int main(void) { return 0; }\n")
        program = Path(directory) / "probe"
        command = [os.environ.get("CC", "cc"), *flags, source, "-o", program]
        built = subprocess.run(command, capture_output=True)
        return built.returncode == 0 and subprocess.run([program]).returncode == 0


@pytest.fixture(scope="session")
def core():
    """The core for tests; core.link(source) returns a program."""
    build = CoreBuild(SANITIZERS if can_build(SANITIZERS) else ["-g", "-O1"])
    build.compile_core()
    yield build
    forget_old(build.directory.iterdir(), keep=600)
    forget_old(private_folder("objects").glob("*/*.so"), keep=30_000)


@pytest.fixture(scope="session")
def plain_core():
    """The core as the package is built: optimised, without sanitizers. It is the package's own build unless a source
    is newer.
    """
    build = CoreBuild(["-O2", "-fvisibility=hidden", "-fPIC", "-DNDEBUG"])
    folder = ROOT / "build" / f"core-{sys.implementation.cache_tag}"
    archive = folder / "libcinductor_core.a"
    sources = [*generated_sources(), *(path for path in (ROOT / "csrc").rglob("*.*") if path.suffix in (".c", ".h", ".def"))]
    if archive.exists() and archive.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        build.take_core(archive, [folder / path.relative_to(ROOT).with_suffix(".o") for path in sorted(sources) if path.suffix == ".c"])
    else:
        build.compile_core()
    return build


@pytest.fixture(scope="session")
def threads_core():
    """The parts of the core that run on several threads, under ThreadSanitizer."""
    flags = ["-fsanitize=thread", "-g1", "-Og"]
    if not can_build(flags):
        pytest.skip("the compiler has no ThreadSanitizer that runs here")
    build = CoreBuild(flags)
    build.compile_core("base", "host")
    return build
