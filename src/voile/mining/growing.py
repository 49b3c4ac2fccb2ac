"""Growing a tree: every node's counts are reconstructed from all rows.

Perturbed rows cannot be sorted into the sides of a split, for nobody knows which side a row is
really on. So a node's counts are those of a conjunction: the path's columns, each in or out of
what the path asks, times the bins of a candidate column, times the classes.
A split is made if it gains more than chance would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.mining.binning import Binning, binning
from voile.mining.counts import Counts, checked_method, chosen_columns
from voile.mining.splits import (
    LEAST_GAIN,
    SURE,
    NodeCounts,
    best_cut,
    deviations,
    inside_of,
    most_unlike,
)
from voile.mining.tree import LeafReason, Node, Path, Proof, Split, Tree, narrowed
from voile.progress import Progress, Silent
from voile.schema import Attribute, Schema

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
    level: float = 0.95
    """The chance that a node is left whole whose classes no column tells anything about."""

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
        if not 0 <= self.level < 1:
            raise UsageError(
                f"a level of {self.level:g} is not possible",
                hint="choose one below 1, such as 0.95; 0 takes the best split, chance or not",
            )


def grow(
    counts: Counts,
    target: str,
    columns: Sequence[str] | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Tree:
    """The tree for a target column, from the counts alone."""
    limits = limits or Limits()
    schema = counts.schema
    classes = class_binning(schema, target)
    names = chosen_columns(schema, columns, but=target)
    binnings = {name: binning(schema[name], limits.bins) for name in names}
    asked = NodeCounts(counts, classes, binnings, limits.method)
    watched = progress or Silent()
    watched.start("growing the tree", 2**limits.depth)
    root = TreeGrower(asked, limits, watched).node({}, asked.by_class({}), limits.depth)
    return Tree(schema[target], binnings, root)


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
class Parting:
    """A split that is proven, with the rows of each class on its sides."""

    split: Split
    yes: Floats
    no: Floats


@dataclass(frozen=True, eq=False)
class TreeGrower:
    """What every node of one tree shares."""

    counts: NodeCounts
    limits: Limits
    progress: Progress

    def node(self, path: Path, rows: Floats, levels: int) -> Node:
        """The subtree of a node with so many rows of each class and levels below it."""
        total, shares = float(rows.sum()), shares_of(rows)
        share_error = self.counts.share_error(path, total, shares, int(np.argmax(shares)))
        leaf = Node(total, self.counts.error(path), shares, share_error)
        found = self._best(path, rows) if levels else LeafReason.DEPTH
        if isinstance(found, LeafReason):
            # A leaf is all that will be seen of a subtree that might have had 2**levels of them.
            self.progress.advance(2**levels)
            return replace(leaf, ended=found)
        split = found.split
        yes = self.node(narrowed(path, split, answer=True), found.yes, levels - 1)
        no = self.node(narrowed(path, split, answer=False), found.no, levels - 1)
        return replace(leaf, split=split, yes=yes, no=no)

    def _best(self, path: Path, rows: Floats) -> Parting | LeafReason:
        """The split that gains most of those that are proven, or why there is none."""
        found: list[Split] = []
        for candidate in self.counts.binnings.values():
            counts, errors, inside = self.counts.by_bin(path, candidate)
            least = self.limits.min_support
            cut = best_cut(counts, errors, ordered=candidate.ordered, min_support=least)
            if cut is not None:
                chosen = np.zeros(candidate.size, np.bool_)
                chosen[np.flatnonzero(inside)[cut.chosen]] = True
                found.append(Split(candidate, chosen, cut.gain))
        gaining = [split for split in found if split.gain > LEAST_GAIN]
        for split in sorted(gaining, key=lambda split: -split.gain):
            parting = self._proven(path, rows, split)
            if parting is not None:
                return parting
        if gaining:
            return LeafReason.ERRORS
        return LeafReason.GAIN if found else LeafReason.SUPPORT

    def _proven(self, path: Path, rows: Floats, split: Split) -> Parting | None:
        """The sides, unless one of them may be empty or what they differ by may be chance."""
        first, second = self.counts.by_side(path, split)
        # The sides add up to the node, class by class, though each is an estimate of its own.
        both = first + second
        yes = first * np.divide(rows, both, out=np.ones_like(both), where=both > 0)
        sides = np.array([yes.sum(), (rows - yes).sum()])
        errors = self.counts.side_errors(path, split)
        if (sides < np.maximum(self.limits.min_support, SURE * errors)).any():
            return None
        proof = self._proof(path, split, most_unlike(first, second))
        return Parting(replace(split, proof=proof), yes, rows - yes) if proof else None

    def _proof(self, path: Path, split: Split, place: int) -> Proof | None:
        """Where the sides differ in their share of a class by more than chance, if they do.

        Among the rows of the node; or among all rows, whatever the other columns of the path are,
        and in the node in the same way by more than the standard error. What holds of all is
        believed of a part that does not say otherwise.
        """
        if not self.limits.level:
            return Proof.NONE
        needed = deviations(
            int(inside_of(path, split.binning).sum()),
            ordered=split.binning.ordered,
            columns=len(self.counts.binnings),
            classes=self.counts.classes.size,
            miss=1 - self.limits.level,
        )
        here = self.counts.fourfold(path, split, place).apart()
        if abs(here) > needed:
            return Proof.NODE
        if abs(here) <= 1:
            return None
        own = {name: mask for name, mask in path.items() if name == split.binning.name}
        everywhere = self.counts.fourfold(own, split, place).apart()
        same = (everywhere > 0) == (here > 0)
        return Proof.ALL if same and abs(everywhere) > needed else None


def shares_of(rows: Floats) -> tuple[float, ...]:
    """Class shares; estimates below 0 count as 0, and nothing at all as equal shares."""
    clipped = np.maximum(rows, 0.0)
    total = clipped.sum()
    shares = clipped / total if total > 0 else np.full(len(clipped), 1 / len(clipped))
    return tuple(shares.tolist())
