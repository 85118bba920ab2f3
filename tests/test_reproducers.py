"""Programs of a few lines that once went wrong, each as small as it could be made."""

import numpy as np
import pytest

import cinductor
from cinductor.capture import session
from cinductor.testing import check

ROWS = np.arange(12.0).reshape(3, 4) % 5


@pytest.fixture(autouse=True)
def pieces_are_compiled(monkeypatch):
    """However little work there is in them."""
    monkeypatch.setattr(session, "LITTLE_WORK", 0)


def same(fn, *arguments, **settings):
    """The function does as in NumPy."""
    return check(fn, *arguments, backend="interp", **settings)


def test_augmented_mask():
    """The copy that x[mask] gave was changed and never stored."""

    def program(x):
        x[x > 2] -= 2
        x[[0, 2], 1] += 10
        return x

    same(program, ROWS)


def test_augmented_view():
    def program(x):
        x[1:] *= 2
        x.T[1] += 1

    same(program, ROWS)


def test_roll_by_an_element():
    """np.broadcast, which np.roll iterates, had been given a one for every traced scalar."""

    def program(x, shifts):
        constants = np.array([0, -1])
        return np.roll(x, constants[1], axis=0), np.roll(x, shifts[0]), np.roll(x, shifts, axis=(0, 1))

    same(program, ROWS, np.array([2, -1]))


def test_items_of_broadcast():
    def program(x, y):
        pairs = np.broadcast(x, y)
        return pairs.shape, next(pairs), [a * b for a, b in pairs]

    same(program, ROWS, np.arange(4.0))


def test_broadcast_of_shapes_is_whole():
    def program(x, y):
        return np.cross(x, y), np.broadcast(x, y).shape

    same(program, ROWS[:, :3], ROWS[:, 1:], fullgraph=True)


def test_ufunc_at_with_two_indices():
    """The tuple of indices had been made one array."""

    def program(x, i):
        np.add.at(x, (i, i), 1.5)

    same(program, ROWS, np.array([0, 1, 1, 2]))


def test_default_backend_too():
    def program(x):
        x[x > 2] -= 2
        return np.roll(x, x.astype(int)[1, 0])

    assert isinstance(check(program, ROWS), type(cinductor.compile(program)))


def test_where_of_scalars_is_an_array():
    """It had been a NumPy scalar, as its operands are."""

    def program(x):
        total = x.sum()
        return np.where(total > 0, total, total + 1), total

    same(program, ROWS)
