"""WITH, derived tables, aliases and windows of totals, rewritten as one SELECT from one table.

What analysts type is often nested where it need not be. Here every SELECT is brought to the one
shape that is read afterwards:

    with old as (select * from t where age > 60)            select region, count(*) from t
    select region, count(*) from old group by region   →    where age > 60 group by region

    select x, n from (select x, count(*) as n               select x, count(*) as n from t
    from t group by x) where n > 10                    →    group by x having count(*) > 10

    select x, count(*) / sum(count(*)) over ()         →    select x, count(*) / (select count(*)
    from t group by x                                       from t) from t group by x

Nothing here knows what a column means: only names are followed. A subquery that stands for a total
over more rows than a group's is marked (`is_whole`); its GROUP BY says in which keys of the groups
its rows agree with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from voile.errors import QueryError, did_you_mean
from voile.query.aggregate import is_aggregate, is_whole, mark_whole, plain_name
from voile.query.language import own_table
from voile.query.text import first_token, place, refusal, short

LINEAR = (exp.Count, exp.CountIf, exp.Sum)
"""Aggregates whose sum over groups is the same aggregate of all of them."""
ROW_PARTS = frozenset(["expressions", "from_", "where", "joins", "order"])
GROUPED_PARTS = ROW_PARTS | {"group", "having", "limit", "offset"}
BESIDE = ("expressions", "having", "order", "qualify")
"""Clauses that aggregates stand in."""
Scope = Mapping[str, exp.Select]
"""What WITH has defined, flattened, by names in lower case."""


def aggregates(tree: exp.Expr) -> bool:
    """Whether an aggregate stands in the tree, outside of subqueries of other tables."""
    return any(is_aggregate(n) and not _below(n, tree, exp.Subquery) for n in tree.walk())


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The parts of an AND, without the parentheses around them."""
    if tree is None:
        return []
    bare = bare_tree(tree)
    if isinstance(bare, exp.And):
        return [*conjuncts(bare.this), *conjuncts(bare.expression)]
    return [tree]


