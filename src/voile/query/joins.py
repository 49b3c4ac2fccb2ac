"""FROM: the release, and the partners that joined tables give to each of its rows."""

from __future__ import annotations

from sqlglot import exp

from voile.query.bind import Binder, Partner, Tables, unknown_table
from voile.query.clauses import only
from voile.query.predicate import Atom, Predicate, both
from voile.query.text import (
    place,
    refusal,
)
from voile.schema import Schema


class From:
    """The tables of one SELECT; `matched` is what joins ask of a row."""

    def __init__(self, sql: str, tree: exp.Select, schema: Schema, tables: Tables) -> None:
        self.sql, self.tree, self.schema, self.tables = sql, tree, schema, tables
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
                "write from name; a release holds one table and any name will do",
            )
        only(self.sql, table, {"this", "alias", "db", "catalog"})
        if alias := table.args.get("alias"):
            only(self.sql, alias, {"this"})
        return table

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
