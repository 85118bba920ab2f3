"""Generates the source of random functions that repeat the same subexpressions in operands that may not be evaluated.

Values computed in one arm of a condition must not be used in the other. A program has a small pool of array
expressions and repeats them before, in and after the operands of conditional expressions, `and`, `or` and chained
comparisons. They also occur in tests, branches, bodies, and inner functions that read and set names of the
program. Two names may be views of one buffer, arrays are swapped, names are bound on one path only, and any place
may return. Sums are of integers, so results are compared bit by bit.
"""

import loop_generator
from loop_generator import EXTENTS

# {j}: an index that comes from data. Expressions whose length is the same in all programs come first.
POOL = [
    "x[{j}:]",
    "y[{j}:]",
    "{v}[{j}:]",
    "x[x > t]",
    "y[x > t]",
    "{v}[{v} > s]",
    "A[{j} % m]",
    "A.T[0]",
    "A[:, 0][::-1]",
    "x[q % n]",
    "np.sort({v})",
    "({v} * 2)",
    "({v} + {v})",
    "{v}.reshape(-1, 1)[1:, 0]",
    "{v}.ravel('K')",
    "np.where({v} > t, {v}, t)",
    "A.ravel()",
    "A.reshape(-1)[{j}:]",
    "A.T.ravel()",
    "{v}[::-1][1:]",
    "{v}[q[q >= 0] % n]",
    "np.minimum({v}, s)",
    "A.max(axis=0, initial=t)",
    "{v}[:{j}].copy()",
    "np.maximum.accumulate({v})",
    "{v}[{j}:c]",
    "(A > t).sum(axis=0)",
]
COUNTS = [
    "q[{j}:]",
    "q[q > {j}]",
    "q[x > t]",
    "(q * 2)",
    "np.cumsum(q)",
    "np.nonzero({v} > t)[0]",
    "np.argsort({v})",
    "q[::-1]",
    "({v} > t).astype(int)",
]
POSITIONS = ["j", "j", "j", "c", "k", "q[0]", "len(x) // 2", "abs(c)"]


