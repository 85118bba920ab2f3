"""Costs of many workers: python benchmarks/workers.py [--programs N] [--task SECONDS] [--few]

First it measures constants on this machine, in processes of their own: the import, a first call without a cache and with one, storing a
bundle, a warm call, and a task of dask's scheduler. Then it simulates clusters of 1 to 1,000 workers of two cores each, in
which every worker calls the same programs, in three ways:

alone    each worker captures and builds for itself
folder   all workers have one folder for the cache, and start at the same time
shared   `cinductor.dask.share_cache`: the client builds, and sends a bundle to each worker

The simulation has events of a scheduler that starts one task at a time, of a network with one speed for all, and of workers. It is no
measurement of 1,000 machines. Failures, slow disks and workers with other processors are left out.
"""

import argparse
import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

NETWORK = 1.25e8  # bytes in a second from the client: 1 Gbit/s
COUNTS = (1, 10, 100, 1000)
SOURCE = "import numpy as np\n" + "".join(
    f"""
def program_{k}(x, y):
    z = np.exp(-x * x) * y + {k}
    return z / z.sum(axis=1, keepdims=True), np.sqrt(np.abs(z - z.mean(axis=0))).max(axis=0)
"""
    for k in range(64)
)
CHILD = """
import json, os, sys, time
clock = lambda: sum(os.times()[:4])  # of processors, children of this process included
import numpy as np
start = clock()
import cinductor
found = {"import": clock() - start}
import simulated_programs as programs
x, y = np.ones((300, 40)), np.ones((300, 40))
compiled = [cinductor.compile(getattr(programs, name)) for name in sys.argv[2:]]
compiled[0](x, y)
start = clock()
for fn in compiled[1:]:
    fn(x, y)
found["first"] = (clock() - start) / (len(compiled) - 1)
times = []
for _ in range(200):
    start = time.perf_counter()
    fn(x, y)
    times.append(time.perf_counter() - start)
found["warm"] = min(times)
start = clock()
if sys.argv[1] == "save":
    cinductor.cache.save("bundle")
elif sys.argv[1] == "load":
    for _ in range(20):
        cinductor.cache.load("bundle")
    found["load"] = (clock() - start) / 20
print(json.dumps(found))
"""


class Constants(NamedTuple):
    """Seconds of processors, and bytes of the bundle, of one program where not said otherwise."""

    imports: float  # of cinductor in a process that has imported NumPy
    cold: float  # a first call without a cache: capture, build and load
    saved: float  # a first call with a filled cache
    store: float  # storing its part of a bundle
    warm: float  # a later call
    size: float
    task: float  # of the scheduler, for any task


def run_child(folder, cache, what, names):
    """The times of one process."""
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": os.path.join(folder, cache), "CINDUCTOR_MODE": "now", "PYTHONPATH": folder}
    env["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
    words = [sys.executable, "-c", CHILD, what, *names]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def seconds_of_a_task(few):
    """Processor time of dask's client and scheduler for a task that does nothing. Without distributed it is a guess."""
    try:
        from distributed import Client
    except ImportError:
        return 2e-4
    count = 100 if few else 1000
    with Client(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as client:
        start = time.process_time()  # the scheduler is a thread of this process, as the client is
        client.gather(client.map(int, range(count), pure=False))
        return (time.process_time() - start) / count


def measure(few):
    """The constants of this machine, in seconds of processors, on which other work has little influence."""
    names = [f"program_{k}" for k in range(4 if few else 12)]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "simulated_programs.py"), "w") as file:
            file.write(SOURCE)
        cold = run_child(folder, "first", "save", names)
        saved = run_child(folder, "first", "", names)
        loaded = run_child(folder, "second", "load", names[:2])
        size = os.path.getsize(os.path.join(folder, "bundle")) / len(names)
    return Constants(saved["import"], cold["first"], saved["first"], loaded["load"] / len(names), saved["warm"], size, seconds_of_a_task(few))


class Figures(NamedTuple):
    """Times and amounts of one simulated cluster."""

    ready: float  # seconds until every worker has had its first result of every program
    work: float  # seconds of processors for captures and builds, of all machines
    sent: float  # bytes over the network
    busy: float  # part of the time that workers compute, when all are ready


def simulate(constants, how, workers, programs, seconds):
    """Start the workers, give each one task of every program, and note when the last of them is done."""
    c = constants
    built = c.cold * programs
    client = built if how == "shared" else 0.0
    sent = c.size * programs * workers if how == "shared" else 0.0
    events, scheduler, network, ready = [], client, client, 0.0
    for worker in range(workers):
        start = c.imports
        if how == "shared":  # one bundle after another leaves the client
            network += c.size * programs / NETWORK
            start = max(start, network) + c.store * programs
        heapq.heappush(events, (start, worker, 0))
    first_built = [0.0] * programs  # when the folder has a program
    work = client
    while events:
        now, worker, program = heapq.heappop(events)
        if program == programs:
            ready = max(ready, now)
            continue
        scheduler = max(scheduler, now) + c.task  # one task at a time
        if how == "shared" or (how == "folder" and first_built[program] and first_built[program] <= scheduler):
            takes = c.saved
        else:
            takes = c.cold
            work += c.cold
            first_built[program] = min(first_built[program] or scheduler + takes, scheduler + takes)
        heapq.heappush(events, (scheduler + takes + seconds, worker, program + 1))
    wanted = workers / (seconds + c.warm)  # tasks in a second that workers could do
    return Figures(ready, work, sent, min(1.0, 1.0 / (wanted * c.task)))


def table(constants, programs, seconds):
    """The simulated clusters as a table."""
    lines = ["| workers | cache | all ready, s | captures and builds, s of processors | sent, MB | workers busy |", "|---|---|---|---|---|---|"]
    for workers in COUNTS:
        for how in ("alone", "folder", "shared"):
            f = simulate(constants, how, workers, programs, seconds)
            lines.append(f"| {workers} | {how} | {f.ready:.3g} | {f.work:.3g} | {f.sent / 1e6:.3g} | {f.busy:.0%} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=20, help="that each worker calls")
    parser.add_argument("--task", type=float, default=1.0, help="seconds that a task computes")
    parser.add_argument("--constants", help="what an earlier run has printed, instead of measurements")
    parser.add_argument("--few", action="store_true", help="fewer measurements, for a check")
    given = parser.parse_args()
    constants = Constants(**json.loads(given.constants)) if given.constants else measure(given.few)
    print(json.dumps(constants._asdict()))
    print(table(constants, given.programs, given.task))


if __name__ == "__main__":
    main()
