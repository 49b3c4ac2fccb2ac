"""The chain that entries form: each one's digest covers the one before, so none can be missing.

Whoever has the newest digest can tell whether a ledger leads to it. That needs no secret, and does
not stop anyone who may write the ledger from writing a whole new one: what does is a digest that
is kept elsewhere (`voile.serve.ledger.counter`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from voile.serve.ledger.base import Entry, Kept, RolledBackError


@dataclass(frozen=True)
class Head:
    """How far a ledger has come: its newest entry's number and digest."""

    number: int
    digest: str


def genesis(server: str) -> Head:
    """Before the first entry; every server has its own."""
    return Head(0, hashlib.sha256(f"voile ledger {server}".encode()).hexdigest())


def link(before: Head, entry: Entry, *, analyst: str, group: str | None, at: float) -> Kept:
    """The entry that follows."""
    number = before.number + 1
    row = [before.digest, number, entry.key, entry.question, entry.answer, analyst, group, at]
    digest = hashlib.sha256(json.dumps(row, separators=(",", ":")).encode()).hexdigest()
    return Kept(number, entry, analyst, at, digest, group)


def follow(head: Head, entries: Iterable[Kept]) -> Head:
    """Where the entries lead from here; raises if one does not follow the one before."""
    for kept in entries:
        due = link(head, kept.entry, analyst=kept.analyst, group=kept.group, at=kept.at)
        if kept != due:
            raise RolledBackError(
                f"entry {kept.number:,} of the ledger does not follow entry {head.number:,}: the "
                "ledger was changed",
                hint="put back the newest backup of the ledger that is whole, and run "
                "voile serve recover",
            )
        head = Head(kept.number, kept.digest)
    return head
