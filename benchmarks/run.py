"""`make bench`: compares NumPy, cinductor and those of Numba, JAX and torch.compile that are installed.

Every figure is a median of several and a ratio to NumPy in the same run on the same machine. Writes results.md,
results.json and results.png into out/ beside this file (or into --out).
"""

import argparse
import ctypes
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
import types
from pathlib import Path

import breaks
import numpy as np
import programs

HERE = Path(__file__).resolve().parent
PEERS = ("cinductor", "numba", "jax", "torch")


def measure(call, *, seconds=1.0, least=3, most=50):
    """Median seconds of one call."""
    times = []
    until = time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < until and len(times) < most):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compiled(peer, name):
    """The program as this peer runs it: (callable, function that makes an input of an array, waiter for a result)."""
    if peer == "numpy":
        return programs.function(name), np.asarray, lambda result: None
    if peer == "cinductor":
        import cinductor

        return cinductor.compile(programs.function(name)), np.asarray, lambda result: None
    if peer == "numba":
        import numba

        return numba.njit(parallel=True)(programs.function(name)), np.asarray, lambda result: None
    if peer == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp

        return jax.jit(programs.function(name, jnp)), jnp.asarray, lambda result: jax.block_until_ready(result)
    import torch

    return torch.compile(programs.function(name)), np.asarray, lambda result: None


def is_close(got, want):
    """True if a peer's result is equal to float32 accuracy."""
    got = np.asarray(got)
    return got.shape == np.shape(want) and bool(np.allclose(got, want, rtol=2e-3, atol=1e-4))


def run_one(peer, name, scale):
    """Figures of one program under one peer, in this process."""
    arrays = programs.inputs(name, scale)
    want = programs.function(name)(*arrays)
    fn, convert, wait = compiled(peer, name)
    operands = [convert(a) for a in arrays]
    start = time.perf_counter()
    result = fn(*operands)
    wait(result)
    first = time.perf_counter() - start
    right = is_close(result, want)
    if name == "tiny":
        steady = per_call(fn, operands)
    else:
        steady = measure(lambda: wait(fn(*operands)))
    return {"first": first, "steady": steady, "right": right}


def timer_of(fn, operands):
    """A timer of calls of fn with these operands as named variables, like a user's."""
    names = [f"a{k}" for k in range(len(operands))]
    return timeit.Timer(f"fn({', '.join(names)})", globals={"fn": fn, **dict(zip(names, operands, strict=True))})


def per_call(fn, operands, loops=20000):
    """Median seconds of a call that is too short to be timed alone; the overhead of the loop is subtracted."""

    def empty(*arguments):
        return None

    timer_of(fn, operands).timeit(loops)
    own, nothing = (statistics.median(timer_of(f, operands).repeat(5, loops)) for f in (fn, empty))
    return (own - nothing) / loops


def child(arguments, cache, timeout=300):
    """Run this file in a separate process. Return its JSON, or the reason why there is none."""
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache + "-torch", "NUMBA_CACHE_DIR": cache + "-numba"}
    try:
        done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, env=env, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {timeout} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    return json.loads(lines[-1])


def figures():
    """Figures other than the programs: import, dispatch, first calls, capture, chains."""
    import cinductor

    found = {}
    small = [np.arange(8.0), np.arange(8.0)]
    tiny = cinductor.compile(programs.tiny)
    tiny(*small)
    found["dispatch of a*b+1 on 8 elements, µs over an empty call"] = 1e6 * per_call(tiny, small)
    found["the same in NumPy, µs"] = 1e6 * per_call(programs.tiny, small)
    found.update(dispatch_figures(cinductor))
    found.update(chain_figures(cinductor))
    return found


# Sums of one, two, four and eight arrays of one size.
SUMS = {
    1: lambda a: a + 1,
    2: lambda a, b: a + b,
    4: lambda a, b, c, d: a + b + c + d,
    8: lambda a, b, c, d, e, f, g, h: a + b + c + d + e + f + g + h,
}


