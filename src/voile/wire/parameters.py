"""Types of a statement's parameters, where the client leaves them open: by what is beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from voile.wire.conversation import FieldLike
from voile.wire.messages import MOST_PARAMETERS, WireError
from voile.wire.statements import DECLARED, StatementKind, WireStatement, parsed, tables_in
from voile.wire.values import (
    BOOL,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    WireType,
    wire_type,
)

CASTS: dict[Any, WireType] = {
    exp.DataType.Type.BIGINT: INT8, exp.DataType.Type.INT: INT4, exp.DataType.Type.SMALLINT: INT2,
    exp.DataType.Type.DOUBLE: FLOAT8, exp.DataType.Type.FLOAT: FLOAT8,
    exp.DataType.Type.DECIMAL: NUMERIC, exp.DataType.Type.BOOLEAN: BOOL,
    exp.DataType.Type.DATE: DATE, exp.DataType.Type.TIMESTAMP: TIMESTAMP,
}  # fmt: skip


def known_types(
    statement: WireStatement, given: Sequence[int], tables: Mapping[str, Sequence[FieldLike]]
) -> tuple[int, ...]:
    """The type of every parameter: as the client says, or by its place, or text."""
    reads = statement.kind in (StatementKind.QUERY, StatementKind.DECLARE)
    declared = DECLARED.fullmatch(statement.sql)
    query = declared["query"] if declared else statement.sql
    tree = parsed(query) if reads and "$" in query else None
    places = places_of(tree) if tree is not None else {}
    count = max([len(given), *places])
    if count > MOST_PARAMETERS:
        raise WireError("54023", f"the statement has {count:,} parameters",
                        hint=f"at most {MOST_PARAMETERS:,}")  # fmt: skip
    columns = columns_of(tree, tables) if tree is not None else {}
    padded = [*given, *[0] * (count - len(given))]
    return tuple(
        oid or guessed(places.get(number, []), columns) for number, oid in enumerate(padded, 1)
    )


def places_of(tree: exp.Expr) -> dict[int, list[exp.Expr]]:
    """Where each parameter stands, by its number."""
    found: dict[int, list[exp.Expr]] = {}
    for node in tree.find_all(exp.Parameter):
        name = node.name
        if not (name.isascii() and name.isdecimal() and 0 < int(name[:9]) <= 10**6):
            raise WireError("42P02", f"there is no parameter ${name[:20]}", hint="$1, $2, …")
        found.setdefault(int(name), []).append(node)
    return found


def columns_of(tree: exp.Expr, tables: Mapping[str, Sequence[FieldLike]]) -> dict[str, int]:
    """The types of the columns of the tables that a query reads."""
    known = {name.lower(): columns for name, columns in tables.items()}
    return {
        column.name.lower(): wire_type(column.type).oid
        for one in tables_in(tree)
        for column in known.get(one.name.lower(), ())
    }


def guessed(nodes: Sequence[exp.Expr], columns: Mapping[str, int]) -> int:
    """The type of a parameter by what it is compared with or cast to."""
    for node in nodes:
        beside: Any = node.parent
        while isinstance(beside, exp.Paren | exp.Neg):
            beside = beside.parent
        if isinstance(beside, exp.Cast) and (found := CASTS.get(beside.to.this)):
            return found.oid
        if isinstance(beside, exp.Limit | exp.Offset | exp.Fetch):
            return INT8.oid
        if isinstance(beside, exp.Predicate | exp.Binary):
            for other in beside.iter_expressions():
                if isinstance(other, exp.Column) and other.name.lower() in columns:
                    return columns[other.name.lower()]
                if isinstance(other, exp.AggFunc):
                    return FLOAT8.oid
                if isinstance(other, exp.Literal) and not other.is_string:
                    return INT8.oid if other.is_int else FLOAT8.oid
    return TEXT.oid
