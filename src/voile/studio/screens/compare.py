"""Compare: the frontier of releases that could be, and candidates side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from voile.errors import UsageError
from voile.progress import Progress
from voile.studio.calls import ShownCall, publish_call
from voile.studio.candidates import keep, place_of, use
from voile.studio.charts import frontier_chart
from voile.studio.jobs import Job
from voile.studio.pages import Reply, Screen, ScreenPage, Visit
from voile.studio.points import per_cent
from voile.studio.running import declared, located, shown_schema
from voile.studio.trying import described, missing_roles, task_arguments, tried_table

METHODS = ["mondrian", "anatomy", "trivial"]
NOISE_METHODS = ["alphabeta", "marginals"]
"""Of the others that the frontier knows, perturbed rows are not made by publishing."""
GRIDS = {
    "few": "k=10,100;l=2;t=0.1,0.3;posterior=0.2,0.5;epsilon=1",
    "more": "k=5,10,50,100,500;l=1.5,2,3,4;t=0.05,0.1,0.2,0.3;posterior=0.2,0.5,0.8;"
    "epsilon=0.3,1,3,6",
}
"""How many releases are measured."""
SEED = 0
OWN_DOMAIN = "active"
"""Where no codebook is declared: all that is measured must have the same domain."""


@dataclass(frozen=True)
class FrontierCall(ShownCall):
    """The command needs a folder, which Python does without."""

    def python(self) -> str:
        """As a program writes it."""
        options = {name: value for name, value in self.options.items() if name != "output"}
        return ShownCall.python(replace(self, options=options))


# ---------------------------------------------------------------------- tasks


def frontier_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], asked: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Measure many releases of the table."""
    del stamp
    from voile.evaluate.frontier import find_frontier  # noqa: PLC0415  (used in tasks alone)
    from voile.evaluate.frontier.portfolio import frontier_methods  # noqa: PLC0415

    tried = tried_table(source, reading, choices)
    with declared(tried.project, tried.columns) as schema:
        domain = schema or OWN_DOMAIN
        found = find_frontier(tried.table, progress=progress, schema=domain, **asked).to_dict()
    for point in found["points"]:
        fixed = {name: value for name, value in frontier_methods()[point["method"]].options.items()
                 if name != "method"}  # fmt: skip
        point["options"] = {**fixed, **point["parameters"]}
    return found


def measure_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], questions: list[str], candidates: list[dict[str, Any]],
) -> list[dict[str, Any]]:  # fmt: skip
    """A trial release of each candidate: what it promises and costs."""
    del stamp
    from voile.studio.measuring import PartProgress, measured_trial  # noqa: PLC0415  (for tasks)

    tried = tried_table(source, reading, choices)
    progress.start("measuring", len(candidates))
    found = []
    for part, one in enumerate(candidates, start=1):
        step = PartProgress(progress, part, len(candidates), "candidate")
        found.append(
            measured_trial(
                tried, one["method"], one["options"], questions, step, seed=SEED, counts=True
            )
        )
    return found


# ---------------------------------------------------------------------- the screen


def show(visit: Visit) -> Reply:
    """What was measured, and what is kept."""
    looked = visit.inspected()
    context: dict[str, Any] = {
        "looked": looked, "missing": [], "job": None, "data": None, "chart": None,
        "sensitive": [], "asked_sensitive": "", "grid": "few", "measured": None,
        "percent": per_cent, "questions": visit.questions,
        "chosen": described(visit.project.method, visit.project.options), "rows": [],
    }  # fmt: skip
    if not looked.ok:
        return ScreenPage("compare.html", context)
    context["missing"] = missing_roles(visit)
    if not context["missing"]:
        context |= frontier_panel(visit)
    context |= candidate_panel(visit)
    return ScreenPage("compare.html", context, calls_of(visit))


def frontier_panel(visit: Visit) -> dict[str, Any]:
    """The frontier, as far as it was measured."""
    asked = frontier_options(visit)
    job = visit.known_work("compare.frontier", **task_arguments(visit), asked=asked)
    found: dict[str, Any] = {
        "job": job, "asked_sensitive": asked["sensitive"],
        "sensitive": [n for n in visit.column_names() if n in visit.project.named("sensitive")],
        "grid": visit.open.remembered.get("compare.grid", "few"),
    }  # fmt: skip
    if job is not None and job.ok:
        visit.open.note_look("the frontier on the private table")
        found |= {"data": job.data, "chart": frontier_chart(job.data)}
    return found


