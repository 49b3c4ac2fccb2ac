"""The boundary of the possible: what no algorithm can promise, whatever it does (VLDB 2007, §3).

Theorem 3.3 leaves its constant open. Here it has one. Let K = ((1−f)·m − 4n) / (98·n²), with n
rows, m tuples in the domain, and f from Definition 3.2. An algorithm for which exchanging one
tuple of the table for another changes the chance of no view by more than the factor K is
meaningless: for two thirds of the queries its views do not show whether all records
meet the query or none does. A (d, γ)-private algorithm changes it by at most R·γ/d. So
where R·γ/d ≤ K no useful algorithm is (d, γ)-private. Proof: docs/mathematics, section 17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from voile.privacy.guarantee import DGamma
from voile.records import Record

QUERY_SPREAD = Fraction(1, 2)
"""f of Definition 3.2: queries between a quarter and three quarters of the domain."""
EXAMPLE = 0.2
"""The posterior at which the theorem is put into words."""
VARIANCE_SHARE = 49
"""The proof needs E·n²/(M−2n) ≤ 1/49 for the smallest query, of M = (1−f)·m/2 tuples."""


@dataclass(frozen=True)
class Limit(Record):
    """A theorem that stands in the way, and what it says here."""

    theorem: str
    says: str


@dataclass(frozen=True)
class Boundary:
    """What Theorem 3.3 rules out for every algorithm, for tables of n rows and m tuples."""

    rows: int
    domain_size: int

    @property
    def density(self) -> Fraction:
        """n/m: the prior of someone who knows only how many rows there are."""
        return Fraction(self.rows, self.domain_size)

    @property
    def root_ratio(self) -> float:
        """n/√m, the paper's scale for priors that cannot be protected."""
        return math.exp(math.log(self.rows) - math.log(self.domain_size) / 2)

    @property
    def swap_limit(self) -> Fraction:
        """K: what changes less than this by a factor when a tuple is exchanged is meaningless."""
        smallest_query = (1 - QUERY_SPREAD) * self.domain_size / 2
        return (smallest_query - 2 * self.rows) / (VARIANCE_SHARE * self.rows**2)

    @property
    def speaks(self) -> bool:
        """Whether the theorem rules out anything: the factor of an exchange is at least 1."""
        return self.swap_limit >= 1

    def forbids(self, promise: DGamma) -> bool:
        """Whether no meaningful algorithm at all can keep the promise."""
        return swap_factor(promise) <= self.swap_limit

    def least_forbidden_prior(self, posterior: float) -> float | None:
        """From this prior up to γ nothing is possible: γ²(1−d) = K·d²(1−γ), solved for d."""
        if not self.speaks:
            return None
        k = float(self.swap_limit)
        return 2 * posterior / (posterior + math.sqrt(posterior**2 + 4 * k * (1 - posterior)))

    def largest_forbidden_posterior(self, prior: float) -> float | None:
        """From d up to this posterior nothing is possible; the same equation, solved for γ."""
        if not self.speaks:
            return None
        scaled = float(self.swap_limit) * prior**2 / (1 - prior)
        return 2 / (1 + math.sqrt(1 + 4 / scaled))

    def limit_on(self, promise: DGamma) -> Limit | None:
        """Theorem 3.3 in words, where it forbids the promise."""
        if not self.forbids(promise):
            return None
        return Limit(
            "VLDB 2007, Theorem 3.3, with the constant of docs/mathematics, section 17",
            f"no algorithm whose views distinguish queries is (d, γ)-private here: an "
            f"exchanged tuple may change a chance by R·γ/d = {float(swap_factor(promise)):.4g}, "
            f"and up to K = {float(self.swap_limit):.4g} every algorithm is meaningless "
            f"(f = 1/2); priors from {self.least_forbidden_prior(promise.posterior):.3g} on "
            f"cannot be kept below γ = {promise.posterior:g}",
        )

    def in_words(self) -> str:
        """What the theorem says about tables of this size."""
        ratio = f"n/√m = {self.root_ratio:.4g}"
        if not self.speaks:
            return (
                f"{ratio}: Theorem 3.3 rules nothing out for this table (it would have to be below "
                "about 1/14)"
            )
        least = self.least_forbidden_prior(EXAMPLE)
        return (
            f"{ratio}: no useful release keeps priors of {least:.3g} or more below "
            f"γ = {EXAMPLE:g}, nor the like at other γ (Theorem 3.3; its constant: "
            "docs/mathematics, section 17)"
        )


def swap_factor(promise: DGamma) -> Fraction:
    """R·γ/d: how much exchanging a tuple can change the chance of a view under the promise."""
    return promise.ratio_high / promise.ratio_low


def limit_on_error(error: float, rows: int) -> Limit | None:
    """Theorem 2.6, where the wanted error is below √n: near what no private algorithm has."""
    rho = error / math.sqrt(rows)
    if rho >= 1:
        return None
    return Limit(
        "VLDB 2007, Theorem 2.6",
        f"if every query had an error of {error:g}, that would be ρ·√n with ρ = {rho:.3g}. No "
        "algorithm whose error is ρ·√n with ρ → 0, on all tables and all queries, protects every "
        "tuple. It speaks of all queries and of growing n, and no constant is known, so it does "
        "not decide about the queries of this table",
    )


def limit_on_linking(boundary: Boundary) -> Limit:
    """Theorem 6.6, which bounds what can be kept from exclusive adversaries."""
    return Limit(
        "VLDB 2007, Theorem 6.6",
        "for algorithms that work bucket by bucket, some exclusive adversary with a prior of "
        f"max(3/N_k, c·n/√m) learns too much, n/√m = {boundary.root_ratio:.3g}. The constant c is "
        "not known, so no line is drawn",
    )


ARBITRARY = Limit(
    "VLDB 2007, Theorem 6.1",
    "against adversaries that know arbitrary correlations nothing useful can be promised: for "
    "every meaningful algorithm and every d ≥ n/m up to a constant, some adversary with priors of "
    "at most d comes to believe in some tuple with probability 3/4 or more",
)
