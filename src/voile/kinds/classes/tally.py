"""What the rows of classes show, counted as a stream: rows may be more than memory holds.

A file of some kilobytes can have 67 million equal rows. What is checked of them is little: which
class each is in, and what that class shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from voile.arrays import Ints
from voile.errors import ReleaseError

NOTHING = -1
"""In the place of a code, where no row was seen yet."""
MOST_CELLS, CELLS_PER_BYTE = 2**24, 4
"""Classes times values that are counted; of a large release, how many for each byte on disk."""


@dataclass(frozen=True)
class ShownColumns:
    """Which column of the rows is what."""

    names: Sequence[str]
    class_column: str
    exact: Sequence[str]
    ranges: Mapping[str, npt.NDArray[np.int32]]
    """By generalized column, the number of the text that each class shows."""
    sensitive: Sequence[tuple[str, int]]
    """Columns whose values are counted in each class, with the sizes of their domains."""


@dataclass(eq=False)
class ClassTally:
    """What was counted in each class, and what was wrong with some row."""

    rows: Ints
    counts: list[Ints]
    """For each sensitive column that is shown, (classes × values): how many rows have each."""
    exact: dict[str, npt.NDArray[np.int32]]
    """For each exact column, the value that the class shows."""
    in_order: bool = True
    several: dict[str, int] = field(default_factory=dict)
    """By exact column, a class that shows more than one value."""
    misshown: set[str] = field(default_factory=set)
    """Generalized columns of which a row shows another text than its class."""


def check_cells(classes: int, sizes: Iterable[int], size_on_disk: int) -> None:
    """Refuse classes times values that no memory holds, before they are counted."""
    cells = classes * sum(sizes)
    if cells > max(MOST_CELLS, CELLS_PER_BYTE * size_on_disk):
        raise ReleaseError(
            f"{classes:,} classes with {cells:,} counts of sensitive values are more than "
            f"{size_on_disk:,} bytes can be about"
        )


def tally_of(batches: Iterable[Sequence[Ints]], columns: ShownColumns, classes: int) -> ClassTally:
    """Count the rows, given by the codes of what they show, a batch at a time."""
    place = {name: i for i, name in enumerate(columns.names)}
    found = ClassTally(
        rows=np.zeros(classes, np.int64),
        counts=[np.zeros(classes * size, np.int64) for _, size in columns.sensitive],
        exact={name: np.full(classes, NOTHING, np.int32) for name in columns.exact},
    )
    last = 0
    for batch in batches:
        if not len(batch[0]):
            continue
        of_row = batch[place[columns.class_column]]
        if any(code.min() < 0 for code in batch):
            raise ReleaseError("data/ has values outside the domain of the schema")
        found.in_order &= bool(of_row[0] >= last and (np.diff(of_row) >= 0).all())
        last = int(of_row[-1])
        first = int(of_row.min())
        found.rows[first : int(of_row.max()) + 1] += np.bincount(of_row - first)
        for name, texts in columns.ranges.items():
            if not np.array_equal(texts[of_row], batch[place[name]]):
                found.misshown.add(name)
        for name, shown in found.exact.items():
            note_exact(found, name, shown, of_row, batch[place[name]])
        for counts, (name, size) in zip(found.counts, columns.sensitive, strict=True):
            key = of_row * size + batch[place[name]]
            begin = int(key.min())
            counts[begin : int(key.max()) + 1] += np.bincount(key - begin)
    return found


def note_exact(
    tally: ClassTally, name: str, shown: npt.NDArray[np.int32], of_row: Ints, codes: Ints
) -> None:
    """Remember the value of each class, and a class with several."""
    new = shown[of_row] == NOTHING
    shown[of_row[new]] = codes[new]
    other = shown[of_row] != codes
    if other.any():
        tally.several.setdefault(name, int(of_row[other.argmax()]))