class Generator(loop_generator.Wide):
    """The source of one program, and its arguments at three sizes."""

    WHOLE = [
        *loop_generator.Wide.WHOLE,
        "len({g})",
        "len({g})",
        "{h}.sum()",
        "{h}.sum()",
        "({h}.sum() if {c} else {h}.sum())",
        "({h}.sum() if {c} else {h}.sum())",
        "({h}.sum() if {c} else {w})",
        "({h} if {c} else {h}).sum()",
        "int(({g} > {r}).sum())",
        "np.count_nonzero({g})",
        "({c} and {h}.sum())",
        "({h}.sum() or len({h}))",
        "({g} if {c} else {g}).shape[0]",
        "(len({g}) if {c} else len({g}))",
        "sum(q[i0] for i0 in range(min(n, 4)))",
        "{h}[{j}:].sum()",
        "({w} if {c} else {h}.sum() if {c} else {h}.sum())",
    ]
    REAL = [
        *loop_generator.Wide.REAL,
        "{g}.max(initial=t)",
        "{g}.max(initial=s)",
        "({g}.max(initial=t) if {c} else {g}.max(initial=t))",
        "({g}.min(initial=t) if {c} else {g}.max(initial=t))",
        "({g}.max(initial=t) if {c} else {r})",
        "({r} if {c} else {g}.max(initial=s) if {c} else {g}.min(initial=s))",
        "({g} if {c} else {g}).max(initial=0)",
        "({g}[0] if len({g}) else {r})",
        "({g}[{j}] if 0 <= {j} < len({g}) else {r})",
        "({c} and {g}.max(initial=t))",
        "({g}.min(initial=0) or {g}.max(initial=0))",
        "({v}[{i}] if {c} else {v}[{i}])",
    ]
    CONDITIONS = [
        *loop_generator.Wide.CONDITIONS,
        "({g} > {r}).any()",
        "{g}.any()",
        "len({g}) > {w}",
        "({g}.max(initial=0) > {r} and {g}.min(initial=0) < {r})",
        "{r} < {g}.max(initial=0) <= {r}",
        "not {g}.any()",
        "(0 <= {j} < len({g}) and {g}[{j}] > {r})",
        "(({g} > t).any() if {c} else ({g} < t).any())",
        "({g}.any() or {g}.all())",
        "((d1 := {g}.any()) or d1 and {c})",
        "{h}.sum() < {w} <= {h}.sum()",
        "(not {g}.any() or {g}[0] > {r})",
        "{r} <> {g}.max(initial=0) <> {g}.min(initial=0)",
        "({h} > {j}).any()",
    ]
    COMPREHENSIONS = [
        *loop_generator.Wide.COMPREHENSIONS,
        "y = np.array([{v}[i0] for i0 in range(n)])",
        "s = max(({v}[i0] for i0 in range(n) if x[i0] > t), default=0)",
        "d = all(x[i0] > q[i0] for i0 in range(n))",
        "s = max([e.max(initial=t) for e in ({g}, {g})])",
        "c = sum(i0 for i0 in range({w}) if i0 % 2)",
        "c = sum([q[i0] if x[i0] > t else {w} for i0 in range(n)])",
    ]

    def __init__(self, seed, statements=12):
        super().__init__(seed, statements)
        self.pool, self.counts, self.functions = [], [], []

    def source(self):
        text = super().source()
        return text.replace(
            "    out = []\n",
            f"    out = []\n    j = {self.pick('k', 'int(x.max(initial=0))', 'int(q.sum()) % 5', 'n // 2', 'abs(k)')}\n",
            1,
        )

    def parts(self, depth):
        """{g}: an array, {h}: an integer array, mostly expressions written before; {j}: an index."""
        return super().parts(depth) | {
            "g": self.shared,
            "h": self.shared_integers,
            "j": lambda: self.pick(*POSITIONS),
        }

    def again(self, pool, rows):
        if len(pool) < 2 or self.chance(0.15 / len(pool)):
            pool.append(self.fill(*rows))
        return self.random.choice(pool[-3:])

    def shared(self):
        return self.again(self.pool, POOL)

    def shared_integers(self):
        return self.again(self.counts, COUNTS)

    def block(self, depth, most=3):
        """Names first bound in a block are mostly not used after it."""
        kept = list(self.pool), list(self.counts), list(self.functions)
        super().block(depth, most)
        if self.chance(0.8):
            self.pool, self.counts, self.functions = kept

    def simple(self):
        return [
            self.choose,
            self.choose,
            self.arrays,
            self.arrays,
            self.around,
            self.around,
            self.around,
            self.two_views,
            self.places,
            self.scalar,
            self.augment,
            self.element,
            self.slice_write,
            self.view,
            self.mask,
            self.call,
            self.comprehension,
            self.unpack,
            self.note,
            self.used,
            self.leave,
        ]

    def compound(self):
        return [
            self.branch,
            self.branch,
            self.counted,
            self.counted,
            self.over_items,
            self.loop_while,
            self.loop_while,
            self.relay,
            self.choice,
            self.cleanup,
            self.function,
            self.search,
        ]

    def int_name(self):
        return (
            self.random.choice(self.maybe)[0]
            if self.maybe and self.chance(0.08)
            else self.random.choice([super().int_name(), "j"])
        )

    def choose(self, depth):
        """A number from operands that share expressions."""
        name = self.pick("s", "c", "d", "j", self.random.choice(self.floats))
        value = self.fill(
            "{r} if {c} else {r}",
            "{w} if {c} else {w}",
            "{h}.sum() if {c} else {h}.sum()",
            "{g}.max(initial=t) if {c} else {g}.max(initial=t)",
            "{c} and {c} or {c}",
            "not ({c} and {c})",
            "{w} if {c} else {h}.sum() if {c} else {h}[{j}:].sum()",
            "len({g}) < {w} < len({g})",
            depth=1,
        )
        self.line(depth, f"{name} = {f'int({value}) % 7' if name in 'cj' else value}")

    def arrays(self, depth):
        """An array from operands that share expressions; it is bound to a name."""
        name = self.pick(*self.vectors) if self.chance(0.2) else self.name("v")
        self.line(
            depth,
            f"{name} = {self.fill('{g} if {c} else {g}', '{g} if {c} else {g}', '{g}', '{g} if {c} else {g} if {c} else {g}', '({g} if {c} else {g})[1:]', '{v} if {c} else {v}')}",
        )
        if name not in self.vectors:
            self.vectors.append(name)

    def around(self, depth):
        """An expression that is written before a choice, in its operands, and after it."""
        one, other = self.shared(), self.shared()
        use = self.pick("{}.max(initial=t)", "len({})", "int(({} > t).sum())", "{}.any()")
        if self.chance(0.5):
            self.line(depth, f"{self.pick('s', 'd', self.name('f'))} = {use.format(one)}")
        if self.chance(0.4):
            self.line(depth, f"if {self.condition()}:")
            self.line(depth + 1, f"s = {use.format(one)}")
            self.block(depth + 1, 1)
            self.line(depth, "else:")
            self.line(depth + 1, f"s = {use.format(self.pick(one, other))} + 1")
        else:
            self.line(
                depth,
                f"s = {use.format(one)} if {self.condition()} else {use.format(self.pick(one, other))} + 1",
            )
        if self.chance(0.6):
            self.line(depth, f"s = s + {use.format(self.pick(one, other))}")

    def two_views(self, depth):
        """One buffer under two names."""
        one, other, buffer = self.name("v"), self.name("v"), self.vector()
        self.line(
            depth,
            self.fill(
                f"{one}, {other} = {buffer}[1:], {buffer}[:-1]",
                f"{one} = {other} = {buffer}",
                f"{one}, {other} = {buffer}, {buffer}[::-1]",
                f"{one}, {other} = A[0], A[:, 0]",
                f"{one} = {buffer}[:]; {other} = {one}[{{j}}:]",
                f"{one} = {buffer}; {other} = {buffer} if {{c}} else {one}[1:]",
            ),
        )
        self.vectors += [one, other]

    def places(self, depth):
        """Names that are swapped."""
        v, w = self.vector(), self.vector()
        self.line(
            depth,
            self.fill(
                f"{v}, {w} = {w}, {v}",
                f"({v}, {w}), j = ({w}, {v}), j + 1",
                f"{v}, j, {w} = {w}, {{w}} % 4, {v}",
                "c, j = j, c",
                f"{v}, {w} = ({w}, {v}) if {{c}} else ({v}, {w})",
                "s, t = (t, s) if {c} else ({r}, t)",
                f"{v}, {w} = {w}[::-1], {v}",
            ),
        )

    def leave(self, depth):
        """A conditional return."""
        self.line(depth, f"if {self.condition()}:")
        self.line(
            depth + 1,
            self.fill(
                "return {r}, {w}",
                "return {g}, {r}",
                "return ({g} if {c} else {g}), c",
                "return {v}, {h}.sum()",
                depth=1,
            ),
        )

    def jump(self, depth):
        self.line(
            depth,
            self.pick(
                "break", "continue", "break", "return x, s", f"return {self.real()}, {self.whole()}"
            ),
        )

    def search(self, depth):
        """A break inside `if` inside `while`, and an else that the break leaves out."""
        trips = self.name("w")
        self.line(depth, f"{trips} = 0")
        self.line(
            depth, f"while {trips} < {self.pick('11', 'n', 'len(y)')} and {self.condition()}:"
        )
        self.line(depth + 1, f"{trips} += 1")
        self.indices.append(trips)
        self.depth_of_loops += 1
        self.line(depth + 1, f"if {self.condition()}:")
        self.block(depth + 2, 1)
        self.line(depth + 2, f"if {self.condition()}:")
        self.line(depth + 3, self.fill("c = {w}", "s = {g}.max(initial=t)", "v0 = {g}"))
        self.line(depth + 3, "break")
        self.block(depth + 1, 2)
        self.depth_of_loops -= 1
        self.indices.remove(trips)
        self.line(depth, "else:")
        self.line(depth + 1, self.fill("c = {w}", "s = {r}", "v0 = {g}"))
        self.block(depth + 1, 1)

    def function(self, depth):
        """An inner function that reads and may set names of the program, and a call of it."""
        name = self.name("g")
        self.line(depth, f"def {name}(u, i):")
        if self.chance(0.4):
            self.line(depth + 1, "nonlocal s, c")
            self.line(
                depth + 1,
                f"s, c = {self.fill('s + 1, i', '{r}, c + i', 't, len(u)', 's, len({g})')}",
            )
        else:
            self.line(depth + 1, f"if {self.condition()}:")
            self.line(depth + 2, f"return {self.fill('u', 'u[i:]', '{g}', 'u if i > 1 else {g}')}")
        self.line(
            depth + 1,
            f"return {self.fill('u', 'u[i:]', 'u[i:] if {c} else u', '{g} if i > {w} else u', '{g} if {c} else {g}')}",
        )
        self.functions.append(name)
        self.used(depth)

    def used(self, depth):
        """A call of a function that the program has, or of a lambda."""
        name = (
            self.random.choice(self.functions)
            if self.functions
            else "(lambda u, i: u[i:] if i > j else u)"
        )
        call = f"{name}({self.fill('{v}', '{g}')}, {self.fill('{w}', '{j}', '1')})"
        self.line(
            depth,
            self.fill(
                f"s = {call}.max(initial=t)",
                f"c = len({call})",
                f"s = {call}.max(initial=t) if {{c}} else {{g}}.max(initial=t)",
                f"c = {{w}} if {{c}} else len({call})",
            ),
        )

    def counted(self, depth):
        """A loop; sometimes the choice of its last iteration is read after it."""
        i = self.name("i")
        self.line(depth, f"for {i} in range({self.fill(*EXTENTS)}):")
        if self.chance(0.5):
            self.indices.append(i)
            self.around(depth + 1)
            self.indices.remove(i)
        self.loop_body(depth, [i])