def bare_tree(tree: exp.Expr) -> exp.Expr:
    """The tree without parentheses around it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


@dataclass(frozen=True)
class Rewriter:
    """Rewrites the SELECTs of one text."""

    sql: str
    columns: tuple[str, ...]
    """Of the release's table."""
    tables: Mapping[str, tuple[str, ...]]
    """The columns of the analyst's own tables."""
    called: str = ""

    def flattened(self, select: exp.Select) -> exp.Select:
        """The same question as one SELECT from one table."""
        return self._flat(select.copy(), {})

    def _flat(self, select: exp.Select, scope: Scope) -> exp.Select:
        scope = self._defined(select, scope)
        if isinstance(fetch := select.args.get("limit"), exp.Fetch):
            select.set("limit", self._limit(fetch))
        self._first_the_larger(select, scope)
        inner = self._inner(select.args.get("from_"), scope)
        if inner is not None:  # which is read already; only its name is of use
            source = select.args["from_"]
            name = exp.to_identifier(source.this.alias_or_name, quoted=True)
            source.set("this", exp.Table(this=name))
        known = self._known(select, inner)
        self._one_row_joins(select, scope, known)
        _written_out(select)
        _Aliases(select, known).resolve()
        self._subqueries(select, scope)
        if inner is not None:
            select = _Merge(self, select, inner).merged()
        self._windows(select)
        if group := select.args.get("group"):  # what is the same in all groups makes none
            kept = [tree for tree in group.expressions if not is_whole(bare_tree(tree))]
            group.set("expressions", kept)
        return select

    # ------------------------------------------------------------------ WITH and FROM

    def _defined(self, select: exp.Select, scope: Scope) -> Scope:
        """The scope with what WITH defines."""
        clause = select.args.get("with_")
        if clause is None:
            return scope
        if clause.args.get("recursive"):
            raise refusal(self.sql, "WITH RECURSIVE is not answered from a release",
                          first_token(self.sql, "recursive"), "write WITH")  # fmt: skip
        found = dict(scope)
        for part in clause.expressions:
            body = self._select_of(part)
            found[part.alias.lower()] = self._renamed(self._flat(body, found), part.args["alias"])
        select.set("with_", None)
        return found

    def _select_of(self, part: exp.Expr) -> exp.Select:
        body = part.this
        while isinstance(body, exp.Subquery | exp.Paren):
            body = body.this
        if isinstance(body, exp.Select):
            return body
        raise refusal(self.sql, f"{short(part)} is not one SELECT", place(self.sql, [part]),
                      "write select … from name")  # fmt: skip

    def _renamed(self, inner: exp.Select, alias: exp.Expr | None) -> exp.Select:
        """WITH name(a, b): the columns have these names."""
        names = alias.args.get("columns") if alias is not None else None
        if not names:
            return inner
        items = inner.expressions
        if len(names) != len(items) or any(map(_is_star, items)):
            raise refusal(self.sql, f"{len(names)} names are given to {len(items)} columns",
                          place(self.sql, names), "give each column one name")  # fmt: skip
        pairs = zip(items, names, strict=True)
        inner.set("expressions", [_named(i.unalias(), n.name) for i, n in pairs])
        return inner

    def _inner(self, source: exp.Expr | None, scope: Scope) -> exp.Select | None:
        """The SELECT that FROM or JOIN reads, where it reads one."""
        table = source.this if source is not None else None
        if isinstance(table, exp.Subquery) and isinstance(bare_tree(table.this), exp.Select):
            return self._renamed(self._flat(table.this.copy(), scope), table.args.get("alias"))
        if isinstance(table, exp.Table) and not table.args.get("db"):
            found = scope.get(table.name.lower())
            return None if found is None else found.copy()
        return None

    def _known(self, select: exp.Select, inner: exp.Select | None) -> dict[str, str]:
        """The names that columns of FROM have, in lower case, as they are spelled there."""
        names: list[str] = []
        if inner is None or any(map(_is_star, inner.expressions)):
            names += self.columns
        if inner is not None:
            names += [output_name(item) for item in inner.expressions if not _is_star(item)]
        for join in [
            *(select.args.get("joins") or ()),
            *((inner and inner.args.get("joins")) or ()),
        ]:
            if isinstance(join.this, exp.Table):
                names += self.own_columns(join.this)
        return {name.lower(): name for name in names}

    def own_columns(self, table: exp.Table) -> tuple[str, ...]:
        """The columns of a table of the analyst's own."""
        return next(
            (c for name, c in self.tables.items() if name.lower() == table.name.lower()), ()
        )

    # ------------------------------------------------------------------ joins with one row

    def _first_the_larger(self, select: exp.Select, scope: Scope) -> None:
        """FROM totals, groups is FROM groups, totals: the table of one row comes last."""
        source, joins = select.args.get("from_"), select.args.get("joins") or []
        if source is None or len(joins) != 1 or not _is_cross(joins[0]):
            return
        first, second = self._inner(source, scope), self._inner(joins[0], scope)
        plain = isinstance(joins[0].this, exp.Table) and not self.own_columns(joins[0].this)
        if first is not None and _has_one_row(first) and (plain or second is not None):
            left, right = source.this, joins[0].this
            source.set("this", right)
            joins[0].set("this", left)

    def _one_row_joins(self, select: exp.Select, scope: Scope, known: Mapping[str, str]) -> None:
        """A joined SELECT of one row of aggregates: each of its columns is a total."""
        kept = []
        for join in select.args.get("joins") or []:
            inner = self._inner(join, scope)
            if inner is None:
                kept.append(join)
                continue
            if not (_has_one_row(inner) and _is_cross(join)):
                raise refusal(
                    self.sql, f"joining {join.this.alias_or_name or 'a subquery'} is not answered",
                    place(self.sql, [join.this]),
                    "join tables of your own, or a SELECT that has one row of aggregates; compare "
                    "parts of the table with count(*) filter (where …)",
                )  # fmt: skip
            totals = {output_name(item).lower(): item.unalias() for item in inner.expressions}
            called = join.this.alias_or_name.lower()
            for column in list(select.find_all(exp.Column)):
                name = column.name.lower()
                own = column.table.lower() == called if column.table else name not in known
                if own and name in totals and column.find_ancestor(exp.Select) is select:
                    _put(column, _whole_of(totals[name], inner), name=column.name)
        select.set("joins", kept or None)

    # ------------------------------------------------------------------ subqueries of the release

    def _subqueries(self, select: exp.Select, scope: Scope) -> None:
        """A total of the whole table beside aggregates; elsewhere a subquery over it is refused."""
        source = select.args.get("from_")
        table = source.this if source is not None else None
        own = {self.called.lower(), *scope}
        own |= {n.lower() for n in (table.name, table.alias_or_name) if n} if table else set()
        own -= {name.lower() for name in self.tables}
        for node in list(select.find_all(exp.Select)):
            if node is select or node.find_ancestor(exp.Select) is not select:
                continue
            if _clause(select, node) in ("from_", "joins"):
                continue
            read = node.args.get("from_")
            inner = read.this if read is not None else None
            if not isinstance(inner, exp.Table | exp.Subquery) or is_whole(node.parent or node):
                continue
            if isinstance(inner, exp.Table) and inner.name.lower() not in own:
                continue
            self._subquery(select, node, scope)

    def _subquery(self, select: exp.Select, node: exp.Select, scope: Scope) -> None:
        holder, beside = node.parent, _clause(select, node) in BESIDE
        inside = node.find_ancestor(exp.AggFunc, exp.Filter, exp.Window)
        if beside and not inside and isinstance(holder, exp.Subquery) and holder.this is node:
            flat = self._flat(node.copy(), scope)
            if len(flat.expressions) == 1 and _has_one_row(flat):
                holder.replace(_whole_of(flat.expressions[0].unalias(), flat))
                return
        raise refusal(
            self.sql, "a subquery over the release itself looks at more than one row",
            place(self.sql, [node.args.get("from_")]), self._instead(node, beside=beside),
        )  # fmt: skip

    def _instead(self, node: exp.Select, *, beside: bool) -> str:
        if any(aggregates(item) for item in node.expressions):
            one = "it must be one aggregate without GROUP BY" if beside else (
                "a condition is about a single row: ask for the number first, and write it here"
            )  # fmt: skip
            return f"{one}: {short_sql(node)}"
        return (
            "a condition is about a single row: write the subquery's own condition in its place; "
            f"tables to look things up in are yours to give, with {own_table()}"
        )

    # ------------------------------------------------------------------ windows

    def _windows(self, select: exp.Select) -> None:
        """Sum(…) OVER (PARTITION BY …) of a total: the total of all groups, or of some."""
        found = [
            window
            for window in select.find_all(exp.Window)
            if window.find_ancestor(exp.Select) is select and _clause(select, window) in BESIDE
        ]
        for window in found:
            self._check_window(select, window)
            total = bare_tree(window.this.this).copy()
            keys = [k.copy() for k in window.args.get("partition_by") or ()]
            window.replace(_whole_of(total, select, keys))
        if only := select.args.get("qualify"):
            parts = [*conjuncts(_this(select, "having")), *conjuncts(only.this)]
            select.set("having", exp.Having(this=exp.and_(*parts, copy=False)))
            select.set("qualify", None)

    def _check_window(self, select: exp.Select, window: exp.Window) -> None:
        inner = bare_tree(window.this.this) if isinstance(window.this, exp.Sum) else None
        linear = inner.this if isinstance(inner, exp.Filter) else inner
        ranks = any(v for k, v in window.args.items() if k not in ("this", "partition_by", "over"))
        if isinstance(linear, LINEAR) and not ranks:
            if not select.args.get("having"):
                return
            raise refusal(self.sql, "a window after HAVING adds up the groups that are left",
                          place(self.sql, [window]),
                          "put conditions on columns into WHERE, and those on aggregates into "
                          "QUALIFY")  # fmt: skip
        why = "windows look at single rows, and only groups of people are counted; use GROUP BY"
        if any(map(aggregates, window.this.iter_expressions())):
            why = ("sum(count(*)) over () and sum(sum(x)) over (partition by …) are answered; "
                   "for ranks use ORDER BY")  # fmt: skip
        raise refusal(self.sql, f"{short(window)} is not estimated", place(self.sql, [window]), why)

    def _limit(self, fetch: exp.Fetch) -> exp.Expr:
        options = fetch.args.get("limit_options")
        unusual = options is not None and any(options.args.get(k) for k in ("percent", "with_ties"))
        if unusual:
            raise refusal(
                self.sql,
                "FETCH takes a number of rows",
                place(self.sql, [fetch], "fetch"),
                "write fetch first 10 rows only",
            )
        return exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1))


