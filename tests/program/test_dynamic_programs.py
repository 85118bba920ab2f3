"""Runs every program of tests/programs and the eleven of benchmarks/programs.py under dynamic=True at six sizes.

The first call compiles at a size that has no special meaning; all results must equal NumPy's. A size is the
program's own parameter: a length, the side of a grid, a number of steps. If NumPy raises, the same exception must
be raised, and nothing has to be compiled. Sizes of 7 and more must be run by the compiled program. For 0, 1 and 2
NumPy may run instead, because the program may need more elements (`x[:3]`, see `Tracer.usual…`). MORE names the
programs that need more than one compile, with reasons. Strides are compared unless an array is empty.
"""

import copy
import importlib.util
import pathlib
import warnings

import numpy as np
import programs
import pytest
import test_programs
from test_programs import arrays_of, outcome, sharing

import cinductor

FIRST, SIZES = 7, (0, 1, 2, 64, 1000)

# The largest size for programs that cannot run at 1000. Some are too slow: in NumPy (element by element, cubic, or
# three axes) or in the interpreter. The values of others grow, so that the last bit of a cosine is amplified.
LARGEST = {
    300: """dynamic_programming.edit_distance dynamic_programming.edit_distance_by_masks dynamic_programming.knapsack
        dynamic_programming.longest_common_subsequence dynamic_programming.time_warping automata.life
        automata.lattice_boltzmann fractals.mandelbrot_by_pixels fractals.newton_fractal
        linear_algebra.back_substitution linear_algebra.gauss_seidel signals.dithering roots.pascal nets.max_pool
        particles.lennard_jones linear_algebra.cholesky_by_columns linear_algebra.lu_with_pivots stencils.relax_until_still fractals.mandelbrot_by_masks particles.n_body
        benchmarks.rbf particles.neighbour_lists fractals.mandelbrot_by_shrinking
        fractals.burning_ship graphs.floyd_warshall graphs.floyd_by_rows graphs.transitive_closure""",
    100: """monte_carlo.percolation fractals.julia automata.life_by_cells clustering.nearest_by_elements linear_algebra.gram_schmidt clustering.single_linkage dynamic_programming.rna_folding
        graphs.floyd_by_elements linear_algebra.cholesky linear_algebra.lu linear_algebra.gauss_jordan
        linear_algebra.modified_gram_schmidt linear_algebra.householder linear_algebra.jacobi_eigenvalues
        linear_algebra.covariance linear_algebra.bareiss monte_carlo.ising particles.n_body_by_pairs
        signals.convolve_windows stencils.seidel_2d stencils.heat_3d nets.convolution_layer nets.little_lenet
        roots.bisection_on_scalars linear_algebra.matrix_power""",
    64: "dynamic_programming.matrix_chain signals.goertzel hashing.djb2",
    30: "automata.sandpile roots.golden_section roots.durand_kerner",
}
# Arrays of 2**n elements, or n rounds of doubling.
EXPONENTS = """hashing.gray_code linear_algebra.cyclic_reduction monte_carlo.brownian_bridge roots.romberg
    signals.fft_recursive signals.fft_in_place signals.stockham signals.haar sorting.bitonic_network""".split()
# Programs for which 7 has a meaning: they raise there, or another of their sizes is 7 or 3.
ELSEWHERE = {
    "failures.index_out_of_range": 5,
    "failures.pivot_of_zero": 3,
    "signals.binned_means": 9,
    "stencils.horizontal_diffusion": 9,
}
MORE = {
    "its result is NumPy's message, which names the size": "failures.caught",
    "returns an int of five bits a byte, which only Python has": "hashing.djb2",
    "calls itself as often as its size can be halved": "signals.fft_recursive",
}


