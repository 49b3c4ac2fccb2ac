"""t-closeness: how far a class's sensitive values may be distributed from the whole table's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.options.choices import Distance
from voile.privacy.divergence import jensen_shannon
from voile.privacy.guarantees.classes import Closeness
from voile.privacy.guarantees.parameters import Choice, Number
from voile.privacy.requirements.requirement import (
    SLACK,
    Counts,
    Histograms,
    Requirement,
    Truths,
    divided,
    most,
)
from voile.schema.hierarchy import Levels

DISTANCES: tuple[str, ...] = get_args(Distance)
WORDS = {
    "js": "Jensen–Shannon",
    "emd-equal": "earth mover's, equal",
    "emd-ordered": "earth mover's, ordered",
    "emd-hierarchical": "earth mover's, hierarchical",
    "variational": "variational",
}
Tree = tuple[tuple[int, ...], ...]
"""For each level between the values and the top, the node that each value lies in."""


@dataclass(frozen=True)
class T(Requirement):
    """t-closeness: no class is further than t from the whole table.

    'js' is the Jensen–Shannon divergence in natural logarithms, at most ln 2. 'variational' is half
    the sum of differences, and so is the earth mover's distance when all values are equally far
    apart ('emd-equal'). 'emd-ordered' moves along the order of the codes, from the first to the
    last in a distance of 1. 'emd-hierarchical' moves up to the lowest common node of `tree`, whose
    height is a share of the whole height.
    """

    kind: ClassVar[str] = "t"

    t: float
    distance: Distance = "js"
    attribute: int = 0
    tree: Tree | None = None

    def __post_init__(self) -> None:
        Choice(DISTANCES).check("distance", self.distance)
        largest = math.log(2) if self.distance == "js" else 1.0
        Number(0, largest, with_low=True, with_high=True).check("t", self.t)
        if (self.tree is None) == (self.distance == "emd-hierarchical"):
            raise UsageError(
                f"distance {self.distance!r} {'lacks' if self.tree is None else 'has no use for'} "
                "a hierarchy",
                hint="a hierarchy belongs to 'emd-hierarchical', and only to it",
            )

    @property
    def monotone(self) -> bool:
        return True

    @property
    def spelling(self) -> str:
        return f"t = {self.t:g} ({WORDS[self.distance]})"

    def measured(self, classes: Histograms) -> Floats:
        overall = classes.overall[self.attribute]
        shares = divided(classes.counts[self.attribute], classes.rows)
        whole = overall / max(int(overall.sum()), 1)
        return distances(shares, whole, self.distance, self.tree)

    def met(self, classes: Histograms) -> Truths:
        found: Truths = self.measured(classes) <= self.t + SLACK
        found |= classes.rows == 0
        return found

    def worst(self, measured: Floats) -> float:
        return most(measured)

    def guarantee(self) -> Closeness:
        if self.distance in ("variational", "emd-equal"):
            return Closeness(self.t, "variational")
        return Closeness(self.t, "jensen-shannon" if self.distance == "js" else "emd")


def distances(shares: Floats, whole: Floats, distance: Distance, tree: Tree | None) -> Floats:
    """(classes,): how far each row of shares is from those of the whole table."""
    if distance == "js":
        return jensen_shannon(shares, whole)
    extra = shares - whole
    if distance == "emd-ordered":
        return earth_mover_ordered(extra[:, whole > 0])
    if distance == "emd-hierarchical":
        return earth_mover_hierarchical(extra, tree or ())
    found: Floats = np.abs(extra).sum(axis=1) / 2
    return found


def earth_mover_ordered(extra: Floats) -> Floats:
    """What must pass from one value to the next, each a step of 1/(values − 1).

    Of values that occur in the table: one that only rows that were left out had, or that a
    codebook merely allows, would make every step look smaller.
    """
    steps = max(extra.shape[1] - 1, 1)
    found: Floats = np.abs(np.cumsum(extra, axis=1)).sum(axis=1) / steps
    return found


def earth_mover_hierarchical(extra: Floats, tree: Tree) -> Floats:
    """Half of what must leave or enter each node below the top, divided by the height.

    A tree in which every step up or down costs 1/(2·height) has two values whose lowest common
    node is of height h at a distance of h/height; and in a tree the earth mover's distance is
    what must cross each edge, times its length (docs/mathematics, section 29).
    """
    crossing = np.abs(extra).sum(axis=1)
    for nodes in tree:
        below = np.zeros((len(extra), max(nodes) + 1))
        for code, node in enumerate(nodes):
            below[:, node] += extra[:, code]
        crossing += np.abs(below).sum(axis=1)
    found: Floats = crossing / (2 * (len(tree) + 1))
    return found


def tree_of(levels: Levels) -> Tree:
    """The levels of a bound hierarchy between the values and the top."""
    return tuple(tuple(int(n) for n in nodes) for nodes in levels.nodes[1:-1])


def overall_shares(overall: Counts) -> Floats:
    """How the whole table's sensitive values are distributed."""
    shares: Floats = overall / max(int(overall.sum()), 1)
    return shares
