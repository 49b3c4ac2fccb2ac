"""Answers from a noisy view: sums over its rows beside sums over the domain.

source.py      what an answer is computed from
estimator.py   formulas of totals: standard errors and intervals
quantiles.py   quantiles, from the distribution of every value
refined.py     estimates weighed against a model of the table
evidence.py    one query being answered
explain.py     how an answer comes about
"""
