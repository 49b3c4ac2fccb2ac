"""From a partition of the values for each level to Levels; hierarchies of texts and codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError, spelled
from voile.schema import Attribute, Range
from voile.schema.attribute import NULL, in_words, ordinal, value_words
from voile.schema.hierarchy import EVERYTHING, Levels, Nodes

MOST_VALUES = 20_000_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LevelPartition:
    """One level: the number of each value's group, and the groups in words.

    NULL is no value here: it stays apart from all groups, below the top.
    """

    groups: Numbers
    labels: Sequence[str]


def stacked(
    attribute: Attribute,
    partitions: Iterable[LevelPartition],
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


def check_fanout(fanout: int) -> None:
    """Refuse a fanout that joins nothing."""
    if fanout < 2:
        raise UsageError(f"{spelled('fanout', fanout)} joins nothing", hint=spelled("fanout", 2))


def renumbered(groups: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.generic], Numbers]:
    """The groups that occur, in increasing order, and for each value the number of its group."""
    found, numbers = np.unique(groups, return_inverse=True)
    return found, numbers.astype(np.int64)


# ---------------------------------------------------------------------- texts and codes
# Hierarchies of texts and codes: characters hidden one after the other, or prefixes kept.


Side = Literal["left", "right"]
Texts = npt.NDArray[Any]

LONGEST = 64
"""Texts longer than this would make a level for each character: prefixes suit them better."""


def masked(attribute: Attribute, side: str = "right") -> Levels:
    """12345 → 1234* → 123** → … → '*': one more character hidden at each level.

    All values have the same number of stars at a level, so that it does not disclose their length.
    """
    if side not in get_args(Side):
        raise UsageError(
            f"{spelled('mask', side)} is not known",
            hint=f"{spelled('mask', 'right')} or {spelled('mask', 'left')}",
        )
    texts = texts_of(attribute)
    length = longest(texts)
    if length > LONGEST:
        raise UsageError(
            f"values of {attribute.name!r} have up to {length} characters: too many levels",
            hint=spelled("prefixes", [6, 4, 2]),
        )
    kept = range(length - 1, 0, -1)
    if side == "right":
        levels = (partition(texts.astype(f"U{n}"), "", EVERYTHING * (length - n)) for n in kept)
    else:
        levels = (partition(endings(texts, n), EVERYTHING * (length - n), "") for n in kept)
    return stacked(attribute, levels)


def prefixes(attribute: Attribute, lengths: Sequence[int]) -> Levels:
    """The first characters, fewer at each level: 75011 → 750* → 75*."""
    for length in lengths:
        if length < 1:
            raise UsageError(
                f"a prefix has no {length} characters", hint=spelled("prefixes", [3, 2, 1])
            )
    if not lengths or list(lengths) != sorted(set(lengths), reverse=True):
        raise UsageError(
            f"{spelled('prefixes', list(lengths))} do not get shorter",
            hint="give the longest first: 3,2,1",
        )
    texts = texts_of(attribute)
    return stacked(attribute, (partition(texts.astype(f"U{n}"), "", EVERYTHING) for n in lengths))


def texts_of(attribute: Attribute) -> Texts:
    """The values in words, without NULL; whole numbers of a range by arithmetic."""
    domain = attribute.domain
    if attribute.kind not in ("categorical", "integer"):
        raise UsageError(
            f"{attribute.name!r} is of kind {attribute.kind}: its characters are no categories",
            hint=f"use {spelled('dates', True)} for dates, {spelled('multiples')} or "
            f"{spelled('equal_width')} for numbers",
        )
    check_values(attribute)
    if isinstance(domain, Range):
        return (np.arange(domain.size, dtype=np.int64) + ordinal(domain.low)).astype(np.str_)
    return np.array([in_words(value) for value in domain], dtype=np.str_)


def longest(texts: Texts) -> int:
    """The number of characters of the longest text."""
    return int(np.strings.str_len(texts).max())


def endings(texts: Texts, number: int) -> Texts:
    """The last `number` characters of each text."""
    characters = texts.view(np.uint32).reshape(len(texts), -1)
    places = np.strings.str_len(texts)[:, None] - number + np.arange(number)
    found = np.take_along_axis(characters, np.maximum(places, 0), axis=1)
    found[places < 0] = 0
    return found.view(f"U{number}").reshape(len(texts))


def partition(parts: Texts, before: str, after: str) -> LevelPartition:
    """One level that groups values with the same part."""
    found, numbers = renumbered(parts)
    return LevelPartition(numbers, [f"{before}{str(part).lstrip(chr(0))}{after}" for part in found])
