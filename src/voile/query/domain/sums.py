"""Sums over the public domain, for every group at once, without listing the domain."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Floats, Ints
from voile.arrow import arrow_array, numpy_array
from voile.errors import QueryError
from voile.query.domain.compare import Array, DomainEngine, Weights
from voile.query.domain.component_sum import ComponentSum, Way, choose
from voile.query.domain.network import SumPlan
from voile.query.domain.prepare import Sizes, prepare, requests, sizes_of, unlisted
from voile.query.domain.problem import Component, PlacedComponent, TermGroup, split
from voile.query.predicate import Expression, Term
from voile.schema import Schema

KEPT = 2**28
"""Bytes of sums, and of group codes, that are remembered."""
EXACT = 2.0**53
"""Below this a sum of whole numbers in floating point is exact."""


class GroupedSum:
    """A sum for each group; without groups, one sum."""

    def __init__(
        self,
        keys: tuple[list[Any], ...],
        parts: Sequence[tuple[ComponentSum, tuple[int, ...]]],
        mix: Floats,
        scale: Sequence[int] | Floats,
        plan: SumPlan,
        *,
        counts: bool,
    ) -> None:
        self.keys = keys
        """For each group expression its values on the domain, in the order of their codes."""
        self.plan = plan
        self._parts = parts
        self._mix = mix
        self._scale = scale
        self._counts = counts

    def at(self, codes: Sequence[Array]) -> Floats:
        """The sum for each group, given by one array of codes for each group expression."""
        result = self._outside(codes)
        for summed, places in self._parts:
            result = result * gathered(summed.values, codes, places)
        return np.asarray(result.sum(axis=0))

    def errors_at(self, codes: Sequence[Array]) -> Floats:
        """The standard error for each group, from sampling the domain; 0 where exact.

        Errors of different parts k of a mixture are taken to point the same way.
        """
        if all(summed.errors is None for summed, _ in self._parts):
            return np.zeros(len(codes[0]) if codes else 1)
        square = total = np.abs(self._outside(codes)) ** 2
        for summed, places in self._parts:
            value = gathered(summed.values, codes, places) ** 2
            square = square * value
            if summed.errors is not None:
                value = value + gathered(summed.errors, codes, places) ** 2
            total = total * value
        return np.asarray(np.sqrt(np.maximum(total - square, 0)).sum(axis=0))

    def _outside(self, codes: Sequence[Array]) -> Floats:
        """(K, requested groups): the weights of the mixture and of what nothing reads."""
        count = len(codes[0]) if codes else 1
        scale = [as_float(s) for s in self._scale]
        outside: Floats = self._mix * np.array(scale)
        return np.repeat(outside[:, None], count, axis=1)

    @property
    def exact(self) -> bool:
        """Whether a count is exact to the last digit."""
        return self._counts and all(
            summed.errors is None and float(summed.values.max(initial=0)) < EXACT
            for summed, _ in self._parts
        )

    @property
    def total(self) -> int | float:
        """The sum, without groups: a whole number for counts where that is exact."""
        if self.keys:
            raise ValueError("there are groups: ask for them with at()")
        if not self._counts:
            return float(self.at([])[0])
        whole = math.prod([int(self._scale[0]), *(whole_number(s) for s, _ in self._parts)])
        if self.exact:
            return whole
        try:
            return float(whole)
        except OverflowError:
            return whole

    @property
    def error(self) -> float:
        """The standard error of the total from sampling the domain, 0 where none was."""
        if all(summed.errors is None for summed, _ in self._parts):
            return 0.0
        return float(self.errors_at([])[0])


def as_float(number: int | float) -> float:
    """A number as a float, infinite where it is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def whole_number(summed: ComponentSum) -> int:
    """A sum that is a count."""
    return round(float(summed.values.reshape(-1)[0]))


def gathered(values: Floats, codes: Sequence[Array], places: tuple[int, ...]) -> Floats:
    """(K, *groups) at the requested groups: (K, requested), or (K, 1) where there are none here."""
    if not places:
        return values.reshape(-1, 1)
    where: tuple[Any, ...] = (slice(None), *(codes[place] for place in places))
    return np.asarray(values[where])


def told_apart(column: pa.Array, expression: Expression) -> tuple[Ints, list[Any]]:
    """Values as codes in the order of their appearance, and what the codes stand for."""
    if pa.types.is_floating(column.type):
        zero = arrow_array(np.zeros(1))[0]  # a float of Python would load pandas
        column = pc.add(column, zero)  # -0.0 and 0.0 are one value
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        raise QueryError(
            f"GROUP BY {expression.canonical} has values of type {column.type}",
            hint="group by numbers, text, dates or conditions",
        ) from None
    codes: Ints = numpy_array(encoded.indices).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()


def kept_as(component: Component, weights: Weights | None) -> tuple[Component, int]:
    """What a sum is remembered by; its weights are kept with it, so that their id stays theirs."""
    return component, 0 if weights is None else id(weights)


