"""Writing a release: beside its place, verified, then renamed into it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from voile.engines.parquet import sync
from voile.errors import UsageError
from voile.release.checks import check
from voile.release.manifest import MANIFEST, PARTIAL
from voile.release.opened import Release


class Staging:
    """A folder beside the target that becomes the target, or nothing."""

    def __init__(self, target: Path, *, overwrite: bool = False) -> None:
        self.target = target
        if target.exists() and not overwrite:
            raise UsageError(
                f"{str(target)!r} exists already", hint="choose another name, or pass --overwrite"
            )
        if target.exists() and not (target / MANIFEST).is_file():
            raise UsageError(f"{str(target)!r} is not a release; it is not overwritten")
        if not target.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {str(target.absolute().parent)!r}")

    def __enter__(self) -> Staging:
        parent = self.target.absolute().parent
        try:
            made = tempfile.mkdtemp(prefix=f".{self.target.name}{PARTIAL}", dir=parent)
        except OSError as error:
            raise UsageError(f"cannot write to {str(parent)!r}: {error.strerror}") from None
        self.folder = Path(made)
        return self

    def commit(self) -> None:
        """Verify what was written and put it in place in one step."""
        check(Release.read(self.folder))
        for path in [*self.folder.rglob("*"), self.folder]:
            sync(path)
        self.folder.chmod(0o755)
        if self.target.exists():
            aside = self.folder.with_name(self.folder.name + "-old")
            self.target.rename(aside)
            self.folder.rename(self.target)
            shutil.rmtree(aside)
        else:
            self.folder.rename(self.target)
        sync(self.target.absolute().parent)

    def __exit__(self, *_: object) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=True)


def temporary_target() -> Path:
    """Where a release lives that nobody has named yet."""
    return Path(tempfile.mkdtemp(prefix="voile-")) / "release.voile"


def removed_with(release: Release) -> Release:
    """Let the temporary folder of a release go when the release does."""
    weakref.finalize(release, shutil.rmtree, release.path.parent, ignore_errors=True)
    return release


def copy(release: Release, target: Path, *, overwrite: bool) -> Release:
    with Staging(target, overwrite=overwrite) as staging:
        shutil.copytree(release.path, staging.folder, dirs_exist_ok=True)
        staging.commit()
    return Release.open(target)
