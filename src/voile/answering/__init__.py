"""Queries answered from a release, whatever mechanism made it."""

from voile.answering.answer import Model, Source, answer
from voile.answering.explain import explain

__all__ = ["Model", "Source", "answer", "explain"]
