"""Times loops, branches and varying sizes on a GPU: the cost of a launch, an iteration and a condition, and programs
on GPU and CPU.

    python benchmarks/gpu_loops.py [--out FOLDER] [NAME ...]

Each figure is measured in a process of its own. `loops`: programs of loops.py on device arrays, compared with
backend "c" on one thread, and how many kernels a call launches. `costs`: microseconds. `sizes`: kernels of
symbolic sizes and of constant sizes. Writes gpu_loops.md and gpu_loops.json into --out.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import loops
import numpy as np
from gpu import measure

HERE = Path(__file__).resolve().parent


def rows(a, b):
    """Independent iterations, each with a serial loop."""
    for i in range(a.shape[0]):
        s = a[i, 0] * b[0]
        for k in range(1, b.shape[0]):
            s = s * 0.5 + a[i, k] * b[k]
        a[i, 0] = s
    return a


def pixels(counts, across, down, limit):
    """Escape times, element by element."""
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            x, y, n = across[j], down[i], 0
            while n < limit and x * x + y * y <= 4:
                x, y = x * x - y * y + across[j], 2 * x * y + down[i]
                n += 1
            counts[i, j] = n
    return counts


def relax(x, trips):
    """A loop of the wrapper around kernels."""
    for _ in range(trips):
        x[1:-1] = (x[:-2] + x[2:]) / 2
    return x


def until(x, trips):
    """A condition that the GPU computes and the host reads."""
    k = 0
    while x.max() > 0 and k < trips:
        x = x * 0.999
        k += 1
    return x


OWN = {
    "rows": (rows, lambda rng: (rng.random((4096, 512)), rng.random(512))),
    "pixels": (
        pixels,
        lambda rng: (
            np.zeros((512, 512), np.int64),
            np.linspace(-2, 1, 512),
            np.linspace(-1, 1, 512),
            200,
        ),
    ),
}


def program(name):
    if name in OWN:
        function, make = OWN[name]
        return function, make(np.random.default_rng(0))
    return loops.program(name)


def on_card(arguments):
    import cinductor

    return tuple(cinductor.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments)


def back(value):
    return value.numpy() if hasattr(value, "numpy") else value


def run_loop(name):
    """Seconds of a call on the GPU and with backend "c", and whether the results agree."""
    import cinductor
    from cinductor import synchronize

    function, arguments = program(name)
    fn, host = cinductor.compile(function), cinductor.compile(function, options={"threads": 1})
    operands, theirs = on_card(arguments), loops.fresh(arguments)
    start = time.perf_counter()
    got = fn(*operands)
    synchronize()
    found = {"first": time.perf_counter() - start}
    want = host(*theirs)
    pairs = [(back(a), b) for a, b in zip(operands, theirs)]
    found["right"] = loops.is_same(back(got), want, [a for a, _ in pairs], [b for _, b in pairs])
    found["cpu"] = loops.measure(host, arguments, seconds=0.5)
    found["steady"] = measure(lambda: fn(*operands), synchronize, least_s=0.05, batches=3)
    text = cinductor.explain(
        cinductor.compile(function, device="cuda", backend="cuda", options={"offload": "always"}),
        *loops.fresh(arguments),
    ).kernels
    found["plan"] = [
        line.strip()
        for line in text.splitlines()
        if line.startswith(("  k", "  #", "    k", "    for", "    while"))
    ]
    return found


def run_costs():
    """Microseconds of a small call, of a launch in a loop, and of an iteration of a while loop."""
    import cinductor
    from cinductor import synchronize

    found = {}
    small = cinductor.to_device(np.ones(8))
    add = cinductor.compile(lambda a, b: a + b)
    start = time.perf_counter()
    add(small, small)
    synchronize()
    found["first call"] = 1e6 * (time.perf_counter() - start)
    found["call and launch"] = 1e6 * measure(lambda: add(small, small), synchronize)
    found["call, launch and wait"] = 1e6 * measure(
        lambda: (add(small, small), synchronize()), lambda: None
    )
    found["call, launch and copy back"] = 1e6 * measure(
        lambda: add(small, small).numpy(), lambda: None
    )
    for name, function, size in (
        ("launch in a for", relax, 100_000),
        ("turn of a while, small", until, 16),
        ("turn of a while, 1e6", until, 1_000_000),
    ):
        fn = cinductor.compile(function)
        times = {}
        for trips in (100, 1100):
            x = cinductor.to_device(np.linspace(1, 2, size))
            times[trips] = measure(functools.partial(fn, x, trips), synchronize, batches=3)
        found[name] = 1e6 * (times[1100] - times[100]) / 1000
    for n in (64, 1024):
        a = cinductor.to_device(np.ones((n, n), np.float32))
        product = cinductor.compile(lambda x: x @ x + 1)
        found[f"matmul {n}"] = 1e6 * measure(lambda a=a, f=product: f(a), synchronize, batches=3)
    return found


def run_sizes():
    """Milliseconds of kernels with constant and with symbolic sizes."""
    import cinductor
    from cinductor import synchronize

    functions = {
        "pointwise": lambda x, v: x * 2 + 1,
        "broadcast": lambda x, v: x * v + 1,
        "rows": lambda x, v: x.sum(axis=1),
        "columns": lambda x, v: x.sum(axis=0),
        "all": lambda x, v: x.sum(),
        "softmax": lambda x, v: (
            np.exp(x - x.max(axis=1, keepdims=True))
            / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
        ),
        "transposed": lambda x, v: x.T + 1,
    }
    found = {}
    for shape in ((1000, 1000), (16384, 4096), (50_000_000, 1)):
        x, v = np.ones(shape, np.float32), np.ones(shape[1], np.float32)
        x, v = cinductor.to_device(x), cinductor.to_device(v)
        for name, function in functions.items():
            both = [
                functools.partial(cinductor.compile(function, dynamic=d), x, v)
                for d in (False, True)
            ]
            found[f"{name} {shape[0]}x{shape[1]}"] = [
                1e3 * measure(call, synchronize, batches=3) for call in both
            ]
    return found


def child(arguments, timeout=30):
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "CINDUCTOR_CACHE_DIR": cache}
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
        return f"fails: {figure['error']} | |"
    wrong = "" if figure["right"] else " **wrong**"
    return (
        f"{1e3 * figure['steady']:.4g}{wrong} | {1e3 * figure['cpu']:.4g} | {figure['first']:.2f}"
    )


def table(found):
    lines = ["| program | GPU ms | CPU ms | first call s |", "|---|---|---|---|"]
    lines += [f"| {name} | {cell(row)} |" for name, row in found["loops"].items()]
    for part, unit in (("costs", "µs"), ("sizes", "ms, constant and symbolic")):
        lines += ["", f"| {part} | {unit} |", "|---|---|"]
        for name, value in found.get(part, {}).items():
            figures = value if isinstance(value, list) else [value]
            lines.append(
                f"| {name} | {', '.join(f'{x:.4g}' if isinstance(x, float) else str(x) for x in figures)} |"
            )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["costs", "sizes", *OWN, *loops.PROGRAMS])
    parser.add_argument("--out", type=Path, default=HERE / "out")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one = {"costs": run_costs, "sizes": run_sizes}.get(options.one)
        print(json.dumps(one() if one else run_loop(options.one)))
        return
    found = {"loops": {}}
    for name in options.names:
        figure = child(["--one", name])
        (found if name in ("costs", "sizes") else found["loops"])[name] = figure
        print(name, figure, file=sys.stderr, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gpu_loops.json").write_text(json.dumps(found, indent=1) + "\n")
    text = table(found)
    (options.out / "gpu_loops.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
