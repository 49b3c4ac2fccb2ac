"""αβ with noise shaped by a prior (VLDB 2007, §4.4.2 and Algorithm 5, made exact).

Each record is kept with chance a; a tuple t of D gets N noise copies, P(N=j) = (1−q)q^j, with the
mean μ(t) = q/(1−q) = floor + min(strength·s(t), cap), s a product of one distribution per
attribute. The cap is needed: the noise that hides a tuple whose prior nears γ grows without bound.
  n_V = Σ_I w·K + Σ_D w·N,  estimate (n_V − Σ_D μ(t)·w)/a
  variance [a(1−a)·Σ_I w² + Σ_D μ(t)(1+μ(t))·w²]/a²
  one more record of t: likelihood ratio in [1−a, 1+a/μ(t)], whatever the multiplicities
Sampling without listing D: points of a Poisson process with mean λ(t) = floor + strength·s(t) at
each t are drawn and repetitions dropped, so that t is hit with chance 1−e^{−λ}; a hit is taken with
the chance q/(1−e^{−λ}) ≤ 1, and gets as many further copies as the geometric law has after the
first. The paper's Algorithm 5 draws a binomial number of tuples and is only about right.
Sums of λ are sums over products; the few tuples above the cap are listed, and what they have less
than λ is a score on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from voile.arrays import Floats
from voile.errors import ReleaseError
from voile.estimate import Bound
from voile.kinds.views.alphabeta import Records, deviation_bound, distinct, merged, thinned
from voile.kinds.views.deviation import CoinMoments, geometric_scale
from voile.noise import Stream
from voile.noise.poisson import choice, even, geometric, poisson, uniforms
from voile.schema import Keys, TupleIndex
from voile.schema.index import PARTS, Codes, Product

if TYPE_CHECKING:
    from voile.noise.subkeys import Streams
    from voile.options.choices import Form
    from voile.privacy import LikelihoodRatio
    from voile.query.domain import Weights

BATCH = 2**22
"""Hits drawn at a time."""


@dataclass(frozen=True)
class Shaped:
    """Parameters in, a view out; and estimates from what came out."""

    retention: float
    floor: float
    strength: float
    cap: float
    prior: Product
    sizes: tuple[int, ...]
    form: ClassVar[Form] = "multiset"

    def __post_init__(self) -> None:
        numbers = (self.retention, self.floor, self.strength, self.cap)
        if not all(0 <= x < math.inf for x in numbers) or not 0 < self.retention <= 1:
            raise ValueError(f"retention {self.retention}, floor, strength or cap out of range")
        if not min(self.floor, self.cap) > 0:
            raise ValueError(f"retention {self.retention}, floor, strength or cap out of range")
        if [len(p) for p in self.prior.parts if p is not None] != [
            size for size, p in zip(self.sizes, self.prior.parts, strict=True) if p is not None
        ]:
            raise ValueError("the prior does not fit the domain")

    # ------------------------------------------------------------------ the promise

    def likelihood_ratio(self) -> LikelihoodRatio:
        """How much one record can change the chance of any view: worst where noise is least."""
        from voile.privacy import LikelihoodRatio  # noqa: PLC0415  (not for executors)

        a = Fraction(self.retention)
        shaped = min(Fraction(self.strength) * self.prior.least(self.sizes), Fraction(self.cap))
        least = Fraction(self.floor) + shaped
        return LikelihoodRatio(1 - a, 1 + a / least)

    def log_likelihood(self, counts: Codes, records: int, codes: Sequence[Codes]) -> Floats:
        """log P(the view shows counts[i] copies of tuple i | the table holds `records` of it)."""
        mean = self.noise_mean(codes)
        log_q, log_rest = np.log(mean) - np.log1p(mean), -np.log1p(mean)
        kept = np.arange(records + 1)
        a = self.retention
        ways = np.array(
            [math.comb(records, int(k)) * a**k * (1 - a) ** (records - k) for k in kept]
        )
        copies = np.asarray(counts)[:, None] - kept
        with np.errstate(divide="ignore"):
            terms = np.where(copies >= 0, np.log(ways) + copies * log_q[:, None], -np.inf)
        return np.asarray(np.logaddexp.reduce(terms, axis=1) + log_rest)

    # ------------------------------------------------------------------ publishing

    def noise_mean(self, codes: Sequence[Codes]) -> Floats:
        """μ of tuples, given by each attribute's codes."""
        return self.floor + np.minimum(self._uncapped(codes), self.cap)

    def _uncapped(self, codes: Sequence[Codes]) -> Floats:
        """strength·s(t)."""
        chance = np.full(len(codes[0]), self.strength)
        for code, p in zip(codes, self.prior.chances(self.sizes), strict=True):
            chance *= p[0] if len(p) == 1 else p[code]
        return chance

    @cached_property
    def above_cap(self) -> Sequence[Codes]:
        """The codes of the tuples with strength·s(t) > cap: there are fewer than strength/cap."""
        from voile.privacy.planner import MOST_LISTED  # noqa: PLC0415  (with shaped noise only)

        least = self.cap / self.strength if self.strength else 1.0
        found = self.prior.above(self.sizes, least, MOST_LISTED)
        if found is None:
            raise ReleaseError(
                f"more than {MOST_LISTED:,} tuples have capped noise",
                hint="this is not what Voile publishes; try `voile verify`",
            )
        return found

    def expected_noise(self, size: int) -> float:
        """Σ_D μ(t)."""
        return self.drawn(size) - float((self._uncapped(self.above_cap) - self.cap).sum())

    def drawn(self, size: int) -> float:
        """Σ_D λ(t)."""
        return self.floor * float(size) + self.strength

    def noise_deviation(self, size: int) -> float:
        """The standard deviation of the noise rows."""
        return math.sqrt(self._noise_variance(size))

    def _noise_variance(self, size: int) -> float:
        """Σ_D μ(t)(1 + μ(t))."""
        squares = math.prod(
            1 / s if len(p) == 1 else float((p**2).sum())
            for s, p in zip(self.sizes, self.prior.chances(self.sizes), strict=True)
        )
        mean, (capped, uncapped) = self.drawn(size), self._means_above()
        square = self.floor**2 * float(size) + 2 * self.floor * self.strength
        less = float((uncapped * (1 + uncapped) - capped * (1 + capped)).sum())
        return mean + square + self.strength**2 * squares - less

    def _means_above(self) -> tuple[Floats, Floats]:
        """μ and λ of the tuples above the cap."""
        uncapped = self.floor + self._uncapped(self.above_cap)
        return np.full_like(uncapped, self.floor + self.cap), uncapped

    def cuts(self, index: TupleIndex, rows: int) -> list[int]:
        """Ranges of the first word with about so many noise rows, between first values."""
        stride = index.limbs[0].size // self.sizes[0]
        first, size = self.prior.parts[0], self.sizes[0]
        drawn = self.drawn(math.prod(self.sizes))
        count = min(size, max(1, math.ceil(drawn / rows)))
        if first is None:
            return [size * i // count * stride for i in range(count + 1)]
        chances = self.prior.chances(self.sizes)[0]
        means = self.floor * math.prod(self.sizes[1:]) + self.strength * chances
        wanted = np.searchsorted(np.cumsum(means) / drawn, np.arange(1, count) / count) + 1
        values = sorted({0, size, *(int(v) for v in wanted if v < size)})
        return [value * stride for value in values]

    def noise_rows(
        self, index: TupleIndex, key: Streams, number: int, first: int, last: int
    ) -> Keys:
        """The noise of the tuples whose first word lies in [first, last), in the order of D."""
        stream = key.stream("shaped noise", number)
        stride = index.limbs[0].size // self.sizes[0]
        values = (first // stride, last // stride)
        tuples = self._hits(index, stream, values)
        drawn = self._uncapped(index.decode(tuples))
        mean = self.floor + np.minimum(drawn, self.cap)
        q = mean / (1 + mean)
        taken = uniforms(stream, len(tuples)) < q / -np.expm1(-self.floor - drawn)
        copies = 1 + geometric(stream, q[taken])
        return np.repeat(tuples[taken], copies)

    def _hits(self, index: TupleIndex, stream: Stream, values: tuple[int, int]) -> Keys:
        """The tuples that are hit, sorted; likely ones are hit often, so a batch at a time."""
        low, high = values
        evenly = poisson(stream, self.floor * (high - low) * math.prod(self.sizes[1:]))
        likely = poisson(stream, self.strength * self._share(values))
        tuples = np.empty(0, index.key_type)
        for draw, count in ((self._even_hits, evenly), (self._likely_hits, likely)):
            for start in range(0, count, BATCH):
                hits = draw(index, stream, values, min(BATCH, count - start))
                hits.sort()
                tuples = distinct(merged(tuples, distinct(hits)))
        return tuples

    def _share(self, values: tuple[int, int]) -> float:
        """The chance that the prior gives to these values of the first attribute."""
        first, (low, high) = self.prior.parts[0], values
        return (high - low) / self.sizes[0] if first is None else sum(first[low:high]) / PARTS

    def _even_hits(
        self, index: TupleIndex, stream: Stream, values: tuple[int, int], count: int
    ) -> Keys:
        low, high = values
        rest = [even(stream, size, count) for size in self.sizes[1:]]
        return index.encode([low + even(stream, high - low, count), *rest])

    def _likely_hits(
        self, index: TupleIndex, stream: Stream, values: tuple[int, int], count: int
    ) -> Keys:
        low, high = values
        first = self.prior.parts[0]
        start = None if first is None else first[low:high]
        codes = [low + self._drawn(stream, start, high - low, count)]
        for parts, size in zip(self.prior.parts[1:], self.sizes[1:], strict=True):
            codes.append(self._drawn(stream, parts, size, count))
        return index.encode(codes)

    @staticmethod
    def _drawn(stream: Stream, parts: Sequence[int] | None, size: int, count: int) -> Codes:
        if parts is None:
            return even(stream, size, count)
        return choice(stream, parts, count)

    def purposes(self, number: int) -> Iterable[tuple[str, int]]:
        """Of which coins are tossed for a range."""
        return [("shaped noise", number), ("keep", number)]

    def view(self, members: Records, noise: Keys, key: Streams, number: int) -> Iterator[Keys]:
        """The published rows of one range, in the order of D, a batch at a time."""
        return thinned(members, noise, self.retention, key.stream("keep", number))

    # ------------------------------------------------------------------ estimating

    def noise_weights(self, names: Sequence[str]) -> tuple[Weights, Weights]:
        """λ(t), and λ(t)(1+λ(t)), as mixtures of products."""
        from voile.query.domain import Weights  # noqa: PLC0415  (only answering sums over D)

        listed = {
            name: p
            for name, p, parts in zip(
                names, self.prior.chances(self.sizes), self.prior.parts, strict=True
            )
            if parts is not None
        }
        alike = math.prod(
            1 / size for size, p in zip(self.sizes, self.prior.parts, strict=True) if p is None
        )
        floor, strength = self.floor, self.strength * alike
        mean = Weights(
            np.array([floor, strength]),
            {name: np.stack([np.ones_like(p), p]) for name, p in listed.items()},
        )
        variance = Weights(
            np.array([floor + floor**2, strength * (1 + 2 * floor), strength**2]),
            {name: np.stack([np.ones_like(p), p, p**2]) for name, p in listed.items()},
        )
        return mean, variance

    def scores_above(self) -> tuple[Floats, Floats]:
        """What the tuples above the cap have less than λ: in the mean, and in the variance."""
        capped, uncapped = self._means_above()
        return uncapped - capped, capped * (1 + capped) - uncapped * (1 + uncapped)

    @cached_property
    def coins(self) -> CoinMoments:
        """The moments of the coins that a sum over the view is made of."""
        kept = self.retention * (1 - self.retention)
        most = self.floor + min(
            float(Fraction(self.strength) * self.prior.most(self.sizes)), self.cap
        )
        return CoinMoments(
            excess=self.retention,
            noise_mean=1.0,
            kept_variance=kept,
            noise_variance=1.0,
            scale=geometric_scale(most / (1 + most)),
            kept_third=kept,
            noise_third=1 + 2.5 * most,
        )

    def total(self, view: Floats, domain: Floats) -> Floats:
        """Σ w over the table, from Σ w over the view (scored) and Σ λ·w over the domain."""
        return (view - domain) / self.retention

    def variance(self, members: Floats | float, spread: Floats | float) -> Floats:
        """Variance of such an estimate; Σ w² over the table and over the domain."""
        return self.coins.variance(members, spread) / self.retention**2

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """What its error exceeds with probability at most `miss`."""
        return self.coins.deviation(view, domain, spread, largest, miss) / self.retention

    def domain_share(self, error: Floats) -> Floats:
        """What an error in Σ λ·w over the domain does to the estimate."""
        return error / self.retention

    def records(self, seen: int, size: int) -> float:
        """About how many records a view of so many rows has behind it."""
        return (seen - self.expected_noise(size)) / self.retention

    def facts(self) -> dict[str, float]:
        """The numbers of the mechanism that an explanation shows."""
        return {"retention": self.retention, "noise_floor": self.floor,
                "noise_strength": self.strength, "noise_cap": self.cap}  # fmt: skip

    def arithmetic(self, view: float, domain: float, *, whole: bool) -> str:
        """The estimate of a total, spelled out."""
        n = f"{view:,.0f}" if whole else f"{view:,.6g}"
        return (
            f"(n_view - expected noise) / retention = ({n} - {domain:,.6g}) / "
            f"{self.retention:.6g} = {(view - domain) / self.retention:,.2f}"
        )

    def utility(self, rows: float, domain_size: int, epsilon: float) -> Bound:
        """As Theorem 4.4 for every counting query, with the noise of the whole domain."""
        spread = self._noise_variance(domain_size) / self.retention**2
        return deviation_bound(spread, max(1.0, (1 - self.retention) / self.retention), rows,
                               epsilon)  # fmt: skip
