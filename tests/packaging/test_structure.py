"""Tests the structure of the source: layers, names, globals, sizes of functions and files, and refused constructs."""

import ast
import functools
import math
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from conftest import BASE_FLAGS, ROOT

from cinductor.capture.calls.builtins import understands
from cinductor.diagnosis import guard_texts

CSRC = ROOT / "csrc"
# From the bottom up. A folder may include its own files and those of the folders in its row.
LAYERS = {
    "base": "",
    "sym": "base",
    "host": "base",
    "ir": "base sym",
    "analysis": "base sym ir",
    "vmath": "base ir",
    "passes": "base sym ir",
    "lower": "base sym ir analysis passes",
    "loops": "base sym ir analysis",
    "schedule": "base sym ir analysis passes lower loops",
    "codegen": "base sym ir analysis",
    "kernels": "base sym ir analysis codegen",
    "target": "base sym ir",
    "device": "base sym host ir analysis vmath passes lower schedule codegen kernels target",
    "wrapper": "base sym host ir analysis passes lower schedule",
    "runtime": "base sym host ir analysis vmath passes lower schedule codegen device wrapper",
    "api": "base sym host ir analysis vmath passes lower loops schedule codegen device wrapper runtime",
}
# Layers of the binding, from the bottom up: each may use itself and those before it.
BINDING = ["state", "program", "foreign", "graph", "value", "operation", "region", "replay", "surface"]
ABOVE_DEVICE = ["ir", "analysis", "passes", "lower", "loops", "schedule", "wrapper", "runtime", "api"]
C_FILES = sorted(p for p in CSRC.rglob("*") if p.suffix in (".c", ".h", ".def", ".cu", ".cuh"))
PYEXT_FILES = sorted(p for p in (ROOT / "pyext").rglob("*") if p.suffix in (".c", ".h", ".def"))
PYTHON_FILES = sorted((ROOT / "python").rglob("*.py"))


def name_of(path):
    return str(path.relative_to(ROOT))


def in_each(paths):
    """A test that checks these files one after another, and names the first that fails."""

    def tested(check):
        def test():
            assert paths
            for path in paths:
                try:
                    check(path)
                except AssertionError as wrong:
                    raise AssertionError(f"{name_of(path)}: {wrong}") from wrong

        test.__doc__ = check.__doc__
        return test

    return tested


# Files are read, parsed and stripped of comments once for all tests.
text_of = functools.cache(Path.read_text)


@functools.cache
def nodes_of(path):
    """All nodes of a file of Python, as ast.walk gives them."""
    return [*ast.walk(ast.parse(text_of(path)))]


@functools.cache
def code_of(path):
    return without_comments(text_of(path))


@pytest.fixture(scope="module", autouse=True)
def files_are_forgotten():
    yield
    for known in text_of, nodes_of, code_of:
        known.cache_clear()


def without_comments(text):
    """C text with comments blanked, line numbers kept; strings stay."""
    pattern = r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*'

    def blank(match):
        it = match.group()
        return it if it.startswith('"') else re.sub(r"[^\n]", " ", it)

    return re.sub(pattern, blank, text, flags=re.DOTALL)


def includes(path):
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', text_of(path), re.MULTILINE)


def test_every_folder_is_a_layer():
    assert {p.name for p in CSRC.iterdir() if p.is_dir()} <= set(LAYERS)
    assert {p.name for p in (ROOT / "pyext").iterdir()} == set(BINDING)
    assert not list(CSRC.glob("*.[ch]")) + list(ROOT.glob("*.[ch]"))


@in_each(C_FILES)
def test_includes_go_down(path):
    layer = path.relative_to(CSRC).parts[0]
    allowed = {layer, *LAYERS[layer].split()}
    for target in includes(path):
        assert (CSRC / target).is_file(), f"{target} is not relative to csrc"
        assert target.split("/")[0] in allowed, f"{layer} includes {target}"


@in_each(C_FILES)
def test_no_python_below_pyext(path):
    text = code_of(path)
    assert not re.search(r"Python\.h|numpy/|\bPy[A-Z]\w*|\bPyObject\b", text)


