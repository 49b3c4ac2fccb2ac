"""One file per mechanism: how it publishes beside how it estimates."""

from voile.mechanisms.alphabeta import AlphaBeta
from voile.mechanisms.publishing import Publishing
from voile.mechanisms.series import Series
from voile.mechanisms.shaped import Shaped

__all__ = ["AlphaBeta", "Publishing", "Series", "Shaped"]
