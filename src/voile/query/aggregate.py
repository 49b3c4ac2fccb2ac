"""Aggregates of SQL as formulas of totals and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from voile.errors import QueryError
from voile.query.bind import Binder
from voile.query.language import UNSTEADY, why_no_aggregate, why_not
from voile.query.predicate import Expression, Predicate, Term, both, present
from voile.query.text import place, refusal, short
from voile.schema import Attribute, Bins, Interval, Range, Values

# ----------------------------------------------------------------------
# arithmetic of aggregates: what SELECT, HAVING and ORDER BY compute from sums over rows
# Every aggregate that can be estimated is built from totals, sums over rows of a term; a mechanism
# estimates those, and a formula is arithmetic on the estimates. Quantiles stand apart: they invert
# a distribution.


@dataclass(frozen=True)
class Constant:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Total:
    """The sum of a term over the rows that WHERE lets pass."""

    term: Term


@dataclass(frozen=True)
class WholeTotal(Total):
    """The sum of a term over all rows that agree with a group in some of its keys.

    Unlike a group's total it does not depend on WHERE: its term says all that is asked of a row.
    """

    keys: tuple[int, ...] = ()
    """Places among the keys of the groups; without any, it is of all rows."""


@dataclass(frozen=True)
class ValueSpan:
    """What a value that is known by bins may be: `knots` at equal shares of the rows, rising."""

    value: float
    """As the middles of bins give it."""
    low: float
    high: float
    knots: tuple[float, ...]


@dataclass(frozen=True)
class Quantile:
    """The value below which a share of the rows lies; between two values, if interpolated."""

    share: float
    interpolated: bool
    value: Expression
    predicate: Predicate | None = None
    spans: tuple[ValueSpan, ...] = ()
    """Where the value is known by bins: what each of its values stands for, in their order."""


@dataclass(frozen=True)
class Call:
    """An operator or a function by its name; `answering` knows what each does."""

    name: str
    args: tuple[Formula, ...]


Formula = Constant | Total | Quantile | Call


def leaves(formula: Formula) -> Iterator[Total | Quantile]:
    """Every total and quantile of a formula."""
    if isinstance(formula, Total | Quantile):
        yield formula
    elif isinstance(formula, Call):
        for arg in formula.args:
            yield from leaves(arg)


def whole_totals(formula: Formula) -> list[WholeTotal]:
    """The totals over more rows than a group's that a formula has."""
    return [leaf for leaf in leaves(formula) if isinstance(leaf, WholeTotal)]


def divided(top: Formula, bottom: Formula) -> Formula:
    """top / bottom."""
    return Call("/", (top, bottom))


def minus(left: Formula, right: Formula) -> Formula:
    """left − right."""
    return Call("-", (left, right))


def times(left: Formula, right: Formula) -> Formula:
    """left · right."""
    return Call("*", (left, right))


def covariance(xy: Total, x: Total, y: Total, n: Total, *, sample: bool) -> Formula:
    """The mean product less the product of means; n − 1 in the denominator for a sample's."""
    excess = minus(xy, divided(times(x, y), n))
    return divided(excess, minus(n, Constant(1)) if sample else n)


def square_root(formula: Formula) -> Formula:
    """√formula."""
    return Call("sqrt", (formula,))


# ----------------------------------------------------------------------
# aggregates of SQL as formulas of totals and quantiles


OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Pow: "pow",
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "<>",
    exp.And: "and", exp.Or: "or",
}  # fmt: skip
FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Neg: "neg", exp.Not: "not", exp.Abs: "abs", exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Exp: "exp",
}  # fmt: skip
CONDITIONS = frozenset(["<", "<=", ">", ">=", "=", "<>", "and", "or", "not"])
FAR = 4.0
"""Half widths from 0 at which values are taken around their middle."""
NUMERIC = frozenset(["DOUBLE", "FLOAT", "DECIMAL"])
PLAIN_NAMES: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.CountIf: "count", exp.Sum: "sum", exp.Avg: "avg",
    exp.Variance: "variance", exp.VariancePop: "var_pop", exp.Stddev: "stddev",
    exp.StddevSamp: "stddev", exp.StddevPop: "stddev_pop", exp.Median: "median",
    exp.Corr: "corr", exp.CovarSamp: "covar_samp", exp.CovarPop: "covar_pop",
    exp.Quantile: "quantile", exp.PercentileCont: "quantile", exp.PercentileDisc: "quantile",
    exp.ApproxQuantile: "quantile",
}  # fmt: skip
EXTRA = frozenset(["zero_on_all_null", "null_on_zero_variance", "accuracy", "weight"])
"""What the parser takes further arguments for, which DuckDB does not have."""
MEANS = frozenset(["mean"])
WHOLE = "voile_whole"
"""The mark of a subquery that is a total over more rows than a group's."""
WHOLE_NUMBERS = frozenset(
    ["TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "UTINYINT", "USMALLINT", "UINT", "UBIGINT"]
)
LARGEST_SCALE = 15
DECIMAL_SCALE = 3
"""Digits after the point of a DECIMAL that does not say how many."""


def is_condition(formula: Formula) -> bool:
    """Whether a formula is true or false, not a number."""
    return isinstance(formula, Call) and formula.name in CONDITIONS


def well_kinded(formula: Formula) -> bool:
    """Whether logic is between conditions only, and arithmetic between numbers."""
    if not isinstance(formula, Call):
        return True
    logic = formula.name in ("and", "or", "not")
    return all(is_condition(arg) is logic and well_kinded(arg) for arg in formula.args)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node of SQL aggregates rows."""
    if isinstance(node, exp.Subquery):
        return is_whole(node)
    named = isinstance(node, exp.Anonymous) and node.name.lower() in MEANS
    return named or isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Window)


def mark_whole(subquery: exp.Subquery) -> None:
    """Say of a subquery that it is a total of the release, over more rows than a group's."""
    subquery.meta[WHOLE] = True


def is_whole(node: exp.Expr) -> bool:
    """Whether a node is such a subquery."""
    return isinstance(node, exp.Subquery) and bool(node.meta.get(WHOLE))


def plain_name(tree: exp.Expr) -> str | None:
    """What an aggregate that stands alone is called in the answer."""
    inner = tree.this if isinstance(tree, exp.Filter | exp.WithinGroup) else tree
    if isinstance(inner, exp.WithinGroup):
        inner = inner.this
    if isinstance(inner, exp.Anonymous) and inner.name.lower() in MEANS:
        return "avg"
    return PLAIN_NAMES.get(type(inner))


def no_whole(select: exp.Select) -> Formula:
    """Where no total of more rows can be had."""
    raise QueryError(f"{short(select)} cannot be used here", hint="ask for it by itself")


@dataclass(frozen=True)
class Aggregates:
    """Reads formulas; `binder` knows the columns, `whole` reads totals over more rows."""

    binder: Binder
    whole: Callable[[exp.Select], Formula] = no_whole

    def formula(self, tree: exp.Expr, *, condition: bool = False) -> Formula:
        """A number made of aggregates, or a condition on such numbers."""
        found = self._formula(tree)
        if is_condition(found) is not condition:
            wanted = "a comparison, as in count(*) > 100" if condition else "a number"
            raise self._refused(tree, f"this must be {wanted}")
        if not well_kinded(found):
            raise self._refused(tree, "AND, OR and NOT stand between comparisons, + - * / and "
                                      "comparisons between numbers")  # fmt: skip
        return found

    def _formula(self, tree: exp.Expr | None) -> Formula:
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if tree is None:
            raise QueryError("an operator has nothing to work on", hint="write sum(a) / count(*)")
        if isinstance(tree, exp.Literal) and not tree.is_string:
            return Constant(float(tree.this))
        if is_whole(tree):
            return self.whole(tree.this)
        if is_aggregate(tree):
            return self._aggregate(tree)
        if name := OPERATORS.get(type(tree)):
            return Call(name, (self._formula(tree.this), self._formula(tree.expression)))
        if name := FUNCTIONS.get(type(tree)):
            inner = self._formula(tree.this)
            if name == "neg" and isinstance(inner, Constant):
                inner, name = Constant(-inner.value), ""
            return Call(name, (inner,)) if name else inner
        return self._other(tree)

    def _other(self, tree: exp.Expr) -> Formula:
        if isinstance(tree, exp.Round):
            digits = tree.args.get("decimals")
            places = self._formula(digits) if digits else Constant(0)
            if isinstance(places, Constant) and abs(places.value) <= 15:
                return Call("round", (self._formula(tree.this), places))
        if isinstance(tree, exp.Nullif):
            return Call("nullif", (self._formula(tree.this), self._formula(tree.expression)))
        if isinstance(tree, exp.Cast):
            return self._cast(tree)
        if isinstance(tree, exp.Coalesce) and (found := self._or_zero(tree)):
            return found
        if isinstance(tree, exp.Between):
            low, high = self._formula(tree.args["low"]), self._formula(tree.args["high"])
            value = self._formula(tree.this)
            return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))
        if isinstance(tree, exp.Column):
            raise self._refused(
                tree, "a column beside aggregates must be one of GROUP BY's, by itself"
            )
        if isinstance(tree, exp.Anonymous) and tree.name.lower() in UNSTEADY:
            raise self._refused(tree, why_not(tree))
        raise self._refused(tree, "between aggregates there may be + - * /, abs, sqrt, ln, exp, "
                                  "power, round and nullif")  # fmt: skip

    def _or_zero(self, tree: exp.Coalesce) -> Formula | None:
        """COALESCE(sum(x), 0): a sum over no rows is 0 here, not NULL."""
        inner, others = self._formula(tree.this), list(map(self._formula, tree.expressions))
        return inner if isinstance(inner, Total) and others == [Constant(0.0)] else None

    def _cast(self, tree: exp.Cast) -> Formula:
        """A cast as what it does to a number: counts are whole, the rest is rounded."""
        kind = tree.to.this.value if isinstance(tree.to.this, exp.DType) else str(tree.to.this)
        inner = self._formula(tree.this)
        between = not isinstance(tree.parent, exp.Alias | exp.Select | exp.Ordered)
        sizes = [int(str(p.this)) for p in tree.to.expressions] if kind == "DECIMAL" else []
        counts = isinstance(inner, Total) and not inner.term.values
        if kind in WHOLE_NUMBERS:
            return inner if counts and between else Call("round", (inner, Constant(0.0)))
        if kind == "DECIMAL" and (sizes or not between) and not counts:
            scale = sizes[1] if len(sizes) > 1 else 0 if sizes else DECIMAL_SCALE
            return Call("round", (inner, Constant(float(min(scale, LARGEST_SCALE)))))
        if kind in NUMERIC:
            return inner
        raise self._refused(tree, "cast estimates to INTEGER, DOUBLE or DECIMAL(18, 2)")

    # ------------------------------------------------------------------ one aggregate

    def _aggregate(self, tree: exp.Expr) -> Formula:
        if isinstance(tree, exp.Filter):
            condition = self.binder.predicate(tree.expression.this)
            return self._filtered(tree.this, condition)
        return self._filtered(tree, None)

    def _filtered(self, tree: exp.Expr, only: Predicate | None) -> Formula:
        self._check_inside(tree)
        if tree.this is None and not isinstance(tree, exp.Count):
            raise self._refused(tree, "say of what, as in sum(age)")
        if any(value for key, value in tree.args.items() if key in EXTRA):
            raise self._refused(tree, "that is one argument too many")
        found = self._simple(tree, only) or self._spread(tree, only)
        return found or self._quantile(tree, only)

    def _simple(self, tree: exp.Expr, only: Predicate | None) -> Formula | None:
        match tree:
            case exp.Count():
                return self._count(tree, only)
            case exp.CountIf():
                return Total(Term(both(only, self.binder.predicate(tree.this))))
            case exp.Sum():
                return Total(Term(only, (self._value(tree.this),)))
            case exp.Avg():
                return self._mean(tree.this, only)
            case exp.Anonymous() if is_aggregate(tree) and len(tree.expressions) == 1:
                return self._mean(tree.expressions[0], only)
        return None

    def _spread(self, tree: exp.Expr, only: Predicate | None) -> Formula | None:
        match tree:
            case exp.Variance() | exp.VariancePop():
                return self._variance(tree.this, only, sample=isinstance(tree, exp.Variance))
            case exp.Stddev() | exp.StddevSamp() | exp.StddevPop():
                sample = not isinstance(tree, exp.StddevPop)
                return square_root(self._variance(tree.this, only, sample=sample))
            case exp.CovarSamp() | exp.CovarPop() | exp.Corr():
                return self._pair(tree, only)
        return None

    def _check_inside(self, tree: exp.Expr) -> None:
        """An aggregate of an aggregate has no meaning; DISTINCT is no sum over rows."""
        for node in tree.walk():
            if isinstance(node, exp.Distinct) or (
                node is not tree and is_aggregate(node) and not isinstance(tree, exp.WithinGroup)
            ):
                raise self._refused(tree, why_no_aggregate(tree))

    def _count(self, tree: exp.Count, only: Predicate | None) -> Formula:
        if tree.expressions:
            raise self._refused(tree, "count one thing: count(*) or count(column)")
        if tree.this is None or isinstance(tree.this, exp.Star):
            if tree.this is not None and any(tree.this.args.values()):
                raise self._refused(tree, "write count(*)")
            return Total(Term(only))
        return Total(Term(both(only, present(self.binder.expression(tree.this)))))

    def _value(self, tree: exp.Expr) -> Expression:
        return self.binder.expression(tree)

    def _centred(self, tree: exp.Expr) -> tuple[Expression, float]:
        """A value less the middle of its domain, where all of that is far from 0.

        Squares of years, or of numbers of seconds, would cancel to nothing.
        """
        value = self._value(tree)
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if not isinstance(tree, exp.Column) or value.subqueries:
            return value, 0.0
        middle, half = middle_of(self.binder.schema[value.attributes[0]])
        if abs(middle) <= FAR * half:
            return value, 0.0
        centre = round(middle)
        less = exp.Sub(this=value.node.copy(), expression=exp.paren(exp.Literal.number(centre)))
        return replace(value, node=less), float(centre)

    def _mean(self, tree: exp.Expr, only: Predicate | None) -> Formula:
        value, centre = self._centred(tree)
        size = Total(Term(both(only, present(value))))
        mean = divided(Total(Term(only, (value,))), size)
        return Call("+", (Constant(centre), mean)) if centre else mean

    def _variance(self, tree: exp.Expr, only: Predicate | None, *, sample: bool) -> Formula:
        value, _ = self._centred(tree)
        mean, square = Total(Term(only, (value,))), Total(Term(only, (value, value)))
        size = Total(Term(both(only, present(value))))
        return covariance(square, mean, mean, size, sample=sample)

    def _pair(self, tree: exp.Expr, only: Predicate | None) -> Formula:
        (x, _), (y, _) = self._centred(tree.this), self._centred(tree.expression)
        known = both(both(only, present(x)), present(y))

        def total(*values: Expression) -> Total:
            return Total(Term(known, values))

        sample = isinstance(tree, exp.CovarSamp)
        joint = covariance(total(x, y), total(x), total(y), total(), sample=sample)
        if not isinstance(tree, exp.Corr):
            return joint
        spread_x = covariance(total(x, x), total(x), total(x), total(), sample=False)
        spread_y = covariance(total(y, y), total(y), total(y), total(), sample=False)
        return divided(joint, square_root(Call("*", (spread_x, spread_y))))

    # ------------------------------------------------------------------ quantiles

    def _quantile(self, tree: exp.Expr, only: Predicate | None) -> Formula:
        share: exp.Expr | None = exp.Literal.number("0.5")
        value, kind = tree.this, tree
        if isinstance(tree, exp.WithinGroup):
            kind, share = tree.this, tree.this.this
            ordered = tree.expression.expressions
            if len(ordered) != 1 or ordered[0].args.get("desc"):
                raise self._refused(tree, "write within group (order by column)")
            value = ordered[0].this
        elif isinstance(tree, exp.Quantile | exp.ApproxQuantile):
            share = tree.args.get("quantile")
        elif isinstance(tree, exp.PercentileCont | exp.PercentileDisc):
            share = tree.expression
        elif not isinstance(tree, exp.Median):
            raise self._refused(tree, why_no_aggregate(tree))
        interpolated = isinstance(kind, exp.PercentileCont | exp.Median)
        if not isinstance(kind, exp.PercentileCont | exp.PercentileDisc | exp.Median) and not (
            isinstance(kind, exp.Quantile | exp.ApproxQuantile)
        ):
            raise self._refused(tree, why_no_aggregate(tree))
        return Quantile(self._share(tree, share), interpolated, self._value(value), only)

    def _share(self, tree: exp.Expr, share: exp.Expr | None) -> float:
        if isinstance(share, exp.Literal) and not share.is_string and 0 < float(share.this) < 1:
            return float(share.this)
        raise self._refused(tree, "the share is one number between 0 and 1, as in 0.5")

    def _refused(self, tree: exp.Expr, why: str) -> QueryError:
        sql = self.binder.sql
        return refusal(sql, f"{short(tree)} is not estimated", place(sql, [tree]), why)


def middle_of(attribute: Attribute) -> tuple[float, float]:
    """The middle of a domain of numbers and half its width; 0 for anything else."""
    match attribute.domain:
        case Range(int(low), int(high)):
            ends: tuple[Any, ...] = (low, high)
        case Bins(edges) if attribute.kind != "date":
            ends = edges
        case Interval(least, most):
            ends = (least, most)
        case Values(values) if attribute.kind in ("integer", "numeric") and values:
            ends = values
        case _:
            return 0.0, 0.0
    return (min(ends) + max(ends)) / 2, (max(ends) - min(ends)) / 2
