"""Comparisons that come apart by attribute: f(x) < g(y), or a + 2*b - length(c) <= 100.

Their sides are evaluated on one attribute at a time, and put on one scale of whole numbers on
which the comparison is Σ values op 0. That gives their truth on a product without evaluating it
there, and lets `eliminate` sum attributes out without listing the product at all.

What DuckDB says must hold to the letter. Where it is not certain that whole numbers say the same
(NaN, decimals, sums that might overflow or be rounded), a comparison does not come apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from voile.arrays import Bools, Floats, Ints
from voile.arrow import numpy_array
from voile.query.predicate import Atom, Expression

# ----------------------------------------------------------------------
# what sums over the domain need from outside: an engine, and perhaps weights


Array = npt.NDArray[Any]


class DomainEngine(Protocol):
    """Evaluates expressions on values of the domain: what sums over it ask of an engine."""

    def evaluate(self, requests: Sequence[Expression]) -> list[pa.Array]:
        """Each expression on the product of its attributes' domains, row-major in their order.

        What cannot be computed is NULL.
        """
        ...

    def sample(
        self, attributes: Sequence[str], requests: Sequence[Expression], codes: Sequence[Ints]
    ) -> list[pa.Array]:
        """Each expression on tuples of the product, given by one array of codes each."""
        ...


@dataclass(frozen=True, eq=False)
class Weights:
    """A mixture of K products over D: tuple t weighs Σ_k mix[k] · Π_j tables[j][k, t_j].

    An attribute that is left out weighs 1 on each of its values.
    """

    mix: Floats
    tables: Mapping[str, Floats]


def numbers(column: pa.Array) -> Floats:
    """A value on each tuple, 0 where it is NULL or not a finite number: that adds nothing."""
    result = doubles(column)
    return result if np.isfinite(result).all() else np.where(np.isfinite(result), result, 0.0)


def all_hold(parts: Iterable[Any]) -> Any:
    """Where all are true; shapes are broadcast."""
    return reduce(np.logical_and, parts, np.True_)


def some_hold(parts: Iterable[Any]) -> Any:
    """Where any is true."""
    return reduce(np.logical_or, parts, np.False_)


def added(cells: Ints, weights: Floats, size: int) -> Floats:
    """The weights added up by cell."""
    sums: Floats = np.bincount(cells, weights, size).astype(np.float64, copy=False)
    return sums


def truths(column: pa.Array) -> Bools:
    """Where a condition is true; NULL is not."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    return numpy_array(column.cast(pa.bool_()))


# ----------------------------------------------------------------------
# comparisons that come apart by attribute: f(x) < g(y), or a + 2*b - length(c) <= 100
# Their sides are evaluated on one attribute at a time, and put on one scale of whole numbers on
# which the comparison is Σ values op 0. That gives their truth on a product without evaluating it
# there, and lets `eliminate` sum attributes out without listing the product at all.
#
# What DuckDB says must hold to the letter. Where it is not certain that whole numbers say the same
# (NaN, decimals, sums that might overflow or be rounded), a comparison does not come apart.


OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FINEST = 30
"""Binary digits after the point that sums of doubles may have and still be exact."""


@dataclass(frozen=True)
class Separable:
    """sign₁·f₁ + sign₂·f₂ + … op 0, where each f reads one attribute or none."""

    operator: str
    terms: tuple[tuple[int, Expression], ...]
    plain: bool
    """One expression on either side: no sum is computed, so any ordered type will do."""


@dataclass(frozen=True, eq=False)
class Linear:
    """A comparison on whole numbers: true where all is valid and Σ values op 0."""

    operator: str
    values: dict[str, Ints]
    valid: dict[str, Bools]


@lru_cache(maxsize=4096)
def separable(atom: Atom) -> Separable | None:
    """Take a comparison apart, if it is one."""
    tree = atom.node
    negated = False
    while isinstance(tree, exp.Paren | exp.Not):
        negated ^= isinstance(tree, exp.Not)
        tree = tree.this
    operator = OPERATORS.get(type(tree))
    if operator is None or tree.find(exp.Query):
        return None
    # NOT of a NULL is NULL, and neither is true: only the operator turns around.
    operator = OPPOSITE[operator] if negated else operator
    apart: tuple[tuple[int, Expression], ...]
    apart = ((1, side(tree.this, atom)), (-1, side(tree.expression, atom)))
    plain = all(len(expression.attributes) <= 1 for _, expression in apart)
    if not plain:
        terms = [*summands(tree.this, 1), *summands(tree.expression, -1)]
        apart = tuple((sign, side(term, atom)) for sign, term in terms)
    read = [expression.attributes for _, expression in apart]
    if any(len(names) > 1 for names in read) or {n for r in read for n in r} != set(
        atom.attributes
    ):
        return None
    return Separable(operator, apart, plain)


def summands(tree: exp.Expr, sign: int) -> list[tuple[int, exp.Expr]]:
    """The terms of sums and differences, each with its sign."""
    if isinstance(tree, exp.Paren):
        return summands(tree.this, sign)
    if isinstance(tree, exp.Neg):
        return summands(tree.this, -sign)
    if isinstance(tree, exp.Add | exp.Sub):
        second = sign if isinstance(tree, exp.Add) else -sign
        return summands(tree.this, sign) + summands(tree.expression, second)
    return [(sign, tree)]


