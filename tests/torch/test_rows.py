"""Compares the rows of aten.rows with the installed torch: schemas, lowerings, and a status for each core or
pointwise op.
"""

import importlib

import pytest
from agreement import same_values  # noqa: F401  (skips without torch)

# isort: split
import torch
import torch._inductor.inductor_prims  # adds the ops that Dynamo takes others apart into

from cinductor.torch import foreach, promote, rows, writer

TEXT = rows.read(rows.PATH.read_text(encoding="utf-8"))


def test_each_row_is_of_one_op():
    names = [schema.partition("(")[0] for schema, _, _ in TEXT]
    assert sorted(names) == sorted(set(names))


def test_schemas_are_the_installed_torch_s():
    """The rows are written for one version; in another one, a row with a different schema is disabled."""
    if not torch.__version__.startswith("2.13."):
        pytest.skip("rows are written for torch 2.13")
    assert [row.name for row in rows.table().values() if row.status == "off"] == []
    assert [schema for schema, _, _ in TEXT if rows.overload(schema.partition("(")[0]) is None] == []


def test_a_row_with_another_schema_is_off(monkeypatch):
    row = rows.table()[torch.ops.aten.exp.default]
    other = row.schema.replace("Tensor self", "Tensor self, bool fast")
    monkeypatch.setattr(rows, "text", lambda: f"{other} | float | exp(self)\n")
    rows.known.cache_clear()
    try:
        assert rows.find(torch.ops.aten.exp.default).status == "off"
    finally:
        monkeypatch.undo()
        rows.known.cache_clear()


def test_lowerings_exist():
    for schema, promotion, meaning in TEXT:
        word, _, rest = meaning.partition(" ")
        if word in ("code", "drawn"):
            module, _, function = rest.partition(".")
            assert callable(getattr(importlib.import_module(f"cinductor.torch.lowered.{module}"), function)), schema
        elif word not in ("library", "decompose", "refuse"):
            assert promotion in promote.PROMOTIONS, schema
            assert all(name in writer.DTYPES_OF or rows.formula(name) for name in rows.called(meaning)), schema


def test_core_and_pointwise_ops_have_a_status():
    """Each op tagged core or pointwise has a row, a decomposition, or a row that says why it is a library call."""
    statuses = {name: status for name, status, tags in rows.statuses()}
    named = {schema.partition("(")[0] for schema, _, _ in TEXT}
    silent = [name for name, status, tags in rows.statuses() if tags and status == "library" and name not in named]
    assert silent == []
    meant = [schema.partition("(")[0] for schema, _, meaning in TEXT if meaning.split()[0] not in ("library", "drawn", "decompose", "refuse")]
    assert rows.counts(rows.statuses())["row"] == len(meant) == sum(statuses[name] == "row" for name in meant)
    assert set(statuses.values()) <= {"row", "library", "decompose", "refuse"}


def test_ops_on_lists_are_the_op_of_each_element():
    """torch's own kernels give the same, for each op on lists that is decomposed."""
    torch.manual_seed(0)
    kinds = {"List[Tensor]": lambda: [torch.rand(3, 3) + 1.5 for _ in range(2)], "Tensor": lambda: torch.tensor(1.5), "number": lambda: 2.0}
    for op, decomposition in foreach.decompositions().items():
        args, more = [], {}
        for a in op._schema.arguments:
            kind = str(a.type)
            if a.name == "scalars":
                value = torch.tensor([1.5, 2.5]) if kind == "Tensor" else [2.0, 3.0]
            elif kind == "List[number]":
                value = [2.0, 3.0]
            elif kind in kinds:
                value = kinds[kind]()
            else:
                continue
            if a.kwarg_only:
                more[a.name] = value
            else:
                args.append(value)
        wanted, got = op(*args, **more), decomposition(*args, **more)
        torch.testing.assert_close(got, wanted, equal_nan=True, msg=lambda text, op=op: f"{op}: {text}")
