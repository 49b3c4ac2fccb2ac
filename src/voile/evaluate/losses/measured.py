"""What is measured of a release, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.evaluate.losses.kernels import box_densities
from voile.kinds.blocks import Boxes, Orders, Points, RowBlocks, summed
from voile.privacy.divergence import kullback_leibler
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes, Counts
from voile.schema import TupleIndex
from voile.schema.hierarchy import Levels


@dataclass(frozen=True)
class ClassMeasures:
    """Measures of classes; there are none of other releases."""

    gen_iloss: float
    discernibility: int
    average_class_size: float
    normalised_class_size: float
    precision: float
    non_uniform_entropy: float
    kl: float


@dataclass(frozen=True)
class LossWorkload:
    """Which queries were asked, and how wrong they were answered on average."""

    number: int
    dimension: int
    selectivity: float
    relative_error: float | None
    """None where no query is met by any row."""


@dataclass(frozen=True)
class Accuracy:
    """Shares of rows whose sensitive value is predicted rightly."""

    release: float
    """By naive Bayes that was trained on what the release tells."""
    table: float
    """By naive Bayes that was trained on the table."""
    majority: float
    """By always telling the most frequent value."""
    class_majority: float | None
    """By the most frequent value among the other rows of the class."""


@dataclass(frozen=True)
class WorstPopulation:
    """A large population whose sensitive values are shown worst."""

    population: str
    rows: int
    loss: float


@dataclass(frozen=True)
class Losses:
    """All that is measured. Computed from the private table, and not for publishing."""

    release: str
    kind: str
    rows: int
    qi: tuple[str, ...]
    sensitive: str
    p_loss: float
    p_loss_permitted: float | None
    """The worst that the mechanism could ever show; None for classes, whose classes are shown."""
    p_loss_revealed: float
    """P_loss of the table itself."""
    u_loss: float | None
    """None where no population is large."""
    u_loss_trivial: float | None
    """U_loss of telling the whole table's distribution and no more."""
    min_support: float
    populations: int
    worst: tuple[WorstPopulation, ...]
    classes: ClassMeasures | None
    workload: LossWorkload | None
    accuracy: Accuracy

    def to_dict(self) -> dict[str, Any]:
        """Flat, with the names that are in use; null where a measure does not apply."""
        names = ("gen_iloss", "discernibility", "average_class_size", "normalised_class_size",
                 "precision", "non_uniform_entropy", "kl")  # fmt: skip
        asked = self.workload
        return {
            "release": self.release,
            "kind": self.kind,
            "rows": self.rows,
            "qi": list(self.qi),
            "sensitive": self.sensitive,
            "p_loss": self.p_loss,
            "p_loss_permitted": self.p_loss_permitted,
            "p_loss_revealed": self.p_loss_revealed,
            "u_loss": self.u_loss,
            "u_loss_trivial": self.u_loss_trivial,
            "min_support": self.min_support,
            "populations": self.populations,
            "worst": [asdict(one) for one in self.worst],
            **{name: getattr(self.classes, name, None) for name in names},
            "relative_error": asked.relative_error if asked else None,
            "queries": None
            if asked is None
            else {"number": asked.number, "dimension": asked.dimension,
                  "selectivity": asked.selectivity},
            "accuracy": asdict(self.accuracy),
            "publishable": False,
        }  # fmt: skip


# ----------------------------------------------------------------------
# how well sensitive values can be predicted from quasi-identifiers, learning from a release alone


def naive_bayes_accuracy(
    told: RowBlocks, cells: Codes, counts: Counts, sizes: Sequence[int]
) -> float:
    """The share of the table's rows that naive Bayes, trained on a release, gets right.

    Trained on the estimated counts of each column's values beside each sensitive value, one row
    added to each; negative estimates are 0. `cells` and their `counts` are the table.
    """
    rows = np.maximum(sum(blocks.counts.sum(axis=0) for blocks in told), 0.0)
    with np.errstate(divide="ignore"):
        score = np.tile(np.log(rows), (cells.shape[1], 1))
    for j, size in enumerate(sizes):
        pairs = np.maximum(sum(blocks.by_value(j, size) for blocks in told), 0.0)
        score += np.log((pairs + 1) / (pairs.sum(axis=0) + size))[cells[j]]
    right = np.take_along_axis(counts, np.argmax(score, axis=1)[:, None], axis=1)
    return float(right.sum() / max(1, counts.sum()))


