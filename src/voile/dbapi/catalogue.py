"""What tools ask about tables: answered by a database in memory that has them without rows."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterable, Mapping

import pyarrow as pa
import sqlglot
from sqlglot import exp

from voile import __version__
from voile.dbapi.results import Field, ResultSet, fields_of, table_result
from voile.dbapi.sources import AskedTable
from voile.dbapi.statements import CATALOG, SCHEMA, catalogue_text
from voile.engines import SqlTables, open_tables
from voile.errors import QueryError
from voile.query.text import place, refusal, short

USER = "voile"
VERSION = f"PostgreSQL 16.0 (Voile {__version__})"
"""What version() says: clients of PostgreSQL read the number."""

PRELUDE = (
    f"CREATE MACRO pg_get_userbyid(x) AS '{USER}'",
    "CREATE MACRO pg_backend_pid() AS 1",
    "CREATE MACRO pg_is_in_recovery() AS false",
    "CREATE MACRO pg_get_function_identity_arguments(x) AS NULL::VARCHAR",
    "CREATE MACRO pg_relation_size(x) AS 0",
    "CREATE MACRO pg_total_relation_size(x) AS 0",
    "CREATE MACRO pg_encoding_to_char(x) AS 'UTF8'",
    "CREATE MACRO pg_get_partkeydef(x) AS NULL::VARCHAR",
    "CREATE MACRO quote_ident(x) AS '\"' || replace(x, '\"', '\"\"') || '\"'",
)
OWN_VIEWS = {
    "pg_roles": "SELECT 10::BIGINT AS oid, 'voile' AS rolname, false AS rolsuper, "
    "true AS rolinherit, false AS rolcreaterole, false AS rolcreatedb, true AS rolcanlogin, "
    "false AS rolreplication, -1 AS rolconnlimit, NULL::TIMESTAMP AS rolvaliduntil",
    "pg_user": "SELECT 'voile' AS usename, 10::BIGINT AS usesysid",
    "pg_inherits": "SELECT NULL::BIGINT AS inhrelid, NULL::BIGINT AS inhparent, "
    "NULL::INTEGER AS inhseqno WHERE false",
}
"""Catalogues that the engine has not."""
TEXT_TYPES = frozenset(["NAME", "REGTYPE", "REGPROC", "REGNAMESPACE", "REGROLE", "CITEXT"])
FUNCTIONS = frozenset(
    """version current_schema current_schemas current_database current_user session_user user
    current_catalog current_role format_type obj_description col_description shobj_description
    has_schema_privilege has_table_privilege has_database_privilege has_any_column_privilege
    has_column_privilege quote_ident to_char array_to_string string_to_array array_length
    generate_subscripts array_lower array_upper unnest generate_series coalesce nullif greatest
    least length lower upper substring substr replace trim ltrim rtrim strpos position concat
    left right lpad rpad split_part regexp_replace regexp_matches starts_with string_agg
    array_agg list count sum min max avg bool_or bool_and row_number rank dense_rank abs round
    floor ceil sign mod list_contains array_contains array_position list_position
    txid_current now current_setting set_config""".split()  # noqa: SIM905
)
"""Besides these, all that begin with pg_."""
REFUSED = (
    exp.ReadCSV, exp.ReadParquet, exp.Repeat, exp.Rand, exp.Uuid, exp.Command,
)  # fmt: skip
"""Functions that the parser knows, and that look at no table or make too much."""


SLEEPING = ("pg_sleep", "pg_ls", "pg_read", "pg_stat_file")
MOST_TABLES = 24


class Catalogue:
    """The tables of a source, without rows, and the views that describe them."""

    def __init__(self, tables: Iterable[AskedTable]) -> None:
        self._fields = {table.name: table.fields for table in tables}
        self._opened: SqlTables | None = None
        self._opening = threading.Lock()

    @property
    def _tables(self) -> SqlTables:
        with self._opening:
            if self._opened is None:
                empty = {name: empty_table(fields) for name, fields in self._fields.items()}
                self._opened = open_tables(empty, prelude=PRELUDE)
        return self._opened

    def run(self, sql: str, tree: exp.Expr, settings: Mapping[str, str]) -> ResultSet:
        """What a look at catalogues, or a SELECT of constants, gives."""
        return table_result(self._tables.run(self._text(sql, tree, settings)))

    def fields(self, sql: str, tree: exp.Expr, settings: Mapping[str, str]) -> tuple[Field, ...]:
        """Its columns."""
        return fields_of(self._tables.fields(self._text(sql, tree, settings)))

    def _text(self, sql: str, tree: exp.Expr, settings: Mapping[str, str]) -> str:
        check_looks(sql, tree)
        holder = exp.Paren(this=tree.copy())
        names = [called(item) for item in holder.this.selects]
        for node in reversed(list(holder.walk())):
            found = as_known(node, settings)
            if found is not node:
                node.replace(found)
        keep_names(holder.this, names)
        return catalogue_text(holder.this)

    def close(self) -> None:
        """Forget the tables."""
        if self._opened is not None:
            self._opened.close()


def empty_table(fields: Iterable[Field]) -> pa.Table:
    """A table with these columns and no row."""
    return pa.schema([pa.field(field.name, field.type) for field in fields]).empty_table()


def check_looks(sql: str, tree: exp.Expr) -> None:
    """Refuse functions that catalogues need not, and all that is no plain table."""
    for node in tree.walk():
        strange = isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier)
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            looks = name in FUNCTIONS or name.startswith("pg_")
            strange = not looks or name.startswith(SLEEPING)
        endless = isinstance(node, exp.With) and node.args.get("recursive")
        if strange or endless or isinstance(node, REFUSED):
            raise refused(sql, node)
    if sum(1 for _ in tree.find_all(exp.Table)) > MOST_TABLES:
        raise QueryError(
            f"the statement reads more than {MOST_TABLES} tables", hint="look at fewer at once"
        )


def refused(sql: str, node: exp.Expr) -> QueryError:
    """The error for what is neither a question nor a look at catalogues."""
    return refusal(
        sql,
        f"{short(node)} is not answered here",
        place(sql, [node]),
        "ask about a table, or look at information_schema",
    )


# ---------------------------------------------------------------------- PostgreSQL's words


def as_known(node: exp.Expr, settings: Mapping[str, str]) -> exp.Expr:
    """A part of PostgreSQL's SQL as the engine knows it."""
    if isinstance(node, exp.Dot) and node.this.name.lower() in ("pg_catalog", SCHEMA):
        inner: exp.Expr = node.expression
        return inner
    if isinstance(node, exp.Collate):
        plain: exp.Expr = node.this
        return plain
    if isinstance(node, exp.Table) and (view := own_view(node.name.lower(), settings)):
        name = exp.TableAlias(this=exp.to_identifier(node.alias_or_name, quoted=True))
        return exp.Subquery(this=view, alias=name)
    if isinstance(node, exp.Cast):
        return known_cast(node)
    if isinstance(node, exp.Func):
        return known_function(node, settings)
    return node


