"""Every program of tests/programs, unmodified: compiled, at three sizes, called twice at each, against NumPy.

What is equal: results, exceptions, arguments afterwards, the state of generators, what shares memory with what; with
kinds, dtypes, shapes and strides. Values are equal to the last bit unless the program's row in its table says otherwise.
Exactly the programs in WHOLE are compiled with fullgraph=True; the others have breaks, and each piece is compiled.
"""

import copy
import warnings

import numpy as np
import programs
import pytest

import cinductor

PROGRAMS = programs.load()
WHOLE = set("""
automata.ant automata.elementary automata.elementary_by_cells automata.forest_fire automata.lattice_boltzmann
automata.life automata.life_by_cells automata.life_by_slices automata.majority automata.sandpile
clustering.k_means clustering.k_means_until_still clustering.line_fit clustering.mixture clustering.nearest_by_elements
clustering.nearest_neighbours clustering.running_moments clustering.single_linkage
dynamic_programming.cheapest_seam dynamic_programming.coin_change dynamic_programming.edit_distance
dynamic_programming.edit_distance_by_masks dynamic_programming.knapsack dynamic_programming.knapsack_rows
dynamic_programming.largest_sum dynamic_programming.longest_common_subsequence dynamic_programming.matrix_chain
dynamic_programming.needleman_wunsch dynamic_programming.rna_folding dynamic_programming.time_warping
dynamic_programming.viterbi
failures.assertion failures.caught failures.index_out_of_range failures.integer_overflow failures.no_convergence
failures.pivot_of_zero failures.shapes_that_differ failures.singular failures.unbound_name
fractals.burning_ship fractals.julia fractals.mandelbrot_by_masks fractals.mandelbrot_by_pixels fractals.mandelbrot_by_shrinking
fractals.mandelbrot_real fractals.newton_fractal
graphs.bellman_ford graphs.breadth_first graphs.connected_components graphs.dijkstra graphs.floyd_by_elements graphs.floyd_by_rows
graphs.floyd_warshall graphs.page_rank graphs.spanning_tree graphs.transitive_closure
hashing.adler32 hashing.adler32_by_sums hashing.crc16 hashing.bloom_filter hashing.crc32 hashing.crc32_table hashing.crc8_of_bytes hashing.djb2
hashing.fnv1a hashing.gray_code hashing.linear_congruence hashing.mix32 hashing.open_addressing
hashing.population_count hashing.sha_rounds hashing.xorshift
linear_algebra.back_substitution linear_algebra.bareiss linear_algebra.cholesky linear_algebra.cholesky_by_columns
linear_algebra.conjugate_gradient linear_algebra.covariance linear_algebra.csr_by_elements linear_algebra.csr_matvec
linear_algebra.cyclic_reduction linear_algebra.forward_substitution linear_algebra.gauss_jordan
linear_algebra.gauss_seidel linear_algebra.gram_schmidt linear_algebra.householder linear_algebra.jacobi_eigenvalues
linear_algebra.jacobi_solver linear_algebra.lu linear_algebra.lu_with_pivots linear_algebra.matrix_power
linear_algebra.modified_gram_schmidt linear_algebra.power_iteration linear_algebra.thomas
monte_carlo.bootstrap monte_carlo.brownian_bridge monte_carlo.estimate_pi monte_carlo.estimate_pi_by_points
monte_carlo.ising monte_carlo.ising_chessboard monte_carlo.metropolis_hastings monte_carlo.option_price
monte_carlo.percolation monte_carlo.random_walk
nets.attention nets.batch_norm nets.convolution_layer nets.elman nets.hopfield nets.little_lenet
nets.logistic_regression nets.long_short_term nets.max_pool nets.perceptron_rule nets.perceptrons
nets.self_organising_map nets.train
particles.bounce particles.charge_on_grid particles.flock particles.leapfrog particles.lennard_jones
particles.n_body particles.n_body_by_pairs particles.neighbour_lists particles.verlet_chain
roots.adaptive_step roots.arithmetic_geometric roots.bisection roots.bisection_on_scalars roots.collatz
roots.collatz_on_arrays roots.durand_kerner roots.gcd roots.golden_section roots.horner roots.legendre roots.lorenz roots.newton
roots.newton_on_arrays roots.newton_system roots.pascal roots.romberg roots.runge_kutta roots.sieve roots.simpson
signals.binned_means signals.biquad signals.compressor signals.convolve_shifts signals.convolve_windows
signals.deriche signals.dithering signals.fft_in_place signals.fft_recursive signals.goertzel signals.haar
signals.histogram signals.histogram_2d signals.iir_channels signals.median_filter signals.one_pole
signals.run_lengths_by_edges signals.sobel signals.stockham signals.zero_crossings
sorting.binary_search sorting.bitonic_network sorting.bubble_sort sorting.counting_sort sorting.insertion_sort
sorting.merge sorting.odd_even_network sorting.pareto_front sorting.quick_select sorting.radix_sort sorting.selection_by_minimum
sorting.shuffle_by_swaps
stencils.adi stencils.cavity_flow stencils.fdtd_1d stencils.fdtd_2d stencils.heat_3d stencils.horizontal_diffusion
stencils.jacobi_1d stencils.jacobi_2d stencils.periodic_diffusion stencils.reaction_diffusion stencils.red_black
stencils.relax_until_still stencils.seidel_2d stencils.upwind stencils.vertical_sweep
""".split())


