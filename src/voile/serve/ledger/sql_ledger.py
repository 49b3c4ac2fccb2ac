"""The ledger of a server in an SQL database: group commits, and the counter before any answer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from voile.errors import UsageError, VoileError
from voile.files import exclusive
from voile.serve.ledger import postgres, sqlite
from voile.serve.ledger.accounts import (
    TokenOptions,
    issue_token,
    look_up,
    make_token,
    read_groups,
    read_people,
    revoke_all,
    revoke_tokens,
    write_group,
)
from voile.serve.ledger.base import (
    STEWARD,
    Budgets,
    ChargeResult,
    Entry,
    Event,
    Identity,
    Ledger,
    LedgerError,
    Role,
    RolledBackError,
    StoredEntry,
    WouldWaitError,
)
from voile.serve.ledger.counter import Counter, counter_path
from voile.serve.ledger.entries import (
    Head,
    all_entries,
    charge,
    charge_lost,
    charged_lost,
    find_entries,
    follow,
    genesis,
    newest_head,
    read_budgets,
    read_entries,
)
from voile.serve.ledger.store import LedgerStore, Run, T, Work, create
from voile.serve.setting import FILE, LEDGER, Setting
from voile.web.writer import GroupWriter, WriterLimits

Job = Callable[[Run], Any]
Place = Literal["alone", "first", "beside"]
"""Of a process that answers: the only one of its server; the one that has locked the folder for
all; or one beside that."""
TOGETHER = WriterLimits(group=256, soon=10_000, later=0.1)
"""Jobs of one transaction, and lines of the log that may wait to be committed with a job."""
LOCK = "lock"
LONGEST = 200
"""Characters of a name that are kept."""
INSERT_EVENT = """
INSERT INTO events (number, at, who, what, detail)
SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ? FROM events
"""
LATEST_TIME = """
SELECT max(at) FROM (
  SELECT max(at) AS at FROM entries UNION ALL SELECT max(at) FROM events
  UNION ALL SELECT max(created) FROM tokens UNION ALL SELECT max(revoked) FROM tokens
) AS times
"""


class Clock:
    """Seconds since 1970, never less than what was seen before: an expired token stays so."""

    def __init__(self, seen: float) -> None:
        self._seen = seen
        self._lock = threading.Lock()

    def now(self) -> float:
        """The time now, or the latest time seen if the system's clock was set back."""
        with self._lock:
            self._seen = max(self._seen, time.time())
            return self._seen


def latest_time(run: Run) -> float:
    """The latest time that the ledger knows of."""
    return float(run(LATEST_TIME)[0][0] or 0.0)


def add_event(run: Run, event: Event) -> None:
    """Write a line of the audit log."""
    detail = json.dumps({k: storable_value(v) for k, v in event.detail.items()}, default=str)
    run(INSERT_EVENT, event.at, storable(event.who), storable(event.what), detail)


def storable_value(value: object) -> object:
    """A value of an event's detail, with texts made storable."""
    return storable(value) if isinstance(value, str) else value