@in_each(PYEXT_FILES)
def test_binding_includes_go_down(path):
    layer = BINDING.index(path.relative_to(ROOT / "pyext").parts[0])
    for target in includes(path):
        folder = target.split("/")[0]
        if folder in BINDING:
            assert (ROOT / "pyext" / target).is_file(), f"{target} is not relative to pyext"
            assert BINDING.index(folder) <= layer, f"{path.parent.name} includes {target}"
        else:
            assert (CSRC / target).is_file(), f"{target} is not relative to csrc"


# Files whose functions call each other, because their data are recursive: a quotient of sums is a sum of quotients, a
# region has blocks and a block has regions.
RECURSIVE = [
    {"expr.c", "expr_division.c", "expr_poly.c", "expr_proof.c"},
    {"lower.c", "lower_region.c"},
]


# The module creates the function type, and the type finds the module's state by the module's definition.
MODULE = {"function.c", "module.c"}


def calls_between_files(files):
    """For each C file: the files whose functions it calls or whose tables it uses, also through inline functions of
    headers.
    """
    texts = {p: code_of(p) for p in files}
    owners, inline = {}, {}
    for path, text in texts.items():
        if path.suffix == ".h":
            pattern = r"^static inline [\w *]+\n(c[ix]_\w+)\([^;{]*\)\s*\{(.*?)^\}"
            for name, body in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
                inline[name] = set(re.findall(r"\bc[ix]_\w+", body))
        else:
            pattern = (
                r"^(?!static|extern)[\w *]+(?:\n| |\*)(c[ix]_\w+)(?:\([^;{]*\)\n\{|(?:\[\])? =\s(?:\{|\s*CX_SPEC\())"
            )
            types = re.findall(r"^CX_TYPE\((cx_\w+),", text, re.MULTILINE)
            owners.update(dict.fromkeys([*re.findall(pattern, text, re.MULTILINE), *types], path))
    calls = {}
    for path, text in texts.items():
        if path.suffix == ".c":
            words = set(re.findall(r"\bc[ix]_\w+", text))
            for _ in inline:
                words |= {word for name in words & set(inline) for word in inline[name]}
            calls[path] = {owners.get(word) for word in words} - {path, None}
    return calls


def circles_of_calls(files):
    calls = calls_between_files(files)
    reached = {p: set(calls[p]) for p in calls}
    for middle in calls:
        for path in calls:
            if middle in reached[path]:
                reached[path] |= reached[middle]
    circles = {frozenset(q for q in reached[p] if p in reached[q]) for p in calls}
    return [{path.name for path in circle} for circle in circles if len(circle) > 1]


def test_files_call_one_way():
    """Calls between files have no cycles, so a file can be understood after those that it calls."""
    assert all(circle in RECURSIVE for circle in circles_of_calls(C_FILES))
    assert circles_of_calls(PYEXT_FILES) == [MODULE]


def test_binding_calls_down():
    layers = {p: BINDING.index(p.relative_to(ROOT / "pyext").parts[0]) for p in PYEXT_FILES}
    for path, called in calls_between_files(PYEXT_FILES).items():
        above = {p.name for p in called if layers[p] > layers[path]}
        assert not above or {path.name, *above} == MODULE, name_of(path)


def test_private_headers_stay_in_their_folder():
    for path in C_FILES + PYEXT_FILES:
        for target in includes(path):
            if target.endswith("_private.h"):
                assert target.split("/")[:-1] == [path.parent.name]


