"""What perturbed rows show, and what they let one believe: all that losses need of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.kinds.blocks import Inversion, Points, RowBlocks, columns_of, evenly, points
from voile.kinds.evaluation import LossEvidence, Posterior, Truth
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.perturbed.retention import ColumnNoise, WholeRows
from voile.privacy.divergence import jensen_shannon
from voile.recoding.units import Codes


def row_evidence(release: LocalRelease, truth: Truth) -> LossEvidence:
    """Its rows, each undone, and beliefs about one person."""
    shown = shown_by_rows(release, truth.qi, truth.sensitive)
    return LossEvidence(shown, row_posterior(release, truth.sensitive, truth.overall))


def shown_by_rows(release: LocalRelease, qi: Sequence[str], sensitive: str) -> RowBlocks:
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


def undone_of(noise: ColumnNoise, codes: Codes) -> Inversion | None:
    """None for a public column; one that is replaced by its own values has their distribution."""
    if noise.public:
        return None
    own = np.bincount(codes, minlength=noise.size) / max(1, len(codes))
    return Inversion(noise.retention, noise.masses() if noise.local else own)


def row_posterior(release: LocalRelease, sensitive: str, overall: Floats) -> Posterior:
    """Of perturbed rows."""
    size = len(overall)
    seen = np.bincount(shown_values(release, sensitive), minlength=size) > 0
    losses = np.array([row_loss(release, sensitive, overall, value) for value in range(size)])
    return Posterior(float(losses[seen].max(initial=0.0)), float(losses.max(initial=0.0)))


def row_loss(release: LocalRelease, sensitive: str, overall: Floats, value: int) -> float:
    """JS between Q and what a row that shows this value lets one believe."""
    mechanism = release.mechanism
    if isinstance(mechanism, WholeRows):
        kept, mass = mechanism.retention, 1 / mechanism.size
    else:
        noise = mechanism.columns[release.schema.names.index(sensitive)]
        kept = noise.retention
        mass = float(noise.masses()[value]) if noise.local else float(overall[value])
    likelihood = np.full(len(overall), (1 - kept) * mass)
    likelihood[value] += kept
    beliefs = overall * likelihood
    total = float(beliefs.sum())
    if not total:
        return 0.0  # nobody can show this value
    return float(jensen_shannon((beliefs / total)[None, :], overall)[0])


def shown_values(release: LocalRelease, sensitive: str) -> npt.NDArray[np.int64]:
    """The code of the sensitive value that each row shows."""
    place = release.schema.names.index(sensitive)
    return np.asarray(release.codes()[place], dtype=np.int64)
