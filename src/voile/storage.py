"""Folders that this machine's file system does not have: object stores, HDFS, and file:// URLs.

Arrow reaches them: s3:// and s3a://, gs://, abfss://, hdfs://, and whatever else its
`FileSystem.from_uri` knows. Credentials are those of the environment, never part of a URL.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from voile.errors import UsageError

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # one letter is a drive
AS_ARROW = {"s3a": "s3", "s3n": "s3"}
"""Schemes that Hadoop has its own names for."""
PLAIN = re.compile(r"[\w./=+@,:~!$&'()-]*")
"""What the path of a URL may have: every reader takes that as it is."""
FOLDERS = ("local", "hdfs")
"""File systems in which a file lies in a folder that must be made, and is renamed in one step."""
BESIDE = ".partial"
"""Behind the name of a file that is being written there in one step."""
PIECE = 2**22
"""Bytes that are read at a time."""


def is_url(path: object) -> bool:
    """Whether it is the URL of a folder, and no path of this machine."""
    return isinstance(path, str) and URL.match(path) is not None


class StoredFolder:
    """A folder behind a URL. Names are those of its files, with / between folders within it."""

    def __init__(self, url: str, system: Any, base: str) -> None:
        self.url = url
        """As it was given, from which another process makes the same folder."""
        self._system, self._base = system, base.rstrip("/")

    def __repr__(self) -> str:
        return f"StoredFolder({self.url!r})"

    def __str__(self) -> str:
        return self._shown

    @classmethod
    def of(cls, url: str) -> StoredFolder:
        """The folder at a URL, whether or not anything is there."""
        check_url(url)
        scheme, rest = url.split("://", 1)
        scheme = scheme.lower()
        if scheme == "file":
            return cls._local(url)
        from pyarrow import fs  # noqa: PLC0415  (it takes a while to load)

        try:
            system, base = fs.FileSystem.from_uri(f"{AS_ARROW.get(scheme, scheme)}://{rest}")
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UsageError(
                f"{url!r} cannot be reached: {first_line(error)}",
                hint="use s3a://BUCKET/…, gs://…, abfss://…, hdfs://… or file:///…, and see that "
                "the environment has the credentials",
            ) from None
        return cls(url, system, base)

    @classmethod
    def _local(cls, url: str) -> StoredFolder:
        from urllib.parse import urlsplit  # noqa: PLC0415
        from urllib.request import url2pathname  # noqa: PLC0415

        from pyarrow import fs  # noqa: PLC0415

        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
            raise UsageError(
                f"{url!r} names no folder of this machine", hint="three slashes: file:///data/…"
            )
        return cls(url, fs.LocalFileSystem(), Path(url2pathname(parts.path)).as_posix())

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine after all."""
        return bool(self._system.type_name == "local")

    @property
    def _shown(self) -> str:
        return self.url.partition("?")[0].rstrip("/")

    def uri(self, name: str) -> str:
        """Where Spark finds a file: a URL of the scheme that was given, or a path."""
        return self._path(name) if self.is_local else f"{self._shown}/{name}"

    def _path(self, name: str) -> str:
        check_name(name)
        return f"{self._base}/{name}"

    # ------------------------------------------------------------------ looking

    def size(self, name: str) -> int | None:
        """The bytes of a file; None if there is no such file."""
        return self.sizes([name])[0]

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """The same of several files."""
        with self._reaching():
            found = self._system.get_file_info([self._path(name) for name in names])
            return [info.size if info.is_file and self._is_own(info) else None for info in found]

    def _is_own(self, info: Any) -> bool:
        """Whether no link on the way leads elsewhere; an object store has none."""
        if not self.is_local:
            return True
        inside = Path(info.path).relative_to(self._base)
        return (Path(self._base).resolve() / inside).resolve() == Path(
            self._base
        ).resolve() / inside

    def names(self) -> list[str]:
        """All files of the folder and of those within it, in order."""
        from pyarrow import fs  # noqa: PLC0415

        selected = fs.FileSelector(self._base, recursive=True, allow_not_found=True)
        with self._reaching():
            found = self._system.get_file_info(selected)
        start = len(self._base.lstrip("/")) + 1
        return sorted(info.path.lstrip("/")[start:] for info in found if info.is_file)

    def read(self, name: str, limit: int) -> bytes:
        """The first `limit` bytes of a file; FileNotFoundError if there is none."""
        self._check_there(name)
        with self._reaching(name), self._system.open_input_stream(self._path(name)) as file:
            return bytes(file.read(limit))

    def fetch(self, name: str, to: Path, most: int | None = None) -> str:
        """Copy a file to this machine, or its first bytes if it has more than `most`; the SHA-256
        of what was copied."""
        self._check_there(name)
        digest = hashlib.sha256()
        with self._reaching(name), self._system.open_input_stream(self._path(name)) as file:
            to.parent.mkdir(parents=True, exist_ok=True)
            with to.open("wb") as copy:
                left = PIECE if most is None else most
                while left > 0 and (piece := file.read(min(PIECE, left))):
                    digest.update(piece)
                    copy.write(piece)
                    left -= 0 if most is None else len(piece)
        return digest.hexdigest()

    def _check_there(self, name: str) -> None:
        if self.is_local and self.size(name) is None:  # else it shows when it is opened
            raise FileNotFoundError(f"{self}/{name}")

    # ------------------------------------------------------------------ writing

    def write(self, name: str, content: bytes) -> None:
        """Put a file in its place, in one step."""
        with self._reaching(name):
            place = self._path(name)
            self._make_folder(place)
            # A stream that is closed has written a file, whatever happened before. Content is
            # handed over at once, and where names can be changed it gets its own when it is whole.
            beside = f"{place}{BESIDE}" if self._renames else place
            with self._system.open_output_stream(beside) as file:
                file.write(content)
            if beside != place:
                self._system.move(beside, place)

    def upload(self, path: Path, name: str) -> str:
        """Copy a file of this machine there; its SHA-256."""
        digest = hashlib.sha256()
        with self._reaching(name), path.open("rb") as file:
            place = self._path(name)
            self._make_folder(place)
            with self._system.open_output_stream(place) as copy:
                while piece := file.read(PIECE):
                    digest.update(piece)
                    copy.write(piece)
        return digest.hexdigest()

    def delete(self, name: str) -> None:
        """Remove a file, if it is there; where folders are made, those that are empty then."""
        if self.size(name) is None:
            return
        place = self._path(name)
        with self._reaching(name):
            self._system.delete_file(place)
        if self.is_local:
            with suppress(OSError):  # as soon as one is not empty
                for folder in PurePosixPath(place).parents:
                    if len(str(folder)) < len(self._base):
                        break
                    Path(folder).rmdir()

    @property
    def _renames(self) -> bool:
        return self._system.type_name in FOLDERS

    def _make_folder(self, place: str) -> None:
        if self._renames:  # elsewhere it would be a file of no bytes
            self._system.create_dir(place.rpartition("/")[0], recursive=True)

    @contextmanager
    def _reaching(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise UsageError(
                f"{self}{'/' if name else ''}{name} cannot be reached: {first_line(error)}",
                hint="see that the place exists, and that the environment has the credentials",
            ) from None


def check_url(url: str) -> None:
    """Refuse URLs that readers understand in different ways, or that hold a secret."""
    if not is_url(url):
        raise UsageError(f"{url!r} is not a URL", hint="such as s3a://bucket/people.voile")
    scheme, rest = url.split("://", 1)
    place, _, query = rest.partition("?")
    user, at, _ = place.partition("/")[0].rpartition("@")
    if at and ":" in user:
        raise UsageError(
            f"the URL {scheme}://…@{place.partition('/')[0].rpartition('@')[2]}/… has a password",
            hint="keep credentials in the environment, as AWS_SECRET_ACCESS_KEY",
        )
    if scheme.lower() == "file":
        return
    if not place.strip("/") or not PLAIN.fullmatch(place) or "#" in query:
        raise UsageError(
            f"the URL {url!r} has characters that not all readers take as they are",
            hint="name a folder by letters, digits and . _ - /",
        )


def check_name(name: str) -> None:
    """Refuse a name that leads out of the folder."""
    parts = name.split("/")
    if "\\" in name or "\0" in name or {"", ".", ".."} & set(parts):
        raise UsageError(f"{name!r} is no name of a file in a folder", hint="as data/x.parquet")


def first_line(error: BaseException) -> str:
    """The first line of a message of Arrow's."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
