"""Measure a release against the table that it was made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table
from voile.errors import TableError, UsageError, did_you_mean
from voile.evaluate.losses import class_measures
from voile.evaluate.losses.accuracy import (
    class_majority_accuracy,
    majority_accuracy,
    naive_bayes_accuracy,
)
from voile.evaluate.losses.blocks import Points, Told, told_by
from voile.evaluate.losses.divergence import Floats, shares
from voile.evaluate.losses.joint import joint_divergence
from voile.evaluate.losses.measured import (
    Accuracy,
    ClassMeasures,
    Losses,
    Workload,
    WorstPopulation,
)
from voile.evaluate.losses.other_kinds import points, told_by_rows, told_by_view
from voile.evaluate.losses.populations import Populations, populations
from voile.evaluate.losses.posteriors import Posterior, revealed, row_posterior, view_posterior
from voile.evaluate.losses.privacy_loss import p_loss
from voile.evaluate.losses.queries import MOST_VALUES, check_queries, relative_error, workload
from voile.evaluate.losses.utility_loss import estimated, mean_divergence, population_losses
from voile.hierarchies import default_levels, read_hierarchies
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes, Counts
from voile.release import ClassRelease, LocalRelease, Release, ViewRelease
from voile.schema import Schema
from voile.schema.hierarchy import Levels

WORST = 5
"""Populations that are listed."""
DIMENSION, SELECTIVITY, QUERIES = 4, 0.05, 1000
"""Of the queries that are asked where nothing is said."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The private table: its different combinations of quasi-identifiers, with their rows."""

    schema: Schema
    """Of the quasi-identifiers, then the sensitive column."""
    cells: Codes
    counts: Counts
    """(cells, sensitive values)"""
    others: Codes
    """(columns, people): different combinations of all columns but the sensitive one."""

    @property
    def qi(self) -> tuple[str, ...]:
        return tuple(self.schema.names[:-1])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.schema.sizes[:-1])

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def overall(self) -> Floats:
        return shares(self.counts.sum(axis=0))

    @property
    def told(self) -> Told:
        """What the table itself tells."""
        return (Points(self.counts.astype(np.float64), self.cells),)


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
) -> Losses:
    """Everything that is measured of a release, from the table that it was made of.

    The sensitive column and the quasi-identifiers are those of the release where it has them;
    else quasi-identifiers are all other columns. Of the queries there are none with 0.
    """
    opened = release if isinstance(release, Release) else Release.open(release)
    if not 0 < min_support <= 1:
        raise UsageError(
            f"min-support {min_support} must lie in (0, 1]", hint="0.05: one row in twenty"
        )
    value, known = columns_asked(opened, sensitive, qi)
    asked = min(DIMENSION, len(known)) if dimension is None else dimension
    if queries:
        check_queries(len(known), asked, selectivity, queries)
    source = Table(table)
    truth = read_truth(source, opened, known, value)
    levels = levels_of(truth, hierarchies or {}, str(table))
    least = math.ceil(min_support * truth.rows - 1e-9)
    large = populations(truth.cells, levels, least, truth.counts)
    shown = shown_of(opened, truth) if isinstance(opened, ClassRelease) else None
    told = told_of(opened, shown, truth)
    estimates = estimated(told, large)
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
        u_loss=mean_divergence(large, estimates),
        u_loss_trivial=mean_divergence(large, np.tile(large.overall, (large.number, 1))),
        min_support=min_support,
        populations=large.number,
        worst=told_worst(large, estimates, truth.qi),
        classes=None if shown is None else measures_of(opened, shown, truth, told, levels),
        workload=asked_of(told, truth, queries, asked, selectivity) if queries else None,
        accuracy=accuracy_of(told, shown, truth),
    )


# ---------------------------------------------------------------------- what is asked for


