"""Hierarchies: the coarser values that a column's values may be replaced by.

A hierarchy is a path for each value: the value itself, then ever coarser labels, the last of
which is the same for all ('*'). Bound to an attribute it becomes `Levels`: arrays of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from voile.errors import SchemaError, spelled
from voile.schema.attribute import LARGE, NULL, Attribute, code_of_words, value_words

Nodes = npt.NDArray[np.int32]
Path = tuple[str, ...]

EVERYTHING = "*"
"""The label of the one node at the top."""


@dataclass(frozen=True, eq=False)
class Levels:
    """A hierarchy over the codes 0 … size−1 of an attribute, from fine to coarse.

    nodes[h][code] is the number of the node of level h that the code lies in. Level 0 are the
    codes themselves, the last level is one node, and each level joins nodes of the one before.
    """

    nodes: tuple[Nodes, ...]
    labels: tuple[Sequence[str], ...]
    """labels[h][node]; those of level 0 are the values in words."""
    leaves: Nodes
    """The codes in the order in which the hierarchy lists them: how its author orders values."""
    derived: bool = False
    """Whether it was computed from the private table's rows, and so discloses facts about them."""

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.nodes) - 1

    @property
    def size(self) -> int:
        """How many codes are generalized."""
        return len(self.nodes[0])

    @cached_property
    def nested(self) -> Nodes:
        """The codes in an order in which every node is an interval; `leaves` where it is one."""
        place = np.empty(self.size, dtype=np.int64)
        place[self.leaves] = np.arange(self.size)
        keys = [place]
        for nodes in self.nodes[1:]:
            first = np.full(int(nodes.max()) + 1, self.size)
            np.minimum.at(first, nodes, place)
            keys.append(first[nodes])
        return np.lexsort(keys).astype(np.int32)  # the last key, the coarsest level, counts most

    def paths(self) -> list[Path]:
        """The path of every value in words, in the order of `leaves`."""
        columns = [
            [labels[node] for node in nodes[self.leaves].tolist()]
            for nodes, labels in zip(self.nodes, self.labels, strict=True)
        ]
        return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class Hierarchy:
    """The path of each value in words, in the order of its author; all paths are equally long.

    >>> Hierarchy.of([("cat", "mammal"), ("hen", "bird")]).paths
    (('cat', 'mammal', '*'), ('hen', 'bird', '*'))
    """

    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        check_lengths(self.paths)
        check_leaves(self.paths)
        check_nested(self.paths)

    @classmethod
    def of(cls, paths: Iterable[Sequence[str]]) -> Hierarchy:
        """A hierarchy of these paths; '*' is put on top where they do not end in one label."""
        found = tuple(tuple(path) for path in paths)
        check_lengths(found)
        if len(found[0]) == 1 or len({path[-1] for path in found}) > 1:
            found = tuple((*path, EVERYTHING) for path in found)
        return cls(found)

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.paths[0]) - 1

    def bind(self, attribute: Attribute) -> Levels:
        """The hierarchy on an attribute's codes; values that the attribute lacks are skipped."""
        if attribute.size > LARGE + len(self.paths):
            raise SchemaError(
                f"the hierarchy of {attribute.name!r} lists {len(self.paths):,} values, "
                f"the column has {attribute.size:,}",
                hint=f"build one by arithmetic: {spelled('multiples')}, "
                f"{spelled('equal_width')}, {spelled('dates', True)} or {spelled('mask')}",
            )
        by_code = self._by_code(attribute)
        if attribute.null and attribute.size - 1 not in by_code:
            middle = (NULL,) * (self.height - 1)
            by_code[attribute.size - 1] = (NULL, *middle, self.paths[0][-1])
            check_nested(tuple(by_code.values()))
        refuse_missing(attribute, by_code)
        return levels_of_paths(attribute, by_code)

    def _by_code(self, attribute: Attribute) -> dict[int, Path]:
        """Paths by the code of their value, in the order of the hierarchy."""
        code_of = code_of_words(attribute)
        found: dict[int, Path] = {}
        for path in self.paths:
            code = code_of(path[0])
            if code is None:
                continue
            if code in found:
                raise SchemaError(
                    f"the hierarchy of {attribute.name!r} lists the same value twice: "
                    f"{found[code][0]!r} and {path[0]!r}",
                    hint="remove one of the two rows",
                )
            found[code] = path
        return found


def levels_of_paths(attribute: Attribute, by_code: Mapping[int, Path]) -> Levels:
    """Number the labels of each level in the order in which they first appear."""
    leaves = np.fromiter(by_code, dtype=np.int32, count=len(by_code))
    size = len(leaves)
    nodes: list[Nodes] = [np.arange(size, dtype=np.int32)]
    labels: list[Sequence[str]] = [value_words(attribute)]
    for level in zip(*(path[1:] for path in by_code.values()), strict=True):
        numbers: dict[str, int] = {}
        here = np.empty(size, dtype=np.int32)
        here[leaves] = [numbers.setdefault(label, len(numbers)) for label in level]
        nodes.append(here)
        labels.append(tuple(numbers))
    return Levels(tuple(nodes), tuple(labels), leaves)


def refuse_missing(attribute: Attribute, by_code: Mapping[int, Path]) -> None:
    """Every value of the attribute needs a path."""
    if len(by_code) == attribute.size:
        return
    missing = [code for code in range(attribute.size) if code not in by_code]
    words = value_words(attribute)
    shown = ", ".join(repr(words[code]) for code in missing[:5])
    more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
    raise SchemaError(
        f"the hierarchy of {attribute.name!r} has no path for {shown}{more}",
        hint=f"add a row that begins with {words[missing[0]]!r}, "
        f"or leave the value out of the schema",
    )


# ---------------------------------------------------------------------- what a hierarchy must be


def check_lengths(paths: Sequence[Path]) -> None:
    """Refuse paths of different lengths."""
    if not paths:
        raise SchemaError("the hierarchy is empty", hint="give one row for each value")
    length = len(paths[0])
    for number, path in enumerate(paths, start=1):
        if len(path) != length or not path:
            raise SchemaError(
                f"row {number} of the hierarchy, {';'.join(path)!r}, has {len(path)} levels, "
                f"the first has {length}",
                hint="give every value the same number of levels; repeat a label where one lacks",
            )


def check_leaves(paths: Sequence[Path]) -> None:
    """Refuse two paths of one value."""
    seen: dict[str, int] = {}
    for number, path in enumerate(paths, start=1):
        if path[0] in seen:
            raise SchemaError(
                f"rows {seen[path[0]]} and {number} of the hierarchy are both about {path[0]!r}",
                hint="remove one of them",
            )
        seen[path[0]] = number


def check_nested(paths: Sequence[Path]) -> None:
    """A label lies in one label of the next level, and there is one at the top."""
    for level in range(1, len(paths[0]) - 1):
        above: dict[str, Path] = {}
        for path in paths:
            other = above.setdefault(path[level], path)
            if other[level + 1] != path[level + 1]:
                raise SchemaError(
                    f"level {level} of the hierarchy: {path[level]!r} lies in "
                    f"{other[level + 1]!r} (row of {other[0]!r}) and in {path[level + 1]!r} "
                    f"(row of {path[0]!r})",
                    hint="let each label lie in one label of the next level; "
                    "give two labels where two are meant",
                )
    if len({path[-1] for path in paths}) > 1:
        raise SchemaError(
            f"the hierarchy has several labels at its top: {paths[0][-1]!r} and others",
            hint=f"end every row with {EVERYTHING!r}",
        )
