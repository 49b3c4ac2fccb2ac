"""The rows of the catalogues: what PostgreSQL would say of the tables that are served.

`relations.json` has the names, numbers and columns of PostgreSQL 15's catalogues and types. Most
stay empty: there are no indexes, no triggers and no policies here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa

from voile.wire.conversation import FieldLike
from voile.wire.settings import DEFAULTS
from voile.wire.values import wire_type

CATALOG, PUBLIC, INFORMATION = 11, 2200, 13_000
"""The numbers of schemas."""
OWNER, DATABASE, TABLESPACE = 10, 16_384, 1663
FIRST_TABLE, FIRST_VIEW = 16_385, 13_100
DATABASE_NAME = "voile"
Row = dict[str, Any]

ARROW: dict[str, Any] = {
    "bool": pa.bool_(), "bytea": pa.binary(), "float4": pa.float32(), "float8": pa.float64(),
    "int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64(), "oid": pa.uint32(),
    "timestamptz": pa.timestamp("us"), "xid": pa.uint32(), "_int2": pa.list_(pa.int16()),
    "_float4": pa.list_(pa.float32()), "_oid": pa.list_(pa.uint32()),
    "int2vector": pa.list_(pa.int16()), "oidvector": pa.list_(pa.uint32()),
    "_text": pa.list_(pa.string()), "_name": pa.list_(pa.string()),
    "_char": pa.list_(pa.string()), "_aclitem": pa.list_(pa.string()),
}  # fmt: skip
"""By PostgreSQL's names; all others are texts."""
DEFAULT: dict[str, Any] = {
    "bool": False, "int2": 0, "int4": 0, "int8": 0, "oid": 0, "float4": 0.0, "float8": 0.0,
    "char": "", "name": "", "regproc": "-", "xid": 0,
}  # fmt: skip
"""What a column holds where nothing else is said; NULL for all others."""


