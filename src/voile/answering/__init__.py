"""Queries answered from a release, whatever mechanism made it.

  walk.py          the one path from a query to its answer
  evidence.py      what a kind of release supplies for it
  columns.py       formulas of totals: estimates, standard errors and intervals
  quantiles.py     quantiles, by inverting a distribution, and arithmetic with them
  certain.py       certain bounds, from those of parts
  count_law.py     the exact law of a count, inverted
  explanation.py   how an answer comes about
  axes.py, cells.py      a query as functions of the classes of each column
  totals.py        sums over rows and over the domain
  noisy_totals.py  answers from a server's totals, whose noise is known and independent

What each kind of release supplies stands in its own folder, in kinds/.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.answering.evidence import Evidence
    from voile.answering.explanation import Explanation, explain_from
    from voile.answering.walk import AnswerWalk, answer_from

_HOMES = {
    "AnswerWalk": "voile.answering.walk",
    "Evidence": "voile.answering.evidence",
    "Explanation": "voile.answering.explanation",
    "answer_from": "voile.answering.walk",
    "explain_from": "voile.answering.explanation",
}

__all__ = ["AnswerWalk", "Evidence", "Explanation", "answer_from", "explain_from"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: publishing needs the law of a count, not the walk to an answer.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.answering' has no attribute {name!r}")
