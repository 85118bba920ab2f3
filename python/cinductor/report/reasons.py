"""Why something runs in Python or NumPy: the one table of reasons.

A row is a family of reasons: how their texts begin or what they contain, what a user can do, and where
`docs/reasons.md` has more (a heading of the row's name). The first row that matches counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PAGE = "docs/reasons.md"


class Reason(NamedTuple):
    """A family of reasons. name: its heading in the docs; pattern: matched at the beginning of a text."""

    name: str
    pattern: str
    hint: str

    @property
    def page(self) -> str:
        """Where the docs have it."""
        return f"{PAGE}#{self.name}"


REASONS = tuple(
    Reason(*row)
    for row in (
        ("printing", r"calls (builtins\.)?print\b", "return the value and print it outside"),
        (
            "timing",
            r"calls time\.|calls [\w.]*perf_counter",
            "time the compiled function from outside",
        ),
        (
            "conditions",
            r"a concrete value is needed by a condition|the truth of|decided by Python|"
            r"data decide where an iterator|sizes decide whether|.*is (of another (type|shape)|another view of its array) in each branch|"
            r".*is known only (in one branch|when the program runs)",
            "np.where takes both ways; 'loops and branches' below has why the branch is Python's",
        ),
        (
            "texts",
            r"a concrete value is needed by (format|str|repr)",
            "format it outside of the function",
        ),
        (
            "values",
            r"(a concrete value|the value of a (size|loop variable)) is needed|the values of an array are asked|"
            r"it (looks at an array's bytes|answers with Python's own values)|looks at addresses|.*is read$",
            "keep it an array: float(x), x.sum() and comparisons stay in the program, x.tolist() and pickling do not",
        ),
        (
            "containers",
            r"(changes a |sets an item of|deletes an item|a (list|set|dict|deque|Counter)?.* changes|a list grows|"
            r"a .*list.* (is|has|that)|a set |a dict |items of several types|data decide how a list|several loops append|"
            r"a trip appends|an? .* is appended to a list|an item of|a list)",
            "return what is new, and let the caller keep it; lists that a loop appends numbers or arrays to are captured",
        ),
        (
            "globals",
            r"(sets|deletes) the global|(sets|deletes) \S+ of an enclosing",
            "pass it in and return it",
        ),
        (
            "objects",
            r"(reads|sets|deletes|assigns) (\.|an? attribute|flags|an item)|hands on|makes |enters |reads \.|an object|"
            r"asks whether|an index is of class|looks for a key|sees objects die|a recursion|flags of an array|"
            r"reads the items of|iterates a|unpacks a|a container|a \S+ is used as a whole|an operator|iter\(\)",
            "objects of plain classes are captured; give the function the arrays themselves, or cinductor.disable what uses the object",
        ),
        (
            "results",
            r"returns |an array that (may be one of several|lies otherwise in memory)|whether an array is another|a write to an array that may be",
            "return arrays, numbers, and tuples, lists or dicts of them that are made in the call",
        ),
        (
            "overlap",
            r"an array that overlaps|arrays overlap|arguments share memory|names share memory|.*shares memory|"
            r"a write (to memory that another|through \.real|at an array|made at once)|a value of type|an? \S+ written to an array",
            "write to a copy, or return a new array",
        ),
        (
            "loops",
            r"runs trip by trip|iterates over \d+ rows|it (hands on more|does no array work)|what is carried|the (loop|body|condition)\b|"
            r"a (branch|loop) |a trip makes|.*changes its (type|shape)|.*is (bound in one trip|used behind the loop|written to and lies)|"
            r"values are of another type|arrays change places|an (iterator|exception leaves|operand of a condition|array that is carried)|"
            r".*is changed by a function inside|the size of|.*is another view of its array|.*is bound|"
            r"a list has changed|the array |an array is made|a recursion that data end|.*before the loop|a result is of another type",
            "work on the whole array, or loop over range(len(x)); let names keep their type and shape from trip to trip",
        ),
        (
            "sizes",
            r"(sizes?|the size|a size|a slice|an index whose place|sizes that|an unbacked|extents|a range that)\b|"
            r"lists have as many items|what sizes say",
            "cinductor.mark_static makes a size a number of the program, mark_unbacked asks nothing of it",
        ),
        (
            "library-calls",
            r"calls (numpy|scipy|np)\.|calls ndarray\.|the (method|function) '|ufunc '",
            "it runs as it is; what stands before and behind it is compiled",
        ),
        (
            "unknown-calls",
            r"calls |imports |is disabled",
            "it runs as it is; what stands before and behind it is compiled",
        ),
        (
            "arguments",
            r"an argument is |an array of (dtype|more than|class)|an array (that is not aligned|whose elements)|a \S+, which is a subclass|"
            r"a view of a dict|an iterator \(|a container of more|.*subclass of ndarray",
            "give plain arrays of bool, int, float or complex dtypes: np.asarray(x), x.filled(), x.astype(float)",
        ),
        (
            "source",
            r"its (source|rewriting)|it (evaluates annotations|is rewritten already)|is part of a (coroutine|generator)|line \d+ |"
            r"a (coroutine|generator|star|set of constants|function inside)|defines a (type|class|coroutine)|\S+ is (a function|code|a class)|"
            r"may resize an array|a loop without a target|ways that do not meet|a value of another block",
            "give the function a file, or leave out what its row in docs/limits.md names",
        ),
        (
            "numbers",
            r"an? (int|number|large int|factorial|power|isqrt|list of) .*|rounds to decimal|isqrt|ints that|membership of NaN|a numbers?",
            "use NumPy's numbers (np.int64, np.float64), which have a size",
        ),
        (
            "errors",
            r"it raised|a check failed|no \S+ is raised|the body raises|an assertion|sets (how NumPy treats|what becomes of warnings)|"
            r"numpy\.errstate|floating-point flags|a debugger",
            "the function itself answers such calls: its exceptions and warnings are Python's own",
        ),
        (
            "budget",
            r".*(NumPy is quicker|again and again|capture has taken longer|capture takes longer|little (array )?work|the rest of the call)|"
            r"its graph is too large|.*recompile|the limit of recompiles",
            "larger arrays, or fewer steps that need Python; the options capture_limit, node_limit and recompile_limit set the limits",
        ),
        (
            "compiler",
            r".*(C compiler|cannot be (loaded|compiled)|no folder|compile_timeout|mistake of cinductor's|No space)",
            "python -m cinductor doctor says what is missing",
        ),
    )
)
UNKNOWN = Reason("other", "", "")


def reason_of(text: str) -> Reason:
    """The row of a reason; UNKNOWN for one that no row has."""
    return next((row for row in REASONS if re.match(row.pattern, text)), UNKNOWN)


def hint_for(text: str) -> str:
    """What can be done about it, or ""."""
    return reason_of(text).hint
