"""Conditions that may hold of values which a release does not list.

A domain that was learnt has ends that stand for all that lies beyond, and a text that stands for
all others. `where income > 100` is false of every value that is listed; but the rows that have such
an income count at the last one. Nothing tells how many of its rows these are: so the estimate
leaves them out, the interval of a count reaches up to that with all of them, and other statistics
have none.

The other way round `where income > 0` may be true of all values that are listed, and rows that
count at the first one may have none. (What tells listed values apart is taken to be about these.)
The estimate takes them in; the interval of a count reaches down to that without them, or without as
many as noise can have hidden when the domain was learnt. Other statistics are taken to be of these
rows.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from voile.answering.bin_shapes import HiddenRows, OpenColumns
from voile.answering.bin_tables import PointTable, point_table, row_prefix
from voile.answering.binned import between, edge_words, without_interval
from voile.answering.columns import EstimatedColumn, half_width
from voile.answering.evidence import Evidence
from voile.answering.totals import ListedGroups, hashable
from voile.answering.walk import AnswerWalk
from voile.arrow import arrow_array, numpy_array
from voile.engines.encode import ARROW, clamped, codes, column_type, domain_array
from voile.engines.rows import PublicDomain
from voile.errors import VoileError
from voile.query.aggregate import Call, Formula, Quantile, Total, leaves
from voile.query.predicate import (
    And,
    Atom,
    Or,
    Predicate,
    Term,
    as_atom,
    as_node,
    attributes,
    both,
    conjuncts,
    in_words,
)
from voile.query.query import Query
from voile.query.text import written
from voile.schema import Attribute, Bins, Schema
from voile.schema.infer import as_number

MOST_CELLS = 4096
"""Combinations of values that a condition is tried on."""
FAR = (1e-3, 1.0, 1e3)
"""How far beyond the ends conditions are tried, in widths of the domain."""
EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = (day.toordinal() - EPOCH_DAY for day in (dt.date.min, dt.date.max))
LARGEST = 2.0**53
HIDDEN = 5.0
"""How many rows noise may have hidden beyond the ends of a domain, in deviations."""
FAILING = (
    "{} may not hold of values that the release does not list, and that count as {}: the estimate "
    "includes these rows, and the interval of a count what it would be without them"
)
NOTE = (
    "{} may hold of values that the release does not list, and that count as {}: the estimate "
    "leaves these rows out, and the interval of a count includes all of them"
)


@dataclass(frozen=True)
class OpenQuery:
    """A query whose conditions also take the rows that stand for values which may meet them.

    Or, where rows may fail them, leave these out.
    """

    query: Query
    notes: tuple[str, ...]
    where: bool
    """Whether a condition of WHERE is among them."""
    columns: frozenset[str]
    """Those whose ends stand for such values."""


def opened(
    query: Query, schema: Schema, engine: PublicDomain, *, failing: bool = False
) -> OpenQuery | None:
    """The query with open conditions; None where no unlisted value could meet any.

    `failing`: with conditions that leave out the rows which stand for values that may fail them.
    """
    known: dict[Predicate, Predicate] = {}
    notes: dict[str, None] = {}
    read = set[str]()
    row = row_prefix(query.tables)

    def part(one: Predicate) -> Predicate:
        if one not in known:
            found = open_condition(one, schema, engine, row, failing=failing)
            known[one] = one
            if found is not None:
                parts = (one, found[0])
                known[one] = And(parts) if failing else Or(parts)
                notes.setdefault((FAILING if failing else NOTE).format(in_words(one), found[1]))
                read.update(found[2])
        return known[one]

    def whole(predicate: Predicate | None) -> Predicate | None:
        found: Predicate | None = None
        for one in conjuncts(predicate) if predicate else ():
            ends = halves(one)
            open_ends = tuple(map(part, ends))
            found = both(found, one if open_ends == ends else And(open_ends))
        return found

    def formula(one: Formula) -> Formula:
        if isinstance(one, Call):
            return Call(one.name, tuple(map(formula, one.args)))
        if isinstance(one, Total):
            return replace(one, term=Term(whole(one.term.predicate), one.term.values))
        return replace(one, predicate=whole(one.predicate)) if isinstance(one, Quantile) else one

    predicate = whole(query.predicate)
    where = bool(notes)
    columns = tuple(
        c if isinstance(c.source, int) else replace(c, source=formula(c.source))
        for c in query.columns
    )
    if not notes:
        return None
    more = replace(query, predicate=predicate, columns=columns, having=None, order=(), limit=None,
                   offset=0, remarks=())  # fmt: skip
    return OpenQuery(more, tuple(notes), where, frozenset(read))


def halves(condition: Predicate) -> tuple[Predicate, ...]:
    """What BETWEEN asks, at its lower and at its upper end; another condition by itself.

    One end may tell listed values apart, and the other one be about none of them.
    """
    if not isinstance(condition, Atom):
        return (condition,)
    node = condition.node.unnest()
    if not isinstance(node, exp.Between) or node.args.get("symmetric") or condition.subqueries:
        return (condition,)
    of = node.this
    named = isinstance(of, exp.Column)
    sides = ((exp.GTE, ">=", node.args["low"]), (exp.LTE, "<=", node.args["high"]))
    return tuple(
        Atom(
            kind(this=of.copy(), expression=end.copy()),
            condition.attributes,
            f"{of.name} {sign} {written(end)}" if named else "",
        )
        for kind, sign, end in sides
    )


def open_condition(
    condition: Predicate, schema: Schema, engine: PublicDomain, row: str, *, failing: bool = False
) -> tuple[Atom, str, list[str]] | None:
    """Where a condition is false and may be true of a value that is not listed; what stands there.

    With `failing`, where it is true of all that is listed, and may be false: then all but that.
    None where there is nothing like it, and where it cannot be tried. A text that is not listed
    fails most conditions: only ends of numbers are tried.
    """
    read = attributes(condition)
    stand_ins = [
        a for a in schema if a.name in read and (a.clamp or (a.other is not None and not failing))
    ]
    points = point_table(read, schema, {}, engine)
    if not stand_ins or points.cells > MOST_CELLS:
        return None
    try:
        flags, reached = _reached(condition, stand_ins, points, failing=failing)
    except (VoileError, pa.ArrowException, OverflowError):
        return None
    if not flags.any():
        return None
    words = [f"{a.name} = {value_words(a, code)}" for a in stand_ins for code in reached[a.name]]
    names = [name for name, codes_ in reached.items() if codes_]
    taken = flags != failing  # with `failing` all others
    return points.condition(taken.astype(float), row), " or ".join(words), names


def value_words(attribute: Attribute, code: int) -> str:
    """A value of a domain as people read it: of bins, from edge to edge."""
    domain = attribute.domain
    if isinstance(domain, Bins):
        low, high = (edge_words(attribute, domain.edges[i]) for i in (code, code + 1))
        return f"{low} to {high}"
    value = domain.at(code)
    return f"{value!r}" if isinstance(value, str) else str(value)


def _reached(
    condition: Predicate, stand_ins: list[Attribute], points: PointTable, *, failing: bool
) -> tuple[npt.NDArray[np.bool_], dict[str, list[int]]]:
    """The combinations in which the condition is false, and true of some unlisted value.

    With `failing`, the other way round. And the codes of those that stand for such a value.
    """
    names = [a.name for a in points.columns]
    places = np.unravel_index(np.arange(points.cells), points.shape)
    listed = {a.name: domain_array(a).take(arrow_array(places[names.index(a.name)]))
              for a in points.columns}  # fmt: skip
    own = truth(condition, listed, names, points.engine)
    flags = np.zeros(points.cells, bool)
    reached: dict[str, list[int]] = {a.name: [] for a in stand_ins}
    missing = [
        place == a.size - 1 for a, place in zip(points.columns, places, strict=True) if a.null
    ]
    if failing and not (own | np.any(missing, axis=0)).all():
        return flags, reached  # what tells listed values apart is about these
    for attribute in stand_ins:
        column = places[names.index(attribute.name)]
        by_code: dict[int, list[Any]] = {}
        for code, value in unlisted_values(condition, attribute):
            by_code.setdefault(code, []).append(value)
        for code, values in by_code.items():
            cells = np.flatnonzero((column == code) & (own == failing))
            rows = np.repeat(cells, len(values))
            tried = {name: of.take(arrow_array(rows)) for name, of in listed.items()}
            tried[attribute.name] = pa.array(values * len(cells), column_type(attribute))
            found = truth(condition, tried, names, points.engine) != failing
            if found.any():
                flags[rows[found]] = True
                reached[attribute.name].append(code)
    return flags, reached


def truth(
    condition: Predicate, columns: dict[str, Any], names: list[str], engine: PublicDomain
) -> npt.NDArray[np.bool_]:
    """Where a condition is true, on tuples that are given by their columns."""
    table = pa.table([columns[name] for name in names], names=names)
    (found,) = engine.on_tuples([as_atom(condition, names)], table)
    return numpy_array(found.cast(pa.bool_()), False).astype(bool)


# ----------------------------------------------------------------------
# values that are not listed


def unlisted_values(condition: Predicate, attribute: Attribute) -> Iterator[tuple[int, Any]]:
    """Values that a condition speaks of, or that lie far out, each with the code it counts as."""
    if attribute.other_code is not None:
        known = set(attribute.domain)
        for text in dict.fromkeys(texts_in(condition)):
            if text not in known:
                yield attribute.other_code, text
        return
    if attribute.kind not in ("integer", "numeric", "date"):
        return
    numbers = pa.array(sorted(numbers_beyond(condition, attribute)), pa.float64())
    if attribute.kind != "numeric":
        numbers = numbers.cast(pa.int64())
    if attribute.kind == "date":
        numbers = numbers.cast(pa.int32()).view(pa.date32())
    moved = clamped(numbers, attribute).cast(ARROW[attribute.kind])
    there = moved.cast(column_type(attribute)) if attribute.kind == "integer" else moved
    for value, old, code in zip(numbers.to_pylist(), moved.to_pylist(),
                                codes(there, attribute), strict=True):  # fmt: skip
        if value != old and code >= 0:
            yield int(code), value


def literals_in(condition: Predicate) -> Iterator[exp.Literal]:
    """Every literal of a condition."""
    yield from as_node(condition).find_all(exp.Literal)


def texts_in(condition: Predicate) -> Iterator[str]:
    """The texts that a condition speaks of; patterns without their wildcards as well."""
    for literal in literals_in(condition):
        if literal.is_string:
            yield literal.this
            yield literal.this.replace("%", "").replace("_", "")


def numbers_beyond(condition: Predicate, attribute: Attribute) -> set[float]:
    """Numbers, or days since 1970-01-01, at and around those of a condition, and far out."""
    ends = domain_ends(attribute)
    width = max(ends[1] - ends[0], 1.0)
    found = {end + side * far * width for end, side in zip(ends, (-1, 1), strict=True)
             for far in FAR}  # fmt: skip
    spoken = sorted(filter(math.isfinite, map(number_of, literals_in(condition))))
    middles = [(a + b) / 2 for a, b in pairwise(spoken)]
    whole = attribute.kind != "numeric"
    for number in (*spoken, *middles, *ends):
        step = 1.0 if whole else max(abs(number), 1e-9) * 1e-9
        found |= {number - step, number, number + step}
    days = attribute.kind == "date"
    least, most = (FIRST_DAY, LAST_DAY) if days else (-LARGEST, LARGEST)
    found = {n for n in found if least <= n <= most}
    return {float(math.floor(n)) for n in found} if whole else found


def number_of(literal: exp.Literal) -> float:
    """A literal's number, or its day; NaN if it has none."""
    try:
        if literal.is_string:
            return float(dt.date.fromisoformat(literal.this[:10]).toordinal() - EPOCH_DAY)
        return float(literal.this)
    except ValueError:
        return math.nan


