"""Reconstructs the syntax of a function without source from its bytecode.

Functions made by `exec` or at a prompt have no source lines. Their code is cut into blocks, and
the instructions of a block run on a stack of expressions; `structure` turns the blocks into
loops and branches. The result need not be trusted: `source` compiles it and uses it only if that
gives the function's own bytecode. Code with a construct that is not known here (handlers,
`with`, inlined comprehensions) is not reconstructed.
"""

from __future__ import annotations

import ast
import dis
import sys
import types
from typing import Any

from .structure import SLOT, Block, Structure, Unknown, is_arg_position, negated

APPENDED = "__ci_appended"
COMPREHENSIONS: dict[str, Any] = {
    "<listcomp>": ast.ListComp, "<setcomp>": ast.SetComp, "<dictcomp>": ast.DictComp, "<genexpr>": ast.GeneratorExp,
}  # fmt: skip
SKIPPED = frozenset(
    "RESUME NOP CACHE PRECALL EXTENDED_ARG MAKE_CELL COPY_FREE_VARS PUSH_NULL TO_BOOL END_FOR GEN_START".split()
)
UNARY = {"UNARY_NEGATIVE": ast.USub, "UNARY_INVERT": ast.Invert, "UNARY_NOT": ast.Not}
BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow,
    "@": ast.MatMult, "<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor,
}  # fmt: skip
OLD_BINARY = dict(
    ADD="+", SUBTRACT="-", MULTIPLY="*", TRUE_DIVIDE="/", FLOOR_DIVIDE="//", MODULO="%", POWER="**",
    MATRIX_MULTIPLY="@", LSHIFT="<<", RSHIFT=">>", AND="&", OR="|", XOR="^",
)  # fmt: skip
PLACES = frozenset("FAST FAST_CHECK FAST_BORROW GLOBAL DEREF NAME CLASSDEREF".split())
COMPARED: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip
# Instructions that make an expression of this many values (None: given by their argument), or a place.
PUSHED: dict[str, tuple[int | None, Any]] = {
    "LOAD_ATTR": (1, lambda at, v: ast.Attribute(v, at.argval, ast.Load())),
    "LOAD_METHOD": (1, lambda at, v: ast.Attribute(v, at.argval, ast.Load())),
    "BINARY_SUBSCR": (2, lambda at, v, key: ast.Subscript(v, key, ast.Load())),
    "COMPARE_OP": (2, lambda at, a, b: ast.Compare(a, [COMPARED[at.argrepr.removeprefix("bool(").removesuffix(")")]()], [b])),
    "IS_OP": (2, lambda at, a, b: ast.Compare(a, [ast.IsNot() if at.arg else ast.Is()], [b])),
    "CONTAINS_OP": (2, lambda at, a, b: ast.Compare(a, [ast.NotIn() if at.arg else ast.In()], [b])),
    "BUILD_TUPLE": (None, lambda at, *items: ast.Tuple([*items], ast.Load())),
    "BUILD_LIST": (None, lambda at, *items: ast.List([*items], ast.Load())),
    "BUILD_SET": (None, lambda at, *items: ast.Set([*items])),
}  # fmt: skip
STORED: dict[str, tuple[int, Any]] = {
    "STORE_ATTR": (1, lambda at, v: ast.Attribute(v, at.argval, ast.Store())),
    "STORE_SUBSCR": (2, lambda at, v, key: ast.Subscript(v, key, ast.Store())),
}
CONVERSIONS = (-1, 115, 114, 97)  # of a replacement field: none, !s, !r, !a


def function_of(code: types.CodeType) -> Any:
    """The node of a function that may compile to this code; None if it cannot be reconstructed."""
    try:
        return Reader(code).function()
    except (Unknown, IndexError, KeyError, AttributeError, TypeError, ValueError, RecursionError):
        return None  # an instruction, or a path through them, that is not supported


