"""A query as functions of the classes of the columns that are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.answering.axes import ClassAxis, DomainArrays, QueryParts
from voile.answering.totals import ALL_GROUPS, ListedGroups
from voile.arrays import Bools, Floats
from voile.errors import QueryError
from voile.query.domain.compare import all_hold, some_hold
from voile.query.predicate import Atom, Expression, Predicate, Term, atoms, both, folded
from voile.schema import Schema


def parts_of(
    where: Predicate | None, groups: Sequence[Expression], terms: Sequence[Term]
) -> QueryParts:
    """The atoms, groups and values that a query is made of."""
    predicates = [p for p in (where, *(t.predicate for t in terms)) if p]
    degree = max((t.values.count(v) for t in terms for v in t.values), default=1)
    return QueryParts(
        atoms=tuple(dict.fromkeys(a for p in predicates for a in atoms(p))),
        groups=tuple(dict.fromkeys(groups)),
        values=tuple(dict.fromkeys(v for t in terms for v in t.values)),
        degree=degree,
    )


class ClassFunctions:
    """A query as functions of the classes of the columns that are read."""

    def __init__(self, axes: Sequence[ClassAxis], schema: Schema, domain: DomainArrays) -> None:
        self.axes, self._schema, self._domain = list(axes), schema, domain
        self._place = {axis.attribute: j for j, axis in enumerate(axes)}
        self.shape = tuple(axis.classes for axis in axes)

    def _at(self, found: npt.NDArray[Any], part: Atom | Expression) -> npt.NDArray[Any]:
        """An array over the part's columns, at one value of each class, ready to broadcast."""
        if not part.attributes:
            return found.reshape([1] * len(self.axes))
        sizes = [self._schema[name].size for name in part.attributes]
        where = [self._place[name] for name in part.attributes]
        taken = found.reshape(sizes)[np.ix_(*(self.axes[j].representative for j in where))]
        shape = [1] * len(self.axes)
        for j in where:
            shape[j] = self.axes[j].classes
        return taken.transpose(np.argsort(where)).reshape(shape)

    def truth(self, predicate: Predicate | None) -> Bools:
        """Where a condition is true, by the classes of the columns."""
        if predicate is None:
            return np.ones([1] * len(self.axes), np.bool_)

        def holds(atom: Atom) -> Bools:
            return np.asarray(self._at(self._domain.truth(atom), atom), np.bool_)

        return folded(predicate, holds, all_hold, some_hold)

    def function(self, where: Predicate | None, term: Term) -> tuple[Floats, tuple[int, ...]]:
        """The term as a function of the classes, and the power of each phi beside it."""
        found = self.truth(both(where, term.predicate)).astype(np.float64)
        for value in term.values:
            axis = self._axis_of(value)
            if axis is None:
                numbers = self.numbers(value)
                found = found * np.where(np.isfinite(numbers), numbers, 0.0)
            else:
                shape = [1] * len(self.axes)
                shape[self._place[axis.attribute]] = axis.classes
                found = found * axis.present.reshape(shape)
        valued = [axis for axis in self.axes if axis.powers > 1]
        return found, tuple(term.values.count(axis.value) for axis in valued)

    def numbers(self, value: Expression) -> Floats:
        """A value on the classes; NaN where it is NULL."""
        return np.asarray(self._at(self._domain.numbers(value), value), np.float64)

    def _axis_of(self, value: Expression) -> ClassAxis | None:
        return next((axis for axis in self.axes if axis.value == value), None)

    def listing(
        self, groups: Sequence[Expression], passing: Bools
    ) -> tuple[ListedGroups, npt.NDArray[np.int64]]:
        """The groups that the domain allows, and the group of every cell (−1: in none of them)."""
        if not groups:
            everyone = np.where(passing, 0, -1).astype(np.int64)
            return ListedGroups(((),), (), 1, complete=True), np.broadcast_to(everyone, self.shape)
        labelled = [self._domain.labels(g) for g in groups]
        codes = [
            np.asarray(self._at(c, g), np.int64) for (c, _), g in zip(labelled, groups, strict=True)
        ]
        sizes = [len(keys) for _, keys in labelled]
        if math.prod(sizes) >= 2**62:
            raise QueryError(f"GROUP BY allows {math.prod(sizes):,} groups", hint="group by less")
        flat = np.ravel_multi_index(np.broadcast_arrays(*codes), sizes)
        cell = np.where(passing, flat, -1)
        kept = np.unique(cell)
        kept = kept[kept >= 0]
        if len(kept) > ALL_GROUPS:
            raise QueryError(
                f"GROUP BY makes {len(kept):,} groups, more than {ALL_GROUPS:,}",
                hint="group by fewer columns, or by coarser ones, as in floor(age / 10)",
            )
        places_ = np.unravel_index(kept, sizes)
        columns = [
            [keys[i] for i in place] for (_, keys), place in zip(labelled, places_, strict=True)
        ]
        listed = ListedGroups(
            tuple(zip(*columns, strict=True)),
            tuple(np.asarray(p, np.int64) for p in places_),
            len(kept),
            complete=True,
        )
        number = np.searchsorted(kept, np.maximum(cell, 0))
        return listed, np.broadcast_to(np.where(cell < 0, -1, number), self.shape)
