"""Generates the source of random functions that take tuples, to test what a later call reads of them.

A program takes pairs, nested and named tuples, and tuples in a dict, in a list and in attributes. It also reads tuples of a
global, a default and a cell. Loops, branches and operands compare, unpack, cut, join, store, exchange and return them. From call
to call a tuple has other items, types of items or another length, is equal but another object, or is the object that another
argument is.
"""

import dataclasses
from typing import NamedTuple

import loop_generator
from loop_generator import EXTENTS


class Pair(NamedTuple):
    """A tuple with names."""

    first: object
    second: object


@dataclasses.dataclass
class Holder:
    """An object with tuples in its attributes."""

    pair: tuple
    parts: list


HEAD = '''
import numpy as np
from tuple_generator import Holder, Pair

KEPT = (0, 1)


def defaulted(place=None, pair=(1, 2)):
    return pair if place is None else pair[place]


def cell():
    inside = (0, 0)

    def get():
        return inside

    def put(value):
        nonlocal inside
        inside = value

    return get, put


of_cell, put_in_cell = cell()


def keep(kept, pair, inside):
    """Sets the tuples that no argument has."""
    global KEPT
    KEPT = kept
    defaulted.__defaults__ = (None, pair)
    put_in_cell(inside)
'''
# {n}: a tuple that has a place, {u}: one that can be set, {a}: an expression, {h}: one that is mostly hashable.
PLACES = ["a", "b", "a", "b", "P", "z", "g[0]", "g[2]", "D['one']", "D[1, 2]", "L[0]", "L[-1]", "o.pair", "o.parts[0]", "KEPT", "defaulted()", "of_cell()"]
PLACES_OF_MODULE = ["kept", "default", "inside"]
TARGETS = ["a", "b", "L[0]", "L[-1]", "o.pair", "D['one']", "o.parts[0]"]
TUPLES = [
    "{n}", "{n}", "{n}", "{n}", "{n}", "{n}", "({w}, {w})", "({r}, {w})", "(0, 0)", "({n} + {a})[:4]", "(*{n}[:3], {w})", "{n}[::-1]", "{n}[1:]", "{n}[:1]", "({n} * 2)[:4]",
    "({a} if {c} else {a})", "({n} if {c} else {n})", "({c} and {n} or {a})", "({n} or {a})", "tuple({n})", "max({n}, {n})", "min({a}, {n})", "tuple(sorted({n}))",
    "tuple(e + 1 for e in {n})", "tuple([e for e in {n} if e > {r}])", "L[{w} % len(L)]", "[{n}, {n}][{w} % 2]", "({n}, {n})[bool({c})]", "D.get({h}, {n})", "Pair({w}, {r})",
    "Pair(*{n}[:2])", "P._replace(first={w})", "tuple(map(abs, {n}))", "tuple(zip({n}, {n}))[0]", "divmod({w}, 3)", "({n}, {w})[0]", "(lambda e={n}: e)()", "tuple(reversed({n}))",
    "((h0 := {n}) if {c} else {n})", "sorted([{n}, {n}])[0]", "({n}, {n})", "(g if {c} else {n})",
]  # fmt: skip
BINDINGS = [
    "{u} = {a}", "{u} = {a}", "{u} = {n}", "{u} = {n}", "{u}, {u} = {n}, {n}", "{u}, {u} = {n}, {a}", "{u} = ({u} + ({w},))[-3:]", "{u} = {n} if {c} else {n}", "{u} = {u}[::-1]",
    "{u}, s = ({n}, {w}) if {c} else ({n}, s)", "a, b = b, a", "a, b = (b, a) if {c} else (a, b)", "L[0], L[-1] = L[-1], L[0]", "o.pair, {u} = {u}, o.pair", "{u} = {u} = {n}",
]  # fmt: skip
NOTES = [
    "out.append({n})", "out.append({n})", "out.append(({n}, {w}))", "out.append([{n}, {a}])", "out.append({n} is {n})", "L.append({n})", "L[:] = L[-3:]", "L.reverse()", "L[{w} % len(L)] = {a}",
    "L.insert(0, {n}); L[:] = L[:4]", "D[{h}] = {n}", "o.parts.append({a})", "o.parts = [{n}, *o.parts][:4]", "seen.add({h})", "d = {h} in seen", "table[{h}] = table.get({h}, 0) + 1",
    "table[{h}] = {n}", "print({n}, {w})", "print({a})", "s, *_ = {n}", "s, _ = {n}[:2]", "_, *f0 = {a}; out.append(f0)", "f0 = [{n}, 0]; f0[1] = {w}; out.append(f0)", "f0 = {'e': {n}}; out.append(f0)",
    "out.append([{a} for e in {v} if e > {r}][:3])", "out.append({e: {n} for e in {n}})", "L.sort()", "s = sum({n})", "out.append(max(L))", "out.append(dict(zip({n}, {n})))", "out.append([*{n}, *{n}])",
    "f0 = [{n}, {n}]; f0[{w} % 2] = {a}; out.append(f0)", "out.append(L.index({n}) if {n} in L else -1)", "out.append(L.count({a}))", "out.append({n} == {a})",
]  # fmt: skip


