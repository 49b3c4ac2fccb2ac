"""Previous work on the slides: how much of a column comes back, by the size of the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from voile.evaluate.reconstruction import Noise, simulate
from voile.reproduce.figure import Figure, Finding, Part, Run, columns_from
from voile.reproduce.look import INK, METHOD_COLOURS, SOFT, VERMILION, altair, chart, records
from voile.reproduce.papers import CRYPTO04
from voile.reproduce.verdict import Check, Claim, Number, Sample

ROWS = 1_000
QUESTIONS = (1_000, 4_000, 32_000)
ROOTS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the noise, in √n."""
AS_PRINTED, SERVER = "V = T, as printed", "a server's, δ = 1"
RIGHT = ((0.25, 4_000, 0.966), (1.0, 4_000, 0.693), (1.0, 32_000, 0.93),
         (AS_PRINTED, 4_000, 0.597), (SERVER, 4_000, 0.527))  # fmt: skip
"""By noise and questions: what an independent simulation recovers, of few runs."""
GOOD, HIDDEN = 0.95, 0.55
"""A good approximation of the database, and next to nothing."""
MANY, FEWER = 1_000_000, 10_000
"""Rows of a large table, and how many of them there are for each question that it answers."""
MUCH_LESS = 0.1
"""≪, as we read it: at most a tenth."""
SMALL = 12
"""Rows of a database that is attacked by trying all others."""
LIMITS = (0.0, 1 / 12, 1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2)
"""Largest errors of its answers, in n."""


def attacked(questions: list[int], seed: int) -> list[dict[str, Any]]:
    """Attack a random column by least squares; the share recovered at each noise."""
    noises = [
        *(Noise(f"{roots:g}", roots=roots) for roots in ROOTS),
        Noise(AS_PRINTED, per_question=1.0),
        Noise(SERVER, setting=(1.0, 1e-6)),
    ]
    found = simulate(ROWS, questions, noises, seed=seed)
    return [
        {"noise": one.noise, "questions": one.questions, "roots": one.roots,
         "recovered": one.recovered, "most": one.ceiling}
        for one in found.attempts
    ]  # fmt: skip


def all_tried(seed: int) -> list[float]:
    """The share of rows that an unlimited adversary gets right in the worst case.

    All subsets are queried; answers are off by at most E, always towards |q|/2. Of the
    databases that fit, the one furthest from the truth is taken.
    """
    rng = np.random.default_rng([seed, 6])
    everything = np.array(list(product((0, 1), repeat=SMALL)), dtype=np.int16)
    counts = everything @ everything.T  # of every database, about every subset
    middle = everything.sum(axis=1) / 2
    secret = int(rng.integers(2**SMALL))
    shares = []
    for limit in LIMITS:
        reach = limit * SMALL
        answers = counts[secret] + np.clip(middle - counts[secret], -reach, reach)
        fits = (np.abs(counts - answers) <= reach + 1e-9).all(axis=1)
        wrong = np.abs(everything[fits] - everything[secret]).sum(axis=1)
        shares.append(1 - float(wrong.max()) / SMALL)
    return shares


def parts(run: Run) -> list[Part]:
    """Attacks by an unlimited adversary on a small table, and by least squares on a larger one."""
    return [
        Part(all_tried, {"seed": run.first}),
        *(
            Part(attacked, {"questions": list(QUESTIONS), "seed": seed})
            for seed in run.seeds(20, 4)
        ),
    ]


def conclude(_: Run, results: Sequence[Any]) -> Finding:
    """How much of the column comes back at each size of the noise."""
    worst, runs = results[0], results[1:]
    table = averaged(runs)
    return Finding(
        checks=tuple(checks(runs, worst)),
        tables={
            "": table,
            "unlimited": {"error_over_n": list(LIMITS), "right_at_least": list(worst)},
        },
        picture=lambda: picture(table, QUESTIONS),
        title=f"With noise of √n/4, {100 * recovered(runs, 0.25, 4_000).mean:.0f} % of a column "
        f"comes back; with a server's, {100 * recovered(runs, SERVER, 4_000).mean:.0f} %",
        subtitle=(
            f"Share of {ROWS:,} secret bits that come back from noisy counts of random subsets, by "
            "least squares.",
            "Thin lines: the most that anyone can get right on average, who knows every other row. "
            "Rings: noise made for T.",
        ),
    )


def averaged(runs: Sequence[Any]) -> dict[str, list[Any]]:
    """The share recovered at each noise and number of questions, over all runs."""
    rows = []
    for place, one in enumerate(runs[0]):
        values = Sample.of([run[place]["recovered"] for run in runs])
        rows.append((one["noise"], one["questions"], one["roots"], values.mean, values.sd,
                     one["most"]))  # fmt: skip
    names = ("noise", "questions", "roots", "recovered", "sd", "most")
    return columns_from(names, rows)


def recovered(runs: Sequence[Any], noise: float | str, questions: int) -> Sample:
    """The share recovered in each run at one noise and number of questions."""
    name = noise if isinstance(noise, str) else f"{noise:g}"
    return Sample.of([
        one["recovered"] for run in runs for one in run
        if one["noise"] == name and one["questions"] == questions
    ])  # fmt: skip


def checks(runs: Sequence[Any], worst: Sequence[float]) -> list[Check]:
    """The recovered shares beside an independent simulation's, and the slides' three claims."""
    numbers: list[Check] = [
        Number(f"recovered, noise {label(noise)}, {questions:,} questions", None,
               recovered(runs, noise, questions), 0.5 * 10 ** -decimals(right), right)
        for noise, questions, right in RIGHT
    ]  # fmt: skip
    return [*numbers, polynomial(runs), bounded(runs), unlimited(worst)]


