"""Finds a function's source and makes the source that capture runs in its place. This folder only handles syntax."""

from ...base.lazy import late_modules

__getattr__ = late_modules(__name__, "bytecode", "desugar")
