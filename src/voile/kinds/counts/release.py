"""Tables of counts that were published, and what can be counted from them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from voile.answering.conjuncts.source import ConjunctSource, Tables
from voile.answering.explanation import Explanation
from voile.engines import open_rows
from voile.engines.encode import codes as codes_of
from voile.engines.rows import ReleaseRows
from voile.errors import ReleaseError, UsageError, spelled
from voile.estimate import Answer
from voile.kinds.asked import QueryOptions
from voile.kinds.counts.manifest import ConjunctManifest, table_file
from voile.kinds.counts.statements import conjunct_statements, conjuncts_not_promised
from voile.kinds.parquet import arrow_schema
from voile.kinds.release import Release
from voile.privacy.guarantees.statements import Statement
from voile.query.query import Query

Counts = npt.NDArray[np.int64]


class ConjunctRelease(Release):
    """A noisy table of counts for every set of d columns, of all rows or of halves of them."""

    kind = "tables of counts"
    instead = "`voile query` counts from it; it has no rows that stand for people"
    manifest: ConjunctManifest

    @property
    def rows(self) -> int:
        """Of the table that was published."""
        return self.manifest.public_rows or 0

    def promised(self) -> list[Statement]:
        return conjunct_statements(self.manifest)

    def not_promised(self) -> list[Statement]:
        return conjuncts_not_promised()

    # ------------------------------------------------------------------ its files

    def columns_of(self, path: str) -> Any:
        return file_schema(self.manifest, self._set_of(path))

    def _set_of(self, path: str) -> tuple[str, ...]:
        for number, some in enumerate(self.manifest.sets, start=1):
            if table_file(number) == path:
                return some
        raise ReleaseError(f"{path} is not one of the release's tables")

    def table(self, some: tuple[str, ...]) -> Any:
        """The table of some columns, as it was published: an Arrow table."""
        if some not in self.manifest.sets:
            listed = ", ".join(some)
            raise UsageError(
                f"there is no table of ({listed})",
                hint=f"name {self.manifest.parameters.arity} columns, in the order of the schema",
            )
        number = self.manifest.sets.index(some) + 1
        return pq.read_table(self.path / table_file(number), partitioning=None)

    def counts(self, some: tuple[str, ...]) -> Counts:
        """(halves, 2, cells), or (1, cells) of all rows."""
        p = self.manifest.parameters
        found: Counts = self.table(some).column(self.manifest.columns_beside()[2]).to_numpy()
        return found.reshape((p.halves, 2, -1) if p.halves else (1, -1))

    def listed(self, some: tuple[str, ...]) -> tuple[npt.NDArray[np.int64], ...]:
        """The half, the side and the cell of every row of a table, as it says itself."""
        table, beside = self.table(some), self.manifest.columns_beside()
        cell: npt.NDArray[np.int64] = np.zeros(table.num_rows, np.int64)
        for name in some:
            attribute = self.schema[name]
            coded = codes_of(table.column(name).combine_chunks(), attribute)
            cell = cell * attribute.size + coded.astype(np.int64)
        if not self.manifest.parameters.halves:
            return (cell,)
        half, side = (table.column(n).to_numpy().astype(np.int64) for n in beside[:2])
        return half, side, cell

    def foreign_attribute(self) -> str | None:
        return None  # `check_terms` compares every cell with the domain's

    def check_terms(self) -> None:
        from voile.kinds.counts.checks import check_tables  # noqa: PLC0415  (of this class)

        check_tables(self)

    # ------------------------------------------------------------------ counting from it

    def _check_asked(self, asked: QueryOptions) -> None:
        if asked.refine or asked.method is not None:
            raise UsageError(
                "tables of counts are answered in one way",
                hint=f"leave out {spelled('refine', True)} and {spelled('method')}",
            )

    def _answer(self, query: Query, view: ReleaseRows, asked: QueryOptions) -> Answer:
        from voile.answering.conjuncts.evidence import answer_conjuncts  # noqa: PLC0415

        return answer_conjuncts(
            query, self._source(view, asked), asked.confidence, simultaneous=asked.simultaneous
        )

    def _explain(self, query: Query, view: ReleaseRows, asked: QueryOptions) -> Explanation:
        from voile.answering.conjuncts.explain import explain_conjuncts  # noqa: PLC0415

        return explain_conjuncts(query, self._source(view, asked))

    def _opened_view(self, which: str = "current") -> ReleaseRows:  # noqa: ARG002
        return open_rows([], self.schema)  # there are no rows: only the domain can be asked

    def _source(self, view: ReleaseRows, asked: QueryOptions) -> ConjunctSource:
        domain = self._sums(view, asked.memory, exact=True)
        return ConjunctSource(view, domain, self.schema, self._tables)

    @cached_property
    def _tables(self) -> Tables:
        p, kept = self.manifest.parameters, dict[tuple[str, ...], Counts]()

        def load(some: tuple[str, ...]) -> Counts:
            if some not in kept:
                kept[some] = self.counts(some)
            return kept[some]

        return Tables(self.schema, p.arity, p.halves, self.rows, self.manifest.law.variance, load)

    # ------------------------------------------------------------------ its rows

    def to_arrow(self) -> Any:
        raise UsageError(
            "tables of counts have no rows of people", hint='use table(("age", "sex"))'
        )


def file_schema(manifest: ConjunctManifest, some: tuple[str, ...]) -> Any:
    """The Arrow schema of the table of some columns."""
    half, side, count = manifest.columns_beside()
    beside = [
        pa.field(half, pa.int32(), nullable=False),
        pa.field(side, pa.int32(), nullable=False),
    ]
    listed = arrow_schema(manifest.schema_.select(some))
    return pa.schema([*(beside if manifest.parameters.halves else []), *listed,
                      pa.field(count, pa.int64(), nullable=False)])  # fmt: skip
