"""Tests translation units: the number of files of a program depends on the length of its text, and equal kernels are
emitted once.
"""

import os
import re
import subprocess
import sys

PROGRAM = '''
import numpy as np
import cinductor

def many_kernels(x, turns):
    """Kernels that cannot be one: some are alike, others differ by a constant."""
    for turn in range(turns):
        x = np.cumsum(np.exp(-x * x) + np.tanh(x) * np.sin(x * (turn + 0.5)), axis=0) / x.shape[0]
        x = x - np.sort(x, axis=1)[:, :1]
    return x

x = np.random.default_rng(0).standard_normal((9, 7))
report = cinductor.explain(many_kernels, x, 5)
np.testing.assert_array_equal(report.result, many_kernels(x, 5))
print(report.timings["children"])
'''


def test_long_programs_are_compiled_side_by_side(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "program.py")]
    found = [subprocess.run(command, env=env, capture_output=True, text=True) for _ in range(2)]
    assert [done.returncode for done in found] == [0, 0], found
    cold, warm = (int(done.stdout) for done in found)
    assert 1 < cold <= 4 and warm == 0


LAYERS = '''
import numpy as np
import cinductor

def layers(x):
    """Equal kernels of statements on several lines, and one that differs."""
    x = np.sort(np.exp(-x * x) + 1, axis=1)
    x = np.sort(np.exp(-x * x) + 1, axis=1)
    x = np.sort(np.tanh(x) * 3, axis=1)
    return np.sort(np.exp(-x * x) + 1, axis=1)

x = np.random.default_rng(0).standard_normal((9, 7))
np.testing.assert_array_equal(cinductor.compile(layers, mode="now")(x), layers(x))
'''


def test_equal_kernels_of_several_lines_are_compiled_once(tmp_path):
    (tmp_path / "program.py").write_text(LAYERS)
    cache = tmp_path / "cache"
    subprocess.run([sys.executable, str(tmp_path / "program.py")], env={**os.environ, "CINDUCTOR_CACHE_DIR": str(cache)}, check=True)
    functions = {name for file in cache.rglob("*.so") for name in re.findall(rb"\0(k\d+)(?=\0)", file.read_bytes())}
    assert len(functions) == 3, functions  # the first one reads the argument, the others work in place
