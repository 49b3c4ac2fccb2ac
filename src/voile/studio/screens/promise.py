"""The promise: which method, how strong, and what that costs on this table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from voile.errors import UsageError
from voile.progress import Progress
from voile.studio.advising import apply_change, listed_changes
from voile.studio.calls import (
    CLASS_METHODS,
    ShownCall,
    check_rows_are_people,
    publish_call,
    publish_options,
)
from voile.studio.charts import curve_chart, plane_chart
from voile.studio.jobs import Job
from voile.studio.pages import AreaVisit, Reply, Screen, ScreenPage, Visit, read_number
from voile.studio.points import (
    SliderPoint,
    answer_points,
    class_points,
    count_points,
    epsilon_points,
    lines_of,
    nearest,
    per_cent,
    question_cells,
    rises,
    sent_points,
    view_points,
)
from voile.studio.running import shown_schema
from voile.studio.screens import servers
from voile.studio.trying import (
    EPSILON_METHODS,
    SERVER_NOISE,
    TITLES,
    described,
    missing_roles,
    task_arguments,
    tried_table,
)

EPSILONS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0,
            2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0)  # fmt: skip
"""The places of the slider."""
FEW_EPSILONS = (0.1, 0.5, 1.0, 5.0)
"""Where the steward's own questions are asked of a trial release, and at what is chosen."""
FEW_ANSWERS = (10, 100, 1000)
"""The same of a trial server."""
REQUIREMENTS: dict[str, tuple[float, ...]] = {
    "k": (2, 5, 10, 25, 50, 100), "l": (1.5, 2, 3, 4, 5), "t": (0.05, 0.1, 0.2, 0.3, 0.4),
}  # fmt: skip
"""What classes may be asked for, and the places of its slider."""
RISES = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0)
"""δ of tables of counts: by how much log-odds of a belief may rise."""
VIEW = {"prior": 0.01, "posterior": 0.2}
"""Where the sliders of a noisy view begin."""
PLANE = ("columns", "schema", "nulls", "posterior", "prior", "prior_factor")
"""Options that the boundary of what is possible depends on."""
SEED = 0
"""The coins of trial releases: always the same, so that a plan can be repeated."""
MOST_QUESTIONS, LONGEST_QUESTION = 20, 2000

NEEDS: tuple[dict[str, str], ...] = (
    {"title": "Nobody is to be trusted with the rows as they are",
     "more": "Not even you, or the rows are not collected yet.",
     "answer": "A survey whose answers are perturbed by those who give them.",
     "why": "Then a true answer never leaves the person who gives it. It is no release of a table: "
     "`voile spec` and `voile collect` begin it. Several offices that each hold a part of the rows "
     "perturb their part with `voile perturb`."},
    {"title": "Nothing may leave but answers",
     "more": "The law says so, or questions will come for years and nobody knows which.",
     "answer": "A server.",
     "why": "Somebody must run it, and after T answers it is silent. The fewer answers, the more "
     "exact each of them."},
    {"title": "You know the questions now",
     "more": "They are counts over a few columns at a time, as in an official statistic.",
     "answer": "Tables of counts.", "method": "conjuncts",
     "why": "The promise holds also against someone who knows every other row. What needs more "
     "columns at once than the tables have cannot be asked."},
    {"title": "A rule, a contract or a reader asks for k-anonymity, ℓ or t",
     "more": "Or what you hand over must look like rows.",
     "answer": "Classes of rows.", "method": "mondrian",
     "why": "The most exact, and the least protective: what they promise describes the table, and "
     "is no limit on what somebody with other knowledge learns. Bind the reader by contract."},
    {"title": "Readers must see records, or the promise must be that of the paper",
     "more": "Real and invented records, mixed.",
     "answer": "A noisy view.", "method": "alphabeta",
     "why": "It limits what anybody learns who knew little beforehand: a belief of at most d stays "
     "below γ. Of those who know almost all about a person it promises little."},
    {"title": "None of these: one table, any questions, readers you do not know",
     "more": "The usual case.",
     "answer": "The default: all methods that keep (ε, δ) are compared, and the best is taken.",
     "method": "auto",
     "why": "The promise holds against anybody, with the least error at the same ε, error bars on "
     "every answer, and synthetic rows for those who need rows."},
)  # fmt: skip
"""The questions of docs/choosing.md, in their order."""


# ---------------------------------------------------------------------- tasks


