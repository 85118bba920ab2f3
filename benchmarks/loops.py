"""Times programs of loops in NumPy, cinductor, Numba and C (loops.c at -O3).

    python benchmarks/loops.py [--threads 1,2] [--programs cholesky,lu] [--rounds 3] [--out DIRECTORY]

The figure of a process is the minimum of several calls on fresh copies of the arguments, which are not timed,
because other load only makes calls longer. Processes of the peers alternate, and the median over the processes of
a peer is printed, because memory layout may slow down a whole process.

Node counts and compile times are printed for few and for many iterations of the same loops, and for the programs
of tests/programs at two sizes: neither may grow. Compile time is CPU time, including the compiler's processes.
Missed targets are listed at the end. `--beside-numba 4` instead compares the programs of tests/programs with
Numba, at four times the size.
"""

import argparse
import copy
import ctypes
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PROGRAM_FILES = HERE.parent / "tests" / "programs"
sys.path.insert(0, str(PROGRAM_FILES))

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


UNROLLED = 8  # iterations that are unrolled
REPEATS = 15  # repetitions of each compilation
NOISE = 1.05  # ratios up to this count as equal

# name: (module, arguments of the full size, arguments for few and for many iterations, maker of arguments, written by
# elements). For the compile times only the number of steps varies, if it is an argument. Otherwise both sizes are on
# the same side of two thresholds: the one from which threads are used, and the 65536 iterations from which a loop polls
# for cancellation.
PROGRAMS = {
    "cholesky": ("linear_algebra", (400,), ((100,), (400,)), lambda n, rng: (positive(n, rng),), True),
    "lu": ("linear_algebra", (300,), ((100,), (300,)), lambda n, rng: (positive(n, rng),), True),
    "edit_distance": ("dynamic_programming", (1000,), ((100,), (1000,)), lambda n, rng: (rng.integers(0, 4, n), rng.integers(0, 4, n)), True),
    "seidel_2d": ("stencils", (400, 20), ((400, 10), (400, 100)), lambda n, steps, rng: (rng.random((n, n)), steps), True),
    "crc32": ("hashing", (1000000,), ((100000,), (1000000,)), crc_inputs, True),
    "crc16": ("hashing", (200000,), ((100000,), (200000,)), lambda n, rng: (bytes_of(n, rng),), True),
    "jacobi_2d": ("stencils", (1000, 50), ((1000, 10), (1000, 100)), lambda n, steps, rng: (rng.random((n, n)), steps), False),
    "heat_3d": ("stencils", (100, 20), ((100, 10), (100, 100)), lambda n, steps, rng: (rng.random((n, n, n)), 0.1, steps), False),
    "fdtd_2d": (
        "stencils",
        (700, 20),
        ((700, 10), (700, 100)),
        lambda n, steps, rng: (*fields(rng, (n, n), (n, n), (n, n)), rng.random(steps)),
        False,
    ),
    "adi": ("stencils", (300, 10), ((300, 10), (300, 100)), lambda n, steps, rng: (rng.random((n, n)), steps), False),
    "vertical_sweep": ("stencils", (128, 80), ((128, 20), (128, 160)), lambda n, levels, rng: fields(rng, *[(n, n, levels)] * 4), False),
}


def program(name):
    """The function and its arguments at the full size."""
    module, full, _, make, _ = PROGRAMS[name]
    return getattr(importlib.import_module(module), name), make(*full, np.random.default_rng(full[0]))


def fresh(arguments):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)


def measure(call, arguments, *, seconds=1.0, least=1, most=30):
    """The minimum time of a call on fresh copies of its arguments, in seconds."""
    times, until = [], time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < until and len(times) < most):
        operands = fresh(arguments)
        start = time.perf_counter()
        call(*operands)
        times.append(time.perf_counter() - start)
    return min(times)


def library():
    """Builds and loads loops.c."""
    where = Path(tempfile.mkdtemp()) / "loops.so"
    subprocess.run([os.environ.get("CC", "gcc"), *C_FLAGS, "-shared", "-fPIC", str(HERE / "loops.c"), "-o", str(where), "-lm"], check=True)
    return ctypes.CDLL(str(where))


def in_c(name):
    """A function that calls the C function with NumPy arguments."""
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


def run_one(peer, name, is_checked):
    """Figures of one program under one peer, in this process. With `checked` it is compared with NumPy."""
    function, arguments = program(name)
    call = compiled(peer, function, name)
    operands = fresh(arguments)
    start = time.perf_counter()
    got = call(*operands)
    found = {"first": time.perf_counter() - start}
    found["steady"] = found["first"] if peer == "numpy" and found["first"] > 2 else measure(call, arguments)
    if is_checked and peer != "numpy" and PROGRAMS[name][1][0] <= 1000:
        expected = fresh(arguments)
        found["right"] = is_same(got, function(*expected), operands, expected)
    return found


