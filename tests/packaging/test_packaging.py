"""Tests the metadata of an installed package, and the cases in which it refuses to be built or imported."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy
import pytest

import cinductor
from cinductor import _core

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r'CI_VERSION "([^"]+)"', (ROOT / "csrc/base/version.h").read_text())[1]
# Run setup.py like pip, after changing one thing.
SETUP = "import sys, runpy; sys.argv = ['setup.py', '-q', 'egg_info', '-e', sys.argv[1]]; {}; runpy.run_path('setup.py', run_name='__main__')"
FILES = SETUP.replace("'egg_info', '-e', sys.argv[1]", "'egg_info', '-e', sys.argv[1], 'build_py', '--build-lib', sys.argv[1]")
needs_setuptools = pytest.mark.skipif(
    int(importlib.metadata.version("setuptools").split(".")[0]) < 77, reason="pyproject.toml asks for setuptools 77"
)


def run(program, *arguments, **environment):
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environment})


def test_the_version_is_written_once():
    """The version is part of cache keys, so that a release does not use kernels of an older one."""
    assert cinductor.__version__ == VERSION
    for name in ("pyproject.toml", "setup.py", "CITATION.cff", "python/cinductor/__init__.py", "conda/recipe/recipe.yaml"):
        assert VERSION not in (ROOT / name).read_text(), name


@needs_setuptools
@pytest.mark.parametrize("url", ["", "https://example.org/cinductor"])
def test_metadata(tmp_path, url):
    done = run(SETUP.format("0"), str(tmp_path), CINDUCTOR_PROJECT_URL=url)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "cinductor.egg-info/PKG-INFO").read_text()
    assert f"\nVersion: {VERSION}\n" in text and "\nLicense-Expression: BSD-3-Clause\n" in text
    assert ("\nProject-URL: " in text) == bool(url)
    head, _, page = text.partition("\n\n")
    assert "# cinductor" in page
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", page))
    listed = (tmp_path / "cinductor.egg-info/SOURCES.txt").read_text().split("\n")
    needed = {"tools/core_docs.py", "tools/embed_kernels.py", "tools/make_stencils.py", "csrc/device/stencil/stencils.h", "csrc/kernels/cuda/sort.cu", "python/cinductor/_core.pyi"}  # for a build
    assert {"benchmarks/run.py", "tools/english/lint.py", "csrc/base/version.h", *needed} <= set(listed)
    assert not [name for name in listed if name.startswith(("build", "docs/_build", "docs/generated", "examples/out", "benchmarks/out"))]


@needs_setuptools
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_headers_of_a_package_are_enough_for_devices(tmp_path):
    """A device of another package is compiled with the headers that are installed."""
    done = run(FILES.format("0"), str(tmp_path))
    assert done.returncode == 0, done.stderr
    include = tmp_path / "cinductor/include"
    headers = [path for path in include.rglob("*") if path.is_file()]
    assert 20 < len(headers) < 80 and (tmp_path / "cinductor/reasons.md").is_file()
    sources = sorted((ROOT / "examples/dummy_device/cinductor_dummy").glob("*.c"))
    python = ["-isystem", sysconfig.get_path("include"), "-isystem", numpy.get_include()]
    check = ["gcc", "-std=gnu11", "-fsyntax-only", "-I", include, *python, *sources]
    done = subprocess.run(check, capture_output=True, text=True)
    assert sources and done.returncode == 0, done.stderr


@needs_setuptools
def test_free_threaded_python_is_refused(tmp_path):
    patch = "import sysconfig as s; old = s.get_config_var; s.get_config_var = lambda n: n == 'Py_GIL_DISABLED' or old(n)"
    done = run(SETUP.format(patch), str(tmp_path))
    assert done.returncode != 0 and "cinductor does not support free-threaded Python" in done.stderr


def test_subinterpreters_are_refused():
    program = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
code = '''
try:
    import cinductor._core
except ImportError as error:
    assert "subinterpreter" in str(error), error
else:
    raise AssertionError("it was imported")
'''
error = interpreters.run_string(made, code)
assert error is None, error
"""
    done = run(program)
    assert done.returncode == 0, done.stderr


