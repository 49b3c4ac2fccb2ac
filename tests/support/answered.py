"""What the tests of answers share: small servers, and answers without noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from voile.engines.lookups import CodedRows, Sums
from voile.schema import Schema
from voile.serve.creation import begin
from voile.serve.opened import opened
from voile.serve.query_service import QueryService
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

    def totals(self, asked: Sums) -> Any:
        raise AssertionError(f"rows were touched: {asked}")

    def is_at_hand(self, request: Sums) -> bool:  # noqa: ARG002
        return False


@contextmanager
def asker_of(
    folder: Path, table: object, *, noiseless: bool = False, **options: Any
) -> Iterator[QueryService]:
    """A server's inside, without a network."""
    begin(folder, table, **({"queries": 500, "delta": 1.0} | options))
    with opened(folder) as found:
        if noiseless:
            yield QueryService(found.setting, found._rows, found.ledger, no_noise)
        else:
            yield found


def parts_of(rows: Sequence[Mapping[str, Any]], schema: Schema, question: Question) -> Any:
    """What each row adds to each group of each total, in steps: (rows, groups, totals)."""
    places = [{value: i for i, value in enumerate(attribute)} for attribute in schema]
    found = []
    for row in rows:
        codes = {a.name: np.array([place[row[a.name]]])
                 for a, place in zip(schema, places, strict=True)}  # fmt: skip
        alone = CodedRows(schema, codes, np.zeros(1, dtype=np.uint64))
        found.append(alone.totals(question.sums(question.totals)))
    return np.stack(found)
