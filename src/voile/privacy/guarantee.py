"""What is promised, as data, and when a mechanism keeps it.

A mechanism is summed up by how much one record can change the chance of what is published: the
likelihood ratio P(view | with the record) / P(view | without it) stays in [low, high]. Bayes'
rule turns these two numbers into what an adversary can learn. All comparisons are exact: floats
are read as the fractions they are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from voile.errors import PromiseError, UsageError, did_you_mean, spelled
from voile.options import choices
from voile.units import chance


def after(prior: float, epsilon: float) -> float:
    """What a belief may become within ε: odds rise by e^ε at most."""
    return 0.0 if prior == 0 else 1 / (1 + (1 - prior) / prior * math.exp(-epsilon))


def round_up(x: Fraction) -> float:
    """The smallest float not below x: a promise is never broken by rounding."""
    near = float(x)
    return near if Fraction(near) >= x else math.nextafter(near, math.inf)


def round_down(x: Fraction) -> float:
    """The largest float not above x."""
    near = float(x)
    return near if Fraction(near) <= x else math.nextafter(near, -math.inf)


# ---------------------------------------------------------------------- parameters
# What a parameter may be, said once for the parser, the classes and the messages.

Value = float | int | str | None


@dataclass(frozen=True)
class NumberRange:
    """A number between two ends; an end belongs to the range only where it says so."""

    low: float
    high: float = math.inf
    with_low: bool = False
    with_high: bool = False
    whole: bool = False
    word: str | None = None
    """A word that may stand for 'no limit', such as any; its value is None."""

    def check(self, name: str, value: Value, where: str = "") -> None:
        """Refuse a value out of range; `where` is its place in a text, for the message."""
        if value is None and self.word:
            return
        if not isinstance(value, int | float) or not self._holds(value):
            shown = f"{value:g}" if isinstance(value, float) else repr(value)
            raise UsageError(f"{name} = {shown} {self.words}{where}", hint=self.hint(name))

    def _holds(self, value: float) -> bool:
        if not math.isfinite(value) or (self.whole and value != int(value)):
            return False
        above = value >= self.low if self.with_low else value > self.low
        return above and (value <= self.high if self.with_high else value < self.high)

    @property
    def words(self) -> str:
        """The range, as the end of a sentence about the number."""
        number = "must be a whole number" if self.whole else "must be a number"
        least = "at least" if self.with_low else "above"
        if math.isinf(self.high):
            return f"{number} {least} {self.low:g}"
        most = "at most" if self.with_high else "below"
        return f"{number} {least} {self.low:g} and {most} {self.high:g}"

    def hint(self, name: str) -> str:
        """An example inside the range."""
        inside = self.low + 1 if self.high > self.low + 1 else (self.low + self.high) / 2
        example = f"e.g. {name}={inside:g}"
        return f"{example}, or {name}={self.word}" if self.word else example

    def read(self, name: str, text: str, where: str) -> Value:
        """The value that a text means; `where` is its place, for the message."""
        if text == self.word:
            return None
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            raise UsageError(
                f"{name} = {text!r} {self.words}{where}", hint=self.hint(name)
            ) from None
        self.check(name, value, where)
        return value


@dataclass(frozen=True)
class WordChoice:
    """One of a few words."""

    options: tuple[str, ...]

    def check(self, name: str, value: Value, where: str = "") -> None:
        """Refuse any other word; `where` is its place in a text, for the message."""
        if value not in self.options:
            raise UsageError(
                f"{name} = {value!r} is not known{where}",
                hint=did_you_mean(str(value), list(self.options)),
            )

    def read(self, name: str, text: str, where: str) -> Value:
        """The word itself, if it is one of them."""
        self.check(name, text, where)
        return text


Parameter = NumberRange | WordChoice

PROBABILITY = NumberRange(0, 1)
LARGEST_EPSILON = 10_000.0
LOG_RATIO = NumberRange(0, LARGEST_EPSILON, with_low=True, with_high=True)
"""ε and δ: logarithms of a ratio. Beyond the largest nothing is promised that could be felt."""


Probability = Annotated[float, PROBABILITY]
LogRatio = Annotated[float, LOG_RATIO]


class Parametric:
    """A dataclass whose fields are parameters; those with a range are checked when it is made.

    A range stands in the annotation: `Annotated[float, NumberRange(0, 1)]`, or a Literal of words.
    `keys` are the names by which JSON and texts call a field, where they differ from its own.
    """

    keys: ClassVar[Mapping[str, str]] = {}
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    """The range of each parameter, by its key."""
    defaults: ClassVar[Mapping[str, Value]] = {}
    """What a parameter is if it is left out, by its key."""

    def __init_subclass__(cls) -> None:
        found = dict(cls.parameters)
        defaults = dict(cls.defaults)
        for name, hint in get_annotations(cls, eval_str=True).items():
            key = cls.keys.get(name, name)
            if (parameter := _range_of(hint)) is not None:
                found[key] = parameter
                if name in vars(cls):
                    defaults[key] = vars(cls)[name]
        cls.parameters, cls.defaults = found, defaults

    def __post_init__(self) -> None:
        for name, value in self._by_key().items():
            self.parameters[name].check(name, value)

    def _by_key(self) -> dict[str, Any]:
        fields = {key: name for name, key in self.keys.items()}
        return {key: getattr(self, fields.get(key, key)) for key in self.parameters}


def _range_of(hint: Any) -> Parameter | None:
    if get_origin(hint) is Literal:
        return WordChoice(get_args(hint))
    if get_origin(hint) is Annotated:
        return next((one for one in hint.__metadata__ if isinstance(one, NumberRange)), None)
    return None


# ---------------------------------------------------------------------- guarantees

Adversary = choices.Adversary
"""Against whom a (d, γ) promise is made."""
ADVERSARIES: tuple[str, ...] = get_args(Adversary)
"""The names of the adversaries."""
AGAINST: dict[Adversary, str] = {
    "independent": "anyone to whom one record says nothing about another, even one who knows all "
    "others",
    "exclusive": "also anyone who knows that a person is in the table and has a list of records "
    "of which exactly one is theirs",
}
"""The classes of adversaries in words; each stronger than the one before."""
OWN_RECORD = "anyone, even one who knows all other records"
NOBODY = "nobody in particular: it describes the published table, not what is learnt from it"


class Guarantee(Parametric, ABC):
    """What is promised, as data: a frozen dataclass whose fields are its parameters."""

    kind: ClassVar[str]
    """Its name, as `parse_guarantee` reads it."""
    claims: ClassVar[tuple[str, ...]]
    """The parameters that say how strong it is; theorems find them, the others are chosen."""
    larger_is_stronger: ClassVar[bool] = False
    option: ClassVar[str | None] = None
    """The parameter that is a choice of words; guarantees that differ in it are different."""
    unstated: ClassVar[Mapping[str, Value]] = {}
    """Parameters that JSON and texts leave out where they have these values. A target without them
    means these, and not any value."""
    labels: ClassVar[Sequence[str]]
    """The kind with each of its words, such as dp[swap], the default first."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in vars(cls):
            words = {n: p.options for n, p in cls.parameters.items() if isinstance(p, WordChoice)}
            cls.option = next(iter(words), None)
            cls.labels = [f"{cls.kind}[{word}]" for word in words.get(cls.option or "", ())] or [
                cls.kind
            ]

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """The guarantee with these parameters, by the keys of JSON and texts."""
        fields = {key: name for name, key in cls.keys.items()}
        return cls(**{fields.get(key, key): value for key, value in parameters.items()})

    @property
    def label(self) -> str:
        """The kind with its word, such as dp[swap]: what theorems lead from and to."""
        return f"{self.kind}[{self.values[self.option]}]" if self.option else self.kind

    @property
    def adversary(self) -> str:
        """Against whom it holds: independent, exclusive, or none where it names nobody."""
        return "exclusive"

    @property
    def against(self) -> str:
        """The same in words."""
        words = {"independent": AGAINST["independent"], "exclusive": OWN_RECORD, "none": NOBODY}
        return words[self.adversary]

    def at_least(self, wanted: Mapping[str, Value]) -> bool:
        """Whether it is as wanted, or stronger."""
        has = self.values
        return all(
            self._as_strong(has[name], value) if name in self.claims else has[name] == value
            for name, value in wanted.items()
        )

    def _as_strong(self, has: Any, wanted: Any) -> bool:
        return bool(has >= wanted if self.larger_is_stronger else has <= wanted)

    @property
    def values(self) -> dict[str, Any]:
        """All its parameters, by the keys of JSON and texts."""
        return self._by_key()

    def to_dict(self) -> dict[str, Any]:
        """The kind and its parameters, ready for JSON."""
        stated = {n: v for n, v in self.values.items() if (n, v) not in self.unstated.items()}
        return {"kind": self.kind, **stated}

    @abstractmethod
    def explain(self) -> str:
        """What it says, in plain words."""


