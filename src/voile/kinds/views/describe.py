"""A release in plain words, for people who must decide whether to trust or to use it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from voile.kinds.describe import fields, package, page, resource, slug_of
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.manifest import HISTORY_FILES, ViewManifest, reached
from voile.kinds.views.series import Series
from voile.kinds.views.series_scores import single
from voile.kinds.views.shaped import Shaped
from voile.query.rows import HISTORY
from voile.units import counted

NOT_PROMISED = """\
- Nothing is promised to people about whom more was known beforehand than the prior above.
- Less, where the number of rows is disclosed, to someone who is nearly sure of all but a few \
records: they can count, and the rest is a list of which so many are real.
- Nothing about facts that hold for a whole group: the release exists to show those.
- Nothing against someone who knows how records are correlated (brothers, a household): \
two related records tell more than one (Theorem 6.1)."""
ONE_RELEASE = """
- Nothing about this table and a second release of it together: each release spends its own."""
ONE_SERIES = """
- Nothing about this series and another release of the same people together: each spends its own.
- Nothing about when a record came or went, to someone who knows that it was there at some time."""

COMBINES = {
    "multiset": "combines all views where the table was declared never to change.",
    "set": "combines all views where it was declared how much may change.",
}


def describe(manifest: ViewManifest) -> str:
    """A view in plain words, as Markdown."""
    return page(
        manifest,
        what=f"A noisy view of a private table: {counted(manifest.rows, 'row')}, real records and "
        "noise mixed.",
        promised=[
            manifest.promise.explain(),
            f"The promise is about {manifest.guarantee.unit}.",
            *_people(manifest),
            *_series(manifest),
            *_likely(manifest),
            *_weak(manifest),
            *_linked(manifest),
            *_epsilon(manifest),
        ],
        not_promised=[
            NOT_PROMISED + (ONE_RELEASE if manifest.parameters.series is None else ONE_SERIES)
        ],
        counting=counting(manifest.mechanism),
    )


def _people(manifest: ViewManifest) -> list[str]:
    if manifest.rows_per_person == 1:
        return []
    return ["Where a record is spoken of, all rows of one person are meant, together."]


def _series(manifest: ViewManifest) -> list[str]:
    series = manifest.parameters.series
    if series is None:
        return []
    return [
        f"This is view {series.view} of at most {series.views} of the series {series.name}. The "
        "promise holds for all of its views together, "
        + (
            "and the table was declared never to change."
            if series.changes_at_most == 0
            else "whatever rows come and go in between."
        )
        + f" The views so far take a belief of {manifest.promise.prior:.3g} to at most "
        f"{series.posterior:.3g}.",
        *_edits(manifest),
    ]


def _edits(manifest: ViewManifest) -> list[str]:
    """What an edited row is worth to someone who knows that it is the same person's."""
    mechanism, series = manifest.mechanism, manifest.parameters.series
    assert isinstance(mechanism, Series) and series is not None  # noqa: S101
    if series.changes_at_most == 0:
        return []
    most = reached(manifest.promise, mechanism.noise.followed())
    return [
        "To edit a row is to remove a record and to add another; each has the promise, the two "
        "together do not. Someone who follows one person's row through an edit before every view "
        f"may come to believe in it with up to {most:.3g} after all {series.views} views."
    ]


def _likely(manifest: ViewManifest) -> list[str]:
    if manifest.guarantee.likely is None:
        return []
    return [
        "Noise has a shape: more of it where records are likely. There "
        f"{manifest.guarantee.likely}."
    ]


def _weak(manifest: ViewManifest) -> list[str]:
    if Fraction(manifest.promise.prior) * int(manifest.domain_size) >= 1:
        return []
    return [
        "**A weak promise**: someone who knows that a person is in the table, and nothing else, "
        "believes more than the prior already, and is promised against nothing."
    ]


def _linked(manifest: ViewManifest) -> list[str]:
    promise = manifest.promise
    if promise.adversary == "exclusive":
        return []
    reached = float(manifest.likelihood_ratio.linked_posterior(promise.prior))
    return [
        f"Someone with such a list, who gives each entry at most {promise.prior:.3g}, may come to "
        f"believe in one of them with up to {reached:.3g}. Against them, publish with "
        "--adversary exclusive."
    ]


