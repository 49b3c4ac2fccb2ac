"""The plane of promises (d, γ) for one table: what αβ can do, what nothing can, what is open."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from voile.engines import connect
from voile.errors import PromiseError, TableError, spelled
from voile.evaluate.drawing import (
    BLUE,
    INK,
    SOFT,
    VERMILION,
    edged_text,
    inline_chart,
    load_altair,
    theme,
)
from voile.evaluate.planning.strongest import halved
from voile.kinds.domain import check_domain, check_nulls, choose_schema
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.options import ViewOptions, ViewTableKeywords
from voile.kinds.views.promise import PRIOR_FACTOR
from voile.privacy import DGamma, plan
from voile.privacy.boundary import Boundary
from voile.schema.schema import large

if TYPE_CHECKING:
    import altair as alt

Region = Literal["possible", "unknown", "impossible", "excluded"]

DEVIATIONS = NormalDist().inv_cdf(0.975)
"""Errors are given with a probability of 95 %, as of a normal variable."""
TELLS_APART = 0.5
"""With an error of at most n/2, 'none of the records' and 'all of them' are told apart."""
LEVELS = (TELLS_APART, 0.1, 0.01)
"""Shares of n: αβ is drawn as possible up to the first; the others are contour lines."""
POINTS = 60
LARGEST_POSTERIOR, LARGEST_PRIOR = 0.9999, 0.98


@dataclass(frozen=True)
class PlanePoint:
    """Along one prior: from which posterior on αβ has which error, and what is ruled out."""

    prior: float
    possible_from: tuple[float | None, ...]
    """One for each of LEVELS; None where no posterior will do."""
    impossible_up_to: float | None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        half, tenth, hundredth = self.possible_from
        return {
            "prior": self.prior,
            "possible_from": half,
            "error_10_percent_from": tenth,
            "error_1_percent_from": hundredth,
            "impossible_up_to": self.impossible_up_to,
        }


@dataclass(frozen=True)
class Plane:
    """What `voile boundary` shows."""

    name: str
    boundary: Boundary
    prior: float
    posterior: float
    notes: tuple[str, ...]

    @property
    def prior_factor(self) -> float:
        """k = d·m/n."""
        return self.prior / float(self.boundary.density)

    def error_share(self, prior: float, posterior: float) -> float:
        """αβ's error of the worst count, with 95 %, as a share of n; from its exact variance."""
        if prior >= posterior:
            return math.inf
        try:
            planned = plan(DGamma(prior, posterior), "multiset")
        except PromiseError:
            return math.inf
        rows, size = self.boundary.rows, self.boundary.domain_size
        mechanism = AlphaBeta(planned.retention, planned.noise)
        return DEVIATIONS * math.sqrt(mechanism.variance(rows, float(size))) / rows

    def region(self, prior: float, posterior: float) -> Region:
        """In which region a promise lies."""
        if prior >= posterior:
            return "excluded"
        if self.boundary.forbids(DGamma(prior, posterior)):
            return "impossible"
        return "possible" if self.error_share(prior, posterior) <= TELLS_APART else "unknown"

    @cached_property
    def points(self) -> tuple[PlanePoint, ...]:
        """The regions along priors, evenly apart on a logarithmic axis."""
        density = float(self.boundary.density)
        lowest = min(density, self.prior, LARGEST_PRIOR / 30) / 30
        return tuple(map(self._along, np.geomspace(lowest, LARGEST_PRIOR, POINTS).tolist()))

    def _along(self, prior: float) -> PlanePoint:
        return PlanePoint(
            prior,
            tuple(self.posterior_for(prior, level) for level in LEVELS),
            self.boundary.largest_forbidden_posterior(prior),
        )

    def posterior_for(self, prior: float, level: float) -> float | None:
        """The smallest posterior at which αβ's error is at most this share of n."""
        if self.error_share(prior, LARGEST_POSTERIOR) > level:
            return None
        return halved(prior, LARGEST_POSTERIOR, lambda g: self.error_share(prior, g) <= level)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        share = self.error_share(self.prior, self.posterior)
        limit = self.boundary.swap_limit
        return {
            "rows": self.boundary.rows,
            "domain_size": str(self.boundary.domain_size),
            "density": float(self.boundary.density),
            "root_ratio": self.boundary.root_ratio,
            "swap_limit": float(limit) if self.boundary.speaks else None,
            "position": {
                "prior": self.prior,
                "prior_factor": self.prior_factor,
                "posterior": self.posterior,
                "region": self.region(self.prior, self.posterior),
                "error_share": share if math.isfinite(share) else None,
            },
            "least_forbidden_prior": self.boundary.least_forbidden_prior(self.posterior),
            "theorem": self.boundary.in_words(),
            "plane": [point.to_dict() for point in self.points],
            "notes": list(self.notes),
        }


