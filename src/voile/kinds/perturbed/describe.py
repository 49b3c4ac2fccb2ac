"""A perturbed table in plain words, for people who must decide whether to trust or to use it."""

from __future__ import annotations

import math

from voile.kinds.describe import page
from voile.kinds.perturbed.manifest import LocalManifest
from voile.kinds.perturbed.retention import OWN_VALUES, Local, WholeRows
from voile.privacy.guarantee import after
from voile.schema import Interval
from voile.units import NEARLY_SURE, chance

BELIEFS = (0.01, 0.1, 0.5)
NOT_PROMISED = """\
- Nothing about facts that hold for a whole group: the release exists to show those.
- Nothing about whether a row is there at all, nor about when or from where it was sent.
- Less to someone who knows how the columns of one row are correlated: the ε of a row is the sum \
over its columns."""
SEVERAL_ROWS = "- Less about people who have several rows: each row spends its own ε."
"""Where nothing says whose a row is."""
OWN = """\
- Nothing, about columns whose replacements are their own values, against someone who knows that \
a value is rare: where it is seen, it is likely to be somebody's own."""
PUBLIC = """\
- Nothing about columns that are public (retention 1)."""


def describe_local(manifest: LocalManifest) -> str:
    """A release in plain words, as Markdown."""
    who = (
        "by those they are about, before they were sent"
        if manifest.parameters.collected
        else "one by one, where the table was held"
    )
    return page(
        manifest,
        what=f"A table of {manifest.rows:,} rows that were perturbed {who}: values were kept by "
        "chance, or replaced.",
        promised=[*promised(manifest), f"The promise is about {manifest.guarantee.unit}."],
        not_promised=not_promised(manifest.mechanism, people=manifest.people is not None),
        counting=counting(manifest, manifest.mechanism),
        before=changed_before(manifest),
    )


def changed_before(manifest: LocalManifest) -> list[str]:
    """What was done to values before they were perturbed, which no answer can undo."""
    least = manifest.parameters.suppressed_below
    lines = [
        f"- {a.name}: numbers were rounded to steps of {a.domain.step:g}"
        for a in manifest.schema_
        if isinstance(a.domain, Interval)
    ]
    lines += [
        f"- {name}: values that fewer than {least} rows have are NULL"
        for name, part in manifest.parameters.columns.items()
        if least is not None and part.replace in OWN_VALUES and part.retention < 1
    ]
    return ["## What was done before", *lines, ""] if lines else []


def promised(manifest: LocalManifest) -> list[str]:
    """What is promised, in words."""
    epsilon = manifest.guarantee.epsilon
    if epsilon is None:
        return [
            "No ε holds: no column is perturbed by a public distribution, or some take their "
            "replacements from their own values.",
            *columns_promised(manifest),
        ]
    ratio = math.exp(min(epsilon, 700))
    beliefs = ", ".join(f"{p:g} to {chance(after(p, epsilon))}" for p in BELIEFS)
    little = after(0.1, epsilon) > NEARLY_SURE
    whom = "a row" if manifest.people is None else f"all rows of {manifest.people.one}"
    what = f"the perturbed columns of {whom}" if manifest.mechanism.tells_columns else whom
    what = what.replace("a row", "a whole row") if what == "a row" else what
    return [
        f"Local differential privacy with ε = {epsilon:.4g} for {what}: whatever they hold, "
        f"the chance of what is seen of it changes by a factor of at most e^ε = {ratio:.4g}. So a "
        f"belief about {'a row' if manifest.people is None else 'a person'} can rise at most from "
        f"{beliefs}.",
        *(["**That promises next to nothing.**"] if little else []),
        *columns_promised(manifest),
    ]


def columns_promised(manifest: LocalManifest) -> list[str]:
    """What is promised for each column, as a table."""
    columns = manifest.guarantee.columns
    if not columns:
        return []
    heading = ["column", "values", "kept with chance", "replaced by", "ε"]
    lines = ["", f"| {' | '.join(heading)} |", "|" + "---|" * len(heading)]
    sizes = dict(zip(manifest.schema_.names, manifest.schema_.sizes, strict=True))
    for name, part in manifest.parameters.columns.items():
        epsilon = columns[name]
        shown = "public" if part.retention == 1 else "none" if epsilon is None else f"{epsilon:.3g}"
        source = "–" if part.retention == 1 else part.replace
        safe = name.replace("|", "\\|")
        kept = f"{part.retention:.12g}"
        lines.append(f"| {safe} | {sizes[name]:,} | {kept} | {source} | {shown} |")
    return [*lines, ""]


def not_promised(mechanism: Local, *, people: bool) -> list[str]:
    """What is not promised, in words."""
    lines = [NOT_PROMISED] if people else [NOT_PROMISED, SEVERAL_ROWS]
    if not isinstance(mechanism, WholeRows):
        if not mechanism.local:
            lines.append(OWN)
        if any(column.public for column in mechanism.columns):
            lines.append(PUBLIC)
    return lines


def counting(manifest: LocalManifest, mechanism: Local) -> list[str]:
    """How to estimate a count by hand."""
    if isinstance(mechanism, WholeRows):
        p = mechanism.retention
        return [
            "For a condition, count its rows here (n_seen) and its tuples in the domain (n_domain) "
            f"of m = {manifest.domain_size}. With p = {p:g} and n = {manifest.rows:,} the estimate "
            "is (n_seen − (1 − p)·n·n_domain/m)/p."
        ]
    return [
        "For a condition on one column, let b be its chance under the column's replacing "
        "distribution: of uniform replacement, the share of the column's values (the table above; "
        "NULL, where it can be, is one of them) that meet it; of identity and swap, the share of "
        f"the rows here that do. With p the column's retention and n = {manifest.rows:,} the "
        "estimate is (n_seen − (1 − p)·b·n)/p. For conditions on several columns that must all "
        "hold, sum over the rows the product of (1 − (1 − p)·b)/p for each condition that holds "
        "and of −(1 − p)·b/p for each that does not."
    ]
