"""Answers from rows that were perturbed one by one.

A query cuts the domain of each column that it reads into classes, within which none of its
conditions and groups differs. Rows are counted by their classes, in one pass, and what is asked is
a function of the classes: its reconstruction is arithmetic on tensors with one axis per column.

  axes.py        the classes of each column, from the domain
  states.py      the rows of the release by their classes
  tensors.py     perturbing undone along each axis
  cells.py       what is asked, as functions of the classes
  asked.py       estimates and covariances of all totals of a query, for all groups
  group_errors.py, pure.py   the covariances: group by group, or of all groups at once
  rows_kept.py   the same where whole rows were kept or replaced
  estimator.py   formulas of totals: standard errors and intervals
  work.py        one query being answered
"""
