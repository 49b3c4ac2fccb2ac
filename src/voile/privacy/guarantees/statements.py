"""All that a mechanism's likelihood ratio promises: as written, then strongest first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from voile.privacy.guarantee import (
    Adversary,
    DGamma,
    Guarantee,
    LikelihoodRatio,
    after,
)
from voile.privacy.guarantees import About, DeltaT, Dp, Relative
from voile.privacy.guarantees.theorems import (
    NothingFollows,
    breach_within,
    d_gamma_within,
    gamma_within,
    log_up,
    ratio_of,
)
from voile.units import NEARLY_SURE, chance

USUAL_PRIOR = 0.1
"""A belief by which bounds of odds are judged."""
VIEW_ALONE = "of the view alone"
EDITS = "of one row with its values: a row that is edited between views is another record"
SIMULATED = (
    "made from a chosen seed: this release promises nothing. With numbers of the operating system "
    "it would hold"
)


@dataclass(frozen=True)
class Statement:
    """A guarantee that a release keeps, or one that it must not be taken to keep."""

    data: dict[str, Any]
    """The kind and its parameters, as far as they are known."""
    adversary: str
    against: str
    theorem: str
    explain: str
    holds: bool = True
    condition: str = ""
    bounds: RatioBounds | None = None
    """What it demands of the likelihood ratio; None for what is not promised."""

    @property
    def says_little(self) -> bool:
        """Whether beliefs may come so near to 1 that next to nothing is promised."""
        if self.data.get("kind") == "amplification":
            return after(USUAL_PRIOR, math.log(self.data["gamma"])) > NEARLY_SURE
        beliefs = [float(self.data.get(name, 0)) for name in ("gamma", "rho2")]
        return max(beliefs) > NEARLY_SURE

    def to_dict(self) -> dict[str, Any]:
        """Its parameters, adversary, theorem and words, ready for JSON."""
        return {
            **self.data,
            "adversary": self.adversary,
            "against": self.against,
            "theorem": self.theorem,
            "holds": self.holds,
            "says_little": self.says_little,
            "condition": self.condition,
            "explain": self.explain,
        }


@dataclass(frozen=True)
class RatioBounds:
    """A guarantee as what it demands: low ≤ L ≤ high, and at most `swap` for exchanging.

    None is no demand. What a promise implies about exchanging is part of its demand.
    """

    low: Fraction | None = None
    high: Fraction | None = None
    swap: Fraction | None = None

    def imply(self, other: RatioBounds) -> bool:
        """Whether a ratio within these bounds is within the others."""
        return (
            (other.low is None or (self.low is not None and self.low >= other.low))
            and (other.high is None or (self.high is not None and self.high <= other.high))
            and (other.swap is None or (self.exchange is not None and self.exchange <= other.swap))
        )

    @property
    def exchange(self) -> Fraction | None:
        """The ratio for exchanging a record: the stated one, or high/low if less."""
        both = self.high / self.low if self.high is not None and self.low else None
        return min((x for x in (self.swap, both) if x is not None), default=None)


@dataclass(frozen=True)
class Disclosures:
    """What a release discloses exactly, outside of what it promises about its view."""

    rows: bool = False
    """How many rows the table has."""
    marginals: bool = False
    """How often each single value occurs: the noise follows it."""
    kept: tuple[str, ...] = ()
    """Facts about the columns that tables must share to be compared at all."""
    edits: bool = False
    """There are several views, between which a row may be edited."""

    @property
    def by_adding(self) -> str:
        """What adding a record always changes, in words."""
        return " and ".join(
            ["the number of rows"] * self.rows + ["how often each value occurs"] * self.marginals
        )

    @property
    def by_exchanging(self) -> str:
        """What exchanging a record always changes, in words."""
        return "how often each value occurs" if self.marginals else ""

    @property
    def between(self) -> str:
        """Between which tables an ε holds, and of what."""
        return "; ".join(filter(None, (self._alike, EDITS if self.edits else "")))

    @property
    def _alike(self) -> str:
        if not self.kept:
            return ""
        facts = " and ".join(self.kept) if len(self.kept) < 3 else (
            f"the {len(self.kept)} facts that the release discloses about its columns"
        )  # fmt: skip
        return f"between tables that agree in {facts}"

    def about_presence(self, linked: Fraction) -> str:
        """What limits a statement about a record's presence; with n disclosed, tuples exclude."""
        counting = (
            f"{VIEW_ALONE}: the release also discloses the number of rows, and someone who is "
            "nearly sure of all but a few records can count; in the worst case they come to "
            f"{chance(float(linked))}"
        )
        return self._joined(counting if self.rows else "")

    def about_exchange(self) -> str:
        """The same of an upper bound that holds where tuples exclude one another."""
        return self._joined(
            "its lower bound of the view alone, without the number of rows" if self.rows else ""
        )

    def _joined(self, counting: str) -> str:
        given = (
            f"{VIEW_ALONE}, its noise taken as given: the release also discloses how often each "
            "value occurs, and nothing bounds what both reveal together"
        )
        return "; ".join(filter(None, (counting, given if self.marginals else "", self.between)))


