"""Splits functions at their breaks and compiles the pieces between."""
