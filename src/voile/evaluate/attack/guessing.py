"""What a reader of rows guesses of a person: the values of those who look alike.

Someone who knows that a person is in the table looks up the rows that may be theirs, and takes the
shares of a value among them for the chances of it. Of classes that is all there is to see. It is
no bound: who knows more learns more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voile.errors import UsageError, did_you_mean
from voile.kinds.release import Release
from voile.query.quoting import literal, quote_identifier
from voile.records import Record

MOST_VALUES = 10_000
"""Of the column that is guessed."""


@dataclass(frozen=True)
class GuessedBelief(Record):
    """What is believed of one value, before and after."""

    value: Any
    prior: float
    """Its share of all rows, which everybody may know."""
    posterior: float
    """Its share among the rows that may be the person's."""


def guess_value(release: Release, known: Mapping[str, Any], column: str) -> list[GuessedBelief]:
    """The chances of every value of a column, for someone of whom other columns are `known`."""
    schema = release.schema
    for name in (column, *known):
        if name not in schema.names:
            raise UsageError(
                f"the release has no column {name!r}", hint=did_you_mean(name, list(schema.names))
            )
    if column in known:
        raise UsageError(f"{column!r} is known already", hint="leave it out, or guess another")
    if not known:
        raise UsageError("nothing is known of the person", hint="give the value of a column")
    if schema[column].size > MOST_VALUES:
        raise UsageError(
            f"{column!r} has {schema[column].size:,} values, too many to guess",
            hint="guess a column with fewer values",
        )
    conditions = " and ".join(
        f"{quote_identifier(name)} = {literal(value)}" for name, value in known.items()
    )
    before, after = shares(release, column, ""), shares(release, column, f" where {conditions}")
    if not after:
        raise UsageError(
            "no row of the release can be of such a person",
            hint="change a value, or leave one out",
        )
    beliefs = [GuessedBelief(v, before.get(v, 0.0), after.get(v, 0.0)) for v in {**before, **after}]
    return sorted(beliefs, key=lambda one: -one.posterior)


def shares(release: Release, column: str, condition: str) -> dict[Any, float]:
    """The share of every value among some rows; nothing where there are none."""
    name = quote_identifier(column)
    sql = f"select {name}, count(*) as n from {quote_identifier(release.name)}{condition}"
    rows = [tuple(row.values()) for row in release.query(f"{sql} group by {name}").rows]
    counts = {value: max(float(estimate.value), 0.0) for value, estimate in rows}
    total = sum(counts.values())
    return {value: count / total for value, count in counts.items()} if total > 0 else {}
