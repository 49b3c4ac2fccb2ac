"""Every selection of up to three attributes: its true count, and what a release says of it."""

from __future__ import annotations

import numpy as np

from voile.arrays import Floats
from voile.engines.encode import codes
from voile.engines.table import Table
from voile.errors import UsageError
from voile.evaluate.workload import Selections, selection_counts
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.views.release import ViewRelease
from voile.mechanisms import AlphaBeta
from voile.schema import Schema, TupleIndex

__all__ = ["selection_estimates", "true_selections"]


def true_selections(table: Table, schema: Schema) -> Selections:
    """The true counts."""
    keys = table.keys(schema, drop_nulls=False)
    return selection_counts(TupleIndex(schema.sizes).decode(keys), schema.sizes)


def selection_estimates(release: ViewRelease | LocalRelease, *, refine: bool = False) -> Floats:
    """Estimates of all of them, in the order of the true counts.

    From an αβ view, which `refine` sharpens by a model fitted to the same view, or from rows that
    were kept or replaced as a whole.
    """
    if isinstance(release, LocalRelease):
        return _from_whole_rows(release)
    mechanism = release.mechanism
    if not isinstance(mechanism, AlphaBeta):
        raise UsageError(
            f"selections are not estimated at once from {release.kind} of this kind",
            hint="ask them one by one with release.query",
        )
    rows = release.to_arrow().combine_chunks()
    coded = [codes(rows.column(a.name).combine_chunks(), a) for a in release.schema]
    counted = selection_counts(coded, release.schema.sizes)
    plain = mechanism.total(counted.counts, counted.domain)
    return _refined(release, mechanism, counted, plain) if refine else plain


def _from_whole_rows(release: LocalRelease) -> Floats:
    kept = release.manifest.parameters.joint
    if kept is None:
        raise UsageError(
            "selections are estimated at once from rows that were perturbed as a whole",
            hint="perturb with whole_rows=True, or ask them one by one with release.query",
        )
    counted = selection_counts(release.codes(), release.schema.sizes)
    by_chance = (1 - kept) * release.rows * counted.domain / float(release.schema.size)
    estimate: Floats = (counted.counts - by_chance) / kept
    return estimate


def _refined(
    release: ViewRelease, mechanism: AlphaBeta, counted: Selections, plain: Floats
) -> Floats:
    refinement = release.refine()
    likely = np.clip(plain, 0, release.likely_rows)
    variance = mechanism.variance(likely, counted.domain)
    model = np.concatenate([refinement.mixture.marginal(s).ravel() for s in counted.subsets])
    value, _ = refinement.error.combine(plain, variance, model)
    return value
