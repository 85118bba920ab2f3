"""Small neural networks, forwards and backwards."""

import numpy as np


def relu(x):
    """The positive part."""
    return np.maximum(x, 0)


def softmax(x):
    """Along the last axis, shifted so that nothing overflows."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def perceptrons(x, layers):
    """A forward pass through a list of (weights, bias)."""
    for k, (w, b) in enumerate(layers):
        x = x @ w + b
        if k + 1 < len(layers):
            x = relu(x)
    return softmax(x)


def train(x, y, w1, w2, rate, epochs):
    """Two layers by gradient descent, weights changed in place; the loss of each epoch."""
    losses = []
    for _ in range(epochs):
        hidden = np.tanh(x @ w1)
        out = 1.0 / (1.0 + np.exp(-(hidden @ w2)))
        error = out - y
        losses.append(float(np.mean(error**2)))
        grad_out = error * out * (1 - out)
        grad_hidden = (grad_out @ w2.T) * (1 - hidden**2)
        w2 -= rate * hidden.T @ grad_out
        w1 -= rate * x.T @ grad_hidden
    return losses


def perceptron_rule(x, y, rounds):
    """Rosenblatt's: a mistake moves the weights; stops after a round without one."""
    w = np.zeros(x.shape[1] + 1)
    for _ in range(rounds):
        mistakes = 0
        for features, target in zip(x, y):
            guess = 1 if w[0] + features @ w[1:] > 0 else -1
            if guess != target:
                w[0] += target
                w[1:] += target * features
                mistakes += 1
        if not mistakes:
            break
    return w


def convolution_layer(image, kernels, bias):
    """Channels last, loops over the output's pixels."""
    k = kernels.shape[0]
    h, w = image.shape[1] - k + 1, image.shape[2] - k + 1
    out = np.empty((image.shape[0], h, w, kernels.shape[3]), dtype=np.float32)
    for i in range(h):
        for j in range(w):
            patch = image[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(patch * kernels[np.newaxis], axis=(1, 2, 3))
    return relu(out + bias)


def max_pool(x):
    """Two by two, by loops over windows."""
    out = np.empty((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]), x.dtype)
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def little_lenet(images, kernels, bias, w, b):
    """Convolution, pooling, a dense layer, the winning class."""
    x = max_pool(convolution_layer(images, kernels, bias))
    return np.argmax(softmax(x.reshape(x.shape[0], -1) @ w + b), axis=1)


