"""Between which numbers a formula lies for sure, and whether some data reach both ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from voile.answering.arithmetic import round_to
from voile.answering.mixed import bounds
from voile.arrays import Floats
from voile.query.formula import Call, Formula, Number, Total


@dataclass(frozen=True, eq=False)
class Certain:
    """For each group, what no data lie beyond that agree with the release."""

    low: Floats
    """Unknown, as `high` is, where no row can be in the group."""
    high: Floats
    tight: bool = True
    """Whether it is known that some data reach both ends, in every group."""

    @property
    def sides(self) -> tuple[Floats, Floats]:
        return self.low, self.high

    def rounded(self, digits: float) -> Certain:
        return Certain(round_to(self.low, digits), round_to(self.high, digits), self.tight)

    def cut_to(self, other: Certain) -> Certain:
        """Between the ends of both."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        return Certain(low, high, self.tight or other.tight)


def combined(formula: Call, parts: Mapping[Formula, Certain], count: int) -> Certain:
    """From the bounds of the arguments.

    Where two of them are open they need not have their ends together, and where one is at its end
    another may be unknown (as an average of no rows). Arithmetic that has no end, as a division by
    what may be 0, is bounded by nothing.
    """
    low, high = bounds(formula, {part: found.sides for part, found in parts.items()}, count)
    given = [parts[arg] for arg in formula.args]
    nothing = np.any([np.isnan(found.low) for found in given], axis=0)
    open_ = np.sum([found.low < found.high for found in given], axis=0)
    totals = all(isinstance(arg, Number | Total) for arg in formula.args)
    alone = totals or sum(not isinstance(arg, Number) for arg in formula.args) == 1
    reached = (open_ <= alone) & np.isfinite(low) & np.isfinite(high)
    if formula.name == "abs":  # 0 lies between the ends, and need not be among what can be
        reached &= (given[0].low >= 0) | (given[0].high <= 0)
    tight = all(found.tight for found in given) and bool((reached | nothing).all())
    return Certain(np.where(nothing, np.nan, low), np.where(nothing, np.nan, high), tight)
