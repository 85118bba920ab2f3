"""Programs of loops: NumPy, cinductor, Numba, and the same algorithm written in C (loops.c at -O3).

    python benchmarks/loops.py [--threads 1,2] [--programs cholesky,lu] [--out DIRECTORY]

Every figure is the best of several calls in a process of its own, on fresh copies of the arguments (making them is not
timed): neighbours on the machine make calls longer, never shorter. Nodes and compile time are given at a small and at
the full size: neither may grow with the trip count. What falls short of the project's aims is listed at the end.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "programs"))

C_FLAGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-march=native"]


def positive(n, rng):
    """A positive definite matrix."""
    a = rng.random((n, n))
    return a @ a.T + n * np.eye(n)


def bytes_of(n, rng):
    return rng.integers(0, 256, n, dtype=np.uint8)


def fields(rng, *shapes):
    return tuple(rng.random(shape) for shape in shapes)


def crc_inputs(n, rng):
    import hashing

    return bytes_of(n, rng), hashing.crc32_table()


NOISE = 1.05  # ratios up to this are no difference

# name: (module, sizes small and full, maker of arguments, written by elements)
PROGRAMS = {
    "cholesky": ("linear_algebra", (40, 400), lambda n, rng: (positive(n, rng),), True),
    "lu": ("linear_algebra", (40, 300), lambda n, rng: (positive(n, rng),), True),
    "edit_distance": ("dynamic_programming", (50, 1000), lambda n, rng: (rng.integers(0, 4, n), rng.integers(0, 4, n)), True),
    "seidel_2d": ("stencils", (20, 400), lambda n, rng: (rng.random((n, n)), 20), True),
    "crc32": ("hashing", (1000, 1000000), crc_inputs, True),
    "crc16": ("hashing", (1000, 200000), lambda n, rng: (bytes_of(n, rng),), True),
    "jacobi_2d": ("stencils", (50, 1000), lambda n, rng: (rng.random((n, n)), 50), False),
    "heat_3d": ("stencils", (20, 100), lambda n, rng: (rng.random((n, n, n)), 0.1, 20), False),
    "fdtd_2d": ("stencils", (50, 700), lambda n, rng: (*fields(rng, (n, n), (n, n), (n, n)), rng.random(20)), False),
    "adi": ("stencils", (20, 300), lambda n, rng: (rng.random((n, n)), 10), False),
    "vertical_sweep": ("stencils", (10, 128), lambda n, rng: fields(rng, *[(n, n, 80)] * 4), False),
}


def program(name):
    """The function and its arguments at the small and the full size."""
    module, sizes, make, _ = PROGRAMS[name]
    function = getattr(importlib.import_module(module), name)
    return function, [make(n, np.random.default_rng(n)) for n in sizes]


def fresh(arguments):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)


def measure(call, arguments, *, seconds=2.0, least=1, most=30):
    """Least seconds of a call on fresh copies of its arguments."""
    times, until = [], time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < until and len(times) < most):
        operands = fresh(arguments)
        start = time.perf_counter()
        call(*operands)
        times.append(time.perf_counter() - start)
    return min(times)


def library():
    """loops.c, built and loaded."""
    where = Path(tempfile.mkdtemp()) / "loops.so"
    subprocess.run([os.environ.get("CC", "gcc"), *C_FLAGS, "-shared", "-fPIC", str(HERE / "loops.c"), "-o", str(where), "-lm"], check=True)
    return ctypes.CDLL(str(where))


def in_c(name):
    """A caller of the C function with NumPy arguments."""
    lib, size = library(), ctypes.c_int64
    call = getattr(lib, name)
    call.restype = {"crc32": ctypes.c_uint32, "crc16": size, "edit_distance": size}.get(name)

    def at(array):
        return ctypes.c_void_p(array.ctypes.data)

    if name in ("cholesky", "lu"):
        return lambda a: call(at(a), size(len(a)))
    if name == "seidel_2d":
        return lambda a, steps: call(at(a), size(len(a)), size(a.shape[1]), size(steps))
    if name == "crc32":
        return lambda data, table: call(at(data), size(len(data)), at(table))
    if name == "crc16":
        return lambda data: call(at(data), size(len(data)))

    def edit_distance(a, b):
        table = np.empty((len(a) + 1, len(b) + 1), np.int64)
        return call(at(a), size(len(a)), at(b), size(len(b)), at(table))

    return edit_distance


def is_same(got, want, arguments, expected):
    pairs = [*zip(arguments, expected), *([] if got is None or want is None else [(got, want)])]
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in pairs)


def compiled(peer, function, name):
    """The program as this peer runs it."""
    if peer == "numpy":
        return function
    if peer == "c":
        return in_c(name)
    if peer == "numba":
        import numba

        parallel = int(os.environ["NUMBA_NUM_THREADS"]) > 1
        return numba.njit(parallel=parallel)(function)
    import cinductor

    return cinductor.compile(function, options={"threads": int(os.environ["CINDUCTOR_THREADS"])})


def run_one(peer, name):
    """Figures of one program under one peer, in this process."""
    function, (_, arguments) = program(name)
    call = compiled(peer, function, name)
    operands = fresh(arguments)
    start = time.perf_counter()
    got = call(*operands)
    found = {"first": time.perf_counter() - start}
    found["steady"] = found["first"] if peer == "numpy" and found["first"] > 2 else measure(call, arguments)
    if peer != "numpy" and PROGRAMS[name][1][1] <= 1000:
        expected = fresh(arguments)
        found["right"] = is_same(got, function(*expected), operands, expected)
    return found


def compile_figures(name, size):
    """Nodes of the graph, kernels, breaks, and milliseconds of capture and of the compiler with nothing cached, at one size."""
    import cinductor

    cinductor.compile(lambda x: x + 1)(np.ones(3))  # modules and the compiler's files are read once
    function, every = program(name)
    report = cinductor.explain(function, *fresh(every[int(size)]))
    times = report.timings
    nodes = sum(" = " in line for line in (report.graph or "").splitlines())
    return {"nodes": nodes, "kernels": report.kernels_count, "breaks": len(report.breaks), "ms": times["capture_ms"] + times.get("total_ms", 0)}


def compiled_sizes(name, repeats=3):
    """The figures at the small and the full size; the best of some processes, which take turns."""
    found = [child(["--compile", name, str(k % 2)], 1) for k in range(2 * repeats)]
    return [min((f for f in found[k::2]), key=lambda f: f.get("ms", float("inf"))) for k in range(2)]


def while_trip():
    """Nanoseconds a trip of a while loop over 16 elements costs beyond its arithmetic."""
    import cinductor

    def decay(x, trips):
        k = 0
        while x.max() > 0 and k < trips:
            x = x * 0.999
            k += 1
        return x

    fn, x = cinductor.compile(decay), np.linspace(1, 2, 16)
    times = {trips: measure(lambda a, t=trips: fn(a, t), (x,), least=20) for trips in (1000, 11000) if fn(x, trips) is not None}
    return {"while_ns": 1e9 * (times[11000] - times[1000]) / 10000}


def child(arguments, threads):
    """Runs this file in a process of its own with that many threads; its JSON, or why there is none."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "CINDUCTOR_CACHE_DIR": cache, "CINDUCTOR_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
        try:
            done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, env=env, timeout=300)
        except subprocess.TimeoutExpired:
            return {"error": "no answer within 300 s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if done.returncode == 0 and lines else {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}


def cell(figure, base):
    if "error" in figure:
        return "fails"
    return f"{1e3 * figure['steady']:.4g} ms ({base / figure['steady']:.1f}×)" + ("" if figure.get("right", True) else " **wrong**")


def table(results, threads):
    """A Markdown table: NumPy, C, then cinductor and Numba on each number of threads."""
    heads = [f"{peer}, {t} thread{'s' * (t > 1)}" for t in threads for peer in ("cinductor", "numba")]
    lines = ["| program | NumPy ms | C at -O3 | " + " | ".join(heads) + " | cinductor / C |", "|---" * (len(heads) + 4) + "|"]
    for name, found in results.items():
        base = found["numpy"]["steady"]
        cells = [cell(found[f"{peer} {t}"], base) for t in threads for peer in ("cinductor", "numba")]
        in_c, ours = found.get("c", {}), found[f"cinductor {threads[0]}"]
        ratio = f"{ours['steady'] / in_c['steady']:.2f}" if "steady" in in_c and "steady" in ours else ""
        lines.append(f"| {name} | {1e3 * base:.4g} | {cell(in_c, base) if in_c else ''} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def compile_table(sizes):
    """Nodes and compile time at both sizes. Neither may grow with the trip count; the number of kernels may differ, for small work shares one."""
    lines = ["| program | graph nodes | kernels | compile, ms | full / small |", "|---|---|---|---|---|"]
    for name, (small, full) in sizes.items():
        if "error" in small or "error" in full:
            lines.append(f"| {name} | {small.get('error') or full['error']} | | | |")
            continue
        pairs = [f"{small[key]} / {full[key]}" for key in ("nodes", "kernels")] + [f"{small['ms']:.0f} / {full['ms']:.0f}"]
        lines.append(f"| {name} | " + " | ".join(pairs) + f" | {full['ms'] / small['ms']:.2f} |")
    return "\n".join(lines)


def missed(results, sizes, threads, trip):
    """The figures that were not reached, in words."""
    found = []
    for name, row in results.items():
        ours, in_c = row[f"cinductor {threads[0]}"].get("steady"), row.get("c", {}).get("steady")
        if ours is None or not row[f"cinductor {threads[0]}"].get("right", True):
            found.append(f"{name} fails")
            continue
        if in_c is not None and ours > 1.2 * in_c:
            found.append(f"{name} takes {ours / in_c:.2f} times what C takes")
        for t in threads:
            mine, numba = row[f"cinductor {t}"].get("steady"), row[f"numba {t}"].get("steady")
            if mine and numba and mine > NOISE * numba:
                found.append(f"{name} takes {mine / numba:.2f} times what Numba takes on {t} thread{'s' * (t > 1)}")
    for name, (small, full) in sizes.items():
        if small.get("nodes") != full.get("nodes"):
            found.append(f"{name} has {small.get('nodes')} nodes when small and {full.get('nodes')} when not")
        elif small.get("kernels") == full.get("kernels") and full["ms"] > 1.1 * small["ms"]:
            found.append(f"{name} compiles {full['ms'] / small['ms']:.2f} times as long when not small")
    if trip > 1000:
        found.append(f"a trip of a while loop takes {trip:.0f} ns")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("PEER", "PROGRAM"))
    parser.add_argument("--compile", nargs=2, metavar=("PROGRAM", "SIZE"))
    parser.add_argument("--while-trip", action="store_true")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--out", type=Path, default=HERE / "out")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_one(*options.one)))
        return
    if options.compile or options.while_trip:
        print(json.dumps(compile_figures(*options.compile) if options.compile else while_trip()))
        return
    threads, results, sizes = [int(t) for t in options.threads.split(",")], {}, {}
    peers = ["cinductor", *(["numba"] if importlib.util.find_spec("numba") else [])]
    for name in options.programs.split(","):
        found = results[name] = {"numpy": child(["--one", "numpy", name], 1)}
        if PROGRAMS[name][3]:
            found["c"] = child(["--one", "c", name], 1)
        for t in threads:
            for peer in ("cinductor", "numba"):
                found[f"{peer} {t}"] = child(["--one", peer, name], t) if peer in peers else {"error": "not installed"}
        sizes[name] = compiled_sizes(name)
        print(f"{name:16} {found}", file=sys.stderr, flush=True)
    trip = child(["--while-trip"], threads[-1]).get("while_ns", float("nan"))
    misses = missed(results, sizes, threads, trip)
    text = "\n\n".join([
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; NumPy {np.__version__}. × is speed relative to NumPy.",
        table(results, threads),
        compile_table(sizes),
        f"A trip of a while loop over 16 elements: {trip:.0f} ns.",
        "Every figure is reached." if not misses else "Not reached:\n" + "\n".join(f"- {miss}" for miss in misses),
    ])  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "loops.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
