"""Writing a release: beside its place, verified, then renamed into it.

What a killed run may leave beside NAME: `.NAME.partial-…`, unfinished or about to be removed, which
never opens; and, where the system cannot exchange two names in one step, `.NAME.replaced-…`, the
release that was to be replaced, which the next run puts back if NAME is missing.
"""

from __future__ import annotations

import glob
import shlex
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from voile.errors import UsageError, VoileError
from voile.files import TEMPORARY, check_free, check_utf8, sync
from voile.kinds.manifest import (
    DATA_PACKAGE,
    MANIFEST,
    PARTIAL,
    REPLACED,
    SIGNATURE,
    Manifest,
)
from voile.kinds.registration import PENDING, PendingEntry, Registration, departure_of
from voile.kinds.release import Release
from voile.kinds.signatures import sign_written
from voile.kinds.verification import check, check_files
from voile.signing import SigningKey
from voile.system import here as system

MOST_LOOKED_AT = 2**22
"""Rows of a release that are looked at before it leaves: broken noise would show in so many, and
in more of them it would cost a third of the time of publishing."""
PUBLIC = 0o755
"""The rights of a release: all may read it. Until then it has those of a temporary folder."""
NAME_PART = 100
"""Characters of a release's name in the names of folders that are made beside it."""


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse what would lose something or could not be opened afterwards."""
    if not target.name:
        raise UsageError("no release was named", hint="such as people.voile")
    if PARTIAL in target.name or REPLACED in target.name:
        raise UsageError(f"a release cannot be called {target.name!r}", hint="choose another name")
    if target.is_symlink():
        raise UsageError(f"{str(target)!r} is a link", hint="name the folder itself")
    check_utf8(target)
    put_back(target)
    check_free(target, overwrite=overwrite)
    if target.exists():
        check_is_release(target)
    check_outside(target)
    parent = target.absolute().parent
    if not parent.is_dir():
        hint = f"make it first: mkdir -p {shlex.quote(str(parent))}"
        raise UsageError(f"there is no folder {str(parent)!r}", hint=hint)


def put_back(target: Path) -> None:
    """Where a run was killed while it replaced a release, give the old release its name again."""
    if target.exists():
        return
    left = moved_aside(target)
    if left is not None:
        system.move(left, target)
        sync(target.absolute().parent)


def moved_aside(target: Path) -> Path | None:
    """The sound release that a killed run has left beside the name that it was to replace."""
    if len(target.name) > NAME_PART:  # several names may begin like this one
        return None
    for found in target.absolute().parent.glob(f".{glob.escape(target.name)}{REPLACED}*"):
        try:
            check_files(Release.read(found))
        except VoileError:
            continue
        return found
    return None


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
        check_files(Release.open(target, check=False))
    except VoileError as reason:
        raise UsageError(
            f"{str(target)!r} is not replaced, for it is not a sound release: {reason.message}",
            hint="choose another name, or move it away",
        ) from None


Placing = Callable[[Release], AbstractContextManager[None]]
"""What goes on while a verified release is renamed."""


def nothing_more(_written: Release) -> AbstractContextManager[None]:
    """Rename it, and do nothing else."""
    return nullcontext()


class Staging:
    """A folder beside the target that becomes the target, or nothing."""

    def __init__(
        self, target: Path, *, overwrite: bool = False, sign: SigningKey | None = None
    ) -> None:
        check_target(target, overwrite=overwrite)
        self.target = target.absolute()
        self._overwrite = overwrite
        self._sign = sign

    def __enter__(self) -> Staging:
        parent = self.target.parent
        try:
            made = tempfile.mkdtemp(prefix=f".{self.target.name[:NAME_PART]}{PARTIAL}", dir=parent)
        except OSError as error:
            raise UsageError(
                f"cannot write to {str(parent)!r}: {error.strerror}", hint="choose another folder"
            ) from None
        self.folder = Path(made)
        return self

    def commit(self, placing: Placing = nothing_more) -> None:
        """Verify what was written and put it in place.

        `placing` is entered when all is written and sound, and left when the folder is in its
        place. Until then nobody but its owner can look into it.
        """
        written = Release.read(self.folder)
        check(written, plausible=written.manifest.rows <= MOST_LOOKED_AT)
        if self._sign is not None:
            sign_written(written, self._sign)
        for path in [*self.folder.rglob("*"), self.folder]:
            sync(path)
        # The target may have changed since the start.
        check_target(self.target, overwrite=self._overwrite)
        with placing(written):
            if self.target.exists():
                self._replace()
            else:
                system.move(self.folder, self.target)  # fails if something appeared just now
                self.target.chmod(PUBLIC)
            sync(self.target)
            sync(self.target.parent)

    def _replace(self) -> None:
        """Put the new release in the place of the old one, in one step where the system can.

        The folder that was written is the old release then. Else that is moved aside first, and
        kept until the new one is in its place.
        """
        if system.exchanged(self.folder, self.target):
            self.target.chmod(PUBLIC)
            return
        aside = self.folder.with_name(self.folder.name.replace(PARTIAL, REPLACED))
        system.move(self.target, aside)
        try:
            system.move(self.folder, self.target)
        except BaseException:
            if self.folder.exists():
                with suppress(FileNotFoundError):  # another run has put it back
                    system.move(aside, self.target)
            raise
        self.target.chmod(PUBLIC)
        shutil.rmtree(aside, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def unseen(written: Release) -> bool:
    """Whether a release that was to be put in place is still where it was written.

    The folder alone does not tell: after an exchange of names it holds the release before.
    """
    try:
        return (written.path / MANIFEST).read_bytes() == written.manifest.text().encode()
    except OSError:
        return False


@contextmanager
def entered(entry: Registration | None, written: Release, target: str) -> Iterator[None]:
    """Have a release in the register while it is renamed; killed meanwhile, it may have left."""
    if entry is None:
        yield
        return
    entry.reserve(departure_of(written, target))
    try:
        yield
    except BaseException:
        if unseen(written):
            entry.stayed()
        raise
    entry.left()


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
    weakref.finalize(release, removed, release.path.resolve())


def removed(folder: Path) -> None:
    """Remove the folder of a temporary release."""
    PENDING.forget(folder)
    TEMPORARY.remove(folder.parent)


def reseal(folder: Path, manifest: Manifest, *, registered: bool) -> None:
    """Say in a release that is being written whether the register has it.

    That is another digest: signatures of the one before are not of this release.
    """
    sealed = manifest.model_copy(update={"registered": registered}).sealed()
    if sealed.digest != manifest.digest:
        (folder / SIGNATURE).unlink(missing_ok=True)
    (folder / MANIFEST).write_bytes(sealed.text().encode())


def copy(release: Release, target: Path, *, overwrite: bool, pending: PendingEntry) -> Release:
    """Copy a release to another folder, verified before it is in place.

    With an entry it leaves only now: it is registered, says so, and is signed anew.
    """
    entry = pending.registration
    key = None if entry is None else pending.key
    with Staging(target, overwrite=overwrite, sign=key) as staging:
        shutil.copytree(release.path, staging.folder, dirs_exist_ok=True)
        if entry is not None:
            reseal(staging.folder, release.manifest, registered=True)
        staging.commit(lambda written: entered(entry, written, str(target)))
    return Release.open(target, check=False)
