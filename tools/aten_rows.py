"""Compares the rows of aten.rows with the installed torch (aten_rows.py --check), or adds missing rows (--extend).

The names and tags of ATen's ops come from native_functions.yaml, which torch installs with torchgen. A schema is
torch's own text of the op. For development only. The YAML file is read line by line, so PyYAML is not needed.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from pathlib import Path

import torch._inductor.inductor_prims  # noqa: F401  (adds the ops that Dynamo takes others apart into)

from cinductor.torch import rows


def native_functions() -> dict[str, set[str]]:
    """The tags of each op of native_functions.yaml, and of those that torchgen derives from it."""
    spec = importlib.util.find_spec("torchgen")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("torchgen is not installed")
    path = Path(spec.submodule_search_locations[0]) / "packaged/ATen/native/native_functions.yaml"
    tags: dict[str, set[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("- func: "):
            name = "aten::" + line[8:].partition("(")[0]
            tags[name] = set()
        elif line.startswith("  tags:"):
            tags[name] = set(re.findall(r"\w+", line[7:]))
        elif line.startswith("  autogen:"):  # variants that torchgen derives, such as resize of resize_
            tags.update(("aten::" + made.strip(), set()) for made in line[10:].split(","))
    return tags


def faults(known: dict[str, set[str]]) -> list[str]:
    """Faults of rows, one line each."""
    found = []
    for schema, _, _ in rows.read(rows.text()):
        name = schema.partition("(")[0]
        op = rows.overload(name)
        if name.startswith("aten::") and name not in known:
            found.append(f"{name}: native_functions.yaml has no such op")
        elif op is None:
            found.append(f"{name}: torch has no such op")
        elif str(op._schema) != schema:
            found.append(f"{name}: the schema is {op._schema}")
    return found


def missing(known: dict[str, set[str]]) -> list[str]:
    """Schemas of ops tagged core that have neither a row nor a decomposition."""
    named = {schema.partition("(")[0] for schema, _, _ in rows.read(rows.text())}
    return [
        str(rows.overload(name)._schema)
        for name, status, _ in rows.statuses()
        if status == "library" and name not in named and "core" in known.get(name, ())
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a row is wrong, or an op tagged core has none")
    parser.add_argument("--extend", action="store_true", help="add a library row for each op tagged core that has none")
    given = parser.parse_args()
    known = native_functions()
    wrong, without = faults(known), missing(known)
    for line in [*wrong, *(f"{schema.partition('(')[0]}: no row" for schema in without)]:
        print(line)
    if given.extend and without:
        with rows.PATH.open("a", encoding="utf-8") as file:
            file.writelines(f"{schema} | - | library no lowering yet\n" for schema in without)
    return int(given.check and bool(wrong or without))


if __name__ == "__main__":
    sys.exit(main())
