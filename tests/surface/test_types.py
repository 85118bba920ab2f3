"""Checks the package with a type checker: every public name is typed, and no other name is public."""

import ast
import importlib.util
import inspect
import re
import sys
import textwrap
import typing
from pathlib import Path

import numpy as np
import pytest

import cinductor
from cinductor import _core
from cinductor import compile as compiling


def module_of(name):
    return sys.modules[f"cinductor.{name}"]


def test_literals_are_their_tables():
    module, config = module_of("calls.stance"), module_of("config")
    assert typing.get_args(config.Mode) == tuple(config.MODES)
    assert typing.get_args(module.Stance) == tuple(module.STANCES)


@pytest.mark.skipif(not hasattr(typing, "get_overloads"), reason="overloads are kept since 3.11")
def test_a_misspelt_keyword_is_seen_by_a_checker_and_refused_with_a_hint():
    module = module_of("compile")
    made = typing.get_overloads(compiling)
    assert len(made) == 2
    for one, first in zip(made, (("fn",), ())):  # of a function, and for a decorator
        parameters = inspect.signature(one).parameters
        assert tuple(parameters) == (*first, *module.SETTINGS)
        assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    with pytest.raises(TypeError, match="did you mean 'fullgraph'"):
        compiling(fullgrph=True)


def test_stats_and_info_have_the_keys_of_their_types():
    from cinductor.diagnosis import stats_types

    f = cinductor.compile(lambda x: x + 1, backend="interp")
    f(np.ones(3))
    found = cinductor.stats()
    assert set(found) == set(typing.get_type_hints(stats_types.Stats))
    for row in found["functions"].values():
        assert set(row) == set(typing.get_type_hints(stats_types.FunctionStats))
    assert set(cinductor.cache.info()) == set(typing.get_type_hints(stats_types.CacheInfo))
    assert stats_types.COUNTERS == tuple(typing.get_type_hints(stats_types.Counters))


# --- Docstrings: of the C module, which come from its stub, and of the public names --------------------------------

ROOT = Path(__file__).resolve().parents[2]
# Attributes of the C types that Python makes, or that their slots make.
MADE = {"__doc__", "__module__", "__new__", "__weakref__", "__dict__", "__class__", "__hash__"}


def core_docs():
    """The tool that makes the docstrings of the C module from the stub."""
    spec = importlib.util.spec_from_file_location("core_docs", ROOT / "tools" / "core_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_of_core():
    """(name in the header, object) of everything that the C module makes, with the names that begin with __ last."""
    for name, value in vars(_core).items():
        if name.startswith("__"):
            continue
        yield name, value
        if isinstance(value, type) and not issubclass(value, BaseException):
            for inner, member in vars(value).items():
                is_slot = isinstance(member, type(object.__str__)) or isinstance(member, staticmethod)
                if inner not in MADE and not is_slot and not inner.endswith("offset__"):
                    yield f"{name}_{inner}", member


def test_the_c_module_has_the_names_and_docstrings_of_its_stub():
    tool, stub = core_docs(), ROOT / "python/cinductor/_core.pyi"
    wanted = dict(tool.texts_of(ast.parse(stub.read_text())))
    found = dict(names_of_core())
    assert inspect.getdoc(_core) == wanted.pop("module")
    slots = {name for name in wanted if name.endswith("__")} - set(found)  # a slot has Python's docstring
    values = {"VERSION", "MISSING", "PADDING_AXIS", "INSTRUCTION_CLASSES", "stream_in_force"}
    values |= {name for name in wanted if name.startswith("CompileError_")}  # set on its instances
    assert set(found) == set(wanted) - slots - (values - set(found))
    for name in set(found) - values:
        signature, _, text = wanted[name].rpartition("\n--\n\n")
        assert inspect.getdoc(found[name]) == text, name
        if signature:
            assert found[name].__text_signature__ == signature[signature.index("(") :], name
            assert inspect.signature(found[name]), name


def test_the_installed_stub_has_the_same_types_and_no_docstrings():
    source = (ROOT / "python/cinductor/_core.pyi").read_text()
    before, after = (list(ast.walk(ast.parse(text))) for text in (source, core_docs().types_of(source)))
    for kind in (ast.arguments, ast.AnnAssign, ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom):
        had, has = ([node for node in nodes if isinstance(node, kind)] for nodes in (before, after))
        names = [[getattr(node, "name", "") or ast.unparse(node) for node in nodes] for nodes in (had, has)]
        assert names[0] == names[1] and names[0]
    texts = [node for node in after if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)]
    assert not texts


@pytest.fixture(scope="module")
def methods_of_core():
    """Functions of the C module, and methods bound to an object of their class."""
    f = cinductor.compile(lambda x: x + 1, backend="interp")
    f(np.ones(3))
    tracer, builder = _core.Tracer("f", backend="interp"), _core.Builder("f")
    x = tracer.array(np.ones(3), 0)
    spec = f.specializations[0]
    objects = [tracer, builder, x, tracer.mark(), f, spec, spec.program, tracer.block()]
    named = [(name, value) for name, value in vars(_core).items() if inspect.isbuiltin(value)]
    for one in objects:
        own = vars(type(one)).items()
        named += [(name, getattr(one, name)) for name, method in own if isinstance(method, type(str.join)) and name[0] != "_"]
    yield named
    tracer.close()


