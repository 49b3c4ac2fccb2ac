"""From rows to a release of perturbed rows: perturb, sort, verify, put in place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile import __version__
from voile.client import Spec
from voile.engines.table import Table
from voile.errors import ReleaseError, TableError, UsageError, spelled
from voile.kinds.domain import check_name, check_nulls, choose_schema
from voile.kinds.manifest import File, file_entry
from voile.kinds.parquet import write_part, write_table
from voile.kinds.people import ProtectedPeople, people_of
from voile.kinds.perturbed.manifest import (
    LocalManifest,
    LocalParameters,
    columns_of,
    local_guarantee,
    locally_disclosed,
)
from voile.kinds.perturbed.noise import check_epsilon, noise_for
from voile.kinds.perturbed.options import (
    PerturbKeywords,
    PerturbOptions,
    PerturbTableKeywords,
)
from voile.kinds.perturbed.rare import without_rare
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.perturbed.retention import OWN_VALUES, ColumnNoise, Local, WholeRows
from voile.kinds.perturbed.specs import mechanism_of, schema_of
from voile.kinds.publishing import PublishResult, WrittenDraft, publish, put
from voile.kinds.registration import Registrar, Registration
from voile.kinds.registry import kind_of
from voile.noise import Key
from voile.options.choices import Nulls
from voile.privacy.guarantee import after
from voile.progress import Progress
from voile.schema import Schema, TupleIndex
from voile.schema.index import code_type
from voile.signing import KeySource, SigningKey
from voile.units import NEARLY_SURE, chance

# ----------------------------------------------------------------------
# before perturbed rows leave: were as many values kept as the promise supposes, and no more?
# The manifest's ε follows from its parameters; that the coins fell accordingly is seen here only,
# where the true rows still are.


Codes = npt.NDArray[Any]
DEVIATIONS = 10
"""A sound sampler is further off less than once in 10²⁰ releases."""
SLACK = 50


def check_perturbed(
    mechanism: Local, schema: Schema, before: Sequence[Codes], after: Sequence[Codes]
) -> None:
    """Refuse to release what does not look perturbed as stated."""
    if isinstance(mechanism, WholeRows):
        same = np.logical_and.reduce([a == b for a, b in zip(before, after, strict=True)])
        chance = mechanism.retention + (1 - mechanism.retention) / mechanism.size
        compare("whole rows", int(same.sum()), np.full(1, chance), np.full(1, len(same)))
        return
    columns = zip(schema.names, mechanism.columns, before, after, strict=True)
    for name, noise, true, seen in columns:
        same = int(np.count_nonzero(true == seen))
        compare(f"column {name!r}", same, *unchanged(noise, true))


def unchanged(noise: ColumnNoise, true: Codes) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The chances that values are seen where they were, kept or drawn again; of how many each.

    Never of the size of the domain, which may be far larger than the table.
    """
    if noise.replace == "uniform":
        masses, counts = np.full(1, 1 / noise.size), np.full(1, len(true))
    else:
        values, counts = np.unique(true, return_counts=True)
        own = noise.replace in OWN_VALUES
        masses = counts / max(1, len(true)) if own else noise.masses()[values]
    return noise.retention + (1 - noise.retention) * masses, counts


def compare(
    what: str, same: int, chances: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]
) -> None:
    """Refuse rows of which far more or fewer stayed the same than chance explains."""
    mean = float(chances @ counts)
    # Swapped values are drawn without replacement, from a random number of them.
    spread = math.sqrt(float((chances * (1 - chances)) @ counts))
    if abs(same - mean) > DEVIATIONS * spread + SLACK:
        raise ReleaseError(
            f"{what}: {same:,} are as they were, where {mean:,.0f} ± {spread:,.0f} should be",
            hint="nothing was released; please report this",
        )


# ----------------------------------------------------------------------
# from rows to a release of perturbed rows: perturb, sort, verify, put in place


FILE_ROWS = 2**22
THREADS = 2


@dataclass(frozen=True)
class Perturbation(PublishResult):
    """A table that was perturbed."""

    release: LocalRelease


def perturb(
    table: Any,
    retention: float | Mapping[str, float] | Mapping[str | None, float],
    replace: Any = "uniform",
    columns: Sequence[str] | None = None,
    simulate_seed: int | None = None,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: Registrar | None = None,
    **options: Unpack[PerturbKeywords],
) -> LocalRelease:
    """Perturb every row of a table on its own: a path, a data frame, or what `voile.read` gave.

    `retention` is the chance that a value is kept, for all columns or by name (others stay as they
    are). `replace` says where other values come from: uniform, identity or swap, for all or by
    name, or a distribution. The other options are those of `PerturbOptions`. `to` is the release's
    folder; without it the release lives in a temporary one until `release.save(path)`. `sign` is a
    key that vouches for it.
    """
    done = perturb_table(
        table,
        to=to,
        overwrite=overwrite,
        progress=progress,
        sign=sign,
        register=register,
        retention=retention,
        replace=replace,
        columns=columns,
        simulate_seed=simulate_seed,
        **options,
    )
    return done.release


