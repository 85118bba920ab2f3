"""A table of modules to train, with the arguments that they are called with."""

import torch

CASES = {}
R = torch.randn
LAST = torch.channels_last


def case(*makes, **options):
    """Adds a module class to CASES: makers of arguments, and options of `agreement.compiled`; tolerance: of all comparisons."""

    def add(cls):
        CASES[cls.__name__] = (cls, makes, options)
        return cls

    return add


def given(*operands):
    """A maker of arguments: of sizes, or of functions that make a value."""
    return lambda: tuple(x() if callable(x) else R(*x) for x in operands)


def images(*sizes):
    return lambda: R(*sizes).to(memory_format=LAST)


def tokens(n, *sizes):
    return lambda: torch.randint(0, n, sizes)
