"""Draws from a Generator: library calls in program order.

The generator is not part of the program. Each call finds its own by address, which the program gets as a number.
If a check fails, the generators are restored to their state before the call, because the original function then
draws.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from . import pcg, philox
from .generator_state import Words, is_python_generator
from .index import INT64
from .shape import sizes
from .surface import (
    NotCaptured,
    Traced,
    array,
    cast,
    dtype_of,
    in_place,
    library,
    normal_axis,
    refuse,
    require,
    usually_positive,
)

FLOAT64 = np.dtype(np.float64)
OLD = "legacy_"  # prefix of the draws that np.random's functions make in their own way
DRAWS: dict[str, Callable[..., Any]] = {}
LEGACY: dict[str, Callable[..., Any]] = {}  # methods of a RandomState, and np.random's functions
WRITING_DRAWS = frozenset({"shuffle"})  # they change their first argument, x


PYTHON_DRAWS: dict[str, Callable[..., Any]] = {}  # methods of a random.Random (python_random.py)


class Draw:
    """A bound method of a Generator, read but not called yet."""

    __slots__ = ("scope", "generator", "name")

    def __init__(self, scope: Any, generator: Any, name: str) -> None:
        self.scope, self.generator, self.name = scope, generator, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.scope.stage.tracer.has_fallen_back:
            return self.real()(*args, **kwargs)
        return self.scope.call(self, *args, **kwargs)

    def real(self) -> Any:
        """The bound method, for other code."""
        return getattr(self.generator, self.name)


def draw(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Register a handler for the method of this name."""
    DRAWS[handler.__name__] = handler
    return handler


def state_of(generator: Any) -> Any:
    """The complete state of a generator."""
    if type(generator) is np.random.RandomState:
        return generator.get_state(legacy=False)
    if is_python_generator(generator):
        return generator.getstate()
    return generator.bit_generator.state


def global_states() -> list[Any]:
    """The states, to be compared, of the generators from which functions draw that are given none."""
    numpys: Any = sys.modules.get("numpy.random")
    pythons: Any = sys.modules.get("random")
    known = [numpys and numpys.mtrand._rand, pythons and pythons._inst]
    return [generator and comparable(state_of(generator)) for generator in known]


def comparable(state: Any) -> Any:
    """A state as values that `==` compares."""
    if type(state) is dict:
        return [comparable(part) for part in state.values()]
    return state.tobytes() if type(state) is np.ndarray else state


def set_state(generator: Any, state: Any) -> None:
    """Restore a generator's state."""
    if type(generator) is np.random.RandomState:
        generator.set_state(state)
    elif is_python_generator(generator):
        generator.setstate(state)
    else:
        generator.bit_generator.state = state


def generator_at(address: Any) -> np.random.Generator:
    """The generator at an address, which the caller of the program keeps alive."""
    return ctypes.cast(int(address), ctypes.py_object).value  # type: ignore[no-any-return]


def library_draw(method: str, fixed: dict[str, Any], has_size: bool) -> Callable[..., Any]:
    """generator.method(*values, size, **fixed)"""

    def call(address: Any, *rest: Any) -> Any:
        *values, out = rest
        given = [v if v.ndim else v[()] for v in values]
        more = {"size": out.shape, **fixed} if has_size else fixed
        return getattr(generator_at(address), name)(*given, **more)

    name = method.removeprefix(OLD)
    return call


def may_be_refused(method: str, given: Sequence[Any], fixed: dict[str, Any]) -> bool:
    """True if NumPy may refuse a draw's parameters at run time, because they are data. Constant parameters are tested
    now with a dummy generator; NotCaptured if NumPy refuses them.
    """
    if any(type(v) is Traced or not is_a(v, int | float | np.number) for v in given):
        return True
    is_old = method.startswith(OLD)
    one = np.random.RandomState(0) if is_old else np.random.default_rng(0)
    try:
        getattr(one, method.removeprefix(OLD))(*given, **fixed)
    except (TypeError, ValueError, OverflowError) as error:
        raise NotCaptured(str(error)) from error
    return False


