"""The evidence of classes for losses: their blocks of rows, and beliefs about people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from voile.errors import TableError
from voile.kinds.blocks import class_blocks
from voile.kinds.classes.release import ClassRelease
from voile.kinds.evaluation import LossEvidence, Posterior, ShownClasses, Truth, p_loss
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes, Counts


def class_evidence(release: ClassRelease, truth: Truth) -> LossEvidence:
    """Its classes, as they are shown, and the person about whom most is disclosed."""
    shown, orders = shown_of(release, truth), orders_of(release, truth)
    left_out = release.manifest.parameters.removed
    return LossEvidence(
        class_blocks(shown, orders),
        Posterior(p_loss(shown), None),
        ShownClasses(shown, orders, left_out),
    )


def shown_of(release: ClassRelease, truth: Truth) -> Shown:
    """What classes show of the columns of the truth."""
    shown = release.shown()
    which = [release.qi.index(name) for name in truth.qi]
    attribute = release.sensitive.index(truth.schema.names[-1])
    all_of = shown.histograms
    sensitive, values = truth.schema.names[-1], truth.schema.sizes[-1]
    counts, overall = all_of.counts[attribute], all_of.overall[attribute]
    if (place := truth.places.get(sensitive)) is not None:
        counts, overall = spread(counts, place, values), spread(overall, place, values)
    true = truth.counts.sum(axis=0)
    complete = not release.manifest.parameters.removed
    if (overall > true).any() or (complete and (overall != true).any()):
        raise TableError(
            f"the release does not have the table's values of {sensitive!r}",
            hint="give the table that the release was made of",
        )
    return replace(
        shown,
        sizes=tuple(shown.sizes[j] for j in which),
        low=np.ascontiguousarray(shown.low[:, which]),
        high=np.ascontiguousarray(shown.high[:, which]),
        histograms=replace(all_of, counts=(counts,), overall=(true,)),
        cells=None if shown.cells is None else shown.cells[which],
    )


def spread(counts: Counts, place: Codes, size: int) -> Counts:
    """Counts of a column's values in the release as counts of its values in the table."""
    found = np.zeros((*counts.shape[:-1], size), dtype=np.int64)
    found[..., place] = counts
    return found


def orders_of(release: ClassRelease, truth: Truth) -> list[Codes]:
    """Codes of the table's domain in the order of each column of the release, others last."""
    orders = []
    for name, size in zip(truth.qi, truth.sizes, strict=True):
        order, place = release.order(name), truth.places.get(name)
        if place is not None:
            others = np.setdiff1d(np.arange(size, dtype=np.int32), place)
            order = np.concatenate([place[order], others])
        orders.append(order)
    return orders
