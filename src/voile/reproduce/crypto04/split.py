"""Mining two vertically split SuLQ databases: Voile's own servers, queried in this process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import binom, chi2

from voile.asking import best_halves, covariance_error, mine
from voile.privacy.interactive.confidence import variance_needed
from voile.reproduce.crypto04.adult import TABLE, properties, share
from voile.reproduce.figure import Figure, Finding, Part, Run, columns_from
from voile.reproduce.look import BLUE, METHOD_COLOURS, VERMILION, altair, beside, chart, records
from voile.reproduce.papers import CRYPTO04
from voile.reproduce.verdict import Check, Claim, Number, Sample
from voile.serve import simulated

ROWS = 32_561
ETA = 1e-6
AS_PRINTED = 0.5 + 4.753424308822899
"""The δ that noise of variance V = T promises at η = 10⁻⁶: ½ + z."""
PROMISES = {"V = T (δ = 5.25)": AS_PRINTED, "δ = 2": 2.0}
HALVES = (30, 100, 300, 900)
SHOWN = 300
"""Halves of the runs in which all four functions are estimated."""
LEFT, RIGHT = "A.marital_status = 'Married-civ-spouse'", "B.salary = '>50K'"
BOTH = "α and β"
WORDS = {
    BOTH: f"{LEFT} and {RIGHT}",
    "α, not β": f"{LEFT} and not {RIGHT}",
    "α or β": f"{LEFT} or {RIGHT}",
    "α xor β": f"({LEFT}) <> ({RIGHT})",
}
"""α: married; β: earns more than 50,000."""
FALSE_ALARM = 1e-4
SMALL = 8
"""Rows of the tables on which all halves are listed."""


def truths() -> dict[str, float]:
    """The true share of the rows for which each function holds."""
    a, b = properties()["married"], properties()["rich"]
    found = (a & b, a & ~b, a | b, a ^ b)
    return {word: float(one.mean()) for word, one in zip(WORDS, found, strict=True)}


def mined(promise: str, halves: int, words: list[str], seed: int) -> dict[str, Any]:
    """Start two servers with a budget for these questions, and estimate the functions."""
    options: dict[str, Any] = {"queries": halves + 1, "delta": PROMISES[promise], "eta": ETA}
    with (
        simulated(TABLE, seed=2 * seed, columns=["marital_status"], **options) as people,
        simulated(TABLE, seed=2 * seed + 1, columns=["salary"], **options) as work,
    ):
        servers = {"A": people, "B": work}
        found = {w: mine(servers, WORDS[w], halves=halves, seed=str(seed)) for w in words}
        variance = people.about()["variance"]
    first = found[BOTH]
    return {
        "promise": promise, "halves": halves, "variance": variance,
        "found": {w: [one.value, one.stderr, one.low, one.high] for w, one in found.items()},
        "implied": [getattr(first.implications[0], end) for end in ("delta", "low", "high")],
    }  # fmt: skip


def third_moments(seed: int) -> list[float]:
    """The largest third moments of three columns, over all halves of small random tables."""
    rng = np.random.default_rng([seed, 3])
    inside = np.array(list(product((0, 1), repeat=SMALL))) - 0.5
    largest = []
    for _ in range(20):
        three = rng.random((3, SMALL)) < 0.6
        counts = inside @ three.T
        largest.append(abs(float(counts.prod(axis=1).mean())))
    return largest


def parts(run: Run) -> list[Part]:
    """Third moments on small tables, and estimates for each promise, number of halves and seed."""
    mining = [
        Part(mined, {"promise": promise, "halves": halves, "words": words_of(promise, halves),
                     "seed": len(PROMISES) * len(HALVES) * seed + place})
        # Other coins for each, as if they were queried on other days: verdicts take them together.
        for place, (promise, halves) in enumerate(product(PROMISES, HALVES))
        if not run.quick or (place < len(HALVES) and halves <= SHOWN)
        for seed in run.seeds(20, 2)
    ]  # fmt: skip
    return [Part(third_moments, {"seed": run.first}), *mining]


def words_of(promise: str, halves: int) -> list[str]:
    """The functions to estimate: all four in the runs that are drawn, else the conjunction."""
    return list(WORDS) if (promise, halves) == (next(iter(PROMISES)), SHOWN) else [BOTH]


def conclude(_: Run, results: Sequence[Any]) -> Finding:
    """Compare estimates and their errors with the truth and with the formula."""
    found, true = results[1:], truths()
    measured, formula = errors(found, true), curves()
    shown = [one for one in found if len(one["found"]) == len(WORDS)]
    estimates = estimated(shown, true)
    best = best_error()
    return Finding(
        checks=tuple(checks(found, true, results[0])),
        tables={"": estimates, "errors": measured, "formula": formula},
        picture=lambda: picture(estimates, measured, formula, list(PROMISES)),
        title="Two columns on two servers: Pr[α and β] with a standard error of "
        f"{best[1]:.3f} at best",
        subtitle=(
            f"Adult, {ROWS:,} rows: marital_status on one server, salary on the other. α: married, "
            "β: earns more than 50,000.",
            f"Left: estimates with 0.95 intervals, each from {SHOWN} halves, V = T. "
            "Right: their error by the number of halves.",
        ),
    )


# ---------------------------------------------------------------------- errors


@lru_cache(maxsize=1)
def pair() -> tuple[tuple[float, float], float]:
    """p(1 − p) of both columns, and their covariance."""
    p, q = share("married"), share("rich")
    return (p * (1 - p), q * (1 - q)), share("married", "rich") - p * q


def formula_error(per_question: float, halves: float) -> float:
    """√[((σ_α² + 4V/n)(σ_β² + 4V/n) + cov²)/T] with V = v·T."""
    spreads, covariance = pair()
    noise = per_question * halves
    return covariance_error(spreads, (noise, noise), covariance, round(halves), ROWS)


def best_error(per_question: float = 1.0) -> tuple[int, float]:
    """The T with the least error, and that error."""
    tried = [(formula_error(per_question, t), t) for t in range(2, 4_000)]
    return min(tried)[1], min(tried)[0]


def errors(found: Sequence[Any], true: Mapping[str, float]) -> dict[str, list[Any]]:
    """The root mean square over runs with its 0.95 interval, beside what was stated."""
    rows = []
    for promise, halves in sorted({(one["promise"], one["halves"]) for one in found}):
        runs = [one["found"][BOTH] for one in found
                if (one["promise"], one["halves"]) == (promise, halves)]  # fmt: skip
        off = [value - true[BOTH] for value, *_ in runs]
        stated = math.sqrt(float(np.mean([error**2 for _, error, *_ in runs])))
        square, law = float(np.square(off).sum()), chi2(len(runs))
        ends = (math.sqrt(square / at) for at in (len(runs), *law.ppf([0.975, 0.025])))
        rows.append((promise, halves, len(runs), stated, *ends))
    names = ("promise", "halves", "runs", "stated", "error", "low", "high")
    return columns_from(names, rows)


def curves() -> dict[str, list[Any]]:
    """The error by the formula, over the number of halves, for each promise."""
    grid = [round(t) for t in np.geomspace(20, 20_000, 40)]
    rows = [
        (name, t, formula_error(variance_needed(delta, ETA, 1), t))
        for name, delta in PROMISES.items()
        for t in grid
    ]
    names = ("promise", "halves", "error")
    return columns_from(names, rows)


def estimated(found: Sequence[Any], true: Mapping[str, float]) -> dict[str, list[Any]]:
    """A row for each function and run."""
    rows = [
        (word, number + 1, true[word], *one["found"][word])
        for word in WORDS
        for number, one in enumerate(found)
    ]
    names = ("function", "run", "truth", "estimate", "stderr", "low", "high")
    return columns_from(names, rows)


# ---------------------------------------------------------------------- verdicts


def checks(
    found: Sequence[Any], true: Mapping[str, float], moments: Sequence[float]
) -> list[Check]:
    """The least errors by formula, coverage of intervals, and the slides' claims."""
    spread, (halves, _) = 0.25, best_error()
    rule = best_halves(ROWS, 1.0, spread)
    return [
        Number("error of Pr(α and β), V = T = 1000", None, Sample.of(formula_error(1.0, 1000)),
               0.00001, 0.011066),
        # An independent simulation says 'about .010'.
        Number("least error of Pr(α and β), V = T", None, Sample.of(best_error()[1]), 0.001, 0.010),
        Number("halves at which it is least, over σ²n/4", None, Sample.of(halves / rule[0]), 0.25,
               1.0, "the rule is for two columns that hold of half of the rows"),
        covered(found, true),
        spread_claim(found, true),
        implied(found),
        unmasked(found),
        Claim("functions of three columns",
              "our method does not seem to extend to ternary functions",
              f"over all halves, products of three counts are {max(moments):.1g} on average, "
              "whatever the columns are",
              agrees=max(moments) < 1e-12, why="all odd moments of a random half are 0"),
    ]  # fmt: skip


