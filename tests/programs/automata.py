"""Cells that look at their neighbours."""

import numpy as np


def life(board, steps):
    """Conway's game on a torus, neighbours by roll."""
    for _ in range(steps):
        count = sum(
            np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        board = ((count == 3) | ((board == 1) & (count == 2))).astype(board.dtype)
    return board


def life_by_slices(board, steps):
    """On a board with a dead rim, in place."""
    for _ in range(steps):
        n = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2]
            + board[1:-1, 2:] + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )  # fmt: skip
        birth = (n == 3) & (board[1:-1, 1:-1] == 0)
        survive = ((n == 2) | (n == 3)) & (board[1:-1, 1:-1] == 1)
        board[...] = 0
        board[1:-1, 1:-1][birth | survive] = 1


def life_by_cells(board):
    """One step, cell by cell, with if and elif."""
    rows, columns = board.shape
    new = np.zeros_like(board)
    for i in range(rows):
        for j in range(columns):
            alive = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        alive += board[(i + di) % rows, (j + dj) % columns]
            if board[i, j] and alive in (2, 3):
                new[i, j] = 1
            elif not board[i, j] and alive == 3:
                new[i, j] = 1
    return new


def elementary(row, rule, steps):
    """Wolfram's rules of three cells, by a table of eight bits."""
    table = (rule >> np.arange(8)) & 1
    history = np.zeros((steps + 1, row.size), np.uint8)
    history[0] = row
    for t in range(steps):
        left, right = np.roll(history[t], 1), np.roll(history[t], -1)
        history[t + 1] = table[4 * left + 2 * history[t] + right]
    return history


def elementary_by_cells(row, rule, steps):
    """The same, element by element, in two buffers that are swapped."""
    n = len(row)
    new = np.zeros_like(row)
    for _ in range(steps):
        for i in range(n):
            code = row[i - 1] * 4 + row[i] * 2 + row[(i + 1) % n]
            new[i] = (rule >> code) & 1
        row, new = new, row
    return row


def sandpile(grid):
    """Piles of four and more fall to their neighbours until all are low; how often that took."""
    falls = 0
    while np.any(grid >= 4):
        over = grid >= 4
        grid[over] -= 4
        grid[1:, :] += over[:-1, :]
        grid[:-1, :] += over[1:, :]
        grid[:, 1:] += over[:, :-1]
        grid[:, :-1] += over[:, 1:]
        falls += int(over.sum())
    return falls


def forest_fire(forest, steps):
    """0 is bare, 1 a tree, 2 fire; np.select decides what follows."""
    for _ in range(steps):
        fire = np.pad(forest == 2, 1)
        near = fire[:-2, 1:-1] | fire[2:, 1:-1] | fire[1:-1, :-2] | fire[1:-1, 2:]
        forest = np.select([forest == 2, (forest == 1) & near], [0, 2], forest)
    return forest


def ant(grid, steps):
    """Langton's: turns by the colour under it, paints, walks."""
    i = j = grid.shape[0] // 2
    di, dj = 0, 1
    for _ in range(steps):
        if grid[i, j]:
            di, dj = dj, -di
        else:
            di, dj = -dj, di
        grid[i, j] = not grid[i, j]
        i, j = (i + di) % grid.shape[0], (j + dj) % grid.shape[1]
    return i, j


def lattice_boltzmann(f, omega, steps):
    """Nine directions on a torus: collide, then stream."""
    cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
    cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    weight = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    for _ in range(steps):
        rho = f.sum(axis=0)
        ux = np.tensordot(cx, f, axes=1) / rho
        uy = np.tensordot(cy, f, axes=1) / rho
        square = 1.5 * (ux**2 + uy**2)
        for k in range(9):
            cu = 3.0 * (cx[k] * ux + cy[k] * uy)
            f[k] += omega * (rho * weight[k] * (1 + cu + 0.5 * cu**2 - square) - f[k])
            f[k] = np.roll(np.roll(f[k], cx[k], axis=0), cy[k], axis=1)
    return f


def majority(cells, steps):
    """Votes of five neighbours with zeros outside; stops early when nothing moves."""
    for step in range(steps):
        padded = np.zeros(cells.size + 4, cells.dtype)
        padded[2:-2] = cells
        votes = np.lib.stride_tricks.sliding_window_view(padded, 5).sum(axis=1)
        new = (votes > 2).astype(cells.dtype)
        if (new == cells).all():
            return new, step
        cells = new
    return cells, steps


PROGRAMS = [
    (life, lambda n, rng: (rng.integers(0, 2, (n, n + 1)), 3), (3, 6, 20), 0),
    (life_by_slices, lambda n, rng: (rng.integers(0, 2, (n, n), np.int8), 3), (4, 7, 20), 0),
    (life_by_cells, lambda n, rng: (rng.integers(0, 2, (n, n)),), (3, 4, 6), 0),
    (elementary, lambda n, rng: (rng.integers(0, 2, n, np.uint8), 110, 5), (4, 9, 40), 0),
    (elementary_by_cells, lambda n, rng: (rng.integers(0, 2, n), 30, 3), (4, 9, 20), 0),
    (sandpile, lambda n, rng: (rng.integers(0, 7, (n, n)),), (3, 4, 6), 0),
    (forest_fire, lambda n, rng: (rng.integers(0, 3, (n, n)), 3), (3, 6, 15), 0),
    (ant, lambda n, rng: (np.zeros((n, n), bool), 3 * n), (4, 6, 9), 0),
    (lattice_boltzmann, lambda n, rng: (rng.random((9, n, n)) + 0.5, 1.2, 2), (3, 5, 9), 1e-13),
    (majority, lambda n, rng: (rng.integers(0, 2, n), 4), (4, 9, 30), 0),
]
