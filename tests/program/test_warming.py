"""Programs before the first call: nothing runs, and later calls find the program."""

import json
import subprocess
import sys

import numpy as np
import pytest

import cinductor
from cinductor import ShapeDtype, lower, testing, warm
from cinductor.calls import saved

X = np.linspace(0.1, 2, 60).reshape(20, 3)
seen = []


def pure(x, k, b=2.0):
    y = np.exp(x) * k + b
    return y, y.sum(), y.shape[0], {"m": y.max(axis=0)}


def writes(x):
    x[0] = 7.0
    return x * 2


def loops(x):
    total = 0.0
    for i in range(len(x)):
        if x[i, 0] > 0.5:
            total += x[i, 1]
    return total


def branch(x):
    return x * 2 if x.sum() > 3 else -x


def containers(pair, more):
    return pair[0] + more["b"], pair[1]


CASES = {
    "numbers": (pure, (ShapeDtype((20, 3)), 0.5), (X, 0.5)),
    "named": (pure, (ShapeDtype((20, 3), "f4"), 0.5), (X.astype("f4"), 0.5)),
    "order": (pure, (ShapeDtype((20, 3), order="F"), 0.5), (np.asfortranarray(X), 0.5)),
    "writes": (writes, (ShapeDtype((20, 3)),), (X,)),
    "arrays": (writes, (X,), (X,)),
    "loops": (loops, (ShapeDtype((20, 3)),), (X,)),
    "branches": (branch, (ShapeDtype((20, 3)),), (X,)),
    "library": (np.sort, (ShapeDtype((20, 3)),), (X,)),
    "draws": (lambda x: x + np.random.rand(3), (ShapeDtype((20, 3)),), (X,)),
    "containers": (
        containers,
        ([ShapeDtype((20, 3)), 2], {"b": ShapeDtype((3,), "i8")}),
        ([X, 2], {"b": np.arange(3)}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_later_call_finds_the_program(name):
    fn, specs, args = CASES[name]
    state = json.dumps(np.random.get_state(legacy=False), default=repr)
    compiled = warm(cinductor.compile(fn, backend="c", options={"numerics": "exact"}), *specs)
    assert json.dumps(np.random.get_state(legacy=False), default=repr) == state
    before = cinductor.stats()["captures"]
    np.random.seed(3)
    copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    got = compiled(*copies)
    np.random.seed(3)
    others = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    testing.assert_same(got, fn(*others))
    testing.assert_same(copies, others)
    assert cinductor.stats()["captures"] == before and compiled.calls == 1 and len(compiled.specializations) == 1


def test_arrays_are_not_changed():
    x = X.copy()
    warm(writes, x)
    testing.assert_same(x, X)


def test_nothing_large_is_touched():
    program = lower(lambda x: x * 2 + 1, ShapeDtype((20_000, 10_000)))
    assert "f64[20000,10000]" in program.text("graph") and "multiply" in program.text("loops")


class Counter:
    n = 0

    def __call__(self, x):
        self.n += 1
        return x + 1


def test_a_saved_call_does_not_run(monkeypatch, request):
    """Neither with the program of a saved call, which the second description finds."""
    monkeypatch.setattr(saved, "_stamp", [request.node.name])
    with cinductor.config.patch(saved_calls=True):
        x = X.copy()
        cinductor.compile(writes)(x)
        x[:] = 5.0
        warm(cinductor.compile(writes), x)
        assert (x == 5.0).all()
        assert cinductor.graph(cinductor.compile(writes), x).parameters == ["x"]


def prints(x):
    print("no")
    return x + 1


def appends(x):
    seen.append(x.shape)
    return x + 1


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (Counter(), "it sets .n of an object"),
        (prints, "calls print"),
        (appends, "append"),
        (lambda x: x[x > 0], "data decide a size"),
        (lambda x: np.roots(x[0]), "cinductor.warm"),
        (lambda x: float(x.sum()).hex(), "cinductor.warm"),
    ],
    ids=["attribute", "print", "append", "sizes", "roots", "hex"],
)
def test_what_only_a_call_can_do_is_refused(fn, why, capsys):
    compiled = cinductor.compile(fn)
    with pytest.raises(cinductor.Unsupported, match=why):
        warm(compiled, ShapeDtype((20, 3)))
    assert not seen and getattr(fn, "n", 0) == 0 and capsys.readouterr().out == ""
    testing.assert_same(compiled(X), fn(X))
    seen.clear()


def test_wrong_arguments():
    for spec, error, why in (
        (ShapeDtype("a"), TypeError, r"ShapeDtype\(shape='a', .*: 'str' object cannot be interpreted as an integer"),
        (ShapeDtype((3,), "f99"), TypeError, "dtype='f99'.*: data type 'f99' not understood"),
        (ShapeDtype((-1,)), ValueError, r"shape=\(-1,\).*: negative dimensions"),
    ):
        with pytest.raises(error, match=why):
            warm(pure, spec, 0.5)
    for function in (warm, cinductor.lower, cinductor.graph):
        with pytest.raises(TypeError, match=f"^{function.__name__}: fn is 3; wanted"):
            function(3)
    with pytest.raises(TypeError):
        warm(pure)
    with pytest.raises(ValueError):
        warm(lambda a, b: a + b, ShapeDtype((3,)), ShapeDtype((4,)))


def test_another_process_needs_no_compiler(tmp_path):
    """Warmed programs are in the disk cache."""
    code = """
import sys, os, numpy as np, cinductor
sys.path.insert(0, {tests!r})
from test_warming import pure
cinductor.cache.set_directory({folder!r})
if sys.argv[1] == "warm":
    cinductor.warm(pure, cinductor.ShapeDtype((20, 3)), 0.5)
else:
    os.environ["CC"] = "/nonexistent"
    fast = cinductor.compile(pure, backend="c")
    fast(np.ones((20, 3)), 0.5)
    print(fast.specializations[0].program.backend, cinductor.cache.info()["hits"] > 0)
""".format(tests=__file__.rpartition("/")[0], folder=str(tmp_path))
    said = [subprocess.run([sys.executable, "-c", code, word], capture_output=True, text=True, check=True).stdout for word in ("warm", "run")]
    assert said == ["", "cpu:c True\n"]
