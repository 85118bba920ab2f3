"""Tests the CUDA backend. Graphs compile to cubins through NVRTC, which needs no GPU; Python programs run on an
emulated GPU.

With CINDUCTOR_TEST_CUDA=1 and a GPU, all of it runs there and is compared with backend `interp` and NumPy.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT, forget_old, private_folder

sys.path.insert(0, str(ROOT / "tests" / "cuda"))
import device_objects
import graphs
import ways

RUNS = os.environ.get("CINDUCTOR_TEST_CUDA") == "1"
GROUPS = graphs.groups(everything=RUNS)
# How threads share work depends on the width of an element, not on other properties of the dtype: two widths are
# enough.
WALKED = [name for name in GROUPS if name[:5] != "fold_" or name in ("fold_f32", "fold_c64")]
# Programs of folder ir are texts that need not compile; those named error_ fail on purpose. Others may start from loops
# or kernels.
GOLDEN = sorted(
    path
    for path in (ROOT / "tests" / "golden").rglob("*.ci")
    if path.parent.name != "ir" and not path.name.startswith("error_") and "graph " in path.read_text().split("\n---")[0]
)


def nvrtc_folder():
    """Where the nvidia-cuda-nvrtc wheel keeps its library, or None."""
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations if spec else ():
        for library in sorted(Path(root).glob("*/lib/libnvrtc.so.*")):
            return str(library.parent)
    return None


@pytest.fixture(scope="session")
def check(plain_core):
    """Run tests/cuda/check on files; return its verdicts. Built without sanitizers, which the CUDA driver does not
    support. NVRTC compiles each text once, also for later runs.
    """
    program, cubins = plain_core.link(ROOT / "tests" / "cuda" / "check.c"), private_folder("cubins")
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"} | {"CINDUCTOR_CACHE_DIR": str(cubins)}
    if folder := nvrtc_folder():
        env.setdefault("CINDUCTOR_NVRTC", folder)

    def run(mode, files):
        command = [program, mode, *map(str, files)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=env, timeout=900
        )
        lines = done.stdout.splitlines()
        if any("NO_COMPILER" in line for line in lines):
            pytest.skip(
                next(line.split("NO_COMPILER: ")[1] for line in lines if "NO_COMPILER" in line)
            )
        verdicts = [line for line in lines if line.split(" ")[0] in ("ok", "skip", "fail")]
        assert len(verdicts) == len(files), (
            f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        failed = [line for line in lines if line.startswith("fail")]
        assert not failed, "\n".join(failed[:20])
        return verdicts

    yield run
    forget_old(cubins.glob("*.cubin"), keep=5000)


def card_count():
    import cinductor

    return len(cinductor.devices("cuda"))


def write(folder, texts):
    paths = []
    for name, text in texts:
        paths.append(folder / f"{name}.ci")
        paths[-1].write_text(text)
    return paths


@pytest.mark.parametrize("group", GROUPS)
def test_graphs(check, group, tmp_path):
    # A sum of bfloat16 is rounded to eight bits at each step, so a split sum differs.
    mode = "run" if RUNS and group != "fold_bf16" else "build"
    verdicts = check(mode, write(tmp_path, GROUPS[group]))
    assert all(line.startswith("ok") for line in verdicts), verdicts


def test_golden_programs(check):
    """Every golden program, except those with library calls and regions; these say why they are left out."""
    # Casts out of range depend on the device, and fold_leaves has two of them. A machine may have only one GPU.
    files = [path for path in GOLDEN if not (RUNS and path.name in ("fold_leaves.ci", "several_devices.ci"))]
    verdicts = check("run" if RUNS else "build", files)
    assert sum(line.startswith("ok") for line in verdicts) > len(GOLDEN) // 2


@pytest.mark.parametrize("group", WALKED)
def test_walked_graphs(check, group, tmp_path):
    """Interpret the GPU kernels on the CPU. A data race, or an access out of bounds, is an error."""
    check("walk", write(tmp_path, GROUPS[group]))


def test_walked_golden_programs(check):
    verdicts = check("walk", [path for path in GOLDEN if path.name != "fold_leaves.ci"])
    assert sum(line.startswith("ok") for line in verdicts) > len(GOLDEN) // 3


def test_sizes_beyond_32_bits(check, tmp_path):
    verdicts = check("build", write(tmp_path, graphs.compile_only()))
    assert all(line.startswith("ok") for line in verdicts), verdicts


# --- device arrays on the fake driver: everything but the numbers ------------------------------------

FLOW = """
import ctypes, gc
fake = ctypes.CDLL("libcuda.so.1")
import numpy as np, cinductor

def f(x, w, s):
    return np.maximum(x * w + 1, 0) * s, np.sum(x, axis=1), x.T, np.sum(x), x

x = cinductor.to_device(np.arange(12.0).reshape(3, 4))
w = cinductor.to_device(np.ones(4))
np.testing.assert_array_equal(x.numpy(), np.arange(12.0).reshape(3, 4))
assert (x.shape, x.ndim, x.size, x.nbytes, x.dtype) == ((3, 4), 2, 12, 96, np.float64)
assert repr(x).startswith("Array([[ 0.,  1.") and repr(x).endswith("dtype=float64, device='cuda')") and len(x) == 3
assert x.__cuda_array_interface__["shape"] == (3, 4)
g = cinductor.compile(f)
for _ in range(3):
    a, b, c, d, e = g(x, w, 2.5)
    assert (a.shape, b.shape, c.shape, d.shape) == ((3, 4), (3,), (4, 3), ()) and e is x
    np.testing.assert_array_equal(c.numpy(), np.arange(12.0).reshape(3, 4).T)
