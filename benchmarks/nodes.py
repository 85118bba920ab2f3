"""Shows how compile time grows with the number of nodes, for sizes that double up to 20,000 nodes and more.

    python benchmarks/nodes.py [--most 20000] [--kinds adds,sorts] [--backend c]

Each kind of program is straight-line code with the given number of operations. Columns are the milliseconds of
graph passes, of lowering, of scheduling (fusion, order, memory) and of the wrapper. Then come the scheduler's
share of everything except capture, and milliseconds per thousand nodes, which should not grow. With `--backend c`
the total includes the C compiler.
"""

import argparse
import importlib.util
import logging
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

import cinductor

# name: a function that returns line k of the program.
KINDS = {
    "adds": lambda k: f"x = x + y * {k % 7}.5",
    "sorts": lambda k: "y = np.sort(x)" if k % 8 == 7 else f"x = np.minimum(x, y * {k % 7}.5)",
    "results": lambda k: f"x = np.sin(x * {k % 5}.5); r.append(x)" if k % 64 == 63 else f"x = np.maximum(x - {k % 5}.5, y)",
    "scans": lambda k: f"x = np.cumsum(np.minimum(x, y * {k % 7}.5))",
    "writes": lambda k: f"x[{k % 50}:{k % 50 + 8}] = y[{k % 40}:{k % 40 + 8}]" if k % 4 == 3 else f"x = np.minimum(x + y, {k % 5}.5)",
    "regions": lambda k: f"for i in range(3): x = np.minimum(x * y[i], {k % 5}.5)",
}
REPEATS = 2
PART = 100
LEVELS = ("passes", "lower", "schedule", "wrap")


def program(kind, count, folder):
    """A function of that many lines, in chunks of PART lines, because Python finds the number of a line by counting
    from the first.
    """
    parts = range(0, count, PART)
    source = ["import numpy as np", ""]
    for first in parts:
        body = [f"    {KINDS[kind](k)}" for k in range(first, min(first + PART, count))]
        source += ["", f"def part{first}(x, y, r):", *body, "    return x, y", ""]
    source += ["", "def f(x, y):", "    x, r = x.copy(), []"]
    source += [f"    x, y = part{first}(x, y, r)" for first in parts] + ["    return x, r"]
    path = Path(folder) / f"{kind}_{count}.py"
    path.write_text("\n".join(source) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def times_of(fn, backend="interp"):
    """Milliseconds of each level, and of the whole first call."""
    rng, said = np.random.default_rng(0), list[str]()
    args = rng.random(64), rng.random(64)
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    cinductor.set_logs("perf")
    logger = logging.getLogger("cinductor.perf")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        how = {"cache": False, "node_limit": 1 << 20}  # a region is several nodes
        compiled = cinductor.compile(fn, backend=backend, options=how, fullgraph=True)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            compiled(*args)
    finally:
        logger.removeHandler(handler)
    text = said[-1]
    found = {name: float(ms) for name, ms in re.findall(r"(\w+) ([\d.]+) ms", text)}
    found["call"] = float(re.search(r"([\d.]+) ms for the call", text)[1])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=20000, help="lines of the longest program")
    parser.add_argument("--steps", type=int, default=4, help="programs of a ladder")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--backend", default="interp", choices=("interp", "c"))
    options = parser.parse_args()
    cinductor.config.capture_limit = 3600
    print("| program | lines | " + " | ".join(LEVELS) + " | total | scheduler's share | ms for 1,000 lines |")
    print("|---|---|" + "---|" * (len(LEVELS) + 3))
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds.split(","):
            for step in reversed(range(options.steps)):
                count = options.most >> step
                fn = program(kind, count, folder)
                found = min((times_of(fn, options.backend) for _ in range(REPEATS)), key=lambda times: times["total"])
                total = found.get("total", sum(found[level] for level in LEVELS))
                shown = " | ".join(f"{found[level]:.0f}" for level in LEVELS)
                print(f"| {kind} | {count} | {shown} | {total:.0f} | {found['schedule'] / total:.0%} | {total / count * 1000:.1f} |", flush=True)


if __name__ == "__main__":
    main()
