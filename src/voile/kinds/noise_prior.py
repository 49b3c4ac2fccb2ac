"""Where noise is shaped: reading the prior, from a file or from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voile.engines import connect
from voile.errors import SchemaError, UsageError
from voile.kinds.chances import MOST_VALUES, from_mapping, read_mapping
from voile.schema import Keys, Schema, TupleIndex
from voile.schema.index import Product, whole_parts

OWN = "product"
"""The word for the marginals of the table itself."""

Given = Any
"""A path, the word `product`, a mapping, or any table that Voile reads."""


def noise_prior(given: Given, schema: Schema, members: Keys, *, drop_nulls: bool) -> Product:
    """The prior of the options: the table's own marginals, a file's, or a public table's."""
    if isinstance(given, Mapping):
        return from_mapping(given, schema, "noise_prior")
    if isinstance(given, str) and given == OWN:
        return marginals([members], schema)
    if isinstance(given, str | Path) and Path(given).suffix.lower() in (".yaml", ".yml", ".json"):
        return from_mapping(read_mapping(Path(given)), schema, str(given))
    public = connect(given)
    name = str(given) if isinstance(given, str | Path) else public.name
    public.check_columns(schema.names)
    if not public.used_rows(schema, drop_nulls=drop_nulls):
        raise UsageError(f"noise prior {name!r} has no complete row", hint="name another table")
    try:
        return marginals(public.key_batches(schema, drop_nulls=drop_nulls), schema)
    except SchemaError as error:
        raise SchemaError(
            f"noise prior {name!r}: {error.message}",
            hint="it must have the same columns and lie in the same domain as the table",
        ) from None


def is_learnt(prior: Product, schema: Schema, members: Keys) -> bool:
    """Whether a prior is the table's own marginals, by whatever way they were given."""
    own = marginals([members], schema).parts
    return all(parts is None or parts == mine for parts, mine in zip(prior.parts, own, strict=True))


def marginals(batches: Iterable[Keys], schema: Schema) -> Product:
    """How often each value occurs, attribute by attribute."""
    index = TupleIndex(schema.sizes)
    counts = [None if a.size > MOST_VALUES else np.zeros(a.size, np.int64) for a in schema]
    for keys in batches:
        for count, code in zip(counts, index.decode(keys), strict=True):
            if count is not None:
                np.add(count, np.bincount(code, minlength=len(count)), out=count)
    return Product(tuple(None if c is None else whole_parts(c.tolist()) for c in counts))
