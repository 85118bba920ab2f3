"""Times the models of tests/torch/models.py under eager, Inductor and cinductor: seconds to compile, microseconds of a call and of
a training step. Writes torch.json (the history of all runs), torch.md (the table of the last one) and torch.svg (its plot).

    python benchmarks/torch_models.py [--models mlp,lstm] [--backends eager,cinductor] [--device cuda] [--out FOLDER] [--seconds N] [--compile] [--busy]

Each model has a process, in which calls are timed in turns: a short run of each backend, several times, and the median of the runs
counts. Nothing is compiled meanwhile; with --jobs, that many processes compile before the first call is timed, and --wait ends those
that need longer. Waiting threads of OpenMP sleep, unless --spin leaves them as they are by default. With --compile, each pair of model and backend also runs in two processes of its own: one with empty caches, and one that finds what the
first has left. `own` is the time in cinductor itself. Dynamo is imported before, and no other thread of torch spins. With --busy, too, these
are seconds of processor time, with the C compiler's. Of a backend `dynamo` only Dynamo runs, and `wrapper` is Inductor with cpp_wrapper.
The model `small` is a function with three arguments and two results of eight elements, for the overhead of a call.

On a CUDA device the calls of a run are queued one after another. A run ends when the device has done the last, so its time is what the
slower of host and device takes for a call. `large` models have products that keep the device busy; mlp8, resnet8, unet8 and so on are the
models with eight times as many features and larger arguments.

With --memory, a process of each pair of model and backend measures the peak memory of a training step in addition to the model and
its arguments. On a host that is resident memory: malloc returns what is freed at once. On a CUDA device it is that of torch's allocator.

On a machine that others use, --busy compares neighbours: single calls of the backends follow each other, in processor time, and the
ratio of two backends is the median of the ratios of such neighbours.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 0.1  # of a run
ROUNDS = 5
WARM = 3  # calls before a run
READY = "ready"
OPTIMIZERS = ("sgd", "adamw")
MODELS = "mlp,resnet,unet,mobilenet,encoder,decoder,cache,lstm,gnn,vae,diffusion,recommender,sgd,adamw"
LARGE = ("large_pointwise", "large_norms", "large_mlp", "large_convolutions")
SCALE = 8  # of the models of `scaled`
BACKENDS = ("eager", "inductor", "cinductor")
OTHERS = {"dynamo": {"backend": "eager"}, "wrapper": {"backend": "inductor", "options": {"cpp_wrapper": True}}}


def large(name: str, torch):
    """A model and its argument for a device: without a product that dominates, or of products alone."""
    nn = torch.nn
    if name == "large_pointwise":
        return nn.Sequential(nn.GELU(), nn.PReLU(), nn.Tanh(), nn.Hardswish()), torch.randn(4096, 4096)
    if name == "large_norms":
        return nn.Sequential(nn.LayerNorm(2048), nn.SiLU(), nn.Dropout(0.0), nn.LayerNorm(2048), nn.Softmax(-1)), torch.randn(8192, 2048)
    if name == "large_mlp":
        return nn.Sequential(nn.Linear(2048, 4096), nn.GELU(), nn.LayerNorm(4096), nn.Linear(4096, 2048)), torch.randn(4096, 2048)
    layers = [nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()) for _ in range(4)]
    return nn.Sequential(*layers), torch.randn(32, 64, 56, 56)


def scaled(name: str, torch):
    """The arguments of a model with more features, in sizes of which a call takes milliseconds on a host: its name ends with 8."""
    images, tokens = torch.randn(4, 3, 64, 64), torch.randint(0, 20, (4, 128))
    made = {
        "mlp": (torch.randn(512, 96),), "resnet": (images,), "unet": (images,), "mobilenet": (images.to(memory_format=torch.channels_last),),
        "encoder": (tokens,), "decoder": (tokens,), "lstm": (torch.randn(32, 16, 6),), "gnn": (torch.randn(4000, 6), torch.randint(0, 4000, (2, 32000))),
        "vae": (torch.randn(512, 96),), "diffusion": (torch.randn(512, 32), torch.randint(0, 10, (512,))),
        "recommender": (torch.randn(512, 4), torch.randint(0, 240, (2, 512, 8))),
    }  # fmt: skip
    return made[name]


def calls(name: str, backend: str, device: str) -> dict[str, object]:
    """The functions that are timed: `infer` and `train`, or what the model has of them."""
    sys.path.insert(0, str(ROOT / "tests" / "torch"))
    import torch
    from models import MODELS as KNOWN
    from models import Decoder

    def compiled(fn):
        return fn if backend == "eager" else torch.compile(fn, **OTHERS.get(backend, {"backend": backend}))

    def made(*tensors):
        return [t.to(device) for t in tensors]

    torch.manual_seed(0)
    if name in OPTIMIZERS:
        model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8))).to(device)
        kinds = {"sgd": lambda p: torch.optim.SGD(p, lr=1e-6, momentum=0.9), "adamw": lambda p: torch.optim.AdamW(p, lr=1e-6)}
        optimizer = kinds[name](model.parameters())
        model(*made(torch.randn(4, 64))).square().mean().backward()
        return {"train": compiled(optimizer.step)}
    if name == "cache":
        model, caches = Decoder().to(device), made(*(torch.zeros(1, 2, 64, 8) for _ in range(2)))
        token, place = made(torch.tensor([[3]]), torch.tensor([5]))
        step = compiled(model.step)
        return {"infer": torch.no_grad()(lambda: step(token, place, *caches))}
    if name == "small":
        small, arguments = lambda a, b, c: (a + b * c, a - c), made(*torch.randn(3, 8))
        small.__code__ = small.__code__.replace(co_name=backend)  # Dynamo checks all that is compiled of a code object
        step = compiled(small)
        return {"infer": torch.no_grad()(lambda: step(*arguments))}
    if name in LARGE:
        model, argument = large(name, torch)
        arguments = [argument]
    elif name.endswith(str(SCALE)):
        kind = name.removesuffix(str(SCALE))
        model, arguments = KNOWN[kind][0](SCALE), scaled(kind, torch)
    else:
        cls, make = KNOWN[name]
        model, arguments = cls(), make()
    fast, arguments = compiled(model.to(device)), made(*arguments)
    served = compiled(copy.deepcopy(model).eval())  # no dropout, and the statistics of batch normalisation are known
    return {
        "infer": torch.no_grad()(lambda: served(*arguments)),
        "train": lambda: fast(*arguments).square().mean().backward(),
    }


def many(name: str, torch):
    """The arguments of a model of `scaled` whose activations take some hundred megabytes."""
    made = {"unet8": lambda: torch.randn(16, 3, 128, 128), "resnet8": lambda: torch.randn(16, 3, 128, 128), "decoder8": lambda: torch.randint(0, 20, (16, 512)),
            "encoder8": lambda: torch.randint(0, 20, (16, 512)), "mlp8": lambda: torch.randn(65536, 96)}  # fmt: skip
    return [made[name]()]


def register() -> None:
    """Make the backend known to torch, also if the package is not installed."""
    from torch._dynamo.backends.registry import list_backends, register_backend

    import cinductor.torch

    if "cinductor" not in list_backends():
        register_backend(cinductor.torch.backend, name="cinductor")


def in_turns(name: str, backends: list[str], device: str, rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Per backend the median microseconds of each call. All is compiled before a line is read from the standard input."""
    import torch

    register()
    run_of = run_on_device if torch.device(device).type == "cuda" else run_on_host
    timed = {backend: calls(name, backend, device) for backend in backends}
    prepare(timed)
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for backend, kinds in timed.items():
            for kind, call in kinds.items():
                times.setdefault((backend, kind), []).append(run_of(call))
    found: dict[str, dict[str, float]] = {backend: {} for backend in backends}
    for (backend, kind), each in times.items():
        found[backend][f"{kind} us"] = statistics.median(each)
    return found


