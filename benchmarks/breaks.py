"""Times functions that contain breaks, compiled and in NumPy: array work with prints, logs and other calls in
between.

Run as a program it prints a Markdown table. Compiled and NumPy calls alternate in one process, and the minimum of
many calls counts, so that other load on the machine affects both equally.
"""

import argparse
import contextlib
import io
import json
import logging
import math
import time

import numpy as np

LOG = logging.getLogger("benchmark of breaks")
FACTORS = {0: 1.0, 1: 2.0, 2: 0.5}
KEPT = []


def printed(x, w):
    y = np.tanh(x) * w
    print(f"mean {y.mean():.3e}")
    return np.exp(-y * y).sum(axis=1)


def item(x, w):
    y = np.sqrt(x * x + w)
    scale = y.max().item()
    print(scale)
    return (y / scale + np.sin(y)).sum()


def logged(x, w):
    y = np.tanh(x) * w
    LOG.info("mean %s", y.mean())
    return np.exp(y) + y


def appended(x, w):
    y = np.sqrt(np.abs(x * w)) + x
    KEPT.append(float(y.sum()))
    return y * y + np.cos(y)


def looked_up(x, w):
    factor = FACTORS[int(x[0, 0] * 3) % 3]
    return np.exp(-((x * factor) ** 2)) + np.tanh(w * factor)


def unknown(x, w):
    y = np.sqrt(x * w) + 1
    text = np.array2string(y[:1, :3], precision=3)
    return np.log(y) * len(text)


def steps(x, w):
    """A loop that prints in some iterations."""
    for k in range(20):
        x = x + 0.1 * (np.roll(x, 1, 0) - 2 * x + np.roll(x, -1, 0)) * w
        if k % 5 == 0:
            print(k, np.abs(x).max())
    return x


def converged(x, w):
    """A loop that appends its errors to a list and stops by them."""
    errors = []
    for _ in range(30):
        new = 0.5 * (x + w / (x * x + 1))
        errors.append(float(np.abs(new - x).max()))
        print(errors[-1])
        x = new
        if errors[-1] < 1e-9:
            break
    return x, errors


def aligned(a, b, gap=-2):
    """Global alignment: a table, then the path back through it, whose steps depend on the table."""
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1), dtype=np.int32)
    table[:, 0] = gap * np.arange(n + 1)
    table[0, :] = gap * np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = 1 if a[i - 1] == b[j - 1] else -1
            table[i, j] = max(table[i - 1, j - 1] + s, table[i - 1, j] + gap, table[i, j - 1] + gap)
    i, j, pairs = n, m, []
    while i > 0 and j > 0:
        print(i, j)
        s = 1 if a[i - 1] == b[j - 1] else -1
        if table[i, j] == table[i - 1, j - 1] + s:
            pairs.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif table[i, j] == table[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
    return table[n, m], pairs[::-1]


ARRAYS = (printed, item, logged, appended, looked_up, unknown, steps, converged)
SIZES = (4, 30, 300)


def inputs(name, n):
    """The arguments of one program."""
    rng = np.random.default_rng(n)
    if name == "aligned":
        return rng.integers(0, 4, n), rng.integers(0, 4, n)
    return rng.random((n, n)) + 0.1, rng.random((n, n)) + 0.1


def timed(fn, arguments):
    """Seconds of one call, and its result."""
    KEPT.clear()
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        result = fn(*arguments)
        return time.perf_counter() - start, result


def compare(fn, n, seconds=1.0):
    """Microseconds of a later call, compiled and in NumPy: alternating calls, the minimum of each."""
    import cinductor

    arguments = inputs(fn.__name__, n)
    compiled = cinductor.compile(fn)
    first = timed(compiled, arguments)[0]
    for _ in range(100):  # meanwhile each piece is timed against NumPy
        got = timed(compiled, arguments)[1]
    best, until = [math.inf, math.inf], time.perf_counter() + seconds
    turns = 0
    while turns < 20 or time.perf_counter() < until:
        for k, way in enumerate((compiled, fn)):
            best[k] = min(best[k], timed(way, arguments)[0])
        turns += 1
    check(got, timed(fn, arguments)[1])
    report = cinductor.stats()["functions"][fn.__name__]
    return {
        "first": 1e6 * first,
        "call": 1e6 * best[0],
        "numpy": 1e6 * best[1],
        "pieces": report["pieces"],
    }


def check(got, want):
    """Raise if a result differs from NumPy's."""
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for ours, theirs in zip(got, want, strict=True):
            check(ours, theirs)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-9)


def rows(seconds=1.0):
    """Each program at each size."""
    found = [(fn, n) for fn in ARRAYS for n in SIZES] + [(aligned, 12), (aligned, 60)]
    return {f"{fn.__name__} {n}": compare(fn, n, seconds) for fn, n in found}


def table(found):
    """A Markdown table of rows."""
    lines = [
        "| a call with a break | pieces | compiled, µs | NumPy, µs | NumPy / compiled |",
        "|---|---|---|---|---|",
    ]
    for name, row in found.items():
        ratio = row["numpy"] / row["call"]
        lines.append(
            f"| {name} | {row['pieces']} | {row['call']:.1f} | {row['numpy']:.1f} | {ratio:.2f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    options = parser.parse_args()
    found = rows(options.seconds)
    print(json.dumps(found) if options.json else table(found))


if __name__ == "__main__":
    main()
