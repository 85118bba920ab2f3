"""Modules that every part of the package uses: warnings, signals, signatures, the user's frame."""
