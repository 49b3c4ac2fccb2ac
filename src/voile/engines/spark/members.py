"""The rows of a table by key, where they lie on a cluster.

A release's rows are made there: rows become keys, keys are sorted into the parts of the release,
and each part is written by one task, with the coins that it would have on one machine. Files come
to the driver in pieces. A task that is done twice makes the same file: the first to come is taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from voile.arrays import Ints
from voile.engines.jobs import CellCounts, KeyStep, PartWriter, added, key_names
from voile.engines.members import Members, WrittenPart, WrittenParts, part_name
from voile.engines.spark.session import Cluster, Frame
from voile.engines.spark.table import SparkTable, changed
from voile.engines.spark.work import (
    COUNT,
    FIGURES,
    FILES,
    FINE,
    KEYS_READ,
    PART,
    ROWS_READ,
    WRONG,
    Coder,
    FileWork,
    PartKeys,
    StepWork,
    keys_output,
)
from voile.errors import ReleaseError, UsageError
from voile.noise import Key
from voile.noise.subkeys import Subkeys
from voile.progress import Progress, Silent
from voile.schema import Keys, Schema, TupleIndex


class SparkMembers(Members):
    """Rows of a cluster's table by key; they are read when they are counted or written."""

    def __init__(
        self,
        table: SparkTable,
        schema: Schema,
        *,
        drop_nulls: bool,
        distinct: bool = False,
        step: tuple[KeyStep, Key] | None = None,
    ) -> None:
        self.table, self.schema, self.drop_nulls = table, schema, drop_nulls
        self.sizes = tuple(schema.sizes)
        self._distinct, self._step = distinct, step

    @property
    def cluster(self) -> Cluster:
        """Where the rows are."""
        return self.table.cluster

    @property
    def index(self) -> TupleIndex:
        """The numbering of the domain's tuples."""
        return TupleIndex(self.sizes)

    @property
    def coder(self) -> Coder:
        """How rows become codes."""
        return Coder(tuple(self.schema), self.drop_nulls)

    def __len__(self) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        if not self._distinct:
            return self.table.used_rows(self.schema, drop_nulls=self.drop_nulls)
        frame = self._keys(1, None).groupBy(*key_names(self.index), WRONG).sum(COUNT)
        counted = frame.groupBy(WRONG).count()
        return self.table.fitting(self.cluster.table(counted), self.schema, self.drop_nulls)

    @property
    def keys(self) -> Keys:
        """Refused: the keys stay on the cluster."""
        raise UsageError(
            f"this needs all rows of {self.table.name!r} at once, and they stay on the cluster",
            hint="publish one release at a time from a cluster (without a series), or use a file "
            "of this machine",
        )

    def distinct(self) -> SparkMembers:
        """Each key once."""
        return SparkMembers(self.table, self.schema, drop_nulls=self.drop_nulls, distinct=True)

    def column_counts(self, columns: Sequence[int]) -> list[Ints]:
        """How often each value of some columns occurs."""
        if self._distinct:
            raise UsageError(
                "noise that follows the table itself is for tables that may repeat a row",
                hint="use the multiset form, or give a prior",
            )
        job = CellCounts(self.sizes, tuple((j,) for j in columns))
        return job.tables(self.table.coded_sums(self.schema, job, drop_nulls=self.drop_nulls))

    def stepped(self, step: KeyStep, key: Key, progress: Progress | None = None) -> SparkMembers:
        """The keys that a step makes of these, when they are written."""
        del progress  # nothing is done yet
        return SparkMembers(self.table, self.schema, drop_nulls=self.drop_nulls, step=(step, key))

    # ------------------------------------------------------------------ writing

    def _keys(self, parts: int, starts: Keys | None) -> Frame:
        """The keys of all rows, each with its part."""
        work = PartKeys(self.coder, parts, starts)
        frame = self.table.columns_frame(self.schema.names)
        return self.cluster.run(frame, work, keys_output(self.index))

    def _dealt(self, frame: Frame, parts: int) -> Frame:
        """Keys sorted by part, each part on one partition; also those that have no rows."""
        session = self.cluster.session
        names = [PART, *key_names(self.index), COUNT]
        nothing = session.range(0, parts).selectExpr(
            f"id AS {PART}",
            *(f"CAST(0 AS bigint) AS {name}" for name in names[1:]),
            f"CAST({FINE} AS bigint) AS {WRONG}",
            f"CAST(NULL AS string) AS {FIGURES}",
        )
        together = frame.union(nothing).repartition(self.cluster.partitions(parts), PART)
        if not self.cluster.keeps_order:
            return together
        return together.sortWithinPartitions(*names[:-1])

    def write(
        self, writer: PartWriter, folder: Path, key: Key, progress: Progress | None = None
    ) -> WrittenParts:
        """Write all parts into a folder, as they come from the cluster."""
        purposes = [(name, index, key) for name, index in writer.purposes()]
        if self._step is not None:
            step, step_key = self._step
            purposes += [(name, index, step_key) for name, index in step.purposes()]
        keys = Subkeys({f"{name}/{index}": of.derived(name, index) for name, index, of in purposes})
        with self.cluster.coins(keys) as vault:
            if self._step is None:
                frame = self._dealt(self._keys(writer.parts, writer.starts), writer.parts)
            else:
                frame = self._dealt(self._keys(step.parts, step.starts), step.parts)
                work = StepWork(
                    step, self.sizes, vault, writer.parts, writer.starts, self.cluster.keeps_order
                )
                frame = self.cluster.run(frame, work, keys_output(self.index))
                frame = self._dealt(frame, writer.parts)
            files_work = FileWork(writer, vault, self.cluster.keeps_order, self._distinct)
            files = self.cluster.run(frame, files_work, FILES)
            return self._received(files, writer.parts, folder, progress or Silent())

    def _check_read(self, figures: dict[str, float]) -> None:
        """Refuse a table that was another one when its rows were read again."""
        rows = self.table.used_rows(self.schema, drop_nulls=self.drop_nulls)
        for name in (KEYS_READ, *([] if self._step is None else [ROWS_READ])):
            if (found := int(figures.pop(name, 0))) != rows:
                raise changed(self.table.name, rows, found)

    def _received(self, frame: Frame, parts: int, folder: Path, progress: Progress) -> WrittenParts:
        """Files put together from their pieces."""
        pieces: dict[int, int] = {}
        rows: dict[int, int] = {}
        figures: list[dict[str, float]] = []
        for table in self.cluster.rows(frame):
            for row in table.to_pylist():
                if row[WRONG] != FINE:
                    raise self.table.violation(
                        list(self.schema)[row[WRONG]], drop_nulls=self.drop_nulls
                    )
                number, found = row[PART], row[FIGURES]
                if number < 0:
                    figures.append(json.loads(found))
                    continue
                if row["piece"] != pieces.get(number, 0):
                    raise incomplete(number)
                pieces[number] = row["piece"] + 1
                with (folder / part_name(number)).open("ab") as out:
                    out.write(row["content"])
                if found is not None:
                    if number in rows:
                        raise incomplete(number)
                    figures.append(json.loads(found))
                    rows[number] = int(figures[-1]["rows"])
                    progress.advance(rows[number])
        if sorted(rows) != list(range(parts)) or sorted(pieces) != sorted(rows):
            raise ReleaseError(
                f"the cluster gave {len(rows):,} of {parts:,} files",
                hint="nothing was released; publish it again",
            )
        total = added(figures)
        self._check_read(total)
        written = [WrittenPart(n, folder / part_name(n), rows[n]) for n in range(parts)]
        return WrittenParts(written, total)


def incomplete(number: int) -> ReleaseError:
    """The error of a file whose pieces do not fit together."""
    return ReleaseError(
        f"file {number} did not come whole from the cluster",
        hint="nothing was released; publish it again",
    )
