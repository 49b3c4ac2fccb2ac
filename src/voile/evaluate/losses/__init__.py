"""What a release costs: privacy lost, utility lost, on the same axes for every kind of release."""

from voile.evaluate.losses.blocks import Told, told_by
from voile.evaluate.losses.privacy_loss import class_losses, p_loss
from voile.evaluate.losses.queries import Queries, relative_error, workload
from voile.evaluate.losses.utility_loss import estimated, u_loss
from voile.privacy.divergence import jensen_shannon, kullback_leibler
from voile.recoding.populations import Populations, populations

__all__ = [
    "Populations", "Queries", "Told", "class_losses", "estimated", "jensen_shannon",
    "kullback_leibler", "p_loss", "populations", "relative_error", "told_by", "u_loss", "workload",
]  # fmt: skip