def drawn(
    t: Any,
    address: Any,
    method: str,
    values: list[Any],
    size: Any,
    dtype: np.dtype,
    /,
    given: Sequence[Any] = (),
    **fixed: Any,
) -> Any:
    """A draw of that shape; without a shape it is a number: a Python float, or a NumPy scalar. given: the parameters
    as the user wrote them.
    """
    if type(address) is Words:
        is_other = size is not None or dtype.char not in "ld" or bool(set(fixed) - {"dtype"})
        if is_other or not pcg.may_draw(method, given):
            address.give_up(method)
        return address.drawn(method, given)
    if type(address) is philox.PhiloxDraws:
        made = address.drawn(t, method, given, size, dtype, generator_at)
        if made is not None:
            return made
        address = address.address
    shape = () if size is None else sizes(size)
    refuse(any(type(n) is int and n < 0 for n in shape), "a negative size")
    key = f"{sorted(fixed.items())} {size is None}"
    call = library_draw(method, fixed, size is not None)
    # Calls of this name can draw without Python, so the name contains all settings besides the dtype.
    name = "_".join(["draw", method, *(k for k in fixed if k != "dtype")])
    may_fail = bool(given) and may_be_refused(method, given, fixed)
    made = library(t, may_fail)(name, key, call, [address, *values], shape, dtype)
    if size is not None:
        return made
    is_pythons = dtype == FLOAT64 or method not in ("integers",)
    return t.as_python(made) if is_pythons else t.as_scalar(made)


def number(t: Any, value: Any, dtype: np.dtype) -> Any:
    """A parameter of a distribution that is a single number."""
    refuse(not is_a(value, int | float | np.number | Traced), "parameters that are arrays")
    refuse(type(value) is Traced and value.ndim > 0, "parameters that are arrays")
    if type(value) is Traced:
        refuse(value.dtype.kind not in "biu" and dtype == INT64, "bounds that are floats")
        return cast(t, value, dtype)
    return t.lift(dtype.type(value))


