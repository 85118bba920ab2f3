"""Builds the core as a C library without Python's headers, then the extension that links it.

Environment variables of a build: CINDUCTOR_BUILD_SANITIZE=address,undefined or thread, CINDUCTOR_BUILD_COVERAGE=1,
CINDUCTOR_BUILD_DEBUG=1 (no optimisation, assertions), CINDUCTOR_BUILD_WERROR=1. CINDUCTOR_PROJECT_URL is the page of
the project that a release enters into the metadata.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py


def flags():
    """Flags of the compiler and of the linker."""
    compile_flags = ["-std=gnu11", "-O2", "-fvisibility=hidden", "-fPIC"]
    compile_flags += ["-fwrapv", "-ffp-contract=off"]  # integers wrap, floats round after each operation
    link_flags = []
    if not any(os.environ.get(f"CINDUCTOR_BUILD_{name}") for name in ("DEBUG", "COVERAGE", "SANITIZE")):
        compile_flags += ["-g0"]  # Python's own flags contain -g, which is two thirds of a wheel
        compile_flags += ["-fno-asynchronous-unwind-tables"]  # of use to debuggers only: a twentieth of a wheel
        compile_flags += [f"-falign-{what}=1" for what in ("functions", "jumps", "loops", "labels")]  # padding: a hundredth
        link_flags += ["-Wl,--strip-all"] if sys.platform == "linux" else []
    if os.environ.get("CINDUCTOR_BUILD_DEBUG") == "1":
        compile_flags += ["-O0", "-g", "-UNDEBUG"]
    if os.environ.get("CINDUCTOR_BUILD_COVERAGE") == "1":
        compile_flags += ["--coverage", "-O0"]
        link_flags += ["--coverage"]
    if sanitizers := os.environ.get("CINDUCTOR_BUILD_SANITIZE"):
        compile_flags += [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g", "-O1"]
        link_flags += [f"-fsanitize={sanitizers}"]
    if os.environ.get("CINDUCTOR_BUILD_WERROR") == "1":
        compile_flags += "-Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes -Werror".split()
    return compile_flags, link_flags


# Each runs once when a program is compiled: a fortieth of a wheel.
SMALL = tuple(f"csrc/{folder}/" for folder in ("analysis", "api", "host", "loops", "lower", "passes", "schedule", "wrapper"))


def in_parallel(compile_objects):
    """A compile_objects that compiles as many sources at a time as there are CPUs, those of SMALL for size."""

    def compile_each(sources, extra_postargs=(), **options):
        def compile_one(source):
            for_size = ["-Os"] if source.startswith(SMALL) and not BUILT_AS else []
            return compile_objects([source], extra_postargs=[*extra_postargs, *for_size], **options)

        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as workers:
            return [name for objects in workers.map(compile_one, sources) for name in objects]

    return compile_each


class BuildCore(build_clib):
    def finalize_options(self):
        """Tests link with the library, so it is kept. It is built again each time."""
        super().finalize_options()
        self.build_clib = self.build_temp = f"build/core-{sys.implementation.cache_tag}{BUILT_AS}"
        self.force = True

    def build_libraries(self, libraries):
        program = getattr(self.compiler, "compiler", ["cc"])[0]
        if shutil.which(program) is None:
            raise SystemExit(
                f"cinductor is built from C, and there is no compiler {program!r}: install gcc (11 or newer) or clang "
                "(12 or newer), or name one in CC. Wheels need none."
            )
        self.compiler.compile = in_parallel(self.compiler.compile)
        for name, _ in libraries:  # an old archive would keep objects of deleted sources
            archive = self.compiler.library_filename(name, output_dir=self.build_clib)
            Path(archive).unlink(missing_ok=True)
        for tool, output in GENERATED_SOURCES.items():
            subprocess.run([sys.executable, f"tools/{tool}.py", output], check=True)
        super().build_libraries(libraries)


def included(*headers, known=()):
    """Headers of csrc, and those that they include."""
    found = {*known}
    for header in headers:
        if header not in found and Path("csrc", header).is_file():
            text = Path("csrc", header).read_text(encoding="utf-8")
            found = included(*re.findall(r'^#include "([^"]+)"', text, re.MULTILINE), known={*found, header})
    return found


class BuildPackage(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            to = Path(self.build_lib, "cinductor", Path(STUB).name)
            subprocess.run([sys.executable, "tools/core_docs.py", "--types", STUB, str(to)], check=True)
            # Sources for devices of other packages: cinductor.get_include()
            for header in sorted(included(*FOR_DEVICES)):
                to = Path(self.build_lib, "cinductor", "include", header)
                self.mkpath(str(to.parent))
                self.copy_file(f"csrc/{header}", str(to))
            self.copy_file("docs/reasons.md", str(Path(self.build_lib, "cinductor", "reasons.md")))  # python -m cinductor reasons


class BuildExtension(build_ext):
    def run(self):
        """The core comes first, and the header with the docstrings of the module, which its tables include."""
        self.run_command("build_clib")
        subprocess.run([sys.executable, "tools/core_docs.py", STUB, f"{GENERATED}/core_docs.h"], check=True)
        super().run()


def version():
    """The version, which is written in one place. It is part of every key of the disk cache."""
    return re.search(r'CI_VERSION "([^"]+)"', Path("csrc/base/version.h").read_text(encoding="utf-8"))[1]


def readme(url):
    """README with links that work outside of the repository: absolute links, or only the names of files."""
    text = Path("README.md").read_text(encoding="utf-8")

    def link(match):
        label, target = match.groups()
        return f"[{label}]({url}/blob/HEAD/{target})" if url else label if label == target else f"{label} ({target})"

    return re.sub(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)", link, text)


def refuse_free_threading():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit("cinductor does not support free-threaded Python yet: build it for a Python with the GIL")


refuse_free_threading()
COMPILE, LINK = flags()
BUILT_AS = "".join(f"-{name[16:].lower()}" for name in sorted(os.environ) if name.startswith("CINDUCTOR_BUILD_"))
STUB, GENERATED = "python/cinductor/_core.pyi", "build/generated"
GENERATED_SOURCES = {"embed_kernels": f"{GENERATED}/cuda_kernels.c", "make_stencils": f"{GENERATED}/stencils.c"}
FOR_DEVICES = ("api/cinductor.h", "base/os.h", "device/device.h", "device/toolkit.h", "ir/ops.def")
HEADERS = sorted(glob("csrc/**/*.h", recursive=True) + glob("csrc/**/*.def", recursive=True))
CORE = {
    "sources": [*sorted(glob("csrc/**/*.c", recursive=True)), *GENERATED_SOURCES.values()],
    "obj_deps": {"": HEADERS},
    "include_dirs": ["csrc"],
    "cflags": COMPILE,
}
EXTENSION = Extension(
    "cinductor._core",
    sorted(glob("pyext/*/*.c")),
    include_dirs=["csrc", "pyext", GENERATED, numpy.get_include()],
    depends=[*HEADERS, *sorted(glob("pyext/*/*.h") + glob("pyext/*/*.def")), *CORE["sources"], STUB, "tools/core_docs.py"],
    libraries=["dl", "m", "pthread"],
    extra_compile_args=COMPILE,
    extra_link_args=LINK,
)
URL = os.environ.get("CINDUCTOR_PROJECT_URL", "").rstrip("/")
PAGES = {"Source": "", "Documentation": "/blob/HEAD/docs/user-guide.md", "Changelog": "/blob/HEAD/CHANGELOG.md", "Issues": "/issues"}
setup(
    version=version(),
    long_description=readme(URL),
    long_description_content_type="text/markdown",
    project_urls={name: URL + page for name, page in PAGES.items()} if URL else {},
    libraries=[("cinductor_core", CORE)],
    ext_modules=[EXTENSION],
    cmdclass={"build_clib": BuildCore, "build_py": BuildPackage, "build_ext": BuildExtension},
)
