"""The steps from a private table to a release, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from voile import __version__
from voile.engines.duckdb import Nulls, Table
from voile.errors import TableError
from voile.mechanisms import AlphaBeta
from voile.mechanisms.alphabeta import as_set
from voile.noise import Key
from voile.privacy import Adversary, Form, plan
from voile.publishing.descriptions import write_descriptions
from voile.publishing.progress import Progress, Silent
from voile.publishing.view import ViewWriter
from voile.publishing.wish import (
    POSTERIOR,
    check_domain,
    check_name,
    check_nulls,
    check_options,
    check_size,
    choose_schema,
    promise_for,
    weak_prior,
)
from voile.release import Release
from voile.release.manifest import Manifest, Parameters
from voile.release.staging import Staging, check_target, removed_with, temporary_target
from voile.release.terms import disclosed, guarantee
from voile.schema import Schema


@dataclass(frozen=True)
class Publication:
    """What the steward is told; unlike the release, it may hold true counts."""

    release: Release
    rows_in: int
    rows_dropped: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        manifest = self.release.manifest
        return {
            "release": str(self.release.path),
            "method": manifest.method,
            "rows_in": self.rows_in,
            "rows_dropped": self.rows_dropped,
            "rows_out": manifest.rows,
            "domain_size": manifest.domain_size,
            "parameters": manifest.parameters.model_dump(),
            "guarantee": manifest.guarantee.model_dump(),
            "simulated": manifest.simulated,
            "nulls": manifest.nulls,
            "disclosed": [d.model_dump() for d in manifest.disclosed],
            "notes": list(self.notes),
        }


def publish(
    table: Any,
    method: str = "alphabeta",
    *,
    prior_factor: float | None = None,
    posterior: float = POSTERIOR,
    retention: float | None = None,
    columns: Sequence[str] | None = None,
    rows: Form | None = None,
    simulate_seed: int | None = None,
    **options: Any,
) -> Release:
    """Publish a table: a path, a data frame, or what `voile.read` returned.

    Promises (d, γ)-privacy with d = prior_factor·n/m (default 10) or d = `prior`, γ = posterior.
    See `publish_table` for the other options. The release lives in a temporary folder until
    `release.save(path)`.
    """
    return publish_table(
        table,
        method=method,
        prior_factor=prior_factor,
        posterior=posterior,
        retention=retention,
        columns=columns,
        rows=rows,
        simulate_seed=simulate_seed,
        **options,
    ).release


def publish_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    method: str = "alphabeta",
    prior_factor: float | None = None,
    prior: float | None = None,
    posterior: float = POSTERIOR,
    adversary: Adversary = "independent",
    retention: float | None = None,
    max_view_ratio: float | None = None,
    columns: Sequence[str] | None = None,
    schema: Schema | str | Path | Mapping[str, Any] | None = None,
    nulls: Nulls = "error",
    rows: Form | None = None,
    distinct: bool = False,
    name: str | None = None,
    simulate_seed: int | None = None,
    progress: Progress | None = None,
) -> Publication:
    """Publish and tell the steward about it. `to` names the release's folder."""
    form = check_options(
        method, rows, nulls, prior_factor, prior, posterior, adversary, retention, distinct=distinct
    )
    table = table if isinstance(table, Table) else Table(table)
    columns = [columns] if isinstance(columns, str) else columns
    to = None if to is None else Path(to)
    progress = progress or Silent()
    if to:
        check_target(to, overwrite=overwrite)  # before any work is done

    before = len(table)
    if not before:
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    domain, notes = choose_schema(table, columns, schema, nulls)
    check_name(name or table.name)
    check_domain(domain.size)
    check_nulls(table, domain, nulls)
    progress.start("reading", before)
    members = table.keys(domain, drop_nulls=nulls == "drop", progress=progress.advance)
    if form == "set":
        members = as_set(members, drop_repetitions=distinct)
    dropped = before - len(members)
    if not len(members):
        raise TableError(
            "no row is without NULLs", hint="use --nulls as-value, or leave columns out"
        )

    promise = promise_for(
        Fraction(len(members), domain.size), prior_factor, prior, posterior, adversary
    )
    planned = plan(
        promise,
        form,
        retention=retention,
        max_view_ratio=max_view_ratio,
        domain_ratio=Fraction(domain.size, len(members)),
    )
    mechanism = AlphaBeta(planned.retention, planned.noise, form)
    check_size(mechanism, len(members), domain.size)
    # Both make a published parameter a function of n, from which n follows.
    rows_are_public = prior is None or max_view_ratio is not None
    parameters = Parameters(
        form=form, distinct=distinct, retention=mechanism.retention, noise=mechanism.noise
    )
    key = Key.fresh() if simulate_seed is None else Key.from_seed(simulate_seed)

    with Staging(to or temporary_target(), overwrite=overwrite) as staging:
        parts = ViewWriter(staging.folder, mechanism, domain, key, progress).write(members)
        manifest = Manifest(
            voile=__version__,
            name=name or table.name,
            parameters=parameters,
            guarantee=guarantee(promise, mechanism, rows_are_public=rows_are_public),
            simulated=key.simulated,
            nulls=nulls,
            disclosed=disclosed(domain, parameters, rows_are_public=rows_are_public),
            public_rows=len(members) if rows_are_public else None,
            rows=sum(part.rows or 0 for part in parts),
            domain_size=str(domain.size),
            attributes=domain.to_dict()["attributes"],
            files=parts,
        )
        write_descriptions(staging.folder, manifest)
        staging.commit()
    release = Release.open(staging.target)
    return Publication(
        release if to else removed_with(release),
        before,
        dropped,
        (*notes, *weak_prior(promise, domain.size)),
    )