def storable(text: str) -> str:
    """The text, with escapes for what a database cannot keep or a terminal would obey."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:LONGEST]
    )


def read_events(
    run: Run, before: int | None, most: int, who: str | None = None, what: str | None = None
) -> list[tuple[int, Event]]:
    """The newest first; of everybody and of every kind where that is not said."""
    wanted = {"who = ?": who, "what = ?": what}
    given = {test: value for test, value in wanted.items() if value is not None}
    tests = " AND ".join(["number < ?", *given])
    rows = run(
        f"SELECT number, at, who, what, detail FROM events WHERE {tests} "
        "ORDER BY number DESC LIMIT ?",
        2**62 if before is None else before,
        *given.values(),
        most,
    )
    return [(n, Event(at, who, what, json.loads(detail))) for n, at, who, what, detail in rows]


# ---------------------------------------------------------------------- ledger
# The ledger of a server, on any store: group commits, and the counter before any answer.


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
        self._clock = Clock(store.read(latest_time))
        self._logged_expired: set[str] = set()
        self._hurried = threading.local()
        self._writer: GroupWriter[Job, Any] = GroupWriter(
            self._commit, TOGETHER, name="voile-ledger", refusal=stopping
        )

    def close(self) -> None:
        """Write what is waiting, then release locks and connections."""
        self._writer.close()
        self._held.close()

    # ------------------------------------------------------------------ answers

    def find(self, keys: Sequence[str]) -> dict[str, StoredEntry]:
        """Entries by key, once the counter covers them."""
        found = self._read(lambda run: find_entries(run, keys))
        self._settle(max((kept.number for kept in found.values()), default=0))
        return found

    def record(self, analyst: str, entries: Sequence[Entry]) -> ChargeResult:
        """Charge in a group commit with other threads' jobs, then advance the counter."""
        return self.recording(analyst, entries).result()

    def recording(self, analyst: str, entries: Sequence[Entry]) -> Future[ChargeResult]:
        """Hand the charge to the thread that commits; nobody need wait beside it."""
        if self._counter is None:
            raise UsageError(
                "this ledger was opened for its steward, not for answering",
                hint="open it with serving=True",
            )
        return self._writer.add(
            lambda run: charge(run, self._setting, analyst, entries, self._clock.now())
        )

    def budgets(self, analyst: str) -> Budgets:
        """The budgets that bind an analyst, with what is used of each."""
        return self._read(lambda run: read_budgets(run, self._setting, analyst))

    def entries(self, after: int = 0, most: int = 1000) -> list[StoredEntry]:
        """Entries by number, once the counter covers them."""
        found = self._store.read(lambda run: read_entries(run, after, most))
        self._settle(found[-1].number if found else 0)
        return found

    # ------------------------------------------------------------------ people

    def identify(self, token: str) -> Identity | None:
        """Whose valid token it is; the first use of an expired one is logged."""
        seen = self._read(lambda run: look_up(run, token, self._clock.now()))
        if seen is None or seen.revoked:
            return None
        if seen.expired:
            self._log_expired(seen.identity)
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
        """Make a token and log who made it, in one transaction."""
        options = TokenOptions.of(analyst, queries, group, role, scopes, seconds)
        made = make_token()

        def job(run: Run) -> Identity:
            now = self._clock.now()
            identity = issue_token(run, options, made, now)
            detail = {"analyst": analyst, "id": made.id, "role": role, "queries": queries}
            add_event(run, Event(now, by, "token", detail | {"group": group}))
            return identity

        return made.token, cast("Identity", self._do(job))

    def revoke(
        self, *, token: str | None = None, analyst: str | None = None, by: str = STEWARD
    ) -> int:
        """Revoke tokens and log who did, in one transaction."""

        def job(run: Run) -> int:
            now = self._clock.now()
            gone = revoke_tokens(run, token, analyst, now)
            add_event(run, Event(now, by, "revoked", {"ids": gone}))
            return len(gone)

        return cast("int", self._do(job))

    def set_group(self, name: str, queries: int, *, by: str = STEWARD) -> None:
        """Set a group's budget and log who did, in one transaction."""

        def job(run: Run) -> None:
            write_group(run, name, queries)
            detail = {"name": name, "queries": queries}
            add_event(run, Event(self._clock.now(), by, "group", detail))

        self._do(job)

    def people(self) -> list[dict[str, Any]]:
        """Analysts by name, each with their tokens."""
        return self._store.read(lambda run: read_people(run, self._clock.now()))

    def groups(self) -> list[dict[str, Any]]:
        """Groups by name, with their budgets."""
        return self._store.read(read_groups)

    # ------------------------------------------------------------------ the log

    def note(self, who: str, what: str, **detail: Any) -> None:
        """Queue a line for the audit log; it is dropped if too many are waiting."""
        self._writer.add_soon(logging(Event(self._clock.now(), who, what, detail)))

    def events(
        self,
        before: int | None = None,
        most: int = 100,
        *,
        who: str | None = None,
        what: str | None = None,
    ) -> list[tuple[int, Event]]:
        """Lines of the audit log with their numbers, newest first."""
        return self._store.read(lambda run: read_events(run, before, most, who, what))

    # ------------------------------------------------------------------ behind it

    def check(self) -> None:
        """Commit an empty job, as a charge would be."""
        self._do(lambda _: None)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """This thread's reads do not wait inside the block, and see one moment's state."""
        with self._store.glancing() as run:
            self._hurried.run = run
            try:
                yield
            finally:
                self._hurried.run = None

    @property
    def _glance(self) -> Run | None:
        found: Run | None = getattr(self._hurried, "run", None)
        return found

    def _read(self, work: Work[T]) -> T:
        return self._store.read(work) if (run := self._glance) is None else work(run)

    def _do(self, job: Job) -> Any:
        """Wait until the job is done and on disk."""
        return self._writer.add(job).result()

    def _commit(self, jobs: Sequence[Job]) -> list[Any]:
        """All jobs in one transaction, then the counter: only then are outcomes given out."""

        def work(run: Run) -> tuple[list[Any], Head]:
            outcomes = [attempt(run, job, self._store.spoils) for job in jobs]
            return outcomes, newest_head(run, self._setting.id)

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
            if self._glance is not None:
                raise WouldWaitError
            self._do(lambda _: None)  # which looks at the counter, and moves it on if need be

    def _log_expired(self, identity: Identity) -> None:
        """Log once that a token has expired: its time is then known if the clock is set back."""
        if identity.token not in self._logged_expired:
            self._logged_expired.add(identity.token)
            self.note(identity.name, "expired", id=identity.token)


