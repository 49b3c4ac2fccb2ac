"""Rows of codes as bytes of one fixed width, as the store keeps them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.client import Spec
from voile.errors import TableError

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowLayout:
    """How many codes each column has; each is kept in the fewest whole bytes (1, 2, 4 or 8)."""

    sizes: tuple[int, ...]

    @classmethod
    def of(cls, spec: Spec) -> RowLayout:
        return cls(tuple(column.size for column in spec.columns))

    @property
    def record(self) -> np.dtype[np.void]:
        """One row: little-endian unsigned numbers, one after the other."""
        kinds = [np.min_scalar_type(size - 1).newbyteorder("<") for size in self.sizes]
        return np.dtype([(f"c{place}", kind) for place, kind in enumerate(kinds)])

    @property
    def width(self) -> int:
        return self.record.itemsize

    def pack(self, codes: Codes) -> bytes:
        """The rows (rows × columns) as bytes, one after the other."""
        records = np.empty(len(codes), self.record)
        for place, name in enumerate(self.record.names or ()):
            records[name] = codes[:, place]
        return records.tobytes()

    def unpack(self, rows: bytes) -> list[Codes]:
        """One array for each column; a code outside its column's domain means a damaged store."""
        records = np.frombuffer(rows, self.record)
        columns = [records[name].astype(np.int64) for name in self.record.names or ()]
        for place, (column, size) in enumerate(zip(columns, self.sizes, strict=True)):
            if column.size and not 0 <= column.min() <= column.max() < size:
                raise TableError(
                    f"the store is damaged: column {place + 1} holds a code outside 0 … {size - 1}",
                    hint="restore the store from a backup",
                )
        return columns
