"""What the release says about itself: the manifest's terms and the files beside the data."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma
from voile.release.describe import describe
from voile.release.manifest import MANIFEST, Disclosed, Epsilon, Guarantee, Manifest, file_entry
from voile.schema import Schema, Values


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


def disclosed(schema: Schema, *, rows_are_public: bool) -> list[Disclosed]:
    found = []
    if rows_are_public:
        found.append(
            Disclosed(
                what="the number of rows of the table",
                why="the prior, or the size of the view, was asked for relative to it; with "
                "--prior and without --max-view-ratio it is not told",
            )
        )
    why = "their domain was read off the table; a declared schema tells nothing"
    listed = [a.name for a in schema if a.public == "active" and isinstance(a.domain, Values)]
    bounded = [a.name for a in schema if a.public == "active" and a.name not in listed]
    if listed:
        found.append(Disclosed(what=f"which values occur in {', '.join(listed)}", why=why))
    if bounded:
        what = f"about how small and how large values get in {', '.join(bounded)}"
        found.append(Disclosed(what=what, why=why))
    return found


def write_descriptions(folder: Path, manifest: Manifest) -> None:
    """README.md and datapackage.json beside the data, then the manifest that seals them all."""
    texts = {
        "README.md": describe(manifest) + "\n",
        "datapackage.json": json.dumps(data_package(manifest), ensure_ascii=False, indent=1) + "\n",
    }
    files = list(manifest.files)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        files.append(file_entry(folder, folder / name))
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (folder / MANIFEST).write_text(sealed.text(), encoding="utf-8")


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
