"""The worked examples of Theorems 4 and 5: how frequent a set may be without a breach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import voile
from voile.privacy.local import (
    Breach,
    belief_in,
    first_breach,
    joint_bound,
    largest_rho1,
    least_relative_prior,
    relative_prior_bound,
    row_bound,
)
from voile.reproduce.figure import Figure, Finding, Part, Run, columns_from
from voile.reproduce.look import INK, altair, beside, chart, lines
from voile.reproduce.papers import SIGMOD05
from voile.reproduce.sigmod05.study import COLUMNS, SOURCE
from voile.reproduce.verdict import Check, Claim, Number, Sample

RHO1, RHO2 = 0.1, 0.95
EXAMPLE = Breach(RHO1, RHO2)
RETENTION = Fraction(1, 5)
PRINTED_4, PRINTED_5 = 68, 273
CUT = 1.0
"""Both theorems' numbers are cut off in print (0.937 of 0.9375, 273 of 273.6), not rounded."""
RETENTIONS = tuple(round(0.05 * i, 2) for i in range(1, 20))
RELATIVE = (1, 2, 5, 10, 20, 40, 60, 68, 80, 120, 200, 400)


def number(exact: Fraction | None) -> float | None:
    """A fraction as a float, None where there is none."""
    return None if exact is None else float(exact)


# ---------------------------------------------------------------------- Theorem 4


def one_column() -> dict[str, Any]:
    """The bound by retention; and the belief in the worst set, by how frequent the set is."""
    return {
        "bounds": [number(relative_prior_bound(p, EXAMPLE)) for p in RETENTIONS],
        "example": number(relative_prior_bound(RETENTION, EXAMPLE)),
        "rare": float(largest_rho1(RETENTION, 1, Fraction(19, 20))),
        "beliefs": [belief(s) for s in RELATIVE],
        "fnlwgt": least_belief_in_a_value(0.3),
    }


def belief(s: int) -> float:
    """P[X∈S | Y∈S] of a set with the prior ρ₁ = 0.1 and the mass ρ₁/s, by Bayes' rule."""
    prior, mass = Fraction(1, 10), Fraction(1, 10) / s
    these = np.array([True, False])
    found = belief_in(
        np.array([prior, 1 - prior]), [np.array([mass, 1 - mass])], [RETENTION], these, [these]
    )
    return float(found)


def least_belief_in_a_value(retention: float) -> float:
    """The least P[X=y | Y=y] over the rows of Adult, of the column with the most values."""
    ((rarest,),) = voile.read(SOURCE).run(
        "select min(n) / sum(n) from (select count(*) as n from adult group by fnlwgt)"
    )
    weights = COLUMNS[1]
    these, mass = np.array([True, False]), 1 / (weights.most - weights.least + 1)
    found = belief_in(
        np.array([rarest, 1 - rarest]), [np.array([mass, 1 - mass])], [retention], these, [these]
    )
    return float(found)


