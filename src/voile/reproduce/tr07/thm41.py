"""Theorem 4.1: which α and β keep (d, γ), by listing every table and every view of a small domain.

The report's α is the chance that a tuple of the table is kept, which the paper calls α + β.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from voile.privacy.meaning import alphabeta_law
from voile.reproduce.figure import Columns, Figure, Finding, Part, Run
from voile.reproduce.look import BLUE, INK, VERMILION, altair, beside, chart
from voile.reproduce.papers import TR07
from voile.reproduce.verdict import Check, Claim, Number, Sample

PRIOR, POSTERIOR = Fraction(1, 20), Fraction(3, 10)
TUPLES = 3
NEARLY_NONE = Fraction(1, 10**6)
"""The lower bound is approached as the prior vanishes."""
HALF = Fraction(1, 2)
RATIO = POSTERIOR * (1 - PRIOR) / (PRIOR * (1 - POSTERIOR))
"""R: the largest likelihood ratio that (d, γ) allows."""
BETAS = tuple(Fraction(i, 20) for i in range(8, 41, 4))
"""Multiples of the least β of the theorem."""
ALPHAS = tuple(Fraction(i, 200) for i in range(150, 180, 3))
SUFFICIENT = 1 - PRIOR / POSTERIOR
LARGEST = SUFFICIENT / (1 - PRIOR / POSTERIOR / RATIO)


def least_beta(alpha: Fraction) -> Fraction:
    """β ≥ (d/γ)·((1−γ)/(1−d))·α, with equality."""
    return alpha / RATIO


def extremes(alpha: Sequence[int], beta: Sequence[int]) -> dict[str, float]:
    """The largest posterior, and the least posterior/prior, over all priors of a few levels, all
    views and all tuples; α and β are numerators and denominators."""
    law = alphabeta_law(TUPLES, Fraction(*alpha), Fraction(*beta))
    tables = [frozenset(t for t in range(TUPLES) if bits[t]) for bits in every(TUPLES)]
    views = {table: law(table) for table in tables}
    most, least = Fraction(0), Fraction(10**9)
    for priors in product((NEARLY_NONE, PRIOR), repeat=TUPLES):
        for view in every(TUPLES):
            weights = {t: chance(t, priors) * views[t][view] for t in tables}
            whole = sum(weights.values())
            for member, prior in enumerate(priors):
                after = sum((w for t, w in weights.items() if member in t), Fraction(0)) / whole
                most, least = max(most, after), min(least, after / prior)
    return {"posterior": float(most), "ratio": float(least)}


def every(count: int) -> list[tuple[bool, ...]]:
    """All combinations of so many Boolean values."""
    return list(product((False, True), repeat=count))


def chance(table: frozenset[int], priors: Sequence[Fraction]) -> Fraction:
    """The probability of a table whose tuples are independent."""
    found = Fraction(1)
    for member, prior in enumerate(priors):
        found *= prior if member in table else 1 - prior
    return found


def given(alpha: Fraction, beta: Fraction) -> dict[str, list[int]]:
    """α and β as whole numbers, which JSON can hold."""
    return {
        "alpha": [alpha.numerator, alpha.denominator],
        "beta": [beta.numerator, beta.denominator],
    }


def settings() -> list[tuple[Fraction, Fraction]]:
    """α and β of every point: first along β at α = ½, then along α with the least β."""
    return [
        *((HALF, times * least_beta(HALF)) for times in BETAS),
        *((alpha, least_beta(alpha)) for alpha in (*ALPHAS, SUFFICIENT, LARGEST)),
    ]


def parts(run: Run) -> list[Part]:  # noqa: ARG001  (nothing is drawn by chance)
    """One enumeration for each α and β."""
    return [Part(extremes, given(alpha, beta)) for alpha, beta in settings()]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Compare the theorem's conditions with what enumeration shows."""
    points = [
        {"alpha": alpha, "beta": beta, **found}
        for (alpha, beta), found in zip(settings(), results, strict=True)
    ]
    along_beta, along_alpha = points[: len(BETAS)], points[len(BETAS) :]
    columns = columns_of(along_beta, along_alpha)
    return Finding(
        checks=checks(along_beta, along_alpha),
        tables={"": columns},
        picture=lambda: drawn(columns),
        title="The bound on β is exact; that on α is not quite",
        subtitle=[
            f"d = {float(PRIOR):g}, γ = {float(POSTERIOR):g}: every table and every view of a "
            f"domain of {TUPLES} tuples, in exact fractions.",
            "Vermilion: where the theorem's condition ends. Dashed: what (d, γ) allows.",
        ],
    )


