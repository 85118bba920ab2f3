"""Rows of aten.rows against the installed torch: schemas, lowerings, and a status for each op tagged core or pointwise."""

import importlib

import pytest
from agreement import same_values  # noqa: F401  (skips without torch)

# isort: split
import torch

from cinductor.torch import emit, promote, rows

TEXT = rows.read(rows.PATH.read_text(encoding="utf-8"))


def test_each_row_is_of_one_op():
    names = [schema.partition("(")[0] for schema, _, _ in TEXT]
    assert sorted(names) == sorted(set(names))


def test_schemas_are_the_installed_torch_s():
    """The version that the rows are written for; in another one a row with another schema is off."""
    if not torch.__version__.startswith("2.13."):
        pytest.skip("rows are written for torch 2.13")
    assert [row.name for row in rows.table().values() if row.status == "off"] == []
    assert [schema for schema, _, _ in TEXT if rows.overload(schema.partition("(")[0]) is None] == []


def test_a_row_with_another_schema_is_off(monkeypatch):
    row = rows.table()[torch.ops.aten.exp.default]
    other = row.schema.replace("Tensor self", "Tensor self, bool fast")
    monkeypatch.setattr(rows, "text", lambda: f"{other} | float | exp(self)\n")
    rows.table.cache_clear()
    try:
        assert rows.table()[torch.ops.aten.exp.default].status == "off"
    finally:
        monkeypatch.undo()
        rows.table.cache_clear()


def test_lowerings_exist():
    for schema, promotion, meaning in TEXT:
        word, _, rest = meaning.partition(" ")
        if word == "code":
            module, _, function = rest.partition(".")
            assert callable(getattr(importlib.import_module(f"cinductor.torch.lowered.{module}"), function)), schema
        elif word not in ("library", "decompose", "refuse"):
            assert promotion in promote.PROMOTIONS, schema
            assert set(rows.core_ops(meaning)) <= set(emit.DTYPES_OF), schema


def test_core_and_pointwise_ops_have_a_status():
    """Those tagged core: a row or a decomposition, or a row that says why it is a library call."""
    statuses = {name: status for name, status, tags in rows.statuses()}
    named = {schema.partition("(")[0] for schema, _, _ in TEXT}
    silent = [name for name, status, tags in rows.statuses() if "core" in tags and status == "library" and name not in named]
    assert silent == []
    assert rows.counts(rows.statuses())["row"] >= 290
    assert set(statuses.values()) <= {"row", "library", "decompose", "refuse"}
