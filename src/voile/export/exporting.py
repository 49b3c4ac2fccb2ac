"""One release to one file: which format, which tables, where, and what is said of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from voile.errors import UsageError, VoileError, did_you_mean, spelled
from voile.export.tables import PlacedTable, write_csv, write_parquet
from voile.files import check_free, check_utf8, sync
from voile.kinds.exported import ExportChoice, ExportTable
from voile.kinds.staging import check_outside
from voile.system import here as system

if TYPE_CHECKING:
    from voile.kinds.release import Release

Format = Literal["csv", "parquet", "sql", "dta", "croissant", "ddi", "datapackage"]
Dialect = Literal["standard", "duckdb", "sqlite"]
ENDINGS: dict[str, Format] = {
    ".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".sql": "sql", ".dta": "dta",
    ".xml": "ddi",
}  # fmt: skip
NAMES: dict[str, Format] = {"croissant": "croissant", "datapackage": "datapackage"}
"""What the name of a .json file begins or ends with that says what it is."""
DESCRIPTIONS: tuple[Format, ...] = ("croissant", "ddi", "datapackage")
"""Formats that describe a release's files, and hold no rows."""
FORMATS: tuple[Format, ...] = ("csv", "parquet", "sql", "dta", *DESCRIPTIONS)
"""What a release can be exported to."""
DIALECTS: tuple[Dialect, ...] = ("standard", "duckdb", "sqlite")
README = ".README.md"
"""What the file of words is called that stands beside a file without a place for them."""


@dataclass(frozen=True)
class ExportResult:
    """What was written."""

    release: str
    kind: str
    format: Format
    paths: tuple[str, ...]
    """The files with rows, or with the description; the first is the one that was named."""
    rows: int
    readme: str | None
    """The file of words beside it, where the format has no place for them."""
    about: str
    """What a row is."""
    notes: tuple[str, ...] = ()
    formulas: int = field(default=0)
    """Cells of CSV that a spreadsheet would compute."""

    def in_words(self) -> str:
        """What was written, and what its rows are."""
        listed = ", ".join(self.paths)
        rows = f"{listed}: {self.rows:,} rows" if self.rows else listed
        beside = f"\n{self.readme}: the promise, and how to count" if self.readme else ""
        return f"{rows}. {self.about}{beside}"

    def to_dict(self) -> dict[str, Any]:
        """The keys that `voile export --json` prints."""
        return {
            "release": self.release, "kind": self.kind, "format": self.format,
            "paths": list(self.paths), "rows": self.rows, "readme": self.readme,
            "about": self.about, "notes": list(self.notes), "formulas": self.formulas,
        }  # fmt: skip


def export(
    release: Release,
    path: str | Path,
    format: str | None = None,
    *,
    dialect: str = "standard",
    tables: bool = False,
    noisy_rows: bool = False,
    number: int | None = None,
    csv_safe: bool = False,
    overwrite: bool = False,
) -> ExportResult:
    """Write what a release shows to a file: csv, parquet, sql or dta; or a description of it.

    The format is that of the file's ending, if no other is named: croissant (croissant.json), ddi
    (.xml) and datapackage (datapackage.json) describe the release's own files to catalogues.
    `dialect` is that of SQL: standard, duckdb or sqlite. Noisy marginals give synthetic rows
    (`number` of them), or with `tables` their noisy tables. A noisy view gives its rows only with
    `noisy_rows`: most stand for nobody. `csv_safe` puts an apostrophe before texts of CSV that a
    spreadsheet would compute.
    """
    target = Path(path)
    chosen = chosen_format(target, format)
    check_choices(chosen, dialect, csv_safe=csv_safe)
    check_target(release, target, overwrite=overwrite)
    choice = ExportChoice(tables, noisy_rows, number)
    if chosen in DESCRIPTIONS:
        return describe_to(release, target, chosen, choice, overwrite=overwrite)
    found = release.exported(choice)
    placed = [PlacedTable(one, beside_name(target, n, one)) for n, one in enumerate(found)]
    if chosen == "sql":
        placed = [PlacedTable(one, target) for one in found]
    return write_tables(
        release, chosen, placed, target, dialect=dialect, csv_safe=csv_safe, overwrite=overwrite
    )


def chosen_format(target: Path, given: str | None) -> Format:
    """The format that is named, or that the file's name says."""
    if given is not None:
        for known in FORMATS:
            if given == known:
                return known
        raise UsageError(
            f"{spelled('format', given)} is not known", hint=did_you_mean(given, list(FORMATS))
        )
    ending, stem = target.suffix.lower(), target.stem.lower()
    if ending == ".json":
        for word, found in NAMES.items():
            if stem.startswith(word) or stem.endswith(word):
                return found
    if ending in ENDINGS:
        return ENDINGS[ending]
    raise UsageError(
        f"{str(target)!r} ends in {ending or 'nothing'}, which says no format",
        hint=f"name it {', '.join(e for e in ENDINGS if e != '.pq')} or croissant.json, or add "
        f"{spelled('format', 'csv')}",
    )


