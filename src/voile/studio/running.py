"""Publishing what a project says: the same for a click, for `voile studio run` and for its test.

Paths of a project are relative to its file. Nothing here is computed: `voile.publishing` does it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import voile
from voile.errors import UsageError, spelled
from voile.files import exclusive, write_whole
from voile.progress import Progress
from voile.publishing import published
from voile.schema import Schema
from voile.signing import SigningKey
from voile.studio.calls import (
    ShownCall,
    check_release_is_wanted,
    publish_call,
    publish_options,
)
from voile.studio.project import ENDING, Project, PublishedRelease, now, read_project
from voile.studio.state import OpenProject

CODEBOOK = ".codebook.yaml"
WRITTEN = "# Written by Voile Studio from "
"""The first words of a codebook that the studio may write over: it is its own."""


def run_project(
    path: Path,
    *,
    overwrite: bool,
    progress: Progress,
    ask: Callable[[str], str] | None = None,
    output: str | None = None,
) -> dict[str, Any]:
    """Publish a project's table as it says, and what `voile publish --json` says of it.

    `ask` asks for the passphrase of a key. The release is noted in the project, unless a studio
    has it open. A file may come from anybody: without `output` nothing leaves its folder.
    """
    opened = OpenProject(path.stem, path.resolve(), read_project(path))
    if output is not None:
        opened.project = opened.project.model_copy(update={"output": str(Path(output).absolute())})
    elif not is_inside(opened):
        raise UsageError(
            f"the project publishes to {place_of(opened)!r}, outside of its folder",
            hint=f"if that is meant, say {spelled('output', place_of(opened))}",
        )
    key = opened.project.sign
    sign = SigningKey.read(opened.path.parent / key, ask=ask) if key else None
    done = publish_opened(opened, overwrite=overwrite, progress=progress, sign=sign)
    lock = opened.path.with_name(f".{opened.path.name}.lock")
    busy = UsageError(f"a studio has {opened.path.name!r} open")
    with contextlib.suppress(UsageError), exclusive(lock, busy=busy, unwritable=""):
        record(opened, done)
    return done


def publish_opened(
    opened: OpenProject,
    *,
    overwrite: bool,
    progress: Progress,
    sign: SigningKey | None = None,
) -> dict[str, Any]:
    """Publish a project to its place, and what became of it as plain data."""
    check_release_is_wanted(opened.project)
    return publish_project(
        opened.source, located(opened), to=place_of(opened), overwrite=overwrite,
        progress=progress, sign=sign, codebook=codebook_place(opened),
    )  # fmt: skip


def record(opened: OpenProject, done: dict[str, Any]) -> None:
    """Note in the project what was published, and when."""
    digest = voile.open(done["release"]).manifest.digest
    entry = PublishedRelease(at=now(), place=done["release"], method=done["method"], digest=digest)
    known = [one.model_dump() for one in opened.project.published]
    opened.change(published=[*known, entry.model_dump()])


def is_inside(opened: OpenProject) -> bool:
    """Whether a project publishes into the folder of its file."""
    place = place_of(opened)
    return "://" not in place and Path(place).resolve().is_relative_to(opened.path.parent)


def place_of(opened: OpenProject) -> str:
    """Where the release is put: beside the project's file, unless it says otherwise."""
    given = opened.project.output or f"{stem_of(opened)}.voile"
    return given if "://" in given else str(opened.path.parent / given)


def stem_of(opened: OpenProject) -> str:
    """The name of a project without its ending."""
    return opened.path.name.removesuffix(ENDING)


def located(opened: OpenProject) -> Project:
    """The project with paths that lead to its files from anywhere."""
    folder, project = opened.path.parent, opened.project
    hierarchies = {name: str(folder / file) for name, file in project.hierarchies.items()}
    sign = str(folder / project.sign) if project.sign else ""
    return project.model_copy(update={"hierarchies": hierarchies, "sign": sign})