def covered(found: Sequence[Any], true: Mapping[str, float]) -> Claim:
    """Whether intervals cover the truth as often as stated; one function of each run.

    The four functions of a run are sums of the same three estimates.
    """
    words = [list(one["found"])[number % len(one["found"])] for number, one in enumerate(found)]
    inside = sum(
        one["found"][word][2] <= true[word] <= one["found"][word][3]
        for one, word in zip(found, words, strict=True)
    )
    chance = float(binom.cdf(inside, len(found), 0.95))
    return Claim(
        "any Boolean function of two servers' columns",
        "statistics for any Boolean function f of the two attribute values, e.g. Pr[α xor β]",
        f"{inside} of {len(found)} intervals at 0.95 have the truth in them",
        agrees=chance > FALSE_ALARM,
    )


def scaled(found: Sequence[Any], true: Mapping[str, float]) -> list[float]:
    """The errors of Pr[α and β], each divided by the standard error stated for it."""
    runs = [one["found"][BOTH] for one in found]
    return [(value - true[BOTH]) / stderr for value, stderr, *_ in runs]


def spread_claim(found: Sequence[Any], true: Mapping[str, float]) -> Claim:
    """Whether errors are as large as stated, by a χ² test."""
    z = scaled(found, true)
    total, law = float(np.square(z).sum()), chi2(len(z))
    chance = 2 * min(float(law.cdf(total)), float(law.sf(total)))
    return Claim(
        "the standard error that is stated (ours)",
        "not on the slides",
        f"errors are {math.sqrt(total / len(z)):.2f} times the stated ones, over {len(z)} runs",
        agrees=chance > FALSE_ALARM,
    )


