"""The durable record of what was answered, to whom, and who may still ask how much."""

from __future__ import annotations

from voile.serve.ledger.base import (
    Budget,
    Budgets,
    Entry,
    Event,
    ExhaustedError,
    Identity,
    Kept,
    Ledger,
    LedgerError,
    Recorded,
    RolledBackError,
)
from voile.serve.ledger.sql_ledger import Recovered, begin_ledger, open_ledger, recover

__all__ = [
    "Budget",
    "Budgets",
    "Entry",
    "Event",
    "ExhaustedError",
    "Identity",
    "Kept",
    "Ledger",
    "LedgerError",
    "Recorded",
    "Recovered",
    "RolledBackError",
    "begin_ledger",
    "open_ledger",
    "recover",
]
