"""Risk: how well people can be told apart in the table as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import voile
from voile.errors import UsageError
from voile.evaluate.risk import most_exposed, risk
from voile.evaluate.risk.page import facts, figure_cells, meaning, size_words
from voile.progress import Progress
from voile.studio.calls import ShownCall
from voile.studio.jobs import AT_ONCE
from voile.studio.pages import Form, Go, Reply, Screen, ScreenPage, Visit, read_number

THRESHOLD = 0.2
FEW, MANY = 3, 2
"""Columns of the sets that are looked at, and where there are more than `MOST_COLUMNS` to choose
from: triples of hundreds would take hours."""
MOST_COLUMNS = 60
SETS = 15
"""Sets of columns that are listed."""


def measure_task(
    progress: Progress,
    *,
    source: str,
    reading: dict[str, Any],
    stamp: list[Any],
    qi: list[str],
    sensitive: list[str],
    options: dict[str, Any],
) -> dict[str, Any]:
    """What `voile risk` says, in words too; and the rows that are found most easily."""
    del stamp
    progress.start("comparing rows", 2)
    table = voile.read(source, **reading)
    found = risk(table, qi=qi, sensitive=sensitive, **options)
    progress.advance(1)
    largest = options.get("largest", FEW)
    people = most_exposed(table, qi=qi, sensitive=sensitive, largest=largest)
    sizes = [{**group, "label": size_words(group["from"] or 1, group["to"])}
             for group in found.class_sizes() if group["rows"]]  # fmt: skip
    sets = sorted(found.unique_sets.sets, key=lambda one: -one.minimal)[:SETS]
    return {
        "headline": found.headline(),
        "k": found.k,
        "rows": found.rows,
        "threshold": found.threshold,
        "figures": [list(cell) for cell in figure_cells(found)],
        "facts": [[name, value, meaning(name)] for name, value in facts(found)],
        "sizes": sizes,
        "sets": [one.to_dict() for one in sets if one.minimal],
        "largest": found.unique_sets.largest,
        "people": [one.to_dict() for one in people],
        "notes": list(found.notes),
    }


def show(visit: Visit) -> Reply:
    """The report, or how far it is."""
    job, project = visit.inspected(), visit.project
    context: dict[str, Any] = {"job": job, "qi": [], "measured": None}
    if not job.ok:
        return ScreenPage("risk.html", context)
    names = [one["name"] for one in job.data["attributes"]]
    known = [name for name in names if name != project.person]
    qi = [name for name in known if project.roles.get(name) == "quasi-identifier"]
    sensitive = [name for name in known if project.roles.get(name) == "sensitive"]
    options = asked(visit.form)
    if len(qi) > MOST_COLUMNS:
        options["largest"] = MANY
    context |= {"qi": qi, "sensitive": sensitive, "threshold": options.get("threshold", THRESHOLD),
                "fraction": options.get("sampling_fraction", "")}  # fmt: skip
    if not qi:
        return ScreenPage("risk.html", context)
    measured = visit.work(
        "risk.measure", title="Measuring the risk", **visit.open.table_arguments(), qi=qi,
        sensitive=sensitive, options=options,
    ).wait(AT_ONCE)  # fmt: skip
    context["measured"] = measured
    if measured.ok:
        context |= {"found": measured.data, "chart": sizes_chart(measured.data)}
    return ScreenPage("risk.html", context, [risk_call(visit, qi, sensitive, options)])


def risk_call(
    visit: Visit, qi: Sequence[str], sensitive: Sequence[str], options: Mapping[str, Any]
) -> ShownCall:
    """The same as `voile risk`."""
    given: dict[str, Any] = {"qi": list(qi)}
    if sensitive:
        given["sensitive"] = list(sensitive)
    return ShownCall(
        "risk",
        "voile.evaluate.risk.risk",
        visit.project.source,
        visit.project.reading,
        options={**given, **options},
        imports="import voile\nimport voile.evaluate.risk",
    )


def sizes_chart(found: Mapping[str, Any]) -> dict[str, Any]:
    """Rows by the size of their class."""
    values = [{"size": group["label"], "rows": group["rows"], "classes": group["classes"],
               "place": place, "risky": group["from"] * found["threshold"] < 1}
              for place, group in enumerate(found["sizes"])]  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": 220,
        "data": {"values": values},
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "x": {"field": "size", "type": "nominal", "sort": {"field": "place"},
                  "title": "rows that share all quasi-identifiers",
                  "axis": {"labelAngle": 0, "labelOverlap": True, "grid": False}},
            "y": {"field": "rows", "type": "quantitative", "title": "rows"},
            "color": {"field": "risky", "type": "nominal", "legend": None,
                      "scale": {"domain": [True, False], "range": ["#c2571a", "#5f9a91"]}},
            "tooltip": [{"field": "size", "title": "class of"},
                        {"field": "classes", "title": "classes", "format": ","},
                        {"field": "rows", "title": "rows", "format": ","}],
        },
    }  # fmt: skip


def asked(form: Form) -> dict[str, Any]:
    """The chance above which rows count, and the share of the population that is in the table."""
    found: dict[str, Any] = {}
    for name, what in (("threshold", "the chance"), ("sampling_fraction", "the share")):
        text = form.get(name)
        if not text:
            continue
        try:
            value = read_number(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= 1:
            raise UsageError(f"{what} {text!r} is not above 0 and up to 1", hint="such as 0.2")
        found[name] = value
    return found


def choose(visit: Visit) -> Reply:
    """Measure with other limits; the address keeps them."""
    return Go(f"{visit.open.url}/risk?{urlencode(asked(visit.form))}")


SCREEN = Screen(
    "risk",
    "Risk",
    "Look",
    "If the table were given away as it stands, how many people could be found in it? Whoever "
    "knows the quasi-identifiers of a person looks for rows that match. Someone who is alone in a "
    "class is found for certain, and everything else in the row is learnt.",
    show,
    actions={"choose": choose},
)
