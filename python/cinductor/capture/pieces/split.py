"""Splits a function at its breaks: into pieces, and the dispatcher that calls them.

A piece is a sequence of statements without a break. It gets the names that are live before it and returns those that
it binds. What Python has to run stays in the dispatcher, with array work moved out of it (`hoist`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ... import _core
from ..syntax.cfg import EMPTY, Cfg, Set, captured
from ..syntax.jumps import always_jumps, blocks_of, jumps_of
from ..syntax.names import constant_at, duplicate, from_text, name_at, store_at, walk
from ..syntax.rows import FLOW, LOOPS, OPENED, PYTHONS, ROWS, STAYS, classes_with
from .hoist import FOLLOW, hoist, works

CELL = "_ci_p"  # the name under which the dispatcher calls its pieces and gets outside values
TEMP = "_ci_t"
UNBOUND = "_ci_unbound"
LEFT_NAMES = "_ci_left"  # what a piece calls for the values of its dead names
HANDLED = "_ci_handled"  # what each handler of a dispatcher calls first
UNSEEN, IS_UNSEEN = "_ci_are_unseen", "_ci_is_unseen"  # what a dispatcher asks about the objects that a piece drops
MAX_LEVEL, LEFT = 4, 9  # number of breaks after which a statement is left unchanged
CONSUMERS = frozenset({"sum", "any", "all", "min", "max", "sorted", "tuple", "list", "set", "dict"})
NEVER = classes_with(PYTHONS)
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
        return level < MAX_LEVEL

    def leave(self, line: int) -> bool:
        """Leave the statement to Python unchanged; False if it was known."""
        known, self.levels[line] = self.levels.get(line, 0), LEFT
        return known < LEFT

    def within(self, node: Any) -> list[int]:
        """The lines of a statement at which breaks happened."""
        moved = getattr(node, "ci_moved", ())
        return [n for n in self.levels if node.lineno <= n <= node.end_lineno and n not in moved]


MADE = ast.Lambda | ast.FunctionDef | ast.GeneratorExp  # what reads names later


def position(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


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
        self.left: tuple[str, ...] = ()  # dead names that it binds
        self.drops: tuple[str, ...] = ()  # names that it binds again
        self.may_drop: tuple[str, ...] = ()  # the same of names that may be unbound before
        self.maybe_unbound: Set = EMPTY  # outputs that may be unbound
        self.is_tail = False

    def binders(self) -> list[list[int]]:
        """For each value that it returns, the lines that bind it."""
        pairs = [(n.lineno, own_binds(n)) for n, _ in statements(self.body, False)]
        return [[line for line, names in pairs if out in names] for out in (*self.outputs, *self.left)]

    def function(self, name: str, declared: list[ast.stmt]) -> ast.FunctionDef:
        """The piece as a function."""
        made: Any = ast.parse("def piece(): pass").body[0]
        made.name = name
        made.args.args = [ast.arg(n) for n in self.inputs]
        body = duplicate([*declared, *self.body])
        at = body[-1]
        if not self.is_tail:
            body += [s for n in sorted(self.maybe_unbound) for s in guarded(n, at)]
            body += located(at, ast.Return(self.result()))
        made.body = body
        ast.copy_location(made, self.body[0])
        return made

    def result(self) -> ast.expr:
        """The expression that it returns."""
        if not self.left:
            return tuple_of(self.outputs, ast.Load())
        names: list[ast.expr] = [ast.Constant(name) for name in self.left]
        others = ast.Starred(ast.Call(ast.Name(LEFT_NAMES, ast.Load()), names, []), ast.Load())
        return ast.Tuple([*(ast.Name(n, ast.Load()) for n in self.outputs), others], ast.Load())

    def taken(self) -> list[ast.stmt]:
        """The statements that stand for it in the dispatcher: Python runs its own if it drops an object whose death is seen."""
        if not self.drops and not self.may_drop:
            return self.call()
        text = f"{IS_UNSEEN} = {UNSEEN}({', '.join((*self.drops, *self.may_drop))})\n"
        if self.may_drop:
            each = f"    {IS_UNSEEN} = {UNSEEN}({', '.join(self.drops)})\n"
            each += "".join(f"    try: {IS_UNSEEN} = {IS_UNSEEN} and {UNSEEN}({name})\n    except NameError: pass\n" for name in self.may_drop)
            text = f"try: {text}except NameError:\n{each}"
        text += f"if {IS_UNSEEN}: pass"
        tests = located(self.body[0], *ast.parse(text).body)
        choice: Any = tests[-1]
        choice.body, choice.orelse = self.call(), duplicate(self.body)
        return tests

    def call(self) -> list[ast.stmt]:
        """The statements that call it."""
        at = self.body[0]
        call = ast.Call(
            ast.Name(f"{CELL}{self.number}", ast.Load()),
            [ast.Name(n, ast.Load()) for n in self.inputs],
            [],
        )
        if self.is_tail:
            return located(at, ast.Return(call))
        if not self.outputs and not self.left:
            return located(at, ast.Expr(call))
        names = tuple_of(self.outputs, ast.Store())
        if self.left:
            names = ast.Tuple([ast.Name(n, ast.Store()) for n in (*self.outputs, *self.left)], ast.Store())
        out = located(at, ast.Assign([names], call))
        for name in sorted(self.maybe_unbound):
            out += located(at, *ast.parse(f"if {name} is {UNBOUND}: del {name}").body)
        return out


def guarded(name: str, at: ast.stmt) -> list[ast.stmt]:
    """An assignment after which the name has a value: UNBOUND if it had none."""
    text = f"try: {name}\nexcept NameError: {name} = {UNBOUND}"
    return located(at, *ast.parse(text).body)


def located(at: ast.AST, *nodes: ast.stmt) -> list[ast.stmt]:
    """Statements with the position of another one."""
    return _core.filled(list(nodes), at, {})


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
        declared: list[Any] = _core.names_of(FLOW, (node.body,), True)[-1]
        outer = {name for n in declared for name in n.names}
        inner = [n for n in walk(node) if isinstance(n, ast.Nonlocal) and n not in declared]
        later = [n.target.id for part in walk(node) if isinstance(part, ast.GeneratorExp) for n in walk(part) if isinstance(n, ast.NamedExpr)]
        self.shared = frozenset([*later, *(n for d in inner for n in d.names)])  # bound by inner functions and generator expressions
        self.declared: list[ast.stmt] = [*declared]
        self.locals = frozenset(locals_) - outer - self.shared
        self.lists = names_of_lists(node) & self.locals
        node.body = self.taken_to_pieces(node.body)
        self.locals |= {f"{TEMP}{k}" for k in range(self.temps)}
        args = node.args
        own_args = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        self.flow = Cfg(node.body, [arg.arg for arg in own_args if arg is not None])
        self.stable = self.stable_names()
        self.readers = [(position(n), captured(n)) for n in walk(node) if n is not node and isinstance(n, MADE)]
        self.maybe: dict[int, Set] = {}  # by id of a statement: names that may be bound
        arguments = {a.arg for a in walk(node.args) if isinstance(a, ast.arg)}
        self.note_maybe(node.body, set(arguments))
        body = self.block(node.body, True)
        node.body = self.still_local(body, arguments) + without_temps(body)

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
            if not blocks_of(node):
                Inlined().visit(node)
                self.follows = True
        if not blocks_of(node):
            is_open = ROWS[type(node)].piece == OPENED and level < MAX_LEVEL
            return self.hoisted(node, level) if is_open else [node]
        out: list[ast.stmt] = []
        if isinstance(node, ast.If) and level < 2 and works(node.test):
            out.append(self.tested(node))
        elif isinstance(node, ast.While) and level < 2 and works(node.test) and not node.orelse:
            out_test = self.tested(node)
            stop = from_text("if not test: break", out_test, test=node.test)
            stop[0].ci_glue = True  # type: ignore[attr-defined]
            node.test = constant_at(node, True)
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
        """The statement that computes a construct's test before it: of `and`, `or` and chains the truth, because Python tests
        no operand of them twice.
        """
        name, value = self.name(), node.test
        if any(isinstance(n, ast.BoolOp) or (isinstance(n, ast.Compare) and len(n.ops) > 1) for n in walk(value)):
            value = ast.copy_location(ast.IfExp(value, constant_at(value, True), constant_at(value, False)), value)
        temp = store_at(value, name, value)
        node.test = name_at(value, name)
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
        if not blocks_of(node):
            return node
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(node, field, self.block(getattr(node, field)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            first = part.body[0]
            part.body = self.block(part.body)
            if isinstance(part, ast.ExceptHandler):
                part.body[:0] = located(first, *ast.parse(f"{HANDLED}()").body)
        return node

    def outlined(self, run: list[ast.stmt], ends_function: bool) -> list[ast.stmt]:
        """The replacement of a sequence of statements in the dispatcher."""
        while run and is_trivial(run[-1]):
            tail = run[-1]
            return [*self.outlined(run[:-1], False), tail]
        if not any(map(works, run)):
            return run
        piece = Piece(len(self.pieces), run)
        returns: list[ast.stmt] = [n for node in run for n in jumps_of([node]) if isinstance(n, ast.Return)]
        piece.is_tail = bool(returns) and (ends_function or always_jumps(run))
        at = self.stays(piece, returns)
        if at is not None:
            first = self.outlined(run[:at], False)
            return [*first, self.inside(run[at]), *self.outlined(run[at + 1 :], ends_function)]
        self.pieces.append(piece)
        return piece.taken()

    def stays(self, piece: Piece, returns: list[ast.stmt]) -> int | None:
        """The number of a statement that cannot be in the piece; None if all can: the piece then has its names."""
        run = piece.body
        if returns and not piece.is_tail:
            return next(k for k, n in enumerate(run) if any(r in returns for r in jumps_of([n])))
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
        # A function and a name that it reads are both in the piece unless the name is bound before the function is made.
        awaited = frozenset().union(*(found for at, found in self.readers if at < position(run[0]))) & bound
        apart = (k for k, n in enumerate(run) if self.captured_in(n) - given - bound or binds(n) & awaited)
        if (at := next(apart, None)) is not None:
            return at
        ends = self.flow.sure_after(run[-1])
        left = bound & self.flow.after(run[-1]) & self.locals
        piece.inputs = tuple(sorted(given))
        piece.outputs = () if piece.is_tail else tuple(sorted(left))
        piece.maybe_unbound = EMPTY if ends is None else left - ends
        kept = {name for name in bound & self.locals if not name.startswith(TEMP)}
        piece.left = () if piece.is_tail else tuple(sorted(kept - left))
        piece.drops = tuple(sorted(kept & sure))
        piece.may_drop = tuple(sorted(kept & self.maybe[id(run[0])] - sure))
        return None

    def note_maybe(self, body: list[ast.stmt], names: set[str]) -> None:
        """Record the names that are bound before a statement as written, or in a loop around it."""
        for node in body:
            if isinstance(node, LOOPS):
                names |= binds(node)
            self.maybe[id(node)] = frozenset(names)
            names |= frozenset(own_binds(node))
            for block in blocks_of(node):
                self.note_maybe(block, names)

    def why_not(self, node: ast.stmt) -> str | None:
        """The reason why a statement cannot be in any piece, or None."""
        if ROWS[type(node)].piece == STAYS or any(isinstance(n, NEVER) for n in walk(node)):
            return "Python's own"
        names = mentioned(node)
        if names & (OUTSIDE | self.shared):
            return "a name is bound by a function inside"
        if any(isinstance(n, ast.Break | ast.Continue) for n in jumps_of([node])):
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
        for part in walk(node):
            if isinstance(part, MADE):
                if not getattr(part, "ci_consumed", False):
                    found |= captured(part)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                if part.func.id in CONSUMERS and len(part.args) >= 1:
                    part.args[0].ci_consumed = True  # type: ignore[attr-defined]
        return found & self.locals

    def stable_names(self) -> Set:
        """Names that are bound once: an inner function reads the value that they had when it was made, or that its piece gives
        them.
        """
        counts: dict[str, int] = {}
        args = self.node.args
        for arg in walk(args):
            if isinstance(arg, ast.arg):
                counts[arg.arg] = 1
        for node, in_loop in statements(self.node.body, False):
            for name in own_binds(node):
                counts[name] = counts.get(name, 0) + 1 + in_loop
        return frozenset(name for name, count in counts.items() if count == 1)


class Inlined(ast.NodeTransformer):
    """Replaces calls in a statement that broke inside the called function: that function is compiled separately."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name | ast.Attribute):
            node.func = ast.copy_location(ast.Call(name_at(node.func, FOLLOW), [node.func], []), node.func)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def names_of_lists(node: ast.FunctionDef) -> Set:
    """Names that are only bound to new lists, dicts and sets."""
    lists: set[str] = set()
    others = {a.arg for a in walk(node.args) if isinstance(a, ast.arg)}
    for part, _ in statements(node.body, False):
        names = frozenset(own_binds(part))
        is_list = isinstance(part, ast.Assign) and isinstance(part.value, DISPLAYS)
        if is_list and len(names) == 1 and isinstance(part.targets[0], ast.Name):  # type: ignore[attr-defined]
            lists |= names
        else:
            others |= names
    return frozenset(lists - others)


