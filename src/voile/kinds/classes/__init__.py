"""Classes of rows: generalized or bucketized tables under k, ℓ, t, semantic privacy or δ-presence.

Publishing:

  options.py           the options of classes, and of building hierarchies
  reading.py           the table as codes: domains, hierarchies, orders, requirements
  finding.py           rows as units, and the method that groups them (see voile.recoding)
  afar.py              Mondrian of rows that are counted where they lie
  publishing.py        writing the classes; what the steward is shown
  generalizing.py      coarser tables without a release around them
  recoding_file.py     a recoding that is kept for new rows
  column_hierarchy.py  a hierarchy for a column of a table
  manifest.py, describe.py, losses.py, release.py, kind.py

Answering: a query cuts the domain of each column that it reads into cells, within which none of its
conditions, groups and values differs. Some columns of a row are shown; the others are open: a value
somewhere in the box of the row's class, or one of the sensitive records of its bucket. A total is a
function of the cells. Its sum over the rows has a mean and a variance under the assumption that all
that is open is equally likely (or as a model of all classes fits it), and extremes over all data
that agree with the release.

  cells.py             the release and the query as numbers on cells
  boxes.py             totals where values lie in boxes
  buckets.py           totals where sensitive records are permuted in buckets
  pairing.py           pairs of rows and records: what they can add up to at least and at most
  estimator.py         formulas of totals: standard errors, intervals, certain bounds, quantiles
  answering.py         one query, answered; the fitted models
  explanation.py       how an answer comes about
"""
