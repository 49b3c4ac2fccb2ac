"""Figure 1: how much larger than the table a view is, against γ, at k = 5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import voile
from voile.mechanisms import AlphaBeta
from voile.noise import Key
from voile.privacy import plan
from voile.reproduce.figure import Columns, Figure, Finding, Part, Run, columns_from, rows_at
from voile.reproduce.look import INK, altair, chart, lines, records
from voile.reproduce.papers import TR07
from voile.reproduce.verdict import Check, Claim, Number, Sample
from voile.reproduce.vldb07.adult import TABLE, adult, promise
from voile.schema import TupleIndex

FACTOR = 5
"""k."""
QUICK = (0.1, 0.2, 0.5, 0.9)
FULL = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CURVE = tuple(i / 100 for i in range(5, 96))
FORMULA, PLANNED = "printed formula, β = d/γ", "tight β, expected"
DEVIATIONS = 4
"""A size that is off by more standard deviations than these is not by chance."""


def loose(posterior: float) -> AlphaBeta:
    """The printed choice: α = ½ and β = d/γ."""
    return AlphaBeta(0.5, float(promise(Fraction(FACTOR), posterior).ratio_low), "set")


def tight(posterior: float) -> AlphaBeta:
    """The planner's choice: α = ½ and the least β that keeps the promise."""
    planned = plan(promise(Fraction(FACTOR), posterior), "multiset", retention=0.5)
    return AlphaBeta(planned.retention, planned.noise)


def expected(mechanism: AlphaBeta) -> tuple[float, float]:
    """Rows of a view for each row of the table: on average, and their standard deviation."""
    table, schema = adult()
    rows, kept = len(table), mechanism.retention
    free = schema.size - (rows if mechanism.form == "set" else 0)
    mean = rows * kept + mechanism.noise_mean * free
    spread = math.sqrt(rows * kept * (1 - kept) + mechanism.noise_variance * free)
    return mean / rows, spread / rows


def sizes(posterior: float, seed: int) -> dict[str, Any]:
    """A view with the printed β, and a release that the planner made for the same promise."""
    table, schema = adult()
    mechanism, index, key = loose(posterior), TupleIndex(schema.sizes), Key.from_seed(seed)
    members = table.keys(schema, drop_nulls=False)
    noise = mechanism.noise_rows(index, key, 0, 0, index.limbs[0].size)
    shown = sum(map(np.size, mechanism.view(members, noise, key, 0)))
    release = voile.publish(
        TABLE, prior_factor=FACTOR, posterior=posterior, retention=0.5, simulate_seed=seed
    )
    return {
        "printed": int(shown) / len(table),
        "planned": release.manifest.rows / len(table),
        "expected_printed": expected(mechanism),
        "expected_planned": expected(tight(posterior)),
    }


def curve() -> dict[str, list[float]]:
    """The planner's expected size for many γ."""
    return {
        "posterior": list(CURVE),
        "ratio": [expected(tight(posterior))[0] for posterior in CURVE],
    }


def parts(run: Run) -> list[Part]:
    """The planner's curve, and releases at several γ."""
    several = QUICK if run.quick else FULL
    return [Part(curve), *(Part(sizes, {"posterior": p, "seed": run.first}) for p in several)]


def conclude(run: Run, results: Sequence[Any]) -> Finding:
    """Compare the sizes of views with the printed β and with the least one."""
    planned, *found = results
    posteriors = QUICK if run.quick else FULL
    columns = columns_of(planned, posteriors, found)
    smaller = found[posteriors.index(0.2)]
    return Finding(
        checks=checks(posteriors, found),
        tables={"": columns},
        picture=lambda: drawn(columns),
        title="The view grows as 1/γ; the tight β makes it less than half",
        subtitle=[
            "Rows of the view for each row of Adult, k = 5, half of the records kept; points are",
            f"releases that were made. At γ = 0.2: {smaller['printed']:.1f} with the printed β, "
            f"{smaller['planned']:.1f} with the tight one.",
        ],
    )


def checks(posteriors: Sequence[float], found: Sequence[Any]) -> tuple[Check, ...]:
    """The sizes beside what is expected, and the report's two claims."""
    at = dict(zip(posteriors, found, strict=True))
    numbers: list[Check] = []
    for posterior in (0.1, 0.2, 0.5):
        one = at[posterior]
        # The curve's own formula is exact; a view differs from it by chance.
        numbers.append(
            Number(f"view ratio at γ = {posterior:g}", FACTOR / posterior + 0.5,
                   Sample.of(one["printed"]), DEVIATIONS * one["expected_printed"][1])
        )  # fmt: skip
        mean, spread = one["expected_planned"]
        numbers.append(
            Number(f"with the tight β at γ = {posterior:g}", None, Sample.of(one["planned"]),
                   DEVIATIONS * spread, right=mean)
        )  # fmt: skip
    least = min(one["printed"] for one in found)
    ratios = [one["planned"] / one["printed"] for one in found]
    return (
        *numbers,
        Claim("the view is larger than the table", "clearly V will be larger than I",
              f"at least {least:.1f} times with the printed β", least > 1),
        Claim("β = d/γ keeps (d, γ)", "next, we choose β = d/γ; this satisfies Theorem 4.1",
              f"and more: the least β needs views of {min(ratios):.2f} to {max(ratios):.2f} of "
              "that size", max(ratios) <= 1),
    )  # fmt: skip


def columns_of(planned: Any, posteriors: Sequence[float], found: Sequence[Any]) -> Columns:
    """The curves and the releases as one table."""
    rows = [(FORMULA, x, FACTOR / x + 0.5) for x in CURVE]
    rows += [(PLANNED, *pair) for pair in zip(planned["posterior"], planned["ratio"], strict=True)]
    for posterior, one in zip(posteriors, found, strict=True):
        rows.append(("made, β = d/γ", posterior, one["printed"]))
        rows.append(("made, tight β", posterior, one["planned"]))
    return columns_from(("of", "posterior", "view_ratio"), rows)


def drawn(columns: Columns) -> Any:
    """The curves, with the releases as points."""
    alt = altair()
    of = columns["of"]

    def only(made: bool) -> Columns:
        return rows_at(columns, [i for i, n in enumerate(of) if n.startswith("made") == made])

    curves = lines(
        only(made=False), "posterior", "view_ratio", "of",
        titles=("γ, the posterior that is allowed", "rows of the view / rows of the table"),
        domains=((0, 1), (0, 105)),
        formats=(".2~f", ",d"),
        ticks=(10, 10), points=False,
    )  # fmt: skip
    points = (
        chart(records(only(made=True)))
        .mark_point(size=80, color=INK, opacity=1, strokeWidth=1.8)
        .encode(x="posterior:Q", y="view_ratio:Q")
    )
    return alt.layer(curves, points)


FIGURE = Figure("tr07-fig1", TR07, "Size of the view against γ, at k = 5", parts, conclude)
