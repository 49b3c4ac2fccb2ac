"""A query that reads binned numbers, and how far off its answer may be because of the bins.

A term of the query is a sum over rows of w(x), and rows are known by their bins. It is replaced by
the sum of E[w] in each bin, which every kind of release can estimate, as it is a function of the
bin. What the bins hide of it has, with the derivatives of a formula by its terms, the variance

  (1 − f)·Σ_rows Cov[w, w']          the rows of a group are a sample of those in the bin
  + TILT²·(1 − f)²·(Σ_rows Cov[w, p]/sd[p])²       and lie to one side in all bins
  + (Σ_rows Cov[w, p]/var[p]·common)² + n·Σ_rows share·(Cov[w, p]/var[p]·own)²     errors of means

with p the position in the bin (bin_shapes.py), n the rows of the group, f their share of the table.
All of these are sums over rows again. A condition that cuts a bin is a weight between 0 and 1; of a
count it leaves the rows of the whole bin open, of other statistics CUT of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from sqlglot import exp

from voile.answering.arithmetic import evaluate
from voile.answering.bin_shapes import (
    TILT,
    BinShapes,
    BoundedTotals,
    MeasuredBins,
    OpenColumns,
    read_bins,
    shapes_of,
)
from voile.answering.bin_tables import PointTable, point_table, row_prefix
from voile.answering.certain import bounded
from voile.answering.columns import Certain, EstimatedColumn, half_width, terms_of
from voile.answering.evidence import Evidence
from voile.arrays import Bools, Floats
from voile.client.domains import EPOCH
from voile.errors import VoileError
from voile.query.aggregate import Call, Constant, Formula, Quantile, Total, ValueSpan
from voile.query.predicate import (
    Atom,
    Expression,
    Predicate,
    Term,
    attributes,
    both,
    column,
    conjuncts,
    in_words,
    present,
    wording,
)
from voile.query.query import OutputColumn, Query
from voile.schema import Attribute, Range, Schema
from voile.schema.attribute import day_of, ordinal
from voile.schema.places import domain_ends, places_of

SHAPE = 0.5
"""Of what the spread within bins adds to a mean, as the shape has it: its standard error."""
CUT = 0.25
"""Of a bin's rows, how many a condition that cuts it may count wrongly (a standard error)."""
KNOTS = 17
"""Places within a bin between which quantiles are interpolated."""
COVERS = "; where in their bins numbers lie follows a model (mathematics, section 44)"
UNKNOWN = (
    "{} depends on where in its bin a number lies, of which the release says nothing: counted by "
    "the middles of bins, without an interval; cut at the edges of bins, with >= and <"
)
CUTTING = (
    "{} cuts inside a bin: the estimate interpolates in it, and the interval of a count includes "
    "all of its rows; counts at the edges of bins, with >= and <, are sharper"
)
CLAMPED = (
    "{} was published between {} and {}: what lies beyond counts in the end bins, which are taken "
    "to reach from {} to {}, and statistics are of the values so moved"
)
OPEN = (
    "noise hides how far {0} reaches beyond {1} and {2}: its sums, averages and deviations have no "
    "interval; a codebook with its bounds would give one"
)
NOTHING = 1e-12
"""Of the largest product of two numbers: a covariance that is rounding alone."""
FLAT = 1e-9
"""Of the largest number: what rounding may add to a mean."""
SAME_POINT = 1e-12
"""The variance of positions that are one and the same."""
MOST_EDGES = 20
"""Bins of a column that a note lists."""
ROWS = Total(Term())
EvidenceOf = Callable[[Query, Any], Evidence]


@dataclass(frozen=True, eq=False)
class HiddenTerm:
    """A term whose value on a row depends on where in its bin a number lies."""

    original: Term
    values: tuple[Expression, ...]
    cuts: tuple[Predicate, ...]
    """Conditions that cut bins."""
    rest: Term
    """What is known of a row."""
    shown: Term
    """The same with the mean of what is hidden."""

    @property
    def reads(self) -> set[str]:
        """The columns that what is hidden depends on."""
        found = {name for value in self.values for name in value.attributes}
        return found.union(*(attributes(cut) for cut in self.cuts))

    def on(self, points: PointTable) -> Floats:
        """(cells, points): what is hidden, on points within the bins."""
        found = np.ones((points.cells, len(points.weights)))
        for part in (*self.values, *self.cuts):
            found = found * points.numbers(part)
        return np.where(np.isfinite(found), found, 0.0)


