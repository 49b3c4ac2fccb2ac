"""What is believed after seeing a perturbed value, for a prior that is known, by Bayes' rule.

A prior is an array with one axis for each column, over values or over cells of values (such as
ten equal intervals); `masses` are the replacing distributions over the same cells. The transition
between cells is p·1[c=c'] + (1−p)·m(c'), column by column, so that nothing larger than the prior is
ever made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.privacy.guarantees import Breach
from voile.privacy.local.amplification import largest_along
from voile.records import Record

Members = npt.NDArray[np.bool_]
VANISHING = 1e-100
"""Powers of smaller retentions vanish in floats, and beliefs with them."""


def perturbed(prior: Floats, masses: Sequence[Floats], retentions: Sequence[float]) -> Floats:
    """P[Y = c]: the prior as it looks after perturbing."""
    check_shapes(prior, masses, retentions)
    seen = prior
    for axis, (mass, p) in enumerate(zip(masses, retentions, strict=True)):
        total = seen.sum(axis=axis, keepdims=True)
        seen = p * seen + (1 - p) * total * along(mass, axis, prior.ndim)
    return seen


def cell_beliefs(prior: Floats, masses: Sequence[Floats], retentions: Sequence[float]) -> Floats:
    """P[X∈c | Y∈c] of every cell c; over single values, P[X=y | Y=y]. 0 where the prior is 0."""
    stays = prior
    for axis, (mass, p) in enumerate(zip(masses, retentions, strict=True)):
        stays = stays * (p + (1 - p) * along(mass, axis, prior.ndim))
    seen = perturbed(prior, masses, retentions)
    return np.divide(stays, seen, out=np.zeros_like(seen), where=stays > 0)


def belief_in(
    prior: Any,
    masses: Sequence[Any],
    retentions: Sequence[Any],
    members: Members,
    seen: Sequence[Members],
) -> Any:
    """P[X∈S | Y∈T₁×…×T_k] for any set S of cells; exact for arrays of fractions.

    With a single value in each T this is what the server, which sees y itself, can believe.
    """
    check_shapes(prior, masses, retentions)
    likelihood = prior
    for axis, (mass, p, these) in enumerate(zip(masses, retentions, seen, strict=True)):
        chance = np.where(these, p, 0 * p) + (1 - p) * mass[these].sum()
        likelihood = likelihood * along(chance, axis, prior.ndim)
    return likelihood[members].sum() / likelihood.sum()


@dataclass(frozen=True)
class WorstBreach:
    """The cell whose belief rises highest among those believed with at most ρ₁ before."""

    cell: tuple[int, ...]
    before: float
    after: float


def worst_breach(
    prior: Floats, masses: Sequence[Floats], retentions: Sequence[float], rho1: float = 1.0
) -> WorstBreach | None:
    """The largest P[X∈c | Y∈c] among cells with a prior of at most ρ₁; None if there are none."""
    beliefs = np.where((prior > 0) & (prior <= rho1), cell_beliefs(prior, masses, retentions), -1.0)
    place = np.unravel_index(int(np.argmax(beliefs)), prior.shape)
    if beliefs[place] < 0:
        return None
    return WorstBreach(tuple(map(int, place)), float(prior[place]), float(beliefs[place]))


def known_prior_retention(
    prior: Floats,
    masses: Sequence[Floats],
    breach: Breach,
    proportions: Sequence[float] | None = None,
) -> tuple[float, ...]:
    """The largest retentions at which no cell goes from at most ρ₁ to above ρ₂, exactly.

    All columns alike, or in the given proportions. Beliefs rise with the retentions, so that
    halving finds the end; for one column there is a formula.
    """
    directions = tuple(proportions or [1.0] * prior.ndim)
    if prior.ndim == 1:
        return (single_column(prior, masses[0], breach),)

    def keeps(scale: float) -> bool:
        scaled = [scale * direction for direction in directions]
        worst = worst_breach(prior, masses, scaled, breach.rho1)
        return worst is None or worst.after <= breach.rho2

    scale = largest_along(keeps)
    if scale < VANISHING:  # nothing keeps the promise
        scale = 0.0
    return tuple(scale * direction for direction in directions)


def single_column(prior: Floats, mass: Floats, breach: Breach) -> float:
    """p/(1−p) ≤ m(ρ₂−x)/(x(1−ρ₂)) for every cell with a prior x of at most ρ₁."""
    protected = (prior > 0) & (prior <= breach.rho1)
    x, m = prior[protected], mass[protected]
    if not len(x):
        return 1.0
    odds = float((m * (breach.rho2 - x) / (x * (1 - breach.rho2))).min())
    retention = odds / (1 + odds)
    while retention > 0 and (
        (worst := worst_breach(prior, [mass], [retention], breach.rho1)) is not None
        and worst.after > breach.rho2
    ):
        retention = math.nextafter(retention, 0)
    return retention


def along(mass: Any, axis: int, axes: int) -> Any:
    """A column's numbers, laid along its axis."""
    return mass.reshape([-1 if place == axis else 1 for place in range(axes)])


