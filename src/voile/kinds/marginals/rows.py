"""Synthetic rows, drawn from the model: to look at, to teach, to test programs with.

No row is anyone's. What they show is what the model shows, with the noise of sampling on top, and
they have no error bars: counts are answered by `query`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from voile.errors import UsageError
from voile.files import whole_file
from voile.formulas import is_formula
from voile.kinds.manifest import free_name
from voile.kinds.marginals.mixture import rows_of
from voile.kinds.parquet import tuples
from voile.kinds.table_files import check_file, formula_cells, text_columns, without_formulas

if TYPE_CHECKING:
    from voile.kinds.marginals.release import MarginalRelease

MOST_ROWS = 2**31
AT_ONCE = 2**18
"""Rows that are drawn at once."""
SYNTHETIC = "synthetic"
"""The column that marks rows in a file."""
ABOUT = (
    "Synthetic rows, drawn by Voile from a model that was fitted to noisy marginals. No row is "
    "anyone's; statistics of them have no error bars."
)


def synthetic_rows(release: MarginalRelease, count: int | None = None) -> Any:
    """So many rows as an Arrow table, the same at every call; as many as the model counts."""
    parts = list(batches(release, checked_count(release, count)))
    return pa.concat_tables(parts).replace_schema_metadata(metadata(release))


def checked_count(release: MarginalRelease, count: int | None) -> int:
    """How many rows to draw."""
    if count is None:
        count = max(0, round(release.manifest.model.rows))
    if not 0 <= count <= MOST_ROWS:
        raise UsageError(f"{count:,} rows cannot be drawn", hint=f"ask for at most {MOST_ROWS:,}")
    return count


def batches(release: MarginalRelease, count: int) -> Iterator[Any]:
    """Arrow tables of the rows; batch i depends on the seed and on i alone."""
    mixture, schema = release.model.mixture, release.schema
    for number, start in enumerate(range(0, max(count, 1), AT_ONCE)):
        some = min(AT_ONCE, count - start)
        rng = np.random.default_rng([release.manifest.model.seed, number])
        codes = rows_of(mixture, AT_ONCE, rng)
        yield pa.table(tuples(schema, [code[:some] for code in codes]))


def metadata(release: MarginalRelease) -> dict[bytes, bytes]:
    """What marks a file of rows as synthetic."""
    said = {
        "synthetic": True,
        "about": ABOUT,
        "release": release.name,
        "digest": release.manifest.digest,
        "simulated": release.manifest.simulated,
    }
    return {b"voile": json.dumps(said, ensure_ascii=False).encode()}


def write_rows(
    release: MarginalRelease,
    path: Path,
    count: int | None = None,
    *,
    overwrite: bool = False,
    csv_safe: bool = False,
) -> int:
    """Write rows to a Parquet or CSV file, each marked as synthetic; how many there are."""
    check_file(path, overwrite=overwrite)
    wanted = checked_count(release, count)
    mark = free_name(SYNTHETIC, release.schema.names)
    parts = (marked(table, mark) for table in batches(release, wanted))
    with whole_file(path, overwrite=overwrite) as file:
        if path.suffix.lower() == ".csv":
            write_csv(file, parts, csv_safe=csv_safe)
        else:
            write_parquet(file, parts, metadata(release))
    return wanted


def marked(table: Any, mark: str) -> Any:
    """With a column that says of every row that it is synthetic."""
    field = pa.field(mark, pa.bool_(), nullable=False)
    return table.append_column(field, pa.array(np.ones(table.num_rows, np.bool_)))


def write_parquet(file: IO[bytes], parts: Iterable[Any], said: dict[bytes, bytes]) -> None:
    """Its metadata say the same."""
    writer = None
    for table in parts:
        part = table.replace_schema_metadata(said)
        writer = writer or pq.ParquetWriter(file, part.schema, compression="zstd")
        writer.write_table(part)
    assert writer is not None  # noqa: S101  (there is at least one batch)
    writer.close()


def formulas_in(path: Path) -> int:
    """How many cells of a CSV file a spreadsheet might compute."""
    with pacsv.open_csv(path) as parts:
        tables = [pa.Table.from_batches([part]) for part in parts]
    columns = [column for table in tables for column in text_columns(table).values()]
    found = sum(pc.sum(formula_cells(column)).as_py() or 0 for column in columns)
    return int(found) + sum(map(is_formula, tables[0].column_names if tables else ()))


def write_csv(file: IO[bytes], parts: Iterable[Any], *, csv_safe: bool) -> None:
    """The names of the columns, and a line for every row."""
    for number, table in enumerate(parts):
        shown = without_formulas(table) if csv_safe else table
        pacsv.write_csv(shown, file, pacsv.WriteOptions(include_header=number == 0))
