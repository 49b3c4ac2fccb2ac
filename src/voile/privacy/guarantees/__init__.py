"""Guarantees as data, and as people write them: d-gamma(d=4.65e-4, gamma=0.2).

With L = P(view | with a record) / P(view | without it), and the quotient of two such ratios
when one record takes another's place, each guarantee about beliefs bounds L, or that quotient, or
both; docs/mathematics, section 16, says which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from voile.errors import UsageError, VoileError, did_you_mean
from voile.privacy.guarantee import (
    ADVERSARIES,
    AGAINST,
    LOG_RATIO,
    PROBABILITY,
    Adversary,
    Choice,
    DGamma,
    Number,
    Parameter,
    Value,
    chance,
)

# ---------------------------------------------------------------------- beliefs
# Promises about what anyone can come to believe, each as data.
#
# With L = P(view | with a record) / P(view | without it), and the quotient of two such ratios
# when one record takes another's place, each of them bounds L, or that quotient, or both;
# docs/mathematics, section 16, says which.


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


# ---------------------------------------------------------------------- noisy answers
# Promises about noisy answers: the noise itself, ρ-zCDP and (ε, δ)-DP, each as data.
#
# All are about exchanging one person's rows for others; the number of rows is public.


Noise = Literal["binomial", "gaussian", "geometric"]


@dataclass(frozen=True)
class NoisyAnswers(Stated):
    """At most T answers, each with fresh noise (SuLQ).

    `variance` is that of a total which one person can change by 1; noise of totals that change by
    more is wider in proportion.
    """

    kind: ClassVar[str] = "noisy-answers"
    parameters: ClassVar[dict[str, Parameter]] = {
        "T": Number(1, 1e9, with_low=True, whole=True),
        "variance": Number(0, 1e12),
        "noise": Choice(("binomial", "gaussian", "geometric")),
    }
    adversary: ClassVar[Adversary] = "exclusive"
    against: ClassVar[str] = OWN_RECORD

    T: int
    variance: float
    noise: Noise = "binomial"

    def explain(self) -> str:
        return (
            f"At most {self.T} answers are ever given, each with fresh {self.noise} noise of "
            f"variance {self.variance:.6g}, times the square of what one person can change. What "
            "that hides follows from it; it does not hide the number of rows, and not what is "
            "learnt from records that hang together."
        )


@dataclass(frozen=True)
class Zcdp(Stated):
    """ρ-zero-concentrated differential privacy (Bun, Steinke, 2016), for exchanging a record."""

    kind: ClassVar[str] = "zcdp"
    parameters: ClassVar[dict[str, Parameter]] = {"rho": LOG_RATIO}
    adversary: ClassVar[Adversary] = "exclusive"
    against: ClassVar[str] = OWN_RECORD

    rho: float

    def explain(self) -> str:
        return (
            "If one record were another one, the log-likelihood of what is published would change "
            f"about as that of a normal law: by {self.rho:.4g} on average, rarely by much more. "
            "This holds also for someone who knows all other records. It does not hide how many "
            "rows the table has, and not what is learnt from records that hang together."
        )


@dataclass(frozen=True)
class ApproximateDp(Stated):
    """(ε, δ)-differential privacy, for exchanging a record."""

    kind: ClassVar[str] = "approximate-dp"
    parameters: ClassVar[dict[str, Parameter]] = {
        "epsilon": LOG_RATIO,
        "delta": Number(0, 1, with_low=True),
    }
    adversary: ClassVar[Adversary] = "exclusive"
    against: ClassVar[str] = OWN_RECORD

    epsilon: float
    delta: float

    def explain(self) -> str:
        return (
            "If one record of the table were another one, every event would be as likely as it "
            f"is, up to a factor of e^{self.epsilon:.4g} and a rest of {self.delta:.3g}. This "
            "holds also for someone who knows all other records. It does not hide how many rows "
            "the table has, and not what is learnt from records that hang together."
        )


# ---------------------------------------------------------------------- classes of records
# Requirements on tables that are published in classes of records: k, ℓ, t, semantic.
#
# They describe what stands in the published table, not what can be learnt from it: none of them
# implies anything about beliefs (docs/mathematics, section 16).


Measure = Literal["frequency", "distinct", "entropy"]
Distance = Literal["variational", "emd", "jensen-shannon"]
Absent = Literal["forbidden", "ignored"]
NOBODY = "nobody in particular: it describes the published table, not what is learnt from it"


@dataclass(frozen=True)
class Described(Stated):
    """A requirement that speaks of classes of records and names no adversary."""

    adversary: ClassVar[str] = "none"
    against: ClassVar[str] = NOBODY


@dataclass(frozen=True)
class Anonymity(Described):
    """k-anonymity: every class has at least k records."""

    kind: ClassVar[str] = "k"
    parameters: ClassVar[dict[str, Parameter]] = {"k": Number(1, with_low=True, whole=True)}

    k: int

    def explain(self) -> str:
        return (
            f"Every published combination of identifying values is shared by at least {self.k} "
            "records. Nothing follows about what can be learnt of one of them: all may have the "
            "same sensitive value, and what is known beforehand may rule out the rest."
        )


@dataclass(frozen=True)
class Diversity(Described):
    """ℓ-diversity, by frequency (at most 1/ℓ), number of distinct values, or entropy (≥ ln ℓ)."""

    kind: ClassVar[str] = "l"
    parameters: ClassVar[dict[str, Parameter]] = {
        "l": Number(1, with_low=True),
        "measure": Choice(("frequency", "distinct", "entropy")),
    }

    l: float  # noqa: E741  (the requirement's name)
    measure: Measure = "frequency"

    def explain(self) -> str:
        has = {
            "frequency": f"no sensitive value has a share of more than 1/{self.l:g}",
            "distinct": f"there are at least {math.ceil(self.l)} different sensitive values",
            "entropy": f"the sensitive values have an entropy of at least ln {self.l:g}",
        }[self.measure]
        return (
            f"In every class of records {has}. That limits what is learnt by someone who knew "
            "nothing before, and not by someone who can rule out some of the values."
        )


@dataclass(frozen=True)
class Closeness(Described):
    """t-closeness: every class's sensitive values are distributed as the table's, up to t.

    'variational' is half the sum of differences; 'emd' the earth mover's distance, whose ground
    distances are at most 1; 'jensen-shannon' the divergence in natural logarithms (the choice
    of Li and Li, KDD 2009), which is at most ln 2.
    """

    kind: ClassVar[str] = "t"
    parameters: ClassVar[dict[str, Parameter]] = {
        "t": Number(0, 1, with_low=True, with_high=True),
        "distance": Choice(("variational", "emd", "jensen-shannon")),
    }

    t: float
    distance: Distance = "variational"

    def explain(self) -> str:
        return (
            "In every class of records the sensitive values are distributed as in the whole "
            f"table, up to a distance of {self.t:.4g} ({self.distance}). A rare value may still "
            "be many times as frequent in a class, and nothing is said about someone who knows "
            "more than the table's distribution."
        )


@dataclass(frozen=True)
class SemanticPrivacy(Described):
    """δ-semantic privacy: |ln(share in the class / share in the table)| ≤ δ for every value.

    A value that is absent from a class has ln 0. 'forbidden' is the literal reading, in which
    every value occurs in every class; 'ignored' asks it only of values that occur.
    """

    kind: ClassVar[str] = "semantic"
    parameters: ClassVar[dict[str, Parameter]] = {
        "delta": LOG_RATIO,
        "absent": Choice(("forbidden", "ignored")),
    }

    delta: float
    absent: Absent = "forbidden"

    def explain(self) -> str:
        which, missing = "every sensitive value", ""
        if self.absent == "ignored":
            which, missing = "every sensitive value that occurs in it", " Which do not is told."
        return (
            f"In every class of records the share of {which} is that in the whole table, up to a "
            f"factor of e^{self.delta:.4g}.{missing} Nothing is said about someone who knows more "
            "than the table's distribution."
        )


# ---------------------------------------------------------------------- all kinds
# Every kind of guarantee: its name, its parameters, which of them say how strong it is.


class Guarantee(Protocol):
    """What is promised, as data."""

    @property
    def kind(self) -> str: ...
    @property
    def adversary(self) -> str: ...
    @property
    def against(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def explain(self) -> str: ...


@dataclass(frozen=True)
class Kind:
    """How guarantees of one name are made and compared."""

    name: str
    make: Callable[..., Guarantee]
    parameters: Mapping[str, Parameter]
    claims: tuple[str, ...]
    """The parameters that say how strong it is; theorems find them, the others are chosen."""
    defaults: Mapping[str, Value] = field(default_factory=dict)
    larger_is_stronger: bool = False

    @property
    def option(self) -> str | None:
        """The parameter that is a choice of words; guarantees that differ in it are different."""
        words = (name for name, p in self.parameters.items() if isinstance(p, Choice))
        return next(words, None)

    @property
    def labels(self) -> list[str]:
        """This kind with each of its words, the default first."""
        if self.option is None:
            return [self.name]
        choice = self.parameters[self.option]
        assert isinstance(choice, Choice)  # noqa: S101
        return [f"{self.name}[{word}]" for word in choice.options]

    def at_least(self, found: Guarantee, wanted: Mapping[str, Value]) -> bool:
        """Whether a guarantee of this kind is as wanted, or stronger."""
        has = found.to_dict()
        return all(
            self._as_strong(has[name], value) if name in self.claims else has[name] == value
            for name, value in wanted.items()
        )

    def _as_strong(self, has: Any, wanted: Any) -> bool:
        return bool(has >= wanted if self.larger_is_stronger else has <= wanted)


def d_gamma(d: float, gamma: float, adversary: Adversary = "independent") -> DGamma:
    return DGamma(d, gamma, adversary)


D_GAMMA: Mapping[str, Parameter] = {
    "d": PROBABILITY,
    "gamma": PROBABILITY,
    "adversary": Choice(ADVERSARIES),
}

_ALL = (
    Kind("d-gamma", d_gamma, D_GAMMA, ("gamma",), {"adversary": "independent"}),
    Kind("relative", Relative, Relative.parameters, ("delta",)),
    Kind("dp", Dp, Dp.parameters, ("epsilon",), {"unit": "add-remove"}),
    Kind("indistinguishable", Indistinguishable, Indistinguishable.parameters, ("epsilon",)),
    Kind("breach", Breach, Breach.parameters, ("rho2",), {"about": "record"}),
    Kind("s-breach", SBreach, SBreach.parameters, ("rho2",)),
    Kind("amplification", Amplification, Amplification.parameters, ("gamma",)),
    Kind("delta-T", DeltaT, DeltaT.parameters, ("delta", "eta"), {"T": None, "eta": 0.0}),
    Kind(
        "noisy-answers", NoisyAnswers, NoisyAnswers.parameters, ("T",), {"noise": "binomial"}
    ),
    Kind("zcdp", Zcdp, Zcdp.parameters, ("rho",)),
    Kind("approximate-dp", ApproximateDp, ApproximateDp.parameters, ("epsilon",)),
    Kind("k", Anonymity, Anonymity.parameters, ("k",), larger_is_stronger=True),
    Kind(
        "l", Diversity, Diversity.parameters, ("l",), {"measure": "frequency"},
        larger_is_stronger=True,
    ),
    Kind("t", Closeness, Closeness.parameters, ("t",), {"distance": "variational"}),
    Kind(
        "semantic", SemanticPrivacy, SemanticPrivacy.parameters, ("delta",),
        {"absent": "forbidden"},
    ),
)  # fmt: skip
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}
"""Every kind of promise by the name that `parse_guarantee` reads, such as `dp` or `d-gamma`."""


def label(guarantee: Guarantee) -> str:
    """The kind with its word, such as dp[swap]: what theorems lead from and to."""
    option = KINDS[guarantee.kind].option
    return f"{guarantee.kind}[{guarantee.to_dict()[option]}]" if option else guarantee.kind


# ---------------------------------------------------------------------- spelling
# Guarantees as people write them: d-gamma(d=4.65e-4, gamma=0.2).


@dataclass(frozen=True)
class Wish:
    """A kind with some of its parameters: what a conversion may lead to."""

    kind: Kind
    fixed: dict[str, Value]

    @property
    def labels(self) -> list[str]:
        """What it may be, with the words that it leaves open, the default first."""
        option = self.kind.option
        if option is None or option not in self.fixed:
            return self.kind.labels
        return [f"{self.kind.name}[{self.fixed[option]}]"]


def parse_guarantee(text: str) -> Guarantee:
    """The guarantee that a text means; every wrong part is named with its place."""
    wish = parse_wish(text)
    kind = wish.kind
    missing = [
        name for name in kind.parameters if name not in wish.fixed and name not in kind.defaults
    ]
    if missing:
        raise UsageError(
            f"{kind.name} lacks {' and '.join(missing)} in {text!r}", hint=f"write {example(kind)}"
        )
    try:
        return kind.make(**wish.fixed)
    except VoileError as error:
        raise type(error)(f"{error.message}, in {text!r}", hint=error.hint) from None


def parse_wish(text: str) -> Wish:
    """A kind, with whatever parameters are given."""
    found = re.fullmatch(r"\s*([^\s(),=]+)\s*(?:\((.*)\)\s*)?", text, re.DOTALL)
    if not found:
        raise UsageError(
            f"{text!r} is not a guarantee: it is not written NAME or NAME(parameter=value, …)",
            hint=f"e.g. {example(KINDS['d-gamma'])}",
        )
    name = found[1]
    if name not in KINDS:
        raise UsageError(
            f"guarantee {name!r} is not known{_place(text, found.start(1))}",
            hint=did_you_mean(name, list(KINDS)),
        )
    kind = KINDS[name]
    inside, start = found[2] or "", found.start(2)
    return Wish(kind, dict(_read(kind, inside, lambda at: _place(text, start + at))))


def _read(kind: Kind, inside: str, place: Callable[[int], str]) -> Iterator[tuple[str, Value]]:
    """Each parameter with its value; `place` tells where in the whole text a character is."""
    if not inside.strip():
        return
    seen: set[str] = set()
    at = 0
    for part in inside.split(","):
        found = re.fullmatch(r"(\s*)([^=]*?)(\s*=\s*)(.*?)\s*", part, re.DOTALL)
        if not found or not found[2] or not found[4]:
            raise UsageError(
                f"{part.strip()!r} is not parameter=value{place(at)}",
                hint=f"write {example(kind)}",
            )
        name, where = found[2], place(at + found.start(2))
        if name not in kind.parameters:
            raise UsageError(
                f"{kind.name} has no parameter {name!r}{where}",
                hint=did_you_mean(name, list(kind.parameters)),
            )
        if name in seen:
            raise UsageError(f"{name!r} is given twice{where}", hint="give each parameter once")
        seen.add(name)
        yield name, kind.parameters[name].read(name, found[4], place(at + found.start(4)))
        at += len(part) + 1


def _place(text: str, at: int) -> str:
    return f" (character {at + 1} of {text!r})"


def example(kind: Kind) -> str:
    """How a guarantee of this kind is written, without what may be left out."""
    names = [f"{name}=…" for name in kind.parameters if name not in kind.defaults]
    return f"{kind.name}({', '.join(names)})"


def spelled(guarantee: Guarantee, digits: int | None = None) -> str:
    """The text of a guarantee, such that reading it gives the same; shorter with `digits`."""
    kind = KINDS[guarantee.kind]
    parts = []
    for name, value in list(guarantee.to_dict().items())[1:]:
        if value is None:
            parameter = kind.parameters[name]
            shown = parameter.word if isinstance(parameter, Number) else None
        else:
            shown = chance(value, digits) if digits and isinstance(value, float) else plain(value)
        parts.append(f"{name}={shown}")
    return f"{guarantee.kind}({', '.join(parts)})"


def plain(value: Value) -> str:
    """All digits, without the .0 of a whole number."""
    return str(value).removesuffix(".0")