def perturb_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: Registrar | None = None,
    **options: Unpack[PerturbTableKeywords],
) -> Perturbation:
    """Perturb a table, and say what its holder should know. `to` names the release's folder."""
    kind, chosen = kind_of("retention"), PerturbOptions(**options)
    done = publish(
        kind,
        table,
        chosen,
        to=to,
        overwrite=overwrite,
        progress=progress,
        register=register,
        sign=sign,
    )
    return cast("Perturbation", done)


def perturbed(
    table: Table, options: PerturbOptions, _target: Path, progress: Progress
) -> RowsDraft:
    """Read the table, and perturb it."""
    rows = len(table)
    if not rows:
        raise TableError("the table has no rows to perturb", hint="see `voile inspect TABLE`")
    name = options.name or table.name
    check_name(name)
    schema, notes = schema_for(table, options)
    progress.start("reading", rows)
    codes, keys = table.columns_of_codes(
        schema,
        drop_nulls=options.nulls == "drop",
        row_key=options.row_key,
        progress=progress,
    )
    if not len(codes[0]):
        raise TableError(
            "no row is without NULLs",
            hint=f"use {spelled('nulls', 'as-value')}, or leave columns out",
        )
    check_keys(keys, options.row_key)
    mechanism = noise_for(schema, options)
    check_epsilon(mechanism, schema, options)
    kept = without_rare(schema, codes, mechanism, options.suppress_below)
    schema, codes, mechanism = kept.schema, kept.codes, kept.mechanism
    key = Key.fresh() if options.simulate_seed is None else Key.from_seed(options.simulate_seed)
    progress.start("perturbing", len(codes))
    shown = shuffled(mechanism, schema, codes, key, progress)
    check_perturbed(mechanism, schema, codes, shown)
    said = warnings(mechanism, schema, options.row_key, options.rows_per_person or 1)
    return RowsDraft(
        shown,
        schema,
        mechanism,
        name=name,
        nulls=options.nulls,
        simulated=options.simulate_seed is not None,
        suppressed_below=options.suppress_below,
        row_key=options.row_key,
        keys=keys,
        rows_in=rows,
        notes=(*notes, *kept.notes, *said),
        people=people_of(options),
    )


def schema_for(table: Table, options: PerturbOptions) -> tuple[Schema, list[str]]:
    """The public domain: the declared one, or what the chosen columns hold."""
    columns = options.columns
    if options.row_key is not None:
        table.check_columns([options.row_key])
        if columns is None and options.schema_ is None:
            columns = [c for c in table.columns if c != options.row_key]
    schema, notes = choose_schema(table, columns, options.schema_, options.nulls)
    if options.row_key in schema.names:
        raise UsageError(
            f"{options.row_key!r} is the key of the rows and a column of the table",
            hint=f"leave it out of {spelled('columns')} or of the codebook",
        )
    check_nulls(table, schema, options.nulls)
    return schema, notes


def check_keys(keys: pa.Array | None, name: str | None) -> None:
    """Refuse keys that are missing or repeat."""
    if keys is None:
        return
    if keys.null_count:
        raise TableError(f"row key {name!r} has NULLs", hint="every row needs a key")
    if len(keys.unique()) < len(keys):
        raise TableError(f"row key {name!r} repeats itself", hint="each row needs its own key")


def warnings(
    mechanism: Local, schema: Schema, row_key: str | None, rows_per_person: int = 1
) -> list[str]:
    """What the holder should know before the release leaves."""
    found = little_promised(mechanism.epsilon() * rows_per_person)
    if row_key is not None:
        found.append(f"this part tells {row_key} of every row: combine it, and do not publish it")
    if isinstance(mechanism, WholeRows):
        return found
    public = [
        name
        for name, column in zip(schema.names, mechanism.columns, strict=True)
        if column.public and column.size > 1
    ]
    if public:
        found.append(f"public, shown as they are in every row: {', '.join(public)}")
    return found


def little_promised(epsilon: float) -> list[str]:
    """A warning where a belief may come near to certainty."""
    believed = after(0.1, epsilon)
    if believed <= NEARLY_SURE or not math.isfinite(epsilon):
        return []
    return [
        f"ε = {epsilon:.4g} promises next to nothing: a belief of 0.1 may become "
        f"{chance(believed)}; `voile plan --local` finds retentions that promise more"
    ]


def shuffled(
    mechanism: Local, schema: Schema, codes: list[Codes], key: Key, progress: Progress
) -> list[Codes]:
    """Every column perturbed, several at a time."""
    if isinstance(mechanism, WholeRows):
        found = mechanism.perturb(codes, key.stream("rows"))
        progress.advance(len(codes))
        return found

    def one(item: tuple[str, ColumnNoise, Codes]) -> Codes:
        name, column, values = item
        done = column.perturb(values, key.stream(f"column {name}"))
        progress.advance(1)
        return done

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, zip(schema.names, mechanism.columns, codes, strict=True)))


