"""The steward's register: all that has left of each data set, written down before it leaves."""

from __future__ import annotations

import base64
import json
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from voile.engines.table import Table
from voile.errors import PromiseError, UsageError, did_you_mean, spelled
from voile.files import check_free, sync
from voile.kinds.registration import Departure, departure_of
from voile.privacy.composition import compose
from voile.records import Record
from voile.register.accounts import (
    DELTA,
    UNIT_WORDS,
    AccountUnit,
    DataSetAccount,
    RegisteredDeparture,
    SpendingLimit,
    rounded_up,
    written_time,
)
from voile.register.contents import (
    LEFT,
    STAYED,
    WITHDRAWN,
    RegisterContents,
    add_alias,
    add_event,
    all_rows,
    insert_missing,
    link_same,
    read_contents,
)
from voile.register.counter import (
    RegisterChange,
    RegisterCounter,
    add_change,
    has_change,
    last_change,
)
from voile.register.keys import FingerprintKey, KeyFile
from voile.register.places import KEY, RegisterPlace, register_place
from voile.register.store import (
    RegisterError,
    RegisterStore,
    Run,
    T,
    Work,
    new_id,
    open_store,
)
from voile.system import here as system
from voile.units import counted

if TYPE_CHECKING:
    from voile.kinds.release import Release

LONGEST_NAME = 200


@dataclass(frozen=True)
class Recognition(Record):
    """A data set that a table belongs to, and how that is known."""

    data_set: str
    by: str
    """'name', 'rows', 'name and rows', 'parts', or 'new'."""
    overlap: Any = None
    """A `RowOverlap`, where rows were compared."""
    called: str = ""
    """The name that it was known by, where that is another."""

    @property
    def words(self) -> str:
        """How it is known, and how sure."""
        if self.by in FIXED_WORDS:
            return FIXED_WORDS[self.by]
        name = f"its name {self.called!r}" if self.called else "its name"
        if self.overlap is None:
            return f"by {name}"
        if self.by == "name":
            return f"by {name} alone ({self.overlap.words})"
        return f"by its {self.by}: {self.overlap.words}"


FIXED_WORDS = {"new": "not seen before", "parts": "made of releases of it"}


