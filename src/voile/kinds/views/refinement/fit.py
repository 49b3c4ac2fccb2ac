"""From a published view to its refinement: how many components, the fit, and its error.

All of it is post-processing of what is public anyway: it costs no privacy, and its seed is no
secret. The same view and seed give the same refinement on any machine's number of cores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.kinds.views.refinement.em import (
    CHUNKS,
    CoinPurpose,
    Fitter,
    KnownNoise,
    PackedLayout,
    PackedRows,
    checked,
)
from voile.kinds.views.refinement.examine import CAUTION, ProbeNoise, ProbeResiduals, law, residuals
from voile.kinds.views.refinement.mixture import ErrorModel, Mixture, average
from voile.progress import Progress, Silent

# ---------------------------------------------------------------------- the number of components
# How many components, and how many steps of EM: what predicts rows that the fit has not seen.
#
# A fifth of the rows is held out by coin. K is doubled as long as the held-out rows become more
# likely by more than the standard error of that gain, and EM stops where they no longer gain at all
# (stopping early regularises). The truth is not used.
#
# A fit is the average of a few fits from different random starts: the average of mixtures is a
# mixture, never less likely than its members are on average, and free of what one start happened to
# find.


HELD_OUT = 0.2
STARTS = 4
"""Fits that are averaged."""
TRIALS = 2
"""Fits that are averaged while choosing, to save time; the same starts."""
BLOCK = 10
"""Steps of EM between looks at the held-out rows."""
MOST_BLOCKS = 40
MOST_WORK = 2_000_000_000
"""Steps times rows times components of one start: some seconds. A few blocks are always done."""
FEWEST_BLOCKS = 3
PATIENCE = 8
"""Blocks without gain after which EM stops: it may cross a plateau first."""
FALL = 5.0
"""A fall of the held-out rows' log-likelihood that is no plateau: they are e⁵ times less likely."""
SURE = 8
"""From this K on, one doubling without gain is the last."""
MOST_COMPONENTS = 256
MOST_NUMBERS = 2**22
"""Components times cells: what the tables of one start may hold."""


@dataclass(frozen=True)
class ComponentTrial:
    """One K: `held_out` is the mean of log λ over the held-out rows, `gain` over the K before."""

    components: int
    steps: int
    held_out: float
    gain: float
    gain_error: float
    seconds: float


@dataclass(frozen=True)
class ComponentChoice:
    """How many components were chosen, after which trials; and the fit that was found on the way.

    `guide` knows which rows may be records.
    """

    components: int
    steps: int
    trials: tuple[ComponentTrial, ...]
    guide: Mixture

    def to_dict(self) -> dict[str, object]:
        """The choice as the refinement's report has it."""
        return {
            "components": self.components,
            "steps": self.steps,
            "trials": [asdict(trial) for trial in self.trials],
        }


@dataclass(frozen=True)
class HeldOut:
    """Rows that are fitted to, and rows that are not, without those that are noise under a fit.

    `best` has log λ of the rows that are not fitted to; `count` is how many there were of these.
    """

    train: PackedRows
    test: PackedRows
    best: Floats
    count: int

    @classmethod
    def likely(cls, fitter: Fitter, train: PackedRows, test: PackedRows, fit: Mixture) -> HeldOut:
        """Those that may be records under this fit."""
        near, best = fitter.likely(test, fit)
        return cls(fitter.likely(train, fit)[0], near, best, len(test))

    def mean(self, densities: Floats, noise: float) -> float:
        """The mean of log λ: of the rows that were left out, it is the noise's."""
        rest = self.count - len(densities)
        total = float(densities.sum()) + (rest * math.log(noise) if rest else 0.0)
        return total / self.count if self.count else 0.0


