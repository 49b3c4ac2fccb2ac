"""Q(D): how many tuples of the public domain satisfy a query, without listing the domain.

Conditions joined by AND that share no attribute are independent, so their counts multiply
(VLDB 2007, §4.1). Each group of conditions that do share attributes is counted by the engine on
the product of just those attributes' domains.
"""

from __future__ import annotations

import math
from typing import Protocol

from voile.errors import QueryError
from voile.query.parse import Condition, Query
from voile.schema import Schema

LARGEST = 10**8
"""Tuples of a sub-domain that are enumerated for one group of conditions."""


class DomainEngine(Protocol):
    def domain_count(self, attributes: list[str], condition: str) -> int:
        """Tuples of the product of these attributes' domains for which the condition is true."""
        ...


def domain_count(query: Query, schema: Schema, engine: DomainEngine) -> int:
    """Q(D), an exact whole number of any size."""
    total = schema.size
    for attributes, conditions in components(query.conditions):
        size = math.prod(schema[name].size for name in attributes)
        if size > LARGEST:
            raise QueryError(
                f"the conditions on {', '.join(attributes)} span {size:,} combinations of values; "
                f"at most {LARGEST:,} can be counted",
                hint="use fewer of these attributes together",
            )
        text = " AND ".join(f"({c.sql})" for c in conditions)
        total = total // size * engine.domain_count(attributes, text)
    return total


def components(conditions: tuple[Condition, ...]) -> list[tuple[list[str], list[Condition]]]:
    """Groups of conditions connected by shared attributes, each with all its attributes."""
    groups: list[tuple[list[str], list[Condition]]] = []
    for condition in conditions:
        touching = [g for g in groups if set(g[0]) & set(condition.attributes)]
        attributes = list(
            dict.fromkeys([name for g in touching for name in g[0]] + list(condition.attributes))
        )
        members = [c for g in touching for c in g[1]] + [condition]
        groups = [g for g in groups if g not in touching] + [(attributes, members)]
    return groups
