"""Croissant 1.0, the description of data sets that ML Commons keeps: croissant.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.export.descriptions import DescribedTable, sentence, where
from voile.kinds.manifest import MANIFEST, README

if TYPE_CHECKING:
    from voile.kinds.release import Release

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty",
            "fileObject", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key",
            "md5", "parentField", "path", "recordSet", "references", "regex", "repeated",
            "replace", "samplingRate", "separator", "source", "subField", "transform",
        )
    },
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}  # fmt: skip
"""The terms of Croissant 1.0, as its specification gives them."""
TYPES = {
    "string": "sc:Text", "integer": "sc:Integer", "number": "sc:Float", "boolean": "sc:Boolean",
    "date": "sc:Date",
}  # fmt: skip
PARQUET = "application/x-parquet"
"""The word that readers of Croissant know Parquet by."""


def croissant_of(
    release: Release, target: Path, tables: Sequence[DescribedTable]
) -> dict[str, Any]:
    """A release's files and columns, as JSON-LD."""
    manifest = release.manifest
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name_of(manifest.name),
        "description": sentence(release),
        "version": f"1.0.0+{manifest.digest[:12]}",
        "identifier": f"sha256:{manifest.digest}",
        "distribution": distribution(release, target, tables),
        "recordSet": [record_set(table) for table in tables],
    }


def name_of(text: str) -> str:
    """A name without what a name in JSON-LD may not hold."""
    return "".join(c if c.isalnum() or c in " _-." else "-" for c in text).strip() or "release"


def distribution(
    release: Release, target: Path, tables: Sequence[DescribedTable]
) -> list[dict[str, Any]]:
    """Every file with its digest, and a set for each table of several files."""
    found: list[dict[str, Any]] = []
    for file in release.manifest.files:
        kind = PARQUET if file.path.endswith(".parquet") else None
        plain = "text/markdown" if file.path == README else "application/json"
        found.append(
            {
                "@type": "cr:FileObject",
                "@id": file.path,
                "name": file.path,
                "contentUrl": where(release, target, file.path),
                "contentSize": f"{file.bytes} B",
                "encodingFormat": kind or plain,
                "sha256": file.sha256,
            }
        )
    found.append(manifest_file(release, target))
    for table in tables:
        if len(table.files) > 1:
            folder = where(release, target, table.files[0].path).rpartition("/")[0]
            found.append(
                {
                    "@type": "cr:FileSet",
                    "@id": f"{table.name}-files",
                    "name": f"{table.name}-files",
                    "containedIn": [{"@id": file.path} for file in table.files],
                    "encodingFormat": PARQUET,
                    "includes": f"{folder}/*.parquet",
                }
            )
    return found


def manifest_file(release: Release, target: Path) -> dict[str, Any]:
    """manifest.json, which says what is promised."""
    from voile.export.descriptions import manifest_digest  # noqa: PLC0415

    return {
        "@type": "cr:FileObject",
        "@id": MANIFEST,
        "name": MANIFEST,
        "description": "What is promised, the public domain, and a digest of every file.",
        "contentUrl": where(release, target, MANIFEST),
        "encodingFormat": "application/json",
        "sha256": manifest_digest(release),
    }


def record_set(table: DescribedTable) -> dict[str, Any]:
    """A table with its columns."""
    several = len(table.files) > 1
    files: Mapping[str, Any] = (
        {"fileSet": {"@id": f"{table.name}-files"}}
        if several
        else {"fileObject": {"@id": table.files[0].path}}
    )
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": f"{table.title or table.name}, {table.rows:,} rows.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table.name}/{field['name']}",
                "name": f"{table.name}/{field['name']}",
                "description": values_in_words(field),
                "dataType": TYPES[field["type"]],
                "source": {**files, "extract": {"column": field["name"]}},
            }
            for field in table.fields
        ],
    }


def values_in_words(field: Mapping[str, Any]) -> str:
    """What values a column may have."""
    allowed = field["constraints"]
    if "enum" in allowed:
        some = ", ".join(map(str, allowed["enum"][:20]))
        more = f", … ({len(allowed['enum'])} values)" if len(allowed["enum"]) > 20 else ""
        text = f"one of {some}{more}"
    elif "minimum" in allowed:
        text = f"from {allowed['minimum']} to {allowed['maximum']}"
    else:
        text = field["type"]
    return text if allowed.get("required", True) else f"{text}, or missing"
