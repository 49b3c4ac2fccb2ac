"""Where noise is shaped: reading the prior, from a file or from the columns of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from voile.engines import connect
from voile.errors import SchemaError, UsageError, did_you_mean
from voile.schema import Keys, Schema, TupleIndex
from voile.schema.attribute import Attribute, plain
from voile.schema.index import Product, whole_parts

OWN = "product"
"""The word for the marginals of the table itself."""
MOST_VALUES = 100_000
"""Of an attribute whose chances are listed in the manifest; a larger one stays even."""

Given = Any
"""A path, the word `product`, a mapping, or any table that Voile reads."""


def noise_prior(given: Given, schema: Schema, members: Keys, *, drop_nulls: bool) -> Product:
    """The prior that was asked for: the table's own marginals, a file's, or a public table's."""
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


def read_mapping(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
    except FileNotFoundError:
        raise UsageError(
            f"there is no file of chances {str(path)!r}", hint="check the path"
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        line = str(error).splitlines()[0]
        raise UsageError(f"{path}: not a readable file of chances: {line}") from None
    if not isinstance(data, Mapping):
        raise UsageError(
            f"{path}: a file of chances maps attributes to chances",
            hint="e.g.  sex: {Male: 0.6, Female: 0.4}",
        )
    return data


def from_mapping(data: Mapping[str, Any], schema: Schema, where: str) -> Product:
    """Chances by attribute and value; an attribute that is left out is even."""
    for name in data:
        if name not in schema.names:
            raise UsageError(
                f"{where}: there is no attribute {name!r}",
                hint=did_you_mean(str(name), schema.names),
            )
    if not data:
        raise UsageError(
            f"{where}: it names no attribute",
            hint="all values are alike then: leave the option out",
        )
    return Product(
        tuple(chances(a, data[a.name], where) if a.name in data else None for a in schema)
    )


def chances(attribute: Attribute, given: Any, where: str) -> tuple[int, ...]:
    """One attribute's chances: a list in the order of its domain, or by value (else 0)."""
    name = attribute.name
    if attribute.size > MOST_VALUES:
        raise UsageError(
            f"{where}: {name!r} has {attribute.size:,} values, more than {MOST_VALUES:,}",
            hint="leave it out: its noise is then even",
        )
    values = [plain(v) for v in attribute]
    if isinstance(given, Mapping):
        weights = by_value(given, values, f"{where}: {name!r}")
    elif isinstance(given, Sequence) and not isinstance(given, str):
        if len(given) != len(values):
            raise UsageError(
                f"{where}: {name!r} has {len(values)} values, not {len(given)}",
                hint="give a chance for each, in the order of the schema, or by value",
            )
        weights = [number(w, f"{where}: {name!r}") for w in given]
    else:
        raise UsageError(
            f"{where}: {name!r} is {given!r}", hint="give chances: {value: 0.6, …} or a list"
        )
    if not sum(weights) > 0:
        raise UsageError(f"{where}: the chances of {name!r} are all 0", hint="leave it out")
    return whole_parts(weights)


def by_value(given: Mapping[Any, Any], values: list[Any], where: str) -> list[float]:
    # YAML and JSON spell numbers, dates and truth values in their own ways.
    places = {spelled(value): i for i, value in enumerate(values)}
    weights = [0.0] * len(values)
    for value, weight in given.items():
        if spelled(value) not in places:
            raise UsageError(
                f"{where} has no value {value!r}",
                hint=did_you_mean(str(value), [str(v) for v in values]),
            )
        weights[places[spelled(value)]] = number(weight, where)
    return weights


def spelled(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(plain(value)).casefold() if isinstance(value, bool) else str(plain(value))


def number(weight: Any, where: str) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise UsageError(f"{where}: {weight!r} is not a number", hint="chances are numbers")
    if not 0 <= weight < float("inf"):
        raise UsageError(f"{where}: the chance {weight!r} is negative or not finite")
    return float(weight)
