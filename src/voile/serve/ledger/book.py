"""The ledger of a server, on any store: group commits, and the counter before any answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, cast

from voile.errors import UsageError
from voile.serve.ledger import charging, log
from voile.serve.ledger import people as persons
from voile.serve.ledger.base import (
    STEWARD,
    Budgets,
    Entry,
    Event,
    Identity,
    Kept,
    Ledger,
    Recorded,
    Role,
)
from voile.serve.ledger.chain import Head
from voile.serve.ledger.counter import Counter
from voile.serve.ledger.log import Clock
from voile.serve.ledger.store import LedgerStore
from voile.serve.ledger.tables import Run
from voile.serve.ledger.tokens import make
from voile.serve.ledger.writer import Job, Writer, attempt
from voile.serve.setting import Setting


class SqlLedger(Ledger):
    """A ledger that is open: for answering if it has the counter, else for its steward."""

    def __init__(
        self, store: LedgerStore, setting: Setting, counter: Counter | None, held: ExitStack
    ) -> None:
        self._store = store
        self._setting = setting
        self._counter = counter
        self._held = held
        """What is to be let go at the end: locks, connections."""
        self._clock = Clock(store.read(log.latest_time))
        self._told_expired: set[str] = set()
        self._writer = Writer(self._commit)

    def close(self) -> None:
        self._writer.close()
        self._held.close()

    # ------------------------------------------------------------------ answers

    def find(self, keys: Sequence[str]) -> dict[str, Kept]:
        found = self._store.read(lambda run: charging.find(run, keys))
        self._settle(max((kept.number for kept in found.values()), default=0))
        return found

    def record(self, analyst: str, entries: Sequence[Entry]) -> Recorded:
        if self._counter is None:
            raise UsageError(
                "this ledger was opened for its steward, not for answering",
                hint="open it with serving=True",
            )
        return cast(
            "Recorded",
            self._writer.do(
                lambda run: charging.charge(run, self._setting, analyst, entries, self._clock.now())
            ),
        )

    def budgets(self, analyst: str) -> Budgets:
        return self._store.read(lambda run: charging.budgets(run, self._setting, analyst))

    def entries(self, after: int = 0, most: int = 1000) -> list[Kept]:
        found = self._store.read(lambda run: charging.entries(run, after, most))
        self._settle(found[-1].number if found else 0)
        return found

    # ------------------------------------------------------------------ people

    def identify(self, token: str) -> Identity | None:
        seen = self._store.read(lambda run: persons.look_up(run, token, self._clock.now()))
        if seen is None or seen.revoked:
            return None
        if seen.expired:
            self._tell_expired(seen.identity)
            return None
        return seen.identity

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
        wish = persons.TokenOptions.of(analyst, queries, group, role, scopes, seconds)
        made = make()

        def job(run: Run) -> Identity:
            now = self._clock.now()
            identity = persons.issue(run, wish, made, now)
            detail = {"analyst": analyst, "id": made.id, "role": role, "queries": queries}
            log.add_event(run, Event(now, by, "token", detail | {"group": group}))
            return identity

        return made.token, cast("Identity", self._writer.do(job))

    def revoke(
        self, *, token: str | None = None, analyst: str | None = None, by: str = STEWARD
    ) -> int:
        def job(run: Run) -> int:
            now = self._clock.now()
            gone = persons.revoke(run, token, analyst, now)
            log.add_event(run, Event(now, by, "revoked", {"ids": gone}))
            return len(gone)

        return cast("int", self._writer.do(job))

    def set_group(self, name: str, queries: int, *, by: str = STEWARD) -> None:
        def job(run: Run) -> None:
            persons.set_group(run, name, queries)
            detail = {"name": name, "queries": queries}
            log.add_event(run, Event(self._clock.now(), by, "group", detail))

        self._writer.do(job)

    def people(self) -> list[dict[str, Any]]:
        return self._store.read(lambda run: persons.people(run, self._clock.now()))

    def groups(self) -> list[dict[str, Any]]:
        return self._store.read(persons.groups)

    # ------------------------------------------------------------------ the log

    def note(self, who: str, what: str, **detail: Any) -> None:
        self._writer.do_soon(logging(Event(self._clock.now(), who, what, detail)))

    def events(self, before: int | None = None, most: int = 100) -> list[tuple[int, Event]]:
        return self._store.read(lambda run: log.read_events(run, before, most))

    # ------------------------------------------------------------------ behind it

    def check(self) -> None:
        self._writer.do(lambda _: None)

    def _commit(self, jobs: Sequence[Job]) -> list[Any]:
        """All jobs in one transaction, then the counter: only then may anyone hear of it."""

        def work(run: Run) -> tuple[list[Any], Head]:
            outcomes = [attempt(run, job, self._store.spoils) for job in jobs]
            return outcomes, charging.head(run, self._setting.id)

        outcomes, head = self._store.write(work)
        if self._counter is not None and head.number > self._counter.head.number:
            self._counter.advance(head)
        return outcomes

    def _settle(self, number: int) -> None:
        """Wait until the counter has come this far, so that what is shown stays.

        It may not have if another thread's commit is just done, if the counter could not be
        written then, or if another server shares the ledger.
        """
        if self._counter is not None and number > self._counter.head.number:
            self._writer.do(lambda _: None)

    def _tell_expired(self, identity: Identity) -> None:
        """Put into the log, once, that the time has come: it stays so if the clock is set back."""
        if identity.token not in self._told_expired:
            self._told_expired.add(identity.token)
            self.note(identity.name, "expired", id=identity.token)


def logging(event: Event) -> Callable[[Run], None]:
    return lambda run: log.add_event(run, event)
