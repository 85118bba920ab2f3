"""Ops on lists of tensors (`aten::_foreach_*`), which optimizers use on CUDA devices: the op of each element."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

PREFIX = "aten::_foreach_"
# Ops whose element-wise op has another name or takes no number in the place of a tensor.
NAMED: dict[str, Callable[..., Any]] = {
    "clamp_max": torch.clamp_max,
    "clamp_min": torch.clamp_min,
    "copy": lambda x, source, non_blocking=False: source.to(x.dtype).expand_as(x).clone(),
    "maximum": lambda x, other: torch.maximum(x, other) if isinstance(other, torch.Tensor) else torch.clamp_min(x, other),
    "minimum": lambda x, other: torch.minimum(x, other) if isinstance(other, torch.Tensor) else torch.clamp_max(x, other),
    "norm": lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype),
    "zero": torch.zeros_like,
}
WITH_VALUE = ("addcmul", "addcdiv")  # their third number is a keyword of the op of an element


def decompositions() -> dict[Any, Callable[..., Any]]:
    """For each functional op on lists the function that calls the op of each element."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix(PREFIX)
        element = NAMED.get(name) or getattr(torch, name, None)
        if name == schema.name or schema.is_mutable or element is None or len(schema.returns) != 1:
            continue
        packet = getattr(torch.ops.aten, f"_foreach_{name}")
        found[getattr(packet, schema.overload_name or "default")] = functools.partial(each, element, schema, name in WITH_VALUE)
    return found


def each(element: Callable[..., Any], schema: Any, has_value: bool, *args: Any, **kwargs: Any) -> list[Any]:
    """The results of the op of each element."""
    given = {a.name: v for a, v in zip(schema.arguments, args, strict=False)} | kwargs
    lists = {a.name for a in schema.arguments if a.type.kind() == "ListType"}
    if has_value and isinstance(given.get("scalars"), torch.Tensor):
        given["scalars"], lists = given["scalars"].unbind(), lists | {"scalars"}
    count = next(len(given[a.name]) for a in schema.arguments if a.name in lists)
    return [call(element, given, lists, has_value, k) for k in range(count)]


def call(element: Callable[..., Any], given: dict[str, Any], lists: set[str], has_value: bool, k: int) -> Any:
    values = {name: v[k] if name in lists and isinstance(v, Sequence) else v for name, v in given.items()}
    number = values.pop("scalars", None) if has_value else None
    number = values.pop("value", number) if has_value else None
    keywords = {name: values.pop(name) for name in ("alpha", "dtype", "non_blocking") if name in values}
    if isinstance(number, torch.Tensor):
        first, a, b = values.values()
        return first + number * element(torch.zeros_like(first), a, b)
    return element(*values.values(), **keywords, **({"value": number} if number is not None else {}))
