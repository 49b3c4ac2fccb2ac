"""The steps from a private table to a release, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, overload

from voile import __version__
from voile.engines import connect
from voile.engines.table import Table
from voile.errors import TableError, UsageError, did_you_mean
from voile.kinds.classes.grouping import group_table
from voile.kinds.classes.release import ClassRelease
from voile.kinds.classes.wish import GROUPINGS, Grouping
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.counts.steps import count_table
from voile.kinds.counts.wish import CONJUNCTS
from voile.kinds.descriptions import write_descriptions
from voile.kinds.done import Done
from voile.kinds.manifest import File, Parameters, ViewManifest
from voile.kinds.options import check_options
from voile.kinds.release import Release
from voile.kinds.staging import Staging, place_for, removed_with
from voile.kinds.views.describe import describe
from voile.kinds.views.noise_prior import is_learnt, noise_prior
from voile.kinds.views.release import ViewRelease
from voile.kinds.views.terms import disclosed, guarantee, parameters_of, promised
from voile.kinds.views.view import ViewWriter
from voile.kinds.views.wish import (
    METHODS,
    POSTERIOR,
    Wish,
    check_domain,
    check_name,
    check_nulls,
    check_size,
    choose_schema,
    linked_list,
    promise_for,
    weak_prior,
    weakened,
)
from voile.mechanisms import AlphaBeta, Publishing, Shaped
from voile.mechanisms.alphabeta import as_set
from voile.noise import Key
from voile.privacy import DGamma, Form, plan
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


@overload
def publish(
    table: Any, method: Literal["alphabeta"] = "alphabeta", *given: Any, **more: Any
) -> ViewRelease: ...
@overload
def publish(table: Any, method: Grouping, **more: Any) -> ClassRelease: ...
@overload
def publish(table: Any, method: Literal["conjuncts"], **more: Any) -> ConjunctRelease: ...
def publish(
    table: Any,
    method: str = "alphabeta",
    prior_factor: float | None = None,
    posterior: float = POSTERIOR,
    retention: float | None = None,
    columns: Sequence[str] | None = None,
    rows: Form | None = None,
    simulate_seed: int | None = None,
    **more: Any,
) -> Release:
    """Publish a table: a path, a data frame, or what `voile.read` returned.

    Promises (d, γ)-privacy with d = prior_factor·n/m (default 10) and γ = posterior. `more` are
    the other options of `Wish`: prior, schema, nulls, distinct, adversary, max_view_ratio, name;
    series, views, changes_at_most, always_fresh, ledger; and `to`, the release's folder, which a
    series needs. Without it the release lives in a temporary folder until `release.save(path)`.

    Methods mondrian, anatomy, fulldomain, suppress, freeshape and trivial group rows into classes:
    their options are those of `GroupWish`: qi, sensitive, k, l, t, semantic, recode, …. Method
    conjuncts publishes tables of counts: arity, subsets or direct, delta and eta or rho, noise.
    """
    known = [*METHODS, *GROUPINGS, *CONJUNCTS]
    if method not in known:
        raise UsageError(f"method {method!r} is not known", hint=did_you_mean(method, known))
    if method in CONJUNCTS:
        own: dict[str, Any] = {
            "method": method,
            "columns": columns,
            "simulate_seed": simulate_seed,
        }
        return count_table(table, **own, **more).release
    if method in GROUPINGS:
        return published_classes(table, method, columns, simulate_seed, more)
    wish: dict[str, Any] = {
        "method": method,
        "prior_factor": prior_factor,
        "posterior": posterior,
        "retention": retention,
        "columns": columns,
        "rows": rows,
        "simulate_seed": simulate_seed,
    }
    return publish_table(table, **wish, **more).release


def published_classes(
    table: Any,
    method: str,
    columns: Sequence[str] | None,
    simulate_seed: int | None,
    more: dict[str, Any],
) -> ClassRelease:
    if columns is not None:
        raise UsageError(
            f"columns are for method alphabeta, not for {method}",
            hint="name qi, sensitive, insensitive and identifiers",
        )
    return group_table(table, method=method, simulate_seed=simulate_seed, **more).release


def publish_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **wish: Any,
) -> Publication:
    """Publish and tell the steward about it. `to` names the release's folder."""
    asked = wish_for(wish)
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


