"""Releases in object stores: opened through a mirror of their small files, and put there whole.

A store has no folders that could be renamed, and replaces nothing but single files. So a release is
there from the moment on that its manifest.json is: that is written last, at once. Before all else a
marker lists the files to come; what a killed run has left is known by it, and removed by the next
run to the same place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import weakref
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from voile.errors import ReleaseError, UsageError, VoileError
from voile.files import TEMPORARY
from voile.kinds.footers import checked_metadata
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, README, SIGNATURE, File, Manifest
from voile.kinds.opening import MANIFEST_BYTES, check_stated, longest_shown
from voile.kinds.parts import LookAtParts, part_terms
from voile.kinds.registry import kinds
from voile.kinds.release import Release, read_manifest
from voile.progress import Progress, Silent
from voile.signing.statements import LARGEST_FILE
from voile.storage import BESIDE, StoredFolder, check_name
from voile.system import here as system

if TYPE_CHECKING:
    from voile.engines import CountingEngine

T = TypeVar("T")
AT_ONCE = 8
"""Files that are copied at the same time."""
MARKER = "_voile_partial.json"
"""Lists the files of a release that is being written; there until the release is."""
MARKER_FORMAT = "voile-partial"
MARKER_BYTES = 2**22


# ----------------------------------------------------------------------
# opening one


@dataclass(frozen=True)
class Mirror:
    """Where a release lies, and the folder of this machine that its files are brought to."""

    store: StoredFolder
    folder: Path
    manifest: Manifest

    def bring(self, file: File) -> Path:
        """A file of the release on this machine, fetched and hashed unless it was before."""
        path = self.folder / file.path
        if path.exists():
            return path
        beside = path.with_name(f"{path.name}{BESIDE}")
        try:
            digest = self.store.fetch(file.path, beside, file.bytes + 1)
        except FileNotFoundError:
            raise ReleaseError(f"{file.path} is missing from {str(self.store)!r}") from None
        if beside.stat().st_size != file.bytes:
            raise ReleaseError(f"{file.path} was changed: it does not have {file.bytes} bytes")
        if digest != file.sha256:
            raise ReleaseError(f"{file.path} was changed after the release was written")
        if file.rows is not None:
            longest = longest_shown(self.manifest)
            checked_metadata(beside, file.path, file.rows, longest=longest)
        system.replace(beside, path)
        return path


def open_stored(url: str, *, check: bool, engine: CountingEngine | None) -> Release:
    """Open a release at a URL.

    Its manifest and small files are brought here, and with an engine its rows stay where they are;
    without, they are brought, too. What is here goes with the release.
    """
    store = StoredFolder.of(url)
    raw = manifest_at(store)
    kind, manifest = read_manifest(raw)
    check_stated(kind, manifest)
    for file, size in zip(manifest.files, store.sizes([f.path for f in manifest.files]),
                          strict=True):  # fmt: skip
        if size is None:
            raise ReleaseError(f"{file.path} is missing from {str(store)!r}")
        if size != file.bytes:
            raise ReleaseError(f"{file.path} was changed: it does not have {file.bytes} bytes")
    home = TEMPORARY.make()
    try:
        folder = home / "release.voile"
        folder.mkdir()
        (folder / MANIFEST).write_bytes(raw)
        with suppress(FileNotFoundError):
            (folder / SIGNATURE).write_bytes(store.read(SIGNATURE, LARGEST_FILE + 1))
        release: Release = kind.release(folder, manifest)
        mirror = Mirror(store, folder, manifest)
        release.lies_at(mirror, engine)
        brought = [f for f in manifest.files if f.path not in release.left]
        in_parallel(mirror.bring, brought)
        if check:
            look_elsewhere(release)
    except BaseException:
        TEMPORARY.remove(home)
        raise
    release.notes = fetched_note(store, brought, [f for f in manifest.files if f not in brought])
    weakref.finalize(release, TEMPORARY.remove, home)
    return release


def in_parallel(function: Callable[[T], object], items: Sequence[T]) -> None:
    """Call a function with each item, some at the same time: a store takes long to answer."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [pool.submit(function, item) for item in items]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def manifest_at(store: StoredFolder) -> bytes:
    """The bytes of manifest.json, of which no more are read than are parsed."""
    try:
        raw = store.read(MANIFEST, MANIFEST_BYTES + 1)
    except FileNotFoundError:
        check_finished(store)
        raise ReleaseError(
            f"{str(store)!r} has no manifest.json: not a release, or one that is incomplete",
            hint="name the folder that voile publish, perturb or combine wrote",
        ) from None
    if not raw.rstrip().endswith(b"}"):  # where a file is not written in one step
        check_finished(store)
    return raw


