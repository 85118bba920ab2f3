"""Times import and first call of a one-kernel program in a process that finds a filled disk cache, beyond NumPy's
import.

    python benchmarks/first_call.py [processes]

Each process uses the disk cache of the previous one. Times are CPU time, the minimum over all processes, so that
other load does not matter. The columns add up to the last one.
"""

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import time
clock = time.process_time
began = clock()
import numpy as np
numpy = clock()
import cinductor
imported = clock()

def f(x, y):
    return np.sqrt(x * 2 + y).sum()

x = np.arange(1000.0)
compiled = cinductor.compile(f)
made = clock()
compiled(x, x)
called = clock()
print(*(1e3 * t for t in (numpy - began, imported - numpy, made - imported, called - made, called - numpy)))
"""


def main() -> None:
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "program.py")
        with open(file, "w", encoding="utf-8") as out:
            out.write(PROGRAM)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["CINDUCTOR_CACHE_DIR"] = os.path.join(folder, "cache")
        for _ in range(processes + 1):
            done = subprocess.run([sys.executable, file], env=env, capture_output=True, text=True, check=True)
            rows.append([float(word) for word in done.stdout.split()])
    least = [min(column) for column in zip(*rows[1:], strict=True)]
    print("| NumPy's import | import | compile() | first call | beyond NumPy |\n|---|---|---|---|---|")
    print("| " + " | ".join(f"{ms:.1f} ms" for ms in least) + " |")


if __name__ == "__main__":
    main()
