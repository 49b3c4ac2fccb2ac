"""A grouping of rows into classes, and what a release then shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voile.arrays import Ints
from voile.errors import PromiseError, spelled
from voile.options import choices
from voile.privacy.requirements import Histograms, Requirement
from voile.recoding.units import Codes, Counts, Units

Recode = choices.Recode
"""What is shown of a class: ranges of quasi-identifiers, or exact ones with shuffled values."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which class each unit is in, and the box of each class."""

    classes: Codes
    """(units,): 0 … number−1."""
    low: Codes
    """(classes, quasi-identifiers): the first position of the class in each column's order."""
    high: Codes
    """(classes, quasi-identifiers): the last position."""

    @property
    def number(self) -> int:
        """How many classes there are."""
        return len(self.low)

    def histograms(self, units: Units) -> Histograms:
        """The rows and the sensitive values of each class."""
        return units.histograms(self.classes, self.number)


def bounding(units: Units, classes: Codes, number: int) -> Grouping:
    """The grouping with the smallest boxes: from the least to the largest position in a class."""
    low = np.empty((number, len(units.sizes)), dtype=np.int32)
    high = np.empty_like(low)
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(number))
    for j, codes in enumerate(units.codes):
        ordered = codes[order]
        low[:, j] = np.minimum.reduceat(ordered, starts)
        high[:, j] = np.maximum.reduceat(ordered, starts)
    return Grouping(classes, low, high)


def alike_as_one(grouping: Grouping) -> Grouping:
    """Join classes with the same box: a release could not distinguish them."""
    boxes = np.hstack([grouping.low, grouping.high])
    unique, number = np.unique(boxes, axis=0, return_inverse=True)
    width = grouping.low.shape[1]
    classes = number.ravel().astype(np.int32)[grouping.classes]
    low, high = (np.ascontiguousarray(part) for part in (unique[:, :width], unique[:, width:]))
    return Grouping(classes, low, high)


@dataclass(frozen=True, eq=False)
class Shown:
    """What a grouped release shows of its rows, as numbers.

    Generalized, a row's quasi-identifiers lie somewhere in the box of its class, and its sensitive
    values are as shown. Bucketized, quasi-identifiers are as shown (`cells`), and which sensitive
    value of its class is whose is not.
    """

    recode: Recode
    sizes: tuple[int, ...]
    low: Codes
    high: Codes
    histograms: Histograms
    cells: Codes | None = None
    """bucketized: (quasi-identifiers, cells), the combinations that are shown, by class."""
    cell_class: Codes | None = None
    cell_rows: Counts | None = None


def shown(units: Units, grouping: Grouping, recode: Recode) -> Shown:
    """What a release of this grouping shows."""
    histograms = grouping.histograms(units)
    if recode == "generalize":
        return Shown(recode, units.sizes, grouping.low, grouping.high, histograms)
    here = units.weights > 0
    return Shown(
        recode, units.sizes, grouping.low, grouping.high, histograms,
        *cells_by_class(grouping.classes[here], units.codes[:, here], units.weights[here]),
    )  # fmt: skip


def cells_by_class(classes: Codes, codes: Codes, weights: Counts) -> tuple[Codes, Codes, Counts]:
    """The different combinations of quasi-identifiers in each class, their class and their rows."""
    stacked = np.vstack([classes, codes])
    order = np.lexsort(stacked[::-1])
    ordered = stacked[:, order]
    new = np.concatenate([[True], (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)])
    rows = np.add.reduceat(weights[order], np.flatnonzero(new))
    found = ordered[:, new]
    return np.ascontiguousarray(found[1:]), found[0], rows


# ---------------------------------------------------------------------- refusals
# Requirements that no grouping can meet are refused before anything is grouped.


def check_whole(units: Units, requirements: Sequence[Requirement]) -> None:
    """Refuse if not even the class of all rows meets the requirements."""
    if not units.rows:
        raise PromiseError("there are no rows to group", hint="give a table that has rows")
    check_one_class(units.histograms(np.zeros(len(units.weights), np.int32), 1), requirements)


def check_one_class(whole: Histograms, requirements: Sequence[Requirement]) -> None:
    """The same, of the histogram of all rows."""
    for requirement in requirements:
        if not requirement.met(whole)[0]:
            has = requirement.worst(requirement.measured(whole))
            raise PromiseError(
                f"{requirement.spelling} is more than the whole table has: {has:.6g} "
                f"in one class of all {int(whole.rows[0]):,} rows",
                hint="no grouping can meet it; ask for less",
            )


def check_classes(units: Units, grouping: Grouping, requirements: Sequence[Requirement]) -> None:
    """Refuse a grouping in which any class fails: the final check, on arrays."""
    histograms = grouping.histograms(units)
    for requirement in requirements:
        wrong = np.flatnonzero(~requirement.met(histograms))
        if len(wrong):
            has = float(requirement.measured(histograms)[wrong[0]])
            raise PromiseError(
                f"class {wrong[0]} of {grouping.number:,} has {has:.6g}, "
                f"which does not meet {requirement.spelling}",
                hint=f"ask for less, or group by {spelled('method', 'mondrian')}",
            )


# ---------------------------------------------------------------------- joining classes
# Joining classes that do not meet the requirements until they do.


def failing_classes(histograms: Histograms, requirements: Sequence[Requirement]) -> Ints:
    """The numbers of the classes that are empty or fail any of the requirements."""
    fails = histograms.rows == 0
    for requirement in requirements:
        fails |= ~requirement.met(histograms)
    return np.flatnonzero(fails)


def joined(
    units: Units, classes: Codes, number: int, requirements: Sequence[Requirement]
) -> tuple[Codes, int]:
    """Join failing classes in pairs until all meet the requirements.

    The class of all rows meets the requirements (else PromiseError), so this ends. A class that
    fails alone is joined with one that does not.
    """
    while number > 1 and requirements:
        wrong = failing_classes(units.histograms(classes, number), requirements)
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
    """One class of all rows: only the distribution of the sensitive values is shown."""
    check_whole(units, requirements)
    grouping = bounding(units, np.zeros(len(units.weights), dtype=np.int32), 1)
    check_classes(units, grouping, requirements)
    return grouping
