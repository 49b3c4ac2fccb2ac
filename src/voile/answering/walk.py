"""The one path from a query to its answer, whatever the query is.

What a kind of release knows about a query is its `Evidence`: totals, quantiles, groups. Everything
else happens here: arithmetic with quantiles, HAVING, ORDER BY, LIMIT, intervals that hold for all
groups at once, what they cover, and notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from voile.answering.arithmetic import CALLS, Dual
from voile.answering.binned import MOST_EDGES, UNKNOWN, BinnedQuery, binned_query, edge_words
from voile.answering.cases import counted_cases
from voile.answering.certain import bounded, combined
from voile.answering.columns import EstimatedColumn
from voile.answering.evidence import Evidence
from voile.answering.quantiles import has_quantile, mixed_column
from voile.answering.source import DomainSource, check
from voile.answering.totals import ListedGroups
from voile.arrays import Ints
from voile.engines.rows import PublicDomain
from voile.errors import QueryError, VoileError, spelled
from voile.estimate import Answer, Estimate
from voile.query.aggregate import CONDITIONS, Call, Constant, Formula, Quantile, Total, leaves
from voile.query.predicate import Expression, wording
from voile.query.query import Order, Query
from voile.schema import Bins, Range, Schema
from voile.units import counted

# ----------------------------------------------------------------------
# ORDER BY, as SQL has it: ties keep the order that they had, NULL is first or last


def places_in_order(keys: list[Any], order: Order) -> Ints:
    """Where each key was, in the order of the answer; unknown numbers are NULL."""
    null = [k is None or (isinstance(k, float) and math.isnan(k)) for k in keys]
    known = [i for i in range(len(keys)) if not null[i]]
    known.sort(key=lambda i: keys[i], reverse=order.descending)
    if order.descending:  # keep the earlier order of equal keys
        known = stable_descending(known, keys)
    missing = [i for i in range(len(keys)) if null[i]]
    places = [*missing, *known] if order.nulls_first else [*known, *missing]
    return np.array(places, dtype=np.int64)


def stable_descending(places: list[int], keys: list[Any]) -> list[int]:
    """Sorting in reverse turns ties around; put each tie back in its order."""
    result: list[int] = []
    tie: list[int] = []
    for place in places:
        if tie and keys[tie[0]] != keys[place]:
            result += sorted(tie)
            tie = []
        tie.append(place)
    return [*result, *sorted(tie)]


# ----------------------------------------------------------------------
# what an analyst should know about an answer, whatever it was made from


NO_TUPLE = "no tuple of the public domain satisfies the condition"
NO_COLUMN = "the condition reads no column; names go in double quotes, text in single"
HAVING = "HAVING compares estimates: a group near the limit may be on its wrong side"


def query_notes(query: Query) -> list[str]:
    """What the query itself gives reason to say."""
    reads_nothing = query.atoms and not any(atom.attributes for atom in query.atoms)
    return [*query.remarks, *([NO_COLUMN] if reads_nothing else [])]


def having_notes(query: Query) -> list[str]:
    """The note that HAVING is applied to estimates."""
    return [HAVING] if query.having else []


def group_notes(query: Query, schema: Schema) -> list[str]:
    """What groups of a column stand for: bins, and ends for all that lies beyond."""
    found = []
    for name in dict.fromkeys(g.attributes[0] for g in query.groups if g.is_column):
        attribute, domain = schema[name], schema[name].domain
        if isinstance(domain, Bins) and domain.size <= MOST_EDGES:
            edges = ", ".join(edge_words(attribute, edge) for edge in domain.edges[:-1])
            found.append(f"groups of {name} are its bins, each shown by its middle: they begin at "
                         f"{edges}")  # fmt: skip
        elif isinstance(domain, Range) and attribute.clamp:
            found.append(f"{name} was published between {domain.low} and {domain.high}: what lies "
                         "beyond counts in these groups")  # fmt: skip
    return found


def cut_parts(query: Query, engine: PublicDomain) -> tuple[list[str], list[str]]:
    """Conditions and groups, and values, that depend on where in its bin a number lies."""

    def differs(part: Expression) -> bool:
        try:
            return engine.cuts_a_bin(part)
        except VoileError:  # what cannot be computed at the ends of bins: only a note is lost
            return False

    made = [g for g in query.groups if not g.is_column]  # a bin is a fine group
    read: list[Any] = [*query.conditions, *made]
    return [wording(e) for e in read if differs(e)], [
        wording(e) for e in query.values if differs(e)
    ]


def bin_notes(query: Query, engine: PublicDomain) -> list[str]:
    """Where it matters that numbers are known by the middles of their bins only."""
    notes = list[str]()
    cut, known = cut_parts(query, engine)
    if cut:
        notes.append(f"{' and '.join(cut)} cuts inside a bin: rows count by the middle of "
                     "theirs, and the interval does not cover that; cut at the edges of the "
                     "schema's bins, with >= and <")  # fmt: skip
    if known:
        notes.append(f"{' and '.join(known)} is computed from the middles of bins, and the "
                     "interval does not cover that")  # fmt: skip
    return notes


def at_once(covers: str, groups: str) -> str:
    """What intervals cover that hold for all groups together."""
    return covers.replace("the statistic", f"all {groups} at once: the statistics", 1)


# ----------------------------------------------------------------------
# the one path from a query to its answer, whatever the query is
# What a kind of release knows about a query is its `Evidence`: totals, quantiles, groups.
# Everything else happens here: arithmetic with quantiles, HAVING, ORDER BY, LIMIT, intervals that
# hold for all groups at once, what they cover, and notes.


SMALLEST_MISS = 1e-15
KindEvidence = TypeVar("KindEvidence", bound=Evidence)
KindSource = TypeVar("KindSource", bound=DomainSource)
CHOSEN_BEFOREHAND = "; for a group chosen beforehand, not for those listed because they occur"


def answer_from(
    evidence: Callable[[Query, KindSource], Evidence],
    query: Query,
    source: KindSource,
    confidence: float = 0.95,
    *,
    simultaneous: bool = False,
) -> Answer:
    """The answer from this kind of evidence; what the engine cannot compute is explained."""
    check(query, source.engine)
    query = replace(query, remarks=(*query.remarks, *group_notes(query, source.engine.schema)))
    with helped():
        if query.sets:
            from voile.answering.subtotals import answer_sets  # noqa: PLC0415  (few ask for them)

            walks = [walk_of(evidence, one, source) for one in groupings(query)]
            return answer_sets(query, walks, confidence, simultaneous=simultaneous)
        walk = walk_of(evidence, query, source)
        if walk.binned is not None and walk.binned.lost_groups:
            from voile.answering.cut_groups import answer_cut_groups  # noqa: PLC0415

            found = answer_cut_groups(
                walk.binned, lambda one: walk_of(evidence, one, source), confidence,
                simultaneous=simultaneous,
            )  # fmt: skip
            if found is not None:
                return found
        return walk.answer(confidence, simultaneous=simultaneous)


def groupings(query: Query) -> list[Query]:
    """The query of each grouping that ROLLUP, CUBE or GROUPING SETS asks for, unsorted."""
    return [grouped_by(query, keys) for keys in query.sets]


def grouped_by(query: Query, keys: tuple[int, ...]) -> Query:
    """The query with some of its groups only, unsorted."""

    def has(source: int | Formula) -> bool:
        return not isinstance(source, int) or source in keys

    def placed(source: int | Formula) -> int | Formula:
        return keys.index(source) if isinstance(source, int) else source

    return replace(
        query,
        groups=tuple(query.groups[key] for key in keys),
        columns=tuple(
            replace(column, source=placed(column.source))
            for column in query.columns
            if has(column.source)
        ),
        order=tuple(
            replace(order, source=placed(order.source))
            for order in query.order
            if has(order.source)
        ),
        limit=None,
        offset=0,
        sets=(),
    )


def walk_of(
    evidence: Callable[[Query, KindSource], Evidence], query: Query, source: KindSource
) -> AnswerWalk[Evidence]:
    """The walk of a query; totals of more rows than a group's need one of their own."""
    query = counted_cases(query, source.engine.schema)
    if others := other_note(query, source.engine.schema):
        query = replace(query, remarks=(*query.remarks, others))
    if not query.has_whole_totals:
        found = plain_walk(evidence, query, source)
        if not any(a.clamp or a.other is not None for a in source.engine.schema):
            return found
        from voile.answering.unlisted import unlisted_walk  # noqa: PLC0415  (learnt domains)

        return unlisted_walk(found, query, source, lambda one: plain_walk(evidence, one, source))
    from voile.answering.shares import ShareWalk  # noqa: PLC0415  (few ask for them)

    cut, known = cut_parts(query, source.engine)
    lost = list(dict.fromkeys([*cut, *known]))
    if lost:
        remark = UNKNOWN.format(" and ".join(lost))
        query = replace(query, remarks=(*query.remarks, remark))
    return ShareWalk(query, lambda one: evidence(one, source), source.domain.schema, lost)


