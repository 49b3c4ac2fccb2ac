"""What a release says beside what the table says: counts of columns, and one's own questions.

Made from the private table, and for its steward alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

import numpy as np

from voile.engines import connect
from voile.errors import QueryError, UsageError, VoileError
from voile.estimate import Estimate
from voile.estimate.answer import Answer
from voile.kinds.release import Release
from voile.query import parse
from voile.query.quoting import quote_identifier
from voile.records import Record
from voile.schema import Schema

__all__ = [
    "AnswerBeside", "CountBeside", "SummaryBeside", "answers_beside", "check_question",
    "counts_beside", "ranges_beside", "summary_beside",
]  # fmt: skip

MOST_CELLS = 200_000
"""Cells of a table of counts."""
MOST_ROWS = 1_000
"""Rows of an answer that are compared."""
MOST_VALUES = 2_000_000
"""Values of a column that are put into ranges."""
MISSING = "(missing)"
"""What a cell of rows without a value is called."""
ANY_VALUES: Mapping[str, dict[str, Any]] = {
    "categorical": {"values": ["a"]}, "boolean": {"values": [True]}, "integer": {"range": [0, 1]},
    "numeric": {"bins": [0.0, 1.0]}, "date": {"range": ["2000-01-01", "2000-01-02"]},
}  # fmt: skip
"""Some domain for every kind: names and kinds decide whether a question can be read."""


@dataclass(frozen=True)
class CountBeside(Record):
    """How many rows have these values, in the table and as the release says."""

    values: tuple[Any, ...]
    truth: int
    estimate: float


@dataclass(frozen=True)
class AnswerBeside(Record):
    """One number of an answer beside the truth."""

    column: str
    group: str
    """The values of the group that it is of, in words; empty where there is one row."""
    estimate: float
    stderr: float | None
    low: float | None
    high: float | None
    truth: float | None
    """None where the table has no such group, or no such number."""
    relative: float | None
    """The standard error as a share of the truth; of a number without one, how far it is off."""
    covered: bool | None
    """Whether the truth lies in the interval; None where one of them is not known."""


@dataclass(frozen=True)
class SummaryBeside(Record):
    """One statistic of a column, in the table and as the release says; None where it says none."""

    column: str
    statistic: str
    truth: float | None
    estimate: float | None


def counts_beside(
    release: Release, table: Any, columns: Sequence[str], *, drop_nulls: bool = False
) -> list[CountBeside]:
    """Every cell of the table of some columns of a release, beside its true count."""
    schema = release.schema
    chosen = [schema[name] for name in columns]
    sizes = [attribute.size for attribute in chosen]
    if (cells := int(np.prod(sizes, dtype=object))) > MOST_CELLS:
        raise UsageError(
            f"{' and '.join(columns)} have {cells:,} cells, too many to compare",
            hint="choose columns with fewer values",
        )
    codes, _ = connect(table).columns_of_codes(schema, drop_nulls=drop_nulls)
    places = [schema.names.index(name) for name in columns]
    cell_of_rows = np.ravel_multi_index([codes[i] for i in places], sizes)
    truth = np.bincount(cell_of_rows, minlength=cells)
    listed = ", ".join(map(quote_identifier, columns))
    named = f"select {listed}, count(*) as n from {quote_identifier(release.name)}"
    found = {}
    for row in release.query(f"{named} group by {listed}").rows:
        *values, estimate = row.values()
        found[tuple(values)] = float(estimate.value)
    every = np.stack(np.unravel_index(np.arange(cells), sizes), axis=1).tolist()
    values_of = [list(attribute) for attribute in chosen]
    keys = [tuple(v[i] for v, i in zip(values_of, cell, strict=True)) for cell in every]
    return [
        CountBeside(key, int(true), found.get(key, 0.0))
        for key, true in zip(keys, truth.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class ColumnGroups:
    """How values of one column are put together: as SQL, and by hand."""

    name: str
    sql: str
    labels: list[str]
    of_values: list[int]
    """The group of each value of the domain, in its order."""
    of_key: Callable[[Any], int | None]
    """The group that a key of the answer names."""


def ranges_beside(
    release: Release, table: Any, columns: Sequence[str], *, most: int, drop_nulls: bool = False
) -> list[CountBeside]:
    """Counts of columns beside the truth, in about `most` ranges where numbers or dates have more.

    What has fewer values, and texts, keep them. The values of a cell are words.
    """
    groups = [column_groups(release.schema[name], most) for name in columns]
    sizes = [len(one.labels) for one in groups]
    if (cells := math.prod(sizes)) > MOST_CELLS:
        raise UsageError(
            f"{' and '.join(columns)} have {cells:,} values, too many to compare",
            hint="choose columns with fewer values",
        )
    codes, _ = connect(table).columns_of_codes(release.schema, drop_nulls=drop_nulls)
    at = [release.schema.names.index(name) for name in columns]
    placed = [np.asarray(one.of_values)[codes[i]] for one, i in zip(groups, at, strict=True)]
    truth = np.bincount(np.ravel_multi_index(placed, sizes), minlength=cells)
    estimates = np.zeros(cells)
    listed = ", ".join(f"{one.sql} as g{i}" for i, one in enumerate(groups))
    keys = ", ".join(f"g{i}" for i in range(len(groups)))
    named = quote_identifier(release.name)
    for row in release.query(f"select {listed}, count(*) as n from {named} group by {keys}").rows:
        *values, estimate = row.values()
        where = [one.of_key(value) for one, value in zip(groups, values, strict=True)]
        known = [place for place in where if place is not None]
        if len(known) == len(groups):
            estimates[np.ravel_multi_index(known, sizes)] += float(estimate.value)
    every = np.stack(np.unravel_index(np.arange(cells), sizes), axis=1).tolist()
    return [
        CountBeside(
            tuple(one.labels[i] for one, i in zip(groups, cell, strict=True)),
            int(true),
            float(said),
        )
        for cell, true, said in zip(every, truth.tolist(), estimates.tolist(), strict=True)
    ]


def column_groups(attribute: Any, most: int) -> ColumnGroups:
    """The values of a column as they are, or in ranges of numbers or dates where there are many."""
    name, column = attribute.name, quote_identifier(attribute.name)
    if attribute.size > MOST_VALUES:
        raise UsageError(
            f"{name!r} has {attribute.size:,} values, too many to compare", hint="make bins of it"
        )
    values = list(attribute)
    known = [value for value in values if value is not None]
    if len(known) <= most or attribute.kind not in ("integer", "numeric", "date"):
        place: dict[Any, int] = {value: i for i, value in enumerate(values)}
        labels = value_labels(attribute, values)
        return ColumnGroups(name, column, labels, [*place.values()], place.get)
    if attribute.kind == "date":
        return date_groups(name, column, values, most)
    step = round_step((float(known[-1]) - float(known[0])) / most)
    step = max(step, 1.0) if attribute.kind == "integer" else step
    first, last = math.floor(known[0] / step), math.floor(known[-1] / step)
    end = 1 if attribute.kind == "integer" else 0
    labels = [f"{step * i:g}–{step * (i + 1) - end:g}" for i in range(first, last + 1)]
    missing = [len(labels)] if None in values else []

    def of_key(value: Any) -> int | None:
        if value is None:
            return missing[0] if missing else None
        place = round(float(value)) - first
        return place if 0 <= place <= last - first else None

    of_values = [
        missing[0] if value is None else math.floor(value / step) - first for value in values
    ]
    labels += [MISSING] if missing else []
    return ColumnGroups(name, f"floor({column} / {step:.12g})", labels, of_values, of_key)


def value_labels(attribute: Any, values: Sequence[Any]) -> list[str]:
    """What values are called; a bin by its ends, since its middle is no value of the table."""
    edges = attribute.to_dict().get("bins")
    if edges is None:
        return [MISSING if value is None else str(value) for value in values]
    ends = [*edges]
    if attribute.kind == "integer":  # the next edge is not in the bin, but for the last
        ends = [*(edge - 1 for edge in edges[:-1]), edges[-1]]
    bins = zip(edges, ends[1:], strict=False)
    if attribute.kind == "date":
        names = iter([f"from {low}" for low, _ in bins])
    else:
        names = iter([f"{low:g}" if low == high else f"{low:g}–{high:g}" for low, high in bins])
    return [MISSING if value is None else next(names) for value in values]


def round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))


def date_groups(name: str, column: str, values: Sequence[date | None], most: int) -> ColumnGroups:
    """Dates by month, or by year where there are more months than are wanted."""
    unit, length = "month", 7
    texts = [str(value)[:7] for value in values if value is not None]
    if len(set(texts)) > most:
        unit, length = "year", 4
    words = [MISSING if value is None else str(value)[:length] for value in values]
    labels = list(dict.fromkeys(words))
    place = {label: i for i, label in enumerate(labels)}
    return ColumnGroups(
        name, f"date_trunc('{unit}', {column})", labels, [place[word] for word in words],
        lambda value: place.get(MISSING if value is None else str(value)[:length]),
    )  # fmt: skip


def check_question(sql: str, kinds: Mapping[str, str], name: str = "") -> None:
    """Refuse a question that no release with these columns can read; `kinds` are by their names."""
    attributes = [
        {"name": column, "kind": kind, **ANY_VALUES[kind]}
        for column, kind in kinds.items()
        if kind in ANY_VALUES
    ]
    parse(sql, Schema.from_dict({"attributes": attributes}), called=name)


class Queryable(Protocol):
    """What answers questions: a release, or a server for studies."""

    def query(self, sql: str, /) -> Answer:
        """The answer with its errors."""


def answers_beside(release: Queryable, table: Any, sql: str) -> list[AnswerBeside]:
    """The numbers of an answer, each with its interval and what the table gives."""
    answer = release.query(sql)
    rows = [list(row.items()) for row in answer.rows[:MOST_ROWS]]
    truths = true_rows(connect(table), sql)
    found = []
    for row in rows:
        group = tuple(value for _, value in row if not isinstance(value, Estimate))
        true = truths.get(tuple(map(str, group)), {})
        words = ", ".join(map(str, group))
        numbers = [(name, value) for name, value in row if isinstance(value, Estimate)]
        for place, (name, estimate) in enumerate(numbers):
            found.append(beside(name, words, estimate, true.get(place)))
    return found


def true_rows(table: Any, sql: str) -> dict[tuple[str, ...], dict[int, float]]:
    """The table's own answer: by the values that group it, its numbers in order."""
    import sqlglot  # noqa: PLC0415  (only where questions are asked)

    selected = getattr(sqlglot.parse_one(sql, dialect="duckdb"), "selects", [])
    numbers = [i for i, one in enumerate(selected) if one.find(sqlglot.exp.AggFunc) is not None]
    try:
        rows = table.run(sql)
    except Exception as error:
        raise QueryError(
            f"the table cannot answer {sql!r}: {str(error).splitlines()[0]}",
            hint="write it in the SQL that both know",
        ) from None
    found = {}
    for row in rows:
        group = tuple(str(value) for i, value in enumerate(row) if i not in numbers)
        listed = [row[i] for i in numbers]
        found[group] = {n: float(x) for n, x in enumerate(listed) if x is not None}
    return found


