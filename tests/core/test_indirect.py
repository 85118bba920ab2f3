"""Tests the graph operations gather, scatter and compress in every way of running, against NumPy."""

import numpy as np
import pytest
import ways

pytestmark = pytest.mark.ways(*ways.BACKENDS)

DTYPES = {
    "bool": np.bool_,
    "i8": np.int8,
    "i64": np.int64,
    "u16": np.uint16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


def values(rng, dtype, shape):
    made = rng.integers(0, 100, shape)
    if dtype == "bool":
        return made > 50
    if dtype.startswith("c"):
        return (made + 1j * rng.integers(0, 9, shape)).astype(DTYPES[dtype])
    return made.astype(DTYPES[dtype])


def sizes(array):
    return ",".join(map(str, array.shape))


def same(got, expected):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(10,), (7, 5), (3, 4, 5)])
def test_gather_along_each_axis(way, dtype, shape):
    rng = np.random.default_rng(1)
    a = values(rng, dtype, shape)
    for axis in range(a.ndim):
        for index_shape in [(1,), (6,), (0,), (2, 3), (300,)]:
            index = rng.integers(0, shape[axis], index_shape)
            expected = np.take(a, index, axis)
            text = f"""graph f(in0: {dtype}[{sizes(a)}], in1: i64[{sizes(index)}]) {{
              %0: {dtype}[{sizes(expected)}] = gather(in0, in1, axes=[{axis}])
              return %0
            }}"""
            same(way.run(text, [a, index])[0], expected)


def test_gather_along_several_axes(way):
    rng = np.random.default_rng(2)
    a = values(rng, "f64", (4, 5, 6))
    i, j, k = rng.integers(0, 4, (3, 1)), rng.integers(0, 5, 7), rng.integers(0, 6, (3, 7))
    text = """graph f(in0: f64[4,5,6], in1: i64[3,1], in2: i64[7], in3: i64[3,7]) {
      %0: f64[3,7,6] = gather(in0, in1, in2, axes=[0, 1])
      %1: f64[4,3,7] = gather(in0, in2, in3, axes=[1, 2])
      %2: f64[3,7] = gather(in0, in1, in2, in3, axes=[0, 1, 2])
      %3: f64[3,7,5] = gather(in0, in1, in3, axes=[0, 2])
      return %0, %1, %2, %3
    }"""
    got = way.run(text, [a, i, j, k])
    same(got[0], a[i, j])
    same(got[1], a[:, j, k])
    same(got[2], a[i, j, k])
    same(got[3], a[i, :, k])


@pytest.mark.ways(*ways.CPU, "gpu")  # the GPU cannot call NumPy's loops
def test_gather_in_a_body(way):
    """Gather from computed arrays, through views, twice, and reduced."""
    rng = np.random.default_rng(3)
    a, i = rng.standard_normal((40, 30)), rng.integers(0, 28, 500)
    text = """graph f(in0: f64[40,30], in1: i64[500]) {
      %0: f64[30,40] order [1,0] = permute(in0, axes=[1, 0])
      %1: f64[28,40] order [1,0] = slice(%0, starts=[1, 0], steps=[1, 1])
      %2: f64[28,40] order [1,0] = exp(%1, by=numpy)
      %3: f64[500,40] = gather(%2, in1, axes=[0])
      %4: f64[500] = sum(%3, axes=[1], pairwise=[1], inner=1)
      %5: f64[500] = gather(%4, in1, axes=[0])
      %6: f64[500] = gather(%5, in1, axes=[0])
      return %4, %6
    }"""
    got = way.run(text, [a, i])
    rows = np.exp(a.T[1:29])[i].sum(1)
    same(got[0], rows)
    same(got[1], rows[i][i])


def test_gather_of_few(way):
    """Of an expensive array, a gather that reads a few elements computes these alone, and one that reads many the array."""
    rng = np.random.default_rng(7)
    a, i, j, k = rng.random((300, 10)), rng.integers(0, 10, 300), rng.integers(0, 300, (2, 9)), rng.integers(0, 300, 900)
    text = """graph f(in0: f64[300,10], in1: i64[300], in2: i64[2,9], in3: i64[900]) {
      %0: f64[300,10] = sqrt(in0)
      %1: i64[300] = iota(axis=0)
      %2: f64[300] = gather(%0, %1, in1, axes=[0, 1])
      %3: f64[300,10] = divide(in0, in0)
      %4: f64[2,9,10] = gather(%3, in2, axes=[0])
      %5: f64[300,10] = divide(%0, in0)
      %6: f64[900,10] = gather(%5, in3, axes=[0])
      return %2, %4, %6
    }"""
    got = way.run(text, [a, i, j, k])
    same(got[0], np.sqrt(a)[np.arange(300), i])
    same(got[1], (a / a)[j])
    same(got[2], (np.sqrt(a) / a)[k])


@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter(way, dtype):
    """Of several values for one element, the last one stays."""
    rng = np.random.default_rng(4)
    a = values(rng, dtype, (20, 6))
    index = rng.integers(0, 20, 50)
    v = values(rng, dtype, (50, 6))
    text = f"""graph f(in0: {dtype}[20,6], in1: i64[50], in2: {dtype}[50,6]) {{
      %0: {dtype}[20,6] = scatter(in0, in0, in2, in1, axes=[0])
      return %0
    }}"""
    expected = a.copy()
    expected[index] = v
    same(way.run(text, [a, index, v])[0], expected)


