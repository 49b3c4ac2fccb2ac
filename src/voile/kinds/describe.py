"""The description of a release: README.md in plain words, and datapackage.json."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from voile.engines.encode import column_type
from voile.kinds.manifest import CHOSEN, NULL_WORDS, Disclosed, Manifest
from voile.kinds.people import kept_lines
from voile.schema import Attribute, Bins, Range, Schema
from voile.schema.attribute import plain
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
    columns: Sequence[dict[str, Any]] | None = None,
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


def fields(manifest: Manifest) -> list[dict[str, Any]]:
    """The columns of the schema, as fields of a Table Schema."""
    return [field_of(attribute) for attribute in manifest.schema_]


MOST_LISTED = 1000
"""Values that a field lists; of more it has the first and the last one."""
MISSING = [""]
"""What stands for NULL where rows are text; in Parquet NULL is itself."""


def field_of(attribute: Attribute) -> dict[str, Any]:
    """A column with what is public of it: its type, and the values that it may have."""
    kind = TYPES.get(attribute.kind, attribute.kind)
    domain = attribute.domain
    if attribute.kind == "integer" and isinstance(domain, Bins):
        kind = "number"  # the middle of a bin may be half a whole number
    allowed: dict[str, Any] = {"required": not attribute.null}
    if attribute.kind == "boolean":
        pass
    elif domain.size <= MOST_LISTED and not isinstance(domain, Range):
        allowed["enum"] = [plain(value) for value in domain]
    elif attribute.kind != "categorical":
        allowed |= {"minimum": plain(domain.at(0)), "maximum": plain(domain.at(domain.size - 1))}
    return {"name": attribute.name, "type": kind, "constraints": allowed}


ARROW_FIELDS = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_date, "date"),
)


def arrow_field(field: Any, schema: Schema) -> dict[str, Any]:
    """A column of a file: as the schema has it, where it is one of the schema's as it is."""
    if field.name in schema.names:
        attribute = schema[field.name]
        if field.type == column_type(attribute):
            return field_of(attribute)
    kind = next((word for fits, word in ARROW_FIELDS if fits(field.type)), "string")
    return {"name": field.name, "type": kind, "constraints": {"required": not field.nullable}}


def with_fields(folder: Path, found: dict[str, Any], manifest: Manifest) -> dict[str, Any]:
    """A data package of which every table says what its columns are."""
    schema = manifest.schema_
    tables = []
    for given in found["resources"]:
        said, first = given.get("schema"), folder / next(iter(given["path"]), "")
        if said is None and first.is_file():
            said = {"fields": [arrow_field(f, schema) for f in pq.read_schema(first)]}
        table = given if said is None else {**given, "schema": {**said, "missingValues": MISSING}}
        tables.append(table)
    return {**found, "resources": tables}


def slug_of(manifest: Manifest) -> str:
    """The name of the table, as a data package may have it."""
    return re.sub(r"[^a-z0-9._-]+", "-", manifest.name.lower()).strip("-") or "view"