def test_headers_include_what_they_use():
    """Each header compiles alone, so includes may be in any order."""
    headers = [p for p in C_FILES + PYEXT_FILES if p.suffix == ".h" and p.name != "op_rows.h"]
    folders = [ROOT / "pyext", ROOT / "build/generated", sysconfig.get_path("include"), np.get_include()]
    flags = [*BASE_FLAGS, *(f"-I{folder}" for folder in folders), "-fsyntax-only", "-w", "-x", "c"]
    command = [os.environ.get("CC", "cc"), *flags, *headers]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def test_what_a_header_declares_is_used_elsewhere():
    """A function used in one file is static; one used in none is dead."""
    sources = [*C_FILES, *PYEXT_FILES, *(ROOT / "tests").rglob("*.[ch]")]
    words = {p: re.findall(r"\w+", code_of(p)) for p in sources}
    users = {}
    for path, found in words.items():
        for word in set(found):
            users.setdefault(word, set()).add(path)
    idle = []
    for path in C_FILES + PYEXT_FILES:
        if path.suffix == ".h" and path.name != "cinductor.h":
            text = code_of(path)
            inline = re.findall(r"^(c[ix]_\w+)\(", text, re.MULTILINE)
            for name in set(re.findall(r"\b(c[ix]_\w+)\(", text)) - set(inline):
                if len(users[name] - {path}) < 2 and words[path].count(name) < 2:
                    idle.append(f"{name_of(path)}: {name}")
    assert not idle


def test_no_globals_that_can_change(plain_core):
    """.data and .bss of every object are empty; .data.rel.ro has constants that contain addresses."""
    found = []
    for path in plain_core.objects:
        table = subprocess.run(["size", "-A", path], stdout=subprocess.PIPE, text=True, check=True)
        for line in table.stdout.splitlines():
            words = line.split()
            if len(words) == 3 and re.match(r"\.(data|bss|tdata|tbss)", words[0]):
                if not words[0].startswith(".data.rel.ro") and int(words[1]):
                    found.append(f"{path.name}: {words[0]} has {words[1]} bytes")
    assert not found


@pytest.mark.parametrize("layer", ABOVE_DEVICE)
def test_no_device_is_named_outside_its_folder(layer):
    for path in (CSRC / layer).rglob("*.[chd]*"):
        text = code_of(path)
        lines = text.lower().splitlines()
        names = [line for line in lines if re.search(r"cuda|nvrtc|cubin|\bptx\b", line)]
        # The exception: ids of print styles, which name the emitted language.
        assert not [line for line in names if "ci_style_" not in line], name_of(path)


def test_instructions_are_spelled_by_their_machine():
    """Only the files of x86 print x86 instructions, so that another CPU with registers of the same width does not get
    them.
    """
    x86 = CSRC / "target" / "c" / "x86.c"
    printed = re.compile(r'"[^"\n]*__builtin_ia32_')
    users = [p for p in CSRC.rglob("*.[chd]*") if p != x86 and printed.search(text_of(p))]
    assert [name_of(p) for p in users] == ["csrc/target/c/quirks.def"]  # its rows name their machine


def test_no_fast_math():
    files = [ROOT / "setup.py", ROOT / "Makefile", *C_FILES, *PYEXT_FILES, *PYTHON_FILES]
    files += [p for p in (ROOT / "kernels").rglob("*") if p.is_file()]
    for path in files:
        found = re.search(r"-ffast-math|-Ofast|use_fast_math|pragma.*fast.?math", text_of(path))
        assert not found, name_of(path)


def test_modules_of_classes_are_read_in_one_way():
    """A metaclass of the user's may have a property of that name: base/class_lookup.py asks the class itself."""
    for path in PYTHON_FILES:
        found = re.search(r"\b(cls|kind|type\([^()]*\))\.__module__", text_of(path))
        assert not found, name_of(path)


def test_one_setjmp():
    users = [p for p in C_FILES if re.search(r"\bsetjmp\s*\(", code_of(p))]
    assert users == [CSRC / "base" / "context.c"]
    text = code_of(users[0])
    assert len(re.findall(r"\bsetjmp\s*\(", text)) == 1


# Files with functions that calls run on the user's thread, where a signal handler may raise.
IN_CALLS = [p for p in PYTHON_FILES if re.match("python/cinductor/(base|calls|capture|numpy)/", name_of(p))]
IN_CALLS += [p for p in PYTHON_FILES if p.stem in "racing trimming events guard_texts tracing provenance".split()]
DECIDE = {"is_interrupt", "is_internal_error", "pass_on", "failure_of", "__exit__"}  # what an exception is