def compare_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], questions: list[str], epsilon: float,
) -> dict[str, Any]:  # fmt: skip
    """All methods under one promise, and at other ε: what `voile plan` shows."""
    del stamp
    from voile.evaluate.planning import compare_methods  # noqa: PLC0415  (used in tasks alone)

    tried = tried_table(source, reading, choices)
    with tried.keywords("auto", {"epsilon": epsilon}) as options:
        found = compare_methods(
            tried.table, progress=progress, epsilons=EPSILONS, **{**options, "on": questions}
        )
    return found.to_dict()


def view_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], questions: list[str], options: dict[str, Any],
    max_error: float | None,
) -> dict[str, Any]:  # fmt: skip
    """The plan of a noisy view, with its curves and what is possible at all."""
    del stamp
    from voile.evaluate.planning import boundary_of, plan_table  # noqa: PLC0415

    progress.start("planning", 3 if questions else 2)
    tried = tried_table(source, reading, choices)
    with tried.keywords("alphabeta", options) as found:
        del found["method"]
        plan = plan_table(tried.table, **found, max_error=max_error).to_dict()
        progress.advance(1)
        asked = plan_table(tried.table, **found, on=questions).to_dict() if questions else None
        shared = {name: value for name, value in found.items() if name in PLANE}
        plane = boundary_of(tried.table, **shared).to_dict()
    return {"plan": plan, "questions": asked, "plane": plane}


def trials_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], questions: list[str], method: str, points: list[dict[str, Any]],
) -> list[dict[str, Any]]:  # fmt: skip
    """A trial release at each of some points: what it promises, loses and answers."""
    del stamp
    from voile.studio.measuring import PartProgress, measured_trial  # noqa: PLC0415  (for tasks)

    tried = tried_table(source, reading, choices)
    progress.start("trying", len(points))
    found = []
    for part, options in enumerate(points, start=1):
        step = PartProgress(progress, part, len(points), "trial")
        found.append(
            measured_trial(
                tried, method, options, questions, step, seed=SEED, counts=method == "conjuncts"
            )
        )
    return found


def served_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], questions: list[str], epsilon: float, points: list[int],
) -> list[dict[str, Any]]:  # fmt: skip
    """A trial server for each number of answers: how far off the steward's questions are."""
    del stamp
    from voile.studio.measuring import served_trial  # noqa: PLC0415  (used in tasks alone)

    tried = tried_table(source, reading, choices)
    progress.start("asking trial servers", len(points))
    found = []
    for answers in points:
        found.append(served_trial(tried, answers, epsilon, questions, seed=SEED))
        progress.advance(1)
    return found


def need_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], questions: list[str], max_error: float,
) -> dict[str, Any]:  # fmt: skip
    """Which ε lets the steward's own questions be off by so much."""
    del stamp
    from voile.evaluate.planning import plan_marginals  # noqa: PLC0415

    progress.start("planning", 1)
    tried = tried_table(source, reading, choices)
    with tried.keywords("marginals", {}) as options:
        del options["method"]
        options["workload"] = questions  # the tables that they read, as the best method would
        found = plan_marginals(tried.table, on=questions, max_error=max_error, **options)
    return found.to_dict()


# ---------------------------------------------------------------------- the screen


def show(visit: Visit) -> Reply:
    """The questions, and what the method costs as far as it has been computed."""
    project = visit.project
    looked = visit.inspected()
    context: dict[str, Any] = {
        "looked": looked, "needs": NEEDS, "need": need_of(visit), "TITLES": TITLES,
        "chosen": described(project.method, project.options), "family": family(visit),
        "job": None, "trials": None, "wanted": None, "missing": [], "requirement": "k",
        "requirements": list(REQUIREMENTS), "sliders": [], "data": None, "plane": None,
        "name": looked.data["name"] if looked.ok else "", "sent": sent_points, "lines": lines_of,
        "rises": rises,
        "percent": per_cent, "advice": listed_changes, "questions": visit.questions,
        "unread": visit.readable(project.questions)[1], "server": server_address(visit),
    }  # fmt: skip
    if not looked.ok:
        return ScreenPage("promise.html", context, [plan_call(visit)])
    context |= PANELS[context["family"]](visit)
    return ScreenPage("promise.html", context, calls_of(visit, context["family"]))


def need_of(visit: Visit) -> int:
    """The answer to the questions, from 1; by the method, where none was answered."""
    if visit.project.need:
        return visit.project.need
    method = visit.project.method
    return next((n for n, one in enumerate(NEEDS, 1) if one.get("method") == method), 0)


