"""Explore a release: what it is, questions clicked or typed, answers with their errors.

An analyst's screen: it opens releases and nothing else. Questions run in a process for each
release (`voile.studio.answers`).
"""

from __future__ import annotations

import base64
import io
import json
import shlex
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from voile.errors import UsageError, VoileError
from voile.estimate import checked_confidence
from voile.progress import Progress
from voile.release import examine
from voile.studio.answers import BAR_SECONDS, Asked, Asker
from voile.studio.calls import ShownCall
from voile.studio.jobs import Job
from voile.studio.pages import Area, AreaVisit, Download, Reply, ScreenPage
from voile.studio.project import name_for
from voile.studio.shown import answer_view, figure_words, is_estimate, marked

PATIENCE = 2.0
"""Seconds for which a page waits for an answer before it shows how far it is."""
FILE_SECONDS = 120.0
"""Seconds for which a file is waited for."""
OPENING = 8.0
"""Seconds for which a page waits for a release to be opened."""
LARGEST = 2**28
"""Bytes of a release that is sent as one file."""
HISTORY = 50
FILES = {"json": "application/json", "csv": "text/csv; charset=utf-8",
         "safe.csv": "text/csv; charset=utf-8",
         "parquet": "application/vnd.apache.parquet"}  # fmt: skip
WORDS_OF_SQL = (
    "all alter analyse analyze and any array as asc asymmetric between both by case cast check "
    "collate column constraint create cross cube day default deferrable desc describe distinct "
    "do drop else end except exists false fetch for force foreign from full glob grant group "
    "having if ilike in initially inner insert install intersect into is join lambda lateral "
    "leading left like limit lock map month natural not notnull null offset on only or order "
    "outer pivot pivot_longer pivot_wider placing positional primary qualify references "
    "returning revoke right rollback rollup select show some summarize symmetric table "
    "tablesample then to trailing true union unique unpivot using values variadic when where "
    "window with year"
)
RESERVED = frozenset(WORDS_OF_SQL.split())
"""Words that are no name of a table unless they are quoted."""
CONFIDENCES = (0.9, 0.95, 0.99)


@dataclass(frozen=True)
class ReleaseCall(ShownCall):
    """A call of a release's method: `tail` is what comes after `voile.open(…)`."""

    tail: str = ""

    def python(self) -> str:
        """As a program writes it."""
        lines = [self.imports, "", f"release = voile.open({self.table!r})"]
        return "\n".join([*lines, f"print(release.{self.tail})"])


@dataclass(frozen=True)
class OpenRelease:
    """A release by its name in addresses."""

    visit: AreaVisit
    name: str
    path: Path

    @property
    def asker(self) -> Asker:
        """Whoever answers for it."""
        return self.visit.studio.askers.of(self.path)

    @property
    def url(self) -> str:
        """The address of its page."""
        return f"/r/{quote(self.name, safe='')}"

    @property
    def shown_path(self) -> str:
        """As one types it in the studio's folder."""
        folder = self.visit.studio.folder
        inside = self.path.is_relative_to(folder)
        return str(self.path.relative_to(folder) if inside else self.path)

    def query_call(self, sql: str, confidence: float) -> ReleaseCall:
        """A question as a command and in Python."""
        usual = confidence == 0.95
        given = repr(sql) if usual else f"{sql!r}, confidence={confidence!r}"
        options = {} if usual else {"confidence": confidence}
        return ReleaseCall("query", "", self.shown_path, positional=[sql], options=options,
                           reads=False, tail=f"query({given})")  # fmt: skip


@dataclass(frozen=True)
class AskedQuestion:
    """What is asked, and how sure the intervals are to be."""

    sql: str
    confidence: float = 0.95

    @classmethod
    def of(cls, visit: AreaVisit) -> AskedQuestion:
        """The question of a request."""
        given = visit.form.get("confidence", "0.95")
        try:
            confidence = float(given)
        except ValueError:
            raise UsageError(f"confidence {given!r} is not a number", hint="0.95") from None
        return cls(visit.form.get("sql").replace("\r\n", "\n"), checked_confidence(confidence))

    def asked(self) -> dict[str, Any]:
        """As the process takes it."""
        return {"sql": self.sql, "confidence": self.confidence}

    def query_string(self) -> str:
        """As an address has it."""
        return urlencode(self.asked(), quote_via=quote)


def verify_task(progress: Progress, *, path: str, stamp: list[int]) -> dict[str, Any]:
    """What `voile verify --json` says."""
    del stamp  # a changed release is another task
    progress.start("checking every byte and what is promised", 1)
    return examine(path).to_dict()


# ---------------------------------------------------------------------- addresses