def stopping(_: bool) -> VoileError:
    """The refusal of a job that comes after the ledger was closed."""
    return LedgerError("the server is stopping", hint="try again later")


def attempt(run: Run, job: Job, spoils: Callable[[Exception], bool]) -> Any:
    """What a job gives, or its refusal: then nothing of it stays, and the others go on.

    An error that `spoils` the whole transaction is for all of them.
    """
    run("SAVEPOINT job")
    try:
        outcome = job(run)
    except VoileError as error:
        run("ROLLBACK TO SAVEPOINT job")
        outcome = error
    except Exception as error:
        if spoils(error):
            raise
        run("ROLLBACK TO SAVEPOINT job")
        outcome = LedgerError(f"the ledger cannot take this: {error}", hint="ask in other words")
    run("RELEASE SAVEPOINT job")
    return outcome


def logging(event: Event) -> Callable[[Run], None]:
    """A job that writes one line of the audit log."""
    return lambda run: add_event(run, event)


# ---------------------------------------------------------------------- opening
# Beginning, opening and recovering a server's ledger: the right one, and complete.


UNKNOWN = Head(-1, "")
"""The head that stands for a counter that is gone."""


@dataclass(frozen=True)
class Recovery:
    """What going on with a ledger cost."""

    lost: int
    """Answers charged that the ledger does not know any more."""
    revoked: int
    """Tokens that were valid."""


def begin_ledger(folder: Path, setting: Setting) -> None:
    """Make an empty ledger, and the counter that says so."""
    counter = counter_of(folder, setting)
    if not counter.path.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(counter.path.parent)!r} for the counter",
            hint="make it first",
        )
    if counter.path.exists():
        raise UsageError(
            f"{str(counter.path)!r} exists already", hint="every server has a counter of its own"
        )
    make_tables(folder, setting)
    counter.create(genesis(setting.id))


def open_ledger(
    folder: Path, setting: Setting, *, serving: bool = False, place: Place = "alone"
) -> Ledger:
    """Open a ledger for its steward's commands, or for answering: then checked, and locked."""
    with ExitStack() as stack:
        counter = counter_of(folder, setting)
        counter.shared = place != "alone"
        if serving and place != "beside":
            keep_others_out(stack, folder, counter)
        store = open_store(folder, setting, checkpoints=serving)
        stack.callback(store.close)
        store.read(lambda run: check_same(run, setting, folder))
        if serving:
            counter.advance(store.read(lambda run: checked_head(run, setting, counter)))
        return SqlLedger(store, setting, counter if serving else None, stack.pop_all())


def recover(folder: Path, setting: Setting, *, ledger_is_whole: bool = False) -> Recovery:
    """Accept a ledger that the counter does not agree with.

    As many answers as may be missing are charged (all that are left if there is no counter), and
    every token is revoked, since it may have been revoked before. `ledger_is_whole` says that
    nothing is missing, because the counter alone was lost.
    """
    with ExitStack() as stack:
        counter = counter_of(folder, setting)
        keep_others_out(stack, folder, counter)
        said = counter.read() or UNKNOWN
        if not is_there(folder, setting):
            make_tables(folder, setting)
        store = open_store(folder, setting, checkpoints=True)
        stack.callback(store.close)

        def accept(run: Run) -> tuple[Recovery, Head]:
            check_same(run, setting, folder)
            head = whole_head(run, setting)
            now = Clock(latest_time(run)).now()
            agrees = ledger_is_whole or leads_to(run, setting, said)
            again = charged_lost(run, said)  # and then killed before the counter moved
            lost = 0 if agrees or again else missing(setting, said, head)
            charge_lost(run, setting, said, lost, now)
            revoked = 0 if agrees else revoke_all(run, now)
            detail = {"lost": lost, "agreed": agrees, "revoked": revoked}
            add_event(run, Event(now, STEWARD, "recovered", detail))
            return Recovery(lost, revoked), newest_head(run, setting.id)

        done, head = store.write(accept)
        if said == UNKNOWN:
            counter.create(head)
        else:
            counter.advance(head)
        return done


def counter_of(folder: Path, setting: Setting) -> Counter:
    """The counter of a server's ledger."""
    return Counter(counter_path(folder, setting), setting.id)