def implied(found: Sequence[Any]) -> Claim:
    """Whether intervals of Δ from two servers cover the true Δ as often as they state."""
    right = share("married", "rich") / share("married") - share("rich")
    inside = sum(low <= right <= high for _, low, high in (one["implied"] for one in found))
    most = max(one["halves"] for one in found)
    nearest = [one["implied"][0] for one in found if one["halves"] == most]
    return Claim(
        "Δ = Pr(β|α) − Pr(β), from two servers",
        "estimating Δ follows by standard methods",
        f"{inside} of {len(found)} intervals at 0.95 have Δ = {right:.3f} in them; "
        f"{float(np.mean(nearest)):.3f} on average at {most} halves",
        agrees=float(binom.cdf(inside, len(found), 0.95)) > FALSE_ALARM,
    )


def unmasked(found: Sequence[Any]) -> Claim:
    """Whether the noise is smaller than what halves differ by, where V = T."""
    most = max(one["halves"] for one in found)
    noise = math.sqrt(next(one["variance"] for one in found if one["halves"] == most
                           and one["promise"] == next(iter(PROMISES))))  # fmt: skip
    signal = math.sqrt(pair()[0][0] * ROWS / 4)
    return Claim(
        "noise beside what halves differ by, V = T",
        "as perturbation ≪ sqrt(n), it does not mask out these deviations",
        f"at T = {most} noise is {noise:.0f}, deviations are {signal:.0f}, √n is "
        f"{math.sqrt(ROWS):.0f}",
        agrees=noise < signal,
        why=f"holds as long as T < σ²n/4, that is {signal**2:,.0f} here",
    )


