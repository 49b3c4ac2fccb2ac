"""The codebook: which values each column may have, and what declaring them does to the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

import voile
from voile.errors import SchemaError, UsageError, VoileError
from voile.evaluate.codebook import codebook_effects
from voile.progress import Progress
from voile.schema import Schema
from voile.schema.infer import nice_bins
from voile.studio.calls import ShownCall, publish_call
from voile.studio.jobs import AT_ONCE, Job
from voile.studio.listing import listing
from voile.studio.pages import (
    Download,
    Form,
    Reply,
    Screen,
    ScreenPage,
    Visit,
    listed_numbers,
    read_number,
)
from voile.studio.project import CODEBOOKS, Codebook

MOST_LISTED = 5_000
"""Values of a column that a project lists."""
MOST_BINS = 1_000
PROMISE = ("epsilon", "delta")
WAYS: dict[str, Sequence[str]] = {
    "categorical": ("values",),
    "boolean": ("values",),
    "integer": ("values", "range", "bins"),
    "date": ("values", "range", "bins"),
    "numeric": ("bins", "interval", "values"),
}
"""By kind, how its domain may be said."""
WAY_WORDS = {
    "values": "listed values", "range": "everything from … to …", "bins": "bins",
    "interval": "any number from … to …",
}  # fmt: skip
KIND_WORDS = {
    "integer": "a whole number", "numeric": "a number", "date": "a date such as 2024-01-31",
    "boolean": "true or false",
}  # fmt: skip


# ---------------------------------------------------------------------- tasks


def infer_task(
    progress: Progress,
    *,
    source: str,
    reading: dict[str, Any],
    stamp: list[Any],
    columns: list[str],
    nulls: str,
) -> dict[str, Any]:
    """What the columns hold, as a codebook says it; and why some cannot be declared."""
    del stamp
    table = voile.read(source, **reading)
    how: Any = nulls
    problems: list[dict[str, str]] = []
    try:
        found = [attribute.to_dict() for attribute in table.infer(columns, how)]
    except VoileError:  # find out which column it is
        found = []
        progress.start("reading the columns", len(columns))
        for name in columns:
            try:
                found.append(table.infer([name], how)[name].to_dict())
            except VoileError as error:
                problems.append({"column": name, "why": error.message})
            progress.advance(1)
    long = [one for one in found if len(one.get("values", ())) > MOST_LISTED]
    problems += [
        {"column": one["name"], "why": f"it has {len(one['values']):,} values, too many to list"}
        for one in long
    ]
    return {"attributes": [one for one in found if one not in long], "problems": problems}


def effects_task(
    progress: Progress,
    *,
    source: str,
    reading: dict[str, Any],
    stamp: list[Any],
    attributes: list[dict[str, Any]],
    promise: dict[str, Any],
) -> list[dict[str, Any]]:
    """What the codebook does to each column."""
    del stamp
    progress.start("counting rows", 1)
    table = voile.read(source, **reading)
    schema = Schema.from_dict({"attributes": attributes})
    return [one.to_dict() for one in codebook_effects(table, schema, **promise)]


# ---------------------------------------------------------------------- the page


def show(visit: Visit) -> Reply:
    """Where the codebook comes from; its columns, where it is read off or declared."""
    job, project = visit.inspected(), visit.project
    context: dict[str, Any] = {"job": job, "codebooks": CODEBOOKS, "problems": [], "listed": None}
    if not job.ok:
        return ScreenPage("codebook.html", context)
    kept = project.columns([one["name"] for one in job.data["attributes"]])
    if project.codebook != "learnt" and kept:
        context |= entries(visit, kept)
    calls = [schema_call(visit, kept)]
    if project.codebook == "learnt":  # publishing does it; a codebook file would read values off
        with suppress(UsageError):
            calls = [publish_call(project, visit.column_names())]
    return ScreenPage("codebook.html", context, calls)


def schema_call(visit: Visit, kept: Sequence[str]) -> ShownCall:
    """Writing a codebook of what the columns hold, and seeing what it does."""
    project, file = visit.project, codebook_name(visit)
    given = "".join(f", {name}={value!r}" for name, value in promised(visit).items())
    script = (
        "import voile\nfrom voile.evaluate.codebook import codebook_effects\n\n"
        f"table = TABLE\nschema = table.infer({list(kept)!r}, {project.nulls!r})\n"
        f"schema.save({file!r})\ncodebook_effects(table, {file!r}{given})"
    )
    options: dict[str, Any] = {"output": file}
    if len(kept) < len(visit.column_names()):
        options["columns"] = list(kept)
    if project.nulls != "error":
        options["nulls"] = project.nulls
    return ShownCall("schema", "", project.source, project.reading, options=options, script=script)


def codebook_name(visit: Visit) -> str:
    """The file that a codebook is kept in."""
    return f"{visit.open.name}.codebook.yaml"


def promised(visit: Visit) -> dict[str, Any]:
    """The part of the promise that decides about noise."""
    project = visit.project
    chosen = project.options
    found: dict[str, Any] = {name: chosen[name] for name in PROMISE if name in chosen}
    if project.person is not None and (project.rows_per_person or 1) > 1:
        found["rows_per_person"] = project.rows_per_person
    return found


def entries(visit: Visit, kept: Sequence[str]) -> dict[str, Any]:
    """The columns with what is declared of them, and what that does."""
    known = declared(visit, kept)
    missing = [name for name in kept if name not in known]
    context: dict[str, Any] = {"problems": []}
    if missing:
        look = inferred(visit, missing)
        if not look.ok:
            return {"job": look}
        known |= {one["name"]: one for one in look.data["attributes"]}
        context["problems"] = look.data["problems"]
        if visit.project.codebook == "declared" and look.data["attributes"]:
            visit.change(attributes=[*known.values()])
    attributes = [known[name] for name in kept if name in known]
    if not attributes:
        return context
    effects = visit.work(
        "codebook.effects", title="Counting what the codebook does",
        **visit.open.table_arguments(), attributes=attributes, promise=promised(visit),
    )  # fmt: skip
    effects.wait(AT_ONCE)
    by_name = {one["column"]: one for one in effects.data} if effects.ok else {}
    items = [entry(one, by_name.get(one["name"])) for one in attributes]
    listed = listing(items, visit.form)
    return {**context, "effects": effects, "listed": listed, "ways": WAYS, "way_words": WAY_WORDS,
            "read_off": [one["name"] for one in attributes if one["public"] == "active"],
            "epsilon": promised(visit).get("epsilon", 1), "opened": visit.form.get("opened"),
            "refused": [one["name"] for one in items if one["refused"]]}  # fmt: skip


def declared(visit: Visit, kept: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What the project declares, by column; nothing where all is read off the table."""
    if visit.project.codebook != "declared":
        return {}
    return {one["name"]: one for one in visit.project.attributes if one["name"] in kept}