# ---------------------------------------------------------------------- one SELECT within another


@dataclass(frozen=True)
class _Merge:
    """A SELECT, and the one that it reads."""

    rewriter: Rewriter
    outer: exp.Select
    inner: exp.Select

    @property
    def sql(self) -> str:
        return self.rewriter.sql

    def merged(self) -> exp.Select:
        grouped = _grouped(self.inner)
        self._check(self.inner, GROUPED_PARTS if grouped else ROW_PARTS)
        if grouped and self.outer.args.get("joins"):
            raise refusal(
                self.sql,
                "groups cannot be joined",
                place(self.sql, self.outer.args["joins"]),
                "join the table first, and group then",
            )
        outer_aggregates = self._aggregates_again()
        self._expand_stars()
        self._substitute()
        if not grouped:
            return self._of_rows()
        return self._of_sums() if outer_aggregates else self._of_groups()

    def _check(self, select: exp.Select, allowed: frozenset[str]) -> None:
        for key, value in select.args.items():
            if value and key not in allowed and key != "kind":
                word = key.strip("_")
                raise refusal(
                    self.sql, f"{word.upper()} in a subquery is not answered",
                    first_token(self.sql, word),
                    "a subquery may choose rows with WHERE, name columns, or group and aggregate",
                )  # fmt: skip

    def _aggregates_again(self) -> bool:
        """Whether the outer SELECT aggregates; a window does not."""
        if self.outer.args.get("group"):
            return True
        nodes = (n for item in self.outer.expressions for n in item.walk())
        return any(
            is_aggregate(n)
            and not isinstance(n, exp.Window)
            and not n.find_ancestor(exp.Window)
            and not is_whole(n)
            and n.find_ancestor(exp.Select) is self.outer
            for n in nodes
        )

    # ------------------------------------------------------------------ names

    @property
    def alias(self) -> str:
        return str(self.outer.args["from_"].this.alias_or_name)

    def _expand_stars(self) -> None:
        """SELECT * of a SELECT that names its columns."""
        if any(map(_is_star, self.inner.expressions)):
            return
        items: list[exp.Expr] = []
        for item in self.outer.expressions:
            if _is_star(item) and not any(_star(item).args.values()):
                items += [exp.column(exp.to_identifier(output_name(i), quoted=True))
                          for i in self.inner.expressions]  # fmt: skip
            else:
                items.append(item)
        self.outer.set("expressions", items)

    def _substitute(self) -> None:
        """Every column of the outer SELECT by what the inner one calls so."""
        meant = {output_name(i).lower(): i.unalias() for i in self.inner.expressions
                 if not _is_star(i)}  # fmt: skip
        through = any(map(_is_star, self.inner.expressions))
        base = self.inner.args.get("from_")
        for column in [c for c in self.outer.find_all(exp.Column) if self._is_mine(c)]:
            found = meant.get(column.name.lower())
            if found is not None:
                _put(column, found.copy(), name=column.name)
            elif through or self._joined(column):
                if column.table and column.table.lower() == self.alias.lower():
                    column.set(
                        "table", exp.to_identifier(base.this.alias_or_name) if base else None
                    )
            else:
                raise refusal(
                    self.sql,
                    f"there is no column {column.name!r} in {self.alias or 'the subquery'}",
                    place(self.sql, [column]),
                    did_you_mean(column.name, list(meant)),
                )

    def _is_mine(self, column: exp.Column) -> bool:
        """Whether a column is one of the inner SELECT's, not one of another table."""
        if isinstance(column.this, exp.Star) or any(is_whole(n) for n in _ancestors(column)):
            return False
        if column.table:
            return column.table.lower() == self.alias.lower()
        scope = column.find_ancestor(exp.Select)
        while scope is not None and scope is not self.outer:
            for table in scope.find_all(exp.Table):
                if column.name.lower() in map(str.lower, self.rewriter.own_columns(table)):
                    return False
            scope = scope.find_ancestor(exp.Select)
        return True

    def _joined(self, column: exp.Column) -> bool:
        joins = self.outer.args.get("joins") or ()
        tables = [join.this for join in joins if isinstance(join.this, exp.Table)]
        return any(
            column.name.lower() in map(str.lower, self.rewriter.own_columns(t)) for t in tables
        )

    # ------------------------------------------------------------------ what becomes of the clauses

    def _of_rows(self) -> exp.Select:
        """Rows chosen and renamed: both conditions hold."""
        both = [*conjuncts(_this(self.inner, "where")), *conjuncts(_this(self.outer, "where"))]
        self.outer.set("where", _where(both))
        self.outer.set("from_", self.inner.args.get("from_"))
        joins = [*(self.inner.args.get("joins") or ()), *(self.outer.args.get("joins") or ())]
        self.outer.set("joins", joins or None)
        return self.outer

    def _of_groups(self) -> exp.Select:
        """Groups chosen and computed with: conditions on aggregates are HAVING's."""
        outer, inner = self.outer, self.inner
        self._check(outer, GROUPED_PARTS)
        parts = conjuncts(_this(outer, "where"))
        having = [*conjuncts(_this(inner, "having")), *(p for p in parts if aggregates(p))]
        keys = [p for p in parts if not aggregates(p)]
        self._check_limited(keys_chosen=bool(keys))
        inner.set("having", exp.Having(this=exp.and_(*having, copy=False)) if having else None)
        inner.set("where", _where([*conjuncts(_this(inner, "where")), *keys]))
        inner.set("expressions", outer.expressions)
        for clause in ("order", "limit", "offset"):
            if given := outer.args.get(clause):
                inner.set(clause, given)
        return inner

    def _check_limited(self, *, keys_chosen: bool) -> None:
        """What cannot be turned around: LIMIT before another clause, subtotals chosen by a key."""
        inner, outer = self.inner, self.outer
        limited = next((inner.args[c] for c in ("limit", "offset") if inner.args.get(c)), None)
        further = [c for c in ("where", "order", "limit", "offset") if outer.args.get(c)]
        if limited is not None and further:
            raise refusal(
                self.sql, f"{further[0].upper()} after the LIMIT of a subquery is not answered",
                place(self.sql, [limited], "limit"), "leave out the inner LIMIT",
            )  # fmt: skip
        if keys_chosen and (sets := several_groupings(inner)):
            raise refusal(
                self.sql,
                "subtotals cannot be chosen by their columns",
                place(self.sql, [sets]),
                "put the condition inside, before GROUP BY",
            )

    def _of_sums(self) -> exp.Select:
        """Sums of the sums of groups: those of all their rows."""
        outer, inner = self.outer, self.inner
        clauses = ("having", "limit", "offset")
        if any(inner.args.get(c) for c in clauses) or several_groupings(inner):
            raise self._again()
        for item in [*outer.expressions, *filter(None, map(outer.args.get, ("having", "order")))]:
            for node in list(item.walk()):
                if is_aggregate(node) and not is_whole(node) and self._is_outermost(node):
                    self._unnest(node)
        if any(aggregates(part) for part in conjuncts(_this(outer, "where"))):
            raise self._again()
        return self._of_rows()

    def _is_outermost(self, node: exp.Expr) -> bool:
        return not any(is_aggregate(above) for above in _ancestors(node))

    def _unnest(self, node: exp.Expr) -> None:
        inner = bare_tree(node.this) if isinstance(node, exp.Sum) and node.this else None
        linear = inner.this if isinstance(inner, exp.Filter) else inner
        if inner is None or not isinstance(linear, LINEAR):
            raise self._again(node)
        node.replace(inner.copy())

    def _again(self, node: exp.Expr | None = None) -> QueryError:
        return refusal(
            self.sql, "aggregates of groups are not estimated, but for sums of their sums",
            place(self.sql, [node or self.outer.expressions[0]]),
            f"ask for the groups, and compute with the answer: {short_sql(self.inner)}",
        )  # fmt: skip