Told = Disclosures
"""The earlier name of `Disclosures`."""


def statements(
    promise: DGamma, ratio: LikelihoodRatio, *, told: Disclosures, simulated: bool
) -> list[Statement]:
    """The promise as written, then everything else that follows, strongest first.

    Of a simulated release the same is listed, and nothing of it holds.
    """
    written = list(_as_written(promise, ratio, told))
    rest = strongest_first([*_beyond(promise, ratio, told)])
    found = written + [one for one in rest if all(one.data != first.data for first in written)]
    return [void(one) for one in found] if simulated else found


def void(statement: Statement) -> Statement:
    """The same statement of a simulated release: it does not hold."""
    return Statement(
        statement.data, statement.adversary, statement.against, statement.theorem,
        statement.explain, holds=False, condition=SIMULATED, bounds=statement.bounds,
    )  # fmt: skip


def _as_written(
    promise: DGamma, ratio: LikelihoodRatio, disclosed: Disclosures
) -> Iterator[Statement]:
    if promise.kept_by(ratio):
        swap = promise.ratio_high if promise.adversary == "exclusive" else None
        demands = RatioBounds(promise.ratio_low, promise.ratio_high, swap)
        theorem = "the promise as written; Theorem 4.3, VLDB 2007, as corrected"
        linked = ratio.linked_posterior(promise.prior)
        condition = (
            disclosed.about_exchange()
            if promise.adversary == "exclusive"
            else disclosed.about_presence(linked)
        )
        yield stated(promise, demands, theorem, condition)


def _beyond(promise: DGamma, ratio: LikelihoodRatio, disclosed: Disclosures) -> Iterator[Statement]:
    if ratio.high is None or not ratio.low:
        return
    low, high = ratio.low, ratio.high
    yield from _about_exchange(promise, low, high / low, disclosed)
    yield from _about_presence(promise, low, high, disclosed)


def _about_exchange(
    promise: DGamma, low: Fraction, swap: Fraction, disclosed: Disclosures
) -> Iterator[Statement]:
    """What holds even for someone with a list of records of which exactly one is real."""
    yield from _exact(promise, low, swap, "exclusive", disclosed.about_exchange())
    if disclosed.by_exchanging:
        return
    epsilon, bounds, between = log_up(swap), RatioBounds(swap=swap), disclosed.between
    cited = "Mathematics §12: high/low of the likelihood ratio"
    yield stated(Dp(epsilon, "swap"), bounds, cited, between)
    yield from _no_breach(promise.prior, swap, "record", bounds, between)
    cited = "Mathematics §16: log-odds change by ε at most"
    yield stated(DeltaT(epsilon), bounds, cited, between)


def _about_presence(
    promise: DGamma, low: Fraction, high: Fraction, disclosed: Disclosures
) -> Iterator[Statement]:
    """What holds for those to whom one record says nothing about another."""
    condition = disclosed.about_presence(LikelihoodRatio(low, high).linked_posterior(promise.prior))
    yield from _exact(promise, low, high, "independent", condition)
    both = max(high, 1 / low)
    epsilon, bounds = log_up(both), RatioBounds(1 / both, both)
    if not disclosed.by_adding:
        cited = "Mathematics §12: the larger of high and 1/low"
        yield stated(Dp(epsilon), bounds, cited, disclosed.between)
    cited = "Proposition 2.5, technical report of VLDB 2007, and Mathematics §16"
    yield stated(Relative(promise.prior, epsilon), bounds, cited, condition)
    if disclosed.by_adding:
        return  # it is for those who know all other records, who would count
    yield from _no_breach(promise.prior, both, "presence", bounds, condition)


def _exact(
    promise: DGamma, low: Fraction, high: Fraction, adversary: Adversary, condition: str
) -> Iterator[Statement]:
    """(d, γ) with the least γ that holds, unless that is the promise up to rounding."""
    try:
        found = d_gamma_within(promise.prior, low, high, adversary)
    except NothingFollows:
        return
    if adversary == promise.adversary and math.isclose(found.posterior, promise.posterior):
        return
    gamma = gamma_within(promise.prior, low, high)
    ratio = ratio_of(promise.prior, gamma)
    demands = RatioBounds(
        Fraction(promise.prior) / gamma, ratio, ratio if adversary == "exclusive" else None
    )
    section = 6 if adversary == "exclusive" else 2
    yield stated(
        found, demands, f"Mathematics §{section}: the exact bound at the promise's prior", condition
    )


