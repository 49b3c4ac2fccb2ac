"""Questions on the public domain: what they mean there, and whether they can be computed.

All rows are of the domain. So what works here cannot fail on them, and a refusal here does not
depend on the rows.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.answering.source import LARGEST
from voile.answering.totals import ListedGroups, hashable, listing, possible
from voile.arrays import Floats, Ints
from voile.engines import open_domain
from voile.engines.lookups import Lookup, Tree
from voile.errors import QueryError
from voile.query.domain import DomainSums, GroupedSum
from voile.query.predicate import Atom, Expression, Predicate, Term, wording
from voile.query.query import Query
from voile.query.rows import RowSums
from voile.query.text import refusal
from voile.schema import Schema
from voile.serve.canonical import Truth, in_words, simplified

# ---------------------------------------------------------------------- domain evaluator


MOST_GROUPS = 10_000
MOST_TUPLES = 2**22
"""Tuples of the domain on which one condition is tried before any row is."""
PATIENCE = 2.0
"""Seconds to try a question."""
MEMORY, ROOM = 2**28, "512MB"
"""What counting the domain may use, and what DuckDB may."""
KEPT, KEPT_BYTES = 4096, 2**26
"""Conditions whose truth is remembered, and their bytes."""


class DomainEvaluator:
    """Expressions on the domain of a schema; used by one thread at a time."""

    def __init__(self, schema: Schema, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is what patience is measured by: a process of its own counts its own work."""
        self.schema = schema
        self._clock = clock
        self.view = open_domain(schema, strict=True, memory=ROOM)
        self._sums = DomainSums(schema, self.view.domain, memory=MEMORY, exact=True)
        self._truths: OrderedDict[Atom, Truth] = OrderedDict()
        self._bytes = 0
        self._until = math.inf
        threading.Thread(target=watch, args=[weakref.ref(self)], daemon=True).start()

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Interrupt evaluations that take too long; their time does not depend on the rows."""
        until = self._until = self._clock() + PATIENCE
        try:
            yield
        except QueryError:
            if self._clock() < until:
                raise
            raise QueryError(
                f"it takes longer than {PATIENCE:g} s to try the question on the public domain",
                hint="ask with simpler expressions, or about fewer columns in one condition",
            ) from None
        finally:
            self._until = math.inf

    def end_late(self) -> None:
        """Interrupt the evaluation if its time is over."""
        if self._clock() > self._until:
            self.view.interrupt()

    def check(self, query: Query) -> None:
        """Every expression is computed on its domain first: what fails there is refused here.

        So it cannot fail on rows, whose values are all of the domain.
        """
        parts: list[Atom | Expression] = [*query.conditions, *query.values, *query.groups]
        for part in parts:
            size = math.prod(self.schema[name].size for name in part.attributes)
            if size > MOST_TUPLES:
                raise refusal(
                    query.sql,
                    f"{wording(part)} reads {size:,} combinations of values, too many to try "
                    "beforehand",
                    part.start,
                    "ask about fewer columns in one condition, and join conditions with AND or OR",
                )
        new = [part for part in parts if part not in self._truths]
        found = self.view.domain.evaluate(new)
        for part, column in zip(new, found, strict=True):
            self._check_kind(query, part, column)
            if isinstance(part, Atom):
                self._keep(part, column)

    def _check_kind(self, query: Query, part: Atom | Expression, column: Any) -> None:
        kind = column.type
        if isinstance(part, Atom):
            if not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
                raise refusal(query.sql, f"{wording(part)} is not true or false", part.start,
                              "compare it with something, as in age > 30")  # fmt: skip
            return
        (typed,) = self.view.types([part])
        fits = typed.can_be_summed if part in query.values else typed.can_be_grouped
        if not fits:
            raise refusal(query.sql, f"{wording(part)} is of type {typed}", part.start,
                          "sum numbers; group by numbers, texts or dates")  # fmt: skip

    def _keep(self, atom: Atom, column: Any) -> Truth:
        known = pc.fill_null(pc.cast(column, pa.bool_()), False)
        truth: Truth = known.to_numpy(zero_copy_only=False)
        self._truths[atom] = truth
        self._bytes += truth.nbytes
        while len(self._truths) > KEPT or self._bytes > KEPT_BYTES:
            _, dropped = self._truths.popitem(last=False)
            self._bytes -= dropped.nbytes
        return truth

    def truth(self, atom: Atom) -> Truth:
        """Where a condition is true, on each tuple of its columns' domain."""
        if (found := self._truths.get(atom)) is not None:
            return found
        (column,) = self.view.domain.evaluate([atom])
        return self._keep(atom, column)

    def tree(self, predicate: Predicate | None) -> Tree | None:
        """A condition by what it is true of."""
        return None if predicate is None else simplified(predicate, self.truth)

    def written(self, predicate: Predicate) -> str:
        """A condition in the dialect of questions."""
        return in_words(predicate)

    def labels(
        self, groups: tuple[Expression, ...], expected: GroupedSum | None
    ) -> tuple[Lookup, ...]:
        """Which of a group's keys each tuple has, by number."""
        keys = expected.keys if expected is not None else ()
        return tuple(
            Lookup(group.attributes, self._label(group, known))
            for group, known in zip(groups, keys, strict=True)
        )

    def _label(self, group: Expression, known: Sequence[Any]) -> Ints:
        (found,) = self.view.domain.evaluate([group])
        coded = pc.dictionary_encode(found, null_encoding="encode")
        places = {hashable(key): place for place, key in enumerate(known)}
        numbers = np.array([places[hashable(key)] for key in coded.dictionary.to_pylist()])
        return np.asarray(numbers[coded.indices.to_numpy(zero_copy_only=False)], dtype=np.int64)

    def numbers(self, value: Expression) -> Floats:
        """What is summed, on each tuple of its columns' domain; NaN where that is NULL."""
        (found,) = self.view.domain.evaluate([value])
        numbers: Floats = pc.fill_null(pc.cast(found, pa.float64()), math.nan).to_numpy(
            zero_copy_only=False
        )
        null = found.is_null().to_numpy(zero_copy_only=False)
        if not (null | (np.abs(numbers) <= LARGEST)).all():
            raise QueryError(
                f"{wording(value)} is not a finite number on some value of the domain",
                hint="leave such values out: sum(a / nullif(b, 0)), or CASE",
            )
        return numbers

    def listed(
        self, query: Query, groups: tuple[Expression, ...]
    ) -> tuple[GroupedSum | None, ListedGroups]:
        """The groups that the domain allows, whatever the rows are."""
        if not groups:
            return None, ListedGroups(((),), (), 1, complete=True)
        expected = self._expected(query.predicate, groups)
        size = math.prod(len(keys) for keys in expected.keys)
        if size > MOST_GROUPS:
            raise QueryError(
                f"GROUP BY makes {size:,} groups, more than {MOST_GROUPS:,}",
                hint="group by fewer columns, or by coarser ones, as in floor(age / 10)",
            )
        if not possible(expected):
            raise QueryError(
                "no tuple of the public domain satisfies the condition", hint="change WHERE"
            )
        empty = RowSums(tuple([] for _ in groups), np.zeros((0, 1)))
        return expected, listing(empty, expected, len(groups))

    def _expected(self, where: Predicate | None, groups: tuple[Expression, ...]) -> GroupedSum:
        """What the domain has in each group; where WHERE makes that hard, without it."""
        try:
            return self._sums.sums([Term(where)], groups)[0]
        except QueryError:
            return self._sums.sums([Term()], groups)[0]


def watch(found: weakref.ref[DomainEvaluator]) -> None:
    """Check the time again and again: a thread for each question would cost more than most take."""
    while (evaluator := found()) is not None:
        evaluator.end_late()
        del evaluator  # or it would never be gone
        time.sleep(PATIENCE / 8)