def side(tree: exp.Expr, atom: Atom) -> Expression:
    """One side of a comparison as an expression of the attributes that it reads."""
    named = {column.name.casefold() for column in tree.find_all(exp.Column)}
    reads = tuple(name for name in atom.attributes if name.casefold() in named)
    return Expression(tree.copy(), reads)


def on_whole_numbers(apart: Separable, columns: Sequence[Any]) -> Linear | None:
    """The comparison on one scale, from its terms evaluated on their attributes."""
    signs = [sign for sign, _ in apart.terms]
    if apart.plain:
        scaled = ranks(columns[0], columns[1])
    else:
        scaled = exact_summands(columns, [literal(e) for _, e in apart.terms])
    if scaled is None:
        return None
    values: dict[str, Ints] = {}
    valid: dict[str, Bools] = {}
    constant, known = np.int64(0), True
    for (_, expression), sign, number, column in zip(
        apart.terms, signs, scaled, columns, strict=True
    ):
        present = numpy_array(column.is_valid())
        if not expression.attributes:
            constant, known = constant + sign * number[0], known and bool(present[0])
            continue
        (name,) = expression.attributes
        values[name] = values.get(name, np.int64(0)) + sign * number
        valid[name] = valid.get(name, np.True_) & present
    first = next(iter(values))
    values[first] = values[first] + constant
    valid[first] = valid[first] & known
    return Linear(apart.operator, values, valid)


def literal(expression: Expression) -> bool:
    """DuckDB gives a number in the text whatever width its neighbours have."""
    node = expression.node
    return isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()


def ranks(left: Any, right: Any) -> list[Ints] | None:
    """Both sides as numbers that compare as DuckDB compares the values; NULL as anything."""
    kinds = {kind(left.type), kind(right.type)}
    if kinds in ({"integer"}, {"date"}, {"boolean"}):
        pair = [whole(left), whole(right)]
        # Within 62 bits the difference of two fits a machine word.
        return pair if max(map(largest, pair)) < 2**62 else together(pair)
    if kinds <= {"integer", "double"} and "double" in kinds:
        # DuckDB, too, casts the integers to DOUBLE.
        floats = [doubles(left), doubles(right)]
        return None if any(np.isnan(f).any() for f in floats) else together(floats)
    if kinds == {"text"}:
        return text_ranks(left, right)
    return None


def together(pair: Sequence[Array]) -> list[Ints]:
    """Ranks among the values of both."""
    _, inverse = np.unique(np.concatenate(pair), return_inverse=True)
    return np.split(inverse.astype(np.int64), [len(pair[0])])


def text_ranks(left: Any, right: Any) -> list[Ints]:
    """DuckDB orders text by its UTF-8 bytes, and so does Arrow."""
    encoded = pa.concat_arrays([left.cast(pa.string()), right.cast(pa.string())])
    encoded = encoded.dictionary_encode()
    order = numpy_array(pc.sort_indices(encoded.dictionary))
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    codes = numpy_array(encoded.indices, len(order))
    rank[len(order)] = 0
    return np.split(rank[codes], [len(left)])


def exact_summands(columns: Sequence[Any], literals: Sequence[bool]) -> list[Ints] | None:
    """Terms as whole numbers on one scale, if DuckDB's own sum of them is always exact."""
    kinds = {kind(column.type) for column in columns}
    whole_ones = [c for c in columns if kind(c.type) in ("integer", "date")]
    numbers = [whole(column) for column in whole_ones]
    widths = [
        c.type.bit_width
        for c, free in zip(columns, literals, strict=True)
        if not free and kind(c.type) in ("integer", "date")
    ]
    if sum(map(largest, numbers)) >= 2 ** (min(widths, default=64) - 1):
        return None
    if kinds <= {"integer", "date"}:
        return numbers
    if kinds <= {"integer", "double"}:
        return exact_doubles([doubles(column) for column in columns])
    return None


def exact_doubles(columns: Sequence[Floats]) -> list[Ints] | None:
    """Doubles that are multiples of one small power of two, so that sums are not rounded."""
    for digits in range(0, FINEST + 1, 2):
        scaled = [column * 2.0**digits for column in columns]
        if not sum(float(np.max(np.abs(s), initial=0)) for s in scaled) < 2**53:
            return None  # also where one is NaN or infinite
        if all((s == np.floor(s)).all() for s in scaled):
            return [s.astype(np.int64) for s in scaled]
    return None


def kind(arrow: Any) -> str:
    """The kind of an Arrow type, as far as comparisons differ by it."""
    if pa.types.is_signed_integer(arrow):
        return "integer"
    if pa.types.is_float64(arrow):
        return "double"
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return "text"
    if pa.types.is_date32(arrow):
        return "date"
    return "boolean" if pa.types.is_boolean(arrow) else "other"


def whole(column: Any) -> Ints:
    """A column of integers or dates as whole numbers, 0 for NULL."""
    numbers = column.cast(pa.int32()) if pa.types.is_date(column.type) else column
    return numpy_array(numbers.cast(pa.int64()))


def doubles(column: Any) -> Floats:
    """A column as doubles, 0 for NULL."""
    return numpy_array(column.cast(pa.float64(), safe=False))


def largest(numbers: Ints) -> int:
    """The largest absolute value, as a Python int: NumPy's abs of the lowest one is negative."""
    return max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
