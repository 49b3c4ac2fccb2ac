"""A release: all that leaves the house, in one folder that describes itself.

NAME.voile/
  manifest.json      what it is, what is promised, the public domain, a hash of every file
  datapackage.json   the same columns for tools that know Frictionless data packages
  README.md          how to read it and to count from it without Voile
  data/part-*.parquet
  history/part-*.parquet   in a series: every tuple that its views have shown, and how often
"""

from __future__ import annotations

import hashlib
import html
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from voile.answering import Model, Shape, Source, answer, explain
from voile.engines.parquet import arrow_schema, tuples
from voile.engines.table import read_all
from voile.engines.view import View
from voile.errors import ReleaseError, UsageError
from voile.estimate import Answer, Bound, Floats, checked_confidence
from voile.mechanisms import AlphaBeta, Series, Shaped
from voile.mechanisms.series_estimate import Scored
from voile.privacy import DGamma
from voile.privacy.adversary import Evidence
from voile.privacy.shape import protected_priors
from voile.query import DomainSums, parse
from voile.query.bind import Tables
from voile.query.parse import Query
from voile.query.predicate import Term
from voile.query.rows import SCORE, SPREAD
from voile.refine import Refinement
from voile.refine import storage as refinement_file
from voile.release import refining
from voile.release.describe import describe
from voile.release.histories import Histories, Name
from voile.release.manifest import HISTORY_FILES, MANIFEST, PARTIAL, Manifest, read_manifest
from voile.schema import Keys, Schema, TupleIndex
from voile.units import byte_count

MEMORY = 2**30
SMALLEST_MEMORY = 2**24


