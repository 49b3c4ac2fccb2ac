"""Bound trees as SQL of DuckDB: the only place where a query becomes text again.

Another engine renders the same trees in its own dialect, for the most part by sqlglot.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from voile.query.predicate import Expression, Predicate, folded
from voile.query.rows import Flags, Key, ShiftedValue, WeightedTerm


@lru_cache(maxsize=4096)
def expression_sql(expression: Expression) -> str:
    """An expression as DuckDB reads it."""
    from sqlglot.dialects.duckdb import DuckDB  # noqa: PLC0415  (verifying renders nothing)
    from sqlglot.errors import ErrorLevel  # noqa: PLC0415

    return expression.node.sql(DuckDB, comments=False, unsupported_level=ErrorLevel.IGNORE)


def guarded(expression: Expression) -> str:
    """NULL where the expression cannot be computed; DuckDB has no such guard for subqueries."""
    sql = expression_sql(expression)
    return f"({sql})" if expression.subqueries else f"TRY({sql})"


def condition_sql(predicate: Predicate | None) -> str:
    """A condition on rows; an atom that cannot be computed on a row is not true there."""
    if predicate is None:
        return "TRUE"
    return folded(predicate, guarded, _all_of, _any_of)


def _all_of(parts: Sequence[str]) -> str:
    return f"({' AND '.join(parts)})" if parts else "TRUE"


def _any_of(parts: Sequence[str]) -> str:
    return f"({' OR '.join(parts)})" if parts else "FALSE"


def sum_sql(summed: WeightedTerm, copies: str = "") -> str:
    """The aggregate over rows that a term stands for, each row times its weight.

    `copies` is a column that says how many rows each one stands for; without, for itself.
    """
    term, weight = summed.term, summed.weight
    only = f" FILTER (WHERE {condition_sql(term.predicate)})" if term.predicate else ""
    if not (term.values or weight or copies):
        return f"count(*){only}"
    factors = [*map(as_double, term.values), *filter(None, (weight, copies))]
    return f"coalesce(sum({' * '.join(factors)}){only}, 0)"


def key_sql(key: Key) -> str:
    """What rows are grouped by."""
    return flags_sql(key) if isinstance(key, Flags) else guarded(key)


def flags_sql(flags: Flags) -> str:
    """Conditions as bits of one number."""
    conditions = [f"({guarded(atom)}) IS TRUE" for atom in flags.conditions]
    if flags.value is not None:
        conditions.append(f"isfinite({as_double(flags.value)}) IS TRUE")
    bits = [f"(({condition})::BIGINT << {i})" for i, condition in enumerate(conditions)]
    return " | ".join(bits) or "0::BIGINT"


def product_sql(factors: Sequence[ShiftedValue], copies: str = "") -> str:
    """The sum over rows of a product of shifted values; of none, the number of rows.

    `copies` is as in `sum_sql`.
    """
    shifted = [f"({as_double(f.value)} - ({f.centre!r})::DOUBLE)" for f in factors]
    if not shifted:
        return f"coalesce(sum({copies}), 0)::BIGINT" if copies else "count(*)"
    return f"coalesce(sum({' * '.join([*shifted, copies] if copies else shifted)}), 0)"


def as_double(value: Expression) -> str:
    """A value as a double, NULL where it cannot be computed."""
    return f"CAST({guarded(value)} AS DOUBLE)"
