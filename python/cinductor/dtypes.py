"""Which dtypes kernels know: NumPy's own, and those of packages that have a row (`pyext/state/foreign.def`)."""

from __future__ import annotations

from typing import Any

from . import _core


class Dtypes:
    """What `in` asks of; nothing is imported to know it."""

    def __contains__(self, dtype: Any) -> bool:
        return _core.has_dtype(dtype)


DTYPES = Dtypes()
