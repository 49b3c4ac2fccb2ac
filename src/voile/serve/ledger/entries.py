"""Entries of a ledger: the chain that they form, and how to charge one more.

Each entry's digest covers the one before, so none can be missing: the newest digest shows whether a
ledger leads to it. That needs no secret, and does not stop someone with write access from making a
whole new ledger; a digest that is kept elsewhere does (`voile.serve.ledger.counter`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from voile.serve.ledger.base import (
    EVERYONE,
    LOST,
    Budget,
    Budgets,
    ChargeResult,
    Entry,
    ExhaustedError,
    RolledBackError,
    StoredEntry,
)
from voile.serve.ledger.store import Run, marks
from voile.serve.setting import Setting


@dataclass(frozen=True)
class Head:
    """How far a ledger has come: its newest entry's number and digest."""

    number: int
    digest: str


def genesis(server: str) -> Head:
    """Before the first entry; every server has its own."""
    return Head(0, hashlib.sha256(f"voile ledger {server}".encode()).hexdigest())


def link(before: Head, entry: Entry, *, analyst: str, group: str | None, at: float) -> StoredEntry:
    """The entry that follows."""
    number = before.number + 1
    row = [before.digest, number, entry.key, entry.question, entry.answer, analyst, group, at]
    digest = hashlib.sha256(json.dumps(row, separators=(",", ":")).encode()).hexdigest()
    return StoredEntry(number, entry, analyst, at, digest, group)


def follow(head: Head, entries: Iterable[StoredEntry]) -> Head:
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


# ---------------------------------------------------------------------- charging
# Reading entries and budgets, and charging one more entry. All inside one transaction.


COLUMNS = "number, key, question, answer, analyst, at, digest, group_name"
INSERT = f"""
INSERT INTO entries ({COLUMNS}, nth, group_nth) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
CHUNK = 500
NOBODY = ""
"""The analyst that lost entries are charged to."""


def newest_head(run: Run, server: str) -> Head:
    """The newest entry, or what stands before the first."""
    found = run("SELECT number, digest FROM entries ORDER BY number DESC LIMIT 1")
    return Head(*found[0]) if found else genesis(server)


def kept_entry(row: tuple[Any, ...]) -> StoredEntry:
    """The entry that a row of the table holds."""
    number, key, question, answer, analyst, at, digest, group = row
    return StoredEntry(number, Entry(key, question, answer), analyst, at, digest, group)


def find_entries(run: Run, keys: Sequence[str]) -> dict[str, StoredEntry]:
    """Which of these questions were answered before."""
    found: dict[str, StoredEntry] = {}
    for start in range(0, len(keys), CHUNK):
        some = keys[start : start + CHUNK]
        rows = run(f"SELECT {COLUMNS} FROM entries WHERE key IN ({marks(some)})", *some)
        found |= {one.entry.key: one for one in map(kept_entry, rows)}
    return found


def read_entries(run: Run, after: int, most: int) -> list[StoredEntry]:
    """At most `most` entries with numbers above `after`, in order."""
    rows = run(
        f"SELECT {COLUMNS} FROM entries WHERE number > ? ORDER BY number LIMIT ?", after, most
    )
    return [kept_entry(row) for row in rows]


def all_entries(run: Run) -> Iterator[StoredEntry]:
    """From the first to the newest, some at a time."""
    after = 0
    while some := read_entries(run, after, 1000):
        yield from some
        after = some[-1].number


def used_by(run: Run, analyst: str) -> int:
    """How many entries were charged to an analyst."""
    return int(run("SELECT coalesce(max(nth), 0) FROM entries WHERE analyst = ?", analyst)[0][0])


def used_by_group(run: Run, group: str) -> int:
    """How many entries were charged to a group."""
    sql = "SELECT coalesce(max(group_nth), 0) FROM entries WHERE group_name = ?"
    return int(run(sql, group)[0][0])


def read_budgets(run: Run, setting: Setting, analyst: str) -> Budgets:
    """What bounds an analyst now."""
    return AnalystAccount(run, setting, analyst).budgets()


class AnalystAccount:
    """Where an analyst stands inside a transaction: how much is used, and of what."""

    def __init__(self, run: Run, setting: Setting, analyst: str) -> None:
        self.analyst = analyst
        self.head = newest_head(run, setting.id)
        self.used = used_by(run, analyst)
        found = run(
            "SELECT a.queries, a.group_name, g.queries FROM analysts a "
            "LEFT JOIN groups g ON g.name = a.group_name WHERE a.name = ?",
            analyst,
        )
        self.most = setting.queries
        self.own, self.group, self.group_most = found[0] if found else (None, None, None)
        self.group_used = 0 if self.group is None else used_by_group(run, self.group)

    def budgets(self) -> Budgets:
        """The budgets that bind the analyst, as of the last entry added."""
        return Budgets(
            everyone=Budget(self.most, self.head.number),
            analyst=None if self.own is None else Budget(self.own, self.used),
            group=None if self.group is None else Budget(self.group_most, self.group_used),
        )

    def check(self, needed: int) -> None:
        """Refuse more entries than the tightest budget has left."""
        now = self.budgets()
        named = (
            (now.everyone, EVERYONE),
            (now.group, f"the group {self.group!r}"),
            (now.analyst, f"{self.analyst!r}"),
        )
        left, whose = min(((b.left, name) for b, name in named if b), key=lambda pair: pair[0])
        if needed > left:
            raise ExhaustedError(whose, needed, left)

    def add(self, run: Run, entry: Entry, at: float) -> StoredEntry:
        """Write one entry: the charge and the answer are the same row."""
        one = link(self.head, entry, analyst=self.analyst, group=self.group, at=at)
        self.head = Head(one.number, one.digest)
        self.used += 1
        self.group_used += self.group is not None
        run(
            INSERT, one.number, entry.key, entry.question, entry.answer, self.analyst, at,
            one.digest, self.group, self.used, self.group_used if self.group else None,
        )  # fmt: skip
        return one


def not_before(run: Run, at: float) -> float:
    """A time that is no less than the newest entry's, whatever another server's clock said."""
    found = run("SELECT at FROM entries ORDER BY number DESC LIMIT 1")
    return max(at, found[0][0]) if found else at


def charge(
    run: Run, setting: Setting, analyst: str, entries: Sequence[Entry], at: float
) -> ChargeResult:
    """Write those that are new, if all budgets suffice."""
    by_key = {entry.key: entry for entry in entries}
    found = find_entries(run, list(by_key))
    new = [entry for key, entry in by_key.items() if key not in found]
    standing = AnalystAccount(run, setting, analyst)
    if new:
        standing.check(len(new))
        at = not_before(run, at)
    found |= {entry.key: standing.add(run, entry, at) for entry in new}
    return ChargeResult(found, len(new), standing.budgets())


def lost_key(said: Head, number: int) -> str:
    """Of one of the entries that stand for what was lost before the counter said this."""
    place = f"voile lost {said.number} {said.digest} {number}"
    return hashlib.sha256(place.encode()).hexdigest()


def charge_lost(run: Run, setting: Setting, said: Head, count: int, at: float) -> None:
    """Charge entries that the ledger does not know, so that their answers are counted."""
    standing = AnalystAccount(run, setting, NOBODY)
    at = not_before(run, at)
    for number in range(count):
        standing.add(run, Entry(lost_key(said, number), LOST, "null"), at)


def charged_lost(run: Run, said: Head) -> bool:
    """Whether what was lost before the counter said this has been charged already."""
    return bool(find_entries(run, [lost_key(said, 0)]))