def publish_project(
    source: str,
    project: Project,
    *,
    to: str,
    overwrite: bool,
    progress: Progress,
    sign: Any = None,
    codebook: Path | None = None,
) -> dict[str, Any]:
    """Publish a table as a project says; `sign` is a key that was opened already.

    `codebook` is where the codebook that it declares is kept.
    """
    table = voile.read(source, **project.reading)
    with declared(project, list(table.columns), codebook) as schema:
        options = publish_options(project, list(table.columns), schema=schema)
        key = sign or project.sign or None
        done = published(table, to=to, overwrite=overwrite, progress=progress, sign=key, **options)
    return done.to_dict()


# ---------------------------------------------------------------------- the codebook


@contextlib.contextmanager
def declared(project: Project, columns: Sequence[str], keep: Path | None = None) -> Iterator[str]:
    """A file of the codebook that a project declares; empty where it declares none.

    It is there for a while, or stays at `keep`.
    """
    if project.codebook != "declared":
        yield ""
        return
    schema = declared_schema(project, columns)
    if keep is not None:
        keep_codebook(keep, schema)
        yield str(keep)
        return
    with tempfile.TemporaryDirectory(prefix="voile-") as folder:
        file = Path(folder) / "codebook.yaml"
        schema.save(file)
        yield str(file)


def declared_schema(project: Project, columns: Sequence[str]) -> Schema:
    """The codebook of the columns that are published; refused where it lacks one."""
    kept = project.columns(columns)
    listed = [one for one in project.attributes if one.get("name") in kept]
    if missing := [name for name in kept if name not in {one.get("name") for one in listed}]:
        raise UsageError(
            f"the codebook does not declare {', '.join(missing)}",
            hint="declare these columns on the Codebook screen, or leave them out",
        )
    return Schema.from_dict({"attributes": listed})


def codebook_place(opened: OpenProject) -> Path:
    """Where a declared codebook is kept: beside the project, so that a command can name it."""
    return opened.path.with_name(f"{stem_of(opened)}{CODEBOOK}")


def keep_codebook(place: Path, schema: Schema) -> None:
    """Write a codebook, never over one that somebody else wrote."""
    with tempfile.TemporaryDirectory(prefix="voile-") as folder:
        file = Path(folder) / "codebook.yaml"
        schema.save(file)
        project = place.name.replace(CODEBOOK, ENDING)
        text = f"{WRITTEN}{project}: change it there.\n{file.read_text(encoding='utf-8')}"
    there = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else None
    if there == text:
        return
    if there is not None and not there.startswith(WRITTEN):
        raise UsageError(
            f"{str(place)!r} is there, and the studio did not write it",
            hint="rename it: the studio keeps what you declared in a file of that name",
        )
    write_whole(place, text.encode())


# ---------------------------------------------------------------------- the same as a command


def shown_call(opened: OpenProject, columns: Sequence[str], folder: Path) -> ShownCall:
    """The command that publishes a project, for someone who types it in `folder`."""
    project = located(opened)
    schema = ""
    if project.codebook == "declared":
        with declared(project, columns, codebook_place(opened)) as file:
            schema = seen_from(file, folder)
    hierarchies = {name: seen_from(file, folder) for name, file in project.hierarchies.items()}
    place = place_of(opened)
    seen = project.model_copy(update={
        "source": seen_from(opened.source, folder),
        "hierarchies": hierarchies,
        "sign": seen_from(project.sign, folder) if project.sign else "",
        "output": seen_from(place, folder),
    })  # fmt: skip
    call = publish_call(seen, columns, schema=schema)
    if "://" not in place and Path(place).exists():
        return replace(call, options={**call.options, "overwrite": True})
    return call


def shown_schema(opened: OpenProject, columns: Sequence[str], folder: Path) -> str:
    """The file of the codebook that a command names; empty where none is declared, or whole."""
    with (
        contextlib.suppress(UsageError),
        declared(opened.project, columns, codebook_place(opened)) as file,
    ):
        return seen_from(file, folder) if file else ""
    return ""


def seen_from(path: str, folder: Path) -> str:
    """A path as it is shortest from a folder; addresses stay as they are."""
    try:
        return str(Path(path).relative_to(folder))
    except ValueError:
        return path
