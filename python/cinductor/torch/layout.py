"""Memory layouts of tensors: the stride order of a dense tensor's axes, and which tensors share storage."""

from __future__ import annotations

from typing import Any

import torch

from .sizes import hint, is_equal, is_known, of_elements


def order_of(tensor: Any) -> list[int]:
    """The axes from the largest stride to the smallest: the core's notation of a stride order."""
    strides, sizes = [hint(s) for s in tensor.stride()], [hint(s) for s in tensor.size()]
    return sorted(range(tensor.dim()), key=lambda k: (-strides[k], -sizes[k], k))


def order_text(tensor: Any) -> str:
    """` order [1,0]`; nothing for C order."""
    order = order_of(tensor)
    real = [k for k in order if not is_known(tensor.size(k) == 1)]
    return "" if real == sorted(real) else " order [" + ",".join(map(str, order)) + "]"


def is_dense(tensor: Any) -> bool:
    """True if the elements fill their memory without gaps or overlaps, in one order of axes for all sizes."""
    if any(is_known(s == 0) for s in tensor.size()):
        return True  # there are no elements
    step: Any = 1
    for k in reversed(order_of(tensor)):
        size = tensor.size(k)
        stride = tensor.stride(k)
        if not is_known(size == 1) and not is_known(stride == step) and not is_equal(of_elements(stride), of_elements(step)):
            return False
        step = step * size
    return True


def is_lazy(tensor: Any) -> bool:
    """True if its values are those in its memory, conjugated or negated."""
    return bool(tensor.is_conj() or tensor.is_neg())


def is_strided(value: Any) -> bool:
    """True for a tensor with strides and storage."""
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def is_whole(tensor: Any) -> bool:
    """True if it is dense from the start of its memory on."""
    return is_dense(tensor) and is_known(tensor.storage_offset() == 0)


def storage_of(tensor: Any) -> int:
    """An identifier of the storage of a fake or real tensor."""
    return int(tensor.untyped_storage()._cdata)


HOST = torch.device("cpu")


def device_of(tensor: Any) -> torch.device:
    """The device whose memory a tensor is in."""
    device: torch.device = tensor.device
    return device


def is_plain(tensor: Any) -> bool:
    """True if the core can read it: strided memory of the host or of a CUDA device with one dtype, no lazy or wrapped tensor."""
    return bool(
        tensor.layout == torch.strided
        and not tensor.is_quantized
        and not tensor.is_nested
        and device_of(tensor).type in ("cpu", "cuda")
    )


def kind(tensor: Any) -> str:
    """The type, layout and device of a tensor, for the reason of a refusal."""
    state = "nested " if tensor.is_nested else "quantised " if tensor.is_quantized else ""
    return f"a {state}{type(tensor).__name__} of layout {tensor.layout} on {tensor.device}"
