"""Machine code for loops that NumPy cannot vectorise; Numba is loaded when one is first called.

Importing Numba takes longer than most questions take to answer, and most questions need none of
these loops. Those that also run where there is no Numba, such as on the executors of a cluster,
name a function of NumPy that does the same.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast, overload

from voile.errors import VoileError

F = TypeVar("F", bound=Callable[..., Any])
LOCK = threading.RLock()


class NumbaMissingError(VoileError, ImportError):
    """A loop is to be compiled, and Numba cannot be imported."""


@overload
def compiled(function: F) -> F: ...


@overload
def compiled(*, instead: F) -> Callable[[F], F]: ...


def compiled(function: Any = None, *, instead: Any = None) -> Any:
    """Compile on first use, keep the result on disk, and let other threads run meanwhile.

    `instead` is called where Numba cannot be imported: it does the same, bit by bit.
    """
    if function is None:
        return functools.partial(Kernel, instead=instead)
    return Kernel(function, instead)


class Kernel:
    """A function that is compiled when it is first called."""

    def __init__(self, function: FunctionType, instead: Callable[..., Any] | None = None) -> None:
        self.py_func = function
        self.instead = instead
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.machine_code(*arguments, **named)

    @functools.cached_property
    def machine_code(self) -> Callable[..., Any]:
        """Numba's function; kernels that it calls are handed to Numba as Numba's own.

        Where there is no Numba, what stands in for it.
        """
        try:
            import numba  # noqa: PLC0415  (takes half a second)
        except ImportError as error:
            return self._stand_in(error)

        with LOCK:
            names = self.py_func.__globals__
            for name in self.py_func.__code__.co_names:
                if isinstance(names.get(name), Kernel) and names[name] is not self:
                    names[name] = names[name].machine_code
            found = translated(numba, self.py_func)
            if names.get(self.py_func.__name__) is self:
                names[self.py_func.__name__] = found  # so that it may call itself
            return found

    def _stand_in(self, error: ImportError) -> Callable[..., Any]:
        if self.instead is None:
            raise NumbaMissingError(
                f"{self.py_func.__module__}.{self.py_func.__name__} needs the package numba",
                hint=f"pip install 'voile[publish]'; numba could not be imported: {error}",
            ) from error
        return self.instead


def translated(numba: Any, function: FunctionType) -> Callable[..., Any]:
    """Numba's function, kept on disk unless there is no file beside which to keep it."""
    try:
        return cast(Callable[..., Any], numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # modules that a job brought to a server lie in memory
        return cast(Callable[..., Any], numba.njit(nogil=True)(function))
