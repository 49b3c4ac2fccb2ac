"""What a view of a series has beside its rows: the histories of tuples, and what they score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voile.arrow import numpy_array
from voile.errors import ReleaseError
from voile.kinds.parquet import (
    ROW_GROUP,
    arrow_schema,
    codes_beside,
    one_array,
    read_beside,
    tuples,
)
from voile.kinds.views.series import Counts, Series, SeriesEstimator, SeriesHistory, read_texts
from voile.kinds.views.series_scores import combined, single
from voile.query.rows import HISTORY, SCORE, SPREAD
from voile.schema import Keys, Schema, TupleIndex

BYTES_BESIDE = 64
"""Of memory for history/, for each of its bytes where it is large."""

# ----------------------------------------------------------------------
# the histories of a series' tuples, to Parquet and back


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
    whole = read_whole(files, [HISTORY])[HISTORY]
    check_present(whole)
    found = pc.value_counts(one_array(whole))
    return found.field(0).to_pylist(), found.field(1).to_pylist()


def read_whole(files: Sequence[Path], columns: Sequence[str] | None = None) -> Any:
    """The one file of history/; texts are dictionaries."""
    if len(files) != 1:
        raise ValueError(f"{len(files)} files, not one")
    on_disk = files[0].stat().st_size
    return read_beside(files[0], columns, size_on_disk=on_disk, per_byte=BYTES_BESIDE)


def check_present(column: Any) -> None:
    """Refuse tuples without a history."""
    if column.null_count:
        raise ValueError(f"{column.null_count:,} tuples have no history")


def read_history(
    files: Sequence[Path], schema: Schema
) -> tuple[Keys, list[str], npt.NDArray[np.int64]]:
    """Keys of the tuples, in the order in which they were written, and their histories."""
    table = read_whole(files)
    coded = [codes_beside(table[a.name], a) for a in schema]
    check_present(table[HISTORY])
    named = one_array(table[HISTORY])
    keys = TupleIndex(schema.sizes).encode(coded)
    return keys, named.dictionary.to_pylist(), numpy_array(named.indices).astype(np.int64)


# ----------------------------------------------------------------------
# what a view of a series has beside its rows: the histories of tuples, and what they score


Name = Literal["current", "combined"]


class Histories:
    """The tuples that the views of a series have shown, and two estimators that read them."""

    def __init__(
        self, files: Sequence[Path], schema: Schema, mechanism: Series, changes: int | None
    ) -> None:
        self.files = list(files)
        self._schema = schema
        self._mechanism = mechanism
        self._changes = changes

    @property
    def view(self) -> int:
        """The number of the release's view in its series."""
        return self._mechanism.view_number

    @cached_property
    def texts(self) -> list[str]:
        """The different histories that occur, as texts."""
        return self._listed[0]

    @cached_property
    def _listed(self) -> tuple[list[str], Counts, npt.NDArray[np.int64]]:
        """The different histories, as texts and counts, and how many tuples have each."""
        try:
            texts, tuples = history_counts(self.files)
            return texts, read_texts(texts, self.view), np.array(tuples, np.int64)
        except ValueError as error:
            raise broken(error) from None

    @cached_property
    def history(self) -> SeriesHistory:
        """Every tuple that was shown, with its counts in all views."""
        try:
            keys, texts, which = read_history(self.files, self._schema)
            return SeriesHistory(keys, read_texts(texts, self.view)[which])
        except ValueError as error:
            raise broken(error) from None

    def of(self, codes: Sequence[npt.NDArray[Any]]) -> Counts:
        """The histories of tuples, given by the places of their values."""
        wanted = TupleIndex(self._schema.sizes).encode(codes)
        known = self.history
        places = np.searchsorted(known.keys, wanted)
        found = np.zeros((len(wanted), self.view), np.uint32)
        inside = places < len(known.keys)
        inside[inside] = known.keys[places[inside]] == wanted[inside]
        found[inside] = known.counts[places[inside]]
        return found

    # ------------------------------------------------------------------ estimators

    def estimator(self, name: Name) -> SeriesEstimator:
        """The estimator from the last view alone, or from all of them."""
        return self._current if name == "current" else self._combined

    @cached_property
    def _current(self) -> SeriesEstimator:
        noise = self._mechanism.noise
        return SeriesEstimator(single(noise, self.view), noise.retention)

    @cached_property
    def _combined(self) -> SeriesEstimator:
        """All views together, where it is known how much may have changed.

        In the multiset form only if nothing may: how far several equal records that come and go
        take it from the truth is not known.
        """
        noise = self._mechanism.noise
        assert self._changes is not None  # noqa: S101
        changes = self._changes * (self.view - 1)
        return SeriesEstimator(combined(noise, self.view), noise.retention, changes)

    def best(self, tuples: float) -> Name:
        """The estimator with the smaller error for a count over so many tuples of D.

        By public numbers alone: what the views show has no say in it.
        """
        of_changes = self._mechanism.form == "set" or self._changes == 0
        if self._changes is None or self.view == 1 or not of_changes:
            return "current"
        alone = self._mechanism.noise.single_variance(self.view) * tuples
        together = self._combined.scores.noise_variance * tuples + self._combined.drift**2
        return "combined" if together < alone else "current"

    def scores(self, name: Name) -> Any:
        """The score and the spread of every history that occurs."""
        texts, counts, _ = self._listed
        scores = self.estimator(name).scores
        value, spread = scores.of(counts)
        return pa.table(
            {
                HISTORY: pa.array(texts, pa.string()),
                SCORE: pa.array(value - scores.empty, pa.float64()),
                SPREAD: pa.array(spread, pa.float64()),
            }
        )

    def records(self, size: int) -> float:
        """About how many records the table has."""
        _, counts, tuples = self._listed
        scores = self.estimator(self.best(float(size))).scores
        return float(tuples @ (scores.of(counts)[0] - scores.empty)) + scores.empty * float(size)

    def note(self, name: Name) -> str:
        """Which views an answer is from, and what its interval allows for."""
        if name == "current":
            return f"from view {self.view} of the series alone"
        drift = self._combined.drift
        allowed = f"; changes between them are allowed for by ± {drift:.3g}" if drift else ""
        return f"from all {self.view} views of the series together{allowed}"


def broken(reason: ValueError) -> ReleaseError:
    """The error for histories that cannot be read."""
    return ReleaseError(
        f"history/: {reason}",
        hint="the release was damaged, or was not written by Voile; ask for it again",
    )
