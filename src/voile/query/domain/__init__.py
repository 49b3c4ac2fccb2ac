"""Q(D) for counts, sums and groups: sums over the public domain without listing it."""

from voile.query.domain.compare import DomainEngine, Weights
from voile.query.domain.network import SumPlan
from voile.query.domain.sums import DomainSums, GroupedSum

__all__ = ["DomainEngine", "DomainSums", "GroupedSum", "Plan", "SumPlan", "Weights"]

Plan = SumPlan
"""Its name in this module before there were other plans."""
