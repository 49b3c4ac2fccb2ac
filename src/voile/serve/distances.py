"""How well questions distinguish two values of one person: from the questions and the domain.

A question's *part* of a tuple is the group that a row with it is counted in, and by how many steps.
Two tuples whose parts differ move the answer differently; how far that is, beside the noise, is
their squared distance, and distances of questions add up. Questions that differ in their rows only
are of one *kind*. Proofs: docs/mathematics, section 36.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from voile.arrays import Floats, Ints
from voile.engines import open_domain
from voile.engines.lookups import half_away
from voile.evaluate.reconstruction.fitting import distance_squared
from voile.query.domain.compare import all_hold, some_hold
from voile.query.predicate import Atom, Expression, Predicate, attributes, folded
from voile.query.text import read_back
from voile.schema import Schema

MOST_TUPLES = 2**16
"""Tuples on which questions are compared; beyond, a bound is used."""
MOST_SEEN = 1_500
"""Tuples that questions distinguish, of which all pairs are compared."""
MOST_NUMBERS = 2 * 10**7
LARGE = 256
"""Pairs that others are compared with, to drop those that can never be the farthest."""


@dataclass(frozen=True)
class QuestionKind:
    """What a question asks of a row, and its noise; which rows it is about is said elsewhere."""

    where: tuple[Predicate, ...]
    """Of the question and of a declared subset."""
    groups: tuple[Expression, ...]
    values: tuple[Expression, ...]
    low: float
    high: float
    scale: float
    l2_squared: int
    noise: str
    variance: float

    @classmethod
    def of(cls, question: dict[str, Any], subset: Predicate | None) -> QuestionKind:
        """From what the ledger keeps; `subset` is the condition of a declared one."""
        where = stored(question["where"]) if question["where"] else None
        return cls(
            where=tuple(part for part in (where, subset) if part),
            groups=tuple(map(stored, question["groups"])),
            values=tuple(map(stored, question["values"])),
            low=question["low"], high=question["high"], scale=question["scale"],
            l2_squared=question["l2_squared"], noise=question["noise"],
            variance=question["variance"],
        )  # fmt: skip

    @property
    def per_step(self) -> float:
        """The squared distance of two answers that differ by one step in one group."""
        return distance_squared(self.noise, self.variance)

    @property
    def largest(self) -> float:
        """The largest squared distance that two tuples can have."""
        return self.l2_squared * self.per_step

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns that it depends on."""
        read = [attributes(part) for part in self.where]
        return frozenset().union(*read, *(e.attributes for e in (*self.groups, *self.values)))


@lru_cache(maxsize=4096)
def stored(sql: str) -> Atom:
    """An expression as the ledger keeps it; the order of the columns says nothing."""
    node = read_back(sql)
    return Atom(node, tuple(sorted({column.name for column in node.find_all(exp.Column)})))


@dataclass(frozen=True)
class QuestionParts:
    """A question's parts of all tuples of the columns that it reads."""

    kind: QuestionKind
    columns: tuple[str, ...]
    codes: Ints
    """Which of the parts each tuple has, row-major."""
    groups: Ints
    steps: Ints
    """Of each part; 0 steps where a row does not count."""
    per_person: int

    @property
    def nothing(self) -> int:
        """The part of a row that does not count; there is one wherever it is needed."""
        return int(np.flatnonzero(self.steps == 0)[0])

    def distances(self) -> Floats:
        """Squared, between any two parts of all rows of one person."""
        kind, steps, people = self.kind, self.steps, self.per_person
        same = self.groups[:, None] == self.groups[None, :]
        within = (people * (steps[:, None] - steps[None, :])).astype(np.float64) ** 2
        own = (people * steps).astype(np.float64) ** 2
        between = own[:, None] + own[None, :]
        nowhere = (steps[:, None] == 0) | (steps[None, :] == 0)
        found: Floats = np.where(same | nowhere, within, between) * kind.per_step
        return found


