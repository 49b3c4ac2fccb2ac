"""The plane of promises (d, γ) for one table: what αβ can do, what nothing can, what is open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from voile.engines import connect
from voile.errors import PromiseError, TableError, spelled
from voile.evaluate.planning.strongest import halved
from voile.kinds.domain import check_domain, check_nulls, choose_schema
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import PRIOR_FACTOR
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma, plan
from voile.privacy.boundary import Boundary

Region = Literal["possible", "unknown", "impossible", "excluded"]

DEVIATIONS = NormalDist().inv_cdf(0.975)
"""Errors are told with a probability of 95 %, as of a normal variable."""
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
        if prior >= posterior:
            return "excluded"
        if self.boundary.forbids(DGamma(prior, posterior)):
            return "impossible"
        return "possible" if self.error_share(prior, posterior) <= TELLS_APART else "unknown"

    @cached_property
    def points(self) -> tuple[PlanePoint, ...]:
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


def boundary_of(table: Any, *, null_text: Sequence[str] = (), **options: Any) -> Plane:
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
