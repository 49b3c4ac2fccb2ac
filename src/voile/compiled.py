"""Machine code for the loops that NumPy has no words for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile on first use, keep the result on disk, and let other threads run meanwhile."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))
