"""The privacy analysis of the SuLQ database: confidence as a random walk over T answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from voile.evaluate.sulq import Setup, simulate
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import BLUE, INK, VERMILION, altair, beside, chart
from voile.reproduce.papers import CRYPTO04
from voile.reproduce.verdict import Check, Claim, Number, Sample

QUERIES, DELTA = 100, 1.0
ETAS = (1e-3, 1e-6)
WALKERS = 10_000
BINS = 80
REACH = 4.0
"""How far up and down the ends of walks are counted."""
NEGLIGIBLE = 1e-3
"""A chance that is larger than this is not neg(n) for any n that fits a server."""
NOISE = "on the slides the noise is Binomial(0, √T): its variance is T"


def walked(eta: float, seed: int) -> dict[str, Any]:
    """Walks with the slides' noise, and with what (δ, T, η) needs."""
    setup = Setup(
        queries=QUERIES, delta=DELTA, eta=eta, variance=float(QUERIES), walkers=WALKERS
    )  # fmt: skip
    found = simulate(setup, seed=seed)
    return {
        "eta": eta,
        "ratio": found.needed.formula / QUERIES,
        "ratio_drawn": found.needed.variance / QUERIES,
        "slides": summary(found.chosen),
        "needed": summary(found.beside),
    }


def summary(outcome: Any) -> dict[str, Any]:
    """The probabilities for one noise, and the walks that are drawn."""
    walks = outcome.walks
    ends = walks.ends
    finite = ends[np.isfinite(ends)]
    bars, _ = np.histogram(np.clip(finite, -REACH, REACH), BINS, (-REACH, REACH))
    return {
        "above": float((ends > DELTA).mean()),
        "either": float((np.abs(ends) > DELTA).mean()),
        "exact": outcome.bounds.end,
        "exact_either": outcome.bounds.either,
        "any_property": outcome.bounds.any_property,
        "mean": float(finite.mean()),
        "sd": float(finite.std()),
        "rare": [outcome.rare_end.chance, outcome.rare_end.error],
        "rare_ever": [outcome.rare_anytime.chance, outcome.rare_anytime.error],
        "times": walks.times.tolist(),
        "quantiles": walks.quantiles.round(4).tolist(),
        "drawn": walks.drawn.round(4).tolist(),
        "ever": walks.ever[: len(walks.drawn)].tolist(),
        "bars": bars.tolist(),
    }


def parts(run: Run) -> list[Part]:
    """One set of walks at the larger η, and one for each seed at the smaller."""
    first = Part(walked, {"eta": ETAS[0], "seed": run.first})
    return [first, *(Part(walked, {"eta": ETAS[1], "seed": seed}) for seed in run.seeds(20, 4))]


def conclude(_: Run, results: Sequence[Any]) -> Finding:
    """How often walks exceed δ with the slides' noise, and with what the promise needs."""
    strict = [one for one in results if one["eta"] == ETAS[1]]
    table = rows(results)
    ratio, above = strict[0]["ratio"], strict[0]["slides"]["exact"]
    return Finding(
        checks=tuple(checks(results)),
        tables={"": table},
        picture=lambda: picture(strict[0], QUERIES, DELTA, REACH),
        title=f"With noise of variance T {100 * above:.0f} % are beyond δ; {ratio:.1f}·T keeps the "
        "promise",
        subtitle=(
            f"How far {WALKERS:,} adversaries who know every other row move in {QUERIES} answers. "
            "Bands: 50, 90 and 99 % of them.",
            "Dashed: the compromise, conf + δ with δ = 1, that T steps are not to reach. Orange: "
            "walks that reached it.",
        ),
    )


def rows(results: Sequence[Any]) -> dict[str, list[Any]]:
    """A row for each run and noise."""
    flat = [(one["eta"], name, one[name]) for one in results for name in ("slides", "needed")]
    ratios = [1.0 if name == "slides" else one["ratio"]
              for one in results for name in ("slides", "needed")]  # fmt: skip
    columns = ("above", "either", "exact", "exact_either", "any_property", "mean", "sd")
    return {
        "eta": [eta for eta, _, _ in flat],
        "noise": [name for _, name, _ in flat],
        "variance_over_queries": ratios,
        **{name: [found[name] for _, _, found in flat] for name in columns},
        "weighed": [found["rare"][0] for _, _, found in flat],
        "weighed_ever": [found["rare_ever"][0] for _, _, found in flat],
    }


