"""Functions whose results depend on the process that calls them: on its hashes of texts, its environment and its files.

    python of_process.py

prints each one whose compiled form gives another result than itself, in calls between which the world changes. Processes that
share a disk cache may not share such results.
"""

import collections
import enum
import functools
import itertools
import operator
import os
import pathlib
import sys
import threading

import numpy as np

import cinductor


class Plain(enum.Enum):
    A = 1
    B = 2


class Text(str, enum.Enum):
    A = "a"
    B = "b"


Pair = collections.namedtuple("Pair", "a b")
WORDS = {"a", "b", "c", "dd", "eee"}
FROZEN = frozenset(WORDS)


def with_another(x):
    words = set(WORDS)
    words.add("zz")
    return list(words)


def first_and_rest(x):
    first, *rest = WORDS
    return first, rest


def in_a_loop(x):
    total = 0.0
    for number, word in enumerate(WORDS):
        total += number * len(word)
    return total


ORDERS = [
    with_another,
    first_and_rest,
    in_a_loop,
    lambda x: [*WORDS],
    lambda x: (list(WORDS), tuple(FROZEN), list(WORDS.copy()), [w for w in WORDS if w != "a"]),
    lambda x: sorted(WORDS, key=len),
    lambda x: (min(WORDS, key=len), max(FROZEN, key=lambda w: 0)),
    lambda x: next(iter(WORDS)),
    lambda x: WORDS.__iter__().__next__(),
    lambda x: next(w for w in WORDS),
    lambda x: "".join(WORDS),
    lambda x: (list(dict.fromkeys(WORDS)), list(collections.Counter(WORDS)), {w: k for k, w in enumerate(WORDS)}),
    lambda x: (list(zip(WORDS, range(9))), list(map(len, WORDS)), list(filter(None, WORDS)), functools.reduce(operator.add, WORDS)),
    lambda x: repr(WORDS),
    lambda x: (str([WORDS]), repr((1, {2: FROZEN}))),
    lambda x: list(itertools.chain.from_iterable([WORDS, FROZEN])),
    lambda x: (list(itertools.chain(WORDS, "q")), list(itertools.islice(WORDS, 2)), list(next(itertools.product(WORDS, [1])))),
    lambda x: (sorted([WORDS, FROZEN], key=len)[0].copy().pop(), [*map(list, [WORDS])], [*zip(*[WORDS, FROZEN])][0]),
    lambda x: [list(words) for words in {1: WORDS, 2: FROZEN}.values()],
    lambda x: (lambda first, *rest: first)(*{np.str_("a"), np.str_("b"), np.str_("c")}),
    lambda x: f"{WORDS} {FROZEN!r}",
    lambda x: "%s" % WORDS,  # noqa: UP031
    lambda x: "{}".format([WORDS]),  # noqa: UP032
    lambda x: [list(made) for made in (WORDS | {"q"}, WORDS - {"a"}, WORDS ^ {"a", "q"}, WORDS.union("pq"))],
    lambda x: list({"u", "v", str(len(x))}),
    lambda x: {"u", "v", "w"}.pop(),
    lambda x: [[*{Plain.A, Plain.B}], [*{Text.A, Text.B, "z"}], [*{int, str, float}], [*{None, 1, "a"}], [*{("a", 1), ("b", 2)}]],
    lambda x: np.array(list(WORDS)).tolist(),
    lambda x: x * len(next(iter(WORDS))),
]
HASHES = [
    lambda x: hash("abc"),
    lambda x: (hash(("a", 1)), hash(frozenset("abc")), hash(b"abc"), hash(Pair("a", 1))),
    lambda x: hash(Plain.A),
    lambda x: hash(np.dtype("f8")),
    lambda x: "abc".__hash__(),
    lambda x: str.__hash__("abc"),
    lambda x: x * (hash("abc") % 7),
]
SURROUNDINGS = [
    lambda x: (os.getpid(), os.getcwd(), os.path.abspath("q"), str(pathlib.Path.cwd()), sys.path[0]),
    lambda x: (os.environ.get("OF_PROCESS"), os.getenv("OF_PROCESS")),
    lambda x: os.environ["OF_PROCESS"],
    lambda x: "OF_PROCESS_2" in os.environ,
    lambda x: (sys.argv[1], len(sys.argv), sys.getrecursionlimit(), threading.current_thread().name),
    lambda x: (os.path.exists("made"), pathlib.Path("made").exists(), os.listdir(".")),
    lambda x: pathlib.Path("data").read_text(),
    lambda x: np.loadtxt("data").sum(),
    lambda x: os.path.getsize("data"),
    lambda x: (np.get_printoptions()["precision"], np.geterr()["divide"]),
    lambda x: str(x / 3),
    lambda x: (np.array2string(x / 3), f"{x / 3}", repr(np.array([1 / 3]))),
]


def main() -> None:
    """Compare the results of three calls of each function."""
    number = sys.argv[1]
    data, made = pathlib.Path("data"), pathlib.Path("made")
    if number == "2":
        np.set_printoptions(precision=3)
        sys.setrecursionlimit(1500)
        np.seterr(divide="ignore")
        os.environ["OF_PROCESS_2"] = ""
    x = np.ones(3)
    for fn in [*ORDERS, *HASHES, *SURROUNDINGS]:
        os.environ["OF_PROCESS"] = number
        data.write_text("1 2")
        made.unlink(missing_ok=True)
        compiled = cinductor.compile(fn, backend="interp", mode="now")
        for call in range(3):
            got, want = repr(compiled(x)), repr(fn(x))
            if got != want:
                print(f"line {fn.__code__.co_firstlineno}, call {call}: {got[:60]} for {want[:60]}")
            if call == 1:
                os.environ["OF_PROCESS"] = "changed"
                data.write_text("5 6 7")
                made.touch()
    control = cinductor.compile(lambda x: x + len(WORDS), backend="interp", mode="now")
    control(x)
    print("captures", control.stats()["captures"])


if __name__ == "__main__":
    main()
