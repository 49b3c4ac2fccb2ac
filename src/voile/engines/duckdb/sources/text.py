"""Text files: unpacked, decoded, parted into named columns, and read as what their texts say."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import io
import itertools
import lzma
import re
import shlex
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa

from voile.engines.duckdb.sources import cells
from voile.engines.duckdb.sources.common import (
    PACKED,
    SOURCE,
    TEXT,
    Connection,
    listed,
    paths,
    reason_of,
)
from voile.engines.findings import ColumnFinding
from voile.errors import TableError, UsageError, spelled
from voile.files import temporary_folder
from voile.foreign.headers import has_header, names_of
from voile.options.reading import ReadingOptions
from voile.query.quoting import quote_identifier, quote_literal
from voile.units import counted

HEAD = 2**20
"""Bytes in which the separator and the header are found."""
RECORDS = 200
"""Lines that are parted to find the separator."""
MAGIC = {b"\x1f\x8b": ".gz", b"(\xb5/\xfd": ".zst", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz",
         b"PK\x03\x04": ".zip", b"PK\x05\x06": ".zip"}  # fmt: skip
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
BAD_LINE = re.compile(r"CSV Error on Line: (\d+)")


@dataclass(frozen=True)
class TextLayout:
    """How a text file is parted into columns."""

    separator: str
    names: tuple[str, ...]
    header: bool
    skip: int
    """Lines before the header, or before the first row where there is none."""
    notes: tuple[str, ...] = ()


@dataclass
class TextNotes:
    """What reading did, and what it leaves to the steward."""

    notes: list[str] = field(default_factory=list)
    findings: list[ColumnFinding] = field(default_factory=list)
    with_points: list[str] = field(default_factory=list)
    """Columns of numbers that may be written with decimals: 555.0."""
    is_text: bool = False
    has_codes: bool = False
    """Whether another program wrote its numbers, some of which may mean 'missing'."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What columns are about, in words of whoever made the file."""
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """All labels of columns that are shown by them, in the order of their codes."""


def attach_text(
    con: Connection, files: Sequence[Path], options: ReadingOptions, made: TextNotes
) -> None:
    """Copy text files into the temporary table `source`."""
    with temporary_folder() as folder:
        plain = [readable(file, folder / str(i), options.encoding) for i, file in enumerate(files)]
        layout = layout_of(plain[0], files[0], options)
        for file, shown in zip(plain[1:], files[1:], strict=True):
            other = layout_of(file, shown, options)
            if (other.separator, other.names) != (layout.separator, layout.names):
                raise TableError(
                    f"{shown} does not have the column names of {files[0].name}",
                    hint="several files make one table if their first lines are the same",
                )
        made.is_text = True
        made.notes.extend(layout.notes)
        rows = TextRows(dict(zip(plain, files, strict=True)), layout, options)
        straighten(con, rows, made)


# ---------------------------------------------------------------------- bytes to UTF-8


def readable(file: Path, folder: Path, encoding: str | None) -> Path:
    """A file that DuckDB can read: itself, or a copy in `folder`."""
    unpacked = unpack(file, folder)
    encoding = encoding or encoding_of(unpacked)
    if encoding in ("utf-8", "ascii"):
        return unpacked
    folder.mkdir(exist_ok=True)
    return decoded(unpacked, folder / "decoded.csv", encoding, file)


def unpack(file: Path, folder: Path) -> Path:
    """A file that DuckDB can open: itself, or a copy in `folder`."""
    suffix = packing(file)
    if suffix not in {".bz2", ".xz", ".zip"} and suffix in {"", file.suffix.lower()}:
        return file
    folder.mkdir()
    if suffix == ".zip":
        with zipfile.ZipFile(file) as archive, only_member(archive, file) as packed:
            return save(packed, folder / f"table{Path(packed.name).suffix}")
    if suffix in {".gz", ".zst"}:  # packed, and not named so
        shutil.copy(file, folder / f"{file.name}{suffix}")
        return folder / f"{file.name}{suffix}"
    with (bz2.open if suffix == ".bz2" else lzma.open)(file) as packed:
        return save(packed, folder / file.stem)


