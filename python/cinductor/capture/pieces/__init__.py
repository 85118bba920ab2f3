"""Splits functions at their breaks and compiles the pieces between."""

from ...base.lazy import late_modules

__getattr__ = late_modules(__name__, "driver")
