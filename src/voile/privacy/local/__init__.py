"""What is promised to someone whose row is perturbed before it leaves them.

Each column j is retained with chance p_j, else replaced by a draw from the public m_j. Proofs:
docs/mathematics, "Promises of local perturbation".
"""

from voile.privacy.guarantees import Breach, SBreach
from voile.privacy.local.amplification import (
    Chance,
    amplification,
    belief_after,
    common_retention,
    epsilon_of,
    equal_shares,
    exp_down,
    first_breach,
    identity_retention,
    joint_bound,
    joint_retention,
    largest_along,
    largest_rho1,
    least_relative_prior,
    local_epsilon,
    local_promise,
    local_statements,
    locally_not_promised,
    prevents,
    relative_prior_bound,
    retention_against,
    retention_for_ratio,
    row_amplification,
    row_bound,
    row_retention,
)
from voile.privacy.local.posteriors import (
    RareValues,
    RelativePriors,
    WorstBreach,
    belief_in,
    cell_beliefs,
    known_prior_retention,
    perturbed,
    rare_values,
    relative_priors,
    worst_breach,
)

__all__ = [
    "Breach", "Chance", "RareValues", "RelativePriors", "SBreach", "WorstBreach",
    "amplification", "belief_after", "belief_in",
    "cell_beliefs", "common_retention", "epsilon_of", "equal_shares", "exp_down", "first_breach",
    "identity_retention", "joint_bound", "joint_retention", "known_prior_retention",
    "largest_along", "largest_rho1", "least_relative_prior", "local_epsilon", "local_promise",
    "local_statements", "locally_not_promised",
    "perturbed", "prevents", "rare_values", "relative_prior_bound", "relative_priors",
    "retention_against", "retention_for_ratio", "row_amplification", "row_bound",
    "row_retention", "worst_breach",
]  # fmt: skip
