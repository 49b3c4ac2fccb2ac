"""Columns of rows to codes of the schema, and codes back to columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.schema import Attribute, Bins, Interval, Range, Values

ARROW = {
    "categorical": pa.string(),
    "integer": pa.int64(),
    "numeric": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
OUTSIDE = -1
"""The code of a value that the domain does not have."""


def domain_array(attribute: Attribute) -> Any:
    """Every value of the domain, in the order of its codes, as an Arrow array."""
    if is_computed(attribute):
        return computed_values(attribute, np.arange(attribute.size))
    array = pa.array(list(attribute.domain), type=ARROW[attribute.kind])
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
        return pa.array(domain.grid.decode(codes.astype(np.int64)), mask=mask)
    assert isinstance(domain, Range)  # noqa: S101
    numbers = codes.astype(np.int64) + np.int64(domain.grid.low)
    whole = pa.array(numbers, mask=mask)
    return whole if attribute.kind == "integer" else whole.cast(pa.int32()).cast(pa.date32())


def values_at(attribute: Attribute, codes: npt.NDArray[Any]) -> Any:
    """The values at these places of the domain, as an Arrow array."""
    if is_computed(attribute):
        return computed_values(attribute, codes)
    return domain_array(attribute).take(pa.array(codes))


def clamped(column: Any, attribute: Attribute) -> Any:
    """Numbers and dates outside a range at its nearer end; other columns as they are."""
    match attribute.domain:
        case Range(low, high) | Interval(low, high):
            ends: tuple[Any, Any] = (low, high)
        case Bins(edges):
            ends = (edges[0], edges[-1])
        case _:
            return column
    least, most = (pa.scalar(end, type=column.type) for end in ends)
    return pc.min_element_wise(pc.max_element_wise(column, least, skip_nulls=False), most,
                               skip_nulls=False)  # fmt: skip


def codes(column: Any, attribute: Attribute) -> npt.NDArray[np.int64]:
    """Each value's place in the domain, OUTSIDE where it has none."""
    match attribute.domain:
        case Values():
            listed = domain_array(attribute).slice(0, attribute.domain.size)
            place = pc.index_in(column, value_set=listed, skip_nulls=True)
            found = place.fill_null(OUTSIDE).to_numpy(zero_copy_only=False).astype(np.int64)
        case Range() as domain:
            first = domain.grid.low
            numbers = column.cast(pa.int32()) if attribute.kind == "date" else column
            values = numbers.cast(pa.int64()).fill_null(first).to_numpy(zero_copy_only=False)
            # A Python int as `first` may exceed 64 bits together with a value: compare first.
            inside = (values >= first) & (values <= first + domain.size - 1)
            found = np.where(inside, np.where(inside, values, first) - first, OUTSIDE)
        case Bins() as bins:
            found = bins.encode(column.fill_null(bins.edges[0]).to_numpy(zero_copy_only=False))
        case Interval() as interval:
            numbers = column.fill_null(interval.low).to_numpy(zero_copy_only=False)
            found = interval.grid.encode(numbers)  # as clients round
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        found[missing] = attribute.size - 1 if attribute.null else OUTSIDE
    coded: npt.NDArray[np.int64] = found
    return coded
