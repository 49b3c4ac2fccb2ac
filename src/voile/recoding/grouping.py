"""A grouping of rows into classes, and what a release then shows of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voile.options import choices
from voile.privacy.requirements import Histograms
from voile.recoding.units import Codes, Counts, Units

Recode = choices.Recode
"""What is shown of a class: ranges of its quasi-identifiers, or which value is whose hidden."""


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
        return len(self.low)

    def histograms(self, units: Units) -> Histograms:
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
    """Classes with the same box as one: nobody could tell them apart."""
    boxes = np.hstack([grouping.low, grouping.high])
    unique, number = np.unique(boxes, axis=0, return_inverse=True)
    width = grouping.low.shape[1]
    classes = number.ravel().astype(np.int32)[grouping.classes]
    low, high = (np.ascontiguousarray(part) for part in (unique[:, :width], unique[:, width:]))
    return Grouping(classes, low, high)


@dataclass(frozen=True, eq=False)
class Shown:
    """What a grouped release tells about its rows, as numbers.

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
