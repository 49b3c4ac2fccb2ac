"""PostgreSQL's SQL about its catalogues, as the engine in memory knows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from voile.wire.catalogue.relations import relations
from voile.wire.conversation import WireCaller
from voile.wire.messages import WireError
from voile.wire.settings import VERSION

SCHEMAS = frozenset(["pg_catalog", "information_schema"])
MOST_NODES = 20_000
LIST = re.compile(r"\{[^{}]*\}")
NUMBER = re.compile(r"-?\d{1,10}")
TEXTS = frozenset(["name", "char", "text", "citext", "bpchar", "varchar"])
ROW_FUNCTIONS = frozenset(
    ["pg_get_keywords", "pg_timezone_names", "generate_series", "generateseries", "unnest",
     "explodinggenerateseries", "explode", "generate_subscripts"]
)  # fmt: skip
READING = (exp.ReadCSV, exp.ReadParquet, exp.Command, exp.Into, exp.Lock)


def translated(tree: exp.Expr, caller: WireCaller, values: Sequence[Any]) -> exp.Expr:
    """A new tree that says the same about the tables in memory."""
    if sum(1 for _ in tree.walk()) > MOST_NODES:
        raise WireError("54001", "the statement has too many parts", hint="ask for less at once")
    if not isinstance(tree, exp.Query | exp.Values | exp.Subquery | exp.Paren):
        raise WireError("0A000", "the statement is no SELECT", hint="ask with SELECT")
    holder = exp.Paren(this=tree.copy())
    for node in reversed(list(holder.walk())):
        if isinstance(node, READING):
            raise WireError("0A000", "the statement reads or locks what is not here",
                            hint="ask about pg_catalog or information_schema")  # fmt: skip
        found = as_known(node, caller, values)
        if found is not node:
            node.replace(found)
    return without_order(holder)


def as_known(node: exp.Expr, caller: WireCaller, values: Sequence[Any]) -> exp.Expr:
    """One part of the tree; the parts within it were seen before."""
    for kind, change in CHANGES:
        if isinstance(node, kind):
            changed: exp.Expr = change(node)
            return changed
    if isinstance(node, exp.Parameter):
        return as_value(node, values)
    if isinstance(node, exp.Func):
        return known_function(node, caller)
    return node


# ---------------------------------------------------------------------- names


def known_table(node: exp.Expr) -> exp.Expr:
    """A table of the catalogues under its name in memory; functions without their schema."""
    if not isinstance(node.this, exp.Identifier):
        return known_table_function(node)
    schema, name = node.args.get("db"), node.name.lower()
    named = schema.name.lower() if schema is not None else "pg_catalog"
    if schema is None and name in made_names(node):
        return node
    relation = relations().get((named, name))
    if relation is None:
        raise WireError("42P01", f"there is no table {named}.{name}",
                        hint="not all of PostgreSQL's catalogues are here")  # fmt: skip
    node.set("db", None)
    node.set("catalog", None)
    node.set("this", exp.to_identifier(relation.key, quoted=True))
    if not node.alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    return node


def made_names(node: exp.Expr) -> set[str]:
    """What the WITH clauses around a part of a query define."""
    found: set[str] = set()
    above: exp.Expr | None = node
    while above is not None:
        defined = above.args.get("with_")
        found |= {cte.alias.lower() for cte in defined.expressions} if defined else set()
        above = above.parent
    return found


def known_table_function(node: exp.Expr) -> exp.Expr:
    """A function that gives rows, without its schema; most of the engine's are none of ours."""
    inner = node.this
    name = inner.name.lower() if isinstance(inner, exp.Anonymous) else inner.key
    if name not in ROW_FUNCTIONS:
        raise WireError("42883", f"there is no function {name[:60]} that gives rows here",
                        hint="ask about pg_catalog or information_schema")  # fmt: skip
    if node.args.get("db"):
        node.set("db", None)
    return node


def known_column(node: exp.Expr) -> exp.Expr:
    """A column without the schema of its table."""
    if node.args.get("db"):
        node.set("db", None)
        node.set("catalog", None)
    return node


def without_schema(node: exp.Expr) -> exp.Expr:
    """A function without its schema: pg_catalog.f(x)."""
    if isinstance(node.this, exp.Identifier | exp.Column) and node.this.name.lower() in SCHEMAS:
        inner: exp.Expr = node.expression
        return inner
    return node


def without_order(node: exp.Expr) -> exp.Expr:
    """What is in it: a text without the order that it is compared in."""
    inner: exp.Expr = node.this
    return inner


