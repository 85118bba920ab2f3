"""`set_stance`: selects how compiled functions handle a call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from .. import _core
from ..base.class_lookup import is_a
from ..config import refusal

F = TypeVar("F", bound=Callable[..., Any])
Stance = Literal["default", "force_eager", "eager_on_recompile", "fail_on_recompile"]
STANCES = {"default": 0, "force_eager": 1, "eager_on_recompile": 2, "fail_on_recompile": 3}


class set_stance:  # noqa: N801  (used like a function)
    """Set what compiled functions do: from now on, inside a with statement or inside a function.

    A call of `set_stance` holds for the process. A with statement and a decorated function hold for the
    calling context alone (a thread, a task of asyncio), and come before the process's stance there: other
    threads never notice them.

    Parameters
    ----------
    stance : {"default", "force_eager", "eager_on_recompile", "fail_on_recompile"}
        "default" compiles. "force_eager" runs NumPy. "eager_on_recompile" uses what is compiled and runs
        NumPy for any other call. "fail_on_recompile" raises RecompileError instead. Operators of `Array`s,
        and NumPy's functions on them, run on the device in every stance.

    Raises
    ------
    ValueError
        If there is no stance of that name.
    """

    def __init__(self, stance: Stance) -> None:
        if not is_a(stance, str) or stance not in STANCES:
            raise ValueError(refusal("stance", stance, STANCES))
        self.stance: Stance = stance
        self._thread: int | None = _core.propose_stance(STANCES[stance], id(self))

    def _end(self, stays: bool) -> None:
        """End the proposal of the constructor. True if the stance becomes the process's."""
        thread, self._thread = self._thread, None
        if thread is not None:
            _core.end_proposal(thread, id(self), stays)

    def __del__(self) -> None:
        if "_thread" in self.__dict__:  # the constructor has not raised
            self._end(True)

    def __enter__(self) -> None:
        self._end(False)
        _core.enter_stance(STANCES[self.stance])

    def __exit__(self, *error: Any) -> None:
        _core.leave_stance()

    def __call__(self, fn: F) -> F:
        self._end(False)

        @functools.wraps(fn)
        def staged(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        return staged  # type: ignore[return-value]
