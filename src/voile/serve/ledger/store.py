"""Where the tables of a ledger are: what SQLite and PostgreSQL each do in their own way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from voile.serve.ledger.tables import Run

PATIENCE = 10.0
"""Seconds to wait for another program that has locked the ledger, such as a backup."""

T = TypeVar("T")
Work = Callable[[Run], T]


class LedgerStore(ABC):
    """Transactions on the tables; whatever goes wrong is a LedgerError."""

    @abstractmethod
    def write(self, work: Work[T]) -> T:
        """One transaction, the only one at its time: on disk when this returns.

        Called by one thread. If this raises, nothing that the work did may be told to anyone.
        """

    @abstractmethod
    def read(self, work: Work[T]) -> T:
        """Look at one moment's state, from any thread."""

    @abstractmethod
    def spoils(self, error: Exception) -> bool:
        """Whether a transaction is of no use after this, and not only the statement it is of."""

    @abstractmethod
    def close(self) -> None: ...
