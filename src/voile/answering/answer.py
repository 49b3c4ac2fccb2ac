"""From a query to its answer: sums on both sides, arithmetic, HAVING, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from voile.answering.arithmetic import CALLS, Dual
from voile.answering.columns import APPROXIMATE, Column, terms_of
from voile.answering.estimator import Estimator
from voile.answering.mixed import has_quantile, mixed_column
from voile.answering.notes import NO_TUPLE, at_once, bin_notes, having_notes, plural, query_notes
from voile.answering.ordering import places_in_order
from voile.answering.quantiles import quantile_column, refined_quantiles
from voile.answering.refined import COVERS as REFINED
from voile.answering.refined import Refiner
from voile.answering.source import Listing, Source, check, parts_of, value_range, weight_range
from voile.answering.totals import (
    Groups,
    Totals,
    check_lookups,
    domain_columns,
    totals,
    with_products,
)
from voile.arrays import Floats
from voile.errors import QueryError
from voile.estimate import Answer, Bound, Estimate
from voile.query.aggregate import CONDITIONS
from voile.query.formula import Call, Formula, Number, Quantile, Total, leaves
from voile.query.predicate import Atom, Expression, Term, both
from voile.query.query import Order, Query

MOST_TERMS = 24
MOST_GROUPS = 5_000
SMALLEST_MISS = 1e-15
AnySource = TypeVar("AnySource", bound=Listing)


def answer(
    query: Query, source: Source, confidence: float = 0.95, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the original table."""
    return answer_by(Work, query, source, confidence, simultaneous=simultaneous)


def answer_by(
    work: Callable[[Query, AnySource], Work],
    query: Query,
    source: AnySource,
    confidence: float,
    *,
    simultaneous: bool,
) -> Answer:
    """The answer that this kind of work finds; what the engine cannot compute is explained."""
    check(query, source.engine)
    try:
        return answered(work(query, source), confidence, simultaneous=simultaneous)
    except QueryError as error:
        raise error if error.hint else helped(error) from None


def helped(error: QueryError) -> QueryError:
    """What the engine could not compute, with what to do about it."""
    if "More than one row" in error.message:
        return QueryError(
            "a row has more than one partner in a joined table, or a subquery more than one row",
            hint="make the table's keys unique, or ask with EXISTS or IN",
        )
    return QueryError(error.message, hint="leave such rows out, with CASE or try_cast")


def answered(work: Work, confidence: float, *, simultaneous: bool) -> Answer:
    query, kept = work.query, work.kept_groups()
    at_once = 1
    if simultaneous:
        columns = sum(not isinstance(c.source, int) for c in query.columns)
        at_once = max(1, work.groups.possible * columns)
        if (1 - confidence) / at_once < SMALLEST_MISS:
            raise QueryError(
                f"{at_once:,} intervals cannot hold at once at {confidence:.6g}",
                hint="group by less, or leave out --simultaneous",
            )
    rows = [work.row(int(i), at_once, confidence) for i in kept]
    covers = work.covers(simultaneous=simultaneous)
    names = {c.name: not isinstance(c.source, int) for c in query.columns}
    return Answer(tuple(rows), confidence, covers, work.notes(), names, work.assumption)


def term_sets(query: Query) -> list[tuple[Term, ...]]:
    """The totals that each formula is made of."""
    sets = [terms_of(f) for f in dict.fromkeys(query.formulas)]
    if max(map(len, sets), default=0) > MOST_TERMS:
        raise QueryError(
            f"one formula combines more than {MOST_TERMS} aggregates",
            hint="ask for them one by one",
        )
    return sets


def check_groups(number: int) -> None:
    """Where every group costs work: refuse more than one would read."""
    if number > MOST_GROUPS:
        raise QueryError(
            f"GROUP BY makes {number:,} groups, more than {MOST_GROUPS:,}",
            hint="group by fewer columns, or by coarser ones, as in floor(age / 10)",
        )


