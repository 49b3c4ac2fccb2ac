"""How long texts can get in an expression, and what may be done with long ones.

Bounds from the expression and the public domain alone: nobody can make a computer busy for minutes
with a short query. Most functions of text take time in proportion to its length. Those that do not
are bounded here: distances take time in proportion to the product of two lengths, and so may a
pattern and the text that it is looked for in.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from voile.query.language import PADDING
from voile.schema import Attribute, Schema, Values

SHORT = 64
"""What numbers and dates are at most, as texts."""
MOST_COMPARED = 256
"""Characters of a text whose distance from another is computed."""
MOST_MATCHED = 2**20
"""Characters of a text times those of the pattern that is looked for in it."""
Replacing = exp.Replace | exp.RegexpReplace | exp.Translate
KEEPING = (
    exp.Lower, exp.Upper, exp.Initcap, exp.Trim, exp.Reverse, exp.Paren, exp.Cast, exp.TryCast,
    exp.Substring, exp.Left, exp.Right, exp.RegexpExtract, exp.SplitPart,
)  # fmt: skip
"""What they give is no longer than their first part."""
DISTANCES = frozenset({"levenshtein", "damerau_levenshtein", "jaccard", "hamming"})
PATTERNS = (
    exp.Like, exp.ILike, exp.Glob, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike,
    exp.RegexpFullMatch, exp.RegexpExtract, exp.RegexpReplace,
)  # fmt: skip
ColumnLength = Callable[[exp.Column], int]


def longest(node: exp.Expr, column_length: ColumnLength) -> int:
    """The most characters of any text inside; grows like the texts do."""
    if isinstance(node, exp.Literal):
        return len(str(node.this))
    if isinstance(node, exp.Column):
        return column_length(node)
    inner = [longest(child, column_length) for child in node.iter_expressions()]
    if isinstance(node, exp.Pad):
        return max(PADDING, *inner)
    if isinstance(node, Replacing):
        own, *others = inner
        return (own + 1) * max(1, *others)
    if isinstance(node, exp.TimeToStr):
        return SHORT * max(1, *inner)
    # A separator stands between every two.
    separators = len(inner) * inner[0] if isinstance(node, exp.ConcatWs) and inner else 0
    return sum(inner) + SHORT + separators


def longest_value(node: exp.Expr, column_length: ColumnLength) -> int:
    """The most characters of what a text comes to, where that is less than those inside."""
    if isinstance(node, exp.Left | exp.Right) and (most := whole(node.expression)) is not None:
        return min(most, longest_value(node.this, column_length))
    if isinstance(node, exp.Substring) and (most := whole(node.args.get("length"))) is not None:
        return min(most, longest_value(node.this, column_length))
    if isinstance(node, KEEPING):
        own = longest_value(node.this, column_length)
        return max(own, SHORT) if isinstance(node, exp.Cast | exp.TryCast) else own
    if isinstance(node, exp.DPipe):
        sides = (node.this, node.expression)
        return sum(longest_value(side, column_length) for side in sides)
    return longest(node, column_length)


def whole(node: exp.Expr | None) -> int | None:
    """A whole number that is written as one."""
    return int(node.this) if isinstance(node, exp.Literal) and node.is_int else None


def too_costly(node: exp.Expr, column_length: ColumnLength) -> tuple[str, str] | None:
    """What is wrong with a function of two texts that would take too long, and what would work."""
    name = distance_name(node)
    if name in DISTANCES:
        parts = (
            node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
        )
        most = max((longest_value(part, column_length) for part in parts if part), default=0)
        if most > MOST_COMPARED:
            return (
                f"{name} of texts with up to {most:,} characters takes too long",
                f"{name} takes texts of up to {MOST_COMPARED}: cut them, as in left(x, 100)",
            )
    if isinstance(node, PATTERNS) and isinstance(node.expression, exp.Expr):
        text, pattern = (longest_value(p, column_length) for p in (node.this, node.expression))
        if text * pattern > MOST_MATCHED:
            return (
                f"{node.key} with a pattern of up to {pattern:,} characters in texts of up to "
                f"{text:,} takes too long",
                f"{node.key} takes up to {MOST_MATCHED:,}, one length times the other: use a "
                "shorter pattern, or cut the text, as in left(x, 100)",
            )
    return None


def distance_name(node: exp.Expr) -> str:
    """What a function of two texts is called."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.key


def in_schema(schema: Schema) -> ColumnLength:
    """The most characters that a value of a column has."""
    known = {attribute.name.lower(): attribute for attribute in schema}

    def length(column: exp.Column) -> int:
        found = known.get(column.name.lower())
        return SHORT if found is None else attribute_length(found)

    return length


def attribute_length(attribute: Attribute) -> int:
    """The most characters that a value of the attribute has."""
    if attribute.kind == "categorical" and isinstance(attribute.domain, Values):
        return max((len(str(value)) for value in attribute.domain.values), default=0)
    return SHORT
