"""The likelihood of what was seen, and plain EM, which climbs it as the paper does.

If x rows are truly in each class, w = xA of them are expected to be seen in each, and the seen
counts y have the log-likelihood L(x) = Σ y·log(w/n), up to a constant. Its slope is
g = A(y/w), and Bayes' rule applied to every row, x·g, is a step of EM: it keeps the total n and
never lowers L. For every x, (max L − L(x))/n ≤ max g − 1: the gap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.reconstruct.axes import Transition, dot, tensor
from voile.reconstruct.linear import EXPECTATION, EXPECTED, plan


class Seen:
    """The seen counts y, and the ways between true counts and them. Tensors are flat here."""

    def __init__(self, y: npt.ArrayLike, axes: Sequence[Transition]) -> None:
        counts = tensor(y, axes)
        if not (np.isfinite(counts).all() and counts.min() >= 0):
            wrong = counts[~(np.isfinite(counts) & (counts >= 0))][0]
            raise UsageError(
                f"a cell was seen {wrong:g} times",
                hint="counts of rows are finite and not negative",
            )
        self.shape = counts.shape
        self.y: Floats = counts.reshape(-1)
        self.rows = float(self.y.sum())
        self.some = np.flatnonzero(self.y)
        self._there = plan(axes, EXPECTED)
        self._back = plan(axes, EXPECTATION)
        self._unseen = (self.y == 0).astype(np.float64)
        """Added to divisors, so that 0 seen of 0 expected is 0."""
        if not self.expected(np.ones_like(self.y))[self.some].all():
            raise UsageError(
                "rows were seen in classes where none can be",
                hint="the transition does not belong to these counts",
            )

    def expected(self, x: Floats) -> Floats:
        """w = xA."""
        w = x.copy()
        self._there.carry(w)
        return w

    def slope(self, w: Floats) -> Floats:
        """g = A(y/w); cells that were not seen count as nothing, whatever was expected."""
        g: Floats = w + self._unseen
        np.divide(self.y, g, out=g)
        self._back.carry(g)
        return g

    def curvature(self, w: Floats) -> Floats:
        """D = y/w²: minus the second derivative of L is A·D·Aᵀ."""
        d: Floats = w + self._unseen
        d *= d
        np.divide(self.y, d, out=d)
        return d

    def bend(self, v: Floats, curvature: Floats) -> None:
        """v becomes A·D·Aᵀv, in place."""
        self._there.carry(v)
        v *= curvature
        self._back.carry(v)

    def log_likelihood(self, w: Floats) -> float:
        """L per row."""
        if self.rows == 0:
            return 0.0
        return dot(self.y[self.some], np.log(w[self.some] / self.rows)) / self.rows

    def rise(self, before: Floats, after: Floats) -> float:
        """By how much L per row rises, exact where hardly anything changes; −∞ if it is lost."""
        old, new = before[self.some], after[self.some]
        if new.size and not new.min() > 0:
            return -np.inf
        return dot(self.y[self.some], np.log1p((new - old) / old)) / self.rows


def em_steps(
    y: npt.ArrayLike, axes: Sequence[Transition], steps: int, start: npt.ArrayLike | None = None
) -> Floats:
    """`steps` steps of EM, from the seen counts themselves unless told otherwise."""
    seen = Seen(y, axes)
    x = seen.y.copy() if start is None else tensor(start, axes).reshape(-1)
    for _ in range(steps):
        x *= seen.slope(seen.expected(x))
    return x.reshape(seen.shape)


def em_until(y: npt.ArrayLike, axes: Sequence[Transition], tolerance: float) -> tuple[Floats, int]:
    """EM from the seen counts until a step moves less than `tolerance` of the rows; its steps.

    The paper stops when 'consecutive iterates do not differ much'. That says nothing about how far
    the maximum is; this is here to be compared with.
    """
    if not tolerance > 0:
        raise UsageError(f"EM never stops at {tolerance:g}", hint="a tolerance is above 0")
    seen = Seen(y, axes)
    x = seen.y
    steps, moved = 0, np.inf
    while moved >= tolerance * seen.rows and seen.rows > 0:
        after = x * seen.slope(seen.expected(x))
        moved = float(np.abs(after - x).sum())
        x, steps = after, steps + 1
    return x.reshape(seen.shape).copy(), steps
