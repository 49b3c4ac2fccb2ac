"""Servers of noisy answers: begin one, see what it costs before, and look after those there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import voile
from voile import serve
from voile.errors import UsageError, VoileError
from voile.progress import Progress
from voile.studio.calls import ShownCall, server_options
from voile.studio.pages import IN_THOUSANDS, Area, AreaVisit, Go, Reply, ScreenPage
from voile.studio.project import ENDING, check_address, name_for, read_project
from voile.studio.running import codebook_place, declared, seen_from
from voile.studio.screens.start import check_table_file
from voile.studio.state import OpenProject
from voile.units import duration

NAME = re.compile(r"[\w][\w.-]{0,99}")
PAGE = 50
"""Lines of the log on a page."""
NOISES = {
    "binomial": "binomial (needs nothing else)",
    "gaussian": "gaussian (an exact ρ; needs voile[dp])",
    "geometric": "geometric (a pure ε; needs voile[dp])",
}
DEFAULTS: Mapping[str, str] = {
    "name": "", "table": "", "project": "", "queries": "100", "promise": "delta", "delta": "1",
    "eta": "1e-6", "epsilon": "1", "epsilon_delta": "1e-9", "noise": "binomial", "person": "",
    "per_person": "", "subsets": "", "columns": "", "called": "", "id_column": "", "ledger": "",
    "counter": "", "anytime": "", "clamp": "",
}  # fmt: skip


class Spoken(str):
    """A text in a command that is a name in Python."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "table"


# ---------------------------------------------------------------------- work


