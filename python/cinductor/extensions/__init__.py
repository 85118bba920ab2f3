"""Things that a user adds to the compiler: kernels, custom operations, passes, lowerings, heuristics, explicit control flow."""

from typing import Any

from ..base.lazy import late_modules

__getattr__ = late_modules(__name__, "custom_ops", "heuristics", "kernels")

HEURISTICS: dict[str, Any] = {}  # by device


class UserOperation:
    """A kernel or custom operation of the user, which a captured call calls as one step."""
