"""An op of torch whose implementation is a kernel of Triton."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_one(x, out, count, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(out + at, tl.load(x + at, mask=at < count) + 1, mask=at < count)


@torch.library.triton_op("cinductor_triton::add_one", mutates_args=())
def add_one(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(_add_one)[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), 128)
    return out
