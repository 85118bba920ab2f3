"""The heat equation on a plate that is larger than one process, in fused blocks with halos.

    pip install 'cinductor[dask]'
    python examples/heat_dask.py [size] [chunk]
"""

import sys

import dask.array as da
import numpy as np

import cinductor


def steps(u, rate=0.2, count=4):
    """Some time steps; the edges stay as they are."""
    for _ in range(count):
        v = u.copy()
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + rate * (around - 4 * u[1:-1, 1:-1])
        u = v
    return u, np.abs(u).max(), u.mean()


def main(size=400, chunk=150):
    plate = np.zeros((size, size))
    plate[size // 3 : size // 2, size // 4 : size // 2] = 100.0
    blocks = cinductor.dask.compile(steps)(da.from_array(plate, chunks=chunk))
    got = da.compute(*blocks)
    want = steps(plate)
    assert np.array_equal(got[0], want[0]) and got[1] == want[1] and np.isclose(got[2], want[2], rtol=1e-13)
    print(f"{blocks[0].numblocks[0] * blocks[0].numblocks[1]} blocks: maximum {got[1]:.3f}, mean {got[2]:.6f}, as NumPy's")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