@dataclass(frozen=True, eq=False)
class HiddenSums:
    """The sums over rows that the hidden variance of one formula is made of."""

    terms: tuple[HiddenTerm, ...]
    sampled: dict[tuple[int, int], Term]
    own: dict[tuple[int, int], Term]
    shifts: list[tuple[float, bool, tuple[Term | None, ...]]]
    """Errors that all bins share: their factor, whether the whole table has none, and its sums."""

    @property
    def all_terms(self) -> list[Term]:
        """Every one of them."""
        shifted = [t for _, _, terms in self.shifts for t in terms if t is not None]
        return [*self.sampled.values(), *self.own.values(), *shifted]


@dataclass(eq=False)
class BinnedQuery:
    """One query, rewritten so that bins stand for the means in them."""

    original: Query
    schema: Schema
    source: Any
    shapes: Mapping[str, BinShapes]
    rows: float
    """Of the table, as far as they are known."""
    query: Query = field(init=False)
    unknown: list[str] = field(default_factory=list)
    """Parts of which nothing can be said."""
    _terms: dict[Term, HiddenTerm] = field(default_factory=dict)
    _sums: dict[Formula, HiddenSums] = field(default_factory=dict)
    _ends: dict[Formula, tuple[Total, Total]] = field(default_factory=dict)
    _sides: dict[Formula, tuple[Formula, Formula]] = field(default_factory=dict)
    """The same formulas with every number at the lower end of its bin, and at the upper end."""
    _without: set[Formula] = field(default_factory=set)
    """Formulas that have no interval."""
    _present: dict[Atom, Atom] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._row = row_prefix(self.original.tables)
        self._where = conjuncts(self.original.predicate) if self.original.predicate else ()
        self._cuts = tuple(p for p in self._where if self._is_hidden(p))
        made = [group for group in self.original.groups if not group.is_column]
        self._lost_groups = [group for group in made if self._is_hidden(group)]
        self.unknown += [wording(g) for g in self._lost_groups]
        self.query = self._rewritten()

    # ------------------------------------------------------------------ what is hidden

    def _points(self, names: set[str], *, beyond: bool = False) -> PointTable:
        """Points within bins; of values, also those beyond the ends of the domain."""
        shapes = self.shapes if beyond else self._listed
        return point_table(names, self.schema, shapes, self.source.engine)

    @cached_property
    def _listed(self) -> dict[str, BinShapes]:
        """The shapes without what is beyond: conditions are about what is listed (unlisted.py)."""
        return {name: as_listed(shape, self.schema[name]) for name, shape in self.shapes.items()}

    def _is_hidden(self, part: Expression | Predicate, *, beyond: bool = False) -> bool:
        """Whether it differs within some bin; what cannot be tried is taken to."""
        read = set(part.attributes) if isinstance(part, Expression) else attributes(part)
        if not read & set(self.shapes):
            return False
        points = self._points(read, beyond=beyond)
        if points.count is None:  # ranges alone are then taken as they are listed
            listed = [isinstance(self.schema[n].domain, Range) for n in read & set(self.shapes)]
            return not all(listed)
        if any(self.shapes[name].places.zero is not None for name in read & set(self.shapes)):
            return True  # zeros are listed by the middle of their bin, which is not 0
        return differs(part, points)

    @property
    def lost_groups(self) -> tuple[int, ...]:
        """The places of groups whose expressions cut bins."""
        return tuple(i for i, g in enumerate(self.original.groups) if g in self._lost_groups)

    def keys_of(self, places: tuple[int, ...], most: int) -> list[tuple[Any, ...]] | None:
        """The values that some groups have together, within bins; None if they are too many."""
        parts = [self.original.groups[i] for i in places]
        points = self._points({name for part in parts for name in part.attributes})
        if points.count is None:
            return None
        found = dict.fromkeys(zip(*map(points.values, parts), strict=True))
        return sorted(found, key=in_order) if len(found) <= most else None

    def _rewritten(self) -> Query:
        query = self.original
        kept: list[Predicate] = [p for p in self._where if p not in self._cuts]
        for cut in self._cuts:
            points = self._points(attributes(cut))
            kept.append(cut if points.count is None else self._touched(points, [cut], some=True))
        where: Predicate | None = None
        for part in kept:
            where = both(where, part)
        columns = tuple(
            c if isinstance(c.source, int) else replace(c, source=self._formula(c.source))
            for c in query.columns
        )
        order = tuple(
            o if isinstance(o.source, int) else replace(o, source=self._formula(o.source))
            for o in query.order
        )
        having = self._formula(query.having) if query.having else None
        return replace(query, predicate=where, columns=columns, order=order, having=having)

    def _touched(self, points: PointTable, cuts: Sequence[Predicate], *, some: bool) -> Atom:
        """Bins in which some number passes, or every one does."""
        found = np.ones((points.cells, len(points.weights)))
        for cut in cuts:
            found = found * points.numbers(cut)
        flags = found.max(axis=1) if some else found.min(axis=1)
        return points.condition(flags, self._row)

    def _formula(self, formula: Formula) -> Formula:
        """The formula of rewritten terms, and what its hidden variance is made of."""
        found = self._replaced(formula)
        hidden = [self._terms[t] for t in dict.fromkeys(terms_of(formula)) if t in self._terms]
        if self._lost_groups or (formula_lost := [t for t in hidden if t.shown is t.original]):
            self._without.add(found)
            if not self._lost_groups:
                self.unknown += [wording(v) for t in formula_lost for v in t.values]
                self.unknown += [in_words(c) for t in formula_lost for c in t.cuts]
        elif hidden:
            self._hide(found, hidden)
            self._bound(formula, found)
        if any(v.attributes and self._open & set(v.attributes) for t in hidden for v in t.values):
            self._without.add(found)
        return found

    @cached_property
    def _open(self) -> frozenset[str]:
        """Columns of which nobody knows how far they reach."""
        return self.source.open_columns if isinstance(self.source, OpenColumns) else frozenset()

    def _bound(self, formula: Formula, found: Formula) -> None:
        """Where the source bounds totals for certain, so are numbers at the ends of their bins."""
        if isinstance(self.source, BoundedTotals):
            sides = [self._side(formula, upper=upper) for upper in (False, True)]
            if sides[0] is not None and sides[1] is not None:
                self._sides[found] = sides[0], sides[1]

    def _side(self, formula: Formula, *, upper: bool) -> Formula | None:
        """A formula that the given one never passes; None where the ends of bins do not say."""
        if not any(term in self._terms for term in terms_of(formula)):
            return self._replaced(formula)
        if isinstance(formula, Total):
            return self._side_of_total(self._terms[formula.term], upper=upper)
        if not isinstance(formula, Call):
            return None
        first, *rest = formula.args
        match formula.name:
            case "+" | "-":
                same = upper == (formula.name == "+")
                sides = [self._side(first, upper=upper), self._side(rest[0], upper=same)]
            case "*" if isinstance(first, Constant):
                sides = [first, self._side(rest[0], upper=upper == (first.value >= 0))]
            case "/" if is_count(rest[0]):
                sides = [self._side(first, upper=upper), self._side(rest[0], upper=upper)]
            case "round":
                sides = [self._side(first, upper=upper), *rest]
            case _:
                return None
        parts = [side for side in sides if side is not None]
        return Call(formula.name, tuple(parts)) if len(parts) == len(sides) else None

    def _side_of_total(self, term: HiddenTerm, *, upper: bool) -> Total | None:
        """Of a sum of one column that no condition cuts."""
        if term.cuts or term.rest.values or len(term.values) != 1:
            return None
        node = term.values[0].node
        if not isinstance(node, exp.Column) or node.name not in self.shapes:
            return None
        points = self._points({node.name})
        ends = points.of_bins(node.name, self.shapes[node.name].ends[int(upper)])
        return Total(Term(term.rest.predicate, (points.lookup(ends, self._row),)))

    def _hide(self, found: Formula, hidden: list[HiddenTerm]) -> None:
        reads = set[str]().union(*(t.reads for t in hidden))
        points = self._points(reads, beyond=any(t.values for t in hidden))
        if points.count is None:
            self._without.add(found)
            self.unknown += [wording(v) for t in hidden for v in t.values]
            return
        if isinstance(found, Total) and not hidden[0].values and not hidden[0].rest.values:
            term = hidden[0]
            ends = [
                Total(Term(both(term.rest.predicate, self._touched(points, term.cuts, some=some))))
                for some in (False, True)
            ]
            self._ends[found] = ends[0], ends[1]
            return
        self._sums[found] = hidden_sums(hidden, points, self._row)

    def _replaced(self, formula: Formula) -> Formula:
        if isinstance(formula, Call):
            return Call(formula.name, tuple(map(self._replaced, formula.args)))
        if isinstance(formula, Total):
            return Total(self._shown(formula.term))
        if isinstance(formula, Quantile):
            return self._quantile(formula)
        return formula

    # ------------------------------------------------------------------ terms

    def _shown(self, term: Term) -> Term:
        if term not in self._terms:
            found = self._hidden(term)
            if found is None:
                return Term(self._seen(term.predicate), term.values)
            self._terms[term] = found
        return self._terms[term].shown

    def _seen(self, predicate: Predicate | None) -> Predicate | None:
        """Where a value was replaced, its being there is written alike."""
        found: Predicate | None = None
        for part in conjuncts(predicate) if predicate else ():
            found = both(found, self._present.get(part, part) if isinstance(part, Atom) else part)
        return found

    def _hidden(self, term: Term) -> HiddenTerm | None:
        own = conjuncts(term.predicate) if term.predicate else ()
        cuts = (*(p for p in own if self._is_hidden(p)), *self._cuts)
        values = tuple(v for v in term.values if self._is_hidden(v, beyond=True))
        if not cuts and not values:
            return None
        predicate: Predicate | None = None
        for part in own:
            predicate = both(predicate, part) if part not in cuts else predicate
        rest = Term(self._seen(predicate), tuple(v for v in term.values if v not in values))
        found = HiddenTerm(term, values, cuts, rest, term)
        if len(values) == 1 and not cuts and self._is_linear(values[0]):
            mean = self._at_means(values[0])
            self._present[present(values[0])] = present(mean)
            return replace(found, shown=Term(rest.predicate, (*rest.values, mean)))
        points = self._points(found.reads, beyond=bool(values))
        if points.count is None:
            return found
        mean = points.lookup(points.mean(found.on(points)), self._row)
        return replace(found, shown=Term(rest.predicate, (*rest.values, mean)))

    def _is_linear(self, value: Expression) -> bool:
        """Whether it is linear in binned numbers, and reads no days."""
        if any(self.schema[name].kind == "date" for name in value.attributes):
            return False
        return is_linear(value.node, set(self.shapes))

    def _at_means(self, value: Expression) -> Expression:
        """A value that is linear in binned columns, with the mean of each bin in their place."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.name not in self.shapes:
                return node
            points = self._points({node.name}, beyond=True)
            means = self.shapes[node.name].means
            numbers = points.of_bins(node.name, means)
            known = points.lookup(numbers, self._row).node
            if not self.schema[node.name].null:
                return exp.paren(known)
            there = exp.Not(this=exp.Is(this=node.copy(), expression=exp.Null()))
            return exp.Case(ifs=[exp.If(this=there, true=known)])

        return replace(value, node=value.node.copy().transform(replaced), text=wording(value))

    # ------------------------------------------------------------------ quantiles

    def _quantile(self, quantile: Quantile) -> Quantile:
        own = conjuncts(quantile.predicate) if quantile.predicate else ()
        cuts = [p for p in own if self._is_hidden(p)] + list(self._cuts)
        lost = bool(cuts or self._lost_groups)
        self.unknown += [in_words(cut) for cut in cuts]
        found = quantile
        if self._is_hidden(quantile.value, beyond=True):
            spans = self._spans(quantile.value)
            lost = lost or not spans
            if not spans:
                self.unknown.append(wording(quantile.value))
            found = replace(quantile, spans=spans)
        if lost or any(
            self.shapes[n].size == 1 for n in self._open & set(quantile.value.attributes)
        ):
            self._without.add(found)
        return found

    def _spans(self, value: Expression) -> tuple[ValueSpan, ...]:
        """What each value stands for; none where it cannot be tried."""
        points = self._points(set(value.attributes), beyond=True)
        if points.count is None:
            return ()
        numbers = points.numbers(value)
        (middles,) = self.source.engine.domain.evaluate([value])
        at = np.array([np.nan if v is None else float(v) for v in middles.to_pylist()])
        found = [
            span_of(float(one), numbers[at == one], points.weights)
            for one in np.unique(at[np.isfinite(at)])
        ]
        low = np.minimum.accumulate([s.low for s in found][::-1])[::-1]
        high = np.maximum.accumulate([s.high for s in found])
        ends = zip(found, low.tolist(), high.tolist(), strict=True)
        return tuple(replace(s, low=a, high=b) for s, a, b in ends)

    # ------------------------------------------------------------------ errors

    @property
    def asked(self) -> Query:
        """The query, with all sums that errors are made of."""
        sums = [Total(t) for s in self._sums.values() for t in s.all_terms]
        sums += [Total(t) for s in self._sums.values() for h in s.terms for t in (h.shown,)]
        ends = [end for both_ends in self._ends.values() for end in both_ends]
        sides = [side for both_sides in self._sides.values() for side in both_sides]
        more = dict.fromkeys([*sums, *ends, *sides, ROWS])
        hidden = tuple(OutputColumn(f"bins {i}", one) for i, one in enumerate(more))
        return replace(self.query, columns=(*self.query.columns, *hidden))

    def widened(
        self, formula: Formula, found: EstimatedColumn, evidence: Evidence
    ) -> EstimatedColumn:
        """The column with what the bins hide in its error."""
        if formula in self._without:
            return without_interval(found)
        if formula in self._ends:
            low, high = (evidence.column(end) for end in self._ends[formula])
            return between(found, low, high)
        if formula not in self._sums:
            return self._within(formula, found) if isinstance(formula, Quantile) else found
        variance = self._variance(formula, self._sums[formula], evidence)
        floor = 0.0 if never_negative(formula) else -np.inf
        plain = None if found.plain is None else wider(found.plain, variance, floor)
        widened = replace(wider(found, variance, floor), plain=plain)
        if formula not in self._sides:
            return widened
        least, most = (evidence.column(side).certain for side in self._sides[formula])
        if least is None or most is None:
            return widened
        return bounded(widened, Certain(least.low, most.high, tight=False))

    def _within(self, quantile: Quantile, found: EstimatedColumn) -> EstimatedColumn:
        """A quantile without an interval where it lies beyond the ends of a learnt domain."""
        node = quantile.value.node
        if not isinstance(node, exp.Column) or node.name not in self.shapes:
            return found
        attribute = self.schema[node.name]
        low, high = domain_ends(attribute)
        known = np.asarray((found.value >= low) & (found.value <= high))
        return found if not attribute.clamp or known.all() else with_intervals(found, known)

    @np.errstate(all="ignore")
    def _variance(self, formula: Formula, sums: HiddenSums, evidence: Evidence) -> Floats:
        count = len(evidence.groups)

        @lru_cache(None)
        def total(term: Term) -> Floats:
            return np.asarray(evidence.values(Total(term), {}), float)

        used = terms_of(formula)
        totals = {term: total(term) for term in used}
        slopes = evaluate(formula, totals, {}, used, count).slope
        slope = np.stack([slopes[:, used.index(t.shown)] for t in sums.terms], axis=1)
        rows = np.maximum(total(Term()), 0.0)
        others = np.clip(1 - rows / max(self.rows, 1.0), 0.0, 1.0)
        found = np.zeros(count)
        for parts, times in ((sums.sampled, others), (sums.own, rows)):
            part = np.zeros(count)
            for (i, j), term in parts.items():
                part += (1 if i == j else 2) * slope[:, i] * slope[:, j] * total(term)
            found += times * np.maximum(part, 0.0)
        for factor, of_groups, terms in sums.shifts:
            part = np.zeros(count)
            for i, one in enumerate(terms):
                part += slope[:, i] * total(one) if one is not None else 0.0
            found += (factor * (others if of_groups else 1.0) * part) ** 2
        return np.where(np.isfinite(found), found, np.nan)

    def covers(self, covers: str) -> str:
        """What intervals cover, with what they rest on."""
        spans = any(isinstance(f, Quantile) and f.spans for f in self.query.formulas)
        return covers + COVERS if self._sums or self._ends or spans else covers

    def _clamped(self, name: str) -> str:
        """What the ends of a learnt domain stand for."""
        attribute, edges = self.schema[name], self.shapes[name].edges
        ends = (*domain_ends(attribute), float(edges[0]), float(edges[-1]))
        if name in self._open:
            return OPEN.format(name, *(edge_words(attribute, end) for end in ends[:2]))
        return CLAMPED.format(name, *(edge_words(attribute, end) for end in ends))

    @property
    def notes(self) -> list[str]:
        """What could not be said, and where conditions cut bins."""
        lost = dict.fromkeys(self.unknown)
        cuts = dict.fromkeys(c for t in self._terms.values() for c in t.cuts)
        known = {c: self._points(attributes(c)) for c in cuts if in_words(c) not in lost}
        cut = [c for c, points in known.items() if points.count is None or differs(c, points)]
        read = set[str]().union(*map(attributes, cut))
        found = [self.cut_note([in_words(c) for c in cut], read)] if cut else []
        found += [
            self._clamped(name)
            for name in self.shapes
            if self.schema[name].clamp and any(name in v.attributes for v in self.original.values)
        ]
        if lost:
            found.append(UNKNOWN.format(" and ".join(lost)) + self._edges_of(set(self.shapes)))
        return found

    def cut_note(self, words: Sequence[str], read: set[str]) -> str:
        """That conditions or groups which read some columns cut bins, and where these begin."""
        return CUTTING.format(" and ".join(words)) + self._edges_of(read)

    def _edges_of(self, names: set[str]) -> str:
        """Where the bins of some columns begin, in words; nothing of columns that have many."""
        found = [
            f"; the bins of {name} begin at "
            + ", ".join(
                edge_words(self.schema[name], edge)
                for edge in (domain_ends(self.schema[name])[0], *shape.edges[1:-1])
            )
            for name, shape in self.shapes.items()
            if name in names and shape.size <= MOST_EDGES
        ]
        return "".join(found)


# ----------------------------------------------------------------------
# the sums that hidden variances are made of


def hidden_sums(hidden: list[HiddenTerm], points: PointTable, row: str) -> HiddenSums:
    """Of all pairs of a formula's hidden terms."""
    on = [term.on(points) for term in hidden]

    def summed(numbers: Floats, *terms: HiddenTerm) -> Term:
        predicate: Predicate | None = None
        for term in terms:
            predicate = both(predicate, term.rest.predicate)
        values = tuple(v for term in terms for v in term.rest.values)
        return Term(predicate, (*values, points.lookup(numbers, row)))

    def moving(numbers: Floats, term: HiddenTerm) -> Term | None:
        """The sum, where a column moves the term at all."""
        return summed(numbers, term) if numbers.any() else None

    sampled, own = {}, {}
    by_column = {name: [sensitivity(w, name, points) for w in on] for name in points.binned}
    for i, a in enumerate(hidden):
        for j, b in list(enumerate(hidden))[i:]:
            together = points.covariance(on[i], on[j])
            if i == j or np.abs(together).max() > NOTHING * float(np.abs(on[i] * on[j]).max()):
                sampled[i, j] = summed(together, a, b)
            spread = np.zeros(points.cells)
            for name, moved in by_column.items():
                shape = points.shapes[name]
                weight = points.of_bins(name, shape.share * shape.own**2)
                spread += moved[i] * moved[j] * weight
            if spread.any():
                own[i, j] = summed(spread, a, b)
    shifts: list[tuple[float, bool, tuple[Term | None, ...]]] = []
    for name, moved in by_column.items():
        position = points.positions[name]
        spread = np.sqrt(np.maximum(points.covariance(position, position), 0.0))
        common = points.of_bins(name, points.shapes[name].common)
        tilted = tuple(moving(m * spread, t) for m, t in zip(moved, hidden, strict=True))
        shifts.append((TILT, True, tilted))
        if common.any():
            moves = tuple(moving(m * common, t) for m, t in zip(moved, hidden, strict=True))
            shifts.append((1.0, False, moves))
    bent = [None if t.cuts else gap(w, points) for w, t in zip(on, hidden, strict=True)]
    if any(part is not None and np.abs(part).max() > 0 for part in bent):
        parts_ = zip(bent, hidden, strict=True)
        shifts.append((SHAPE, False, tuple(p if p is None else moving(p, t) for p, t in parts_)))
    for cut in dict.fromkeys(c for t in hidden for c in t.cuts):
        truth = points.numbers(cut)
        open_ = np.ptp(truth, axis=1) > 0
        parts = [np.where(open_, share_of(w, truth, points), 0.0) if cut in t.cuts else None
                 for w, t in zip(on, hidden, strict=True)]  # fmt: skip
        both_ = zip(parts, hidden, strict=True)
        terms = tuple(None if part is None else summed(part, term) for part, term in both_)
        shifts.append((CUT, False, terms))
    return HiddenSums(tuple(hidden), sampled, own, shifts)


