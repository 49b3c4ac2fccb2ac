"""Q(D): how many tuples of the public domain satisfy a query, without listing the domain.

Conditions joined by AND that share no attribute are independent, so their counts multiply
(VLDB 2007, §4.1). A group of conditions that do share attributes is either counted by the engine
on the product of those attributes' domains, where that is small, or by contracting a network of
small tensors (the paper's third idea, without its exponential inclusion and exclusion):

  * each atom is a 0/1 tensor over the attributes that *it* reads, evaluated by the engine;
  * And and Or are gates, tensors over bits, and the bit of the whole condition is pinned to 1;
  * the count is the sum over all indices of the product of all tensors.

Its cost is that of the widest intermediate tensor along a good order of contraction, whatever
the number of clauses. All numbers are non-negative, so nothing cancels; counts below 2⁵³ are
exact, larger ones right to about 10⁻¹⁵ for each contraction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import opt_einsum

from voile.errors import QueryError
from voile.query.predicate import And, Atom, Or, Predicate, attributes, conjuncts, to_sql
from voile.schema import Schema

ENUMERATED = 10**5
"""Tuples of a sub-domain that are counted outright: faster than any network."""
LARGEST = 10**8
"""Tuples that are enumerated where a network would be larger still."""
WIDEST = 2**25
"""Elements of the largest tensor: 256 MB."""

Tensor = npt.NDArray[np.float64]
OR: Tensor = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], dtype=np.float64)
AND: Tensor = np.array([[[1, 0], [1, 0]], [[1, 0], [0, 1]]], dtype=np.float64)


class DomainEngine(Protocol):
    def domain_count(self, attributes: list[str], condition: str) -> int:
        """Tuples of the product of these attributes' domains for which the condition is true."""
        ...

    def truth(self, attributes: tuple[str, ...], condition: str) -> npt.NDArray[np.bool_]:
        """Where the condition is true on that product, one axis for each attribute."""
        ...


def domain_count(predicate: Predicate | None, schema: Schema, engine: DomainEngine) -> int:
    """Q(D), a whole number of any size."""
    total = schema.size
    for names, parts in components(predicate, schema):
        size = math.prod(schema[name].size for name in names)
        total = total // size * group_count(names, parts, schema, engine)
    return total


def components(
    predicate: Predicate | None, schema: Schema
) -> list[tuple[list[str], list[Predicate]]]:
    """Parts of the condition connected by shared attributes, each group with its attributes."""
    groups: list[tuple[set[str], list[Predicate]]] = []
    for part in conjuncts(predicate) if predicate else ():
        reads = attributes(part)
        touching = [g for g in groups if g[0] & reads]
        merged = (reads.union(*(g[0] for g in touching)), [p for g in touching for p in g[1]])
        groups = [g for g in groups if g not in touching] + [(merged[0], [*merged[1], part])]
    return [([n for n in schema.names if n in names], parts) for names, parts in groups]


def group_count(
    names: list[str], parts: list[Predicate], schema: Schema, engine: DomainEngine
) -> int:
    size = math.prod(schema[name].size for name in names)
    if size > ENUMERATED:
        network = Network(schema, engine)
        network.build(parts)
        if network.plan():
            return network.count()
    if size > LARGEST:
        raise QueryError(
            f"the conditions on {', '.join(names)} span {size:,} combinations of values and do "
            f"not come apart; at most {LARGEST:,} can be counted",
            hint="use fewer of these attributes in one comparison",
        )
    return engine.domain_count(names, " AND ".join(map(to_sql, parts)))


@dataclass
class Network:
    """The tensors of a condition; indices are attributes by name and bits by number."""

    schema: Schema
    engine: DomainEngine
    bits: dict[Atom, int] = field(default_factory=dict)
    shapes: list[tuple[Any, ...]] = field(default_factory=list)
    gates: list[Tensor | Atom] = field(default_factory=list)
    next_bit: int = 0

    def build(self, parts: list[Predicate]) -> None:
        """Lay out the tensors of a condition all of whose parts must be true."""
        for part in parts:
            self._pin(part)

    def plan(self) -> bool:
        """Find an order of contraction from the shapes alone; whether all tensors will fit."""
        if any(self._elements(indices) > WIDEST for indices in self.shapes):
            return False
        views = [np.broadcast_to(np.float64(0), self._shape(indices)) for indices in self.shapes]
        self._path, info = opt_einsum.contract_path(*self._interleaved(views), optimize="auto")
        return float(info.largest_intermediate) <= WIDEST

    def count(self) -> int:
        """Contract the network as planned."""
        tensors = [self._tensor(gate, i) for gate, i in zip(self.gates, self.shapes, strict=True)]
        total = opt_einsum.contract(*self._interleaved(tensors), optimize=self._path)
        return round(float(total))

    def _pin(self, part: Predicate) -> None:
        """The part must be true."""
        if isinstance(part, Atom):
            self._add(part, part.attributes)
        elif isinstance(part, And):
            for inner in part.parts:
                self._pin(inner)
        else:
            *most, last = (self._bit(inner) for inner in part.parts)
            self._add(OR[:, :, 1], (self._chain(OR, most), last))

    def _bit(self, part: Predicate) -> int:
        """An index that is 1 exactly where the part is true."""
        if isinstance(part, Atom):
            if part not in self.bits:
                self.bits[part] = self._new()
                self._add(part, (*part.attributes, self.bits[part]))
            return self.bits[part]
        gate = OR if isinstance(part, Or) else AND
        return self._chain(gate, [self._bit(inner) for inner in part.parts])

    def _chain(self, gate: Tensor, bits: list[int]) -> int:
        result, *rest = bits
        for bit in rest:
            out = self._new()
            self._add(gate, (result, bit, out))
            result = out
        return result

    def _new(self) -> int:
        self.next_bit += 1
        return self.next_bit

    def _add(self, gate: Tensor | Atom, indices: tuple[Any, ...]) -> None:
        self.gates.append(gate)
        self.shapes.append(indices)

    def _shape(self, indices: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(2 if isinstance(i, int) else self.schema[i].size for i in indices)

    def _elements(self, indices: tuple[Any, ...]) -> int:
        return math.prod(self._shape(indices))

    def _tensor(self, gate: Tensor | Atom, indices: tuple[Any, ...]) -> Tensor:
        if not isinstance(gate, Atom):
            return gate
        truth = self.engine.truth(gate.attributes, gate.sql).astype(np.float64)
        has_bit = len(indices) > len(gate.attributes)
        return np.stack([1 - truth, truth], axis=-1) if has_bit else truth

    def _interleaved(self, tensors: list[Tensor]) -> list[Any]:
        """Operands as opt_einsum takes them: a tensor and its indices in turn, nothing open."""
        order = {name: -1 - i for i, name in enumerate(self.schema.names)}
        flat: list[Any] = []
        for tensor, indices in zip(tensors, self.shapes, strict=True):
            flat += [tensor, [order.get(i, i) for i in indices]]
        return [*flat, []]
