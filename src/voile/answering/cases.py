"""CASE between two numbers, as the counts that it comes to.

sum(case when age > 30 then 1 else 0 end) is a number of rows, and is known as well as one: where a
condition cuts a bin, or may hold of values that are not listed, the intervals of counts say so.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from voile.query.aggregate import Call, Constant, Formula, Total, minus, times
from voile.query.predicate import Atom, Expression, Term, both
from voile.query.query import Query
from voile.schema import Bins, Schema


def counted_cases(query: Query, schema: Schema) -> Query:
    """The query with counts in the place of sums of such a CASE, where it reads numbers in bins or
    a domain whose ends stand for more."""
    open_names = {a.name for a in schema if a.clamp or isinstance(a.domain, Bins)}
    if not any(counted(value, open_names) for value in query.values):
        return query

    def formula(one: Formula) -> Formula:
        if isinstance(one, Call):
            return Call(one.name, tuple(map(formula, one.args)))
        if not isinstance(one, Total) or len(one.term.values) != 1:
            return one
        found = counted(one.term.values[0], open_names)
        return one if found is None else as_counts(one, *found)

    return replace(
        query,
        columns=tuple(
            c if isinstance(c.source, int) else replace(c, source=formula(c.source))
            for c in query.columns
        ),
        order=tuple(
            o if isinstance(o.source, int) else replace(o, source=formula(o.source))
            for o in query.order
        ),
        having=formula(query.having) if query.having else None,
    )


def counted(value: Expression, names: set[str]) -> tuple[Atom, float, float] | None:
    """The condition of a CASE and the numbers that it chooses between; None for all else."""
    node = value.node.unnest()
    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return None
    (branch,) = node.args["ifs"]
    default = node.args.get("default")
    numbers = [number_of(part) for part in (branch.args["true"], default) if part is not None]
    if None in numbers:
        return None
    condition = branch.this.copy()
    read = tuple(dict.fromkeys(c.name for c in condition.find_all(exp.Column)))
    if not names.intersection(read) or not set(read) <= set(value.attributes):
        return None
    then, other = (*numbers, 0.0)[:2]
    return Atom(condition, read), float(then or 0), float(other or 0)


def number_of(node: exp.Expr) -> float | None:
    """A number as it is written; None for anything else."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return None
    return -float(inner.this) if isinstance(node, exp.Neg) else float(inner.this)


def as_counts(total: Total, condition: Atom, then: float, other: float) -> Formula:
    """then·(rows that meet it) + other·(all others)."""
    predicate = total.term.predicate
    met = replace(total, term=Term(both(predicate, condition), ()))
    found: Formula = met if then == 1 else times(Constant(then), met)
    if not other:
        return found
    rest = minus(replace(total, term=Term(predicate, ())), met)
    return Call("+", (found, times(Constant(other), rest)))
