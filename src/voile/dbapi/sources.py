"""What is asked: releases of this machine, and servers; each is a table of a session."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voile.dbapi.domain import TimedDomain
from voile.dbapi.results import Field
from voile.errors import QueryError, UsageError, VoileError
from voile.kinds.manifest import MANIFEST
from voile.kinds.release import Release
from voile.query.value_types import ValueKind, ValueType
from voile.remote.client import VARIABLE, Server, connect
from voile.schema import Attribute, Bins, Schema
from voile.units import counted

if TYPE_CHECKING:
    from voile.estimate import Answer

TYPES: dict[ValueKind, Any] = {
    ValueKind.BOOLEAN: pa.bool_(),
    ValueKind.INTEGER: pa.int64(),
    ValueKind.NUMBER: pa.float64(),
    ValueKind.TEXT: pa.string(),
    ValueKind.DATE: pa.date32(),
    ValueKind.TIME: pa.time64("us"),
    ValueKind.TIMESTAMP: pa.timestamp("us"),
}
KINDS: dict[str, Any] = {
    "categorical": pa.string(),
    "integer": pa.int64(),
    "numeric": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}


class ChargeError(VoileError):
    """A question would be charged to a budget, and the session was not told to pay."""


def type_of(found: ValueType) -> Any:
    """The Arrow type of an expression's values."""
    return TYPES.get(found.kind, pa.string())


def attribute_field(attribute: Attribute) -> Field:
    """A column of the schema: middles of bins of whole numbers may be halves."""
    binned = attribute.kind == "integer" and isinstance(attribute.domain, Bins)
    return Field(attribute.name, pa.float64() if binned else KINDS[attribute.kind])


class AskedTable(ABC):
    """A table that statistics are asked of; threads may share it."""

    name: str
    schema: Schema

    def __init__(self) -> None:
        self.busy = threading.RLock()
        self.typed: dict[str, tuple[tuple[Field, bool], ...]] = {}
        """The columns of questions that were read before, and which of them are estimates."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its columns, as questions name them."""
        return tuple(map(attribute_field, self.schema))

    @cached_property
    def domain(self) -> TimedDomain:
        """Expressions on its public domain."""
        return TimedDomain(self.schema)

    def vouch(self, sql: str) -> None:  # noqa: B027  (most compute on the asker's own machine)
        """Refuse a question that should not be computed on the domain here."""

    @abstractmethod
    def answer(
        self, sql: str, confidence: float, *, charge: bool
    ) -> tuple[Answer, tuple[str, ...]]:
        """The estimates, and what should be known of them."""

    @abstractmethod
    def price(self, sql: str) -> tuple[str, ...]:
        """What answers a question about statistics, and what that would be charged."""

    @abstractmethod
    def rows(self) -> tuple[pa.Table, str]:
        """The rows that it shows, and what each of them is; refused where none mean anything."""

    def close(self) -> None:  # noqa: B027  (most have nothing to close)
        """Let go what it holds."""


class ReleasedTable(AskedTable):
    """A release of this machine."""

    def __init__(self, release: Release) -> None:
        super().__init__()
        self.release = release
        self.name, self.schema = release.name, release.schema
        self._shown: tuple[pa.Table, str] | None = None

    def answer(
        self,
        sql: str,
        confidence: float,
        *,
        charge: bool,  # noqa: ARG002  (a release costs nothing)
    ) -> tuple[Answer, tuple[str, ...]]:
        """The estimates, and what should be known of them."""
        with self.busy:
            found = self.release.query(sql, confidence)
        return found, found.notes

    def price(self, sql: str) -> tuple[str, ...]:
        """Nothing."""
        del sql
        return (f"estimates from {self.release.kind}, which are free",)

    def rows(self) -> tuple[pa.Table, str]:
        """The rows that it shows, and what each of them is."""
        if self._shown is None:
            with self.busy:
                self._shown = self._rows()
        return self._shown

    def _rows(self) -> tuple[pa.Table, str]:
        if not self.release.rows_are:
            raise QueryError(
                f"{self.name!r} is {self.release.kind}: it has no rows that mean anything by "
                "themselves",
                hint=f"ask for statistics: select count(*) from {self.name}; "
                f"select distinct x from {self.name} lists the values that x may have",
            )
        return self.release.shown_rows(), self.release.rows_are