def choose(fitter: Fitter, rows: PackedRows, seed: int, progress: Progress) -> ComponentChoice:
    """Double K while the held-out rows become more likely.

    Whenever a better fit is found, it says which rows are looked at from then on.
    """
    held = CoinPurpose.HELD_OUT.thrown(seed).random(len(rows)) < HELD_OUT
    train, test = rows.where(~held, 1 - HELD_OUT), rows.where(held, HELD_OUT)
    noise = test.share * fitter.known.noise
    guide = fitter.independent(train)
    base = [table[0] for table in guide.tables]
    near = HeldOut.likely(fitter, train, test, guide)
    chosen = ComponentTrial(1, 0, near.mean(near.best, noise), 0.0, 0.0, 0.0)
    trials = [chosen]
    tried = candidates(rows)
    progress.start("choosing the model", len(tried))
    for components in tried:
        began = time.monotonic()
        steps, found, fit = climb(fitter, near, base, components, seed)
        gain, error = paired(found, near.best)
        trial = ComponentTrial(
            components, steps, near.mean(found, noise), gain, error, time.monotonic() - began
        )
        trials.append(trial)
        progress.advance(1)
        if gain > error:
            chosen, guide = trial, fit
            near = HeldOut.likely(fitter, train, test, guide)
        elif components >= SURE:
            break
    progress.advance(1 + len(tried) - len(trials))  # larger ones are not worth trying
    return ComponentChoice(chosen.components, chosen.steps, tuple(trials), guide)


