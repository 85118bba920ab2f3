"""Images with channels last in memory, which ATen's convolutions on the host read and write without copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from . import layout
from .nodes import put

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


def save_with_channels_last(forward: torch.fx.Graph, backward: torch.fx.Graph) -> None:
    """Images around convolutions pass from the forward to the backward graph with channels last. Results of the model keep their layout."""
    around = set(around_convolutions(forward))
    output = next(iter(forward.find_nodes(op="output")))
    results = list(output.args[0])
    reads = {n.name: n for n in backward.find_nodes(op="placeholder")}
    for k, node in enumerate(results):
        is_saved = isinstance(node, torch.fx.Node) and node.name in reads and results.count(node) == 1
        if not is_saved or node not in around or node.op == "placeholder" or not node.meta["val"].is_contiguous():
            continue
        with forward.inserting_before(output), node.meta["val"].fake_mode:
            results[k] = put(forward, aten.clone.default, node, memory_format=FORMATS[node.meta["val"].dim()])
        reads[node.name].meta["val"] = results[k].meta["val"]
    output.args = (type(output.args[0])(results),)


def around_convolutions(graph: torch.fx.Graph) -> Iterator[torch.fx.Node]:
    """The images that convolutions read or make, and those that ops without views make from them or make them from."""
    calls = [n for n in graph.nodes if n.target in CONVOLUTIONS]
    left, seen = [*calls, *(a for n in calls for a in n.args[: CONVOLUTIONS[n.target]])], set()
    while left:
        node = left.pop()
        if node in seen or not any(is_image(v) for v in values(node)):
            continue
        seen.add(node)
        if is_image(node.meta["val"]):
            yield node
        left += [user for user in node.users if keeps_places(user)]
        left += node.all_input_nodes if keeps_places(node) else []


def values(node: torch.fx.Node) -> list[Any]:
    val = node.meta.get("val")
    return list(val) if isinstance(val, (tuple, list)) else [val]


def keeps_places(node: torch.fx.Node) -> bool:
    """True unless the op may exchange axes, as views do, or is a convolution, whose weight is no image."""
    if node.op != "call_function" or node.target in CONVOLUTIONS:
        return False
    schema = getattr(node.target, "_schema", None)
    if schema is None or not any(r.alias_info for r in schema.returns):
        return True
    made, source = node.meta["val"], node.args[0].meta["val"]
    return is_image(made) and made.size() == source.size() and made.stride() == source.stride()