assert fake.fake_launches() == 3, fake.fake_launches()
assert isinstance(g(np.ones((3, 4)), np.ones(4), 2.5)[0], np.ndarray)  # and host arrays still do
square = np.array([[2.0, 1.0], [1.0, 3.0]])
inverse = cinductor.compile(lambda a: np.linalg.inv(a))(cinductor.to_device(square))
np.testing.assert_array_equal(inverse.numpy(), np.linalg.inv(square))  # a library call, on the host

def raises(error, call, *args):
    try:
        call(*args)
    except error as got:
        return str(got)
    raise AssertionError(f"{error} expected")

raises(TypeError, g, x, np.ones(4), 2.5)
assert type(np.add(x, 1)) is type(x * np.float64(2)) is cinductor.Array  # NumPy's functions and scalars
raises(ValueError, cinductor.compile(lambda a: a + np.ones(5)), x)
raises(cinductor.Unsupported, cinductor.compile(lambda a: str(np.sum(a))), x)
del a, b, c, d, e, g, inverse
gc.collect()
assert fake.fake_blocks() > 2 and cinductor.memory_stats()["blocks"] == 2  # small ones are kept
cinductor.empty_cache()
assert fake.fake_blocks() == 2, fake.fake_blocks()
host = cinductor.compile(f, device="cuda")
assert isinstance(host(np.ones((3, 4)), np.ones(4), 2.0)[0], np.ndarray)
cinductor.empty_cache()
stats = cinductor.memory_stats()
assert (stats["allocated"], stats["blocks"], stats["reserved"]) == (96 + 32, 2, 2 << 21), stats
y = cinductor.from_dlpack(x)  # the same memory, twice over
assert y.__cuda_array_interface__["data"] == x.__cuda_array_interface__["data"] and y.shape == x.shape
z = cinductor.from_dlpack(type("Theirs", (), {"__cuda_array_interface__": x.T.__cuda_array_interface__})())
np.testing.assert_array_equal(z.numpy(), x.numpy().T)
cinductor.configure_memory("limit:200")
assert "limit is 200" in raises(MemoryError, cinductor.to_device, np.ones(40))
cinductor.configure_memory("limit:0,keep:1MiB")
del x, w, y, z
gc.collect()
cinductor.empty_cache()
assert fake.fake_blocks() == 0, fake.fake_blocks()
report = cinductor.explain(cinductor.compile(lambda t, i: t[i], device="cuda"), np.ones(4), np.arange(3))
assert "mark(buf0)" in report.wrapper and "to_host(buf0" not in report.wrapper  # stored where the host reads it
print("flow", "ok")
"""

DISPATCH = """
import ctypes
fake = ctypes.CDLL("libcuda.so.1")
import numpy as np, cinductor

def calls_of(make, times=10):
    for _ in range(3):
        result = make()
    names = b"", b"cuLaunchKernel", b"cuCtxGetCurrent", b"cuMemAllocAsync", b"cuMemFreeAsync", b"cuCtxPushCurrent_v2"
    before = [fake.fake_count(name) for name in names]
    for _ in range(times):
        result = make()
    return [(fake.fake_count(name) - count) / times for name, count in zip(names, before)]

def pair(name, size=8):
    return [cinductor.to_device(np.ones(size, "f4"), name) for _ in range(2)]

f = cinductor.compile(lambda a, b: a * 2 + b)
first, second, large = pair("cuda"), pair("cuda:1"), pair("cuda", 1 << 20)
# One to launch, and before it which context is current. Results get kept memory, which needs no call.
assert calls_of(lambda: f(*first)) == [2, 1, 1, 0, 0, 0]
# Another device's context is not left behind: it is pushed and popped.
assert calls_of(lambda: f(*second)) == [4, 1, 1, 0, 0, 1]
assert calls_of(lambda: f(*large)) == [6, 1, 3, 1, 1, 0]  # large blocks are the driver's
stream = cinductor.Stream("cuda")
def on_stream():
    with stream:
        return f(*first)
assert calls_of(on_stream)[3:5] == [1, 1]  # and so are those of other streams
cinductor.configure_memory("keep:0")
assert calls_of(lambda: f(*first))[3:5] == [1, 1]
cinductor.configure_memory("keep:300")
assert calls_of(lambda: f(*first))[3:5] == [0, 0] and calls_of(lambda: f(*pair("cuda", 200)))[3:5] == [3, 3]
print("dispatch ok")
"""

FAILURE = """
import numpy as np, cinductor
try:
    x = cinductor.to_device(np.ones(4))
    cinductor.compile(lambda a: a + 1)(x).numpy()
    cinductor.synchronize()
except (MemoryError, cinductor.DeviceError) as error:
    print(type(error).__name__, error)
"""

BESIDE = """
import ctypes
fake = ctypes.CDLL("libcuda.so.1")
import numpy as np, cinductor
f = cinductor.compile(lambda a: a * 2 + a.sum(), device="cuda")
for _ in range(2):
    f(np.ones(4))
