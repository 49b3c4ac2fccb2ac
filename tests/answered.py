"""What the tests of answers share: small servers, and answers without noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from voile.answering.totals import scattered
from voile.engines.counted import HASH, CountedTable, write_counted
from voile.engines.sources import quote_identifier
from voile.engines.table import Table
from voile.noise.halves import id_hash
from voile.query.rows import RowSums
from voile.schema import Schema
from voile.serve.asker import Asker
from voile.serve.beginning import begin
from voile.serve.opened import opened
from voile.serve.question import Question

SCHEMA: dict[str, Any] = {
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
        {"name": "age", "kind": "integer", "range": [0, 4]},
        {"name": "debt", "kind": "integer", "range": [-3, 2]},
        {"name": "share", "kind": "numeric", "values": [0.25, 0.5, 1.75], "null": True},
    ]
}


def no_noise(_: object, count: int) -> list[int]:
    return [0] * count


class Untouchable:
    """Rows that fail the test when they are counted."""

    def sums(self, where: str, keys: Sequence[str], sums: Sequence[str]) -> RowSums:
        raise AssertionError(f"rows were touched: {where} {keys} {sums}")


@contextmanager
def asker_of(
    folder: Path, table: object, *, noiseless: bool = False, **options: Any
) -> Iterator[Asker]:
    """A server's inside, without a network."""
    begin(folder, table, **({"queries": 500, "delta": 1.0} | options))
    with opened(folder) as found:
        if noiseless:
            yield Asker(found.setting, found._rows, found.ledger, no_noise)
        else:
            yield found


def parts_of(
    folder: Path, rows: Sequence[Mapping[str, Any]], schema: Schema, question: Question
) -> Any:
    """What each row adds to each group of each total, in fine steps: (rows, groups, totals)."""
    path = folder / "rows.duckdb"
    listed = [{"who": i} | dict(row) for i, row in enumerate(rows)]
    table = Table(pa.Table.from_pylist(listed))
    write_counted(path, table, schema, key="who")
    counted = CountedTable(path)
    keys = [quote_identifier(HASH), *question.keys]
    seen = counted.sums(question.where, keys, [total.aggregate for total in question.totals])
    counted.close()
    found = np.zeros((len(rows), len(question.groups), len(question.totals)))
    for i in range(len(rows)):
        mine = [place for place, one in enumerate(seen.keys[0]) if one == id_hash(str(i))]
        if not mine:
            continue
        part = RowSums(tuple([k[p] for p in mine] for k in seen.keys[1:]), seen.sums[mine])
        if question.expected is None:
            found[i] = part.sums
        else:
            found[i] = scattered(part, question.codes, question.expected)[0]
    return found
