"""Noisy views and perturbed rows as blocks: what they tell about quasi-identifiers and one column.

An estimate from either is linear in its rows, so it is a sum over blocks as well: see blocks.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.evaluate.losses.blocks import Points, Products, Told, Undone
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.views.release import ViewRelease
from voile.mechanisms import AlphaBeta, Shaped
from voile.mechanisms.retention import ColumnNoise, WholeRows
from voile.recoding.units import Codes
from voile.schema import Schema, TupleIndex


def told_by_view(release: ViewRelease, qi: Sequence[str], sensitive: str) -> Told:
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
) -> Told:
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


def told_by_rows(release: LocalRelease, qi: Sequence[str], sensitive: str) -> Told:
    """Perturbed rows, each undone."""
    schema, mechanism = release.schema, release.mechanism
    rows = columns_of(schema, release.codes(), [*qi, sensitive])
    size = schema[sensitive].size
    if isinstance(mechanism, WholeRows):
        p = mechanism.retention
        shown = points(rows, size, np.full(rows.shape[1], 1 / p))
        return (shown, evenly(-(1 - p) / p * rows.shape[1], schema, qi, sensitive))
    noise = dict(zip(schema.names, mechanism.columns, strict=True))
    undone = [
        undone_of(noise[name], codes) for name, codes in zip([*qi, sensitive], rows, strict=True)
    ]
    found = points(rows, size, np.ones(rows.shape[1]))
    counts, last = found.counts, undone[-1]
    if last is not None:
        drawn = (1 - last.retention) * np.outer(counts.sum(axis=1), last.masses)
        counts = (counts - drawn) / last.retention
    return (Points(counts, found.codes, tuple(undone[:-1])),)


def undone_of(noise: ColumnNoise, codes: Codes) -> Undone | None:
    """None for a public column; one that is replaced by its own values has their distribution."""
    if noise.public:
        return None
    own = np.bincount(codes, minlength=noise.size) / max(1, len(codes))
    return Undone(noise.retention, noise.masses() if noise.local else own)


def columns_of(schema: Schema, codes: Sequence[npt.NDArray[Any]], names: Sequence[str]) -> Codes:
    by_name = dict(zip(schema.names, codes, strict=True))
    return np.stack([by_name[name].astype(np.int32) for name in names])


def points(rows: Codes, size: int, score: Floats) -> Points:
    """Rows by (quasi-identifiers and the sensitive column, rows), each worth its score."""
    index = TupleIndex([int(codes.max(initial=0)) + 1 for codes in rows[:-1]])
    _, first, cell = np.unique(
        index.encode(list(rows[:-1])), return_index=True, return_inverse=True
    )
    counts = np.bincount(cell * size + rows[-1], score, len(first) * size).astype(np.float64)
    return Points(counts.reshape(len(first), size), rows[:-1, first])


def evenly(amount: float, schema: Schema, qi: Sequence[str], sensitive: str) -> Products:
    """So many rows, spread evenly over the whole domain."""
    size = schema[sensitive].size
    return Products(np.full((1, size), amount / size), (None,) * len(qi))
