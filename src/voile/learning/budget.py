"""What learning a schema may cost, and the noise that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from voile.arrays import Ints
from voile.errors import PromiseError, UsageError
from voile.noise.geometric import two_sided_geometric
from voile.noise.normal import LARGEST_SCALE, rounded_normal
from voile.noise.whole import WordSource
from voile.options.choices import MOST_ROWS_PER_PERSON, Unit
from voile.privacy.gaussian import tail

Noise = Literal["gaussian", "geometric"]


@dataclass(frozen=True)
class LearningBudget:
    """All that learning a schema may cost, the look at the number of rows included."""

    noise: Noise
    amount: float
    """ρ (= μ²/2) of Gaussian noise, or ε of geometric noise."""
    delta: float
    """The probability that some category of one person alone is listed, all columns together."""
    unit: Unit = "add-remove"
    rows_per_person: int = 1
    most: float = 0.0
    """What the amount may grow to where few rows would drown in the noise; 0: it does not grow."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and self.amount > 0):
            raise PromiseError(
                f"a budget of {self.amount:g} leaves nothing to learn a schema from",
                hint="raise the budget, or declare the domain in a codebook",
            )
        if not 0 < self.delta < 0.5:
            raise PromiseError(
                f"δ = {self.delta:g} is no probability that a rare category may be listed with",
                hint="give a δ above 0, such as 1e-9, or declare the domain in a codebook",
            )
        if not 1 <= self.rows_per_person <= MOST_ROWS_PER_PERSON:
            raise UsageError(
                f"{self.rows_per_person} rows of a person cannot be hidden",
                hint=f"give a number from 1 to {MOST_ROWS_PER_PERSON:,}",
            )

    def part(self, share: float) -> LearningBudget:
        """A share of it; δ is shared out where it is used."""
        return replace(self, amount=self.amount * share)

    def times(self, deviation: float, wanted: float) -> float:
        """By how much an amount must grow for noise of this deviation to come down to another."""
        ratio = max(deviation / wanted, 1.0)
        return ratio**2 if self.noise == "gaussian" else ratio

    @property
    def scale(self) -> float:
        """Of the noise on a histogram for which the whole budget is used."""
        found = scale_for(self.noise, self.amount, self.unit, self.rows_per_person)
        if found > LARGEST_SCALE:
            raise PromiseError(
                f"noise of scale {found:.3g} cannot be drawn", hint="raise the budget"
            )
        return found


def moved(noise: Noise, unit: Unit, rows_per_person: int) -> float:
    """By how much one person changes a histogram in which a row has one cell.

    In the norm that counts for the noise: c rows of one cell; if rows are exchanged, c of one cell
    become c of another.
    """
    if unit == "add-remove":
        return float(rows_per_person)
    return rows_per_person * (math.sqrt(2) if noise == "gaussian" else 2.0)


def scale_for(noise: Noise, amount: float, unit: Unit, rows_per_person: int) -> float:
    """σ at which a histogram costs so much ρ, or b at which it costs so much ε."""
    rate = math.sqrt(2 * amount) if noise == "gaussian" else amount
    return moved(noise, unit, rows_per_person) / rate * (1 + 1e-12)


def drawn(noise: Noise, scale: float, count: int, source: WordSource) -> Ints:
    """Independent draws of whole-number noise, exactly."""
    draw = rounded_normal if noise == "gaussian" else two_sided_geometric
    return draw(scale, count, source)


# ---------------------------------------------------------------------- thresholds


def exceeds(noise: Noise, scale: float, value: int) -> float:
    """Pr[N ≥ value] of the noise that is drawn, for value ≥ 1, not below the exact one."""
    if noise == "gaussian":
        return tail((value - 0.5) / scale) * (1 + 1e-10)
    return math.exp(-value / scale) / (1 + math.exp(-1 / scale)) * (1 + 1e-12)


def failure(noise: Noise, scale: float, threshold: int, rows_per_person: int) -> float:
    """The probability that a value which only one person has reaches the threshold, at most.

    That person's c rows may have several such values. Pr[N ≥ t − k] is convex in k < t, so that
    the worst is one value with c − j of the rows and j with one row each; and the sum is convex in
    j, so that it is one value with all rows, or c values with one each.
    """
    if threshold <= rows_per_person:
        return 1.0
    together = exceeds(noise, scale, threshold - rows_per_person)
    apart = rows_per_person * exceeds(noise, scale, threshold - 1)
    return min(1.0, max(together, apart))


def threshold_for(noise: Noise, scale: float, delta: float, rows_per_person: int) -> int:
    """The least threshold that fails with probability at most δ."""
    low = high = rows_per_person + 1
    while failure(noise, scale, high, rows_per_person) > delta:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if failure(noise, scale, middle, rows_per_person) > delta:
            low = middle + 1
        else:
            high = middle
    return high
