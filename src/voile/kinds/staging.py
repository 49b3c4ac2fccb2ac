"""Writing a release: beside its place, verified, then renamed into it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from voile.errors import UsageError, VoileError
from voile.files import TEMPORARY, check_free, sync
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, PARTIAL
from voile.kinds.registration import Registration, departure_of
from voile.kinds.release import Release
from voile.kinds.verification import check, check_files

PUBLIC = 0o755
"""The rights of a release: all may read it. Until then it has those of a temporary folder."""


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse what would lose something or could not be opened afterwards."""
    if not target.name:
        raise UsageError("no release was named", hint="such as people.voile")
    if PARTIAL in target.name:
        raise UsageError(f"a release cannot be called {target.name!r}", hint="choose another name")
    if target.is_symlink():
        raise UsageError(f"{str(target)!r} is a link", hint="name the folder itself")
    check_free(target, overwrite=overwrite)
    if target.exists():
        check_is_release(target)
    check_outside(target)
    if not target.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(target.absolute().parent)!r}", hint="make it first"
        )


def check_outside(path: Path) -> None:
    """Refuse to write into a release: it is sealed, and whoever gets it would get this too."""
    if (outer := enclosing_release(path)) is not None:
        raise UsageError(
            f"{str(path)!r} is inside the release {str(outer)!r}, which would not be sound "
            "any more",
            hint="choose a place beside it",
        )


def enclosing_release(path: Path) -> Path | None:
    """The release that a path lies in, whatever state it is in."""
    for folder in path.resolve().parents:
        if all((folder / name).is_file() for name in (MANIFEST, DATA_PACKAGE)):
            return folder
    return None


def check_is_release(target: Path) -> None:
    """Only a release, and nothing that someone has put into it, may be replaced."""
    try:
        check_files(Release.open(target))
    except VoileError as reason:
        raise UsageError(
            f"{str(target)!r} is not replaced, for it is not a sound release: {reason.message}",
            hint="choose another name, or move it away",
        ) from None


class Staging:
    """A folder beside the target that becomes the target, or nothing."""

    def __init__(
        self, target: Path, *, overwrite: bool = False, entry: Registration | None = None
    ) -> None:
        check_target(target, overwrite=overwrite)
        self.target = target.absolute()
        self._overwrite = overwrite
        self._entry = entry
        self._named = target

    def __enter__(self) -> Staging:
        parent = self.target.parent
        try:
            made = tempfile.mkdtemp(prefix=f".{self.target.name[:100]}{PARTIAL}", dir=parent)
        except OSError as error:
            raise UsageError(
                f"cannot write to {str(parent)!r}: {error.strerror}", hint="choose another folder"
            ) from None
        self.folder = Path(made)
        return self

    def commit(self, before: Callable[[Release], None] | None = None) -> None:
        """Verify what was written and put it in place.

        `before` is called when all is written and sound. Until it has returned, and the folder
        is in its place, nobody but its owner can look into it. The register's entry is on disk
        before the folder has its name; if the program is killed between the two, it stays there.
        """
        written = Release.read(self.folder)
        check(written)
        for path in [*self.folder.rglob("*"), self.folder]:
            sync(path)
        # The target may have changed since the start.
        check_target(self.target, overwrite=self._overwrite)
        if before:
            before(written)
        if self._entry is None:
            self._place()
            return
        self._entry.reserve(departure_of(written, self._named))
        try:
            self._place()
        except BaseException:
            if self.unseen:
                self._entry.stayed()
            raise
        self._entry.left()

    def _place(self) -> None:
        """Give the folder its name."""
        if self.target.exists():
            self._replace()
        else:
            self.folder.rename(self.target)  # fails if something appeared just now
            self.target.chmod(PUBLIC)
        sync(self.target)
        sync(self.target.parent)

    def _replace(self) -> None:
        """Put the new release in the place of the old one, which is kept until that is done."""
        aside = self.folder.with_name(self.folder.name.replace(PARTIAL, ".replaced-"))
        self.target.rename(aside)
        try:
            self.folder.rename(self.target)
        except BaseException:
            if self.unseen:
                aside.rename(self.target)
            raise
        self.target.chmod(PUBLIC)
        shutil.rmtree(aside, ignore_errors=True)

    @property
    def unseen(self) -> bool:
        """Whether what was written has not been put in place."""
        return self.folder.exists()

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def place_for(to: str | Path | None, *, overwrite: bool) -> Iterator[Path]:
    """The named target, if it may be used, or a temporary one that goes if nothing comes of it."""
    if to is not None:
        check_target(Path(to), overwrite=overwrite)  # before any work is done
        yield Path(to)
        return
    home = TEMPORARY.make()
    try:
        yield home / "release.voile"
    except BaseException:
        TEMPORARY.remove(home)
        raise


def removed_with(release: Release) -> None:
    """Let the temporary folder of a release go when the release does."""
    weakref.finalize(release, TEMPORARY.remove, release.path.parent)


def copy(
    release: Release, target: Path, *, overwrite: bool, entry: Registration | None = None
) -> Release:
    """Copy a release to another folder, verified before it is in place.

    With an `entry` it leaves only now: it is registered, and says so.
    """
    with Staging(target, overwrite=overwrite, entry=entry) as staging:
        shutil.copytree(release.path, staging.folder, dirs_exist_ok=True)
        if entry is not None and not release.manifest.registered:
            manifest = release.manifest.model_copy(update={"registered": True}).sealed()
            (staging.folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
        staging.commit()
    return Release.open(target)
