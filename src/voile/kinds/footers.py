"""Parquet files of others, looked at before a reader believes what they state.

A footer of a megabyte can take hundreds in memory, and a page of a kilobyte can unpack to two
gigabytes. So sizes are compared with what the manifest states before Arrow and DuckDB read a file.
Only what says how large things are is parsed here, in Thrift's compact protocol.

`check_own_bytes` also refuses what readers pass over: bytes between the columns, and fields that
Voile does not write. What a page holds besides its values is not looked at: a compressed page may
end in bytes that no reader unpacks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from voile.errors import ReleaseError
from voile.system import here as system

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
FILE_FIELDS, GROUP_FIELDS, CHUNK_FIELDS = {1, 2, 3, 4, 6, 7}, {1, 2, 3, 5, 6, 7}, {2, 3} | INDEXES
COLUMN_FIELDS = {*range(1, 8), 9, 10, 11, 13, 15, 16} | SKIPPING
"""Fields that Arrow writes for us. Others are texts of anybody's, encryption, or not known."""
TEXTS = {("the file", 5), ("a column", 8)}
WRITER = re.compile(rb"parquet-cpp-arrow version [0-9A-Za-z.+-]{1,40}")
PAGE_BYTES = 2**25
"""Of a page, unpacked. Arrow writes pages of one megabyte."""
VALUE_BYTES, PAGE_SLACK = 2**12, 2**16
"""What a value takes in a page at most, where none that is listed is longer; and a page besides."""
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


def checked_metadata(
    path: Path, name: str, rows: int, *, pages: bool = True, longest: int = 0
) -> Any:
    """What a file says of itself, if it has so many rows, and its pages are those of its rows.

    `longest` is how many bytes the longest listed value has.
    """
    with readable(path, name) as file:
        groups = row_groups(file.fileno(), name, rows)
        if pages:
            check_pages(file.fileno(), groups, name, longest)
        return pq.read_metadata(file)


@contextmanager
def readable(path: Path, name: str) -> Iterator[BinaryIO]:
    """The open file; what cannot be parsed of it is an error of the release."""
    try:
        with path.open("rb") as file:
            yield file
    except (OSError, pa.ArrowException, ValueError, IndexError) as error:
        raise ReleaseError(f"{name} is not a Parquet file that can be read: {error}") from None


def check_own_bytes(path: Path, name: str) -> None:
    """The columns fill the file up to its footer, and the footer has no more than we write."""
    with readable(path, name) as file:
        footer, begin = footer_of(file.fileno(), name)
        groups = footer.row_groups()
    if footer.foreign:
        raise ReleaseError(
            f"{name} has {footer.foreign} in its footer, which Voile does not write",
            hint="do not use it: what is there was not checked",
        )
    at = len(MARK)
    for first, last in sorted(c for group in groups for c in group.columns if c[0] < c[1]):
        if first != at:
            break
        at = last
    if at != begin:
        raise ReleaseError(
            f"{name} has bytes at {at:,} that belong to no column",
            hint="do not use it: what is there was not checked",
        )


def unpacked_bytes(path: Path, name: str) -> int:
    """How many bytes all pages of a file unpack to; texts of a dictionary count once."""
    with readable(path, name) as file:
        handle = file.fileno()
        groups = footer_of(handle, name)[0].row_groups()
        chunks = [chunk for group in groups for chunk in group.columns]
        return sum(page.unpacked for chunk in chunks for page in pages_in(handle, *chunk))


def row_groups(handle: int, name: str, rows: int) -> list[RowGroup]:
    """The row groups that the footer lists, which are as many and as large as the rows need.

    They are not asked of Arrow: it ends the process on some footers that are wrong.
    """
    footer, _ = footer_of(handle, name)
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


def footer_of(handle: int, name: str) -> tuple[Compact, int]:
    """The footer, to be read, and where it begins."""
    size = os.fstat(handle).st_size
    end = system.read_at(handle, 8, max(0, size - 8))
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MARK or length > size - 12 or system.read_at(handle, 4, 0) != MARK:
        raise ReleaseError(f"{name} is not a Parquet file")
    if length > LARGEST_FOOTER:
        raise ReleaseError(f"{name} has a footer of {length:,} bytes, more than {LARGEST_FOOTER:,}")
    begin = size - 8 - length
    return Compact(system.read_at(handle, length, begin)), begin


@dataclass(frozen=True)
class Page:
    """What the header of a page says."""

    head: int
    """Bytes of the header."""
    unpacked: int
    packed: int
    values: int
    """Of a page of data, or of a dictionary."""
    dictionary: bool


def check_pages(handle: int, groups: list[RowGroup], name: str, longest: int = 0) -> None:
    """No page unpacks to more than its values may, and their rows are those of their row group."""
    pages = 0
    for group in groups:
        most = group.rows // FEWEST_ROWS + SPARE_PAGES
        for begin, end in group.columns:
            found = pages_of(handle, begin, end, name, most, max(longest, VALUE_BYTES))
            pages += len(found)
            shown = sum(page.values for page in found if not page.dictionary)
            if shown != group.rows or pages > MOST_PAGES:
                raise ReleaseError(f"{name} has pages that are not those of its rows")


