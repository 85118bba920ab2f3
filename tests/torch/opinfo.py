"""Runs torch's own op database through the emitter: each op's samples, compiled and compared with eager.

As a program: opinfo.py [--dtypes float32,int64] [--ops REGEX] [--samples N] [--shard K/N]
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import traceback
import warnings
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

from cinductor.torch import rows
from cinductor.torch.emit import Emitter
from cinductor.torch.entry import compile_fx
from cinductor.torch.values import Refused

DTYPES = {name: getattr(torch, name) for name in ("float32", "bfloat16", "int64", "bool", "complex64", "float16", "float64", "int8", "int32", "uint8")}


UNTRACED = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
# Ops whose values torch leaves open, or draws: two runs of eager differ, too.
OPEN = r"empty|rand|dropout|bernoulli|multinomial|normal|cauchy|exponential|geometric|uniform|fractional|rrelu|jiterator|multi_head_attention"


def graph_of(function: Any, tensors: list[torch.Tensor]) -> torch.fx.GraphModule:
    """The functional ATen graph of a function of tensors."""
    functional = torch.func.functionalize(function, remove="mutations_and_views")
    with FakeTensorMode(allow_non_fake_inputs=True):
        return make_fx(functional, decomposition_table=rows.decompositions(), tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors)


def run(function: Any, tensors: list[torch.Tensor]) -> tuple[list[Any], list[tuple[str, str, str]]]:
    """The function's results by cinductor, and what became of each node. Raises Refused."""
    gm = graph_of(function, tensors)
    Emitter(gm, "probe", rows.row_of).run()
    artifact = compile_fx(gm, tensors, name="opinfo", options={"numerics": "close"}, is_strict=True)
    return artifact([t.clone() for t in tensors]), artifact.nodes


def split(sample: Any) -> tuple[list[torch.Tensor], Any]:
    """The tensors of a sample's arguments, and how the arguments are made of them."""
    leaves, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]

    def arguments(values: Any) -> Any:
        left = iter(values)
        made = [next(left) if isinstance(x, torch.Tensor) else x for x in leaves]
        return torch.utils._pytree.tree_unflatten(made, spec)

    return tensors, arguments


def check(op: Any, dtype: torch.dtype, most: int) -> collections.Counter:
    """Counts of what became of an op's samples; raises AssertionError for a wrong result."""
    counts: collections.Counter = collections.Counter()
    for k, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        if k == most:
            break
        tensors, arguments = split(sample)
        if not tensors:
            continue

        def function(*values: torch.Tensor, arguments: Any = arguments, sample: Any = sample) -> Any:
            first, args, kwargs = arguments(values)
            made = op(first, *args, **kwargs)
            made = sample.output_process_fn_grad(made)
            return [x for x in torch.utils._pytree.tree_leaves(made) if isinstance(x, torch.Tensor)]

        try:
            wanted = function(*[t.clone() for t in tensors])
        except Exception:
            counts["eager raises"] += 1
            continue
        try:
            made, nodes = run(function, tensors)
        except Refused:
            counts["refused"] += 1
            continue
        except Exception as error:
            if type(error).__name__ in UNTRACED or "FakeTensor" in str(error) or "not allocated yet" in str(error):
                counts["not traced"] += 1  # Dynamo breaks the graph there
                continue
            raise
        for a, b in zip(made, wanted, strict=True):
            torch.testing.assert_close(a, b, equal_nan=True, check_stride=False, **tolerance(dtype))
        counts["core" if all(n[1] == "core" for n in nodes) else "library"] += 1
    return counts


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 2e-2, "atol": 2e-2} if dtype in (torch.bfloat16, torch.float16) else {}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--ops", default="")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--shard", default="0/1")
    options = parser.parse_args()
    shard, shards = map(int, options.shard.split("/"))
    warnings.simplefilter("ignore")
    totals: collections.Counter = collections.Counter()
    for k, op in enumerate(op_db):
        if k % shards != shard or not re.search(options.ops, op.name):
            continue
        for name in options.dtypes.split(","):
            if DTYPES[name] not in op.dtypes:
                continue
            if re.search(OPEN, op.name):
                continue
            try:
                torch.manual_seed(0)
                counts = check(op, DTYPES[name], options.samples)
                kind = max(("refused", "library", "core", "not traced"), key=lambda w: (counts[w] > 0, w == "refused", w == "library"))
                totals[kind if sum(counts.values()) else "no samples"] += 1
                if kind != "core":
                    print(f"{op.formatted_name} {name}: {dict(counts)}", flush=True)
            except Exception as error:
                totals["failed"] += 1
                print(f"FAILED {op.formatted_name} {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                if options.ops:
                    traceback.print_exc()
    print(dict(totals))
    return int(totals["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
