"""What an answer is computed from, and whether a query fits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrow import arrow_array, numpy_array
from voile.engines.rows import PublicDomain
from voile.errors import QueryError, spelled
from voile.query.domain import DomainSums
from voile.query.predicate import Atom, Expression, Predicate, Term, conjuncts, wording
from voile.query.query import Query
from voile.query.text import refusal
from voile.query.value_types import ValueType

LARGEST = 1e70
"""Values up to this; the fourth powers of larger ones, which errors are made of, overflow."""


class DomainSource(Protocol):
    """Where expressions can be computed on the public domain."""

    @property
    def engine(self) -> PublicDomain:
        """What evaluates expressions on the domain."""
        ...

    @property
    def domain(self) -> DomainSums:
        """Sums over the domain."""
        ...


def check(query: Query, engine: PublicDomain) -> None:
    """Conditions must be true or false of a row, and values numbers; types are the engine's."""
    conditions, values = query.conditions, query.values
    parts: list[Expression] = [*conditions, *values, *query.groups]
    if not parts:
        return
    # What stands under NOT must be true or false by itself.
    kinds = types(query.sql, [part.without_not() for part in parts], engine)
    for condition, kind in zip(conditions, kinds, strict=False):
        if not kind.is_condition:
            raise refusal(query.sql, f"{wording(condition)} is of type {kind}, not true or false",
                          condition.start, "compare it with something, as in age > 30")  # fmt: skip
    for value, kind in zip(values, kinds[len(conditions) :], strict=False):
        if not kind.can_be_summed:
            raise refusal(
                query.sql,
                f"{wording(value)} is of type {kind}: only numbers have sums, averages and "
                "quantiles",
                value.start,
                "count it, or make it a number, as in year(day)",
            )
    for group, kind in zip(query.groups, kinds[-len(query.groups) :], strict=False):
        if not kind.can_be_grouped:
            raise refusal(query.sql, f"{wording(group)} is of type {kind}, and cannot make groups",
                          group.start, "group by numbers, texts or dates")  # fmt: skip


def types(sql: str, parts: Sequence[Expression], engine: PublicDomain) -> list[ValueType]:
    """The engine's types; what it cannot type is refused with its place in the query."""
    try:
        return engine.types(parts)
    except QueryError as error:
        if len(parts) > 1:
            return [kind for part in parts for kind in types(sql, [part], engine)]
        (part,) = parts
        hint = "give each function what it takes; cast where kinds differ"
        raise refusal(sql, error.message, part.start, hint) from None


def weight_range(
    term: Term, where: Predicate | None, source: DomainSource, sql: str = ""
) -> tuple[float, float]:
    """Between which numbers a term's weight lies on the rows that count."""
    low, high = 1.0, 1.0
    for value in term.values:
        parts = [*predicate_parts(where), *predicate_parts(term.predicate)]
        smallest, largest = value_range(value, parts, source, sql)
        ends = [a * b for a in (low, high) for b in (smallest, largest)]
        low, high = min(ends), max(ends)
    return low, high


def predicate_parts(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The conditions that a predicate joins by AND; none where there is no predicate."""
    return conjuncts(predicate) if predicate else ()


def value_range(
    value: Expression, parts: list[Predicate], source: DomainSource, sql: str = ""
) -> tuple[float, float]:
    """The smallest and largest value on the tuples that pass the conditions on the same columns."""
    if not source.domain.lists(value.attributes):
        raise refusal(
            sql,
            f"{wording(value)} has to be computed on more values than the memory allows",
            value.start,
            f"raise {spelled('memory')}, or declare a smaller domain or bins for it",
        )
    alike = [p for p in parts if isinstance(p, Atom) and p.attributes == value.attributes]
    values, *conditions = source.engine.domain.evaluate([value, *alike])
    numbers = pc.cast(values, pa.float64())
    passing = pc.is_valid(numbers)
    for condition in conditions:
        passing = pc.and_(passing, arrow_array(numpy_array(pc.cast(condition, pa.bool_()))))
    found = numpy_array(numbers.filter(passing))
    if len(found) and not (np.abs(found) <= LARGEST).all():
        finite = np.isfinite(found).all()
        raise refusal(
            sql,
            f"{wording(value)} is {'beyond ±1e70' if finite else 'not a finite number'} on a row "
            "that counts",
            value.start,
            "leave such rows out: sum(a / nullif(b, 0)), or a condition in WHERE",
        )
    return (float(found.min()), float(found.max())) if len(found) else (0.0, 0.0)
