"""Tables filled in order: alignments, foldings, knapsacks, paths through a trellis."""

import numpy as np


def edit_distance(a, b):
    """Levenshtein's distance of two sequences of codes."""
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    table[:, 0] = np.arange(len(a) + 1)
    table[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table[len(a), len(b)]


def edit_distance_by_masks(a, b):
    """The same without branches: costs are comparisons, minima are NumPy's."""
    previous = np.arange(b.size + 1)
    for i in range(a.size):
        current = np.empty_like(previous)
        current[0] = i + 1
        replaced = np.minimum(previous[:-1] + (a[i] != b), previous[1:] + 1)
        for j in range(b.size):
            current[j + 1] = np.minimum(replaced[j], current[j] + 1)
        previous = current
    return previous[-1]


def rna_folding(sequence):
    """Nussinov's maximum of nested pairs; bases are 0 to 3 and pair when they add up to 3."""
    n = sequence.shape[0]
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                match = 1 if sequence[i] + sequence[j] == 3 else 0
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + match)
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def knapsack(weights, values, capacity):
    """The best value in one table row, from the right so that each item is used once."""
    best = np.zeros(capacity + 1, dtype=values.dtype)
    for item in range(len(weights)):
        weight = int(weights[item])
        for room in range(capacity, weight - 1, -1):
            candidate = best[room - weight] + values[item]
            if candidate > best[room]:
                best[room] = candidate
    return best[capacity]


def knapsack_rows(weights, values, capacity):
    """The same a row at a time; then which items were taken."""
    n = weights.size
    table = np.zeros((n + 1, capacity + 1), np.int64)
    for i in range(n):
        w = weights[i]
        table[i + 1] = table[i]
        table[i + 1, w:] = np.maximum(table[i, w:], table[i, : capacity + 1 - w] + values[i])
    taken = np.zeros(n, bool)
    room = capacity
    for i in range(n - 1, -1, -1):
        if table[i + 1, room] != table[i, room]:
            taken[i] = True
            room -= weights[i]
    return table[n, capacity], taken


def longest_common_subsequence(a, b):
    """Its length, by if, elif and else on elements."""
    lengths = np.zeros((a.size + 1, b.size + 1), np.int16)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            if x == y:
                lengths[i + 1, j + 1] = lengths[i, j] + 1
            elif lengths[i, j + 1] >= lengths[i + 1, j]:
                lengths[i + 1, j + 1] = lengths[i, j + 1]
            else:
                lengths[i + 1, j + 1] = lengths[i + 1, j]
    return int(lengths[-1, -1])


def matrix_chain(sizes):
    """The cheapest order of multiplying a chain of matrices, by diagonals."""
    n = len(sizes) - 1
    cost = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = np.inf
            for k in range(i, j):
                cost[i, j] = np.minimum(cost[i, j], cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1])
    return cost[0, n - 1]


def needleman_wunsch(a, b, gap=-2):
    """Global alignment by anti-diagonals, whole slices at once."""
    n, m = a.size, b.size
    score = np.zeros((n + 1, m + 1), np.int64)
    score[:, 0] = gap * np.arange(n + 1)
    score[0, :] = gap * np.arange(m + 1)
    for d in range(2, n + m + 1):
        i = np.arange(max(1, d - m), min(n, d - 1) + 1)
        j = d - i
        match = np.where(a[i - 1] == b[j - 1], 1, -1)
        score[i, j] = np.maximum(score[i - 1, j - 1] + match, np.maximum(score[i - 1, j], score[i, j - 1]) + gap)
    return score


def time_warping(x, y):
    """The distance of two series that may be stretched."""
    table = np.full((x.size + 1, y.size + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(x.size):
        for j in range(y.size):
            step = min(min(table[i, j], table[i, j + 1]), table[i + 1, j])
            table[i + 1, j + 1] = abs(x[i] - y[j]) + step
    return table[-1, -1]


def viterbi(start, transition, emission, observed):
    """The likeliest path of hidden states, in logarithms, and its score."""
    steps, states = len(observed), len(start)
    score = np.log(start) + np.log(emission[:, observed[0]])
    back = np.zeros((steps, states), np.int64)
    for t in range(1, steps):
        all_scores = score[:, None] + np.log(transition)
        back[t] = np.argmax(all_scores, axis=0)
        score = all_scores.max(axis=0) + np.log(emission[:, observed[t]])
    path = np.empty(steps, np.int64)
    path[-1] = np.argmax(score)
    for t in range(steps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, np.max(score)


def coin_change(coins, amount):
    """In how many ways coins make an amount, in Python's own integers."""
    ways = [1] + [0] * amount
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return np.array(ways)


def largest_sum(x):
    """Kadane's largest sum of a run of elements, and where it ends."""
    best = current = x[0]
    end = 0
    for i in range(1, len(x)):
        current = x[i] if current < 0 else current + x[i]
        if current > best:
            best, end = current, i
    return best, end


def cheapest_seam(energy):
    """Seam carving: a path down an image that costs least, rows by slices."""
    rows, columns = energy.shape
    cost = energy.copy()
    for i in range(1, rows):
        above = np.full(columns + 2, np.inf)
        above[1:-1] = cost[i - 1]
        cost[i] += np.minimum(np.minimum(above[:-2], above[1:-1]), above[2:])
    seam = np.zeros(rows, dtype=np.intp)
    seam[-1] = cost[-1].argmin()
    for i in range(rows - 2, -1, -1):
        low = max(seam[i + 1] - 1, 0)
        seam[i] = low + cost[i, low : seam[i + 1] + 2].argmin()
    return seam


def words(n, rng):
    """Two sequences over four letters."""
    return rng.integers(0, 4, n), rng.integers(0, 4, n + 1)


def hidden(n, rng):
    """A hidden Markov model of three states and n observations."""
    rows = rng.random((3, 3)) + 0.1, rng.random((3, 4)) + 0.1
    return np.full(3, 1 / 3), *(r / r.sum(axis=1, keepdims=True) for r in rows), rng.integers(0, 4, n)


PROGRAMS = [
    (edit_distance, words, (3, 6, 10), 0),
    (edit_distance_by_masks, words, (3, 6, 12), 0),
    (rna_folding, lambda n, rng: (rng.integers(0, 4, n),), (3, 5, 8), 0),
    (knapsack, lambda n, rng: (rng.integers(1, 5, n), rng.integers(1, 50, n), 2 * n), (3, 5, 8), 0),
    (knapsack_rows, lambda n, rng: (rng.integers(1, 5, n), rng.integers(1, 50, n), 2 * n), (3, 5, 9), 0),
    (longest_common_subsequence, words, (3, 5, 9), 0),
    (matrix_chain, lambda n, rng: (rng.integers(2, 30, n + 1),), (3, 5, 7), 0),
    (needleman_wunsch, words, (3, 6, 10), 0),
    (time_warping, lambda n, rng: (rng.random(n), rng.random(n + 1)), (3, 5, 9), 0),
    (viterbi, hidden, (3, 6, 12), 1e-13),
    (coin_change, lambda n, rng: ([1, 2, 5], n), (5, 12, 40), 0),
    (largest_sum, lambda n, rng: (rng.random(n) - 0.5,), (3, 9, 30), 0),
    (cheapest_seam, lambda n, rng: (rng.random((n, n + 2)),), (3, 6, 12), 0),
]
