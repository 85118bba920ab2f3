"""Runs every program of tests/programs, unmodified, at three sizes, twice at each, and compares it with NumPy.

Results, exceptions, arguments after the call, generator states and shared memory are compared, with kinds, dtypes,
shapes and strides. Values must be equal to the last bit. The exception are programs that use an elementary
function which cinductor computes itself on this machine; their tolerance is in the table. All programs except
those in BROKEN are compiled with fullgraph=True; these have breaks, and each piece is compiled.
"""

import copy
import warnings

import numpy as np
import programs
import pytest
import ways

import cinductor

PROGRAMS = programs.load()
BROKEN: dict[str, str] = {}  # at most three, each with the statement that breaks
OF_MATH = frozenset(["goertzel"])  # functions of `math` in a compiled loop are cinductor's own
WHOLE = set(PROGRAMS) - set(BROKEN)


pytestmark = pytest.mark.usefixtures("pieces_are_compiled")


def outcome(fn, arguments):
    """The result or exception of a call."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return fn(*arguments), None
        except Exception as error:
            return None, (type(error), str(error))


def assert_same(got, want, tolerance, where):
    """Same kind, structure, dtype and shape; values differ at most by the tolerance."""
    assert type(got) is type(want), f"{where}: {type(got)} instead of {type(want)}"
    if isinstance(want, tuple | list):
        assert len(got) == len(want), f"{where}: {len(got)} items instead of {len(want)}"
        for i, (a, b) in enumerate(zip(got, want)):
            assert_same(a, b, tolerance, f"{where}[{i}]")
    elif isinstance(want, np.random.Generator):
        assert got.bit_generator.state == want.bit_generator.state, f"{where}: other draws"
    elif isinstance(want, np.ndarray | np.generic | float | complex):
        a, b = np.asarray(got), np.asarray(want)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{where}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
        if b.size:  # the stride of an axis with one element has no meaning
            steps = [[s for s, n in zip(v.strides, v.shape) if n > 1] for v in (a, b)]
            assert steps[0] == steps[1], f"{where}: strides {a.strides} instead of {b.strides}"
        if tolerance == 0 or b.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b, err_msg=where)
            zero = b == 0
            assert b.dtype.kind != "f" or np.array_equal(np.signbit(a[zero]), np.signbit(b[zero])), f"{where}: -0.0"
        else:
            finite = np.abs(b[np.isfinite(b)])
            scale = finite.max() if finite.size else 0
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale, err_msg=where)
    else:
        assert got == want or callable(want), f"{where}: {got!r} instead of {want!r}"


def arrays_of(value):
    """The arrays in nested tuples and lists."""
    if isinstance(value, tuple | list):
        return [array for item in value for array in arrays_of(item)]
    return [value] if isinstance(value, np.ndarray) else []


def sharing(result, arguments):
    """For all pairs of results and arguments: identity, and shared memory."""
    results, given = arrays_of(result), arrays_of(arguments)
    pairs = [(a, b) for k, a in enumerate(results) for b in [*given, *results[:k]]]
    return [(a is b, np.shares_memory(a, b)) for a, b in pairs]


def turned(value):
    """Arrays as reversed views of Fortran-ordered memory, also inside tuples and lists."""
    if isinstance(value, tuple | list):
        return type(value)(map(turned, value))
    if not isinstance(value, np.ndarray):
        return value
    view = np.empty(value.shape, value.dtype, order="F")[(slice(None, None, -1),) * value.ndim]
    view[...] = value
    return view


def has_own_bits(program):
    """True if the compiled program uses elementary functions that differ from NumPy's on this machine."""
    if program.function.__name__ in OF_MATH:
        return True
    compiled = cinductor.compile(program.function, backend="interp")
    arguments = program.make(program.sizes[0], np.random.default_rng(0))
    return bool(cinductor.explain(compiled, *arguments).approximate)


def assert_numpys(program, got, want, where, tolerance=0):
    """NumPy's bits, or the tolerance of the program's row if it uses cinductor's own functions."""
    try:
        assert_same(got, want, tolerance, where)
    except AssertionError:
        if not has_own_bits(program):
            raise
        assert_same(got, want, program.tolerance, where)


