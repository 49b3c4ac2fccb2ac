"""Noisy marginals: tables of every few columns with optimal noise, and a model fitted to them.

options.py      the options of noisy marginals
residuals.py    marginals in independent components, and the best noise for each
measuring.py    what is measured, with which noise, and what that costs
choosing.py     how many columns a table has, and which tables where all are too many
mixture.py      a mixture of products, fitted to noisy marginals
errors.py       how far the model is off, learnt from the release alone
modelling.py    from noisy marginals to a model with its errors
publishing.py   counting rows, adding noise, fitting the model, writing the release
manifest.py     the promise, the manifest, and the statements that follow from it
release.py      an opened release, and checking it
plausibility.py whether figures have the noise that is stated
answering.py    totals from tables and model, weighed; intervals, quantiles
explanation.py  how an answer comes about
rows.py         synthetic rows, drawn from the model
expected.py     the error to expect before publishing
describe.py, kind.py
"""
