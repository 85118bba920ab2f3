"""Moves array work out of statements that Python runs: `print(x.sum())` becomes `t = x.sum(); print(t)`.

The order of evaluation is kept: if a part is moved, all parts before it are moved too, except constants and plain
local names, which nothing can change in between. There are two exceptions. A module's function that is called
(`print`, `np.save`) is looked up after its arguments. Values in one text are formatted after the last of them is
computed.
"""

from __future__ import annotations

import ast
import copy
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..syntax.cfg import EMPTY, Cfg, Set, captured
from ..syntax.jumps import always_jumps, blocks_of

FOLLOW = "_ci_follow"  # what a dispatcher calls in place of a function that has broken inside
WORK = ast.BinOp | ast.UnaryOp | ast.Call | ast.Subscript | ast.Compare | ast.BoolOp | ast.IfExp
Names = frozenset[str]
OPAQUE = ast.Lambda | ast.GeneratorExp | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom


def works(node: ast.AST) -> bool:
    """True if the expression computes something."""
    return any(isinstance(n, WORK) and not is_number(n) for n in ast.walk(node))


def is_number(node: ast.AST) -> bool:
    """True for a constant with an optional sign."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


def is_fixed(node: ast.AST, locals_: Names) -> bool:
    """True if evaluating the part always gives the same value."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in locals_)


