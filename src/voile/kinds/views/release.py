"""A view of a private table: records kept by chance, and noise from the whole domain."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.arrow import arrow_array
from voile.engines.encode import codes as codes_of
from voile.errors import ReleaseError, UsageError, spelled
from voile.kinds.manifest import MANIFEST, Manifest, free_name
from voile.kinds.parquet import tuples
from voile.kinds.people import about_people
from voile.kinds.release import QueryOptions, Release
from voile.kinds.views.alphabeta import AlphaBeta, distinct
from voile.kinds.views.histories import Histories, Name, history_schema
from voile.kinds.views.manifest import (
    HISTORY_FILES,
    MARGINALS,
    ROWS,
    ViewManifest,
    disclosed,
    guarantee,
    parameters_of,
    series_part,
)
from voile.kinds.views.series import Series, SeriesEstimator
from voile.kinds.views.shaped import Shaped
from voile.privacy import DGamma
from voile.progress import Progress
from voile.query.rows import SCORE, SPREAD
from voile.schema import TupleIndex

if TYPE_CHECKING:
    from voile.answering.explanation import Explanation
    from voile.answering.totals import NoiseShape
    from voile.engines.rows import ReleaseRows
    from voile.estimate import Answer, Bound
    from voile.kinds.evaluation import CountedSelections, LossEvidence, Truth
    from voile.kinds.exported import ExportChoice, ExportTable
    from voile.kinds.views.estimator import ViewModel, ViewSource
    from voile.kinds.views.refinement.fit import Refinement
    from voile.privacy import Disclosures
    from voile.privacy.adversary import Evidence
    from voile.privacy.guarantees.statements import Statement
    from voile.query import DomainSums
    from voile.query.bind import Tables
    from voile.query.query import Query


class ViewRelease(Release):
    """A published view with what is promised about it."""

    kind = "a noisy view of a table"
    refines = True
    has_losses = True
    instead = "`voile attack` tells what it gives away; `voile query --refine` sharpens answers"
    manifest: ViewManifest

    def __init__(self, path: Path, manifest: Manifest) -> None:
        super().__init__(path, manifest)
        self._refinement: Refinement | None = None
        self._refining: ViewModel | None = None

    # ------------------------------------------------------------------ what it is

    @cached_property
    def mechanism(self) -> AlphaBeta | Shaped | Series:
        """The mechanism that made the view, from its public parameters."""
        return self.manifest.mechanism

    @property
    def promise(self) -> DGamma:
        """The (d, γ)-privacy that the view keeps."""
        return self.manifest.promise

    def promised(self) -> list[Statement]:
        """What the view keeps, as statements that can be compared and converted."""
        from voile.privacy import statements

        bounds, exact = self.manifest.likelihood_ratio, disclosed_exactly(self.manifest)
        found = statements(self.promise, bounds, told=exact, simulated=self.manifest.simulated)
        return about_people(found, self.manifest.people)

    @property
    def counted_with(self) -> tuple[str, str]:
        """All views of a series keep one promise; which of them it is."""
        series = self.manifest.parameters.series
        if series is None:
            return super().counted_with
        terms = (self.manifest.promise, series.unseen, series.seen, series.views)
        digest = hashlib.sha256(repr(terms).encode()).hexdigest()
        return f"series {series.name} {digest[:32]}", str(series.view)

    def not_promised(self) -> list[Statement]:
        """What it must not be taken to keep."""
        from voile.privacy import not_promised

        bounds = self.manifest.likelihood_ratio
        return not_promised(self.promise, bounds, told=disclosed_exactly(self.manifest))

    @property
    def promise_in_short(self) -> str:
        """What it promises, in a line."""
        promise, epsilon = self.promise, self.manifest.likelihood_ratio.epsilon("add-remove")
        return (
            f"(d, γ)-privacy with d = {promise.prior:.2g} and γ = {promise.posterior:g}, "
            f"ε = {epsilon:.3g}"
        )

    def check_terms(self) -> None:
        """Recompute, from the parameters as they are written down, all that is promised."""
        manifest = self.manifest
        promise, mechanism = manifest.promise, manifest.mechanism
        if not promise.kept_by(manifest.likelihood_ratio):
            raise ReleaseError(
                f"retention {mechanism.retention} and this noise do not keep "
                f"d = {promise.prior:.6g}, γ = {promise.posterior:.6g}",
                hint="nothing should be published with these parameters",
            )
        public = manifest.public_rows is not None
        terms = manifest.parameters
        series = terms.series
        if series is not None:
            assert isinstance(mechanism, Series)  # noqa: S101
            series = series_part(series, mechanism, promise)
        if manifest.guarantee != guarantee(
            promise, mechanism, terms, rows_are_public=public, people=manifest.people
        ):
            raise ReleaseError("manifest.json: the guarantee does not follow from the parameters")
        learnt = terms.noise_prior is not None and terms.noise_prior.learnt
        if terms != parameters_of(
            mechanism, self.schema, distinct=terms.distinct, learnt=learnt, series=series
        ):
            raise ReleaseError("manifest.json: the parameters contradict each other")
        terms_disclosed = disclosed(self.schema, manifest.parameters, rows_are_public=public)
        if manifest.disclosed != terms_disclosed:
            raise ReleaseError("manifest.json does not say all that the release discloses")

    def check_plausible(self) -> bool:
        """Look for the traces that the stated noise leaves in any view."""
        from voile.kinds.looks import TupleCounts, count_there, lie_far, runs
        from voile.kinds.views.plausibility import check_view

        def count(tuples: TupleCounts) -> None:
            if lie_far(self):
                count_there(self, tuples.cells, tuples)
                return
            for codes, copies in runs(self._rows_here.coded(), TupleIndex(self.schema.sizes)):
                tuples.add(codes, copies)

        check_view(self, count)
        return True

    # ------------------------------------------------------------------ counting from it

    @cached_property
    def _combined_view(self) -> ReleaseRows:
        return self._opened_view("combined")

    def _opened_view(self, which: str = "current") -> ReleaseRows:
        if self.histories is not None:
            scores = self.histories.scores("combined" if which == "combined" else "current")
            return self._open_rows(HISTORY_FILES, scores=scores)
        return self._open_rows(beside=self._above_cap)

    @cached_property
    def histories(self) -> Histories | None:
        """Where the release is a view of a series: what its views have shown."""
        if not isinstance(self.mechanism, Series):
            return None
        series = self.manifest.parameters.series
        changes = None if series is None else series.changes_at_most
        return Histories(self._parquet(HISTORY_FILES), self.schema, self.mechanism, changes)

    @cached_property
    def _above_cap(self) -> Any:
        """Tuples whose shaped noise is capped, as scored rows."""
        if not isinstance(self.mechanism, Shaped):
            return None
        score, spread = self.mechanism.scores_above()
        rows = tuples(self.schema, self.mechanism.above_cap)
        return rows.append_column(SCORE, arrow_array(score)).append_column(
            SPREAD, arrow_array(spread)
        )

    def _check_options(self, options: QueryOptions) -> None:
        if options.method is not None:
            raise UsageError(
                f"method {options.method!r} is for rows that were perturbed one by one",
                hint="leave it out: a view has one estimator",
            )

    def _answer(self, query: Query, view: ReleaseRows, options: QueryOptions) -> Answer:
        from voile.kinds.views.answering import answer

        bound = self._bound(max(1e-12, round(1 - options.confidence, 12)))
        source = self._source(view, options, bound)
        if options.refine:
            source = replace(source, model=self._model())
        if self.histories is None:
            return answer(query, source, options.confidence, simultaneous=options.simultaneous)
        source, name = self._of_series(query, source, options.tables)
        found = answer(query, source, options.confidence, simultaneous=options.simultaneous)
        return replace(found, notes=(*found.notes, self.histories.note(name)))

    def _explain(self, query: Query, view: ReleaseRows, options: QueryOptions) -> Explanation:
        from voile.kinds.views.explanation import explain

        source = self._source(view, options)
        if self.histories is None:
            return explain(query, source, self._estimator)
        source, name = self._of_series(query, source, options.tables)
        return explain(query, source, self.histories.estimator(name))

    def _of_series(
        self, query: Query, source: ViewSource, tables: Mapping[str, object]
    ) -> tuple[ViewSource, Name]:
        """Answer from the last view of the series or from all, by the tuples that a group has."""
        from voile.query.predicate import Term

        assert self.histories is not None  # noqa: S101
        term = Term(query.predicate)
        (everyone,), (grouped,) = (source.domain.sums([term], by) for by in ((), query.groups))
        groups = math.prod(len(keys) for keys in grouped.keys)
        name = self.histories.best(float(everyone.total) / max(1, groups))
        view, _ = self._with_tables(tables, name)
        source = replace(source, engine=view, mechanism=self.histories.estimator(name))
        # The bound for every query is about the last view alone.
        return (replace(source, bound=None) if name == "combined" else source), name

    # ------------------------------------------------------------------ refining

    def refine(
        self,
        progress: Progress | None = None,
        *,
        replace_broken: bool = False,
    ) -> Refinement:
        """A model of the table, fitted to this release alone, so that nothing more is disclosed.

        Fitted once, then kept in a file beside the release. `replace_broken` fits anew where the
        file is broken or stale.
        """
        from voile.kinds.views import refining

        if self._refinement is None:
            path, digest = self.refinement_path, self._digest
            found = refining.kept(path, digest, self.schema, replace_broken=replace_broken)
            rows = self.manifest.public_rows
            if found is not None and not refining.agrees(
                found,
                self.mechanism,
                lambda: self._view,
                self.schema,
                seen=self.manifest.rows,
                rows=rows,
            ):
                found = None  # of something else, whatever it says
            if found is None:
                found = refining.fit(
                    self.mechanism,
                    lambda: self._view,
                    self.schema,
                    progress,
                    seen=self.manifest.rows,
                    rows=rows,
                )
                with suppress(OSError, UsageError):  # a folder that cannot be written to
                    refining.keep(found, path, digest)
            self._refinement = found
        return self._refinement

    @property
    def refinement_path(self) -> Path:
        """Where the refinement of this release is kept, beside it."""
        folder = self.path.resolve()
        return folder.with_name(f"{folder.name}.refined.npz")

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest()

    def _model(self) -> ViewModel:
        from voile.kinds.views import refining

        if self._refining is None:
            self._refining = refining.model(self.refine(), self.schema)
        return self._refining

    def _source(
        self, view: ReleaseRows, options: QueryOptions, bound: Bound | None = None
    ) -> ViewSource:
        from voile.kinds.views.estimator import ViewSource

        return ViewSource(
            engine=view,
            domain=self._sums(view, options.memory, exact=options.exact),
            mechanism=self._estimator,
            rows=self.manifest.public_rows,
            bound=bound,
            shape=self._shape,
        )

    @property
    def _estimator(self) -> AlphaBeta | Shaped | SeriesEstimator:
        """What estimates are made with; in a series the last view alone, if nothing is said."""
        if self.histories is not None:
            return self.histories.estimator("current")
        assert not isinstance(self.mechanism, Series)  # noqa: S101
        return self.mechanism

    @cached_property
    def _shape(self) -> NoiseShape | None:
        from voile.answering.totals import NoiseShape

        if isinstance(self.mechanism, Shaped):
            return NoiseShape(*self.mechanism.noise_weights(self.schema.names))
        return None

    def _sums(self, view: ReleaseRows, amount: int | str, *, exact: bool) -> DomainSums:
        # A sample of the domain seldom meets the few tuples that have most of a shaped noise.
        return super()._sums(view, amount, exact=exact or isinstance(self.mechanism, Shaped))

    def _with_tables(
        self, tables: Mapping[str, object], which: str = "current"
    ) -> tuple[ReleaseRows, Tables]:
        if not tables and which == "combined":
            return self._combined_view, {}
        return super()._with_tables(tables, which)

    def _bound(self, epsilon: float) -> Bound:
        return self.mechanism.utility(self.likely_rows, self.schema.size, epsilon)

    # ------------------------------------------------------------------ measuring it

    def loss_evidence(self, truth: Truth) -> LossEvidence:
        """What the view shows about people, to be compared with the truth."""
        from voile.kinds.views.losses import view_evidence

        return view_evidence(self, truth)

    def estimate_selections(
        self,
        count: Callable[[Sequence[npt.NDArray[Any]]], CountedSelections],
        *,
        refine: bool = False,
    ) -> Floats:
        """Estimates of all selections at once, from what `count` counts of the view's rows."""
        mechanism = self.mechanism
        if not isinstance(mechanism, AlphaBeta):
            return super().estimate_selections(count, refine=refine)
        rows = self.to_arrow().combine_chunks()
        counted = count([codes_of(rows.column(a.name).combine_chunks(), a) for a in self.schema])
        plain: Floats = mechanism.total(counted.counts, counted.domain)
        if not refine:
            return plain
        refinement = self.refine()
        variance = mechanism.variance(np.clip(plain, 0, self.likely_rows), counted.domain)
        model = np.concatenate([refinement.mixture.marginal(s).ravel() for s in counted.subsets])
        value, _ = refinement.error.combine(plain, variance, model)
        return value

    # ------------------------------------------------------------------ attacking it

    def protected_priors(self, codes: Sequence[npt.NDArray[Any]]) -> Floats:
        """The largest belief in each of these tuples that the promise covers."""
        from voile.privacy.planner import protected_priors

        mechanism, promise = self.mechanism, self.promise
        if not isinstance(mechanism, Shaped):
            return np.full(len(codes[0]), promise.prior)
        return protected_priors(promise, mechanism.retention, mechanism.noise_mean(codes))

    def seen(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """How often the view shows each of these tuples, given by the places of their values.

        In a series there is a column for each of its views.
        """
        if self.histories is not None:
            return self.histories.of(codes).astype(np.int64)
        view: ReleaseRows = self._view
        return view.counts(codes)

    def evidence(
        self,
        codes: Sequence[npt.NDArray[Any]],
        seen: npt.NDArray[np.int64] | None = None,
        *,
        since: int = 1,
    ) -> Evidence:
        """ln P(what the view shows of each tuple | the table holds so many records of it).

        All that an attack asks of a release: see privacy/adversary.py. `seen` saves looking the
        tuples up again. In a series it is about all of its views so far; the records came before
        view `since` and stayed.
        """
        counts = self.seen(codes) if seen is None else seen
        mechanism = self.mechanism
        views = mechanism.view_number if isinstance(mechanism, Series) else 1
        if not 1 <= since <= views:
            raise UsageError(
                f"a record cannot be in the table since view {since}",
                hint=f"name a view from 1 to {views}" if views > 1 else "there is one view",
            )
        if isinstance(mechanism, Series):
            return lambda records: mechanism.log_likelihood(counts, records, codes, since=since)
        return lambda records: mechanism.log_likelihood(counts, records, codes)

    @property
    def likely_rows(self) -> int:
        """The table's number of rows: the public one, or what the view lets one think."""
        rows = self.manifest.public_rows
        if rows is None and self.histories is not None:
            return max(1, round(self.histories.records(self.schema.size)))
        if rows is None:
            assert not isinstance(self.mechanism, Series)  # noqa: S101
            rows = max(1, round(self.mechanism.records(self.manifest.rows, self.schema.size)))
        return rows

    def columns_of(self, path: str) -> Any:
        """The Arrow schema that one of its Parquet files must have."""
        if self.histories is not None and path.startswith(HISTORY_FILES):
            return history_schema(self.schema)
        return super().columns_of(path)

    def rows_for_tools(self) -> Any:
        """Refused: most rows of a view are noise, and a tool would count them as people."""
        raise UsageError(
            f"{self.name!r} is {self.kind}: its rows mean nothing by themselves",
            hint="release.query(sql) is a table of estimates; release.to_arrow() has the rows, "
            "noise and all",
        )

    def exported(self, choice: ExportChoice) -> Sequence[ExportTable]:
        """Its rows, where they are asked for by name: most are noise, and each is marked so."""
        from voile.kinds.exported import ExportTable, attributes_of, marked

        self.refuse_choice(choice, noisy_rows=True)
        if not choice.noisy_rows:
            raise UsageError(
                f"{self.name!r} is {self.kind}: its rows mean nothing by themselves, and a program "
                "that counts them counts noise",
                hint="`voile query` writes estimates with -o FILE; "
                f"{spelled('noisy_rows', True)} exports the rows, each marked as noisy",
            )
        mark = free_name("noisy_row", self.schema.names)
        rows = marked(self.to_arrow(), mark)
        about = (
            "Rows of a noisy view: WARNING, most of them are noise and stand for nobody. "
            f"Column {mark} says so of each. To count, use the formulas below."
        )
        columns = rows.schema
        return [ExportTable(self.name, columns, [rows], about, attributes_of(columns, self.schema))]

    def counts_rows(self, path: str) -> bool:
        """Whether the rows of that file are rows of the view."""
        return not path.startswith(HISTORY_FILES)

    def stays(self, path: str) -> bool:
        """Whether a file is counted by an engine alone; those of a series are compared here."""
        return path.startswith("data/") and not isinstance(self.mechanism, Series)

    def check_contents(self) -> None:
        """Check the histories of a series against its rows."""
        if self.histories is not None:
            check_histories(self, self.histories, self._rows_here)

    def foreign_attribute(self) -> str | None:
        """An attribute with values outside its domain, in the rows or in the histories."""
        return super().foreign_attribute() or (self._view.outside() if self.histories else None)


def disclosed_exactly(manifest: ViewManifest) -> Disclosures:
    """What the release discloses exactly, outside of what it promises."""
    from voile.privacy import Disclosures

    shape = manifest.parameters.noise_prior
    return Disclosures(
        rows=manifest.public_rows is not None,
        marginals=shape is not None and shape.learnt,
        edits=manifest.parameters.series is not None,
        kept=tuple(d.what for d in manifest.disclosed if not d.what.startswith((ROWS, MARGINALS))),
    )


# ----------------------------------------------------------------------
# checking the histories of a series


def check_histories(release: ViewRelease, histories: Histories, rows: ReleaseRows) -> None:
    """Each tuple stands there once, in the order of D, and the last counts are this view's."""
    history = histories.history
    if not np.array_equal(distinct(np.sort(history.keys)), history.keys):
        raise ReleaseError("history/ is not in the order of the domain, or has a tuple twice")
    seen = int(history.counts[:, :-1].any(axis=1).sum())
    series = release.manifest.parameters.series
    if series is None or seen != series.seen_tuples:
        raise ReleaseError(f"history/ has {seen:,} tuples that were seen before this view")
    shown = history.counts[:, -1] > 0
    ends = np.cumsum(history.counts[shown, -1], dtype=np.int64)
    if (int(ends[-1]) if len(ends) else 0) != release.manifest.rows:
        raise ReleaseError("history/ does not agree with the rows in data/")
    wanted, index, at = history.keys[shown], TupleIndex(release.schema.sizes), 0
    for codes in rows.coded():
        keys = index.encode(codes)
        place = np.searchsorted(ends, np.arange(at, at + len(keys)), side="right")
        if not np.array_equal(wanted[place], keys):
            raise ReleaseError("history/ does not agree with the rows in data/")
        at += len(keys)
