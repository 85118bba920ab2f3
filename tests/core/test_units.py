"""Tests translation units: the number of files of a program depends on the length of its text, and equal kernels are
emitted once.
"""

import os
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
