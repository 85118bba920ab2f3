"""The nodes of a graph, and its text form (`docs/ir.md`): reading and printing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

REFERENCE = re.compile(r"%\d+|in\d+")
TYPE = re.compile(r"((?:scalar |python )?)(\w+)\[([^\]]*)\]((?: (?:(?:order|strides) \[[^\]]*\]|on \d+))*)")
PLACE = re.compile(r' +@((?:"(?:[^"\\]|\\.)*"|[^\s"]+):\d+)((?: quiet \d+)?)$')
LASTS = ("next", "yield", "test", "return")


@dataclass(eq=False)
class Node:
    r"""One value, or an effect.

    Attributes
    ----------
    op : str
        An operation of `docs/ir.md`.
    dtype : str
        "f64", "i32", "bool"; "" for an effect.
    sizes : list of int or str
        Numbers, or expressions as text.
    kind : str
        "array", "scalar" (NumPy's) or "python" (a number).
    attributes : dict
        Other attributes, as text by name: `{"axes": "[1]"}`; of a constant `{"value": "0.5"}`.
    place : str
        The user's line, "net.py:7", or "".
    meta : dict
        Notes of a pass, dropped at its end.
    """

    op: str
    args: tuple[Node, ...] = ()
    dtype: str = ""
    sizes: list[int | str] = field(default_factory=list)
    kind: str = "array"
    attributes: dict[str, str] = field(default_factory=dict)
    place: str = ""
    blocks: list[NodeBlock] = field(default_factory=list)  # of a for, while or if
    users: list[Node] = field(default_factory=list, repr=False)  # one entry for each operand
    meta: dict[str, Any] = field(default_factory=dict, repr=False)
    id: int = -1
    name: str = ""  # for an input or a library call
    layout: str = field(default="", repr=False)  # order, strides and device, as text
    tail: str = field(default="", repr=False)  # text after the operands: a key, a range, a reason
    quiet: str = field(default="", repr=False)

    def __repr__(self) -> str:
        return f"<{self.reference} = {self.op}: {self.type}>"

    @property
    def reference(self) -> str:
        """The node's name in the text form."""
        return self.name if self.op == "input" else f"%{self.id}"

    @property
    def type(self) -> str:
        """dtype and sizes, "f64[3,s0]"."""
        kind = "" if self.kind == "array" else f"{self.kind} "
        return f"{kind}{self.dtype}[{','.join(map(str, self.sizes))}]{self.layout}"


@dataclass(eq=False)
class NodeBlock:
    """A block of a region: the body of a loop, or an arm of a branch. params: its parameters; results: its results.
    """

    params: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    last: str = field(default="return", repr=False)


def walk(block: NodeBlock) -> Iterator[Node]:
    """The nodes of a block and of the blocks inside."""
    for node in block.nodes:
        yield node
        for inner in node.blocks:
            yield from walk(inner)


def blocks_of(block: NodeBlock) -> Iterator[NodeBlock]:
    """A block and the blocks inside it."""
    yield block
    for node in block.nodes:
        for inner in node.blocks:
            yield from blocks_of(inner)


def broadcast(args: tuple[Node, ...]) -> list[int | str]:
    """The broadcast sizes of operands, as far as their texts tell."""
    rank = max((len(arg.sizes) for arg in args), default=0)
    sizes: list[int | str] = [1] * rank
    for arg in args:
        for axis, size in enumerate(arg.sizes, rank - len(arg.sizes)):
            if size != 1:
                sizes[axis] = size
    return sizes


# --- writing ------------------------------------------------------------------------------------


def definition(node: Node) -> str:
    """The text before a node's `=`."""
    return f"{node.reference}: {node.type}"


def place_of(node: Node, gap: str) -> str:
    """The position, written after a node."""
    return f"{gap}@{node.place}{node.quiet}" if node.place else ""


def call_of(node: Node) -> str:
    """The text after the `=`, for all nodes except regions."""
    if node.op == "const":
        return f"const {node.attributes['value']}"
    words = [arg.reference for arg in node.args]
    words += [name if value == "" else f"{name}={value}" for name, value in node.attributes.items()]
    name = f"extern {node.name}" if node.op == "extern" else node.op
    return f"{name}({', '.join(words)}){node.tail}"


def last_of(block: NodeBlock) -> str:
    """The line that ends a block."""
    return " ".join([block.last, ", ".join(r.reference for r in block.results)]).rstrip()


def lines_of(nodes: list[Node]) -> Iterator[str]:
    """The lines of a block's nodes; the results of a region are in its first line."""
    results: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.op == "result":
            results.setdefault(node.args[0], []).append(node)
    for node in nodes:
        if node.op == "result":
            continue
        if not node.blocks:
            made = f"{definition(node)} = " if node.dtype else ""
            yield f"  {made}{call_of(node)}{place_of(node, '  ')}"
            continue
        made = ", ".join(map(definition, results.get(node, [])))
        yield f"  {made + ' = ' if made else ''}{head_of(node)}{place_of(node, ' ')} {{"
        for number, block in enumerate(node.blocks):
            if number:
                yield "  } else {" if node.op == "if" else "  } do {"
            yield from lines_of(block.nodes)
            yield "  " + last_of(block)
        yield "  }"


def head_of(node: Node) -> str:
    """The first line of a region, up to its place."""
    if node.op == "if":
        return f"if {node.args[0].reference}"
    params = node.blocks[0].params
    skip = len(params) - len(node.args)
    words = [definition(p) for p in params[:skip]]
    words += [f"{definition(p)} = {a.reference}" for p, a in zip(params[skip:], node.args, strict=True)]
    head = f" {node.attributes['head']}" if "head" in node.attributes else ""
    return f"{node.op}{head} carry ({', '.join(words)})"


# --- reading ------------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth, at = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[at:i].strip())
            at = i + 1
    rest = text[at:].strip()
    return [*parts, rest] if rest else parts


def closing(text: str, at: int) -> int:
    """The index where the bracket at `at` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([") - (text[i] in ")]")
        if depth == 0:
            return i
    raise ValueError(f"a bracket is open: {text}")


def typed(node: Node, text: str) -> Node:
    """A node with the type given as text."""
    found = TYPE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"no type: {text}")
    kind, node.dtype, sizes, node.layout = found.groups()
    node.kind = kind.strip() or "array"
    node.sizes = [int(size) if size.lstrip("-").isdecimal() else size for size in split(sizes)]
    return node


class GraphReader:
    """Reads the text of a graph, as the compiler prints it."""

    def __init__(self, graph: Any, text: str) -> None:
        self.graph = graph
        self.lines = text.splitlines()
        self.at = 0
        self.known: dict[str, Node] = {}

    @property
    def line(self) -> str:
        """The line that was read last, or the first one; "" if there is none."""
        return self.lines[max(self.at, 1) - 1] if self.lines else ""

    def read(self) -> None:
        """Read the graph."""
        head = next(k for k, line in enumerate(self.lines) if line.startswith("graph "))
        self.graph.head = "\n".join(self.lines[: head + 1])
        self.at = head + 1
        line = self.line
        begin = line.index("(", closing_name(line))
        for part in split(line[begin + 1 : closing(line, begin)]):
            name, _, kind = part.partition(": ")
            self.graph.inputs.append(self.define(name, typed(Node("input", name=name), kind)))
        self.graph.body = self.block()
        self.graph.next_id = max((node.id for node in self.known.values()), default=-1) + 1

    def define(self, name: str, node: Node) -> Node:
        """A node that later lines may name."""
        node.id = int(name[1:]) if name.startswith("%") else -1
        self.known[name] = node
        return node

    def block(self, params: tuple[Node, ...] = ()) -> NodeBlock:
        """Read the lines of a block and the line that ends it."""
        block = NodeBlock(list(params))
        while True:
            line = self.lines[self.at].strip()
            self.at += 1
            word, _, rest = line.partition(" ")
            if word in LASTS:
                block.last = word
                block.results = [self.known[name] for name in split(rest)]
                return block
            if word == "write":
                name, _, value = rest.partition(" = ")
                self.graph.writes[self.known[name]] = self.known[value]
            elif line.endswith(" {"):
                self.region(block, line[:-2])
            else:
                self.node(block, line)

    def placed(self, node: Node, line: str) -> str:
        """The line without the position, which is stored in the node."""
        found = PLACE.search(line)
        if found is None:
            return line.rstrip()
        node.place, node.quiet = found.groups()
        return line[: found.start()]

    def node(self, block: NodeBlock, line: str) -> None:
        """Read one line."""
        node = Node("")
        line = self.placed(node, line)
        if line.startswith("%"):
            made, _, line = line.partition(" = ")
            name, _, kind = made.partition(": ")
            self.define(name, typed(node, kind))
        block.nodes.append(node)
        if line.startswith("const "):
            node.op, node.attributes = "const", {"value": line[6:]}
            return
        begin = line.index("(", closing_name(line) if line.startswith("extern ") else 0)
        end = closing(line, begin)
        name, inside, node.tail = line[:begin], line[begin + 1 : end], line[end + 1 :]
        node.op, _, node.name = name.partition(" ")
        parts = [inside] if node.op == "expr" else split(inside)
        names = [part for part in parts if REFERENCE.fullmatch(part)] if node.op != "expr" else []
        for part in parts[len(names) :]:
            key, _, value = (part, "", "") if node.op == "expr" else part.partition("=")
            node.attributes[key] = value
        self.graph.set_args(node, *(self.known[n] for n in names))

    def region(self, block: NodeBlock, line: str) -> None:
        """Read a for, while or if with its blocks; its results are in its first line."""
        node = Node("")
        line = self.placed(node, line)
        made, _, rest = line.partition(" = ") if line.startswith("%") else ("", "", line)
        while made.count("(") != made.count(")"):  # a size that contains a comparison has none
            more, _, rest = rest.partition(" = ")
            made = f"{made} = {more}"
        node.op, _, rest = rest.partition(" ")
        block.nodes.append(node)
        params: list[Node] = []
        if node.op == "if":
            self.graph.set_args(node, self.known[rest.strip()])
        else:
            begin = rest.index("carry (") + 6
            if rest[: begin - 6].strip():
                node.attributes["head"] = rest[: begin - 6].strip()
            args = []
            for part in split(rest[begin + 1 : closing(rest, begin)]):
                text, _, initial = part.partition(" = ")
                name, _, kind = text.partition(": ")
                params.append(self.define(name, typed(Node("param"), kind)))
                args += [self.known[initial]] if initial else []
            self.graph.set_args(node, *args)
        self.blocks(node, tuple(params))
        for part in split(made):
            name, _, kind = part.partition(": ")
            result = self.define(name, typed(Node("result"), kind))
            self.graph.set_args(result, node)
            block.nodes.append(result)

    def blocks(self, node: Node, params: tuple[Node, ...]) -> None:
        """Read up to the bracket that ends a region."""
        node.blocks.append(self.block(params))
        while self.lines[self.at].strip() in ("} else {", "} do {"):
            self.at += 1
            node.blocks.append(self.block())
        self.at += 1


def closing_name(line: str) -> int:
    """The index where the second word of a line ends, which may be in quotes."""
    at = line.index(" ") + 1
    if line[at] != '"':
        return at
    found = re.compile(r'"(?:[^"\\]|\\.)*"').match(line, at)
    return at if found is None else found.end()


# --- passes -------------------------------------------------------------------------------------
