"""Parquet files of others, looked at before a reader believes what they state.

A footer of a megabyte can take hundreds in memory, and a page of a kilobyte can unpack to two
gigabytes. So sizes are compared with what the manifest states before Arrow and DuckDB read a file.
Only what says how large things are is parsed here, in Thrift's compact protocol.
"""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from voile.errors import ReleaseError

LARGEST_FOOTER = 2**23
MOST_PARTS = 200_000
"""Row groups and column chunks of a file."""
LENGTH, DATA_AT, DICTIONARY_AT = 7, 9, 11
"""Fields of what a footer says of a column chunk."""
SKIPPING, INDEXES = {12, 14}, {4, 5, 6, 7}
"""Fields by which readers skip rows: statistics and Bloom filters, and indexes of pages. Who counts
would then see other rows than who checks."""
COUNTED = ("data/", "history/")
"""Whose rows an engine counts, which skips where it may."""
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


@dataclass(frozen=True)
class RowGroup:
    """How many rows it has, and where each of its columns begins and ends."""

    rows: int
    columns: tuple[tuple[int, int], ...]


def checked_metadata(path: Path, name: str, rows: int, *, pages: bool = True) -> Any:
    """What a file says of itself, if it has so many rows, and its pages are those of its rows."""
    try:
        with path.open("rb") as file:
            groups = row_groups(file.fileno(), name, rows)
            if pages:
                check_pages(file.fileno(), groups, name)
            return pq.read_metadata(file)
    except (OSError, pa.ArrowException, ValueError, IndexError) as error:
        raise ReleaseError(f"{name} is not a Parquet file that can be read: {error}") from None


def row_groups(handle: int, name: str, rows: int) -> list[RowGroup]:
    """The row groups that the footer lists, which are as many and as large as the rows need.

    They are not asked of Arrow: it ends the process on some footers that are wrong.
    """
    size = os.fstat(handle).st_size
    end = os.pread(handle, 8, max(0, size - 8))
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MARK or length > size - 12 or os.pread(handle, 4, 0) != MARK:
        raise ReleaseError(f"{name} is not a Parquet file")
    if length > LARGEST_FOOTER:
        raise ReleaseError(f"{name} has a footer of {length:,} bytes, more than {LARGEST_FOOTER:,}")
    footer = Compact(os.pread(handle, length, size - 8 - length))
    found = footer.row_groups()
    if footer.skipping and name.startswith(COUNTED):
        raise ReleaseError(
            f"{name} has statistics, by which rows could be counted that were not checked",
            hint="write it without: write_statistics=False",
        )
    if footer.rows != rows:
        raise ReleaseError(f"{name} has {footer.rows} rows, not {rows}")
    if len(found) > rows // FEWEST_ROWS + SPARE_PAGES or len({len(g.columns) for g in found}) > 1:
        raise ReleaseError(f"{name} has a footer with more parts than {rows:,} rows have")
    counted = sum(group.rows for group in found)
    if counted != rows or any(group.rows < 0 for group in found):
        raise ReleaseError(f"{name} has {counted} rows, not {rows}")
    return found


def check_pages(handle: int, groups: list[RowGroup], name: str) -> None:
    """No page unpacks to more than a page may, and their rows are those of their row group."""
    pages = 0
    for group in groups:
        most = group.rows // FEWEST_ROWS + SPARE_PAGES
        for begin, end in group.columns:
            found = pages_of(handle, begin, end, name, most)
            pages += len(found)
            if sum(found) != group.rows or pages > MOST_PAGES:
                raise ReleaseError(f"{name} has pages that are not those of its rows")


def pages_of(handle: int, at: int, end: int, name: str, most: int) -> list[int]:
    """The number of values of each page of a column chunk; 0 for a dictionary."""
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
        self.content, self.at, self.parts = content, 0, 0
        self.rows = -1
        """Of the file, as its footer says."""
        self.skipping = False
        """Whether it has something by which readers skip rows."""

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

    def row_groups(self) -> list[RowGroup]:
        """The row groups of a footer, from its begin."""
        found: list[RowGroup] = []
        for field, kind in self.fields():
            if field == 4 and kind in LISTS:
                found = [self._row_group() for _ in range(self._structures())]
            elif field == 3 and kind in NUMBERS:
                self.rows = self.number()
            else:
                self.skip(kind)
        return found

    def _row_group(self) -> RowGroup:
        rows = 0
        columns: tuple[tuple[int, int], ...] = ()
        for field, kind in self.fields():
            if field == 1 and kind in LISTS:
                columns = tuple(self._column() for _ in range(self._structures()))
            elif field == 3 and kind in NUMBERS:
                rows = self.number()
            else:
                self.skip(kind)
        return RowGroup(rows, columns)

    def _column(self) -> tuple[int, int]:
        """Where a column chunk begins and ends."""
        found: dict[int, int] = {}
        for field, kind in self.fields():
            if field == 1:
                raise ValueError("a column that lies in another file")
            if field == 3 and kind == STRUCT:
                found = self._numbers(LENGTH, DATA_AT, DICTIONARY_AT, marks=SKIPPING)
            else:
                self.skipping |= field in INDEXES
                self.skip(kind)
        data = found.get(DATA_AT, 0)
        begin = min(data, found.get(DICTIONARY_AT) or data)
        return begin, begin + found.get(LENGTH, 0)

    def _numbers(self, *wanted: int, marks: Set[int] = frozenset()) -> dict[int, int]:
        """Some fields of a structure, which is read to its end; others are only noticed."""
        found: dict[int, int] = {}
        for field, kind in self.fields():
            self.skipping |= field in marks
            if field in wanted and kind in NUMBERS:
                found[field] = self.number()
            else:
                self.skip(kind)
        return found

    def first_number(self) -> int:
        """The field 1 of a structure, which is read to its end."""
        return self._numbers(1).get(1, 0)

    def _structures(self) -> int:
        """How many structures a list has, which begins here."""
        length, kind = self._list_header()
        self.parts += length
        if kind != STRUCT or self.parts > MOST_PARTS:
            raise ValueError(f"more than {MOST_PARTS:,} parts, or something else in their place")
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
