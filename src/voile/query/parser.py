"""SQL text to a Query: what to estimate, for which groups, of which rows.

    SELECT aggregates and group columns FROM name [JOIN own tables]
    [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT n [OFFSET m]]

What is not on the list is refused with its place in the text.
"""

from __future__ import annotations

import re

from sqlglot import exp

from voile.errors import QueryError
from voile.query import language as strict
from voile.query.aggregate import Aggregates, Formula, is_aggregate, plain_name
from voile.query.bind import Binder, Partner, Tables, unknown_table
from voile.query.predicate import Atom, Predicate, both
from voile.query.query import Order, OutputColumn, Query
from voile.query.quoting import quote_identifier
from voile.query.text import (
    ASK,
    first_token,
    last_before,
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
    "with_": ("WITH", "with"), "laterals": ("LATERAL", "lateral"),
    "qualify": ("QUALIFY", "qualify"),
    "windows": ("WINDOW", "window"), "distinct": ("DISTINCT", "distinct"),
    "locks": ("FOR UPDATE", "for"), "sample": ("a sample", "sample"), "pivots": ("PIVOT", "pivot"),
    "into": ("INTO", "into"), "columns": ("renaming columns", ""),
    "rollup": ("ROLLUP", "rollup"), "cube": ("CUBE", "cube"),
    "grouping_sets": ("GROUPING SETS", "grouping"),
}  # fmt: skip
INSTEAD = {
    "distinct": "GROUP BY the columns instead",
    "rollup": "ask once for each grouping", "cube": "ask once for each grouping",
    "grouping_sets": "ask once for each grouping", "qualify": "use HAVING",
}  # fmt: skip


def with_tables() -> str:
    """What to do instead of a WITH clause."""
    return f"ask one SELECT; your own tables come with {strict.own_table()}"


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
                with_tables() if key == "with_" else INSTEAD.get(key, ASK),
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
SEVERAL: dict[type[exp.Expr], str] = {
    exp.Rollup: "rollup", exp.Cube: "cube", exp.GroupingSets: "grouping",
}  # fmt: skip
"""Groupings of several kinds at once, and the words that they begin with."""


def parse(sql: str, schema: Schema, tables: Tables | None = None, called: str = "") -> Query:
    """Read a query about a release with this schema; `tables` are the analyst's own.

    `called` is the name of the table. Other words stand for it too, but no path, file, function or
    catalog does.
    """
    try:
        tree = single_select(sql)
        strict.check(sql, tree)
        only(sql, tree, SELECT_PARTS)
        return _Reader(sql, tree, schema, tables or {}, called).query()
    except RecursionError:
        raise too_deep() from None


