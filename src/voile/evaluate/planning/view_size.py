"""How large a release will be, before it is made: rows by their expectation, bytes by a sample."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from voile.kinds.parquet import ROW_GROUP, write_part
from voile.mechanisms import AlphaBeta
from voile.noise import Key
from voile.schema import Keys, Schema, TupleIndex

SAMPLE = 2**16
"""Rows of the smaller sample; the larger one has twice as many."""
SEED = 0
"""The coins of a sample that is thrown away; always the same, so that plans are repeatable."""


@dataclass(frozen=True)
class ViewSize:
    """What publishing would write."""

    rows: float
    bytes: float
    """Of the Parquet files; the descriptions beside them are small."""


def view_size(mechanism: AlphaBeta, members: Keys, schema: Schema) -> ViewSize:
    """Expected rows, and bytes as a sample of the view has them.

    Two stretches of D are perturbed and written as publishing would, the second twice as long.
    How much it takes more is what a row takes; what is left is the price of each row group,
    which is mostly its lists of values.
    """
    rows = mechanism.excess * len(members) + mechanism.noise_mean * float(schema.size)
    if rows <= 2 * SAMPLE:
        _, size = sample(mechanism, members, schema, 1.0)
        return ViewSize(rows, size)
    share = SAMPLE / rows
    (few, small), (many, large) = (
        sample(mechanism, members, schema, part) for part in (share, 2 * share)
    )
    row = max(large - small, 1) / max(many - few, 1)
    group = max(small - row * few, 0.0)
    return ViewSize(rows, row * rows + group * math.ceil(rows / ROW_GROUP))


def sample(mechanism: AlphaBeta, members: Keys, schema: Schema, share: float) -> tuple[int, int]:
    """Rows and bytes of the view of a first part of D."""
    index = TupleIndex(schema.sizes)
    last = max(1, math.ceil(index.limbs[0].size * min(share, 1.0)))
    if last < index.limbs[0].size:
        members = members[: np.searchsorted(members, index.first_key(last))[0]]
    key = Key.from_seed(SEED)
    noise = mechanism.noise_rows(index, key, 0, 0, last)
    with tempfile.TemporaryDirectory(prefix="voile-") as folder:
        file = Path(folder) / "sample.parquet"
        rows = write_part(file, schema, mechanism.view(members, noise, key, 0))
        return rows, file.stat().st_size
