"""Public grids of numbers and days: coarse cells over all magnitudes, cut at round places.

A grid depends on nothing but the kind of a column. Cells are [e₀, e₁), [e₁, e₂), …; what lies
beyond the ends counts in the end cells, so that every number has exactly one cell.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

from voile.client.domains import EPOCH, Kind

STEPS = (1, 2, 5)
SMALLEST, LARGEST = -9, 15
"""Powers of ten between which numbers are distinguished."""
YEARS = (1, 1000, 1500, 1700, 1800, 1850, 1880, *range(1900, 2100, 10), 2100, 2150, 2200, 3000,
         5000, 9999)  # fmt: skip
"""Where the coarse cells of dates begin."""
MONTHS = (1200, 600, 240, 120, 60, 24, 12, 6, 3, 1)
"""Calendar widths, from a century to a month."""


class PublicGrid(ABC):
    """Round places for one kind of column."""

    @abstractmethod
    def coarse(self) -> list[float]:
        """The edges of cells over all magnitudes."""

    @abstractmethod
    def inside(self, low: float, high: float, parts: int) -> list[float]:
        """Round edges strictly within a cell that cut it into at most so many parts."""


class NumberGrid(PublicGrid):
    """1, 2 and 5 times the powers of ten, for numbers with decimals."""

    smallest = SMALLEST

    def coarse(self) -> list[float]:
        """…, −1, −0.5, …, −1e-9, 0, 1e-9, …, 0.5, 1, 2, 5, 10, …"""
        powers = range(self.smallest, LARGEST + 1)
        up = [decimal(step, power) for power in powers for step in STEPS]
        return [*(-edge for edge in reversed(up)), 0.0, *up]

    def inside(self, low: float, high: float, parts: int) -> list[float]:
        """Multiples of the least round width of which there are few enough."""
        if parts < 2 or (low == 0 and high == decimal(1, SMALLEST)):
            return []
        for step, power in self._widths((high - low) / parts):
            found = list(multiples(step, power, low, high))
            if len(found) < parts:
                return found
        return []

    def _widths(self, least: float) -> Iterator[tuple[int, int]]:
        power = max(math.floor(math.log10(least)) - 1, self.smallest - 4)
        for higher in range(power, power + 4):
            for step in STEPS:
                yield step, higher


class WholeGrid(NumberGrid):
    """The same for whole numbers: no width is below 1."""

    smallest = 0

    def _widths(self, least: float) -> Iterator[tuple[int, int]]:
        power = max(0, math.floor(math.log10(max(least, 1.0))) - 1)
        for higher in range(power, power + 4):
            for step in STEPS:
                yield step, higher


class DayGrid(PublicGrid):
    """Decades, years, quarters, months and days; a number is a day since 1970-01-01."""

    def coarse(self) -> list[float]:
        """The first days of decades, and of longer times where dates are rare."""
        days = [dt.date(year, 1, 1) for year in YEARS]
        return [float(day.toordinal() - EPOCH) for day in days]

    def inside(self, low: float, high: float, parts: int) -> list[float]:
        """The first days of the shortest calendar times of which there are few enough."""
        if parts < 2:
            return []
        for months in reversed(MONTHS):
            if (high - low) / (months * 28) < 4 * parts + 4:
                found = list(month_starts(months, low, high))
                if len(found) < parts:
                    break
        else:
            return []
        days = int(high - low)
        return [low + day for day in range(1, days)] if days <= parts else found


def grid_of(kind: Kind) -> PublicGrid:
    """The grid of a kind of numbers or dates."""
    return {"integer": WholeGrid(), "numeric": NumberGrid(), "date": DayGrid()}[kind]


def decimal(step: int, power: int) -> float:
    """step·10^power, as the nearest double."""
    return float(step * 10**power) if power >= 0 else step / 10**-power


def multiples(step: int, power: int, low: float, high: float) -> Iterator[float]:
    """Multiples of step·10^power strictly between two numbers."""
    width = decimal(step, power)
    number = math.floor(low / width) - 1
    while (place := decimal(number * step, power)) < high:
        if place > low:
            yield place
        number += 1


def month_starts(months: int, low: float, high: float) -> Iterator[float]:
    """First days of every so many months strictly between two days."""
    first = dt.date.fromordinal(int(low) + EPOCH)
    number = (first.year * 12 + first.month - 1) // months * months
    while (year := number // 12) <= 9999:
        day = float(dt.date(max(year, 1), number % 12 + 1, 1).toordinal() - EPOCH)
        if day >= high:
            return
        if day > low:
            yield day
        number += months


def digits(number: float) -> int:
    """How many digits a number has to be written with: 1 for 2000 and 0.5, 3 for 1.05."""
    return len(f"{abs(number):.12g}".replace(".", "").strip("0").replace("e", ""))
