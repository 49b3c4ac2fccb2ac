"""Noisy marginals in plain words, for people who must decide whether to trust or to use them."""

from __future__ import annotations

from typing import Any

from voile.kinds.describe import package, page, resource, slug_of
from voile.kinds.manifest import MANIFEST
from voile.kinds.marginals.beliefs import stated_beliefs
from voile.kinds.marginals.expected import MATTERS, expected_noise
from voile.kinds.marginals.manifest import (
    CELL,
    FIGURE,
    MEASUREMENT,
    MODEL_FILE,
    MarginalManifest,
    doing_of,
    threshold_delta,
)

PART = "data/part-00000.parquet"
NOT_PROMISED = """\
- Nothing about a second release of the same people, or answers of a server: the losses of \
all add up.
- Nothing about facts that hold for a whole group: the release exists to show those.
- Synthetic rows are drawn from the model. They are nobody's, and statistics of them have no error \
bars."""
SEVERAL_ROWS = "- Nothing about people who have several rows, beyond what one row can do."
"""Where nothing says whose a row is."""
MEANS_FIGURES = (
    "After the tables follow the `means`, column by column: of each bin the sum over its rows of "
    "the place in the bin, from −½ at its lower end to ½ at its upper end, times `steps` and "
    "rounded, with noise of `scale`. The first bin begins at `low` and the last one ends at "
    "`high`; a whole number x has the place of x + ½. The mean place of a bin is the figure "
    "divided by `steps` and by the rows of the bin, plus ½."
)
WHICH = {
    "all": "of every set of up to {} columns",
    "given": "of the sets of columns that the steward named, up to {} together",
    "workload": "of the sets of columns that a list of questions reads, up to {} together",
    "selected": "of sets of up to {} columns that were chosen privately, within the same promise",
}


def describe_marginals(manifest: MarginalManifest) -> str:
    """A release of noisy marginals in plain words, as Markdown."""
    p = manifest.parameters
    of = f" of {manifest.public_rows:,} rows" if manifest.public_rows is not None else ""
    return page(
        manifest,
        what=f"Noisy counts{of}: tables {WHICH[p.tables].format(p.order)}, {manifest.rows:,} "
        "figures in all, and a model fitted to them.",
        promised=promised(manifest),
        not_promised=[NOT_PROMISED, *([SEVERAL_ROWS] if manifest.people is None else [])],
        counting=counting(manifest),
        before=accuracy(manifest),
    )


def promised(manifest: MarginalManifest) -> list[str]:
    """Differential privacy and what it means, line by line."""
    g = manifest.guarantee
    doing = doing_of(g.unit, manifest.people)
    beliefs = f"In beliefs: {stated_beliefs(manifest).in_words()}."
    if g.kind == "dp":
        whom = "row" if manifest.people is None else "person"
        return [
            f"ε-differential privacy with ε = {g.epsilon:.4g}, for {doing}: whatever is seen is at "
            f"most e^ε times as likely with the {whom} as without.",
            "",
            beliefs,
        ]
    return [
        f"(ε, δ)-differential privacy with ε = {g.epsilon:.4g} and δ = {g.delta:.3g}, for {doing}.",
        "",
        f"{beliefs} {exception(manifest)}",
        "",
        in_other_words(manifest),
    ]


def exception(manifest: MarginalManifest) -> str:
    """What the probability is made of with which a belief rises further."""
    threshold = threshold_delta(manifest)
    domain = "the domain lists a value that only one person has"
    if manifest.parameters.noise == "geometric":
        return f"That is the probability that {domain}; the noise itself has no exceptions."
    also = f", and the probability {threshold:.2g} that {domain}" if threshold else ""
    return f"That is the tail of the privacy loss, which is larger than δ{also}."


def in_other_words(manifest: MarginalManifest) -> str:
    """The same as ρ and μ; a threshold that fails is part of neither."""
    g, threshold = manifest.guarantee, threshold_delta(manifest)
    parts = [f"ρ = {g.rho:.4g} of zero-concentrated differential privacy"]
    if g.mu is not None:
        parts.append(f"μ = {g.mu:.4g} of Gaussian differential privacy")
    if threshold:
        parts.append(f"except with probability {threshold:.2g}")
    return f"In other words: {'; '.join(parts)}."


def accuracy(manifest: MarginalManifest) -> list[str]:
    """What a count of the unbiased tables is off by."""
    rows = manifest.public_rows
    known = manifest.model.rows if rows is None else float(rows)
    lines = [
        "## How exact it is",
        "Standard errors of the tables alone; the model makes small counts more exact:",
        "",
        f"| columns | a count is off by about | of a count with {MATTERS:.0%} of the rows |",
        "|---|---|---|",
    ]
    for one in expected_noise(manifest.plan, known):
        share = "" if one.relative is None else f"{one.relative:.1%}"
        lines.append(f"| {one.columns} | {one.noise:,.3g} | {share} |")
    if means := [one.column for one in manifest.parameters.means]:
        lines += ["", f"Means within bins were measured of {', '.join(means)}."]
    return [*lines, ""]


def counting(manifest: MarginalManifest) -> list[str]:
    """How to count from the files without Voile."""
    p = manifest.parameters
    where = (
        f"{PART} lists the figures of each {MEASUREMENT} (numbered from 0, as `measurements` in "
        f"{MANIFEST}) by {CELL}: the values of its columns, as the schema lists them, the last "
        "column fastest."
    )
    means = [MEANS_FIGURES] if p.means else []
    if p.noise == "geometric":
        return [
            f"{where} A {FIGURE} is a count with geometric noise of the table's `scale`.",
            *means,
        ]
    return [
        f"{where} A {FIGURE} is a count with rounded normal noise of standard deviation `scale`, "
        "of a table that was centred along every axis and multiplied by the number of its cells N. "
        "To rebuild the table of some columns: divide the figures of each subset of them by its N, "
        "centre again, spread evenly over the other columns (divide by the number of their cells), "
        "and add up. Voile does this, weighs the result with the model, and gives error bars.",
        *means,
    ]


def marginal_package(manifest: MarginalManifest) -> dict[str, Any]:
    """The figures and the model, as tables of a data package."""
    slug = slug_of(manifest)
    tables = [
        resource(f"{slug}-figures", [PART], title="figures with noise"),
        resource(f"{slug}-model", [MODEL_FILE], title="the model: weights and shares of products"),
    ]
    return package(manifest, "noisy marginals", "Every figure has noise.", tables)
