"""Published statistics: tables of random halves for questions about twice as many columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import voile
from voile.kinds.counts.expected import Published, break_even, halves_needed
from voile.reproduce.crypto04.adult import PROPERTIES, combinations_counted, properties
from voile.reproduce.figure import Figure, Finding, Part, Run, columns_from
from voile.reproduce.look import (
    BLUE,
    INK,
    METHOD_COLOURS,
    SOFT,
    VERMILION,
    altair,
    beside,
    chart,
    records,
)
from voile.reproduce.papers import CRYPTO04
from voile.reproduce.verdict import Check, Claim, Number, Sample

ROWS, COLUMNS, ARITY, RHO = 32_561, 8, 2, 0.5
"""Eight Boolean columns of Adult, tables of two, and the budget ρ of all figures together."""
SLIDES = 18
"""Halves at which the slides' tables err least at that budget."""
NAMES = tuple("abcdefgh")
WAYS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))
"""The ways to split four columns into two pairs."""
ERROR = 0.05
Floats = npt.NDArray[np.float64]
METHODS = {
    "slides": "halves, as on the slides",
    "averaged": "the same, three ways averaged",
    "halves": "halves, as Voile publishes",
    "direct": "tables of all four columns",
}


# ---------------------------------------------------------------------- errors at equal budget


def as_on_slides(seed: int) -> dict[str, float]:
    """The errors of the slides' method: a table of every pair, on one side of each half."""
    rng = np.random.default_rng([seed, 4])
    true = combinations_counted()
    halves = rng.binomial(true, 0.5, (SLIDES, *true.shape)).astype(np.float64)
    deviation = math.sqrt(Published((2,) * COLUMNS, ARITY, SLIDES, ROWS, RHO).variance)
    size = halves.sum(axis=tuple(range(1, COLUMNS + 1)))
    tables = {}
    for some in combinations(range(COLUMNS), ARITY):
        share = margin(true, some).ravel() / ROWS
        counts = margin(halves, some, 1).reshape(SLIDES, -1)
        noisy = counts + np.rint(rng.normal(0, deviation, counts.shape))
        tables[some] = (share, noisy - np.outer(size, share))
    offs = [off_by(tables, four, true) for four in combinations(range(COLUMNS), 2 * ARITY)]
    return {
        "slides": rms(np.array(offs)),
        "averaged": rms(np.array([off.mean(axis=0) for off in offs])),
    }  # fmt: skip


def margin(counts: npt.NDArray[Any], some: Sequence[int], before: int = 0) -> npt.NDArray[Any]:
    """Counts of some columns, the others summed over."""
    others = tuple(before + j for j in range(COLUMNS) if j not in some)
    return np.asarray(counts.sum(axis=others))


def off_by(tables: Mapping[Any, tuple[Floats, Floats]], four: Sequence[int], true: Any) -> Floats:
    """The errors of the shares of four columns' conjuncts, for each way to pair the columns."""
    found = []
    for a, b, c, d in WAYS:
        one, other = (four[a], four[b]), (four[c], four[d])
        (p, left), (q, right) = tables[one], tables[other]
        covariance = (left - left.mean(axis=0)).T @ right / (SLIDES - 1)
        joint = (np.outer(p, q) + 4 / ROWS * covariance).reshape((2,) * 4)
        back = np.argsort([a, b, c, d])
        found.append(joint.transpose(back) - margin(true, four) / ROWS)
    return np.array(found)


def as_voile(direct: bool, seed: int) -> dict[str, float]:
    """Publish the tables, query every conjunct of four columns, and compare."""
    frame = pa.table({n: properties()[p] for n, p in zip(NAMES, PROPERTIES, strict=True)})
    arity = 2 * ARITY if direct else ARITY
    release = voile.publish(
        frame, method="conjuncts", arity=arity, direct=direct, rho=RHO, simulate_seed=seed
    )
    off = []
    for four in combinations(range(COLUMNS), 2 * ARITY):
        names = ", ".join(NAMES[j] for j in four)
        answer = release.query(f"select {names}, count(*) as n from t group by {names}")
        estimate = np.full((2,) * 4, np.nan)
        for row in answer.rows:
            estimate[tuple(int(row[NAMES[j]]) for j in four)] = row["n"].value
        off.append((estimate - margin(combinations_counted(), four)) / ROWS)
    figures = release.manifest.rows
    return {"direct" if direct else "halves": rms(np.array(off)), "figures": float(figures),
            "halves_published": float(release.manifest.parameters.halves)}  # fmt: skip


def rms(values: Floats) -> float:
    """The root mean square of the values."""
    return float(np.sqrt(np.mean(np.square(values))))


# ---------------------------------------------------------------------- savings


def savings() -> dict[str, list[Any]]:
    """How many figures each way needs for all conjuncts of 2d columns, for an error of .05."""
    rows = []
    for arity in (1, 2, 3):
        for columns in (8, 16, 32, 64, 128, 256):
            if columns < 2 * arity:
                continue
            halves = math.ceil(halves_needed(columns, arity))
            parted = halves * math.comb(columns, arity) * 2**arity
            whole = math.comb(columns, 2 * arity) * 4**arity
            printed = slides_saving(columns, arity) if arity > 1 else None
            rows.append((arity, columns, halves, parted, whole, parted / whole, printed))
    names = ("d", "k", "t", "figures_halves", "figures_direct", "ratio", "printed_ratio")
    return columns_from(names, rows)


