"""Figure 2(b): generalization and bucketization of the same classes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.kdd09 import study
from voile.reproduce.kdd09.study import (
    BUCKETIZED,
    CLOSENESS,
    GENERALIZED,
    L_DIVERSITY,
    U_TITLE,
    Points,
    as_columns,
    curves_chart,
)
from voile.reproduce.papers import KDD09
from voile.reproduce.verdict import Check, Claim

SUBSTANTIAL = 0.75
"""At most this share of the other's U_loss, for half of the releases or more."""


def parts(run: Run) -> list[Part]:  # noqa: ARG001  (the same curves as in Figure 2(a))
    """The losses of all releases."""
    return study.curve_parts()


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Compare the U_loss of the same classes shown in two ways."""
    named, _ = study.curves(results)
    shares = {name: shares_of(points) for name, points in named.items()}
    everywhere = [share for of in shares.values() for share in of]
    below = sum(share < 1 for share in everywhere)
    checks: list[Check] = [
        Claim(
            "bucketization is better",
            "bucketization provides better data utility than generalization",
            f"its U_loss is lower in {below} of {len(everywhere)} releases, of all requirements",
            below == len(everywhere),
        ),
        substantially(CLOSENESS, shares[CLOSENESS]),
        substantially(
            L_DIVERSITY, shares[L_DIVERSITY], expected=False,
            why="for ℓ of 4.25 and more by a tenth or less",
        ),
    ]  # fmt: skip
    drawn = {
        f"{name}, {words}": study.shown_as(named[name], recode)
        for name in (L_DIVERSITY, CLOSENESS)
        for recode, words in ((GENERALIZED, "generalization"), (BUCKETIZED, "bucketization"))
    }
    columns = as_columns(drawn, ("value", "classes", "p_loss", "u_loss"))
    return Finding(
        checks=tuple(checks),
        tables={"": columns},
        picture=lambda: curves_chart(columns, "u_loss", U_TITLE),
        title="Bucketization tells more than generalization at the same privacy loss",
        subtitle="Adult, Mondrian: the same classes, shown in two ways",
    )


def shares_of(points: Points) -> list[float]:
    """The ratio of bucketization's U_loss to generalization's, release by release."""
    pairs = zip(
        study.shown_as(points, GENERALIZED), study.shown_as(points, BUCKETIZED), strict=True
    )
    return [bucket["u_loss"] / general["u_loss"] for general, bucket in pairs]


def substantially(
    name: str, shares: Sequence[float], *, expected: bool = True, why: str = ""
) -> Claim:
    """Whether bucketization lowers the U_loss of this requirement substantially."""
    return Claim(
        f"{name}: substantially",
        "bucketization provides substantially better data utility",
        f"U_loss lower by {1 - max(shares):.0%} to {1 - min(shares):.0%}, the median being "
        f"{1 - median(shares):.0%}",
        median(shares) <= SUBSTANTIAL,
        expected=expected,
        why=why,
    )


FIG2B = Figure(
    name="kdd09-fig2b",
    paper=KDD09,
    what="Generalization and bucketization under ℓ and t",
    parts=parts,
    conclude=conclude,
)
