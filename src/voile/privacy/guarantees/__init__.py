"""Guarantees as data, and as people write them: d-gamma(d=4.65e-4, gamma=0.2).

A kind of guarantee is a frozen dataclass: its fields with their ranges, which of them say how
strong it is, and what it means in words. Theorems lead from one to another (`theorems`).
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from voile.errors import UsageError, VoileError, did_you_mean
from voile.options import choices
from voile.privacy.guarantee import (
    Adversary,
    DGamma,
    Guarantee,
    LogRatio,
    NumberRange,
    Probability,
    Value,
)
from voile.units import chance

Unit = Literal["add-remove", "swap"]
ExchangeUnit = Literal["swap", "add-remove"]
"""The same, of promises that are for exchanging a record unless they say otherwise."""
About = Literal["record", "presence"]
Noise = Literal["binomial", "gaussian", "geometric"]
Measure = Literal["frequency", "distinct", "entropy"]
Distance = Literal["variational", "emd", "jensen-shannon"]
Absent = choices.Absent

ALL_OTHERS = "This holds also for someone who knows all other records."
CORRELATED = "what is learnt from correlated records"
ROWS_SHOWN = f"It does not hide how many rows the table has, and not {CORRELATED}."

# ---------------------------------------------------------------------- beliefs
# With L = P(view | with a record) / P(view | without it), and the quotient of two such ratios
# when one record takes another's place, each of them bounds L, or that quotient, or both;
# docs/mathematics, section 16, says which.


@dataclass(frozen=True)
class Relative(Guarantee):
    """(d, δ)-relative privacy (technical report, Definition 2.3).

    For every independent adversary and record with prior at most d:
    e^−δ ≤ Pr[t | V] / Pr[t] ≤ e^δ. It is the same statement for every d.
    """

    kind = "relative"
    claims = ("delta",)

    d: Probability
    delta: LogRatio

    @property
    def adversary(self) -> Adversary:
        """Independent adversaries, as in the definition."""
        return "independent"

    def explain(self) -> str:
        """By which factor a belief may change, and what is not covered."""
        return (
            "Nobody's belief that a certain record is in the table, if it was at most "
            f"{chance(self.d)} before, is multiplied or divided by more than e^{self.delta:.4g}. "
            "This holds for those to whom one record says nothing about another. It does not limit "
            f"how sure someone can become who was already fairly sure, and not {CORRELATED}."
        )


@dataclass(frozen=True)
class Dp(Guarantee):
    """ε-differential privacy, for adding or removing a record or for exchanging one."""

    kind = "dp"
    claims = ("epsilon",)

    epsilon: LogRatio
    unit: Unit = "add-remove"

    @property
    def adversary(self) -> Adversary:
        """Exclusive for exchanging a record, independent for adding or removing one."""
        return "independent" if self.unit == "add-remove" else "exclusive"

    def explain(self) -> str:
        """By which factor odds may change, and what is not covered."""
        if self.unit == "swap":
            return Indistinguishable(self.epsilon).explain()
        return (
            "With any one record or without it, every release is as likely up to a factor of "
            f"e^{self.epsilon:.4g}: the odds that anyone gives to a record's being in the table "
            f"change by no more. {ALL_OTHERS} It does not hold for {CORRELATED}."
        )


@dataclass(frozen=True)
class Indistinguishable(Guarantee):
    """ε-indistinguishability (technical report, Definition 3.1).

    Two tables of the same size that differ in one pair of tuples give every view with chances
    that differ by a factor of at most e^ε.
    """

    kind = "indistinguishable"
    claims = ("epsilon",)

    epsilon: LogRatio

    def explain(self) -> str:
        """By which factor the probability of a release may change."""
        return (
            "If one record of the table were another one, every release would still be as "
            f"likely as it is, up to a factor of e^{self.epsilon:.4g}. {ALL_OTHERS} {ROWS_SHOWN}"
        )


@dataclass(frozen=True)
class Breach(Guarantee):
    """No upward ρ₁-to-ρ₂ privacy breach (Evfimievski, Gehrke, Srikant, PODS 2003).

    `about` a record: any property of one person's record, whose owner is known to be in the
    table. About presence: whether one record is in the table, or is not. Here ρ₂ may be
    reached but not exceeded; the paper counts reaching it as a breach.
    """

    kind = "breach"
    claims = ("rho2",)

    rho1: Probability
    rho2: Probability
    about: About = "record"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_order(self.rho1, self.rho2)

    @property
    def adversary(self) -> Adversary:
        """Independent for presence, exclusive for a person's own record."""
        return "independent" if self.about == "presence" else "exclusive"

    def explain(self) -> str:
        """From which belief to which one may come, and for whom that holds."""
        low, high = chance(self.rho1), chance(self.rho2)
        what = (
            "a certain property of one person's record"
            if self.about == "record"
            else "a certain record's being in the table, or its not being there,"
        )
        return (
            f"Whoever believed in {what} with at most {low} believes it afterwards with at most "
            f"{high}; and whoever believed it with {high} or more keeps a belief of at least "
            f"{low}. {ALL_OTHERS} It does not hold for {CORRELATED}."
        )


