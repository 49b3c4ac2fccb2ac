"""Adult's nine attributes, whole or in part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import voile
from voile.schema import Attribute, Range, Schema, Values

NAME = "dataset:adult/boundary"
SIZES = [72, 7, 16, 7, 5, 2, 41, 14, 2]
PROMISE: dict[str, Any] = {"prior_factor": 10, "posterior": 0.2, "weak": True}
"""The paper's promise. On a domain as large it says little, which has to be agreed to."""


def adult_schema() -> Schema:
    """The inferred schema of Adult's nine attributes."""
    table = voile.read(NAME)
    schema = table.infer(list(table.columns), "error")
    assert schema.sizes == SIZES
    return schema


def first_ages(schema: Schema, count: int) -> Schema:
    """The part of D with the first few ages: a slice of its order, as dense as the whole."""
    age = schema.attributes[0]
    assert isinstance(age.domain, Values)
    few = replace(age, domain=Values(age.domain.values[:count]))
    return Schema((few, *schema.attributes[1:]))


def wider_schema() -> Schema:
    """Adult's attributes with hours per week for the salary, so that 5·10⁷ rows are still sparse.

    Declared, as a steward of such a table would.
    """
    given = {a.name: replace(a, public="declared") for a in adult_schema()}
    given["age"] = Attribute("age", "integer", Range(17, 90), ordered=True)
    del given["salary"]
    given["hours_per_week"] = Attribute("hours_per_week", "integer", Range(1, 99), ordered=True)
    return Schema(tuple(given.values()))