def boundary_of(
    table: Any, *, null_text: Sequence[str] = (), **options: Unpack[ViewTableKeywords]
) -> Plane:
    """The plane of a table: reads how many rows it has, and its domain."""
    asked = ViewOptions(**options)
    private = connect(table, null_text=tuple(null_text))
    if not len(private):
        raise TableError("the table has no rows", hint="see `voile inspect TABLE`")
    schema, notes = choose_schema(private, asked.columns, asked.schema_, asked.nulls)
    check_domain(schema.size)
    check_nulls(private, schema, asked.nulls)
    rows = private.complete_rows(schema.names) if asked.drop_nulls else len(private)
    if not rows:
        raise TableError(
            "no row is without NULLs",
            hint=f"use {spelled('nulls', 'as-value')}, or leave columns out",
        )
    boundary = Boundary(rows, schema.size)
    factor = PRIOR_FACTOR if asked.prior_factor is None else asked.prior_factor
    prior = float(boundary.density) * factor if asked.prior is None else asked.prior
    if prior >= 1:
        notes.append(
            f"{factor:g}·n/m = {prior:.3g} is no probability, so that the table has no place "
            "in the plane: there are nearly as many rows as possible tuples, or more; choose a "
            f"prior with {spelled('prior')}, or publish more or finer columns"
        )
    return Plane(private.name, boundary, prior, asked.posterior, tuple(notes))


# ---- the plane of promises as a picture: possible, unknown, impossible, and where the table stands


WIDTH, HEIGHT = 760, 460
SUBTITLE = 95
"""Characters of a line of it that fit the width."""
REGIONS = {
    "possible: αβ can tell 0 records from all n": "#BBD9EC",
    "unknown": "#F4F1E8",
    "impossible for every algorithm (Theorem 3.3)": "#F3C4A8",
    "excluded: d ≥ γ": "#E3E6EA",
}
POSSIBLE, UNKNOWN, IMPOSSIBLE, EXCLUDED = REGIONS
CONTOURS = {1: "error 10 % of n", 2: "error 1 % of n"}
CAPTION = (
    "Errors: 95 %, of the worst counting query, with αβ's best retention against independent "
    "adversaries. Made with Voile."
)


def draw(plane: Plane) -> alt.HConcatChart:
    """The plane with its title, and below it what is counted as an error."""
    return theme(
        load_altair().vconcat(panel(plane)),
        title=title(plane),
        subtitle=[size_in_words(plane), *textwrap.wrap(plane.boundary.in_words(), SUBTITLE)],
        caption=CAPTION,
    )


def title(plane: Plane) -> str:
    """What a plane is about."""
    return f"What can be promised about {plane.name}"


def size_in_words(plane: Plane) -> str:
    """Rows and possible tuples."""
    size = plane.boundary
    return f"n = {size.rows:,} rows, m = {large(size.domain_size)} possible tuples"


def panel(plane: Plane, *, brief: bool = False) -> Any:
    """Priors on a logarithmic axis, posteriors from 0 to 1; a `brief` one says less at its mark."""
    alt = load_altair()
    points = plane.points
    ends = [points[0].prior, points[-1].prior]
    x = alt.X(
        "prior:Q",
        scale=alt.Scale(type="log", domain=ends, nice=False),
        axis=alt.Axis(title="prior d: what an adversary believes before", format="~e"),
    )
    y = alt.Y(
        "low:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="posterior γ: what one may believe after", format="~g"),
    )
    areas, lines = _areas(alt, points, x, y), _contours(points, x, y)
    marks = _position(alt, plane, brief=brief)
    return alt.layer(areas, *lines, *marks).properties(width=WIDTH, height=HEIGHT)


