"""Hierarchies: coarser values that a column's values may be replaced by, built and looked at."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import voile
from voile.errors import SchemaError, UsageError, VoileError
from voile.files import write_whole
from voile.hierarchies import Hierarchy, hierarchy_to_csv
from voile.progress import Progress
from voile.publishing import ColumnHierarchy, column_hierarchy
from voile.schema import Schema
from voile.studio.calls import ShownCall
from voile.studio.jobs import AT_ONCE, Job
from voile.studio.pages import (
    Download,
    Form,
    Go,
    Reply,
    Screen,
    ScreenPage,
    Visit,
    listed_numbers,
    read_number,
)

WAYS = {
    "": ("The usual one", "Ranges for numbers, month and year for dates, the one that ships with "
         "a practice table."),
    "multiples": ("Ranges of a width", "20-24, then 20-29, then 20-39."),
    "equal_width": ("So many equal ranges", "Then two or more of them joined, until one is left."),
    "equal_depth": ("Ranges with equally many rows", "They follow from the rows, and tell about "
                    "them."),
    "dates": ("Calendar", "Day, month, quarter, year."),
    "mask": ("Hide characters", "75011, 7501*, 750**."),
    "prefixes": ("First characters", "75011, 750*, 75*."),
    "order": ("An order that you give", "none, mild, severe: neighbours are joined. Put the values "
              "in order, one on each line, the lowest first. The command below has them from a "
              "codebook, order.yaml, with 'ordered: true'."),
    "mapping": ("Groups that you name", "Western Europe: [France, Spain]"),
    "suggest_by": ("Values that behave alike", "By a sensitive column. They follow from the rows, "
                   "and tell about them."),
    "file": ("A file of ARX", "One line for each value, from itself to the coarsest."),
}  # fmt: skip
"""How a hierarchy is built, by the option of `voile.publishing.column_hierarchy`."""
KINDS: dict[str, Sequence[str]] = {
    "integer": ("", "multiples", "equal_width", "equal_depth", "mask", "prefixes", "mapping",
                "suggest_by", "file"),
    "numeric": ("", "multiples", "equal_width", "equal_depth", "mapping", "file"),
    "date": ("", "dates", "equal_width", "equal_depth", "mapping", "file"),
    "categorical": ("", "mapping", "order", "mask", "prefixes", "suggest_by", "file"),
    "boolean": ("", "mapping", "file"),
}  # fmt: skip
JOINED = ("equal_width", "equal_depth", "suggest_by", "order")
TEXTS = ("mapping", "file", "order")
"""Ways that take a text, which is a file elsewhere."""
ORDERED = "order.yaml"
"""The codebook with the values in order, in the command."""
MOST_SAVED = 20_000
"""Values of a hierarchy that is written as a file here."""
LONG = 60.0
"""Seconds that a form waits for its hierarchy."""
MOST_EDITED = 2_000
"""Values of a hierarchy that can be edited as a text."""
CHILDREN, FIRST = 12, 6
"""Nodes of the tree that are shown under one; groups of a level that are named."""


# ---------------------------------------------------------------------- the task


def build_task(
    progress: Progress,
    *,
    source: str,
    reading: dict[str, Any],
    stamp: list[Any],
    column: str,
    attribute: dict[str, Any] | None,
    options: dict[str, Any],
    text: str,
) -> dict[str, Any]:
    """A hierarchy, level by level, as a tree, and as ARX's CSV."""
    del stamp
    progress.start("building the hierarchy", 1)
    table = voile.read(source, **reading)
    in_order = "order" in options
    if in_order:
        attribute = ordered_attribute(column, text)
        options = {name: value for name, value in options.items() if name != "order"}
    with tempfile.TemporaryDirectory(prefix="voile-") as folder:
        place = Path(folder) / "text"
        place.write_text(text, encoding="utf-8", newline="\n")
        given: dict[str, Any] = {n: place if n in TEXTS else v for n, v in options.items()}
        try:
            schema = None if attribute is None else Schema.from_dict({"attributes": [attribute]})
            found = column_hierarchy(table, column, schema=schema, **given)
        except SchemaError as error:  # whose file is ours
            message = error.message.removeprefix(f"{place}: ").replace(f"{place} ", "the text ")
            hint = "list every value of the column once" if in_order else error.hint
            raise SchemaError(message, hint=hint) from None
    small = found.levels.size <= MOST_SAVED
    content = hierarchy_to_csv(Hierarchy.of(found.levels.paths())).decode() if small else ""
    texts = [*found.levels.labels[0]] if found.levels.size <= MOST_EDITED else []
    return {
        **shown_levels(found),
        "texts": texts,
        "tree": tree(found) if small else None,
        "csv": content,
    }


