"""np.einsum: views, products and library calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .surface import (
    Traced,
    any_varies,
    array,
    as_result,
    function,
    in_place,
    into,
    is_one,
    refuse,
    require_same,
    result_type,
)

UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LETTERS = UPPER + UPPER.lower()  # in NumPy's order


@function("einsum")
def einsum(t: Any, *operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """np.einsum: a permutation of one operand is a view, outer products are element-wise, the rest is a library call.
    """
    refuse(kwargs, "keyword " + ", ".join(kwargs))
    refuse(any_varies(optimize), "optimize= that varies")
    terms, output, xs = parsed(t, operands)
    if len(terms) != len(xs) or any(len(s) != x.ndim for s, x in zip(terms, xs, strict=True)):
        raise ValueError("subscripts")
    extent: dict[str, int] = {}
    for term, x in zip(terms, xs, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            other = extent.setdefault(letter, n)
            refuse(is_one(n) != is_one(other), "extents that broadcast")
            require_same(t, other, n)
    if not set(output) <= set(extent) or len(set(output)) != len(output):
        raise ValueError("output")
    dtype = result_type(*xs)
    xs = [in_place(t, x, dtype) for x in xs]
    shape = tuple(extent[c] for c in output)
    repeats = any(len(set(s)) != len(s) for s in terms)
    path = optimize if is_a(optimize, str | list | tuple) else bool(optimize)
    is_joined = set(output) == set(extent) and (bool(output) or path is False)
    if len(xs) == 1 and is_joined:
        return into(t, out, as_result(t, turned(t, xs[0], terms[0], output)))
    subscripts = f"{','.join(terms)}->{output}"
    if not repeats and is_joined and has_bits_of_products(subscripts, xs, path):
        made = aligned_product(t, terms, xs, output)
        return into(t, out, made + dtype.type(0) if adds_to_zero(subscripts, xs, path) else made)
    made = on_few(subscripts, xs, path)
    order, is_array = sorted(range(made.ndim), key=lambda k: -made.strides[k]), is_a(made, np.ndarray)

    def call(*arrays: Any) -> None:
        *real, result = arrays
        result[...] = np.einsum(subscripts, *real, optimize=path).transpose(order)

    key = f"{subscripts} {path!r} {order}"
    made = t.extern("einsum", key, call, xs, tuple(shape[k] for k in order), dtype)
    made = t.permute(made, np.argsort(order).tolist()) if order else made
    return into(t, out, made if is_array else as_result(t, made))


def on_few(subscripts: str, xs: list[Any], optimize: Any, value: float = 1.0) -> Any:
    """NumPy's result for small operands with the same layout, the first of which holds `value` and the others ones. Its strides
    are in the order of the result's, and it is a number where the result is one.
    """
    path: Any = False
    if optimize is not False:
        like = [np.broadcast_to(np.empty((), x.dtype), [int(n) for n in x.shape]) for x in xs]
        path = np.einsum_path(subscripts, *like, optimize=optimize)[0]
    small = []
    for x in xs:
        axes = sorted(range(x.ndim), key=lambda k, x=x: -abs(x.strides[k]))
        sizes = [1 if is_one(x.shape[k]) else 2 for k in axes]
        stored = [n if x.strides[k] != 0 else 1 for k, n in zip(axes, sizes, strict=True)]
        filled = np.full(stored, 1.0 if small else value, x.dtype)
        small.append(np.broadcast_to(filled, sizes).transpose(np.argsort(axes)))
    return np.einsum(subscripts, *small, optimize=path)


def has_bits_of_products(subscripts: str, xs: list[Any], optimize: Any) -> bool:
    """True if NumPy rounds after each operand, from left to right, as np.multiply does."""
    kind = xs[0].dtype.kind
    if kind in "biu":
        return True
    if len(xs) > 2 and (optimize is not False or xs[0].dtype == np.float16):
        return False
    return kind != "c" or not adds_to_zero(subscripts, xs, optimize)  # np.multiply fuses a product and a sum


def adds_to_zero(subscripts: str, xs: list[Any], optimize: Any) -> bool:
    """True if NumPy adds each product to a zero, so that it is never -0.0."""
    if not any(x.dtype.kind in "fc" for x in xs):
        return False
    return not np.signbit(np.real(on_few(subscripts, xs, optimize, -0.0))).any()


def parsed(t: Any, operands: Any) -> tuple[list[str], str, list[Any]]:
    """The subscripts of each operand and of the result, and the operands. An ellipsis becomes
    unused letters; lists of numbers become letters in order."""
    if not is_a(operands[0], str):
        refuse(type(operands[0]) is not Traced and len(operands) < 2, "such operands")
        has_output = len(operands) % 2 == 1
        lists = [*operands[1::2], *([operands[-1]] if has_output else [])]
        texts = ["".join("..." if k is Ellipsis else LETTERS[k] for k in one) for one in lists]
        ends = ["->" + texts.pop()] if has_output else []
        operands = (",".join(texts) + "".join(ends), *operands[: 2 * len(texts) : 2])
    subscripts = operands[0].replace(" ", "")
    xs = [array(t, x) for x in operands[1:]]
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(xs):
        raise ValueError("subscripts")
    if not arrow:
        letters = inputs.replace(".", "").replace(",", "")
        output = "..." * ("." in inputs)
        output += "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    free = [c for c in LETTERS if c not in subscripts]
    most = 0
    for k, (term, x) in enumerate(zip(terms, xs, strict=True)):
        if "..." in term:
            wide = x.ndim - len(term) + 3
            if wide < 0:
                raise ValueError("subscripts")
            most = max(most, wide)
            terms[k] = term.replace("...", "".join(free[:wide][::-1]))
    return terms, output.replace("...", "".join(free[:most][::-1])), xs


def turned(t: Any, x: Any, term: str, output: str) -> Any:
    """One operand whose letters all remain: a view, possibly of a writable diagonal."""
    if len(set(term)) == len(term):
        return t.permute(x, [term.index(c) for c in output])
    refuse(term != output * 2 or not x.flags_now.c_contiguous, "a view of such a diagonal")
    flat = t.reshape(x, (x.size,))
    refuse(not flat.shares_storage(x), "a view of a diagonal of what may not be contiguous")
    return flat[:: x.shape[0] + 1]


def aligned_product(t: Any, terms: list[str], xs: list[Any], output: str) -> Any:
    """The product of operands whose letters all remain: each is permuted and broadcast to the output."""
    made = None
    for term, x in zip(terms, xs, strict=True):
        order = sorted(range(len(term)), key=lambda i: output.index(term[i]))
        x = t.permute(x, order)
        sizes = iter(x.shape)
        x = t.reshape(x, tuple(next(sizes) if c in term else 1 for c in output))
        made = x if made is None else np.multiply(made, x)
    return made
