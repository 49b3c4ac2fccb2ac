"""A model of the population, from a table that the adversary is supposed to have."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from voile.arrays import Floats
from voile.engines import connect
from voile.engines.table import Table
from voile.errors import UsageError
from voile.kinds.manifest import MANIFEST
from voile.kinds.views.release import ViewRelease
from voile.privacy.adversary import Pair, PairCounts, Population, product, tree
from voile.schema import Schema, TupleIndex

MOST_CELLS = 10**7
"""Pairs of attributes with more cells than this are not looked at together."""


def fit(kind: str, model: object, schema: Schema) -> Population:
    """The product of the marginals, or the best tree, of a table or of a release."""
    check_sizes(schema)
    if is_release(model):
        singles, both = refined_counts(ViewRelease.open(str(model)), schema)
    else:
        singles, both = table_counts(connect(model), schema)
    return product(singles) if kind == "product" else tree(singles, pairs(schema), both)


def is_release(model: object) -> bool:
    return isinstance(model, str | Path) and (Path(model) / MANIFEST).is_file()


def pairs(schema: Schema) -> list[Pair]:
    sizes = schema.sizes
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(sizes)), 2)
        if sizes[i] * sizes[j] <= MOST_CELLS
    ]


def table_counts(table: Table, schema: Schema) -> tuple[list[Floats], PairCounts]:
    """Counts of the values of each attribute, and a function for those of pairs."""
    table.check_columns(schema.names)
    codes = TupleIndex(schema.sizes).decode(
        table.keys(schema, drop_nulls=not any(a.null for a in schema))
    )
    if not len(codes[0]):
        raise UsageError("the model's table has no rows", hint="name another one")
    sizes = schema.sizes

    def both(pair: Pair) -> Floats:
        i, j = pair
        place = codes[i].astype(np.int64) * sizes[j] + codes[j]
        found = np.bincount(place, minlength=sizes[i] * sizes[j])
        return found.reshape(sizes[i], sizes[j]).astype(np.float64)

    singles = [
        np.bincount(c, minlength=size).astype(np.float64)
        for c, size in zip(codes, sizes, strict=True)
    ]
    return singles, both


def refined_counts(release: ViewRelease, schema: Schema) -> tuple[list[Floats], PairCounts]:
    """The same from a release alone: the counts of the model that --refine fits to it."""
    if release.schema.to_dict() != schema.to_dict():
        raise UsageError(
            f"release {release.name!r} has another domain", hint="give a table, or the release"
        )
    mixture = release.refine().mixture
    even = [np.full(size, mixture.rows / size) for size in schema.sizes]
    left_out = set(mixture.left_out)
    singles = [
        even[j] if j in left_out else mixture.marginal([j]) for j in range(len(schema.sizes))
    ]

    def both(pair: Pair) -> Floats:
        if left_out & set(pair):
            i, j = pair
            return np.outer(singles[i], singles[j]) / mixture.rows
        return mixture.marginal(pair)

    return singles, both


def check_sizes(schema: Schema) -> None:
    for attribute in schema:
        if attribute.size > MOST_CELLS:
            raise UsageError(
                f"attribute {attribute.name!r} has {attribute.size:,} values, too many for a model",
                hint="use --prior uniform, or a file of priors",
            )
