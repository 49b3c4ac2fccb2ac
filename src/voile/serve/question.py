"""From SQL to the totals that answer it: what each costs, what one person can do to it, its noise.

Nothing here touches a row: what is decided here, a refusal above all, follows from the question and
the public schema alone.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from voile.answering.noisy_totals import terms_needed
from voile.answering.totals import ListedGroups, hashable
from voile.answering.walk import bin_notes, groupings
from voile.arrays import Floats
from voile.engines.lookups import Lookup, Summand, Sums, Tree, cells_of, half_away
from voile.errors import QueryError, UsageError, did_you_mean
from voile.noise.keyed import half_mask
from voile.privacy.interactive.laws import Change, NoiseLaw, noise_law
from voile.query import parse
from voile.query.aggregate import Call, Formula, Total, WholeTotal
from voile.query.domain import GroupedSum
from voile.query.language import own_table
from voile.query.predicate import And, Expression, Predicate, Term, both
from voile.query.query import OutputColumn, Query
from voile.schema import Schema
from voile.serve.canonical import (
    FALSE,
    TRUE,
    canonical_form,
    digest,
    group_meaning,
    meaning_of_values,
    row_part,
)
from voile.serve.domain_evaluator import DomainEvaluator
from voile.serve.setting import Setting

FINE = 2**20
"""Steps that numbers which are not whole are summed in, over their range."""
EXACT = 2.0**53
"""Whole numbers below are exact in floating point."""


LEAST_WIDTH = 1e-290
"""Below which the steps to a unit are more than floating point holds."""


def steps(
    numbers: Sequence[Floats], ends: tuple[float, float], rows: int
) -> tuple[float, int, int]:
    """Steps to a unit of what is summed, and between how many steps a row's part lies.

    A row's part is made whole before it is added: a sum of whole numbers is the same in any order.
    It is exact, too, if all rows together stay below what floating point holds.
    """
    if not numbers:
        return 1.0, 1, 1
    scale = 1.0
    if not all((n[~np.isnan(n)] % 1 == 0).all() for n in numbers):
        width = max(ends[1], 0.0) - min(ends[0], 0.0)
        if 0 < width < LEAST_WIDTH:
            raise QueryError(
                f"what is summed is at most {width:g} in a row, too little to be added exactly",
                hint="sum it times a large number, and divide the answer",
            )
        scale = 2.0 ** math.ceil(math.log2(FINE / width)) if width > 0 else 1.0
    most = max(map(abs, ends))
    if rows * (most * scale + 1) >= EXACT:
        raise QueryError(
            f"what is summed reaches {most:g} in a row, and with {rows:,} rows more than can be "
            "added exactly",
            hint="sum it divided by a thousand, or cut it, as in least(x, 1000)",
        )
    low, high = half_away(np.array(ends) * scale).tolist()
    return scale, low, high


def change_of(ends: tuple[int, int], cells: int, *, always: bool, per_person: int) -> Change:
    """What replacing one person's rows does at most, in steps.

    A row's part lies between `ends` if it counts, and is 0 if not: so 0 is among them, unless
    all rows `always` count. Who changes group takes a part from one and gives a part to another.
    """
    low, high = ends
    if not always or cells > 1 or per_person > 1:
        low, high = min(low, 0), max(high, 0)
    within, most = per_person * (high - low), per_person * max(-low, high)
    if cells == 1:
        return Change(max(within, 1), max(within, 1) ** 2)
    # Two groups by so much each; that also covers one group by `within`.
    each = max(most, -(-math.isqrt(2 * within**2) // 2), 1)
    while 2 * each**2 < within**2:
        each += 1
    return Change(2 * each, 2 * each**2)


# ---------------------------------------------------------------------- question


MOST_TOTALS = 50
MOST_ESTIMATES = 20_000
"""Numbers in an answer: groups times columns. To make them takes time, also if they are free."""
LONGEST, LONGEST_SEED = 10_000, 200
"""Characters of a question, and of a seed."""
KEPT = 4096
"""Questions that are remembered as they were read."""


@dataclass(frozen=True)
class RowSelection:
    """Which rows are asked about: everyone, a public half, or a declared subset."""

    subset: Any
    """As JSON: "all", {"half": SEED}, or a name."""
    mask: int | None = None
    """Of a half."""
    declared: Tree | None = None
    """The condition of a declared subset: whom it holds for depends on the rows' values."""
    rows: int | None = None
    """How many, where that is public by itself."""


