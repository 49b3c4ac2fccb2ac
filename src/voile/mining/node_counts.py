"""The counts of a node: what is asked of all rows so that only those of the node answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.answering.local.joint import JointCounts
from voile.arrays import Floats
from voile.mining.binning import Binning
from voile.mining.chance import Fourfold, share_error
from voile.mining.counts import Counts
from voile.mining.tree import Path, Split

Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

INVERSION = "inversion"
"""What is proven is proven by estimates without bias, whose errors are known."""


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """Counts of the rows that a path leads to, by `method`; their errors are inversion's."""

    counts: Counts
    classes: Binning
    binnings: Mapping[str, Binning]
    method: str

    def by_class(self, path: Path) -> Floats:
        return self._joint(path, {self.classes.name: self.classes.bins}).counts

    def by_bin(self, path: Path, candidate: Binning) -> tuple[Floats, Floats, Mask]:
        """Counts of a column's bins × classes with their errors, and which bins these are."""
        name, inside = candidate.name, inside_of(path, candidate)
        # Bins off the path are one: what is there only matters as what is mistaken for the rest.
        fine = np.where(inside, np.cumsum(inside) - 1, inside.sum())
        asked = {name: fine[candidate.bins], self.classes.name: self.classes.bins}
        found = self._joint(without(path, name), asked)
        kept = slice(0, int(inside.sum()))
        return found.counts[kept], found.stderr[kept], inside

    def by_side(self, path: Path, split: Split) -> Floats:
        """Counts of the two sides × classes, yes first."""
        asked = {self.classes.name: self.classes.bins}
        return self._sides(path, split, asked, self.method).counts

    def side_errors(self, path: Path, split: Split) -> Floats:
        """Standard errors of the rows of the two sides."""
        return self._sides(path, split, {}, INVERSION).stderr

    def fourfold(self, path: Path, split: Split, place: int) -> Fourfold:
        """The two sides by being of a class or not."""
        own = {self.classes.name: self._rest(place)}
        found = self._sides(path, split, own, INVERSION)
        classes, sides = self._joint(path, own, INVERSION).stderr, self.side_errors(path, split)
        part = max(float(found.part.max()), 1.0)
        whole = self.error(path)
        return Fourfold(found.counts, found.stderr**2, sides**2, classes**2, whole**2, part)

    def error(self, path: Path) -> float:
        """The standard error of a node's rows; how many there are in all is known."""
        return float(self._joint(path, {}, INVERSION).stderr) if path else 0.0

    def share_error(self, path: Path, rows: float, shares: tuple[float, ...], place: int) -> float:
        """The standard error of a class's share."""
        asked = {self.classes.name: self._rest(place)}
        own, rest = self._joint(path, asked, INVERSION).stderr
        return share_error(shares[place], rows, (float(own), float(rest), self.error(path)))

    def _rest(self, place: int) -> Whole:
        """0 for a class, 1 for all others."""
        return np.not_equal(self.classes.bins, place).astype(np.int64)

    def _sides(
        self, path: Path, split: Split, asked: Mapping[str, Whole], method: str
    ) -> JointCounts:
        """The sides come first; bins off the path, if there are any, are a third."""
        name, candidate = split.binning.name, split.binning
        side = np.where(split.chosen, 0, np.where(inside_of(path, candidate), 1, 2))
        cells = {name: side[candidate.bins], **asked}
        return self._joint(without(path, name), cells, method).at((slice(0, 2),))

    def _joint(
        self, path: Path, asked: Mapping[str, Whole], method: str | None = None
    ) -> JointCounts:
        """Counts over what is asked, of the rows that the path leads to."""
        cells = {
            name: mask[self.binnings[name].bins].astype(np.int64) for name, mask in path.items()
        }
        found = self.counts.joint_counts({**cells, **asked}, method or self.method)
        return found.at((1,) * len(path))


def inside_of(path: Path, candidate: Binning) -> Mask:
    """The bins of a column that lead to a node."""
    return path.get(candidate.name, np.ones(candidate.size, np.bool_))


def without(path: Path, name: str) -> Path:
    return {column: mask for column, mask in path.items() if column != name}