def check_shapes(prior: Any, masses: Sequence[Any], retentions: Sequence[Any]) -> None:
    """Refuse distributions and retentions that do not fit the axes of the prior."""
    if [len(mass) for mass in masses] != list(prior.shape) or len(retentions) != prior.ndim:
        raise UsageError(
            f"a prior of shape {prior.shape} does not fit masses of "
            f"{[len(mass) for mass in masses]} values and {len(retentions)} retentions",
            hint="give one distribution and one retention for each axis",
        )


# ---------------------------------------------------------------------- priors
# How frequent values are, against the replacing distribution, and which are rare.


RARE = 5
"""Values that occur less often are rare, unless another limit is given."""


@dataclass(frozen=True)
class RelativePriors(Record):
    """s = p_c/m_c over all cells c: how many times as likely they are as by replacement."""

    largest: float
    median: float
    place: tuple[int, ...]
    """The cell with the largest s, and its prior."""
    share: float
    cells: int


def relative_priors(histogram: npt.NDArray[Any], masses: Sequence[Floats]) -> RelativePriors:
    """Measured on a histogram with one axis for each column: true or reconstructed counts.

    Reconstructed counts may be negative; these count as none.
    """
    counts = np.maximum(np.asarray(histogram, dtype=np.float64), 0.0)
    total = counts.sum()
    prior = counts / total if total > 0 else counts
    mass = np.ones_like(prior)
    for axis, column in enumerate(masses):
        mass = mass * along(np.asarray(column), axis, prior.ndim)
    possible = (mass > 0) | (prior > 0)
    relative = np.divide(prior, mass, out=np.full_like(prior, np.inf), where=mass > 0)
    found = np.where(possible, relative, -1.0)
    place = np.unravel_index(int(np.argmax(found)), prior.shape)
    return RelativePriors(
        largest=float(found[place]),
        median=float(np.median(relative[possible])),
        place=tuple(map(int, place)),
        share=float(prior[place]),
        cells=int(possible.sum()),
    )


@dataclass(frozen=True)
class RareValues:
    """Values of a column that so few people have that seeing one is nearly seeing the person.

    Identity and swapping show only values that occur; who knows that a value is rare, such as the
    largest, knows whose it is.
    """

    codes: tuple[int, ...]
    rows: int
    """How many rows have one of them."""
    at_least: int

    def in_words(self, column: str) -> str:
        """A warning about a column that has such values."""
        return (
            f"{column!r}: {len(self.codes):,} values occur fewer than {self.at_least} times, in "
            f"{self.rows:,} rows; identity and swapping show them as they are, and whoever knows "
            "who has such a value finds that person"
        )


def rare_values(counts: npt.NDArray[Any], at_least: int = RARE) -> RareValues | None:
    """Those values that occur, but fewer than `at_least` times; None if there are none."""
    codes = np.flatnonzero((counts > 0) & (counts < at_least))
    if not len(codes):
        return None
    return RareValues(tuple(codes.tolist()), int(counts[codes].sum()), at_least)
