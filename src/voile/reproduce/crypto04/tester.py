"""The tester of probabilistic implication: one biased half, or the covariance over all halves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.asking import Tester
from voile.reproduce.crypto04.adult import share
from voile.reproduce.figure import Figure, Finding, Part, Run, columns_from
from voile.reproduce.look import BLUE, INK, SOFT, VERMILION, altair, beside, chart, records
from voile.reproduce.papers import CRYPTO04
from voile.reproduce.verdict import Check, Claim, Number, Sample

ROWS, SHARE, DELTAS = 32_561, 0.5, (0.1, 0.3)
"""Adult's rows; α and β hold of half of them each; Δ₁ and Δ₂."""
AT_ONCE = 250_000
BIASES = (0.1, 0.3, 0.5, 0.7, 1.0)
"""In √n; 1 on the slides."""
HALVES = (3, 5, 10, 20, 40, 80, 160, 320)
"""T of the covariance tester."""
TRIALS = 2_000
FEW = 1_000
"""Questions that are few beside n."""
DECIDES = 2 / 3
"""A tester must be right at least this often."""
ADULT = {0.1: (0.344, 0.600), 0.5: (0.0223, 0.713)}
"""By bias, of (married, rich): halves accepted, and how often Δ is distinguished from Δ − .1."""
Counts = npt.NDArray[np.float64]


def cells(rows: int, p: float, q: float, delta: float) -> list[int]:
    """Rows with both, with α alone, with β alone, with none; Δ = Pr[β|α] − Pr[β]."""
    both = p * (q + delta)
    wanted = rows * np.array([both, p - both, q - both, 1 - p - q + both])
    return [int(count) for count in np.rint(wanted)]


def halves_of(counts: Sequence[int], number: int, rng: np.random.Generator) -> list[Counts]:
    """The excess of α and of β over the expected counts in random halves, and their sizes.

    A row is in a half or not with equal chances, so that the rows of a kind are binomial.
    """
    rows = sum(counts)
    p, q = (counts[0] + counts[1]) / rows, (counts[0] + counts[2]) / rows
    taken = [rng.binomial(count, 0.5, number).astype(np.float64) for count in counts]
    size = sum(taken[1:], taken[0])
    return [taken[0] + taken[1] - size * p, taken[0] + taken[2] - size * q, size]


def searched(delta: float, batches: int, seed: int) -> dict[str, Any]:
    """Search random halves for biased ones, and query β on those."""
    counts = cells(ROWS, SHARE, SHARE, delta)
    rng = np.random.default_rng([seed, round(1000 * delta)])
    tester = Tester(ROWS, SHARE, (0.0, 0.0))
    accepted, excesses, others = dict.fromkeys(BIASES, 0), list[Counts](), list[Counts]()
    right = dict.fromkeys(BIASES, 0)
    for _ in range(batches):
        excess, other, _ = halves_of(counts, AT_ONCE, rng)
        for bias in BIASES:
            taken = excess > bias * math.sqrt(ROWS)
            accepted[bias] += int(taken.sum())
            above = tester.delta(excess[taken], other[taken]) > sum(DELTAS) / 2
            right[bias] += int((above == (delta > sum(DELTAS) / 2)).sum())
        taken = excess > math.sqrt(ROWS)
        excesses.append(excess[taken])
        others.append(other[taken])
    return {
        "delta": delta, "tried": batches * AT_ONCE, "accepted": list(accepted.values()),
        "right": list(right.values()), "excess": np.concatenate(excesses).round(2).tolist(),
        "other": np.concatenate(others).round(2).tolist(),
    }  # fmt: skip


def covaried(delta: float, seed: int) -> dict[str, Any]:
    """How often Δ̂ = (4/n)·cov/p decides rightly, by the number of halves."""
    counts = cells(ROWS, SHARE, SHARE, delta)
    rng = np.random.default_rng([seed, 7, round(1000 * delta)])
    right = []
    for number in HALVES:
        excess, other, _ = halves_of(counts, number * TRIALS, rng)
        one, two = (x.reshape(TRIALS, number) for x in (excess, other))
        product = ((one - one.mean(axis=1, keepdims=True)) * two).sum(axis=1) / (number - 1)
        found = 4 / ROWS * product / SHARE
        right.append(float(np.mean((found > sum(DELTAS) / 2) == (delta > sum(DELTAS) / 2))))
    return {"delta": delta, "right": right}


