"""Programs for elsewhere: as one C file without Python, or as JSON for other compilers."""

from __future__ import annotations

import copy
from typing import Any

from . import _core
from .compile import compile
from .user import wrong

FORMS = ("c", "json")


def export(
    fn: Any, *args: Any, form: str = "c", options: dict[str, Any] | None = None, **kwargs: Any
) -> str:
    """See `cinductor.export`."""
    if form not in FORMS:
        raise ValueError(f"export() has no form {form!r}: it has {' and '.join(FORMS)}")
    if not callable(fn):
        raise TypeError(wrong("export", "fn", fn, "a function or another callable"))
    settings: dict[str, Any] = {}
    if isinstance(fn, _core.CompiledFunction):
        settings = {**fn._cinductor_job.settings}  # type: ignore[attr-defined]
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    settings |= {
        "backend": "c",
        "fullgraph": True,
        "options": {**settings.get("options", {}), **(options or {})},
    }
    compiled = compile(fn, **settings)
    compiled._cinductor_job.is_for_show = True
    compiled(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    made = compiled.specializations
    if not made:
        raise _core.Unsupported("nothing of the function was compiled for these arguments")
    text = made[-1].program.text(form)
    if text.startswith("#error "):
        raise _core.Unsupported(text.removeprefix("#error ").strip())
    return text