def decimals(value: float) -> int:
    """How many decimals a number is written with."""
    return len(f"{value:g}".partition(".")[2])


def label(noise: float | str) -> str:
    """A noise by its name, or in units of √n."""
    return noise if isinstance(noise, str) else f"{noise:g}·√n"


def polynomial(runs: Sequence[Any]) -> Claim:
    """Whether noise of √n separates recovery from privacy for a polynomial adversary."""
    below, above = recovered(runs, 0.1, 4_000).mean, recovered(runs, 4.0, 4_000).mean
    return Claim(
        "an adversary with polynomial time",
        "perturbation of magnitude Θ(sqrt(n)) required; else the adversary may reconstruct a good "
        "approximation",
        f"with 4n questions {100 * below:.0f} % come back at 0.1·√n, {100 * above:.0f} % at 4·√n",
        agrees=below >= GOOD and above <= HIDDEN + 0.02,
        why="for a number of questions near n: 8 times as many undo √8 times the noise",
    )


def bounded(runs: Sequence[Any]) -> Claim:
    """Whether a server's noise is far below √n for few questions, and still hides the rows."""
    questions = MANY // FEWER
    size = Noise("", setting=(1.0, 1e-6)).size(MANY, questions) / math.sqrt(MANY)
    most = max(recovered(runs, SERVER, count).mean for count in QUESTIONS)
    return Claim(
        "a bounded adversary, T ≪ n",
        "privacy preserving access mechanism with perturbation magnitude ≪ sqrt(n)",
        f"n = {MANY:,}, T = {questions}: noise {size:.3f}·√n; of {ROWS:,} rows "
        f"{100 * most:.0f} % come back at most, whatever T is",
        agrees=size <= MUCH_LESS and most <= HIDDEN,
        why="noise is √(23.6·T) at δ = 1, η = 10⁻⁶: below 0.1·√n for T up to n/2,360",
    )


def unlimited(worst: Sequence[float]) -> Claim:
    """Whether errors of E reveal all but 4E rows, and errors of n/2 reveal none."""
    bound = all(share >= 1 - 4 * limit - 1e-9 for share, limit in zip(worst, LIMITS, strict=True))
    return Claim(
        f"an unlimited adversary, {SMALL} rows, all subsets",
        "perturbation of magnitude Θ(n) required",
        "rows right in any database that fits: at least "
        + ", ".join(f"{s:.2f} at {x:.2f}·n" for s, x in zip(worst, LIMITS, strict=True)),
        agrees=bound and worst[0] == 1 and worst[-1] == 0,
        why="answers that are |q|/2 whatever the rows are have errors of n/2 and tell nothing",
    )


FIGURE = Figure(
    "crypto04-reconstruction", CRYPTO04,
    "How much of a column comes back, by the size of the noise",
    parts, conclude,
)  # fmt: skip


# --------------------------------------- shares of rows that come back, over the size of the noise


WIDTH, HEIGHT = 700, 400
Columns = Mapping[str, Sequence[Any]]


def picture(columns: Columns, questions: Sequence[int]) -> Any:
    """A line for each number of questions; rings where the slides' and a server's noise are."""
    alt = altair()
    names = [f"{count:,} questions" for count in questions]
    rows = [row | {"curve": f"{row['questions']:,} questions"} for row in records(columns)]
    plain = [row for row in rows if row["noise"].replace(".", "").isdigit()]
    named = [row | {"text": row["noise"]} for row in rows if row not in plain]
    x = alt.X("roots:Q", title="standard deviation of the noise, in √n",
              scale=alt.Scale(type="log", domain=[0.09, 100], nice=False),
              axis=alt.Axis(values=[0.1, 0.25, 0.5, 1, 2, 4, 10, 30], format="~g"))  # fmt: skip
    shares = {"title": "rows recovered", "axis": alt.Axis(format=".0%"),
              "scale": alt.Scale(domain=[0.45, 1.0], nice=False)}  # fmt: skip
    y, most, level = (alt.Y(f"{name}:Q", **shares) for name in ("recovered", "most", "y"))
    colour = alt.Color(
        "curve:N", title=None, scale=alt.Scale(domain=names, range=METHOD_COLOURS[: len(names)]),
        legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=400),
    )  # fmt: skip
    base = chart(plain)
    ring = chart(named)
    words = [row for row in named if row["questions"] == questions[-1]]
    layers = (
        chart([{"y": 0.5}]).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(y=level),
        chart([{"x": 1.0}]).mark_rule(color=VERMILION, strokeDash=[6, 4]).encode(
            x=alt.X("x:Q", scale=alt.Scale(type="log"))),
        base.mark_line(strokeWidth=1, opacity=0.6).encode(x=x, y=most, color=colour),
        base.mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(x=x, y=y, color=colour),
        ring.mark_point(size=110, strokeWidth=2.5, opacity=1).encode(x=x, y=y, color=colour),
        chart(words).mark_text(align="left", dx=12, fontSize=12, color=INK).encode(
            x=x, y=y, text="text:N"),
        chart([{"x": 95.0, "y": 0.5}]).mark_text(
            text="guessing", align="right", dy=13, fontSize=12, color=SOFT).encode(
                x=alt.X("x:Q"), y=level),
    )  # fmt: skip
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