class Work:
    """One query being answered."""

    assumption = ""
    """What estimates rest on besides the release."""

    def __init__(self, query: Query, source: Source) -> None:
        self.query, self.source = query, source
        sets = term_sets(query)
        if source.model:  # refining a sum needs the rows that it is over
            sets += [tuple(dict.fromkeys((t, Term(t.predicate)))) for s in sets for t in s]
        terms = with_products(sets)
        check_lookups(terms)
        self.ranges = {
            t: weight_range(t, query.predicate, source, query.sql) for s in sets for t in s
        }
        self.totals: Totals = totals(
            query.predicate, query.groups, terms, source.engine, source.domain, source.shape
        )
        self.estimator = Estimator(self.ranges, self.totals, source.mechanism, source.rows)
        self.refiner = self._refiner()
        self.plain_columns: dict[Formula, Column] = {}
        self.columns: dict[Formula, Column] = {}

    @property
    def groups(self) -> Groups:
        return self.totals.groups

    @property
    def bound(self) -> Bound | None:
        """The paper's utility statement for a count, where it has one."""
        return self.source.bound

    def column(self, formula: Formula) -> Column:
        """What is told: the refined estimate where there is a model, else the plain one."""
        if not self.refiner or (has_quantile(formula) and not isinstance(formula, Quantile)):
            return self.plain_column(formula)
        if formula not in self.columns:
            self.columns[formula] = (
                self._refined_quantile(formula)
                if isinstance(formula, Quantile)
                else self.refiner.column(formula)
            )
        return self.columns[formula]

    def _refined_quantile(self, formula: Quantile) -> Column:
        """A better value, with the plain interval, which holds for every table."""
        plain, model = self.plain_column(formula), self.source.model
        assert model is not None  # noqa: S101  (there is no refiner without)
        value = refined_quantiles(
            formula, self.query.predicate, self.query.groups, self.groups, self.source, model
        )
        return replace(plain, value=np.clip(value, *plain.interval(0.95)))

    def plain_column(self, formula: Formula) -> Column:
        if formula not in self.plain_columns:
            self.plain_columns[formula] = self._plain(formula)
        return self.plain_columns[formula]

    def _plain(self, formula: Formula) -> Column:
        if isinstance(formula, Quantile):
            return self._quantile(formula)
        if has_quantile(formula):
            return mixed_column(formula, self._raw(formula), self.plain_column)
        return self.estimator.column(formula)

    def _refiner(self) -> Refiner | None:
        model, totals = self.source.model, self.totals
        if model is None or self.unmodelled():
            return None
        terms = [Term(both(self.query.predicate, t.predicate), t.values) for t in totals.terms]
        sums = self.source.domain.sums(terms, self.query.groups, model.weights)
        expected, _ = domain_columns(sums, totals.groups)
        return Refiner(self.estimator, model.rows * expected, model.error)

    def unmodelled(self) -> list[str]:
        """Attributes that the query reads and the model knows nothing about."""
        query, model = self.query, self.source.model
        parts: list[Atom | Expression] = [*query.conditions, *query.values, *query.groups]
        read = {name for part in parts for name in part.attributes}
        return sorted(read & model.left_out) if model else []

    def _quantile(self, formula: Quantile) -> Column:
        source, query = self.source, self.query
        parts = [*parts_of(query.predicate), *parts_of(formula.predicate)]
        value_range(formula.value, parts, source, query.sql)  # all must be finite
        return quantile_column(formula, query.predicate, query.groups, self.groups, source)

    def _raw(self, formula: Formula) -> Floats:
        inner = {x: self.column(x).value for x in leaves(formula) if isinstance(x, Quantile)}
        return self.estimator.values(inner)(formula).value

    def _holds(self, condition: Formula) -> Dual:
        """HAVING, on the numbers that are shown."""
        if isinstance(condition, Call) and condition.name in CONDITIONS:
            return CALLS[condition.name](*map(self._holds, condition.args))
        if isinstance(condition, Number):
            value = np.full(len(self.groups), condition.value)
        else:
            value = self.column(condition).value
        return Dual(value, np.zeros((len(value), 0)))

    # ------------------------------------------------------------------ which rows, in what order

    def kept_groups(self) -> Any:
        kept = np.arange(len(self.groups))
        if self.query.groups:
            kept = kept[~self._surely_empty()]
        if self.query.having:
            kept = kept[self._holds(self.query.having).value[kept] == 1]
        for order in reversed(self.query.order):
            kept = self._sorted(kept, order)
        last = None if self.query.limit is None else self.query.offset + self.query.limit
        return kept[self.query.offset : last]

    @np.errstate(all="ignore")
    def _surely_empty(self) -> Any:
        """Groups that the release shows to have no row, as SQL would not list them."""
        i = self.totals.column(Term())
        t, mechanism = self.totals, self.source.mechanism
        view, domain, spread = t.view[:, i], t.domain[:, i], t.spread[:, i]
        off = mechanism.deviation(view, domain, spread, np.ones(len(view)), 0.05)
        known = self.totals.domain_error[:, i] == 0
        return known & (mechanism.total(view, domain) == 0) & (off == 0)

    def _sorted(self, kept: Any, order: Order) -> Any:
        if isinstance(order.source, int):
            keys = [self.groups.keys[i][order.source] for i in kept]
        else:
            keys = self.column(order.source).value[kept].tolist()
        return kept[places_in_order(keys, order)]

    # ------------------------------------------------------------------ what is told

    def row(self, i: int, at_once: int, confidence: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for column in self.query.columns:
            if isinstance(column.source, int):
                found[column.name] = self.groups.keys[i][column.source]
            else:
                found[column.name] = self._estimate(column.source, i, at_once, confidence)
        return found

    def _estimate(self, formula: Formula, i: int, at_once: int, confidence: float) -> Estimate:
        column = self.column(formula)
        found = self._cell(column, formula, i, at_once, confidence)
        if column is self.plain_columns.get(formula):
            return found
        plain = self._cell(self.plain_column(formula), formula, i, at_once, confidence)
        return replace(found, plain=plain, bound=None)

    def _cell(
        self, column: Column, formula: Formula, i: int, at_once: int, confidence: float
    ) -> Estimate:
        def interval(asked: float) -> tuple[float, float]:
            low, high = column.interval(1 - (1 - asked) / at_once if at_once > 1 else asked)
            return float(low[i]), float(high[i])

        ends = column.certain
        counts = isinstance(formula, Total) and not formula.term.values and not self.query.groups
        return Estimate(
            value=float(column.value[i]),
            stderr=float(column.stderr[i]),
            confidence=confidence,
            covers=column.covers,
            _interval=interval,
            bound=self.bound if counts else None,
            certain=None if ends is None else (float(ends[0][i]), float(ends[1][i])),
        )

    def covers(self, *, simultaneous: bool) -> str:
        told = [self.column(c.source) for c in self.query.columns if not isinstance(c.source, int)]
        stated = {c.covers for c in told}
        covers = next((c for c in (REFINED, APPROXIMATE) if c in stated), told[0].covers)
        if self.totals.domain_error.any() and covers != REFINED:
            covers += ", and over the sampling of the domain"
        if simultaneous:
            covers = at_once(covers, plural(self.groups.possible, "group"))
        elif not self.groups.complete:
            covers += "; for a group chosen beforehand, not for those listed because they occur"
        return covers

    def _bin_notes(self) -> list[str]:
        return bin_notes(self.query, self.source.engine)

    def notes(self) -> tuple[str, ...]:
        """What the analyst should know about this answer."""
        query, notes = self.query, []
        everyone = self.totals.column(Term())
        if not (self.totals.domain + self.totals.domain_error)[:, everyone].any():
            notes.append(NO_TUPLE)
        notes += query_notes(query)
        if not query.atoms and not query.groups and self.source.rows is not None:
            notes.append(f"the release tells the number of rows: {self.source.rows:,}")
        notes += self._bin_notes()
        if not self.groups.complete:
            notes.append("only the groups that occur in the view are listed, of "
                         f"{self.groups.possible:,} that the domain allows: those with more "
                         "noise are favoured")  # fmt: skip
        if missing := self.unmodelled():
            notes.append(f"not refined: the model knows nothing about {', '.join(missing)}")
        mixed = any(has_quantile(f) and not isinstance(f, Quantile) for f in query.formulas)
        if self.source.model and mixed:
            notes.append("arithmetic with quantiles is not refined")
        return (*notes, *having_notes(query))
