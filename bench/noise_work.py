"""What noise_1e8 runs, each in a process of its own: our noise, and the peers'."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq

from bench.adult import adult_schema, first_ages
from bench.stages import profiled
from voile.arrays import Words
from voile.engines.members import LocalMembers
from voile.kinds import parquet
from voile.kinds.views.publishing import write_view
from voile.kinds.views.writing import FILE_RANGES, RANGE_ROWS, ViewWriter
from voile.mechanisms import AlphaBeta
from voile.noise import Key
from voile.progress import Silent
from voile.schema import Schema


def rate(rows: int, seconds: float, **more: Any) -> dict[str, Any]:
    """What a task found: rows, seconds and rows a second."""
    return {"rows": rows, "seconds": seconds, "rate": rows / seconds} | more


def mechanism_for(rows: float, schema: Schema) -> AlphaBeta:
    """Noise of about `rows` rows on the whole of D."""
    mean = rows / schema.size
    return AlphaBeta(retention=0.9, noise=mean / (1 + mean))


def write_noise(mechanism: AlphaBeta, schema: Schema) -> dict[str, Any]:
    """A view of no records, as publishing writes it: draw, decode, Parquet, hash."""
    view = ViewWriter(mechanism, schema)
    none = LocalMembers(schema.sizes, np.empty(0, dtype=view.index.key_type))
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
        start = time.perf_counter()
        files = write_view(Path(folder), view, none, Key.from_seed(1), Silent())
        seconds = time.perf_counter() - start
    rows = sum(file.rows or 0 for file in files)
    size = sum(file.bytes for file in files)
    return rate(rows, seconds, files=len(files), bytes=size)


def warm_up(schema: Schema) -> None:
    """Load what is loaded once: compiled loops, Arrow's pools."""
    write_noise(mechanism_for(1e5, schema), schema)


def ours(rows: float) -> dict[str, Any]:
    """Noise of about so many rows, drawn and written."""
    schema = adult_schema()
    warm_up(schema)
    return write_noise(mechanism_for(rows, schema), schema)


def ours_profiled(rows: float) -> dict[str, Any]:
    """The same, with the processor seconds of each stage."""
    schema = adult_schema()
    warm_up(schema)
    with profiled() as stages:
        start = time.process_time()
        done = write_noise(mechanism_for(rows, schema), schema)
        used = time.process_time() - start
    return done | {"cpu_seconds": used, "stages": stages.seconds()}


def ours_draw(rows: float) -> dict[str, Any]:
    """The same ranges on the same threads, but nothing is kept or written."""
    schema = adult_schema()
    warm_up(schema)
    mechanism, key = mechanism_for(rows, schema), Key.from_seed(1)
    view = ViewWriter(mechanism, schema)
    cuts, index = view.cuts, view.index

    def draw(i: int) -> int:
        return len(mechanism.noise_rows(index, key, i, cuts[i], cuts[i + 1]))

    start = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        drawn = sum(pool.map(draw, range(len(cuts) - 1)))
    return rate(drawn, time.perf_counter() - start)


# ---------------------------------------------------------------------- pyarrow alone


class Recorder(pq.ParquetWriter):  # type: ignore[misc]
    """A writer that also keeps what it was given, to give it again."""

    files: list[Recorder]

    def __init__(self, where: Any, schema: Any, **settings: Any) -> None:
        super().__init__(where, schema, **settings)
        self.columns, self.settings = schema, settings
        self.tables: list[tuple[Any, dict[str, Any]]] = []
        self.files.append(self)

    def write_table(self, table: Any, **settings: Any) -> None:
        """Write a table and keep it."""
        super().write_table(table, **settings)
        self.tables.append((table, settings))

    @property
    def rows(self) -> int:
        """How many rows were written."""
        return sum(table.num_rows for table, _ in self.tables)

    def replay(self, path: Path, *, defaults: bool) -> int:
        """Write it all again, with our settings or with pyarrow's own."""
        settings = {} if defaults else self.settings
        with pq.ParquetWriter(path, self.columns, **settings) as again:
            for table, grouping in self.tables:
                again.write_table(table, **grouping)
        return self.rows


