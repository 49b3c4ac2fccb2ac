"""How far two distributions are apart, in natural logarithms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats


def kullback_leibler(left: Floats, right: Floats) -> Floats:
    """KL(left ‖ right) along the last axis; ∞ where right lacks a value that left has."""
    left, right = np.broadcast_arrays(left, right)
    terms = np.zeros(left.shape)
    here = left > 0
    with np.errstate(divide="ignore"):
        terms[here] = left[here] * (np.log(left[here]) - np.log(right[here]))
    found: Floats = np.maximum(terms.sum(axis=-1), 0.0)
    return found


def jensen_shannon(left: Floats, right: Floats) -> Floats:
    """JS along the last axis: the mean divergence of both from their middle; at most ln 2."""
    middle = (left + right) / 2
    return (kullback_leibler(left, middle) + kullback_leibler(right, middle)) / 2


def shares(counts: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Floats:
    """Counts as distributions along the last axis; rows without any count stay zero."""
    totals = counts.sum(axis=-1, keepdims=True)
    found: Floats = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    return found