# ---------------------------------------------------------------------- aliases and numbers


@dataclass(frozen=True)
class _Aliases:
    """Names that SELECT gives, used beside their definition, in the clauses of one SELECT."""

    select: exp.Select
    known: Mapping[str, str]
    """Columns, which such names do not hide."""

    def resolve(self) -> None:
        named: dict[str, exp.Expr] = {}
        items = []
        for item in self.select.expressions:
            found = self._replaced(item, named)
            items.append(found)
            if alias := found.alias:
                named.setdefault(alias.lower(), found.unalias())
        self.select.set("expressions", items)
        for clause in ("where", "group", "having", "qualify", "order"):
            if tree := self.select.args.get(clause):
                self._replaced(tree, named, clause)

    def _replaced(
        self, tree: exp.Expr, named: Mapping[str, exp.Expr], clause: str = ""
    ) -> exp.Expr:
        for column in list(tree.find_all(exp.Column)):
            name = column.name.lower()
            if (
                column.table
                or name not in named
                or column.find_ancestor(exp.Select) is not self.select
            ):
                continue
            if name in self.known and not self._wins(column, named[name], clause):
                continue
            meant = _put(column, named[name].copy(), name=column.name)
            if column is tree:
                tree = meant
        return tree.parent if isinstance(tree.parent, exp.Alias) else tree

    def _wins(self, column: exp.Column, meant: exp.Expr, clause: str) -> bool:
        """Whether the alias is meant though a column has the same name."""
        if clause == "order":
            return isinstance(column.parent, exp.Ordered)
        inside = column.find_ancestor(exp.AggFunc, exp.Filter)
        return clause in ("having", "qualify") and aggregates(meant) and not inside