class _Reader:
    """One SELECT, clause by clause."""

    def __init__(
        self, sql: str, tree: exp.Select, schema: Schema, tables: Tables, called: str
    ) -> None:
        self.sql, self.tree, self.schema, self.tables = sql, tree, schema, tables
        tables_read = From(sql, tree, schema, tables, called)
        self.binder, self.matched = tables_read.binder, tables_read.matched
        self.aggregates = Aggregates(self.binder)

    def query(self) -> Query:
        where = self.tree.args.get("where")
        predicate = self.binder.predicate(where.this) if where else None
        trees = self._group_trees()
        self.groups = tuple(self.binder.expression(tree) for tree in trees)
        columns = self._columns()
        having = self._having()
        return Query(
            sql=self.sql,
            predicate=both(self.matched, predicate),
            columns=columns,
            groups=self.groups,
            having=self.aggregates.formula(having, condition=True) if having else None,
            order=self._order(),
            limit=self._whole("limit"),
            offset=self._whole("offset") or 0,
            remarks=tuple(dict.fromkeys(self.binder.remarks)),
            tables=tuple(self.tables),
        )

    # ------------------------------------------------------------------ SELECT and GROUP BY

    def _group_trees(self) -> list[exp.Expr]:
        group = self.tree.args.get("group")
        if group is None:
            return []
        only(self.sql, group, {"expressions", "all"})
        items = self.tree.expressions
        for tree in group.expressions:
            if type(tree) in SEVERAL:
                where = last_before(self.sql, SEVERAL[type(tree)], place(self.sql, [tree]))
                raise refusal(self.sql, f"{short(tree)} is not answered", where,
                              INSTEAD["rollup"])  # fmt: skip
        if group.args.get("all"):
            return [item.unalias() for item in items if not _aggregates(item)]
        return [self._meant(tree, items) for tree in group.expressions]

    def _meant(self, tree: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
        """GROUP BY 1 and GROUP BY alias stand for a column of SELECT."""
        if isinstance(tree, exp.Literal) and tree.is_int:
            if not 1 <= int(tree.this) <= len(items):
                raise self._no_such_column(tree)
            tree = items[int(tree.this) - 1]
        elif isinstance(tree, exp.Column) and not tree.table:
            known = {name.lower() for name in self.schema.names}
            known |= {c.lower() for p in self.binder.partners.values() for c in p.columns}
            named = [i for i in items if i.alias.lower() == tree.name.lower()]
            if named and tree.name.lower() not in known:
                tree = named[0]
        tree = tree.unalias()
        if _aggregates(tree):
            raise refusal(
                self.sql,
                f"{short(tree)} is an aggregate, and cannot make groups",
                place(self.sql, [tree], "group"),
                "group by columns of a row",
            )
        while isinstance(tree, exp.Paren):
            tree = tree.this
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
        if _aggregates(tree):
            return self.aggregates.formula(tree)
        if isinstance(tree, exp.Star | exp.Literal):
            raise self._ungrouped(tree)
        # Compared as bound, where age, "AGE" and people.age are one.
        bound = self.binder.expression(tree)
        if bound in self.groups:
            return self.groups.index(bound)
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

    def _having(self) -> exp.Expr | None:
        """The condition on groups, with the names of SELECT's columns for what they stand for."""
        having = self.tree.args.get("having")
        if having is None:
            return None
        known = {item.alias.lower(): item for item in self.tree.expressions if item.alias}
        holder = exp.Paren(this=having.this.copy())
        for column in list(holder.find_all(exp.Column)):
            if column.find_ancestor(exp.AggFunc, exp.Filter):
                continue
            item = None if column.table else known.get(column.name.lower())
            if item is not None and _aggregates(item.unalias()):
                column.replace(exp.Paren(this=item.unalias().copy()))
            elif item is not None or self.binder.expression(column) in self.groups:
                raise refusal(
                    self.sql,
                    f"{short(column)} makes groups; HAVING is for aggregates",
                    place(self.sql, [column]),
                    "put the condition into WHERE",
                )
        condition: exp.Expr = holder.this
        return condition

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
        if isinstance(tree, exp.Literal | exp.Column) and not getattr(tree, "table", ""):
            tree = self._meant_by_order(tree)
        descending, first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        return Order(self._source(tree), descending, first)

    def _meant_by_order(self, tree: exp.Expr) -> exp.Expr:
        items = self.tree.expressions
        if isinstance(tree, exp.Column):
            return next((i.unalias() for i in items if i.alias.lower() == tree.name.lower()), tree)
        if tree.is_int and 1 <= int(tree.this) <= len(items):
            found: exp.Expr = items[int(tree.this) - 1].unalias()
            return found
        raise self._no_such_column(tree)

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


def _aggregates(tree: exp.Expr) -> bool:
    """Whether an aggregate stands in the tree, outside of subqueries."""
    return any(is_aggregate(n) and not n.find_ancestor(exp.Subquery) for n in tree.walk())


def _fresh(name: str, taken: set[str], *, repeat: bool) -> str:
    """A name that is not taken: count, count_2, count_3."""
    number, fresh = 1, name
    while repeat and fresh in taken:
        number += 1
        fresh = f"{name}_{number}"
    return fresh