def ordered_attribute(column: str, text: str) -> dict[str, Any]:
    """A column of texts whose values have the order of the lines."""
    values = [line.strip() for line in text.splitlines() if line.strip()]
    return {"name": column, "kind": "categorical", "values": values, "ordered": True}


def shown_levels(found: ColumnHierarchy) -> dict[str, Any]:
    """The levels with how many groups they have, and the first of them."""
    data = found.to_dict()
    words = found.levels.labels[0]
    some = [words[code] for code in range(min(FIRST, len(words)))]
    levels = [{"level": 0, "number": data["values"], "first": some}]
    for one in data["levels"]:
        groups = one["groups"]
        named = [group["label"] for group in groups[:FIRST]]
        smallest = min((group["rows"] for group in groups if group["rows"]), default=0)
        levels.append({"level": one["level"], "number": len(groups), "first": named,
                       "smallest": smallest})  # fmt: skip
    return {
        "column": data["column"], "kind": data["kind"], "values": data["values"],
        "built": data["built"], "derived": data["derived_from_rows"], "levels": levels,
    }  # fmt: skip


def tree(found: ColumnHierarchy) -> dict[str, Any]:
    """From everything down to the values: the first nodes under each."""
    root: dict[str, Any] = {}
    for path in found.levels.paths():
        node = root
        for label in reversed(path):
            node = node.setdefault(label, {})
    (top,) = root
    rows = [dict(zip(labels, found.rows(level).tolist(), strict=True))
            for level, labels in enumerate(found.levels.labels)]  # fmt: skip
    return branch(top, root[top], rows, found.levels.height)


def branch(
    label: str, under: Mapping[str, Any], rows: Sequence[Mapping[str, int]], level: int
) -> dict[str, Any]:
    """A node with the first of those under it."""
    some = [*under.items()][:CHILDREN]
    return {
        "label": label,
        "rows": rows[level].get(label, 0),
        "under": [branch(name, inner, rows, level - 1) for name, inner in some],
        "more": len(under) - len(some),
    }


# ---------------------------------------------------------------------- the page


def show(visit: Visit) -> Reply:
    """The columns that may be made coarser, and the hierarchy of the one that is chosen."""
    job, project = visit.inspected(), visit.project
    context: dict[str, Any] = {"job": job, "columns": [], "chosen": None}
    if not job.ok:
        return ScreenPage("hierarchies.html", context)
    kinds = kinds_of(visit)
    columns = [name for name in kinds if project.roles.get(name) == "quasi-identifier"
               and name != project.person]  # fmt: skip
    wanted = (visit.form.all("column") or [""])[0]
    chosen = wanted if wanted in columns else next(iter(columns), None)
    context |= {"columns": columns, "chosen": chosen}
    if chosen is None:
        return ScreenPage("hierarchies.html", context)
    kind = kinds[chosen]
    options: dict[str, Any] = {}
    text = failed = ""
    try:
        options, text = asked(visit.form, kind)
    except VoileError as error:
        failed = error.message
    saved = project.hierarchies.get(chosen, "")
    if not options and saved and not visit.form.has("anew") and not failed:
        options, text = {"file": saved}, saved_text(visit, saved)
    built = build(visit, chosen, options, text)
    context |= {
        "built": built, "saved": saved, "failed": failed, "ways": WAYS, "kind": kind,
        "known": KINDS.get(kind, ("", "mapping", "file")), "text": text,
        "way": next((way for way in options if way in WAYS), ""), "options": options,
        "sensitive": project.named("sensitive"), "joined": JOINED,
        "asked": [(name, visit.form.get(name)) for name in FIELDS[1:] if visit.form.has(name)],
        "editable": built.ok and built.data["values"] <= MOST_EDITED,
    }  # fmt: skip
    return ScreenPage("hierarchies.html", context, [hierarchy_call(visit, chosen, options)])


