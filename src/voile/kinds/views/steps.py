"""The steps from a private table to a release, in order."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from voile import __version__
from voile.engines import connect
from voile.engines.table import Table
from voile.errors import TableError, UsageError, spelled
from voile.kinds.domain import check_domain, check_name, check_nulls, choose_schema
from voile.kinds.done import Done
from voile.kinds.manifest import File
from voile.kinds.publishing import write_descriptions
from voile.kinds.staging import Staging, place_for, removed_with
from voile.kinds.views.manifest import Parameters, ViewManifest
from voile.kinds.views.noise_prior import is_learnt, noise_prior
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import check_size, linked_list, promise_for, weak_prior, weakened
from voile.kinds.views.release import ViewRelease
from voile.kinds.views.terms import disclosed, guarantee, parameters_of, promised
from voile.kinds.views.view import ViewWriter
from voile.mechanisms import AlphaBeta, Publishing, Shaped
from voile.mechanisms.alphabeta import as_set
from voile.noise import Key
from voile.privacy import DGamma, plan
from voile.privacy.planner import plan_shaped
from voile.progress import Progress, Silent
from voile.schema import Keys, Schema

NOISE_FLOOR = 0.1
"""The share of shaped noise that is spread evenly, if not asked for."""


@dataclass(frozen=True)
class Publication(Done):
    """A view that was published."""

    release: ViewRelease
    series: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "series": self.series}


def publish_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Publication:
    """Publish and tell the steward about it. `to` names the release's folder."""
    asked = ViewOptions(**options)
    if to is None and asked.series is not None:
        raise UsageError(
            "a view of a series needs a place: unchanged tables give the same view again",
            hint=f'voile.publish(…, series="{asked.series}", to="v1.voile")',
        )
    with place_for(to, overwrite=overwrite) as target:
        source = connect(table)
        if asked.series is not None:
            from voile.kinds.views.series import publish_view  # noqa: PLC0415  (made of these steps)

            done = publish_view(source, asked, target, overwrite=overwrite, progress=progress)
        else:
            prepared = prepare(source, asked, progress or Silent())
            done = told(prepared, write(prepared, asked, target, overwrite=overwrite))
    if to is None:
        removed_with(done.release)
    return done


def told(
    prepared: Prepared, release: ViewRelease, series: dict[str, Any] | None = None
) -> Publication:
    notes = (
        *prepared.notes,
        *weak_prior(release.promise, prepared.schema.size),
        *weakened(prepared.promise, release.promise),
        *linked_list(release.promise, release.mechanism.likelihood_ratio()),
    )
    dropped = prepared.rows - len(prepared.members)
    return Publication(release, prepared.rows, dropped, notes, series)


@dataclass(frozen=True)
class Prepared:
    """A table that has been read, and a promise for it."""

    name: str
    rows: int
    schema: Schema
    members: Keys
    promise: DGamma
    notes: tuple[str, ...]
    progress: Progress


def prepare(table: Table, options: ViewOptions, progress: Progress) -> Prepared:
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
    members = table.keys(schema, drop_nulls=options.drop_nulls, progress=progress)
    if options.form == "set":
        members = as_set(members, drop_repetitions=options.distinct)
    if not len(members):
        raise TableError(
            "no row is without NULLs",
            hint=f"use {spelled('nulls', 'as-value')}, or leave columns out",
        )
    promise = promise_for(Fraction(len(members), schema.size), options)
    return Prepared(name, rows, schema, members, promise, tuple(notes), progress)


def choose_mechanism(prepared: Prepared, options: ViewOptions) -> Publishing:
    mechanism = planned_mechanism(prepared, options)
    check_size(mechanism, len(prepared.members), prepared.schema.size)
    return mechanism


def planned_mechanism(prepared: Prepared, options: ViewOptions) -> Publishing:
    if options.noise_prior is not None:
        return shaped(prepared, options)
    planned = plan(
        prepared.promise,
        options.form,
        retention=options.retention,
        max_view_ratio=options.max_view_ratio,
        domain_ratio=Fraction(prepared.schema.size, len(prepared.members)),
    )
    return AlphaBeta(planned.retention, planned.noise, options.form)


def shaped(prepared: Prepared, options: ViewOptions) -> Shaped:
    assert options.noise_prior is not None  # noqa: S101
    schema = prepared.schema
    prior = noise_prior(
        options.noise_prior, schema, prepared.members, drop_nulls=options.drop_nulls
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


def write(
    prepared: Prepared, options: ViewOptions, target: Path, *, overwrite: bool
) -> ViewRelease:
    """Perturb, write beside, verify, put in place."""
    schema, mechanism = prepared.schema, choose_mechanism(prepared, options)
    key = key_of(options)
    learnt = isinstance(mechanism, Shaped) and is_learnt(mechanism.prior, schema, prepared.members)
    tells_rows = options.tells_rows or learnt
    parameters = parameters_of(mechanism, schema, distinct=options.distinct, learnt=learnt)
    with Staging(target, overwrite=overwrite) as staging:
        writer = ViewWriter(staging.folder, mechanism, schema, key, prepared.progress)
        parts = writer.write(prepared.members)
        manifest = manifest_of(
            prepared, options, mechanism, parameters, parts, rows_are_public=tells_rows
        )
        write_descriptions(staging.folder, manifest)
        staging.commit()
    return ViewRelease.open(target)


def key_of(options: ViewOptions, view: int = 0) -> Key:
    """The secret of a release, or what a simulation has instead; another one for each view."""
    seed = options.simulate_seed
    return Key.fresh() if seed is None else Key.from_seed(seed + (view << 64))


def manifest_of(
    prepared: Prepared,
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
        guarantee=guarantee(promise, mechanism, parameters, rows_are_public=rows_are_public),
        simulated=options.simulate_seed is not None,
        nulls=options.nulls,
        disclosed=disclosed(schema, parameters, rows_are_public=rows_are_public),
        public_rows=len(prepared.members) if rows_are_public else None,
        rows=sum(part.rows or 0 for part in parts if part.path.startswith("data/")),
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=parts,
    )