def inferred(visit: Visit, names: Sequence[str]) -> Job:
    """The look at what columns hold."""
    job = visit.work(
        "codebook.infer", title="Reading what the columns hold", **visit.open.table_arguments(),
        columns=list(names), nulls=visit.project.nulls,
    )  # fmt: skip
    return job.wait(AT_ONCE)


def entry(attribute: Mapping[str, Any], effect: Mapping[str, Any] | None) -> dict[str, Any]:
    """One column as the page shows it."""
    way = next(way for way in WAY_WORDS if way in attribute)
    items = attribute[way]
    refused = effect is not None and (
        (effect["outside"] and not effect["handled"]) or effect["nulls_refused"]
    )
    return {
        **attribute, "way": way, "effect": effect, "refused": bool(refused),
        "text": "\n".join(map(word, items)) if way == "values" else "",
        "low": word(items[0]) if way in ("range", "interval") else "",
        "high": word(items[1]) if way in ("range", "interval") else "",
        "edges": ", ".join(map(word, items)) if way == "bins" else "",
        "top": max((one["rows"] for one in effect["groups"]), default=0) if effect else 0,
        "other": attribute.get("other", ""), "clamp": attribute.get("clamp", False),
        "step": attribute.get("step", ""),
    }  # fmt: skip


def word(value: Any) -> str:
    """A value in a field."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


# ---------------------------------------------------------------------- choosing and editing


def choose(visit: Visit) -> Reply:
    """Say where the codebook comes from."""
    given = visit.form.get("codebook")
    if given not in get_args(Codebook):
        raise UsageError(f"{given!r} is not known", hint=f"use {', '.join(get_args(Codebook))}")
    visit.change(codebook=given)
    return show(visit)


def save_column(visit: Visit) -> Reply:
    """Declare one column as the form says."""
    form = visit.form
    name = (form.all("column") or [""])[0]
    before = next((one for one in current(visit) if one["name"] == name), None)
    if before is None:
        raise UsageError(f"the codebook has no column {name!r}", hint="load the page again")
    made = read_entry(form, before)
    Schema.from_dict({"attributes": [made]})  # refused here, with the column and the value
    keep_attributes(visit, [made])
    return show(visit)


def current(visit: Visit) -> list[dict[str, Any]]:
    """All columns as the page shows them now."""
    kept = visit.project.columns(visit.column_names())
    known = declared(visit, kept)
    missing = [name for name in kept if name not in known]
    look = inferred(visit, missing) if missing else None
    more = look.data["attributes"] if look is not None and look.ok else []
    return [*known.values(), *more]


def keep_attributes(visit: Visit, made: Sequence[Mapping[str, Any]]) -> None:
    """Put columns into the project's codebook, which is declared from now on."""
    known = {one["name"]: one for one in [*current(visit), *made]}
    visit.change(attributes=[*known.values()], codebook="declared")


