"""What a noisy view shows, and what it lets one believe: all that losses need of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.arrays import Floats
from voile.kinds.blocks import Products, RowBlocks, columns_of, evenly, points
from voile.kinds.evaluation import LossEvidence, Posterior, Truth, worst_divergence
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.release import ViewRelease
from voile.kinds.views.shaped import Shaped
from voile.privacy.divergence import jensen_shannon, shares
from voile.recoding.units import Codes
from voile.schema import Schema, TupleIndex


def view_evidence(release: ViewRelease, truth: Truth) -> LossEvidence:
    """Its rows minus the noise, and beliefs about one person."""
    shown = shown_by_view(release, truth.qi, truth.sensitive)
    return LossEvidence(
        shown, view_posterior(release, truth.others, truth.sensitive, truth.overall)
    )


def shown_by_view(release: ViewRelease, qi: Sequence[str], sensitive: str) -> RowBlocks:
    """The rows of a view, and minus the noise that is expected in it."""
    schema, mechanism = release.schema, release.mechanism
    index = TupleIndex(schema.sizes)
    if release.histories is not None:
        scores = release.histories.estimator("current").scores
        history = release.histories.history
        score = scores.of(history.counts)[0] - scores.empty
        even = scores.empty * float(schema.size)
        rows = columns_of(schema, index.decode(history.keys), [*qi, sensitive])
        return (points(rows, schema[sensitive].size, score), evenly(even, schema, qi, sensitive))
    rows = columns_of(schema, index.decode(release.keys()), [*qi, sensitive])
    if isinstance(mechanism, AlphaBeta):
        gain = 1 / mechanism.excess
        even = -mechanism.expected_noise(schema.size) * gain
        shown = points(rows, schema[sensitive].size, np.full(rows.shape[1], gain))
        return (shown, evenly(even, schema, qi, sensitive))
    assert isinstance(mechanism, Shaped)  # noqa: S101
    return told_by_shaped(mechanism, schema, rows, qi, sensitive)


def told_by_shaped(
    mechanism: Shaped, schema: Schema, rows: Codes, qi: Sequence[str], sensitive: str
) -> RowBlocks:
    """μ(t) = floor + strength·s(t), and less than that for the tuples above the cap."""
    gain, size = 1 / mechanism.retention, schema[sensitive].size
    chances = dict(zip(schema.names, mechanism.prior.chances(schema.sizes), strict=True))
    masses = tuple(None if len(chances[name]) == 1 else chances[name] for name in qi)
    of_values = chances[sensitive]
    if len(of_values) == 1:
        of_values = np.full(size, 1 / size)
    capped = columns_of(schema, mechanism.above_cap, [*qi, sensitive])
    return (
        points(rows, size, np.full(rows.shape[1], gain)),
        evenly(-mechanism.floor * float(schema.size) * gain, schema, qi, sensitive),
        Products((-mechanism.strength * gain * of_values)[None, :], masses),
        points(capped, size, mechanism.scores_above()[0] * gain),
    )


def view_posterior(
    release: ViewRelease, others: Codes, sensitive: str, overall: Floats
) -> Posterior:
    """Of a noisy view; `others` are the codes of the table's people in all other columns."""
    size, people = len(overall), others.shape[1]
    columns = [np.repeat(codes, size) for codes in others]
    place = release.schema.names.index(sensitive)
    columns.insert(place, np.tile(np.arange(size, dtype=np.int32), people))
    evidence = release.evidence(columns)
    gain = (evidence(1) - evidence(0)).reshape(people, size)
    gain -= gain.max(axis=1, keepdims=True)
    beliefs = shares(overall * np.exp(gain))
    bound = worst_divergence(overall, release.mechanism.likelihood_ratio())
    return Posterior(float(jensen_shannon(beliefs, overall).max(initial=0.0)), bound)
