#!/usr/bin/env python3
"""Checks the English of comments, docstrings, documents, messages and commit subjects.

    lint.py                  prints every hit, then a table of counts
    lint.py PATH...          the same for some files or folders
    lint.py --check          fails if a folder has more hits than limits.txt allows
    lint.py --lower          writes lower limits where a folder has become better; it never raises one
    lint.py --commits BASE   checks the subjects of BASE..HEAD, and fails for a hit

Reads comments and string literals of .c, .h, .def, .cu and .cuh files, comments, docstrings and string literals of .py
and .pyi files, and prose of .md files (code blocks and `code spans` are skipped). Rules:

    word      a word of words.txt          long      a sentence of more than 35 words
    trip      "trip" for "iteration"       clauses   four or more relative clauses in one sentence
    behind    "behind" for "after"         subject   a text begins with What, Whether, Those, It, ...
    for       ", for" in place of because  wide      a line of a document with more than 160 columns
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORDS, LIMITS = HERE / "words.txt", HERE / "limits.txt"

MAX_WORDS = 35  # in a sentence
MAX_CLAUSES = 3
MAX_COLUMNS = 160  # in a line of a document
MAX_CHARACTERS = 72  # in a commit subject
# Not checked: this file (its patterns are the words), generated text, test programs, and recorded measurements.
SKIPPED = ("tools/english/lint.py", "tests/golden/", "tests/programs/", "benchmarks/measured.md", "docs/_build/", "docs/generated/", "examples/out/")

BEGINNINGS = re.compile(r"(What|Whether|Those|It|Nobody|Whoever|Who|The same)\b(?! (?:is|are) [^.]*\?)")
TRIP = re.compile(r"(?<!round )(?<!round-)\btrips?\b(?!-)(?! count)", re.I)
# "behind" is the right word for something hidden, pointed to, or left over.
HIDES = r"back|scenes|proxy|lock|flag|symlinks?|link|guard|API|wrapper|interface|pointers?|scales?|names?|values|handle|capsule"
ARTICLE = r"(?:the |a |an |its |our |this |that |one )?"
BEHIND = re.compile(rf"(?<!leaves )(?<!leave )(?<!left )\bbehind (?!{ARTICLE}(?:\w+ )?(?:{HIDES})\b)", re.I)
RELATIVE = re.compile(r"\b(?:that|which|who|whose|whom|what|whatever|whoever|where)\b", re.I)
# "for" in the sense of "because": a comma, a subject of a few words, and a verb of the clause.
VERBS = """is are was were has have had does do did may might can cannot could would will must needs? wants? takes? makes?
gives? goes comes? says? knows? stays? holds? reads? writes? costs? begins? ends? runs? asks? finds? sees? sends? keeps?
looks? depends? means? lets? gets? computes? changes? becomes? follows? waits? counts? compiles? prints? decides? belongs?"""
PRONOUNS = r"(?:it|they|he|we|nobody|there|then|else|nothing|everything|everybody)(?! (?:to|that|which|who))\b"
NO_CLAUSE = r"(?!example|instance|use|what|which|whoever|that|others?\b)"
SUBJECT_WORDS = r"(?:(?!that|which|who|whose|where|what|there|for|to)[\w'`-]+ ){1,7}?"
BECAUSE = re.compile(rf"[,;] ?for (?:{PRONOUNS}|{NO_CLAUSE}{SUBJECT_WORDS}(?:{'|'.join(VERBS.split())})\b)")

Line = tuple[int, str]


class Text(NamedTuple):
    """Lines that are read together: a comment, a docstring, a document or one message."""

    kind: str  # "comment", "document" or "message"
    lines: list[Line]


class Hit(NamedTuple):
    file: str
    line: int
    kind: str
    rule: str
    excerpt: str

    @property
    def area(self) -> str:
        """The key of limits.txt: the first folder (or the file of the root), messages apart from the rest."""
        first = self.file.split("/")[0]
        return f"{first} messages" if self.kind == "message" else first


# --- Texts of a file ------------------------------------------------------------------------------

C_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|(?://[^\n]*\n[ \t]*)+', re.S)


def texts_of_c(source: str) -> Iterator[Text]:
    for match in C_TOKEN.finditer(source):
        first = source.count("\n", 0, match.start()) + 1
        token = match.group()
        if token.startswith("/"):
            body = re.sub(r"^/\*+|\*/$", "", token).splitlines()
            yield Text("comment", [(first + i, re.sub(r"^\s*(?:\*(?!/) ?|// ?)?", "", line)) for i, line in enumerate(body)])
        elif token.startswith('"') and " " in token:
            yield Text("message", [(first, token[1:-1])])


def docstring_nodes(tree: ast.AST) -> Iterator[ast.Constant]:
    """Strings that are statements: the docstrings of modules, classes and functions, and those after an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def texts_of_python(source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    docstrings = list(docstring_nodes(tree))
    for node in docstrings:
        lines = [line.rstrip() for line in str(node.value).splitlines()]
        indent = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
        yield Text("comment", [(node.lineno + i, line[indent:] if i else line.strip()) for i, line in enumerate(lines)])
    seen = {id(node) for node in docstrings}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in seen and " " in node.value.strip():
            yield Text("message", [(node.lineno, " ".join(node.value.split()))])
    yield from comments_of_python(source)


def comments_of_python(source: str) -> Iterator[Text]:
    """Comments; those of adjacent lines are one text, unless they follow code."""
    run: list[Line] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        follows_code = bool(token.line[: token.start[1]].strip())
        if run and (follows_code or token.start[0] != run[-1][0] + 1):
            yield Text("comment", run)
            run = []
        run.append((token.start[0], token.string.lstrip("#! ")))
    if run:
        yield Text("comment", run)


def texts_of(name: str, source: str) -> Iterator[Text]:
    if name.endswith(".md"):
        yield Text("document", list(enumerate(source.splitlines(), 1)))
    elif name.endswith((".py", ".pyi")):
        yield from texts_of_python(source)
    else:
        yield from texts_of_c(source)


# --- Sentences of a text --------------------------------------------------------------------------


def is_code(line: str, bare: str) -> bool:
    """True for a diagram, an indented block, the frame of a table, a heading."""
    return bool(re.match(r"\s{3,}\S|\t", line) or re.search(r"->\s*$|[{};]\s*$|^[|\-: ]+$|^#+ ", bare))


def paragraphs(lines: list[Line]) -> Iterator[list[Line]]:
    block: list[Line] = []
    fenced = False
    for number, line in lines:
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fenced = not fenced
            bare = ""
        continued = bool(block) and bool(re.match(r"\s{2,4}\S", line)) and block[0][1].startswith("\0")
        code = fenced or (is_code(line, bare) and not continued)
        is_item = bool(re.match(r"[*\-|] |\d+\. ", bare))
        if block and (not bare or code or is_item):
            yield [(n, text.lstrip("\0")) for n, text in block]
            block = []
        if bare and not code:
            block.append((number, ("\0" if is_item else "") + re.sub(r"^[*\-] ", "", bare)))
    if block:
        yield [(n, text.lstrip("\0")) for n, text in block]


def sentences(block: list[Line]) -> Iterator[Line]:
    """Sentences, each with the line where it begins. A code span counts as one word; cells of a table are sentences.
    """
    text, starts = "", []
    for number, line in block:
        starts.append((len(text), number))
        text += line + " "
    text = re.sub(r"`[^`]*`", lambda m: "x" + "_" * (len(m.group()) - 1), text)
    cell = r"|(?<= )\|(?= )" if text.startswith("|") else ""
    stop = re.compile(r"(?<!\be\.g)(?<!\bi\.e)[.!?](?=\s)[)\"]*" + cell)
    begin = 0
    for end in [*(m.end() for m in stop.finditer(text)), len(text)]:
        sentence = text[begin:end]
        at = begin + len(sentence) - len(sentence.lstrip())
        if sentence.strip(" |"):
            yield max(n for offset, n in starts if offset <= at), sentence.strip(" |")
        begin = end


# --- Rules ----------------------------------------------------------------------------------------


def load_words() -> list[tuple[re.Pattern[str], str]]:
    rows = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")]
    return [(re.compile(rf"\b(?:{pattern})\b", re.I), instead) for pattern, instead in (row.split("\t") for row in rows)]


REPLACED = load_words()


def wrong_words(sentence: str) -> Iterator[tuple[str, str]]:
    """(rule, excerpt) for each word or phrase that has a better one."""
    for rule, pattern in (("trip", TRIP), ("behind", BEHIND), ("for", BECAUSE)):
        for match in pattern.finditer(sentence):
            yield rule, around(sentence, match)
    for pattern, instead in REPLACED:
        for match in pattern.finditer(sentence):
            yield "word", f"{around(sentence, match)}  [{match.group()} -> {instead}]"


def around(sentence: str, match: re.Match[str]) -> str:
    return sentence[max(0, match.start() - 40) : match.end() + 40]


def wrong_shape(sentence: str, is_first: bool) -> Iterator[tuple[str, str]]:
    """(rule, excerpt) for how a sentence begins and how long it is."""
    if is_first and BEGINNINGS.match(sentence):
        yield "subject", sentence[:90]
    count = len(re.findall(r"[A-Za-z_][\w'’-]*", sentence))
    if count > MAX_WORDS:
        yield "long", f"{count} words: {sentence[:70]}"
    elif len(RELATIVE.findall(sentence)) > MAX_CLAUSES:
        yield "clauses", sentence[:110]


def check_text(text: Text) -> Iterator[tuple[int, str, str]]:
    if text.kind == "message":
        for line, sentence in text.lines:
            yield from ((line, *found) for found in wrong_words(sentence))
        return
    is_first = text.kind != "document"
    for block in paragraphs(text.lines):
        for line, sentence in sentences(block):
            yield from ((line, *found) for found in wrong_shape(sentence, is_first))
            yield from ((line, *found) for found in wrong_words(sentence))
            is_first = False


def check_file(name: str) -> Iterator[Hit]:
    source = (ROOT / name).read_text(encoding="utf-8")
    for text in texts_of(name, source):
        for line, rule, excerpt in check_text(text):
            yield Hit(name, line, text.kind, rule, excerpt)
        if text.kind == "document":
            for line, content in text.lines:
                if len(content) > MAX_COLUMNS and "](" not in content:
                    yield Hit(name, line, text.kind, "wide", f"{len(content)} columns")


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def check_commits(base: str) -> Iterator[Hit]:
    for line in git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD").splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > MAX_CHARACTERS:
            yield Hit("commits", 0, "subject", "commit", f"{commit} {len(subject)} characters: {subject}")
        for rule, excerpt in [*wrong_shape(subject, True), *wrong_words(subject)]:
            yield Hit("commits", 0, "subject", rule, f"{commit} {excerpt}")


# --- Limits and output ----------------------------------------------------------------------------


def read_limits() -> dict[str, int]:
    """Area and most hits, a row each: `docs = 0`."""
    rows = (line.partition("=") for line in LIMITS.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {area.strip(): int(most) for area, _, most in rows}


def lower_limits(counts: Counter[str]) -> None:
    lines = []
    for line in LIMITS.read_text(encoding="utf-8").splitlines():
        area, equals, most = line.partition("=")
        lines.append(f"{area.strip()} = {min(int(most), counts[area.strip()])}" if equals else line)
    LIMITS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def over_limits(counts: Counter[str]) -> list[str]:
    limits = read_limits()
    return [f"{area}: {n} hits, at most {limits.get(area, 0)} are allowed" for area, n in sorted(counts.items()) if n > limits.get(area, 0)]


def table(hits: list[Hit]) -> str:
    counts = Counter((hit.area, hit.rule) for hit in hits)
    rules = sorted({rule for _, rule in counts})
    lines = [f"{'':18}" + "".join(f"{rule:>9}" for rule in [*rules, "all"])]
    for area in [*sorted({area for area, _ in counts}), "all"]:
        row = [sum(n for (a, r), n in counts.items() if area in (a, "all") and r == rule) for rule in rules]
        lines.append(f"{area:18}" + "".join(f"{n:9}" for n in [*row, sum(row)]))
    return "\n".join(lines)


def files_to_check(given: list[str]) -> list[str]:
    names = git("ls-files", "--", *given).splitlines()
    kinds = (".c", ".h", ".def", ".cu", ".cuh", ".py", ".pyi", ".md")
    return [n for n in names if n.endswith(kinds) and not n.startswith(SKIPPED) and (ROOT / n).is_file()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="tracked files or folders, from the root; default: all")
    parser.add_argument("--check", action="store_true", help="print only the areas over their limit, and fail for them")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the counts")
    parser.add_argument("--commits", metavar="BASE", help="check commit subjects instead of files")
    parser.add_argument("--summary", action="store_true", help="print only the table")
    options = parser.parse_args()
    if options.commits:
        hits = list(check_commits(options.commits))
    else:
        hits = [hit for name in files_to_check(options.paths) for hit in check_file(name)]
    counts = Counter(hit.area for hit in hits)
    over = over_limits(counts) if options.check else []
    shown = [hit for hit in hits if not options.check or any(line.startswith(f"{hit.area}:") for line in over)]
    for hit in () if options.summary else shown:
        print(f"{hit.file}:{hit.line}: {hit.rule}: {hit.excerpt}")
    if options.lower:
        lower_limits(counts)
    if over or not options.check:
        print("\n".join(over) if options.check else table(hits))
    return int(bool(over or (options.commits and hits)))


if __name__ == "__main__":
    sys.exit(main())