def candidates(rows: PackedRows) -> list[int]:
    """2, 4, 8, …: no more components than rows, nor than memory is meant for."""
    most = min(MOST_COMPONENTS, len(rows), MOST_NUMBERS // max(1, rows.layout.cells))
    return [2**i for i in range(1, max(1, most).bit_length())] if rows.layout.groups else []


def climb(
    fitter: Fitter, rows: HeldOut, base: Sequence[Floats], components: int, seed: int
) -> tuple[int, Floats, Mixture]:
    """EM until the held-out rows no longer gain: the number of steps, log λ of each, the fit."""
    fits = [fitter.start(base, components, seed, number) for number in range(TRIALS)]
    steps, best, most = 0, np.full(len(rows.test), -math.inf), -math.inf
    chosen = average(fits)
    for block in range(1, blocks(rows.train, components) + 1):
        fits = [fitter.run(rows.train, fit, base, BLOCK) for fit in fits]
        fit = average(fits)
        found = fitter.log_densities(rows.test, fit)
        total = float(found.sum())
        if total > most or not steps:
            steps, best, most, chosen = block * BLOCK, found, total, fit
        elif total < most - FALL or block * BLOCK - steps >= PATIENCE * BLOCK:
            break
    return steps, best, chosen


def blocks(rows: PackedRows, components: int) -> int:
    """How long EM may run: until it has converged, where that can be afforded."""
    affordable = MOST_WORK // max(1, len(rows) * components * BLOCK)
    return min(MOST_BLOCKS, max(FEWEST_BLOCKS, affordable))


def ensemble(fitter: Fitter, rows: PackedRows, choice: ComponentChoice, seed: int) -> Mixture:
    """The fit that was chosen, to these rows."""
    alone = fitter.independent(rows)
    if choice.components == 1:
        return alone
    base = [table[0] for table in alone.tables]
    rows, _ = fitter.likely(rows, choice.guide)
    starts = min(STARTS, max(1, 2 * MOST_NUMBERS // (choice.components * rows.layout.cells)))
    return average(
        [
            fitter.run(rows, fitter.start(base, choice.components, seed, i), base, choice.steps)
            for i in range(starts)
        ]
    )


def paired(new: Floats, old: Floats) -> tuple[float, float]:
    """Mean gain per row, and its standard error: rows come and go as in a Poisson process."""
    if not len(new):
        return 0.0, 0.0
    difference = new - old
    return mean(difference), float(np.sqrt((difference**2).sum())) / len(new)


def mean(values: Floats) -> float:
    """The mean; 0 of nothing."""
    return float(values.mean()) if len(values) else 0.0


# ---------------------------------------------------------------------- the fit


MOST_ROWS = 2**28
"""Rows that are fitted to, some twelve bytes each; of a larger view, a sample."""

LEAST_WEIGHTS = np.array([1.0, 0.0, 0.0])
"""κ is at least 1: a table is one draw, and its counts scatter around any smooth model by their own
size. Where there is little noise, halves of the view cannot tell that from what thinning does."""


@dataclass(frozen=True)
class Refinement:
    """The fitted model, the error of counts from it, and how both came about."""

    mixture: Mixture
    error: ErrorModel
    halves: tuple[Mixture, Mixture]
    report: dict[str, Any]


def refine(
    batches: Iterable[Sequence[npt.NDArray[Any]]],
    sizes: Sequence[int],
    *,
    seen: int,
    noise_mean: float,
    excess: float,
    retention: float,
    noise_variance: float,
    rows: float | None,
    domain: int,
    seed: int = 0,
    progress: Progress | None = None,
    threads: int | None = None,
) -> Refinement:
    """Fit a mixture to a view of `seen` rows.

    A batch of rows has one column per attribute, a code for every row. `rows` is the number of
    records where that is public; otherwise it is estimated. `domain` is the size of D, however
    large.
    """
    began = time.monotonic()
    layout = PackedLayout.suited(tuple(map(int, sizes)), seen)
    noise = probe_noise(
        noise_mean=noise_mean,
        excess=excess,
        retention=retention,
        noise_variance=noise_variance,
        domain=domain,
    )
    total = expected_rows(noise, seen, rows)
    known = KnownNoise(total, excess, times(noise_mean, layout.uniform_tuples))
    view = packed(layout, batches, seen, seed)
    with ThreadPoolExecutor(threads or CHUNKS) as pool:
        fitter = Fitter(layout, known, pool)
        choice, mixture, halves, found = fitted(fitter, noise, view, seed, progress or Silent())
    report = {
        **choice.to_dict(),
        "rows": seen,
        "fitted_rows": len(view),
        "left_out": list(mixture.left_out),
        "queries": len(found.x),
        "seed": seed,
        "seconds": time.monotonic() - began,
    }
    error = error_model(found, noise, total, public=rows is not None)
    return Refinement(mixture, error, halves, report)


def probe_noise(
    *, noise_mean: float, excess: float, retention: float, noise_variance: float, domain: int
) -> ProbeNoise:
    """What a release states about its noise."""
    return ProbeNoise(
        retention=retention,
        excess=excess,
        rows=times(noise_mean, domain),
        dispersion=noise_variance / noise_mean if noise_mean > 0 else 1.0,
    )


def expected_rows(noise: ProbeNoise, seen: int, rows: float | None) -> float:
    """How many records there are: what is public, else the estimate."""
    return max(1.0, (seen - noise.rows) / noise.excess if rows is None else float(rows))


def fitted(
    fitter: Fitter, noise: ProbeNoise, view: PackedRows, seed: int, progress: Progress
) -> tuple[ComponentChoice, Mixture, tuple[Mixture, Mixture], ProbeResiduals]:
    """Choose, fit all of it and each half, and let the halves examine each other."""
    choice = choose(fitter, view, seed, progress)
    progress.start("fitting", 2)
    mixture = ensemble(fitter, view, choice, seed)
    progress.advance(1)
    a, b = split(view, seed)
    halves = ensemble(fitter, a, choice, seed), ensemble(fitter, b, choice, seed)
    progress.advance(1)
    progress.start("examining", 1)
    found = residuals(fitter, noise, (a, b), halves, seed)
    progress.advance(1)
    return choice, mixture, halves, found


def error_model(
    found: ProbeResiduals, noise: ProbeNoise, total: float, *, public: bool
) -> ErrorModel:
    """What the residuals of the halves say about the error of the whole fit."""
    weights, errors = law(found)
    whole = float(noise.variance(np.array(total), np.array(1.0)))  # `agrees` computes it again
    return ErrorModel(
        weights=np.maximum(weights + CAUTION * errors, LEAST_WEIGHTS),
        follows=float(found.follows.max(initial=0.0)),
        rows=total,
        whole=whole,
        unsure=0.0 if public else math.sqrt(whole) / total,
    )


FURTHEST = 10.0
"""Standard deviations between a count of the model and that of the view; fits stay below 5."""
MOST_CELLS = 10**5


def agrees(
    found: Refinement,
    noise: ProbeNoise,
    codes: Sequence[npt.NDArray[Any]] | None,
    sizes: Sequence[int],
    *,
    seen: int,
    rows: float | None,
) -> bool:
    """Whether a model can be one of this view: totals as they follow from it, and its counts.

    The counts of all values, and of pairs of values, are as far from those of the view as the
    model's own error allows. `codes` are the view's rows; None where looking takes too long.
    """
    error, total = found.error, expected_rows(noise, seen, rows)
    whole = float(noise.variance(np.array(total), np.array(1.0)))
    unsure = 0.0 if rows is not None else math.sqrt(whole) / total
    stated = [found.mixture.rows, error.rows, error.whole, error.unsure]
    if not np.allclose(stated, [total, total, whole, unsure], rtol=1e-9, atol=0.0):
        return False
    if not (error.weights >= LEAST_WEIGHTS).all():
        return False
    if codes is None:
        return True
    known = [j for j in range(len(sizes)) if j not in found.mixture.left_out]
    subsets = [(j,) for j in known] + list(combinations(known, 2))
    return all(
        furthest(found, noise, [codes[j] for j in subset], sizes, subset) < FURTHEST
        for subset in subsets
        if math.prod(sizes[j] for j in subset) <= MOST_CELLS
    )


def furthest(
    found: Refinement,
    noise: ProbeNoise,
    codes: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    subset: Sequence[int],
) -> float:
    """Of all cells of a few attributes, how far the model is from the view, in standard errors."""
    widths = [sizes[j] for j in subset]
    cells = math.prod(widths)
    place = np.ravel_multi_index([np.asarray(column, np.int64) for column in codes], widths)
    seen = np.bincount(place, minlength=cells).astype(np.float64)
    domain = np.full(cells, 1 / cells)
    plain, model = noise.plain(seen, domain, 1.0), found.mixture.marginal(subset).ravel()
    variance = noise.variance(np.maximum(plain, 0.0), domain)
    both = variance + found.error.model_variance(model, variance)
    return float((np.abs(plain - model) / np.sqrt(np.maximum(both, LEAST_VARIANCE))).max())


LEAST_VARIANCE = 1e-6
"""Where there is no noise and the model expects nothing, a row is far from it."""


def packed(
    layout: PackedLayout, batches: Iterable[Sequence[npt.NDArray[Any]]], seen: int, seed: int
) -> PackedRows:
    """The view's rows, or of a very large view each row with the same chance."""
    share = min(1.0, MOST_ROWS / max(1, seen))
    coins = CoinPurpose.SAMPLE.thrown(seed)
    parts = [np.empty((len(layout.groups), 0), np.int32)]
    for batch in batches:
        columns = checked(batch, layout.sizes)
        if share < 1:
            chosen = np.flatnonzero(coins.random(len(columns[0])) < share)
            columns = [column[chosen] for column in columns]
        parts.append(layout.pack(columns))
    return PackedRows(layout, np.concatenate(parts, axis=1), share)


def split(view: PackedRows, seed: int) -> tuple[PackedRows, PackedRows]:
    """Two halves by coin."""
    heads = CoinPurpose.HALVES.thrown(seed).random(len(view)) < 0.5
    return view.where(heads, 0.5), view.where(~heads, 0.5)


def times(mean: float, count: int) -> float:
    """mean · count, where the count may be too large for a float64."""
    if mean <= 0:
        return 0.0
    exponent = math.log(mean) + math.log(count)
    return math.exp(exponent) if exponent < 700 else math.inf