# ---------------------------------------------------------------------- writing


def write_collected(
    batches: Iterator[list[Codes]],
    spec: Spec,
    target: Path,
    *,
    overwrite: bool,
    sign: SigningKey | None = None,
    entry: Registration | None = None,
) -> LocalRelease:
    """A release of rows that clients have perturbed, as lists of their codes by column."""
    schema = schema_of(spec)
    narrow = [code_type(size) for size in schema.sizes]
    found = [[c.astype(kind) for c, kind in zip(b, narrow, strict=True)] for b in batches]
    codes = [np.concatenate([batch[j] for batch in found]) for j in range(len(narrow))]
    nulls: Nulls = "as-value" if any(a.null for a in schema) else "error"
    return write(
        codes,
        schema,
        mechanism_of(spec, schema),
        target,
        name=collected_name(spec),
        nulls=nulls,
        collected=True,
        overwrite=overwrite,
        sign=sign,
        entry=entry,
    )


def collected_name(spec: Spec) -> str:
    """What rows that clients have perturbed are called."""
    return spec.name or "collected rows"


def write(
    codes: list[Codes],
    schema: Schema,
    mechanism: Local,
    target: Path,
    *,
    overwrite: bool,
    name: str,
    nulls: Nulls,
    simulated: bool = False,
    collected: bool = False,
    suppressed_below: int | None = None,
    sign: SigningKey | None = None,
    entry: Registration | None = None,
) -> LocalRelease:
    """A release of rows that were perturbed already."""
    draft = RowsDraft(
        codes,
        schema,
        mechanism,
        name=name,
        nulls=nulls,
        simulated=simulated,
        collected=collected,
        suppressed_below=suppressed_below,
    )
    return cast("LocalRelease", put(draft, target, overwrite=overwrite, entry=entry, sign=sign))


@dataclass(frozen=True, eq=False)
class RowsDraft(WrittenDraft):
    """Perturbed rows that are ready to be written, and what was done to them."""

    codes: list[Codes]
    schema: Schema
    mechanism: Local
    name: str
    nulls: Nulls
    simulated: bool = False
    collected: bool = False
    suppressed_below: int | None = None
    row_key: str | None = None
    keys: pa.Array | None = None
    rows_in: int = 0
    notes: tuple[str, ...] = ()
    people: ProtectedPeople | None = None

    def write(self, folder: Path) -> LocalManifest:
        """Rows are sorted: their order discloses nothing."""
        (folder / "data").mkdir()
        parts = (
            write_sorted(folder, self.schema, self.codes)
            if self.keys is None or self.row_key is None
            else write_keyed(folder, self.schema, self.codes, self.row_key, self.keys)
        )
        return self._manifest(parts)

    def _manifest(self, parts: list[File]) -> LocalManifest:
        schema, mechanism, rows = self.schema, self.mechanism, len(self.codes[0])
        joint = mechanism.retention if isinstance(mechanism, WholeRows) else None
        parameters = LocalParameters(
            columns=columns_of(mechanism, schema),
            joint=joint,
            collected=self.collected,
            suppressed_below=self.suppressed_below,
            row_key=self.row_key,
        )
        return LocalManifest(
            voile=__version__,
            name=self.name,
            method="retention" if joint is None else "frapp",
            parameters=parameters,
            guarantee=local_guarantee(
                mechanism, schema, collected=self.collected, people=self.people
            ),
            people=self.people,
            simulated=self.simulated,
            nulls=self.nulls,
            disclosed=locally_disclosed(schema, parameters, mechanism, self.nulls),
            public_rows=rows,
            rows=rows,
            domain_size=str(schema.size),
            attributes=schema.to_dict()["attributes"],
            files=parts,
        )

    def done(self, release: LocalRelease) -> Perturbation:
        """What the steward is shown of the release."""
        return Perturbation(release, self.rows_in, self.rows_in - len(self.codes[0]), self.notes)


def write_sorted(folder: Path, schema: Schema, codes: list[Codes]) -> list[File]:
    """The rows in the order of the domain, in files of a few million."""
    keys = TupleIndex(schema.sizes).encode(codes)
    keys.sort()
    parts = [keys[start : start + FILE_ROWS] for start in range(0, max(1, len(keys)), FILE_ROWS)]

    def one(item: tuple[int, Codes]) -> File:
        number, some = item
        path = folder / "data" / f"part-{number:05d}.parquet"
        return file_entry(folder, path, write_part(path, schema, iter([some])))

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, enumerate(parts)))


def write_keyed(
    folder: Path, schema: Schema, codes: list[Codes], name: str, keys: pa.Array
) -> list[File]:
    """One part of a table, in the order of its keys."""
    order = pc.sort_indices(keys).to_numpy()
    path = folder / "data" / "part-00000.parquet"
    rows = write_table(path, schema, [c[order] for c in codes], name, keys.take(pa.array(order)))
    return [file_entry(folder, path, rows)]
