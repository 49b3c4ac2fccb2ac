"""What has left of a data set, and what all of it adds up to.

Totals are kept for each unit apart: between tables that differ by a record that is added or
removed, by one that is exchanged, or by all records of one person. A promise for one unit counts
for another only where a theorem leads from one to the other: what holds for adding or removing a
record holds for exchanging one with twice the ε or μ and four times the ρ; what holds for
exchanging all records of a person holds for exchanging one record. Everything else is listed apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, Literal

from voile.errors import VoileError
from voile.kinds.registration import Departure
from voile.privacy.composition import (
    PrivacyLoss,
    PrivacyTotal,
    RatioRange,
    compose,
    compose_beliefs,
)
from voile.privacy.guarantee import DGamma, Guarantee
from voile.privacy.guarantees import KINDS, Dp, Relative, spelled
from voile.privacy.guarantees.conversions import ConversionSearch
from voile.privacy.guarantees.statements import VIEW_ALONE
from voile.privacy.guarantees.theorems import exp_up
from voile.records import Record, plain
from voile.units import counted

AccountUnit = Literal["exchange", "add-remove", "person"]
UNITS: tuple[AccountUnit, ...] = ("exchange", "add-remove", "person")
UNIT_WORDS: Mapping[str, str] = {
    "exchange": "exchanging one record",
    "add-remove": "adding or removing one record",
    "person": "exchanging all records of one person",
}
DELTA = 1e-9
"""The δ of totals, where no limit names one."""
State = Literal["left", "may have left", "withdrawn"]


def written_time(at: float) -> str:
    """A time as JSON has it, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class SpendingLimit(Record):
    """What all releases of a data set together may cost."""

    epsilon: float
    delta: float = 0.0
    unit: AccountUnit = "exchange"

    def is_within(self, other: SpendingLimit) -> bool:
        """Whether it allows nothing that the other refuses."""
        return (
            self.unit == other.unit and self.epsilon <= other.epsilon and self.delta <= other.delta
        )

    @property
    def words(self) -> str:
        """The limit in words."""
        at = f" at δ = {self.delta:g}" if self.delta else ""
        return f"ε = {self.epsilon:g}{at} for {UNIT_WORDS[self.unit]}"


@dataclass(frozen=True)
class RegisteredDeparture(Record):
    """One line of an account."""

    json_keys = ("id", "when", "what", "guarantee", "unit=what_is.unit", "adds=what_is.adds",
                 "state", "how", "notes")  # fmt: skip

    id: str
    at: float
    what_is: Departure
    state: State
    how: str
    """How it is known to be of this data set: by name, by rows, or both; and how sure."""
    notes: tuple[str, ...] = ()

    @property
    def when(self) -> str:
        """The time, in UTC."""
        return written_time(self.at)

    @property
    def what(self) -> dict[str, Any]:
        """What left, as plain data."""
        one = self.what_is
        return {
            "kind": one.kind, "method": one.method, "name": one.name, "digest": one.digest,
            "path": one.path,
        }  # fmt: skip

    @property
    def guarantee(self) -> list[dict[str, Any]]:
        """What is promised about it."""
        return [plain(dict(one)) for one in self.what_is.guarantee]

    @property
    def group(self) -> str:
        """What it counts together with; by itself where no group is stated."""
        return self.what_is.group or self.id

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        one = self.what_is
        return f"{one.kind} ({one.method})"

    @property
    def promise(self) -> str:
        """The first of its guarantees, as text."""
        for one in self.what_is.guarantee:
            if (found := guarantee_of(one)) is not None:
                return spelled(found, 4)
        return "nothing that adds up"


def guarantee_of(data: Mapping[str, Any]) -> Guarantee | None:
    """The guarantee that plain data mean; None for kinds that are not known here."""
    kind = KINDS.get(str(data.get("kind")))
    if kind is None:
        return None
    try:
        return kind.of({name: data[name] for name in kind.parameters if name in data})
    except (VoileError, TypeError, KeyError):
        return None


# ---------------------------------------------------------------------- what one of them costs


def loss_of(departure: Departure, unit: AccountUnit) -> PrivacyLoss:
    """What a departure costs for a unit; without numbers where no theorem leads there."""
    if unit == "person" and departure.unit != "person":
        return PrivacyLoss()
    if unit == "add-remove" and departure.unit == "person":
        return PrivacyLoss()
    label = "add-remove" if unit == "add-remove" else "swap"
    found = PrivacyLoss()
    for data in departure.guarantee:
        if VIEW_ALONE in str(data.get("condition", "")):
            continue  # it does not hold of all that left
        found = stronger(found, loss_within(spelled_data(data), label))
    return found


def spelled_data(data: Mapping[str, Any]) -> str:
    """A guarantee as text, by which what follows from it is remembered; empty if it is none."""
    found = guarantee_of(data)
    return "" if found is None else spelled(found)


