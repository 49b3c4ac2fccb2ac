"""From rows to a release of noisy marginals: read, plan, count, add noise, fit, write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack, cast

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table
from voile.kinds.marginals.manifest import (
    MarginalManifest,
)
from voile.kinds.marginals.measuring import MeasurementPlan
from voile.kinds.marginals.modelling import model_of
from voile.kinds.marginals.options import MarginalKeywords, MarginalOptions
from voile.kinds.marginals.release import MarginalRelease
from voile.kinds.publishing import PublishResult, WrittenDraft, publish
from voile.kinds.registry import kind_of
from voile.noise.whole import WordSource
from voile.progress import Progress
from voile.schema import Schema
from voile.signing import KeySource

MOST_TABLES = 20_000
"""Sets of columns that are measured."""
MOST_FIGURES = 2**25
LOOK = 0.01
"""The share of the budget that a first look at the number of rows takes, where one is needed."""


@dataclass(frozen=True)
class MarginalPublication(PublishResult):
    """Noisy marginals that were published."""

    release: MarginalRelease

    def facts(self) -> list[tuple[str, str]]:
        """Rows, tables, promise and what to expect, by name."""
        manifest = self.release.manifest
        p, g, model = manifest.parameters, manifest.guarantee, manifest.model
        largest = "1 column" if p.order == 1 else f"{p.order} columns"
        which = {"all": "all of them", "given": "those that were named",
                 "workload": "those of the workload", "selected": "a private choice"}[p.tables]  # fmt: skip
        return [
            ("rows", f"{self.rows_in:,} in, {self.rows_in - self.rows_dropped:,} counted"),
            ("tables", f"of up to {largest} ({which}), {len(p.measurements):,} measurements: "
                       f"{manifest.rows:,} figures"),
            ("promise", self.release.promise_in_short),
            ("model", f"{model.products:,} products, {model.rows:,.0f} rows"),
            *self._expected(),
        ]  # fmt: skip

    def _expected(self) -> list[tuple[str, str]]:
        """What the steward will feel: the error of counts that matter."""
        found = self.release.expected()
        return [(f"counts of {one.columns} column{'s' if one.columns > 1 else ''}",
                 f"off by about {one.noise:,.3g} each: {one.relative:.1%} of a hundredth of the rows")
                for one in found]  # fmt: skip


# ----------------------------------------------------------------------
# reading the table, and choosing what to measure


@dataclass(frozen=True)
class MarginalInput:
    """A table that has been read, and what of it will be measured."""

    name: str
    rows: int
    schema: Schema
    codes: list[npt.NDArray[Any]]
    used: int
    plan: MeasurementPlan
    tables: Literal["all", "given", "workload", "selected"]
    rows_figure: int | None
    source: WordSource
    notes: tuple[str, ...]
    progress: Progress


@dataclass(frozen=True, eq=False)
class MarginalDraft(WrittenDraft):
    """Noisy marginals that are ready to be measured."""

    prepared: MarginalInput
    options: MarginalOptions

    def write(self, folder: Path) -> MarginalManifest:
        """Count, add noise, fit the model, and write both."""
        prepared = self.prepared
        figures = list(noisy(prepared))
        found = prepared.plan.estimated(figures, prepared.rows_figure)
        seed = public_seed(prepared.source)
        model = model_of(found, prepared.plan, seed=seed, progress=prepared.progress)
        files = [write_figures(folder, figures), write_model(folder, model)]
        return manifest_of(prepared, self.options, model, seed).model_copy(update={"files": files})

    def done(self, release: MarginalRelease) -> MarginalPublication:
        """The release, with notes for the steward."""
        prepared = self.prepared
        dropped = prepared.rows - prepared.used
        return MarginalPublication(release, prepared.rows, dropped, prepared.notes)


def marginal_draft(
    table: Table, options: MarginalOptions, _target: Path, progress: Progress
) -> MarginalDraft:
    """Read the table and choose the noise."""
    return MarginalDraft(prepare(table, options, progress), options)


def measure_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    **options: Unpack[MarginalKeywords],
) -> MarginalPublication:
    """Publish noisy marginals, with notes for the steward. `to` names the folder."""
    kind, checked = kind_of("marginals"), MarginalOptions(**options)
    done = publish(kind, table, checked, to=to, overwrite=overwrite, progress=progress, sign=sign)
    return cast("MarginalPublication", done)


def public_seed(source: WordSource) -> int:
    """From which the model begins and synthetic rows are drawn; it is published."""
    return int(source.words(1)[0] >> np.uint64(1))
