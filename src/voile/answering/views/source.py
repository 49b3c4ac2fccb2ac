"""What an answer from a noisy view is computed from."""

from __future__ import annotations

from dataclasses import dataclass

from voile.answering.totals import NoiseShape
from voile.answering.views.estimator import ViewMechanism
from voile.engines.rows import ReleaseRows
from voile.estimate import Bound
from voile.query.domain import DomainSums, Weights
from voile.refine import ErrorModel


@dataclass(frozen=True)
class ViewSource:
    """Everything that an answer is computed from."""

    engine: ReleaseRows
    domain: DomainSums
    mechanism: ViewMechanism
    rows: int | None = None
    """The number of records of the table, where that is public."""
    bound: Bound | None = None
    shape: NoiseShape | None = None
    """How the noise differs over the domain, where it does."""
    model: ViewModel | None = None
    """What estimates are refined with, where that is wanted."""


@dataclass(frozen=True)
class ViewModel:
    """A model of the table, fitted to the same view."""

    rows: float
    weights: Weights
    error: ErrorModel
    left_out: frozenset[str]
    """Attributes that it knows nothing about."""
