"""SQL text to a Query: what to estimate, for which groups, of which rows.

    SELECT aggregates and group columns FROM name [JOIN own tables]
    [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT n [OFFSET m]]

What is nested, named or numbered is brought to this shape first (see rewriting). What is not on the
list is refused with its place in the text.
"""

from __future__ import annotations

import re
from itertools import combinations

from sqlglot import exp

from voile.errors import QueryError
from voile.query import language as strict
from voile.query.aggregate import (
    Aggregates,
    Call,
    Constant,
    Formula,
    Total,
    WholeTotal,
    plain_name,
)
from voile.query.bind import Binder, Partner, Tables, unknown_table
from voile.query.predicate import Atom, Expression, Predicate, Term, both
from voile.query.query import Order, OutputColumn, Query
from voile.query.quoting import quote_identifier
from voile.query.rewriting import Rewriter, aggregates, bare_tree, conjuncts, several_groupings
from voile.query.text import (
    ASK,
    first_token,
    place,
    refusal,
    short,
    single_select,
    too_deep,
)
from voile.schema import Schema

# ----------------------------------------------------------------------
# which clauses a SELECT may have, and what to write instead of the others


CLAUSES = {
    "laterals": ("LATERAL", "lateral"),
    "qualify": ("QUALIFY", "qualify"),
    "windows": ("WINDOW", "window"), "distinct": ("DISTINCT", "distinct"),
    "locks": ("FOR UPDATE", "for"), "sample": ("a sample", "sample"), "pivots": ("PIVOT", "pivot"),
    "into": ("INTO", "into"), "columns": ("renaming columns", ""),
}  # fmt: skip
INSTEAD = {
    "distinct": "GROUP BY the columns instead", "qualify": "use HAVING",
}  # fmt: skip


def only(sql: str, node: exp.Expr, known: set[str]) -> None:
    """Refuse every clause that is not known: one that is passed over would be answered wrongly."""
    for key, value in node.args.items():
        if value and key not in known:
            called = key.strip("_").replace("_", " ")
            clause, word = CLAUSES.get(key, (called.upper(), called))
            nodes = value if isinstance(value, list) else [value]
            trees = [n for n in nodes if isinstance(n, exp.Expr)]
            named = first_token(sql, word)
            raise refusal(
                sql,
                f"{clause} is not answered from a release",
                place(sql, trees) if named is None else named,
                INSTEAD.get(key, ASK),
            )


# ----------------------------------------------------------------------
# FROM: the release, and the partners that joined tables give to each of its rows


SCHEMA = "main"
"""Where tables are if nothing else is said: tools write main.name."""
FREE = re.compile(r"\w[\w $-]*")
"""What may be called any name: a word or some. Paths, files and addresses are none."""
TAKEN = re.compile(
    r"(information_schema|pg_|duckdb_|sqlite_|pragma_|read_|sniff_).*|\w+_scan(_pushdown)?"
    r"|glob|range|generate_series|unnest",
    re.IGNORECASE,
)
"""Names that databases give to what they know of their own tables, and to what reads others."""


