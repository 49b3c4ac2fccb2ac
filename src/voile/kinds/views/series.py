"""One view of a series: keep records by chance, with more noise where a tuple was shown before.

At view i every record is kept with chance a, by fresh coins. A tuple of D gets noise: geometric
copies (multiset), or an insertion by chance where it is not in the table (set); with `unseen[i]`
if no view before showed it, with `seen` otherwise. What was shown is public, and so is all that
the law of the next view depends on besides the table. Proofs: docs/mathematics, section 19.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.estimate import Bound
from voile.kinds.views.alphabeta import (
    AlphaBeta,
    Records,
    contains,
    deviation_bound,
    distinct,
    merged,
)
from voile.kinds.views.deviation import (
    SPENT_ON_VARIANCE,
    CoinMoments,
    bernstein_bound,
    normal_bound,
)
from voile.noise import Gaps
from voile.options.choices import Form
from voile.privacy import LikelihoodRatio
from voile.privacy.series import SeriesNoise, noise_variance
from voile.schema import Keys, TupleIndex
from voile.schema.index import Codes

if TYPE_CHECKING:
    from voile.noise.subkeys import Streams

Counts = npt.NDArray[np.uint32]
COUNTS = "(0|[1-9][0-9]{0,9})(,(0|[1-9][0-9]{0,9}))*"
MOST_COPIES = 2**32 - 1
"""Of a tuple in a view, as they are kept."""


@dataclass(frozen=True)
class SeriesHistory:
    """Every tuple that a series has shown, in the order of D, and how often in each view."""

    keys: Keys
    counts: Counts
    """A row for each tuple, a column for each view."""

    @classmethod
    def empty(cls, index: TupleIndex) -> SeriesHistory:
        """The history of a series before its first view."""
        return cls(np.empty(0, index.key_type), np.empty((0, 0), np.uint32))

    @property
    def views(self) -> int:
        """How many views it covers."""
        return int(self.counts.shape[1])

    def with_view(self, rows: Keys) -> SeriesHistory:
        """The history after one more view, given by the sorted keys of its rows."""
        shown = distinct(rows)
        keys = distinct(merged(self.keys, shown))
        counts = np.zeros((len(keys), self.views + 1), np.uint32)
        counts[np.searchsorted(keys, self.keys), :-1] = self.counts
        starts = np.searchsorted(rows, shown)
        counts[np.searchsorted(keys, shown), -1] = np.diff(np.append(starts, len(rows)))
        return SeriesHistory(keys, counts)

    def texts(self) -> tuple[list[str], npt.NDArray[np.int64]]:
        """The different histories, as '0,2,1', and which of them each tuple has."""
        code = np.zeros(len(self.keys), np.int64)
        for column in self.counts.T:
            wide = code * (int(column.max(initial=0)) + 1) + column
            code = np.unique(wide, return_inverse=True)[1].astype(np.int64)
        _, first = np.unique(code, return_index=True)
        return [",".join(map(str, row)) for row in self.counts[first].tolist()], code


def read_texts(texts: list[str], views: int) -> Counts:
    """The counts behind histories as texts; ValueError where one is none."""
    for text in texts:
        if len(text) > 11 * views or not re.fullmatch(COUNTS, text):
            raise ValueError(f"{text[:40]!r} is not a history, such as 0,2,1")
    split = [text.split(",") for text in texts]
    if any(len(counts) != views for counts in split):
        raise ValueError(f"a history has {views} counts, not all 0")
    found = np.array(split, np.int64).reshape(-1, views)
    if not found.any(axis=1).all() or found.max(initial=0) > MOST_COPIES:
        raise ValueError(f"a history has {views} counts, not all 0, of at most {MOST_COPIES:,}")
    return found.astype(np.uint32)


@dataclass(frozen=True)
class Series:
    """View number `view` of a series, drawn after `seen_count` tuples had been shown.

    `seen` are their keys; they are not there in a release that was opened, which draws nothing.
    """

    noise: SeriesNoise
    view_number: int
    seen_count: int
    seen: Keys | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.view_number <= self.noise.views:
            raise ValueError(f"view {self.view_number} of a series of {self.noise.views}")
        if self.seen_count < 0 or (self.view_number == 1 and self.seen_count):
            raise ValueError(f"{self.seen_count} tuples seen before view {self.view_number}")

    @property
    def form(self) -> Form:
        """Whether the table may repeat a row."""
        return self.noise.form

    @property
    def retention(self) -> float:
        """The chance that a record is kept."""
        return self.noise.retention

    @cached_property
    def on_unseen(self) -> AlphaBeta:
        """What happens to a tuple that was not shown before; keeping is the same for all."""
        return AlphaBeta(self.retention, self.noise.unseen[self.view_number - 1], self.form)

    @cached_property
    def on_seen(self) -> AlphaBeta:
        """What happens to a tuple that a view before has shown."""
        return AlphaBeta(self.retention, self.noise.seen, self.form)

    def likelihood_ratio(self) -> LikelihoodRatio:
        """Of all views that the series may have: what is promised holds to its end."""
        return self.noise.likelihood_ratio()

    def log_likelihood(
        self, counts: Codes, records: int, codes: Sequence[Codes], *, since: int = 1
    ) -> Floats:
        """ln P(the histories `counts`, a row for each tuple | so many records from a view on).

        The records are there at view `since` and all that follow, and at none before.
        """
        total = np.zeros(len(counts))
        seen = np.zeros(len(counts), dtype=np.bool_)
        for view, (noise, shown) in enumerate(zip(self.noise.unseen, counts.T, strict=False), 1):
            there = records if view >= since else 0
            first, again = (
                AlphaBeta(self.retention, q, self.form).log_likelihood(shown, there, codes)
                for q in (noise, self.noise.seen)
            )
            total += np.where(seen, again, first)
            seen |= shown > 0
        return total

    def expected_noise(self, size: int) -> float:
        """Noise rows of a domain of this size, on average."""
        fresh, again = self.on_unseen.noise_mean, self.on_seen.noise_mean
        return fresh * float(size - self.seen_count) + again * self.seen_count

    def noise_deviation(self, size: int) -> float:
        """Their standard deviation."""
        fresh, again = self.on_unseen.noise_variance, self.on_seen.noise_variance
        return math.sqrt(fresh * float(size - self.seen_count) + again * self.seen_count)

    def cuts(self, index: TupleIndex, rows: int) -> list[int]:
        """Equal ranges of the first word of D, each with about so many rows of noise."""
        size = index.limbs[0].size
        expected = self.expected_noise(math.prod(index.sizes))
        count = min(size, max(1, math.ceil(expected / rows)))
        return [size * i // count for i in range(count + 1)]

    def noise_rows(
        self, index: TupleIndex, key: Streams, number: int, first: int, last: int
    ) -> Keys:
        """The noise of one range of D, [first, last) of its first words, in the order of D."""
        assert self.seen is not None  # noqa: S101
        fresh = self.on_unseen.noise_rows(index, key, number, first, last)
        ends = np.concatenate([index.first_key(first), index.first_key(last)])
        start, stop = np.searchsorted(self.seen, ends)
        seen = self.seen[start:stop]
        again = Gaps(self.noise.seen, self.form, [])
        stream = key.stream("noise on seen tuples", number)
        places = [words[0] for words in again.walk(stream, 0, len(seen))]
        drawn = seen[np.concatenate([np.empty(0, np.uint64), *places])]
        return merged(fresh[~contains(seen, fresh)], drawn)

    def view(self, members: Records, noise: Keys, key: Streams, number: int) -> Iterator[Keys]:
        """The published rows of one range, in the order of D, a batch at a time."""
        return self.on_unseen.view(members, noise, key, number)

    def purposes(self, number: int) -> Iterable[tuple[str, int]]:
        """Of which coins are tossed for a range."""
        return [*self.on_unseen.purposes(number), ("noise on seen tuples", number)]

    # ------------------------------------------------------------------ this view alone

    def utility(self, rows: float, domain_size: int, epsilon: float) -> Bound:
        """As Theorem 4.4 for every counting query, from this view alone."""
        a = self.retention
        fresh, again = (
            noise_variance(self.form, a, c.noise) for c in (self.on_unseen, self.on_seen)
        )
        spread = fresh * float(domain_size - self.seen_count) + again * self.seen_count
        lift = min(self.on_unseen.excess, self.on_seen.excess)
        return deviation_bound(spread, max(1.0, a * (1 - a) / lift**2), rows, epsilon)


# ---------------------------------------------------------------------- scores
# What an estimator from the histories of a series is made of.


Scoring = Callable[[Counts], tuple[Floats, Floats]]
"""Histories to g, and to by how much the variance of a tuple with this history is above that of
an unseen one, in units of the latter."""


@dataclass(frozen=True)
class Scores:
    """An estimator, and what bounds its error: all for one tuple, in units of records."""

    name: str
    of: Scoring
    empty: float
    """g of a tuple that was never shown."""
    noise_variance: float
    kept_variance: float
    """The most by which a record raises the variance, and the least."""
    least_kept_variance: float
    scale: float
    noise_third: float
    kept_third: float
    drift: float = 0.0
    """The most that the coming or going of a record biases the estimate by."""
    changed_variance: float = 0.0
    """The most that it raises the variance by, beyond what the record counts for now."""


# ---------------------------------------------------------------------- estimates
# Estimates from the histories of a series, as answering asks for them.


@dataclass(frozen=True)
class SeriesCoins(CoinMoments):
    """Coins of which some fell for records that were there once and are not now, or the reverse."""

    least_kept_variance: float = 0.0
    drift: float = 0.0
    """The most that the estimate of Σ w is off on average, for |w| ≤ 1."""
    changed: float = 0.0
    """Records that came or went, at most."""
    changed_variance: float = 0.0

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """|estimate − Σ_I w| is more than this with probability at most `miss`."""
        spent = SPENT_ON_VARIANCE * miss
        least, most = self._members(view, domain, spread, largest, math.log(2 / spent))
        square = largest**2
        least = np.maximum(least - self.drift * square, 0.0)
        most = most + self.drift * square
        noise, changed = self.noise_variance * spread, self.changed * square
        up, down = self.kept_variance, self.least_kept_variance
        high = noise + up * (most if up > 0 else least) + changed * self.changed_variance
        low = noise - changed * self.noise_variance + down * (least if down > 0 else most)
        third = largest * (self.kept_third * (most + changed) + self.noise_third * spread)
        left = miss - spent
        found = np.minimum(
            bernstein_bound(np.maximum(high, 0.0), self.scale * largest, math.log(2 / left)),
            normal_bound(np.maximum(low, 0.0), np.maximum(high, 0.0), third, left),
        )
        members = (view - self.noise_mean * domain) / self.excess
        normal = self.near_normal(
            members, spread, largest, miss, more=changed * self.changed_variance
        )
        found = np.minimum(found, normal)
        return np.where(spread <= 0, 0.0, found + self.drift * largest)


@dataclass(frozen=True)
class SeriesEstimator:
    """An estimator of a series, where at most `changes` records came or went since its start."""

    scores: Scores
    retention: float
    changes: int = 0

    @property
    def name(self) -> str:
        """The name of its scores: of the last view, or of all views."""
        return self.scores.name

    @property
    def drift(self) -> float:
        """The most that a count is off on average, because of what changed between views."""
        return self.scores.drift * self.changes

    @cached_property
    def coins(self) -> SeriesCoins:
        """The moments of what a sum of scores is made of."""
        s = self.scores
        return SeriesCoins(
            excess=1.0,
            noise_mean=-s.empty,
            kept_variance=s.kept_variance,
            noise_variance=s.noise_variance,
            scale=s.scale,
            kept_third=s.kept_third,
            noise_third=s.noise_third,
            least_kept_variance=s.least_kept_variance,
            drift=self.drift,
            changed=self.changes,
            changed_variance=s.changed_variance,
        )

    def total(self, view: Floats, domain: Floats) -> Floats:
        """Σ w over the table, from Σ score·w over shown tuples and Σ w over the domain."""
        return view + self.scores.empty * domain

    def variance(self, members: Floats | float, spread: Floats | float) -> Floats:
        """Variance of such an estimate; Σ w² over the table and over the domain."""
        return self.coins.variance(members, spread)

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """What its error exceeds with probability at most `miss`."""
        return self.coins.deviation(view, domain, spread, largest, miss)

    def domain_share(self, error: Floats) -> Floats:
        """What an error in Σ w over the domain does to the estimate."""
        return abs(self.scores.empty) * error

    def facts(self) -> dict[str, float]:
        """The numbers of the estimator that an explanation shows."""
        return {"retention": self.retention, "noise_mean": -self.scores.empty, "excess": 1.0}

    def arithmetic(self, view: float, domain: float, *, whole: bool) -> str:
        """The estimate of a total, spelled out."""
        d = f"{domain:,.0f}" if whole else f"{domain:,.6g}"
        return (
            f"(sum of scores of the histories) - noise_mean * n_domain = {view:,.6g} - "
            f"{-self.scores.empty:.6g} * {d} = {view + self.scores.empty * domain:,.2f}"
        )
