"""A kind of release as another package would bring it: rows, as many of each as is rounded.

Every combination of values is shown as often as the table has it, rounded to a multiple of a base.
That promises nothing in the sense of differential privacy, and the kind says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from voile import __version__
from voile.answering.explanation import Explanation
from voile.arrays import Floats
from voile.engines.rows import ReleaseRows
from voile.engines.table import Table
from voile.errors import ReleaseError, UsageError
from voile.estimate import Answer
from voile.kinds.blocks import columns_of, points
from voile.kinds.describe import page
from voile.kinds.domain import choose_schema
from voile.kinds.evaluation import LossEvidence, Posterior, Truth, revealed
from voile.kinds.kind import FrontierMethod, Kind
from voile.kinds.manifest import File, Manifest, ManifestPart, file_entry, read_off_disclosed
from voile.kinds.options import ColumnsOption, NameOption, NullsOption, SchemaOption, SeedOption
from voile.kinds.parquet import write_part
from voile.kinds.publishing import PublishResult, WrittenDraft
from voile.kinds.release import QueryOptions, Release
from voile.kinds.views.answering import answer
from voile.kinds.views.estimator import ViewSource
from voile.kinds.views.explanation import explain
from voile.options import Flag, Options
from voile.privacy.guarantees.statements import Statement, not_kept
from voile.progress import Progress
from voile.query.query import Query
from voile.schema import Keys, Schema, TupleIndex


class RoundedOptions(Options):
    """The base, and what every kind asks for."""

    method: Annotated[Literal["rounded"], Flag("How rows are counted.")] = "rounded"
    columns: ColumnsOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    nulls: NullsOption = "error"
    base: Annotated[int, Flag("rounded: counts are multiples of this."), Field(ge=2)] = 5
    name: NameOption = None
    simulate_seed: SeedOption = None


class RoundedParameters(ManifestPart):
    """How counts were rounded."""

    base: int = Field(ge=2)


class RoundedGuarantee(ManifestPart):
    """What is promised: next to nothing."""

    kind: Literal["rounding"] = "rounding"


class RoundedManifest(Manifest):
    """Rows, as many of each as is rounded."""

    method: Literal["rounded"] = "rounded"
    parameters: RoundedParameters
    guarantee: RoundedGuarantee


@dataclass(frozen=True)
class Rounding:
    """Arithmetic on rounded counts: each is off by at most half a base, whichever way."""

    base: int

    def total(self, view: Floats, domain: Floats) -> Floats:
        return view + 0 * domain

    def variance(self, members: Floats, spread: Floats) -> Floats:
        return 0 * members + spread * self.base**2 / 12

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        return 0 * (view + largest * miss) + np.maximum(np.abs(domain), spread) * self.base / 2

    def domain_share(self, error: Floats) -> Floats:
        return 0 * error

    def facts(self) -> dict[str, float]:
        return {"base": self.base}

    def arithmetic(self, view: float, domain: float, *, whole: bool) -> str:
        del domain, whole
        return f"{view:g}, as it is shown"


class RoundedRelease(Release):
    """Rows whose number was rounded."""

    kind = "a table of rounded counts"
    instead = "`voile query` counts from it"
    has_losses = True
    manifest: RoundedManifest

    @property
    def mechanism(self) -> Rounding:
        return Rounding(self.manifest.parameters.base)

    def check_terms(self) -> None:
        _, counts = np.unique(self.keys(), return_counts=True)
        if (counts % self.mechanism.base).any():
            raise ReleaseError(f"a count is not a multiple of {self.mechanism.base}")

    def promised(self) -> list[Statement]:
        return []

    def not_promised(self) -> list[Statement]:
        why = "Whether a person is in the table may decide which way a count is rounded."
        return [
            not_kept({"kind": "dp", "unit": unit}, "exclusive", "anyone", "does not follow", why)
            for unit in ("swap", "add-remove")
        ]

    def loss_evidence(self, truth: Truth) -> LossEvidence:
        codes = TupleIndex(self.schema.sizes).decode(self.keys())
        rows = columns_of(self.schema, codes, [*truth.qi, truth.sensitive])
        told = points(rows, self.schema[truth.sensitive].size, np.ones(rows.shape[1]))
        # Nothing keeps a rounded count from being one person's.
        worst = revealed(truth.overall)
        return LossEvidence((told,), Posterior(worst, worst))

    def _check_options(self, asked: QueryOptions) -> None:
        if asked.refine or asked.method is not None:
            raise UsageError("rounded counts are answered in one way", hint="leave it out")

    def _source(self, view: ReleaseRows, asked: QueryOptions) -> ViewSource:
        return ViewSource(view, self._sums(view, asked.memory, exact=asked.exact), self.mechanism)

    def _answer(self, query: Query, view: ReleaseRows, asked: QueryOptions) -> Answer:
        source = self._source(view, asked)
        return answer(query, source, asked.confidence, simultaneous=asked.simultaneous)

    def _explain(self, query: Query, view: ReleaseRows, asked: QueryOptions) -> Explanation:
        return explain(query, self._source(view, asked), self.mechanism)


@dataclass(frozen=True, eq=False)
class RoundedDraft(WrittenDraft):
    """Rows that were read, and are to be rounded."""

    name: str
    schema: Schema
    rows: Keys
    options: RoundedOptions
    notes: tuple[str, ...]

    def write(self, folder: Path) -> RoundedManifest:
        (folder / "data").mkdir()
        tuples, counts = np.unique(self.rows, return_counts=True)
        base = self.options.base
        shown = np.repeat(tuples, np.floor(counts / base + 0.5).astype(np.int64) * base)
        path = folder / "data" / "part-00000.parquet"
        file = file_entry(folder, path, write_part(path, self.schema, iter([shown])))
        return self._manifest(file)

    def _manifest(self, file: File) -> RoundedManifest:
        return RoundedManifest(
            voile=__version__,
            name=self.name,
            parameters=RoundedParameters(base=self.options.base),
            guarantee=RoundedGuarantee(),
            simulated=self.options.simulate_seed is not None,
            nulls=self.options.nulls,
            disclosed=read_off_disclosed(self.schema),
            public_rows=None,
            rows=file.rows or 0,
            domain_size=str(self.schema.size),
            attributes=self.schema.to_dict()["attributes"],
            files=[file],
        )

    def done(self, release: RoundedRelease) -> PublishResult:
        return PublishResult(release, len(self.rows), 0, self.notes)


class Rounded(Kind[RoundedManifest]):
    """Rounded counts."""

    name = "rounded"
    methods = ("rounded",)
    about = "rounded counts"

    @property
    def options(self) -> type[RoundedOptions]:
        return RoundedOptions

    @property
    def manifest(self) -> type[RoundedManifest]:
        return RoundedManifest

    @property
    def release(self) -> type[RoundedRelease]:
        return RoundedRelease

    def draft(
        self, table: Table, options: RoundedOptions, target: Path, progress: Progress
    ) -> RoundedDraft:
        del target
        schema, notes = choose_schema(table, options.columns, options.schema_, options.nulls)
        progress.start("reading", len(table))
        rows = table.keys(schema, drop_nulls=options.nulls == "drop", progress=progress)
        return RoundedDraft(options.name or table.name, schema, rows, options, tuple(notes))

    def describe(self, manifest: RoundedManifest) -> str:
        base = manifest.parameters.base
        return page(
            manifest,
            what=f"Rows, as many of each as the table has, rounded to multiples of {base}.",
            promised=["Nothing that could be stated as a bound on what is learnt of a person."],
            not_promised=["Differential privacy: a person may decide which way a count goes."],
            counting=["Count the rows. Each combination of values is off by at most half the base:",
                      f"a count over c combinations by about {base / math.sqrt(12):.3g}·√c."],
        )  # fmt: skip

    def frontier(self) -> dict[str, FrontierMethod]:
        options: dict[str, Any] = {"method": "rounded"}
        values = {"base": (2.0, 10.0)}
        return {"rounded": FrontierMethod("rounded counts", options, ("base",), values, named=True)}