# ---------------------------------------------------------------------- (d, γ)


@dataclass(frozen=True)
class LikelihoodRatio:
    """Bounds on P(view | with a record) / P(view | without it), attained or approached."""

    low: Fraction
    high: Fraction | None
    """None when unbounded: some view is impossible without the record."""

    def posterior(self, prior: float | Fraction) -> Fraction:
        """The largest belief that an adversary with this prior can come to."""
        if self.high is None:
            return Fraction(1)
        p = Fraction(prior)
        return self.high * p / (self.high * p + 1 - p)

    def linked_posterior(self, prior: float | Fraction) -> Fraction:
        """The same for one who knows that exactly one of several records is in the table.

        The view may favour one of them by `high` and all others by `low`.
        """
        if self.high is None or self.low == 0:
            return Fraction(1)
        return LikelihoodRatio(Fraction(1), self.high / self.low).posterior(prior)

    def of_group(self, records: int) -> LikelihoodRatio:
        """Of so many records that come or go together: each multiplies what the others do."""
        return LikelihoodRatio(self.low**records, None if self.high is None else self.high**records)

    def epsilon(self, unit: Literal["add-remove", "swap"]) -> float:
        """ε of differential privacy; a swap takes one record out and puts another in."""
        if self.high is None or self.low == 0:
            return math.inf
        up, down = log(self.high), -log(self.low)
        return max(up, down) if unit == "add-remove" else up + down


