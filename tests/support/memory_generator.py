"""Generates the source of random functions about memory, kinds of numbers and Python's containers.

A program is `def program(a, b, M, u, w, k, t, flag, rng)` over two vectors and a matrix of floats, two vectors of
narrow integers or bools, a Python int (sometimes near the end of 64 bits), a float, a bool, and a Generator. Two
arguments may be one array or overlap; others have negative strides, are columns, or have no or one element.

A program keeps views across iterations and branches, and passes arrays to functions that write, return or swap
them. It stores them in lists, dicts and objects, writes with `out=` and `where=`, casts in place, draws in
branches, and returns early from nests. It may raise after it has written. Results do not depend on the order of
evaluation, so they are compared bit by bit.
"""

import random
import re

HELPERS = """
class Box:
    def __init__(self, v):
        self.v = v
        self.n = 0

    def add(self, x):
        self.v += x
        self.n += 1
        return self


def same(v):
    return v


def part(v, i):
    return v[i:]


def add_to(v, w):
    v += w
    return w


def either(v, w, c):
    if c:
        return v
    return w


def fresh_if(v, c):
    return v.copy() if c else v


def exchange(v, w):
    kept = v.copy()
    v[...] = w
    w[...] = kept
    return v, w


def halves(v, depth):
    if depth == 0 or len(v) < 2:
        v += 1
        return v
    middle = len(v) // 2
    halves(v[:middle], depth - 1)
    return halves(v[middle:], depth - 1)


def counter(start):
    count = start

    def more(x):
        nonlocal count
        count = count + x
        return count

    return more


def find(m, limit):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > limit:
                return i, j
    else:
        return -1, -1


def scaled(v, by=2, *, into=None):
    r = v * by
    if into is not None:
        into[...] = r
        return into
    return r


def first_of(*vs):
    for v in vs:
        if len(v):
            return v
    return vs[0]


def rotated(vs):
    return [*vs[1:], vs[0]]


def nested(v, n):
    def inner(x):
        nonlocal v
        v = v + x
        return v

    for _ in range(n):
        inner(1)
    return v


def depth_of(v, n=0):
    if n > 3 or v[0] > 2:
        return n
    v[0] += 1
    return depth_of(v, n + 1)


def total(vs, start=0):
    for v in vs:
        start = start + v.sum()
    return start


def cleaned(v):
    try:
        v[len(v) // 2] += 1
        return v
    finally:
        v *= 1
"""
PARAMETERS = "a, b, M, u, w, k, t, flag, rng"
SIZES = [(7, 4), (12, 5), (9, 9), (1, 3), (0, 2), (2, 1), (16, 3), (5, 8)]
FLOATS = ["float64", "float64", "float64", "float32", "float16", "complex64"]
INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
# V, W: vectors of floats; U: of ints; N: a new name; I: a position; R, K, C: a float, an int, a condition; S: the same slice twice over.
VIEWS = [
    "V[1:]",
    "V[::-1]",
    "V[::2]",
    "V[I:]",
    "M[I]",
    "M[:, 0]",
    "M.T[0]",
    "V",
    "M.ravel()",
    "M.reshape(-1)",
    "M[::-1, 0]",
    "V[S]",
    "part(V, 1)",
    "same(V)",
    "either(V, W, C)",
    "fresh_if(V, C)",
    "add_to(V, W)",
    "np.asarray(V)",
    "V if C else W",
    "V.reshape(-1, 1)[1:, 0]",
    "np.ravel(V)",
    "V[...]",
    "V[:]",
    "V.view()",
    "V.T",
    "np.squeeze(V)",
    "V.conj()",
    "M.diagonal()",
    "np.einsum('ij->ji', M)[0]",
    "np.ascontiguousarray(V)",
    "V.ravel('K')",
    "scaled(V, into=W)",
    "first_of(V, W)",
    "rotated([V, W])[0]",
    "cleaned(V)",
    "L[k % len(L)]",
    "(V, W)[k % 2]",
    "D['x' if C else 'y']",
    "(V, W)[C]",
    "M[I][::-1]",
    "M[I:][0]",
    "M[0]",
    "M[-1]",
    "M.reshape(M.shape[::-1])[0]",
    "V[:, None][:, 0]",
    "V[None][0]",
    "np.moveaxis(M, 0, 1)[0]",
    "M.swapaxes(0, 1)[0]",
    "V[:len(V) // 2]",
    "V[len(V) // 2:]",
    "V.reshape(2, -1)[0]",
    "np.flip(V)",
    "np.atleast_1d(V)",
    "np.broadcast_to(V, V.shape)",
    "next(iter(L))",
    "min(L, key=len)",
    "max([V, W], key=lambda z: len(z))",
]
FRESH = [
    "V.copy()",
    "V + 1",
    "np.zeros_like(V)",
    "V[V > 0] if V.dtype.kind != 'c' else V.copy()",
    "np.where(C, V, 2)",
    "V[::-1].copy()",
    "np.array(V)",
    "np.full_like(V, 3)",
    "V * 2",
    "np.concatenate([V, W])",
    "V.astype(np.float32)",
    "np.ones_like(V)",
    "nested(V, 3)",
    "scaled(V)",
    "scaled(V, by=k % 4)",
    "np.sort(V)",
    "np.unique(V)",
    "V[V != W] if len(V) == len(W) else V + 0",
    "np.cumsum(V)",
    "np.roll(V, 1)",
    "np.repeat(V, 2)",
    "np.tile(V, 2)",
    "np.append(V, W)",
    "np.stack([V, W])[0]",
    "sum(L)",
    "np.array([x for x in V])",
    "np.array([x * 2 for x in V if x.real > 0] or [R])",
    "np.delete(V, 0)",
    "np.insert(V, 0, 1)",
    "np.hstack([V, V])",
    "np.outer(V, V)[0]",
    "M.sum(0)",
    "M @ M[0]",
    "np.vstack(L).max(0).real",
    "V.take([0, -1])",
    "np.diff(V)",
    "V.compress(V != 0)",
    "M.max(axis=1)",
    "np.full(len(V), k % 9, V.dtype)",
    "V - 2",
    "np.where(V == W, V, W)",
    "V[np.argsort(V)]",
    "V[np.arange(len(V))[::-1]]",
    "V[[0, -1]]",
    "np.tril(M)[0]",
    "V[~(V == R)]",
    "np.pad(V, 1)",
]
WRITES = [
    "V[S] = W[S]",
    "V[S] += W[S]",
    "V[1:] = W[:-1]",
    "V[:-1] += W[1:]",
    "V[::-1] += W",
    "V += W",
    "V *= 2",
    "V -= R",
    "V[...] = W",
    "V[:] = R",
    "V[0] = R",
    "V[I] += R",
    "M[I] = R",
    "M[:, 0] += 1",
    "M += M.T if M.shape[0] == M.shape[1] else 1",
    "M[I] += M[-1]",
    "M[0], M[-1] = M[-1], M[0]",
    "V, W = W, V",
    "V[0], W[-1] = W[-1], V[0]",
    "V[U % max(len(V), 1)] = R",
    "V[C_] = R",
    "M[::-1] += M",
    "M[:, ::-1] = M",
    "V.fill(R)",
    "V.sort()",
    "exchange(V, W)",
    "halves(V, 2)",
    "V |= 1",
    "V //= 2",
    "np.add(V, W, out=V)",
    "np.add(V, W, out=W)",
    "np.multiply(V[S], 2, out=W[S])",
    "np.subtract(V[1:], W[:-1], out=V[:-1])",
    "np.add(V, 1, out=V, where=C_)",
    "np.maximum(V, W, out=W)",
    "np.negative(V, out=V[::-1])",
    "np.copyto(V, W)",
    "np.copyto(V, R, where=C_)",
    "np.clip(V, -2, 2, out=V)",
    "np.add(V, R, V)",
    "np.putmask(V, C_, W)",
    "np.add.at(V, U % max(len(V), 1), 1)",
    "np.take(V, U % max(len(V), 1), out=W)",
    "V.clip(-1, 3, out=W)",
    "np.minimum.accumulate(V, out=V)",
    "np.square(V, out=V, where=abs(V) < 1000)",
    "np.add(V, W, out=(V,))",
    "np.add(V, W, out=V, casting='unsafe')",
    "np.add(U, t, out=V)",
    "np.put(V, [0, -1], R)",
    "V[None, :] += W",
    "V.real[...] = W.real",
    "V.flat[0] = R",
    "V.T[...] += 1",
    "np.multiply(V, R, out=V, where=V != W)",
    "V[len(V) // 2:] = V[: len(V) - len(V) // 2]",
    "V = V[...]",
    "W = V[:]",
    "V, W = W[...], V",
    "V *= np.where(abs(V) < 1000, V, 1)",
    "V.ravel()[:1] += 1",
    "M.ravel()[::2] = R",
    "M.diagonal()[...] = R",
    "M.diagonal()[0] += 1",
    "np.fill_diagonal(M, R)",
    "np.fill_diagonal(M.T, V[:1])",
    "np.add(M.diagonal(), V, out=M.diagonal())",
    "np.einsum('ii->i', M[:1, :1])[...] = R",
    "np.broadcast_to(V, (2, len(V)))[0] = W",
    "V[U > K] = R",
    "V[V == W] = R",
    "V[[0, -1]] = W[[0, -1]]",
    "V[[0, -1]] += 1",
    "M[:, I] = M[:, 0]",
    "M[M == R] = 0",
    "M[I, 0] = R",
    "M[I][0] = R",
    "M[0, :], M[-1, :] = M[-1, :].copy(), M[0, :].copy()",
    "V[I], V[0] = V[0], V[I]",
    "V[:2] = V[-2:]",
    "V[1:-1] = (V[2:] + V[:-2]) / 2",
    "V[::2] = V[1::2][:len(V[::2])]",
    "V = V + W",
    "V = V * 2 - W",
    "V = W",
    "V, W = V + 1, V",
    "a = V",
    "b = a",
    "M = M.T",
    "M = M.copy()",
    "M = M[::-1]",
    "M = M + M[0]",
    "M *= 2",
    "M -= M[:, :1]",
    "M[...] = M[::-1]",
    "M.T[0] = R",
    "V[()] = R",
    "np.copyto(V[::-1], W)",
    "V[:] = sorted(V.real)",
    "V.partition(0)",
    "V.put([0], R)",
    "np.put_along_axis(V, np.array([0]), R, 0)",
    "np.place(V, V == R, [1, 2])",
    "V[np.where(V.real > 0)] = R",
    "V[np.nonzero(U)[0] % max(len(V), 1)] += 1",
    "V[-len(V):] = W",
    "depth_of(V)",
    "V += V[::-1]",
    "V[1:] -= V[:-1]",
    "V -= 1",
    "V -= V[0]",
    "V[0] -= V.sum()",
    "V[slice(None, None, 2)] = R",
    "V[..., 0] = R",
    "V.flat = W",
    "V.flat[::2] = R",
    "M.flat[k % max(M.size, 1)] = R",
    "M[I] = V[:M.shape[1]]",
    "M[:, -1] = V",
    "M[np.ix_([0], [0])] = R",
    "M[tuple([0, 0])] = R",
    "M[M.sum(1) > R] = 0",
    "M[:, M.sum(0) > R] += 1",
    "for x_ in (V, W): x_ += 1",
    "for i_ in range(len(V)): V[i_] = V[i_ - 1]",
    "for i_ in range(1, len(V)): V[i_] += V[i_ - 1]",
    "for i_ in range(len(V) - 1): V[i_], V[i_ + 1] = V[i_ + 1], V[i_]",
    "while V[0].real < 3: V += 1",
    "V = [V, W][C]",
    "V = np.maximum(V.real, W.real)",
]
INTEGER_WRITES = [
    "U += 1",
    "U *= 3",
    "U -= K",
    "U[0] = K",
    "U[I] += K",
    "U += U",
    "U[1:] += U[:-1]",
    "U += t",
    "U //= 3",
    "U %= 5",
    "U <<= 1",
    "U >>= 1",
    "U ^= U[::-1]",
    "U |= 1",
    "U[...] = K",
    "U[:] = V[:len(U)]",
    "U = -U",
    "U = ~U",
    "U = U + K",
    "U = U * U",
    "U = U - 1",
    "U = U.astype(np.int8)",
    "U = U.astype(np.uint16)",
    "U = (U > 2)",
    "U = U & 7",
    "np.add(U, 1, out=U)",
    "np.multiply(U, U, out=U, casting='same_kind')",
    "np.add(U, K, out=U, where=U > 1)",
    "np.add(U, t, out=U, casting='unsafe')",
    "U &= u",
    "U = np.where(U > 2, U, K)",
    "U = np.minimum(U, 9)",
    "U = np.cumsum(U)",
    "U = U // 2",
    "U = np.abs(U)",
    "U[U > 2] = K",
    "U += True",
    "U = U / 2",
    "U = U @ U + U",
    "np.left_shift(U, 1, out=U)",
    "U = U + np.int8(3)",
    "U = U + np.uint64(1)",
    "U[::-1] -= U",
    "U = np.sort(U)",
    "U += np.arange(len(U), dtype=np.int8)",
    "U /= 2",
    "U **= 2",
    "U = U ** 2",
    "U = U[...]",
    "np.add.at(U, [0, -1, 0], K)",
    "np.maximum.at(U, u % max(len(U), 1), K)",
    "np.add.at(U, np.arange(len(U)) // 2, u[::-1])",
    "np.take(u, U % max(len(u), 1), out=w)",
    "np.dot(U, 1, out=U)",
    "U = np.squeeze(U)",
]
NUMBERS = [
    "k += K",
    "k = k * 3",
    "k = -k",
    "k = K",
    "k = k ^ 5",
    "k = int(U.sum())",
    "k = abs(k) % 1000",
    "k = k + int(U[I])",
    "k = (k << 2) % 2**63",
    "k = U[I]",
    "k = U.max()",
    "k = max(k, K)",
    "k = K // 3",
    "k = len(V) - k",
    "t = R",
    "t += R",
    "t = V[0].real",
    "t = float(K)",
    "t = R if C else t",
    "flag = C",
    "flag = not flag",
    "k = sum(range(3), k)",
    "k = find(M.real, R)[0]",
    "k = more(1)",
    "k = more(K)",
    "t = max(t, R)",
    "k = round(t)",
    "t = t / 2",
    "k = U[0] * U[-1]",
    "k = K % 7",
    "k = total([V]).real > 2",
    "k = sum(1 for x in V if x.real > 0)",
    "t = sum(x.real for x in V)",
    "t = max((x.real for x in V), default=0)",
    "flag = any(x > 0 for x in U)",
    "flag = all(x.real > R for x in V)",
    "flag = V is W",
    "flag = V is a or V is b",
    "flag = any(x is V for x in L)",
    "k = len(L) + len(D)",
    "k = [1, 2, 3][k % 3]",
    "k = {0: 1, 1: 2}.get(k % 3, 5)",
    "k = divmod(k, 3)[1]",
    "k, t = K, R",
    "k = int(V.argmax())",
    "k = np.argmin(V)",
    "t = np.abs(V).max()",
    "t = 1.5",
    "t = min(t, R, 3)",
    "k = (U > 0).sum()",
    "k = np.count_nonzero(U)",
    "k = int(t)",
    "t = abs(t)",
    "t = -t",
    "k = ~k",
    "k = k & 7",
    "k = k | 1",
    "k = k >> 1",
    "k = 1 << (k % 8)",
    "k = bool(k)",
    "t = k / 4",
    "t = k ** 2",
    "k = k ** 2 % 1000",
    "t = 2.0 ** (k % 5)",
    "k = (k > 2) + (t > 1)",
    "flag = flag ^ (C)",
    "flag = flag and C or not C",
    "k = U.size",
    "k = V.ndim + V.shape[0]",
    "t = np.float64((R).real)",
    "k = np.int64(k % 1000)",
    "k = k if C else -k",
    "t = t if t == t else 0.0",
    "k = depth_of(V)",
    "k = min(len(V), len(W))",
    "k = int(str(k)) if abs(k) < 99 else 0",
    "t = round(t, 1)",
    "k = max(int(x) for x in U) if len(U) else 0",
    "k += 1 if C else 2",
    "k -= flag",
    "k = hash(k) % 5",
    "k = (k := k + 1) * 2",
]
CONTAINERS = [
    "L.append(V) if len(L) < 5 else L.pop()",
    "L[-1] = V",
    "L[0] += 1",
    "D['x'] = V",
    "D['x'] += R",
    "D['y'] = L[-1]",
    "D.setdefault('z', V)",
    "B.add(R)",
    "B.v = V",
    "B.v[0] = R",
    "B.n += 1",
    "L = L[::-1]",
    "L = [V, W]",
    "L[0], L[-1] = L[-1], L[0]",
    "D = {'x': V, 'y': W}",
    "L = [*L, V][-4:]",
    "V = L.pop() if len(L) > 1 else V",
    "V = D['x']",
    "V = B.v",
    "D.update(x=W)",
    "V = L[0]",
    "for N in list(L): N += 1",
    "L = [N * 2 for N in L]",
    "T = (V, W)",
    "T[0][...] = 2",
    "V, W = T",
    "W = T[-1]",
    "D = dict(D)",
    "D['x'], D['y'] = D['y'], D['x']",
    "D.pop('z', None)",
    "L.reverse()",
    "B = Box(V)",
    "L[0] = L[0][...]",
    "D['x'] = D['x'].ravel()",
    "B.v = B.v[:]",
    "for N in D.values(): N *= 2",
    "L.insert(0, V)",
    "del L[0:len(L) - 2]",
    "L[1:] = [V]",
    "L += [V] if len(L) < 5 else []",
    "L.extend([V, W] if len(L) < 4 else [])",
    "L.remove(L[0]) if len(L) > 1 else None",
    "L = sorted(L, key=len)",
    "L = [x + 1 for x in L if len(x)] or [V]",
    "L = [*map(np.copy, L)]",
    "L = list(zip(L, L))[0]; L = list(L)",
    "for N in L: N[...] = R",
    "for i_, N in enumerate(L): L[i_] = N + 1",
    "for q_, N in D.items(): N += 1",
    "for q_ in list(D): D[q_] = D[q_] * 2",
    "D = {q_: x[::-1] for q_, x in D.items()}",
    "D = {**D, 'w': V}",
    "D.pop('w', None)",
    "D['x'], V = V, D['x']",
    "V, *rest_ = [V, W, V]; W = rest_[0]",
    "(V, W), k = (W, V), K",
    "T = (T[1], T[0])",
    "T = T[::-1]",
    "T = (V, T[0])",
    "V = T[k % 2]",
    "L = list(T)",
    "T = tuple(L[:2]) if len(L) > 1 else T",
    "B.v = B.v + 1",
    "B.v += V",
    "B.v, V = V, B.v",
    "B.n = k",
    "B.add(B.v)",
    "B = Box(B.v)",
    "B.v[:] = V",
    "C2 = Box(V); C2.v += 1",
    "setattr(B, 'v', V)",
    "V = getattr(B, 'v')",
    "L[k % len(L)] = V",
    "V = L[k % len(L)]",
    "V = D.get('z', W)",
    "V = L[-1] if L else V",
    "L = [L[0]] * 2",
    "L[0] = L[-1] = V",
    "V = W = V + 1",
    "L = [[V, W], [V]][C]; L = list(L)",
    "W = dict(p=V, q=W)['p']",
    "V = L.pop(0) if len(L) > 2 else V",
    "L.append(L[0][1:]) if len(L) < 5 else L.clear() or L.append(V)",
    "L.sort(key=len)",
    "V = np.concatenate(L)",
    "V = np.concatenate(list(D.values()))",
    "D = {'x': D['y'], 'y': D['x']}",
    "E_ = [V]; E_[0] += 1",
    "E_ = {1: V}; V = E_[1] + 1",
    "for N, x_ in zip(L, L[::-1]): N[0] = x_[-1]",
    "for N in reversed(L): N *= 2",
    "[N.fill(1) for N in L]",
    "D[k % 3] = V",
    "V = D.get(k % 3, V)",
    "D = {q_: D[q_] for q_ in ('x', 'y')}",
]
DRAWS = [
    "V += rng.integers(0, 4, len(V))",
    "V[0] = rng.integers(5)",
    "t = float(rng.integers(9))",
    "rng.shuffle(V)",
    "V = V[rng.permutation(len(V))]",
    "V[:] = rng.integers(-3, 3, size=V.shape)",
    "M += rng.integers(3, size=M.shape)",
    "k = int(rng.integers(100))",
    "flag = rng.random() < 0.5",
    "t = round(rng.random(), 3)",
]
CONDITIONS = [
    "flag",
    "not flag",
    "k > 3",
    "t < R",
    "V[0].real > R",
    "V[I].real < 0",
    "len(V) > 2",
    "(V == W).any()",
    "U[0] > 1",
    "k % 2 == 0",
    "V is W",
    "u is w",
    "V.flags.c_contiguous",
    "V is a",
    "L[0] is L[-1]",
    "(U > K).all()",
    "0 < t < 3",
    "M[0, 0].real > t",
    "I % 2 == 0",
    "isinstance(t, float)",
    "B.n > 1",
    "'z' in D",
    "a is b",
    "V is not W",
    "V is not a",
    "V is L[0]",
    "L[0] is a",
    "D['x'] is V",
    "B.v is V",
    "V is D['y']",
    "T[0] is V",
    "V.base is None",
    "len(V) == len(W)",
    "any(x is V for x in L)",
    "V.size and V[0].real > 0",
    "not len(V)",
    "k in (1, 2, 3)",
    "k not in [0, 5]",
    "len(L) > 2",
    "t is None",
    "V.dtype == np.float64",
    "V.ndim == 1",
    "np.array_equal(V, W)",
    "np.allclose(V, W)",
    "(V != W).any() and k",
    "k or t",
    "t and k > 1",
    "U.any()",
    "bool(U[0])",
    "V.sum().real > t",
    "M.shape[0] == M.shape[1]",
    "isinstance(k, int)",
    "type(t) is float",
    "hasattr(B, 'v')",
    "U.max() > K",
    "-1 < k <= 3",
    "k == 1 or flag",
    "not (k > 2 and flag)",
    "len(D) == 2",
    "all(len(x) for x in L)",
    "V.flags.writeable",
    "V[-1] == W[-1]",
    "abs(t) < 1",
]
POSITIONS = ["0", "-1", "1", "len(V) // 2", "k % max(len(V), 1)", "-2", "int(u[0]) % 3"]


