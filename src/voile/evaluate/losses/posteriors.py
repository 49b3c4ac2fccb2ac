"""P_loss of releases that are not made of classes.

The same question as of classes: how far may what a release tells about one person's sensitive
value lie from the whole table's distribution Q? The adversary knows Q, and everything else that
the release has about the person, and applies Bayes' rule to what the mechanism is known to do:

a noisy view     posterior(s) ∝ Q(s) · P(what is shown of the tuple (q, s) | it has one more record)
                 / P(the same | it has not). q are all other columns of the release.
perturbed rows   posterior(s) ∝ Q(s) · P(s′ | s), for one who knows which row is the person's; s′
                 is the value that it shows. With whole rows, for a row that shows the true q.

`measured` is the worst over the people of the table, or over the values that are shown.
`permitted` is the worst that the mechanism could ever show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.views.release import ViewRelease
from voile.mechanisms.retention import WholeRows
from voile.privacy import LikelihoodRatio
from voile.privacy.divergence import jensen_shannon, shares
from voile.recoding.units import Codes

ALL_SUBSETS = 16
"""Up to so many sensitive values every subset of them is tried."""
STEPS = 10_000


@dataclass(frozen=True)
class Posterior:
    """How far beliefs about one person come to lie from Q."""

    measured: float
    permitted: float


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


def worst_divergence(overall: Floats, ratio: LikelihoodRatio) -> float:
    """The largest JS(Q, posterior) where each value's likelihood may change by such a ratio.

    JS is convex, so it is largest where each ratio is at one of its ends. With the higher end on
    values of total share a it depends on a alone. Where there are too many subsets of values, a is
    taken to be any number: a bound that is not attained.
    """
    there = overall[overall > 0]
    if len(there) < 2:
        return 0.0
    if len(there) <= ALL_SUBSETS:
        masses = np.zeros(1)
        for share in there:
            masses = np.concatenate([masses, masses + share])
        masses = np.sort(masses)[1:-1]  # neither none of the values nor all
    else:
        masses = np.linspace(there.min(), 1 - there.min(), STEPS)
    low = float(ratio.low)
    if ratio.high is None or low == 0:
        return float(two_values(masses, np.full(len(masses), 1.0)).max())
    high = float(ratio.high)
    return float(two_values(masses, masses * high / (masses * high + (1 - masses) * low)).max())


def two_values(before: Floats, after: Floats) -> Floats:
    """JS between a distribution and one in which a part's share has gone from one to another."""
    return jensen_shannon(
        np.stack([before, 1 - before], axis=1), np.stack([after, 1 - after], axis=1)
    )


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
    place = release.schema.names.index(sensitive)
    return np.asarray(release.codes()[place], dtype=np.int64)


def revealed(overall: Floats) -> float:
    """P_loss of the table itself: JS between Q and knowing the rarest value."""
    there = overall[overall > 0]
    return float(two_values(np.array([there.min()]), np.ones(1))[0]) if len(there) else math.nan
