"""What a release must not be taken to promise, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from voile.privacy.guarantee import DGamma, LikelihoodRatio
from voile.privacy.guarantees.statements import Statement, Told
from voile.privacy.wording import chance

LIST = "anyone with a list of records of which exactly one is real"


def not_promised(promise: DGamma, ratio: LikelihoodRatio, *, told: Told) -> list[Statement]:
    """What a release must not be taken to promise."""
    return list(_refused(promise, ratio, told))


def _refused(promise: DGamma, ratio: LikelihoodRatio, told: Told) -> Iterator[Statement]:
    d, data = chance(promise.prior), promise.to_dict()
    parameters = {"kind": "d-gamma", "d": data["d"], "gamma": data["gamma"]}
    yield not_kept(
        parameters, "arbitrary", "anyone who knows how records hang together: brothers, households",
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
        ("add-remove", "independent", "adding or removing a record", told.by_adding),
        ("swap", "exclusive", "exchanging a record for another", told.by_exchanging),
    ):
        reason = "some view is impossible with or without a record"
        if exact:
            reason = f"who knows all other records reads the last one off {exact}, told exactly"
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
    return Statement(data, adversary, against, theorem, explain, holds=False)
