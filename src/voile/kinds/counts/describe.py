"""Tables of counts in plain words, for people who must decide whether to trust or to use them."""

from __future__ import annotations

import math
from typing import Any

from voile.kinds.counts.manifest import ConjunctManifest
from voile.kinds.describe import package, page, resource, slug_of
from voile.schema.schema import large

NOT_PROMISED = """\
- Nothing about a second release of the same people, or answers of a server: the losses of \
all add up, ρ to ρ.
- Nothing about facts that hold for a whole group: the release exists to show those.
- Nothing about whether somebody is in the table, beyond what one row can do: the number of rows \
is public."""


def describe_conjuncts(manifest: ConjunctManifest) -> str:
    """A release of tables of counts in plain words, as Markdown."""
    p = manifest.parameters
    of = f"both sides of {p.halves:,} random halves of the rows" if p.halves else "all rows"
    columns = "one column" if p.arity == 1 else f"{p.arity} columns"
    return page(
        manifest,
        what=f"Noisy counts of {manifest.public_rows:,} rows: a table for every set of {columns}, "
        f"{len(manifest.sets):,} in all, of {of}; {manifest.rows:,} figures.",
        promised=promised(manifest),
        not_promised=[NOT_PROMISED],
        counting=counting(manifest),
        before=comparing(manifest),
    )


def promised(manifest: ConjunctManifest) -> list[str]:
    """(δ,T)-privacy and what it amounts to, line by line."""
    p, g = manifest.parameters, manifest.guarantee
    belief = 1 / (1 + math.exp(-g.delta))
    epsilon = "none holds" if g.epsilon is None else f"ε = {g.epsilon:.4g}"
    near = "" if g.rho_holds else " (about: binomial noise comes near to it)"
    return [
        f"(δ,T)-privacy with δ = {g.delta:.4g} and T = {p.tables:,}: someone who knows every other "
        f"row, and weighs two possibilities for one, has the log-odds of the true one raised by "
        f"more than δ with probability at most η = {g.eta:g}. At δ a belief of 0.5 becomes "
        f"{belief:.2f}.",
        "",
        f"In other words: ρ = {g.rho:.4g} of zero-concentrated differential privacy{near}; "
        f"(ε, δ)-differential privacy with δ = {g.epsilon_delta:g}: {epsilon}.",
        "",
        f"The promise is about {g.unit}. Every figure has {p.noise} noise of standard deviation "
        f"{manifest.law.sd:,.4g}.",
    ]


def comparing(manifest: ConjunctManifest) -> list[str]:
    """Both ways to publish, at the same promise."""
    found, p = manifest.comparison, manifest.parameters
    if found is None:
        return []
    few = (found.columns + 1) // 2
    parted = f"tables of {few} column{'s' if few > 1 else ''}, of halves"
    direct = f"tables of {found.columns} columns, of all rows"
    mine = ["this release", ""] if p.halves else ["", "this release"]
    return [
        f"## What a question about {found.columns} columns costs",
        "At the same promise, for a share of the rows that have two properties which a quarter of "
        "them has each:",
        "",
        "| | figures | standard error of the share | |",
        "|---|---|---|---|",
        f"| {parted} | {large(found.figures)} | {found.error:.2g} | {mine[0]} |",
        f"| {direct} | {large(found.direct_figures)} | {found.direct_error:.2g} | {mine[1]} |",
        "",
        "Halves save figures, not privacy, and figures only where there are very many columns: "
        f"with Boolean ones, for an error of 0.05, from {found.fewer_figures_from:,} columns on.",
        "",
    ]


def counting(manifest: ConjunctManifest) -> list[str]:
    """How to count from the files without Voile."""
    p, rows = manifest.parameters, manifest.public_rows or 0
    half, side, count = manifest.columns_beside()
    variance = manifest.law.variance
    if not p.halves:
        return [
            f"Every file of data/ has a table of {p.arity} columns, with all combinations of their "
            f"values. Add up {count} over those that meet your condition; the sum of c of them has "
            f"the standard error sqrt({variance!r} * c)."
        ]
    m = rows - 1 + rows % 2
    return [
        f"Every file of data/ has a table of {p.arity} columns, with all combinations of their "
        f"values, for side 1 and side 2 ({side}) of every {half}. For a condition on the columns "
        f"of one table, add up {count} over all that meet it and divide by {p.halves}: N. For two "
        f"conditions, on two tables: for each {half} let D be the sum on side 1 less that on side "
        "2, of either condition. Rows that meet both are about",
        "",
        f"    ({m} * mean(D * D') + N * N') / {m + 1}",
        "",
        f"with a standard error of about sqrt((N + {2 * variance!r} * c) * "
        f"(N' + {2 * variance!r} * c') / {p.halves}), where c and c' are the combinations that "
        "meet each. Voile uses that sums are known, several tables and several ways to part a "
        "condition, and is more exact.",
    ]


def count_package(manifest: ConjunctManifest) -> dict[str, Any]:
    """Tables of counts, each set of columns as one table of a data package."""
    numbered = enumerate(zip(manifest.sets, manifest.files, strict=True), start=1)
    tables = [
        resource(f"{slug_of(manifest)}-{number}", [file.path], title=", ".join(some))
        for number, (some, file) in numbered
    ]
    return package(manifest, "noisy tables of counts", "Every figure has noise.", tables)