@pytest.mark.parametrize("dtype, op", [
    (d, op)
    for d in DTYPES
    for op in ("add", "subtract", "multiply", "maximum")
    if d != "bool" and not (d.startswith("c") and op == "maximum")  # these are not defined
])
@pytest.mark.parametrize("n, row", [(1, ()), (1000, ()), (50, (19,))])
def test_scatter_combines(way, dtype, op, n, row):
    """The elements of a row are combined in vectors, the rows in order."""
    rng = np.random.default_rng(5)
    n = min(n, 4) if op == "multiply" else n
    a = values(rng, dtype, (16, *row))
    index = rng.integers(0, 16, n)
    v = values(rng, dtype, (n, *row))
    v = v if dtype.startswith("c") else v % 3
    text = f"""graph f(in0: {dtype}[{sizes(a)}], in1: i64[{n}], in2: {dtype}[{sizes(v)}]) {{
      %0: {dtype}[{sizes(a)}] = scatter(in0, in0, in2, in1, axes=[0], combine={op})
      return %0
    }}"""
    expected = a.copy()
    getattr(np, op).at(expected, index, v)
    got = way.run(text, [a, index, v])[0]
    if dtype.startswith("c") and op == "multiply":
        np.testing.assert_array_equal(got, expected)
    else:
        same(got, expected)


def test_scatter_through_views(way):
    rng = np.random.default_rng(6)
    a = values(rng, "i64", (9, 8))
    index = rng.integers(0, 3, (4, 1))
    other = rng.integers(0, 8, 5)
    v = values(rng, "i64", 5)
    text = """graph f(in0: i64[9,8], in1: i64[4,1], in2: i64[5], in3: i64[5]) {
      %0: i64[3,8] = slice(in0, starts=[7, 0], steps=[-2, 1])
      %1: i64[8,3] = permute(%0, axes=[1, 0])
      %2: i64[9,8] = scatter(in0, %1, in3, in2, in1, axes=[0, 1])
      return %2
    }"""
    text = text.replace("%1: i64[8,3] =", "%1: i64[8,3] order [1,0] =")
    expected = a.copy()
    expected[7::-2][:3].T[other, index] = v
    same(way.run(text, [a, index, other, v])[0], expected)


def test_scatter_takes_its_values_first(way):
    a = np.array([3, 1, 2, 0])
    index = np.array([1, 1, 2])
    text = """graph f(in0: i64[4], in1: i64[3]) {
      %0: i64[3] = gather(in0, in1, axes=[0])
      %1: i64[] = const 1
      %2: i64[3] = add(%0, %1)
      %3: i64[4] = scatter(in0, in0, %2, in1, axes=[0])
      %4: i64[4] = scatter(%3, %3, %3, in0, axes=[0])
      write in0 = %4
      return %3
    }"""
    expected = a.copy()
    expected[index] += 1
    got = a.copy()
    same(way.run(text, [got, index])[0], expected)
    final = expected.copy()
    final[a] = expected
    same(got, final)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 300, 5000])
def test_compress(way, dtype, n):
    rng = np.random.default_rng(n)
    a = values(rng, dtype, n)
    mask = rng.integers(0, 2, n) > 0
    count = int(mask.sum())
    text = f"""graph f(in0: {dtype}[{n}], in1: bool[{n}]) {{
      %0: {dtype}[{count}] = compress(in0, in1)
      %1: i64[{n}] = iota(axis=0)
      %2: i64[{count}] = compress(%1, in1)
      %3: {dtype}[{count}] = gather(in0, %2, axes=[0])
      return %0, %2, %3
    }}"""
    got = way.run(text, [a, mask])
    same(got[0], a[mask])
    same(got[1], np.flatnonzero(mask))
    same(got[2], a[mask])


@pytest.mark.ways(*ways.CPU, "gpu")  # the GPU cannot call NumPy's loops
def test_compress_of_mathematics(way):
    """The values come from arrays that are computed between two segments."""
    rng = np.random.default_rng(8)
    a = rng.standard_normal(2000)
    mask = np.sin(a) > 0
    text = f"""graph f(in0: f64[2000]) {{
      %0: f64[2000] = sin(in0, by=numpy)
      %1: f64[] = const 0.0
      %2: bool[2000] = greater(%0, %1)
      %3: f64[2000] = exp(%0, by=numpy)
      %4: f64[{int(mask.sum())}] = compress(%3, %2)
      return %4
    }}"""
    same(way.run(text, [a])[0], np.exp(np.sin(a))[mask])


def test_position_of_the_largest_gathered(way):
    """An index from data is a symbol, and a reduction gives a position: both have names in one loop."""
    rng = np.random.default_rng(3)
    a, index = rng.standard_normal(50), rng.integers(0, 50, 300)
    text = """graph f(in0: f64[50], in1: i64[300]) {
  %0: f64[300] = gather(in0, in1, axes=[0])
  %1: i64[] = argmax(%0, axes=[0])
  return %1
}
"""
    assert way.run(text, [a, index])[0] == a[index].argmax()
