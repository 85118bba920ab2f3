"""Objects that are stored to, and context managers: small objects of rewritten code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...float_warnings import quietened
from ..value.objects import Traced

if TYPE_CHECKING:
    from ..stage import Stage


class Slot:
    """A place that is stored to: `slot.value = v`, `del slot.value`, `slot.load().augment(op,
    v)`.
    """

    __slots__ = ("get", "put", "remove", "key", "owner", "current")

    def __init__(self, get: Any, put: Any, remove: Any, key: Any, *owner: Any) -> None:
        self.get, self.put, self.remove = get, put, remove
        self.key, self.owner = key, owner

    @property
    def value(self) -> Any:
        return self.get(self.key, *self.owner)

    @value.setter
    def value(self, item: Any) -> None:
        self.put(self.key, item, *self.owner)

    @value.deleter
    def value(self) -> None:
        self.remove(self.key, *self.owner)

    def load(self) -> Slot:
        """Reads the place now."""
        self.current = self.get(self.key, *self.owner)
        return self

    def augment(self, name: str, other: Any) -> None:
        """The rest of `place op= other`."""
        new = self.get.__self__.augment(name, self.current, other)
        owner = self.owner[0] if self.owner else None
        is_array = new is self.current and type(new) is Traced and new.kind == "array"
        if is_array and type(owner) is Traced and new.shares_storage(owner):
            return  # a view of the owner was written; what x[mask] gave is a copy to be stored
        self.put(self.key, new, *self.owner)


class Managed:
    """A context manager around whose methods pending work is run."""

    def __init__(self, stage: Stage, manager: Any) -> None:
        self.stage, self.manager = stage, manager

    def __enter__(self) -> Any:
        return self.stage.lift(type(self.manager).__enter__(self.manager))

    def __exit__(self, *error: Any) -> Any:
        self.stage.tracer.flush()
        return type(self.manager).__exit__(self.manager, *error)


class Quiet:
    """An errstate around operations: they are noted with what nobody wants to hear of."""

    def __init__(self, stage: Stage, errstate: Any, asked: dict[str, Any]) -> None:
        self.stage, self.errstate, self.asked, self.around = stage, errstate, asked, 0

    def __enter__(self) -> Any:
        tracer = self.stage.tracer
        self.around, tracer.quiet = tracer.quiet, quietened(tracer.quiet, self.asked)
        return self.errstate.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self.stage.tracer.quiet = self.around
        return self.errstate.__exit__(*error)
