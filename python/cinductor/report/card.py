"""What a notebook shows of a compiled function: a short card."""

from __future__ import annotations

import os
from html import escape
from typing import Any

from .explanation import place_of
from .reasons import reason_of
from .style import STYLE


def card(compiled: Any) -> str:
    """Its calls, specialisations, and what NumPy or Python does of it."""
    job = compiled._cinductor_job
    place = place_of(job.fn)
    file, _, line = place.rpartition(":")
    facts = [
        (compiled.calls, "calls"),
        (len(compiled.specializations), "specialisations"),
        (0 if job.plan is None else len(job.plan.pieces), "pieces between breaks"),
        (job.eager + compiled.failed_checks + compiled.plain_calls, "answered by NumPy"),
    ]
    items = "".join(f"<li><b>{count}</b><span>{name}</span></li>" for count, name in facts)
    notes = [f"specialisation {k}: {job.made.get(id(s), '')}" for k, s in enumerate(compiled.specializations, 1)]
    breaks = [] if job.last is None else [(b.line, b.reason) for b in job.last.breaks]
    notes += [f"line {number}: {reason}. {reason_of(reason).hint}" for number, reason in dict.fromkeys(breaks)]
    notes += [f"NumPy answers: {why}" for why in dict.fromkeys(job.budget.reasons(compiled.specializations))]
    if not compiled.calls:
        notes.append("not called yet: it is compiled in its first call")
    rows = "".join(f"<li>{escape(note)}</li>" for note in notes)
    where = f'<span class="soft"><code>{escape(os.path.basename(file))}:{line}</code></span>' if file else ""
    return (
        f'<div class="cinductor"><style>{STYLE}</style><p><b>{escape(job.name)}</b>, compiled by cinductor {where}</p>'
        f'<ul class="facts">{items}</ul><ul class="plain">{rows}</ul>'
        f'<p class="soft">cinductor.explain({escape(job.name)}, …) shows what it becomes</p></div>'
    )
