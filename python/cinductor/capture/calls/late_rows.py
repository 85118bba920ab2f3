"""The functions whose handlers are in modules that the first call of one of them imports (`numbers`, `iterables`, `values`, `consumers`, `collectives`)."""

from __future__ import annotations

import cmath
import copy
import functools
import itertools
import math
import operator
import sys

import numpy as np

from ...base.class_lookup import is_a, offered
from ...numpy import composites, twister
from ..container_rows import ROWS
from . import numbers
from .calls import LATE, understood_by
from .numpy_calls import NUMBER_METHODS

understood_by("iterables", range, np.ndindex, np.ndenumerate, enumerate, iter, reversed, zip, map, filter, next)
understood_by("iterables", *(f for f in offered(itertools) if is_a(f, type)))
understood_by("values", hash, repr, ascii, format, str, copy.copy, copy.deepcopy)
understood_by("numbers", twister.log, twister.cos, twister.sin, operator.is_, operator.is_not, float, int, bool, complex, round, pow, sum)
understood_by("numbers", *(f for module in (math, cmath) for f in offered(module) if callable(f)))
understood_by("consumers", *ROWS, tuple, frozenset, sorted, min, max, any, all, functools.reduce, composites.array_or_list, *composites.IN_ORDER)
for _name in ("bit_length", "bit_count", "is_integer"):
    NUMBER_METHODS[_name] = lambda scope, value, args, name=_name: getattr(numbers, name)(scope, value, args)


def enter_collectives() -> None:
    """Called when the user has imported their module."""
    understood_by("collectives", *(getattr(sys.modules[COLLECTIVES], name) for name in NAMES.split()))


COLLECTIVES, NAMES = "cinductor.distributed.collectives", "axis_index axis_size all_reduce stack_members reduce_own broadcast send_recv"
LATE[COLLECTIVES] = [enter_collectives]