class DomainSums:
    """Computes sums over the domain of a schema and remembers what it computed.

    `memory` bounds, in bytes, what is planned for one component. What fits no exact way is
    estimated from a sample, with a standard error, or refused with `exact`.
    """

    def __init__(
        self, schema: Schema, engine: DomainEngine, *, memory: int = 2**30, exact: bool = False
    ) -> None:
        self._schema = schema
        self._engine = engine
        self._memory = memory
        self._exact = exact
        self._kept: OrderedDict[Any, tuple[ComponentSum, Weights | None]] = OrderedDict()
        self._bytes = 0
        self._groups: dict[Expression, tuple[TermGroup, list[Any]]] = {}

    @property
    def schema(self) -> Schema:
        """Whose domain it is."""
        return self._schema

    def sums(
        self,
        terms: Sequence[Term],
        groups: Sequence[Expression] = (),
        weights: Weights | None = None,
    ) -> list[GroupedSum]:
        """Σ over D of 1[predicate] · Π values · weight, for each term and each group."""
        placed = [split(term, groups, self._schema) for term in terms]
        self._evaluate_together(placed, groups, weights)
        keys = tuple(self._group(group)[1] for group in groups)
        found = []
        for term, pieces in zip(terms, placed, strict=True):
            parts = [(self._summed(p.component, weights), p.places) for p in pieces]
            plan = SumPlan(tuple(s.part for s, _ in parts), tuple(self._free(pieces)))
            mix = np.ones(1) if weights is None else np.asarray(weights.mix, np.float64)
            counts = weights is None and not term.values
            scale = self._scale(pieces, weights)
            found.append(GroupedSum(keys, parts, mix, scale, plan, counts=counts))
        return found

    def lists(self, attributes: Sequence[str]) -> bool:
        """Whether the product of these domains can be listed within the memory allowed."""
        return math.prod(self._schema[name].size for name in attributes) * 32 <= self._memory

    def explain(self, term: Term, groups: Sequence[Expression] = ()) -> SumPlan:
        """What `sums` would do."""
        placed = split(term, groups, self._schema)
        self._evaluate_together([placed], groups, None)
        ways = [self._way(p.component, None) for p in placed]
        return SumPlan(tuple(way.part for way in ways), tuple(self._free(placed)))

    def _evaluate_together(
        self,
        placed: Sequence[Sequence[PlacedComponent]],
        groups: Sequence[Expression],
        weights: Weights | None,
    ) -> None:
        """One call of the engine, which remembers, for all that reads one attribute."""
        requested: list[Expression] = []
        for pieces in placed:
            for piece in pieces:
                if kept_as(piece.component, weights) not in self._kept:
                    requested += requests(piece.component, self._sizes(piece.component, weights))
        requested += [
            g
            for g in groups
            if len(g.attributes) <= 1 and g not in self._groups and not self._unlisted(g)
        ]
        if requested:
            self._engine.evaluate(list(dict.fromkeys(requested)))

    def _summed(self, component: Component, weights: Weights | None) -> ComponentSum:
        key = kept_as(component, weights)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        summed = self._way(component, weights).sum()
        self._kept[key] = (summed, weights)
        self._bytes += summed.bytes
        while self._bytes > KEPT:
            self._bytes -= self._kept.popitem(last=False)[1][0].bytes
        return summed

    def _way(self, component: Component, weights: Weights | None) -> Way:
        groups = [self._group(group)[0] for group in component.groups]
        cells = math.prod(group.size for group in groups)
        if cells * 16 > self._memory:
            named = ", ".join(group.canonical for group in component.groups)
            raise QueryError(
                f"the groups by {named} are {cells:,}, and conditions or values tie them together",
                hint="group by fewer or coarser expressions",
            )
        problem = prepare(
            component, self._schema, self._engine, groups, weights, self._sizes(component, weights)
        )
        return choose(problem, self._memory, exact=self._exact)

    def _group(self, expression: Expression) -> tuple[TermGroup, list[Any]]:
        """A group expression's codes on the domain, and the values that they stand for."""
        if expression not in self._groups:
            shape = tuple(self._schema[name].size for name in expression.attributes)
            if self._unlisted(expression):
                raise QueryError(
                    f"GROUP BY {expression.canonical} has to be listed on {math.prod(shape):,} "
                    "combinations of values",
                    hint="group by an attribute with a smaller domain",
                )
            codes, keys = told_apart(self._engine.evaluate([expression])[0], expression)
            if codes.nbytes + sum(g.codes.nbytes for g, _ in self._groups.values()) > KEPT:
                self._groups.clear()
            self._groups[expression] = (
                TermGroup(expression.attributes, shape, codes, len(keys)),
                keys,
            )
        return self._groups[expression]

    def _unlisted(self, expression: Expression) -> bool:
        size = math.prod(self._schema[name].size for name in expression.attributes)
        return unlisted(size, self._memory)

    def _sizes(self, component: Component, weights: Weights | None) -> Sizes:
        return sizes_of(component, self._schema, self._memory, weights)

    def _free(self, pieces: Sequence[PlacedComponent]) -> list[str]:
        read = {name for piece in pieces for name in piece.component.attributes}
        return [name for name in self._schema.names if name not in read]

    def _scale(
        self, pieces: Sequence[PlacedComponent], weights: Weights | None
    ) -> Sequence[int] | Floats:
        """What the attributes that nothing reads contribute, for each part of the mixture."""
        free = self._free(pieces)
        if weights is None:
            return [math.prod(self._schema[name].size for name in free)]
        scale = np.ones(len(weights.mix))
        for name in free:
            table = weights.tables.get(name)
            scale = scale * (self._schema[name].size if table is None else table.sum(axis=1))
        return scale
