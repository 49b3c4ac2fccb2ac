"""From a partition of the values for each level to Levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError
from voile.schema import Attribute
from voile.schema.hierarchy import EVERYTHING, Levels, Nodes
from voile.schema.words import NULL, value_words

MOST_VALUES = 20_000_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Partition:
    """One level: the number of each value's group, and the groups in words.

    NULL is no value here: it stays apart from all groups, below the top.
    """

    groups: Numbers
    labels: Sequence[str]


def stacked(
    attribute: Attribute,
    partitions: Iterable[Partition],
    *,
    places: Numbers | None = None,
    derived: bool = False,
) -> Levels:
    """The values, the partitions from fine to coarse, and everything.

    A partition that is the same as the one below it is left out. `places` says where each value
    stands, if that is not the schema's order.
    """
    check_size(attribute)
    size = attribute.size
    nodes: list[Nodes] = [np.arange(size, dtype=np.int32)]
    labels: list[Sequence[str]] = [value_words(attribute)]
    below = attribute.domain.size
    for partition in partitions:
        number = len(partition.labels)
        if number in (below, 1):
            continue
        here = np.full(size, number, dtype=np.int32)
        here[: attribute.domain.size] = partition.groups
        nodes.append(here)
        labels.append((*partition.labels, NULL) if attribute.null else tuple(partition.labels))
        below = number
    nodes.append(np.zeros(size, dtype=np.int32))
    labels.append((EVERYTHING,))
    leaves = np.arange(size, dtype=np.int32)
    if places is not None:
        leaves[: attribute.domain.size] = np.argsort(places, kind="stable")
    return Levels(tuple(nodes), tuple(labels), leaves, derived)


def check_size(attribute: Attribute) -> None:
    """Refuse domains whose values cannot be numbered one by one."""
    if attribute.size > MOST_VALUES:
        raise UsageError(
            f"{attribute.name!r} has {attribute.size:,} possible values, too many for a hierarchy",
            hint="declare bins, or a smaller range or larger step, in a codebook: `voile schema`",
        )


def check_values(attribute: Attribute) -> None:
    """Refuse domains that have nothing, or too much, to build from."""
    check_size(attribute)
    if not attribute.domain.size:
        raise UsageError(
            f"{attribute.name!r} has no value but NULL",
            hint="leave the column out, or declare its values in a codebook",
        )


def renumbered(groups: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.generic], Numbers]:
    """The groups that occur, in increasing order, and for each value the number of its group."""
    found, numbers = np.unique(groups, return_inverse=True)
    return found, numbers.astype(np.int64)