@in_each(IN_CALLS)
def test_exceptions_of_signal_handlers_are_no_internal_errors(path):
    """Code that handles any exception, or an OSError (TimeoutError is one), raises those of signal handlers again."""
    for node in nodes_of(path):
        if isinstance(node, ast.ExceptHandler):
            caught = set() if node.type is None else {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)}
            calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
            asked = {f.id if isinstance(f, ast.Name) else getattr(f, "attr", "") for f in calls}
            raises = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            is_any = node.type is None or caught & {"OSError", "Exception", "BaseException"}
            assert not is_any or raises or asked & DECIDE, node.lineno


@in_each(PYTHON_FILES)
def test_python_runs_nothing_it_did_not_write(path):
    """No pickle or marshal, no eval, no shell."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            assert not {a.name for a in node.names} & {"pickle", "marshal", "shelve"}
        elif isinstance(node, ast.ImportFrom):
            assert node.module not in {"pickle", "marshal", "shelve"}
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"eval", "builtins.eval", "os.system", "os.popen"}, node.lineno
            for keyword in node.keywords:
                shell = keyword.arg == "shell" and getattr(keyword.value, "value", True)
                assert not shell, node.lineno


def test_no_shell_in_c():
    for path in C_FILES + PYEXT_FILES:
        text = code_of(path)
        assert not re.search(r"(?<![\w.>])(system|popen)\s*\(", text), name_of(path)


def functions(path):
    """Line and length of each function of a C or Python file."""
    if path.suffix == ".py":
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.lineno, node.end_lineno - node.lineno
        return
    start = None
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start - 1
            start = None


@in_each(C_FILES + PYEXT_FILES + PYTHON_FILES)
def test_sizes(path):
    """A file has at most 600 lines, a function at most 80."""
    assert len(text_of(path).splitlines()) <= 600 or path.suffix == ".def"
    for line, length in functions(path):
        assert length <= 80, f"the function at line {line}"


def test_functions_are_short():
    """Half of the functions have at most 15 lines, and one in a hundred may have more than 40."""
    lengths = sorted(n for p in C_FILES + PYEXT_FILES + PYTHON_FILES for _, n in functions(p))
    assert lengths[len(lengths) // 2] <= 15
    assert sum(n > 40 for n in lengths) <= len(lengths) // 100


@in_each(C_FILES + PYEXT_FILES + PYTHON_FILES)
def test_files_open_with_their_idea(path):
    assert text_of(path).startswith(("/*", '"""'))


# Modules with imports inside functions, so that the first call does not load modules that it does not need.
LATE = {
    "__init__.py",
    "__main__.py",
    "cache.py",
    "compile.py",
    "calls/dynamic.py",
    "calls/job.py",
    "diagnosis/events.py",
    "report/explanation.py",
    "torch/__init__.py",
}


def test_imports_stand_at_the_top():
    """At the top, Python itself detects cyclic imports."""
    late = set()
    for path in PYTHON_FILES:
        tree = ast.parse(text_of(path))
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        if any(isinstance(n, ast.ImportFrom) and n.level for f in functions for n in ast.walk(f)):
            late.add(path.relative_to(ROOT / "python" / "cinductor").as_posix())
    assert late == LATE


# Modules that others load by name at their first use, from below.
LOADED = """arrays.calls arrays.namespace arrays.sharing base.interrupt capture.session compile diagnosis.logs diagnosis.tracing
report.notebook report.explanation report.provenance""".split()


def imports_of(path, root):
    """The modules of the package that a file imports, also inside of functions and for annotations. What only the
    package's first file names is left out.
    """
    if path == root / "__init__.py":
        return
    folder = path.parent.relative_to(root)
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = root.joinpath(*folder.parts[: len(folder.parts) - node.level + 1])
            base = base.joinpath(*node.module.split(".")) if node.module else base
            found = [base.with_suffix(".py"), *(base / f"{alias.name}.py" for alias in node.names)]
            yield from (p.relative_to(root).as_posix() for p in found if p.is_file())