def _written_out(select: exp.Select) -> None:
    """GROUP BY 1, GROUP BY ALL and ORDER BY 2 by what they stand for."""
    items = select.expressions
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None and group.args.get("all"):
        group.set("all", None)
        group.set("expressions", [i.unalias().copy() for i in items if not aggregates(i)])
    if group is not None and not group.expressions and not several_groupings(select):
        select.set("group", None)
    for holder in filter(None, (group, order)):
        for literal in list(holder.find_all(exp.Literal)):
            above = (
                literal.parent.parent if isinstance(literal.parent, exp.Ordered) else literal.parent
            )
            direct = isinstance(above, exp.Group | exp.Order | exp.Rollup | exp.Cube)
            if direct and literal.is_int and 1 <= int(literal.this) <= len(items):
                literal.replace(items[int(literal.this) - 1].unalias().copy())


def several_groupings(select: exp.Select) -> exp.Expr | None:
    """ROLLUP, CUBE or GROUPING SETS, where GROUP BY has one."""
    group = select.args.get("group")
    return group.find(exp.Rollup, exp.Cube, exp.GroupingSets) if group is not None else None


def output_name(item: exp.Expr) -> str:
    """What a column of a SELECT is called outside of it."""
    return item.alias or (item.name if isinstance(item, exp.Column) else "") or (
        plain_name(item) or item.sql("duckdb", comments=False, normalize_functions="lower")
    )  # fmt: skip


