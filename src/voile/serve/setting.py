"""What a server was begun with: written once by `voile serve init`, never changed.

All of it is public except where the table and the ledger are; analysts see `to_public()`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.records import Record
from voile.schema import Schema

FILE, TABLE, LEDGER, COUNTER = "server.json", "table.duckdb", "ledger.sqlite", "counter"
FORMAT, VERSION = "voile-server", 1
ACCOUNTED_AT = 1e-6
"""The δ at which ε is stated where none is promised."""
MOVABLE = ("ledger", "counter")
"""Where things are: a steward may move them."""


@dataclass(frozen=True)
class DeclaredSubset(Record):
    """Rows that a declared public condition chooses; how many they are is public."""

    name: str
    sql: str
    rows: int


@dataclass(frozen=True)
class Setting:
    """The promise, the noise, and the table's public side."""

    id: str
    """Random, 32 hex digits: whose ledger and counter these are."""
    name: str
    schema: Schema
    people: int
    """How many are in the table is public, as in the slides."""
    declared: bool
    """Whether the domain was declared, or read off the table itself."""
    queries: int
    """T: how many answers there will ever be."""
    delta: float
    eta: float
    noise: str
    """binomial, gaussian or geometric."""
    variance: float
    """Of the noise of a count, where one person can change it by 1."""
    per_person: int = 1
    """Rows of one person, at most."""
    person: str | None = None
    """The column that identifies people, where they have several rows; it is not asked about."""
    id_column: str | None = None
    """The column that public halves are drawn by; the rows' numbers if none."""
    subsets: tuple[DeclaredSubset, ...] = ()
    ledger: str | None = None
    """A PostgreSQL URL; embedded if none."""
    counter: str | None = None
    """A file outside of the folder; one inside if none."""
    anytime: bool = False
    """Whether η bounds every moment, and not only the end."""
    digest: str = ""
    """SHA-256 of the table's file."""
    registered: bool | None = None
    """Whether the steward's register counts it; None where it was begun before there was one."""
    epsilon: float | None = None
    """ε of (ε, δ)-differential privacy, where that is promised; then `delta` and `eta` follow."""
    epsilon_delta: float | None = None
    """Its δ."""

    @property
    def accounted_at(self) -> float:
        """The δ at which the ε of all answers is stated."""
        return ACCOUNTED_AT if self.epsilon_delta is None else self.epsilon_delta

    @property
    def rows(self) -> int:
        """At most so many rows: exactly, where everybody has one."""
        return self.people * self.per_person

    def to_public(self) -> dict[str, Any]:
        """What analysts may see, as JSON."""
        return {
            "id": self.id, "name": self.name, "people": self.people, "rows": self.rows,
            "declared": self.declared, "queries": self.queries,
            "delta": self.delta, "eta": self.eta, "anytime": self.anytime,
            "noise": self.noise, "variance": self.variance,
            "per_person": self.per_person, "id_column": self.id_column,
            "subsets": [subset.to_dict() for subset in self.subsets],
            "schema": self.schema.to_dict(),
        } | self._differential()  # fmt: skip

    def _differential(self) -> dict[str, Any]:
        """(ε, δ) where it is promised; else nothing, so that earlier servers keep their digest."""
        if self.epsilon is None:
            return {}
        return {"epsilon": self.epsilon, "epsilon_delta": self.epsilon_delta}

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `server.json` holds it."""
        inside: dict[str, Any] = {
            "person": self.person, "ledger": self.ledger, "counter": self.counter,
            "digest": self.digest,
        }  # fmt: skip
        if self.registered is not None:  # the ledgers of older servers keep a digest without it
            inside["registered"] = self.registered
        return {"format": FORMAT, "version": VERSION} | self.to_public() | inside

    def fingerprint(self) -> str:
        """SHA-256 of all but where the ledger and the counter are; the ledger keeps it."""
        fixed = {key: value for key, value in self.to_dict().items() if key not in MOVABLE}
        return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Setting:
        """The setting that `to_dict` wrote."""
        parts = {k: v for k, v in found.items() if k not in ("format", "version", "rows")}
        subsets = tuple(DeclaredSubset(**one) for one in parts["subsets"])
        return cls(**(parts | {"schema": Schema.from_dict(parts["schema"]), "subsets": subsets}))

    @classmethod
    def open(cls, folder: Path) -> Setting:
        """The setting of a server's folder."""
        try:
            found = json.loads((folder / FILE).read_text(encoding="utf-8"))
            if (found["format"], found["version"]) != (FORMAT, VERSION):
                raise ValueError
            return cls.from_dict(found)
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                f"{str(folder)!r} is no server's folder",
                hint="begin one with voile serve init DIR --table TABLE --queries T --delta δ",
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{str(folder / FILE)!r} cannot be read: {error}", hint="restore it from a backup"
            ) from None
