"""The theorems between k, ℓ, t and semantic privacy; proofs in docs/mathematics, section 16."""

from __future__ import annotations

import math

from voile.privacy.guarantees import Anonymity, Closeness, Diversity, SemanticPrivacy
from voile.privacy.guarantees.theorems import Theorem, Wanted

LN2 = math.log(2)


def to_entropy(source: Diversity, _: Wanted) -> Diversity:
    """The least entropy has as many shares of 1/ℓ as fit, and one that is the rest."""
    whole = math.floor(source.l)
    rest = 1 - whole / source.l
    entropy = whole / source.l * math.log(source.l) - (rest * math.log(rest) if rest > 0 else 0.0)
    return Diversity(max(source.l, math.exp(entropy) * (1 - 1e-15)), "entropy")


def to_distinct(source: Diversity, _: Wanted) -> Diversity:
    """At least ⌈ℓ⌉ different values."""
    return Diversity(float(math.ceil(source.l)), "distinct")


def to_anonymity(source: Diversity, _: Wanted) -> Anonymity:
    """At least ⌈ℓ⌉ records: different values belong to different records."""
    return Anonymity(math.ceil(source.l))


def to_ignored(source: SemanticPrivacy, _: Wanted) -> SemanticPrivacy:
    """The same δ, for those values that occur in the class."""
    return SemanticPrivacy(source.delta, "ignored")


def to_variational(source: SemanticPrivacy, _: Wanted) -> Closeness:
    """Shares have quotients in [e^−δ, e^δ], or in [0, e^δ]; the worst has only the two ends."""
    if source.absent == "forbidden":
        return Closeness(up(math.tanh(source.delta / 2)), "variational")
    return Closeness(up(-math.expm1(-source.delta)), "variational")


def to_divergence(source: SemanticPrivacy, _: Wanted) -> Closeness:
    """The divergence is a convex function of the quotient, so the same worst case is its own."""
    delta = source.delta
    if source.absent == "forbidden":
        return Closeness(up(least_divergence(math.tanh(delta / 2))), "jensen-shannon")
    share = math.exp(-delta)  # of the table, that makes up the whole class
    rest = -math.expm1(-delta)
    class_side = math.log(2 / (1 + share))
    table_side = share * math.log(2 * share / (1 + share)) + rest * LN2
    return Closeness(up(max(0.0, (class_side + table_side) / 2)), "jensen-shannon")


def variational_to_divergence(source: Closeness, _: Wanted) -> Closeness:
    """t·ln 2, by the inequality of Hellman and Raviv."""
    return Closeness(up(source.t * LN2), "jensen-shannon")


def variational_to_emd(source: Closeness, _: Wanted) -> Closeness:
    """The same t: no share moves further than a distance of 1."""
    return Closeness(source.t, "emd")


def divergence_to_variational(source: Closeness, _: Wanted) -> Closeness:
    """The largest variational distance whose least divergence is still at most t."""
    low, high = 0.0, 1.0
    if source.t >= LN2:
        return Closeness(1.0, "variational")
    for _step in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if least_divergence(middle) <= source.t else (low, middle)
    return Closeness(high, "variational")


def least_divergence(distance: float) -> float:
    """The least Jensen–Shannon divergence at a variational distance: ln 2 − h((1 − v)/2)."""
    more, less = (1 + distance) / 2, (1 - distance) / 2
    return more * math.log1p(distance) + (less * math.log1p(-distance) if less else 0.0)


def up(x: float) -> float:
    """Rounded to the weaker side, inside the range."""
    return min(1.0, math.nextafter(x * (1 + 1e-15), 1.0)) if x else 0.0


FANO = "Mathematics §16: Fano's inequality for one bit"
CLASS_THEOREMS = (
    Theorem(
        "l[frequency]", "l[entropy]", "Mathematics §16: the least entropy of shares of at most 1/ℓ",
        "ℓ^(⌊ℓ⌋/ℓ)·r^(−r), r = 1 − ⌊ℓ⌋/ℓ", to_entropy,
    ),
    Theorem(
        "l[frequency]", "l[distinct]", "Mathematics §16: shares of at most 1/ℓ must add up to 1",
        "⌈ℓ⌉", to_distinct,
    ),
    Theorem(
        "l[entropy]", "l[distinct]", "Mathematics §16: j values have an entropy of at most ln j",
        "⌈ℓ⌉", to_distinct,
    ),
    Theorem(
        "l[distinct]", "k", "Mathematics §16: different values are of different records", "k = ⌈ℓ⌉",
        to_anonymity,
    ),
    Theorem(
        "l[frequency]", "k", "Mathematics §16: shares of at most 1/ℓ must add up to 1", "k = ⌈ℓ⌉",
        to_anonymity,
    ),
    Theorem(
        "l[entropy]", "k", "Mathematics §16: j values have an entropy of at most ln j", "k = ⌈ℓ⌉",
        to_anonymity,
    ),
    Theorem(
        "semantic[forbidden]", "semantic[ignored]", "Mathematics §16: it limits fewer values",
        "the same δ", to_ignored,
    ),
    Theorem(
        "semantic[forbidden]", "t[variational]", "Mathematics §16: quotients in [e^−δ, e^δ]",
        "t = tanh(δ/2)", to_variational,
    ),
    Theorem(
        "semantic[ignored]", "t[variational]", "Mathematics §16: quotients in [0, e^δ]",
        "t = 1 − e^−δ", to_variational,
    ),
    Theorem(
        "semantic[forbidden]", "t[jensen-shannon]", "Mathematics §16: quotients in [e^−δ, e^δ]",
        "t = ln 2 − h(1/(1 + e^δ)), h the entropy of a bit", to_divergence,
    ),
    Theorem(
        "semantic[ignored]", "t[jensen-shannon]", "Mathematics §16: quotients in [0, e^δ]",
        "the divergence of a share e^−δ of the table from the whole", to_divergence,
    ),
    Theorem(
        "t[variational]", "t[emd]", "Mathematics §16: moving costs at most 1", "the same t",
        variational_to_emd, condition="ground distances are at most 1",
    ),
    Theorem(
        "t[variational]", "t[jensen-shannon]", "Mathematics §16: Hellman and Raviv's inequality",
        "t·ln 2", variational_to_divergence,
    ),
    Theorem(
        "t[jensen-shannon]", "t[variational]", FANO, "v with ln 2 − h((1 − v)/2) = t",
        divergence_to_variational,
    ),
)  # fmt: skip