class Reader:
    """One code object."""

    def __init__(self, code: types.CodeType) -> None:
        if getattr(code, "co_exceptiontable", b""):
            raise Unknown("handlers")
        self.code = code
        self.line = code.co_firstlineno
        self.blocks: dict[int, Block] = {}
        self.lines: dict[int, int] = {}  # of nodes that only consist of a line, before a loop
        self.slices: dict[tuple[int, ...], Any] = {}  # by their parts; each is read once
        self.block = Block(0)
        self.declared: dict[str, type[ast.Global | ast.Nonlocal]] = {}  # names that are not local to the function

    # --- nodes ---

    def at(self, node: Any) -> Any:
        """The node with the current line."""
        node.lineno = node.end_lineno = self.line
        node.col_offset = node.end_col_offset = 0
        return node

    def name(self, name: str, store: bool = False) -> ast.Name:
        return self.at(ast.Name(name, ast.Store() if store else ast.Load()))

    def constant(self, value: Any) -> Any:
        if isinstance(value, types.CodeType):
            return value
        if isinstance(value, frozenset):
            raise Unknown("a set of constants")
        if isinstance(value, tuple):  # it was written as a tuple, or folded to one
            return self.at(ast.Tuple([self.constant(v) for v in value], ast.Load()))
        return self.at(ast.Constant(value))

    def pop(self, is_stored: bool = False) -> Any:
        if self.block.stack:
            value = self.block.stack.pop()
            return value.value if isinstance(value, Exchanged) and not is_stored else value
        self.block.pops += 1
        return self.at(ast.Name(f"{SLOT}{self.block.pops}", ast.Load()))

    def several(self, count: int) -> list[Any]:
        return [self.pop() for _ in range(count)][::-1]

    def push(self, node: Any) -> None:
        self.block.stack.append(node if not isinstance(node, ast.AST) else self.at(node))

    def emit(self, node: Any) -> None:
        self.block.body.append(self.at(node))

    # --- the function ---

    def function(self) -> Any:
        """The whole function."""
        code = self.code
        if code.co_flags & (0x20 | 0x80 | 0x200):
            raise Unknown("a generator")
        body = self.body()
        arguments = self.arguments()
        if code.co_name == "<lambda>":
            (only,) = body
            return self.placed(ast.Lambda(arguments, only.value))  # type: ignore[attr-defined]
        self.line = code.co_firstlineno
        for name, declaration in self.declared.items():
            body.insert(0, self.at(declaration([name])))
        if code.co_consts and isinstance(code.co_consts[0], str) and has_text(code):
            body.insert(0, self.at(ast.Expr(self.constant(code.co_consts[0]))))
        node = ast.FunctionDef(code.co_name, arguments, body or [self.at(ast.Pass())], [], None)
        if "type_params" in ast.FunctionDef._fields:
            node.type_params = []  # type: ignore[attr-defined]
        return self.placed(node)

    def placed(self, node: Any) -> Any:
        self.line = self.code.co_firstlineno
        return self.at(node)

    def arguments(self) -> ast.arguments:
        code, names = self.code, [self.at(ast.arg(n)) for n in self.code.co_varnames]
        first, count = code.co_posonlyargcount, code.co_argcount
        end = count + code.co_kwonlyargcount
        star = names[end] if code.co_flags & 0x4 else None
        stars = names[end + (star is not None)] if code.co_flags & 0x8 else None
        return ast.arguments(
            names[:first], names[first:count], star, names[count:end], [None] * (end - count), stars, []
        )

    def body(self) -> list[ast.stmt]:
        """The statements of the function."""
        instructions = [*dis.get_instructions(self.code)]
        starts = {0}
        for k, at in enumerate(instructions):
            if at.opcode in dis.hasjrel or at.opcode in dis.hasjabs:
                starts |= {at.argval, instructions[k + 1].offset if k + 1 < len(instructions) else 0}
        order = sorted(starts)
        self.blocks = {start: Block(n) for n, start in enumerate(order)}
        for k, at in enumerate(instructions):
            if at.offset in self.blocks:
                before, self.block = self.block, self.blocks[at.offset]
                if k and not before.ends and before.ahead is None:
                    before.ahead = self.block
            self.line = line_of(at) or self.line
            self.block.line = self.block.line or self.line
            if at.opname == "NOP" and k + 1 < len(instructions):
                self.lines[instructions[k + 1].offset] = self.line
            if at.opname not in SKIPPED and not self.block.ends:
                self.read(at, instructions, k)
        return Structure(self, self.blocks[0]).body()

    # --- instructions ---

    def read(self, at: Any, instructions: list[Any], k: int) -> None:
        """Read one instruction."""
        op = at.opname
        following = self.blocks.get(instructions[k + 1].offset) if k + 1 < len(instructions) else None
        if op in ("RETURN_VALUE", "RETURN_CONST"):
            value = self.constant(at.argval) if op == "RETURN_CONST" else self.pop()
            self.emit(ast.Return(value))
            self.block.ends = True
        elif "JUMP" in op:
            self.jump(op, self.blocks[at.argval], following)
        elif op == "FOR_ITER":
            self.block.items, self.block.ahead, self.block.other = True, following, self.blocks[at.argval]
        elif (row := PUSHED.get(op) or STORED.get(op)) is not None:
            count, make = row
            node = make(at, *self.several(at.arg if count is None else count))
            self.push(node) if op in PUSHED else self.store(self.at(node))
        elif (found := getattr(self, "read_" + op, None)) is not None:
            found(at)
        elif op.startswith(("LOAD_FAST_LOAD", "STORE_FAST_", "LOAD_FAST_BORROW_LOAD")):
            for name, how in zip(at.argval, op.replace("_BORROW", "").split("_")[::2], strict=True):
                self.push(self.name(name)) if how == "LOAD" else self.store(self.name(name, True))
        elif op.startswith("LOAD_") and op.removeprefix("LOAD_") in PLACES:
            self.push(self.name(at.argval))
        elif op.startswith("STORE_") and op.removeprefix("STORE_") in PLACES:
            if op == "STORE_GLOBAL" or at.argval in self.code.co_freevars:
                self.declared[at.argval] = ast.Global if op == "STORE_GLOBAL" else ast.Nonlocal
            self.store(self.name(at.argval, True))
        elif op in UNARY:
            self.push(ast.UnaryOp(UNARY[op](), self.pop()))
        elif op.startswith(("BINARY_", "INPLACE_")) and op.partition("_")[2] in OLD_BINARY:
            self.binary(OLD_BINARY[op.partition("_")[2]], op.startswith("INPLACE"))
        else:
            raise Unknown(op)

    def jump(self, op: str, target: Block, following: Block | None) -> None:
        if "IF" not in op:
            self.block.ahead = target
            self.block.is_far = target.number > self.block.number + 1
            return
        self.block.test = value = self.pop()
        stack = self.block.stack
        if stack and stack[-1] is value and following is not None:  # from 3.12 on; read_POP_TOP drops it
            stack.pop()
            following.drops = True
            op += "_OR_POP"
        if "NONE" in op:
            is_none = ast.Is() if "NOT" not in op else ast.IsNot()
            self.block.test = self.at(ast.Compare(value, [is_none], [self.constant(None)]))
        self.block.turns = is_true = "TRUE" in op or "NONE" in op
        self.block.ahead, self.block.other = (target, following) if is_true else (following, target)
        if op.endswith("_OR_POP"):
            self.block.keeps = "or" if is_true else "and"

    def binary(self, text: str, in_place: bool) -> None:
        a, b = self.several(2)
        node = ast.BinOp(a, BINARY[text](), b)
        node.ci_in_place = in_place  # type: ignore[attr-defined]
        self.push(node)

    def store(self, target: Any) -> None:
        """target = top of the stack; with others below it, one of several targets of an assignment."""
        stack, body = self.block.stack, self.block.body
        if len(stack) > 1 and all(isinstance(v, ast.AST) and v is not stack[0] for v in stack[1:]):
            whole = StoredRow(None, len(stack), [*stack])
            stack[:] = [Exchanged(whole, k, value) for k, value in enumerate(stack)]
        value = self.pop(is_stored=True)
        if isinstance(value, ast.FunctionDef):
            body.append(value)
        elif isinstance(value, Imported):
            value.fill(self, target)
        elif getattr(value, "ci_in_place", False) and is_arg_position(value.left, target):
            self.emit(ast.AugAssign(target, value.op, value.right))
        elif body and isinstance(body[-1], ast.Assign) and body[-1].value is value:
            body[-1].targets.append(target)
        elif isinstance(value, Part):
            value.fill(self, target)
        else:
            self.emit(ast.Assign([target], value))

    def read_LOAD_CONST(self, at: Any) -> None:
        self.push(self.constant(at.argval))

    read_LOAD_SMALL_INT = read_LOAD_CONST

    def read_DELETE_SUBSCR(self, at: Any) -> None:
        value, key = self.several(2)
        self.emit(ast.Delete([self.at(ast.Subscript(value, key, ast.Del()))]))

    def read_BINARY_SLICE(self, at: Any) -> None:
        value, low, high = self.several(3)
        self.push(ast.Subscript(value, self.slice_of([low, high]), ast.Load()))

    def read_STORE_SLICE(self, at: Any) -> None:
        value, low, high = self.several(3)
        self.store(self.at(ast.Subscript(value, self.slice_of([low, high]), ast.Store())))

    def read_BUILD_SLICE(self, at: Any) -> None:
        self.push(self.slice_of(self.several(at.arg)))

    def slice_of(self, parts: list[Any]) -> Any:
        is_none = lambda v: isinstance(v, ast.Constant) and v.value is None  # noqa: E731
        key = tuple(map(id, parts))
        if key not in self.slices:
            self.slices[key] = self.at(ast.Slice(*(None if is_none(v) else v for v in parts)))  # type: ignore[no-untyped-call]
        return self.slices[key]

    def read_BINARY_OP(self, at: Any) -> None:
        if at.argrepr == "[]":
            value, key = self.several(2)
            return self.push(ast.Subscript(value, key, ast.Load()))
        return self.binary(at.argrepr.removesuffix("="), at.argrepr.endswith("="))

    def read_LIST_EXTEND(self, at: Any) -> None:
        items, made = self.pop(), self.block.stack[-at.arg]
        if not isinstance(items, ast.Tuple) or made.elts:
            raise Unknown("a star")
        made.elts = items.elts

    def read_BUILD_MAP(self, at: Any) -> None:
        parts = self.several(2 * at.arg)
        self.push(ast.Dict(parts[::2], parts[1::2]))

    def read_BUILD_CONST_KEY_MAP(self, at: Any) -> None:
        keys, values = self.pop(), self.several(at.arg)
        self.push(ast.Dict(keys.elts, values))

    def read_FORMAT_VALUE(self, at: Any) -> None:
        """A replacement field: one instruction before 3.13, two or three after."""
        self.push_field(self.pop() if at.arg & 4 else None, at.arg & 3)

    def read_CONVERT_VALUE(self, at: Any) -> None:
        self.push(self.at(ast.FormattedValue(self.pop(), CONVERSIONS[at.arg], None)))

    def read_FORMAT_SIMPLE(self, at: Any) -> None:
        self.push_field(None)

    def read_FORMAT_WITH_SPEC(self, at: Any) -> None:
        self.push_field(self.pop())

    def push_field(self, spec: Any, conversion: int = 0) -> None:
        spec = spec if spec is None or isinstance(spec, ast.JoinedStr) else self.at(ast.JoinedStr([spec]))
        value = self.pop()
        if not isinstance(value, ast.FormattedValue):
            value = self.at(ast.FormattedValue(value, CONVERSIONS[conversion], None))
        value.format_spec = spec
        self.push(ast.JoinedStr([value]))

    def read_BUILD_STRING(self, at: Any) -> None:
        parts = self.several(at.arg)
        values = [v for p in parts for v in (p.values if isinstance(p, ast.JoinedStr) else [p])]
        self.push(ast.JoinedStr(values))

    def read_UNPACK_SEQUENCE(self, at: Any) -> None:
        whole = StoredRow(self.pop(), at.arg)
        self.block.stack += [Part(whole, k) for k in range(at.arg)][::-1]

    def read_SWAP(self, at: Any) -> None:
        values = self.several(at.arg)
        values[0], values[-1] = values[-1], values[0]
        self.block.stack += self.exchanged(values)

    def read_ROT_TWO(self, at: Any) -> None:
        self.block.stack += self.exchanged(self.several(2)[::-1])

    def read_ROT_THREE(self, at: Any) -> None:
        a, b, c = self.several(3)
        self.block.stack += [c, a, b]

    def exchanged(self, values: list[Any]) -> list[Any]:
        """Values that are stored in another order than they were computed: `a, b = x, y`."""
        if self.block.stack or any(isinstance(v, Part | types.CodeType) or getattr(v, "ci_in_place", False) for v in values):
            return values
        whole = StoredRow(None, len(values), values[::-1])
        return [Exchanged(whole, k, value) for k, value in enumerate(values[::-1])][::-1]

    def read_COPY(self, at: Any) -> None:
        self.push_again(self.several(at.arg))

    def read_DUP_TOP(self, at: Any) -> None:
        self.push_again(self.several(1))

    def read_DUP_TOP_TWO(self, at: Any) -> None:
        values = self.several(2)
        self.block.stack += values + values

    def push_again(self, values: list[Any]) -> None:
        self.block.stack += [*values, values[0]]

    def read_POP_TOP(self, at: Any) -> None:
        if self.block.drops:
            self.block.drops = False
            return
        value = self.pop()
        is_slot = isinstance(value, ast.Name) and value.id.startswith(SLOT)
        if not is_slot and not isinstance(value, Imported):
            self.emit(ast.Expr(value))

    read_POP_ITER = read_POP_TOP

    def read_DELETE_FAST(self, at: Any) -> None:
        self.emit(ast.Delete([self.at(ast.Name(at.argval, ast.Del()))]))

    def read_RAISE_VARARGS(self, at: Any) -> None:
        error, cause = [*self.several(at.arg), None, None][:2]
        self.emit(ast.Raise(error, cause))
        self.block.ends = True

    def read_GET_ITER(self, at: Any) -> None:
        """The iterable of a loop or a comprehension."""
        if self.block.stack:
            self.block.stack[-1].ci_iterated = True

    def read_KW_NAMES(self, at: Any) -> None:
        self.named = self.code.co_consts[at.arg]

    named: tuple[str, ...] = ()

    def read_CALL(self, at: Any, count: int | None = None) -> None:
        named, self.named = self.named, ()
        given = self.several(at.arg if count is None else count)
        f = self.pop()
        is_iterated = getattr(f, "ci_iterated", False)
        if is_iterated and self.block.stack and isinstance(self.block.stack[-1], Comprehension):  # from 3.11 on
            f, given = self.block.stack.pop(), [f]
        if isinstance(f, Comprehension):
            self.push(f.node(given[0]))
            return
        places = len(given) - len(named)
        words = [self.at(ast.keyword(n, v)) for n, v in zip(named, given[places:], strict=True)]
        self.push(ast.Call(f, given[:places], words))

    read_CALL_FUNCTION = read_CALL_METHOD = read_CALL

    def read_CALL_KW(self, at: Any) -> None:
        self.named = tuple(v.value for v in self.pop().elts)
        self.read_CALL(at)

    read_CALL_FUNCTION_KW = read_CALL_KW

    def read_DICT_MERGE(self, at: Any) -> None:
        items, made = self.pop(), self.block.stack[-at.arg]
        if made.keys:
            raise Unknown("several stars")
        made.keys, made.values = [None], [items]

    def read_CALL_FUNCTION_EX(self, at: Any) -> None:
        """f(*args, **kwargs)"""
        named = self.pop() if at.arg & 1 else None
        words = [] if named is None else [self.at(ast.keyword(None, *named.values))]
        given = self.at(ast.Starred(self.pop(), ast.Load()))
        self.push(ast.Call(self.pop(), [given], words))

    def read_IMPORT_NAME(self, at: Any) -> None:
        level, wanted = self.several(2)
        names = [name.value for name in getattr(wanted, "elts", ())]
        self.push(Imported(at.argval, level.value, names))

    def read_IMPORT_FROM(self, at: Any) -> None:
        self.push(self.block.stack[-1].part(at.argval))

    def read_MAKE_FUNCTION(self, at: Any) -> None:
        code = self.pop()
        while isinstance(code, ast.Constant) and isinstance(code.value, str):  # the qualified name, before 3.11
            code = self.pop()
        if (at.arg or 0) & 8:
            self.pop()
        if (at.arg or 0) & ~8 or not isinstance(code, types.CodeType):
            raise Unknown("defaults")
        if code.co_name in COMPREHENSIONS:
            self.push(Comprehension(code))
        else:
            self.push(function_of(code) or self.unknown())

    def read_SET_FUNCTION_ATTRIBUTE(self, at: Any) -> None:
        if at.arg != 8:
            raise Unknown("defaults")
        function = self.pop()
        self.pop()  # the cells
        self.push(function)

    def read_LOAD_CLOSURE(self, at: Any) -> None:
        self.push(self.name(at.argval))

    def read_LIST_APPEND(self, at: Any) -> None:
        self.emit(ast.Expr(self.at(ast.Call(self.name(APPENDED), [self.pop()], []))))

    read_SET_ADD = read_LIST_APPEND

    def read_MAP_ADD(self, at: Any) -> None:
        self.emit(ast.Expr(self.at(ast.Call(self.name(APPENDED), self.several(2), []))))

    def read_YIELD_VALUE(self, at: Any) -> None:
        """The item of a generator expression."""
        self.read_LIST_APPEND(at)
        self.push(self.name(SLOT))

    def read_RETURN_GENERATOR(self, at: Any) -> None:
        self.push(self.name(SLOT))

    def unknown(self) -> Any:
        raise Unknown("a function inside")


