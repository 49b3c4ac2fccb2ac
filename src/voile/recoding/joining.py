"""Joining classes that do not meet the requirements until they do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.privacy.requirements import Requirement
from voile.recoding.grouping import Grouping, bounding
from voile.recoding.refusing import check_classes, check_whole
from voile.recoding.units import Codes, Units


def joined(
    units: Units, classes: Codes, number: int, requirements: Sequence[Requirement]
) -> tuple[Codes, int]:
    """Join those that fail in pairs, again and again; refuse if one class of all is left.

    The class of all rows meets the requirements (else PromiseError), so this ends. A class that
    fails alone is joined with one that does not.
    """
    while number > 1 and requirements:
        histograms = units.histograms(classes, number)
        fails = np.zeros(number, dtype=np.bool_)
        for requirement in requirements:
            fails |= ~requirement.met(histograms)
        wrong = np.flatnonzero(fails)
        if not len(wrong):
            break
        into = np.arange(number)
        if len(wrong) == 1:
            into[wrong[0]] = (wrong[0] + 1) % number
        else:
            into[wrong[1::2]] = wrong[: len(wrong) // 2 * 2 : 2]
        kept, place = np.unique(into, return_inverse=True)
        classes, number = place.astype(np.int32)[classes], len(kept)
    return classes, number


def trivial(units: Units, requirements: Sequence[Requirement] = ()) -> Grouping:
    """One class of all rows: nothing but the distribution of the sensitive values is told."""
    check_whole(units, requirements)
    grouping = bounding(units, np.zeros(len(units.weights), dtype=np.int32), 1)
    check_classes(units, grouping, requirements)
    return grouping
