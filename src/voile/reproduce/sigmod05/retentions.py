"""Figures 13 and 14: the largest retention that prevents a breach, by ρ₁, for Adult's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from voile.privacy.local import (
    Breach,
    SBreach,
    joint_retention,
    known_prior_retention,
    relative_priors,
)
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import INK, chart, lines
from voile.reproduce.papers import SIGMOD05
from voile.reproduce.sigmod05.study import COLUMNS, INTERVALS, cells, rises
from voile.reproduce.verdict import Check, Claim, Number, Sample

RHO2 = 0.95
BEFORE = (0.01, 0.05, *(round(0.1 * i, 1) for i in range(1, 10)), 0.94)
MASS = 1 / INTERVALS
"""Of each of ten equal intervals: what Theorem 5 calls m."""
MEDIAN, RARE = 1.0, 0.1
PRINTED = {2: 15, 3: 30}
"""The largest s that section 7.3 gives."""
LARGEST = {2: 26.16, 3: 95.4}
NAMED = {2: ("fnlwgt", "education_num"), 3: ("age", "fnlwgt", "education_num")}
"""Columns whose largest s is about what is printed."""
NAMED_S = {2: 15.6, 3: 32.3}
LIMITS = {RARE: 0.8, 0: 0.3}
"""What section 7.3 allows 'for ρ₁ > 0.5': rare sets, and the largest s."""

# By columns, s and ρ₁: Theorem 5 at m = 0.1, by a program that shares nothing with this one.
KNOWN = {
    (2, 15, 0.3): 0.4570, (2, 15, 0.7): 0.3406, (2, 15, 0.9): 0.2038,
    (2, 1, 0.3): 0.7801, (2, 1, 0.6): 0.7265, (2, 0.1, 0.2): 0.9244, (2, 0.1, 0.3): 0.9196,
    (3, 30, 0.05): 0.4267, (3, 30, 0.4): 0.3844, (3, 30, 0.8): 0.2868,
    (3, 1, 0.1): 0.7123, (3, 1, 0.5): 0.6686, (3, 0.1, 0.6): 0.8053, (3, 0.1, 0.7): 0.7894,
}  # fmt: skip
EXACT = {2: ("age", "fnlwgt"), 3: ("age", "fnlwgt", "hours_per_week")}
KNOWN_EXACT = {2: {0.05: 0.9554, 0.1: 0.9105, 0.5: 0.9105}, 3: {0.05: 0.9222, 0.1: 0.9162}}


# ---------------------------------------------------------------------- the work


def measured_sets(names: Sequence[str]) -> dict[str, Any]:
    """How uneven the cells of these columns are, and what their own distribution allows."""
    counts = cells(names)
    masses = [np.full(INTERVALS, MASS)] * len(names)
    found = relative_priors(counts, masses)
    prior = counts / counts.sum()
    allowed = [known_prior_retention(prior, masses, Breach(rho1, RHO2))[0] for rho1 in BEFORE]
    return {"largest": found.largest, "median": found.median, "allowed": allowed}


def sets_of(columns: int) -> list[tuple[str, ...]]:
    """All choices of so many of Adult's columns."""
    return list(combinations([column.name for column in COLUMNS], columns))


def parts(run: Run, columns: int) -> list[Part]:  # noqa: ARG001  (nothing is random)
    """The cells of each choice of columns."""
    return [Part(measured_sets, {"names": list(names)}) for names in sets_of(columns)]


def by_theorem(columns: int, s: float, mass: float = MASS) -> list[float]:
    """The largest retention that Theorem 5 allows at each ρ₁."""
    return [joint_retention(SBreach(s, rho1, RHO2), columns, mass) for rho1 in BEFORE]


# ---------------------------------------------------------------------- checks


def sizes(found: Mapping[tuple[str, ...], Any], columns: int) -> list[Check]:
    """The largest and the median s of Adult's cells, beside the printed ones."""
    most = max(found, key=lambda names: float(found[names]["largest"]))
    usual = found[EXACT[columns]]
    return [
        Number(
            f"the largest s of {columns} columns",
            PRINTED[columns],
            Sample.of(found[most]["largest"]),
            reading=0.5,
            right=LARGEST[columns],
            why=f"it is that of {', '.join(most)}; the print is near that of "
            + ", ".join(NAMED[columns]),
        ),
        Number(
            f"the largest s of {', '.join(NAMED[columns])}",
            None,
            Sample.of(found[NAMED[columns]]["largest"]),
            reading=0.05,
            right=NAMED_S[columns],
            why="an independent program",
        ),
        Number(
            f"the median s over the {INTERVALS**columns:,} cells of {', '.join(EXACT[columns])}",
            None,
            Sample.of(usual["median"]),
            reading=1e-5,
            right=0.009213 if columns == 2 else 0.0,
            why="Theorem 3's median of 1 is over all subsets of the domain, not over cells",
        ),
    ]