# ---------------------------------------------------------------------- small things


def _put(column: exp.Column, meant: exp.Expr, name: str = "") -> exp.Expr:
    """An expression in the place of a column; what SELECT shows keeps its name."""
    _keep_name(column)
    alone = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
    bare = isinstance(meant, exp.Column | exp.Literal | exp.Func | exp.Subquery | exp.Paren)
    put: exp.Expr = meant if bare else exp.Paren(this=meant)
    if isinstance(column.parent, exp.Alias | exp.Ordered | exp.Group):
        put = meant
    if alone and name:
        put = _named(meant, name)
    if "start" in column.meta:
        put.meta.setdefault("start", column.meta["start"])
    column.replace(put)
    return put


def _keep_name(column: exp.Column) -> None:
    """The column of SELECT that a name stands in, as it was written."""
    item: exp.Expr = column
    while item.parent is not None and not isinstance(item.parent, exp.Select):
        item = item.parent
    select = item.parent
    if item is column or select is None or item.arg_key != "expressions":
        return
    if isinstance(item, exp.Alias) or plain_name(item):
        return
    name = output_name(item)
    if sum(output_name(other) == name for other in select.expressions) == 1:
        alias = exp.Alias(alias=exp.to_identifier(name, quoted=True))
        item.replace(alias)
        alias.set("this", item)


