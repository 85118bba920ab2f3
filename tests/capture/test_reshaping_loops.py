"""Tests loops that change the shape of an array without increasing its number of elements.

A pass of an FFT halves the rows and doubles the columns; a pyramid halves both. There must be one graph for all
iterations and one program for all sizes, equal to NumPy, also in the exceptions it raises.
"""

import numpy as np
import pytest
from test_open_sizes import agree, captures
from test_regions import nodes

import cinductor

SIZES = (8, 16, 64, 128, 4, 2, 1, 0, 7, 12, 96, 31)


def stockham(x):
    y = x.reshape(x.size, 1)
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        y = np.concatenate((y[:half] + y[half:], y[:half] - y[half:]), axis=1)
    return y.ravel()


def the_upper_half_first(x):
    y = x.reshape(x.size, 1) * 1.0
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        y = np.concatenate((y[half:] - y[:half], y[half:] * y[:half]), axis=1)
    return y, y.shape


def twiddled(x):
    y = x[:, None] * np.ones(1)
    while len(y) > 1:
        half = len(y) // 2
        turn = np.arange(y.shape[1]) / y.shape[1]
        even, odd = y[:half], y[half:] * turn
        y = np.concatenate((even + odd, even - odd), axis=1)
    return y


def interleaved(x):
    y = x.reshape(1, -1)
    while y.shape[1] > 1:
        even, odd = y[:, ::2], y[:, 1::2]
        y = np.vstack((even + odd, even - odd))
    return y


def in_batches(x):
    y = np.stack((x, x + 1, x * 2))[:, :, None]
    while y.shape[1] > 1:
        half = y.shape[1] // 2
        y = np.concatenate((y[:, :half] + y[:, half:], y[:, :half] - y[:, half:]), axis=2)
    return y


def halves_side_by_side(x):
    y = x[:, None] * np.ones(2)
    while len(y) > 1:
        half = len(y) // 2
        y = np.concatenate((y[:half], y[half : 2 * half]), axis=1)
    return y


def pyramid(x):
    image = x[:, None] * x[None, ::-1]
    while min(image.shape) > 1:
        rows = image[:-1:2] + image[1::2]
        image = 0.25 * (rows[:, :-1:2] + rows[:, 1::2])
    return image


def rows_then_columns(x):
    image = x[:, None] * x
    while image.shape[0] > 1:
        image = image[::2] + image[1::2]
        image = image[:, ::2] - image[:, 1::2]
    return image, image.shape


def cropped(x):
    y = x[:, None] + x
    while y.shape[0] > 2:
        y = y[1:-1, 1:-1] * 2
    return y


def regrouped(x):
    y, k = x.reshape(-1, 1), 1
    while k < x.size:
        y = y.reshape(-1, 2 * k)
        y = y + y.mean(axis=1, keepdims=True)
        k *= 2
    return y


