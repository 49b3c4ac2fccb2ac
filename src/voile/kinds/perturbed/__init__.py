"""Rows that were perturbed one by one (SIGMOD 2005), so that nobody need be trusted with them.

Answering counts rows by classes. A column's domain is cut wherever the query treats two values
differently; the rows are counted by the classes of all columns at once, and the noise of each
column is undone along its own axis.

  kind.py           the kind, as the registry lists it
  options.py        what a steward may choose
  noise.py          the mechanism that the options mean, on a domain
  retention.py      retention replacement, column by column or for whole rows: the mechanism
  select_a_size.py  baskets of items
  rare.py           rare values in columns that are replaced by their own values
  publishing.py     from a table to perturbed rows
  combining.py      releases of parts of the columns, joined by a key
  specs.py          what a client of a survey is sent, from and to a mechanism
  manifest.py       what a release says about itself, and what verification recomputes
  release.py        a release that was opened
  answering.py      from a query to an answer
  axes.py           the columns that a query reads, by classes, with what noise does to each
  tensors.py        sums over tensors of classes, one axis at a time
  estimator.py      totals, with their errors
  covariances.py    covariances of totals, for each group
  joint.py          counts over the product of several columns
  explanation.py    how an answer comes about
  losses.py         what rows show about people, for evaluation
  describe.py       a release in words: README.md
"""
