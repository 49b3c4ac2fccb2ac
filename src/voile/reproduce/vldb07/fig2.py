"""Figure 2: the estimate of every selection against its true count: FRAPP, αβ, and ours since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voile.reproduce.figure import Columns, Figure, Finding, Part, Run
from voile.reproduce.look import DENSITY, VERMILION, altair, beside, chart, records
from voile.reproduce.papers import VLDB07
from voile.reproduce.verdict import Check, Claim
from voile.reproduce.vldb07.adult import (
    BETTER,
    CELL,
    FRAPP,
    MARGINALS,
    MARGINALS_1,
    REFINED,
    TIGHT,
    measured,
)

PAPERS = (FRAPP, TIGHT)
SIDE = 460
LARGEST = 31_000
FAR, MEANINGFUL = 10, 0.5
"""Much better: the relative error is smaller by this factor. Meaningful: off by less than half.

FRAPP is off by about a tenth of large counts, so that a tenth as the limit is left to chance.
"""


def methods(run: Run) -> tuple[str, ...]:
    """The paper's, the planner's retention, and, where it may take a minute, models."""
    more = () if run.quick else (REFINED, MARGINALS, MARGINALS_1)
    return (*PAPERS, BETTER, *more)


def parts(run: Run) -> list[Part]:
    """One run of each method."""
    return [Part(measured, {"method": method, "seed": run.first}) for method in methods(run)]


def conclude(run: Run, results: Sequence[Any]) -> Finding:
    """Compare the methods' estimates with the true counts."""
    found = dict(zip(methods(run), results, strict=True))
    columns = cells_of(found)
    shares = ", ".join(f"{one['in_band_large']:.0%} ({name})" for name, one in found.items())
    return Finding(
        checks=checks({method: found[method] for method in PAPERS}),
        tables={"": columns},
        picture=lambda: clouds(columns, found),
        title="At the same (d, γ), αβ estimates lie far closer to the truth than FRAPP's",
        subtitle=[
            f"All {sum(found[FRAPP]['queries']):,} selections of up to three attributes of Adult; "
            "one run of each method.",
            f"Of those that count 1000 or more are within 500: {shares}.",
        ],
    )


def checks(found: dict[str, Any]) -> tuple[Check, ...]:
    """What the paper says of small and of large counts."""
    frapp, ours = found[FRAPP], found[TIGHT]
    return (
        Claim(
            "αβ is the better estimator",
            "the αβ algorithm provides much better estimates",
            f"within 500 where the truth is 1000 or more: {ours['in_band_large']:.0%} by αβ, "
            f"{frapp['in_band_large']:.0%} by FRAPP",
            ours["in_band_large"] > frapp["in_band_large"] and ours["rho"] < frapp["rho"] / 2,
        ),
        Claim(
            "small counts",
            "for small values of Q(I) the estimated values are far off (even negative)",
            "median |error|/Q(I) below 100: "
            + ", ".join(f"{name} {one['off_small']:.1f}" for name, one in found.items())
            + "; negative: "
            + ", ".join(f"{one['negative_small']:.0%}" for one in found.values()),
            all(one["off_small"] > 1 and one["negative_small"] > 0.1 for one in found.values()),
        ),
        Claim(
            "large counts",
            "for large values of Q(I) the estimations are much better and meaningful",
            "median |error|/Q(I) from 5000 on: "
            + ", ".join(f"{name} {one['off_large']:.1%}" for name, one in found.items()),
            all(
                one["off_large"] < min(MEANINGFUL, one["off_small"] / FAR) for one in found.values()
            ),
        ),
    )


def cells_of(found: dict[str, Any]) -> Columns:
    """Squares of the plane, and how many queries each holds."""
    return {
        "method": [name for name, one in found.items() for _ in one["cells"]],
        "truth": [(x + 0.5) * CELL for one in found.values() for x, _ in one["cells"]],
        "estimate": [(y + 0.5) * CELL for one in found.values() for _, y in one["cells"]],
        "queries": [count for one in found.values() for count in one["queries"]],
    }


def clouds(columns: Columns, found: dict[str, Any]) -> Any:
    """Two panels in a row: above the paper's, below ours."""
    panels = [cloud(columns, method, one) for method, one in found.items()]
    rows = [beside(*panels[i : i + 2]) for i in range(0, len(panels), 2)]
    return altair().vconcat(*rows, spacing=36)


def cloud(columns: Columns, method: str, found: Any, side: int = SIDE) -> Any:
    """One method's panel: the darker a square, the more queries; the line is y = x."""
    alt = altair()
    dots = [row for row in records(columns) if row["method"] == method]
    colour = alt.Color("queries:Q", scale=alt.Scale(type="log", range=DENSITY[2:]), legend=None)
    seen = (
        chart(dots)
        .mark_square(size=16, opacity=1)
        .encode(**axes(columns["estimate"]), color=colour)
    )
    line = (
        chart([{"at": 0}, {"at": LARGEST}])
        .mark_line(color=VERMILION, strokeWidth=1.2)
        .encode(x="at:Q", y="at:Q")
    )
    typical = f"95 % of all estimates are off by at most {found['rho']:.2f}·√n"
    heading = alt.TitleParams(method, subtitle=typical)
    return alt.layer(line, seen).properties(width=side, height=side, title=heading)


def axes(estimates: Sequence[float]) -> dict[str, Any]:
    """The same axes for all panels, from the lowest to the highest estimate."""
    alt = altair()
    low, high = min(-4000, min(estimates) - CELL), max(LARGEST, max(estimates) + CELL)
    axis = alt.Axis(format=",d", tickCount=7)

    def scale(*ends: float) -> Any:
        return alt.Scale(domain=list(ends), nice=False)

    return {
        "x": alt.X("truth:Q", title="true count Q(I)", scale=scale(0, LARGEST), axis=axis),
        "y": alt.Y("estimate:Q", title="estimate from the view", scale=scale(low, high), axis=axis),
    }


FIGURE = Figure(
    "vldb07-fig2",
    VLDB07,
    "Estimates against true counts of all selections, FRAPP and αβ",
    parts,
    conclude,
)
