"""Paths, closures and ranks of graphs given as matrices or lists of edges."""

import numpy as np


def floyd_warshall(distance):
    """All shortest paths; a step offers one vertex to all pairs."""
    for k in range(distance.shape[0]):
        distance[:] = np.minimum(distance, distance[:, k, None] + distance[None, k, :])
    return distance


def floyd_by_rows(distance):
    """The same with np.add.outer and a loop over rows, on integers."""
    n = len(distance)
    for k in range(n):
        for i in range(n):
            distance[i] = np.minimum(distance[i], distance[i, k] + distance[k])


def floyd_by_elements(distance, via):
    """The same element by element, noting the vertex that made a path shorter."""
    n = distance.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = distance[i, k] + distance[k, j]
                if through < distance[i, j]:
                    distance[i, j] = through
                    via[i, j] = k


def transitive_closure(reach):
    """Warshall's, on booleans."""
    out = reach.copy()
    for k in range(out.shape[0]):
        out |= np.logical_and.outer(out[:, k], out[k, :])
    return out


def bellman_ford(edges, weights, count):
    """Shortest paths from vertex 0 over an edge list, until nothing changes."""
    distance = np.full(count, np.inf)
    distance[0] = 0.0
    for _ in range(count - 1):
        changed = False
        for (u, v), w in zip(edges, weights):
            if distance[u] + w < distance[v]:
                distance[v] = distance[u] + w
                changed = True
        if not changed:
            break
    return distance


def dijkstra(weights):
    """Shortest paths from vertex 0 in a dense graph, nearest open vertex first."""
    n = weights.shape[0]
    distance = np.full(n, np.inf)
    open_ = np.ones(n, dtype=bool)
    distance[0] = 0
    for _ in range(n):
        u = np.argmin(np.where(open_, distance, np.inf))
        open_[u] = False
        distance = np.minimum(distance, distance[u] + weights[u])
    return distance


def page_rank(links, damping=0.85, tolerance=1e-3):
    """Power iteration on a column-stochastic matrix."""
    n = links.shape[0]
    out = links.sum(axis=0)
    transition = links / np.where(out == 0, 1, out)
    rank = np.full(n, 1.0 / n)
    while True:
        new = damping * (transition @ rank) + (1.0 - damping) / n
        change = np.abs(new - rank).sum()
        rank = new
        if change < tolerance:
            break
    return rank


def breadth_first(adjacency, start):
    """Levels by frontiers: the frontier is a mask, the front's size decides when to stop."""
    level = np.full(adjacency.shape[0], -1)
    front = np.zeros(adjacency.shape[0], dtype=bool)
    front[start] = True
    depth = 0
    while front.any():
        level[front] = depth
        front = adjacency[front].any(axis=0) & (level < 0)
        depth += 1
    return level


def connected_components(edges, count):
    """Union by relabelling: each edge makes two labels one."""
    label = np.arange(count)
    for a, b in edges:
        low, high = min(label[a], label[b]), max(label[a], label[b])
        if low != high:
            label[label == high] = low
    return label, len(np.unique(label))


def spanning_tree(weights):
    """Prim's tree: the total weight and each vertex's parent."""
    n = weights.shape[0]
    parent = np.zeros(n, np.int64)
    nearest = weights[0].copy()
    inside = np.zeros(n, bool)
    inside[0] = True
    total = 0.0
    for _ in range(n - 1):
        v = int(np.where(inside, np.inf, nearest).argmin())
        total += nearest[v]
        inside[v] = True
        closer = (weights[v] < nearest) & ~inside
        parent[closer] = v
        nearest[closer] = weights[v, closer]
    return total, parent


def symmetric(n, rng):
    """A complete graph's weights."""
    a = rng.random((n, n))
    return (a + a.T) / 2


PROGRAMS = [
    (floyd_warshall, lambda n, rng: (rng.random((n, n)),), (3, 6, 10), 0),
    (floyd_by_rows, lambda n, rng: (rng.integers(1, 100, (n, n), np.int32),), (3, 6, 9), 0),
    (floyd_by_elements, lambda n, rng: (rng.random((n, n)), np.full((n, n), -1)), (3, 4, 6), 0),
    (transitive_closure, lambda n, rng: (rng.random((n, n)) < 0.3,), (3, 6, 12), 0),
    (bellman_ford, lambda n, rng: (rng.integers(0, n, (2 * n, 2)), rng.random(2 * n), n), (3, 5, 8), 0),
    (dijkstra, lambda n, rng: (rng.random((n, n)),), (3, 6, 10), 0),
    (page_rank, lambda n, rng: ((rng.random((n, n)) < 0.4).astype(float),), (4, 8, 12), 1e-12),
    (breadth_first, lambda n, rng: (rng.random((n, n)) < 0.3, 0), (4, 8, 16), 0),
    (connected_components, lambda n, rng: (rng.integers(0, n, (n // 2, 2)), n), (4, 8, 14), 0),
    (spanning_tree, lambda n, rng: (symmetric(n, rng),), (3, 5, 8), 0),
]
