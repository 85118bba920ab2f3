"""The names that a function's code uses as names that its file imports.

From Python 3.11 on, a call of an attribute of such a name is compiled to other instructions than a method call. So a function is
compiled again under imports of these names, which its own bytecode shows.
"""

from __future__ import annotations

import dis
import sys
import types


def codes_named(*names: str) -> frozenset[int]:
    """The codes of those instructions that this version of Python has."""
    return frozenset(dis.opmap[name] for name in names if name in dis.opmap)


SKIPPED, EXTENDED = codes_named("CACHE"), codes_named("EXTENDED_ARG")
GLOBALS, NAMES = codes_named("LOAD_GLOBAL"), codes_named("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
CELLS = codes_named("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
PAIRS = codes_named("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
LOCALS = codes_named("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW") | CELLS | PAIRS
METHODS, ATTRIBUTES = codes_named("LOAD_METHOD"), codes_named("LOAD_METHOD", "LOAD_ATTR")
HAS_METHOD_BIT = sys.version_info >= (3, 12)


def modules_in(code: types.CodeType) -> list[str]:
    """Names of which attributes are read, but not called as methods, in a function and its inner functions."""
    if sys.version_info < (3, 11):
        return []
    found: dict[str, bool] = {}
    codes = [code]
    for one in codes:
        codes += [inner for inner in one.co_consts if type(inner) is types.CodeType]
        before, arg = None, 0
        for op, part in zip(one.co_code[::2], one.co_code[1::2], strict=True):
            if op in SKIPPED:
                continue
            arg = arg << 8 | part
            if op in EXTENDED:
                continue
            if op in ATTRIBUTES and before is not None:
                is_method = op in METHODS or (HAS_METHOD_BIT and arg & 1)
                found[before] = found.get(before, True) and not is_method
            before = None
            if op in GLOBALS or op in NAMES:
                before = one.co_names[arg >> 1 if op in GLOBALS else arg]
            elif op in LOCALS:
                before = one._varname_from_oparg(arg & 15 if op in PAIRS else arg)  # type: ignore[attr-defined]
            arg = 0
    return [name for name, is_module in found.items() if is_module]
