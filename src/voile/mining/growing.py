"""Growing a tree: every node's counts are reconstructed from all rows.

Perturbed rows cannot be sorted into the sides of a split, for nobody knows which side a row is
really on. So a node's counts are those of a conjunction: the path's columns, each in or out of
what the path asks, times the bins of a candidate column, times the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError
from voile.mining.binning import Binning, binning
from voile.mining.counts import Counts, checked_method, chosen_columns
from voile.mining.splits import Cut, best_cut
from voile.mining.tree import Node, Path, Split, Tree, narrowed
from voile.schema import Attribute, Schema

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Progress = Callable[[str, float], None]

MOST_CLASSES = 100
DEEPEST = 12
"""A path of more columns would be reconstructed over thousands of cells for a handful of rows."""


@dataclass(frozen=True)
class Limits:
    """Where growing stops, how finely columns are cut, and how counts are reconstructed."""

    depth: int = 3
    min_support: float = 300
    bins: int = 20
    method: str = "stopped"

    def __post_init__(self) -> None:
        checked_method(self.method)
        if not 1 <= self.depth <= DEEPEST:
            raise UsageError(
                f"a depth of {self.depth} is not possible", hint=f"choose from 1 to {DEEPEST}"
            )
        if not self.min_support >= 0 or self.min_support == float("inf"):
            raise UsageError(
                f"a least support of {self.min_support} is no number of rows",
                hint="name the rows that a leaf must have, such as 300",
            )
        if not 2 <= self.bins <= 1000:
            raise UsageError(f"{self.bins} bins are not possible", hint="choose from 2 to 1000")


def grow(
    counts: Counts,
    target: str,
    columns: Sequence[str] | None = None,
    limits: Limits | None = None,
    progress: Progress = lambda _step, _done: None,
) -> Tree:
    """The tree for a target column, from the counts alone."""
    limits = limits or Limits()
    schema = counts.schema
    classes = class_binning(schema, target)
    names = chosen_columns(schema, columns, but=target)
    binnings = {name: binning(schema[name], limits.bins) for name in names}
    growing = Growing(counts, classes, binnings, limits, progress)
    return Tree(schema[target], binnings, growing.node({}, limits.depth))


def class_binning(schema: Schema, target: str) -> Binning:
    """Every value of the target is a class."""
    attribute: Attribute = schema[target]
    if not 2 <= attribute.size <= MOST_CLASSES:
        raise UsageError(
            f"{target!r} has {attribute.size:,} possible values: a tree needs from 2 to "
            f"{MOST_CLASSES} classes",
            hint="choose another target",
        )
    return Binning(attribute, np.arange(attribute.size, dtype=np.int64), ordered=False)


@dataclass(frozen=True, eq=False)
class Growing:
    """What every node of one tree shares."""

    counts: Counts
    classes: Binning
    binnings: Mapping[str, Binning]
    limits: Limits
    progress: Progress

    def node(self, path: Path, levels: int, done: float = 0.0, share: float = 1.0) -> Node:
        """The subtree below a path; `done` and `share` are its part of the work."""
        self.progress("growing the tree", done)
        rows, stderr = self._rows(path)
        shares = self._shares(path)
        split = self._best_split(path) if levels else None
        if split is None:
            return Node(rows, stderr, shares)
        yes = self.node(narrowed(path, split, answer=True), levels - 1, done, share / 2)
        no = self.node(narrowed(path, split, answer=False), levels - 1, done + share / 2, share / 2)
        return Node(rows, stderr, shares, split, yes, no)

    def _rows(self, path: Path) -> tuple[float, float]:
        if not path:
            return float(self.counts.rows), 0.0
        counts, errors = self._joint(path, {})
        return float(counts), float(errors)

    def _shares(self, path: Path) -> tuple[float, ...]:
        """Class shares; estimates below 0 count as 0, and nothing at all as equal shares."""
        counts, _ = self._joint(path, {self.classes.name: self.classes.bins})
        clipped = np.maximum(counts, 0.0)
        total = clipped.sum()
        shares = clipped / total if total > 0 else np.full(len(clipped), 1 / len(clipped))
        return tuple(shares.tolist())

    def _best_split(self, path: Path) -> Split | None:
        found: Split | None = None
        for candidate in self.binnings.values():
            cut, inside = self._cut(path, candidate)
            if cut is not None and (found is None or cut.gain > found.gain):
                chosen = np.zeros(candidate.size, np.bool_)
                chosen[np.flatnonzero(inside)[cut.chosen]] = True
                found = Split(candidate, chosen, cut.gain)
        return found

    def _cut(self, path: Path, candidate: Binning) -> tuple[Cut | None, Mask]:
        """All cuts of one column from one reconstruction."""
        name = candidate.name
        inside = path.get(name, np.ones(candidate.size, np.bool_))
        others = {column: mask for column, mask in path.items() if column != name}
        # Bins off the path are one: what is there only matters as what is mistaken for the rest.
        fine = np.where(inside, np.cumsum(inside) - 1, inside.sum())
        asked = {name: fine[candidate.bins], self.classes.name: self.classes.bins}
        counts, errors = self._joint(others, asked)
        kept = slice(0, int(inside.sum()))
        cut = best_cut(
            counts[kept],
            errors[kept],
            ordered=candidate.ordered,
            min_support=self.limits.min_support,
        )
        return cut, inside

    def _joint(self, path: Path, asked: Mapping[str, Whole]) -> tuple[Floats, Floats]:
        """Counts over what is asked, of the rows that the path leads to."""
        cells = {
            name: mask[self.binnings[name].bins].astype(np.int64) for name, mask in path.items()
        }
        found = self.counts.joint_counts({**cells, **asked}, self.limits.method)
        inside = (1,) * len(path)
        return found.counts[inside], found.stderr[inside]
