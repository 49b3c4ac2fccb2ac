"""How far the table's joint distribution is from the one that a grouped release implies."""

from __future__ import annotations

import math

import numpy as np

from voile.arrays import Floats
from voile.evaluate.losses.kernels import box_densities
from voile.kinds.blocks import Boxes, Points, Told, summed
from voile.privacy.divergence import kullback_leibler
from voile.recoding.units import Codes, Counts
from voile.schema import TupleIndex


def joint_divergence(
    told: Told, cells: Codes, counts: Counts, sizes: tuple[int, ...], left_out: int = 0
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
