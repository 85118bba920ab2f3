"""Collects the functions of a test file as cases of its tests."""


def entering(cases, default=()):
    """A decorator `case(*arguments)` that appends a function and its arguments to a list."""

    def case(*arguments):
        def enter(fn):
            cases.append((fn, arguments or default))
            return fn

        return enter

    return case
