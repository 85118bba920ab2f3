"""The graph of a program as plain objects, for passes of the user: read from its text (`docs/ir.md`), inspected and
changed, and written back. The compiler verifies the result of a pass.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from . import _core
from .base.class_lookup import is_a
from .base.graph_text import (
    GraphReader,
    Node,
    NodeBlock,
    blocks_of,
    broadcast,
    last_of,
    lines_of,
    walk,
)
from .base.user_frame import wrong
from .config import resolve
from .extensions.kernels import DTYPES, KernelCall, UserKernel


class Graph:
    r"""The graph of a program.

    `add`, `replace`, `set_args` and `erase` change it and keep the users of nodes up to date.

    Parameters
    ----------
    text : str
        A text of `text()`, as in `docs/ir.md`.

    Attributes
    ----------
    inputs : list of Node
        The inputs, in order.
    body : NodeBlock
        Its nodes, and the results, which the program returns.
    writes : dict
        Input -> the Node whose value its memory contains at the end.
    parameters : list of str
        The name of each input in the function, for a graph from `cinductor.graph`.

    Raises
    ------
    ValueError
        If the text is not a graph.

    Examples
    --------
    >>> g = cinductor.graph(lambda x: np.sin(x) + 1, cinductor.ShapeDtype((10,)))
    >>> [node.op for node in g.nodes]
    """

    def __init__(self, text: str) -> None:
        if not is_a(text, str):
            raise TypeError(wrong("Graph", "text", text, "the text of a graph, as report.graph and str(cinductor.graph(f, x)) have it"))
        self.parameters: list[str] = []
        self.inputs: list[Node] = []
        self.writes: dict[Node, Node] = {}
        self.body = NodeBlock()
        self.head = ""
        self.next_id = 0
        reader = GraphReader(self, text)
        try:
            reader.read()
        except (StopIteration, LookupError, ValueError) as error:
            raise ValueError(f"line {max(reader.at, 1)} of this text is no line of a graph: {reader.line!r}") from error

    @property
    def nodes(self) -> list[Node]:
        """All nodes in order; those inside of a region follow it."""
        return list(walk(self.body))

    def add(
        self,
        op: str,
        *args: Node,
        before: Node | None = None,
        dtype: str | None = None,
        sizes: list[int | str] | None = None,
        attributes: dict[str, str] | None = None,
    ) -> Node:
        """Add a node.

        Parameters
        ----------
        op : str
            An operation of `docs/ir.md`.
        *args : Node
            The operands.
        before : Node, optional
            The node before which it is placed; by default, it is the last one of the body.
        dtype : str, optional
            By default, the first operand's.
        sizes : list of int or str, optional
            By default, the broadcast sizes of the operands.
        **attributes : str
            Further attributes, as text: `axes="[1]"`.

        Returns
        -------
        Node
            The new node.
        """
        made = Node(
            op,
            dtype=(args[0].dtype if args else "f64") if dtype is None else dtype,
            sizes=broadcast(args) if sizes is None else list(sizes),
            attributes=dict(attributes or {}),
            place="" if before is None else before.place,
            id=self.next_id,
        )
        self.next_id += 1
        self.set_args(made, *args)
        block = self.body if before is None else self.block_of(before)
        block.nodes.insert(len(block.nodes) if before is None else block.nodes.index(before), made)
        return made

    def constant(self, value: Any, dtype: str, before: Node | None = None) -> Node:
        """Add a number, which broadcasts.

        Parameters
        ----------
        value : bool, int, float or complex
            The number.
        dtype : str
            Its dtype, such as "f64".
        before : Node, optional
            The node before which it is placed; by default, it is the last one of the body.

        Returns
        -------
        Node
            The new node.
        """
        text = {True: "true", False: "false"}.get(value, repr(value)) if dtype == "bool" else repr(value)
        return self.add("const", before=before, dtype=dtype, sizes=[], attributes={"value": text})

    def call(self, kernel: UserKernel, *args: Node, before: Node | None = None) -> Node:
        """Add a call of a kernel of the user's, which writes one new array.

        Parameters
        ----------
        kernel : UserKernel
            Made by `cinductor.kernel`.
        *args : Node
            The arrays that it reads, in order.
        before : Node, optional
            The node before which it is placed; by default, it is the last one of the body.

        Returns
        -------
        Node
            The new array.

        Raises
        ------
        TypeError, ValueError
            If the operands do not match the declaration of the kernel.
        """
        if len(kernel.writes) != 1 or len(args) != len(kernel.reads):
            raise TypeError(f"{kernel!r} has {len(kernel.reads)} operands and {len(kernel.writes)} results")
        sizes = kernel.sizes_of([Like(arg) for arg in args])
        kernel.build()
        call = KernelCall(kernel, [False], [0], False)
        _core.add_extern(call.name, call.key, call)
        (written,) = kernel.writes
        node = self.add("extern", *args, before=before, dtype=written.dtype, sizes=list(kernel.shape_of(written, sizes)))
        node.name, node.tail = call.name, f' key "{call.key}"'
        return node

    def set_args(self, node: Node, *args: Node) -> None:
        """Give a node other operands.

        Parameters
        ----------
        node : Node
            The node.
        *args : Node
            All of its operands.
        """
        for arg in node.args:
            arg.users.remove(node)
        node.args = args
        for arg in args:
            arg.users.append(node)

    def replace(self, node: Node, other: Node) -> None:
        """Replace a node by another one in all users (except the other one itself), results and writes.

        Parameters
        ----------
        node : Node
            The node to replace, which stays in the graph without users.
        other : Node
            The node that is used instead.
        """
        for user in dict.fromkeys(node.users):
            if user is not other:
                self.set_args(user, *(other if arg is node else arg for arg in user.args))
        for block in blocks_of(self.body):
            block.results[:] = [other if result is node else result for result in block.results]
        for written, value in self.writes.items():
            if value is node:
                self.writes[written] = other

    def erase(self, node: Node) -> None:
        """Remove a node that is not used. Unused nodes are also removed automatically.

        Parameters
        ----------
        node : Node
            The node.

        Raises
        ------
        ValueError
            If the node is used.
        """
        given = any(node in block.results for block in blocks_of(self.body))
        if node.users or given or node in self.writes.values():
            raise ValueError(f"{node!r} is used")
        self.set_args(node)
        self.block_of(node).nodes.remove(node)

    def block_of(self, node: Node) -> NodeBlock:
        """Find the block that contains a node.

        Parameters
        ----------
        node : Node
            A node of this graph.

        Returns
        -------
        NodeBlock
            The body of the graph, or a block of a region.

        Raises
        ------
        ValueError
            If the node is not in this graph.
        """
        for block in blocks_of(self.body):
            if node in block.nodes:
                return block
        raise ValueError(f"{node!r} is not in any block of this graph")

    def text(self) -> str:
        """Return the text that the compiler reads.

        Returns
        -------
        str
            The graph in the form of `docs/ir.md`.
        """
        return "".join(f"{line}\n" for line in (self.head, *self.lines(), "}"))

    def __str__(self) -> str:
        return self.text()

    def optimized(self, skip: str = "") -> Graph:
        """Return the graph after the compiler's passes and the registered ones.

        Parameters
        ----------
        skip : str
            Names of passes that do not run, with commas between, as in the option `skip_passes`.

        Returns
        -------
        Graph
            A new graph.
        """
        return Graph(self.compile(options={"skip_passes": skip}).text("optimized"))

    def diff(self, other: Graph) -> str:
        """Return the lines in which another graph differs.

        Parameters
        ----------
        other : Graph
            The graph to compare with.

        Returns
        -------
        str
            A unified diff; "" if the texts are equal.
        """
        before, after = (graph.text().splitlines(True) for graph in (self, other))
        return "".join(difflib.unified_diff(before, after, "before", "after", n=1))

    def compile(self, options: dict[str, Any] | None = None, backend: str = "") -> GraphProgram:
        """Compile the graph as it is now.

        Parameters
        ----------
        options : dict, optional
            Of `list_options()`.
        backend : str
            Of the CPU, as in `cinductor.compile`; "": the best.

        Returns
        -------
        GraphProgram
            The program, which is called with the graph's inputs.

        Raises
        ------
        SyntaxError, ValueError
            If the graph is not valid, with the line of its text.
        """
        return GraphProgram(self, _core.compile_graph(self.text(), options=resolve(None, options), backend=backend))

    def lines(self) -> Iterator[str]:
        """Return the lines of the text between its head and the last bracket.

        Yields
        ------
        str
            One line.
        """
        yield from lines_of(self.body.nodes)
        for written, value in self.writes.items():
            yield f"  write {written.reference} = {value.reference}"
        yield "  " + last_of(self.body)


class GraphProgram:
    """A compiled graph. Call it with the graph's inputs, in the order of `graph.parameters`.

    Every call is checked first: ValueError if an input is another array than the graph says (dtype, sizes, strides), or if there are
    more or fewer. Inputs that the graph writes to are written in place.

    Attributes
    ----------
    graph : Graph
        What was compiled.
    """

    def __init__(self, graph: Graph, program: Any) -> None:
        self.graph, self._program = graph, program

    def __call__(self, *inputs: Any) -> list[Any]:
        """Return the results in a list."""
        found: list[Any] = _core.run_program(self._program, inputs)
        return found

    def text(self, level: str) -> str:
        """Return the text of one level.

        Parameters
        ----------
        level : str
            "graph", "optimized", "loops", "kernels", "procs", "wrapper", "source", or the name of a pass.

        Returns
        -------
        str
        """
        found: str = self._program.text(level)
        return found

    def __repr__(self) -> str:
        return f"<program of {self.graph.head.split('(')[0].strip()}: {self._program.kernels} kernels, {self._program.externs} library calls>"


class Like:
    """A node in the form in which a kernel sees an array."""

    def __init__(self, node: Node) -> None:
        self.dtype, self.shape, self.ndim = DTYPES.get(node.dtype), tuple(node.sizes), len(node.sizes)


def on_text(fn: Callable[[Graph], Graph | None]) -> Callable[[str], str | None]:
    """A pass over graphs in the form in which the compiler calls it."""

    def run(text: str) -> str | None:
        graph = Graph(text)
        made = fn(graph)
        if made is not None and not isinstance(made, Graph):
            raise TypeError(f"a pass returns a Graph or None, not {type(made).__name__}")
        changed = (graph if made is None else made).text()
        return None if changed == text else changed

    return run