class Release:
    """A published view with what is promised about it; estimates come from `query`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._refinement: Refinement | None = None
        self._refining: Model | None = None
        self._beside: tuple[Any, View, Tables] | None = None

    @classmethod
    def open(cls, path: str | Path) -> Release:
        """Open a release: reads its manifest and checks that its files are there, whole.

        Reads data only; nothing in a release is ever executed. `verify` checks every byte.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise UsageError(f"there is no release {str(path)!r}", hint="a release is a folder")
        if PARTIAL in folder.resolve().name:
            raise ReleaseError(
                f"{str(path)!r} was left by a run that did not finish", hint="delete it"
            )
        return cls.read(folder)

    @classmethod
    def read(cls, folder: Path) -> Release:
        """Read a folder that may not be in its place yet."""
        try:
            raw = (folder / MANIFEST).read_bytes()
        except OSError:
            raise ReleaseError(
                f"{str(folder)!r} has no manifest.json: not a release, or one that is incomplete"
            ) from None
        manifest = read_manifest(raw)
        for file in manifest.files:
            check_inside(file.path)
            found = folder / file.path
            inside = found.resolve().is_relative_to(folder.resolve())
            if not found.is_file() or found.is_symlink() or not inside:
                raise ReleaseError(f"{file.path} is missing from {str(folder)!r}")
            if found.stat().st_size != file.bytes:
                raise ReleaseError(f"{file.path} was changed: it does not have {file.bytes} bytes")
        return cls(folder, manifest)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Release:
        """Copy to a folder of that name: written beside, verified, then renamed into place."""
        from voile.release.staging import copy  # noqa: PLC0415  (it opens what it has written)

        return copy(self, Path(path), overwrite=overwrite)

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        return self.manifest.name

    @cached_property
    def schema(self) -> Schema:
        return self.manifest.schema_

    @cached_property
    def mechanism(self) -> AlphaBeta | Shaped | Series:
        return self.manifest.mechanism

    @property
    def promise(self) -> DGamma:
        return self.manifest.promise

    def describe(self) -> str:
        """In plain words: what is promised, against whom, what not, and how to count from it."""
        return describe(self.manifest)

    # ------------------------------------------------------------------ counting from it

    @cached_property
    def _view(self) -> View:
        return self._opened_view()

    @cached_property
    def _combined_view(self) -> View:
        return self._opened_view("combined")

    def _opened_view(self, estimator: Name = "current") -> View:
        if self.histories is not None:
            scores = self.histories.scores(estimator)
            return View(self.histories.files, self.schema, scores=scores)
        return View(self._parts, self.schema, beside=self._above_cap)

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
        return rows.append_column(SCORE, pa.array(score)).append_column(SPREAD, pa.array(spread))

    @property
    def _parts(self) -> list[Path]:
        return self._parquet("data/")

    def _parquet(self, folder: str) -> list[Path]:
        return [
            (self.path / f.path).resolve()
            for f in self.manifest.files
            if f.path.endswith(".parquet") and f.path.startswith(folder)
        ]

    def query(
        self,
        sql: str,
        confidence: float = 0.95,
        *,
        tables: Mapping[str, object] | None = None,
        simultaneous: bool = False,
        refine: bool = False,
        memory: int | str = MEMORY,
        exact: bool = False,
    ) -> Answer:
        """Estimate what the SQL would give on the original table.

        `tables` are tables of your own that the SQL may look things up in, by name: files or
        data frames. `simultaneous` makes the intervals of all groups hold at once. `refine` weighs
        each estimate against a model of the table (see `refine`). `memory` (bytes, or 4GB) is what
        counting the domain may use; what needs more is estimated from a sample of the domain,
        whose error is included, or refused with `exact`.
        """
        checked_confidence(confidence)
        view, columns = self._with_tables(tables or {})
        query = parse(sql, self.schema, columns)
        source = self._source(
            view, memory, exact=exact, bound=self._bound(max(1e-12, round(1 - confidence, 12)))
        )
        if refine:
            source = replace(source, model=self._model())
        if self.histories is None:
            return answer(query, source, confidence, simultaneous=simultaneous)
        source, name = self._of_series(query, source, tables or {})
        found = answer(query, source, confidence, simultaneous=simultaneous)
        return replace(found, notes=(*found.notes, self.histories.note(name)))

    def _of_series(
        self, query: Query, source: Source, tables: Mapping[str, object]
    ) -> tuple[Source, Name]:
        """Answer from the last view of the series or from all, by the tuples that a group has."""
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
        progress: Callable[[str, float], None] | None = None,
        *,
        replace_broken: bool = False,
    ) -> Refinement:
        """A model of the table, fitted to this release alone: no more is told about anybody.

        Fitted once, then kept in a file beside the release. `progress` is told what is being done
        and how much of it is. `replace_broken` fits anew where the file is broken or stale.
        """
        if self._refinement is None:
            path, digest = self.refinement_path, self._digest
            found = refining.kept(path, digest, self.schema, replace_broken=replace_broken)
            if found is None:
                rows = self.manifest.public_rows
                found = refining.fit(
                    self.mechanism, lambda: self._view, self.schema, rows, progress
                )
                with suppress(OSError, UsageError):  # a folder that cannot be written to
                    refinement_file.save(found, path, of=digest)
            self._refinement = found
        return self._refinement

    @property
    def refinement_path(self) -> Path:
        folder = self.path.resolve()
        return folder.with_name(f"{folder.name}.refined.npz")

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest()

    def _model(self) -> Model:
        if self._refining is None:
            self._refining = refining.model(self.refine(), self.schema)
        return self._refining

    def explain(
        self,
        sql: str,
        *,
        tables: Mapping[str, object] | None = None,
        memory: int | str = MEMORY,
        exact: bool = False,
    ) -> dict[str, Any]:
        """How the estimate comes about: what was counted, how the domain was, the arithmetic."""
        view, columns = self._with_tables(tables or {})
        query = parse(sql, self.schema, columns)
        source = self._source(view, memory, exact=exact)
        if self.histories is None:
            return explain(query, source, self._estimator)
        source, name = self._of_series(query, source, tables or {})
        return explain(query, source, self.histories.estimator(name))

    def _source(
        self, view: View, memory: int | str, *, exact: bool, bound: Bound | None = None
    ) -> Source:
        return Source(
            engine=view,
            domain=self._sums(view, memory, exact=exact),
            mechanism=self._estimator,
            rows=self.manifest.public_rows,
            bound=bound,
            shape=self._shape,
        )

    @property
    def _estimator(self) -> AlphaBeta | Shaped | Scored:
        """What estimates are made with; in a series the last view alone, if nothing is said."""
        if self.histories is not None:
            return self.histories.estimator("current")
        assert not isinstance(self.mechanism, Series)  # noqa: S101
        return self.mechanism

    @cached_property
    def _shape(self) -> Shape | None:
        if isinstance(self.mechanism, Shaped):
            return Shape(*self.mechanism.noise_weights(self.schema.names))
        return None

    def _sums(self, view: View, amount: int | str, *, exact: bool) -> DomainSums:
        """Kept for as long as the view, so that what was computed once is remembered."""
        memory = byte_count(amount)
        if memory < SMALLEST_MEMORY:
            raise UsageError(f"{memory:,} bytes of memory are too few", hint="give at least 16MB")
        found: dict[tuple[int, bool], DomainSums] = view.__dict__.setdefault("sums_kept", {})
        # A sample of the domain seldom meets the few tuples that have most of a shaped noise.
        exact = exact or isinstance(self.mechanism, Shaped)
        key = (memory, exact)
        if key not in found:
            found[key] = DomainSums(self.schema, view.domain, memory=memory, exact=exact)
        return found[key]

    def _with_tables(
        self, tables: Mapping[str, object], estimator: Name = "current"
    ) -> tuple[View, Tables]:
        """The view beside the analyst's tables, and the columns of those."""
        if not isinstance(tables, Mapping) or not all(isinstance(name, str) for name in tables):
            raise UsageError("tables are given by name", hint='tables={"regions": frame}')
        if not tables:
            return (self._combined_view if estimator == "combined" else self._view), {}
        if len({name.lower() for name in tables}) < len(tables):
            raise UsageError(
                f"two tables have one name: {', '.join(tables)}",
                hint="SQL does not tell upper case from lower case",
            )
        files = fingerprint(tables)
        key = files and (estimator, *files)
        if key is None or self._beside is None or self._beside[0] != key:
            view = self._opened_view(estimator)
            columns = {name: view.add_table(name, read_all(t)) for name, t in tables.items()}
            self._beside = (key, view, columns)
        return self._beside[1], self._beside[2]

    def _bound(self, epsilon: float) -> Bound:
        return self.mechanism.utility(self.likely_rows, self.schema.size, epsilon)

    # ------------------------------------------------------------------ attacking it

    def protected_priors(self, codes: Sequence[npt.NDArray[Any]]) -> Floats:
        """The largest belief in each of these tuples that the promise covers."""
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
        return self._view.counts(codes)

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

    # ------------------------------------------------------------------ its rows

    def foreign_attribute(self) -> str | None:
        """An attribute with values outside its domain, which no sound release has."""
        if self.histories is not None and (found := View(self._parts, self.schema).outside()):
            return found
        return self._view.outside()

    def keys(self) -> Keys:
        """The rows of the view by their places in the domain, in order."""
        view = View(self._parts, self.schema)
        return TupleIndex(self.schema.sizes).encode(view.codes())

    def to_arrow(self) -> Any:
        """The rows of the view, noise and all, as an Arrow table."""
        wanted = arrow_schema(self.schema)
        tables = [pq.read_table(part, partitioning=None).cast(wanted) for part in self._parts]
        return pa.concat_tables(tables) if tables else wanted.empty_table()

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        import polars  # noqa: PLC0415  (an optional package)

        return polars.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"Release({self.name!r}, {self.manifest.rows:,} rows)"

    def __rich__(self) -> Any:
        from rich.markdown import Markdown  # noqa: PLC0415  (only when printed)

        return Markdown(self.describe())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>{self.schema._repr_html_()}"


def fingerprint(tables: Mapping[str, object]) -> Any:
    """By which files are known to be unchanged; None for objects, which may change unseen."""
    found = []
    for name, table in tables.items():
        file = Path(table) if isinstance(table, str | Path) else None
        if file is None or not file.is_file():
            return None
        state = file.stat()
        found.append((name, str(file.resolve()), state.st_mtime_ns, state.st_size))
    return tuple(found)


def check_inside(path: str) -> None:
    """A manifest names files inside its folder, never elsewhere."""
    if Path(path).is_absolute() or ".." in Path(path).parts or "\\" in path:
        raise ReleaseError(f"manifest.json names a file outside the release: {path!r}")
