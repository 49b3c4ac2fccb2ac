"""Long ranges by their intervals: conditions like x < 5 or x IN (3, 7) need no list of values.

Where all that reads an attribute compares it with constants, only those constants are points at
which anything changes. One value stands for each interval between them, with its length as its
weight, and the engine evaluates the conditions on those values alone.
"""

from __future__ import annotations

import datetime as dt
import math
from functools import lru_cache

import numpy as np
from sqlglot import exp

from voile.arrays import Floats, Ints
from voile.query.domain.compare import OPERATORS
from voile.query.domain.split import Component, reads
from voile.query.predicate import Atom, atoms
from voile.schema import Attribute, Range
from voile.schema.attribute import ordinal

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
    value = int(text) if text.isdigit() else float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
