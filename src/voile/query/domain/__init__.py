"""Q(D) for counts, sums and groups: sums over the public domain without listing it."""

from voile.query.domain.inputs import DomainEngine, Weights
from voile.query.domain.plan import Plan
from voile.query.domain.sums import DomainSums, GroupedSum

__all__ = ["DomainEngine", "DomainSums", "GroupedSum", "Plan", "Weights"]
