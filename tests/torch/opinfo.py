"""Runs torch's own op database through the emitter: each op's samples, compiled and compared with eager.

As a program: opinfo.py [--dtypes float32,int64] [--ops REGEX] [--samples N] [--seed N] [--strided] [--shard K/N] [--backward] [--tagged]
[--record FILE].
It prints the number of pairs of an op and a dtype for each result, and the share of those compiled that are wholly in the core. With a record,
a run that has ended early goes on where it stopped.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import random
import re
import sys
import traceback
import warnings
from typing import Any

import torch
from functorch.compile import aot_function, nop
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import noncontiguous_like

from cinductor.base.deferred_warnings import CinductorWarning
from cinductor.torch import entry

DTYPES = {name: getattr(torch, name) for name in ("float32", "bfloat16", "int64", "bool", "complex64", "float16", "float64", "int8", "int32", "uint8")}


UNTRACED = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
OPEN = r"empty|jiterator"  # ops whose values torch leaves open, and those that only a CUDA device has


def compiled(function: Any) -> tuple[Any, list[Any]]:
    """The function through AOTAutograd, and the list that its artifacts are added to."""
    made, more = [], entry.compilers({"numerics": "close"}, False)
    for kind in ("fw_compiler", "bw_compiler", "inference_compiler"):
        more[kind] = functools.partial(keep, made, more[kind])
    return aot_function(function, **more), made


def keep(made: list[Any], compiler: Any, gm: Any, inputs: Any) -> Any:
    made.append(compiler(gm, inputs))
    return made[-1]


def split(sample: Any) -> tuple[list[torch.Tensor], Any]:
    """The tensors of a sample's arguments, and how the arguments are made of them."""
    leaves, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]

    def arguments(values: Any) -> Any:
        left = iter(values)
        made = [next(left) if isinstance(x, torch.Tensor) else x for x in leaves]
        return torch.utils._pytree.tree_unflatten(made, spec)

    return tensors, arguments


def called(function: Any, tensors: list[torch.Tensor], backward: bool) -> list[Any]:
    """The results with fresh copies of the tensors; with backward the gradients that eager has, too."""
    torch.manual_seed(1)
    copies = [copy_of(t).requires_grad_(t.requires_grad and backward) for t in tensors]
    with torch.set_grad_enabled(backward):
        made = list(function(*copies))
    if backward:
        total = sum(m.abs().sum() for m in made if m.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
        made = [m.detach() for m in made] + [c.grad for c in copies]
    return made


def copy_of(t: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor. If the tensor has gaps between its elements, so has the copy."""
    values = t.detach()
    is_strided = t.layout == torch.strided and not t.is_nested and not t.is_conj() and not t.is_neg()
    return noncontiguous_like(values) if is_strided and values.numel() > 1 and has_gaps(values) else values.clone()


def has_gaps(t: torch.Tensor) -> bool:
    """True if memory between the first and the last element is none of the tensor's."""
    return sum((n - 1) * s for n, s in zip(t.size(), t.stride(), strict=True)) >= t.numel()


def check(op: Any, dtype: torch.dtype, most: int, backward: bool = False, seed: int | None = None, is_strided: bool = False) -> collections.Counter:
    """Counts of what became of an op's samples; raises AssertionError for a wrong result."""
    counts: collections.Counter = collections.Counter()
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=backward))
    chosen = spread(samples, most) if seed is None else random.Random(f"{seed} {op.formatted_name}").sample(samples, min(most, len(samples)))
    for sample in chosen:
        has_others = any(t.layout != torch.strided for t in split(sample)[0])
        tensors, arguments = split(sample.noncontiguous() if is_strided and not has_others else sample)
        if not tensors:
            continue

        def function(*values: torch.Tensor, arguments: Any = arguments, sample: Any = sample) -> Any:
            first, args, kwargs = arguments(values)
            made = op(first, *args, **kwargs)
            made = sample.output_process_fn_grad(made)
            return [x for x in torch.utils._pytree.tree_leaves(made) if isinstance(x, torch.Tensor)]

        counts[outcome(function, tensors, backward, dtype)] += 1
    return counts


