"""The attack against noise of a chosen size: how much of a column comes back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError, spelled
from voile.evaluate.reconstruction.fitting import (
    LAWS,
    NormalEquations,
    ceiling,
    check_size,
    linear_program,
    signs_of,
)
from voile.noise import Key
from voile.privacy.interactive.confidence import variance_needed
from voile.records import Record

BLOCK = 2_048
"""Questions whose subsets are held at once."""
MOST_RUNS, MOST_WORK = 1_000, 2e13
"""Runs, and multiplications in all of them (about five minutes of one core)."""


@dataclass(frozen=True)
class Noise:
    """How large the noise is, by one of four measures."""

    name: str
    roots: float | None = None
    """In √n: the standard deviation, or the largest value of uniform noise."""
    variance: float | None = None
    per_question: float | None = None
    """Its variance for each question that is asked: 1 is what the slides print."""
    setting: tuple[float, float] | None = None
    """(δ, η): what the server would add if it had been begun with T = the number of questions."""

    def size(self, rows: int, questions: int) -> float:
        """The size for so many rows and questions."""
        if self.roots is not None:
            return self.roots * math.sqrt(rows)
        if self.variance is not None:
            return math.sqrt(self.variance)
        if self.per_question is not None:
            return math.sqrt(self.per_question * questions)
        delta, eta = self.setting or (1.0, 1e-6)
        return math.sqrt(variance_needed(delta, eta, questions))


@dataclass(frozen=True)
class Attempt(Record):
    """What came back for one size of the noise and one number of questions."""

    noise: str
    questions: int
    size: float
    law: str
    rows: int
    recovered: float
    """Share of rows whose value was found, the mean of all runs."""
    stderr: float | None
    """Of that mean: what the runs show, and at least what independent rows would."""
    ceiling: float
    """What nobody is above on average."""

    json_keys = (
        "noise", "questions", "size", "size_in_root_rows=roots", "variance", "recovered",
        "stderr", "ceiling",
    )  # fmt: skip

    @property
    def roots(self) -> float:
        """The size in √n."""
        return self.size / math.sqrt(self.rows)

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        return self.size**2 / (3 if self.law == "uniform" else 1)


@dataclass(frozen=True)
class Reconstruction(Record):
    """A column attacked in simulation, at every size and number of questions that was asked for."""

    rows: int
    share: float
    law: str
    method: str
    runs: int
    seed: int | None
    attempts: tuple[Attempt, ...]

    json_keys = ("rows", "share", "law", "method", "runs", "seed", "guess", "attempts")

    @property
    def guess(self) -> float:
        """What guessing the commoner value gets right."""
        ones = round(self.share * self.rows)
        return max(ones, self.rows - ones) / self.rows


def simulate(
    rows: int,
    questions: Sequence[int],
    noises: Sequence[Noise],
    *,
    law: str = "normal",
    method: str = "lsq",
    share: float = 0.5,
    runs: int = 1,
    seed: int | None = None,
) -> Reconstruction:
    """Attack random columns of so many rows; the questions of a shorter attack begin a longer."""
    asked = sorted(set(questions))
    check(rows, asked, noises, law, method, share, runs)
    key = Key.fresh() if seed is None else Key.from_seed(seed)
    right = np.array(
        [one_run(rows, asked, noises, law, method, share, coins(key, run)) for run in range(runs)]
    )
    spread = spread_of(right, rows) if runs > 1 else None
    attempts = tuple(
        Attempt(
            noise=noise.name, questions=count, size=noise.size(rows, count), law=law, rows=rows,
            recovered=float(right[:, i, j].mean()),
            stderr=None if spread is None else float(spread[i, j]),
            ceiling=ceiling(law, noise.size(rows, count), count / 2, round(share * rows) / rows),
        )
        for i, count in enumerate(asked) for j, noise in enumerate(noises)
    )  # fmt: skip
    return Reconstruction(rows, share, law, method, runs, seed, attempts)


def spread_of(right: npt.NDArray[np.float64], rows: int) -> npt.NDArray[np.float64]:
    """The standard error of the mean over runs.

    Few runs can be alike by chance. Their mean varies at least as one of independent rows does,
    by √(p(1 − p)/(rows·runs)): about √(¼/(rows·runs)) where little comes back.
    """
    share = right.mean(axis=0)
    independent = np.sqrt(share * (1 - share) / (rows * len(right)))
    seen = right.std(axis=0, ddof=1) / math.sqrt(len(right))
    return np.asarray(np.maximum(seen, independent), dtype=np.float64)


def check(
    rows: int, questions: Sequence[int], noises: Sequence[Noise], law: str, method: str,
    share: float, runs: int,
) -> None:  # fmt: skip
    """Refuse what cannot be simulated, or takes too long."""
    if not questions or not noises:
        raise UsageError("nothing to try", hint="name a number of questions and a noise")
    for count in questions:
        check_size(method, rows, count)
    if law not in LAWS:
        raise UsageError(f"there is no law {law!r} of noise", hint=f"use {' or '.join(LAWS)}")
    if not 0 < share < 1:
        raise UsageError(f"a share of {share:g} is not between 0 and 1", hint=spelled("share", 0.5))
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(
            f"{runs:,} runs are not between 1 and {MOST_RUNS:,}", hint=spelled("runs", 5)
        )
    work = float(runs) * max(questions) * rows**2
    if work > MOST_WORK:
        raise UsageError(
            f"{runs:,} runs of {max(questions):,} questions about {rows:,} rows take too long",
            hint="take fewer of one of them",
        )


def coins(key: Key, run: int) -> np.random.Generator:
    """The random numbers of one run."""
    words = key.stream("reconstruction", run).words(4)
    return np.random.Generator(np.random.PCG64([int(word) for word in words]))


def one_run(
    rows: int, asked: Sequence[int], noises: Sequence[Noise], law: str, method: str, share: float,
    rng: np.random.Generator,
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Shares of rows that came back: by number of questions, then by noise."""
    secret = np.zeros(rows, dtype=bool)
    secret[: round(share * rows)] = True
    secret = rng.permutation(secret)
    sizes = np.array([[noise.size(rows, count) for noise in noises] for count in asked])
    fits = fitted_lsq if method == "lsq" else fitted_lp
    found = fits(secret, asked, sizes, law, rng)
    return np.array([[np.mean((values > 0.5) == secret) for values in fit] for fit in found])


