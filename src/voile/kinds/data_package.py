"""datapackage.json: the files of a release for tools that know Frictionless data packages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from voile.kinds.manifest import Manifest

TYPES = {"categorical": "string", "numeric": "number"}


def package(
    manifest: Manifest, what: str, description: str, resources: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """A data package with these tables."""
    return {
        "name": slug_of(manifest),
        "title": f"{manifest.name}: {what}, published with Voile",
        "description": f"See README.md and manifest.json. {description}",
        "resources": list(resources),
    }


def resource(
    name: str,
    paths: Sequence[str],
    *,
    title: str | None = None,
    columns: Sequence[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """Parquet files as one table of a package."""
    return {
        "name": name,
        **({} if title is None else {"title": title}),
        "path": list(paths),
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
        **({} if columns is None else {"schema": {"fields": list(columns)}}),
    }


def row_package(
    manifest: Manifest, what: str, description: str = "Counts must be corrected for the noise."
) -> dict[str, Any]:
    """Rows with the columns of the schema, as one table."""
    paths = [f.path for f in manifest.files]
    rows = resource(f"{slug_of(manifest)}-view", paths, columns=fields(manifest))
    return package(manifest, what, description, [rows])


def fields(manifest: Manifest) -> list[dict[str, str]]:
    """The columns of the schema."""
    return [
        {"name": a["name"], "type": TYPES.get(a["kind"], a["kind"])} for a in manifest.attributes
    ]


def slug_of(manifest: Manifest) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", manifest.name.lower()).strip("-") or "view"