def other_note(query: Query, schema: Schema) -> str:
    """What the group 'other' of a learnt domain stands for; empty where no group is one."""
    columns = [schema[g.attributes[0]] for g in query.groups if g.is_column]
    found = [f"{a.other!r} of {a.name}" for a in columns if a.other is not None]
    if not found:
        return ""
    return (
        f"{' and '.join(found)}: all values that too few rows have to be listed; an interval that "
        "reaches 0 says that there may be none"
    )


def plain_walk(
    evidence: Callable[[Query, KindSource], Evidence], query: Query, source: KindSource
) -> AnswerWalk[Evidence]:
    """The walk of a query, with what bins hide of it."""
    binned = binned_query(query, evidence, source)
    if binned is None:
        return AnswerWalk(query, evidence(query, source))
    return AnswerWalk(binned.query, evidence(binned.asked, source), binned)


@contextmanager
def helped() -> Iterator[None]:
    """What the engine cannot compute is refused with what to do about it."""
    try:
        yield
    except QueryError as error:
        if error.hint:
            raise
        if "More than one row" in error.message:
            raise QueryError(
                "a row has more than one partner in a joined table, or a subquery more than "
                "one row",
                hint="make the table's keys unique, or ask with EXISTS or IN",
            ) from None
        hint = "leave such rows out, with CASE or try_cast"
        raise QueryError(error.message, hint=hint) from None


