"""Promises about what anyone can come to believe, each as data.

With L = P(view | with a record) / P(view | without it), and the quotient of two such ratios
when one record takes another's place, each of them bounds L, or that quotient, or both;
docs/mathematics, section 16, says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from voile.errors import UsageError
from voile.privacy.guarantee import AGAINST, Adversary
from voile.privacy.guarantees.parameters import LOG_RATIO, PROBABILITY, Choice, Number, Parameter
from voile.privacy.wording import chance

Unit = Literal["add-remove", "swap"]
About = Literal["record", "presence"]
OWN_RECORD = "anyone, even one who knows all other records"


@dataclass(frozen=True)
class Stated:
    """A guarantee whose fields are its parameters, checked when it is made."""

    kind: ClassVar[str]
    parameters: ClassVar[dict[str, Parameter]]

    def __post_init__(self) -> None:
        for name, parameter in self.parameters.items():
            parameter.check(name, getattr(self, name))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.parameters}}


@dataclass(frozen=True)
class Relative(Stated):
    """(d, δ)-relative privacy (technical report, Definition 2.3).

    For every independent adversary and record with prior at most d:
    e^−δ ≤ Pr[t | V] / Pr[t] ≤ e^δ. It is the same statement for every d.
    """

    kind: ClassVar[str] = "relative"
    parameters: ClassVar[dict[str, Parameter]] = {"d": PROBABILITY, "delta": LOG_RATIO}
    adversary: ClassVar[Adversary] = "independent"
    against: ClassVar[str] = AGAINST["independent"]

    d: float
    delta: float

    def explain(self) -> str:
        return (
            "Nobody's belief that a certain record is in the table, if it was at most "
            f"{chance(self.d)} before, is multiplied or divided by more than e^{self.delta:.4g}. "
            "This holds for those to whom one record says nothing about another. It does not limit "
            "how sure someone can become who was already fairly sure, and not what is learnt from "
            "records that hang together."
        )


@dataclass(frozen=True)
class Indistinguishable(Stated):
    """ε-indistinguishability (technical report, Definition 3.1).

    Two tables of the same size that differ in one pair of tuples give every view with chances
    that differ by a factor of at most e^ε.
    """

    kind: ClassVar[str] = "indistinguishable"
    parameters: ClassVar[dict[str, Parameter]] = {"epsilon": LOG_RATIO}
    adversary: ClassVar[Adversary] = "exclusive"
    against: ClassVar[str] = OWN_RECORD

    epsilon: float

    def explain(self) -> str:
        return (
            "If one record of the table were another one, every release would still be as "
            f"likely as it is, up to a factor of e^{self.epsilon:.4g}. This holds also for someone "
            "who knows all other records. It does not hide how many rows the table has, and "
            "not what is learnt from records that hang together."
        )


@dataclass(frozen=True)
class Dp(Stated):
    """ε-differential privacy, for adding or removing a record or for exchanging one."""

    kind: ClassVar[str] = "dp"
    parameters: ClassVar[dict[str, Parameter]] = {
        "epsilon": LOG_RATIO,
        "unit": Choice(("add-remove", "swap")),
    }

    epsilon: float
    unit: Unit = "add-remove"

    @property
    def adversary(self) -> Adversary:
        return "independent" if self.unit == "add-remove" else "exclusive"

    @property
    def against(self) -> str:
        return AGAINST["independent"] if self.unit == "add-remove" else OWN_RECORD

    def explain(self) -> str:
        if self.unit == "swap":
            return Indistinguishable(self.epsilon).explain()
        return (
            "With any one record or without it, every release is as likely up to a factor of "
            f"e^{self.epsilon:.4g}: the odds that anyone gives to a record's being in the table "
            "change by no more. This holds also for someone who knows all other records. "
            "It does not hold for what is learnt from records that hang together."
        )


@dataclass(frozen=True)
class Breach(Stated):
    """No upward ρ₁-to-ρ₂ privacy breach (Evfimievski, Gehrke, Srikant, PODS 2003).

    `about` a record: any property of one person's record, whose owner is known to be in the
    table. About presence: whether one record is in the table, or is not. Here ρ₂ may be
    reached but not exceeded; the paper counts reaching it as a breach.
    """

    kind: ClassVar[str] = "breach"
    parameters: ClassVar[dict[str, Parameter]] = {
        "rho1": PROBABILITY,
        "rho2": PROBABILITY,
        "about": Choice(("record", "presence")),
    }

    rho1: float
    rho2: float
    about: About = "record"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_order(self.rho1, self.rho2)

    @property
    def adversary(self) -> Adversary:
        return "independent" if self.about == "presence" else "exclusive"

    @property
    def against(self) -> str:
        return AGAINST["independent"] if self.about == "presence" else OWN_RECORD

    def explain(self) -> str:
        low, high = chance(self.rho1), chance(self.rho2)
        what = (
            "a certain property of one person's record"
            if self.about == "record"
            else "a certain record's being in the table, or its not being there,"
        )
        return (
            f"Whoever believed in {what} with at most {low} believes it afterwards with at most "
            f"{high}; and whoever believed it with {high} or more keeps a belief of at least "
            f"{low}. This holds also for someone who knows all other records. It does not hold "
            "for what is learnt from records that hang together."
        )


@dataclass(frozen=True)
class SBreach(Stated):
    """No (s, ρ₁, ρ₂) breach (Agrawal, Srikant, Thomas, SIGMOD 2005, Definition 5).

    For sets S of values that are less than s times as frequent as in the replacing
    distribution: P[X ∈ S] ≤ ρ₁ implies P[X ∈ S | Y ∈ S] ≤ ρ₂.
    """

    kind: ClassVar[str] = "s-breach"
    parameters: ClassVar[dict[str, Parameter]] = {
        "s": Number(0),
        "rho1": PROBABILITY,
        "rho2": PROBABILITY,
    }
    adversary: ClassVar[Adversary] = "exclusive"
    against: ClassVar[str] = "anyone who is told only that the published value lies in the set"

    s: float
    rho1: float
    rho2: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_order(self.rho1, self.rho2)

    def explain(self) -> str:
        return (
            f"For any set of values that is less than {self.s:.4g} times as frequent as under the "
            f"replacing distribution: whoever believed with at most {chance(self.rho1)} that a "
            "person's value is in it, believes it with at most "
            f"{chance(self.rho2)} on hearing that the published value is. Nothing is said about "
            "more frequent sets, nor about someone who sees the published value itself."
        )


@dataclass(frozen=True)
class Amplification(Stated):
    """At most γ-amplifying (Evfimievski, Gehrke, Srikant, PODS 2003).

    Each record is perturbed by itself, and no published value is more than γ times as likely
    from one original value as from another.
    """

    kind: ClassVar[str] = "amplification"
    parameters: ClassVar[dict[str, Parameter]] = {"gamma": Number(1, with_low=True)}
    adversary: ClassVar[Adversary] = "exclusive"
    against: ClassVar[str] = OWN_RECORD

    gamma: float

    def explain(self) -> str:
        return (
            "Each record is changed by chance on its own, and what is published for a person "
            f"would have been at least 1/{self.gamma:.4g} times as likely had their record been "
            "any other. It does not hide who takes part, and not what is learnt from records "
            "that hang together."
        )


@dataclass(frozen=True)
class DeltaT(Stated):
    """(δ, T)-privacy (SuLQ): log-odds rise by more than δ with a chance of at most η.

    For any property of one row, one who knows all other rows, and at most T queries. The log-odds
    of a property fall as those of its opposite rise, so that both are bounded, each by η.
    """

    kind: ClassVar[str] = "delta-T"
    parameters: ClassVar[dict[str, Parameter]] = {
        "delta": LOG_RATIO,
        "T": Number(1, with_low=True, whole=True, word="any"),
        "eta": Number(0, 1, with_low=True),
    }
    adversary: ClassVar[Adversary] = "exclusive"
    against: ClassVar[str] = OWN_RECORD

    delta: float
    T: int | None = None
    eta: float = 0.0

    def explain(self) -> str:
        asked = "any number of questions" if self.T is None else f"at most {self.T} questions"
        rarely = f"risen, but for a chance of {self.eta:.3g}," if self.eta else "changed"
        return (
            f"After {asked}, nobody's odds of any property of one person's record have "
            f"{rarely} by more than a factor of e^{self.delta:.4g}. This holds also for "
            "someone who knows all other records. It does not hide the number of rows, and "
            "not what is learnt from records that hang together."
        )


def check_order(rho1: float, rho2: float) -> None:
    if rho1 > rho2:
        raise UsageError(
            f"rho1 = {rho1:g} is above rho2 = {rho2:g}",
            hint="rho1 is the belief before, rho2 the largest belief after",
        )
