"""Beginning, opening and recovering a server's ledger: is it the one, and all of it?"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from voile.errors import UsageError
from voile.serve.ledger import charging, log, postgres, sqlite
from voile.serve.ledger.base import STEWARD, Event, Ledger, RolledBackError
from voile.serve.ledger.book import SqlLedger
from voile.serve.ledger.chain import Head, follow, genesis
from voile.serve.ledger.counter import Counter, counter_path
from voile.serve.ledger.locks import LOCK, locked
from voile.serve.ledger.people import revoke_all
from voile.serve.ledger.store import LedgerStore
from voile.serve.ledger.tables import Run, create
from voile.serve.setting import FILE, LEDGER, Setting

UNKNOWN = Head(-1, "")
"""What a counter says that is gone."""


@dataclass(frozen=True)
class Recovered:
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


def open_ledger(folder: Path, setting: Setting, *, serving: bool = False) -> Ledger:
    """Open a ledger for its steward's commands, or for answering: then alone, and checked."""
    with ExitStack() as stack:
        counter = counter_of(folder, setting)
        if serving:
            keep_others_out(stack, folder, counter)
        store = open_store(folder, setting, checkpoints=serving)
        stack.callback(store.close)
        store.read(lambda run: check_same(run, setting, folder))
        if serving:
            counter.advance(store.read(lambda run: newest(run, setting, counter)))
        return SqlLedger(store, setting, counter if serving else None, stack.pop_all())


def recover(folder: Path, setting: Setting, *, ledger_is_whole: bool = False) -> Recovered:
    """Accept a ledger that the counter does not agree with.

    As many as may be missing are charged, all that are left if there is no counter to tell, and
    every token is revoked, since it may have been. Only who knows that nothing is missing, since
    the counter alone was lost, may say `ledger_is_whole`.
    """
    with ExitStack() as stack:
        counter = counter_of(folder, setting)
        keep_others_out(stack, folder, counter)
        said = counter.read() or UNKNOWN
        if not is_there(folder, setting):
            make_tables(folder, setting)
        store = open_store(folder, setting, checkpoints=True)
        stack.callback(store.close)

        def charge(run: Run) -> tuple[Recovered, Head]:
            check_same(run, setting, folder)
            head = whole(run, setting)
            now = log.Clock(log.latest_time(run)).now()
            agrees = ledger_is_whole or leads_to(run, setting, said)
            again = charging.charged_lost(run, said)  # and then killed before the counter moved
            lost = 0 if agrees or again else missing(setting, said, head)
            charging.charge_lost(run, setting, said, lost, now)
            revoked = 0 if agrees else revoke_all(run, now)
            detail = {"lost": lost, "agreed": agrees, "revoked": revoked}
            log.add_event(run, Event(now, STEWARD, "recovered", detail))
            return Recovered(lost, revoked), charging.head(run, setting.id)

        done, head = store.write(charge)
        if said == UNKNOWN:
            counter.create(head)
        else:
            counter.advance(head)
        return done


def counter_of(folder: Path, setting: Setting) -> Counter:
    return Counter(counter_path(folder, setting), setting.id)


def make_tables(folder: Path, setting: Setting) -> None:
    def fill(run: Run) -> None:
        create(run, setting)

    if setting.ledger:
        postgres.begin(setting, fill)
    else:
        sqlite.begin(folder / LEDGER, fill)


def is_there(folder: Path, setting: Setting) -> bool:
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
    """Neither this folder nor, where it was copied, its counter may have two servers."""
    stack.enter_context(locked(folder / LOCK, f"the folder {str(folder)!r}"))
    beside = counter.path.with_name(f"{counter.path.name}.lock")
    stack.enter_context(locked(beside, f"the counter {str(counter.path)!r}"))


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


def whole(run: Run, setting: Setting) -> Head:
    """The newest entry, after looking whether every one follows the one before."""
    return follow(genesis(setting.id), charging.all_entries(run))


def newest(run: Run, setting: Setting, counter: Counter) -> Head:
    """The newest entry of a ledger that has lost nothing."""
    head = whole(run, setting)
    check_counter(run, setting, counter, head)
    return head


def leads_to(run: Run, setting: Setting, said: Head) -> bool:
    """Whether the ledger has the entry that the counter says was the newest."""
    if said.number == 0:
        return said == genesis(setting.id)
    found = run("SELECT digest FROM entries WHERE number = ?", said.number)
    return bool(found) and found[0][0] == said.digest


def check_counter(run: Run, setting: Setting, counter: Counter, head: Head) -> None:
    """Refuse a ledger that does not lead to the counter. It may be ahead: a crash leaves that."""
    said = counter.read()
    if said is None:
        raise RolledBackError(
            f"the counter {str(counter.path)!r} is gone, so nobody can tell whether the ledger "
            "is the newest",
            hint="put the counter back as it was last; voile serve recover charges all answers "
            "that are left, or none with --ledger-is-whole if no older ledger was put back",
        )
    if said.number > head.number:
        raise RolledBackError(
            f"the ledger has {head.number:,} entries, but {said.number:,} answers have left: an "
            "old copy was put back",
            hint="put the newest ledger back, or let voile serve recover charge what is missing",
        )
    if not leads_to(run, setting, said):
        raise RolledBackError(
            f"entry {said.number:,} of the ledger is not the one that the counter knows: another "
            "copy went its own way",
            hint="put the right ledger back, or let voile serve recover charge what may be missing",
        )


def missing(setting: Setting, said: Head, head: Head) -> int:
    """How many entries there may have been that this ledger does not have, up to T.

    Where it is behind the counter, the difference. Where it went another way, nobody knows from
    where on, so all that the counter has seen.
    """
    left = setting.queries - head.number
    if said == UNKNOWN:
        return left
    return min(left, said.number - head.number if said.number > head.number else said.number)
