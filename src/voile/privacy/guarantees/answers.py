"""Promises about noisy answers: the noise itself, ρ-zCDP and (ε, δ)-DP, each as data.

All are about exchanging one person's rows for others; the number of rows is public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from voile.privacy.guarantee import Adversary
from voile.privacy.guarantees.beliefs import OWN_RECORD, Stated
from voile.privacy.guarantees.parameters import LOG_RATIO, Choice, Number, Parameter

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
