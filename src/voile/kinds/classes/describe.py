"""A table of classes in plain words, for people who must decide whether to trust or to use it."""

from __future__ import annotations

from typing import Any

from voile.kinds.classes.manifest import ClassManifest
from voile.kinds.describe import package, page, resource, slug_of
from voile.units import counted

METHODS = {
    "mondrian": "Mondrian: the table was cut in two, again and again, as long as both sides met "
    "what is promised",
    "anatomy": "Anatomy: rows were put together so that their sensitive values differ",
    "fulldomain": "full-domain generalization: each column is shown at one level of its hierarchy",
    "suppress": "suppression: a column is shown as it is, or not at all; rows that would stand out "
    "are left out",
    "freeshape": "free-shape buckets: rows were put together by what they have in common, in any "
    "shape",
    "trivial": "trivially: all rows are one class",
}
NOT_PROMISED = """\
- Nothing against someone who knows more than the quasi-identifiers: that a person does not have \
one of the values, or what others in the class have. k, ℓ, t and δ are properties of the table \
that is shown, not limits on what anybody can learn; differential privacy is such a limit, and \
`voile publish --method alphabeta` and `voile perturb` promise it or its kin.
- Nothing about columns that were not declared quasi-identifiers: whoever knows those can look \
rows up by them.
- Nothing about this table and a second release of the same people together: two that keep the \
promise can be intersected, and single people out.
- Less to someone who knows how classes were chosen: which cuts were refused discloses something \
of the values that refused them.
- Nothing about facts that hold for a whole group: the release exists to show those."""


def describe_classes(manifest: ClassManifest) -> str:
    """A release of classes in plain words, as Markdown."""
    p = manifest.parameters
    shown = (
        "quasi-identifiers are shown as ranges"
        if p.recode == "generalize"
        else "quasi-identifiers are shown as they are, and which sensitive value of a class is "
        "whose is not"
    )
    return page(
        manifest,
        what=f"A table of {counted(manifest.rows, 'row')} in {p.classes:,} classes; {shown}.",
        promised=promised(manifest),
        not_promised=[NOT_PROMISED],
        counting=[*counting(manifest), *errors(manifest)],
        before=how(manifest),
    )


def promised(manifest: ClassManifest) -> list[str]:
    """What every class has, line by line."""
    lines = ["Of every class of rows holds:", ""]
    for entry, requirement in zip(
        manifest.guarantee.requirements, manifest.requirements, strict=True
    ):
        lines.append(f"- {requirement.spelling}; the worst class has {entry.measured:.4g}")
    if not manifest.guarantee.requirements:
        lines = ["**Nothing: no requirement was given.**"]
    if manifest.parameters.weak:
        lines += ["", "**These requirements say nothing: every class meets them.**"]
    if manifest.parameters.recode == "bucketize":
        lines += ["", "Everybody sees who is in the table: k-anonymity hides nobody here."]
    return [*lines, "", f"The promise is about {manifest.guarantee.unit}."]


def how(manifest: ClassManifest) -> list[str]:
    """How rows were grouped, line by line."""
    p = manifest.parameters
    lines = [f"- {METHODS[manifest.method]}."]
    lines.append(f"- quasi-identifiers: {', '.join(p.qi)}; sensitive: {names(p.sensitive)}")
    if p.levels is not None:
        shown = ", ".join(f"{name} at level {level}" for name, level in p.levels.items())
        lines.append(f"- {shown} (0: as it is)")
    if p.removed:
        lines.append(
            f"- {counted(p.removed, 'row', 'were')} left out, for no class could hold them"
        )
    if manifest.nulls == "drop":
        lines.append("- rows in which a value is missing were left out; how many is not stated")
    return ["## How rows were grouped", *lines, ""]


def names(listed: list[str]) -> str:
    """Names in a list, or 'none'."""
    return ", ".join(listed) or "none"


def counting(manifest: ClassManifest) -> list[str]:
    """How to count from the files without Voile."""
    p = manifest.parameters
    if p.recode == "bucketize":
        return [
            f"data/ has the quasi-identifiers with the class of each row ({p.class_column}), "
            "sensitive/ how many rows of each class have which sensitive values. For a condition "
            "on quasi-identifiers and one on sensitive values, sum over the classes a·m/n: a rows "
            "of the class meet the first, m the second, of n. That takes every assignment to be "
            "equally likely; certain are only max(0, a + m − n) and min(a, m)."
        ]
    return [
        "data/ shows ranges; classes/ has their first and last values as places (0, 1, …) in the "
        "column's order. For a condition on quasi-identifiers, sum over the rows the product, over "
        "the columns, of the share of the range's values that meet it. That takes every value of a "
        "range to be equally likely; certain is only that rows whose whole range meets the "
        "condition count, and that those of whose range nothing does not."
    ]


def errors(manifest: ClassManifest) -> list[str]:
    """How far counts may be off, for those who count without Voile."""
    model = manifest.parameters.error_model
    if model is None:
        return ["", "How far counts are off was not measured: nothing but those bounds is known."]
    return [
        "",
        "How far counts are off was measured on random questions before publication: with V the "
        "variance that the assumption gives (Σ p(1−p) over the rows for ranges), the standard "
        f"error of a count is √({model.spread:g}²·V + {model.share:g}²·V²).",
    ]


def class_package(manifest: ClassManifest) -> dict[str, Any]:
    """Classes of rows, each folder of files as one table of a data package."""
    folders = sorted({f.path.split("/")[0] for f in manifest.files if f.rows is not None})
    tables = [
        resource(
            f"{slug_of(manifest)}-{folder}",
            [f.path for f in manifest.files if f.path.startswith(f"{folder}/")],
        )
        for folder in folders
    ]
    return package(manifest, "classes of rows", "Ranges stand for one value each.", tables)
