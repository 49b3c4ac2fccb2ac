"""What all classes of a release together show about the values within each."""

from __future__ import annotations

import numpy as np

from voile.arrays import Floats, Ints
from voile.errors import QueryError, spelled
from voile.kinds.classes.cells import ClassFigures, Codes
from voile.kinds.classes.pairing import MOST_FITTED, FittedPairs, pairs_of
from voile.reconstruct.ecological import RecordGroups, hand_out, spread_in_intervals


def fitted_boxes(source: ClassFigures) -> dict[str, Floats]:
    """For each generalized column, how likely each position is; see reconstruct/ecological.py."""
    if "boxes" not in source.kept:
        rows = np.bincount(source.of_row, source.weights, source.classes).astype(np.float64)
        source.kept["boxes"] = {
            name: spread_in_intervals(box.low, box.high, rows, len(box.order))
            for name, box in source.boxes.items()
        }
    return dict(source.kept["boxes"])


def fitted_buckets(source: ClassFigures) -> FittedPairs:
    """For each row which records are likely to be its own; see reconstruct/ecological.py."""
    if "buckets" not in source.kept:
        source.kept["buckets"] = _fit(source)
    found: FittedPairs = source.kept["buckets"]
    return found


def _fit(source: ClassFigures) -> FittedPairs:
    hidden, shown = source.hidden, list(source.known.values())
    assert hidden is not None  # noqa: S101  (a bucketized release has them)
    attributes, row_kind = alike(shown, len(source.of_row))
    listed, record = alike(list(hidden.codes.values()), len(hidden.rows))
    key = source.of_row.astype(np.int64) * attributes.shape[1] + row_kind
    units, row_unit = np.unique(key, return_inverse=True)
    unit_bucket, kind = np.divmod(units, attributes.shape[1])
    starts = np.searchsorted(unit_bucket, np.arange(source.classes + 1))
    ends = np.searchsorted(hidden.of_class, np.arange(source.classes + 1))
    count = int((np.diff(starts) * np.diff(ends)).sum())
    if max(count, attributes.shape[1] * listed.shape[1]) > MOST_FITTED:
        raise QueryError(
            f"{count:,} pairs of rows and records are too many to fit a model to",
            hint=f"use {spelled('method', 'uniform')}",
        )
    _, unit, entry = pairs_of(starts, ends, 0, source.classes)
    rows = np.bincount(row_unit, source.weights, len(units)).astype(np.float64)
    handed = hand_out(
        RecordGroups(
            kind=kind,
            attributes=list(attributes),
            rows=rows,
            record=record,
            records=listed.shape[1],
            counts=hidden.rows.astype(np.float64),
            unit_of=unit,
            entry_of=entry,
        )
    )
    return FittedPairs(row_unit.astype(np.int64), unit_bucket, unit, entry, handed)


def alike(columns: list[Codes], count: int) -> tuple[Ints, Ints]:
    """The combinations of codes that occur, (columns, kinds), and which of them each row has."""
    if not columns:
        return np.zeros((1, 1), np.int64), np.zeros(count, np.int64)
    found, index = np.unique(np.stack(columns).astype(np.int64), axis=1, return_inverse=True)
    return found, index.reshape(-1).astype(np.int64)
