"""How often a tree is right, on rows that nobody perturbed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table, read_all
from voile.errors import TableError
from voile.mining.counts import ExactCounts
from voile.mining.growing import Limits, class_binning, grow
from voile.mining.tree import Tree
from voile.schema import Schema

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Accuracy:
    """The share of rows that a tree puts in their class, and that of one class for everybody."""

    rows: int
    accuracy: float
    majority: float

    @property
    def stderr(self) -> float:
        """Of the accuracy, if the rows are a sample of those that the tree is for."""
        return math.sqrt(self.accuracy * (1 - self.accuracy) / self.rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "accuracy_stderr": self.stderr,
            "majority_accuracy": self.majority,
            "rows_tested": self.rows,
        }


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their classes, read once and asked by any number of trees."""

    table: Any
    classes: Whole

    @classmethod
    def of_table(cls, source: object, schema: Schema, target: str) -> Rows:
        """A value outside the target's domain is a class that no tree can predict."""
        Table(source).check_columns([target])
        table = read_all(source)
        if not table.num_rows:
            raise TableError(
                "the table to test with has no rows", hint="name a table with true classes"
            )
        return cls(table, class_binning(schema, target).places(table.column(target)))

    def predicted(self, tree: Tree) -> Whole:
        """The class of each row, by its place."""
        return tree.predict(self.table)

    def accuracy(self, tree: Tree) -> Accuracy:
        right = float((self.predicted(tree) == self.classes).mean())
        always = float((self.classes == tree.root.majority).mean())
        return Accuracy(len(self.classes), right, always)


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
