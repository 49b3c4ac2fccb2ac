"""What anyone can come to believe from noisy marginals: a bound over all who attack.

The posterior of a certain attacker is not computed: it would need all that they know of every other
row. What is stated holds against whoever knows every other row, for every prior. With geometric
noise it always holds. With normal noise it holds except with probability η, for every prior and
every property, and whatever is computed from the figures (docs/mathematics, section 39); where
tables were chosen privately, by ρ.
"""

from __future__ import annotations

import math

from voile.kinds.beliefs import BeliefBound, BeliefBounds, risen
from voile.kinds.marginals.manifest import MarginalManifest
from voile.privacy.gaussian import any_rise_of

PRIORS = (0.0001, 0.001, 0.01, 0.1, 0.5)
CHANCES = (0.05, 1e-3, 1e-6, 1e-9)
"""η: the probability that a belief exceeds what is stated."""


def belief_bounds(manifest: MarginalManifest) -> BeliefBounds:
    """For several beliefs beforehand."""
    g = manifest.guarantee
    if g.kind == "dp":
        rises = {0.0: g.epsilon}
        about = f"ε = {g.epsilon:.4g} holds always: no attacker's odds rise by more than e^ε times"
    elif g.mu is not None:
        rises = {eta: any_rise_of(g.mu, eta) for eta in CHANCES}
        about = f"exact for normal noise with μ = {g.mu:.4g}, whatever is computed from the figures"
    else:
        # The loss of what is ρ-zCDP exceeds ρ + t with probability at most exp(−t²/4ρ).
        rises = {eta: g.rho + 2 * math.sqrt(-g.rho * math.log(eta)) for eta in CHANCES}
        about = f"from ρ = {g.rho:.4g} of zCDP: tables were chosen privately"
    bounds = tuple(
        BeliefBound(prior, eta, risen(prior, rise))
        for prior in PRIORS
        for eta, rise in rises.items()
    )
    return BeliefBounds(manifest.name, g.unit, bounds, about)
