"""P_loss: how far a person's class may move a belief away from what everybody knows.

The distribution of sensitive values in the whole table is what trivial anonymization tells. The
distribution in a person's class is what the release tells of that person.
"""

from __future__ import annotations

from voile.arrays import Floats
from voile.privacy.divergence import jensen_shannon, shares
from voile.recoding.grouping import Shown


def class_losses(shown: Shown, attribute: int = 0) -> Floats:
    """(classes,): JS between the whole table's distribution and each class's."""
    histograms = shown.histograms
    overall = shares(histograms.overall[attribute])
    return jensen_shannon(overall, shares(histograms.counts[attribute]))


def p_loss(shown: Shown, attribute: int = 0) -> float:
    """The largest of all classes: the person who is told most about."""
    rows = shown.histograms.rows
    return float(class_losses(shown, attribute)[rows > 0].max(initial=0.0))