def checks(results: Sequence[Any]) -> list[Check]:
    """The noise needed, the law of the walk's end, and whether (δ, T)-privacy holds."""
    promised = {eta: [one for one in results if one["eta"] == eta] for eta in ETAS}
    slides = [one["slides"] for one in promised[ETAS[1]]]  # a seed's walks are the same for all η
    return [
        *(Number(f"V/T that δ = 1, η = {eta:g} needs", 1.0,
                 Sample.of(promised[eta][0]["ratio"]), 0.05, right, NOISE)
          for eta, right in zip(ETAS, (10.5, 23.6), strict=True)),
        Number("chance that conf rises by more than 1, V = T", None, over(slides, "above"), 0.005,
               0.31, average=True),
        Number("chance that conf moves by more than 1, V = T", None, over(slides, "either"), 0.005,
               0.375, "the end is N(½, 1): .309 above and .067 below", average=True),
        Number("mean of the walk's end, V = T", None, over(slides, "mean"), 0.005, 0.5,
               average=True),
        Number("standard deviation of the walk's end, V = T", None, over(slides, "sd"), 0.005, 1.0,
               average=True),
        broken(slides),
        *(kept(eta, [one["needed"] for one in promised[eta]]) for eta in ETAS),
        highest([one["needed"] for one in promised[ETAS[1]]]),
    ]  # fmt: skip


def over(found: Sequence[Mapping[str, Any]], name: str) -> Sample:
    """One quantity, over all runs."""
    return Sample.of([one[name] for one in found])


def broken(slides: Sequence[Mapping[str, Any]]) -> Claim:
    """Whether noise of variance T keeps (δ, T)-privacy."""
    chance = over(slides, "above").mean
    return Claim(
        "(δ, T)-privacy with noise of variance T",
        "w.h.p. more than T steps needed to reach compromise",
        f"after T steps {100 * chance:.0f} % are beyond δ = 1",
        agrees=chance <= NEGLIGIBLE,
        expected=False,
        why="with V = T the walk's end is N(½, 1) whatever T is; V must be about 2·ln(1/η)/δ² "
        "times as large",
    )


def kept(eta: float, needed: Sequence[Mapping[str, Any]]) -> Claim:
    """Whether this noise keeps (δ, T)-privacy, by importance sampling."""
    chance = fmean_of(needed, "rare")
    error = spread_of(needed, "rare")
    return Claim(
        f"(δ, T)-privacy with the noise that η = {eta:g} needs",
        "Pr[Δconf > δ] = neg(n)",
        f"{chance:.3g} ± {error:.1g}",
        agrees=chance - 3 * error <= eta,
    )


def highest(needed: Sequence[Mapping[str, Any]]) -> Claim:
    """Whether compromise at any step up to T is as unlikely, with the noise that is needed."""
    ever = fmean_of(needed, "rare_ever")
    ratio = ever / fmean_of(needed, "rare")
    return Claim(
        f"compromise at some step up to T, with the noise that η = {ETAS[1]:g} needs",
        "w.h.p. more than T steps needed to reach compromise, conf(p_m) − conf(p_0) > δ",
        f"reached with chance {ever:.2g}, {ratio:.2f} times as likely as at the end",
        agrees=1 <= ratio <= 2 and ever <= NEGLIGIBLE,
        why="by Lévy's inequality at most twice; --anytime takes the noise for it",
    )


def fmean_of(found: Sequence[Mapping[str, Any]], name: str) -> float:
    """The mean chance over the runs."""
    return float(np.mean([one[name][0] for one in found]))


def spread_of(found: Sequence[Mapping[str, Any]], name: str) -> float:
    """The standard error of the mean, as the runs state theirs."""
    return math.sqrt(sum(one[name][1] ** 2 for one in found)) / len(found)


FIGURE = Figure(
    "crypto04-walk", CRYPTO04, "The confidence walk: V = T, and what (δ, T)-privacy needs",
    parts, conclude,
)  # fmt: skip


# ----------------------------------- two fans of walks side by side, each with where its walks end


WIDTH, HEIGHT, SIDE = 360, 380, 80
BANDS = ((0, 6, 0.16), (1, 5, 0.22), (2, 4, 0.3))
"""Places among the quantiles: between them are 99, 90 and 50 % of the walkers."""


