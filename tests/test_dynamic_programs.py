"""Every program of tests/programs and the eleven of benchmarks/programs.py under dynamic=True at six sizes: compiled
once, at a size of no meaning, equal to NumPy at all of them.

A size is the program's own parameter: a length, the side of a grid, a number of steps. Where NumPy raises, the same is
raised, and nothing has to be compiled for it. Sizes from 7 on are answered by the program that was compiled and not by
NumPy; 0, 1 and 2 may be too few for what was compiled, as x[:3] is (`Tracer.usual…`): then NumPy answers.
MORE names the programs of which one compile is not enough, and why. Strides are equal where there are elements.
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

# The largest size where 1000 is too many: for NumPy (element by element, cubic, a side of three), for the interpreter
# backend, or for the values, where what one bit of a cosine makes grows with each step.
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
# Programs that mean something at 7: they raise there, or another of their sizes is 7, or 3.
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
    """The programs by name, those of the benchmarks as programs with a maker."""
    path = pathlib.Path(__file__).parents[1] / "benchmarks" / "programs.py"
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
    """Pieces are compiled however small, and nothing is known of sizes from before."""
    monkeypatch.setattr("cinductor.budget.LITTLE_WORK", 0)
    before = cinductor.cache.info()["directory"]
    cinductor.cache.set_directory(tmp_path / "cache")
    yield
    cinductor.cache.set_directory(before)


def sizes_of(name):
    """The size to capture at, then the others."""
    if name in EXPONENTS:
        return [FIRST, 0, 1, 2, 9, 10] if name not in REASONS else [4, 0, 1, 2, 5]
    largest = LARGEST_OF.get(name, SIZES[-1] if name not in REASONS else 9)
    return [ELSEWHERE.get(name, FIRST), *(n for n in SIZES[:-1] if n < largest), largest]


def strides(value):
    return [array.strides if array.size else None for array in arrays_of(value)]


def check(program, compiled, n):
    """One call at size n. How many compiles it took, and whether NumPy answered though it did not raise."""
    try:
        made = program.make(n, np.random.default_rng(n))
    except (ValueError, IndexError):
        return 0, False  # there are no arguments of that size
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
    else:  # which may have been at a size that raises
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