@dataclass(frozen=True)
class QuestionTotal:
    """One total over one list of groups: one answer, one charge."""

    key: str
    earlier: str | None
    """Its key before totals were compared as a whole, if the same answer would serve it."""
    meaning: dict[str, Any]
    """What the key is made of, without the rows that are asked about."""
    earlier_meaning: dict[str, Any] | None
    term: Term
    summand: Summand
    range: tuple[float, float]
    """Between which numbers a row's part lies."""
    change: Change
    law: NoiseLaw
    question: dict[str, Any]
    """What the ledger keeps."""
    nobody: bool
    """Whether no tuple of the domain counts: then it is 0, and that is public."""
    everybody: bool
    """Whether it counts all rows of the subset, whatever they are."""

    def about(self, subset: Any) -> QuestionTotal:
        """The same total of other rows."""
        earlier = self.earlier_meaning
        return replace(
            self,
            key=digest(self.meaning | {"subset": subset}),
            earlier=None if earlier is None else digest(earlier | {"subset": subset}),
            question=self.question | {"subset": subset},
        )


@dataclass(frozen=True)
class Question:
    """A query, and the totals that answer it."""

    query: Query
    rows: RowSelection
    totals: tuple[QuestionTotal, ...]
    groups: ListedGroups
    """In the order of the query's groups."""
    where: Tree | None
    """Who counts, in WHERE and in a declared subset."""
    keys: tuple[Lookup, ...]
    expected: GroupedSum | None
    """What the domain allows, where there are groups, in the order of how these are written."""
    order: tuple[int, ...]
    """Which of those each group expression is, in the order that answers are stored in."""
    sizes: tuple[int, ...]
    """How many keys the domain has by each group expression, in that order."""
    stored: tuple[int, ...]
    """Which of the stored groups each group of the answer is."""
    reordered: tuple[int, ...] | None
    """Where the stored groups stand in answers under an earlier key; None if in the same order."""
    codes: tuple[npt.NDArray[np.int64], ...]
    """Places of the stored groups among the domain's keys."""
    shape: QuestionShape
    notes: tuple[str, ...] = ()
    """What the analyst should know about the question."""
    wholes: tuple[WholePart, ...] = ()
    """Totals over more rows than a group's, beside those of groups."""
    sets: tuple[Question, ...] = ()
    """The groupings of ROLLUP, CUBE or GROUPING SETS; then the totals are theirs."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions with one grouping that it is made of, each of which has its own totals."""
        if self.sets:
            return tuple(one for each in self.sets for one in each.questions)
        return (self, *(part.question for part in self.wholes))

    def without_expected(self) -> Question:
        """The same without what the domain expects: who counts has no use for that."""
        return replace(
            self,
            expected=None,
            wholes=tuple(replace(p, question=p.question.without_expected()) for p in self.wholes),
            sets=tuple(one.without_expected() for one in self.sets),
        )

    def sums(self, totals: Sequence[QuestionTotal]) -> Sums:
        """What is to be counted for some of the totals, in the order of the stored groups."""
        summands = tuple(total.summand for total in totals)
        if not self.sizes:
            return Sums(summands, self.where, self.rows.mask)
        cells = cells_of(self.sizes, self.codes)
        groups = len(self.codes[0])
        return Sums(summands, self.where, self.rows.mask, self.keys, self.sizes, cells, groups)

    def about(self, rows: RowSelection) -> Question:
        """The same question about all rows, or about another half of them."""
        if rows.subset == self.rows.subset:
            return self
        return replace(
            self,
            rows=rows,
            shape=replace(self.shape, rows=rows),
            totals=tuple(total.about(rows.subset) for total in self.totals),
            wholes=tuple(replace(p, question=p.question.about(rows)) for p in self.wholes),
            sets=tuple(one.about(rows) for one in self.sets),
        )


