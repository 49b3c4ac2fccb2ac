"""Measure a release against the table that it was made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from voile.arrays import Floats
from voile.engines import connect
from voile.engines.encode import codes as codes_of
from voile.engines.encode import domain_array
from voile.engines.table import Table
from voile.errors import TableError, UsageError, did_you_mean, spelled
from voile.evaluate.losses import measured as class_measures
from voile.evaluate.losses.measured import (
    Accuracy,
    ClassMeasures,
    Losses,
    LossWorkload,
    WorstPopulation,
    class_majority_accuracy,
    joint_divergence,
    majority_accuracy,
    naive_bayes_accuracy,
)
from voile.evaluate.losses.queries import (
    MOST_VALUES,
    check_queries,
    estimated,
    mean_divergence,
    population_losses,
    relative_error,
    workload,
)
from voile.evaluate.options import LossKeywords, LossOptions
from voile.hierarchies import default_levels, read_hierarchies
from voile.kinds.blocks import RowBlocks, points
from voile.kinds.evaluation import ShownClasses, Truth, revealed
from voile.kinds.release import Release
from voile.recoding.grouping import Shown
from voile.recoding.populations import Populations, populations
from voile.recoding.units import Codes
from voile.schema import Schema
from voile.schema.hierarchy import Levels

# ----------------------------------------------------------------------
# the private table, as losses are measured against it


def columns_asked(
    release: Release, sensitive: str | None, qi: Sequence[str] | None
) -> tuple[str, list[str]]:
    """The sensitive column and the quasi-identifiers, by what the release has."""
    value = sensitive_asked(release, sensitive)
    possible = [name for name in release.roles.qi if name != value]
    chosen = list(possible if qi is None else qi)
    for name in chosen:
        if name == value:
            raise UsageError(
                f"{name!r} is in {spelled('qi')} and in {spelled('sensitive')}",
                hint="it is one of them",
            )
        if name not in possible:
            raise UsageError(
                f"the release has no quasi-identifier {name!r}",
                hint=did_you_mean(name, possible),
            )
    if len(set(chosen)) < len(chosen):
        raise UsageError(
            f"a column is named twice: {', '.join(chosen)}", hint="name each column once"
        )
    if not chosen:
        raise UsageError("no quasi-identifiers were named", hint=spelled("qi", possible))
    return value, chosen


def sensitive_asked(release: Release, sensitive: str | None) -> str:
    """The column that is named, or the only one that the release calls sensitive."""
    roles = release.roles
    known = list(roles.sensitive)
    if sensitive is None and roles.stated and len(known) == 1:
        return known[0]
    if sensitive is None:
        raise UsageError(
            "it was not said which column is sensitive",
            hint=f"{spelled('sensitive', known[-1])}: one of {', '.join(known)}"
            if known
            else "the release has no sensitive column, and so no losses",
        )
    if sensitive not in known:
        raise UsageError(
            f"the release has no sensitive column {sensitive!r}",
            hint=did_you_mean(sensitive, known),
        )
    return sensitive


def read_truth(table: Table, release: Release, qi: Sequence[str], sensitive: str) -> Truth:
    """The table by the release's own domain; refused where it cannot be the one behind it."""
    manifest = release.manifest
    table.check_columns(release.schema.names)
    schema, places = domain_of(table, release)
    codes, _ = table.columns_of_codes(schema, drop_nulls=manifest.nulls == "drop")
    found = len(codes[0])
    expected = release.rows_behind
    if expected is not None and expected != found:
        raise TableError(
            f"table {table.name!r} has {found:,} rows, and the release was made of {expected:,}",
            hint="give the table that the release was made of",
        )
    if not found:
        raise TableError(f"table {table.name!r} has no rows", hint="nothing can be measured")
    by_name = dict(zip(schema.names, codes, strict=True))
    rows = np.stack([by_name[name].astype(np.int32) for name in [*qi, sensitive]])
    cells = points(rows, schema[sensitive].size, np.ones(found))
    others = [by_name[name].astype(np.int32) for name in schema.names if name != sensitive]
    return Truth(
        schema.select([*qi, sensitive]),
        cells.codes,
        np.rint(cells.counts).astype(np.int64),
        others,
        places,
    )