def compile_figures(function, arguments):
    """Nodes of the graph, kernels, lines of C, and CPU milliseconds to capture and compile."""
    import cinductor

    compilers = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = cinductor.explain(function, *fresh(arguments))
    done, times = resource.getrusage(resource.RUSAGE_CHILDREN), report.timings
    ours = times.get("capture_ms", 0) + times.get("total_ms", 0) - times.get("compile_ms", 0)
    theirs = 1e3 * (done.ru_utime + done.ru_stime - compilers.ru_utime - compilers.ru_stime)
    return {**counts(report), "ours": ours, "theirs": theirs}


def counts(report):
    """The figures of a compilation that are not times."""
    nodes = sum(" = " in line for line in (report.graph or "").splitlines())
    return {"nodes": nodes, "kernels": report.kernels_count or 0, "lines": (report.source or "").count("\n")}


def compile_program(name, which):
    """compile_figures for few iterations (0) or many (1) of a program of this file."""
    module, _, trips, make, _ = PROGRAMS[name]
    warm_up()
    return compile_figures(getattr(importlib.import_module(module), name), make(*trips[which], np.random.default_rng(1)))


def programs_of(module):
    """The programs of a module: name, function, maker of arguments for a size, and the largest size that tests use.
    """
    return [(function.__name__, function, make, sizes[-1]) for function, make, sizes, _ in importlib.import_module(module).PROGRAMS]


