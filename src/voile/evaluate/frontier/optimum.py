"""The certified frontier: the least U_loss that any bucketization can have at each P_loss.

A bucketization tells of each person one distribution p, that of their class, and P_loss ≤ τ says
that each is in the ball JS(Q, p) ≤ τ. Estimates about populations are averages of these p. So no
bucketization has a lower U_loss than the best choice of one p in the ball for each combination of
quasi-identifiers, whether or not there are rows that would make it. Finding it is a convex problem,
and its dual gives a bound that holds wherever the search stops. It is a yardstick, not a release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from voile.errors import UsageError
from voile.evaluate.frontier.kernels import LN2
from voile.evaluate.frontier.mixture import Bound, Mixture, Problem
from voile.evaluate.losses import Populations

ROUNDING = 1e-12
"""By which a bound is lowered; sums of floats are off by far less."""
ENOUGH = 1e-3
"""Of the trivial U_loss: a gap that nobody sees is not closed further."""


@dataclass(frozen=True)
class Certified:
    """One τ of the frontier: what was reached, and the line that nothing is below."""

    p_loss: float
    u_loss: float
    """The optimum is not above what the search reached …"""
    bound: Bound
    """… and not below this line."""
    steps: int
    seconds: float

    @property
    def lower(self) -> float:
        """No bucketization with this P_loss has a U_loss below it."""
        return max(0.0, self.bound.at(self.p_loss))


@dataclass(frozen=True)
class CertifiedFrontier:
    """The frontier at some τ, in ascending order, and through its lines at all others."""

    points: tuple[Certified, ...]
    trivial: float
    """U_loss where only the whole table's distribution is told, and P_loss is 0."""

    def lower(self, p_loss: float) -> float:
        """What no bucketization with at most this P_loss is below."""
        if p_loss <= 0:
            return self.trivial
        return max([0.0, *(point.bound.at(p_loss) for point in self.points)])

    def upper(self, p_loss: float) -> float:
        """What the optimum is not above: it is convex in τ, so that chords lie above it."""
        ends = [(0.0, self.trivial), *((p.p_loss, p.u_loss) for p in self.points)]
        for (left, high), (right, low) in pairwise(ends):
            if p_loss <= right:
                return high + (low - high) * (p_loss - left) / (right - left)
        return ends[-1][1]


def certify(
    populations: Populations,
    p_losses: Sequence[float],
    *,
    gap: float = 0.02,
    steps: int = 60,
    told: Callable[[Certified], None] = lambda _: None,
) -> CertifiedFrontier:
    """The frontier at these P_losses.

    Each until the bound is within `gap` of what is reached, or within a thousandth of the trivial
    U_loss, or so many steps were made. Each τ starts from what the one before it found, since that
    is in every larger ball. `told` is called with each as it is ready.
    """
    for p_loss in p_losses:
        if not p_loss > 0:
            raise UsageError(
                f"the frontier cannot be certified at P_loss {p_loss:g}",
                hint="choose numbers above 0; at 0 it is that of trivial anonymization",
            )
    problem = Problem(populations)
    if not populations.number:
        return CertifiedFrontier((), 0.0)
    trivial = problem.loss(problem.images(problem.trivial).sum(axis=0))
    found: list[Certified] = []
    mixture: Mixture | None = None
    for p_loss in sorted(p_losses):
        mixture = mixture or Mixture(problem, problem.shrunk(min(p_loss, LN2)))
        found.append(certified(mixture, p_loss, gap=gap, enough=ENOUGH * trivial, steps=steps))
        told(found[-1])
    return CertifiedFrontier(tuple(found), trivial)


def certified(
    mixture: Mixture, p_loss: float, *, gap: float, enough: float, steps: int
) -> Certified:
    """One τ: corners are added until the best line is near enough to what is reached."""
    begun, problem = time.perf_counter(), mixture.problem
    mixture.add(problem.shrunk(min(p_loss, LN2)))
    mixture.improve()
    reached, best, made = problem.loss(mixture.estimates), Bound(0.0, 0.0), 0
    for made in range(1, steps + 1):  # noqa: B007  (how many is told)
        line, corner = mixture.bound(p_loss)
        if line.at(p_loss) > best.at(p_loss):
            best = Bound(line.intercept - ROUNDING, line.slope)
        if reached - best.at(p_loss) <= max(gap * reached, enough):
            break
        mixture.add(corner)
        mixture.improve()
        reached = problem.loss(mixture.estimates)
    return Certified(p_loss, reached, best, made, time.perf_counter() - begun)