def domain_ends(attribute: Attribute) -> tuple[float, float]:
    """The least and the largest number of a domain, of days since 1970-01-01."""
    if isinstance(attribute.domain, Bins):
        return attribute.domain.edges[0], attribute.domain.edges[-1]
    size = attribute.domain.size
    numbers = [as_number(attribute.domain.at(code)) for code in (0, size - 1)]
    days = EPOCH_DAY if attribute.kind == "date" else 0
    return min(numbers) - days, max(numbers) - days


# ----------------------------------------------------------------------
# the answer


def unlisted_walk(
    found: AnswerWalk[Evidence],
    query: Query,
    source: Any,
    walk: Callable[[Query], AnswerWalk[Evidence]],
) -> AnswerWalk[Evidence]:
    """The walk of a query with what values that are not listed may do to its conditions."""
    schema, engine = source.engine.schema, source.engine
    if (more := opened(query, schema, engine)) is not None:
        found = OpenWalk(found, walk(more.query), query, more)
    if (less := opened(query, schema, engine, failing=True)) is not None:
        known = source.beyond if isinstance(source, HiddenRows) else {}
        reach = source.open_columns if isinstance(source, OpenColumns) else frozenset()
        rows = [math.inf if n in reach else HIDDEN * known.get(n, math.inf) for n in less.columns]
        found = FailingWalk(found, walk(less.query), query, less, sum(rows))
    return found


