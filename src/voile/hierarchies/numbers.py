"""Hierarchies of numbers and of other ordered values: ranges that grow from level to level.

Values are handled as whole numbers of a common decimal unit, so that no rounding decides which
range a value is in, and by arithmetic on arrays, so that a million values are handled quickly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from voile.client.domains import EPOCH
from voile.errors import SchemaError, UsageError, spelled
from voile.hierarchies.stacking import (
    LevelPartition,
    Numbers,
    check_fanout,
    check_values,
    renumbered,
    stacked,
)
from voile.schema import Attribute, Bins, Interval, Range, Values
from voile.schema.attribute import edges_in_words, number_in_words, ordinal, value_words
from voile.schema.hierarchy import Levels

LARGEST = 2**62
FEWEST_RANGES = 12
"""Of the finest level that is made by default."""
LAST_RANGES = 4
"""By default, a level with as few ranges as this is the last one below '*'."""


@dataclass(frozen=True, eq=False)
class NumberPoints:
    """The values of a numeric domain as points/per, in the order of their codes."""

    points: Numbers
    per: int


def points_of(attribute: Attribute) -> NumberPoints:
    """The values of the domain, without NULL; bins are the middles they are published as."""
    check_values(attribute)
    domain = attribute.domain
    match domain:
        case Range(low) if attribute.kind == "integer":
            return NumberPoints(np.arange(domain.size, dtype=np.int64) + ordinal(low), 1)
        case Interval():
            codes = np.arange(domain.size, dtype=np.int64)
            return NumberPoints(codes * domain.stride + domain.first, domain.per)
        case Values() if attribute.kind in ("integer", "numeric"):
            return decimal_points(attribute, [Decimal(repr(value)) for value in domain])
        case Bins() if (
            attribute.kind != "date"
        ):  # middles are ours, not the data's: their last digits do not matter
            return decimal_points(attribute, [Decimal(f"{value:.12g}") for value in domain])
    raise UsageError(
        f"{attribute.name!r} is of kind {attribute.kind}, not a number",
        hint=f"use {spelled('dates', True)} for dates, {spelled('mask')} or "
        f"{spelled('prefixes')} for text, {spelled('mapping')} for categories",
    )


def decimal_points(attribute: Attribute, values: Sequence[Decimal]) -> NumberPoints:
    """Decimals as whole numbers of their finest unit."""
    digits = max(0, *(-int(v.normalize().as_tuple().exponent) for v in values))
    scaled = [int(value.scaleb(digits)) for value in values]
    if max(map(abs, scaled)) >= LARGEST:
        raise SchemaError(
            f"the values of {attribute.name!r} have too many digits for ranges by arithmetic",
            hint="give a hierarchy in a file, or bins in the schema",
        )
    return NumberPoints(np.array(scaled, dtype=np.int64), 10**digits)


# ---------------------------------------------------------------------- multiples


def multiples(attribute: Attribute, widths: Sequence[float]) -> Levels:
    """Ranges that begin at multiples of a width: 20-24 for 5, 20-29 for 10."""
    exact = exact_widths(widths)
    points = points_of(attribute)
    partitions = (of_width(attribute, points, width) for width in exact)
    return stacked(attribute, partitions, places=points.points)


def exact_widths(widths: Sequence[float]) -> list[Fraction]:
    """The widths as they were written, each a multiple of the one before."""
    if not widths:
        raise UsageError("no multiples are given", hint=spelled("multiples", [5, 10, 20]))
    for width in widths:
        if not math.isfinite(width) or width <= 0:
            raise UsageError(
                f"{width} is not a width: ranges are wider than 0",
                hint=spelled("multiples", [5, 10, 20]),
            )
    exact = [Fraction(Decimal(repr(width))) for width in widths]
    for fine, coarse in itertools.pairwise(exact):
        if coarse <= fine or (coarse / fine).denominator != 1:
            narrow, wide = float(fine), float(coarse)
            raise UsageError(
                f"ranges of {narrow:g} do not fit into ranges of {wide:g}",
                hint=f"let each width be a multiple of the one before: {narrow:g},{2 * narrow:g}",
            )
    return exact


def of_width(attribute: Attribute, points: NumberPoints, width: Fraction) -> LevelPartition:
    """One level: ⌊value/width⌋ in whole numbers."""
    units = width * points.per
    if int(np.abs(points.points).max()) * units.denominator >= LARGEST:
        raise SchemaError(
            f"{attribute.name!r}: ranges of {float(width):g} are too fine for its numbers",
            hint="give a larger width",
        )
    groups, numbers = renumbered(points.points * units.denominator // units.numerator)
    if isinstance(attribute.domain, Bins):
        return LevelPartition(numbers, bin_ranges(attribute.domain, numbers))
    if attribute.kind == "integer" and width.denominator == 1:
        return LevelPartition(numbers, whole_ranges([int(g) for g in groups], int(width)))
    edges = [(float(int(g) * width), float((int(g) + 1) * width)) for g in groups]
    words = [f"[{number_in_words(low)}, {number_in_words(high)})" for low, high in edges]
    return LevelPartition(numbers, words)


def whole_ranges(groups: Sequence[int], width: int) -> list[str]:
    """Ranges such as 20-24; with 'to' where a number is negative."""
    ends = [(group * width, (group + 1) * width - 1) for group in groups]
    between = " to " if groups[0] < 0 else "-"
    return [f"{low}{between}{high}" if low < high else str(low) for low, high in ends]


def bin_ranges(bins: Bins, numbers: Numbers) -> list[str]:
    """Groups of neighbouring bins, by their edges."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = np.append(starts[1:], bins.size)
    words = edges_in_words(bins)
    return [
        f"[{words[start]}, {words[end]}" + ("]" if end == bins.size else ")")
        for start, end in zip(starts, ends, strict=True)
    ]


