"""From SQL to the totals that answer it: what each costs, what one person can do to it, its noise.

Nothing here touches a row: what is decided here, a refusal above all, follows from the question and
the public schema alone.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.answering.answer import bin_notes
from voile.answering.noisy.work import terms_needed
from voile.answering.source import parts_of
from voile.answering.totals import Groups
from voile.engines.counted import half
from voile.errors import QueryError, UsageError, did_you_mean
from voile.privacy.interactive.laws import Change, NoiseLaw, noise_law
from voile.query import parse
from voile.query.domain import GroupedSum
from voile.query.parse import Query
from voile.query.predicate import Atom, Expression, Predicate, Term, both, guarded, to_sql
from voile.schema import Schema
from voile.serve.canonical import digest, meaning, meaning_of_values
from voile.serve.change import change_of, summed
from voile.serve.setting import Setting
from voile.serve.tried import Tried

MOST_TOTALS = 50
LONGEST, LONGEST_SEED = 10_000, 200
"""Characters of a question, and of a seed."""
KEPT = 4096
"""Questions that are remembered as they were read."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Which rows are asked about: everyone, a public half, or a declared subset."""

    told: Any
    """As JSON: "all", {"half": SEED}, or a name."""
    condition: str | None = None
    rows: int | None = None
    """How many, where that is public by itself."""
    fixed: bool = True
    """Whether who is among them does not depend on the rows' values."""


@dataclass(frozen=True)
class TotalAsked:
    """One total over one list of groups: one answer, one charge."""

    key: str
    term: Term
    aggregate: str
    """The SQL aggregate: whole steps."""
    range: tuple[float, float]
    """Between which numbers a row's part lies."""
    scale: float
    """Steps to one unit of what is summed."""
    change: Change
    law: NoiseLaw
    question: dict[str, Any]
    """What the ledger keeps."""


@dataclass(frozen=True)
class Question:
    """A query, and the totals that answer it."""

    query: Query
    rows: Rows
    totals: tuple[TotalAsked, ...]
    groups: Groups
    """In the order of the query's groups."""
    where: str
    keys: tuple[str, ...]
    expected: GroupedSum | None
    """What the domain allows, where there are groups; in the order that keys are stored in."""
    stored: tuple[int, ...]
    """Which of the stored groups each group of the answer is."""
    codes: tuple[npt.NDArray[np.int64], ...]
    """Places of the stored groups among the domain's keys."""
    notes: tuple[str, ...] = ()
    """What the analyst should know about the question."""


