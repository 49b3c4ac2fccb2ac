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

from voile.answering.evidence import Evidence
from voile.answering.explanation import Explanation, explain_from
from voile.answering.walk import AnswerWalk, answer_from

__all__ = ["AnswerWalk", "Evidence", "Explanation", "answer_from", "explain_from"]