def recorded(mechanism: AlphaBeta, schema: Schema) -> list[Recorder]:
    """The Arrow tables that we hand to pyarrow, by file, with the settings that we use."""
    files: list[Recorder] = []
    with (
        patch.object(Recorder, "files", files, create=True),
        patch.object(pq, "ParquetWriter", Recorder),
    ):
        write_noise(mechanism, schema)
    assert files, "the Parquet files are no longer written with pq.ParquetWriter"
    return files


def pyarrow_alone(rows: float, ages: int, defaults: bool) -> dict[str, Any]:
    """As many files on as many threads, from columns that are in memory already.

    The columns are those of a slice of D, written as often as makes the number of our files.
    """
    schema = adult_schema()
    mechanism = mechanism_for(rows, schema)
    files = recorded(mechanism, first_ages(schema, ages))
    number = max(len(files), math.ceil(rows / (FILE_RANGES * RANGE_ROWS)))
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:

        def write(i: int) -> int:
            return files[i % len(files)].replay(Path(folder) / f"{i}.parquet", defaults=defaults)

        start = time.perf_counter()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            written = sum(pool.map(write, range(number)))
        seconds = time.perf_counter() - start
    return rate(written, seconds, files=number, held=sum(f.rows for f in files))


# ---------------------------------------------------------------------- Algorithm 2


def unique_by_sort(keys: Words) -> Words:
    """What np.unique did before it used a hash table, which for random words is far slower."""
    keys.sort(kind="stable")  # merges the sorted ones that are there with the new
    fresh = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    return keys[fresh]


UNIQUE: dict[str, Callable[[Words], Words]] = {"np.sort": unique_by_sort, "np.unique": np.unique}


def algorithm_2(schema: Schema, wanted: int, unique: Callable[[Words], Words]) -> Words:
    """The paper's β-step for a table of no rows: which tuples are inserted, without repetition.

    Tuples are drawn attribute by attribute; the ones already there are rejected and drawn again.
    """
    random = np.random.default_rng()
    taken = np.empty(0, dtype=np.uint64)
    while len(taken) < wanted:
        fresh = np.zeros(wanted - len(taken), dtype=np.uint64)
        for size in schema.sizes:
            fresh *= np.uint64(size)
            fresh += random.integers(size, size=len(fresh), dtype=np.uint64)
        taken = unique(np.concatenate([taken, fresh]))
    return taken


def timed_algorithm_2(rows: float, ages: int, unique: str) -> tuple[Schema, Words, float]:
    """On a slice of D, with as large a share of its tuples as `rows` are of the whole."""
    whole = adult_schema()
    schema, share = first_ages(whole, ages), rows / whole.size
    start = time.perf_counter()
    wanted = int(np.random.default_rng().binomial(schema.size, share))
    taken = algorithm_2(schema, wanted, UNIQUE[unique])
    return schema, taken, time.perf_counter() - start


def numpy_draw(rows: float, ages: int, unique: str) -> dict[str, Any]:
    """Algorithm 2 with NumPy, without writing."""
    _, taken, seconds = timed_algorithm_2(rows, ages, unique)
    return rate(len(taken), seconds)


def numpy_and_parquet(rows: float, ages: int, unique: str) -> dict[str, Any]:
    """Algorithm 2, then our Parquet writer on all threads."""
    warm_up(adult_schema())
    schema, taken, seconds = timed_algorithm_2(rows, ages, unique)
    threads = os.cpu_count() or 1
    number = threads * math.ceil(len(taken) / (FILE_RANGES * RANGE_ROWS) / threads)
    parts = np.array_split(taken, number)
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:

        def write(i: int) -> int:
            return parquet.write_part(Path(folder) / f"{i}.parquet", schema, [parts[i]])

        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            written = sum(pool.map(write, range(number)))
        seconds += time.perf_counter() - start
    return rate(written, seconds)


def loop_draw(rows: float) -> dict[str, Any]:
    """Algorithm 2 as it is printed: one tuple at a time."""
    sizes = adult_schema().sizes
    random = np.random.default_rng()
    taken: set[tuple[int, ...]] = set()
    start = time.perf_counter()
    while len(taken) < rows:
        taken.add(tuple(random.integers(sizes).tolist()))
    return rate(len(taken), time.perf_counter() - start)
