"""Tables of counts: noisy tables of every d columns, of all rows or of random halves of them.

A condition on at most d columns is a sum over the cells of a table. One on up to 2d columns is
estimated from how the counts of its two parts vary together over random halves of the rows: with
s = ±1 for the side of a half that a row is on, D = Σ s·x, the count of one side less that of the
other, has E[D_u·D_v] = Σ x_u·x_v, less what rows on opposite sides take away.

  options.py      the options of tables of counts
  publishing.py   counting rows, adding noise, writing the tables
  manifest.py     the promise, the manifest, and the statements that follow from it
  release.py      an opened release, its tables, and checking them
  expected.py     the error to expect, beside that of larger tables
  joints.py       the counts of some columns, and of two parts together, with their errors
  answering.py    which tables answer a query; totals, intervals, quantiles
  explanation.py  how an answer comes about
  describe.py, kind.py
"""
