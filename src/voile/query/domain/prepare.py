"""One component, evaluated on its attributes one by one and made as small as that allows.

Conditions and values that read one attribute become part of its weights; values of weight 0 are
dropped; values that everything else treats alike become one class with the sum of their weights.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sqlglot import exp

from voile.arrays import Bools, Floats, Ints
from voile.query.domain.compare import (
    OPERATORS,
    Array,
    DomainEngine,
    Weights,
    all_hold,
    numbers,
    on_whole_numbers,
    separable,
    some_hold,
    truths,
)
from voile.query.domain.problem import Component, Problem, ProblemAxis, TermGroup, classed, reads
from voile.query.predicate import (
    FALSE,
    TRUE,
    And,
    Atom,
    Expression,
    Or,
    Predicate,
    as_atom,
    atoms,
    folded,
)
from voile.schema import Attribute, Range, Schema
from voile.schema.attribute import ordinal

# ----------------------------------------------------------------------
# long ranges by their intervals: conditions like x < 5 or x IN (3, 7) need no list of values
# Where all that reads an attribute compares it with constants, only those constants are points at
# which anything changes. One value stands for each interval between them, with its length as its
# weight, and the engine evaluates the conditions on those values alone.


LONG = 2**16
"""Values of an attribute from which on this is worth looking for."""


def intervals(component: Component, attribute: Attribute) -> tuple[Ints, Floats] | None:
    """The codes that stand for intervals of a long range, and the lengths; None if there are none.

    NULL, where the domain has it, is an interval of its own.
    """
    name, domain = attribute.name, attribute.domain
    if attribute.size <= LONG or not isinstance(domain, Range):
        return None
    if any(name in e.attributes for e in (*component.values, *component.groups)):
        return None
    low = ordinal(domain.low)
    cuts = {0, domain.size}
    for atom in {a for part in component.parts for a in atoms(part) if name in reads(a)}:
        constants = compared_with(atom, dates=attribute.kind == "date")
        if constants is None or (fractional(constants) and max(-low, low + domain.size) > 2**53):
            return None
        cuts |= {math.ceil(c) - low for c in constants} | {
            math.floor(c) + 1 - low for c in constants
        }
    inside = sorted(c for c in cuts if 0 <= c <= domain.size)
    codes, lengths = inside[:-1], np.diff(np.array(inside, dtype=np.float64)).tolist()
    if attribute.null:
        codes, lengths = [*codes, domain.size], [*lengths, 1.0]
    return np.array(codes, dtype=np.int64), np.array(lengths)


def fractional(constants: tuple[int | float, ...]) -> bool:
    """A comparison with a DOUBLE casts the column, which is exact up to 2⁵³ only."""
    return any(isinstance(c, float) for c in constants)


@lru_cache(maxsize=4096)
def compared_with(atom: Atom, *, dates: bool) -> tuple[int | float, ...] | None:
    """The constants that an atom compares its only column with, or None if it does more."""
    if len(atom.attributes) != 1:
        return None
    tree = atom.node
    while isinstance(tree, exp.Paren | exp.Not):
        tree = tree.this
    if type(tree) in OPERATORS:
        sides = [tree.this, tree.expression]
    elif isinstance(tree, exp.Between):
        sides = [tree.this, tree.args["low"], tree.args["high"]]
    elif isinstance(tree, exp.In) and not tree.args.get("query"):
        sides = [tree.this, *tree.expressions]
    elif isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
        sides = [tree.this]
    else:
        return None
    columns = [side for side in sides if isinstance(side, exp.Column)]
    constants = [constant(side, dates=dates) for side in sides if not isinstance(side, exp.Column)]
    if len(columns) != 1 or None in constants:
        return None
    return tuple(c for c in constants if c is not None)


def constant(tree: exp.Expr, *, dates: bool) -> int | float | None:
    """A number, or a day as one."""
    if isinstance(tree, exp.Paren):
        return constant(tree.this, dates=dates)
    if isinstance(tree, exp.Neg) and not dates:
        inner = constant(tree.this, dates=dates)
        return None if inner is None else -inner
    if isinstance(tree, exp.Cast):
        wanted = exp.DType.DATE if dates else exp.DType.DOUBLE
        inner = constant(tree.this, dates=dates) if tree.is_type(wanted) else None
        return inner if dates or inner is None else float(inner)
    if not isinstance(tree, exp.Literal) or tree.is_string is not dates:
        return None
    try:
        return dt.date.fromisoformat(tree.this).toordinal() if dates else number(tree.this)
    except ValueError:
        return None


def number(text: str) -> int | float:
    """A finite number from its SQL text."""
    value = int(text) if text.isdigit() else float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


# ----------------------------------------------------------------------
# one component, evaluated on its attributes one by one and made as small as that allows
# Conditions and values that read one attribute become part of its weights; values of weight 0 are
# dropped; values that everything else treats alike become one class with the sum of their weights.


@dataclass(frozen=True)
class Sizes:
    """How large a component's attributes are: too large to be listed, or a few intervals."""

    huge: tuple[str, ...]
    intervals: dict[str, tuple[Ints, Floats]]