@np.errstate(all="ignore")
def sensitivity(numbers: Floats, name: str, points: PointTable) -> Floats:
    """How much the mean of each cell changes as its mean position does."""
    position = points.positions[name]
    spread = points.covariance(position, position)
    together = points.covariance(numbers, position)
    size = np.abs(numbers).max(axis=1) * np.abs(position).max(axis=1)
    # What another column decides has no covariance but for rounding.
    inner = np.where(np.abs(together) > NOTHING * size, together / spread, 0.0)
    # Where all points are one number, its bin may still hold others: the way from end to end tells.
    low, high = points.at_ends(position, name)
    way = high - low
    ends = np.where(way > 0, np.subtract(*points.at_ends(numbers, name)[::-1]) / way, 0.0)
    return np.where(spread > SAME_POINT, inner, ends)


def gap(numbers: Floats, points: PointTable) -> Floats:
    """What the spread within each bin adds to the mean of some numbers: E[w(x)] − w(E[x]).

    Of what is linear nothing, as also where several columns are in bins: it is not computed there.
    """
    if len(points.binned) != 1:
        return np.zeros(points.cells)
    inner = points.weights > 0
    position = points.positions[points.binned[0]]
    middles = points.mean(position)
    straight = [
        np.interp(middles[cell], position[cell, inner], numbers[cell, inner])
        for cell in range(points.cells)
    ]
    found = points.mean(numbers) - np.array(straight)
    return np.where(np.abs(found) > FLAT * np.abs(numbers).max(axis=1), found, 0.0)


