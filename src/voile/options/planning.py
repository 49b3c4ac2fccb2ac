"""The options of `voile plan --local`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator, model_validator

from voile.errors import UsageError, spelled
from voile.options import Flag, Options, Reader
from voile.options.choices import Share

if TYPE_CHECKING:
    from voile.privacy.guarantees import Breach, SBreach
else:
    Breach = Any  # it checks itself; flags load without it

PROMISES = ("epsilon", "epsilon_column", "breach", "retention")


def parse_breach(flag: str, text: str) -> Breach:
    """ρ₁,ρ₂ as on the command line."""
    from voile.privacy.guarantees import Breach  # noqa: PLC0415  (flags load without it)

    try:
        rho1, rho2 = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"{flag} {text!r} is not two numbers", hint=f"{flag} 0.1,0.95: from ρ₁ to ρ₂"
        ) from None
    return Breach(rho1, rho2)


class LocalPlanOptions(Options):
    """What `voile plan --local` is asked for: one promise, or a retention, or an error."""

    epsilon: Annotated[float | None, Flag("ε of a whole row.")] = None
    epsilon_column: Annotated[float | None, Flag("ε of each column.")] = None
    breach: Annotated[
        Breach | None,
        Flag("ρ₁,ρ₂: no belief of ρ₁ may exceed ρ₂.", reads=Reader(str, parse_breach)),
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
        from voile.privacy.guarantees import Breach  # noqa: PLC0415  (flags load without it)

        return Breach(*given) if isinstance(given, tuple | list) else given

    @model_validator(mode="after")
    def _check(self) -> LocalPlanOptions:
        from voile.privacy.guarantees import Dp  # noqa: PLC0415  (flags load without it)

        self._check_choice()
        for epsilon in (self.epsilon, self.epsilon_column):
            if epsilon is not None:
                Dp(epsilon, "swap")  # refuses what is no ε
        _ = self.s_breach  # likewise
        return self

    def _check_choice(self) -> None:
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
                "nothing is asked for",
                hint=f"give {', '.join(spelled(name, some) for name, some in such)} or "
                f"{spelled('breach')}",
            )

    @property
    def is_by_error(self) -> bool:
        """Whether the error alone decides."""
        return all(getattr(self, name) is None for name in PROMISES)

    @property
    def s_breach(self) -> SBreach | None:
        from voile.privacy.guarantees import SBreach  # noqa: PLC0415

        if self.breach is None or self.relative is None:
            return None
        return SBreach(self.relative, self.breach.rho1, self.breach.rho2)

    @property
    def row_ratio(self) -> Fraction | None:
        """The largest γ of a row that is asked for, where it is one of a row."""
        from voile.privacy.guarantees.theorems import ratio_of  # noqa: PLC0415
        from voile.privacy.local import exp_down  # noqa: PLC0415

        if self.epsilon is not None:
            return exp_down(self.epsilon)
        if self.breach is not None and self.relative is None:
            return ratio_of(self.breach.rho1, self.breach.rho2)
        return None

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "epsilon_column": self.epsilon_column,
            "breach": [self.breach.rho1, self.breach.rho2] if self.breach else None,
            "relative": self.relative,
            "retention": self.retention,
            "error": self.error,
            "confidence": self.confidence,
            "share": self.share,
        }
