"""The kinds of releases: reading a manifest, and which class opens it."""

from __future__ import annotations

import json
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from voile.errors import ReleaseError, VoileError
from voile.kinds.classes.manifest import ClassManifest, Grouped
from voile.kinds.classes.release import ClassRelease
from voile.kinds.counts.manifest import ConjunctManifest
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.manifest import FORMAT, VERSION, Manifest, ViewManifest
from voile.kinds.perturbed.manifest import LocalManifest
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.release import Release
from voile.kinds.views.release import ViewRelease

METHODS: dict[str, type[Manifest]] = {
    "alphabeta": ViewManifest,
    "retention": LocalManifest,
    "frapp": LocalManifest,
    "conjuncts": ConjunctManifest,
    **dict.fromkeys(get_args(Grouped), ClassManifest),
}
KINDS: dict[type[Manifest], type[Release]] = {
    ViewManifest: ViewRelease,
    LocalManifest: LocalRelease,
    ClassManifest: ClassRelease,
    ConjunctManifest: ConjunctRelease,
}


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of all kinds of manifests."""
    return TypeAdapter(
        ViewManifest | LocalManifest | ClassManifest | ConjunctManifest
    ).json_schema()


def read_manifest(raw: bytes) -> Manifest:
    """Parse and check a manifest; every byte of it counts."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ReleaseError(f"manifest.json is not JSON that can be read: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReleaseError("manifest.json is not that of a Voile release")
    version = data.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ReleaseError(
            f"the release has format version {version!r}, newer than {VERSION}",
            hint="open it with a newer Voile",
        )
    try:
        manifest = METHODS.get(str(data.get("method")), ViewManifest).model_validate(data)
        schema = manifest.schema_
        manifest.check()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ReleaseError(f"manifest.json: {where}: {first['msg']}") from None
    except (VoileError, ValueError) as error:
        raise ReleaseError(f"manifest.json: {error}") from None
    if not manifest.is_whole(raw):
        raise ReleaseError("manifest.json was changed after the release was written")
    if str(schema.size) != manifest.domain_size:
        raise ReleaseError(
            f"manifest.json: domain_size {manifest.domain_size} is not {schema.size}"
        )
    return manifest