def test_imports_go_one_way():
    root = ROOT / "python/cinductor"
    files = {p.relative_to(root).as_posix(): p for p in PYTHON_FILES}
    reached = {name: set(imports_of(p, root)) - {name} for name, p in files.items()}
    for middle in files:
        for known in reached.values():
            if middle in known:
                known |= reached[middle]
    assert not [name for name, known in reached.items() if name in known]
    names = {name for path in PYTHON_FILES for name in re.findall(r"lazy\.load\((.*?)\)", text_of(path))}
    assert names == {f'"{name}"' for name in LOADED}


def test_surface_knows_nothing_of_capture():
    """`numpy` translates NumPy's functions to graph operations: a layer below its callers."""
    for path in (ROOT / "python" / "cinductor" / "numpy").glob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                assert not re.match(r"(cinductor\.)?capture", node.module or ""), name_of(path)


# Folders and files of capture, from the bottom up: each may import its own row and those before it.
CAPTURE_LAYERS = [
    "assumptions container_rows containers generators iterators kinds made_lists objects reversal sources",
    "syntax",
    "control",
    "backend boundary call_state deaths effects identity known_arrays operands records special_methods stores",
    "calls",
    "hooks",
    "pieces",
    "__init__ entry session",
]


def imported(path, root):
    """The folders and files of the folder that a file imports, also for annotations only."""
    parts = path.relative_to(root).parts[:-1]
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(parts) + 1:
            base = parts[: len(parts) - node.level + 1]
            names = [node.module] if node.module else [name.name for name in node.names]
            for name in names:
                yield (*base, *name.split("."))[0]


def test_capture_imports_go_down():
    root = ROOT / "python/cinductor/capture"
    ranks = {name: rank for rank, row in enumerate(CAPTURE_LAYERS) for name in row.split()}
    assert {p.relative_to(root).parts[0].removesuffix(".py") for p in root.rglob("*.py")} == set(ranks)
    for path in root.rglob("*.py"):
        own = path.relative_to(root).parts[0].removesuffix(".py")
        above = {name for name in imported(path, root) if ranks[name] > ranks[own]}
        assert not above, f"{name_of(path)} imports {above}"


def test_parameters_of_control_have_types():
    """No parameter in control is `Any`: what is only passed on is `object`, and sizes, arrays and parts have types."""
    for path in (ROOT / "python/cinductor/capture/control").glob("*.py"):
        for arg in (node for node in nodes_of(path) if isinstance(node, ast.arg) and node.annotation is not None):
            assert ast.unparse(arg.annotation) != "Any", f"{path.name}:{arg.lineno}: {arg.arg}"


