"""Tests the user's API: every way to call compile, what is guarded, what breaks, and what runs in NumPy."""

import collections
import concurrent.futures
import contextlib
import copy
import dataclasses
import enum
import functools
import gc
import inspect
import io
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
import weakref

import api_module
import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same, check

X = np.arange(12.0).reshape(3, 4)
compile = functools.partial(cinductor.compile, backend="interp")
FACTOR = 2.0
ARRAY = np.arange(4.0)
SETTINGS = {"scale": 3.0, "name": "a", "weights": [np.ones(4), np.full(4, 2.0)]}
FLAG = True
LOG = []


def specializations(compiled):
    return len(compiled.specializations)


def last(compiled):
    return compiled._cinductor_job.last


def reasons(compiled):
    return [b.reason for b in last(compiled).breaks]


def is_captured(compiled):
    assert compiled.specializations, (reasons(compiled), compiled._cinductor_job.reasons_for_numpy(compiled))
    return True


# --- forms ----------------------------------------------------------------------------------------


def test_function_and_decorators():
    def f(x, y=2):
        """A docstring."""
        return x + y

    g = cinductor.compile(f)
    assert g.__name__ == "f" and g.__doc__ == f.__doc__ and g.__wrapped__ is f
    assert g.__qualname__ == f.__qualname__ and g.__module__ == f.__module__
    assert inspect.signature(g) == inspect.signature(f)
    assert_same(g(X), X + 2)
    assert_same(g(X, y=3), X + 3)

    @compile
    def h(x):
        return x * 2

    @cinductor.compile(backend="interp", fullgraph=True)
    def k(x):
        return x * 3

    assert_same((h(X), k(X)), (X * 2, X * 3))


def test_other_callables():
    class Callable:
        def __init__(self):
            self.w = 2.0

        def __call__(self, x):
            return x * self.w

        def method(self, x):
            return x + self.w

    obj = Callable()
    for fn in (
        obj,
        obj.method,
        functools.partial(obj.method, X),
        functools.partial(api_module.helper, k=3),
    ):
        compiled = compile(fn)
        args = () if isinstance(fn, functools.partial) and fn.args else (X,)
        for _ in range(2):
            assert_same(compiled(*args), fn(*args))
        is_captured(compiled)
    obj.w = 5.0
    compiled = compile(obj)
    assert_same(compiled(X), X * 5)
    obj.w = 6.0
    assert_same(compiled(X), X * 6)
    assert_same(compile(np.sin)(np.zeros(2)), np.zeros(2))
    assert_same(compile(lambda x: x + 1)(X), X + 1)


def test_static_and_class_methods():
    class A:
        k = 2.0

        @compile
        @staticmethod
        def s(x):
            return x + 1

        @compile
        @classmethod
        def c(cls, x):
            return x * cls.k

    assert_same((A.s(X), A().s(X), A.c(X)), (X + 1, X + 1, X * 2))
    A.k = 3.0
    assert_same(A.c(X), X * 3)


def test_methods_bind():
    layer = api_module.Layer(4)
    for _ in range(2):
        assert_same(layer.apply(X), X * 2.0 + 0.5)
    is_captured(api_module.Layer.apply)
    layer.bias = 1.5
    assert_same(layer.apply(X), X * 2.0 + 1.5)
    layer.w = np.full(4, 3.0)
    assert_same(layer.apply(X), X * 6.0 + 1.5)
    other = api_module.Layer(4)
    other.options = {"scale": 5.0}
    assert_same(other.apply(X), X * 5.0 + 0.5)
    assert specializations(api_module.Layer.apply) == 1
    reference = weakref.ref(other)
    del other
    gc.collect()
    assert reference() is None


def test_arguments_of_every_kind():
    def f(a, /, b, *rest, c, d=1.0, **named):
        return a + b + sum(rest) + c * d + named.get("e", 0.0)

    g = compile(f)
    for args, kwargs in (
        ((X, X), {"c": X}),
        ((X, 1.0, X, 2), {"c": 2.0, "d": 3.0}),
        ((X, 1.0, X, 2), {"c": 4.0, "d": 5.0}),
        ((X, 1.0), {"c": 2.0, "e": X}),
    ):
        for _ in range(2):
            assert_same(g(*args, **kwargs), f(*args, **kwargs))
    for args, kwargs in (((), {}), ((X,), {}), ((X, 1), {}), ((X, 1), {"c": 1, "a": 2, "b": 3})):
        with pytest.raises(TypeError) as expected:
            f(*args, **kwargs)
        with pytest.raises(TypeError) as actual:
            g(*args, **kwargs)
        assert str(actual.value).rpartition("f()")[2] == str(expected.value).rpartition("f()")[2]


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    first: np.ndarray
    second: float = 1.0


