"""Running the studio: where it listens, the link that opens it, and the browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path

from voile.errors import UsageError
from voile.studio.app import Keys, make_app
from voile.studio.project import ENDING
from voile.studio.state import Studio
from voile.web.limits import Rate
from voile.web.server import Address, WebOptions, listening, run_server


def open_path(studio: Studio, path: str | None) -> str:
    """Open what a command names: a table, a release, a project or a folder; its address here."""
    if path is None:
        return "/"
    place = Path(path)
    if (place / "manifest.json").is_file():
        return f"/r/{studio.open_release(place)}"
    if place.name.endswith(ENDING):
        return studio.open_project(place).url
    if place.is_dir():
        return "/"
    if ":" not in path and not place.exists() and not any(c in path for c in "*?["):
        raise UsageError(
            f"there is no file {path!r}", hint="name a table, a release, a project or a folder"
        )
    return studio.begin_project(source_of(studio, path)).url


def source_of(studio: Studio, path: str) -> str:
    """A table as a project names it: by its name, where it lies beside the project's file."""
    file, inside, table = path.partition("::")
    if "://" in path or (":" in file and not Path(file).exists()):
        return path
    place = Path(file).resolve()
    if inside or not place.is_relative_to(studio.folder):
        return f"{place}{inside}{table}"
    return str(place.relative_to(studio.folder))


def folder_for(path: str | None) -> Path:
    """Where projects and releases are written: the folder that is named, else the current one."""
    place = None if path is None else Path(path)
    if place is None or not place.is_dir() or (place / "manifest.json").is_file():
        return Path.cwd()
    return place


def run_studio(
    path: str | None,
    *,
    port: int,
    browser: bool,
    ready: Callable[[str], None],
    host: str = "127.0.0.1",
    public: bool = False,
) -> None:
    """Serve until a signal comes; `ready` hears the link.

    Wherever it listens, it answers to the names of this machine alone (127.0.0.1 and localhost): a
    container listens on all its addresses, and its port is passed on from 127.0.0.1 outside.
    """
    studio, keys = Studio(folder_for(path)), Keys()
    where = open_path(studio, path)
    how = WebOptions(Address.of(host, port), Rate.read("1000/s", 1000), public=public)
    try:
        with listening(how) as listener:
            listened = listener.getsockname()[1]
            hosts = tuple(f"{host}:{listened}" for host in ("127.0.0.1", "localhost"))
            url = f"http://127.0.0.1:{listened}{where}"

            def begin() -> None:
                ready(f"{url}?token={keys.token}")
                studio.jobs.warm()
                if browser:
                    webbrowser.open(f"{url}?token={keys.new_link()}")

            app = make_app(studio, keys, lambda: hosts)
            run_server(app, how, listener, begin, stopping=studio.stop)
    finally:
        studio.close()
