"""The search behind the certified frontier: simplicial decomposition in parts.

Every atom a of the populations (cells that no population tells apart) gets a distribution p_a in
the ball JS(Q, p) ≤ τ. The distributions are held as mixtures of *corners*, tables that are each in
the ball: one more corner in each step, the one that falls fastest, and then the best mixture.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.evaluate.frontier.kernels import (
    LN2,
    least_in_balls,
    quadratic_step,
    sums_by_part,
    weighted_products,
)
from voile.evaluate.losses import Populations, jensen_shannon
from voile.privacy.divergence import shares
from voile.recoding.units import Codes

PARTS, CORNERS = 6, 12
"""Atoms are dealt into parts, each a mixture of its own of so many corners."""
SWEEPS, HALVINGS = 300, 40
"""How far a mixture is improved before the next corner."""


@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """Which distributions of the atoms give which estimates, and how wrong those are."""

    populations: Populations

    @cached_property
    def present(self) -> Codes:
        """The sensitive values that some row has: no class has any other."""
        return np.flatnonzero(self.populations.overall > 0).astype(np.int32)

    @cached_property
    def overall(self) -> Floats:
        """The whole table's shares of the values that occur."""
        return np.ascontiguousarray(self.populations.overall[self.present])

    @cached_property
    def true(self) -> Floats:
        """(populations, values)"""
        return np.ascontiguousarray(self.populations.true[:, self.present])

    @cached_property
    def rows(self) -> Floats:
        """(atoms, 1)"""
        found: Floats = self.populations.counts.sum(axis=1, keepdims=True).astype(np.float64)
        return found

    @cached_property
    def support(self) -> Floats:
        """(populations, 1)"""
        return self.populations.support[:, None].astype(np.float64)

    @cached_property
    def part(self) -> Codes:
        """(atoms,): neighbours are in one part."""
        atoms = len(self.rows)
        return (np.arange(atoms) * PARTS // max(atoms, 1)).astype(np.int32)

    @property
    def trivial(self) -> Floats:
        """(atoms, values): Q for everybody."""
        return np.tile(self.overall, (len(self.rows), 1))

    def shrunk(self, radius: float) -> Floats:
        """(atoms, values): the truth, moved towards Q into the ball; a place to start from."""
        truth = shares(self.populations.counts[:, self.present])
        distance = jensen_shannon(self.overall, truth)
        way = np.minimum(1.0, radius / np.maximum(distance, radius))
        found: Floats = self.overall + way[:, None] * (truth - self.overall)
        return found

    def images(self, points: Floats) -> Floats:
        """(parts, populations · values): what the atoms of each part are in the estimates."""
        found = np.zeros((PARTS, *self.true.shape))
        members = self.populations.members
        sums_by_part(self.populations.starts, members, self.part, points * self.rows, found)
        return (found / self.support).reshape(PARTS, -1)

    def loss(self, estimates: Floats) -> float:
        """U_loss."""
        return float(jensen_shannon(self.true, estimates.reshape(self.true.shape)).mean())

    def slopes(self, estimates: Floats) -> Floats:
        """How U_loss changes with the estimates: ½ ln(2z/(z + P)) of each, over their number."""
        z = estimates.reshape(self.true.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(self.true > 0, np.log(2 * z / (z + self.true)), LN2)
        return found / (2 * len(self.true))

    def curvatures(self, estimates: Floats) -> Floats:
        """How the slopes change: P/(2z(z + P)), 0 where the population lacks the value."""
        z = estimates.reshape(self.true.shape)
        found = np.zeros(z.shape)
        np.divide(self.true, 2 * z * (z + self.true), out=found, where=self.true > 0)
        return found / len(self.true)

    def inside(self, estimates: Floats) -> bool:
        """Whether slopes are finite there."""
        return bool((estimates.reshape(self.true.shape)[self.true > 0] > 0).all())

    def atom_slopes(self, slopes: Floats) -> Floats:
        """(atoms, values): how U_loss changes with the distributions of the atoms."""
        return self.populations.spread(slopes / self.support) * self.rows


@dataclass(frozen=True)
class LossBound:
    """No bucketization is below intercept − slope·τ, whatever its P_loss τ."""

    intercept: float
    slope: float

    def at(self, p_loss: float) -> float:
        """The bound at one P_loss."""
        return self.intercept - self.slope * p_loss


class RecodingMixture:
    """Each part's distributions: weights of its corners. Corners of a ball are in larger ones."""

    def __init__(self, problem: MixtureProblem, start: Floats) -> None:
        self.problem = problem
        self.corners = np.repeat(start[None], CORNERS, axis=0)
        self.images = np.repeat(problem.images(start)[:, None], CORNERS, axis=1)
        self.weights = np.zeros((PARTS, CORNERS))
        self.weights[:, 0] = 1.0

    @property
    def estimates(self) -> Floats:
        """(populations · values,)"""
        found: Floats = np.einsum("pc,pcz->z", self.weights, self.images)
        return found

    @property
    def points(self) -> Floats:
        """(atoms, values)"""
        found: Floats = np.einsum("ac,cas->as", self.weights[self.problem.part], self.corners)
        return found

    def bound(self, radius: float) -> tuple[LossBound, Floats]:
        """A line below U_loss, and the corner that makes it: where U_loss falls fastest.

        U_loss is convex, so it is above its tangent at the estimates z: U(z) + ⟨∇U, z' − z⟩. The
        tangent is least where each atom's share of it is, and each least has its own dual bound.
        """
        problem, z = self.problem, self.estimates
        slopes = problem.slopes(z)
        corner = np.empty(problem.trivial.shape)
        least, price = least_in_balls(problem.atom_slopes(slopes), problem.overall, radius, corner)
        tangent = problem.loss(z) - float(slopes.ravel() @ z)
        return LossBound(tangent + least + price * radius, price), corner

    def add(self, corner: Floats) -> None:
        """One more corner for each part, with no weight yet, in the place of the two lightest."""
        images = self.problem.images(corner)
        for part in range(PARTS):
            here = self.problem.part == part
            light, next_light = np.argsort(self.weights[part], kind="stable")[:2]
            held = self.weights[part, [light, next_light]]
            if held[0] > 0:
                mixed = held / held.sum()
                pair = [light, next_light]
                self.images[part, next_light] = mixed @ self.images[part, pair]
                self.corners[next_light, here] = np.tensordot(
                    mixed, self.corners[pair][:, here], axes=1
                )
                self.weights[part, next_light] = held.sum()
            self.images[part, light] = images[part]
            self.corners[light, here] = corner[here]
            self.weights[part, light] = 0.0

    def improve(self) -> None:
        """Better weights, by a step of Newton's method within the weights that there can be."""
        problem, images = self.problem, self.images.reshape(PARTS * CORNERS, -1)
        z = self.estimates
        slope = np.einsum("cz,z->c", images, problem.slopes(z).ravel())
        columns = np.ascontiguousarray(images.T)
        curvature = weighted_products(columns, problem.curvatures(z).ravel())
        step = quadratic_step(curvature, slope, self.weights, SWEEPS) - self.weights
        falls = float(slope @ step.ravel())
        moved = np.einsum("c,cz->z", step.ravel(), images)
        before = problem.loss(z)
        for halving in range(HALVINGS):
            share = 0.5**halving
            there = z + share * moved
            if problem.inside(there) and problem.loss(there) <= before + 0.1 * share * falls:
                self.weights = self.weights + share * step
                break


# ----------------------------------------------------------------------
# the certified frontier: the least U_loss that any bucketization can have at each P_loss
# A bucketization tells of each person one distribution p, that of their class, and P_loss ≤ τ says
# that each is in the ball JS(Q, p) ≤ τ. Estimates about populations are averages of these p. So no
# bucketization has a lower U_loss than the best choice of one p in the ball for each combination of
# quasi-identifiers, whether or not there are rows that would make it. Finding it is a convex
# problem, and its dual gives a bound that holds wherever the search stops. It is a yardstick, not
# a release.


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
    bound: LossBound
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
    """U_loss where only the whole table's distribution is shown, and P_loss is 0."""

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
    report: Callable[[Certified], None] = lambda _: None,
) -> CertifiedFrontier:
    """The frontier at these P_losses.

    Each until the bound is within `gap` of what is reached, or within a thousandth of the trivial
    U_loss, or so many steps were made. Each τ starts from what the one before it found, since that
    is in every larger ball. `report` is called with each as it is ready.
    """
    for p_loss in p_losses:
        if not p_loss > 0:
            raise UsageError(
                f"the frontier cannot be certified at P_loss {p_loss:g}",
                hint="choose numbers above 0; at 0 it is that of trivial anonymization",
            )
    problem = MixtureProblem(populations)
    if not populations.number:
        return CertifiedFrontier((), 0.0)
    trivial = problem.loss(problem.images(problem.trivial).sum(axis=0))
    found: list[Certified] = []
    mixture: RecodingMixture | None = None
    for p_loss in sorted(p_losses):
        mixture = mixture or RecodingMixture(problem, problem.shrunk(min(p_loss, LN2)))
        found.append(certified(mixture, p_loss, gap=gap, enough=ENOUGH * trivial, steps=steps))
        report(found[-1])
    return CertifiedFrontier(tuple(found), trivial)


def certified(
    mixture: RecodingMixture, p_loss: float, *, gap: float, enough: float, steps: int
) -> Certified:
    """One τ: corners are added until the best line is near enough to what is reached."""
    begun, problem = time.perf_counter(), mixture.problem
    mixture.add(problem.shrunk(min(p_loss, LN2)))
    mixture.improve()
    reached, best, made = problem.loss(mixture.estimates), LossBound(0.0, 0.0), 0
    for made in range(1, steps + 1):  # noqa: B007  (how many is reported)
        line, corner = mixture.bound(p_loss)
        if line.at(p_loss) > best.at(p_loss):
            best = LossBound(line.intercept - ROUNDING, line.slope)
        if reached - best.at(p_loss) <= max(gap * reached, enough):
            break
        mixture.add(corner)
        mixture.improve()
        reached = problem.loss(mixture.estimates)
    return Certified(p_loss, reached, best, made, time.perf_counter() - begun)