@dataclass(frozen=True)
class SBreach(Guarantee):
    """No (s, ρ₁, ρ₂) breach (Agrawal, Srikant, Thomas, SIGMOD 2005, Definition 5).

    For sets S of values that are less than s times as frequent as in the replacing
    distribution: P[X ∈ S] ≤ ρ₁ implies P[X ∈ S | Y ∈ S] ≤ ρ₂.
    """

    kind = "s-breach"
    claims = ("rho2",)

    s: Annotated[float, NumberRange(0)]
    rho1: Probability
    rho2: Probability

    def __post_init__(self) -> None:
        super().__post_init__()
        check_order(self.rho1, self.rho2)

    @property
    def against(self) -> str:
        """Someone who sees less than the published value itself."""
        return "anyone who learns only that the published value lies in the set"

    def explain(self) -> str:
        """Which sets of values are protected, and to what belief."""
        return (
            f"For any set of values that is less than {self.s:.4g} times as frequent as under the "
            f"replacing distribution: whoever believed with at most {chance(self.rho1)} that a "
            "person's value is in it, believes it with at most "
            f"{chance(self.rho2)} on hearing that the published value is. Nothing is said about "
            "more frequent sets, nor about someone who sees the published value itself."
        )


def check_order(rho1: float, rho2: float) -> None:
    """Refuse a belief afterwards that is below the one before."""
    if rho1 > rho2:
        raise UsageError(
            f"rho1 = {rho1:g} is above rho2 = {rho2:g}",
            hint="rho1 is the belief before, rho2 the largest belief after",
        )


@dataclass(frozen=True)
class Amplification(Guarantee):
    """At most γ-amplifying (Evfimievski, Gehrke, Srikant, PODS 2003).

    Each record is perturbed by itself, and no published value is more than γ times as likely
    from one original value as from another.
    """

    kind = "amplification"
    claims = ("gamma",)

    gamma: Annotated[float, NumberRange(1, with_low=True)]

    def explain(self) -> str:
        """By which factor one record may explain what is published better than another."""
        return (
            "Each record is changed by chance on its own, and what is published for a person "
            f"would have been at least 1/{self.gamma:.4g} times as likely had their record been "
            f"any other. It does not hide who takes part, and not {CORRELATED}."
        )


@dataclass(frozen=True)
class DeltaT(Guarantee):
    """(δ, T)-privacy (SuLQ): log-odds rise by more than δ with probability at most η.

    For any property of one row, one who knows all other rows, and at most T queries. The log-odds
    of a property fall as those of its opposite rise, so that both are bounded, each by η. `about`
    presence: the same of a record's being in the table, and of its not being there.
    """

    kind = "delta-T"
    claims = ("delta", "eta")
    unstated: ClassVar[Mapping[str, Value]] = {"about": "record"}

    delta: LogRatio
    T: Annotated[int | None, NumberRange(1, with_low=True, whole=True, word="any")] = None
    eta: Annotated[float, NumberRange(0, 1, with_low=True)] = 0.0
    about: About = "record"

    @property
    def adversary(self) -> Adversary:
        """Independent for presence, exclusive for a person's own record."""
        return "independent" if self.about == "presence" else "exclusive"

    def explain(self) -> str:
        """By how much odds may rise over all answers, and with what probability more."""
        queries = "any number of questions" if self.T is None else f"at most {self.T} questions"
        what = (
            "any property of one person's record have"
            if self.about == "record"
            else "a certain record's being in the table, or its not being there, have"
        )
        text = (
            f"After {queries}, nobody's odds of {what} "
            f"{'risen' if self.eta else 'changed'} by more than a factor of e^{self.delta:.4g}"
        )
        rarely = f", except with probability at most {self.eta:.3g}" if self.eta else ""
        rows = "hide the number of rows, and not " if self.about == "record" else "hold for "
        return f"{text}{rarely}. {ALL_OTHERS} It does not {rows}{CORRELATED}."