def packing(file: Path) -> str:
    """How a file is packed, by its first bytes; refused where its name says otherwise."""
    with file.open("rb") as stream:
        start = stream.read(6)
    found = next((suffix for magic, suffix in MAGIC.items() if start.startswith(magic)), "")
    named = file.suffix.lower()
    if named in (*PACKED, ".zip") and found != named:
        plain = file.with_suffix(found)
        other = plain if found or plain.suffix.lower() in TEXT else file.with_suffix(".csv")
        is_what = f"a {found} file" if found else "not packed"
        raise TableError(
            f"{file} cannot be read: it is {is_what}, and its name says {named}",
            hint=f"name it as what it is: {shlex.join(['mv', str(file), str(other)])}",
        )
    return found


def only_member(archive: zipfile.ZipFile, file: Path) -> IO[bytes]:
    """The one text file of an archive."""
    names = [name for name in archive.namelist() if not re.search(r"/$|^__MACOSX/", name)]
    if "[Content_Types].xml" in names:
        raise UsageError(
            f"{file} is a spreadsheet",
            hint="name it as what it is: "
            + shlex.join(["mv", str(file), str(file.with_suffix(".xlsx"))]),
        )
    if len(names) != 1 or Path(names[0]).suffix.lower() not in TEXT:
        raise UsageError(
            f"{file} holds {', '.join(names) or 'no file'}",
            hint=f"a .zip is read if it holds one file and that is {' or '.join(TEXT)}",
        )
    return archive.open(names[0])


def save(packed: Any, target: Path) -> Path:
    """A copy of a stream."""
    with target.open("wb") as copy:
        shutil.copyfileobj(packed, copy)
    return target


def opened(file: Path) -> Any:
    """The bytes of a file, unpacked."""
    kind = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower())
    return pa.input_stream(str(file), compression=kind)


def encoding_of(file: Path) -> str:
    """UTF-16 where a mark or every other byte says so; else UTF-8, which DuckDB checks."""
    with opened(file) as stream:
        start = stream.read(4096)
    for mark, name in MARKS.items():
        if start.startswith(mark):
            return name
    if 4 * start.count(b"\0") > len(start):
        return "utf-16-le" if start[1::2].count(b"\0") > start[::2].count(b"\0") else "utf-16-be"
    return "utf-8"


def decoded(file: Path, target: Path, encoding: str, shown: Path) -> Path:
    """A copy of a file in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    with opened(file) as stream, target.open("w", encoding="utf-8", newline="") as copy:
        for block in itertools.chain(blocks(stream), [b""]):
            try:
                copy.write(decoder.decode(block, final=not block))
            except UnicodeError as error:
                start = error.start if isinstance(error, UnicodeDecodeError) else 0
                raise TableError(
                    f"{shown} cannot be read as {encoding}: byte {done + start + 1:,} is none of "
                    "its letters",
                    hint=f"add {spelled('encoding', likely_encoding(file))}",
                ) from None
            done += len(block)
    return target


def blocks(stream: Any) -> Iterator[bytes]:
    """A stream, a block at a time."""
    while block := stream.read(HEAD):
        yield bytes(block)


def bad_byte(file: Path) -> tuple[int, int] | None:
    """The place and the line of the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    done, lines = 0, 1
    with opened(file) as stream:
        for block in blocks(stream):
            held = len(decoder.getstate()[0])
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                before = max(error.start - held, 0)
                return done + error.start - held + 1, lines + block[:before].count(b"\n")
            done, lines = done + len(block), lines + block.count(b"\n")
    return None


def likely_encoding(file: Path) -> str:
    """An encoding that reads a file that is not UTF-8."""
    if (found := encoding_of(file)) != "utf-8":
        return found
    with opened(file) as stream:
        # Five bytes have no letter in cp1252; all have one in latin-1.
        rare = any(byte in block for block in blocks(stream) for byte in b"\x81\x8d\x8f\x90\x9d")
    if bad_byte(file) is None:
        return "utf-8"
    return "latin-1" if rare else "cp1252"


# ---------------------------------------------------------------------- lines to columns