class Register:
    """A register in a file or a PostgreSQL; made when the first entry is written."""

    def __init__(self, place: RegisterPlace, store: RegisterStore | None = None) -> None:
        self.place = place
        self.store = store or open_store(place)
        self.key_file = KeyFile(place.key)
        self.counter = RegisterCounter(place.key)

    @classmethod
    def open(cls, given: str | Path | None = None) -> Register:
        """The register that is named, or that of VOILE_REGISTER, or the user's own."""
        return cls(register_place(given))

    # ------------------------------------------------------------------ transactions

    def read(self, work: Work[T]) -> T:
        """Look at one moment's state; refused where it is older than what was seen before."""

        seen = list(self.counter.known())  # before: another program may go on meanwhile

        def checked(run: Run) -> T:
            self._check_newest(run, seen)
            return work(run)

        return self.store.read(checked)

    def write(self, work: Work[T]) -> T:
        """One change, on disk when this returns, and counted."""
        if self.place.file is not None:
            self._check_there()

        seen = list(self.counter.known())

        def checked(run: Run) -> tuple[T, RegisterChange]:
            self._check_newest(run, seen)
            return work(run), add_change(run, self.place.full)

        done, change = self.store.write(checked)
        self.counter.keep(change)
        return done

    def exists(self) -> bool:
        """Whether there is a register; refused where there was one, and is none any more."""
        if self.store.exists():
            return True
        self._check_there()
        return False

    def _check_there(self) -> None:
        """Refuse to begin anew where a register was."""
        known = self.counter.at(self.place.full)
        if known is not None and not self.store.exists():
            raise RegisterError(
                f"the register {self.place} is not there any more, though it had "
                f"{counted(known.number, 'change')}",
                hint="put it back; if it is lost, begin a new one, and merge a backup into it: "
                f"{self._accepting}",
            )

    def _check_newest(self, run: Run, seen: Sequence[RegisterChange]) -> None:
        """Refuse an old copy, or another register in its place: what left since is not in it."""
        here = last_change(run, self.place.full)
        own = [one for one in seen if one.register == here.register]
        for known in own or [one for one in seen if one.place == here.place]:
            if not has_change(run, known):
                raise self._older(known, here)

    def _older(self, known: RegisterChange, here: RegisterChange) -> RegisterError:
        return RegisterError(
            f"the register {self.place} is an old copy, or another one: it has "
            f"{counted(here.number, 'change')}, and lacks change {known.number} that was made here",
            hint="put the newer one back; if it is lost, go on with this one, which does not have "
            f"what left since: {self._accepting}",
        )

    @property
    def _accepting(self) -> str:
        return f"voile register accept --register {shlex.quote(str(self.place))}"

    def accept(self) -> int:
        """Go on with an old copy that was put back; how many changes are not in it, at most.

        The register keeps a note of it, which is shown with the accounts.
        """
        place = self.place.full
        self.store.begin()

        def enter(run: Run) -> tuple[int, RegisterChange]:
            here = last_change(run, place)
            known = self.counter.of(here.register) or self.counter.at(place)
            if known is None or has_change(run, known):
                return 0, here
            lost = known.number - (here.number if known.register == here.register else 0)
            until = written_time(time.time())
            note = f"an older copy was put back: what left before {until} may be missing"
            return max(lost, 1), add_change(run, place, note)

        lost, change = self.store.write(enter)
        if lost:
            self.counter.replace(change)
            self.counter.forget(place, but=change.register)
        return lost

    def notes(self) -> list[str]:
        """What is to be known of the register as a whole."""
        if not self.exists():
            return []
        found = self.read(lambda run: run("SELECT note FROM changes ORDER BY number"))
        return [note for (note,) in found if note]

    # ------------------------------------------------------------------ what leaves

    def begin(self, table: Table, name: str) -> RegisterEntry:
        """Recognise the data set of a table that is about to be published."""
        check_data_set(name)
        self._check_there()
        self.store.begin()
        keys = self._keys()
        known = self.read(lambda run: stored_sketches(run, keys))
        sketches, overlaps = fingerprints(table, keys, known)
        contents = self.read(read_contents)
        found = recognised(name, contents, [(one.data_sets, o) for one, o in overlaps])
        return RegisterEntry(self, name, sketches, found, {one.digest for one in known}, keys)

    def begin_from(self, name: str, parts: Sequence[str], draw: str) -> MadeOfReleases:
        """What is made of rows that were perturbed before: of releases with these digests.

        All that has the same `draw` is made of the same perturbed rows, and counts once.
        """
        check_data_set(name)
        self._check_there()
        return MadeOfReleases(self, name, (), [], set(), (), draw=draw, parts=tuple(parts))

    def foresee(self, table: Table, release: Release) -> list[ForeseenAccount]:
        """What accounts would come to if a release of a table left now; writes nothing.

        The table is one that `voile.read` gave, which is read once, and the release one that has
        not left: `voile.publish` without `to` makes such.
        """
        keys = self.key_file.read() if self.exists() else ()
        contents = RegisterContents({}, {}, {})
        overlaps: list[tuple[StoredSketch, Any]] = []
        if keys:
            known = self.read(lambda run: stored_sketches(run, keys))
            _, overlaps = fingerprints(table, keys, known)
        if self.exists():
            contents = self.read(read_contents)
        departure = departure_of(release, "")
        names = recognised(departure.name, contents, [(one.data_sets, o) for one, o in overlaps])
        return [foreseen(one, contents, departure) for one in names]

    def _keys(self) -> tuple[FingerprintKey, ...]:
        """The keys, of which the database must know the first: else rows are not recognised."""
        begun = self.read(lambda run: run("SELECT key FROM about"))[0][0]
        found = self.key_file.read()
        if begun is None:
            found = found or self.key_file.begin()
            self.write(lambda run: run("UPDATE about SET key = ? WHERE key IS NULL", found[0].id))
            begun = self.read(lambda run: run("SELECT key FROM about"))[0][0]
        if begun not in (key.id for key in found):
            raise UsageError(
                f"the register {self.place} recognises rows by the key {begun}, which is not in "
                f"{str(self.key_file.path)!r}",
                hint=f"copy its key file there, or name where it is with {KEY}",
            )
        return tuple(sorted(found, key=lambda key: key.id != begun))

    # ------------------------------------------------------------------ looking at it

    def accounts(self) -> list[DataSetAccount]:
        """Every data set with all that has left of it, by name."""
        return self.read(read_contents).accounts() if self.exists() else []

    def account(self, name: str) -> DataSetAccount:
        """One data set, by any of its names; refused where the register does not know it."""
        found = self.read(read_contents) if self.exists() else RegisterContents({}, {}, {})
        if not found.known(name):
            names = sorted({*found.left, *found.aliases, *found.limits})
            near = did_you_mean(name, names) if names else "nothing was published with it yet"
            raise UsageError(f"the register knows no data set {name!r}", hint=near)
        return found.account(name)

    # ------------------------------------------------------------------ the steward's decisions

    def set_limit(self, name: str, limit: SpendingLimit | None) -> DataSetAccount:
        """Set what all releases of a data set may cost together, or lift that."""
        check_data_set(name)
        if limit is not None:
            check_limit(limit)
        terms = None if limit is None else json.dumps(limit.to_dict())
        self.write(
            lambda run: run(
                "INSERT INTO limits (id, at, data_set, terms) VALUES (?, ?, ?, ?)",
                new_id(), time.time(), name, terms,
            )
        )  # fmt: skip
        return self.read(read_contents).account(name)

    def withdraw(self, name: str, release: str, note: str = "") -> DataSetAccount:
        """Note that a release was withdrawn, by its path, digest or id. It still counts."""
        account = self.account(name)
        found = [one for one in account.left if is_called(one, release)]
        if not found:
            known = [one.what_is.path for one in account.left]
            raise UsageError(
                f"nothing called {release!r} has left of {name!r}",
                hint=did_you_mean(release, known),
            )
        if len(found) > 1 and len({one.what_is.digest for one in found}) > 1:
            raise UsageError(
                f"{release!r} may be each of {len(found)} releases of {name!r}",
                hint=f"name one by its digest, such as {found[0].what_is.digest[:16]}",
            )

        def enter(run: Run) -> None:
            for one in found:
                add_event(run, one.id, WITHDRAWN, note)

        self.write(enter)
        return self.account(name)

    # ------------------------------------------------------------------ copies

    def backup(self, to: Path, *, overwrite: bool = False) -> list[Path]:
        """Copy all of it to a new file, with its key beside it."""
        if not self.exists():
            raise UsageError(f"there is no register {self.place}", hint="nothing was published yet")
        if self.place.file is not None and to.exists() and to.samefile(self.place.file):
            raise UsageError(f"{str(to)!r} is the register itself", hint="name another file")
        key = to.with_name(f"{to.name}.key")
        for path in (to, key):
            check_free(path, overwrite=overwrite)
        beside = to.with_name(f".{to.name}.{new_id()[:8]}")
        other = Register(RegisterPlace(beside, None, beside.with_name(f"{beside.name}.key")))
        try:
            self._copy_to(other)
            written: list[Path] = []
            for made, path in ((other.place.key, key), (beside, to)):
                if made.exists():
                    system.replace(made, path)
                    written.insert(0, path)
            sync(to.absolute().parent)
        finally:
            for made in (beside, other.place.key):
                made.unlink(missing_ok=True)
        return written

    def _copy_to(self, other: Register) -> None:
        """Fill a new register with all that this one has."""

        def copied(run: Run) -> tuple[Any, Any, Any]:
            about = run("SELECT id, key FROM about")[0]
            return all_rows(run), about, run("SELECT number, token, at, note FROM changes")

        rows, about, changes = self.read(copied)

        def fill(run: Run) -> None:
            run("UPDATE about SET id = ?, key = ?", *about)
            insert_missing(run, rows)
            for change in changes:
                run("INSERT INTO changes (number, token, at, note) VALUES (?, ?, ?, ?)", *change)

        other.store.write(fill)
        if keys := self.key_file.read():
            other.key_file.put_all(keys)

    def merge(self, other: Register) -> MergeResult:
        """Take in all that another register knows, and its keys; nothing is taken twice."""
        if not other.store.exists():
            raise UsageError(f"there is no register {other.place}", hint="name a register")
        self._check_there()
        self.store.begin()
        self._keys()
        rows = other.store.read(all_rows)  # also of an old copy: nothing is lost by taking it in
        other.store.read(read_contents)  # refused where it cannot be read
        keys = other.key_file.read()
        self.key_file.add(keys)
        limits = self.read(read_contents).limits
        added = self.write(lambda run: insert_missing(run, rows))
        self._keep_stricter(limits)
        unknown = {row[1] for row in rows["sketches"]} - {key.id for key in self.key_file.read()}
        return MergeResult(added["entries"], added["limits"], tuple(sorted(unknown)))

    def _keep_stricter(self, limits: Mapping[str, SpendingLimit]) -> None:
        """Nobody's limit is raised because another register had a higher one, or none."""
        now = self.read(read_contents).limits
        for name, own in limits.items():
            found = now.get(name)
            if found is None or not found.is_within(own):
                self.set_limit(name, own)


