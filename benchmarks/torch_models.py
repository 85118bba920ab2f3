"""Times the models of tests/torch/models.py under eager, Inductor and cinductor: seconds to compile, medians of a
step.

    python benchmarks/torch_models.py [--models mlp,lstm] [--backends eager,cinductor] [--history FILE] [--cold]

Each pair of model and backend runs in two processes of its own: one with empty caches, and one that finds what the first
has left. `own` is the time in cinductor itself. Dynamo is imported before, and no other thread of torch spins.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 0.7  # of a steady measurement


def measure(name: str, backend: str) -> dict[str, float]:
    """Seconds of the first call, seconds in cinductor itself, and microseconds of a later call, for inference and for
    a training step.
    """
    sys.path.insert(0, str(ROOT / "tests" / "torch"))
    import torch
    from models import MODELS

    import cinductor.torch
    from cinductor.torch import output

    own, build = [0.0], output.Artifact.build

    def timed(self, gm):
        start = time.perf_counter()
        try:
            build(self, gm)
        finally:
            own[0] += time.perf_counter() - start

    output.Artifact.build = timed
    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
    torch.manual_seed(0)
    cls, make = MODELS[name]
    model, arguments, found = cls(), make(), {}
    which = {"eager": None, "inductor": "inductor", "cinductor": cinductor.torch.backend}[backend]
    fast = model if which is None else torch.compile(model, backend=which)

    def infer():
        with torch.no_grad():
            fast(*arguments)

    def train():
        fast(*arguments).square().mean().backward()

    for kind, call in (("infer", infer), ("train", train)):
        own[0], start = 0.0, time.perf_counter()
        call()
        found[f"{kind} first s"], found[f"{kind} own s"] = time.perf_counter() - start, own[0]
        found[f"{kind} us"], found[f"{kind} best us"] = steady(call)
    return found


def steady(call) -> tuple[float, float]:
    """Microseconds of a call: the median, and the least, which a loaded machine changes less."""
    times: list[float] = []
    until = time.perf_counter() + SECONDS
    while len(times) < 10 or time.perf_counter() < until:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6, min(times) * 1e6


def in_processes(name: str, backend: str, is_cold: bool) -> dict[str, float]:
    """Two processes; of the second one the times to compile count, as `warm`, unless is_cold."""
    with tempfile.TemporaryDirectory() as folder:
        cold = {"CINDUCTOR_CACHE_DIR": f"{folder}/ours", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/theirs", "OMP_WAIT_POLICY": "passive"}
        found = [in_process(name, backend, {**os.environ, **cold}) for _ in range(1 if is_cold or backend == "eager" else 2)]
    return found[0] if is_cold else found[0] | {f"warm {key}": value for key, value in found[-1].items()}


def in_process(name: str, backend: str, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", name, backend]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{name} {backend}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return {}
    made: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "BACKEND"), help=argparse.SUPPRESS)
    parser.add_argument("--models", default="mlp,resnet,unet,mobilenet,encoder,decoder,lstm,gnn,vae,diffusion,recommender")
    parser.add_argument("--backends", default="eager,inductor,cinductor")
    parser.add_argument("--history", default="", metavar="FILE", help="a line of JSON is added for this run")
    parser.add_argument("--cold", action="store_true", help="no second process")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    columns = [f"{kind} {what}" for kind in ("infer", "train") for what in ("first s", "own s", "us", "best us")]
    columns += [f"warm {kind} {what}" for kind in ("infer", "train") for what in ("first s", "own s")]
    print("| model | backend | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 2))
    results = []
    for name in given.models.split(","):
        for backend in given.backends.split(","):
            found = in_processes(name, backend, given.cold)
            results.append({"model": name, "backend": backend, **found})
            print(f"| {name} | {backend} | " + " | ".join(f"{found[c]:.3g}" if c in found else "" for c in columns) + " |", flush=True)
    if given.history:
        with open(given.history, "a", encoding="utf-8") as file:
            file.write(json.dumps({"when": time.strftime("%Y-%m-%d"), "results": results}) + "\n")


if __name__ == "__main__":
    main()
