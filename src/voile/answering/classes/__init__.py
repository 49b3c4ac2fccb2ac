"""Answers from generalized and bucketized releases.

A query cuts the domain of each column that it reads into cells, within which none of its
conditions, groups and values differs. Some columns of a row are shown; the others are open: a
value somewhere in the box of the row's class, or one of the sensitive records of its bucket. What
is asked is a function of the cells, and its sum over the rows has a mean and a variance under the
assumption that all that is open is equally likely, and an extreme over all that is possible.

  source.py      what the release shows, as numbers
  cells.py       the cells of a query, and what is asked as functions of them
  boxes.py       sums where values lie in boxes
  buckets.py     sums where sensitive records are permuted in buckets
  pairs.py       pairs of rows and records of a bucket
  pairing.py     what those can add up to at least and at most
  entropy.py     what all classes together tell about the values within each
  ratios.py      the lowest and highest ratio of two totals
  estimator.py   formulas of totals: standard errors, intervals, certain bounds
  quantiles.py   quantiles, by inverting the distribution
  evidence.py    one query being answered
  explain.py     how an answer comes about
"""