@dataclass(frozen=True)
class WholeTerm(Term):
    """What is summed over all rows that agree with a group in some of its keys."""

    keys: tuple[int, ...] = ()
    """Places among the keys of the groups; without any, it is of all rows."""

    @property
    def plain(self) -> Term:
        """What is summed, whatever the rows."""
        return Term(self.predicate, self.values)


@dataclass(frozen=True)
class WholePart:
    """Totals over all rows that agree with a group in some of its keys, as a question."""

    question: Question
    terms: tuple[WholeTerm, ...]
    places: tuple[int, ...]
    """Which of the question's groups each group of the answer belongs to."""


class QuestionReader:
    """Reads questions for one server; used by many threads, one at a time."""

    def __init__(self, setting: Setting, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is what patience is measured by."""
        self.setting = setting
        self._evaluator = DomainEvaluator(setting.schema, clock)
        self._sizes = {attribute.name: attribute.size for attribute in setting.schema}
        self._lock = threading.Lock()
        self._queries: OrderedDict[str, Query] = OrderedDict()
        self._builder = TotalBuilder(setting)
        self.subsets = {one.name: self.condition(one.sql) for one in setting.subsets}

    def read(self, sql: str, subset: Any = "all") -> Question:
        """The question, or a refusal that does not depend on the rows."""
        if len(sql) > LONGEST:
            raise QueryError(
                f"the question has {len(sql):,} characters", hint=f"at most {LONGEST:,}"
            )
        rows = self.rows(subset)
        with self._lock, nullcontext() if sql in self._queries else self._evaluator.patience():
            return self._read(sql, rows)

    def condition(self, sql: str) -> Tree | None:
        """A declared condition, by what it is true of."""
        query = declared(sql, self.setting.schema)
        self._evaluator.check(query)
        return self._evaluator.tree(query.predicate)

    def rows(self, subset: Any) -> RowSelection:
        """What a request says about which rows."""
        found = selected(self.setting, subset)
        if isinstance(found.subset, str) and found.subset in self.subsets:
            return replace(found, declared=self.subsets[found.subset])
        return found

    def _read(self, sql: str, rows: RowSelection) -> Question:
        query = self._query(sql)
        if not query.sets:
            return self._with_wholes(query, rows)
        sets = tuple(self._with_wholes(one, rows) for one in groupings(query))
        check_size(query, sum(len(one.groups) for one in sets))
        return replace(sets[0], query=query, totals=(), wholes=(), sets=sets)

    def _with_wholes(self, query: Query, rows: RowSelection) -> Question:
        """The question of one grouping, and those of totals over more rows."""
        terms = terms_needed(query)
        wholes = [term for term in terms if isinstance(term, WholeTerm)]
        found = self._one(query, tuple(t for t in terms if t not in wholes), rows)
        parts = []
        for keys in dict.fromkeys(term.keys for term in wholes):
            some = tuple(term for term in wholes if term.keys == keys)
            asked = replace(
                query, predicate=None, groups=tuple(query.groups[key] for key in keys),
                columns=tuple(OutputColumn(f"whole {i}", Total(t.plain))
                              for i, t in enumerate(some)),
                having=None, order=(), limit=None, offset=0,
            )  # fmt: skip
            part = self._one(asked, terms_needed(asked), rows)
            parts.append(WholePart(part, some, places_of(found.groups, keys, part.groups)))
        return replace(found, wholes=tuple(parts))

    def _one(self, query: Query, terms: tuple[Term, ...], rows: RowSelection) -> Question:
        """A question with one grouping."""
        # One order for all ways to write GROUP BY, so that they have one stored answer.
        earlier = sorted(range(len(query.groups)), key=lambda i: query.groups[i].canonical)
        first = tuple(query.groups[i] for i in earlier)
        expected, found = self._evaluator.listed(query, first)
        labels = self._evaluator.labels(first, expected)
        check_size(query, len(found))
        meanings = self._group_meanings(first, labels, expected)
        order = sorted(range(len(first)), key=lambda i: json.dumps(meanings[i]))
        listed, back = arranged(found, inverse(order))
        groups, places = arranged(found, earlier)
        shape = QuestionShape(
            rows, first, len(found), cells_digest(found),
            tuple(first[i] for i in order), tuple(meanings[i] for i in order),
            cells_digest(listed),
        )  # fmt: skip
        totals = tuple(self._builder.total(term, query, shape, self._evaluator) for term in terms)
        sizes = tuple(len(keys) for keys in expected.keys) if expected else ()
        return Question(
            query=query, rows=rows, totals=totals, groups=groups,
            where=all_of(self._evaluator.tree(query.predicate), rows.declared),
            keys=tuple(labels[i] for i in order), expected=expected, order=tuple(order),
            sizes=tuple(sizes[i] for i in order),
            stored=tuple(np.argsort(back)[list(places)].tolist()),
            reordered=None if order == sorted(order) else back,
            codes=listed.codes, shape=shape, notes=tuple(bin_notes(query, self._evaluator.view)),
        )  # fmt: skip

    def _group_meanings(
        self,
        groups: tuple[Expression, ...],
        labels: tuple[Lookup, ...],
        expected: GroupedSum | None,
    ) -> list[Any]:
        keys = expected.keys if expected is not None else ()
        return [
            group_meaning(group, label.table, known, self._sizes)
            for group, label, known in zip(groups, labels, keys, strict=True)
        ]

    def _query(self, sql: str) -> Query:
        """The parsed and checked query; mining asks the same one about many subsets."""
        if sql not in self._queries:
            query = parsed(sql, self.setting.schema, self.setting.name)
            asked = groupings(query) if query.sets else [query]
            if (count := sum(len(terms_needed(one)) for one in asked)) > MOST_TOTALS:
                raise QueryError(
                    f"the question needs {count} totals", hint=f"at most {MOST_TOTALS} at once"
                )
            self._evaluator.check(query)
            self._queries[sql] = query
            if len(self._queries) > KEPT:
                self._queries.popitem(last=False)
        return self._queries[sql]


class MeasuredTables(Protocol):
    """What conditions and values are on the public domain."""

    def tree(self, predicate: Predicate | None) -> Tree | None:
        """A condition by what it is true of."""

    def numbers(self, value: Expression) -> Floats:
        """What is summed, on each tuple of its columns' domain; NaN where that is NULL."""

    def written(self, predicate: Predicate) -> str:
        """A condition in the dialect of questions."""


class TotalBuilder:
    """Makes totals of their conditions and values: what each means, and its noise."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._sizes = {attribute.name: attribute.size for attribute in setting.schema}
        self._laws: dict[Change, NoiseLaw] = {}

    def total(
        self, term: Term, query: Query, shape: QuestionShape, tables: MeasuredTables
    ) -> QuestionTotal:
        """One total of a query, over the groups of its shape."""
        where = both(query.predicate, term.predicate)
        tree = tables.tree(where)
        numbers = [tables.numbers(value) for value in term.values]
        factors = tuple(Lookup(v.attributes, n) for v, n in zip(term.values, numbers, strict=True))
        apart = self._apart(term, tree, numbers, shape)
        whole = self._whole(tree, factors, numbers, shape) or apart
        law, low, high = self._law(whole.change), *apart.range
        kept = {
            "subset": shape.rows.subset,
            "where": tables.written(where) if where else None,
            "groups": [group.canonical for group in shape.ordered],
            "values": [value.canonical for value in term.values],
            "low": low, "high": high, "scale": whole.scale, "cells": shape.cells,
            "l1": whole.change.l1, "l2_squared": whole.change.l2_squared,
            "noise": law.kind, "variance": float(law.variance), "sql": query.sql,
        }  # fmt: skip
        summand = Summand(tables.tree(term.predicate), factors, whole.scale, *whole.ends)
        same = whole is not apart and (whole.scale, whole.change) == (apart.scale, apart.change)
        return QuestionTotal(
            key="", earlier=None, meaning=whole.meaning,
            earlier_meaning=apart.meaning if same else None,
            term=term, summand=summand, range=(low, high), change=whole.change, law=law,
            question=kept, nobody=whole.nobody, everybody=whole.everybody and shape.cells == 1,
        ).about(shape.rows.subset)  # fmt: skip

    def _apart(
        self, term: Term, tree: Tree | None, numbers: Sequence[Floats], shape: QuestionShape
    ) -> TotalMeaning:
        """What a total means by its condition and its values, each by itself."""
        form, within = canonical_form(tree), whole_range(term, tree, numbers)
        scale, *ends = steps(numbers, within, self.setting.rows)
        known = not any(np.isnan(n).any() for n in numbers)
        change = self._change(ends, shape, always=form == TRUE and known)
        meaning = {
            "where": form,
            "groups": [group.canonical for group in shape.groups],
            "values": meaning_of_values(term.values, numbers),
            # What the stored steps mean follows from these.
            "range": list(within),
            "change": [change.l1, change.l2_squared],
            "cells": shape.digest,
        }
        everybody = form == TRUE and not term.values
        return TotalMeaning(meaning, within, scale, (ends[0], ends[1]), change, form == FALSE,
                            everybody)  # fmt: skip

    def _whole(
        self,
        tree: Tree | None,
        factors: tuple[Lookup, ...],
        numbers: Sequence[Floats],
        shape: QuestionShape,
    ) -> TotalMeaning | None:
        """What a total means by what each tuple adds to it; None if it reads too many."""
        part = row_part(tree, factors, self._sizes)
        if part is None:
            return None
        scale, *ends = steps([part.parts] if numbers else (), part.ends, self.setting.rows)
        change = self._change(ends, shape, always=bool(part.counted.all()))
        meaning = {
            "part": part.meaning(),
            "groups": list(shape.meanings),
            "scale": scale,
            "change": [change.l1, change.l2_squared],
            "cells": shape.ordered_digest,
        }
        return TotalMeaning(meaning, part.ends, scale, (ends[0], ends[1]), change, part.nothing,
                            part.one_each)  # fmt: skip

    def _change(self, ends: Sequence[int], shape: QuestionShape, *, always: bool) -> Change:
        """What one person can do to a total; `always` says that every row counts."""
        always = always and shape.rows.declared is None
        per_person = self.setting.per_person
        return change_of((ends[0], ends[1]), shape.cells, always=always, per_person=per_person)

    def _law(self, change: Change) -> NoiseLaw:
        if change not in self._laws:
            self._laws[change] = noise_law(self.setting.noise, self.setting.variance, change)
        return self._laws[change]


@dataclass(frozen=True)
class QuestionShape:
    """What all totals of a question share."""

    rows: RowSelection
    groups: tuple[Expression, ...]
    cells: int
    """How many groups."""
    digest: str
    """Which groups, in the order of how they are written."""
    ordered: tuple[Expression, ...]
    """The group expressions in the order that answers are stored in."""
    meanings: tuple[Any, ...]
    """What they mean, in that order."""
    ordered_digest: str
    """Which groups, in that order."""


@dataclass(frozen=True)
class TotalMeaning:
    """What a total means, and what follows from that: its steps, and what one person can do."""

    meaning: dict[str, Any]
    range: tuple[float, float]
    scale: float
    ends: tuple[int, int]
    change: Change
    nobody: bool
    everybody: bool


def selected(setting: Setting, subset: Any) -> RowSelection:
    """What a request says about which rows, without the condition of a declared subset."""
    if subset is None or subset == "all":
        return RowSelection("all", rows=setting.rows if setting.per_person == 1 else None)
    if isinstance(subset, dict) and set(subset) == {"half"}:
        seed = subset["half"]
        if isinstance(seed, str) and 0 < len(seed) <= LONGEST_SEED:
            return RowSelection({"half": seed}, mask=half_mask(seed))
        raise UsageError(
            f"a half's seed is {json.dumps(seed, default=str)[:80]}",
            hint=f"a text of 1 to {LONGEST_SEED} characters",
        )
    found = next((one for one in setting.subsets if one.name == subset), None)
    if found is not None:
        return RowSelection(found.name, rows=found.rows)
    names = ["all", *(one.name for one in setting.subsets)]
    hint = did_you_mean(subset, names) if isinstance(subset, str) else ""
    raise UsageError(
        f"there is no subset {json.dumps(subset, default=str)[:80]}",
        hint=hint or 'use "all", {"half": "a seed"}, or the name of a declared subset',
    )


def all_of(*trees: Tree | None) -> Tree | None:
    """Conditions that must all hold; one that is absent does."""
    parts = tuple(tree for tree in trees if tree is not None)
    return And(parts) if len(parts) > 1 else parts[0] if parts else None


def whole_range(term: Term, where: Tree | None, numbers: Sequence[Floats]) -> tuple[float, float]:
    """Between which numbers a row's part lies, among the rows that count."""
    parts = where.parts if isinstance(where, And) else (where,)
    low, high = 1.0, 1.0
    for value, found in zip(term.values, numbers, strict=True):
        kept = ~np.isnan(found)
        for part in parts:
            if isinstance(part, Lookup) and part.attributes == value.attributes:
                kept = kept & part.table
        some = found[kept]
        least, most = (float(some.min()), float(some.max())) if len(some) else (0.0, 0.0)
        ends = [a * b for a in (low, high) for b in (least, most)]
        low, high = min(ends), max(ends)
    return low, high


def parsed(sql: str, schema: Schema, called: str) -> Query:
    """The query as for a release, without hints that only a release can follow."""
    try:
        return marked(parse(sql, schema, called=called))
    except QueryError as error:
        if own_table() in error.hint:
            hint = "a server has one table, and its own columns are all there is to ask about"
        elif "quantile" in error.hint:
            hint = "only sums over many rows are answered; ask for a histogram, with GROUP BY"
        else:
            hint = error.hint
        raise QueryError(error.message, hint=hint) from None


def marked(query: Query) -> Query:
    """The query with totals over more rows than a group's as terms of their own."""
    if not query.has_whole_totals:
        return query

    def one(part: Formula) -> Formula:
        if isinstance(part, Call):
            return Call(part.name, tuple(map(one, part.args)))
        if isinstance(part, WholeTotal):
            return Total(WholeTerm(part.term.predicate, part.term.values, part.keys))
        return part

    def changed(source: int | Formula) -> int | Formula:
        return source if isinstance(source, int) else one(source)

    return replace(
        query,
        columns=tuple(replace(c, source=changed(c.source)) for c in query.columns),
        order=tuple(replace(o, source=changed(o.source)) for o in query.order),
        having=None if query.having is None else one(query.having),
    )


def places_of(groups: ListedGroups, keys: tuple[int, ...], wholes: ListedGroups) -> tuple[int, ...]:
    """Which of the wholes each group belongs to: it agrees with it in the keys."""
    known = {tuple(map(hashable, key)): place for place, key in enumerate(wholes.keys)}
    return tuple(known[tuple(hashable(key[i]) for i in keys)] for key in groups.keys)


def declared(sql: str, schema: Schema) -> Query:
    """The condition of a declared subset, as a question that has it."""
    return parse(f"select count(*) from rows where {sql}", schema)


def check_size(query: Query, groups: int) -> None:
    """Refuse an answer with too many numbers."""
    columns = sum(not isinstance(column.source, int) for column in query.columns)
    if groups > 1 and groups * columns > MOST_ESTIMATES:
        raise QueryError(
            f"the answer would have {groups:,} groups with {columns} numbers each, more than "
            f"{MOST_ESTIMATES:,} in all",
            hint="ask for fewer columns at once, or for coarser groups, as in floor(age / 10)",
        )


def inverse(order: Sequence[int]) -> list[int]:
    """The order that undoes another."""
    return [order.index(i) for i in range(len(order))]


def cells_digest(listed: ListedGroups) -> str:
    """Of the keys of all groups, in their order."""
    return digest([[str(part) for part in key] for key in listed.keys])


def arranged(listed: ListedGroups, order: Sequence[int]) -> tuple[ListedGroups, tuple[int, ...]]:
    """Groups in the order of the query, from those in the stored order; and where each is there."""
    if not order:
        return listed, (0,)
    back = inverse(order)
    codes = tuple(listed.codes[i] for i in back)
    places = np.lexsort(codes[::-1])
    keys = tuple(tuple(listed.keys[p][i] for i in back) for p in places)
    sorted_codes = tuple(code[places] for code in codes)
    found = replace(listed, keys=keys, codes=sorted_codes)
    return found, tuple(int(p) for p in places)
