"""Below the paper's frontier: better partitions, noise, and what no bucketization can go below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from voile.evaluate.frontier import certify
from voile.reproduce import look
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.kdd09 import study
from voile.reproduce.kdd09.study import BUCKETIZED, CLOSENESS, P_TITLE, U_TITLE, Points, as_columns
from voile.reproduce.papers import KDD09
from voile.reproduce.verdict import Check, Claim, Number, Sample

PLACES = (0.03, 0.05, 0.075, 0.1)
"""P_losses at which the optimum is known from an independent implementation."""
OPTIMUM = (0.0084, 0.0037, 0.0011, 0.0003)
MONDRIAN = (0.0297, 0.0230, 0.0103, 0.0054)
INFORMATION = (0.0294, 0.0182, 0.0110, 0.0038)
SEARCHED = (0.0174, 0.0112, 0.0046, 0.0013)
"""Of free shapes, by a local search of another kind."""
READING = 0.00005
CERTIFIED = (0.005, 0.01, 0.02, *PLACES)
QUICK_CERTIFIED = PLACES[:2]
CUTS, SHAPES = "t-closeness, information cuts", "t-closeness, free shapes"
VIEWS, ROWS = "noisy views (αβ)", "perturbed rows"
MARGINALS = "2026: noisy marginals"
TRIED = (0.01, 0.02, *PLACES, 0.15, 0.2, 0.3)
SHAPED = (0.02, *PLACES, 0.15)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 6.0)
POSTERIORS, RETENTIONS = (0.1, 0.2, 0.5, 0.8, 0.95), (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
TOP = 0.045
END, STEPS = 0.2, 401
"""Where the border is drawn, and at how many places."""


def optimum(p_losses: Sequence[float]) -> dict[str, Any]:
    """The least U_loss of any bucketization: the value reached, and a lower bound."""
    found = certify(study.subject().populations, list(p_losses))
    return {
        "points": [
            {"p_loss": p.p_loss, "u_loss": p.u_loss, "lower": p.lower} for p in found.points
        ],
        "border": [[p_loss, found.lower(p_loss)] for p_loss in np.linspace(0, END, STEPS).tolist()],
    }


def parts(run: Run) -> list[Part]:
    """The paper's curves, other partitions, noise, and the certified optimum."""
    shaped = (PLACES[1],) if run.quick else SHAPED
    posteriors = POSTERIORS[1:4] if run.quick else POSTERIORS
    retentions = RETENTIONS[1::2] if run.quick else RETENTIONS
    return [
        *study.curve_parts(),
        part("mondrian", "t", TRIED),
        part("information", "t", TRIED),
        Part(optimum, {"p_losses": list(QUICK_CERTIFIED if run.quick else CERTIFIED)}),
        part("alphabeta", "posterior", posteriors),
        part("retention", "retention", retentions),
        part("marginals", "epsilon", EPSILONS[2:3] if run.quick else EPSILONS),
        *(part("freeshape", "t", (t,)) for t in shaped),
    ]


def part(method: str, name: str, values: Sequence[float]) -> Part:
    """The losses of one method at several values of one parameter."""
    return Part(study.losses, {"method": method, "options": [{name: value} for value in values]})


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Compare partitions and noise with the t-closeness line and with the optimum."""
    named, _ = study.curves(results)
    mondrian, cuts, certified, views, rows, marginals = results[6:12]
    curves = {
        CLOSENESS: study.shown_as(mondrian, BUCKETIZED),
        CUTS: study.shown_as(cuts, BUCKETIZED),
        SHAPES: [point for part in results[12:] for point in part],
        VIEWS: views,
        ROWS: rows,
        MARGINALS: marginals,
    }
    others = [p for points in named.values() for p in study.shown_as(points, BUCKETIZED)]
    checks = (
        *of_optimum(certified), *of_partitions(curves), below_the_line(curves, certified),
        *of_shapes(curves), nothing_below(others, curves, certified),
    )  # fmt: skip
    columns = as_columns(curves, ("value", "p_loss", "u_loss"))
    points = certified["points"]
    return Finding(
        checks=checks,
        tables={"": columns,
                "certified": {key: [point[key] for point in points] for key in points[0]}},
        picture=lambda: drawn(curves, others, certified),
        title="The efficient frontier lies far below the t-closeness line",
        subtitle=["Adult; classes are bucketized. Pale: Figure 2(a)'s requirements. Grey: where no "
                  "bucketization can be, by a dual bound.",
                  "P_loss of noise is what Bayes' rule makes of it, so that bound is not one for "
                  "noise. U_loss is drawn by its square root."],
    )  # fmt: skip


def of_optimum(certified: Mapping[str, Any]) -> list[Check]:
    """The certified least U_loss beside an independent implementation's."""
    known = dict(zip(PLACES, OPTIMUM, strict=True))
    return [
        Number(f"least U_loss at P_loss {point['p_loss']:g}", None, Sample.of(point["u_loss"]),
               READING, known[point["p_loss"]])
        for point in certified["points"]
        if point["p_loss"] in known
    ]  # fmt: skip


def of_partitions(curves: Mapping[str, Points]) -> list[Check]:
    """U_loss of t-closeness at t = .03, .05, .075, .1, by Mondrian and by information cuts."""
    return [
        Number(f"U_loss of {name}, t = {t:g}", None,
               Sample.of(study.at(curves[name], t, BUCKETIZED)["u_loss"]), READING, right)
        for name, known in ((CLOSENESS, MONDRIAN), (CUTS, INFORMATION))
        for t, right in zip(PLACES, known, strict=True)
    ]  # fmt: skip