@np.errstate(all="ignore")
def share_of(numbers: Floats, truth: Floats, points: PointTable) -> Floats:
    """The mean of what passes a condition; where nothing does, of its largest values."""
    passing = points.mean(truth)
    return np.where(passing > 0, points.mean(numbers) / passing, np.abs(numbers).max(axis=1))


def span_of(value: float, numbers: Floats, weights: Floats) -> ValueSpan:
    """What one value stands for, from points of equal weight and the ends."""
    flat = numbers[np.isfinite(numbers)]
    low, high = float(flat.min()), float(flat.max())
    inner = np.sort(numbers[:, weights > 0].ravel())
    shares = np.concatenate([[0.0], (np.arange(len(inner)) + 0.5) / len(inner), [1.0]])
    knots = np.interp(np.linspace(0, 1, KNOTS), shares, np.concatenate([[low], inner, [high]]))
    return ValueSpan(value, low, high, tuple(knots.tolist()))


def never_negative(formula: Formula) -> bool:
    """Whether it is a standard deviation, or another root."""
    return isinstance(formula, Call) and formula.name == "sqrt"


def wider(found: EstimatedColumn, variance: Floats, least: float) -> EstimatedColumn:
    """A column whose error has another, independent part; it is never below `least`."""

    @np.errstate(all="ignore")
    def interval(confidence: float) -> tuple[Floats, Floats]:
        low, high = found.interval(confidence)
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        more = z**2 * variance
        return (
            np.maximum(found.value - np.sqrt((found.value - low) ** 2 + more), least),
            found.value + np.sqrt((high - found.value) ** 2 + more),
        )

    stderr = np.sqrt(found.stderr**2 + variance)
    return replace(found, stderr=stderr, interval=interval, certain=None)


