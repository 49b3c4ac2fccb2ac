"""How long texts can get in an expression, and what may be done with long ones.

Bounds from the expression and the public domain alone: nobody can make a computer busy for minutes
with a short query, or fill its memory. Most functions of text take time in proportion to its
length. Those that do not are bounded here: distances take time in proportion to the product of two
lengths, and so may a pattern and the text that it is looked for in.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from voile.query.language import PADDING
from voile.schema import Attribute, Schema, Values

SHORT = 64
"""What numbers and dates are at most, as texts."""
MOST_MADE = 10_000
"""Characters of a text that an expression makes of others, on the way to its value."""
MOST_COMPARED = 256
"""Characters of a text whose distance from another is computed."""
MOST_MATCHED = 2**20
"""Characters of a text times those of the pattern that is looked for in it."""
MAKING = (
    exp.Replace, exp.RegexpReplace, exp.Pad, exp.TimeToStr, exp.Concat, exp.ConcatWs, exp.DPipe,
)  # fmt: skip
"""What they give may be longer than each of their parts."""
CHOOSING = (exp.Binary, exp.Predicate, exp.Not, exp.Paren, exp.Case, exp.If, exp.Coalesce,
            exp.Nullif, exp.Greatest, exp.Least, exp.Tuple)  # fmt: skip
"""What they give is one of their parts, a number or a truth value."""
KEEPING = (
    exp.Lower, exp.Upper, exp.Initcap, exp.Trim, exp.Reverse, exp.Paren, exp.Cast, exp.TryCast,
    exp.Substring, exp.Left, exp.Right, exp.RegexpExtract, exp.SplitPart, exp.Translate,
)  # fmt: skip
"""What they give is no longer than their first part; as a number, than a short text."""
DISTANCES = frozenset({"levenshtein", "damerau_levenshtein", "jaccard", "hamming"})
PATTERNS = (
    exp.Like, exp.ILike, exp.Glob, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike,
    exp.RegexpFullMatch, exp.RegexpExtract, exp.RegexpReplace,
)  # fmt: skip
ColumnLength = Callable[[exp.Column], int]


def longest(node: exp.Expr, column_length: ColumnLength) -> int:
    """The most characters that an expression comes to, as a text."""
    return length_of(node, column_length, lambda child: longest(child, column_length))


def length_of(node: exp.Expr, column_length: ColumnLength, part: Callable[[exp.Expr], int]) -> int:
    """The most characters of a node, where `part` says those of each of its parts."""
    if isinstance(node, exp.Literal | exp.RawString):
        return len(str(node.this))
    if isinstance(node, exp.Column):
        return column_length(node)
    inner = [part(child) for child in node.iter_expressions()]
    if isinstance(node, MAKING):
        return made_length(node, inner, part)
    if isinstance(node, KEEPING):
        most = kept_length(node)
        least = SHORT if isinstance(node, exp.Cast | exp.TryCast) else 0
        return max(least, part(node.this) if most is None else min(most, part(node.this)))
    return max([SHORT, *inner]) if isinstance(node, CHOOSING) else sum(inner) + SHORT


def made_length(node: exp.Expr, inner: list[int], part: Callable[[exp.Expr], int]) -> int:
    """The most characters of a text that is made of others, which have `inner`."""
    if isinstance(node, exp.Pad):
        return max(PADDING, *inner)
    if isinstance(node, exp.Replace | exp.RegexpReplace):
        # An empty pattern is found around every character, which stays.
        other = node.args.get("replacement")
        return (part(node.this) + 1) * (1 + (part(other) if other else 0))
    if isinstance(node, exp.TimeToStr):
        return SHORT * max(1, *inner)
    if isinstance(node, exp.ConcatWs):
        return sum(inner) + len(inner) * max([0, *inner[:1]])  # a separator between every two
    return sum(inner)


def kept_length(node: exp.Expr) -> int | None:
    """How many characters of a text are kept; None for all, or as many as there may be."""
    if isinstance(node, exp.Left | exp.Right):
        return whole(node.expression)
    return whole(node.args.get("length")) if isinstance(node, exp.Substring) else None


def overgrown(tree: exp.Expr, column_length: ColumnLength) -> exp.Expr | None:
    """An expression inside that may make a text of more than `MOST_MADE` characters."""
    found: dict[int, int] = {}
    for node in reversed(list(tree.walk())):  # parts before their whole
        found[id(node)] = most = length_of(node, column_length, lambda part: found[id(part)])
        if most > MOST_MADE and isinstance(node, MAKING):
            return node
    return None


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
        most = max((longest(part, column_length) for part in parts if part), default=0)
        if most > MOST_COMPARED:
            return (
                f"{name} of texts with up to {most:,} characters takes too long",
                f"{name} takes texts of up to {MOST_COMPARED}: cut them, as in left(x, 100)",
            )
    if isinstance(node, PATTERNS) and isinstance(node.expression, exp.Expr):
        text, pattern = (longest(p, column_length) for p in (node.this, node.expression))
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
