"""The durable record of what was answered, to whom, and who may still ask how much."""

from __future__ import annotations

from voile.serve.ledger.base import (
    Budget,
    Budgets,
    ChargeResult,
    Entry,
    Event,
    ExhaustedError,
    Identity,
    Ledger,
    LedgerError,
    RolledBackError,
    StoredEntry,
)
from voile.serve.ledger.sql_ledger import Recovery, begin_ledger, open_ledger, recover

# Names that older programs import.
Kept = StoredEntry
Recorded = ChargeResult
Recovered = Recovery

__all__ = [
    "Budget",
    "Budgets",
    "ChargeResult",
    "Entry",
    "Event",
    "ExhaustedError",
    "Identity",
    "Kept",
    "Ledger",
    "LedgerError",
    "Recorded",
    "Recovered",
    "Recovery",
    "RolledBackError",
    "StoredEntry",
    "begin_ledger",
    "open_ledger",
    "recover",
]
