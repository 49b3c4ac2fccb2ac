"""Tables of counts that were published, and what can be counted from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrow import numpy_array
from voile.engines import open_domain
from voile.errors import ReleaseError, UsageError, spelled
from voile.kinds.counts.manifest import (
    ConjunctManifest,
    conjunct_disclosed,
    conjunct_statements,
    conjuncts_not_promised,
    promised,
    table_file,
)
from voile.kinds.parquet import arrow_schema, codes_beside, read_beside, read_parquet
from voile.kinds.release import QueryOptions, Release

if TYPE_CHECKING:
    from voile.answering.explanation import Explanation
    from voile.engines.rows import PublicDomain
    from voile.estimate import Answer
    from voile.kinds.counts.joints import ConjunctSource, Tables
    from voile.kinds.exported import ExportChoice, ExportTable
    from voile.privacy.guarantees.statements import Statement
    from voile.query.query import Query

Counts = npt.NDArray[np.int64]
BYTES_READ = 64
"""Of memory for a table, for each byte of a large release."""


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
        """(δ,T)-privacy and what follows from it, as statements."""
        return conjunct_statements(self.manifest)

    def not_promised(self) -> list[Statement]:
        """What tables of counts must not be taken to promise."""
        return conjuncts_not_promised()

    # ------------------------------------------------------------------ its files

    def columns_of(self, path: str) -> Any:
        """The Arrow schema of one of its tables."""
        return file_schema(self.manifest, self._set_of(path))

    def _set_of(self, path: str) -> tuple[str, ...]:
        for number, some in enumerate(self.manifest.sets, start=1):
            if table_file(number) == path:
                return some
        raise ReleaseError(f"{path} is not one of the release's tables")

    def table(self, some: tuple[str, ...]) -> Any:
        """The table of some columns, as it was published: an Arrow table."""
        return read_parquet(self._file_of(some))

    def _file_of(self, some: tuple[str, ...]) -> Path:
        if some not in self.manifest.sets:
            listed = ", ".join(some)
            raise UsageError(
                f"there is no table of ({listed})",
                hint=f"name {self.manifest.parameters.arity} columns, in the order of the schema",
            )
        return self.path / table_file(self.manifest.sets.index(some) + 1)

    def _figures(self, some: tuple[str, ...]) -> Any:
        """The same, if memory can hold it; texts are dictionaries."""
        on_disk = sum(file.bytes for file in self.manifest.files)
        return read_beside(self._file_of(some), size_on_disk=on_disk, per_byte=BYTES_READ)

    def counts(self, some: tuple[str, ...]) -> Counts:
        """(halves, 2, cells), or (1, cells) of all rows."""
        p = self.manifest.parameters
        found: Counts = numpy_array(self._figures(some).column(self.manifest.columns_beside()[2]))
        return found.reshape((p.halves, 2, -1) if p.halves else (1, -1))

    def listed(self, some: tuple[str, ...]) -> tuple[npt.NDArray[np.int64], ...]:
        """The half, the side and the cell of every row of a table, as it says itself."""
        table, beside = self._figures(some), self.manifest.columns_beside()
        cell: npt.NDArray[np.int64] = np.zeros(table.num_rows, np.int64)
        for name in some:
            attribute = self.schema[name]
            coded = codes_beside(table.column(name), attribute)
            cell = cell * attribute.size + coded.astype(np.int64)
        if not self.manifest.parameters.halves:
            return (cell,)
        half, side = (numpy_array(table.column(n)).astype(np.int64) for n in beside[:2])
        return half, side, cell

    def foreign_attribute(self) -> str | None:
        """None: every cell is compared with the domain's elsewhere."""
        return None  # `check_terms` compares every cell with the domain's

    def check_terms(self) -> None:
        """Compute again all that is stated."""
        check_tables(self)

    def check_plausible(self) -> bool:
        """Whether tables that share a column agree as closely as their noise lets them."""
        from voile.kinds.counts.plausibility import check_tables_agree  # noqa: PLC0415

        return check_tables_agree(self)

    # ------------------------------------------------------------------ counting from it

    def _check_options(self, options: QueryOptions) -> None:
        if options.refine or options.method is not None:
            raise UsageError(
                "tables of counts are answered in one way",
                hint=f"leave out {spelled('refine', True)} and {spelled('method')}",
            )

    def _answer(self, query: Query, view: PublicDomain, options: QueryOptions) -> Answer:
        from voile.kinds.counts.answering import answer_conjuncts  # noqa: PLC0415

        return answer_conjuncts(
            query,
            self._source(view, options),
            options.confidence,
            simultaneous=options.simultaneous,
        )

    def _explain(self, query: Query, view: PublicDomain, options: QueryOptions) -> Explanation:
        from voile.kinds.counts.explanation import explain_conjuncts  # noqa: PLC0415

        return explain_conjuncts(query, self._source(view, options))

    def _opened_view(self, which: str = "current") -> PublicDomain:  # noqa: ARG002
        return open_domain(self.schema)  # there are no rows

    def _source(self, view: PublicDomain, options: QueryOptions) -> ConjunctSource:
        from voile.kinds.counts.joints import ConjunctSource  # noqa: PLC0415

        domain = self._sums(view, options.memory, exact=True)
        return ConjunctSource(view, domain, self.schema, self._tables)

    @cached_property
    def _tables(self) -> Tables:
        from voile.kinds.counts.joints import Tables  # noqa: PLC0415

        p, kept = self.manifest.parameters, dict[tuple[str, ...], Counts]()

        def load(some: tuple[str, ...]) -> Counts:
            if some not in kept:
                kept[some] = self.counts(some)
            return kept[some]

        return Tables(self.schema, p.arity, p.halves, self.rows, self.manifest.law.variance, load)

    # ------------------------------------------------------------------ its rows

    def exported(self, choice: ExportChoice) -> Sequence[ExportTable]:
        """All its tables, one below the other, each figure with the standard error of its noise."""
        from voile.kinds.counts.exported import stacked_tables  # noqa: PLC0415

        self.refuse_choice(choice, tables=True)
        return [stacked_tables(self)]

    def to_arrow(self) -> Any:
        """Refused: there are no rows."""
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


