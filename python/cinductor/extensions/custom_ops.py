"""Custom operations: functions that compiled functions call without tracing into them."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.user_frame import wrong
from . import UserOperation

POINTER = ctypes.POINTER(ctypes.c_void_p)
PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int32, POINTER, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)), POINTER
)
_numbers = itertools.count()

Shapes = list[tuple[Any, ...]]


class CustomOp(UserOperation):
    """See `cinductor.custom_op`."""

    def __init__(self, fn: Any, shape: Callable[..., Any], dtype: Any, name: str | None) -> None:
        is_address = type(fn) is int
        if not is_address and not callable(fn):
            raise TypeError(wrong("custom_op", "fn", fn, "a function, or the address of one in C"))
        if not callable(shape):
            raise TypeError(wrong("custom_op", "shape", shape, "a function of fn's arguments"))
        self.is_c = is_address or isinstance(fn, PROTOTYPE.__bases__[0])
        self.fn = ctypes.cast(fn, PROTOTYPE) if self.is_c and not is_address else fn
        if is_address:
            self.fn = PROTOTYPE(fn)
        self.given, self.rule, self.dtype = fn, shape, dtype  # given: keeps the memory of a C function alive
        self.__name__ = str(name or getattr(fn, "__name__", "operation"))
        self.key = f"{self.__name__} {next(_numbers)}"  # unique, so that each operation is its own call

    def __repr__(self) -> str:
        return f"<custom_op {self.__name__}>"

    def results_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Shapes, list[np.dtype]]:
        """Shapes and dtypes of the results."""
        shapes = self.rule(*args, **kwargs)
        shapes = [tuple(s) for s in shapes] if isinstance(shapes, list) else [tuple(shapes)]
        dtype = self.dtype
        if dtype is None:
            arrays = [a for a in (*args, *kwargs.values()) if hasattr(a, "dtype")]
            if not arrays:
                raise TypeError(f"{self.__name__}: no operand has a dtype, so dtype= is needed")
            dtype = arrays[0].dtype
        dtypes = [np.dtype(d) for d in dtype] if isinstance(dtype, list) else [np.dtype(dtype)] * len(shapes)
        if len(dtypes) != len(shapes):
            raise ValueError(f"{self.__name__}: {len(shapes)} shapes and {len(dtypes)} dtypes")
        return shapes, dtypes

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Shapes, dtypes: list[np.dtype]) -> list[Any]:
        """The results of a call on real arrays, compared with the rule. Raises ValueError if they differ."""
        if self.is_c:
            return self.run_c(args, kwargs, shapes, dtypes)
        made = self.fn(*args, **kwargs)
        results = list(made) if isinstance(made, tuple | list) else [made]
        if len(results) != len(shapes):
            raise ValueError(f"{self.__name__} gives {len(results)} results; its shape rule says {len(shapes)}")
        for result, shape, dtype in zip(results, shapes, dtypes, strict=True):
            got = np.asarray(result)
            if got.shape != shape or got.dtype != dtype:
                raise ValueError(
                    f"{self.__name__} gives {got.dtype} of shape {got.shape}; its shape rule says {dtype} of shape {shape}"
                )
        return [np.asarray(result) for result in results]

    def run_c(self, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Shapes, dtypes: list[np.dtype]) -> list[Any]:
        """Like `run`, for a C function, which gets addresses and sizes."""
        arrays = [np.ascontiguousarray(a) for a in (*args, *kwargs.values())]
        results = [np.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        every = [*arrays, *results]
        sizes = [(ctypes.c_int64 * max(a.ndim, 1))(*a.shape) for a in every]
        status = self.fn(
            (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays)),
            (ctypes.POINTER(ctypes.c_int64) * len(every))(
                *(ctypes.cast(s, ctypes.POINTER(ctypes.c_int64)) for s in sizes)
            ),
            (ctypes.c_void_p * len(results))(*(a.ctypes.data for a in results)),
        )
        if status:
            raise RuntimeError(f"{self.__name__} returned the status {status}")
        return results

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result. Raises ValueError if its shape or dtype is not that of the rule."""
        results = self.run(args, kwargs, *self.results_of(args, kwargs))
        return tuple(results) if len(results) > 1 else results[0]


def custom_op(
    fn: Any = None, *, shape: Callable[..., Any], dtype: Any = None, name: str | None = None
) -> Any:
    """Declare a function that the compiler calls from inside compiled functions without tracing into it; also a decorator.

    Parameters
    ----------
    fn : callable or int
        A Python function of arrays, numbers and constants that only computes: it may be called less or more often than the
        code says. Or a C function, as a ctypes function or an address, `int32_t fn(void *const *operands, const int64_t *const
        *sizes, void *const *results)`: operands and results are in C order, sizes has those of the operands, then of
        the results; a result other than 0 is an error.
    shape : callable
        A function of the same arguments that returns the result's shape, or a list of shapes for several results. It should
        use only shapes and numbers.
    dtype : dtype or list, optional
        Of the results; None: the first operand's.
    name : str, optional
        The name in reports.

    Returns
    -------
    callable
        The operation, which is called as fn is; without fn a decorator.

    Raises
    ------
    TypeError
        If fn is not callable. The operation raises ValueError if fn returns another shape or dtype.
    """
    if fn is None:
        return lambda decorated: CustomOp(decorated, shape, dtype, name)
    return CustomOp(fn, shape, dtype, name)
