"""What the meaning of calls, loops and branches may ask of the function whose code is running.

`hooks/scope.py` has it: names, attributes, items, calls and control flow of one captured function. What
stands below knows no more of it than this.
"""

from __future__ import annotations

from typing import Any, Protocol


class Hooks(Protocol):
    """The scope of a captured function. Values are those of the user's frame: traced, or Python's."""

    stage: Any  # of the call
    file: str
    fn_globals: dict[str, Any]
    is_library: bool  # the function is NumPy's own

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs), as rewritten code has it."""

    def attr(self, value: Any, name: str) -> Any:
        """value.name"""

    def item(self, value: Any, key: Any) -> Any:
        """value[key]"""

    def iter(self, value: Any) -> Any:
        """What a loop, a star or a comprehension runs over."""

    def step(self, value: Any) -> Any:
        """next(value)"""

    def unpack(self, value: Any, shape: tuple[Any, ...]) -> Any:
        """A value for an assignment to several names."""

    def test(self, value: Any) -> Any:
        """The truth of a value: traced, or a bool."""

    def augment(self, name: str, value: Any, other: Any) -> Any:
        """An operator in place."""

    def use(self, value: Any) -> Any:
        """A value for an operation of Python's own: what the user's methods would see is real."""

    def key(self, value: Any) -> Any:
        """What a dict or set hashes."""

    def born(self, value: Any) -> Any:
        """An object that has just been made."""
