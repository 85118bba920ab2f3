"""Kernels that a C compiler has refused: the interpreter runs them, and gives a warning. Tests and tests/support/fuzz.py look here,
because most of them ignore warnings.
"""

import contextlib
import os
import re

from cinductor.base import deferred_warnings

REFUSED = re.compile("interpreter backend.*the C compiler failed")


@contextlib.contextmanager
def none():
    """Fail if a kernel is refused in the block, except by a compiler that the block has chosen itself."""
    warn, compiler, texts = deferred_warnings.warn, os.environ.get("CC"), []

    def note(message, *arguments, **named):
        if REFUSED.search(message) and os.environ.get("CC") == compiler:
            texts.append(message)
        warn(message, *arguments, **named)

    deferred_warnings.warn = note
    try:
        yield
    finally:
        deferred_warnings.warn = warn
    assert not texts, texts
