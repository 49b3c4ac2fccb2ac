"""From rows to a release of tables of counts: read, count, add noise, verify, put in place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from math import prod
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from voile import __version__
from voile.compiled import compiled
from voile.engines.jobs import CellCounts, check_same
from voile.engines.table import Table
from voile.errors import PromiseError, TableError, UsageError, spelled
from voile.kinds.counts.expected import Published, best_halves
from voile.kinds.counts.manifest import (
    ConjunctGuarantee,
    ConjunctManifest,
    ConjunctParameters,
    CountPromise,
    change_of,
    conjunct_disclosed,
    promise_for_delta,
    promise_for_rho,
    table_file,
)
from voile.kinds.counts.options import DELTA, CountKeywords, CountOptions
from voile.kinds.counts.release import ConjunctRelease, file_schema
from voile.kinds.domain import check_name, check_nulls, choose_schema
from voile.kinds.manifest import File, file_entry
from voile.kinds.parquet import ROW_GROUP, tuples
from voile.kinds.people import people_of
from voile.kinds.publishing import PublishResult, WrittenDraft, publish
from voile.kinds.registry import kind_of
from voile.noise import Key
from voile.noise.keyed import first_side
from voile.noise.whole import drawn
from voile.privacy.interactive.laws import noise_law
from voile.progress import Progress
from voile.schema import Schema, TupleIndex
from voile.signing import KeySource

# ----------------------------------------------------------------------
# counting rows into the cells of every table, for every half, in bounded memory


Counts = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
MEMORY = 2**28
"""Bytes of cell numbers that are held at once."""


def counted(
    codes: Sequence[npt.NDArray[np.generic]],
    sizes: Sequence[int],
    sets: Sequence[tuple[int, ...]],
    halves: int,
    key: Key,
    progress: Progress,
) -> Iterator[Counts]:
    """For each set of columns the true counts of its cells: (halves, 2, cells), or (1, cells)."""
    rows = len(codes[0])
    at_once = max(1, MEMORY // (4 * rows))
    progress.start("counting", len(sets) * max(1, halves))
    for start in range(0, len(sets), at_once):
        some = sets[start : start + at_once]
        starts = np.cumsum([0, *(prod(sizes[j] for j in one) for one in some)])
        cells = np.empty((rows, len(some)), np.int32)
        for place, one in enumerate(some):
            cells[:, place] = cell_numbers(codes, sizes, one) + starts[place]
        whole = np.zeros(int(starts[-1]), np.int64)
        tally(cells, np.arange(rows), whole)
        first = np.zeros((halves, len(whole)), np.int64)
        for half in range(halves):
            tally(cells, first_side(key, half, rows), first[half])
            progress.advance(len(some))
        for low, high in pairwise(starts.tolist()):
            one_side = first[:, low:high]
            yield (
                np.stack([one_side, whole[low:high] - one_side], axis=1)
                if halves
                else whole[None, low:high]
            )


def cell_numbers(
    codes: Sequence[npt.NDArray[np.generic]], sizes: Sequence[int], columns: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """The cell of every row in the table of some columns."""
    found: npt.NDArray[np.int64] = np.zeros(len(codes[0]), np.int64)
    for j in columns:
        found = found * sizes[j] + codes[j].astype(np.int64)
    return found


@compiled
def tally(cells: Codes, rows: npt.NDArray[np.int64], into: Counts) -> None:
    """Add one for each of the rows to its cell of every table."""
    for row in rows:
        for place in range(cells.shape[1]):
            into[cells[row, place]] += 1


# ----------------------------------------------------------------------
# from true counts to a release, and what the steward is shown of it


MOST_TABLES = 5_000
"""Sets of columns; each is a file."""
MOST_FIGURES = 2**24
AT_ONCE = 2**22
"""Cells that are counted in one pass over a table that is not at hand."""
MUCH = 1.25
"""By which errors must differ to be worth a word."""


@dataclass(frozen=True)
class CountPublication(PublishResult):
    """Tables of counts that were published."""

    release: ConjunctRelease

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, with the comparison of both ways to publish."""
        compared = self.release.manifest.comparison
        return {**super().to_dict(), "comparison": compared and compared.to_dict()}

    def facts(self) -> list[tuple[str, str]]:
        """Rows, tables, noise, promise and errors, by name."""
        manifest = self.release.manifest
        p, g = manifest.parameters, manifest.guarantee
        columns = "1 column" if p.arity == 1 else f"{p.arity} columns"
        of = f"both sides of {p.halves:,} halves" if p.halves else "all rows"
        epsilon = "" if g.epsilon is None else f"; ε = {g.epsilon:.4g} at {g.epsilon_delta:g}"
        return [
            ("rows", f"{self.rows_in:,} in, {manifest.public_rows:,} counted"),
            ("tables", f"{len(manifest.sets):,} sets of {columns}, of {of}: "
                       f"{manifest.rows:,} figures"),
            ("noise", f"{p.noise}, standard deviation {manifest.law.sd:,.4g}"),
            ("promise", f"δ = {g.delta:.4g} for T = {p.tables:,} tables except with probability "
                        f"{g.eta:g}"),
            ("", f"ρ = {g.rho:.4g}{epsilon}"),
            *self._comparison(),
        ]  # fmt: skip

    def _comparison(self) -> list[tuple[str, str]]:
        """Both ways to answer the same questions, at the same promise."""
        found = self.release.manifest.comparison
        if found is None:
            return []
        by_halves = f"from halves {found.error:.2g} ({found.figures:,} figures)"
        way = f"{spelled('direct', True)} {spelled('arity', found.columns)}"
        direct = f"with {way} {found.direct_error:.2g}"
        return [
            (f"error of {found.columns} columns", f"of a share: {by_halves}"),
            ("", f"{direct} ({found.direct_figures:,} figures)"),
        ]


