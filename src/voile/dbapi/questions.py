"""Statistics of a table as rows of plain columns, and the values that columns may have."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from voile.answering.source import check, types
from voile.answering.totals import ALL_GROUPS, listing
from voile.answering.walk import places_in_order
from voile.dbapi.results import Field, ResultSet, rows_result
from voile.dbapi.sources import AskedTable, type_of
from voile.dbapi.statements import rewritten
from voile.errors import QueryError
from voile.estimate import Estimate
from voile.query import DomainSums, parse
from voile.query.aggregate import Call, Constant, Formula
from voile.query.predicate import Term
from voile.query.rows import RowSums

if TYPE_CHECKING:
    from voile.dbapi.settings import SessionSettings
    from voile.engines.rows import PublicDomain
    from voile.query.query import Query

ENDS = ("_stderr", "_low", "_high")
COUNTED = "rows of a group"
"""What a count is called that nobody asked for."""
REMEMBERED = 256
"""Questions whose columns are remembered."""
SUM_MEMORY = 2**28
WHOLE = 2**53
LISTED = "these values are the public domain's: they cost nothing and tell nothing of any row"


# ---------------------------------------------------------------------- statistics


def statistics(sql: str, table: AskedTable, settings: SessionSettings) -> ResultSet:
    """The estimates of a question, each as a number of its own column."""
    fields = statistics_fields(sql, table, settings)
    answer, notes = table.answer(sql, settings.confidence, charge=settings.charge)
    plain = {field.name: field.type for field in fields}
    readers = {name: reader(plain[name]) for name in answer.columns}
    rows = [
        tuple(
            value
            for name, cell in row.items()
            for value in cells(cell, readers[name], intervals=settings.intervals)
        )
        for row in answer.rows
    ]
    said = [*notes]
    if settings.intervals:
        said.insert(0, f"intervals at {answer.confidence:g} cover {answer.covers}")
    if answer.assumption:
        said.append(f"assumed: {answer.assumption}")
    return rows_result(fields, rows, *said)


def statistics_fields(sql: str, table: AskedTable, settings: SessionSettings) -> tuple[Field, ...]:
    """The columns that a question gives; it is read and checked, and not asked."""
    known = table.typed.get(sql)
    if known is None:
        known = table.typed[sql] = typed_columns(sql, table)
        while len(table.typed) > REMEMBERED:  # the oldest first; another thread may be faster
            table.typed.pop(next(iter(table.typed)), None)
    found = []
    for field, estimated in known:
        found.append(field)
        if settings.intervals and estimated:
            found += [Field(field.name + end, pa.float64()) for end in ENDS]
    return tuple(found)


def typed_columns(sql: str, table: AskedTable) -> tuple[tuple[Field, bool], ...]:
    """The columns of a question with their types, and which of them are estimates."""
    query = parse(sql, table.schema, {}, table.name)
    table.vouch(sql)
    with table.domain.at_work() as domain:
        check(query, domain)
        kinds = types(sql, query.groups, domain) if query.groups else []
    return tuple(
        (Field(column.name, type_of(kinds[column.source])), False)
        if isinstance(column.source, int)
        else (Field(column.name, number_type(column.source)), True)
        for column in query.columns
    )


def keys_alone(
    select: exp.Select, table: AskedTable, settings: SessionSettings, *, run: bool
) -> ResultSet:
    """Groups that are chosen or sorted by statistics which SELECT does not name."""
    counted = select.select(exp.alias_(exp.Count(this=exp.Star()), COUNTED, quoted=True))
    sql = rewritten(counted)
    if run:
        found = statistics(sql, table, settings)
    else:
        found = ResultSet(statistics_fields(sql, table, settings), [], "SELECT 0")
    width = len(select.expressions)
    rows = [row[:width] for row in found.to_rows()]
    return rows_result(found.fields[:width], rows, *found.notices)


def number_type(formula: Formula) -> Any:
    """Estimates are doubles; those that are rounded to whole numbers are whole."""
    whole = isinstance(formula, Call) and formula.name == "round"
    if whole and isinstance(formula, Call) and formula.args[1:] == (Constant(0.0),):
        return pa.int64()
    return pa.float64()


def cells(cell: Any, read: Callable[[Any], Any], *, intervals: bool) -> list[Any]:
    """A key, or an estimate with what stands beside it."""
    if not isinstance(cell, Estimate):
        return [read(cell)]
    found = [read(cell.value)]
    if intervals:
        found += [known(cell.stderr), *map(known, cell.interval())]
    return found


def known(value: float) -> float | None:
    """NULL for what is not known."""
    return None if math.isnan(value) else float(value)


def reader(kind: Any) -> Callable[[Any], Any]:
    """What makes a value of a column's type; servers write dates as texts."""

    def read(value: Any) -> Any:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if pa.types.is_integer(kind):
            return int(value) if math.isfinite(value) and abs(value) < WHOLE * 1024 else None
        if pa.types.is_floating(kind):
            return float(value)
        if isinstance(value, str):
            return from_text(value, kind)
        if pa.types.is_date(kind) and isinstance(value, dt.datetime):
            return value.date()
        return value

    return read