FIGURE = Figure(
    "crypto04-split", CRYPTO04, "Mining two vertically split databases: estimates and their error",
    parts, conclude,
)  # fmt: skip


# ----------------------------- estimates beside the truth, and their error by the number of halves


WIDTH, HEIGHT = 400, 360
Columns = Mapping[str, Sequence[Any]]


def picture(
    estimates: Columns, measured: Columns, formula: Columns, promises: Sequence[str]
) -> Any:
    """Estimates beside the truth, and their error by the number of halves."""
    return beside(intervals(estimates), curves_chart(measured, formula, promises))


def intervals(estimates: Columns) -> Any:
    """Each function's runs side by side, each with its interval; the truth as a bar across."""
    alt = altair()
    base = chart(records(estimates))
    x = alt.X("function:N", sort=None, title=None,
              axis=alt.Axis(labelAngle=0, labelFontSize=14))  # fmt: skip
    off = alt.XOffset("run:O")
    scale = alt.Scale(zero=False)
    y = alt.Y("low:Q", title="probability", scale=scale)
    layers = (
        base.mark_tick(color=VERMILION, thickness=2.5, bandSize=WIDTH / 5).encode(
            x=x, y=alt.Y("truth:Q", title="probability", scale=scale)
        ),
        base.mark_rule(color=BLUE, strokeWidth=1.6).encode(x=x, xOffset=off, y=y, y2="high:Q"),
        base.mark_point(filled=True, color=BLUE, size=36, opacity=1).encode(
            x=x, xOffset=off, y="estimate:Q"
        ),
    )
    title = alt.TitleParams(
        "Estimates and the truth", subtitle="blue: one estimate a run; orange: the truth"
    )
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def curves_chart(measured: Columns, formula: Columns, promises: Sequence[str]) -> Any:
    """The formula's curves, with the measured errors as points on them."""
    alt = altair()
    colours = alt.Color(
        "promise:N", legend=None,
        scale=alt.Scale(domain=list(promises), range=METHOD_COLOURS[: len(promises)]),
    )  # fmt: skip
    x = alt.X("halves:Q", title="halves T that are asked about, and promised for",
              scale=alt.Scale(type="log", domain=[18, 22_000], nice=False),
              axis=alt.Axis(values=[20, 100, 1000, 10_000], format=",d"))  # fmt: skip
    scale = alt.Scale(type="log", domain=[0.005, 0.15], nice=False, clamp=True)
    y = alt.Y("error:Q", title="standard error of Pr(α and β)", scale=scale,
              axis=alt.Axis(values=[0.005, 0.01, 0.02, 0.05, 0.1], format="~g"))  # fmt: skip
    # The second promise's points stand a little to the right, so that intervals do not hide others.
    beside_ = f"datum.halves * (datum.promise == '{promises[-1]}' ? 1.1 : 1)"
    points = chart(records(measured)).transform_calculate(halves=beside_)
    words = chart(records(named(formula, promises)))
    layers = (
        chart(records(formula)).mark_line(strokeWidth=2.2).encode(x=x, y=y, color=colours),
        points.mark_rule(strokeWidth=1.6).encode(
            x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colours
        ),
        points.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=colours),
        words.mark_text(align="right", fontSize=13, fontWeight=600).encode(
            x=x, y=y, text="text:N", color=colours
        ),
    )
    title = alt.TitleParams(
        "More halves tell more, and need more noise",
        subtitle="lines: the formula; points: root mean square of runs, with 0.95 intervals",
    )
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def named(formula: Columns, promises: Sequence[str]) -> dict[str, list[Any]]:
    """Each curve's name and least error, near its right end."""
    rows = list(zip(formula["promise"], formula["halves"], formula["error"], strict=True))
    own = [[row for row in rows if row[0] == name] for name in promises]
    return {
        "promise": list(promises),
        "halves": [several[-1][1] for several in own],
        "error": [several[-1][2] * at for several, at in zip(own, (0.42, 1.2), strict=True)],
        "text": [f"{name}, least {min(row[2] for row in several):.3f}"
                 for name, several in zip(promises, own, strict=True)],
    }  # fmt: skip
