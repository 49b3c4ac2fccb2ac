"""From rows to a release of tables of counts: read, count, add noise, verify, put in place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from voile import __version__
from voile.answering.conjuncts.expected import Published, best_halves
from voile.engines import connect
from voile.engines.table import Table
from voile.errors import PromiseError, TableError, UsageError, spelled
from voile.kinds.counts.counting import Counts, counted
from voile.kinds.counts.manifest import (
    ConjunctGuarantee,
    ConjunctManifest,
    ConjunctParameters,
    conjunct_disclosed,
    table_file,
)
from voile.kinds.counts.options import DELTA, CountOptions
from voile.kinds.counts.release import ConjunctRelease, file_schema
from voile.kinds.counts.terms import CHANGE, Promise, promise_for_delta, promise_for_rho
from voile.kinds.domain import check_name, check_nulls, choose_schema
from voile.kinds.done import Done
from voile.kinds.manifest import File, file_entry
from voile.kinds.parquet import ROW_GROUP, tuples
from voile.kinds.publishing import write_descriptions
from voile.kinds.staging import Staging, place_for, removed_with
from voile.noise import Key
from voile.noise.whole import drawn
from voile.privacy.interactive.laws import noise_law
from voile.progress import Progress, Silent
from voile.schema import Schema, TupleIndex

MOST_TABLES = 5_000
"""Sets of columns; each is a file."""
MOST_FIGURES = 2**24
MUCH = 1.25
"""By which errors must differ to be worth a word."""


@dataclass(frozen=True)
class Counted(Done):
    """Tables of counts that were published."""

    release: ConjunctRelease

    def to_dict(self) -> dict[str, Any]:
        compared = self.release.manifest.comparison
        return {**super().to_dict(), "comparison": compared and compared.to_dict()}


def count_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Counted:
    """Publish tables of counts, and tell the steward about it. `to` names the folder."""
    asked = CountOptions(**options)
    with place_for(to, overwrite=overwrite) as target:
        source = connect(table)
        prepared = prepare(source, asked, progress or Silent())
        release = write_tables(prepared, asked, target, overwrite=overwrite)
    if to is None:
        removed_with(release)
    dropped = prepared.rows - prepared.published.rows
    notes = (*prepared.notes, *advice(prepared.published))
    return Counted(release, prepared.rows, dropped, notes)


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
class Prepared:
    """A table that has been read, and what of it will be published."""

    name: str
    rows: int
    schema: Schema
    codes: list[npt.NDArray[Any]]
    published: Published
    promise: Promise
    notes: tuple[str, ...]
    progress: Progress


def prepare(table: Table, options: CountOptions, progress: Progress) -> Prepared:
    """Read and check the table, and find the noise."""
    if not (rows := len(table)):
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    name = options.name or table.name
    check_name(name)
    schema, notes = choose_schema(table, options.columns, options.schema_, options.nulls)
    check_nulls(table, schema, options.nulls)
    used = table.complete_rows(schema.names) if options.drop_nulls else rows
    published, promise = terms(options, tuple(schema.sizes), used)
    progress.start("reading", rows)
    codes, _ = table.columns_of_codes(schema, drop_nulls=options.drop_nulls, progress=progress)
    if len(codes[0]) < 2:
        raise TableError("one row alone cannot be hidden among others",
                         hint="publish a table with more rows")  # fmt: skip
    return Prepared(name, rows, schema, codes, published, promise, tuple(notes), progress)


def terms(options: CountOptions, sizes: tuple[int, ...], rows: int) -> tuple[Published, Promise]:
    """How many halves, and the noise; from public numbers alone."""
    check_sizes(options.arity, sizes, 0)
    halves = 0 if options.direct else options.subsets
    if halves is None:
        rho = (
            options.rho
            or promise_for_delta("gaussian", options.delta or DELTA, options.eta, 1000).rho
        )
        halves = best_halves(len(sizes), options.arity, rows, rho)
    published = Published(sizes, options.arity, halves, rows, 1.0)
    check_sizes(options.arity, sizes, published.figures)
    if options.rho is not None:
        promise = promise_for_rho(options.noise, options.rho, options.eta, published.tables)
    else:
        promise = promise_for_delta(
            options.noise, options.delta or DELTA, options.eta, published.tables
        )
    return replace(published, rho=promise.rho), promise


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


def write_tables(
    prepared: Prepared, options: CountOptions, target: Path, *, overwrite: bool
) -> ConjunctRelease:
    """Write beside, verify, put in place."""
    manifest = manifest_of(prepared, options)
    with Staging(target, overwrite=overwrite) as staging:
        (staging.folder / "data").mkdir()
        files = [
            write_table(staging.folder, number, manifest, some, counts)
            for number, (some, counts) in enumerate(noisy(prepared, options, manifest), start=1)
        ]
        manifest = manifest.model_copy(update={"files": files})
        write_descriptions(staging.folder, manifest)
        staging.commit()
    return ConjunctRelease.open(target)


def noisy(
    prepared: Prepared, options: CountOptions, manifest: ConjunctManifest
) -> Iterator[tuple[tuple[str, ...], Counts]]:
    """Every table with its noise: true counts are seen nowhere else."""
    seed, schema = options.simulate_seed, prepared.schema
    key = Key.fresh() if seed is None else Key.from_seed(seed)
    sets = list(combinations(range(len(schema.names)), options.arity))
    noise = drawn(manifest.law, manifest.rows, None if seed is None else key)
    start = 0
    true = counted(
        prepared.codes, schema.sizes, sets, manifest.parameters.halves, key, prepared.progress
    )
    for some, counts in zip(manifest.sets, true, strict=True):
        yield some, counts + noise[start : start + counts.size].reshape(counts.shape)
        start += counts.size


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


def manifest_of(prepared: Prepared, options: CountOptions) -> ConjunctManifest:
    """What the release says about itself, but for the files that are still to be written."""
    schema, published, promise = prepared.schema, prepared.published, prepared.promise
    stated = asdict(promise)
    variance = stated.pop("unit_variance")
    law = noise_law(options.noise, variance, CHANGE)
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
        simulated=options.simulate_seed is not None,
        nulls=options.nulls,
        disclosed=conjunct_disclosed(schema, options.nulls),
        public_rows=published.rows,
        rows=published.figures,
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=[],
    )
