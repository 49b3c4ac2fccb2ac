"""The lowest and highest ratio of two totals over all data that agree with a release.

A ratio T/B is at most r where T − r·B ≤ 0 for all data. Where the most of T − r·B is known with
the data that reach it, Dinkelbach's steps r ← T/B lead to the highest ratio; where B may be 0 too,
if T is 0 then. Where only a bound of the most is known, halving finds the least r that it proves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voile.answering.classes.law import OpenSums
from voile.answering.columns import Certain, Flags
from voile.arrays import Floats

MOST_STEPS = 50
SETTLED = 1e-12
HALVINGS = 24
"""Of which the last is still far above what weights that count as the same differ by."""
ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class RatioForm:
    """A constant and a multiple of every total, (groups, terms)."""

    slope: Floats
    constant: float

    def at(self, terms: Floats) -> Floats:
        return np.asarray((self.slope * terms).sum(axis=1) + self.constant)

    def less(self, ratio: Floats, other: RatioForm) -> tuple[Floats, Floats]:
        """The slope and the constants of this form less a multiple of another."""
        return (
            self.slope - ratio[:, None] * other.slope,
            self.constant - ratio * other.constant,
        )

    def negated(self) -> RatioForm:
        return RatioForm(-self.slope, -self.constant)


@np.errstate(all="ignore")
def certain_ratio(law: OpenSums, top: RatioForm, bottom: RatioForm) -> Certain:
    """Unbounded where nothing is known."""
    below = law.extremes(bottom.slope, terms=True)
    least, most = below.low + bottom.constant, below.high + bottom.constant
    low, high = np.full(len(least), -np.inf), np.full(len(least), np.inf)
    nothing = np.zeros(len(least), np.bool_)
    if not (top.constant or bottom.constant):
        low, high = law.row_ratios(top.slope, bottom.slope)
        nothing = most <= 0
    usable = (least > 0) | (~nothing & np.isfinite(low) & np.isfinite(high))
    first = top.at(below.high_terms) / bottom.at(below.high_terms)
    ends = []
    for form, sign, end in ((top.negated(), -1.0, low), (top, 1.0, high)):
        found, reached = _highest(law, form, bottom, sign * first, usable)
        proved = _proved(law, form, bottom, (sign * (high if sign < 0 else low), sign * end),
                         usable & ~reached)  # fmt: skip
        ends.append((sign * np.where(reached, found, proved) + 0.0, reached))  # no −0
    (low, lowest), (high, highest) = ends
    known = nothing | (lowest & highest) | (low == high)
    return Certain(np.where(nothing, np.nan, low), np.where(nothing, np.nan, high),
                   bool(known.all()))  # fmt: skip


def _highest(
    law: OpenSums, top: RatioForm, bottom: RatioForm, ratio: Floats, usable: Flags
) -> tuple[Floats, Flags]:
    """The highest top/bottom, from one that is possible, and in which groups it was found."""
    reached = usable & np.isfinite(ratio)
    for _ in range(MOST_STEPS if reached.any() else 0):
        slope, _constant = top.less(np.where(reached, ratio, 0.0), bottom)
        found = law.extremes(np.where(reached[:, None], slope, 0.0), terms=True)
        reached &= ~np.isnan(found.high_terms).any(axis=1)
        above, below = top.at(found.high_terms), bottom.at(found.high_terms)
        better = np.where(reached & (below > 0), above / below, ratio)
        settled = better <= ratio + SETTLED * np.abs(ratio)
        ratio = np.where(reached, np.fmax(ratio, better), ratio)
        if (settled | ~reached).all():
            break
    return ratio, reached


def _proved(
    law: OpenSums, top: RatioForm, bottom: RatioForm, ends: tuple[Floats, Floats], groups: Flags
) -> Floats:
    """The least number between the ends that is proved to be passed by no ratio."""
    low, high = ends
    wide = ROUNDING * (high - low)
    groups = groups & np.isfinite(wide)
    for _ in range(HALVINGS if groups.any() else 0):
        middle = np.where(groups, (low + high) / 2, 0.0)
        slope, constant = top.less(middle, bottom)
        most = law.extremes(np.where(groups[:, None], slope, 0.0)).high + constant
        holds = most <= SETTLED * np.abs(slope).sum(axis=1)
        high = np.where(groups & holds, middle, high)
        low = np.where(groups & ~holds, middle, low)
    return np.where(groups, np.minimum(high + wide, ends[1]), high)
