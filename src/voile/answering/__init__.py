"""Queries answered from a release, whatever mechanism made it."""

from voile.answering.answer import answer
from voile.answering.explain import explain
from voile.answering.source import Model, Source
from voile.answering.totals import Shape

__all__ = ["Model", "Shape", "Source", "answer", "explain"]