@lru_cache(maxsize=4096)
def loss_within(text: str, unit: str) -> PrivacyLoss:
    """What follows from a guarantee for one unit, by the theorems of `voile convert`."""
    from voile.privacy.guarantees import parse_guarantee  # noqa: PLC0415  (cached here alone)

    if not text or text.startswith("noisy-answers"):
        return PrivacyLoss()  # what follows from that was written down with it
    known = ConversionSearch(parse_guarantee(text)).found
    numbers = {name: one.guarantee.to_dict() for name, one in known.items()}
    epsilon = numbers.get(f"dp[{unit}]", {}).get("epsilon")
    rho = numbers.get(f"zcdp[{unit}]", {}).get("rho")
    pair = numbers.get(f"approximate-dp[{unit}]")
    approximate = None if pair is None else (float(pair["epsilon"]), float(pair["delta"]))
    return PrivacyLoss(epsilon, rho, approximate, numbers.get(f"gdp[{unit}]", {}).get("mu"))


def stronger(one: PrivacyLoss, other: PrivacyLoss) -> PrivacyLoss:
    """All that is known of a departure, from two of its guarantees."""

    def least(a: float | None, b: float | None) -> float | None:
        return min((x for x in (a, b) if x is not None), default=None)

    pairs = [pair for pair in (one.approximate, other.approximate) if pair is not None]
    pairs.sort(key=lambda pair: (max(pair[1], DELTA), pair[0]))  # of a δ that totals have first
    return PrivacyLoss(
        least(one.epsilon, other.epsilon), least(one.rho, other.rho), next(iter(pairs), None),
        least(one.mu, other.mu),
    )  # fmt: skip


def ratios_of(departure: Departure) -> RatioRange | None:
    """By how much one record that is there or not changes the probability of what left."""
    lows, highs = [], []
    for data in departure.guarantee:
        if VIEW_ALONE in str(data.get("condition", "")):
            continue  # it does not hold of all that left
        one = guarantee_of(data)
        if isinstance(one, DGamma) and one.adversary == "independent":
            lows.append(one.ratio_low)
            highs.append(one.ratio_high)
        elif isinstance(one, Relative) or (isinstance(one, Dp) and one.unit == "add-remove"):
            most = exp_up(one.delta if isinstance(one, Relative) else one.epsilon)
            lows.append(1 / most)
            highs.append(most)
    return RatioRange(max(lows), min(highs)) if lows else None


# ---------------------------------------------------------------------- an account


@dataclass(frozen=True)
class Copies:
    """Departures that keep one promise together, and how often that promise was used up.

    What is made of releases that are in the register themselves uses up nothing.
    """

    departures: tuple[RegisteredDeparture, ...]

    @property
    def number(self) -> int:
        """Once, unless two different ones claim one place in the group.

        Outside of a group each is a draw of its own, also where two of them came out equal.
        """
        places: dict[str, set[str]] = {}
        for one in self.departures:
            places.setdefault(one.what_is.member, set()).add(one.what_is.digest)
        return max(len(digests) for digests in places.values())

    def loss(self, unit: AccountUnit) -> PrivacyLoss:
        """What the promise costs, once: the weakest that one of them states."""
        found = [loss_of(one.what_is, unit) for one in self.departures]
        return found[0] if len(set(found)) == 1 else weakest(found)