def between(found: EstimatedColumn, low: EstimatedColumn, high: EstimatedColumn) -> EstimatedColumn:
    """A count of which the rows of a bin are open: from that without them to that with them."""

    def interval(confidence: float) -> tuple[Floats, Floats]:
        return low.interval(confidence)[0], high.interval(confidence)[1]

    return replace(found, stderr=half_width(interval), interval=interval, certain=None, plain=None)


def differs(part: Expression | Predicate, points: PointTable) -> bool:
    """Whether it differs within some bin; what cannot be tried is taken to."""
    try:
        return points.differs(part)
    except VoileError:
        return True


def is_count(formula: Formula) -> bool:
    """Whether it is a number of rows, which is never below 0."""
    return isinstance(formula, Total) and not formula.term.values


def with_intervals(found: EstimatedColumn, known: Bools) -> EstimatedColumn:
    """The column with intervals where they are known alone."""

    def interval(confidence: float) -> tuple[Floats, Floats]:
        low, high = found.interval(confidence)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)

    return replace(found, stderr=np.where(known, found.stderr, np.nan), interval=interval)


def without_interval(found: EstimatedColumn) -> EstimatedColumn:
    """The column where nothing can be said about how far it is off."""
    unknown = np.full_like(found.value, np.nan)
    return replace(found, stderr=unknown, interval=lambda _: (unknown, unknown), plain=None,
                   certain=None)  # fmt: skip


