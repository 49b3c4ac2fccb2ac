"""Preview: the table and a candidate side by side, for the steward alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

from voile.errors import UsageError, VoileError
from voile.progress import Progress
from voile.studio.advising import apply_change, listed_changes
from voile.studio.calls import CLASS_METHODS, ShownCall, publish_options, quoted
from voile.studio.candidates import every, picked, remembered_place
from voile.studio.charts import heat_chart, pair_chart
from voile.studio.pages import Reply, Screen, ScreenPage, Visit
from voile.studio.points import per_cent
from voile.studio.running import shown_schema
from voile.studio.trying import task_arguments, tried_table

PLACE = "preview.voile"
MOST_COLUMNS = 12
"""Columns that are shown at once."""
MOST_BARS = 60
"""Values of a column that are drawn; the most frequent ones."""
MOST_RANGES, MOST_HEAT_RANGES = 40, 24
"""Ranges of numbers or dates, where a column has more values; in a heat map, of each column."""
MOST_HEAT = 2_500
"""Cells of a heat map."""


@dataclass(frozen=True)
class QueryCall(ShownCall):
    """A release is opened, and then asked."""

    def python(self) -> str:
        """As a program writes it."""
        given = [*map(repr, self.positional)]
        given += [f"{name}={value!r}" for name, value in self.options.items()]
        call = f"release.{self.function}({', '.join(given)})"
        return f"{self.imports}\n\nrelease = voile.open({self.table!r})\n{call}"


@dataclass(frozen=True)
class BesideCall(ShownCall):
    """The counts of a column: of the release by a command, beside the table's in Python."""

    source: str = ""
    column: str = ""

    def python(self) -> str:
        """As a program writes it."""
        how = "".join(f", {name}={value!r}" for name, value in self.reading.items())
        return (
            f"{self.imports}\n\nrelease = voile.open({self.table!r})\n"
            f"table = voile.read({self.source!r}{how})\n"
            f"{self.function}(release, table, [{self.column!r}], most={MOST_RANGES})"
        )


# ---------------------------------------------------------------------- the task


def make_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], method: str, options: dict[str, Any], coins: int,
    questions: list[str], pair: list[str], first: int,
) -> dict[str, Any]:  # fmt: skip
    """Make a release in a temporary folder, ask it and the table, and remove it."""
    del stamp
    from voile.evaluate.beside import summary_beside  # noqa: PLC0415  (used in tasks alone)

    tried = tried_table(source, reading, choices)
    drop = tried.project.nulls == "drop"
    with tried.release(method, options, progress, seed=coins, questions=questions) as release:
        names = list(release.schema.names)
        shown = list(islice(names, first, first + MOST_COLUMNS))
        progress.start("comparing columns", len(shown) + 2)
        columns = []
        for name in shown:
            columns.append(column_beside(release, tried.table, name, drop=drop))
            progress.advance(1)
        wanted = [name for name in pair if name in names] or names[:2]
        heat = heat_beside(release, tried.table, wanted, drop=drop)
        progress.advance(1)
        return {
            "method": release.manifest.method, "words": release.promise_in_short,
            "names": names, "columns": columns, "pair": wanted, "heat": heat,
            "summary": [one.to_dict() for one in summary_beside(release, tried.table)],
            "questions": [question_beside(release, tried.table, sql) for sql in questions],
        }  # fmt: skip


def column_beside(release: Any, table: Any, name: str, *, drop: bool) -> dict[str, Any]:
    """The values of a column with their counts, numbers and dates in ranges; of many texts, the
    most frequent."""
    from voile.evaluate.beside import ranges_beside  # noqa: PLC0415

    try:
        counts = ranges_beside(release, table, [name], most=MOST_RANGES, drop_nulls=drop)
    except VoileError as error:
        return {"name": name, "counts": [], "left": 0, "error": error.message}
    listed = [
        {"value": one.values[0], "truth": one.truth, "estimate": one.estimate} for one in counts
    ]
    often = sorted(listed, key=itemgetter("truth"), reverse=True)[:MOST_BARS]
    kept = listed if len(listed) <= MOST_BARS else often
    return {"name": name, "counts": kept, "left": len(listed) - len(kept), "error": ""}


def heat_beside(release: Any, table: Any, pair: list[str], *, drop: bool) -> dict[str, Any]:
    """The two-way table of two columns."""
    from voile.evaluate.beside import ranges_beside  # noqa: PLC0415

    if len(pair) < 2 or pair[0] == pair[1]:
        return {"cells": [], "error": "Choose two different columns."}
    try:
        counts = ranges_beside(release, table, pair, most=MOST_HEAT_RANGES, drop_nulls=drop)
    except VoileError as error:
        return {"cells": [], "error": error.message}
    if len(counts) > MOST_HEAT:
        text = f"{pair[0]} and {pair[1]} have {len(counts):,} cells: too many to draw."
        return {"cells": [], "error": text}
    cells = [
        {"a": one.values[0], "b": one.values[1], "truth": one.truth, "estimate": one.estimate}
        for one in counts
    ]
    return {"cells": cells, "error": ""}


def question_beside(release: Any, table: Any, sql: str) -> dict[str, Any]:
    """A question's numbers beside the truth, or why it is not answered."""
    from voile.evaluate.beside import answers_beside  # noqa: PLC0415

    try:
        rows = answers_beside(release, table, sql)
    except VoileError as error:
        return {"sql": sql, "error": error.message, "rows": []}
    return {"sql": sql, "error": "", "rows": [one.to_dict() for one in rows[:200]]}


