"""A perturbed table in plain words, for people who must decide whether to trust or to use it."""

from __future__ import annotations

import math

from voile.mechanisms.retention import Local, WholeRows
from voile.release.describe import null_words
from voile.release.local_manifest import LocalManifest
from voile.schema.schema import large

BELIEFS = (0.01, 0.1, 0.5)
NOT_PROMISED = """\
- Nothing about facts that hold for a whole group: the release exists to show those.
- Nothing about whether a row is there at all, nor about when or from where it was sent.
- Less to someone who knows how the columns of one row hang together: the ε of a row is the sum \
over its columns.
- Less about people who have several rows: each row spends its own ε."""
OWN_VALUES = """\
- Nothing, about columns whose replacements are their own values, against someone who knows that \
a value is rare: where it is seen, it is likely to be somebody's own."""
PUBLIC = """\
- Nothing about columns that are public (retention 1)."""


def describe_local(manifest: LocalManifest) -> str:
    mechanism = manifest.mechanism
    lines = [f"# {manifest.name}", ""]
    if manifest.simulated:
        lines += ["**Simulation: made from a chosen seed. It protects nobody.**", ""]
    who = (
        "by those they are about, before they were sent"
        if manifest.parameters.collected
        else "one by one, where the table was held"
    )
    lines += [
        f"A table of {manifest.rows:,} rows that were perturbed {who}: values were kept by chance, "
        f"or replaced. {len(manifest.attributes)} attributes, "
        f"{large(int(manifest.domain_size))} possible tuples.",
        "",
        "## What is promised",
        *promised(manifest),
        f"The promise is about {manifest.guarantee.unit}.",
        "",
        "## What is not promised",
        *not_promised(mechanism),
        "",
        "## What the release tells exactly",
        *(f"- {d.what}: {d.why}" for d in manifest.disclosed),
        "",
        "## How to count from it without Voile",
        *counting(manifest, mechanism),
        "",
        f"NULLs in the table: {null_words(manifest)}. Written by Voile {manifest.voile}.",
    ]
    return "\n".join(lines)


def promised(manifest: LocalManifest) -> list[str]:
    epsilon = manifest.guarantee.epsilon
    if epsilon is None:
        return [
            "No ε holds: no column is perturbed by a public distribution, or some take their "
            "replacements from their own values.",
            *columns_promised(manifest),
        ]
    ratio = math.exp(min(epsilon, 700))
    beliefs = ", ".join(
        f"{prior:.0%} to {prior * ratio / (1 - prior + prior * ratio):.3g}" for prior in BELIEFS
    )
    what = "the perturbed columns of a row" if manifest.mechanism.tells_columns else "a whole row"
    return [
        f"Local differential privacy with ε = {epsilon:.4g} for {what}: whatever they hold, "
        f"the chance of what is seen of it changes by a factor of at most e^ε = {ratio:.4g}. So a "
        "belief about a row can rise at most from "
        f"{beliefs}.",
        *columns_promised(manifest),
    ]


def columns_promised(manifest: LocalManifest) -> list[str]:
    columns = manifest.guarantee.columns
    if not columns:
        return []
    lines = ["", "| column | kept with chance | replaced by | ε |", "|---|---|---|---|"]
    for name, part in manifest.parameters.columns.items():
        epsilon = columns[name]
        shown = "public" if part.retention == 1 else "none" if epsilon is None else f"{epsilon:.3g}"
        source = "–" if part.retention == 1 else part.replace
        safe = name.replace("|", "\\|")
        lines.append(f"| {safe} | {part.retention:g} | {source} | {shown} |")
    return [*lines, ""]


def not_promised(mechanism: Local) -> list[str]:
    lines = [NOT_PROMISED]
    if not isinstance(mechanism, WholeRows):
        if not mechanism.local:
            lines.append(OWN_VALUES)
        if any(column.public for column in mechanism.columns):
            lines.append(PUBLIC)
    return lines


def counting(manifest: LocalManifest, mechanism: Local) -> list[str]:
    if isinstance(mechanism, WholeRows):
        p = mechanism.retention
        return [
            "For a condition, count its rows here (n_seen) and its tuples in the domain (n_domain) "
            f"of m = {manifest.domain_size}. With p = {p:g} and n = {manifest.rows:,} the estimate "
            "is (n_seen − (1 − p)·n·n_domain/m)/p."
        ]
    return [
        "For a condition on one column, let b be its chance under the column's replacing "
        f"distribution. With p the column's retention and n = {manifest.rows:,} the estimate is "
        "(n_seen − (1 − p)·b·n)/p. For conditions on several columns that must all hold, sum over "
        "the rows the product of (1 − (1 − p)·b)/p for each condition that holds and of "
        "−(1 − p)·b/p for each that does not."
    ]
