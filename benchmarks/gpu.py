"""`make bench-gpu`: compares cinductor with torch.compile, CuPy and JAX on one GPU.

    python benchmarks/gpu.py [--out FOLDER] [--budget SECONDS] [--peers P,...] [--lanes N] [PROGRAM ...]

The programs are those of gpu_programs.py. Each framework has one process, which runs every program from the same
NumPy source (CuPy: uncompiled, over CuPy arrays) and compares its result with NumPy's on the host. All frameworks
compile a program at the same time and are then timed in turn. With --lanes N each framework has N processes, which
compile N programs at the same time; nothing else runs while a program is timed. A figure is the median of batches of
calls between two waits for the device. "First call" is the time to compile and run while others compile, too. Peer
`torch-max` is torch.compile with mode "max-autotune-no-cudagraphs".

Writes gpu.json after each program, and gpu.md and gpu.svg at the end. A later run with the same folder measures only
the programs that are not in gpu.json; with --again, all. With --most N no axis is longer than N, for tests.
"""

import argparse
import contextlib
import json
import math
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpu_programs
import numpy as np

HERE = Path(__file__).resolve().parent
PEERS = ("cinductor", "torch", "cupy", "jax")
CHUNK = 1 << 22


def measure(call, wait, least_s=0.02, batches=9, most_s=1.5):
    """Median seconds of one call among many. `wait(result)` waits until the result of the last call is computed."""
    result = None
    for _ in range(2):
        result = call()
    wait(result)
    start = time.perf_counter()
    result = call()
    wait(result)
    once = max(1e-7, time.perf_counter() - start)
    times = max(1, min(2000, int(least_s / once)))
    batches = max(3, min(batches, int(most_s / (times * once))))
    found = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(times):
            result = call()
        wait(result)
        found.append((time.perf_counter() - start) / times)
    return statistics.median(found)


class Cinductor:
    def __init__(self, mode=None):
        import cinductor

        self.enter, self.compile = cinductor.to_device, cinductor.compile
        self.wait, self.release = lambda _: cinductor.synchronize(), cinductor.empty_cache

    def leave(self, x):
        return x.numpy() if hasattr(x, "numpy") else np.asarray(x)


class Torch:
    def __init__(self, mode=None):
        import torch

        self.torch, self.mode = torch, mode

    def enter(self, x):
        return self.torch.from_numpy(np.array(x)).cuda()

    def leave(self, x):
        return x.cpu().numpy() if hasattr(x, "cpu") else np.asarray(x)

    def compile(self, function):
        return self.torch.compile(self.torch.compiler.wrap_numpy(function), mode=self.mode)

    def wait(self, _):
        self.torch.cuda.synchronize()

    def release(self):
        self.torch._dynamo.reset()
        self.torch.cuda.empty_cache()


class Cupy:
    def __init__(self, mode=None):
        import cupy

        self.cupy, self.enter, self.leave = cupy, cupy.asarray, cupy.asnumpy

    def compile(self, function):
        return gpu_programs.bound_to(function, self.cupy)

    def wait(self, _):
        self.cupy.cuda.Device().synchronize()

    def release(self):
        self.cupy.get_default_memory_pool().free_all_blocks()


class Jax:
    def __init__(self, mode=None):
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")  # not TF32, which the others do not use either
        self.jax, self.enter, self.leave, self.wait = jax, jax.numpy.asarray, np.asarray, jax.block_until_ready

    def compile(self, function):
        return self.jax.jit(gpu_programs.bound_to(function, self.jax.numpy))

    def release(self):
        self.jax.clear_caches()


FRAMEWORKS = {"cinductor": Cinductor, "torch": Torch, "torch-max": Torch, "cupy": Cupy, "jax": Jax}