def _epsilon(manifest: ViewManifest) -> list[str]:
    e = manifest.guarantee.epsilon
    parts = [
        f"{e.add_remove:.4g} for adding or removing a record" if e.add_remove is not None else "",
        f"{e.swap:.4g} for exchanging one" if e.swap is not None else "",
    ]
    if not any(parts):
        return []
    return [
        "In differential privacy's terms, between tables that agree in what is disclosed: ε = "
        + ", ".join(part for part in parts if part)
        + "."
    ]


def counting(mechanism: AlphaBeta | Shaped | Series) -> list[str]:
    """How to estimate a count by hand."""
    if isinstance(mechanism, Shaped):
        return counting_shaped(mechanism)
    if isinstance(mechanism, Series):
        return counting_series(mechanism)
    return [
        "Count the rows of data/*.parquet that satisfy your condition: n_V. Count the tuples of "
        "the domain (every combination of the values listed in manifest.json) that satisfy it: "
        "n_D. Then",
        "",
        f"    estimate = (n_V - {mechanism.noise_mean!r} * n_D) / {mechanism.excess!r}",
        f"    standard error = sqrt({_variance(mechanism)}) / {mechanism.excess!r}",
        "",
        "where x is the estimate, or 0 if that is negative.",
    ]


def counting_shaped(mechanism: Shaped) -> list[str]:
    """How to estimate a count by hand where noise is shaped."""
    a = mechanism.retention
    return [
        "Count the rows of data/*.parquet that satisfy your condition: n_V. For each tuple t of "
        "the domain that satisfies it, multiply the chances of its values (the parts in "
        "manifest.json divided by 2**32; 1/size for an attribute without parts): s(t). Then",
        "",
        f"    mu(t) = {mechanism.floor!r} + min({mechanism.strength!r} * s(t), {mechanism.cap!r})",
        f"    estimate = (n_V - sum of mu(t)) / {a!r}",
        f"    standard error = sqrt({a * (1 - a)!r} * x + sum of mu(t) * (1 + mu(t))) / {a!r}",
        "",
        "where x is the estimate, or 0 if that is negative.",
    ]


def counting_series(mechanism: Series) -> list[str]:
    """How to estimate a count by hand from the last view of a series."""
    scores = single(mechanism.noise, mechanism.view_number)
    fresh, again = mechanism.on_unseen, mechanism.on_seen
    return [
        "Take the rows of history/*.parquet that satisfy your condition. In voile_history are a "
        "tuple's counts in all views of the series; y is the last of them. A tuple is seen if one "
        "of the others is not 0. Count the tuples of the domain (every combination of the values "
        "listed in manifest.json) that satisfy the condition: n_D. Add up, over the rows,",
        "",
        f"    seen     (y - {again.noise_mean!r}) / {again.excess!r} + {-scores.empty!r}",
        f"    unseen   y / {fresh.excess!r}",
        "",
        f"    estimate = sum - {-scores.empty!r} * n_D",
        "",
        "That is from the last view alone, whatever happened to the table in between. Voile "
        + COMBINES[mechanism.form],
    ]


def _variance(mechanism: AlphaBeta) -> str:
    kept = mechanism.retention * (1 - mechanism.retention)
    cells = "n_D" if mechanism.form == "multiset" else "(n_D - x)"
    return f"{kept!r} * x + {mechanism.noise_variance!r} * {cells}"


def view_package(manifest: ViewManifest) -> dict[str, Any]:
    """The rows as one table of a data package, and the histories of a series as a second one."""
    slug, columns = slug_of(manifest), fields(manifest)
    paths = [f.path for f in manifest.files]
    histories = [path for path in paths if path.startswith(HISTORY_FILES)]
    rows = [path for path in paths if path not in histories]
    tables = [resource(f"{slug}-view", rows, columns=columns)]
    if histories:
        shown = [*columns, {"name": HISTORY, "type": "string"}]
        tables.append(resource(f"{slug}-history", histories, columns=shown))
    description = "Counts must be corrected for the noise."
    return package(manifest, "a noisy view", description, tables)
