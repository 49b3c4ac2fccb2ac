"""Which way to sum a component, and its sum for each group."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.domain.eliminate import eliminate
from voile.query.domain.grid import enumerate_grid, grid_part
from voile.query.domain.inputs import Array, added
from voile.query.domain.network import network_of, reduced
from voile.query.domain.plan import Part
from voile.query.domain.problem import Group, Problem
from voile.query.domain.sampling import sample, sampling_part
from voile.query.domain.split import texts
from voile.query.domain.states import fits, walk

TINY = 3 * 10**4
"""Cells of a grid that no cleverness beats."""
GRID = 4 * 10**6
"""Cells of a grid that is looked at outright, where nothing is cheaper."""
ENUMERATED = 5 * 10**8
"""Cells that are looked at window by window."""


@dataclass(frozen=True, eq=False)
class Summed:
    """A component's sum and its standard error, both (K, *groups)."""

    values: Floats
    errors: Floats | None
    part: Part

    @property
    def bytes(self) -> int:
        """What remembering it costs, its name included."""
        return 2048 + self.values.nbytes + (0 if self.errors is None else self.errors.nbytes)


@dataclass(frozen=True)
class Way:
    """A plan, and what carries it out: (K, *groups) and perhaps standard errors."""

    part: Part
    run: Callable[[], tuple[Floats, Floats | None]]

    def sum(self) -> Summed:
        values, errors = self.run()
        return Summed(values, errors, self.part)


def choose(problem: Problem, memory: int, *, exact: bool) -> Way:
    """The cheapest way whose memory, planned beforehand, is within bounds."""
    if not problem.cells or not problem.scale.any():
        sizes = [group.size for group in problem.groups]
        return Way(grid_part(problem), lambda: (np.zeros((problem.batch, *sizes)), None))
    ways = [gridded, walked, networked, enumerated] if not problem.huge else []
    for find in ways:
        if way := find(problem, memory):
            return way
    part = sampling_part(problem)
    if exact:
        raise too_large(problem, memory)
    return Way(part, lambda: scaled(problem, sample(problem)))


def gridded(problem: Problem, _: int) -> Way | None:
    """A grid so small that no cleverness beats it."""
    if problem.cells > TINY and len(problem.axes) > 1:
        return None
    return Way(grid_part(problem), lambda: exactly(problem, enumerate_grid(problem, GRID)))


def small(problem: Problem, memory: int) -> bool:
    """Whether every cell can be looked at; an atom that lost attributes has no cells."""
    few = len(problem.axes) <= 1 or (problem.cells <= GRID and grid_part(problem).bytes <= memory)
    return (few and not problem.bits) or not problem.cells


def walked(problem: Problem, memory: int) -> Way | None:
    """Attribute by attribute, if no atom reads two and the states stay fewer than the cells."""
    if len(problem.axes) < 2 or not fits(problem):
        return None
    found = walk(problem, memory)
    if found is None:
        return None
    part = Part(
        attributes=problem.component.attributes,
        atoms=texts(problem.component),
        method="elimination",
        steps=found.steps,
        width=found.most,
        cost=float(found.looked),
        bytes=found.bytes,
    )
    return Way(part, lambda: exactly(problem, found.sums))


def networked(problem: Problem, memory: int) -> Way | None:
    """Sum out of comparisons what can be, then contract what is left; or a grid if cheaper."""
    rest = problem.copy()
    steps = eliminate(rest, memory)
    said = tuple(map(str, steps))
    if small(rest, memory) and (steps or rest.cells <= TINY):
        part = replace(grid_part(rest), method="elimination", steps=said)
        return Way(part, lambda: exactly(rest, enumerate_grid(rest, GRID)))
    plain = grid_part(problem) if small(problem, memory) else None
    network = network_of(rest)
    for optimize in ("auto", "auto-hq"):
        part = network.plan(optimize)
        if plain and plain.cost <= part.cost:
            break
        if part.bytes <= memory:
            part = replace(part, steps=said + part.steps)
            return Way(part, lambda: exactly(rest, network.contract()))
    if plain is None:
        return None
    return Way(plain, lambda: exactly(problem, enumerate_grid(problem, GRID)))


def enumerated(problem: Problem, memory: int) -> Way | None:
    """Look at every cell, if those are not too many and what each atom needs fits."""
    part = grid_part(problem)
    needed = part.bytes - 20 * problem.cells + 20 * GRID
    if problem.cells > ENUMERATED or needed > memory:
        return None
    part = replace(part, method="enumeration", bytes=needed)
    return Way(part, lambda: exactly(problem, enumerate_grid(problem, GRID)))


def too_large(problem: Problem, memory: int) -> QueryError:
    names = problem.component.attributes
    sizes = [problem.schema[name].size for name in names]
    spans = " × ".join(f"{size:,}" for size in sizes)
    needed = "" if problem.huge else f" needs {gib(network_of(problem).plan().bytes)} and"
    return QueryError(
        f"the conditions on {', '.join(names)} do not come apart: counting their {spans} "
        f"combinations of values exactly{needed} does not fit {gib(memory)}",
        hint="allow more memory (--memory), split the comparison, or leave out --exact for an "
        "estimate with its error (which shaped noise does not allow)",
    )


def gib(count: int) -> str:
    return f"{count / 2**30:,.3g} GiB"


def exactly(problem: Problem, opened: Floats) -> tuple[Floats, None]:
    """From open attributes to groups, with no error."""
    return by_group(problem, opened) * column(problem.scale, len(problem.groups)), None


def scaled(problem: Problem, found: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    scale = column(problem.scale, len(problem.groups))
    return found[0] * scale, found[1] * np.abs(scale)


def column(vector: Floats, count: int) -> Floats:
    return vector.reshape(-1, *(1,) * count)


def by_group(problem: Problem, opened: Floats) -> Floats:
    """(K, *open positions) added up to (K, *groups)."""
    into_classes = reduced(problem)
    axes = [problem.axes[name] for name in problem.open]
    codes = {a.name: a.codes[a.first] if a.name in into_classes else a.codes for a in axes}
    cell: Array = np.zeros((1,) * len(axes), np.int64)
    for group in problem.groups:
        cell = cell * group.size + group_codes(group, codes, problem.open)
    cell = np.broadcast_to(cell, opened.shape[1:]).ravel()
    sizes = [group.size for group in problem.groups]
    sums = [added(cell, part.ravel(), math.prod(sizes)) for part in opened]
    return np.stack(sums).reshape(-1, *sizes)


def group_codes(group: Group, codes: dict[str, Array], names: tuple[str, ...]) -> Array:
    """A group's codes on the open positions, with an axis of 1 for what it does not read."""
    table = group.codes.reshape(group.shape)[np.ix_(*(codes[n] for n in group.attributes))]
    places = [names.index(n) for n in group.attributes]
    shape = [1] * len(names)
    for place, size in zip(places, table.shape, strict=True):
        shape[place] = size
    return table.reshape(shape)  # both are in the schema's order