def picture(found: Mapping[str, Any], queries: int, delta: float, reach: float) -> Any:
    """Walks with the slides' noise, beside walks with the noise that the promise needs."""
    named = (
        (f"The slides' noise: V = T = {queries}", found["slides"]),
        (f"What η = {found['eta']:g} needs: V = {found['ratio_drawn']:.1f}·T", found["needed"]),
    )
    fans = [fan(title, one, queries, delta, reach) for title, one in named]
    return beside(*fans)


def fan(title: str, one: Mapping[str, Any], queries: int, delta: float, reach: float) -> Any:
    """The walks of one noise: their bands, some of them, the limit, and where they end."""
    alt = altair()
    domain = alt.Scale(domain=[-reach, reach], nice=False, clamp=True)
    y = alt.Y("y:Q", title="change of conf", scale=domain, axis=alt.Axis(tickCount=8))
    x = alt.X("answer:Q", title="answers", scale=alt.Scale(domain=[0, queries]),
              axis=alt.Axis(grid=False, tickCount=5))  # fmt: skip
    said = f"beyond δ at the end: {chance(one['exact'])}; ever: {chance(one['rare_ever'][0])}"
    walks = alt.layer(*bands(one, x, y), *drawn(one, x, y), limit(delta, y)).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(title, subtitle=said)
    )
    return alt.hconcat(walks, ends(one, delta, reach), spacing=6).resolve_scale(y="shared")


def chance(p: float) -> str:
    """A probability in per cent, or in powers of ten where it is small."""
    return f"{100 * p:.1f} %" if p >= 1e-3 else f"{p:.1e}"


def bands(one: Mapping[str, Any], x: Any, y: Any) -> list[Any]:
    """Areas that hold 50, 90 and 99 % of the walks."""
    layers = []
    for low, high, opacity in BANDS:
        between = zip(one["times"], one["quantiles"][low], one["quantiles"][high], strict=True)
        rows = [{"answer": t, "y": a, "y2": b} for t, a, b in between]
        area = chart(rows).mark_area(color=BLUE, opacity=opacity, clip=True)
        layers.append(area.encode(x=x, y=y, y2="y2:Q"))
    return layers


def drawn(one: Mapping[str, Any], x: Any, y: Any) -> list[Any]:
    """A few walks; those that were ever beyond δ in orange."""
    layers = []
    for reached, colour, opacity in ((False, INK, 0.35), (True, VERMILION, 0.75)):
        rows = [
            {"answer": t, "y": c, "walk": i}
            for i, walk in enumerate(one["drawn"])
            if one["ever"][i] == reached
            for t, c in zip(one["times"], walk, strict=True)
        ]
        if rows:
            line = chart(rows).mark_line(color=colour, strokeWidth=0.9, opacity=opacity, clip=True)
            layers.append(line.encode(x=x, y=y, detail="walk:N"))
    return layers


def limit(delta: float, y: Any) -> Any:
    """A dashed line at δ."""
    rule = chart([{"y": delta}]).mark_rule(color=VERMILION, strokeDash=[6, 4], strokeWidth=1.8)
    return rule.encode(y=y)


def ends(one: Mapping[str, Any], delta: float, reach: float) -> Any:
    """Where walks end, as bars on the same axis."""
    alt = altair()
    width = 2 * reach / len(one["bars"])
    rows = [
        {"y": -reach + i * width, "y2": -reach + (i + 1) * width, "zero": 0, "x": bar,
         "beyond": -reach + (i + 0.5) * width > delta}
        for i, bar in enumerate(one["bars"])
    ]  # fmt: skip
    x = alt.X("zero:Q", axis=None, scale=alt.Scale(domain=[0, 1.05 * max(one["bars"])]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-reach, reach], nice=False))
    colour = alt.condition("datum.beyond", alt.value(VERMILION), alt.value(BLUE))
    bars = chart(rows).mark_rect(opacity=0.6).encode(x=x, x2="x:Q", y=y, y2="y2:Q", color=colour)
    word = chart([{"y": delta}]).mark_text(
        text="+δ", align="left", dx=4, dy=-7, fontSize=14, color=VERMILION
    )
    layers = (bars, limit(delta, y), word.encode(x=alt.value(SIDE), y=y))
    return alt.layer(*layers).properties(width=SIDE, height=HEIGHT)