def without_temps(body: list[ast.stmt]) -> list[ast.stmt]:
    """The block in which a part's name is deleted where it has been used: its value dies as the operand would."""
    out: list[ast.stmt] = []
    for node in body:
        for block in blocks_of(node):
            block[:] = without_temps(block)
        out.append(node)
        others = {id(n) for block in blocks_of(node) for s in block for n in walk(s)}
        loads = [n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in others]
        used = sorted({name for name in loads if name.startswith(TEMP)})
        if used and not always_jumps([node]):
            gone = ast.Delete([ast.Name(name, ast.Del()) for name in used])
            out += located(node, gone)
    return out


def is_trivial(node: ast.stmt) -> bool:
    """True for a statement that would make a useless piece."""
    return isinstance(node, ast.Pass | ast.Expr | ast.Assign) and not works(node)


def mentioned(node: ast.AST) -> Set:
    """Every name in a statement, those that patterns bind included."""
    return binds(node).union([n.id for n in walk(node) if isinstance(n, ast.Name)])


def own_binds(node: ast.AST) -> list[str]:
    """The names that a statement itself binds, once per binding; not those in its blocks."""
    return _core.names_of(FLOW, (node,), False)[2]


def binds(node: ast.AST) -> Set:
    """The names that a statement may bind."""
    return frozenset(_core.names_of(FLOW, (node,), True)[2])


def statements(body: list[ast.stmt], in_loop: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements of a function, and whether each is inside of a loop."""
    for node in body:
        is_loop = isinstance(node, LOOPS)
        yield node, in_loop or is_loop
        for block in blocks_of(node):
            yield from statements(block, in_loop or is_loop)
