"""From a private table to a release: read, plan, perturb, verify, put in place."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from voile import __version__
from voile.describe import describe
from voile.engines.duckdb import NULLS, Nulls, Table
from voile.engines.parquet import sha256, write_part
from voile.errors import PromiseError, ReleaseError, TableError, UsageError
from voile.manifest import Disclosed, Epsilon, File, Guarantee, Manifest, Parameters
from voile.mechanisms import AlphaBeta
from voile.mechanisms.alphabeta import as_set
from voile.noise import Key
from voile.privacy import Adversary, DGamma, Form, plan
from voile.release import Release, Staging, keep_alive, temporary_target
from voile.schema import Keys, Schema, TupleIndex
from voile.schema.infer import ColumnProfile

METHODS = ("alphabeta",)
RANGE_ROWS = 2**20
"""Expected noise rows of a range of D, the unit of work; it fits a core's memory many times."""
FILE_RANGES = 4
MOST_ROWS = 4_000_000_000
PRIOR_FACTOR, POSTERIOR = 10.0, 0.2


class Progress(Protocol):
    """Told how far a long step is; silent by default."""

    def start(self, what: str, total: int) -> None: ...
    def advance(self, count: int) -> None: ...


class Silent:
    def start(self, what: str, total: int) -> None:
        pass

    def advance(self, count: int) -> None:
        pass


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
    to: Path | None = None,
    overwrite: bool = False,
    method: str = "alphabeta",
    prior_factor: float | None = None,
    prior: float | None = None,
    posterior: float = POSTERIOR,
    adversary: Adversary = "independent",
    retention: float | None = None,
    max_view_ratio: float | None = None,
    columns: Sequence[str] | None = None,
    schema: Schema | str | Path | None = None,
    nulls: Nulls = "error",
    rows: Form | None = None,
    distinct: bool = False,
    name: str | None = None,
    simulate_seed: int | None = None,
    progress: Progress | None = None,
) -> Publication:
    """Publish and tell the steward about it. `to` names the release's folder."""
    form = check_options(method, rows, distinct, nulls, prior_factor, prior)
    table = table if isinstance(table, Table) else Table(table)
    progress = progress or Silent()
    target, home = (to, None) if to else temporary_target()
    staging = Staging(target, overwrite=overwrite)  # refuses before any work is done

    before = len(table)
    domain, notes = choose_schema(table, columns, schema, nulls)
    check_nulls(table, domain, nulls)
    progress.start("reading", before)
    members = table.keys(domain, drop_nulls=nulls == "drop", progress=progress.advance)
    dropped = before - len(members)
    if form == "set":
        members = as_set(members, drop_repetitions=distinct)
    if not len(members):
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")

    promise = promise_for(len(members), domain.size, prior_factor, prior, posterior, adversary)
    planned = plan(
        promise,
        form,
        retention=retention,
        max_view_ratio=max_view_ratio,
        domain_ratio=Fraction(domain.size, len(members)),
    )
    mechanism = AlphaBeta(planned.retention, planned.noise, form)
    check_size(mechanism, len(members), domain.size)
    key = Key.fresh() if simulate_seed is None else Key.from_seed(simulate_seed)

    with staging:
        parts = write_view(staging.folder, mechanism, members, domain, key, progress)
        manifest = Manifest(
            voile=__version__,
            name=name or table.name,
            parameters=Parameters(
                form=form, retention=mechanism.retention, noise=mechanism.noise
            ),
            guarantee=guarantee(promise, mechanism),
            simulated=key.simulated,
            nulls=nulls,
            disclosed=disclosed(domain, prior is None),
            public_rows=len(members) if prior is None else None,
            rows=sum(part.rows or 0 for part in parts),
            domain_size=str(domain.size),
            attributes=domain.to_dict()["attributes"],
            files=parts,
        )
        write_descriptions(staging.folder, manifest)
        staging.commit()
    release = Release.open(target)
    if home:
        keep_alive(release, home)
    return Publication(release, len(members), dropped, tuple(notes))


# ---------------------------------------------------------------------- what was asked for


