"""Chances of values by attribute, as a steward declares them: in a file, or as a mapping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from voile.errors import UsageError, did_you_mean
from voile.schema import Schema
from voile.schema.attribute import Attribute, plain
from voile.schema.index import Product, whole_parts

MOST_VALUES = 100_000
"""Of an attribute whose chances are listed in the manifest; a larger one stays even."""


def read_mapping(path: Path) -> Mapping[str, Any]:
    """The mapping in a YAML or JSON file; an error names the file."""
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
    """A weight for each value of the domain; 0 for those that are left out."""
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
    """A value as text, the same for every way in which YAML, JSON and Python write it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(plain(value)).casefold() if isinstance(value, bool) else str(plain(value))


def number(weight: Any, where: str) -> float:
    """A weight as a number; refused where it is negative, infinite or none."""
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise UsageError(f"{where}: {weight!r} is not a number", hint="chances are numbers")
    if not 0 <= weight < float("inf"):
        raise UsageError(f"{where}: the chance {weight!r} is negative or not finite")
    return float(weight)
