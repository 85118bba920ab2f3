"""Times the anchor programs on GPU arrays with cinductor and torch.compile, and the copy bandwidth of the GPU.

    python benchmarks/gpu.py [--out FOLDER] [PROGRAM ...]

Each program runs in a process of its own under each framework, from the same NumPy source. A figure is the median
of batches of calls between two waits for the device. GB/s counts each input read once and each result written
once. Writes gpu.md and gpu.json beside this file (or into --out).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import programs

HERE = Path(__file__).resolve().parent
FLAT, IMAGE = (1 << 26,), (16384, 8192)
SHAPES = {
    "fma_chain": [FLAT] * 3,
    "softmax": [IMAGE],
    "sum_sq": [FLAT],
    "black_scholes": [FLAT] * 5,
    "layernorm_gelu": [IMAGE, IMAGE[1:], IMAGE[1:]],
    "col_norm": [IMAGE],
    "rbf": [(2048, 64)] * 2,
    "jacobi": [IMAGE],
    "tiny": [(8,)] * 2,
}
PEERS = ("cinductor", "torch")


def inputs(name):
    """float32 arrays of the host with values in [0.1, 1.1)."""
    rng = np.random.default_rng(0)
    return [rng.random(shape, dtype=np.float32) + np.float32(0.1) for shape in SHAPES[name]]


def measure(call, wait, least_s=0.02, batches=9):
    """Median seconds of one call among many."""
    for _ in range(3):
        call()
    wait()
    start = time.perf_counter()
    call()
    wait()
    times = max(1, min(2000, int(least_s / max(1e-7, time.perf_counter() - start))))
    found = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(times):
            call()
        wait()
        found.append((time.perf_counter() - start) / times)
    return statistics.median(found)


def open_peer(peer, fn):
    """Returns the compiled function, and functions that copy an array to the device, copy it back, and wait for the
    device.
    """
    if peer == "cinductor":
        import cinductor
        from cinductor import synchronize

        return cinductor.compile(fn), cinductor.to_device, lambda x: x.numpy(), synchronize
    import torch

    wrapped = torch.compile(torch.compiler.wrap_numpy(fn))

    def enter(x):
        return torch.from_numpy(x).cuda()

    return wrapped, enter, lambda x: x.cpu().numpy(), torch.cuda.synchronize


def is_right(got, want):
    return got.shape == np.shape(want) and bool(np.allclose(got, want, rtol=2e-3, atol=1e-4))


def check_values(name, arrays):
    """The expected result, in double precision if that is cheap."""
    if name in ("sum_sq",):
        return np.asarray(programs.function(name)(*[a.astype(np.float64) for a in arrays]))
    return programs.function(name)(*arrays)


def run_one(peer, name, checks):
    fn, enter, leave, wait = open_peer(peer, programs.function(name))
    arrays = inputs(name)
    operands = [enter(a) for a in arrays]
    wait()
    start = time.perf_counter()
    result = fn(*operands)
    wait()
    first = time.perf_counter() - start
    moved = sum(a.nbytes for a in arrays) + leave(result).nbytes
    right = is_right(leave(result), check_values(name, arrays)) if checks else None
    del result, arrays
    steady = measure(lambda: fn(*operands), wait)
    return {"first": first, "steady": steady, "bytes": moved, "right": right}


def card():
    """The name of the GPU, if torch is installed, and the GB/s of a copy within its memory, counting bytes read and
    written.
    """
    try:
        import torch

        x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
        y = torch.empty_like(x)
        seconds = measure(lambda: y.copy_(x), torch.cuda.synchronize)
        return {"card": torch.cuda.get_device_name(), "copy": 2 * x.nbytes / seconds * 1e-9}
    except ImportError:
        import cinductor
        from cinductor import synchronize

        copy = cinductor.compile(lambda a: a.copy())
        x = cinductor.to_device(np.ones(1 << 28, np.float32))
        return {"card": "GPU", "copy": 2 * x.nbytes / measure(lambda: copy(x), synchronize) * 1e-9}


def child(arguments, timeout):
    """Run this file in a separate process. Return its JSON, or the reason why there is none."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "CINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache + "/t"}
        command = [sys.executable, __file__, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"error": f"no answer within {timeout} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}
    return json.loads(lines[-1])


def cell(figure):
    if "error" in figure:
        return "fails | – | –"
    wrong = " **wrong**" if figure["right"] is False else ""
    rate = figure["bytes"] / figure["steady"] * 1e-9
    return f"{1e3 * figure['steady']:.4g}{wrong} | {rate:.0f} | {figure['first']:.3g}"


def table(results, peers, card, copy):
    head = "".join(f" {peer} ms | GB/s | first call s |" for peer in peers)
    lines = ["# GPU measurements", "", "`python benchmarks/gpu.py`: cinductor and other compilers on one GPU. Times of one call with arrays on the GPU;"]
    lines += ["first calls with an empty cache.", "", f"{card}: a copy within its memory moves {copy:.0f} GB/s.", ""]
    lines += [f"| program |{head}", "|---" * (3 * len(peers) + 1) + "|"]
    for name, row in results.items():
        lines.append(f"| {name} | " + " | ".join(cell(row[peer]) for peer in peers) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("programs", nargs="*", default=list(SHAPES))
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--no-check", action="store_true", help="do not compare with NumPy")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one == "copy":
        print(json.dumps(card()))
        return
    if options.one:
        print(json.dumps(run_one(options.one, options.programs[0], not options.no_check)))
        return
    peers = options.peers.split(",")
    results = {}
    for name in options.programs:
        results[name] = {}
        for peer in peers:
            arguments = ["--one", peer, name, *(["--no-check"] if options.no_check else [])]
            results[name][peer] = child(arguments, options.timeout)
            print(f"{name:16} {peer:10} {results[name][peer]}", file=sys.stderr, flush=True)
    copy = child(["--one", "copy"], options.timeout)
    options.out.mkdir(parents=True, exist_ok=True)
    name = copy.get("card", "GPU")
    found = {"card": name, "copy_GBps": copy.get("copy", 0.0), "programs": results}
    (options.out / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")
    text = table(results, peers, name, found["copy_GBps"])
    (options.out / "gpu.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