def check_choices(chosen: Format, dialect: str, *, csv_safe: bool) -> None:
    """Refuse options that mean nothing to a format."""
    if dialect not in DIALECTS:
        raise UsageError(
            f"{spelled('dialect', dialect)} is not known", hint=f"use {', '.join(DIALECTS)}"
        )
    if dialect != "standard" and chosen != "sql":
        raise UsageError(f"{spelled('dialect', dialect)} is for SQL", hint="name a .sql file")
    if csv_safe and chosen != "csv":
        raise UsageError(f"{spelled('csv_safe', True)} is for CSV", hint="name a .csv file")


def check_target(release: Release, target: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done."""
    check_utf8(target)
    if target.resolve().is_relative_to(release.path.resolve()):
        raise UsageError(f"{str(target)!r} is inside the release", hint="write it elsewhere")
    check_outside(target)
    if target.is_dir():
        raise UsageError(f"{str(target)!r} is a folder", hint="name a file")
    check_free(target, overwrite=overwrite)
    if not target.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(target.absolute().parent)!r}", hint="make it first"
        )


def beside_name(target: Path, number: int, table: ExportTable) -> Path:
    """The file of a table: the first has the name that was given."""
    if not number:
        return target
    return target.with_name(f"{target.stem}-{table.name.rpartition('_')[2]}{target.suffix}")


# ----------------------------------------------------------------------
# writing


def words(release: Release, tables: Sequence[ExportTable]) -> str:
    """What must be known to use the file, as Markdown."""
    each = [f"`{one.name}`: {one.about}" if len(tables) > 1 else one.about for one in tables]
    return "\n\n".join(
        [
            f"# {release.name}, exported from a release of Voile",
            *each,
            f"The release has the digest {release.manifest.digest}. What follows is its own "
            "description.",
            release.describe(),
        ]
    )


def write_tables(
    release: Release,
    chosen: Format,
    placed: Sequence[PlacedTable],
    target: Path,
    *,
    dialect: str,
    csv_safe: bool,
    overwrite: bool,
) -> ExportResult:
    """Write beside, read again, rename; whatever fails leaves everything as it was."""
    text = words(release, [one.table for one in placed])
    readme = target.with_name(f"{target.name}{README}") if chosen == "csv" else None
    paths = list(dict.fromkeys(one.path for one in placed))
    for place in [*paths, *([readme] if readme else [])]:
        check_free(place, overwrite=overwrite)
    writer = writer_of(release, chosen, text, dialect=dialect, csv_safe=csv_safe)
    with BesideFiles() as beside:
        rows, notes, formulas = writer(placed, beside)
        if readme is not None:
            beside.place(readme).write_text(text + "\n", encoding="utf-8", newline="\n")
        beside.commit(overwrite=overwrite)
    return ExportResult(
        str(release.path),
        release.kind,
        chosen,
        tuple(map(str, paths)),
        rows,
        None if readme is None else str(readme),
        " ".join(one.table.about for one in placed),
        tuple(notes),
        formulas,
    )


Writer = Callable[[Sequence[PlacedTable], "BesideFiles"], tuple[int, list[str], int]]


def writer_of(
    release: Release, chosen: Format, text: str, *, dialect: str, csv_safe: bool
) -> Writer:
    """What writes a format; it gives the rows, notes, and cells that a spreadsheet computes."""
    said = {
        b"voile": json.dumps(
            {
                "release": release.name,
                "digest": release.manifest.digest,
                "kind": release.kind,
                "simulated": release.manifest.simulated,
                "promise": release.promise_in_short,
                "readme": text,
            },
            ensure_ascii=False,
        ).encode()
    }
    if chosen == "csv":
        return lambda placed, beside: write_csv(placed, beside.place, csv_safe=csv_safe)
    if chosen == "parquet":
        return lambda placed, beside: write_parquet(placed, beside.place, said)
    if chosen == "sql":
        from voile.export.sql import write_sql  # noqa: PLC0415  (one format among several)

        return lambda placed, beside: write_sql(placed, beside.place, text, dialect)
    from voile.export.stata import write_dta  # noqa: PLC0415

    return lambda placed, beside: write_dta(placed, beside.place, text)


def describe_to(
    release: Release, target: Path, chosen: Format, choice: ExportChoice, *, overwrite: bool
) -> ExportResult:
    """Write a description of the release's own files."""
    release.refuse_choice(choice)
    from voile.export import descriptions  # noqa: PLC0415

    content = descriptions.WRITERS[chosen](release, target)
    with BesideFiles() as beside:
        beside.place(target).write_bytes(content)
        beside.commit(overwrite=overwrite)
    about = "A description of the release's files; it holds no rows."
    return ExportResult(str(release.path), release.kind, chosen, (str(target),), 0, None, about)


class BesideFiles:
    """Files that are written beside their places, and renamed together once all are whole."""

    def __init__(self) -> None:
        self._places: dict[Path, Path] = {}

    def __enter__(self) -> BesideFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for beside in self._places.values():
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    def place(self, path: Path) -> Path:
        """Where to write what is to have this name."""
        found = path.with_name(f".{path.name}.{os.getpid()}")
        self._places[path] = found
        return found

    def commit(self, *, overwrite: bool) -> None:
        """Give the files their names."""
        try:
            for path in self._places:
                check_free(path, overwrite=overwrite)
            for beside in self._places.values():
                sync(beside)
            for path, beside in self._places.items():
                system.replace(beside, path)
        except OSError as error:
            raise VoileError(
                f"cannot write {error.filename!r}: {error.strerror}", hint="choose another place"
            ) from None
