"""Parquet files of others, looked at before a reader believes what they state.

A footer of a megabyte can take hundreds in memory, and a page of a kilobyte can unpack to two
gigabytes. So sizes are compared with what the manifest states before Arrow and DuckDB read a file.
Only what says how large things are is parsed here, in Thrift's compact protocol.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from voile.errors import ReleaseError

PLAIN_FOOTER = 2**20
"""Bytes of a footer that are parsed at once; of a larger one the parts are counted first."""
LARGEST_FOOTER = 2**23
PAGE_BYTES = 2**25
"""Of a page, unpacked. Arrow writes pages of one megabyte."""
FEWEST_ROWS = 64
"""Rows of a page, on average; Arrow writes at least a thousand."""
SPARE_PAGES = 64
MOST_PAGES = 400_000
"""Of a file."""
HEADER_BYTES, LARGEST_HEADER = 256, 2**17
DEEPEST = 16
MARK = b"PAR1"


def checked_metadata(path: Path, name: str, rows: int, *, pages: bool = True) -> Any:
    """What a file says of itself, if it has so many rows, and its pages are those of its rows."""
    try:
        with path.open("rb") as file:
            check_footer(file.fileno(), name, rows)
            found = pq.read_metadata(file)
            if found.num_rows != rows or group_rows(found) != rows:
                raise ReleaseError(f"{name} has {found.num_rows} rows, not {rows}")
            if pages:
                check_pages(file.fileno(), found, name)
    except (OSError, pa.ArrowException, ValueError, IndexError) as error:
        raise ReleaseError(f"{name} is not a Parquet file that can be read: {error}") from None
    return found


def group_rows(metadata: Any) -> int:
    """The rows of all row groups; -1 where one has fewer than none."""
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    return sum(rows) if all(number >= 0 for number in rows) else -1


def check_footer(handle: int, name: str, rows: int) -> None:
    """Refuse a footer that is larger than what it describes."""
    size = os.fstat(handle).st_size
    end = os.pread(handle, 8, max(0, size - 8))
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MARK or length > size - 12 or os.pread(handle, 4, 0) != MARK:
        raise ReleaseError(f"{name} is not a Parquet file")
    if length <= PLAIN_FOOTER:
        return
    if length > LARGEST_FOOTER:
        raise ReleaseError(f"{name} has a footer of {length:,} bytes, more than {LARGEST_FOOTER:,}")
    groups = Compact(os.pread(handle, length, size - 8 - length)).lists_in_field(4)
    if len(groups) > rows // FEWEST_ROWS + SPARE_PAGES or len(set(groups)) > 1:
        raise ReleaseError(f"{name} has a footer with more parts than {rows:,} rows have")


def check_pages(handle: int, metadata: Any, name: str) -> None:
    """No page unpacks to more than a page may, and their rows are those of their row group."""
    pages = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        most = group.num_rows // FEWEST_ROWS + SPARE_PAGES
        for j in range(group.num_columns):
            found = pages_of(handle, group.column(j), name, most)
            pages += len(found)
            if sum(found) != group.num_rows or pages > MOST_PAGES:
                raise ReleaseError(f"{name} has pages that are not those of its rows")


def pages_of(handle: int, chunk: Any, name: str, most: int) -> list[int]:
    """The number of values of each page of a column chunk; 0 for a dictionary."""
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    at = chunk.data_page_offset if not first else min(first, chunk.data_page_offset)
    end = at + chunk.total_compressed_size
    if at < len(MARK) or end > os.fstat(handle).st_size or end < at:
        raise ReleaseError(f"{name} has a column outside of itself")
    found: list[int] = []
    while at < end:
        head, unpacked, packed, values = page_at(handle, at)
        at += head + packed
        if not 0 <= unpacked <= PAGE_BYTES or packed < 0 or at > end or values < 0:
            raise ReleaseError(
                f"{name} has a page that unpacks to {unpacked:,} bytes, more than {PAGE_BYTES:,}, "
                "or that is cut off"
            )
        found.append(values)
        if len(found) > most:
            raise ReleaseError(f"{name} has more than {most:,} pages for the rows of a group")
    return found


def page_at(handle: int, at: int) -> tuple[int, int, int, int]:
    """A page's header: its length, the page's bytes unpacked and packed, and values."""
    content = os.pread(handle, HEADER_BYTES, at)
    try:
        return page_header(content)
    except IndexError:
        return page_header(os.pread(handle, LARGEST_HEADER, at))


def page_header(content: bytes) -> tuple[int, int, int, int]:
    """As `page_at`, of these bytes; IndexError where they are too few."""
    reader = Compact(content)
    unpacked = packed = values = 0
    for field, kind in reader.fields():
        if field == 2:
            unpacked = reader.number()
        elif field == 3:
            packed = reader.number()
        elif field in (5, 8) and kind == STRUCT:  # a page of data, of version 1 or 2
            values = reader.first_number()
        else:
            reader.skip(kind)
    return reader.at, unpacked, packed, values


# ----------------------------------------------------------------------
# Thrift's compact protocol

BOOLEANS, BYTE, NUMBERS, DOUBLE, BINARY, LISTS, MAP, STRUCT = (
    (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
)  # fmt: skip


class Compact:
    """Reads fields one after the other; IndexError where the bytes end, ValueError else."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def fields(self) -> Any:
        """The number and kind of every field of a structure; each is to be read or skipped."""
        number = 0
        while byte := self._byte():
            step, kind = byte >> 4, byte & 15
            number = number + step if step else self.number()
            yield number, kind

    def number(self) -> int:
        """A number of any size."""
        found = self._varint()
        return (found >> 1) ^ -(found & 1)

    def first_number(self) -> int:
        """The field 1 of a structure, which is read to its end."""
        found = 0
        for field, kind in self.fields():
            if field == 1 and kind in NUMBERS:
                found = self.number()
            else:
                self.skip(kind)
        return found

    def lists_in_field(self, wanted: int) -> list[int]:
        """Of the structures in a field, which is a list, how long the list in field 1 is."""
        found: list[int] = []
        for field, kind in self.fields():
            if field != wanted or kind not in LISTS:
                self.skip(kind)
                continue
            length, _ = self._list_header()
            found.extend(self._list_in_struct() for _ in range(length))
        return found

    def _list_in_struct(self) -> int:
        length = 0
        for field, kind in self.fields():
            if field == 1 and kind in LISTS:
                length, inner = self._list_header()
                for _ in range(length):
                    self.skip(inner)
            else:
                self.skip(kind)
        return length

    def skip(self, kind: int, depth: int = 0, *, listed: bool = False) -> None:
        """Pass over a value; a Boolean is a byte in a list and nothing in a field."""
        if depth > DEEPEST:
            raise ValueError("structures within structures")
        if kind in BOOLEANS:
            self._pass(int(listed))
        elif kind == BYTE:
            self._pass(1)
        elif kind in NUMBERS:
            self._varint()
        elif kind == DOUBLE:
            self._pass(8)
        elif kind == BINARY:
            self._pass(self._varint())
        elif kind in LISTS:
            length, inner = self._list_header()
            for _ in range(length):
                self.skip(inner, depth + 1, listed=True)
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            raise ValueError(f"a value of the kind {kind}, which Parquet does not have")

    def _list_header(self) -> tuple[int, int]:
        byte = self._byte()
        length, kind = byte >> 4, byte & 15
        return (self._varint() if length == 15 else length), kind

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
            if shift > 63:
                raise ValueError("a number that does not end")

    def _byte(self) -> int:
        byte = self.content[self.at]
        self.at += 1
        return byte

    def _pass(self, length: int) -> None:
        self.at += length
        if self.at > len(self.content):
            raise IndexError("the end")
