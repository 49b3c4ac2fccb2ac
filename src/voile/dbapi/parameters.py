"""Values in the place of a statement's parameters: put into its tree, never into its text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from voile.errors import UsageError
from voile.units import counted

Parameters = Sequence[Any] | Mapping[str, Any]
"""In their order for ? and $1; by name for $name."""


class Unstated(tuple[()]):
    """In the place of parameters that are not known yet: each is NULL."""

    __slots__ = ()


ALL = 10**15
"""More rows than there are."""


def bound(tree: exp.Expr, parameters: Parameters) -> exp.Expr:
    """The tree with a literal in the place of every parameter; all of them are used."""
    named = isinstance(parameters, Mapping)
    if not named and (isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence)):
        raise UsageError(
            f"parameters are a sequence of values, not {type(parameters).__name__}",
            hint="write (value,)",
        )
    holders = placeholders(tree)
    used: set[Any] = set()
    tree = tree.copy() if holders else tree
    for number, node in enumerate(placeholders(tree)):
        key = key_of(node, number)
        used.add(key)
        value = _value(key, parameters, len(holders))
        if value is None and isinstance(node.parent, exp.Limit | exp.Offset):
            value = ALL if isinstance(node.parent, exp.Limit) else 0  # as PostgreSQL has it
        node.replace(literal_of(value))
    if not named and len(used) < len(parameters):
        raise UsageError(
            f"{counted(len(parameters), 'parameter')} were given, and the statement has "
            f"{counted(len(used), 'place')} for them",
            hint="write ? where each value belongs",
        )
    return tree


def placeholders(tree: exp.Expr) -> list[exp.Expr]:
    """The parameters of a statement, in the order of its text."""
    found = list(tree.find_all(exp.Placeholder, exp.Parameter))
    starts = [start_of(node) for node in found]
    if len(set(starts)) < len(starts):  # never seen; a value in a wrong place would be worse
        raise UsageError("two parameters stand at one place", hint="put parentheses around each")
    return [node for _, node in sorted(zip(starts, found, strict=True), key=lambda pair: pair[0])]


def start_of(node: exp.Expr) -> int:
    """Where a parameter stands in the text; one that is cast has the mark of its cast."""
    marked: exp.Expr | None = node
    while marked is not None and "start" not in marked.meta:
        marked = marked.parent
    return -1 if marked is None else int(marked.meta["start"])


def key_of(node: exp.Expr, number: int) -> int | str:
    """By what a parameter is known: its place, counted from 0, or its name."""
    named = node.this
    text = named.name if isinstance(named, exp.Expr) else str(named or "")
    if not text or text == "?":
        return number
    return int(text) - 1 if text.isdecimal() else text


def _value(key: int | str, parameters: Parameters, places: int) -> Any:
    try:
        if isinstance(parameters, Unstated):
            return None
        if isinstance(parameters, Mapping):
            return parameters[str(key)] if isinstance(key, str) else parameters[str(key + 1)]
        if isinstance(key, str) or key < 0:
            raise KeyError(key)
        return parameters[key]
    except (KeyError, IndexError):
        called = f"${key}" if isinstance(key, str) else f"number {key + 1}"
        given = counted(len(parameters), "value")
        raise UsageError(
            f"parameter {called} has no value: {given} for {counted(places, 'place')}",
            hint="give one value for each parameter",
        ) from None


def literal_of(value: Any) -> exp.Expr:
    """A value as a part of SQL."""
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()  # NumPy's numbers
    if value is None:
        return exp.null()
    for kinds, made in WAYS:
        if isinstance(value, kinds):
            return made(value)
    raise UsageError(
        f"a parameter of type {type(value).__name__} cannot be written in SQL",
        hint="give a number, text, a date, a truth value or None",
    )


def _truth(value: bool) -> exp.Expr:
    return exp.true() if value else exp.false()


def _whole(value: int) -> exp.Expr:
    return _signed(str(abs(value)), negative=value < 0)


def _decimal(value: Decimal) -> exp.Expr:
    if not value.is_finite():
        return _cast(str(float(value)), exp.DType.DOUBLE)
    return _signed(f"{abs(value):f}", negative=value < 0)


def _moment(value: dt.datetime) -> exp.Expr:
    if value.tzinfo is not None:
        raise UsageError(
            f"the parameter {value.isoformat()} has a time zone, and no column has one",
            hint="give value.replace(tzinfo=None)",
        )
    return _cast(value.isoformat(" "), exp.DType.TIMESTAMP)


def _day(value: dt.date) -> exp.Expr:
    return _cast(value.isoformat(), exp.DType.DATE)


def _time(value: dt.time) -> exp.Expr:
    return _cast(value.isoformat(), exp.DType.TIME)


def _text(value: str) -> exp.Expr:
    if "\0" in value:
        raise UsageError("a parameter has a NUL character", hint="leave it out")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError("a parameter is not valid Unicode", hint="decode it first") from None
    return exp.Literal.string(value)


def _double(value: float) -> exp.Expr:
    if not math.isfinite(value):
        return _cast(str(value), exp.DType.DOUBLE)
    return _signed(repr(abs(value)), negative=math.copysign(1, value) < 0)


def _signed(digits: str, *, negative: bool) -> exp.Expr:
    found = exp.Literal.number(digits)
    return exp.Paren(this=exp.Neg(this=found)) if negative else found


def _cast(text: str, kind: exp.DType) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=kind))


WAYS: tuple[tuple[type, Callable[[Any], exp.Expr]], ...] = (
    (bool, _truth), (int, _whole), (float, _double), (Decimal, _decimal), (str, _text),
    (dt.datetime, _moment), (dt.date, _day), (dt.time, _time),
)  # fmt: skip
"""Truth values before numbers, and moments before days, which they are too."""
