"""Which object an array is, where its memory does not say.

`v = v[...]` leaves the memory that the name stands for as it is and binds another object. What runs
of a body end with is compared by memory; two objects of one memory may take each other's place only
where nobody can tell them apart: not by `is`, nor by what is returned, nor in a container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..value.state import identity, is_array, is_same, leaves, references

if TYPE_CHECKING:
    from .contents import Contents
    from .region import Region

Pair = tuple[str, Any, Any]  # a place, and what it has on the one way and on the other


class Objects:
    """What all places have, on two ways; others: what both have, or one alone."""

    def __init__(self, region: Region, contents: Contents) -> None:
        self.pairs: list[Pair] = []
        self.others: list[Any] = []
        self.region = region
        self.containers = contents.containers  # what they hold is added

    def add(self, name: str, a: Any, b: Any) -> None:
        """A name, or the items of a container."""
        firsts, seconds = leaves(a), leaves(b)
        if len(firsts) != len(seconds):
            self.others += firsts + seconds
            return
        for x, y in zip(firsts, seconds, strict=True):
            if is_array(x) and is_array(y):
                self.pairs.append((name, x, y))
            else:
                self.others += (x, y)

    def distinguishable_in(
        self, carried: tuple[str, ...], head: dict[str, Any], end: dict[str, Any]
    ) -> str | None:
        """A name carried that somebody could tell apart at the head of a trip and at its end."""
        for name in (*carried, *self.containers):
            self.add(name, head[name], end.get(name))
        self.others += [end.get(n) for n in self.region.site.live_out if n not in carried]
        return self.distinguishable()

    def distinguishable(self) -> str | None:
        """A place that has two objects of one memory which somebody could tell apart."""
        names: dict[int, str] = {}  # of those objects
        for name, a, b in self.pairs:
            if identity(a) != identity(b) and is_same(a, b):
                names.setdefault(identity(a), name)
                names.setdefault(identity(b), name)
                if any(x.is_whole and not x.is_fresh for x in (a, b)):
                    return name  # the caller has one of them
        elsewhere = self.region.elsewhere() if names else []
        if not names or elsewhere is None:
            return next(iter(names.values()), None)
        twins: tuple[dict[int, int], ...] = ({}, {})
        for name, a, b in self.pairs:
            key, other = identity(a), identity(b)
            is_so = twins[0].setdefault(key, other) == other
            is_so &= twins[1].setdefault(other, key) == key
            if not is_so and (key in names or other in names):
                return name

        def is_meant(value: Any) -> bool:
            return is_array(value) and identity(value) in names

        others = [*self.others, *elsewhere]
        is_known = references(others, is_meant, self.containers.values()) > 0
        return next(iter(names.values())) if is_known else None