def class_majority_accuracy(shown: Shown, attribute: int = 0) -> float:
    """The share of rows that have the most frequent value of the other rows of their class.

    Each row is left out of its class while it is predicted. Of values that are equally frequent the
    one that is more frequent in the whole table is predicted.
    """
    counts = shown.histograms.counts[attribute]
    overall = shown.histograms.overall[attribute]
    rank = np.empty(len(overall), dtype=np.int64)
    rank[np.argsort(-overall, kind="stable")] = np.arange(len(overall))[::-1]
    order = counts * np.int64(len(overall)) + rank  # by count, then by rank
    top = np.argmax(order, axis=1)
    first = np.take_along_axis(order, top[:, None], axis=1)[:, 0]
    others = order.copy()
    np.put_along_axis(others, top[:, None], -1, axis=1)
    right = first - len(overall) > others.max(axis=1)  # still predicted when one row is left out
    rows = np.take_along_axis(counts, top[:, None], axis=1)[:, 0]
    return float(rows[right].sum() / max(1, counts.sum()))


def majority_accuracy(counts: Counts) -> float:
    """The share of rows that have the table's most frequent value."""
    overall = counts.sum(axis=0)
    return float(overall.max() / max(1, overall.sum()))


# ----------------------------------------------------------------------
# what grouping rows into classes costs, by the measures that are in use
# All need no more than what is shown and the table's own values: which row is in which class is not
# asked. Values that are shown as they are cost nothing, so what is about generalized values is 0
# for bucketized rows. Rows that were left out of the release (`left_out`) lost all that there is.


def discernibility(shown: Shown, left_out: int = 0) -> int:
    """Σ over rows of how many rows look the same; a suppressed row looks like any other."""
    rows = shown.histograms.rows
    every = int(rows.sum()) + left_out
    last = np.array(shown.sizes) - 1
    suppressed = ((shown.low == 0) & (shown.high == last)).all(axis=1)
    if shown.recode == "bucketize":
        suppressed[:] = False
    return int((rows * np.where(suppressed, every, rows)).sum()) + left_out * every


def average_class_size(shown: Shown) -> float:
    """Rows for each class."""
    rows = shown.histograms.rows
    return float(rows.sum() / max(1, np.count_nonzero(rows)))


def normalised_class_size(shown: Shown) -> float:
    """C_avg: the average class size in units of the smallest class; 1 is the best."""
    rows = shown.histograms.rows
    return average_class_size(shown) / int(rows[rows > 0].min())


def gen_iloss(shown: Shown, left_out: int = 0) -> float:
    """GenILoss, or NCP: (high − low)/(size − 1), the mean over all cells of the table.

    0 where values are shown as they are, 1 where all are suppressed. A column of one value has
    nothing to lose, and is not counted.
    """
    steps = np.array(shown.sizes) - 1
    wide = (shown.high - shown.low)[:, steps > 0] / steps[steps > 0]
    lost = wide.mean(axis=1) if wide.shape[1] else np.zeros(len(wide))
    return mean_over_rows(shown, lost, left_out)


def precision(shown: Shown, levels: Sequence[Levels], orders: Orders, left_out: int = 0) -> float:
    """Sweeney's Prec: 1 − the mean of level/height over all cells of the table.

    The level of a range is that of the lowest node that has all of it. A column of one value is
    not counted.
    """
    lost = np.zeros(len(shown.low))
    counted = max(1, sum(of.size > 1 for of in levels))
    for j, (of, order) in enumerate(zip(levels, orders, strict=True)):
        if of.size == 1:
            continue
        low, high = shown.low[:, j], shown.high[:, j]
        level = np.full(len(low), of.height)
        for h in range(of.height - 1, -1, -1):
            nodes = of.nodes[h][order]
            runs = np.cumsum(np.concatenate([[False], nodes[1:] != nodes[:-1]]))
            level[runs[low] == runs[high]] = h
        lost += level / of.height
    return 1.0 - mean_over_rows(shown, lost / counted, left_out)