def show(visit: AreaVisit) -> Reply | None:
    """The releases, one of them, or an answer as a part of the page or as a file."""
    if not visit.path:
        return listed(visit)
    found = release_named(visit, visit.path[0])
    if found is None:
        return None
    if len(visit.path) == 1:
        return explore(found)
    part = PARTS.get(visit.path[1]) if len(visit.path) == 2 else None
    return None if part is None else part(found)


def schema_file(found: OpenRelease) -> Reply:
    """The columns, for the builder."""
    about = found.asker.ask({"do": "about"}).result(OPENING)
    kept = {key: about[key] for key in ("name", "attributes")}
    return Download(json.dumps(kept).encode(), FILES["json"])


def answer_file(form: str, limit: float = FILE_SECONDS) -> Callable[[OpenRelease], Reply]:
    """What answers the address of an answer's file."""
    return lambda found: as_data(found, AskedQuestion.of(found.visit), form, limit=limit)


def act(visit: AreaVisit) -> Reply | None:
    """Ask, or give up."""
    found = release_named(visit, visit.path[0]) if visit.path else None
    match visit.path[1:]:
        case ("ask",) if found:
            return answered(found, ask(found, AskedQuestion.of(visit)))
        case ("cancel",) if found:
            question = AskedQuestion.of(visit)
            asked = found.asker.ask({"do": "answer", **question.asked()})
            found.asker.cancel(asked)
            return answered(found, (question, asked))
    return None


def release_named(visit: AreaVisit, name: str) -> OpenRelease | None:
    """An open release; else one of the studio's folder that has this name there."""
    studio = visit.studio
    if name not in studio.releases:
        for manifest in sorted(studio.folder.glob("*.voile/manifest.json")):
            if name_for(manifest.parent.name.removesuffix(".voile")) == name:
                studio.open_release(manifest.parent)
                break
    path = studio.releases.get(name)
    return None if path is None else OpenRelease(visit, name, path)


def listed(visit: AreaVisit) -> Reply:
    """The releases of the folder, and others that are open."""
    studio = visit.studio
    inside = [manifest.parent for manifest in sorted(studio.folder.glob("*.voile/manifest.json"))]
    elsewhere = [path for path in studio.releases.values() if path not in inside]
    names = [studio.open_release(path) for path in (*inside, *elsewhere)]
    context = {
        "releases": [{"name": n, "url": f"/r/{quote(n, safe='')}", "path": studio.releases[n]}
                     for n in names],
    }  # fmt: skip
    return ScreenPage("releases.html", context)


# ---------------------------------------------------------------------- the page


def explore(found: OpenRelease) -> Reply:
    """What a release is, the builder, and the answer to the address's question."""
    opened = found.asker.ask({"do": "about"}).wait(OPENING)
    if opened.running:
        return ScreenPage("releases_opening.html", {"release": found, "asked": opened})
    if not opened.ok:
        raise VoileError(f"{found.shown_path} cannot be opened: {opened.error}", hint=opened.hint)
    about = opened.data
    given = AskedQuestion.of(found.visit)
    question = (
        given if given.sql else AskedQuestion(f"select count(*) from {table_name(about['name'])}")
    )
    view = answer_context(found, ask(found, question, by_hand=bool(given.sql)))
    context = {
        "release": found, "about": about, "confidences": CONFIDENCES,
        **verification(found), **view,
    }  # fmt: skip
    call = ReleaseCall("describe", "", found.shown_path, reads=False, tail="describe()")
    return ScreenPage("releases_explore.html", context, [call], title=f"Explore {about['name']}")


def table_name(name: str) -> str:
    """The table's name as SQL has it; quoted, it may be any."""
    plain = name.isascii() and name.isidentifier() and name.lower() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def verification(found: OpenRelease) -> dict[str, Any]:
    """Whether the release is whole and signed; a job looks, and the page goes on."""
    job: Job = found.visit.studio.jobs.start(
        "releases.verify",
        {"path": str(found.path), "stamp": found.asker.stamp},
        title="Verifying",
    )
    return {"release": found, "verifying": job}


# ---------------------------------------------------------------------- answers


def ask(
    found: OpenRelease, question: AskedQuestion, *, by_hand: bool = True
) -> tuple[AskedQuestion, Asked]:
    """Begin a question, or find it; one that is still at work for this release gives way."""
    if not question.sql:
        raise UsageError("there is no question", hint="select count(*) from …")
    asker = found.asker
    asked = asker.ask({"do": "answer", **question.asked()})
    if by_hand:
        before, asker.latest = asker.latest, asked
        if before is not None and before is not asked and before.running:
            asker.cancel(before)
        asker.history[question.sql, question.confidence] = asked
        asker.history.move_to_end((question.sql, question.confidence))
        while len(asker.history) > HISTORY:
            asker.history.popitem(last=False)
    return question, asked


