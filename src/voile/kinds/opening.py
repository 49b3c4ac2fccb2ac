"""Opening a release that may be hostile: what is checked before anything in it is believed.

Every limit is far above what Voile writes, and below what would exhaust a machine that opens it.
docs/reference/release-format.md lists them.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile import digests
from voile.errors import ReleaseError
from voile.files import open_regular
from voile.kinds.footers import checked_metadata
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, README

if TYPE_CHECKING:
    from voile.kinds.kind import Kind
    from voile.kinds.manifest import File, Manifest

MANIFEST_BYTES = 2**25
"""Of manifest.json; a listed value takes some twenty."""
JSON_VALUES = 600_000
"""Numbers, texts, lists and objects in manifest.json."""
JSON_NESTS = 100_000
"""Lists and objects in manifest.json: each takes far more memory than bytes."""
MOST_FILES = 10_000
MOST_ATTRIBUTES = 10_000
LONGEST_VALUE = 2**16
"""Characters of a name or value."""
VALUES_IN_WORDS, BYTES_OF_CHARACTER = 13, 4
"""Values that are listed in the words for a range, at most, and what is written beside them."""
DESCRIPTION_BYTES = 2**27
"""Of README.md or datapackage.json."""
MANY_ROWS, ROWS_PER_BYTE = 2**26, 256
"""Of a file with more rows than that, how many a byte may stand for."""
MISFITS = (TypeError, LookupError, ValueError, ArithmeticError, AttributeError)
"""What comes of data in which one thing does not fit another, where no check says so."""


def read_limited(folder: Path) -> bytes:
    """The bytes of manifest.json: a file of its own, and not too many for parsing them."""
    try:
        with open_regular(folder / MANIFEST) as file:
            return file.read(MANIFEST_BYTES + 1)
    except OSError:
        raise ReleaseError(
            f"{str(folder)!r} has no manifest.json: not a release, or one that is incomplete",
            hint="name the folder that voile publish, perturb or combine wrote",
        ) from None


def check_json(raw: bytes, name: str = MANIFEST) -> None:
    """Refuse JSON of which parsing would take too much memory.

    Signs within texts are counted as well: there are never fewer signs than values.
    """
    too_many = ""
    if len(raw) > MANIFEST_BYTES:
        too_many = f"{MANIFEST_BYTES:,} bytes"
    elif raw.count(b"[") + raw.count(b"{") > JSON_NESTS:
        too_many = f"{JSON_NESTS:,} lists and objects"
    elif raw.count(b",") + raw.count(b":") > JSON_VALUES:
        too_many = f"{JSON_VALUES:,} values"
    if too_many:
        raise ReleaseError(
            f"{name} has more than {too_many}",
            hint="no release that Voile writes is like that; publish one with a coarser schema",
        )


def check_shape(data: dict[str, Any]) -> None:
    """Refuse more attributes, files and longer texts than a release may have."""
    for key, most in (("attributes", MOST_ATTRIBUTES), ("files", MOST_FILES)):
        listed = data.get(key)
        if isinstance(listed, list) and len(listed) > most:
            raise ReleaseError(f"manifest.json lists {len(listed):,} {key}, more than {most:,}")
    if (longest := longest_text(data)) > LONGEST_VALUE:
        raise ReleaseError(
            f"manifest.json has a text of {longest:,} characters, more than {LONGEST_VALUE:,}"
        )


def longest_text(data: Any) -> int:
    """The length of the longest text in parsed JSON, keys included."""
    longest, left = 0, [data]
    while left:
        item = left.pop()
        if isinstance(item, str):
            longest = max(longest, len(item))
        elif isinstance(item, dict):
            left += [*item, *item.values()]
        elif isinstance(item, list):
            left += item
    return longest


def longest_shown(manifest: Manifest) -> int:
    """How many bytes a value of the release's files may have: ranges are words for some values."""
    longest = longest_text([manifest.attributes, manifest.parameters.model_dump(mode="json")])
    return BYTES_OF_CHARACTER * VALUES_IN_WORDS * (longest + len(" | "))


def check_listed(kind: Kind[Any], folder: Path, manifest: Manifest) -> None:
    """Every file that the manifest names may be named, is a file of its size, and inside."""
    home = folder.resolve()
    for file in manifest.files:
        check_name(kind, file)
        found = home / file.path
        try:
            state = found.lstat()
        except (OSError, ValueError):
            state = None
        # A link anywhere on the way leads elsewhere.
        if state is None or not stat.S_ISREG(state.st_mode) or found.resolve() != found:
            raise ReleaseError(f"{file.path} is missing from {str(folder)!r}")
        if state.st_size != file.bytes:
            raise ReleaseError(f"{file.path} was changed: it does not have {file.bytes} bytes")
        check_density(file)


def check_stated(kind: Kind[Any], manifest: Manifest) -> None:
    """Every file that the manifest names may be named, and holds as many rows as it can."""
    for file in manifest.files:
        check_name(kind, file)
        check_density(file)


def check_density(file: File) -> None:
    """Refuse far more rows than so few bytes hold: equal rows that would take hours to count."""
    rows = file.rows or 0
    if rows > MANY_ROWS and rows > ROWS_PER_BYTE * file.bytes:
        raise ReleaseError(
            f"{file.path} states {rows:,} rows in {file.bytes:,} bytes, more than "
            f"{ROWS_PER_BYTE} in a byte"
        )


def check_name(kind: Kind[Any], file: File) -> None:
    """A file has one of the names that its kind writes, inside the folder."""
    path = Path(file.path)
    if path.is_absolute() or ".." in path.parts or "\\" in file.path:
        raise ReleaseError(f"manifest.json names a file outside the release: {file.path!r}")
    if file.path in (README, DATA_PACKAGE):
        if file.bytes > DESCRIPTION_BYTES:
            raise ReleaseError(f"{file.path} has more than {DESCRIPTION_BYTES:,} bytes")
        return
    if not any(re.fullmatch(pattern, file.path) for pattern in kind.file_names):
        raise ReleaseError(
            f"manifest.json names a file {file.path!r}, which {kind.about} does not have"
        )


def check_hashes(
    folder: Path, manifest: Manifest, *, trust: bool = True, but: Set[str] = frozenset()
) -> None:
    """Every byte is as it was sealed, and no Parquet file unpacks to more than it states.

    Files that were looked at before and not changed are not again; without `trust` in what is
    remembered, all are. `but` are files that are not here.
    """
    home, files = folder.resolve(), [file for file in manifest.files if file.path not in but]
    longest: list[int] = []
    rows = {home / f.path: f.rows for f in files if f.path.endswith(".parquet")}

    def look(path: Path) -> None:
        if path in rows:
            longest[:] = longest or [longest_shown(manifest)]  # of a known file it is not needed
            name = path.relative_to(home).as_posix()
            checked_metadata(path, name, rows[path] or 0, longest=longest[0])

    try:
        wrong = digests.changed([(home / f.path, f.sha256) for f in files], look, trust=trust)
    except OSError as error:
        raise ReleaseError(f"{error.filename} cannot be read: {error.strerror}") from None
    if wrong:
        name = wrong[0].relative_to(home).as_posix()
        raise ReleaseError(f"{name} was changed after the release was written")
