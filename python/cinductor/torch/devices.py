"""The device of a graph, and the part of the graph of a CUDA device whose tensors are on the host.

A program has one device. In a graph of a CUDA device, numbers on the host (tensors without axes: an optimizer's count of steps) are
computed by a second program, which runs first. Its results are numbers for the kernels, or leave the graph as they are.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from . import layout
from .values import Refused


@dataclass
class HostPart:
    """The part of a graph on the host, and what is left of the graph.

    gm : torch.fx.GraphModule
        The part on the host. It returns the values that the rest needs.
    arguments : list of int
        The numbers of the graph's inputs that are its inputs.
    rest : torch.fx.GraphModule
        The part on the device. After the graph's inputs it takes the results of `gm`.
    count : int
        The number of the graph's inputs.
    """

    gm: torch.fx.GraphModule
    arguments: list[int]
    rest: torch.fx.GraphModule
    count: int


def tensors_of(node: torch.fx.Node) -> list[Any]:
    """The fake tensors that a node gives."""
    return [v for v in tree_leaves(node.meta.get("val")) if isinstance(v, torch.Tensor)]


def find_device(gm: torch.fx.GraphModule) -> torch.device:
    """The device of the graph: a CUDA device if one of its tensors is there. Raises Refused if there are several."""
    found = {layout.device_of(v) for node in gm.graph.nodes if node.op != "output" for v in tensors_of(node)} - {layout.HOST}
    if len(found) > 1:
        raise Refused(f"its tensors are on several devices: {', '.join(sorted(map(str, found)))}")
    return next(iter(found), layout.HOST)


def is_on_host(node: torch.fx.Node) -> bool:
    found = tensors_of(node)
    return bool(found) and all(layout.device_of(v) == layout.HOST for v in found)


def is_drawn(node: torch.fx.Node) -> bool:
    """True if the value comes from a generator of torch."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def is_of_shape(node: torch.fx.Node) -> bool:
    """True if the op is ATen's and reads no element of its operands: `new_full`, `zeros_like`."""
    name = getattr(node.target, "__name__", "").partition(".")[0]
    is_atens = getattr(node.target, "namespace", "") == "aten"
    return is_atens and (name.startswith("new_") or name.endswith("_like"))


def split(gm: torch.fx.GraphModule) -> HostPart | None:
    """The part of a device's graph on the host; None if there is none. Raises Refused if it depends on the rest.

    Values of the host that depend on no input, as `torch.full([], 0.5)`, are left to both parts: the core has them on any device.
    """
    nodes = list(gm.graph.nodes)
    outputs = {n for n in tree_leaves(nodes[-1].args) if isinstance(n, torch.fx.Node)}
    inputs = [n for n in nodes if n.op == "placeholder"]
    mine = {n for n in inputs if is_on_host(n)}
    free: set[torch.fx.Node] = set()  # values of the host without inputs
    for node in nodes:
        if node.op not in ("call_function", "get_attr") or not is_on_host(node):
            continue
        if not is_of_shape(node) and any(tensors_of(n) and n not in mine and n not in free for n in node.all_input_nodes):
            raise Refused(f"{node.target} copies from the device to the host")
        if any(n in mine for n in node.all_input_nodes) or is_drawn(node) or node in outputs:
            mine.add(node)
        else:
            free.add(node)
    parts = [n for n in mine if n.op != "placeholder"]
    if not parts and not any(n in outputs for n in mine):
        return None
    needed = [n for n in parts if n in outputs or any(u not in mine and u.op != "output" for u in n.users)]
    for node in needed:
        if any(v.dim() for v in tensors_of(node)) and node not in outputs:
            raise Refused(f"{node.target} gives a tensor of the host for an op of the device")
        if not isinstance(node.meta.get("val"), torch.Tensor):
            raise Refused(f"{node.target} of the host gives several values")
    return HostPart(*host_graph(gm, mine | free, needed), rest_graph(gm, mine, needed), len(inputs))


def is_of_sizes(node: torch.fx.Node) -> bool:
    return not tensors_of(node) and node.target is not operator.getitem


def host_graph(gm: torch.fx.GraphModule, kept: set[torch.fx.Node], needed: list[torch.fx.Node]) -> tuple[torch.fx.GraphModule, list[int]]:
    """A graph of those nodes, and the numbers of the inputs that it takes."""
    graph, made = torch.fx.Graph(), {}
    arguments: list[int] = []
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for node in gm.graph.nodes:
        if node.op == "output" or not (node in kept or is_of_sizes(node)):
            continue
        if any(n not in made for n in node.all_input_nodes):
            continue  # an int that data of the device decide
        made[node] = graph.node_copy(node, made.__getitem__)
        if node.op == "placeholder":
            arguments.append(inputs.index(node))
    graph.output([made[n] for n in needed])
    return torch.fx.GraphModule(gm, graph), arguments


def rest_graph(gm: torch.fx.GraphModule, mine: set[torch.fx.Node], needed: list[torch.fx.Node]) -> torch.fx.GraphModule:
    """The graph without the nodes of the host; their results are inputs after its own."""
    graph, made = torch.fx.Graph(), {}
    nodes = list(gm.graph.nodes)
    for node in nodes:
        if node.op == "placeholder":
            made[node] = graph.node_copy(node, made.__getitem__)
    for node in needed:
        made[node] = graph.placeholder(f"host_{node.name}")
        made[node].meta = dict(node.meta)
    for node in nodes:
        if node.op == "placeholder" or node in mine:
            continue
        made[node] = graph.node_copy(node, made.__getitem__)
    return torch.fx.GraphModule(gm, graph)