def sizes_of(component: Component, schema: Schema, memory: int, weights: Weights | None) -> Sizes:
    """Which attributes of a component are too large to list, and which are cut into intervals."""
    plain = [n for n in component.attributes if weights is None or n not in weights.tables]
    found = {n: i for n in plain if (i := intervals(component, schema[n]))}
    large = (n for n in component.attributes if n not in found and unlisted(schema[n].size, memory))
    return Sizes(tuple(large), found)


def unlisted(size: int, memory: int) -> bool:
    """Whether evaluating an attribute on all its values would take more than the memory."""
    return 32 * size > memory


def requests(component: Component, sizes: Sizes) -> list[Expression]:
    """Everything that the component needs evaluated on all values of one attribute, or on none."""
    apart = {*sizes.huge, *sizes.intervals}
    return [e for e in single_reads(component) if not set(e.attributes) & apart]


def single_reads(component: Component) -> list[Expression]:
    """Everything on at most one attribute."""
    found: list[Expression] = []
    for atom in dict.fromkeys(a for part in component.parts for a in atoms(part)):
        if len(atom.attributes) <= 1:
            found.append(atom)
        elif apart := separable(atom):
            found += [expression for _, expression in apart.terms]
    found += [value for value in component.values if len(value.attributes) <= 1]
    return list(dict.fromkeys(found))


def prepare(
    component: Component,
    schema: Schema,
    engine: DomainEngine,
    groups: Sequence[TermGroup],
    weights: Weights | None,
    sizes: Sizes,
) -> Problem:
    """Evaluate what reads one attribute, and reduce the component with it."""
    batch = 1 if weights is None else len(weights.mix)
    problem = Problem(schema, engine, component, batch, list(groups), huge=sizes.huge)
    columns = evaluated(component, engine, sizes)
    single = fold_single(problem, columns)
    problem.formulas = [collapse(f, problem, columns) for f in problem.formulas]
    for name in component.attributes:
        if name not in sizes.huge:
            codes, weight = sizes.intervals.get(name) or every_value(schema[name].size)
            if weights is not None and name in weights.tables:
                weight = np.asarray(weights.tables[name], dtype=np.float64)
            weight = np.broadcast_to(weight, (batch, len(codes)))
            axis, kept = listed(problem, name, codes, weight, single.get(name))
            problem.reshape(axis, kept)
    simplify(problem)
    for atom in problem.joint_atoms():
        apart = separable(atom) if not set(atom.attributes) & set(sizes.huge) else None
        if apart:
            terms = [columns[expression] for _, expression in apart.terms]
            problem.joint[atom] = on_whole_numbers(apart, terms)
    problem.coarsen()
    return problem


def evaluated(component: Component, engine: DomainEngine, sizes: Sizes) -> dict[Expression, Any]:
    """What reads one attribute on its values or on its intervals, and what reads none."""
    requested = requests(component, sizes)
    columns = dict(zip(requested, engine.evaluate(requested), strict=True))
    for name, (codes, _) in sizes.intervals.items():
        mine = [e for e in single_reads(component) if e.attributes == (name,)]
        found = engine.sample([name], mine, [codes])
        columns |= dict(zip(mine, found, strict=True))
    return columns


