"""Figures 11 and 12: the error of one range, by the width of the range."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import lines
from voile.reproduce.papers import SIGMOD05
from voile.reproduce.sigmod05.study import StudySeries, rises
from voile.reproduce.sigmod05.zipf import width_errors
from voile.reproduce.verdict import Check, Claim, Number, Sample

SIZES = (1_000, 10_000, 100_000)
WIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
RETENTION = 0.2
ABSOLUTE, RELATIVE = "absolute", "relative"

# By rows and width, from a program that shares nothing with this one: means over 200 tables, of
# one order of the values, so that others are up to 10 % off, and relative errors up to 15 %.
KNOWN = {
    (1_000, 0.5): (0.0618, 0.1097),
    (10_000, 0.2): (0.01564, 0.0847),
    (10_000, 0.9): (0.01176, 0.01317),
    (100_000, 0.3): (0.00567, 0.0187),
}
SLACK = {ABSOLUTE: 0.1, RELATIVE: 0.15}


def parts(run: Run) -> list[Part]:
    """Zipfian columns of each size, one piece of work for each seed."""
    return [
        Part(
            width_errors,
            {
                "rows": rows,
                "widths": list(WIDTHS),
                "retention": RETENTION,
                "seed": seed,
                "repetitions": 100 if run.quick else 200,
            },
        )
        for rows in SIZES
        for seed in run.seeds(full=20, quick=6)
    ]


def measured(run: Run, results: Sequence[Any], kind: str) -> StudySeries:
    """The errors by rows and width."""

    def points() -> Any:
        for part, one in zip(parts(run), results, strict=True):
            for width, value in zip(WIDTHS, one[kind], strict=True):
                yield (part.given["rows"], width), value

    return StudySeries.of(("rows", "width"), points())


# ---------------------------------------------------------------------- checks


def numbers(series: StudySeries, kind: str) -> list[Check]:
    """The errors beside an independent program's."""
    place = (ABSOLUTE, RELATIVE).index(kind)
    return [
        Number(
            f"{kind} error, {rows:,} rows, width {width:g}",
            None,
            series[rows, width],
            reading=SLACK[kind] * known[place],
            right=known[place],
            why="the mean of 200 tables by an independent program",
            average=True,
        )
        for (rows, width), known in KNOWN.items()
    ]


def displacement(series: StudySeries) -> Number:
    """Section 7.2: 'the factor 10 displacement between the lines for 10³ and 10⁵ rows'."""
    runs = series[SIZES[0], WIDTHS[0]].runs
    ratios = [
        fmean(
            series[SIZES[0], width].values[run] / series[SIZES[-1], width].values[run]
            for width in WIDTHS
            # A range of one or two of a hundred values holds now few rows, now many.
            if width >= 0.1
        )
        for run in range(runs)
    ]
    return Number("error at 10³ rows over error at 10⁵ rows", 10, Sample.of(ratios), reading=0.5)


def flat(series: StudySeries) -> Claim:
    """Whether the error varies by at most a factor of two, for ranges of a tenth or more."""
    wide = [series.mean(SIZES[-1], width) for width in WIDTHS if width >= 0.1]
    narrow = max(wide) / series.mean(SIZES[-1], WIDTHS[0])
    return Claim(
        "absolute error and width",
        "the absolute error does not vary much with the interval width",
        f"100,000 rows: by a factor of {max(wide) / min(wide):.1f} from a tenth of the domain to "
        f"nine tenths; at a hundredth it is {narrow:.1f} times smaller than the largest",
        agrees=max(wide) / min(wide) < 2,
    )


def steep(series: StudySeries) -> Claim:
    """Whether the relative error grows as ranges become narrower."""
    always = [rises([series.mean(rows, width) for width in reversed(WIDTHS)]) for rows in SIZES]
    first, last = (series.mean(SIZES[-1], width) for width in (WIDTHS[0], WIDTHS[-1]))
    return Claim(
        "relative error and width",
        "the relative error increases as the interval width decreases",
        f"in {sum(always)} of {len(always)} series at every step; for 100,000 rows from {last:.2g} "
        f"to {first:.2g}",
        agrees=all(always),
    )


def falls(series: StudySeries, kind: str) -> Claim:
    """Whether errors fall as rows are added."""
    always = [rises([series.mean(rows, width) for rows in reversed(SIZES)]) for width in WIDTHS]
    return Claim(
        "more rows",
        f"the {kind} error decreases as the number of rows increases",
        f"from size to size in {sum(always)} of {len(always)} series",
        agrees=all(always),
    )


# ---------------------------------------------------------------------- the figures


def conclude(run: Run, results: Sequence[Any], kind: str) -> Finding:
    """The absolute or relative error by the width of the range."""
    series = measured(run, results, kind)
    table = series.columns()
    about = flat(series) if kind == ABSOLUTE else steep(series)
    small, large = (series.mean(SIZES[-1], width) for width in (WIDTHS[0], 0.5))
    titles = {
        ABSOLUTE: f"Half the domain is off by {large:.1%} of 100,000 rows, other ranges by less",
        RELATIVE: f"A hundredth of the domain is off by {small:.0%} of itself, half of it by "
        f"{large:.1%}",
    }
    return Finding(
        checks=(about, falls(series, kind), displacement(series), *numbers(series, kind)),
        tables={"": table},
        picture=lambda: picture(table, kind),
        title=titles[kind],
        subtitle=(
            f"One Zipfian column, retention {RETENTION}, {kind} error of the share of rows in a "
            "range; values in any order.",
            "Ten times more exact with a hundred times the rows, as the paper says.",
        ),
    )


def picture(table: dict[str, list[Any]], kind: str) -> Any:
    """The error by width, a line for each number of rows."""
    drawn = table | {"size": [f"{rows:,} rows" for rows in table["rows"]]}
    return lines(
        drawn,
        "width",
        "error",
        "size",
        titles=("width of the range, as a share of the domain", f"{kind} error (log scale)"),
        log=(True, True),
        formats=("~g", "~g"),
    )


def figure(number: int, kind: str) -> Figure:
    """Figure 11 or 12."""
    return Figure(
        name=f"sigmod05-fig{number}",
        paper=SIGMOD05,
        what=f"{kind.capitalize()} error by width of the range, Zipfian column, p = 0.2",
        parts=parts,
        conclude=partial(conclude, kind=kind),
    )


FIGURE_11 = figure(11, ABSOLUTE)
FIGURE_12 = figure(12, RELATIVE)