print("contexts", fake.fake_count(b"cuDevicePrimaryCtxRetain"), fake.fake_count(b"beside"), fake.fake_count(b"overlapped"))
"""

FORK = """
import os, numpy as np, cinductor
x = cinductor.to_device(np.ones(4))
child = os.fork()
if child == 0:
    try:
        cinductor.compile(lambda a: a + 1)(x)
    except cinductor.DeviceError as error:
        os._exit(7 if "fork" in str(error) else 1)
    os._exit(2)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def fake_libraries(folder):
    """Build the fake driver and the emulator's NVRTC into a folder."""
    where = ROOT / "tests" / "cuda"
    compiler = [*os.environ.get("CC", "cc").split(), "-O1", "-shared", "-fPIC", "-o"]
    sources = [where / name for name in ("fake_driver.c", "fake_graph.c", "fake_share.c", "emulator.c")]
    driver = [*compiler, folder / "libcuda.so.1", *sources]
    subprocess.run([*driver, "-ldl", "-lpthread"], check=True)
    subprocess.run([*compiler, folder / "libnvrtc.so.13", where / "fake_nvrtc.c"], check=True)
    return folder


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory):
    """Run Python with the fake driver; return the output."""
    if nvrtc_folder() is None:
        pytest.skip("no NVRTC (the extra cinductor[cuda] brings it)")
    folder = fake_libraries(tmp_path_factory.mktemp("driver"))

    def run(code, **variables):
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder), **variables}
        script = folder / "script.py"
        script.write_text(code)
        done = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, env=env, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_device_arrays(fake_driver):
    assert "flow ok" in fake_driver(FLOW)


def test_a_dispatch_is_one_call_of_the_driver(fake_driver):
    """Besides the launch, the driver is only asked for the current context."""
    assert "dispatch ok" in fake_driver(DISPATCH, FAKE_CUDA_COUNT="2")


LATE = """
#include <stdio.h>
#include <stdlib.h>
char used[] = "used_dltensor";
static void *kept;
static void (*deleter)(void *);
static void late(void) { deleter(kept); puts("late ok"); }
void keep(void *managed)
{
    kept = managed;
    deleter = *(void (**)(void *))((char *)managed + 56); /* follows the DLTensor and manager_ctx */
    atexit(late);
}
"""
GIVEN = """
import ctypes, os
import numpy as np, cinductor
library, api = ctypes.CDLL(os.environ["LATE"]), ctypes.pythonapi
capsule = ctypes.py_object(cinductor.to_device(np.ones(3)).__dlpack__())
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
library.keep(ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, b"dltensor")))
api.PyCapsule_SetName(capsule, ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "used"))))
"""


def test_memory_that_another_library_frees_when_python_has_ended(fake_driver, tmp_path):
    (tmp_path / "late.c").write_text(LATE)
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "late.c", "-o", tmp_path / "late.so"], check=True)
    assert "late ok" in fake_driver(GIVEN, LATE=str(tmp_path / "late.so"))


# Each program defines everything(), its expected result, and settle(): the objects that exist when nothing is in use.
OF_TWO_DEVICES = """
def program(a, b):
    return np.tanh(b), np.linalg.eigvals(a), np.exp(b).sum(axis=0) @ b.T, b[1:]

f, g = cinductor.compile(program), cinductor.compile(lambda a, b: a * 2 + b, device="cuda")
x = np.ones((8, 8))

def everything():
    a, b = [cinductor.to_device(x * k, f"cuda:{k}") for k in range(2)]
    f(a, b)
    copy = (a + 1).start_copy()
    with cinductor.Stream("cuda") as stream:
        shared = cinductor.to_device(a, shared=True)
        stream.record().synchronize()
    shared.ipc_handle(), copy.numpy(), g(x, x)
    cinductor.Device("cuda:1").memory, cinductor.empty_cache("cuda"), cinductor.memory_stats("cuda")

def settle():
    gc.collect()
    for name in "cuda", "cuda:1":
        cinductor.empty_cache(name)
    return fake.fake_blocks(), [fake.fake_count(name) for name in (b"pinned", b"handles", b"shared")]

answer = None
"""
OF_RECORDINGS = """
warnings.simplefilter("ignore")

def program(a, b, long):
    c = np.sqrt(a * a)
    return c.cumsum(axis=0) + b, c.sum(axis=1), a[1:], (long > 3).any()

x = np.ones((8, 8))

def everything():
    arrays = cinductor.to_device(x), cinductor.to_device(x * 2), cinductor.to_device(np.ones(9000))
    f = cinductor.compile(program, options={"graphs": True, "fusion": False})
    for _ in range(4):
        f(*arrays)
    with cinductor.Stream("cuda"):
        [f(*arrays) for _ in range(3)]
    return [part["replayed"] for twin in f._cinductor_job.twins.values() for part in twin.specializations[0].program.recordings]

def settle():
    gc.collect()
    cinductor.empty_cache("cuda")
    return fake.fake_blocks(), fake.fake_count(b"graphs"), fake.fake_count(b"modules")

answer = [5]
"""
IN_TURN = """
import ctypes, gc, warnings
fake = ctypes.CDLL("libcuda.so.1")
fake.fake_failed.restype = ctypes.c_char_p
import numpy as np, cinductor
PROGRAM
gc.freeze()  # so that collections do not traverse imported modules
assert everything() == answer, everything()
before, count = settle(), fake.fake_count(b"")
everything()
count = fake.fake_count(b"") - count
settle()
failed, raised = set(), set()
for number in range(count):
    fake.fake_fail_after(number)
    try:
        everything()
    except (cinductor.DeviceError, MemoryError) as error:
        raised.add(fake.fake_failed().decode())
        del error
    failed.add(fake.fake_failed().decode())
    fake.fake_fail_after(-1)
    now = settle()
    if b"Ctx" not in fake.fake_failed():  # without a context nothing can be freed
        assert now == before, (number, fake.fake_failed(), now, before)
    before = now
assert everything() == answer
print("in turn ok", *sorted(WHICH))
"""


