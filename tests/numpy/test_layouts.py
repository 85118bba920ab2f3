"""Tests that the layout of a result, and whether it is a view, is NumPy's for every layout of the argument.

One program for many sizes and one for each size are tested, by calls of one function in sequence.
"""

import random

import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same

SIZES = ((3, 4), (4, 4), (2, 6), (6, 6), (1, 5), (5, 1))
MANY = {"recompile_limit": 99}


def layouts(n, m):
    a = np.arange(8.0 * n * m)
    yield a[: n * m].reshape(n, m)
    yield a[: n * m].reshape(m, n).T
    yield a[: n * m].reshape(n, m)[::-1]
    yield a[: n * m].reshape(n, m)[:, ::-1]
    yield a[: 4 * n * m].reshape(2 * n, 2 * m)[::2, ::2]
    yield a[: 4 * n * m].reshape(2 * m, 2 * n)[::2, ::2].T
    yield a[: 2 * n * m].reshape(n, 2 * m)[:, :m]
    yield np.broadcast_to(a[:m], (n, m))
    yield np.broadcast_to(a[:n, None], (n, m))
    yield np.broadcast_to(a[1], (n, m))


RESHAPES = {
    "turned": lambda x: x.reshape(x.shape[1], x.shape[0]),
    "turned_view": lambda x: x.T.reshape(-1, x.shape[0]),
    "rest": lambda x: x.reshape(x.shape[0], -1),
    "rest_first": lambda x: x.reshape(-1, x.shape[1]),
    "turned_rest": lambda x: x.reshape(x.shape[1], -1),
    "halves": lambda x: x.reshape(-1, 2) if x.size % 2 == 0 else x,
    "flat": lambda x: x.reshape(-1),
    "raveled": lambda x: x.ravel(),
    "split": lambda x: x.reshape(x.shape[0], 1, x.shape[1]),
    "with_new_axes": lambda x: x[None].reshape(-1, 1, x.shape[1]),
}
MADE = {
    "sum": lambda x: x + 1,
    "copy": lambda x: np.copy(x),
    "array": lambda x: np.array(x),
    "cast": lambda x: x.astype("f4"),
    "columns": lambda x: np.c_[x, x],
    "rows": lambda x: np.r_[x, x],
    "stacked": lambda x: np.vstack([x, x * 2]),
    "two_dtypes": lambda x: np.concatenate([x, x.astype("f4")], 0),
    "last_axis": lambda x: np.stack([x, x], -1),
    "as_float": lambda x: np.concatenate([x, x], 1, dtype="f4"),
    "a_row_more": lambda x: np.concatenate([x[:1], x]),
    "no_row_more": lambda x: np.concatenate([x[:0], x]),
    "no_column_more": lambda x: np.concatenate([x[:, :0], x], 1),
    "after_no_row": lambda x: np.concatenate([x.T, x.T[:0]]),
    "elements": lambda x: np.array(x.flat),
    "copied_elements": lambda x: np.copy(x.flat)[1:],
    "cast_elements": lambda x: np.asarray(x.flat, "f4"),
    "block": lambda x: np.block([[x, x], [x, x]]),
    "tile": lambda x: np.tile(x, (2, 2)),
    "pad": lambda x: np.pad(x, 1),
    "roll": lambda x: np.roll(x, 1, 0),
    "insert": lambda x: np.insert(x, 1, 5.0, axis=0),
    "delete": lambda x: np.delete(x, 0, axis=1),
    "delete_range": lambda x: np.delete(x, slice(0, 2), axis=1),
    "delete_one_computed": lambda x: np.delete(x, x[0].argmax()[None], axis=1),
    "delete_two_computed": lambda x: np.delete(x, x[0].argsort()[:2], axis=1),
    "delete_where": lambda x: np.delete(x, x[0] > 1, axis=1),
    "delete_rows_where": lambda x: np.delete(x, x[:, 0] > 1, axis=0),
    "delete_found": lambda x: np.delete(x, np.flatnonzero(x[0] > 1), axis=1),
    "delete_several": lambda x: np.delete(x, [0], axis=0),
    "constant_view": lambda x: np.rot90([[1.0, 2.0], [3.0, 4.0]], 2),
    "eigenvalues": lambda x: np.linalg.eigvals(np.array([[2.0, 1.0], [1.0, 2.0]])),
    "repeat": lambda x: np.repeat(x, 2, 0),
    "repeat_side_by_side": lambda x: np.repeat(x, 3, 1),
    "repeat_all": lambda x: np.repeat(x.T[:2], 2),
    "chosen": lambda x: np.where(x > 1, x, 0),
    "chosen_of_two": lambda x: np.where(x > 1, x, np.broadcast_to(x[:1], x.shape)),
    "like": lambda x: np.zeros_like(x),
    "like_a": lambda x: np.zeros_like(x, order="A"),
    "taken": lambda x: x[[0, 0]],
    "middle_axis": lambda x: np.stack([x, x], 1),
    "middle_axis_of_two": lambda x: np.stack([x, x.copy()], 1),
    "list_of_arrays": lambda x: np.array([x, x]),
    "median_of_columns": lambda x: np.median(x[:, None] + np.zeros((2, 1)), 0),
    "median_of_rows": lambda x: np.median(x, 1),
    "median_of_few": lambda x: np.median(x[:1], 0, keepdims=True),
    "medians_of_blocks": lambda x: np.median(x[:, None, :, None] + np.zeros((1, 2, 1, 3)), (1, 3)),
    "medians_of_turned_blocks": lambda x: np.median((x[:, None, :, None] + np.zeros((1, 2, 1, 3))).T, (-1, -3)),
    "medians_across_blocks": lambda x: np.nanmedian(x[:, None, :, None] + np.zeros((1, 2, 1, 3)), (2,), keepdims=True),
    "without_nan": lambda x: np.nanmedian(x, -1, keepdims=True),
    "quantile": lambda x: np.quantile(x, 0.25, 1),
    "among": lambda x: np.choose(1, [x, -x]),
    "transform": lambda x: np.fft.fft(x),
    "transform_of_both": lambda x: np.fft.rfft2(x),
    "product_with_a_number": lambda x: np.dot(x[None] * 2, 3),
    "quantiles_without_nan": lambda x: np.nanquantile(x, [0.25, 0.5], 1),
    "percentiles_without_nan": lambda x: np.nanpercentile(x[None] + np.zeros((2, 1, 1)), [25, 50, 75], (0, 2)),
    "unraveled": lambda x: np.unravel_index(x.astype(int), (20, 20))[1],
    "vectorized": lambda x: np.vectorize(lambda v: v * 2)(x),
    "vectorized_pair": lambda x: np.vectorize(lambda v: (v, -v))(x)[1],
    "grid": lambda x: np.meshgrid(x, copy=False)[0],
    "one_of_a_row": lambda x: np.median(x[:1], 0),
    "one_of_a_column": lambda x: np.median(x[:, :1], -1),
    "sorted": lambda x: np.sort(x, 0),
    "running": lambda x: np.cumsum(x, 0),
    "zeros_of_a_part": lambda x: np.imag(x),
    "are_real": lambda x: np.isreal(x[None] * 1),
    "rounded_complex": lambda x: np.round(x[None] + 1j, 1),
    "rounded_ints": lambda x: np.around(x.astype(int)),
    "members": lambda x: np.isin(x.astype(int), [1, 2]),
    "bessel": lambda x: np.i0(x),
    "bessel_of_ints": lambda x: np.i0(x.astype(int)),
    "required": lambda x: np.require(x, None, "F"),
    "required_cast": lambda x: np.require(x, "f4", ["C", "A"]),
    "scalar_class": lambda x: np.float64(x),
    "other_scalar_class": lambda x: np.complex128(x),
    "if_needed": lambda x: np.array(x, copy=None, order="F"),
    "cast_in_order": lambda x: np.asarray(x, "f4", order="F"),
    "sums_between": lambda x: np.add.reduceat(x[:, None] + np.zeros((2, 1)), [0, 1, 0], axis=1),
    "like_with_axes_more": lambda x: np.zeros_like(x, shape=(2, 3, 2), order="A"),
    "like_with_other_sizes": lambda x: np.zeros_like(x[:, :0], shape=(2, 3)),
}


