"""U_loss: how wrong estimates about large populations are, on average.

For each population the distribution of its sensitive values is estimated from what a release
tells, and compared with the true one.
"""

from __future__ import annotations

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.evaluate.losses.kernels import sums_of_blocks
from voile.kinds.blocks import Blocks, Orders, Told, in_parts, told_by
from voile.privacy.divergence import jensen_shannon, shares
from voile.recoding.grouping import Shown
from voile.recoding.populations import Populations


def u_loss(
    shown: Shown, populations: Populations, orders: Orders | None = None, attribute: int = 0
) -> float:
    """The mean of JS between the true and the estimated distribution of each large population.

    `orders` lead from the positions in `shown` to the codes of the populations; without them
    positions are codes.
    """
    return mean_divergence(populations, estimated(told_by(shown, orders, attribute), populations))


def estimated(told: Told, populations: Populations) -> Floats:
    """(populations, sensitive values): rows that each is estimated to have.

    For classes that is Σ_B |B ∩ y| p_B(s) if they are bucketized, and Σ_E n_E(s) Π_j |Y_j ∩ E_j| /
    |E_j| if they are generalized.
    """
    values = len(populations.overall)
    if any(blocks.counts.shape[1] != values for blocks in told):
        raise UsageError(
            f"the release and the populations do not have the same {values} sensitive values",
            hint="name the same sensitive column",
        )
    found = np.zeros((populations.number, values))
    for blocks in told:
        for part in in_parts(blocks.merged(populations.kind_of)):
            sums_of_blocks(
                populations.column, populations.item, populations.size,
                overlaps(part, populations), np.ascontiguousarray(part.counts), found,
            )  # fmt: skip
    return found


def overlaps(blocks: Blocks, populations: Populations) -> Floats:
    """(quasi-identifiers, items, blocks): the share of each block that each item has."""
    most = max(items.number for items in populations.items)
    found = np.zeros((len(populations.items), most, len(blocks.counts)))
    for j, items in enumerate(populations.items):
        found[j, : items.number] = blocks.shares(j, items.has)
    return found


def population_losses(populations: Populations, counts: Floats) -> Floats:
    """(populations,): JS between the true distribution and estimated counts.

    Negative counts are 0; where nothing is left, the estimate is the whole table's distribution.
    """
    counts = np.maximum(counts, 0.0)
    known = counts.sum(axis=1, keepdims=True) > 0
    return jensen_shannon(populations.true, np.where(known, shares(counts), populations.overall))


def mean_divergence(populations: Populations, counts: Floats) -> float:
    """U_loss of estimated counts; 0 where there is no large population."""
    losses = population_losses(populations, counts)
    return float(losses.mean()) if len(losses) else 0.0