@dataclass(frozen=True)
class MergeResult(Record):
    """What came of merging a register."""

    entries: int
    limits: int
    keys_missing: tuple[str, ...]
    """Ids of keys without which rows of merged tables are not recognised."""


@dataclass(frozen=True)
class ForeseenAccount(Record):
    """A data set as it is, and as it would be after one more release."""

    json_keys = ("data_set", "how", "left", "before=before.summary", "after=after.summary",
                 "limit", "refused")  # fmt: skip

    data_set: str
    how: str
    """How the table is recognised as this data set, and how sure."""
    before: DataSetAccount
    after: DataSetAccount
    refused: str = ""
    """Why the limit would not let it leave."""

    @property
    def left(self) -> list[dict[str, Any]]:
        """What left before, in the order in which it did."""
        return [
            {"when": one.when, "what": one.title, "path": one.what_is.path,
             "promise": one.promise, "state": one.state}
            for one in self.before.left
        ]  # fmt: skip

    @property
    def limit(self) -> str | None:
        """What all of it may cost, in words."""
        return None if self.before.limit is None else self.before.limit.words


def foreseen(one: Recognition, contents: RegisterContents, departure: Departure) -> ForeseenAccount:
    """The account of a data set with a departure that has not happened."""
    new = RegisteredDeparture(new_id(), time.time(), departure, "may have left", one.words)
    before = contents.account(one.data_set)
    refused = ""
    for name in contents.related(one.data_set):
        limited = contents.limited(name)
        if limited.limit is not None:
            try:
                check_within(limited, limited.with_departure(new), new)
            except PromiseError as error:
                refused = refused or error.message
    return ForeseenAccount(one.data_set, one.words, before, before.with_departure(new), refused)


