"""Times scans, compressions, histograms, gathers, transposes and reductions to a bool on GPU arrays, with
torch.compile and CuPy.

    python benchmarks/gpu_kernels.py [--out FOLDER] [NAME ...]

Each program runs in a process of its own under each framework, from the same NumPy source (CuPy: uncompiled, over
CuPy arrays). A figure is the median of batches of calls between two waits for the device; the last column is the
time of the faster peer divided by cinductor's. Writes gpu_kernels.md and gpu_kernels.json into --out.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from gpu import measure, open_peer

HERE = Path(__file__).resolve().parent
FLAT, SQUARE, CUBE = (1 << 26,), (8192, 8192), (256, 512, 512)
BINS = 1024


def flat_scan(x):
    return np.cumsum(x)


def row_scan(x):
    return np.cumsum(x, axis=1)


def compress(x):
    return x[x > 0.6] * 2


def bincount(i):
    return np.bincount(i, minlength=BINS)


def gather(x, i):
    return x[i] + 1


def transpose_add(x, y):
    return x + y.T


def permute(x):
    return np.transpose(x, (2, 0, 1)) * 2


def jacobi(x):
    for _ in range(20):
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        x = y
    return x


def is_any(x):
    return (x > 2).any()


def numbers(shape):
    return np.random.default_rng(0).random(shape, dtype=np.float32) + np.float32(0.1)


def positions(shape, most):
    return np.random.default_rng(1).integers(0, most, shape)


def with_hit_at(place):
    x = numbers((1 << 24,))
    x[place] = 4
    return x


PROGRAMS = {
    "flat_scan": (flat_scan, lambda: [positions(FLAT, 9)]),
    "row_scan": (row_scan, lambda: [numbers(SQUARE)]),
    "compress": (compress, lambda: [numbers(FLAT)]),
    "bincount": (bincount, lambda: [positions((1 << 24,), BINS)]),
    "gather": (gather, lambda: [numbers(FLAT), positions((1 << 24,), FLAT[0])]),
    "transpose_add": (transpose_add, lambda: [numbers(SQUARE), numbers(SQUARE)]),
    "permute": (permute, lambda: [numbers(CUBE)]),
    "jacobi": (jacobi, lambda: [numbers((16384, 8192))]),
    "any, hit at 100": (is_any, lambda: [with_hit_at(100)]),
    "any, no hit": (is_any, lambda: [numbers((1 << 24,))]),
}
PEERS = ("cinductor", "torch", "cupy")


def open_framework(peer, fn):
    """Like open_peer; for CuPy it returns the plain function, because CuPy arrays override NumPy's functions."""
    if peer != "cupy":
        return open_peer(peer, fn)
    import cupy

    wait = cupy.cuda.get_current_stream().synchronize
    return fn, cupy.asarray, cupy.asnumpy, wait


def run_one(peer, name):
    fn, make = PROGRAMS[name]
    arrays = make()
    call, enter, leave, wait = open_framework(peer, fn)
    operands = [enter(a) for a in arrays]
    got, want = leave(call(*operands)), fn(*arrays)
    right = got.shape == want.shape and bool(np.allclose(got, want, rtol=2e-3, atol=1e-3))
    return {"right": right, "ms": 1e3 * measure(lambda: call(*operands), wait)}


def child(peer, name):
    command = [sys.executable, __file__, "--one", peer, name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=300)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        return {"error": type(error).__name__}


def cell(figure):
    if "error" in figure:
        return figure["error"]
    return f"{figure['ms']:.3f}" + ("" if figure["right"] else " wrong")


def ratio(figures):
    own, peers = figures["cinductor"], [figures[p] for p in PEERS[1:] if "ms" in figures[p]]
    if "ms" not in own or not peers:
        return "-"
    return f"{min(p['ms'] for p in peers) / own['ms']:.2f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=HERE / "out")
    parser.add_argument("--one", metavar="PEER")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(run_one(chosen.one, chosen.names[0])))
        return
    found = {n: {p: child(p, n) for p in PEERS} for n in chosen.names or PROGRAMS}
    lines = [
        "| ms | " + " | ".join(PEERS) + " | better peer / cinductor |",
        "|---|---|---|---|---|",
    ]
    for name, figures in found.items():
        lines.append(
            f"| {name} | " + " | ".join(cell(figures[p]) for p in PEERS) + f" | {ratio(figures)} |"
        )
    print("\n".join(lines))
    chosen.out.mkdir(exist_ok=True)
    (chosen.out / "gpu_kernels.md").write_text("\n".join(lines) + "\n")
    (chosen.out / "gpu_kernels.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