# ---------------------------------------------------------------------- the screen


def arguments(visit: Visit) -> dict[str, Any]:
    """What is previewed: a candidate, and which columns of it."""
    one = picked(visit, str(remembered_place(visit, "preview")))
    kept = visit.open.remembered
    return {
        **task_arguments(visit), "method": one.method, "options": one.options,
        "coins": kept.get("preview.coins", 1), "questions": visit.questions,
        "pair": kept.get("preview.pair", []), "first": kept.get("preview.first", 0),
    }  # fmt: skip


def show(visit: Visit) -> Reply:
    """What was made of the candidate that is looked at."""
    looked = visit.inspected()
    context: dict[str, Any] = {
        "looked": looked, "candidates": every(visit), "job": None, "data": None, "charts": [],
        "place": remembered_place(visit, "preview"), "heat": [], "changes": [],
        "percent": per_cent, "classes": False, "most": MOST_COLUMNS, "first": 0,
    }  # fmt: skip
    if not looked.ok:
        return ScreenPage("preview.html", context)
    given = arguments(visit)
    job = visit.known_work("preview.make", **given)
    context |= {"job": job, "classes": given["method"] in CLASS_METHODS, "first": given["first"]}
    if job is not None:
        context["changes"] = listed_changes(job.changes)
    if job is not None and job.ok:
        data = job.data
        charts = [pair_chart(c["name"], c["counts"]) if c["counts"] else None
                  for c in data["columns"]]  # fmt: skip
        cells = data["heat"]["cells"]
        heat = [heat_chart(data["pair"], cells, key) for key in ("truth", "estimate")]
        context |= {"data": data, "charts": charts, "heat": heat if cells else []}
    return ScreenPage("preview.html", context, calls_of(visit))


def calls_of(visit: Visit) -> list[ShownCall]:
    """Publishing a trial, and asking it."""
    project = visit.project
    one = picked(visit, str(remembered_place(visit, "preview")))
    options = publish_options(
        project,
        visit.column_names(),
        method=one.method,
        options=one.options,
        schema=shown_schema(visit.open, visit.column_names(), visit.studio.folder),
    )
    coins = visit.open.remembered.get("preview.coins", 1)
    options |= {"simulate_seed": coins, "output": PLACE}
    name = visit.inspected().data["name"]
    sql = visit.questions[0] if visit.questions else f"select count(*) from {quoted(name)}"
    return [
        ShownCall("publish", "voile.publish", project.source, project.reading, options=options),
        QueryCall("query", "query", PLACE, positional=[sql]),
        *beside_calls(visit, name),
    ]


def beside_calls(visit: Visit, name: str) -> list[ShownCall]:
    """The counts of the first column; none where no column is published."""
    project = visit.project
    found: list[ShownCall] = []
    for column in project.columns(visit.column_names())[:1]:
        sql = f"select {quoted(column)}, count(*) from {quoted(name)} group by {quoted(column)}"
        found.append(
            BesideCall(
                "query", "voile.evaluate.beside.ranges_beside", PLACE, project.reading,
                positional=[sql], imports="import voile\nimport voile.evaluate.beside",
                unsaid=tuple(project.reading), source=project.source, column=column,
            )
        )  # fmt: skip
    return found


# ---------------------------------------------------------------------- actions


def make(visit: Visit) -> Reply:
    """Make the preview of a candidate; that is a look."""
    form, kept = visit.form, visit.open.remembered
    picked(visit, form.get("candidate"))  # refused where there is none
    kept["preview.candidate"] = int(form.get("candidate") or 0)
    if form.has("coins"):
        kept["preview.coins"] = kept.get("preview.coins", 1) + 1
    kept["preview.first"] = 0
    begin(visit)
    return show(visit)


def begin(visit: Visit) -> None:
    """Begin the work, unless it is done: that is a look at the private table."""
    visit.inspected()  # columns have their roles before the work is named by them
    one = picked(visit, str(remembered_place(visit, "preview")))
    visit.open.note_look(f"a preview of {one.name.removeprefix('Your choice: ')}")
    visit.work("preview.make", title="Making the preview", **arguments(visit))


def set_pair(visit: Visit) -> Reply:
    """Choose the two columns of the heat map."""
    pair = [visit.form.get("a"), visit.form.get("b")]
    if any(name not in visit.column_names() for name in pair) or pair[0] == pair[1]:
        raise UsageError("choose two different columns", hint="both must be in the table")
    visit.open.remembered["preview.pair"] = pair
    begin(visit)
    return show(visit)


def turn(visit: Visit) -> Reply:
    """Show other columns."""
    try:
        first = int(visit.form.get("first"))
    except ValueError:
        first = 0
    visit.open.remembered["preview.first"] = max(0, first)
    begin(visit)
    return show(visit)


def advise(visit: Visit) -> Reply:
    """Apply a change that would help; it is about the project's own choice."""
    apply_change(visit)
    visit.open.remembered["preview.candidate"] = 0
    return show(visit)


SCREEN = Screen(
    "preview",
    "Preview",
    "Choose",
    "See what a candidate would do to your table before anybody else sees anything. The preview "
    "has noise of its own and is thrown away: the release that you publish later has other noise. "
    "What you choose after such a look is marked, since the choice itself tells a little.",
    show,
    actions={"make": make, "pair": set_pair, "turn": turn, "advise": advise},
)