def answered(found: OpenRelease, what: tuple[AskedQuestion, Asked]) -> ScreenPage:
    """The answer as a part of the page."""
    return ScreenPage("releases_answer.html", answer_context(found, what), part=True)


def answer_context(found: OpenRelease, what: tuple[AskedQuestion, Asked]) -> dict[str, Any]:
    """All that the template of an answer shows."""
    question, asked = what
    asked.wait(PATIENCE)
    context: dict[str, Any] = {
        "release": found, "question": question, "asked": asked, "forms": forms(found, question),
        "history": history(found), "view": None, "place": None, "message": "", "where": "",
    }  # fmt: skip
    if asked.ok:
        context["view"] = answer_view(asked.data)
    elif not asked.running:
        context["message"] = asked.error.partition("\n")[0]
        context["place"] = marked(question.sql, asked.start)
    return context


def forms(found: OpenRelease, question: AskedQuestion) -> dict[str, Any]:
    """The same answer elsewhere: files, a link, and what to type."""
    call = found.query_call(question.sql, question.confidence)
    string = question.query_string()
    get = (f"curl --get {shlex.quote(f'http://STUDIO{found.url}/answer.json')} "
           f"--data-urlencode {shlex.quote(f'sql={question.sql}')} "
           f"-d confidence={question.confidence:g} -d token=TOKEN")  # fmt: skip
    return {
        "link": f"{found.url}?{string}",
        "files": [
            {"name": name, "url": f"{found.url}/answer.{end}?{string}"}
            for name, end in (("CSV", "csv"), ("JSON", "json"), ("Parquet", "parquet"))
        ],
        "safe": f"{found.url}/answer.safe.csv?{string}",
        "texts": [
            {"id": "sql", "title": "SQL", "text": question.sql},
            {"id": "python", "title": "Python", "text": call.python()},
            {"id": "shell", "title": "Shell", "text": f"{call.command()} --json"},
            {"id": "curl", "title": "curl", "text": get},
        ],
    }


def history(found: OpenRelease) -> list[dict[str, Any]]:
    """What was asked of this release since the studio began, the newest first."""
    return [
        {"sql": sql, "confidence": confidence, "came": in_short(asked),
         "url": f"{found.url}?{AskedQuestion(sql, confidence).query_string()}"}
        for (sql, confidence), asked in reversed(found.asker.history.items())
    ]  # fmt: skip


def in_short(asked: Asked) -> str:
    """What came of a question, in a few words."""
    if not asked.ok:
        return {"running": "asking", "failed": "refused"}.get(asked.state, asked.state)
    rows = asked.data["rows"]
    if len(rows) == 1:
        alone = [value for value in rows[0].values() if is_estimate(value)]
        if len(alone) == 1:
            found = figure_words("", alone[0], "")
            return f"{found['value']} {found['error']}".strip()
    return f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}"


def as_data(
    found: OpenRelease, question: AskedQuestion, form: str, *, limit: float = FILE_SECONDS
) -> Download:
    """An answer as a file; a refusal is JSON, as programs read it."""
    request = {"do": "file", "form": form, **question.asked()}
    asked = found.asker.ask(request, limit).wait(limit)
    name = "" if form == "json" else f"{found.name}.{form.rpartition('.')[2]}"
    if asked.ok:
        return Download(base64.b64decode(asked.data), FILES[form], name)
    refusal: Mapping[str, Any] = {"error": asked.error or "it takes too long", "hint": asked.hint}
    return Download(json.dumps(refusal).encode(), FILES["json"], status=422)


def zipped(path: Path) -> bytes:
    """The whole release as one file; links are not followed."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.is_symlink()]
    if (total := sum(file.stat().st_size for file in files)) > LARGEST:
        raise UsageError(
            f"the release has {total:,} bytes, too many for one file", hint=f"copy {path}"
        )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, f"{path.name}/{file.relative_to(path)}")
    return content.getvalue()


PARTS: Mapping[str, Callable[[OpenRelease], Reply]] = {
    "answer": lambda found: answered(
        found, ask(found, AskedQuestion.of(found.visit), by_hand=False)
    ),
    "verified": lambda found: ScreenPage("releases_verified.html", verification(found), part=True),
    "schema.json": schema_file,
    "bars.json": answer_file("json", BAR_SECONDS),
    "release.zip": lambda found: Download(
        zipped(found.path), "application/zip", f"{found.path.name}.zip"
    ),
    **{f"answer.{form}": answer_file(form) for form in FILES},
}
"""What there is of a release besides its page."""
AREA = Area(
    "r",
    "Explore",
    show,
    act,
    lesson="A release stands for a table that is not here. Every number is an estimate with its "
    "error: the interval beside it says how far the truth may be. Click a bar to keep only those "
    "rows, a column to group by it, or type SQL. Asking costs nothing and tells nobody anything "
    "new: the release is public as it is.",
)