# ----------------------------------------------------------------------
# checking tables of counts: every figure is there, and the promise follows from the noise


CLOSE = 1e-3
"""By which chances that are computed again may differ: transforms on another machine."""
FAR = 1e-15
"""The chance that noise is so far out that a figure is not believed."""


def check_tables(release: ConjunctRelease) -> None:
    """All that the release states, computed again."""
    manifest = release.manifest
    paths = [file.path for file in manifest.files if file.rows is not None]
    if paths != [table_file(i + 1) for i in range(len(manifest.sets))]:
        raise ReleaseError("data/ does not have one table for every set of columns, in order")
    for some in manifest.sets:
        check_cells(release, some)
        check_counts(release, some)
    check_promise(release)
    if manifest.disclosed != conjunct_disclosed(release.schema, manifest.nulls):
        raise ReleaseError("manifest.json does not say all that the release discloses")


def check_cells(release: ConjunctRelease, some: tuple[str, ...]) -> None:
    """Every cell of the domain stands there once, in order, for both sides of every half."""
    cells = math.prod(release.schema[name].size for name in some)
    halves = release.manifest.parameters.halves
    found = release.listed(some)
    wanted = (
        (np.repeat(np.arange(halves) + 1, 2 * cells),
         np.tile(np.repeat([1, 2], cells), halves),
         np.tile(np.arange(cells), 2 * halves))
        if halves else (np.arange(cells),)
    )  # fmt: skip
    if not all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)):
        raise ReleaseError(f"the table of {', '.join(some)} does not list its cells in order")


def check_counts(release: ConjunctRelease, some: tuple[str, ...]) -> None:
    """No figure is further out than its noise can take it."""
    law, counts = release.manifest.law, release.counts(some)
    off = law.deviation(FAR)
    rows = release.rows if not release.manifest.parameters.halves else -(-release.rows // 2)
    if (counts < -off).any() or (counts > rows + off).any():
        raise ReleaseError(f"a figure of the table of {', '.join(some)} is no noisy count")


def check_promise(release: ConjunctRelease) -> None:
    """Refuse a guarantee that does not follow from the noise."""
    p, g = release.manifest.parameters, release.manifest.guarantee
    people = release.manifest.people
    kept = promised(p.noise, p.unit_variance, g.delta, g.eta, p.tables, people)
    for name, value in asdict(kept).items():
        if name != "unit_variance" and not agree(getattr(g, name), value):
            raise ReleaseError(
                f"manifest.json: {name} is {getattr(g, name)!r}, and from the noise follows "
                f"{value!r}"
            )
    if g.breach > g.eta * (1 + CLOSE):
        raise ReleaseError(f"the noise does not keep δ = {g.delta:g} with η = {g.eta:g}")


def agree(stated: Any, found: Any) -> bool:
    """Whether a stated value is the one that was computed again, up to rounding."""
    if isinstance(stated, float) and isinstance(found, float):
        return math.isclose(stated, found, rel_tol=CLOSE)
    return bool(stated == found)
