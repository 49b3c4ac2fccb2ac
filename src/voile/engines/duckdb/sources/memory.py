"""Tables held in memory, and those that come with Voile."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from voile import datasets
from voile.engines.duckdb.sources.common import (
    READS,
    SOURCE,
    Connection,
    check_names,
    copy_stream,
    make_view,
    paths,
    reading,
)
from voile.errors import UsageError
from voile.query.quoting import quote_identifier


def attach_object(con: Connection, spec: Any) -> None:
    import pyarrow.dataset as ds  # noqa: PLC0415  (slow to load, and rarely needed)

    what = f"the {type(spec).__name__}"
    with reading(what):
        library = type(spec).__module__.partition(".")[0]
        if isinstance(spec, duckdb.DuckDBPyRelation):
            spec = spec.to_arrow_table()
        if library == "polars" and hasattr(spec, "collect"):
            spec = spec.collect()  # once: a lazy frame need not give the same rows again
        if library in {"pandas", "polars"} and hasattr(spec, "columns"):
            check_names([str(name) for name in spec.columns], what)
            pandas = library == "pandas"
            spec = pa.Table.from_pandas(spec, preserve_index=False) if pandas else spec.to_arrow()
        if isinstance(spec, pa.Table | pa.RecordBatch | ds.Dataset):
            check_names(spec.schema.names, what)
            con.register(SOURCE, spec)
        elif hasattr(spec, "__arrow_c_stream__"):
            stream = pa.RecordBatchReader.from_stream(spec)
            check_names(stream.schema.names, what)
            copy_stream(con, stream)
        else:
            raise UsageError(
                f"{what} is not a table", hint=f"a pandas, polars or Arrow table, or {READS}"
            )


def attach_dataset(con: Connection, name: str) -> str:
    found = datasets.find(name)
    columns = ", ".join(map(quote_identifier, found.columns))
    where = f" WHERE {found.where}" if found.where else ""
    with reading(f"dataset {name!r}"):
        make_view(con, f"SELECT {columns} FROM read_parquet({paths([found.path])}){where}")
    return found.name.split("/")[0]