def check_options(
    method: str,
    rows: str | None,
    distinct: bool,
    nulls: str,
    prior_factor: float | None,
    prior: float | None,
) -> Form:
    """Which form is used is the steward's choice, never the data's: the choice would leak."""
    if method not in METHODS:
        raise UsageError(f"method {method!r} is not known", hint=f"there is {', '.join(METHODS)}")
    if rows not in (None, "set", "multiset"):
        raise UsageError(f"rows {rows!r} is not known", hint="use 'multiset' or 'set'")
    if nulls not in NULLS:
        raise UsageError(f"nulls {nulls!r} is not known", hint=f"use {', '.join(NULLS)}")
    if distinct and rows != "set":
        raise UsageError("--distinct belongs to --rows set", hint="add --rows set, or leave it out")
    if prior_factor is not None and prior is not None:
        raise UsageError("a prior and a prior factor were given", hint="give one of them")
    if prior_factor is not None and not (prior_factor > 0 and math.isfinite(prior_factor)):
        raise UsageError(f"prior-factor {prior_factor} must be positive")
    return "set" if rows == "set" else "multiset"


def choose_schema(
    table: Table,
    columns: Sequence[str] | None,
    schema: Schema | str | Path | None,
    nulls: Nulls,
) -> tuple[Schema, list[str]]:
    """The public domain: the declared one, or what the chosen columns hold."""
    notes: list[str] = []
    if schema is not None:
        declared = schema if isinstance(schema, Schema) else Schema.open(schema)
        if columns is not None:
            declared = declared.select(columns)
        table.check_columns(declared.names)
        if left := [c for c in table.columns if c not in declared.names]:
            notes.append(f"left out, not in the schema: {', '.join(left)}")
        table.check_declared(declared)
        return declared, notes
    names = table.check_columns(columns if columns is not None else list(table.columns))
    profiles = table.profiles(names)
    if columns is None:
        refuse_identifiers(profiles, names)
    domain = table.infer(names, nulls)
    notes.append("the domain was read off the table; declare it with --schema to disclose less")
    return domain, notes


def refuse_identifiers(profiles: Sequence[ColumnProfile], names: Sequence[str]) -> None:
    """A column that names people is published only when asked for by name."""
    suspects = [p for p in profiles if p.looks_like_identifier]
    if suspects:
        first = suspects[0]
        others = [n for n in names if n not in {p.name for p in suspects}]
        raise TableError(
            f"column {first.name!r} looks like an identifier ({first.distinct:,} different values "
            f"in {first.rows:,} rows): the release would list them all",
            hint=f"choose the columns: --columns {','.join(others)}",
        )


def check_nulls(table: Table, schema: Schema, nulls: Nulls) -> None:
    if nulls != "error":
        return
    allowed = {a.name for a in schema if a.null}
    found = {
        name: count
        for name, count in table.null_counts(schema.names).items()
        if name not in allowed
    }
    if found:
        listed = ", ".join(f"{name!r} ({count:,} rows)" for name, count in found.items())
        raise TableError(
            f"there are NULLs in {listed}",
            hint="--nulls drop leaves such rows out; --nulls as-value makes NULL one more value",
        )


def promise_for(
    rows: int,
    size: int,
    prior_factor: float | None,
    prior: float | None,
    posterior: float,
    adversary: Adversary,
) -> DGamma:
    """d is given, or k times n/m, the prior of someone who knows only the table's size."""
    if prior is None:
        factor = PRIOR_FACTOR if prior_factor is None else prior_factor
        d = Fraction(factor) * Fraction(rows, size)
        most = posterior * size / rows
        if d >= Fraction(posterior):
            raise PromiseError(
                f"prior factor {factor:g} means d = {float(d):.6g}, which is not below the "
                f"posterior γ = {posterior:.6g}: Theorem 4.3 needs d ≤ γ",
                hint=f"nearest feasible: --prior-factor below {most:.4g}, or --posterior above "
                f"{float(d):.4g}"
                + ("" if d < 1 else " (impossible: the domain is too small for the table)"),
            )
        prior = float(d)
    return DGamma(prior, posterior, adversary)


def check_size(mechanism: AlphaBeta, rows: int, size: int) -> None:
    expected = Fraction(mechanism.retention) * rows + Fraction(mechanism.noise_mean) * size
    if expected > MOST_ROWS:
        raise PromiseError(
            f"this promise needs a view of about {float(expected):.3g} rows",
            hint="use fewer or coarser columns, a smaller prior, a larger posterior, "
            "or --max-view-ratio",
        )


def guarantee(promise: DGamma, mechanism: AlphaBeta) -> Guarantee:
    """The promise as it is written down, with what follows from the likelihood ratio."""
    ratio = mechanism.likelihood_ratio()
    one = "one record, i.e. one person with one row, whatever the other rows are"
    return Guarantee(
        prior=promise.prior,
        posterior=promise.posterior,
        adversary=promise.adversary,
        unit=one if mechanism.form == "multiset" else "one tuple of the table, which is a set",
        epsilon=Epsilon(
            add_remove=finite(ratio.epsilon("add-remove")), swap=finite(ratio.epsilon("swap"))
        ),
    )


def finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def disclosed(schema: Schema, rows_are_public: bool) -> list[Disclosed]:
    found = []
    if rows_are_public:
        found.append(
            Disclosed(
                what="the number of rows of the table",
                why="the prior was asked for as a multiple of n/m; with --prior it is not told",
            )
        )
    if schema.active:
        found.append(
            Disclosed(
                what=f"which values occur in {', '.join(schema.active)}",
                why="their domain was read off the table; a declared schema tells nothing",
            )
        )
    return found


# ---------------------------------------------------------------------- writing the view


def write_view(
    folder: Path,
    mechanism: AlphaBeta,
    members: Keys,
    schema: Schema,
    key: Key,
    progress: Progress,
) -> list[File]:
    """Perturb and write, a file for each few ranges of D, on all cores.

    The ranges depend on the domain and the parameters alone, so that the same key gives the same
    bytes on any machine, and so that files tell nothing about the private rows.
    """
    (folder / "data").mkdir()
    index = TupleIndex(schema.sizes)
    cuts = range_cuts(index.limbs[0].size, mechanism.noise_mean * float(schema.size))
    progress.start("writing", len(cuts) - 1)
    bounds = [int(np.searchsorted(members, index.first_key(cut))[0]) for cut in cuts[:-1]]
    bounds.append(len(members))
    noise_counts: list[int] = []

    def write_file(number: int) -> File:
        path = folder / "data" / f"part-{number:05d}.parquet"
        ranges = range(number * FILE_RANGES, min((number + 1) * FILE_RANGES, len(cuts) - 1))

        def batches() -> Any:
            for i in ranges:
                noise = mechanism.noise_rows(index, key, i, cuts[i], cuts[i + 1])
                noise_counts.append(len(noise))
                yield from mechanism.view(members[bounds[i] : bounds[i + 1]], noise, key, i)
                progress.advance(1)

        rows = write_part(path, schema, batches())
        return described(folder, path, rows)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        files = list(pool.map(write_file, range(math.ceil((len(cuts) - 1) / FILE_RANGES))))
    check_noise(mechanism, sum(noise_counts), schema.size)
    return files


def range_cuts(size: int, expected: float) -> list[int]:
    """Equal ranges of the first word of D, each with about RANGE_ROWS rows of noise."""
    count = min(size, max(1, math.ceil(expected / RANGE_ROWS)))
    return [size * i // count for i in range(count + 1)]


def check_noise(mechanism: AlphaBeta, drawn: int, size: int) -> None:
    """The noise that was drawn must be what the promise needs, up to ten standard deviations.

    A sound sampler fails this less than once in 10²⁰ releases; one with a few per cent too
    little noise always does on tables of the usual size.
    """
    mean = mechanism.noise_mean * float(size)
    spread = math.sqrt(mechanism.noise_variance * float(size))
    if abs(drawn - mean) > 10 * spread + 50:
        raise ReleaseError(
            f"{drawn:,} noise rows were drawn where {mean:,.0f} ± {spread:,.0f} are needed",
            hint="nothing was released; please report this",
        )


def described(folder: Path, path: Path, rows: int | None = None) -> File:
    return File(
        path=path.relative_to(folder).as_posix(),
        bytes=path.stat().st_size,
        sha256=sha256(path),
        rows=rows,
    )


def write_descriptions(folder: Path, manifest: Manifest) -> None:
    """README.md and datapackage.json beside the data, then the manifest that seals them all."""
    texts = {
        "README.md": describe(manifest) + "\n",
        "datapackage.json": json.dumps(data_package(manifest), ensure_ascii=False, indent=1) + "\n",
    }
    files = list(manifest.files)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        files.append(described(folder, folder / name))
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (folder / "manifest.json").write_text(sealed.text(), encoding="utf-8")


def data_package(manifest: Manifest) -> dict[str, Any]:
    """The view as a Frictionless data package."""
    types = {"categorical": "string", "numeric": "number"}
    slug = re.sub(r"[^a-z0-9._-]+", "-", manifest.name.lower()).strip("-") or "view"
    fields = [
        {"name": a["name"], "type": types.get(a["kind"], a["kind"])} for a in manifest.attributes
    ]
    resource = {
        "name": f"{slug}-view",
        "path": [file.path for file in manifest.files],
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
        "schema": {"fields": fields},
    }
    return {
        "name": slug,
        "title": f"{manifest.name}: a noisy view, published with Voile",
        "description": "See README.md and manifest.json. Counts must be corrected for the noise.",
        "resources": [resource],
    }
