"""The page of a release in plain words, from what is particular to its kind."""

from __future__ import annotations

from collections.abc import Sequence

from voile.kinds.manifest import Manifest
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
        "## What the release tells exactly",
        *(f"- {d.what}: {d.why}" for d in manifest.disclosed),
        *(["- nothing beyond the promise"] if not manifest.disclosed else []),
        "",
        *before,
        "## How to count from it without Voile",
        *counting,
        "",
        f"NULLs in the table: {null_words(manifest)}. Written by Voile {manifest.voile}.",
    ]
    return "\n".join(lines)


def null_words(manifest: Manifest) -> str:
    return {
        "error": "refused, except where the schema has NULL as a value",
        "drop": "rows with one were left out",
        "as-value": "kept, as one more value of their attribute",
    }[manifest.nulls]