OF_KNOWN_SIZES = {  # an axis of varying size may be empty, and then has no element that is cast and repeated
    "promoted": lambda x: x + np.broadcast_to(np.float32(1), x.shape),
    "promoted_rows": lambda x: np.hypot(np.broadcast_to(x[:1].astype("f4"), x.shape), x) < 3,
}


def steps(x):
    """Strides of the axes that have more than one element."""
    return [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1]


CASES = [(name, dynamic) for name in (*RESHAPES, *MADE, *OF_KNOWN_SIZES) for dynamic in (True, False)]


@pytest.mark.filterwarnings("error:cinductor")
@pytest.mark.parametrize(("name", "dynamic"), [case for case in CASES if case[0] not in OF_KNOWN_SIZES or not case[1]])
def test_as_numpy_lays_it_out(name, dynamic):
    fn = {**RESHAPES, **MADE, **OF_KNOWN_SIZES}[name]
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic, options=MANY)
    for shape in SIZES:
        for x in layouts(*shape):
            want, got = fn(x), compiled(x)
            assert_same(got, want)
            assert steps(got) == steps(want), (shape, x.strides)
            assert np.shares_memory(got, x) == np.shares_memory(want, x), (shape, x.strides)
            assert got.flags.writeable == want.flags.writeable, (shape, x.strides)