def columns_asked(
    release: Release, sensitive: str | None, qi: Sequence[str] | None
) -> tuple[str, list[str]]:
    """The sensitive column and the quasi-identifiers, by what the release has."""
    names = release.schema.names
    classes = isinstance(release, ClassRelease)
    candidates = release.sensitive if isinstance(release, ClassRelease) else names
    if sensitive is None and classes and len(candidates) == 1:
        sensitive = candidates[0]
    if sensitive is None:
        raise UsageError(
            "which column is sensitive was not said", hint=f"--sensitive: {', '.join(candidates)}"
        )
    if sensitive not in candidates:
        raise UsageError(
            f"{sensitive!r} is no sensitive column of the release"
            if classes
            else f"the release has no column {sensitive!r}",
            hint=did_you_mean(sensitive, candidates),
        )
    possible = release.qi if isinstance(release, ClassRelease) else names
    possible = [name for name in possible if name != sensitive]
    for name in qi or ():
        if name == sensitive:
            raise UsageError(f"{name!r} is in --qi and in --sensitive", hint="it is one of them")
        if name not in possible:
            raise UsageError(
                f"{name!r} is no quasi-identifier of the release"
                if classes
                else f"the release has no column {name!r}",
                hint=did_you_mean(name, possible),
            )
    chosen = list(possible if qi is None else qi)
    if len(set(chosen)) < len(chosen):
        raise UsageError(
            f"a column is named twice: {', '.join(chosen)}", hint="name each column once"
        )
    if not chosen:
        raise UsageError("no quasi-identifiers were named", hint=f"--qi {','.join(possible)}")
    return sensitive, chosen


def read_truth(table: Table, release: Release, qi: Sequence[str], sensitive: str) -> Truth:
    """The table by the release's own domain; refused where it cannot be the one behind it."""
    schema, manifest = release.schema, release.manifest
    table.check_columns(schema.names)
    codes, _ = table.columns_of_codes(schema, drop_nulls=manifest.nulls == "drop")
    found = len(codes[0])
    expected = manifest.public_rows
    if isinstance(release, ClassRelease) and expected is not None:
        expected += manifest_removed(release)
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
        distinct(others) if isinstance(release, ViewRelease) else cells.codes,
    )


def manifest_removed(release: ClassRelease) -> int:
    """Rows that no class could hold."""
    return release.manifest.parameters.removed


def distinct(codes: Sequence[Codes]) -> Codes:
    """The different combinations."""
    rows = np.stack([*codes, np.zeros(len(codes[0]), dtype=np.int32)])
    return points(rows, 1, np.ones(rows.shape[1])).codes


def levels_of(truth: Truth, given: Mapping[str, Any], table_name: str) -> list[Levels]:
    """The hierarchies of the quasi-identifiers: those given, those shipped, the usual ones."""
    schema = truth.schema.select(truth.qi)
    known = read_hierarchies(given, schema, table_name)
    return [known.get(attribute.name) or default_levels(attribute) for attribute in schema]


# ---------------------------------------------------------------------- what the release tells


def shown_of(release: ClassRelease, truth: Truth) -> Shown:
    """What classes show of the columns that are asked about."""
    shown = release.shown()
    which = [release.qi.index(name) for name in truth.qi]
    attribute = release.sensitive.index(truth.schema.names[-1])
    all_of = shown.histograms
    told = all_of.overall[attribute]
    true = truth.counts.sum(axis=0)
    if (told > true).any() or (not manifest_removed(release) and (told != true).any()):
        raise TableError(
            f"the release does not have the table's values of {truth.schema.names[-1]!r}",
            hint="give the table that the release was made of",
        )
    return replace(
        shown,
        sizes=tuple(shown.sizes[j] for j in which),
        low=np.ascontiguousarray(shown.low[:, which]),
        high=np.ascontiguousarray(shown.high[:, which]),
        histograms=replace(all_of, counts=(all_of.counts[attribute],), overall=(true,)),
        cells=None if shown.cells is None else shown.cells[which],
    )


def orders_of(release: ClassRelease, truth: Truth) -> list[Codes]:
    return [release.order(name) for name in truth.qi]


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
    orders = orders_of(release, truth)
    return ClassMeasures(
        gen_iloss=class_measures.gen_iloss(shown),
        discernibility=class_measures.discernibility(shown),
        average_class_size=class_measures.average_class_size(shown),
        normalised_class_size=class_measures.normalised_class_size(shown),
        precision=class_measures.precision(shown, levels, orders),
        non_uniform_entropy=class_measures.non_uniform_entropy(shown, by_position(truth, orders)),
        kl=joint_divergence(told, truth.cells, truth.counts, truth.sizes),
    )


def by_position(truth: Truth, orders: Sequence[Codes]) -> list[npt.NDArray[np.int64]]:
    """For each quasi-identifier the rows that have each value, in the column's order."""
    rows = truth.counts.sum(axis=1)
    return [
        np.bincount(codes, rows, len(order)).astype(np.int64)[order]
        for codes, order in zip(truth.cells, orders, strict=True)
    ]


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
