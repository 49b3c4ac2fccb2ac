"""Names and values as SQL writes them."""

from __future__ import annotations

from typing import Any


def quote_identifier(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """`text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: Any) -> str:
    """A number or truth value as it is, anything else as an SQL string."""
    return repr(value) if isinstance(value, bool | int | float) else quote_literal(str(value))