def begin_task(
    progress: Progress,
    *,
    folder: str,
    source: str,
    reading: dict[str, Any],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Begin a server: what `voile serve init --json` says of it."""
    table = voile.read(source, **reading)
    progress.start("taking the table in", len(table))
    setting, notes = serve.begin(folder, table, progress=progress, **options)
    return serve.begun_data(Path(folder), setting, notes)


def audit_task(progress: Progress, *, folder: str, used: int) -> dict[str, Any]:
    """What the answers so far disclosed at most, from the questions alone."""
    del used  # after one more answer it is another task
    progress.start("looking at every answer", 1)
    return serve.audit_folder(Path(folder), None).to_dict()


# ---------------------------------------------------------------------- pages


def show(visit: AreaVisit) -> Reply | None:
    """All servers and the form for a new one, or one server."""
    match visit.path:
        case ():
            return listing(visit)
        case (name,):
            return manage(visit, name)
    return None


def listing(visit: AreaVisit) -> Reply:
    """The servers of the studio's folder, and what a new one would cost."""
    values = {name: visit.form.get(name) or usual for name, usual in DEFAULTS.items()}
    opened = visit.studio.projects.get(values["project"])
    if opened is not None:
        values["project"] = opened.path.name
    context = {
        "servers": [*map(summary, folders(visit))], "values": values, "noises": NOISES,
        "projects": [path.name for path in visit.studio.known_projects()],
        **foreseen(visit, values),
    }  # fmt: skip
    return ScreenPage("servers.html", context)


def folders(visit: AreaVisit) -> list[Path]:
    """Folders of servers in the studio's folder."""
    return sorted(file.parent for file in visit.studio.folder.glob("*/server.json"))


def summary(folder: Path) -> dict[str, Any]:
    """A server in a line; one that cannot be opened says why."""
    try:
        return {"folder": folder.name, "problem": "", **serve.status(folder)}
    except VoileError as error:
        return {"folder": folder.name, "problem": error.message}


def foreseen(visit: AreaVisit, values: Mapping[str, str]) -> dict[str, Any]:
    """What the choices of the form cost, and the command; or what is wrong with them."""
    try:
        promised = promise_of(values)
        rows = number(values["per_person"], "rows of one person") if values["per_person"] else 1
        ends = {"anytime": bool(values["anytime"])}
        cost = serve.planned(**promised, **ends, noise=values["noise"], per_person=rows)
    except VoileError as error:
        return {"cost": None, "wrong": error, "call": None}
    return {"cost": cost, "wrong": None, "call": begin_call(visit, values)}


def begin_call(visit: AreaVisit, values: Mapping[str, str]) -> ShownCall:
    """The command that begins the server of a form."""
    try:
        source, reading, options = chosen(visit, values)
    except VoileError:  # not all fields are filled yet
        source, reading, options = "TABLE", {}, promise_of(values)
    shown = seen_from(source, visit.studio.folder)
    for name in ("schema", "counter"):
        if name in options:
            options[name] = seen_from(options[name], visit.studio.folder)
    imports = "import voile.serve"
    table: str = shown
    if reading:
        how = ", ".join(f"{name}={value!r}" for name, value in reading.items())
        imports = f"import voile\nimport voile.serve\n\ntable = voile.read({shown!r}, {how})"
        table = Spoken(shown)
    folder = values["name"] or (name_for(source) if source != "TABLE" else "DIR")
    return ShownCall("serve init", "voile.serve.begin", folder, reading,
                options={"table": table, **options}, imports=imports, reads=False)  # fmt: skip


def manage(visit: AreaVisit, name: str, made: dict[str, Any] | None = None) -> Reply | None:
    """One server: budgets, analysts, tokens, the log with the questions; `made` is a new token."""
    if not NAME.fullmatch(name):
        return None
    folder = visit.studio.folder / name
    if not (folder / "server.json").is_file():
        job = visit.studio.jobs.find("servers.begin", {"folder": str(folder)})
        if job is None:
            return None
        return ScreenPage("server.html", {"job": job, "name": name, "found": None}, title=name)
    before = visit.form.get("before")
    found = serve.status(folder)
    lines = serve.log(folder, PAGE, before=int(before) if before.isdecimal() else None)
    begun = visit.studio.jobs.find("servers.begin", {"folder": str(folder)})
    used = found["everyone"]["used"]
    context = {
        "job": None, "name": name, "found": found, "made": made,
        "lines": [{**line, "at": written(line["at"]), "words": words(line)} for line in lines],
        "older": lines[-1]["number"] if len(lines) == PAGE else None, "newest": not before,
        "begun": begun.data if begun is not None and begun.ok else None,
        "audit": visit.studio.jobs.find("servers.audit", {"folder": str(folder), "used": used}),
        "running": visit.studio.servers.get(folder),
        "analysts": [with_times(one) for one in found["analysts"]],
    }  # fmt: skip
    return ScreenPage("server.html", context, server_calls(name), title=name)


def server_calls(name: str) -> list[ShownCall]:
    """Looking after a server from a shell or a script."""
    use = "import voile.serve"
    return [
        ShownCall("serve status", "voile.serve.status", name, imports=use, reads=False),
        ShownCall("serve token", "voile.serve.issue_token", name, options={"analyst": "iris"},
             imports=use, reads=False),
        ShownCall("serve log", "voile.serve.log", name, imports=use, reads=False),
        ShownCall("serve run", "", name, reads=False),
    ]  # fmt: skip


def with_times(analyst: Mapping[str, Any]) -> dict[str, Any]:
    """An analyst, with times as people read them."""
    tokens = [
        {**one, "until": None if one["expires"] is None else written(one["expires"])}
        for one in analyst["tokens"]
    ]
    return {**analyst, "tokens": tokens}


def written(at: float) -> str:
    """A moment as the pages' filter takes it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def words(line: Mapping[str, Any]) -> str:
    """The details of a line of the log, but for the numbers of entries that are shown as texts."""
    kept = {k: v for k, v in line["detail"].items() if v is not None and k != "entries"}
    return ", ".join(f"{key} {value}" for key, value in kept.items())


# ---------------------------------------------------------------------- what is done


def act(visit: AreaVisit) -> Reply | None:
    """Begin a server, or look after one."""
    match visit.path:
        case ("cost",):
            values = {name: visit.form.get(name, usual) for name, usual in DEFAULTS.items()}
            return ScreenPage("server-cost.html", foreseen(visit, values), part=True)
        case ("begin",):
            return begin(visit)
        case (name, action) if action in ACTIONS and is_server(visit, name):
            return ACTIONS[action](visit, name)
    return None


def is_server(visit: AreaVisit, name: str) -> bool:
    """Whether a server of the studio's folder is called so."""
    found = NAME.fullmatch(name) is not None
    return found and (visit.studio.folder / name / "server.json").is_file()


def begin(visit: AreaVisit) -> Reply:
    """Begin what the form says, in a job."""
    values = {name: visit.form.get(name) for name in DEFAULTS}
    source, reading, options = chosen(visit, values)
    name = values["name"] or name_for(source)
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a server's folder",
            hint="letters, digits, dots and hyphens, such as counts",
        )
    folder = visit.studio.folder / name
    if folder.exists():
        raise UsageError(
            f"{name!r} exists already",
            hint="a server's folder is never overwritten: choose another name",
        )
    visit.studio.jobs.start(
        "servers.begin", {"folder": str(folder)}, title=f"Beginning {name}", again=True,
        secret={"source": source, "reading": reading, "options": options},
    )  # fmt: skip
    return Go(f"/servers/{quote(name)}")


