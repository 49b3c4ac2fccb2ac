"""The places of a slider: what each of them means, in words that Python wrote.

The page carries all places, so that dragging needs no request and no arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

LEVELS = ("all selections", "selections that count 100 or more",
          "selections that count 1,000 or more")  # fmt: skip


@dataclass(frozen=True)
class SliderPoint:
    """One place: where it is, what is chosen there, and what the page says of it."""

    x: float
    label: str
    options: Mapping[str, Any]
    cells: Mapping[str, str]
    series: Mapping[str, float] = field(default_factory=dict)
    """Errors by the name of their line in the chart."""
    bad: bool = False
    """Whether nothing would be published there."""

    def shown(self) -> dict[str, Any]:
        """What the script needs."""
        return {"x": self.x, "label": self.label, "cells": dict(self.cells), "bad": self.bad}


def per_cent(share: float | None) -> str:
    """A share as people read it."""
    if share is None:
        return "unknown"
    text = f"{share:.2%}" if share < 0.001 else f"{share:.1%}" if share < 1 else f"{share:,.0%}"
    return text.replace("%", " %")


def people(number: float | None) -> str:
    """An error in people."""
    if number is None:
        return "unknown"
    return f"± {number:,.0f}" if number >= 10 else f"± {number:.2g}"


def both(number: float | None, share: float | None) -> str:
    """An error in people, and in per cent of the number that is asked for."""
    return people(number) if share is None else f"{people(number)}, {per_cent(share)}"


def sent_points(points: Sequence[SliderPoint]) -> str:
    """All places as the content of an attribute."""
    return json.dumps([point.shown() for point in points])


def lines_of(points: Sequence[SliderPoint]) -> list[str]:
    """The names of the lines of the chart."""
    return list(dict.fromkeys(name for point in points for name in point.series))


def rises(points: Sequence[SliderPoint], name: str) -> bool:
    """Whether the line of a method goes up anywhere."""
    known = [point.series[name] for point in points if point.series.get(name) is not None]
    return any(after > before for before, after in pairwise(known))


def nearest(points: Sequence[SliderPoint], x: float) -> int:
    """The place nearest to a value; the first where there is none."""
    distances = [abs(point.x - x) for point in points]
    return distances.index(min(distances)) if distances else 0


def epsilon_points(data: Mapping[str, Any], method: str = "auto") -> list[SliderPoint]:
    """Of the comparison of methods, for each ε: of the method that is chosen, else of the best."""
    found = []
    for one in data["by_epsilon"]:
        shown = one["method"] if method == "auto" else method
        error = one["errors"].get(shown)
        useful = error is not None and error <= data["most_useful_error"]
        cells = {
            "error": per_cent(error),
            "off": people(one["each_off_by"].get(shown)),
            "words": one["in_words"],
            "by": shown,
            "best": one["method"],
            "verdict": ""
            if useful
            else f"Nothing would be published here: counts of {shown} would be off by "
            f"more than {data['most_useful_error']:.0%}.",
        }
        cells |= {f"of-{name}": per_cent(error) for name, error in one["errors"].items()}
        found.append(
            SliderPoint(
                one["epsilon"], f"ε = {one['epsilon']:g}", {"epsilon": one["epsilon"]}, cells,
                one["errors"], not useful,
            )
        )  # fmt: skip
    return found


def question_cells(
    points: Sequence[SliderPoint], trials: Sequence[Mapping[str, Any]], name: str = "epsilon"
) -> list[SliderPoint]:
    """The same places, with what the trial nearest to each answers, and where that was made."""
    made = [(one["options"][name], one) for one in trials]
    sign = {"epsilon": "ε", "answers": "T"}[name]
    found = []
    for point in points:
        at, trial = min(made, key=lambda pair: abs(pair[0] - point.x))
        cells = {
            **point.cells,
            **asked_cells(trial, "" if at == point.x else f" at {sign} = {at:g}"),
        }
        found.append(replace(point, cells=cells))
    return found


def asked_cells(trial: Mapping[str, Any], where: str = "") -> dict[str, str]:
    """How far each question is off in a trial."""
    found = {}
    for number, one in enumerate(trial["asked"]):
        text = one["error"] or f"{people(one['stderr'])}{where}"
        if not one["error"] and one["relative"] is not None:
            size = "" if one["stderr"] is None else f"{people(one['stderr'])}, "
            text = f"{size}{per_cent(one['relative'])}{where}"
        found[f"question-{number}"] = text
    return found


def view_points(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Places and the present one of a slider of a noisy view: of `posterior` or `prior_factor`."""
    plan, asked = data["plan"], data["questions"]
    sign = "γ" if name == "posterior" else "k"
    curve = plan["curves"][name]
    mine = asked["curves"][name] if asked else [None] * len(curve)
    found = []
    for place, one in enumerate(curve):
        value = float(f"{one[name]:.4g}")
        errors = dict(zip(LEVELS, one["relative"], strict=False))
        cells = {f"{name}-{i}": per_cent(share) for i, share in enumerate(one["relative"])}
        cells |= {f"{name}-people-{i}": people(error) for i, error in enumerate(one["errors"])}
        own = mine[place] if place < len(mine) else None
        pairs = zip(own["errors"], own["relative"], strict=True) if own else ()
        cells |= {f"{name}-question-{i}": both(*pair) for i, pair in enumerate(pairs)}
        known = {level: error for level, error in errors.items() if error is not None}
        found.append(SliderPoint(value, f"{sign} = {value:g}", {name: value}, cells, known))
    return {"points": found, "at": nearest(found, plan[name])}


def class_points(data: Sequence[Mapping[str, Any]], kind: str) -> list[SliderPoint]:
    """Of real groupings, for each requirement."""
    sign = {"l": "ℓ"}.get(kind, kind)
    found = []
    for trial in data:
        value = trial["options"][kind]
        losses = trial["losses"] or {}
        cells = {
            "error": per_cent(losses.get("gen_iloss")),
            "size": f"{losses['average_class_size']:,.1f}" if losses else "–",
            "words": trial["words"],
            "verdict": trial["refused"],
            **asked_cells(trial),
        }
        series = {"information loss": losses["gen_iloss"]} if losses else {}
        refused = bool(trial["refused"])
        found.append(
            SliderPoint(value, f"{sign} = {value:g}", {kind: value}, cells, series, refused)
        )
    return found


def count_points(data: Sequence[Mapping[str, Any]]) -> list[SliderPoint]:
    """Of tables of counts, for each δ."""
    found = []
    for trial in data:
        felt, delta = trial["felt"] or {}, trial["options"]["delta"]
        cells = {
            "error": per_cent(felt.get("both")), "words": trial["words"],
            "verdict": trial["refused"], **asked_cells(trial),
        }  # fmt: skip
        lines = {"one column": felt.get("one"), "two columns": felt.get("two")}
        series = {name: error for name, error in lines.items() if error is not None}
        refused = bool(trial["refused"])
        found.append(SliderPoint(delta, f"δ = {delta:g}", trial["options"], cells, series, refused))
    return found


def answer_points(data: Mapping[str, Any]) -> list[SliderPoint]:
    """Of a server, for each number of answers."""
    return [
        SliderPoint(
            one["answers"], f"T = {one['answers']:,}", {"answers": one["answers"]},
            {"error": per_cent(one["expected_error"]), "off": people(one["off_by"])},
            {"an answer": one["expected_error"]},
            one["expected_error"] > data["most_useful_error"],
        )
        for one in data["by_answers"]
    ]  # fmt: skip