class DomainParts:
    """Evaluates questions on the public domain."""

    def __init__(self, schema: Schema, per_person: int) -> None:
        self._schema = schema
        self._per_person = per_person
        self._view = open_domain(schema)
        self._seen: dict[QuestionKind, QuestionParts | None] = {}

    def size(self, columns: Sequence[str]) -> int:
        """How many tuples these columns have."""
        return math.prod(self._schema[name].size for name in columns)

    def seen(self, kind: QuestionKind) -> QuestionParts | None:
        """Its parts; None where there are too many tuples to look at."""
        if kind not in self._seen:
            self._seen[kind] = self._look(kind)
        return self._seen[kind]

    def tuples(self, kinds: Sequence[QuestionKind]) -> Ints | None:
        """Every tuple that the kinds distinguish, as its part by each of them."""
        columns = self.columns(kinds)
        seen = [s for kind in kinds if (s := self.seen(kind)) is not None]
        if len(seen) < len(kinds) or self.size(columns) > MOST_TUPLES:
            return None
        return np.unique(np.column_stack([self._spread(s, columns) for s in seen]), axis=0)

    def columns(self, kinds: Sequence[QuestionKind]) -> tuple[str, ...]:
        """What any of them reads, in the schema's order."""
        read = frozenset().union(*(kind.reads for kind in kinds))
        return tuple(name for name in self._schema.names if name in read)

    def _spread(self, seen: QuestionParts, columns: tuple[str, ...]) -> Ints:
        """Codes of parts on the tuples of more columns."""
        sizes = tuple(self._schema[name].size for name in columns)
        own = tuple(size if name in seen.columns else 1
                    for name, size in zip(columns, sizes, strict=True))  # fmt: skip
        return np.broadcast_to(seen.codes.reshape(own), sizes).reshape(-1)

    def _look(self, kind: QuestionKind) -> QuestionParts | None:
        columns = self.columns([kind])
        if self.size(columns) > MOST_TUPLES:
            return None
        counts = np.ones(self.size(columns), dtype=np.bool_)
        for condition in kind.where:
            counts &= self._truth(condition, columns)
        steps, known = self._steps(kind, columns)
        steps = np.where(counts & known, steps, 0)
        groups = np.where(steps != 0, self._groups(kind, columns), 0)
        pairs, codes = np.unique(np.column_stack([groups, steps]), axis=0, return_inverse=True)
        if self._per_person > 1 and not (pairs[:, 1] == 0).any():
            pairs = np.vstack([pairs, [[0, 0]]])  # who has fewer rows adds nothing
        return QuestionParts(
            kind, columns, codes.reshape(-1), pairs[:, 0], pairs[:, 1], self._per_person
        )

    def values(self, expression: Expression, columns: tuple[str, ...]) -> pa.Array:
        """On the tuples of these columns, of which it need not read all."""
        (found,) = self._view.domain.evaluate([replace(expression, attributes=columns)])
        return found

    def _truth(self, condition: Predicate, columns: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        def holds(atom: Atom) -> npt.NDArray[np.bool_]:
            known = pc.fill_null(pc.cast(self.values(atom, columns), pa.bool_()), False)
            return np.asarray(known.to_numpy(zero_copy_only=False))

        return np.asarray(folded(condition, holds, all_hold, some_hold))

    def _groups(self, kind: QuestionKind, columns: tuple[str, ...]) -> Ints:
        """A number for each combination of group keys; NULL is a key like others."""
        found = np.zeros(self.size(columns), dtype=np.int64)
        for group in kind.groups:
            keys = pc.dictionary_encode(self.values(group, columns), null_encoding="encode")
            found = found * len(keys.dictionary) + keys.indices.to_numpy(zero_copy_only=False)
        return found

    def _steps(
        self, kind: QuestionKind, columns: tuple[str, ...]
    ) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Whole fine steps as the server sums them, and where there is a value at all."""
        product = np.ones(self.size(columns))
        for value in kind.values:
            column = pc.cast(self.values(value, columns), pa.float64())
            product = product * pc.fill_null(column, math.nan).to_numpy(zero_copy_only=False)
        known = ~np.isnan(product)
        if not kind.values:
            return np.ones(len(product), dtype=np.int64), known
        low, high = (half_away(np.array([end * kind.scale]))[0] for end in (kind.low, kind.high))
        return np.clip(half_away(np.where(known, product, 0.0) * kind.scale), low, high), known


@dataclass(frozen=True)
class KindGroup:
    """Kinds that share columns, directly or through others, and how far pairs are apart by each.

    Kinds of other groups read other columns, so distances add up.
    """

    kinds: tuple[QuestionKind, ...]
    columns: tuple[str, ...]
    pairs: Floats
    """A row for each pair of tuples that may be the farthest, a column for each kind."""
    absent: Floats | None
    """The same for a tuple and no row at all, where a person may have none."""
    exact: bool
    """Whether every row is a pair; else the only row is a bound."""

    def distances(self, asked: Floats) -> tuple[Floats, Floats]:
        """The largest squared distances of two tuples, and of one from no row.

        For each row of `asked`: how many questions of each kind there were.
        """
        between = (asked @ self.pairs.T).max(axis=1)
        if self.absent is None:
            return between, np.zeros(len(asked))
        return between, (asked @ self.absent.T).max(axis=1)


def farthest(found: Iterable[tuple[Floats, Floats]], count: int) -> Floats:
    """The largest squared distance by all lots: each has its own values, but all the same rows."""
    between, from_nothing = np.zeros(count), np.zeros(count)
    for pairs, absent in found:
        between, from_nothing = between + pairs, from_nothing + absent
    return np.maximum(between, from_nothing)


def compared(
    kinds: Sequence[QuestionKind], domains: DomainParts, *, nothing: bool
) -> list[KindGroup]:
    """Kinds in independent lots; `nothing`: a person may have no row."""
    return [in_pairs(lot, domains, nothing=nothing) for lot in lots(kinds)]


def lots(kinds: Sequence[QuestionKind]) -> list[list[QuestionKind]]:
    """Kinds whose columns meet, in the same lot."""
    found: list[tuple[set[str], list[QuestionKind]]] = []
    for kind in kinds:
        meets = [lot for lot in found if lot[0] & kind.reads]
        columns = set(kind.reads).union(*(lot[0] for lot in meets))
        found = [lot for lot in found if lot not in meets]
        found.append((columns, [k for lot in meets for k in lot[1]] + [kind]))
    return [lot for _, lot in found]


def in_pairs(lot: Sequence[QuestionKind], domains: DomainParts, *, nothing: bool) -> KindGroup:
    """The lot with the distances of its pairs, or one bound if there are too many pairs."""
    seen = [domains.seen(kind) for kind in lot]
    tables = [np.array([[kind.largest]]) if own is None else own.distances()
              for kind, own in zip(lot, seen, strict=True)]  # fmt: skip
    columns, codes = domains.columns(lot), domains.tuples(lot)
    if codes is None or len(codes) > MOST_SEEN or len(codes) ** 2 * len(lot) > 2 * MOST_NUMBERS:
        bound = np.array([[table.max() for table in tables]])
        return KindGroup(tuple(lot), columns, bound, bound if nothing else None, exact=False)
    first, second = np.triu_indices(len(codes))
    pairs = np.column_stack(
        [table[codes[first, k], codes[second, k]] for k, table in enumerate(tables)]
    )
    absent = None
    if nothing:
        none = [own.nothing for own in seen if own]
        absent = worth_choosing(np.column_stack(
            [table[codes[:, k], none[k]] for k, table in enumerate(tables)]
        ))  # fmt: skip
    return KindGroup(tuple(lot), columns, worth_choosing(pairs), absent, exact=True)


def worth_choosing(pairs: Floats) -> Floats:
    """The pairs without those that another pair dominates by every kind."""
    kept = []
    for _ in range(LARGE):
        if not len(pairs):
            break
        largest = pairs[pairs.sum(axis=1).argmax()]
        kept.append(largest)
        pairs = pairs[(pairs > largest).any(axis=1)]
    return np.vstack([*kept, np.unique(pairs, axis=0)])
