"""Arrays on a device.

`to_device` copies an array to the device. A compiled function that is called with such arrays runs there and
returns such arrays. So do NumPy functions and operators, each compiled on first use. Nothing is copied
back until a caller asks for values.

Internally a device array is an ndarray whose data pointer is a device address (its handle). Handles must
not leave this folder: reading such an array on the host would crash the process. The handle of an array of the CPU is
an ordinary ndarray.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from ..base import lazy
from ..base.class_lookup import is_a
from .foreign_memory import as_buffer_errors, capsule_of, is_of_host, over
from .libraries import prepare
from .machine import split
from .machine import text as device_text
from .packages import rebuild

HOST = "cpu"
CUDA = 2  # the number in DLPack
READS = "all any argmax argmin argsort astype choose clip compress conj conjugate copy cumprod cumsum diagonal dot flatten max mean min nonzero prod ravel repeat reshape round searchsorted squeeze std sum swapaxes take trace transpose var".split()
WRITES = "fill partition put sort".split()
BINARY = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift".split()
UNARY = "neg pos abs invert".split()
COMPARISONS = "eq ne lt le gt ge".split()


class Array(_core.DeviceArray):
    """An array in a device's memory, freed with the object. The CPU is a device, too.

    `to_device`, compiled functions and NumPy's functions on such arrays make them. Operators, NumPy's ufuncs and functions, methods
    and indexing are those of an ndarray and run on the device. Where NumPy returns a scalar, the result is an array without axes.
    `numpy()`, `item()`, `float()`, `print` and `bool()` wait for the values and copy them to the host. Indexing by numbers and
    slices gives views. Other packages read it without a copy through `__dlpack__` or `__cuda_array_interface__`. `np.asarray(x)`
    is the memory of an array of the CPU.

    Parameters
    ----------
    handle : ndarray
        Internal: `to_device`, `from_dlpack` and `from_ipc_handle` give it. Other objects are a TypeError.

    Raises
    ------
    DeviceError
        By a use of the array, if the device reports an error.
    TypeError
        By an operation that would need a copy from a device to the host, as `np.asarray(x)`; `x.numpy()` makes one.

    Examples
    --------
    >>> x = cinductor.to_device(np.ones((1000, 1000)), "cuda")
    >>> y = np.sin(x) + 1
    >>> y.numpy()
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._handle.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes between elements along each axis."""
        return self._handle.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._handle.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._handle.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._handle.size

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self._handle.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self._handle.nbytes

    @property
    def T(self) -> Array:
        """The transposed view."""
        return Array(self._handle.T)

    @property
    def mT(self) -> Array:
        """The view with the last two axes exchanged. Raises ValueError for fewer axes."""
        return Array(self._handle.swapaxes(-1, -2)) if self.ndim > 1 else Array(self._handle.mT)

    @property
    def device(self) -> str:
        """The text of its `Device`: "cuda", "cuda:1"."""
        return device_text(*_core.device_of(self._handle))

    # --- values on the host ---

    def numpy(self) -> np.ndarray:
        """Copy the array to host memory; waits for the kernels that compute it.

        Returns
        -------
        np.ndarray
            A new array with the same elements, shape and dtype.
        """
        return _core.device_numpy(self._handle)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """Copy the array to a device.

        Parameters
        ----------
        device : str or Device
            The device: see `cinductor.to_device`.
        stream : Stream, optional
            Performs the copy; by default, the current one does.

        Returns
        -------
        Array
            The array on that device; this one if it is there already.
        """
        with contextlib.nullcontext() if stream is None else stream:
            return to_device(self, device)

    def start_copy(self) -> HostCopy:
        """Start a copy to host memory without waiting, after the kernels that compute the array.

        Returns
        -------
        HostCopy
            Its method `numpy()` waits for the copy and returns the array.

        Raises
        ------
        MemoryError
            If pinned host memory cannot be allocated.
        """
        return HostCopy(self)

    def ipc_handle(self) -> bytes:
        r"""Return a handle with which another process opens this memory (`from_ipc_handle`).

        Only for arrays made by `to_device(x, shared=True)` and views of them. Waits for the kernels that compute the
        array. The memory lives as long as arrays over it in this process: keep one until the other process has closed
        its own.

        Returns
        -------
        bytes
            The handle.

        Raises
        ------
        ValueError, DeviceError
            If the memory is not shared; if the device refuses.
        """
        handle: bytes = lazy.load("arrays.sharing").ipc_handle(self)
        return handle

    def item(self, *where: int) -> Any:
        """Return one element as a Python number; waits for the kernels that compute it.

        Parameters
        ----------
        *where : int
            The index of the element, one number for each axis; of an array with one element nothing is needed.

        Returns
        -------
        bool, int, float or complex
            The element.

        Raises
        ------
        ValueError
            If no index is given and the array has more than one element.
        """
        return self.numpy().item(*where)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; waits for the kernels that compute them.

        Returns
        -------
        list
            A list for each axis; of an array without axes the number itself.
        """
        return self.numpy().tolist()

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __index__(self) -> int:
        return operator.index(self.numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if _core.is_device_array(self._handle):
            raise TypeError("an Array is not copied by accident: use .numpy()")
        if copy or dtype not in (None, self.dtype):
            if copy is False:
                raise ValueError(f"an array of {self.dtype} is not one of {dtype} without a copy")
            return self._handle.astype(dtype or self.dtype)
        return self._handle

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[k] for k in range(len(self)))

    def __reduce__(self) -> Any:
        return to_device, (self.numpy(), self.device)

    def __repr__(self) -> str:
        values = np.array2string(self.numpy(), separator=", ", prefix="Array(")
        return f"Array({values}, dtype={self.dtype}, device={self.device!r})"

    def __str__(self) -> str:
        return str(self.numpy())

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: device, shape and dtype, and the values if they are not too many."""
        html: str = lazy.load("report.notebook").card_of_array(self)
        return html

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.ndim == 0 else str(self), spec)

    # --- NumPy ---

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return run(function, *inputs, **unpacked(kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return run(func, *args, **kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """NumPy's functions, with results on this array's device: the names of the array API standard and all others. Raises
        ValueError for a version of the standard that NumPy does not know.
        """
        np.empty(0).__array_namespace__(api_version=api_version)  # type: ignore[arg-type]
        return lazy.load("arrays.namespace").Namespace(self.device)

    # --- items ---

    def __getitem__(self, key: Any) -> Array:
        if is_basic(key):
            whole = key if type(key) is tuple else (key,)
            return Array(self._handle[whole if Ellipsis in map(identity, whole) else (*whole, ...)])
        found: Array = run(operator.getitem, self, index_on(self.device, key))
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is Array and np.may_share_memory(self._handle, value._handle):
            if is_basic(key) and is_same_view(self[key], value):
                return  # `x[k] += 1` stores the item back
            value = compiled_method("copy")(value)
        run(operator.setitem, self, index_on(self.device, key), value)

    # --- other packages ---

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if _core.dlpack_device(self._handle)[0] != CUDA:
            raise AttributeError(f"an array of device {self.device!r} is no CUDA array")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._handle.__array_interface__["data"][0], False),
            "strides": self.strides,
            "version": 3,
            "stream": 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _core.dlpack_device(self._handle)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule over this memory, or over a copy if requested. Raises BufferError for a device or dtype without a
        DLPack number, and for a device other than its own and the host.
        """
        is_elsewhere = dl_device is not None and tuple(dl_device) != self.__dlpack_device__()
        if is_elsewhere and (dl_device[0] != 1 or copy is False):  # type: ignore[index]
            raise BufferError(f"an array of {self.device} cannot be given as one of device {dl_device}")
        if is_elsewhere or not _core.is_device_array(self._handle):
            here = self.numpy() if is_elsewhere or copy else self._handle
            known: dict[str, Any] = {} if max_version is None else {"max_version": max_version}  # not by NumPy 2.0
            return here.__dlpack__(**known)
        array = run(np.copy, self) if copy else self
        is_versioned = max_version is not None and max_version[0] >= 1
        return _core.dlpack_give(array._handle, stream, is_versioned)