def check_finished(store: StoredFolder) -> None:
    """Say that a run did not finish, where one has left its marker."""
    if store.size(MARKER) is not None:
        raise ReleaseError(
            f"{str(store)!r} is not complete: a run that writes it was killed, or goes on",
            hint="wait, or publish it again to the same place, which removes what was left",
        )


def fetched_note(store: StoredFolder, brought: list[File], left: list[File]) -> tuple[str, ...]:
    """What was brought here, in words."""
    size = sum(file.bytes for file in brought)
    note = f"{size:,} bytes of {store} were fetched, into a temporary folder"
    if left:
        note += f"; {sum(file.bytes for file in left):,} bytes of rows stay there"
    return (note,)


# ----------------------------------------------------------------------
# looking at files where they lie


def check_stored(release: Release, known: Set[str]) -> None:
    """No file but the known ones is where a release lies, and those that were left are sound."""
    look_elsewhere(release, thorough=True)
    names = release.mirror.store.names() if release.mirror is not None else []
    for name in names:
        if name not in known and name != MARKER:
            raise ReleaseError(f"{name} does not belong to the release")


def look_elsewhere(release: Release, *, thorough: bool = False) -> None:
    """Have the files that were left elsewhere hashed and looked at there.

    `thorough` is for verifying: columns, bytes that belong to none, and the signs of zeros.
    """
    left = [file for file in release.manifest.files if file.path in release.left]
    mirror, engine = release.mirror, release.engine
    if not left or mirror is None or engine is None:
        return
    longest = longest_shown(release.manifest)
    terms = [part_terms(release, file, longest, thorough=thorough) for file in left]
    job = LookAtParts(mirror.store.url, tuple(terms))
    try:
        found = engine.run(len(left), job, job.output)
    except VoileError as error:
        raise ReleaseError(
            f"the rows cannot be looked at: {error.message}", hint=error.hint
        ) from None
    seen = {row["part"]: row for row in found.to_pylist()}
    for number, file in enumerate(left):
        one = seen.get(number)
        if one is None:
            raise ReleaseError(f"{file.path} was not looked at by {engine}", hint="try it again")
        if one["fault"]:
            raise ReleaseError(one["fault"])
        if one["sha256"] != file.sha256:
            raise ReleaseError(f"{file.path} was changed after the release was written")


# ----------------------------------------------------------------------
# putting one there


def put_remote(
    folder: str | Path, url: str, *, overwrite: bool = False, progress: Progress | None = None
) -> str:
    """Upload a release that was verified; it is there when its manifest is. The URL.

    What a killed run has left at the place is removed first. Nothing is replaced, whether or not
    `overwrite` is given.
    """
    home, store = Path(folder), StoredFolder.of(url)
    manifest = Release.read(home).manifest
    check_place(store, overwrite=overwrite)
    raw = (home / MANIFEST).read_bytes()
    signed = [SIGNATURE] if (home / SIGNATURE).exists() else []
    names = [*(file.path for file in manifest.files), *signed]
    mark = marker(names, raw)
    told = progress or Silent()
    try:
        store.write(MARKER, mark)
        told.start("uploading", sum(file.bytes for file in manifest.files))
        digests = {file.path: file.sha256 for file in manifest.files}

        def upload(name: str) -> None:
            check_mine(store, mark)
            digest = store.upload(home / name, name)
            if digests.get(name, digest) != digest:
                raise ReleaseError(f"{name} was changed after the release was written")
            told.advance((home / name).stat().st_size)

        in_parallel(upload, names)
        wanted = [(home / name).stat().st_size for name in names]
        for name, size, found in zip(names, wanted, store.sizes(names), strict=True):
            if size != found:
                raise UsageError(
                    f"{store}/{name} has {found} bytes, and {size} were written",
                    hint="another run may write to the same place; publish again",
                )
        check_mine(store, mark)
        store.write(MANIFEST, raw)
    except BaseException:
        with suppress(Exception):  # a store that cannot be reached is cleaned by the next run
            if store.read(MARKER, MARKER_BYTES) == mark:
                clean(store)
        raise
    with suppress(VoileError):  # the release is there; a marker beside its manifest says nothing
        store.delete(MARKER)
    return url