def test_nested_arguments_and_results():
    def f(p, d, pairs, data):
        (a, b), *rest = pairs
        total = p.x + d["u"]["v"] * data.second + a - b
        return {
            "t": (total, [p.y]),
            "p": Point(total, p.x),
            "d": Pair(total, 2.0),
            "same": d,
            "r": rest,
        }

    g = compile(f)
    args = Point(X, 2.0), {"u": {"v": X}}, [(X, 1.0), (X, X)], Pair(X, 3.0)
    for _ in range(3):
        result = g(*args)
        assert_same(result, f(*args))
        assert result["same"] is args[1]
    is_captured(g)
    assert specializations(g) == 1
    args[1]["u"]["v"] = X + 5
    assert_same(g(*args), f(*args))


def test_identities():
    a, b = np.ones(3), np.zeros(3)

    def f(a, b):
        c = a + b
        return a, b, c, c, a

    g = compile(f)
    for _ in range(2):
        r = g(a, b)
        assert r[0] is a and r[1] is b and r[2] is r[3] and r[4] is a
    r = g(a, a)
    assert r[0] is a and r[1] is a
    r = g(b, a)
    assert r[0] is b and r[1] is a


def test_settings_are_checked():
    with pytest.raises(TypeError):
        cinductor.compile(lambda x: x, unknown=1)
    with pytest.raises(ValueError, match="did you mean 'threads'"):
        cinductor.compile(lambda x: x, options={"thread": 1})
    with pytest.raises(ValueError, match="reduce-overhead"):
        cinductor.compile(lambda x: x, mode="reduce_overhead")
    with pytest.raises(ValueError, match="backend"):
        cinductor.compile(lambda x: x, backend="nothing")
    with pytest.raises(ValueError, match="device"):
        cinductor.compile(lambda x: x, device="tpu")
    with pytest.raises(TypeError, match="expects a function or another callable that is not a class, got the class int"):
        compile(int)
    with pytest.raises(TypeError, match="expects a function or another callable that is not a class, got int. To compile f"):
        cinductor.compile(3)
    with pytest.raises(TypeError, match=r"got None\. A decorator with settings is compile\(mode="):
        cinductor.compile(None, mode="now")
    with pytest.raises(TypeError, match="disable.*fn.*None"):
        cinductor.disable(None)


@pytest.mark.parametrize(
    "settings, error, text",
    [
        (dict(options={"numerics": "x"}), ValueError, "option 'numerics' is 'x'; allowed: 'exact', 'numpy', 'close', 'fast'"),
        (dict(options={"wrapper": "pyton"}), ValueError, "allowed: 'c', 'python'; did you mean 'python'?"),
        (dict(options={"arch": "v5"}), ValueError, "option 'arch' is 'v5'; allowed: '', 'generic', 'x86-64-v2', "),
        (dict(options={"threads": -3}), ValueError, "option 'threads' is -3; allowed: an int from 0 to 1024"),
        (dict(options={"threads": "many"}), TypeError, "option 'threads' is 'many'; allowed: an int from 0"),
        (dict(options={"threads": True}), TypeError, "option 'threads' is True; allowed: an int from 0"),
        (dict(options={"inline_limit": 0}), ValueError, "option 'inline_limit' is 0; allowed: an int of at least 1"),
        (dict(options={"on_limit": "x"}), ValueError, "option 'on_limit' is 'x'; allowed: 'dynamic', 'eager', 'error'"),
        (dict(options={"fusion": 2}), TypeError, "option 'fusion' is 2; allowed: True, False"),
        (dict(options={"dump": "graph,lops"}), ValueError, "option 'dump' is 'lops'; allowed: .*did you mean 'loops'"),
        (dict(options={"numerics": None}), TypeError, "option 'numerics' is None; allowed: 'exact', 'numpy', 'close', 'fast'"),
        (dict(options={3: 4}), ValueError, "there is no option 3; cinductor.list_options"),
        (dict(options=[1]), TypeError, r"options is \[1\]; allowed: a dict"),
        (dict(fullgraf=True), TypeError, "no keyword argument 'fullgraf'; did you mean 'fullgraph'?"),
        (dict(numerics="fast"), TypeError, "it is an option: options={'numerics': 'fast'}"),
        (dict(cache=True), TypeError, "it is an option, and True is its default"),
        (dict(fullgraph="yes"), TypeError, "fullgraph is 'yes'; allowed: True, False"),
        (dict(dynamic="auto"), TypeError, "dynamic is 'auto'; allowed: True, False, None"),
        (dict(mode=3), ValueError, "mode is 3; allowed: 'default', "),
        (dict(backend="interpreter"), ValueError, "is 'interpreter'; allowed: 'c', 'stencil', 'interp'; did you mean 'interp'?"),
        (dict(backend="cuda"), ValueError, "backend of device 'cpu' is 'cuda'.*device='cuda' has it"),
        (dict(device=0), ValueError, "device is 0; allowed: 'cpu', 'cuda'"),
    ],
)
def test_each_setting_says_what_is_allowed(settings, error, text):
    with pytest.raises(error, match=text):
        cinductor.compile(lambda x: x, **settings)
    names = settings.get("options")
    if isinstance(names, dict) and all(isinstance(n, str) for n in names):
        before = cinductor.config.as_dict()
        with pytest.raises(error, match=text):
            cinductor.config.patch(**{"fusion": False, **names}).__enter__()
        for name, value in names.items():
            with pytest.raises(error, match=text):
                setattr(cinductor.config, name, value)
        assert cinductor.config.as_dict() == before


