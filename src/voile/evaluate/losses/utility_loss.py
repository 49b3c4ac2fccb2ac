"""U_loss: how wrong estimates about large populations are, on average.

For each population the distribution of its sensitive values is estimated from what is shown, and
compared with the true one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.errors import UsageError
from voile.evaluate.losses.divergence import Floats, jensen_shannon, shares
from voile.evaluate.losses.kernels import sums_of_boxes
from voile.evaluate.losses.populations import Populations
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes

Orders = Sequence[Codes]
"""For each quasi-identifier the code at each position of its order."""


def u_loss(
    shown: Shown, populations: Populations, orders: Orders | None = None, attribute: int = 0
) -> float:
    """The mean of JS between the true and the estimated distribution of each large population.

    `orders` lead from the positions in `shown` to the codes of the populations; without them
    positions are codes.
    """
    return mean_divergence(populations, estimated(shown, populations, orders, attribute))


def population_losses(populations: Populations, counts: Floats) -> Floats:
    """(populations,): JS between the true distribution and estimated counts.

    Negative counts are 0; where nothing is left, the estimate is the whole table's distribution.
    """
    counts = np.maximum(counts, 0.0)
    known = counts.sum(axis=1, keepdims=True) > 0
    return jensen_shannon(populations.true, np.where(known, shares(counts), populations.overall))


def mean_divergence(populations: Populations, counts: Floats) -> float:
    """U_loss of estimated counts, 0 where there is no large population."""
    losses = population_losses(populations, counts)
    return float(losses.mean()) if len(losses) else 0.0


def estimated(
    shown: Shown, populations: Populations, orders: Orders | None = None, attribute: int = 0
) -> Floats:
    """(populations, sensitive values): rows that each is estimated to have.

    Bucketized, a row's value is drawn from its class: Σ_B |B ∩ y| p_B(s). Generalized, rows are
    spread evenly over the box of their class: Σ_E n_E(s) Π_j |Y_j ∩ E_j| / |E_j|.
    """
    counts = shown.histograms.counts[attribute]
    if len(shown.sizes) != len(populations.items) or counts.shape[1] != len(populations.overall):
        raise UsageError(
            "the release and the populations have different columns",
            hint="name the same quasi-identifiers and the same sensitive column",
        )
    in_order = orders or [np.arange(size, dtype=np.int32) for size in shown.sizes]
    if shown.recode == "generalize":
        found = np.zeros((populations.number, counts.shape[1]))
        sums_of_boxes(
            populations.column, populations.item, populations.size,
            overlaps(shown, populations, in_order), counts.astype(np.float64), found,
        )  # fmt: skip
        return found
    assert shown.cells is not None  # noqa: S101
    assert shown.cell_class is not None and shown.cell_rows is not None  # noqa: S101
    codes = np.stack([order[cells] for order, cells in zip(in_order, shown.cells, strict=True)])
    atoms = populations.atoms_of(codes)
    by_cell = shares(counts)[shown.cell_class] * shown.cell_rows[:, None]
    number = populations.atoms.shape[1]
    return populations.sums(np.stack([np.bincount(atoms, of, number) for of in by_cell.T], axis=1))


def overlaps(shown: Shown, populations: Populations, orders: Orders) -> Floats:
    """(quasi-identifiers, items, classes): the share of each box that each item has."""
    most = max(items.number for items in populations.items)
    found = np.zeros((len(orders), most, len(shown.low)))
    for j, (items, order) in enumerate(zip(populations.items, orders, strict=True)):
        before = np.zeros((items.number, len(order) + 1), dtype=np.int32)
        np.cumsum(items.has[:, order], axis=1, out=before[:, 1:])
        low, high = shown.low[:, j], shown.high[:, j] + 1
        found[j, : items.number] = (before[:, high] - before[:, low]) / (high - low)
    return found