def checks(along_beta: Sequence[Any], along_alpha: Sequence[Any]) -> tuple[Check, ...]:
    """Whether the conditions suffice, and whether they are needed."""
    gamma, low = float(POSTERIOR), float(PRIOR / POSTERIOR)
    tight = next(one for one in along_beta if one["beta"] == least_beta(HALF))
    enough = [one for one in along_beta if one["beta"] >= least_beta(HALF)]
    short = [one for one in along_beta if one["beta"] < least_beta(HALF)]
    at = {one["alpha"]: one["ratio"] for one in along_alpha}
    allowed = [ratio for alpha, ratio in at.items() if alpha <= SUFFICIENT]
    # Priors are above 0, so that the bound is approached up to a millionth.
    near = 1e-5
    return (
        Number("largest posterior at the least β", gamma, Sample.of(tight["posterior"]), 1e-12,
               why=f"the printed bound γ at our γ = {gamma:g}"),
        Claim("β ≥ (d/γ)((1−γ)/(1−d))α suffices", "then Pr[t|V] ≤ γ",
              f"the largest posterior is {max(one['posterior'] for one in enough):.6g}",
              all(one["posterior"] <= gamma + 1e-12 for one in enough)),
        Claim("less β does not (ours)", "not in the report",
              f"the least posterior of {len(short)} smaller β is "
              f"{min(one['posterior'] for one in short):.4f}",
              all(one["posterior"] > gamma for one in short)),
        Claim("α ≤ 1 − d/γ suffices", "then Pr[t|V]/Pr[t] ≥ d/γ",
              f"the least ratio is {min(allowed):.4f}; d/γ = {low:.4f}",
              all(ratio >= low for ratio in allowed)),
        Number("exact largest α", float(SUFFICIENT), Sample.of(float(largest(at, low, near))),
               near, right=float(LARGEST),
               why="the printed 1 − d/γ at our d and γ is sufficient; exact is 1 − (d/γ)(1 − β)"),
        Number("least ratio at the exact largest α", None, Sample.of(at[LARGEST]), near, right=low),
    )  # fmt: skip


def largest(at: dict[Fraction, float], low: float, near: float) -> Fraction:
    """The largest α whose least ratio is not below d/γ."""
    return max(alpha for alpha, ratio in at.items() if ratio >= low - near)


# ---------------------------------------------------------------------- the picture


def columns_of(along_beta: Sequence[Any], along_alpha: Sequence[Any]) -> Columns:
    """All points as one table, those along β first."""
    every_point = [*along_beta, *sorted(along_alpha, key=lambda one: one["alpha"])]
    return {
        "along": ["beta"] * len(along_beta) + ["alpha"] * len(along_alpha),
        "alpha": [float(one["alpha"]) for one in every_point],
        "beta": [float(one["beta"]) for one in every_point],
        "beta_over_least": [float(one["beta"] / least_beta(one["alpha"])) for one in every_point],
        "largest_posterior": [one["posterior"] for one in every_point],
        "least_ratio": [one["ratio"] for one in every_point],
    }


def drawn(columns: Columns) -> Any:
    """The largest posterior along β, beside the least ratio along α."""
    left = panel(
        columns,
        "beta",
        ("beta_over_least", "β / the least β of the theorem"),
        ("largest_posterior", "largest posterior"),
        float(POSTERIOR),
        {"theorem": 1.0},
    )
    right = panel(
        columns,
        "alpha",
        ("alpha", "α, the chance to be kept"),
        ("least_ratio", "least posterior / prior"),
        float(PRIOR / POSTERIOR),
        {"theorem": float(SUFFICIENT), "exact": float(LARGEST)},
    )
    return beside(left, right)  # fmt: skip


def panel(
    columns: Columns,
    along: str,
    x: tuple[str, str],
    y: tuple[str, str],
    bound: float,
    ends: dict[str, float],
) -> Any:
    """One curve, with what (d, γ) allows and where conditions end."""
    alt = altair()
    here = [i for i, name in enumerate(columns["along"]) if name == along]
    points = [{"x": columns[x[0]][i], "y": columns[y[0]][i]} for i in here]
    across = alt.X("x:Q", title=x[1], scale=alt.Scale(zero=False))
    up = alt.Y("y:Q", title=y[1], scale=alt.Scale(zero=False))
    curve = chart(points).encode(x=across, y=up)
    level = chart([{"y": bound}]).mark_rule(color=INK, strokeDash=[6, 4], strokeWidth=1.5)
    return alt.layer(
        level.encode(y=up),
        *flags(across, ends),
        curve.mark_line(color=BLUE, strokeWidth=2.5),
        curve.mark_point(color=BLUE, filled=True, size=42, opacity=1),
    ).properties(width=400, height=320)


def flags(across: Any, ends: dict[str, float]) -> list[Any]:
    """A line at each end, and its name beside it: of the first at its left, if there are two."""
    found = []
    for i, (says, at) in enumerate(ends.items(), start=1):
        base = chart([{"x": at, "says": says}]).encode(x=across)
        found.append(base.mark_rule(color=VERMILION, strokeWidth=1.8))
        last = i == len(ends)
        words = {"align": "left" if last else "right", "dx": 6 if last else -6, "y": 10}
        found.append(base.mark_text(color=VERMILION, fontSize=13, **words).encode(text="says:N"))
    return found


FIGURE = Figure("tr07-thm41", TR07, "Which α and β keep (d, γ), by enumeration", parts, conclude)
