"""Tests memory pools, in which several buffers share one allocation, on random programs: NumPy's bits, and no higher
peak.
"""

import os
import re

import numpy as np
import pytest
import test_export
import test_fuzz

import cinductor
from cinductor import compile

run_json = test_export.run_json  # the fixture
SEEDS = range(int(os.environ.get("CINDUCTOR_FUZZ", 0)) or 8)
DTYPES = ("float32", "int32", "int16", "float64")


def line_of(rng, k):
    """A line that makes v<k> from two earlier values: with another shape or dtype, in a loop, in a branch, or of a
    size that depends on data.
    """
    x, y = (f"v{n}" for n in rng.integers(max(0, k - 4), k, 2))
    return str(
        rng.choice(
            [
                f"v{k} = np.sort({x}[: len({x}) // 2 + 1], axis=0)",
                f"v{k} = np.sort({x}.astype(np.{rng.choice(DTYPES)}), axis=0)",
                f"v{k} = np.sort({x}[{x} > 0.4]).reshape(-1, 1)",
                f"v{k} = np.sort(np.concatenate([{x}.ravel(), {y}.ravel()])).reshape(-1, 1)",
                f"v{k} = np.sort({x}, axis=0)\n    for k in range(3):\n        v{k} = np.sort(np.sort(v{k} * 2, axis=1) - {x}, axis=0)",
                f"v{k} = np.sort({y} * 2, axis=0) if {x}.sum() > 9 else np.sort(np.sort({y} * 3, axis=1), axis=0)",
            ]
        )
    )


def program_of(seed, folder):
    rng, n = np.random.default_rng(seed), 4 + seed % 9
    lines = [line_of(rng, k) for k in range(2, n)]
    lines.append(f"return [{', '.join(f'v{k}.sum()' for k in range(2, n))}, v{n - 1}]")
    return test_fuzz.load("\n    ".join(["import numpy as np\ndef program(v0, v1):", *lines]), folder / f"pools_{seed}.py")


def arguments(seed):
    rng = np.random.default_rng(seed)
    return rng.random((int(rng.integers(1, 60)), 8)), rng.random((16, int(rng.integers(1, 40))))


def held(program, calls, dynamic, pools, capfd):
    """The measured peak over all calls, and the program's text."""
    options = {"track_memory": "log", "size_asserts": True, "verify": True, "pools": pools}
    compiled = compile(program, backend="interp", dynamic=dynamic, options=options, fullgraph=True)
    capfd.readouterr()
    for args in calls:
        np.testing.assert_equal(compiled(*args), program(*args))
    measured = re.findall(r"at most (\d+) bytes", capfd.readouterr().err)
    return max(map(int, measured)), cinductor.explain(compiled, *calls[0]).wrapper


@pytest.mark.parametrize("dynamic", [False, True], ids=["sizes", "symbols"])
def test_random_programs_need_no_more_memory(dynamic, capfd, tmp_path):
    pooled = 0
    for seed in SEEDS:
        calls = [arguments(seed), arguments(seed + 50)][: 1 + dynamic]
        program = program_of(seed, tmp_path)
        apart, _ = held(program, calls, dynamic, False, capfd)
        most, text = held(program, calls, dynamic, True, capfd)
        parts = text.count(" = part(pool")
        assert most <= apart, seed
        assert "about" in text or most <= int(re.search(r"at most (\d+) bytes", text)[1]), seed
        pooled += parts > 0
    assert pooled > len(SEEDS) // 4


def scanned(x):
    """Scans of several sizes and dtypes that cannot be fused with each other."""
    a = x.cumsum(axis=0)
    b = (a * 2).astype(np.float32).cumsum(axis=1)
    c = b.cumsum(axis=0)[::2].cumsum(axis=1)
    return c.astype(np.float64).cumsum(axis=0).sum(axis=1), b[0, 0]


@pytest.mark.parametrize("dynamic", [False, True], ids=["sizes", "symbols"])
def test_every_form_of_a_program_has_parts(dynamic, tmp_path, run_json):
    x = np.random.default_rng(0).random((34, 20))
    options, expected = {"numerics": "close", "fusion": False}, scanned(x)
    for wrapper in ("c", "python"):
        compiled = compile(scanned, dynamic=dynamic, options={**options, "wrapper": wrapper}, fullgraph=True)
        np.testing.assert_allclose(compiled(x)[0], expected[0], 1e-5)
        assert " = part(pool0, " in cinductor.explain(compiled, x).wrapper
    expected = compiled(x)
    text = cinductor.export(compiled, x, form="c")
    assert " = (char *)pool0 + (" in text
    test_export.same(test_export.call_c(test_export.build(text, tmp_path), [x], expected), expected)
    test_export.same(run_json.Program(cinductor.export(compiled, x, form="json"))(x), expected)


def chosen_before_a_check(y, t, A, x):
    z = y[y > t]
    z += t
    y[y > t] = z
    A += 1
    return int(x[0]), z


def chosen_before_sorts(y, t, A, x):
    m = y > t
    z = y[m]
    z += t
    y[m] = z
    B = np.sort(A, axis=0)
    B += 1
    A[:] = np.sort(B, axis=0)
    return int(x[0]), z


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("fn", [chosen_before_a_check, chosen_before_sorts])
def test_a_part_begins_where_its_offset_is_known(fn, backend):
    """An array made before data decide a size does not follow one of that size in the pool."""
    compiled = cinductor.compile(fn, backend=backend)
    for _ in range(2):
        arrays = np.linspace(-2, 2, 11, dtype="f4"), np.ones((11, 4), "f4"), np.full(11, 1.25, "f4")
        given, wanted = ([y.copy(), -1.0, A.copy(), x.copy()] for y, A, x in (arrays, arrays))
        result, expected = compiled(*given), fn(*wanted)
        assert result[0] == expected[0] and np.array_equal(result[1], expected[1])
        assert all(map(np.array_equal, given, wanted))
