"""Which release to publish: many methods on two axes, and what none of them can go below."""

from voile.evaluate.frontier.optimum import Certified, CertifiedFrontier, certify

__all__ = ["Certified", "CertifiedFrontier", "certify"]