def from_text(value: str, kind: Any) -> Any:
    """A text of a server's reply as a value of a column's type."""
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value[:10])
    if pa.types.is_timestamp(kind):
        return dt.datetime.fromisoformat(value)
    return dt.time.fromisoformat(value) if pa.types.is_time(kind) else value


# ---------------------------------------------------------------------- the public domain


def as_groups(select: exp.Select) -> tuple[str, list[str]]:
    """SELECT DISTINCT as a question for groups, and the names of its columns."""
    flat = select.copy()
    flat.set("distinct", None)
    items = flat.expressions
    if any(item.is_star for item in items):
        raise QueryError(
            "SELECT DISTINCT * would list every tuple that the public domain allows",
            hint="name a column: select distinct x",
        )
    flat.set("group", exp.Group(expressions=[item.unalias().copy() for item in items]))
    names = [item.alias_or_name or item.sql("duckdb", comments=False) for item in items]
    flat.select(exp.alias_(exp.Count(this=exp.Star()), COUNTED, quoted=True), copy=False)
    return rewritten(flat), names


def distinct(select: exp.Select, table: AskedTable, *, run: bool) -> ResultSet:
    """The values that columns may have, in order, from the public domain."""
    sql, names = as_groups(select)
    query = parse(sql, table.schema, {}, table.name)
    table.domain.check_combined(sql, [*query.conditions, *query.groups])
    table.vouch(sql)
    with table.domain.at_work() as domain:
        check(query, domain)
        kinds = types(sql, query.groups, domain)
        keys = allowed(query, domain) if run else []
    sources = [c.source for c in query.columns if isinstance(c.source, int)]
    fields = [
        Field(name, type_of(kinds[source])) for name, source in zip(names, sources, strict=True)
    ]
    readers = [reader(field.type) for field in fields]
    rows = [
        tuple(read(key[source]) for read, source in zip(readers, sources, strict=True))
        for key in keys
    ]
    return rows_result(fields, rows, LISTED)


def allowed(query: Query, domain: PublicDomain) -> Sequence[tuple[Any, ...]]:
    """The groups that the domain allows, sorted and cut as the query says."""
    sums = DomainSums(domain.schema, domain.domain, memory=SUM_MEMORY)
    expected = sums.sums([Term(query.predicate)], query.groups)[0]
    possible = math.prod(len(keys) for keys in expected.keys)
    if possible > ALL_GROUPS:
        raise QueryError(
            f"the public domain allows {possible:,} values there, more than {ALL_GROUPS:,}",
            hint="name fewer columns, or coarser ones: select distinct floor(x / 10)",
        )
    keys = listing(RowSums((), np.zeros((0, 1))), expected, len(query.groups)).keys
    places = np.arange(len(keys))
    for order in reversed(query.order):
        if not isinstance(order.source, int):
            raise QueryError("values are sorted by themselves alone", hint="order by a column")
        sought = [keys[i][order.source] for i in places]
        places = places[places_in_order(sought, order)]
    last = None if query.limit is None else query.offset + query.limit
    return [keys[i] for i in places[query.offset : last]]