def test_a_variable_of_the_environment_that_is_not_allowed_costs_a_warning(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nimport cinductor\nprint(cinductor.config.threads, cinductor.config.numerics)\n")
    env = {**os.environ, "CINDUCTOR_THREADS": "-2", "CINDUCTOR_NUMERICS": "precise"}
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "numpy"], done.stderr
    told = [line for line in done.stderr.splitlines() if "CinductorWarning:" in line]
    assert len(told) == 2 and all("program.py:2: " in line for line in told), done.stderr
    assert "CINDUCTOR_THREADS has no effect: option 'threads' is -2; allowed" in done.stderr


def test_modes_and_options():
    modes = cinductor.list_mode_options()
    assert list(modes) == [
        "default",
        "auto",
        "lazy",
        "now",
        "reduce-overhead",
        "max-autotune-no-cudagraphs",
        "max-autotune",
    ]
    assert modes["default"] == {} and modes["max-autotune"]["max_autotune"]
    for mode in [*modes, *modes]:
        assert_same(compile(lambda x: x + 1, mode=mode)(X), X + 1)
    for option in cinductor.list_options():
        assert option.doc and option.environment.startswith("CINDUCTOR_")
        assert getattr(cinductor.config, option.name) is not None
    backends = cinductor.list_backends()
    assert backends["interp"] is None and {"c", "cuda"} <= set(backends)
    assert backends["cuda"] is None or "no CUDA" in backends["cuda"] or "NVRTC" in backends["cuda"]


def test_what_capture_runs_is_printed(capsys):
    assert cinductor.print_rewritten(lambda x: x + 1) is None
    assert "operand" in capsys.readouterr().out


def test_config():
    before = cinductor.config.inline_limit
    with cinductor.config.patch(inline_limit=7):
        assert cinductor.config.inline_limit == 7
    assert cinductor.config.inline_limit == before
    with pytest.raises(AttributeError, match="did you mean"):
        cinductor.config.inline_limits = 3
    with pytest.raises(AttributeError):
        _ = cinductor.config.nothing
    with pytest.raises(TypeError, match="option 'threads' is 'two'; allowed: an int"):
        cinductor.config.threads = "two"