def non_uniform_entropy(shown: Shown, values: Sequence[Counts], left_out: int = 0) -> float:
    """What is still open about values, as a share of what suppressing all of them leaves open.

    Knowing a range E, a value v is open to −ln(n_v/n_E), with n_v the rows of the table that have
    the value and n_E those that have one of the range. values[j] are the n_v of column j, by
    position. 0 where values are shown as they are, 1 where all are suppressed.
    """
    rows = shown.histograms.rows
    if shown.recode == "bucketize":  # a row that was left out counts like any other
        return left_out / max(1, left_out + int(rows.sum()))
    left = whole = 0.0
    for j, count in enumerate(values):
        before = np.concatenate([[0], np.cumsum(count)])
        inside = before[shown.high[:, j] + 1] - before[shown.low[:, j]]
        told, every = times_log(count, count), before[-1:]
        left += times_log(rows, inside) + left_out * times_log(np.ones(1), every) - told
        whole += times_log(every, every) - told
    return left / whole if whole > 0 else 0.0


def times_log(weights: Counts | Floats, numbers: Counts) -> float:
    """Σ w ln x, over x > 0."""
    return float((weights * np.log(np.maximum(numbers, 1))).sum())


def mean_over_rows(shown: Shown, by_class: Floats, left_out: int) -> float:
    """Of what each row lost; 1 for rows that were left out, and 0 for those shown as they are."""
    rows = shown.histograms.rows
    lost = 0.0 if shown.recode == "bucketize" else float((rows * by_class).sum())
    return (lost + left_out) / max(1, int(rows.sum()) + left_out)


# ----------------------------------------------------------------------
# how far the table's joint distribution is from the one that a grouped release implies


def joint_divergence(
    told: RowBlocks, cells: Codes, counts: Counts, sizes: tuple[int, ...], left_out: int = 0
) -> float:
    """KL(table ‖ release) over (quasi-identifiers, sensitive value), on the cells the table has.

    `cells` are the different combinations of codes, `counts` their (cells, sensitive values) rows.
    Rows that were left out of the release lie anywhere, and have any value.
    """
    rows = float(counts.sum())
    evenly = left_out / (math.prod(sizes) * counts.shape[1])
    implied = np.full(counts.shape, evenly)
    for blocks in told:
        if isinstance(blocks, Boxes):
            implied += of_boxes(blocks, cells)
        elif isinstance(blocks, Points):
            implied += of_points(blocks, cells, sizes)
    return float(kullback_leibler(counts.ravel() / rows, implied.ravel() / rows))


def of_boxes(boxes: Boxes, cells: Codes) -> Floats:
    """(cells, sensitive values): the rows that boxes put on each cell."""
    places = []
    for order, codes in zip(boxes.orders, cells, strict=True):
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        places.append(place[codes])
    narrow = narrowest(boxes)
    along = np.argsort(places[narrow], kind="stable")
    sorted_places = np.stack([place[along] for place in places])
    found = np.zeros((cells.shape[1], boxes.counts.shape[1]))
    box_densities(
        sorted_places, boxes.low, boxes.high, boxes.counts,
        np.searchsorted(sorted_places[narrow], boxes.low[:, narrow]),
        np.searchsorted(sorted_places[narrow], boxes.high[:, narrow], side="right"),
        found,
    )  # fmt: skip
    implied = np.empty_like(found)
    implied[along] = found
    return implied


def narrowest(boxes: Boxes) -> int:
    """The column by which the fewest cells have to be looked at."""
    sizes = np.array([len(order) for order in boxes.orders])
    return int(np.argmin(((boxes.high - boxes.low + 1) / sizes).mean(axis=0)))


def of_points(points: Points, cells: Codes, sizes: tuple[int, ...]) -> Floats:
    """(cells, sensitive values): the rows of points that are the cell."""
    index = TupleIndex(sizes)
    wanted, told = index.encode(list(cells)), index.encode(list(points.codes))
    known, where = np.unique(told, return_inverse=True)
    counts = summed(where, points.counts, len(known))
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where((known[place] == wanted)[:, None], counts[place], 0.0)
