"""The options of `voile plan --local`."""

from __future__ import annotations

from typing import Annotated, Any, Protocol, TypedDict

from pydantic import Field, field_validator, model_validator

from voile.errors import UsageError, spelled
from voile.options import PAIR, Flag, Options
from voile.options.choices import Share

PROMISES = ("epsilon", "epsilon_column", "breach", "retention")


class LocalPlanOptions(Options):
    """The options of `voile plan --local`: one promise, or a retention, or an error."""

    epsilon: Annotated[float | None, Flag("ε of a whole row.")] = None
    epsilon_column: Annotated[float | None, Flag("ε of each column.")] = None
    breach: Annotated[
        tuple[float, float] | None, Flag("ρ₁,ρ₂: no belief of ρ₁ may exceed ρ₂.", reads=PAIR)
    ] = None
    relative: Annotated[
        float | None,
        Flag("With --breach: s, of sets less than s times as likely as by replacement."),
    ] = None
    retention: Annotated[
        float | None,
        Flag(
            "Chance that a value is kept.",
            hint="it is the chance that a value is kept, e.g. 0.3",
        ),
        Field(gt=0, lt=1),
    ] = None
    error: Annotated[
        float | None,
        Flag(
            "How far a fraction may be off, of rows that meet a condition on one column.",
            hint="it is how far the fraction of rows may be off, e.g. 0.01",
        ),
        Field(gt=0, lt=1),
    ] = None
    confidence: Annotated[
        float, Flag("The chance that it is not farther off.", hint="e.g. 0.95"), Field(gt=0, lt=1)
    ] = 0.95
    share: Annotated[
        Share, Flag("Columns share a row's ε with equal epsilon, or with equal retention.")
    ] = "epsilon"

    @field_validator("breach", mode="before")
    @classmethod
    def _pair(cls, given: Any) -> Any:
        """A breach may be given as the guarantee against it."""
        return (given.rho1, given.rho2) if hasattr(given, "rho1") else given

    @model_validator(mode="after")
    def _check_choice(self) -> LocalPlanOptions:
        given = self.given(*PROMISES)
        if len(given) > 1:
            both = " and ".join(map(spelled, given))
            raise UsageError(f"{both} are two promises", hint="give one of them")
        if self.relative is not None and self.breach is None:
            raise UsageError(
                f"{spelled('relative', self.relative)} is about a breach, and none is named",
                hint=f"add {spelled('breach')}",
            )
        if not given and self.error is None:
            such = (("epsilon", 3), ("epsilon_column", 1), ("retention", 0.3), ("error", 0.01))
            raise UsageError(
                "no promise, retention or error is given",
                hint=f"give {', '.join(spelled(name, some) for name, some in such)} or "
                f"{spelled('breach')}",
            )
        return self

    @property
    def is_by_error(self) -> bool:
        """Whether only an error is given."""
        return all(getattr(self, name) is None for name in PROMISES)

    def to_dict(self) -> dict[str, Any]:
        """The options as JSON."""
        return self.model_dump(mode="json")


class BreachBounds(Protocol):
    """A guarantee against a breach: no belief of ρ₁ may exceed ρ₂."""

    @property
    def rho1(self) -> float:
        """The belief before."""

    @property
    def rho2(self) -> float:
        """The belief after."""


class LocalPlanKeywords(TypedDict, total=False):
    """The same options as keyword arguments; a breach may be the guarantee against it."""

    epsilon: float | None
    epsilon_column: float | None
    breach: tuple[float, float] | BreachBounds | None
    relative: float | None
    retention: float | None
    error: float | None
    confidence: float
    share: Share
