"""What one client asks, from its first statement to its last: transactions, settings, cursors.

Plain functions that may take long, called from threads, one at a time for each client. Queries of a
table go to its session (`voile.dbapi`), which alone decides what is answered and what that costs;
what tools ask of PostgreSQL itself goes to the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from voile.errors import VoileError
from voile.wire import statements
from voile.wire.messages import WireError
from voile.wire.settings import REPORTED, Settings
from voile.wire.statements import (
    StatementKind,
    TableName,
    WireStatement,
    cursor_name,
    parsed,
    tables_in,
)

MOST_ROWS = 1_000_000
"""Of one result."""
MOST_CURSORS = 20
CATALOGUES = ("pg_catalog", "information_schema")


class FieldLike(Protocol):
    """A column: its name, and its type in Arrow."""

    @property
    def name(self) -> str:
        """As the query calls it."""
        ...

    @property
    def type(self) -> Any:
        """An Arrow DataType."""
        ...


class ResultLike(Protocol):
    """What a statement gives."""

    @property
    def fields(self) -> Sequence[FieldLike]:
        """The columns; none where there are no rows to give."""
        ...

    @property
    def rows(self) -> Any:
        """An Arrow table, or a list of tuples."""
        ...

    @property
    def tag(self) -> str:
        """What was done."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What should be known besides."""
        ...