def family(visit: Visit) -> str:
    """Which kind of promise is chosen: what its slider is of."""
    if visit.project.need in (1, 2):
        return ("survey", "server")[visit.project.need - 1]
    method = visit.project.method
    if method in CLASS_METHODS:
        return "classes"
    return {"alphabeta": "view", "conjuncts": "counts"}.get(method, "epsilon")


def comparison(visit: Visit) -> Job:
    """The comparison of all methods."""
    project = visit.project
    job = visit.work(
        "promise.compare", title="Comparing methods", **task_arguments(visit),
        questions=visit.questions, epsilon=project.planned,
    )  # fmt: skip
    if job.ok:
        visit.open.note_look("how far a trial of each method was off on the table")
    return job


def trials(visit: Visit, method: str, points: Sequence[dict[str, Any]], title: str) -> Job:
    """Trial releases at some points; to see how far they are off is a look."""
    visit.open.note_look(f"how far trials of {described(method, {})} were off on the table")
    return visit.work(
        "promise.trials", title=title, **task_arguments(visit), questions=visit.questions,
        method=method, points=list(points),
    )  # fmt: skip


def epsilon_panel(visit: Visit) -> dict[str, Any]:
    """The slider for ε, all methods, and one's own questions."""
    project, job = visit.project, comparison(visit)
    found: dict[str, Any] = {"job": job}
    made: list[Any] = []
    if visit.questions:
        chosen = float(project.options.get("epsilon", 1.0))
        places = [FEW_EPSILONS] if chosen in FEW_EPSILONS else [FEW_EPSILONS, (chosen,)]
        jobs = [trials(visit, project.method, [{"epsilon": e} for e in some],
                       "Asking your questions of trial releases") for some in places]  # fmt: skip
        found["trials"], made = of_all(jobs)
    if project.max_error is not None:
        found["wanted"] = wanted(visit, job)
    if not job.ok:
        return found
    points = epsilon_points(job.data, project.method)
    if made:
        points = question_cells(points, made)
    at = nearest(points, project.options.get("epsilon", 1.0))
    slider = {"id": "epsilon", "label": "ε, the strength of the promise", "points": points,
              "at": at, "low": "stronger promise", "high": "smaller error"}  # fmt: skip
    return found | {
        "data": job.data, "sliders": [slider],
        "chart": curve_chart(points, at, title="ε", most=job.data["most_useful_error"]),
    }  # fmt: skip


def of_all(jobs: Sequence[Job]) -> tuple[Job, list[Any]]:
    """The job that a page waits for, and what those have found that have ended."""
    waiting = next((job for job in jobs if not job.ok), jobs[-1])
    return waiting, [one for job in jobs if job.ok for one in job.data]


def wanted(visit: Visit, job: Job) -> dict[str, Any]:
    """Which ε gives the error that was asked for: of one's questions, or of counts that matter."""
    project = visit.project
    error = project.max_error
    if visit.questions:
        asked = visit.work(
            "promise.need", title=f"Finding the ε for ± {error:g}", **task_arguments(visit),
            questions=visit.questions, max_error=error,
        )  # fmt: skip
        epsilon = asked.data["needed"]["epsilon"] if asked.ok else None
        return {"job": asked, "epsilon": epsilon, "of": "the numbers of your questions"}
    of = "a count that holds 1 % of the rows"
    if not job.ok:
        return {"job": None, "epsilon": None, "of": of}
    enough = [p["epsilon"] for p in job.data["by_epsilon"]
              if off_by(p, project.method) <= (error or 0)]  # fmt: skip
    return {"job": None, "epsilon": min(enough, default=None), "of": of}


def wanted_answers(job: Job, error: float) -> dict[str, Any]:
    """The most answers of a server that are off by so much: the place of its slider, and T."""
    few_enough = [
        (one["answers"], place)
        for place, one in enumerate(job.data["by_answers"])
        if one["off_by"] <= error
    ]
    answers, place = max(few_enough, default=(None, None))
    return {"job": None, "epsilon": None, "answers": answers, "place": place,
            "of": "every count, whatever its size"}  # fmt: skip


def off_by(at: Mapping[str, Any], method: str) -> float:
    """The error in people at an ε, of the method that is chosen, else of the best."""
    best: float = at["off_by"]
    return best if method == "auto" else float(at["each_off_by"].get(method, math.inf))


