"""Queries answered from a release, whatever mechanism made it.

  walk.py          the one path from a query to its answer
  evidence.py      what a kind of release supplies for it
  columns.py       formulas of totals: estimates, standard errors and intervals
  quantiles.py     quantiles, by inverting a distribution
  mixed.py, certain.py   arithmetic with quantiles, and certain bounds, from those of parts
  explanation.py   how an answer comes about
  axes.py, cells.py      what is asked, as functions of the classes of each column
  totals.py        sums over rows and over the domain

The folders are the kinds: noisy views, classes, perturbed rows, tables of counts, a server's noisy
totals. None of them imports another.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from voile.answering.evidence import Evidence
from voile.answering.explanation import Explanation, explain_from
from voile.answering.walk import AnswerWalk, answer_from

VIEWS = {
    "Model": ("source", "ViewModel"),
    "Shape": ("source", "NoiseShape"),
    "Source": ("source", "ViewSource"),
    "answer": ("evidence", "answer"),
    "explain": ("explain", "explain"),
}
"""Names for noisy views, with their modules and names there; loaded when they are asked for."""

__all__ = ["AnswerWalk", "Evidence", "Explanation", "Model", "Shape", "Source", "answer",
           "answer_from", "explain", "explain_from"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in VIEWS:
        module, there = VIEWS[name]
        return getattr(import_module(f"voile.answering.views.{module}"), there)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