def sums_of_longer_rows(x):
    y = x.reshape(-1, 1) * 1.0
    while y.shape[0] > 1:
        y = y.reshape(y.shape[0] // 2, 2 * y.shape[1])
        y = np.cumsum(y, axis=1)
    return y


def folded(x):
    while x.size > 1:
        x = x.reshape(2, -1).sum(0)
    return x


def folded_rows(x):
    y = np.outer(x, np.arange(3.0))
    while y.shape[0] > 1:
        y = y.reshape(2, -1, 3).sum(0)
    return y


def columns_by_halves(x):
    y = np.outer(np.arange(1.0, 4.0), x)
    while y.shape[1] > 1:
        y = y[:, ::2] + y[:, 1::2]
    return y


def with_its_twin(x):
    y, z = x.reshape(-1, 1) * 1.0, x.reshape(-1, 1) + 0.5
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        y, z = (
            np.hstack((y[:half] + z[half:], y[:half])),
            np.hstack((z[:half], z[half:] - y[:half])),
        )
    return y * z, y


def whole_numbers(x):
    y = (x * 10).astype(np.int32).reshape(-1, 1)
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        y = np.concatenate((y[:half] ^ y[half:], y[:half] + y[half:]), axis=1)
    return y


def until_it_is_small(x):
    y = x.reshape(-1, 1) * 1.0
    while y.shape[0] > 1 and y.sum() < 900.0:
        half = y.shape[0] // 2
        y = np.concatenate((y[:half] + y[half:], y[:half] * 0.5), axis=1)
    return y


def in_two_loops(x):
    total = np.zeros(3)
    for k in range(3):
        y = x.reshape(-1, 1) + k
        while y.shape[0] > 1:
            half = y.shape[0] // 2
            y = np.concatenate((y[:half] + y[half:], y[:half] - y[half:]), axis=1)
        total[k] = np.abs(y).sum()
    return total


def written_to(x):
    y = x.reshape(-1, 1) * 1.0
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        y = np.concatenate((y[:half] + y[half:], y[:half] - y[half:]), axis=1)
        y[0] += 1.0
        y[:, 0] *= 2.0
    y[:, 0] = 7.0
    return y


def views_of_it(x):
    y = x.reshape(-1, 1) * 1.0
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        y = np.concatenate((y[:half] + y[half:], y[:half] - y[half:]), axis=1)
    return y.T, y[:, ::2], y[0, -1:], y.reshape(-1)


PROGRAMS = [
    stockham,
    the_upper_half_first,
    twiddled,
    interleaved,
    in_batches,
    halves_side_by_side,
    pyramid,
    rows_then_columns,
    cropped,
    regrouped,
    sums_of_longer_rows,
    folded,
    folded_rows,
    columns_by_halves,
    with_its_twin,
    whole_numbers,
    until_it_is_small,
    in_two_loops,
    written_to,
    views_of_it,
]


def strides(value):
    parts = value if isinstance(value, tuple) else (value,)
    return [a.strides for a in parts if isinstance(a, np.ndarray) and a.size]


def raises_nothing(fn, x):
    try:
        return strides(fn(x))
    except (ValueError, IndexError):
        return None


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", PROGRAMS)
def test_one_program_for_all_sizes(fn, backend):
    compiled = cinductor.compile(fn, dynamic=True, backend=backend)
    for n in SIZES:
        x = np.arange(n) + 0.5
        agree(compiled, x)
        if (want := raises_nothing(fn, x)) is not None:
            assert strides(compiled(x)) == want, n
    assert captures(compiled) == 1, compiled._cinductor_job.reasons
    assert any("while captured" in r for r in map(str, compiled._cinductor_job.last.regions))


@pytest.mark.parametrize("fn", PROGRAMS)
def test_powers_of_two_need_no_numpy(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in (8, 2, 4, 64, 256):
        compiled(np.arange(n) + 0.5)
    assert captures(compiled) == 1 and compiled.failed_checks == 0


@pytest.mark.parametrize("fn", PROGRAMS)
def test_a_graph_of_known_sizes_does_not_grow(fn):
    counts = []
    for n in (64, 1024 if fn not in (pyramid, rows_then_columns, cropped) else 128):
        counts.append(nodes(fn, np.arange(n) + 0.5))
    assert counts[0] == counts[1]


def limited(x, k):
    y = x.reshape(x.size, 1) * 1.0
    for _ in range(k):
        half = y.shape[0] // 2
        y = np.hstack((y[:half] + y[half:], y[:half] - y[half:]))
    return y


def swapped(x, k):
    a = x[:, None] * np.arange(1.0, 4.0)
    for _ in range(k):
        a = np.ascontiguousarray(a.T) + 1
    return a


def handed_round(x, k):
    a = x[:, None, None] * np.ones((2, 3))
    for _ in range(k):
        a = np.ascontiguousarray(a.transpose(1, 2, 0)) * 2
    return a


@pytest.mark.parametrize("fn", [limited, swapped, handed_round])
def test_a_number_of_iterations(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in (8, 64, 0, 1, 2, 7):
        for k in (3, 1, 2, 6, 0):
            agree(compiled, np.arange(n) + 0.5, k)
    assert captures(compiled) == 1, compiled._cinductor_job.reasons


def first_iteration_only(x, k):
    y = x[:, None] * np.ones(4)
    for _ in range(k):
        y = y[:3, :3] + 1.0
    return y


def first_iterations_only(x, k):
    y = x[:, None] * np.ones(4)
    for _ in range(k):
        y = y[: max(y.shape[0] - 1, 3), :] + 1.0
    return y


def grows_in_odd_iterations(x, k):
    y = x[:, None] * np.ones(4)
    for i in range(k):
        y = np.hstack((y, y)) if i % 2 else y[:, :2] + y[:, 2:]
    return y


def rounded_up(x, k):
    y = x[:, None] * np.ones(2)
    for _ in range(k):
        half = (y.shape[0] + 1) // 2
        y = np.hstack((y[:half], y[-half:]))
    return y


def in_fortrans_order(x, k):
    y = np.asfortranarray(x[:, None] * np.ones(2))
    for _ in range(k):
        half = y.shape[0] // 2
        y = np.asfortranarray(np.hstack((y[:half], y[half : 2 * half])))
    return y


def another_order_in_each_iteration(x, k):
    y = x[:, None] * np.arange(1.0, 4.0)
    for _ in range(k):
        y = y.T * 1.5
    return y


@pytest.mark.parametrize("dynamic", [True, None, False])
@pytest.mark.parametrize(
    "fn",
    [
        first_iteration_only,
        first_iterations_only,
        grows_in_odd_iterations,
        rounded_up,
        in_fortrans_order,
        another_order_in_each_iteration,
    ],
)
def test_right_however_they_change(fn, dynamic):
    compiled = cinductor.compile(fn, dynamic=dynamic, backend="interp")
    for n in (8, 20, 0, 1, 2, 3, 7):
        for k in (12, 1, 0, 3):
            x = np.arange(n) + 0.5
            agree(compiled, x, k)
            if (want := raises_nothing(lambda x, k=k: fn(x, k), x)) is not None:
                assert strides(compiled(x, k)) == want


def turned(x, k):
    y = x[:, None] * np.arange(1.0, 4.0)
    for _ in range(k):
        y = y.T * 1.5
    return y, y.T


def turned_alone(x, k):
    y = x[:, None] * np.arange(1.0, 4.0)
    for _ in range(k):
        y = y.T
    return y


def turned_with_its_sums(x, k):
    y, sums = x[:, None] * np.arange(1.0, 4.0), np.zeros(1)
    for i in range(k):
        y = (y + i).T
        sums = sums + y[0].sum()
    return y, sums


@pytest.mark.parametrize("fn", [turned, turned_alone, turned_with_its_sums])
def test_an_order_by_turns(fn):
    """The stride order alternates: one program for an even number of iterations, one for an odd."""
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in (8, 20, 0, 1, 2, 3):
        for k in (9, 3, 1, 2, 6, 0):
            x = np.arange(n) + 0.5
            agree(compiled, x, k)
            if n > 1:
                assert strides(compiled(x, k)) == strides(fn(x, k)), (n, k)
    assert captures(compiled) <= 2, compiled._cinductor_job.reasons
    assert str(compiled._cinductor_job.last.regions[0]).endswith("for captured")


def test_a_view_of_one_row_lies_as_numpys():
    compiled = cinductor.compile(lambda x: (x[:, None] * np.arange(3.0)).T, dynamic=True)
    for n in (8, 1, 2):
        assert compiled(np.ones(n)).strides == (8, 24)
