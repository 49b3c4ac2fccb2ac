"""Between Arrow and NumPy without pandas.

Arrow's own `pa.array`, `fill_null` and `to_numpy` import pandas wherever it is installed. That
takes half a second, more than most queries do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def arrow_array(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> Any:
    """Numbers or truth values as an Arrow array, NULL where they are missing."""
    kind = pa.from_numpy_dtype(values.dtype)
    packed = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    present = None if missing is None else np.packbits(~missing, bitorder="little")
    buffers = [
        part if part is None else pa.py_buffer(np.ascontiguousarray(part))
        for part in (present, packed)
    ]
    return pa.Array.from_buffers(kind, len(values), buffers)


def text_array(texts: Sequence[str]) -> Any:
    """Texts as an Arrow array."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def numpy_array(column: Any, null: float = 0) -> npt.NDArray[Any]:
    """A column of numbers or truth values as a NumPy array, with this value in place of NULL."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type.to_pandas_dtype()
    if not len(column):
        return np.empty(0, kind)
    present, data = column.buffers()
    here = slice(column.offset, column.offset + len(column))
    values = (bits(data) if kind == np.bool_ else np.frombuffer(data, kind))[here]
    return np.where(bits(present)[here], values, kind(null)) if column.null_count else values


def bits(buffer: Any) -> npt.NDArray[np.bool_]:
    """The bits of one of Arrow's buffers."""
    return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little").view(np.bool_)
