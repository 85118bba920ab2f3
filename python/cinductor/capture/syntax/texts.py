"""f-strings among the arguments of print, which may be formatted later (`capture/records.py`)."""

from __future__ import annotations

import ast


def parts_of(call: ast.Call, node: ast.expr) -> tuple[tuple[object, ...], list[ast.expr]] | None:
    """The texts and formats of an f-string, and its values; None for other nodes, and if a format is no constant."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "print" and isinstance(node, ast.JoinedStr)):
        return None
    form: list[object] = []
    values: list[ast.expr] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            form.append(part.value)
        elif isinstance(part, ast.FormattedValue):
            spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
            if not all(isinstance(p, ast.Constant) for p in spec):
                return None
            form.append((part.conversion, "".join(p.value for p in spec)))  # type: ignore[attr-defined]
            values.append(part.value)
    return tuple(form), values