def error_of(got, want):
    """Relative error in the Euclidean norm; for integers the share of elements that differ. NaN never passes."""
    if got.shape != want.shape:
        return math.inf
    got, want = got.reshape(-1), want.reshape(-1)
    if not np.issubdtype(want.dtype, np.inexact):
        return np.count_nonzero(got != want) / max(1, want.size)
    wide = np.result_type(want.dtype, np.float64)
    distance = norm = 0.0
    for start in range(0, want.size, CHUNK):
        a, b = got[start : start + CHUNK].astype(wide), want[start : start + CHUNK].astype(wide)
        distance += float(np.vdot(a - b, a - b).real)
        norm += float(np.vdot(b, b).real)
    return math.sqrt(distance / norm) if norm else math.sqrt(distance)


def parts(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


class Host:
    """Makes the inputs and NumPy's results, as files that all processes map."""

    def __init__(self, folder, most):
        self.folder, self.most = folder, most

    def make(self, name):
        arrays = gpu_programs.PROGRAMS[name].make(np.random.default_rng(0), self.most)
        for k, x in enumerate(arrays):
            np.save(self.folder / f"{name}.in{k}.npy", x)
        return {"arrays": len(arrays), "bytes": sum(x.nbytes for x in arrays)}

    def refer(self, name):
        """Halves are computed as singles: NumPy has no product of halves that ends in time."""
        program = gpu_programs.PROGRAMS[name]
        arrays = [np.array(x) for x in mapped(self.folder, f"{name}.in")]
        arrays = [x.astype(np.float32) if x.dtype == np.float16 else x for x in arrays]
        with np.errstate(all="ignore"):
            results = parts(program.function(*arrays))
        for k, x in enumerate(results):
            np.save(self.folder / f"{name}.out{k}.npy", x)
        return {"bytes": sum(np.asarray(x).nbytes for x in results)}


def mapped(folder, stem):
    """The arrays of files stem0.npy, stem1.npy, ..., not copied into the process."""
    found, k = [], 0
    while (path := folder / f"{stem}{k}.npy").exists():
        found.append(np.load(path, mmap_mode="r" if path.stat().st_size > 4096 else None))
        k += 1
    return found


class Guest:
    """One framework: compiles a program, checks its first result and times it."""

    def __init__(self, framework, folder, most):
        self.framework, self.folder, self.most = framework, folder, most
        self.call = self.results = None

    def prepare(self, name):
        self.call = self.results = None
        self.framework.release()
        operands = [self.framework.enter(x) for x in mapped(self.folder, f"{name}.in")]
        function = self.framework.compile(gpu_programs.PROGRAMS[name].function)
        self.framework.wait(operands)
        start = time.perf_counter()
        result = function(*operands)
        self.framework.wait(result)
        first = time.perf_counter() - start
        self.results = [np.asarray(self.framework.leave(x)) for x in parts(result)]
        self.call = lambda: function(*operands)
        return {"first": first, "out": sum(x.nbytes for x in self.results)}

    def check(self, name):
        want = mapped(self.folder, f"{name}.out")
        results, self.results = self.results, None
        halves = any(x.dtype == np.float16 for x in results)
        program = gpu_programs.PROGRAMS[name]
        if len(want) != len(results):
            return {"right": False, "distance": "another number of results"}
        errors = [error_of(np.asarray(a), b) for a, b in zip(results, want, strict=True)]
        allowed = [(2e-2 if halves else 1e-3) if np.issubdtype(b.dtype, np.inexact) else program.unequal for b in want]
        return {"right": all(e <= a for e, a in zip(errors, allowed)), "distance": max(errors)}

    def time(self, name):
        return {"steady": measure(self.call, self.framework.wait)}

    def copy(self, name):
        """Bytes read and written per second by a kernel over 1 GiB."""
        function = self.framework.compile(lambda x: x + 1)
        x = np.ones(min(self.most, 1 << 28), np.float32)
        there = self.framework.enter(x)
        return {"rate": 2 * x.nbytes / measure(lambda: function(there), self.framework.wait)}


def serve(peer, folder, most):
    """Answers requests of one line of JSON, [method, program]. What frameworks print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if peer == "numpy":
        worker = Host(folder, most)
    else:
        mode = "max-autotune-no-cudagraphs" if peer == "torch-max" else None
        worker = Guest(FRAMEWORKS[peer](mode), folder, most)
    for line in sys.stdin:
        method, name = json.loads(line)
        try:
            answer = getattr(worker, method)(name)
        except Exception as error:  # a framework may raise anything: the table says that the program fails there
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:100]}
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process that serves one framework; started again after it dies or does not answer in time."""

    def __init__(self, peer, folder, most, log):
        self.command = [sys.executable, __file__, "--serve", peer, "--folder", str(folder), "--most", str(most)]
        caches = {"CINDUCTOR_CACHE_DIR": f"{folder}/own", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "CUPY_CACHE_DIR": f"{folder}/cupy"}
        self.environment = {**os.environ, **caches, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        self.log, self.process = log, None

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment, bufsize=1
        )

    def ask(self, method, name, timeout):
        if self.process is None:
            self.start()
        try:
            print(json.dumps([method, name]), file=self.process.stdin, flush=True)
            ready, _, _ = select.select([self.process.stdout], [], [], timeout)
            answer = self.process.stdout.readline() if ready else ""
        except OSError:
            ready, answer = [True], ""
        if answer:
            return json.loads(answer)
        self.stop()
        return {"error": "the process died" if ready else f"no answer within {timeout:.0f} s"}

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


class Lane:
    """The host and one process of each framework, which work at one program."""

    def __init__(self, options, folder, log):
        self.timeout, self.folder = options.timeout, folder
        self.host = Worker("numpy", folder, options.most, log)
        self.guests = {peer: Worker(peer, folder, options.most, log) for peer in options.peers}
        self.pool = ThreadPoolExecutor(len(self.guests) + 1)
        for worker in (self.host, *self.guests.values()):
            worker.start()

    def ask_all(self, method, name, peers):
        """The answers of the given frameworks, which work at the same time."""
        asked = {peer: self.pool.submit(self.guests[peer].ask, method, name, self.timeout) for peer in peers}
        return {peer: future.result() for peer, future in asked.items()}

    def make(self, name):
        self.made = self.host.ask("make", name, self.timeout)

    def prepare(self, name, following):
        """Compile and check a program. The host computes its result and makes the inputs of the next one meanwhile."""
        program, made = gpu_programs.PROGRAMS[name], self.made
        wanted = self.pool.submit(self.prepare_host, name, following)
        found = self.ask_all("prepare", name, [p for p in self.guests if p.partition("-")[0] not in program.skips])
        want, working = wanted.result(), [peer for peer, answer in found.items() if "error" not in answer]
        if "error" not in want:
            for peer, answer in self.ask_all("check", name, working).items():
                found[peer] |= answer
        for peer in working:
            found[peer]["bytes"] = made.get("bytes", 0) + found[peer].get("out", 0)
        for path in self.folder.glob(f"{name}.*.npy"):
            path.unlink()
        return found

    def prepare_host(self, name, following):
        want = self.host.ask("refer", name, self.timeout)
        if following:
            self.make(following)
        return want

    def time(self, name, found):
        """Add the seconds of a call to what `prepare` found. Nothing else runs."""
        for peer, answer in found.items():
            if "error" not in answer:
                answer |= self.guests[peer].ask("time", name, self.timeout)

    def copy_rate(self):
        answers = [worker.ask("copy", "", self.timeout) for worker in self.guests.values()]
        return max((answer.get("rate", 0.0) for answer in answers), default=0.0)

    def close(self):
        for worker in (self.host, *self.guests.values()):
            worker.stop()
        self.pool.shutdown()


class Run:
    """Lanes, which prepare programs at the same time, and the time until which programs are begun."""

    def __init__(self, options, folder, log):
        self.deadline = time.monotonic() + options.budget
        self.lanes = [Lane(options, folder, log) for _ in range(options.lanes)]
        self.pool = ThreadPoolExecutor(options.lanes)

    def measure(self, names):
        """Yield the names of programs and what is found about each one, until the budget is spent."""
        width = len(self.lanes)
        list(self.pool.map(lambda lane, name: lane.make(name), self.lanes, names))
        for first in range(0, len(names), width):
            if time.monotonic() > self.deadline:
                print(f"the budget is spent before {names[first]}", file=sys.stderr)
                return
            now, later = names[first : first + width], names[first + width : first + 2 * width]
            later += [None] * (len(now) - len(later))
            prepared = list(self.pool.map(Lane.prepare, self.lanes, now, later))
            for lane, name, found in zip(self.lanes, now, prepared):
                lane.time(name, found)
                yield name, found

    def close(self):
        for lane in self.lanes:
            lane.close()
        self.pool.shutdown()


def best_peer(row):
    """The fastest peer whose result is right, and its seconds; None if there is none."""
    times = {p: f["steady"] for p, f in row.items() if p != "cinductor" and "steady" in f and f.get("right", True)}
    return min(times.items(), key=lambda item: item[1]) if times else None


def ratio(row):
    """Seconds of the best peer over those of cinductor, or None."""
    own, peer = row.get("cinductor", {}), best_peer(row)
    return peer[1] / own["steady"] if peer and "steady" in own else None


def cell(figure):
    if figure is None or "steady" not in figure:
        return "–"
    return f"{1e3 * figure['steady']:.3g}" + ("" if figure.get("right", True) else " **wrong**")


def commit():
    """The commit of the tree that is measured, with a + if files differ from it: $CINDUCTOR_COMMIT, or as git says."""
    if named := os.environ.get("CINDUCTOR_COMMIT"):
        return named
    try:
        git = ["git", "-C", str(HERE)]
        head = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "–"
    return head + "+" * bool(changed)


def rate(name, row):
    """Bytes that cinductor moves in a second, or operations that it computes."""
    own, work = row.get("cinductor", {}), gpu_programs.PROGRAMS[name].work
    if "steady" not in own:
        return "–"
    return f"{work / own['steady'] * 1e-12:.3g} TFLOP/s" if work else f"{own['bytes'] / own['steady'] * 1e-9:.0f} GB/s"


def summary(results):
    ratios = [r for row in results.values() if (r := ratio(row))]
    if not ratios:
        return "No program was measured by cinductor and by a peer."
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    good, wrong = sum(r >= 0.97 for r in ratios), [n for n, row in results.items() if not row.get("cinductor", {}).get("right", True)]
    text = f"{len(ratios)} of {len(results)} programs have a peer: geometric mean {mean:.3g}, {good} at 0.97 or better."
    return text + (f" Wrong results of cinductor: {', '.join(wrong)}." if wrong else "")


def table(found):
    peers, results = found["peers"], found["programs"]
    lines = ["# GPU measurements", "", "`make bench-gpu`: milliseconds of one call with arrays on the GPU. The last column is the time of the best peer divided"]
    lines += ["by cinductor's. GB/s counts each input read once and each result written once. \"Tree\" is the commit that a row was measured with."]
    lines += [""]
    lines += [f"{found['card']}, {found['date']}: a kernel that reads and writes 1 GiB moves {found['copy'] * 1e-9:.0f} GB/s. {summary(results)}", ""]
    lines += ["| program | " + " | ".join(peers) + " | rate | first call s | ratio | tree |", "|---" * (len(peers) + 5) + "|"]
    for name, row in results.items():
        first = row.get("cinductor", {}).get("first")
        columns = [cell(row.get(peer)) for peer in peers] + [rate(name, row), f"{first:.3g}" if first else "–"]
        tree = row.get("cinductor", {}).get("commit", "–")
        lines.append(f"| {name} | " + " | ".join(columns) + f" | {ratio(row) or math.nan:.2f} | {tree} |")
    errors = [f"* {name}, {peer}: {f['error']}" for name, row in results.items() for peer, f in row.items() if "error" in f]
    if errors:
        lines += ["", "Programs that a framework does not run:", "", *(" ".join(line.split()) for line in errors)]
    return "\n".join(lines) + "\n"


def plot(found):
    """An SVG of bars on a logarithmic axis: the best peer's time over cinductor's."""
    bars = sorted(((r, n) for n, row in found["programs"].items() if (r := ratio(row))), reverse=True)
    row, left, unit = 14, 170, 110
    height = row * len(bars) + 50
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height}" font-family="sans-serif" font-size="10">']
    lines.append('<rect width="100%" height="100%" fill="white"/>')
    lines.append(f'<text x="10" y="16" font-size="12">Best peer / cinductor, {found["card"]}, {found["date"]}</text>')
    zero = left + 2 * unit
    for k, (value, name) in enumerate(bars):
        length = max(-2, min(3, math.log2(value))) * unit
        y, colour = 28 + k * row, "#3a7d44" if value >= 0.97 else "#b5462f"
        lines.append(f'<text x="{left - 6}" y="{y + 9}" text-anchor="end">{name}</text>')
        lines.append(f'<rect x="{min(zero, zero + length):.0f}" y="{y}" width="{abs(length):.0f}" height="{row - 4}" fill="{colour}"/>')
        lines.append(f'<text x="{max(zero, zero + length) + 4:.0f}" y="{y + 9}">{value:.2f}</text>')
    lines.append(f'<line x1="{zero}" y1="24" x2="{zero}" y2="{height - 18}" stroke="black"/></svg>')
    return "\n".join(lines) + "\n"