def check_place(store: StoredFolder, *, overwrite: bool = False) -> None:
    """Refuse a place where something is, but for what a killed run has left: that is removed."""
    clean(store)
    if store.size(MANIFEST) is not None:
        why = ": an object store cannot replace a folder at once" if overwrite else ""
        raise UsageError(f"{str(store)!r} exists already{why}", hint="choose another name")
    if others := store.names():
        raise UsageError(
            f"{str(store)!r} is not empty: {others[0]!r} is there", hint="choose another name"
        )


def check_mine(store: StoredFolder, mark: bytes) -> None:
    """Refuse to go on where another run has begun to write."""
    try:
        found = store.read(MARKER, MARKER_BYTES)
    except FileNotFoundError:
        found = b""
    if found != mark or store.size(MANIFEST) is not None:
        raise UsageError(
            f"another run writes to {str(store)!r}", hint="publish one of them to another place"
        )


def marker(names: list[str], manifest: bytes) -> bytes:
    """What is written before a release is: which files are to come, and by which run."""
    digest, run = hashlib.sha256(manifest).hexdigest(), os.urandom(16).hex()
    said = {"format": MARKER_FORMAT, "run": run, "manifest": digest, "files": names}
    return json.dumps(said, indent=2).encode()


def clean_remote(url: str) -> bool:
    """Remove what a killed run has left at a place; whether anything was there.

    Only files that its marker lists are removed, and none of a release that is complete.
    """
    return clean(StoredFolder.of(url))


def clean(store: StoredFolder) -> bool:
    """As `clean_remote`."""
    store.delete(f"{MARKER}{BESIDE}")
    try:
        said = read_marker(store)
    except FileNotFoundError:
        return False
    if not is_complete(store, said["manifest"]):
        # The manifest goes first: without it nobody takes the rest for a release.
        for name in (MANIFEST, *said["files"]):
            store.delete(name)
            store.delete(f"{name}{BESIDE}")
    store.delete(MARKER)
    return True


def is_complete(store: StoredFolder, digest: str) -> bool:
    """Whether the manifest is there that a marker says is to come last."""
    try:
        raw = store.read(MANIFEST, MANIFEST_BYTES + 1)
    except FileNotFoundError:
        return False
    return hashlib.sha256(raw).hexdigest() == digest


def may_be_of_a_release(name: str) -> bool:
    """Whether some kind writes a file of this name: others are not ours to remove."""
    if name in (MANIFEST, README, DATA_PACKAGE, SIGNATURE):
        return True
    return any(re.fullmatch(pattern, name) for kind in kinds() for pattern in kind.file_names)


def read_marker(store: StoredFolder) -> dict[str, Any]:
    """What a marker says, which may be anybody's."""
    raw = store.read(MARKER, MARKER_BYTES)
    try:
        said: dict[str, Any] = json.loads(raw)
        names = said["files"]
        if said["format"] != MARKER_FORMAT or not isinstance(said["manifest"], str):
            raise ValueError("another format")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("a list of names")
        for name in names:
            check_name(name)
            if not may_be_of_a_release(name):
                raise ValueError("a file that no release has")
    except (ValueError, LookupError, TypeError, RecursionError, UsageError):
        raise UsageError(
            f"{store}/{MARKER} is not the marker of a run of Voile's",
            hint="look at what is there, and choose another name",
        ) from None
    return said
