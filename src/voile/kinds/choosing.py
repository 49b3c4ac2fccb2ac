"""The method chosen for the steward: every kind's ways to publish, compared under one promise.

What is compared is the error of a count that holds exactly a hundredth of the rows, in tables of
one and of two columns, in closed form: from the sizes of the domain, the declared or noisy number
of rows and the promise alone. So the choice discloses nothing, and may be published.

Noise is computed. What a model makes of two columns is not known before there is a release; it is
foreseen by one public number, `MODEL_ERROR`: how far a model of single columns is off at such
cells, in the middle of many real tables (docs/decisions/0030). A count of two columns is weighed
between that and what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import Any, Protocol

from voile.kinds.beliefs import PRESENCE, VALUE, StatedBeliefs, normal_eta
from voile.privacy.gaussian import mu_for
from voile.privacy.guarantee import after
from voile.privacy.spent import NOTHING, Spent
from voile.records import Record

MATTERS = 0.01
"""The share of the rows that a count has which matters."""
MODEL_ERROR = 0.22
"""How far a model that knows single columns is off at a cell of two that matters: its middle."""
MIDDLE = 0.6744897501960817
"""The middle of |Z| for a normal Z of variance 1."""
FEW_LOST = 0.2
"""Of the columns: so many may have no domain, and the others are of use."""
MOST_PAIRS = 2_000
"""Pairs of columns whose errors are looked at; of more, every so manieth."""
USEFUL = 0.25
"""The largest expected error of a release that is of use."""


Columns = tuple[int, ...]
"""Places of columns in the schema, ascending."""


@dataclass(frozen=True)
class EpsilonPromise:
    """(ε, δ) for adding or removing a person, and what of it was spent on looking."""

    epsilon: float
    delta: float
    spent: Spent = NOTHING
    rows_per_person: int = 1
    eta: float | None = None
    """`except_with`, where the release or the method that was chosen says more than the promise."""

    def to_dict(self) -> dict[str, Any]:
        """As `--json` states it: in numbers, and in beliefs."""
        return {
            "epsilon": self.epsilon,
            "delta": self.kept_delta,
            "beliefs": [[p, rounded(after(p, self.epsilon))] for p in PRESENCE],
            "value_beliefs": [[p, rounded(after(p, 2 * self.epsilon))] for p in VALUE],
            "except_with": float(f"{self.except_with:.2g}"),
        }

    @property
    def kept_delta(self) -> float:
        """The δ that is promised: with geometric noise only thresholds need one."""
        return self.spent.delta if self.spent.epsilon else self.delta

    @property
    def except_with(self) -> float:
        """η: the probability that a belief rises further.

        With geometric noise that of a threshold which fails; with normal noise the tail of the
        privacy loss as well.
        """
        if self.eta is not None:
            return self.eta
        if self.spent.epsilon:
            return self.spent.delta
        mu = mu_for(self.epsilon, self.delta - self.spent.delta)
        return normal_eta(mu, 2 * mu, self.epsilon) + self.spent.delta

    def in_words(self) -> str:
        """In beliefs, which need no ε."""
        return StatedBeliefs(self.epsilon, 2 * self.epsilon, self.except_with).in_words()

    @property
    def rho(self) -> float:
        """What is left for normal noise on one row, as ρ; nothing after geometric noise."""
        if self.spent.epsilon:
            return 0.0
        left = self.spent.mu_left(self.epsilon, self.delta) / self.rows_per_person
        return left**2 / 2

    @property
    def pure(self) -> float:
        """What is left for geometric noise on one row, as ε; nothing after normal noise."""
        if self.spent.mu:
            return 0.0
        return max(0.0, self.epsilon - self.spent.epsilon_at(self.delta)) / self.rows_per_person


@dataclass(frozen=True)
class PublicSize:
    """What is known of a table without looking: its domain, and about how many rows it has."""

    sizes: tuple[int, ...]
    rows: float
    lost: tuple[int, ...] = ()
    """Columns of which no domain could be learnt: one value is left of them, and no use."""
    asked: tuple[Columns, ...] = ()
    """The columns that each of the steward's own questions reads, where there are some."""
    bins: tuple[int, ...] = ()
    """How many bins of each column hide numbers, so that means in them may be measured."""

    @property
    def wide(self) -> list[int]:
        """The columns that say something."""
        return [i for i, size in enumerate(self.sizes) if size > 1 and i not in self.lost]

    def of(self, kept: Sequence[int]) -> PublicSize:
        """Of some columns alone, without questions."""
        lost = tuple(k for k, i in enumerate(kept) if i in self.lost)
        bins = tuple(self.bins[i] for i in kept) if self.bins else ()
        return PublicSize(tuple(self.sizes[i] for i in kept), self.rows, lost, (), bins)


@dataclass(frozen=True)
class MethodCandidate(Record):
    """A way to publish, with what its counts would be off by."""

    method: str
    expected_error: float
    """Of a count that holds 1 % of the rows, relative to it: in the middle of all tables."""
    about: str
    """What would be published, in a few words."""
    options: Mapping[str, Any] = field(default_factory=dict)
    eligible: bool = True
    """False: listed for comparison; something else must be declared before it can be chosen."""
    eta: float | None = None
    """The probability that a belief rises further than ε says, where it is not normal noise's."""

    def to_dict(self) -> dict[str, Any]:
        """As `--json` lists it."""
        return {
            "method": self.method,
            "expected_error": rounded(self.expected_error),
            "about": self.about,
        }