def usual_widths(attribute: Attribute) -> list[float]:
    """Widths that suit a number's range: of 1, 2 or 5 times a power of ten, then doubled."""
    points = points_of(attribute)
    low, high = int(points.points.min()), int(points.points.max())
    least = Decimal(2 if points.per == 1 else 1) / points.per
    span = Decimal(high - low + (points.per == 1)) / points.per
    width = max(round_width(span / FEWEST_RANGES), least)
    widths = [width]
    while span / widths[-1] > LAST_RANGES:
        widths.append(widths[-1] * 2)
    return [float(width) for width in widths]


def round_width(width: Decimal) -> Decimal:
    """The largest of 1, 2, 5, 10, 20, … that is not above the width."""
    power = Decimal(1).scaleb(width.adjusted())
    return max(factor * power for factor in (1, 2, 5) if factor * power <= width)


# ---------------------------------------------------------------------- a number of ranges


def equal_width(attribute: Attribute, number: int, fanout: int = 2) -> Levels:
    """`number` ranges of equal width, then joined by the fanout until one is left."""
    check_ranges(number, fanout)
    points = places_of(attribute)
    low, high = int(points.min()), int(points.max())
    if high - low >= LARGEST // number:
        raise SchemaError(
            f"{attribute.name!r} runs too far for {number} ranges by arithmetic",
            hint=f"use {spelled('multiples')}",
        )
    return joined(attribute, (points - low) * number // (high - low + 1), fanout)


def equal_depth(
    attribute: Attribute, counts: npt.NDArray[np.int64], number: int, fanout: int = 2
) -> Levels:
    """`number` ranges with about equally many rows, then joined by the fanout.

    `counts` are the rows of each code. The ranges depend on them, and so disclose something about
    the rows.
    """
    check_ranges(number, fanout)
    rows = np.asarray(counts[: attribute.domain.size], dtype=np.int64)
    order = np.argsort(places_of(attribute), kind="stable")
    total = max(int(rows.sum()), 1)
    ordered = rows[order]
    middles = 2 * np.cumsum(ordered) - ordered  # twice the rows below the middle of each value
    groups = np.empty(len(rows), dtype=np.int64)
    groups[order] = np.minimum(middles * number // (2 * total), number - 1)
    return joined(attribute, groups, fanout, derived=True)


def check_ranges(number: int, fanout: int) -> None:
    """Refuse numbers of ranges, and fanouts, that make no hierarchy."""
    if number < 1:
        raise UsageError(
            f"a hierarchy needs at least one range, not {number}",
            hint=spelled("equal_width", 8),
        )
    check_fanout(fanout)


def places_of(attribute: Attribute) -> Numbers:
    """The position of each value: numbers by size, days by date, others as in the schema."""
    check_values(attribute)
    domain = attribute.domain
    if attribute.kind == "date":
        if isinstance(domain, Range):
            return np.arange(domain.size, dtype=np.int64)
        days = [ordinal(value) for value in domain]  # type: ignore[arg-type]
        return np.array(days, dtype=np.int64)
    if attribute.kind in ("integer", "numeric"):
        return points_of(attribute).points
    if not attribute.ordered:
        raise UsageError(
            f"the values of {attribute.name!r} have no order that could be cut into ranges",
            hint=f"use {spelled('mapping')} or {spelled('suggest_by')}, or set 'ordered: true' "
            "in the schema",
        )
    return np.arange(domain.size, dtype=np.int64)


def joined(attribute: Attribute, groups: Numbers, fanout: int, *, derived: bool = False) -> Levels:
    """The hierarchy of these groups: at each level, `fanout` neighbours are joined."""
    ranges = growing_ranges(attribute, groups, fanout)
    return stacked(attribute, ranges, places=places_of(attribute), derived=derived)


def growing_ranges(attribute: Attribute, groups: Numbers, fanout: int) -> Iterator[LevelPartition]:
    """The groups, then `fanout` neighbours of them as one, until one is left."""
    _, numbers = renumbered(groups)
    while int(numbers.max()) > 0:
        yield LevelPartition(numbers, extents(attribute, numbers))
        numbers = numbers // fanout


def extents(attribute: Attribute, numbers: Numbers) -> list[str]:
    """Each group by its least and its largest value."""
    order = np.lexsort((places_of(attribute), numbers))
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    lowest = order[starts]
    highest = order[np.append(starts[1:], len(order)) - 1]
    if isinstance(attribute.domain, Bins):
        return bin_ranges(attribute.domain, numbers)
    words = value_words(attribute)
    pairs = [(words[a], words[b]) for a, b in zip(lowest.tolist(), highest.tolist(), strict=True)]
    negative = any(low.startswith("-") for low, _ in pairs)
    return [extent_words(attribute, low, high, negative=negative) for low, high in pairs]


def extent_words(attribute: Attribute, low: str, high: str, *, negative: bool) -> str:
    """A range by its least and its largest value, as its kind is written."""
    if low == high:
        return low
    if attribute.kind == "numeric":
        return f"[{low}, {high}]"
    if attribute.kind == "integer" and not negative:
        return f"{low}-{high}"
    return f"{low} to {high}"


# ---------------------------------------------------------------------- days
# Hierarchies of days: month, quarter, year.


def calendar(attribute: Attribute) -> Levels:
    """day → month → quarter → year → '*', without the levels that change nothing."""
    months = days_of(attribute).astype("M8[M]").astype(np.int64)  # months since January 1970
    return stacked(attribute, (by_months(months, length) for length in (1, 3, 12)))


def days_of(attribute: Attribute) -> npt.NDArray[np.datetime64]:
    """The days of a date attribute, in the order of their codes."""
    if attribute.kind != "date":
        raise UsageError(
            f"{attribute.name!r} is of kind {attribute.kind}, not date",
            hint=f"use {spelled('multiples')} for numbers, {spelled('mask')} for text, or kind: "
            "date in the schema",
        )
    check_values(attribute)
    domain = attribute.domain
    if isinstance(domain, Range):
        ordinals = np.arange(domain.size, dtype=np.int64) + ordinal(domain.low)
    else:
        ordinals = np.array([ordinal(day) for day in domain], dtype=np.int64)  # type: ignore[arg-type]
    return (ordinals - EPOCH).astype("M8[D]")


def by_months(months: npt.NDArray[np.int64], length: int) -> LevelPartition:
    """Spans of `length` months: 2024-03, 2024-Q1, 2024."""
    groups, numbers = renumbered(months // length)
    return LevelPartition(numbers, [span_words(int(group), length) for group in groups])


def span_words(group: int, length: int) -> str:
    """A month, a quarter or a year in words."""
    year, place = divmod(group * length, 12)
    year += 1970
    if length == 12:
        return f"{year:04d}"
    return f"{year:04d}-Q{place // 3 + 1}" if length == 3 else f"{year:04d}-{place + 1:02d}"


# ---------------------------------------------------------------------- without a hierarchy
# The hierarchy of a column for which none is given.


FEW = 4
"""So few numbers need no ranges."""


def default_levels(attribute: Attribute) -> Levels:
    """The default hierarchy: ranges for numbers, the calendar for days, '*' for other values."""
    if attribute.domain.size and attribute.kind == "date":
        return calendar(attribute)
    if attribute.domain.size > FEW and attribute.kind in ("integer", "numeric"):
        try:
            return multiples(attribute, usual_widths(attribute))
        except SchemaError:  # numbers of too many digits for ranges by arithmetic
            pass
    return stacked(attribute, ())
