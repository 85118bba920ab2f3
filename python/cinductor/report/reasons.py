"""The table of reasons why something runs in Python or NumPy.

A row is a family of reasons: a pattern of their texts, advice for the user, and the heading of the page of reasons
that has more (the row's name). A heading may have several rows, each with its advice. The first row that matches counts.
"""

from __future__ import annotations

import re

from ..base.records import NamedTuple
from .pages import of_reason


class ReasonRow(NamedTuple):
    """A family of reasons. name: its heading in the docs; pattern: matched at the beginning of a text."""

    name: str
    pattern: str
    hint: str

    @property
    def page(self) -> str:
        """Where the docs have it: an address, or the command that prints it."""
        return of_reason(self.name)


REASONS = tuple(
    ReasonRow(*row)
    for row in (
        (
            "sizes-that-differ",
            r"\S+\.(shape|strides|ndim|size)\b.* was .* when compiled|.* held when compiled",
            "cinductor.mark_dynamic(x, axis) or dynamic=True compiles one program for many sizes",
        ),
        (
            "values-that-differ",
            r".* was .* when compiled|a guard$",
            "texts, bools, types and dtypes are part of a program, floats and arrays are not: give as numbers what varies",
        ),
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
            "np.where evaluates both branches; 'loops and branches' below says why Python evaluates this one",
        ),
        (
            "texts",
            r"a concrete value is needed by (format|str|repr)",
            "format it outside of the function",
        ),
        (
            "growing-lists",
            r".*\b(appended to a list|appends? |list that is as long)|"
            r"data decide how a (list|deque)|an? (list|argument that is a list|dict that is iterated) |"
            r"one of many objects grows|tuples in a list|an empty list|arrays of many sizes|an item of a list|items of (several types|\S+ are of another type)|several loops append",
            "append one number or array of one size to a list in each iteration, and stack the list after the loop",
        ),
        (
            "overlap",
            r"an array that overlaps|arrays overlap|(arguments|names|.*) shares? memory|a write (to memory|to a result|through|at an array)|"
            r"an? .* written to an array|a value of type",
            "write to a copy, or return a new array",
        ),
        (
            "values",
            r"a concrete value is needed by an index",
            "let data index arrays and lists of numbers; take texts and objects by number after the loop, or let the caller do it",
        ),
        (
            "values",
            r"(a concrete value|the value of a (size|loop variable)) is needed|a value made in a branch|the values of an array|"
            r"it (looks at an array's bytes|returns Python's own values)|looks at addresses|strides of an array|.* is read$",
            "keep it an array: float(x), x.sum() and comparisons stay in the program, x.tolist() and pickling do not",
        ),
        (
            "containers",
            r"a dict or set (is looked at|grows)|an entry of a dict or set|the entries of a dict or set|a set (is iterated|of which data decide|that is an argument)|data decide which key|keys of several types",
            "return the dict or set, or use it in one place after the loop; begin with an empty set, and with keys of one class, int or float",
        ),
        (
            "containers",
            r"looks for a NaN by its hash|a NaN is compared|compares items that may be NaN",
            "ask np.isnan(x) first: a container finds a NaN only by the object that is in it",
        ),
        (
            "containers",
            r"(changes a |(sets|deletes) an item of|a \S+ (changes|with keys)|an item of)",
            "return what is new, and let the caller keep it",
        ),
        (
            "globals",
            r"(sets|deletes) the global|(sets|deletes) \S+ of an enclosing",
            "pass it in and return it",
        ),
        (
            "objects",
            r"`is` compares",
            "compare the items with ==: where data choose between tuples, they do not tell which object it is",
        ),
        (
            "objects",
            r"an operator of class (Tensor|Parameter)\b",
            'torch.compile(fn, backend="cinductor") compiles operators of tensors; np.asarray(t) is an array of the same memory',
        ),
        (
            "objects",
            r"(reads|sets|deletes|assigns) (\.|an? attribute|the (closure|code) of|flags|an item|\S+ \(|the items of)|passes on|makes |enters |an object|"
            r"tests whether|(an index is|warns of an index) of class|searches for a key|sees objects die|flags of an array|reads the flag|iterates a|unpacks a|"
            r"a container|a \S+ is (used as a whole|unpacked)|an operator|the text of|iter\(\)",
            "objects of plain classes are captured; give the function the arrays themselves, or cinductor.disable what uses the object",
        ),
        (
            "results",
            r"returns |an array that (may be one of several)|an array with another memory layout|whether an array is another|a write to an array that may be",
            "return arrays, numbers, and tuples, lists or dicts of them that are made in the call",
        ),
        (
            "loops",
            r".* is another object at the end of an iteration \(a list",
            "copy the items (before[:] = now), or use arrays or the rows of a table (rows[i % 2])",
        ),
        (
            "loops",
            r"data decide when a recursion ends",
            "write the recursion as a loop (while p[i] != i: i = p[i]), or with a list of what is left to do",
        ),
        (
            "loops",
            r"runs in Python, one iteration|Python runs a loop|the items of this \S+ cannot be indexed|iterates over \S+ items|it (carries more|does no array work)|the state carried|the (loop|body|condition)\b|"
            r"a (branch|loop) |an iteration makes|.*changes its (type|shape)|.* is (bound|used after the loop|written to and|changed by a function|another view)|"
            r"values are of another type|arrays change places|an array has changed that|an (iterator|exception leaves|operand of a condition|array that is carried)|"
            r"the size of|the array |an array is made|a result is of another type",
            "use whole-array operations, or loop over range(len(x)); keep the type and shape of each variable the same in every iteration",
        ),
        (
            "sizes",
            r"(sizes?|the size|a size|a slice|an index whose place|sizes that|an unbacked|extents|a range that)\b|"
            r"lists have as many items|what sizes say",
            "cinductor.mark_static makes the size a compile-time constant; mark_unbacked makes no assumption about it",
        ),
        (
            "library-calls",
            r"calls (numpy|scipy|np)\.|calls ndarray\.|the (method|function) |ufunc ",
            "this call runs in Python; the code before and after it is compiled",
        ),
        (
            "arguments",
            r".*an array of dtype (datetime|timedelta)",
            "give the dates as ints, x.view('i8'), and view the result as dates again",
        ),
        (
            "arguments",
            r".*an array of dtype \S?[OSUV\[|<>]",
            "give codes of the texts or objects, as np.unique(x, return_inverse=True) makes them, or the fields x['name'] of records",
        ),
        (
            "arguments",
            r".*a container of more",
            "give an array, or lists of numbers that have one length: np.asarray(x)",
        ),
        (
            "arguments",
            r"an argument is |an array of (dtype|more than|class)|an array (that is not aligned|whose elements)|a \S+, which is a subclass|"
            r"a view of a dict|a container of more|.*subclass of ndarray",
            "give plain arrays of bool, int, float or complex dtypes: np.asarray(x), x.filled(), x.astype(float)",
        ),
        (
            "unknown-calls",
            r"calls |imports |is disabled",
            "this call runs in Python; the code before and after it is compiled",
        ),
        (
            "source",
            r"\S+ is a (generator|coroutine|asynchronous generator)",
            "generators and coroutines run uncompiled: compile the functions that they call",
        ),
        (
            "source",
            r"its (source|rewriting)|it (evaluates annotations|is rewritten already)|is part of a (coroutine|generator)|line \d+ |"
            r"a (coroutine|generator|star|set of constants|function inside)|defines a (type|class|coroutine)|\S+ is (a function|code|a class)|"
            r"may resize an array|several stars|a loop without a target|paths that do not join|a value of another block",
            "define the function in a file, and avoid the construct named above (docs/limits.md lists them)",
        ),
        ("numbers", r"~ of a bool", "write not x for a bool of Python"),
        (
            "numbers",
            r"an? (int|number|large int|factorial|power|isqrt|list of) .*|rounds to decimal|isqrt|ints that|a numbers?",
            "use NumPy's numbers (np.int64, np.float64), which have a size",
        ),
        (
            "errors",
            r"it raised|a check failed|no \S+ is raised|the body raises|an assertion|sets (how NumPy treats|what becomes of warnings)|"
            r"numpy\.errstate|floating-point flags|a debugger",
            "the original function runs such calls, so exceptions and warnings are Python's own",
        ),
        (
            "budget",
            r".*(NumPy (is|was) faster|too many breaks|Python is needed in each call|capture has taken longer|Python runs more than|the graph has half of|little (array )?work|the rest of the call)|"
            r"its graph is too large|.*recompile|the limit of recompiles",
            "larger arrays, or fewer steps that need Python; the options capture_limit, node_limit and recompile_limit set the limits",
        ),
        (
            "compiler",
            r".*(C compiler|cannot be (loaded|compiled)|no folder|compile_timeout|internal error of cinductor|No space)",
            "python -m cinductor doctor says what is missing",
        ),
    )
)
UNKNOWN = ReasonRow("other", "", "")


def reason_of(text: str) -> ReasonRow:
    """The row for a reason; UNKNOWN if no row matches."""
    return next((row for row in REASONS if re.match(row.pattern, text)), UNKNOWN)


def hint_for(text: str) -> str:
    """Advice for a reason, or ""."""
    return reason_of(text).hint