class CellNoise(Protocol):
    """The standard error of a cell in the table of some columns, by noise alone."""

    def __call__(self, columns: Columns, count: float) -> float | None:
        """For a count of so many rows; None where the table is not measured."""


def expected_error(public: PublicSize, noise: CellNoise, *, modelled: bool) -> float:
    """The middle of all tables of one and two columns, or of those that questions read.

    `modelled` says whether counts are weighed against a model: see the head of this file.
    """
    count = max(MATTERS * public.rows, 1.0)
    tables, weights = considered_tables(public)
    columns = {i for table in tables for i in table}
    alone = {i: relative(noise((i,), count), count) for i in columns}
    found = []
    for table, weight in zip(tables, weights, strict=True):
        measured = alone[table[0]] if len(table) == 1 else relative(noise(table, count), count)
        if modelled and len(table) > 1:
            measured = weighed(measured, from_columns([alone[i] for i in table]))
        found.append((measured, weight))
    return weighted_middle([*found, (math.inf, lost_tables(public))])


def lost_tables(public: PublicSize) -> float:
    """Tables of one and two columns that read a column which is lost, where more than a few are.

    Of a few it is noted in the release, and its other columns are of use.
    """
    wide, lost = len(public.wide), len(public.lost)
    if public.asked or lost <= FEW_LOST * len(public.sizes):
        return 0.0
    return float(lost + math.comb(wide + lost, 2) - math.comb(wide, 2))


def considered_tables(public: PublicSize) -> tuple[list[Columns], list[float]]:
    """Tables of one and two columns, or those of the questions; and how many each stands for."""
    if public.asked:
        return list(public.asked), [1.0] * len(public.asked)
    wide = public.wide or [0]
    pairs = list(combinations(wide, 2))
    some = pairs[:: max(1, math.ceil(len(pairs) / MOST_PAIRS))]
    weight = len(pairs) / len(some) if some else 0.0
    return [*((i,) for i in wide), *some], [1.0] * len(wide) + [weight] * len(some)


def from_columns(errors: Sequence[float]) -> float:
    """How far a model of single columns is off at a cell of several that matters.

    Of k columns, the cell's share is the k-th root in each: their counts are larger, and the
    errors of these smaller.
    """
    k = len(errors)
    noise = MATTERS ** (1 - 1 / k) * math.hypot(*errors)
    return math.hypot(MODEL_ERROR * math.sqrt(k - 1), noise)


def relative(error: float | None, count: float) -> float:
    """The middle relative error of a count with this standard error; infinite without one."""
    return math.inf if error is None else MIDDLE * error / count


def weighed(one: float, other: float) -> float:
    """The error of two estimates together, each weighed by how exact it is."""
    if math.isinf(one) or math.isinf(other) or 0 in (one, other):
        return min(one, other)
    return one * other / math.hypot(one, other)


def weighted_middle(found: Sequence[tuple[float, float]]) -> float:
    """The median of errors, each of which stands for so many."""
    found = [(error, weight) for error, weight in found if weight]
    if len({weight for _, weight in found}) == 1:
        return median(error for error, _ in found)
    half, below = sum(weight for _, weight in found) / 2, 0.0
    for error, weight in sorted(found):
        below += weight
        if below >= half:
            return error
    return math.inf


def rounded(error: float) -> float | None:
    """An error as JSON has it: three digits, null where nothing can be said."""
    return float(f"{error:.3g}") if math.isfinite(error) else None


def in_per_cent(error: float) -> str:
    """An error as people read it."""
    if not math.isfinite(error):
        return "unknown"
    return f"{100 * error:.2g} %" if error < 1 else f"{100 * error:,.0f} %"


# ----------------------------------------------------------------------
# the comparison


@dataclass(frozen=True)
class MethodChoice(Record):
    """The method that was chosen, and those that it was compared with."""

    chosen: MethodCandidate
    considered: tuple[MethodCandidate, ...]
    """The best of each method, the chosen one first."""
    public: PublicSize
    promise: EpsilonPromise

    @property
    def why(self) -> str:
        """In one sentence."""
        best, count = self.chosen, MATTERS * self.public.rows
        others = [c for c in self.considered[1:] if math.isfinite(c.expected_error)]
        than = ", ".join(f"{in_per_cent(c.expected_error)} with {c.about}" for c in others)
        than = f" ({than})" if than else ""
        if not math.isfinite(best.expected_error):
            return f"{best.about}: too few columns have a domain to say how far counts are off"
        return (
            f"{best.about}: a count of 1 % of the rows (about {count:,.0f}) is off by about "
            f"{in_per_cent(best.expected_error)}, the least of all ways that keep the promise{than}"
        )


def compare(candidates: Sequence[MethodCandidate], public: PublicSize, promise: EpsilonPromise
            ) -> MethodChoice:  # fmt: skip
    """The best of all, and the best of each method after it."""
    by_error = sorted(candidates, key=lambda c: c.expected_error)  # the first named wins a tie
    firsts: dict[str, MethodCandidate] = {}
    for candidate in by_error:
        firsts.setdefault(candidate.method, candidate)
    chosen = next(c for c in by_error if c.eligible)
    others = [c for c in firsts.values() if c.method != chosen.method]
    kept = replace(promise, eta=chosen.eta)
    return MethodChoice(chosen, (chosen, *others), public, kept)
