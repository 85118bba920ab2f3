"""Torch's dtypes in the core: their names, and the dtype in which an element-wise op computes."""

from __future__ import annotations

from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
from torch._prims_common import elementwise_dtypes, get_computation_dtype
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _disable_current_modes

MAX_AXES = 8  # of a tensor with more than one element that ATen is asked with

WORDS = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.bool: "bool",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.complex64: "c64",
    torch.complex128: "c128",
}

# The second column of aten.rows -> torch's promotion rule.
PROMOTIONS = {
    "default": KIND.DEFAULT,
    "float": KIND.INT_TO_FLOAT,
    "bool": KIND.ALWAYS_BOOL,
    "same": KIND.NO_OPMATH,
    "complex_to_float": KIND.COMPLEX_TO_FLOAT,
    "bool_to_long": KIND.BOOL_TO_LONG,
}


def common_dtype(operands: list[Any]) -> torch.dtype:
    """The dtype that torch's promotion gives to these fake tensors and numbers."""
    common: torch.dtype = elementwise_dtypes(*operands, type_promotion_kind=KIND.NO_OPMATH)[0]
    return common


def promoted(promotion: str, operands: list[Any]) -> tuple[torch.dtype, torch.dtype]:
    """The dtypes in which an element-wise op computes, and of its result.

    Parameters
    ----------
    promotion : str
        A key of PROMOTIONS.
    operands : list
        Fake tensors and Python numbers, as the op has them.
    """
    compute, result = elementwise_dtypes(*operands, type_promotion_kind=PROMOTIONS[promotion])
    return compute, result


def has_kernel(node: torch.fx.Node) -> bool:
    """False if the model itself calls an element-wise op or a reduction with dtypes for which ATen has no kernel.

    ATen is called on the device with few elements for each tensor, unless all are of float32 and float64, which have kernels. The ops of a
    decomposition are not asked for: they may have any dtype that the core has.
    """
    operands = [n.meta.get("val") for n in node.all_input_nodes]
    if all(not isinstance(x, torch.Tensor) or x.dtype in (torch.float32, torch.float64) for x in operands) or str(node.meta.get("original_aten")) != str(node.target):
        return True
    try:
        with _disable_current_modes(), torch.no_grad():
            node.target(*map_arg(node.args, _few_elements), **map_arg(node.kwargs, _few_elements))  # type: ignore[operator]
    except Exception:
        return False
    return True


def _few_elements(node: torch.fx.Node) -> Any:
    """A tensor of the rank and dtype of the node's, or 1 for a number. An axis has three elements: a cross product needs as many, and
    ATen warns of the variance of fewer.
    """
    val = node.meta["val"]
    if not isinstance(val, torch.Tensor):
        return 1
    size = 3 if val.dim() <= MAX_AXES else 1
    return torch.ones((size,) * val.dim(), dtype=val.dtype, device=val.device)


def computation_dtype(dtype: torch.dtype) -> torch.dtype:
    """float32 for narrow floats, in which reductions and elementary functions compute."""
    computed: torch.dtype = get_computation_dtype(dtype)
    return computed
