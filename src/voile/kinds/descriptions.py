"""The files beside the data: for people, for other tools, and the manifest that seals them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from voile.kinds.classes.manifest import ClassManifest
from voile.kinds.counts.manifest import ConjunctManifest
from voile.kinds.manifest import (
    DATA_PACKAGE,
    HISTORY_FILES,
    MANIFEST,
    Manifest,
    ViewManifest,
    file_entry,
)
from voile.query.rows import HISTORY

M = TypeVar("M", bound=Manifest)


def write_descriptions(folder: Path, manifest: M, describe: Callable[[M], str]) -> None:
    """README.md and datapackage.json beside the data, then the manifest that seals them all."""
    texts = {
        "README.md": describe(manifest) + "\n",
        DATA_PACKAGE: json.dumps(data_package(manifest), ensure_ascii=False, indent=1) + "\n",
    }
    files = list(manifest.files)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        files.append(file_entry(folder, folder / name))
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (folder / MANIFEST).write_text(sealed.text(), encoding="utf-8")


def data_package(manifest: Manifest) -> dict[str, Any]:
    """The rows as a Frictionless data package."""
    kind = "perturbed rows"
    if isinstance(manifest, ViewManifest):
        kind = "a noisy view"
    if isinstance(manifest, ClassManifest):
        return class_package(manifest)
    if isinstance(manifest, ConjunctManifest):
        return conjunct_package(manifest)
    types = {"categorical": "string", "numeric": "number"}
    slug = slug_of(manifest)
    fields = [
        {"name": a["name"], "type": types.get(a["kind"], a["kind"])} for a in manifest.attributes
    ]
    resource = {
        "name": f"{slug}-view",
        "path": [f.path for f in manifest.files if not f.path.startswith(HISTORY_FILES)],
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
        "schema": {"fields": fields},
    }
    return {
        "name": slug,
        "title": f"{manifest.name}: {kind}, published with Voile",
        "description": "See README.md and manifest.json. Counts must be corrected for the noise.",
        "resources": [resource, *history_resource(manifest, slug, resource)],
    }


def class_package(manifest: ClassManifest) -> dict[str, Any]:
    """Classes of rows, each folder of files as one table of the package."""
    slug = slug_of(manifest)
    folders = sorted({f.path.split("/")[0] for f in manifest.files if f.rows is not None})
    resources = [
        {
            "name": f"{slug}-{folder}",
            "path": [f.path for f in manifest.files if f.path.startswith(f"{folder}/")],
            "format": "parquet",
            "mediatype": "application/vnd.apache.parquet",
        }
        for folder in folders
    ]
    return {
        "name": slug,
        "title": f"{manifest.name}: classes of rows, published with Voile",
        "description": "See README.md and manifest.json. Ranges stand for one value each.",
        "resources": resources,
    }


def conjunct_package(manifest: ConjunctManifest) -> dict[str, Any]:
    """Tables of counts, each set of columns as one table of the package."""
    slug = slug_of(manifest)
    resources = [
        {
            "name": f"{slug}-{number}",
            "title": ", ".join(some),
            "path": [file.path],
            "format": "parquet",
            "mediatype": "application/vnd.apache.parquet",
        }
        for number, (some, file) in enumerate(
            zip(manifest.sets, manifest.files, strict=True), start=1
        )
    ]
    return {
        "name": slug,
        "title": f"{manifest.name}: noisy tables of counts, published with Voile",
        "description": "See README.md and manifest.json. Every figure has noise.",
        "resources": resources,
    }


def slug_of(manifest: Manifest) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", manifest.name.lower()).strip("-") or "view"


def history_resource(manifest: Manifest, slug: str, view: dict[str, Any]) -> list[dict[str, Any]]:
    """The histories of a series as a second table of the package."""
    files = [f.path for f in manifest.files if f.path.startswith(HISTORY_FILES)]
    if not files:
        return []
    fields = [*view["schema"]["fields"], {"name": HISTORY, "type": "string"}]
    return [view | {"name": f"{slug}-history", "path": files, "schema": {"fields": fields}}]