class HostCopy:
    """A copy to the host in progress; made by `Array.start_copy`. A device without asynchronous copies finishes it at
    once.
    """

    __slots__ = ("_array", "_started")

    def __init__(self, array: Array) -> None:
        self._started = _core.device_start_copy(array._handle)
        self._array: Any = array if self._started else array.numpy()

    def numpy(self) -> np.ndarray:
        """Wait for the copy and return the array; the same one each time. Raises DeviceError if the copy failed."""
        if self._started is not None:
            (data, offset, event), like = self._started, self._array._handle
            event.synchronize()
            self._array = np.ndarray(like.shape, like.dtype, data, offset, like.strides)
            self._started = None
        found: np.ndarray = self._array
        return found


def identity(item: Any) -> Any:
    """A stand-in for an item of an index in a search, because arrays compare element by element."""
    return item if item is Ellipsis else None


def index_on(device: str, key: Any) -> Any:
    """An index whose arrays of the host are copied to a device."""
    return rebuild(key, lambda item: to_device(item, device) if is_a(item, np.ndarray) else item)


def is_same_view(a: Array, b: Array) -> bool:
    """True if both view the same elements of the same memory."""
    where = [(x._handle.ctypes.data, x.shape, x.strides, x.dtype) for x in (a, b)]
    return where[0] == where[1]


def is_basic(key: Any) -> bool:
    """True for an index of numbers and slices, which gives a view."""
    kinds = (int, slice, type(None), type(Ellipsis), np.integer)
    items = key if type(key) is tuple else (key,)
    return all(is_a(item, kinds) and type(item) is not bool for item in items)


def unpacked(kwargs: dict[str, Any]) -> dict[str, Any]:
    """NumPy passes `out` to __array_ufunc__ as a tuple."""
    out = kwargs.get("out")
    return {**kwargs, "out": out[0]} if type(out) is tuple and len(out) == 1 else kwargs


