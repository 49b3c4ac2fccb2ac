"""Columns of rows to codes of the schema, and codes back to columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrow import arrow_array, numpy_array, text_array
from voile.schema import Attribute, Bins, DayBins, Interval, Range, Values, WholeBins
from voile.schema.attribute import day_of

ARROW = {
    "categorical": pa.string(),
    "integer": pa.int64(),
    "numeric": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}


def column_type(attribute: Attribute) -> Any:
    """The Arrow type of an attribute's values: middles of bins of whole numbers are doubles."""
    if attribute.kind == "integer" and isinstance(attribute.domain, Bins):
        return pa.float64()
    return ARROW[attribute.kind]


OUTSIDE = -1
"""The code of a value that the domain does not have."""


def listed_values(attribute: Attribute) -> Any:
    """The values of a domain that lists them, without NULL, as an Arrow array."""
    values: list[Any] = list(attribute.domain)
    match attribute.kind:
        case "categorical":
            return text_array(values)
        case "date":
            days = np.array(values, "datetime64[D]").astype(np.int32)
            return arrow_array(days).view(pa.date32())
        case _:
            return arrow_array(np.array(values, column_type(attribute).to_pandas_dtype()))


def domain_array(attribute: Attribute) -> Any:
    """Every value of the domain, in the order of its codes, as an Arrow array."""
    if is_computed(attribute):
        return computed_values(attribute, np.arange(attribute.size))
    array = listed_values(attribute)
    return pa.concat_arrays([array, pa.nulls(1, array.type)]) if attribute.null else array


def is_computed(attribute: Attribute) -> bool:
    """Whether values follow from their codes by arithmetic; there may be too many to list."""
    return isinstance(attribute.domain, Range | Interval)


def computed_values(attribute: Attribute, codes: npt.NDArray[Any]) -> Any:
    """Values of a range or an interval from their codes, without listing it."""
    domain, mask = attribute.domain, None
    if attribute.null:
        mask = codes == domain.size
    if isinstance(domain, Interval):
        return arrow_array(domain.grid.decode(codes.astype(np.int64)), mask)
    assert isinstance(domain, Range)  # noqa: S101
    numbers = codes.astype(np.int64) + np.int64(domain.grid.low)
    whole = arrow_array(numbers, mask)
    return whole if attribute.kind == "integer" else whole.cast(pa.int32()).cast(pa.date32())


def values_at(attribute: Attribute, codes: npt.NDArray[Any]) -> Any:
    """The values at these places of the domain, as an Arrow array."""
    if is_computed(attribute):
        return computed_values(attribute, codes)
    return domain_array(attribute).take(arrow_array(codes))


def clamped(column: Any, attribute: Attribute) -> Any:
    """Numbers and dates outside a range at its nearer end; other columns as they are."""
    match attribute.domain:
        case Range(low, high) | Interval(low, high):
            ends: tuple[Any, Any] = (low, high)
        case DayBins(edges):
            ends = (day_of(edges[0]), day_of(edges[-1]))
        case WholeBins(edges):
            ends = (int(edges[0]), int(edges[-1]))
        case Bins(edges):
            ends = (edges[0], edges[-1])
        case Values() if attribute.clamp:
            return nearest(column, attribute)
        case _:
            return column
    least, most = (pa.scalar(end, type=column.type) for end in ends)
    return pc.min_element_wise(pc.max_element_wise(column, least, skip_nulls=False), most,
                               skip_nulls=False)  # fmt: skip


def nearest(column: Any, attribute: Attribute) -> Any:
    """The listed number or date that is nearest to each; of two, the larger one."""
    listed = listed_values(attribute)
    days = attribute.kind == "date"
    known = np.sort(numpy_array(listed.cast(pa.int32()) if days else listed).astype(np.float64))
    given = column.cast(pa.int32()) if days else column
    numbers = numpy_array(given, 0).astype(np.float64)
    between = (known[1:] + known[:-1]) / 2
    found = known[np.searchsorted(between, numbers, side="right")]
    mask = numpy_array(column.is_null()) if column.null_count else None
    if attribute.kind == "numeric":
        return arrow_array(found, mask)
    whole = arrow_array(found.astype(np.int64), mask)
    return whole.cast(pa.int32()).cast(pa.date32()) if days else whole


def codes(column: Any, attribute: Attribute) -> npt.NDArray[np.int64]:
    """Each value's place in the domain, OUTSIDE where it has none."""
    if pa.types.is_dictionary(column.type):
        of_words = codes(column.dictionary, attribute)
        of_null = attribute.size - 1 if attribute.null else OUTSIDE
        places = numpy_array(column.indices, len(of_words))
        placed: npt.NDArray[np.int64] = np.append(of_words, of_null)[places]
        return placed
    match attribute.domain:
        case Values():
            listed = domain_array(attribute).slice(0, attribute.domain.size)
            place = pc.index_in(column, value_set=listed, skip_nulls=True)
            found = numpy_array(place, OUTSIDE).astype(np.int64)
            if (other := attribute.other_code) is not None:
                found[found == OUTSIDE] = other
        case Range() as domain:
            first = domain.grid.low
            numbers = column.cast(pa.int32()) if attribute.kind == "date" else column
            values = numpy_array(numbers.cast(pa.int64()), first)
            # A Python int as `first` may exceed 64 bits together with a value: compare first.
            inside = (values >= first) & (values <= first + domain.size - 1)
            found = np.where(inside, np.where(inside, values, first) - first, OUTSIDE)
        case Bins() as bins:
            numbers = column.cast(pa.int32()) if attribute.kind == "date" else column
            found = bins.encode(numpy_array(numbers, bins.edges[0]))
        case Interval() as interval:
            found = interval.grid.encode(numpy_array(column, interval.low))  # as clients round
    if column.null_count:
        missing = numpy_array(column.is_null())
        found[missing] = attribute.size - 1 if attribute.null else OUTSIDE
    coded: npt.NDArray[np.int64] = found
    return coded