class Generator:
    """The source of one program, and its arguments at several sizes, layouts and dtypes."""

    def __init__(self, seed, statements=12):
        self.random = random.Random(seed)
        self.seed = seed
        self.left = self.random.randint(3, statements)
        self.count = 0
        self.vectors, self.ints, self.loops, self.inside = ["a", "b"], ["u", "w"], [], 0
        self.topics = self.random.sample(
            ["writes", "writes", "integers", "numbers", "containers", "draws", "views", "views"], 4
        )
        self.floats = self.pick(*FLOATS), self.pick(*INTS)
        self.huge = self.chance(0.2)

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    def source(self):
        self.lines = []
        self.line(1, "L, D, B, T, more = [a, b], {'x': a, 'y': b}, Box(a), (a, b), counter(k)")
        while self.left > 0:
            self.statement(1)
        names = list(
            dict.fromkeys(
                [
                    self.pick(*self.vectors),
                    self.pick(*self.vectors),
                    self.pick(*self.ints),
                    self.pick("k", "t", "flag"),
                    self.pick("L", "D", "B.v", "T", "M", "k"),
                ]
            )
        )
        self.line(
            1,
            self.pick("return {}", "return {}", "return [{}]", "return {{'r': [{}]}}").format(
                ", ".join(names)
            ),
        )
        return (
            f"import numpy as np\n\n{HELPERS}\n\ndef program({PARAMETERS}):\n"
            + "\n".join(self.lines)
            + "\n"
        )

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def fill(self, text):
        """Replaces the letters of a template."""
        r = self.random
        v, w, u = r.choice(self.vectors), r.choice(self.vectors), r.choice(self.ints)
        for _ in range(3):
            text = text.replace(
                "C_",
                self.pick(
                    "V != W", "V.real > R", "np.arange(len(V)) % 2 == 0", "True", "u.astype(bool)"
                ),
            )
            text = self.word(text, "C", lambda: self.pick(*CONDITIONS))
            text = self.word(
                text,
                "R",
                lambda: self.pick("t", "0.5", "-1.5", "2", "V[0]", "V[I]", "k", "3", "U[0]"),
            )
            text = self.word(
                text,
                "K",
                lambda: self.pick("k", "3", "-1", "200", "int(U[I])", "1", "300", "len(V)", "7"),
            )
            text = self.word(
                text, "I", lambda: self.pick(*POSITIONS, *self.loops, *self.loops, *self.loops)
            )
        cut = self.pick("1:", ":-1", "::2", ":", "1:-1", "::-1", ":1")
        text = text.replace("[S]", f"[{cut}]")
        for letter, name in (("V", v), ("W", w), ("U", u)):
            text = self.word(text, letter, lambda name=name: name)
        return text

    def word(self, text, letter, make):
        return re.sub(rf"(?<![\w'.]){letter}(?![\w'])", lambda _: make(), text)

    def statement(self, depth):
        self.left -= 1
        if depth < 5 and self.chance(0.4 if depth < 3 else 0.25):
            return self.random.choice(
                [
                    self.branch,
                    self.branch,
                    self.counted,
                    self.counted,
                    self.items,
                    self.loop_while,
                    self.guarded,
                    self.quiet,
                    self.held,
                ]
            )(depth)
        topic = self.pick(*self.topics)
        if topic == "views":
            name = self.pick(*self.vectors) if self.chance(0.35) else self.new("v")
            self.line(
                depth,
                f"{name} = {self.fill(self.pick(*VIEWS) if self.chance(0.7) else self.pick(*FRESH))}",
            )
            if name not in self.vectors:
                self.vectors.append(name)
            return None
        rows = {
            "writes": WRITES,
            "integers": INTEGER_WRITES,
            "numbers": NUMBERS,
            "containers": CONTAINERS,
            "draws": DRAWS,
        }[topic]
        name = self.new("e")
        text = self.word(self.pick(*rows), "N", lambda: name)
        self.line(depth, self.fill(text))
        if self.inside and self.chance(0.07):
            self.line(depth, f"if {self.fill('C')}:")
            self.line(
                depth + 1,
                self.fill(
                    self.pick(
                        "break",
                        "continue",
                        "return V, k",
                        "return a",
                        "raise ValueError('stop')",
                        "return L, D",
                        "assert C, 'no'",
                    )
                ),
            )
        return None

    def new(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def block(self, depth, most=3):
        kept = list(self.vectors)
        for _ in range(self.random.randint(1, most)):
            self.statement(depth)
        self.vectors = kept

    def branch(self, depth):
        if self.chance(0.3):  # a name that refers to one of several arrays after the branch
            name = self.new("v")
            self.line(depth, f"if {self.fill('C')}:")
            self.line(depth + 1, f"{name} = {self.fill(self.pick(*VIEWS))}")
            self.line(depth, "else:")
            self.line(depth + 1, f"{name} = {self.fill(self.pick(*VIEWS, *FRESH))}")
            self.vectors.append(name)
            return
        self.line(depth, f"if {self.fill('C')}:")
        self.block(depth + 1, 2)
        if self.chance(0.5):
            self.line(depth, f"{self.pick('else', 'else', 'elif flag')}:")
            self.block(depth + 1, 2)

    def body(self, depth, variables=()):
        self.inside += 1
        self.loops += variables
        self.block(depth + 1)
        for name in variables:
            self.loops.remove(name)
        self.inside -= 1
        if self.chance(0.15):
            self.line(depth, "else:")
            self.block(depth + 1, 1)

    def counted(self, depth):
        i = self.new("i")
        extent = self.fill(
            self.pick(
                "len(a)",
                "len(V)",
                "M.shape[0]",
                "10",
                "11",
                "len(V) - 1",
                "1, len(V)",
                "len(V) - 1, -1, -1",
                "min(abs(k), 12)",
                "12",
                "M.shape[1]",
            )
        )
        self.line(depth, f"for {i} in range({extent}):")
        self.body(depth, [i])

    def items(self, depth):
        name, i = self.new("v"), self.new("i")
        text, variables, is_vector = self.pick(
            (f"{name} in M", [], True),
            (f"{name} in M.T", [], True),
            (f"{i}, {name} in enumerate(M)", [i], True),
            (f"{i} in range(len(L))", [i], False),
            (f"{name} in list(L)", [], True),
            (f"{name} in list(D.values())", [], True),
            (f"{name}, {i} in zip(M, range(9))", [i], True),
        )
        self.line(depth, f"for {text}:")
        kept = list(self.vectors)
        if is_vector:
            self.vectors.append(name)
        self.body(depth, variables)
        self.vectors = kept if self.chance(0.5) else self.vectors

    def loop_while(self, depth):
        trips = self.new("n")
        self.line(depth, f"{trips} = 0")
        self.line(
            depth,
            f"while {trips} < {self.pick('11', '9', 'len(a)')} and {self.fill(self.pick('C', 'True', 'V[0].real < 6'))}:",
        )
        self.line(depth + 1, f"{trips} += 1")
        self.body(depth, [trips])

    def held(self, depth):
        """A view that is kept from one iteration to the next, and is written or read there."""
        name, i = self.new("h"), self.new("i")
        self.line(depth, f"{name} = {self.fill(self.pick(*VIEWS, *FRESH))}")
        self.line(depth, f"for {i} in range({self.pick('len(a)', '10', 'M.shape[0]', '3')}):")
        self.vectors.append(name)
        self.loops.append(i)
        self.inside += 1
        self.block(depth + 1, 2)
        after = self.fill(self.pick(*VIEWS, *FRESH))
        if self.chance(0.4):
            self.line(depth + 1, f"if {self.fill('C')}:")
            self.line(depth + 2, f"{name} = {after}")
        else:
            self.line(depth + 1, f"{name} = {after}")
        self.inside -= 1
        self.loops.remove(i)

    def guarded(self, depth):
        self.line(depth, "try:")
        self.block(depth + 1, 2)
        self.line(
            depth,
            f"except {self.pick('IndexError', 'ValueError', 'TypeError', 'Exception', '(OverflowError, ZeroDivisionError)')}:",
        )
        self.block(depth + 1, 1)

    def quiet(self, depth):
        self.line(
            depth,
            f"with np.errstate({self.pick(*['all', 'divide', 'over', 'invalid'])}='{self.pick('ignore', 'ignore', 'raise', 'warn')}'):",
        )
        self.block(depth + 1, 2)

    # --- arguments --------------------------------------------------------------------------------

    def arguments(self, number, numpy):
        """The arguments of call 0 to 5. Layout and aliasing differ between calls, and sometimes dtypes."""
        r = random.Random(f"{self.seed} {number}")
        n, m = r.choice(SIZES)
        rng = numpy.random.default_rng([self.seed, number])
        real, whole = self.floats
        if number == 3 and r.random() < 0.4:
            real, whole = r.choice(FLOATS), r.choice(INTS)

        def values(*shape):
            made = rng.integers(-8, 9, shape) / 4
            return (
                made.astype(real)
                if real != "complex64"
                else (made + 1j * rng.integers(-2, 3, shape)).astype(real)
            )

        def vector(n):
            kind = r.choice(["plain", "plain", "plain", "back", "step", "column"])
            if kind == "back":
                return values(n)[::-1]
            if kind == "step":
                return values(2 * n)[::2]
            return values(n, 2)[:, 0] if kind == "column" else values(n)

        a, b = vector(n), vector(n)
        kind = r.choice(["C", "C", "F", "T", "back"])
        matrix = values(n, m)
        matrix = {
            "C": matrix,
            "F": numpy.asfortranarray(matrix),
            "T": values(m, n).T,
            "back": matrix[::-1, ::-1],
        }[kind]
        alias = r.choice(["none"] * 6 + ["same", "shift", "back", "row", "column"])
        if alias == "same":
            b = a
        elif alias == "shift":
            whole_ = values(n + 1)
            a, b = whole_[:n], whole_[1:]
        elif alias == "back":
            b = a[::-1]
        elif alias == "column":
            a = matrix[:, 0]
        elif alias == "row" and n:
            b = matrix[0] if m == n else matrix[:, -1]
        u, w = (
            (
                rng.integers(0, 2, n)
                if whole == "bool"
                else rng.integers(0 if whole[0] == "u" else -5, 9, n)
            ).astype(whole)
            for _ in range(2)
        )
        if r.random() < 0.15:
            w = u
        k = int(rng.integers(-2, 6))
        if self.huge:
            k = r.choice([2**63 - 1, 2**62, -(2**63), 2**31, 255, 127, 2**63, 2**64, -1])
        return (
            a,
            b,
            matrix,
            u,
            w,
            k,
            float(rng.integers(-4, 5)) / 2,
            bool(rng.integers(2)),
            numpy.random.default_rng(number),
        )
