"""Counts that analysts ask for, and how wrong a release answers them on average.

A query asks how many rows have one of b values in each of qd quasi-identifiers, and one of b
sensitive values. As in Anatomy, b = ⌈|A| · sel^(1/(qd+1))⌉ values are drawn of an attribute A, so
that a query asks for a share of about `sel` of the domain whatever its dimension is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voile.arrays import Floats, Words
from voile.errors import UsageError
from voile.evaluate.losses.kernels import answers_of_points, sums_of_blocks
from voile.kinds.blocks import Blocks, Orders, Points, RowBlocks, Sets, in_parts, told_by
from voile.noise import Key, Stream
from voile.privacy.divergence import jensen_shannon, shares
from voile.recoding.grouping import Shown
from voile.recoding.populations import Populations
from voile.recoding.units import Counts

SEED = 20060912
ROUNDS = 20
"""How often queries that no row meets are drawn anew."""
MOST_VALUES = 2**16
"""Of a column that queries are drawn about."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Count queries, each with a set of values for every column."""

    qi: tuple[Sets, ...]
    """For each quasi-identifier (queries, codes); all values where the query does not ask."""
    sensitive: Sets

    @property
    def number(self) -> int:
        """How many queries there are."""
        return len(self.sensitive)

    def chosen(self, which: Sets) -> Queries:
        """Some of the queries."""
        return Queries(tuple(sets[which] for sets in self.qi), self.sensitive[which])

    def joined(self, other: Queries) -> Queries:
        """These queries, then the others."""
        both = zip(self.qi, other.qi, strict=True)
        return Queries(
            tuple(np.concatenate(pair) for pair in both),
            np.concatenate([self.sensitive, other.sensitive]),
        )


def draw_queries(
    sizes: Sequence[int],
    values: int,
    *,
    dimension: int,
    selectivity: float,
    number: int,
    stream: Stream,
) -> Queries:
    """So many queries about `dimension` columns each; columns and values are drawn evenly."""
    share = selectivity ** (1 / (dimension + 1))
    ranks = np.argsort(np.argsort(table_of_words(stream, number, len(sizes)), axis=1), axis=1)
    qi = []
    for j, size in enumerate(sizes):
        sets = drawn_sets(stream, number, size, share)
        sets[ranks[:, j] >= dimension] = True
        qi.append(sets)
    return Queries(tuple(qi), drawn_sets(stream, number, values, share))


def drawn_sets(stream: Stream, number: int, size: int, share: float) -> Sets:
    """⌈size · share⌉ different values for each query."""
    chosen = min(size, math.ceil(size * share - 1e-9))
    order = np.argsort(table_of_words(stream, number, size), axis=1)[:, :chosen]
    sets = np.zeros((number, size), dtype=np.bool_)
    np.put_along_axis(sets, order, True, axis=1)
    return sets


def table_of_words(stream: Stream, rows: int, columns: int) -> Floats:
    """Random numbers in rows and columns."""
    return stream.words(rows * columns).reshape(rows, columns)  # type: ignore[return-value]


def answers(told: RowBlocks, queries: Queries) -> Floats:
    """(queries,): the counts that a release gives."""
    found = np.zeros(queries.number)
    for blocks in told:
        if isinstance(blocks, Points) and not any(blocks.inversions):
            asked, starts = bits_of(queries)
            answers_of_points(blocks.codes, blocks.counts, asked, starts, found)
        else:
            found += answers_of_shares(blocks, queries)
    return found


def answers_of_shares(blocks: Blocks, queries: Queries) -> Floats:
    """Counts from shares of blocks, a part of them at a time."""
    found = np.zeros(queries.sensitive.shape)
    for part in in_parts(blocks):
        share = np.ones((queries.number, len(part.counts)))
        for j, sets in enumerate(queries.qi):
            asked = np.flatnonzero(~sets.all(axis=1))
            share[asked] *= part.shares(j, sets[asked])
        found += share @ part.counts
    total: Floats = (found * queries.sensitive).sum(axis=1)
    return total