def make_tables(folder: Path, setting: Setting) -> None:
    """Make the tables of an empty ledger where the setting says."""

    def fill(run: Run) -> None:
        create(run, setting)

    if setting.ledger:
        postgres.begin_postgres(setting, fill)
    else:
        sqlite.begin_sqlite(folder / LEDGER, fill)


def is_there(folder: Path, setting: Setting) -> bool:
    """Whether the ledger exists where the setting says."""
    if setting.ledger:
        return postgres.exists(setting.ledger, setting.id)
    return (folder / LEDGER).exists()


def open_store(folder: Path, setting: Setting, *, checkpoints: bool) -> LedgerStore:
    """`checkpoints`: whether this process tidies up SQLite's log. One process does at a time."""
    if setting.ledger:
        return postgres.PostgresStore(setting.ledger, setting.id)
    path = folder / LEDGER
    if not path.exists():
        raise RolledBackError(
            f"the ledger {str(path)!r} is gone",
            hint="put its newest backup back, and run voile serve recover",
        )
    return sqlite.SqliteStore(path, checkpoints=checkpoints)


def keep_others_out(stack: ExitStack, folder: Path, counter: Counter) -> None:
    """Lock the folder, and the counter: a copy of the folder may share it."""
    stack.enter_context(locked(folder / LOCK, f"the folder {str(folder)!r}"))
    beside = counter.path.with_name(f"{counter.path.name}.lock")
    stack.enter_context(locked(beside, f"the counter {str(counter.path)!r}"))


def locked(path: Path, what: str) -> AbstractContextManager[None]:
    """Hold the lock file, or refuse because another server does."""
    return exclusive(
        path,
        busy=UsageError(
            f"another server is using {what}", hint="stop it first; one serves at a time"
        ),
        unwritable="a server writes its ledger and its counter: give it the right to",
    )


def check_same(run: Run, setting: Setting, folder: Path) -> None:
    """Refuse a ledger of another server, and a setting that is not the one it was begun with."""
    server, queries, fingerprint = run("SELECT server, queries, setting FROM about")[0]
    if server != setting.id:
        raise UsageError("the ledger is of another server", hint="put the right one back")
    if queries != setting.queries:
        raise UsageError(
            f"the server was begun with {queries:,} answers, not {setting.queries:,}",
            hint="what a server was begun with is never changed: begin another",
        )
    if fingerprint != setting.fingerprint():
        raise UsageError(
            f"{str(folder / FILE)!r} is not as the server was begun: somebody changed it",
            hint="restore it from a backup; what a server was begun with is never changed",
        )


def whole_head(run: Run, setting: Setting) -> Head:
    """The newest entry, after looking whether every one follows the one before."""
    return follow(genesis(setting.id), all_entries(run))


def checked_head(run: Run, setting: Setting, counter: Counter) -> Head:
    """The newest entry of a ledger that has lost nothing."""
    head = whole_head(run, setting)
    check_counter(run, setting, counter, head)
    return head


def leads_to(run: Run, setting: Setting, said: Head) -> bool:
    """Whether the ledger has the entry that the counter says was the newest."""
    if said.number == 0:
        return said == genesis(setting.id)
    found = run("SELECT digest FROM entries WHERE number = ?", said.number)
    return bool(found) and found[0][0] == said.digest


def check_counter(run: Run, setting: Setting, counter: Counter, head: Head) -> None:
    """Refuse a ledger that does not lead to the counter. After a crash it may be ahead of it."""
    said = counter.read()
    if said is None:
        raise RolledBackError(
            f"the counter {str(counter.path)!r} is gone, so it is unknown whether the ledger "
            "is the newest",
            hint="put the counter back as it was last; `voile serve recover` charges all answers "
            "that are left; if no older ledger was put back, "
            "`voile serve recover --ledger-is-whole` charges none",
        )
    if said.number > head.number:
        raise RolledBackError(
            f"the ledger has {head.number:,} entries, but {said.number:,} answers were given: an "
            "old copy was put back",
            hint="put the newest ledger back, or let voile serve recover charge what is missing",
        )
    if not leads_to(run, setting, said):
        raise RolledBackError(
            f"entry {said.number:,} of the ledger is not the one that the counter knows: another "
            "copy was continued",
            hint="put the right ledger back, or let voile serve recover charge what may be missing",
        )


def missing(setting: Setting, said: Head, head: Head) -> int:
    """How many entries may be missing from this ledger, up to T.

    Where it is behind the counter, the difference. Where another copy was continued, it is unknown
    from which entry on, so all that the counter has seen.
    """
    left = setting.queries - head.number
    if said == UNKNOWN:
        return left
    return min(left, said.number - head.number if said.number > head.number else said.number)