def is_pythons(node: ast.AST) -> bool:
    """True if Python certainly has to run an expression: it formats values, or calls a function that has broken
    inside.
    """
    if any(isinstance(n, ast.Name) and n.id == FOLLOW for n in ast.walk(node)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return isinstance(node, ast.JoinedStr)


class Hoist:
    r"""Moves parts out of one statement.

    `temps` are the assignments before it; expressions that Python itself must run have `ci_glue`. lists: names that
    only refer to lists and dicts, whose methods can be looked up later; depth: how deep expressions are opened to
    find parts to move.
    """

    def __init__(self, locals_: Names, lists: Names, name: Callable[[], str]) -> None:
        self.locals = locals_
        self.lists = lists
        self.name = name
        self.temps: list[ast.stmt] = []

    def move(self, node: ast.expr, stays: bool = False) -> ast.expr:
        """Replace the part by a name that is assigned before."""
        name = self.name()
        target = ast.copy_location(ast.Name(name, ast.Store()), node)
        temp = ast.copy_location(ast.Assign([target], node), node)
        temp.ci_glue = stays  # type: ignore[attr-defined]
        self.temps.append(temp)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def parts(self, nodes: list[ast.expr], depth: int) -> list[ast.expr]:
        """Parts that are evaluated in this order: all up to the last one that computes something are moved."""
        last = max((k for k, n in enumerate(nodes) if works(n)), default=-1)
        return [n if k > last else self.part(n, depth, k == last) for k, n in enumerate(nodes)]

    def part(self, node: ast.expr, depth: int, is_last: bool = True) -> ast.expr:
        """Move a part, or open it if Python must run it; it keeps its place if nothing after it is moved."""
        if is_fixed(node, self.locals):
            return node
        if depth <= 0 and not is_pythons(node):
            return self.move(node)
        opened = self.open(node, depth - (not is_pythons(node)))
        return opened if is_last else self.move(opened, True)

    def open(self, node: ast.expr, depth: int) -> ast.expr:
        """The expression with moved parts replaced."""
        if isinstance(node, ast.Call):
            return self.call(node, depth)
        if isinstance(node, ast.JoinedStr):
            places = [v for v in node.values if isinstance(v, ast.FormattedValue)]
            for place, value in zip(
                places, self.parts([p.value for p in places], depth), strict=True
            ):
                place.value = value
        elif isinstance(node, ast.BinOp):
            node.left, node.right = self.both(node.left, node.right, depth)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            node.left, node.comparators[0] = self.both(node.left, node.comparators[0], depth)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            node.value, node.slice = self.both(node.value, node.slice, depth)
        elif isinstance(node, ast.UnaryOp):
            node.operand = self.part(node.operand, depth)
        elif isinstance(node, ast.Attribute):
            node.value = self.part(node.value, depth)
        elif isinstance(node, ast.Tuple | ast.List) and self.is_plain(node.elts):
            node.elts = self.parts(node.elts, depth)
        return node

    def both(self, left: ast.expr, right: ast.expr, depth: int) -> tuple[ast.expr, ast.expr]:
        """Two operands."""
        if isinstance(right, ast.Tuple) and not self.is_plain(right.elts):
            return self.part(left, depth), right
        first, second = self.parts([left, right], depth)
        return first, second

    def is_plain(self, nodes: list[ast.expr]) -> bool:
        return not any(isinstance(n, ast.Starred | ast.Slice) for n in nodes)

    def call(self, node: ast.Call, depth: int) -> ast.expr:
        """A call of what its arguments are moved from."""
        values = [*node.args, *(k.value for k in node.keywords)]
        if not self.is_plain(values) or any(k.arg is None for k in node.keywords):
            return node
        node.func = self.function(node.func, depth, any(map(works, values)))
        values = self.parts(values, depth)
        node.args = values[: len(node.args)]
        for keyword, value in zip(node.keywords, values[len(node.args) :], strict=True):
            keyword.value = value
        return node

    def function(self, node: ast.expr, depth: int, has_parts: bool) -> ast.expr:
        """The callee. A method is looked up before its arguments are computed."""
        if isinstance(node, ast.Name) or not isinstance(node, ast.Attribute):
            return node
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value  # type: ignore[assignment]
        if isinstance(base, ast.Name) and (base.id in self.lists or base.id not in self.locals):
            return node  # a function of a module, or a method of a list
        if works(node.value):
            node.value = self.part(node.value, depth)
        return self.move(node, True) if has_parts else node


def hoist(
    node: ast.stmt, locals_: Names, lists: Names, name: Callable[[], str], depth: int
) -> list[ast.stmt]:
    """The statement, which is changed, preceded by the assignments to which its parts were moved."""
    made = Hoist(locals_, lists, name)
    node.ci_glue = True  # type: ignore[attr-defined]
    if any(isinstance(n, OPAQUE) for n in ast.walk(node)):
        return [node]
    if isinstance(node, ast.Expr | ast.Return | ast.Assign) and node.value is not None:
        node.value = made.open(node.value, depth)
    elif isinstance(node, ast.AugAssign) and is_fixed(load_of(node.target), locals_):
        node.value = made.part(node.value, depth)
    return [*made.temps, node]


def load_of(node: ast.expr) -> ast.expr:
    """A load of an assigned name."""
    return ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node


CELL = "_ci_p"  # the name under which the dispatcher calls its pieces and gets outside values
TEMP = "_ci_t"
UNBOUND = "_ci_unbound"
MOST_LEVEL, LEFT = 4, 9  # number of breaks after which a statement is left unchanged
CONSUMERS = frozenset({"sum", "any", "all", "min", "max", "sorted", "tuple", "list", "set", "dict"})
SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return | ast.Assert | ast.Pass
DISPLAYS = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp
OUTSIDE = frozenset({"super", "__class__", FOLLOW})


class Marks:
    """Breaks of a function by line: how often each statement broke, and whether it did so in a called function."""

    def __init__(self) -> None:
        self.levels: dict[int, int] = {}
        self.inner: set[int] = set()

    def add(self, line: int, is_inner: bool) -> bool:
        """Record a break at a line; False if it was known."""
        level = self.levels.get(line, 0)
        if is_inner and line not in self.inner:
            self.inner.add(line)
            self.levels[line] = max(level, 1)
            return True
        self.levels[line] = level + 1
        return level < MOST_LEVEL

    def leave(self, line: int) -> bool:
        """Leave the statement to Python unchanged; False if it was known."""
        known, self.levels[line] = self.levels.get(line, 0), LEFT
        return known < LEFT

    def within(self, node: Any) -> list[int]:
        """The lines of a statement at which breaks happened."""
        moved = getattr(node, "ci_moved", ())
        return [n for n in self.levels if node.lineno <= n <= node.end_lineno and n not in moved]


def head_end(node: Any) -> int:
    """The last line of the expressions that a construct itself evaluates."""
    return max(node.lineno, node.body[0].lineno - 1) if hasattr(node, "body") else node.end_lineno


class Piece:
    """A sequence of statements, and the function it becomes."""

    def __init__(self, number: int, body: list[ast.stmt]) -> None:
        self.number = number
        self.body = body
        self.lines = body[0].lineno, body[-1].end_lineno or body[-1].lineno
        self.inputs: tuple[str, ...] = ()
        self.outputs: tuple[str, ...] = ()
        self.maybe_unbound: Set = EMPTY  # outputs that may be unbound
        self.is_tail = False

    def binders(self) -> list[list[int]]:
        """For each output, the lines that bind it."""
        pairs = [(n.lineno, frozenset(own_binds(n))) for n, _ in statements(self.body, False)]
        return [[line for line, names in pairs if out in names] for out in self.outputs]

    def function(self, name: str, declared: list[ast.stmt]) -> ast.FunctionDef:
        """The piece as a function."""
        made: Any = ast.parse("def piece(): pass").body[0]
        made.name = name
        made.args.args = [ast.arg(n) for n in self.inputs]
        body = copy.deepcopy([*declared, *self.body])
        at = body[-1]
        if not self.is_tail:
            body += [s for n in sorted(self.maybe_unbound) for s in guarded(n, at)]
            body.append(ast.copy_location(ast.Return(tuple_of(self.outputs, ast.Load())), at))
        made.body = body
        ast.copy_location(made, self.body[0])
        return made

    def call(self) -> list[ast.stmt]:
        """The statements that stand for it in the driver."""
        at = self.body[0]
        call = ast.Call(
            ast.Name(f"{CELL}{self.number}", ast.Load()),
            [ast.Name(n, ast.Load()) for n in self.inputs],
            [],
        )
        if self.is_tail:
            return located(at, ast.Return(call))
        if not self.outputs:
            return located(at, ast.Expr(call))
        out = located(at, ast.Assign([tuple_of(self.outputs, ast.Store())], call))
        for name in sorted(self.maybe_unbound):
            out += located(at, *ast.parse(f"if {name} is {UNBOUND}: del {name}").body)
        return out


def guarded(name: str, at: ast.stmt) -> list[ast.stmt]:
    """An assignment after which the name has a value: UNBOUND if it had none."""
    text = f"try: {name}\nexcept NameError: {name} = {UNBOUND}"
    return located(at, *ast.parse(text).body)


def located(at: ast.AST, *nodes: ast.stmt) -> list[ast.stmt]:
    """Statements with the position of another one."""
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.stmt | ast.expr | ast.excepthandler):
                ast.copy_location(part, at)
    return list(nodes)


