"""From a requested error back to the strongest promise that allows it.

The expected error falls as the promise is weakened: as γ grows, and as d shrinks (proved in
docs/mathematics, section 17). So both ends are found by halving. What is computed may differ
from the law by a thousandth, and need not fall quite as smoothly: so only promises are returned
whose own error was computed, digit by digit as they are shown, and is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from voile.errors import PromiseError, UsageError, spelled
from voile.evaluate.planning.expected import Workload
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import check_size, of_one_record, promise_for
from voile.kinds.views.publishing import ViewInput
from voile.privacy import DGamma, plan
from voile.privacy.boundary import Boundary, Limit, limit_on_error, limit_on_linking
from voile.records import Record

WEAKEST_POSTERIOR = 0.999
"""A promise with a larger γ promises nothing worth the name."""
HALVINGS = 50
DIGITS = 4


@dataclass(frozen=True)
class Ground:
    """A table that has been read, what was asked for it, and the questions that matter."""

    prepared: ViewInput
    options: ViewOptions
    workload: Workload

    @property
    def boundary(self) -> Boundary:
        """What is possible for a table of this size."""
        return Boundary(len(self.prepared.members), self.prepared.schema.size)

    def mechanism(self, promise: DGamma) -> AlphaBeta:
        """What publishing would use for this promise."""
        rows, size = self.boundary.rows, self.boundary.domain_size
        planned = plan(
            of_one_record(promise, self.options.rows_per_person or 1),
            self.options.form,
            retention=self.options.retention,
            max_view_ratio=self.options.max_view_ratio,
            domain_ratio=Fraction(size, rows),
        )
        mechanism = AlphaBeta(planned.retention, planned.noise, self.options.form)
        check_size(mechanism, rows, size)
        return mechanism

    def error(self, prior: float, posterior: float) -> float:
        """The expected error at a promise; ∞ where that cannot be made."""
        try:
            mechanism = self.mechanism(DGamma(prior, posterior, self.options.adversary))
        except PromiseError:
            return math.inf
        return self.workload.overall(self.workload.errors(mechanism))


@dataclass(frozen=True)
class PromiseCandidate(Record):
    """A promise, as it would be asked for, with what it costs."""

    options: ViewOptions
    promise: DGamma
    mechanism: AlphaBeta
    expected_error: float
    prior_factor: float

    json_keys = (
        "prior=promise.prior", "prior_factor", "posterior=promise.posterior",
        "retention=mechanism.retention", "noise=mechanism.noise", "expected_error",
    )  # fmt: skip


@dataclass(frozen=True)
class StrongestPromises:
    """The two strongest promises that allow an error; None where there is no such."""

    max_error: float
    smallest_posterior: PromiseCandidate | None
    largest_prior: PromiseCandidate | None
    least_errors: tuple[float, float]
    """The least error at any posterior, and at any prior, with the other one as it was asked."""


def strongest(ground: Ground, max_error: float) -> StrongestPromises:
    """The smallest γ at the requested prior, and the largest prior at the requested γ."""
    prior, posterior = ground.prepared.promise.prior, ground.prepared.promise.posterior
    smallest_prior = float(Fraction(1, ground.boundary.domain_size))
    unit = 1.0 if ground.options.prior is not None else float(ground.boundary.density)
    by_posterior = PromiseSearch(
        rounded=lambda gamma: round_off(gamma, math.ceil),
        made=lambda gamma: candidate(ground, ground.options.but(posterior=gamma)),
        weakest=WEAKEST_POSTERIOR,
    )
    by_prior = PromiseSearch(
        rounded=lambda log_prior: round_off(math.exp(log_prior) / unit, math.floor),
        made=lambda number: candidate(ground, with_prior(ground.options, number)),
        weakest=math.log(smallest_prior),
    )
    least = (by_posterior.least_error, by_prior.least_error)
    if math.isnan(least[0]):
        raise UsageError(
            "the queries ask for nothing that could be off: no record meets their conditions",
            hint="ask for counts, or for averages of records that there are",
        )
    if min(least) > max_error:
        raise impossible(ground, max_error, least)
    return StrongestPromises(
        max_error,
        by_posterior.strongest(prior, max_error),
        by_prior.strongest(math.log(posterior), max_error),
        least,
    )


def with_prior(options: ViewOptions, number: float) -> ViewOptions:
    """With another d, or with another factor k where the options have no d."""
    if options.prior is not None:
        return options.but(prior=number)
    return options.but(prior_factor=number)


class PromiseSearch:
    """Promises along one line, from one that is too strong to the weakest."""

    def __init__(
        self,
        rounded: Callable[[float], float],
        made: Callable[[float], PromiseCandidate | None],
        weakest: float,
    ) -> None:
        """`rounded` gives the number to ask for at a place on the line; `made` tries it."""
        self._rounded, self._made, self._weakest = rounded, cache(made), weakest

    @property
    def least_error(self) -> float:
        """The error of the weakest promise; ∞ where that cannot be made."""
        found = self._at(self._weakest)
        return found.expected_error if found else math.inf

    def strongest(self, too_strong: float, max_error: float) -> PromiseCandidate | None:
        """The strongest promise that allows the error, its own error computed."""

        def allowed(place: float) -> bool:
            found = self._at(place)
            return found is not None and found.expected_error <= max_error

        if not allowed(self._weakest):
            return None
        return self._at(halved(too_strong, self._weakest, allowed))

    def _at(self, place: float) -> PromiseCandidate | None:
        return self._made(self._rounded(place))


def candidate(ground: Ground, options: ViewOptions) -> PromiseCandidate | None:
    """Options taken through the steps of publishing, with its error; None if it cannot be kept."""
    density = ground.boundary.density
    try:
        promise = promise_for(density, options)
        mechanism = ground.mechanism(promise)
    except PromiseError:
        return None
    error = ground.workload.overall(ground.workload.errors(mechanism))
    return PromiseCandidate(
        options, promise, mechanism, error, factor_of(promise, options, density)
    )


def factor_of(promise: DGamma, options: ViewOptions, density: Fraction) -> float:
    """k = d·m/n, as it was given where it was."""
    if options.prior is None and options.prior_factor is not None:
        return options.prior_factor
    return float(Fraction(promise.prior) / density)


def halved(fails: float, works: float, test: Callable[[float], bool]) -> float:
    """The end of what works: between a value that fails and one that works, as near as halving."""
    for _ in range(HALVINGS):
        middle = (fails + works) / 2
        fails, works = (fails, middle) if test(middle) else (middle, works)
    return works


def round_off(number: float, way: Callable[[Fraction], int]) -> float:
    """A number of few digits, rounded to the weaker side."""
    scale = Fraction(10) ** (DIGITS - 1 - math.floor(math.log10(number)))
    return float(way(Fraction(number) * scale) / scale)


def impossible(ground: Ground, max_error: float, least: tuple[float, float]) -> PromiseError:
    """Why no promise allows the error, with the theorems that bear on it."""
    promise = ground.prepared.promise
    reasons = [
        f"an expected error of {max_error:g} is below what αβ can have on this table: with "
        f"d = {promise.prior:.3g} the least is {least[0]:.4g} (at γ = {WEAKEST_POSTERIOR:g}), with "
        f"γ = {promise.posterior:g} it is {least[1]:.4g} (at d = 1/m)"
    ]
    reasons += [f"{limit.theorem}: {limit.says}" for limit in limits(ground, promise, max_error)]
    nearest = round_off(min(least), math.ceil)
    hint = (
        f"nearest feasible: {spelled('max_error', nearest)}, or coarser columns"
        if (math.isfinite(nearest))
        else "use coarser columns, or ask other queries"
    )
    return PromiseError(". ".join(reasons), hint=hint)


def limits(ground: Ground, promise: DGamma, max_error: float | None) -> tuple[Limit, ...]:
    """The theorems that bear on a promise, and on a requested error."""
    found = [
        ground.boundary.limit_on(promise),
        limit_on_linking(ground.boundary) if promise.adversary == "exclusive" else None,
        limit_on_error(max_error, ground.boundary.rows)
        if max_error is not None and ground.workload.counts
        else None,
    ]
    return tuple(limit for limit in found if limit)