def written(x):
    rows = x.reshape(x.shape[0], -1)
    rows[1] = 9.0
    turned = x.T.reshape(-1, x.shape[0])
    turned[0] += 1.0
    return rows.sum()


def test_a_view_by_the_rest_of_a_shape_is_written_through():
    compiled = cinductor.compile(written, backend="interp", dynamic=True)
    for shape in SIZES[:4]:
        for x in [*layouts(*shape)][:7]:
            mine, theirs = x.copy("K"), x.copy("K")
            assert_same(compiled(mine), written(theirs))
            assert_same(mine, theirs)


PARTS = [
    lambda x: x[:, ::2], lambda x: x[::2], lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[::-1, ::-1], lambda x: x[:, 1:],
    lambda x: x[1:], lambda x: x[:, :-1], lambda x: x[::2, ::2], lambda x: x.T, lambda x: x[:, None], lambda x: x[None],
    lambda x: x[..., None], lambda x: x[:2], lambda x: x[:, :2], lambda x: x.T[::2],
]  # fmt: skip
SHAPES = [
    lambda v: v.reshape(-1), lambda v: v.reshape(1, -1), lambda v: v.reshape(-1, 1), lambda v: v.reshape(2, -1),
    lambda v: v.reshape(-1, 2), lambda v: v.reshape(-1, order="F"), lambda v: v.reshape(v.shape), lambda v: v.reshape(v.shape + (1,)),
    lambda v: v.reshape((1,) + v.shape), lambda v: v.reshape(v.shape[::-1]), lambda v: v.reshape(v.shape[0], -1),
    lambda v: v.reshape(-1, v.shape[-1]), lambda v: v.reshape(v.size), lambda v: v.reshape(2, -1, v.shape[-1]),
    lambda v: v.reshape(v.shape[0], 2, -1), lambda v: v.reshape(-1, 2, v.shape[-1]), lambda v: v.reshape(v.shape[0], -1, 2),
    lambda v: v.reshape(2, 2, -1), lambda v: v.reshape(2, -1, order="F"), lambda v: v.reshape(v.shape[0], -1, order="F"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_a_reshape_of_a_part_is_a_view_where_numpys_is_one(seed):
    """Sizes may decide whether axes can be merged: those of `x[:, ::2]` can be if the number of columns is even."""
    draw = random.Random(seed)
    for _ in range(20):
        first, second, shaped = draw.choice(PARTS), draw.choice(PARTS), draw.choice(SHAPES)

        def written(x, first=first, second=second, shaped=shaped):
            v = second(first(x))
            y = shaped(v)
            y *= 2
            y += v.sum()
            return x, y, v

        compiled = cinductor.compile(written, backend="interp", **draw.choice([{}, {"dynamic": True}]))
        rank = draw.choice([2, 2, 3])
        for _ in range(6):
            sizes = [draw.randint(1 if draw.random() < 0.2 else 2, 7) for _ in range(rank)]
            outcomes = []
            for fn in (written, compiled):
                try:
                    x, y, v = fn(np.arange(float(np.prod(sizes))).reshape(sizes))
                except (ValueError, IndexError) as error:
                    outcomes.append(str(error))
                else:
                    outcomes.append((x.tolist(), y.tolist(), v.tolist(), y.size and steps(y), y.size and np.shares_memory(x, y)))
            assert outcomes[1] == outcomes[0], (seed, sizes)


def test_no_size_for_the_rest_of_nothing():
    compiled = cinductor.compile(
        lambda x: x.reshape(x.shape[0], -1), backend="interp", dynamic=True
    )
    assert compiled(np.ones((3, 2, 2))).shape == (3, 4)
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot reshape array of size 0 into shape"):
            compiled(np.ones((0, 2, 2)))
    assert compiled(np.ones((5, 2, 0))).shape == (5, 0)


def test_a_call_is_told_of_the_axis_that_has_one_element():
    """The stride of such an axis does not define its place in the stride order, so the guard that fails names the
    axis.
    """
    compiled = cinductor.compile(lambda x: x * 2 + x.T.sum(), backend="interp", dynamic=True)
    for shape in ((6, 7), (5, 9), (8, 1)):
        compiled(np.ones(shape, order="F"))
    assert "x.shape[1] was more than 1 when compiled" in compiled._cinductor_job.reasons[0]


KEPT = {
    "like": lambda x: np.zeros_like(x),
    "ones": lambda x: np.ones_like(x),
    "full": lambda x: np.full_like(x, 3),
    "empty": lambda x: np.empty_like(x),
    "like_of_turned": lambda x: np.zeros_like(x.T),
    "like_a": lambda x: np.ones_like(x, order="A"),
    "copy": lambda x: np.copy(x),
    "copy_k": lambda x: x.copy("K"),
    "copy_a": lambda x: x.copy("A"),
    "array": lambda x: np.array(x),
    "array_a": lambda x: np.array(x, order="A"),
    "array_f": lambda x: np.array(x, order="F"),
    "array_cast": lambda x: np.array(x, "f4", order="C"),
    "no_nans": lambda x: np.nan_to_num(x),
    "into_empty": lambda x: np.abs(x, out=np.empty_like(x)),
    "in_order": lambda x: np.ascontiguousarray(x),
    "in_fortrans": lambda x: np.asfortranarray(x),
    "reshaped": lambda x: x.reshape(x.shape),
    "raveled_k": lambda x: x.ravel("K"),
    "rounded": lambda x: np.round(x, 1),
    "part": lambda x: x[1:],
    "turned": lambda x: x.T[::-1],
    "sum": lambda x: x + 1,
    "chosen": lambda x: np.where(x > 1, x, 0),
}


def an_array(rng, shape, order, kind):
    """An array whose axes have this order in memory: dense, every other element of a larger array, or reversed."""
    n = 1 + (kind == "part")
    inside = [shape[k] * n for k in order]
    a = np.arange(float(np.prod(inside))).reshape(inside)
    a = a[::-1] if kind == "backwards" else a[(slice(None, None, n),) * len(shape)]
    return a.transpose(np.argsort(order))


def looks(a, is_strict):
    """Everything that can be seen of an array except its values. Strides of axes with one element are only compared
    if is_strict.
    """
    f = a.flags
    strides = a.strides if is_strict else steps(a) if a.size else None
    return a.dtype, a.shape, strides, f.c_contiguous, f.f_contiguous, f.writeable


def some_calls(seed):
    """Shapes and orders for the calls of one function, mostly with one stride order."""
    rng = random.Random(seed)
    rank, is_square = rng.randint(1, 3), rng.random() < 0.5
    usual, kind = rng.sample(range(rank), rank), rng.choice(["dense", "dense", "part", "backwards"])
    usual = usual if rng.random() < 0.4 else sorted(usual)
    for _ in range(5):
        n = rng.choice([0, 1, 2, 5])
        shape = [n] * rank if is_square else [rng.choice([0, 1, 2, 5]) for _ in range(rank)]
        order = usual if rng.random() < 0.7 else rng.sample(range(rank), rank)
        yield an_array(rng, shape, order, kind), kind == "dense" and order in (sorted(order), sorted(order)[::-1])


@pytest.mark.parametrize("dynamic", [True, None], ids=["any sizes", "sizes that differ"])
@pytest.mark.parametrize("name", KEPT)
def test_an_array_without_elements_has_no_order(name, dynamic):
    """The strides of an empty array, and of axes with one element, must not be recorded for later calls and
    processes.
    """
    for seed in range(4):
        compiled = cinductor.compile(KEPT[name], backend="interp", dynamic=dynamic, options=MANY)
        for x, is_strict in some_calls(f"{name} {seed}"):
            want = looks(KEPT[name](x), is_strict)
            for _ in range(2):
                assert looks(compiled(x), is_strict) == want, (seed, x.shape, x.strides)


@pytest.mark.parametrize("sizes", [(7, 0, 7), (7, 1, 0, 7), (1, 0, 5), (0, 7), (1, 7)])
@pytest.mark.parametrize("dynamic", [True, None])
def test_sizes_of_squares(sizes, dynamic):
    compiled = cinductor.compile(lambda x: np.zeros_like(x), backend="interp", dynamic=dynamic)
    for n in sizes:
        assert compiled(np.ones((n, n))).strides == np.zeros((n, n)).strides


@pytest.mark.parametrize("dynamic", [True, None])
def test_strides_that_are_read(dynamic):
    """Numbers of the call, also where NumPy does not use them."""
    compiled = cinductor.compile(lambda x: (x.strides, x * 2), backend="interp", dynamic=dynamic, options=MANY)
    a = np.zeros((8, 8))
    for x in (a, a[:3, :4].copy(), a[:0, :4], np.zeros((0, 4)), a[:1, :4], a[:1, :4].copy(), a[:, :1], a.T[:5], a[::2], a[::-1], np.zeros((3, 0))):
        for _ in range(2):
            assert compiled(x)[0] == x.strides


MADE_BY_NUMPY = {
    "places": lambda x: np.argwhere(x > 1),
    "counts": lambda x: np.histogram2d(x.ravel(), x.ravel(), bins=(2, 3), range=((0, 9), (0, 9)))[0],
    "density": lambda x: np.histogram2d(x.ravel(), x.ravel(), bins=(2, 3), range=((0, 9), (0, 9)), density=True)[0],
    "no_imaginary_part": lambda x: x.imag,
    "imaginary_part": lambda x: np.imag(x + 1j),
    "number": lambda x: np.broadcast_to(123, (3,)),
    "number_as_it_is": lambda x: np.broadcast_to(123, ()),
    "list": lambda x: np.broadcast_to([1, 2], (3, 2)),
    "tuples": lambda x: np.broadcast_arrays((1, 2), (3, 4))[1],
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view([1, 2, 3], 2),
    "diagonal": lambda x: np.diagonal(x),
    "turned_list": lambda x: np.transpose([[1, 2], [3, 4]]),
}


@pytest.mark.parametrize("name", MADE_BY_NUMPY)
def test_layout_and_flags_of_what_functions_make(name):
    compiled = cinductor.compile(MADE_BY_NUMPY[name], backend="interp")
    for shape in ((3, 4), (2, 5), (3, 4), (4, 4)):
        x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
        want, got = MADE_BY_NUMPY[name](x), compiled(x)
        assert looks(got, True) == looks(want, True)
        assert_same(got, want)


def test_assert_same_compares_the_strides_that_have_a_meaning():
    x = np.arange(6.0).reshape(2, 3)
    with pytest.raises(cinductor.AccuracyError, match="strides"):
        assert_same(np.asfortranarray(x), x)
    assert_same(np.asfortranarray(x)[:1].copy("K"), x[:1])
    assert_same(np.empty((0, 3), order="F"), np.empty((0, 3)))


def transposed_reads(x, y):
    """Kernels that read one operand across its rows: bodies of vector instructions, and others."""
    return x.T.copy(), x.T + y, x.T * x.T + y, x.T.astype(np.float64), x.T > y, np.where(x.T > y, x.T, y), np.exp(x.T * y), x.T.sum(axis=0)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("char", "fdbHqe?F")
def test_tiles_and_squares_that_no_size_fills(char, dynamic):
    rng = np.random.default_rng(2)
    compiled = cinductor.compile(transposed_reads, dynamic=dynamic)
    for rows, columns in ((64, 64), (65, 71), (130, 97), (67, 200)):
        x, y = ((rng.random(shape) * 9).astype(char) for shape in ((rows, columns), (columns, rows)))
        for got, want in zip(compiled(x, y), transposed_reads(x, y), strict=True):
            assert got.dtype == want.dtype and got.strides == want.strides
            assert got.tobytes() == want.tobytes()