@draw
def random(t: Any, address: Any, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
    """Generator.random"""
    wanted = dtype_of(dtype)
    refuse(out is not None or (size is None and wanted != FLOAT64), "out= or dtype=")
    return drawn(t, address, "random", [], size, wanted, dtype=wanted.type)


@draw
def standard_normal(
    t: Any, address: Any, size: Any = None, dtype: Any = np.float64, out: Any = None
) -> Any:
    """Generator.standard_normal"""
    wanted = dtype_of(dtype)
    refuse(out is not None or (size is None and wanted != FLOAT64), "out= or dtype=")
    return drawn(t, address, "standard_normal", [], size, wanted, dtype=wanted.type)


# --- distributions ------------------------------------------------------------------------------

# Parameters with their defaults. Distributions in COUNTED return ints; `n` and similar parameters are ints.
DISTRIBUTIONS: dict[str, dict[str, Any]] = {
    "beta": {"a": None, "b": None},
    "binomial": {"n": None, "p": None},
    "chisquare": {"df": None},
    "exponential": {"scale": 1.0},
    "f": {"dfnum": None, "dfden": None},
    "gamma": {"shape": None, "scale": 1.0},
    "geometric": {"p": None},
    "hypergeometric": {"ngood": None, "nbad": None, "nsample": None},
    "gumbel": {"loc": 0.0, "scale": 1.0},
    "laplace": {"loc": 0.0, "scale": 1.0},
    "logistic": {"loc": 0.0, "scale": 1.0},
    "lognormal": {"mean": 0.0, "sigma": 1.0},
    "logseries": {"p": None},
    "negative_binomial": {"n": None, "p": None},
    "noncentral_chisquare": {"df": None, "nonc": None},
    "noncentral_f": {"dfnum": None, "dfden": None, "nonc": None},
    "normal": {"loc": 0.0, "scale": 1.0},
    "pareto": {"a": None},
    "poisson": {"lam": 1.0},
    "power": {"a": None},
    "rayleigh": {"scale": 1.0},
    "standard_cauchy": {},
    "standard_exponential": {},
    "standard_gamma": {"shape": None},
    "standard_t": {"df": None},
    "triangular": {"left": None, "mode": None, "right": None},
    "uniform": {"low": 0.0, "high": 1.0},
    "vonmises": {"mu": None, "kappa": None},
    "wald": {"mean": None, "scale": None},
    "weibull": {"a": None},
    "zipf": {"a": None},
}
COUNTED = frozenset(
    "binomial geometric hypergeometric logseries negative_binomial poisson zipf".split()
)
INTS = frozenset(
    {("binomial", "n"), *(("hypergeometric", k) for k in ("ngood", "nbad", "nsample"))}
)


def distribution(name: str, defaults: dict[str, Any]) -> None:
    """Register a method that draws from a distribution with broadcast parameters."""
    DRAWS[name] = of_distribution(name, name, defaults)
    LEGACY[name] = of_distribution(name, f"{OLD}{name}", defaults)


def of_distribution(name: str, method: str, defaults: dict[str, Any]) -> Callable[..., Any]:
    """The handler of a method that draws from this distribution."""
    dtype = INT64 if name in COUNTED else FLOAT64

    def handler(t: Any, address: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(defaults) + 1 or set(kwargs) - {*defaults, "size"}:
            raise TypeError("arguments")
        given = {**defaults, **dict(zip([*defaults, "size"], args, strict=False)), **kwargs}
        size = given.pop("size", None)
        if None in [v for v in given.values() if type(v) is not Traced]:
            raise TypeError("a parameter is missing")
        values = [
            parameter(t, v, INT64 if (name, k) in INTS else FLOAT64) for k, v in given.items()
        ]
        if size is None and any(v.ndim for v in values):
            size = t.broadcast(values)
        return drawn(t, address, method, values, size, dtype, [*given.values()])

    return handler


def parameter(t: Any, value: Any, dtype: np.dtype) -> Any:
    """A parameter of a distribution: a number, or an array of them."""
    if is_a(value, list | tuple | np.ndarray) or type(value) is Traced and value.ndim:
        x = array(t, value)
        refuse(not np.can_cast(x.dtype, dtype, "same_kind"), "such parameters")
        return in_place(t, x, dtype)
    return number(t, value, dtype)


for _name, _defaults in DISTRIBUTIONS.items():
    distribution(_name, _defaults)


@draw
def integers(
    t: Any,
    address: Any,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Any:
    """Generator.integers"""
    low, high = (0, low) if high is None else (low, high)
    wanted = dtype_of(dtype)
    refuse(wanted.kind not in "iu" or wanted == np.uint64, f"dtype {wanted}")
    values = [parameter(t, low, INT64), parameter(t, high, INT64)]
    if size is None and any(v.ndim for v in values):
        size = t.broadcast(values)
    more = {"endpoint": True} if endpoint else {}
    bounds = [low, high]
    made = drawn(t, address, "integers", values, size, wanted, bounds, dtype=wanted.type, **more)
    if endpoint or wanted != INT64:
        return made
    if not all(type(b) is int for b in bounds):
        return made
    # The drawn value is within the bounds, which is repeated here for code that uses it as an index.
    inside = t.apply("minimum", t.apply("maximum", made, low), high - 1)
    return inside if size is not None else t.as_scalar(inside)


@draw
def permutation(t: Any, address: Any, x: Any, axis: int = 0) -> Any:
    """Generator.permutation along one axis, or of the integers below a number."""
    return permuted_rows(t, address, x, {"axis": axis})


def permuted_rows(t: Any, address: Any, x: Any, fixed: dict[str, Any]) -> Any:
    """The rows of x in another order."""
    if type(x) is Traced and x.ndim == 0 or is_a(x, int | np.integer):
        x = np.arange(x) if type(x) is not Traced else t.iota((x,), 0)
    given = array(t, x)
    normal_axis(fixed.get("axis", 0), given.ndim)

    def call(where: Any, rows: Any, _out: Any) -> Any:
        rows = rows if rows.size else rows.copy()  # NumPy only copies if it sees that memory is shared
        return generator_at(where).permutation(rows, **fixed)

    key = f"{fixed}"
    return t.extern("draw_permutation", key, call, [address, given], given.shape, given.dtype)


@draw
def shuffle(t: Any, address: Any, x: Any, axis: int = 0) -> None:
    """Generator.shuffle along one axis."""
    shuffled(t, address, x, {"axis": axis})


def shuffled(t: Any, address: Any, x: Any, fixed: dict[str, Any]) -> None:
    """Shuffle the rows of an array in place."""
    refuse(type(x) is not Traced or x.kind != "array", "such an array")
    refuse(x.is_readonly, "a read-only array")  # NumPy raises without drawing
    normal_axis(fixed.get("axis", 0), x.ndim)

    def call(where: Any, given: Any, out: Any) -> None:
        out[...] = given
        generator_at(where).shuffle(out, **fixed)

    t.assign(x, t.extern("draw_shuffle", f"{fixed}", call, [address, x], x.shape, x.dtype))


@draw
def choice(
    t: Any,
    address: Any,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    shuffle: bool = True,
) -> Any:
    """Generator.choice"""
    return chosen(t, address, a, size, p, {"replace": replace, "axis": axis, "shuffle": shuffle})


def chosen(t: Any, address: Any, a: Any, size: Any, p: Any, fixed: dict[str, Any]) -> Any:
    """Elements of an array, or integers below a number, drawn with probabilities p."""
    is_count = is_a(a, int | np.integer) or type(a) is Traced and a.ndim == 0
    given = number(t, a, INT64) if is_count else array(t, a)
    axis = 0 if is_count else normal_axis(fixed.get("axis", 0), given.ndim)
    shape = () if size is None else sizes(size)
    rest = () if is_count else given.shape
    whole = (*rest[:axis], *shape, *rest[axis + 1 :])
    operands = [address, given] + ([] if p is None else [in_place(t, p, FLOAT64)])
    fixed = {k: v for k, v in fixed.items() if k != "axis" or v}
    is_single = size is None

    def call(where: Any, values: Any, *more: Any) -> Any:
        *weights, out = more
        count = None if is_single else out.shape[axis : axis + len(shape)]
        among = values.item() if is_count else values
        by = {"p": weights[0]} if weights else {}
        return generator_at(where).choice(among, count, **by, **fixed)

    key = f"{is_count} {is_single} {len(shape)} {sorted(fixed.items())} {p is None}"
    is_any = p is None and fixed.get("replace", True) is True  # with replacement, uniformly
    if is_any and not is_count:
        require(t, usually_positive(t, given.shape[axis]), "a choice among none")
    may_fail = not is_any or (is_count and (type(a) is Traced or a <= 0))
    dtype = INT64 if is_count else given.dtype
    made = library(t, may_fail)("draw_choice", key, call, operands, whole, dtype)
    if whole or not is_single:
        return made
    return t.as_python(made) if is_count else t.as_scalar(made)


def drawn_rows(
    t: Any, address: Any, method: str, operands: list[Any], n: Any, size: Any, dtype: np.dtype
) -> Any:
    """A draw in which every item is a row of n."""
    shape = () if size is None else sizes(size)

    def call(where: Any, *rest: Any) -> Any:
        *values, out = rest
        given = [v if v.ndim else v[()] for v in values]
        return getattr(generator_at(where), method)(*given, out.shape[:-1])

    return library(t, True)(f"draw_{method}", "", call, [address, *operands], (*shape, n), dtype)


@draw
def dirichlet(t: Any, address: Any, alpha: Any, size: Any = None) -> Any:
    """dirichlet"""
    given = in_place(t, alpha, FLOAT64)
    refuse(given.ndim != 1, "such parameters")
    return drawn_rows(t, address, "dirichlet", [given], given.shape[0], size, FLOAT64)


@draw
def multinomial(t: Any, address: Any, n: Any, pvals: Any, size: Any = None) -> Any:
    """multinomial with one number of trials"""
    given = in_place(t, pvals, FLOAT64)
    refuse(given.ndim != 1, "such parameters")
    operands = [number(t, n, INT64), given]
    return drawn_rows(t, address, "multinomial", operands, given.shape[0], size, INT64)


@draw
def multivariate_normal(
    t: Any,
    address: Any,
    mean: Any,
    cov: Any,
    size: Any = None,
    check_valid: str = "warn",
    tol: float = 1e-8,
) -> Any:
    """multivariate_normal"""
    refuse(check_valid != "warn" or tol != 1e-8, "check_valid= or tol=")
    centre, spread = in_place(t, mean, FLOAT64), in_place(t, cov, FLOAT64)
    operands = [centre, spread]
    return drawn_rows(t, address, "multivariate_normal", operands, centre.shape[0], size, FLOAT64)


# --- the global generator of np.random --------------------------------------------------------------


def methods_that_draw(cls: type) -> Iterable[str]:
    """The drawing methods of a class of generators; none if its module has not been imported."""
    if cls is getattr(sys.modules.get("random"), "Random", None):
        return PYTHON_DRAWS
    module: Any = sys.modules.get("numpy.random")
    if module is None:
        return ()
    return DRAWS if cls is module.Generator else LEGACY if cls is module.RandomState else ()


def has_random_state(value: Any) -> bool:
    """True for a generator, a bit generator and a RandomState: draws that are not performed yet change what it shows."""
    module: Any = sys.modules.get("numpy.random")
    if is_python_generator(value):
        return True
    return module is not None and is_a(value, module.Generator | module.RandomState | module.BitGenerator)


def is_global_state(value: Any) -> bool:
    """True if the value is the global generator, from which the functions of np.random draw."""
    module: Any = sys.modules.get("numpy.random")
    return module is not None and value is module.mtrand._rand


def is_python_global(value: Any) -> bool:
    """True for the generator from which the functions of Python's random module draw."""
    return is_python_generator(value) and value is sys.modules["random"]._inst  # type: ignore[attr-defined]


class GlobalState:
    """NumPy's own RandomState, as a generator whose state can be read and set."""

    @property
    def bit_generator(self) -> GlobalState:
        """The object that has the state."""
        return self

    @property
    def random_state(self) -> Any:
        """The RandomState itself."""
        return np.random.mtrand._rand  # type: ignore[attr-defined]

    @property
    def state(self) -> Any:
        """All of it, the number kept for the next normal one included."""
        return np.random.get_state(legacy=False)

    @state.setter
    def state(self, value: Any) -> None:
        np.random.set_state(value)

    def __getattr__(self, name: str) -> Any:
        return getattr(np.random, name)


GLOBAL = GlobalState()


def legacy_uniform(name: str) -> None:
    """Register random, random_sample, … with a size, and rand and randn with several."""
    by_dimensions = name in ("rand", "randn")
    method = "standard_normal" if name in ("randn", "standard_normal") else "random_sample"
    method = f"{OLD}{method}"

    def handler(t: Any, address: Any, *size: Any, **named: Any) -> Any:
        if by_dimensions:
            wanted: Any = size or None
        else:
            (wanted,) = (*size, *named.values()) or (None,)
        return drawn(t, address, method, [], wanted, FLOAT64)

    LEGACY[name] = handler


for _name in ("rand", "randn", "random", "random_sample", "ranf", "sample", "standard_normal"):
    legacy_uniform(_name)


def randint(
    t: Any, address: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = int
) -> Any:
    """np.random.randint"""
    low, high = (0, low) if high is None else (low, high)
    refuse(np.dtype(dtype) != INT64, "dtype=")
    values = [parameter(t, low, INT64), parameter(t, high, INT64)]
    if size is None and any(v.ndim for v in values):
        size = t.broadcast(values)
    made = drawn(t, address, f"{OLD}randint", values, size, INT64, [low, high])
    if type(low) is int and type(high) is int and size is not None:
        return t.apply("minimum", t.apply("maximum", made, low), high - 1)
    return made


def seed(t: Any, address: Any, seed: Any) -> None:
    """np.random.seed with an int."""
    refuse(not is_a(seed, int) and type(seed) is not Traced, "such a seed")

    def call(where: Any, value: Any, out: Any) -> None:
        generator_at(where).seed(int(value))
        out[...] = 0

    may_fail = may_be_refused(f"{OLD}seed", [seed], {})
    library(t, may_fail)("draw_seed", "", call, [address, number(t, seed, INT64)], (), INT64)


LEGACY.update(
    randint=randint,
    seed=seed,
    permutation=lambda t, address, x: permuted_rows(t, address, x, {}),
    shuffle=lambda t, address, x: shuffled(t, address, x, {}),
    choice=lambda t, address, a, size=None, replace=True, p=None: chosen(
        t, address, a, size, p, {"replace": replace}
    ),
    multivariate_normal=multivariate_normal,
    dirichlet=dirichlet,
    multinomial=multinomial,
)