def slides_saving(columns: int, arity: int) -> float:
    """2^(5d)·k^d·d²·log d over 2^(2d)·k^(2d), as printed, without its constants; 0 at d = 1."""
    top = 2.0 ** (5 * arity) * columns**arity * arity**2 * math.log2(arity)
    return float(top / (2.0 ** (2 * arity) * float(columns) ** (2 * arity)))


def slides_break_even(arity: int) -> int:
    """The least k from which halves need fewer figures, by the printed formula."""
    columns = 2 * arity
    while slides_saving(columns, arity) >= 1:
        columns += 1
    return columns


def parts(run: Run) -> list[Part]:
    """Errors of the slides' halves and of Voile's own releases, with and without halves."""
    return [
        *(Part(as_on_slides, {"seed": seed}) for seed in run.seeds(20, 8)),
        *(Part(as_voile, {"direct": direct, "seed": seed})
          for direct, seeds in ((False, run.seeds(3, 1)), (True, run.seeds(20, 4)))
          for seed in seeds),
    ]  # fmt: skip


def conclude(_: Run, results: Sequence[Any]) -> Finding:
    """Compare the errors at equal privacy, and the figures that each way needs."""
    errors = {
        method: Sample.of([one[method] for one in results if method in one]) for method in METHODS
    }
    table: dict[str, list[Any]] = {
        "method": list(METHODS.values()),
        "error": [errors[m].mean for m in METHODS],
        "sd": [errors[m].sd for m in METHODS],
        "runs": [errors[m].runs for m in METHODS],
        "figures": figures(results),
    }
    saved = savings()
    factor = errors["slides"].mean / errors["direct"].mean
    return Finding(
        checks=tuple(checks(errors, saved, results)),
        tables={"": table, "savings": saved},
        picture=lambda: picture(table, saved),
        title=f"Halves save figures, not privacy: at the same promise they err {factor:.0f} times "
        "as much",
        subtitle=(
            f"Left: error of all conjuncts of four of eight Boolean columns of Adult, {ROWS:,} "
            f"rows, everything published within ρ = {RHO:g}.",
            "Right: how many figures the two ways need for conjuncts of 2d of k columns within "
            "0.05, without any noise.",
        ),
    )


def figures(results: Sequence[Any]) -> list[int]:
    """How many figures each method publishes, in the order of METHODS."""
    slides = SLIDES * math.comb(COLUMNS, ARITY) * 2**ARITY
    published = [next(int(one["figures"]) for one in results if method in one)
                 for method in ("halves", "direct")]  # fmt: skip
    return [slides, slides, *published]


def checks(
    errors: Mapping[str, Sample], saved: Mapping[str, Sequence[Any]], results: Sequence[Any]
) -> list[Check]:
    """The errors beside an independent program's, the break-even points and the claims."""
    halves = next(one for one in results if "halves" in one)
    t = halves["halves_published"]
    one_side = t * math.comb(COLUMNS, ARITY) * 2**ARITY
    return [
        Number("error of 4-ary conjuncts, slides' halves", None, errors["slides"], 0.0005, 0.072),
        Number("error, averaged over three ways", None, errors["averaged"], 0.0005, 0.049),
        Number("error of 4-ary tables by the formula, same promise", None,
               Sample.of(Published((2,) * COLUMNS, 2 * ARITY, 0, ROWS, RHO).error), 0.000005,
               0.00036),
        Number("error of 4-ary tables as released", None, errors["direct"], 0.000005,
               0.00036 * math.sqrt(15 / 16), "a table's sum is known: 1/16 of its noise comes off",
               average=True),
        Number("figures published, t·C(k,d)·2^d, of one side", one_side,
               Sample.of(halves["figures"] / 2),
               why=f"the printed formula at t = {t:.0f}, k = {COLUMNS}, d = {ARITY}"),
        Number("k from which halves need fewer figures, d = 2", None,
               Sample.of(break_even(2)), 0.0, 57),
        Number("… for all Boolean functions", None, Sample.of(break_even(2, functions=True)), 1.0,
               1100, "an independent program; at 1,099 the two ways are alike within 0.1 %"),
        Number("… by the printed formula", None, Sample.of(slides_break_even(2)), 0.0, 17,
               "2^(5d)·k^d·d²·log d without its constants, which are not small"),
        *(fewer(saved, columns) for columns in (COLUMNS, 256)),
        within(errors["slides"]),
        Claim("Voile's halves beside the slides'", "is there an alternative way to perturb and use "
              "the data that would result in more accurate datamining?",
              f"both sides, equal sizes: error {errors['halves'].mean:.3f} for "
              f"{errors['averaged'].mean:.3f}",
              agrees=errors["halves"].mean < errors["averaged"].mean),
    ]  # fmt: skip


