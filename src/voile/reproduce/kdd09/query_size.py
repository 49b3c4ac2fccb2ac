"""Figures 3(b) and 3(c): the average relative error by selectivity, and by dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any

from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.kdd09 import study
from voile.reproduce.kdd09.answers import (
    DIMENSION,
    E_TITLE,
    SELECTIVITY,
    part,
    regions,
    with_errors,
)
from voile.reproduce.kdd09.study import (
    BUCKETIZED,
    CLOSENESS,
    REQUIREMENTS,
    Points,
    as_columns,
    curves_chart,
)
from voile.reproduce.papers import KDD09
from voile.reproduce.verdict import Check, Claim

SELECTIVITIES = (0.02, 0.05, 0.1, 0.2)
DIMENSIONS = (2, 3, 4, 5, 6)
"""Ours: the text names neither list."""
LITERALLY = {"t": 0.1}
"""The release of which sel is also read as the text has it."""

QueryShape = tuple[int, float]
"""Dimension and selectivity."""


def by_selectivity(run: Run) -> list[QueryShape]:
    """The query sizes of Figure 3(b): one dimension, several selectivities."""
    return [(DIMENSION, sel) for sel in (SELECTIVITIES[::3] if run.quick else SELECTIVITIES)]


def by_dimension(run: Run) -> list[QueryShape]:
    """The query sizes of Figure 3(c): one selectivity, several dimensions."""
    return [(qd, SELECTIVITY) for qd in (DIMENSIONS[::2] if run.quick else DIMENSIONS)]


def releases(run: Run) -> Sequence[dict[str, Any]]:
    """The t-closeness releases to query; fewer in a quick run."""
    return REQUIREMENTS[CLOSENESS][:: 3 if run.quick else 1]


def literal(shape: QueryShape) -> QueryShape:
    """The size at which queries name a fraction `sel` of each attribute, as the text says."""
    dimension, selectivity = shape
    return dimension, selectivity ** (dimension + 1)


def parts(varied: Callable[[Run], list[QueryShape]], run: Run) -> list[Part]:
    """The releases' losses; for each seed and size of queries their errors; sel read literally.

    Last, the regions that queries of each dimension name.
    """
    shapes = varied(run)
    seeds = run.seeds(4, 2)
    return [
        Part(study.losses, {"method": "mondrian", "options": list(releases(run))}),
        *(part(run, releases(run), seed, *of, recodes=[BUCKETIZED])
          for of in shapes for seed in seeds),
        *(part(run, [LITERALLY], seed, *literal(of), recodes=[BUCKETIZED])
          for of in shapes for seed in seeds),
        Part(regions, {"dimensions": list(DIMENSIONS)}),
    ]  # fmt: skip


def gathered(
    varied: Callable[[Run], list[QueryShape]], run: Run, results: Sequence[Any]
) -> tuple[list[Points], list[dict[str, float]], list[dict[str, float]]]:
    """By size of queries: the releases with errors, the means, and those of sel read literally."""
    points = study.shown_as(results[0], BUCKETIZED)
    shapes, several = varied(run), len(run.seeds(4, 2))
    groups = [results[1 + i * several : 1 + (i + 1) * several] for i in range(2 * len(shapes))]
    curves = [with_errors(points, of, BUCKETIZED) for of in groups[: len(shapes)]]
    means = [
        {"error": fmean(r["errors"][0][BUCKETIZED] for r in of),
         "rows": fmean(r["rows"] for r in of), "queries": sum(r["queries"] for r in of)}
        for of in groups
    ]  # fmt: skip
    return curves, means[: len(shapes)], means[len(shapes) :]


def falls(curves: Sequence[Points]) -> tuple[int, int]:
    """At how many parameters the last curve is below the first, and of how many."""
    pairs = list(zip(curves[0], curves[-1], strict=True))
    return sum(last["error"] < first["error"] for first, last in pairs), len(pairs)


def falls_by_steps(curves: Sequence[Points]) -> tuple[int, int]:
    """In how many comparisons of neighbouring curves the later is lower, and of how many."""
    found = [falls(both) for both in pairwise(curves)]
    return sum(lower for lower, _ in found), sum(number for _, number in found)


def written(values: Sequence[float], form: str) -> str:
    """Numbers in this format, with commas between them."""
    return ", ".join(format(value, form) for value in values)


def conclude(
    varied: Callable[[Run], list[QueryShape]], letter: str, run: Run, results: Sequence[Any]
) -> Finding:
    """Compare the errors of queries of different sizes."""
    shapes = varied(run)
    curves, means, literally = gathered(varied, run, results)
    by = "selectivity" if letter == "b" else "dimension"
    sizes = [of[letter == "b"] for of in shapes]
    names = [f"{'sel' if letter == 'b' else 'qd'} = {size:g}" for size in sizes]
    columns = as_columns(dict(zip(names, curves, strict=True)), ("value", "p_loss", "error"))
    reading = {by: sizes, "error": [of["error"] for of in literally],
               "rows": [of["rows"] for of in literally]}  # fmt: skip
    number = sum(of["queries"] for of in means) // len(means)
    held = f"sel = {SELECTIVITY}" if letter == "c" else f"qd = {DIMENSION}"
    return Finding(
        checks=(smaller(by, sizes, curves), larger(by, sizes, means),
                *([wider(results[-1])] if by == "dimension" else []),
                as_the_text_says(by, sizes, literally)),
        tables={"": columns, "literal": reading},
        picture=lambda: curves_chart(columns, "error", E_TITLE, domains=((0, 0.45), ()),
                                     formats=("~g", "~f")),
        title=f"Queries of larger {by} are answered more accurately",
        subtitle=f"Adult, t-closeness, bucketized, {held}; {number:,} queries a curve; "
        "sel as in Anatomy, the share of the whole domain",
    )  # fmt: skip


def smaller(by: str, sizes: Sequence[float], curves: Sequence[Points]) -> Check:
    """Whether errors fall as queries grow."""
    said = {
        "selectivity": "the average relative error is smaller when sel is larger",
        "dimension": "queries are answered more accurately as qd increases",
    }
    (lower, number), steps = falls(curves), falls_by_steps(curves)
    errors = written([curve[0]["error"] for curve in curves], ".1f")
    return Claim(
        f"the error falls from the least {by} to the largest",
        said[by],
        f"from {by} {sizes[0]:g} to {sizes[-1]:g} at {lower} of {number} t, and in {steps[0]} of "
        f"{steps[1]} single steps; t = {curves[0][0]['value']:g}: {errors} % at "
        f"{written(sizes, 'g')}",
        lower == number,
    )


def larger(by: str, sizes: Sequence[float], means: Sequence[dict[str, float]]) -> Check:
    """Whether larger queries cover more rows."""
    said = {
        "selectivity": "a larger sel value corresponds to queries about larger populations",
        "dimension": "implying a larger query region",
    }
    rows = [of["rows"] for of in means]
    return Claim(
        f"more rows at the largest {by} than at the least", said[by],
        f"median rows of a query {written(rows, ',.0f')} at {by} {written(sizes, 'g')}",
        rows[-1] > rows[0],
    )  # fmt: skip


def wider(shares: Sequence[float]) -> Check:
    """Whether the region grows at every step, which is the reason that the text gives."""
    return Claim(
        "a larger region with every further condition",
        "the number of points in the retrieved region is larger when qd is larger",
        f"a query names {written([100 * share for share in shares], '.1f')} % of the domain at "
        f"dimension {written(DIMENSIONS, 'g')}",
        all(after > before for before, after in pairwise(shares)),
        expected=False,
        why="Anatomy's numbers of values are rounded up, which widens few values most; from 5 to 6 "
        "most of them stay the same, and the sixth condition takes more than the others give",
    )


def as_the_text_says(by: str, sizes: Sequence[float], means: Sequence[dict[str, float]]) -> Check:
    """Whether queries cover more rows if `sel` is read as the text defines it."""
    errors, rows = ([of[name] for of in means] for name in ("error", "rows"))
    by_selectivity = by == "selectivity"
    return Claim(
        f"sel as the text defines it: more rows at the largest {by}",
        "sel indicates the fraction of selected values for each quasi-identifier",
        f"t = 0.1: median rows {written(rows, '.0f')} and errors {written(errors, '.0f')} % at "
        f"{by} {written(sizes, 'g')}",
        rows[-1] > rows[0],
        expected=by_selectivity,
        why=""
        if by_selectivity
        else "so read, a larger qd asks about fewer rows; Anatomy's reading is taken",
    )


FIG3B = Figure(
    name="kdd09-fig3b",
    paper=KDD09,
    what="Relative error of counts by their selectivity",
    parts=partial(parts, by_selectivity),
    conclude=partial(conclude, by_selectivity, "b"),
)
FIG3C = Figure(
    name="kdd09-fig3c",
    paper=KDD09,
    what="Relative error of counts by their dimension",
    parts=partial(parts, by_dimension),
    conclude=partial(conclude, by_dimension, "c"),
)