@pytest.mark.parametrize(
    "program, which, names",
    [
        (
            OF_TWO_DEVICES,
            "raised",
            "cuLaunchKernel cuMemAllocHost_v2 cuEventCreate cuMemAlloc_v2 cuIpcGetMemHandle cuStreamCreate",
        ),
        (
            OF_RECORDINGS,
            "failed",
            "cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags cuGraphLaunch cuMemcpyDtoDAsync_v2"
            " cuMemsetD32Async",
        ),
    ],
    ids=["two devices", "recordings"],
)
def test_each_call_of_the_driver_fails_in_turn(fake_driver, program, which, names):
    """Each failure is a DeviceError or MemoryError, or launches instead of a recording. The process survives, and
    everything allocated is freed.
    """
    text = IN_TURN.replace("PROGRAM", program).replace("WHICH", which)
    said = fake_driver(text, FAKE_CUDA_COUNT="2").splitlines()[-1].split()
    assert said[:3] == ["in", "turn", "ok"] and not set(names.split()) - set(said), said


LONG = """
import ctypes, gc, os, resource
fake = ctypes.CDLL("libcuda.so.1")
import numpy as np, cinductor

def program(a, b):
    return np.tanh(b), np.linalg.eigvals(a), np.exp(b).sum(axis=0) @ b.T, b[1:]

f = cinductor.compile(program)
a, b = [cinductor.to_device(np.ones((8, 8)) * k, f"cuda:{k}") for k in range(2)]

def once(number):
    results = f(a, b)
    if number % 50 == 0:
        (a + 1).start_copy()
        with cinductor.Stream("cuda") as stream:
            cinductor.to_device(a, shared=True).ipc_handle()
            stream.record().synchronize()

def settle():
    gc.collect()
    for name in "cuda", "cuda:1":
        cinductor.empty_cache(name)
    counts = [fake.fake_count(name) for name in (b"pinned", b"handles", b"shared", b"modules")]
    return fake.fake_blocks(), counts, [cinductor.memory_stats(name)["allocated"] for name in ("cuda", "cuda:1")]

for number in range(150):
    once(number)
assert fake.fake_count(b"pinned") > 0 and fake.fake_count(b"cuMemcpyDtoHAsync_v2") > 150  # early copies
before, pages = settle(), int(open("/proc/self/statm").read().split()[1])
for number in range(CALLS):
    once(number)
assert settle() == before, (settle(), before)
grown = (int(open("/proc/self/statm").read().split()[1]) - pages) * os.sysconf("SC_PAGE_SIZE")
assert grown < 4 << 20, grown
print("long ok", before)
"""


def test_calls_for_long_do_not_grow(fake_driver):
    """Device and host memory, pinned memory, streams, events and modules do not grow; `make soak` makes 100 000
    calls.
    """
    calls = os.environ.get("CINDUCTOR_SOAK_CALLS", "1000")
    assert "long ok" in fake_driver(LONG.replace("CALLS", calls), FAKE_CUDA_COUNT="2")


@pytest.mark.parametrize(
    "function, said",
    [
        ("cuInit", "DeviceError no CUDA device: unknown error"),
        ("cuDeviceGetCount", "DeviceError no CUDA device: no device"),
        ("cuDevicePrimaryCtxRetain", "DeviceError no CUDA context"),
        ("cuMemAllocAsync", "MemoryError"),
        ("cuMemcpyHtoD_v2", "DeviceError unknown error"),
        ("cuModuleLoadData", "DeviceError the kernels could not be loaded: unknown error"),
        ("cuLaunchKernel", "DeviceError unknown error"),
        ("cuStreamSynchronize", "DeviceError unknown error"),
    ],
)
def test_device_failures(fake_driver, function, said):
    assert said in fake_driver(FAILURE, FAKE_CUDA_FAIL=function)


def test_the_context_is_made_alongside_the_capture(fake_driver, tmp_path):
    """A second thread creates the context, once, while capture runs and NVRTC compiles."""
    assert "contexts 1 1 1" in fake_driver(BESIDE, FAKE_CUDA_SLOW="1", CINDUCTOR_CACHE_DIR=str(tmp_path))


def test_fork(fake_driver):
    assert "child 7" in fake_driver(FORK)


# --- programs, on the GPU or on an emulated one ------------------------------------------------------

