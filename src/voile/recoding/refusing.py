"""What no grouping can keep is refused before anything is grouped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.errors import PromiseError
from voile.privacy.requirements import Requirement
from voile.recoding.grouping import Grouping
from voile.recoding.units import Units


def check_whole(units: Units, requirements: Sequence[Requirement]) -> None:
    """Refuse if not even the class of all rows meets the requirements."""
    if not units.rows:
        raise PromiseError("there are no rows to group", hint="give a table that has rows")
    whole = units.histograms(np.zeros(len(units.weights), dtype=np.int32), 1)
    for requirement in requirements:
        if not requirement.met(whole)[0]:
            has = requirement.worst(requirement.measured(whole))
            raise PromiseError(
                f"{requirement.spelling} is more than the whole table has: {has:.6g} "
                f"in one class of all {units.rows:,} rows",
                hint="no grouping can meet it; ask for less",
            )


def check_classes(units: Units, grouping: Grouping, requirements: Sequence[Requirement]) -> None:
    """Refuse a grouping of which any class fails: the last look, by the vectorised checks."""
    histograms = grouping.histograms(units)
    for requirement in requirements:
        wrong = np.flatnonzero(~requirement.met(histograms))
        if len(wrong):
            has = float(requirement.measured(histograms)[wrong[0]])
            raise PromiseError(
                f"class {wrong[0]} of {grouping.number:,} has {has:.6g}, "
                f"which does not meet {requirement.spelling}",
                hint="ask for less, or group by --method mondrian",
            )
