"""Collectives and sharded programs on several GPUs of one machine: python benchmarks/collectives.py [--out FOLDER]

Two tables. The rate of all_reduce by array size: in one process with a thread for each GPU, in one process for each GPU, and by
torch.distributed (NCCL) in the same run. Weak scaling of a heat equation and of k-means: the same work for each GPU on one GPU and on
all; with N GPUs the figure is N * time of one / time of all. Without torch or with one GPU the parts that need them are left out.

Figures are medians over rounds; in each round the peers take turns. --device names a device of examples, for a check.
"""

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import cinductor
from cinductor import distributed

SIZES = (1 << 20, 1 << 24, 1 << 28, 1 << 30)  # bytes
ROUNDS = 5


def best(call, finish, repeat, rounds=ROUNDS):
    """Seconds of one call: the median of rounds."""
    times = []
    for _ in range(rounds + 1):
        finish()
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        finish()
        times.append((time.perf_counter() - start) / repeat)
    return statistics.median(times[1:])


# --- the rate of all_reduce ---


def finish(mesh):
    """Waits for this process's members."""
    for member in mesh.members:
        cinductor.synchronize(member.device)


def repeat_of(size):
    return max(5, min(200, (1 << 30) // size))


def rates_of_mesh(mesh, sizes):
    """Seconds of one all_reduce by size, in this process."""
    found = {}
    for size in sizes:
        ones = [cinductor.to_device(np.ones(size // 4, "f4"), m.device) for m in mesh.members]
        reduce = distributed.shard_map(lambda x: distributed.all_reduce(x, "x"), mesh, distributed.P(), distributed.P())
        x = distributed.ShardedArray(mesh, distributed.P(), ones)
        made = reduce(x).shards[0].numpy()
        assert made[0] == made[-1] == mesh.size, made
        found[size] = best(lambda f=reduce, x=x: f(x), lambda: finish(mesh), repeat_of(size))
    return found


def run_process(arguments):
    """One process of several; process 0 prints its times."""
    device, count, rank, port = arguments.device, arguments.count, arguments.rank, arguments.port
    distributed.initialize(f"127.0.0.1:{port}", count, rank)
    mesh = distributed.Mesh((count,), ("x",), devices=f"{device}:{rank}", timeout=60)
    found = rates_of_mesh(mesh, arguments.sizes)
    if rank == 0:
        print(json.dumps(found))


def run_torch(arguments):
    """One process of torch.distributed; process 0 prints its times."""
    import torch
    import torch.distributed as peers

    torch.cuda.set_device(arguments.rank)
    address = f"tcp://127.0.0.1:{arguments.port}"
    peers.init_process_group("nccl", init_method=address, world_size=arguments.count, rank=arguments.rank)
    found = {}
    for size in arguments.sizes:
        x = torch.zeros(size // 4, device="cuda")
        found[size] = best(lambda x=x: peers.all_reduce(x), torch.cuda.synchronize, repeat_of(size))
    if arguments.rank == 0:
        print(json.dumps(found))
    peers.destroy_process_group()


def in_processes(kind, arguments, port):
    """The times that process 0 of several prints; None if they cannot run."""
    words = [sys.executable, __file__, "--as", kind, "--device", arguments.device, "--count", str(arguments.count), "--port", str(port)]
    words += ["--sizes", *map(str, arguments.sizes)]
    children = [
        subprocess.Popen([*words, "--rank", str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(arguments.count)
    ]
    answers = [child.communicate(timeout=200) for child in children]
    if any(child.returncode for child in children):
        print(kind, "fails:", *(error.strip().splitlines()[-1:] for _, error in answers), file=sys.stderr)
        return None
    return {int(size): seconds for size, seconds in json.loads(answers[0][0].splitlines()[-1]).items()}


# --- weak scaling ---


def heat(u):
    """Ten steps of a heat equation, rows divided among the members."""
    for _ in range(10):
        v = distributed.halo_exchange(u, "x")
        middle = v[1:-1]
        sides = np.concatenate([middle[:, -1:], middle, middle[:, :1]], axis=1)
        u = middle + np.float32(0.1) * (v[2:] + v[:-2] + sides[:, 2:] + sides[:, :-2] - np.float32(4) * middle)
    return u


def k_means(points, centers):
    """One step of k-means, points divided among the members."""
    distance = (centers * centers).sum(1) - np.float32(2) * (points @ centers.T)
    own = (distance.argmin(1)[:, None] == np.arange(len(centers))).astype(np.float32)
    sums = distributed.all_reduce(own.T @ points, "x")
    counts = distributed.all_reduce(own.sum(0), "x")
    return sums / np.maximum(counts, np.float32(1))[:, None]


def parts(mesh, shape):
    """An array with the same random part for each member."""
    part = np.resize(np.random.default_rng(0).random((64, shape[1]), dtype=np.float32), shape)
    made = [cinductor.to_device(part, m.device) for m in mesh.members]
    return distributed.ShardedArray(mesh, distributed.P("x"), made)


def scaled(mesh, size):
    """Seconds of ten steps of heat, and of one step of k-means."""
    P = distributed.P
    u, points = parts(mesh, (size, size)), parts(mesh, (size * size // 16, 16))
    centers = distributed.shard(np.random.default_rng(1).random((64, 16), dtype=np.float32), mesh, P())
    steps = distributed.shard_map(heat, mesh, P("x"), P("x"))
    means = distributed.shard_map(k_means, mesh, (P("x"), P()), P())
    return {
        "heat equation": best(lambda: steps(u), lambda: finish(mesh), 5),
        "k-means": best(lambda: means(points, centers), lambda: finish(mesh), 10),
    }


# --- tables ---


def told(part, seconds):
    """Print the seconds of a part at once, so that they are seen if a later part does not end."""
    print(part, seconds, file=sys.stderr, flush=True)
    return seconds


def main(arguments):
    names = [str(d) for d in cinductor.devices(arguments.device)]
    arguments.count = len(names)
    record = {"devices": [cinductor.Device(name).description for name in names], "rates": {}, "scaling": {}}
    if len(names) < 2:
        sys.exit(f"{len(names)} devices {arguments.device!r}: collectives are measured on two or more")
    mesh = distributed.Mesh((len(names),), ("x",), devices=names)
    one = distributed.Mesh((1,), ("x",), devices=names[:1])
    for count, members in ("1", one), (str(len(names)), mesh):
        record["scaling"][count] = told(f"scaling on {count}", scaled(members, arguments.side))
    record["rates"]["one process"] = told("one process", rates_of_mesh(mesh, arguments.sizes))
    record["rates"]["a process for each"] = told("a process for each", in_processes("process", arguments, 29511))
    peer = in_processes("torch", arguments, 29512) if arguments.device == "cuda" else None
    record["rates"]["torch.distributed"] = told("torch.distributed", peer)
    print(table(record, arguments.sizes))
    if arguments.out:
        (arguments.out / "collectives.json").write_text(json.dumps(record, indent=1))


def table(record, sizes):
    """The record as two tables."""
    peers = [name for name, found in record["rates"].items() if found]
    lines = [f"| bytes | {' | '.join(f'{name}: GB/s' for name in peers)} |", "|---" * (len(peers) + 1) + "|"]
    for size in sizes:
        rates = [f"{size / record['rates'][name][size] / 1e9:.4g}" for name in peers]
        lines.append(f"| {size} | {' | '.join(rates)} |")
    (_, one), (count, every) = record["scaling"].items()
    lines += ["", f"| program | ms on 1 | ms on {count} | times one |", "|---|---|---|---|"]
    lines += [f"| {k} | {one[k] * 1e3:.4g} | {every[k] * 1e3:.4g} | {int(count) * one[k] / every[k]:.3g} |" for k in one]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--side", type=int, default=16384, help="of the heat equation's part on each device")
    parser.add_argument("--as", dest="role", choices=["process", "torch"], help=argparse.SUPPRESS)
    for name in ("count", "rank", "port"):
        parser.add_argument(f"--{name}", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.device != "cuda":
        importlib.import_module(f"cinductor_{given.device}").register()
    {None: main, "process": run_process, "torch": run_torch}[given.role](given)
