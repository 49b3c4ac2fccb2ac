"""Queries answered from a release, whatever mechanism made it."""

from voile.answering.answer import answer
from voile.answering.explain import explain
from voile.answering.source import Model, Source

__all__ = ["Model", "Source", "answer", "explain"]
