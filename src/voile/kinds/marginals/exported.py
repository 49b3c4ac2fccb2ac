"""What of noisy marginals goes into a file of another program: synthetic rows, or the tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from voile.engines.encode import values_at
from voile.kinds.exported import (
    ExportTable,
    attributes_of,
    marked,
    stacked,
    stacked_columns,
)
from voile.kinds.manifest import free_name
from voile.kinds.marginals.rows import ABOUT, SYNTHETIC, batches, checked_count

if TYPE_CHECKING:
    from voile.kinds.marginals.release import MarginalRelease
    from voile.kinds.marginals.residuals import Columns


def synthetic_table(release: MarginalRelease, number: int | None) -> ExportTable:
    """Rows that the model draws; a column says of each that it is nobody's."""
    mark = free_name(SYNTHETIC, release.schema.names)
    wanted = checked_count(release, number)
    first = marked(next(batches(release, 0)), mark)
    rows = (marked(part, mark) for part in batches(release, wanted))
    known = attributes_of(first.schema, release.schema)
    return ExportTable(release.name, first.schema, rows, f"{ABOUT} {release.counting_hint}", known)


def noisy_tables(release: MarginalRelease) -> ExportTable:
    """The largest tables that were measured, with the standard error of their cells."""
    schema = release.schema
    title = free_name("table", schema.names)
    count, stderr = (free_name(name, [*schema.names, title]) for name in ("count", "stderr"))
    figures = [pa.field(name, pa.float64()) for name in (count, stderr)]
    columns = stacked_columns(tuple(schema), title, figures)
    about = (
        f"Noisy counts: column {title} names the columns of the table that a row is of, whose "
        f"values stand in them; all other columns are empty. {count} is unbiased, may be below "
        f"zero, and has the standard error {stderr}; errors of the cells of a table depend on each "
        f"other. {release.counting_hint}"
    )
    known = {attribute.name: attribute for attribute in schema}
    rows = parts(release, columns, (count, stderr))
    return ExportTable(release.name, columns, rows, about, known)


def largest(measured: list[Columns]) -> list[Columns]:
    """Sets of columns that are in no other set."""
    return [c for c in measured if c and not any(set(c) < set(d) for d in measured)]


def parts(release: MarginalRelease, columns: Any, figures: tuple[str, str]) -> Iterator[Any]:
    """One table after the other."""
    attributes, noisy = list(release.schema), release.noisy
    for places in largest(noisy.plan.components):
        counts = noisy.table(places)
        some = [attributes[i] for i in places]
        cells = np.unravel_index(np.arange(counts.size), counts.shape)
        values = {a.name: values_at(a, code) for a, code in zip(some, cells, strict=True)}
        error = math.sqrt(noisy.cell_variance(places))
        values |= {
            figures[0]: pa.array(counts.ravel()),
            figures[1]: pa.array(np.full(counts.size, error)),
        }
        yield stacked(columns, ", ".join(a.name for a in some), values, counts.size)