def log(x: Fraction) -> float:
    """ln of a fraction of any size."""
    # Fractions here can be far outside the range of floats.
    return math.log(x.numerator) - math.log(x.denominator)


@dataclass(frozen=True)
class DGamma(Guarantee):
    """(d, γ)-privacy (VLDB 2007, Definition 2.3).

    For every adversary of the class, every view V and every record t that it holds possible
    with prior at most d:   (d/γ) · Pr[t] ≤ Pr[t | V] ≤ γ.
    'independent': what it believes of one record does not depend on the others. 'exclusive'
    (Definition 6.2): it also knows sets of tuples of which exactly one is in the table, as after
    linking a person by known attributes; the upper bound holds against it too, the lower does not.
    """

    kind = "d-gamma"
    claims = ("gamma",)
    keys: ClassVar[Mapping[str, str]] = {"prior": "d", "posterior": "gamma"}

    prior: Probability
    posterior: Probability
    adversary: Adversary = "independent"

    def __post_init__(self) -> None:
        if self.adversary not in ADVERSARIES:
            raise UsageError(
                f"adversary {self.adversary!r} is not known", hint=f"use {' or '.join(ADVERSARIES)}"
            )
        if not 0 < self.posterior < 1:
            raise UsageError(
                f"posterior γ = {self.posterior} must lie between 0 and 1",
                hint="it is the belief that no adversary may exceed, e.g. 0.2",
            )
        if not 0 < self.prior < 1:
            raise UsageError(
                f"prior d = {self.prior:.6g} must lie between 0 and 1",
                hint="it is what an adversary may believe beforehand; with "
                f"{spelled('prior_factor')} k it is k·n/m, so a larger domain or a smaller k makes "
                "it smaller",
            )
        if self.prior >= self.posterior:
            raise PromiseError(
                f"prior d = {self.prior:.6g} is not below posterior γ = {self.posterior:.6g}: "
                "Theorem 4.3 needs d ≤ γ (at d = γ only a view that ignores the table keeps it)",
                hint=f"nearest feasible: a posterior above {self.prior:.6g}, "
                f"or a prior below {self.posterior:.6g}",
            )

    @property
    def ratio_high(self) -> Fraction:
        """R = γ(1−d) / (d(1−γ)): the largest ratio that takes a prior d to at most γ."""
        d, gamma = Fraction(self.prior), Fraction(self.posterior)
        return gamma * (1 - d) / (d * (1 - gamma))

    @property
    def ratio_low(self) -> Fraction:
        """d/γ: a ratio of at least this keeps Pr[t|V] ≥ (d/γ)·Pr[t] for every prior."""
        return Fraction(self.prior) / Fraction(self.posterior)

    def posterior_at(self, low: float) -> float:
        """The posterior at which records that show their absence by this ratio keep the prior."""
        return self.prior / low

    def kept_by(self, ratio: LikelihoodRatio) -> bool:
        """Whether every mechanism within these bounds keeps the promise."""
        if ratio.high is None or ratio.low < self.ratio_low:
            return False
        if self.adversary == "independent":
            return ratio.high <= self.ratio_high
        # Of several exclusive tuples the view may favour one by `high` and the others by `low`.
        return ratio.high <= self.ratio_high * ratio.low

    @property
    def against(self) -> str:
        """The class of adversaries in words."""
        return AGAINST[self.adversary]

    def explain(self) -> str:
        """How far a belief may rise and fall, and for whom that holds."""
        d, gamma = chance(self.prior), chance(self.posterior)
        text = (
            f"Whoever believed, before seeing the release, that a certain person's record is in "
            f"the table with a probability of at most {d}, believes it afterwards with at most "
            f"{gamma}."
        )
        if self.adversary == "exclusive":
            return (
                text + " This holds also for someone who knows that the person is in the table "
                "and has linked them to a set of possible records of which exactly one is real."
            )
        return (
            text + f" Nor can the belief fall below {self.prior / self.posterior:.3g} times what "
            "it was. This holds for those to whom one record says nothing about another; it does "
            "not hold for someone who knows that the person is in the table and has a list of "
            "possible records for them."
        )


@dataclass(frozen=True)
class SharedDGamma(DGamma):
    """(d, γ)-privacy of a person with up to so many records, as what it demands of one of them.

    The ratios of the records multiply: each may use up a root of what the person may. Rounded to
    the side of more noise; the product is checked exactly where a release is verified.
    """

    records: int = 1

    @property
    def ratio_high(self) -> Fraction:
        """The largest ratio of one record."""
        return root(super().ratio_high, self.records, up=False)

    @property
    def ratio_low(self) -> Fraction:
        """The smallest ratio of one record."""
        return root(super().ratio_low, self.records, up=True)

    def posterior_at(self, low: float) -> float:
        """The posterior at which all records of a person may be missing."""
        return self.prior / low**self.records


def root(x: Fraction, degree: int, *, up: bool) -> Fraction:
    """A fraction next to the root of x, on the side that is asked for."""
    if degree == 1:
        return x
    near = Fraction(math.exp(log(x) / degree))
    step = Fraction(1, 2**48)
    while (near**degree < x) if up else (near**degree > x):
        near *= 1 + step if up else 1 - step
        step *= 2
    return near
