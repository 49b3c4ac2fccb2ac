"""Data frames of R: factors are categories in the order of their levels."""

from __future__ import annotations

import bz2
import gzip
import lzma
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyreadr

from voile.errors import TableError, UsageError, did_you_mean
from voile.foreign import ForeignTable
from voile.foreign.labelled import hint_for, plain_numbers

LABELLED = b"haven_labelled"
"""The class of columns whose value labels pyreadr leaves out."""
BLOCK = 2**20
PACKED: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open,
}  # fmt: skip
"""What files of R are packed with, by their first bytes."""


def read_rdata(file: Path, wanted: str, options: Mapping[str, Any]) -> ForeignTable:
    """A data frame: the only one of the file, or the one of this name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of objects that are no data frames
            found = pyreadr.read_r(str(file), encoding=options.get("encoding"))
    except (pyreadr.LibrdataError, pyreadr.PyreadrError, UnicodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{file} cannot be read: {reason}", hint=hint_for(reason)) from None
    frames = {name or "": frame for name, frame in found.items()}
    frame = frames[chosen_frame(list(frames), wanted, file)]
    rows = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    rows, notes = plain_columns(rows)
    if has_labelled(file):
        notes.append(
            "columns with labels of R's package haven are read as codes; in R, "
            "haven::as_factor(x) makes categories of them"
        )
    # Levels in the order that R has them; a factor that was made of the rows lists those alone.
    categories = {
        name: frame[name].cat.categories.astype(str).tolist()
        for name in rows.column_names
        if pa.types.is_dictionary(rows.schema.field(name).type)
    }
    return ForeignTable(rows, notes, categories=categories)


def chosen_frame(names: list[str], wanted: str, file: Path) -> str:
    """The name of the object that is meant."""
    if not names:
        raise TableError(
            f"{file} holds no data frame", hint="in R: saveRDS(as.data.frame(x), 'x.rds')"
        )
    if wanted:
        if wanted not in names:
            raise UsageError(
                f"there is no object {wanted!r} in {file}",
                hint=did_you_mean(wanted, [n for n in names if n]) if any(names) else
                "a .rds file holds one object without a name: name the file alone",
            )  # fmt: skip
        return wanted
    if len(names) > 1:
        raise UsageError(
            f"{file} holds {len(names)} objects: {', '.join(names)}",
            hint=f"add ::object to say which, such as ::{names[0]}",
        )
    return names[0]


def plain_columns(rows: Any) -> tuple[Any, list[str]]:
    """Moments without time zones, and whole numbers where R kept them as doubles."""
    notes = []
    for i, field in enumerate(rows.schema):
        column = rows[field.name].combine_chunks()
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            rows = rows.set_column(i, field.name, column.cast(pa.timestamp("us")))
            notes.append(f"{field.name!r} is read as moments of UTC")
        elif pa.types.is_floating(field.type):
            values = column.to_numpy(zero_copy_only=False).astype(float)
            rows = rows.set_column(i, field.name, plain_numbers(values, np.isnan(values)))
    return rows, notes


def has_labelled(file: Path) -> bool:
    """Whether a file names the class of labelled columns; it is looked at in blocks."""
    with file.open("rb") as begun:
        first = begun.read(6)
    opened = next((how for sign, how in PACKED.items() if first.startswith(sign)), Path.open)
    rest = b""
    with opened(file, "rb") as stream:
        while block := stream.read(BLOCK):
            if LABELLED in (seen := rest + block):
                return True
            rest = seen[-len(LABELLED) :]
    return False
