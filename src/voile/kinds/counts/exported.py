"""Tables of counts as one table: each set of columns below the one before."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from voile.kinds.exported import ExportTable, stacked, stacked_columns
from voile.kinds.manifest import free_name

if TYPE_CHECKING:
    from voile.kinds.counts.release import ConjunctRelease


def stacked_tables(release: ConjunctRelease) -> ExportTable:
    """Every table of a release, with the standard error of each figure."""
    manifest, schema = release.manifest, release.schema
    half, side, count = manifest.columns_beside()
    beside = [half, side] if manifest.parameters.halves else []
    title = free_name("table", [*schema.names, *beside, count])
    stderr = free_name("stderr", [*schema.names, *beside, count, title])
    figures = [pa.field(name, pa.int64()) for name in (*beside, count)]
    columns = stacked_columns(tuple(schema), title, [*figures, pa.field(stderr, pa.float64())])
    about = (
        f"Noisy counts: column {title} names the columns of the table that a row is of, whose "
        f"values stand in them; all other columns are empty. {count} has noise of the standard "
        f"error {stderr}. {release.counting_hint}"
    )
    known = {attribute.name: attribute for attribute in schema}
    return ExportTable(release.name, columns, parts(release, columns, stderr), about, known)


def parts(release: ConjunctRelease, columns: Any, stderr: str) -> Iterator[Any]:
    """One table after the other."""
    error = math.sqrt(release.manifest.law.variance)
    for some in release.manifest.sets:
        found = release.table(some)
        errors = pa.array(np.full(found.num_rows, error))
        values = {name: found.column(name) for name in found.column_names} | {stderr: errors}
        yield stacked(columns, ", ".join(some), values, found.num_rows)