def layout_of(file: Path, shown: Path, options: ReadingOptions) -> TextLayout:
    """The separator and the names of the columns, from the first lines."""
    with opened(file) as stream:
        text = stream.read(HEAD).decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise TableError(
            f"{shown} is empty", hint="the first line names the columns, each other line is a row"
        )
    check_text(text, shown)
    lines = io.StringIO(text, newline="").readlines()[options.skip :]
    if not "".join(lines).strip():
        raise TableError(
            f"{shown} has {counted(options.skip, 'line')} or fewer, and all are left out",
            hint=f"leave out {spelled('skip', options.skip)}",
        )
    blank = next(i for i, line in enumerate(lines) if line.strip())
    lines = lines[blank:]
    separator = options.separator or separator_of(file, lines)
    records = parted(lines, separator)
    refuse_title(lines, separator, shown, options, blank)
    header = has_header(records[0], shown, options.header)
    names, notes = names_of(records[0], header=header)
    if len(names) == 1 and not options.separator and are_spaced(lines):
        notes.append(
            f"it is read as one column; if spaces part it, add {spelled('separator', 'space')}"
        )
    return TextLayout(separator, names, header, options.skip + blank, tuple(notes))


def check_text(text: str, shown: Path) -> None:
    """Refuse a file that is no text, before it is taken for a table of one column."""
    if "\0" in text:
        place = text.index("\0") + 1
        raise TableError(
            f"{shown} is not a text file: character {place:,} is a zero byte",
            hint="write the table as a text file, or name a file of another kind by what it is, "
            "e.g. .parquet",
        )


def separator_of(file: Path, lines: Sequence[str]) -> str:
    """What parts most lines into the same number of cells, more than one, as it does the first."""
    if ".tsv" in (file.suffix.lower(), Path(file.stem).suffix.lower()):
        return "\t"
    scores = {}
    for candidate in ",;\t|":
        records = parted(lines, candidate)
        widths = Counter(map(len, records))
        width, often = max(widths.items(), key=lambda each: (each[1], each[0]))
        fits = len(records[0]) == width
        scores[candidate] = (width > 1 and fits, often > 0.9 * len(records), max(width, 1))
    best = max(scores.values())
    if best[0]:
        return next(candidate for candidate, score in scores.items() if score == best)
    # No two lines agree: the first line names the columns, whatever the others are.
    return max(",;\t|", key=lambda each: len(parted(lines[:1], each)[0]))


def are_spaced(lines: Sequence[str]) -> bool:
    """Whether spaces part all lines into the same number of cells."""
    return (
        len(lines) > 1
        and len({len(line.split(" ")) for line in lines[:RECORDS]}) == 1
        and (len(lines[0].split(" ")) > 1)
    )


def parted(lines: Sequence[str], separator: str) -> list[list[str]]:
    """The cells of the first lines; the last may be cut off, and is left out."""
    read = csv.reader(lines, delimiter=separator)
    found: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # a cell longer than the limit
        found.extend(record for record in itertools.islice(read, RECORDS) if record)
    if read.line_num >= len(lines) > RECORDS and len(found) > 1:
        found.pop()
    return found or [[""]]


def refuse_title(
    lines: Sequence[str], separator: str, shown: Path, options: ReadingOptions, blank: int
) -> None:
    """Refuse lines of one cell before lines of several: a title, not a header."""
    records = parted(lines, separator)
    widths = [len(record) for record in records]
    usual = Counter(widths[1:]).most_common(1)[0][0] if len(widths) > 2 else 0
    if widths[0] == 1 < usual and options.bad_rows == "error":
        titles = next(i for i, line in enumerate(lines) if len(parted([line], separator)[0]) > 1)
        first = options.skip + blank + 1
        raise TableError(
            f"{shown} cannot be read: line {first} has 1 cell, and line {first + titles} has "
            f"{usual}",
            hint=f"if the table begins at line {first + titles}, add "
            f"{spelled('skip', options.skip + blank + titles)}",
        )


# ---------------------------------------------------------------------- rows to values


