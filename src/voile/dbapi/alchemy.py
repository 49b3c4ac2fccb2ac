"""SQLAlchemy's dialects: voile:///adult.voile, voile+https://host/?token_file=…"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlalchemy import types
from sqlalchemy.engine import URL, default
from sqlalchemy.exc import ArgumentError, NoSuchTableError
from sqlalchemy.sql import compiler

from voile.dbapi.statements import SCHEMA, SCHEMAS
from voile.errors import did_you_mean

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection as EngineConnection

    from voile.dbapi.results import Field

FLAGS = ("intervals", "charge", "insecure")
TEXTS = ("token", "token_file", "ca")
OPTIONS = ("confidence", *FLAGS, *TEXTS)
TRUTHS = {"on": True, "true": True, "1": True, "yes": True,
          "off": False, "false": False, "0": False, "no": False}  # fmt: skip
TYPES: dict[Any, type[types.TypeEngine[Any]]] = {
    pa.string(): types.VARCHAR,
    pa.int64(): types.BIGINT,
    pa.float64(): types.DOUBLE,
    pa.bool_(): types.BOOLEAN,
    pa.date32(): types.DATE,
}


class ReleaseCompiler(compiler.SQLCompiler):
    """SQL as a release understands it."""

    def limit_clause(self, select: Any, **keywords: Any) -> str:
        """LIMIT and OFFSET, each by itself."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **keywords)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **keywords)
        return text

    def visit_empty_set_expr(self, element_types: Any, **keywords: Any) -> str:
        """No value at all."""
        del element_types, keywords
        return "NULL"


class ReleaseTypeCompiler(compiler.GenericTypeCompiler):
    """Types as DuckDB writes them."""

    def visit_DATETIME(self, type_: Any, **keywords: Any) -> str:  # noqa: N802  (SQLAlchemy's)
        """TIMESTAMP."""
        return self.visit_TIMESTAMP(type_, **keywords)

    def visit_string(self, type_: Any, **keywords: Any) -> str:
        """VARCHAR, of any length."""
        del type_, keywords
        return "VARCHAR"

    visit_text = visit_unicode = visit_unicode_text = visit_string
    visit_VARCHAR = visit_NVARCHAR = visit_TEXT = visit_CLOB = visit_CHAR = visit_string  # noqa: N815


