"""The start: a table of one's own or one to practise on, a release, or a project."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from voile.datasets import DATASETS
from voile.errors import UsageError, VoileError
from voile.foreign import SPSS, STATA, WORKBOOKS, R
from voile.studio.calls import ShownCall
from voile.studio.pages import Area, AreaVisit, Go, Reply, ScreenPage
from voile.studio.project import ENDING, check_address, read_project

PRACTICE = ("adult/boundary", "adult")
"""Tables to practise on, by the name of their data set; the others are folded away."""
RECENT = 6
"""Projects that are shown at once."""
KINDS_OF_FILES = {
    b"%PDF": ("a PDF", "ask for the table behind it, or export it as CSV"),
    b"PK\x03\x04": ("a workbook or a document", "name it .xlsx if it is one, or save CSV"),
    b"\xd0\xcf\x11\xe0": ("an old Office file", "open it, and save the table as CSV"),
    b"\x89PNG": ("a picture", "give the table that it shows"),
    b"\xff\xd8\xff": ("a picture", "give the table that it shows"),
    b"{\\rtf": ("a text document", "save the table as CSV"),
    b"Rar!": ("an archive", "unpack it, and give the table"),
    b"7z\xbc\xaf": ("an archive", "unpack it, and give the table"),
}
"""By the first bytes: files that people have tables in, and that are none."""
PACKED = (".zip", *WORKBOOKS)
"""Files that begin as archives do, and are read."""


def show(visit: AreaVisit) -> Reply | None:
    """What can be opened."""
    if visit.path:
        return None
    studio = visit.studio
    listed = [
        {"name": d.name, "about": d.about, "columns": len(d.columns)} for d in DATASETS.values()
    ]
    first = [one for name in PRACTICE for one in listed if one["name"] == name]
    projects = recent(studio.known_projects())
    releases = sorted(p.parent.name for p in studio.folder.glob("*.voile/manifest.json"))
    return ScreenPage(
        "start.html",
        {
            "foreign": {"workbooks": ", ".join(WORKBOOKS), "spss": ", ".join(SPSS),
                        "stata": ", ".join(STATA), "r": ", ".join(R)},
            "practice": first,
            "more_practice": [one for one in listed if one not in first],
            "projects": projects[:RECENT],
            "more_projects": projects[RECENT:],
            "releases": releases,
        },
        [
            ShownCall("studio", "", str(studio.folder), reads=False),
            ShownCall(
                "inspect", "voile.inspection.inspect_source", f"dataset:{PRACTICE[0]}",
                imports="import voile.inspection", reads=False,
            ),
        ],
    )  # fmt: skip


def recent(paths: list[Path]) -> list[dict[str, Any]]:
    """Projects with what they are about, the one that was used last first."""
    found = []
    for path in paths:
        try:
            used = path.stat().st_mtime
        except OSError:
            continue  # it went away meanwhile
        at = datetime.fromtimestamp(used, UTC).isoformat(timespec="seconds")
        found.append({"name": path.name, "at": at, "used": used, **about(path)})
    return sorted(found, key=lambda one: -float(one["used"]))


def about(path: Path) -> dict[str, Any]:
    """What a project is about, in a line; a file that cannot be read says so."""
    try:
        project = read_project(path)
    except VoileError as error:
        return {"about": error.message, "wrong": True}
    number = len(project.published)
    became = f"published {number} time{'s' * (number != 1)}" if number else "nothing published yet"
    return {"about": f"{project.source}, {became}", "wrong": False}


def act(visit: AreaVisit) -> Reply | None:
    """Open what is named, or switch the tutorial."""
    studio, form = visit.studio, visit.form
    match visit.path:
        case ("open",):
            return Go(opened(visit, form.get("path")))
        case ("project",):
            return Go(studio.open_project(listed(visit, form.get("name"), ENDING)).url)
        case ("release",):
            return Go(f"/r/{studio.open_release(listed(visit, form.get('name'), '.voile'))}")
        case ("release-path",):
            return Go(f"/r/{studio.open_release(release_at(visit, form.get('path')))}")
        case ("tutorial",):
            return switched(visit)
    return None


def listed(visit: AreaVisit, name: str, ending: str) -> Path:
    """A file or folder of the studio's folder, by its name alone."""
    if Path(name).name != name or not name.endswith(ending):
        raise UsageError(f"{name!r} is not in this folder", hint="choose one that is listed")
    return visit.studio.folder / name


def release_at(visit: AreaVisit, path: str) -> Path:
    """The folder of a release that was typed."""
    if not path:
        raise UsageError("no release was named", hint="such as people.voile")
    place = visit.studio.folder / Path(path).expanduser()
    if not place.exists():
        raise UsageError(f"there is no folder {str(place)!r}", hint="name the folder of a release")
    return place


def opened(visit: AreaVisit, path: str) -> str:
    """The address of a table, release, project or folder that was typed."""
    from voile.studio.server import open_path  # noqa: PLC0415  (which imports the screens)

    if not path:
        raise UsageError("no table was named", hint="such as people.csv or dataset:adult")
    if path.startswith("dataset:"):
        known = path.removeprefix("dataset:")
        if known not in DATASETS:
            raise UsageError(
                f"there is no practice table {known!r}", hint=f"such as {', '.join(DATASETS)}"
            )
        return open_path(visit.studio, path)
    if "://" in path:
        check_address(path)
        return open_path(visit.studio, path)
    full = str(visit.studio.folder / Path(path).expanduser())
    check_table_file(Path(full.partition("::")[0]))
    return open_path(visit.studio, full)


def check_table_file(path: Path) -> None:
    """Refuse what is surely no table, and say what to do; what cannot be told is read later."""
    if any(character in path.name for character in "*?["):
        return
    if path.is_dir():
        if (path / "manifest.json").is_file():
            return
        raise UsageError(
            f"{str(path)!r} is a folder",
            hint="name a file in it, or start `voile studio FOLDER` to work there",
        )
    if not path.exists():
        near = sorted(p.name for p in path.parent.glob("*.csv"))[:3] if path.parent.is_dir() else []
        also = f"; there are {', '.join(near)}" if near else ""
        raise UsageError(f"there is no file {str(path)!r}", hint=f"check the path{also}")
    check_contents(path, str(path))


def check_contents(path: Path, name: str) -> None:
    """Refuse a file that is empty, or by its first bytes no table; `name` is what people call it.

    Parquet, Arrow, DuckDB and SQLite begin otherwise, and so does text.
    """
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise UsageError(
            f"cannot read {name!r}: {error.strerror}", hint="check who may read it"
        ) from None
    if not start.strip():
        raise UsageError(f"{name!r} is empty", hint="choose a file with a line of names and rows")
    for beginning, (what, instead) in KINDS_OF_FILES.items():
        if start.startswith(beginning) and not name.lower().endswith(PACKED):
            raise UsageError(f"{name!r} is {what}, not a table", hint=instead)


def switched(visit: AreaVisit) -> Reply:
    """Turn explanations on or off, here and in the project that is open."""
    opened = visit.studio.projects.get(visit.form.get("project"))
    if opened is None:
        visit.studio.tutorial = not visit.studio.tutorial
        return Go("/")
    opened.change(tutorial=not opened.project.tutorial)
    screen = visit.form.get("screen")
    return Go(f"{opened.url}/{screen}" if screen.isalpha() else opened.url)


AREA = Area(
    "start",
    "Start",
    show,
    act,
    lesson="Begin with a table about people. The studio looks at it, helps you to choose what is "
    "promised to the people in it, shows what that costs, and publishes. Nothing leaves this "
    "machine, and nothing is published before the last screen.",
)
