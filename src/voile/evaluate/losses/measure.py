"""Measure a release against the table that it was made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.engines import connect
from voile.errors import UsageError
from voile.evaluate.losses import class_measures
from voile.evaluate.losses.accuracy import (
    class_majority_accuracy,
    majority_accuracy,
    naive_bayes_accuracy,
)
from voile.evaluate.losses.joint import joint_divergence
from voile.evaluate.losses.measured import (
    Accuracy,
    ClassMeasures,
    Losses,
    Workload,
    WorstPopulation,
)
from voile.evaluate.losses.queries import MOST_VALUES, check_queries, relative_error, workload
from voile.evaluate.losses.truth import columns_asked, levels_of, read_truth
from voile.evaluate.losses.utility_loss import estimated, mean_divergence, population_losses
from voile.kinds.blocks import Told
from voile.kinds.evaluation import ShownClasses, Truth
from voile.kinds.posteriors import revealed
from voile.kinds.release import Release
from voile.recoding.grouping import Shown
from voile.recoding.populations import Populations, populations
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
    if not opened.has_losses:
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
    found = opened.loss_evidence(truth)
    told, posterior, classes = found.told, found.posterior, found.classes
    estimates = estimated(told, large)
    trivial = mean_divergence(large, np.tile(large.overall, (large.number, 1)))
    return Losses(
        release=str(opened.path),
        kind=opened.manifest.method,
        rows=truth.rows,
        qi=truth.qi,
        sensitive=value,
        p_loss=posterior.measured,
        p_loss_permitted=posterior.permitted,
        p_loss_revealed=revealed(truth.overall),
        u_loss=mean_divergence(large, estimates) if large.number else None,
        u_loss_trivial=trivial if large.number else None,
        min_support=min_support,
        populations=large.number,
        worst=told_worst(large, estimates, truth.qi),
        classes=None if classes is None else measures_of(classes, truth, told, levels),
        workload=asked_of(told, truth, queries, asked, selectivity) if queries else None,
        accuracy=accuracy_of(told, None if classes is None else classes.shown, truth),
    )


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
    classes: ShownClasses, truth: Truth, told: Told, levels: Sequence[Levels]
) -> ClassMeasures:
    shown, orders, left_out = classes.shown, classes.orders, classes.left_out
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