def weakest(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
    """What all of them keep."""

    def most(values: list[float | None]) -> float | None:
        return None if None in values else max(value for value in values if value is not None)

    pairs = [loss.approximate for loss in losses]
    known = [pair for pair in pairs if pair is not None]
    worst = (
        (max(p[0] for p in known), max(p[1] for p in known)) if len(known) == len(pairs) else None
    )
    return PrivacyLoss(
        most([loss.epsilon for loss in losses]), most([loss.rho for loss in losses]), worst,
        most([loss.mu for loss in losses]),
    )  # fmt: skip


@dataclass(frozen=True)
class UnitTotal(Record):
    """What adds up for one unit, and what does not."""

    json_keys = ("epsilon=sum.epsilon", "delta=sum.delta", "pure=sum.pure", "rho=sum.rho",
                 "way=sum.way", "complete", "apart")  # fmt: skip

    sum: PrivacyTotal
    apart: tuple[str, ...]
    """Titles of what has no number for this unit."""

    @property
    def complete(self) -> bool:
        """Whether all that left is in the sum."""
        return not self.apart


@dataclass(frozen=True)
class DataSetAccount(Record):
    """All that has left of one data set."""

    json_keys = ("data_set", "left", "total", "limit", "aliases")

    data_set: str
    left: tuple[RegisteredDeparture, ...]
    limit: SpendingLimit | None = None
    """The strictest of those that hold."""
    aliases: tuple[str, ...] = ()
    """Further names of it."""
    limits: tuple[tuple[str, SpendingLimit], ...] = ()
    """All limits that hold, by the names that they were set for."""

    def with_departure(self, departure: RegisteredDeparture) -> DataSetAccount:
        """The account after one more."""
        return replace(self, left=(*self.left, departure))

    @cached_property
    def groups(self) -> list[Copies]:
        """Departures by the promise that they keep together."""
        found: dict[str, list[RegisteredDeparture]] = {}
        for one in self.left:
            if one.what_is.adds:
                found.setdefault(one.group, []).append(one)
        return [Copies(tuple(some)) for some in found.values()]

    @property
    def unit(self) -> AccountUnit:
        """The unit of the limit, or exchanging one record, which most promises speak of."""
        return "exchange" if self.limit is None else self.limit.unit

    @property
    def delta(self) -> float:
        """The δ of totals."""
        return DELTA if self.limit is None else self.limit.delta

    def losses(self, unit: AccountUnit) -> list[PrivacyLoss]:
        """What each promise costs that has a number for a unit, as often as it was used up."""
        found = [(group.loss(unit), group.number) for group in self.groups]
        return [loss for loss, number in found if loss.is_bounded for _ in range(number)]

    def unit_total(self, unit: AccountUnit) -> UnitTotal:
        """What adds up for a unit."""
        losses = self.losses(unit)
        apart = [
            one.title
            for group in self.groups
            if not group.loss(unit).is_bounded
            for one in group.departures
        ]
        total = compose(losses, self.delta)
        if apart and not losses:
            total = PrivacyTotal(None, self.delta, None, None, "nothing here adds up")
        return UnitTotal(total, tuple(apart))

    @cached_property
    def beliefs(self) -> DGamma | None:
        """(d, γ) for independent attackers over all of it; None where nothing holds for all."""
        ranges: list[RatioRange] = []
        priors: list[float] = []
        for group in self.groups:
            found = [ratios_of(one.what_is) for one in group.departures]
            known = [one for one in found if one is not None]
            if len(known) < len(found):
                return None
            worst = RatioRange(min(r.low for r in known), max(r.high for r in known))
            ranges += [worst] * group.number
            priors += list(priors_of(group.departures))
        return compose_beliefs(min(priors), ranges) if priors else None

    @property
    def total(self) -> dict[str, Any]:
        """What all of it adds up to, as plain data."""
        main = self.unit_total(self.unit)
        found: dict[str, Any] = plain({
            **main.to_dict(),
            "unit": self.unit,
            "units": {unit: self.unit_total(unit).to_dict() for unit in UNITS},
            "d_gamma": None if self.beliefs is None else self.beliefs.to_dict(),
            "conditions": self.conditions,
        })  # fmt: skip
        return found

    @property
    def conditions(self) -> list[str]:
        """What the promises presuppose, each condition once."""
        found = (str(one.get("condition", "")) for d in self.left for one in d.what_is.guarantee)
        return list(dict.fromkeys(filter(None, found)))

    @property
    def summary(self) -> str:
        """What all of it adds up to, in a sentence."""
        if not self.left:
            return "nothing has left"
        main = self.unit_total(self.unit)
        parts = [total_words(main.sum, self.unit)] if main.sum.epsilon is not None else []
        if self.beliefs is not None:
            d, gamma = self.beliefs.prior, self.beliefs.posterior
            parts.append(f"beliefs up to {d:.3g} stay below {gamma:.4g} for independent attackers")
        if main.apart:
            number = counted(len(main.apart), "release")
            parts.append(
                f"{number} promise{'s' if len(main.apart) == 1 else ''} nothing that adds up "
                f"({', '.join(dict.fromkeys(main.apart))})"
            )
        return "; ".join(parts) or main.sum.way

    def is_bounded(self, departure: RegisteredDeparture) -> bool:
        """Whether a departure has a number for the unit of the limit, or adds nothing."""
        return not departure.what_is.adds or loss_of(departure.what_is, self.unit).is_bounded

    def excess(self, *, planned: bool = False) -> str:
        """What exceeds the limit, in words; empty where nothing does.

        Of what left before and has no ε nothing can be taken back; it is listed apart. `planned`
        where the last of it has not left yet.
        """
        if self.limit is None:
            return ""
        limit, total = self.limit, self.unit_total(self.limit.unit).sum
        adds, needs = ("would add", "would need") if planned else ("adds", "needs")
        if total.epsilon is None:
            return "" if not self.summed else f"no ε holds for all of it at δ = {limit.delta:g}"
        if total.epsilon > limit.epsilon * (1 + 1e-9):
            return f"all of it {adds} up to {total_words(total, limit.unit)}"
        if total.delta > limit.delta * (1 + 1e-9):
            return f"all of it {needs} δ = {total.delta:.3g}"
        return ""

    @property
    def summed(self) -> list[RegisteredDeparture]:
        """What has a number for the unit of the limit."""
        return [one for one in self.left if one.what_is.adds and self.is_bounded(one)]


def priors_of(departures: Sequence[RegisteredDeparture]) -> Iterator[float]:
    """The priors d that promises about beliefs speak of."""
    for departure in departures:
        for data in departure.what_is.guarantee:
            one = guarantee_of(data)
            if isinstance(one, DGamma) and one.adversary == "independent":
                yield one.prior


def total_words(total: PrivacyTotal, unit: str) -> str:
    """A total in words."""
    if total.epsilon is None:
        return total.way
    at = f" at δ = {total.delta:.3g}" if total.delta else ""
    return f"ε = {rounded_up(total.epsilon)}{at} for {UNIT_WORDS[unit]}"


def rounded_up(value: float) -> str:
    """Four digits, never below the value."""
    if not value:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / step * (1 - 1e-12)) * step:.4g}"