def below_the_line(curves: Mapping[str, Points], certified: Mapping[str, Any]) -> Check:
    """Whether the optimum lies below the t-closeness line, as the paper supposes."""
    times = study.times_the_line(certified["points"], curves[CLOSENESS])
    return Claim(
        "the efficient frontier",
        "the efficient frontier should be somewhere below the t-closeness line",
        f"the certified optimum has {min(times):.0%} to {max(times):.0%} of the line's U_loss",
        max(times) < 1,
    )


def of_shapes(curves: Mapping[str, Points]) -> list[Check]:
    """Whether information cuts and free shapes lose less than Mondrian's partitions."""
    lower = {}
    for name in (CUTS, SHAPES):
        times = study.times_the_line(curves[name], curves[CLOSENESS])
        better = sum(t < 1 for t in times)
        text = f"below its line at {better} of {len(times)}, with {min(times):.0%} to "
        lower[name] = (better, len(times), f"{text}{max(times):.0%} of its U_loss")
    known = dict(zip(PLACES, SEARCHED, strict=True))
    shapes = [(p["u_loss"], known[p["value"]]) for p in curves[SHAPES] if p["value"] in known]
    won = sum(ours < theirs for ours, theirs in shapes)
    return [
        Claim("information cuts against Mondrian", "(ours)", lower[CUTS][2],
              2 * lower[CUTS][0] > lower[CUTS][1]),
        Claim("free shapes against Mondrian", "(ours)", lower[SHAPES][2],
              lower[SHAPES][0] == lower[SHAPES][1]),
        Claim("free shapes against another search", "(ours)",
              f"lower at {won} of {len(shapes)}: {'; '.join(f'{a:.4f}, {b}' for a, b in shapes)}",
              2 * won > len(shapes)),
    ]  # fmt: skip


def nothing_below(
    others: Points, curves: Mapping[str, Points], certified: Mapping[str, Any]
) -> Check:
    """Whether every bucketization that was measured is above the bound."""
    measured = [*others, *(p for name in (CLOSENESS, CUTS, SHAPES) for p in curves[name])]
    below = [p for p in measured if p["u_loss"] < bound(certified, p["p_loss"])]
    return Claim(
        "nothing is below the certified bound", "(ours)",
        f"{len(below)} of {len(measured)} bucketizations are",
        not below,
    )  # fmt: skip


def bound(certified: Mapping[str, Any], p_loss: float) -> float:
    """The lower bound at this P_loss: that of the next larger P_loss, which holds too."""
    return next((lower for at, lower in certified["border"] if at >= p_loss), 0.0)


def drawn(curves: Mapping[str, Points], others: Points, certified: Mapping[str, Any]) -> Any:
    """All curves, the paper's releases behind them, and the region that is impossible."""
    alt = look.altair()
    shown = {n: [p for p in points if p["u_loss"] <= TOP] for n, points in curves.items()}
    columns = as_columns({n: points for n, points in shown.items() if points}, ("p_loss", "u_loss"))
    x = alt.X("p_loss:Q", title=P_TITLE, scale=alt.Scale(domain=[0, 0.65], nice=False),
              axis=alt.Axis(tickCount=7, format="~g"))  # fmt: skip
    y = alt.Y("u_loss:Q", title=U_TITLE, scale=alt.Scale(type="sqrt", domain=[0, TOP], nice=False),
              axis=alt.Axis(values=[0, 0.0005, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04],
                            format="~g"))  # fmt: skip
    border = [{"p_loss": p, "u_loss": u, "zero": 0.0} for p, u in certified["border"] if u > 0]
    ground = look.chart(border).encode(x=x, y=y)
    pale = look.chart(others).encode(x=x, y=y)
    return alt.layer(
        ground.mark_area(color="#E3E6EA", opacity=1).encode(y2="zero:Q"),
        ground.mark_line(color=look.SOFT, strokeWidth=1.6),
        pale.mark_circle(size=34, color=look.SOFT, opacity=0.35),
        *lines(alt, columns, x, y),
        words(x, y),
    ).properties(width=780, height=460)


def lines(alt: Any, columns: Mapping[str, Sequence[Any]], x: Any, y: Any) -> list[Any]:
    """A line and points for each curve."""
    names = list(dict.fromkeys(columns["curve"]))
    named = (CLOSENESS, CUTS, SHAPES, VIEWS, ROWS, MARGINALS)
    colours = {n: look.METHOD_COLOURS[i] for n, i in zip(named, (2, 0, 1, 3, 4, 5), strict=True)}
    colour = alt.Color(
        "curve:N",
        title=None,
        scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
        legend=alt.Legend(orient="top", columns=3, labelLimit=300, symbolType="stroke",
                          symbolSize=400),
    )  # fmt: skip
    base = look.chart(look.records(columns)).encode(x=x, y=y, color=colour)
    return [base.mark_line(strokeWidth=2.5), base.mark_point(filled=True, size=46, opacity=1)]


def words(x: Any, y: Any) -> Any:
    """The label of the impossible region."""
    base = look.chart([{"p_loss": 0.004, "u_loss": 0.0004}]).encode(x=x, y=y)
    said = ["no bucketization", "can be here"]
    return base.mark_text(text=said, align="left", fontSize=11, color=look.SOFT)


FRONTIER = Figure(
    name="kdd09-frontier",
    paper=KDD09,
    what="Figure 2(a)'s axes with better partitions, noise and the optimum",
    parts=parts,
    conclude=conclude,
)
