"""Images with channels last in memory, which ATen's convolutions on the host read and write without copies."""

from __future__ import annotations

from typing import Any

import torch

from . import layout

aten = torch.ops.aten
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}  # the number of axes of images, and their memory format
CONVOLUTIONS = {aten.convolution.default: 1, aten.convolution_backward.default: 2}  # and how many of their operands are images


def is_image(val: Any) -> bool:
    """True for a tensor on the host with the axes of images."""
    return layout.is_strided(val) and val.dim() in FORMATS and layout.device_of(val) == layout.HOST


def with_channels_last(val: Any) -> Any:
    """Fake images in another layout."""
    return val.to(memory_format=FORMATS[val.dim()])


def has_channels_last(val: Any) -> bool:
    return bool(val.is_contiguous(memory_format=FORMATS[val.dim()]))