pytestmark = pytest.mark.usefixtures("pieces_are_compiled")


def outcome(fn, arguments):
    """What a call returned or raised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return fn(*arguments), None
        except Exception as error:
            return None, (type(error), str(error))


def assert_same(got, want, tolerance, where):
    """Same kind, structure, dtype and shape; values as far apart as the tolerance allows."""
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
    """Which results are which arguments, and which share memory with which."""
    results, given = arrays_of(result), arrays_of(arguments)
    pairs = [(a, b) for k, a in enumerate(results) for b in [*given, *results[:k]]]
    return [(a is b, np.shares_memory(a, b)) for a, b in pairs]


def turned(value):
    """Arrays as reversed views of Fortran-ordered memory, alone and in tuples and lists."""
    if isinstance(value, tuple | list):
        return type(value)(map(turned, value))
    if not isinstance(value, np.ndarray):
        return value
    view = np.empty(value.shape, value.dtype, order="F")[(slice(None, None, -1),) * value.ndim]
    view[...] = value
    return view


def check(program, compiled, sizes, layout=lambda arguments: arguments):
    """Every one of the sizes, twice."""
    for n in sizes:
        for call in 1, 2:
            made = program.make(n, np.random.default_rng(100 * n + call))
            theirs, ours = layout(made), layout(copy.deepcopy(made))
            want, error = outcome(program.function, theirs)
            got, raised = outcome(compiled, ours)
            where = f"size {n}, call {call}"
            assert raised == error, f"{where}: {raised} instead of {error}"
            assert_same(got, want, program.tolerance, where)
            assert_same(ours, theirs, program.tolerance, f"{where}, arguments")
            strides = [[a.strides for a in arrays_of(result)] for result in (got, want)]
            assert strides[0] == strides[1], where
            assert sharing(got, ours) == sharing(want, theirs), f"{where}: memory is shared otherwise"


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name):
    """By the default backend: sizes become symbolic. A program with breaks has many small kernels, so it has one size."""
    program, is_in = PROGRAMS[name], name in WHOLE
    check(program, cinductor.compile(program.function, fullgraph=is_in), program.sizes if is_in else program.sizes[:1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreted(name):
    """By the interpreter backend, each size captured for itself; then with symbolic sizes and another layout."""
    program = PROGRAMS[name]
    compiled = cinductor.compile(program.function, fullgraph=name in WHOLE, backend="interp", dynamic=False)
    check(program, compiled, program.sizes)
    check(program, cinductor.compile(program.function, backend="interp"), program.sizes, turned)


def is_whole(program):
    """Every size is captured without a break; what the program itself raises does not count."""
    for n in program.sizes:
        compiled = cinductor.compile(program.function, fullgraph=True, backend="interp")
        try:
            compiled(*program.make(n, np.random.default_rng(n)))
        except cinductor.Unsupported:
            return False
        except Exception:
            continue
    return True


def test_what_is_whole():
    """WHOLE names every program that is, and none that is not: a program that has become whole is added to it."""
    whole = set()
    for name, program in PROGRAMS.items():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if is_whole(program):
                whole.add(name)
    assert whole == WHOLE, f"not whole any more: {sorted(WHOLE - whole)}; whole by now: {sorted(whole - WHOLE)}"


def test_the_corpus_is_large():
    assert len(PROGRAMS) >= 60
    for name, program in PROGRAMS.items():
        assert program.function.__doc__ and len(set(program.sizes)) == 3, name