# ---------------------------------------------------------------------- noisy answers
# About exchanging one person's rows for others, where the number of rows is public, unless they
# name another unit.


@dataclass(frozen=True)
class NoisyAnswers(Guarantee):
    """At most T answers, each with fresh noise (SuLQ).

    `variance` is that of a total which one person can change by 1; noise of totals that change by
    more is wider in proportion.
    """

    kind = "noisy-answers"
    claims = ("T",)

    T: Annotated[int, NumberRange(1, 1e9, with_low=True, whole=True)]
    variance: Annotated[float, NumberRange(0, 1e12)]
    noise: Noise = "binomial"

    def explain(self) -> str:
        """How many answers there are, and with what noise."""
        return (
            f"At most {self.T} answers are ever given, each with fresh {self.noise} noise of "
            f"variance {self.variance:.6g}, times the square of what one person can change. What "
            "that hides follows from it; it does not hide the number of rows, and not "
            f"{CORRELATED}."
        )


class UnitGuarantee(Guarantee):
    """A promise between tables that differ by a record, for exchanging one unless it says more."""

    unstated: ClassVar[Mapping[str, Value]] = {"unit": "swap"}

    @property
    @abstractmethod
    def unit(self) -> ExchangeUnit:
        """By what tables differ that are compared."""

    @property
    def adversary(self) -> Adversary:
        """Exclusive for exchanging a record, independent for adding or removing one."""
        return "independent" if self.unit == "add-remove" else "exclusive"

    @property
    def neighbours(self) -> str:
        """What tables are compared, as the beginning of a sentence."""
        if self.unit == "add-remove":
            return "With any one record or without it"
        return "If one record of the table were another one"

    @property
    def covers(self) -> str:
        """For whom it holds, and what is not covered."""
        if self.unit == "add-remove":
            return f"{ALL_OTHERS} It does not hold for {CORRELATED}."
        return f"{ALL_OTHERS} {ROWS_SHOWN}"


@dataclass(frozen=True)
class Zcdp(UnitGuarantee):
    """ρ-zero-concentrated differential privacy (Bun, Steinke, 2016)."""

    kind = "zcdp"
    claims = ("rho",)

    rho: LogRatio
    unit: ExchangeUnit = "swap"

    def explain(self) -> str:
        """By how much the log-likelihood changes on average."""
        return (
            f"{self.neighbours}, the log-likelihood of what is published would change "
            f"about as that of a normal law: by {self.rho:.4g} on average, rarely by much more. "
            f"{self.covers}"
        )


@dataclass(frozen=True)
class ApproximateDp(UnitGuarantee):
    """(ε, δ)-differential privacy (Dwork, Kenthapadi, McSherry, Mironov, Naor, 2006)."""

    kind = "approximate-dp"
    claims = ("epsilon",)

    epsilon: LogRatio
    delta: Annotated[float, NumberRange(0, 1, with_low=True)]
    unit: ExchangeUnit = "swap"

    def explain(self) -> str:
        """By which factor and rest the probability of an event may change."""
        return (
            f"{self.neighbours}, every event would be as likely as it "
            f"is, up to a factor of e^{self.epsilon:.4g} and a rest of {self.delta:.3g}. "
            f"{self.covers}"
        )


LARGEST_MU = 100.0


