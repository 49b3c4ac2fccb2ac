"""How long texts can get while a question is tried: some functions make long ones of short ones.

A bound from the expression alone, so that nobody can fill the server's memory with a question.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from voile.errors import QueryError
from voile.query.language import PADDING
from voile.query.predicate import Atom, Expression, wording
from voile.query.query import Query
from voile.query.text import refusal
from voile.schema import Attribute, Schema, Values

MOST = 10_000
"""Characters of any text on the way."""
SHORT = 64
"""What numbers and dates are at most, as texts."""
Replacing = exp.Replace | exp.RegexpReplace | exp.Translate
GROWING = Replacing | exp.Pad | exp.TimeToStr
"""Without these texts are only put side by side, and a question is short."""


def check_lengths(query: Query, parts: Iterable[Atom | Expression], schema: Schema) -> None:
    """Refuse an expression that might make a text of more than MOST characters."""
    for part in parts:
        growing = any(isinstance(node, GROWING) for node in part.node.walk())
        if growing and longest(part.node, schema) > MOST:
            raise too_long(query, part)


def too_long(query: Query, part: Atom | Expression) -> QueryError:
    return refusal(query.sql, f"{wording(part)} may make a text of more than {MOST:,} characters",
                   part.start, "pad to less, and replace by shorter texts")  # fmt: skip


def longest(node: exp.Expr, schema: Schema) -> int:
    """The most characters of any text inside; grows like the texts do."""
    if isinstance(node, exp.Literal):
        return len(str(node.this))
    if isinstance(node, exp.Column):
        return column_length(schema[node.name]) if node.name in schema.names else SHORT
    inner = [longest(child, schema) for child in node.iter_expressions()]
    if isinstance(node, exp.Pad):
        return max(PADDING, *inner)
    if isinstance(node, Replacing):
        own, *others = inner
        return (own + 1) * max(1, *others)
    if isinstance(node, exp.TimeToStr):
        return SHORT * max(1, *inner)
    return sum(inner) + SHORT


def column_length(attribute: Attribute) -> int:
    if attribute.kind == "categorical" and isinstance(attribute.domain, Values):
        return max((len(str(value)) for value in attribute.domain.values), default=0)
    return SHORT
