"""A decision tree: its nodes, its rules, and what it predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import TableError, did_you_mean
from voile.mining.binning import UNKNOWN, Binning, value_in_words
from voile.schema import Attribute, Value
from voile.schema.attribute import plain

Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Path = Mapping[str, Mask]
"""Which bins of each column lead to a node."""


class Proof(StrEnum):
    """Among which rows the sides of a split differ by more than chance."""

    NODE = "node"
    ALL = "all rows"
    """The node's own rows differ in the same way, but that alone may be chance."""
    NONE = "none"
    """None was asked for."""


@dataclass(frozen=True, eq=False)
class Split:
    """A question on one column; rows in the `chosen` bins answer yes."""

    binning: Binning
    chosen: Mask
    gain: float
    proof: Proof = Proof.NONE

    @property
    def condition(self) -> str:
        """The question as SQL."""
        return self.binning.condition(self.chosen)


class LeafReason(StrEnum):
    """Why a node is a leaf."""

    DEPTH = "depth"
    SUPPORT = "support"
    """No cut leaves enough rows on each side, or so many that they are sure to be there."""
    GAIN = "gain"
    """All cuts leave the classes as mixed as they are."""
    ERRORS = "errors"
    """No cut makes the sides differ by more than chance."""


@dataclass(frozen=True, eq=False)
class Node:
    """Estimated rows of a node, the share of each class among them, and how it goes on.

    `stderr` is that of the rows, `share_stderr` that of the most frequent class's share. `yes` and
    `no` are there where `split` is, and `ended` where it is not.
    """

    rows: float
    stderr: float
    shares: tuple[float, ...]
    share_stderr: float
    ended: LeafReason | None = None
    split: Split | None = None
    yes: Node | None = None
    no: Node | None = None

    @property
    def majority(self) -> int:
        """The most frequent class, by its place."""
        return int(np.argmax(self.shares))

    @property
    def children(self) -> tuple[tuple[bool, Node], ...]:
        """Answer and node, none for a leaf."""
        if self.yes is None or self.no is None:
            return ()
        return ((True, self.yes), (False, self.no))

    @property
    def depth(self) -> int:
        """Splits on the longest way down."""
        return max((1 + child.depth for _, child in self.children), default=0)


@dataclass(frozen=True)
class Rule:
    """A leaf in words: rows that meet all conditions are mostly of one class."""

    conditions: tuple[str, ...]
    label: Value
    rows: float
    stderr: float
    share: float
    share_stderr: float

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "conditions": list(self.conditions),
            "class": plain(self.label),
            "rows": self.rows,
            "stderr": self.stderr,
            "share": self.share,
            "share_stderr": self.share_stderr,
        }


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree for `target`, from the bins of the columns that it was allowed to ask about."""

    target: Attribute
    binnings: Mapping[str, Binning]
    root: Node

    @property
    def classes(self) -> list[Value]:
        """The target's values."""
        return list(self.target)

    @property
    def label(self) -> Value:
        """The most frequent class of all."""
        return self.classes[self.root.majority]

    @property
    def columns(self) -> list[str]:
        """The columns that the tree asks about, in the order of the schema."""
        used = {node.split.binning.name for _, node in self.nodes() if node.split}
        return [name for name in self.binnings if name in used]

    def nodes(self) -> Iterator[tuple[dict[str, Mask], Node]]:
        """Every node with its path, the yes side first."""
        yield from self._below({}, self.root)

    def _below(self, path: dict[str, Mask], node: Node) -> Iterator[tuple[dict[str, Mask], Node]]:
        yield path, node
        for answer, child in node.children:
            assert node.split is not None  # noqa: S101
            yield from self._below(narrowed(path, node.split, answer=answer), child)

    def conditions(self, path: Path) -> tuple[str, ...]:
        """What leads to a node, one condition for each column."""
        return tuple(self.binnings[name].condition(mask) for name, mask in path.items())

    def rules(self) -> list[Rule]:
        """The leaves, the yes side first."""
        classes = self.classes
        return [
            Rule(
                self.conditions(path),
                classes[node.majority],
                node.rows,
                node.stderr,
                node.shares[node.majority],
                node.share_stderr,
            )
            for path, node in self.nodes()
            if not node.children
        ]

    # ------------------------------------------------------------------ predicting

    def places(self, table: Any) -> dict[str, Whole]:
        """The bins of the rows of an Arrow table, for the columns that the tree asks about."""
        names = list(table.schema.names)
        for name in self.columns:
            if name not in names:
                raise TableError(
                    f"the rows have no column {name!r}, which the tree asks about",
                    hint=did_you_mean(name, names),
                )
        return {name: self.binnings[name].places(table.column(name)) for name in self.columns}

    def shares(self, places: Mapping[str, Whole], rows: int) -> Floats:
        """The class shares of the leaf that each row falls in (rows × classes)."""
        found = np.empty((rows, len(self.root.shares)))
        fill(self.root, places, np.arange(rows), found)
        return found

    def predict(self, table: Any) -> Whole:
        """The class of each row of an Arrow table, by its place in `classes`."""
        shares = self.shares(self.places(table), table.num_rows)
        found: Whole = shares.argmax(axis=1).astype(np.int64)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return self._node_to_dict(self.root, None)

    def _node_to_dict(self, node: Node, answer: bool | None) -> dict[str, Any]:
        names = [value_in_words(label) for label in self.classes]
        found: dict[str, Any] = {
            "rows": node.rows,
            "stderr": node.stderr,
            "class": plain(self.classes[node.majority]),
            "share": node.shares[node.majority],
            "share_stderr": node.share_stderr,
            "shares": dict(zip(names, node.shares, strict=True)),
        }
        if answer is not None:
            found = {"answer": "yes" if answer else "no", **found}
        if node.ended:
            found["ended"] = str(node.ended)
        if node.split:
            found |= {"column": node.split.binning.name, "condition": node.split.condition}
            found |= {"gain": node.split.gain, "proof": str(node.split.proof)}
            found["children"] = [self._node_to_dict(child, a) for a, child in node.children]
        return found


def narrowed(path: Path, split: Split, *, answer: bool) -> dict[str, Mask]:
    """The path to a child."""
    name = split.binning.name
    side = split.chosen if answer else ~split.chosen
    return {**path, name: path[name] & side if name in path else side}


def fill(node: Node, places: Mapping[str, Whole], rows: Whole, found: Floats) -> None:
    """Pass rows down the tree; a value nobody knows goes where most rows go."""
    if node.split is None or node.yes is None or node.no is None:
        found[rows] = node.shares
        return
    place = places[node.split.binning.name][rows]
    answers = np.where(place == UNKNOWN, node.yes.rows >= node.no.rows, node.split.chosen[place])
    fill(node.yes, places, rows[answers], found)
    fill(node.no, places, rows[~answers], found)
