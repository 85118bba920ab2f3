"""Prints a C header with the docstrings of `cinductor._core` from its stub file: core_docs.py STUB HEADER; and the stub
without docstrings, as wheels have it: core_docs.py --types STUB TO.

The stub `_core.pyi` has the signature and the docstring of every name of the module. The header has a macro for each,
`CX_DOC_<function>`, `CX_DOC_<Class>` or `CX_DOC_<Class>_<attribute>`, which the tables of pyext use. A name that the
stub lacks is an error of the C compiler. A callable's text begins with its signature, as `inspect.signature` reads it
from functions in C: `name($self, x, /)`, a line `--`, an empty line, the docstring.
"""

import ast
import inspect
import sys
from pathlib import Path

SELF = {"function": "$module", "method": "$self", "class": ""}


class StubError(SystemExit):
    """Raised for a stub that lacks a docstring or has a default that is not a literal; it ends the build."""


def default_of(node, name):
    """The text of a default. It must be a literal, because `inspect` evaluates it; `...` has no other value."""
    try:
        ast.literal_eval(node)
    except ValueError:
        raise StubError(f"_core.pyi: {name} has a default that is not a literal") from None
    return ast.unparse(node)


def signature_of(function, kind):
    """The text signature of a function of the stub."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults
    pairs = list(zip(positional, defaults))
    nonly = len(given.posonlyargs)
    if kind != "function":  # self, or cls
        pairs, nonly = pairs[1:], max(nonly - 1, 0)
    first = SELF[kind]
    parts = [first] if first else []
    parts += [] if nonly or not first else ["/"]
    for k, (one, default) in enumerate(pairs):
        parts.append(one.arg if default is None else f"{one.arg}={default_of(default, function.name)}")
        parts += ["/"] if k + 1 == nonly else []
    if given.vararg or given.kwonlyargs:
        parts.append(f"*{given.vararg.arg}" if given.vararg else "*")
    for one, default in zip(given.kwonlyargs, given.kw_defaults):
        parts.append(one.arg if default is None else f"{one.arg}={default_of(default, function.name)}")
    parts += [f"**{given.kwarg.arg}"] if given.kwarg else []
    return f"({', '.join(parts)})"


def text_of(node, name):
    """The docstring of a definition, without its indentation."""
    text = ast.get_docstring(node)
    if not text:
        raise StubError(f"_core.pyi: {name} has no docstring")
    return text


def has_only_types(node):
    """True for an operator that is as in Python, and for an overload but the last."""
    return ast.unparse(node.body[0]) == "..."


def texts_of_attributes(body, prefix):
    """Name and text of annotated names: the string after each is its docstring."""
    for node, after in zip(body, [*body[1:], None]):
        if isinstance(node, ast.AnnAssign):
            name = prefix + node.target.id
            value = after.value if isinstance(after, ast.Expr) else None
            if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
                raise StubError(f"_core.pyi: {name} has no docstring")
            yield name, inspect.cleandoc(value.value)


def texts_of_class(node):
    """Name and text of a class and its attributes."""
    signature = ""
    for one in node.body:
        if not isinstance(one, ast.FunctionDef):
            continue
        if one.name == "__new__":
            signature = f"{node.name}{signature_of(one, 'class')}\n--\n\n"
        if has_only_types(one) or one.name == "__new__":
            continue
        head = "" if one.decorator_list else f"{one.name}{signature_of(one, 'method')}\n--\n\n"  # a property has none
        yield f"{node.name}_{one.name}", head + text_of(one, f"{node.name}.{one.name}")
    yield from texts_of_attributes(node.body, f"{node.name}_")
    yield node.name, signature + text_of(node, node.name)


def texts_of(tree):
    """Name and text of everything in the stub; "module" is the module's own docstring."""
    yield "module", text_of(tree, "the module")
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from texts_of_class(node)
        elif isinstance(node, ast.FunctionDef) and not has_only_types(node):
            yield node.name, f"{node.name}{signature_of(node, 'function')}\n--\n\n{text_of(node, node.name)}"
    yield from texts_of_attributes(tree.body, "")


def exceptions_in(tree):
    """Names of the exceptions: classes whose first base is an exception of Python or of the module."""
    found = {"Exception", "BaseException"}
    names = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.bases and getattr(node.bases[0], "id", "") in found:
            found.add(node.name)
            names.append(node.name)
    return names


def literal(text):
    """The text as a literal of C."""
    if not text.isascii():
        raise StubError(f"_core.pyi: not ASCII: {text!r}")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def header_of(source):
    """The header for the source of a stub."""
    tree = ast.parse(source)
    lines = ["/* Made by tools/core_docs.py from python/cinductor/_core.pyi. */"]
    lines += [f"#define CX_DOC_{name} {literal(text)}" for name, text in texts_of(tree)]
    lines.append(f"#define CX_EXCEPTIONS(ROW) {' '.join(f'ROW({name})' for name in exceptions_in(tree))}")
    return "\n".join(lines) + "\n"


def types_of(source):
    """The source of a stub without its docstrings, which the compiled module has."""
    lines = source.splitlines(keepends=True)
    bodies = [node.body for node in ast.walk(ast.parse(source)) if isinstance(getattr(node, "body", None), list)]
    for body in bodies:
        texts = [node for node in body if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)]
        for node in texts:
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
        if texts and len(texts) == len(body):
            lines[texts[0].lineno - 1] = " " * texts[0].col_offset + "...\n"
    return "".join(lines)


def write_header(stub, header):
    """Write the header unless it is up to date, so that a build compiles nothing again."""
    text, path = header_of(Path(stub).read_text(encoding="utf-8")), Path(header)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_types(stub, to):
    """Write the stub that is installed."""
    Path(to).write_text(types_of(Path(stub).read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--types":
        write_types(*sys.argv[2:])
    else:
        write_header(*sys.argv[1:])
