"""What a ledger stores and guarantees, in any database.

An *entry* is one answer about the data, and one charge: the same row of the same table. So there
are as many charges as answers, also if the process is killed, and at most `queries` of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from voile.errors import VoileError
from voile.records import Record

Role = Literal["analyst", "admin"]

LOST = '{"lost": true}'
"""The question of an entry that stands for one that is lost; its answer is null."""
STEWARD = "steward"
"""The name in the log for changes of people and budgets by commands."""
EVERYONE = "the server"
"""The owner of the budget T."""


class ExhaustedError(VoileError):
    """A budget does not suffice for the question. Says which budget, and nothing about the data."""

    def __init__(self, whose: str, needed: int, left: int) -> None:
        more = (
            "there will never be more, for anybody"
            if whose == EVERYONE
            else "ask the server's steward for more"
        )
        super().__init__(
            f"the question needs {needed:,} of the budget of {whose}, which has {left:,} left",
            hint=f"questions that were answered before are free; {more}",
        )
        self.whose, self.needed, self.left = whose, needed, left


class LedgerError(VoileError):
    """The ledger cannot be written or read now, and no answer is given.

    Nothing was charged; or a commit is in doubt, and then the answer is kept for the same question.
    `lasting` says that the problem will not pass by itself.
    """

    def __init__(self, message: str, *, hint: str = "", lasting: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.lasting = lasting


class WouldWaitError(Exception):
    """What was to be done at once cannot be: it would wait for a disk, a lock or another thread."""


class RolledBackError(VoileError):
    """The ledger is older than the counter says: a backup was restored, or entries are gone."""


@dataclass(frozen=True)
class Entry:
    """One answer about the data, and one charge."""

    key: str
    """SHA-256, in hex, of the canonical question: equal questions have equal keys."""
    question: str
    """What was asked, as canonical JSON (voile.serve.question)."""
    answer: str
    """The noisy whole numbers that were answered, as JSON."""


@dataclass(frozen=True)
class StoredEntry:
    """An entry in the ledger."""

    number: int
    """1, 2, 3, … without gaps."""
    entry: Entry
    analyst: str
    at: float
    """Seconds since 1970; never less than that of the entry before."""
    digest: str
    """SHA-256, in hex, of the digest before and all of this row: a chain."""
    group: str | None = None
    """The group that was charged too."""

    @property
    def lost(self) -> bool:
        """Charged for an answer that the ledger does not know any more (`recover`)."""
        return self.entry.question == LOST


@dataclass(frozen=True)
class Budget(Record):
    """How many entries there may be and are: of the server, of a group, of an analyst."""

    json_keys = ("queries", "used", "remaining=left")

    queries: int
    used: int

    @property
    def left(self) -> int:
        """How many more entries it allows."""
        return max(0, self.queries - self.used)


@dataclass(frozen=True)
class Budgets:
    """All budgets that bind one analyst; `left` is that of the tightest."""

    everyone: Budget
    analyst: Budget | None = None
    group: Budget | None = None

    @property
    def left(self) -> int:
        """How many more entries all of them allow."""
        return min(b.left for b in (self.everyone, self.analyst, self.group) if b)


@dataclass(frozen=True)
class ChargeResult:
    """What recording a question's entries did."""

    kept: Mapping[str, StoredEntry]
    """By key, those that had been there before too."""
    charged: int
    budgets: Budgets


@dataclass(frozen=True)
class Identity:
    """The owner of a token, and what the token allows."""

    token: str
    """The token's public id, never the token."""
    name: str
    role: Role
    scopes: frozenset[str]
    """Of "query", "budget", "admin"."""
    expires: float | None = None
    """In seconds since 1970; never if none."""


@dataclass(frozen=True)
class Event:
    """A line of the audit log."""

    at: float
    who: str
    what: str
    """A word: answered, repeated, refused, token, revoked, group, recovered, started …"""
    detail: Mapping[str, Any] = field(default_factory=dict)


class Ledger(ABC):
    """All methods may be called from any thread; what they return is on disk."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ answers

    @abstractmethod
    def find(self, keys: Sequence[str]) -> dict[str, StoredEntry]:
        """Which of these questions were answered before."""

    @abstractmethod
    def record(self, analyst: str, entries: Sequence[Entry]) -> ChargeResult:
        """Charge all entries, or none: durable when this returns.

        Those whose key is there already are not charged again, and the kept answer is returned.
        Raises ExhaustedError if a budget does not suffice for the rest; then nothing was written.
        """

    def recording(self, analyst: str, entries: Sequence[Entry]) -> Future[ChargeResult]:
        """Begin to `record`; what it gives, or raises, is in the future once all is on disk."""
        found: Future[ChargeResult] = Future()
        try:
            found.set_result(self.record(analyst, entries))
        except Exception as error:
            found.set_exception(error)
        return found

    @abstractmethod
    def budgets(self, analyst: str) -> Budgets:
        """The budgets that bind an analyst, with what is used of each."""

    @abstractmethod
    def entries(self, after: int = 0, most: int = 1000) -> list[StoredEntry]:
        """Entries by number, for the log and the audit."""

    # ------------------------------------------------------------------ people

    @abstractmethod
    def identify(self, token: str) -> Identity | None:
        """The owner of a token that is valid now; None if it is wrong, expired or revoked."""

    @abstractmethod
    def issue(
        self,
        analyst: str,
        *,
        queries: int | None = None,
        group: str | None = None,
        role: Role = "analyst",
        scopes: frozenset[str] | None = None,
        seconds: float | None = None,
        by: str = STEWARD,
    ) -> tuple[str, Identity]:
        """A new token, and whose it is; the token itself is kept nowhere.

        `queries` sets the analyst's budget (None leaves it; a new analyst then has no own one),
        `group` the group, `seconds` when the token expires; `by` is who the log says made it.
        """

    @abstractmethod
    def revoke(
        self, *, token: str | None = None, analyst: str | None = None, by: str = STEWARD
    ) -> int:
        """Revoke one token by its id, or all of an analyst; how many that were."""

    @abstractmethod
    def set_group(self, name: str, queries: int, *, by: str = STEWARD) -> None:
        """Make a group, or change its budget."""

    @abstractmethod
    def people(self) -> list[dict[str, Any]]:
        """name, role, group, queries, used, tokens (id, created, expires, revoked, scopes)."""

    @abstractmethod
    def groups(self) -> list[dict[str, Any]]:
        """name, queries, used."""

    # ------------------------------------------------------------------ the log

    @abstractmethod
    def note(self, who: str, what: str, **detail: Any) -> None:
        """Put a line into the audit log soon; does not wait for the disk, and never fails."""

    @abstractmethod
    def events(
        self,
        before: int | None = None,
        most: int = 100,
        *,
        who: str | None = None,
        what: str | None = None,
    ) -> list[tuple[int, Event]]:
        """The newest lines of the log, newest first: of all, or of one analyst, or of one word."""

    # ------------------------------------------------------------------ its health

    @abstractmethod
    def check(self) -> None:
        """Raises LedgerError if no answer could be charged now."""

    def at_once(self) -> AbstractContextManager[None]:
        """A block in which this thread's reads never wait: they raise `WouldWaitError` instead."""
        raise WouldWaitError

    @abstractmethod
    def close(self) -> None:
        """Write what is waiting, and release locks and connections."""