@dataclass(frozen=True)
class Gdp(UnitGuarantee):
    """μ-Gaussian differential privacy (Dong, Roth, Su, 2022).

    Telling two neighbouring tables apart by what is published is at least as hard as telling
    N(0, 1) from N(μ, 1). Normal noise keeps it with equality.
    """

    kind = "gdp"
    claims = ("mu",)

    mu: Annotated[float, NumberRange(0, LARGEST_MU, with_low=True, with_high=True)]
    unit: ExchangeUnit = "swap"

    def explain(self) -> str:
        """How hard it is to tell neighbouring tables apart."""
        return (
            f"{self.neighbours}, that would be at least as hard to tell from what is published as "
            f"whether a normal variable has been moved by {self.mu:.4g} of its standard "
            f"deviations. {self.covers}"
        )


# ---------------------------------------------------------------------- classes of records
# They describe what stands in the published table, not what can be learnt from it: none of them
# implies anything about beliefs (docs/mathematics, section 16).


class RequirementGuarantee(Guarantee):
    """A requirement that speaks of classes of records and names no adversary."""

    @property
    def adversary(self) -> str:
        """None: it describes the published table."""
        return "none"


@dataclass(frozen=True)
class Anonymity(RequirementGuarantee):
    """k-anonymity: every class has at least k records."""

    kind = "k"
    claims = ("k",)
    larger_is_stronger = True

    k: Annotated[int, NumberRange(1, with_low=True, whole=True)]

    def explain(self) -> str:
        """How many records share a combination of values, and what that does not limit."""
        return (
            f"Every published combination of identifying values is shared by at least {self.k} "
            "records. Nothing follows about what can be learnt of one of them: all may have the "
            "same sensitive value, and what is known beforehand may rule out the rest."
        )


@dataclass(frozen=True)
class Diversity(RequirementGuarantee):
    """ℓ-diversity, by frequency (at most 1/ℓ), number of distinct values, or entropy (≥ ln ℓ)."""

    kind = "l"
    claims = ("l",)
    larger_is_stronger = True

    l: Annotated[float, NumberRange(1, with_low=True)]  # noqa: E741  (the requirement's name)
    measure: Measure = "frequency"

    def explain(self) -> str:
        """How varied the sensitive values of a class are, and what that does not limit."""
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
class Closeness(RequirementGuarantee):
    """t-closeness: every class's sensitive values are distributed as the table's, up to t.

    'variational' is half the sum of differences; 'emd' the earth mover's distance, whose ground
    distances are at most 1; 'jensen-shannon' the divergence in natural logarithms (the choice
    of Li and Li, KDD 2009), which is at most ln 2.
    """

    kind = "t"
    claims = ("t",)

    t: Annotated[float, NumberRange(0, 1, with_low=True, with_high=True)]
    distance: Distance = "variational"

    def explain(self) -> str:
        """How near a class is to the whole table, and what that does not limit."""
        return (
            "In every class of records the sensitive values are distributed as in the whole "
            f"table, up to a distance of {self.t:.4g} ({self.distance}). A rare value may still "
            "be many times as frequent in a class, and nothing is said about someone who knows "
            "more than the table's distribution."
        )


@dataclass(frozen=True)
class SemanticPrivacy(RequirementGuarantee):
    """δ-semantic privacy: |ln(share in the class / share in the table)| ≤ δ for every value.

    A value that is absent from a class has ln 0. 'forbidden' is the literal reading, in which
    every value occurs in every class; 'ignored' requires it only of values that occur.
    """

    kind = "semantic"
    claims = ("delta",)

    delta: LogRatio
    absent: Absent = "forbidden"

    def explain(self) -> str:
        """By which factor shares in a class may differ from the table's."""
        which, missing = "every sensitive value", ""
        if self.absent == "ignored":
            which, missing = "every sensitive value that occurs in it", " Which do not is visible."
        return (
            f"In every class of records the share of {which} is that in the whole table, up to a "
            f"factor of e^{self.delta:.4g}.{missing} Nothing is said about someone who knows more "
            "than the table's distribution."
        )


KINDS: Mapping[str, type[Guarantee]] = {
    one.kind: one
    for one in (
        DGamma, Relative, Dp, Indistinguishable, Breach, SBreach, Amplification, DeltaT,
        NoisyAnswers, Zcdp, ApproximateDp, Gdp, Anonymity, Diversity, Closeness, SemanticPrivacy,
    )
}  # fmt: skip
"""Every kind of promise by the name that `parse_guarantee` reads, such as `dp` or `d-gamma`."""