class VoileDialect(default.DefaultDialect):
    """Releases of this machine."""

    name = "voile"
    driver = "release"
    paramstyle = "qmark"
    statement_compiler = ReleaseCompiler
    type_compiler_cls = ReleaseTypeCompiler
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = False
    supports_alter = False
    supports_comments = False
    supports_sequences = False
    supports_schemas = True
    supports_views = False
    supports_sane_rowcount = False
    supports_default_values = False
    supports_empty_insert = False
    postfetch_lastrowid = False
    insert_returning = False
    default_schema_name = SCHEMA
    max_identifier_length = 1000

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The module of DB-API 2.0."""
        import voile.dbapi as module  # noqa: PLC0415  (as SQLAlchemy wants it)

        return module

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """The path of the release, and the options of the URL."""
        if url.host:
            raise ArgumentError(
                f"{url.host!r} stands where a host does, and a release is a path: write three "
                f"slashes, voile:///{url.host}{'/' + url.database if url.database else ''}; a "
                "server is voile+https://host"
            )
        if not url.database:
            raise ArgumentError("the URL names no release: write voile:///adult.voile")
        return [url.database], options_of(url.query)

    # ------------------------------------------------------------------ what SQLAlchemy asks first

    def initialize(self, connection: EngineConnection) -> None:
        """Nothing need be asked to know what there is."""
        del connection
        self.server_version_info = (16, 0)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing was written, but settings end: see `voile.dbapi.Connection.rollback`."""
        dbapi_connection.rollback()

    def do_commit(self, dbapi_connection: Any) -> None:
        """Nothing: nothing was written."""

    def do_begin(self, dbapi_connection: Any) -> None:
        """Nothing: all is only read."""

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Whether another connection would help."""
        del connection, cursor
        return "is closed" in str(e)

    # ------------------------------------------------------------------ reflection

    def _tables(self, connection: EngineConnection) -> dict[str, tuple[Field, ...]]:
        session: Any = connection.connection.dbapi_connection
        found: dict[str, tuple[Field, ...]] = session.session.tables
        return found

    def _fields(
        self, connection: EngineConnection, name: str, schema: str | None
    ) -> tuple[Field, ...]:
        if (schema or "").lower() in SCHEMAS:
            for table, fields in self._tables(connection).items():
                if table.lower() == name.lower():
                    return fields
        raise NoSuchTableError(f"{schema}.{name}" if schema else name)

    def get_schema_names(self, connection: EngineConnection, **_: Any) -> list[str]:
        """The one schema."""
        del connection
        return [SCHEMA]

    def get_table_names(
        self, connection: EngineConnection, schema: str | None = None, **_: Any
    ) -> list[str]:
        """The releases."""
        here = (schema or "").lower() in SCHEMAS
        return list(self._tables(connection)) if here else []

    def get_view_names(
        self, connection: EngineConnection, schema: str | None = None, **_: Any
    ) -> list[str]:
        """None."""
        del connection, schema
        return []

    get_materialized_view_names = get_temp_table_names = get_temp_view_names = get_view_names
    get_sequence_names = get_view_names

    def has_table(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **_: Any
    ) -> bool:
        """Whether there is a release of that name."""
        try:
            self._fields(connection, table_name, schema)
        except NoSuchTableError:
            return False
        return True

    def has_schema(self, connection: EngineConnection, schema_name: str, **_: Any) -> bool:
        """Whether it is the one schema."""
        del connection
        return schema_name.lower() in SCHEMAS

    def has_sequence(
        self, connection: EngineConnection, sequence_name: str, schema: str | None = None, **_: Any
    ) -> bool:
        """There are none."""
        del connection, sequence_name, schema
        return False

    def has_index(
        self,
        connection: EngineConnection,
        table_name: str,
        index_name: str,
        schema: str | None = None,
        **_: Any,
    ) -> bool:
        """There are none."""
        del connection, table_name, index_name, schema
        return False

    def get_columns(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[Any]:
        """The columns of the public domain, with their types."""
        return [
            {
                "name": field.name,
                "type": TYPES.get(field.type, types.VARCHAR)(),
                "nullable": True,
                "default": None,
                "autoincrement": False,
                "comment": None,
            }
            for field in self._fields(connection, table_name, schema)
        ]

    def get_pk_constraint(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **_: Any
    ) -> Any:
        """There is none: no column tells people apart."""
        self._fields(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def _none(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[Any]:
        self._fields(connection, table_name, schema)
        return []

    get_foreign_keys = get_indexes = get_unique_constraints = get_check_constraints = _none

    def get_table_comment(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **_: Any
    ) -> Any:
        """There is none."""
        self._fields(connection, table_name, schema)
        return {"text": None}

    def get_view_definition(
        self, connection: EngineConnection, view_name: str, schema: str | None = None, **_: Any
    ) -> str:
        """There are no views."""
        del connection, schema
        raise NoSuchTableError(view_name)


class HttpsDialect(VoileDialect):
    """Servers on any machine; the token is the URL's password, or in a file."""

    driver = "https"
    supports_statement_cache = True

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """The address of the server, and the options of the URL."""
        if not url.host:
            raise ArgumentError(f"the URL names no server: write voile+{self.driver}://host")
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = f":{url.port}" if url.port else ""
        path = f"/{url.database}" if url.database else ""
        options = options_of(url.query)
        if url.password is not None:
            if "token" in options:
                raise ArgumentError("the URL has two tokens: a password, and token=")
            options["token"] = str(url.password)
        return [f"{self.driver}://{host}{port}{path}"], options


class HttpDialect(HttpsDialect):
    """Servers on this machine."""

    driver = "http"
    supports_statement_cache = True


def options_of(query: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a URL, as `connect` takes them."""
    found: dict[str, Any] = {}
    for name, text in query.items():
        if name not in OPTIONS:
            raise ArgumentError(
                f"the URL has an option {name!r}; {did_you_mean(name, list(OPTIONS))}"
            )
        if not isinstance(text, str):
            raise ArgumentError(f"the URL has the option {name!r} more than once")
        found[name] = option(name, text)
    return found


def option(name: str, text: str) -> Any:
    """The value of one option."""
    if name in TEXTS:
        return text
    if name in FLAGS:
        if text.lower() not in TRUTHS:
            raise ArgumentError(f"the option {name} is {text!r}: write {name}=true, or false")
        return TRUTHS[text.lower()]
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"the option {name} is {text!r}: write {name}=0.95") from None