def on_adult(batches: int, seed: int) -> dict[str, Any]:
    """Married and rich people: how often a half is accepted, and Δ distinguished from Δ − .1."""
    p, q, both = share("married"), share("rich"), share("married", "rich")
    delta = both / p - q
    counts = cells(ROWS, p, q, delta)
    tester, rng = Tester(ROWS, p, (0.0, 0.0)), np.random.default_rng([seed, 11])
    found = {bias: [0, 0] for bias in ADULT}
    for _ in range(batches):
        excess, other, size = halves_of(counts, AT_ONCE, rng)
        for bias, counted in found.items():
            taken = excess > bias * math.sqrt(ROWS)
            limit = tester.threshold(excess[taken], size[taken], q, delta - 0.1)
            counted[0] += int(taken.sum())
            counted[1] += int((other[taken] + size[taken] * q > limit).sum())
    tried = batches * AT_ONCE
    return {"accepted": [a / tried for a, _ in found.values()],
            "right": [right / a for a, right in found.values()]}  # fmt: skip


def parts(run: Run) -> list[Part]:
    """Tests on Adult, decisions by covariance, and searches for biased halves."""
    batches = 6 if run.quick else 16
    return [
        Part(on_adult, {"batches": 2, "seed": run.first}),
        *(Part(covaried, {"delta": delta, "seed": run.first}) for delta in DELTAS),
        *(
            Part(searched, {"delta": delta, "batches": batches, "seed": seed})
            for delta in DELTAS
            for seed in run.seeds(20, 5)
        ),
    ]


def conclude(_: Run, results: Sequence[Any]) -> Finding:
    """Compare how often the two testers decide rightly, and how many questions they take."""
    adult, covariance, found = results[0], results[1:3], results[3:]
    decided = deciding(covariance, found)
    return Finding(
        checks=tuple(checks(adult, found, decided)),
        tables={"": decided, "halves": accepted_halves(found)},
        picture=lambda: picture(accepted_halves(found), decided, separation(found), ROWS, DELTAS),
        title=title(decided),
        subtitle=(
            f"α and β hold of half of {ROWS:,} rows each; Δ = Pr[β|α] − Pr[β] is "
            f"{DELTAS[0]:g} or {DELTAS[1]:g}. No noise.",
            "Left: a(q, β) of the halves with √n more of α than expected, as the slide draws it. "
            "Right: what a decision costs.",
        ),
    )


def title(decided: Mapping[str, Sequence[Any]]) -> str:
    """How many questions the covariance needs to do as well as the slides' tester."""
    rows = list(zip(decided["tester"], decided["questions"], decided["right"], strict=True))
    slides = next(row for row in rows if row[0] == "one biased half")
    enough = [row[1] for row in rows if row[0] == "covariance" and row[2] >= slides[2]]
    if not enough:
        return f"The tester decides with {slides[1]:,.0f} questions"
    return (
        f"What the tester decides with {slides[1]:,.0f} questions, the covariance decides "
        f"with {min(enough):,.0f}"
    )


def deciding(covariance: Sequence[Any], found: Sequence[Any]) -> dict[str, list[Any]]:
    """The cost of a decision and how often it is right, over both values of Δ."""
    tried = sum(one["tried"] for one in found)
    rows = []
    for place, bias in reversed(list(enumerate(BIASES))):
        accepted = sum(one["accepted"][place] for one in found)
        right = sum(one["right"][place] for one in found) / max(1, accepted)
        rows.append(("one biased half", bias, tried / max(1, accepted) + 1, right))
    for place, number in enumerate(HALVES):
        right = float(np.mean([one["right"][place] for one in covariance]))
        rows.append(("covariance", math.nan, 2 * number, right))
    names = ("tester", "bias", "questions", "right")
    columns = columns_from(names, rows)
    columns["bias"] = [None if math.isnan(x) else x for x in columns["bias"]]
    return columns


def accepted_halves(found: Sequence[Any]) -> dict[str, list[Any]]:
    """Every accepted half: its Δ, its excess of α and its excess of β."""
    listed = [(one["delta"], x, y) for one in found
              for x, y in zip(one["excess"], one["other"], strict=True)]  # fmt: skip
    return {"delta": [row[0] for row in listed], "excess": [row[1] for row in listed],
            "other": [row[2] for row in listed]}  # fmt: skip


