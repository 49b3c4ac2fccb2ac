"""What anyone can come to believe from noisy marginals: a bound over all who attack.

The posterior of a certain attacker is not computed: it would need all that they know of every other
row. What is stated holds against whoever knows every other row, for every prior. With geometric
noise it always holds, or unless a threshold of a learnt domain fails. With normal noise it holds
except with probability η, for every prior and every property, and whatever is computed from the
figures (docs/mathematics, section 39); where tables were chosen privately, by ρ.
"""

from __future__ import annotations

import math
from dataclasses import replace

from voile.kinds.beliefs import BeliefBound, BeliefBounds, StatedBeliefs, normal_eta
from voile.kinds.marginals.manifest import MarginalManifest, threshold_delta
from voile.privacy.gaussian import any_rise_chance, any_rise_of
from voile.privacy.guarantee import after
from voile.privacy.spent import NOTHING

PRIORS = (0.0001, 0.001, 0.01, 0.1, 0.5)
CHANCES = (0.05, 1e-3, 1e-6, 1e-9)
"""η: the probability that a belief exceeds what is stated."""


def belief_bounds(manifest: MarginalManifest) -> BeliefBounds:
    """For several beliefs beforehand."""
    g = manifest.guarantee
    if g.kind == "dp":
        chances: tuple[float, ...] = (0.0,)
        about = f"ε = {g.epsilon:.4g} holds always: no attacker's odds rise by more"
    elif manifest.parameters.noise == "geometric":
        chances = (g.delta,)
        about = (
            f"ε = {g.epsilon:.4g} holds unless the domain lists a value that only one person has, "
            f"which has a probability of {g.delta:.2g} at most"
        )
    elif g.mu is not None:
        chances = CHANCES
        about = f"exact for normal noise with μ = {g.mu:.4g}, whatever is computed from the figures"
    else:
        chances = CHANCES
        about = f"from ρ = {g.rho:.4g} of zCDP: tables were chosen privately"
    if g.unit == "add-remove":
        about += "; of whether the row is there, and of what it holds, where it may be exchanged"
    bounds = tuple(
        BeliefBound(prior, eta, after(prior, rise_of_beliefs(manifest, eta)))
        for prior in PRIORS
        for eta in chances
    )
    return BeliefBounds(manifest.name, g.unit, bounds, about)


def rise_of_beliefs(manifest: MarginalManifest, eta: float) -> float:
    """What log-odds of any property of one row rise by at most, except with probability η.

    Who knows that the row is there compares its values: then it is exchanged, which figures show
    more of than whether it was added. With normal noise that is μ of exchanging at these scales;
    else exchanging is removing and adding, and doubles ε and √ρ.
    """
    g = manifest.guarantee
    times = 1 if g.unit == "exchange" else 2
    if g.kind == "dp":
        return times * g.epsilon
    account = manifest.schema_account
    if account is not None:  # a threshold of the schema may fail as well
        eta -= account.spent().delta
    if manifest.parameters.noise == "geometric":
        return times * g.epsilon if eta >= 0 else math.inf
    if eta <= 0:
        return math.inf
    if g.mu is not None:
        return any_rise_of(max(g.mu, exchanged_mu(manifest)), eta)
    # The loss of what is ρ-zCDP exceeds ρ + t with probability at most exp(−t²/4ρ).
    rho = times**2 * g.rho
    return rho + 2 * math.sqrt(-rho * math.log(eta))


def exchanged_mu(manifest: MarginalManifest) -> float:
    """μ of exchanging a row at these scales, where noise is normal."""
    account = manifest.schema_account
    schema = account.exchanged() if account is not None else NOTHING
    return replace(manifest.plan, unit="exchange", schema=schema).mu or 0.0


def stated_beliefs(manifest: MarginalManifest) -> StatedBeliefs:
    """What the promise means in beliefs, from the noise that the release states."""
    g = manifest.guarantee
    threshold = threshold_delta(manifest)
    if g.unit == "exchange":
        return StatedBeliefs(None, g.epsilon, _eta(manifest) + threshold)
    return StatedBeliefs(g.epsilon, 2 * g.epsilon, _eta(manifest) + threshold)


def _eta(manifest: MarginalManifest) -> float:
    """The tail of the privacy loss beyond ε; 0 where noise is geometric."""
    g = manifest.guarantee
    if manifest.parameters.noise == "geometric":
        return 0.0
    if g.mu is None:
        times = 1 if g.unit == "exchange" else 2
        return concentrated_eta(times**2 * g.rho, times * g.epsilon)
    if g.unit == "exchange":
        return any_rise_chance(g.mu, g.epsilon)
    return normal_eta(g.mu, exchanged_mu(manifest), g.epsilon)


def concentrated_eta(rho: float, rise: float) -> float:
    """The probability, at most, that the loss of what is ρ-zCDP exceeds so much."""
    return math.exp(-((rise - rho) ** 2) / (4 * rho)) if rise > rho else 1.0