def fold_single(problem: Problem, columns: dict[Expression, Any]) -> dict[str, Floats]:
    """What each attribute's weights are multiplied by; the rest is put into the problem."""
    single: dict[str, Floats] = {"": np.ones(1)}
    for part in problem.component.parts:
        names = reads(part)
        if len(names) <= 1 and not names & set(problem.huge):
            name = next(iter(names), "")
            single[name] = single.get(name, np.float64(1)) * truth_of(part, columns)
        else:
            problem.formulas.append(part)
    for value in problem.component.values:
        if value in columns:
            name = next(iter(value.attributes), "")
            single[name] = single.get(name, np.float64(1)) * numbers(columns[value])
        else:
            problem.values.append(value)
    problem.scale = np.full(problem.batch, single[""][0])
    return single


def truth_of(part: Predicate, columns: dict[Expression, Any]) -> Bools:
    """A condition on one attribute or none, on each of its values."""
    return np.atleast_1d(folded(part, lambda atom: truths(columns[atom]), all_hold, some_hold))


def collapse(part: Predicate, problem: Problem, columns: dict[Expression, Any]) -> Predicate:
    """Conditions under OR: what reads one attribute becomes one atom with its truth."""
    names = reads(part)
    listed = not names & set(problem.huge)
    if listed and len(names) <= 1:
        truth = truth_of(part, columns)
        if not names:
            return TRUE if truth[0] else FALSE
        atom = as_atom(part, tuple(names))
        problem.truth[atom] = truth
        return atom
    if isinstance(part, Atom):
        problem.joint[part] = None
        return part
    parts = gathered(part) if listed else part.parts
    inner = tuple(collapse(p, problem, columns) for p in parts)
    return And(inner) if isinstance(part, And) else Or(inner)


def gathered(part: And[Predicate] | Or[Predicate]) -> list[Predicate]:
    """The parts, those on the same single attribute joined into one."""
    same: dict[object, list[Predicate]] = {}
    for number, inner in enumerate(part.parts):
        names = reads(inner)
        same.setdefault(next(iter(names)) if len(names) == 1 else number, []).append(inner)
    kind = type(part)
    return [kind(tuple(inner)) if len(inner) > 1 else inner[0] for inner in same.values()]


def every_value(size: int) -> tuple[Ints, Floats]:
    """All codes of an attribute, each with weight 1."""
    return np.arange(size), np.ones(size)


def listed(
    problem: Problem, name: str, codes: Ints, weight: Floats, factor: Floats | None
) -> tuple[ProblemAxis, Ints]:
    """The attribute's axis, and which of the given codes are left on it."""
    size = len(codes)
    label, bound = np.zeros(size, np.int64), 1
    if any(name in g.attributes for g in problem.groups if len(g.attributes) > 1):
        label, bound = np.arange(size), size  # every value may make a difference
    features: list[tuple[Array, int]] = [
        *((t, 2) for atom, t in problem.truth.items() if atom.attributes == (name,)),
        *((g.codes, g.size) for g in problem.groups if g.attributes == (name,)),
    ]
    for feature, count in features:
        if bound * count > 2**40:
            label, first = classed(label)
            bound = len(first)
        label, bound = label * count + feature, bound * count
    weight = weight if factor is None else weight * factor
    kept = np.flatnonzero((weight != 0).any(axis=0))
    numbered, first = classed(label[kept])
    return ProblemAxis(name, codes[kept], weight[:, kept], numbered, first), kept


def simplify(problem: Problem) -> None:
    """Fold what is true, or false, on every value that is left."""

    def fold(part: Predicate) -> Predicate:
        if isinstance(part, Atom):
            truth = problem.truth.get(part)
            if truth is None or truth.any() != truth.all():
                return part
            return TRUE if truth.any() else FALSE
        absorbing = FALSE if isinstance(part, And) else TRUE
        inner: list[Predicate] = []
        for one in map(fold, part.parts):
            if one == absorbing:
                return absorbing
            # An And inside an And is part of it: gates alternate.
            inner += one.parts if type(one) is type(part) else (one,)
        unique = tuple(dict.fromkeys(inner))
        return unique[0] if len(unique) == 1 else type(part)(unique)

    whole = fold(And(tuple(problem.formulas)))
    problem.formulas = list(whole.parts) if isinstance(whole, And) else [whole]
    if whole == FALSE:
        problem.scale = problem.scale * 0
        problem.formulas = []