def has_text(code: types.CodeType) -> bool:
    """True if the first constant, a text, belongs to the function's code."""
    return sys.version_info < (3, 14) or bool(code.co_flags & 0x4000000)


def line_of(at: Any) -> int | None:
    """The line of an instruction."""
    places = getattr(at, "positions", None)
    return at.starts_line if places is None else places.lineno


class StoredRow:
    """A value that is unpacked, or several values that are stored at once."""

    def __init__(self, value: Any, count: int, values: list[Any] | None = None) -> None:
        self.value, self.values = value, values
        self.targets: list[Any] = [None] * count


class Part:
    """One of the parts of a stored row."""

    def __init__(self, whole: StoredRow, number: int) -> None:
        self.whole, self.number = whole, number

    def fill(self, reader: Reader, target: Any) -> None:
        """Store the part there; the last one completes the assignment."""
        whole = self.whole
        whole.targets[self.number] = target
        if all(t is not None for t in whole.targets):
            row = reader.at(ast.Tuple(whole.targets, ast.Store()))
            if isinstance(whole.value, Part):
                whole.value.fill(reader, row)
                return
            value = whole.value
            if whole.values is not None:
                value = reader.at(ast.Tuple(whole.values, ast.Load()))
            reader.emit(ast.Assign([row], value))


