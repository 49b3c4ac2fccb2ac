"""Queries answered from a release, whatever mechanism made it."""

from voile.answering.answer import Source, answer
from voile.answering.explain import explain

__all__ = ["Source", "answer", "explain"]
