"""Runs programs whose sizes are computed from sizes, step after step. Their texts name what is used again."""

import re

import numpy as np
import pytest
import size_generator
import test_fuzz

import cinductor

everything_is_compiled = test_fuzz.everything_is_compiled  # the fixture
LEVELS = ["graph", "optimized", "loops", "kernels", "procs", "wrapper", "source"]
STEPS = {
    "halves": "b = b[len(b) // 2:]",
    "halves of a product": "b = b[len(b) // 2:] * 1.5",
    "thirds": "b = b[len(b) // 3:] + 1",
    "every other": "b = b[::2][1:-1] * 2",
    "joined": "b = np.concatenate([b[: len(b) // 2], b[len(b) // 3:]])[::2]",
    "smallest": "b = b[min(len(b) // 2, 3 + len(b) // 5):] * 1.5",
    "written": "b = b[len(b) // 2:]\nb += 1",
    "reversed": "b = b[len(b) - len(b) // 2:][::-1] + 1",
    "by a divisor": "b = b[len(b) // k:] * 2",
}


def repeated(step, times, folder):
    lines = "\n".join([step] * times).replace("\n", "\n    ")
    source = f"import numpy as np\n\n\ndef program(b, k):\n    {lines}\n    return b * 2\n"
    return test_fuzz.load(source, folder / f"repeated_{times}.py")


def lengths(fn):
    """By level: the length of the program's text."""
    compiled = cinductor.compile(fn, backend="c", dynamic=True)
    for size in (3000, 1001):
        b = np.arange(float(size))
        np.testing.assert_array_equal(compiled(b.copy(), 2), fn(b.copy(), 2))
    report = cinductor.explain(compiled, b.copy(), 2)
    return {level: len(report.text(level)) for level in LEVELS}


@pytest.mark.parametrize("name", STEPS)
def test_the_text_does_not_double_with_a_step(name, tmp_path):
    """Of 12 steps it is at most 5 times as long as of 8: each of more expressions has more operands. Doubled, it would be 16
    times as long.
    """
    more, most = (lengths(repeated(STEPS[name], times, tmp_path)) for times in (8, 12))
    for level in LEVELS:
        assert most[level] <= 5 * more[level], (level, more[level], most[level])


def test_a_long_size_is_named_in_texts(tmp_path):
    text = cinductor.explain(repeated(STEPS["halves"], 8, tmp_path), np.arange(3000.0), 2).source
    assert not re.search(r"\be\d+ :=", text)  # C has statements for the names


@pytest.mark.usefixtures("everything_is_compiled")
@pytest.mark.parametrize("seeds", test_fuzz.batches(range(30)), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_fixed_programs(seeds, tmp_path):
    for seed in seeds:
        ways = ["dynamic", "stencil, dynamic"] if seed % 5 else ["dynamic", "c, dynamic"]
        test_fuzz.check_loops(seed, tmp_path, ways, size_generator.Generator)


@pytest.mark.usefixtures("everything_is_compiled")
@pytest.mark.parametrize("seed", test_fuzz.NEW_LOOPS)
def test_new_programs(seed, tmp_path):
    test_fuzz.check_loops(seed, tmp_path, ["dynamic", "stencil, dynamic"], size_generator.Generator)
