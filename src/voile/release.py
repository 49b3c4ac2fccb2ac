"""A release: all that leaves the house, in one folder that describes itself.

    NAME.voile/
      manifest.json      what it is, what is promised, the public domain, a hash of every file
      datapackage.json   the same columns for tools that know Frictionless data packages
      README.md          how to read it and to count from it without Voile
      data/part-*.parquet
"""

from __future__ import annotations

import html
import shutil
import tempfile
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from voile.describe import describe, explain_count
from voile.engines.duckdb import View
from voile.engines.parquet import arrow_schema, sha256, sync
from voile.errors import ReleaseError, UsageError
from voile.estimate import Answer, Bound
from voile.manifest import Manifest, read_manifest
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma
from voile.query import domain_count, parse
from voile.schema import Schema

MANIFEST = "manifest.json"


class Release:
    """A published view with what is promised about it; estimates come from `query`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def open(cls, path: str | Path) -> Release:
        """Open a release: reads its manifest and checks that its files are there, whole.

        Reads data only; nothing in a release is ever executed. `verify` checks every byte.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise UsageError(f"there is no release {str(path)!r}", hint="a release is a folder")
        try:
            raw = (folder / MANIFEST).read_bytes()
        except FileNotFoundError:
            raise ReleaseError(
                f"{str(path)!r} has no manifest.json: not a release, or one that is incomplete"
            ) from None
        manifest = read_manifest(raw)
        for file in manifest.files:
            check_inside(file.path)
            found = folder / file.path
            if not found.is_file():
                raise ReleaseError(f"{file.path} is missing from {str(path)!r}")
            if found.stat().st_size != file.bytes:
                raise ReleaseError(
                    f"{file.path} has {found.stat().st_size} bytes, not {file.bytes}: it was changed"
                )
        return cls(folder, manifest)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Release:
        """Copy to a folder of that name: written beside, verified, then renamed into place."""
        target = Path(path)
        with Staging(target, overwrite=overwrite) as staging:
            shutil.copytree(self.path, staging.folder, dirs_exist_ok=True)
            staging.commit()
        return Release.open(target)

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        return self.manifest.name

    @cached_property
    def schema(self) -> Schema:
        return self.manifest.schema_

    @cached_property
    def mechanism(self) -> AlphaBeta:
        return self.manifest.mechanism

    @property
    def promise(self) -> DGamma:
        return self.manifest.promise

    def describe(self) -> str:
        """In plain words: what is promised, against whom, what not, and how to count from it."""
        return describe(self.manifest)

    # ------------------------------------------------------------------ counting from it

    @cached_property
    def _view(self) -> View:
        return View(self._parts, self.schema)

    @property
    def _parts(self) -> list[Path]:
        return [
            (self.path / f.path).resolve()
            for f in self.manifest.files
            if f.path.endswith(".parquet")
        ]

    def _counts(self, sql: str) -> tuple[str, int, int]:
        """The answer's name, n_V and n_D."""
        query = parse(sql, self.schema)
        if query.conditions:
            self._view.check(query.where)
        seen = self._view.count(query.where) if query.conditions else self.manifest.rows
        return query.alias, seen, domain_count(query, self.schema, self._view)

    def query(self, sql: str, confidence: float = 0.95) -> Answer:
        """Estimate what the SQL would count in the original table."""
        check_confidence(confidence)
        alias, seen, domain = self._counts(sql)
        estimate = self.mechanism.estimate(
            seen,
            domain,
            confidence=confidence,
            rows=self.manifest.public_rows,
            bound=self._bound(1 - confidence),
        )
        notes = () if domain else ("no tuple of the public domain satisfies the condition; "
                                   "check the spelling of values",)  # fmt: skip
        return Answer(({alias: estimate},), confidence, estimate.covers, notes)

    def explain(self, sql: str) -> dict[str, Any]:
        """How the estimate comes about: what was counted, and the arithmetic."""
        alias, seen, domain = self._counts(sql)
        mechanism = self.mechanism
        estimate = mechanism.estimate(seen, domain, rows=self.manifest.public_rows)
        return {
            "aggregate": alias,
            "n_view": seen,
            "n_domain": domain,
            "retention": mechanism.retention,
            "noise_mean": mechanism.noise_mean,
            "excess": mechanism.excess,
            "estimate": estimate.value,
            "stderr": estimate.stderr,
            "arithmetic": explain_count(mechanism, seen, domain, estimate.value),
        }

    def _bound(self, epsilon: float) -> Bound:
        rows = self.manifest.public_rows
        if rows is None:
            total = self.mechanism.estimate(self.manifest.rows, self.schema.size).value
            rows = max(1, round(total))
        return self.mechanism.utility(rows, self.schema.size, epsilon)

    # ------------------------------------------------------------------ its rows

    def to_arrow(self) -> Any:
        """The rows of the view, noise and all, as an Arrow table."""
        wanted = arrow_schema(self.schema)
        tables = [pq.read_table(part, partitioning=None).cast(wanted) for part in self._parts]
        return pa.concat_tables(tables) if tables else wanted.empty_table()

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        import polars  # noqa: PLC0415  (an optional package)

        return polars.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"Release({self.name!r}, {self.manifest.rows:,} rows)"

    def __rich__(self) -> Any:
        from rich.markdown import Markdown  # noqa: PLC0415  (only when printed)

        return Markdown(self.describe())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>{self.schema._repr_html_()}"


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise UsageError(
            f"confidence {confidence} must lie between 0 and 1", hint="the default is 0.95"
        )