def known_operator(node: exp.Expr) -> exp.Expr:
    """OPERATOR(pg_catalog.~) as the operator itself."""
    sign = str(node.args["operator"]).rpartition(".")[2]
    left, right = node.this, node.expression
    match sign:
        case "~" | "~*":
            kind = exp.RegexpLike if sign == "~" else exp.RegexpILike
            return kind(this=left, expression=right)
        case "!~" | "!~*":
            kind = exp.RegexpLike if sign == "!~" else exp.RegexpILike
            return exp.Not(this=kind(this=left, expression=right))
        case "=":
            return exp.EQ(this=left, expression=right)
        case "<>" | "!=":
            return exp.NEQ(this=left, expression=right)
        case "~~":
            return exp.Like(this=left, expression=right)
    raise WireError("0A000", f"the operator {sign[:20]} is not known here", hint="use =, ~ or LIKE")


# ---------------------------------------------------------------------- values


def as_value(node: exp.Expr, values: Sequence[Any]) -> exp.Expr:
    """The value of a parameter."""
    name = node.name
    if not (name.isdecimal() and 0 < int(name[:9]) <= len(values)):
        raise WireError("42P02", f"there is no parameter ${name[:20]}", hint="$1, $2, …")
    value = values[int(name) - 1]
    if isinstance(value, list | tuple):
        return exp.Array(expressions=[exp.convert(one) for one in value])
    return exp.convert(value)


def known_literal(node: exp.Expr) -> exp.Expr:
    """A text that PostgreSQL takes for a list: '{r,p}'."""
    beside = node.parent
    listing = isinstance(beside, exp.Cast) and beside.to.is_type(exp.DType.ARRAY)
    while isinstance(beside, exp.Paren):
        beside = beside.parent
    listing |= isinstance(beside, exp.EQ | exp.NEQ | exp.Any | exp.All | exp.Coalesce)
    listing |= isinstance(beside, exp.Anonymous) and beside.name.lower() in ("all", "any")
    if not (node.args.get("is_string") and listing and LIST.fullmatch(node.name)):
        return node
    parts = [part.strip().strip('"') for part in node.name[1:-1].split(",") if part.strip()]
    numbers = all(NUMBER.fullmatch(part) for part in parts)
    make: Callable[[str], exp.Expr] = exp.Literal.number if numbers else exp.Literal.string
    return exp.Array(expressions=[make(part) for part in parts])


def known_bytes(node: exp.Expr) -> exp.Expr:
    """A text with escapes: E'a\\nb'."""
    text = node.name
    for escape, character in (("\\n", "\n"), ("\\t", "\t"), ("\\'", "'"), ("\\\\", "\\")):
        text = text.replace(escape, character)
    return exp.Literal.string(text)


# ---------------------------------------------------------------------- casts


def known_cast(node: exp.Expr) -> exp.Expr:
    """Casts to PostgreSQL's own types: names are texts, tables and types are numbers."""
    kind = kind_of(node)
    if kind in TEXTS or kind in ("regrole", "aclitem"):
        return cast(node.this, "VARCHAR")
    if kind in ("oid", "xid"):
        return cast(node.this, "UINTEGER")
    if kind == "regproc":
        return called("table_word", node.this)
    if kind in WORDS:
        to_number, to_text = WORDS[kind]
        return known_object(node, to_number, to_text)
    return node


WORDS = {
    "regclass": ("to_regclass", "name_of_table"),
    "regtype": ("to_regtype", "format_type"),
    "regnamespace": ("to_regnamespace", "name_of_schema"),
}
"""The functions that make a number of a name, and a name of a number."""


def known_object(node: exp.Expr, to_number: str, to_text: str) -> exp.Expr:
    """A table or type by its name or number, as what stands around it wants it."""
    around = node.parent
    as_text = isinstance(around, exp.Cast) and kind_of(around) in TEXTS
    as_number = isinstance(around, exp.Cast) and kind_of(around) in ("oid", "int4", "int8", "int")
    literal = isinstance(node.this, exp.Literal) and node.this.is_string
    if literal and NUMBER.fullmatch(node.this.name):
        node.set("this", exp.Literal.number(node.this.name))
        literal = False
    if as_number or (literal and not as_text):
        named = literal or not isinstance(node.this, exp.Column | exp.Literal)
        return called(to_number, node.this) if named else cast(node.this, "UINTEGER")
    if literal:
        return cast(node.this, "VARCHAR")
    more = (exp.null(),) if to_text == "format_type" else ()
    return called(to_text, node.this, *more)


def kind_of(node: exp.Expr) -> str:
    """The type that a cast is to, in PostgreSQL's words."""
    to = node.args["to"]
    kind = to.args.get("kind")
    if isinstance(kind, exp.Expr):
        return str(kind.name or kind.sql("postgres")).rpartition(".")[2].lower()
    if isinstance(kind, str):
        return kind.rpartition(".")[2].strip('"').lower()
    return str(to.sql("postgres")).partition("(")[0].strip('"').lower()


def cast(this: exp.Expr, to: str) -> exp.Expr:
    """A cast to a type of the engine's."""
    return exp.Cast(this=this, to=exp.DataType.build(to, dialect="duckdb"))


