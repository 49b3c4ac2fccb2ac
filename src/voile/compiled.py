"""Machine code for loops that NumPy cannot vectorise; Numba is loaded when one is first called.

Importing Numba takes longer than most questions take to answer, and most questions need none of
these loops.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
LOCK = threading.RLock()


def compiled(function: F) -> F:
    """Compile on first use, keep the result on disk, and let other threads run meanwhile."""
    return cast("F", Kernel(cast(FunctionType, function)))


class Kernel:
    """A function that is compiled when it is first called."""

    def __init__(self, function: FunctionType) -> None:
        self.py_func = function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.machine_code(*arguments, **named)

    @functools.cached_property
    def machine_code(self) -> Callable[..., Any]:
        """Numba's function; kernels that it calls are handed to Numba as Numba's own."""
        import numba  # noqa: PLC0415  (takes half a second)

        with LOCK:
            names = self.py_func.__globals__
            for name in self.py_func.__code__.co_names:
                if isinstance(names.get(name), Kernel) and names[name] is not self:
                    names[name] = names[name].machine_code
            found = cast(Callable[..., Any], numba.njit(cache=True, nogil=True)(self.py_func))
            if names.get(self.py_func.__name__) is self:
                names[self.py_func.__name__] = found  # so that it may call itself
            return found