def check(program, compiled, sizes, layout=lambda arguments: arguments, tolerance=0):
    """Call twice at each size."""
    for n in sizes:
        for call in 1, 2:
            made = program.make(n, np.random.default_rng(100 * n + call))
            theirs, ours = layout(made), layout(copy.deepcopy(made))
            want, error = outcome(program.function, theirs)
            got, raised = outcome(compiled, ours)
            where = f"size {n}, call {call}"
            assert raised == error, f"{where}: {raised} instead of {error}"
            assert_numpys(program, got, want, where, tolerance)
            assert_numpys(program, ours, theirs, f"{where}, arguments", tolerance)
            strides = [[a.strides for a in arrays_of(result)] for result in (got, want)]
            assert strides[0] == strides[1], where
            assert sharing(got, ours) == sharing(want, theirs), f"{where}: memory is shared otherwise"


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name):
    """With the default backend, where sizes become symbolic. A program with breaks has many small kernels, so it runs
    at one size.
    """
    program, is_in = PROGRAMS[name], name in WHOLE
    check(program, cinductor.compile(program.function, fullgraph=is_in), program.sizes if is_in else program.sizes[:1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreted(name):
    """With the interpreter backend, captured for each size; then with symbolic sizes and another layout."""
    program = PROGRAMS[name]
    compiled = cinductor.compile(program.function, fullgraph=name in WHOLE, backend="interp", dynamic=False)
    check(program, compiled, program.sizes)
    check(program, cinductor.compile(program.function, backend="interp"), program.sizes, turned)


@pytest.mark.ways(*[name for name in ways.BY_NAME if name not in ("c", "interp", "dynamic", "card")])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_ways(name, way):
    """At one size. cuda/programs.py runs them on a GPU."""
    program = PROGRAMS[name]
    for version in way.versions(program.function):
        check(program, way.compile(version), program.sizes[:1], tolerance=program.tolerance if way.is_device else 0)


def is_whole(program):
    """True if every size is captured without a break. Exceptions of the program itself do not count."""
    for n in program.sizes:
        compiled = cinductor.compile(program.function, fullgraph=True, backend="interp")
        try:
            compiled(*program.make(n, np.random.default_rng(n)))
        except cinductor.Unsupported:
            return False
        except Exception:
            continue
    return True


def test_what_is_broken():
    """A program that is captured whole must not be in BROKEN. The other programs are tested above, where
    `fullgraph=True` would raise.
    """
    assert len(BROKEN) <= 3
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert not [name for name in BROKEN if is_whole(PROGRAMS[name])]


LOOPS = """
automata.life_by_cells clustering.nearest_by_elements clustering.single_linkage dynamic_programming.edit_distance
dynamic_programming.rna_folding dynamic_programming.knapsack dynamic_programming.matrix_chain
fractals.mandelbrot_by_pixels graphs.floyd_by_elements graphs.floyd_by_rows graphs.spanning_tree hashing.crc32
linear_algebra.cholesky linear_algebra.cholesky_by_columns linear_algebra.lu linear_algebra.lu_with_pivots
linear_algebra.gauss_jordan linear_algebra.gram_schmidt linear_algebra.householder linear_algebra.thomas
linear_algebra.jacobi_eigenvalues linear_algebra.covariance nets.convolution_layer nets.max_pool
particles.n_body_by_pairs particles.lennard_jones roots.legendre roots.newton_system signals.convolve_windows
signals.dithering signals.one_pole stencils.adi stencils.heat_3d stencils.seidel_2d stencils.vertical_sweep
""".split()


@pytest.mark.parametrize("name", LOOPS)
def test_graphs_do_not_grow(name):
    """If there are more iterations than are unrolled, the size of the graph does not depend on their number."""
    program, nodes = PROGRAMS[name], []
    for times in (2, 3):
        compiled = cinductor.compile(program.function, fullgraph=True, backend="interp", dynamic=False)
        compiled(*program.make(times * program.sizes[-1], np.random.default_rng(times)))
        nodes.append(compiled._cinductor_job.last.info.get("nodes"))  # None: the same graph was reused
    assert nodes[1] is None or abs(nodes[1] - nodes[0]) <= 0.1 * nodes[0], nodes


def test_the_corpus_is_large():
    assert len(PROGRAMS) >= 60
    for name, program in PROGRAMS.items():
        assert program.function.__doc__ and len(set(program.sizes)) == 3, name