def spread(samples: list[Any], most: int) -> list[Any]:
    """At most so many of the samples: the first, the last, and others at equal distances."""
    last = len(samples) - 1
    return samples if last < most else [samples[k * last // (most - 1)] for k in range(most)] if most > 1 else samples[:1]


def outcome(function: Any, tensors: list[torch.Tensor], backward: bool, dtype: torch.dtype) -> str:
    """The result for one sample: "core", "library", or why it was not compiled."""
    try:
        wanted = called(function, tensors, backward)
    except Exception:
        return "eager raises"
    fast, artifacts = compiled(function)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", CinductorWarning)
            made = called(fast, tensors, backward)
    except Exception as error:
        if type(error).__name__ in UNTRACED or "FakeTensor" in str(error) or "not allocated yet" in str(error):
            return "not traced"  # Dynamo breaks the graph there
        raise
    try:
        same(made, wanted, dtype)
    except AssertionError:
        if differs_uncompiled(function, tensors, backward, dtype, wanted):
            return "the graph differs"  # run by eager, node for node
        raise
    why = {a.why for a in artifacts if a.why}
    if why:
        return f"refused: {' '.join(why)}"
    calls = sorted({f"{target} ({why})" for a in artifacts for target, where, why, _ in a.nodes if where != "core"})
    return f"library: {', '.join(calls)}" if calls else "core"


def same(made: list[Any], wanted: list[Any], dtype: torch.dtype) -> None:
    assert len(made) == len(wanted)
    for a, b in zip(made, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, equal_nan=True, check_stride=False, **tolerance(dtype))


def differs_uncompiled(function: Any, tensors: Any, backward: bool, dtype: torch.dtype, wanted: list[Any]) -> bool:
    """True if AOTAutograd without any compiler is wrong, too."""
    try:
        same(called(aot_function(function, fw_compiler=nop, bw_compiler=nop), tensors, backward), wanted, dtype)
    except Exception:
        return True
    return False


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 2e-2, "atol": 2e-2} if dtype in (torch.bfloat16, torch.float16) else {}


def is_tagged(op: Any) -> bool:
    """True if ATen's op of an entry has an overload that torch tags core or pointwise."""
    packet = getattr(torch.ops.aten, op.aten_name or op.name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return False
    return any({torch.Tag.core, torch.Tag.pointwise} & set(getattr(packet, name).tags) for name in packet.overloads())


ORDER = ("failed", "refused", "library", "core", "not traced", "the graph differs", "eager raises")


def report(op: Any, name: str, options: Any) -> list[str]:
    """Checks one op in one dtype, prints what is not wholly in the core, and returns what became of its samples."""
    try:
        torch.manual_seed(0)
        counts = check(op, DTYPES[name], options.samples, options.backward, options.seed, options.strided)
    except Exception as error:
        print(f"FAILED {op.formatted_name} {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        if options.ops:
            traceback.print_exc()
        return [f"failed: {type(error).__name__}: {str(error)[:300]}"]
    if set(counts) != {"core"}:
        print(f"{op.formatted_name} {name}: {dict(counts)}", flush=True)
    return sorted(counts)


def result_of(outcomes: list[str]) -> str:
    """The outcome that counts for a pair of an op and a dtype."""
    kinds = {kind.partition(":")[0] for kind in outcomes}
    return next((kind for kind in ORDER if kind in kinds), "no samples")


def recorded(path: str) -> dict[str, Any]:
    """The outcomes in a record; a pair that was begun and not ended is one that ended the process."""
    found: dict[str, Any] = {}
    if path and os.path.exists(path):
        with open(path) as file:
            found = dict(json.loads(line) for line in file)
    return {key: ["failed: the process ended"] if value is None else value for key, value in found.items()}


def record(path: str, key: str, outcomes: list[str] | None) -> None:
    if path:
        with open(path, "a") as file:
            file.write(json.dumps([key, outcomes]) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--ops", default="")
    parser.add_argument("--tagged", action="store_true", help="only entries whose ATen op is tagged core or pointwise")
    parser.add_argument("--backward", action="store_true", help="gradients, too")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--seed", type=int, help="draw the samples, instead of taking them at equal distances")
    parser.add_argument("--strided", action="store_true", help="arguments with gaps in their memory")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--record", default="", metavar="FILE", help="write each pair's outcome there, and pass over those that it has")
    options = parser.parse_args()
    shard, shards = map(int, options.shard.split("/"))
    warnings.simplefilter("ignore")
    done, totals = recorded(options.record), collections.Counter()  # type: dict[str, Any], collections.Counter
    chosen = [op for op in op_db if re.search(options.ops, op.name) and not re.search(OPEN, op.name) and (not options.tagged or is_tagged(op))]
    for op in chosen[shard::shards]:
        for name in options.dtypes.split(","):
            if DTYPES[name] not in (op.backward_dtypes if options.backward else op.dtypes):
                continue
            key = f"{op.formatted_name} {name}{' backward' if options.backward else ''}"
            if key not in done:
                record(options.record, key, None)
                done[key] = report(op, name, options)
                record(options.record, key, done[key])
            totals[result_of(done[key])] += 1
    compiled = totals["core"] + totals["library"] + totals["refused"] + totals["failed"]
    print(dict(totals), f"wholly in the core: {totals['core']} of {compiled}, {100 * totals['core'] / max(compiled, 1):.1f} %")
    return int(totals["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