# ---------------------------------------------------------------------- spelling


@dataclass(frozen=True)
class Target:
    """A kind with some of its parameters: what a conversion may lead to."""

    kind: type[Guarantee]
    fixed: dict[str, Value]

    @property
    def labels(self) -> list[str]:
        """What it may be, with the words that it leaves open, the default first."""
        option = self.kind.option
        if option is None or option not in self.fixed:
            found = list(self.kind.labels)
            return found[:1] if option in self.kind.unstated else found
        return [f"{self.kind.kind}[{self.fixed[option]}]"]

    @property
    def choices(self) -> dict[str, Any]:
        """Its parameters that are not claims of strength."""
        return {n: v for n, v in self.fixed.items() if n not in self.kind.claims}

    def __str__(self) -> str:
        given = ", ".join(f"{name}={plain(value)}" for name, value in self.fixed.items())
        return f"{self.kind.kind}({given})" if given else self.kind.kind


def parse_guarantee(text: str) -> Guarantee:
    """The guarantee that a text means; every wrong part is named with its place."""
    target = parse_target(text)
    kind = target.kind
    missing = [
        name for name in kind.parameters if name not in target.fixed and name not in kind.defaults
    ]
    if missing:
        raise UsageError(
            f"{kind.kind} lacks {' and '.join(missing)} in {text!r}", hint=f"write {example(kind)}"
        )
    try:
        return kind.of(target.fixed)
    except VoileError as error:
        raise type(error)(f"{error.message}, in {text!r}", hint=error.hint) from None


def parse_target(text: str) -> Target:
    """A kind, with whatever parameters are given."""
    found = re.fullmatch(r"\s*([^\s(),=]+)\s*(?:\((.*)\)\s*)?", text, re.DOTALL)
    if not found:
        raise UsageError(
            f"{text!r} is not a guarantee: it is not written NAME or NAME(parameter=value, …)",
            hint=f"e.g. {example(DGamma)}",
        )
    name = found[1]
    if name not in KINDS:
        raise UsageError(
            f"guarantee {name!r} is not known{_place(text, found.start(1))}",
            hint=did_you_mean(name, list(KINDS)),
        )
    kind = KINDS[name]
    inside, start = found[2] or "", found.start(2)
    return Target(kind, dict(_read(kind, inside, lambda at: _place(text, start + at))))


parse_wish = parse_target
"""The earlier name of `parse_target`."""


def _read(
    kind: type[Guarantee], inside: str, place: Callable[[int], str]
) -> Iterator[tuple[str, Value]]:
    """Each parameter with its value; `place` says where in the whole text a character is."""
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
                f"{kind.kind} has no parameter {name!r}{where}",
                hint=did_you_mean(name, list(kind.parameters)),
            )
        if name in seen:
            raise UsageError(f"{name!r} is given twice{where}", hint="give each parameter once")
        seen.add(name)
        yield name, kind.parameters[name].read(name, found[4], place(at + found.start(4)))
        at += len(part) + 1


def _place(text: str, at: int) -> str:
    return f" (character {at + 1} of {text!r})"


def example(kind: type[Guarantee]) -> str:
    """How a guarantee of this kind is written, without what may be left out."""
    names = [f"{name}=…" for name in kind.parameters if name not in kind.defaults]
    return f"{kind.kind}({', '.join(names)})"


def spelled(guarantee: Guarantee, digits: int | None = None) -> str:
    """The text of a guarantee, such that reading it gives the same; shorter with `digits`."""
    parts = []
    for name, value in list(guarantee.to_dict().items())[1:]:
        if value is None:
            parameter = guarantee.parameters[name]
            shown = parameter.word if isinstance(parameter, NumberRange) else None
        else:
            shown = chance(value, digits) if digits and isinstance(value, float) else plain(value)
        parts.append(f"{name}={shown}")
    return f"{guarantee.kind}({', '.join(parts)})"


def plain(value: Value) -> str:
    """All digits, without the .0 of a whole number."""
    return str(value).removesuffix(".0")
