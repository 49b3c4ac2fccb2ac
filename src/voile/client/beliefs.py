"""What ε means for somebody's belief."""

from __future__ import annotations

import math

from voile.client.arguments import a_real
from voile.errors import UsageError


def prior_posterior(prior: float, epsilon: float) -> float:
    """The largest belief after a row with local ε was seen, of one that was `prior` before.

    ρ₂ = ρ₁·e^ε / (1 − ρ₁ + ρ₁·e^ε), for any statement about the row (amplification).
    """
    believed, told = a_real(prior, "the prior belief"), a_real(epsilon, "ε")
    if not 0 <= believed <= 1:
        raise UsageError(f"a prior belief of {believed}", hint="give a number from 0 to 1")
    if not told >= 0:
        raise UsageError(f"ε is {told}", hint="give a number that is not negative")
    if believed == 0:
        return 0.0
    return 1 / (1 + (1 - believed) / believed * math.exp(-told))