def of(found: Sequence[Any], delta: float, name: str) -> Counts:
    """One quantity of all accepted halves with this Δ."""
    return np.concatenate([np.array(one[name]) for one in found if one["delta"] == delta])


def separation(found: Sequence[Any]) -> float:
    """How far apart the two bells are, in (Δ₂ − Δ₁)·√n."""
    means = [float(of(found, delta, "other").mean()) for delta in DELTAS]
    return (means[1] - means[0]) / (DELTAS[1] - DELTAS[0]) / math.sqrt(ROWS)


def checks(
    adult: Mapping[str, Any], found: Sequence[Any], decided: Mapping[str, Sequence[Any]]
) -> list[Check]:
    """Acceptance rates, the distance of the bells, and whether the testers decide."""
    rate = Sample.of([one["accepted"][-1] / one["tried"] for one in found])
    numbers = [
        Number("a random half is accepted, as written", None, rate, 0.5e-5, 3e-5,
               "√n is four standard deviations of a(q, α) − |q|·p(α), which is √n/4 at most",
               average=True),
        apart(found),
    ]  # fmt: skip
    for place, (bias, (accepted, right)) in enumerate(ADULT.items()):
        numbers += [
            Number(f"Adult, bias {bias:g}·√n: halves accepted", None,
                   Sample.of(adult["accepted"][place]), accepted * 0.02, accepted),
            Number(f"Adult, bias {bias:g}·√n: Δ distinguished from Δ − 0.1", None,
                   Sample.of(adult["right"][place]), 0.02, right),
        ]  # fmt: skip
    return [*numbers, finding(rate.mean), *decisions(decided)]


def apart(found: Sequence[Any]) -> Number:
    """The distance of the bells: with x more of α, β has x·Δ/(1 − p) more on average."""
    gap = np.array([separation([one, two]) for one, two in pairs(found)])
    excess = float(np.mean(np.concatenate([np.array(one["excess"]) for one in found])))
    return Number(
        "distance of the two bells, in (Δ₂ − Δ₁)·√n", 1.0, Sample.of(gap.tolist()), 0.05,
        excess / math.sqrt(ROWS) / (1 - SHARE),
        "a half with x more of α has x·Δ/(1 − p(α)) more of β: the slide leaves out 1/(1 − p(α))",
        average=True,
    )  # fmt: skip