def bits_of(queries: Queries) -> tuple[Words, Counts]:
    """Which queries select each value of each column, 64 to a word; and where columns start.

    The last column is the sensitive one.
    """
    size = -(-queries.number // 64) * 64
    found = []
    for sets in (*queries.qi, queries.sensitive):
        padded = np.zeros((sets.shape[1], size), dtype=np.bool_)
        padded[:, : len(sets)] = sets.T
        found.append(np.packbits(padded, axis=1, bitorder="little").view("<u8"))
    starts = np.cumsum([0, *(len(of) for of in found[:-1])])
    return np.concatenate(found).astype(np.uint64, copy=False), starts.astype(np.int64)


def workload(
    truth: RowBlocks,
    sizes: Sequence[int],
    *,
    dimension: int,
    selectivity: float,
    number: int,
    seed: int = SEED,
) -> tuple[Queries, Floats]:
    """Queries that some rows meet, and their true counts; those that none meets are redrawn.

    There may be fewer than asked for where nearly all are met by none.
    """
    check_queries(len(sizes), dimension, selectivity, number)
    values = truth[0].counts.shape[1]
    stream = Key.from_seed(seed).stream("queries")
    found: Queries | None = None
    counts = np.empty(0)
    for _ in range(ROUNDS):
        drawn = draw_queries(
            sizes, values, dimension=dimension, selectivity=selectivity, number=number,
            stream=stream,
        )  # fmt: skip
        true = answers(truth, drawn)
        kept = drawn.chosen(true > 0)
        found = kept if found is None else found.joined(kept)
        counts = np.concatenate([counts, true[true > 0]])
        if len(counts) >= number:
            break
    assert found is not None  # noqa: S101
    first = np.arange(len(counts)) < number
    return found.chosen(first), counts[first]


def check_queries(columns: int, dimension: int, selectivity: float, number: int) -> None:
    """Refuse queries that cannot be drawn."""
    if not 1 <= dimension <= columns:
        raise UsageError(
            f"queries about {dimension} of {columns} quasi-identifiers cannot be drawn",
            hint=f"give a dimension from 1 to {columns}",
        )
    if not 0 < selectivity <= 1:
        raise UsageError(f"selectivity {selectivity:g} must lie in (0, 1]", hint="0.05 is usual")
    if number < 1:
        raise UsageError(
            f"{number} queries cannot be asked", hint="1000 are usual, 0 leaves them out"
        )


def relative_error(told: RowBlocks, queries: Queries, counts: Floats) -> float:
    """The mean of |answer − count| / count."""
    if not len(counts):
        return math.nan
    return float((np.abs(answers(told, queries) - counts) / counts).mean())


# ----------------------------------------------------------------------
# u_loss: how wrong estimates about large populations are, on average
# For each population the distribution of its sensitive values is estimated from what a release
# tells, and compared with the true one.


def u_loss(
    shown: Shown, populations: Populations, orders: Orders | None = None, attribute: int = 0
) -> float:
    """The mean of JS between the true and the estimated distribution of each large population.

    `orders` lead from the positions in `shown` to the codes of the populations; without them
    positions are codes.
    """
    return mean_divergence(populations, estimated(told_by(shown, orders, attribute), populations))


def estimated(told: RowBlocks, populations: Populations) -> Floats:
    """(populations, sensitive values): rows that each is estimated to have.

    For classes that is Σ_B |B ∩ y| p_B(s) if they are bucketized, and Σ_E n_E(s) Π_j |Y_j ∩ E_j| /
    |E_j| if they are generalized.
    """
    values = len(populations.overall)
    if any(blocks.counts.shape[1] != values for blocks in told):
        raise UsageError(
            f"the release and the populations do not have the same {values} sensitive values",
            hint="name the same sensitive column",
        )
    found = np.zeros((populations.number, values))
    for blocks in told:
        for part in in_parts(blocks.merged(populations.kind_of)):
            sums_of_blocks(
                populations.column, populations.item, populations.size,
                overlaps(part, populations), np.ascontiguousarray(part.counts), found,
            )  # fmt: skip
    return found


def overlaps(blocks: Blocks, populations: Populations) -> Floats:
    """(quasi-identifiers, items, blocks): the share of each block that each item has."""
    most = max(items.number for items in populations.items)
    found = np.zeros((len(populations.items), most, len(blocks.counts)))
    for j, items in enumerate(populations.items):
        found[j, : items.number] = blocks.shares(j, items.has)
    return found


def population_losses(populations: Populations, counts: Floats) -> Floats:
    """(populations,): JS between the true distribution and estimated counts.

    Negative counts are 0; where nothing is left, the estimate is the whole table's distribution.
    """
    counts = np.maximum(counts, 0.0)
    known = counts.sum(axis=1, keepdims=True) > 0
    return jensen_shannon(populations.true, np.where(known, shares(counts), populations.overall))


def mean_divergence(populations: Populations, counts: Floats) -> float:
    """U_loss of estimated counts; 0 where there is no large population."""
    losses = population_losses(populations, counts)
    return float(losses.mean()) if len(losses) else 0.0