class AnswerWalk(Generic[KindEvidence]):
    """One query on its way to its answer."""

    def __init__(
        self, query: Query, evidence: KindEvidence, binned: BinnedQuery | None = None
    ) -> None:
        """`binned` knows what bins hide of the query, where it reads some."""
        self.query, self.evidence, self.binned = query, evidence, binned
        self._columns: dict[Formula, EstimatedColumn] = {}

    @property
    def groups(self) -> ListedGroups:
        """The groups that the answer may have."""
        return self.evidence.groups

    def answer(self, confidence: float, *, simultaneous: bool = False) -> Answer:
        """A row of estimates for each group of the answer."""
        kept = self.kept_groups()
        intervals = self.intervals(confidence) if simultaneous else 1
        rows = [self.row(int(i), intervals, confidence) for i in kept]
        covers = self.covers(simultaneous=simultaneous)
        names = {c.name: not isinstance(c.source, int) for c in self.query.columns}
        assumption = self.evidence.assumption(self.estimated)
        return Answer(tuple(rows), confidence, covers, self.notes(), names, assumption)

    def intervals(self, confidence: float) -> int:
        """How many intervals are to hold at once."""
        found = max(1, self.groups.possible * len(self._asked))
        if (1 - confidence) / found < SMALLEST_MISS:
            raise QueryError(
                f"{found:,} intervals cannot hold at once at {confidence:.6g}",
                hint=f"group by less, or leave out {spelled('simultaneous', True)}",
            )
        return found

    # ------------------------------------------------------------------ columns

    @property
    def _asked(self) -> list[Formula]:
        """The columns besides the groups' keys."""
        return [c.source for c in self.query.columns if not isinstance(c.source, int)]

    @cached_property
    def estimated(self) -> list[EstimatedColumn]:
        """The columns of the answer, besides the groups' keys."""
        return [self.column(formula) for formula in self._asked]

    def estimated_at(self, place: int) -> EstimatedColumn:
        """The estimates of the column that stands there in the query."""
        source = self.query.columns[place].source
        assert not isinstance(source, int)  # noqa: S101  (asked of estimates only)
        return self.column(source)

    def column(self, formula: Formula) -> EstimatedColumn:
        """The estimates of a formula, for all groups."""
        if formula not in self._columns:
            self._columns[formula] = self._column(formula)
        return self._columns[formula]

    def _column(self, formula: Formula) -> EstimatedColumn:
        if isinstance(formula, Call) and has_quantile(formula):
            return self._mixed(formula)
        if isinstance(formula, Quantile):
            found = self.evidence.quantile(formula)
        else:
            found = self.evidence.column(formula)
        return found if self.binned is None else self.binned.widened(formula, found, self.evidence)

    def _mixed(self, formula: Call) -> EstimatedColumn:
        """Arithmetic with quantiles: intervals, and certain bounds, from those of its parts."""
        quantiles = {x: self.column(x).value for x in leaves(formula) if isinstance(x, Quantile)}
        value = self.evidence.values(formula, quantiles)
        found = mixed_column(formula, value, lambda leaf: self.column(leaf).without_model)
        if any(self.column(leaf).certain is None for leaf in leaves(formula)):
            return found
        certain = {arg: self.column(arg).certain for arg in formula.args}
        known = {arg: ends for arg, ends in certain.items() if ends is not None}
        stated = all(self.column(leaf).stated for leaf in leaves(formula))
        found = bounded(found, combined(formula, known, len(self.groups)))
        return replace(found, stated=stated)

    def _holds(self, condition: Formula) -> Dual:
        """HAVING, on the numbers that are shown."""
        if isinstance(condition, Call) and condition.name in CONDITIONS:
            return CALLS[condition.name](*map(self._holds, condition.args))
        if isinstance(condition, Constant):
            value = np.full(len(self.groups), condition.value)
        else:
            value = self.column(condition).value
        return Dual(value, np.zeros((len(value), 0)))

    # ------------------------------------------------------------------ which rows, in what order

    def kept_groups(self) -> Ints:
        """The places of the answer's groups, in its order."""
        kept = np.arange(len(self.groups))
        if self.query.groups:
            kept = kept[~self.evidence.empty()]
        if self.query.having:
            kept = kept[self._holds(self.query.having).value[kept] == 1]
        for order in reversed(self.query.order):
            kept = self._sorted(kept, order)
        last = None if self.query.limit is None else self.query.offset + self.query.limit
        return kept[self.query.offset : last]

    def _sorted(self, kept: Ints, order: Order) -> Ints:
        if isinstance(order.source, int):
            keys = [self.groups.keys[i][order.source] for i in kept]
        else:
            keys = self.column(order.source).value[kept].tolist()
        return kept[places_in_order(keys, order)]

    # ------------------------------------------------------------------ estimates

    def row(self, i: int, intervals: int, confidence: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for column in self.query.columns:
            if isinstance(column.source, int):
                found[column.name] = self.groups.keys[i][column.source]
            else:
                found[column.name] = self._estimate(column.source, i, intervals, confidence)
        return found

    def _estimate(self, formula: Formula, i: int, intervals: int, confidence: float) -> Estimate:
        column = self.column(formula)
        if column.plain is None:
            return self._cell(column, formula, i, intervals, confidence)
        plain = self._cell(column.plain, formula, i, intervals, confidence)
        found = self._cell(column, formula, i, intervals, confidence)
        return replace(found, plain=plain, bound=None)

    def _cell(
        self, column: EstimatedColumn, formula: Formula, i: int, intervals: int, confidence: float
    ) -> Estimate:
        stated = column.stated or bool(column.known[i])

        def interval(level: float) -> tuple[float, float]:
            if not stated:
                return math.nan, math.nan
            low, high = column.interval(1 - (1 - level) / intervals if intervals > 1 else level)
            return float(low[i]), float(high[i])

        ends = column.certain
        counts = isinstance(formula, Total) and not formula.term.values and not self.query.groups
        return Estimate(
            value=float(column.value[i]),
            stderr=float(column.stderr[i]) if stated else math.nan,
            confidence=confidence,
            covers=column.covers,
            _interval=interval,
            bound=self.evidence.bound if counts else None,
            certain=None if ends is None else (float(ends.low[i]), float(ends.high[i])),
        )

    # ------------------------------------------------------------------ in words

    def covers(self, *, simultaneous: bool) -> str:
        exact = self.evidence.exact_covers
        if exact and is_known(self.estimated):
            return exact
        covers = self.evidence.covers(self.estimated)
        if self.binned is not None:
            covers = self.binned.covers(covers)
        if simultaneous:
            return at_once(covers, counted(self.groups.possible, "group"))
        return covers if self.groups.complete else covers + CHOSEN_BEFOREHAND

    def notes(self) -> tuple[str, ...]:
        """What the analyst should know about this answer."""
        notes = [*query_notes(self.query), *self.evidence.notes(self.estimated)]
        notes += self.binned.notes if self.binned is not None else []
        if self.evidence.nothing:
            notes.insert(0, self.evidence.nothing)
        if not self.groups.complete:
            notes.append("only the groups that occur in the view are listed, of "
                         f"{self.groups.possible:,} that the domain allows: those with more "
                         "noise are favoured")  # fmt: skip
        return tuple(dict.fromkeys([*notes, *having_notes(self.query)]))


def is_known(columns: Sequence[EstimatedColumn]) -> bool:
    """Whether all estimates are the truth."""
    return all(column.known.all() for column in columns)
