"""What the tables of a register say: the data sets, their names, what has left, and limits.

A name stands for the data set that was first published by it. Rows that are recognised under
another name make that an *alias* of their data set: what left of the data set counts for the alias,
and limits of either hold for both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from voile.kinds.registration import Departure
from voile.register.accounts import (
    DataSetAccount,
    RegisteredDeparture,
    SpendingLimit,
    State,
)
from voile.register.store import COPIED, RegisterError, Run, new_id

T = TypeVar("T")
LEFT, STAYED, WITHDRAWN = "left", "stayed", "withdrawn"


@dataclass(frozen=True)
class RegisterContents:
    """All that a register says at one moment."""

    left: Mapping[str, Sequence[RegisteredDeparture]]
    """By data set, in the order in which it left."""
    aliases: Mapping[str, Sequence[str]]
    """The data sets that a further name stands for."""
    limits: Mapping[str, SpendingLimit]
    """By the name that they were set for."""

    def homes(self, name: str) -> list[str]:
        """The data sets that a name stands for; none for one that nothing left under."""
        own = [name] if name in self.left else []
        return [*own, *(one for one in self.aliases.get(name, ()) if one != name)]

    def known(self, name: str) -> list[str]:
        """The data sets of a name; a name that only has a limit is its own."""
        return self.homes(name) or ([name] if name in self.limits else [])

    def names_of(self, data_set: str) -> list[str]:
        """The further names of a data set."""
        return sorted(
            name for name, homes in self.aliases.items() if data_set in homes and name != data_set
        )

    def related(self, name: str) -> list[str]:
        """A name, the data sets that it stands for, and all their names: limits of all hold."""
        homes = self.homes(name)
        found = [name, *homes, *(other for home in homes for other in self.names_of(home))]
        return list(dict.fromkeys(found))

    def departures(self, name: str) -> tuple[RegisteredDeparture, ...]:
        """All that left of what a name stands for."""
        found = {one.id: one for home in self.homes(name) for one in self.left.get(home, ())}
        return tuple(sorted(found.values(), key=lambda one: (one.at, one.id)))

    def account(self, name: str) -> DataSetAccount:
        """The account of a name: that of its data set, if it is an alias of one."""
        homes = self.homes(name)
        title = homes[0] if len(homes) == 1 else name
        limits = [(one, self.limits[one]) for one in self.related(title) if one in self.limits]
        limits.sort(key=lambda pair: (pair[1].epsilon, pair[1].delta, pair[0] != title))
        return DataSetAccount(
            title,
            self.departures(title),
            limits[0][1] if limits else None,
            tuple(self.names_of(title)),
            tuple(limits),
        )

    def limited(self, name: str) -> DataSetAccount:
        """What left of a name, under the limit that was set for that very name."""
        return DataSetAccount(name, self.departures(name), self.limits.get(name))

    def accounts(self) -> list[DataSetAccount]:
        """Every data set, by name."""
        names = set(self.left) | {name for name in self.limits if not self.homes(name)}
        return [self.account(name) for name in sorted(names)]

    def parts(self, digests: Sequence[str]) -> dict[str, list[str]]:
        """The data sets of releases that are known by their digest."""
        found: dict[str, list[str]] = {}
        for data_set, departures in self.left.items():
            for one in departures:
                if one.what_is.digest in digests:
                    found.setdefault(one.what_is.digest, []).append(data_set)
        return found


def read_contents(run: Run) -> RegisterContents:
    """All that a register says."""
    limits: dict[str, SpendingLimit | None] = {}
    for name, terms in run("SELECT data_set, terms FROM limits ORDER BY at, id"):
        limits[name] = None if terms is None else parsed(SpendingLimit, terms)
    aliases: dict[str, list[str]] = {}
    for name, data_set in run("SELECT name, data_set FROM aliases ORDER BY name, data_set"):
        aliases.setdefault(name, []).append(data_set)
    return RegisterContents(
        read_departures(run), aliases, {name: one for name, one in limits.items() if one}
    )


def read_departures(run: Run) -> dict[str, list[RegisteredDeparture]]:
    """What has left of every data set, in the order in which it did."""
    events: dict[str, list[tuple[str, str]]] = {}
    for entry, what, note in run("SELECT entry, what, note FROM events ORDER BY at, id"):
        events.setdefault(entry, []).append((what, note))
    left: dict[str, list[RegisteredDeparture]] = {}
    for id_, at, what, data_set, how in run(
        "SELECT entries.id, entries.at, entries.what, links.data_set, links.how FROM entries "
        "JOIN links ON links.entry = entries.id ORDER BY entries.at, entries.id"
    ):
        some = left.setdefault(data_set, [])
        happened = events.get(id_, [])
        state = state_of([what for what, _ in happened])
        if state is not None:
            notes = tuple(note for _, note in happened if note)
            departure = parsed(Departure, what)
            some.append(RegisteredDeparture(id_, at, departure, state, how, notes))
    return left


def parsed(kind: type[T], text: str) -> T:
    """What a row of the register says; refused where it was not written by this Voile."""
    try:
        return kind(**json.loads(text))
    except (ValueError, TypeError):
        raise RegisterError(
            f"the register has an entry that cannot be read: {text[:80]!r}",
            hint="it is of a newer Voile, or damaged: restore it from a backup",
        ) from None


def state_of(events: Sequence[str]) -> State | None:
    """What became of an entry; None where it surely stayed. What is not known counts as left."""
    if WITHDRAWN in events:
        return cast("State", WITHDRAWN)
    if LEFT in events:
        return cast("State", LEFT)
    return None if STAYED in events else "may have left"


# ---------------------------------------------------------------------- adding rows


def add_event(run: Run, entry: str, what: str, note: str = "") -> None:
    """Add what became of an entry."""
    run("INSERT INTO events (id, entry, at, what, note) VALUES (?, ?, ?, ?, ?)",
        new_id(), entry, time.time(), what, note)  # fmt: skip


def add_alias(run: Run, name: str, data_set: str, how: str) -> None:
    """Keep a further name of a data set, once."""
    if not run("SELECT 1 FROM aliases WHERE name = ? AND data_set = ?", name, data_set):
        run("INSERT INTO aliases (name, data_set, at, how) VALUES (?, ?, ?, ?)",
            name, data_set, time.time(), how)  # fmt: skip


def link_same(run: Run, names: Sequence[str]) -> None:
    """Count what left of each of these data sets for all of them: they have the same rows.

    Two registers that were merged may know one table by two names.
    """
    for name, other in pairs(names):
        for (entry,) in run(
            "SELECT entry FROM links WHERE data_set = ? AND entry NOT IN "
            "(SELECT entry FROM links WHERE data_set = ?)", other, name,
        ):  # fmt: skip
            run("INSERT INTO links (entry, data_set, how) VALUES (?, ?, ?)",
                entry, name, f"by the rows that it shares with {other!r}")  # fmt: skip


def pairs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every two different ones of these, in both orders."""
    return ((one, other) for one in names for other in names if one != other)


def all_rows(run: Run) -> dict[str, list[tuple[Any, ...]]]:
    """All that a register holds, by table."""
    return {
        name: run(f"SELECT {', '.join(columns)} FROM {name}") for name, columns in COPIED.items()
    }


def insert_missing(run: Run, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> dict[str, int]:
    """Add the rows that are not there yet; how many of each table."""
    added = {}
    for name, columns in COPIED.items():
        keys = columns[:2] if name in ("links", "aliases") else columns[:1]
        there = set(run(f"SELECT {', '.join(keys)} FROM {name}"))
        new = [row for row in rows[name] if tuple(row[: len(keys)]) not in there]
        marks = ", ".join("?" * len(columns))
        for row in new:
            run(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", *row)
        added[name] = len(new)
    return added
