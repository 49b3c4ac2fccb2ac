"""How often a tree is right, on rows that nobody perturbed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines import connect, read_all
from voile.errors import TableError, spelled
from voile.mining.binning import UNKNOWN, shortened
from voile.mining.counts import Counts, ExactCounts
from voile.mining.growing import Limits, class_binning, grow
from voile.mining.tree import LeafReason, Path, Proof, Tree
from voile.progress import Progress
from voile.schema import Schema
from voile.schema.attribute import plain

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TreeAccuracy:
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

        It holds with probability about 0.95, and three rows that are all right prove little.
        """
        squared = NormalDist().inv_cdf(0.975) ** 2 / self.rows
        middle = self.accuracy + squared / 2
        spread = math.sqrt(squared * (self.accuracy * (1 - self.accuracy) + squared / 4))
        low, high = ((middle - spread) / (1 + squared), (middle + spread) / (1 + squared))
        return max(low, 0.0), min(high, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
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
class ReportRows:
    """Rows with their classes, read once and asked by any number of trees."""

    table: Any
    classes: Whole

    @classmethod
    def of_table(cls, source: object, schema: Schema, target: str) -> ReportRows:
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

    def accuracy(self, tree: Tree) -> TreeAccuracy:
        """How often the tree is right about these rows."""
        right = float((self.predicted(tree) == self.classes).mean())
        always = float((self.classes == tree.root.majority).mean())
        unknown = int((self.classes == UNKNOWN).sum())
        return TreeAccuracy(len(self.classes), right, always, unknown)


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
    rows = ReportRows.of_table(source, schema, target)
    agreement = float((rows.predicted(tree) == rows.predicted(own)).mean())
    return Comparison(own, agreement)


# ------------------------------------------------------------- why a tree does not go on, in words


def growth_notes(tree: Tree, limits: Limits) -> Iterator[str]:
    """A note for each reason but the depth, which was asked for, and one on weaker proofs."""
    if not tree.root.children:
        yield f"no split of all rows {whole_reason(tree, limits)}"
        return
    reasons = {
        LeafReason.ERRORS: "is beyond its error",
        LeafReason.SUPPORT: f"leaves {least(limits)} on each side",
    }
    for ended, reason in reasons.items():
        leaves = [path for path, node in tree.nodes() if node.ended is ended]
        if not leaves:
            continue
        rest = len(leaves) - 1
        others = f", nor of {rest} other {'leaf' if rest == 1 else 'leaves'}," if rest else ""
        yield f"no split of {place(tree, leaves[0])}{others} {reason}"
    borrowed = [(p, n.split) for p, n in tree.nodes() if n.split and n.split.proof is Proof.ALL]
    if borrowed:
        path, split = borrowed[0]
        rest = len(borrowed) - 1
        others = f", and {rest} other split{'s' * (rest > 1)}," if rest else ""
        yield (
            f"the split of {place(tree, path)} by {split.binning.name}{others} may be chance by "
            "itself: it is proven among all rows, and the node differs the same way"
        )


def place(tree: Tree, path: Path) -> str:
    """A node, by what leads there."""
    words = " and ".join(tree.binnings[name].words(mask) for name, mask in path.items())
    return f"“{words}”" if words else "all rows"


def whole_reason(tree: Tree, limits: Limits) -> str:
    """Why there is no split at all, and what to change."""
    if tree.root.ended is LeafReason.ERRORS:
        return (
            f"is beyond its error: what the columns tell of {tree.target.name} may be chance; "
            f"more rows or a higher retention tell more, and {spelled('level', 0)} takes the "
            "best split all the same"
        )
    if tree.root.ended is LeafReason.SUPPORT:
        lower = f"lower {spelled('min_support')}, or publish more rows"
        return f"leaves {least(limits)} on each side: {lower}"
    return "makes the classes less mixed"


def least(limits: Limits) -> str:
    """The rows that a leaf must have."""
    rows = limits.min_support
    if not rows:
        return "more rows than twice their error"
    return f"{rows:,.0f} row{'s' * (rows != 1)}, and more than twice their error,"


# ----------------------------------------- a tree from a release with all that is reported of it


@dataclass(frozen=True, eq=False)
class TreeReport:
    """The tree, how it was made, how often it is right, and the table's own tree beside it."""

    release: str
    rows: int
    tree: Tree
    limits: Limits
    accuracy: TreeAccuracy | None
    comparison: Comparison | None
    own_accuracy: TreeAccuracy | None

    @property
    def notes(self) -> tuple[str, ...]:
        """What people must know to read the tree."""
        found = list(growth_notes(self.tree, self.limits))
        if self.accuracy and self.accuracy.unknown:
            found.append(
                "test rows with a class that the tree does not know count as wrong: "
                f"{self.accuracy.unknown:,} of {self.accuracy.rows:,}"
            )
        return tuple(found)

    @property
    def subtitle(self) -> list[str]:
        """What a picture says below its title, in lines."""
        limits = self.limits
        line = f"Reconstructed from {self.rows:,} perturbed rows ({limits.method}); depth at most "
        line += f"{limits.depth}, at least {limits.min_support:,.0f} rows in a leaf."
        lines = [line]
        if self.accuracy:
            line = f"Right for {100 * self.accuracy.accuracy:.1f} % of {self.accuracy.rows:,} "
            line += f"other rows; the most frequent class, {100 * self.accuracy.majority:.1f} %."
            lines.append(line)
        if not self.tree.root.children:
            lines += [f"{note[0].upper()}{note[1:]}." for note in self.notes[:1]]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        tree, limits = self.tree, self.limits
        found = {
            "release": self.release,
            "rows": self.rows,
            "target": tree.target.name,
            "classes": [plain(label) for label in tree.classes],
            "columns": list(tree.binnings),
            "depth": limits.depth,
            "min_support": limits.min_support,
            "bins": limits.bins,
            "method": limits.method,
            "level": limits.level,
            **tree_data(tree, self.accuracy),
        }
        if self.comparison:
            own = tree_data(self.comparison.tree, self.own_accuracy)
            found["beside"] = {**own, "agreement": self.comparison.agreement}
        return {**found, "notes": list(self.notes)}


def tree_data(tree: Tree, accuracy: TreeAccuracy | None) -> dict[str, Any]:
    """A tree with its rules and its accuracy, ready for JSON."""
    found = {"rules": [rule.to_dict() for rule in tree.rules()], "tree": tree.to_dict()}
    return found | (accuracy.to_dict() if accuracy else {})


def report(
    counts: Counts,
    target: str,
    columns: Sequence[str] | None,
    limits: Limits,
    *,
    release: str,
    test: object = None,
    private: object = None,
    progress: Progress | None = None,
) -> TreeReport:
    """Grow the tree, and try it on a table and beside the tree of another where they are given."""
    # Read first: a table that is not there is refused before any work is done.
    rows = None if test is None else ReportRows.of_table(test, counts.schema, target)
    tree = grow(counts, target, columns, limits, progress)
    accuracy = rows.accuracy(tree) if rows else None
    compared = None if private is None else beside(private, tree, counts.schema, columns, limits)
    own = rows.accuracy(compared.tree) if rows and compared else None
    return TreeReport(release, counts.rows, tree, limits, accuracy, compared, own)
