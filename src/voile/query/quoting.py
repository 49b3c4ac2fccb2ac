"""Names and values as SQL writes them."""

from __future__ import annotations

import re
from typing import Any


def quote_identifier(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def bare_identifier(name: str) -> str:
    """`name` as one would type it: quoted only where SQL reads it as something else."""
    import sqlglot  # noqa: PLC0415  (publishing needs no parser)

    if re.fullmatch("[a-z_][a-z0-9_]*", name):
        keywords = sqlglot.Dialect.get_or_raise("duckdb").tokenizer_class.KEYWORDS
        if name.upper() not in keywords:
            return name
    return quote_identifier(name)


def quote_literal(text: str) -> str:
    """`text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: Any) -> str:
    """A number or truth value as it is, anything else as an SQL string."""
    return repr(value) if isinstance(value, bool | int | float) else quote_literal(str(value))