def _no_breach(
    d: float, ratio: Fraction, about: About, bounds: RatioBounds, condition: str
) -> Iterator[Statement]:
    try:
        found = breach_within(ratio, d, about)
    except NothingFollows:
        return
    yield stated(found, bounds, "Mathematics §16: Bayes' rule", condition)


def stated(
    guarantee: Guarantee, bounds: RatioBounds, theorem: str, condition: str = ""
) -> Statement:
    """A guarantee as a statement, with what it demands of the likelihood ratio."""
    against = guarantee.against
    if condition.startswith(VIEW_ALONE):  # who knows all others would use the rest as well
        against = against.removesuffix(", even one who knows all others")
    return Statement(
        guarantee.to_dict(), guarantee.adversary, against, theorem, guarantee.explain(),
        condition=condition, bounds=bounds,
    )  # fmt: skip


def strongest_first(found: list[Statement]) -> list[Statement]:
    """Those against more adversaries first; a statement stands before those that it implies.

    Equal statements are said once.
    """
    rest: list[Statement] = []
    for statement in found:
        if all(statement.data != other.data for other in rest):
            rest.append(statement)
    rest.sort(key=lambda statement: statement.adversary != "exclusive")
    ordered: list[Statement] = []
    while rest:
        first = next(s for s in rest if not any(_above(other, s) for other in rest))
        ordered.append(first)
        rest.remove(first)
    return ordered


def _above(one: Statement, other: Statement) -> bool:
    """Whether one implies the other and not the other way round."""
    if one.bounds is None or other.bounds is None:
        return False
    return one.bounds.imply(other.bounds) and not other.bounds.imply(one.bounds)


# ---------------------------------------------------------------------- what is not promised
# What a release must not be taken to promise, and why.


LIST = "anyone with a list of records of which exactly one is real"


def not_promised(promise: DGamma, ratio: LikelihoodRatio, *, told: Disclosures) -> list[Statement]:
    """What a release must not be taken to promise."""
    return list(_refused(promise, ratio, told))


def _refused(
    promise: DGamma, ratio: LikelihoodRatio, disclosed: Disclosures
) -> Iterator[Statement]:
    d, data = chance(promise.prior), promise.to_dict()
    parameters = {"kind": "d-gamma", "d": data["d"], "gamma": data["gamma"]}
    yield not_kept(
        parameters, "arbitrary", "anyone who knows of correlated records: brothers, households",
        "Theorem 6.1, VLDB 2007: no useful release can",
        "Two records that come or go together can raise a belief far beyond γ when both are seen.",
    )  # fmt: skip
    yield not_kept(
        {**parameters, "bound": "lower"}, "exclusive", LIST,
        "Example 6.4, VLDB 2007",
        "Where one record of a list seems likely the others must not: there a belief can fall "
        f"below d/γ = {promise.prior / promise.posterior:.3g} times what it was.",
    )  # fmt: skip
    if promise.adversary == "independent":
        linked = float(ratio.linked_posterior(promise.prior))
        yield not_kept(
            {**parameters, "bound": "upper"}, "exclusive", LIST, "Mathematics §6",
            f"Someone with a list can come from a belief of {d} to {chance(linked)}, not only to "
            f"{chance(promise.posterior)}; publishing with --adversary exclusive prevents it.",
        )  # fmt: skip
    for unit, who, doing, exact in (
        ("add-remove", "independent", "adding or removing a record", disclosed.by_adding),
        ("swap", "exclusive", "exchanging a record for another", disclosed.by_exchanging),
    ):
        reason = "some view is impossible with or without a record"
        if exact:
            reason = (
                f"who knows all other records reads the last one off {exact}, disclosed exactly"
            )
        if exact or math.isinf(ratio.epsilon("add-remove")):
            yield not_kept(
                {"kind": "dp", "unit": unit}, who, "anyone, even one who knows all other records",
                "Mathematics §12",
                f"No ε holds for {doing}: {reason}.",
            )  # fmt: skip
    for kind, words in (("k", "k-anonymity"), ("l", "ℓ-diversity"), ("t", "t-closeness")):
        yield not_kept(
            {"kind": kind}, "none", "nobody in particular", "Mathematics §16: does not follow",
            f"{words} is not claimed: rows may stand alone. Nor would it limit what anyone learns.",
        )  # fmt: skip


def not_kept(
    data: dict[str, Any], adversary: str, against: str, theorem: str, explain: str
) -> Statement:
    """A statement about what a release does not promise."""
    return Statement(data, adversary, against, theorem, explain, holds=False)
