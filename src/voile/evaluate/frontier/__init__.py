"""Which release to publish: many methods on two axes, and what none of them can go below."""

from voile.evaluate.frontier.finding import find_frontier, frontier
from voile.evaluate.frontier.optimum import Certified, CertifiedFrontier, certify
from voile.evaluate.frontier.result import Frontier

__all__ = [
    "Certified", "CertifiedFrontier", "Frontier", "certify", "find_frontier", "frontier",
]  # fmt: skip
