"""A release: all that leaves the house, in one folder that describes itself.

NAME.voile/
  manifest.json      what it is, what is promised, the public domain, a hash of every file
  datapackage.json   the same columns for tools that know Frictionless data packages
  README.md          how to read it and to count from it without Voile
  data/part-*.parquet
"""

from __future__ import annotations

import html
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from voile.engines.parquet import arrow_schema
from voile.engines.view import BinPoint, View
from voile.errors import ReleaseError, UsageError
from voile.estimate import Answer, Bound, checked_confidence
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma
from voile.query import Atom, Query, domain_count, parse
from voile.release.describe import describe, explain_count
from voile.release.manifest import MANIFEST, PARTIAL, Manifest, read_manifest
from voile.schema import Bins, Schema


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
        if PARTIAL in folder.resolve().name:
            raise ReleaseError(
                f"{str(path)!r} was left by a run that did not finish", hint="delete it"
            )
        return cls.read(folder)

    @classmethod
    def read(cls, folder: Path) -> Release:
        """Read a folder that may not be in its place yet."""
        try:
            raw = (folder / MANIFEST).read_bytes()
        except OSError:
            raise ReleaseError(
                f"{str(folder)!r} has no manifest.json: not a release, or one that is incomplete"
            ) from None
        manifest = read_manifest(raw)
        for file in manifest.files:
            check_inside(file.path)
            found = folder / file.path
            inside = found.resolve().is_relative_to(folder.resolve())
            if not found.is_file() or found.is_symlink() or not inside:
                raise ReleaseError(f"{file.path} is missing from {str(folder)!r}")
            if found.stat().st_size != file.bytes:
                raise ReleaseError(f"{file.path} was changed: it does not have {file.bytes} bytes")
        return cls(folder, manifest)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Release:
        """Copy to a folder of that name: written beside, verified, then renamed into place."""
        from voile.release.staging import copy  # noqa: PLC0415  (it opens what it has written)

        return copy(self, Path(path), overwrite=overwrite)

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

    def _counts(self, sql: str) -> tuple[Query, int, int]:
        """What was asked, n_V and n_D."""
        query = parse(sql, self.schema)
        self._view.check([atom.sql for atom in query.atoms])
        seen = self._view.count(query.where) if query.predicate else self.manifest.rows
        return query, seen, domain_count(query.predicate, self.schema, self._view)

    def _notes(self, query: Query, domain: int) -> tuple[str, ...]:
        """What the analyst should know about this answer."""
        notes = []
        if not domain:
            notes.append("no tuple of the public domain satisfies the condition; check the "
                         "spelling of values")  # fmt: skip
        if query.atoms and not any(atom.attributes for atom in query.atoms):
            notes.append("the condition reads no column; names go in double quotes, text in single")
        if not query.atoms and self.manifest.public_rows is not None:
            notes.append(f"the release tells the number of rows: {self.manifest.public_rows:,}")
        cut = [atom.sql for atom in query.atoms if self._cuts_a_bin(atom)]
        if cut:
            notes.append(f"{' and '.join(cut)} cuts inside a bin: rows count by the middle of "
                         "theirs, and the interval does not cover that; cut at the edges of the "
                         "schema's bins")  # fmt: skip
        return tuple(notes)

    def _cuts_a_bin(self, atom: Atom) -> bool:
        """Whether a condition on binned attributes differs at the ends of a bin."""
        binned = [n for n in atom.attributes if isinstance(self.schema[n].domain, Bins)]
        if not binned:
            return False
        points: list[BinPoint] = ["low", "middle", "high"]
        counts = {self._view.domain_count(atom.attributes, f"TRY({atom.sql})", p) for p in points}
        return len(counts) > 1

    def query(self, sql: str, confidence: float = 0.95) -> Answer:
        """Estimate what the SQL would count in the original table."""
        checked_confidence(confidence)
        query, seen, domain = self._counts(sql)
        estimate = self.mechanism.estimate(
            seen,
            domain,
            confidence=confidence,
            rows=self.manifest.public_rows,
            bound=self._bound(round(1 - confidence, 12)),
        )
        notes = self._notes(query, domain)
        return Answer(({query.alias: estimate},), confidence, estimate.covers, notes)

    def explain(self, sql: str) -> dict[str, Any]:
        """How the estimate comes about: what was counted, and the arithmetic."""
        query, seen, domain = self._counts(sql)
        mechanism = self.mechanism
        estimate = mechanism.estimate(seen, domain, rows=self.manifest.public_rows)
        return {
            "name": query.alias,
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

    def foreign_attribute(self) -> str | None:
        """An attribute with values outside its domain, which no sound release has."""
        return self._view.outside()

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


def check_inside(path: str) -> None:
    """A manifest names files inside its folder, never elsewhere."""
    if Path(path).is_absolute() or ".." in Path(path).parts or "\\" in path:
        raise ReleaseError(f"manifest.json names a file outside the release: {path!r}")
