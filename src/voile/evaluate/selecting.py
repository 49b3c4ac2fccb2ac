"""Every selection of up to three attributes: its true count, and what a release says of it."""

from __future__ import annotations

from voile.arrays import Floats
from voile.engines.table import Table
from voile.evaluate.workload import Selections, selection_counts
from voile.kinds.release import Release
from voile.schema import Schema, TupleIndex

__all__ = ["selection_estimates", "true_selections"]


def true_selections(table: Table, schema: Schema) -> Selections:
    """The true counts."""
    keys = table.keys(schema, drop_nulls=False)
    return selection_counts(TupleIndex(schema.sizes).decode(keys), schema.sizes)


def selection_estimates(release: Release, *, refine: bool = False) -> Floats:
    """Estimates of all of them, in the order of the true counts.

    From an αβ view, which `refine` sharpens by a model fitted to the same view, or from rows that
    were kept or replaced as a whole.
    """
    sizes = release.schema.sizes
    return release.estimate_selections(lambda codes: selection_counts(codes, sizes), refine=refine)
