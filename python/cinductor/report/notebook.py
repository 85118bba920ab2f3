"""Short displays in notebooks of a compiled function and of an array on a device."""

from __future__ import annotations

import os
from html import escape
from typing import Any

import numpy as np

from ..diagnosis.stats_types import row_of
from .explanation import place_of
from .page import size_text
from .reasons import reason_of
from .style import STYLE

MAX_COPIED = 1 << 24  # bytes of an array that are copied for display


def card(compiled: Any) -> str:
    """The display of a compiled function: its calls, specialisations, and calls that NumPy or Python runs."""
    job = compiled._cinductor_job
    place = place_of(job.fn)
    file, _, line = place.rpartition(":")
    facts = [
        (compiled.calls, "calls"),
        (len(compiled.specializations), "specialisations"),
    ]
    if job.plan is not None and job.plan.pieces:
        facts.append((len(job.plan.pieces), "pieces between breaks"))
    if in_numpy := row_of(compiled)["eager"]:
        facts.append((in_numpy, "calls run by NumPy"))
    notes = [f"specialisation {k}: {job.made.get(id(s), '')}" for k, s in enumerate(compiled.specializations, 1)]
    breaks = [] if job.last is None else [(b.line, b.reason) for b in job.last.breaks]
    notes += [f"line {number}: {reason}. {reason_of(reason).hint}" for number, reason in dict.fromkeys(breaks)]
    notes += [f"run by NumPy: {why}" for why in dict.fromkeys(job.reasons_for_numpy(compiled))]
    if not compiled.calls:
        notes.append("not called yet")
    rows = "".join(f"<li>{escape(note)}</li>" for note in notes)
    where = f'<span class="soft"><code>{escape(os.path.basename(file))}:{line}</code></span>' if file else ""
    return (
        f'<div class="cinductor"><style>{STYLE}</style><p><b>{escape(job.name)}</b>, compiled by cinductor {where}</p>'
        f'{list_of(facts)}<ul class="plain">{rows}</ul>'
        f'<p class="soft">cinductor.explain({escape(job.name)}, …) shows what it becomes</p></div>'
    )


def list_of(facts: list[tuple[Any, str]]) -> str:
    """Values, each above its label."""
    items = "".join(f"<li><b>{escape(str(value))}</b><span>{name}</span></li>" for value, name in facts)
    return f'<ul class="facts">{items}</ul>'


def card_of_array(array: Any) -> str:
    """The display of a device array: device, type, and values as NumPy prints them."""
    facts = [
        ("×".join(map(str, array.shape)) or "0-d", "shape"),
        (array.dtype, "dtype"),
        (array.device, "device"),
        (size_text(array.nbytes), "memory"),
    ]
    values = f'<p class="soft">more than {size_text(MAX_COPIED)}: its values are not copied to be shown</p>'
    if array.nbytes <= MAX_COPIED:
        values = f"<pre>{escape(np.array2string(array.numpy(), separator=', ', threshold=200))}</pre>"
    return f'<div class="cinductor"><style>{STYLE}</style><p><b>Array</b></p>{list_of(facts)}{values}</div>'
