"""Requirements on tables that are published in classes of records: k, ℓ, t, semantic.

They describe what stands in the published table, not what can be learnt from it: none of them
implies anything about beliefs (docs/mathematics, section 16).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from voile.options import choices
from voile.privacy.guarantees.beliefs import Stated
from voile.privacy.guarantees.parameters import LOG_RATIO, Choice, Number, Parameter

Measure = Literal["frequency", "distinct", "entropy"]
Distance = Literal["variational", "emd", "jensen-shannon"]
Absent = choices.Absent
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
class Semantic(Described):
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
