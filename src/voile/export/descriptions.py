"""Descriptions of a release's own files, for catalogues: Croissant, DDI-Codebook, data packages."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError
from voile.kinds.describe import arrow_field, with_fields
from voile.kinds.manifest import MANIFEST, README
from voile.kinds.registry import kind_of

if TYPE_CHECKING:
    from voile.kinds.release import Release


@dataclass(frozen=True)
class DescribedTable:
    """Files of a release that make one table."""

    name: str
    title: str
    files: tuple[Any, ...]
    """As the manifest lists them."""
    fields: tuple[Mapping[str, Any], ...]
    """Columns, as a Table Schema has them."""

    @property
    def rows(self) -> int:
        """Of all its files."""
        return sum(file.rows or 0 for file in self.files)


def package_of(release: Release) -> dict[str, Any]:
    """The data package as it was when only the data had been written."""
    data = [file for file in release.manifest.files if file.rows is not None]
    manifest = release.manifest.model_copy(update={"files": data})
    return kind_of(manifest.method).data_package(manifest)


def described(release: Release) -> list[DescribedTable]:
    """The tables of a release, as its data package parts its files."""
    package = package_of(release)
    known = {file.path: file for file in release.manifest.files}
    found = []
    for table in package["resources"]:
        files = tuple(known[path] for path in sorted(table["path"]) if path in known)
        if not files:
            continue
        columns = release.columns_of(files[0].path)
        fields = tuple(arrow_field(column, release.schema) for column in columns)
        found.append(DescribedTable(table["name"], table.get("title") or "", files, fields))
    return found


def where(release: Release, target: Path, path: str) -> str:
    """A file of the release, as it is found from where the description lies."""
    if release.mirror is not None:
        return release.mirror.store.uri(path)
    try:
        relative = os.path.relpath(release.path.resolve() / path, target.resolve().parent)
    except ValueError:  # of Windows: no path leads from one drive to another
        raise UsageError(
            f"{str(target)!r} is on another drive than the release, whose files it names",
            hint="write it on the release's drive",
        ) from None
    return Path(relative).as_posix()


def sentence(release: Release) -> str:
    """What the release is and promises, in a few lines."""
    simulated = "Simulation, made from a chosen seed: it protects nobody. " * (
        release.manifest.simulated
    )
    return (
        f"{simulated}{release.name}: {release.kind}, published with Voile. Promise: "
        f"{release.promise_in_short}. How to count from it is in {README}."
    )


def manifest_digest(release: Release) -> str:
    """SHA-256 of manifest.json, which has those of all other files."""
    return hashlib.sha256((release.path / MANIFEST).read_bytes()).hexdigest()


# ----------------------------------------------------------------------
# datapackage.json


def data_package(release: Release, target: Path) -> bytes:
    """The release's data package with a schema of every table, to lie beside the release."""
    manifest = release.manifest
    full = with_fields(release.path, package_of(release), manifest)
    hashes = {file.path: file for file in manifest.files}
    for table in full["resources"]:
        files = [hashes[path] for path in table["path"]]
        table["path"] = [where(release, target, path) for path in table["path"]]
        if len(files) == 1:
            table |= {"hash": f"sha256:{files[0].sha256}", "bytes": files[0].bytes}
    full["description"] = sentence(release)
    return (json.dumps(full, ensure_ascii=False, indent=1) + "\n").encode()


def croissant(release: Release, target: Path) -> bytes:
    """As `croissant.croissant_of` has it."""
    from voile.export.croissant import croissant_of  # noqa: PLC0415  (one of several)

    found = croissant_of(release, target, described(release))
    return (json.dumps(found, ensure_ascii=False, indent=1) + "\n").encode()


def ddi(release: Release, target: Path) -> bytes:
    """As `ddi.codebook_of` has it."""
    from voile.export.ddi import codebook_of  # noqa: PLC0415

    return codebook_of(release, target, described(release))


WRITERS: Mapping[str, Callable[[Release, Path], bytes]] = {
    "croissant": croissant, "datapackage": data_package, "ddi": ddi,
}  # fmt: skip
"""What writes each description."""