class Generator(loop_generator.Generator):
    """The source of one program, and its calls."""

    HEAD = f"{loop_generator.HELPERS}\n{HEAD}"
    WHOLE = [
        "{w} + {w}", "({w} - {w})", "({w}) % 3", "len({v})", "q[{i}]", "int({r})", "({w} if {c} else {w})", "len({a})", "{n}[0]", "{n}[0]", "{n}[-1]", "{n}[{w} % 2]", "{a}.count({w})",
        "{n}.index({n}[0])", "sum({n})", "max({n})", "P.first", "g[0][1]", "defaulted(0)", "len(D)", "len(L)", "len(seen)", "table.get({h}, 0)", "g[1][0]",
    ]  # fmt: skip
    REAL = ["{r} + {r}", "({r}) * 0.5", "x[{i}]", "{v}[{i}]", "{v}.max()", "float({w})", "min({r}, {r})", "({r} if {c} else {r})", "{n}[0]", "{n}[1]", "P.second", "max({n})", "g[1].max()"]
    CONDITIONS = [
        "x[{i}] > t", "x[{i}] > 0", "x[{i}] > 0", "x[0] > 0", "y[{i}] < x[{i}]", "x[{i}] < y[0]", "x[{i}] > 0", "x[{i}] < s", "{r} <> {r}", "{w} <> {w}", "({v} > {r}).any()", "({c} and {c})", "({c} or {c})", "not {c}", "{n} == {n}", "{n} == {a}", "{a} != {n}",
        "{a} < {a}", "{n} >= {n}", "{n} is {n}", "{n} is not {n}", "{w} in {n}", "{r} not in {a}", "{a} in L", "{h} in D", "{h} in {({w}, {w}), {h}}", "not {n}", "len({n}) == 2", "any({n})", "all({n})",
        "isinstance({n}, Pair)", "type({n}) is tuple", "({n}, {w}) == ({n}, {w})", "{n} < {n} <= {a}", "type({n}[0]) is int", "[{n}] == [{n}]", "{n} in ({n}, {n})", "{h} in seen",
    ]  # fmt: skip
    CALLS = ["c = first_above({v}, {r})", "s = clipped({r}, {n}[0], {n}[-1])", "shift(x, {r})"]

    def __init__(self, seed, statements=6):
        self.tuples = []
        super().__init__(seed, statements)
        self.seed = seed
        self.sizes = self.random.sample([(6, 5), (4, 3), (9, 4), (3, 3)], 2)

    def source(self):
        text = super().source()
        names = ", ".join(dict.fromkeys(self.random.sample(["a", "b", "L", "o.pair", "P", "g", "z", *self.tuples], 3)))
        text = text.replace(f"({loop_generator.PARAMETERS})", f"({loop_generator.PARAMETERS}, a, b, P, g, D, L, o, z=(1, 0))")
        text = text.replace("    n, m = A.shape\n", "    n, m = A.shape\n    out, seen, table = [], set(), {}\n", 1)
        head, _, last = text.rpartition("    return ")
        return f"{head}    return {names}, out, seen, table, {last}"

    def parts(self, depth):
        return super().parts(depth) | {
            "n": self.place, "u": self.target, "a": lambda: self.tuple(depth), "h": lambda: self.pick(self.place(), self.place(), f"({self.int_name()}, 1)"),
        }  # fmt: skip

    def kinds(self):
        return *super().kinds(), self.tuples

    def simple(self):
        return [self.bind, self.bind, self.bind, self.bind, self.note, self.note, self.note, self.note, self.leave, self.scalar, self.augment, self.element, self.call]

    def compound(self):
        return [self.branch, self.branch, self.branch, self.counted, self.counted, self.over_tuples, self.over_tuples, self.over_items, self.loop_while, self.choice, self.function, self.guarded]

    def place(self):
        return self.random.choice([*PLACES, *self.tuples * 2])

    def target(self):
        return self.random.choice([*TARGETS, *self.tuples * 3])

    def tuple(self, depth=0):
        return self.place() if depth > 1 or self.chance(0.3) else self.fill(*TUPLES, depth=depth + 1)

    def bind(self, depth):
        if self.chance(0.6):
            return self.line(depth, self.fill(*BINDINGS, depth=1))
        name = self.name("u")
        self.line(depth, f"{name} = {self.fill('{a}', '{n}', '{n}', '(0, 0)', '{n} if {c} else {n}')}")
        return self.tuples.append(name)

    def note(self, depth):
        self.line(depth, self.fill(*NOTES, depth=1))

    def leave(self, depth):
        self.line(depth, f"if {self.condition(1)}:")
        self.line(depth + 1, self.fill("return {n}, {n}, out", "return {a}, s", "return {n}", "return ({n}, L), D", depth=1))

    def counted(self, depth):
        """A loop; sometimes all that it does is to bind one tuple."""
        i = self.name("i")
        self.line(depth, f"for {i} in range({self.fill('n', 'n', 'len(x)', '3', 'len({n})', '{n}[0]', *EXTENTS[:4])}):")
        if self.chance(0.5):
            return self.loop_body(depth, [i])
        self.indices.append(i)
        if self.chance(0.6):
            self.line(depth + 1, f"if {self.condition(1)}:")
            self.line(depth + 2, self.fill(*BINDINGS, *NOTES, depth=1))
        else:
            self.line(depth + 1, self.fill(*BINDINGS, *NOTES, depth=1))
        return self.indices.remove(i)

    def over_tuples(self, depth):
        """A loop over the items of a tuple, or over tuples."""
        e, f, u = self.name("e"), self.name("e"), self.name("u")
        kind = self.pick("items", "items", "enumerate", "zip", "list", "dict", "pairs", "comparison")
        numbers = {"items": [e], "enumerate": [e], "zip": [e, f], "pairs": [e, f]}.get(kind, [])
        tuples = [u] if kind in ("list", "dict", "comparison") else []
        self.line(depth, {
            "items": f"for {e} in {self.tuple(1)}:", "enumerate": f"for {f}, {e} in enumerate({self.place()}):", "zip": f"for {e}, {f} in zip({self.place()}, {self.tuple(1)}):",
            "list": f"for {u} in L[:4]:", "dict": f"for {f}, {u} in list(D.items()):", "pairs": f"for {e}, {f} in [{self.place()}, {self.place()}[:2]]:",
            "comparison": f"for {u} in ({self.place()}, {self.place()}, {self.place()}):",
        }[kind])  # fmt: skip
        self.floats += numbers
        self.tuples += tuples
        self.loop_body(depth, [])
        for name in numbers:
            self.floats.remove(name)
        for name in tuples:
            self.tuples.remove(name)

    def choice(self, depth):
        """A `match` on a tuple."""
        self.line(depth, f"match {self.tuple(1)}:")
        for _ in range(self.pick(1, 2, 2)):
            self.line(depth + 1, self.fill("case (0, _):", "case (s, 1):", "case (_, _) if {c}:", "case Pair(first=s):", "case (_, *f0):", "case ():", "case (1 | 2, s):", "case (float(), _):", depth=1))
            self.block(depth + 2, 2)
        self.line(depth + 1, "case _:")
        self.block(depth + 2, 1)

    def function(self, depth):
        """An inner function that has a tuple as default or reads one of the program, and a call of it."""
        name = self.name("f")
        self.line(depth, f"def {name}(e, u={self.place()}):")
        if self.chance(0.3):
            self.line(depth + 1, "nonlocal a, b")
            self.line(depth + 1, self.pick("a, b = b, a", "a = u", "b = u if e > 0 else a"))
        self.line(depth + 1, f"if e > {self.real(2)}:")
        self.line(depth + 2, f"return {self.pick('u', 'a', '(e, *u)', 'u[::-1]')}")
        self.line(depth + 1, f"return {self.pick('u', 'b', 'u + (e,)', 'a', self.place())}")
        self.line(depth, f"out.append({name}({self.real(1)}{self.pick('', f', {self.place()}', f', u={self.place()}')}))")

    # --- calls --------------------------------------------------------------------------------------

    def calls(self, np):
        """Of each call the arguments, and the tuples that the module keeps."""
        kept = self.items()
        calls, self.held = [], {}
        self.numbers = self.arguments(self.sizes[0], self.seed, np)[4:]
        for number in range(10):
            items, same = kept, ()
            if number in (2, 3, 5, 7, 8):
                items = self.changed(kept, np)
                if number == 5:  # later calls differ from this one
                    kept = items
            if number in (4, 6):
                same = tuple(self.random.sample(sorted(kept), 2))
            size = self.sizes[self.chance(0.2)]
            calls.append(self.call_of(items, same, size, number, np))
        return calls

    def items(self):
        """By place, the items of each tuple."""
        def number():
            return self.pick(0, 1, 2, 3, -1, 1, 0, 0.5, 1.5, True) if self.chance(0.25) else self.pick(0, 1, 2, 3, -1)

        places = ["a", "b", "P", "g0", "g2", "one", "two", "L0", "L1", "pair", "part", *PLACES_OF_MODULE]
        items = {place: [number() for _ in range(self.pick(2, 2, 2, 3))] for place in places}
        items["P"] = items["P"][:2]
        for place in places[1:]:
            if self.chance(0.25) and place != "P":
                items[place] = items["a"]
        return items

    def changed(self, items, np):
        """The items with some tuples changed."""
        made = dict(items)
        for _ in range(self.pick(1, 1, 2, 4)):
            place = self.pick("a", "a", "b", "b", *made)
            now = [item if np.ndim(item) == 0 else 1 for item in made[place]]
            kind = self.pick("value", "value", "value", "class", "class", "longer", "shorter", "order")
            k = self.random.randrange(len(now)) if now else 0
            if place == "P" and kind in ("longer", "shorter") or not now:
                kind = "order"
            if kind == "value":
                now[k] = now[k] + self.pick(1, -1, 2)
            elif kind == "class":
                now[k] = self.pick(float, float, bool, np.int64, np.float64, int, lambda v: np.array([v, 1]))(now[k])
            elif kind == "longer":
                now.append(self.pick(0, 1, 2.5))
            elif kind == "shorter":
                now.pop()
            else:
                now.reverse()
            made[place] = now
        return made

    def call_of(self, items, same, size, number, np):
        """The arguments of one call, and what the module keeps. same: two places that have one object."""
        made = {place: (Pair(*now) if place == "P" else tuple(now)) for place, now in items.items()}
        if same:
            made[same[0]] = made[same[1]]
        arrays = self.arguments(size, self.seed * 10 + number, np)[:4]
        for place in PLACES_OF_MODULE:
            if self.chance(0.8):  # the same object in each call, as long as it is equal
                made[place] = self.held.setdefault((place, repr(made[place])), made[place])
        g = made["g0"], np.arange(3.0) - number % 3, made["g2"]
        holders = {"one": made["one"], (1, 2): made["two"]}, [made["L0"], made["L1"]], Holder(made["pair"], [made["part"]])
        return (*arrays, *self.numbers, made["a"], made["b"], made["P"], g, *holders), tuple(map(made.get, PLACES_OF_MODULE))
