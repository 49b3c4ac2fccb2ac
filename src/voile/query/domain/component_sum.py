"""Which way to sum a component, and its sum for each group."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from voile.arrays import Floats, Ints
from voile.errors import QueryError, spelled
from voile.query.domain.compare import Array, added, all_hold, numbers, some_hold, truths
from voile.query.domain.eliminate import eliminate
from voile.query.domain.grid import enumerate_grid, grid_part
from voile.query.domain.network import PlanPart, network_of, reduced
from voile.query.domain.problem import Problem, TermGroup, texts
from voile.query.domain.states import fits, walk
from voile.query.predicate import And, Atom, folded

# ----------------------------------------------------------------------
# a sum estimated from tuples drawn from the component's domain, with its standard error
# The last resort, for conditions that nothing takes apart on domains too large to list. Tuples are
# drawn in proportion to the weights, which hold every condition on a single attribute, so only the
# joint conditions are left to chance. The draw depends on the query alone: repeated, it
# has the same answer, and nothing private is involved.


TUPLES = 2**21
"""Tuples drawn for each part of a mixture."""
CHUNK = 2**19


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some tuples: their positions on the axes, their codes, and the sign of their weight."""

    positions: dict[str, Ints]
    codes: dict[str, Ints]
    sign: Floats


def sample(problem: Problem) -> tuple[Floats, Floats]:
    """Sums (K, *groups) and their standard errors."""
    sizes = [group.size for group in problem.groups]
    sums = np.zeros((problem.batch, math.prod(sizes)))
    squares = np.zeros_like(sums)
    for k in range(problem.batch):
        for drawn in draws(problem, k):
            value = contributions(problem, drawn)
            cell = cells(problem.groups, drawn)
            sums[k] += np.bincount(cell, value, sums.shape[1])
            squares[k] += np.bincount(cell, value * value, sums.shape[1])
    mean = sums / TUPLES
    variance = np.maximum(squares / TUPLES - mean * mean, 0)
    mass = np.array([total_mass(problem, k) for k in range(problem.batch)])[:, None]
    shape = (problem.batch, *sizes)
    # Where no tuple fell, the sum is not known to be 0: as if one had, of size 1.
    floor = np.where(squares > 0, 0, mass / TUPLES)
    error = np.maximum(mass * np.sqrt(variance / TUPLES), floor)
    return (mass * mean).reshape(shape), error.reshape(shape)


def total_mass(problem: Problem, k: int) -> float:
    """The sum of the absolute weights of all tuples."""
    listed = math.prod(float(np.abs(a.weight[k]).sum()) for a in problem.axes.values())
    return listed * math.prod(float(problem.schema[name].size) for name in problem.huge)


def seed(problem: Problem, k: int) -> int:
    """The seed of a sample: the same for the same problem."""
    text = f"{problem.component}|{k}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def draws(problem: Problem, k: int) -> Iterator[Drawn]:
    """Tuples in proportion to the absolute weights."""
    rng = np.random.Generator(np.random.PCG64(seed(problem, k)))
    tables = {}
    for name, axis in problem.axes.items():
        tables[name] = np.cumsum(np.abs(axis.weight[k]))
    if any(len(table) == 0 or table[-1] == 0 for table in tables.values()):
        return
    for _ in range(0, TUPLES, CHUNK):
        positions: dict[str, Ints] = {}
        codes: dict[str, Ints] = {}
        sign = np.ones(CHUNK)
        for name, table in tables.items():
            axis = problem.axes[name]
            at = np.searchsorted(table, rng.random(CHUNK) * table[-1], side="right")
            # Rounding may hit the end: the last position that has any weight.
            at = np.minimum(at, np.searchsorted(table, table[-1]))
            positions[name], codes[name] = at, axis.codes[at]
            sign *= np.sign(axis.weight[k][at])
        for name in problem.huge:
            codes[name] = rng.integers(0, problem.schema[name].size, CHUNK)
        yield Drawn(positions, codes, sign)


