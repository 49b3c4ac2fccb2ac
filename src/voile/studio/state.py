"""What is open in a running studio: projects, releases, and the work for them."""

from __future__ import annotations

import glob
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from voile.errors import UsageError
from voile.files import exclusive
from voile.studio.answers import Askers
from voile.studio.jobs import Jobs
from voile.studio.project import (
    ENDING,
    Look,
    Project,
    name_for,
    now,
    read_project,
    suggested_role,
    write_project,
)
from voile.studio.serving import Servers


class OpenProject:
    """A project that is open: its choices are on disk as soon as they are made."""

    def __init__(self, name: str, path: Path, project: Project) -> None:
        self.name, self.path, self.project = name, path, project
        self.remembered: dict[str, Any] = {}
        """What screens remember until the studio ends, such as a person who is looked for; it is
        written nowhere."""
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address of its first screen."""
        return f"/p/{quote(self.name, safe='')}"

    def change(self, **choices: Any) -> None:
        """Take choices and save them; if that fails, nothing has changed."""
        with self._lock:
            changed = Project.model_validate({**self.project.model_dump(), **choices})
            write_project(self.path, changed)
            self.project = changed

    def note_look(self, what: str) -> None:
        """Remember that its steward has looked at the private table beside a candidate."""
        if not any(look.what == what for look in self.project.looks):
            looks = [*self.project.looks, Look(at=now(), what=what)]
            self.change(looks=[look.model_dump() for look in looks])

    def give_roles(self, columns: Sequence[Mapping[str, Any]]) -> None:
        """Columns that have no role yet get the one that fits: what is shown is what is run."""
        new = {c["name"]: suggested_role(c) for c in columns if c["name"] not in self.project.roles}
        if new:
            self.change(roles={**self.project.roles, **new})

    def table_arguments(self) -> dict[str, Any]:
        """What tasks need to read the table; it changes when the file does."""
        return {
            "source": self.source,
            "reading": self.project.reading,
            "stamp": self.stamp(),
        }

    def stamp(self) -> list[Any]:
        """When and how large the files are that a release is made of; a database shows none."""
        files = [self.path.parent / file for file in self.project.hierarchies.values()]
        return [stamp(self.source), *([name, stamp(str(file))] for name, file in
                zip(self.project.hierarchies, files, strict=True))]  # fmt: skip

    @property
    def source(self) -> str:
        """The table: a path is relative to the project's file."""
        given = self.project.source
        if ":" in given.partition("/")[0] or "::" in given or Path(given).is_absolute():
            return given
        return str(self.path.parent / given)


def stamp(source: str) -> list[Any]:
    """When and how large the file of a table is, as far as it is a file."""
    found: list[Any] = []
    name = source.partition("::")[0]
    for path in sorted(glob.glob(name)) if glob.has_magic(name) else [name]:  # noqa: PTH207  (absolute patterns)
        try:
            seen = Path(path).stat()
        except OSError:
            continue
        found += [seen.st_mtime_ns, seen.st_size]
    return found


class Studio:
    """One running studio: a folder, what is open, and jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.jobs = Jobs()
        self.askers = Askers()
        """Who answers for releases that are open."""
        self.servers = Servers()
        self.tutorial = True
        """Whether pages outside of projects explain themselves."""
        self.projects: dict[str, OpenProject] = {}
        self.releases: dict[str, Path] = {}
        self._locks = ExitStack()
        self._lock = threading.Lock()

    def stop(self) -> None:
        """End the work."""
        self.jobs.close()
        self.askers.close()
        self.servers.close()

    def close(self) -> None:
        """End the work and let go of the files."""
        self.stop()
        self._locks.close()

    # ------------------------------------------------------------------ projects

    def open_project(self, path: Path) -> OpenProject:
        """The project of a file, opened once."""
        with self._lock:
            place = path.resolve()
            for known in self.projects.values():
                if known.path == place:
                    return known
            return self._hold(place, read_project(place))

    def begin_project(self, source: str, **choices: Any) -> OpenProject:
        """A new project for a table, in the studio's folder; the one that is there, if any."""
        stem = name_for(source)
        with self._lock:
            for path in self._places(stem):
                for known in self.projects.values():
                    if known.path == path and known.project.source == source:
                        return known
                if not path.exists():
                    project = Project(source=source, **choices)
                    write_project(path, project)
                    return self._hold(path, project)
                if (found := read_project(path)).source == source:
                    return self._hold(path, found)
        raise UsageError(f"there are too many projects of {stem!r}", hint="remove some")

    def _places(self, stem: str) -> Iterator[Path]:
        yield self.folder / f"{stem}{ENDING}"
        for n in range(2, 1000):
            yield self.folder / f"{stem}-{n}{ENDING}"

    def _hold(self, path: Path, project: Project) -> OpenProject:
        """Keep other studios from the file, and give the project an address."""
        lock = path.with_name(f".{path.name}.lock")
        busy = UsageError(f"another studio has {path.name!r} open", hint="use that one, or stop it")
        self._locks.enter_context(exclusive(lock, busy=busy, unwritable="choose another folder"))
        name = free_name(path.name.removesuffix(ENDING), self.projects)
        found = OpenProject(name, path, project)
        self.projects[name] = found
        return found

    def known_projects(self) -> list[Path]:
        """The project files of the folder."""
        return sorted(self.folder.glob(f"*{ENDING}"))

    # ------------------------------------------------------------------ releases

    def open_release(self, path: Path) -> str:
        """The name by which a release is known from now on."""
        place = path.resolve()
        if not (place / "manifest.json").is_file():
            raise UsageError(
                f"{str(path)!r} is not a release",
                hint="name a folder that `voile publish` made",
            )
        with self._lock:
            for name, known in self.releases.items():
                if known == place:
                    return name
            name = free_name(name_for(place.name.removesuffix(".voile")), self.releases)
            self.releases[name] = place
            return name


def free_name(wanted: str, taken: Any) -> str:
    """A name that nothing else has."""
    name, n = wanted, 1
    while name in taken:
        n += 1
        name = f"{wanted}-{n}"
    return name