def dispatch_figures(cinductor):
    """The cost of a small call by its number of arrays, and of its guards alone: the minimum of many alternating
    runs.
    """
    found, calls = {}, {}
    for kind, dynamic in (("symbolic", True), ("static", False)):
        for count, total in SUMS.items():
            fn, arrays = cinductor.compile(total, dynamic=dynamic), tuple(np.arange(8.0) for _ in range(count))
            fn(*arrays)
            calls[kind, count, "call"] = timer_of(fn, arrays)
            calls[kind, count, "guards"] = timer_of(fn.specializations[0].why_not, (arrays,))
    loops, best = 3000, dict.fromkeys(calls, math.inf)
    for _ in range(50):
        for key, timer in calls.items():
            best[key] = min(best[key], timer.timeit(loops) / loops)
    for kind in ("symbolic", "static"):
        for count in SUMS:
            found[f"call with {count} arrays of 8 elements, {kind} sizes, µs"] = 1e6 * best[kind, count, "call"]
        for what in ("call", "guards"):
            slope = (best[kind, 8, what] - best[kind, 1, what]) / 7
            found[f"{what}, {kind} sizes, ns for each array more"] = 1e9 * slope
    return found


def compare_sizes(name, scale, seconds=4.0):
    """One program with constant and with symbolic sizes, called in alternation so that other load affects both. The
    ratio is the median over the pairs; times are minima.
    """
    import cinductor

    arrays = programs.inputs(name, scale)
    both = [cinductor.compile(programs.function(name), dynamic=dynamic) for dynamic in (False, True)]
    for fn in both:
        fn(*arrays)
    calls = 20000 if name == "tiny" else 1
    turns, until = [], time.perf_counter() + seconds
    while len(turns) < 5 or (time.perf_counter() < until and len(turns) < 200):
        turns.append([timer_of(fn, arrays).timeit(calls) / calls for fn in both])
    static, symbolic = (min(times) for times in zip(*turns, strict=True))
    return {"static": static, "symbolic": symbolic, "ratio": statistics.median(t[1] / t[0] for t in turns)}


def sizes_table(found):
    """A Markdown table of compare_sizes."""
    lines = ["| program | static sizes, ms | symbolic sizes, ms | symbolic / static |", "|---|---|---|---|"]
    for name, figure in found.items():
        if "error" in figure:
            lines.append(f"| {name} | {figure['error']} | | |")
        else:
            lines.append(f"| {name} | {1e3 * figure['static']:.4g} | {1e3 * figure['symbolic']:.4g} | {figure['ratio']:.3f} |")
    return "\n".join(lines)


def five_kernels(x, w):
    """Five loop nests that cannot be fused, and a library call."""
    e = np.exp(x) - np.mean(x, axis=0)
    s = np.cumsum(e, axis=1)
    m = np.matmul(s, w)
    return np.sqrt(np.abs(np.flip(m, 0) + m.T)).sum(axis=1) + m.max(axis=0), np.tanh(s).sum(axis=0)


def first_call(kernels):
    """Milliseconds of the first call of a program with one kernel or with five, on small arrays."""
    import cinductor

    small = np.linspace(0, 1, 48 * 48).reshape(48, 48)
    fn, operands = (programs.softmax, (small,)) if kernels == "one" else (five_kernels, (small, small))
    compiled_fn = cinductor.compile(fn)
    start = time.perf_counter()
    compiled_fn(*operands)
    return {"ms": 1e3 * (time.perf_counter() - start)}


def first_call_figures():
    """First calls in fresh processes: with an empty cache, then with the cache of the first process."""
    found = {}
    for kernels in ("one", "five"):
        runs = []
        for _ in range(5):
            with tempfile.TemporaryDirectory() as cache:
                runs.append([child(["--first-call", kernels], cache)["ms"] for _ in range(2)])
        cold, warm = (statistics.median(times) for times in zip(*runs, strict=True))
        found[f"first call, {kernels} kernel(s), ms"] = cold
        found[f"first call, {kernels} kernel(s), second process, ms"] = warm
    return found