def wish_for(options: dict[str, Any]) -> Wish:
    check_options(Wish, options)
    return Wish(**options)


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


def prepare(table: Table, wish: Wish, progress: Progress) -> Prepared:
    """Read and check the table, and find the promise."""
    rows = len(table)
    if not rows:
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    schema, notes = choose_schema(table, wish)
    name = wish.name or wish.series or table.name
    check_name(name)
    check_domain(schema.size)
    check_nulls(table, schema, wish.nulls)
    progress.start("reading", rows)
    members = table.keys(schema, drop_nulls=wish.drop_nulls, progress=progress)
    if wish.form == "set":
        members = as_set(members, drop_repetitions=wish.distinct)
    if not len(members):
        raise TableError(
            "no row is without NULLs", hint="use --nulls as-value, or leave columns out"
        )
    promise = promise_for(Fraction(len(members), schema.size), wish)
    return Prepared(name, rows, schema, members, promise, tuple(notes), progress)


def choose_mechanism(prepared: Prepared, wish: Wish) -> Publishing:
    mechanism = planned_mechanism(prepared, wish)
    check_size(mechanism, len(prepared.members), prepared.schema.size)
    return mechanism


def planned_mechanism(prepared: Prepared, wish: Wish) -> Publishing:
    if wish.noise_prior is not None:
        return shaped(prepared, wish)
    planned = plan(
        prepared.promise,
        wish.form,
        retention=wish.retention,
        max_view_ratio=wish.max_view_ratio,
        domain_ratio=Fraction(prepared.schema.size, len(prepared.members)),
    )
    return AlphaBeta(planned.retention, planned.noise, wish.form)


def shaped(prepared: Prepared, wish: Wish) -> Shaped:
    assert wish.noise_prior is not None  # noqa: S101
    schema = prepared.schema
    prior = noise_prior(wish.noise_prior, schema, prepared.members, drop_nulls=wish.drop_nulls)
    planned = plan_shaped(
        prepared.promise,
        prepared.promise.prior * float(schema.size),
        prior,
        schema.sizes,
        floor_share=NOISE_FLOOR if wish.noise_floor is None else wish.noise_floor,
        retention=wish.retention,
    )
    return Shaped(**asdict(planned), prior=prior, sizes=tuple(schema.sizes))


def write(prepared: Prepared, wish: Wish, target: Path, *, overwrite: bool) -> ViewRelease:
    """Perturb, write beside, verify, put in place."""
    schema, mechanism = prepared.schema, choose_mechanism(prepared, wish)
    key = key_of(wish)
    learnt = isinstance(mechanism, Shaped) and is_learnt(mechanism.prior, schema, prepared.members)
    tells_rows = wish.tells_rows or learnt
    parameters = parameters_of(mechanism, schema, distinct=wish.distinct, learnt=learnt)
    with Staging(target, overwrite=overwrite) as staging:
        writer = ViewWriter(staging.folder, mechanism, schema, key, prepared.progress)
        parts = writer.write(prepared.members)
        manifest = manifest_of(
            prepared, wish, mechanism, parameters, parts, rows_are_public=tells_rows
        )
        write_descriptions(staging.folder, manifest, describe)
        staging.commit()
    return ViewRelease.open(target)


def key_of(wish: Wish, view: int = 0) -> Key:
    """The secret of a release, or what a simulation has instead; another one for each view."""
    seed = wish.simulate_seed
    return Key.fresh() if seed is None else Key.from_seed(seed + (view << 64))


def manifest_of(
    prepared: Prepared,
    wish: Wish,
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
        simulated=wish.simulate_seed is not None,
        nulls=wish.nulls,
        disclosed=disclosed(schema, parameters, rows_are_public=rows_are_public),
        public_rows=len(prepared.members) if rows_are_public else None,
        rows=sum(part.rows or 0 for part in parts if part.path.startswith("data/")),
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=parts,
    )