def test_signatures_of_the_c_module_are_true(methods_of_core):
    """A call with too few or too many arguments is a TypeError, and keywords are taken where the signature has some."""
    assert len(methods_of_core) >= 200
    for name, call in methods_of_core:
        parameters = list(inspect.signature(call).parameters.values())
        takes_keywords = any(p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        if any(p.kind is p.VAR_KEYWORD for p in parameters):  # they are the compiled function's
            continue
        with pytest.raises(TypeError) as error:
            call(no_such_keyword=1)
        assert ("takes no keyword arguments" in str(error.value)) is not takes_keywords, name
        placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        needed = [p for p in placed if p.default is p.empty]
        if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            with pytest.raises(TypeError, match="argument"):
                call(*[object()] * (len(placed) + 1))
        if needed:
            with pytest.raises(TypeError):
                call(*[object()] * (len(needed) - 1))
        if needed and needed != placed:  # the others may be omitted: there is another error, about an object
            try:
                call(*[object()] * len(needed))
            except Exception as error:
                assert not re.search(r"takes|missing|required", str(error)), name


def test_keywords_of_the_c_module_are_those_of_its_stub():
    texts = dict(core_docs().texts_of(ast.parse((ROOT / "python/cinductor/_core.pyi").read_text())))
    known = {}
    for name, value in names_of_core():
        text = texts.get(name, "").partition("\n--\n\n")
        if text[1]:
            known.setdefault(text[0].partition("(")[0], []).append(list(inspect.signature(value).parameters))
    read = 0
    for path in (ROOT / "pyext").glob("*/*.c"):
        lists = {}
        for match in re.finditer(r'\*(\w+)\[\] =\s*\{([^}]*),\s*NULL\}|:(\w+)",\s*(\w+names|names)\b', path.read_text()):
            if match[1]:
                lists[match[1]] = re.findall(r'"(\w+)"', match[2])
                continue
            wanted = lists[match[4]]
            read += 1
            assert any([p for p in one if p != "self"] == wanted for one in known[match[3]]), match[3]
    assert read > 15


def headings_of(text):
    """The names in each section of a docstring in NumPy's style: {"Parameters": {"fn", "args"}}."""
    lines, sections = text.splitlines(), {}
    for head, line in zip(lines, [*lines[1:], ""]):
        if line and set(line) == {"-"} and len(line) == len(head):
            current = sections.setdefault(head, set())
        elif sections and head and head[0] != " " and set(head) != {"-"}:
            current.update(re.findall(r"[*\\]*([\w.]+)", head.partition(" : ")[0]))
    return sections


def lacks_of(name, value, text):
    """List the parameters and sections that the docstring of a public callable lacks."""
    sections = headings_of(text)
    signature = inspect.signature(value)
    described = sections.get("Parameters", set()) | sections.get("Attributes", set())
    names = signature.parameters.keys() - {"self", "unknown"}  # unknown takes misspelt keywords, for a message
    lacks = [f"parameter {p}" for p in names if p not in described]
    returns = getattr(value, "__annotations__", {}).get("return", "None") if not isinstance(value, type) else "None"
    if returns not in ("None", None) and not sections.keys() & {"Returns", "Yields"}:
        lacks.append("Returns")
    if "Raises" not in sections and raises(value):
        lacks.append("Raises")
    return lacks


def raises(function):
    """True for a function of the package with a `raise` statement in its own body."""
    if not inspect.isfunction(function) or not function.__module__.startswith("cinductor"):
        return False
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    return any(isinstance(part, ast.Raise) for part in ast.walk(node))


def is_numpys(name, cls):
    """True for a method that forwards to NumPy's of the same name, and has its docstring."""
    return inspect.getdoc(getattr(np.ndarray, name, None)) == inspect.getdoc(getattr(cls, name))


@pytest.mark.parametrize("name", cinductor.__all__)
def test_public_names_are_described_completely(name):
    value = getattr(cinductor, name)
    text = inspect.getdoc(value) or ""
    assert text and text[0].isupper() and text.partition("\n\n")[0].endswith("."), text
    if isinstance(value, type) and issubclass(value, Warning):
        assert text.startswith(("Given", "The base")), text
    elif isinstance(value, type) and issubclass(value, BaseException):
        assert text.startswith(("Raised", "The base")), text
    elif callable(value) and value is not cinductor.Options and value is not cinductor.config:
        assert not lacks_of(name, value, text)
    if isinstance(value, type):
        own = {n: v for n, v in vars(value).items() if n[0] != "_" and (inspect.isroutine(v) or isinstance(v, property))}
        assert not [n for n in own if not inspect.getdoc(getattr(value, n))]
        shown = dir(compiling(abs)) if value is cinductor.CompiledFunction else own
        methods = [n for n in own if n in shown and inspect.isroutine(own[n]) and not is_numpys(n, value)]
        lacks = {n: lacks_of(n, getattr(value, n), inspect.getdoc(getattr(value, n))) for n in methods}
        assert not {n: those for n, those in lacks.items() if those}
