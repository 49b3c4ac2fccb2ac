"""How a server's ledger is, looked at once in a while however often it is asked."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from voile.serve.ledger.base import LedgerError

if TYPE_CHECKING:
    from voile.serve.ledger.base import Ledger

BELIEVED = 1.0
"""Seconds for which it is believed how the ledger is."""


class LedgerHealth:
    """Whether a question could be charged, as it was a moment ago."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._looking = threading.Lock()
        self._at = -BELIEVED
        self._wrong: LedgerError | None = None

    def is_due(self) -> bool:
        """Whether it is time to look, and nobody is looking."""
        return time.monotonic() - self._at >= BELIEVED and not self._looking.locked()

    def look(self) -> None:
        """Try the ledger, which may take as long as its patience."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._ledger.check()
            self._wrong = None
        except LedgerError as error:
            self._wrong = error
        finally:
            self._at = time.monotonic()
            self._looking.release()

    def check(self) -> None:
        """Raises what was wrong."""
        if self._wrong is not None:
            raise LedgerError(
                self._wrong.message, hint=self._wrong.hint, lasting=self._wrong.lasting
            )