def test_config_reads_the_environment():
    code = "import cinductor; print(cinductor.config.threads, cinductor.config.fusion)"
    env = {**os.environ, "CINDUCTOR_THREADS": "3", "CINDUCTOR_FUSION": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["3", "False"], done.stderr


def test_pickle_and_copy():
    again = pickle.loads(pickle.dumps(api_module.decorated))
    assert again is api_module.decorated
    made = compile(api_module.helper)
    again = pickle.loads(pickle.dumps(made))
    assert again is not made and again.__wrapped__ is api_module.helper
    assert_same(again(X), made(X))
    assert copy.deepcopy(api_module.decorated) is api_module.decorated
    assert_same(copy.deepcopy(made)(X), made(X))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(compile(lambda x: x))


def test_disable():
    calls = []

    @cinductor.disable
    def opaque(x):
        calls.append(type(x))
        return x + 1

    g = compile(lambda x: opaque(x * 2) * 3)
    for _ in range(2):
        assert_same(g(X), (X * 2 + 1) * 3)
    assert calls == [np.ndarray] * 2
    assert any("disabled" in r for r in reasons(g))
    plain = compile(lambda x: cinductor.is_compiling(), disable=True)
    assert plain(X) is False
    assert compile(lambda x: cinductor.is_compiling())(X) is True
    assert cinductor.is_compiling() is False


def test_stances():
    g = compile(lambda x: x + 1)
    with cinductor.set_stance("force_eager"):
        assert_same(g(X), X + 1)
        assert not specializations(g)
    g(X)
    with cinductor.set_stance("eager_on_recompile"):
        assert_same(g(X[:2]), X[:2] + 1)
        assert specializations(g) == 1
    with cinductor.set_stance("fail_on_recompile"):
        assert_same(g(X), X + 1)
        with pytest.raises(RuntimeError):
            g(X[:1])

    @cinductor.set_stance("force_eager")
    def eager():
        return compile(lambda x: cinductor.is_compiling())(X)

    assert eager() is False
    with pytest.raises(ValueError, match="force_eager"):
        cinductor.set_stance("force_eagr")
    assert_same(g(X[:1]), X[:1] + 1)


def test_a_stance_holds_for_the_process_or_inside_a_statement():
    @compile
    def is_eager(x):
        return not cinductor.is_compiling()

    def elsewhere():
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(is_eager, X).result()

    fresh = is_eager.clear
    kept = cinductor.set_stance("force_eager")  # kept as a prompt keeps the last value
    assert is_eager(X) is True and elsewhere() is True
    cinductor.set_stance("default")
    assert elsewhere() is False and is_eager(X) is False
    with kept:
        assert is_eager(X) is True and elsewhere() is False
        with kept, cinductor.set_stance("default"):
            assert is_eager(X) is False
        cinductor.set_stance("fail_on_recompile")
        assert is_eager(X) is True
        fresh()
        with pytest.raises(RuntimeError):
            elsewhere()
    with pytest.raises(RuntimeError):
        is_eager(X)
    cinductor.set_stance("default")
    assert is_eager(X) is False


def test_stances_of_many_threads():
    """Each thread sees its own stance, whatever others set. After them the stance of the process is unchanged."""
    known, fresh = compile(lambda x: cinductor.is_compiling()), compile(lambda x: cinductor.is_compiling())
    assert known(X) is True
    wants = {None: (True, None), "force_eager": (False, False), "eager_on_recompile": (True, False), "fail_on_recompile": (True, RuntimeError)}
    start, wrong = threading.Barrier(100), []

    def see(x):
        try:
            return fresh(x)
        except RuntimeError:
            return RuntimeError

    def work(number):
        start.wait()
        for k in range(40):
            stance = (*wants,)[(number + k) % 4]
            with cinductor.set_stance(stance) if stance else contextlib.nullcontext():
                time.sleep(0)
                got = known(X), see(X) if stance else None
            if got != wants[stance]:
                wrong.append((stance, got))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong and fresh(X) is True


def test_reset():
    g = compile(lambda x: x + 1)
    g(X)
    assert specializations(g) == 1
    cinductor.reset()
    assert specializations(g) == 0
    assert_same(g(X), X + 1)


def test_explain():
    def f(x):
        y = np.tanh(x) * 2
        print("here")
        return y.sum()

    with contextlib.redirect_stdout(io.StringIO()) as out:
        e = cinductor.explain(compile(f), X)
    assert out.getvalue() == "here\n"
    assert_same(e.result, f(X))
    assert len(e.breaks) == 1 and e.breaks[0].file == __file__ and "print" in e.breaks[0].reason
    assert e.breaks[0].line == f.__code__.co_firstlineno + 2
    text = cinductor.explain(lambda x: x * 2 + FACTOR, X).full()
    for word in ("guards:", "graph:", "loops:", "kernels:", "wrapper:", "multiply", "FACTOR"):
        assert word in text
    assert "array of dtype object" in str(cinductor.explain(lambda x: x, np.array([None])))


def test_cache():
    info = cinductor.cache.info()
    assert isinstance(info, dict) and info
    compiled = cinductor.compile(lambda x: x * 1.2345 + 6.789)
    assert_same(compiled(X), X * 1.2345 + 6.789)
    assert isinstance(cinductor.cache.clear(), int)
    assert_same(compiled(X), X * 1.2345 + 6.789)


def test_import_is_light():
    code = (
        "import sys, numpy; before = set(sys.modules); import cinductor; "
        "print(sorted(m for m in set(sys.modules) - before if m in "
        "('ast', 'inspect', 'dataclasses', 'difflib', 'cinductor.capture')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


# --- what is guarded ------------------------------------------------------------------------------


def test_globals_are_read_again(monkeypatch):
    g = compile(lambda x: x * FACTOR + ARRAY + SETTINGS["scale"])

    def expected():
        return X * FACTOR + ARRAY + SETTINGS["scale"]

    assert_same(g(X), expected())
    is_captured(g)
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    assert_same(g(X), expected())
    monkeypatch.setitem(globals(), "ARRAY", np.full(4, 9.0))
    assert_same(g(X), expected())
    ARRAY[1] = -1
    assert_same(g(X), expected())
    monkeypatch.setitem(SETTINGS, "scale", 11.0)
    assert_same(g(X), expected())
    assert specializations(g) == 1  # floats and arrays are run-time values
    monkeypatch.setitem(globals(), "FACTOR", 7)
    assert_same(g(X), expected())
    monkeypatch.setitem(globals(), "ARRAY", np.arange(4))
    assert_same(g(X), expected())
    assert specializations(g) == 3


def test_helpers_are_guarded(monkeypatch):
    g = compile(lambda x: api_module.helper(x))
    assert_same(g(X), X * 2 + api_module.WEIGHT)
    monkeypatch.setattr(api_module, "WEIGHT", np.ones(4))
    assert_same(g(X), X * 2 + 1)
    assert specializations(g) == 1
    monkeypatch.setattr(api_module, "helper", lambda x: x - 1)
    assert_same(g(X), X - 1)
    monkeypatch.setattr(np, "nothing_of_the_kind", 1, raising=False)
    assert_same(g(X), X - 1)


def test_builtins_can_be_hidden():
    g = compile(lambda x: x * len(x))
    assert_same(g(X), X * 3)
    globals()["len"] = lambda x: 10
    try:
        assert_same(g(X), X * 10)
    finally:
        del globals()["len"]
    assert_same(g(X), X * 3)


def test_cells_and_closures():
    k = 2.0
    w = np.ones(4)

    def f(x):
        return x * k + w

    g = compile(f)
    assert_same(g(X), X * 2 + 1)
    k = 3.0
    assert_same(g(X), X * 3 + 1)
    w = np.zeros(4)
    assert_same(g(X), X * 3)
    assert specializations(g) == 1


def test_scalars():
    g = compile(lambda x, s: x * s)
    for s in (1.0, 2.5, -0.0, float("nan")):
        assert_same(g(X, s), X * s)
    assert specializations(g) == 1
    for s in (1j, 2, 3, True, np.float32(2), np.float64(3)):
        assert_same(g(X, s), X * s)


def test_a_demanded_scalar_is_specialised():
    g = compile(lambda x, s: x + 1 if s > 1.0 else x - 1)
    for s in (2.0, 0.5, 2.0, 3.0):
        assert_same(g(X, s), X + 1 if s > 1 else X - 1)


def test_values_that_specialise():
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    def f(x, axis, name, color, keep=None):
        y = x.sum(axis=axis, keepdims=bool(keep))
        return y * 2 if name == "a" and color is Color.RED else y

    g = compile(f)
    for args in (
        (0, "a", Color.RED),
        (1, "a", Color.RED),
        (0, "b", Color.RED),
        (0, "a", Color.BLUE),
    ):
        for _ in range(2):
            assert_same(g(X, *args), f(X, *args))
    assert_same(g(X, (0, 1), "a", Color.RED, True), f(X, (0, 1), "a", Color.RED, True))
    assert specializations(g) == 5


def test_layouts():
    g = compile(lambda x: x * 2 + x.sum(axis=0))
    big = np.arange(80.0).reshape(8, 10)
    for x in (
        big,
        big.T,
        big[::2],
        big[:, ::-1],
        np.asfortranarray(big),
        big[:0],
        big.astype("f4"),
    ):
        for _ in range(2):
            expected = x * 2 + x.sum(axis=0)
            actual = g(x)
            assert_same(actual, expected)
            assert actual.strides == expected.strides


def test_recompile_limit():
    g = compile(lambda x, n: x + n, dynamic=False, options={"recompile_limit": 3})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(8):
            assert_same(g(X, n), X + n)
    assert specializations(g) == 3
    assert len(caught) == 1
    assert "limit" in str(caught[0].message) and "n" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_attributes_of_objects():
    class Model:
        scale = 2.0

        def __init__(self):
            self.layers = [np.ones(4), np.full(4, 3.0)]
            self.rate = 0.1

        @property
        def double(self):
            return self.rate * 2

        def forward(self, x):
            for w in self.layers:
                x = x * w + self.double
            return x * self.scale

    model = Model()
    g = compile(lambda m, x: m.forward(x))

    def same():
        assert_same(g(model, X), model.forward(X))

    same()
    is_captured(g)
    model.rate = 0.7
    same()
    model.layers[1] = np.zeros(4)
    same()
    assert specializations(g) == 1
    model.layers.append(np.ones(4))
    same()
    Model.scale = 4.0
    same()
    Model.forward = lambda self, x: x
    same()
    model.forward = lambda x: x + 1
    same()


def test_defaults_are_seen():
    w = np.ones(4)

    def helper(x, w=w, k=[2.0]):  # noqa: B006
        return x * w * k[0]

    g = compile(lambda x: helper(x))
    assert_same(g(X), X * 2)
    w[:] = 3
    assert_same(g(X), X * 6)
    helper.__defaults__[1][0] = 5.0
    assert_same(g(X), X * 15)


# --- effects and breaks ---------------------------------------------------------------------------


class Counter:
    def __init__(self):
        self.n = 0
        self.last = None
        self.seen = []

    def step(self, x):
        self.n += 1
        self.last = x * self.n
        self.seen.append(self.n)
        return self.last + 1


def test_effects_happen_once_per_call():
    mine, theirs = Counter(), Counter()
    step = compile(Counter.step)
    for _ in range(4):
        assert_same(step(mine, X), theirs.step(X))
        assert_same((mine.n, mine.last, mine.seen), (theirs.n, theirs.last, theirs.seen))
        assert type(mine.last) is np.ndarray
    assert not specializations(step)


def test_prints_keep_their_order():
    def f(x):
        print("before", x.shape)
        y = x + 1
        print(y.sum())
        LOG.append(float(y[0, 0]))
        return y * 2

    g = compile(f)
    for _ in range(3):
        out = []
        for fn in (f, g):
            LOG.clear()
            with contextlib.redirect_stdout(io.StringIO()) as text:
                result = fn(X)
            out.append((text.getvalue(), list(LOG), result))
        assert_same(out[1], out[0])


def test_globals_are_set():
    def f(x):
        global FLAG
        FLAG = not FLAG
        return x + FLAG

    g = compile(f)
    states = [FLAG]
    for _ in range(3):
        g(X)
        states.append(FLAG)
    assert states in ([True, False, True, False], [False, True, False, True])


@pytest.mark.parametrize(
    "fn, word",
    [
        (lambda x: x + time.time() * 0, "time"),
        (lambda x: x + np.random.default_rng([1]).random(), "default_rng"),
        (lambda x: x * float(str(x.sum())), "str"),
        (lambda x: x + 1 if x.sum() > 0 else [x], ""),
        (lambda x: np.trim_zeros(x.ravel()) * 2, "trim_zeros"),
        (lambda x: [LOG.append(1), x + 1][1], "list"),
        (lambda x: (print(end=""), x + 1)[1], "print"),
        (lambda x: x + len(open(os.devnull).read()), "open"),
    ],
)
def test_breaks_name_line_and_reason(fn, word):
    g = compile(fn)
    for _ in range(3):
        assert_same(g(X), fn(X))
    assert not specializations(g)
    assert last(g).breaks and last(g).breaks[0].file == __file__
    assert last(g).breaks[0].line == fn.__code__.co_firstlineno
    assert word in " ".join(reasons(g))
    with pytest.raises(cinductor.Unsupported, match=f"{os.path.basename(__file__)}:"):
        compile(fn, fullgraph=True)(X)


def test_random_draws_consume_the_users_generator():
    def f(x, rng):
        return x + rng.random(4) * 2 + rng.random()

    g = compile(f)
    mine, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        assert_same(g(X, mine), f(X, theirs))


def test_large_functions_with_breaks_run_in_segments():
    big = np.arange(400000.0)

    def f(x):
        y = x * 2 + 1
        if len(str(y[0])) > 100:
            return y
        z = y - 3
        return z * z

    g = compile(f)
    for _ in range(3):
        assert_same(g(big), f(big))
    assert last(g).flushes >= 2 and not g._cinductor_job.reasons_for_numpy(g)


def test_writes_to_arguments():
    def f(x, y):
        x += y
        x[1:] *= 2
        y[0] = x[1]
        v = x[:, 1:]
        v -= 1
        np.add(x, 1, out=x)
        return x.sum(axis=0)

    g = check(f, X.copy(), X + 1, backend="interp", calls=3)
    is_captured(g)
    base = np.arange(24.0).reshape(6, 4)
    for a, b in ((base[:3], base[2:5]), (base[:3], base[:3])):
        expected = base.copy()
        r = f(
            expected[: len(a)],
            expected[2:5] if a is not b and not np.shares_memory(a[0], b[0]) else expected[:3],
        )
        actual = base.copy()
        s = g(
            actual[:3],
            actual[2:5] if a is not b and not np.shares_memory(a[0], b[0]) else actual[:3],
        )
        assert_same((actual, s), (expected, r))


def test_overlap_on_the_first_call():
    def f(a, b):
        a += 1
        b *= 2
        a -= b
        return a + b

    for _ in range(2):
        g = compile(f)
        mine, theirs = np.arange(10.0), np.arange(10.0)
        assert_same(g(mine[:6], mine[3:9]), f(theirs[:6], theirs[3:9]))
        assert_same(mine, theirs)
        one, other = np.ones(6), np.ones(6)
        assert_same(g(one, other), f(np.ones(6), np.ones(6)))


def test_one_array_given_twice():
    g = compile(lambda a, b: a * 2 + b)
    a, b = np.ones(3), np.zeros(3)
    assert_same(g(a, a), a * 3)
    assert_same(g(a, b), a * 2)
    assert_same(g(b, a), a)
    h = compile(lambda a, b: a * 2 + b)
    assert_same(h(a, b), a * 2)
    assert_same(h(a, a), a * 3)


def test_read_only_arguments():
    x = X.copy()
    x.flags.writeable = False
    check(lambda x: x + 1, x)

    def f(x):
        x += 1
        return x

    g = compile(f)
    assert_same(g(X.copy()), X + 1)
    for fn in (f, g):
        with pytest.raises(ValueError, match="read-only"):
            fn(x)
    check(lambda x, o: np.add(x, 1, out=o), X, x)


def test_exceptions_leave_the_effects_so_far():
    def f(x, log):
        x += 1
        log.append(1)
        x *= 2
        raise KeyError("stop")

    g = compile(f)
    for _ in range(2):
        mine, theirs, a, b = X.copy(), X.copy(), [], []
        for fn, x, log in ((f, theirs, b), (g, mine, a)):
            with pytest.raises(KeyError, match="stop"):
                fn(x, log)
        assert_same((mine, a), (theirs, b))


def test_caught_exceptions():
    def f(x):
        try:
            return x + np.ones(7)
        except ValueError as error:
            return x * len(error.args)

    check(f, X, backend="interp")


def test_functions_that_outlive_the_call():
    def f(x):
        y = x * 2

        def inner(z):
            return z + y.sum() + FACTOR

        return inner

    g = compile(f)
    for _ in range(2):
        inner = g(X)
        assert_same(inner(X), X + (X * 2).sum() + FACTOR)
        assert_same(inner(1.0), 1.0 + (X * 2).sum() + FACTOR)


def test_callbacks_into_the_function():
    def f(x):
        y = x * 2
        return np.apply_along_axis(lambda row: row + y[0] + ARRAY, 1, x)

    check(f, X, backend="interp")


def test_generators_and_iterators_are_not_consumed():
    def gen(n):
        for i in range(n):
            yield np.full(3, float(i))

    g = compile(lambda it: sum(it))
    source = gen(4)
    assert_same(g(source), np.full(3, 6.0))

    def f(x):
        total = x
        for item in gen(3):
            total = total + item
        return total

    check(f, np.ones(3), backend="interp")
    assert list(compile(gen)(2))[1].tolist() == [1.0] * 3


def test_errstate():
    def f(x):
        with np.errstate(divide="ignore", invalid="ignore"):
            return x / (x - 1)

    def of_library_calls(x):
        with np.errstate(all="ignore"):
            y = np.exp(x[::-1] * 1000), np.linalg.norm(x * 1e300), np.convolve(x[0] * 1e200, x[1] * 1e200), (x + 1j) / 0
        return y

    g = check(f, X, backend="interp")
    is_captured(g)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        check(of_library_calls, X, X + 1, backend="interp", options={"numerics": "exact"})
    assert not given
    with np.errstate(divide="raise"):
        for fn in (f, lambda x: 1 / (x - 1)):
            compiled = compile(fn)
            if fn is f:
                assert_same(compiled(X), f(X))
            else:
                with pytest.raises(FloatingPointError):
                    compiled(X)


def test_floating_point_warnings():
    def f(x):
        return 1 / x + np.log(x)

    seen = []
    for fn in (f, compile(f)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fn(np.array([0.0, 1.0]))
        seen.append({(str(w.message), w.filename, w.lineno) for w in caught})
    assert seen[0] == seen[1] and len(seen[0]) == 3


def test_warnings_point_at_the_user():
    def f(x):
        warnings.warn("look", UserWarning, stacklevel=1)
        return x + 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compile(f)(X)
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, f.__code__.co_firstlineno + 1)]


# --- what runs in NumPy ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, None, "a"], dtype=object),
        np.array(["a", "b"]),
        np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.array([1.0, 2.0]).astype(">f8"),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.arange(4.0).view(type("Sub", (np.ndarray,), {})),
        np.arange(3, dtype="g"),
        ["a"] * 300,
        {str(i): i for i in range(300)},
        iter([1, 2]),
        (i for i in range(2)),
        open(os.devnull),  # noqa: SIM115
    ],
    ids=lambda v: type(v).__name__,
)
def test_unusual_arguments_run_in_numpy(value):
    def f(v):
        return v

    g = compile(f)
    for _ in range(2):
        assert g(value) is value
    assert not specializations(g) and g._cinductor_job.reasons_for_numpy(g)
    with pytest.raises(cinductor.Unsupported):
        compile(f, fullgraph=True)(value)


