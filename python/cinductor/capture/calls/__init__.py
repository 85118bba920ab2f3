"""Calls in captured functions, dispatched on the identity of the callee."""

from ...base.lazy import late_modules

__getattr__ = late_modules(__name__, "consumers", "numbers")