class From:
    """The tables of one SELECT; `matched` is what joins ask of a row."""

    def __init__(
        self, sql: str, tree: exp.Select, schema: Schema, tables: Tables, called: str = ""
    ) -> None:
        self.sql, self.tree, self.schema, self.tables = sql, tree, schema, tables
        self.called = called
        self.matched: Predicate | None = None
        self.binder = self._bound()

    def _bound(self) -> Binder:
        """The release, and the partners that joined tables give to each of its rows."""
        source = self.tree.args.get("from_")
        release = self._table(source.this if source else None)
        if release.name.lower() in {name.lower() for name in self.tables}:
            raise refusal(
                self.sql,
                f"{release.name} is a table of your own; the release comes first",
                place(self.sql, [release]),
                "write from name join your_table on …",
            )
        names = {release.name.lower(), release.alias_or_name.lower()}
        binder = Binder(self.sql, self.schema, names, self.tables)
        for join in self.tree.args.get("joins") or []:
            self._join(binder, join)
        return binder

    def _table(self, table: exp.Expr | None) -> exp.Table:
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise refusal(
                self.sql,
                "FROM must name the release's table",
                place(self.sql, [table], "from", "select"),
                "write from name; a release holds one table, and any plain name will do",
            )
        self._check_plain(table)
        only(self.sql, table, {"this", "alias", "db"})
        if alias := table.args.get("alias"):
            only(self.sql, alias, {"this"})
        return table

    def _check_plain(self, table: exp.Table) -> None:
        """Refuse what names another table: one that is answered as the release would mislead."""
        parts = [part for key in ("catalog", "db", "this") if (part := table.args.get(key))]
        start = place(self.sql, [table], "from")
        outer = [part.name.lower() for part in parts[:-1]]
        plain = outer in ([], [SCHEMA]) and self.sql[start : start + 1] != "'"
        if plain and self._may_be_called(table.name):
            return
        named = ".".join(part.name for part in parts)
        own = self.called or "name"
        wanted = own if own.isidentifier() else quote_identifier(own)
        raise refusal(
            self.sql,
            f"there is no table {named!r}: there is one table, and no catalog, schema, function or "
            "file",
            start,
            f"write from {wanted}, or any other name of letters and digits",
        )

    def _may_be_called(self, name: str) -> bool:
        """Whether a name is one of the table's own, or says nothing of what it stands for."""
        if name.lower() in {own.lower() for own in (*self.tables, self.called)}:
            return True
        return bool(FREE.fullmatch(name)) and not TAKEN.fullmatch(name)

    def _join(self, binder: Binder, join: exp.Join) -> None:
        table = self._table(join.this)
        known = next((n for n in self.tables if n.lower() == table.name.lower()), None)
        if known is None and table.name.lower() in {*binder.names, self.called.lower()}:
            what = f"{table.name} cannot be joined with itself: a release has no rows to pair"
            hint = "ask for groups instead: select x, y, count(*) … group by x, y"
            raise refusal(self.sql, what, place(self.sql, [table]), hint)
        if known is None:
            raise unknown_table(self.sql, table, self.tables)
        side, kind, method = (
            (join.args.get(part) or "").upper() for part in ("side", "kind", "method")
        )
        only(self.sql, join, {"this", "on", "using", "side", "kind", "method"})
        if method or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise refusal(self.sql, f"{method or side or kind} JOIN is not answered",
                          place(self.sql, [join]),
                          "use JOIN or LEFT JOIN with a table of your own")  # fmt: skip
        alias = table.alias_or_name
        if alias.lower() in binder.names or alias.lower() in map(str.lower, binder.partners):
            called = table.args.get("alias") or table
            raise refusal(self.sql, f"two tables are called {alias}", place(self.sql, [called]),
                          "give one of them another name: join table as name")  # fmt: skip
        using = frozenset(c.name.lower() for c in join.args.get("using") or ())
        partner = Partner(known, self.tables[known], using=using)
        condition = self._on(binder, join, alias, partner)
        partner.on, partner.reads = self._bound_on(binder, condition, alias, partner)
        binder.partners[alias] = partner
        # Read also where nothing else is: a second partner would make two rows of one.
        found = partner.found(alias)
        if side:
            found = exp.Is(this=found, expression=exp.Not(this=exp.false()))
        matched = Atom(found, tuple(n for n in self.schema.names if n in partner.reads))
        self.matched = both(self.matched, matched)

    def _on(self, binder: Binder, join: exp.Join, alias: str, partner: Partner) -> exp.Expr:
        """What makes a row of the joined table the partner of a row of the release."""
        if on := join.args.get("on"):
            given: exp.Expr = on.copy()
            return given
        using = join.args.get("using")
        comma = self.sql[place(self.sql, [join])] == ","
        if not (using or comma or (join.args.get("kind") or "").upper() == "CROSS"):
            raise refusal(self.sql, f"JOIN {alias} has no ON", place(self.sql, [join.this]),
                          f"write join {alias} on name.column = {alias}.column")  # fmt: skip
        if using:
            return exp.and_(*(
                exp.EQ(this=exp.column(c.copy(), self._holder(binder, c)),
                       expression=exp.column(c.copy(), alias))
                for c in using
            ))  # fmt: skip
        where = self.tree.args.get("where")
        parts = list(where.this.flatten()) if where and isinstance(where.this, exp.And) else (
            [where.this] if where else [])  # fmt: skip
        linking = [p for p in parts if self._mentions(p, alias, partner)]
        if not linking:
            raise refusal(self.sql, f"nothing says which row of {alias} belongs to a person",
                          place(self.sql, [join.this]),
                          "write join … on name.column = …")  # fmt: skip
        rest = [p for p in parts if not any(p is q for q in linking)]
        self.tree.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        return exp.and_(*linking)

    def _holder(self, binder: Binder, column: exp.Expr) -> str:
        """The table before the join that has a column of USING."""
        for alias, partner in binder.partners.items():
            if column.name.lower() in map(str.lower, partner.columns):
                return alias
        binder.attribute(exp.column(column.copy()))
        return min(binder.names)

    def _mentions(self, tree: exp.Expr, alias: str, partner: Partner) -> bool:
        columns = {c.lower() for c in partner.columns}
        attributes = {name.lower() for name in self.schema.names}
        return any(
            c.table.lower() == alias.lower()
            or (not c.table and c.name.lower() in columns - attributes)
            for c in tree.find_all(exp.Column)
        )

    def _bound_on(
        self, binder: Binder, condition: exp.Expr, alias: str, partner: Partner
    ) -> tuple[exp.Expr, set[str]]:
        """The condition inside the subquery that finds the partner, so that its columns resolve."""
        inner = Partner(partner.table, partner.columns, condition)
        tree, reads = binder.bound(inner.found(alias))
        where = tree.this.args["where"]
        return where.this, reads