def called(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of one of our functions."""
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])


# ---------------------------------------------------------------------- functions


def known_function(node: exp.Expr, caller: WireCaller) -> exp.Expr:
    """What a client asks about itself and the server."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
    if name in SAID:
        return exp.Literal.string(SAID[name](caller))
    if name in ("current_schemas", "currentschemas"):
        return exp.Array(expressions=[exp.Literal.string(one) for one in ("pg_catalog", "public")])
    if name == "json_build_object":
        pairs = [cast(one, "VARCHAR") if at % 2 == 0 else one
                 for at, one in enumerate(node.expressions)]  # fmt: skip
        return called("json_object", *pairs)
    if name == "pg_backend_pid":
        return exp.Literal.number(caller.process)
    if name == "current_setting":
        asked = node.expressions[0].name.lower() if node.expressions else ""
        value = caller.settings.get(asked)
        return exp.null() if value is None else exp.Literal.string(value)
    return node


SAID: dict[str, Callable[[WireCaller], str]] = {
    "version": lambda _: f"PostgreSQL {VERSION} (Voile)",
    "currentversion": lambda _: f"PostgreSQL {VERSION} (Voile)",
    "current_schema": lambda _: "public",
    "currentschema": lambda _: "public",
    "current_database": lambda caller: caller.database,
    "currentdatabase": lambda caller: caller.database,
    "current_catalog": lambda caller: caller.database,
    "currentcatalog": lambda caller: caller.database,
    "current_user": lambda caller: caller.user,
    "currentuser": lambda caller: caller.user,
    "session_user": lambda caller: caller.user,
    "sessionuser": lambda caller: caller.user,
    "current_role": lambda caller: caller.user,
    "currentrole": lambda caller: caller.user,
    "user": lambda caller: caller.user,
}

CHANGES: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], Any], ...] = (
    (exp.Table, known_table),
    (exp.Column, known_column),
    (exp.Dot, without_schema),
    (exp.Collate, without_order),
    (exp.Operator, known_operator),
    (exp.Cast, known_cast),
    (exp.Literal, known_literal),
    (exp.ByteString, known_bytes),
)


# ---------------------------------------------------------------------- names of columns


def result_names(tree: exp.Expr, found: Sequence[str]) -> list[str]:
    """What PostgreSQL calls the columns of a query; as they were found where it reads *."""
    select = tree
    while isinstance(select, exp.SetOperation | exp.Subquery | exp.Paren):
        select = select.this
    items = select.expressions if isinstance(select, exp.Select) else []
    if len(items) != len(found) or any(item.is_star for item in items):
        return list(found)
    return [item.alias or natural_name(item) for item in items]


def natural_name(item: exp.Expr) -> str:
    """What a column without a name is called: after its column, function or type."""
    for kind, name in NAMED:
        if isinstance(item, kind):
            return name(item)
    return UNNAMED


def name_of_cast(item: exp.Expr) -> str:
    """That of what is cast, or that of the type."""
    inner = natural_name(item.this)
    return SHORT.get(kind_of(item), kind_of(item)) if inner == UNNAMED else inner


def name_of_case(item: exp.Expr) -> str:
    """That of the column after ELSE."""
    default = item.args.get("default")
    return default.name if isinstance(default, exp.Column) else "case"


def name_of_subquery(item: exp.Expr) -> str:
    """That of its first column."""
    select = item.this
    if not (isinstance(select, exp.Select) and select.expressions):
        return UNNAMED
    first = select.expressions[0]
    return str(first.alias or natural_name(first))


def name_of_function(item: exp.Expr) -> str:
    """That of the function."""
    if isinstance(item, exp.Anonymous):
        return str(item.name).lower()
    known = item.sql_name().lower() if isinstance(item, exp.Func) else item.key
    return KEPT_NAMES.get(item.key, known)


UNNAMED = "?column?"
SHORT = {"int": "int4", "bigint": "int8", "smallint": "int2", "double precision": "float8",
         "real": "float4", "boolean": "bool", "decimal": "numeric"}  # fmt: skip
"""What PostgreSQL calls types within."""
NAMED: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (exp.Column | exp.Identifier, lambda item: str(item.name)),
    (exp.Dot, lambda item: natural_name(item.expression)),
    (exp.Cast, name_of_cast),
    (exp.Case, name_of_case),
    (exp.Subquery, name_of_subquery),
    (exp.Paren | exp.Bracket | exp.Collate, lambda item: natural_name(item.this)),
    (exp.Exists, lambda _: "exists"),
    (exp.Predicate | exp.Binary | exp.Unary, lambda _: UNNAMED),
    (exp.Func, name_of_function),
)
KEPT_NAMES = {
    "currentversion": "version", "currentdatabase": "current_database", "arrayagg": "array_agg",
    "currentschema": "current_schema", "currentuser": "current_user", "exists": "exists",
    "currentcatalog": "current_catalog", "currentrole": "current_role",
    "sessionuser": "session_user", "currentschemas": "current_schemas",
}  # fmt: skip
