"""The table: its columns, what each is for, who is a person, and what is odd about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import voile
from voile.errors import UsageError
from voile.inspection import inspect, inspect_source, suggested
from voile.options.choices import MOST_ROWS_PER_PERSON
from voile.options.reading import DateOrder, Decimal, HeaderRow, ReadingOptions, Thousands
from voile.progress import Progress
from voile.studio.calls import ShownCall
from voile.studio.jobs import AT_ONCE
from voile.studio.listing import listing
from voile.studio.pages import Form, Reply, Screen, ScreenPage, Visit
from voile.studio.project import Role, plain_reading

NULLS = {
    "error": "Stop: nothing is published as long as a value is missing.",
    "drop": "Leave out rows in which a value is missing.",
    "as-value": "Missing is one more value.",
}
WHO = {
    "row": "Each row is one person.",
    "person": "A column says whose a row is: people have several rows.",
    "household": "A column says which household a row is of: whole households are protected.",
}
DATES = {"dmy": "day first", "mdy": "month first", "ymd": "year first", "text": "as texts"}
FIRST_ROWS = 10
"""Rows that are shown, to whoever asks for them."""
SIGNS = {",": "comma", ".": "point", " ": "space", "'": "apostrophe"}
WORDS_OF_MENDS = {
    "null_text": "Read {} as missing", "decimal": "The {} begins decimals",
    "thousands": "The {} stands between thousands", "dates": "Read dates {}",
    "encoding": "Read its letters as {}", "separator": "The {} stands between cells",
    "bad_rows": "Leave out lines that cannot be read",
}  # fmt: skip
READ_CHOICES: dict[str, Sequence[str]] = {
    "decimal": get_args(Decimal), "thousands": get_args(Thousands),
    "dates": get_args(DateOrder), "header": get_args(HeaderRow),
}  # fmt: skip
"""Options of reading with few values."""


# ---------------------------------------------------------------------- the look


def inspect_task(
    progress: Progress,
    *,
    source: str,
    reading: dict[str, Any],
    stamp: list[Any],
    kept: list[str],
) -> dict[str, Any]:
    """The look at a table as it would best be read, but for findings that are kept."""
    del stamp  # a changed file is another task
    progress.start("reading the table", 1)
    asked = ReadingOptions(**reading)
    if kept:
        table = voile.read(source, **asked.given_keywords())
        findings = [one for one in table.findings() if finding_key(one) not in kept]
        better = suggested(asked, findings)
        found = inspect(voile.read(source, **better.given_keywords()))
    else:
        found = inspect_source(source, reading=asked)
        findings = [*found.findings]
    mends = [
        {"column": one.column, "what": one.what, "message": one.message(), "stops": one.stops,
         "settled_by": [[name, value] for name, value in one.settled_by]}
        for one in findings
    ]  # fmt: skip
    return {
        **found.to_dict(), "mends": mends, "suggested": plain_reading(found.reading),
        "totals": found.totals,
    }  # fmt: skip


def rows_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any]
) -> list[dict[str, str | None]]:
    """The first rows, each by the names of the columns."""
    del stamp
    progress.start("reading the first rows", 1)
    table = voile.read(source, **reading)
    if not table.at_hand:
        raise UsageError(f"the rows of {table.name} stay where they are", hint="look there")
    return [
        {name: None if value is None else str(value)
         for name, value in zip(table.columns, row, strict=True)}
        for row in table.run(f"select * from people limit {FIRST_ROWS}")
    ]  # fmt: skip


def finding_key(finding: Any) -> str:
    """By which a finding is remembered."""
    return f"{finding.what}:{finding.column}"


# ---------------------------------------------------------------------- the page


def show(visit: Visit) -> Reply:
    """The columns, or how far reading them is."""
    job = visit.inspected()
    project = visit.project
    call = ShownCall(
        "inspect",
        "voile.inspection.inspect_source",
        visit.project.source,
        project.reading,
        imports="import voile.inspection",
        reads=False,
    )
    if project.reading:
        how = ", ".join(f"{name}={value!r}" for name, value in project.reading.items())
        script = (
            "import voile.inspection\nfrom voile.options.reading import ReadingOptions\n\n"
            f"reading = ReadingOptions({how})\n"
            f"voile.inspection.inspect_source({project.source!r}, reading=reading)"
        )
        call = ShownCall("inspect", "", project.source, project.reading, script=script)
    context: dict[str, Any] = {"job": job, "reading": reading_fields(project.reading)}
    context["hinted"] = hinted(job.hint)
    if job.ok:
        context |= looked_at(visit, job.data)
        context["rows"] = rows = visit.known_work("table.rows", **rows_of(visit, job.data))
        if rows is not None:
            call = replace(call, script=f"{call.python()}\n{rows_in_python(visit, job.data)}")
    return ScreenPage("table.html", context, [call])


def rows_of(visit: Visit, found: Mapping[str, Any]) -> dict[str, Any]:
    """What the first rows depend on: they are read as the columns are shown."""
    return {**visit.open.table_arguments(), "reading": found["suggested"]}


def rows_in_python(visit: Visit, found: Mapping[str, Any]) -> str:
    """The first rows as a script has them; no command prints rows."""
    how = "".join(f", {name}={value!r}" for name, value in found["suggested"].items())
    sql = f"select * from people limit {FIRST_ROWS}"
    return f"print(voile.read({visit.project.source!r}{how}).run({sql!r}))"


def show_rows(visit: Visit) -> Reply:
    """Read the first rows, once somebody asks for them."""
    job = visit.inspected()
    if job.ok:
        visit.work("table.rows", title="Reading the first rows",
                   **rows_of(visit, job.data)).wait(AT_ONCE)  # fmt: skip
    return show(visit)


HINTED = re.compile(
    rf"\b({'|'.join((*READ_CHOICES, 'separator', 'encoding', 'bad_rows'))})='([^']*)'"
)
"""Options of reading in a hint, as Python spells them."""


def hinted(hint: str) -> list[tuple[str, str, str]]:
    """The options that a refusal to read the file hints at, each with the words of its button."""
    return [(name, value, mend_words(name, value)) for name, value in HINTED.findall(hint)]


def looked_at(visit: Visit, found: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of a table that was read."""
    project = visit.project
    columns = [{**one, "role": project.roles[one["name"]]} for one in found["attributes"]]
    published = set(project.columns([one["name"] for one in columns]))
    gaps = [one["name"] for one in columns if one["nulls"] and one["name"] in published]
    repeated = [
        name
        for name in found["repeated_identifiers"]
        if project.person is None and project.roles[name] == "identifier"
    ]
    return {
        "found": found,
        "listed": listing(columns, visit.form),
        "names": [one["name"] for one in columns],
        "mends": mends_of(found),
        "mendable": found["suggested"] != project.reading,
        "gaps": gaps,
        "repeated": repeated,
        "nulls": NULLS,
        "who": project.unit if project.person else "row",
        "whos": WHO,
        "roles_used": [role for role in get_args(Role) if role in project.roles.values()],
    }


