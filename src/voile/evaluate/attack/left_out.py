"""An attack on people in a table and on others who were left out of it before it was published.

The attacker knows all of a person's values but one, asks the release for every table of that column
and another, and guesses the value that all of them together make likeliest (naive Bayes). Whatever
is found about people who are not in the table is statistics. What is found about those in it beyond
that would be about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.engines.table import Table
from voile.errors import QueryError, UsageError
from voile.evaluate.felt import answers
from voile.kinds.release import Release
from voile.records import Record
from voile.schema import Schema

MOST_CELLS = 200_000
"""Of a table that the attacker asks for."""
HALF = 0.5
"""What a cell that is estimated at nothing is taken to hold: no guess is ruled out by noise."""

Codes = list[npt.NDArray[Any]]


@dataclass(frozen=True)
class LeftOutAttack(Record):
    """How often the guesses are right, of people in the table and of people who are not."""

    json_keys: ClassVar = (
        "column", "known", "alone", "inside", "outside", "stderr", "likeliest", "people",
        "left_out",
    )  # fmt: skip
    column: str
    known: tuple[str, ...]
    alone: float
    """The share of people whom the table itself, without names, shows alone with what is known."""
    inside: float
    """The share of right guesses among those in the table."""
    outside: float
    """The same among those who were left out."""
    likeliest: float
    """The same for whoever always guesses the most frequent value."""
    people: int
    left_out: int

    @property
    def stderr(self) -> float:
        """The standard error of the difference, as people are drawn."""
        spread = sum(
            share * (1 - share) / count
            for share, count in ((self.inside, self.people), (self.outside, self.left_out))
        )
        return float(spread**0.5)


def attack_left_out(release: Release, inside: Table, outside: Table, column: str) -> LeftOutAttack:
    """Guess the column of everybody, of those in the table and of those who were left out."""
    schema = release.schema
    target = schema.names.index(column)
    likelihoods = tables_with(release, target)
    if not likelihoods:
        raise UsageError(
            f"no other column is counted together with {column!r}", hint="guess another column"
        )
    known = [schema.names[i] for i in likelihoods]
    prior = counted(release, (target,))
    seen, others = (codes_of(table, schema) for table in (inside, outside))
    return LeftOutAttack(
        column,
        tuple(known),
        share_alone(inside, known),
        share_right(seen, target, prior, likelihoods),
        share_right(others, target, prior, likelihoods),
        float((seen[target] == int(prior.argmax())).mean()),
        len(seen[target]),
        len(others[target]),
    )


def codes_of(table: Table, schema: Schema) -> Codes:
    """Every row's place in each column's values."""
    return [np.asarray(c, np.int64) for c in table.columns_of_codes(schema, drop_nulls=False)[0]]


def counted(release: Release, columns: tuple[int, ...]) -> Floats:
    """The release's counts of every combination of some columns, each at least a half."""
    sizes = [release.schema.sizes[i] for i in columns]
    found = np.full(int(np.prod(sizes)), HALF)
    for cell, estimate in answers(release, columns):
        found[cell] = max(float(estimate.value), HALF)
    return found.reshape(sizes)


def tables_with(release: Release, target: int) -> dict[int, Floats]:
    """For every other column that can be asked: how likely its values are, by the target's."""
    sizes, found = release.schema.sizes, {}
    for other, size in enumerate(sizes):
        if other == target or not 1 < size <= MOST_CELLS // sizes[target]:
            continue
        try:
            table = counted(release, (other, target))
        except QueryError:  # columns that this release does not count together
            continue
        found[other] = np.log(table / table.sum(axis=0))
    return found


def share_right(codes: Codes, target: int, prior: Floats, likelihoods: dict[int, Floats]) -> float:
    """How often the value is guessed that everything known makes likeliest."""
    scores = np.tile(np.log(prior), (len(codes[target]), 1))
    for other, logs in likelihoods.items():
        scores += logs[codes[other]]
    return float((scores.argmax(axis=1) == codes[target]).mean())


def share_alone(table: Table, known: list[str]) -> float:
    """The share of rows that no other row equals in what is known, as the table has the values."""
    rows, _ = table.rows(known)
    sizes = rows.group_by(known).aggregate([([], "count_all")])["count_all"].to_numpy()
    return float((sizes == 1).sum() / sizes.sum())
