"""Where rows are read and counted: what an engine owes, and which engine reads what.

`engines.table` and `engines.rows` say what is owed; `engines.duckdb` is the engine for one machine.
Everyone else gets tables and rows here, and names no engine.
"""

from voile.engines.registry import (
    CountingEngine,
    Engine,
    SqlTables,
    connect,
    counting_engine,
    files_of,
    open_domain,
    open_rows,
    open_tables,
    read_all,
    register,
)

__all__ = [
    "CountingEngine", "Engine", "SqlTables", "connect", "counting_engine", "files_of",
    "open_domain", "open_rows", "open_tables", "read_all", "register",
]  # fmt: skip