def declared_attribute(visit: Visit, column: str) -> dict[str, Any] | None:
    """What the project declares of a column."""
    if visit.project.codebook != "declared":
        return None
    return next((one for one in visit.project.attributes if one["name"] == column), None)


def build(visit: Visit, column: str, options: Mapping[str, Any], text: str) -> Job:
    """The job that builds a hierarchy."""
    job = visit.work(
        "hierarchies.build", title="Building the hierarchy", **visit.open.table_arguments(),
        column=column, attribute=declared_attribute(visit, column), options=dict(options),
        text=text,
    )  # fmt: skip
    return job.wait(AT_ONCE)


def hierarchy_call(visit: Visit, column: str, options: Mapping[str, Any]) -> ShownCall:
    """The same as `voile hierarchy`, whose flag --dates means the calendar."""
    project = visit.project
    given = {name: file_name(visit, column) if name == "file" else value
             for name, value in options.items()}  # fmt: skip
    if "mapping" in given:
        given["mapping"] = "groups.yaml"
    if given.pop("order", None):
        given["schema"] = ORDERED
    elif declared_attribute(visit, column):
        given["schema"] = f"{visit.open.name}.codebook.yaml"
    if "file" not in given:
        given["output"] = file_name(visit, column)
    return ShownCall(
        "hierarchy",
        "voile.publishing.column_hierarchy",
        project.source,
        project.reading,
        positional=[column],
        options=given,
        unsaid=("dates",),
        imports="import voile\nimport voile.publishing",
    )


def file_name(visit: Visit, column: str) -> str:
    """The file of a column's hierarchy, beside the project's."""
    plain = re.sub(r"[^\w-]+", "-", column).strip("-") or "column"
    taken = {file: name for name, file in visit.project.hierarchies.items()}
    name, n = f"{visit.open.name}.{plain}.csv", 1
    while taken.get(name, column) != column:
        n += 1
        name = f"{visit.open.name}.{plain}-{n}.csv"
    return name


def saved_text(visit: Visit, file: str) -> str:
    """The file of a hierarchy; a project may come from anywhere, so only files beside it."""
    if Path(file).name != file:
        raise UsageError(f"the hierarchy {file!r} is not beside the project", hint="build it anew")
    try:
        return (visit.open.path.parent / file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"cannot read {file!r}: {reason}", hint="build it anew") from None


# ---------------------------------------------------------------------- what a form asks for


def asked(form: Form, kind: str) -> tuple[dict[str, Any], str]:
    """The option of a form, and the text that goes with it."""
    way = form.get("way")
    if not way:
        return {}, ""
    if way not in KINDS.get(kind, ()):
        raise UsageError(f"{way!r} is not for columns of kind {kind}", hint="choose another way")
    text = (form.all("text") or [""])[0] if way in TEXTS else ""
    if way == "order":
        text = (form.all("order") or [""])[0].replace("\r\n", "\n")
    if way in TEXTS and not text.strip():
        raise UsageError("there is no text", hint="paste it, or choose a file")
    if way == "order":
        ranges = {"equal_width": option("equal_width", form)}
        return {"order": "text", **ranges, **fanout(form)}, text
    if way in TEXTS:
        return {way: "text"}, text
    found: dict[str, Any] = {way: option(way, form)}
    return {**found, **(fanout(form) if way in JOINED else {})}, ""


def fanout(form: Form) -> dict[str, Any]:
    """How many groups are joined into one, where the form says it."""
    return {"fanout": numbers(form.get("fanout"), whole=True)[0]} if form.has("fanout") else {}


def option(way: str, form: Form) -> Any:
    """The value of the option that builds it."""
    match way:
        case "multiples":
            return numbers(form.get("widths"))
        case "prefixes":
            return numbers(form.get("lengths"), whole=True)
        case "equal_width" | "equal_depth":
            return numbers(form.get("number"), whole=True)[0]
        case "dates":
            return True
        case "mask":
            return form.get("side") or "right"
        case _:
            return (form.all("by") or [""])[0]