def kept_by(cls):
    """The parameters of a class's __init__ that its objects keep, with their annotations."""
    init = next((f for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    if init is None:
        return
    for node in ast.walk(init):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            names = {v.id for v in values if isinstance(v, ast.Name)}
            if any(isinstance(t, ast.Attribute) for target in targets for t in ast.walk(target)):
                for arg in init.args.args[1:]:
                    if arg.arg in names:
                        yield arg.arg, "" if arg.annotation is None else ast.unparse(arg.annotation)


def classes_of_capture():
    files = [ast.parse(path.read_text()) for path in sorted((ROOT / "python/cinductor/capture").rglob("*.py"))]
    return {cls.name: cls for tree in files for cls in ast.walk(tree) if isinstance(cls, ast.ClassDef)}


# Classes that keep a reference to the call state. Scope drives the capture: rewritten code calls its methods. Unrolled
# makes items real once NumPy runs the rest of the call.
HOLDS_STAGE = {"Scope", "Unrolled"}
# Classes that keep a reference to the object that makes them, with its class.
HOLDS_OWNER = {
    # The fixed-point search of a loop: its parts know what it has found, as the base class of `Carried`.
    "Types": "LoopState",
    "Flow": "LoopState",
    "Last": "LoopState",
    "AppendedItems": "LoopState",
    # These live for one traversal of values, for one merge of two branches, or for one function.
    "Materialiser": "Effects",
    "Merge": "Region",
    "Uses": "Names",
}


def test_parts_know_no_owner():
    """A part only gets references to parts created before it, not to the call state or to its creator."""
    classes = classes_of_capture()
    bases = {name: {b.id for b in cls.bases if isinstance(b, ast.Name)} for name, cls in classes.items()}
    makes = {
        name: {c.func.id for c in ast.walk(cls) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
        for name, cls in classes.items()
    }
    owners = {name: {other for other in classes if name in makes[other]} - {name} for name in classes}
    for _ in classes:  # add the owners of owners, and the base classes of owners
        for found in owners.values():
            found |= {b for other in found for b in bases[other] & set(classes)}
            found |= {o for other in found for o in owners[other]}
    stages, known = set(), {}
    for name, cls in classes.items():
        for parameter, annotation in kept_by(cls):
            if "stage" in (parameter, annotation.lower()):
                stages.add(name)
            for owner in owners[name] & set(re.findall(r"(?<!\[)\b[A-Z]\w+", annotation)) - {name}:
                known[name] = owner
    assert stages == HOLDS_STAGE
    assert known == HOLDS_OWNER


def test_docs_name_what_there_is():
    """Every file that the documents name exists; so does every name of the core and the binding."""
    folders = ["", "csrc", "pyext", "python/cinductor", "python/cinductor/capture"]
    sources = "".join(text_of(p) for p in C_FILES + PYEXT_FILES)
    names = {p.name for folder in ("csrc", "pyext", "python") for p in (ROOT / folder).rglob("*.*")}
    missing = []
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guide").glob("*.md")]:
        for word in re.findall(r"`([^`\s]+)`", text_of(path)):
            if re.fullmatch(r"c[ix]_\w+|C[ix][A-Z]\w+", word):
                there = word in sources
            elif re.fullmatch(r"[\w*./-]+\.(c|h|def|py|pyi|md|ci)", word) and "/out/" not in word:
                there = word in names or any(any((ROOT / f).glob(word)) for f in folders)
            else:
                continue
            if not there:
                missing.append(f"{path.name}: {word}")
    assert not missing


def test_tables_of_files_name_files_of_their_folder():
    """A table of docs/architecture.md with a folder in its head, or in its rows (`capture/` `loop`, ...)."""
    folder, missing = "", []
    for line in text_of(ROOT / "docs/architecture.md").splitlines():
        if not line.startswith("|"):
            found = re.match(r"`(csrc/[\w/]+)` prints", line)
            folder = found[1] if found else folder if line == "" else ""
            continue
        cells = line.split("|")
        if found := re.match(r" file of `([\w/]+)` $", cells[1]):
            folder = found[1]
        elif found := re.match(r" `([\w/]+)/` ", cells[1]):
            base = ROOT / "python/cinductor" / found[1]
            names = re.findall(r"`(\w+)`", cells[1])
            missing += [f"{found[1]}/{name}" for name in names if not (base / f"{name}.py").is_file()]
        elif folder:
            names = re.findall(r"`(\w+\.(?:c|h|def))`", cells[1])
            missing += [f"{folder}/{name}" for name in names if not (ROOT / folder / name).is_file()]
    assert not missing


# Files that handle objects of the user. They test classes with `is_a`, because `isinstance` runs the object's
# `__class__`.
MEETING = [
    path
    for folder in ("capture", "numpy")
    for path in sorted((ROOT / "python" / "cinductor" / folder).rglob("*.py"))
    if path.parent.name != "syntax" and path.name not in ("split.py", "hoist.py")
]


@in_each(MEETING)
def test_no_object_of_the_users_is_asked_of_which_class_it_is(path):
    calls = [node for node in nodes_of(path) if isinstance(node, ast.Call)]
    assert not [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id == "isinstance"]


def test_a_container_is_one_row():
    """All that capture knows of a class of containers is its row: no other file names the class."""
    named = {"OrderedDict": set(), "deque": set()}
    for path in (ROOT / "python/cinductor/capture").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in named:
                named[node.attr].add(path.name)
    assert named == {"OrderedDict": {"container_rows.py"}, "deque": {"container_rows.py", "made_lists.py"}}


def test_rows_cast_by_one_function():
    """`surface.cast` implements NumPy's casting rules; the tracer's own cast does not. Functions written for capture
    cast by calling NumPy's functions.
    """
    for path in sorted((ROOT / "python" / "cinductor" / "numpy").glob("*.py")):
        allowed = 1 if path.name == "surface.py" else 0
        assert text_of(path).count("t.cast(") == allowed, path.name
        assert path.name != "written.py" or ".astype(" not in text_of(path)


def test_a_function_has_one_row():
    """The order in which rows are entered must not matter."""
    for f in (len, math.log, np.sum):
        with pytest.raises(AssertionError, match="two rows"):
            understands(f)(print)


def test_every_guard_has_words():
    """Each row of guards.def: a source, a check of a value, and a relation both where it holds and where it fails."""
    rows = re.findall(r'(?m)^(SOURCE|GUARD|RELATION)\((\w+), (?:"(\w+)")?', text_of(ROOT / "pyext/replay/guards.def"))
    kinds = {table: [word or kind for row, kind, word in rows if row == table] for table, *_ in rows}
    assert set(guard_texts.WANTED) == {*kinds["GUARD"], *kinds["RELATION"]}
    assert {*guard_texts.BROKEN, "names"} == {*kinds["RELATION"]}
    assert set(guard_texts.FOUND) <= {*kinds["GUARD"]}
    for word in kinds["SOURCE"]:
        assert guard_texts.Guards(("x",), "", [("arg", 0, None, None), (word, 0, len, "k")], [], [], []).source(1)


# Everyday words that were names of things which have a word of the field; see docs/glossary.md.
REFUSED = """adopt adopted draft gap gathers growth hold home kept mend mixed rescue rescued settle settled
shallow stretch stretches tire tired told unread unsure wish demand demanded""".split()
# Words that must not occur in names of the core. It may use the others: a pass works on "demand", and time has gaps.
REFUSED_IN_CORE = "draft drafts hold home homes kept settle settled stretch stretches wish wishes".split()


def words_of(name):
    return re.findall(r"[a-z0-9]+", re.sub(r"([A-Z])", r"_\1", name).lower())


def names_of(kind):
    """Classes or functions of the package, with their files."""
    for path in PYTHON_FILES:
        for node in nodes_of(path):
            if isinstance(node, kind):
                yield node.name, name_of(path)


def test_no_two_classes_share_a_name():
    owners = {}
    for name, path in names_of(ast.ClassDef):
        owners.setdefault(name, []).append(path)
    assert not {name: paths for name, paths in owners.items() if len(paths) > 1}


def names_in_c(path):
    """Functions and types that a file of C defines."""
    text = code_of(path)
    functions = re.findall(r"^(\w+)\([^;{]*\)\s*\{", text, re.M)
    return functions + re.findall(r"^(?:typedef )?(?:struct|enum|union) (\w+)", text, re.M)


def test_no_refused_word_names_anything():
    """Neither classes, methods and functions, nor types, nor files."""
    names = [*names_of(ast.ClassDef), *names_of(ast.FunctionDef)]
    names += [(name, name_of(path)) for path in PYEXT_FILES for name in names_in_c(path)]
    names += [(path.stem, name_of(path)) for path in PYTHON_FILES + PYEXT_FILES]
    found = {(name, path) for name, path in names if set(words_of(name)) & set(REFUSED)}
    core = [(name, name_of(path)) for path in C_FILES for name in (path.stem, *names_in_c(path))]
    found |= {(name, path) for name, path in core if set(words_of(name)) & set(REFUSED_IN_CORE)}
    assert not found


def test_the_glossary_has_each_word_once():
    """At most sixty words, each with the file that defines it."""
    rows = re.findall(r"^\| ([^|*]+) \| [^|]+ \| `([^`]+)` \|$", (ROOT / "docs/glossary.md").read_text(), re.M)
    words = [word for row, _ in rows for word in row.split(", ")]
    assert len(words) == len(set(words)) <= 60
    assert not set(words) & set(REFUSED)
    folders = ["", "python/cinductor/capture"]
    assert not [file for _, file in rows if not any((ROOT / f / file).is_file() for f in folders)]