class Asking:
    """Reads questions for one server; used by many threads, one at a time."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._tried = Tried(setting.schema)
        self._lock = threading.Lock()
        self._queries: OrderedDict[str, Query] = OrderedDict()
        self._laws: dict[Change, NoiseLaw] = {}
        self.subsets = {one.name: self.condition(one.sql) for one in setting.subsets}

    def read(self, sql: str, subset: Any = "all") -> Question:
        """The question, or a refusal that has nothing to do with the rows."""
        if len(sql) > LONGEST:
            raise QueryError(
                f"the question has {len(sql):,} characters", hint=f"at most {LONGEST:,}"
            )
        rows = self.rows(subset)
        with self._lock:
            return self._read(sql, rows)

    def condition(self, sql: str) -> str:
        """A declared condition as the engine reads it."""
        query = parse(f"select count(*) from rows where {sql}", self.setting.schema)
        self._tried.check(query)
        return to_sql(query.predicate) if query.predicate else "TRUE"

    def rows(self, subset: Any) -> Rows:
        """What a request says about which rows."""
        setting = self.setting
        if subset is None or subset == "all":
            return Rows("all", rows=setting.rows if setting.per_person == 1 else None)
        if isinstance(subset, dict) and set(subset) == {"half"}:
            seed = subset["half"]
            if isinstance(seed, str) and 0 < len(seed) <= LONGEST_SEED:
                return Rows({"half": seed}, half(seed))
            raise UsageError(
                f"a half's seed is {json.dumps(seed, default=str)[:80]}",
                hint=f"a text of 1 to {LONGEST_SEED} characters",
            )
        if isinstance(subset, str) and subset in self.subsets:
            found = next(one for one in setting.subsets if one.name == subset)
            return Rows(subset, self.subsets[subset], rows=found.rows, fixed=False)
        hint = did_you_mean(subset, ["all", *self.subsets]) if isinstance(subset, str) else ""
        raise UsageError(
            f"there is no subset {json.dumps(subset, default=str)[:80]}",
            hint=hint or 'use "all", {"half": "a seed"}, or the name of a declared subset',
        )

    def _read(self, sql: str, rows: Rows) -> Question:
        query = self._query(sql)
        terms = terms_needed(query)
        # One order for all ways to write GROUP BY, so that they have one stored answer.
        order = sorted(range(len(query.groups)), key=lambda i: query.groups[i].sql)
        stored = tuple(query.groups[i] for i in order)
        expected, listed = self._tried.listed(query, stored)
        groups, places = arranged(listed, order)
        shape = Shape(rows, stored, len(listed), cells_digest(listed))
        totals = tuple(self._total(term, query, shape) for term in terms)
        return Question(
            query=query, rows=rows, totals=totals, groups=groups, where=self._where(query, rows),
            keys=tuple(guarded(group.sql) for group in stored), expected=expected,
            stored=places, codes=listed.codes, notes=tuple(bin_notes(query, self._tried.view)),
        )  # fmt: skip

    def _query(self, sql: str) -> Query:
        """Read and checked; who mines asks one question about many subsets."""
        if sql not in self._queries:
            query = parsed(sql, self.setting.schema)
            if (count := len(terms_needed(query))) > MOST_TOTALS:
                raise QueryError(
                    f"the question needs {count} totals", hint=f"at most {MOST_TOTALS} at once"
                )
            self._tried.check(query)
            self._queries[sql] = query
            if len(self._queries) > KEPT:
                self._queries.popitem(last=False)
        return self._queries[sql]

    def _where(self, query: Query, rows: Rows) -> str:
        parts = [to_sql(query.predicate)] if query.predicate else []
        parts += [rows.condition] if rows.condition else []
        return " AND ".join(parts) or "TRUE"

    # ------------------------------------------------------------------ one total

    def _total(self, term: Term, query: Query, shape: Shape) -> TotalAsked:
        where = both(query.predicate, term.predicate)
        numbers = {value: self._tried.numbers(value) for value in term.values}
        low, high = self._range(term, where, numbers)
        always = (
            shape.rows.fixed and not where and not any(np.isnan(n).any() for n in numbers.values())
        )
        total = summed(term, numbers, (low, high))
        change = change_of(total, shape.cells, always=always, per_person=self.setting.per_person)
        law = self._law(change)
        meant = {
            "subset": shape.rows.told,
            "where": meaning(where, self._tried.truth),
            "groups": [group.sql for group in shape.groups],
            "values": meaning_of_values(term.values, numbers),
            # What the stored steps mean follows from these.
            "range": [low, high],
            "cells": shape.digest,
        }
        told = {
            "subset": shape.rows.told,
            "where": to_sql(where) if where else None,
            "groups": [group.sql for group in shape.groups],
            "values": [value.sql for value in term.values],
            "low": low, "high": high, "scale": total.scale, "cells": shape.cells,
            "l1": change.l1, "l2_squared": change.l2_squared,
            "noise": law.kind, "variance": float(law.variance), "sql": query.sql,
        }  # fmt: skip
        return TotalAsked(
            digest(meant), term, total.aggregate, (low, high), total.scale, change, law, told
        )

    def _range(
        self, term: Term, where: Predicate | None, numbers: dict[Expression, Floats]
    ) -> tuple[float, float]:
        """Between which numbers a row's part lies, among the rows that count."""
        low, high = 1.0, 1.0
        alike = [p for p in parts_of(where) if isinstance(p, Atom)]
        for value in term.values:
            kept = ~np.isnan(numbers[value])
            for atom in alike:
                if atom.attributes == value.attributes:
                    kept = kept & self._tried.truth(atom)
            found = numbers[value][kept]
            least, most = (float(found.min()), float(found.max())) if len(found) else (0.0, 0.0)
            ends = [a * b for a in (low, high) for b in (least, most)]
            low, high = min(ends), max(ends)
        return low, high

    def _law(self, change: Change) -> NoiseLaw:
        if change not in self._laws:
            self._laws[change] = noise_law(self.setting.noise, self.setting.variance, change)
        return self._laws[change]


@dataclass(frozen=True)
class Shape:
    """What all totals of a question share."""

    rows: Rows
    groups: tuple[Expression, ...]
    cells: int
    """How many groups."""
    digest: str
    """Which groups."""


def parsed(sql: str, schema: Schema) -> Query:
    """As for a release, but for hints that only a release can follow."""
    try:
        return parse(sql, schema)
    except QueryError as error:
        if "--with" in error.hint:
            hint = "a server has one table, and its own columns are all there is to ask about"
        elif "quantile" in error.hint:
            hint = "only sums over many rows are told; ask for a histogram, with GROUP BY"
        else:
            hint = error.hint
        raise QueryError(error.message, hint=hint) from None


def cells_digest(listed: Groups) -> str:
    """Of the keys of all groups, in their order."""
    return digest([[str(part) for part in key] for key in listed.keys])


def arranged(listed: Groups, order: list[int]) -> tuple[Groups, tuple[int, ...]]:
    """Groups in the order of the query, from those in the stored order; and where each is there."""
    if not order:
        return listed, (0,)
    back = [order.index(i) for i in range(len(order))]
    codes = tuple(listed.codes[i] for i in back)
    places = np.lexsort(codes[::-1])
    keys = tuple(tuple(listed.keys[p][i] for i in back) for p in places)
    sorted_codes = tuple(code[places] for code in codes)
    found = replace(listed, keys=keys, codes=sorted_codes)
    return found, tuple(int(p) for p in places)