def pages_of(handle: int, at: int, end: int, name: str, most: int, width: int) -> list[Page]:
    """The pages of a column chunk, of which no value may have more bytes than `width`."""
    if at < len(MARK) or end > os.fstat(handle).st_size or end < at:
        raise ReleaseError(f"{name} has a column outside of itself")
    found: list[Page] = []
    for page in pages_in(handle, at, end):
        bytes_ = min(PAGE_BYTES, page.values * width + PAGE_SLACK)
        at += page.head + page.packed
        if not 0 <= page.unpacked <= bytes_ or page.packed < 0 or at > end or page.values < 0:
            raise ReleaseError(
                f"{name} has a page that unpacks to {page.unpacked:,} bytes, more than {bytes_:,}, "
                "or that is cut off"
            )
        found.append(page)
        if len(found) > most:
            raise ReleaseError(f"{name} has more than {most:,} pages for the rows of a group")
    return found


def pages_in(handle: int, at: int, end: int) -> Iterator[Page]:
    """The pages of a column chunk, one after the other."""
    while at < end:
        page = page_at(handle, at)
        yield page
        at += page.head + max(page.packed, 0)


def page_at(handle: int, at: int) -> Page:
    """The header of a page."""
    content = system.read_at(handle, HEADER_BYTES, at)
    try:
        return page_header(content)
    except IndexError:
        return page_header(system.read_at(handle, LARGEST_HEADER, at))


def page_header(content: bytes) -> Page:
    """As `page_at`, of these bytes; IndexError where they are too few."""
    reader = Compact(content)
    unpacked = packed = values = 0
    dictionary = False
    for field, kind in reader.fields():
        if field == 2:
            unpacked = reader.number()
        elif field == 3:
            packed = reader.number()
        elif field in (5, 7, 8) and kind == STRUCT:  # of data, a dictionary, or data of version 2
            values, dictionary = reader.first_number(), field == 7
        elif field in (1, 4):
            reader.skip(kind)
        else:
            raise ValueError(f"a page with the field {field}")
    return Page(reader.at, unpacked, packed, values, dictionary)


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
        self.foreign = ""
        """The first thing that Voile does not write."""

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
            elif field == 6 and kind == BINARY:
                self._writer()
            else:
                self._notice(field, FILE_FIELDS, "the file")
                self.skip(kind)
        return found

    def _writer(self) -> None:
        """The name of the program that wrote the file."""
        length = self._varint()
        self._pass(length)
        if not WRITER.fullmatch(self.content, self.at - length, self.at):
            self.foreign = self.foreign or "another writer than Arrow"

    def _notice(self, field: int, known: Set[int], where: str) -> None:
        """Remember a field that we do not write."""
        if field not in known:
            what = "key-value metadata" if (where, field) in TEXTS else f"field {field}"
            self.foreign = self.foreign or f"{what} of {where}"

    def _row_group(self) -> RowGroup:
        rows = 0
        columns: tuple[tuple[int, int], ...] = ()
        for field, kind in self.fields():
            if field == 1 and kind in LISTS:
                columns = tuple(self._column() for _ in range(self._structures()))
            elif field == 3 and kind in NUMBERS:
                rows = self.number()
            else:
                self._notice(field, GROUP_FIELDS, "a row group")
                self.skip(kind)
        return RowGroup(rows, columns)

    def _column(self) -> tuple[int, int]:
        """Where a column chunk begins and ends."""
        found: dict[int, int] = {}
        for field, kind in self.fields():
            if field == 1:
                raise ValueError("a column that lies in another file")
            if field == 3 and kind == STRUCT:
                found = self._column_numbers()
            else:
                self.skipping |= field in INDEXES
                self._notice(field, CHUNK_FIELDS, "a column")
                self.skip(kind)
        data = found.get(DATA_AT, 0)
        begin = min(data, found.get(DICTIONARY_AT) or data)
        return begin, begin + found.get(LENGTH, 0)

    def _column_numbers(self) -> dict[int, int]:
        """Where the parts of a column are, and how long it is."""
        found: dict[int, int] = {}
        for field, kind in self.fields():
            self.skipping |= field in SKIPPING
            self._notice(field, COLUMN_FIELDS, "a column")
            if field in (LENGTH, DATA_AT, DICTIONARY_AT) and kind in NUMBERS:
                found[field] = self.number()
            else:
                self.skip(kind)
        return found

    def first_number(self) -> int:
        """The field 1 of a structure, which is read to its end."""
        found = 0
        for field, kind in self.fields():
            if field == 1 and kind in NUMBERS:
                found = self.number()
            else:
                self.skip(kind)
        return found

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