class SessionLike(Protocol):
    """Answers a client's queries of tables: `voile.dbapi`."""

    @property
    def tables(self) -> Mapping[str, Sequence[FieldLike]]:
        """The columns of every table, by its name."""
        ...

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> ResultLike:
        """What a statement gives."""
        ...

    def fields(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[FieldLike]:
        """The columns that it would give."""
        ...

    def interrupt(self) -> None:
        """End what a statement computes, which nobody waits for any more."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


@dataclass(frozen=True)
class WireCaller:
    """Who asks, as what database this is known to them, and what they set."""

    user: str
    database: str
    process: int = 0
    settings: Settings = field(default_factory=Settings)


class CatalogueLike(Protocol):
    """Answers what tools ask of PostgreSQL itself."""

    @property
    def names(self) -> list[str]:
        """The tables that it describes."""
        ...

    def run(self, tree: Any, caller: WireCaller, values: Sequence[Any]) -> pa.Table:
        """The rows of a query."""
        ...

    def fields(self, tree: Any, caller: WireCaller, values: Sequence[Any]) -> pa.Schema:
        """The columns that it would give."""
        ...


@dataclass(frozen=True)
class ResultField:
    """A column of a result."""

    name: str
    type: Any


@dataclass(frozen=True)
class WireOutcome:
    """What a statement gave: rows with their columns, or none, and what a client is told."""

    tag: str
    fields: tuple[FieldLike, ...] = ()
    rows: Any = ()
    notices: tuple[str, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    """Settings that clients are told of."""

    @property
    def count(self) -> int:
        """How many rows."""
        return self.rows.num_rows if isinstance(self.rows, pa.Table) else len(self.rows)

    def slice(self, start: int, stop: int) -> list[tuple[Any, ...]]:
        """Some of the rows, as Python's values."""
        if not isinstance(self.rows, pa.Table):
            return list(self.rows[start:stop])
        columns = [one.to_pylist() for one in self.rows.slice(start, stop - start).columns]
        return list(zip(*columns, strict=True)) if columns else [()] * (stop - start)


@dataclass
class FetchedRows:
    """Rows of a query that a client fetches by and by."""

    outcome: WireOutcome
    at: int = 0


@dataclass
class Conversation:
    """One client's."""

    session: SessionLike
    catalogue: CatalogueLike
    caller: WireCaller
    status: str = "I"
    """I: no transaction; T: in one; E: in one that failed."""
    _begun_with: dict[str, str] = field(default_factory=dict)
    """Settings of Voile's that the client came with: a reset gives these back."""
    _cursors: dict[str, FetchedRows] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """What the client set."""
        return self.caller.settings

    # ------------------------------------------------------------------ what is asked

    def check(self, statement: WireStatement) -> None:
        """Refuse all but the end of a transaction that failed."""
        ends = (StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.SAVEPOINT)
        back = statement.kind is not StatementKind.SAVEPOINT or statement.words[0] == "ROLLBACK"
        if self.status == "E" and not (statement.kind in ends and back):
            raise WireError(
                "25P02", "a statement before this one failed, and the transaction with it",
                hint="ROLLBACK, then ask again",
            )  # fmt: skip

    def failed(self) -> None:
        """A statement failed: the transaction it is in did, too."""
        if self.status == "T":
            self.status = "E"

    def fields(self, statement: WireStatement, values: Sequence[Any]) -> tuple[FieldLike, ...]:
        """The columns of what a statement will give; none where it gives no rows."""
        match statement.kind:
            case StatementKind.QUERY:
                tree = self._looked_up(statement)
                if tree is None:
                    with placed(statement):
                        return tuple(self.session.fields(self._text(statement), values))
                schema = self.catalogue.fields(tree, self.caller, values)
                return tuple(ResultField(one.name, one.type) for one in schema)
            case StatementKind.SHOW:
                return self._show(statement).fields
            case StatementKind.FETCH:
                return self._cursor(statement)[0].outcome.fields
            case _:
                return ()

    def run(self, statement: WireStatement, values: Sequence[Any] = ()) -> WireOutcome:
        """Do it."""
        self.check(statement)
        ways: dict[StatementKind, Callable[[], WireOutcome]] = {
            StatementKind.QUERY: lambda: self._query(statement, values),
            StatementKind.BEGIN: lambda: self._transaction(statement),
            StatementKind.COMMIT: lambda: self._transaction(statement),
            StatementKind.ROLLBACK: lambda: self._transaction(statement),
            StatementKind.SAVEPOINT: lambda: self._savepoint(statement),
            StatementKind.SET: lambda: self._set(statement),
            StatementKind.SHOW: lambda: self._show(statement),
            StatementKind.DECLARE: lambda: self._declare(statement, values),
            StatementKind.FETCH: lambda: self._fetch(statement),
            StatementKind.CLOSE: lambda: self._close(statement),
            StatementKind.PASSED: lambda: self._pass(statement),
        }
        if statement.kind not in ways:
            raise statements.refusal(statement)
        return ways[statement.kind]()

    # ------------------------------------------------------------------ queries

    def _query(self, statement: WireStatement, values: Sequence[Any]) -> WireOutcome:
        tree = self._looked_up(statement)
        if tree is not None:
            rows = self.catalogue.run(tree, self.caller, values)
            fields = tuple(ResultField(one.name, one.type) for one in rows.schema)
            return bounded(WireOutcome(f"SELECT {rows.num_rows}", fields, rows))
        with placed(statement):
            found = self.session.run(self._text(statement), values)
        outcome = WireOutcome(found.tag, tuple(found.fields), found.rows, tuple(found.notices))
        return bounded(outcome)

    def _looked_up(self, statement: WireStatement) -> Any:
        """The tree of a query that is about no table of ours, but about PostgreSQL itself.

        None for all others, also for what cannot be read: the session says where it is wrong.
        """
        tree = parsed(statement.sql)
        if not isinstance(tree, exp.Query | exp.Values):
            return None
        return tree if all(map(is_catalogue, tables_in(tree))) else None

    def _text(self, statement: WireStatement) -> str:
        """The query, without the database's name in front of tables."""
        return statements.without_database(statement.sql, self.caller.database)

    # ------------------------------------------------------------------ transactions

    def _transaction(self, statement: WireStatement) -> WireOutcome:
        """Nothing is changed, so nothing is undone: tools want to see it begin and end.

        The session is told, because it undoes what was set of its own.
        """
        if statement.kind is StatementKind.BEGIN:
            self.session.run("BEGIN")
            self.status = "T"
            return WireOutcome(statement.tag)
        undone = self.status == "E" or statement.kind is StatementKind.ROLLBACK
        self.session.run("ROLLBACK" if undone else "COMMIT")
        tag = "ROLLBACK" if self.status == "E" else statement.tag
        self.status = "I"
        self._cursors.clear()
        return WireOutcome(tag)

    def _savepoint(self, statement: WireStatement) -> WireOutcome:
        if self.status == "I":
            raise WireError("25P01", "there is no transaction", hint="BEGIN one first")
        self.status = "T"
        return WireOutcome(statement.tag or "ROLLBACK")

    def _pass(self, statement: WireStatement) -> WireOutcome:
        if statement.words[0] != "DISCARD":
            return WireOutcome(statement.tag)
        self._cursors.clear()
        if statement.words[1:2] == ("ALL",):
            return self._reset_all(statement)
        return WireOutcome(" ".join(statement.words[:2]))

    # ------------------------------------------------------------------ settings

    def begin_with(self, name: str, value: str) -> None:
        """A setting that the client came with."""
        if not name.startswith("voile."):
            self.settings.set(name, value)
            return
        if name == "voile.charge":
            raise WireError(
                "22023", "voile.charge is none of the settings that a client may come with",
                hint="SET voile.charge = on, where something is to be charged",
            )  # fmt: skip
        self._begun_with[name] = value
        self._set_as_begun()

    def _set_as_begun(self) -> None:
        for name, value in self._begun_with.items():
            quoted = value.replace("'", "''")
            self.session.run(f"SET {name} = '{quoted}'")

    def _set(self, statement: WireStatement) -> WireOutcome:
        found = statements.setting_of(statement.sql)
        if found is None:
            return WireOutcome(statement.tag)
        name, value = found
        if name == "all" and value is None:
            return self._reset_all(statement)
        if name.startswith("voile."):
            return self._set_ours(statement)
        before = dict(self.settings.items())
        self.settings.set(name, value)
        return WireOutcome(statement.tag, changed=self._changed(before))

    def _reset_all(self, statement: WireStatement) -> WireOutcome:
        """All is as the connection began, also what the session may spend: pools clean with it."""
        before = dict(self.settings.items())
        self.settings.set("all", None)
        self.session.run("RESET ALL")
        self._set_as_begun()
        return WireOutcome(statement.tag, changed=self._changed(before))

    def _changed(self, before: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What clients are told of."""
        return tuple(
            (REPORTED[one], now)
            for one, now in self.settings.items()
            if one in REPORTED and before[one] != now
        )

    def _set_ours(self, statement: WireStatement) -> WireOutcome:
        with placed(statement):
            found = self.session.run(statement.sql)
        return WireOutcome(statement.tag, notices=tuple(found.notices))

    def _show(self, statement: WireStatement) -> WireOutcome:
        name = " ".join(statement.sql.split()[1:]).strip('"').lower()
        if name.startswith("voile."):
            found = self.session.run(statement.sql)
            return WireOutcome("SHOW", tuple(found.fields), found.rows, tuple(found.notices))
        if name == "all":
            fields = tuple(ResultField(one, pa.string()) for one in ("name", "setting"))
            return WireOutcome("SHOW", fields, sorted(self.settings.items()))
        value = self.settings.get(name)
        if value is None:
            raise WireError("42704", f"there is no setting {name[:60]!r}",
                            hint="SHOW ALL lists them")  # fmt: skip
        return WireOutcome("SHOW", (ResultField(name, pa.string()),), [(value,)])

    # ------------------------------------------------------------------ cursors

    def _fetch(self, statement: WireStatement) -> WireOutcome:
        cursor, most = self._cursor(statement)
        start = cursor.at
        cursor.at = min(cursor.outcome.count, start + most)
        rows = cursor.outcome.slice(start, cursor.at)
        return WireOutcome(f"FETCH {len(rows)}", cursor.outcome.fields, rows)

    def _declare(self, statement: WireStatement, values: Sequence[Any]) -> WireOutcome:
        found = statements.DECLARED.fullmatch(statement.sql)
        if not found:
            raise WireError("42601", "the cursor is none that is read here",
                            hint="DECLARE name CURSOR FOR SELECT …")  # fmt: skip
        name = cursor_name(found["name"])
        if name not in self._cursors and len(self._cursors) >= MOST_CURSORS:
            raise WireError("53400", f"there are {MOST_CURSORS} cursors", hint="CLOSE one first")
        inner = WireStatement(
            StatementKind.QUERY, found["query"], statement.start + found.start("query")
        )
        outcome = self._query(inner, values)
        self._cursors[name] = FetchedRows(outcome)
        return WireOutcome(statement.tag, notices=outcome.notices)

    def _cursor(self, statement: WireStatement) -> tuple[FetchedRows, int]:
        """A cursor, and how many rows of it are wanted."""
        found = statements.FETCHED.fullmatch(statement.sql)
        if not found:
            raise WireError("0A000", "cursors here go forward only",
                            hint="FETCH FORWARD 100 FROM name")  # fmt: skip
        name = cursor_name(found["name"])
        if name not in self._cursors:
            raise WireError("34000", f"there is no cursor {name[:60]!r}",
                            hint="DECLARE it first; it ends with its transaction")  # fmt: skip
        most = MOST_ROWS if found["all"] else int((found["most"] or "1")[:9])
        return self._cursors[name], most

    def cursor_fields(self, name: str) -> tuple[FieldLike, ...] | None:
        """The columns of a cursor: clients know it as a portal, too."""
        cursor = self._cursors.get(name)
        return None if cursor is None else cursor.outcome.fields

    def forget_cursor(self, name: str) -> None:
        """End a cursor, if there is one of this name."""
        self._cursors.pop(name, None)

    def _close(self, statement: WireStatement) -> WireOutcome:
        found = statements.CLOSED.fullmatch(statement.sql)
        name = cursor_name(found["name"]) if found else ""
        if name == "all":
            self._cursors.clear()
        elif self._cursors.pop(name, None) is None:
            raise WireError("34000", f"there is no cursor {name[:60]!r}", hint="DECLARE it first")
        return WireOutcome(statement.tag)


def is_catalogue(table: TableName) -> bool:
    """Whether a table is one of those that describe others."""
    return table.schema in CATALOGUES or (table.schema == "" and table.name.startswith("pg_"))


def bounded(outcome: WireOutcome) -> WireOutcome:
    """The outcome, unless it has too many rows to send."""
    if outcome.count > MOST_ROWS:
        raise WireError(
            "54000", f"the result has {outcome.count:,} rows; at most {MOST_ROWS:,} are sent",
            hint="add a LIMIT, or read the release's files themselves",
        )  # fmt: skip
    return outcome


class placed:  # noqa: N801  (it is used as a word: with placed(statement))
    """Says of errors where they are in the text that the client sent."""

    def __init__(self, statement: WireStatement) -> None:
        self._statement = statement

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        start = getattr(error, "start", None)
        if isinstance(error, VoileError) and isinstance(start, int):
            error.start = start + self._statement.start  # type: ignore[attr-defined]
