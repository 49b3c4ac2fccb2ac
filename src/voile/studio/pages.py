"""What every screen is made with: a visit comes in, a page or part of one goes out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from voile.errors import VoileError
from voile.studio.calls import ShownCall
from voile.studio.jobs import AT_ONCE, Job
from voile.studio.project import ROLES, Project

if TYPE_CHECKING:
    from voile.studio.state import OpenProject, Studio


@dataclass(frozen=True)
class Form:
    """What a request sends: names with one value or several."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def get(self, name: str, default: str = "") -> str:
        """The first value of a name, without the spaces around it."""
        found = self.values.get(name)
        return found[0].strip() if found else default

    def all(self, name: str) -> list[str]:
        """Every value of a name."""
        return list(self.values.get(name, ()))

    def has(self, name: str) -> bool:
        """Whether a box is ticked, or a field there and not empty."""
        return bool(self.get(name))


@dataclass(frozen=True)
class Visit:
    """One request to a screen of a project."""

    studio: Studio
    open: OpenProject
    form: Form = Form()

    @property
    def project(self) -> Project:
        """The choices so far."""
        return self.open.project

    def change(self, **choices: Any) -> None:
        """Take choices, and save them."""
        self.open.change(**choices)

    def work(
        self,
        task: str,
        *,
        title: str,
        again: bool = False,
        secret: Mapping[str, Any] | None = None,
        then: Callable[[Any], None] | None = None,
        **arguments: Any,
    ) -> Job:
        """The job that does this, begun now unless it is there; `again` does it once more.

        `secret` arguments go to the process of the job and nowhere else. `then` hears what it
        found.
        """
        jobs = self.studio.jobs
        return jobs.start(task, arguments, title=title, secret=secret, again=again, then=then)

    def known_work(self, task: str, **arguments: Any) -> Job | None:
        """The job that does this, if it was begun."""
        return self.studio.jobs.find(task, arguments)

    def inspected(self) -> Job:
        """The look at the table on which most screens build: what `Inspection.to_dict` says.

        When it has ended, columns without a role get one.
        """
        given = {**self.open.table_arguments(), "kept": self.project.kept}
        job = self.work("table.inspect", title="Reading the table", **given).wait(AT_ONCE)
        if job.ok:
            self.open.give_roles(job.data["attributes"])
        return job

    def readable(self, questions: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
        """The questions that the columns can answer, and the others, with what is wrong."""
        from voile.evaluate.beside import check_question  # noqa: PLC0415  (loads a parser)

        job = self.inspected()
        if not job.ok:
            return [], []
        kinds = {one["name"]: one["kind"] for one in job.data["attributes"]}
        kept = {name: kinds[name] for name in self.project.columns([*kinds])}
        read, wrong = [], []
        for sql in questions:
            try:
                check_question(sql, kept, job.data["name"])
                read.append(sql)
            except VoileError as error:
                wrong.append({"sql": sql, "why": error.message, "hint": error.hint})
        return read, wrong

    @property
    def questions(self) -> list[str]:
        """The steward's questions that can be read: another must not stop what is foreseen of them.

        One that could be read cannot any more when its column is left out.
        """
        return self.readable(self.project.questions)[0]

    def column_names(self) -> list[str]:
        """The columns of the table; none as long as it is being read."""
        job = self.inspected()
        return [column["name"] for column in job.data["attributes"]] if job.ok else []


@dataclass(frozen=True)
class ScreenPage:
    """A template and what it shows. A `part` is swapped into the page, without its frame."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)
    calls: Sequence[ShownCall] = ()
    """The same as commands and as Python."""
    title: str = ""
    part: bool = False
    status: int = 200


@dataclass(frozen=True)
class Go:
    """Go on to another address of the studio."""

    to: str


@dataclass(frozen=True)
class Download:
    """A file to keep."""

    content: bytes
    media_type: str
    name: str = ""
    """Of the file; shown in the browser where it is empty."""
    status: int = 200


Reply = ScreenPage | Go | Download
Handler = Callable[[Visit], Reply]


@dataclass(frozen=True)
class Screen:
    """One screen of a project: its address, what it shows, and what can be done there."""

    name: str
    title: str
    group: str
    lesson: str
    """What the tutorial says, in plain words."""
    show: Handler
    actions: Mapping[str, Handler] = field(default_factory=dict)
    """POST: they change the project, or begin work."""
    parts: Mapping[str, Handler] = field(default_factory=dict)
    """GET: parts of the page, pictures and files."""


@dataclass(frozen=True)
class AreaVisit:
    """One request to an area; `path` are the words of its address."""

    studio: Studio
    path: tuple[str, ...] = ()
    form: Form = Form()


@dataclass(frozen=True)
class Area:
    """Addresses outside of projects: the start, releases, servers. None is a page not found."""

    name: str
    title: str
    get: Callable[[AreaVisit], Reply | None]
    post: Callable[[AreaVisit], Reply | None]
    lesson: str = ""


# ---------------------------------------------------------------------- rendering


@cache
def environment() -> Environment:
    """Jinja with everything escaped, and names that are missing refused."""
    made = Environment(
        loader=PackageLoader("voile.studio"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "short": short, "spec": spec, "moment": moment}
    made.globals |= {"ROLES": ROLES}
    return made


def rendered(template: str, context: Mapping[str, Any]) -> str:
    """A template filled in."""
    return environment().get_template(template).render(context)


def number(value: Any) -> str:
    """A number as people read it."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


IN_THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
"""A number as `number` writes it: commas stand between thousands."""


def read_number(text: str) -> float:
    """A number that was typed: 1,000 is a thousand, and in 0,5 or 2,5 the comma begins decimals."""
    return float(text.replace(",", "" if IN_THOUSANDS.fullmatch(text) else "."))


def listed_numbers(text: str) -> list[str]:
    """The parts of a list of numbers; where semicolons part them, a comma may begin decimals."""
    signs = r"[;\n]|,\s" if ";" in text else r"[,\n]"
    return [part.strip() for part in re.split(signs, text) if part.strip()]


def short(value: Any, most: int = 60) -> str:
    """A text that fits a cell."""
    text = "–" if value is None else str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def moment(text: str) -> str:
    """A moment with its zone, as people read it; what is none stays as somebody else wrote it."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def spec(chart: Mapping[str, Any]) -> Markup:
    """A chart of Vega-Lite as the content of an attribute: studio.js draws it."""
    return Markup.escape(json.dumps(chart, ensure_ascii=True))
