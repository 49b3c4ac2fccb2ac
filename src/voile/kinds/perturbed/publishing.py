"""From rows to a release of perturbed rows: perturb, sort, verify, put in place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile import __version__
from voile.client import Spec
from voile.engines.members import LocalMembers, Members
from voile.engines.table import Table
from voile.errors import ReleaseError, TableError, UsageError, spelled
from voile.kinds.domain import check_name, check_nulls, choose_schema
from voile.kinds.manifest import File, file_entry
from voile.kinds.parquet import write_table
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
from voile.kinds.perturbed.retention import ColumnNoise, Local, WholeRows
from voile.kinds.perturbed.specs import mechanism_of, schema_of
from voile.kinds.perturbed.writing import (
    RowPerturber,
    RowWriter,
    blocks_of,
    files_of,
    kept_figures,
)
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
    check_kept(mechanism, schema, kept_figures(mechanism, before, after))


def check_kept(mechanism: Local, schema: Schema, figures: Mapping[str, float]) -> None:
    """Refuse rows of which far more or fewer stayed the same than chance explains."""
    whole = isinstance(mechanism, WholeRows)
    words = ["whole rows"] if whole else [f"column {name!r}" for name in schema.names]
    for number, what in enumerate(words):
        same, mean = figures[f"same {number}"], figures[f"mean {number}"]
        # Swapped values are drawn without replacement, from a random number of them.
        spread = math.sqrt(figures[f"variance {number}"])
        if abs(same - mean) > DEVIATIONS * spread + SLACK:
            raise ReleaseError(
                f"{what}: {same:,.0f} are as they were, where {mean:,.0f} ± {spread:,.0f} should "
                "be",
                hint="nothing was released; please report this",
            )


# ----------------------------------------------------------------------
# from rows to a release of perturbed rows: perturb, sort, verify, put in place


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
) -> WrittenDraft:
    """Read the table, and perturb it."""
    rows = len(table)
    if not rows:
        raise TableError("the table has no rows to perturb", hint="see `voile inspect TABLE`")
    name = options.name or table.name
    check_name(name)
    schema, notes = schema_for(table, options)
    mechanism = noise_for(schema, options)
    check_epsilon(mechanism, schema, options)
    key = Key.fresh() if options.simulate_seed is None else Key.from_seed(options.simulate_seed)
    terms = PerturbTerms(
        schema,
        mechanism,
        name=name,
        nulls=options.nulls,
        simulated=options.simulate_seed is not None,
        suppressed_below=options.suppress_below,
        row_key=options.row_key,
        rows_in=rows,
        notes=tuple(notes),
        people=people_of(options),
    )
    progress.start("reading", rows)
    if mechanism.local and options.row_key is None:
        if options.suppress_below is not None:
            without_rare(schema, [], mechanism, options.suppress_below)  # which refuses it
        members = table.members(schema, drop_nulls=options.nulls == "drop", progress=progress)
        check_some(len(members))
        said = warnings(mechanism, schema, None, options.rows_per_person or 1)
        return KeysDraft(terms.with_notes(said), members, key, progress)
    return codes_draft(table, options, terms, key, progress)


def codes_draft(
    table: Table, options: PerturbOptions, terms: PerturbTerms, key: Key, progress: Progress
) -> RowsDraft:
    """Rows that are perturbed all at once: by values of each other, or each with its own key."""
    if not table.at_hand:
        what = "a row key" if options.row_key is not None else "replacing values by those of others"
        raise UsageError(
            f"{what} needs all rows at once, and those of {table.name!r} stay on the cluster",
            hint=f"use {spelled('replace', 'uniform')} without {spelled('row_key')}, or perturb a "
            "file of this machine",
        )
    codes, keys = table.columns_of_codes(
        terms.schema,
        drop_nulls=options.nulls == "drop",
        row_key=options.row_key,
        progress=progress,
    )
    check_some(len(codes[0]))
    check_keys(keys, options.row_key)
    kept = without_rare(terms.schema, codes, terms.mechanism, options.suppress_below)
    schema, codes, mechanism = kept.schema, kept.codes, kept.mechanism
    progress.start("perturbing", len(codes))
    shown = shuffled(mechanism, schema, codes, key, progress)
    check_perturbed(mechanism, schema, codes, shown)
    said = warnings(mechanism, schema, options.row_key, options.rows_per_person or 1)
    found = replace(terms, schema=schema, mechanism=mechanism)
    return RowsDraft(found.with_notes([*kept.notes, *said]), shown, keys)


def check_some(rows: int) -> None:
    """Refuse a table of which no row is left."""
    if not rows:
        raise TableError(
            "no row is without NULLs",
            hint=f"use {spelled('nulls', 'as-value')}, or leave columns out",
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
    terms = PerturbTerms(
        schema,
        mechanism,
        name=name,
        nulls=nulls,
        simulated=simulated,
        collected=collected,
        suppressed_below=suppressed_below,
    )
    draft = RowsDraft(terms, codes)
    return cast("LocalRelease", put(draft, target, overwrite=overwrite, entry=entry, sign=sign))


@dataclass(frozen=True, eq=False)
class PerturbTerms:
    """What was done to rows, and what is said of it."""

    schema: Schema
    mechanism: Local
    name: str
    nulls: Nulls
    simulated: bool = False
    collected: bool = False
    suppressed_below: int | None = None
    row_key: str | None = None
    rows_in: int = 0
    notes: tuple[str, ...] = ()
    people: ProtectedPeople | None = None

    def with_notes(self, more: Sequence[str]) -> PerturbTerms:
        """The same with more to say."""
        return replace(self, notes=(*self.notes, *more))

    def manifest(self, parts: list[File], rows: int) -> LocalManifest:
        """Of a release of so many rows, in these files."""
        schema, mechanism = self.schema, self.mechanism
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
        rows = release.manifest.rows
        return Perturbation(release, self.rows_in, self.rows_in - rows, self.notes)


@dataclass(frozen=True, eq=False)
class KeysDraft(WrittenDraft):
    """Rows that are perturbed where they lie, each on its own."""

    terms: PerturbTerms
    members: Members
    key: Key
    progress: Progress

    def write(self, folder: Path) -> LocalManifest:
        """Perturb, and write rows in an order that discloses nothing."""
        terms, rows = self.terms, len(self.members)
        step = RowPerturber(terms.mechanism, tuple(terms.schema.sizes), blocks_of(rows))
        (folder / "data").mkdir()
        shown = self.members.stepped(step, self.key, self.progress)
        self.progress.start("writing", rows)
        writer = RowWriter(terms.schema, files_of(rows))
        done = shown.write(writer, folder / "data", self.key, self.progress)
        check_kept(terms.mechanism, terms.schema, done.figures)
        files = [file_entry(folder, part.path, part.rows) for part in done.parts]
        return terms.manifest(files, sum(part.rows for part in done.parts))

    def done(self, release: LocalRelease) -> Perturbation:
        """What the steward is shown of the release."""
        return self.terms.done(release)


@dataclass(frozen=True, eq=False)
class RowsDraft(WrittenDraft):
    """Perturbed rows that are ready to be written, and what was done to them."""

    terms: PerturbTerms
    codes: list[Codes]
    keys: pa.Array | None = None

    def write(self, folder: Path) -> LocalManifest:
        """Rows are sorted: their order discloses nothing."""
        (folder / "data").mkdir()
        schema, row_key = self.terms.schema, self.terms.row_key
        parts = (
            write_sorted(folder, schema, self.codes)
            if self.keys is None or row_key is None
            else write_keyed(folder, schema, self.codes, row_key, self.keys)
        )
        return self.terms.manifest(parts, len(self.codes[0]))

    def done(self, release: LocalRelease) -> Perturbation:
        """What the steward is shown of the release."""
        return self.terms.done(release)


def write_sorted(folder: Path, schema: Schema, codes: list[Codes]) -> list[File]:
    """The rows in files of a few million, each in the order of the domain."""
    keys = TupleIndex(schema.sizes).encode(codes)
    keys.sort()
    members, writer = LocalMembers(schema.sizes, keys), RowWriter(schema, files_of(len(keys)))
    done = members.write(writer, folder / "data", Key.fresh())
    return [file_entry(folder, part.path, part.rows) for part in done.parts]


def write_keyed(
    folder: Path, schema: Schema, codes: list[Codes], name: str, keys: pa.Array
) -> list[File]:
    """One part of a table, in the order of its keys."""
    order = pc.sort_indices(keys).to_numpy()
    path = folder / "data" / "part-00000.parquet"
    rows = write_table(path, schema, [c[order] for c in codes], name, keys.take(pa.array(order)))
    return [file_entry(folder, path, rows)]
