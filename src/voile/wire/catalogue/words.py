"""Functions of PostgreSQL that its clients call on the catalogues, as macros over these tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voile.query.quoting import literal
from voile.query.quoting import quote_identifier as quoted
from voile.wire.catalogue.relations import (
    DATABASE_NAME,
    FIRST_TABLE,
    FIRST_VIEW,
    named_types,
    relations,
    schema_oid,
    spelled_type,
)

NOTHING = (
    "pg_get_expr(a, b) pg_get_expr(a, b, c) pg_get_indexdef(a) pg_get_indexdef(a, b, c) "
    "pg_get_constraintdef(a) pg_get_constraintdef(a, b) pg_get_viewdef(a) pg_get_viewdef(a, b) "
    "pg_get_ruledef(a) pg_get_triggerdef(a) pg_get_triggerdef(a, b) pg_get_functiondef(a) "
    "pg_get_function_result(a) pg_get_function_arguments(a) pg_get_partkeydef(a) "
    "pg_get_function_identity_arguments(a) pg_get_statisticsobjdef_columns(a) "
    "pg_get_statisticsobjdef(a) pg_get_serial_sequence(a, b) pg_tablespace_location(a) "
    "shobj_description(a, b) pg_get_function_sqlbody(a) pg_get_partition_constraintdef(a) "
    "pg_relation_filenode(a) inet_server_addr() inet_client_addr() pg_last_xact_replay_timestamp() "
    "pg_stat_get_numscans(a) pg_my_temp_schema() pg_postmaster_start_time()"
)
"""Of what does not exist here."""
TRUE = (
    "pg_type_is_visible(a) pg_function_is_visible(a) "
    "pg_collation_is_visible(a) pg_operator_is_visible(a) pg_opclass_is_visible(a) "
    "pg_statistics_obj_is_visible(a) pg_conversion_is_visible(a) pg_ts_config_is_visible(a) "
    "has_database_privilege(a, b) has_database_privilege(a, b, c) has_schema_privilege(a, b) "
    "has_schema_privilege(a, b, c) pg_has_role(a, b) pg_has_role(a, b, c) has_type_privilege(a, b)"
)
FALSE = (
    "pg_is_other_temp_schema(a) pg_relation_is_publishable(a) pg_is_in_recovery() "
    "pg_try_advisory_lock(a) pg_is_wal_replay_paused() pg_cancel_backend(a) "
    "pg_terminate_backend(a) row_security_active(a) pg_jit_available()"
)
ZERO = (
    "pg_table_size(a) pg_relation_size(a) pg_relation_size(a, b) pg_total_relation_size(a) "
    "pg_indexes_size(a) pg_database_size(a) pg_tablespace_size(a) pg_relation_is_updatable(a, b) "
    "pg_column_is_updatable(a, b, c)"
)
EMPTY = "pg_advisory_unlock_all() pg_notify(a, b) pg_sleep(a)"
"""Which give nothing, and do nothing here."""
PRIVILEGES = (
    "has_table_privilege(a, p)", "has_table_privilege(u, a, p)", "has_column_privilege(a, c, p)",
    "has_column_privilege(u, a, c, p)", "has_any_column_privilege(a, p)",
    "has_any_column_privilege(u, a, p)", "has_sequence_privilege(a, p)",
    "has_function_privilege(a, p)", "has_foreign_data_wrapper_privilege(a, p)",
    "has_server_privilege(a, p)",
)  # fmt: skip
KEYWORDS = ("all and any array as asc both case cast check collate column constraint create cross "
            "current_date default desc distinct do else end except false fetch for foreign from "
            "full grant group having in inner intersect into is join leading left like limit not "
            "null offset on only or order outer primary references right select some table then "
            "to trailing true union unique user using values when where window with")  # fmt: skip
OTHERS = {
    "table_word(a)": "replace(regexp_extract(a::VARCHAR, '([^.]*)$', 1), '\"', '')",
    "pg_get_userbyid(a)": literal(DATABASE_NAME),
    "pg_encoding_to_char(a)": "CASE WHEN a = 6 THEN 'UTF8' ELSE 'SQL_ASCII' END",
    "pg_char_to_encoding(a)": "6",
    "pg_client_encoding()": "'UTF8'",
    "quote_ident(a)": "CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_$]*') THEN a "
    "ELSE '\"' || replace(a, '\"', '\"\"') || '\"' END",
    "quote_literal(a)": "'''' || replace(a::VARCHAR, '''', '''''') || ''''",
    "pg_size_pretty(a)": "a::VARCHAR || ' bytes'",
    "to_regproc(a)": "NULL::UINTEGER",
    "col_description(a, b)": "NULL::VARCHAR",
    "obj_description(a)": "NULL::VARCHAR",
    "obj_description(a, b)": "NULL::VARCHAR",
    "set_config(a, b, c)": "b::VARCHAR",
    "pg_typeof(a)": "lower(typeof(a))",
    "array_upper(a, b)": "nullif(len(a), 0)::INTEGER",
    "array_lower(a, b)": "CASE WHEN len(a) > 0 THEN 1 END",
    "array_ndims(a)": "CASE WHEN len(a) > 0 THEN 1 END",
    "generate_subscripts(a, b)": "unnest(range(1, coalesce(len(a), 0)::BIGINT + 1))",
    "_pg_expandarray(a)": "unnest(list_transform(a, lambda x, i: {'x': x, 'n': i}))",
    "pg_options_to_table(a)": "NULL",
    "txid_current()": "1::BIGINT",
    "pg_backend_start()": "NULL::TIMESTAMP",
    "inet_server_port()": "NULL::INTEGER",
    "pg_stat_get_backend_idset()": "NULL::INTEGER",
    "pg_index_column_has_property(a, b, c)": "false",
    "pg_indexam_has_property(a, b)": "false",
}  # fmt: skip


def prelude(tables: Sequence[str], filled: Sequence[str]) -> Iterator[str]:
    """What makes the empty tables, and the functions, about the tables that are served."""
    for relation in relations().values():
        if relation.key not in filled:
            columns = ", ".join(
                f"{quoted(name)} {sql_type(kind)}" for name, kind in relation.columns
            )
            yield f"CREATE TABLE {quoted(relation.key)} ({columns})"
    yield from grouped_macros(tables)
    yield (
        f"CREATE MACRO pg_get_keywords() AS TABLE SELECT unnest({KEYWORDS.split()!r}) AS word, "
        "'R' AS catcode, true AS barelabel, 'reserved' AS catdesc, '' AS baredesc"
    )


def grouped_macros(tables: Sequence[str]) -> Iterator[str]:
    """Macros; those of one name with different parameters are one statement."""
    bodies: dict[str, str] = {}
    for listed, body in ((NOTHING, "NULL::VARCHAR"), (TRUE, "true"), (FALSE, "false"),
                         (ZERO, "0::BIGINT"), (EMPTY, "''")):  # fmt: skip
        for head in listed.replace(") ", ")\n").splitlines():
            bodies[head] = body
    for head in PRIVILEGES:
        bodies[head] = "upper(p) LIKE 'SELECT%' OR upper(p) LIKE 'USAGE%'"
    bodies |= OTHERS | objects(tables)
    heads: dict[str, list[str]] = {}
    for head, body in bodies.items():
        name, _, parameters = head.partition("(")
        heads.setdefault(name, []).append(f"({parameters} AS ({body})")
    for name, parts in heads.items():
        yield f"CREATE MACRO {name}{', '.join(parts)}"


def sql_type(kind: str) -> str:
    """The type of a column that stays empty."""
    listed = {"int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]", "_text": "VARCHAR[]",
              "_name": "VARCHAR[]", "_char": "VARCHAR[]", "_aclitem": "VARCHAR[]",
              "_int2": "SMALLINT[]", "_oid": "UINTEGER[]", "_float4": "FLOAT[]",
              "bool": "BOOLEAN", "bytea": "BLOB", "float4": "FLOAT", "float8": "DOUBLE",
              "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "oid": "UINTEGER",
              "timestamptz": "TIMESTAMP", "xid": "UINTEGER"}  # fmt: skip
    return listed.get(kind, "VARCHAR")


def objects(tables: Sequence[str]) -> dict[str, str]:
    """Numbers of names, and names of numbers.

    No macro looks into a table: what it is given would be read as a column of that one.
    """
    numbers = {one.name: one.oid for one in relations().values()}
    numbers |= {name: FIRST_TABLE + place for place, name in enumerate(tables)}
    schemas = {name: schema_oid(name) for name in ("pg_catalog", "public", "information_schema")}
    types = {one.oid: spelled_type(one.name) for one in named_types()}
    named = {one.name: one.oid for one in named_types()} | {
        words: oid for oid, words in types.items()
    } | {"int": 23, "decimal": 1700, "float": 701}  # fmt: skip
    return {
        "to_regclass(a)": chosen("table_word(a)", numbers),
        "name_of_table(a)": f"coalesce({chosen('a::UINTEGER', swapped(numbers))}, a::VARCHAR)",
        "to_regnamespace(a)": chosen("a", schemas),
        "name_of_schema(a)": f"coalesce({chosen('a::UINTEGER', swapped(schemas))}, a::VARCHAR)",
        "format_type(a, b)": chosen("a::UINTEGER", types),
        "to_regtype(a)": chosen("regexp_replace(a, '^pg_catalog\\.', '')", named),
        "pg_table_is_visible(a)": f"a::UINTEGER NOT BETWEEN {FIRST_VIEW} AND {FIRST_TABLE - 1}",
    }


def swapped(numbers: Mapping[str, int]) -> dict[int, str]:
    """Names by numbers."""
    return {number: name for name, number in numbers.items()}


def chosen(by: str, among: Mapping[Any, Any]) -> str:
    """What stands for a value; numbers as those of objects."""
    pairs = [
        f"WHEN {literal(key)} THEN {literal(value)}{'::UINTEGER' * isinstance(value, int)}"
        for key, value in among.items()
    ]
    return f"CASE {by} {' '.join(pairs)} END"