@dataclass(frozen=True, eq=False)
class CountDraft(WrittenDraft):
    """Tables of counts that are ready to be written."""

    prepared: CountInput
    options: CountOptions

    def write(self, folder: Path) -> ConjunctManifest:
        """Count, add noise, and write the tables."""
        manifest = manifest_of(self.prepared, self.options)
        (folder / "data").mkdir()
        tables = enumerate(noisy(self.prepared, self.options, manifest), start=1)
        files = [
            write_table(folder, number, manifest, some, counts) for number, (some, counts) in tables
        ]
        return manifest.model_copy(update={"files": files})

    def done(self, release: ConjunctRelease) -> CountPublication:
        """The release, with advice on the number of halves."""
        prepared = self.prepared
        dropped = prepared.rows - prepared.published.rows
        notes = (*prepared.notes, *advice(prepared.published))
        return CountPublication(release, prepared.rows, dropped, notes)


def count_draft(
    table: Table, options: CountOptions, _target: Path, progress: Progress
) -> CountDraft:
    """Read the table and choose the noise."""
    return CountDraft(prepare(table, options, progress), options)


def count_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    **options: Unpack[CountKeywords],
) -> CountPublication:
    """Publish tables of counts, with notes for the steward. `to` names the folder."""
    kind, checked = kind_of("conjuncts"), CountOptions(**options)
    done = publish(kind, table, checked, to=to, overwrite=overwrite, progress=progress, sign=sign)
    return cast("CountPublication", done)


def advice(published: Published) -> list[str]:
    """Where another number of halves would answer much better, at the same promise."""
    if not published.halves:
        return []
    p = published
    best = best_halves(len(p.sizes), p.arity, p.rows, p.rho)
    if p.joint_error < MUCH * replace(p, halves=best).joint_error:
        return []
    return [f"{spelled('subsets', best)} would err less on questions about {2 * p.arity} columns"]


@dataclass(frozen=True)
class CountInput:
    """A table that has been read, and what of it will be published."""

    name: str
    rows: int
    schema: Schema
    table: Table
    published: Published
    promise: CountPromise
    notes: tuple[str, ...]
    progress: Progress


def prepare(table: Table, options: CountOptions, progress: Progress) -> CountInput:
    """Read and check the table, and find the noise."""
    if not (rows := len(table)):
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    name = options.name or table.name
    check_name(name)
    schema, notes = choose_schema(table, options.columns, options.schema_, options.nulls)
    check_nulls(table, schema, options.nulls)
    used = table.complete_rows(schema.names) if options.drop_nulls else rows
    published, promise = terms(options, tuple(schema.sizes), used)
    if used < 2:
        raise TableError("one row alone cannot be hidden among others",
                         hint="publish a table with more rows")  # fmt: skip
    if not table.at_hand and published.halves:
        raise UsageError(
            f"halves are of single rows, and those of {table.name!r} stay on the cluster",
            hint=f"publish counts of all rows with {spelled('direct', True)}",
        )
    return CountInput(name, rows, schema, table, published, promise, tuple(notes), progress)


def terms(
    options: CountOptions, sizes: tuple[int, ...], rows: int
) -> tuple[Published, CountPromise]:
    """How many halves, and the noise; from public numbers alone."""
    check_sizes(options.arity, sizes, 0)
    halves = 0 if options.direct else options.subsets
    most, people = options.rows_per_person or 1, people_of(options)
    if halves is None:
        rho = (
            options.rho
            or promise_for_delta("gaussian", options.delta or DELTA, options.eta, 1000).rho
        )
        halves = best_halves(len(sizes), options.arity, rows, rho / most**2)
    published = Published(sizes, options.arity, halves, rows, 1.0)
    check_sizes(options.arity, sizes, published.figures)
    if options.rho is not None:
        promise = promise_for_rho(options.noise, options.rho, options.eta, published.tables, people)
    else:
        promise = promise_for_delta(
            options.noise, options.delta or DELTA, options.eta, published.tables, people
        )
    return replace(published, rho=promise.rho / most**2), promise