def retentions(found: Mapping[tuple[str, ...], Any], columns: int) -> list[Check]:
    """The largest retentions beside an independent program's."""
    curves = {s: by_theorem(columns, s) for s in (PRINTED[columns], MEDIAN, RARE)}
    numbers: list[Check] = [
        Number(
            f"Theorem 5: the largest p for s = {s:g}, ρ₁ = {rho1:g}",
            None,
            Sample.of(curves[s][BEFORE.index(rho1)]),
            reading=0.00005,
            right=right,
            why="an independent program",
        )
        for (k, s, rho1), right in KNOWN.items()
        if k == columns
    ]
    exact = found[EXACT[columns]]["allowed"]
    return numbers + [
        Number(
            f"the largest p for the cells of {', '.join(EXACT[columns])}, ρ₁ = {rho1:g}",
            None,
            Sample.of(exact[BEFORE.index(rho1)]),
            reading=0.0002,
            right=right,
            why="an independent program, by halving",
        )
        for rho1, right in KNOWN_EXACT[columns].items()
    ]


def allowed(columns: int, s: float, limit: float, words: str) -> Claim:
    """The paper: 'for ρ₁ > 0.5, the retention can be as high as …'."""
    curve = dict(zip(BEFORE, by_theorem(columns, s), strict=True))
    above = [p for rho1, p in curve.items() if rho1 > 0.5]
    below = [p for rho1, p in curve.items() if rho1 <= 0.5]
    falls = rises(list(reversed(curve.values())))
    return Claim(
        f"where {words} allow p = {limit:g}",
        f"for ρ₁ > 0.5 the retention can be as high as {limit:g}",
        f"p falls from {below[-1]:.2f} at ρ₁ = 0.5 to {above[-1]:.2f} at {BEFORE[-1]:g}"
        if falls
        else "p does not fall as ρ₁ rises",
        agrees=min(above) >= limit,
        expected=False,
        why="the wrong direction: p falls as ρ₁ rises; it is at least "
        f"{min(below):.2f} for ρ₁ ≤ 0.5",
    )


def claims(columns: int) -> list[Check]:
    """What the paper allows for rare sets and for the largest s."""
    return [
        allowed(columns, RARE, LIMITS[RARE], "rare sets (s ≤ 0.1)"),
        allowed(columns, PRINTED[columns], LIMITS[0], f"sets of s = {PRINTED[columns]}"),
    ]


# ---------------------------------------------------------------------- the figures


def table_of(found: Mapping[tuple[str, ...], Any], columns: int) -> dict[str, list[Any]]:
    """The largest retention by ρ₁, for each kind of set."""
    largest = max(float(one["largest"]) for one in found.values())
    own = [min(one["allowed"][place] for one in found.values()) for place in range(len(BEFORE))]
    curves = {
        f"s = {largest:.1f}, the largest": by_theorem(columns, largest),
        f"s = {PRINTED[columns]}, as printed": by_theorem(columns, PRINTED[columns]),
        "s = 1": by_theorem(columns, MEDIAN),
        "s = 0.1, rare": by_theorem(columns, RARE),
        "known distribution (ours)": own,
    }
    return {
        "sets": [name for name in curves for _ in BEFORE],
        "rho1": [rho1 for _ in curves for rho1 in BEFORE],
        "retention": [p for curve in curves.values() for p in curve],
    }


def conclude(run: Run, results: Sequence[Any], columns: int) -> Finding:  # noqa: ARG001
    """The largest retentions for so many columns."""
    found = dict(zip(sets_of(columns), results, strict=True))
    table = table_of(found, columns)
    largest = max(float(one["largest"]) for one in found.values())
    return Finding(
        checks=(*claims(columns), *sizes(found, columns), *retentions(found, columns)),
        tables={"": table},
        picture=lambda: picture(table),
        title=f"Adult's densest cells have s = {largest:.0f}, not {PRINTED[columns]}; "
        "and p falls with ρ1",
        subtitle=(
            f"The largest retention of {columns} columns at which a belief of ρ1 does not become "
            f"{RHO2}, by Theorem 5 with intervals of a tenth.",
            "Ours: the same for cells of Adult, exactly, where its distribution is known "
            "(the worst choice of columns).",
        ),
    )


def picture(table: Mapping[str, Sequence[Any]]) -> Any:
    """The largest retention by ρ₁, with the printed limits."""
    curves = lines(
        table,
        "rho1",
        "retention",
        "sets",
        titles=("ρ1, the belief before", "largest retention p"),
        formats=("~g", ".1f"),
    )
    limits = [
        {"low": 0.5, "high": BEFORE[-1], "p": p, "words": f"printed: {p:g} for ρ1 > 0.5"}
        for p in LIMITS.values()
    ]
    printed = chart(limits)
    rule = printed.mark_rule(color=INK, strokeDash=[2, 4], strokeWidth=1.5)
    text = printed.mark_text(align="left", dx=8, color=INK, fontSize=13)
    return (
        curves
        + rule.encode(x="low:Q", x2="high:Q", y="p:Q")
        + text.encode(x="high:Q", y="p:Q", text="words:N")
    )


def figure(number: int, columns: int, words: str) -> Figure:
    """Figure 13 or 14."""
    return Figure(
        name=f"sigmod05-fig{number}",
        paper=SIGMOD05,
        what=f"Largest retention without a breach, {words} columns of Adult",
        parts=partial(parts, columns=columns),
        conclude=partial(conclude, columns=columns),
    )


FIGURE_13 = figure(13, 2, "two")
FIGURE_14 = figure(14, 3, "three")
