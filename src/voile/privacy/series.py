"""Many views of one changing table: what a whole history of views reveals about a record.

At view j a tuple is *seen* if an earlier view of the series published it; that is public. A record
of a seen tuple is hidden by more noise than one of an unseen tuple, so that later views
hardly reveal more than the first that showed it.

The promise is about whether a record has ever been in the series: any course of its being there
or not, against never. The likelihood ratio of a history is a product over the views, each factor
within the bounds of one view; the bounds of the product follow by walking the two states.
Derivations: docs/mathematics, section 19.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from voile.errors import PromiseError, UsageError, spelled
from voile.options.choices import Form
from voile.privacy.guarantee import DGamma, LikelihoodRatio, log, round_up

FEWEST_VIEWS, MOST_VIEWS = 2, 12
__all__ = ["SeriesNoise", "noise_variance", "plan_series"]

EXPECTED_SHARE = 0.1
"""Records per tuple of D that the planner reckons with, in units of the prior d: a table that is
published with the usual prior factor has n/m = d/10. Only the error depends on it."""
LEAST_NOISE = 1e-300
GRID, ROUNDS = 24, 3
"""Retentions, and growths, that the planner tries in a round, each nearer to the best."""

Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class SeriesNoise:
    """The public parameters of a series: they stay the same for all of its views.

    `unseen` has one number for each view. Where data change, all are equal. Where they never do,
    the noise may fade: a record that no view has shown so far would have had its chances.
    """

    form: Form
    retention: float
    unseen: tuple[float, ...]
    seen: float
    changing: bool

    def __post_init__(self) -> None:
        top = 1.0 if self.form == "multiset" else self.retention
        fine = all(0 < noise < top for noise in (*self.unseen, self.seen))
        if not self.unseen or not 0 < self.retention <= 1 or not fine:
            raise ValueError(
                f"retention {self.retention}, noise {self.unseen} and {self.seen} out of range"
            )

    @property
    def views(self) -> int:
        """How many views the series may have."""
        return len(self.unseen)

    def likelihood_ratio(self, views: int | None = None) -> LikelihoodRatio:
        """Bounds of P(history | in the series) / P(history | never) after so many views.

        Where data change: over all courses of a record's being there or not. Where they do not:
        for a record that is in every view. Both bounds are attained where no record equals it.
        """
        seen: Bounds = (Fraction(1), Fraction(1))
        unseen = seen
        for noise in reversed(self.unseen[:views]):  # from the last view to the first
            unseen = self._with_view(noise, unseen, seen)
            seen = self._with_view(self.seen, seen, seen)
        return LikelihoodRatio(*unseen)

    def followed(self, views: int | None = None) -> LikelihoodRatio:
        """The same for someone who knows which record of a person followed which, by edits.

        At each view the person has one record, or none, perhaps of a tuple that it had not before;
        the record before it is away then. So every view may have the factor of an unseen tuple.
        """
        if not self.changing:
            return self.likelihood_ratio(views)
        low = high = Fraction(1)
        for j, noise in enumerate(self.unseen[:views]):
            ends = [end for state in ((noise,) if j == 0 else (noise, self.seen))
                    for end in self._ends(state)]  # fmt: skip
            low, high = low * min(ends), high * max(ends)
        return LikelihoodRatio(low, high)

    def _ends(self, noise: float) -> Bounds:
        absent, (shown_low, shown_high) = self._factors(noise)
        return min(absent, shown_low), max(absent, shown_high)

    def _with_view(self, noise: float, if_absent: Bounds, if_shown: Bounds) -> Bounds:
        """The bounds from one view on, given those of the views after it."""
        absent, (shown_low, shown_high) = self._factors(noise)
        low = [absent * if_absent[0], shown_low * if_shown[0]]
        high = [absent * if_absent[1], shown_high * if_shown[1]]
        if self.changing:  # the record may be away: then the view says nothing about it
            low += [if_absent[0], if_shown[0]]
            high += [if_absent[1], if_shown[1]]
        return min(low), max(high)

    def _factors(self, noise: float) -> tuple[Fraction, Bounds]:
        """The ratio of one view for a record that is there: its tuple absent, and shown."""
        a, q = Fraction(self.retention), Fraction(noise)
        if self.form == "set":
            return (1 - a) / (1 - q), (a / q, a / q)
        # Among many equal records, one more says as little for a shown tuple as for an absent one.
        return 1 - a, (1 - a, 1 - a + a / q)

    def single_variance(self, view: int) -> float:
        """Variance per tuple of D, where there is no record, of the estimate from view i alone."""
        # A chance to be seen that is far below 1 must not be lost beside it.
        seen = -math.expm1(sum(math.log1p(-noise) for noise in self.unseen[: view - 1]))
        now, again = (noise_variance(self.form, self.retention, noise)
                      for noise in (self.unseen[view - 1], self.seen))  # fmt: skip
        return (1 - seen) * now + seen * again


def noise_variance(form: Form, a: float, noise: float) -> float:
    """Of the estimate of one tuple that has no record."""
    if form == "multiset":
        return noise / ((1 - noise) * a) ** 2
    return noise * (1 - noise) / (a - noise) ** 2


def plan_series(
    promise: DGamma,
    form: Form,
    views: int,
    *,
    changing: bool,
    retention: float | None = None,
    growth: float | None = None,
) -> SeriesNoise:
    """The parameters that keep the promise over so many views, with the least error.

    `growth` is the factor ρ by which each view after the first that shows a tuple may raise the
    ratio. Algorithm 4 has e^(1/v); for data that change, the planner's is better.
    """
    check_views(views)
    largest = largest_retention(promise, views)
    if retention is not None and retention > largest:
        raise PromiseError(
            f"retention {retention:g} is too large for {views} views at d = {promise.prior:.6g}, "
            f"γ = {promise.posterior:.6g}: at most {largest:.6g} "
            "(a record that is never shown would show that it was never there)",
            hint=f"nearest feasible: {spelled('retention', math.floor(largest * 1e6) / 1e6)}, "
            f"or fewer {spelled('views')}",
        )
    if changing:
        chosen = best(promise, form, views, retention, growth, largest)
    else:
        # All views together keep a record with the chance 1 − (1 − a)^v: the best for one view.
        together = 1 - 0.5 ** (1 / views)
        a = retention or (min(together, largest) if promise.adversary == "exclusive" else largest)
        most = math.exp(log(ratio_allowed(promise, a, views)) / views)
        chosen = make(
            promise, form, views, a, growth or min(math.exp(1 / views), most), fading=True
        )
    if chosen is None:
        raise PromiseError(
            f"{views} views at d = {promise.prior:.6g}, γ = {promise.posterior:.6g} would be "
            "nothing but noise",
            hint=f"take fewer {spelled('views')}, a larger posterior, or a smaller prior",
        )
    return settled(chosen, promise)


def check_views(views: int) -> None:
    """Refuse a number of views that no series can have."""
    if not FEWEST_VIEWS <= views <= MOST_VIEWS:
        raise UsageError(
            f"{spelled('views', views)} must be from {FEWEST_VIEWS} to {MOST_VIEWS}",
            hint="it is how many different views the series may have in all",
        )


def largest_retention(promise: DGamma, views: int) -> float:
    """The largest a with (1 − a)^v ≥ d/γ: no history may make a record too unlikely."""
    a = 1 - math.exp(log(promise.ratio_low) / views)
    while (1 - Fraction(a)) ** views < promise.ratio_low:
        a = math.nextafter(a, 0)
    return a


def ratio_allowed(promise: DGamma, a: float, views: int) -> Fraction:
    """The largest ratio that a history may have at this retention."""
    if promise.adversary == "independent":
        return promise.ratio_high
    return promise.ratio_high * (1 - Fraction(a)) ** views


def make(
    promise: DGamma, form: Form, views: int, a: float, growth: float, *, fading: bool
) -> SeriesNoise | None:
    """The least noise at this retention and growth; None where only noise would be left."""
    first = float(ratio_allowed(promise, a, views)) / growth ** (views - 1)
    fade = 1 - a if fading else 1.0
    if form == "set":
        unseen = tuple(a / first * fade**j for j in range(views))
        seen = a / growth
    else:
        unseen = tuple(a / (first / fade**j - 1 + a) for j in range(views))
        seen = a / (growth - 1 + a)
    if first <= 1 or growth <= 1:
        return None
    # Noise that fades below the smallest float stays there: more than is needed.
    unseen = tuple(max(noise, LEAST_NOISE) for noise in unseen)
    return SeriesNoise(form, a, unseen, seen, changing=not fading)


def best(
    promise: DGamma,
    form: Form,
    views: int,
    retention: float | None,
    growth: float | None,
    largest: float,
) -> SeriesNoise | None:
    """The retention and the growth with the least mean error of the views, each taken alone.

    Both are shares of their largest values; a grid of shares is searched, and then a finer one
    around the best.
    """
    found: tuple[float, SeriesNoise] | None = None
    at, width = (0.5, 0.5), 0.5
    for _ in range(ROUNDS):
        for s, r in product(*(around(share, width) for share in at)):
            a = retention or s * largest
            most = math.exp(log(ratio_allowed(promise, a, views)) / views)
            tried = make(promise, form, views, a, growth or most**r, fading=False)
            error = expected_error(tried, promise) if tried else math.inf
            if tried and (found is None or error < found[0]):
                found, at = (error, tried), (s, r)
        width *= 2 / GRID
    return found and found[1]


def around(middle: float, width: float) -> list[float]:
    """Shares in (0, 1] about the middle one."""
    steps = (middle + width * (2 * i / GRID - 1) for i in range(GRID + 1))
    return sorted({min(1.0, max(1e-4, step)) for step in steps})


def expected_error(series: SeriesNoise, promise: DGamma) -> float:
    """Mean variance per tuple of D over the views, each taken alone."""
    a, first, again = series.retention, series.unseen[0], series.seen
    lifts = (a, a) if series.form == "multiset" else (a - first, a - again)
    now, later = (a * (1 - a) / lift**2 for lift in lifts)
    records = EXPECTED_SHARE * promise.prior
    total = 0.0
    for view in range(1, series.views + 1):
        unseen = (1 - a) ** (view - 1)
        total += series.single_variance(view) + records * (unseen * now + (1 - unseen) * later)
    return total / series.views


def settled(series: SeriesNoise, promise: DGamma) -> SeriesNoise:
    """The same with a little more noise, where rounding would break the promise."""
    step = Fraction(1, 2**52)
    while not promise.kept_by(series.likelihood_ratio()):
        more = 1 + step
        series = replace(
            series,
            unseen=tuple(round_up(Fraction(noise) * more) for noise in series.unseen),
            seen=round_up(Fraction(series.seen) * more),
        )
        step *= 2
    return series
