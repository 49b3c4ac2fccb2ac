"""The description of a release: README.md in plain words, and datapackage.json."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from voile.kinds.manifest import CHOSEN, NULL_WORDS, Disclosed, Manifest
from voile.kinds.people import kept_lines
from voile.schema.schema import large


def page(
    manifest: Manifest,
    *,
    what: str,
    promised: Sequence[str],
    not_promised: Sequence[str],
    counting: Sequence[str],
    before: Sequence[str] = (),
) -> str:
    """The page of any kind of release, from what is particular to it."""
    lines = [f"# {manifest.name}", ""]
    if manifest.simulated:
        lines += ["**Simulation: made from a chosen seed. It protects nobody.**", ""]
    if weakness := manifest.weakness():
        lines += [f"**The promise is weak, and was published knowingly: {weakness}.**", ""]
    lines += [
        f"{what} {len(manifest.attributes)} attributes, "
        f"{large(int(manifest.domain_size))} possible tuples.",
        "",
        "## What is promised",
        *promised,
        "",
        "## What is not promised",
        *not_promised,
        "",
        "## What the release discloses exactly",
        *disclosed_lines(manifest.disclosed),
        "",
        *kept_lines(getattr(manifest, "people", None)),
        *before,
        "## How to count from it without Voile",
        *counting,
        "",
        f"NULLs in the table: {NULL_WORDS[manifest.nulls]}. Written by Voile {manifest.voile}.",
    ]
    return "\n".join(lines)


def disclosed_lines(disclosed: Sequence[Disclosed]) -> list[str]:
    """What is disclosed, and what the steward chose, which the promise is silent about."""
    exact = [f"- {d.what}: {d.why}" for d in disclosed if d.why != CHOSEN]
    chosen = [f"- {d.what}" for d in disclosed if d.why == CHOSEN]
    if chosen:
        chosen = ["", f"Listed as {CHOSEN}:", "", *chosen]
    return [*(exact or ["- nothing beyond the promise"]), *chosen]


# ----------------------------------------------------------------------
# datapackage.json: the files of a release for tools that know Frictionless data packages


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
    """The name of the table, as a data package may have it."""
    return re.sub(r"[^a-z0-9._-]+", "-", manifest.name.lower()).strip("-") or "view"
