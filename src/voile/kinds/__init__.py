"""One folder for each kind of release, and what all kinds share.

A kind's folder (views, classes, perturbed, counts) holds its options, publishing, manifest,
release, answering and descriptions. Kinds do not import each other. What they share:

  kind.py          the interface of a kind: names, options, drafts, descriptions, the frontier
  registry.py      which kinds there are: Voile's own, and those of installed packages
  options.py       options that several kinds have: columns, schema, NULLs, name, seed
  domain.py        the columns of a table and their public domain
  chances.py       chances of values, as a steward declares them
  noise_prior.py   the distribution that shapes noise, from a file or a table
  publishing.py    from a table to a release: draft, write, describe, seal, verify
  staging.py       writing beside the place, verifying, renaming
  manifest.py      manifest.json, and what every kind of release has in it
  parquet.py       rows as Parquet files, from keys and codes
  describe.py      README.md and datapackage.json
  release.py       an opened release: what it promises, its rows, queries
  verification.py  checking every byte, every row count, and the promise
  evaluation.py    the truth and the evidence of a release, from which losses are computed
  blocks.py        what a release shows of its rows, as blocks spread over values
"""