def numbers(text: str, *, whole: bool = False) -> list[Any]:
    """Numbers between commas, or semicolons where commas begin decimals."""
    try:
        found = [int(part) if whole else read_number(part) for part in listed_numbers(text)]
    except ValueError:
        raise UsageError(
            f"{text!r} are not {'whole ' * whole}numbers", hint="such as 5, 10, 20"
        ) from None
    if not found:
        raise UsageError("no number is given", hint="such as 5, 10, 20")
    return [int(x) if float(x).is_integer() else x for x in found]


# ---------------------------------------------------------------------- actions


def preview(visit: Visit) -> Reply:
    """Build what the form says and look at it; its address keeps what was asked."""
    column, way = (visit.form.all("column") or [""])[0], visit.form.get("way")
    options, text = asked(visit.form, kinds_of(visit).get(column, ""))
    if way in TEXTS:  # too long for an address, which a page that waits would be loaded from anew
        build(visit, column, options, text).wait(LONG)
        return show(visit)
    fields = {name: value for name in FIELDS if (value := (visit.form.all(name) or [""])[0])}
    return Go(f"{visit.open.url}/hierarchies?{urlencode({**fields, 'anew': 'yes'})}")


FIELDS = ("column", "way", "widths", "lengths", "number", "fanout", "side", "by")


def save(visit: Visit) -> Reply:
    """Keep the hierarchy that is shown, as a file beside the project."""
    column = (visit.form.all("column") or [""])[0]
    job = saved_job(visit, column).wait(LONG)
    if not job.ok:
        raise UsageError(job.error or "the hierarchy was not built", hint=job.hint)
    if not job.data["csv"]:
        raise UsageError(
            f"{column!r} has {job.data['values']:,} values, too many for a file",
            hint="declare bins for it on the Codebook screen",
        )
    file = file_name(visit, column)
    mine = visit.project.hierarchies.get(column) == file
    write_whole(visit.open.path.parent / file, job.data["csv"].encode(), overwrite=mine)
    visit.change(hierarchies={**visit.project.hierarchies, column: file})
    return Go(f"{visit.open.url}/hierarchies?{urlencode({'column': column})}")


def saved_job(visit: Visit, column: str) -> Job:
    """The hierarchy that a form saves: the text that was edited, or what was previewed."""
    kinds = kinds_of(visit)
    if column not in kinds:
        raise UsageError(f"the table has no column {column!r}", hint="choose one that is listed")
    text = (visit.form.all("csv") or [""])[0].replace("\r\n", "\n")
    if text.strip():
        return build(visit, column, {"file": "text"}, text)
    return build(visit, column, *asked(visit.form, kinds[column]))


def kinds_of(visit: Visit) -> dict[str, str]:
    """The kind of each column: as it is declared, else as the table has it."""
    job = visit.inspected()
    found = {one["name"]: one["kind"] for one in job.data["attributes"]} if job.ok else {}
    declared = {name: declared_attribute(visit, name) for name in found}
    return {name: (declared[name] or {"kind": kind})["kind"] for name, kind in found.items()}


def remove(visit: Visit) -> Reply:
    """Use the usual hierarchy of a column again; its file stays."""
    column = (visit.form.all("column") or [""])[0]
    left = {name: file for name, file in visit.project.hierarchies.items() if name != column}
    visit.change(hierarchies=left)
    return Go(f"{visit.open.url}/hierarchies?{urlencode({'column': column})}")


def download(visit: Visit) -> Reply:
    """The file of a column's hierarchy, as ARX reads it."""
    column = (visit.form.all("column") or [""])[0]
    file = visit.project.hierarchies.get(column)
    if file is None:
        raise UsageError(f"no hierarchy of {column!r} is saved", hint="save it first")
    return Download(saved_text(visit, file).encode(), "text/csv; charset=utf-8", file)


SCREEN = Screen(
    "hierarchies",
    "Hierarchies",
    "Look",
    "Releases of classes replace values by coarser ones until enough people look alike: an age by "
    "a range, a town by its region. A hierarchy says which coarser values there are, level by "
    "level. If you publish noisy tables, you need none, and may go on.",
    show,
    actions={"preview": preview, "save": save, "remove": remove},
    parts={"file": download},
)
