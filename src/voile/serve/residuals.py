"""Whether the answers agree with each other as their noise says: from the answers alone.

Answers about the same rows are sums over the same unknown counts of tuples, and how many rows there
are is public. Where answers outnumber the counts that they can tell apart, what is left over is
noise and nothing else, and its size is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from voile.answering.totals import row_codes
from voile.arrays import Floats, Ints
from voile.query.rows import RowSums
from voile.serve.distances import DomainParts, QuestionKind, lots
from voile.serve.question import QuestionReader

MOST_COUNTS = 500
"""Unknown counts of one system of answers."""
NORMAL = ("binomial", "gaussian")
CERTAIN = 1e4
"""How much better than an answer a public number is known: as if it had so little noise."""


@dataclass(frozen=True)
class LedgerAnswer:
    """One answer of the ledger."""

    kind: QuestionKind
    half: str | None
    """The seed of the half that it is about; else all rows, of which the kind may choose some."""
    sql: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class AnswerResiduals:
    """What answers leave over, in squares of their standard deviations."""

    squares: float = 0.0
    freedom: int = 0
    """How many independent combinations of answers ought to be nothing but noise."""

    @property
    def too_large(self) -> float | None:
        """The chance of squares at least as large, if the noise is what it should be."""
        return float(chi2.sf(self.squares, self.freedom)) if self.freedom else None

    @property
    def too_small(self) -> float | None:
        return float(chi2.cdf(self.squares, self.freedom)) if self.freedom else None

    def __add__(self, other: AnswerResiduals) -> AnswerResiduals:
        return AnswerResiduals(self.squares + other.squares, self.freedom + other.freedom)

    def to_dict(self) -> dict[str, Any]:
        return {
            "squares": self.squares, "freedom": self.freedom,
            "too_large": self.too_large, "too_small": self.too_small,
        }  # fmt: skip


def residuals(
    answers: Sequence[LedgerAnswer],
    asking: QuestionReader,
    domains: DomainParts,
    sizes: Mapping[str | None, int],
) -> AnswerResiduals:
    """Of all answers; `sizes` are how many rows all or a half are, where that is public."""
    blocks: dict[str | None, list[LedgerAnswer]] = {}
    for answer in answers:
        # Other noise is not normal enough for squares.
        if answer.kind.noise in NORMAL:
            blocks.setdefault(answer.half, []).append(answer)
    read = StepWeights(asking, domains)
    found = AnswerResiduals()
    for half, block in blocks.items():
        for lot in lots(list(dict.fromkeys(answer.kind for answer in block))):
            own = [answer for answer in block if answer.kind in lot]
            found += left_over(own, lot, read, sizes.get(half))
    return found


def left_over(
    answers: Sequence[LedgerAnswer],
    lot: Sequence[QuestionKind],
    read: StepWeights,
    size: int | None,
) -> AnswerResiduals:
    """Of answers about the same rows and columns that belong together."""
    codes = read.tuples(lot)
    if codes is None:
        return AnswerResiduals()
    rows, right = list[Floats](), list[Floats]()
    for answer in answers:
        deviation = math.sqrt(answer.kind.variance)
        rows.append(read.of(answer)[:, codes[:, lot.index(answer.kind)]] / deviation)
        right.append(np.array(answer.numbers) / deviation)
    if size is not None:
        known = CERTAIN / math.sqrt(min(answer.kind.variance for answer in answers))
        rows.append(np.full((1, len(codes)), known))
        right.append(np.array([size * known]))
    return solved(np.vstack(rows), np.concatenate(right))


def solved(left: Floats, right: Floats) -> AnswerResiduals:
    """What is left of the right side that no counts explain."""
    # Columns alike are one count.
    left = np.unique(left, axis=1)
    u, singular, _ = np.linalg.svd(left, full_matrices=False)
    rank = int((singular > singular.max(initial=0.0) * 1e-9).sum())
    rest = right - u[:, :rank] @ (u[:, :rank].T @ right)
    freedom = len(right) - rank
    return AnswerResiduals(float(rest @ rest) if freedom else 0.0, freedom)


class StepWeights:
    """By how many steps rows count in each group of an answer."""

    def __init__(self, asking: QuestionReader, domains: DomainParts) -> None:
        self._reader, self._domains = asking, domains
        self._known: dict[QuestionKind, Floats] = {}
        self._tuples: dict[tuple[QuestionKind, ...], Ints | None] = {}

    def tuples(self, lot: Sequence[QuestionKind]) -> Ints | None:
        """Tuples that the kinds tell apart, each as its part by every kind; None if too many."""
        key = tuple(lot)
        if key not in self._tuples:
            codes = self._domains.tuples(key)
            few = codes is not None and len(codes) <= MOST_COUNTS
            self._tuples[key] = codes if few else None
        return self._tuples[key]

    def of(self, answer: LedgerAnswer) -> Floats:
        """A row for each group as it is stored, a column for each part."""
        if answer.kind not in self._known:
            self._known[answer.kind] = self._weights(answer)
        return self._known[answer.kind]

    def _weights(self, answer: LedgerAnswer) -> Floats:
        seen = self._domains.seen(answer.kind)
        assert seen is not None  # noqa: S101  (its columns have few tuples)
        question = self._reader.read(answer.sql)
        if question.expected is None:
            return seen.steps[None, :].astype(np.float64)
        parts, first = np.unique(seen.codes, return_index=True)
        counting = seen.steps[parts] != 0
        parts, first = parts[counting], first[counting]
        keys = tuple(
            self._domains.values(group, seen.columns).take(first).to_pylist()
            for group in answer.kind.groups
        )
        sizes = [len(known) for known in question.expected.keys]
        rows = RowSums(keys, np.empty((0, 1)))
        there = np.ravel_multi_index(row_codes(rows, question.expected), sizes)
        stored = np.ravel_multi_index(question.codes, sizes)
        order = np.argsort(stored)
        weights = np.zeros((len(stored), len(seen.steps)))
        weights[order[np.searchsorted(stored, there, sorter=order)], parts] = seen.steps[parts]
        return weights
