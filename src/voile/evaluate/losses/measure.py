"""Measure a release against the table that it was made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.engines import connect
from voile.errors import TableError, UsageError
from voile.evaluate.losses import class_measures
from voile.evaluate.losses.accuracy import (
    class_majority_accuracy,
    majority_accuracy,
    naive_bayes_accuracy,
)
from voile.evaluate.losses.blocks import Told, told_by
from voile.evaluate.losses.joint import joint_divergence
from voile.evaluate.losses.measured import (
    Accuracy,
    ClassMeasures,
    Losses,
    Workload,
    WorstPopulation,
)
from voile.evaluate.losses.other_kinds import told_by_rows, told_by_view
from voile.evaluate.losses.posteriors import Posterior, revealed, row_posterior, view_posterior
from voile.evaluate.losses.privacy_loss import p_loss
from voile.evaluate.losses.queries import MOST_VALUES, check_queries, relative_error, workload
from voile.evaluate.losses.truth import Truth, columns_asked, levels_of, read_truth
from voile.evaluate.losses.utility_loss import estimated, mean_divergence, population_losses
from voile.kinds.classes.release import ClassRelease
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.release import Release
from voile.kinds.views.release import ViewRelease
from voile.recoding.grouping import Shown
from voile.recoding.populations import Populations, populations
from voile.recoding.units import Codes, Counts
from voile.schema.hierarchy import Levels

WORST = 5
"""Populations that are listed."""
DIMENSION, SELECTIVITY, QUERIES = 4, 0.05, 1000
"""Of the queries that are asked where nothing is said."""


def losses(
    table: object,
    release: Release | str | Path,
    *,
    sensitive: str | None = None,
    qi: Sequence[str] | None = None,
    min_support: float = 0.05,
    hierarchies: Mapping[str, Any] | None = None,
    queries: int = QUERIES,
    dimension: int | None = None,
    selectivity: float = SELECTIVITY,
    null_text: Sequence[str] = (),
) -> Losses:
    """Everything that is measured of a release, from the table that it was made of.

    The sensitive column and the quasi-identifiers are those of the release where it has them;
    else quasi-identifiers are all other columns. Of the queries there are none with 0.
    """
    opened = release if isinstance(release, Release) else Release.open(release)
    if isinstance(opened, ConjunctRelease):
        raise UsageError(
            f"{opened.name} is {opened.kind}: losses are of rows that are shown",
            hint=opened.instead,
        )
    if not 0 < min_support <= 1:
        raise UsageError(
            f"min-support {min_support} must lie in (0, 1]", hint="0.05: one row in twenty"
        )
    value, known = columns_asked(opened, sensitive, qi)
    asked = min(DIMENSION, len(known)) if dimension is None else dimension
    if queries:
        check_queries(len(known), asked, selectivity, queries)
    source = connect(table, null_text=tuple(null_text))
    truth = read_truth(source, opened, known, value)
    levels = levels_of(truth, hierarchies or {}, table if isinstance(table, str) else "")
    least = math.ceil(min_support * truth.rows - 1e-9)
    large = populations(truth.cells, levels, least, truth.counts)
    shown = shown_of(opened, truth) if isinstance(opened, ClassRelease) else None
    told = told_of(opened, shown, truth)
    estimates = estimated(told, large)
    trivial = mean_divergence(large, np.tile(large.overall, (large.number, 1)))
    posterior = posterior_of(opened, shown, truth)
    return Losses(
        release=str(opened.path),
        kind=opened.manifest.method,
        rows=truth.rows,
        qi=truth.qi,
        sensitive=value,
        p_loss=posterior.measured,
        p_loss_permitted=None if shown else posterior.permitted,
        p_loss_revealed=revealed(truth.overall),
        u_loss=mean_divergence(large, estimates) if large.number else None,
        u_loss_trivial=trivial if large.number else None,
        min_support=min_support,
        populations=large.number,
        worst=told_worst(large, estimates, truth.qi),
        classes=None if shown is None else measures_of(opened, shown, truth, told, levels),
        workload=asked_of(told, truth, queries, asked, selectivity) if queries else None,
        accuracy=accuracy_of(told, shown, truth),
    )


# ---------------------------------------------------------------------- what the release tells


def shown_of(release: ClassRelease, truth: Truth) -> Shown:
    """What classes show of the columns that are asked about."""
    shown = release.shown()
    which = [release.qi.index(name) for name in truth.qi]
    attribute = release.sensitive.index(truth.schema.names[-1])
    all_of = shown.histograms
    sensitive, values = truth.schema.names[-1], truth.schema.sizes[-1]
    counts, told = all_of.counts[attribute], all_of.overall[attribute]
    if (place := truth.places.get(sensitive)) is not None:
        counts, told = spread(counts, place, values), spread(told, place, values)
    true = truth.counts.sum(axis=0)
    if (told > true).any() or (not release.manifest.parameters.removed and (told != true).any()):
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


def told_of(release: Release, shown: Shown | None, truth: Truth) -> Told:
    """Any release as blocks."""
    sensitive = truth.schema.names[-1]
    if shown is not None:
        assert isinstance(release, ClassRelease)  # noqa: S101
        return told_by(shown, orders_of(release, truth))
    if isinstance(release, LocalRelease):
        return told_by_rows(release, truth.qi, sensitive)
    assert isinstance(release, ViewRelease)  # noqa: S101
    return told_by_view(release, truth.qi, sensitive)


def posterior_of(release: Release, shown: Shown | None, truth: Truth) -> Posterior:
    sensitive = truth.schema.names[-1]
    if shown is not None:
        return Posterior(p_loss(shown), math.nan)
    if isinstance(release, LocalRelease):
        return row_posterior(release, sensitive, truth.overall)
    assert isinstance(release, ViewRelease)  # noqa: S101
    return view_posterior(release, truth.others, sensitive, truth.overall)


# ---------------------------------------------------------------------- the measures


def told_worst(
    large: Populations, estimates: Floats, names: Sequence[str]
) -> tuple[WorstPopulation, ...]:
    found = population_losses(large, estimates)
    return tuple(
        WorstPopulation(large.words(int(y), names), int(large.support[y]), float(found[y]))
        for y in np.argsort(-found, kind="stable")[:WORST]
    )


def measures_of(
    release: Release, shown: Shown, truth: Truth, told: Told, levels: Sequence[Levels]
) -> ClassMeasures:
    assert isinstance(release, ClassRelease)  # noqa: S101
    orders, left_out = orders_of(release, truth), release.manifest.parameters.removed
    return ClassMeasures(
        gen_iloss=class_measures.gen_iloss(shown, left_out),
        discernibility=class_measures.discernibility(shown, left_out),
        average_class_size=class_measures.average_class_size(shown),
        normalised_class_size=class_measures.normalised_class_size(shown),
        precision=class_measures.precision(shown, levels, orders, left_out),
        non_uniform_entropy=class_measures.non_uniform_entropy(
            shown, truth.by_position(orders), left_out
        ),
        kl=joint_divergence(told, truth.cells, truth.counts, truth.sizes, left_out),
    )


def asked_of(
    told: Told, truth: Truth, number: int, dimension: int, selectivity: float
) -> Workload | None:
    """The mean relative error of random counts; None where a column has too many values."""
    if max(truth.schema.sizes) > MOST_VALUES:
        return None
    queries, counts = workload(
        truth.told, truth.sizes, dimension=dimension, selectivity=selectivity, number=number
    )
    error = relative_error(told, queries, counts)
    return Workload(queries.number, dimension, selectivity, None if math.isnan(error) else error)


def accuracy_of(told: Told, shown: Shown | None, truth: Truth) -> Accuracy:
    of_release, of_table = (
        naive_bayes_accuracy(of, truth.cells, truth.counts, truth.sizes)
        for of in (told, truth.told)
    )
    return Accuracy(
        release=of_release,
        table=of_table,
        majority=majority_accuracy(truth.counts),
        class_majority=None if shown is None else class_majority_accuracy(shown),
    )