@dataclass(frozen=True)
class TextRows:
    """Files, given with what the user calls them, and how DuckDB is to read them."""

    files: Mapping[Path, Path]
    layout: TextLayout
    options: ReadingOptions

    @property
    def _common(self) -> str:
        # Comments are switched off: the sniffer would drop rows silently.
        return (
            f"delim = {quote_literal(self.layout.separator)}, quote = '\"', "
            f"header = {self.layout.header}, skip = {self.layout.skip}, comment = '', "
            f"strict_mode = true, nullstr = {listed(['', *self.options.null_text])}, "
            "hive_partitioning = false"
        )

    def texts(self, files: Iterable[Path], more: str = "") -> str:
        """All cells as they are written."""
        columns = ", ".join(f"{quote_literal(name)}: 'VARCHAR'" for name in self.layout.names)
        how = f"escape = '\"', auto_detect = false, columns = {{{columns}}}{more}"
        return f"read_csv({paths(files)}, {self._common}, {how})"

    def typed(self, as_text: Iterable[str] = (), more: str = "") -> str:
        """Cells of the types that DuckDB finds, but for columns that stay as they are written."""
        kept = ", ".join(f"{quote_literal(name)}: 'VARCHAR'" for name in as_text)
        types = f", types = {{{kept}}}" if kept else ""
        # Dates in other orders than ISO's are told apart by `cells`, a column at a time.
        how = f"names = {listed(self.layout.names)}, dateformat = '%Y-%m-%d'{types}{more}"
        whole = f"sample_size = -1, files_to_sniff = -1, {how}"
        return f"read_csv({paths(self.files)}, {self._common}, {whole})"

    @property
    def are_sniffed(self) -> bool:
        """Whether DuckDB finds the types; what is written otherwise is read by `cells` alone."""
        chosen = self.options
        plain = chosen.bad_rows == "error"
        return plain and not (chosen.decimal or chosen.thousands or chosen.dates)


def copy_text(con: Connection, rows: TextRows, made: TextNotes) -> None:
    """Copy the files into a temporary table.

    A view would not do: DuckDB 2.0 pushes casts down into the file, so that TRY_CAST raises and
    a number cast to text is spelled as in the file; and every scan would sniff the types again.
    """
    if rows.options.bad_rows == "drop":
        copy_good_lines(con, rows, made)
    elif not rows.are_sniffed:
        copy_checked(con, rows, rows.texts(rows.files))
    else:
        copy_checked(con, rows, rows.typed())
        if as_text := [*spelled_otherwise(con, rows), *with_early_years(con)]:
            copy_again(con, rows, as_text)