def chosen(
    visit: AreaVisit, values: Mapping[str, str]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The table, how it is read, and the keywords of `voile.serve.begin`."""
    options = {**promise_of(values), "noise": values["noise"]}
    if options["noise"] == "binomial":
        del options["noise"]  # the usual one
    if values["person"]:
        options["person"] = values["person"]
        if values["per_person"]:
            options["per_person"] = number(values["per_person"], "rows of one person")
    options |= further(visit, values)
    if subsets := subsets_of(values["subsets"]):
        options["subsets"] = subsets
    if columns := [name.strip() for name in values["columns"].split(",") if name.strip()]:
        options["columns"] = columns
    if values["project"]:
        return from_project(visit, values["project"], options)
    given = values["table"]
    if not given:
        raise UsageError("no table was named", hint="choose a project, or give a path")
    if "://" in given:
        check_address(given)
    elif not given.startswith("dataset:"):
        given = str(visit.studio.folder / Path(given).expanduser())
        check_table_file(Path(given.partition("::")[0]))
    return given, {}, options


def further(visit: AreaVisit, values: Mapping[str, str]) -> dict[str, Any]:
    """What most servers leave as it is: names, ids, where the ledger is, and two switches."""
    found: dict[str, Any] = {}
    for field, name in (("called", "name"), ("id_column", "id_column"), ("ledger", "ledger")):
        if values[field]:
            found[name] = values[field]
    check_address(values["ledger"])
    if values["counter"]:
        found["counter"] = str(visit.studio.folder / Path(values["counter"]).expanduser())
    return found | {name: True for name in ("anytime", "clamp") if values[name]}


def from_project(
    visit: AreaVisit, name: str, options: dict[str, Any]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The table of a project as it says: how it is read, which columns, whose rows, which values.

    What identifies people is not asked about.
    """
    if Path(name).name != name or not name.endswith(ENDING):
        raise UsageError(f"{name!r} is not in this folder", hint="choose one that is listed")
    path = visit.studio.folder / name
    opened = OpenProject("", path, read_project(path))
    project = opened.project
    columns = list(voile.read(opened.source, **project.reading).columns)
    if "person" in options:
        own = {"person": options["person"], "rows_per_person": options.get("per_person")}
        project = project.model_copy(update=own)
    with declared(project, columns, codebook_place(opened)) as schema:
        taken = server_options(project, columns, schema=schema)
    if "columns" in taken:  # ids are asked about no more than who is a person
        taken["columns"] = [name for name in taken["columns"] if name != options.get("id_column")]
    options = {**taken, **options}
    return opened.source, project.reading, options


def promise_of(values: Mapping[str, str]) -> dict[str, Any]:
    """What the form promises, as keywords."""
    queries = number(values["queries"], "answers")
    if values["promise"] == "epsilon":
        return {"queries": queries, "epsilon": decimal(values["epsilon"], "ε"),
                "epsilon_delta": decimal(values["epsilon_delta"], "δ")}  # fmt: skip
    found = {"queries": queries, "delta": decimal(values["delta"], "δ")}
    if values["eta"] and values["eta"] != DEFAULTS["eta"]:
        found["eta"] = decimal(values["eta"], "η")
    return found


def number(given: str, what: str) -> int:
    """A whole number of a field."""
    try:
        return int(given.replace(",", "") if IN_THOUSANDS.fullmatch(given) else given)
    except ValueError:
        raise UsageError(
            f"{given!r} is no number of {what}", hint="a whole number, such as 100"
        ) from None


def decimal(given: str, what: str) -> float:
    """A number of a field."""
    try:
        return float(given.replace(",", "."))
    except ValueError:
        raise UsageError(f"{what} = {given!r} is no number", hint="such as 1 or 1e-6") from None


def subsets_of(text: str) -> dict[str, str]:
    """Lines NAME=SQL by name."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, sql = line.partition("=")
        if not equals or not name.strip() or not sql.strip():
            raise UsageError(f"{line!r} is not NAME=SQL", hint="such as adults = age >= 18")
        found[name.strip()] = sql.strip()
    return found


def token(visit: AreaVisit, name: str) -> Reply | None:
    """A new token, shown once."""
    form, folder = visit.form, visit.studio.folder / name
    expires = form.get("expires")
    secret, identity = serve.issue_token(
        folder, form.get("analyst"),
        queries=number(form.get("queries"), "answers") if form.has("queries") else None,
        group=form.get("group") or None, role="admin" if form.has("admin") else "analyst",
        seconds=duration(expires) if expires else None,
    )  # fmt: skip
    return manage(visit, name, {"token": secret, "analyst": identity.name})


def revoke(visit: AreaVisit, name: str) -> Reply | None:
    """Revoke one token, from now on."""
    serve.revoke(visit.studio.folder / name, token=visit.form.get("token"))
    return manage(visit, name)


def group(visit: AreaVisit, name: str) -> Reply | None:
    """Make a group, or change its budget."""
    queries = number(visit.form.get("queries"), "answers")
    serve.set_group(visit.studio.folder / name, visit.form.get("group"), queries)
    return manage(visit, name)


def audit(visit: AreaVisit, name: str) -> Reply | None:
    """Compute what the answers so far disclosed."""
    folder = visit.studio.folder / name
    used = serve.status(folder)["everyone"]["used"]
    arguments = {"folder": str(folder), "used": used}
    visit.studio.jobs.start("servers.audit", arguments, title="Looking at every answer")
    return manage(visit, name)


def run(visit: AreaVisit, name: str) -> Reply | None:
    """Run it, as long as the studio does."""
    visit.studio.servers.start(visit.studio.folder / name)
    return manage(visit, name)


def stop(visit: AreaVisit, name: str) -> Reply | None:
    """Stop it."""
    visit.studio.servers.stop(visit.studio.folder / name)
    return manage(visit, name)


ACTIONS = {
    "token": token, "revoke": revoke, "group": group, "audit": audit, "run": run, "stop": stop,
}  # fmt: skip
AREA = Area(
    "servers",
    "Servers",
    show,
    act,
    lesson="A server keeps the table inside and answers questions with noise: so many answers, and "
    "never one more. The noise is derived from what you promise, before the first question. "
    "Analysts get tokens, and each token a budget; what was answered once is free for everybody.",
)