class ServedTable(AskedTable):
    """The table of a server, which answers statistics within a budget."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        about = server.about()
        try:
            self.name, self.schema = str(about["name"]), Schema.from_dict(about["schema"])
        except (KeyError, TypeError):
            raise UsageError(f"{server.url} is no server of Voile's") from None

    def answer(
        self, sql: str, confidence: float, *, charge: bool
    ) -> tuple[Answer, tuple[str, ...]]:
        """What is free; what would be charged only if the session was told to pay."""
        if not charge:
            cost = self.server.cost(sql)
            if cost.cost:
                raise ChargeError(
                    f"the question would be charged {counted(cost.cost, 'answer')} of the "
                    f"{cost.remaining:,} that are left",
                    hint="SET voile.charge = on, or connect with charge=true, to spend them; "
                    "what was answered before is free",
                )
        reply = self.server.ask(sql, confidence=confidence)
        charged = [f"charged {reply.charged:,}; {reply.remaining:,} left"] if reply.charged else []
        return reply.estimates, (*reply.notes, *charged)

    def price(self, sql: str) -> tuple[str, ...]:
        """What the server says; asking this is free."""
        cost = self.server.cost(sql)
        return (
            f"answers with noise from {self.server.url}: {counted(cost.cost, 'answer')} of the "
            f"{cost.remaining:,} that are left would be charged",
            *cost.notes,
        )

    def rows(self) -> tuple[pa.Table, str]:
        """Refused: a server shows none."""
        raise QueryError(
            f"{self.name!r} is on a server, which shows no rows",
            hint=f"ask for statistics: select count(*) from {self.name}; "
            f"select distinct x from {self.name} lists the values that x may have",
        )

    def close(self) -> None:
        """Close the connections."""
        self.server.close()


# ---------------------------------------------------------------------- opening


def opened_tables(
    source: Any,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    ca: str | Path | None = None,
    insecure: bool = False,
) -> dict[str, AskedTable]:
    """The tables of a source, by name."""
    if isinstance(source, Mapping | list | tuple):
        parts = source.values() if isinstance(source, Mapping) else source
        return by_name([table for part in parts for table in opened_tables(part).values()])
    if isinstance(source, AskedTable):
        return {source.name: source}
    if isinstance(source, Release):
        return by_name([ReleasedTable(source)])
    if isinstance(source, Server):
        return by_name([ServedTable(source)])
    if is_address(source):
        known = token if token_file is None else token_in(Path(token_file), token)
        server = connect(str(source), known, ca=ca, insecure=insecure)
        return by_name([ServedTable(server)])
    if token is not None or token_file is not None:
        raise UsageError("a token is for a server", hint="give its address: https://…")
    if not isinstance(source, str | Path):
        raise UsageError(f"{source!r} is no release", hint="give its path, or a server's address")
    return by_name([ReleasedTable(release) for release in opened_releases(source)])


def opened_releases(source: str | Path) -> list[Release]:
    """The release of a path, or all releases of a folder that is none itself."""
    folder = Path(source)
    if isinstance(source, Path) or "://" not in source:
        inner = sorted(p.parent for p in folder.glob(f"*/{MANIFEST}"))
        if folder.is_dir() and not (folder / MANIFEST).is_file() and inner:
            return [Release.open(path) for path in inner if not path.name.startswith(".")]
    return [Release.open(source)]


def is_address(source: Any) -> bool:
    """Whether it is the address of a server."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def token_in(file: Path, token: str | None) -> str:
    """The token in a file."""
    if token is not None:
        raise UsageError("token and token_file exclude each other", hint="prefer the file")
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not plain text"
        raise UsageError(
            f"token_file {str(file)!r} cannot be read: {reason}",
            hint=f"a file that holds the token and nothing else; or put it into {VARIABLE}",
        ) from None


def by_name(tables: list[AskedTable]) -> dict[str, AskedTable]:
    """The tables by their names, which must differ."""
    found: dict[str, AskedTable] = {}
    for table in tables:
        if any(table.name.lower() == other.lower() for other in found):
            raise UsageError(
                f"two releases are called {table.name!r}",
                hint="publish one of them with another name, or connect to one at a time",
            )
        found[table.name] = table
    return found
