"""The αβ algorithm (VLDB 2007, §4): keep records by chance, insert tuples of the domain by chance.

Two forms, with a the retention, x = Q(I) the true count, n_D = Q(D), n_V the count in the view:

multiset  each record is kept with chance a; every tuple of D gets N noise copies with
          P(N=j) = (1−q)q^j. For tables of people, where several may have the same values.
            n_V ~ Binomial(x, a) + NegativeBinomial(n_D, q),   mean a·x + μ·n_D,  μ = q/(1−q)
            estimate (n_V − μ·n_D)/a,  variance [x·a(1−a) + n_D·q/(1−q)²]/a²
            one more record: likelihood ratio in [1−a, 1−a+a/q], for all multiplicities
set       the paper's Algorithm 1, for tables that are sets: each tuple of the table is kept with
          chance a = α+β; every other tuple of D is inserted with chance β.
            n_V ~ Binomial(x, a) + Binomial(n_D − x, β),       mean α·x + β·n_D,  α = a−β
            estimate (n_V − β·n_D)/α,  variance [x·a(1−a) + (n_D−x)·β(1−β)]/α²
            one more tuple: likelihood ratio in [(1−a)/(1−β), a/β]
Proofs: docs/mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from voile.arrays import Floats, gathered, in_groups
from voile.errors import TableError, spelled
from voile.estimate import Bound, Estimate
from voile.kinds.views.deviation import CoinMoments, geometric_scale
from voile.noise import Bernoulli, Gaps, Stream
from voile.schema import Keys, TupleIndex
from voile.schema.index import Codes

if TYPE_CHECKING:
    from voile.answering.count_law import Part
    from voile.engines.members import Members
    from voile.noise.subkeys import Streams
    from voile.options.choices import Form
    from voile.privacy import LikelihoodRatio

# ---------------------------------------------------------------------- what publishing asks
# What publishing asks of a mechanism; what answering asks is in estimator.py.


Records = Keys | Iterator[Keys]
"""Keys of records in the order of D, whole or a batch at a time."""


class Publishing(Protocol):
    """Immutable parameters that state what they promise and turn records into a view."""

    @property
    def form(self) -> Form:
        """Whether the table may repeat a row."""
        ...

    @property
    def retention(self) -> float:
        """The chance that a record is kept."""
        ...

    def likelihood_ratio(self) -> LikelihoodRatio:
        """How much one record can change the chance of any view, exactly."""
        ...

    def log_likelihood(self, counts: Codes, records: int, codes: Sequence[Codes]) -> Floats:
        """log P(the view shows counts[i] copies of tuple i | the table holds `records` of it)."""
        ...

    def expected_noise(self, size: int) -> float:
        """Noise rows of a domain of this size, on average."""
        ...

    def noise_deviation(self, size: int) -> float:
        """Their standard deviation."""
        ...

    def cuts(self, index: TupleIndex, rows: int) -> list[int]:
        """Where D is cut into ranges that are perturbed on their own."""
        ...

    def noise_rows(
        self, index: TupleIndex, key: Streams, number: int, first: int, last: int
    ) -> Keys:
        """The noise of the tuples whose first word lies in [first, last), in the order of D."""
        ...

    def purposes(self, number: int) -> Iterable[tuple[str, int]]:
        """Of which coins are tossed for a range."""
        ...

    def view(self, members: Records, noise: Keys, key: Streams, number: int) -> Iterator[Keys]:
        """The published rows of one range, in the order of D, a batch at a time."""
        ...


# ---------------------------------------------------------------------- αβ


COVERS = (
    "the statistic of the table that was published, at the stated confidence or more, over the "
    "randomness of the release"
)
CHUNK = 2**20
"""Records merged into the view at a time, which bounds the memory of a range."""
ROOM = 6
"""Standard deviations of the noise of a range for which there is room from the start."""


@dataclass(frozen=True)
class AlphaBeta:
    """Parameters in, a view out; and estimates from what came out."""

    retention: float
    noise: float
    form: Form = "multiset"

    def __post_init__(self) -> None:
        if not 0 < self.retention <= 1 or not 0 <= self.noise < 1:
            raise ValueError(f"retention {self.retention} or noise {self.noise} out of range")
        if self.form == "set" and self.noise >= self.retention:
            raise ValueError(f"noise {self.noise} must be below retention {self.retention}")

    # ------------------------------------------------------------------ the promise

    def likelihood_ratio(self) -> LikelihoodRatio:
        """How much one record can change the chance of any view, exactly."""
        from voile.privacy import LikelihoodRatio  # noqa: PLC0415  (not for executors)

        a, noise = Fraction(self.retention), Fraction(self.noise)
        if self.form == "multiset":
            return LikelihoodRatio(1 - a, 1 - a + a / noise if noise else None)
        return LikelihoodRatio((1 - a) / (1 - noise), a / noise if noise else None)

    def log_likelihood(
        self,
        counts: Keys,
        records: int,
        codes: Sequence[Keys],  # noqa: ARG002  (all tuples are treated alike)
    ) -> Floats:
        """ln P(the view shows counts[i] copies of tuple i | the table holds `records` of it).

        See privacy/adversary.py: Likelihood.
        """
        different, where = np.unique(counts, return_inverse=True)
        seen = different[:, None]
        if self.form == "set":
            chance = self.retention if records else self.noise
            terms = times_log(seen, chance) + times_log(1 - seen, 1 - chance)
            return np.asarray(np.where(seen <= 1, terms, -np.inf)[where, 0])
        kept = np.arange(min(records, int(different.max(initial=0))) + 1)
        terms = (
            np.array([math.log(math.comb(records, int(i))) for i in kept])
            + times_log(kept, self.retention)
            + times_log(records - kept, 1 - self.retention)
            + times_log(seen - kept, self.noise)
        )
        terms = np.where(kept <= seen, terms, -np.inf)
        return np.asarray(np.logaddexp.reduce(terms, axis=1) + math.log1p(-self.noise))[where]

    # ------------------------------------------------------------------ publishing

    @property
    def noise_mean(self) -> float:
        """Expected noise rows per tuple of D: μ, or β."""
        return self.noise / (1 - self.noise) if self.form == "multiset" else self.noise

    @property
    def noise_variance(self) -> float:
        """Variance of the noise rows per tuple of D."""
        if self.form == "multiset":
            return self.noise / (1 - self.noise) ** 2
        return self.noise * (1 - self.noise)

    @property
    def excess(self) -> float:
        """α: by how much a record raises the expected count of its tuple."""
        return self.retention if self.form == "multiset" else self.retention - self.noise

    def expected_noise(self, size: int) -> float:
        """Noise rows of a domain of this size, on average."""
        return self.noise_mean * float(size)

    def noise_deviation(self, size: int) -> float:
        """Their standard deviation."""
        return math.sqrt(self.noise_variance * float(size))

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
        gaps = Gaps(self.noise, self.form, [limb.bits for limb in index.limbs[1:]])
        stream = key.stream("noise", number)
        batches = (index.existing(words) for words in gaps.walk(stream, first, last))
        tuples = (last - first) * (math.prod(index.sizes) // index.limbs[0].size)
        room = self.expected_noise(tuples) + ROOM * self.noise_deviation(tuples)
        return gathered(batches, math.ceil(room), index.key_type)

    def purposes(self, number: int) -> Iterable[tuple[str, int]]:
        """Of which coins are tossed for a range."""
        return [("noise", number), ("keep", number)]

    def view(self, members: Records, noise: Keys, key: Streams, number: int) -> Iterator[Keys]:
        """The published rows of one range, in the order of D, a batch at a time.

        `members` are the range's records in the order of D. The view is sorted, so that the
        order of its rows carries no information about the table.
        """
        without = self.form == "set"
        return thinned(members, noise, self.retention, key.stream("keep", number), without=without)

    # ------------------------------------------------------------------ estimating

    @cached_property
    def coins(self) -> CoinMoments:
        """The moments of the coins that a sum over the view is made of."""
        a, set_form = self.retention, self.form == "set"
        kept = a * (1 - a)
        third = 1.0 if set_form else 1 + 2.5 * self.noise_mean
        return CoinMoments(
            excess=self.excess,
            noise_mean=self.noise_mean,
            # In the set form a member takes the place of a noise coin.
            kept_variance=kept - self.noise_variance if set_form else kept,
            noise_variance=self.noise_variance,
            scale=1 / 3 if set_form else geometric_scale(self.noise),
            kept_third=kept,
            noise_third=self.noise_variance * third,
        )

    def total(self, view: Floats, domain: Floats) -> Floats:
        """Σ w over the table, from Σ w over the view and over the domain."""
        return (view - self.noise_mean * domain) / self.excess

    def variance(self, members: Floats | float, spread: Floats | float) -> Floats:
        """Variance of such an estimate; Σ w² over the table and over the domain."""
        return self.coins.variance(members, spread) / self.excess**2

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """What its error exceeds with probability at most `miss`; Σ w² over view and domain."""
        return self.coins.deviation(view, domain, spread, largest, miss) / self.excess

    def domain_share(self, error: Floats) -> Floats:
        """What an error in Σ w over the domain, where that was sampled, does to the estimate."""
        return self.noise_mean / self.excess * error

    def estimate(
        self, seen: int, domain: int | float, *, confidence: float = 0.95, rows: int | None = None
    ) -> Estimate:
        """The true count behind `seen` rows of the view and `domain` = Q(D) tuples of D."""
        n_domain = float(domain)
        value = (seen - self.noise_mean * n_domain) / self.excess
        most = min(rows or math.inf, n_domain if self.form == "set" else math.inf)
        likely = min(max(0.0, value), most)
        return Estimate(
            value=value,
            stderr=math.sqrt(self.variance(likely, n_domain)),
            confidence=confidence,
            covers=COVERS,
            _interval=lambda c: self.interval(seen, n_domain, c, rows),
        )

    def interval(
        self, seen: int, domain: float, confidence: float, rows: int | None = None
    ) -> tuple[float, float]:
        """The true counts that fit `seen` rows of the view and `domain` = Q(D) tuples of D.

        Exact: it covers the truth at least as often as stated, however small the count. `rows`
        is the number of records of the table, where that is public.
        """
        return _interval(self, seen, domain, confidence, rows)

    def _parts(self, x: int, n_domain: float) -> tuple[Part, Part]:
        from voile.answering.count_law import (  # noqa: PLC0415  (publishing needs no estimates)
            Binomial,
            NegativeBinomial,
        )

        kept = Binomial(x, self.retention)
        if self.form == "multiset":
            return kept, NegativeBinomial(n_domain, self.noise)
        return kept, Binomial(max(0.0, n_domain - x), self.noise)

    def records(self, seen: int, size: int) -> float:
        """About how many records a view of so many rows has behind it."""
        return (seen - self.expected_noise(size)) / self.excess

    def facts(self) -> dict[str, float]:
        """The numbers of the mechanism that an explanation shows."""
        return {
            "retention": self.retention,
            "noise_mean": self.noise_mean,
            "excess": self.excess,
        }

    def arithmetic(self, view: float, domain: float, *, whole: bool) -> str:
        """The estimate of a total, spelled out."""
        n, d = (f"{x:,.0f}" if whole else f"{x:,.6g}" for x in (view, domain))
        value = (view - self.noise_mean * domain) / self.excess
        return (
            f"(n_view - noise_mean * n_domain) / excess = ({n} - {self.noise_mean:.6g} * {d}) / "
            f"{self.excess:.6g} = {value:,.2f}"
        )

    def utility(self, rows: float, domain_size: int, epsilon: float) -> Bound:
        """Theorem 4.4 as corrected: |error| ≤ √(2(r+1)·ln(2/ε)·n) for every counting query.

        r = (noise variance)·m/(α²n), and 1 becomes a(1−a)/α² where that is larger. A bound of
        Gaussian form: good for n ≥ 100; the interval of an estimate is the one to trust.
        """
        spread = self.noise_variance * float(domain_size) / self.excess**2
        kept = max(1.0, self.retention * (1 - self.retention) / self.excess**2)
        return deviation_bound(spread, kept, rows, epsilon)


def deviation_bound(spread: float, kept: float, rows: float, epsilon: float) -> Bound:
    """The bound of Theorem 4.4: from the variance of all noise, and of one record."""
    error = math.sqrt(2 * (spread + kept * rows) * math.log(2 / epsilon))
    rho = error / math.sqrt(rows) if rows > 0 else math.inf
    return Bound(rho=rho, epsilon=epsilon, error=error, theorem="VLDB 2007, Theorem 4.4")


@lru_cache(2**16)
def _interval(
    mechanism: AlphaBeta, seen: int, domain: float, confidence: float, rows: int | None
) -> tuple[float, float]:
    from voile.answering.count_law import PublishedCount  # noqa: PLC0415  (not for publishing)

    if domain == 0:  # no record can count where no tuple does
        return 0.0, 0.0
    # Kept, because the groups of an answer often have the same few counts.
    largest = min(
        math.inf if rows is None else rows, domain if mechanism.form == "set" else math.inf
    )
    published = PublishedCount(
        seen=seen,
        parts=lambda x: mechanism._parts(x, domain),
        guess=(seen - mechanism.noise_mean * domain) / mechanism.excess,
        slope=mechanism.excess,
        largest=largest,
    )
    return published.interval(confidence)


def times_log(times: Keys, chance: float) -> Floats:
    """times · ln(chance), where 0 · ln 0 is 0: what need not happen costs nothing."""
    if chance > 0:
        return np.asarray(times * math.log(chance), np.float64)
    return np.where(times == 0, 0.0, -np.inf)


def thinned(
    members: Records, noise: Keys, retention: float, stream: Stream, *, without: bool = False
) -> Iterator[Keys]:
    """Records, each kept with a chance, merged with noise; all in the order of D.

    `without` leaves out noise that is a record: members repeat none then.
    """
    done = 0
    batches = [members] if isinstance(members, np.ndarray) else members
    for chunk in in_groups(batches, CHUNK):
        upto = int(np.searchsorted(noise, chunk[-1:], side="right")[0])
        kept = chunk[Bernoulli(retention).draw(stream, len(chunk))]
        here = noise[done:upto]
        yield merged(kept, here[~contains(chunk, here)] if without else here)
        done = upto
    yield noise[done:]


def merged(kept: Keys, noise: Keys) -> Keys:
    """Two sorted runs of keys as one."""
    # Both are sorted: the stable sort finds the two runs and merges them in one pass.
    return np.sort(np.concatenate([kept, noise]), kind="stable")


def contains(members: Keys, keys: Keys) -> Keys:
    """Which keys are members; both sorted."""
    places = np.searchsorted(members, keys)
    found = np.zeros(len(keys), dtype=np.bool_)
    inside = places < len(members)
    found[inside] = members[places[inside]] == keys[inside]
    return found


def distinct(members: Keys) -> Keys:
    """Sorted keys without repetitions."""
    fresh = np.ones(len(members), dtype=np.bool_)
    fresh[1:] = members[1:] != members[:-1]
    return members[fresh]


def as_set(members: Members, *, drop_repetitions: bool) -> Members:
    """The set form's table: no tuple twice, or the steward has said that repetitions may go."""
    unique = members.distinct()
    if len(unique) < len(members) and not drop_repetitions:
        raise TableError(
            f"{len(members) - len(unique):,} of {len(members):,} rows repeat another row, "
            "and the set form publishes sets",
            hint=f"use the multiset form (the default), or {spelled('distinct', True)} to "
            "publish each tuple once; "
            "counts are then of distinct tuples, not of people",
        )
    return unique