def choose_sizes(module):
    r"""Two sizes for each program of a module of tests/programs, one 1.5 times the other. Both are odd, because the
    compiler emits no remainder loop for a multiple of the vector length, and shifts for a power of two.

    The sizes are near the largest size of the tests, or a multiple of it, such that no loop is short enough to be
    unrolled. If the graphs differ at every such pair, or the program raises, there are no sizes, but the numbers of
    nodes of both.
    """
    import cinductor

    found = {}
    for name, function, make, size in programs_of(module):
        found[name] = {"sizes": None, "nodes": None}
        for factor in (1, 2, 4):
            sizes = [size * factor | 1, (size * factor + size * factor // 2) | 1]
            both = [make(n, np.random.default_rng(1)) for n in sizes]
            if any(raises(function, arguments) for arguments in both):
                continue
            nodes = [counts(cinductor.explain(function, *fresh(arguments)))["nodes"] for arguments in both]
            is_same = 0 < nodes[0] == nodes[1]
            found[name] = {"sizes": sizes if is_same else None, "nodes": nodes}
            if is_same and sizes[0] > UNROLLED:
                break
    return found


def compile_module(module, which, chosen):
    """compile_figures for the programs of a module, at the smaller (0) or the larger (1) of the chosen sizes."""
    warm_up()
    return {
        name: compile_figures(function, make(chosen[name]["sizes"][which], np.random.default_rng(1)))
        for name, function, make, _ in programs_of(module)
        if chosen[name]["sizes"]
    }


def least_of(figures):
    """The minima over several compilations of one program, because other load only adds time."""
    if any("error" in f for f in figures):
        return next(f for f in figures if "error" in f)
    return {**figures[0], "ms": min(f["ours"] for f in figures) + min(f["theirs"] for f in figures)}


def compiled_twice(name):
    """The figures for few and for many iterations, from processes that alternate."""
    found = [child(["--compile", name, str(k % 2)], 1) for k in range(2 * REPEATS)]
    return [least_of(found[k::2]) for k in range(2)]


def module_twice(module):
    """Like compiled_twice, for each program of a module; and the node counts of programs whose graphs differ at any
    two sizes.
    """
    chosen = child(["--choose-sizes", module], 1)
    if "error" in chosen:
        return {module: [chosen, chosen]}, {}
    found = [child(["--compile-module", module, str(k % 2), json.dumps(chosen)], 1) for k in range(2 * REPEATS)]
    errors = [f for f in found if "error" in f]
    if errors:
        return {module: [errors[0], errors[0]]}, {}
    pairs = {f"{module}.{name}": [least_of([f[name] for f in found[k::2]]) for k in range(2)] for name in found[0]}
    return pairs, {f"{module}.{name}": c["nodes"] for name, c in chosen.items() if not c["sizes"]}


def beside_numba(module, name, factor):
    """Seconds of a program of tests/programs under both, or why Numba does not compile it."""
    import numba

    import cinductor

    function, make, size = next(p[1:] for p in programs_of(module) if p[0] == name)
    arguments, found = make(size * factor, np.random.default_rng(1)), {}
    for peer, call in (("cinductor", cinductor.compile(function, options={"threads": 1})), ("numba", numba.njit(function))):
        try:
            with np.errstate(all="ignore"):
                for _ in range(2):  # the second call may be compiled differently
                    call(*copy.deepcopy(arguments))
                found[peer] = measure(lambda *given, call=call: call(*given), copy.deepcopy(arguments))
        except Exception as why:
            found[peer] = type(why).__name__
    return found


def beside_numba_table(factor):
    """A table of all programs, and how many are at least as fast as Numba."""
    lines, ratios = ["| program | cinductor, µs | numba, µs | numba / cinductor |", "|---|---|---|---|"], []
    for module in program_modules():
        for name, *_ in programs_of(module):
            found = child(["--beside", module, name, str(factor)], 1)
            ours, theirs = (found.get(peer, found.get("error")) for peer in ("cinductor", "numba"))
            is_timed = all(isinstance(seconds, float) for seconds in (ours, theirs))
            ratios += [theirs / ours] if is_timed else []
            cells = [f"{1e6 * v:.2f}" if isinstance(v, float) else v for v in (ours, theirs)]
            lines.append(f"| {module}.{name} | " + " | ".join(cells) + f" | {f'{ratios[-1]:.2f}' if is_timed else ''} |")
            print(lines[-1], file=sys.stderr, flush=True)
    good = sum(ratio * NOISE >= 1 for ratio in ratios)
    return "\n".join([*lines, "", f"Numba takes {len(ratios)}; {good} of those take no longer than {NOISE} times its time."])


def raises(function, arguments):
    """True if the plain function raises."""
    with np.errstate(all="ignore"):
        try:
            function(*copy.deepcopy(arguments))
        except Exception:
            return True
    return False


def warm_up():
    """Read all modules and the compiler's files once."""
    import cinductor

    cinductor.compile(lambda x: x + 1)(np.ones(3))


def while_trip():
    """The overhead of an iteration of a while loop over 16 elements, in nanoseconds."""
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


def in_turns(name, peers, rounds):
    """For each peer (name, threads) the median of its processes, which alternate with those of others."""
    found = {peer: [] for peer in peers}
    for k in range(rounds):
        for peer, threads in peers:
            found[peer, threads].append(child(["--one", peer, name, *(["--checked"] if k == 0 else [])], threads))
    return {peer: median_of(figures) for peer, figures in found.items()}


def median_of(figures):
    """The result whose time is the median. If one failed or is wrong, that one is returned."""
    for figure in figures:
        if "error" in figure or not figure.get("right", True):
            return figure
    return sorted(figures, key=lambda figure: figure["steady"])[len(figures) // 2]


def child(arguments, threads):
    """Run this file in a separate process with that many threads. Return its JSON, or the reason why there is none.
    """
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


def compile_table(pairs):
    """Nodes, kernels, lines of C and compile time for few and for many iterations."""
    lines = ["| program | graph nodes | kernels | lines of C | compile, ms | many / few |", "|---|---|---|---|---|---|"]
    for name, (few, many) in pairs.items():
        if "error" in few or "error" in many:
            lines.append(f"| {name} | {few.get('error') or many['error']} | | | | |")
            continue
        cells = [f"{few[key]} / {many[key]}" for key in ("nodes", "kernels", "lines")] + [f"{few['ms']:.1f} / {many['ms']:.1f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {many['ms'] / few['ms']:.2f} |")
    return "\n".join(lines)


def compile_summary(pairs):
    """How many programs compile as fast for many iterations as for few, and the sums over all."""
    pairs = [pair for pair in pairs.values() if not any("error" in side for side in pair)]
    if not pairs:
        return "none compiled."
    ratios = sorted(many["ms"] / few["ms"] for few, many in pairs)
    few, many = (sum(pair[k]["ms"] for pair in pairs) for k in range(2))
    within = sum(0.9 < r < 1.1 for r in ratios)
    return (
        f"{within} of {len(ratios)} programs lie within 10 %; the least ratio is {ratios[0]:.2f}, the median {ratios[len(ratios) // 2]:.2f}, "
        f"the most {ratios[-1]:.2f}; all together {few / 1e3:.2f} s for few iterations and {many / 1e3:.2f} s for many."
    )


def missed(results, pairs, threads, trip):
    """The targets that were missed, in words."""
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
    for name, (few, many) in pairs.items():
        if "error" in few or "error" in many:
            found.append(f"{name} does not compile")
        elif few["nodes"] != many["nodes"]:
            found.append(f"{name} has {few['nodes']} nodes for few iterations and {many['nodes']} for many")
        elif not 0.9 < many["ms"] / few["ms"] < 1.1:
            found.append(f"{name} compiles {many['ms'] / few['ms']:.2f} times as long for many iterations")
    if trip > 1000:
        found.append(f"an iteration of a while loop takes {trip:.0f} ns")
    return found


def compile_report(pairs, modules, others):
    """The part of the report about compilation."""
    return "\n\n".join([
        "Compilation for few and for many iterations of the same loops, in CPU time: the minimum over several alternating processes.",
        compile_table(pairs),
        "The programs of tests/programs, at two sizes one of which is half as large again as the other: " + compile_summary(modules),
        compile_table(modules),
        "Not measured, because the number of nodes depends on the size (recursion, or loops that are unrolled because they fill lists "
        "or have arrays of another size in each iteration): " + ", ".join(f"{name} {nodes[0]} / {nodes[1]}" if nodes else f"{name} (raises)" for name, nodes in others.items()),
    ])  # fmt: skip


def program_modules():
    return sorted(path.stem for path in PROGRAM_FILES.glob("[a-z]*.py") if path.stem != "failures")


def compile_modules(jobs):
    """Run module_twice for all modules of tests/programs, `jobs` at a time."""
    modules = program_modules()
    pairs, others = {}, {}
    with ThreadPoolExecutor(jobs) as workers:
        for module, (found, differ) in zip(modules, workers.map(module_twice, modules)):
            pairs.update(found)
            others.update(differ)
            print(f"{module:20} {compile_summary(found)}", file=sys.stderr, flush=True)
    return pairs, others


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("PEER", "PROGRAM"))
    parser.add_argument("--checked", action="store_true", help="compare with NumPy")
    parser.add_argument("--compile", nargs=2, metavar=("PROGRAM", "WHICH"))
    parser.add_argument("--choose-sizes", metavar="MODULE")
    parser.add_argument("--compile-module", nargs=3, metavar=("MODULE", "WHICH", "SIZES"))
    parser.add_argument("--compile-only", action="store_true", help="the tables of compilation alone")
    parser.add_argument("--beside", nargs=3, metavar=("MODULE", "PROGRAM", "FACTOR"))
    parser.add_argument("--beside-numba", type=int, metavar="FACTOR", help="the programs of tests/programs, so many times as large, beside Numba")
    parser.add_argument("--run-only", action="store_true", help="the table of running times alone")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each peer, which take turns")
    parser.add_argument("--jobs", type=int, default=1, help="modules of tests/programs that are compiled side by side")
    parser.add_argument("--while-trip", action="store_true")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--out", type=Path, default=HERE / "out")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_one(*options.one, options.checked)))
        return
    if options.compile:
        print(json.dumps(compile_program(options.compile[0], int(options.compile[1]))))
        return
    if options.choose_sizes:
        print(json.dumps(choose_sizes(options.choose_sizes)))
        return
    if options.compile_module:
        module, which, sizes = options.compile_module
        print(json.dumps(compile_module(module, int(which), json.loads(sizes))))
        return
    if options.beside:
        module, name, factor = options.beside
        print(json.dumps(beside_numba(module, name, int(factor))))
        return
    if options.beside_numba:
        print(beside_numba_table(options.beside_numba))
        return
    if options.while_trip:
        print(json.dumps(while_trip()))
        return
    if options.compile_only:
        print(compile_report({name: compiled_twice(name) for name in options.programs.split(",")}, *compile_modules(options.jobs)))
        return
    threads, results = [int(t) for t in options.threads.split(",")], {}
    peers = ["cinductor", *(["numba"] if importlib.util.find_spec("numba") else [])]
    for name in options.programs.split(","):
        found = results[name] = {"numpy": child(["--one", "numpy", name], 1)}
        in_c = [("c", 1)] if PROGRAMS[name][4] else []
        for (peer, t), figure in in_turns(name, [*in_c, *[(peer, t) for t in threads for peer in peers]], options.rounds).items():
            found["c" if peer == "c" else f"{peer} {t}"] = figure
        if "numba" not in peers:
            found.update({f"numba {t}": {"error": "not installed"} for t in threads})
        print(f"{name:16} {found}", file=sys.stderr, flush=True)
    if options.run_only:
        print(table(results, threads))
        return
    pairs = {name: compiled_twice(name) for name in results}
    modules, others = compile_modules(options.jobs)
    trip = child(["--while-trip"], threads[-1]).get("while_ns", float("nan"))
    misses = missed(results, {**pairs, **modules}, threads, trip)
    text = "\n\n".join([
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; NumPy {np.__version__}. × is speed relative to NumPy.",
        table(results, threads),
        compile_report(pairs, modules, others),
        f"An iteration of a while loop over 16 elements: {trip:.0f} ns.",
        "Every target is met." if not misses else "Missed targets:\n" + "\n".join(f"- {miss}" for miss in misses),
    ])  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "loops.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