def _named(tree: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=tree.copy(), alias=exp.to_identifier(name, quoted=True))


def _whole_of(total: exp.Expr, select: exp.Select, keys: list[exp.Expr] | None = None) -> exp.Expr:
    """A subquery for a total over all rows of a SELECT that agree in some keys."""
    inner = exp.Select(expressions=[total.copy()])
    for clause in ("from_", "joins", "where"):
        part = select.args.get(clause)
        copied = [p.copy() for p in part] if isinstance(part, list) else part and part.copy()
        inner.set(clause, copied)
    if keys:
        inner.set("group", exp.Group(expressions=keys))
    found = exp.Subquery(this=inner)
    mark_whole(found)
    return found


def _has_one_row(select: exp.Select) -> bool:
    clauses = ("group", "having", "limit", "offset", "distinct")
    return not any(select.args.get(c) for c in clauses) and all(map(aggregates, select.expressions))


def _grouped(select: exp.Select) -> bool:
    """Whether a SELECT gives groups or one row of aggregates, not rows."""
    return bool(select.args.get("group")) or any(map(aggregates, select.expressions))


def _is_cross(join: exp.Join) -> bool:
    on = join.args.get("on")
    always = isinstance(on, exp.Boolean) and bool(on.this)
    side = join.args.get("side") or join.args.get("method") or join.args.get("using")
    return not side and (on is None or always)


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (
        isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    )


def _star(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Column) else item


def _this(select: exp.Select, clause: str) -> exp.Expr | None:
    found = select.args.get(clause)
    return found.this if found is not None else None


def _where(parts: list[exp.Expr]) -> exp.Where | None:
    return exp.Where(this=exp.and_(*parts, copy=False)) if parts else None


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _below(node: exp.Expr, root: exp.Expr, kind: type[exp.Expr]) -> bool:
    """Whether a node stands in one of a kind, within the tree."""
    while node is not root and node.parent is not None:
        node = node.parent
        if isinstance(node, kind):
            return True
    return False


def _clause(select: exp.Select, node: exp.Expr) -> str:
    """The clause of a SELECT that a node stands in."""
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return str(node.arg_key)


def short_sql(select: exp.Select) -> str:
    """A SELECT on one line, for a hint."""
    return select.sql("duckdb", comments=False, normalize_functions="lower")
