"""Totals over more rows than a group's, beside those of groups: shares, percentages, differences.

A share of a group in a whole is a ratio of two totals of one query without groups:

    select x, count(*) / (select count(*) from t) from t group by x

is, for x = 'a',

    select count(*) filter (where x = 'a') / count(*) from t

So each group's share has the interval that any ratio of a release has, errors that its two totals
have in common included. What agrees with the group in some keys (PARTITION BY) stays in GROUP BY.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sqlglot import exp

from voile.answering.binned import without_interval
from voile.answering.columns import APPROXIMATE, Certain, EstimatedColumn
from voile.answering.evidence import Evidence
from voile.answering.quantiles import has_quantile
from voile.answering.totals import hashable
from voile.answering.walk import AnswerWalk
from voile.arrays import Floats, Ints
from voile.errors import QueryError
from voile.query.aggregate import (
    CONDITIONS,
    Call,
    Constant,
    Formula,
    Total,
    WholeTotal,
    whole_totals,
)
from voile.query.predicate import And, Atom, Expression, Predicate, Term, both, conjuncts
from voile.query.query import OutputColumn, Query
from voile.schema import Bins, Schema

MOST_PARTS = 2_000
"""Groups that agree in the keys of PARTITION BY: each is a condition of its own."""
AT_ONCE = 100
"""Shares that one query without groups asks for."""


class ShareWalk(AnswerWalk[Evidence]):
    """One query with totals of more rows on its way to its answer."""

    def __init__(
        self,
        query: Query,
        evidence: Callable[[Query], Evidence],
        schema: Schema,
        lost: Sequence[str] = (),
    ) -> None:
        """`lost` are parts of the query of which bins hide too much for an interval, in words."""
        super().__init__(query, evidence(of_groups(query)))
        self._evidence_of, self._schema, self._lost = evidence, schema, lost

    def _column(self, formula: Formula) -> EstimatedColumn:
        found = self._found(formula)
        return without_interval(found) if self._lost else found

    def _found(self, formula: Formula) -> EstimatedColumn:
        wholes = whole_totals(formula)
        if not wholes:
            return super()._column(formula)
        keys = {whole.keys for whole in wholes}
        if len(keys) > 1 or has_quantile(formula):
            raise QueryError(
                "one column has totals of more than one kind of whole, or a quantile beside one",
                hint="ask for them in columns of their own",
            )
        return self._shares(formula, keys.pop())

    def _shares(self, formula: Formula, keys: tuple[int, ...]) -> EstimatedColumn:
        """The formula of every group, from queries that are grouped by `keys` only."""
        rest = [i for i in range(len(self.query.groups)) if i not in keys]
        parts: dict[tuple[Any, ...], list[int]] = {}
        for place, key in enumerate(self.groups.keys):
            parts.setdefault(tuple(hashable(key[i]) for i in rest), []).append(place)
        if len(parts) > MOST_PARTS:
            raise QueryError(
                f"a total beside {len(parts):,} groups is too much",
                hint=f"at most {MOST_PARTS:,}: ask for the groups and the total, and divide them",
            )
        found = ShareParts(len(self.groups))
        listed = list(parts.values())
        for start in range(0, len(listed), AT_ONCE):
            some = listed[start : start + AT_ONCE]
            formulas = [self._of_part(formula, rest, places[0]) for places in some]
            evidence = self._evidence_of(self._whole_query(formulas, formula, keys))
            for places, one in zip(some, formulas, strict=True):
                at = self._places(evidence, keys, places)
                found.add(np.array(places, dtype=np.int64), at, evidence.column(one))
        return found.column()

    def _places(self, evidence: Evidence, keys: tuple[int, ...], places: list[int]) -> Ints:
        """Where the wholes of some groups stand among the evidence's."""
        known = {tuple(map(hashable, key)): i for i, key in enumerate(evidence.groups.keys)}
        try:
            found = [known[tuple(hashable(self.groups.keys[p][k]) for k in keys)] for p in places]
        except KeyError:
            raise QueryError(
                "PARTITION BY makes too many groups to list", hint="group by fewer columns"
            ) from None
        return np.array(found, dtype=np.int64)

    def _whole_query(
        self, formulas: Sequence[Formula], formula: Formula, keys: tuple[int, ...]
    ) -> Query:
        columns = tuple(OutputColumn(f"share {i}", one) for i, one in enumerate(formulas))
        groups = tuple(self.query.groups[key] for key in keys)
        predicate = both(None, joined(common(self.query, formula)))
        return replace(
            self.query, predicate=predicate, columns=columns, groups=groups, having=None, order=(),
            limit=None, offset=0,
        )  # fmt: skip

    def _of_part(self, formula: Formula, rest: list[int], place: int) -> Formula:
        """The formula of one group, by a condition on what the query is not grouped by."""
        key = self.groups.keys[place]
        chosen: Predicate | None = self.query.predicate
        for i in rest:
            chosen = both(chosen, equals(self.query.groups[i], key[i], self._schema))
        shared = common(self.query, formula)

        def moved(part: Formula) -> Formula:
            if isinstance(part, Call):
                return Call(part.name, tuple(map(moved, part.args)))
            if not isinstance(part, Total):
                return part
            asked = part.term.predicate
            passing = asked if isinstance(part, WholeTotal) else both(chosen, asked)
            return Total(Term(without(passing, shared), part.term.values))

        return moved(formula)