def in_pairs(name: str, backends: list[str], device: str, rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Per backend the median processor time of each call, for cinductor also the median ratio of a peer's calls to its own."""
    register()
    timed = {backend: calls(name, backend, device) for backend in backends}
    found: dict[str, dict[str, float]] = {backend: {} for backend in backends}
    prepare(timed)
    for kind in timed[backends[0]]:
        times: dict[str, list[float]] = {backend: [] for backend in backends}
        until = time.process_time() + rounds * len(backends)
        while time.process_time() < until:
            for backend in backends:
                start = time.process_time()
                timed[backend][kind]()
                times[backend].append(time.process_time() - start)
        for backend, each in times.items():
            found[backend][f"{kind} us"] = statistics.median(each) * 1e6
            if "cinductor" in times and backend != "cinductor":
                found["cinductor"][f"{kind} us of {backend}"] = statistics.median(b / a for a, b in zip(times["cinductor"], each))
    return found


def prepare(timed: dict[str, dict[str, object]]) -> None:
    """Compile all calls, and wait for a line of the standard input."""
    for call in (call for kinds in timed.values() for call in kinds.values()):
        for _ in range(WARM):
            call()
    print(READY, flush=True)
    sys.stdin.readline()


def run_on_device(call) -> float:
    """The microseconds of a call in a run, in which the host does not wait for the device."""
    import torch

    for _ in range(WARM):
        call()
    torch.cuda.synchronize()
    count, start = 0, time.perf_counter()
    while count < 5 or time.perf_counter() < start + SECONDS:
        call()
        count += 1
        if count % 100 == 0:
            torch.cuda.synchronize()  # so that no queue of a thousand launches makes the host wait
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count * 1e6


def run_on_host(call) -> float:
    """The median microseconds of a call in a run. A run's first calls warm up."""
    for _ in range(WARM):
        call()
    times: list[float] = []
    until = time.perf_counter() + SECONDS
    while len(times) < 5 or time.perf_counter() < until:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def processor_seconds() -> float:
    """Processor time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def first_calls(name: str, backend: str, device: str, is_busy: bool) -> dict[str, float]:
    """Seconds of the first call, and those in cinductor itself, for inference and for a training step."""
    import torch

    from cinductor.torch import output

    register()
    own, build, clock = [0.0], output.Artifact.build, processor_seconds if is_busy else time.perf_counter

    def timed(self, gm):
        start = clock()
        try:
            build(self, gm)
        finally:
            own[0] += clock() - start

    output.Artifact.build = timed
    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
    found = {}
    for kind, call in calls(name, backend, device).items():
        own[0], start = 0.0, clock()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        found[f"{kind} first s"] = clock() - start
        if backend == "cinductor":
            found[f"{kind} own s"] = own[0]
    return found


def peak_memory(name: str, backend: str, device: str) -> dict[str, float]:
    """Megabytes that a training step holds at most, in addition to the model and its arguments."""
    import torch

    register()
    sys.path.insert(0, str(ROOT / "tests" / "torch"))
    from models import MODELS as KNOWN

    if backend != "eager":  # what it imports is no memory of a step
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    model = KNOWN[name.removesuffix(str(SCALE))][0](SCALE).to(device)
    arguments = [x.to(device) for x in many(name, torch)]
    fast = model if backend == "eager" else torch.compile(model, backend=backend)
    is_cuda = torch.device(device).type == "cuda"
    before = torch.cuda.memory_allocated() / 2**20 if is_cuda else resident("VmRSS")
    for _ in range(WARM + 1):
        model.zero_grad()
        if is_cuda:
            torch.cuda.reset_peak_memory_stats()
        else:
            Path("/proc/self/clear_refs").write_text("5")  # restarts the peak
        fast(*arguments).square().mean().backward()
    return {"train MB": (torch.cuda.max_memory_allocated() / 2**20 if is_cuda else resident("VmHWM")) - before}


def resident(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


class Process:
    """This program in a process of its own, with these arguments. It prints JSON in its last line."""

    def __init__(self, *words: str, environment: dict[str, str] | None = None, spins: bool = False):
        self.words, self.errors, self.is_ready = words, tempfile.TemporaryFile("w+"), False
        spare = {} if spins else {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
        command, env = [sys.executable, __file__, *words], {**os.environ, **spare, **(environment or {})}
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def ready(self) -> Process:
        """Wait until it has compiled, or has failed."""
        while not self.is_ready and (line := self.process.stdout.readline()):
            self.is_ready = line.strip() == READY
        return self

    def result(self) -> dict:
        """Let it go on to its end."""
        lines = self.process.communicate("\n")[0].splitlines()
        self.errors.seek(0)
        if self.process.returncode:
            print(f"{' '.join(self.words)}: {(self.errors.read().strip().splitlines() or ['failed'])[-1]}", file=sys.stderr)
            return {}
        return json.loads(lines[-1])

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def compiled_together(names: list[str], words: list[str], jobs: int, wait: float, spins: bool) -> dict[str, Process]:
    """Per model a process that has compiled it within so many seconds."""
    until = time.monotonic() + wait

    def compiled(name: str) -> Process:
        process = Process("--calls", name, *words, spins=spins)
        timer = threading.Timer(max(0.0, until - time.monotonic()), process.end)
        timer.start()
        process.ready()
        timer.cancel()
        if not process.is_ready:
            print(f"{name}: not compiled", file=sys.stderr, flush=True)
        return process

    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(names, pool.map(compiled, names), strict=True))
    return {name: process for name, process in found.items() if process.is_ready}


def memory_of(name: str, backends: list[str], device: str) -> dict[str, dict[str, float]]:
    """Per backend the peak memory, one process after another. Freed memory goes back to the system at once."""
    environment = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    return {b: Process("--peak", name, b, "--device", device, environment=environment).result() for b in backends}


def compile_times(name: str, backend: str, device: str, is_busy: bool) -> dict[str, float]:
    """Of a process with empty caches, and of a second one, as `warm`. Inductor's compilers are its own children where processor time counts."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"CINDUCTOR_CACHE_DIR": f"{folder}/ours", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/theirs"}
        caches |= {"TORCHINDUCTOR_COMPILE_THREADS": "1"} if is_busy else {}
        cold, warm = (Process("--first", name, backend, "--device", device, *["--busy"] * is_busy, environment=caches).result() for _ in range(2))
    return cold | {f"warm {key}": value for key, value in warm.items()}


# ---- what is written ----


def ratio(row: dict[str, dict[str, float]], kind: str, peer: str) -> float | None:
    """The peer's time divided by cinductor's: above 1, cinductor is faster."""
    if found := row.get("cinductor", {}).get(f"{kind} of {peer}"):
        return found
    ours, theirs = row.get("cinductor", {}).get(kind), row.get(peer, {}).get(kind)
    return theirs / ours if ours and theirs else None


def mean_ratio(run: dict, kind: str, peer: str) -> float | None:
    """The geometric mean over the models."""
    found = [r for row in run["models"].values() if (r := ratio(row, kind, peer))]
    return math.exp(statistics.fmean(map(math.log, found))) if found else None


def table(run: dict) -> str:
    """Markdown: a table for calls, and one for first calls if they were measured."""
    lines = [f"# Models of PyTorch, {run['date']}", "", f"Commit {run['commit']}, torch {run['torch']}, {run['threads']} threads, load {run['load']}, {run['device']}.", ""]
    for title, kinds in (
        ("Microseconds of a call", ("infer us", "train us")),
        ("Seconds of the first call", ("infer first s", "train first s", "warm infer first s", "warm train first s")),
        ("Peak memory of a training step, megabytes", ("train MB",)),
        ("Seconds of it in cinductor itself", ("infer own s", "train own s", "warm infer own s", "warm train own s")),
    ):
        columns = [(kind, b) for kind in kinds for b in run["backends"] if any(kind in row.get(b, {}) for row in run["models"].values())]
        if not columns:
            continue
        lines += [f"## {title}", "", "| model | " + " | ".join(f"{kind}: {b}" for kind, b in columns) + " |", "|---" * (len(columns) + 1) + "|"]
        lines += [f"| {name} | " + " | ".join(cell(row.get(b, {}).get(kind)) for kind, b in columns) + " |" for name, row in run["models"].items()]
        lines.append("")
    means = [(kind, peer, mean_ratio(run, f"{kind} us", peer)) for kind in ("infer", "train") for peer in ("inductor", "eager")]
    lines += [f"* {kind}, {peer} / cinductor: {value:.2f} (geometric mean)" for kind, peer, value in means if value]
    return "\n".join(lines) + "\n"


def cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def plot(history: list[dict]) -> str:
    """SVG: bars of the last run, Inductor's time divided by cinductor's; below the means of all runs."""
    last, row, left, unit = history[-1], 16, 150, 110
    bars = [(f"{name} {kind}", r) for name, found in last["models"].items() for kind in ("infer", "train") if (r := ratio(found, f"{kind} us", "inductor"))]
    height = 50 + row * len(bars) + 130
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{height}" font-family="sans-serif" font-size="10">']
    lines.append(f'<text x="10" y="16" font-size="12">Inductor / cinductor, time of a call, {last["date"]}</text>')
    zero = left + unit
    for k, (name, value) in enumerate(bars):
        length, y = max(-1.0, min(3.0, math.log2(value))) * unit, 28 + k * row
        lines.append(f'<text x="{left - 6}" y="{y + 9}" text-anchor="end">{name}</text>')
        lines.append(f'<rect x="{min(zero, zero + length):.0f}" y="{y}" width="{abs(length):.0f}" height="{row - 4}" fill="{"#3a7d44" if value >= 1 else "#b5462f"}"/>')
        lines.append(f'<text x="{max(zero, zero + length) + 4:.0f}" y="{y + 9}">{value:.2f}</text>')
    lines.append(f'<line x1="{zero}" y1="24" x2="{zero}" y2="{28 + row * len(bars)}" stroke="black"/>')
    lines += curve(history, 28 + row * len(bars) + 20, left)
    return "\n".join([*lines, "</svg>"]) + "\n"


def curve(history: list[dict], top: int, left: int) -> list[str]:
    """The geometric means of all runs, as a line from the first to the last."""
    lines = [f'<text x="10" y="{top + 10}" font-size="12">Geometric means of all runs</text>']
    for kind, colour in (("infer", "#33658a"), ("train", "#b5462f")):
        means = [mean_ratio(run, f"{kind} us", "inductor") for run in history]
        points = [(left + 400 * k / max(1, len(means) - 1), top + 60 - 40 * math.log2(m)) for k, m in enumerate(means) if m]
        lines.append(f'<polyline points="{" ".join(f"{x:.0f},{y:.0f}" for x, y in points)}" fill="none" stroke="{colour}"/>')
        lines += [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="2" fill="{colour}"/>' for x, y in points]
        lines += [f'<text x="{points[-1][0] + 6:.0f}" y="{points[-1][1] + 3:.0f}">{kind} {means[-1]:.2f}</text>'] if points and means[-1] else []
    return lines


def new_run(backends: list[str], device: str) -> dict:
    import torch

    tree = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "date": time.strftime("%Y-%m-%d"), "commit": tree.stdout.strip(), "torch": torch.__version__, "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1), "backends": backends, "models": {},
        "device": torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else device,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--device", default="cpu", help="of torch: cpu or cuda")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "out")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no model is started")
    parser.add_argument("--compile", action="store_true", help="first calls, too")
    parser.add_argument("--calls", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each call")
    parser.add_argument("--jobs", type=int, default=0, help="processes that compile at the same time, before anything is timed")
    parser.add_argument("--wait", type=float, default=3600.0, help="seconds that these processes compile at most")
    parser.add_argument("--spin", action="store_true", help="waiting threads of OpenMP spin, as by default")
    parser.add_argument("--busy", action="store_true", help="processor time, and ratios of neighbouring calls")
    parser.add_argument("--first", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help="instead of times the peak memory of training steps")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.calls:
        measure = in_pairs if given.busy else in_turns
        print(json.dumps(measure(given.calls[0], given.calls[1].split(","), given.device, given.rounds)))
        return
    if given.first or given.peak:
        print(json.dumps(first_calls(*given.first, given.device, given.busy) if given.first else peak_memory(*given.peak, given.device)))
        return
    path, until = given.out / "torch.json", time.monotonic() + given.seconds
    given.out.mkdir(parents=True, exist_ok=True)
    history = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    history.append(run := new_run(given.backends.split(","), given.device))
    names = given.models.split(",")
    words = [given.backends, "--device", given.device, "--rounds", str(given.rounds), *["--busy"] * given.busy]
    prepared: dict[str, Process] = {}
    if given.jobs:
        prepared = compiled_together(names, words, given.jobs, given.wait, given.spin)
        names = list(prepared)
    for name in names:
        if time.monotonic() > until:
            for process in prepared.values():
                process.end()
            break
        if given.memory:
            found = memory_of(name, run["backends"], given.device)
        else:
            found = (prepared.get(name) or Process("--calls", name, *words, spins=given.spin).ready()).result()
        if given.compile:
            for backend in run["backends"]:
                found.setdefault(backend, {}).update(compile_times(name, backend, given.device, given.busy))
        run["models"][name] = found
        print(f"{name:12} " + "  ".join(f"{b} {cell(v)}" for b, row in found.items() for v in row.values()), file=sys.stderr, flush=True)
        path.write_text(json.dumps(history, indent=1) + "\n", encoding="utf-8")
        (given.out / "torch.md").write_text(table(run), encoding="utf-8")
        (given.out / "torch.svg").write_text(plot(history), encoding="utf-8")
    print(table(run))


if __name__ == "__main__":
    main()