def attention(q, k, v, mask):
    """Scaled dot products under a causal mask."""
    scores = np.einsum("hid,hjd->hij", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(mask, scores, -1e9)
    return softmax(scores) @ v


def batch_norm(x, gamma, beta, mean, var, momentum=0.9, eps=1e-5):
    """Normalises a batch and updates the running statistics it was given."""
    mu, sigma = x.mean(axis=0), x.var(axis=0)
    mean *= momentum
    mean += (1 - momentum) * mu
    var *= momentum
    var += (1 - momentum) * sigma
    return gamma * (x - mu) / np.sqrt(sigma + eps) + beta


def elman(inputs, w_in, w_state, state):
    """A recurrent net over a sequence; all states stacked."""
    states = []
    for x in inputs:
        state = np.tanh(w_in @ x + w_state @ state)
        states.append(state)
    return np.stack(states)


def long_short_term(inputs, w, u, b, hidden, cell):
    """A memory cell with its four gates in one product."""
    n = hidden.shape[0]
    for t in range(inputs.shape[0]):
        z = w @ inputs[t] + u @ hidden + b
        gates = 1 / (1 + np.exp(-z[: 3 * n]))
        i, f, o = gates[:n], gates[n : 2 * n], gates[2 * n :]
        cell = f * cell + i * np.tanh(z[3 * n :])
        hidden = o * np.tanh(cell)
    return hidden, cell


def hopfield(patterns, state, limit):
    """Recall of stored patterns: units change one by one until none does."""
    n = state.size
    w = patterns.T @ patterns / n
    np.fill_diagonal(w, 0)
    for sweep in range(limit):
        before = state.copy()
        for i in range(n):
            state[i] = 1 if w[i] @ state >= 0 else -1
        if np.all(before == state):
            return sweep
    return -1


class Adam:
    """An optimiser with its state in attributes."""

    def __init__(self, size, rate=0.1):
        self.rate, self.count = rate, 0
        self.m, self.v = np.zeros(size), np.zeros(size)

    def step(self, parameters, gradient):
        """Changes the parameters in place."""
        self.count += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        m = self.m / (1 - 0.9**self.count)
        v = self.v / (1 - 0.999**self.count)
        parameters -= self.rate * m / (np.sqrt(v) + 1e-8)


def logistic_regression(x, y, steps):
    """Fitted by an optimiser that is an object made in the call."""
    w = np.zeros(x.shape[1])
    optimiser = Adam(w.size)
    for _ in range(steps):
        p = 1 / (1 + np.exp(-x @ w))
        optimiser.step(w, x.T @ (p - y) / len(y))
    return w


def self_organising_map(weights, samples, rate, width):
    """Kohonen's map on a line: the nearest unit and its neighbours move to each sample."""
    units = np.arange(len(weights))
    for x in samples:
        winner = np.argmin(((weights - x) ** 2).sum(axis=1))
        pull = rate * np.exp(-((units - winner) ** 2) / (2 * width**2))
        weights += pull[:, None] * (x - weights)
    return weights


def layers(n, rng):
    """Weights and biases of a net n -> 4 -> 4 -> 3."""
    return [(rng.normal(size=(a, b)), rng.normal(size=b)) for a, b in ((n, 4), (4, 4), (4, 3))]


def f32(*arrays):
    """Arrays as float32."""
    return tuple(a.astype(np.float32) for a in arrays)


PROGRAMS = [
    (perceptrons, lambda n, rng: (rng.random((5, n)), layers(n, rng)), (2, 6, 20), 1e-13),
    (train, lambda n, rng: (rng.random((n, 3)), rng.random((n, 1)), rng.normal(size=(3, 4)), rng.normal(size=(4, 1)), 0.1, 3), (3, 8, 30), 1e-12),
    (perceptron_rule, lambda n, rng: (rng.normal(size=(n, 2)), 2 * rng.integers(0, 2, n) - 1, 2), (3, 6, 10), 1e-13),
    (convolution_layer, lambda n, rng: f32(rng.random((2, n, n, 2)), rng.random((3, 3, 2, 4)), rng.random(4)), (4, 5, 7), 1e-5),
    (max_pool, lambda n, rng: (rng.random((2, n, n, 3)),), (2, 5, 10), 0),
    (
        little_lenet,
        lambda n, rng: (*f32(rng.random((2, n, n, 1)), rng.normal(size=(3, 3, 1, 2)), rng.random(2)),
                        rng.normal(size=(2 * ((n - 2) // 2) ** 2, 3)), rng.random(3)),
        (4, 6, 8),
        0,
    ),
    (attention, lambda n, rng: (*rng.normal(size=(3, 2, n, 4)), np.tri(n, dtype=bool)), (2, 5, 16), 1e-13),
    (batch_norm, lambda n, rng: (rng.random((n, 3)), *rng.random((4, 3))), (2, 8, 40), 1e-13),
    (elman, lambda n, rng: (rng.random((n, 3)), rng.random((4, 3)), rng.random((4, 4)), np.zeros(4)), (2, 5, 10), 1e-13),
    (
        long_short_term,
        lambda n, rng: (rng.random((n, 2)), rng.random((12, 2)), rng.random((12, 3)), rng.random(12), np.zeros(3), np.zeros(3)),
        (2, 5, 10),
        1e-13,
    ),
    (hopfield, lambda n, rng: (2.0 * rng.integers(0, 2, (2, n)) - 1, 2.0 * rng.integers(0, 2, n) - 1, 5), (4, 7, 12), 0),
    (logistic_regression, lambda n, rng: (rng.normal(size=(n, 3)), rng.integers(0, 2, n), 5), (4, 10, 40), 1e-12),
    (self_organising_map, lambda n, rng: (rng.random((4, 2)), rng.random((n, 2)), 0.3, 1.0), (2, 5, 12), 1e-13),
]
