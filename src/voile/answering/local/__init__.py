"""Answers from rows that were perturbed one by one.

Rows are counted by the classes of a query (voile.answering.axes), in one pass, and what is asked
is a function of the classes: its reconstruction is arithmetic on tensors with one axis per column.

  axes.py        the classes of each column, and what perturbing does to them
  states.py      the rows of the release by their classes
  tensors.py     perturbing undone along each axis
  asked.py       estimates and covariances of all totals of a query, for all groups
  group_errors.py, pure.py   the covariances: group by group, or of all groups at once
  rows_kept.py   the same where whole rows were kept or replaced
  estimator.py   formulas of totals: standard errors and intervals
  quantiles.py   quantiles, from the distribution of every value
  evidence.py    one query being answered
  explain.py     how an answer comes about
"""
