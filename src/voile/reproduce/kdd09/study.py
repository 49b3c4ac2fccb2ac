"""Section 5's table and parameters, and the releases that are measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from voile.evaluate.frontier import Candidate, Showing, Subject, measure, read_subject, showings
from voile.reproduce import look
from voile.reproduce.figure import Columns, Part

TABLE = "dataset:adult/frontier"
QI = ("age", "workclass", "education", "marital_status", "race", "sex")
SENSITIVE = "occupation"

K = (10, 50, 100, 200, 500, 1000, 2000, 5000)
L = (3.0, 3.5, 4.0, 4.25, 4.5, 4.75, 5.0, 5.5)
T = (0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
DELTA = (1.0, 1.2, 1.4, 1.5, 1.7, 1.9, 2.0, 2.1)
SMALL_T = (0.01, 0.015, 0.02, 0.03, 0.05)
"""Ours: so that the line of t-closeness reaches as far to the left as the others."""

K_ANONYMITY, L_DIVERSITY, CLOSENESS = "k-anonymity", "ℓ-diversity", "t-closeness"
LITERAL, IGNORING = "δ, all values in each class", "δ, absent values ignored"
"""Semantic privacy's ratio is infinite for a value that a class lacks: it is forbidden, or not."""
REQUIREMENTS: dict[str, tuple[dict[str, Any], ...]] = {
    K_ANONYMITY: tuple({"k": k} for k in K),
    L_DIVERSITY: tuple({"l": l} for l in L),  # noqa: E741  (the paper's letter)
    CLOSENESS: tuple({"t": t} for t in T),
    LITERAL: tuple({"semantic": d, "absent": "forbidden"} for d in DELTA),
    IGNORING: tuple({"semantic": d, "absent": "ignored"} for d in DELTA),
}
"""Each curve's eight releases, as options of publishing."""
GENERALIZED, BUCKETIZED = "generalize", "bucketize"

Points = list[dict[str, Any]]
"""Releases with `value` (of the parameter), `recode`, `p_loss`, `u_loss` and `classes`."""


@lru_cache(maxsize=1)
def subject() -> Subject:
    """The paper's table with its quasi-identifiers and sensitive attribute."""
    return read_subject(TABLE, source=TABLE, sensitive=SENSITIVE, qi=QI)


@lru_cache(maxsize=64)
def classes_of(options: str) -> list[Showing]:
    """Mondrian's classes; options are given as JSON, so that they are found once."""
    return showings(subject(), Candidate("mondrian", json.loads(options)))


def losses(method: str, options: Sequence[Mapping[str, Any]]) -> Points:
    """P_loss and U_loss of releases, each way that their classes can be shown."""
    return [
        {
            "value": next(iter(each.values()), None),
            "recode": point.recode,
            "p_loss": point.p_loss,
            "u_loss": point.u_loss,
            "classes": point.classes,
        }
        for each in options
        for point in measure(subject(), Candidate(method, dict(each)))
    ]


def curve_parts() -> list[Part]:
    """One piece of work for each requirement, in the order of REQUIREMENTS, then our smaller t."""
    curves = [*REQUIREMENTS.values(), tuple({"t": t} for t in SMALL_T)]
    return [Part(losses, {"method": "mondrian", "options": list(of)}) for of in curves]


def curves(results: Sequence[Points]) -> tuple[dict[str, Points], Points]:
    """What `curve_parts` gave: the paper's curves by name, and our smaller t."""
    named = dict(zip(REQUIREMENTS, results, strict=False))
    return named, results[len(REQUIREMENTS)]


def shown_as(points: Iterable[Mapping[str, Any]], recode: str) -> Points:
    """The releases that show their classes in this way."""
    return [dict(point) for point in points if point["recode"] == recode]


def at(points: Points, value: float, recode: str) -> dict[str, Any]:
    """The release with this value of its parameter."""
    return next(p for p in points if p["value"] == value and p["recode"] == recode)


def times_the_line(points: Points, line: Points, loss: str = "u_loss") -> list[float]:
    """The ratio of each point's loss to the line's at the same P_loss.

    To the right of the line its last point counts, as that has no more P_loss; points to its left
    cannot be compared and are left out.
    """
    ordered = sorted((p["p_loss"], p[loss]) for p in line)
    places, heights = zip(*ordered, strict=True)
    compared = [p for p in points if p["p_loss"] >= places[0]]
    return [float(p[loss] / np.interp(p["p_loss"], places, heights)) for p in compared]


# ------ what all pictures of this paper share: curves on two axes, and what is printed beside them


P_TITLE = "P_loss: how far a belief about one person moves"
U_TITLE = "U_loss: error of estimates for large populations"


def as_columns(curves: Mapping[str, Points], names: Sequence[str]) -> dict[str, list[Any]]:
    """Points of all curves, one below the other, as a table with these columns."""
    rows = [(curve, point) for curve, points in curves.items() for point in points]
    return {
        "curve": [curve for curve, _ in rows],
        **{name: [point[name] for _, point in rows] for name in names},
    }


def curves_chart(columns: Columns, y: str, title: str, **options: Any) -> Any:
    """A line for each curve, over P_loss."""
    usual: dict[str, Any] = {
        "width": 760, "height": 420, "domains": ((0, 0.6), ()), "ticks": (7, 6),
        "formats": ("~g", "~g"),
    }  # fmt: skip
    return look.lines(columns, "p_loss", y, "curve", titles=(P_TITLE, title), **(usual | options))


def mark(x: tuple[str, float], y: tuple[str, float], text: str, **place: Any) -> Any:
    """A hollow point with words: what the paper prints."""
    alt = look.altair()
    base = look.chart([{x[0]: x[1], y[0]: y[1]}]).encode(x=alt.X(f"{x[0]}:Q"), y=alt.Y(f"{y[0]}:Q"))
    words = {"align": "left", "dx": 10, "dy": 0, "fontSize": 13, "color": look.INK} | place
    return alt.layer(
        base.mark_point(filled=False, size=110, color=look.INK, strokeWidth=2, opacity=1),
        base.mark_text(text=text, **words),
    )


def values(points: Points, y: str, letter: str, **place: Any) -> Any:
    """The parameters of releases, beside their points."""
    alt = look.altair()
    rows = [{"p_loss": p["p_loss"], y: p[y], "text": f"{letter} = {p['value']:g}"} for p in points]
    words = {"align": "left", "dx": 7, "dy": -9, "fontSize": 12, "color": look.SOFT} | place
    base = look.chart(rows).mark_text(**words)
    return base.encode(x=alt.X("p_loss:Q"), y=alt.Y(f"{y}:Q"), text="text:N")


def cloud(points: Sequence[Mapping[str, float]], x: str, y: str) -> Any:
    """Many pale points, behind the others."""
    alt = look.altair()
    return (
        look.chart([{x: p[x], y: p[y]} for p in points])
        .mark_circle(size=22, color=look.SOFT, opacity=0.28)
        .encode(x=alt.X(f"{x}:Q"), y=alt.Y(f"{y}:Q"))
    )
