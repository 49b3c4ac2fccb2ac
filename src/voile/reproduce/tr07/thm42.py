"""Theorem 4.2: how often an estimate is off by ρ√n or more, by exact convolution.

n_V is a sum of two binomial numbers: kept members of the query, inserted tuples of its domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from voile.mechanisms import AlphaBeta
from voile.reproduce.figure import Columns, Figure, Finding, Part, Run, columns_from, rows_at
from voile.reproduce.look import INK, altair, chart, lines
from voile.reproduce.papers import TR07
from voile.reproduce.verdict import Check, Claim

KEPT = 0.5
EPSILON = 0.05
SPREADS = (0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 5.0, 20.0, 80.0)
"""r: β = (r/4)·(n/m). 80 is that of Adult."""
ROWS = {"quick": (100,), "full": (100, 1000)}
DOMAIN = 10**6
TURN = 2 / 3
"""From here on the printed ρ is the larger one."""
PRINTED, RIGHT = "printed: 2√(3r·ln(2/ε))", "right: √(3(r+2)·ln(2/ε))"

Floats = npt.NDArray[np.float64]


def printed(spread: float, epsilon: float = EPSILON) -> float:
    """ρ as the theorem prints it."""
    return 2 * math.sqrt(3 * spread * math.log(2 / epsilon))


def right(spread: float, epsilon: float = EPSILON) -> float:
    """What the proof's chain of inequalities gives: √(Q(I)/α + β·n_D/α²) ≤ √((2 + r)·n)."""
    return math.sqrt(3 * (spread + 2) * math.log(2 / epsilon))


def miss(mechanism: AlphaBeta, members: int, domain: int, error: float) -> float:
    """Pr[|estimate − Q(I)| ≥ error] of a query with so many members among so many tuples."""
    kept = np.arange(members + 1)
    noise = window(domain - members, mechanism.noise)
    chances = np.convolve(
        binom.pmf(kept, members, mechanism.retention),
        binom.pmf(noise, domain - members, mechanism.noise),
    )
    seen = noise[0] + np.arange(len(chances))
    off = np.abs((seen - mechanism.noise * domain) / mechanism.excess - members)
    # What lies outside the window has a chance below 10⁻¹⁵ and counts as a miss.
    outside = max(0.0, 1.0 - float(chances.sum()))
    return float(chances[off >= error * (1 - 1e-12)].sum()) + outside


def window(tuples: int, chance: float) -> npt.NDArray[np.int64]:
    """The numbers of inserted tuples that are not negligibly unlikely."""
    low, high = binom.ppf(1e-16, tuples, chance), binom.isf(1e-16, tuples, chance)
    return np.arange(max(0, int(low) - 1), min(tuples, int(high) + 1) + 1)


def worst(spread: float, rows: int) -> dict[str, float]:
    """The largest chance of a miss, over queries of all sizes, for both forms of ρ."""
    mechanism = AlphaBeta(KEPT, spread / 4 * rows / DOMAIN, "set")
    queries = [
        (int(share * rows), max(int(part * DOMAIN), int(share * rows)))
        for share in (0, 0.1, 0.5, 0.9, 1)
        for part in (0.001, 0.1, 0.5, 1)
    ]
    root = math.sqrt(rows)
    return {
        name: max(miss(mechanism, x, size, rho(spread) * root) for x, size in queries)
        for name, rho in ((PRINTED, printed), (RIGHT, right))
    }


def grid(run: Run) -> list[tuple[int, float]]:
    """The numbers of rows and the values of r to compute; fewer in a quick run."""
    several = ROWS["quick" if run.quick else "full"]
    return [(rows, spread) for rows in several for spread in SPREADS]


def parts(run: Run) -> list[Part]:
    """One calculation for each number of rows and each r."""
    return [Part(worst, {"spread": spread, "rows": rows}) for rows, spread in grid(run)]


def conclude(run: Run, results: Sequence[Any]) -> Finding:
    """Compare the chance of a miss with ε, for both forms of ρ."""
    points = [
        (rows, spread, form, found[form])
        for (rows, spread), found in zip(grid(run), results, strict=True)
        for form in (PRINTED, RIGHT)
    ]
    columns = columns_from(("n", "r", "form", "miss"), points)
    return Finding(
        checks=checks(points),
        tables={"": columns},
        picture=lambda: drawn(columns),
        title="For small r the printed ρ is far too small; the proof's own form holds",
        subtitle=[
            "The largest chance, over queries of all sizes, to be off by ρ√n or more;",
            "exact, n = 100 records among a million tuples, α = ½, β = (r/4)·(n/m), ε = 0.05.",
        ],
    )


def checks(points: Sequence[tuple[int, float, str, float]]) -> tuple[Check, ...]:
    """Whether each form of ρ keeps ε, below and above r = ⅔."""

    def largest(form: str, *, small: bool) -> float:
        return max(chance for _, r, of, chance in points if of == form and (r < TURN) == small)

    small, large = largest(PRINTED, small=True), largest(PRINTED, small=False)
    ours = max(largest(RIGHT, small=True), largest(RIGHT, small=False))
    lacks = "the proof gives √(3(r+2)·ln(2/ε)), which is larger for r < ⅔"
    text = "Pr[|Q(I) − EST| ≥ ρ√n] ≤ ε, with ρ = 2√(3r·ln(2/ε))"
    return (
        Claim("the printed bound for r ≥ ⅔", text, f"missed with chance {large:.2g} at most",
              large <= EPSILON),
        Claim("the printed bound for r < ⅔", text, f"missed with chance {small:.2g}",
              small <= EPSILON, expected=False, why=lacks),
        Claim("the right bound for all r (ours)", "what the proof's chain gives",
              f"missed with chance {ours:.2g} at most", ours <= EPSILON),
    )  # fmt: skip


def drawn(columns: Columns) -> Any:
    """The largest chance of a miss by r, for both forms."""
    alt = altair()
    least = 1e-9
    first = min(columns["n"])
    kept = [i for i, n in enumerate(columns["n"]) if n == first and columns["miss"][i] > least]
    curves = lines(
        rows_at(columns, kept), "r", "miss", "form",
        titles=("r", "largest chance to be off by ρ√n or more"),
        log=(True, True), domains=((0.008, 100), (least, 2)), formats=("~g", ".0e"), width=660,
    )  # fmt: skip
    level = [{"miss": EPSILON, "r": 100, "says": "ε = 0.05"}]
    base = chart(level).encode(y="miss:Q")
    rule = base.mark_rule(color=INK, strokeDash=[6, 4], strokeWidth=1.5)
    word = base.mark_text(align="right", dy=-9, dx=-4, fontSize=13, color=INK).encode(
        x="r:Q", text="says:N"
    )
    return alt.layer(curves, rule, word)


FIGURE = Figure("tr07-thm42", TR07, "How often an estimate is off by ρ√n, exactly", parts, conclude)