@dataclass(frozen=True)
class Relation:
    """A table or view of the catalogues."""

    schema: str
    name: str
    oid: int
    columns: tuple[tuple[str, str], ...]
    """Names, and PostgreSQL's names of their types."""

    @property
    def key(self) -> str:
        """What it is called among the tables in memory."""
        return self.name if self.schema == "pg_catalog" else f"{self.schema}.{self.name}"

    @property
    def fields(self) -> pa.Schema:
        """Its columns in Arrow."""
        return pa.schema([(name, ARROW.get(kind, pa.string())) for name, kind in self.columns])

    def filled(self, rows: Sequence[Row]) -> pa.Table:
        """A table with these rows; what they do not say has its default."""
        unknown = {name for row in rows for name in row} - {name for name, _ in self.columns}
        if unknown:
            raise KeyError(f"{self.name} has no column {min(unknown)}")
        columns = [[row.get(name, DEFAULT.get(kind)) for row in rows]
                   for name, kind in self.columns]  # fmt: skip
        arrays = [
            pa.array(found, kind) for found, kind in zip(columns, self.fields.types, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.fields)


@dataclass(frozen=True)
class NamedType:
    """A type as pg_type has it."""

    name: str
    oid: int
    row: Row


@cache
def known() -> Any:
    """What the file says."""
    text = files("voile.wire.catalogue").joinpath("relations.json").read_text(encoding="utf-8")
    return json.loads(text)


@cache
def relations() -> dict[tuple[str, str], Relation]:
    """All of them, by schema and name."""
    found, number = {}, FIRST_VIEW
    for schema in ("pg_catalog", "information_schema"):
        for name, (oid, columns) in known()[schema].items():
            number += not oid
            pairs = (column.rpartition(":") for column in columns.split())
            listed = tuple((one, kind) for one, _, kind in pairs)
            found[schema, name] = Relation(schema, name, oid or number, listed)
    return found


def schema_oid(schema: str) -> int:
    """The number of a schema."""
    return {"pg_catalog": CATALOG, "information_schema": INFORMATION}.get(schema, PUBLIC)


@cache
def named_types() -> tuple[NamedType, ...]:
    """Types, and the types of lists of them."""
    found = []
    for line in known()["types"]:
        name, *rest = line.split()
        oid, size, by_value, kind, category, preferred, array, of, read, align, store, collation = (
            rest
        )
        row = {
            "oid": int(oid), "typname": name, "typnamespace": CATALOG, "typowner": OWNER,
            "typlen": int(size), "typbyval": by_value == "1", "typtype": kind,
            "typcategory": category, "typispreferred": preferred == "1", "typisdefined": True,
            "typdelim": ",", "typarray": int(array), "typelem": int(of), "typinput": read,
            "typoutput": f"{read[:-2]}out", "typreceive": f"{read[:-2]}recv", "typsubscript": "-",
            "typsend": f"{read[:-2]}send", "typalign": align, "typstorage": store,
            "typcollation": int(collation), "typtypmod": -1,
        }  # fmt: skip
        found.append(NamedType(name, int(oid), row))
        if int(array):
            changed = {
                "oid": int(array), "typname": f"_{name}", "typlen": -1, "typbyval": False,
                "typtype": "b", "typcategory": "A", "typispreferred": False, "typarray": 0,
                "typelem": int(oid), "typinput": "array_in", "typoutput": "array_out",
                "typreceive": "array_recv", "typsend": "array_send", "typstorage": "x",
                "typsubscript": "array_subscript_handler",
            }  # fmt: skip
            found.append(NamedType(f"_{name}", int(array), row | changed))
    return tuple(found)


def spelled_type(name: str) -> str:
    """What PostgreSQL calls a type in SQL."""
    if name.startswith("_"):
        return f"{spelled_type(name[1:])}[]"
    found: str = known()["formats"].get(name, name)
    return found


# ---------------------------------------------------------------------- rows


def filled_tables(tables: Mapping[str, Sequence[FieldLike]]) -> dict[str, pa.Table]:
    """The catalogues that have rows, by what they are called in memory."""
    rows = {
        "pg_namespace": list(namespaces()), "pg_class": list(classes(tables)),
        "pg_attribute": list(attributes(tables)), "pg_type": [one.row for one in named_types()],
        "pg_database": databases(), "pg_roles": roles(), "pg_settings": list(settings()),
        "pg_am": [{"oid": 2, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}],
        "pg_tablespace": [{"oid": TABLESPACE, "spcname": "pg_default", "spcowner": OWNER}],
        "pg_collation": list(collations()), "pg_tables": list(listed_tables(tables)),
        "pg_language": [{"oid": 12, "lanname": "internal", "lanowner": OWNER}],
    }  # fmt: skip
    found = {name: relations()["pg_catalog", name].filled(part) for name, part in rows.items()}
    for name, part in information(tables).items():
        relation = relations()["information_schema", name]
        found[relation.key] = relation.filled(part)
    return found


def namespaces() -> Iterator[Row]:
    """Schemas."""
    for name in ("pg_catalog", "public", "information_schema"):
        yield {"oid": schema_oid(name), "nspname": name, "nspowner": OWNER}


def classes(tables: Mapping[str, Sequence[FieldLike]]) -> Iterator[Row]:
    """Tables and views, of the catalogues too."""
    for relation in relations().values():
        table = relation.oid < FIRST_VIEW
        yield {
            "oid": relation.oid, "relname": relation.name, "relkind": "r" if table else "v",
            "relnamespace": schema_oid(relation.schema), "relnatts": len(relation.columns),
        } | COMMON  # fmt: skip
    for number, (name, fields) in enumerate(tables.items()):
        yield {
            "oid": FIRST_TABLE + number, "relname": name, "relkind": "r", "relam": 2,
            "relnamespace": PUBLIC, "relnatts": len(fields), "reltuples": -1.0,
            "relacl": [f"=r/{DATABASE_NAME}"],
        } | COMMON  # fmt: skip


COMMON: Row = {"relowner": OWNER, "relpersistence": "p", "relreplident": "d",
               "relispopulated": True}  # fmt: skip


def attributes(tables: Mapping[str, Sequence[FieldLike]]) -> Iterator[Row]:
    """Columns of all of them."""
    by_name = {one.name: one for one in named_types()}
    for relation in relations().values():
        for number, (name, kind) in enumerate(relation.columns, start=1):
            found = by_name.get(kind, by_name["text"])
            yield attribute(relation.oid, number, name, found)
    by_oid = {one.oid: one for one in named_types()}
    for place, fields in enumerate(tables.values()):
        for number, one in enumerate(fields, start=1):
            yield attribute(FIRST_TABLE + place, number, one.name, by_oid[wire_type(one.type).oid])


def attribute(relation: int, number: int, name: str, kind: NamedType) -> Row:
    """A column."""
    return {
        "attrelid": relation, "attname": name, "atttypid": kind.oid, "attnum": number,
        "attlen": kind.row["typlen"], "attcacheoff": -1, "atttypmod": -1, "attstattarget": -1,
        "attbyval": kind.row["typbyval"], "attalign": kind.row["typalign"],
        "attstorage": kind.row["typstorage"], "attislocal": True,
        "attcollation": kind.row["typcollation"],
    }  # fmt: skip


def databases() -> list[Row]:
    """The one that there is; each client knows it by the name that it connected to."""
    return [{
        "oid": DATABASE, "datname": DATABASE_NAME, "datdba": OWNER, "encoding": 6,
        "datlocprovider": "c", "datcollate": "C.UTF-8", "datctype": "C.UTF-8",
        "datallowconn": True, "datconnlimit": -1, "dattablespace": TABLESPACE,
    }]  # fmt: skip


def roles() -> list[Row]:
    """The owner of everything."""
    return [{"oid": OWNER, "rolname": DATABASE_NAME, "rolinherit": True, "rolcanlogin": True,
             "rolconnlimit": -1, "rolpassword": "********"}]  # fmt: skip


def settings() -> Iterator[Row]:
    """Settings as they are before a client changes them."""
    for name, value in DEFAULTS.items():
        yield {
            "name": name, "setting": value, "category": "Voile", "context": "user",
            "vartype": "string", "source": "default", "boot_val": value, "reset_val": value,
        }  # fmt: skip


def collations() -> Iterator[Row]:
    """How texts are ordered."""
    for oid, name in ((100, "default"), (950, "C"), (951, "POSIX")):
        yield {
            "oid": oid, "collname": name, "collnamespace": CATALOG, "collowner": OWNER,
            "collprovider": "c", "collisdeterministic": True, "collencoding": -1,
        }  # fmt: skip


def listed_tables(tables: Mapping[str, Sequence[FieldLike]]) -> Iterator[Row]:
    """The view pg_tables."""
    for relation in relations().values():
        if relation.oid < FIRST_VIEW:
            yield {"schemaname": relation.schema, "tablename": relation.name,
                   "tableowner": DATABASE_NAME}  # fmt: skip
    for name in tables:
        yield {"schemaname": "public", "tablename": name, "tableowner": DATABASE_NAME}


# ---------------------------------------------------------------------- information_schema


def information(tables: Mapping[str, Sequence[FieldLike]]) -> dict[str, list[Row]]:
    """The views of information_schema that have rows."""
    by_oid = {one.oid: one for one in named_types()}
    listed, columns, granted = [], [], []
    for name, fields in tables.items():
        place = {"table_catalog": DATABASE_NAME, "table_schema": "public", "table_name": name}
        listed.append(place | {"table_type": "BASE TABLE", "is_insertable_into": "NO",
                               "is_typed": "NO"})  # fmt: skip
        granted.append(place | {"grantor": DATABASE_NAME, "grantee": DATABASE_NAME,
                                "privilege_type": "SELECT", "is_grantable": "NO",
                                "with_hierarchy": "YES"})  # fmt: skip
        columns += [
            place | described_column(number, one, by_oid[wire_type(one.type).oid])
            for number, one in enumerate(fields, start=1)
        ]
    schemata = [
        {"catalog_name": DATABASE_NAME, "schema_name": str(one["nspname"]),
         "schema_owner": DATABASE_NAME} for one in namespaces()
    ]  # fmt: skip
    return {
        "tables": listed, "columns": columns, "schemata": schemata, "table_privileges": granted,
        "role_table_grants": granted,
        "information_schema_catalog_name": [{"catalog_name": DATABASE_NAME}],
        "enabled_roles": [{"role_name": DATABASE_NAME}],
    }  # fmt: skip


def described_column(number: int, one: FieldLike, kind: NamedType) -> Row:
    """A column as information_schema has it."""
    exact = {"int8": 64, "int4": 32, "int2": 16}.get(kind.name)
    bits = exact or {"float8": 53, "float4": 24}.get(kind.name)
    lists = kind.row["typcategory"] == "A"
    return {
        "column_name": one.name, "ordinal_position": number, "is_nullable": "YES",
        "data_type": "ARRAY" if lists else spelled_type(kind.name),
        "numeric_precision": bits, "numeric_precision_radix": 2 if bits else None,
        "numeric_scale": 0 if exact else None, "udt_catalog": DATABASE_NAME,
        "character_octet_length": 2**30 if kind.name == "text" else None,
        "datetime_precision": {"date": 0, "timestamp": 6, "time": 6}.get(kind.name),
        "udt_schema": "pg_catalog", "udt_name": kind.name, "dtd_identifier": str(number),
        "is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO",
        "is_generated": "NEVER", "is_updatable": "NO", "character_maximum_length": None,
    }  # fmt: skip