def test_unusual_arrays_met_on_the_way():
    names = np.array(["a", "b"], dtype=object)
    check(lambda x: (x + 1, names[0], names.tolist(), list(names)), X, backend="interp")
    check(lambda x: (x * 2, np.array(["q"]), np.ma.array([1.0]).sum()), X, backend="interp")


def test_no_compiler(tmp_path):
    code = (
        "import warnings, numpy as np\n"
        "warnings.simplefilter('always')\n"
        "import cinductor\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    f = cinductor.compile(lambda x: x * 2 + 1)\n"
        "    for _ in range(2):\n"
        "        assert f(np.ones(3)).tolist() == [3.0] * 3\n"
        "    assert f(np.ones(4)).tolist() == [3.0] * 4\n"
        "print(len(caught), caught[0].message if caught else '')\n"
    )
    path = tmp_path / "program.py"
    path.write_text(code)
    env = {**os.environ, "PATH": "/nowhere", "CC": "", "CINDUCTOR_CACHE_DIR": str(tmp_path / "c")}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True)
    assert done.stdout.startswith("1 "), done.stdout + done.stderr
    assert "gcc" in done.stdout


def test_names_cannot_inject():
    scope = {"np": np}
    exec('def f(x):\n    """*/ int main() { */"""\n    return x + 1', scope)
    fn = scope["f"]
    fn.__name__ = fn.__qualname__ = 'x*/"\n#include "/etc/passwd"'
    assert_same(cinductor.compile(fn)(X), X + 1)


