"""Tests indexing by arrays and masks, and the functions built on it, against NumPy."""

import warnings

import numpy as np
import pytest
import ways

import cinductor
from cinductor import testing

N = 7


def whole(way, fn, *calls):
    """Right, and in one piece: a later call runs no Python."""
    compiled = way.check(fn, *calls)
    is_one = not way.has_break and "dynamic" not in way.settings
    assert not is_one or compiled.specializations, [str(b) for b in compiled._cinductor_job.last.breaks]
    return compiled


def data(seed=0):
    """Arrays that most cases index: one of three axes, one of two, one of one. Their sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(-99, 99, shape) / 32 for shape in [(5, 6, N), (6, N), (N,)])


INDEX = np.array([3, -1, 0, 2, 3])
TABLE = np.array([[0, 1, -2], [4, 4, 0]])

READS = {
    "one": lambda a, m, v, i, j: v[i],
    "rows": lambda a, m, v, i, j: m[i],
    "columns": lambda a, m, v, i, j: m[:, i],
    "pairs": lambda a, m, v, i, j: m[i, i],
    "table": lambda a, m, v, i, j: v[j],
    "table of rows": lambda a, m, v, i, j: m[j],
    "broadcast": lambda a, m, v, i, j: m[i[:, None], j[0]],
    "three": lambda a, m, v, i, j: a[i, i, i],
    "table in Fortran order": lambda a, m, v, i, j: v[np.asfortranarray(j)],
    "pairs of tables": lambda a, m, v, i, j: (m[j.T % 4, j.T], m[j.T % 4, 1], m[j.T % 4, j.T.copy()]),
    "table and a new axis": lambda a, m, v, i, j: (v[j.T, None], v[:, None][j.T], v[None, j.T[::-1]]),
    "tables and a slice": lambda a, m, v, i, j: (a[j.T, :, j.T], a[:, j.T % 4, 1:3], a[j.T, 1:2, 0]),
    "middle": lambda a, m, v, i, j: a[:, i],
    "last": lambda a, m, v, i, j: a[..., i],
    "two of three": lambda a, m, v, i, j: a[:, i, i],
    "apart": lambda a, m, v, i, j: a[i, :, i],
    "with an int": lambda a, m, v, i, j: a[1, :, i],
    "with ints": lambda a, m, v, i, j: a[1, i, 2],
    "with slices": lambda a, m, v, i, j: a[1:4, i, ::-2],
    "new axis": lambda a, m, v, i, j: a[None, i],
    "list": lambda a, m, v, i, j: m[[0, 2, -1]],
    "of a transposed": lambda a, m, v, i, j: m.T[i],
    "of a slice": lambda a, m, v, i, j: m[::-1, 1:][i],
    "of what is computed": lambda a, m, v, i, j: (m * 2 + 1)[i].sum(axis=1),
    "of what it reads": lambda a, m, v, i, j: i[i][i],
    "small ints": lambda a, m, v, i, j: v[i.astype(np.int8)],
    "unsigned": lambda a, m, v, i, j: v[np.abs(i).astype(np.uint16)],
    "take": lambda a, m, v, i, j: np.take(a, i, 1),
    "take flat": lambda a, m, v, i, j: np.take(a, j),
    "take wrap": lambda a, m, v, i, j: np.take(v, i * 5, mode="wrap"),
    "take clip": lambda a, m, v, i, j: np.take(v, i * 5, mode="clip"),
    "take method": lambda a, m, v, i, j: m.take(i, axis=0),
    "along": lambda a, m, v, i, j: np.take_along_axis(m, i[None] % 6, 1),
    "along 0": lambda a, m, v, i, j: np.take_along_axis(m, i[:, None] % 6 + i[:1] * 0, 0),
    "ix": lambda a, m, v, i, j: m[np.ix_(i, i)],
    "argmax": lambda a, m, v, i, j: m[np.arange(6), np.argmax(m, axis=1)],
    "modulo": lambda a, m, v, i, j: v[(np.arange(20) * 3) % N],
    "choose": lambda a, m, v, i, j: np.choose(i % 3, [i, i + 10, i + 20]),
    "select": lambda a, m, v, i, j: np.select([v > 1, v > 0], [v, -v], 0.0),
    "lookup": lambda a, m, v, i, j: np.array([2.0, 3.0, 5.0])[i % 3],
}


@pytest.mark.parametrize("name", READS)
def test_reads(name, way):
    whole(way, READS[name], (*data(), INDEX, TABLE), (*map(np.asfortranarray, data()), INDEX, TABLE))


def written(fn):
    """A case that writes, and also returns the array it wrote to."""

    def case(a, m, v, i, j):
        fn(a, m, v, i, j)
        return m[1:] * 2

    return case


def set_item(pick, key, value):
    """A case: pick(…)[key(…)] = value(…)."""

    @written
    def case(a, m, v, i, j):
        pick(a, m, v)[key(i, j)] = value(v, i)

    return case


def add_to_rows(a, m, v, i, j):
    m[i] += 1.5
    return m[0]


def subtract_at(a, m, v, i, j):
    np.subtract.at(m, i, v)
    np.maximum.at(v, j, 0.5)
    return v


WRITES = {
    "number": set_item(lambda a, m, v: v, lambda i, j: i, lambda v, i: 2.5),
    "int to float": set_item(lambda a, m, v: v, lambda i, j: i, lambda v, i: 2),
    "values": set_item(lambda a, m, v: v, lambda i, j: i, lambda v, i: i * 0.5),
    "row to rows": set_item(lambda a, m, v: m, lambda i, j: i, lambda v, i: v),
    "columns": set_item(lambda a, m, v: m, lambda i, j: (slice(None), i), lambda v, i: i * 1.0),
    "pairs": set_item(lambda a, m, v: m, lambda i, j: (i, i), lambda v, i: 9.0),
    "apart": set_item(lambda a, m, v: a, lambda i, j: (i, slice(None), i), lambda v, i: 3.0),
    "through a view": set_item(lambda a, m, v: m[::-1, 1:].T, lambda i, j: i, lambda v, i: 4.0),
    "table": set_item(lambda a, m, v: v, lambda i, j: j, lambda v, i: v[:3]),
    "leading ones": set_item(lambda a, m, v: v, lambda i, j: i, lambda v, i: v[None, :5]),
    "add to rows": add_to_rows,
    "ufunc.at": subtract_at,
    "add.at pairs": written(lambda a, m, v, i, j: np.add.at(m, (i, i), 1.0)),
    "put": written(lambda a, m, v, i, j: np.put(m, i, [1.0, 2.0])),
    "put method": written(lambda a, m, v, i, j: m.put(i, 7.0)),
    "along": written(lambda a, m, v, i, j: np.put_along_axis(m, np.argmax(m, 1)[:, None], 0.0, 1)),
    "sort": written(lambda a, m, v, i, j: m.sort(axis=1)),
    "own values": written(lambda a, m, v, i, j: v.__setitem__(i, v[i[::-1]])),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name, way):
    if name == "leading ones" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy reads what it has written already")
    whole(way, WRITES[name], (*data(1), INDEX, TABLE))


def shrink(v):
    total = 0.0
    x = v
    for _ in range(3):
        x = x[x > x.mean()]
        total = total + x.sum()
    return total


def masked_update(m):
    chosen = m > 0.5
    m[chosen] = -m[chosen]
    m[m < -1] += 2.0
    return m


def rows_of_mask(m):
    keep = m[:, 0] > 0
    m[keep] = m[keep] * 2 + 1
    return m[keep, 1:3]


def masked_twice(v):
    keep, valid = v > 0, v < 1
    chosen = v[keep] * 2
    v = v.copy()
    v[keep & valid] = chosen[valid[keep]]
    chosen[valid[keep]] = -1.0
    chosen[valid[keep]] += v[keep & valid]
    return v, chosen, np.outer(chosen, chosen)[valid[keep], :1]


MASKS = {
    "one axis": lambda a, m, v: v[v > 0],
    "all axes": lambda a, m, v: m[m > 0],
    "three axes": lambda a, m, v: a[a > 0.5],
    "rows": lambda a, m, v: m[m[:, 0] > 0],
    "columns": lambda a, m, v: m[:, v > 0],
    "two of three": lambda a, m, v: a[a[:, :, 0] > 0],
    "with an index": lambda a, m, v: m[m[:, 0] > 0, np.argmax(m[m[:, 0] > 0], axis=1)],
    "sum": lambda a, m, v: v[v > 0].sum(),
    "mean": lambda a, m, v: v[v > 0].mean() * np.std(v[v < 9]),
    "extremes": lambda a, m, v: (v[v > 0].max(), v[v > 0].argmin(), m[m < 1].min()),
    "arithmetic": lambda a, m, v: v[v > 0] * 2 + np.sqrt(v[v > 0]),
    "masks of masks": lambda a, m, v: shrink(v),
    "masks of a size that a mask decides": lambda a, m, v: masked_twice(v),
    "compress": lambda a, m, v: np.compress(v > 0, m, axis=1),
    "extract": lambda a, m, v: np.extract(m > 0, m),
    "flatnonzero": lambda a, m, v: np.flatnonzero(m > 0),
    "argwhere": lambda a, m, v: np.argwhere(m > 0),
    "where": lambda a, m, v: np.where(v > 0)[0],
    "count": lambda a, m, v: np.count_nonzero(m > 0),
    "count rows": lambda a, m, v: np.count_nonzero(m > 0, axis=0),
    "where pairs": lambda a, m, v: m[np.nonzero(m > 0)] * 3,
    "set number": lambda a, m, v: m.__setitem__(m > 0, 0.0),
    "set rows": lambda a, m, v: m.__setitem__(m[:, 1] > 0, v),
    "set columns": lambda a, m, v: m.__setitem__((slice(None), v > 0), 1.0),
    "update": lambda a, m, v: masked_update(m),
    "rows updated": lambda a, m, v: rows_of_mask(m),
    "unique": lambda a, m, v: np.unique(np.round(m)),
    "sorted mask": lambda a, m, v: np.sort(v[v > 0]),
    "cumulative": lambda a, m, v: np.cumsum(v[v > 0]),
    "outer": lambda a, m, v: v[v > 0][:, None] * v,
    "constant mask": lambda a, m, v: v[np.array([True, False] * 3 + [True])],
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name, way):
    whole(way, MASKS[name], *[data(seed) for seed in (2, 3, 4)])  # other numbers of true elements


@pytest.mark.ways(*ways.BACKENDS)
def test_masks_without_and_with_all_elements(way):
    fn = way.compile(lambda v: (v[v > 0] * 2, (v[v > 0]).sum()))
    for v in (-np.ones(4), np.ones(4), np.array([1.0, -1.0, 2.0, -2.0])):
        got, total = fn(v)
        np.testing.assert_array_equal(got, v[v > 0] * 2)
        assert total == v[v > 0].sum()
    assert len(fn.specializations) == 1


@pytest.mark.ways(*ways.BACKENDS)
def test_a_mask_of_another_size(way):
    def f(v, w):
        v[v < 0] = 0.0
        return w[(v > 1)[v > 0]]

    fn, v = way.compile(f), np.array([2.0, 1.0, 3.0, -1.0])
    np.testing.assert_array_equal(fn(v.copy(), np.arange(3.0)), [0.0, 2.0])
    v[2] = -3.0
    with pytest.raises(IndexError, match="boolean index did not match"):
        fn(v, np.arange(3.0))
    np.testing.assert_array_equal(v, [2.0, 1.0, 0.0, 0.0])


COUNTS = {
    "bincount": lambda i, w: np.bincount(i),
    "minlength": lambda i, w: np.bincount(i, minlength=9),
    "weights": lambda i, w: np.bincount(i, w),
    "unique": lambda i, w: np.unique(i),
    "unique with counts": lambda i, w: np.unique(i, return_counts=True),
    "unique with all": lambda i, w: np.unique(i, True, True, True),
    "repeat": lambda i, w: np.repeat(w, i),
    "searchsorted": lambda i, w: np.searchsorted(np.sort(w), w, side="right"),
    "digitize": lambda i, w: np.digitize(w, np.array([-1.0, 0.0, 1.0])),
    "histogram": lambda i, w: np.histogram(w, 4),
    "histogram in a range": lambda i, w: np.histogram(w, 4, (-2.0, 2.0)),
    "histogram by edges": lambda i, w: np.histogram(w, np.array([-2.0, 0.0, 0.5, 3.0])),
    "argsort": lambda i, w: w[np.argsort(w)],
    "lexsort": lambda i, w: np.lexsort((w, i)),
    "partition": lambda i, w: np.sort(np.partition(w, 3)[:3]),
    "interp": lambda i, w: np.interp(w, np.array([-1.0, 0.0, 2.0]), np.array([1.0, 0.0, 5.0])),
    "median": lambda i, w: np.median(w),
    "median of a mask": lambda i, w: np.median(w[w > -9]),
    "percentiles": lambda i, w: np.percentile(w, [5, 95]) + np.quantile(w, 0.5),
    "open grid": lambda i, w: np.add(*np.ogrid[:3, :4]) + w[:4],
    "roll": lambda i, w: np.roll(w, 2) + np.diff(w, prepend=0.0),
    "grid": lambda i, w: np.meshgrid(w, w[:2]),
    "triangles": lambda i, w: np.tril(np.outer(w, w)) + np.triu(np.outer(w, w), 1),
    "trace": lambda i, w: np.trace(np.outer(i, i)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counting_sorting_searching(name, way):
    rng = np.random.default_rng(9)
    whole(way, COUNTS[name], *[(rng.integers(0, 5, 12), rng.integers(-90, 90, 12) / 32) for _ in range(3)])


ERRORS = {
    "too large": (lambda v, i: v[i], np.array([0, 99])),
    "too small": (lambda v, i: v[i], np.array([-8])),
    "written": (lambda v, i: v.__setitem__(i, 1.0), np.array([1, 99, 2])),
    "floats": (lambda v, i: v[i], np.array([0.5])),
    "too many": (lambda v, i: v[i, i], np.array([0])),
    "mask": (lambda v, i: v[i > 0], np.array([0, 1])),
    "values": (lambda v, i: v.__setitem__(i, np.ones(3)), np.array([0, 1])),
    "values for a mask": (lambda v, i: v.__setitem__(v > 99, np.ones(3)), np.array([0, 1])),
    "bincount": (lambda v, i: np.bincount(i), np.array([3, -2])),
    "repeat": (lambda v, i: np.repeat(v[:2], i), np.array([3, -2])),
    "choose": (lambda v, i: np.choose(i, [v[:2], v[:2]]), np.array([0, 5])),
    "take": (lambda v, i: np.take(v, i), np.array([0, 50])),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_numpys(name, way):
    fn, index = ERRORS[name]
    way.check(fn, (np.arange(7.0), index))


@pytest.mark.parametrize("bound", [np.True_, 1.5, np.float64(2), "a", 10**30, -(10**30), np.int8(2)], ids=repr)
def test_bounds_of_slices_in_a_try(bound):
    """An exception that capture raises reaches the caller where a clause of the function runs for it."""

    def outcome(function, take):
        log = []
        try:
            return function(np.arange(7.0), log, take), log
        except (TypeError, OverflowError, ValueError) as error:
            return repr(error), log

    def fn(v, log, take):
        try:
            for k in range(len(v)):
                if v[k] > 2:
                    v = take(v * 2)
                    break
        finally:
            log.append(v.sum())
        return v

    for take in (lambda v: v[bound:], lambda v: v[:bound], lambda v: v[-2:bound]):
        testing.assert_same(outcome(cinductor.compile(fn, dynamic=True), take), outcome(fn, take))


def test_a_later_call_out_of_range(way):
    """The first call is compiled. In the second, NumPy raises the exception, and nothing is written."""

    def fn(v, w, i):
        w += 1
        v[i] = w[i] * 2
        return v.sum()

    calls = [(np.arange(7.0), np.arange(7.0), np.array(i)) for i in ([0, 1], [2, 40], [3, 3])]
    compiled = way.check(fn, *calls)
    assert way.has_break or len(compiled.specializations) == 1


def random_key(rng, shape):
    """A key with at least one array in it, for an array of that shape."""
    ndim = len(shape)
    key, axis, indices = [], 0, 0
    index_shape = tuple(rng.integers(1, 4, rng.integers(1, 3)))
    while axis < ndim:
        kind = rng.integers(0, 7)
        if kind == 0 and indices == 0 and axis + 2 <= ndim and rng.random() < 0.3:
            key.append(rng.random(shape[axis : axis + 2]) > 0.5)
            indices, axis = 2, axis + 2
            continue
        if kind <= 3 and indices < 3:
            part = (
                index_shape[rng.integers(0, len(index_shape)) :]
                if rng.random() < 0.3
                else index_shape
            )
            key.append(rng.integers(-shape[axis], shape[axis], part))
            indices += 1
        elif kind == 4:
            key.append(slice(None, None, int(rng.choice([1, -1, 2]))))
        elif kind == 5:
            key.append(slice(int(rng.integers(0, 2)), None))
        elif indices == 0:
            key.append(int(rng.integers(0, shape[axis])))
        else:
            key.append(slice(None))
        axis += 1
        if rng.random() < 0.1:
            key.append(None)
    if not any(isinstance(k, np.ndarray) for k in key):
        key[0] = rng.integers(-shape[0], shape[0], index_shape)
    return tuple(key)


@pytest.mark.ways("broken", *[name for name in ways.BACKENDS if name != "c"])
@pytest.mark.parametrize("seed", range(60))
def test_random_keys(seed, way):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 6, rng.integers(1, 4)))
    key = random_key(rng, shape)
    arrays = [k for k in key if isinstance(k, np.ndarray)]

    def rebuild(given):
        given = iter(given)
        return tuple(next(given) if isinstance(k, np.ndarray) else k for k in key)

    def read(x, given):
        return x[rebuild(given)] + 1

    def write(x, value, given):
        x[rebuild(given)] = value
        x[rebuild(given)] += 1
        return x

    x = rng.standard_normal(shape)
    if rng.random() < 0.3:
        x = np.asfortranarray(x)
    way.check(read, (x, arrays))
    try:
        size = x[key].shape
    except IndexError:
        return
    way.check(write, (x, rng.standard_normal(size[rng.integers(0, len(size) + 1) :]), arrays))


def test_views_of_results_of_any_size(way):
    """A replay could not know their position in the result."""

    def fn(m):
        rows, columns = np.nonzero(m > 0)
        return rows, columns, m[m > 0][::-1]

    way.check(fn, *[(data(seed)[1],) for seed in range(3)])


def an_element(a, v):
    a[0] = v


def an_element_of_a_matrix(a, v):
    a.reshape(1, -1)[0, 0] = v


def elements_in_a_loop(a, v):
    for i in range(len(a)):
        a[i] = v


def every_element(a, v):
    a.fill(v)


def a_part_of_one(a, v):
    a[:1] = v
    a[..., 0] = v


@pytest.mark.parametrize("size", [1, 2, 0])
@pytest.mark.parametrize(
    "fn", [an_element, an_element_of_a_matrix, elements_in_a_loop, every_element, a_part_of_one]
)
def test_an_array_of_one_element_is_one_where_numpy_says_so(fn, size):
    """NumPy 2.4 no longer accepts it as an index."""
    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(2):
        ours, theirs = np.zeros(3), np.zeros(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, raised = testing.outcome(compiled, (ours, np.ones(size)))
            want, expected = testing.outcome(fn, (theirs, np.ones(size)))
        assert (type(raised), str(raised), got) == (type(expected), str(expected), want)
        np.testing.assert_array_equal(ours, theirs)
