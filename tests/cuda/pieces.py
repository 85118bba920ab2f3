"""Runs functions whose arrays are filled in pieces with backend "cuda" and compares them with NumPy; prints one line for
each. Sizes are constant, because only then pieces are forwarded to their readers.
"""

import warnings

import numpy as np

import cinductor

OPTIONS = {"offload": "always", "choices": "doubled_bytes=1"}


def rolled(x):
    """By one piece at positions modulo a period; the last one is of a view, the fourth by no period."""
    y = np.concatenate([x[:, 4:], x[:, :4] * 2], axis=1)
    return np.roll(x, 1, axis=0) + np.roll(x, -3, axis=1), np.roll(x, (2, -1), axis=(0, 1)) * 2 - np.roll(x, 5), y + x, np.roll(x.T, 1, axis=0) + x.T


def padded(x):
    y = np.pad(x, ((1, 2), (0, 3))) * 2 + 1
    return y, np.pad(x, 2, mode="edge").sum(axis=1), np.pad(x, 2, mode="reflect")[::2, 1:-1] * 3, np.cumsum(np.pad(x, 1, mode="wrap") + 1, axis=0)


def gradients(x):
    return np.gradient(x, axis=0) + np.gradient(x, axis=1), (np.stack([x, x * 2, x + 1], axis=1) + x[:, None]).sum(axis=1)


def stored_between(x):
    """The operands of the pieces are stored before them."""
    y = np.roll(x, 1, axis=0)
    x[2] = 7
    return y * 2 + x


def automaton(x):
    """A loop whose last statement stores what the pieces read."""
    g = (x > 0.6).astype(np.int32)
    for _ in range(9):
        n = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)) - g
        g = ((n == 3) | ((g == 1) & (n == 2))).astype(np.int32)
    return g


def upwind(x):
    y = x.copy()
    for _ in range(8):
        d = np.empty_like(y)
        d[1:] = y[1:] - y[:-1]
        d[0] = y[0]
        y = y - 0.1 * d
        y[:, 0] = 3
    x[:] = np.roll(x, 1, axis=1) * 0.5
    return y


def main():
    warnings.simplefilter("ignore")
    for function in (rolled, padded, gradients, stored_between, automaton, upwind):
        x = np.random.default_rng(0).random((7, 9))
        mine, theirs = x.copy(), x.copy()
        want = function(theirs)
        got = cinductor.compile(function, device="cuda", backend="cuda", options=OPTIONS)(mine)
        pairs = [*zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True), (mine, theirs)]
        is_right = all(np.asarray(a).dtype == b.dtype and np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs)
        print("ok" if is_right else "fail", function.__name__, flush=True)


if __name__ == "__main__":
    main()
