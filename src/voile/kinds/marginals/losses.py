"""What noisy marginals show, and what they let one believe: all that losses need of them."""

from __future__ import annotations

import math
from fractions import Fraction

from voile.kinds.blocks import Products, RowBlocks
from voile.kinds.evaluation import LossEvidence, Posterior, Truth, worst_divergence
from voile.kinds.marginals.release import MarginalRelease
from voile.privacy import LikelihoodRatio


def marginal_evidence(release: MarginalRelease, truth: Truth) -> LossEvidence:
    """Its model, product by product, and the bound of what anyone comes to believe.

    The belief of one who knows every other row is not computed: what is `measured` is the bound
    itself. With normal noise it is that of ε, which holds except with a small
    probability: the tail of the privacy loss, which is above δ.
    """
    bound = worst_divergence(truth.overall, likelihood_ratio(release))
    return LossEvidence(shown_by_model(release, truth), Posterior(bound, bound))


def shown_by_model(release: MarginalRelease, truth: Truth) -> RowBlocks:
    """A block for each product of the mixture."""
    names, mixture = release.schema.names, release.model.mixture
    columns = [mixture.parts[names.index(name)] for name in truth.qi]
    sensitive = mixture.parts[names.index(truth.sensitive)]
    return tuple(
        Products((mixture.rows * weight * sensitive[k])[None, :], tuple(c[k] for c in columns))
        for k, weight in enumerate(mixture.weights)
    )


def likelihood_ratio(release: MarginalRelease) -> LikelihoodRatio:
    """Of a row that is there with one value of a column or with another: P(release) by both."""
    g = release.manifest.guarantee
    epsilon = g.epsilon if g.unit == "exchange" else 2 * g.epsilon
    half = Fraction(math.exp(epsilon / 2))
    return LikelihoodRatio(1 / half, half)