def make_chain(length, directory):
    """A function of `length` element-wise operations, one per line, in a file of its own."""
    path = Path(directory) / f"chain_{length}.py"
    path.write_text("def chain(x):\n" + "    x = x * 0.999 + 0.001\n" * (length // 2) + "    return x\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.chain


def turns(x):
    """10,000 operations, traced one by one: the source cannot be found, so the loop is not captured."""
    for _ in range(5000):
        x = x * 0.999 + 0.001
    return x


def chain_figures(cinductor):
    """First calls of long functions, and the capture time per source line and per operation."""
    x, times, found = np.linspace(0, 1, 1000), {}, {}
    with tempfile.TemporaryDirectory() as directory:
        for length in (1000, 10000):
            fn = make_chain(length, directory)
            start = time.perf_counter()
            cinductor.compile(fn)(x)
            times[length] = time.perf_counter() - start
            found[f"chain of {length:,} operations, first call ms"] = 1e3 * times[length]
        found["ratio of the two"] = times[10000] / times[1000]
        report = cinductor.explain(make_chain(9998, directory), x)
        found["capture of a chain, µs a line of two operations"] = 1e3 * report.timings["capture_ms"] / 4999
    without_source = types.FunctionType(turns.__code__.replace(co_filename="<no file>"), {}, "turns")
    report = cinductor.explain(without_source, x)
    assert report.timings["nodes"] >= 10000, report
    found["capture without source, µs an operation"] = 1e3 * report.timings["capture_ms"] / 10000
    return found


def import_ms(module):
    """Milliseconds that importing module takes in a fresh process beyond NumPy's own import."""
    code = f"import time; import numpy; t=time.perf_counter(); import {module}; print(1e3*(time.perf_counter()-t))"
    return statistics.median(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(7))


def table(results, names, peers):
    """A Markdown table: NumPy's milliseconds, then each peer's ratio to it."""
    lines = ["| program | NumPy ms | " + " | ".join(f"{p} (× NumPy)" for p in peers) + " |", "|---" * (len(peers) + 2) + "|"]
    for name in names:
        base = results[name]["numpy"]["steady"]
        cells = []
        for peer in peers:
            figure = results[name].get(peer, {"error": "not installed"})
            if "error" in figure:
                cells.append("fails")
            else:
                cells.append(f"{1e3 * figure['steady']:.4g} ms ({base / figure['steady']:.2f}×)" + ("" if figure["right"] else " **wrong**"))
        lines.append(f"| {name} | {1e3 * base:.4g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def first_call_table(results, names, peers):
    """First calls in milliseconds: cold, and in a second process with a warm cache."""
    lines = ["| program | " + " | ".join(f"{p} cold / warm ms" for p in peers) + " |", "|---" * (len(peers) + 1) + "|"]
    for name in names:
        cells = []
        for peer in peers:
            cold, warm = (results[name].get(key, {"error": ""}) for key in (peer, peer + " warm"))
            cells.append("fails" if "error" in cold else f"{1e3 * cold['first']:.4g} / " + ("fails" if "error" in warm else f"{1e3 * warm['first']:.4g}"))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(results, names, peers, path):
    """Bars of speed relative to NumPy, one group per program."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(11, 4.5))
    width = 0.8 / max(1, len(peers))
    for k, peer in enumerate(peers):
        ratios = [results[n]["numpy"]["steady"] / results[n][peer]["steady"] if "steady" in results[n].get(peer, {}) else 0 for n in names]
        axes.bar([i + k * width for i in range(len(names))], ratios, width, label=peer)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(names))], names, rotation=30, ha="right")
    axes.set_ylabel("times as fast as NumPy")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def run_all(names, peers, scale):
    """Run every program under every peer, each in a separate process: with an empty cache, then with the cache that
    this leaves.
    """
    results = {name: {} for name in names}
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp()  # as for a user: later processes reuse the bytecode
    with tempfile.TemporaryDirectory() as cache:
        for peer in peers:
            child(["--one", peer, "tiny"], cache + "-unused")  # writes bytecode, and reads files into the page cache
        for name in names:
            for peer in ("numpy", *peers):
                results[name][peer] = child(["--one", peer, name, "--scale", str(scale)], cache)
                if peer != "numpy":
                    results[name][peer + " warm"] = child(["--one", peer, name, "--scale", str(scale)], cache)
                print(f"{name:16} {peer:10} {results[name][peer]}", file=sys.stderr, flush=True)
        found = {"import beyond NumPy's, ms": import_ms("cinductor"), **first_call_figures(), **child(["--figures"], cache)}
        broken = child(["--breaks"], cache)
        sizes = {name: child(["--sizes", name, "--scale", str(scale)], cache) for name in names}
    return results, found, sizes, broken


# Bytes that the programs bound by memory move for a point of float32: each input read once, each result written once.
MOVED = {"fma_chain": 16, "softmax": 8, "layernorm_gelu": 8, "sum_sq": 4, "col_norm": 8}
TRIAD = """
void triad(float *a, const float *b, const float *c, long n)
{
    _Pragma("omp parallel for schedule(static)") for (long i = 0; i < n; i++) a[i] = b[i] + 3 * c[i];
}
"""


def triad_rates(counts):
    """Bytes a second of a triad in C, which reads two arrays and writes one, by number of threads."""
    with tempfile.TemporaryDirectory() as directory:
        source, library = Path(directory, "triad.c"), Path(directory, "triad.so")
        source.write_text(TRIAD)
        subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        call, openmp = ctypes.CDLL(str(library)).triad, ctypes.CDLL("libgomp.so.1")
        arrays = [np.ones(1 << 24, np.float32) for _ in range(3)]
        operands = [ctypes.c_void_p(a.ctypes.data) for a in arrays] + [ctypes.c_long(1 << 24)]
        rates = {}
        for count in counts:
            openmp.omp_set_num_threads(count)
            rates[count] = 3 * arrays[0].nbytes / measure(lambda: call(*operands), seconds=0.5)
        return rates


def by_threads(peer, names, counts):
    """Print the figures of each program under one peer, a line of JSON for each, as soon as they are known."""
    for name in names:
        arrays, found = programs.inputs(name), {}
        for count in counts if peer == "cinductor" else counts[-1:]:
            if peer == "cinductor":
                import cinductor

                numerics = "close" if name in ("mlp", "attention") else "numpy"
                options = {"threads": count, "numerics": numerics}
                fn, convert, wait = cinductor.compile(programs.function(name), mode="now", options=options), np.asarray, lambda result: None
            else:
                fn, convert, wait = compiled(peer, name)
            try:
                operands = [convert(a) for a in arrays]
                for _ in range(2):
                    wait(fn(*operands))
                few = {"seconds": 0.25, "least": 3}
                found[count] = per_call(fn, operands, 2000) if name == "tiny" else measure(lambda fn=fn, ops=operands, wait=wait: wait(fn(*ops)), **few)
            except Exception as error:  # what a peer raises for a program that it does not support is its own
                found[count] = None
                print(f"{peer} {name}: {str(error)[:120]}", file=sys.stderr)
        print(json.dumps({"program": name, "seconds": found}), flush=True)


def lines_of(arguments, timeout):
    """The lines of JSON that a separate process prints until it ends or the time is over."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile("w+") as output:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=output, env=env)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        output.seek(0)
        found = [json.loads(line) for line in output if line.startswith("{")]
    return {row["program"]: {int(k): v for k, v in row["seconds"].items()} for row in found}


def threads_table(names, peers, counts, seconds):
    """A Markdown table: milliseconds by threads, the best peer with the most threads, and the share of the triad's rate."""
    asked = ["--programs", ",".join(names), "--threads", ",".join(map(str, counts))]
    until = time.perf_counter() + seconds
    found = {}
    for k, peer in enumerate(peers):
        found[peer] = lines_of(["--by-threads", peer, *asked], max(5, (until - time.perf_counter()) / (len(peers) - k) * (1.5 if k + 1 < len(peers) else 1)))
    rates, most, ratios = triad_rates(counts), counts[-1], []
    others = [peer for peer in peers if peer != "cinductor"]
    lines = [f"Triad, GB/s: {', '.join(f'{n}: {rate / 1e9:.1f}' for n, rate in rates.items())}. Milliseconds; peers on {most} threads.", ""]
    titles = ["program", *map(str, counts), *others, "best peer / cinductor", f"share of the triad, {most}"]
    lines += ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for name in names:
        own, rest = found["cinductor"].get(name, {}), [found[peer].get(name, {}).get(most) for peer in others]
        best = min((t for t in rest if t), default=None)
        ratio = best / own[most] if best and own.get(most) else None
        ratios += [ratio] if ratio else []
        moved = MOVED[name] * math.prod(programs.SHAPES[name][0]) if name in MOVED else None
        share = moved / own[most] / rates[most] if moved and own.get(most) else None
        times = [f"{1e3 * t:.3g}" if t else "–" for t in [*(own.get(n) for n in counts), *rest]]
        lines.append("| " + " | ".join([name, *times, *(f"{v:.2f}" if v else "–" for v in (ratio, share))]) + " |")
    if ratios:
        lines += ["", f"Geometric mean of best peer / cinductor: {statistics.geometric_mean(ratios):.2f} of {len(ratios)} programs."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("PEER", "PROGRAM"), help="run one program and print its figures")
    parser.add_argument("--first-call", choices=["one", "five"], help="time one first call")
    parser.add_argument("--sizes", metavar="PROGRAM", help="run one program with static and with symbolic sizes")
    parser.add_argument("--breaks", action="store_true", help="time calls that need Python in between")
    parser.add_argument("--figures", action="store_true", help="print the figures that are not programs")
    parser.add_argument("--threads", metavar="1,2,4", help="print one table of all programs by threads, instead of all else")
    parser.add_argument("--seconds", type=float, default=130, help="of the table by threads, at most")
    parser.add_argument("--by-threads", metavar="PEER", help="print the lines of one peer for that table")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink the first axis of large inputs")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--programs", default=",".join(programs.SHAPES))
    parser.add_argument("--out", type=Path, default=HERE / "out")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_one(*options.one, options.scale)))
        return
    if options.sizes:
        print(json.dumps(compare_sizes(options.sizes, options.scale)))
        return
    if options.first_call:
        print(json.dumps(first_call(options.first_call)))
        return
    if options.breaks:
        print(json.dumps(breaks.rows()))
        return
    if options.figures:
        print(json.dumps(figures()))
        return
    peers = [p for p in options.peers.split(",") if importlib.util.find_spec(p)]
    names = options.programs.split(",")
    if options.threads:
        counts = sorted(map(int, options.threads.split(",")))
        if options.by_threads:
            by_threads(options.by_threads, names, counts)
        else:
            print(threads_table(names, peers, counts, options.seconds))
        return
    results, found, sizes, broken = run_all(names, peers, options.scale)
    text = "\n\n".join([
        f"{os.cpu_count()} processors; NumPy {np.__version__}. Medians; × is speed relative to NumPy in the same run.",
        table(results, names, peers),
        "First call (trace, compile, run), each in a process of its own: nothing cached, then with the cache the first left.",
        first_call_table(results, names, peers),
        "The same kernels for sizes that are known and for all sizes, in turns in one process: the least of each, and the median ratio.",
        sizes_table(sizes),
        "Calls that need Python between their array work, in turns with NumPy: the least of each.",
        broken.get("error") or breaks.table(broken),
        "\n".join(f"- {key}: {value:.4g}" if isinstance(value, float) else f"- {key}: {value}" for key, value in found.items()),
    ])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.md").write_text(text + "\n")
    (options.out / "results.json").write_text(json.dumps({"programs": results, "figures": found, "sizes": sizes, "breaks": broken}, indent=1))
    if importlib.util.find_spec("matplotlib"):
        plot(results, names, peers, options.out / "results.png")
    print(text)


if __name__ == "__main__":
    main()
