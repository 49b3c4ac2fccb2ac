"""The histories of a series' tuples, to Parquet and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voile.engines.encode import codes
from voile.kinds.parquet import ROW_GROUP, arrow_schema, tuples
from voile.query.rows import HISTORY
from voile.schema import Keys, Schema, TupleIndex


def history_schema(schema: Schema) -> Any:
    """The schema's columns, and the counts in all views as a text."""
    return arrow_schema(schema).append(pa.field(HISTORY, pa.string(), nullable=False))


def write_history(
    path: Path, schema: Schema, keys: Keys, texts: list[str], which: npt.NDArray[np.int64]
) -> int:
    """Write tuples in the order of D with their histories, texts[which]; how many there are."""
    index, named = TupleIndex(schema.sizes), pa.array(texts, pa.string())
    wanted = history_schema(schema)
    with pq.ParquetWriter(path, wanted, compression="zstd", store_schema=False,
                          write_statistics=False) as writer:  # fmt: skip
        for start in range(0, len(keys), ROW_GROUP):
            part = slice(start, start + ROW_GROUP)
            rows = tuples(schema, index.decode(keys[part]))
            added = rows.append_column(wanted.field(HISTORY), named.take(pa.array(which[part])))
            writer.write_table(added.cast(wanted))
    return len(keys)


def history_counts(files: Sequence[Path]) -> tuple[list[str], list[int]]:
    """The different histories, and how many tuples have each; ValueError where one is missing."""
    columns = [pq.read_table(f, columns=[HISTORY], partitioning=None)[HISTORY] for f in files]
    whole = pa.chunked_array([c for column in columns for c in column.chunks], pa.string())
    check_present(whole)
    found = pc.value_counts(whole)
    return found.field(0).to_pylist(), found.field(1).to_pylist()


def check_present(column: Any) -> None:
    if column.null_count:
        raise ValueError(f"{column.null_count:,} tuples have no history")


def read_history(
    files: Sequence[Path], schema: Schema
) -> tuple[Keys, list[str], npt.NDArray[np.int64]]:
    """Keys of the tuples, in the order in which they were written, and their histories."""
    table = pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)
    coded = [codes(table[a.name].combine_chunks(), a) for a in schema]
    check_present(table[HISTORY])
    named = table[HISTORY].combine_chunks().dictionary_encode()
    keys = TupleIndex(schema.sizes).encode(coded)
    return keys, named.dictionary.to_pylist(), named.indices.to_numpy().astype(np.int64)