def areas(point: PlanePoint) -> list[tuple[str, float, float]]:
    """The regions above one prior: name, from where, up to where."""
    possible, forbidden = point.possible_from[0], point.impossible_up_to
    floor = point.prior if forbidden is None else max(point.prior, forbidden)
    ceiling = 1.0 if possible is None else possible
    return [
        (POSSIBLE, ceiling, 1.0),
        (UNKNOWN, floor, max(floor, ceiling)),
        (IMPOSSIBLE, point.prior, floor),
        (EXCLUDED, 0.0, point.prior),
    ]


def _areas(alt: Any, points: tuple[PlanePoint, ...], x: Any, y: Any) -> Any:
    found = [(point.prior, *area) for point in points for area in areas(point)]
    there = {name for _, name, low, high in found if high > low}
    seen = [name for name in REGIONS if name in there]
    rows = [
        {"prior": prior, "region": name, "low": low, "high": high}
        for prior, name, low, high in found
        if name in there
    ]
    colour = alt.Color(
        "region:N",
        scale=alt.Scale(domain=seen, range=[REGIONS[name] for name in seen]),
        legend=alt.Legend(title=None, orient="top", columns=2, labelLimit=420),
    )
    return (
        inline_chart(rows)
        .mark_area(opacity=1, clip=True)
        .encode(x=x, y=y, y2="high:Q", color=colour)
    )


def _contours(points: tuple[PlanePoint, ...], x: Any, y: Any) -> list[Any]:
    """Lines where αβ's error is a tenth and a hundredth of n, each with its name at its end."""
    layers = []
    for level, name in CONTOURS.items():
        found = [(p.prior, p.possible_from[level]) for p in points]
        rows = [{"prior": prior, "low": at} for prior, at in found if at is not None]
        if len(rows) < 2:
            continue
        line = inline_chart(rows).encode(x=x, y=y)
        middle = min(rows, key=lambda row: abs(row["low"] - 0.62))
        text = inline_chart([middle]).encode(x=x, y=y)
        # At the side where there is more room.
        side = (
            ("right", -8) if middle["prior"] > points[2 * len(points) // 3].prior else ("left", 8)
        )
        look = {"text": name, "align": side[0], "dx": side[1], "fontSize": 13, "color": BLUE}
        layers += [
            line.mark_line(color=BLUE, strokeWidth=1.4, strokeDash=[6, 3], clip=True),
            text.mark_text(**look),
        ]
    return layers


def _position(alt: Any, plane: Plane, *, brief: bool) -> list[Any]:
    """Where the table stands: the prior n/m of someone who knows its size, and the options."""
    density = float(plane.boundary.density)
    here = {"prior": plane.prior, "low": plane.posterior}
    size = inline_chart([{"prior": density}]).encode(x="prior:Q")
    own = inline_chart([here]).encode(x="prior:Q", y="low:Q")
    region = plane.region(plane.prior, plane.posterior)
    place = f"d = {plane.prior:.3g} = {plane.prior_factor:.4g}·n/m, γ = {plane.posterior:g}: "
    label = region if brief else place + region
    layers = []
    if density < plane.points[-1].prior:
        layers += [
            size.mark_rule(color=SOFT, strokeDash=[2, 3]),
            size.mark_text(text="n/m", fontSize=12, color=SOFT).encode(y=alt.value(-8)),
        ]
    if plane.prior < plane.points[-1].prior:
        # On the side where there is more room.
        middle = math.sqrt(plane.points[0].prior * plane.points[-1].prior)
        side = ("left", 12) if plane.prior < middle else ("right", -12)
        beside: dict[str, Any] = {
            "align": side[0],
            "dx": side[1],
            "fontSize": 14,
            "fontWeight": 600,
        }
        layers += [
            own.mark_point(filled=True, size=120, color=VERMILION, opacity=1, stroke="white"),
            *edged_text(own, text=label, color=INK, strokeJoin="round", **beside),
        ]
    return layers
