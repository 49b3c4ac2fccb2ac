"""The steps from a private table to a release, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack, cast

from voile import __version__
from voile.engines import connect
from voile.engines.members import Members
from voile.engines.table import Table
from voile.errors import ReleaseError, SchemaError, TableError, UsageError, spelled
from voile.kinds.chances import MOST_VALUES, from_mapping, read_mapping
from voile.kinds.domain import check_domain, check_name, check_nulls, choose_schema
from voile.kinds.manifest import File, file_entry
from voile.kinds.people import people_of
from voile.kinds.publishing import PublishResult, WrittenDraft
from voile.kinds.registration import Registrar
from voile.kinds.registry import kind_of
from voile.kinds.views.alphabeta import AlphaBeta, Publishing, as_set
from voile.kinds.views.manifest import (
    Parameters,
    ViewManifest,
    disclosed,
    guarantee,
    parameters_of,
    promised,
)
from voile.kinds.views.options import ViewOptions, ViewTableKeywords
from voile.kinds.views.promise import (
    check_size,
    linked_list,
    of_one_record,
    promise_for,
    weak_prior,
    weakened,
)
from voile.kinds.views.release import ViewRelease
from voile.kinds.views.shaped import Shaped
from voile.kinds.views.writing import ViewWriter
from voile.noise import Key
from voile.privacy import DGamma, plan
from voile.privacy.planner import plan_shaped
from voile.progress import Progress
from voile.schema import Keys, Schema
from voile.schema.index import Product, whole_parts
from voile.schema.schema import large
from voile.signing import KeySource

# ----------------------------------------------------------------------
# where noise is shaped: reading the prior, from a file or from the columns of a table


OWN = "product"
"""The word for the marginals of the table itself."""

Given = Any
"""A path, the word `product`, a mapping, or any table that Voile reads."""


def noise_prior(given: Given, schema: Schema, members: Members, *, drop_nulls: bool) -> Product:
    """The prior of the options: the table's own marginals, a file's, or a public table's."""
    if isinstance(given, Mapping):
        return from_mapping(given, schema, "noise_prior")
    if isinstance(given, str) and given == OWN:
        return own_marginals(members, schema)
    if isinstance(given, str | Path) and Path(given).suffix.lower() in (".yaml", ".yml", ".json"):
        return from_mapping(read_mapping(Path(given)), schema, str(given))
    public = connect(given)
    name = str(given) if isinstance(given, str | Path) else public.name
    public.check_columns(schema.names)
    if not public.used_rows(schema, drop_nulls=drop_nulls):
        raise UsageError(f"noise prior {name!r} has no complete row", hint="name another table")
    try:
        return own_marginals(public.members(schema, drop_nulls=drop_nulls), schema)
    except SchemaError as error:
        raise SchemaError(
            f"noise prior {name!r}: {error.message}",
            hint="it must have the same columns and lie in the same domain as the table",
        ) from None


def is_learnt(prior: Product, schema: Schema, members: Members) -> bool:
    """Whether a prior is the table's own marginals, by whatever way they were given."""
    own = own_marginals(members, schema).parts
    return all(parts is None or parts == mine for parts, mine in zip(prior.parts, own, strict=True))


def own_marginals(members: Members, schema: Schema) -> Product:
    """How often each value occurs, attribute by attribute."""
    listed = [j for j, a in enumerate(schema) if a.size <= MOST_VALUES]
    counts = dict(zip(listed, members.column_counts(listed), strict=True))
    found = [counts.get(j) for j in range(len(schema.names))]
    return Product(tuple(None if c is None else whole_parts(c.tolist()) for c in found))


# ----------------------------------------------------------------------
# writing the view, and whether as much noise was drawn as it needs


def write_view(
    folder: Path,
    writer: ViewWriter,
    members: Members,
    key: Key,
    progress: Progress,
) -> list[File]:
    """The files of a view of these records."""
    (folder / "data").mkdir()
    expected = writer.mechanism.expected_noise(writer.schema.size)
    kept = writer.mechanism.retention * len(members)
    progress.start("writing", round(expected + kept))
    done = members.write(writer, folder / "data", key, progress)
    check_noise(writer.mechanism, int(done.figures["noise"]), writer.schema.size)
    return [file_entry(folder, part.path, part.rows) for part in done.parts]