class Exchanged(Part):
    """A value that was moved from where it was computed: in an assignment of several, or elsewhere."""

    def __init__(self, whole: StoredRow, number: int, value: Any) -> None:
        super().__init__(whole, number)
        self.value = value


class Comprehension:
    """The function of a comprehension, which Python calls with its iterable."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code

    def node(self, items: Any) -> Any:
        """The comprehension."""
        reader = Reader(self.code)
        body = reader.body()
        loop: Any = next(n for n in body if isinstance(n, ast.For))
        generators: list[ast.comprehension] = []
        while isinstance(loop, ast.For):
            tests: list[ast.expr] = []
            inside: list[Any] = [n for n in loop.body if not isinstance(n, ast.Continue)]
            while isinstance(inside[0], ast.If):
                first, *rest = inside
                is_left = isinstance(first.body[0], ast.Continue)
                tests.append(negated(first.test) if is_left else first.test)
                inside = first.orelse + rest if is_left else first.body
            generators.append(ast.comprehension(loop.target, loop.iter, tests, 0))
            loop = inside[0]
        generators[0].iter = items
        return reader.at(COMPREHENSIONS[self.code.co_name](*loop.value.args, generators))


class Imported:
    r"""A module, or names imported from one, until they are stored.

    wanted: the names of a `from ... import`; aliases: those that have been stored.
    """

    def __init__(self, module: str, level: int, wanted: list[str]) -> None:
        self.module, self.level, self.wanted = module, level, wanted
        self.aliases: list[ast.alias] = []
        self.name: str | None = None
        self.whole = self

    def part(self, name: str) -> Imported:
        """The import of one name from the module."""
        part = Imported(self.module, self.level, self.wanted)
        part.whole, part.name = self, name
        return part

    def fill(self, reader: Reader, target: Any) -> None:
        """Complete the import when its value is stored; the last name emits the statement."""
        own = self.module.partition(".")[0] if self.name is None else self.name
        stored = None if target.id == own and (self.wanted or self.name is None) else target.id
        whole = self.whole
        if not self.wanted:
            reader.emit(ast.Import([reader.at(ast.alias(self.module, stored))]))
            return
        whole.aliases.append(reader.at(ast.alias(own, stored)))
        if len(whole.aliases) == len(whole.wanted):
            module = self.module or None
            reader.emit(ast.ImportFrom(module, whole.aliases, self.level))