def card():
    """The name of the GPU as its driver reports it."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "GPU"


def earlier(options):
    """Results of an interrupted run with the same GPU, sizes and frameworks, else an empty table."""
    empty = {"card": card(), "date": time.strftime("%Y-%m-%d"), "most": options.most, "peers": list(options.peers), "copy": 0.0, "programs": {}}
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((options.out / "gpu.json").read_text())
        if not options.again and all(found[key] == empty[key] for key in ("card", "most", "peers")):
            return found
    return empty


def write(options, found):
    (options.out / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")
    (options.out / "gpu.md").write_text(table(found))
    (options.out / "gpu.svg").write_text(plot(found))


def measure_all(options, run, found):
    names = [name for name in options.programs or gpu_programs.PROGRAMS if name not in found["programs"]]
    found["copy"], tree = found["copy"] or run.lanes[0].copy_rate(), commit()
    for name, row in run.measure(names):
        found["programs"][name] = row
        found["programs"] = {key: found["programs"][key] for key in gpu_programs.PROGRAMS if key in found["programs"]}
        row.setdefault("cinductor", {})["commit"] = tree
        figures = "  ".join(f"{peer} {cell(row.get(peer)):>6}" for peer in options.peers)
        print(f"{name:24} {figures}  {ratio(row) or math.nan:.2f}", file=sys.stderr, flush=True)
        write(options, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--out", type=Path, default=HERE / "out")
    parser.add_argument("--peers", default=",".join(PEERS), type=lambda text: text.split(","))
    parser.add_argument("--budget", type=float, default=1800, help="seconds after which no program is started")
    parser.add_argument("--lanes", type=int, default=1, help="how many programs are prepared at the same time")
    parser.add_argument("--timeout", type=float, default=90, help="seconds for one step of one framework")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--most", type=int, default=1 << 62)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.folder, options.most)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    found = earlier(options)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder, (options.out / "gpu.log").open("w") as log:
        run = Run(options, Path(folder), log)
        try:
            measure_all(options, run, found)
        finally:
            run.close()
    write(options, found)
    print(table(found))


if __name__ == "__main__":
    main()