def whatever_the_stance(function: Any) -> Any:
    """The compiled function. It is compiled in every stance, because NumPy cannot run it on device arrays and would call back.
    """
    made = lazy.load("compile").compile(function, mode="now")
    made.stance = -1
    return made


@functools.cache
def compiled(function: Any) -> Any:
    """The compiled version of a function, which is called by its name with any arguments."""
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "call")
    return whatever_the_stance(call)


@functools.cache
def compiled_method(name: str) -> Any:
    """The compiled version of a method of ndarray."""
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return whatever_the_stance(call)


def run(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the function on device arrays; it is compiled at its first use."""
    return compiled(function)(*args, **kwargs)


# --- operators and methods of these names ---


def define(name: str, call: Callable[..., Any]) -> None:
    """Add it as a method, with ndarray's docstring."""
    call.__name__, call.__qualname__ = name, f"Array.{name}"
    call.__doc__ = getattr(np.ndarray, name).__doc__
    setattr(Array, name, call)


def of_two(function: Any) -> Callable[..., Any]:
    return lambda self, other: function(self, other)


def reflected(function: Any) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


def of_one(function: Any) -> Callable[..., Any]:
    return lambda self: function(self)


def define_operator(name: str, call: Callable[..., Any]) -> None:
    """Add the method of an operator. At its first use the compiled function replaces it, and then runs without Python
    code.
    """

    def first(*args: Any) -> Any:
        made = whatever_the_stance(call)
        setattr(Array, name, made)
        return made(*args)

    define(name, first)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = first.__doc__


def in_place(function: Any) -> Callable[..., Any]:
    def call(self: Array, other: Any) -> Array:
        run(function, self, other)
        return self

    return call


def of_name(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: compiled_method(name)(*args, **kwargs)


def define_all() -> None:
    for name in BINARY:
        function = divmod if name == "divmod" else getattr(operator, f"__{name}__")
        define_operator(f"__{name}__", of_two(function))
        define_operator(f"__r{name}__", reflected(function))
        if name != "divmod":
            define(f"__i{name}__", in_place(getattr(operator, f"__i{name}__")))
    for name in COMPARISONS:
        define_operator(f"__{name}__", of_two(getattr(operator, name)))
    for name in UNARY:
        define_operator(f"__{name}__", of_one(getattr(operator, name)))
    for name in (*READS, *WRITES):
        define(name, of_name(name))


define_all()


def leave(result: Any) -> Any:
    """A result of a call with Arrays of the CPU: its arrays and NumPy's scalars become Arrays. An argument that is returned stays
    the same object, because it has the handle already.
    """

    def back(value: Any) -> Any:
        handle = np.asarray(value) if is_a(value, np.generic) else value
        try:
            return Array(handle) if type(handle) is np.ndarray else value
        except TypeError:  # of a dtype that only NumPy has
            return value

    return rebuild(result, back)


_core.set_array_type(Array, leave)
Array.__hash__ = None  # type: ignore[assignment]


# --- made ---


def to_device(x: Any, device: Any = None, *, shared: bool = False) -> Array:
    """Copy an array to the device's memory, with its axes in the same order. An array that is there is returned as it is.

    Parameters
    ----------
    x : ndarray or Array
        The array.
    device : str or Device, optional
        "cuda:1"; None: the selected device, "cuda" if none is.
    shared : bool
        Copy to memory that other processes can open (`Array.ipc_handle`).

    Returns
    -------
    Array
        Of the same shape and dtype.

    Raises
    ------
    TypeError, ValueError
        For dtypes that the device lacks; for a device that does not exist or has no memory of its own.
    DeviceError, MemoryError
        If the device cannot be used; if the array does not fit, with what is in use.
    """
    prepare()
    if shared:
        copy: Array = lazy.load("arrays.sharing").shared_copy(x, device)
        return copy
    name, index = split(device)
    if is_a(x, Array):
        if _core.device_of(x._handle) == (name, index):
            found: Array = x
            return found
        x = x.numpy()
    return Array(_core.device_array(np.asarray(x), f"{name}:{index}"))


def from_dlpack(x: Any) -> Array:
    """Return an Array over the memory of another package's device array, without a copy.

    Work in the current stream of that package is finished first.

    Parameters
    ----------
    x : object
        With `__dlpack__` and `__dlpack_device__`, or `__cuda_array_interface__`. Host memory gives an array of the CPU.

    Returns
    -------
    Array
        Of the same shape, strides and dtype.

    Raises
    ------
    TypeError
        For other objects.
    BufferError
        For memory of a device that does not exist here, unknown dtypes, read-only memory of a device, and arrays that their package
        does not share.
    """
    if hasattr(type(x), "__dlpack__"):
        with as_buffer_errors(x):
            return Array(np.from_dlpack(x) if is_of_host(x) else _core.dlpack_take(capsule_of(x)))
    prepare()
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{type(x).__name__} has neither __dlpack__ nor __cuda_array_interface__")
    return Array(over(x, interface))
