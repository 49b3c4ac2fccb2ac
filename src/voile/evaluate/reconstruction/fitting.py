"""The most that anyone can recover: the best guess of one value by someone who knows all others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError, spelled
from voile.privacy.interactive.laws import geometric_rate

Law = Literal["normal", "uniform"]
LAWS: tuple[str, ...] = get_args(Law)


def ceiling(law: str, size: float, counting: float, share: float = 0.5) -> float:
    """The chance to guess a row's value right, knowing every other row.

    `counting` questions count the row, with noise of `size`: its standard deviation if normal, the
    largest that it can be if uniform. `share` of the rows have the value 1.
    """
    if size == 0:
        return 1.0
    if law == "uniform":
        # An answer outside of what both values allow gives the value away, all others tell nothing.
        hidden = math.pow(max(0.0, 1 - 1 / (2 * size)), counting)
        return 1 - hidden * min(share, 1 - share)
    return normal_ceiling(math.sqrt(counting) / size, share)


def normal_ceiling(distance: float, share: float = 0.5) -> float:
    """The chance to tell N(0, 1) from N(distance, 1), which is there with chance `share`."""
    if distance == 0 or share in (0.0, 1.0):
        return max(share, 1 - share)
    lean = math.log(share / (1 - share)) / distance
    return share * below(distance / 2 + lean) + (1 - share) * below(distance / 2 - lean)


def below(z: float) -> float:
    """Φ(z)."""
    return math.erfc(-z / math.sqrt(2)) / 2


def distance_squared(kind: str, variance: float) -> float:
    """How far one answer tells two counts apart that differ by 1: the variance of its log ratio.

    For the server's laws of noise, with V of a unit change.
    """
    return geometric_rate(variance) ** 2 if kind == "geometric" else 1 / variance


# ------------ from answers about subsets back to the column: fits with every value between 0 and 1


Method = Literal["lsq", "lp"]
METHODS: tuple[str, ...] = get_args(Method)
MOST_ROWS = {"lsq": 10_000, "lp": 500}
"""Rows that a method takes; one keeps a number for every pair of them, one solves a program."""
MOST_QUESTIONS = {"lsq": 10**6, "lp": 4_000}
ROUNDS, ENOUGH = 600, 1e-4
"""Of the descent at most, and the change of every value that ends it."""

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Product = Callable[[Floats], Floats]


def check_size(method: str, rows: int, questions: int) -> None:
    """Refuse before any work is done."""
    check_method(method)
    if not 2 <= rows <= MOST_ROWS[method]:
        other = f"; {spelled('method', 'lsq')} takes more" if method == "lp" else ""
        raise UsageError(
            f"{rows:,} rows are not between 2 and {MOST_ROWS[method]:,}, what {method} takes",
            hint=f"attack fewer rows{other}",
        )
    if not 2 <= questions <= MOST_QUESTIONS[method]:
        raise UsageError(
            f"{questions:,} questions are not between 2 and {MOST_QUESTIONS[method]:,}, what "
            f"{method} takes",
            hint="choose another number of questions",
        )


def check_method(method: str) -> None:
    """Refuse a method that is not known."""
    if method not in METHODS:
        raise UsageError(f"there is no method {method!r}", hint=f"use {' or '.join(METHODS)}")


class NormalEquations:
    """What least squares needs of the questions; several columns of answers share it.

    Sums of signs are whole numbers below 2²⁴, so float32 holds them exactly.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.questions = 0
        self._gram = np.zeros((rows, rows), np.float32)
        self._signs = np.zeros(rows)
        self._sides = np.zeros((rows, columns))
        self._answers = np.zeros(columns)

    def add(self, signs: Floats, answers: npt.NDArray[np.float64]) -> None:
        """Further questions, and for each of them one answer in every column."""
        self.questions += len(signs)
        self._gram += signs.T @ signs
        self._signs += signs.sum(axis=0, dtype=np.float64)
        self._sides += signs.T.astype(np.float64) @ (2 * answers)
        self._answers += 2 * answers.sum(axis=0)

    def fitted(self, mix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Values for answers that are mixtures of the columns: a row for each row of `mix`."""
        mean = self._signs / self.questions
        sides = (self._sides - np.outer(mean, self._answers)) @ mix.T
        sums, means = self._signs.astype(np.float32)[:, None], mean.astype(np.float32)

        def times(x: Floats) -> Floats:  # centred, without another matrix
            return self._gram @ x - sums * (means @ x)

        return in_the_box(times, sides.astype(np.float32)).T.astype(np.float64)


def in_the_box(times: Product, sides: Floats) -> Floats:
    """The x between 0 and 1 that makes ½xᵀGx − bᵀx least, for every column b of `sides`.

    `times` multiplies by G. Nesterov's accelerated projected gradient, begun anew whenever it
    overshoots.
    """
    step = np.float32(1 / largest_eigenvalue(times, len(sides)))
    x = np.full_like(sides, 0.5)
    ahead, weight = x, 1.0
    for _ in range(ROUNDS):
        slope = times(ahead) - sides
        after = np.clip(ahead - step * slope, 0, 1)
        change = after - x
        if float(np.vdot(slope, change)) > 0:
            weight = 1.0
        following = (1 + math.sqrt(1 + 4 * weight * weight)) / 2
        ahead = after + np.float32((weight - 1) / following) * change
        x, weight = after, following
        if float(np.abs(change).max()) < ENOUGH:
            break
    return x


def largest_eigenvalue(times: Product, rows: int) -> float:
    """Of a positive matrix, by its powers; a little too large, which does no harm."""
    vector = np.cos(np.arange(rows, dtype=np.float32))[:, None]
    for _ in range(40):
        vector = times(vector)
        length = float(np.linalg.norm(vector))
        if length == 0:
            return 1.0
        vector /= np.float32(length)
    return 1.1 * length


def least_squares(counted: Mask, answers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The values that fit answers best, by the sum of squares; counted[q, i] is public."""
    signs = signs_of(counted)
    signs -= signs.mean(axis=0)
    sides = signs.T @ (2 * (answers - answers.mean())).astype(np.float32)[:, None]
    return in_the_box(lambda x: signs.T @ (signs @ x), sides)[:, 0].astype(np.float64)


def signs_of(counted: Mask) -> Floats:
    """+1 where a question counts the row, −1 elsewhere."""
    return counted.astype(np.float32) * 2 - 1


def linear_program(counted: Mask, answers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The values between 0 and 1 whose counts differ least from the answers, added up.

    Its dual is solved: max aᵀw − Σ max(0, (Qᵀw)ᵢ) over −1 ≤ w ≤ 1, one constraint for each row and
    none for the questions. Values are what the constraints cost.
    """
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to load)

    questions, rows = counted.shape
    # Qᵀw − s ≤ 0, s ≥ 0: at the best, the multiplier of row i's constraint is xᵢ.
    left = np.hstack([counted.T.astype(np.float64), -np.eye(rows)])
    cost = np.concatenate([-answers, np.ones(rows)])
    bounds = [(-1, 1)] * questions + [(0, None)] * rows
    found = linprog(cost, A_ub=left, b_ub=np.zeros(rows), bounds=bounds, method="highs")
    values: npt.NDArray[np.float64] = np.clip(-found.ineqlin.marginals, 0, 1)
    return values