def contributions(problem: Problem, drawn: Drawn) -> Floats:
    """1[all formulas] · Π values · sign for each tuple."""
    joint = problem.joint_atoms()
    names = [n for n in problem.component.attributes if n in drawn.codes]
    requested = [*joint, *problem.values]
    columns = problem.engine.sample(names, requested, [drawn.codes[n] for n in names])
    known = {atom: truths(c) for atom, c in zip(joint, columns, strict=False)}

    def truth(atom: Atom) -> Array:
        if atom in known:
            return known[atom]
        return problem.truth[atom][drawn.positions[atom.attributes[0]]]

    whole = And(tuple(problem.formulas))
    value: Floats = drawn.sign * folded(whole, truth, all_hold, some_hold)
    for column in columns[len(joint) :]:
        value = value * numbers(column)
    return value


def cells(groups: list[TermGroup], drawn: Drawn) -> Ints:
    """The group of each tuple, one number for all group expressions."""
    cell = np.zeros(len(drawn.sign), np.int64)
    for group in groups:
        code: Array = group.codes.reshape(group.shape)[
            tuple(drawn.codes[name] for name in group.attributes)
        ]
        cell = cell * group.size + code
    return cell


def sampling_part(problem: Problem) -> PlanPart:
    """The plan of sampling the domain."""
    atoms = len(problem.joint_atoms()) + len(problem.values)
    groups = math.prod(group.size for group in problem.groups)
    return PlanPart(
        attributes=problem.component.attributes,
        atoms=texts(problem.component),
        method="sampling",
        steps=(f"{TUPLES:,} tuples",),
        width=CHUNK,
        cost=float(TUPLES * problem.batch * max(1, atoms)),
        bytes=8 * (CHUNK * (2 * len(problem.component.attributes) + atoms + 4) + 4 * groups),
    )


# ----------------------------------------------------------------------
# which way to sum a component, and its sum for each group


TINY = 3 * 10**4
"""Cells of a grid that no cleverness beats."""
GRID = 4 * 10**6
"""Cells of a grid that is looked at outright, where nothing is cheaper."""
ENUMERATED = 5 * 10**8
"""Cells that are looked at window by window."""


@dataclass(frozen=True, eq=False)
class ComponentSum:
    """A component's sum and its standard error, both (K, *groups)."""

    values: Floats
    errors: Floats | None
    part: PlanPart

    @property
    def bytes(self) -> int:
        """What remembering it costs, its name included."""
        return 2048 + self.values.nbytes + (0 if self.errors is None else self.errors.nbytes)


@dataclass(frozen=True)
class Way:
    """A plan, and what carries it out: (K, *groups) and perhaps standard errors."""

    part: PlanPart
    run: Callable[[], tuple[Floats, Floats | None]]

    def sum(self) -> ComponentSum:
        """Carry the plan out."""
        values, errors = self.run()
        return ComponentSum(values, errors, self.part)


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
    part = PlanPart(
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
    """The error for a sum that does not fit into memory."""
    names = problem.component.attributes
    sizes = [problem.schema[name].size for name in names]
    spans = " × ".join(f"{size:,}" for size in sizes)
    needed = "" if problem.huge else f" needs {gib(network_of(problem).plan().bytes)} and"
    return QueryError(
        f"the conditions on {', '.join(names)} do not come apart: counting their {spans} "
        f"combinations of values exactly{needed} does not fit {gib(memory)}",
        hint=f"allow more memory ({spelled('memory')}), split the comparison, or leave out "
        f"{spelled('exact', True)} for an "
        "estimate with its error (which shaped noise does not allow)",
    )


def gib(count: int) -> str:
    """A number of bytes in words."""
    return f"{count / 2**30:,.3g} GiB"


def exactly(problem: Problem, opened: Floats) -> tuple[Floats, None]:
    """From open attributes to groups, with no error."""
    return by_group(problem, opened) * column(problem.scale, len(problem.groups)), None


def scaled(problem: Problem, found: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """A sum and its error, times the problem's constant factors."""
    scale = column(problem.scale, len(problem.groups))
    return found[0] * scale, found[1] * np.abs(scale)


def column(vector: Floats, count: int) -> Floats:
    """A vector over the mixture, to be multiplied with (K, *groups)."""
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


def group_codes(group: TermGroup, codes: dict[str, Array], names: tuple[str, ...]) -> Array:
    """A group's codes on the open positions, with an axis of 1 for what it does not read."""
    table = group.codes.reshape(group.shape)[np.ix_(*(codes[n] for n in group.attributes))]
    places = [names.index(n) for n in group.attributes]
    shape = [1] * len(names)
    for place, size in zip(places, table.shape, strict=True):
        shape[place] = size
    return table.reshape(shape)  # both are in the schema's order
