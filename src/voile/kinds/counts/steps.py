"""From rows to a release of tables of counts: read, count, add noise, verify, put in place."""

from __future__ import annotations

from collections.abc import Iterator
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
from voile.engines.parquet import ROW_GROUP, tuples
from voile.engines.table import Table
from voile.errors import TableError
from voile.kinds.counts.counting import Counts, counted
from voile.kinds.counts.describe import describe_conjuncts
from voile.kinds.counts.manifest import (
    ConjunctGuarantee,
    ConjunctManifest,
    ConjunctParameters,
    conjunct_disclosed,
    table_file,
)
from voile.kinds.counts.release import ConjunctRelease, file_schema
from voile.kinds.counts.terms import CHANGE, Promise, promise_for_delta, promise_for_rho
from voile.kinds.counts.wish import DELTA, ConjunctWish, check_sizes
from voile.kinds.descriptions import write_descriptions
from voile.kinds.done import Done
from voile.kinds.manifest import File, file_entry
from voile.kinds.staging import Staging, place_for, removed_with
from voile.kinds.views.wish import Wish, check_name, check_nulls, choose_schema
from voile.noise import Key
from voile.noise.whole import drawn
from voile.privacy.interactive.laws import noise_law
from voile.progress import Progress, Silent
from voile.schema import Schema, TupleIndex

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
    **wish: Any,
) -> Counted:
    """Publish tables of counts, and tell the steward about it. `to` names the folder."""
    asked = ConjunctWish.of(wish)
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
    return [f"--subsets {best} would err less on questions about {2 * p.arity} columns"]


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


def prepare(table: Table, wish: ConjunctWish, progress: Progress) -> Prepared:
    """Read and check the table, and find the noise."""
    if not (rows := len(table)):
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    name = wish.name or table.name
    check_name(name)
    schema, notes = choose_schema(
        table, Wish(columns=wish.columns, schema=wish.schema, nulls=wish.nulls)
    )
    check_nulls(table, schema, wish.nulls)
    used = table.complete_rows(schema.names) if wish.drop_nulls else rows
    published, promise = terms(wish, tuple(schema.sizes), used)
    progress.start("reading", rows)
    codes, _ = table.columns_of_codes(schema, drop_nulls=wish.drop_nulls, progress=progress)
    if len(codes[0]) < 2:
        raise TableError("one row alone cannot be hidden among others",
                         hint="publish a table with more rows")  # fmt: skip
    return Prepared(name, rows, schema, codes, published, promise, tuple(notes), progress)


def terms(wish: ConjunctWish, sizes: tuple[int, ...], rows: int) -> tuple[Published, Promise]:
    """How many halves, and the noise; from public numbers alone."""
    check_sizes(wish.arity, sizes, 0)
    halves = 0 if wish.direct else wish.subsets
    if halves is None:
        rho = wish.rho or promise_for_delta("gaussian", wish.delta or DELTA, wish.eta, 1000).rho
        halves = best_halves(len(sizes), wish.arity, rows, rho)
    published = Published(sizes, wish.arity, halves, rows, 1.0)
    check_sizes(wish.arity, sizes, published.figures)
    if wish.rho is not None:
        promise = promise_for_rho(wish.noise, wish.rho, wish.eta, published.tables)
    else:
        promise = promise_for_delta(wish.noise, wish.delta or DELTA, wish.eta, published.tables)
    return replace(published, rho=promise.rho), promise


def write_tables(
    prepared: Prepared, wish: ConjunctWish, target: Path, *, overwrite: bool
) -> ConjunctRelease:
    """Write beside, verify, put in place."""
    manifest = manifest_of(prepared, wish)
    with Staging(target, overwrite=overwrite) as staging:
        (staging.folder / "data").mkdir()
        files = [
            write_table(staging.folder, number, manifest, some, counts)
            for number, (some, counts) in enumerate(noisy(prepared, wish, manifest), start=1)
        ]
        manifest = manifest.model_copy(update={"files": files})
        write_descriptions(staging.folder, manifest, describe_conjuncts)
        staging.commit()
    return ConjunctRelease.open(target)


def noisy(
    prepared: Prepared, wish: ConjunctWish, manifest: ConjunctManifest
) -> Iterator[tuple[tuple[str, ...], Counts]]:
    """Every table with its noise: true counts are seen nowhere else."""
    seed, schema = wish.simulate_seed, prepared.schema
    key = Key.fresh() if seed is None else Key.from_seed(seed)
    sets = list(combinations(range(len(schema.names)), wish.arity))
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


def manifest_of(prepared: Prepared, wish: ConjunctWish) -> ConjunctManifest:
    """What the release says about itself, but for the files that are still to be written."""
    schema, published, promise = prepared.schema, prepared.published, prepared.promise
    stated = asdict(promise)
    variance = stated.pop("unit_variance")
    law = noise_law(wish.noise, variance, CHANGE)
    return ConjunctManifest(
        voile=__version__,
        name=prepared.name,
        parameters=ConjunctParameters(
            arity=published.arity,
            halves=published.halves,
            tables=published.tables,
            noise=wish.noise,  # type: ignore[arg-type]
            unit_variance=variance,
            noise_parameter=law.parameter,
        ),
        guarantee=ConjunctGuarantee(**stated),
        simulated=wish.simulate_seed is not None,
        nulls=wish.nulls,
        disclosed=conjunct_disclosed(schema, wish.nulls),
        public_rows=published.rows,
        rows=published.figures,
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=[],
    )
