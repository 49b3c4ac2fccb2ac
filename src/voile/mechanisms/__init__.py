"""One file per mechanism: how it publishes beside how it estimates."""

from voile.mechanisms.alphabeta import AlphaBeta

__all__ = ["AlphaBeta"]