def beside(name: str, group: str, estimate: Estimate, truth: float | None) -> AnswerBeside:
    """An estimate with its interval; the certain bounds where no other is stated."""
    said = estimate.to_dict()
    low = said["low"] if said.get("low") is not None else said.get("certain_low")
    high = said["high"] if said.get("high") is not None else said.get("certain_high")
    covered = None
    if low is not None and high is not None and truth is not None:
        covered = bool(low <= truth <= high)
    error, value = said.get("stderr"), float(estimate.value)
    relative = None
    if truth:
        relative = (abs(value - truth) if error is None else error) / abs(truth)
    return AnswerBeside(name, group, value, error, low, high, truth, relative, covered)


def summary_beside(release: Release, table: Any) -> list[SummaryBeside]:
    """Rows, and of every column of numbers its mean and its middle."""
    named = quote_identifier(release.name)
    found = [one_statistic(release, table, "", "rows", f"select count(*) as n from {named}")]
    for attribute in release.schema:
        if attribute.kind not in ("integer", "numeric"):
            continue
        column = quote_identifier(attribute.name)
        for statistic, function in (("mean", "avg"), ("median", "median")):
            sql = f"select {function}({column}) as n from {named}"
            found.append(one_statistic(release, table, attribute.name, statistic, sql))
    return found


def one_statistic(
    release: Release, table: Any, column: str, statistic: str, sql: str
) -> SummaryBeside:
    """One number of both; a release need not answer every question."""
    try:
        (one,) = answers_beside(release, table, sql)
    except (VoileError, ValueError):
        return SummaryBeside(column, statistic, None, None)
    return SummaryBeside(column, statistic, one.truth, one.estimate)