def is_called(one: RegisteredDeparture, name: str) -> bool:
    """Whether a departure is meant by its path, its digest or its id, or the start of those."""
    started = len(name) >= 8 and (one.what_is.digest.startswith(name) or one.id.startswith(name))
    return started or name in (one.what_is.path, one.what_is.digest, one.id)


def check_data_set(name: str) -> None:
    """Refuse a name that could not be typed or shown."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise UsageError(
            f"{name[:LONGEST_NAME]!r} is no name for a data set",
            hint=f"1 to {LONGEST_NAME} printable characters",
        )


def check_limit(limit: SpendingLimit) -> None:
    """Refuse a limit that bounds nothing."""
    if not 0 <= limit.epsilon <= 10_000:
        raise UsageError(
            f"a limit of ε = {limit.epsilon:g} bounds nothing",
            hint=f"such as {spelled('epsilon', 4)}",
        )
    if not 0 <= limit.delta < 1:
        raise UsageError(
            f"δ = {limit.delta:g} is no probability", hint=f"such as {spelled('delta', 1e-9)}"
        )
    if limit.unit not in get_args(AccountUnit):
        raise UsageError(
            f"unit {limit.unit!r} is not known",
            hint=did_you_mean(limit.unit, list(get_args(AccountUnit))),
        )


# ---------------------------------------------------------------------- entries


@dataclass
class RegisterEntry:
    """One departure: recognised, then reserved, then left."""

    register: Register
    name: str
    sketches: Sequence[Any]
    recognised: list[Recognition]
    compared: set[str]
    """Digests of the sketches that the table was compared with."""
    keys: tuple[FingerprintKey, ...]
    id: str = field(default_factory=new_id)
    draw: str = field(default_factory=new_id)
    accounts: list[DataSetAccount] = field(default_factory=list)
    """Of each data set, with this departure."""

    def reserve(self, departure: Departure) -> None:
        """Write the departure down, unless it would exceed a limit; durable when this returns.

        What is written to several places is written down each time, and counts once.
        """
        self.id = new_id()
        if not departure.group:  # copies of one draw; another that came out equal is another
            departure = replace(departure, group=f"draw {self.draw}")
        self.accounts = self.register.write(lambda run: self._enter(run, departure))

    def _enter(self, run: Run, departure: Departure) -> list[DataSetAccount]:
        self._look_again(run)
        self._keep_names(run)
        now, known = time.time(), read_contents(run)
        news = [
            RegisteredDeparture(self.id, now, departure, "may have left", one.words)
            for one in self.recognised
        ]
        self._check_limits(known, news[0])
        accounts = [
            known.account(one.data_set).with_departure(new)
            for one, new in zip(self.recognised, news, strict=True)
        ]
        self._insert(run, departure, now)
        return accounts

    def _keep_names(self, run: Run) -> None:
        """Note by which names the same rows are known."""
        by_rows = [one for one in self.recognised if one.overlap is not None and one.by != "name"]
        link_same(run, [one.data_set for one in by_rows if one.overlap.unchanged])
        for one in by_rows:
            if one.data_set != self.name:
                add_alias(run, self.name, one.data_set, one.words)

    def _check_limits(self, known: RegisterContents, new: RegisteredDeparture) -> None:
        """Refuse what exceeds a limit of any name of the data sets that it belongs to."""
        sets = [self.name, *(one.data_set for one in self.recognised)]
        for name in dict.fromkeys(name for one in sets for name in known.related(one)):
            before = known.limited(name)
            if before.limit is not None:
                check_within(before, before.with_departure(new), new)

    def _insert(self, run: Run, departure: Departure, now: float) -> None:
        what = json.dumps(departure.to_dict(), ensure_ascii=False)
        stored = [store_sketch(run, sketch, self.keys) for sketch in self.sketches]
        run(
            "INSERT INTO entries (id, at, what, sketch) VALUES (?, ?, ?, ?)",
            self.id, now, what, ",".join(stored) or None,
        )  # fmt: skip
        for one in self.recognised:
            run("INSERT INTO links (entry, data_set, how) VALUES (?, ?, ?)",
                self.id, one.data_set, one.words)  # fmt: skip

    def _look_again(self, run: Run) -> None:
        """Others may have published the same rows since the table was read."""
        from voile.register.sketch import compare  # noqa: PLC0415  (loads NumPy)

        new = stored_sketches(run, self.keys, self.compared)
        pairs = [
            (one.data_sets, overlap)
            for one in new
            for sketch in self.sketches
            if sketch.key == one.sketch.key and (overlap := compare(sketch, one.sketch))
        ]
        seen = [([one.data_set], one.overlap) for one in self.recognised if one.overlap]
        self.recognised = recognised(self.name, read_contents(run), [*seen, *pairs])

    def left(self) -> None:
        """Note that it has left; where that fails it may have left, which counts the same."""
        self._note(LEFT)

    def stayed(self) -> None:
        """Note that it has not left: nobody has seen it. Where that fails, it counts."""
        self._note(STAYED)

    def _note(self, what: str) -> None:
        with suppress(RegisterError):
            self.register.write(lambda run: add_event(run, self.id, what))

    @property
    def notes(self) -> list[str]:
        """What has left before of the data set, and what all of it adds up to."""
        found = []
        for one, account in zip(self.recognised, self.accounts, strict=False):
            earlier = len(account.left) - 1
            if not earlier:
                continue
            number = counted(earlier, "release")
            found.append(
                f"register: {number} of {one.data_set!r} left before ({one.words}); with this one "
                f"{account.summary}"
            )
        return found

    @property
    def account(self) -> Mapping[str, Any]:
        """The same as plain data."""
        return {
            "register": str(self.register.place),
            "entry": self.id,
            "data_sets": [
                {
                    "data_set": one.data_set,
                    "aliases": list(account.aliases),
                    "by": one.by,
                    "overlap": None if one.overlap is None else one.overlap.to_dict(),
                    "left_before": len(account.left) - 1,
                    "total": account.total,
                    "limit": None if account.limit is None else account.limit.to_dict(),
                }
                for one, account in zip(self.recognised, self.accounts, strict=False)
            ],
        }


@dataclass
class MadeOfReleases(RegisterEntry):
    """The entry of what is made of rows that were perturbed before, without the table of anyone.

    Where the register has all the releases that it is made of, it is listed with their data sets
    and adds nothing. Else it counts by its own guarantee, once for all that is made of those rows.
    """

    parts: tuple[str, ...] = ()
    """Digests of the releases that it is made of."""

    def reserve(self, departure: Departure) -> None:
        """Write it down, unless it would exceed a limit."""
        super().reserve(replace(departure, group=f"draw {self.draw}", member=departure.digest))

    def _enter(self, run: Run, departure: Departure) -> list[DataSetAccount]:
        found = read_contents(run).parts(self.parts)
        counted = not self.parts or len(found) < len(set(self.parts))
        return super()._enter(run, replace(departure, adds=counted))

    def _look_again(self, run: Run) -> None:
        """The data sets of its parts; that of its own name, unless all parts are known."""
        known = read_contents(run)
        found = known.parts(self.parts)
        sets = dict.fromkeys(data_set for some in found.values() for data_set in some)
        self.recognised = [Recognition(data_set, "parts") for data_set in sets]
        if not self.parts or len(found) < len(set(self.parts)):
            own = [one for one in recognised(self.name, known, []) if one.data_set not in sets]
            self.recognised += own


def check_within(before: DataSetAccount, account: DataSetAccount, new: RegisteredDeparture) -> None:
    """Refuse a departure beyond the limit of its data set."""
    assert before.limit is not None  # noqa: S101
    limit, name = before.limit, shlex.quote(before.data_set)
    if not account.is_bounded(new):
        unit = UNIT_WORDS[limit.unit]
        excess = f"{new.title} has no ε for {unit}: no limit in ε bounds what it discloses"
        more = f"voile register limit {name} --none"
    else:
        excess = account.excess(planned=True)
        more = enough(account, name)
    if not excess:
        return
    number = counted(len(before.left), "release")
    so_far = f"{number} left before: {before.summary}" if before.left else "nothing left before"
    raise PromiseError(
        f"{excess}. The register has a limit of {limit.words} for {before.data_set!r}; {so_far}. "
        "Nothing was published",
        hint=f"publish with more noise, or, if people accept that, change the limit: {more}",
    )


def enough(account: DataSetAccount, name: str) -> str:
    """The command that sets a limit which would do."""
    assert account.limit is not None  # noqa: S101
    limit = account.limit
    total = compose(account.losses(limit.unit), max(limit.delta, DELTA))
    if total.epsilon is None:
        return f"voile register limit {name} --none"
    parts = [f"voile register limit {name} --epsilon {rounded_up(total.epsilon)}"]
    if total.delta:
        parts.append(f"--delta {total.delta * (1 + 1e-9):.10g}")
    if limit.unit != "exchange":
        parts.append(f"--unit {limit.unit}")
    return " ".join(parts)


# ---------------------------------------------------------------------- recognising


@dataclass(frozen=True)
class StoredSketch:
    """A sketch of the register, and whose it is."""

    digest: str
    sketch: Any
    data_sets: tuple[str, ...]


def stored_sketches(
    run: Run, keys: Sequence[FingerprintKey], without: Collection[str] = ()
) -> list[StoredSketch]:
    """All sketches that can be compared: those of keys that are known."""
    from voile.register.sketch import RowSketch  # noqa: PLC0415  (loads NumPy)

    homes: dict[str, set[str]] = {}
    for listed, data_set in run(
        "SELECT entries.sketch, links.data_set FROM entries JOIN links "
        "ON links.entry = entries.id WHERE entries.sketch IS NOT NULL"
    ):
        for digest in listed.split(","):
            homes.setdefault(digest, set()).add(data_set)
    by_id = {key.id: key for key in keys}
    found = []
    for digest, key, sealed in run("SELECT digest, key, sealed FROM sketches"):
        if key in by_id and digest in homes and digest not in without:
            sketch = opened(RowSketch.unseal, by_id[key], sealed)
            found.append(StoredSketch(digest, sketch, tuple(sorted(homes[digest]))))
    return found


def opened(unseal: Any, key: FingerprintKey, sealed: str) -> Any:
    """A stored sketch; refused where it was changed."""
    try:
        return unseal(key, base64.b64decode(sealed))
    except ValueError as error:
        raise RegisterError(
            f"a fingerprint of the register is damaged: {error}", hint="restore it from a backup"
        ) from None


def store_sketch(run: Run, sketch: Any, keys: Sequence[FingerprintKey]) -> str:
    """Keep a sketch, once; gives its digest."""
    key = next(key for key in keys if key.id == sketch.key)
    digest = str(sketch.digest(key))
    if not run("SELECT 1 FROM sketches WHERE digest = ?", digest):
        sealed = base64.b64encode(sketch.seal(key)).decode()
        run("INSERT INTO sketches (digest, key, sealed) VALUES (?, ?, ?)",
            digest, key.id, sealed)  # fmt: skip
    return digest


def fingerprints(
    table: Table, keys: Sequence[FingerprintKey], known: Sequence[StoredSketch]
) -> tuple[list[Any], list[tuple[StoredSketch, Any]]]:
    """The table's sketch under each key that is in use, and what known ones have in common."""
    from voile.register.sketch import fingerprint  # noqa: PLC0415  (loads NumPy)

    sketches, overlaps = [], []
    for place, key in enumerate(keys):
        same = [one for one in known if one.sketch.key == key.id]
        if place and not same:
            continue
        sketch, found = fingerprint(table, key, [one.sketch for one in same])
        if not place:  # those of merged registers are compared and not kept
            sketches.append(sketch)
        overlaps += [(one, overlap) for one, overlap in zip(same, found, strict=True) if overlap]
    return sketches, overlaps


def recognised(
    name: str, known: RegisterContents, overlaps: Sequence[tuple[Sequence[str], Any]]
) -> list[Recognition]:
    """The data sets of a table: those of its name, and all that have the same rows."""
    best: dict[str, Any] = {}
    for data_sets, overlap in overlaps:
        for data_set in data_sets:
            if data_set not in best or overlap.surely > best[data_set].surely:
                best[data_set] = overlap
    found = [
        Recognition(data_set, "name and rows" if data_set == name else "rows", overlap)
        for data_set, overlap in best.items()
        if overlap.is_same
    ]
    found.sort(key=lambda one: (one.data_set != name, -one.overlap.share, one.data_set))
    by_rows = {one.data_set for one in found}
    for home in known.homes(name) if found else known.known(name):
        if home not in by_rows:
            called = name if home != name else ""
            found.append(Recognition(home, "name", best.get(home), called))
    return found or [Recognition(name, "new")]