OLDEST_GLIBC = (2, 28)
MATHEMATICS = """
import numpy as np, cinductor
from cinductor import _core
assert not [row for row in _core.functions() if row[2] == "own"]
names = "exp log sin cos tan arcsin arctan sinh tanh cbrt arctan2 hypot".split()
for numerics in ("numpy", "fast"):
    for x in (np.linspace(0.1, 0.9, 1000), np.linspace(0.1, 0.9, 37, dtype="f4")):
        def all_of(x):
            return [getattr(np, name)(*(x,) * getattr(np, name).nin) * x for name in names]
        compiled = cinductor.compile(all_of, fullgraph=True, mode="now", backend="c", options={"numerics": numerics})
        for made, wanted in zip(compiled(x), all_of(x)):
            np.testing.assert_array_max_ulp(made, wanted, 0 if numerics == "numpy" else 4)
"""


def versions_of(path):
    """The versions of each dynamic symbol: those that a library needs or has."""
    done = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.split("\n"):
        if match := re.search(r"\(?GLIBC_([\d.]+)\)?\s+(\w+)$", line):
            found.setdefault(match[2], set()).add(tuple(map(int, match[1].split("."))))
    return found


def versions_in_the_c_library():
    """The versions of each function of the C library and of its mathematics."""
    known = {}
    linked = subprocess.run(["ldd", _core.__file__], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"=> (\S*/lib[cm]\.so\.6)", linked):
        for name, versions in versions_of(library).items():
            known.setdefault(name, set()).update(versions)
    return known


@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")
def test_the_extension_calls_no_function_newer_than_glibc_2_28():
    """Built with that glibc it links: each function has a version there. Those of `stat` were inline functions before 2.33."""
    known = versions_in_the_c_library()
    needed = versions_of(_core.__file__).keys() & known.keys() - {"stat", "fstat", "lstat"}
    assert {"malloc", "pthread_create"} <= needed
    assert not [name for name in needed if min(known[name]) > OLDEST_GLIBC]


@pytest.mark.skipif(not (shutil.which("objdump") and shutil.which("gcc")), reason="needs gcc and objdump")
def test_kernels_need_no_glibc_newer_than_2_28(tmp_path):
    """A libmvec of before glibc 2.35 has five functions. NumPy's loops, or scalar functions, are used instead."""
    (tmp_path / "old.c").write_text("void _ZGVbN4v_expf(void) {}\n")
    old = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libmvec.so.1", "-o", tmp_path / "libmvec.so.1", tmp_path / "old.c"]
    subprocess.run(old, check=True)
    cache = tmp_path / "cache"
    done = run(MATHEMATICS, LD_LIBRARY_PATH=str(tmp_path), CINDUCTOR_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    known = versions_in_the_c_library()
    kernels = [*cache.glob("**/*.so")]
    needed = {name for kernel in kernels for name in versions_of(kernel)}
    assert kernels and {"sin", "atan2f"} <= needed
    assert not [name for name in needed if min(known[name]) > OLDEST_GLIBC]
    # The cache has kernels of both kinds of systems.
    if platform.machine() == "x86_64" and tuple(map(int, platform.libc_ver()[1].split("."))) >= (2, 35):
        fast = MATHEMATICS.replace('("numpy"', '("fast"')
        done = run(fast, CINDUCTOR_CACHE_DIR=str(cache))
        assert done.returncode == 0, done.stderr
        assert [name for kernel in cache.glob("**/*.so") for name in versions_of(kernel) if name.startswith("_ZGV")]


ROWS = """
import warnings, numpy as np, cinductor
warnings.simplefilter("error")
x = np.random.default_rng(0).random((40, 64))
for cast in ("f8", "f4", "i2"):
    for fn in (lambda x: (x * 2 + 1).sum(axis=1), lambda x: x[:, ::2] * x[:, 1::2], lambda x: x.astype("i1") + 1):
        wanted = fn(x.astype(cast))
        assert np.array_equal(cinductor.compile(fn, mode="now", backend="c")(x.astype(cast)), wanted)
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_kernels_compile_with_gcc_11(tmp_path):
    """gcc has __builtin_shufflevector since version 12; this compiler says that it is 11, and has no such function."""
    old = tmp_path / "gcc-11"
    old.write_text('#!/bin/sh\nexec gcc -U__GNUC__ -D__GNUC__=11 -D__builtin_shufflevector=no_such_function -w "$@"\n')
    old.chmod(0o755)
    cache = tmp_path / "cache"
    done = run(ROWS, CC=str(old), CINDUCTOR_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr



def test_workflows_use_versions_that_exist():
    """Actions of the packaging authority have full version tags only, such as v1.2.3."""
    text = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
    assert re.search(r"pypa/cibuildwheel@v3\.[1-9]\d*\.\d+\n", text)