def load():
    """The programs by name, including those of the benchmarks."""
    path = pathlib.Path(__file__).parents[2] / "benchmarks" / "programs.py"
    spec = importlib.util.spec_from_file_location("benchmark_programs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    f4 = np.float32
    shapes = {
        "black_scholes": lambda n: [(n,)] * 5,
        "fma_chain": lambda n: [(n,)] * 3,
        "softmax": lambda n: [(n, n)],
        "layernorm_gelu": lambda n: [(n, n), (n,), (n,)],
        "sum_sq": lambda n: [(n,)],
        "col_norm": lambda n: [(n, n)],
        "rbf": lambda n: [(n, 12), (n, 12)],
        "jacobi": lambda n: [(n, n)],
        "mlp": lambda n: [(n, 12), (12, 24), (24,), (24, 12), (12,)],
        "attention": lambda n: [(3, n, 12)] * 3,
        "tiny": lambda n: [(n,), (n,)],
    }
    assert set(shapes) == set(module.SHAPES)
    found = programs.load()
    for name, of in shapes.items():

        def make(n, rng, of=of, dtype=float if name == "tiny" else f4):
            return tuple(rng.random(shape).astype(dtype) + dtype(0.1) for shape in of(n))

        found[f"benchmarks.{name}"] = programs.Program(getattr(module, name), make, (2, 3, 4), 1e-5)
    return found


PROGRAMS = load()
REASONS = {name: why for why, names in MORE.items() for name in names.split()}
LARGEST_OF = {name: n for n, names in LARGEST.items() for name in names.split()}


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Compile pieces however small, without sizes recorded before."""
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    before = cinductor.cache.info()["directory"]
    cinductor.cache.set_directory(tmp_path / "cache")
    yield
    cinductor.cache.set_directory(before)


def sizes_of(name):
    """The size to capture with, then the others."""
    if name in EXPONENTS:
        return [FIRST, 0, 1, 2, 9, 10] if name not in REASONS else [4, 0, 1, 2, 5]
    largest = LARGEST_OF.get(name, SIZES[-1] if name not in REASONS else 9)
    return [ELSEWHERE.get(name, FIRST), *(n for n in SIZES[:-1] if n < largest), largest]


def strides(value):
    return [array.strides if array.size else None for array in arrays_of(value)]


def check(program, compiled, n):
    """Make one call at size n. Return the number of compiles, and whether NumPy ran although it did not raise."""
    try:
        made = program.make(n, np.random.default_rng(n))
    except (ValueError, IndexError):
        return 0, False  # the program has no arguments of that size
    job, before = (
        compiled._cinductor_job,
        (compiled._cinductor_job.captures, compiled.failed_checks),
    )
    theirs, ours = made, copy.deepcopy(made)
    want, error = outcome(program.function, theirs)
    got, raised = outcome(compiled, ours)
    assert raised == error, f"size {n}: {raised} instead of {error}"
    test_programs.assert_numpys(program, got, want, f"size {n}")
    test_programs.assert_numpys(program, ours, theirs, f"size {n}, arguments")
    assert strides(got) == strides(want)
    assert sharing(got, ours) == sharing(want, theirs), f"size {n}: memory is shared otherwise"
    if error is not None:
        return 0, False
    return job.captures - before[0], compiled.failed_checks > before[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_compile(name):
    compiled = cinductor.compile(PROGRAMS[name].function, dynamic=True, backend="interp")
    compiles, are_numpys = 0, 0
    for n in sizes_of(name):
        more, is_answered_by_numpy = check(PROGRAMS[name], compiled, n)
        compiles += more
        are_numpys += is_answered_by_numpy and n >= FIRST
        if name not in REASONS:
            assert compiles <= 1, f"size {n}: {compiled._cinductor_job.reasons[-1:]}"
            assert n < FIRST or not is_answered_by_numpy, f"size {n}"
    if name in REASONS:
        assert compiles > 1 or are_numpys, "one compile is enough"
    else:  # the first may have been a size that raises
        assert len(compiled.specializations) == 1, compiles


def test_the_tables_name_programs():
    names = [*REASONS, *LARGEST_OF, *EXPONENTS, *ELSEWHERE]
    assert set(names) <= set(PROGRAMS) and len(REASONS) == sum(
        len(v.split()) for v in MORE.values()
    )
    assert len(REASONS) <= 3 and len(PROGRAMS) >= 211


def test_the_eleven_by_the_default_backend():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (n for n in PROGRAMS if n.startswith("benchmarks.")):
            compiled = cinductor.compile(PROGRAMS[name].function, dynamic=True)
            compiles = [check(PROGRAMS[name], compiled, n)[0] for n in (7, 0, 1, 2, 64, 300)]
            assert sum(compiles) == 1, (name, compiles)
