"""Every kind of guarantee: its name, its parameters, which of them say how strong it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from voile.privacy.guarantee import ADVERSARIES, Adversary, DGamma
from voile.privacy.guarantees.answers import ApproximateDp, NoisyAnswers, Zcdp
from voile.privacy.guarantees.beliefs import (
    Amplification,
    Breach,
    DeltaT,
    Dp,
    Indistinguishable,
    Relative,
    SBreach,
)
from voile.privacy.guarantees.classes import Anonymity, Closeness, Diversity, Semantic
from voile.privacy.guarantees.parameters import PROBABILITY, Choice, Parameter, Value


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
    Kind("semantic", Semantic, Semantic.parameters, ("delta",), {"absent": "forbidden"}),
)  # fmt: skip
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}
"""Every kind of promise by the name that `parse_guarantee` reads, such as `dp` or `d-gamma`."""


def label(guarantee: Guarantee) -> str:
    """The kind with its word, such as dp[swap]: what theorems lead from and to."""
    option = KINDS[guarantee.kind].option
    return f"{guarantee.kind}[{guarantee.to_dict()[option]}]" if option else guarantee.kind