def check_inside(path: str) -> None:
    """A manifest names files inside its folder, never elsewhere."""
    if Path(path).is_absolute() or ".." in Path(path).parts or "\\" in path:
        raise ReleaseError(f"manifest.json names a file outside the release: {path!r}")


# ---------------------------------------------------------------------- verifying


def verify(path: str | Path) -> Release:
    """Check every byte and the promise again; raises ReleaseError naming what is wrong."""
    release = Release.open(path)
    check_files(release)
    check_rows(release)
    check_promise(release.manifest)
    return release


def check_files(release: Release) -> None:
    named = {file.path: file for file in release.manifest.files}
    for file in named.values():
        if sha256(release.path / file.path) != file.sha256:
            raise ReleaseError(f"{file.path} was changed after the release was written")
    for found in sorted(release.path.rglob("*")):
        relative = found.relative_to(release.path).as_posix()
        if found.is_file() and relative != MANIFEST and relative not in named:
            raise ReleaseError(f"{relative} does not belong to the release")


def check_rows(release: Release) -> None:
    wanted = arrow_schema(release.schema)
    total = 0
    for file in release.manifest.files:
        if file.rows is None:
            continue
        metadata = pq.read_metadata(release.path / file.path)
        columns = metadata.schema.to_arrow_schema()
        if columns.names != wanted.names or columns.types != wanted.types:
            raise ReleaseError(f"{file.path} does not have the columns of the schema")
        if metadata.num_rows != file.rows:
            raise ReleaseError(f"{file.path} has {metadata.num_rows} rows, not {file.rows}")
        total += file.rows
    if total != release.manifest.rows:
        raise ReleaseError(f"the release has {total} rows, not {release.manifest.rows}")


def check_promise(manifest: Manifest) -> None:
    """Ask the mechanism, as it is written down, whether it keeps what is promised."""
    if not manifest.promise.kept_by(manifest.mechanism.likelihood_ratio()):
        raise ReleaseError(
            f"retention {manifest.parameters.retention} and noise {manifest.parameters.noise} do "
            f"not keep d = {manifest.guarantee.prior:.6g}, γ = {manifest.guarantee.posterior:.6g}",
            hint="nothing should be published with these parameters",
        )


# ---------------------------------------------------------------------- writing


class Staging:
    """A folder beside the target that becomes the target, or nothing."""

    def __init__(self, target: Path, *, overwrite: bool = False) -> None:
        self.target = target
        if target.exists() and not overwrite:
            raise UsageError(
                f"{str(target)!r} exists already", hint="choose another name, or pass --overwrite"
            )
        if target.exists() and not (target / MANIFEST).is_file():
            raise UsageError(f"{str(target)!r} is not a release; it is not overwritten")
        if not target.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {str(target.absolute().parent)!r}")

    def __enter__(self) -> Staging:
        parent = self.target.absolute().parent
        try:
            made = tempfile.mkdtemp(prefix=f".{self.target.name}.partial-", dir=parent)
        except OSError as error:
            raise UsageError(f"cannot write to {str(parent)!r}: {error.strerror}") from None
        self.folder = Path(made)
        return self

    def commit(self) -> None:
        """Verify what was written and put it in place in one step."""
        verify(self.folder)
        for path in [*self.folder.rglob("*"), self.folder]:
            sync(path)
        self.folder.chmod(0o755)
        if self.target.exists():
            aside = self.folder.with_name(self.folder.name + "-old")
            self.target.rename(aside)
            self.folder.rename(self.target)
            shutil.rmtree(aside)
        else:
            self.folder.rename(self.target)
        sync(self.target.absolute().parent)

    def __exit__(self, *_: object) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=True)


def temporary_target() -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """Where a release lives that nobody has named yet."""
    home = tempfile.TemporaryDirectory(prefix="voile-")
    return Path(home.name) / "release.voile", home


def keep_alive(release: Release, home: tempfile.TemporaryDirectory[str]) -> Release:
    """Remove the temporary folder when its release is gone."""
    weakref.finalize(release, home.cleanup)
    return release
