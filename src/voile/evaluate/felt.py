"""How far the counts that matter are off in one release: what its steward will feel.

Every count of one column, and of two for some pairs of columns, that holds a hundredth of the rows
or more is asked of the release and compared with the table. Made from the private table, and not
for publication.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import numpy as np

from voile.engines.table import Table
from voile.errors import QueryError
from voile.estimate import Estimate
from voile.kinds.choosing import MATTERS
from voile.kinds.release import Release
from voile.query.quoting import quote_identifier
from voile.records import Record

__all__ = ["FeltCount", "FeltError", "answers", "felt_counts", "felt_error"]

MOST_PAIRS = 40
"""Pairs of columns that are asked about, always the same ones."""
MOST_CELLS = 200_000
"""Cells of a table that is asked about."""


@dataclass(frozen=True)
class FeltError(Record):
    """Errors of counts that hold 1 % of the rows or more, relative to each."""

    one: float | None
    """The middle of counts of one column."""
    two: float | None
    """The middle of counts of two columns."""
    both: float | None
    coverage: float | None
    """The share of them that lie in their 0.95 interval."""
    counts: int


@dataclass(frozen=True)
class FeltCount:
    """A count of the table, and what a release says it is."""

    columns: tuple[int, ...]
    cell: int
    """Its place in the table of these columns, the last column fastest."""
    truth: int
    estimate: Estimate


def felt_error(release: Release, table: Table, *, drop_nulls: bool = False) -> FeltError:
    """Ask a release for the counts that matter, and compare them with its table."""
    return felt_of(list(felt_counts(release, table, drop_nulls=drop_nulls)))


def felt_of(counts: Sequence[FeltCount]) -> FeltError:
    """The middle errors of these counts, and how many lie in their interval."""
    errors: dict[int, list[float]] = {1: [], 2: []}
    inside: list[bool] = []
    for one in counts:
        errors[len(one.columns)].append(abs(float(one.estimate.value) - one.truth) / one.truth)
        low, high = one.estimate.interval()
        inside.append(bool(low <= one.truth <= high))
    return FeltError(
        middle(errors[1]),
        middle(errors[2]),
        middle(errors[1] + errors[2]),
        sum(inside) / len(inside) if inside else None,
        len(inside),
    )


def felt_counts(release: Release, table: Table, *, drop_nulls: bool = False) -> Iterator[FeltCount]:
    """The counts that matter, with what the release says of each."""
    schema = release.schema
    codes, _ = table.columns_of_codes(schema, drop_nulls=drop_nulls)
    rows = len(codes[0])
    for columns in asked(schema.sizes):
        sizes = [schema.sizes[i] for i in columns]
        cells = np.ravel_multi_index([codes[i] for i in columns], sizes)
        true = np.bincount(cells, minlength=int(np.prod(sizes)))
        try:
            listed = list(answers(release, columns))
        except QueryError:  # more groups than are listed at once, or columns not counted together
            continue
        for cell, estimate in listed:
            if true[cell] >= MATTERS * rows:  # where columns are wide, few do
                yield FeltCount(columns, cell, int(true[cell]), estimate)


def middle(errors: list[float]) -> float | None:
    """The median, where there is one."""
    return median(errors) if errors else None


def asked(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """All columns, and some pairs of them; the same for the same sizes."""
    places = [i for i, size in enumerate(sizes) if 1 < size <= MOST_CELLS]
    pairs = [p for p in combinations(places, 2) if sizes[p[0]] * sizes[p[1]] <= MOST_CELLS]
    if len(pairs) > MOST_PAIRS:
        pairs = sorted(random.Random(0).sample(pairs, MOST_PAIRS))  # noqa: S311  (no secret)
    return [*((i,) for i in places), *pairs]


def answers(release: Release, columns: tuple[int, ...]) -> Iterator[tuple[int, Estimate]]:
    """Cell and estimate of every group of some columns."""
    schema = release.schema
    chosen = [schema[schema.names[i]] for i in columns]
    listed = ", ".join(quote_identifier(a.name) for a in chosen)
    table = quote_identifier(release.name)
    answer = release.query(f"select {listed}, count(*) as n from {table} group by {listed}")
    places = [{value: code for code, value in enumerate(a)} for a in chosen]
    for row in answer.rows:
        *values, estimate = row.values()
        codes = [place[value] for place, value in zip(places, values, strict=True)]
        cell = int(np.ravel_multi_index(codes, [a.size for a in chosen]))
        yield cell, estimate