def read_entry(form: Form, before: Mapping[str, Any]) -> dict[str, Any]:
    """What a form says of a column, as a codebook has it."""
    name, kind = before["name"], before["kind"]
    way = form.get("way") or "values"
    if way not in WAYS[kind]:
        raise UsageError(f"column {name!r}: {way!r} is not for kind {kind}", hint="choose another")
    made: dict[str, Any] = {"name": name, "kind": kind, way: read_domain(form, name, kind, way)}
    made |= {"null": form.has("null"), "ordered": before["ordered"], "public": "declared"}
    if way == "interval" and form.has("step"):
        made["step"] = value_of(form.get("step"), name, "numeric")
    if kind == "categorical" and form.has("other"):
        made["other"] = form.get("other")
        if made["other"] not in made["values"]:
            made["values"].append(made["other"])
    if form.has("clamp") and kind in ("integer", "numeric", "date"):
        made["clamp"] = True
    return made


def read_domain(form: Form, name: str, kind: str, way: str) -> list[Any]:
    """The values, ends or edges of a form."""
    if way == "values":
        lines = (form.all("text") or [""])[0].replace("\r", "").split("\n")
        texts = [line for line in lines if line.strip()]
        if kind != "categorical":
            return [value_of(text.strip(), name, kind) for text in texts]
        return texts
    if way in ("range", "interval"):
        return [value_of(form.get(end), name, kind) for end in ("low", "high")]
    count = form.get("count")
    if form.get("make") and count:
        return made_bins(form, name, kind, count)
    return [value_of(part, name, kind) for part in listed_numbers(form.get("edges"))]


def made_bins(form: Form, name: str, kind: str, count: str) -> list[Any]:
    """About so many bins of a round width, from the first edge to the last."""
    number = int(count) if count.isascii() and count.isdigit() else 0
    if not 1 <= number <= MOST_BINS or kind == "date":
        raise UsageError(
            f"column {name!r}: {count!r} bins cannot be made",
            hint=f"1 to {MOST_BINS:,} bins of numbers; type the edges of dates",
        )
    ends = [form.get("first"), form.get("last")]
    low, high = (float(value_of(end, name, "numeric")) for end in ends)
    if low >= high:
        raise UsageError(
            f"column {name!r}: bins from {word(low)} to {word(high)}", hint="give two ends"
        )
    edges = nice_bins(low, high, number)
    return sorted({round(edge) for edge in edges}) if kind == "integer" else list(edges)


def value_of(text: str, name: str, kind: str) -> Any:
    """A value that was typed, of the column's kind."""
    try:
        match kind:
            case "integer":
                return int(text)
            case "numeric":
                return read_number(text)
            case "boolean":
                return {"true": True, "false": False}[text.casefold()]
            case _:
                return text
    except (ValueError, KeyError):
        raise UsageError(
            f"column {name!r}: {text!r} is not {KIND_WORDS[kind]}",
            hint="correct it, and save again",
        ) from None


def vouch(visit: Visit) -> Reply:
    """Declare columns as they are: their values are known without the table."""
    names = set(visit.form.all("column"))
    made = [{**one, "public": "declared"} for one in current(visit) if one["name"] in names]
    if not made:
        raise UsageError("no column is named", hint="load the page again")
    keep_attributes(visit, made)
    return show(visit)


def read_off(visit: Visit) -> Reply:
    """Forget what is declared of a column: it is read off the table again."""
    name = (visit.form.all("column") or [""])[0]
    left = [one for one in visit.project.attributes if one["name"] != name]
    visit.change(attributes=left)
    return show(visit)


# ---------------------------------------------------------------------- files


def load(visit: Visit) -> Reply:
    """Take the columns of a codebook that was pasted or opened."""
    text = (visit.form.all("yaml") or [""])[0]
    if not text.strip():
        raise UsageError("the codebook is empty", hint="paste it, or choose a file")
    schema = Schema.from_yaml(text)
    known = visit.column_names()
    if unknown := [name for name in schema.names if name not in known]:
        raise SchemaError(
            f"the codebook has a column {unknown[0]!r}, the table has none of that name",
            hint="remove it from the codebook",
        )
    keep_attributes(visit, schema.to_dict()["attributes"])
    return show(visit)


def download(visit: Visit) -> Reply:
    """The codebook as a file, as `voile schema` writes it."""
    found = current(visit)
    if not found:
        raise UsageError("there is no codebook yet", hint="wait until the columns are read")
    content = Schema.from_dict({"attributes": found}).to_yaml()
    return Download(content.encode(), "application/yaml", codebook_name(visit))


SCREEN = Screen(
    "codebook",
    "Codebook",
    "Look",
    "A release needs to know which values a column may have before it looks. If the values are "
    "public anyway (an age is 0 to 110), declare them. If not, let Voile learn them with noise. "
    "Reading them off the table is exact, but tells everyone which values occur. Wide bins lose "
    "detail, narrow ones drown in noise.",
    show,
    actions={"choose": choose, "column": save_column, "vouch": vouch, "read-off": read_off,
             "load": load},
    parts={"file": download},
)  # fmt: skip