def frontier_options(visit: Visit) -> dict[str, Any]:
    """The keywords of `find_frontier`."""
    project, names = visit.project, visit.column_names()
    sensitive = [name for name in names if name in project.named("sensitive")]
    wanted = visit.open.remembered.get("compare.sensitive", "")
    found: dict[str, Any] = {
        "sensitive": wanted if wanted in sensitive else sensitive[0],
        "qi": [name for name in names if name in project.named("quasi-identifier")],
        "methods": METHODS if project.person else [*METHODS, *NOISE_METHODS],
        "grid": GRIDS[visit.open.remembered.get("compare.grid", "few")],
    }
    if project.hierarchies:
        files = located(visit.open).hierarchies
        found["hierarchies"] = {n: f for n, f in files.items() if n in found["qi"]}
    if project.nulls != "error":
        found["nulls"] = project.nulls
    return found


def candidate_panel(visit: Visit) -> dict[str, Any]:
    """The candidates, with what was measured of them."""
    project = visit.project
    job = measuring(visit, begin=False)
    results = job.data if job is not None and job.ok else [None] * len(project.candidates)
    rows = [
        {"candidate": one, "found": found,
         "chosen": (one.method, one.options) == (project.method, project.options)}
        for one, found in zip(project.candidates, results, strict=True)
    ]  # fmt: skip
    return {"measured": job, "rows": rows}


def measuring(visit: Visit, *, begin: bool) -> Job | None:
    """The job that measures all candidates."""
    project = visit.project
    arguments = {
        **task_arguments(visit), "questions": visit.questions,
        "candidates": [{"method": c.method, "options": c.options} for c in project.candidates],
    }  # fmt: skip
    if begin:
        return visit.work("compare.measure", title="Measuring candidates", **arguments)
    return visit.known_work("compare.measure", **arguments)


def calls_of(visit: Visit) -> list[ShownCall]:
    """The frontier, and publishing what is chosen."""
    project = visit.project
    schema = shown_schema(visit.open, visit.column_names(), visit.studio.folder)
    publishing = publish_call(project, visit.column_names(), schema=schema)
    if missing_roles(visit):
        return [publishing]
    options = {**frontier_options(visit), "schema": schema or OWN_DOMAIN, "output": "frontier"}
    return [FrontierCall("frontier", "voile.evaluate.frontier.find_frontier", project.source,
                         project.reading, options=options,
                         imports="import voile.evaluate.frontier"), publishing]  # fmt: skip


# ---------------------------------------------------------------------- actions


def start(visit: Visit) -> Reply:
    """Measure the frontier."""
    sensitive, grid = visit.form.get("sensitive"), visit.form.get("grid") or "few"
    if grid not in GRIDS:
        raise UsageError(f"there is no grid {grid!r}", hint="choose few or more")
    if missing := missing_roles(visit):
        raise UsageError(
            f"no column is {missing[0]}", hint="give columns their roles on the Table screen"
        )
    visit.open.remembered |= {"compare.sensitive": sensitive, "compare.grid": grid}
    visit.work("compare.frontier", title="Measuring releases", again=True,
               **task_arguments(visit), asked=frontier_options(visit))  # fmt: skip
    return show(visit)


def add_point(visit: Visit) -> Reply:
    """Make a point of the frontier a candidate."""
    job = visit.known_work(
        "compare.frontier", **task_arguments(visit), asked=frontier_options(visit)
    )
    wrong = UsageError("there is no such point", hint="measure the frontier, and choose one")
    if job is None or not job.ok:
        raise wrong
    try:
        point = job.data["points"][int(visit.form.get("point"))]
    except (ValueError, IndexError):
        raise wrong from None
    keep(visit, point["method"], point["options"], looked=True)
    return show(visit)


def add_choice(visit: Visit) -> Reply:
    """Keep what is chosen on the Promise screen."""
    keep(visit, visit.project.method, visit.project.options, looked=False)
    return show(visit)


def remove(visit: Visit) -> Reply:
    """Let go of a candidate."""
    place, found = place_of(visit), visit.project.candidates
    visit.change(candidates=[one for n, one in enumerate(found) if n != place])
    return show(visit)


def choose(visit: Visit) -> Reply:
    """Publish a candidate's way."""
    use(visit, place_of(visit))
    return show(visit)


def measure(visit: Visit) -> Reply:
    """Try every candidate on the table; that is a look."""
    if not visit.project.candidates:
        raise UsageError("there is no candidate", hint="keep one first")
    measuring(visit, begin=True)
    visit.open.note_look("errors of candidates on the private table")
    return show(visit)


SCREEN = Screen(
    "compare",
    "Compare",
    "Choose",
    "Keep several ways to publish, and see them side by side. The frontier tries groupings of the "
    "rows, and noise: points to the left tell less about one person, points further down lose less "
    "about many. It measures, and promises nothing by itself.",
    show,
    actions={
        "start": start, "point": add_point, "keep": add_choice, "remove": remove,
        "choose": choose, "measure": measure,
    },
)  # fmt: skip
