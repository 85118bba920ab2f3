"""Methods of lists, and functions of Python that read a list, written with indices, `append` and `pop()`.

They are captured from this source if a list is stored as columns (`capture/control/list_buffer.py`). What Python would
raise is raised here, with any text: it becomes a check of the program, and Python's own function then runs. A NaN is
found in a list by identity, which columns do not have, so a search for one is left to Python in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


class LeftToPython(Exception):
    """Python's own function must run."""


def largest(items: Any) -> Any:
    """max(items)"""
    if len(items) == 0:
        raise ValueError("no items")
    best = items[0]
    for k in range(1, len(items)):
        if items[k] > best:
            best = items[k]
    return best


def smallest(items: Any) -> Any:
    """min(items)"""
    if len(items) == 0:
        raise ValueError("no items")
    best = items[0]
    for k in range(1, len(items)):
        if items[k] < best:
            best = items[k]
    return best


def total(items: Any) -> Any:
    """sum(items)"""
    return sum(v for v in items)


def contains(items: Any, wanted: Any) -> Any:
    """wanted in items"""
    if wanted != wanted:  # noqa: PLR0124  (a NaN)
        raise LeftToPython
    for v in items:
        if v == wanted:
            return True
    return False


def index(items: Any, wanted: Any) -> Any:
    """items.index(wanted)"""
    if wanted != wanted:  # noqa: PLR0124
        raise LeftToPython
    for k in range(len(items)):
        if items[k] == wanted:
            return k
    raise ValueError("not in the list")


def count(items: Any, wanted: Any) -> Any:
    """items.count(wanted)"""
    if wanted != wanted:  # noqa: PLR0124
        raise LeftToPython
    found = 0
    for v in items:
        if v == wanted:
            found += 1
    return found


def copied(items: Any) -> Any:
    """items.copy(), list(items)"""
    return items[:]


