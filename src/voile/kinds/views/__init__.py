"""Noisy views of a table (VLDB 2007): records kept by chance, noise from the whole domain.

kind.py          the kind, as the registry lists it
options.py       what a steward may choose
promise.py       what is promised, from the options and the table's size
alphabeta.py     the mechanism: publishing and estimating, formula beside formula
shaped.py        the same with noise that is shaped by a prior
series.py        one view of a series over a table that changes
deviation.py     how far a weighted sum over a view can be from its expectation
publishing.py    from a table to a view
series_publishing.py, series_ledger.py   the next view of a series, and what is kept between views
manifest.py      what a view says about itself, and what verification recomputes
release.py       a view that was opened: verified, queried, refined, attacked
histories.py     what the views of a series have shown, in the release's files
series_scores.py  what a tuple's history counts for
answering.py     from a query to an answer
estimator.py     totals, with their errors
explanation.py   how an answer comes about
refining.py      the model of the table that sharpens answers, kept beside a release
refinement/      fitting that model
losses.py        what a view shows about people, for evaluation
describe.py      a view in words: README.md and the data package
"""
