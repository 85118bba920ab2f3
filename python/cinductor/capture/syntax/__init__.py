"""Finds a function's source and makes the source that capture runs in its place. This folder only handles syntax."""
