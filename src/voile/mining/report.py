"""A tree from a release with all that is told about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voile.mining.assess import Accuracy, Comparison, Rows, beside
from voile.mining.counts import Counts
from voile.mining.growing import Limits, Progress, grow
from voile.mining.growth_notes import growth_notes
from voile.mining.tree import Tree
from voile.schema.attribute import plain


@dataclass(frozen=True, eq=False)
class TreeReport:
    """The tree, how it was made, how often it is right, and the table's own tree beside it."""

    release: str
    rows: int
    tree: Tree
    limits: Limits
    accuracy: Accuracy | None
    comparison: Comparison | None
    own_accuracy: Accuracy | None

    @property
    def notes(self) -> tuple[str, ...]:
        """What people must know to read the tree."""
        told = list(growth_notes(self.tree, self.limits))
        if self.accuracy and self.accuracy.unknown:
            told.append(
                "test rows with a class that the tree does not know count as wrong: "
                f"{self.accuracy.unknown:,} of {self.accuracy.rows:,}"
            )
        return tuple(told)

    @property
    def subtitle(self) -> list[str]:
        """What a picture says below its title, in lines."""
        limits = self.limits
        told = f"Reconstructed from {self.rows:,} perturbed rows ({limits.method}); depth at most "
        told += f"{limits.depth}, at least {limits.min_support:,.0f} rows in a leaf."
        lines = [told]
        if self.accuracy:
            told = f"Right for {100 * self.accuracy.accuracy:.1f} % of {self.accuracy.rows:,} "
            told += f"other rows; the most frequent class, {100 * self.accuracy.majority:.1f} %."
            lines.append(told)
        if not self.tree.root.children:
            lines += [f"{note[0].upper()}{note[1:]}." for note in self.notes[:1]]
        return lines

    def to_dict(self) -> dict[str, Any]:
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
            **told_of(tree, self.accuracy),
        }
        if self.comparison:
            own = told_of(self.comparison.tree, self.own_accuracy)
            found["beside"] = {**own, "agreement": self.comparison.agreement}
        return {**found, "notes": list(self.notes)}


def told_of(tree: Tree, accuracy: Accuracy | None) -> dict[str, Any]:
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
    progress: Progress = lambda _step, _done: None,
) -> TreeReport:
    """Grow the tree, and try it on a table and beside the tree of another where they are given."""
    # Read first: a table that is not there is told before any work is done.
    rows = None if test is None else Rows.of_table(test, counts.schema, target)
    tree = grow(counts, target, columns, limits, progress)
    accuracy = rows.accuracy(tree) if rows else None
    compared = None if private is None else beside(private, tree, counts.schema, columns, limits)
    own = rows.accuracy(compared.tree) if rows and compared else None
    return TreeReport(release, counts.rows, tree, limits, accuracy, compared, own)