class OpenWalk(AnswerWalk[Evidence]):
    """A query some of whose conditions may hold of values that are not listed."""

    def __init__(
        self,
        base: AnswerWalk[Evidence],
        upper: AnswerWalk[Evidence],
        original: Query,
        found: OpenQuery,
    ) -> None:
        """`upper` answers the open query."""
        super().__init__(base.query, base.evidence, base.binned)
        self._upper, self._original, self._open = upper, original, found

    def _column(self, formula: Formula) -> EstimatedColumn:
        found = super()._column(formula)
        place = next((i for i, c in enumerate(self.query.columns) if c.source == formula), None)
        if place is None:  # what only sorts or filters has no interval
            return found
        asked, more = (q.columns[place].source for q in (self._original, self._open.query))
        if not self._open.where and asked == more:
            return found
        if not isinstance(asked, Total) or asked.term.values:
            return without_interval(found)
        return between(found, found, aligned(self._upper, place, self.groups))

    def notes(self) -> tuple[str, ...]:
        """What the analyst should know; some row may meet the condition."""
        notes = [note for note in super().notes() if note != self.evidence.nothing]
        return (*notes, *self._open.notes)


class FailingWalk(AnswerWalk[Evidence]):
    """A query some of whose conditions may fail of values that are not listed."""

    def __init__(
        self,
        base: AnswerWalk[Evidence],
        lower: AnswerWalk[Evidence],
        original: Query,
        found: OpenQuery,
        hidden: float,
    ) -> None:
        """`lower` answers the query without the rows in doubt, of which `hidden` may fail."""
        super().__init__(base.query, base.evidence, base.binned)
        self._base, self._lower, self._original = base, lower, original
        self._open, self._hidden = found, hidden

    def _column(self, formula: Formula) -> EstimatedColumn:
        found = self._base._column(formula)
        place = next((i for i, c in enumerate(self.query.columns) if c.source == formula), None)
        if place is None:
            return found
        asked, less = (q.columns[place].source for q in (self._original, self._open.query))
        if isinstance(asked, int) or (not self._open.where and asked == less):
            return found
        if any(not isinstance(leaf, Total) or leaf.term.values for leaf in leaves(asked)):
            return found
        lower = aligned(self._lower, place, self.groups)
        hidden = self._hidden if isinstance(asked, Total) else math.inf
        return spanning(found, lower, hidden)

    def notes(self) -> tuple[str, ...]:
        """What the analyst should know; some row may fail the condition."""
        return (*self._base.notes(), *self._open.notes)


def spanning(found: EstimatedColumn, other: EstimatedColumn, most: float) -> EstimatedColumn:
    """A column whose interval also holds what another says, but for at most so many rows."""

    def interval(confidence: float) -> Any:
        (low, high), (low_, high_) = found.interval(confidence), other.interval(confidence)
        with np.errstate(invalid="ignore"):
            least = np.maximum(np.fmin(low, low_), low - most)
            return least, np.minimum(np.fmax(high, high_), high + most)

    return replace(found, stderr=half_width(interval), interval=interval, certain=None, plain=None)


def aligned(walk: AnswerWalk[Evidence], place: int, groups: ListedGroups) -> EstimatedColumn:
    """A column of another walk, in the order of these groups."""
    column = walk.estimated_at(place)
    known = {tuple(map(hashable, key)): i for i, key in enumerate(walk.groups.keys)}
    at = np.array([known.get(tuple(map(hashable, key)), -1) for key in groups.keys], int)

    def interval(confidence: float) -> Any:
        ends = column.interval(confidence)
        return tuple(np.where(at < 0, np.nan, end[at]) for end in ends)

    return replace(column, interval=interval)
