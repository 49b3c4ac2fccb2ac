"""Expressions and conditions as bound trees: when they are one, how they are written and typed."""

from __future__ import annotations

import pytest

from tests.support.sqlfiles import PEOPLE, cases
from tests.support.trees import atom_of, expression_of
from voile.answering.source import check
from voile.engines import open_rows
from voile.engines.duckdb.rendering import condition_sql, guarded
from voile.engines.duckdb.sql import kind_of, value_type
from voile.errors import QueryError
from voile.query import Predicate, Query, parse
from voile.query.predicate import FALSE, TRUE, And, Or, as_node, atoms, folded, present
from voile.query.text import read_back, written
from voile.query.value_types import ValueKind


def asked() -> list[Query]:
    """Every query of tests/sql that needs no other table."""
    found = []
    for case in cases("answer"):
        if case.table == "people":
            try:
                found.append(parse(case.sql, PEOPLE))
            except QueryError:
                continue
    return found


def test_what_is_written_is_read_back_as_the_same() -> None:
    """Ledgers keep expressions as they are written."""
    queries = asked()
    assert len(queries) > 100
    for query in queries:
        for part in (*query.conditions, *query.values, *query.groups):
            assert written(read_back(part.canonical)) == part.canonical
        if query.predicate:
            kept = written(as_node(query.predicate))
            assert written(read_back(kept)) == kept == condition_sql(query.predicate)


def test_nothing_changes_the_tree_of_an_expression() -> None:
    for query in asked():
        before = [(atom, atom.node.copy()) for atom in query.conditions]
        condition_sql(query.predicate)
        assert all(atom.node == copy for atom, copy in before)


def test_expressions_are_equal_if_they_are_written_alike() -> None:
    one, other = (parse(f"select count(*) from t where {where}", PEOPLE).predicate
                  for where in ("age > 30", 't."AGE">30  -- again'))  # fmt: skip
    assert one == other
    assert hash(one) == hash(other)
    assert atom_of('"age" > 30', ("age",)) != expression_of('"age" > 30', ("age",))


def test_not_is_taken_off_a_tree_and_not_off_its_text() -> None:
    alone = parse("select count(*) from t where not (age > 30)", PEOPLE).conditions[0]
    assert alone.without_not().canonical == '"age" > 30'
    several = atom_of('NOT ("age") = ("score")', ("age", "score"))
    assert several.without_not() is several
    assert present(several).without_not() == present(several)


def test_not_of_two_parentheses_is_answered() -> None:
    """Its text begins with `NOT (` and ends with `)`, and these are not each other's."""
    rows = open_rows([], PEOPLE)
    query = parse("select sum(case when not (age) = (score) then 1 end) from t", PEOPLE)
    check(query, rows)


def test_conditions_without_parts_are_true_and_false() -> None:
    assert (condition_sql(None), condition_sql(TRUE), condition_sql(FALSE)) == (
        "TRUE", "TRUE", "FALSE",
    )  # fmt: skip


def test_folding_goes_from_the_leaves_up() -> None:
    a, b, c = (atom_of(f'"{name}"', (name,)) for name in "abc")
    tree: Predicate = And((a, Or((b, c))))
    assert folded(tree, lambda atom: atom in (a, c), all, any)
    assert not folded(tree, lambda atom: atom == a, all, any)
    assert list(atoms(tree)) == [a, b, c]


def test_subqueries_have_no_guard() -> None:
    inside = atom_of('"a" IN (SELECT x FROM t)', ("a",))
    assert (inside.subqueries, guarded(inside)) == (1, '("a" IN (SELECT x FROM t))')
    assert atom_of("EXISTS(SELECT 1 FROM t)", ()).subqueries == 2
    named = atom_of('"select" = \'(select\' or "exists"', ("select", "exists"))
    assert guarded(named).startswith("TRY(")


@pytest.mark.parametrize(
    ("name", "kind", "summed", "grouped"),
    [
        ("BOOLEAN", ValueKind.BOOLEAN, True, True),
        ("HUGEINT", ValueKind.INTEGER, True, True),
        ("UTINYINT", ValueKind.INTEGER, True, True),
        ("DECIMAL(18,3)", ValueKind.NUMBER, True, True),
        ("VARCHAR", ValueKind.TEXT, False, True),
        ("UUID", ValueKind.TEXT, False, True),
        ("TIME", ValueKind.TIME, False, True),
        ("TIMESTAMP WITH TIME ZONE", ValueKind.TIMESTAMP, False, True),
        ("INTERVAL", ValueKind.INTERVAL, False, False),
        ("INTEGER[]", ValueKind.OTHER, False, False),
        ('STRUCT("INTEGER" INTEGER)', ValueKind.OTHER, False, False),
    ],
)
def test_types_of_duckdb(name: str, kind: ValueKind, *, summed: bool, grouped: bool) -> None:
    found = value_type(name)
    assert (found.kind, str(found)) == (kind, name)
    assert (found.can_be_summed, found.can_be_grouped) == (summed, grouped)


def test_types_make_attributes() -> None:
    assert kind_of("TIMESTAMP_NS") == "date"
    assert kind_of("ENUM('a', 'b')") == "categorical"
    assert kind_of("INTERVAL") is None
