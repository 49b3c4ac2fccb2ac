"""Files of a release that are looked at where they lie: what each owes, and the job that looks.

The job runs on executors, which have NumPy and Arrow alone; it believes nothing in a file before
its digest is the one that the manifest states.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from voile.arrow import numpy_array
from voile.errors import ReleaseError, VoileError
from voile.files import sha256
from voile.kinds.footers import check_own_bytes, checked_metadata
from voile.schema import Attribute, Schema, Values

if TYPE_CHECKING:
    from voile.kinds.manifest import File
    from voile.kinds.release import Release

ZEROS_AT_A_TIME = 2**16
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class PartTerms:
    """What the manifest and its schema say of a Parquet file."""

    name: str
    sha256: str
    rows: int
    longest: int = 0
    """How many bytes the longest listed value has."""
    columns: Any = None
    """Its Arrow schema; None: only what opening a release needs is looked at."""
    signs: Mapping[str, bool] = field(default_factory=dict)
    """By column of floats, whether the zero of its domain is -0.0."""


def part_terms(release: Release, file: File, longest: int, *, thorough: bool) -> PartTerms:
    """What is owed by a file."""
    columns = release.columns_of(file.path) if thorough else None
    signs = zero_signs(release.schema, columns) if thorough else {}
    return PartTerms(file.path, file.sha256, file.rows or 0, longest, columns, signs)


def zero_signs(schema: Schema, columns: Any) -> dict[str, bool]:
    """By column of floats, whether the zero that its domain lists is -0.0."""
    known = {attribute.name: lists_negative_zero(attribute) for attribute in schema}
    return {f.name: known.get(f.name, False) for f in columns if str(f.type) == "double"}


def lists_negative_zero(attribute: Attribute) -> bool:
    """Whether the zero that a domain lists is -0.0."""
    listed = attribute.domain.values if isinstance(attribute.domain, Values) else ()
    return any(isinstance(v, float) and v == 0 and math.copysign(1, v) < 0 for v in listed)


def check_part(path: Path, part: PartTerms, *, pages: bool = True) -> None:
    """The file has its rows and columns, no zero of another sign, and no bytes besides."""
    metadata = checked_metadata(path, part.name, part.rows, pages=pages, longest=part.longest)
    if part.columns is None:
        return
    columns = metadata.schema.to_arrow_schema()
    if columns.names != part.columns.names or columns.types != part.columns.types:
        raise ReleaseError(f"{part.name} does not have the columns of the schema")
    check_own_bytes(path, part.name)
    check_zeros(path, part.name, part.signs)


def check_zeros(path: Path, name: str, signs: Mapping[str, bool]) -> None:
    """Zeros have the sign of the one that the domain lists: it would tell rows apart unseen."""
    if not signs:
        return
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ZEROS_AT_A_TIME, columns=list(signs)):
            for column in batch.column_names:
                values = numpy_array(batch.column(column), 1.0)
                zeros = values[values == 0]
                if (np.signbit(zeros) != signs[column]).any():
                    raise ReleaseError(
                        f"column {column!r} has values outside the domain of the schema: {name} "
                        "has zeros of both signs"
                    )


@dataclass(frozen=True)
class LookAtParts:
    """Digests and faults of files, whose numbers are dealt out."""

    folder: str
    parts: tuple[PartTerms, ...]

    @property
    def output(self) -> pa.Schema:
        """The number of a file, its digest, and what is wrong with it; empty if nothing is."""
        texts = [pa.field(name, pa.string()) for name in ("sha256", "fault")]
        return pa.schema([pa.field("part", pa.int64()), *texts])

    def __call__(self, batches: Batches) -> Batches:
        """One file after the other."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                row = [pa.array([value]) for value in (number, *self.seen(self.parts[number]))]
                yield pa.RecordBatch.from_arrays(row, schema=self.output)

    def seen(self, part: PartTerms) -> tuple[str, str]:
        """The digest of a file, and its fault."""
        from voile.storage import StoredFolder  # noqa: PLC0415  (who verifies a folder has none)

        store = StoredFolder.of(self.folder)
        try:
            with tempfile.TemporaryDirectory(prefix="voile-") as folder:
                path = Path(store.uri(part.name)) if store.is_local else Path(folder) / "part"
                digest = sha256(path) if store.is_local else store.fetch(part.name, path)
                if digest == part.sha256:
                    check_part(path, part)
        except VoileError as error:
            return "", error.message
        except OSError as error:
            return "", f"{part.name} cannot be read: {error.strerror or error}"
        return digest, ""
