"""Compress a photograph to 16 colours with k-means, in ordinary NumPy, compiled with one line.

Writes before.png, after.png and explain.txt into the folder given as the first argument (default: the
current folder) and prints what each call cost.
"""

import statistics
import sys
import time
from pathlib import Path

import matplotlib.cbook
import matplotlib.image
import numpy as np

import cinductor


def kmeans_step(pixels, centres):
    """One step of Lloyd's algorithm: pixels (n, 3), centres (k, 3) -> new centres (k, 3), label of each pixel (n,)."""
    distance = np.sum((pixels[:, None, :] - centres[None, :, :]) ** 2, axis=-1)
    label = np.argmin(distance, axis=1)
    member = (label[:, None] == np.arange(len(centres))).astype(pixels.dtype)
    count = np.sum(member, axis=0)
    total = np.matmul(member.T, pixels)
    return total / np.maximum(count, 1)[:, None], label


fast_step = cinductor.compile(kmeans_step)  # the only line that differs


def timed(call, *args):
    """Seconds of call(*args), and its result."""
    start = time.perf_counter()
    result = call(*args)
    return time.perf_counter() - start, result


def quantize(step, pixels, centres, steps):
    """Runs steps of k-means; returns the time of each and the last (centres, labels)."""
    times = []
    for _ in range(steps):
        seconds, (centres, label) = timed(step, pixels, centres)
        times.append(seconds)
    return times, centres, label


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.cbook.get_sample_data("grace_hopper.jpg") as file:
        photo = matplotlib.image.imread(file, format="jpg")
    pixels = (photo.reshape(-1, 3) / 255).astype(np.float32)
    start = pixels[np.random.default_rng(0).choice(len(pixels), 16, replace=False)]

    first, _ = timed(fast_step, pixels, start)
    numpy_times, _, _ = quantize(kmeans_step, pixels, start, 5)
    times, centres, label = quantize(fast_step, pixels, start, 20)
    expected, expected_label = kmeans_step(pixels, start)
    found, found_label = fast_step(pixels, start)
    difference = float(np.abs(found - expected).max())
    moved = int(np.count_nonzero(found_label != expected_label))
    report = cinductor.explain(kmeans_step, pixels, start)

    numpy_ms, steady_ms = (1e3 * statistics.median(t) for t in (numpy_times, times))
    height, width, _ = photo.shape
    print(f"photograph                {width} x {height}, {len(pixels)} pixels, {len(start)} colours")
    print(f"NumPy, a step             {numpy_ms:9.2f} ms")
    print(f"cinductor, first call     {1e3 * first:9.2f} ms   (compile included)")
    print(f"cinductor, a step         {steady_ms:9.2f} ms")
    print(f"ratio                     {numpy_ms / steady_ms:9.1f} x")
    print(f"kernels                   {report.kernels_count:9d}")
    print(f"largest difference        {difference:9.2g}   ({moved} pixels labelled otherwise)")

    matplotlib.image.imsave(folder / "before.png", photo)
    matplotlib.image.imsave(folder / "after.png", np.clip(centres[label].reshape(photo.shape), 0, 1))
    (folder / "explain.txt").write_text(str(report))
    print(f"wrote {folder / 'before.png'}, {folder / 'after.png'}, {folder / 'explain.txt'}")


if __name__ == "__main__":
    main()