def tuple_of(names: tuple[str, ...], ctx: ast.expr_context) -> ast.expr:
    """The names as a tuple; a single one as itself."""
    parts: list[ast.expr] = [ast.Name(n, ctx) for n in names]
    return parts[0] if len(parts) == 1 else ast.Tuple(parts, ctx)


class Split:
    """Splits a function into pieces. Its node is consumed and becomes the dispatcher's."""

    def __init__(self, node: ast.FunctionDef, locals_: frozenset[str], marks: Marks) -> None:
        self.node = node
        self.marks = marks
        self.temps = 0
        self.follows = False  # a called function is compiled separately
        self.pieces: list[Piece] = []
        own = [n for n, _ in statements(node.body, False)]
        declared = [n for n in own if isinstance(n, ast.Global | ast.Nonlocal)]
        outer = {name for n in declared for name in n.names}
        inner = [n for n in ast.walk(node) if isinstance(n, ast.Nonlocal) and n not in declared]
        self.shared = frozenset(n for d in inner for n in d.names)  # bound by inner functions
        self.declared: list[ast.stmt] = [*declared]
        self.locals = frozenset(locals_) - outer - self.shared
        self.lists = names_of_lists(node) & self.locals
        node.body = self.taken_to_pieces(node.body)
        self.locals |= {f"{TEMP}{k}" for k in range(self.temps)}
        args = node.args
        own = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        self.flow = Cfg(node.body, [arg.arg for arg in own if arg is not None])
        self.stable = self.stable_names()
        self.maybe: dict[int, Set] = {}  # by id of a statement: names that may be bound
        arguments = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        self.note_maybe(node.body, set(arguments))
        body = self.block(node.body, True)
        node.body = self.still_local(body, arguments) + body

    def still_local(self, body: list[ast.stmt], arguments: set[str]) -> list[ast.stmt]:
        """Declare names that the dispatcher reads but only pieces bind."""
        read = frozenset().union(*map(mentioned, body)) & self.locals
        lost = read.difference(arguments, *map(binds, body))
        return [s for n in sorted(lost) for s in located(body[0], *ast.parse(f"{n}: None").body)]

    def name(self) -> str:
        """A name for a part of a statement."""
        self.temps += 1
        return f"{TEMP}{self.temps - 1}"

    # --- opening statements that have broken ---

    def taken_to_pieces(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The block in which statements that have broken are opened, so that their array work can be outlined."""
        return [new for node in body for new in self.pieces_of(node)]

    def pieces_of(self, node: Any) -> list[ast.stmt]:
        lines = self.marks.within(node)
        node.ci_glue = bool(lines)
        if not lines:
            return [node]
        own = [n for n in lines if n <= head_end(node)]
        level = max((self.marks.levels[n] for n in own), default=0)
        if self.marks.inner.intersection(own):
            if not blocks(node):
                Followed().visit(node)
                self.follows = True
        if not blocks(node):
            is_open = isinstance(node, SIMPLE) and level < MOST_LEVEL
            return self.hoisted(node, level) if is_open else [node]
        out: list[ast.stmt] = []
        if isinstance(node, ast.If) and level < 2 and works(node.test):
            out.append(self.tested(node))
        elif isinstance(node, ast.While) and level < 2 and works(node.test) and not node.orelse:
            out_test = self.tested(node)
            leave = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
            stop = located(out_test, leave)
            stop[0].ci_glue = True  # type: ignore[attr-defined]
            node.test = ast.copy_location(ast.Constant(True), node)
            node.body = [out_test, *stop, *node.body]
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(node, field, self.taken_to_pieces(getattr(node, field)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self.taken_to_pieces(part.body)
        return [*out, node]

    def hoisted(self, node: ast.stmt, level: int) -> list[ast.stmt]:
        return hoist(node, self.locals, self.lists, self.name, level - 1)

    def tested(self, node: Any) -> ast.stmt:
        """The statement that computes a construct's test before it."""
        name = self.name()
        target = ast.copy_location(ast.Name(name, ast.Store()), node.test)
        temp = ast.copy_location(ast.Assign([target], node.test), node.test)
        node.test = ast.copy_location(ast.Name(name, ast.Load()), node.test)
        return temp

    # --- sequences of statements ---

    def block(self, body: list[ast.stmt], is_root: bool = False) -> list[ast.stmt]:
        """The block with its sequences outlined."""
        out: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for node in body:
            if not getattr(node, "ci_glue", False) and self.why_not(node) is None:
                run.append(node)
                continue
            out += self.outlined(run, False)
            out.append(self.inside(node))
            run = []
        return out + self.outlined(run, is_root)

    def inside(self, node: Any) -> ast.stmt:
        """A statement that stays, with pieces in its blocks."""
        if not blocks(node):
            return node
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(node, field, self.block(getattr(node, field)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self.block(part.body)
        return node

    def outlined(self, run: list[ast.stmt], ends_function: bool) -> list[ast.stmt]:
        """The replacement of a sequence of statements in the dispatcher."""
        while run and is_trivial(run[-1]):
            tail = run[-1]
            return [*self.outlined(run[:-1], False), tail]
        if not any(map(works, run)):
            return run
        piece = Piece(len(self.pieces), run)
        returns = [n for node in run for n in jumps_out(node) if isinstance(n, ast.Return)]
        piece.is_tail = bool(returns) and (ends_function or always_jumps(run))
        at = self.stays(piece, returns)
        if at is not None:
            first = self.outlined(run[:at], False)
            return [*first, self.inside(run[at]), *self.outlined(run[at + 1 :], ends_function)]
        self.pieces.append(piece)
        return piece.call()

    def stays(self, piece: Piece, returns: list[ast.stmt]) -> int | None:
        """The number of a statement that cannot be in the piece; None if all can: the piece then has its names."""
        run = piece.body
        if returns and not piece.is_tail:
            return next(k for k, n in enumerate(run) if any(r in returns for r in jumps_out(n)))
        names = [mentioned(n) for n in run]
        given = (frozenset().union(*names) & self.flow.before(run[0])) & self.locals
        sure = self.flow.sure(run[0])
        if sure is None:
            return 0
        bound = frozenset().union(*map(binds, run))
        # A name that is certainly unbound at this point is local to the piece if the piece binds it.
        unbound = (given & bound) - self.maybe[id(run[0])]
        for name in given - sure - unbound:
            return next(k for k, used in enumerate(names) if name in used)
        given -= unbound
        ends = self.flow.sure_after(run[-1])
        left = bound & self.flow.after(run[-1]) & self.locals
        piece.inputs = tuple(sorted(given))
        piece.outputs = () if piece.is_tail else tuple(sorted(left))
        piece.maybe_unbound = EMPTY if ends is None else left - ends
        return None

    def note_maybe(self, body: list[ast.stmt], names: set[str]) -> None:
        """Record the names that are bound before a statement as written, or in a loop around it."""
        for node in body:
            if isinstance(node, ast.For | ast.While):
                names |= binds(node)
            self.maybe[id(node)] = frozenset(names)
            names |= frozenset(own_binds(node))
            for block in blocks(node):
                self.note_maybe(block, names)

    def why_not(self, node: ast.stmt) -> str | None:
        """The reason why a statement cannot be in any piece, or None."""
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.Delete):
            return "Python's own"
        names = mentioned(node)
        if names & (OUTSIDE | self.shared):
            return "a name is bound by a function inside"
        if any(
            isinstance(
                n,
                ast.Delete
                | ast.Yield
                | ast.YieldFrom
                | ast.Await
                | ast.Global
                | ast.Nonlocal
                | ast.ClassDef,
            )
            for n in ast.walk(node)
        ):
            return "Python's own"
        if any(isinstance(n, ast.Break | ast.Continue) for n in jumps_out(node)):
            return "a jump leaves it"
        made = binds(node)
        if made & self.flow.errors(node):
            return "a handler may read what it binds"
        if (made & self.flow.captured) - self.stable or self.captured_in(node) - self.stable:
            return "a function inside reads a name that changes"
        return None

    def captured_in(self, node: ast.stmt) -> Set:
        """The function's names that an object made in a statement may read later."""
        found: Set = EMPTY
        for part in ast.walk(node):
            if isinstance(part, ast.Lambda | ast.FunctionDef | ast.GeneratorExp):
                if not getattr(part, "ci_consumed", False):
                    found |= captured(part)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                if part.func.id in CONSUMERS and len(part.args) >= 1:
                    part.args[0].ci_consumed = True  # type: ignore[attr-defined]
        return found & self.locals

    def stable_names(self) -> Set:
        """Names that are bound once: an inner function reads the value that they had when it was made."""
        counts: dict[str, int] = {}
        args = self.node.args
        for arg in ast.walk(args):
            if isinstance(arg, ast.arg):
                counts[arg.arg] = 1
        for node, in_loop in statements(self.node.body, False):
            for name in own_binds(node):
                counts[name] = counts.get(name, 0) + 1 + in_loop
        return frozenset(name for name, count in counts.items() if count == 1)


class Followed(ast.NodeTransformer):
    """Replaces calls in a statement that broke inside the called function: that function is compiled separately."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name | ast.Attribute):
            follow = ast.copy_location(ast.Name(FOLLOW, ast.Load()), node.func)
            node.func = ast.copy_location(ast.Call(follow, [node.func], []), node.func)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def names_of_lists(node: ast.FunctionDef) -> Set:
    """Names that are only bound to new lists, dicts and sets."""
    lists, others = set(), {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    for part, _ in statements(node.body, False):
        names = frozenset(own_binds(part))
        is_list = isinstance(part, ast.Assign) and isinstance(part.value, DISPLAYS)
        if is_list and len(names) == 1 and isinstance(part.targets[0], ast.Name):
            lists |= names
        else:
            others |= names
    return frozenset(lists - others)


def is_trivial(node: ast.stmt) -> bool:
    """True for a statement that would make a useless piece."""
    return isinstance(node, ast.Pass | ast.Expr | ast.Assign) and not works(node)


def jumps_out(node: Any, in_loop: bool = False) -> Iterator[ast.stmt]:
    """The jumps that leave a statement."""
    if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
        yield node
    is_loop = isinstance(node, ast.For | ast.While)
    for block in blocks(node):
        inner = in_loop or (is_loop and block is node.body)
        for child in block:
            yield from jumps_out(child, inner)


def mentioned(node: ast.AST) -> Set:
    """Every name in a statement."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return frozenset(found | {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)})


def own_binds(node: ast.AST) -> Iterator[str]:
    """The names that a statement itself binds, once per binding; not those in its blocks."""
    if isinstance(node, ast.FunctionDef):
        yield node.name
        return
    others = {id(s) for block in blocks(node) for s in block}
    todo = deque([node])
    while todo:
        part = todo.popleft()
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Load):
                yield part.id
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).split(".")[0]
        else:
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                yield name
        if isinstance(part, ast.comprehension):
            todo += (part.iter, *part.ifs)  # its target is local to the comprehension
        else:
            todo += (child for child in ast.iter_child_nodes(part) if id(child) not in others)


def blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements in a statement."""
    return [*blocks_of(node)]


def binds(node: ast.AST) -> Set:
    """The names that a statement may bind."""
    inner = (binds(s) for block in blocks(node) for s in block)
    return frozenset(own_binds(node)).union(*inner)


def statements(body: list[ast.stmt], in_loop: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements of a function, and whether each is inside of a loop."""
    for node in body:
        is_loop = isinstance(node, ast.For | ast.While)
        yield node, in_loop or is_loop
        for block in blocks(node):
            yield from statements(block, in_loop or is_loop)
