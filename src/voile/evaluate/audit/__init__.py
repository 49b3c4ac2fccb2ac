"""Whether a mechanism keeps its word, seen from outside."""

from voile.evaluate.audit.bounds import Audit, audit, compare

__all__ = ["Audit", "audit", "compare"]