def own_view(name: str, settings: Mapping[str, str]) -> exp.Expr | None:
    """A catalogue that the engine has not, or that would tell of the engine itself."""
    if name in OWN_VIEWS:
        return sqlglot.parse_one(OWN_VIEWS[name], dialect="duckdb")
    if name != "pg_settings":
        return None
    rows = [
        exp.select(*(exp.alias_(exp.Literal.string(part), called) for part, called in zip(
            (key, value, "", "string", "user"),
            ("name", "setting", "short_desc", "vartype", "context"), strict=True,
        )))
        for key, value in sorted(settings.items())
    ]  # fmt: skip
    return exp.union(*rows, distinct=False) if len(rows) > 1 else rows[0]


def known_cast(node: exp.Cast) -> exp.Expr:
    """Casts to PostgreSQL's own types: names are texts, and a table is its number."""
    kind = node.to.sql("postgres").upper().removeprefix("PG_CATALOG.")
    if kind in TEXT_TYPES:
        node.set("to", exp.DataType(this=exp.DType.VARCHAR))
    elif kind == "REGCLASS":
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            name = node.this.name.rpartition(".")[2].strip('"')
            return number_of_table(exp.Literal.string(name))
        node.set("to", exp.DataType(this=exp.DType.VARCHAR))
    return node


def number_of_table(name: exp.Expr) -> exp.Expr:
    """The number of a table by its name."""
    found = exp.select("oid").from_("pg_catalog.pg_class").limit(1)
    return exp.Subquery(this=found.where(exp.EQ(this=exp.column("relname"), expression=name)))


def known_function(node: exp.Func, settings: Mapping[str, str]) -> exp.Expr:
    """What the session says of itself."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
    name = name.replace("_", "")
    if name in SAID:
        return exp.Literal.string(SAID[name])
    if name == "currentschemas":
        return exp.Array(expressions=[exp.Literal.string(n) for n in ("pg_catalog", SCHEMA)])
    if name == "currentsetting":
        asked = node.expressions[0].name.lower() if node.expressions else ""
        return exp.Literal.string(settings[asked]) if asked in settings else exp.null()
    if name in ("currenttimestamp", "currentdate", "now", "localtimestamp"):
        moment = dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ")
        kind = exp.DType.DATE if name == "currentdate" else exp.DType.TIMESTAMP
        text = exp.Literal.string(moment[:10] if name == "currentdate" else moment)
        return exp.Cast(this=text, to=exp.DataType(this=kind))
    if name == "setconfig":  # what it would give; a session is told by SET
        return node.expressions[1] if len(node.expressions) > 1 else exp.null()
    return node


SAID = {
    "version": VERSION, "currentversion": VERSION, "currentschema": SCHEMA,
    "currentdatabase": CATALOG, "currentcatalog": CATALOG, "currentuser": USER,
    "sessionuser": USER, "user": USER, "currentrole": USER,
}  # fmt: skip


def called(item: exp.Expr) -> str:
    """What PostgreSQL calls a column without a name: after its function."""
    if isinstance(item, exp.Dot):
        item = item.expression
    if not isinstance(item, exp.Func) or isinstance(item, exp.Cast | exp.Case):
        return "" if isinstance(item, exp.Literal) else str(item.alias_or_name)
    name = item.name if isinstance(item, exp.Anonymous) else item.sql_name()
    return name.lower().replace("current_version", "version")


def keep_names(tree: exp.Expr, names: list[str]) -> None:
    """Columns whose functions became constants are called as PostgreSQL calls them."""
    if not isinstance(tree, exp.Select) or len(names) != len(tree.expressions):
        return
    for item, name in zip(list(tree.expressions), names, strict=True):
        plain = isinstance(item, exp.Alias | exp.Star | exp.Column)
        if name and not plain:
            item.replace(exp.alias_(item.copy(), name, quoted=True))
        elif isinstance(item, exp.Literal):
            item.replace(exp.alias_(item.copy(), "?column?", quoted=True))
