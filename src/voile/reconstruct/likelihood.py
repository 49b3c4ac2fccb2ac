"""The most likely true counts: plain EM as the paper has it, and the constrained maximum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.errors import QueryError
from voile.reconstruct.axes import Floats, Transition, tensor
from voile.reconstruct.linear import EXPECTATION, EXPECTED, plan


@dataclass(frozen=True)
class Fit:
    counts: Floats
    steps: int
    gap: float
    log_likelihood: float


class Seen:
    """What was seen, y, and the maps between true counts and it."""

    def __init__(self, y: npt.ArrayLike, axes: Sequence[Transition]) -> None:
        self.y = tensor(y, axes)
        self.rows = float(self.y.sum())
        self.there = plan(axes, EXPECTED)
        self.back = plan(axes, EXPECTATION)

    def expected(self, x: Floats) -> Floats:
        w = x.copy()
        self.there.carry(w)
        return w

    def gradient(self, w: Floats) -> Floats:
        g = np.divide(self.y, w, out=np.zeros_like(w), where=self.y > 0)
        self.back.carry(g)
        return g

    def log_likelihood(self, w: Floats) -> float:
        some = self.y > 0
        return float((self.y[some] * np.log(w[some] / self.rows)).sum() / self.rows)


def em_steps(
    y: npt.ArrayLike, axes: Sequence[Transition], steps: int, start: npt.ArrayLike | None = None
) -> Floats:
    seen = Seen(y, axes)
    x = seen.y.copy() if start is None else tensor(start, axes)
    for _ in range(steps):
        x *= seen.gradient(seen.expected(x))
    return x


def em_until(y: npt.ArrayLike, axes: Sequence[Transition], tolerance: float) -> tuple[Floats, int]:
    seen = Seen(y, axes)
    x = seen.y.copy()
    steps = 0
    while True:
        after = x * seen.gradient(seen.expected(x))
        steps += 1
        if np.abs(after - x).sum() < tolerance * seen.rows:
            return after, steps
        x = after


def maximum_likelihood(
    y: npt.ArrayLike,
    axes: Sequence[Transition],
    *,
    gap: float = 1e-8,
    most_steps: int = 100_000,
    start: npt.ArrayLike | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Fit:
    """SQUAREM."""
    seen = Seen(y, axes)
    n = seen.rows
    x = np.full_like(seen.y, n / seen.y.size) if start is None else tensor(start, axes)
    steps = 0
    w = seen.expected(x)
    like = seen.log_likelihood(w)
    while steps < most_steps:
        g0 = seen.gradient(w)
        reached = float(g0.max()) - 1
        if progress:
            progress(steps, reached)
        if reached <= gap:
            return Fit(x, steps, reached, like)
        x1 = x * g0
        w1 = seen.expected(x1)
        x2 = x1 * seen.gradient(w1)
        steps += 2
        r = x1 - x
        v = x2 - x1 - r
        norm = np.linalg.norm(v)
        a = -np.linalg.norm(r) / norm if norm > 0 else -1.0
        a = min(a, -1.0)
        while True:
            xn = x - 2 * a * r + a * a * v
            np.maximum(xn, 1e-300, out=xn)
            xn *= n / xn.sum()
            w = seen.expected(xn)
            new = seen.log_likelihood(w)
            if new >= like or a == -1:
                break
            a = (a - 1) / 2 if a < -1.1 else -1.0
        x, like = xn, new
    raise QueryError(f"gap {reached:.3g} after {most_steps} steps")
