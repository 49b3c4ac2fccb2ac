"""Requirements on the sensitive values of a class: ℓ-diversity, t-closeness, δ-semantic privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.options import choices
from voile.privacy.divergence import jensen_shannon
from voile.privacy.guarantee import LogRatio, NumberRange
from voile.privacy.guarantees import Absent, Closeness, Diversity, SemanticPrivacy
from voile.privacy.requirements.requirement import (
    SLACK,
    Counts,
    Histograms,
    Requirement,
    Truths,
    divided,
    least,
    most,
)
from voile.schema.hierarchy import Levels

# ---------------------------------------------------------------------- ℓ-diversity
# ℓ-diversity: how many sensitive values are well represented in a class.


Measure = choices.Measure
MEASURES: tuple[str, ...] = get_args(Measure)


@dataclass(frozen=True)
class L(Requirement):
    """ℓ-diversity by one of four measures.

    'frequency': the most frequent value has a share of at most 1/ℓ. 'distinct': at least ℓ values
    occur. 'entropy': the entropy is at least ln ℓ. 'recursive', with c: the most frequent value is
    rarer than c times all from the ℓ-th on together.

    What is measured is the ℓ that a class has; of 'recursive' it is the c that it does not meet.
    """

    kind = "l"

    l: float  # noqa: E741  (the requirement's name)
    measure: Measure = "frequency"
    c: float | None = None
    attribute: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        recursive = self.measure == "recursive"
        NumberRange(1, with_low=True, whole=recursive).check("l", self.l)
        if recursive and self.c is None:
            raise UsageError("recursive ℓ-diversity lacks c", hint="give c, e.g. c = 2")
        if self.c is not None:
            if not recursive:
                raise UsageError(
                    f"c = {self.c:g} belongs to recursive ℓ-diversity, not to {self.measure!r}",
                    hint="leave c out, or take the measure 'recursive'",
                )
            NumberRange(0).check("c", self.c)

    @property
    def spelling(self) -> str:
        """Such as 'ℓ = 3 (frequency)'."""
        if self.measure == "recursive":
            return f"(c, ℓ) = ({self.c:g}, {self.l:g}) (recursive)"
        return f"ℓ = {self.l:g} ({self.measure})"

    def measured(self, classes: Histograms) -> Floats:
        """The ℓ of each class by this measure."""
        counts, rows = classes.counts[self.attribute], classes.rows
        return {
            "frequency": frequency_diversity,
            "distinct": distinct_diversity,
            "entropy": entropy_diversity,
            "recursive": self._ratio,
        }[self.measure](counts, rows)

    def met(self, classes: Histograms) -> Truths:
        """Whether each class is diverse enough."""
        counts, rows = classes.counts[self.attribute], classes.rows
        found: Truths
        if self.measure == "frequency":
            found = counts.max(axis=1) * self.l <= rows * (1 + SLACK)
        elif self.measure == "recursive":
            first, rest = _first_and_rest(counts, int(self.l))
            found = first < self._strictly * rest
        elif self.measure == "distinct":
            found = (counts > 0).sum(axis=1) >= self.l
        else:
            found = np.log(self.measured(classes)) >= math.log(self.l) - SLACK
        found |= rows == 0
        return found

    def worst(self, measured: Floats) -> float:
        """The least ℓ of any class; the largest c if the measure is 'recursive'."""
        return most(measured) if self.measure == "recursive" else least(measured)

    def guarantee(self) -> Diversity | None:
        """ℓ-diversity; the recursive measure has no kind of guarantee."""
        return None if self.measure == "recursive" else Diversity(self.l, self.measure)

    @property
    def _strictly(self) -> float:
        """c, a little less: the bound is strict, and rounding must not meet it."""
        return float(self.c or 0) * (1 - SLACK)

    def _ratio(self, counts: Counts, rows: Counts) -> Floats:
        first, rest = _first_and_rest(counts, int(self.l))
        nothing = np.where(rows > 0, np.inf, np.nan)
        return np.where(rest > 0, first / np.maximum(rest, 1), nothing)


def frequency_diversity(counts: Counts, rows: Counts) -> Floats:
    """One divided by the largest share."""
    return 1 / divided(counts.max(axis=1), rows)


def distinct_diversity(counts: Counts, rows: Counts) -> Floats:
    """How many values occur."""
    return np.where(rows > 0, (counts > 0).sum(axis=1), np.nan)


def entropy_diversity(counts: Counts, rows: Counts) -> Floats:
    """e to the entropy: how many equally frequent values would be as uncertain."""
    shares = divided(counts, rows)
    found: Floats = np.exp(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1))
    return np.where(rows > 0, found, np.nan)


def _first_and_rest(counts: Counts, l: int) -> tuple[Counts, Counts]:  # noqa: E741
    """The largest count, and the sum of those from the ℓ-th largest on."""
    ordered = -np.sort(-counts, axis=1)
    return ordered[:, 0], ordered[:, l - 1 :].sum(axis=1)


# ---------------------------------------------------------------------- t-closeness
# t-closeness: how far a class's sensitive values may be distributed from the whole table's.


Distance = choices.Distance
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

    kind = "t"

    t: float
    distance: Distance = "js"
    attribute: int = 0
    tree: Tree | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        largest = math.log(2) if self.distance == "js" else 1.0
        NumberRange(0, largest, with_low=True, with_high=True).check("t", self.t)
        if (self.tree is None) == (self.distance == "emd-hierarchical"):
            raise UsageError(
                f"distance {self.distance!r} {'lacks' if self.tree is None else 'has no use for'} "
                "a hierarchy",
                hint="a hierarchy belongs to 'emd-hierarchical', and only to it",
            )

    @property
    def spelling(self) -> str:
        """Such as 't = 0.2 (Jensen–Shannon)'."""
        return f"t = {self.t:g} ({WORDS[self.distance]})"

    def measured(self, classes: Histograms) -> Floats:
        """The distance of each class from the whole table."""
        overall = classes.overall[self.attribute]
        shares = divided(classes.counts[self.attribute], classes.rows)
        whole = overall / max(int(overall.sum()), 1)
        return distances(shares, whole, self.distance, self.tree)

    def met(self, classes: Histograms) -> Truths:
        """Whether each class is near enough to the whole table."""
        found: Truths = self.measured(classes) <= self.t + SLACK
        found |= classes.rows == 0
        return found

    def worst(self, measured: Floats) -> float:
        """The largest distance of any class."""
        return most(measured)

    def guarantee(self) -> Closeness:
        """t-closeness, by the distance that guarantees know it under."""
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


# ---------------------------------------------------------------------- δ-semantic privacy
# δ-semantic privacy: how much more or less frequent a value may be in a class.


@dataclass(frozen=True)
class Semantic(Requirement):
    """|ln(share in the class / share in the table)| ≤ δ for every value of the table.

    'forbidden' is the literal reading: a value that is absent from a class has ln 0, so every value
    must occur in every class. 'ignored' requires it only of values that occur in the class.
    """

    kind = "semantic"

    delta: LogRatio
    absent: Absent = "forbidden"
    attribute: int = 0

    @property
    def monotone(self) -> bool:
        """Ignored, not: a value at the lower bound, joined with a class without it, falls below."""
        return self.absent == "forbidden"

    @property
    def spelling(self) -> str:
        """Such as 'δ = 1 (semantic, absent values forbidden)'."""
        return f"δ = {self.delta:g} (semantic, absent values {self.absent})"

    def measured(self, classes: Histograms) -> Floats:
        """The largest |ln ratio| of a value in each class; infinite where one may not be."""
        counts = classes.counts[self.attribute]
        expected = self._expected(classes)
        both = (counts > 0) & (expected > 0)
        ratio = np.where(both, counts, 1) / np.where(both, expected, 1)
        wrong = (counts > 0) & (expected == 0)
        if self.absent == "forbidden":
            wrong |= (counts == 0) & (expected > 0)
        found = np.where(wrong, np.inf, np.abs(np.log(ratio))).max(axis=1)
        return np.where(classes.rows > 0, found, np.nan)

    def met(self, classes: Histograms) -> Truths:
        """As the kernel does: bounds on counts, so that both agree to the last bit."""
        counts, expected = classes.counts[self.attribute], self._expected(classes)
        factor = math.exp(min(self.delta + SLACK, 700.0))
        inside: Truths = (counts >= expected / factor) & (counts <= expected * factor)
        if self.absent == "ignored":
            inside |= counts == 0
        else:
            inside &= (counts > 0) | (expected == 0)
        found: Truths = np.all(inside, axis=1)
        return found

    def worst(self, measured: Floats) -> float:
        """The largest |ln ratio| in any class."""
        return most(measured)

    def guarantee(self) -> SemanticPrivacy:
        """δ-semantic privacy."""
        return SemanticPrivacy(self.delta, self.absent)

    def _expected(self, classes: Histograms) -> Floats:
        """(classes, values): the counts if each class were distributed as the table."""
        return classes.rows[:, None] * overall_shares(classes.overall[self.attribute])