def questions_of(
    secret: npt.NDArray[np.bool_], count: int, law: str, rng: np.random.Generator
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Random subsets, and for each the true count and noise of size 1."""
    rows = len(secret)
    bits = np.frombuffer(rng.bytes(count * ((rows + 7) // 8)), np.uint8).reshape(count, -1)
    counted = np.unpackbits(bits, axis=1, count=rows).view(np.bool_)
    unit = rng.standard_normal(count) if law == "normal" else rng.uniform(-1, 1, count)
    return counted, np.column_stack([(counted & secret).sum(axis=1), unit])


def fitted_lsq(
    secret: npt.NDArray[np.bool_], asked: Sequence[int], sizes: npt.NDArray[np.float64], law: str,
    rng: np.random.Generator,
) -> Iterator[npt.NDArray[np.float64]]:  # fmt: skip
    """The noise of every size is the same up to its size, so all fits share the equations."""
    equations = NormalEquations(len(secret), 2)
    for target, own in zip(asked, sizes, strict=True):
        while equations.questions < target:
            count = min(BLOCK, target - equations.questions)
            counted, columns = questions_of(secret, count, law, rng)
            equations.add(signs_of(counted), columns)
        yield equations.fitted(np.column_stack([np.ones(len(own)), own]))


def fitted_lp(
    secret: npt.NDArray[np.bool_], asked: Sequence[int], sizes: npt.NDArray[np.float64], law: str,
    rng: np.random.Generator,
) -> Iterator[npt.NDArray[np.float64]]:  # fmt: skip
    """Fits by linear programming, one for each number of questions and size."""
    counted, columns = questions_of(secret, max(asked), law, rng)
    for target, own in zip(asked, sizes, strict=True):
        true, unit = columns[:target].T
        yield np.array([linear_program(counted[:target], true + size * unit) for size in own])