def pairs(found: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Searches with Δ₁ and with Δ₂, seed by seed."""
    one, two = ([part for part in found if part["delta"] == delta] for delta in DELTAS)
    return list(zip(one, two, strict=True))


def finding(rate: float) -> Claim:
    """Whether a biased half is likely to be found with few questions."""
    chance = -math.expm1(FEW * math.log1p(-rate))
    return Claim(
        f"a biased half is found among {FEW:,} ≪ n",
        "find a query q s.t. a(q, α) > |q|·p(α) + sqrt(n)",
        f"with a chance of {chance:.3f}; {1 / rate:,.0f} halves are tried on average",
        agrees=chance >= DECIDES,
        expected=False,
        why="a four σ event; and every half that is tried costs a question",
    )


def decisions(decided: Mapping[str, Sequence[Any]]) -> list[Claim]:
    """Whether each tester is right often enough."""
    rows = list(zip(decided["tester"], decided["bias"], decided["questions"], decided["right"],
                    strict=True))  # fmt: skip
    slides = next(row for row in rows if row[1] == 1.0)
    cheap = max((row for row in rows if row[0] == "covariance"), key=lambda row: row[2])
    printed = "a tester for distinguishing Δ < Δ₁ from Δ > Δ₂"
    return [
        Claim("the slides' tester, once it has its half", printed,
              f"right in {100 * slides[3]:.0f} % of the accepted halves",
              agrees=slides[3] >= DECIDES),
        Claim(f"the covariance over {cheap[2] // 2:,} halves", printed,
              f"right in {100 * cheap[3]:.1f} %, with {cheap[2]:,.0f} questions",
              agrees=cheap[3] >= DECIDES and cheap[2] < FEW),
    ]  # fmt: skip


FIGURE = Figure(
    "crypto04-tester", CRYPTO04, "The tester of implication: two bells, and what a decision costs",
    parts, conclude,
)  # fmt: skip


# ------------------------ the slide's two bells, and chances to decide rightly over what they cost


BINS = 28
WIDTH, HEIGHT = 400, 360
Columns = Mapping[str, Sequence[Any]]


def picture(
    halves: Columns, decided: Columns, separation: float, rows: int, deltas: Sequence[float]
) -> Any:
    """The two bells, beside the cost of a decision."""
    return beside(bells(halves, separation, rows, deltas), costs(decided))


def bells(halves: Columns, separation: float, rows: int, deltas: Sequence[float]) -> Any:
    """Histograms of a(q, β) − |q|·p(β), in √n."""
    alt = altair()
    scaled = np.array(halves["other"]) / math.sqrt(rows)
    known = np.array(halves["delta"])
    edges = np.linspace(scaled.min(), scaled.max(), BINS + 1)
    names = [f"Δ = {delta:g}" for delta in deltas]
    bars: list[dict[str, Any]] = [
        {"x": float(edges[i]), "x2": float(edges[i + 1]), "count": int(count), "zero": 0, "Δ": name}
        for delta, name in zip(deltas, names, strict=True)
        for i, count in enumerate(np.histogram(scaled[known == delta], edges)[0])
    ]
    top = max(bar["count"] for bar in bars)
    height = alt.Scale(domain=[0, 1.25 * top], nice=False)
    x = alt.X("x:Q", title="a(q, β) − |q|·p(β), in √n", scale=alt.Scale(zero=False, nice=False))
    colour = alt.Color("Δ:N", title=None, scale=alt.Scale(domain=names, range=[BLUE, VERMILION]),
                       legend=alt.Legend(orient="top"))  # fmt: skip
    drawn = chart(bars).mark_rect(opacity=0.55).encode(
        x=x, x2="x2:Q", y=alt.Y("zero:Q", title="accepted halves", scale=height), y2="count:Q",
        color=colour,
    )  # fmt: skip
    means = [float(scaled[known == delta].mean()) for delta in deltas]
    arrow = [{"x": means[0], "x2": means[1], "y": 1.08 * top}]
    word = [{"x": sum(means) / 2, "y": 1.16 * top,
             "text": f"{separation:.2f}·(Δ2 − Δ1)·√n; printed: 1"}]  # fmt: skip
    y = alt.Y("y:Q", scale=height)
    layers = (
        drawn,
        chart([{"x": mean, "y": 0, "y2": 1.08 * top} for mean in means])
        .mark_rule(color=INK, strokeDash=[4, 3])
        .encode(x=x, y=y, y2="y2:Q"),
        chart(arrow).mark_rule(color=INK, strokeWidth=2).encode(x=x, x2="x2:Q", y=y),
        chart(word).mark_text(fontSize=13, color=INK).encode(x=x, y=y, text="text:N"),
    )
    heading = f"{len(known):,} halves that were accepted"
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=heading)


def costs(decided: Columns) -> Any:
    """The chance to decide rightly over the number of questions, for both testers."""
    alt = altair()
    names = ["one biased half", "covariance"]
    base = chart(records(decided)).encode(
        x=alt.X("questions:Q", title="questions asked, on average", scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~s", tickCount=5)),
        y=alt.Y("right:Q", title="chance to decide rightly", axis=alt.Axis(format=".0%"),
                scale=alt.Scale(domain=[0.5, 1.0])),
        color=alt.Color("tester:N", title=None,
                        scale=alt.Scale(domain=names, range=[VERMILION, BLUE]),
                        legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=400)),
    )  # fmt: skip
    biased = base.transform_filter("datum.bias != null")
    words = biased.mark_text(align="left", dx=6, dy=16, fontSize=12).encode(
        text=alt.Text("label:N"), color=alt.value(SOFT)
    )
    labelled = words.transform_calculate(
        label="datum.bias == 1 ? 'as printed, √n' : format(datum.bias, '.1f') + '·√n'"
    )
    line = base.mark_line(strokeWidth=2.5)
    points = base.mark_point(filled=True, size=50, opacity=1)
    return alt.layer(line, points, labelled).properties(
        width=WIDTH, height=HEIGHT, title="What a decision costs"
    )
