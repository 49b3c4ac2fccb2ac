"""Answers from published tables of counts: noisy d-way tables, of all rows or of halves of them.

A condition on at most d columns is a sum over the cells of a table. One on up to 2d columns is
found from how the counts of its two parts vary together over random halves of the rows: with
s = ±1 for the side of a half that a row is on, D = Σ s·x, the count of one side less that of the
other, has E[D_u·D_v] = Σ x_u·x_v, but for what rows that are never on the same side take away.

  source.py      what the release shows, as numbers
  margins.py     the counts of some columns, from all tables that have them
  joints.py      the counts of two parts together, and their errors
  planning.py    which tables answer a query
  estimator.py   formulas of totals: standard errors and intervals
  quantiles.py   quantiles, by inverting the distribution
  asked.py       what a formula asks for, as numbers on classes
  evidence.py    one query being answered
  explain.py     how an answer comes about
  expected.py    the error to expect, beside that of larger tables
"""

from voile.answering.conjuncts.expected import Published, break_even, halves_needed

__all__ = ["Published", "break_even", "halves_needed"]