def test_dropping_a_function_frees_it():
    def make():
        def f(x):
            return x + 1

        g = compile(f)
        g(X)
        return weakref.ref(g), weakref.ref(f)

    references = make()
    gc.collect()
    assert [r() for r in references] == [None, None]


def test_threads():
    g = compile(lambda x, k: (x * k + 1).sum(axis=0))
    errors = []

    def work(i):
        try:
            for j in range(30):
                assert_same(g(X + i, float(j)), ((X + i) * j + 1).sum(axis=0))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


WEIGHTS = np.ones(2_000_000)


def test_a_global_that_another_thread_binds_again():
    """The program holds a reference to the array while it runs without the GIL."""

    def fn(x):
        for _ in range(40):
            x = np.sqrt(x * WEIGHTS)
        return x

    global WEIGHTS
    compiled, x = cinductor.compile(fn), np.ones(WEIGHTS.size)
    compiled(x)
    for _ in range(3):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            result = pool.submit(compiled, x)
            time.sleep(0.01)
            WEIGHTS = None  # the array's memory is reused by these arrays
            others = [np.full(x.size, np.nan) for _ in range(4)]
        WEIGHTS = np.ones(others[0].size)
        np.testing.assert_array_equal(result.result(), x)


def test_nested_compiled_functions():
    inner = compile(lambda x: x * 2)
    g = compile(lambda x: inner(x) + 1)
    for _ in range(2):
        assert_same(g(X), X * 2 + 1)
    is_captured(g)
    assert not specializations(inner)


def test_repr_names_the_function():
    def half(x):
        return x / 2

    assert repr(cinductor.compile(half)) == f"<compiled {half!r}>"


def test_a_compiled_function_has_methods_for_users():
    """dir() lists these and what the original function has, and nothing of cinductor's own."""

    def scaled(x):
        return x * 2

    scaled.note = "the user's"
    f = cinductor.compile(scaled)
    assert set(dir(f)) - set(dir(scaled)) == {"explain", "lower", "stats", "warm", "__wrapped__"}
    with pytest.raises(AttributeError, match="no attribute 'jit'; write cinductor.compile") as caught:
        cinductor.jit  # noqa: B018
    assert caught.value.name == "jit" and caught.value.obj is cinductor
    x = np.arange(5.0)
    assert f.warm(cinductor.ShapeDtype((5,))) is f
    assert f.lower(x).text("graph") == cinductor.lower(f, x).text("graph")
    assert "1 kernel" in str(f.explain(x)) and f.explain(x).result.tolist() == [0, 2, 4, 6, 8]
    f(x)
    assert f.stats() == cinductor.stats()["functions"][f.__qualname__]
    assert f.stats()["calls"] == 1
