"""The rows of a release in Parquet files that any tool opens: written from keys and codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from voile.arrays import parts_of_groups
from voile.arrow import arrow_array, numpy_array
from voile.engines.encode import (
    OUTSIDE,
    codes,
    column_type,
    computed_values,
    domain_array,
    is_computed,
    values_at,
)
from voile.errors import ReleaseError
from voile.kinds.footers import unpacked_bytes
from voile.schema import Attribute, Keys, Schema, TupleIndex
from voile.schema.index import code_type

ROW_GROUP = 2**20
MOST_BESIDE = 2**27
"""Bytes of memory for a file that is read as a whole, however small the release is."""
WIDTHS = {pa.string(): 4, pa.int32(): 4, pa.date32(): 4, pa.bool_(): 1}
"""Bytes of a value in memory, where they are not 8; a text is a place in a dictionary."""
LISTED = 2**16
"""Columns with larger domains gain nothing from a dictionary."""


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """A file, or some of its columns, as an Arrow table.

    `pq.read_table` would load Arrow's data sets, and pandas with them, for nothing.
    """
    try:
        with pq.ParquetFile(path) as file:
            return file.read(None if columns is None else list(columns))
    except (OSError, pa.ArrowException, MemoryError) as error:
        raise ReleaseError(
            f"{path.parent.name}/{path.name} cannot be read: {error}", hint="try `voile verify`"
        ) from None


def read_beside(
    path: Path, columns: Sequence[str] | None = None, *, size_on_disk: int, per_byte: int
) -> Any:
    """As `read_parquet`, of a file that stands beside the rows and is read as a whole.

    Texts stay dictionaries: one that a million rows have is in memory once. What would take more
    memory than `per_byte` for each of the release's bytes is refused before it is read.
    """
    name = f"{path.parent.name}/{path.name}"
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        texts = [field.name for field in schema if field.type == pa.string()]
        needed = rows * sum(WIDTHS.get(field.type, 8) for field in schema)
        needed += unpacked_bytes(path, name)
        if needed > max(MOST_BESIDE, per_byte * size_on_disk):
            raise ReleaseError(
                f"{name} would take {needed:,} bytes of memory, which is more than a release of "
                f"{size_on_disk:,} bytes can be about"
            )
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            table = file.read(None if columns is None else list(columns))
    except (OSError, pa.ArrowException, MemoryError) as error:
        raise ReleaseError(f"{name} cannot be read: {error}", hint="try `voile verify`") from None
    return table.unify_dictionaries().combine_chunks()


def one_array(column: Any) -> Any:
    """A column of a table that `read_beside` has read, as one array."""
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.array([], column.type)


def codes_beside(column: Any, attribute: Attribute) -> Any:
    """The codes of a column of such a table."""
    found = one_array(column)
    if not pa.types.is_dictionary(found.type):
        return codes(found, attribute)
    missing = attribute.size - 1 if attribute.null else OUTSIDE
    places = np.append(codes(found.dictionary, attribute), missing)
    return places[numpy_array(found.indices, len(places) - 1)]


def arrow_schema(schema: Schema) -> Any:
    """The columns of a release's files."""
    return pa.schema([pa.field(a.name, column_type(a), nullable=a.null) for a in schema])


def written_schema(schema: Schema) -> Any:
    """As `arrow_schema`, with texts as the dictionaries that they are written from."""
    fields = []
    for attribute, field in zip(schema, arrow_schema(schema), strict=True):
        codes = pa.from_numpy_dtype(code_type(attribute.size))
        texts = pa.dictionary(codes, field.type)
        fields.append(field.with_type(texts) if attribute.kind == "categorical" else field)
    return pa.schema(fields)


def write_part(path: Path | BinaryIO, schema: Schema, batches: Iterable[Keys]) -> int:
    """Write batches of keys as one file, or into one that is open; returns the number of rows.

    Row groups are cut by count alone: where a batch ends depends on the private rows.
    """
    index = TupleIndex(schema.sizes)
    decoders = [Decoder(attribute) for attribute in schema]
    columns = written_schema(schema)
    rows = 0
    with pq.ParquetWriter(
        path,
        columns,
        compression="zstd",
        compression_level=1,
        use_dictionary=[a.name for a in schema if a.size <= LISTED],
        store_schema=False,
        # They take as long as all the rest of writing. Other tools would skip row groups by them.
        write_statistics=False,
    ) as writer:
        for parts in parts_of_groups(batches, ROW_GROUP):
            codes = index.decode_parts(parts)
            decoded = [decode(code) for decode, code in zip(decoders, codes, strict=True)]
            writer.write_table(pa.table(decoded, schema=columns), row_group_size=ROW_GROUP)
            rows += len(codes[0])
    return rows


def write_table(path: Path, schema: Schema, codes: Sequence[Any], key: str, keys: Any) -> int:
    """Write tuples with the key of each in front, as one file; returns the number of rows."""
    table = tuples(schema, codes).add_column(0, pa.field(key, pa.string()), keys)
    pq.write_table(table, path, compression="zstd", compression_level=1, store_schema=False,
                   write_statistics=False, row_group_size=ROW_GROUP)  # fmt: skip
    return int(table.num_rows)


def tuples(schema: Schema, codes: Sequence[Any]) -> Any:
    """The tuples with these codes, as an Arrow table."""
    columns = [values_at(a, code) for a, code in zip(schema, codes, strict=True)]
    return pa.table(columns, schema=arrow_schema(schema))


class Decoder:
    """Codes of one attribute back to its values; that they are codes of some is not checked."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute
        # A range may be too long to list, and need not be.
        self._values = None if is_computed(attribute) else domain_array(attribute)

    def __call__(self, codes: Any) -> Any:
        attribute = self._attribute
        if is_computed(attribute):
            return computed_values(attribute, codes)
        assert self._values is not None  # noqa: S101
        if attribute.kind == "categorical":
            # Parquet takes a dictionary of texts as it is: no value is hashed again.
            if not attribute.null:
                return dictionary_array(arrow_array(codes), self._values)
            missing = codes == attribute.size - 1
            return dictionary_array(
                arrow_array(codes, missing), self._values.slice(0, attribute.size - 1)
            )
        return self._values.take(arrow_array(codes))


def dictionary_array(places: Any, values: Any) -> Any:
    """Values by their places, which are not checked again: they are within the dictionary."""
    return pa.DictionaryArray.from_arrays(places, values, safe=False)
