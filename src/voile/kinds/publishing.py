"""From a private table to a release, the same for every kind."""

from __future__ import annotations

import json
from pathlib import Path

from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, Manifest, file_entry
from voile.kinds.registry import kind_of


def write_descriptions(folder: Path, manifest: Manifest) -> None:
    """README.md and datapackage.json beside the data, then the manifest that seals them all."""
    kind = kind_of(manifest.method)
    package = json.dumps(kind.data_package(manifest), ensure_ascii=False, indent=1)
    texts = {"README.md": kind.describe(manifest) + "\n", DATA_PACKAGE: package + "\n"}
    files = list(manifest.files)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        files.append(file_entry(folder, folder / name))
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (folder / MANIFEST).write_text(sealed.text(), encoding="utf-8")