def domain_of(table: Table, release: Release) -> tuple[Schema, dict[str, Codes]]:
    """The table's domain in the release's terms, and where the release's values are in it.

    It is wider where the release leaves out values that only rows have that it does not show.
    """
    schema, wide = release.schema, release.domain_behind(table)
    places = {
        a.name: codes_of(domain_array(a), wide[a.name]).astype(np.int32)
        for a in schema
        if a.size != wide[a.name].size
    }
    return wide, places


def levels_of(truth: Truth, given: Mapping[str, Any], table_name: str) -> list[Levels]:
    """The hierarchies of the quasi-identifiers: those given, those shipped, the usual ones."""
    schema = truth.schema.select(truth.qi)
    known = read_hierarchies(given, schema, table_name)
    return [known.get(attribute.name) or default_levels(attribute) for attribute in schema]


# ----------------------------------------------------------------------
# measure a release against the table that it was made of


WORST = 5
"""Populations that are listed."""
DIMENSION = 4
"""Of the queries that are asked where nothing is said, or fewer where there are fewer columns."""


def losses(table: object, release: Release | str | Path, **options: Unpack[LossKeywords]) -> Losses:
    """Everything that is measured of a release, from the table that it was made of.

    The sensitive column and the quasi-identifiers are those of the release where it has them;
    else quasi-identifiers are all other columns. `queries=0` asks no random counts. The options
    are those of `LossOptions`.
    """
    asked = LossOptions(**options)
    opened = release if isinstance(release, Release) else Release.open(release)
    if not opened.has_losses:
        raise UsageError(
            f"{opened.name} is {opened.kind}: losses are of rows that are shown",
            hint=opened.instead,
        )
    value, known = columns_asked(opened, asked.sensitive, asked.qi)
    dimension = min(DIMENSION, len(known)) if asked.dimension is None else asked.dimension
    if asked.queries:
        check_queries(len(known), dimension, asked.selectivity, asked.queries)
    source = connect(table, null_text=tuple(asked.null_text))
    truth = read_truth(source, opened, known, value)
    levels = levels_of(
        truth, asked.hierarchies or {}, table if isinstance(table, str) else source.dataset
    )
    least = math.ceil(asked.min_support * truth.rows - 1e-9)
    large = populations(truth.cells, levels, least, truth.counts)
    found = opened.loss_evidence(truth)
    told, posterior, classes = found.blocks, found.posterior, found.classes
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
        min_support=asked.min_support,
        populations=large.number,
        worst=worst_populations(large, estimates, truth.qi),
        classes=None if classes is None else measures_of(classes, truth, told, levels),
        workload=asked_of(told, truth, asked.queries, dimension, asked.selectivity)
        if asked.queries
        else None,
        accuracy=accuracy_of(told, None if classes is None else classes.shown, truth),
    )


# ---------------------------------------------------------------------- the measures


def worst_populations(
    large: Populations, estimates: Floats, names: Sequence[str]
) -> tuple[WorstPopulation, ...]:
    """The populations with the largest loss."""
    found = population_losses(large, estimates)
    return tuple(
        WorstPopulation(large.words(int(y), names), int(large.support[y]), float(found[y]))
        for y in np.argsort(-found, kind="stable")[:WORST]
    )


def measures_of(
    classes: ShownClasses, truth: Truth, told: RowBlocks, levels: Sequence[Levels]
) -> ClassMeasures:
    """The measures that only classes have."""
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
    told: RowBlocks, truth: Truth, number: int, dimension: int, selectivity: float
) -> LossWorkload | None:
    """The mean relative error of random counts; None where a column has too many values."""
    if max(truth.schema.sizes) > MOST_VALUES:
        return None
    queries, counts = workload(
        truth.blocks, truth.sizes, dimension=dimension, selectivity=selectivity, number=number
    )
    error = relative_error(told, queries, counts)
    return LossWorkload(
        queries.number, dimension, selectivity, None if math.isnan(error) else error
    )


def accuracy_of(told: RowBlocks, shown: Shown | None, truth: Truth) -> Accuracy:
    """How often the sensitive value is guessed from the release and from the table."""
    of_release, of_table = (
        naive_bayes_accuracy(of, truth.cells, truth.counts, truth.sizes)
        for of in (told, truth.blocks)
    )
    return Accuracy(
        release=of_release,
        table=of_table,
        majority=majority_accuracy(truth.counts),
        class_majority=None if shown is None else class_majority_accuracy(shown),
    )