def reverse(items: Any) -> None:
    """items.reverse()"""
    last = len(items) - 1
    for k in range(len(items) // 2):
        items[k], items[last - k] = items[last - k], items[k]


def insert(items: Any, position: Any, item: Any) -> None:
    """items.insert(place, item)"""
    end = len(items)
    if position < 0:
        position = max(position + end, 0)
    position = min(position, end)
    items.append(item)
    for k in range(end, position, -1):
        items[k] = items[k - 1]
    items[position] = item


def pop(items: Any, position: Any) -> Any:
    """items.pop(place)"""
    last = len(items) - 1
    if position < 0:
        position += last + 1
    if position < 0 or position > last:
        raise IndexError("out of range")
    item = items[position]
    for k in range(position, last):
        items[k] = items[k + 1]
    items.pop()
    return item


def remove(items: Any, wanted: Any) -> None:
    """items.remove(wanted)"""
    pop(items, index(items, wanted))


def extend(items: Any, others: Any) -> None:
    """items.extend(others); of itself, the items that it has now."""
    for item in copied(items) if others is items else others:
        items.append(item)


def in_order(made: Any, *, reverse: bool = False) -> Any:
    """The array of sorted(items, reverse=reverse) from that of the items."""
    if made.dtype.kind == "f" and np.isnan(made).any():
        raise LeftToPython
    if reverse:
        return np.sort(made[::-1], kind="stable")[::-1]
    return np.sort(made, kind="stable")


def places_in_order(keys: Any, *, reverse: bool = False) -> Any:
    """The places of items in their order, which depends on the first key, then on the next one, and so on."""
    for key in keys:
        if key.dtype.kind == "f" and np.isnan(key).any():
            raise LeftToPython
    if reverse:
        return len(keys[0]) - 1 - np.lexsort([key[::-1] for key in keys[::-1]])[::-1]
    return np.lexsort(keys[::-1])


def table_of(columns: Any, dtype: Any) -> Any:
    """np.array of tuples, from the arrays of the numbers at each place in them."""
    return np.stack([column.astype(dtype) for column in columns], axis=1)


METHODS: dict[str, Callable[..., Any]] = {
    "__contains__": contains,
    "copy": copied,
    "count": count,
    "extend": extend,
    "index": index,
    "insert": insert,
    "pop": pop,
    "remove": remove,
    "reverse": reverse,
}
FUNCTIONS: dict[Any, Callable[..., Any]] = {list: copied, max: largest, min: smallest, sum: total}


# --- dicts and sets: a table of places in a list of entries, in the order of insertion ---


def slot_of(slots: Any, entries: Any, key: Any) -> Any:
    """Where a table has the place of a key's entry, or a free slot: linear probing, Knuth 6.4."""
    number = hash_of(key) if type(key) is tuple else bits_of(key)
    size = len(slots)
    k = ((number * 0x2545F4914F6CDD1D & 0x7FFFFFFFFFFFFFFF) >> 24) % size
    while slots[k] >= 0 and entries[int(slots[k])][0] != key:
        k += 1
        if k == size:
            k = 0
    return k


def empty_slots(size: Any) -> Any:
    """A table of that many free slots."""
    return np.full(size, -1)


def enter_all(slots: Any, entries: Any) -> None:
    """Store the places of all entries, whose keys are distinct."""
    for k in range(len(entries)):
        slots[slot_of(slots, entries, entries[k][0])] = k


def hash_of(key: Any) -> Any:
    """A number from the numbers of a tuple."""
    number = 0
    for part in key:
        number = (number * 1000003 ^ bits_of(part)) & 0x3FFFFFFFFFFFFFFF
    return number


def bits_of(number: Any) -> Any:
    """An int that is equal for equal numbers of one class. A NaN is found in a dict by identity."""
    if type(number) is not float and type(number) is not np.float64:
        return int(number)
    if number != number:  # noqa: PLR0124
        raise LeftToPython
    mantissa, exponent = math.frexp(number)
    return int(mantissa * 9007199254740992.0) + exponent


def place_of(slots: Any, entries: Any, key: Any) -> Any:
    """The place of a key's entry; -1 if there is none."""
    return int(slots[slot_of(slots, entries, key)])


def has_key(slots: Any, entries: Any, key: Any) -> Any:
    """key in dict"""
    return place_of(slots, entries, key) >= 0


def item_of(slots: Any, entries: Any, key: Any) -> Any:
    """dict[key]"""
    position = place_of(slots, entries, key)
    if position < 0:
        raise KeyError("no such key")
    return entries[position][1]


def item_or(slots: Any, entries: Any, key: Any, default: Any) -> Any:
    """dict.get(key, default)"""
    position = place_of(slots, entries, key)
    return entries[position][1] if position >= 0 else default


def item_or_made(slots: Any, entries: Any, key: Any, make: Any) -> Any:
    """dict[key], or make() for an absent key"""
    position = place_of(slots, entries, key)
    return entries[position][1] if position >= 0 else make()


def item_or_stored(slots: Any, entries: Any, key: Any, make: Any) -> Any:
    """defaultdict(make)[key]"""
    position = place_of(slots, entries, key)
    if position >= 0:
        return entries[position][1]
    return default_item(slots, entries, key, make())


def store_item(slots: Any, entries: Any, key: Any, item: Any) -> None:
    """dict[key] = item"""
    slot = slot_of(slots, entries, key)
    position = int(slots[slot])
    if position >= 0:
        entries[position] = (entries[position][0], item)
    else:
        slots[slot] = len(entries)
        entries.append((key, item))


def default_item(slots: Any, entries: Any, key: Any, default: Any) -> Any:
    """dict.setdefault(key, default)"""
    slot = slot_of(slots, entries, key)
    position = int(slots[slot])
    if position >= 0:
        return entries[position][1]
    slots[slot] = len(entries)
    entries.append((key, default))
    return default


def add_key(slots: Any, entries: Any, key: Any) -> None:
    """set.add(key)"""
    slot = slot_of(slots, entries, key)
    if slots[slot] < 0:
        slots[slot] = len(entries)
        entries.append((key,))


def free_slot(slots: Any, entries: Any, slot: Any) -> None:
    """Free the slot of an entry: later ones of the same run move up, Knuth 6.4 R."""
    size = len(slots)
    slots[slot] = -1
    k = slot + 1
    if k == size:
        k = 0
    while slots[k] >= 0:
        position = int(slots[k])
        slots[k] = -1
        slots[slot_of(slots, entries, entries[position][0])] = position
        k += 1
        if k == size:
            k = 0


def taken(slots: Any, entries: Any, slot: Any) -> Any:
    """Remove the entry of a slot and return it. The last entry moves to its place, so the order is not kept."""
    position, last = int(slots[slot]), len(entries) - 1
    entry = entries[position]
    free_slot(slots, entries, slot)
    if position < last:
        slots[slot_of(slots, entries, entries[last][0])] = position
        entries[position] = entries[last]
    entries.pop()
    return entry


def delete(slots: Any, entries: Any, key: Any) -> None:
    """del dict[key], set.remove(key)"""
    slot = slot_of(slots, entries, key)
    if slots[slot] < 0:
        raise KeyError("no such key")
    taken(slots, entries, slot)


def discard(slots: Any, entries: Any, key: Any) -> None:
    """set.discard(key)"""
    slot = slot_of(slots, entries, key)
    if slots[slot] >= 0:
        taken(slots, entries, slot)


def pop_item(slots: Any, entries: Any, key: Any) -> Any:
    """dict.pop(key)"""
    slot = slot_of(slots, entries, key)
    if slots[slot] < 0:
        raise KeyError("no such key")
    return taken(slots, entries, slot)[1]


def pop_or(slots: Any, entries: Any, key: Any, default: Any) -> Any:
    """dict.pop(key, default)"""
    slot = slot_of(slots, entries, key)
    if slots[slot] >= 0:
        return taken(slots, entries, slot)[1]
    return default
