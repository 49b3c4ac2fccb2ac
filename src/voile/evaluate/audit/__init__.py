"""Whether a mechanism keeps its word, seen from outside."""

from voile.evaluate.audit.answers import AnswersAudit, audit_answers
from voile.evaluate.audit.bounds import Audit, audit, compare

__all__ = ["AnswersAudit", "Audit", "audit", "audit_answers", "compare"]