class ShareParts:
    """A column that is put together from groups of several queries."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._parts: list[tuple[Ints, Ints, EstimatedColumn]] = []

    def add(self, places: Ints, at: Ints, column: EstimatedColumn) -> None:
        """What stands `at` in another column goes to these places."""
        self._parts.append((places, at, column))

    def _gathered(self, of: Callable[[EstimatedColumn], Floats]) -> Floats:
        found = np.full(self._size, np.nan)
        for places, at, column in self._parts:
            found[places] = of(column)[at]
        return found

    def column(self) -> EstimatedColumn:
        """All of it."""
        columns = [column for _, _, column in self._parts]

        def interval(confidence: float) -> tuple[Floats, Floats]:
            low = self._gathered(lambda column: column.interval(confidence)[0])
            return low, self._gathered(lambda column: column.interval(confidence)[1])

        found = EstimatedColumn(
            self._gathered(lambda column: column.value),
            self._gathered(lambda column: column.stderr),
            lru_cache(8)(interval),
        )
        stated = {column.covers for column in columns}
        covers = APPROXIMATE if APPROXIMATE in stated else next(iter(stated), found.covers)
        return replace(found, covers=covers, certain=self._certain(), plain=self._plain())

    def _certain(self) -> Certain | None:
        known = [column.certain for _, _, column in self._parts]
        if not known or any(one is None for one in known):
            return None
        low = self._gathered(lambda column: column.certain.low if column.certain else column.value)
        high = self._gathered(
            lambda column: column.certain.high if column.certain else column.value
        )
        return Certain(low, high, all(one is not None and one.tight for one in known))

    def _plain(self) -> EstimatedColumn | None:
        if not self._parts or any(column.plain is None for _, _, column in self._parts):
            return None
        plain = ShareParts(self._size)
        for places, at, column in self._parts:
            plain.add(places, at, column.without_model)
        return plain.column()


# ---------------------------------------------------------------------- conditions


def of_groups(query: Query) -> Query:
    """What is asked of the groups themselves."""
    columns = tuple(
        column
        for column in query.columns
        if isinstance(column.source, int) or not whole_totals(column.source)
    )
    order = tuple(o for o in query.order if isinstance(o.source, int) or not whole_totals(o.source))
    formulas = [Total(Term()), *(plain_parts(query.having) if query.having else ())]
    further = tuple(OutputColumn(f"part {i}", one) for i, one in enumerate(formulas))
    return replace(query, columns=(*columns, *further), order=order, having=None)


def plain_parts(condition: Formula) -> list[Formula]:
    """What HAVING compares that is of groups only."""
    if isinstance(condition, Call) and condition.name in CONDITIONS:
        return [part for arg in condition.args for part in plain_parts(arg)]
    return [] if whole_totals(condition) or isinstance(condition, Constant) else [condition]


def common(query: Query, formula: Formula) -> tuple[Predicate, ...]:
    """The conditions that groups and wholes share: those stay in WHERE."""
    shared = conjuncts(query.predicate) if query.predicate else ()
    for whole in whole_totals(formula):
        asked = conjuncts(whole.term.predicate) if whole.term.predicate else ()
        shared = tuple(part for part in shared if part in asked)
    return shared


def joined(parts: Sequence[Predicate]) -> Predicate | None:
    """Conditions that all hold."""
    return And(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None


def without(predicate: Predicate | None, known: Sequence[Predicate]) -> Predicate | None:
    """A condition without the parts that hold anyway."""
    parts = conjuncts(predicate) if predicate else ()
    return joined([part for part in parts if part not in known])


def equals(group: Expression, key: Any, schema: Schema) -> Predicate:
    """The condition that a group's expression has this value."""
    bins = schema[group.attributes[0]].domain if group.is_column and group.attributes else None
    if isinstance(bins, Bins) and isinstance(key, float | int):
        return within_bin(group, float(key), bins)
    node = exp.NullSafeEQ(this=exp.paren(group.node.copy()), expression=literal(key))
    return Atom(node, group.attributes, f"{group.text or group.canonical} = {key!r}", group.start)


def within_bin(group: Expression, middle: float, bins: Bins) -> Predicate:
    """The condition that a number is in a bin: by its edges, which cut none."""
    at = int(np.searchsorted(bins.edges, middle, side="right")) - 1
    at = min(max(at, 0), len(bins.edges) - 2)
    low, high = bins.edges[at], bins.edges[at + 1]
    last = at == len(bins.edges) - 2
    parts = (
        exp.GTE(this=exp.paren(group.node.copy()), expression=literal(low)),
        (exp.LTE if last else exp.LT)(this=exp.paren(group.node.copy()), expression=literal(high)),
    )
    return And(tuple(Atom(part, group.attributes, start=group.start) for part in parts))


def literal(value: Any) -> exp.Expr:
    """A value of a column as SQL writes it, so that it is read as the same value."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.paren(exp.Literal.number(value))
    text, kind = str(value), None
    if isinstance(value, float):
        text, kind = repr(value), exp.DType.DOUBLE
    elif isinstance(value, dt.date):
        stamp = isinstance(value, dt.datetime)
        kind = exp.DType.TIMESTAMP if stamp else exp.DType.DATE
    found = exp.Literal.string(text)
    return found if kind is None else exp.Cast(this=found, to=kind.into_expr())