def check_noise(mechanism: Publishing, drawn: int, size: int) -> None:
    """The noise that was drawn must be what the promise needs, up to ten standard deviations.

    A sound sampler fails this less than once in 10²⁰ releases; one with a few per cent too
    little noise always does on tables of the usual size.
    """
    mean, spread = mechanism.expected_noise(size), mechanism.noise_deviation(size)
    if abs(drawn - mean) > 10 * spread + 50:
        raise ReleaseError(
            f"{drawn:,} noise rows were drawn where {mean:,.0f} ± {spread:,.0f} are needed",
            hint="nothing was released; please report this",
        )


# ----------------------------------------------------------------------
# the steps from a private table to a release, in order


NOISE_FLOOR = 0.1
"""The share of shaped noise that is spread evenly, unless the options say otherwise."""


@dataclass(frozen=True)
class Publication(PublishResult):
    """A view that was published."""

    release: ViewRelease
    series: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The publication as JSON shows it."""
        return {**super().to_dict(), "series": self.series}

    def facts(self) -> list[tuple[str, str]]:
        """What the steward is shown of it, by name."""
        manifest = self.release.manifest
        g, p = manifest.guarantee, manifest.parameters
        return [
            ("rows", f"{self.rows_in:,} in, {manifest.rows:,} out"
                     + (f" ({self.rows_dropped:,} left out)" if self.rows_dropped else "")),
            ("domain", f"{large(int(manifest.domain_size))} tuples"),
            ("promise", f"beliefs up to {g.prior:.3g} stay below {g.posterior:.3g} "
                        f"({g.adversary} adversaries, {p.form})"),
            ("parameters", f"retention {p.retention:.6g}, noise {p.noise:.6g}"),
            *([("series", series_line(self.series))] if self.series else []),
        ]  # fmt: skip


def series_line(series: dict[str, Any]) -> str:
    """Which view of its series was published, in a line."""
    what = "the identical view again, nothing spent" if series["identical"] else "a new view"
    return f"{series['name']}: view {series['view']} of at most {series['views']}, {what}"


def publish_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: Registrar | None = None,
    **options: Unpack[ViewTableKeywords],
) -> Publication:
    """Publish a view, and say what the steward should know. `to` names the release's folder."""
    done = kind_of("alphabeta").publish(
        table,
        to=to,
        overwrite=overwrite,
        progress=progress,
        register=register,
        sign=sign,
        **options,
    )
    return cast("Publication", done)


def publication(
    prepared: ViewInput, release: ViewRelease, series: dict[str, Any] | None = None
) -> Publication:
    """The publication of a release, with notes about what its promise leaves open."""
    notes = (
        *prepared.notes,
        *weak_prior(release.promise, prepared.schema.size),
        *weakened(prepared.promise, release.promise),
        *linked_list(release.promise, release.manifest.likelihood_ratio),
    )
    dropped = prepared.rows - len(prepared.records)
    return Publication(release, prepared.rows, dropped, notes, series)


@dataclass(frozen=True)
class ViewInput:
    """A table that has been read, and a promise for it."""

    name: str
    rows: int
    schema: Schema
    records: Members
    promise: DGamma
    notes: tuple[str, ...]
    progress: Progress

    @property
    def members(self) -> Keys:
        """The keys of the records, sorted, in this process."""
        return self.records.keys


def prepare(table: Table, options: ViewOptions, progress: Progress) -> ViewInput:
    """Read and check the table, and find the promise."""
    rows = len(table)
    if not rows:
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    schema, notes = choose_schema(table, options.columns, options.schema_, options.nulls)
    name = options.name or options.series or table.name
    check_name(name)
    check_domain(schema.size)
    check_nulls(table, schema, options.nulls)
    progress.start("reading", rows)
    members = table.members(schema, drop_nulls=options.drop_nulls, progress=progress)
    if options.form == "set":
        members = as_set(members, drop_repetitions=options.distinct)
    if not len(members):
        raise TableError(
            "no row is without NULLs",
            hint=f"use {spelled('nulls', 'as-value')}, or leave columns out",
        )
    promise = promise_for(Fraction(len(members), schema.size), options)
    return ViewInput(name, rows, schema, members, promise, tuple(notes), progress)


