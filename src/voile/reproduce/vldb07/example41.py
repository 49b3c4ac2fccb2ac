"""Example 4.1: how many scores are less than three times the age, from the view of Table 1(d)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

import voile
from voile.noise import Key
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import GRID, INK, SOFT, VERMILION, altair, chart
from voile.reproduce.papers import VLDB07
from voile.reproduce.verdict import Check, Number, Sample
from voile.reproduce.vldb07.table1 import (
    ALPHA,
    BETA,
    DOMAIN,
    PRINTED_ALPHABETA,
    SCORES,
    TABLE,
    alphabeta,
    published,
)
from voile.schema import TupleIndex

LEAST_AGE, LEAST_SCORE = 20, 81
RIGHT_DOMAIN = 549

SQL = "select count(*) from scores where score < 3 * age"


def enumerated() -> dict[str, Any]:
    """The counts by listing all tuples of the domain, of the printed view and of the table."""
    values: list[list[Any]] = [list(attribute) for attribute in DOMAIN]
    ages, nationalities, scores = values
    pairs = list(product(ages, scores))
    domain = sum(score < 3 * age for age, _, score in product(ages, nationalities, scores))
    seen = sum(score < 3 * age for age, _, score in PRINTED_ALPHABETA)
    return {
        "domain": domain,
        "pairs_at_most": sum(score <= 3 * age for age, score in pairs),
        "seen": seen,
        "truth": sum(score < 3 * age for age, _, score in SCORES),
        "estimate": alphabeta().estimate(seen, domain).value,
    }


def queried(seed: int) -> dict[str, Any]:
    """The same by `voile query`, from a release of the toy table."""
    release = published(seed)
    explained = release.explain(SQL)
    return {
        "domain": explained["n_domain"],
        "seen": explained["n_view"],
        "estimate": release.query(SQL).value,
        "truth": voile.read(TABLE).count("score < 3 * age"),
    }


def views(seed: int, count: int) -> list[float]:
    """Estimates from so many other views of the toy table."""
    mechanism, index = alphabeta(), TupleIndex(DOMAIN.sizes)
    members = voile.read(TABLE).keys(DOMAIN, drop_nulls=False)
    found = []
    for number in range(count):
        key = Key.from_seed(seed * 1_000_003 + number)
        noise = mechanism.noise_rows(index, key, 0, 0, index.limbs[0].size)
        shown = np.concatenate(list(mechanism.view(members, noise, key, 0)))
        ages, _, scores = index.decode(shown)
        seen = int((scores + LEAST_SCORE < 3 * (ages + LEAST_AGE)).sum())
        found.append(float(mechanism.estimate(seen, RIGHT_DOMAIN).value))
    return found


def parts(run: Run) -> list[Part]:
    """The enumeration, many views, and a few releases."""
    several = {"seed": run.first, "count": 1000 if run.quick else 3000}
    queries = [Part(queried, {"seed": seed}) for seed in run.seeds(4, 2)]
    return [Part(enumerated), Part(views, several), *queries]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001  (the same for all runs)
    """Compare the printed numbers with enumeration and with releases."""
    listed, estimates, *releases = results
    return Finding(
        checks=checks(listed, estimates, releases),
        tables={
            "": {
                "release": ["as printed", *(f"published {i + 1}" for i in range(len(releases)))],
                "n_view": [listed["seen"], *(one["seen"] for one in releases)],
                "n_domain": [listed["domain"], *(one["domain"] for one in releases)],
                "estimate": [listed["estimate"], *(one["estimate"] for one in releases)],
            },
            "views": {"estimate": estimates},
        },
        picture=lambda: drawn(listed, estimates),
        title=f"From the printed view the estimate is {listed['estimate']:.2f}, not 7.1; "
        f"the truth is {listed['truth']}, not 4",
        subtitle=[
            "How many scores are less than three times the age? Grey: estimates from "
            f"{len(estimates):,} other",
            f"views of the same table; their mean is {fmean(estimates):.2f}.",
        ],
    )


def batches(estimates: Sequence[float], size: int = 100) -> Sample:
    """Means of a hundred: a single estimate says too little about what they have in common."""
    return Sample.of(fmean(estimates[i : i + size]) for i in range(0, len(estimates), size))


def checks(listed: Any, estimates: Sequence[float], releases: Sequence[Any]) -> tuple[Check, ...]:
    """n_D, n_V, the estimate and the truth beside the printed ones."""
    forgets = "190 counts score ≤ 3·age, and pairs without the three nationalities: 183 · 3 = 549"
    follows = "n_D is 549, not 190"
    printed_estimate = float((6 - 190 * BETA) / ALPHA)
    return (
        Number("n_D", 190, Sample.of(listed["domain"]), 0.5, right=549, why=forgets),
        Number("n_D by voile query", 190, Sample.of(one["domain"] for one in releases), 0.5,
               right=549, why=forgets),
        Number("pairs with score ≤ 3·age", 190, Sample.of(listed["pairs_at_most"]), 0.5),
        Number("n_V of the printed view", 6, Sample.of(listed["seen"]), 0.5),
        Number("estimate from the printed view", 7.1, Sample.of(listed["estimate"]), 0.05,
               right=3.51, why=follows),
        Number("(6 − 190β)/α", 7.1, Sample.of(printed_estimate), 0.05),
        Number("Q(I)", 4, Sample.of(one["truth"] for one in releases), 0.5, right=3,
               why="the records of 33, 32 and 36 years; 27·3 = 81 is less than 97"),
        Number("means of 100 estimates", None, batches(estimates), right=3, average=True),
    )  # fmt: skip


def drawn(listed: Any, estimates: Sequence[float]) -> Any:
    """Estimates from many views, with the true and the printed numbers marked."""
    alt = altair()
    often = Counter(round(value, 6) for value in estimates)
    most = max(often.values())
    flags = [
        (listed["truth"], f"truth {listed['truth']}", INK, 1.15, "right"),
        (listed["estimate"], f"from the printed view {listed['estimate']:.2f}", INK, 1.3, "left"),
        (4, "printed truth 4", VERMILION, 1.15, "left"),
        (7.1, "printed estimate 7.1", VERMILION, 1.0, "left"),
    ]
    x = alt.X("at:Q", title="estimate of how many scores are less than three times the age")
    y = alt.Y("views:Q", title="views", scale=alt.Scale(domain=[0, 1.4 * most], nice=False))
    bars = (
        chart([{"at": at, "views": n} for at, n in often.items()])
        .mark_bar(color=GRID, stroke=SOFT, strokeWidth=0.5, size=26)
        .encode(x=x, y=y)
    )
    layers = [bars]
    for at, says, colour, height, side in flags:
        rows = [{"at": at, "views": height * most, "zero": 0, "says": says}]
        base = chart(rows).encode(x=x, y=y)
        layers.append(base.mark_rule(color=colour, strokeWidth=2).encode(y2="zero:Q"))
        beside = 7 if side == "left" else -7
        layers.append(
            base.mark_text(align=side, dx=beside, dy=5, fontSize=14, color=colour).encode(
                text="says:N"
            )
        )
    return alt.layer(*layers).properties(width=700, height=300)


FIGURE = Figure(
    "vldb07-example41", VLDB07, "A count estimated by hand from the view of Table 1(d)",
    parts, conclude,
)  # fmt: skip
