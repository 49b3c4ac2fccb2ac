"""DDI-Codebook 2.5, the description of data files that archives of social science keep: ddi.xml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from voile.export.descriptions import DescribedTable, sentence, where

if TYPE_CHECKING:
    from voile.kinds.release import Release

NAMESPACE = "ddi:codebook:2_5"
SCHEMA = "https://ddialliance.org/Specification/DDI-Codebook/2.5/XMLSchema/codebook.xsd"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FORMATS = {"string": "character", "date": "character"}
"""Of `varFormat`: all others are numeric."""
SPELLED = {"date": "date (ISO 8601)", "boolean": "boolean", "integer": "integer"}


def codebook_of(release: Release, target: Path, tables: Sequence[DescribedTable]) -> bytes:
    """A release's files and variables, as XML."""
    ET.register_namespace("", NAMESPACE)
    ET.register_namespace("xsi", INSTANCE)
    root = ET.Element(
        f"{{{NAMESPACE}}}codeBook",
        {"version": "2.5", f"{{{INSTANCE}}}schemaLocation": f"{NAMESPACE} {SCHEMA}"},
    )
    document(root, release)
    study(root, release)
    for number, table in enumerate(tables, start=1):
        file_of(root, release, target, table, number)
    variables = child(root, "dataDscr")
    for number, table in enumerate(tables, start=1):
        for place, field in enumerate(table.fields, start=1):
            variable(variables, field, f"F{number}", f"F{number}V{place}")
    ET.indent(root, " ")
    text: bytes = ET.tostring(root, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def child(parent: ET.Element, tag: str, text: str | None = None, /, **said: str) -> ET.Element:
    """An element of DDI in another; what XML cannot hold is left out of its text."""
    found = ET.SubElement(parent, f"{{{NAMESPACE}}}{tag}", said)
    found.text = None if text is None else NOT_XML.sub("�", text)
    return found


def titled(parent: ET.Element, release: Release) -> None:
    """What the release is called, and what it is known by."""
    citation = child(parent, "citation")
    title = child(citation, "titlStmt")
    child(title, "titl", release.name)
    child(title, "IDNo", release.manifest.digest, agency="SHA-256")
    production = child(citation, "prodStmt")
    child(production, "software", "Voile", version=release.manifest.voile)


def document(root: ET.Element, release: Release) -> None:
    """About the description itself."""
    titled(child(root, "docDscr"), release)


def study(root: ET.Element, release: Release) -> None:
    """What was published, what is promised, and how to count."""
    found = child(root, "stdyDscr")
    titled(found, release)
    about = child(found, "stdyInfo")
    child(about, "abstract", sentence(release))
    summary = child(about, "sumDscr")
    child(summary, "dataKind", release.kind)
    method = child(found, "method")
    child(method, "notes", release.describe(), subject="The promise, and how to count")
    access = child(found, "dataAccs")
    use = child(access, "useStmt")
    child(use, "confDec", release.promise_in_short)


def file_of(
    root: ET.Element, release: Release, target: Path, table: DescribedTable, number: int
) -> None:
    """A table, by its first file; the others are named in a note."""
    first = where(release, target, table.files[0].path)
    found = child(root, "fileDscr", ID=f"F{number}", URI=first)
    text = child(found, "fileTxt")
    child(text, "fileName", table.name)
    if table.title:
        child(text, "fileCont", table.title)
    size = child(text, "dimensns")
    child(size, "caseQnty", str(table.rows))
    child(size, "varQnty", str(len(table.fields)))
    child(text, "fileType", "Apache Parquet")
    for file in table.files:
        place = where(release, target, file.path)
        child(found, "notes", f"{place}: {file.rows} rows, SHA-256 {file.sha256}")


def variable(parent: ET.Element, field: Mapping[str, Any], file: str, name: str) -> None:
    """A column: its values, whether it may be missing, and its type."""
    allowed, kind = field["constraints"], field["type"]
    nature = "contin" if kind == "number" and "enum" not in allowed else "discrete"
    found = child(parent, "var", ID=name, name=field["name"], files=file, intrvl=nature)
    child(found, "labl", field["name"])
    if "minimum" in allowed:
        ends = {"min": str(allowed["minimum"]), "max": str(allowed["maximum"])}
        child(child(found, "valrng"), "range", **ends)
    for value in allowed.get("enum", ()):
        category = child(found, "catgry")
        child(category, "catValu", str(value))
        child(category, "labl", str(value))
    if not allowed.get("required", True):
        category = child(found, "catgry", missing="Y", missType="NULL")
        child(category, "labl", "missing")
    child(found, "varFormat", SPELLED.get(kind), type=FORMATS.get(kind, "numeric"))