def choose_mechanism(prepared: ViewInput, options: ViewOptions) -> Publishing:
    """The mechanism that keeps the promise; refused where its view would be too large."""
    mechanism = planned_mechanism(prepared, options)
    check_size(mechanism, len(prepared.records), prepared.schema.size)
    return mechanism


def planned_mechanism(prepared: ViewInput, options: ViewOptions) -> Publishing:
    """The mechanism that keeps the promise with the least error."""
    if options.noise_prior is not None:
        return shaped(prepared, options)
    planned = plan(
        of_one_record(prepared.promise, options.rows_per_person or 1),
        options.form,
        retention=options.retention,
        max_view_ratio=options.max_view_ratio,
        domain_ratio=Fraction(prepared.schema.size, len(prepared.records)),
    )
    return AlphaBeta(planned.retention, planned.noise, options.form)


def shaped(prepared: ViewInput, options: ViewOptions) -> Shaped:
    """The mechanism with noise that follows a prior."""
    assert options.noise_prior is not None  # noqa: S101
    schema = prepared.schema
    prior = noise_prior(
        options.noise_prior, schema, prepared.records, drop_nulls=options.drop_nulls
    )
    planned = plan_shaped(
        prepared.promise,
        prepared.promise.prior * float(schema.size),
        prior,
        schema.sizes,
        floor_share=NOISE_FLOOR if options.noise_floor is None else options.noise_floor,
        retention=options.retention,
    )
    return Shaped(**asdict(planned), prior=prior, sizes=tuple(schema.sizes))


@dataclass(frozen=True, eq=False)
class ViewDraft(WrittenDraft):
    """A table that was read, and the noise that its view will have."""

    prepared: ViewInput
    options: ViewOptions
    mechanism: Publishing

    def write(self, folder: Path) -> ViewManifest:
        """Perturb, and write the view."""
        prepared, options, mechanism = self.prepared, self.options, self.mechanism
        schema, members = prepared.schema, prepared.records
        learnt = isinstance(mechanism, Shaped) and is_learnt(mechanism.prior, schema, members)
        parameters = parameters_of(mechanism, schema, distinct=options.distinct, learnt=learnt)
        writer = ViewWriter(mechanism, schema)
        parts = write_view(folder, writer, members, key_of(options), prepared.progress)
        public = options.tells_rows or learnt
        return manifest_of(prepared, options, mechanism, parameters, parts, rows_are_public=public)

    def done(self, release: ViewRelease) -> Publication:
        """What the steward is shown of the release."""
        return publication(self.prepared, release)


def view_draft(table: Table, options: ViewOptions, _target: Path, progress: Progress) -> ViewDraft:
    """Read the table, and plan the noise."""
    prepared = prepare(table, options, progress)
    return ViewDraft(prepared, options, choose_mechanism(prepared, options))


def key_of(options: ViewOptions, view: int = 0) -> Key:
    """The secret of a release, or what a simulation has instead; another one for each view."""
    seed = options.simulate_seed
    return Key.fresh() if seed is None else Key.from_seed(seed + (view << 64))


def manifest_of(
    prepared: ViewInput,
    options: ViewOptions,
    mechanism: Publishing,
    parameters: Parameters,
    parts: list[File],
    *,
    rows_are_public: bool,
) -> ViewManifest:
    """What the release says about itself, but for the files that are still to be written."""
    schema, promise = prepared.schema, promised(prepared.promise, mechanism)
    return ViewManifest(
        voile=__version__,
        name=prepared.name,
        parameters=parameters,
        guarantee=guarantee(
            promise,
            mechanism,
            parameters,
            rows_are_public=rows_are_public,
            people=people_of(options),
        ),
        people=people_of(options),
        simulated=options.simulate_seed is not None,
        nulls=options.nulls,
        disclosed=disclosed(schema, parameters, rows_are_public=rows_are_public),
        public_rows=len(prepared.records) if rows_are_public else None,
        rows=sum(part.rows or 0 for part in parts if part.path.startswith("data/")),
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=parts,
    )