def mends_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Findings with their buttons: what can be done, in words, and the place of the option."""
    return [
        {
            **one,
            "buttons": [
                (place, mend_words(name, value))
                for place, (name, value) in enumerate(one["settled_by"])
            ],
            "keeps": keeping(one) is not None,
        }
        for one in found["mends"]
    ]


def mend_words(name: str, value: Any) -> str:
    """What a mend does, on its button."""
    if name == "na":
        return "Read NA and the like as missing" if value else "Keep NA as a text"
    shown = repr(value) if name == "null_text" else {**SIGNS, **DATES}.get(value, value)
    return WORDS_OF_MENDS.get(name, f"Set {name} to {{}}").format(shown)


def keeping(mend: Mapping[str, Any]) -> dict[str, Any] | None:
    """What leaves a finding as it is: options, or only a note; None where one must choose."""
    match mend["what"]:
        case "missing":
            return {"na": False}
        case "dates" | "numbers":
            return None
        case _:
            return {}


# ---------------------------------------------------------------------- mending


def mend(visit: Visit) -> Reply:
    """Read the table as one finding suggests."""
    found = finding_of(visit)
    place = visit.form.get("option")
    if not place.isdigit() or int(place) >= len(found["settled_by"]):
        raise UsageError(f"there is no change {place!r}", hint="choose one that is listed")
    name, value = found["settled_by"][int(place)]
    if name == "null_text":
        value = [*visit.project.reading.get("null_text", []), value]
    visit.change(reading={**visit.project.reading, name: value})
    return show(visit)


def read_so(visit: Visit) -> Reply:
    """Read the file as a refusal hinted."""
    name, value = visit.form.get("name"), (visit.form.all("value") or [""])[0]
    if (name, value) not in HINTED.findall(f"{name}={value!r}"):
        raise UsageError(f"{name!r} is no option of reading", hint="choose one that is listed")
    visit.change(reading={**visit.project.reading, name: value})
    return show(visit)


def mend_all(visit: Visit) -> Reply:
    """Read the table as the look suggests; missing values become a value."""
    job = visit.inspected()
    if not job.ok:
        return show(visit)
    nulls = visit.project.nulls
    if nulls == "error" and any(one["nulls"] for one in job.data["attributes"]):
        nulls = "as-value"
    visit.change(reading=job.data["suggested"], nulls=nulls)
    return show(visit)


def keep(visit: Visit) -> Reply:
    """Leave a finding as it is."""
    found = finding_of(visit)
    options = keeping(found)
    if options is None:
        raise UsageError(f"{found['column']!r} can be read in two ways", hint="choose one of them")
    if options:
        visit.change(reading={**visit.project.reading, **options})
    else:
        key = f"{found['what']}:{found['column']}"
        visit.change(kept=[*visit.project.kept, key])
    return show(visit)


def finding_of(visit: Visit) -> dict[str, Any]:
    """The finding that a form names."""
    job = visit.inspected()
    column, what = visit.form.get("column"), visit.form.get("what")
    for one in job.data["mends"] if job.ok else ():
        if one["column"].strip() == column and one["what"] == what:
            found: dict[str, Any] = one
            return found
    raise UsageError(f"nothing of this kind was found in {column!r}", hint="load the page again")


def reading_fields(reading: Mapping[str, Any]) -> dict[str, Any]:
    """What the form about the file shows."""
    texts = "\n".join(reading.get("null_text", []))
    na = {None: "", True: "yes", False: "no"}[reading.get("na")]
    shown = {name: reading.get(name) or "" for name in (*READ_CHOICES, "separator", "encoding")}
    if shown["separator"] in ("\t", " "):
        shown["separator"] = {"\t": "tab", " ": "space"}[shown["separator"]]
    return {
        **shown,
        "null_text": texts,
        "na": na,
        "skip": reading.get("skip", 0),
        "bad_rows": reading.get("bad_rows", "error"),
        "choices": READ_CHOICES,
        "words": {**SIGNS, **DATES, "yes": "yes", "no": "no"},
    }


def set_reading(visit: Visit) -> Reply:
    """Say how the file is written."""
    form = visit.form
    chosen: dict[str, Any] = {
        name: value for name in ("separator", "encoding") if (value := form.get(name))
    }
    for name in READ_CHOICES:  # a space is a choice: it must not be cut off
        given = (form.all(name) or [""])[0]
        chosen |= {name: given} if given else {}
    if texts := [line for line in form.get("null_text").splitlines() if line.strip()]:
        chosen["null_text"] = texts
    if form.get("na"):
        chosen["na"] = form.get("na") == "yes"
    if (skip := form.get("skip", "0")) not in ("", "0"):
        chosen["skip"] = whole(skip, "lines to leave out")
    if form.get("bad_rows") == "drop":
        chosen["bad_rows"] = "drop"
    visit.change(reading=plain_reading(ReadingOptions(**chosen)), kept=[])
    return show(visit)


def whole(text: str, what: str) -> int:
    """A whole number that was typed."""
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise UsageError(f"{what}: {text!r} is not a whole number", hint="such as 1")
    return int(text)


# ---------------------------------------------------------------------- roles and people


def set_roles(visit: Visit) -> Reply:
    """Say what columns are for: one, or all that are ticked."""
    names, role = visit.form.all("column"), visit.form.get("role")
    known = set(visit.column_names())
    if unknown := [name for name in names if name not in known]:
        raise UsageError(
            f"the table has no column {unknown[0]!r}", hint="choose one that is listed"
        )
    if not names:
        raise UsageError("no column is ticked", hint="tick those whose role you want to change")
    if role not in get_args(Role):
        raise UsageError(f"there is no role {role!r}", hint=f"use {', '.join(get_args(Role))}")
    visit.change(roles={**visit.project.roles, **dict.fromkeys(names, role)})
    return show(visit)


def set_person(visit: Visit) -> Reply:
    """Say who a person is: a row, or what a column says."""
    form: Form = visit.form
    who, column = form.get("who"), (form.all("person") or [""])[0]
    if who not in WHO:
        raise UsageError(f"{who!r} is not known", hint=f"use {', '.join(WHO)}")
    if who == "row":
        visit.change(person=None, rows_per_person=None, unit="person")
        return show(visit)
    if column not in visit.column_names():
        raise UsageError("no column says whose a row is", hint="choose the column")
    rows = whole(form.get("rows") or "1", "rows of each person")
    if not 1 <= rows <= MOST_ROWS_PER_PERSON:
        raise UsageError(
            f"{rows:,} rows of each person are not possible",
            hint=f"1 to {MOST_ROWS_PER_PERSON:,}: noise grows with it",
        )
    roles = {**visit.project.roles, column: "identifier"}
    visit.change(person=column, unit=who, rows_per_person=rows, roles=roles)
    return show(visit)


def set_nulls(visit: Visit) -> Reply:
    """Say what becomes of missing values."""
    if visit.form.get("nulls") not in NULLS:
        raise UsageError(f"{visit.form.get('nulls')!r} is not known", hint=", ".join(NULLS))
    visit.change(nulls=visit.form.get("nulls"))
    return show(visit)


SCREEN = Screen(
    "table",
    "Table",
    "Look",
    "Look at the columns first. A column that names people, such as a number of a patient, is "
    "left out of every release. What others may know of a person (age, town) is a "
    "quasi-identifier. What nobody is to learn (a diagnosis, an income) is sensitive.",
    show,
    actions={
        "role": set_roles, "mend": mend, "mend-all": mend_all, "keep": keep,
        "read-so": read_so, "rows": show_rows,
        "reading": set_reading, "person": set_person, "nulls": set_nulls,
    },
)  # fmt: skip