def in_order(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """By which keys of groups are sorted: NULL comes last."""
    return [(value is None, "" if value is None else value) for value in key]


def edge_words(attribute: Attribute, edge: float) -> str:
    """An end of bins as people write it."""
    return str(day_of(edge)) if attribute.kind == "date" else f"{edge:g}"


def is_linear(node: exp.Expr, names: set[str]) -> bool:
    """Whether an expression is linear in some columns, as it is written."""

    def reads(part: exp.Expr) -> bool:
        return any(c.name in names for c in part.find_all(exp.Column))

    if not reads(node) or isinstance(node, exp.Column):
        return True
    if isinstance(node, exp.Paren | exp.Neg):
        return is_linear(node.this, names)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return False
    left, right = node.this, node.expression
    if reads(right) and (isinstance(node, exp.Div) or (isinstance(node, exp.Mul) and reads(left))):
        return False
    return is_linear(left, names) and is_linear(right, names)


# ----------------------------------------------------------------------
# from a query to its rewritten form


def binned_query(query: Query, evidence: EvidenceOf, source: Any) -> BinnedQuery | None:
    """The query with means in the place of bins; None where it reads none, or only whole bins."""
    schema: Schema = source.engine.schema
    parts = [*query.conditions, *query.values, *(g for g in query.groups if not g.is_column)]
    names = {name for part in parts for name in part.attributes}
    binned = read_bins(tuple(names), tuple(schema))
    if not binned:
        return None
    shapes, rows = {}, 0.0
    for attribute in binned:
        counts = bin_counts(attribute.name, evidence, source)
        knows = isinstance(source, MeasuredBins)
        inside = counts[: attribute.domain.size]
        measured = source.bin_positions(attribute.name, inside) if knows else None
        shapes[attribute.name] = shapes_of(attribute, inside, measured)
        rows = float(np.maximum(counts, 0.0).sum())
    return BinnedQuery(query, schema, source, shapes, rows)


def as_listed(shape: BinShapes, attribute: Attribute) -> BinShapes:
    """The shape of a column's bins within the domain as it is listed."""
    places = places_of(attribute, domain_ends(attribute))
    assert places is not None  # noqa: S101  (it has bins)
    return replace(shape, places=places)


def bin_counts(name: str, evidence: EvidenceOf, source: Any) -> Floats:
    """How many rows are in each bin of a column, and how many have none."""
    attribute = source.engine.schema[name]
    by_bin = Query("", None, (OutputColumn("n", ROWS),), (column(name),))
    found = evidence(by_bin, source)
    values = np.asarray(found.values(ROWS, {}), float)
    places = places_of(attribute)
    assert places is not None  # noqa: S101  (asked of binned columns only)
    counts = np.zeros(attribute.size)
    for (key,), value in zip(found.groups.keys, values, strict=True):
        if key is None:
            place = attribute.size - 1
        else:
            at = ordinal(key) - EPOCH if isinstance(key, dt.date) else key
            place = int(places.stretches(np.array([float(at)]))[0])
        counts[place] += value
    return counts
