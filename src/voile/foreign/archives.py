"""Packed workbooks, looked at before they are unpacked: how large they are, what cannot be read."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from voile.errors import TableError
from voile.units import bytes_in_words

MOST_BYTES = 2**31
"""What the parts of a workbook may come to unpacked."""
MOST_PARTS = 10_000
BLOCK = 2**22
ROW_END = b"</row>"
ERROR = re.compile(rb'<c r="([A-Z]+\d+)"[^>]*\bt="e"')
UNCOMPUTED = re.compile(
    rb'<c r="([A-Z]+\d+)"(?![^>]*\bt="str")[^>]*>\s*<f[^>]*?(?:/>|>[^<]*</f>)\s*'
    rb"(?:<v\s*/>|<v>\s*</v>)?\s*</c>"
)
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclass
class SheetScan:
    """What a sheet's text shows that its values do not."""

    errors: int = 0
    first_error: str = ""
    uncomputed: int = 0
    """Formulas that nobody has computed: the file holds no value of them."""
    first_uncomputed: str = ""


def check_archive(file: Path) -> None:
    """Refuse a packed workbook that is too large unpacked, or damaged: its parts are all read."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS:
                raise TableError(f"{file} has {len(parts):,} parts, and no workbook has so many")
            stated = sum(part.file_size for part in parts)
            refuse_large(file, stated)
            # What a part says of its own size need not be so: a wrong one fails here.
            for part in parts:
                with archive.open(part) as stream:
                    while stream.read(BLOCK):
                        pass
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise TableError(
            f"{file} is not a workbook that can be unpacked: {error}",
            hint="open it in a spreadsheet program, and save it again",
        ) from None


def refuse_large(file: Path, size: int) -> None:
    """Refuse a workbook of so many bytes unpacked."""
    if size > MOST_BYTES:
        most = bytes_in_words(MOST_BYTES)
        raise TableError(
            f"{file} comes to {bytes_in_words(size)} unpacked, more than {most}",
            hint="save its sheet as a text file (.csv), and read that",
        )


def scan_sheet(file: Path, sheet: str) -> SheetScan:
    """Look for cells of a sheet that hold errors, or formulas without a value."""
    found = SheetScan()
    with zipfile.ZipFile(file) as archive:
        part = part_of(archive, sheet)
        if part is None:
            return found
        for rows in whole_rows(archive, part):
            for match in ERROR.finditer(rows) if b't="e"' in rows else ():
                found.errors += 1
                found.first_error = found.first_error or match[1].decode()
            for match in UNCOMPUTED.finditer(rows) if b"<f" in rows else ():
                found.uncomputed += 1
                found.first_uncomputed = found.first_uncomputed or match[1].decode()
    return found


def whole_rows(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """The text of a sheet in blocks that end with a row."""
    rest = b""
    with archive.open(part) as stream:
        while block := stream.read(BLOCK):
            rest += block
            end = rest.rfind(ROW_END) + len(ROW_END)
            if end >= len(ROW_END):
                yield rest[:end]
                rest = rest[end:]
    yield rest


def part_of(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """The part of a workbook that holds a sheet; None where it is written otherwise."""
    try:
        book = ET.fromstring(archive.read("xl/workbook.xml"))  # noqa: S314  (bounded, and apart)
        links = ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    except (KeyError, ET.ParseError):
        return None
    targets = {link.get("Id"): link.get("Target", "") for link in links}
    for one in book.iter():
        if one.tag.endswith("}sheet") and one.get("name") == sheet:
            target = targets.get(one.get(RELATION), "")
            name = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            return name if name in archive.namelist() else None
    return None
