"""Tests results in reused memory blocks: a large result owns its memory like any other array."""

import os
import subprocess
import sys
import threading

import numpy as np
from numpy._core.multiarray import get_handler_name

from cinductor import compile

LARGE = 1 << 18  # of float64: 2 MB
twice = compile(lambda x: x * 2, dynamic=False)


def test_only_large_results():
    x = np.arange(float(LARGE))
    assert get_handler_name(twice(x)) == "cinductor"
    assert get_handler_name(twice(x[:100])) != "cinductor"
    assert get_handler_name(np.empty(LARGE)) != "cinductor"


def test_blocks_are_used_again():
    """Freed memory is reused without page faults; live memory is not shared."""
    x = np.arange(float(LARGE))
    kept = twice(x)
    where = set()
    for _ in range(8):
        got = twice(x)
        where.add(got.ctypes.data)
        got[:] = -1
    assert len(where) <= 2 and kept.ctypes.data not in where
    assert np.array_equal(kept, 2 * x)


def test_it_can_be_resized():
    x = np.arange(float(LARGE))
    got = twice(x)
    got.resize(2 * LARGE, refcheck=False)
    assert np.array_equal(got[:LARGE], 2 * x) and not got[LARGE:].any()
    got.resize(5, refcheck=False)
    assert np.array_equal(got, [0, 2, 4, 6, 8])
    assert got.flags.owndata


def test_threads():
    x = np.arange(float(LARGE))
    want, wrong = 2 * x, []

    def run():
        for _ in range(20):
            if not np.array_equal(twice(x), want):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_result_outlives_the_module():
    """Results may be freed in any order at interpreter exit."""
    code = (
        "import numpy as np, sys, builtins; from cinductor import compile\n"
        "builtins.kept = compile(lambda x: x + 1, backend='interp')(np.zeros(1 << 18))\n"
        "sys.modules['__main__'].last = builtins.kept[::2]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