def within(slides: Sample) -> Claim:
    """Whether two standard errors of a conjunct are within .05."""
    return Claim(
        f"all conjuncts of four within {ERROR:g}, at ρ = {RHO:g}",
        "t picked such that statistics for all functions is estimated within additive error ε",
        f"the root mean square is {slides.mean:.3f} at the best t, {SLIDES}",
        agrees=2 * slides.mean <= ERROR,
        expected=False,
        why="each half costs as much privacy as a table of all rows: more halves need more noise",
    )


def fewer(saved: Mapping[str, Sequence[Any]], columns: int) -> Claim:
    """For d = 2 and 3: whether halves need fewer figures than the tables that they stand for."""
    wanted = [i for i, k in enumerate(saved["k"]) if k == columns and saved["d"][i] > 1]
    ratios = ", ".join(f"{saved['ratio'][i]:.2g} (d = {saved['d'][i]})" for i in wanted)
    many = columns > break_even(2)
    return Claim(
        f"figures by halves over figures of tables of 2d, k = {columns}",
        "savings: t·C(k,d)·2^d numbers vs. C(k,2d)·2^(2d) numbers",
        f"{ratios}, for an error of {ERROR:g}",
        agrees=all(saved["ratio"][i] < 1 for i in wanted),
        expected=many,
        why="" if many else "an error of 0.05 takes t in the hundreds, whatever k is",
    )


FIGURE = Figure(
    "crypto04-published", CRYPTO04,
    "Published statistics: figures saved, and errors at equal privacy",
    parts, conclude,
)  # fmt: skip


# -------------------------------------- errors at equal privacy, and figures that are saved or not


WIDTH, HEIGHT = 400, 300
Columns = Mapping[str, Sequence[Any]]


def picture(errors: Columns, saved: Columns) -> Any:
    """The errors of the methods, beside the figures that halves save."""
    return beside(errors_of(errors), savings_chart(saved))


def errors_of(errors: Columns) -> Any:
    """The error of each method, on a logarithmic scale."""
    alt = altair()
    rows = [row | {"text": point_label(row)} for row in records(errors)]
    y = alt.Y("method:N", sort=None, title=None,
              axis=alt.Axis(labelLimit=260, grid=True))  # fmt: skip
    x = alt.X("error:Q", title="error of a conjunct's share (root mean square)",
              scale=alt.Scale(type="log", domain=[1e-4, 1], nice=False),
              axis=alt.Axis(values=[0.0001, 0.001, 0.01, 0.1, 1], format="~g"))  # fmt: skip
    colour = alt.condition("datum.error < 0.01", alt.value(BLUE), alt.value(VERMILION))
    points = chart(rows).mark_point(filled=True, size=160, opacity=1)
    words = chart(rows).mark_text(dy=-16, fontSize=12, color=SOFT)
    layers = (
        points.encode(x=x, y=y, color=colour),
        words.encode(x=x, y=y, text="text:N"),
    )
    return alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, title="The same promise, four ways"
    )


def point_label(row: Mapping[str, Any]) -> str:
    """The error of a method and the figures it takes, as its point is labelled."""
    return f"{row['error']:.2g}, {row['figures']:,} figures"


def savings_chart(saved: Columns) -> Any:
    """Figures by halves over figures of the larger tables; below 1 halves save."""
    alt = altair()
    counted = [{"k": r["k"], "ratio": r["ratio"], "how": f"d = {r['d']}"} for r in records(saved)]
    printed = [{"k": r["k"], "ratio": r["printed_ratio"], "how": "d = 2, printed formula"}
               for r in records(saved) if r["d"] == 2]  # fmt: skip
    names = ["d = 1", "d = 2", "d = 3", "d = 2, printed formula"]
    base = chart(counted + printed).encode(
        x=alt.X("k:Q", title="columns k", scale=alt.Scale(type="log", domain=[7, 300], nice=False),
                axis=alt.Axis(values=[8, 16, 32, 64, 128, 256], format="d")),
        y=alt.Y("ratio:Q", title="figures by halves / figures of tables of 2d",
                scale=alt.Scale(type="log"), axis=alt.Axis(format=",~r", tickCount=6)),
        color=alt.Color("how:N", title=None,
                        scale=alt.Scale(domain=names, range=[*METHOD_COLOURS[:3], SOFT]),
                        legend=alt.Legend(orient="bottom-left", symbolType="stroke",
                                          symbolSize=300)),
        strokeDash=alt.StrokeDash("how:N", legend=None,
                                  scale=alt.Scale(domain=names, range=[[1, 0]] * 3 + [[4, 4]])),
    )  # fmt: skip
    even = chart([{"ratio": 1.0}]).mark_rule(color=INK, strokeWidth=1.2).encode(y="ratio:Q")
    word = chart([{"ratio": 1.0, "k": 290}]).mark_text(
        text="below: halves save", align="right", dy=12, fontSize=12, color=INK
    )
    layers = (even, base.mark_line(strokeWidth=2.4), base.mark_point(filled=True, size=40),
              word.encode(x="k:Q", y="ratio:Q"))  # fmt: skip
    return alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, title="Figures that halves need"
    )