def copy_again(con: Connection, rows: TextRows, as_text: Iterable[str]) -> None:
    """Copy the files with some columns as they are written."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE {SOURCE} AS FROM {rows.typed(as_text)}")


def copy_checked(con: Connection, rows: TextRows, read: str) -> None:
    """Copy what SQL reads; where that fails, say which line of which file is why."""
    try:
        con.execute(f"CREATE TEMP TABLE {SOURCE} AS FROM {read}")
    except duckdb.Error as failed:
        # A sniffer that fails says no more than that; reading it all as text says where and why.
        for file, shown in rows.files.items():
            try:
                con.execute(f"SELECT count(COLUMNS(*)) FROM {rows.texts([file])}").fetchall()
            except duckdb.Error as error:
                raise bad_file(file, shown, error, rows.options) from error
        raise TableError(
            f"{', '.join(map(str, rows.files.values()))} cannot be read: {reason_of(failed)}",
            hint=f"say how it is written, e.g. {spelled('separator', ';')}",
        ) from failed


def bad_file(file: Path, shown: Path, error: duckdb.Error, options: ReadingOptions) -> TableError:
    """Which line cannot be read, why, and what to do."""
    reason = reason_of(error)
    if "not utf-8" in reason and (place := bad_byte(file)):
        byte, line = place
        return TableError(
            f"{shown} cannot be read: CSV Error on Line: {line}: byte {byte:,} of the file is not "
            "utf-8 encoded",
            hint=f"add {spelled('encoding', likely_encoding(file))}",
        )
    hint = ""
    if BAD_LINE.search(reason) and options.bad_rows == "error":
        hint = f"correct that line, or add {spelled('bad_rows', 'drop')} to leave such lines out"
    return TableError(f"{shown} cannot be read: {reason}", hint=hint)


def copy_good_lines(con: Connection, rows: TextRows, made: TextNotes) -> None:
    """Copy the lines that have as many cells as the header, and count the others."""
    rejects = ", store_rejects = true, rejects_table = 'voile_rejects', rejects_scan = 'voile_scan'"
    for i, (file, shown) in enumerate(rows.files.items()):
        into = f"INSERT INTO {SOURCE}" if i else f"CREATE TEMP TABLE {SOURCE} AS"
        try:
            con.execute(f"{into} FROM {rows.texts([file], rejects)}")
        except duckdb.Error as error:
            raise bad_file(file, shown, error, rows.options) from error
    lines = con.execute("SELECT count(DISTINCT (file_id, line)), min(line) FROM voile_rejects")
    dropped, first = lines.fetchall()[0]
    con.execute("DROP TABLE voile_rejects")
    con.execute("DROP TABLE voile_scan")
    if dropped:
        made.notes.append(
            f"{counted(dropped, 'line')} that cannot be parted into "
            f"{counted(len(rows.layout.names), 'cell')} left out, the first at line {first:,}"
        )


def spelled_otherwise(con: Connection, rows: TextRows) -> list[str]:
    """Columns taken for truth values whose texts are not 'true' and 'false'.

    A column of F alone, or of yes and no, is text until a codebook says that it is not.
    """
    truths = columns_of(con, "BOOLEAN")
    if not truths:
        return []
    spelt = ", ".join(
        f"bool_and(lower({quote_identifier(name)}) IN ('true', 'false'))" for name in truths
    )
    texts = rows.typed(more=", all_varchar = true")
    plain = con.execute(f"SELECT {spelt} FROM {texts}").fetchone() or ()
    return [name for name, is_plain in zip(truths, plain, strict=True) if is_plain is False]


def with_early_years(con: Connection) -> list[str]:
    """Columns whose dates are not dates: DuckDB takes 31/12/20 for a day of the year 31."""
    dated = columns_of(con, "DATE", "TIMESTAMP")
    if not dated:
        return []
    years = ", ".join(f"min(year({quote_identifier(name)}))" for name in dated)
    first = con.execute(f"SELECT {years} FROM {SOURCE}").fetchall()[0]
    return [name for name, year in zip(dated, first, strict=True) if (year or 1000) < 1000]


def columns_of(con: Connection, *types: str) -> list[str]:
    """The columns of `source` that have one of these types."""
    described = con.execute(f"DESCRIBE {SOURCE}").fetchall()
    return [str(name) for name, kind, *_ in described if kind in types]


# ---------------------------------------------------------------------- texts to what they mean


def straighten(con: Connection, rows: TextRows, made: TextNotes) -> None:
    """Copy the rows, and read columns of texts as what they say."""
    copy_text(con, rows, made)
    found, read = meanings(con, rows)
    doubles = columns_of(con, "DOUBLE")
    if rows.are_sniffed and doubles and any(one.style.decimal == "," for one in read):
        # In a file with decimal commas a point stands between thousands.
        texts = columns_of(con, "VARCHAR")
        copy_again(con, rows, [*texts, *doubles])
        found, read = meanings(con, rows)
    settle(con, found, read, rows.options, made)


def settle(
    con: Connection,
    found: Mapping[str, cells.ColumnTexts],
    read: Sequence[cells.ColumnMeaning],
    options: ReadingOptions,
    made: TextNotes,
) -> None:
    """Read columns as what their texts say, or note what a person has to decide."""
    for one in read:
        finding = cells.finding_of(con, found[one.name], one)
        settled = options.na if finding and finding.what == "missing" else None
        if finding is None or settled:
            read_as(con, one, found[one.name], made)
        elif settled is None:
            made.findings.append(finding)
    meant = {one.name for one in read if one.meaning != "text" or one.doubts}
    plain = [name for name in columns_of(con, "VARCHAR") if name not in meant]
    cells.missing_texts(con, plain, options, made.findings)
    made.with_points = columns_of(con, "DOUBLE")
    cells.make_whole(con, made.with_points)
    undecided = [text for text in found.values() if text.name not in meant]
    made.findings.extend(cells.mixed(con, undecided))


def meanings(
    con: Connection, rows: TextRows
) -> tuple[dict[str, cells.ColumnTexts], list[cells.ColumnMeaning]]:
    """What the columns of texts hold, and how each is read."""
    found = cells.look(con, columns_of(con, "VARCHAR"))
    return found, cells.decide(list(found.values()), rows.options, rows.layout.separator)


def read_as(
    con: Connection, one: cells.ColumnMeaning, found: cells.ColumnTexts, made: TextNotes
) -> None:
    """Turn a column into what its texts say."""
    if one.meaning == "text":
        return
    column = quote_identifier(one.name)
    kind = cells.type_of(con, one, found)
    con.execute(
        f"ALTER TABLE {SOURCE} ALTER {column} TYPE {kind} USING {cells.value_of(one, column, kind)}"
    )
    if one.meaning == "number" and one.style != cells.PLAIN:
        made.notes.append(f"{one.name!r} is read as numbers with {one.style.words()}")
    if one.order.removeprefix("short ") in ("dmy", "mdy"):
        order = cells.IN_WORDS[one.order.removeprefix("short ")]
        made.notes.append(f"{one.name!r} is read as dates: {order}")
