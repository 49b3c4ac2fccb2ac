"""How often a tree is right, on rows that nobody perturbed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines import connect, read_all
from voile.errors import TableError
from voile.mining.binning import UNKNOWN
from voile.mining.counts import ExactCounts
from voile.mining.growing import Limits, class_binning, grow
from voile.mining.tree import Tree
from voile.mining.wording import shortened
from voile.schema import Schema

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Accuracy:
    """The share of rows that a tree puts in their class, and that of one class for everybody.

    `unknown` rows have a class that the tree has not; it is wrong about them.
    """

    rows: int
    accuracy: float
    majority: float
    unknown: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """Of the accuracy, if the rows are a sample of those that the tree is for (Wilson).

        It holds with a chance of about 0.95, and three rows that are all right prove little.
        """
        squared = NormalDist().inv_cdf(0.975) ** 2 / self.rows
        middle = self.accuracy + squared / 2
        spread = math.sqrt(squared * (self.accuracy * (1 - self.accuracy) + squared / 4))
        low, high = ((middle - spread) / (1 + squared), (middle + spread) / (1 + squared))
        return max(low, 0.0), min(high, 1.0)

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "accuracy": self.accuracy,
            "accuracy_low": low,
            "accuracy_high": high,
            "majority_accuracy": self.majority,
            "rows_tested": self.rows,
            "rows_unknown": self.unknown,
        }


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their classes, read once and asked by any number of trees."""

    table: Any
    classes: Whole

    @classmethod
    def of_table(cls, source: object, schema: Schema, target: str) -> Rows:
        """A value outside the target's domain is a class that no tree can predict."""
        connect(source).check_columns([target])
        table = read_all(source)
        if not table.num_rows:
            raise TableError(
                "the table to test with has no rows", hint="name a table with true classes"
            )
        classes = class_binning(schema, target)
        places = classes.places(table.column(target))
        if (places == UNKNOWN).all():
            known = ", ".join(shortened(label) for label in list(schema[target])[:3])
            first = shortened(table.column(target)[0].as_py())
            raise TableError(
                f"no row of the table to test with has a class that the tree knows: the first "
                f"{target!r} is {first}",
                hint=f"the release has classes such as {known}",
            )
        return cls(table, places)

    def predicted(self, tree: Tree) -> Whole:
        """The class of each row, by its place."""
        return tree.predict(self.table)

    def accuracy(self, tree: Tree) -> Accuracy:
        right = float((self.predicted(tree) == self.classes).mean())
        always = float((self.classes == tree.root.majority).mean())
        unknown = int((self.classes == UNKNOWN).sum())
        return Accuracy(len(self.classes), right, always, unknown)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The tree of the private table itself, with how often both say the same of its rows."""

    tree: Tree
    agreement: float


def beside(
    source: object,
    tree: Tree,
    schema: Schema,
    columns: Sequence[str] | None,
    limits: Limits,
) -> Comparison:
    """Grow the tree that the rows would have given, had nobody perturbed them."""
    target = tree.target.name
    names = list(tree.binnings) if columns is None else list(columns)
    chosen = schema.select([*names, target])
    own = grow(ExactCounts.of_table(source, chosen), target, names, limits)
    rows = Rows.of_table(source, schema, target)
    agreement = float((rows.predicted(tree) == rows.predicted(own)).mean())
    return Comparison(own, agreement)