def conclude_4(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Theorem 4: the bound by retention, and the belief in the worst set."""
    (found,) = results
    bounds = {
        "retention": list(RETENTIONS),
        "s": found["bounds"],
        "curve": ["no breach below (Theorem 4)"] * 19,
    }
    beliefs = {
        "s": list(RELATIVE),
        "belief": found["beliefs"],
        "curve": ["belief in the worst set"] * 12,
    }
    return Finding(
        checks=tuple(checks_4(found)),
        tables={"": bounds, "beliefs": beliefs},
        picture=lambda: picture_4(bounds, beliefs),
        title=f"Theorem 4 is tight: at p = {float(RETENTION):g} the first breach is at "
        f"s = {found['example']:.0f}",
        subtitle=(
            "Left: sets less than s times as likely as by replacement are not breached "
            "(0.1 to 0.95).",
            "Right: what is believed of the worst set with a prior of 0.1, on hearing that Y is in "
            "it, at p = 0.2.",
        ),
    )


def checks_4(found: Mapping[str, Any]) -> list[Check]:
    """The printed numbers of Theorem 4's example."""
    beliefs = dict(zip(RELATIVE, found["beliefs"], strict=True))
    return [
        Number("s without a (s, 0.1, 0.95) breach, p = 0.2", PRINTED_4,
               Sample.of(found["example"]), reading=0.5),
        Number("ρ₁ below which a rare set (s < 1) has no (ρ₁, 0.95) breach, p = 0.2", 0.937,
               Sample.of(found["rare"]), reading=0.001 * CUT),
        Claim(
            "whether a set is breached there",
            "for any set, ρ₁ is above 0.1 when p_s/m_s < 68",
            f"the worst set is believed with {beliefs[60]:.3f} at s = 60, {beliefs[68]:.4f} at 68, "
            f"{beliefs[80]:.3f} at 80",
            agrees=beliefs[60] < RHO2 and abs(beliefs[68] - RHO2) < 1e-12 and beliefs[80] > RHO2,
        ),
        Number(
            "least P[X=y | Y=y] of a row's fnlwgt, p = 0.3",
            None,
            Sample.of(found["fnlwgt"]),
            reading=0.0005,
            right=0.951,
            why="a single value of 1,490,001 has s ≥ 45, far above the cells of section 7.3",
        ),
    ]  # fmt: skip


def picture_4(bounds: Mapping[str, Any], beliefs: Mapping[str, Any]) -> Any:
    """The bound by retention, beside the belief by s."""
    first = lines(
        bounds, "retention", "s", "curve", titles=("retention p", "s (log scale)"),
        log=(False, True), formats=(".1f", "~g"), width=400,
    )  # fmt: skip
    second = lines(
        beliefs, "s", "belief", "curve", titles=("s (log scale)", "belief after"),
        log=(True, False), formats=("~g", ".1f"), width=400,
    )  # fmt: skip
    printed = chart([{"p": 0.2, "s": 68, "words": "printed: 68"}])
    mark = printed.mark_point(size=160, color=INK, strokeWidth=2)
    text = printed.mark_text(align="left", dx=12, dy=-8, color=INK, fontSize=13)
    limit = chart([{"rho2": RHO2, "s": 1, "words": "ρ2 = 0.95"}])
    rule = limit.mark_rule(color=INK, strokeDash=[2, 4]).encode(y="rho2:Q")
    name = limit.mark_text(align="left", dx=6, dy=-8, color=INK, fontSize=13)
    return beside(
        first + mark.encode(x="p:Q", y="s:Q") + text.encode(x="p:Q", y="s:Q", text="words:N"),
        second + rule + name.encode(x="s:Q", y="rho2:Q", text="words:N"),
    )


# ---------------------------------------------------------------------- Theorem 5

MASSES = tuple(
    Fraction(i, 10_000)
    for i in (
        1,
        2,
        4,
        7,
        10,
        14,
        18,
        20,
        30,
        50,
        70,
        100,
        140,
        200,
        300,
        500,
        700,
        1000,
        1500,
        2000,
    )
)
FINE = tuple(Fraction(i, 20_000) for i in range(1, 800))
PAPERS_MASS = Fraction(1, 10)
BOUND, EQUAL, UNEVEN = "Theorem 5", "first breach, equal m", "first breach, other m near 1"


def two_columns() -> dict[str, Any]:
    """Theorem 5's bound and the first breaches, by the mass of the sets."""
    alike, nearly = [RETENTION] * 2, 1 - Fraction(1, 10**9)
    equal = [first_breach(alike, [m, m], EXAMPLE) for m in MASSES]
    uneven = [first_breach(alike, [nearly, m], EXAMPLE) for m in MASSES]
    finest = [s for m in FINE if (s := first_breach(alike, [m, m], EXAMPLE)) is not None]
    return {
        BOUND: [number(joint_bound(alike, [m, m], EXAMPLE)) for m in MASSES],
        EQUAL: [number(s) for s in equal],
        UNEVEN: [number(s) for s in uneven],
        "limit": number(joint_bound(alike, [0, 0], EXAMPLE)),
        "tenth": number(joint_bound(alike, [PAPERS_MASS] * 2, EXAMPLE)),
        "first": number(min(finest)),
        "products": number(least_relative_prior(alike, EXAMPLE)),
        "any": number(row_bound(alike, EXAMPLE)),
    }


def conclude_5(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Theorem 5: the bound for two columns, and where breaches begin."""
    (found,) = results
    points = [
        (float(m), s, curve)
        for curve in (BOUND, EQUAL, UNEVEN)
        for m, s in zip(MASSES, found[curve], strict=True)
        if s is not None
    ]
    table = columns_from(("mass", "s", "curve"), points)
    return Finding(
        checks=tuple(checks_5(found)),
        tables={"": table},
        picture=lambda: picture_5(table, found["any"]),
        title=f"Two columns at p = {float(RETENTION):g} are breached from s = "
        f"{found['products']:.0f} on, not from {PRINTED_5}",
        subtitle=(
            "How many times as likely as by replacement a set S1×S2 may be before 0.1 becomes "
            "0.95, by the mass m of S1 and S2.",
            f"Sets of rows of any shape are breached from s = {found['any']:.0f} on: that bound is "
            "ours, and what `voile plan` keeps.",
        ),
    )


def checks_5(found: Mapping[str, Any]) -> list[Check]:
    """The printed number of Theorem 5's example in four readings."""
    what = "s without a (s, 0.1, 0.95) breach, two columns, p = 0.2"
    return [
        # Cut off: any value from 273 to 274.
        Number(f"{what}, m → 0", PRINTED_5, Sample.of(found["limit"]), reading=CUT),
        Number(
            f"{what}, m = 0.1",
            PRINTED_5,
            Sample.of(found["tenth"]),
            reading=0.05,
            right=139.6,
            why="273 is the limit of m → 0; the paper's own intervals have m = 0.1",
        ),
        Number(
            f"{what}: the first breach, equal m",
            PRINTED_5,
            Sample.of(found["first"]),
            reading=0.5,
            right=233,
            why="sets S₁×S₂ with equal masses that are not small",
        ),
        Number(
            f"{what}: any product set",
            PRINTED_5,
            Sample.of(found["products"]),
            reading=0.05,
            right=54.3,
            why="S₁ may hold nearly all of its domain; then one column alone decides",
        ),
    ]


def picture_5(table: Mapping[str, Any], anything: float) -> Any:
    """The bound and the first breaches by mass, with the printed number."""
    alt = altair()
    curves = lines(
        table, "mass", "s", "curve", titles=("replacing mass m (log scale)", "s (log scale)"),
        log=(True, True), formats=("~g", "~g"),
    )  # fmt: skip
    marks = chart(
        [
            {"s": PRINTED_5, "words": "printed: 273"},
            {"s": anything, "words": "sets of any shape (ours)"},
        ]
    )
    rule = marks.mark_rule(color=INK, strokeDash=[2, 4]).encode(y="s:Q")
    text = marks.mark_text(align="right", dy=-8, dx=-4, color=INK, fontSize=13)
    return curves + rule + text.encode(x=alt.value(620), y="s:Q", text="words:N")


def parts_4(run: Run) -> list[Part]:  # noqa: ARG001  (nothing is random)
    """One calculation for Theorem 4."""
    return [Part(one_column)]


def parts_5(run: Run) -> list[Part]:  # noqa: ARG001
    """One calculation for Theorem 5."""
    return [Part(two_columns)]


THEOREM_4 = Figure(
    name="sigmod05-thm4",
    paper=SIGMOD05,
    what="One column, s = 68 at p = 0.2",
    parts=parts_4,
    conclude=conclude_4,
)
THEOREM_5 = Figure(
    name="sigmod05-thm5",
    paper=SIGMOD05,
    what="Two columns, s = 273 at p = 0.2",
    parts=parts_5,
    conclude=conclude_5,
)