# ----------------------------------------------------------------------
# SQL text to a Query: what to estimate, for which groups, of which rows
#     SELECT aggregates and group columns FROM name [JOIN own tables]
#     [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT n [OFFSET m]]
#
# What is not on the list is refused with its place in the text.


SELECT_PARTS = {
    "expressions", "from_", "where", "group", "having", "order", "limit", "offset", "joins",
}  # fmt: skip
WHOLE_PARTS = {"expressions", "from_", "where", "joins", "group"}
MOST_SETS = 64
"""Groupings of one query: each is answered by itself."""


def parse(sql: str, schema: Schema, tables: Tables | None = None, called: str = "") -> Query:
    """Read a query about a release with this schema; `tables` are the analyst's own.

    `called` is the name of the table. Other words stand for it too, but no path, file, function or
    catalog does.
    """
    try:
        tree = single_select(sql)
        strict.check(sql, tree)
        own = tables or {}
        tree = Rewriter(sql, tuple(schema.names), own, called).flattened(tree)
        only(sql, tree, SELECT_PARTS)
        return _Reader(sql, tree, schema, own, called).query()
    except RecursionError:
        raise too_deep() from None


class _Reader:
    """One SELECT, clause by clause."""

    def __init__(
        self, sql: str, tree: exp.Select, schema: Schema, tables: Tables, called: str
    ) -> None:
        self.sql, self.tree, self.schema, self.tables = sql, tree, schema, tables
        self.called = called
        tables_read = From(sql, tree, schema, tables, called)
        self.binder, self.matched = tables_read.binder, tables_read.matched
        self.aggregates = Aggregates(self.binder, self._whole_total)

    def query(self) -> Query:
        where = self.tree.args.get("where")
        predicate = self.binder.predicate(where.this) if where else None
        trees, sets = self._group_trees()
        bound = [self.binder.expression(tree) for tree in trees]
        self.groups: tuple[Expression, ...] = tuple(dict.fromkeys(bound) if sets else bound)
        self.sets = tuple(
            tuple(dict.fromkeys(self.groups.index(bound[i]) for i in one)) for one in sets
        )
        columns = self._columns()
        having, keys = self._having()
        order = self._order()
        return Query(
            sql=self.sql,
            predicate=both(both(self.matched, predicate), keys),
            columns=columns,
            groups=self.groups,
            having=self.aggregates.formula(having, condition=True) if having else None,
            order=order,
            limit=self._whole("limit"),
            offset=self._whole("offset") or 0,
            remarks=tuple(dict.fromkeys(self.binder.remarks)),
            tables=tuple(self.tables),
            sets=self.sets,
        )

    def _whole_total(self, select: exp.Select) -> Formula:
        """A subquery for a total over more rows than a group's."""
        only(self.sql, select, WHOLE_PARTS)
        read = _Reader(self.sql, select, self.schema, self.tables, self.called)
        where = select.args.get("where")
        passing = both(read.matched, read.binder.predicate(where.this) if where else None)
        self.binder.remarks += read.binder.remarks
        group = select.args.get("group")
        keys = [self._key(tree) for tree in group.expressions] if group else []
        formula = read.aggregates.formula(select.expressions[0])
        return self._with_whole(formula, passing, tuple(sorted(set(keys))), select)

    def _key(self, tree: exp.Expr) -> int:
        bound = self.binder.expression(tree)
        if bound in self.groups:
            return self.groups.index(bound)
        raise refusal(self.sql, f"{short(tree)} is not in GROUP BY", place(self.sql, [tree]),
                      "PARTITION BY takes columns of GROUP BY")  # fmt: skip

    def _with_whole(
        self, formula: Formula, passing: Predicate | None, keys: tuple[int, ...], tree: exp.Expr
    ) -> Formula:
        """A formula whose totals are all over the rows that pass."""
        match formula:
            case Call(name, args):
                return Call(name, tuple(self._with_whole(a, passing, keys, tree) for a in args))
            case Total(term) if not isinstance(formula, WholeTotal):
                whole = Term(both(passing, term.predicate), term.values)
                return WholeTotal(whole, keys)
            case Constant():
                return formula
        raise refusal(self.sql, f"{short(tree)} is not estimated beside groups",
                      place(self.sql, [tree]), "ask for it by itself")  # fmt: skip

    # ------------------------------------------------------------------ SELECT and GROUP BY

    def _group_trees(self) -> tuple[list[exp.Expr], list[tuple[int, ...]]]:
        """What GROUP BY names; and which of that each grouping has, where there are several."""
        group = self.tree.args.get("group")
        if group is None:
            return [], []
        only(self.sql, group, {"expressions", "rollup", "cube"})
        trees: list[exp.Expr] = []
        sets = self._sets_of(group, trees)
        if several_groupings(self.tree) is None:
            return trees, []
        if len(sets) > MOST_SETS:
            raise refusal(self.sql, f"GROUP BY has {len(sets):,} groupings",
                          place(self.sql, [group]), f"at most {MOST_SETS} at once")  # fmt: skip
        return trees, sets

    def _sets_of(self, group: exp.Expr, trees: list[exp.Expr]) -> list[tuple[int, ...]]:
        """Every grouping that the parts of GROUP BY make together; their columns go to `trees`."""
        parts = [self._part_of(part, trees, several=False) for part in group.expressions]
        for name in ("rollup", "cube"):  # as in GROUP BY a, b WITH ROLLUP
            if given := group.args.get(name):
                parts = [self._part_of(type(given[0])(expressions=group.expressions), trees)]
        found: list[tuple[int, ...]] = [()]
        for part in parts:
            if len(found) * len(part) > MOST_SETS:
                return [()] * (len(found) * len(part))
            found = [(*one, *other) for one in found for other in part]
        return found

    def _part_of(
        self, part: exp.Expr, trees: list[exp.Expr], *, several: bool = True
    ) -> list[tuple[int, ...]]:
        if isinstance(part, exp.GroupingSets):
            return [one for inner in part.expressions for one in self._part_of(inner, trees)]
        if isinstance(part, exp.Rollup | exp.Cube):
            items = [self._listed(item, trees) for item in part.expressions]
            if isinstance(part, exp.Rollup):
                chosen = [items[:n] for n in range(len(items), -1, -1)]
            else:
                sizes = range(min(len(items), 16), -1, -1)
                chosen = [list(some) for n in sizes for some in combinations(items, n)]
            return [tuple(place for item in some for place in item) for some in chosen]
        return [self._listed(part, trees, several=several)]

    def _listed(
        self, part: exp.Expr, trees: list[exp.Expr], *, several: bool = True
    ) -> tuple[int, ...]:
        """The places of one column, or of several in parentheses."""
        inner = part.expressions if several and isinstance(part, exp.Tuple) else [part]
        start = len(trees)
        trees += [self._grouping(tree) for tree in inner]
        return tuple(range(start, len(trees)))

    def _grouping(self, tree: exp.Expr) -> exp.Expr:
        tree = bare_tree(tree.unalias())
        if isinstance(tree, exp.Literal) and tree.is_int:
            raise self._no_such_column(tree)
        if aggregates(tree):
            raise refusal(
                self.sql,
                f"{short(tree)} is an aggregate, and cannot make groups",
                place(self.sql, [tree], "group"),
                "group by columns of a row",
            )
        return tree

    def _columns(self) -> tuple[OutputColumn, ...]:
        columns: list[OutputColumn] = []
        taken: set[str] = set()
        for item in self.tree.expressions:
            source = self._source(item.unalias())
            name = item.alias or self._name(item)
            columns.append(OutputColumn(_fresh(name, taken, repeat=not item.alias), source))
            if columns[-1].name in taken:
                raise refusal(self.sql, f"two columns are called {name}", place(self.sql, [item]),
                              "give one of them another name with AS")  # fmt: skip
            taken.add(columns[-1].name)
        if all(isinstance(column.source, int) for column in columns):
            raise refusal(
                self.sql,
                "SELECT has no aggregate",
                place(self.sql, self.tree.expressions),
                "add count(*): rows themselves are not answered, only statistics",
            )
        return tuple(columns)

    def _source(self, tree: exp.Expr) -> int | Formula:
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if aggregates(tree):
            return self.aggregates.formula(tree)
        if isinstance(tree, exp.Star | exp.Literal):
            raise self._ungrouped(tree)
        # Compared as bound, where age, "AGE" and people.age are one.
        bound = self.binder.expression(tree)
        if bound in self.groups:
            return self.groups.index(bound)
        if self.groups and not self.sets and self._reads_keys(tree):
            self.groups += (bound,)  # what follows from the others makes no further groups
            return len(self.groups) - 1
        raise self._ungrouped(tree)

    def _ungrouped(self, tree: exp.Expr) -> QueryError:
        shown = short(tree)
        if isinstance(tree, exp.Star):
            return refusal(self.sql, "SELECT * is not answered", place(self.sql, [tree], "*"),
                           "rows themselves are not answered, only statistics: ask for one, as in "
                           "select count(*)")  # fmt: skip
        return refusal(self.sql, f"{shown} is neither an aggregate nor in GROUP BY",
                       place(self.sql, [tree]),
                       "add it to GROUP BY, or write an aggregate, as in count(*)")  # fmt: skip

    def _name(self, item: exp.Expr) -> str:
        if isinstance(item, exp.Column):
            known = (n for n in self.schema.names if n.lower() == item.name.lower())
            return next(known, item.name)
        return plain_name(item) or item.sql("duckdb", comments=False, normalize_functions="lower")

    def _having(self) -> tuple[exp.Expr | None, Predicate | None]:
        """The condition on aggregates; and that on columns, which is one on rows."""
        having = self.tree.args.get("having")
        if having is None:
            return None, None
        on_sums: list[exp.Expr] = []
        on_keys: Predicate | None = None
        for part in conjuncts(having.this):
            if aggregates(part) or not self._reads_keys(part):
                self._check_having(part)
                on_sums.append(part)
            elif self.sets:
                raise self._makes_groups(part)
            else:
                on_keys = both(on_keys, self.binder.predicate(part))
        return (exp.and_(*on_sums) if on_sums else None), on_keys

    def _reads_keys(self, tree: exp.Expr) -> bool:
        """Whether a condition reads what makes groups, and nothing else."""
        if not self.groups:
            return False
        if not tree.find(exp.Column) or self._is_key(tree):
            return True
        parts = tree.iter_expressions()
        return not isinstance(tree, exp.Column) and all(map(self._reads_keys, parts))

    def _is_key(self, tree: exp.Expr) -> bool:
        try:
            return self.binder.expression(tree) in self.groups
        except QueryError:
            return False

    def _check_having(self, part: exp.Expr) -> None:
        for column in part.find_all(exp.Column):
            if column.find_ancestor(exp.AggFunc, exp.Filter, exp.Subquery):
                continue
            if self.binder.expression(column) in self.groups:
                raise self._makes_groups(column)

    def _makes_groups(self, tree: exp.Expr) -> QueryError:
        return refusal(
            self.sql,
            f"{short(tree)} makes groups; HAVING is for aggregates",
            place(self.sql, [tree]),
            "put the condition into WHERE",
        )

    # ------------------------------------------------------------------ ORDER BY and LIMIT

    def _order(self) -> tuple[Order, ...]:
        order = self.tree.args.get("order")
        if order is None:
            return ()
        items = [one for item in order.expressions for one in self._every_column(item)]
        return tuple(self._ordered(one) for one in items)

    def _every_column(self, node: exp.Expr) -> list[exp.Expr]:
        """ORDER BY ALL sorts by the columns of SELECT, from left to right."""
        if not (isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL"):
            return [node]
        parts = {key: value for key, value in node.args.items() if key != "this"}
        return [exp.Ordered(this=i.unalias().copy(), **parts) for i in self.tree.expressions]

    def _ordered(self, node: exp.Expr) -> Order:
        tree = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(tree, exp.Literal):
            raise self._no_such_column(tree)
        descending, first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        return Order(self._source(tree), descending, first)

    def _no_such_column(self, tree: exp.Expr) -> QueryError:
        most = len(self.tree.expressions)
        return refusal(self.sql, f"SELECT has no column {short(tree)}", place(self.sql, [tree]),
                       f"write a name, or a number from 1 to {most}")  # fmt: skip

    def _whole(self, clause: str) -> int | None:
        node = self.tree.args.get(clause)
        if node is None:
            return None
        number = node.expression
        plain = isinstance(node, exp.Limit | exp.Offset) and not node.args.get("limit_options")
        if plain and isinstance(number, exp.Literal) and number.is_int:
            return int(number.this)
        raise refusal(self.sql, f"{clause.upper()} must be a whole number",
                      place(self.sql, [node], clause), f"write {clause} 10")  # fmt: skip


def _fresh(name: str, taken: set[str], *, repeat: bool) -> str:
    """A name that is not taken: count, count_2, count_3."""
    number, fresh = 1, name
    while repeat and fresh in taken:
        number += 1
        fresh = f"{name}_{number}"
    return fresh