def check_sizes(arity: int, sizes: Sequence[int], figures: int) -> None:
    """Refuse what would be too much to write, or has no tables."""
    if arity > len(sizes):
        raise UsageError(
            f"{spelled('arity', arity)} is more than the {len(sizes)} columns that are published",
            hint=f"use at most {len(sizes)}, or more columns",
        )
    if (tables := math.comb(len(sizes), arity)) > MOST_TABLES:
        raise PromiseError(
            f"there are {tables:,} sets of {arity} of {len(sizes)} columns, more than "
            f"{MOST_TABLES:,}",
            hint=f"publish fewer columns ({spelled('columns')}), or a smaller {spelled('arity')}",
        )
    if figures > MOST_FIGURES:
        raise PromiseError(
            f"the tables would have {figures:,} figures, more than {MOST_FIGURES:,}",
            hint=f"declare coarser domains (bins) with {spelled('schema')}, or use fewer "
            f"{spelled('subsets')}, a smaller {spelled('arity')} or fewer {spelled('columns')}",
        )


def noisy(
    prepared: CountInput, options: CountOptions, manifest: ConjunctManifest
) -> Iterator[tuple[tuple[str, ...], Counts]]:
    """Every table with its noise: true counts are seen nowhere else."""
    seed, schema = options.simulate_seed, prepared.schema
    key = Key.fresh() if seed is None else Key.from_seed(seed)
    sets = list(combinations(range(len(schema.names)), options.arity))
    noise = drawn(manifest.law, manifest.rows, None if seed is None else key)
    start = 0
    true = true_counts(prepared, sets, drop_nulls=options.drop_nulls, key=key)
    for some, counts in zip(manifest.sets, true, strict=True):
        yield some, counts + noise[start : start + counts.size].reshape(counts.shape)
        start += counts.size


def true_counts(
    prepared: CountInput, sets: Sequence[tuple[int, ...]], *, drop_nulls: bool, key: Key
) -> Iterator[Counts]:
    """The counts of every table, of codes in memory or wherever the rows lie."""
    table, schema, progress = prepared.table, prepared.schema, prepared.progress
    if not table.at_hand:
        progress.start("counting", len(sets))
        for some in in_passes(sets, schema.sizes):
            job = CellCounts(tuple(schema.sizes), tuple(some))
            found = job.tables(table.coded_sums(schema, job, drop_nulls=drop_nulls))
            check_same(table.name, prepared.published.rows, found)
            progress.advance(len(some))
            yield from (cells.reshape(1, -1) for cells in found)
        return
    progress.start("reading", prepared.rows)
    codes, _ = table.columns_of_codes(schema, drop_nulls=drop_nulls, progress=progress)
    yield from counted(codes, schema.sizes, sets, prepared.published.halves, key, progress)


def in_passes(
    sets: Sequence[tuple[int, ...]], sizes: Sequence[int]
) -> Iterator[list[tuple[int, ...]]]:
    """Sets of columns, as many together as are counted in one pass over a table."""
    held: list[tuple[int, ...]] = []
    cells = 0
    for one in sets:
        size = prod(sizes[j] for j in one)
        if held and cells + size > AT_ONCE:
            yield held
            held, cells = [], 0
        held.append(one)
        cells += size
    if held:
        yield held


def write_table(
    folder: Path, number: int, manifest: ConjunctManifest, some: tuple[str, ...], counts: Counts
) -> File:
    """One table as a file: the half and the side, the values of each cell, and the figure."""
    schema, cells = manifest.schema_.select(some), counts.shape[-1]
    codes = TupleIndex(schema.sizes).decode(np.tile(np.arange(cells), counts.size // cells))
    columns = list(tuples(schema, codes).columns)
    if halves := manifest.parameters.halves:
        half = np.repeat(np.arange(1, halves + 1, dtype=np.int32), 2 * cells)
        side = np.tile(np.repeat(np.array([1, 2], np.int32), cells), halves)
        columns = [pa.array(half), pa.array(side), *columns]
    columns.append(pa.array(counts.reshape(-1)))
    path = folder / table_file(number)
    pq.write_table(
        pa.table(columns, schema=file_schema(manifest, some)), path,
        compression="zstd", store_schema=False, write_statistics=False, row_group_size=ROW_GROUP,
    )  # fmt: skip
    return file_entry(folder, path, counts.size)


def manifest_of(prepared: CountInput, options: CountOptions) -> ConjunctManifest:
    """What the release says about itself, but for the files that are still to be written."""
    schema, published, promise = prepared.schema, prepared.published, prepared.promise
    stated = asdict(promise)
    variance = stated.pop("unit_variance")
    law = noise_law(options.noise, variance, change_of(options.rows_per_person or 1))
    return ConjunctManifest(
        voile=__version__,
        name=prepared.name,
        parameters=ConjunctParameters(
            arity=published.arity,
            halves=published.halves,
            tables=published.tables,
            noise=options.noise,
            unit_variance=variance,
            noise_parameter=law.parameter,
        ),
        guarantee=ConjunctGuarantee(**stated),
        people=people_of(options),
        simulated=options.simulate_seed is not None,
        nulls=options.nulls,
        disclosed=conjunct_disclosed(schema, options.nulls),
        public_rows=published.rows,
        rows=published.figures,
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=[],
    )