# Programs for the emulator: loops in one thread, in warps, over a grid, around kernels; checks, data-dependent sizes,
# library calls.
SOME = """
automata.majority clustering.k_means dynamic_programming.edit_distance failures.index_out_of_range
failures.singular fractals.mandelbrot_by_pixels graphs.dijkstra graphs.floyd_by_elements hashing.crc32
hashing.open_addressing linear_algebra.cholesky linear_algebra.lu_with_pivots linear_algebra.conjugate_gradient
monte_carlo.ising nets.attention particles.n_body_by_pairs particles.neighbour_lists roots.bisection roots.sieve
signals.histogram signals.run_lengths_by_edges sorting.radix_sort sorting.shuffle_by_swaps stencils.adi
stencils.relax_until_still stencils.seidel_2d
""".split()

# Statements of one kernel that read elements which other threads of a group have stored before.
AFTER_BARRIERS = (
    "nets.batch_norm sorting.odd_even_network stencils.red_black stencils.fdtd_2d".split()
)


@pytest.fixture(scope="session")
def card(tmp_path_factory):
    """Run a script of tests/cuda on the GPU or the emulator; returns its lines."""
    env = {**os.environ, "CINDUCTOR_TEST_WAYS": "card"}
    if not RUNS:
        if shutil.which(env.get("CXX", "g++").split()[0]) is None:
            pytest.skip("the emulator needs a C++ compiler")
        folder = fake_libraries(tmp_path_factory.mktemp("emulator"))
        host = ROOT / "tests" / "cuda" / "host.py"
        env |= {
            "LD_LIBRARY_PATH": str(folder),
            "CINDUCTOR_NVRTC": str(folder),
            "CINDUCTOR_CACHE_DIR": str(folder / "cache"),
            "EMULATOR_FOLDER": str(folder),
            "EMULATOR_COMPILER": f"{sys.executable} -I -S {host}",
        }

    def run(script, *arguments, **variables):
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if script == "pytest" else [ROOT / "tests" / "cuda" / script]
        command = [sys.executable, *words, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=env | variables, timeout=900
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        print(done.stdout)
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("order", ["first"] if RUNS else ["first", "last", "any"])
def test_programs(card, order):
    """NumPy's results. `order`: which of the emulator's threads run first, so that a missing barrier changes a
    result.
    """
    some = SOME + AFTER_BARRIERS if order == "any" else SOME
    lines = card("run_programs.py", *([] if RUNS else some), EMULATOR_ORDER=order)
    failed = [line for line in lines if not line.startswith("ok")]
    assert lines and not failed, "\n".join(failed)


@pytest.mark.parametrize("name", ways.IN_OTHER_WAYS)
def test_what_runs_in_other_ways(card, name):
    """Run a sample of the tests that take a way (ways.py), or all of them on a GPU."""
    everything = {"CINDUCTOR_FUZZ": "0"} if RUNS else {}
    lines = card("pytest", next((ROOT / "tests").glob(f"*/{name}.py")), **everything)
    assert " passed" in lines[-1], lines[-1]


def test_arrays_in_pieces(card):
    """Arrays that several statements fill, forwarded to their readers."""
    lines = card("pieces.py")
    failed = [line for line in lines if not line.startswith("ok")]
    assert lines and not failed, "\n".join(failed)


def test_objects_that_contain_arrays(card):
    """Objects that a call makes or stores to hold no address of the device's memory."""
    assert len(card("objects.py")) == len(device_objects.CASES)


def test_sizes_that_vary(card):
    """One program for all sizes, including 0 and 1."""
    lines = card("sizes.py", *([] if not RUNS else ["all"]))
    failed = [line for line in lines if not line.startswith("ok")]
    assert lines and not failed, "\n".join(failed)


def test_kernels_for_classes_of_sizes(card):
    """Variants for size classes give the same results as the general kernel. Their number is bounded, and each is
    built once.
    """
    lines = card("variants.py", *([] if RUNS else ["emulated"]))
    assert len(lines) > 40 and not [line for line in lines if not line.startswith("ok")], "\n".join(lines)


def test_kernels_of_ones_own(card):
    lines = card("own_kernels.py")
    assert len(lines) == 17 and not [line for line in lines if not line.startswith("ok")], "\n".join(lines)


def test_recordings(card, tmp_path):
    """The option graphs: bits, arguments that change, results that stay, streams, threads."""
    emulated = {}
    if not RUNS:  # a machine with a GPU has its own
        build_shared(tmp_path / "libcublas.so.13", "fake_cublas.c")
        emulated["CINDUCTOR_CUBLAS"] = str(tmp_path)
    lines = card("recordings.py", *([] if RUNS else ["emulated"]), **emulated)
    assert not [line for line in lines if not line.startswith("ok")], "\n".join(lines)
    assert len(lines) == (26 if RUNS else 46)  # the rest are checks of the emulator's counters


def test_arrays_of_two_processes(card):
    lines = card("sharing.py")
    assert len(lines) == 10 and not [line for line in lines if not line.startswith("ok")], "\n".join(lines)


def test_collectives(card, tmp_path):
    """Sharded programs on two GPUs, members that fail, and a process for each."""
    emulated = {}
    if RUNS and card_count() < 2:
        pytest.skip("collectives need two GPUs, and this machine has one")
    if not RUNS:
        build_shared(tmp_path / "libnccl.so.2", "fake_nccl.c", "-lpthread")
        emulated = {"CINDUCTOR_NCCL": str(tmp_path), "FAKE_CUDA_COUNT": "2"}
    lines = card("collectives.py", *([] if RUNS else ["emulated"]), **emulated)
    assert len(lines) > 25 and not [line for line in lines if not line.startswith("ok")], "\n".join(lines)


@pytest.mark.parametrize("package", ["cupy", "torch"])
def test_arrays_of_other_packages(card, package):
    """DLPack both ways, one memory, streams in order."""
    if not RUNS or find_spec(package) is None:
        pytest.skip(f"{package} needs a card" if not RUNS else f"{package} is not installed")
    lines = card("packages.py", package)
    assert len(lines) > 20 and not [line for line in lines if not line.startswith("ok")], "\n".join(lines)


OFFLOAD = """
import numpy as np, cinductor

def prefix(x, y):
    for i in range(1, len(x)):
        x[i] = x[i] + x[i - 1] * y[i]
    return x, x[-1], y * 2

def few(x):
    for i in range(1, 12):
        x[i] = x[i] + x[i - 1]
    return x

def check(fn, n, **settings):
    x, y = np.linspace(0, 1, n), np.linspace(1, 0.5, n)
    want = prefix(x.copy(), y.copy())
    compiled = cinductor.compile(prefix, **settings)
    for _ in range(3):
        got = fn(compiled, x.copy(), y.copy())
        assert all(np.array_equal(a, b) for a, b in zip(got, want)), (n, got)
    return compiled

def on_device(f, x, y):
    a, b = cinductor.to_device(x), cinductor.to_device(y)
    r = f(a, b)
    assert r[0] is a and all(isinstance(v, cinductor.Array) for v in r)
    return [v.numpy() for v in r]

def whereabouts(fn, *args, **options):
    return cinductor.explain(cinductor.compile(fn, device="cuda", options=options), *args)

x = np.linspace(0, 1, 400)
said = whereabouts(prefix, x.copy(), x)
assert "sequential" in said.why_host and "runs on the CPU" in str(said)
assert whereabouts(prefix, x.copy(), x, offload="always").why_host is None
assert whereabouts(few, x.copy()).why_host is None  # few iterations
assert whereabouts(lambda x: x + 1, x).why_host is None
check(lambda f, x, y: f(x, y), 400, device="cuda")
few_trips, many = check(on_device, 400), check(on_device, 3000)
both = cinductor.to_device(np.ones(3000))
many(both, both)
np.testing.assert_array_equal(both.numpy(), prefix(*[np.ones(3000)] * 2)[0])
print("offload", [len(f._cinductor_job.faster_on_host) for f in (few_trips, many)])
"""


def test_loops_that_the_cpu_is_faster_at(card, tmp_path):
    """Loops that are faster on the CPU run there, with the reason; device arrays are copied if that pays."""
    (tmp_path / "offload.py").write_text(OFFLOAD)
    assert "offload [0, 1]" in card(tmp_path / "offload.py")


WARM = """
import sys, numpy as np, cinductor
from cinductor.calls import saved
recalled = []
saved.recall = lambda *args, recall=saved.recall: recalled.append(recall(*args)) or recalled[-1]
x = np.arange(6.0).reshape(2, 3)
f = cinductor.compile(lambda a: a * 3 + a.sum(axis=0), device="cuda")
y = f(x)
np.testing.assert_allclose(y, x * 3 + x.sum(axis=0))
parts = ["nvrtc" if "libnvrtc" in open("/proc/self/maps").read() else "cache"]
parts.append("captured" if "cinductor.capture.session" in sys.modules else "recalled")
z = cinductor.compile(lambda a: a * 3 + a.sum(axis=0))(cinductor.to_device(x)).numpy()  # nor does an array that is there
np.testing.assert_allclose(z, y)
parts.append("nvrtc" if "libnvrtc" in open("/proc/self/maps").read() else "cache")
print("ok", *parts, recalled)
"""


def test_neither_the_compiler_nor_capture_is_loaded_where_the_cache_serves(card, tmp_path):
    """The first process loads NVRTC. Later ones do not, until the file of the library changes."""
    if RUNS:
        pytest.skip("a card's machine has one NVRTC, which stays as it is")
    (tmp_path / "warm.py").write_text(WARM)
    folder = fake_libraries(tmp_path)
    where = {
        "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "CINDUCTOR_SAVED_CALLS": "1",
        "LD_LIBRARY_PATH": str(folder),
        "CINDUCTOR_NVRTC": str(folder),
    }
    seen = [card(tmp_path / "warm.py", **where)[-1] for _ in range(2)]
    assert seen == ["ok nvrtc captured nvrtc [False, False]", "ok cache recalled cache [True, True]"]
    os.utime(folder / "libnvrtc.so.13", ns=(1, 1))
    assert card(tmp_path / "warm.py", **where)[-1] == "ok nvrtc recalled nvrtc [True, True]"


TWO = """
import ctypes, gc
import numpy as np, cinductor

fake = ctypes.CDLL("libcuda.so.1") if FAKE else None

def launches():
    return [fake.fake_launches_on(k) for k in range(2)] if FAKE else [0, 0]

def f(a, b):
    a += 1
    return a * 2 - b, b.sum(axis=0), np.exp(b), a

big, row = np.linspace(0, 1, 96).reshape(12, 8), np.linspace(1, 2, 8)
for first, second, x, y, where in (
    (0, 1, big, row, [2, 1]), (1, 0, big, row, [1, 2]), (1, 0, row, big, [2, 1]), (0, 1, row, big, [1, 2]),
    (1, 1, big, row, [0, 2]), (0, 0, big, big, [2, 0]),
):
    a, b = cinductor.to_device(x, f"cuda:{first}"), cinductor.to_device(y, f"cuda:{second}")
    compiled = cinductor.compile(f)
    compiled(cinductor.to_device(x, f"cuda:{first}"), b)
    before = launches()
    got, want = compiled(a, b), f(x.copy(), y.copy())
    made = [now - then for now, then in zip(launches(), before)]
    print("ok" if not FAKE or (made[0] > 0, made[1] > 0) == (where[0] > 0, where[1] > 0) else "wrong", first, second, made)
    assert got[3] is a and got[1].device == got[2].device == b.device
    for g, w in zip(got, want):
        np.testing.assert_allclose(g.numpy(), w, rtol=1e-14)
if FAKE:
    across, peers = fake.fake_count(b"cuMemcpyPeerAsync"), fake.fake_count(b"cuMemPoolSetAccess")
    print("ok" if across >= 4 and peers == PEERS else "wrong", "across", across, "peers", peers)
x = cinductor.to_device(big, "cuda:1")
copy = (x + 1).start_copy()
print("ok" if np.array_equal(copy.numpy(), big + 1) and (not FAKE or fake.fake_count(b"pinned") == 1) else "wrong", "pinned")
del copy
gc.collect()
copy = (x + 1).start_copy()
print("ok" if np.array_equal(copy.numpy(), big + 1) and (not FAKE or fake.fake_count(b"pinned") == 1) else "wrong", "kept")
del copy
gc.collect()
cinductor.empty_cache("cuda:1")
print("ok" if not FAKE or fake.fake_count(b"pinned") == 0 else "wrong", "pinned again")
there = cinductor.to_device(big, "cuda")
print("ok" if np.array_equal(cinductor.to_device(there, "cuda:1").numpy(), big) else "wrong", "moved")
"""


@pytest.mark.parametrize("peers", [2, 0])
def test_two_cards(card, tmp_path, peers):
    """Kernels run on the GPU that has the data, never with memory of the other GPU, and copies go directly between
    GPUs. The fake driver refuses memory, functions and streams of another context.
    """
    (tmp_path / "two.py").write_text(f"FAKE, PEERS = {not RUNS}, {peers}\n" + TWO)
    if RUNS and (card_count() < 2 or not peers):
        pytest.skip("needs two GPUs" if peers else "peer access cannot be switched off on real GPUs")
    where = {"FAKE_CUDA_COUNT": "2", "CINDUCTOR_SAVED_CALLS": "1", "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    lines = card(tmp_path / "two.py", **where, **({} if peers else {"FAKE_CUDA_NO_PEERS": "1"}))
    failed = [line for line in lines if not line.startswith("ok")]
    assert lines and not failed, "\n".join(failed)


def build_shared(path, source, *flags):
    """Build a library for the host from a file of tests/cuda. Skip if the compiler cannot."""
    compiler = [*os.environ.get("CC", "cc").split(), "-O1", "-shared", "-fPIC", "-o"]
    if subprocess.run([*compiler, path, ROOT / "tests" / "cuda" / source, *flags], capture_output=True).returncode:
        pytest.skip(f"the C compiler has not what {source} needs")


@pytest.mark.parametrize("library", ["cublas", "own"])
def test_products(card, library, tmp_path):
    """By cuBLAS and by cinductor's own kernel."""
    if RUNS and library == "own":
        pytest.skip("a machine with a GPU has cuBLAS where the loader finds it")
    if library == "cublas" and not RUNS:
        build_shared(tmp_path / "libcublas.so.13", "fake_cublas.c")
    lines = card(
        "products.py",
        *([] if RUNS or library == "own" else [str(tmp_path / "libcublas.so.13")]),
        CINDUCTOR_CUBLAS=str(tmp_path),
    )
    failed = [line for line in lines if line.split(" ")[0] not in ("ok", "products")]
    assert lines and not failed, "\n".join(failed)
    assert library == "own" or RUNS or int(lines[-1].split(" ")[1]) > 60


@pytest.mark.parametrize("instructions", ["mma", "wgmma"])
def test_products_of_tiles(card, instructions, tmp_path):
    """Products of halves and bfloat16. The emulator has the instructions of sm_80, and those of sm_90a."""
    if RUNS and instructions == "mma":
        pytest.skip("the GPU's architecture decides")
    own = {"EMULATOR_WGMMA": "1", "CINDUCTOR_CACHE_DIR": str(tmp_path)} if instructions == "wgmma" else {}
    lines = card("tiles.py", *([] if RUNS else ["few"]), EMULATOR_ORDER="any", **own)
    failed = [line for line in lines if not line.startswith("ok")]
    assert len(lines) >= 6 and not failed, "\n".join(failed)


@pytest.mark.parametrize("instructions", ["mma", "wgmma"])
def test_attention(card, instructions, tmp_path):
    """One kernel of both products and the softmax between them: masks, tails, NaN, and no rows."""
    if RUNS and instructions == "mma":
        pytest.skip("the GPU's architecture decides")
    own = {"EMULATOR_WGMMA": "1", "CINDUCTOR_CACHE_DIR": str(tmp_path)} if instructions == "wgmma" else {}
    lines = card("attention.py", *([] if RUNS else ["few"]), EMULATOR_ORDER="any", **own)
    failed = [line for line in lines if not line.startswith("ok")]
    assert len(lines) >= 6 and not failed, "\n".join(failed)


# Programs of the benchmark that no other test has in this form.
BENCHMARK = """
causal_attention convolve cross_entropy embedding heat_3d_in_place heat_in_place jacobi k_means life mandelbrot
matrix_vector n_body rfft_power sort_rows weighted_bincount window_mean window_sum
""".split()


def test_benchmark_programs(card, tmp_path):
    """benchmarks/gpu.py, at sizes that the emulator can run: no result differs from NumPy's."""
    libraries = {}
    if not RUNS:
        build_shared(tmp_path / "libcublas.so.13", "fake_cublas.c")
        build_shared(tmp_path / "libcufft.so.12", "fake_cufft.c", "-lm")
        libraries = {"CINDUCTOR_CUBLAS": str(tmp_path), "CINDUCTOR_CUFFT": str(tmp_path)}
    names = [] if RUNS else BENCHMARK
    card(ROOT / "benchmarks" / "gpu.py", "--peers", "cinductor", "--lanes", "2", "--most", "500" if RUNS else "20", "--out", tmp_path, *names, **libraries)
    rows = {name: row["cinductor"] for name, row in json.loads((tmp_path / "gpu.json").read_text())["programs"].items()}
    assert len(rows) >= len(BENCHMARK)
    assert not {name: row for name, row in rows.items() if row.get("right") is not True}


def test_draws(card):
    """Numbers of a Philox are computed where they are used; all draws leave NumPy's state."""
    lines = card("draws.py", *([] if RUNS else ["few"]))
    failed = [line for line in lines if not line.startswith("ok")]
    assert len(lines) == 16 and not failed, "\n".join(failed)


def test_library_calls(card, tmp_path):
    """Sorts, searches, sums of products, transforms: the GPU backend computes them without the host."""
    if not RUNS:
        build_shared(tmp_path / "libcufft.so.12", "fake_cufft.c", "-lm")
        build_shared(tmp_path / "libcusolver.so.12", "fake_cusolver.c", "-lm")
    folders = {"CINDUCTOR_CUFFT": str(tmp_path), "CINDUCTOR_CUSOLVER": str(tmp_path)}
    lines = card("library.py", *([] if RUNS else ["few"]), **folders)
    failed = [line for line in lines if not line.startswith("ok")]
    assert lines and not failed, "\n".join(failed)


def test_too_old_a_driver(fake_driver, tmp_path):
    """A driver that lacks a function is named, and the function, too."""
    (tmp_path / "old.c").write_text("int cuInit(unsigned flags) { return (int)flags; }")
    compiler = [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-o"]
    subprocess.run([*compiler, tmp_path / "libcuda.so.1", tmp_path / "old.c"], check=True)
    said = fake_driver(FAILURE, LD_LIBRARY_PATH=str(tmp_path))
    assert "DeviceError the CUDA driver is too old: no cuDeviceGetCount" in said


@pytest.mark.parametrize("nvrtc", [{}, {"CINDUCTOR_NVRTC": "/nonexistent"}], ids=["", "no NVRTC"])
def test_without_a_driver(nvrtc, tmp_path):
    """The package says what is missing, and everything else works."""
    code = """
import os, warnings, numpy as np, cinductor
try:
    cinductor.to_device(np.ones(4))
except cinductor.DeviceError as error:
    print("said", error)
print(cinductor.compile(lambda a: a + 1)(np.ones(3)))
for fullgraph in (False, True):
    try:
        cinductor.compile(lambda a: a + 1, device="cuda", fullgraph=fullgraph)(np.ones(3))
    except cinductor.DeviceError as error:
        print("raised", error)
os.environ["CINDUCTOR_DEVICE_FALLBACK"] = "cpu"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(cinductor.compile(lambda a: a * 3, device="cuda")(np.ones(3)))
print("told", *(w.message for w in caught))
"""
    (tmp_path / "script.py").write_text(code)
    env = {**os.environ, "LD_LIBRARY_PATH": "/nonexistent", **nvrtc}
    command = [sys.executable, tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert "[2. 2. 2.]" in done.stdout, done.stderr
    assert (
        "said no CUDA" in done.stdout or "said" not in done.stdout
    )  # a driver is found in spite of this
    raised = [line for line in done.stdout.splitlines() if line.startswith("raised")]
    assert "said" not in done.stdout or len(raised) == 2
    for line in raised:
        assert "cannot run on device 'cuda': no CUDA" in line and "libcuda.so.1" in line
        assert "NVRTC in" in line and "CINDUCTOR_DEVICE_FALLBACK=cpu" in line
    assert "[3. 3. 3.]" in done.stdout
    told = next(line for line in done.stdout.splitlines() if line.startswith("told"))
    assert "said" not in done.stdout or ("no CUDA driver" in told and "device='cpu' needs none" in told)
    assert "install gcc" not in told and "FALLBACK" not in told
