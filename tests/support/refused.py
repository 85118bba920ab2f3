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
    made, compiler, texts = deferred_warnings.DeferredWarning, os.environ.get("CC"), []

    def note(text, *places):
        if REFUSED.search(text) and os.environ.get("CC") == compiler:
            texts.append(text)
        return made(text, *places)

    deferred_warnings.DeferredWarning = note
    try:
        yield
    finally:
        deferred_warnings.DeferredWarning = made
    assert not texts, texts