def view_panel(visit: Visit) -> dict[str, Any]:
    """Sliders for γ and for k = d·m/n, and the plane of what is possible."""
    project = visit.project
    options = view_options(project.options)
    job = visit.work(
        "promise.view", title="Planning a noisy view", **task_arguments(visit),
        questions=visit.questions, options=options, max_error=project.max_error,
    )  # fmt: skip
    if not job.ok:
        return {"job": job}
    sliders = [
        {"id": "posterior", "label": "γ: what a belief stays below", "low": "stronger promise",
         "high": "smaller error", **view_points(job.data, "posterior")},
        {"id": "prior-factor", "label": "k: beliefs are protected up to k·n/m",
         "low": "smaller error", "high": "stronger promise",
         **view_points(job.data, "prior_factor")},
    ]  # fmt: skip
    return {
        "job": job, "data": job.data, "sliders": sliders, "plane": plane_chart(job.data["plane"]),
        "chart": curve_chart(sliders[0]["points"], sliders[0]["at"], title="γ"),
    }  # fmt: skip


def view_options(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The promise of a noisy view: what was chosen, else where it begins."""
    found = {**VIEW, **chosen}
    if "prior_factor" in chosen:
        del found["prior"]
    return found


def class_panel(visit: Visit) -> dict[str, Any]:
    """A slider for k, ℓ or t, from real groupings."""
    project = visit.project
    if missing := missing_roles(visit):
        return {"missing": missing}
    kind = next((name for name in REQUIREMENTS if name in project.options), "k")
    values = REQUIREMENTS[kind]
    points = [required(kind, value) for value in values]
    job = trials(visit, project.method, points, "Grouping rows into classes")
    if not job.ok:
        return {"job": job, "requirement": kind}
    shown = class_points(job.data, kind)
    at = nearest(shown, project.options.get(kind, 10 if kind == "k" else values[0]))
    label = {"k": "k: so many rows look alike", "l": "ℓ: so many values in every class",
             "t": "t: how far a class may be from all rows"}[kind]  # fmt: skip
    slider = {"id": kind, "label": label, "points": shown, "at": at,
              "low": "stronger promise" if kind == "t" else "smaller loss",
              "high": "smaller loss" if kind == "t" else "stronger promise"}  # fmt: skip
    return {"job": job, "data": job.data, "requirement": kind, "sliders": [slider],
            "chart": curve_chart(shown, at, title=kind, y="information loss")}  # fmt: skip


def required(kind: str, value: float) -> dict[str, Any]:
    """The options that ask for so much; k is a whole number."""
    return {kind: int(value) if kind == "k" else value}


def count_panel(visit: Visit) -> dict[str, Any]:
    """A slider for δ, by which log-odds may rise."""
    options = [{"direct": True, "delta": rise} for rise in RISES]
    job = trials(visit, "conjuncts", options, "Trying tables of counts")
    if not job.ok:
        return {"job": job}
    points = count_points(job.data)
    at = nearest(points, visit.project.options.get("delta", 1.0))
    slider = {"id": "delta", "label": "δ: how far the log-odds of a belief may rise",
              "points": points, "at": at, "low": "stronger promise",
              "high": "smaller error"}  # fmt: skip
    return {"job": job, "data": job.data, "sliders": [slider],
            "chart": curve_chart(points, at, title="δ")}  # fmt: skip


def server_panel(visit: Visit) -> dict[str, Any]:
    """A slider for T, the number of answers; the server itself is begun elsewhere."""
    project, job = visit.project, comparison(visit)
    found: dict[str, Any] = {"job": job}
    made: list[Any] = []
    if visit.questions:
        chosen = project.answers
        places = [FEW_ANSWERS] if chosen in FEW_ANSWERS else [FEW_ANSWERS, (chosen,)]
        visit.open.note_look("how far a trial server's answers to your questions were off")
        found["trials"], made = of_all([served(visit, some) for some in places])
    if not job.ok:
        return found
    points = answer_points(job.data)
    if made:
        points = question_cells(points, made, "answers")
    if project.max_error is not None:
        found["wanted"] = wanted_answers(job, project.max_error)
    at = nearest(points, project.answers)
    slider = {"id": "answers", "label": "T: how many answers the server gives", "points": points,
              "at": at, "low": "smaller error", "high": "more answers"}  # fmt: skip
    return found | {"data": job.data, "sliders": [slider],
                    "chart": curve_chart(points, at, title="T")}  # fmt: skip


def served(visit: Visit, answers: Sequence[int]) -> Job:
    """Trial servers, to which the steward's own questions are put."""
    return visit.work(
        "promise.served", title="Asking your questions of trial servers", **task_arguments(visit),
        questions=visit.questions, epsilon=visit.project.planned, points=list(answers),
    )  # fmt: skip


def server_values(visit: Visit) -> dict[str, str]:
    """What the form of the Servers screen begins with: the table, T, and the promise here."""
    project = visit.project
    return {"project": visit.open.name, "queries": str(project.answers), "promise": "epsilon",
            "epsilon": f"{project.planned:g}", "noise": SERVER_NOISE}  # fmt: skip


def server_address(visit: Visit) -> str:
    """Where the server is set up that was chosen here."""
    return f"/servers?{urlencode(server_values(visit))}"


PANELS: Mapping[str, Callable[[Visit], dict[str, Any]]] = {
    "epsilon": epsilon_panel, "view": view_panel, "classes": class_panel, "counts": count_panel,
    "server": server_panel, "survey": lambda _: {},
}  # fmt: skip


# ---------------------------------------------------------------------- calls


def plan_call(visit: Visit) -> ShownCall:
    """The comparison as a command."""
    project = visit.project
    options = publish_options(project, visit.column_names(), method="auto", options={})
    options |= {"on": visit.questions} if visit.questions else {}
    options |= {"epsilon": project.planned} if project.planned != 1 else {}
    options |= declared_file(visit)
    return ShownCall("plan", "voile.evaluate.planning.compare_methods", project.source,
                project.reading, options=options,
                imports="import voile.evaluate.planning")  # fmt: skip


def view_call(visit: Visit) -> ShownCall:
    """The plan of a noisy view as a command."""
    project = visit.project
    options = publish_options(
        project, visit.column_names(), method="alphabeta", options=view_options(project.options)
    )
    del options["method"]
    options |= {"on": visit.questions} if visit.questions else {}
    options |= declared_file(visit)
    options |= {} if project.max_error is None else {"max_error": project.max_error}
    return ShownCall("plan", "voile.evaluate.planning.plan_table", project.source, project.reading,
                options=options, imports="import voile.evaluate.planning")  # fmt: skip


def declared_file(visit: Visit) -> dict[str, str]:
    """The option that names the codebook, where the project declares one."""
    file = shown_schema(visit.open, visit.column_names(), visit.studio.folder)
    return {"schema": file} if file else {}


def calls_of(visit: Visit, kind: str) -> list[ShownCall]:
    """The plan that the screen shows, and publishing or serving as it is chosen."""
    if kind == "survey":
        return [plan_call(visit)]
    if kind == "server":
        named = {**servers.DEFAULTS, **server_values(visit), "project": visit.open.path.name}
        return [plan_call(visit), servers.begin_call(AreaVisit(visit.studio), named)]
    publishing = publish_call(visit.project, visit.column_names(), **declared_file(visit))
    if kind == "view":
        return [view_call(visit), publishing]
    return [publishing] if kind in ("classes", "counts") else [plan_call(visit), publishing]


# ---------------------------------------------------------------------- actions


def answer(visit: Visit) -> Reply:
    """Take the answer to the questions: it names a method."""
    try:
        need = NEEDS[int(visit.form.get("need")) - 1]
    except (ValueError, IndexError):
        raise UsageError("no question was answered", hint="choose the first that is true") from None
    number, method = NEEDS.index(need) + 1, need.get("method")
    if method in CLASS_METHODS:
        check_rows_are_people(visit.project)
    if method is None or method == visit.project.method:
        visit.change(need=number)
    else:
        visit.change(need=number, method=method, options=FIRST_OPTIONS.get(method, {}))
    return show(visit)


FIRST_OPTIONS: Mapping[str, dict[str, Any]] = {
    "mondrian": {"k": 10},
    "alphabeta": dict(VIEW),
    "conjuncts": {"direct": True, "delta": 1.0},
}
"""Where a method begins."""


def choose(visit: Visit) -> Reply:
    """Save where a slider was let go."""
    slider, points = visit.form.get("slider"), {}
    page = show(visit)
    if isinstance(page, ScreenPage):
        points = {one["id"]: one["points"] for one in page.context["sliders"]}
    found: Sequence[SliderPoint] = points.get(slider, ())
    try:
        point = found[int(visit.form.get(slider))]
    except (ValueError, IndexError):
        raise UsageError("there is no such place on the slider", hint="drag it again") from None
    if slider == "answers":
        visit.change(answers=point.options["answers"])
    else:
        kept = {} if slider in REQUIREMENTS else visit.project.options
        if slider == "prior-factor":
            kept = {name: value for name, value in kept.items() if name != "prior"}
        visit.change(options={**kept, **point.options})
    return show(visit)


def choose_method(visit: Visit) -> Reply:
    """Take one of the methods that keep the same promise."""
    method = visit.form.get("method")
    if method not in (*EPSILON_METHODS, "alphabeta"):
        raise UsageError(f"{method!r} is not among the methods", hint="choose one that is listed")
    options = visit.project.options if method in EPSILON_METHODS else FIRST_OPTIONS[method]
    need = 5 if method == "alphabeta" else 6
    visit.change(method=method, options=options, need=need)
    return show(visit)


def require(visit: Visit) -> Reply:
    """Ask classes for k, ℓ or t."""
    kind = visit.form.get("requirement")
    if kind not in REQUIREMENTS:
        raise UsageError(f"{kind!r} is no requirement here", hint="choose k, l or t")
    value = REQUIREMENTS[kind][2]
    visit.change(options=required(kind, value))
    return show(visit)


def ask(visit: Visit) -> Reply:
    """Keep the questions that matter, one on each line."""
    lines = [line.strip().rstrip(";") for line in visit.form.get("questions").splitlines()]
    asked = list(dict.fromkeys(line for line in lines if line))
    if len(asked) > MOST_QUESTIONS:
        raise UsageError(f"{len(asked)} questions are too many", hint=f"{MOST_QUESTIONS} at most")
    for line in asked:
        if len(line) > LONGEST_QUESTION or not line.lower().startswith(("select", "with")):
            raise UsageError(
                f"{line[:60]!r} is not a question in SQL", hint="such as select count(*) from …"
            )
    for wrong in visit.readable(asked)[1]:
        if wrong["sql"] not in visit.project.questions:
            # What was typed stays in its field, to be mended there.
            raise UsageError(wrong["why"], hint=wrong["hint"])
    visit.change(questions=asked)
    return show(visit)


def set_error(visit: Visit) -> Reply:
    """How far counts may be off, backwards to a promise; nothing forgets it."""
    text = visit.form.get("max_error")
    if not text:
        visit.change(max_error=None)
        return show(visit)
    try:
        error = read_number(text)
    except ValueError:
        error = 0.0
    if not 0 < error < 1e15:
        raise UsageError(f"{text!r} is no error", hint="give a number of people, such as 100")
    visit.change(max_error=error)
    return show(visit)


def set_epsilon(visit: Visit) -> Reply:
    """Take an ε that was found, and compare methods there."""
    try:
        epsilon = float(visit.form.get("epsilon"))
    except ValueError:
        epsilon = 0.0
    if not 0 < epsilon <= 100:
        raise UsageError("there is no such ε", hint="give a number above 0, such as 0.5")
    visit.change(options={**visit.project.options, "epsilon": epsilon}, planned=epsilon)
    return show(visit)


def set_strongest(visit: Visit) -> Reply:
    """Take one of the strongest noisy views with the error that is allowed."""
    page = show(visit)
    data = page.context["data"] if isinstance(page, ScreenPage) else None
    strongest = (data["plan"]["strongest"] or {}) if data and family(visit) == "view" else {}
    found = strongest.get(visit.form.get("which"))
    if found is None:
        raise UsageError("there is no such promise", hint="ask again what gives that error")
    kept = {name: value for name, value in visit.project.options.items() if name != "prior"}
    visit.change(options={**kept, **{name: found[name] for name in ("prior_factor", "posterior")}})
    return show(visit)


def advise(visit: Visit) -> Reply:
    """Apply a change that would help, where nothing of use can be had."""
    apply_change(visit)
    return show(visit)


SCREEN = Screen(
    "promise",
    "Promise",
    "Choose",
    "First say which kind of promise you need: six questions find the method. Then choose how "
    "strong it is. A small ε lets nobody learn much about a person, and makes every count less "
    "exact. The slider shows both at once; nothing is published here.",
    show,
    actions={
        "answer": answer, "choose": choose, "method": choose_method, "require": require,
        "ask": ask, "error": set_error, "epsilon": set_epsilon, "strongest": set_strongest,
        "advise": advise,
    },
)  # fmt: skip
